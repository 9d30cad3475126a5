"""Recall: what is sent, what comes back, which errors are raised, whose transaction it is."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import numpy as np
import psycopg
import pytest

import pgrecall as package
from pgrecall import (
    BankExists,
    BankNotFound,
    DimensionMismatch,
    EmptyQuery,
    EntityNotFound,
    InstallError,
    InvalidArgument,
    InvalidEmbedding,
    InvalidFact,
    InvalidFilter,
    MemoryNotFound,
    ModelMismatch,
    ReadOnly,
    Recall,
    RecallError,
    RecallStep,
    UnknownArm,
    UnknownFactType,
    calls,
    errors,
)
from pgrecall.asking.question import Question
from pgrecall.calls.values import plain_facts
from pgrecall.connection import tracing
from pgrecall.retaining.facts import Fact
from pgrecall.settings import Settings
from toys import DIMENSIONS, toy_embed

Connection = psycopg.Connection[Any]
TEXT_HINT = "PostgreSQL stores neither NUL characters nor half a surrogate pair: remove them."


@pytest.fixture
def recall(connection: Connection) -> Recall:
    recall = Recall(connection, embedder=toy_embed, model="toy")
    recall.create_bank("b")
    return recall


class FreshConnections:
    """The least of a pool: lends a new connection each time, and commits it."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.lent = 0

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        self.lent += 1
        with psycopg.connect(self.dsn) as connection:
            yield connection


# Remembering


def test_retained_facts_are_found_with_all_they_came_with(recall: Recall) -> None:
    (retained,) = recall.retain(
        "b",
        [
            {
                "text": "Ana leads Atlas",
                "fact_type": "event",
                "context": "standup",
                "fact_key": "atlas.lead",
                "source_id": "doc:1",
                "tags": ["x", "y"],
                "metadata": {"team": "core"},
                "occurred": ["2026-03-05", None],
                "mentioned_at": "2026-03-06T10:00Z",
                "confidence": 0.5,
                "proof_count": 3,
            }
        ],
    )

    (hit,) = recall.recall("b", "who leads atlas")

    assert (hit.memory_id, hit.kind, hit.fact_type) == (retained.memory_id, "memory", "event")
    assert (hit.text, hit.context, hit.fact_key) == ("Ana leads Atlas", "standup", "atlas.lead")
    assert (hit.source_id, hit.tags, hit.metadata) == ("doc:1", ("x", "y"), {"team": "core"})
    assert hit.occurred == (datetime(2026, 3, 5, tzinfo=timezone.utc), None)
    assert hit.mentioned_at == datetime(2026, 3, 6, 10, tzinfo=timezone.utc)
    assert (hit.confidence, hit.proof_count) == (0.5, 3)
    assert {"semantic", "lexical"} <= set(hit.arms)
    assert math.fsum(arm.contribution for arm in hit.arms.values()) == pytest.approx(hit.score)


def test_python_values_are_written_as_the_format_wants_them(recall: Recall) -> None:
    start = datetime(2026, 3, 5, 14, tzinfo=timezone(timedelta(hours=2)))
    fact = {"text": "Ana leads Atlas", "occurred": (start, None), "mentioned_at": date(2026, 3, 6)}

    recall.retain("b", [fact])

    (hit,) = recall.recall("b", "atlas")
    assert hit.occurred == (start, None)
    assert hit.mentioned_at == datetime(2026, 3, 6, tzinfo=timezone.utc)


def test_a_known_fact_is_not_stored_twice(recall: Recall) -> None:
    (first,) = recall.retain("b", ["Ana leads Atlas"])
    (second,) = recall.retain("b", ["Ana leads Atlas"])

    assert (first.is_new, second.is_new) == (True, False)
    assert first.memory_id == second.memory_id


def test_one_malformed_fact_keeps_all_out(recall: Recall, connection: Connection) -> None:
    with pytest.raises(InvalidFact) as caught, connection.transaction():
        recall.retain("b", ["Ana leads Atlas", {"text": ""}])

    assert caught.value.message == "facts[1].text: it is empty"
    assert caught.value.position == 1
    assert recall.banks()[0].memories == 0


def test_the_facts_given_are_left_as_they_are(recall: Recall) -> None:
    fact: dict[str, object] = {"text": "Ana leads Atlas", "questions": [{"text": "who leads?"}]}

    recall.retain("b", [fact])

    assert fact == {"text": "Ana leads Atlas", "questions": [{"text": "who leads?"}]}


def test_only_what_has_no_embedding_is_embedded(connection: Connection) -> None:
    asked: list[str] = []

    def embed(texts: Sequence[str]) -> list[list[float]]:
        asked.extend(texts)
        return toy_embed(texts)

    recall = Recall(connection, embedder=embed)
    recall.create_bank("b")

    recall.retain(
        "b",
        [
            {"text": "has one", "embedding": toy_embed(["x"])[0]},
            {"text": "has none", "questions": [{"text": "has it?"}]},
        ],
    )

    assert asked == ["has none", "has it?"]


def test_progress_is_told_for_every_fact(recall: Recall) -> None:
    steps: list[int] = []

    recall.retain("b", [f"fact {n}" for n in range(150)], progress=steps.append)

    assert steps == [64, 64, 22]


@pytest.mark.parametrize("kind", ["list", "tuple", "numpy", "pgvector", "halfvec", "text"])
def test_an_embedding_may_come_in_any_of_the_usual_shapes(recall: Recall, kind: str) -> None:
    import numpy as np
    from pgvector import HalfVector, Vector

    numbers = [float(n) for n in range(DIMENSIONS)]
    shapes = {
        "list": numbers,
        "tuple": tuple(numbers),
        "numpy": np.array(numbers, dtype=np.float32),
        "pgvector": Vector(numbers),
        "halfvec": HalfVector(numbers),
        "text": str(numbers),
    }

    recall.retain("b", [{"text": "Ana leads Atlas", "embedding": shapes[kind]}])

    given = numbers if kind == "text" else shapes[kind]
    (hit,) = recall.recall("b", "q", embedding=given, arms=["semantic"])
    assert hit.arms["semantic"].score == pytest.approx(1, abs=1e-3)


def test_messages_are_a_safety_net(recall: Recall) -> None:
    message = {
        "session": "s",
        "speaker": "Maya",
        "text": "the code is 4471",
        "sent_at": "2026-03-02",
    }

    (kept,) = recall.retain_messages("b", [message])

    (hit,) = recall.recall("b", "code", arms=["message"])
    assert (hit.kind, hit.memory_id, hit.fact_type) == ("message", kept.message_id, None)
    assert (hit.text, hit.context, hit.source_id) == ("the code is 4471", "Maya", "s")


def test_a_stream_is_written_in_batches(recall: Recall) -> None:
    done = recall.retain_many("b", (f"fact {n}" for n in range(7)), batch_size=3)

    assert (done.total, done.new) == (7, 7)
    assert recall.banks()[0].memories == 7


def test_links_in_a_stream_count_from_its_start(recall: Recall, connection: Connection) -> None:
    facts: list[Fact] = ["zero", "one", "two"]
    facts.append({"text": "three", "links": [{"kind": "caused_by", "to_index": 0}]})
    facts.append({"text": "four", "links": [{"kind": "caused_by", "to_index": 3}]})

    recall.retain_many("b", facts, batch_size=2)

    links = connection.execute(
        "select f.text, t.text from pgrecall.link l"
        " join pgrecall.memory f on f.bank_id = l.bank_id and f.memory_id = l.from_id"
        " join pgrecall.memory t on t.bank_id = l.bank_id and t.memory_id = l.to_id"
        " where l.bank_id = 'b' and l.kind = 'caused_by' order by 1"
    ).fetchall()
    assert links == [("four", "three"), ("three", "zero")]


