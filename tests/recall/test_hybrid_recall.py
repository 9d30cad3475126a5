"""hybrid_recall(): what its arms find alone, joined; and what explain_recall() says of it."""

from __future__ import annotations

import json
import re
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest

from pgrecall.temporal import extract_temporal_constraint
from servers import kept_fixture
from sqlcalls import (
    FAMILY,
    Connection,
    call,
    column,
    create,
    planned,
    recalled,
    retain,
    rows,
    value,
)

QUERY = "what broke the Kraken deploy, see deploy.window"
WINDOW = "[2026-03-05,2026-03-06)"
EMBEDDING = [1.0, 0.2, 0.0]
ANSWER = [0.0, 1.0, 0.3]
ARMS = ["semantic", "lexical", "graph", "temporal", "key", "message", "hypothetical"]
REGISTERED = [*ARMS, "source"]
FULL: dict[str, Any] = {
    "bank": "b",
    "query": QUERY,
    "embedding": EMBEDDING,
    "during": WINDOW,
    "hypothetical": ANSWER,
}
# With a query that every arm has something to do for.
WHY = f"why, and {QUERY}"
EVERY = FULL | {"query": WHY}
FACTS: list[dict[str, Any]] = [
    {
        "text": "Kraken deploys on Thursdays",
        "fact_key": "deploy.window",
        "embedding": [1, 0, 0],
        "entities": ["Kraken"],
        "tags": ["ops", "it's"],
        "metadata": {"team": "core", "size": 3, "it's": '"quoted" $1 it\'s'},
        "source_id": "doc:1",
        "confidence": 0.9,
    },
    {
        "text": "The migration locked a table",
        "embedding": [0.9, 0.4, 0],
        "occurred": "2026-03-05",
        "fact_type": "event",
        "links": [{"kind": "causes", "to_index": 2, "weight": 0.9}],
        "tags": ["ops"],
        "context": 'it\'s a \\ 100% "post-mortem"',
    },
    {
        "text": "Kraken was down for an hour",
        "embedding": [0.2, 1, 0],
        "occurred": ["2026-03-05T10:00Z", "2026-03-05T11:00Z"],
        "fact_type": "event",
        "entities": ["Kraken"],
        "metadata": {"size": "3"},
    },
    {
        "text": "Ana prefers to deploy early",
        "embedding": [0, 0, 1],
        "fact_type": "preference",
        "entities": ["Ana"],
        "relations": [{"from": "Ana", "kind": "owns", "to": "Kraken"}],
        "mentioned_at": "2026-01-01",
        "confidence": 0.3,
    },
    {"text": "Boats are broken often", "embedding": [0, 0.1, 1], "fact_type": "opinion"},
    {"text": "Nothing of the kind", "fact_type": "observation", "occurred": "2026-03-09"},
]


def filled(connection: Connection) -> dict[str, int]:
    """Make a bank in which every arm finds something; return ids by the first word of a fact."""
    create(
        connection,
        embedding_dimensions=3,
        # Contributions are then those of the arms alone.
        settings={"similarity_floor": 0.1, "named_boost": 0},
    )
    memory_ids = retain(connection, FACTS)
    messages = [{"text": "the kraken deploy broke", "speaker": "Ana", "session": "s"}, "hm"]
    call(
        connection,
        "retain_messages",
        bank="b",
        messages=[m if isinstance(m, dict) else {"text": m} for m in messages],
    )
    words = [fact["text"].split()[0] for fact in FACTS]
    return dict(zip([*words[:2], "down", *words[3:]], memory_ids, strict=True))


@kept_fixture
def bank(connection: Connection) -> dict[str, int]:
    return filled(connection)


def recall(connection: Connection, **arguments: Any) -> list[Any]:
    return call(
        connection, "hybrid_recall", **{"bank": "b", "query": QUERY, "top_k": 50, **arguments}
    )


def explain(connection: Connection, **arguments: Any) -> dict[str, Any]:
    rows = call(connection, "explain_recall", **{"bank": "b", "query": QUERY, **arguments})
    return {row.arm: row for row in rows}


def kinds(bank: dict[str, int], rows: list[Any]) -> set[str]:
    names = {memory: name for name, memory in bank.items()}
    return {names[row.memory_id] for row in rows if row.kind == "memory"}


ALONE: dict[str, tuple[str, dict[str, Any]]] = {
    "semantic": ("semantic_arm", {"embedding": EMBEDDING}),
    "hypothetical": ("hypothetical_arm", {"embedding": ANSWER}),
    "lexical": ("lexical_arm", {"query": QUERY}),
    "message": ("message_arm", {"query": QUERY}),
    "key": ("key_arm", {"query": QUERY}),
    "temporal": ("temporal_arm", {"during": WINDOW, "embedding": EMBEDDING}),
    "graph": ("graph_arm", {"query": QUERY, "embedding": EMBEDDING}),
}


