"""What is some steps away: relations, causes, rare entities in common, the latest of a subject."""

from __future__ import annotations

from typing import Any

import pytest

from servers import kept_fixture
from sqlcalls import Connection, call, create, ids, planned, recalled, retain, value

# Nobody who is asked about shares a word with the answer.
PEOPLE: list[dict[str, Any]] = [
    {
        "text": "Ana learns the trade with Bo.",
        "entities": ["Ana", "Bo"],
        "relations": [{"from": "Bo", "kind": "mentors", "to": "Ana"}],
    },
    {
        "text": "Bo's day begins with a call to Cy.",
        "entities": ["Bo", "Cy"],
        "relations": [{"from": "Bo", "kind": "reports_to", "to": "Cy"}],
    },
    {
        "text": "Cy keeps a houseboat in Porto.",
        "entities": ["Cy", "Porto"],
        "relations": [{"from": "Cy", "kind": "lives_in", "to": "Porto"}],
    },
    {
        "text": "Ana lives in Graz.",
        "entities": ["Ana", "Graz"],
        "relations": [{"from": "Ana", "kind": "lives_in", "to": "Graz"}],
    },
]
NOISE = [{"text": f"Ana wrote note {n}.", "entities": ["Ana"]} for n in range(20)]
HOUSEBOAT = "Cy keeps a houseboat in Porto."
CHAIN: list[dict[str, Any]] = [
    {"text": "The shop stayed shut on Monday."},
    {"text": "A fuse had blown.", "links": [{"kind": "causes", "to_index": 0}]},
    {"text": "Rain dripped through the roof.", "links": [{"kind": "causes", "to_index": 1}]},
    {"text": "A tile slid off.", "links": [{"kind": "causes", "to_index": 2}]},
]


def related(text: str, from_: str, kind: str, to: str, **more: object) -> dict[str, Any]:
    relation = {"from": from_, "kind": kind, "to": to}
    return {"text": text, "entities": [from_, to], "relations": [relation], **more}


def reached(connection: Connection, query: str, **options: Any) -> dict[str, Any]:
    """Hits of the graph arm by text, best first."""
    hits = call(connection, "arm_hits", bank="b", query=query, **options)
    text = "select text from pgrecall.memory where memory_id = %s"
    return {value(connection, text, h.memory_id): h for h in hits if h.arm == "graph"}


@kept_fixture
def people(connection: Connection) -> None:
    create(connection)
    retain(connection, [*PEOPLE, *NOISE])
    call(connection, "refresh_statistics", bank="b")


@kept_fixture
def shop(connection: Connection) -> None:
    create(connection)
    retain(connection, CHAIN)


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("Who mentors Ana?", "Ana learns the trade with Bo."),
        ("Who does Ana's mentor report to?", "Bo's day begins with a call to Cy."),
        ("Who is the boss of Ana's mentor?", "Bo's day begins with a call to Cy."),
        ("Where does the supervisor of Bo live?", HOUSEBOAT),
        ("Where does the boss of Ana's mentor live?", HOUSEBOAT),
        ("What is the home town of the manager of Ana's coach?", HOUSEBOAT),
        ("Wo wohnt der Chef von Bo?", HOUSEBOAT),
    ],
)
def test_what_is_asked_for_leads_on_to_its_answer(
    people: Connection, query: str, answer: str
) -> None:
    without = recalled(people, query, weights={"graph": 0})

    assert answer in recalled(people, query)[:3]
    assert answer not in without[:3] or answer.startswith("Ana")


def test_a_relation_that_is_asked_for_costs_no_step(people: Connection) -> None:
    asked = reached(people, "Where does the boss of Ana's mentor live?", graph_steps=1)
    other = reached(people, "Where does the blorf of Ana's zump trelk?", graph_steps=1)

    assert HOUSEBOAT in asked
    assert HOUSEBOAT not in other


def test_more_steps_lead_further(connection: Connection) -> None:
    create(connection)
    retain(connection, PEOPLE)
    query = "What of the blorf of Ana?"

    assert HOUSEBOAT not in reached(connection, query, graph_steps=1)
    assert HOUSEBOAT in reached(connection, query, graph_steps=3)


