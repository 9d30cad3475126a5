"""The graph arm: its scores computed anew from the documented formulas, and its bounds."""

from __future__ import annotations

import json
from importlib import resources
from itertools import pairwise
from math import log, tanh
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings, strategies

from pgrecall import EmbedderUnavailable, Recall
from pgrecall.embedders import DEFAULT_EMBEDDER
from sqlcalls import Connection, call, counted_scans, create, ids, retain


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


def test_shared_entities_score_by_number_rarity_and_strength(connection: Connection) -> None:
    create(connection)
    seed, both, one, none, *_ = stated(
        connection,
        [
            about("seed", "Ana", "Atlas"),
            about("both", "Ana", "Atlas"),
            about("one", "Ana"),
            "none",
            *[about(f"ana {n}", "Ana") for n in range(4)],
        ],
    )
    ana, atlas = rarity(7, 8), rarity(2, 8)

    full = call(connection, "link_expansion", bank="b", seeds=[seed])
    half = call(connection, "link_expansion", bank="b", seeds=[seed, seed], strengths=[0.1, 0.5])

    # Of the facts about Ana these are the sixth and the fifth newest: 0.002 less for each before.
    for found, strength in [(full, 1), (half, 0.5)]:
        by_id = {row.memory_id: row for row in found}
        assert none not in by_id
        assert by_id[both].entity_score == close(tanh(0.5 * strength * (0.99 * ana + atlas)))
        assert by_id[one].entity_score == close(tanh(0.5 * strength * 0.992 * ana))
        assert all(row.score == row.entity_score for row in found)
        assert len({row.score for row in found}) == len(found)


def test_an_entity_of_several_seeds_counts_once_by_the_strongest(connection: Connection) -> None:
    create(connection)
    first, second, found = stated(connection, [about(text, "Ana") for text in "abc"])

    rows = call(connection, "link_expansion", bank="b", seeds=[first, second], strengths=[0.2, 0.8])

    assert scores(rows)[found] == close(tanh(0.5 * 0.8 * rarity(3, 3)))


def test_semantic_links_lead_both_ways_by_similarity(connection: Connection) -> None:
    create(connection)
    left, middle, right, far = stated(
        connection,
        [
            {"text": str(e), "embedding": e}
            for e in ([1, 0.6, 0], [1, 0, 0], [1, -0.6, 0], [0, 0, 1])
        ],
    )
    similarity = 1 / (1 + 0.36) ** 0.5

    from_middle = call(connection, "link_expansion", bank="b", seeds=[middle])
    from_left = call(connection, "link_expansion", bank="b", seeds=[left], strengths=[0.5])

    assert scores(from_middle) == pytest.approx({left: similarity, right: similarity}, abs=1e-3)
    assert scores(from_left) == pytest.approx({middle: similarity / 2}, abs=1e-3)
    assert all(row.semantic_score == row.score for row in [*from_middle, *from_left])
    assert far not in scores(from_middle)


@pytest.mark.parametrize("kind", ["causes", "caused_by", "enables", "prevents"])
def test_causal_links_lead_both_ways_by_weight(connection: Connection, kind: str) -> None:
    create(connection)
    start, end = stated(
        connection, [{"text": "a", "links": [{"kind": kind, "to_index": 1, "weight": 0.4}]}, "b"]
    )

    forth = call(connection, "link_expansion", bank="b", seeds=[start])
    back = call(connection, "link_expansion", bank="b", seeds=[end], strengths=[0.5])

    assert forth == [(end, 1, *map(close, (0.4, 0, 0, 0.4)))]
    assert back == [(start, 1, *map(close, (0.2, 0, 0, 0.2)))]


def test_the_three_scores_add_up_and_the_best_edge_counts(connection: Connection) -> None:
    create(connection)
    links = [{"kind": "causes", "to_index": 1, "weight": 0.3},
             {"kind": "enables", "to_index": 1, "weight": 0.6}]  # fmt: skip
    seed, found = stated(
        connection,
        [
            about("a", "Ana", embedding=[1, 0], links=links),
            about("b", "Ana", embedding=[1, 0]),
        ],
    )

    rows = call(connection, "link_expansion", bank="b", seeds=[seed])

    entity = tanh(0.5 * rarity(2, 2))
    assert rows[0] == (found, 1, *map(close, (entity + 1.6, entity, 1, 0.6)))