# The graph starts from what the others found.
@pytest.mark.parametrize("arm", [arm for arm in ARMS if arm != "graph"])
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(("fusion", "k"), [("rrf", 60), ("score_rrf", 7), ("linear", 7)])
def test_an_arm_in_a_recall_is_the_arm_alone(
    connection: Connection, bank: dict[str, int], arm: str, together: bool, fusion: str, k: int
) -> None:
    function, arguments = ALONE[arm]
    if arm == "temporal":  # beside a name, similarity does not count
        arguments = {"during": WINDOW}
    alone = call(connection, function, bank="b", **arguments)
    weight = 2.5
    asked = None if together else [arm]

    # Nearly no doubt: with none, messages get no share of the weight of the graph.
    options = {"weights": {arm: weight}, "fusion": fusion, "k": k, "doubt": 1e-9}
    rows = recall(connection, **FULL, arms=asked, **options)

    # Where the graph votes once more for memories, messages keep their share.
    graph = [row.arms["graph"]["score"] for row in rows if "graph" in row.arms]
    votes = 1 + 11 * min(1, max(graph)) if arm == "message" and together else 1
    found = {row.memory_id: row.arms[arm] for row in rows if arm in row.arms}
    scores = [row.score for row in alone]

    def share(row: Any) -> Any:
        if fusion == "linear":
            spread = scores[0] - scores[-1]
            return (row.score - scores[-1]) / spread if spread else 1
        certain = max(scores[0], 0.3) if arm == "message" else scores[0]
        return (row.score / certain if fusion == "score_rrf" else 1) / (k + row.rank)

    assert found == {
        row[0]: {
            "rank": row.rank,
            "score": pytest.approx(row.score),
            "contribution": pytest.approx(votes * weight * share(row)),
        }
        for row in alone
    }
    assert together or all(list(row.arms) == [arm] for row in rows)


def test_every_row_carries_what_was_stored_and_adds_up(
    connection: Connection, bank: dict[str, int]
) -> None:
    rows = recall(connection, **FULL)

    for row in rows:
        contributions = [part["contribution"] for part in row.arms.values()]
        assert row.score == pytest.approx(sum(contributions))
    assert [row.rank for row in rows] == list(range(1, len(rows) + 1))
    assert [row.score for row in rows] == sorted((row.score for row in rows), reverse=True)
    top = rows[0]
    stored = {key: getattr(top, key) for key in FACTS[0].keys() - {"embedding", "entities"}}
    assert stored == {key: FACTS[0][key] for key in stored} | {"confidence": pytest.approx(0.9)}
    assert (top.memory_id, top.kind, top.fact_type) == (bank["Kraken"], "memory", "world")


def test_messages_stand_among_memories(connection: Connection, bank: dict[str, int]) -> None:
    (message,) = (row for row in recall(connection) if row.kind == "message")

    assert message[2:8] == ("message", None, "the kraken deploy broke", "Ana", None, "s")
    assert message.memory_id not in bank.values()
    assert (message.confidence, message.proof_count) == (None, None)
    assert message.tags == []
    assert message.metadata == {}


@pytest.mark.parametrize(
    ("arguments", "ran"),
    [
        ({}, "key lexical message graph"),
        ({"embedding": EMBEDDING}, "key semantic lexical message graph"),
        ({"during": WINDOW}, "key lexical temporal message graph"),
        ({"hypothetical": ANSWER}, "key lexical message hypothetical graph"),
        ({"query": " ", "embedding": EMBEDDING}, "semantic graph"),
        ({"query": None, "during": WINDOW}, "temporal"),
        ({"query": WHY}, "key lexical message graph"),
        (FULL | {"arms": ["key", "graph"]}, "key graph"),
        (FULL | {"weights": {"graph": 0, "key": 0}}, "semantic lexical temporal "
         "message hypothetical"),
        ({"tags": ["ops"]}, "key lexical graph"),
        ({"filter": ["is null", "context"]}, "key lexical graph"),
    ],
)  # fmt: skip
def test_the_arms_that_can_help_run(
    connection: Connection, bank: dict[str, int], arguments: dict[str, Any], ran: str
) -> None:
    report = explain(connection, **arguments)
    rows = recall(connection, **arguments)

    assert sorted(report) == sorted(REGISTERED)
    assert [arm for arm, row in report.items() if row.status == "ran"] == ran.split()
    used = {arm for row in rows for arm in row.arms}
    assert used <= set(ran.split())
    assert rows


