"""Sources that are trusted less, quarantine, and who did what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pgrecall import Recall
from servers import kept_fixture
from sqlcalls import Connection, call, create, recalled, refused, retain, rows, value

LIE = {"text": "The deploy window is Sunday", "source_id": "forum:1"}
TRUTH = {"text": "The deploy window is Friday", "source_id": "handbook"}
KEYED = {"fact_key": "deploy.window"}
QUESTION = "When is the deploy window?"


@kept_fixture
def bank(connection: Connection) -> None:
    create(connection, settings={"source_trust": {"forum:*": 0.1, "forum:staff": 1}})


def keyed(fact: dict[str, str], said: str) -> dict[str, str]:
    return fact | KEYED | {"mentioned_at": said}


def trusts(connection: Connection) -> dict[str, Any]:
    found = call(connection, "hybrid_recall", bank="b", query=QUESTION, top_k=20)
    return {row.source_id: row.trust for row in found}


def memories(connection: Connection) -> list[tuple[Any, ...]]:
    return rows(connection, "select to_jsonb(m) from pgrecall.memory m order by memory_id")


# Scores


def test_a_source_is_named_whole_or_by_how_it_begins(bank: Connection) -> None:
    sources = ("forum:1", "forum:staff", "forums", "handbook")
    retain(bank, [{"text": f"A window, says {s}", "source_id": s} for s in sources])

    assert trusts(bank) == {"forum:1": 0.1, "forum:staff": 1, "forums": 1, "handbook": 1}


@pytest.mark.parametrize(("named", "trust"), [({"*": 0.2}, 0.2), ({"*": 0.2, "": 1}, 1)])
def test_a_fact_without_a_source_has_the_empty_name(
    bank: Connection, named: dict[str, float], trust: float
) -> None:
    call(bank, "configure_bank", bank="b", settings={"source_trust": named})
    retain(bank, ["kraken"])

    (hit,) = call(bank, "hybrid_recall", bank="b", query="kraken", options={"arms": ["lexical"]})

    assert hit.trust == pytest.approx(trust)


def test_the_score_is_multiplied_by_the_trust(bank: Connection) -> None:
    """What repeats or denies a fact of a trusted source counts by its trust once more."""
    retain(bank, [LIE, TRUTH, {"text": "A window of the kitchen is open", "source_id": "forum:2"}])

    found = call(bank, "hybrid_recall", bank="b", query=QUESTION)

    assert all(
        sum(arm["contribution"] for arm in row.arms.values()) == pytest.approx(row.score)
        for row in found
    )
    call(bank, "configure_bank", bank="b", settings={"source_trust": {}})
    undefended = {
        row.source_id: row.score for row in call(bank, "hybrid_recall", bank="b", query=QUESTION)
    }
    shares = {row.source_id: row.score / undefended[row.source_id] for row in found}
    assert shares == pytest.approx({"handbook": 1, "forum:1": 0.01, "forum:2": 0.1})


def test_no_text_makes_up_for_trust(bank: Connection) -> None:
    stuffed = " ".join([QUESTION] * 30)
    retain(bank, [{"text": stuffed, "source_id": "forum:1"}, TRUTH])

    assert recalled(bank, QUESTION)[0] == TRUTH["text"]


@pytest.mark.parametrize(("prefer", "said"), [("latest", "2026-02-02"), ("former", "2026-01-01")])
def test_no_time_makes_up_for_trust(bank: Connection, prefer: str, said: str) -> None:
    call(bank, "configure_bank", bank="b", settings={"source_trust": {"forum:*": 0.9}})
    entities = {"entities": ["deploy window"]}
    retain(bank, [TRUTH | entities | {"mentioned_at": "2026-01-15"}])
    retain(bank, [LIE | entities | {"mentioned_at": said}])

    assert recalled(bank, QUESTION, prefer=prefer)[0] == TRUTH["text"]

    call(bank, "configure_bank", bank="b", settings={"source_trust": {}})
    assert recalled(bank, QUESTION, prefer=prefer)[0] == LIE["text"]


def test_few_rows_of_one_source_stand_before_others(bank: Connection) -> None:
    retain(bank, [{"text": f"{LIE['text']} {n}", "source_id": f"forum:{n}"} for n in range(9)])
    retain(bank, [{"text": "A window is open", "source_id": "handbook"}])
    call(bank, "configure_bank", bank="b", settings={"source_trust": {"forum:*": 0.9}})

    found = call(bank, "hybrid_recall", bank="b", query=QUESTION, untrusted_rows=2)

    assert [row.source_id for row in found].index("handbook") == 2
    assert len(found) == 10


@pytest.fixture
def crowd(bank: Connection) -> Connection:
    """Nine lies of one source, each later than the one before, and a fact of another."""
    retain(bank, [
        {"text": f"{LIE['text']} {n}", "source_id": f"forum:{n}",
         "occurred": f"2026-03-{n + 1:02}", "embedding": [1, 0.1 * n]}
        for n in range(9)
    ])  # fmt: skip
    retain(bank, [{"text": "A window is open", "source_id": "handbook", "embedding": [1, 2]}])
    call(bank, "configure_bank", bank="b", settings={"source_trust": {"forum:*": 0.9}})
    return bank


@pytest.mark.parametrize(
    "options",
    [
        {"fusion": "linear"},
        {"fusion": "linear", "recency_half_life": "300 days"},
        {"diversity": 0.9},
        {"embedding": [-1, -2], "similarity_floor": -1, "arms": ["semantic"]},
    ],
    ids=str,
)
def test_no_order_lifts_what_is_beyond_the_rows_of_a_source(
    crowd: Connection, options: dict[str, Any]
) -> None:
    found = call(crowd, "hybrid_recall", bank="b", query=QUESTION, untrusted_rows=2, **options)

    assert "handbook" in {row.source_id for row in found[:3]}
    assert [row.is_surplus for row in found] == [False] * 3 + [True] * 7


@pytest.mark.parametrize(
    # The lies are states of one fact, whose order a blend keeps.
    ("mode", "first"),
    [("blend", [1, 2, 3]), ("replace", [3, 2, 1])],
)
def test_no_reranker_lifts_what_is_beyond_the_rows_of_a_source(
    crowd: Connection, mode: Any, first: list[int]
) -> None:
    def lied(_query: str, texts: Sequence[str]) -> list[float]:
        return [0.9 + n / 1000 if "Sunday" in text else 0.1 for n, text in enumerate(texts)]

    in_sql = rows(
        crowd,
        "select h.source_id, r.relevance from (select array(select h from pgrecall.hybrid_recall("
        "'b', %s) as h)) as f(hits) cross join pgrecall.rerank("
        "f.hits, array[0.91, 0.92, 0.93, 0.1] || array_fill(0.95::float8, array[6]), mode => %s)"
        " as r join lateral unnest(f.hits) as h using (memory_id) order by r.rank",
        QUESTION,
        mode,
    )
    in_driver = Recall(crowd, embedder=None, reranker=lied).recall(
        "b", QUESTION, rerank_mode=mode, strict=True
    )

    assert [source for source, _ in in_sql].index("handbook") == 3
    assert [relevance for _, relevance in in_sql][4:] == [None] * 6
    assert [hit.source_id for hit in in_driver].index("handbook") == 3
    assert [hit.fused_rank for hit in in_driver] == [*first, *range(4, 11)]


def test_few_rows_of_any_source_stand_before_others_where_that_is_wanted(bank: Connection) -> None:
    retain(bank, [{"text": f"{LIE['text']} {n}", "source_id": "chat"} for n in range(9)])
    retain(bank, [f"{LIE['text']} {n}, says nobody" for n in range(4)])
    retain(bank, [{"text": "A window is open", "source_id": "handbook"}])

    def sources(**options: int) -> list[str | None]:
        found = call(bank, "hybrid_recall", bank="b", query=QUESTION, top_k=20, **options)
        assert [row.score for row in found] == sorted((row.score for row in found), reverse=True)
        return [row.source_id for row in found]

    assert "handbook" not in sources()[:13]
    few = sources(source_rows=2)
    assert few[:7].count("chat") == 2
    assert few[:7].count(None) == 4
    assert few[7:] == ["chat"] * 7


def test_a_row_that_is_behind_all_others_anyway_keeps_its_score(bank: Connection) -> None:
    retain(bank, [{"text": QUESTION, "source_id": "chat"}])
    retain(bank, [{"text": "A window, and much beside it, is open", "source_id": "chat"}])

    def scores(**options: int) -> list[float]:
        found = call(bank, "hybrid_recall", bank="b", query=QUESTION, **options)
        return [row.score for row in found]

    assert scores(source_rows=1) == pytest.approx(scores())


def test_a_source_of_trust_0_is_in_no_answer(bank: Connection) -> None:
    retain(bank, [LIE, TRUTH])
    call(bank, "configure_bank", bank="b", settings={"source_trust": {"forum:1": 0}})

    assert recalled(bank, QUESTION) == [TRUTH["text"]]


def test_messages_count_by_the_trust_of_their_session(bank: Connection) -> None:
    message = {"text": QUESTION, "session": "forum:9"}
    call(bank, "retain_messages", bank="b", messages=[message])

    assert trusts(bank) == {"forum:9": 0.1}


@pytest.mark.parametrize(
    ("trust", "message"),
    [
        ([1], "source_trust must be an object, not [1]"),
        (
            {"web": 2},
            'source_trust: trust of source "web" must be a number from 0 to 1, not 2',
        ),
        (
            {"web": "high"},
            'source_trust: trust of source "web" must be a number from 0 to 1, not "high"',
        ),
    ],
)
def test_unusable_trust_is_refused(bank: Connection, trust: object, message: str) -> None:
    with refused(bank, "22023", message):
        call(bank, "configure_bank", bank="b", settings={"source_trust": trust})


# What the trusted less may not do


def test_a_fact_ends_none_that_is_trusted_more(bank: Connection) -> None:
    (truth,) = retain(bank, [keyed(TRUTH, "2025-01-01")], replace="key")

    with refused(
        bank,
        "RC015",
        f'facts[1]: a fact of source "forum:1" (trust 0.1) may not end memory {truth}'
        ' of source "handbook" (trust 1)',
        "replace => 'none'",
    ):
        retain(bank, ["Ferries sail", *[keyed(LIE, "2025-02-01")] * 2], replace="key")

    assert recalled(bank, QUESTION) == [TRUTH["text"]]
    retain(bank, [keyed(LIE, "2025-02-01")], replace="none")
    assert recalled(bank, QUESTION) == [TRUTH["text"], LIE["text"]]


def test_a_fact_that_arrives_late_is_ended_by_the_next_that_is_trusted(bank: Connection) -> None:
    lie = keyed(LIE, "2025-02-01")
    newer = keyed({"text": "The deploy window is Monday", "source_id": "handbook"}, "2025-03-01")
    retain(bank, [lie], replace="key")
    retain(bank, [newer], replace="key")

    retain(bank, [keyed(TRUTH, "2025-01-01")], replace="key")

    found = rows(bank, "select text, valid_to::date::text from pgrecall.memory order by valid_from")
    assert found == [
        (TRUTH["text"], "2025-03-01"),
        (LIE["text"], "2025-03-01"),
        (newer["text"], None),
    ]


def test_supersede_update_and_consolidate_keep_what_is_trusted(bank: Connection) -> None:
    truth, lie = retain(bank, [TRUTH, LIE])
    refusal = (
        f'a fact of source "forum:1" (trust 0.1) may not end memory {truth} of source "handbook"'
        " (trust 1)"
    )

    with refused(bank, "RC015", refusal):
        call(bank, "supersede", bank="b", memory_id=truth, superseded_by=lie)
    with refused(bank, "RC015", refusal):
        bank.execute(
            "select pgrecall.update_memory('b', %s, %s)",
            [truth, '{"source_id": "forum:1", "text": "Sunday"}'],
        )
    retain(bank, [{**LIE, "text": TRUTH["text"], "mentioned_at": "2030-01-01"}])
    (merged,) = call(bank, "consolidate", bank="b", dry_run=False)
    assert merged.kept_id == truth
    (ended,) = call(bank, "supersede", bank="b", memory_id=lie, superseded_by=truth)
    assert ended.superseded_by == truth


# Quarantine


def test_quarantine_takes_a_source_out_whatever_time_is_asked_for(bank: Connection) -> None:
    retain(bank, [{**LIE, "mentioned_at": "2025-01-01"}, TRUTH])

    changed = call(bank, "quarantine", bank="b", source="forum:*")

    assert [row.text for row in changed] == [LIE["text"]]
    assert recalled(bank, QUESTION) == [TRUTH["text"]]
    assert recalled(bank, QUESTION, as_of="2025-06-01") == []
    with refused(
        bank, "RC015", 'facts[1].source_id: source "forum:*" is in quarantine', "pgrecall.release"
    ):
        retain(bank, ["Fine", {"text": "More of it", "source_id": "forum:2"}])


def test_what_a_source_had_ended_holds_again(bank: Connection) -> None:
    call(bank, "configure_bank", bank="b", settings={"source_trust": {}})
    said = [
        keyed(TRUTH, "2025-01-01"),
        keyed(LIE, "2025-02-01"),
        keyed({"text": "The deploy window is Saturday", "source_id": "forum:2"}, "2025-03-01"),
    ]
    for fact in said:
        retain(bank, [fact], replace="key")
    assert recalled(bank, QUESTION) == [said[2]["text"]]

    call(bank, "quarantine", bank="b", source="forum:*")

    assert recalled(bank, QUESTION) == [TRUTH["text"]]
    assert recalled(bank, QUESTION, as_of="2025-02-15") == [TRUTH["text"]]


def test_up_to_where_another_source_took_over(bank: Connection) -> None:
    call(bank, "configure_bank", bank="b", settings={"source_trust": {}})
    newer = {"text": "The deploy window is Monday", "source_id": "handbook"}
    for fact in keyed(TRUTH, "2025-01-01"), keyed(LIE, "2025-02-01"), keyed(newer, "2025-03-01"):
        retain(bank, [fact], replace="key")

    call(bank, "quarantine", bank="b", source="forum:1")

    assert recalled(bank, QUESTION) == [newer["text"]]
    assert recalled(bank, QUESTION, as_of="2025-02-15") == [TRUTH["text"]]
    # One that arrives late meets no fact of the source.
    retain(bank, [keyed({"text": "The deploy window is Tuesday"}, "2025-01-15")], replace="key")
    assert recalled(bank, QUESTION, as_of="2025-02-15") == ["The deploy window is Tuesday"]


def moved(place: str, said: str, source: str, **fields: str) -> dict[str, Any]:
    return {
        "text": f"Maya lives in {place}",
        "relations": [{"from": "Maya", "kind": "lives_in", "to": place}],
        "mentioned_at": said,
        "source_id": source,
        **fields,
    }


MOVES = [
    pytest.param(
        "key",
        [moved("Porto", "2025-01-01", "handbook", fact_key="home"),
         moved("Bonn", "2025-02-01", "forum:1", fact_key="home", expires_at="2025-03-01"),
         moved("Lisbon", "2025-04-01", "handbook", fact_key="home")],
        id="its fact had expired by then",
    ),
    pytest.param(
        "relation",
        [moved("Porto", "2025-01-01", "handbook"),
         moved("Lisbon", "2025-02-01", "forum:1"),
         moved("Lisbon", "2025-04-01", "handbook")],
        id="it said the same before",
    ),
    pytest.param(
        "key",
        [moved("Porto", "2025-01-01", "handbook", fact_key="home"),
         moved("Bonn", "2025-03-01", "forum:1", fact_key="home"),
         moved("Rome", "2025-02-01", "forum:2", fact_key="home", expires_at="2025-02-15"),
         moved("Lisbon", "2025-04-01", "handbook", fact_key="home")],
        id="it ended it twice",
    ),
    pytest.param(
        "both",
        [moved("Porto", "2025-01-01", "handbook", fact_key="home"),
         {"text": "Maya works from Bonn", "mentioned_at": "2025-02-01", "source_id": "forum:1",
          "fact_key": "home", "relations": [{"from": "Maya", "kind": "leads", "to": "Atlas"}]},
         {"text": "Maya leads Hermes", "mentioned_at": "2025-03-01", "source_id": "handbook",
          "relations": [{"from": "Maya", "kind": "leads", "to": "Hermes"}]}],
        id="its fact was replaced for something else",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("replace", "said"), MOVES)
@pytest.mark.parametrize("mode", ["of the bank", "of the call"])
def test_without_a_source_all_else_is_as_if_it_had_said_nothing(
    bank: Connection, replace: str, said: list[dict[str, Any]], mode: str
) -> None:
    settings = {"source_trust": {}, "replace": replace if mode == "of the bank" else "none"}
    call(bank, "configure_bank", bank="b", settings=settings)
    create(bank, "without", settings=settings)
    for fact in said:
        retain(bank, [fact], replace=replace)
        if fact["source_id"] == "handbook":
            retain(bank, [fact], "without", replace=replace)
    spans = (
        "select text, valid_from, valid_to from pgrecall.memory"
        " where bank_id = %s and source_id = 'handbook' order by valid_from"
    )
    before = memories(bank)
    planned = call(bank, "quarantine", bank="b", source="forum:*", dry_run=True)

    changed = call(bank, "quarantine", bank="b", source="forum:*")

    assert rows(bank, spans, "b") == rows(bank, spans, "without")
    assert changed == planned
    call(bank, "release", bank="b", source="forum:*")
    assert memories(bank) == before


def test_what_holds_again_does_not_stand_beside_its_equal(bank: Connection) -> None:
    call(bank, "configure_bank", bank="b", settings={"source_trust": {}})
    old, _ = retain(bank, [keyed(TRUTH, "2025-01-01"), keyed(LIE, "2025-02-01")], replace="key")
    (new,) = retain(
        bank, [{**keyed(TRUTH, "2025-01-01"), "expires_at": "2999-01-01"}], replace="none"
    )
    assert new != old

    call(bank, "quarantine", bank="b", source="forum:*")

    assert recalled(bank, QUESTION) == [TRUTH["text"]]


def test_the_plan_of_a_quarantine_says_what_it_will_do(bank: Connection) -> None:
    call(bank, "configure_bank", bank="b", settings={"source_trust": {}})
    old, lie, newer = retain(bank, [TRUTH, LIE, {"text": "Newer", "source_id": "handbook"}])
    call(bank, "supersede", bank="b", memory_id=lie, superseded_by=newer, at="2020-01-01")
    call(bank, "supersede", bank="b", memory_id=old, superseded_by=lie)
    bank.execute("update pgrecall.memory set valid_to = '2020-01-01', valid_from = '2019-01-01'"
                 " where memory_id = %s", (lie,))  # fmt: skip

    planned = call(bank, "quarantine", bank="b", source="forum:*", dry_run=True)

    assert call(bank, "quarantine", bank="b", source="forum:*") == planned


def test_what_was_ended_by_a_forgotten_memory_before_holds_no_quarantine_up(
    bank: Connection,
) -> None:
    call(bank, "configure_bank", bank="b", settings={"source_trust": {}})
    old, forgotten, lie = retain(bank, ["Old", "Newer", {"text": "Lie", "source_id": "forum:1"}])
    for successor in (forgotten, lie):
        call(bank, "supersede", bank="b", memory_id=old, superseded_by=successor)
    call(bank, "forget", bank="b", memory_ids=[forgotten])

    changed = call(bank, "quarantine", bank="b", source="forum:1")

    assert [(row.memory_id, row.superseded_by) for row in changed] == [(lie, None), (old, None)]


def test_release_brings_every_row_back(bank: Connection) -> None:
    call(bank, "configure_bank", bank="b", settings={"source_trust": {}})
    for fact in keyed(TRUTH, "2025-01-01"), keyed(LIE, "2025-02-01"):
        retain(bank, [fact], replace="key")
    retain(bank, ["Something else", {**TRUTH, "source_id": "forum:7"}])
    call(bank, "consolidate", bank="b", dry_run=False)
    before = memories(bank)
    listed = call(bank, "quarantine", bank="b", source="forum:*", dry_run=True)
    assert memories(bank) == before

    done = call(bank, "quarantine", bank="b", source="forum:*")
    again = call(bank, "quarantine", bank="b", source="forum:*")
    assert memories(bank) != before

    assert (done, again) == (listed, [])
    call(bank, "release", bank="b", source="forum:*")
    assert memories(bank) == before
    assert value(bank, "select quarantined from pgrecall.bank") == {}
    retain(bank, [{"text": "Again", "source_id": "forum:2"}])


def test_what_quarantine_did_is_undone_by_release_alone(bank: Connection) -> None:
    lie, truth = retain(bank, [LIE, TRUTH])
    call(bank, "quarantine", bank="b", source="forum:1")
    message = f"memory {lie} was last changed by quarantine()"

    with refused(bank, "RC015", message, "Release"):
        call(bank, "unsupersede", bank="b", memory_id=lie)
    with refused(bank, "RC015", message, "Release"):
        call(bank, "supersede", bank="b", memory_id=lie, superseded_by=truth)
    with refused(bank, "22023", 'source "web" of bank "b" is not in quarantine', "forum:1"):
        call(bank, "release", bank="b", source="web")
    with refused(bank, "22023", 'source must be a name of 1 to 500 characters, not "*"'):
        call(bank, "quarantine", bank="b", source="*")


@pytest.mark.parametrize("names", [("forum:1", "forum:*"), ("forum:*", "forum:1")])
def test_what_is_in_quarantine_by_two_names_is_released_by_both(
    bank: Connection, names: tuple[str, str]
) -> None:
    retain(bank, [{"text": "Said", "source_id": "forum:1"}])
    before = memories(bank)
    for name in names:
        call(bank, "quarantine", bank="b", source=name)

    assert call(bank, "release", bank="b", source=names[0]) == []
    assert call(bank, "list_memories", bank="b", filter="text = 'Said'") == []
    (released,) = call(bank, "release", bank="b", source=names[1])

    assert released.text == "Said"
    assert memories(bank) == before


def test_messages_of_a_source_in_quarantine_are_in_no_answer(bank: Connection) -> None:
    message = {"text": QUESTION, "session": "forum:9"}
    call(bank, "retain_messages", bank="b", messages=[message])

    call(bank, "quarantine", bank="b", source="forum:*")

    assert recalled(bank, QUESTION) == []


@pytest.mark.parametrize("is_trusted", [True, False])
@pytest.mark.parametrize("is_link", [True, False], ids=["cause", "relation"])
def test_no_path_leads_over_what_a_source_in_no_answer_says(
    bank: Connection, is_link: bool, is_trusted: bool
) -> None:
    known = {"text": "Zed keeps the budget.", "entities": ["Zed"], "fact_key": "budget"}
    rumour: dict[str, Any] = {"text": "Ana controls Zed.", "source_id": "forum:1"}
    if is_link:
        rumour |= {"entities": ["Ana"], "links": [{"kind": "causes", "to_key": "budget"}]}
    else:
        rumour |= {"relations": [{"from": "Ana", "kind": "controls", "to": "Zed"}]}
    lunch = {"text": "Ana was at lunch.", "entities": ["Ana"]}
    retain(bank, [known, lunch, rumour, *(f"filler {n}" for n in range(9))])
    asked = "What came of Ana?" if is_link else "Whom does Ana control?"
    before = call(bank, "hybrid_recall", bank="b", query=asked)

    if is_trusted:
        call(bank, "quarantine", bank="b", source="forum:*")
    else:
        call(bank, "configure_bank", bank="b", settings={"source_trust": {"forum:*": 0}})

    after = call(bank, "hybrid_recall", bank="b", query=asked)
    assert known["text"] in [row.text for row in before]
    assert [(row.text, row.via) for row in after] == [(lunch["text"], None)]


# Who did what


def test_trust_in_a_part_of_what_is_in_quarantine_lets_no_message_out(bank: Connection) -> None:
    call(bank, "configure_bank", bank="b", settings={"source_trust": {"forum:1": 0.8, "wiki": 0.9}})
    said = [{"text": QUESTION, "session": name} for name in ("forum:1", "forum:2", "wiki")]
    call(bank, "retain_messages", bank="b", messages=said)

    call(bank, "quarantine", bank="b", source="forum:*")

    found = call(bank, "hybrid_recall", bank="b", query=QUESTION)
    assert [(row.source_id, row.trust) for row in found] == [("wiki", 0.9)]


def test_a_row_says_who_stored_it_when_and_from_what(bank: Connection) -> None:
    (memory,) = retain(bank, [TRUTH])

    (row,) = call(bank, "hybrid_recall", bank="b", query=QUESTION)
    (stored,) = call(bank, "stored_memories", bank="b", memory_ids=[memory])

    who, now = rows(bank, "select current_user::text, now()")[0]
    assert (row.written_by, row.stored_at, row.source_id) == (who, now, "handbook")
    assert stored.written_by == who


def test_the_audit_tells_what_was_stored_and_ended_by_whom(bank: Connection) -> None:
    truth, other = retain(bank, [TRUTH, "It moved to Monday"])
    bank.execute("create role auditee in role pg_monitor")
    bank.execute("grant usage on schema pgrecall, pgrecall_internal to auditee")
    bank.execute("grant all on all tables in schema pgrecall, pgrecall_internal to auditee")
    bank.execute("grant all on pgrecall.id_seq to auditee")
    bank.execute("set local role auditee")
    call(bank, "supersede", bank="b", memory_id=truth, superseded_by=other)
    retain(bank, [LIE])
    bank.execute("reset role")
    owner = value(bank, "select current_user::text")

    found = call(bank, "audit", bank="b")

    events = {(row.action, row.by, row.memory_id, row.other_id) for row in found}
    (lie,) = (row.memory_id for row in found if row.source_id == "forum:1")
    assert events == {
        ("retain", owner, truth, None),
        ("retain", owner, other, None),
        ("retain", "auditee", lie, None),
        ("supersede", "auditee", truth, other),
    }
    assert {row.at for row in found} == {value(bank, "select now()")}
    of_source = call(bank, "audit", bank="b", source="forum:*")
    assert [row.memory_id for row in of_source] == [lie]
    assert call(bank, "audit", bank="b", since="2999-01-01") == []