def test_a_link_into_a_later_batch_is_refused(recall: Recall) -> None:
    facts = [{"text": "zero"}, {"text": "one", "links": [{"kind": "causes", "to_index": 2}]}, "two"]

    with pytest.raises(InvalidFact) as caught:
        recall.retain_many("b", facts, batch_size=2)  # type: ignore[arg-type]

    assert caught.value.message == "facts[1].links[0].to_index leads to a later batch"


def test_an_error_in_a_stream_counts_from_its_start(recall: Recall) -> None:
    facts: list[Fact] = ["zero", "one", {"text": "two"}, {"text": "three", "confidence": 2}]

    with pytest.raises(InvalidFact, match=r"^facts\[3\]\.confidence: ") as caught:
        recall.retain_many("b", facts, batch_size=2)

    assert caught.value.position == 3


# Asking


def test_a_row_of_an_export_that_is_damaged_counts_from_its_start(recall: Recall) -> None:
    recall.retain("b", ["Ana leads Atlas.", "Boats are blue."])
    rows = [*recall.export("b")]

    with pytest.raises(
        InvalidFact, match=rf"^rows\[{len(rows)}\]: not JSON at column 2: "
    ) as caught:
        recall.import_rows("c", [*rows, "{"], batch_size=2)

    assert caught.value.position == len(rows)


def test_a_date_in_the_query_is_understood(recall: Recall) -> None:
    recall.retain("b", [{"text": "Ana moved", "occurred": "2026-03-05"}, "Ana moved on"])
    asked = datetime(2026, 6, 30, 12)

    report = recall.recall_report(
        "b", "what happened in March 2026?", reference_time=asked, as_of=datetime.now()
    )

    assert report.facts == ("March 2026 = 2026-03-01 to 2026-03-31",)
    assert "temporal" in report.hits[0].arms
    assert report.hits[0].text == "Ana moved"


def test_a_recall_as_of_before_says_what_was_not_known_yet(recall: Recall) -> None:
    recall.retain("b", ["Ana moved", {"text": "Ana stayed", "occurred": "2023-01-01"}])
    then = datetime(2024, 6, 1, tzinfo=timezone.utc)

    nothing = recall.recall_report("b", "who moved?", reference_time=then)
    recall.retain("b", [{"text": "Bo moved", "mentioned_at": "2024-01-01"}])
    some = recall.recall_report("b", "who moved?", reference_time=then)
    now = recall.recall_report("b", "who moved?", reference_time=then, as_of=datetime.now())

    said = [(one.why, one.hint) for one in nothing.degradations if "left out: 2" in one.why]
    assert [hint is not None and "mentioned_at" in hint for _, hint in said] == [True]
    assert [hit.text for hit in some.hits] == ["Bo moved"]
    assert some.degradations == ()
    told = [
        [arm.reason for arm in one.arms if "left out" in str(arm.reason)] for one in (some, now)
    ]
    assert [len(reasons) for reasons in told] == [1, 0]


def test_dates_are_read_in_the_clients_time_zone(connection: Connection) -> None:
    recall = Recall(connection, embedder=None, timezone="Pacific/Auckland")
    recall.create_bank("b")
    asked = datetime(2026, 6, 30, 20, tzinfo=timezone.utc)  # the 1st of July there

    report = recall.recall_report("b", "what did I do today?", reference_time=asked)

    assert report.facts == ("today = 2026-07-01",)


GRAPH: list[Fact] = [
    {
        "text": "Ana reports to Bo.",
        "relations": [{"from": "Ana", "kind": "reports_to", "to": "Bo"}],
        "mentioned_at": "2026-03-05",
    },
    {
        "text": "Bo leads Atlas.",
        "relations": [{"from": "Bo", "kind": "leads", "to": "Atlas"}],
        "fact_key": "atlas.lead",
        "mentioned_at": "2026-04-05",
    },
]


@pytest.mark.parametrize("is_begun", [True, False])
def test_who_may_not_write_here_is_told_how(database: str, is_begun: bool) -> None:
    setting = "off" if is_begun else "on"
    dsn = f"{database} options='-c default_transaction_read_only={setting}'"
    with psycopg.connect(dsn, autocommit=not is_begun) as connection:
        connection.read_only = True if is_begun else None
        memory = Recall(connection, embedder=None)

        with pytest.raises(ReadOnly, match="the transaction is read-only") as caught:
            memory.create_bank("b")
        assert caught.value.hint == (
            "Set connection.read_only = False; where nothing was begun:"
            " set default_transaction_read_only = off;"
        )
        connection.rollback()
        connection.read_only = False if is_begun else None
        connection.execute("set default_transaction_read_only = off")
        memory.create_bank("b")

        assert [bank.bank_id for bank in memory.banks()] == ["b"]


def test_words_that_are_only_begun_find_memories(recall: Recall) -> None:
    recall.create_bank("graph")
    first, second = recall.retain("graph", GRAPH)
    recall.supersede("graph", first.memory_id)

    def found(words: str, **more: Any) -> list[int]:
        return [one.memory_id for one in recall.find_memories("graph", words, **more)]

    assert found("lea") == [second.memory_id]
    assert found("lea ") == []
    assert found("b", is_ended_too=True) == [second.memory_id, first.memory_id]
    assert found("b", is_ended_too=True, top_k=1) == [second.memory_id]
    assert found("b", is_ended_too=True, before_id=second.memory_id) == [first.memory_id]
    assert found("b", entity="Atlas", filter="fact_key is not null") == [second.memory_id]
    assert found("b", during=(datetime(2026, 5, 1), None)) == []
    with pytest.raises(BankNotFound):
        recall.find_memories("none", "b")


def test_entities_lead_to_one_another(recall: Recall) -> None:
    recall.create_bank("graph")
    first, second = recall.retain("graph", GRAPH)

    ids = {one.name: one.entity_id for one in recall.list_entities("graph")}
    steps = recall.path("graph", ids["Ana"], ids["Atlas"])
    edges = recall.neighbourhood("graph", entity_id=ids["Bo"])

    assert [one.name for one in recall.list_entities("graph", top_k=1)] == ["Bo"]
    assert [one.name for one in recall.list_entities("graph", name="atl")] == ["Atlas"]
    assert [(one.from_name, one.via, one.to_name, one.memory_id) for one in steps] == [
        ("Ana", "reports_to", "Bo", first.memory_id),
        ("Bo", "leads", "Atlas", second.memory_id),
    ]
    assert steps[1].why == "Bo leads Atlas: Bo leads Atlas."
    assert recall.path("graph", ids["Ana"], ids["Atlas"], longest=1) == []
    assert {one.kind for one in edges} >= {"reports_to", "leads"}
    assert [one.neighbour_id for one in recall.neighbours("graph", first.memory_id)][:1] == [
        second.memory_id
    ]
    assert recall.memory_details("graph", second.memory_id).relations[0]["kind"] == "leads"
    counts = recall.memory_counts("graph", basis="said")
    assert [(one.starts_at.month, one.memories) for one in counts] == [(3, 1), (4, 1)]


def test_a_name_in_place_of_an_id_is_named_with_how_to_find_the_id(recall: Recall) -> None:
    for call in (
        lambda: recall.path("b", "Ana", 2),  # type: ignore[arg-type]
        lambda: recall.path("b", 2, "Ana"),  # type: ignore[arg-type]
        lambda: recall.rename_entity("b", "Ana", "Bo"),  # type: ignore[arg-type]
        lambda: recall.merge_entities("b", 1, ["Ana"]),  # type: ignore[list-item]
    ):
        with pytest.raises(InvalidArgument, match=r"not .*'Ana'") as caught:
            call()
        assert caught.value.hint == "query_entities() and list_entities() find the ids of names."
    with pytest.raises(EntityNotFound):
        recall.path("b", 123456, 123457)