def test_the_report_counts_rows_and_says_why_an_arm_was_skipped(
    connection: Connection, bank: dict[str, int]
) -> None:
    report = explain(
        connection, query=" ", during=WINDOW, tags=["ops"], weights={"temporal": 0},
        arms=["key", "semantic", "temporal", "hypothetical", "message", "graph"],
    )  # fmt: skip
    spoken = explain(connection, **FULL)
    tagged = explain(connection, tags=["ops"])

    assert {arm: (row.status, row.reason) for arm, row in report.items()} == {
        "key": ("skipped", "no query text given"),
        "semantic": ("skipped", "no embedding given"),
        "lexical": ("skipped", "not asked for"),
        "graph": ("skipped", "there is nothing to start from"),
        "temporal": ("skipped", "its weight is 0"),
        "message": ("skipped", "no query text given"),
        "hypothetical": ("skipped", "no hypothetical answer given"),
        "source": ("skipped", "not asked for"),
    }
    assert tagged["message"].reason == "filters are about memories"
    assert tagged["temporal"].reason == "no time window given"
    for arm, (function, arguments) in ALONE.items():
        if arm == "graph":  # starts from more hits than alone
            continue
        alone = call(connection, function, bank="b", **arguments)
        assert (spoken[arm].status, spoken[arm].rows) == ("ran", len(alone))
        assert spoken[arm].best_score == pytest.approx(alone[0].score)
        assert spoken[arm].milliseconds >= 0


def test_the_source_arm_finds_what_else_the_sources_of_hits_say(connection: Connection) -> None:
    create(connection)
    facts = {
        "a zebra": "book",
        "a zebra, among much else": "paper",
        "a gate": "book",
        "a lock": "paper",
        "a crane": "chat",
        "a lion": "radio",
        "a zebra, says nobody": None,
        "some rain": None,
    }
    retain(connection, [{"text": text, "source_id": source} for text, source in facts.items()])
    messages = [{"text": "zebra", "session": "chat"}]
    call(connection, "retain_messages", bank="b", messages=messages)

    hits = call(connection, "arm_hits", bank="b", query="zebra")

    texts = dict(rows(connection, "select memory_id, text from pgrecall.memory"))
    ranks = {texts.get(hit.memory_id): hit.rank for hit in hits if hit.arm == "lexical"}
    assert {texts[hit.memory_id]: hit.score for hit in hits if hit.arm == "source"} == {
        "a crane": 1,
        "a gate": 1 / ranks["a zebra"],
        "a lock": 1 / ranks["a zebra, among much else"],
    }


def test_a_plan_says_what_an_arm_has_to_work_on(
    connection: Connection, bank: dict[str, int]
) -> None:
    reasons = {row.arm: row.reason for row in planned(connection, **FULL)}

    assert reasons["semantic"] == "an embedding is given"
    assert reasons["hypothetical"] == "a hypothetical answer is given"
    assert reasons["temporal"] == "a time window is given"


@pytest.mark.parametrize(
    ("arm", "index"),
    [
        ("key", "memory_bank_id_fact_key_idx"),
        ("lexical", "memory_lexical_keys_idx"),
        ("temporal", "memory_bank_id_fact_type_occurred_idx"),
        ("message", "message_lexical_keys_idx"),
    ],
)
def test_the_report_names_the_indexes_that_were_scanned(
    database: str, arm: str, index: str
) -> None:
    # In the database that tests share, sizes of tables that others analysed decide the plan.
    with psycopg.connect(database) as connection:
        filled(connection)
        scanned = explain(connection, **FULL)[arm].indexes

        assert index in (scanned or "").split(", ")
        assert explain(connection, **FULL, arms=["key"])[arm].indexes is None or arm == "key"


