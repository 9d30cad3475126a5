"""The graph: names in a query, what neighbours and paths say, and the bounds of a hub."""

from __future__ import annotations

import json
from importlib import resources
from itertools import pairwise
from math import hypot, log, tanh
from random import Random
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings, strategies

from pgrecall import EmbedderUnavailable, Recall
from pgrecall.embedders import DEFAULT_EMBEDDER
from servers import kept_fixture
from sqlcalls import (
    Connection,
    build_planned,
    call,
    counted_scans,
    create,
    ids,
    retain,
    similar,
    value,
)


def rarity(mentions: int, documents: int) -> float:
    """Weigh an entity by its IDF over the highest possible one."""
    return log(1 + (documents - mentions + 0.5) / (mentions + 0.5)) / log(2 + 2 * documents)


def about(text: str, *entities: Any, **fields: Any) -> dict[str, Any]:
    return {"text": text, "entities": list(entities), **fields}


def related(text: str, start: str, end: str, **fields: Any) -> dict[str, Any]:
    return {"text": text, "relations": [{"from": start, "kind": "knows", "to": end, **fields}]}


def stated(connection: Connection, facts: list[Any], **arguments: Any) -> list[int]:
    """Retain facts and count them, so that rarity is exact."""
    memory_ids = retain(connection, facts, **arguments)
    call(connection, "refresh_statistics", bank="b", is_full=True)
    return memory_ids


def scores(rows: list[Any]) -> dict[int, float]:
    return {row.memory_id: row.score for row in rows}


def close(expected: Any) -> Any:
    return pytest.approx(expected, rel=1e-5)


# link_expansion


def rows_read(connection: Connection) -> int:
    """Rows and index entries of the graph that this transaction has read so far."""
    ((read,),) = connection.execute(
        "select sum(pg_stat_get_xact_tuples_returned(c.oid))::bigint from pg_class c"
        " where c.relkind in ('r', 'i')"
        " and c.relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')"
        " and c.relname ~ '^(entity|mention|relation|link)'"
    ).fetchall()
    return int(read)


@pytest.mark.slow
@pytest.mark.parametrize("analyzed", ["", "small", "small large"])
@pytest.mark.parametrize("action", ["recall", "retain"])
def test_a_hub_costs_no_more_in_a_larger_bank(database: str, action: str, analyzed: str) -> None:
    # Of its own: what analyze counts of a table outlives the transaction.
    with psycopg.connect(database) as connection:
        read = rows_read_by(connection, action, analyzed)

    # Mentions are counted up to 1,000, new facts up to a tenth of those known.
    assert 0 < read["large"] <= read["small"] + (100 if action == "recall" else 330)


def rows_read_by(connection: Connection, action: str, analyzed: str) -> dict[str, int]:
    read = {}
    for size, facts in [("small", 1100), ("large", 3300)]:
        create(connection, size)
        # First one alone: the average length is known then, and no fact is written again for it.
        retain(connection, ["fact first"], bank=size)
        known = [about(f"fact {n}", "Hub") for n in range(facts)]
        retain(connection, [*known, about("zebra", "Hub")], bank=size, link="deferred")
        # What the planner knows of a bank is nothing, what it was, or what it is.
        if size in analyzed:
            connection.execute("analyze")
        before = rows_read(connection)
        if action == "recall":
            assert call(connection, "hybrid_recall", bank=size, query="the zebra of Hub")
        else:
            retain(connection, [about("another", "Hub", occurred="2026-03-05")], bank=size)
        read[size] = rows_read(connection) - before
    return read


@pytest.mark.slow
def test_names_are_looked_up_one_by_one_whatever_the_planner_knows(database: str) -> None:
    read = []
    with psycopg.connect(database) as connection:
        create(connection, "known")
        facts = [about(f"fact {n}", "Hub") for n in range(1000)]
        retain(connection, facts, bank="known", link="deferred")
        connection.execute("analyze")
        create(connection)
        for size in (300, 1200):
            names = [f"name {size} {n}" for n in range(size)]
            relations = [{"from": a, "kind": "knows", "to": b} for a, b in pairwise(names)]
            before = rows_read(connection)
            retain(connection, [about(f"fact {size}", *names, relations=relations)])
            read.append(rows_read(connection) - before)

    assert 0 < read[1] < 6 * read[0]