class ZoneOfPytz(tzinfo):
    """A zone as those of pytz, which is local mean time unless its own methods are called."""

    zone = "Europe/Vienna"

    def utcoffset(self, _: datetime | None) -> timedelta:
        return timedelta(hours=1, minutes=5)

    def dst(self, _: datetime | None) -> None:
        return None

    def tzname(self, _: datetime | None) -> str:
        return "LMT"


def test_a_zone_of_pytz_is_the_one_of_its_name(connection: Connection) -> None:
    recall = Recall(connection, embedder=None, timezone=ZoneOfPytz())
    recall.create_bank("b")

    [row] = recall.retain("b", [{"text": "Ana left.", "mentioned_at": datetime(2026, 1, 1, 12)}])

    said = recall.get("b", row.memory_id).mentioned_at
    assert said == datetime(2026, 1, 1, 11, tzinfo=timezone.utc)


def test_times_without_a_zone_are_in_the_clients_everywhere(connection: Connection) -> None:
    recall = Recall(connection, embedder=None, timezone="Pacific/Auckland")
    recall.create_bank("b")
    noon, later = datetime(2026, 7, 1, 12), datetime(2026, 7, 1, 13)
    fact = {
        "text": "Ana leads Atlas.",
        "occurred": (noon, later),
        "mentioned_at": noon,
        "metadata": {"noted": noon},
    }

    row, *_ = recall.retain("b", [fact, {"text": "Bo bakes.", "mentioned_at": "2026-07-01T12:00"}])
    recall.retain_messages("b", [{"session": "s", "text": "Boats are blue.", "sent_at": noon}])

    there = timezone(timedelta(hours=12))
    stored = recall.get("b", row.memory_id)
    assert stored.occurred == (noon.replace(tzinfo=there), later.replace(tzinfo=there))
    assert stored.mentioned_at == noon.replace(tzinfo=there)
    assert stored.metadata == {"noted": "2026-07-01T12:00:00"}
    assert [one.text for one in recall.list_memories("b", during=(noon, later))] == [stored.text]
    bo = recall.list_memories("b", filter="text = 'Bo bakes.'")[0]
    assert bo.mentioned_at == noon.replace(tzinfo=timezone.utc)
    assert recall.update("b", row.memory_id, mentioned_at=later).mentioned_at == later.replace(
        tzinfo=there
    )
    assert recall.forget_messages("b", during=(noon, later), dry_run=True) == 1


def test_a_query_about_the_last_conversation_is_given_its_end(recall: Recall) -> None:
    end = datetime(2026, 6, 1, 9, tzinfo=timezone.utc)
    recall.log_session("b", "s", started_at=end - timedelta(hours=1), ended_at=end)

    report = recall.recall_report("b", "what changed since we last talked?")

    assert report.temporal is not None
    assert (report.temporal.start, report.temporal.end) == (end, None)


def test_an_anchor_of_the_caller_bounds_the_query(recall: Recall) -> None:
    joined = datetime(2026, 2, 1, 9)

    report = recall.recall_report("b", "what changed since I joined?", anchors={"i joined": joined})

    assert report.temporal is not None
    assert report.temporal.start == joined.replace(tzinfo=timezone.utc)


def test_an_anchor_that_is_no_time_is_named(recall: Recall) -> None:
    anchors: Any = {"i joined": date(2026, 2, 1)}

    with pytest.raises(InvalidArgument, match='the anchor "i joined" must be a datetime, not'):
        recall.recall("b", "what changed since I joined?", anchors=anchors)


def test_times_are_read_in_the_language_of_the_query(recall: Recall) -> None:
    asked = datetime(2026, 6, 30, tzinfo=timezone.utc)

    report = recall.recall_report(
        "b", "Was geschah am 5. März 2026?", language="de", reference_time=asked
    )

    assert report.facts == ("5. März 2026 = 2026-03-05",)


def test_a_language_that_is_not_known_is_an_error(recall: Recall) -> None:
    with pytest.raises(InvalidArgument, match="xx") as error:
        recall.recall("b", "what changed?", language="xx")

    assert error.value.hint == "Pass temporal=False to leave the times in the query unread."


def test_a_period_that_is_given_is_not_read_out_of_the_query(recall: Recall) -> None:
    recall.retain("b", [{"text": "Ana moved", "occurred": "2026-05-05"}, "Ana moved on"])
    during = datetime(2026, 5, 1), datetime(2026, 6, 1)

    report = recall.recall_report("b", "Ana in March 2026", during=during, time_mode="filter")

    assert [hit.text for hit in report.hits] == ["Ana moved"]
    assert report.temporal is None


def test_a_window_by_name_is_not_read_out_of_the_query_either(recall: Recall) -> None:
    recall.retain("b", [{"text": "Ana moved", "occurred": "2026-03-05"}, "Ana moved on"])

    report = recall.recall_report(
        "b", "Ana in March 2026", window="[2026-05-01, 2026-06-01)", time_mode="filter"
    )

    assert (report.hits, report.temporal) == ((), None)


def test_no_time_is_read_when_none_is_wanted(recall: Recall) -> None:
    report = recall.recall_report("b", "what happened in March 2026?", temporal=False)

    assert (report.temporal, report.facts) == (None, ())


def test_a_question_of_the_past_is_answered_from_what_was_known_then(recall: Recall) -> None:
    facts = [{"text": "Ana leads", "mentioned_at": "2026-01-01"}]
    facts.append({"text": "Ben leads", "mentioned_at": "2026-05-01"})
    ana, ben = recall.retain("b", facts)
    at = datetime(2026, 5, 1, tzinfo=timezone.utc)
    recall.supersede("b", ana.memory_id, superseded_by=ben.memory_id, at=at)

    def leads(**options: Any) -> list[str]:
        return [hit.text for hit in recall.recall("b", "who leads", **options)]

    assert leads() == ["Ben leads"]
    assert leads(as_of=at - timedelta(days=1)) == ["Ana leads"]
    assert leads(reference_time=at - timedelta(days=1)) == ["Ana leads"]


def test_facts_replace_one_another_when_asked(recall: Recall) -> None:
    facts = [{"text": text, "fact_key": "k"} for text in ("one", "two", "three")]

    recall.retain("b", facts[:2], replace="key")
    recall.retain_many("b", facts[2:], replace="key")

    assert [hit.text for hit in recall.recall("b", "k")] == ["three"]


def test_a_contradiction_is_named(recall: Recall) -> None:
    one, two = recall.retain("b", [{"text": text, "fact_key": "k"} for text in ("one", "two")])

    found = {hit.memory_id: hit.conflicts_with for hit in recall.recall("b", "k")}

    assert found == {one.memory_id: (two.memory_id,), two.memory_id: (one.memory_id,)}


def test_corrections_are_listed_made_and_undone(recall: Recall) -> None:
    facts = [{"text": "Ana leads", "source_id": source} for source in ("x", "y")]
    one, two = (row.memory_id for row in recall.retain("b", facts))
    at = datetime.now(timezone.utc) + timedelta(days=1)

    copies = recall.near_copies("b", one, min_similarity=0.9)
    listed = recall.supersede("b", one, at=at, reach="copies", dry_run=True)
    ended = recall.supersede("b", one, at=at, reach="copies")
    restored = recall.unsupersede("b", one)
    merged = recall.consolidate("b", dry_run=False, min_similarity=0.9, top_k=5)
    parted = recall.unconsolidate("b")

    assert [(copy.memory_id, copy.is_same_source) for copy in copies] == [(two, False)]
    assert listed == ended
    assert [(row.memory_id, row.valid_to) for row in ended] == [(one, at), (two, at)]
    assert [(row.memory_id, row.valid_to) for row in restored] == [(one, None), (two, None)]
    assert [(pair.kept_id, pair.memory_id, pair.proof_count) for pair in merged] == [(two, one, 2)]
    assert [row.memory_id for row in parted] == [one, two]


