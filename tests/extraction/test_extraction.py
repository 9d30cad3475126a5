"""Facts from talk: by rules, by any function, by an endpoint; and what is kept where that fails."""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from growth import MOST, grows_by
from pgrecall import InvalidFact, Recall
from pgrecall.command import main
from pgrecall.extraction import (
    FACTS_SCHEMA,
    OpenAIExtractor,
    RuleExtractor,
    gliner_names,
    spacy_names,
    talk,
)
from pgrecall.extraction.endpoint import _line
from pgrecall.sentences import sentences

jsonschema = pytest.importorskip("jsonschema")

WEST = timezone(timedelta(hours=-5))
SENT = "2026-03-05T12:00:00Z"
DAY_BEFORE = datetime(2026, 3, 4, tzinfo=timezone.utc)
TALK = [
    {"session": "s1", "speaker": "Ana", "text": "Hi!", "sent_at": SENT},
    {
        "session": "s1",
        "speaker": "Ana",
        "text": "I went to Porto with Mel yesterday. Do you know Porto?",
        "sent_at": SENT,
    },
    {"session": "s2", "speaker": "Bo", "text": "The Atlas Project leads Ana.", "sent_at": SENT},
]


@pytest.fixture
def memory(pgrecall: Recall) -> Recall:
    pgrecall.create_bank("b")
    return Recall(pgrecall._source, embedder=None)


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talk, "retry_delays", lambda: repeat(0.0))


# By rules


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Ana left. She came back.", ["Ana left.", "She came back."]),
        ("Dr. Silva met J. Smith in the U.S. in May. It rained.",
         ["Dr. Silva met J. Smith in the U.S. in May.", "It rained."]),
        ("It cost 3.5 euros! “Really?” he said.", ["It cost 3.5 euros!", "“Really?” he said."]),
        ("one\ntwo", ["one", "two"]),
        ("", []),
    ],
)  # fmt: skip
def test_a_text_is_cut_into_sentences(text: str, found: list[str]) -> None:
    assert sentences(text) == found


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("The dog met Ana Silva and Bo.", ["Ana Silva", "Bo"]),
        ("The University of Porto won. They like the University.", ["University of Porto",
                                                                   "University"]),
        ("She was in World War I, and I was not.", ["World War I"]),
        ("We visited Ana's house, NASA and Apollo 11.", ["Ana", "NASA", "Apollo 11"]),
        ("Ana, Bo and Cy met.", ["Bo", "Cy"]),  # who begins a sentence may be any word
        ("We met Ana and the Mayor in May 2024.", ["Ana", "Mayor"]),
        ("He saw May Lin in May.", ["May Lin"]),
        ("nothing here at all.", []),
        ("WHO BROKE THE BUILD IN PORTO.", []),  # says nothing about names
        ("IBM", ["IBM"]),
        ("He met " + "Ana " * 200 + "there.", []),  # more than a name may have
    ],
)  # fmt: skip
def test_names_are_runs_of_capitals(text: str, names: list[str]) -> None:
    assert RuleExtractor().names_in(text) == names


def test_a_sentence_is_a_fact_with_its_speaker_names_and_time() -> None:
    facts = RuleExtractor(aliases={"Melanie": ["Mel"]})(TALK)

    assert facts == [
        {
            "text": "I went to Porto with Mel yesterday.",
            "context": "Ana: Do you know Porto? Hi!",
            "entities": ["Ana", "Porto", {"name": "Melanie", "aliases": ["Mel"]}],
            "metadata": {"speaker": "Ana"},
            "mentioned_at": datetime(2026, 3, 5, 12, tzinfo=timezone.utc),
            "occurred": [
                datetime(2026, 3, 4, tzinfo=timezone.utc),
                datetime(2026, 3, 5, tzinfo=timezone.utc),
            ],
            "fact_type": "event",
        },
        {
            "text": "The Atlas Project leads Ana.",
            "context": "Bo",
            "entities": ["Bo", "Atlas Project", "Ana"],
            "metadata": {"speaker": "Bo"},
            "mentioned_at": datetime(2026, 3, 5, 12, tzinfo=timezone.utc),
        },
    ]


