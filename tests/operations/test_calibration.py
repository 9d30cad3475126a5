"""Calibration: similarities, floors and links mean the same with any embedding model."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from pgrecall import FunctionEmbedder, InvalidArgument, Recall, calibrate
from servers import kept_fixture
from sqlcalls import Connection, call, column, rows, value

DIMENSIONS = 16
COMMON = 0.85
"""Of every vector of the model "flat": so that its cosines lie between .7 and 1."""
MEAN = [0.0] * DIMENSIONS + [COMMON]
FLAT = {"model": "flat", "mean": MEAN, "low_cosine": 0.2, "high_cosine": 0.7}
HALF = (1 - COMMON**2) ** 0.5


def unit(vector: Sequence[float]) -> list[float]:
    length = math.sqrt(sum(x * x for x in vector))
    return [x / length for x in vector]


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(unit(a), unit(b), strict=True))


def rest(n: int) -> list[float]:
    """Return what tells a text from others: each third is like the one before."""
    like = random.Random(n - n % 3)
    own = random.Random(n)
    return unit([like.gauss(0, 1) + 0.6 * own.gauss(0, 1) for _ in range(DIMENSIONS)])


def flat(vector: Sequence[float]) -> list[float]:
    """Add the large component that all texts have in common."""
    return [*(HALF * x for x in vector), COMMON]


TEXTS = {f"fact {n}": rest(n) for n in range(24)}
QUESTIONS = [unit([x + 0.5 * y for x, y in zip(rest(n), rest(n + 7), strict=True)]) for n in (1, 9)]


def fill(connection: Connection, bank: str, model: str) -> None:
    facts = [
        {"text": text, "embedding": vector if model == "rest" else flat(vector)}
        for text, vector in TEXTS.items()
    ]
    connection.execute(
        "select count(*) from pgrecall.retain(%s, %s, model => %s)",
        [bank, json.dumps(facts), model],
    )


def calibrated(connection: Connection, bank: str, calibration: object) -> int:
    made: int = value(
        connection, "select pgrecall.calibrate_bank(%s, %s)", bank, json.dumps(calibration)
    )
    return made


@kept_fixture
def banks(connection: Connection) -> None:
    """Bank rest has the vectors themselves, flat has the common part, right is calibrated."""
    for bank in ("rest", "flat", "right"):
        connection.execute("select pgrecall.create_bank(%s)", [bank])
    calibrated(connection, "right", FLAT)
    for bank in ("rest", "flat", "right"):
        fill(connection, bank, "rest" if bank == "rest" else "flat")


def answers(
    connection: Connection, bank: str, *, is_flat: bool | None = None, **options: Any
) -> list[list[tuple[Any, ...]]]:
    """Ask both questions; the embedding is that of the bank's model."""
    is_flat = bank != "rest" if is_flat is None else is_flat
    found = []
    for question in QUESTIONS:
        hits = call(
            connection,
            "hybrid_recall",
            bank=bank,
            query="which one?",
            embedding=flat(question) if is_flat else question,
            top_k=100,
            options=options,
        )
        found.append([(hit.text, round(hit.score, 3), round(hit.relevance, 2)) for hit in hits])
    return found


def alike(connection: Connection, bank: str) -> list[tuple[Any, ...]]:
    """Return the pairs of texts that are similar."""
    return rows(
        connection,
        "select m.text, n.text, round(n.weight::numeric, 2) from pgrecall.memory m"
        " cross join lateral pgrecall.neighbours(m.bank_id, m.memory_id) as n"
        " where m.bank_id = %s and n.via = 'semantic' order by 1, 2",
        bank,
    )


def test_without_calibration_nothing_is_cut_and_everything_is_alike(banks: Connection) -> None:
    assert all(len(found) == len(TEXTS) for found in answers(banks, "flat"))
    assert len(alike(banks, "flat")) == 5 * len(TEXTS)
    assert all(len(found) < len(TEXTS) for found in answers(banks, "rest"))
    assert 0 < len(alike(banks, "rest")) < 3 * len(TEXTS)


def test_a_calibrated_bank_answers_as_if_there_were_no_common_part(banks: Connection) -> None:
    assert answers(banks, "right") == answers(banks, "rest") != answers(banks, "flat")
    assert alike(banks, "right") == alike(banks, "rest")


@pytest.mark.parametrize(
    "options",
    [
        {"similarity_floor": 0.5},
        {"min_relevance": 0.3},
        {"diversity": 0.5},
        {"prefer": "latest"},
        {"arms": ["semantic", "graph"]},
    ],
)
def test_options_mean_the_same(banks: Connection, options: dict[str, Any]) -> None:
    assert answers(banks, "right", **options) == answers(banks, "rest", **options)