def test_only_what_is_asked_for_comes_back(recall: Recall) -> None:
    recall.retain(
        "b",
        [
            {"text": "Ana leads Atlas", "fact_type": "opinion"},
            {"text": "Ben leads Atlas", "tags": ["x"]},
            {"text": "Cem leads Atlas", "confidence": 0.1},
        ],
    )

    def names(**options: Any) -> list[str]:
        return sorted(hit.text[:3] for hit in recall.recall("b", "who leads Atlas", **options))

    assert names() == ["Ana", "Ben", "Cem"]
    assert len(names(top_k=2)) == 2
    assert names(fact_types=["opinion"]) == ["Ana"]
    assert names(fact_types="opinion") == ["Ana"]
    assert names(tags=["x"]) == ["Ben"]
    assert names(filter="confidence < 0.5") == ["Cem"]


def test_arms_and_weights_are_passed_on(recall: Recall) -> None:
    recall.retain("b", ["Ana leads Atlas"])

    (one,) = recall.recall("b", "Atlas", arms=["lexical"], weights={"lexical": 1})
    (three,) = recall.recall(
        "b", "Atlas", arms=["lexical", "semantic"], weights={"lexical": 3, "semantic": 0}
    )

    assert set(one.arms) == set(three.arms) == {"lexical"}
    assert three.score == pytest.approx(3 * one.score)


def test_numbers_of_numpy_are_taken_as_numbers(recall: Recall, connection: Connection) -> None:
    both = recall.retain("b", ["Ana leads Atlas", "Bo leads Atlas"])
    reranking = Recall(
        connection,
        embedder=toy_embed,
        model="toy",
        reranker=lambda _, texts: [0.9 if "Bo" in text else 0.1 for text in texts],
    )

    assert len(recall.list_memories("b", top_k=np.int64(1))) == 1
    [hit] = reranking.recall("b", "who leads atlas", top_k=np.int64(1), skip=np.int32(0))
    assert hit.text == "Bo leads Atlas"
    assert recall.forget("b", np.int64(both[0].memory_id)) == 1


def test_options_from_an_iterator_count_for_all_questions(recall: Recall) -> None:
    recall.retain("b", [{"text": "Ana leads Atlas", "tags": ["x"]}, "Bo leads Atlas"])
    tags: Any = iter(["x"])

    reports = recall.recall_many("b", ["who leads atlas"] * 2, tags=tags)

    assert [[hit.text for hit in one.hits] for one in reports] == [["Ana leads Atlas"]] * 2


@pytest.mark.parametrize("is_function", [False, True])
def test_a_hypothetical_answer_is_searched_with_as_well(recall: Recall, is_function: bool) -> None:
    recall.retain("b", ["Ana leads Atlas", "Boats are blue"])
    answer = "Boats are blue"

    hits = recall.recall(
        "b", "which colour", hypothetical=(lambda _query: answer) if is_function else answer
    )

    found = {hit.text: hit.arms for hit in hits}
    assert found["Boats are blue"]["hypothetical"].rank == 1


def test_without_an_embedder_the_other_arms_answer(connection: Connection) -> None:
    recall = Recall(connection, embedder=None)
    recall.create_bank("b")
    recall.retain("b", ["Ana leads Atlas"])

    (hit,) = recall.recall("b", "Atlas")

    assert "semantic" not in hit.arms
    assert recall.banks()[0].embedding_model is None


def test_a_report_says_how_long_each_stage_took(recall: Recall) -> None:
    recall.retain("b", ["Ana leads Atlas"])

    timings = recall.recall_report("b", "Atlas").timings

    stages = [getattr(timings, field.name) for field in fields(timings)]
    assert timings.database > 0
    assert timings.embed > 0
    assert timings.temporal > 0
    assert timings.total == pytest.approx(sum(stages))


@pytest.mark.parametrize("fact", ["Ana rows.", {"text": "Ana rows."}])
def test_one_fact_alone_is_retained_by_every_way_in(pgrecall: Recall, fact: Fact) -> None:
    pgrecall.create_bank("b")

    pgrecall.retain("b", fact)
    pgrecall.retain_many("b", fact)

    assert [memory.text for memory in pgrecall.list_memories("b")] == ["Ana rows."]


def test_a_report_explains_every_arm_when_asked(recall: Recall) -> None:
    recall.retain("b", ["Ana leads Atlas"])

    report = recall.recall_report("b", "Atlas", explain=True)

    arms = {arm.arm: arm for arm in report.arms}
    assert (arms["lexical"].status, arms["lexical"].rows) == ("ran", 1)
    assert (arms["temporal"].status, arms["temporal"].reason) == (
        "skipped",
        "no time window given",
    )


def test_an_arm_that_fails_is_left_out_and_reported(recall: Recall, connection: Connection) -> None:
    recall.retain("b", ["Ana leads Atlas"])
    connection.execute("alter table pgrecall.link rename to elsewhere")

    report = recall.recall_report("b", "Atlas", rerank=False)

    (degradation,) = report.degradations
    assert degradation.what == "arm"
    assert degradation.why.startswith("the graph arm failed and was left out: ")
    assert degradation.hint == "Run pgrecall.graph_arm() alone to see the error."
    assert [hit.text for hit in report.hits] == ["Ana leads Atlas"]


def test_far_off_dates_do_not_spoil_a_recall(recall: Recall, connection: Connection) -> None:
    recall.retain("b", ["Ana leads Atlas"])
    connection.execute(
        "update pgrecall.memory set occurred = '[\"0044-03-15 BC\",2026-01-01)' where bank_id = 'b'"
    )

    (hit,) = recall.recall("b", "Atlas")

    assert hit.occurred == (None, datetime(2026, 1, 1, tzinfo=timezone.utc))


# The rest of the API


def test_banks_are_created_shown_and_dropped(recall: Recall) -> None:
    recall.create_bank("a", text_search_config="simple", fact_types=["rumour"])
    recall.retain("a", [{"text": "Ana left", "fact_type": "rumour", "entities": ["Ana"]}])

    bank = recall.banks()[0]

    assert (bank.bank_id, bank.memories, bank.messages, bank.entities) == ("a", 1, 0, 1)
    assert (bank.embedding_model, bank.embedding_dimensions) == ("toy", DIMENSIONS)
    assert bank.text_search_config == "simple"
    assert recall.drop_bank("a") == 1
    assert [bank.bank_id for bank in recall.banks()] == ["b"]


def test_a_bank_can_be_configured(recall: Recall) -> None:
    recall.add_fact_type("b", "rumour", description="What is said.")
    recall.configure_bank("b", {"rrf_k": 1, "weights": {"lexical": 1}})
    recall.retain("b", [{"text": "Ana left", "fact_type": "rumour"}])

    (hit,) = recall.recall("b", "Ana", arms=["lexical"])

    assert hit.score == pytest.approx(0.5)


def test_a_forgotten_memory_is_gone(recall: Recall) -> None:
    (retained,) = recall.retain("b", ["Ana leads Atlas"])

    assert recall.forget("b", [retained.memory_id]) == 1
    assert recall.recall("b", "Atlas") == []


