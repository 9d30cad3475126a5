"""retain(): what becomes of a batch of facts."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from pgrecall import Recall
from servers import kept_fixture
from sqlcalls import (
    Connection,
    column,
    contents,
    recalled,
    refused,
    retain,
    retained,
    rows,
    value,
)

ANA = [1, 0, 0]
NEAR_ANA = [0.9, 0.1, 0]
SAM = [0, 0, 1]


@kept_fixture
def bank(connection: Connection) -> None:
    connection.execute("select pgrecall.create_bank('b')")


def entity_of(bank: Connection, memory_id: int) -> list[str]:
    return column(
        bank,
        "select e.name from pgrecall.mention x join pgrecall.entity e using (bank_id, entity_id)"
        " where x.memory_id = %s order by 1",
        memory_id,
    )


def links(bank: Connection) -> set[tuple[int, str, int]]:
    return set(rows(bank, "select from_id, kind, to_id from pgrecall.link"))


# The same fact


def test_rows_come_in_the_order_of_the_facts(bank: Connection) -> None:
    texts = [f"fact {n}" for n in reversed(range(50))]

    found = retained(bank, texts)

    assert [row[0] for row in found] == list(range(50))
    assert all(row[2] for row in found)
    stored = dict(rows(bank, "select memory_id, text from pgrecall.memory"))
    assert [stored[row[1]] for row in found] == texts
    assert [row[1] for row in found] == sorted(row[1] for row in found)


def test_a_batch_retained_twice_is_stored_once(bank: Connection) -> None:
    fact = {
        "text": "Ana leads Atlas",
        "entities": ["Ana"],
        "relations": [{"from": "Ana", "kind": "leads", "to": "Atlas"}],
        "questions": [{"text": "who leads?", "embedding": ANA}],
        "embedding": ANA,
        "occurred": "2026-03-05",
    }
    batch = [fact, {"text": "It began", "links": [{"kind": "causes", "to_index": 0}]}]
    first = retained(bank, batch)
    before = contents(bank)

    second = retained(bank, batch)

    assert second == [(index, memory_id, False) for index, memory_id, _ in first]
    assert contents(bank) == before


def test_a_fact_that_stands_twice_in_a_batch_is_stored_once(bank: Connection) -> None:
    (first, other, again) = retained(bank, ["same", "other", "same"])

    assert again == (2, first[1], False)
    assert (first[2], other[2]) == (True, True)


@pytest.mark.parametrize(
    "difference",
    [
        {"text": "It rained."},
        {"fact_type": "event"},
        {"context": "diary"},
        {"fact_key": "weather"},
        {"source_id": "diary"},
        {"occurred": "2026-03-06"},
        {"occurred": "2026-03-05T00:00Z"},
        {"occurred": ["2026-03-05", None]},
        {"mentioned_at": "2026-03-06"},
    ],
)
def test_another_time_source_or_type_is_another_fact(
    bank: Connection, difference: dict[str, object]
) -> None:
    fact = {"text": "It rained", "occurred": "2026-03-05"}
    retain(bank, [fact])

    assert retained(bank, [fact | difference])[0][2]


@pytest.mark.parametrize(
    "difference",
    [
        {"tags": ["wet"]},
        {"metadata": {"mm": 3}},
        {"confidence": 0.5},
        {"fact_type": None},
        {"fact_type": "world"},
        {"occurred": ["2026-03-05", "2026-03-06"]},
    ],
)
def test_what_is_said_about_a_fact_does_not_make_it_another(
    bank: Connection, difference: dict[str, object]
) -> None:
    fact = {"text": "It rained", "occurred": "2026-03-05"}
    retain(bank, [fact])

    assert not retained(bank, [fact | difference])[0][2]


def test_the_greatest_number_of_proofs_stays(bank: Connection) -> None:
    def proofs(*counts: int | None) -> object:
        *_, (_, known, is_new) = retained(
            bank, ({"text": "It rained", "proof_count": count} for count in counts)
        )
        assert (known, is_new) == (memory_id, False)
        return value(bank, "select proof_count from pgrecall.memory where memory_id = %s", known)

    ((_, memory_id, is_new), _) = retained(bank, ["It rained", {"text": "Sun", "proof_count": 9}])

    assert is_new
    assert proofs(None) == 1
    assert proofs(2, 5, 3) == 5
    assert proofs(4) == proofs(None) == 5
    assert column(bank, "select proof_count from pgrecall.memory order by 1") == [5, 9]


@pytest.mark.parametrize(
    "setting", ["datestyle = 'SQL, DMY'", "timezone = 'Asia/Tokyo'", "extra_float_digits = 0"]
)
def test_a_fact_is_the_same_whatever_the_session_is_set_to(bank: Connection, setting: str) -> None:
    fact = {"text": "x", "occurred": "2026-03-05T14:00:00.5Z", "mentioned_at": "2026-03-06"}
    retain(bank, [fact])
    bank.execute(f"set local {setting}")

    assert not retained(bank, [fact])[0][2]


def test_a_superseded_fact_can_be_retained_again(bank: Connection) -> None:
    (old,) = retain(bank, ["Ana leads Atlas"])
    bank.execute("select pgrecall.supersede('b', %s)", [old])

    ((_, new, is_new),) = retained(bank, ["Ana leads Atlas"])

    assert is_new
    assert new != old
    assert not retained(bank, ["Ana leads Atlas"])[0][2]


def test_nothing_of_a_batch_stays_when_its_last_fact_is_bad(database: str) -> None:
    facts = [
        {"text": f"fact {n}", "entities": [f"E{n}"], "embedding": [n, 1], "occurred": "2026-01-01"}
        for n in range(1, 20)
    ]
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("select pgrecall.create_bank('b')")
        before = contents(connection)

        # It leads to no memory: the last thing to be found out.
        with pytest.raises(psycopg.Error, match=r"facts\[19\]\.links\[0\]"):
            retain(
                connection,
                [*facts, {"text": "x", "links": [{"kind": "causes", "to_key": "nowhere"}]}],
                model="m",
            )

        assert contents(connection) == before


def test_a_batch_of_nothing_is_no_error(bank: Connection) -> None:
    assert retain(bank, []) == []


# Fields


@pytest.mark.parametrize(
    ("kept", "refused_one"),
    [("[" * 99 + "]" * 99, "[" * 100 + "]" * 100), ("1e308", "1e309"), ("-1e308", "[-1e5000]")],
)
def test_no_metadata_keeps_a_client_from_reading_an_answer(
    bank: Connection, kept: str, refused_one: str
) -> None:
    facts = '[{"text": "Ana sails", "metadata": {"n": %s}}]'
    reader = Recall(bank, embedder=None)
    message = "facts[0].metadata: nested 100 levels deep or more, or with a number beyond 1e308"

    with refused(bank, "RC003", message, "as a text"):
        rows(bank, "select pgrecall.retain('b', %s)", facts % refused_one)
    rows(bank, "select pgrecall.retain('b', %s)", facts % kept)

    (hit,) = reader.recall("b", "Ana")
    assert [hit.metadata] == [one.metadata for one in reader.list_memories("b")]


def test_what_is_left_out_or_null_takes_its_default(bank: Connection) -> None:
    fields = (
        "fact_type context fact_key source_id tags metadata occurred mentioned_at confidence "
        "proof_count entities relations links questions embedding"
    ).split()
    retain(bank, [{"text": "bare"}, {"text": "nulls"} | dict.fromkeys(fields)])

    bare, nulls = rows(
        bank,
        """select fact_type, context, fact_key, source_id, tags, metadata, occurred, mentioned_at,
                  valid_from, valid_to, confidence, proof_count, is_linked, now()
           from pgrecall.memory order by memory_id""",
    )
    now = bare[-1]
    expected: tuple[object, ...] = (
        "world",
        None,
        None,
        None,
        [],
        {},
        None,
        now,
        now,
        None,
        1,
        1,
        True,
        now,
    )
    assert bare == expected
    assert nulls == expected


@pytest.mark.parametrize(
    ("occurred", "expected"),
    [
        ("2026-03-05", "[2026-03-05 00:00:00+00,2026-03-06 00:00:00+00)"),
        ("2026-03-05T14:00Z", "[2026-03-05 14:00:00+00,2026-03-05 14:00:00+00]"),
        ("2026-03-05T14:00", "[2026-03-05 14:00:00+00,2026-03-05 14:00:00+00]"),
        ("2026-03-05T14:00+02:00", "[2026-03-05 12:00:00+00,2026-03-05 12:00:00+00]"),
        (["2026-03-05", "2026-03-07T12:00Z"], "[2026-03-05 00:00:00+00,2026-03-07 12:00:00+00)"),
        (["2026-03-05", None], "[2026-03-05 00:00:00+00,infinity)"),
        ([None, "2026-03-05"], "[-infinity,2026-03-05 00:00:00+00)"),
        ([None, None], "[-infinity,infinity)"),
    ],
)
def test_a_time_is_a_day_an_instant_or_a_span(
    bank: Connection, occurred: object, expected: str
) -> None:
    bank.execute("set local timezone = 'Asia/Tokyo'")
    retain(bank, [{"text": "x", "occurred": occurred}])

    bank.execute("set local timezone = 'UTC'")
    assert value(bank, "select replace(occurred::text, '\"', '') from pgrecall.memory") == expected


def test_what_was_said_earlier_holds_from_then_and_what_comes_holds_from_now(
    bank: Connection,
) -> None:
    retain(bank, [{"text": "a", "mentioned_at": "2020-01-01"}])
    retain(bank, [{"text": "b", "mentioned_at": "2999-01-01"}])

    assert rows(
        bank, "select valid_from = mentioned_at, valid_from = now() from pgrecall.memory order by 1"
    ) == [(False, True), (True, False)]


@pytest.mark.parametrize("facts", ['"Ana rows"', ["Ana rows"], {"text": "Ana rows"}])
def test_a_text_is_a_fact_and_one_fact_needs_no_array(bank: Connection, facts: Any) -> None:
    given = facts if isinstance(facts, str) else json.dumps(facts)

    bank.execute("select pgrecall.retain('b', %s)", [given])

    assert value(bank, "select text from pgrecall.memory") == "Ana rows"


def test_a_row_says_whether_the_fact_has_an_embedding(bank: Connection) -> None:
    retain(bank, [{"text": "a", "embedding": [1, 0, 0]}])

    facts = json.dumps(["a", "b"])

    assert rows(bank, f"select is_new, is_embedded from pgrecall.retain('b', '{facts}')") == [
        (False, True),
        (True, False),
    ]


@pytest.mark.parametrize("embedding", [[0.5, -1, 2e-3], "[0.5,-1,0.002]", " [0.5, -1, 2e-3] "])
def test_an_embedding_is_an_array_or_a_string(bank: Connection, embedding: object) -> None:
    retain(bank, [{"text": "x", "embedding": embedding}])

    assert value(
        bank, "select l2_distance(embedding, '[0.5,-1,0.002]') < 1e-6 from pgrecall.embedding"
    )


def test_a_question_leads_to_its_fact(bank: Connection) -> None:
    questions = [{"text": "who?", "embedding": SAM}, {"text": "what?", "embedding": NEAR_ANA}]
    (memory_id,) = retain(bank, [{"text": "x", "embedding": [0, 1, 0], "questions": questions}])

    found = rows(bank, "select memory_id, score from pgrecall.semantic_arm('b', '[0,0,1]')")

    assert found == [(memory_id, 1)]
    assert rows(bank, "select kind, ordinal from pgrecall.embedding order by 1, 2") == [
        ("question", 0),
        ("question", 1),
        ("text", 0),
    ]


# Dimensions and model


def test_the_first_embedding_and_the_first_model_are_pinned(bank: Connection) -> None:
    retain(bank, ["no embedding"], model="m")
    unpinned = rows(bank, "select embedding_model, embedding_dimensions from pgrecall.bank")
    retain(bank, ["none", {"text": "x", "embedding": ANA}], model="m")

    assert unpinned == [(None, None)]
    assert rows(bank, "select embedding_model, embedding_dimensions from pgrecall.bank") == [
        ("m", 3)
    ]
    assert column(bank, "select model from pgrecall.embedding") == ["m"]


def test_a_question_pins_the_dimensions_too(bank: Connection) -> None:
    (memory_id,) = retain(bank, [{"text": "x", "questions": [{"embedding": ANA}]}], model="m")

    assert column(bank, "select memory_id from pgrecall.semantic_arm('b', '[1,0,0]')") == [
        memory_id
    ]


def test_embeddings_stored_before_the_model_was_named_are_still_found(bank: Connection) -> None:
    old = retain(bank, [{"text": "old", "embedding": ANA}])
    new = retain(bank, [{"text": "new", "embedding": NEAR_ANA}], model="m")

    assert column(bank, "select memory_id from pgrecall.semantic_arm('b', '[1,0,0]')") == old + new


# Entities


@pytest.mark.parametrize("split", [False, True], ids=["in a batch", "across batches"])
def test_names_alike_but_for_case_and_punctuation_are_one_entity(
    bank: Connection, split: bool
) -> None:
    names = ["Ana  Silva", "ana silva", "ANA-SILVA", "Ana Silva."]
    facts = [{"text": name, "entities": [name]} for name in names]
    if split:
        for fact in facts:
            retain(bank, [fact])
    else:
        retain(bank, facts)

    assert column(bank, "select name from pgrecall.entity") == ["Ana  Silva"]
    assert value(bank, "select count(*) from pgrecall.mention") == 4


@pytest.mark.parametrize("split", [False, True], ids=["in a batch", "across batches"])
def test_an_alias_leads_to_the_entity(bank: Connection, split: bool) -> None:
    full = {"text": "x", "entities": [{"name": "Ana Silva", "kind": "person", "aliases": ["Ana"]}]}
    short = {"text": "y", "entities": ["Ana"]}
    if split:
        (first,), (second,) = retain(bank, [full]), retain(bank, [short])
    else:
        second, first = retain(bank, [short, full])

    assert rows(bank, "select name, kind from pgrecall.entity") == [("Ana Silva", "person")]
    assert entity_of(bank, first) == entity_of(bank, second) == ["Ana Silva"]


@pytest.mark.parametrize(
    ("entities", "expected"),
    [
        ({"NYC": ["New York"], "New York": ["NYC"]}, ["NYC"]),
        ({"A": ["B"], "B": ["C"], "C": ["A"]}, ["A", "C"]),
        ({"A": ["B"], "B": ["C"], "C": []}, ["A", "C"]),
        ({"B": ["C"], "A": ["B"], "C": []}, ["A", "B"]),
        ({"B": ["C"], "A": ["B"]}, ["A", "B"]),
        ({"A": ["A"]}, ["A"]),
    ],
)
def test_names_that_go_by_one_another_still_become_entities(
    bank: Connection, entities: dict[str, list[str]], expected: list[str]
) -> None:
    declared = [{"name": name, "aliases": aliases} for name, aliases in entities.items()]

    found = retain(bank, ({"text": str(n), "entities": [e]} for n, e in enumerate(declared)))

    assert column(bank, "select name from pgrecall.entity order by 1") == expected
    named = [entity_of(bank, memory_id) for memory_id in found]
    assert [len(names) for names in named] == [1] * len(found)
    assert sorted({name for names in named for name in names}) == expected


def test_a_kind_is_kept_wherever_in_the_batch_it_stands(bank: Connection) -> None:
    retain(bank, [{"text": "x", "entities": ["Oslo", {"name": "oslo", "kind": "place"}]}])

    assert rows(bank, "select name, kind from pgrecall.entity") == [("oslo", "place")]


def test_both_ends_of_a_relation_are_entities_and_mentions(bank: Connection) -> None:
    relation = {
        "from": "Ana",
        "kind": "reports_to",
        "to": "Sam",
        "confidence": 0.5,
        "valid_from": "2026-01-01",
        "valid_to": "2026-02-01T00:00Z",
    }
    to_itself = {"from": "Ana", "kind": "is", "to": "ANA"}

    (memory_id,) = retain(bank, [{"text": "x", "relations": [relation, to_itself]}])

    assert entity_of(bank, memory_id) == ["Ana", "Sam"]
    assert rows(
        bank,
        """select f.name, r.kind, t.name, r.confidence, r.memory_id,
                  r.valid_from = '2026-01-01Z', r.valid_to = '2026-02-01Z'
           from   pgrecall.relation r
           join   pgrecall.entity f on f.entity_id = r.from_id
           join   pgrecall.entity t on t.entity_id = r.to_id""",
    ) == [("Ana", "reports_to", "Sam", 0.5, memory_id, True, True)]


# Links


def test_a_cause_is_named_by_id_position_or_key(bank: Connection) -> None:
    (known,) = retain(bank, [{"text": "known", "fact_key": "in.bank"}])

    a, b = retain(
        bank,
        [
            {
                "text": "a",
                "links": [
                    {"kind": "causes", "to_index": 1, "weight": 0.5},
                    {"kind": "enables", "to_id": known},
                    {"kind": "prevents", "to_id": str(known), "to_index": None},
                    {"kind": "caused_by", "to_key": "IN.BANK"},
                    {"kind": "enables", "to_key": "in.batch"},
                    {"kind": "causes", "to_index": 1, "to_id": None, "to_key": None},
                ],
            },
            {
                "text": "b",
                "fact_key": "in.batch",
                "links": [{"kind": "causes", "to_key": "in.bank"}],
            },
        ],
    )

    assert links(bank) == {
        (a, "causes", b),
        (a, "enables", known),
        (a, "prevents", known),
        (a, "caused_by", known),
        (a, "enables", b),
        (b, "causes", known),
    }
    assert value(
        bank, "select weight from pgrecall.link where kind = 'causes' and to_id = %s", b
    ) == pytest.approx(0.5)


def test_a_key_leads_to_the_fact_that_still_holds(bank: Connection) -> None:
    old, new = retain(bank, [{"text": "v1", "fact_key": "k"}, {"text": "v2", "fact_key": "k"}])
    bank.execute("select pgrecall.supersede('b', %s, %s)", [new, old])

    (source,) = retain(bank, [{"text": "x", "links": [{"kind": "causes", "to_key": "k"}]}])

    assert links(bank) == {(source, "causes", old)}


def test_of_facts_of_one_time_each_is_linked_to_the_one_stored_before(bank: Connection) -> None:
    facts = [{"text": str(n), "occurred": "2026-03-05"} for n in range(30)]

    found = retain(bank, facts)

    assert links(bank) == {(b, "temporal", a) for a, b in pairwise(found)}


def test_a_fact_is_linked_to_the_one_before_it_within_a_day(bank: Connection) -> None:
    a, b, c, _, same = retain(
        bank,
        [
            {"text": "a", "occurred": "2026-03-05T00:00Z"},
            {"text": "b", "occurred": "2026-03-05T06:00Z", "fact_type": "event"},
            {"text": "c", "occurred": "2026-03-05T18:00Z"},
            {"text": "days later", "occurred": "2026-03-08"},
            {"text": "same", "occurred": "2026-03-05T18:00Z"},
        ],
    )

    found = {
        (row[0], row[1]): row[2]
        for row in rows(
            bank, "select from_id, to_id, weight from pgrecall.link where kind = 'temporal'"
        )
    }

    assert found == pytest.approx({(b, a): 0.75, (c, b): 0.5, (same, c): 1})


def test_a_day_of_25_hours_in_the_time_zone_of_the_session_links_no_further(
    bank: Connection,
) -> None:
    bank.execute("set local timezone = 'Europe/Berlin'")
    facts = [
        {"text": "a", "occurred": "2026-10-24T10:30Z"},
        {"text": "b", "occurred": "2026-10-25T11:00Z"},
    ]
    _, last = retain(bank, facts, link="deferred")

    linked = value(bank, "select pgrecall.link_pending('b')")
    version = value(
        bank, "select memory_id from pgrecall.update_memory('b', %s, '{\"tags\": [\"t\"]}')", last
    )

    assert linked == 2
    assert links(bank) == {(version, "temporal", last)}


def test_what_took_longer_than_a_day_is_next_to_nothing_in_time(bank: Connection) -> None:
    long = [["2026-03-05", "2026-03-07"], ["2026-03-05", None], [None, "2026-03-05"]]
    facts = [
        {"text": "a", "occurred": "2026-03-05"},
        *({"text": f"of a time {n}", "occurred": occurred} for n, occurred in enumerate(long)),
        {"text": "b", "occurred": "2026-03-05"},
        {"text": "of an hour", "occurred": ["2026-03-05T12:00Z", "2026-03-05T13:00Z"]},
        {"text": "of two days", "occurred": ["2026-03-05T15:00Z", "2026-03-07T15:00Z"]},
    ]

    a, *_, b, hour, _ = retain(bank, facts)

    assert links(bank) == {(b, "temporal", a), (hour, "temporal", b)}


def test_deferred_links_are_the_same_once_they_are_written(bank: Connection) -> None:
    bank.execute("select pgrecall.create_bank('now')")
    facts: list[dict[str, Any]] = [
        {"text": f"f {n}", "embedding": [1, n / 10], "occurred": f"2026-03-05T{n:02}:00Z"}
        for n in range(9)
    ]
    retain(bank, facts, bank="now")
    retain(bank, facts, link="deferred")
    deferred = value(bank, "select count(*) from pgrecall.link where bank_id = 'b'")

    done = [value(bank, "select pgrecall.link_pending('b', 4)") for _ in range(4)]

    assert (deferred, done) == (0, [4, 4, 1, 0])
    by_text = """select a.text, l.kind, b.text, l.weight from pgrecall.link l
                 join pgrecall.memory a on a.memory_id = l.from_id
                 join pgrecall.memory b on b.memory_id = l.to_id
                 where l.bank_id = %s and l.kind = 'temporal' order by 1, 2, 3"""
    assert rows(bank, by_text, "b") == rows(bank, by_text, "now") != []


# Found again


def test_what_was_retained_is_found_by_the_next_statement(bank: Connection) -> None:
    for n in range(40):
        retain(bank, [f"filler number {n} about the weather"])

    retain(bank, ["The zyxogram is in order", {"text": "Ana's key", "fact_key": "vault.code"}])

    assert recalled(bank, "zyxogram") == ["The zyxogram is in order"]
    assert recalled(bank, "vault.code", arms=["key"]) == ["Ana's key"]


def test_statistics_follow_growth_by_more_than_a_tenth(bank: Connection) -> None:
    state = "select document_count, waiting from pgrecall.bank_statistics('b')"
    retain(bank, (f"fact {n}" for n in range(100)))
    grown = [rows(bank, state)[0]]
    retain(bank, (f"more {n}" for n in range(10)))
    grown.append(rows(bank, state)[0])
    retain(bank, ["one too many"])
    grown.append(rows(bank, state)[0])

    assert grown == [(100, 0), (100, 10), (111, 0)]
    counts = "select document_count from pgrecall_internal.lexeme where lexeme = %s"
    assert value(bank, counts, "fact") == 100
    assert value(bank, counts, "7") == 2


def test_what_is_called_for_each_fact_is_planned_once(bank: Connection) -> None:
    planned_anew = """
        select p.proname from pg_proc p
        where  p.oid = any (array['_read_facts', '_store_memories', '_document_weights']::regproc[])
          and  not 'plan_cache_mode=force_generic_plan' = any (p.proconfig)"""
    bank.execute("set local search_path = pgrecall_internal")

    assert rows(bank, planned_anew) == []


def entered(bank: Connection, statement: str, *values: object) -> dict[str, int]:
    """How often each function is called, a second time that a statement runs."""
    calls = "select funcname, calls from pg_stat_xact_user_functions"
    rows(bank, statement, *values)
    bank.execute("set local track_functions = 'all'")
    before = dict(rows(bank, calls))
    rows(bank, statement, *values)
    after = dict(rows(bank, calls))
    return {name: n - before.get(name, 0) for name, n in after.items() if n > before.get(name, 0)}


TEXTS = """to_jsonb(array(
    select jsonb_build_object('text', format('fact %s', (random() * 1e9)::integer))
    from   generate_series(1, 9)))"""


def test_facts_without_names_and_links_enter_nothing_that_writes_those(bank: Connection) -> None:
    found = entered(bank, f"select pgrecall.retain('b', {TEXTS})")

    assert found["_store_memories"] == 1
    assert {
        *("_lock_names", "_store_short_names", "_store_entities", "_store_mentions"),
        *("_store_relations", "_store_causal_links"),
    }.isdisjoint(found)


def test_facts_that_name_who_is_known_enter_nothing_that_writes_entities(bank: Connection) -> None:
    fact = {"text": "Ana sails", "entities": [{"name": "Ana", "kind": "person"}, "Bo"]}
    again = {**fact, "entities": [{"name": "Ana", "aliases": ["Captain"]}]}

    found = entered(bank, "select pgrecall.retain('b', %s)", json.dumps(fact))
    retain(bank, [again])

    assert found["_store_mentions"] == 1
    assert {"_store_short_names", "_store_entities"}.isdisjoint(found)
    assert column(bank, "select alias from pgrecall.entity_alias order by 1") == [
        *("ana", "bo", "captain"),
    ]


def test_facts_and_messages_are_weighed_together(bank: Connection) -> None:
    for function in ("retain", "retain_messages"):
        assert "_document_weights" not in entered(bank, f"select pgrecall.{function}('b', {TEXTS})")


def test_the_ids_of_messages_are_looked_up_once(bank: Connection) -> None:
    message = json.dumps([{"text": "hello"}])

    found = entered(bank, "select pgrecall.retain_messages('b', %s)", message)

    assert found["_message_ids"] == 1


def test_what_is_written_and_forgotten_is_planned_once(bank: Connection) -> None:
    planned_anew = """
        select p.proname from pg_proc p
        where  p.oid = any (array[
                 'pgrecall.retain', 'pgrecall.retain_messages', 'pgrecall.forget',
                 'pgrecall_internal._store_messages', 'pgrecall_internal._uncount_memories',
                 'pgrecall_internal._counted_messages', 'pgrecall_internal._recount_lexemes',
                 'pgrecall_internal._recount_mentions']::regproc[])
          and  not 'plan_cache_mode=force_generic_plan' = any (p.proconfig)"""

    assert rows(bank, planned_anew) == []