def test_other_arms_read_similarities_too(banks: Connection) -> None:
    during = "[2026-01-01,2026-02-01)"
    for bank in ("rest", "right", "flat"):
        banks.execute(
            "update pgrecall.memory set occurred = '[2026-01-05,2026-01-06)' where bank_id = %s",
            [bank],
        )

    def scores(bank: str) -> list[float]:
        question = QUESTIONS[0] if bank == "rest" else flat(QUESTIONS[0])
        hits = rows(
            banks,
            "select score from pgrecall.temporal_arm(%s, %s::tstzrange, embedding => %s::text)",
            bank, during, str(question),
        )  # fmt: skip
        return [round(score, 2) for (score,) in hits]

    assert scores("right") == scores("rest") != scores("flat")


def test_near_copies_are_as_near(banks: Connection) -> None:
    def copies(bank: str) -> list[tuple[Any, ...]]:
        ids = column(
            banks, "select memory_id from pgrecall.memory where bank_id = %s order by 1", bank
        )
        found = [
            (n, round(hit.similarity, 2))
            for n, memory_id in enumerate(ids)
            for hit in call(
                banks, "near_copies", bank=bank, memory_id=memory_id, min_similarity=0.0
            )
        ]
        return sorted(found)

    banks.execute("update pgrecall.memory set source_id = 's', text = 'fact'")
    entity = '[{"text": "x", "entities": ["Ana"]}]'
    for bank in ("rest", "right", "flat"):
        banks.execute("select pgrecall.retain(%s, %s)", [bank, entity])
        banks.execute(
            "insert into pgrecall.mention (bank_id, entity_id, fact_type, memory_id)"
            " select m.bank_id, e.entity_id, m.fact_type, m.memory_id from pgrecall.memory m"
            " join pgrecall.entity e using (bank_id) where m.text = 'fact' and m.bank_id = %s",
            [bank],
        )
    assert copies("right") == copies("rest") != copies("flat")


@pytest.mark.parametrize("is_again", [False, True])
def test_a_bank_with_facts_is_calibrated_in_place(banks: Connection, is_again: bool) -> None:
    if is_again:
        calibrated(banks, "flat", {"model": "flat", "mean": [0.1] * 17, "low_cosine": 0.1,
                                   "high_cosine": 0.2})  # fmt: skip

    assert calibrated(banks, "flat", FLAT) == len(TEXTS)
    assert answers(banks, "flat") == answers(banks, "rest")
    assert alike(banks, "flat") == alike(banks, "rest")


def test_a_calibration_is_taken_back(banks: Connection) -> None:
    before = answers(banks, "flat"), alike(banks, "flat")

    calibrated(banks, "right", None)

    assert (answers(banks, "right"), alike(banks, "right")) == before
    assert rows(
        banks,
        "select calibrations ? embedding_model, embedding_mean, low_cosine from pgrecall.bank"
        " where bank_id = 'right'",
    ) == [(False, None, None)]


def test_a_scale_alone_subtracts_nothing(banks: Connection) -> None:
    low, high = (HALF**2 * x + COMMON**2 for x in (0.2, 0.7))

    calibrated(banks, "flat", {"low_cosine": low, "high_cosine": high})

    assert answers(banks, "flat") == answers(banks, "rest")
    assert alike(banks, "flat") == alike(banks, "rest")


def test_a_mean_alone_leaves_cosines_as_they_are(banks: Connection) -> None:
    calibrated(banks, "flat", {"mean": MEAN})

    assert answers(banks, "flat") == answers(banks, "rest")


def test_other_arms_weigh_what_they_do_beside_a_model(banks: Connection) -> None:
    def weight() -> float:
        found: float = value(
            banks, "select (pgrecall.bank_options('flat') #>> '{weights,lexical}')::float8"
        )
        return found

    def first(is_embedded: bool = True, **options: Any) -> int:
        hits = call(
            banks,
            "hybrid_recall",
            bank="flat",
            query="fact 8",
            embedding=json.dumps(flat(TEXTS["fact 20"])) if is_embedded else None,
            options=json.dumps({"arms": ["semantic", "lexical"], "doubt": 0, **options}),
        )
        return int(hits[0].text.split()[1])

    assert (weight(), first(), first(weights={"lexical": 0.1})) == (1, 8, 20)

    calibrated(banks, "flat", {**FLAT, "weights": {"lexical": 0.1}})
    assert (weight(), first(), first(weights={"lexical": 4})) == (0.1, 20, 8)

    calibrated(banks, "flat", {**FLAT, "weights": {"lexical": 0}})
    assert first(is_embedded=False) == 8

    banks.execute("""select pgrecall.configure_bank('flat', '{"weights": {"lexical": 4}}')""")
    assert (weight(), first()) == (4, 8)