@pytest.mark.slow
def test_links_are_followed_by_their_indexes_where_most_banks_are_small(database: str) -> None:
    with psycopg.connect(database) as connection:
        facts = [{"text": f"boat {n}", "occurred": f"2026-03-01T{n:02}:00Z"} for n in range(20)]
        for n in range(12):
            create(connection, f"b{n}")
            retain(connection, facts, bank=f"b{n}")
        connection.execute("analyze")

        with counted_scans(connection) as scans:
            call(connection, "hybrid_recall", bank="b1", query="boat")

        # An index that begins with the other end is read through for each fact.
        assert scans["link_bank_id_to_id_idx"] == scans["link_pkey"] - 1 >= 20


def test_hits_are_not_searched_one_by_one_for_who_is_seldom_mentioned(
    connection: Connection,
) -> None:
    scans = (
        "select sum(pg_stat_get_xact_numscans(indexrelid)) from pg_index"
        " where indrelid = 'pgrecall.mention'::regclass"
    )
    create(connection)
    stated(connection, [about("boat of Ana", "Ana"), *(f"boat {n}" for n in range(40))])
    before = value(connection, scans)

    found = call(
        connection, "hybrid_recall", bank="b", query="boat Ana", top_k=50,
        options={"budget": "low"},
    )  # fmt: skip

    assert len(found) == 41
    # Counted, read for what is about her, then for hits; a search for each would be as many more.
    assert value(connection, scans) - before == 3


def counts(connection: Connection) -> dict[str, int]:
    return dict(
        connection.execute(
            "select e.name, c.mention_count from pgrecall_internal.entity_count c"
            " join pgrecall.entity e using (bank_id, entity_id)"
        ).fetchall()
    )


def test_statistics_count_the_facts_about_an_entity(connection: Connection) -> None:
    create(connection)
    facts = [about(f"fact {n}", "Hub", *(["Ana"] if n < 3 else [])) for n in range(20)]
    gone, *_ = retain(connection, facts)
    assert counts(connection) == {"Hub": 20, "Ana": 3}

    retain(connection, [about("another", "Hub")])
    assert counts(connection) == {"Hub": 20, "Ana": 3}, "no tenth of the facts is new"
    call(connection, "refresh_statistics", bank="b")
    assert counts(connection) == {"Hub": 21, "Ana": 3}

    call(connection, "forget", bank="b", memory_ids=[gone])
    call(connection, "refresh_statistics", bank="b", is_full=True)
    assert counts(connection) == {"Hub": 20, "Ana": 2}


# query_entities


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("what did Ana Silva say", ["Ana Silva"]),
        ("ana-SILVA's boat", ["Ana Silva"]),
        ("what did Ana say", ["Ana", "Ana Silva"]),
        ("Ana told Ana Silva", ["Ana", "Ana Silva"]),
        ("did Ana, Silva and co. agree", ["Ana Silva"]),
        ("the anaconda", []),
        ("who runs R&D in New York City", ["New York City", "R&D"]),
        ("new york", ["New York"]),
        ("New York City vs New York", ["New York", "New York City"]),
        # The German and Dutch genitive, of two letters at least, before what is hers.
        ("wo wohnt Anas Chefin", ["Ana", "Ana Silva"]),
        ("als Bo Anas chefin sah", []),
        ("wo wohnt anas Chefin", []),
        ("Is Ana here", ["Ana", "Ana Silva"]),
        ("", []),
        ("!?", []),
    ],
)
def test_the_longest_names_in_a_query_are_its_entities(
    connection: Connection, query: str, names: list[str]
) -> None:
    create(connection)
    # "Ana" is a boat, and a name that Ana Silva goes by as well.
    boat = {"name": "Ana", "kind": "boat"}
    retain(connection, [about("a", boat, "R&D", "New York", "New York City", "I")])
    retain(connection, [about("b", {"name": "Ana Silva", "kind": "person", "aliases": ["Ana"]})])

    found = call(connection, "query_entities", bank="b", query=query)

    assert sorted(row.name for row in found) == names


