"""The console in a real browser: the Chromium of the system, by Playwright.

Skipped where there is none: PGRECALL_CHROMIUM names one, else it is looked for on the path. The
rules of accessibility are those of axe-core, which npm brings; without npm that test is skipped.
PGRECALL_PICTURES names a folder for a picture of each page.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from pgrecall import Recall, schema
from pgrecall.console import application
from servers import Server
from toys import toy_embed
from visitors import CHROMIUM, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None, reason="no Chromium: set PGRECALL_CHROMIUM, or put chromium on the path"
    ),
]
PICTURES = os.environ.get("PGRECALL_PICTURES")
AXE = "axe-core@4.14.1"
PAGES = (
    "/",
    "/bank?bank=b",
    "/facts?bank=b",
    "/fact?bank=b&id={fact}",
    "/entities?bank=b",
    "/entity?bank=b&id={entity}",
    "/graph?bank=b&hops=2",
    "/timeline?bank=b",
    "/ask?bank=b&question=Where+does+the+boss+of+Ana+live&why={fact}",
    "/compare?bank=b",
    "/operations?bank=b",
    "/fact?bank=b&id=0",
)
COMPARED = "/compare, with its answer"
# Those that can be seen get a number, in the order of the page.
CONTROLS = """
(() => {
  const found = [...document.querySelectorAll("a[href], button, input, select, textarea, summary")]
    .filter(one => one.type !== "hidden" && one.checkVisibility());
  found.forEach((one, n) => { one.dataset.n = n; });
  return found.length;
})()
"""
FOCUSED = """
(() => {
  const one = document.activeElement;
  return [one.dataset.n === undefined ? null : Number(one.dataset.n),
          getComputedStyle(one).outlineStyle !== "none"];
})()
"""
LONG = "Ana wrote " + "a-very-long-identifier-without-a-space_" * 12


@pytest.fixture(scope="module")
def place(server: Server, installed_template: str) -> Iterator[tuple[str, dict[str, int]]]:
    """The address of a console that may write, and ids of what is in its bank."""
    with server.database(installed_template) as dsn:
        with psycopg.connect(dsn) as connection:
            schema.migrate(connection)
        with Recall.connect(dsn, embedder=toy_embed, model="toy", pool_size=4) as memory:
            memory.create_bank("b")
            facts = memory.retain(
                "b",
                [
                    {"text": "Ana reports to Ben", "entities": [{"name": "Ana", "kind": "person"}],
                     "relations": [{"from": "Ana", "kind": "reports_to", "to": "Ben"}],
                     "occurred": "2026-03-05", "fact_key": "ana.boss", "metadata": {"a": [1]},
                     "tags": ["team"], "context": "a talk", "source_id": "doc:1"},
                    {"text": "Ben lives in Oslo <b>now</b>", "mentioned_at": "2026-01-02",
                     "relations": [{"from": "Ben", "kind": "lives_in", "to": "Oslo"}],
                     "links": [{"kind": "caused_by", "to_key": "ana.boss"}]},
                    {"text": LONG, "entities": ["Ana"], "fact_type": "event",
                     "occurred": ["2026-04-01", "2026-05-01"]},
                    {"text": "Ana Silva likes tea", "entities": ["Ana Silva"],
                     "fact_type": "preference"},
                ],
            )  # fmt: skip
            memory.supersede("b", facts[3].memory_id)
            ids = {"fact": facts[0].memory_id}
            ids["entity"] = memory.query_entities("b", "Ben")[0].entity_id
            with served(application(memory, is_writable=True)) as address:
                yield address, ids


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@contextmanager
def opened(browser: Browser, width: int = 1280, scheme: str = "light") -> Iterator[Page]:
    """Open a page; what its console says must be nothing, and all it asks for must be ours."""
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    said: list[str] = []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on(
        "console",
        lambda message: said.append(message.text) if message.type in ("error", "warning") else None,
    )
    page.on(
        "request",
        lambda request: (
            None if request.url.startswith("http://127.0.0.1:") else said.append(request.url)
        ),
    )
    yield page
    context.close()
    # The page of what is missing is itself such an answer.
    assert [text for text in said if "404 (Not Found)" not in text] == []


def visit(page: Page, place: tuple[str, dict[str, int]], path: str) -> None:
    address, ids = place
    page.goto(address + path.format(**ids))
    page.wait_for_load_state("networkidle")


def compare(page: Page, place: tuple[str, dict[str, int]]) -> None:
    """Compare two settings on two questions, one of them with its answer."""
    visit(page, place, "/compare?bank=b")
    known = json.dumps({"question": "Who is the boss of Ana?", "relevant": ["ana.boss"]})
    page.locator("#questions").fill(f"Where does Ben live?\n{known}")
    page.locator("#b").fill('{"arms": ["key"]}')
    page.get_by_role("button", name="Compare").click()
    page.wait_for_selector(".sides")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [414, 1280])
def test_pages_fit_and_break_no_rule(
    browser: Browser, place: tuple[str, dict[str, int]], width: int, scheme: str
) -> None:
    with opened(browser, width, scheme) as page:
        for path in PAGES:
            visit(page, place, path)

            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            assert page.locator("h1").count() == 1, path
            assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") is (
                scheme == "dark"
            )
            if PICTURES:
                name = path.strip("/").partition("?")[0] or "banks"
                page.screenshot(path=Path(PICTURES) / f"{name}-{width}-{scheme}.png")


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core."""
    if shutil.which("npm") is None:
        pytest.skip("no npm, which brings axe-core")
    directory = tmp_path_factory.mktemp("axe")
    npm = ["npm", "pack", "--silent", "--pack-destination", str(directory), AXE]
    if subprocess.run(npm, capture_output=True, timeout=120).returncode:
        pytest.skip(f"npm could not bring {AXE}")
    [archive] = directory.iterdir()
    with tarfile.open(archive) as packed:
        script = packed.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(
    browser: Browser, place: tuple[str, dict[str, int]], axe: str, scheme: str
) -> None:
    found: list[tuple[str, str, Any]] = []
    for width in (414, 1280):
        with opened(browser, width, scheme) as page:
            for path in (*PAGES, COMPARED):
                if path == COMPARED:
                    compare(page, place)
                else:
                    visit(page, place, path)
                page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
                page.evaluate(axe)
                broken = page.evaluate("axe.run().then(found => found.violations)")
                found += [
                    (path, rule["id"], rule["nodes"][0]["html"][:200])
                    for rule in broken
                    if rule["impact"] in ("serious", "critical")
                ]

    assert found == []


