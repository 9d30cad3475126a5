"""What a question names: embedded without it, counted with it, read by the bank's settings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import psycopg
import pytest

from pgrecall import InvalidArgument, Recall
from sqlcalls import Connection, call, create, retain
from toys import toy_embed

ASKED = datetime(2026, 6, 30, tzinfo=timezone.utc)


class Listener:
    """An embedder that notes down what it is asked to embed."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def __call__(self, texts: Sequence[str]) -> Sequence[Any]:
        self.heard += texts
        return toy_embed(texts)


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def recall(connection: Connection, listener: Listener) -> Recall:
    recall = Recall(connection, embedder=listener, model="toy")
    recall.create_bank("b")
    recall.retain("b", [{"text": "Ana moved to Oslo", "entities": ["Ana", "Oslo"]}, "Bo moved"])
    listener.heard.clear()
    return recall


def test_a_question_is_embedded_without_the_names_in_it(recall: Recall, listener: Listener) -> None:
    recall.recall("b", "When did Ana move?")

    assert listener.heard == ["When did move?"]


@pytest.fixture
def many(recall: Recall, listener: Listener) -> Recall:
    """100 more facts, of which four mention Kai, three Lea, and twenty Mia."""
    recall.retain("b", [{"text": f"note {n}", "entities": names(n)} for n in range(100)])
    listener.heard.clear()
    return recall


def names(n: int) -> list[str]:
    return [*["Kai"] * (n < 4), *["Lea"] * (n < 3), *["Mia"] * (n < 20)]


@pytest.mark.parametrize(
    ("query", "embedded", "about"),
    [
        # Embeddings need rare names to find anything, but not to compare what is about them.
        ("When did Kai move?", "When did Kai move?", "When did move?"),
        ("When did Lea move?", "When did Lea move?", None),
        ("When did Mia move?", "When did move?", None),
        ("When did Mia and Kai move?", "When did and Kai move?", "When did and move?"),
        ("Who is Kai?", "Who is Kai?", None),
        ("Who is Kai and Mia?", "Who is Kai and?", None),
        ("When did it move?", "When did it move?", None),
    ],
)
@pytest.mark.parametrize("at_once", [False, True])
def test_what_is_about_whom_a_question_names_is_compared_without_names(
    connection: Connection,
    many: Recall,
    listener: Listener,
    query: str,
    embedded: str,
    about: str | None,
    at_once: bool,
) -> None:
    (prepared,) = call(connection, "prepare_recall", bank="b", query=query)

    if at_once:
        many.recall_many("b", [query])
    else:
        many.recall("b", query)

    assert (prepared.embedded_text, prepared.about_text) == (embedded, about)
    assert sorted(listener.heard) == sorted(filter(None, [embedded, about]))


def test_another_embedding_may_compare_what_is_about_whom_a_question_names(
    many: Recall, listener: Listener
) -> None:
    many.recall("b", "When did Kai move?", about_embedding="Kai moved.")
    many.recall("b", "When did Kai move?", embedding=list(toy_embed(["moved"])[0]))

    assert listener.heard == ["Kai moved.", "When did Kai move?"]


@pytest.mark.parametrize("about", ["Kai moved.", lambda _: "Kai moved."])
def test_questions_at_once_may_be_compared_by_another_embedding(
    many: Recall, listener: Listener, about: Any
) -> None:
    # The blank one has nothing else to embed.
    answers = many.recall_many("b", ["When did Kai move?", ""], about_embedding=about, keys=["k"])

    assert [answer.degradations for answer in answers] == [(), ()]
    assert {*listener.heard} == {"When did Kai move?", "Kai moved."}


def test_a_bank_can_have_its_questions_embedded_with_the_names(
    many: Recall, listener: Listener
) -> None:
    many.configure_bank("b", {"is_name_embedded": True})

    for name in ("Ana", "Kai", "Mia"):
        many.recall("b", f"When did {name} move?")

    assert listener.heard == [f"When did {name} move?" for name in ("Ana", "Kai", "Mia")]


def test_a_recall_without_question_asks_the_bank_but_once(
    recall: Recall, listener: Listener
) -> None:
    hits = recall.recall("b", "", embedding=list(toy_embed(["moved"])[0]))

    assert hits
    assert listener.heard == []