def test_entities_in_a_query_are_listed(recall: Recall) -> None:
    recall.retain("b", [{"text": "Ana", "entities": [{"name": "Ana Silva", "kind": "person"}]}])

    (entity,) = recall.query_entities("b", "where is Ana Silva?")

    assert (entity.name, entity.kind, entity.matched) == ("Ana Silva", "person", "ana silva")


def test_entities_are_merged_split_and_renamed(recall: Recall) -> None:
    facts = [{"text": f"{name} sails", "entities": [name]} for name in ("Ana Silva", "Silva Ana")]
    _, second = recall.retain("b", facts)
    (pair,) = recall.duplicate_entities("b", top_k=5)

    merged = recall.merge_entities("b", pair.entity_id, [pair.other_id])
    new = recall.split_entity("b", pair.entity_id, [second.memory_id], "Ana Costa")
    recall.rename_entity("b", new, "Ana Bell")

    assert (pair.name, pair.other_name, merged) == ("Ana Silva", "Silva Ana", 1)
    assert pair.score == pytest.approx(0.475)
    assert [entity.entity_id for entity in recall.query_entities("b", "Ana Bell")] == [new]


def test_statistics_are_counted_anew(recall: Recall) -> None:
    recall.retain("b", ["Ana leads Atlas"])

    recall.refresh_statistics("b", is_full=True)

    counted = {row.kind: row for row in recall.bank_statistics("b")}
    assert (counted["memory"].document_count, counted["memory"].waiting) == (1, 0)


def test_links_can_be_written_later(recall: Recall) -> None:
    recall.retain("b", ["Ana leads Atlas", "Ana leads Atlas today"], link="deferred")

    assert recall.pending_links("b") == 2
    assert recall.link_pending("b", batch_size=1) == 1
    assert recall.pending_links("b") == 1
    assert recall.link_pending("b") == 1
    assert recall.link_pending("b") == recall.pending_links("b") == 0


def test_the_end_of_the_last_session_is_known(recall: Recall) -> None:
    assert recall.last_session_end("b") is None

    recall.log_session("b", "s", started_at=datetime(2026, 3, 1), ended_at=datetime(2026, 3, 2))

    assert recall.last_session_end("b") == datetime(2026, 3, 2, tzinfo=timezone.utc)


# Errors


@pytest.mark.parametrize(
    ("error", "message", "method", "arguments"),
    [
        (BankNotFound, 'bank "no" does not exist', "recall", ("no", "x")),
        (BankExists, 'bank "b" already exists', "create_bank", ("b",)),
        (EntityNotFound, 'bank "b" has no entity 12345', "rename_entity", ("b", 12345, "x")),
        (MemoryNotFound, 'bank "b" has no memory 12345', "supersede", ("b", 12345)),
        (InvalidArgument, "bank must not be null", "drop_bank", (None,)),
        (
            InvalidArgument,
            'top_k: value "3000000000" is out of range for type integer',
            "list_memories",
            ("b", {"top_k": 3_000_000_000}),
        ),
        (
            ModelMismatch,
            'bank "b" is embedded with model "toy", not "other"',
            "retain",
            ("b", ["x"], {"model": "other"}),
        ),
        (
            DimensionMismatch,
            "facts[0].embedding: expected 16 dimensions, not 2",
            "retain",
            ("b", [{"text": "x", "embedding": [1, 2]}]),
        ),
        (
            InvalidEmbedding,
            "facts[0].embedding is not a flat list of numbers",
            "retain",
            ("b", [{"text": "x", "embedding": [[1], [2]]}]),
        ),
        (
            UnknownFactType,
            'facts[0].fact_type: bank "b" has no fact type "no"',
            "retain",
            ("b", [{"text": "x", "fact_type": "no"}]),
        ),
        (
            InvalidFact,
            'messages[0].role: unknown role "boss"',
            "retain_messages",
            ("b", [{"text": "x", "role": "boss"}]),
        ),
    ],
)
def test_what_the_database_refuses_is_an_error_of_ours(
    recall: Recall, error: type[RecallError], message: str, method: str, arguments: tuple[Any, ...]
) -> None:
    recall.retain("b", ["Ana leads Atlas"])
    options = arguments[-1] if isinstance(arguments[-1], dict) else {}

    with pytest.raises(error) as caught:
        getattr(recall, method)(*(a for a in arguments if a is not options), **options)

    assert caught.value.message == message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("error", "message", "options"),
    [
        (InvalidArgument, "top_k must be between 1 and 1000, not 0", {"top_k": 0}),
        (InvalidArgument, "depth must be between 1 and 10000, not 0", {"depth": 0}),
        (
            InvalidArgument,
            'time_mode must be "boost", "filter" or "events", not "x"',
            {"time_mode": "x"},
        ),
        (UnknownArm, 'unknown arm "x"', {"arms": ["x"]}),
        (UnknownArm, 'unknown arm "x" in weights', {"weights": {"x": 1}}),
        (
            InvalidArgument,
            'weight of arm "graph" must be a number from 0 to 1000000, not -1',
            {"weights": {"graph": -1}},
        ),
        (UnknownFactType, 'bank "b" has no fact type "x"', {"fact_types": ["x"]}),
        (InvalidFilter, 'filter: unknown column "x"', {"filter": ["=", "x", 1]}),
        (
            InvalidEmbedding,
            "unusable embedding: halfvec must have at least 1 dimension",
            {"embedding": []},
        ),
        (
            InvalidEmbedding,
            "unusable embedding: NaN not allowed in halfvec",
            {"embedding": [math.nan] * DIMENSIONS},
        ),
        (
            InvalidEmbedding,
            "embedding: unusable embedding: all elements are zero",
            {"embedding": [0] * DIMENSIONS},
        ),
        (DimensionMismatch, "embedding: expected 16 dimensions, not 1", {"embedding": [1]}),
    ],
)
def test_a_recall_with_a_wrong_option_is_an_error_of_ours(
    recall: Recall, error: type[RecallError], message: str, options: dict[str, Any]
) -> None:
    recall.retain("b", ["Ana leads Atlas"])

    with pytest.raises(error) as caught:
        recall.recall("b", "x", **options)

    assert caught.value.message == message
    assert caught.value.hint
    assert isinstance(caught.value.__cause__, psycopg.Error)


def test_an_empty_query_is_an_error(recall: Recall) -> None:
    with pytest.raises(EmptyQuery) as caught:
        recall.recall("b", "  ")

    assert (
        caught.value.message == "nothing to recall by: the query is empty and there is no embedding"
    )


def test_a_period_that_ends_before_it_starts_is_an_error(recall: Recall) -> None:
    with pytest.raises(InvalidArgument) as caught:
        recall.recall("b", "x", during=(datetime(2026, 2, 1), datetime(2026, 1, 1)))

    assert caught.value.message == (
        "during ends before it starts: 2026-01-01T00:00:00+00:00 is before"
        " 2026-02-01T00:00:00+00:00"
    )


