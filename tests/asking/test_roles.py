"""Roles: questions are embedded otherwise than passages, and a bank keeps to its prompts."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pgrecall import (
    FunctionEmbedder,
    InvalidArgument,
    MiniLMEmbedder,
    ModelMismatch,
    PromptedEmbedder,
    Recall,
    RoleEmbedder,
    SentenceTransformerEmbedder,
)
from pgrecall.embedders import DEFAULT_EMBEDDER, embed_as, read_prompts
from pgrecall.evaluation.measure import CachedEmbedder
from sqlcalls import Connection, rows
from toys import save_embedder, toy_embed

PROMPTS = {"query": "query: ", "document": "passage: "}
NAME = 'toy ["query: ", "passage: "]'
needs_sentence_transformers = pytest.mark.skipif(
    importlib.util.find_spec("sentence_transformers") is None,
    reason="no sentence-transformers: pip install 'pgrecall[sentence-transformers]'",
)


@pytest.fixture
def seen() -> list[str]:
    return []


@pytest.fixture
def prompted(seen: list[str]) -> PromptedEmbedder:
    def embed(texts: Sequence[str]) -> list[list[float]]:
        seen.extend(texts)
        return toy_embed(texts)

    return PromptedEmbedder(embed, PROMPTS, model="toy")


@pytest.fixture
def recall(connection: Connection, prompted: PromptedEmbedder) -> Recall:
    recall = Recall(connection, embedder=prompted)
    recall.create_bank("b")
    return recall


def test_an_embedder_says_how_many_words_it_knows(connection: Connection) -> None:
    class Knowing(FunctionEmbedder):
        asked: ClassVar[list[str]] = []

        def known_words(self, text: str) -> float:
            self.asked.append(text)
            return 0.5

    for embedder in (Knowing(toy_embed, "toy"), CachedEmbedder(Knowing(toy_embed, "toy"))):
        recall = Recall(connection, embedder=embedder)
        recall.create_bank("b", exist_ok=True)
        recall.retain("b", ["Ana leads Atlas"])

        (one,) = [arm for arm in recall.explain("b", "who leads what?") if arm.arm == "semantic"]
        recall.recall_many("b", ["who leads what?", "who else?"])

        assert "knows 50% of the words" in (one.reason or "")
        assert Knowing.asked == ["who leads what?", "who leads what?", "who else?"]
        Knowing.asked.clear()


@pytest.mark.parametrize(
    ("question", "least", "most"),
    [
        ("When did Melanie's brother sell the red bicycle?", 0.9, 1),
        ("WHEN DID MY BROTHER SELL THE RED BICYCLE?", 0.9, 1),
        ("Wer hat gestern das rote Fahrrad verkauft?", 0.1, 0.6),
        ("WER HAT GESTERN DAS ROTE FAHRRAD VERKAUFT?", 0.1, 0.45),
        ("¿Quién vendió ayer la bicicleta roja de la tienda?", 0.1, 0.3),
        ("Qui a vendu hier le vélo rouge de la boutique ?", 0.1, 0.65),
        ("昨天是谁卖掉了那辆红色自行车？", 0, 0.25),
        ("昨天谁用了 GPT、API、SQL、CPU、USB？", 0, 0.25),
        ("AWS, GCP?", 0.5, 1),
    ],
)
def test_the_packaged_embedder_knows_words_of_its_language(
    question: str, least: float, most: float
) -> None:
    assert least <= DEFAULT_EMBEDDER.known_words(question) <= most


def test_facts_are_passages_and_queries_are_questions(recall: Recall, seen: list[str]) -> None:
    recall.retain("b", [{"text": "Ana leads Atlas", "questions": [{"text": "who leads?"}]}])
    recall.recall("b", "who leads what?", hypothetical="Bo leads.")
    recall.recall("b", "who?", hypothetical=lambda query: "Cy.")

    assert seen == [
        *("passage: Ana leads Atlas", "passage: who leads?"),
        *("query: who leads what?", "passage: Bo leads."),
        *("query: who?", "passage: Cy."),
    ]


def test_the_bank_is_pinned_to_the_prompts_by_name(recall: Recall) -> None:
    recall.retain("b", ["Ana leads Atlas"])

    assert recall.banks()[0].embedding_model == NAME


def test_many_queries_are_questions_embedded_in_one_go(recall: Recall, seen: list[str]) -> None:
    recall.retain("b", ["Ana leads Atlas"])
    seen.clear()

    answers = recall.recall_many("b", ["who leads?", "who?"], hypothetical="Ana leads.")

    assert seen == ["query: who leads?", "query: who?", *["passage: Ana leads."] * 2]
    assert {"semantic", "hypothetical"} <= answers[0].hits[0].arms.keys()


def test_a_changed_text_is_a_passage(recall: Recall, seen: list[str]) -> None:
    (row,) = recall.retain("b", ["Ana leads Atlas"])

    recall.update("b", row.memory_id, text="Ana left Atlas")

    assert seen[-1] == "passage: Ana left Atlas"


def test_what_sql_retained_is_embedded_as_a_passage(
    connection: Connection, recall: Recall, seen: list[str]
) -> None:
    connection.execute("select pgrecall.retain('b', '[{\"text\": \"Bo sings\"}]')")

    assert recall.embed_pending("b") == 1
    assert seen == ["passage: Bo sings"]


@pytest.mark.parametrize(
    "other",
    [
        FunctionEmbedder(toy_embed, "toy"),
        PromptedEmbedder(toy_embed, {"query": "Q: ", "document": "passage: "}, model="toy"),
    ],
)
def test_an_embedder_with_other_prompts_is_refused(
    connection: Connection, recall: Recall, other: Any
) -> None:
    recall.retain("b", ["Ana leads Atlas"])
    stranger = Recall(connection, embedder=other)

    calls: list[Callable[[], object]] = [
        lambda: stranger.recall("b", "who?"),
        lambda: stranger.retain("b", ["x"]),
    ]
    for call in calls:
        with pytest.raises(ModelMismatch) as caught, connection.transaction():
            call()
        assert caught.value.message == (
            f'bank "b" is embedded with model "{NAME}", not "{other.model}"'
        )
        assert caught.value.hint is not None
        assert caught.value.hint.startswith("In square brackets are the prompts")
        assert caught.value.hint.endswith(f'with those of "{NAME}".')


def test_a_bank_is_re_embedded_to_have_prompts(
    connection: Connection, recall: Recall, prompted: PromptedEmbedder, seen: list[str]
) -> None:
    old = Recall(connection, embedder=FunctionEmbedder(toy_embed, "toy"))
    old.retain("b", ["Ana leads Atlas"])

    old.reembed_fill("b", prompted)
    old.reembed_finish("b")

    assert seen[-1] == "passage: Ana leads Atlas"
    assert recall.recall("b", "who leads?", arms=["semantic"])[0].text == "Ana leads Atlas"


def test_evaluation_keeps_questions_and_passages_apart(
    prompted: PromptedEmbedder, seen: list[str]
) -> None:
    cached = CachedEmbedder(prompted)

    for _ in range(2):
        embed_as(cached, "query", ["a"])
        embed_as(cached, "document", ["a"])

    assert seen == ["query: a", "passage: a"]


def test_an_object_with_both_methods_has_roles_under_its_own_name() -> None:
    class Towers:
        model = "towers"
        dimensions = 1
        prompts: Mapping[str, str] = {}

        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            return [[1.0] for _ in texts]

        embed_documents = embed

        def embed_query(self, texts: Sequence[str]) -> list[list[float]]:
            return [[2.0] for _ in texts]

    towers = Towers()

    assert isinstance(towers, RoleEmbedder)
    assert [*embed_as(towers, "query", ["a"])] == [[2.0]]
    assert [*embed_as(towers, "document", ["a"])] == [[1.0]]
    assert not isinstance(FunctionEmbedder(toy_embed, "toy"), RoleEmbedder)


@pytest.mark.parametrize(
    ("prompts", "found"),
    [
        ({"query": "q"}, {"query": "q", "document": ""}),
        ({"query": "q", "passage": "p"}, {"query": "q", "document": "p"}),
        ({"corpus": "c", "document": "d"}, {"query": "", "document": "d"}),
        ({"query": "", "document": ""}, {}),
        ({}, {}),
    ],
)
def test_prompts_have_the_names_of_sentence_transformers(
    prompts: Mapping[str, str], found: Mapping[str, str]
) -> None:
    assert read_prompts(prompts) == found


@pytest.mark.parametrize("prompts", [{"question": "Q: "}, {"query": 5}])
def test_a_prompt_for_no_role_is_refused(prompts: Any) -> None:
    with pytest.raises(InvalidArgument, match="is not a role") as caught:
        PromptedEmbedder(toy_embed, prompts)

    assert caught.value.hint == 'Pass {"query": "query: ", "document": "passage: "}, for example.'


def test_long_prompts_are_named_by_a_digest() -> None:
    names = {PromptedEmbedder(toy_embed, {"query": word * 200}, model="toy").model for word in "ab"}

    assert len(names) == 2
    assert all(len(name) == len("toy []") + 16 for name in names)


def model(path: Path, config: object) -> str:
    """Save a toy model as sentence-transformers does, with a configuration."""
    from sentence_transformers import SentenceTransformer

    plain = save_embedder(path.with_name(f"{path.name} as it is"))
    SentenceTransformer(str(plain)).save_pretrained(str(path))
    (path / "config_sentence_transformers.json").write_text(json.dumps(config))
    return str(path)


@needs_sentence_transformers
def test_the_prompts_of_a_model_are_those_that_sentence_transformers_writes(
    tmp_path: Path,
) -> None:
    path = model(tmp_path / "toy", {"prompts": {"query": "who ", "document": "the "}})
    embedder = SentenceTransformerEmbedder(path)
    theirs = embedder.load()

    for ours, wanted in (
        (embedder.embed_query(["atlas"]), theirs.encode_query(["atlas"])),
        (embedder.embed_documents(["atlas"]), theirs.encode_document(["atlas"])),
        (embedder.embed(["atlas"]), theirs.encode_document(["atlas"])),
    ):
        (vector,) = ours
        expected = wanted[0] / sum(x * x for x in wanted[0]) ** 0.5
        assert list(vector) == pytest.approx(list(expected), abs=1e-5)
    assert embedder.model == 'toy ["who ", "the "]'


@needs_sentence_transformers
@pytest.mark.parametrize(
    ("config", "given", "name"),
    [
        ({}, None, "toy"),
        ({"prompts": {}}, None, "toy"),
        ({"prompts": {"query": "", "document": ""}}, None, "toy"),
        # One for all texts was always added by the model itself.
        ({"prompts": {"all": "the "}, "default_prompt_name": "all"}, None, "toy"),
        (
            {"prompts": {"query": "who ", "all": "the "}, "default_prompt_name": "all"},
            None,
            'toy ["who ", ""]',
        ),
        ({"prompts": {"document": "", "passage": "the "}}, None, 'toy ["", "the "]'),
        ({"prompts": {"query": "who ", "clustering": "tea "}}, None, 'toy ["who ", ""]'),
        ({"prompts": {"query": "who "}}, {}, "toy"),
        ({"prompts": {"query": "who "}}, {"query": "tea "}, 'toy ["tea ", ""]'),
    ],
)
def test_the_configuration_of_a_model_says_its_prompts(
    tmp_path: Path, config: object, given: Mapping[str, str] | None, name: str
) -> None:
    path = model(tmp_path / "toy", config)

    assert SentenceTransformerEmbedder(path, prompts=given).model == name


def test_a_configuration_that_is_none_says_no_prompts(tmp_path: Path) -> None:
    (tmp_path / "config_sentence_transformers.json").write_text("{")

    assert SentenceTransformerEmbedder(tmp_path).prompts == {}
    assert SentenceTransformerEmbedder("no such/model/at all").prompts == {}


@needs_sentence_transformers
def test_a_default_prompt_is_not_added_to_that_of_a_role(tmp_path: Path) -> None:
    config = {"prompts": {"all": "tea ", "query": "who "}, "default_prompt_name": "all"}
    embedder = SentenceTransformerEmbedder(model(tmp_path / "toy", config))
    plain = SentenceTransformerEmbedder(save_embedder(tmp_path / "plain"))

    (ours,), (wanted,) = embedder.embed_query(["atlas"]), plain.embed(["who atlas"])

    assert list(ours) == pytest.approx(list(wanted), abs=1e-5)


def test_a_bank_filled_with_the_default_of_before_goes_on_with_it(
    connection: Connection,
) -> None:
    before, now = Recall(connection, embedder=MiniLMEmbedder()), Recall(connection)
    for recall, bank in ((before, "old"), (now, "new")):
        recall.create_bank(bank)
        recall.retain(bank, ["Maya leads Atlas."])

    now.retain("old", ["Ben sails a boat."])

    assert [bank.embedding_model for bank in now.banks()] == [
        "pgrecall-small-2",
        "all-MiniLM-L6-v2",
    ]
    (hit,) = now.recall("old", "Ben sails a boat.", arms=["semantic"], top_k=1)
    assert hit.arms["semantic"].score == pytest.approx(1, abs=1e-3)
    scales = "select low_cosine, high_cosine from pgrecall.bank order by bank_id"
    assert rows(connection, scales) == [(0.15, 0.56), (None, None)]
    now.reembed_fill("old", DEFAULT_EMBEDDER)
    now.reembed_finish("old")
    assert now.recall("old", "Who has a boat?", arms=["semantic"])[0].text == "Ben sails a boat."
    assert rows(connection, scales) == [(0.15, 0.56)] * 2


@needs_sentence_transformers
def test_a_bank_filled_without_prompts_goes_on_without(
    connection: Connection, tmp_path: Path
) -> None:
    path = model(tmp_path / "toy", {"prompts": {"query": "who ", "document": "the "}})
    before = Recall(connection, embedder=SentenceTransformerEmbedder(path, prompts={}))
    before.create_bank("old")
    before.retain("old", ["maya leads atlas"])
    now = Recall(connection, embedder=SentenceTransformerEmbedder(path))

    now.retain("old", ["ben leads borealis"])
    now.create_bank("new")
    now.retain("new", ["maya leads atlas"])

    assert [bank.embedding_model for bank in now.banks()] == ['toy ["who ", "the "]', "toy"]
    (hit,) = now.recall("old", "ben leads borealis", arms=["semantic"], top_k=1)
    assert hit.arms["semantic"].score == pytest.approx(1, abs=1e-3)
    assert now.recall_many("old", ["maya"])[0].hits
    assert now.reembed_fill("old", SentenceTransformerEmbedder(path)) == 2