def test_a_sentence_has_what_is_said_around_it_in_its_session_as_context() -> None:
    talk = [
        {"speaker": "Ana", "text": "One came by. Two came by. Is it true?", "session": "a"},
        {"speaker": "Bo", "text": "Yes, it is. I saw it. It was red. It was tall.", "session": "a"},
        {"speaker": "Bo", "text": "It was late then.", "session": "b"},
        {"text": "Nobody says this."},
    ]

    contexts = {fact["text"]: fact.get("context") for fact in RuleExtractor()(talk)}

    assert contexts == {
        "One came by.": "Ana: Two came by.",
        "Two came by.": "Ana: One came by. Is it true?",
        "Yes, it is.": "Bo: I saw it. Two came by. Is it true?",
        "I saw it.": "Bo: Yes, it is. It was red. Two came by. Is it true?",
        "It was red.": "Bo: Yes, it is. I saw it. It was tall. Two came by. Is it true?",
        "It was tall.": "Bo: I saw it. It was red. Two came by. Is it true?",
        "It was late then.": "Bo",
        "Nobody says this.": None,
    }


def test_a_speaker_is_found_as_written_and_an_alias_in_lower_case() -> None:
    talk = [
        {"speaker": "Will", "text": "They came by boat."},
        {"speaker": "Ana", "text": "It will rain, says rosie. Today it was Will who rowed."},
    ]

    found = RuleExtractor(aliases={"Rose": ["Rosie"]})(talk)

    named = [
        [one if isinstance(one, str) else one["name"] for one in fact["entities"]] for fact in found
    ]
    assert named == [["Will"], ["Ana", "Rose"], ["Ana", "Will"]]


def test_a_phrase_is_found_with_its_signs_as_whole_words() -> None:
    known = {"C++": ["cpp"], "@ana": [], "Ana de la Cruz": ["Ana de"], "🙂": []}
    find = RuleExtractor(aliases=known).names_in

    assert find("we use c++ and cpp, not c+ or c++x or xcpp.") == ["C++"]
    assert find("so said x@ana, not @anabel, but @ana") == ["@ana"]
    assert find("that is ana de la cruz, who is no ana. 🙂") == ["Ana de la Cruz", "🙂"]


@pytest.mark.parametrize("piece", ["Maya ", "Maya of ", "of ", "Dr. ", "A. B. ", "(Maya: "])
def test_a_sentence_is_read_in_at_most_n_log_n(piece: str) -> None:
    assert grows_by(RuleExtractor().names_in, piece, 6_000) < MOST


def test_speakers_are_found_in_at_most_n_log_n() -> None:
    def read(text: str) -> None:
        talk = [
            {"speaker": f"Person {n}", "text": f"I met Person {n + 1} there.", "sent_at": SENT}
            for n in range(len(text))
        ]
        assert RuleExtractor()(talk)[0]["entities"] == ["Person 0", "Person 1"]

    assert grows_by(read, " ", 400) < MOST


def test_the_context_of_a_model_says_who_said_what(memory: Recall) -> None:
    said = {"Ana": "I am allergic to peanuts.", "Bo": "I am allergic to peanuts."}
    told = said | {"Cy": "I am not allergic to anything."}
    messages = [{"speaker": name, "text": text, "session": "s"} for name, text in told.items()]

    memory.retain_conversation("b", messages, extract=RuleExtractor())

    context = memory.context("b", "Who is allergic to peanuts?")
    lines = {line.partition("] ")[2] for line in context.text.splitlines()} - {""}
    assert lines == {f"{name}: {text}" for name, text in told.items()}
    assert len(context.hits) == 3  # no message beside its fact


def test_who_goes_by_a_sign_is_no_entity(memory: Recall) -> None:
    message = {"speaker": "\N{SLIGHTLY SMILING FACE}", "text": "I went to Porto with Mel."}

    done = memory.retain_conversation("b", [message], extract=RuleExtractor())

    assert (len(done.facts), done.failures) == (1, [])
    assert memory.get("b", done.facts[0].memory_id).entities == ("Mel", "Porto")


def test_messages_of_chat_apis_are_read_as_they_are_retained() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    told: list[dict[str, object]] = [
        {"role": "user", "name": "Ana", "content": "I went to Porto with Mel."},
        {"role": "user", "content": [image, {"type": "text", "text": "Mel stayed in Porto."}]},
    ]
    plain: list[dict[str, object]] = [
        {"speaker": "Ana", "text": "I went to Porto with Mel."},
        {"text": "Mel stayed in Porto."},
    ]

    assert RuleExtractor()(told) == RuleExtractor()(plain) != []
    assert [*map(_line, told)] == [*map(_line, plain)]


