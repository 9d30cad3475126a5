"""What a bank holds already is not embedded again, and nothing else is stored for that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from pgrecall import FunctionEmbedder, InvalidFact, ModelMismatch, Recall
from pgrecall.calls.call import Call
from pgrecall.retaining.facts import Fact
from toys import toy_embed

Connection = psycopg.Connection[Any]

FACTS: list[Fact] = [
    "Ana leads Atlas",
    {"text": "Atlas went live", "occurred": "2026-03-05", "fact_type": "event", "tags": ["a"]},
    {"text": "Ben likes tea", "questions": [{"text": "who likes tea?"}], "entities": ["Ben"]},
]
TEXTS = ["Ana leads Atlas", "Atlas went live", "Ben likes tea", "who likes tea?"]


class Counting(FunctionEmbedder):
    """Remembers what it was asked to embed."""

    def __init__(self, model: str = "toy", before: Callable[[], object] = list) -> None:
        super().__init__(self._answer, model)
        self.asked: list[str] = []
        self.before = before

    def _answer(self, texts: Sequence[str]) -> list[list[float]]:
        self.before()
        self.asked += texts
        return toy_embed(texts)

    def of(self, recall: Recall, facts: Sequence[Fact]) -> list[str]:
        """Retain facts; return what was embedded for that."""
        self.asked = []
        recall.retain("b", facts)
        return self.asked


@pytest.fixture
def embedder() -> Counting:
    return Counting()


@pytest.fixture
def recall(connection: Connection, embedder: Counting) -> Recall:
    recall = Recall(connection, embedder=embedder)
    recall.create_bank("b")
    return recall


def stored(connection: Connection) -> list[tuple[Any, ...]]:
    return connection.execute(
        "select m.text, e.kind, e.model, e.embedding::text from pgrecall.embedding e"
        " join pgrecall.memory m using (bank_id, memory_id) order by 1, 2, 3"
    ).fetchall()


def test_known_facts_are_not_embedded_again(
    recall: Recall, embedder: Counting, connection: Connection
) -> None:
    assert embedder.of(recall, FACTS) == TEXTS
    before = stored(connection)

    assert embedder.of(recall, FACTS) == []

    assert [row.is_new for row in recall.retain("b", FACTS)] == [False] * 3
    assert stored(connection) == before


@pytest.mark.parametrize(
    ("fact", "texts"),
    [
        ("Ana led Atlas", ["Ana led Atlas"]),
        ({"text": "Ana leads Atlas", "occurred": "2026-03-06"}, ["Ana leads Atlas"]),
        ({"text": "Ana leads Atlas", "context": "at work"}, ["Ana leads Atlas"]),
        ({"text": "Ana leads Atlas", "proof_count": 2, "tags": ["b"], "confidence": 0.5}, []),
        ({"text": "Ben likes tea", "questions": [{"text": "who drinks?"}]}, ["who drinks?"]),
    ],
)
def test_what_changed_is_embedded(
    fact: Fact, texts: list[str], recall: Recall, embedder: Counting
) -> None:
    recall.retain("b", FACTS)

    assert embedder.of(recall, [*FACTS, fact]) == texts


def test_a_fact_that_ended_is_embedded_again(recall: Recall, embedder: Counting) -> None:
    (row, *_) = recall.retain("b", FACTS)
    recall.supersede("b", row.memory_id)

    assert embedder.of(recall, FACTS) == TEXTS[:1]


def test_a_fact_that_is_known_without_an_embedding_gets_one(
    recall: Recall, embedder: Counting, connection: Connection
) -> None:
    Recall(connection, embedder=None).retain("b", FACTS[:1])

    assert embedder.of(recall, FACTS[:1]) == TEXTS[:1]
    assert [row[:3] for row in stored(connection)] == [("Ana leads Atlas", "text", "toy")]


def test_a_fact_that_is_forgotten_meanwhile_is_stored_with_its_embedding(
    database: str, embedder: Counting
) -> None:
    class Pool:
        @contextmanager
        def connection(self) -> Iterator[Connection]:
            with psycopg.connect(database) as connection:
                yield connection

    with psycopg.connect(database, autocommit=True) as connection:
        other = Recall(connection, embedder=None)
        other.create_bank("b")
        recall = Recall(Pool(), embedder=embedder)
        rows = recall.retain("b", FACTS)
        before = stored(connection)

        embedder.before = lambda: other.forget("b", [row.memory_id for row in rows])
        again = recall.retain("b", [*FACTS, "Cem leads Cygnus"])

        assert embedder.asked == [*TEXTS, "Cem leads Cygnus"]
        assert [row.is_new for row in again] == [True] * 4
        assert [row for row in stored(connection) if "Cem" not in row[0]] == before


def test_while_a_bank_is_re_embedded_each_model_embeds_what_it_lacks(
    recall: Recall, embedder: Counting, connection: Connection
) -> None:
    recall.retain("b", FACTS)
    following = Counting("new")
    both = Recall(connection, embedder=embedder, next_embedder=following)
    both.reembed_fill("b", FunctionEmbedder(toy_embed, "new"))
    connection.execute("delete from pgrecall.embedding where model = 'new' and kind = 'question'")

    assert embedder.of(both, FACTS) == []
    assert following.asked == ["who likes tea?"]

    following.asked = []
    both.reembed_finish("b")
    assert embedder.of(both, FACTS) == []
    assert following.asked == []


def test_the_embeddings_of_another_model_are_no_use(recall: Recall, connection: Connection) -> None:
    recall.retain("b", FACTS)
    other = Counting("other")

    with pytest.raises(ModelMismatch), connection.transaction():
        other.of(Recall(connection, embedder=other), FACTS)

    assert other.asked == TEXTS


def test_a_bank_is_asked_only_where_something_is_to_be_embedded(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    recall = Recall(connection, embedder=Counting())
    recall.create_bank("b")
    sent: list[str] = []

    def send(self: Recall, call: Call[Any, Any], *rest: Any) -> Any:
        sent.append(call.sql)
        return original(self, call, *rest)

    original = Recall._send
    monkeypatch.setattr(Recall, "_send", send)
    recall.retain("b", [{"text": "Ana", "embedding": toy_embed(["Ana"])[0]}])
    Recall(connection, embedder=None).retain("b", ["Ben"])

    assert len(sent) == 2
    assert not any("stored_embeddings" in sql for sql in sent)


@pytest.mark.parametrize(
    "field",
    [
        {"occurred": "2024-05"},
        {"confidence": "0.9"},
        {"entities": [{"name": ""}]},
        {"relations": [{"from": "Ana"}]},
        {"tags": "a"},
    ],
)
def test_what_is_refused_is_not_embedded(connection: Connection, field: dict[str, Any]) -> None:
    """A bank without an embedding, and one that has some."""
    embedder = Counting()
    recall = Recall(connection, embedder=embedder)
    recall.create_bank("b")
    for fact in ("Ana", "Ben"):
        with pytest.raises(InvalidFact), connection.transaction():
            recall.retain("b", [fact, {"text": "Bad", **field}])
        recall.retain("b", [fact])

    assert embedder.asked == ["Ana", "Ben"]


def test_sql_tells_which_facts_need_no_embedding(connection: Connection) -> None:
    connection.execute("select pgrecall.create_bank('b', embedding_model => 'm')")
    facts = """[{"text": "a", "embedding": [1, 0], "entities": ["A"],
                 "questions": [{"text": "q", "embedding": [0, 1]}]},
                {"text": "b", "embedding": [1, 1]}, {"text": "c"}]"""
    asked = """[{"text": "new"}, {"text": "c"}, {"text": "b"},
                {"text": "a", "questions": [{"text": "q"}]}]"""
    query = """select index, kind, ordinal, model, embedding::text
               from   pgrecall.stored_embeddings('b', %s)"""
    assert connection.execute(query, [asked]).fetchall() == []

    connection.execute("select pgrecall.retain('b', %s)", [facts])

    assert connection.execute(query, [asked]).fetchall() == [
        (2, "text", 0, "m", "[1,1]"),
        (3, "question", 0, "m", "[0,1]"),
        (3, "text", 0, "m", "[1,0]"),
    ]