def test_causes_that_nobody_asks_for_lead_no_further_than_other_edges(shop: Connection) -> None:
    unasked = reached(shop, "The shop on Monday", graph_steps=1)
    asked = reached(shop, "Why was the shop shut on Monday?", graph_steps=1)

    assert "A fuse had blown." in unasked
    assert "Rain dripped through the roof." not in unasked
    assert "Rain dripped through the roof." in asked


@pytest.mark.parametrize(
    ("query", "first", "then"),
    [
        ("Who coached Bo?", "Cy has taught Bo.", "Bo teaches Dot."),
        ("Who was coached by Bo?", "Bo teaches Dot.", "Cy has taught Bo."),
        ("Whom has Bo coached?", "Bo teaches Dot.", "Cy has taught Bo."),
        ("Who is a protégé of Bo?", "Bo teaches Dot.", "Cy has taught Bo."),
    ],
)
def test_words_tell_which_way_to_follow_a_relation(
    connection: Connection, query: str, first: str, then: str
) -> None:
    create(connection)
    retain(
        connection,
        [
            related("Cy has taught Bo.", "Cy", "mentors", "Bo"),
            related("Bo teaches Dot.", "Bo", "mentors", "Dot"),
        ],
    )

    found = reached(connection, query)

    assert found[first].score > 2 * found[then].score


def test_a_row_tells_the_path_that_led_to_it(people: Connection) -> None:
    query = "Who is the boss of Ana's mentor?"
    rows = call(people, "hybrid_recall", bank="b", query=query)

    [row] = [row for row in rows if row.text == "Bo's day begins with a call to Cy."]
    assert row.via["entities"] == ["Ana", "Bo", "Cy"]
    assert row.via["relations"] == ["mentors", "reports_to"]
    assert len(row.via["facts"]) == 2
    assert row.via["path"] == "Ana ← mentors ← Bo → reports_to → Cy"
    assert row.via["text"] == "Ana learns the trade with Bo."
    assert "via" not in row.arms["graph"]


def test_a_fact_about_a_name_tells_no_path(people: Connection) -> None:
    rows = call(people, "hybrid_recall", bank="b", query="Which note did Ana write?")

    assert {row.via is None for row in rows if row.text.startswith("Ana wrote")} == {True}


def test_a_row_tells_what_led_to_its_cause(shop: Connection) -> None:
    rows = call(shop, "hybrid_recall", bank="b", query="What was the reason for the shut shop?")

    [row] = [row for row in rows if row.text == "Rain dripped through the roof."]
    assert row.via["direction"] == "cause"
    assert row.via["text"] == "The shop stayed shut on Monday. ← A fuse had blown."


def test_the_path_of_a_row_tells_four_facts_at_most(connection: Connection) -> None:
    create(connection)
    more = [{"text": f"Cause {n}.", "links": [{"kind": "causes", "to_index": n}]} for n in range(6)]
    retain(connection, [CHAIN[0], *more])

    rows = call(
        connection, "hybrid_recall", bank="b", query="What is the root cause of the shop?",
        graph_steps=4,
    )  # fmt: skip

    told = {row.text: row.via["text"] for row in rows if row.via}
    first_four = "The shop stayed shut on Monday. ← Cause 0. ← Cause 1. ← Cause 2."
    assert told["Cause 3."] == told["Cause 4."] == first_four


def test_the_path_of_a_row_tells_facts_of_types_that_are_not_asked_for(
    connection: Connection,
) -> None:
    create(connection)
    retain(
        connection,
        [
            {**CHAIN[0], "fact_type": "event"},
            CHAIN[1],
            {**CHAIN[2], "fact_type": "event"},
        ],
    )

    rows = call(
        connection, "hybrid_recall", bank="b", query="Why was the shop shut?", fact_types=["event"]
    )

    [row] = [row for row in rows if row.text == "Rain dripped through the roof."]
    assert row.via["text"] == "The shop stayed shut on Monday. ← A fuse had blown."