@pytest.mark.parametrize("role", ["system", "developer"])
def test_nothing_is_extracted_from_instructions(role: str) -> None:
    rules: dict[str, object] = {"role": role, "content": "You are a helpful assistant of Ana."}
    model = OpenAIExtractor("m", base_url="http://localhost:1", max_retries=0)

    assert RuleExtractor()([rules, *TALK]) == RuleExtractor()(TALK)
    assert model([rules]) == []  # nothing is asked


def test_models_for_names_can_be_handed_over() -> None:
    def pipeline(text: str) -> object:
        return SimpleNamespace(ents=[SimpleNamespace(text=text.split()[0])])

    class Model:
        def predict_entities(self, text: str, labels: list[str]) -> list[dict[str, str]]:
            return [{"text": text.split()[-1], "label": labels[0]}]

    assert RuleExtractor(names=spacy_names(pipeline)).names_in("one two three") == ["one"]
    assert RuleExtractor(names=gliner_names(Model())).names_in("one two three") == ["three"]


# In the driver


def test_messages_and_their_facts_are_stored_and_found(memory: Recall) -> None:
    done = memory.retain_conversation("b", TALK, extract=RuleExtractor())
    again = memory.retain_conversation("b", TALK, extract=RuleExtractor())

    assert (len(done.messages), len(done.facts), done.failures) == (3, 2, [])
    assert not any(fact.is_new for fact in again.facts)
    (hit, *_) = memory.recall("b", "Who was in Porto?", top_k=1)
    assert (hit.text, hit.source_id) == ("I went to Porto with Mel yesterday.", "s1")


def test_a_window_that_slides_over_a_conversation_stores_each_fact_once(memory: Recall) -> None:
    texts = ["I moved to Porto. It was hard.", "I like boats. I have one.", "It sank in May."]
    turns = [{"speaker": "Ana", "text": text, "session": "s", "sent_at": SENT} for text in texts]
    extract = RuleExtractor()

    first = memory.retain_conversation("b", turns[:2], extract=extract)
    memory.forget("b", first.facts[0].memory_id)
    second = memory.retain_conversation("b", turns[1:], extract=extract)
    third = memory.retain_conversation("b", turns, extract=extract)

    facts = {one.text: one.context for one in memory.list_memories("b")}
    assert [len(done.facts) for done in (first, second, third)] == [4, 1, 0]
    assert [row.is_new for row in second.messages] == [False, True]
    assert facts.keys() == {"It was hard.", "I like boats.", "I have one.", "It sank in May."}
    assert facts["It sank in May."] == "Ana: I like boats. I have one."
    again = memory.retain_conversation("b", turns, extract=extract, again=True)
    assert [fact.is_new for fact in again.facts] == [True, False, False, False, False]


def test_a_function_is_given_new_messages_alone(memory: Recall) -> None:
    seen: list[list[object]] = []

    def extract(messages: Sequence[Mapping[str, object]]) -> list[str]:
        seen.append([message["text"] for message in messages])
        return []

    for turns in (TALK[:1], TALK[:2], TALK):
        memory.retain_conversation("b", turns, extract=extract)

    assert seen == [[turn["text"]] for turn in TALK]


def test_an_answer_without_a_time_is_read_each_time_it_is_given(memory: Recall) -> None:
    asked = ["Do you eat meat?", "No.", "Do you eat fish?", "No.", "Do you eat eggs?", "No."]
    said = [{"role": ("assistant", "user")[n % 2], "text": text} for n, text in enumerate(asked)]
    seen: list[list[object]] = []

    def extract(messages: Sequence[Mapping[str, object]]) -> list[str]:
        seen.append([message["text"] for message in messages])
        return []

    memory.retain_conversation("b", said[:4], extract=extract)
    memory.retain_conversation("b", said[2:], extract=extract)
    memory.retain_conversation("b", said, extract=extract)

    assert seen == [asked[:4], asked[4:]]


def test_what_was_interrupted_is_done_again(memory: Recall) -> None:
    def interrupted(messages: Sequence[Mapping[str, object]]) -> list[str]:
        if messages[0]["session"] == "s2":
            raise KeyboardInterrupt
        return ["Once."]

    with pytest.raises(KeyboardInterrupt):
        memory.retain_conversation("b", TALK, extract=interrupted)
    done = memory.retain_conversation("b", TALK, extract=lambda _: ["Later."])

    assert [(row.index, row.is_new) for row in done.messages] == [(0, False), (1, False), (2, True)]
    assert {one.text for one in memory.list_memories("b")} == {"Once.", "Later."}


