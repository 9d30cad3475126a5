"""The graph arm: its scores computed anew from the documented formulas, and its bounds."""

from __future__ import annotations

from math import log, tanh
from typing import Any

import pytest

from banks import Connection, call, create, ids, retain


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

    for found, strength in [(full, 1), (half, 0.5)]:
        by_id = {row.memory_id: row for row in found}
        assert none not in by_id
        assert by_id[both].entity_score == close(tanh(0.5 * strength * (ana + atlas)))
        assert by_id[one].entity_score == close(tanh(0.5 * strength * ana))
        assert all(row.score == row.entity_score for row in found)


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
    """Rows and index entries that this transaction has read so far."""
    ((read,),) = connection.execute(
        "select sum(pg_stat_get_xact_tuples_returned(c.oid))::bigint from pg_class c"
        " where c.relkind in ('r', 'i') and c.relnamespace = 'pgrecall'::regnamespace"
    ).fetchall()
    return int(read)


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
