"""What STABLE.md promises is what there is."""

from __future__ import annotations

import re

from pgrecall.server import build
from sqlcalls import Connection, column

TEXT = (build.MIGRATIONS / "STABLE.md").read_text(encoding="utf-8")


def test_every_public_table_and_view_may_be_queried_and_is_named(connection: Connection) -> None:
    [row] = re.findall(r"^\| tables for readers \|(.*)\|$", TEXT, re.M)

    named = set(re.findall(r"`(\w+)`", row))

    there = column(
        connection,
        "select relname::text from pg_class where relkind in ('r', 'p', 'v')"
        " and relnamespace = 'pgrecall'::regnamespace",
    )
    assert named == set(there)


def test_tests_that_guard_a_promise_are_there() -> None:
    for file in re.findall(r"`(tests/[\w/.]+)`", TEXT):
        assert (build.ROOT / file).is_file(), file
