"""The generated files are fresh, and a new option of a recall needs no other edit in Python."""

from __future__ import annotations

import importlib.util
import inspect
from types import ModuleType
from typing import Any

import psycopg
import pytest

from pgrecall import AsyncRecall, Recall
from pgrecall.asking.question import Question
from pgrecall.server import build
from pgrecall.settings import Settings

Connection = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", build.PACKAGE.parent / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_client_is_as_the_async_one_has_it(generate: ModuleType) -> None:
    assert generate.CLIENT.read_text() == generate.client_source(), "run: make generate"


def test_the_options_are_as_the_database_has_them(
    generate: ModuleType, connection: Connection
) -> None:
    source = generate.options_source(connection)

    assert generate.OPTIONS.read_text() == source, "run: make generate"


def test_both_clients_have_the_same_methods_and_arguments() -> None:
    def signatures(kind: type) -> dict[str, list[str]]:
        return {
            name: list(inspect.signature(method).parameters)
            for name, method in vars(kind).items()
            if inspect.isfunction(method) and not name.startswith("__")
        }

    assert signatures(AsyncRecall) == signatures(Recall)


def test_the_sync_client_waits_for_nothing(generate: ModuleType) -> None:
    words = generate.CLIENT.read_text().split()

    assert not {"async", "await", "asyncio"} & set(words)


def test_an_option_added_in_sql_is_one_of_the_driver(
    generate: ModuleType, connection: Connection
) -> None:
    row = "('arms', 'text[]',"
    added = (
        "('loudness', 'text', '\"low\"', 'low, high', 'How loud.', null, null,"
        " '{low,high}', true),\n      "
    )
    assert row in _sql_of_the_options()
    connection.execute(_sql_of_the_options().replace(row, added + row).encode())

    source = generate.options_source(connection)

    assert 'loudness: Literal["low", "high"] | None' in source
    assert "loudness: How loud. One of: low, high. Default: the bank's, else low." in source


def test_an_option_that_the_driver_does_not_know_is_sent() -> None:
    settings = Settings.of(None, None, None, None)
    question = Question(settings, "b", "who?", {"loudness": "high"})

    parameters = question.call().parameters

    assert repr(parameters["options"]) == "Jsonb({'loudness': 'high'})"


def _sql_of_the_options() -> str:
    """Return the statement that creates recall_options()."""
    for file in build.SQL.glob("*/*.sql"):
        text = file.read_text()
        begin = text.find("create or replace function pgrecall.recall_options()")
        if begin >= 0:
            return text[begin : text.index("\nend;", begin) + len("\nend;")]
    raise AssertionError("no file creates recall_options()")