def test_the_path_of_a_row_tells_nothing_that_the_filter_leaves_out(people: Connection) -> None:
    hidden = value(people, "select memory_id from pgrecall.memory where text ~ 'Ana learns'")

    rows = call(
        people,
        "hybrid_recall",
        bank="b",
        query="Who is the boss of Ana's mentor?",
        filter=f"memory_id <> {hidden}",
    )

    [row] = [row for row in rows if row.text == "Bo's day begins with a call to Cy."]
    assert row.via["relations"] == ["mentors", "reports_to"]
    assert "text" not in row.via


def test_a_bank_has_words_of_its_own(people: Connection) -> None:
    query = "Where does the skipper of Bo live?"
    words = {"skipper": ["noun>reports_to"]}

    plain = reached(people, query)[HOUSEBOAT].score
    led = reached(people, query, relation_words=words)[HOUSEBOAT].score

    assert led > 2 * plain


def test_what_a_bank_means_by_a_word_goes_before_the_lexicon(people: Connection) -> None:
    query = "Where does the boss of Bo live?"

    plain = reached(people, query)[HOUSEBOAT].score
    other = reached(people, query, relation_words={"boss": ["noun>mentors"]})

    assert other[HOUSEBOAT].score < 0.5 * plain


def test_a_kind_may_be_written_with_capitals_and_spaces(connection: Connection) -> None:
    create(connection)
    retain(
        connection,
        [
            related("Ana answers to Bo.", "Ana", "Reports To", "Bo"),
            related("Ana cooks for Cy.", "Ana", "cooks_for", "Cy"),
        ],
    )

    found = reached(connection, "Who is the boss of Ana?")

    assert found["Ana answers to Bo."].score > 2 * found["Ana cooks for Cy."].score


def test_words_of_a_name_ask_for_nothing(connection: Connection) -> None:
    create(connection)
    retain(
        connection,
        [
            related("Tides come twice.", "Boss Hogg", "reports_to", "Bo"),
            related("Ships come by day.", "Boss Hogg", "cooks_for", "Cy"),
        ],
    )

    found = reached(connection, "What of Boss Hogg?")

    assert len({hit.score for hit in found.values()}) == 1


def test_a_path_that_begins_with_a_hit_is_told_from_its_first_name(
    connection: Connection,
) -> None:
    create(connection)
    retain(
        connection,
        [
            {"text": "The zebra fled.", "entities": ["Ana"]},
            related("Noon is for lunch.", "Ana", "reports_to", "Cy"),
        ],
    )

    rows = call(connection, "hybrid_recall", bank="b", query="Whose boss saw the zebra?")

    told = {row.text: row.via["path"] for row in rows if row.via}
    assert told == {"Noon is for lunch.": "Ana → reports_to → Cy"}


def test_each_word_asks_for_one_relation_of_a_path(connection: Connection) -> None:
    create(connection)
    retain(
        connection,
        [
            related("Ana answers to Bo.", "Ana", "reports_to", "Bo"),
            related("Bo answers to Cy.", "Bo", "reports_to", "Cy"),
        ],
    )

    once = reached(connection, "Whom does Ana report to?")
    twice = reached(connection, "Who is the boss of the boss of Ana?")

    first, second = "Ana answers to Bo.", "Bo answers to Cy."
    assert once[first].score > once[second].score
    assert twice[first].score < twice[second].score


def test_a_relation_that_has_ended_counts_less_unless_a_former_state_is_asked_for(
    connection: Connection,
) -> None:
    create(connection)
    retain(
        connection,
        [
            related("Lunch was late.", "Bo", "reports_to", "Cy"),
            related("A horse ran past.", "Bo", "reports_to", "Dan"),
        ],
    )
    connection.execute(
        "update pgrecall.relation r set valid_to = '2020-01-01' from pgrecall.memory m"
        " where m.memory_id = r.memory_id and m.text = 'Lunch was late.'"
    )
    query = "Who was the boss of Bo?"

    now = reached(connection, query)
    once = reached(connection, query, prefer="former")

    assert now["Lunch was late."].score < 0.8 * now["A horse ran past."].score
    assert once["Lunch was late."].score == pytest.approx(once["A horse ran past."].score)


