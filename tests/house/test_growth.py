"""What a caller sends costs at most n log n in time and memory, in each argument of each function.

Each text, list and JSON argument of the public functions, as the catalog has them, is given values
of two sizes, one eight times the other; a new function is covered. Measured is the processor time
of the server process and what its memory peaked at, not the clock: work that grows with the square
takes 64 times as much, n log n about 10 times.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import psutil
import psycopg
import pytest
from psycopg import sql

from growth import FACTOR, MOST
from sqlcalls import Connection, create, retain, rows, value

# Below these nothing can be told, and nobody minds.
SECONDS = 1.0
BYTES = 48 * 2**20

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc of the server process"),
    pytest.mark.skipif("PGRECALL_DSN" in os.environ, reason="the server may be elsewhere"),
]

Shape = Callable[[int], Any]


def repeated(text: str) -> Shape:
    return lambda n: (text * (n // len(text) + 1))[:n]


def words(n: int) -> str:
    return " ".join(f"Word{k}" for k in range(n // 8))[:n]


def accented(n: int) -> str:
    return words(n).replace("o", "ó")


def ideographs(n: int) -> str:
    return "".join(chr(0x4E00 + k % 20000) for k in range(n))


LONG = 6_250  # characters
TEXTS: dict[str, Shape] = {
    "a letter": repeated("a"),
    "words": words,
    "ideographs": ideographs,
    "a name": repeated("Ana "),
    "two names": repeated("Ana's Bo "),
    "quotes": repeated('"a" "'),
    "exclusions": repeated("-ana "),
    "hyphens": repeated("a-"),
    "accents": repeated("e\u0301"),
    "a chain": repeated("the mentor of the boss of Ana "),
    "numbers": repeated("2026-01-05 17:04 "),
    "conditions": repeated("text = 'a' and "),
    "a list": lambda n: f"text in ({', '.join(repr(str(k)) for k in range(n // 9))})",
    "nested JSON": repeated('["not", '),
    "values in JSON": lambda n: json.dumps(["in", "text", [str(k) for k in range(n // 9)]]),
}
MANY = 500


def texts(n: int) -> list[str]:
    return [f"word {k}" for k in range(n)]


def numbered(n: int) -> list[int]:
    return list(range(1, n + 1))


def facts(field: str | None, part: Callable[[int], object] = lambda k: f"x {k}") -> Shape:
    """Facts; or a fact of which one field has n parts."""
    if field is None:
        return lambda n: [{"text": f"Ana {k}", **dict([part(k)])} for k in range(n // 8)]  # type: ignore[list-item]
    return lambda n: [{"text": "Ana", field: [part(k) for k in range(n)]}]


OBJECT: Shape = lambda n: {f"key {k}": k for k in range(n)}  # noqa: E731
FACTS: dict[str, Shape] = {
    "facts": facts(None, lambda k: ("source_id", "s")),
    "facts of a key": facts(None, lambda k: ("fact_key", f"k{k}")),
    "facts of a day": facts(None, lambda k: ("occurred", "2026-01-05")),
    "facts of an entity": facts(None, lambda k: ("entities", ["Bo"])),
    "facts of entities": facts(None, lambda k: ("entities", [f"Bo{k}"])),
    "facts with vectors": facts(None, lambda k: ("embedding", [k, 1])),
    "equal facts": lambda n: [{"text": "Ana"}] * n,
    "tags": facts("tags"),
    "entities": facts("entities", lambda k: f"Bo {k}"),
    "aliases": lambda n: [
        {"text": "a", "entities": [{"name": "Ana", "aliases": [f"A{k}" for k in range(n)]}]}
    ],
    "relations": facts("relations", lambda k: {"from": "Ana", "kind": "knows", "to": f"Bo {k}"}),
    "links": lambda n: [
        {"text": "a"},
        {"text": "b", "links": [{"kind": "causes", "to_index": 0}] * n},
    ],
    "metadata": lambda n: [{"text": "Ana", "metadata": OBJECT(n)}],
    "unknown fields": lambda n: [{"text": "Ana", **OBJECT(n)}],
    "words": lambda n: [{"text": words(n * 12)}],
    "ideographs": lambda n: [{"text": ideographs(n * 12)}],
    "a letter": lambda n: [{"text": "a" * (n * 12)}],
}


def first_of(shape: Shape) -> Shape:
    return lambda n: shape(n)[0]


OPTIONS: dict[str, Shape] = {
    "unknown": OBJECT,
    "weights": lambda n: {"weights": OBJECT(n)},
    "keys": lambda n: {"keys": texts(n)},
    "terms": lambda n: {"terms": texts(n)},
    "synonyms": lambda n: {"terms": ["ana"] * n},
    "relation words": lambda n: {"relation_words": {f"w{k}": "knows" for k in range(n)}},
    "type hints": lambda n: {"type_hints": {"world": texts(n)}},
    "gates": lambda n: {"gates": OBJECT(n)},
    "hypothetical": lambda n: {"hypothetical": [1.0] * n},
    "about": lambda n: {"about_embedding": [1.0] * n},
}
TIMES = ("total_ms", "wait_ms", "embed_ms", "database_ms", "rerank_ms", "hits")
SAMPLE = {"asked_at": "2026-03-05", "share": 0.5, **dict.fromkeys(TIMES, 1)}
JSON: dict[str, dict[str, Shape]] = {
    "facts": FACTS,
    "messages": {
        "messages": lambda n: [{"text": f"Ana {k}", "session": "s"} for k in range(n)],
        "sessions": lambda n: [{"text": "Ana", "session": f"s{k}"} for k in range(n)],
        "words": lambda n: [{"text": words(n * 12)}],
    },
    "settings": {**OPTIONS, "single relations": lambda n: {"single_relations": texts(n)}},
    "options": OPTIONS,
    "fields": {"fields": OBJECT},
    "changes": {
        **{name: first_of(shape) for name, shape in FACTS.items()},
        "unknown": OBJECT,
    },
    "embeddings": {
        "of no memory": lambda n: [{"memory_id": k, "embedding": "[1, 0]"} for k in range(n)],
        "of one memory": lambda n: [{"memory_id": 1, "embedding": "[1, 0]"}] * n,
    },
    "rows": {
        "objects": lambda n: [{"table": "memory", "row": {"memory_id": k}} for k in range(n)],
        "others": lambda n: list(range(n)),
    },
    "weights": {"weights": OBJECT},
    "calibration": {
        "mean": lambda n: {"model": "m", "mean": [0.5 / n] * n},
        "unknown": OBJECT,
    },
    "samples": {
        "samples": lambda n: [SAMPLE] * n,
        "left out": lambda n: [{**SAMPLE, "left_out": texts(n)}],
    },
    "after": {"list": lambda n: list(range(n)), "object": OBJECT},
}
ARMS = ("lexical", "semantic", "graph")


def hits(n: int) -> str:
    return "{" + ",".join(f'"({ARMS[k % 3]},{k // 2},{k + 1},1,,)"' for k in range(n)) + "}"


def dumped(shape: Shape) -> Shape:
    return lambda n: json.dumps(shape(n))


def shapes(name: str, kind: str) -> tuple[int, dict[str, Shape]]:
    """The size to begin with, and values of an argument by size."""
    if kind == "jsonb":
        return MANY, {shape: dumped(of_size) for shape, of_size in JSON[name].items()}
    return {
        "text": (LONG, TEXTS),
        "text[]": (MANY, {"texts": texts, "equal texts": lambda n: ["world"] * n}),
        "bigint[]": (MANY, {"ids": numbered, "equal ids": lambda n: [1] * n}),
        "real[]": (MANY, {"numbers": numbered}),
        "double precision[]": (MANY, {"numbers": numbered}),
        "anycompatible": (MANY, {"numbers": numbered, "text": lambda n: str(numbered(n))}),
        "pgrecall.arm_hit[]": (MANY, {"hits": hits}),
    }.get(kind, (0, {}))


# What is not about rows of a bank, or is bounded by the names of roles.
UNASKED = ["enable_row_security", "disable_row_security", "create_roles"]
FUNCTIONS = """
select p.proname::text, p.proargnames[1 : p.pronargs],
       array(select format_type(t, null)
             from   unnest(p.proargtypes::oid[]) with ordinality as u(t, n) order by n),
       p.pronargs - p.pronargdefaults
