"""Facts that replace, expire, contradict and repeat one another, and what undoes that."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from random import Random
from typing import Any

import pytest

from servers import kept_fixture
from sqlcalls import (
    Connection,
    call,
    contents,
    create,
    recalled,
    refused,
    retain,
    retained,
    rows,
    value,
)

PORTO = {
    "text": "Maya lives in Porto",
    "entities": ["Maya", "Porto"],
    "relations": [{"from": "Maya", "kind": "lives_in", "to": "Porto"}],
    "mentioned_at": "2024-01-01",
}
LISBON = {
    "text": "Maya lives in Lisbon",
    "entities": ["Maya", "Lisbon"],
    "relations": [{"from": "Maya", "kind": "lives_in", "to": "Lisbon"}],
    "mentioned_at": "2025-01-01",
}


@kept_fixture
def bank(connection: Connection) -> None:
    create(connection)


def window(day: str, said: str | None = None, **fields: object) -> dict[str, object]:
    """Return a fact of the key deploy.window."""
    fact = {"text": f"The deploy window is {day}", "fact_key": "deploy.window", **fields}
    return fact | ({"mentioned_at": said} if said else {})


def days(bank: Connection, as_of: str | None = None) -> list[str]:
    """Return the days that the key arm finds as of a time."""
    found = call(bank, "hybrid_recall", bank="b", query="deploy.window", as_of=as_of)
    return sorted(row.text.removeprefix("The deploy window is ") for row in found)


def spans(bank: Connection) -> list[tuple[Any, ...]]:
    return rows(
        bank,
        "select text, valid_from::date::text, valid_to::date::text,"
        " (select s.text from pgrecall.memory s where s.memory_id = m.superseded_by)"
        " from pgrecall.memory m order by valid_from, memory_id",
    )


# Replacing by key


def test_a_fact_replaces_that_of_its_key_from_when_it_was_said(bank: Connection) -> None:
    retain(bank, [window("Monday", "2024-01-01")], replace="key")

    retain(bank, [window("Friday", "2025-01-01")], replace="key")

    assert days(bank) == ["Friday"]
    assert days(bank, "2025-01-01Z") == ["Friday"]
    assert days(bank, "2024-12-31T23:59:59Z") == ["Monday"]
    assert days(bank, "2023-12-31") == []


def test_without_replace_both_values_of_a_key_hold(bank: Connection) -> None:
    retain(bank, [window("Monday"), window("Friday")])

    assert days(bank) == ["Friday", "Monday"]


def test_the_setting_of_the_bank_holds_unless_the_call_says_otherwise(bank: Connection) -> None:
    bank.execute("""select pgrecall.configure_bank('b', '{"replace": "key"}')""")
    retain(bank, [window("Monday", "2024-01-01")])

    retain(bank, [window("Friday", "2024-02-01")])
    retain(bank, [window("Sunday", "2024-03-01")], replace="none")

    assert days(bank) == ["Friday", "Sunday"]


def test_keys_are_compared_as_the_key_arm_does(bank: Connection) -> None:
    retain(bank, [window("Monday", "2024-01-01", fact_key="DEPLOY.window")], replace="key")
    retain(bank, ["no key", window("Sunday", "2024-01-01", fact_key="deploy")], replace="key")

    retain(bank, [window("Friday", "2025-01-01")], replace="key")

    assert value(bank, "select count(*) from pgrecall.memory where valid_to is not null") == 1


def test_facts_of_one_batch_replace_one_another_in_order(bank: Connection) -> None:
    facts = [window("Monday"), window("Tuesday"), {"text": "other"}, window("Friday")]

    found = retain(bank, facts, replace="key")

    assert days(bank) == ["Friday"]
    assert [row[2] for row in retained(bank, facts, replace="key")] == [False] * 4
    assert [row[1] for row in retained(bank, facts, replace="key")] == found


def test_what_arrives_late_ends_only_what_was_said_before_it(bank: Connection) -> None:
    facts = [window("Monday", "2022-01-01"), window("Friday", "2024-01-01")]
    retain(bank, facts, replace="key")

    retain(bank, [window("Wednesday", "2023-01-01")], replace="key")

    text = "The deploy window is "
    assert spans(bank) == [
        (text + "Monday", "2022-01-01", "2023-01-01", text + "Wednesday"),
        (text + "Wednesday", "2023-01-01", "2024-01-01", text + "Friday"),
        (text + "Friday", "2024-01-01", None, None),
    ]


def test_a_history_that_is_retained_twice_is_stored_once(bank: Connection) -> None:
    facts = [window(day, f"202{n}-01-01") for n, day in enumerate(["Monday", "Friday", "Monday"])]
    retain(bank, facts, replace="key")
    before = contents(bank)

    again = retained(bank, facts, replace="key")

    assert not any(is_new for _, _, is_new in again)
    assert contents(bank) == before


def test_a_value_can_come_back(bank: Connection) -> None:
    for day in ("Monday", "Friday", "Monday"):
        retain(bank, [window(day)], replace="key")

    assert days(bank) == ["Monday"]


def test_a_value_that_is_said_again_last_stays(bank: Connection) -> None:
    (kept,) = retain(bank, [window("Friday")], replace="key")

    found = retain(bank, [window("Monday"), window("Friday")], replace="key")

    assert days(bank) == ["Friday"]
    assert found[1] == kept


def test_facts_that_stood_side_by_side_do_not_replace_one_another_later(bank: Connection) -> None:
    retain(bank, [window("Monday", "2022-01-01"), window("Tuesday", "2023-01-01")])

    retain(bank, [window("Friday", "2024-01-01")], replace="key")

    assert days(bank) == ["Friday"]
    assert days(bank, "2023-06-01") == ["Monday", "Tuesday"]


# Replacing by relation


def test_a_relation_that_leads_elsewhere_replaces_the_fact_that_led_it(bank: Connection) -> None:
    retain(bank, [PORTO, "Maya likes Porto"], replace="relation")

    retain(bank, [LISBON], replace="relation")

    assert recalled(bank, "Where does Maya live?")[0] == "Maya lives in Lisbon"
    assert "Maya lives in Porto" not in recalled(bank, "Where does Maya live?")
    before = recalled(bank, "Where does Maya live?", as_of="2024-06-01")
    assert before[0] == "Maya lives in Porto"


def test_a_relation_that_leads_to_the_same_replaces_nothing(bank: Connection) -> None:
    retain(bank, [PORTO], replace="relation")

    again = PORTO | {"text": "Porto is where Maya lives", "mentioned_at": "2025-01-01"}
    retain(bank, [again], replace="relation")
    retain(bank, [LISBON | {"mentioned_at": "2026-01-01"}], replace="relation")

    assert spans(bank) == [
        ("Maya lives in Porto", "2024-01-01", "2026-01-01", "Maya lives in Lisbon"),
        ("Porto is where Maya lives", "2025-01-01", "2026-01-01", "Maya lives in Lisbon"),
        ("Maya lives in Lisbon", "2026-01-01", None, None),
    ]


def test_another_kind_or_entity_replaces_nothing(bank: Connection) -> None:
    others: list[dict[str, object]] = [
        {"text": "a", "relations": [{"from": "Maya", "kind": "works_in", "to": "Lisbon"}]},
        {"text": "b", "relations": [{"from": "Leo", "kind": "lives_in", "to": "Lisbon"}]},
        {"text": "c", "relations": [{"from": "Porto", "kind": "lives_in", "to": "Maya"}]},
    ]
    retain(bank, [PORTO], replace="relation")

    retain(bank, others, replace="relation")

    assert [row[2] for row in spans(bank)] == [None] * 4


def test_only_single_relations_replace_where_a_bank_names_them(bank: Connection) -> None:
    bank.execute(
        "select pgrecall.configure_bank("
        """'b', '{"replace": "relation", "single_relations": ["lives_in"]}')"""
    )
    knows = [
        {"text": f"Maya knows {n}", "relations": [{"from": "Maya", "kind": "knows", "to": n}]}
        for n in ("Ana", "Leo")
    ]

    for fact in [PORTO, LISBON, *knows]:
        retain(bank, [fact])

    assert [row[0] for row in spans(bank) if row[2]] == ["Maya lives in Porto"]


def test_a_relation_that_ended_by_itself_is_history(bank: Connection) -> None:
    ended = {"from": "Maya", "kind": "lives_in", "to": "Porto", "valid_to": "2020-01-01"}
    retain(bank, [PORTO | {"relations": [ended]}], replace="relation")
    retain(bank, [LISBON], replace="relation")
    late = {"text": "Maya lived in Faro", "mentioned_at": "2026-01-01"}
    retain(bank, [late | {"relations": [ended | {"to": "Faro"}]}], replace="relation")

    assert [row[2] for row in spans(bank)] == [None] * 3


def test_both_replaces_by_key_and_by_relation(bank: Connection) -> None:
    retain(bank, [PORTO, window("Monday", "2024-01-01")], replace="both")

    retain(bank, [LISBON, window("Friday", "2024-02-01")], replace="both")

    assert [row[0] for row in spans(bank) if row[2]] == [
        "Maya lives in Porto",
        "The deploy window is Monday",
    ]


# Expiring


def test_a_fact_is_found_until_it_expires(bank: Connection) -> None:
    retain(bank, [window("Monday", "2024-01-01", expires_at="2024-02-01T00:00Z")])

    assert days(bank, "2024-01-31T23:59:59Z") == ["Monday"]
    assert days(bank, "2024-02-01Z") == []


def test_a_fact_that_expires_is_stored_once_and_can_expire_later(bank: Connection) -> None:
    (first,) = retain(bank, [window("Monday", expires_at="9999-01-01")])

    ((_, again, is_new),) = retained(bank, [window("Monday", expires_at="9999-02-01")])
    ((_, bare, _),) = retained(bank, [window("Monday")])

    assert (again, bare, is_new) == (first, first, False)
    assert value(bank, "select valid_to = '9999-02-01Z' from pgrecall.memory")


def test_a_fact_that_has_expired_is_known_by_its_end_alone(bank: Connection) -> None:
    past = window("Monday", "2024-01-01", expires_at="2024-02-01")
    (first,) = retain(bank, [past])

    assert retain(bank, [past]) == [first]
    assert retain(bank, [past | {"expires_at": "2025-01-01"}]) != [first]


@pytest.mark.parametrize("order", [1, -1])
def test_equal_facts_of_a_batch_are_one_memory_whichever_says_that_it_has_expired(
    bank: Connection, order: int
) -> None:
    said = window("Monday", "2024-01-01")
    batch = [said | {"expires_at": "2024-02-01"}, said][::order]

    (first, second), again = retain(bank, batch), retain(bank, batch)

    assert first == second is not None
    assert again == [first, first]
    assert [row[2] for row in spans(bank)] == ["2024-02-01"]


def test_a_fact_expires_even_where_another_replaces_it_later(bank: Connection) -> None:
    retain(bank, [window("Monday", "2024-01-01", expires_at="2024-02-01")], replace="key")
    retain(bank, [window("Friday", "2024-03-01", expires_at="2024-04-01")], replace="key")

    assert [days(bank, f"2024-0{month}-15") for month in range(1, 5)] == [
        ["Monday"],
        [],
        ["Friday"],
        [],
    ]


def test_a_fact_cannot_expire_before_it_was_said(bank: Connection) -> None:
    with refused(
        bank,
        "RC003",
        'facts[0].expires_at: "2024-01-01" is not after the fact was said',
        "^A fact expires after its mentioned_at",
    ):
        retain(bank, [window("Monday", "2024-01-01", expires_at="2024-01-01")])


# Superseding, near copies, undoing

COPIES = [
    {"text": "Maya lives in Porto", "entities": ["Maya", "Porto"], "embedding": [1, 0.1, 0]},
    {"text": "Maya has lived in Porto", "entities": ["Maya", "Porto"], "embedding": [1, 0.11, 0]},
    {"text": "Maya lives in Lisbon", "entities": ["Maya", "Lisbon"], "embedding": [1, 0.2, 0]},
    {"text": "Maya lives in no Porto", "entities": ["Maya", "Porto"], "embedding": [1, 0.1, 0]},
    {"text": "Leo lives in Porto", "entities": ["Leo", "Porto"], "embedding": [1, 0.1, 0.1]},
    {"text": "Maya sails in Porto", "entities": ["Maya", "Porto"], "embedding": [0, 1, 0]},
]


def test_near_copies_say_the_same_of_the_same(bank: Connection) -> None:
    porto, copy, *_ = retain(bank, COPIES)

    ((memory_id, text, similarity, shared, is_same_source),) = call(
        bank, "near_copies", bank="b", memory_id=porto
    )

    assert (memory_id, text) == (copy, "Maya has lived in Porto")
    assert similarity == pytest.approx(1, abs=0.01)
    assert (shared, is_same_source) == (["Maya", "Porto"], False)


def test_near_copies_are_found_without_embeddings(bank: Connection) -> None:
    facts = [
        {"text": "The harbour of Porto opens at dawn", "source_id": "diary"},
        {"text": "the harbour of Porto opens at dawn!", "source_id": "diary"},
        {"text": "The harbour of Porto opens at 9", "source_id": "diary"},
    ]
    first, copy, _ = retain(bank, facts)

    found = call(bank, "near_copies", bank="b", memory_id=first)

    assert [row.memory_id for row in found] == [copy]
    assert found[0].is_same_source


def test_near_copies_without_embeddings_are_found_by_words_alone(bank: Connection) -> None:
    first, copy, *_ = retain(
        bank,
        ['The "harbour" - of Porto - opens at dawn', "The harbour of Porto opens at dawn!",
         "The harbour of Lisbon closes at dusk", "!?"],
    )  # fmt: skip
    (wordless,) = retain(bank, ["..."])

    found = call(bank, "near_copies", bank="b", memory_id=first)

    assert [row.memory_id for row in found] == [copy]
    assert call(bank, "near_copies", bank="b", memory_id=wordless) == []


def test_what_takes_the_place_of_a_memory_keeps_its_own_copies(bank: Connection) -> None:
    monday, friday, copy = retain(
        bank,
        [
            {"text": "Deploys run each Monday", "fact_key": "w", "embedding": [1, 0.1]},
            {"text": "Deploys run each Friday", "fact_key": "w", "embedding": [1, 0.3]},
            {"text": "On each Friday deploys run", "fact_key": "w", "embedding": [1, 0.3]},
        ],
    )

    alone = call(bank, "near_copies", bank="b", memory_id=monday)
    corrected = call(bank, "near_copies", bank="b", memory_id=monday, superseded_by=friday)

    assert {row.memory_id for row in alone} == {friday, copy}
    assert corrected == []


@pytest.mark.parametrize("is_replaced", [True, False])
def test_superseding_reaches_copies_when_asked_and_is_undone_row_for_row(
    bank: Connection, is_replaced: bool
) -> None:
    porto, copy, lisbon, *_ = retain(bank, COPIES)
    before = contents(bank)
    arguments = {"bank": "b", "memory_id": porto, "reach": "copies"}
    if is_replaced:
        arguments["superseded_by"] = lisbon

    listed = call(bank, "supersede", **arguments, dry_run=True)
    unchanged = contents(bank)
    done = call(bank, "supersede", **arguments)

    assert unchanged == before
    assert listed == done
    assert [row.memory_id for row in done] == [porto, copy]
    assert not {"Maya lives in Porto", "Maya has lived in Porto"} & set(recalled(bank, "Maya"))
    restored = call(bank, "unsupersede", bank="b", memory_id=copy)
    assert [row.memory_id for row in restored] == [copy, porto]
    assert contents(bank) == before


def test_superseding_reaches_no_further_than_asked(bank: Connection) -> None:
    porto, *_ = retain(bank, COPIES)

    done = call(bank, "supersede", bank="b", memory_id=porto)

    assert [row.memory_id for row in done] == [porto]
    assert value(bank, "select count(*) from pgrecall.memory where valid_to is not null") == 1


def test_corrections_are_undone_one_by_one_from_the_last(bank: Connection) -> None:
    (old, new) = retain(bank, [window("Monday", "2024-01-01"), window("Friday", "2024-02-01")])
    states = [contents(bank)]
    for successor, at in ((None, "2025-01-01Z"), (new, "2024-06-01Z"), (None, "2024-03-01Z")):
        call(bank, "supersede", bank="b", memory_id=old, superseded_by=successor, at=at)
        states.append(contents(bank))

    for state in states[-2::-1]:
        call(bank, "unsupersede", bank="b", memory_id=old)
        assert contents(bank) == state

    with refused(bank, "22023", f"no correction of memory {old} is recorded", "never corrected"):
        call(bank, "unsupersede", bank="b", memory_id=old)


def test_what_a_fact_replaced_is_restored_row_for_row(bank: Connection) -> None:
    (monday, tuesday) = retain(bank, [window("Monday"), window("Tuesday")])
    held = "select m::text from pgrecall.memory m order by memory_id limit 2"
    before = rows(bank, held)
    retain(bank, [window("Friday")], replace="key")

    restored = call(bank, "unsupersede", bank="b", memory_id=tuesday)

    assert [row.memory_id for row in restored] == [tuesday, monday]
    assert rows(bank, held) == before
    assert days(bank) == ["Friday", "Monday", "Tuesday"]


@pytest.mark.parametrize("dry_run", [True, False])
def test_what_has_ended_is_not_superseded_later(bank: Connection, dry_run: bool) -> None:
    (old,) = retain(bank, [window("Monday", "2024-01-01", expires_at="2024-02-01")])

    (done,) = call(bank, "supersede", bank="b", memory_id=old, dry_run=dry_run)

    assert str(done.valid_to)[:10] == "2024-02-01"
    assert days(bank, "2024-03-01") == []


def test_a_memory_does_not_end_at_infinity(bank: Connection) -> None:
    (old,) = retain(bank, [PORTO])

    with refused(bank, "22023", "at must be a time, not infinity", "holds until"):
        call(bank, "supersede", bank="b", memory_id=old, at="infinity")


def test_what_was_superseded_by_a_forgotten_memory_can_be_restored(bank: Connection) -> None:
    (old, new) = retain(bank, [window("Monday"), window("Friday")])
    call(bank, "supersede", bank="b", memory_id=old, superseded_by=new)
    call(bank, "supersede", bank="b", memory_id=old)
    call(bank, "forget", bank="b", memory_ids=[new])

    for _ in range(2):
        call(bank, "unsupersede", bank="b", memory_id=old)

    assert days(bank) == ["Monday"]


def test_a_memory_is_not_restored_beside_its_equal(bank: Connection) -> None:
    (old,) = retain(bank, [window("Monday")])
    call(bank, "supersede", bank="b", memory_id=old)
    (new,) = retain(bank, [window("Monday")])

    with refused(
        bank,
        "22023",
        f"memory {old} cannot be restored: memory {new} now says the same",
        rf"pgrecall.forget\('b', '\{{{new}\}}'\)",
    ):
        call(bank, "unsupersede", bank="b", memory_id=old)


EXPIRY = {"expires_at": "2999-01-01"}


@pytest.mark.parametrize(("first", "then"), [({}, EXPIRY), (EXPIRY, {}), (EXPIRY, EXPIRY)])
def test_a_memory_is_not_restored_beside_its_equal_while_either_has_yet_to_expire(
    bank: Connection, first: dict[str, str], then: dict[str, str]
) -> None:
    (old,) = retain(bank, [window("Monday", **first)])
    call(bank, "supersede", bank="b", memory_id=old)
    (new,) = retain(bank, [window("Monday", **then)])
    assert new != old

    with refused(bank, "22023", f"memory {old} cannot be restored: memory {new} now says the same"):
        call(bank, "unsupersede", bank="b", memory_id=old)

    assert days(bank) == ["Monday"]


def test_a_memory_that_had_ended_before_is_restored_to_that_beside_its_equal(
    bank: Connection,
) -> None:
    (old,) = retain(bank, [window("Monday", "2024-01-01", expires_at="2025-01-01")])
    before = spans(bank)
    call(bank, "supersede", bank="b", memory_id=old, at="2024-06-01")
    (new,) = retain(bank, [window("Monday", "2024-01-01", **EXPIRY)])

    call(bank, "unsupersede", bank="b", memory_id=old)

    assert spans(bank)[0] == before[0]
    assert new != old
    assert days(bank) == ["Monday"]


# Contradictions


def conflicts(bank: Connection, query: str, **arguments: Any) -> dict[str, list[int] | None]:
    found = call(bank, "hybrid_recall", bank="b", query=query, **arguments)
    return {row.text: row.conflicts_with for row in found}


def test_two_values_of_a_key_are_marked(bank: Connection) -> None:
    monday, friday, _ = retain(
        bank,
        [
            window("Monday", "2024-01-01"),
            window("Friday", "2024-02-01"),
            {"text": "deploy.window is a key"},
        ],
    )

    found = conflicts(bank, "deploy.window")

    assert found == {
        "The deploy window is Monday": [friday],
        "The deploy window is Friday": [monday],
        "deploy.window is a key": None,
    }
    assert conflicts(bank, "deploy.window", top_k=1, options={"skip": 1}) in [
        {text: others} for text, others in found.items()
    ]
    assert conflicts(bank, "deploy.window", as_of="2024-01-15") == {
        "The deploy window is Monday": None
    }
    assert conflicts(bank, "deploy.window", as_of="infinity") == found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"text": "It is Monday"}, {"text": "it is monday"}),
        ({"text": "a", "occurred": "2024-01-01"}, {"text": "b", "occurred": "2024-01-02"}),
    ],
    ids=["the same text", "at other times"],
)
def test_values_that_do_not_contradict_are_not_marked(
    bank: Connection, one: dict[str, object], other: dict[str, object]
) -> None:
    retain(bank, [one | {"fact_key": "w"}, other | {"fact_key": "w"}])

    assert set(conflicts(bank, "w").values()) == {None}


def test_relations_conflict_only_where_their_kind_is_single(bank: Connection) -> None:
    porto, lisbon = retain(bank, [PORTO, LISBON])
    unmarked = conflicts(bank, "Where does Maya live?")

    bank.execute("""select pgrecall.configure_bank('b', '{"single_relations": ["lives_in"]}')""")
    by_kind = conflicts(bank, "Where does Maya live?")
    bank.execute(
        """select pgrecall.configure_bank('b', '{"single_relations": [], "replace": "relation"}')"""
    )

    assert set(unmarked.values()) == {None}
    assert by_kind == {"Maya lives in Porto": [lisbon], "Maya lives in Lisbon": [porto]}
    assert conflicts(bank, "Where does Maya live?") == by_kind


def test_relations_that_follow_one_another_do_not_conflict(bank: Connection) -> None:
    bank.execute("""select pgrecall.configure_bank('b', '{"single_relations": ["lives_in"]}')""")
    first = {"from": "Maya", "kind": "lives_in", "to": "Porto", "valid_to": "2024-06-01"}
    then = {"from": "Maya", "kind": "lives_in", "to": "Lisbon", "valid_from": "2024-06-01"}
    retain(bank, [PORTO | {"relations": [first]}, LISBON | {"relations": [then]}])

    assert set(conflicts(bank, "Where does Maya live?").values()) == {None}


# Consolidating

DUPLICATES: list[dict[str, object]] = [
    {"text": "Ana leads Atlas", "entities": ["Ana"], "source_id": "a", "proof_count": 2},
    {"text": "ana  leads ATLAS", "entities": ["Ana"], "source_id": "b", "confidence": 0.5},
    {"text": "Ana leads Atlas", "entities": ["Ana"], "source_id": "c", "confidence": 0.9},
    {"text": "Ana leads Atlas", "entities": ["Ana", "Leo"], "source_id": "d"},
    {"text": "Ana leads Atlas", "entities": ["Ana"], "occurred": "2024-01-01"},
    {"text": "Ana leads Atlas", "entities": ["Ana"], "fact_key": "k"},
    {"text": "Ana leads Atlas", "entities": ["Ana"], "fact_type": "event"},
]


def test_equal_texts_of_the_same_are_merged_and_their_proofs_added(bank: Connection) -> None:
    found = retain(bank, DUPLICATES)
    before = contents(bank)

    listed = call(bank, "consolidate", bank="b")
    unchanged = contents(bank)
    done = call(bank, "consolidate", bank="b", dry_run=False)

    assert unchanged == before
    assert listed == done
    assert [(row.kept_id, row.memory_id, row.proof_count) for row in done] == [
        (found[0], found[1], 4),
        (found[0], found[2], 4),
    ]
    assert rows(
        bank,
        "select memory_id, superseded_by from pgrecall.memory"
        " where valid_to is not null order by 1",
    ) == [(found[1], found[0]), (found[2], found[0])]
    assert (
        value(bank, "select proof_count from pgrecall.memory where memory_id = %s", found[0]) == 4
    )
    assert call(bank, "consolidate", bank="b", dry_run=False) == []


def test_a_consolidation_is_undone_row_for_row(bank: Connection) -> None:
    retain(bank, DUPLICATES)
    before = contents(bank)
    call(bank, "consolidate", bank="b", dry_run=False)

    restored = call(bank, "unconsolidate", bank="b")

    assert len(restored) == 3
    assert contents(bank) == before
    assert call(bank, "unconsolidate", bank="b") == []


def test_what_is_given_after_a_consolidation_stays_when_it_is_undone(bank: Connection) -> None:
    kept, merged, _ = retain(bank, DUPLICATES[:3])
    call(bank, "consolidate", bank="b", dry_run=False)
    retain(bank, [DUPLICATES[1] | {"proof_count": 7}])
    retain(bank, [DUPLICATES[0] | {"expires_at": "2999-01-01"}])

    call(bank, "unconsolidate", bank="b")

    assert rows(
        bank,
        "select memory_id, valid_to::date::text, proof_count from pgrecall.memory"
        " where memory_id in (%s, %s) order by 1",
        kept,
        merged,
    ) == [(kept, "2999-01-01", 2), (merged, None, 7)]


def test_one_group_of_a_consolidation_is_undone_alone(bank: Connection) -> None:
    retain(bank, [*DUPLICATES, {"text": "Leo sails"}, {"text": "Leo  sails"}])
    done = call(bank, "consolidate", bank="b", dry_run=False)

    restored = call(bank, "unsupersede", bank="b", memory_id=done[0].memory_id)

    assert len(restored) == 3
    assert value(bank, "select count(*) from pgrecall.memory where valid_to is not null") == 1


def test_consolidating_changes_nothing_as_of_before(bank: Connection) -> None:
    facts = [dict(fact, mentioned_at="2024-01-01") for fact in DUPLICATES]
    retain(bank, facts)

    call(bank, "consolidate", bank="b", dry_run=False)

    assert len(recalled(bank, "Ana leads Atlas")) == 5
    assert len(recalled(bank, "Ana leads Atlas", as_of="2024-06-01")) == 7


def test_a_merged_fact_that_is_retained_again_is_known(bank: Connection) -> None:
    found = retain(bank, DUPLICATES)
    call(bank, "consolidate", bank="b", dry_run=False)

    again = retained(bank, DUPLICATES)

    assert [(memory_id, is_new) for _, memory_id, is_new in again] == [(n, False) for n in found]


def test_similar_texts_are_merged_by_their_links(bank: Connection) -> None:
    facts = [
        {"text": "Ana leads Atlas", "embedding": [1, 0, 0]},
        {"text": "Atlas is led by Ana", "embedding": [1, 0.1, 0]},
        {"text": "Atlas was led by Ana", "embedding": [1, 0.6, 0]},
        {"text": "Atlas is not led by Ana", "embedding": [1, 0.1, 0]},
    ]
    first, copy, further, _ = retain(bank, facts)

    close = call(bank, "consolidate", bank="b")
    wide = call(bank, "consolidate", bank="b", min_similarity=0.8)

    assert [(row.kept_id, row.memory_id) for row in close] == [(copy, first)]
    assert {(row.kept_id, row.memory_id) for row in wide} == {(further, first), (further, copy)}


def test_only_what_agrees_in_the_rest_is_compared_without_a_vector_index(bank: Connection) -> None:
    facts: list[dict[str, Any]] = [
        {"text": "Ana leads Atlas", "embedding": [1, 0, 0]},
        {"text": "Atlas is led by Ana", "embedding": [1, 0.2, 0]},
    ]
    # Nearer to both, but about others.
    facts += [
        {"text": f"Atlas is led by {name}", "entities": [name], "embedding": [1, 0.1, 0]}
        for name in ("Bo", "Cy", "Dan", "Eve", "Fay", "Gus")
    ]
    first, second, *_ = retain(bank, facts)

    merged = call(bank, "consolidate", bank="b")

    assert [(row.kept_id, row.memory_id) for row in merged] == [(second, first)]


def test_copies_among_many_that_agree_in_the_rest_are_found_without_a_vector_index(
    bank: Connection,
) -> None:
    random = Random(1)
    facts: list[dict[str, Any]] = []
    for n in range(1200):
        embedding = [random.gauss(0, 1) for _ in range(48)]
        if n % 20 == 19:  # a cosine of some 0.97 to the fact before
            embedding = [x + random.gauss(0, 0.2) for x in facts[-1]["embedding"]]
        facts.append({"text": "".join(random.choices("abcdef", k=20)), "embedding": embedding})
    create(bank, "many", embedding_dimensions=48)
    ids = retain(bank, facts, bank="many", link="deferred")

    merged = call(bank, "consolidate", bank="many")

    assert {(row.kept_id, row.memory_id) for row in merged} == {
        (ids[n], ids[n - 1]) for n in range(19, 1200, 20)
    }


def test_repeated_calls_merge_all_that_is_similar(bank: Connection) -> None:
    retain(bank, [
        {"text": f"Atlas is led by Ana {chr(97 + n)}", "embedding": [100, n, n * n % 31]}
        for n in range(26)
    ])  # fmt: skip

    while call(bank, "consolidate", bank="b", dry_run=False):
        pass

    assert len(call(bank, "list_memories", bank="b")) == 1


# Ten years of corrections

BEGIN = datetime(2015, 1, 1, tzinfo=timezone.utc)
DAYS = 3650


class Model:
    """What holds, in plain Python: for each key the statements, newest last."""

    def __init__(self) -> None:
        self.said: dict[str, list[tuple[datetime, int, str, datetime | None]]] = {}
        self.ended: dict[str, datetime] = {}

    def say(self, key: str, at: datetime, text: str, expires: datetime | None) -> None:
        statements = self.said.setdefault(key, [])
        statements.append((at, len(statements), text, expires))
        statements.sort()

    def holds(self, key: str, as_of: datetime) -> str | None:
        last = [one for one in self.said.get(key, []) if one[0] <= as_of][-1:]
        for _, _, text, expires in last:
            if expires and expires <= as_of or self.ended.get(text, as_of) < as_of:
                return None
            return text
        return None


def test_ten_years_of_corrections_hold_nothing_stale(bank: Connection) -> None:
    choose = Random(19)
    model = Model()
    people = [f"Person{n:02}" for n in range(12)]
    ids: dict[str, int] = {}
    moments = sorted(choose.randrange(DAYS * 24) for _ in range(400))
    facts: list[dict[str, object]] = []
    for n, hour in enumerate(moments):
        # One in ten arrives late.
        at = BEGIN + timedelta(
            hours=hour - (choose.randrange(20000) if n % 10 == 9 else 0), seconds=n
        )
        key, person = f"setting.{choose.randrange(25):02}", choose.choice(people)
        fact: dict[str, object] = {"mentioned_at": at.isoformat()}
        if choose.random() < 0.6:
            expires = at + timedelta(days=choose.randrange(1, 400)) if n % 7 == 0 else None
            fact |= {"text": f"{key} is value number{n}", "fact_key": key}
            if expires:
                fact["expires_at"] = expires.isoformat()
            model.say(key, at, str(fact["text"]), expires)
        else:
            fact |= {"text": f"{person} lives in Town{n}"}
            fact["relations"] = [{"from": person, "kind": "lives_in", "to": f"Town{n}"}]
            model.say(person, at, str(fact["text"]), None)
        facts.append(fact)
    while facts:
        batch = [facts.pop(0) for _ in range(min(len(facts), choose.randrange(1, 30)))]
        for fact, memory_id in zip(batch, retain(bank, batch, replace="both"), strict=True):
            ids[str(fact["text"])] = memory_id

    for key in list(model.said)[::3]:
        text = model.holds(key, BEGIN + timedelta(days=DAYS))
        if text is not None:
            at = BEGIN + timedelta(days=DAYS, seconds=1)
            call(bank, "supersede", bank="b", memory_id=ids[text], at=at)
            model.ended[text] = at

    for _ in range(150):
        as_of = BEGIN + timedelta(hours=choose.randrange(DAYS * 26))
        key = choose.choice(list(model.said))
        holding = {model.holds(other, as_of) for other in model.said} - {None}
        current = rows(
            bank,
            "select text from pgrecall.memory where valid_from <= %(at)s"
            " and (valid_to is null or valid_to > %(at)s)".replace("%(at)s", "%s"),
            as_of,
            as_of,
        )
        assert {row[0] for row in current} == holding
        first = recalled(bank, key, as_of=as_of, top_k=1)
        expected = model.holds(key, as_of)
        if expected is not None:
            assert first == [expected]
        assert set(first) <= holding


def test_ten_years_of_corrections_are_undone_row_for_row(bank: Connection) -> None:
    choose = Random(20)
    facts = [
        {
            "text": f"setting.{n % 9} is value {choose.randrange(4)}",
            "fact_key": f"setting.{n % 9}",
            "source_id": f"s{n}",
            "mentioned_at": (BEGIN + timedelta(days=9 * n)).isoformat(),
        }
        for n in range(300)
    ]
    ids = retain(bank, facts)
    states = [contents(bank)]
    undo: list[tuple[str, dict[str, object]]] = []
    for _ in range(40):
        if choose.random() < 0.2:
            done = call(bank, "consolidate", bank="b", dry_run=False, top_k=5)
            undone: tuple[str, dict[str, object]] = ("unconsolidate", {})
        else:
            one, other = choose.sample(ids, 2)
            reach = choose.choice(["memory", "copies"])
            at = BEGIN + timedelta(days=choose.randrange(DAYS))
            by = choose.choice([other, None])
            done = call(
                bank, "supersede", bank="b", memory_id=one, superseded_by=by, at=at, reach=reach
            )
            undone = ("unsupersede", {"memory_id": one})
        if done:
            undo.append(undone)
            states.append(contents(bank))

    while undo:
        assert contents(bank) == states.pop()
        function, arguments = undo.pop()
        call(bank, function, bank="b", **arguments)

    assert contents(bank) == states.pop()


def test_what_sets_how_an_index_is_searched_is_called_in_no_parallel_plan(
    connection: Connection,
) -> None:
    create(connection)
    connection.execute("select pgrecall.configure_bank('b', '{\"vector_search\": \"binary\"}')")
    retain(connection, [{"text": "Ana likes tea.", "embedding": [1, 0, 0]},
                        {"text": "ana  likes TEA.", "embedding": [1, 0, 0]}])  # fmt: skip
    connection.execute("set local debug_parallel_query = on")

    assert len(call(connection, "consolidate", bank="b", dry_run=True)) == 1