def test_what_a_replaced_fact_states_leads_on_less_and_what_is_not_known_yet_nowhere(
    connection: Connection,
) -> None:
    create(connection)
    call(connection, "configure_bank", bank="b", settings={"replace": "key"})
    for boss in ("Cy", "Dan", "Eve"):
        retain(connection, [
            related(f"{boss} has a houseboat.", boss, "lives_in", f"{boss}'s town"),
            related(f"{boss} pays Bo.", "Bo", "reports_to", boss, fact_key="boss"),
        ])  # fmt: skip
    query = "Where does the boss of Bo live?"
    retain(connection, [
        related("Fay pays Bo.", "Bo", "reports_to", "Fay"),
        related("Fay has a houseboat.", "Fay", "lives_in", "Fay's town"),
    ])  # fmt: skip
    connection.execute(
        "update pgrecall.memory set valid_from = '2999-01-01' where text = 'Fay pays Bo.'"
    )

    now = reached(connection, query)
    once = reached(connection, query, prefer="former")

    assert now["Cy has a houseboat."].score < 0.6 * now["Eve has a houseboat."].score
    assert once["Cy has a houseboat."].score > 0.8 * once["Eve has a houseboat."].score
    assert "Fay has a houseboat." not in now


@pytest.mark.parametrize(
    ("during", "boss"),
    [
        ("[2025-06-01, 2025-07-01)", "Cy"),
        ("[2025-06-01, 2026-03-01)", "Cy"),
        ("[2026-03-01, 2026-03-02)", "Dan"),
        ("(,2026-01-01)", "Cy"),
        ("[2999-01-01,)", "Eve"),
    ],
)
def test_a_window_asks_for_the_relation_that_held_in_it(
    connection: Connection, during: str, boss: str
) -> None:
    create(connection)
    held = {"Cy": (None, "2026-03-01"), "Dan": ("2026-03-01", "2999-01-01"), "Eve": ("2999-01-01",)}
    for name, valid in held.items():
        fact = related(f"{name} has a houseboat.", "Bo", "reports_to", name)
        fact["relations"][0].update(zip(("valid_from", "valid_to"), valid, strict=False))
        retain(connection, [fact])

    found = reached(connection, "Who was the boss of Bo?", during=during)

    score = found.pop(f"{boss} has a houseboat.").score
    assert all(other.score < 0.8 * score for other in found.values())


@pytest.mark.parametrize(
    ("query", "answers"),
    [
        ("Why did the shop stay shut on Monday?", ["A fuse had blown."]),
        ("What was the root cause of the shut shop?", ["A tile slid off."]),
        ("What did the tile that slid lead to?", ["Rain dripped through the roof."]),
    ],
)
def test_causes_are_followed_as_the_question_asks(
    shop: Connection, query: str, answers: list[str]
) -> None:
    found = recalled(shop, query)

    assert set(answers) < set(found[:3])
    assert not set(answers) & set(recalled(shop, query, weights={"graph": 0}))


@pytest.mark.parametrize("times", [3, 110])
def test_a_cause_that_was_updated_is_as_near_as_before(shop: Connection, times: int) -> None:
    query = "Why did the shop stay shut on Monday?"
    before = reached(shop, query)["A fuse had blown."].score
    fuse = value(shop, "select memory_id from pgrecall.memory where text = 'A fuse had blown.'")
    for n in range(times):
        fuse = value(
            shop,
            "select memory_id from pgrecall.update_memory('b', %s, %s::jsonb)",
            fuse,
            f'{{"tags": ["t{n}"]}}',
        )

    assert reached(shop, query)["A fuse had blown."].score == pytest.approx(before)


def test_a_root_comes_before_the_causes_in_between(shop: Connection) -> None:
    root = reached(shop, "What was the root cause of the shut shop?")
    near = reached(shop, "What was a cause of the shut shop?")

    assert root["A tile slid off."].score > root["A fuse had blown."].score
    assert near["A tile slid off."].score < near["A fuse had blown."].score


