"""What is some steps away: chains of relations, causes, rare entities in common, what came last."""

from __future__ import annotations

from typing import Any

import pytest

from sqlcalls import Connection, call, counted_scans, create, planned, recalled, retain, value

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
CHAIN: list[dict[str, Any]] = [
    {"text": "The shop stayed shut on Monday."},
    {
        "text": "A fuse had blown.",
        "links": [{"kind": "causes", "to_index": 0}],
    },
    {
        "text": "Rain dripped through the roof.",
        "links": [{"kind": "causes", "to_index": 1}],
    },
]
# Words that no lexicon has, for the relations and for what asks for them.
MADE_UP: list[tuple[str, str, str, str]] = [
    ("A zump with Bo.", "Ana", "zumps", "Bo"),
    ("Cy began to trelk.", "Cy", "trelks", "Ana"),
    ("Quibs at noon.", "Bo", "quibs", "Dot"),
    ("Gronks at dusk.", "Dot", "gronks", "Eve"),
]


def related(
    text: str, from_: str, kind: str, to: str, embedding: object = None, **more: object
) -> dict[str, Any]:
    relation = {"from": from_, "kind": kind, "to": to}
    more |= {"embedding": embedding} if embedding else {}
    return {"text": text, "entities": [from_, to], "relations": [relation], **more}


def led_to(connection: Connection, query: str, **options: Any) -> dict[str, Any]:
    """Hits of the relation arm by text, best first."""
    hits = call(connection, "arm_hits", bank="b", query=query, arms=["relation"], **options)
    text = "select text from pgrecall.memory where memory_id = %s"
    return {value(connection, text, hit.memory_id): hit for hit in hits}


@pytest.fixture
def people(connection: Connection) -> Connection:
    create(connection)
    retain(connection, [*PEOPLE, *NOISE])
    return connection


@pytest.fixture
def shop(connection: Connection) -> Connection:
    create(connection)
    retain(connection, CHAIN)
    return connection


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("Who mentors Ana?", "Ana learns the trade with Bo."),
        ("Who does Ana's mentor report to?", "Bo's day begins with a call to Cy."),
        ("Who is the boss of Ana's mentor?", "Bo's day begins with a call to Cy."),
        ("Where does the supervisor of Bo live?", "Cy keeps a houseboat in Porto."),
        ("Where does the boss of Ana's mentor live?", "Cy keeps a houseboat in Porto."),
        ("What is the home town of the manager of Ana's coach?", "Cy keeps a houseboat in Porto."),
    ],
)
def test_a_chain_of_relations_reaches_its_answer(
    people: Connection, query: str, answer: str
) -> None:
    assert recalled(people, query)[0] == answer


def test_only_the_relation_arm_reaches_it(people: Connection) -> None:
    query = "Where does the boss of Ana's mentor live?"

    without = recalled(people, query, weights={"relation": 0})

    assert "Cy keeps a houseboat in Porto." not in without[:3]


def test_a_row_tells_the_path_that_led_to_it(people: Connection) -> None:
    [row] = call(
        people, "hybrid_recall", bank="b", query="Who is the boss of Ana's mentor?", top_k=1
    )

    assert row.via["entities"] == ["Ana", "Bo", "Cy"]
    assert row.via["relations"] == ["mentors", "reports_to"]
    assert len(row.via["facts"]) == 2
    assert row.via["path"] == "Ana ← mentors ← Bo → reports_to → Cy"
    assert row.via["text"] == "Ana learns the trade with Bo."
    assert row.arms["relation"]["via"].items() < row.via.items()


def test_the_report_of_the_relation_arm_names_its_best_path(people: Connection) -> None:
    rows = call(people, "explain_recall", bank="b", query="Who is the boss of Ana's mentor?")

    assert [row.reason for row in rows if row.arm == "relation"] == [
        "Ana ← mentors ← Bo → reports_to → Cy"
    ]


def test_a_row_tells_what_led_to_its_cause(shop: Connection) -> None:
    query = "What was the root cause of the shut shop?"

    [row] = call(shop, "hybrid_recall", bank="b", query=query, arms=["lexical", "cause"], top_k=1)

    assert row.text == "Rain dripped through the roof."
    assert row.via["text"] == "The shop stayed shut on Monday. ← A fuse had blown."


def test_the_path_of_a_row_tells_nothing_that_the_filter_leaves_out(people: Connection) -> None:
    hidden = value(people, "select memory_id from pgrecall.memory where text ~ 'Ana learns'")

    [row] = call(
        people,
        "hybrid_recall",
        bank="b",
        query="Who is the boss of Ana's mentor?",
        filter=f"memory_id <> {hidden}",
        top_k=1,
    )

    assert row.via["entities"] == ["Ana", "Bo", "Cy"]
    assert "text" not in row.via


