"""What a caller who has a language model adds to a question: keys, and terms that expand it."""

from __future__ import annotations

from typing import Any

import pytest

from pgrecall import Recall
from servers import kept_fixture
from sqlcalls import Connection, call, create, recalled, refused, retain

FACTS: list[dict[str, Any]] = [
    {"text": "Ring Assumpta first.", "fact_key": "depot.9"},
    {"text": "The siren is tested on Mondays.", "fact_key": "ops.runbook.siren"},
    {"text": "The dinghy leaks at the stern."},
    {"text": "A boat needs two fenders."},
    *({"text": f"Note {n} about the harbour."} for n in range(20)),
]


@kept_fixture
def harbour(connection: Connection) -> None:
    create(connection)
    retain(connection, FACTS)
    call(connection, "refresh_statistics", bank="b")


@pytest.mark.parametrize("key", ["depot.9", " DEPOT.9 "])
def test_a_key_finds_what_nothing_else_finds_and_comes_first(harbour: Connection, key: str) -> None:
    query = "What does ops.runbook.siren say of the siren on Mondays?"

    rows = call(harbour, "hybrid_recall", bank="b", query=query, keys=[key])

    assert [row.text for row in rows[:2]] == [FACTS[0]["text"], FACTS[1]["text"]]
    assert rows[0].relevance > 0.99
    assert rows[1].arms["key"]["rank"] == 2
    assert FACTS[0]["text"] not in recalled(harbour, query)


def test_a_key_is_exact(harbour: Connection) -> None:
    found = recalled(harbour, "Who is Bo?", keys=["depot", "what does depot.9 say"])

    assert found == []


def test_a_term_finds_what_nothing_else_finds(harbour: Connection) -> None:
    query = "Which boat is broken?"

    found = recalled(harbour, query, terms=["dinghy", "leaks"])

    assert "The dinghy leaks at the stern." in found
    assert "The dinghy leaks at the stern." not in recalled(harbour, query)


def test_a_term_counts_half_as_much_as_a_word_of_the_question(harbour: Connection) -> None:
    def score(query: str, *terms: str) -> Any:
        rows = call(harbour, "arm_hits", bank="b", query=query, terms=list(terms))
        return next(row.score for row in rows if row.arm == "lexical")

    assert score("dinghy, stern", "stern") == score("dinghy, stern")
    assert score("Bo?", "dinghy") == pytest.approx(score("dinghy") / 2)


def test_a_term_takes_nothing_from_the_relevance_of_the_questions_own_words(
    harbour: Connection,
) -> None:
    plain = call(harbour, "hybrid_recall", bank="b", query="two fenders")[0]

    rows = call(harbour, "hybrid_recall", bank="b", query="two fenders", terms=["buoys", "two"])

    assert (rows[0].text, rows[0].relevance) == (plain.text, pytest.approx(plain.relevance))


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"keys": ["depot.9"]}, [FACTS[0]["text"]]),
        ({"terms": ["dinghy"]}, [FACTS[2]["text"]]),
        (
            {"keys": ["depot.9"], "terms": ["fenders"]},
            [FACTS[0]["text"], FACTS[3]["text"]],
        ),
    ],
)
def test_no_query_is_needed_beside_them(
    harbour: Connection, options: dict[str, Any], found: list[str]
) -> None:
    assert recalled(harbour, "", **options) == found


@pytest.mark.parametrize("query", ["Which boat is broken?", ""])
def test_a_term_is_looked_for_in_messages(harbour: Connection, query: str) -> None:
    call(harbour, "retain_messages", bank="b", messages=[{"text": "The dinghy sank."}])

    rows = call(harbour, "hybrid_recall", bank="b", query=query, terms=["dinghy"])

    (sank,) = [row for row in rows if row.kind == "message"]
    assert sank.text == "The dinghy sank."
    assert sank.score > 0


def test_the_driver_takes_them_as_arguments(harbour: Connection) -> None:
    recall = Recall(harbour, embedder=None, reranker=None)

    keyed = recall.recall("b", "Who is Bo?", keys=["depot.9"])
    expanded = recall.recall("b", "", terms=("dinghy",))

    assert [hit.text for hit in (*keyed, *expanded)] == [FACTS[0]["text"], FACTS[2]["text"]]


@pytest.mark.parametrize("option", ["keys", "terms"])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("a", 'must be an array of texts, not "a"'),
        ([1], "must be texts of 1 to 1000 characters, not 1"),
        ([" "], 'must be texts of 1 to 1000 characters, not " "'),
        (["x" * 1001], 'must be texts of 1 to 1000 characters, not "' + "x" * 79),
        (["x"] * 101, "holds 101 texts, not 100 at most"),
    ],
)
def test_what_is_no_list_of_texts_is_refused(
    harbour: Connection, option: str, given: Any, message: str
) -> None:
    with refused(harbour, "22023", f"{option} {message}", "."):
        call(harbour, "hybrid_recall", bank="b", query="q", options={option: given})
