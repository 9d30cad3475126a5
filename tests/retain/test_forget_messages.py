"""forget_messages() erases raw messages by id, session and time, and leaves the rest as it was."""

from __future__ import annotations

import itertools
from datetime import datetime, timezone
from typing import Any

import pytest

from pgrecall import InvalidArgument, Recall
from sqlcalls import Connection, call, column, create, refused, rows, value

WORDS = ("tide", "pump", "mast", "hull", "oar", "keel", "sail", "rope", "bell")


def say(connection: Connection, count: int = 12, bank: str = "b") -> list[int]:
    """Store messages in sessions of four, an hour each, of more and more words."""
    sent = [
        {
            "session": f"s{n // 4}",
            "text": " ".join(itertools.islice(itertools.cycle(WORDS[n % 5 :]), n + 2)),
            "sent_at": f"2026-03-05T{n:02}:00Z",
        }
        for n in range(count)
    ]
    stored = call(connection, "retain_messages", bank=bank, messages=sent)
    call(connection, "refresh_statistics", bank=bank)
    return [row.message_id for row in stored]


def left(connection: Connection, bank: str = "b") -> list[int]:
    return column(
        connection,
        "select message_id from pgrecall.message where bank_id = %s order by message_id",
        bank,
    )


def counted(connection: Connection) -> dict[str, Any]:
    """Return what BM25 knows of the messages: counts, mean length, weights."""
    lexemes = rows(
        connection,
        "select lexeme, document_count from pgrecall_internal.lexeme"
        " where bank_id = 'b' and kind = 'message' order by lexeme",
    )
    ((documents, average),) = rows(
        connection,
        "select document_count, average_length from pgrecall_internal.statistics"
        " where bank_id = 'b' and kind = 'message'",
    )
    hits = call(connection, "message_arm", bank="b", query=" ".join(WORDS))
    return {
        "lexemes": dict(lexemes),
        "documents": documents,
        "average": pytest.approx(average, abs=1e-6),
        "scores": {hit.memory_id: pytest.approx(hit.score, abs=1e-5) for hit in hits},
    }


@pytest.mark.parametrize(
    ("given", "gone"),
    [
        ({"message_ids": [1, 5, -7]}, [1, 5]),
        ({"session": "s1"}, [4, 5, 6, 7]),
        ({"session": "nobody's"}, []),
        ({"during": "[,2026-03-05T02:00Z)"}, [0, 1]),
        ({"during": "[2026-03-05T02:00Z,2026-03-05T04:00Z)"}, [2, 3]),
        ({"during": "empty"}, []),
        ({"session": "s1", "during": "[2026-03-05T06:00Z,)"}, [6, 7]),
        ({"session": "s0", "message_ids": [1, 5]}, [1]),
        ({"message_ids": []}, []),
    ],
    ids=str,
)
def test_what_meets_all_conditions_is_erased_once(
    connection: Connection, given: dict[str, Any], gone: list[int]
) -> None:
    create(connection)
    create(connection, "other")
    say(connection, bank="other")
    ids = say(connection)
    if "message_ids" in given:
        given = given | {"message_ids": [ids[n] if n >= 0 else n for n in given["message_ids"]]}

    dry = value_of(connection, **given, dry_run=True)
    before = left(connection)
    removed = value_of(connection, **given)

    assert (dry, removed) == (len(gone), len(gone))
    assert before == ids
    assert left(connection) == [one for n, one in enumerate(ids) if n not in gone]
    assert value_of(connection, **given) == 0
    assert len(left(connection, "other")) == 12


def value_of(connection: Connection, **arguments: Any) -> int:
    ((removed,),) = call(connection, "forget_messages", bank="b", **arguments)
    return int(removed)


@pytest.mark.parametrize("weight", [0, 0.5])
@pytest.mark.parametrize("given", [{"session": "s1"}, {"during": "[,2026-03-05T06:00Z)"}], ids=str)
def test_the_rest_is_weighed_as_if_the_erased_had_never_been(
    connection: Connection, given: dict[str, Any], weight: float
) -> None:
    create(connection, settings={"message_context_weight": weight})
    say(connection)

    assert value_of(connection, **given) > 0
    found = counted(connection)
    call(connection, "refresh_statistics", bank="b", is_full=True)

    assert found["documents"] in (8, 6)
    assert counted(connection) == found


@pytest.mark.parametrize("minutes", [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [0, 5, 2, 1, 4, 3]])
def test_a_message_is_counted_with_those_that_come_beside_it_later(
    connection: Connection, minutes: list[int]
) -> None:
    create(connection, settings={"message_context_weight": 0.5})
    for minute in minutes:
        said = {"session": "s", "text": f"{WORDS[minute]} {WORDS[minute // 2]}"}
        sent = [said | {"sent_at": f"2026-03-05T10:0{minute}Z"}]
        call(connection, "retain_messages", bank="b", messages=sent)
    call(connection, "retain_messages", bank="b", messages=[{"text": f"the {WORDS[5]}"}])
    call(connection, "refresh_statistics", bank="b")
    at_last = {"bank": "b", "during": "[2026-03-05T10:05Z, 2026-03-05T10:06Z)"}

    assert value(connection, "select pgrecall.forget_messages(%s, during => %s)", *at_last.values())

    found = call(connection, "message_arm", bank="b", query=WORDS[5])
    before = counted(connection)
    call(connection, "refresh_statistics", bank="b", is_full=True)
    assert len(found) == 1
    assert {**counted(connection), "scores": before["scores"]} == before