def test_a_path_is_told_in_short(connection: Connection) -> None:
    create(connection)
    words = "the mill stood still " * 50
    chain = [
        {"text": f"{n}: {words}", "links": [{"kind": "causes", "to_index": n}]} for n in range(3)
    ]
    retain(connection, [{"text": "The bakery closed early."}, *chain])

    rows = call(
        connection,
        "hybrid_recall",
        bank="b",
        query="Why had the bakery closed early?",
        arms=["lexical", "cause"],
    )

    texts = [row.via["text"] for row in rows if row.via]
    assert max(text.count(" ← ") for text in texts) == 2
    assert max(len(text) for text in texts) <= 24 + 3 + 200 + 3 + 200


def test_a_relation_that_is_not_there_leads_nowhere(people: Connection) -> None:
    rows = call(people, "hybrid_recall", bank="b", query="Where does the wife of Ana live?")

    assert all("relation" not in row.arms for row in rows)


def test_a_bank_has_words_of_its_own(people: Connection) -> None:
    query = "Where does the skipper of Bo live?"
    words = {"skipper": ["noun>reports_to"]}

    assert recalled(people, query)[0] != "Cy keeps a houseboat in Porto."
    assert recalled(people, query, relation_words=words)[0] == "Cy keeps a houseboat in Porto."


def test_a_relation_that_has_ended_is_not_followed(people: Connection) -> None:
    people.execute("update pgrecall.relation set valid_to = '2026-01-01' where kind = 'reports_to'")

    rows = call(people, "hybrid_recall", bank="b", query="Who is the boss of Bo?")

    assert all("relation" not in row.arms for row in rows)


@pytest.fixture
def made_up(connection: Connection) -> Connection:
    create(connection)
    vectors = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]
    retain(
        connection,
        [related(*fact, embedding=vector) for fact, vector in zip(MADE_UP, vectors, strict=True)],
    )
    return connection


@pytest.mark.parametrize(
    "query",
    [
        "Who is Ana's blorf?",
        "Who is the blorf of Ana?",
        "Who is the one Ana blorfs?",
        "Who is the one who blorfs Ana?",
    ],
)
def test_an_unknown_word_where_only_a_relation_can_stand_means_any(
    made_up: Connection, query: str
) -> None:
    found = led_to(made_up, query, embedding=[1, 1, 0])

    assert {"A zump with Bo.", "Cy began to trelk."} < found.keys()
    assert max(hit.score for hit in found.values()) <= 0.5


@pytest.mark.parametrize("query", ["Does Ana blorf on Mondays?", "Who blorfs Ana?", "Blorf, Ana!"])
def test_nothing_is_guessed_where_a_word_may_be_anything_else(
    made_up: Connection, query: str
) -> None:
    assert led_to(made_up, query) == {}


@pytest.mark.parametrize(
    "query", ["Who is Ana's blorf's snurk?", "Who is the wuggle of Ana's blorf's snurk?"]
)
def test_two_words_are_guessed_at_most(made_up: Connection, query: str) -> None:
    found = led_to(made_up, query)

    assert {hit.via["path"] for hit in found.values()} == {"Ana → zumps → Bo → quibs → Dot"}
    assert max(hit.score for hit in found.values()) <= 0.25


def test_relations_that_fit_confirm_one_that_is_guessed(made_up: Connection) -> None:
    retain(made_up, [related("Up the hill.", "Bo", "lives_in", "Turku")])

    alone = led_to(made_up, "Who is Ana's blorf?")["A zump with Bo."].score
    confirmed = led_to(made_up, "Where does Ana's blorf live?")["Up the hill."].score

    assert confirmed == pytest.approx(alone**0.5)


@pytest.mark.parametrize(
    ("embedding", "first"), [([1, 0, 0], "A zump with Bo."), ([0, 1, 0], "Cy began to trelk.")]
)
def test_what_is_guessed_goes_by_how_near_its_facts_are(
    made_up: Connection, embedding: list[int], first: str
) -> None:
    found = led_to(made_up, "Who is Ana's blorf?", embedding=embedding)

    assert next(iter(found)) == first
    assert found[first].score == pytest.approx(0.5)


@pytest.mark.parametrize(("kind", "is_guessed"), [("line_director_of", True), ("lives_in", False)])
def test_a_word_of_the_lexicon_may_mean_a_kind_that_the_lexicon_lacks(
    connection: Connection, kind: str, is_guessed: bool
) -> None:
    create(connection)
    retain(connection, [related("Seen with Bo.", "Bo", kind, "Ana")])

    assert bool(led_to(connection, "Who is Ana's boss?")) is is_guessed