def test_ten_entities_of_one_name_are_considered(connection: Connection) -> None:
    create(connection)
    connection.execute(
        "with e as (insert into pgrecall.entity (bank_id, name) select 'b', 'Ana ' || n"
        " from generate_series(1, 12) as n returning entity_id) insert into pgrecall.entity_alias"
        " (bank_id, alias, entity_id) select 'b', 'ana', entity_id from e"
    )

    found = call(connection, "query_entities", bank="b", query="Ana")

    assert [row.confidence for row in found] == pytest.approx([0.1] * 10)


def test_a_name_that_certainly_is_not_theirs_names_nobody(connection: Connection) -> None:
    create(connection)
    retain(connection, [about("a", {"name": "Ana", "kind": "boat"})])
    retain(connection, [about("b", {"name": "Ana Silva", "kind": "person", "aliases": ["Ana"]})])
    connection.execute("update pgrecall.entity_alias set confidence = 0 where alias = 'ana'")

    found = call(connection, "query_entities", bank="b", query="Ana")

    assert [row.confidence for row in found] == [0, 0]


def test_entities_of_another_bank_are_not_named(connection: Connection) -> None:
    create(connection)
    create(connection, "c")
    retain(connection, [about("a", "Ana")], bank="c")

    assert call(connection, "query_entities", bank="b", query="Ana") == []
    assert call(connection, "entity_walk", bank="b", query="Ana") == []


# entity_walk


@pytest.mark.parametrize(("hops", "score"), [(0, 0.7), (1, 0.3 * 0.7)])
def test_a_fact_of_the_last_step_keeps_more_than_those_on_the_way(
    connection: Connection, hops: int, score: float
) -> None:
    create(connection)
    stated(connection, [about("It rained.", "Ivor")])

    (row,) = call(connection, "entity_walk", bank="b", query="Ivor", hops=hops)

    assert row.score == close(score**0.5)


@kept_fixture
def chain(connection: Connection) -> dict[str, int]:
    """Ana - Ben - Cid - Dot, each with a fact of their own; twenty others for rarity's sake."""
    create(connection)
    facts = [about(name, name) for name in ("Ana", "Ben", "Cid", "Dot")]
    edges = [
        related("ana-ben", "Ana", "Ben"),
        related("ben-cid", "Ben", "Cid"),
        related("cid-dot", "Cid", "Dot"),
    ]
    memory_ids = stated(connection, [*facts, *edges, *(f"other {n}" for n in range(20))])
    names = ["Ana", "Ben", "Cid", "Dot", "ana-ben", "ben-cid", "cid-dot"]
    return dict(zip(names, memory_ids, strict=False))


# graph_arm


@pytest.mark.parametrize("query", ["nothing known", "", None])
def test_the_graph_arm_finds_nothing_without_a_start(
    connection: Connection, chain: dict[str, int], query: str | None
) -> None:
    assert call(connection, "graph_arm", bank="b", query=query) == []


def test_who_is_named_has_all_mass_where_no_word_is_found(connection: Connection) -> None:
    create(connection)
    stated(connection, [about("It rained.", "Ivor", "Ana"), about("She sang.", "Ana")])

    found = call(connection, "graph_arm", bank="b", query="Ivor?")

    assert found
    assert found == call(connection, "entity_walk", bank="b", query="Ivor?", hops=1)


def test_a_name_counts_less_where_many_facts_hold_its_words_and_few_mention_it(
    connection: Connection,
) -> None:
    def score() -> float:
        rows = call(connection, "arm_hits", bank="b", query="Which album is by Ivor?")
        return float(scores([row for row in rows if row.arm == "graph"])[boston])

    create(connection)
    _, boston = stated(connection, [about("Ivor sang.", "Ivor"), about("It rained.", "Album")])
    alone = score()
    stated(connection, [about(f"Album {n} came out.") for n in range(20)])
    assert score() < 0.5 * alone


def paths(connection: Connection, start: str, end: str, **arguments: Any) -> list[Any]:
    rows = connection.execute("select name, entity_id from pgrecall.entity").fetchall()
    known = dict(rows)
    return call(
        connection, "path", bank="b", entity_a=known[start], entity_b=known[end], **arguments
    )