@pytest.mark.parametrize("boost", [0, 3, 9])
def test_what_mentions_who_is_asked_about_counts_more(connection: Connection, boost: float) -> None:
    create(connection, settings={"named_boost": boost})
    ana, bo = retain(connection, [{"text": "she moved", "entities": ["Ana"]}, {"text": "he moved"}])

    rows = call(connection, "hybrid_recall", bank="b", query="has Ana moved", arms=["lexical"])

    contributions = {row.memory_id: row.arms["lexical"]["contribution"] for row in rows}
    alone = {row.memory_id: row for row in call(connection, "lexical_arm", bank="b", query="moved")}
    plain = {i: 1 / (60 + alone[i].rank) for i in (ana, bo)}
    assert contributions[ana] == pytest.approx(plain[ana] * (1 + boost / 6))
    assert contributions[bo] == pytest.approx(plain[bo])
    assert [row.score for row in rows] == [row.arms["lexical"]["contribution"] for row in rows]


def test_what_a_path_leads_to_is_about_whom_its_origin_names(connection: Connection) -> None:
    create(connection)
    met, sails, owns, next_day = retain(
        connection,
        [
            {"text": "the talk", "entities": ["Ana", "Bo"], "occurred": "2026-01-05T12:00Z"},
            {"text": "a cutter", "entities": ["Bo"]},
            {"text": "a yard", "relations": [{"from": "Bo", "kind": "owns", "to": "the yard"}]},
            {"text": "some rain", "occurred": "2026-01-05T13:00Z"},
        ],
    )

    hits = call(connection, "arm_hits", bank="b", query="What about Ana's talk?")

    named = {row.memory_id: row.named for row in hits if row.arm == "graph"}
    assert named[met] == pytest.approx(1 / 3)  # one of four mentions her
    assert named[sails] == named[owns] == named[met]
    assert named[next_day] is None  # said an hour later, perhaps of something else


def test_what_relations_of_who_is_named_lead_to_is_about_them(connection: Connection) -> None:
    create(connection)
    owns, moors = retain(
        connection,
        [
            {"text": "a deed", "relations": [{"from": "Bo", "kind": "owns", "to": "the yard"}]},
            {"text": "a buoy", "relations": [{"from": "the yard", "kind": "has", "to": "a gig"}]},
        ],
    )

    hits = call(connection, "arm_hits", bank="b", query="What of Bo?")

    named = {row.memory_id: row.named for row in hits if row.arm == "graph"}
    assert named[moors] == named[owns] is not None


def test_a_name_that_two_go_by_counts_by_how_sure_it_is(connection: Connection) -> None:
    create(connection, settings={"named_boost": 6})
    first, second = retain(
        connection,
        [{"text": "one moved", "entities": ["Ana"]}, {"text": "two moved", "entities": ["Ana"]}],
    )
    other = connection.execute(
        "insert into pgrecall.entity (bank_id, name) values ('b', 'Ana Silva') returning entity_id"
    ).fetchone()
    assert other is not None
    connection.execute(
        "insert into pgrecall.entity_alias (bank_id, alias, entity_id) values ('b', 'ana', %s)",
        other,
    )
    connection.execute(
        "update pgrecall.mention set entity_id = %s where memory_id = %s", (*other, second)
    )

    rows = call(connection, "hybrid_recall", bank="b", query="Ana moved", arms=["lexical"])

    assert {row.memory_id for row in rows} == {first, second}
    for row in rows:
        rank = row.arms["lexical"]["rank"]
        assert row.score == pytest.approx(1 / (60 + rank) * (1 + 0.5))


def test_preparing_says_what_the_bank_knows(connection: Connection) -> None:
    settings = {
        "time_settings": {"recent_days": 7, "language": "de"},
        "former_words": ["anno dazumal", "weiland"],
        "log_share": 0.5,
        "prefer": "latest",
    }
    create(connection, settings=settings)
    ended = ASKED - timedelta(days=2)
    call(connection, "log_session", bank="b", session="s", started_at=ended, ended_at=ended)
    retain(connection, [{"text": "Ana kam.", "embedding": [1, 0]}], model="old")
    call(connection, "reembed_start", bank="b", model="new", dimensions=2)

    (row,) = call(connection, "prepare_recall", bank="b", query="wer kam?", before=ASKED)

    words: list[list[str]] = [[], ["anno dazumal", "weiland"]]
    times = {"recent_days": 7, "language": "de"}
    assert row == ("wer kam?", times, ended, *words, 0.5, "old", "new", "latest", None, None)