@pytest.mark.parametrize(
    ("fact", "message"),
    [
        ({"text": "a\0b"}, "facts[1].text contains a NUL character"),
        ({"text": "a\ud800"}, "facts[1].text contains a lone surrogate"),
        ({"text": "a", "tags": ["ok", "\0"]}, "facts[1].tags[1] contains a NUL character"),
        (
            {"text": "a", "metadata": {"team": ["\udfff"]}},
            "facts[1].metadata.team[0] contains a lone surrogate",
        ),
        (
            {"text": "a", "metadata": {"\0": 1}},
            "a key of facts[1].metadata contains a NUL character",
        ),
        (
            {"text": "a", "entities": [{"name": "A\0"}]},
            "facts[1].entities[0].name contains a NUL character",
        ),
    ],
)
def test_text_that_cannot_be_stored_is_named_and_nothing_is_written(
    recall: Recall, fact: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidFact) as caught:
        recall.retain("b", ["Ana leads Atlas", fact])

    assert (caught.value.message, caught.value.hint) == (message, TEXT_HINT)
    assert recall.banks()[0].memories == 0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"query": "a\0"}, InvalidArgument, "query contains a NUL character"),
        ({"bank": "\ud800"}, InvalidArgument, "bank contains a lone surrogate"),
        ({"tags": ["a", "\0"]}, InvalidArgument, "tags[1] contains a NUL character"),
        ({"filter": ["=", "text", "\0"]}, InvalidFilter, "filter[2] contains a NUL character"),
    ],
)
def test_a_recall_names_the_text_that_cannot_be_sent(
    recall: Recall, options: dict[str, Any], error: type[RecallError], message: str
) -> None:
    with pytest.raises(error) as caught:
        recall.recall(**{"bank": "b", "query": "x", **options})

    assert (caught.value.message, caught.value.hint) == (message, TEXT_HINT)


def test_what_is_nested_too_deeply_is_named(recall: Recall) -> None:
    deep: dict[str, object] = {}
    for _ in range(5000):
        deep = {"x": deep}

    with pytest.raises(InvalidFact) as caught:
        recall.retain("b", ["fine", {"text": "a", "metadata": deep}])

    assert caught.value.message == "facts[1] is nested too deeply"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.nan, "facts[0].confidence is nan, which is not a finite number"),
        (object(), "facts[0].confidence is a value of type object, which JSON cannot hold"),
    ],
)
def test_what_json_cannot_hold_is_named(recall: Recall, value: object, message: str) -> None:
    with pytest.raises(InvalidFact) as caught:
        recall.retain("b", [{"text": "a", "confidence": value}])

    assert caught.value.message == message


def test_ids_may_be_uuids(recall: Recall) -> None:
    one = UUID(int=1)
    message = {"text": "b", "session": one}

    row, *_ = recall.retain("b", [{"text": "a", "source_id": one, "metadata": {"user": one}}])
    turn, *_ = recall.message_context("b", recall.retain_messages("b", [message])[0].message_id)
    [fact] = recall.list_memories("b", filter=["=", "source_id", one])

    assert fact.memory_id == row.memory_id
    assert (fact.source_id, fact.metadata, turn.session_id) == (
        str(one),
        {"user": str(one)},
        str(one),
    )


def test_numbers_of_a_row_are_taken_as_they_come_from_a_database(recall: Recall) -> None:
    """As psycopg reads numeric and time."""
    price, whole, at = Decimal("19.99"), Decimal(2**70), time(9, 30)
    fact = {"text": "a", "confidence": Decimal("0.5")}

    recall.retain("b", [{**fact, "metadata": {"price": price, "id": whole, "at": at}}])
    [stored] = recall.list_memories("b", filter=["<", "metadata.price", Decimal("19.995")])

    assert stored.metadata == {"price": 19.99, "id": 2**70, "at": "09:30:00"}
    assert stored.confidence == 0.5
    with pytest.raises(InvalidFact, match="is nan, which is not a finite number"):
        recall.retain("b", [{"text": "b", "metadata": {"price": Decimal("NaN")}}])


@pytest.mark.parametrize(
    "held",
    [
        "1" + "0" * 2000,
        "1" + "0" * 5000,
        "[" * 3000 + r'"\"]["' + "]" * 3000,
        '{"a": ' * 3000 + "{}" + "}" * 3000,
    ],
    ids=["digits", "more", "lists", "objects"],
)
def test_metadata_that_python_does_not_read_keeps_no_answer_away(database: str, held: str) -> None:
    # Whoever may write a fact could else end each recall that finds it, each list and each import.
    with Recall.connect(database, embedder=None) as recall:
        recall.create_bank("b")
        recall.retain("b", ["Ana leads Atlas.", "Ana left Atlas."])
        with psycopg.connect(database) as connection:
            connection.execute(
                "update pgrecall.memory set metadata = %s where text like '%%left%%'",
                [f'{{"n": 1, "x": [{held}, 2]}}'],
            )

        hits = recall.recall("b", "Atlas")
        [listed, _] = recall.list_memories("b")
        recall.import_rows("copy", recall.export("b"))

    assert len(hits) == 2
    part, last = cast("list[Any]", listed.metadata["x"])
    assert (listed.metadata["n"], last) == (1, 2)
    while isinstance(part, list | dict):
        [part] = part.values() if isinstance(part, dict) else part
    assert str(part) in held
    assert len(str(part)) > 0.9 * len(held)
    with psycopg.connect(database) as connection:
        copies = connection.execute(
            "select count(*) from pgrecall.memory where metadata ? 'x' group by metadata"
        ).fetchall()
    assert copies == [(2,)]


@pytest.mark.parametrize("method", [Recall.banks, lambda recall: recall.recall("b", "x")])
def test_a_database_without_pgrecall_says_how_to_install_it(
    empty_database: str, method: Callable[[Recall], object]
) -> None:
    with psycopg.connect(empty_database) as connection, pytest.raises(InstallError) as caught:
        method(Recall(connection, embedder=None))

    assert caught.value.message == "pgrecall is not installed in this database"
    assert "pgrecall migrate" in (caught.value.hint or "")


def test_errors_that_are_not_ours_pass_unchanged(recall: Recall, connection: Connection) -> None:
    connection.execute("create role nobody_at_all")
    connection.execute("set role nobody_at_all")

    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        recall.recall("b", "x")


def test_every_sqlstate_has_a_class_that_is_exported() -> None:
    kinds = set(errors._BY_SQLSTATE.values())

    assert all(kind.__name__ in package.__all__ for kind in kinds)


# Connections and transactions


def test_nothing_is_committed_in_the_callers_transaction(database: str) -> None:
    with psycopg.connect(database) as connection:
        Recall(connection, embedder=toy_embed).create_bank("b")
        connection.rollback()

        assert Recall(connection).banks() == []


def test_a_pool_commits_each_call_and_waiting_is_measured(database: str) -> None:
    recall = Recall(FreshConnections(database), embedder=toy_embed)
    recall.create_bank("b")
    recall.retain("b", ["Ana leads Atlas"])

    report = recall.recall_report("b", "Atlas")

    assert [hit.text for hit in report.hits] == ["Ana leads Atlas"]
    assert report.timings.wait > 0


def test_a_long_wait_for_a_connection_is_warned_about(
    database: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "SLOW_CONNECTION_SECONDS", 0.0)
    monkeypatch.setattr(tracing, "_warned_at", -math.inf)

    with caplog.at_level(logging.WARNING, "pgrecall"):
        for _ in range(3):  # one warning a minute is enough
            Recall(FreshConnections(database)).banks()

    [message] = caplog.messages
    assert re.fullmatch(r"waited \d+ ms for a connection", message)


def test_connect_opens_a_connection_and_closes_it(database: str) -> None:
    with package.connect(database, embedder=toy_embed) as recall:
        recall.create_bank("b")
        connection = recall._source

    assert isinstance(connection, psycopg.Connection)
    assert connection.closed
    with psycopg.connect(database) as other:
        assert [bank.bank_id for bank in Recall(other).banks()] == ["b"]