def test_a_direction_that_is_asked_for_counts_more_than_the_other(connection: Connection) -> None:
    create(connection)
    retain(
        connection,
        [
            {"text": "The shop stayed shut."},
            {"text": "A fuse had blown.", "links": [{"kind": "causes", "to_index": 0}]},
            {"text": "Bread ran out.", "links": [{"kind": "caused_by", "to_index": 0}]},
        ],
    )

    why = reached(connection, "Why did the shop stay shut?")
    then = reached(connection, "What were the consequences of the shut shop?")

    assert why["A fuse had blown."].score > 2 * why["Bread ran out."].score
    assert then["Bread ran out."].score > 2 * then["A fuse had blown."].score


def test_what_prevents_is_a_cause_only_where_there_is_no_other_or_it_is_asked_for(
    connection: Connection,
) -> None:
    create(connection)
    prevents = {"text": "A guard stood by.", "links": [{"kind": "prevents", "to_index": 0}]}
    retain(connection, [{"text": "The shop stayed shut."}, prevents])
    alone, asked = (
        reached(connection, query)["A guard stood by."].score
        for query in ("Why did the shop stay shut?", "What averted that the shop stayed shut?")
    )
    retain(
        connection,
        [
            {"text": "The shop stayed shut."},
            {"text": "A fuse had blown.", "links": [{"kind": "causes", "to_index": 0}]},
        ],
    )

    why = reached(connection, "Why did the shop stay shut?")
    what = reached(connection, "What prevented that the shop stayed shut?")

    assert why["A guard stood by."].score < 0.5 * why["A fuse had blown."].score
    assert why["A guard stood by."].score < 0.5 * alone
    assert alone == pytest.approx(asked)
    assert what["A guard stood by."].score == pytest.approx(what["A fuse had blown."].score)


def test_a_circle_of_causes_ends(connection: Connection) -> None:
    create(connection)
    first, second = retain(connection, ["The shop stayed shut.", "A fuse had blown."])
    connection.execute(
        "insert into pgrecall.link (bank_id, from_id, to_id, kind, weight)"
        " values ('b', %(a)s, %(b)s, 'causes', 1), ('b', %(b)s, %(a)s, 'causes', 1)",
        {"a": first, "b": second},
    )

    found = reached(connection, "Why did the shop stay shut?")

    assert set(found) == {"The shop stayed shut.", "A fuse had blown."}


def test_a_rare_entity_in_common_leads_on_and_a_frequent_one_does_not(
    connection: Connection,
) -> None:
    create(connection)
    retain(
        connection,
        [
            {"text": "The valve in the press cracked.", "entities": ["VX-77", "Linz"]},
            {"text": "Thirty crates went to Oslo.", "entities": ["VX-77"]},
            *({"text": f"Delivery {n} arrived.", "entities": ["Linz"]} for n in range(600)),
        ],
    )
    query = "What about the cracked valve in the press?"

    rows = call(connection, "hybrid_recall", bank="b", query=query)

    assert [row.text for row in rows] == [
        "The valve in the press cracked.",
        "Thirty crates went to Oslo.",
    ]
    assert rows[1].via["entities"] == ["VX-77"]
    assert rows[1].via["text"] == "The valve in the press cracked."
    assert "path" not in rows[1].via  # it follows no relation


def test_what_was_said_next_is_reached(connection: Connection) -> None:
    create(connection)
    turns = ["w", "v", "zebra", "x", "y"]
    retain(connection, [{"text": turn, "occurred": "2026-03-05"} for turn in turns])

    found = reached(connection, "what of the zebra")

    assert {"v", "x"} < set(found)
    assert reached(connection, "what of the giraffe") == {}


def test_hits_that_lead_nowhere_asked_for_count_less_than_a_path(people: Connection) -> None:
    create(people, "turns")
    turns = [{"text": turn, "occurred": "2026-03-05"} for turn in ("v", "zebra", "x")]
    retain(people, turns, "turns")

    def counted(bank: str, query: str) -> float:
        hits = call(people, "hybrid_recall", bank=bank, query=query, weights={"graph": 61})
        return float(max(hit.arms["graph"]["contribution"] for hit in hits if "graph" in hit.arms))

    assert counted("b", "Who mentors Ana?") >= 1
    assert counted("turns", "what of the zebra") < 0.9