@pytest.mark.parametrize(
    ("config", "settings", "read"),
    [
        ("german", {}, {"language": "de"}),
        ("spanish", {"few": 4}, {"language": "es", "few": 4}),
        ("french_plain", {}, {"language": "fr"}),
        ("german", {"language": "nl"}, {"language": "nl"}),
        ("english", {"few": 4}, {"few": 4}),
        ("simple", {}, {}),
        ("yiddish", {}, {}),
        ("finnish", {}, {"language": "fi"}),
        ("russian", {"language": "yue"}, {"language": "yue"}),
    ],
)
def test_times_are_read_in_the_language_that_the_words_of_the_bank_are_stemmed_in(
    connection: Connection, config: str, settings: dict[str, Any], read: dict[str, Any]
) -> None:
    connection.execute("create text search configuration public.french_plain (copy = french)")
    schema = "public" if config == "french_plain" else "pg_catalog"
    create(
        connection,
        text_search_config=f"{schema}.{config}",
        settings={"time_settings": settings},
    )

    (row,) = call(connection, "prepare_recall", bank="b", query="wer kam?", before=ASKED)

    assert row.time_settings == read


def test_times_are_read_as_the_bank_says(recall: Recall) -> None:
    recall.configure_bank("b", {"time_settings": {"recent_days": 7, "few": 5}})

    recent = recall.recall_report("b", "what happened recently?", reference_time=ASKED)
    few = recall.recall_report("b", "what happened a few months ago?", reference_time=ASKED)

    assert recent.temporal is not None
    assert recent.temporal.start == ASKED - timedelta(days=7)
    assert few.temporal is not None
    assert few.temporal.start == ASKED - timedelta(days=150)


def test_the_language_of_a_call_goes_before_that_of_the_bank(recall: Recall) -> None:
    recall.configure_bank("b", {"time_settings": {"language": "de"}})

    german = recall.recall_report("b", "Was war am 5. März 2026?", reference_time=ASKED)
    english = recall.recall_report(
        "b", "What was on March 5, 2026?", language="en", reference_time=ASKED
    )

    assert german.facts == ("5. März 2026 = 2026-03-05",)
    assert english.facts == ("March 5, 2026 = 2026-03-05",)


def test_what_a_bank_in_another_language_is_asked_in_english_is_read(recall: Recall) -> None:
    recall.configure_bank("b", {"time_settings": {"language": "de"}})

    asked = recall.recall_report("b", "What was on March 5, 2026?", reference_time=ASKED)
    only_german = recall.recall_report(
        "b", "What was on March 5, 2026?", language="de", reference_time=ASKED
    )

    assert asked.facts == ("March 5, 2026 = 2026-03-05",)
    assert only_german.facts == ()


@pytest.mark.parametrize(
    ("query", "facts"),
    [
        ("Что было 5 марта 2026?", ("5 марта 2026 = 2026-03-05",)),
        ("Was war am 5. März 2026?", ("5. März 2026 = 2026-03-05",)),
        ("Что было в мае?", ()),
    ],
)
def test_a_time_is_read_in_the_language_of_its_words(
    recall: Recall, query: str, facts: tuple[str, ...]
) -> None:
    report = recall.recall_report("b", query, reference_time=ASKED)

    assert report.facts == facts
    assert recall.recall_report("b", query, language="en", reference_time=ASKED).facts == ()


def test_times_and_states_are_asked_for_in_a_language_without_words_for_states(
    recall: Recall,
) -> None:
    recall.configure_bank("b", {"time_settings": {"language": "ru"}})

    asked = recall.recall_report("b", "Что было в мае?", reference_time=ASKED)

    assert asked.facts == ("мае = 2026-05-01 to 2026-05-31",)


@pytest.mark.parametrize(
    ("query", "options", "city"),
    [
        ("Where does Ana live now?", {}, "Oslo"),
        ("Where does Ana live now?", {"language": "de"}, "Bern"),
        ("Wo wohnt Ana jetzt?", {}, "Oslo"),
    ],
)
def test_words_for_the_latest_state_are_read_in_english_beside_another_language(
    moved: Recall, query: str, options: dict[str, Any], city: str
) -> None:
    moved.configure_bank("m", {"time_settings": {"language": "de"}})

    first, *_ = moved.recall("m", query, **options)

    assert first.text == f"Ana lives in {city}"


@pytest.fixture
def moved(connection: Connection) -> Recall:
    recall = Recall(connection, embedder=None)
    recall.create_bank("m")
    cities = {"Rome": "2024", "Oslo": "2026", "Bern": "2025"}
    facts = [
        {"text": f"Ana lives in {city}", "occurred": f"{year}-01-01", "entities": ["Ana"]}
        for city, year in cities.items()
    ]
    recall.retain("m", facts)
    return recall