def fail_once(connection: Connection, sqlstate: str) -> None:
    """Make the first write of facts fail with the SQLSTATE, and the next ones not."""
    connection.execute("create sequence public.attempt")
    connection.execute("grant usage on sequence public.attempt to public")
    connection.execute(
        f"""create function public.fail_once() returns trigger language plpgsql as $$
        begin
          if nextval('public.attempt') = 1 then
            raise exception using errcode = '{sqlstate}', message = 'a passing fault';
          end if;
          return null;
        end $$""".encode()
    )
    connection.execute(
        "create trigger fail_once after insert on pgrecall.memory"
        " for each statement execute function public.fail_once()"
    )
    connection.commit()


@pytest.mark.parametrize("sqlstate", ["40001", "40P01"])
def test_a_passing_fault_is_tried_again_with_a_pool(database: str, sqlstate: str) -> None:
    with psycopg.connect(database) as connection:
        Recall(connection).create_bank("b")
        fail_once(connection, sqlstate)
    pool = FreshConnections(database)

    Recall(pool, embedder=None).retain("b", ["Ana leads Atlas"])

    assert pool.lent == 2


def test_a_passing_fault_is_tried_again_in_autocommit_mode(database: str) -> None:
    with psycopg.connect(database) as connection:
        Recall(connection).create_bank("b")
        fail_once(connection, "40001")

    with package.connect(database, embedder=toy_embed) as recall:
        (retained,) = recall.retain("b", ["Ana leads Atlas"])

    assert retained.is_new


@pytest.mark.parametrize("autocommit", [False, True])
def test_nothing_is_tried_again_in_the_callers_transaction(database: str, autocommit: bool) -> None:
    with psycopg.connect(database, autocommit=autocommit) as connection:
        recall = Recall(connection, embedder=toy_embed)
        recall.create_bank("b")
        fail_once(connection, "40001")

        with pytest.raises(psycopg.errors.SerializationFailure), connection.transaction():
            recall.retain("b", ["Ana leads Atlas"])


def test_other_faults_are_not_tried_again(database: str) -> None:
    with psycopg.connect(database) as connection:
        Recall(connection).create_bank("b")
        fail_once(connection, "P0001")
    pool = FreshConnections(database)

    with pytest.raises(psycopg.errors.RaiseException):
        Recall(pool, embedder=None).retain("b", ["Ana leads Atlas"])

    assert pool.lent == 1


def test_a_lost_connection_is_replaced_where_repeating_does_no_harm(database: str) -> None:
    class FirstOneDies(FreshConnections):
        @contextmanager
        def connection(self) -> Iterator[Connection]:
            with super().connection() as connection:
                if self.lent == 1:
                    with psycopg.connect(database, autocommit=True) as killer:
                        killer.execute(
                            "select pg_terminate_backend(%s, 5000)",
                            [connection.info.backend_pid],
                        )
                yield connection

    reading, creating = FirstOneDies(database), FirstOneDies(database)

    assert Recall(reading).banks() == []
    assert reading.lent == 2
    with pytest.raises(psycopg.OperationalError):
        Recall(creating).create_bank("b")
    assert creating.lent == 1


# Round trips