def test_similar_facts_lead_nowhere(connection: Connection) -> None:
    create(connection)
    retain(
        connection,
        [
            {"text": "zebra", "embedding": [1, 0, 0], "entities": ["Zoe"]},
            {"text": "horse", "embedding": [0.9, 0.1, 0]},
        ],
    )

    assert "horse" not in reached(connection, "zebra of Zoe")


def test_mass_is_shared_out_among_all_that_an_entity_leads_to(connection: Connection) -> None:
    create(connection)
    few = [{"text": f"few {n}", "entities": ["Few"]} for n in range(2)]
    many = [{"text": f"many {n}", "entities": ["Many"]} for n in range(50)]
    retain(connection, [*few, *many])

    def score(query: str, text: str) -> float:
        rows = call(connection, "entity_walk", bank="b", query=query, hops=0)
        memory_id = value(connection, "select memory_id from pgrecall.memory where text = %s", text)
        return next(float(row.score) for row in rows if row.memory_id == memory_id)

    assert score("of Few", "few 0") == pytest.approx(score("of Many", "many 0") * 5)


def test_one_rare_entity_leads_further_than_six_frequent_ones(connection: Connection) -> None:
    create(connection)
    frequent = [f"Frequent {n}" for n in range(6)]
    retain(
        connection,
        [
            {"text": "zebra", "entities": [*frequent, "Rare"]},
            {"text": "shares the frequent ones", "entities": frequent},
            {"text": "shares the rare one", "entities": ["Rare"]},
            *({"text": f"{name}, {n}", "entities": [name]} for name in frequent for n in range(6)),
        ],
    )

    found = [*reached(connection, "zebra")]

    assert found.index("shares the rare one") < found.index("shares the frequent ones")


def test_what_is_asked_for_keeps_to_types_filter_and_time(people: Connection) -> None:
    query = "Where does the boss of Ana's mentor live?"

    assert HOUSEBOAT not in reached(people, query, fact_types=["event"])
    assert HOUSEBOAT not in reached(
        people, query, filter="text <> 'Cy keeps a houseboat in Porto.'"
    )
    assert HOUSEBOAT not in reached(people, query, as_of="2020-01-01")


@pytest.mark.parametrize("query", ["What of Ana?", "Who is the boss of Ana?"])
def test_a_relation_that_has_not_begun_leads_nowhere(connection: Connection, query: str) -> None:
    create(connection)
    fact = related("Ana will answer to Bo.", "Ana", "reports_to", "Bo")
    fact["relations"][0]["valid_from"] = "2100-01-01"
    retain(connection, [fact, {"text": "Bo sails.", "entities": ["Bo"]}])

    found = reached(connection, query)

    assert found
    assert not [text for text, hit in found.items() if "reports_to" in str(hit.via)]


def test_a_relation_that_nobody_knew_leads_nowhere(connection: Connection) -> None:
    create(connection)
    retain(connection, PEOPLE)
    connection.execute(
        "update pgrecall.memory set valid_from = '2020-01-01' where text = %s", [HOUSEBOAT]
    )
    query = "What of the blorf of Bo?"

    assert HOUSEBOAT in reached(connection, query, graph_steps=2)
    assert HOUSEBOAT not in reached(connection, query, graph_steps=2, as_of="2021-01-01")


def test_an_expansion_tells_causes_from_entities(shop: Connection) -> None:
    retain(shop, [{"text": f"about Zoe {n}", "entities": ["Zoe"]} for n in range(2)])
    first, about = (
        value(shop, "select memory_id from pgrecall.memory where text = %s", text)
        for text in ("The shop stayed shut on Monday.", "about Zoe 0")
    )

    rows = call(shop, "link_expansion", bank="b", seeds=[first, about])

    assert {row.memory_id for row in rows}.isdisjoint({first, about}) or rows
    assert all(row.score == row.entity_score + row.semantic_score + row.causal_score
               for row in rows)  # fmt: skip
    assert {bool(row.causal_score) for row in rows} == {True, False}


