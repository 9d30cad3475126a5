"""The page of the benchmarks says what their files of results say, and no more."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bench import report
from bench.peers import tables

FILES = sorted(path.stem for path in report.RESULTS.glob("*.json"))


@pytest.mark.parametrize("page", report.PAGES, ids=lambda page: page.parent.name)
def test_the_page_is_made_of_the_results(page: Path) -> None:
    assert page.read_text("utf-8") == report.written(page), "run make readme"


@pytest.mark.parametrize("name", tables.PLOTS)
def test_the_plots_are_made_of_the_results(name: str) -> None:
    assert (report.PEERS / f"{name}.svg").read_text("utf-8") == report.drawn(name)


def test_the_page_is_short() -> None:
    assert len(report.written().splitlines()) <= 250


def test_a_figure_that_no_run_has_measured_cannot_be_printed() -> None:
    with pytest.raises(KeyError, match=r"results/floor\.json has no figure floor\.9k\.recall_ms"):
        report.MARKER.sub(report.filled, "{floor: floor.9k.recall_ms .1f}")


@pytest.mark.parametrize("file", FILES)
def test_results_say_what_they_were_measured_on(file: str) -> None:
    result = report.read(file)

    assert re.fullmatch(r"[0-9a-f]{7,40}(-dirty)?", result["commit"])
    assert {"machine", "versions", "settings", "figures"} <= set(result)
    assert all(isinstance(figure, int | float) for figure in result["figures"].values())
    assert not [one for one in result["settings"].values() if str(one).startswith("/")]