from   pg_proc p
where  p.pronamespace = 'pgrecall'::regnamespace and p.prokind = 'f' and p.proname <> all (%s)
  and  not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'i')
order  by 1
"""
# Of arguments without a default.
NEEDED: dict[str, Any] = {
    "bank": "b",
    "query": "Where does Ana sail with Bo?",
    "embedding": "[1, 0]",
    "during": "[2026-01-01, 2026-02-01)",
    "content": "Ana sails",
    "name": "Ana",
    "new_bank": "c",
    "dimensions": 2,
    "facts": "[]",
    "messages": "[]",
    "rows": "[]",
    "changes": "{}",
    "settings": "{}",
    "embeddings": "[]",
    "model": "n",
    "session": "s",
    "hits": "{}",
    "fact_type": "event",
    "elements": [1.0],
    "reach": "key",
}


class Backend:
    """The server process of a connection."""

    def __init__(self, connection: Connection) -> None:
        self.pid = connection.info.backend_pid
        self.process = psutil.Process(self.pid)

    def memory(self, field: str) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split(f"{field}:")[1].split()[0]) * 1024

    def measured(self, run: Callable[[], object]) -> tuple[float, int]:
        """Processor seconds, and bytes of its own at most beyond those before."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")  # the peak is what there is now
        before = self.memory("VmRSS") - self.memory("RssShmem")
        begun = sum(self.process.cpu_times()[:2])
        run()
        seconds = sum(self.process.cpu_times()[:2]) - begun
        return seconds, max(0, self.memory("VmHWM") - self.memory("RssShmem") - before)