def test_temporal_links_are_left_to_the_temporal_arm(connection: Connection) -> None:
    create(connection)
    seed, _ = stated(connection, [{"text": t, "occurred": "2026-03-05"} for t in "ab"])

    assert call(connection, "link_expansion", bank="b", seeds=[seed]) == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, ["now", "opinion"]),
        ({"fact_types": ["opinion"]}, ["opinion"]),
        ({"fact_types": ["event"]}, []),
        ({"filter": ["contains", "tags", ["x"]]}, ["now"]),
        ({"as_of": "2026-01-15"}, ["old", "opinion"]),
        ({"as_of": "2025-01-01"}, []),
        ({"depth": 1}, ["opinion"]),
    ],
)
@pytest.mark.parametrize("edge", ["entity", "causal"])
def test_expansion_keeps_to_what_is_asked_for(
    connection: Connection, edge: str, arguments: dict[str, Any], expected: list[str]
) -> None:
    create(connection)
    fields: dict[str, dict[str, Any]] = {
        "old": {"mentioned_at": "2026-01-01"},
        "now": {"mentioned_at": "2026-02-01", "tags": ["x"]},
        "opinion": {"mentioned_at": "2026-01-01", "fact_type": "opinion"},
    }
    entities = ["Ana"] if edge == "entity" else []
    facts = [about(name, *entities, **given) for name, given in fields.items()]
    *others, seed = retain(
        connection,
        [
            *facts,
            about(
                "seed",
                *entities,
                mentioned_at="2020-01-01",
                fact_type="preference",
                links=[
                    {"kind": "causes", "to_index": n} for n in range(3) if edge == "causal"
                ],
            ),
        ],
    )  # fmt: skip
    names = dict(zip(others, fields, strict=True))
    call(connection, "supersede", bank="b", memory_id=others[0], at="2026-02-01")

    arguments = {"filter": ["<>", "text", "seed"], **arguments}
    found = call(connection, "link_expansion", bank="b", seeds=[seed], **arguments)

    assert sorted(names[row.memory_id] for row in found if row.memory_id != seed) == expected


def test_an_entity_in_every_fact_contributes_next_to_nothing(connection: Connection) -> None:
    create(connection)
    seed, rare, *_ = stated(
        connection,
        [about(f"fact {n}", "User", *(["Kraken"] if n < 2 else [])) for n in range(200)],
    )

    found = scores(call(connection, "link_expansion", bank="b", seeds=[seed]))

    assert found.pop(rare) > 0.3
    del found[seed]
    assert max(found.values()) < 0.001


@pytest.mark.slow
def test_a_hub_is_bounded_to_its_latest_fifty_per_type(connection: Connection) -> None:
    create(connection)
    seed, *facts = stated(
        connection,
        [about(f"fact {n}", "Hub", fact_type=["world", "opinion"][n % 2]) for n in range(3001)],
        link="deferred",
    )

    expansion = call(connection, "link_expansion", bank="b", seeds=[seed], depth=10_000)
    walk = call(connection, "entity_walk", bank="b", query="hub", depth=10_000)

    for found in (expansion, walk):
        assert sorted(ids(found)) == facts[-100:]


def rows_read(connection: Connection) -> int:
    """Rows and index entries of the graph that this transaction has read so far."""
    ((read,),) = connection.execute(
        "select sum(pg_stat_get_xact_tuples_returned(c.oid))::bigint from pg_class c"
        " where c.relkind in ('r', 'i')"
        " and c.relnamespace::regnamespace::text in ('pgrecall', 'pgrecall_internal')"
        " and c.relname ~ '^(entity|mention|relation|link)'"
    ).fetchall()
    return int(read)