def test_a_model_reads_known_messages_as_context(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def create(**request: Any) -> SimpleNamespace:
        asked.append(request["messages"][1]["content"])
        message = SimpleNamespace(content='{"facts": []}')
        return SimpleNamespace(choices=[SimpleNamespace(message=message)])

    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
    monkeypatch.setattr(OpenAIExtractor, "_connected", lambda _: client)
    turns: list[dict[str, object]] = [{"speaker": "Ana", "text": text} for text in ("One.", "Two.")]

    OpenAIExtractor("m").extract_new(turns, [False, True])
    OpenAIExtractor("m").extract_new(turns, [False, False])
    OpenAIExtractor("m")(turns)

    assert len(asked) == 2
    assert asked[0].splitlines()[1::2] == ["Ana: One.", "Ana: Two."]
    assert asked[1].splitlines() == ["Ana: One.", "Ana: Two."]


@pytest.mark.parametrize(
    "text",
    [
        "Я была в Порту с Мел вчера.",
        "Ich war gestern mit Mel in Porto.",
        "Wczoraj byłam z Mel w Porto.",
        "No dia 4 de março de 2026 estive no Porto.",
    ],
)
def test_a_time_is_read_in_the_language_of_its_words(text: str) -> None:
    [fact] = RuleExtractor()([{"text": text, "speaker": "Ana", "sent_at": SENT}])

    assert [day.isoformat()[:10] for day in fact["occurred"]] == ["2026-03-04", "2026-03-05"]


@pytest.mark.parametrize(
    ("sent", "day"),
    [
        (date(2026, 3, 5), datetime(2026, 3, 4, tzinfo=timezone.utc)),
        ("2026-03-05", datetime(2026, 3, 4, tzinfo=timezone.utc)),
        ("2026-03-05T00:30", datetime(2026, 3, 4, tzinfo=timezone.utc)),
        (datetime(2026, 3, 5, 0, 30), datetime(2026, 3, 4, tzinfo=WEST)),
    ],
)
def test_a_time_without_a_zone_means_the_same_in_a_message_and_its_facts(
    memory: Recall, sent: object, day: datetime
) -> None:
    western = Recall(memory._source, embedder=None, timezone=WEST)
    message = {"text": "I went to Porto yesterday.", "speaker": "Ana", "sent_at": sent}

    done = western.retain_conversation("b", [message], extract=RuleExtractor())

    fact = western.get("b", done.facts[0].memory_id)
    [turn] = western.message_context("b", done.messages[0].message_id)
    assert fact.mentioned_at == turn.sent_at
    assert fact.occurred == (day, day + timedelta(days=1))


def test_what_was_said_is_erased_from_the_context_of_others_too(memory: Recall) -> None:
    """As the README shows."""
    secret = {**TALK[0], "text": "My card number is 4111."}
    done = memory.retain_conversation("b", [secret, *TALK[1:2]], extract=RuleExtractor())

    memory.forget("b", filter="text ilike '%card number%'")
    memory.forget_messages("b", done.messages[0].message_id)
    beside = "context ilike '%card number%'"
    for old in memory.list_memories("b", filter=beside, is_ended_too=True):
        memory.update("b", old.memory_id, context=None)
        memory.forget("b", old.memory_id)

    kept = memory.list_memories("b", is_ended_too=True)
    assert [one.text for one in kept] == ["I went to Porto with Mel yesterday."]
    assert "4111" not in "\n".join(memory.export("b"))


def test_an_extractor_may_be_async(memory: Recall) -> None:
    async def extract(messages: Sequence[Mapping[str, object]]) -> list[str]:
        return [f"{len(messages)} said."]

    done = memory.retain_conversation("b", TALK, extract=extract)

    assert (len(done.facts), done.failures) == (2, [])


@pytest.mark.parametrize("found", ["Mel was in Porto.", {"text": "Mel was in Porto."}])
def test_an_extractor_may_return_a_single_fact(memory: Recall, found: Any) -> None:
    done = memory.retain_conversation("b", TALK[1:2], extract=lambda _: found)

    assert [memory.get("b", row.memory_id).text for row in done.facts] == ["Mel was in Porto."]
    assert done.failures == []


def test_an_object_around_the_facts_is_no_fact(memory: Recall) -> None:
    answer: Any = {"facts": [{"text": "Mel was in Porto."}]}

    done = memory.retain_conversation("b", TALK[1:2], extract=lambda _: answer)

    [failure] = done.failures
    assert (done.facts, failure.fact is not None and "facts" in failure.fact) == ([], True)


@pytest.mark.parametrize(
    "sent_at",
    [
        "2026-03-05 13:00 Europe/Vienna",
        "2026-03-05 12:00 UTC",
        "2026-03-05 12:00:00+00",
        "2026-03-05T13:00:00.5+0100",
        "2026-03-05T12:00:00.123456789Z",
    ],
)
def test_a_time_is_read_however_the_database_takes_it(memory: Recall, sent_at: str) -> None:
    done = memory.retain_conversation(
        "b", [{**TALK[1], "sent_at": sent_at}], extract=RuleExtractor()
    )

    [fact] = done.facts
    found = memory.get("b", fact.memory_id)
    assert found.occurred is not None
    assert found.occurred[0] is not None
    assert found.occurred[0] - DAY_BEFORE in (timedelta(0), timedelta(hours=-1))  # in its zone
    assert found.mentioned_at is not None
    assert found.mentioned_at.replace(microsecond=0) == DAY_BEFORE + timedelta(hours=36)


def test_any_function_extracts_a_session_at_a_time(memory: Recall) -> None:
    seen: list[Sequence[Mapping[str, object]]] = []

    def extract(messages: Sequence[Mapping[str, object]]) -> list[str]:
        seen.append(messages)
        return [f"{len(messages)} said."]

    done = memory.retain_conversation("b", TALK, extract=extract, messages_at_once=1)

    assert [len(batch) for batch in seen] == [1, 1, 1]
    assert list(talk.batches(TALK, 20)) == [(0, TALK[:2]), (2, TALK[2:])]
    assert len(done.facts) == 3


def test_a_fact_that_is_none_is_left_out_alone(memory: Recall) -> None:
    facts: Any = [5, "Ana was in Porto.", None]

    done = memory.retain_conversation("b", TALK[:1], extract=lambda _: facts)

    assert (len(done.facts), [one.fact for one in done.failures]) == (1, [5, None])


def test_a_null_of_a_model_stands_for_the_session_and_time_of_its_messages(memory: Recall) -> None:
    said = {"text": "Ana was in Porto.", "source_id": None, "mentioned_at": None, "occurred": None}

    memory.retain_conversation("b", TALK[:1], extract=lambda _: [said])

    (fact,) = memory.list_memories("b")
    assert (fact.source_id, fact.mentioned_at) == ("s1", talk.moment(TALK[0]))


def test_a_link_leads_where_it_did_if_a_fact_before_is_left_out(
    memory: Recall, connection: psycopg.Connection[Any]
) -> None:
    facts: Any = [
        {"text": "It rained.", "links": [{"kind": "causes", "to_index": 2}]},
        {"text": "Bad.", "confidence": "0.9"},
        {"text": "We stayed in.", "links": [{"kind": "caused_by", "to_index": place}
                                            for place in (0, 1)]},
        {"text": "We slept."},
    ]  # fmt: skip

    done = memory.retain_conversation("b", TALK[:1], extract=lambda _: facts)

    rain, home, _ = (row.memory_id for row in done.facts)
    links = "select kind, from_id, to_id from pgrecall.link where kind <> 'temporal' order by 1"
    assert [(one.fact or {}).get("text") for one in done.failures] == ["Bad."]
    assert connection.execute(links).fetchall() == [
        ("caused_by", home, rain),
        ("causes", rain, home),
    ]


def test_a_fact_that_may_not_end_another_is_left_out_alone(memory: Recall) -> None:
    memory.configure_bank("b", {"replace": "key", "source_trust": {"s*": 0.5}})
    memory.quarantine("b", "s2")
    memory.retain(
        "b", [{"text": "We meet on Monday.", "fact_key": "day", "mentioned_at": "2026-01-01"}]
    )

    done = memory.retain_conversation(
        "b", TALK, extract=lambda _: ["Kept.", {"text": "We meet on Friday.", "fact_key": "day"}]
    )

    assert len(done.facts) == 1
    assert [(one.first, one.problem.partition(" ")[2][:20]) for one in done.failures] == [
        (0, 'a fact of source "s1'),
        (2, 'source "s2" is in qu'),
        (2, 'source "s2" is in qu'),
    ]
    assert [one.text for one in memory.list_memories("b")] == ["Kept.", "We meet on Monday."]


def test_what_cannot_be_extracted_is_found_among_the_messages(
    memory: Recall, caplog: pytest.LogCaptureFixture
) -> None:
    calls = 0

    def extract(messages: Sequence[Mapping[str, object]]) -> list[Any]:
        nonlocal calls
        calls += 1
        if messages[0]["session"] == "s1":
            raise OSError("out of reach")
        return ["Kept.", {"text": "Bad.", "fact_type": "rumour"}, {"colour": 1}, "Kept too."]

    done = memory.retain_conversation("b", TALK, extract=extract)

    assert calls == 5  # once for the first session, and three times again
    assert [(f.first, f.last, f.fact) for f in done.failures] == [
        (0, 1, None),
        (2, 2, {"text": "Bad.", "fact_type": "rumour", "source_id": "s2", "mentioned_at": SENT}),
        (2, 2, {"colour": 1, "source_id": "s2", "mentioned_at": SENT}),
    ]
    assert done.failures[0].problem == "OSError: out of reach"
    assert [record.getMessage() for record in caplog.records] == [
        "3 facts were refused, or batches of messages that the extractor failed for:"
        " the result lists them as failures"
    ]
    assert len(done.facts) == 2
    assert [hit.kind for hit in memory.recall("b", "Porto yesterday", top_k=1)] == ["message"]


def test_a_malformed_message_stores_nothing(memory: Recall) -> None:
    with pytest.raises(InvalidFact):
        memory.retain_conversation("b", [{"words": "x"}], extract=RuleExtractor())


# By an endpoint


@pytest.fixture
def endpoint() -> Iterator[SimpleNamespace]:
    state = SimpleNamespace(asked=[], answers=[])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            state.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            code, content = state.answers.pop(0)
            message = {"role": "assistant", "content": content}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            answer = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
            data = json.dumps(answer | {"choices": [choice]}).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield state
    server.shutdown()
    server.server_close()


FACT = {
    "text": "Ana went to Porto on 4 March 2026.",
    "fact_type": "event",
    "occurred": ["2026-03-04", "2026-03-05"],
    "confidence": None,
    "entities": [{"name": "Ana", "kind": "person", "aliases": []}],
    "relations": [{"from": "Ana", "kind": "went_to", "to": "Porto"}],
}


@pytest.mark.skipif(
    importlib.util.find_spec("openai") is None,
    reason="openai is not installed: pip install 'pgrecall[openai]'",
)
def test_an_endpoint_is_asked_by_the_schema_and_asked_again(
    memory: Recall, endpoint: SimpleNamespace
) -> None:
    jsonschema.validate({"facts": [FACT]}, FACTS_SCHEMA)
    endpoint.answers = [
        (500, ""),
        (200, "no JSON"),
        (200, json.dumps({"facts": [FACT]})),
        (200, json.dumps({"facts": []})),
    ]
    extract = OpenAIExtractor("m", base_url=endpoint.url, max_retries=0, temperature=0)

    done = memory.retain_conversation("b", TALK, extract=extract)

    assert (len(done.facts), done.failures, len(endpoint.asked)) == (1, [], 4)
    asked = endpoint.asked[0]
    assert asked["temperature"] == 0
    assert asked["response_format"]["json_schema"]["strict"] is True
    assert asked["messages"][1]["content"].splitlines()[0] == f"[{SENT}] Ana: Hi!"
    (entity,) = memory.query_entities("b", "Ana")
    assert entity.name == "Ana"


def test_the_schema_is_printed_and_strict(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "facts"]) == 0

    printed = json.loads(capsys.readouterr().out)

    assert printed == FACTS_SCHEMA
    jsonschema.Draft202012Validator.check_schema(printed)

    def objects(part: Any) -> Iterator[dict[str, Any]]:
        if isinstance(part, dict):
            if part.get("type") == "object":
                yield part
            for inner in part.values():
                yield from objects(inner)

    for one in objects(printed):
        assert one["required"] == list(one["properties"])
        assert one["additionalProperties"] is False
