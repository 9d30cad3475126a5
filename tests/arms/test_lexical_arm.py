"""The lexical arm against an independent BM25, and identifiers found as typed and in parts."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from sqlcalls import Connection, call, counted_scans, create, ids, retain, shared_ranks

PROPERTY = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
WORDS = [
    "deploy",
    "deployed",
    "the",
    "Ana",
    "red",
    "blue",
    "HTTP 502",
    "E-47821",
    "max_client_conn",
]
TEXT = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)


def lexemes(connection: Connection, text: str) -> Counter[str]:
    return Counter(
        dict(connection.execute("select * from pgrecall.lexemes('english', %s)", [text]))
    )


def bm25(
    query: Counter[str], documents: dict[int, Counter[str]], k1: float, b: float
) -> dict[int, float]:
    """Score as Robertson and Zaragoza 2009 do, with the IDF of Lucene."""
    count = len(documents)
    average = sum(d.total() for d in documents.values()) / count or 1
    scores = dict.fromkeys(documents, 0.0)
    for lexeme in query:
        n = sum(lexeme in d for d in documents.values())
        idf = math.log(1 + (count - n + 0.5) / (n + 0.5))
        for memory_id, d in documents.items():
            if tf := d[lexeme]:
                scores[memory_id] += idf * tf / (tf + k1 * (1 - b + b * d.total() / average))
    return {memory_id: score for memory_id, score in scores.items() if score > 0}


@pytest.mark.slow
@PROPERTY
@given(
    texts=st.lists(TEXT, min_size=1, max_size=12, unique=True),
    later=st.lists(TEXT, max_size=5),
    query=TEXT,
    forgotten=st.sets(st.integers(0, 11), max_size=4),
    superseded=st.sets(st.integers(0, 11), max_size=4),
    k1=st.sampled_from([0.0, 0.9, 1.2, 3.0]),
    b=st.sampled_from([0.0, 0.5, 0.75, 1.0]),
)
def test_ranks_and_scores_are_those_of_bm25(
    connection: Connection,
    texts: list[str],
    later: list[str],
    query: str,
    forgotten: set[int],
    superseded: set[int],
    k1: float,
    b: float,
) -> None:
    with connection.transaction(force_rollback=True):
        create(
            connection,
            settings={"candidate_limit": 10**8, "bm25_k1": k1, "bm25_b": b},
        )
        types = ["world", "opinion", "event"]
        facts = [{"text": text, "fact_type": types[n % 3]} for n, text in enumerate(texts)]
        texts_by_id = dict(zip(retain(connection, facts), texts, strict=True))
        texts_by_id |= zip(retain(connection, [{"text": t} for t in later]), later, strict=True)
        gone = {memory for n, memory in enumerate(texts_by_id) if n in forgotten}
        ended = {memory for n, memory in enumerate(texts_by_id) if n in superseded} - gone
        call(connection, "forget", bank="b", memory_ids=list(gone))
        for memory in ended:
            call(connection, "supersede", bank="b", memory_id=memory)
        call(connection, "refresh_statistics", bank="b", is_full=True)

        found = call(connection, "lexical_arm", bank="b", query=query)

        kept = {m: lexemes(connection, t) for m, t in texts_by_id.items() if m not in gone}
        scores = bm25(lexemes(connection, query), kept, k1, b) if kept else {}
        # What was superseded is counted, for earlier times know it, but not found.
        expected = {m: score for m, score in scores.items() if m not in ended}
        assert {row.memory_id: row.score for row in found} == pytest.approx(expected, rel=1e-5)
        assert found == sorted(found, key=lambda row: (-row.score, -row.memory_id))
        assert [row.rank for row in found] == shared_ranks(found)


def test_statistics_kept_up_by_retain_score_as_a_full_count_does(connection: Connection) -> None:
    create(connection)
    for n in range(10):
        retain(connection, [f"ana deployed release {n} {m}" for m in range(n + 1)])
    call(connection, "refresh_statistics", bank="b")
    kept_up = call(connection, "lexical_arm", bank="b", query="ana release 3")

    call(connection, "refresh_statistics", bank="b", is_full=True)

    counted = call(connection, "lexical_arm", bank="b", query="ana release 3")
    assert [row.score for row in kept_up] == pytest.approx([row.score for row in counted], rel=0.05)


def test_a_word_not_counted_yet_weighs_as_a_rare_one(connection: Connection) -> None:
    create(connection)
    retain(connection, [f"ana {n}" for n in range(50)])
    (new,) = retain(connection, ["ana zebra"])

    found = call(connection, "lexical_arm", bank="b", query="ana zebra")

    assert found[0].memory_id == new
    assert found[0].score > 2 * found[1].score


IDENTIFIERS = {
    "Fixed in JIRA-9921 on Monday": ["JIRA-9921", "jira-9921", "(JIRA-9921)?", "9921", "Jira"],
    "The job died with E-47821.": ["E-47821", "was it E-47821!", "47821"],
    "Raise max_client_conn to 500": ["max_client_conn", "MAX_CLIENT_CONN", "client", "conn"],
    "Ship v2.3.1 today": ["v2.3.1", "V2.3.1.", "v2"],
    "nginx answered HTTP 502 all night": ["HTTP 502", "http 502", "502"],
    "Write to ana.silva@example.org": ["ana.silva@example.org", "silva", "example.org"],
    "See /etc/pgbouncer/pgbouncer.ini": ["/etc/pgbouncer/pgbouncer.ini", "etc", "/etc"],
    "Anne-Marie Smith-Jones joined": ["Anne-Marie", "Smith-Jones", "marie", "smith jones"],
    "Released on 2026-03-14": ["2026-03-14", "14"],
    "Released on 04/15/2025": ["04/15/2025", "2025"],
    "Call std::vector#push_back": ["std::vector#push_back", "std::vector", "push_back"],
    "Zürich-Flughafen hat 日本語 und naïve": ["Zürich-Flughafen", "zürich", "日本語", "NAÏVE"],
}
NEIGHBOURS = [
    "Open in LINEAR 9922 since May",
    "Job E-47822 is fine",
    "Raise min_server_con to 501",
    "Ship w3.4.2 soon",
    "nginx answered HTTPS 503",
    "Write to ben.costa@sample.com",
    "See /var/lib/pgsql/pgsql.conf",
    "Anna Smythe left",
    "Released on 2027-04-16",
]


@pytest.mark.parametrize("config", ["english", "simple"])
@pytest.mark.parametrize(
    ("text", "query"), [(text, query) for text, queries in IDENTIFIERS.items() for query in queries]
)
def test_identifiers_are_found_as_typed_and_in_parts(
    connection: Connection, config: str, text: str, query: str
) -> None:
    create(connection, text_search_config=config)
    memory_ids = retain(connection, [*IDENTIFIERS, *NEIGHBOURS])

    found = call(connection, "lexical_arm", bank="b", query=query)

    assert found[0].memory_id == memory_ids[list(IDENTIFIERS).index(text)]


@pytest.mark.parametrize(
    ("query", "text", "parts"),
    [
        ("JIRA-9921", "JIRA-9921 is open", "JIRA-9922 is like 9921, JIRA says 9921"),
        ("C++", "Bo writes much C++.", "C, C, and more C"),
        ("c#", "Bo writes (C#) and more", "C++, C, and C#m"),
    ],
)
def test_an_identifier_as_typed_beats_its_parts(
    connection: Connection, query: str, text: str, parts: str
) -> None:
    create(connection)
    exact, _ = retain(connection, [text, parts])

    assert call(connection, "lexical_arm", bank="b", query=query)[0].memory_id == exact


@pytest.mark.parametrize("field", ["context", "fact_key"])
def test_a_fact_is_found_by_its_context_and_key(connection: Connection, field: str) -> None:
    create(connection)
    memory, _ = retain(connection, [{"text": "plain", field: "kraken.release"}, "other"])

    for query in ["kraken.release", "kraken"]:
        assert ids(call(connection, "lexical_arm", bank="b", query=query)) == [memory]


@pytest.mark.slow
@settings(PROPERTY, max_examples=150)
@given(
    query=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=80)
)
def test_no_query_raises(connection: Connection, query: str) -> None:
    with connection.transaction(force_rollback=True):
        create(connection)
        retain(connection, ["ana a 1"])

        found = call(connection, "lexical_arm", bank="b", query=query)

        assert all(row.score > 0 for row in found)


@pytest.mark.parametrize(
    "query",
    ["a & b | !c <-> 'd:*", "((((", "'", "\\", ":*", "-" * 1000, "a-" * 40_000, "x" * 100_000,
     "word " * 19_000, "".join(map(chr, range(0x4E00, 0x9FA6))) * 4, "é" * 5000, " \t\n", ""],
    ids=lambda query: f"{query[:8]!r} of {len(query)}",
)  # fmt: skip
def test_nor_does_one_that_is_odd_or_long(connection: Connection, query: str) -> None:
    create(connection)
    retain(connection, ["plain"])

    assert call(connection, "lexical_arm", bank="b", query=query) == []


@PROPERTY
@given(text=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))
def test_what_has_a_lexeme_is_found_by_its_own_text(connection: Connection, text: str) -> None:
    assume(text.strip())
    with connection.transaction(force_rollback=True):
        assume(lexemes(connection, text))
        create(connection)
        (memory,) = retain(connection, [text])

        assert ids(call(connection, "lexical_arm", bank="b", query=text)) == [memory]


@pytest.mark.slow
def test_the_gin_index_finds_rare_words(connection: Connection) -> None:
    create(connection)
    memory_ids = retain(connection, [f"fact number {n}" for n in range(3000)])
    connection.execute("analyze pgrecall.memory")

    with counted_scans(connection) as scans:
        found = call(connection, "lexical_arm", bank="b", query="77", fact_types=["world"])

    assert ids(found) == [memory_ids[77]]
    assert scans["memory_lexical_keys_idx"] == 1
    assert scans["memory_bank_id_fact_type_occurred_idx"] == 0


def test_never_returns_what_is_of_another_bank_or_type(connection: Connection) -> None:
    kept = {}
    for bank in ["b", "c"]:
        create(connection, bank)
        for fact_type in ["world", "opinion", "event"]:
            fact = {"text": "ana sails", "fact_type": fact_type}
            kept[bank, fact_type] = retain(connection, [fact], bank=bank)

    for (bank, fact_type), memory_ids in kept.items():
        found = call(connection, "lexical_arm", bank=bank, query="sails", fact_types=[fact_type])
        assert ids(found) == memory_ids
    assert set(ids(call(connection, "lexical_arm", bank="c", query="sails"))) == {
        memory for (bank, _), found in kept.items() for memory in found if bank == "c"
    }


@pytest.mark.parametrize(
    ("query", "limit", "expected"),
    [("often seldom", 100, 3), ("often seldom", 459, 152), ("often", 100, 150)],
)
def test_a_candidate_limit_keeps_the_facts_with_the_rarest_words(
    connection: Connection, query: str, limit: int, expected: int
) -> None:
    create(connection, settings={"candidate_limit": limit})
    retain(connection, [f"often {n}" for n in range(149)])
    both, *_ = retain(connection, ["seldom often", "seldom east", "seldom west"])
    call(connection, "refresh_statistics", bank="b", is_full=True)

    found = call(connection, "lexical_arm", bank="b", query=query, depth=1000)

    assert len(found) == expected
    if "seldom" in query:
        # A word that brings no candidates still counts in the score of those there are.
        assert found[0].memory_id == both
        assert found[0].score > found[1].score


def test_facts_with_several_common_words_go_before_those_with_one(connection: Connection) -> None:
    create(connection, settings={"candidate_limit": 100})
    for words, count in [("red", 150), ("blue", 150), ("plain", 490)]:
        retain(connection, [f"{words} {n}" for n in range(count)])
    both = retain(connection, [f"red blue {n}" for n in range(10)])
    call(connection, "refresh_statistics", bank="b", is_full=True)

    found = call(connection, "lexical_arm", bank="b", query="red blue", depth=1000)

    assert sorted(ids(found)) == both


def test_ties_at_the_depth_are_settled_by_id(connection: Connection) -> None:
    create(connection)
    memory_ids = retain(connection, [{"text": "ana", "source_id": str(n)} for n in range(30)])
    connection.execute("update pgrecall.memory set confidence = 0.5 where memory_id % 3 = 0")

    found = call(connection, "lexical_arm", bank="b", query="ana", depth=7)

    assert ids(found) == memory_ids[::-1][:7]


def test_filters_and_as_of_hold(connection: Connection) -> None:
    create(connection)
    old, new, _ = retain(
        connection,
        [
            {"text": "ana sails", "tags": ["x"], "mentioned_at": "2026-01-01"},
            {"text": "ana rows", "tags": ["x"], "mentioned_at": "2026-02-01"},
            {"text": "ana walks", "tags": ["y"], "mentioned_at": "2026-01-01"},
        ],
    )
    call(connection, "supersede", bank="b", memory_id=old, superseded_by=new, at="2026-02-01")
    arguments: dict[str, Any] = {
        "bank": "b", "query": "ana", "filter": ["contains", "tags", ["x"]]
    }  # fmt: skip

    assert ids(call(connection, "lexical_arm", **arguments)) == [new]
    assert ids(call(connection, "lexical_arm", **arguments, as_of="2026-01-15")) == [old]


def test_what_nobody_has_counted_is_found(connection: Connection) -> None:
    create(connection)
    memory_ids = retain(connection, ["a boat"])
    connection.execute("delete from pgrecall_internal.statistics")
    connection.execute("delete from pgrecall_internal.lexeme")

    assert ids(call(connection, "lexical_arm", bank="b", query="boat")) == memory_ids
