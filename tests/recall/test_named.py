"""Whom a question names: how much the name says, and what is found of who is seldom mentioned."""

from __future__ import annotations

from typing import Any

import pytest

from sqlcalls import Connection, call, create, retain

NEAR, FAR = [1.0, 0.1], [0.5, 1.0]
ASKED = [1.0, 0.0]


def crowd(count: int, **fields: Any) -> list[dict[str, Any]]:
    """Return facts that are nearer to what is asked than those about Ana."""
    return [{"text": f"note {n}", "embedding": NEAR, **fields} for n in range(count)]


def of_arm(connection: Connection, arm: str, query: str, **options: Any) -> dict[int, Any]:
    rows = call(connection, "arm_hits", bank="b", query=query, **options)
    return {row.memory_id: row for row in rows if row.arm == arm}


@pytest.mark.parametrize(
    ("others", "factor"), [(0, 1 / 6), (1, 1 / 6), (3, 1 / 3), (7, 1 / 3), (99, 1 / 3)]
)
def test_a_name_says_more_the_fewer_facts_mention_it(
    connection: Connection, others: int, factor: float
) -> None:
    create(connection)
    (ana,) = retain(connection, [{"text": "she moved", "entities": ["Ana"]}])
    retain(connection, [{"text": f"note {n}"} for n in range(others)])
    call(connection, "refresh_statistics", bank="b", is_full=True)

    hits = of_arm(connection, "lexical", "has Ana moved?")

    assert hits[ana].named == pytest.approx(factor)


def test_what_a_name_says_is_known_beyond_a_thousand_mentions(connection: Connection) -> None:
    create(connection)
    retain(connection, [{"text": f"entry {n}", "entities": ["Ana"]} for n in range(1200)])
    retain(connection, [{"text": f"note {n}"} for n in range(1200)])
    call(connection, "refresh_statistics", bank="b", is_full=True)

    hits = of_arm(connection, "lexical", "Ana entry")

    # Half of all mention her, not 1,000 of 2,400.
    assert [hit.named for hit in hits.values()] == pytest.approx([1 / 6] * len(hits))
    assert hits


def test_facts_about_who_is_named_are_found_behind_a_nearer_crowd(connection: Connection) -> None:
    create(connection)
    retain(connection, crowd(60))
    ana, ended = retain(
        connection,
        [
            {"text": "she sails", "embedding": FAR, "entities": ["Ana"]},
            {"text": "she rows", "embedding": FAR, "entities": ["Ana"]},
        ],
    )
    call(connection, "supersede", bank="b", memory_id=ended)
    call(connection, "refresh_statistics", bank="b", is_full=True)
    options = {"embedding": ASKED, "depth": 20}

    named = of_arm(connection, "semantic", "What of Ana?", **options)
    unnamed = of_arm(connection, "semantic", "What of it?", **options)

    assert named.keys() - unnamed.keys() == {ana}
    assert named[ana].rank == 21
    assert named[ana].score == pytest.approx(0.5 / (0.5**2 + 1) ** 0.5, abs=1e-3)


def test_facts_about_who_is_named_are_compared_without_the_name(connection: Connection) -> None:
    create(connection)
    retain(connection, crowd(60))
    loud, apt, other = retain(
        connection,
        [
            {"text": "Ana, Ana, Ana", "embedding": [1.0, 0.0], "entities": ["Ana"]},
            {"text": "she fears dogs", "embedding": [1.0, 1.0], "entities": ["Ana"]},
            {"text": "Bo fears dogs", "embedding": [0.9, 1.0]},
        ],
    )
    call(connection, "refresh_statistics", bank="b", is_full=True)
    given: dict[str, Any] = {"embedding": ASKED, "hypothetical": ASKED}
    about = {**given, "options": {"about_embedding": [0.0, 1.0]}}

    for arm, query, changed in [
        ("semantic", "What does Ana fear?", {loud: 1 - 0.5**0.5, apt: 1}),
        ("semantic", "What does she fear?", {}),
        ("hypothetical", "What does Ana fear?", {}),
    ]:
        before = {i: hit.score for i, hit in of_arm(connection, arm, query, **given).items()}
        after = {i: hit.score for i, hit in of_arm(connection, arm, query, **about).items()}

        # What is nearest without the name is as near as the nearest with it.
        assert before.keys() >= {loud, apt, other}
        assert before | changed == pytest.approx(after, abs=1e-3)


@pytest.mark.parametrize(("about_embedding", "expected"), [(None, 30), ([0.0, 1.0], 60)])
def test_all_that_is_about_who_is_named_may_be_compared(
    connection: Connection, about_embedding: list[float] | None, expected: int
) -> None:
    create(connection)
    retain(connection, crowd(200))
    ana = {"embedding": FAR, "entities": ["Ana"]}
    retain(connection, [{"text": f"fact {n}", **ana} for n in range(65)])
    call(connection, "refresh_statistics", bank="b", is_full=True)

    hits = of_arm(
        connection,
        "semantic",
        "What does Ana fear?",
        embedding=ASKED,
        depth=60,
        options={"about_embedding": about_embedding},
    )

    assert len([hit for hit in hits.values() if hit.score < 0.9]) == expected