def test_weights_alone_leave_similarities_as_they_are(banks: Connection) -> None:
    calibrated(banks, "rest", {"model": "rest", "weights": {"semantic": 3}})

    weighed, plain = (
        [[(text, share) for text, _, share in found] for found in answers(banks, bank)]
        for bank in ("rest", "right")
    )
    assert weighed == plain
    assert alike(banks, "rest") == alike(banks, "right")


def test_a_hypothetical_answer_is_centred_too(banks: Connection) -> None:
    def scores(bank: str) -> list[float]:
        question = QUESTIONS[0] if bank == "rest" else flat(QUESTIONS[0])
        hits = call(
            banks, "hypothetical_arm", bank=bank, embedding=json.dumps(question), model=None
        )
        whole = call(
            banks,
            "arm_hits",
            bank=bank,
            query="",
            options={"hypothetical": json.dumps(question)},
        )
        assert [hit.score for hit in whole if hit.arm == "hypothetical"] == [
            hit.score for hit in hits
        ]
        return [round(hit.score, 3) for hit in hits]

    assert scores("right") == scores("rest")


def test_known_facts_keep_their_embeddings(banks: Connection) -> None:
    facts = json.dumps([{"text": text} for text in TEXTS])
    query = "select embedding::text from pgrecall.stored_embeddings('right', %s)"
    stored = [json.loads(one) for one in column(banks, query, facts)]

    for vector, rest_of_it in zip(stored, TEXTS.values(), strict=True):
        assert cosine(vector, flat(rest_of_it)) == pytest.approx(1, abs=1e-5)


def test_the_next_model_is_calibrated_before_the_switch(banks: Connection) -> None:
    call(banks, "reembed_start", bank="rest", model="flat", dimensions=17)
    assert calibrated(banks, "rest", FLAT) == 0
    before = answers(banks, "rest")
    for row in call(banks, "reembed_pending", bank="rest"):
        item = [{"memory_id": row.memory_id, "embedding": flat(TEXTS[row.text])}]
        banks.execute("select pgrecall.reembed_store('rest', 'flat', %s)", [json.dumps(item)])
    both = {"rest": rest(99), "flat": flat(rest(99))}
    banks.execute(
        "select pgrecall.retain('rest', %s)", [json.dumps([{"text": "x", "embeddings": both}])]
    )
    banks.execute("select pgrecall.retain('right', %s, model => 'flat')",
                  [json.dumps([{"text": "x", "embedding": both["flat"]}])])  # fmt: skip
    assert before == [[hit for hit in found if hit[0] != "x"] for found in answers(banks, "rest")]

    call(banks, "reembed_finish", bank="rest")

    found = answers(banks, "rest", is_flat=True, arms=["semantic"])
    assert found == answers(banks, "right", arms=["semantic"])
    assert calibrated(banks, "rest", FLAT) == 0, "it has the same mean"


def test_a_copy_has_the_calibration(banks: Connection) -> None:
    query = "select calibrations, embedding_mean, low_cosine from pgrecall.bank where bank_id = %s"
    call(banks, "clone_bank", bank="right", new_bank="clone")
    lines = column(banks, "select pgrecall.exported_rows('right')")
    banks.execute("select pgrecall.import_rows('copy', %s)", [json.dumps(lines)])

    for copy in ("clone", "copy"):
        assert rows(banks, query, copy) == rows(banks, query, "right")
        assert answers(banks, copy) == answers(banks, "rest")


def test_a_vector_that_is_the_mean_cannot_be_compared(connection: Connection) -> None:
    connection.execute("select pgrecall.create_bank('b')")
    calibrated(connection, "b", {"model": "m", "mean": [0.5, 0.5]})
    connection.execute('update pgrecall.bank set calibrations = \'{"m": {"mean": "[0.6,0.8]"}}\'')

    with pytest.raises(psycopg.Error) as caught, connection.transaction():
        connection.execute(
            'select pgrecall.retain(\'b\', \'[{"text": "x", "embedding": [3, 4]}]\')'
        )

    assert caught.value.sqlstate == "RC006"
    assert caught.value.diag.message_primary == (
        "facts[0].embedding: unusable embedding: it is the mean of its model"
    )


