"""The arms for time, exact keys and raw messages."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sqlcalls import Connection, call, counted_scans, create, ids, retain, rows, shared_ranks

WINDOW = "[2026-03-10,2026-03-12)"


def scores(rows: list[Any]) -> dict[int, Any]:
    assert [row.rank for row in rows] == shared_ranks(rows)
    return {row[0]: pytest.approx(row.score) for row in rows}


# temporal_arm


@pytest.mark.parametrize(
    ("occurred", "score"),
    [
        ("2026-03-10", 1),
        ("2026-03-11T23:59:59Z", 1),
        (["2026-01-01", "2026-06-01"], 0.5),  # spans the whole window
        ([None, "2026-03-10T00:00:01Z"], 1),
        (["2026-03-11", None], 1),
        ([None, None], 0.5),  # this too
        ("2026-03-09", 0.9),
        ("2026-03-12", 0.9),
        ("2026-03-08T12:00Z", 0.45),
        ("2026-03-07T00:00Z", None),
        ("2026-03-06", None),
        (["2026-03-01", "2026-03-07T18:00Z"], 0.225),
        ("2026-03-13", 0.9 * (1 - 1 / 8.5)),
        ("2026-03-18", 0.9 * (1 - 6 / 8.5)),
        ("2026-03-20T12:00Z", None),
        (["2026-03-16T06:00Z", None], 0.45),
        (None, None),
    ],
)
def test_proximity_is_one_within_and_falls_to_none_days_before_and_after(
    connection: Connection, occurred: Any, score: float | None
) -> None:
    create(connection)
    (memory,) = retain(connection, [{"text": "a", "occurred": occurred}])

    found = call(connection, "temporal_arm", bank="b", during=WINDOW)

    assert scores(found) == ({} if score is None else {memory: pytest.approx(score)})


@pytest.mark.parametrize(
    ("during", "found"),
    [
        ("[2026-03-10,)", "mid late"),
        ("(,2026-03-10)", "early"),
        ("(,)", "early mid late"),
        ("[2026-03-10T12:00Z,2026-03-10T12:00Z]", "mid"),
        ("[2026-03-09,2026-03-10T12:00Z]", "mid"),
        ("empty", ""),
        (None, ""),
    ],
)
def test_windows_may_be_open_an_instant_or_none(
    connection: Connection, during: str | None, found: str
) -> None:
    create(connection)
    times = {"early": "2020-01-01", "mid": "2026-03-10T12:00Z", "late": "2030-01-01"}
    memory_ids = retain(connection, [{"text": t, "occurred": at} for t, at in times.items()])
    names = dict(zip(memory_ids, times, strict=True))

    rows = call(connection, "temporal_arm", bank="b", during=during)

    assert {names[row.memory_id] for row in rows if row.score == 1} == set(found.split())


@pytest.mark.parametrize("window", [WINDOW, "[2026-03-08,2026-03-10)"])
def test_a_window_is_read_to_its_end_where_depth_asks_for_it(
    connection: Connection, window: str
) -> None:
    create(connection)
    boats = [{"text": f"boat {n}", "occurred": "2026-03-10"} for n in range(1100)]
    retain(connection, boats, link="deferred")

    found = call(connection, "temporal_arm", bank="b", during=window, depth=2000)
    page = call(connection, "hybrid_recall", bank="b", query="", during=window, skip=1090)

    assert len(found) == 1100
    assert [row.rank for row in page] == [*range(1091, 1101)]


def test_an_embedding_weighs_what_lies_in_the_window_by_similarity(connection: Connection) -> None:
    create(connection)
    same, across, opposite, bare = retain(
        connection,
        [
            {"text": f"{e}", "occurred": "2026-03-10", "embedding": e}
            for e in ([1, 0], [0, 1], [-1, 0], None)
        ],
    )
    connection.execute("delete from pgrecall.link")

    plain = call(connection, "temporal_arm", bank="b", during=WINDOW)
    weighed = call(connection, "temporal_arm", bank="b", during=WINDOW, embedding=[1, 0])

    assert scores(plain) == dict.fromkeys([bare, opposite, across, same], 1)
    assert scores(weighed) == {same: 1, bare: 0.9, across: 0.9, opposite: 0.9}


@pytest.mark.parametrize(
    ("query", "others", "near", "far"),
    [
        ("what was said?", 0.95, 1, 0.9 + 0.1 * 0.5**3),  # all facts are as near
        ("who broke the crane?", 0.85, 0.5 + 0.5 * 0.6**3, 0.5 + 0.5 * 0.3**3),
        (
            "who broke the crane?",
            0.65,
            0.1 + 0.9 * 0.6**3,
            0.1 + 0.9 * 0.3**3,
        ),  # one fact stands out
        ("what did Ana say?", 0.95, 1, 1),
        ("did Ana break the crane?", 0.65, 0.1 + 0.9 * 0.6**3, 0.1 + 0.9 * 0.3**3),
    ],
)
def test_similarity_counts_in_a_window_as_far_as_the_best_of_all_stands_out(
    connection: Connection, query: str, others: float, near: float, far: float
) -> None:
    create(connection)
    cosines = [1.0, *[others] * 10, 0.6, 0.3]
    found = retain(
        connection,
        [
            {
                "text": f"entry {n}",
                "entities": ["Ana"] if n % 2 else [],
                "embedding": [cosine, math.sqrt(1 - cosine**2)],
                "occurred": "2026-03-10" if cosine < others else "2020-01-01",
            }
            for n, cosine in enumerate(cosines)
        ],
    )

    hits = call(connection, "arm_hits", bank="b", query=query, embedding=[1, 0], during=WINDOW)

    scored = {hit.memory_id: hit.score for hit in hits if hit.arm == "temporal"}
    assert scored == pytest.approx({found[-2]: near, found[-1]: far}, abs=1e-3)


@pytest.mark.parametrize(
    ("query", "others"),
    [
        ("crane broke tower", ""),  # two facts alone have words of the question
        ("crane broke tower", "broke"),
        ("crane broke tower", "crane tower"),
        ("crane broke tower", "crane broke tower"),  # all fit as well
        ("crane broke tower Ana", "crane broke tower"),
        ("nobody says this", ""),
    ],
)
def test_words_count_in_a_window_where_there_is_no_embedding(
    connection: Connection, query: str, others: str
) -> None:
    create(connection)
    texts = ["crane broke tower", *[others] * 10, "crane tower", "bakery"]
    *_, near, far = retain(
        connection,
        [
            {
                "text": f"{text} {n}",
                "entities": ["Ana"] if n % 2 else [],
                "occurred": "2026-03-10" if n > 10 else "2020-01-01",
            }
            for n, text in enumerate(texts)
        ],
    )

    hits = call(connection, "arm_hits", bank="b", query=query, during=WINDOW)

    words = {hit.memory_id: hit.score for hit in hits if hit.arm == "lexical"}
    best = max(words.values(), default=0)
    eleventh = sorted(words.values(), reverse=True)[10] / best if len(words) > 10 else 0
    share = min(0.9, (0.7 - eleventh) / 0.2)
    least = 0 if "Ana" in query else 0.1
    if not words:
        expected = {near: 1.0, far: 1.0}
    elif share > least:
        expected = {near: 1 - share + share * (words[near] / best) ** 2, far: 1 - share}
    else:
        expected = {near: 1.0, far: 1 - least}
    assert {h.memory_id: h.score for h in hits if h.arm == "temporal"} == pytest.approx(expected)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({}, "entry opinion"),
        ({"fact_types": ["world"]}, "entry"),
        ({"fact_types": ["opinion"]}, "opinion"),
        ({"filter": ["contains", "tags", ["x"]]}, "entry"),
        ({"as_of": "2026-03-01"}, "ended entry opinion"),
        ({"as_of": "2025-01-01"}, ""),
        ({"depth": 1}, "opinion"),
    ],
)
def test_the_temporal_arm_keeps_to_what_is_asked_for(
    connection: Connection, arguments: dict[str, Any], names: str
) -> None:
    create(connection)
    early = {"mentioned_at": "2026-01-01"}
    within = {"occurred": "2026-03-10", **early}
    facts: list[dict[str, Any]] = [
        {"text": "ended", **within},
        {"text": "entry", "tags": ["x"], **within},
        {"text": "opinion", "fact_type": "opinion", **within},
    ]
    memory_ids = retain(connection, facts, link="deferred")
    call(connection, "supersede", bank="b", memory_id=memory_ids[0], at="2026-04-01")

    found = call(connection, "temporal_arm", bank="b", during=WINDOW, **arguments)

    by_id = dict(zip(memory_ids, ("ended", "entry", "opinion"), strict=True))
    assert {by_id[row.memory_id] for row in found} == set(names.split())


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.parametrize("basis", ["occurred", "mentioned"])
def test_what_came_after_a_window_does_not_keep_out_what_happened_in_it(
    connection: Connection, basis: str
) -> None:
    create(connection)
    said = "occurred" if basis == "occurred" else "mentioned_at"
    inside, *after = retain(
        connection,
        [{"text": "inside", said: "2026-03-10"}]
        + [{"text": f"after {n}", said: "2026-03-12T01:00Z"} for n in range(2100)],
        link="deferred",
    )

    found = call(connection, "temporal_arm", bank="b", during=WINDOW, time_basis=basis)

    assert found[0].memory_id == inside
    assert {row.memory_id for row in found[1:]} < set(after)


def test_the_temporal_arm_goes_through_the_index_on_time(connection: Connection) -> None:
    create(connection)
    days = [f"20{y:02}-{m:02}-{d:02}" for y in range(10, 26) for m in range(1, 13)
            for d in range(1, 29, 2)]  # fmt: skip
    retain(connection, [{"text": day, "occurred": day} for day in days], link="deferred")
    connection.execute("analyze pgrecall.memory")

    with counted_scans(connection) as scans:
        found = call(connection, "temporal_arm", bank="b", during="[2020-06-01,2020-06-08)",
                     fact_types=["world"])  # fmt: skip

    assert len(found) > 3
    assert scans["memory_bank_id_fact_type_occurred_idx"] == 2  # until its end, and after it


# key_arm

KEYS = ["deploy.window", "incident.2026-03-14", "on-call rota", "office address", "C++", ".env",
        "deploy", "Ana's desk", "rotate()", "what all of us did agree on", "posting.py",
        "ADR-31", "rfc 2119", "python@3.12", "10"]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("deploy.window", ["deploy.window"]),
        ("DEPLOY.Window", ["deploy.window"]),
        ("  deploy.window  ", ["deploy.window"]),
        ('What is "deploy.window"?', ["deploy.window"]),
        ("(deploy.window), please", ["deploy.window"]),
        ("“deploy.window” or ‘C++’", ["deploy.window", "C++"]),
        ("`deploy.window`;", ["deploy.window"]),
        ("what is\ndeploy.window\tthen", ["deploy.window"]),
        ("how did incident.2026-03-14 end?", ["incident.2026-03-14"]),
        ("who is on the on-call rota?", ["on-call rota"]),
        ("where is the Office Address now", ["office address"]),
        ("what does .env hold", [".env"]),
        ("is C++ used", ["C++"]),
        ("what does rotate() do", ["rotate()"]),
        ("find Ana's desk today", ["Ana's desk"]),
        ("what is C++'s standard, and the on-call rota’s", ["on-call rota", "C++"]),
        ("set {deploy.window=3}", ["deploy.window"]),
        ("deploy.window and deploy", ["deploy.window", "deploy"]),
        (" What all of us did agree on", ["what all of us did agree on"]),
        ("see posting.py:42, posting.py:42:7", ["posting.py"]),
        ("what is at posting.py#L42?", ["posting.py"]),
        ("what does adr 31 say", ["ADR-31"]),
        ("adr.31, ADR#31; ADR31", ["ADR-31"]),
        ("is RFC-2119, as of 2026", ["rfc 2119"]),
        ("incident 2026-03-14", ["incident.2026-03-14"]),
        ("python 3.12 in ADR\n31:", ["python@3.12", "ADR-31"]),
        ("adr 310, adr 3, badr 31, adr 31.2, adr-31-b, x/adr-31, adr 31b, adr - 31", []),
        ("posting.py:main, reposting.py:42, posting:42", []),
        ("at 10:30, at 10#3", []),
        ("redeploy.window", []),
        ("deploy.windows", []),
        ("deployment", []),
        ("incident", []),
        ("", []),
        (None, []),
    ],
)
def test_a_key_is_found_wherever_it_stands_whole_in_a_query(
    connection: Connection, query: str | None, expected: list[str]
) -> None:
    create(connection)
    memory_ids = retain(connection, [{"text": key, "fact_key": key} for key in KEYS])
    by_key = dict(zip(KEYS, memory_ids, strict=True))

    found = call(connection, "key_arm", bank="b", query=query)

    longest_first = sorted(expected, key=lambda key: -len(key))
    assert found == [
        (by_key[key], rank, len(key)) for rank, key in enumerate(longest_first, start=1)
    ]


def test_keys_are_of_the_bank_type_and_time_asked_for(connection: Connection) -> None:
    create(connection)
    create(connection, "c")
    fact = {"text": "old", "fact_key": "k", "mentioned_at": "2026-01-01"}
    retain(connection, [fact], bank="c")
    old, new, opinion = retain(
        connection,
        [fact, {"text": "new", "fact_key": "K", "tags": ["x"]},
         {"text": "o", "fact_key": "k", "fact_type": "opinion"}],
    )  # fmt: skip
    call(connection, "supersede", bank="b", memory_id=old, superseded_by=new, at="2026-02-01")

    def found(**arguments: Any) -> list[int]:
        return ids(call(connection, "key_arm", bank="b", query="k", **arguments))

    assert found() == [opinion, new]
    assert found(depth=1) == [opinion]
    assert found(fact_types=["world"]) == [new]
    assert found(filter=["contains", "tags", ["x"]]) == [new]
    assert found(as_of="2026-01-15") == [old]
    assert found(as_of="2026-02-01") == []
    assert found(as_of="infinity") == [opinion, new]


def test_a_key_costs_no_more_the_more_often_it_was_replaced(connection: Connection) -> None:
    create(connection)
    (latest,) = retain(connection, [{"text": "version", "fact_key": "k"}])
    for n in range(300):
        statement = "select memory_id from pgrecall.update_memory('b', %s, %s)"
        latest = rows(connection, statement, latest, f'{{"text": "version {n}"}}')[0][0]

    def read(key: str) -> int:
        statement = "select * from pgrecall.key_arm('b', %s)"
        plan = rows(connection, "explain (analyze, buffers, format json) " + statement, key)[0][0]
        return int(plan[0]["Plan"]["Shared Hit Blocks"])

    read("k")
    assert read("k") < read("no key") + 100


@pytest.mark.slow
def test_the_key_arm_goes_through_the_index_on_keys(connection: Connection) -> None:
    create(connection)
    facts = [{"text": f"fact {n}", "fact_key": f"key.{n}"} for n in range(2000)]
    retain(connection, facts, link="deferred")
    connection.execute("analyze pgrecall.memory")

    with counted_scans(connection) as scans:
        found = call(connection, "key_arm", bank="b", query="what is key.77 for",
                     fact_types=["world"])  # fmt: skip

    assert len(found) == 1
    assert scans["memory_bank_id_fact_key_idx"] > 0
    assert scans["memory_bank_id_fact_type_occurred_idx"] == 0


def test_a_pasted_page_is_searched_for_keys_at_its_start(connection: Connection) -> None:
    create(connection)
    (memory,) = retain(connection, [{"text": "a", "fact_key": "deploy.window"}])
    page = "deploy.window " + "lorem ipsum, " * 5000

    assert ids(call(connection, "key_arm", bank="b", query=page)) == [memory]


# message_arm


def say(connection: Connection, *messages: str | dict[str, Any], bank: str = "b") -> list[int]:
    objects = [{"text": m} if isinstance(m, str) else m for m in messages]
    rows = call(connection, "retain_messages", bank=bank, messages=objects)
    return [row.message_id for row in rows]


def test_messages_score_as_facts_of_the_same_texts_over_the_idfs_of_the_query(
    connection: Connection,
) -> None:
    create(connection)
    texts = [f"ana {'sails ' * (n % 4)}boat {n}" for n in range(40)]
    message_ids = say(connection, *texts)
    memory_ids = retain(connection, texts)
    call(connection, "refresh_statistics", bank="b", is_full=True)

    messages = call(connection, "message_arm", bank="b", query="sails boat 7")
    memories = call(connection, "lexical_arm", bank="b", query="sails boat 7")

    as_messages = dict(zip(memory_ids, message_ids, strict=True))
    (idfs,) = connection.execute(
        "select (pgrecall_internal._terms('b', 'message', '{sail,boat,7}')).idf_sum"
    ).fetchone() or (0,)
    assert messages == [
        (as_messages[row.memory_id], row.rank, pytest.approx(row.score / idfs)) for row in memories
    ]
    assert len(messages) == 40


def reason_of_messages(connection: Connection) -> str:
    """Say why a question of stop words alone searches no message."""
    reports = call(connection, "explain_recall", bank="b", query="Is it?")
    return next(str(report.reason) for report in reports if report.arm == "message")


def test_a_question_without_words_is_not_taken_for_a_bank_without_messages(
    connection: Connection,
) -> None:
    create(connection)
    before = reason_of_messages(connection)

    say(connection, "The boat left.")
    # Nothing else tells of messages then.
    connection.execute("delete from pgrecall_internal.statistics where kind = 'message'")

    assert (before, reason_of_messages(connection)) == (
        "the bank holds no messages",
        "no message has a word of the query",
    )


def test_messages_of_another_bank_or_not_yet_sent_are_not_found(connection: Connection) -> None:
    create(connection)
    create(connection, "c")
    say(connection, "ana sails", bank="c")
    then, now = say(
        connection, {"text": "ana sails", "sent_at": "2026-01-01"}, "ana sails far away"
    )

    assert ids(call(connection, "message_arm", bank="b", query="sails")) == [then, now]
    assert ids(call(connection, "message_arm", bank="b", query="sails", as_of="2026-01-02")) == [
        then
    ]
    assert ids(call(connection, "message_arm", bank="b", query="sails", depth=1)) == [then]
    assert call(connection, "message_arm", bank="b", query="boats") == []


def test_with_a_window_messages_sent_in_it_come_first(connection: Connection) -> None:
    create(connection)
    before, within, long_ago, later = say(
        connection,
        *({"text": "ana sails", "sent_at": f"{day}T12:00Z"}
          for day in ("2026-03-04", "2026-03-05", "2025-01-01", "2026-06-01")),
    )  # fmt: skip

    def scores(during: str | None) -> dict[int, float]:
        hits = call(connection, "arm_hits", bank="b", query="sails", during=during)
        return {hit.memory_id: hit.score for hit in hits if hit.arm == "message"}

    plain, dated = scores(None), scores("[2026-03-05,2026-03-06)")

    assert len(set(plain.values())) == 1
    assert [*dated] == [within, before, later, long_ago]
    assert dated[within] == pytest.approx(plain[within])
    assert dated[later] == dated[long_ago] == pytest.approx(plain[within] / 2)
    assert scores("[2026-03-05,)")[later] == pytest.approx(plain[within])
    say(connection, *(f"ana sails to island {n}" for n in range(150)))
    assert [*scores("[2026-03-05,2026-03-06)")][:2] == [within, before]


@pytest.mark.slow
def test_the_gin_index_finds_rare_words_in_messages(connection: Connection) -> None:
    create(connection)
    message_ids = say(connection, *(f"message number {n}" for n in range(3000)))
    connection.execute("analyze pgrecall.message")

    with counted_scans(connection) as scans:
        found = call(connection, "message_arm", bank="b", query="77")

    assert ids(found) == [message_ids[77]]
    assert scans["message_lexical_keys_idx"] == 1


CHAT = ["did you book the ferry?", "yes, for Friday", "good", "what about the hotel?"]


def chat(connection: Connection, texts: list[str], session: str = "s", first: int = 0) -> list[int]:
    """Retain messages of one session, a minute apart."""
    messages = [
        {"text": text, "session": session, "sent_at": f"2026-03-05T10:{minute:02}Z"}
        for minute, text in enumerate(texts, first)
    ]
    rows = call(connection, "retain_messages", bank="b", messages=messages)
    return [row.message_id for row in rows]


def found_by(connection: Connection, query: str) -> dict[int, float]:
    return {
        row.memory_id: row.score for row in call(connection, "message_arm", bank="b", query=query)
    }


def test_a_message_is_found_by_the_words_of_those_beside_it(connection: Connection) -> None:
    create(connection, settings={"message_context_weight": 0.5})
    question, answer, *_ = chat(connection, CHAT)
    chat(connection, ["what else?"], session="another", first=1)

    found = found_by(connection, "ferry")

    assert set(found) == {question, answer}
    assert found[question] > found[answer] > 0


def test_a_message_gets_its_neighbour_with_a_later_call(connection: Connection) -> None:
    create(connection, settings={"message_context_weight": 0.5})
    first, second = chat(connection, CHAT[:2])
    third, fourth = chat(connection, CHAT[2:], first=2)

    assert set(found_by(connection, "Friday")) == {first, second, third}
    assert set(found_by(connection, "hotel")) == {third, fourth}


def test_words_beside_a_message_neither_exclude_it_nor_make_a_phrase(
    connection: Connection,
) -> None:
    create(connection, settings={"message_context_weight": 0.5})
    question, answer, *_ = chat(connection, CHAT)

    assert set(found_by(connection, 'ferry "book the"')) == {question}
    assert set(found_by(connection, "ferry -book")) == {answer}


def test_a_full_refresh_brings_neighbours_into_what_is_stored(connection: Connection) -> None:
    create(connection)
    question, answer, *_ = chat(connection, CHAT)
    assert set(found_by(connection, "ferry")) == {question}

    connection.execute("select pgrecall.configure_bank('b', '{\"message_context_weight\": 1}')")
    connection.execute("select pgrecall.refresh_statistics('b', is_full => true)")
    later = found_by(connection, "ferry")
    fresh = {
        row[0]: row[1]
        for row in connection.execute(
            "select m.message_id, m.lexical_weights::text from pgrecall.message m"
        ).fetchall()
    }
    connection.execute("select pgrecall.refresh_statistics('b', is_full => true)")

    assert set(later) == {question, answer}
    assert found_by(connection, "ferry") == pytest.approx(later)
    assert fresh == dict(
        connection.execute(
            "select m.message_id, m.lexical_weights::text from pgrecall.message m"
        ).fetchall()
    )
