"""Texts longer than a model reads: what follows is embedded in parts, however a fact comes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest
from numpy import array, linalg

from pgrecall import ModelMismatch, Recall
from pgrecall.embedders import DEFAULT_EMBEDDER
from pgrecall.inference.late_interaction import Embedded, parts_of
from sqlcalls import Connection, call, create, refused, retain, rows
from toys import toy_embed

LONG = "Ana leads Atlas. Bo repairs bicycles. Cy sells old clocks."
PARTS = [pytest.approx(one, abs=1e-2) for one in toy_embed(LONG.split(". ")[1:])]


class PartsToy:
    """Reads the first sentence of a text, and the others in parts."""

    model = "toy-parts"

    def embed(self, texts: Sequence[str]) -> list[Embedded]:
        read = (toy_embed(text.split(". ")) for text in texts)
        return [Embedded(first, None, others) for first, *others in read]


class NextToy(PartsToy):
    model = "toy-parts-2"


class EarlierToy(PartsToy):
    """The same model before it read in parts, of which it then knew the first two words."""

    def embed(self, texts: Sequence[str]) -> list[Embedded]:
        return [Embedded(one) for one in toy_embed([text[:9] for text in texts])]


@pytest.fixture
def recall(connection: Connection) -> Recall:
    recall = Recall(connection, embedder=PartsToy(), reranker=None)
    recall.create_bank("b")
    return recall


def parts(connection: Connection, model: str = "toy-parts") -> list[list[float]]:
    """Return those of what is current."""
    found = rows(
        connection,
        "select e.embedding::text from pgrecall.embedding e"
        " join pgrecall.memory m using (bank_id, memory_id)"
        " where m.valid_to is null and e.model = %s and e.kind = 'part'"
        " order by m.memory_id, e.ordinal",
        model,
    )
    return [json.loads(text) for (text,) in found]


def retained(recall: Recall, _connection: Connection) -> None:
    recall.retain("b", [LONG])


def stored_in_sql(recall: Recall, connection: Connection) -> None:
    retain(connection, [LONG])
    recall.embed_pending("b")


def of_a_new_text(recall: Recall, _connection: Connection) -> None:
    (stored,) = recall.retain("b", ["Ana left. Nothing else."])
    recall.update("b", stored.memory_id, text=LONG)


def with_new_tags(recall: Recall, _connection: Connection) -> None:
    (stored,) = recall.retain("b", [LONG])
    recall.update("b", stored.memory_id, tags=["new"])


def while_it_is_forgotten(recall: Recall, connection: Connection) -> None:
    (stored,) = recall.retain("b", [LONG])

    class Forgetting(PartsToy):
        def embed(self, texts: Sequence[str]) -> list[Embedded]:
            call(connection, "forget", bank="b", memory_ids=[stored.memory_id])
            return super().embed(texts)

    Recall(connection, embedder=Forgetting()).retain("b", [LONG, "Di paints."])


@pytest.mark.parametrize(
    "store", [retained, stored_in_sql, of_a_new_text, with_new_tags, while_it_is_forgotten]
)
def test_a_long_fact_has_parts_however_it_comes(
    recall: Recall, connection: Connection, store: Callable[[Recall, Connection], None]
) -> None:
    store(recall, connection)

    assert parts(connection) == PARTS
    assert recall.recall("b", "old clocks", arms=["semantic"])[0].text == LONG


def test_a_new_text_has_no_parts_of_the_old_one(recall: Recall, connection: Connection) -> None:
    (stored,) = recall.retain("b", [LONG])

    recall.update("b", stored.memory_id, text="Ana left.")

    assert parts(connection) == []


def test_another_model_has_parts_of_its_own(recall: Recall, connection: Connection) -> None:
    recall.retain("b", [LONG])

    recall.reembed_fill("b", NextToy())
    both = Recall(connection, embedder=PartsToy(), next_embedder=NextToy())
    both.retain("b", ["Di paints. Ed sings."])
    both.reembed_finish("b")

    assert parts(connection, "toy-parts-2")[:2] == PARTS
    assert len(parts(connection, "toy-parts-2")) == len(parts(connection)) == 3


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        ("no", "RC003", 'facts[0].parts: expected an array, not "no"'),
        ([[1, 0], [1]], "RC004", "facts[0].parts[1]: expected 2 dimensions, not 1"),
    ],
)
def test_a_wrong_part_is_named(
    connection: Connection, given: object, code: str, message: str
) -> None:
    create(connection)
    fact = {"text": "long", "embedding": [1, 0], "parts": given}

    with refused(connection, code, message):
        retain(connection, [fact])


def test_the_packaged_embedder_reads_the_end_of_a_long_passage() -> None:
    begin = " ".join(f"Boat {n} left the harbour of Porto at noon." for n in range(60))
    end = "Maya is allergic to peanuts and to the pollen of birches."
    texts = [f"{begin} {end}", end]

    [long, short], [question] = (
        DEFAULT_EMBEDDER.embed_documents(texts),
        DEFAULT_EMBEDDER.embed_query([texts[0]]),
    )

    (part,) = parts_of(long)
    [asked] = DEFAULT_EMBEDDER.embed_query(["What is Maya allergic to?"])
    assert array(part) @ array(asked) > array(long) @ array(asked) + 0.05
    assert linalg.norm(part) == pytest.approx(1, abs=1e-3)
    assert parts_of(short) == parts_of(question) == ()


def test_the_parts_of_a_passage_are_bounded() -> None:
    [long] = DEFAULT_EMBEDDER.embed_documents(["b " * 20_000])

    assert len(parts_of(long)) == 31


def test_what_an_earlier_version_embedded_is_embedded_anew_where_asked(
    connection: Connection,
) -> None:
    create(connection)
    earlier = Recall(connection, embedder=EarlierToy(), reranker=None)
    long = {"text": LONG, "questions": [{"text": "who leads Atlas"}]}
    first, last = (one.memory_id for one in earlier.retain("b", [long, "Di left."]))
    recall = Recall(connection, embedder=PartsToy(), reranker=None)
    done: list[int] = []

    assert (recall.embed_pending("b"), parts(connection)) == (0, [])
    assert recall.embed_pending("b", again=True, batch_size=1, progress=done.append) == 3

    assert done == [2, 1]
    assert parts(connection) == PARTS
    assert recall.embed_pending("b", again=True, from_id=last) == 1
    text, question = (
        json.loads(vector)
        for (vector,) in rows(
            connection,
            "select embedding::text from pgrecall.embedding"
            " where memory_id = %s and kind <> 'part' order by kind desc",
            first,
        )
    )
    assert text == pytest.approx(toy_embed(["Ana leads Atlas"])[0], abs=1e-2)
    assert question == pytest.approx(toy_embed(["who leads Atlas"])[0], abs=1e-2)


def test_embedded_anew_a_text_keeps_no_part_that_it_no_longer_has(
    connection: Connection, recall: Recall
) -> None:
    recall.retain("b", [LONG])

    assert Recall(connection, embedder=EarlierToy()).embed_pending("b", again=True) == 1

    assert parts(connection) == []


def test_another_model_embeds_nothing_anew(connection: Connection, recall: Recall) -> None:
    recall.retain("b", [LONG])

    with (
        pytest.raises(ModelMismatch, match='"toy-parts", not "toy-parts-2"'),
        connection.transaction(),
    ):
        Recall(connection, embedder=NextToy()).embed_pending("b", again=True)

    assert parts(connection) == PARTS