def test_messages_are_no_start_of_the_graph(shop: Connection) -> None:
    query = "Why was the shop shut?"
    before = {text: hit.score for text, hit in reached(shop, query).items()}
    call(shop, "retain_messages", bank="b", messages=[{"text": "The shop was shut."}])

    assert {text: hit.score for text, hit in reached(shop, query).items()} == before


@pytest.mark.parametrize(
    ("options", "status"),
    [({}, "skipped"), ({"budget": "high"}, "ran"), ({"arms": ["lexical", "graph"]}, "ran")],
)
def test_a_graph_that_leads_nowhere_is_skipped_unless_it_is_asked_for(
    connection: Connection, options: dict[str, Any], status: str
) -> None:
    create(connection)
    retain(connection, ["a zebra", {"text": "a crane", "entities": ["Ana"]}])

    report = call(connection, "explain_recall", bank="b", query="zebra", **options)

    assert {row.arm: row.status for row in report}["graph"] == status


def test_strong_seeds_lead_on_more_than_weak_ones(connection: Connection) -> None:
    create(connection)
    a, a2, b, b2 = retain(
        connection,
        [{"text": f"{name} {n}", "entities": [name]} for name in ("Ana", "Bo") for n in range(2)],
    )

    rows = call(connection, "link_expansion", bank="b", seeds=[a, b], strengths=[0.9, 0.1])

    assert [memory for memory in ids(rows) if memory in (a2, b2)] == [a2, b2]


def test_the_graph_is_planned_where_a_bank_has_edges(people: Connection) -> None:
    create(people, "empty")
    retain(people, ["alone"], bank="empty")

    def status(bank: str) -> str:
        [row] = [r for r in planned(people, bank=bank, query="Ana?") if r.arm == "graph"]
        return str(row.status)

    assert (status("b"), status("empty")) == ("planned", "skipped")


def test_whether_a_bank_has_edges_is_not_looked_up_where_a_name_has_mentions(
    people: Connection,
) -> None:
    people.execute(
        "create or replace function pgrecall_internal._has_edge(bank text) returns boolean"
        " language sql stable return false"
    )

    def status(query: str) -> str:
        [row] = [r for r in planned(people, bank="b", query=query) if r.arm == "graph"]
        return str(row.status)

    assert (status("Ana?"), status("who wrote?")) == ("planned", "skipped")


@pytest.mark.parametrize(
    ("prefer", "first"), [("latest", "plan 3"), ("former", "plan 1"), ("relevant", None)]
)
def test_time_decides_among_rows_that_say_nearly_the_same(
    connection: Connection, prefer: str, first: str | None
) -> None:
    create(connection)
    days = {"plan 2": "2026-02-01", "plan 1": "2026-01-01", "plan 3": "2026-03-01"}
    retain(
        connection,
        [
            *(
                {"text": f"We decided on {plan} for the canteen", "occurred": day}
                for plan, day in days.items()
            ),
            {"text": "The canteen is painted green", "occurred": "2026-06-01"},
        ],
    )

    found = recalled(connection, "what did we decide for the canteen?", prefer=prefer)

    assert found[-1] == "The canteen is painted green"
    assert first is None or found[0] == f"We decided on {first} for the canteen"


@pytest.mark.parametrize("prefer", ["latest", "former"])
def test_time_decides_only_among_facts_about_who_is_named(
    connection: Connection, prefer: str
) -> None:
    create(connection)
    rents = [
        ("Hedda", "Kiel", "2024-01-01"),
        ("Hedda", "Linz", "2025-01-01"),
        ("Magna", "Metz", "2023-01-01"),
        ("Magna", "Graz", "2026-01-01"),
    ]
    retain(
        connection,
        [
            {"text": f"{who} rents a garage in {town}.", "occurred": day, "entities": [who, town]}
            for who, town, day in rents
        ],
    )

    found = recalled(connection, "Where does Hedda rent a garage?", prefer=prefer)

    town = "Linz" if prefer == "latest" else "Kiel"
    assert found[0] == f"Hedda rents a garage in {town}."


