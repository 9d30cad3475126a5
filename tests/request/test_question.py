"""What a question is about: its time, the types it hints at, and the arms worth asking for it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import psycopg
import pytest

from pgrecall import Recall
from sqlcalls import Connection, call, counted_scans, create, ids, planned, refused, retain

MARCH = "[2026-03-01,2026-04-01)"
REGISTERED = ["key", "semantic", "lexical", "temporal", "message", "hypothetical", "graph",
              "source"]  # fmt: skip
# Its weight is 0 unless a bank or a call says otherwise.
ALL_ARMS = [arm for arm in REGISTERED if arm != "source"]


def texts(connection: Connection, query: str | None, **arguments: Any) -> list[str]:
    rows = call(connection, "hybrid_recall", bank="b", query=query, top_k=50, **arguments)
    return [row.text for row in rows]


def plan(connection: Connection, query: str | None, **arguments: Any) -> dict[str, Any]:
    rows = planned(connection, bank="b", query=query, **arguments)
    assert [row.arm for row in rows] == REGISTERED
    return {row.arm: row for row in rows}


def runs(connection: Connection, query: str | None, **arguments: Any) -> set[str]:
    return {
        arm for arm, row in plan(connection, query, **arguments).items() if row.status == "planned"
    }


def ran(connection: Connection, query: str | None, **arguments: Any) -> dict[str, str | None]:
    rows = call(connection, "explain_recall", bank="b", query=query, **arguments)
    return {row.arm: row.reason for row in rows if row.status == "ran"}


# windows


@pytest.mark.parametrize(
    ("during", "end"),
    [
        ("[2026-03-01,2026-03-01]", "2026-03-08T00:00:00+00:00"),
        ("[2026-03-01,2026-03-02)", "2026-03-09T18:00:00+00:00"),
        (MARCH, "2026-05-01T06:00:00+00:00"),
        ("[2026-01-01,2027-01-01)", "2027-02-07T00:00:00+00:00"),
        ("(,2026-03-01)", "2026-03-08T00:00:00+00:00"),
    ],
)
def test_a_longer_window_reaches_further_beyond_its_end(
    connection: Connection, during: str, end: str
) -> None:
    create(connection)
    before = datetime.fromisoformat(end) - timedelta(hours=1)
    late, _ = retain(
        connection,
        [{"text": t, "occurred": t} for t in (before.isoformat(), end)],
        link="deferred",
    )

    found = call(connection, "temporal_arm", bank="b", during=during)

    assert ids(found) == [late]
    assert 0 < found[0].score < 0.01


def test_the_time_of_saying_counts_only_where_asked_for_and_no_other_is_known(
    connection: Connection,
) -> None:
    create(connection)
    said = {"mentioned_at": "2026-03-10"}
    untimed, _, timed = retain(
        connection,
        [
            {"text": "untimed", **said},
            {"text": "long ago", "occurred": "2020-01-01", **said},
            {"text": "timed", "occurred": "2026-03-10", "mentioned_at": "2026-06-01"},
        ],
        link="deferred",
    )

    plain = call(connection, "temporal_arm", bank="b", during=MARCH)
    mentioned = call(connection, "temporal_arm", bank="b", during=MARCH, time_basis="mentioned")

    assert ids(plain) == [timed]
    assert {row.memory_id: row.score for row in mentioned} == {timed: 1, untimed: 1}


@pytest.mark.parametrize(
    ("during", "found"),
    [
        (MARCH, {"untimed", "timed"}),
        ("[2026-03-05,)", {"untimed", "timed"}),
        ("(,2026-03-05)", {"long ago"}),
        ("[2026-03-10,2026-03-10]", {"untimed", "timed"}),
    ],
)
def test_a_filtering_window_takes_the_time_of_saying_too_where_asked_for(
    connection: Connection, during: str, found: set[str]
) -> None:
    create(connection)
    said = {"mentioned_at": "2026-03-10"}
    retain(
        connection,
        [
            {"text": "untimed", **said},
            {"text": "long ago", "occurred": "2020-01-01", **said},
            {"text": "timed", "occurred": "2026-03-10", **said},
        ],
    )

    rows = texts(connection, "untimed timed long ago", during=during, time_mode="filter",
                 time_basis="mentioned")  # fmt: skip

    assert set(rows) == found


SPANS: dict[str, Any] = {
    "always": [None, None],
    "once": [None, "2026-03-04"],
    "before": ["2025-01-01", "2026-02-01"],
    "whole": ["2026-02-01", "2026-05-01"],
    "exact": ["2026-03-01", "2026-04-01"],
    "began": ["2026-03-20", "2026-05-01"],
    "ended": ["2025-01-01", "2026-04-01"],
    "day": "2026-03-10",
    "instant": "2026-03-31T23:59:59.999999Z",
    "since": ["2025-06-01", None],
    "lately": ["2026-03-31", None],
    "after": "2026-04-01",
}


@pytest.mark.parametrize(
    ("during", "events", "standing"),
    [
        (MARCH, "once exact began ended day instant lately", "always whole since"),
        (
            "[2026-03-01,2026-04-01]",
            "once exact began ended day instant lately after",
            "always whole since",
        ),
        ("[2026-03-01,)", "once whole exact began ended day instant lately after", "always since"),
        ("[2026-03-01,infinity)", "once whole exact began ended day instant lately after",
         "always since"),
        ("(,2026-03-01)", "before whole ended since", "always once"),
        ("[2026-03-10T12:00Z,2026-03-10T12:00Z]", "",
         "always whole exact ended day since"),
        ("(,)", "before whole exact began ended day instant once since lately after", "always"),
        ("empty", "", ""),
    ],
)  # fmt: skip
def test_a_window_may_leave_out_what_merely_spans_it(
    connection: Connection, during: str, events: str, standing: str
) -> None:
    create(connection)
    retain(
        connection,
        [{"text": text, "occurred": span} for text, span in SPANS.items()] + ["undated"],
        link="deferred",
    )

    def found(mode: str) -> set[str]:
        rows = connection.execute(
            "select text from pgrecall.hybrid_recall('b', %s, during => %s::text, top_k => 50,"
            " options => jsonb_build_object('time_mode', %s::text))",
            (" ".join(SPANS), during, mode),
        )
        return {text for (text,) in rows}

    scores = {
        row.memory_id: row.score
        for row in call(connection, "temporal_arm", bank="b", during=during)
    }
    lesser = connection.execute(
        "select text from pgrecall.memory where memory_id = any (%s)",
        [[key for key, score in scores.items() if score == 0.5]],
    )

    assert found("events") == set(events.split())
    assert found("filter") == set(f"{events} {standing}".split())
    assert {text for (text,) in lesser} == set(standing.split())


def test_what_was_said_in_a_window_is_an_event(connection: Connection) -> None:
    create(connection)
    retain(
        connection,
        [
            {"text": "said then", "mentioned_at": "2026-03-10"},
            {"text": "said later", "mentioned_at": "2026-04-10"},
            {"text": "standing", "occurred": ["2020-01-01", None], "mentioned_at": "2026-03-10"},
        ],
    )

    def found(**options: str) -> set[str]:
        asked = "who said standing, then or later"
        return set(texts(connection, asked, during=MARCH, time_mode="events", **options))

    assert found() == set()
    assert found(time_basis="mentioned") == {"said then"}


@pytest.mark.slow
def test_the_time_of_saying_is_found_through_its_index(connection: Connection) -> None:
    create(connection)
    days = [f"20{y:02}-{m:02}-{d:02}" for y in range(10, 26) for m in range(1, 13)
            for d in range(1, 29, 2)]  # fmt: skip
    retain(connection, [{"text": day, "mentioned_at": day} for day in days], link="deferred")
    connection.execute("analyze pgrecall.memory")

    with counted_scans(connection) as scans:
        found = call(connection, "temporal_arm", bank="b", during="[2020-06-01,2020-06-08)",
                     fact_types=["world"], time_basis="mentioned")  # fmt: skip

    assert len(found) > 3
    assert scans["memory_bank_id_fact_type_mentioned_at_idx"] == 2  # until its end, and after it


# type_hints


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What does Ana prefer?", [("preference", "prefer*")]),
        ("Which PREFERENCES has Ana?", [("preference", "prefer*")]),
        ("Is it my default?", [("preference", "my default")]),
        ("When did it happen?", [("event", "when did")]),
        ("What happened?", [("event", "happen*")]),
        ("At what time do we meet?", [("event", "what time")]),
        ("Who is Ana?", [(None, "who is")]),
        ("Tell me about what happened", [(None, "tell me about"), ("event", "happen*")]),
        ("Is that likely?", []),
        ("Where is Ana?", []),
        ("", []),
        (None, []),
    ],
)
def test_words_of_a_question_hint_at_types(
    connection: Connection, query: str | None, expected: list[tuple[str | None, str]]
) -> None:
    create(connection)

    assert call(connection, "type_hints", bank="b", query=query) == expected


def test_a_bank_has_words_of_its_own_until_they_are_taken_away(connection: Connection) -> None:
    create(connection, fact_types=["deal"])
    words = {"deal": ["sold%", "signed_*"], "*": ["who"]}

    call(connection, "configure_bank", bank="b", settings={"type_hints": words})
    own = call(connection, "type_hints", bank="b", query="Who sold what? I prefer none signed.")
    call(connection, "configure_bank", bank="b", settings={"type_hints": None})
    default = call(connection, "type_hints", bank="b", query="Who sold what? I prefer none.")

    assert own == [(None, "who"), ("deal", "sold%")]
    assert default == [("preference", "prefer*")]


@pytest.mark.parametrize(
    ("settings", "code", "message"),
    [
        ({"type_hints": ["x"]}, "22023", 'type_hints must be an object, not ["x"]'),
        ({"type_hints": {"x": ["y"]}}, "RC008", 'type_hints: bank "b" has no fact type "x"'),
        ({"type_hints": {"event": "y"}}, "22023",
         'type_hints: "event" needs an array of words'),
        ({"type_hints": {"event": ["?*"]}}, "22023",
         'type_hints: "event" needs an array of words'),
        ({"type_hints": {"event": [1]}}, "22023",
         'type_hints: "event" needs an array of words'),
        ({"widen_below": -1}, "22023", "widen_below must be between 0 and 1000, not -1"),
    ],
)  # fmt: skip
def test_unusable_hints_are_refused(
    connection: Connection, settings: dict[str, Any], code: str, message: str
) -> None:
    create(connection)

    with refused(connection, code, message):
        call(connection, "configure_bank", bank="b", settings=settings)


def fill_types(connection: Connection, preferences: int) -> None:
    create(connection)
    retain(
        connection,
        [{"text": f"Ana prefers tea {n}", "fact_type": "preference"} for n in range(preferences)]
        + [{"text": f"Ana sells tea {n}"} for n in range(5)],
        link="deferred",
    )


def test_hints_narrow_a_recall_to_their_types(connection: Connection) -> None:
    fill_types(connection, preferences=5)

    narrow = texts(connection, "What tea does Ana prefer?", use_hints=True)
    reasons = ran(connection, "What tea does Ana prefer?", use_hints=True)
    wide = texts(connection, "What tea does Ana prefer?")

    assert len(narrow) == 5
    assert len(wide) == 10
    assert reasons["lexical"] == 'only preference, by the word "prefer"'


def test_too_few_results_widen_to_all_types_in_the_same_call(connection: Connection) -> None:
    fill_types(connection, preferences=4)

    found = texts(connection, "What tea does Ana prefer?", use_hints=True)
    reasons = ran(connection, "What tea does Ana prefer?", use_hints=True)
    call(connection, "configure_bank", bank="b", settings={"widen_below": 4})
    narrow = texts(connection, "What tea does Ana prefer?", use_hints=True)

    assert found == texts(connection, "What tea does Ana prefer?")
    assert reasons["lexical"] == "widened: 4 results were fewer than 5"
    assert len(narrow) == 4


def test_hints_give_way_to_types_that_are_asked_for(connection: Connection) -> None:
    fill_types(connection, preferences=5)

    found = texts(connection, "What tea does Ana prefer?", use_hints=True, fact_types=["world"])

    assert len(found) == 5
    assert all("sells" in text for text in found)


def test_a_hint_at_a_type_that_holds_nothing_narrows_nothing(connection: Connection) -> None:
    fill_types(connection, preferences=0)

    reasons = ran(connection, "What tea does Ana prefer?", use_hints=True)

    assert len(texts(connection, "What tea does Ana prefer?", use_hints=True)) == 5
    assert reasons["lexical"] is None


# explain_recall without running


def test_an_empty_bank_asks_no_arm(connection: Connection) -> None:
    create(connection)

    chosen = plan(connection, "Where is Ana?", embedding=[1, 0])

    assert {arm: row.reason for arm, row in chosen.items()} == {
        "key": "no fact of the bank has a key",
        "semantic": "the bank holds no embeddings",
        "lexical": "the bank knows no word of the query",
        "graph": "the bank holds neither entities nor links",
        "temporal": "no time window given",
        "message": "the bank holds no messages",
        "hypothetical": "no hypothetical answer given",
        "source": "its weight is 0",
    }
    assert {row.status for row in chosen.values()} == {"skipped"}
    assert texts(connection, "Where is Ana?", embedding=[1, 0]) == []


def test_an_arm_runs_once_the_bank_has_something_for_it(connection: Connection) -> None:
    create(connection)
    retain(connection, [{"text": "Ana sails", "entities": ["Ana"], "fact_key": "a",
                         "embedding": [1, 0], "relations": [
                             {"from": "Ana", "kind": "owns", "to": "Argo"}]}])  # fmt: skip
    call(connection, "retain_messages", bank="b", messages=[{"text": "Ana rows"}])
    arguments = {"embedding": [1, 0], "during": MARCH, "hypothetical": [0, 1]}

    chosen = plan(connection, "Why did Ana sail?", **arguments)

    assert chosen.pop("source").status == "skipped"
    assert all(row.status == "planned" and row.reason for row in chosen.values())


@pytest.mark.parametrize("refresh", [False, True])
def test_a_word_never_seen_before_is_found_in_the_next_statement(
    connection: Connection, refresh: bool
) -> None:
    create(connection)
    facts = [f"boat number {n}" for n in range(50)]
    retain(connection, facts, link="deferred")
    call(connection, "retain_messages", bank="b", messages=[{"text": fact} for fact in facts])
    unknown = runs(connection, "zyzzyva?")

    retain(connection, ["the zyzzyva is a weevil"])
    call(connection, "retain_messages", bank="b", messages=[{"text": "a zyzzyva!"}])
    if refresh:
        call(connection, "refresh_statistics", bank="b")

    assert unknown == set()
    assert {"lexical", "message"} <= runs(connection, "zyzzyva?")
    assert set(texts(connection, "zyzzyva?")) == {"the zyzzyva is a weevil", "a zyzzyva!"}


@pytest.mark.parametrize(
    "query", ["What happened in March 2026?", "was geschah im März?", "2026年3月发生了什么"]
)
@pytest.mark.parametrize("embedding", [None, [1, 0]])
def test_a_question_for_a_time_is_answered_from_it_in_any_language(
    connection: Connection, query: str, embedding: list[int] | None
) -> None:
    create(connection)
    retain(
        connection,
        [{"text": f"{month}.{n}: the mast broke", "occurred": f"2026-{month:02}-{n:02}",
          "embedding": [1, 1]} for month in range(1, 6) for n in range(1, 11)],
    )  # fmt: skip

    found = texts(connection, query, during=MARCH, embedding=embedding)

    assert {text.split(".")[0] for text in found[:10]} == {"3"}


def test_words_of_a_date_find_what_has_none_of_its_own(connection: Connection) -> None:
    create(connection)
    retain(connection, [{"text": f"row {n}", "occurred": f"2026-03-{n:02}"} for n in range(1, 11)])
    retain(connection, ["In March the mast broke"])

    assert "In March the mast broke" in texts(connection, "what happened in March", during=MARCH)


def test_the_relevance_of_a_bare_window_is_the_nearness_in_time(connection: Connection) -> None:
    create(connection)
    retain(connection, [{"text": "in it", "occurred": "2026-03-05"},
                        {"text": "near it", "occurred": "2026-04-05"}])  # fmt: skip

    within, near = call(connection, "hybrid_recall", bank="b", query="", during=MARCH)

    assert within.relevance == within.arms["temporal"]["score"] == 1
    assert near.relevance == near.arms["temporal"]["score"] < 1


def test_the_graph_is_left_out_where_it_cannot_lead_on_and_nowhere_else(
    connection: Connection,
) -> None:
    create(connection)
    retain(
        connection,
        [{"text": f"Ana said boat {n}", "entities": ["Ana" if n % 2 else "Bo"]}
         for n in range(400)]
        + [{"text": "The keel broke", "links": [{"kind": "caused_by", "to_index": 401}]},
           "A rock lay there"],
        link="deferred",
    )  # fmt: skip
    call(connection, "refresh_statistics", bank="b", is_full=True)

    idle = ran(connection, "boat")
    leading = ran(connection, "keel")

    assert runs(connection, "boat") == {"lexical", "graph"}
    assert "graph" not in idle
    assert "graph" in leading
    assert "A rock lay there" in texts(connection, "keel")
    assert call(connection, "graph_arm", bank="b", query="boat") == []


def test_choosing_arms_changes_no_result(connection: Connection) -> None:
    create(connection)
    retain(
        connection,
        [{"text": f"{who} {what} {n}", "entities": [who], "embedding": [n, len(what)]}
         for n in range(12) for who in ("Ana", "Bo", "Cy") for what in ("sails", "rows")]
        + [{"text": "Ana reports to Dee", "relations": [
            {"from": "Ana", "kind": "reports_to", "to": "Dee"}]}],
        link="deferred",
    )  # fmt: skip
    every = ["key", "semantic", "lexical", "graph", "message"]

    for query in ("Where does Ana row?", "boats", "Dee", "sails 7", "who is Bo"):
        asked = {"bank": "b", "query": query, "embedding": [1, 1], "top_k": 50}
        chosen = call(connection, "hybrid_recall", **asked)
        forced = call(connection, "hybrid_recall", **asked, arms=every)
        assert chosen == forced


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        ("low", {"key", "semantic", "lexical", "temporal"}),
        ("mid", set(ALL_ARMS)),
        ("high", set(ALL_ARMS)),
    ],
)
def test_the_budget_sets_the_arms(connection: Connection, budget: str, expected: set[str]) -> None:
    create(connection)
    retain(connection, [{"text": "Ana sails", "entities": ["Ana"], "fact_key": "a",
                         "embedding": [1, 0], "relations": [
                             {"from": "Ana", "kind": "owns", "to": "Argo"}]}])  # fmt: skip
    call(connection, "retain_messages", bank="b", messages=[{"text": "Ana rows"}])
    arguments = {"embedding": [1, 0], "during": MARCH, "hypothetical": [0, 1]}

    query = "Why did Ana sail?"
    assert runs(connection, query, budget=budget, **arguments) == expected
    assert runs(connection, query, budget=budget, arms=["message"], **arguments) == {"message"}


@pytest.mark.parametrize(("budget", "rows"), [("low", 20), ("mid", 40), ("high", 80)])
def test_the_budget_sets_the_depth(connection: Connection, budget: str, rows: int) -> None:
    create(connection)
    retain(connection, [f"boat {n}" for n in range(100)], link="deferred")

    report = call(connection, "explain_recall", bank="b", query="boat", top_k=5, depth=40,
                  budget=budget)  # fmt: skip

    assert {row.rows for row in report if row.arm == "lexical"} == {rows}


@pytest.mark.parametrize("function", ["hybrid_recall", "explain_recall"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget": "all"}, 'budget must be "low", "mid" or "high", not "all"'),
        ({"time_basis": "x"}, 'time_basis must be "occurred" or "mentioned", not "x"'),
    ],
)
def test_unknown_options_are_refused(
    connection: Connection, function: str, arguments: dict[str, Any], message: str
) -> None:
    create(connection)

    with refused(connection, "22023", message):
        call(connection, function, bank="b", query="q", **arguments)


def test_the_plan_looks_at_a_table_never_analysed_through_indexes(connection: Connection) -> None:
    create(connection)
    retain(connection, [f"boat {n}" for n in range(2000)], link="deferred")

    with counted_scans(connection):
        before = connection.execute("select pg_stat_get_xact_tuples_returned("
                                    "'pgrecall.memory'::regclass)").fetchall()  # fmt: skip
        assert runs(connection, "boat") == {"lexical"}
        after = connection.execute("select pg_stat_get_xact_tuples_returned("
                                   "'pgrecall.memory'::regclass)").fetchall()  # fmt: skip

    assert after == before, "the plan read the table from end to end"


def test_what_the_plan_may_not_read_is_left_to_the_arms(connection: Connection) -> None:
    create(connection)
    retain(connection, ["Ana sails"])
    connection.execute("alter table pgrecall.link rename to elsewhere")

    with pytest.raises(psycopg.Error), connection.transaction():
        call(connection, "graph_arm", bank="b", query="Ana")
    found = texts(connection, "Ana")

    assert found == ["Ana sails"]


def test_the_driver_passes_what_a_question_is_about(connection: Connection) -> None:
    create(connection)
    retain(
        connection,
        [
            {"text": f"Ana prefers tea {n}", "fact_type": "preference", "entities": ["Ana"],
             "mentioned_at": "2026-03-10"} for n in range(5)
        ] + ["Ana sells tea"],
    )  # fmt: skip

    report = Recall(connection, embedder=None).recall_report(
        "b", "What did Ana prefer in March 2026?", time_basis="mentioned", use_hints=True,
        budget="low", explain=True, rerank=False,
        reference_time=datetime(2026, 6, 1, tzinfo=timezone.utc), as_of=datetime.now(timezone.utc),
    )  # fmt: skip

    arms = {arm.arm: arm for arm in report.arms}
    assert {hit.fact_type for hit in report.hits} == {"preference"}
    assert arms["temporal"].rows == 5
    assert arms["graph"].reason == "the budget is low"


# message_context


def say(connection: Connection, *messages: dict[str, Any], bank: str = "b") -> list[int]:
    rows = call(connection, "retain_messages", bank=bank, messages=list(messages))
    return [row.message_id for row in rows]


def test_a_message_comes_with_its_neighbours_in_the_same_session_in_order(
    connection: Connection,
) -> None:
    create(connection)
    create(connection, "c")
    said = [
        {"text": f"{session}{n}", "session": session, "sent_at": f"2026-03-05T10:{n:02}Z"}
        for n in (3, 1, 2, 0, 4, 5)
        for session in ("s", "t")
    ]
    say(connection, *said, bank="c")
    by_text = dict(zip([m["text"] for m in said], say(connection, *said), strict=True))

    def context(**arguments: int) -> list[tuple[int, str]]:
        rows = call(connection, "message_context", bank="b", message_id=by_text["s2"], **arguments)
        return [(row.place, row.text) for row in rows]

    assert context() == [(-2, "s0"), (-1, "s1"), (0, "s2"), (1, "s3"), (2, "s4")]
    assert context(before=0, after=1) == [(0, "s2"), (1, "s3")]
    assert context(before=9, after=0) == [(-2, "s0"), (-1, "s1"), (0, "s2")]


def test_messages_of_one_moment_keep_the_order_they_came_in(connection: Connection) -> None:
    create(connection)
    now = {"session": "s", "sent_at": "2026-03-05"}
    message_ids = say(connection, *({"text": f"{n}", **now} for n in range(5)))

    rows = call(connection, "message_context", bank="b", message_id=message_ids[2])

    assert [row.message_id for row in rows] == message_ids


def test_a_message_without_session_stands_alone(connection: Connection) -> None:
    create(connection)
    first, _ = say(connection, {"text": "a"}, {"text": "b"})

    rows = call(connection, "message_context", bank="b", message_id=first)

    assert [(row.place, row.message_id) for row in rows] == [(0, first)]


def test_a_hit_of_the_message_arm_says_that_it_is_one(connection: Connection) -> None:
    create(connection)
    retain(connection, ["Ana sails"])
    (message,) = say(connection, {"text": "Ana rows", "session": "s"})

    rows = call(connection, "hybrid_recall", bank="b", query="Ana rows")

    assert {row.text: row.kind for row in rows} == {"Ana rows": "message", "Ana sails": "memory"}
    assert [row.memory_id for row in rows if row.kind == "message"] == [message]


def test_neighbours_of_no_message_are_refused(connection: Connection) -> None:
    create(connection)
    create(connection, "c")
    (foreign,) = say(connection, {"text": "a"}, bank="c")

    with refused(connection, "RC010", f'bank "b" has no message {foreign}'):
        call(connection, "message_context", bank="b", message_id=foreign)
    with refused(connection, "22023", "before must be between 0 and 1000, not -1"):
        call(connection, "message_context", bank="b", message_id=foreign, before=-1)
    with refused(connection, "RC001", 'bank "x" does not exist'):
        call(connection, "message_context", bank="x", message_id=foreign)