@pytest.fixture
def connection(database: str) -> Iterator[Connection]:
    """Of a new database: statistics and plans of other tests would be measured with it."""
    with psycopg.connect(database) as connection:
        yield connection
        connection.rollback()


@pytest.fixture
def bank(connection: Connection) -> Connection:
    create(connection, embedding_model="m", embedding_dimensions=2)
    ids = retain(
        connection,
        [
            {"text": "Ana sails", "embedding": [1, 0], "entities": ["Ana"], "fact_key": "k"},
            {"text": words(20_000), "embedding": [0, 1], "entities": ["Bo"]},
        ],
        model="m",
    )
    entity = value(connection, "select min(entity_id) from pgrecall.entity")
    NEEDED.update(memory_id=ids[1], memory_ids=ids, seeds=ids, entity_id=entity, others=[entity])
    NEEDED.update(source_id=None, target_id=entity, from_id=ids[0], to_id=ids[1])
    return connection


def functions(connection: Connection) -> Iterator[tuple[str, list[str], list[str], int]]:
    for name, names, kinds, needed in rows(connection, FUNCTIONS, UNASKED):
        yield name, names or [], kinds, needed


def call(connection: Connection, name: str, kinds: dict[str, str], given: dict[str, Any]) -> None:
    """Call a function and undo it, answered or refused."""
    places = [
        sql.SQL("{} => cast({} as {})").format(
            sql.Identifier(argument),
            sql.Placeholder(argument),
            sql.SQL("text" if kinds[argument].startswith("any") else kinds[argument]),
        )
        for argument in given
    ]
    statement = sql.SQL("select * from {}({})").format(
        sql.Identifier("pgrecall", name), sql.SQL(", ").join(places)
    )
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(statement, given)
    except (psycopg.errors.QueryCanceled, psycopg.errors.UndefinedFunction):
        raise  # too slow, or the test itself is wrong
    except psycopg.Error:
        pass


