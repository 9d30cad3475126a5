"""The page of pgrecall recall --html in a browser: on a phone and a desk, by day and by night.

Skipped where there is no Chromium: PGRECALL_CHROMIUM names one, else it is looked for on the path.
"""

from __future__ import annotations

import html
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgrecall import Recall, RecallOptions
from pgrecall.console import explain
from pgrecall.console.html import page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = os.environ.get("PGRECALL_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium: set PGRECALL_CHROMIUM, or put chromium on the path"
)

# The page stands in a frame, since a window is at least 500 pixels wide; what measures it is
# outside, since the page allows no scripts.
FRAME = """<!DOCTYPE html>
<html><head><meta charset="utf-8">
<style>:root { color-scheme: light dark } body { margin: 0 } iframe { border: 0; display: block }
</style></head><body>
<iframe id="page" width="WIDTH" height="HEIGHT" srcdoc="SOURCE"></iframe>
<script>
onload = () => {
  const view = document.getElementById("page").contentWindow, page = view.document;
  const rgb = text => text.match(/[\\d.]+/g).map(Number);
  const light = text => {
    const [r, g, b] = rgb(text).map(
      c => c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const box = e.matches(".node") ? e.querySelector("rect") : null;
      const colour = box ? view.getComputedStyle(box).fill
                         : view.getComputedStyle(e).backgroundColor;
      if (rgb(colour)[3] !== 0) return colour;
    }
  };
  const texts = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT), contrasts = [];
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || element.closest("title")) continue;
    const style = view.getComputedStyle(element);
    const ink = light(element.closest("svg") ? style.fill : style.color);
    const paper = light(behind(element));
    const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    contrasts.push([ratio, element.className.baseVal ?? element.className, element.tagName]);
  }
  const beyond = [...page.body.querySelectorAll("*")].filter(
    e => !e.closest(".wide > *") && e.getBoundingClientRect().right > view.innerWidth + 0.5);
  document.body.dataset.found = JSON.stringify({
    width: view.innerWidth,
    scroll: page.documentElement.scrollWidth,
    dark: view.matchMedia("(prefers-color-scheme: dark)").matches,
    beyond: beyond.map(e => e.outerHTML.slice(0, 80)),
    contrasts: contrasts.sort((a, b) => a[0] - b[0]),
    bars: [...page.querySelectorAll("li .bar:first-child rect:last-child")].map(
      e => e.getBoundingClientRect().right),
    heights: [...page.querySelectorAll("li, section, .path, table, mark")].map(
      e => e.getBoundingClientRect().height),
    marks: page.querySelectorAll("mark").length,
    paths: page.querySelectorAll(".path").length,
  });
};
</script></body></html>"""
HEIGHT = 5000
OPTIONS: RecallOptions = {"explain": True, "filter": f"text <> '{'nothing ' * 40}'"}


def shown(directory: Path, source: str, width: int, is_dark: bool) -> dict[str, Any]:
    """Show a page, take its screenshot, and return what was measured."""
    file = directory / f"{width}-{'dark' if is_dark else 'light'}.html"
    frame = FRAME.replace("WIDTH", str(width)).replace("HEIGHT", str(HEIGHT))
    file.write_text(frame.replace("SOURCE", html.escape(source)), encoding="utf-8")
    assert CHROMIUM is not None
    run = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    run += [f"--user-data-dir={directory / 'profile'}", f"--window-size={width},{HEIGHT}"]
    run += [f"--blink-settings=preferredColorScheme={0 if is_dark else 1}"]
    picture = file.with_suffix(".png")
    subprocess.run(
        [*run, f"--screenshot={picture}", file.as_uri()],
        check=True,
        capture_output=True,
        timeout=60,
    )
    assert picture.stat().st_size > 10_000
    dump = subprocess.run(
        [*run, "--dump-dom", file.as_uri()], check=True, capture_output=True, timeout=60, text=True
    ).stdout
    found = dump.split('data-found="', 1)[1].split('"', 1)[0]
    result: dict[str, Any] = json.loads(html.unescape(found))
    return result


@pytest.fixture
def source(connection: psycopg.Connection[Any]) -> str:
    """A page with all that there can be on one: paths, marks, settings, what was missed."""
    recall = Recall(
        connection,
        embedder=None,
        reranker=lambda _query, texts: [0.9 if "cabin" in text else 0.2 for text in texts],
    )
    recall.create_bank("b")
    long = "Ana wrote " + "a-very-long-identifier-without-a-space_" * 20
    facts = recall.retain(
        "b",
        [
            {
                "text": "Ana reports to Ben Ängström-Vandenberghe of the northern harbour office.",
                "entities": ["Ana", "Ben Ängström-Vandenberghe"],
                "relations": [
                    {"from": "Ana", "kind": "reports_to", "to": "Ben Ängström-Vandenberghe"}
                ],
            },
            {
                "text": "Ben keeps a cabin by the fjord.",
                "entities": ["Ben Ängström-Vandenberghe", "Oslo"],
                "relations": [
                    {"from": "Ben Ängström-Vandenberghe", "kind": "lives_in", "to": "Oslo"}
                ],
            },
            {"text": long, "entities": ["Ana"], "source_id": "x" * 300},
            {"text": "The boss does not live here.", "fact_type": "event"},
        ],
    )
    question = "Where does the boss of Ana live?"
    report = recall.recall_report("b", question, **OPTIONS)
    steps = {row.memory_id: recall.why_not("b", question, row.memory_id) for row in facts[2:]}
    told = explain.gathered(recall, "b", question, OPTIONS, report, steps, "all-MiniLM-L6-v2")
    return page("b", question, report, told)


@pytest.mark.slow
@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [414, 1280])
def test_the_page_is_legible_and_fits(
    tmp_path: Path, source: str, width: int, is_dark: bool
) -> None:
    found = shown(tmp_path, source, width, is_dark)

    assert (found["width"], found["dark"]) == (width, is_dark)
    assert found["scroll"] <= width
    assert found["beyond"] == []
    assert [text for text in found["contrasts"] if text[0] < 4.5] == []
    assert len(found["contrasts"]) > 100
    assert min(found["heights"]) > 0
    assert found["marks"] >= 2
    assert found["paths"] >= 1
    assert found["bars"] == sorted(found["bars"], reverse=True)
    assert len(found["bars"]) >= 3