@pytest.mark.parametrize("kind", ["line_director_of", "zumps"])
def test_nothing_is_guessed_where_a_relation_fits(connection: Connection, kind: str) -> None:
    create(connection)
    retain(
        connection,
        [
            related("Cy sits upstairs.", "Ana", "reports_to", "Cy"),
            related("Seen with Bo.", "Bo", kind, "Ana"),
        ],
    )

    assert list(led_to(connection, "Who is Ana's boss?")) == ["Cy sits upstairs."]


def test_a_query_for_a_former_state_follows_a_relation_that_has_ended(people: Connection) -> None:
    people.execute("update pgrecall.relation set valid_to = '2020-01-01' where kind = 'reports_to'")
    query = "Who was the boss of Bo?"

    assert led_to(people, query) == {}
    assert "Bo's day begins with a call to Cy." in led_to(people, query, prefer="former")


@pytest.mark.parametrize(
    "query", ["Which company built Wagon?", "By which company was Ana's blorf built?"]
)
def test_a_noun_that_says_what_the_answer_is_does_not_end_the_chain(
    connection: Connection, query: str
) -> None:
    create(connection)
    retain(
        connection,
        [
            related("Wagon is kept in a shed.", "Ana", "owns", "Wagon"),
            related("A plate tells where Wagon is from.", "Wagon", "made_by", "Nimbus"),
        ],
    )

    assert "A plate tells where Wagon is from." in led_to(connection, query)


def test_the_verb_right_after_a_name_binds_before_the_words_before_it(
    connection: Connection,
) -> None:
    create(connection)
    # In the order of the alphabet the other way of reading it would come first.
    retain(
        connection,
        [
            related("Dorothea is led by Bo.", "Dorothea", "reports_to", "Bo"),
            related("Cy has taught Bo.", "Cy", "mentors", "Bo"),
            related("Dorothea learns from Eve.", "Eve", "mentors", "Dorothea"),
            related("Dorothea teaches Flo.", "Dorothea", "mentors", "Flo"),
            related("Eve is led by Gus.", "Eve", "reports_to", "Gus"),
            related("Flo is led by Hal.", "Flo", "reports_to", "Hal"),
        ],
    )

    found = led_to(connection, "Who mentors the person Dorothea answers to?")

    assert next(iter(found)) == "Cy has taught Bo."
    assert {"Eve is led by Gus.", "Flo is led by Hal."}.isdisjoint(found)


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("Why did the shop stay shut on Monday?", "A fuse had blown."),
        ("What was the root cause of the shut shop?", "Rain dripped through the roof."),
        ("What did the rain through the roof lead to?", "A fuse had blown."),
    ],
)
def test_causes_are_followed_as_the_question_asks(
    shop: Connection, query: str, answer: str
) -> None:
    assert recalled(shop, query)[0] == answer
    assert recalled(shop, query, weights={"cause": 0})[0] != answer


def test_a_cause_three_links_away_is_found_by_its_arm_alone(connection: Connection) -> None:
    create(connection)
    retain(
        connection,
        [*CHAIN, {"text": "A tile slid off.", "links": [{"kind": "causes", "to_index": 2}]}],
    )
    query = "Why did the shop stay shut on Monday?"

    found = recalled(connection, query)
    without = recalled(connection, query, weights={"cause": 0})

    assert "A tile slid off." in found
    assert "A tile slid off." not in without


def test_hubs_of_causes_cost_no_more_than_the_best_hundred(connection: Connection) -> None:
    create(connection)
    (shop,) = retain(connection, ["The shop stayed shut."])
    connection.execute(
        # 1, 20, 400 and 400 causes: each of the first two steps has 20.
        "with fact as (select m.memory_id, m.n from pgrecall.retain('b', (select jsonb_agg("
        " jsonb_build_object('text', 'Blorf ' || n) order by n) from generate_series(1, 820) n))"
        " with ordinality as m(index, memory_id, is_new, n))"
        " insert into pgrecall.link (bank_id, from_id, to_id, kind, weight)"
        " select 'b', c.memory_id, coalesce(e.memory_id, %s), 'causes', 1"
        " from fact c left join fact e on e.n = case when c.n <= 420 then (c.n - 1) / 20"
        " else c.n - 400 end",
        [shop],
    )

    with counted_scans(connection) as scans:
        hits = call(connection, "arm_hits", bank="b", query="Why did the shop stay shut?",
                    arms=["lexical", "cause"])  # fmt: skip

    assert sum(hit.arm == "cause" for hit in hits) == 20
    assert sum(n for name, n in scans.items() if name.startswith("link")) <= 2 * (5 + 100 + 100)