def test_what_lies_in_a_window_comes_before_what_spans_it(connection: Connection) -> None:
    create(connection)
    retain(
        connection,
        [
            *(
                {"text": f"standing {n}", "occurred": ["2020-01-01", "2030-01-01"]}
                for n in range(20)
            ),
            {"text": "the event", "occurred": "2026-03-05"},
        ],
    )

    rows = call(connection, "temporal_arm", bank="b", during="[2026-03-02, 2026-03-09)")

    assert (rows[0].rank, rows[1].rank) == (1, 2)
    assert value(connection, "select text from pgrecall.memory where memory_id = %s",
                 rows[0].memory_id) == "the event"  # fmt: skip


def test_equal_scores_share_a_rank(connection: Connection) -> None:
    create(connection)
    retain(connection, [{"text": f"tide {n}", "fact_key": "tide"} for n in range(3)])

    hits = call(connection, "arm_hits", bank="b", query="tide")

    assert {hit.rank for hit in hits if hit.arm == "key"} == {1}


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("Who is the proprietor of what stalled in Tromso?", "The keys hang in the hall."),
        ("To whom does the thing that stalled in Tromso belong?", "The keys hang in the hall."),
        ("Who owns the vessel that sprang a leak?", "Papers are in the safe."),
        ("Who is the boss of the owner of what stalled in Tromso?", "Lunch is at noon."),
    ],
)
def test_a_chain_starts_from_what_a_question_describes(
    connection: Connection, query: str, answer: str
) -> None:
    create(connection)
    retain(
        connection,
        [
            {"text": "In Tromso the van Bertha stalled.", "entities": ["Bertha", "Tromso"]},
            {"text": "In Narvik the boat Petrel sprang a leak.", "entities": ["Petrel", "Narvik"]},
            related("The keys hang in the hall.", "Ana", "owns", "Bertha"),
            related("Papers are in the safe.", "Bo", "owns", "Petrel"),
            related("Lunch is at noon.", "Ana", "reports_to", "Cy"),
            related("It rains a lot.", "Tromso", "located_in", "Norway"),
            related("She came by train.", "Dot", "lives_in", "Tromso"),
        ],
    )

    assert answer in recalled(connection, query)[:4]
    assert answer not in recalled(connection, query, weights={"graph": 0})


def test_causes_of_the_same_elsewhere_come_after_what_befell_who_is_named(
    connection: Connection,
) -> None:
    create(connection)
    outage = "The sewer pump in {} failed: a gasket of lot {} was torn."
    lots = [("Graz", "Q-1"), ("Linz", "Q-2")]
    retain(connection, [
        *({"text": outage.format(*lot), "entities": lot} for lot in lots),
        {"text": "The sewer pump in Porto failed: its gasket was torn.", "entities": ["Porto"]},
        {"text": "A frog had got in.", "links": [{"kind": "causes", "to_index": 2}]},
        *({"text": f"Bo glued {lot}.", "entities": [lot]} for _, lot in lots),
    ])  # fmt: skip

    def first(city: str) -> str:
        found = reached(connection, f"Why did the sewer pump in {city} fail?")
        return next(text for text in found if text in {"Bo glued Q-1.", "A frog had got in."})

    assert first("Graz") == "Bo glued Q-1."
    assert first("Porto") == "A frog had got in."


def test_what_else_the_author_of_one_of_several_hits_has_said_is_left_out(
    connection: Connection,
) -> None:
    create(connection)
    retain(
        connection,
        [
            {"text": "The printer jams.", "entities": ["Ana", "Tray 2"]},
            {"text": "The printer beeps.", "entities": ["Bo", "Tray 2"]},
            {"text": "Thanks, see you!", "entities": ["Ana"]},
            {"text": "Paper got damp.", "entities": ["Tray 2"]},
        ],
    )
    authored, shared = "Thanks, see you!", "Paper got damp."

    several = reached(connection, "the printer")
    assert shared in several
    assert authored not in several
    assert authored in reached(connection, "what jams")
    assert authored in reached(connection, "the printer and Ana")