class CountedConnection:
    """Counts the statements that a connection is sent."""

    def __init__(self, connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
        self.statements: list[str] = []
        execute = psycopg.Cursor.execute

        def counted(cursor: Any, query: Any, *arguments: Any, **options: Any) -> Any:
            self.statements.append(query.decode() if isinstance(query, bytes) else str(query))
            return execute(cursor, query, *arguments, **options)

        monkeypatch.setattr(psycopg.Cursor, "execute", counted)


@pytest.mark.parametrize(
    ("options", "statements"),
    [
        ({"embedding": [1.0] * DIMENSIONS, "temporal": False}, ["recall_report"]),
        ({"embedding": [1.0] * DIMENSIONS, "during": (None, None)}, ["recall_report"]),
        ({"embedding": [1.0] * DIMENSIONS}, ["prepare_recall", "recall_report"]),
        ({}, ["prepare_recall", "recall_report"]),
        ({"explain": True}, ["prepare_recall", "recall_report"]),
    ],
)
def test_a_recall_is_one_statement_after_what_has_to_be_looked_up(
    recall: Recall,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    statements: list[str],
) -> None:
    recall.retain("b", ["Ana leads Atlas"])
    counted = CountedConnection(connection, monkeypatch)

    report = recall.recall_report("b", "who leads Atlas", **options)

    assert [re.findall(r"pgrecall\.(\w+)\(", sent) for sent in counted.statements] == [
        [statement] for statement in statements
    ]
    assert [hit.text for hit in report.hits] == ["Ana leads Atlas"]
    assert {"lexical", "semantic"} <= {arm.arm for arm in report.arms if arm.status == "ran"}


def test_a_recall_without_embedder_and_time_is_one_statement(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    recall = Recall(connection, embedder=None)
    recall.create_bank("b")
    recall.retain("b", ["Ana leads Atlas"])
    counted = CountedConnection(connection, monkeypatch)

    recall.recall("b", "who leads Atlas", temporal=False)

    assert len(counted.statements) == 1


def test_only_what_was_given_is_sent() -> None:
    settings = Settings.of(None, None, None, None)

    bare = Question(settings, "b", "who?", {"filter": None, "top_k": None}).call()
    full = Question(settings, "b", "who?", {"top_k": 3, "rrf_k": 20, "arms": "key"}).call()

    assert dict(bare.parameters) == {"bank": "b", "query": "who?"}
    assert list(full.parameters) == ["top_k", "bank", "query", "options"]
    assert repr(full.parameters["options"]) == "Jsonb({'rrf_k': 20, 'arms': ['key']})"


def test_an_answer_without_hits_is_reported_on(recall: Recall) -> None:
    report = recall.recall_report("b", "who leads Atlas")

    assert report.hits == ()
    assert {arm.arm for arm in report.arms} >= {"lexical", "semantic", "graph"}


def test_the_plan_of_a_recall_runs_nothing(recall: Recall) -> None:
    recall.retain("b", ["Ana leads Atlas"])

    planned = {arm.arm: arm for arm in recall.explain("b", "who leads Atlas", is_run=False)}
    ran = {arm.arm: arm for arm in recall.explain("b", "who leads Atlas")}

    assert (planned["lexical"].status, ran["lexical"].status) == ("planned", "ran")
    assert (planned["temporal"].status, ran["temporal"].status) == ("skipped", "skipped")


def test_what_each_arm_finds_is_listed_before_fusion(recall: Recall) -> None:
    recall.retain("b", [{"text": "Ana leads Atlas", "entities": ["Atlas"]}])

    found = recall.arm_hits("b", "who leads Atlas", weights={"lexical": 0})

    assert {hit.arm for hit in found} >= {"lexical", "semantic"}
    assert all(hit.named for hit in found)


def test_a_memory_is_followed_through_a_recall(recall: Recall) -> None:
    first, second = recall.retain("b", ["Ana leads Atlas", "Ben saw Atlas"])

    told = {
        row.memory_id: recall.why_not("b", "who leads Atlas", row.memory_id, top_k=1)
        for row in (first, second)
    }

    assert told[first.memory_id][0] == RecallStep("reach", "found", None, None, None)
    assert [told[row.memory_id][-1].status for row in (first, second)] == ["returned", "left out"]
    assert told[second.memory_id][-1].reason == "of 2; the answer ends at 1"
    with pytest.raises(MemoryNotFound, match="has no memory 7"):
        recall.why_not("b", "who leads Atlas", 7)


def test_a_memory_is_followed_through_reranking(connection: psycopg.Connection[Any]) -> None:
    recall = Recall(
        connection,
        embedder=None,
        reranker=lambda _query, texts: [0.999 if "Ben" in text else 0.001 for text in texts],
    )
    recall.create_bank("b")
    ana, ben, cem = recall.retain("b", ["Ana leads Atlas", "Ben saw Atlas", "Cem is out"])

    first, last, lost = (
        recall.why_not("b", "who leads Atlas", row.memory_id, top_k=1) for row in (ben, ana, cem)
    )

    assert [(step.step, step.status, step.rank) for step in first[-2:]] == [
        ("candidates", "returned", 2),
        ("answer", "returned", 1),
    ]
    (best,) = recall.recall("b", "who leads Atlas", top_k=1)
    assert (first[-1].score, best.text) == (best.final_score, "Ben saw Atlas")
    assert (last[-1].status, last[-1].rank) == ("left out", 2)
    assert last[-1].reason == "of 2, reranked; the answer is 1 to 1"
    assert lost[-1].reason == "it is not among the candidates that the reranker orders"


def test_options_and_arms_are_listed_as_the_database_declares_them(recall: Recall) -> None:
    recall.configure_bank("b", {"budget": "low"})

    options = {option.name: option for option in recall.recall_options()}

    assert (options["budget"].default_value, options["budget"].is_bank_default) == ("mid", True)
    assert recall.bank_options("b")["budget"] == "low"
    assert {arm.arm: arm.weight for arm in recall.arms()}["lexical"] == 1


# Versions


def test_a_bank_that_exists_may_be_left_as_it_is(recall: Recall) -> None:
    recall.retain("b", ["Ana leads Atlas"])

    recall.create_bank("b", exist_ok=True)
    recall.create_bank("new", exist_ok=True)

    assert [(bank.bank_id, bank.memories) for bank in recall.banks()] == [("b", 1), ("new", 0)]


@pytest.mark.parametrize(
    ("version", "hint"),
    [
        ("0.0.1", "Upgrade the schema with: pgrecall migrate --dsn ..."),
        ("99.0.0", "Upgrade the driver with: pip install 'pgrecall>=99.0.0'"),
    ],
)
def test_another_version_of_the_schema_says_which_side_to_upgrade(
    database: str, version: str, hint: str
) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("drop function pgrecall.pending_links")
        connection.execute(
            "create or replace function pgrecall.version() returns text language sql"
            f" return '{version}'".encode()
        )

        with pytest.raises(InstallError) as caught:
            Recall(connection).pending_links("b")

    assert caught.value.message.startswith(
        f"the database has pgrecall {version}, this driver is {package.__version__}: function"
    )
    assert caught.value.hint == hint


def test_in_a_transaction_the_versions_are_left_to_compare(
    recall: Recall, connection: Connection
) -> None:
    connection.execute("drop function pgrecall.pending_links")

    with pytest.raises(InstallError) as caught:
        recall.pending_links("b")

    assert "does not fit this driver" in caught.value.message
    assert "select pgrecall.version();" in (caught.value.hint or "")


def add_column(connection: Connection, name: str) -> None:
    """Add a column to what a recall returns, as an upgrade does, which makes functions anew."""
    connection.execute(f"alter type pgrecall.recalled add attribute {name} text".encode())
    for function in ("hybrid_recall", "recall_report"):
        connection.execute(f"alter function pgrecall.{function} cost 99".encode())
    connection.commit()


@pytest.mark.parametrize("autocommit", [False, True])
def test_a_connection_outlives_an_upgrade(database: str, autocommit: bool) -> None:
    with (
        psycopg.connect(database, autocommit=autocommit) as old,
        psycopg.connect(database) as upgrade,
    ):
        memory = Recall(old, embedder=None)
        memory.create_bank("b")
        memory.retain("b", ["Ana sails."])
        for _ in range(8):  # psycopg prepares a statement that it has seen five times
            memory.recall("b", "Ana", timeout=60)
        prepared = old.execute("select statement from pg_prepared_statements").fetchall()
        old.commit()

        for n in range(2):
            add_column(upgrade, f"later_{n}")
            found = [[hit.text for hit in memory.recall("b", "Ana")] for _ in range(8)]
            old.commit()
            assert found == [["Ana sails."]] * 8

    assert prepared == []


def test_of_equal_versions_the_error_passes_unchanged(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("drop function pgrecall.pending_links")

        with pytest.raises(psycopg.errors.UndefinedFunction):
            Recall(connection).pending_links("b")


def test_connecting_to_the_embedded_server_installs_the_schema(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGRECALL_DSN", raising=False)
    monkeypatch.setattr("pgrecall.server.embedded._embedded_dsn", lambda: empty_database)

    with Recall.connect() as recall:
        banks = recall.banks()

    assert banks == []


def test_connecting_to_a_named_server_installs_nothing(empty_database: str) -> None:
    with (
        Recall.connect(empty_database) as recall,
        pytest.raises(InstallError, match="pgrecall migrate"),
    ):
        recall.banks()


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda r: r.list_memories("b", top_k=0), "Pass top_k=50, for example."),
        (lambda r: r.consolidate("b", min_similarity=2), "Pass min_similarity=0.9, for example."),
        (lambda r: r.forget("b"), "Pass filter=, fact_key= or source_id=; pgrecall.drop_bank()"),
        (lambda r: r.retain("b", ["x"], link="x"), "link"),
        (lambda r: r.recall("b", ""), "Pass a question, an embedding=, a window during= or the"),
        (lambda r: r.recall("c", "x"), "Create it with: select pgrecall.create_bank('c');"),
    ],
)
def test_hints_name_arguments_as_python_does(
    pgrecall: Recall, call: Callable[[Recall], object], hint: str
) -> None:
    pgrecall.create_bank("b")

    with pytest.raises(RecallError) as caught:
        call(pgrecall)

    assert hint in str(caught.value.hint)
    assert " =>" not in str(caught.value.hint)


def test_an_error_says_its_hint() -> None:
    error = BankNotFound('bank "b" does not exist', hint="Create it.")

    assert str(error) == 'bank "b" does not exist\nhint: Create it.'
    assert (error.message, str(BankNotFound("gone"))) == ('bank "b" does not exist', "gone")


# Calls


def test_the_statements_name_every_argument() -> None:
    statement = calls.memories.forget("b", [1]).sql

    assert statement == ("select pgrecall.forget(bank => %(bank)s, memory_ids => %(memory_ids)s)")


def test_embeddings_of_facts_are_sent_as_short_text() -> None:
    fact = {"text": "a", "embedding": [0.123456789, -1, 1e-9]}

    assert plain_facts([fact]) == [{"text": "a", "embedding": "[0.123457,-1,1e-09]"}]


def test_sql_stands_in_calls_alone() -> None:
    folder = Path(package.__file__).parent
    rooms = ("asking", "retaining", "connection")
    others = [folder / "client.py", folder / "aio.py"]
    others += [path for room in rooms for path in folder.glob(f"{room}/*.py")]

    assert [f.name for f in others if re.search(r"\.execute\(\s*[\"']", f.read_text())] == []


def test_no_statement_names_anything_private() -> None:
    folder = Path(package.__file__).parent
    files = [*folder.glob("calls/*.py"), *folder.glob("evaluation/*.py")]

    assert [file.name for file in files if "pgrecall_internal" in file.read_text()] == []


def test_all_is_sorted_and_there() -> None:
    assert sorted(package.__all__) == package.__all__
    assert [name for name in package.__all__ if not hasattr(package, name)] == []


def test_names_of_the_package_are_found_on_first_use() -> None:
    import pgrecall.rows

    assert pgrecall.Hit is pgrecall.rows.Hit
    assert pgrecall.connect == Recall.connect
    assert set(pgrecall.__all__) <= set(dir(pgrecall))
    with pytest.raises(AttributeError, match="has no attribute 'Rekall'"):
        pgrecall.Rekall  # type: ignore[attr-defined]  # noqa: B018