@pytest.mark.parametrize("is_analysed", [True, False])
@pytest.mark.parametrize("function", ["link_expansion", "entity_walk"])
def test_the_graph_goes_by_its_indexes_alone(
    connection: Connection, function: str, is_analysed: bool
) -> None:
    create(connection)
    seed, *_ = stated(
        connection,
        [
            {
                **about(f"fact {n}", f"Person {n % 200}", f"Place {n % 50}"),
                "relations": [{"from": f"Person {n % 200}", "kind": "at", "to": f"Place {n % 50}"}],
                "links": [{"kind": "causes", "to_index": n // 2}] if n else [],
            }
            for n in range(1000)
        ],
        link="deferred",
    )
    if is_analysed:
        connection.execute("analyze pgrecall.memory, pgrecall.mention, pgrecall.relation")
        connection.execute("analyze pgrecall.link")
    given = {"seeds": [seed]} if function == "link_expansion" else {"query": "who met Person 7"}

    with counted_scans(connection) as scans:
        found = call(connection, function, bank="b", fact_types=["world"], **given)

    tables = ("memory", "mention", "relation", "link", "entity_count")
    gone_by = {name for name in scans if name.startswith(tables)}
    expected = {"memory_pkey", "mention_pkey", "entity_count_pkey"} | (
        {"mention_bank_id_memory_id_idx", "link_pkey", "link_bank_id_to_id_idx"}
        if function == "link_expansion"
        else {"relation_bank_id_from_id_relation_id_idx", "relation_bank_id_to_id_relation_id_idx"}
    )
    assert found
    assert gone_by == expected


@pytest.mark.slow
@pytest.mark.parametrize("action", ["recall", "retain"])
def test_a_hub_costs_no_more_in_a_larger_bank(connection: Connection, action: str) -> None:
    read = {}
    for bank, size in [("small", 1100), ("large", 3300)]:
        create(connection, bank)
        # First one alone: the average length is known then, and no fact is written again for it.
        retain(connection, ["fact first"], bank=bank)
        facts = [about(f"fact {n}", "Hub") for n in range(size)]
        retain(connection, [*facts, about("zebra", "Hub")], bank=bank, link="deferred")
        before = rows_read(connection)
        if action == "recall":
            assert call(connection, "hybrid_recall", bank=bank, query="the zebra of Hub")
        else:
            retain(connection, [about("another", "Hub", occurred="2026-03-05")], bank=bank)
        read[bank] = rows_read(connection) - before

    # Mentions are counted up to 1,000, new facts up to a tenth of those known.
    assert 0 < read["large"] <= read["small"] + (100 if action == "recall" else 330)


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


@pytest.mark.slow
@pytest.mark.parametrize("function", ["link_expansion", "entity_walk"])
def test_rarity_goes_by_all_facts_about_an_entity(connection: Connection, function: str) -> None:
    """Of a hub the newest 50 facts are read, and yet it counts as the hub that it is."""
    create(connection)
    seed, *_ = stated(connection, [about(f"fact {n}", "Hub") for n in range(400)], link="deferred")
    given = {"seeds": [seed]} if function == "link_expansion" else {"query": "of Hub"}

    def best() -> float:
        rows = call(connection, function, bank="b", **given)
        return max(float(row.score) for row in rows)

    half = 0.5 if function == "link_expansion" else 1
    assert best() == close(tanh(half * rarity(400, 400)))
    # Without counts only those fifty are seen.
    connection.execute("delete from pgrecall_internal.entity_count")
    assert best() == close(tanh(half * rarity(50, 400)))


def test_the_heaviest_entities_lead_on_and_hubs_give_way(connection: Connection) -> None:
    create(connection)
    hubs = [f"Hub {n}" for n in range(40)]
    seed, *_, hub, rare = stated(
        connection,
        [
            about("seed", *hubs, "Kraken"),
            *(about(f"fact {n}", *hubs) for n in range(5)),
            about("hub", "Hub 0"),
            about("rare", "Kraken"),
        ],
    )

    found = ids(call(connection, "link_expansion", bank="b", seeds=[seed]))

    assert rare in found
    assert hub not in found


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
        ("", []),
        ("!?", []),
    ],
)
def test_the_longest_names_in_a_query_are_its_entities(
    connection: Connection, query: str, names: list[str]
) -> None:
    create(connection)
    # "Ana" is an entity, and a name that Ana Silva goes by as well.
    retain(connection, [about("a", "Ana", "R&D", "New York", "New York City")])
    retain(connection, [about("b", {"name": "Ana Silva", "aliases": ["Ana"]})])

    found = call(connection, "query_entities", bank="b", query=query)

    assert sorted(row.name for row in found) == names


def test_entities_of_another_bank_are_not_named(connection: Connection) -> None:
    create(connection)
    create(connection, "c")
    retain(connection, [about("a", "Ana")], bank="c")

    assert call(connection, "query_entities", bank="b", query="Ana") == []
    assert call(connection, "entity_walk", bank="b", query="Ana") == []