def too_much(connection: Connection, name: str, kinds: dict[str, str], needed: int) -> list[str]:
    """The arguments of a function whose growth costs more than n log n, with the figures."""
    backend = Backend(connection)
    found = []
    first = {argument: NEEDED.get(argument) for argument in list(kinds)[:needed]}
    for argument, kind in kinds.items():
        if argument == "bank":
            continue
        size, values = shapes(argument, kind)
        for shape, of_size in values.items():

            def measured(
                n: int, argument: str = argument, of_size: Shape = of_size
            ) -> tuple[float, int]:
                sent = {**first, argument: of_size(n)}
                if isinstance(sent[argument], list):
                    sent[argument] = "{" + ",".join(f'"{x}"' for x in sent[argument]) + "}"
                return backend.measured(lambda: call(connection, name, kinds, sent))

            seconds, memory = measured(FACTOR * size)
            if seconds < SECONDS and memory < BYTES:
                continue
            small = [measured(size) for _ in range(2)]
            again = [(seconds, memory), measured(FACTOR * size)]
            most, most_bytes = (min(part) for part in zip(*again, strict=True))
            least, least_bytes = (min(part) for part in zip(*small, strict=True))
            if most > MOST * max(least, SECONDS / MOST) or most_bytes > MOST * max(
                least_bytes, BYTES / FACTOR
            ):
                found.append(
                    f"{name}({argument}: {shape}) {least:.2f} to {most:.2f} s,"
                    f" {least_bytes >> 20} to {most_bytes >> 20} MB"
                )
    return found


def test_no_argument_costs_more_than_n_log_n(bank: Connection) -> None:
    bank.execute("set local statement_timeout = '90s'")
    found: list[str] = []
    for name, names, kinds, needed in functions(bank):
        try:
            found += too_much(bank, name, dict(zip(names, kinds, strict=True)), needed)
        except psycopg.errors.QueryCanceled:
            found.append(f"{name}: more than a minute")

    assert found == []


@pytest.mark.parametrize(
    ("text", "query"), [(words, words), (ideographs, ideographs), (accented, words)]
)
def test_a_long_text_is_highlighted_for_a_long_query(
    connection: Connection, text: Shape, query: Shape
) -> None:
    create(connection)
    ids = retain(connection, [text(n) for n in (LONG, 8 * LONG)])
    backend = Backend(connection)

    short, long = (
        min(
            backend.measured(
                lambda n=n, memory_id=memory_id: rows(  # type: ignore[misc]
                    connection, "select pgrecall.highlight('b', %s, %s)", memory_id, query(n)
                )
            )[0]
            for _ in range(2)
        )
        for n, memory_id in zip((LONG, 8 * LONG), ids, strict=True)
    )

    assert long < MOST * short


def test_spellings_of_many_words_are_found_in_n_log_n(connection: Connection) -> None:
    create(connection, text_search_config="simple")
    texts = [" ".join(f"wórd{k}" for k in range(n, n + 1_000)) for n in range(0, 8_000, 1_000)]
    retain(connection, texts)
    rows(connection, "select pgrecall.refresh_statistics('b', true)")
    backend = Backend(connection)

    def found(n: int) -> float:
        statement = "select pgrecall_internal._terms('b', 'memory', %s)"
        asked = [f"word{k}" for k in range(n)]

        def ask() -> None:
            for _ in range(10):  # one takes no longer than a tick of the clock
                rows(connection, statement, asked)

        return min(backend.measured(ask)[0] for _ in range(3))

    assert found(8_000) < MOST * found(1_000)


def test_who_is_named_among_many_spellings_is_weighed_in_n_log_n(connection: Connection) -> None:
    create(connection, text_search_config="simple")
    text = " ".join(f"wórd{k}" for k in range(1_000))
    retain(connection, [text, {"text": "Bíg sails", "entities": ["Wórd1 Bíg", "Wórd2 Bíg"]}])
    rows(connection, "select pgrecall.refresh_statistics('b', true)")
    backend = Backend(connection)
    statement = """select from pgrecall.hybrid_recall('b', %s, options => '{"arms": ["graph"]}')"""

    def named(n: int) -> float:
        asked = " ".join(["Word1 Big and Word2 Big", *(f"word{k}" for k in range(n))])
        return min(
            backend.measured(lambda: rows(connection, statement, asked))[0] for _ in range(2)
        )

    few, many = named(125), named(1_000)
    assert many < MOST * max(few, SECONDS / MOST)