IT_S = '"quoted" $1 it\'s'


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (["=", "fact_type", "event"], "The down"),
        (["<>", "fact_type", "event"], "Kraken Ana Boats"),
        (["in", "fact_type", ["event", "opinion"]], "The down Boats"),
        (["in", "fact_type", []], ""),
        (["=", "text", "Kraken was down for an hour"], "down"),
        (["like", "text", "Kraken%"], "Kraken down"),
        (["ilike", "text", "kraken w%"], "down"),
        (["=", "context", 'it\'s a \\ 100% "post-mortem"'], "The"),
        (["like", "context", "it's a \\\\ 100\\% \"%"], "The"),
        (["is null", "context"], "Kraken down Ana Boats"),
        (["is not null", "context"], "The"),
        (["not", ["is null", "context"]], "The"),
        (["=", "fact_key", "deploy.window"], "Kraken"),
        (["=", "source_id", "doc:1"], "Kraken"),
        (["not", ["=", "source_id", "doc:1"]], "The down Ana Boats"),
        (["=", "source_id", "'; drop table pgrecall.memory; --"], ""),
        ([">=", "confidence", 0.9], "Kraken The down Boats"),
        (["<", "confidence", 0.5], "Ana"),
        (["=", "proof_count", 1], "Kraken The down Ana Boats"),
        ([">", "memory_id", 9007199254740993], ""),
        (["<=", "mentioned_at", "2026-01-01"], "Ana"),
        ([">", "created_at", "2020-01-01T00:00Z"], "Kraken The down Ana Boats"),
        (["overlaps", "occurred", ["2026-03-05T10:30Z", "2026-03-05T10:31Z"]], "The down"),
        (["overlaps", "occurred", [None, "2026-03-05T09:00Z"]], "The"),
        (["overlaps", "occurred", ["2026-03-06", None]], ""),
        (["is null", "occurred"], "Kraken Ana Boats"),
        (["contains", "tags", ["ops", "it's"]], "Kraken"),
        (["contains", "tags", []], "Kraken The down Ana Boats"),
        (["overlaps", "tags", ["it's", "none"]], "Kraken"),
        (["overlaps", "tags", []], ""),
        (["=", "metadata.team", "core"], "Kraken"),
        (["=", "metadata.it's", IT_S], "Kraken"),
        (["in", "metadata.it's", ["x", IT_S]], "Kraken"),
        (["like", "metadata.it's", '"quoted"%'], "Kraken"),
        (["=", "metadata.size", 3], "Kraken"),
        (["=", "metadata.size", "3"], "Kraken down"),
        ([">", "metadata.size", 2.5], "Kraken"),
        (["is null", "metadata.size"], "The Ana Boats"),
        (["and", ["=", "fact_type", "event"], ["is null", "context"]], "down"),
        (["or", ["=", "fact_type", "opinion"], ["not", ["is null", "context"]]], "The Boats"),
        (["not", ["or", ["=", "metadata.size", 3], ["=", "fact_type", "event"]]], "Ana Boats"),
    ],
)
def test_a_filter_leaves_what_passes_whatever_its_values_hold(
    connection: Connection, bank: dict[str, int], condition: list[Any], found: str
) -> None:
    everything = dict(FULL, embedding=[1, 1, 1], during=None, hypothetical=None)

    rows = recall(connection, **everything, filter=condition)

    assert kinds(bank, rows) == set(found.split())
    assert all(row.kind == "memory" for row in rows)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"fact_types": ["event"]}, "The down"),
        ({"fact_types": ["event", "preference"]}, "The down Ana"),
        ({"fact_types": []}, ""),
        ({"tags": ["it's"]}, "Kraken"),
        ({"tags": ["it's", "ops"]}, "Kraken The"),
        ({"tags": []}, ""),
        ({"tags": ["ops"], "fact_types": ["event"]}, "The"),
        ({"tags": ["ops"], "filter": [">", "confidence", 0.95]}, "The"),
        ({"time_mode": "filter"}, "The down"),
        ({"time_mode": "filter", "tags": ["ops"]}, "The"),
        ({"time_mode": "filter", "during": "[2026-03-05T10:00Z,2026-03-05T10:00Z]"}, "The down"),
        ({"time_mode": "filter", "during": "(,2026-03-05T10:00Z)"}, "The"),
        ({"time_mode": "filter", "during": "[2026-03-08,)"}, "Nothing"),
        ({"time_mode": "filter", "during": "empty"}, ""),
    ],
)
def test_types_tags_and_a_filtering_window_leave_what_passes(
    connection: Connection, bank: dict[str, int], arguments: dict[str, Any], found: str
) -> None:
    rows = recall(connection, **{**FULL, **arguments})

    assert kinds(bank, rows) == set(found.split())


def test_a_window_boosts_unless_it_is_to_filter(
    connection: Connection, bank: dict[str, int]
) -> None:
    def ranked(**arguments: Any) -> list[int]:
        arguments = {"query": "deploy Kraken", "weights": {"temporal": 5}, **arguments}
        rows = recall(connection, **arguments)
        return [row.memory_id for row in rows if row.kind == "memory"]

    plain, boosted = ranked(), ranked(during=WINDOW)
    filtered = ranked(during=WINDOW, time_mode="filter")

    assert plain.index(bank["down"]) > 0
    assert boosted[0] in {bank["The"], bank["down"]}
    assert set(plain) < set(boosted)
    assert set(filtered) == {bank["The"], bank["down"]}


def test_a_window_without_its_lower_bound_begins_after_it(connection: Connection) -> None:
    create(connection)
    at, later = retain(connection, [
        {"text": "a pump", "occurred": "2026-03-05T10:00Z"},
        {"text": "a hull", "occurred": "2026-03-05T10:00:01Z"},
    ])  # fmt: skip
    window = "(2026-03-05T10:00Z, 2026-03-06)"

    listed = call(connection, "list_memories", bank="b", during=window)
    found = recall(connection, query="pump hull", during=window, time_mode="filter")
    near = call(connection, "temporal_arm", bank="b", during=window)

    assert [row.memory_id for row in listed] == [row.memory_id for row in found] == [later]
    assert [(row.memory_id, row.score == 1) for row in near] == [(later, True), (at, False)]


def test_as_of_answers_as_before_and_after_a_supersede(connection: Connection) -> None:
    create(connection)
    old, new = retain(
        connection,
        [
            {"text": f"Kraken is led by {who}", "fact_key": "lead", "embedding": [1, 0],
             "occurred": "2026-01-01", "entities": ["Kraken"], "mentioned_at": at}
            for who, at in [("Ana", "2026-01-01"), ("Ben", "2026-02-01")]
        ],
    )  # fmt: skip
    call(connection, "supersede", bank="b", memory_id=old, superseded_by=new, at="2026-02-01")

    found = {
        as_of: {
            row.memory_id
            for row in recall(connection, query="lead of Kraken", embedding=[1, 0],
                              during="[2026-01-01,2026-01-02)", as_of=as_of)
        }
        for as_of in ["2025-12-31", "2026-01-01", "2026-01-31T23:59Z", "2026-02-01", None]
    }  # fmt: skip

    assert found == {
        "2025-12-31": set(),
        "2026-01-01": {old},
        "2026-01-31T23:59Z": {old},
        "2026-02-01": {new},
        None: {new},
    }