# entity_walk


@pytest.fixture
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


@pytest.mark.parametrize("hops", [0, 1, 2, 3])
def test_a_walk_weighs_entities_by_hop_and_the_facts_of_its_edges(
    connection: Connection, chain: dict[str, int], hops: int
) -> None:
    hop = [1, 0.6, 0.35, 0.15]
    end, middle = rarity(2, 27), rarity(3, 27)
    reached = [end, middle, middle, end]
    weight = [p * r if n <= hops else 0 for n, (p, r) in enumerate(zip(hop, reached, strict=True))]

    found = call(connection, "entity_walk", bank="b", query="where is Ana", hops=hops)

    stating = [hop[n] if n < hops else 0 for n in range(3)]
    expected = {
        **{name: tanh(weight[n]) for n, name in enumerate(["Ana", "Ben", "Cid", "Dot"])},
        **{
            name: tanh(stating[n] + weight[n] + weight[n + 1])
            for n, name in enumerate(["ana-ben", "ben-cid", "cid-dot"])
        },
    }
    assert scores(found) == close({chain[name]: score for name, score in expected.items() if score})
    assert [row.rank for row in found] == list(range(1, len(found) + 1))


def test_a_walk_goes_against_the_direction_of_relations_too(
    connection: Connection, chain: dict[str, int]
) -> None:
    found = scores(call(connection, "entity_walk", bank="b", query="Dot", hops=1))

    assert found.keys() == {chain[name] for name in ("Dot", "Cid", "cid-dot", "ben-cid")}


@pytest.mark.parametrize(
    ("fields", "as_of", "share"),
    [
        ({}, None, 1),
        ({"confidence": 0.5}, None, 0.5),
        ({"valid_to": "2026-02-01"}, "2026-03-01", 0.3),
        ({"valid_to": "2026-02-01", "confidence": 0.5}, "2026-03-01", 0.15),
        ({"valid_to": "2026-02-01"}, "2026-01-15", 1),
        ({"valid_from": "2026-02-01"}, "2026-01-15", 0),
        ({"valid_from": "2026-02-01"}, "2026-02-01", 1),
    ],
)
def test_a_relation_counts_by_confidence_and_by_whether_it_holds(
    connection: Connection, fields: dict[str, Any], as_of: str | None, share: float
) -> None:
    create(connection)
    early = {"mentioned_at": "2020-01-01"}
    fact = related("edge", "Ana", "Ben", **fields) | early
    _, target, *_ = stated(connection, [fact, about("target", "Ben", **early)])

    when = {"as_of": as_of} if as_of else {}
    found = scores(call(connection, "entity_walk", bank="b", query="Ana", **when))

    assert found.get(target, 0) == close(tanh(0.6 * share * rarity(2, 2)))


def test_a_relation_of_a_superseded_fact_has_ended(connection: Connection) -> None:
    create(connection)
    early = {"mentioned_at": "2020-01-01"}
    edge, target = stated(
        connection, [related("edge", "Ana", "Ben") | early, about("target", "Ben", **early)]
    )
    call(connection, "supersede", bank="b", memory_id=edge, at="2026-02-01")

    walks = {
        as_of: scores(call(connection, "entity_walk", bank="b", query="Ana", as_of=as_of))
        for as_of in ("2026-01-01", "2026-03-01")
    }

    weight = 0.6 * rarity(2, 2)
    assert walks["2026-01-01"][target] == close(tanh(weight))
    assert walks["2026-03-01"] == close({target: tanh(0.3 * weight)})


def test_a_relation_is_not_walked_before_it_is_known(connection: Connection) -> None:
    create(connection)
    retain(connection, [related("edge", "Ana", "Ben", valid_from="2020-01-01")])
    (target,) = retain(connection, [about("target", "Ben", mentioned_at="2020-01-01")])

    found = call(connection, "entity_walk", bank="b", query="Ana", as_of="2021-01-01")

    assert target not in ids(found)


def test_cycles_end_and_the_strongest_way_counts(connection: Connection) -> None:
    create(connection)
    facts = [about("target", "Cid")]
    for start, end, confidence in [
        ("Ana", "Ben", 1), ("Ben", "Ana", 1), ("Ben", "Cid", 1), ("Cid", "Ana", 0.1)
    ]:  # fmt: skip
        facts.append(related(f"{start}-{end}", start, end, confidence=confidence))
    target, *_ = stated(connection, facts)

    found = scores(call(connection, "entity_walk", bank="b", query="Ana", hops=3))

    # Over Ben it is two hops, 0.35; directly one of little belief, 0.06.
    assert found[target] == close(tanh(0.35 * rarity(3, 5)))