CHANGES = {
    "update": "select pgrecall.update_memory('b', %s::bigint, '{\"tags\": [\"a\"]}')",
    "forget": "select pgrecall.forget('b', array[%s::bigint])",
}


@pytest.mark.parametrize("statement", CHANGES.values(), ids=CHANGES)
def test_a_memory_of_many_entities_is_changed_in_n_log_n(
    connection: Connection, statement: str
) -> None:
    create(connection)
    facts = [{"text": f"{n}", "entities": [f"Name{k}" for k in range(n)]} for n in (1_000, 8_000)]
    ids = retain(connection, facts)
    rows(connection, "select pgrecall.refresh_statistics('b')")
    backend = Backend(connection)

    few, many = (backend.measured(lambda n=n: rows(connection, statement, n))[0] for n in ids)  # type: ignore[misc]

    assert many < MOST * max(few, SECONDS / MOST)


def test_words_that_are_forgotten_are_not_each_compared_with_the_vocabulary(
    connection: Connection,
) -> None:
    backend = Backend(connection)

    def forgotten(bank: str, has_vocabulary: bool) -> float:
        create(connection, bank, text_search_config="simple")
        for word in ("a", "b"):
            texts = [
                " ".join(f"{word}{n}" for n in range(k, k + 500)) for k in range(0, 20_000, 500)
            ]
            ids = retain(connection, texts, bank=bank)
            rows(connection, "select pgrecall.refresh_statistics(%s)", bank)
            if word == "a":
                rows(connection, "select pgrecall.snapshot_vocabulary(%s)", bank)
        if not has_vocabulary:
            connection.execute("delete from pgrecall_internal.vocabulary")
        statement = "select pgrecall.forget(%s, %s)"
        return backend.measured(lambda: rows(connection, statement, bank, ids))[0]

    assert forgotten("b", True) < 4 * forgotten("c", False)


def test_short_names_of_new_names_are_looked_for_in_n_log_n(connection: Connection) -> None:
    create(connection)
    backend = Backend(connection)
    connection.execute("""
        create function pg_temp.named(size integer) returns pgrecall_internal.fact_row[]
        language sql return pgrecall_internal._read_facts(
          (select jsonb_agg(jsonb_build_object(
                    'text', n::text, 'entities', jsonb_build_array(format('Ana%s Silva%s', n, n))))
           from generate_series(1, size) as n),
          pgrecall_internal._bank('b'), '{world}')""")

    def looked_for(n: int) -> float:
        connection.execute("create temp table named as select pg_temp.named(%s) as facts", [n])
        statement = """
            select pgrecall_internal._store_short_names(
              'b', n.facts, pgrecall_internal._unknown_names('b', n.facts))
            from named as n"""
        with connection.transaction(force_rollback=True):
            seconds = backend.measured(lambda: rows(connection, statement))[0]
        connection.execute("drop table named")
        return seconds

    few, many = looked_for(2_000), looked_for(FACTOR * 2_000)

    assert many < MOST * max(few, SECONDS / MOST)


def test_near_duplicates_are_found_in_n_log_n_without_a_vector_index(
    connection: Connection,
) -> None:
    random = Random(1)
    for n in (1_000, FACTOR * 1_000):
        create(connection, f"b{n}", embedding_model="m", embedding_dimensions=64)
        facts = [
            {
                "text": "".join(random.choices("abcdef", k=20)),
                "embedding": [random.gauss(0, 1) for _ in range(64)],
            }
            for _ in range(n)
        ]
        retain(connection, facts, bank=f"b{n}", model="m", link="deferred")
    backend = Backend(connection)
    statement = "select pgrecall.consolidate(%s)"

    few, many = (
        backend.measured(lambda n=n: rows(connection, statement, f"b{n}"))[0]  # type: ignore[misc]
        for n in (1_000, FACTOR * 1_000)
    )

    assert many < MOST * max(few, SECONDS / MOST)