def test_facts_are_found_while_somebody_types(
    browser: Browser, place: tuple[str, dict[str, int]]
) -> None:
    with opened(browser) as page:
        visit(page, place, "/facts?bank=b")
        page.locator("#words").press_sequentially("osl")
        playwright.expect(page.locator("#results .fact")).to_have_count(1)

        assert "Ben lives in Oslo" in page.locator("#results").inner_text()
        assert "words=osl" in page.url


def test_a_slider_asks_again(browser: Browser, place: tuple[str, dict[str, int]]) -> None:
    with opened(browser) as page:
        visit(page, place, "/ask?bank=b&question=Where+does+the+boss+of+Ana+live")
        page.locator("summary", has_text="Weights").click()
        page.locator("#weight-lexical").fill("0")
        playwright.expect(page.locator("#answer")).to_contain_text('"lexical": 0')

        assert page.locator("output[for=weight-lexical]").inner_text() == "0.00"
        assert "weight-lexical=0" in page.url


def test_the_graph_is_drawn_and_leads_on(
    browser: Browser, place: tuple[str, dict[str, int]]
) -> None:
    with opened(browser) as page:
        visit(page, place, "/graph?bank=b&entity={entity}")
        page.wait_for_selector("#graph[data-drawn]")
        drawn = int(page.locator("#graph").get_attribute("data-drawn") or 0)
        page.locator("summary").click()
        rows = page.locator("details tbody tr").count()

        assert drawn >= 4
        assert rows >= 3
        assert page.locator("#graph canvas").count() > 0