WALK_NAMES = ["Ana", "Ben", "Cid", "Dot", "Eve", "Fay"]
EDGES = strategies.lists(
    strategies.tuples(
        strategies.sampled_from(WALK_NAMES),
        strategies.sampled_from(WALK_NAMES),
        strategies.sampled_from(["leads", "related_to"]),
        strategies.sampled_from([1.0, 0.8, 0.5]),
        strategies.booleans(),
    ).filter(lambda edge: edge[0] != edge[1]),
    min_size=1,
    max_size=10,
)


def walked(edges: list[Any], start: str, hops: int) -> tuple[dict[str, float], list[float]]:
    """Follow every way that visits nobody twice; strengths of the entities and of the edges."""
    weight = [1, 0.6, 0.35, 0.15]
    reached: dict[str, float] = {}
    stated = [0.0] * len(edges)

    def follow(entity: str, strength: float, seen: list[str]) -> None:
        hop = len(seen)
        reached[entity] = max(reached.get(entity, 0), strength * weight[hop])
        if hop == hops:
            return
        for n, (one, other, kind, confidence, has_ended) in enumerate(edges):
            if entity in (one, other):
                next_one = other if entity == one else one
                prior = 0.9 if kind == "related_to" else 1
                further = strength * confidence * prior * (0.3 if has_ended else 1)
                if next_one not in [*seen, entity]:
                    stated[n] = max(stated[n], further * weight[hop])
                    follow(next_one, further, [*seen, entity])

    follow(start, 1, [])
    return reached, stated


@given(edges=EDGES, hops=strategies.integers(0, 3))
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_walk_scores_as_one_that_follows_every_way(
    connection: Connection, edges: list[Any], hops: int
) -> None:
    with connection.transaction(force_rollback=True):
        create(connection)
        ended = {"valid_from": "2020-01-01", "valid_to": "2021-01-01"}
        facts = [about(name, name) for name in WALK_NAMES]
        for n, (one, other, kind, confidence, has_ended) in enumerate(edges):
            relation = {"from": one, "kind": kind, "to": other, "confidence": confidence}
            relation |= ended if has_ended else {}
            facts.append({"text": f"edge {n}", "relations": [relation]})
        memory_ids = stated(connection, facts)

        found = scores(call(connection, "entity_walk", bank="b", query="Ana", hops=hops))

    reached, edge_strengths = walked(edges, "Ana", hops)
    weights = dict.fromkeys(memory_ids, 0.0)
    for n, name in enumerate(WALK_NAMES):
        naming = [memory_ids[n]] + [
            memory_ids[len(WALK_NAMES) + k] for k, edge in enumerate(edges) if name in edge[:2]
        ]
        for memory_id in naming:
            weights[memory_id] += reached.get(name, 0) * rarity(len(naming), len(facts))
    for k, strength in enumerate(edge_strengths):
        weights[memory_ids[len(WALK_NAMES) + k]] += strength
    assert found == close({key: tanh(weight) for key, weight in weights.items() if weight})


def test_a_hub_of_relations_is_walked_over_its_newest_fifty_each_way(
    connection: Connection,
) -> None:
    create(connection)
    facts = [related(f"edge {n}", "Hub", f"Leaf {n}") for n in range(120)]
    memory_ids = stated(connection, facts, link="deferred")

    with counted_scans(connection) as scans:
        found = call(connection, "entity_walk", bank="b", query="hub", depth=10_000, hops=1)

    assert sorted(ids(found)) == memory_ids[-50:]
    assert scans["relation_bank_id_from_id_relation_id_idx"] > 0