@pytest.mark.parametrize(
    ("query", "direction"),
    [
        ("Why was the gate left open?", "cause"),
        ("How come the gate was left open?", "cause"),
        ("Who is to blame for the open gate?", "cause"),
        ("What kept the gate from closing?", "cause"),
        ("Warum stand das Tor offen?", "cause"),
        ("What was the root cause of the flood?", "root"),
        ("What ultimately led to the flood?", "root"),
        ("What lies at the bottom of the flood?", "root"),
        ("What set the whole affair in motion?", "root"),
        ("How did it all begin?", "root"),
        ("What can the flood be traced back to?", "root"),
        ("What did the flood lead to?", "effect"),
        ("What were the consequences of the flood?", "effect"),
        ("What was the upshot of the flood?", "effect"),
        ("What happened as a result of the flood?", "effect"),
        ("Who drove the car?", None),
        ("What kind of car is it?", None),
        ("Where did Ana leave the car?", None),
        ("When does the shop open?", None),
    ],
)
def test_a_question_tells_which_way_to_follow_causes(
    connection: Connection, query: str, direction: str | None
) -> None:
    assert value(connection, "select pgrecall_internal._cause_direction(%s)", query) == direction


def test_each_cause_counts_less_by_the_decay(shop: Connection) -> None:
    query = "Why did the shop stay shut on Monday?"

    def score(decay: float) -> float:
        arms = ["lexical", "cause"]
        rows = call(shop, "hybrid_recall", bank="b", query=query, cause_decay=decay, arms=arms)
        (found,) = (row for row in rows if row.text == "Rain dripped through the roof.")
        return float(found.arms["cause"]["score"])

    assert score(0.5) == pytest.approx(0.25 * score(1))


def test_no_cause_is_looked_for_where_none_is_asked_for(shop: Connection) -> None:
    rows = planned(shop, bank="b", query="When did the shop open?")

    assert {row.reason for row in rows if row.arm == "cause"} == {
        "the query asks for no cause or consequence"
    }


def test_a_rare_entity_in_common_leads_on(connection: Connection) -> None:
    create(connection)
    retain(
        connection,
        [
            {"text": "The valve in the press cracked.", "entities": ["VX-77", "Linz"]},
            {"text": "Thirty crates went to Oslo.", "entities": ["VX-77"]},
            *({"text": f"Delivery {n} arrived.", "entities": ["Linz"]} for n in range(30)),
        ],
    )
    query = "What about the cracked valve in the press?"

    found = recalled(connection, query)

    assert "Thirty crates went to Oslo." in found
    [row] = [row for row in call(connection, "hybrid_recall", bank="b", query=query) if row.via]
    assert row.via["entities"] == ["VX-77"]
    assert row.via["text"] == "The valve in the press cracked."
    assert not any(text.startswith("Delivery") for text in found)
    assert "Thirty crates went to Oslo." not in recalled(connection, query, rare_mentions=0)


def test_what_other_arms_lift_does_not_keep_the_best_hit_from_leading_on(
    connection: Connection,
) -> None:
    create(connection)
    retain(
        connection,
        [
            *({"text": f"Press {n} broke.", "occurred": f"2026-03-0{n}"} for n in range(1, 6)),
            {"text": "Press blorf broke.", "occurred": "2020-01-01", "entities": ["VX-77"]},
            {"text": "Thirty crates went to Oslo.", "entities": ["VX-77"]},
        ],
    )

    hits = call(
        connection,
        "arm_hits",
        bank="b",
        query="press blorf",
        during="[2026-03-01,2026-03-08)",
        arms=["lexical", "temporal", "shared"],
    )

    assert sum(hit.arm == "temporal" for hit in hits) >= 5
    assert sum(hit.arm == "shared" for hit in hits) == 1