LISTS = {
    "text": '["in", "source_id", {}]',
    "numbers": '["in", "memory_id", {}]',
    "not in": '["not", ["in", "source_id", {}]]',
    "tags": '["overlaps", "tags", {}]',
    "metadata": '["in", "metadata.k", {}]',
}


@pytest.mark.parametrize("condition", LISTS.values(), ids=LISTS)
def test_a_long_list_in_a_filter_takes_little_memory(bank: Connection, condition: str) -> None:
    """4,000 values took 1.8 GB, and 100,000 the server down."""
    numbers = [k if "memory_id" in condition else str(k) for k in range(100_000)]
    condition = condition.format(json.dumps(numbers))

    seconds, memory = Backend(bank).measured(
        lambda: rows(
            bank,
            "select * from pgrecall.hybrid_recall('b', 'Ana', '[1, 0]', filter => %s)",
            condition,
        )
    )

    assert memory < 256 * 2**20
    assert seconds < 60


# What the planner believes

READ = """
select sum(pg_stat_get_xact_blocks_fetched(c.oid) + pg_stat_get_xact_tuples_returned(c.oid))::bigint
from   pg_class c
where  c.relnamespace in ('pgrecall'::regnamespace, 'pgrecall_internal'::regnamespace)
  and  c.relkind in ('r', 'i')
"""
FEW = 100


def fact(n: int, text: str = "note") -> dict[str, Any]:
    return {
        "text": f"{text} {n}",
        "fact_key": f"k{n}",
        "source_id": f"s{n % 2}",
        "entities": [f"Name{n}", f"Group{n % 9}"],
        "relations": [{"from": f"Name{n}", "kind": "knows", "to": f"Group{len(text)}"}],
        "embedding": [n % 7, 1],
    }


def batch(n: int) -> dict[str, str]:
    """Facts, messages and names of a table that are named by n."""
    return {
        "bank": f"b{n}",
        "table": f"public.t{n}",
        "facts": json.dumps([fact(k) for k in range(n)]),
        "proven": json.dumps([{**fact(k), "proof_count": 2} for k in range(n)]),
        "later": json.dumps([fact(k, "later") for k in range(n)]),
        "messages": json.dumps([{"text": f"hello {k}", "session": f"s{k}"} for k in range(n)]),
    }


# In order: each finds what those before it left.
BATCHES = {
    "new facts": "select count(*) from pgrecall.retain(%(bank)s, %(facts)s, 'm')",
    "known facts": "select count(*) from pgrecall.retain(%(bank)s, %(facts)s, 'm')",
    "proven facts": "select count(*) from pgrecall.retain(%(bank)s, %(proven)s, 'm')",
    "later facts": (
        "select count(*) from pgrecall.retain(%(bank)s, %(later)s, 'm', 'deferred', 'both')"
    ),
    "links": "select pgrecall.link_pending(%(bank)s, 10000)",
    "stored embeddings": "select count(*) from pgrecall.stored_embeddings(%(bank)s, %(facts)s)",
    "messages": "select count(*) from pgrecall.retain_messages(%(bank)s, %(messages)s)",
    "known messages": "select count(*) from pgrecall.retain_messages(%(bank)s, %(messages)s)",
    "a table": "select count(*) from pgrecall.sync_table(%(bank)s, batch_size => 10000)",
    "an unchanged table": (
        "insert into pgrecall.attached_change (bank_id, relation, key)"
        " select bank_id, relation, key from pgrecall.attached_row where bank_id = %(bank)s;"
        "select count(*) from pgrecall.sync_table(%(bank)s, batch_size => 10000)"
    ),
    "quarantine": "select count(*) from pgrecall.quarantine(%(bank)s, 's1')",
    "release": "select count(*) from pgrecall.release(%(bank)s, 's1')",
    "a full count": "select pgrecall.refresh_statistics(%(bank)s, true)",
    "a clone": "select pgrecall.clone_bank(%(bank)s, %(bank)s || 'c')",
    "a merged entity": (
        "select pgrecall.merge_entities(%(bank)s || 'c', min(entity_id), array_agg(entity_id))"
        " from pgrecall.entity where bank_id = %(bank)s || 'c'"
    ),
    "a dropped clone": "select pgrecall.drop_bank(%(bank)s || 'c')",
    "forgotten facts": (
        "select pgrecall.forget(%(bank)s, array("
        "select memory_id from pgrecall.memory where bank_id = %(bank)s))"
    ),
}