@pytest.mark.parametrize(
    ("query", "starts"),
    [
        ("what did Ana say", {"silva": 1 / 2, "costa": 1 / 2}),
        ("what did Ana say of Atlas", {"silva": 1}),
        ("what did Ana Costa say", {"costa": 1}),
    ],
)
def test_a_walk_starts_from_all_who_may_be_meant(
    connection: Connection, query: str, starts: dict[str, float]
) -> None:
    create(connection)
    silva, costa = ({"name": f"Ana {name}", "aliases": ["Ana"]} for name in ("Silva", "Costa"))
    memory_ids = stated(
        connection,
        [about("silva", silva), about("costa", costa), about("both", "Ana Silva", "Atlas")],
    )

    found = scores(call(connection, "entity_walk", bank="b", query=query))

    share = 5 / 6 if "Atlas" in query else None
    expected = {
        memory_id: tanh(rarity(mentions, 3) * (share or starts[name]))
        for name, memory_id, mentions in zip(("silva", "costa"), memory_ids, (2, 1), strict=False)
        if name in starts
    }
    assert {memory_id: found[memory_id] for memory_id in expected} == close(expected)
    assert found.keys() - {memory_ids[2]} == expected.keys()


@pytest.mark.parametrize(
    ("query", "hops"),
    [
        ("who leads Atlas", 2),
        ("Where does Ana's manager live?", 2),
        ("Do you know who leads Atlas?", 2),
        ("It's Ana's boat", 2),
        ("What's the name of Ana's dog?", 2),
        ("What kind of food does Ana's cat eat?", 2),
        ("What is the capital of France?", 2),
        ("Ana's manager's team", 3),
        ("James' wife’s car", 3),
        ("Where does the manager of Ana's team live?", 3),
        ("the house of the brother of Bo", 3),
        ("Who hired the man who wrote it?", 3),
        ("Which team has the engineer whose manager's office is here?", 3),
        ("", 2),
        (None, 2),
    ],
)
def test_a_question_says_how_far_to_walk(
    connection: Connection, query: str | None, hops: int
) -> None:
    assert call(connection, "query_hops", query=query) == [(hops,)]


def test_a_chain_of_relations_is_walked_to_its_end(
    connection: Connection, chain: dict[str, int]
) -> None:
    short = call(connection, "entity_walk", bank="b", query="the friend of Ana")
    long = call(connection, "entity_walk", bank="b", query="the friend of the friend of Ana")

    assert chain["Dot"] not in ids(short)
    assert chain["Dot"] in ids(long)


# graph_arm


@pytest.mark.parametrize(
    ("query", "embedding"), [("zebra of Ben", None), ("zebra of Ben", [1, 0]), ("", [1, 0])]
)
def test_the_graph_arm_adds_expansion_and_walk_and_leaves_out_noise(
    connection: Connection, chain: dict[str, int], query: str, embedding: list[float] | None
) -> None:
    links = [{"kind": "causes", "to_index": n, "weight": w} for n, w in ((1, 0.9), (2, 0.4))]
    cause, effect, weak = stated(
        connection,
        [
            {"text": "zebra", "links": links, "embedding": [1, 0]},
            {"text": "effect", "embedding": [0.9, 0.4]},
            {"text": "weak", "embedding": [-1, 0.1]},
        ],
    )
    semantic = call(connection, "semantic_arm", bank="b", embedding=embedding, depth=20)
    lexical = call(connection, "lexical_arm", bank="b", query=query, depth=20)
    seeds = {"seeds": ids([*semantic, *lexical]),
             "strengths": [10 / (9 + row.rank) for row in [*semantic, *lexical]]}  # fmt: skip

    found = scores(call(connection, "graph_arm", bank="b", query=query, embedding=embedding))

    led = scores(call(connection, "entity_walk", bank="b", query=query))
    for row in call(connection, "link_expansion", bank="b", **seeds):
        score = row.entity_score + 0.3 * row.semantic_score + row.causal_score
        led[row.memory_id] = led.get(row.memory_id, 0) + score
    expected = {memory: score for memory, score in led.items() if score >= 0.5}
    arms = [scores(rows) for rows in (semantic, lexical) if rows]
    for name in ["Ben", "ana-ben", "ben-cid"] if "Ben" in query else []:
        strength = sum(arm.get(chain[name], 0) / max(arm.values()) for arm in arms) / len(arms)
        if strength:
            expected[chain[name]] = expected.get(chain[name], 0) + 0.5 * strength
    assert found == close(expected)
    assert (cause in found) == (embedding is not None)
    assert effect in found
    assert weak not in found


def talk(*turns: tuple[str, str], **fields: Any) -> list[dict[str, Any]]:
    """Facts of one time, each about somebody."""
    return [about(text, who, occurred="2026-03-05", **fields) for who, text in turns]


