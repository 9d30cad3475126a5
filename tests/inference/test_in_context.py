"""What a fact says in its context: read by the embedder that can, wherever a fact is embedded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import psycopg
import pytest
from numpy import array

from pgrecall import PackagedEmbedder, Recall
from pgrecall.embedders import DEFAULT_EMBEDDER
from pgrecall.evaluation.measure import CachedEmbedder
from pgrecall.inference.embedders import CONTEXT_TOKENS
from pgrecall.inference.late_interaction import parts_of, tokens_of
from toys import toy_embed

REPLY = "Yes, twice, and I would go again."
OF_LISBON = "Have you ever been to Lisbon?"
OF_SUSHI = "Have you ever tried sushi at that restaurant?"
QUESTION = "Who has travelled to Portugal?"

Vectors = Sequence[Sequence[float]]


class ContextToy:
    """Embeds the words of a text and of its context alike."""

    model = "toy-context"

    def embed(self, texts: Sequence[str]) -> Vectors:
        return toy_embed([*texts])

    def embed_in_context(self, texts: Sequence[str], contexts: Sequence[str]) -> Vectors:
        return self.embed(
            [f"{text} {context}" for text, context in zip(texts, contexts, strict=True)]
        )


class NextToy(ContextToy):
    model = "toy-context-2"


@pytest.fixture
def recall(connection: psycopg.Connection[Any]) -> Recall:
    recall = Recall(connection, embedder=ContextToy(), reranker=None)
    recall.create_bank("talk")
    return recall


def similarities(embedder: PackagedEmbedder, question: str, passages: Vectors) -> list[float]:
    (asked,) = embedder.embed_query([question])
    return [float(array(asked) @ array(passage)) for passage in passages]


def in_context(text: str, context: str) -> list[float]:
    (vector,) = DEFAULT_EMBEDDER.embed_in_context([text], [context])
    return [*vector]


def alone(text: str) -> list[float]:
    (vector,) = DEFAULT_EMBEDDER.embed_documents([text])
    return [*vector]


@pytest.mark.slow
def test_a_reply_is_near_to_what_it_replies_to() -> None:
    of_lisbon, of_sushi, bare = similarities(
        DEFAULT_EMBEDDER,
        QUESTION,
        [in_context(REPLY, OF_LISBON), in_context(REPLY, OF_SUSHI), alone(REPLY)],
    )

    assert of_lisbon > of_sushi + 0.05
    assert of_lisbon > bare + 0.05


@pytest.mark.slow
def test_a_text_outweighs_its_context() -> None:
    text = "The ferry to Bergen leaves at seven in the morning."

    own, other = similarities(
        DEFAULT_EMBEDDER,
        "When does the ferry leave?",
        [in_context(text, OF_SUSHI), alone(OF_SUSHI)],
    )
    about_sushi = similarities(
        DEFAULT_EMBEDDER, "Who tried sushi?", [in_context(text, OF_SUSHI), alone(OF_SUSHI)]
    )

    assert own > other + 0.2
    assert about_sushi[0] < about_sushi[1] - 0.2


def stored(vector: object) -> bytes:
    tokens = tokens_of(vector)
    return tokens and tokens.stored() or b""


@pytest.mark.slow
def test_without_a_context_nothing_changes() -> None:
    (bare,) = DEFAULT_EMBEDDER.embed_documents([REPLY])
    (empty,) = DEFAULT_EMBEDDER.embed_in_context([REPLY], [""])

    assert empty == bare
    assert stored(empty) == stored(bare) != b""


@pytest.mark.slow
def test_the_tokens_of_a_context_are_compared_too() -> None:
    (asked,) = DEFAULT_EMBEDDER.embed_query(["Who has been to Lisbon?"])
    bare, of_lisbon, of_sushi = map(
        stored,
        (
            *DEFAULT_EMBEDDER.embed_documents([REPLY]),
            *DEFAULT_EMBEDDER.embed_in_context([REPLY, REPLY], [OF_LISBON, OF_SUSHI]),
        ),
    )

    question = tokens_of(asked)
    assert question is not None
    near, *others = question.relevances([of_lisbon, of_sushi, bare])

    assert near is not None
    assert all(other is not None and near > other + 0.1 for other in others)
    assert of_lisbon.startswith(bare)
    assert len(of_lisbon) > len(bare)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("context", "is_heading"),
    [
        ("Search service > Ports", True),
        ("  Lösungen 3 (alt)  ", True),
        ("Which port is it?", False),
        ("Ports\nof services", False),
        ("port " * 40, False),
    ],
)
def test_a_passage_has_a_part_that_begins_with_its_heading(context: str, is_heading: bool) -> None:
    text = "It is 9090."

    [read] = DEFAULT_EMBEDDER.embed_in_context([text], [context])
    [begun] = DEFAULT_EMBEDDER.embed_documents([f"{context.strip()}: {text}"])

    assert ([*read] == alone(text)) is is_heading
    assert [[*part] for part in parts_of(read)] == ([[*begun]] if is_heading else [])
    assert (stored(read) == stored(begun)) is is_heading


def test_only_the_first_tokens_of_a_context_are_read() -> None:
    read = "north " * CONTEXT_TOKENS

    assert in_context(REPLY, read + "Lisbon " * 200_000) == in_context(REPLY, read)
    assert in_context(REPLY, read) != in_context(REPLY, read[: len(read) // 2])


@pytest.mark.slow
@pytest.mark.parametrize("length", [124, 600])
def test_a_long_text_says_enough_by_itself(length: int) -> None:
    assert in_context("north " * length, OF_LISBON) == alone("north " * length)
    assert in_context("north " * 120, OF_LISBON) != alone("north " * 120)


def embeddings(connection: psycopg.Connection[Any], model: str) -> list[list[float]]:
    rows = connection.execute(
        "select embedding::real[] from pgrecall.embedding"
        " where model = %s and kind = 'text' order by memory_id",
        (model,),
    )
    return [array for (array,) in rows]


def test_facts_are_embedded_in_their_contexts(recall: Recall) -> None:
    recall.retain(
        "talk",
        [{"text": REPLY, "context": OF_SUSHI}, {"text": "No, never.", "context": OF_LISBON}],
    )

    (hit,) = recall.recall("talk", "Lisbon", top_k=1, weights={"lexical": 0, "graph": 0})

    assert hit.text == "No, never."


def stored_in_sql(recall: Recall, connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        "select pgrecall.retain('talk', jsonb_build_array(jsonb_build_object("
        "'text', %s::text, 'context', %s::text)))",
        (REPLY, OF_LISBON),
    )
    recall.embed_pending("talk")


def of_a_new_text(recall: Recall, _connection: psycopg.Connection[Any]) -> None:
    (stored,) = recall.retain("talk", [{"text": "No.", "context": OF_LISBON}])
    recall.update("talk", stored.memory_id, text=REPLY)


def of_a_new_context(recall: Recall, _connection: psycopg.Connection[Any]) -> None:
    (stored,) = recall.retain("talk", [{"text": "No.", "context": OF_SUSHI}])
    recall.update("talk", stored.memory_id, text=REPLY, context=OF_LISBON)


@pytest.mark.parametrize("store", [stored_in_sql, of_a_new_text, of_a_new_context])
def test_a_fact_is_embedded_in_its_context_however_it_comes(
    recall: Recall,
    connection: psycopg.Connection[Any],
    store: Callable[[Recall, psycopg.Connection[Any]], None],
) -> None:
    recall.retain("talk", [{"text": REPLY, "context": OF_LISBON, "fact_type": "experience"}])

    store(recall, connection)

    first, *_, last = embeddings(connection, "toy-context")
    recall.retain("talk", [REPLY + " Alone."])
    assert last == first != embeddings(connection, "toy-context")[-1]


def test_re_embedding_reads_contexts(recall: Recall, connection: psycopg.Connection[Any]) -> None:
    recall.retain(
        "talk", [{"text": REPLY, "context": OF_LISBON}, {"text": REPLY + " " + OF_LISBON}]
    )

    recall.reembed_fill("talk", NextToy())

    in_its_context, as_one = embeddings(connection, "toy-context-2")
    assert in_its_context == as_one


def test_an_evaluation_embeds_a_text_once_in_each_context() -> None:
    class Counting(ContextToy):
        texts = 0

        def embed(self, texts: Sequence[str]) -> Vectors:
            self.texts += len(texts)
            return super().embed(texts)

    counting = Counting()
    cached = CachedEmbedder(counting)

    for _ in range(2):
        vectors = [*cached.embed_in_context([REPLY, REPLY], [OF_LISBON, OF_SUSHI])]

    assert counting.texts == 2
    assert vectors[0] != vectors[1]