@pytest.mark.parametrize(
    ("given", "similarity"),
    [(-1.0, -1), (0.3, 0.2), (0.4, 0.45), (0.5, 0.7), (0.75, 0.85), (1.0, 1), (0.0, -0.55)],
)
def test_a_similarity_is_linear_between_the_two_cosines(
    connection: Connection, given: float, similarity: float
) -> None:
    query = "select pgrecall_internal._similarity(%s, 0.3, 0.5)"
    low = "select pgrecall_internal._similarity(%s, null, null)"

    assert value(connection, query, given) == pytest.approx(similarity, abs=1e-9)
    assert value(connection, low, given) == given


# Measuring it

SAMPLE = [f"text {n}" for n in range(400)]


def embed_rest(texts: Sequence[str]) -> list[list[float]]:
    return [rest(int(text.split()[1])) for text in texts]


def embed_flat(texts: Sequence[str]) -> list[list[float]]:
    return [flat(vector) for vector in embed_rest(texts)]


REST, FLAT_MODEL = FunctionEmbedder(embed_rest, "rest"), FunctionEmbedder(embed_flat, "flat")


@pytest.mark.parametrize("questions", [(), SAMPLE[50:200]])
def test_the_constants_of_a_model_are_measured(questions: Sequence[str]) -> None:
    found = calibrate(FLAT_MODEL, SAMPLE, questions=questions, reference=REST)

    assert found.model == "flat"
    assert cosine(found.mean, MEAN) == pytest.approx(1, abs=0.01)
    assert found.low_cosine == pytest.approx(0.2, abs=0.05)
    assert found.high_cosine == pytest.approx(0.7, abs=0.05)


def test_a_scale_is_measured_too() -> None:
    """Half of a vector is the same for all texts, a quarter of what is left is noise."""

    def noisy(texts: Sequence[str]) -> list[list[float]]:
        return [
            [*flat(rest(n)), *(0.25 * x for x in rest(1000 + n)[:4])]
            for n in (int(text.split()[1]) for text in texts)
        ]

    found = calibrate(FunctionEmbedder(noisy, "noisy"), SAMPLE, reference=REST)

    assert found.low_cosine < 0.2
    assert found.high_cosine < 0.68


@pytest.mark.parametrize(
    ("texts", "questions", "message"),
    [
        (SAMPLE[:99], (), "a sample of 99 different texts is too small"),
        ([*SAMPLE[:99], *SAMPLE[:99], " "], (), "a sample of 99 different texts is too small"),
        (SAMPLE, SAMPLE[:29], "a sample of 29 different questions is too small"),
    ],
)
def test_a_small_sample_is_refused(
    texts: Sequence[str], questions: Sequence[str], message: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        calibrate(FLAT_MODEL, texts, questions=questions, reference=REST)

    assert caught.value.message == message
    assert caught.value.hint is not None


def test_a_sample_of_nothing_alike_is_refused() -> None:
    apart = FunctionEmbedder(lambda texts: [[1.0, *rest(len(t))] for t in texts], "apart")

    with pytest.raises(InvalidArgument, match="the cosines of the sample"):
        calibrate(apart, SAMPLE, reference=REST)


def test_the_driver_gives_a_bank_what_it_measured(connection: Connection) -> None:
    recall = Recall(connection, embedder=FLAT_MODEL)
    recall.create_bank("b")
    calibration = calibrate(FLAT_MODEL, SAMPLE, reference=REST)
    recall.retain("b", SAMPLE[:6])

    assert recall.calibrate_bank("b", calibration) == 6
    assert recall.banks()[0].embedding_model == "flat"
    (hit, *_) = recall.recall("b", "text 4", arms=["semantic"])
    assert hit.text == "text 4"
    assert hit.arms["semantic"].score == pytest.approx(1, abs=1e-3)
    assert recall.calibrate_bank("b", None) == 6


def test_a_fact_retained_again_is_not_centred_again(connection: Connection) -> None:
    recall = Recall(connection, embedder=FLAT_MODEL)
    recall.create_bank("b")
    recall.calibrate_bank("b", FLAT)
    recall.retain("b", SAMPLE[:3])
    recall.forget("b", [recall.retain("b", [SAMPLE[0]])[0].memory_id])

    recall.retain("b", SAMPLE[:3])

    for n in range(3):
        (hit, *_) = recall.recall("b", f"text {n}", arms=["semantic"])
        assert hit.arms["semantic"].score == pytest.approx(1, abs=1e-3)