TURNS = [("Ana", "w"), ("Ana", "v"), ("Sam", "u"), ("Ana", "zebra"),
         ("Ana", "x"), ("Sam", "y"), ("Ana", "z")]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # The seed itself half, one link 1, two links half; Sam was not asked about.
        ("what of Ana and the zebra", {"zebra": 0.5, "x": 1, "v": 0.5}),
        ("what of Sam and the zebra", {"u": 1, "y": 0.5}),
        ("what of Ana, Sam and the zebra", {"zebra": 0.5, "x": 1, "u": 1, "v": 0.5, "y": 0.5}),
        ("what of the zebra", {}),
        ("what of Eve and the zebra", {}),
    ],
)
def test_what_was_said_around_the_best_by_who_is_asked_about_is_found(
    connection: Connection, query: str, expected: dict[str, float]
) -> None:
    create(connection)
    memory_ids = stated(connection, talk(*TURNS))
    texts = dict(zip(memory_ids, [text for _, text in TURNS], strict=True))

    found = scores(call(connection, "graph_arm", bank="b", query=query))

    assert {texts[memory]: score for memory, score in found.items()} == close(expected)


def test_what_was_said_around_counts_by_closeness_strength_and_confidence(
    connection: Connection,
) -> None:
    create(connection)
    before, seed, after, weaker, later = stated(
        connection,
        [
            about("before", "Ana", occurred="2026-03-05T06:00Z"),
            about("zebra", "Ana", occurred="2026-03-05T12:00Z"),
            about("after", "Ana", occurred="2026-03-05T18:00Z"),
            about("zebra and many other animals", "Ana", occurred="2026-05-05T00:00Z"),
            about("later", "Ana", occurred="2026-05-05T12:00Z"),
        ],
    )
    connection.execute("update pgrecall.entity_alias set confidence = 0.5")
    lexical = scores(call(connection, "lexical_arm", bank="b", query="Ana zebra"))
    strength = lexical[weaker] / lexical[seed]

    found = scores(call(connection, "graph_arm", bank="b", query="Ana zebra"))

    assert found == close(
        {
            before: 0.5 * 0.75,
            seed: 0.5 * 0.5,
            after: 0.5 * 0.75,
            weaker: 0.5 * 0.5 * strength,
            later: 0.5 * 0.5 * strength,
        }
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, 3),
        ({"fact_types": ["event"]}, 0),
        ({"filter": ["contains", "tags", ["x"]]}, 3),
        ({"filter": ["contains", "tags", ["y"]]}, 0),
        ({"as_of": "2020-01-01"}, 0),
        ({"depth": 1}, 1),
    ],
)
def test_what_was_said_around_keeps_to_what_is_asked_for(
    connection: Connection, arguments: dict[str, Any], expected: int
) -> None:
    create(connection)
    stated(connection, talk(*TURNS, tags=["x"]))

    found = call(connection, "graph_arm", bank="b", query="Ana zebra", **arguments)

    assert len(found) == expected


@pytest.mark.parametrize("query", ["nothing known", "", None])
def test_the_graph_arm_finds_nothing_without_a_start(
    connection: Connection, chain: dict[str, int], query: str | None
) -> None:
    assert call(connection, "graph_arm", bank="b", query=query) == []


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


# path


def paths(connection: Connection, start: str, end: str, **arguments: Any) -> list[Any]:
    rows = connection.execute("select name, entity_id from pgrecall.entity").fetchall()
    known = dict(rows)
    return call(
        connection, "path", bank="b", entity_a=known[start], entity_b=known[end], **arguments
    )


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


def distance(facts: list[list[str]], start: str, end: str) -> int | None:
    """Count the steps between two who are named together, over who is named with whom."""
    reached, steps = {start}, 0
    while end not in reached:
        further = reached.union(*(names for names in facts if reached & set(names)))
        if further == reached:
            return None
        reached, steps = further, steps + 1
    return steps


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
                connection, f"{arm}_arm", bank="b", depth=13, as_of="2026-06-30", **arguments
            )
            texts = connection.execute(
                "select text from pgrecall.memory where memory_id = any(%s)", [ids(rows)]
            ).fetchall()
            if any(text.startswith(answer) for (text,) in texts):
                found[question].append(arm)

    assert found == {question: ["graph"] for question in RELATION_QUESTIONS}