def distance(facts: list[list[str]], start: str, end: str) -> int | None:
    """Count the steps between two who are named together, over who is named with whom."""
    reached, steps = {start}, 0
    while end not in reached:
        further = reached.union(*(names for names in facts if reached & set(names)))
        if further == reached:
            return None
        reached, steps = further, steps + 1
    return steps


def test_a_name_weighs_as_much_without_its_accents(connection: Connection) -> None:
    create(connection)
    stated(
        connection,
        [about("José is here", "José"), about("Atlas is late", "Atlas")]
        + [f"José said {n}" for n in range(8)]
        + [f"other {n}" for n in range(9)],
    )
    call(connection, "refresh_statistics", bank="b", is_full=True)

    right, bare = (
        {row.text: row.score for row in call(
            connection, "hybrid_recall", bank="b", query=f"{name} and Atlas",
            options={"arms": ["graph"]})}
        for name in ("José", "Jose")
    )  # fmt: skip

    assert bare == pytest.approx(right)


# neighbours


def test_neighbours_say_through_what_and_why(connection: Connection) -> None:
    create(connection)
    links = [{"kind": "causes", "to_index": 1, "weight": 0.6}]
    links += [{"kind": "prevents", "to_index": 2, "weight": 0.3}]
    first, second, third, fourth, *_ = stated(
        connection,
        [
            about("first", "Ana", "Atlas", embedding=[1, 0], links=links, occurred="2026-01-01"),
            about("second", "Ana", "Atlas", embedding=[1, 0.1]),
            about("third", "Ana", embedding=[0, 1], occurred="2026-01-01T06:00Z"),
            about("fourth", links=[{"kind": "caused_by", "to_index": 0, "weight": 0.2}]),
            *[f"other {n}" for n in range(9)],
        ],
    )
    ana, atlas = rarity(3, 13), rarity(2, 13)

    found = call(connection, "neighbours", bank="b", memory_id=first)
    back = call(connection, "neighbours", bank="b", memory_id=second)

    similarity = 1 / 1.01**0.5
    assert [row.weight for row in found] == sorted((row.weight for row in found), reverse=True)
    assert {(row.neighbour_id, row.text, row.via, row.why): row.weight for row in found} == {
        (second, "second", "semantic", "means nearly the same: similarity 1.00"): pytest.approx(
            similarity, abs=1e-3
        ),
        (third, "third", "temporal", "happened at about the same time"): close(0.75),
        (second, "second", "causes", "is caused by this"): close(0.6),
        (third, "third", "prevents", "is prevented by this"): close(0.3),
        (fourth, "fourth", "caused_by", "is caused by this"): close(0.2),
        (second, "second", "entity", "names Atlas, Ana too"): close(tanh(0.5 * (ana + atlas))),
        (third, "third", "entity", "names Ana too"): close(tanh(0.5 * ana)),
    }
    assert (first, "causes this") in {(row.neighbour_id, row.why) for row in back}
    assert call(connection, "neighbours", bank="b", memory_id=first, top_k=2) == found[:2]


@pytest.mark.parametrize("how", ["quarantine", "source_trust"])
def test_what_no_answer_may_say_is_no_neighbour(connection: Connection, how: str) -> None:
    create(connection)
    lie = {
        "source_id": "web:1",
        "embedding": [1, 0.1],
        "links": [{"kind": "causes", "to_index": 0}],
    }
    first, friend, *_ = stated(
        connection,
        [
            about("first", "Ana", embedding=[1, 0]),
            about("friend", "Ana", embedding=[1, 0.3]),
            *[about(f"lie {n}", "Ana", **lie) for n in range(20)],
        ],
    )
    if how == "quarantine":
        call(connection, "quarantine", bank="b", source="web:*")
    else:
        call(connection, "configure_bank", bank="b", settings={"source_trust": {"web:*": 0}})

    found = call(connection, "neighbours", bank="b", memory_id=first)

    assert {(row.neighbour_id, row.via) for row in found} == {
        (friend, "semantic"),
        (friend, "entity"),
    }