def test_an_arm_gives_as_many_rows_as_are_asked_for(connection: Connection) -> None:
    create(connection)
    retain(connection, [f"boat {n}" for n in range(150)])

    def count(**options: Any) -> int:
        return len(recalled(connection, "boat", top_k=120, options={"arms": ["lexical"]} | options))

    assert count() == 120
    assert count(skip=20) == 120
    assert count(depth=30) == 30
    # Half as deep, but not less deep than the answer is long.
    assert count(depth=30, budget="low") == 30


def test_top_k_cuts_the_same_order_and_ties_go_by_recency_then_id(connection: Connection) -> None:
    create(connection)
    days = [3, 1, 3, 2, 1, 2]
    memory_ids = retain(
        connection,
        [{"text": "ana", "source_id": str(n), "mentioned_at": f"2026-01-0{day}"}
         for n, day in enumerate(days)],
    )  # fmt: skip
    order = sorted(range(6), key=lambda n: (-days[n], -memory_ids[n]))

    for top_k in (1, 2, 4, 6):
        # Arms rank ties by id; linear fusion looks at the scores alone, which are the same here.
        rows = recall(connection, query="ana", arms=["lexical"], fusion="linear", top_k=top_k)
        assert [row.memory_id for row in rows] == [memory_ids[n] for n in order][:top_k]
        assert [row.rank for row in rows] == list(range(1, top_k + 1))


def test_the_same_call_gives_the_same_rows(connection: Connection, bank: dict[str, int]) -> None:
    first = recall(connection, **FULL)
    connection.execute("update pgrecall.memory set text = text where memory_id % 2 = 0")

    assert recall(connection, **FULL) == first
    assert [row[:9] for row in recall(connection, **FULL, top_k=3)] == [
        row[:9] for row in first[:3]
    ]


def test_a_call_overrides_the_bank_and_the_bank_the_defaults(
    connection: Connection, bank: dict[str, int]
) -> None:
    def contribution(**arguments: Any) -> tuple[float, ...]:
        parts = [row.arms for row in recall(connection, **arguments) if "key" in row.arms]
        second = [
            part["contribution"] for row in recall(connection, **arguments)
            for arm, part in row.arms.items() if arm == "lexical" and part["rank"] == 1
        ]  # fmt: skip
        return parts[0]["key"]["contribution"], second[0]

    defaults = contribution()
    call(connection, "configure_bank", bank="b",
         settings={"rrf_k": 9, "fusion": "rrf", "weights": {"key": 2}})  # fmt: skip

    assert defaults == pytest.approx((3 / 61, 1 / 61))
    assert contribution() == pytest.approx((2 / 10, 1 / 10))
    assert contribution(k=99) == pytest.approx((2 / 100, 1 / 100))
    assert contribution(weights={"lexical": 4}) == pytest.approx((2 / 10, 4 / 10))
    assert contribution(weights={"key": 7}, k=1) == pytest.approx((7 / 2, 1 / 2))


@pytest.mark.parametrize("fusion", ["rrf", "score_rrf", "linear"])
def test_fusion_of_the_bank_or_the_call_joins_the_arms(
    connection: Connection, bank: dict[str, int], fusion: str
) -> None:
    named = recall(connection, **FULL, fusion=fusion)
    call(connection, "configure_bank", bank="b", settings={"fusion": fusion})

    assert recall(connection, **FULL) == named
    last = max((row.arms["lexical"] for row in named if "lexical" in row.arms),
               key=lambda part: part["rank"])  # fmt: skip
    full_share = 1 / (60 + last["rank"])
    assert (last["contribution"] == pytest.approx(full_share)) == (fusion == "rrf")
    assert (last["contribution"] == 0) == (fusion == "linear")


BREAK = (
    "create or replace function pgrecall_internal._graph_arm(request pgrecall_internal.request,"
    " before pgrecall.arm_hit[], is_planned boolean) returns pgrecall_internal.arm_result stable"
    " language plpgsql as $$ begin raise exception using errcode = '{}', message = 'broken'; end $$"
)


@pytest.mark.parametrize("code", ["XX000", "53200", "22012"])
def test_a_failing_arm_degrades_to_the_others_with_a_warning(
    connection: Connection, bank: dict[str, int], code: str
) -> None:
    others = recall(connection, **EVERY, arms=[arm for arm in ARMS if arm != "graph"])
    connection.execute(BREAK.format(code))
    notices: list[tuple[str | None, ...]] = []
    connection.add_notice_handler(
        lambda n: notices.append(
            (n.severity_nonlocalized, n.sqlstate, n.message_primary, n.message_hint)
        )
    )

    rows = recall(connection, **EVERY)
    report = explain(connection, **EVERY)

    assert rows == others
    message = "the graph arm failed and was left out: broken"
    hint = "Run pgrecall.graph_arm() alone to see the error."
    assert notices == [("WARNING", "01RC1", message, hint)] * 2
    assert report.pop("graph")[1:5] == ("failed", "broken", 0, None)
    assert report.pop("source").status == "skipped"
    assert {row.status for row in report.values()} == {"ran"}