@pytest.mark.parametrize(
    ("query", "is_led_on"),
    [
        ("Who else got the odd blorf that Orlo got?", True),
        ("Apart from Orlo, who had trouble?", True),
        ("Wer hatte außer Orlo noch Ärger?", True),
        ("¿Quién más tuvo problemas como Orlo?", True),
        ("Hormis Orlo, qui a eu des ennuis ?", True),
        ("Oltre a Orlo, chi ha avuto problemi?", True),
        ("Wie had er nog last van, behalve Orlo?", True),
        ("Quem mais teve problemas como a Orlo?", True),
        ("What trouble did Orlo have last?", False),
        ("Who else had trouble with the blorf?", False),
    ],
)
def test_a_question_for_others_is_led_on_by_who_is_named(
    connection: Connection, query: str, is_led_on: bool
) -> None:
    create(connection)
    retain(
        connection,
        [
            {"text": "Orlo found VX-77 cracked.", "entities": ["Orlo", "VX-77"]},
            {"text": "Thirty crates went to Oslo.", "entities": ["VX-77"]},
            {"text": "A balcony fell.", "entities": ["VX-77"]},
            {"text": "Orlo painted the fence.", "entities": ["Orlo"]},
            *({"text": f"Who had what trouble with blorf {n}?"} for n in range(9)),
        ],
    )

    hits = call(connection, "arm_hits", bank="b", query=query, arms=["lexical", "shared"])

    assert any(hit.arm == "shared" for hit in hits) is is_led_on


def test_causes_are_followed_from_the_hits_that_have_some(connection: Connection) -> None:
    create(connection)
    noise = [{"text": f"Why the shop stayed shut: rumour {n}."} for n in range(9)]
    retain(connection, [*CHAIN, *noise])

    hits = call(
        connection,
        "arm_hits",
        bank="b",
        query="Why did the shop stay shut, rumour or not?",
        arms=["lexical", "cause"],
    )

    assert sum(hit.arm == "cause" for hit in hits) == 2


@pytest.mark.parametrize(
    ("floor", "score"), [(None, 0.6 / 0.6 / 2), (0.6, 0.2 / 0.3 / 2), (-1, 0.8 / 0.75 / 2)]
)
def test_a_hit_leads_on_by_how_far_it_is_above_the_floor(
    connection: Connection, floor: float | None, score: float
) -> None:
    create(connection)
    retain(
        connection,
        [
            {"text": "A valve cracked.", "entities": ["VX-77"], "embedding": [0.8, 0.6]},
            {"text": "Thirty crates went to Oslo.", "entities": ["VX-77"]},
        ],
    )
    options = {} if floor is None else {"similarity_floor": floor}

    hits = call(
        connection,
        "arm_hits",
        bank="b",
        query=None,
        embedding=[1, 0],
        arms=["semantic", "shared"],
        **options,
    )

    assert [hit.score for hit in hits if hit.arm == "shared"] == [pytest.approx(score, rel=1e-3)]


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


@pytest.mark.parametrize(
    ("prefer", "first"), [("latest", "A horse ran past."), ("former", "The gate was painted.")]
)
def test_time_decides_among_rows_that_end_the_same_chain(
    connection: Connection, prefer: str, first: str
) -> None:
    create(connection)
    retain(
        connection,
        [
            related("Lunch was late.", "Bo", "reports_to", "Cy", occurred="2025-01-01"),
            related("A horse ran past.", "Bo", "reports_to", "Dan", occurred="2026-01-01"),
            related("The gate was painted.", "Bo", "reports_to", "Eve", occurred="2024-01-01"),
        ],
    )

    assert recalled(connection, "Who is the boss of Bo?", prefer=prefer)[0] == first


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


@pytest.fixture
def broken(connection: Connection) -> Connection:
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
    return connection


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("Who is the proprietor of what stalled in Tromso?", "The keys hang in the hall."),
        ("To whom does the thing that stalled in Tromso belong?", "The keys hang in the hall."),
        ("Who owns the vessel that sprang a leak?", "Papers are in the safe."),
        ("Whose van is it that stalled in Tromso?", "The keys hang in the hall."),
        ("Whose car would not start in Tromso?", "The keys hang in the hall."),
        ("Who is the boss of the owner of what stalled in Tromso?", "Lunch is at noon."),
        ("Wem gehört das Schiff, dem in Narvik a leak sprang?", "Papers are in the safe."),
    ],
)
def test_a_chain_starts_from_what_a_question_describes(
    broken: Connection, query: str, answer: str
) -> None:
    arms = ["lexical", "relation"]

    hits = call(broken, "arm_hits", bank="b", query=query, arms=arms)

    best = next(hit.memory_id for hit in hits if hit.arm == "relation")
    assert value(broken, "select text from pgrecall.memory where memory_id = %s", best) == answer


@pytest.mark.parametrize(
    "query",
    ["What stalled in Tromso?", "What is known of the van that stalled?", "Whose turn is it?"],
)
def test_nothing_is_described_where_no_relation_is_asked_for(
    broken: Connection, query: str
) -> None:
    hits = call(broken, "arm_hits", bank="b", query=query, arms=["lexical", "relation"])

    assert {hit.arm for hit in hits} <= {"lexical"}
