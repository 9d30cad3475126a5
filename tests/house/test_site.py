"""The site is built without a network, leads nowhere that is not there, and shows what is run."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest

import pgrecall
from house import readme
from pgrecall.server import build

SITE = build.ROOT / "pydriver" / "site"
TESTS = build.ROOT / "tests"
FENCE = re.compile(r"^ *```(\w+)$", re.MULTILINE)

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("mkdocstrings") is None,
    reason="mkdocs is not installed: pip install 'pgrecall[dev]'",
)

# Which test runs the blocks of a page, by their language.
RUN_BY = {
    "README.md": {
        "sql": "house/test_readme.py::test_the_sql_of_the_readme_runs",
        "python": "house/test_readme.py::test_the_python_runs",
        "sh": "house/test_readme.py::test_the_commands_run",
    },
    "pydriver/README.md": {
        "python": "house/test_readme.py::test_the_tasks_of_the_driver_run",
        "sh": "house/test_readme.py::test_the_tasks_of_the_driver_run",
    },
    "pydriver/pgrecall/adapters/README.md": {
        "python": "adapters/test_adapter_docs.py::test_a_block_runs",
        "sh": "adapters/test_adapter_docs.py::test_the_commands_run",
    },
    "sql/README.md": {
        "sql": "house/test_readme.py::test_the_sql_of_the_reference_runs",
        "sh": "house/test_readme.py::test_the_commands_run",
        "text": "house/test_readme.py::test_the_reference_is_that_of_the_database",
    },
    "sql/bi.md": {"sql": "house/test_bi.py::test_a_query_for_analysts_finds_something"},
    "migrations/README.md": {"sql": "house/test_site.py::test_the_delta_that_is_shown_is_one"},
}


class Page(HTMLParser):
    """What a page has anchors for, leads to, and loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("id"):
            self.anchors.add(str(given["id"]))
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))
        elif target := given.get("src") or given.get("href"):
            self.loaded.append(target)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(target)]
    done = subprocess.run(
        [*command, "-f", str(SITE / "mkdocs.yml")],
        # Whatever asked for a page of others would fail.
        env=os.environ | {"https_proxy": "http://127.0.0.1:9", "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    paths = [path for path in site.rglob("*.html") if path.name != "404.html"]
    return {path: Page(path.read_text(encoding="utf-8")) for path in paths}


@pytest.fixture(scope="module")
def collected() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pgrecall_pages", SITE / "pages.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_page_leads_and_loads_only_what_is_there(pages: dict[Path, Page]) -> None:
    broken = []
    for path, page in pages.items():
        for target in [*page.links, *page.loaded]:
            if target in page.links and re.match(r"https?:|mailto:", target):
                continue
            name, _, anchor = unquote(target).partition("#")
            there = (path.parent / name).resolve() if name else path
            there = there / "index.html" if there.is_dir() else there
            if not there.is_file() or (anchor and anchor not in pages[there].anchors):
                broken.append(f"{path.name}: {target}")

    assert len(pages) > 45
    assert broken == []


def test_links_of_a_page_lead_to_a_file_of_the_checkout_too() -> None:
    broken = []
    for page in (SITE / "pages").rglob("*.md"):
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            if not (page.parent / target.partition("#")[0]).exists():
                broken.append(f"{page.name}: {target}")

    assert broken == []


def test_styles_and_scripts_load_nothing_of_others(site: Path) -> None:
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    config = (SITE / "mkdocs.yml").read_text(encoding="utf-8")

    assert re.findall(r"(?:url\(|@import )[\"']?(?:https?:)?//", styles) == []
    assert "font: false" in config
    assert "analytics" not in config


def test_every_chapter_is_a_page_and_can_be_searched(site: Path) -> None:
    text = readme.REFERENCE.read_text(encoding="utf-8")
    titles = re.findall(r"^## (.+)$", text, re.MULTILINE)
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")

    assert len(list((site / "reference").glob("*.html"))) == len(titles) + 1
    for title in titles:
        assert f'"title":"{title}"' in index


def test_all_that_the_driver_offers_is_on_a_page_of_the_python_reference(
    pages: dict[Path, Page],
) -> None:
    shown = {
        anchor.rsplit(".", 1)[-1]
        for path, page in pages.items()
        if path.parent.name == "python"
        for anchor in page.anchors
    }

    # connect() is a method of the clients, which are there.
    assert set(pgrecall.__all__) - {"__version__", "connect", "connect_async"} <= shown
    assert {"OpenAIExtractor", "RuleExtractor", "hybrid_recall"} - shown == {"hybrid_recall"}


def test_pictures_show_a_recall_the_graph_and_the_peers(site: Path) -> None:
    assert {path.name for path in (site / "pictures").iterdir()} >= {
        "console.png",
        "latency.svg",
        "quality.svg",
        "recall.svg",
    }


def test_each_block_on_the_site_is_one_that_a_test_runs(collected: ModuleType) -> None:
    sources = {*collected.WHOLE, collected.REFERENCE}
    shown = {
        source: set(FENCE.findall((build.ROOT / source).read_text(encoding="utf-8")))
        for source in sources
    }

    assert {source: found for source, found in shown.items() if found} == {
        source: set(tests) for source, tests in RUN_BY.items()
    }
    for test in {test for tests in RUN_BY.values() for test in tests.values()}:
        file, name = test.split("::")
        assert re.search(rf"^def {name}\(", (TESTS / file).read_text(encoding="utf-8"), re.M), test
    # Those of the tutorials run in tests/adapters/test_tutorials.py.
    for page in (SITE / "pages").rglob("*.md"):
        if page.parent.name != "tutorials":
            assert FENCE.findall(page.read_text(encoding="utf-8")) == [], page


def test_the_delta_that_is_shown_is_one() -> None:
    text = (build.MIGRATIONS / "README.md").read_text(encoding="utf-8")
    [delta] = re.findall(r"^```sql\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)

    found = build.phases(delta)

    assert [phase for phase in build.PHASES if build.statements(found[phase])] == [*build.PHASES]