def test_what_a_message_adds_to_those_beside_it_is_counted(connection: Connection) -> None:
    create(connection, settings={"message_context_weight": 0.5})
    say(connection)
    between = [
        {"session": f"s{n}", "text": "anchor buoy", "sent_at": f"2026-03-05T{4 * n:02}:30Z"}
        for n in range(4)
    ]

    for message in (*between, between[0]):
        call(connection, "retain_messages", bank="b", messages=[message])
        call(connection, "refresh_statistics", bank="b")
    found = counted(connection)
    call(connection, "refresh_statistics", bank="b", is_full=True)

    fresh = counted(connection)
    assert found["documents"] == 16
    # Weights may be those of a mean that is up to 5 % off.
    assert found | {"scores": fresh["scores"]} == fresh


def test_messages_that_are_not_counted_yet_are_erased_too(connection: Connection) -> None:
    create(connection)
    (first, *_) = say(connection)
    before = counted(connection)
    late = {"text": "a late bell", "sent_at": "2026-04-01", "session": "s9"}
    ((_, stored, _),) = call(connection, "retain_messages", bank="b", messages=[late])

    assert value_of(connection, message_ids=[stored]) == 1
    assert counted(connection) == before
    assert value_of(connection, message_ids=[first]) == 1
    assert counted(connection)["documents"] == 11


def test_an_erased_message_can_be_stored_again(connection: Connection) -> None:
    create(connection)
    ids = say(connection)

    value_of(connection, session="s0")
    again = say(connection)

    assert again[4:] == ids[4:]
    assert not set(again[:4]) & set(ids)


def test_a_session_goes_with_its_last_message(connection: Connection) -> None:
    create(connection)
    ids = say(connection)
    call(connection, "log_session", bank="b", session="s0", ended_at="2026-12-01")
    connection.execute("select pgrecall.log_session('b', 'bare', '2026-01-01', '2026-01-02')")

    def sessions() -> list[str]:
        return column(
            connection, "select session_id from pgrecall.session where bank_id = 'b' order by 1"
        )

    value_of(connection, message_ids=ids[:3])
    some = sessions()
    value_of(connection, during="[,2026-03-05T05:00Z)")
    rest = sessions()
    value_of(connection, session="bare")

    assert some == ["bare", "s0", "s1", "s2"]
    assert rest == ["bare", "s1", "s2"]
    assert sessions() == ["s1", "s2"]


def test_to_forget_all_of_a_bank_by_nothing_is_refused(connection: Connection) -> None:
    create(connection)
    say(connection)

    with refused(connection, "22023", "no condition says what to forget", "message_ids =>"):
        value_of(connection)
    with refused(connection, "22023", '"one day" is not a window of time', "write"):
        connection.execute("select pgrecall.forget_messages('b', during => 'one day'::text)")


def test_a_large_bank_is_weighed_by_maintain(connection: Connection) -> None:
    create(connection)
    sent = [{"text": f"note {n} " + "long " * (n % 2 * 30)} for n in range(1300)]
    call(connection, "retain_messages", bank="b", messages=sent)
    call(connection, "refresh_statistics", bank="b")
    while call(connection, "maintain", bank="b"):
        pass
    long = column(connection, "select message_id from pgrecall.message where lexical_length > 10")

    assert value_of(connection, message_ids=long[:600]) == 600
    due = value(
        connection,
        "select is_weighed from pgrecall.bank_statistics('b') where kind = 'message'",
    )
    while call(connection, "maintain", bank="b"):
        pass

    assert due is False
    found = counted(connection)
    call(connection, "refresh_statistics", bank="b", is_full=True)
    assert counted(connection)["lexemes"] == found["lexemes"]
    assert counted(connection)["scores"] == {
        one: pytest.approx(score.expected, rel=0.05) for one, score in found["scores"].items()
    }


def test_the_driver_forgets_messages(pgrecall: Recall) -> None:
    pgrecall.create_bank("b")
    noon = datetime(2026, 3, 5, 12, tzinfo=timezone.utc)
    sent = [
        {"session": "s", "text": f"hour {n}", "sent_at": noon.replace(hour=n)} for n in range(4)
    ]
    first, *_ = pgrecall.retain_messages("b", sent)

    assert pgrecall.forget_messages("b", first.message_id) == 1
    assert pgrecall.forget_messages("b", during=(None, noon.replace(hour=2)), dry_run=True) == 1
    assert pgrecall.forget_messages("b", during=(None, noon.replace(hour=2))) == 1
    assert pgrecall.forget_messages("b", session="s") == 2
    assert pgrecall.forget_messages("b", session="s") == 0
    with pytest.raises(InvalidArgument, match="no condition says what to forget"):
        pgrecall.forget_messages("b")
    with pytest.raises(InvalidArgument, match="during must be a pair"):
        pgrecall.forget_messages("b", during="May")  # type: ignore[arg-type]