@pytest.mark.parametrize("is_indexed", [False, True])
def test_the_five_nearest_in_meaning_are_neighbours(
    connection: Connection, is_indexed: bool
) -> None:
    random = Random(1)
    create(connection)
    types = ["event"] * 15 + ["world"] * 20
    call(
        connection,
        "configure_bank",
        bank="b",
        settings={"hnsw_threshold": 10 if is_indexed else 99},
    )
    facts: list[dict[str, Any]] = [
        {"text": str(n), "embedding": [random.gauss(1, 0.6) for _ in range(8)], "fact_type": kind}
        for n, kind in enumerate(types)
    ]
    memory_ids = retain(connection, facts)
    far, alone = retain(connection, [{"text": "far", "embedding": [-1] * 8}, "no embedding"])
    call(connection, "refresh_statistics", bank="b", is_full=True)
    assert len(build_planned(connection)) == is_indexed

    with counted_scans(connection) as scans:
        found = [similar(connection, memory_id) for memory_id in memory_ids]

    def cosine(a: list[float], b: list[float]) -> float:
        return sum(x * y for x, y in zip(a, b, strict=True)) / hypot(*a) / hypot(*b)

    assert sum(n for index, n in scans.items() if "hnsw" in index) == len(facts) * is_indexed
    for fact, memory_id, near in zip(facts, memory_ids, found, strict=True):
        nearest = sorted(
            (
                (cosine(fact["embedding"], other["embedding"]), other_id)
                for other, other_id in zip(facts, memory_ids, strict=True)
                if other_id != memory_id
            ),
            reverse=True,
        )
        assert sorted(near) == sorted(other for share, other in nearest[:5] if share >= 0.7)
    assert similar(connection, far) == similar(connection, alone) == []


# path


def test_a_path_says_each_step_in_words(connection: Connection, chain: dict[str, int]) -> None:
    (fact,) = retain(connection, [about("Dot sails with Eve", "Dot", "Eve")])

    there = paths(connection, "Ana", "Eve")
    back = paths(connection, "Eve", "Ana")

    assert [row[:6] for row in there] == [
        (1, "Ana", "knows", "Ben", chain["ana-ben"], "Ana knows Ben: ana-ben"),
        (2, "Ben", "knows", "Cid", chain["ben-cid"], "Ben knows Cid: ben-cid"),
        (3, "Cid", "knows", "Dot", chain["cid-dot"], "Cid knows Dot: cid-dot"),
        (4, "Dot", "mentioned with", "Eve", fact, "Dot and Eve: Dot sails with Eve"),
    ]
    assert [row.why for row in back] == [
        "Eve and Dot: Dot sails with Eve",
        *(row.why for row in reversed(there[:3])),
    ]
    assert [(row.from_id, row.to_id) for row in back] == [
        (row.to_id, row.from_id) for row in reversed(there)
    ]
    assert paths(connection, "Ana", "Eve", longest=3) == []
    assert paths(connection, "Ana", "Ana") == []


def test_a_path_goes_by_what_holds(connection: Connection, chain: dict[str, int]) -> None:
    call(connection, "supersede", bank="b", memory_id=chain["ben-cid"])

    assert paths(connection, "Ana", "Dot") == []
    assert len(paths(connection, "Ana", "Ben")) == 1

    retain(connection, [related("ben-cid again", "Ben", "Cid")])
    connection.execute("update pgrecall.relation set valid_to = now() where memory_id = %s",
                       [chain["ana-ben"]])  # fmt: skip

    assert [row.why for row in paths(connection, "Ana", "Dot")] == [
        "Ana and Ben: ana-ben",
        "Ben knows Cid: ben-cid again",
        "Cid knows Dot: cid-dot",
    ]


