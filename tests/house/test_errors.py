"""Bad input: for each its SQLSTATE, its message and its hint."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest

from servers import kept_fixture
from sqlcalls import FAMILY, Connection, call, contents, refused, retain, rows

TYPES = "event, experience, observation, opinion, preference, world"


@kept_fixture
def bank(connection: Connection) -> None:
    """Bank b has 3 dimensions of model m and a fact; bank open has nothing pinned."""
    connection.execute("select pgrecall.create_bank('b', 'english', 'm', 3)")
    connection.execute("select pgrecall.create_bank('open')")
    known = {"text": "known", "fact_key": "k", "tags": ["t"], "occurred": "2026-03-05"}
    retain(connection, [known])


def bad(section: str, *more: tuple[object, ...]) -> pytest.MarkDecorator:
    """Parametrise with a section of bad_input.txt: input, where or SQLSTATE, message, hint."""
    text = Path(__file__).with_name("bad_input.txt").read_text(encoding="utf-8")
    lines = text.split(f"[{section}]\n")[1].split("\n\n")[0].splitlines()
    cases = [*(tuple(line.split(" | ")) for line in lines), *more]
    names = (
        ["given", "where", "message", "hint"]
        if len(cases[0]) == 4
        else ["given", "message", "hint"]
    )
    return pytest.mark.parametrize(names, cases, ids=[f"{case[0]}"[:60] for case in cases])


CALLS = [
    "drop_bank({})",
    "configure_bank({}, '{{}}')",
    "add_fact_type({}, 'x')",
    "retain({}, '[]')",
    "forget({}, '{{}}')",
    "forget_messages({}, '{{}}')",
    "supersede({}, 1)",
    "supersede({}, 1, dry_run => true)",
    "unsupersede({}, 1)",
    "near_copies({}, 1)",
    "consolidate({})",
    "consolidate({}, false)",
    "unconsolidate({})",
    "quarantine({}, 's')",
    "quarantine({}, 's', true)",
    "release({}, 's')",
    "audit({})",
    "retain_messages({}, '[]')",
    "log_session({}, 's')",
    "last_session_end({})",
    "refresh_statistics({})",
    "bank_statistics({})",
    "highlight({}, 1, 'q')",
    "vocabulary_drift({})",
    "snapshot_vocabulary({})",
    "link_pending({})",
    "pending_links({})",
    "query_entities({}, 'q')",
    "without_names({}, 'q')",
    "merge_entities({}, 1, '{{2}}')",
    "split_entity({}, 1, '{{1}}', 'x')",
    "rename_entity({}, 1, 'x')",
    "duplicate_entities({})",
    "neighbours({}, 1)",
    "path({}, 1, 2)",
    "semantic_arm({}, '[1]')",
    "hypothetical_arm({}, '[1]')",
    "lexical_arm({}, 'q')",
    "key_arm({}, 'q')",
    "graph_arm({}, 'q')",
    "entity_walk({}, 'q')",
    "temporal_arm({}, '[2026-01-01,)')",
    "message_arm({}, 'q')",
    "link_expansion({}, '{{1}}')",
    "hybrid_recall({}, 'q')",
    "explain_recall({}, 'q')",
    "recall_report({}, 'q')",
    "arm_hits({}, 'q')",
    "why_not({}, 'q', 1)",
    "bank_options({})",
    "bank_models({})",
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.split("(")[0])
def test_an_unknown_bank_is_refused(connection: Connection, call: str) -> None:
    hint = r"^Create it with: select pgrecall\.create_bank\('no'\);$"
    with refused(connection, "RC001", 'bank "no" does not exist', hint):
        connection.execute("select pgrecall." + call.format("'no'"))


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.split("(")[0])
def test_no_bank_is_refused(connection: Connection, call: str) -> None:
    with refused(connection, "22004", "bank must not be null", "bank_overview lists them"):
        connection.execute("select pgrecall." + call.format("null"))


def test_the_hint_for_a_misspelt_bank_names_the_nearest(connection: Connection) -> None:
    connection.execute("select pgrecall.create_bank(n) from unnest('{agent,tasks,team}'::text[]) n")
    hint = r"^Did you mean \"agent\"\? Create it with: select pgrecall\.create_bank\('agnet'\);$"
    with refused(
        connection, "RC001", 'bank "agents" does not exist', r'^Did you mean "agent"\? Cre'
    ):
        connection.execute("select pgrecall.hybrid_recall('agents', 'x')")
    with refused(
        connection, "RC001", 'bank "agemt" does not exist', hint.replace("agnet", "agemt")
    ):
        connection.execute("select pgrecall.hybrid_recall('agemt', 'x')")
    with refused(connection, "RC001", 'bank "house" does not exist', "^Create it with"):
        connection.execute("select pgrecall.hybrid_recall('house', 'x')")


def test_the_hint_for_a_misspelt_bank_names_none_that_row_security_hides(
    database: str,
) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("select pgrecall.create_roles('fence')")
        connection.execute("select pgrecall.create_bank('agent')")
        connection.execute("select pgrecall.enable_row_security()")
        connection.execute("set role fence_reader")
        with pytest.raises(psycopg.Error) as caught:
            connection.execute("select pgrecall.hybrid_recall('agents', 'x')")

    hint = str(caught.value.diag.message_hint)
    assert "Row security shows" in hint
    assert "agent" not in hint


def test_the_hint_for_an_unknown_bank_quotes_its_name(connection: Connection) -> None:
    hint = r"pgrecall\.create_bank\('it''s \"x\"'\);$"
    with refused(connection, "RC001", 'bank "it\'s "x"" does not exist', hint):
        connection.execute("select pgrecall.bank_statistics(%s)", ['it\'s "x"'])


@bad("calls")
def test_a_call_that_makes_no_sense_is_refused(
    bank: Connection, given: str, where: str, message: str, hint: str
) -> None:
    bank.execute("set local timezone = 'UTC'")
    with refused(bank, where, message, hint):
        rows(bank, "select pgrecall." + given)


@pytest.mark.parametrize("depth", ["0", "-1", "10001"])
@pytest.mark.parametrize(
    "call",
    [
        "semantic_arm('b', '[1,0,0]'",
        "lexical_arm('b', 'q'",
        "key_arm('b', 'q'",
        "graph_arm('b', 'q'",
        "temporal_arm('b', '[2026-01-01,)'",
        "message_arm('b', 'q'",
        "link_expansion('b', '{1}'",
    ],
)
def test_a_depth_out_of_range_is_refused(bank: Connection, call: str, depth: str) -> None:
    message = f"depth must be between 1 and 10000, not {depth}"
    with refused(bank, "22023", message, r"^The default is 100\.$"):
        rows(bank, f"select pgrecall.{call}, depth => {depth})")


@bad(
    "recalls",
    (
        json.dumps({"query": "x" * 100001}),
        "22023",
        "query has 100001 characters, more than 100000",
        "^Pass only the part",
    ),
)
@pytest.mark.parametrize("function", sorted(FAMILY))
def test_a_recall_that_makes_no_sense_is_refused(
    bank: Connection, function: str, given: str, where: str, message: str, hint: str
) -> None:
    arguments = {"query": "q"} | json.loads(given)
    with refused(bank, where, message, hint):
        call(bank, function, **{"bank": "b", **arguments})


@bad(
    "facts",
    *(
        (json.dumps(fact), place, f"{length} characters are more than {most}", hint)
        for fact, place, length, most, hint in [
            ({"text": "x" * 100001}, ".text", 100001, 100000, "^Split it"),
            ({"fact_key": "é" * 3000}, ".fact_key", 3000, 500, "^Shorten it"),
            ({"source_id": "é" * 501}, ".source_id", 501, 500, "^Shorten it"),
            (
                {"relations": [{"from": "A", "kind": "k" * 501, "to": "B"}]},
                ".relations[0].kind",
                501,
                500,
                "^Shorten it",
            ),
        ]
    ),
)
def test_a_malformed_fact_is_refused_by_position_and_field(
    bank: Connection, given: str, where: str, message: str, hint: str
) -> None:
    with refused(bank, "RC003", f"facts[1]{where}: {message}", hint):
        retain(bank, ["good", with_text(given)])


def with_text(given: str) -> object:
    fact = json.loads(given)
    return {"text": "x"} | fact if isinstance(fact, dict) and fact else fact


@bad("embeddings")
@pytest.mark.parametrize("place", ["embedding", "questions[0].embedding"])
@pytest.mark.parametrize("bank_id", ["b", "open"])
def test_an_unusable_embedding_is_refused_by_position_and_field(
    bank: Connection, bank_id: str, place: str, given: str, where: str, message: str, hint: str
) -> None:
    fields = {"embedding": json.loads(given)}
    fact = {"text": "x"} | (fields if place == "embedding" else {"questions": [fields]})
    first = {"text": "y"} | ({"embedding": [1, 0, 0]} if where == "RC004" else {})
    if bank_id == "open" and where == "RC004":
        hint = "another model"
    with refused(bank, where, f"facts[1].{place}: {message}", hint):
        retain(bank, [first, fact], bank=bank_id)


def test_an_embedding_too_long_to_be_indexed_is_refused(bank: Connection) -> None:
    message = "facts[1].embedding: expected at most 4000 dimensions, not 4001"
    with refused(bank, "RC004", message, "fewer dimensions"):
        retain(bank, ["x", {"text": "y", "embedding": [1] * 4001}], bank="open")


def test_an_unknown_fact_type_in_a_fact_is_refused(bank: Connection) -> None:
    message = 'facts[1].fact_type: bank "b" has no fact type "gossip"'
    hint = rf"^It has {TYPES}\. Add one with: select pgrecall\.add_fact_type\('b', 'gossip'\);$"
    with refused(bank, "RC008", message, hint):
        retain(bank, ["x", {"text": "y", "fact_type": "gossip"}])


def test_a_link_to_no_memory_is_refused(bank: Connection) -> None:
    message = 'facts[0].links[0]: no memory of bank "b" answers to {"to_key": "nowhere"}'
    with refused(bank, "RC003", message, "^Retain the fact that it leads to first"):
        retain(bank, [{"text": "y", "links": [{"kind": "causes", "to_key": "nowhere"}]}])


@pytest.mark.parametrize(
    ("text", "code", "message", "detail"),
    [
        ("a\0b", "22P05", "unsupported Unicode escape sequence", r"\u0000 cannot be converted to"),
        ("\ud800", "22P02", "invalid input syntax for type json", "low surrogate"),
    ],
)
def test_text_that_is_no_unicode_is_refused_by_the_server(
    bank: Connection, text: str, code: str, message: str, detail: str
) -> None:
    with pytest.raises(psycopg.Error) as caught, bank.transaction():
        retain(bank, ["x", {"text": text}])

    diagnosis = caught.value.diag
    assert (diagnosis.sqlstate, diagnosis.message_primary) == (code, message)
    assert detail in str(diagnosis.message_detail)


def test_a_memory_cannot_supersede_itself(bank: Connection) -> None:
    (known,) = retain(bank, ["x"])
    with refused(bank, "22023", f"memory {known} cannot supersede itself", "newer memory"):
        bank.execute("select pgrecall.supersede('b', %s, %s)", [known, known])


def nested(levels: int) -> str:
    return '["not", ' * levels + '["is null", "text"]' + "]" * levels


@bad("filters", (nested(60), '"not" has 1 conditions', "nested at most 50 deep"))
@pytest.mark.parametrize(
    "call",
    [
        "hybrid_recall('b', 'known', filter => %s)",
        "lexical_arm('b', 'known', filter => %s)",
        "semantic_arm('b', '[1,0,0]', filter => %s)",
        "key_arm('b', 'k', filter => %s)",
        "temporal_arm('b', '[2026-03-01,2026-04-01)', filter => %s)",
        "link_expansion('b', '{1}', filter => %s)",
    ],
    ids=lambda call: call.split("(")[0],
)
def test_a_filter_that_is_none_is_refused_naming_what(
    bank: Connection, call: str, given: str, message: str, hint: str
) -> None:
    with refused(bank, "RC011", f"filter: {message}", hint):
        bank.execute("select * from pgrecall." + call, [given])


def test_after_an_error_nothing_has_been_written(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("select pgrecall.create_bank('b', 'english', 'm', 3)")
        connection.execute("select pgrecall.create_bank('open')")
        retain(connection, [{"text": "known", "embedding": [1, 0, 0], "entities": ["Ana"]}])
        before = contents(connection)
        good = {"text": "good", "embedding": [1, 0, 0], "entities": ["Sam"]}

        for case in bad("calls").args[1]:
            with pytest.raises(psycopg.Error):
                connection.execute(f"select pgrecall.{case[0]}".encode())
        for case in bad("facts").args[1]:
            for bank in ("b", "open"):
                with pytest.raises(psycopg.Error):
                    retain(connection, [good, with_text(case[0])], bank=bank, model="m")

        assert contents(connection) == before


MISTAKES = [
    "create_bank('')",
    "hybrid_recall('b', '')",
    "hybrid_recall('b', 'x', filter => 'confidnce > 3')",
    "hybrid_recall('b', 'x', options => '{\"diversity\": 3}')",
    "hybrid_recall('b', 'x', options => '{\"window\": \"last autumn\"}')",
    "hybrid_recall('b', 'x', embedding => '[1, 2]')",
    "recall_report('b', 'x', fact_types => '{mood}')",
    "explain_recall('b', 'x', top_k => 0)",
    "arm_hits('b', 'x', options => '{\"arms\": [\"psychic\"]}')",
    "why_not('b', 'x', -1)",
    "list_memories('b', filter => 'confidence >')",
    "find_memories('b', 'x', filter => 'confidence >')",
    'retain(\'b\', \'{"text": "x", "occurred": "maybe"}\')',
    'retain(\'b\', \'{"text": "x", "links": [{"kind": "causes", "to_key": "nowhere"}]}\')',
    'retain(\'b\', \'{"text": "x", "fact_type": "gossip"}\')',
    "retain('b', '{\"text\": \"x\"}', 'another model')",
    "retain_messages('b', '[{\"txt\": \"x\"}]')",
    "attach_table('b', 'pg_class', 'no', 'relname')",
    "rename_entity('b', 1, 'x')",
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake[:60])
def test_every_mistake_has_a_hint(bank: Connection, mistake: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        bank.execute(f"select pgrecall.{mistake}".encode())

    assert caught.value.diag.message_hint


def test_a_reader_who_writes_is_told_who_may(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("select pgrecall.create_roles('house'), pgrecall.create_bank('b')")
        connection.execute("set role house_reader")
        for call in ("retain('b', '\"x\"')", "forget('b', '{1}')", "configure_bank('b', '{}')"):
            with pytest.raises(psycopg.Error) as caught, connection.transaction():
                connection.execute(f"select pgrecall.{call}".encode())

            assert "may not write into bank" in str(caught.value.diag.message_primary)
            assert "grant" in str(caught.value.diag.message_hint)
        connection.rollback()


def test_a_reader_who_makes_or_drops_banks_is_told_who_may(database: str) -> None:
    """A grant that lets it write would be refused again."""
    with psycopg.connect(database) as connection:
        connection.execute("select pgrecall.create_roles('house'), pgrecall.create_bank('b')")
        connection.execute("set role house_reader")
        rows = "(select jsonb_agg(r) from pgrecall.exported_rows('b') r)"
        for call in ("clone_bank('b', 'c')", "drop_bank('b')", f"import_rows('b', {rows})"):
            with pytest.raises(psycopg.Error) as caught, connection.transaction():
                connection.execute(f"select pgrecall.{call}".encode())

            assert "grant house_admin to" in str(caught.value.diag.message_hint)
        connection.rollback()


def test_many_calls_in_a_transaction_take_no_transaction_id_each(database: str) -> None:
    """PostgreSQL remembers 64 subtransactions that wrote; with more, others read more slowly."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("select pgrecall.create_bank('b', 'english', 'm', 3)")
        ((known, *_),) = [retain(connection, [{"text": "known"}])]
        with connection.transaction():
            before = connection.execute("select pg_current_xact_id()::text::bigint").fetchone()
            for number in range(3):
                retain(connection, [{"text": f"fact {number}", "embedding": [1, 0, number]}])
                connection.execute("select pgrecall.retain_messages('b', '[{\"text\": \"x\"}]')")
                connection.execute("select pgrecall.log_session('b', 's')")
                change = json.dumps({"text": f"known {number}"})
                ((known,),) = rows(
                    connection,
                    "select memory_id from pgrecall.update_memory('b', %s, %s)",
                    *(known, change),
                )
                connection.execute("select pgrecall.supersede('b', %s)", [known])
                connection.execute("select pgrecall.unsupersede('b', %s)", [known])
                connection.execute("select pgrecall.forget('b', '{1}')")
        after = connection.execute("select pg_current_xact_id()::text::bigint").fetchone()
    assert before
    assert after
    assert after[0] == before[0] + 1


def test_a_session_that_would_misread_functions_is_refused(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("select pgrecall.create_bank('b')")
        connection.execute("select pgrecall.retain('b', '[\"kept\"]')")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("set standard_conforming_strings = off")
        for one in ("hybrid_recall('b', 'kept')", "forget_where('b', filter => 'confidence < 1')"):
            with refused(
                connection, "55000", "standard_conforming_strings is off: functions and filters"
                " would be misread", "^Run: set standard_conforming_strings = on;$"
            ):  # fmt: skip
                connection.execute(f"select pgrecall.{one}".encode())


def test_a_session_that_would_erase_a_part_only_is_refused(connection: Connection) -> None:
    connection.execute("select pgrecall.create_bank('b')")
    connection.execute("select pgrecall.retain('b', '[\"kept\"]')")
    connection.execute("set session_replication_role = replica")
    for one in ("forget_where('b', filter => 'confidence < 2')", "drop_bank('b')"):
        with refused(
            connection,
            "55000",
            "session_replication_role is replica: what hangs on a row would outlive it",
            "^Run: set session_replication_role = origin;$",
        ):
            connection.execute(f"select pgrecall.{one}".encode())

    assert connection.execute("select text from pgrecall.hybrid_recall('b', 'kept')").fetchall()