@pytest.mark.parametrize("code", ["40001", "40P01", "RC011", "22023"])
def test_what_a_caller_can_mend_or_retry_is_raised(
    connection: Connection, bank: dict[str, int], code: str
) -> None:
    connection.execute(BREAK.format(code))

    with pytest.raises(psycopg.Error) as caught:
        recall(connection, **FULL)

    assert (caught.value.sqlstate, caught.value.diag.message_primary) == (code, "broken")


NOTHING = "nothing to recall by: the query is empty and there is no embedding"


@pytest.mark.parametrize("function", sorted(FAMILY))
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ({"bank": "c"}, "RC001", 'bank "c" does not exist'),
        ({"bank": None}, "22004", "bank must not be null"),
        ({"query": None}, "RC007", NOTHING),
        ({"query": "  "}, "RC007", NOTHING),
        ({"query": " \t\n"}, "RC007", NOTHING),
        ({"query": "x" * 100_001}, "22023", "query has 100001 characters, more than 100000"),
        ({"embedding": [1, 0]}, "RC004", "embedding: expected 3 dimensions, not 2"),
        ({"hypothetical": [1, 0]}, "RC004", "hypothetical: expected 3 dimensions, not 2"),
        (
            {"embedding": [0, 0, 0]},
            "RC006",
            "embedding: unusable embedding: all elements are zero",
        ),
        ({"fact_types": ["rumour"]}, "RC008", 'bank "b" has no fact type "rumour"'),
        ({"fact_types": ["world", None]}, "RC008", "fact_types must not contain null"),
        ({"tags": ["ops", None]}, "22023", "tags must not contain null"),
        ({"arms": ["magic"]}, "RC009", 'unknown arm "magic"'),
        ({"arms": []}, "RC009", "arms is empty"),
        ({"weights": {"magic": 1}}, "RC009", 'unknown arm "magic" in weights'),
        (
            {"weights": {"key": -1}},
            "22023",
            'weight of arm "key" must be a number from 0 to 1000000, not -1',
        ),
        ({"top_k": 0}, "22023", "top_k must be between 1 and 1000, not 0"),
        ({"top_k": 1001}, "22023", "top_k must be between 1 and 1000, not 1001"),
        ({"depth": 0}, "22023", "depth must be between 1 and 10000, not 0"),
        ({"rrf_k": 0}, "22023", "rrf_k must be between 1 and 10000, not 0"),
        ({"fusion": "sum"}, "22023", 'fusion must be "score_rrf", "rrf" or "linear", not "sum"'),
        ({"gates": {"magic": 1}}, "RC009", 'unknown arm "magic" in gates'),
        ({"gates": [1]}, "22023", "gates must be an object, not [1]"),
        (
            {"gates": {"key": "1"}},
            "22023",
            'gate of arm "key" must be a number from 0 to 1000000, not "1"',
        ),
        ({"skip": -1}, "22023", "skip must be between 0 and 10000, not -1"),
        ({"collapse": "yes"}, "22023", 'collapse must be true or false, not "yes"'),
        ({"diversity": 1.5}, "22023", "diversity must be between 0 and 1, not 1.5"),
        ({"diversity": "NaN"}, "22023", 'diversity must be between 0 and 1, not "NaN"'),
        ({"min_relevance": -1}, "22023", "min_relevance must be between 0 and 1, not -1"),
        (
            {"recency_half_life": "30 days"},
            "22023",
            'recency_half_life does not go with fusion "score_rrf"',
        ),
        (
            {"recency_half_life": "-1 day", "fusion": "linear"},
            "22023",
            'recency_half_life must be an interval longer than 0, not "-1 day"',
        ),
        (
            {"recency_decay": "sudden"},
            "22023",
            'recency_decay must be "exponential" or "linear", not "sudden"',
        ),
        ({"time_mode": "x"}, "22023", 'time_mode must be "boost", "filter" or "events", not "x"'),
        ({"filter": ["=", "nope", 1]}, "RC011", 'filter: unknown column "nope"'),
        ({"filter": [{"a": 1}]}, "RC011", 'filter: [{"a": 1}] is not a condition'),
        (
            {"filter": {"a": 1}},
            "RC011",
            'filter: expected a column or a constant, not "{" at character 1',
        ),
    ],
)
def test_bad_input_is_an_error_that_says_what_and_how(
    connection: Connection,
    bank: dict[str, int],
    function: str,
    arguments: dict[str, Any],
    code: str,
    message: str,
) -> None:
    with pytest.raises(psycopg.Error) as caught:
        call(connection, function, **{"bank": "b", "query": QUERY, **arguments})

    assert (caught.value.sqlstate, caught.value.diag.message_primary) == (code, message)
    assert caught.value.diag.message_hint