@given(
    facts=strategies.lists(
        strategies.lists(
            strategies.sampled_from("ABCDEFGHIJ"), min_size=1, max_size=3, unique=True
        ),
        max_size=9,
    ),
    are_relations=strategies.booleans(),
)  # fmt: skip
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_path_is_as_short_as_any(
    connection: Connection, facts: list[list[str]], are_relations: bool
) -> None:
    if are_relations:
        facts = [names[:2] for names in facts if len(names) > 1]
    with connection.transaction(force_rollback=True):
        create(connection)
        retain(
            connection,
            [
                related(f"{n}", *names) if are_relations else about(f"{n}", *names)
                for n, names in enumerate([*facts, ["A", "Z"]])
            ],
        )
        retain(connection, [about("alone", "J")])

        found = paths(connection, "Z", "J", longest=10)

    expected = distance([*facts, ["A", "Z"]], "Z", "J")
    assert len(found) == (expected or 0)
    if found:
        assert (found[0].from_name, found[-1].to_name) == ("Z", "J")
        assert all(one.to_name == two.from_name for one, two in pairwise(found))
        together = [set(names) for names in [*facts, ["A", "Z"]]]
        assert all(any({row.from_name, row.to_name} <= t for t in together) for row in found)


def test_a_path_past_a_hub_is_bounded(connection: Connection) -> None:
    create(connection)
    hub = [about(f"fact {n}", "Hub", f"Leaf {n}") for n in range(600)]
    retain(connection, [*hub, about("x", "Leaf 599", "End")], link="deferred")

    found = paths(connection, "Leaf 598", "End")

    assert [row.to_name for row in found] == ["Hub", "Leaf 599", "End"]


@pytest.mark.parametrize(
    ("function", "arguments", "code", "message"),
    [
        ("neighbours", "0", "RC010", 'bank "b" has no memory 0'),
        ("neighbours", "null", "RC010", 'bank "b" has no memory null'),
        ("path", "0, 0", "RC013", 'bank "b" has no entity 0'),
        ("path", "(select min(entity_id) from pgrecall.entity), null", "RC013",
         'bank "b" has no entity null'),
    ],
)  # fmt: skip
def test_the_unknown_has_no_neighbours_and_no_path(
    connection: Connection, function: str, arguments: str, code: str, message: str
) -> None:
    create(connection)
    retain(connection, [about("a", "Ana")])

    with pytest.raises(psycopg.Error) as caught, connection.transaction():
        connection.execute(f"select * from pgrecall.{function}('b', {arguments})".encode())

    assert (caught.value.sqlstate, caught.value.diag.message_primary) == (code, message)
    assert caught.value.diag.message_hint


# What only relations tell, over the demo's bank

RELATION_QUESTIONS = {
    "Where does the manager of Rui Tavora live?": "Graça Monteverde rows herself back",
    "In which town is the home of Tess Abernethy's manager?": "Wojtek Zalewicz leads firmware",
    "Where does the captain of Second Opinion live?": "Kobby Asante-Mills, our field",
    "Where does Sorcha's boss live?": "Halvard has a house on Askøy",
    "What did the recall of the batteries lead to?": "Project Kingfisher began",
    "Why are servers called after food?": "The nightly backup failed twice",
    "What trouble did unplugging the old server bring?": "The nightly backup failed twice",
    "What was the effect of firmware 4.0.0?": "Tess fixed the watchdog",
}


@pytest.mark.slow
def test_relation_questions_are_answered_by_the_graph_alone(connection: Connection) -> None:
    create(connection)
    demo = resources.files("pgrecall") / "demo" / "facts.jsonl"
    facts = [json.loads(line) for line in demo.read_text(encoding="utf-8").splitlines()]
    try:
        Recall(connection).retain("b", facts)
        embeddings = list(DEFAULT_EMBEDDER.embed_query(list(RELATION_QUESTIONS)))
    except EmbedderUnavailable as error:
        pytest.skip(f"the questions need the real model: {error}")

    found: dict[str, list[str]] = {}
    for (question, answer), embedding in zip(RELATION_QUESTIONS.items(), embeddings, strict=True):
        arms: dict[str, dict[str, Any]] = {
            "semantic": {"embedding": embedding},
            "lexical": {"query": question},
            "graph": {"query": question, "embedding": embedding},
        }
        found[question] = []
        for arm, arguments in arms.items():
            rows = call(
                connection, f"{arm}_arm", bank="b", depth=12, as_of="2026-06-30", **arguments
            )
            texts = connection.execute(
                "select text from pgrecall.memory where memory_id = any(%s)", [ids(rows)]
            ).fetchall()
            if any(text.startswith(answer) for (text,) in texts):
                found[question].append(arm)

    assert found == {question: ["graph"] for question in RELATION_QUESTIONS}