@pytest.mark.parametrize(
    ("settings", "options", "city"),
    [
        ({}, {}, "Bern"),
        ({"latest_words": ["As we speak"]}, {}, "Oslo"),
        ({"former_words": ["as we speak"]}, {}, "Rome"),
        ({"former_words": ["as we speak"]}, {"former_words": ["anno dazumal"]}, "Bern"),
        ({"former_words": ["as we speak"]}, {"former_words": []}, "Bern"),
        ({}, {"latest_words": "as we speak"}, "Oslo"),
        ({"latest_words": ["as we speak"]}, {"prefer": "former"}, "Rome"),
        ({"latest_words": ["as we speak"]}, {"temporal": False}, "Bern"),
    ],
)
def test_a_bank_and_a_call_say_which_words_ask_for_the_latest(
    moved: Recall, settings: dict[str, Any], options: dict[str, Any], city: str
) -> None:
    moved.configure_bank("m", settings)

    first, *_ = moved.recall("m", "Where does Ana live as we speak?", **options)

    assert first.text == f"Ana lives in {city}"


@pytest.mark.parametrize("name", ["latest_words", "former_words"])
@pytest.mark.parametrize(
    ("words", "what"),
    [
        ([""], "must be texts of 1 to 1000 characters"),
        (["x" * 1001], "must be texts of 1 to 1000 characters"),
        (["x"] * 101, "holds 101 texts, not 100 at most"),
    ],
)
def test_words_that_cannot_be_meant_are_errors(
    recall: Recall, connection: Connection, name: str, words: Any, what: str
) -> None:
    refusal = f"{name} {what}"
    with pytest.raises(InvalidArgument, match=refusal) as of_bank, connection.transaction():
        recall.configure_bank("b", {name: words})
    with pytest.raises(InvalidArgument, match=refusal) as of_call:
        recall.recall("b", "Where does Ana live?", **{name: words})

    assert of_bank.value.hint
    assert of_call.value.hint


@pytest.mark.parametrize("name", ["latest_words", "former_words"])
@pytest.mark.parametrize("words", [5, [5]])
def test_words_are_a_list_of_texts(
    recall: Recall, connection: Connection, name: str, words: Any
) -> None:
    of_bank = f"{name} must be (an array of texts|texts of 1 to 1000 characters), not 5"
    with pytest.raises(InvalidArgument, match=of_bank), connection.transaction():
        recall.configure_bank("b", {name: words})
    of_call = re.escape(f"{name} must be a list of texts, not {words}")
    with pytest.raises(InvalidArgument, match=of_call):
        recall.recall("b", "Where does Ana live?", **{name: words})


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ([], "an object"),
        (None, "an object"),
        ({"tone": 1}, '"tone" must be left out'),
        ({"language": "german"}, '"language" must be a code'),
        ({"country": "at"}, '"country" must be an ISO 3166 code'),
        ({"southern": "yes"}, '"southern" must be true or false'),
        ({"recent_days": 0}, '"recent_days" must be a number'),
        ({"recent_days": None}, '"recent_days" must be a number'),
        ({"few": 1}, '"few" must be a number'),
    ],
)
def test_time_settings_that_cannot_be_meant_are_errors(
    recall: Recall, settings: object, what: str
) -> None:
    with pytest.raises(InvalidArgument, match=what) as error:
        recall.configure_bank("b", {"time_settings": settings})

    assert error.value.hint


def test_an_unknown_bank_is_named_before_anything_is_embedded(
    recall: Recall, listener: Listener, connection: psycopg.Connection[Any]
) -> None:
    with pytest.raises(Exception, match='"nowhere"'), connection.transaction():
        recall.recall("nowhere", "When did Ana move?")

    assert listener.heard == []


# The driver's own look at a question


def test_the_plan_of_arms_is_that_of_the_recall(recall: Recall) -> None:
    report = recall.recall_report("b", "When did Ana move?")

    plan = recall.explain("b", "When did Ana move?", is_run=False)

    assert {arm.arm for arm in plan if arm.status == "skipped"} <= {
        arm.arm for arm in report.arms if arm.status == "skipped"
    }
    assert {arm.arm for arm in plan if arm.status == "planned"} >= {"semantic", "lexical"}
    assert all(arm.reason for arm in plan if arm.status == "skipped")


def test_hints_name_the_type_and_the_word(recall: Recall) -> None:
    (hint,) = recall.type_hints("b", "which tea do I prefer?")

    assert (hint.fact_type, hint.matched) == ("preference", "prefer*")


def test_a_message_comes_with_those_beside_it(recall: Recall) -> None:
    sent = [
        {"text": text, "session": "s", "sent_at": ASKED + timedelta(minutes=minute)}
        for minute, text in enumerate(["one", "two", "three"])
    ]
    rows = recall.retain_messages("b", sent)

    turns = recall.message_context("b", rows[1].message_id, after=0)

    assert [(turn.place, turn.text) for turn in turns] == [(-1, "one"), (0, "two")]
    assert turns[1].sent_at == ASKED + timedelta(minutes=1)