@pytest.fixture
def emptied(database: str) -> Iterator[Connection]:
    """A database whose tables were analysed when a load was lost: the planner expects no rows."""
    with psycopg.connect(database, autocommit=True, cursor_factory=psycopg.ClientCursor) as c:
        for _ in range(2):
            load(c, 5 * FEW)
            rows(c, "select pgrecall.drop_bank(%s)", f"b{5 * FEW}")
            c.execute("analyze")
        yield c


def load(connection: Connection, n: int) -> dict[str, int]:
    """What each of BATCHES of n rows reads."""
    given = batch(n)
    read = {}
    create(connection, given["bank"], embedding_model="m", embedding_dimensions=2)
    connection.execute(
        f"create table if not exists {given['table']} (id int primary key, body text);"
        f"insert into {given['table']} select k, 'Row ' || k from generate_series(1, {n}) as k"
        " on conflict do nothing;"
        "select pgrecall.attach_table(%(bank)s, %(table)s, 'id', 'body')",
        given,
    )
    for name, statement in BATCHES.items():
        with connection.transaction():
            before = value(connection, READ)
            connection.execute(statement, given)
            read[name] = value(connection, READ) - before
    return read


def test_a_batch_reads_no_more_than_n_log_n_of_tables_taken_for_empty(emptied: Connection) -> None:
    few, many = load(emptied, FEW), load(emptied, FACTOR * FEW)

    assert [(k, few[k], many[k]) for k in BATCHES if many[k] > 1.5 * FACTOR * few[k]] == []


def test_equal_facts_that_have_ended_are_compared_in_n_log_n_reads(connection: Connection) -> None:
    create(connection)
    read = []
    for n in (FEW, FACTOR * FEW):
        source = {"source_id": f"s{n}"}
        given = retain(connection, [{"text": f"{n} {k}", **source} for k in range(n)])
        # As if each had been ended before the next was told.
        connection.execute(
            "update pgrecall.memory set valid_to = now(), content_hash = sha256(%s::bytea)"
            " where memory_id = any (%s)",
            [f"{n}", given],
        )
        rows(connection, "select pgrecall.quarantine('b', %s)", f"s{n}")
        before = value(connection, READ)
        rows(connection, "select pgrecall.release('b', %s)", f"s{n}")
        read.append(value(connection, READ) - before)

    few, many = read
    assert many < 1.5 * FACTOR * few


NAMED = {
    "retained": "select count(*) from pgrecall.retain(%(bank)s, %(facts)s)",
    "compared": "select count(*) from pgrecall.duplicate_entities(%(bank)s)",
}


def test_names_are_joined_in_n_log_n_where_few_are_expected(emptied: Connection) -> None:
    backend = Backend(emptied)
    seconds: dict[int, dict[str, float]] = {}
    for n in (FEW, FACTOR * FEW):
        names = [{"text": f"{k}", "entities": [f"N{k}x{i}" for i in range(10)]} for k in range(n)]
        given = {"bank": f"n{n}", "facts": json.dumps(names)}
        create(emptied, given["bank"])
        seconds[n] = {
            name: backend.measured(lambda s=statement, g=given: emptied.execute(s, g))[0]  # type: ignore[misc]
            for name, statement in NAMED.items()
        }

    few, many = seconds.values()
    assert {k for k in NAMED if many[k] > MOST * max(few[k], SECONDS / MOST)} == set()