def test_a_fact_about_who_is_named_must_pass_what_all_must(connection: Connection) -> None:
    create(connection)
    retain(connection, crowd(60))
    (ana,) = retain(connection, [{"text": "she sails", "embedding": FAR, "entities": ["Ana"]}])
    call(connection, "refresh_statistics", bank="b", is_full=True)
    options = {"embedding": ASKED, "depth": 20}

    def found(**more: Any) -> bool:
        return ana in of_arm(connection, "semantic", "What of Ana?", **options, **more)

    assert found()
    assert not found(similarity_floor=0.5)
    assert not found(filter="text like 'note%'")
    assert not found(fact_types=["event"])
    assert not found(as_of="2020-01-01T00:00Z")


def test_what_everybody_mentions_has_no_place_of_its_own(connection: Connection) -> None:
    create(connection)
    retain(connection, crowd(30, entities=["Ana"]) + crowd(30, context="of others"))
    (far,) = retain(connection, [{"text": "she sails", "embedding": FAR, "entities": ["Ana"]}])
    call(connection, "refresh_statistics", bank="b", is_full=True)

    hits = of_arm(connection, "semantic", "What of Ana?", embedding=ASKED, depth=20)

    assert far not in hits


def test_a_window_is_searched_for_facts_about_who_is_named(connection: Connection) -> None:
    create(connection)
    later = {"occurred": "2026-03-20"}
    (ana,) = retain(
        connection,
        [{"text": "she sails", "embedding": FAR, "entities": ["Ana"], "occurred": "2026-03-02"}],
    )
    (before,) = retain(
        connection,
        [{"text": "she rows", "embedding": FAR, "entities": ["Ana"], "occurred": "2026-01-02"}],
    )
    # More than a window is searched for, and all of them begin later.
    retain(connection, crowd(1100, **later))
    call(connection, "refresh_statistics", bank="b", is_full=True)
    options = {"embedding": ASKED, "during": "[2026-03-01, 2026-04-01)"}

    named = of_arm(connection, "temporal", "What did Ana do in March?", **options)
    filtered = of_arm(
        connection, "temporal", "What did Ana do in March?", filter="confidence > 0.5", **options
    )
    unnamed = of_arm(connection, "temporal", "What was done in March?", **options)

    assert ana in named
    assert ana in filtered
    assert ana not in unnamed
    assert before not in named


def test_a_window_is_searched_for_what_has_the_words(connection: Connection) -> None:
    create(connection)
    kraken = {"text": "the kraken woke", "embedding": FAR, "occurred": "2026-03-02"}
    (woke, slept) = retain(connection, [kraken, kraken | {"occurred": "2026-01-02"}])
    # More than a window is searched for, and all of them begin later.
    retain(connection, crowd(1100, occurred="2026-03-20"))
    call(connection, "refresh_statistics", bank="b", is_full=True)
    options = {"embedding": ASKED, "during": "[2026-03-01, 2026-04-01)"}

    said = of_arm(connection, "temporal", "What did the kraken do in March?", **options)
    unsaid = of_arm(connection, "temporal", "What was done in March?", **options)

    assert woke in said
    assert slept not in said
    assert woke not in unsaid


def test_a_hub_leads_to_its_newest_facts_where_there_is_nothing_else(
    connection: Connection,
) -> None:
    create(connection)
    entries = [{"text": f"entry {n}", "entities": ["Ana"]} for n in range(600)]
    old, *_, new = retain(connection, entries)
    retain(connection, [{"text": f"note {n}"} for n in range(50)])
    call(connection, "refresh_statistics", bank="b", is_full=True)

    found = [*of_arm(connection, "graph", "What of Ana?")]
    beside = of_arm(connection, "graph", "What of Ana's entry 7?")

    assert new in found
    assert old not in found
    assert beside.keys() <= of_arm(connection, "lexical", "What of Ana's entry 7?").keys()


def test_a_fact_that_names_everybody_counts_no_more_than_one_about_two(
    connection: Connection,
) -> None:
    create(connection)
    names = [f"Person{n}" for n in range(40)]
    stuffed, two = retain(
        connection, [{"text": "x", "entities": names}, {"text": "y", "entities": names[:2]}]
    )
    retain(connection, [{"text": f"note {n}"} for n in range(50)])
    call(connection, "refresh_statistics", bank="b", is_full=True)

    hits = of_arm(connection, "graph", f"What of {', '.join(names)}?")

    assert hits[stuffed].named == hits[two].named == pytest.approx(2 / 3)