@pytest.mark.parametrize("words", ["last fortnight", "last 0 days", "", "[2026-03-01"])
def test_other_words_for_a_window_are_an_error_that_lists_the_names(
    connection: Connection, bank: dict[str, int], words: str
) -> None:
    statement = "select pgrecall.hybrid_recall('b', 'q', during => %s::text)"
    names = column(connection, "select name from pgrecall.windows()")

    with pytest.raises(psycopg.Error) as caught:
        connection.execute(statement, [words])

    found = caught.value.diag
    assert found.sqlstate == "22023"
    assert found.message_primary == f'"{words}" is not a window of time'
    assert f"Names of windows: {', '.join(names)}" in (found.message_hint or "")
    assert {"today", "last quarter", "this year", "last 30 days"} <= {*names}


WINDOWS = [
    "today", "yesterday", "this week", "last week", "this month", "last month", "this quarter",
    "last quarter", "this year", "last year", "last 7 days", "last 30 days", "last 12 days",
]  # fmt: skip


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Auckland"])
@pytest.mark.parametrize("name", WINDOWS)
def test_a_name_of_a_window_means_what_the_driver_reads_in_a_question(
    connection: Connection, name: str, zone: str
) -> None:
    connection.execute(f"set local timezone = '{zone}'")

    window = "(%s::text::pgrecall_internal.period)::text::tstzrange"
    ((span, now),) = rows(connection, f"select {window}, now()", name.upper())

    read = extract_temporal_constraint(f"What broke {name}?", now, timezone=ZoneInfo(zone))
    assert read is not None
    assert (span.lower, span.upper) == (read.start, read.end)


def test_windows_are_those_of_a_day(connection: Connection) -> None:
    connection.execute("set local timezone = 'UTC'")

    (found,) = column(
        connection,
        "select during::text from pgrecall.windows('2026-01-01') where name = 'last quarter'",
    )

    assert found == '["2025-10-01 00:00:00+00","2026-01-01 00:00:00+00")'


def test_only_the_day_on_which_daylight_saving_begins_at_midnight_begins_at_one(
    connection: Connection,
) -> None:
    connection.execute("set local timezone = 'America/Sao_Paulo'")

    found = column(
        connection,
        "select during::text from pgrecall.windows('2018-11-04 12:00')"
        " where name in ('today', 'yesterday')",
    )

    assert found == [
        '["2018-11-04 01:00:00-02","2018-11-05 00:00:00-02")',
        '["2018-11-03 00:00:00-03","2018-11-04 01:00:00-02")',
    ]


def test_windows_of_no_time_are_those_of_now_and_infinity_has_none(connection: Connection) -> None:
    assert rows(connection, "select * from pgrecall.windows(null)") == rows(
        connection, "select * from pgrecall.windows()"
    )
    assert rows(connection, "select * from pgrecall.windows('-infinity')") == []


def test_a_recall_and_a_list_take_the_name_of_a_window(connection: Connection) -> None:
    create(connection)
    day = value(connection, "select (now() - interval '10 days')::date::text")
    retain(connection, [{"text": "Atlas broke", "occurred": day}, {"text": "Atlas holds"}])

    found = "select text from pgrecall.hybrid_recall('b', 'Atlas', during => text 'last 20 days',"
    listed = "select text from pgrecall.list_memories('b', during => varchar 'last 20 days',"

    assert column(connection, f'{found} options => \'{{"time_mode": "filter"}}\')') == [
        "Atlas broke"
    ]
    assert "Atlas broke" in column(connection, f"{listed} top_k => 5)")
    assert column(connection, f"{found.replace('20', '2')} options => '{{\"time_mode\": "
                              "\"filter\"}')") == []  # fmt: skip


def test_option_window_takes_a_name_in_a_literal_without_a_type(connection: Connection) -> None:
    create(connection)
    day = value(connection, "select (now() - interval '10 days')::date::text")
    retain(connection, [{"text": "Atlas broke", "occurred": day}, {"text": "Atlas holds"}])

    def texts(window: str, more: str = "") -> list[Any]:
        options = json.dumps({"window": window, "time_mode": "filter"})
        return column(
            connection,
            f"select text from pgrecall.hybrid_recall('b', 'Atlas', options => '{options}'{more})",
        )

    assert texts("last 20 days") == ["Atlas broke"]
    assert texts("last 2 days") == []
    assert texts("last 20 days", ", during => '[1999-01-01, 1999-02-01)'") == ["Atlas broke"]
    with pytest.raises(psycopg.Error) as caught:
        texts("last fortnight")
    assert "Names of windows: today" in str(caught.value.diag.message_hint)