def test_two_settings_are_measured(browser: Browser, place: tuple[str, dict[str, int]]) -> None:
    with opened(browser) as page:
        compare(page, place)

        assert "nDCG@10" in page.locator("main").inner_text()
        assert page.locator(".sides").count() == 2


def test_a_node_leads_to_its_own_graph(browser: Browser, place: tuple[str, dict[str, int]]) -> None:
    with opened(browser) as page:
        visit(page, place, "/graph?bank=b&entity={entity}")
        page.wait_for_selector("#graph[data-drawn]")
        around = page.locator("h1").inner_text()
        page.locator("#graph").scroll_into_view_if_needed()
        frame = page.locator("#graph").bounding_box()
        assert frame is not None
        for n in range(30 * 30):  # a canvas does not tell where its nodes are
            x = frame["x"] + (n % 30 + 0.5) * frame["width"] / 30
            y = frame["y"] + (n // 30 + 0.5) * frame["height"] / 30
            page.mouse.move(x, y)
            if page.locator("#graph-said").inner_text().partition(" (")[0] in ("Ana", "Oslo"):
                break
        page.mouse.click(x, y)
        page.wait_for_url("**/graph?*entity=*")
        playwright.expect(page.locator("h1")).not_to_have_text(around)

        assert page.locator("h1").inner_text() in ("Around Ana", "Around Oslo")


def test_the_slider_goes_back_in_time(browser: Browser, place: tuple[str, dict[str, int]]) -> None:
    with opened(browser) as page:
        visit(page, place, "/graph?bank=b&entity={entity}")
        page.locator("#moment").focus()
        page.keyboard.press("Home")
        page.wait_for_url("**as_of=2026-01-01**")

        assert page.locator("#moment-said").inner_text() == "2026-01-01"
        assert page.locator("summary").inner_text() == "The 2 edges as a table"


@pytest.mark.parametrize("path", PAGES)
def test_every_control_is_reached_by_keyboard_and_shows_it(
    browser: Browser, place: tuple[str, dict[str, int]], path: str
) -> None:
    with opened(browser) as page:
        visit(page, place, path)
        wanted = page.evaluate(CONTROLS)
        reached: set[int] = set()
        for _ in range(400):
            page.keyboard.press("Tab")
            n, outline = page.evaluate(FOCUSED)
            assert n is None or outline, page.evaluate("document.activeElement.outerHTML")
            if n == 0 and reached:
                break
            reached |= {n} - {None}

        assert reached == set(range(wanted))


def test_all_is_done_by_keyboard(browser: Browser, place: tuple[str, dict[str, int]]) -> None:
    with opened(browser) as page:
        visit(page, place, "/facts?bank=b")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == "words"
        for _ in range(30):  # a date has several stops
            if page.evaluate("document.activeElement.matches('#results a')"):
                break
            focused = page.evaluate("document.activeElement.outerHTML")
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", focused
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_url("**/fact?**")

        assert page.locator("h1").count() == 1


def test_a_fact_ends_and_comes_back_by_its_buttons(
    browser: Browser, place: tuple[str, dict[str, int]]
) -> None:
    with opened(browser) as page:
        visit(page, place, "/fact?bank=b&id={fact}")
        page.get_by_role("button", name="It no longer holds").click()
        page.wait_for_selector("text=no longer holds")
        page.get_by_role("button", name="Undo the last correction").click()
        page.wait_for_selector("button:has-text('It no longer holds')")

        assert page.locator(".over").count() == 0