def test_what_fits_best_of_many_facts_about_somebody_starts_the_graph(
    connection: Connection,
) -> None:
    create(connection)
    rows = [
        {"text": "she sails", "embedding": NEAR, "entities": ["Ana"], "occurred": "2026-03-02"},
        {"text": "she rows", "embedding": NEAR, "entities": ["Ana"], "occurred": "2025-03-02"},
        *(
            {"text": f"entry {n}", "embedding": FAR, "entities": ["Ana"], "occurred": "2026-03-02"}
            for n in range(298)
        ),
    ]
    sails, rowed, *_ = retain(connection, rows)
    retain(connection, [{"text": f"note {n}", "embedding": FAR} for n in range(1000)])
    call(connection, "refresh_statistics", bank="b", is_full=True)

    def found(query: str, **options: Any) -> list[int]:
        return [*of_arm(connection, "graph", query, embedding=ASKED, **options)]

    assert {*found("What of Ana?")[:2]} == {sails, rowed}
    assert found("What of Ana?", during="[2026-03-01, 2026-04-01)")[0] == sails
    assert found("What of Ana?", during="[2025-03-01, 2025-04-01)")[0] == rowed


def test_facts_about_both_who_are_named_come_before_those_about_one(
    connection: Connection,
) -> None:
    create(connection)
    (both,) = retain(connection, [{"text": "x", "embedding": [1, 1], "entities": ["Ana", "Bo"]}])
    for name in ("Ana", "Bo"):
        facts = [{"text": f"{name} {n}", "embedding": NEAR, "entities": [name]} for n in range(100)]
        retain(connection, facts)
    retain(connection, crowd(700))
    call(connection, "refresh_statistics", bank="b", is_full=True)
    options = {"embedding": ASKED, "depth": 20}

    hits = of_arm(connection, "semantic", "What of Ana and Bo?", **options)

    assert hits[both].named == pytest.approx(2 / 3)
    others = {hit.named and round(hit.named, 4) for i, hit in hits.items() if i != both}
    assert others == {None, 0.3333}
    assert both not in of_arm(connection, "semantic", "What of Ana?", **options)


def test_at_most_half_of_depth_is_added_and_why_not_knows(connection: Connection) -> None:
    create(connection)
    far = [{"text": f"she {n}", "embedding": FAR, "entities": ["Ana"]} for n in range(16)]
    about = retain(connection, [{**fact, "occurred": "2026-03-02"} for fact in far])
    (beaten, *_) = retain(connection, crowd(100, occurred="2026-03-02"))
    call(connection, "refresh_statistics", bank="b", is_full=True)
    options = {"embedding": ASKED, "depth": 20, "during": "[2026-03-01, 2026-04-01)"}

    for arm in ("semantic", "temporal"):
        hits = of_arm(connection, arm, "What of Ana?", **options)
        assert len(hits) == 30
        assert len(hits.keys() & set(about)) == 10

    why = call(
        connection, "why_not", bank="b", query="What of Ana?", memory_id=beaten,
        embedding=ASKED, options={"depth": 20},
    )  # fmt: skip
    (reason,) = [row.reason for row in why if row.step == "semantic"]
    assert "the arm found 20 with a score of at least 0.99" in reason


def test_ten_of_those_named_are_searched_for(connection: Connection) -> None:
    create(connection)
    names = [f"Person{n}" for n in range(15)]
    facts = [{"text": f"she {n}", "embedding": FAR, "entities": [n]} for n in names]
    about = retain(connection, facts)
    retain(connection, crowd(60))
    call(connection, "refresh_statistics", bank="b", is_full=True)

    hits = of_arm(
        connection, "semantic", f"What of {' and '.join(names)}?", embedding=ASKED, depth=40
    )

    assert len(hits.keys() & set(about)) == 10


def test_what_a_rare_name_gave_is_told_as_a_share_of_each_contribution(
    connection: Connection,
) -> None:
    create(connection)
    both, one = retain(
        connection,
        [
            {"text": "she moved", "entities": ["Ana", "Everybody"]},
            {"text": "he moved", "entities": ["Everybody"]},
        ],
    )
    crowd_of_all = [{"text": f"note {n}", "entities": ["Everybody"]} for n in range(30)]
    retain(connection, crowd_of_all)
    call(connection, "refresh_statistics", bank="b", is_full=True)

    def shares(**options: Any) -> dict[int, list[float | None]]:
        asked = "have Ana and Everybody moved?"
        found = call(connection, "hybrid_recall", bank="b", query=asked, options=options)
        return {row.memory_id: [arm.get("named") for arm in row.arms.values()] for row in found}

    # Weights of a third and a sixth, boosted three times; a sixth of it says nothing.
    share = 3 * (1 / 3) / (1 + 3 * (1 / 3 + 1 / 6))
    assert shares()[both] == pytest.approx([share] * 2)
    assert shares()[one] == [None, None]
    assert shares(named_boost=0)[both] == [None, None]