def test_never_returns_what_is_of_another_bank(
    connection: Connection, bank: dict[str, int]
) -> None:
    before = recall(connection, **FULL)
    create(connection, "c", embedding_dimensions=3)
    theirs = retain(connection, FACTS, bank="c")
    call(connection, "retain_messages", bank="c", messages=[{"text": "the kraken deploy broke"}])

    assert recall(connection, **FULL) == before
    others = call(connection, "hybrid_recall", **{**FULL, "bank": "c"})
    assert {row.memory_id for row in others if row.kind == "memory"} <= set(theirs)


def test_a_recall_reads_only(connection: Connection, bank: dict[str, int]) -> None:
    expected = recall(connection, **EVERY)
    connection.execute("set transaction read only")

    assert recall(connection, **EVERY) == expected
    report = explain(connection, **EVERY)
    assert {row.status for arm, row in report.items() if arm != "source"} == {"ran"}


def test_an_empty_bank_answers_with_nothing(connection: Connection) -> None:
    create(connection, embedding_dimensions=3)

    assert recall(connection, **FULL) == []
    assert {row.rows for row in explain(connection, **FULL).values()} == {0}


@pytest.mark.parametrize(
    ("scope", "count"),
    [
        ({}, "3"),
        ({"fact_types": ["event"]}, "1"),
        ({"tags": ["a", "c"]}, "2"),
        ({"filter": "confidence < 0.8"}, "1"),
        ({"tags": ["a"], "filter": "confidence < 0.8"}, None),
    ],
)
def test_a_report_counts_what_was_not_known_yet_of_what_is_asked_for(
    connection: Connection, scope: dict[str, Any], count: str | None
) -> None:
    create(connection)
    late: list[dict[str, Any]] = [
        {"text": "Ana moved", "tags": ["a"]},
        {"text": "Bo moved", "tags": ["b", "c"], "confidence": 0.5},
        {"text": "Cy moved", "fact_type": "event"},
    ]
    retain(connection, [*late, {"text": "Dot moved", "mentioned_at": "2020-01-01", "tags": ["a"]}])

    found = explain(connection, bank="b", query="who moved?", as_of="2024-06-01", **scope)

    said = " ".join(row.reason or "" for row in found.values())
    assert re.findall("not known yet at .* are left out: ([^ ]+)", said) == (
        [count] if count else []
    )


@pytest.mark.parametrize(
    ("identifier", "is_one"),
    [
        ("E-47821", True),
        ("is_ready", True),
        ("posting.py", True),
        ("Covid-19", True),
        ("well-known", False),
        ("3rd", False),
        ("U.S.", False),
        ("10.25", False),
        ("2026-03-05", False),
        ("9291", True),
        ("#9521", True),
        ("91", False),
        ("1998", False),
        ("45000", False),
        ("2.12.2", True),
        ("10.0.0.12", True),
        ("192.168.100.200", True),
        ("5.3.2026", False),
        ("15.03.2026", False),
        ("1.200.000", False),
        ("12.200.000", False),
    ],
)
def test_embeddings_are_doubted_beside_a_rare_identifier(
    connection: Connection, identifier: str, is_one: bool
) -> None:
    create(connection)
    near = [
        {"text": f"Note {n} is of a pump", "embedding": [1, 0, 0] if n < 9 else [0, 1, 0]}
        for n in range(60)
    ]
    far = [{"text": f"Pump {identifier} is {w}", "embedding": [0.3, 0, 1]} for w in ("red", "old")]
    retain(connection, near + far)
    call(connection, "refresh_statistics", bank="b")
    asked = {"bank": "b", "query": f"what is {identifier}", "embedding": [1, 0, 0]}

    def vote(**options: Any) -> float:
        found = recall(connection, **asked | options)
        return max(float(row.arms.get("semantic", {}).get("contribution", 0)) for row in found)

    assert vote() == pytest.approx((0.1 if is_one else 1) / 61)
    assert vote(doubt=0) == pytest.approx(1 / 61)
    said = explain(connection, **asked)["semantic"]
    assert (said.reason.count("hardly do"), said.hint) == (int(is_one), None)
    assert vote(query="what is note") == pytest.approx(1 / 61)
    found = recall(connection, **asked)[:2]
    assert not is_one or {row.text for row in found} == {fact["text"] for fact in far}


@pytest.mark.parametrize(
    ("identifier", "having", "is_one"),
    [("9291", 10, True), ("9291", 11, False), ("E-47821", 11, True)],
)
def test_a_number_that_more_than_ten_facts_have_is_no_identifier(
    connection: Connection, identifier: str, having: int, is_one: bool
) -> None:
    create(connection)
    # A twentieth of the facts are more than 11.
    beside = [{"text": f"Note {n} is of a pump", "embedding": [1, 0, 0]} for n in range(240)]
    texts = [f"Pump {identifier} is in row {n}" for n in range(having)]
    retain(connection, [*beside, *({"text": text, "embedding": [0.3, 0, 1]} for text in texts)])
    call(connection, "refresh_statistics", bank="b")

    query = f"what is {identifier}"
    said = explain(connection, bank="b", query=query, embedding=[1, 0, 0])["semantic"]

    assert ("hardly do" in said.reason) == is_one
