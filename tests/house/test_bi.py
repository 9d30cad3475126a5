"""The dashboard and the queries for BI tools, run against the bank of the demo."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta, timezone
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from pgrecall import Recall
from pgrecall.command.demo import _rows
from pgrecall.server import build
from sqlcalls import SAMPLE, log_recalls

TEXT = (build.SQL / "bi.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"^```sql\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
TITLES = ["month", "name", "one", "source_id", "question", "complaint"]
CALLS = re.findall(r"`(pgrecall\.\w+\(.*?\))`", TEXT)
DASHBOARD = json.loads((build.SQL / "grafana.json").read_text(encoding="utf-8"))
NOW = datetime.now(timezone.utc)

# As the data source of Grafana replaces them
MACROS = {
    r"\$__timeFilter\((\w+)\)": rf"\1 between '{NOW - timedelta(1)}' and '{NOW}'",
    r"\$__timeGroup\((\w+), \$__interval\)": r"date_bin('5m', \1, 'epoch')",
    r"\$__timeFrom\(\)": f"'{NOW - timedelta(1)}'::timestamptz",
    r"\$__interval": "5m",
    r"\$\{bank:sqlstring\}": "'demo','o''brien'",
}


@pytest.fixture(scope="module")
def demo(dsn: str) -> Any:
    with (
        psycopg.connect(dsn, row_factory=dict_row) as connection,
        connection.transaction(force_rollback=True),
    ):
        memory = Recall(psycopg.Connection(connection.pgconn), embedder=None)
        memory.create_bank("demo")
        memory.retain("demo", _rows("facts.jsonl"))
        memory.retain_messages("demo", _rows("messages.jsonl"))
        times = [(NOW - timedelta(hours=hours)).isoformat() for hours in range(1, 5)]
        samples = [SAMPLE | {"asked_at": time} for time in times]
        log_recalls(memory._source, *samples, bank="demo")  # type: ignore[arg-type]
        yield connection


@pytest.mark.parametrize("query", QUERIES[1:], ids=TITLES)
def test_a_query_for_analysts_finds_something(demo: Any, query: str) -> None:
    found = demo.execute(query).fetchall()

    assert len(found) > 1
    assert TITLES[QUERIES.index(query) - 1] in found[0]
    assert all(row["answer"] for row in found if "answer" in row)


@pytest.mark.parametrize("call", CALLS)
def test_a_reader_may_make_the_call_that_answers_a_question(demo: Any, call: str) -> None:
    with demo.transaction(force_rollback=True):
        demo.execute("select pgrecall.create_roles('bi_test')")
        demo.execute("set local role bi_test_reader")

        assert demo.execute(f"select * from {call}").description


def test_what_was_given_as_a_date_is_of_its_month_in_utc_alone(demo: Any) -> None:
    query = QUERIES[1].replace("'demo'", "'days'")
    with demo.transaction(force_rollback=True):
        memory = Recall(psycopg.Connection(demo.pgconn), embedder=None)
        memory.create_bank("days")
        memory.retain("days", [{"text": "It opened.", "occurred": "2026-03-01"}])

        months = []
        for zone in ("UTC", "America/New_York"):
            demo.execute(f"set local timezone = '{zone}'")
            months.append(str(demo.execute(query).fetchall()[0]["month"]))

    assert months == ["2026-03-01", "2026-02-01"]


def test_what_says_the_same_is_counted_as_one_complaint(demo: Any) -> None:
    with demo.transaction(force_rollback=True):
        memory = Recall(psycopg.Connection(demo.pgconn), embedder=None)
        facts = [
            {
                "text": f"The lantern of the {place} customer broke.",
                "entities": ["Lantern"],
                "occurred": "2025-05-01",
                "embedding": [1.0] * 8,
            }
            for place in ("first", "second", "third")
        ]
        memory.retain("demo", facts)

        found = demo.execute(QUERIES[-1]).fetchall()

    assert [row["times"] for row in found if "customer broke" in row["complaint"]] == [3]


def test_there_are_six_queries_and_the_one_that_switches_the_log_on(demo: Any) -> None:
    demo.execute(QUERIES[0])

    assert len(QUERIES) == 7
    share = "select log_share from pgrecall.bank where bank_id = 'demo'"
    assert demo.execute(share).fetchone() == {"log_share": pytest.approx(0.01)}


@pytest.mark.parametrize("panel", DASHBOARD["panels"], ids=lambda panel: panel["title"])
def test_a_panel_of_the_dashboard_shows_something(demo: Any, panel: dict[str, Any]) -> None:
    [target] = panel["targets"]
    query = target["rawSql"]
    for macro, text in MACROS.items():
        query = re.sub(macro, text, query)

    found = demo.execute(query).fetchall()

    assert "$" not in query
    assert found
    if target["format"] == "time_series":
        assert all(isinstance(row["time"], datetime) for row in found)
        assert all(value is not None for row in found for value in row.values())


def test_a_panel_has_its_place_and_the_variables_their_query(demo: Any) -> None:
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    variables = {one["name"]: one for one in DASHBOARD["templating"]["list"]}

    assert len({(place["x"], place["y"]) for place in places}) == len(places)
    assert all(place["x"] + place["w"] <= 24 for place in places)
    assert variables["bank"]["multi"]
    assert {"bank_id": "demo"} in demo.execute(variables["bank"]["query"]).fetchall()
    assert {panel["datasource"]["uid"] for panel in DASHBOARD["panels"]} == {"${datasource}"}


def test_a_reader_may_run_all_of_it(demo: Any) -> None:
    with demo.transaction(force_rollback=True):
        demo.execute("select pgrecall.create_roles('bi_test')")
        demo.execute("set local role bi_test_reader")

        for query in QUERIES[1:]:
            assert demo.execute(query).fetchall()
        for panel in DASHBOARD["panels"]:
            test_a_panel_of_the_dashboard_shows_something(demo, panel)
