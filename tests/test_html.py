"""The page of pgrecall recall --html: what it says, and what it must never do."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgrecall import ArmReport, Degradation, QueryEntity, Recall, RecallReport, Timings
from pgrecall.command import html, main
from pgrecall.rerankers import ScoreFunction

NOW = datetime(2026, 3, 20, tzinfo=timezone.utc)
EVIL = '<script>alert(1)</script>" onload="alert(2)" <img src=x onerror=alert(3)>'


class Page(HTMLParser):
    """A page taken apart; refuses one that does not close what it opens."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            self.words += f"{data} "

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def relevance(_query: str, texts: Any) -> list[float]:
    return [0.9 if "Ben" in text else 0.3 for text in texts]


def answer(
    connection: psycopg.Connection[Any],
    *texts: str,
    question: str = "Who leads Atlas in March 2026?",
    reranker: ScoreFunction | None = None,
) -> tuple[RecallReport, list[QueryEntity]]:
    recall = Recall(connection, embedder=None, reranker=reranker)
    recall.create_bank("b")
    day = {"occurred": "2026-03-05", "mentioned_at": "2026-03-05"}
    facts = [
        {"text": text, "entities": ["Atlas"], "source_id": f"doc:{text}", **day} for text in texts
    ]
    recall.retain("b", facts)
    report = recall.recall_report(
        "b", question, reference_time=NOW, explain=True, boosts={"recency": 0.2}
    )
    return report, recall.query_entities("b", question)


def test_the_page_tells_how_the_answer_came_about(connection: psycopg.Connection[Any]) -> None:
    report, entities = answer(connection, "Ana leads Atlas", "Ben left Atlas")
    report = replace(report, degradations=(Degradation("arm", "because", "do this"),))

    page = Page(html.page("b", "Who leads Atlas in March 2026?", report, entities))

    assert [attributes.get("lang") for attributes in page.all("html")] == ["en"]
    for words in (
        "Who leads Atlas in March 2026?",
        "March 2026 = 2026-03-01 to 2026-03-31",
        "Atlas: by “atlas”, 100% sure",
        "Ana leads Atlas",
        "happened 2026-03-05",
        "doc:Ben left Atlas",
        "no embedding given",
        "because. do this",
        "ms together",
        f"relevance {report.hits[0].relevance:.0%}",
        f"Confidence that the answer is among them: {report.confidence:.0%}.",
        f"lexical +{report.hits[0].arms['lexical'].contribution:.4f}",
    ):
        assert words in page.words
    assert {arm.arm for arm in report.arms} <= set(page.words.split())


def test_a_bar_adds_up_to_the_score(connection: psycopg.Connection[Any]) -> None:
    report, entities = answer(connection, "Ana leads Atlas", "Ben left Atlas", "Cem saw Ana")

    page = Page(html.page("b", "?", report, entities))

    bars: list[float] = []
    for tag, attributes in page.tags:
        if tag == "svg":
            bars.append(0.0)
        elif tag == "rect":
            bars[-1] += float(attributes["width"] or 0)
    best = report.hits[0].score
    assert bars[:-1] == pytest.approx([100 * hit.score / best for hit in report.hits], abs=0.01)
    assert bars[-1] == pytest.approx(100, abs=0.01)  # of the time


def test_every_bar_says_in_words_what_it_shows(connection: psycopg.Connection[Any]) -> None:
    report, entities = answer(connection, "Ana leads Atlas")

    page = Page(html.page("b", "?", report, entities))

    assert all(bar["role"] == "img" for bar in page.all("svg"))
    assert str(page.all("svg")[0]["aria-label"]).startswith(f"Score {report.hits[0].score:.4f}: ")


def test_the_page_tells_the_path_that_led_to_an_answer(
    connection: psycopg.Connection[Any],
) -> None:
    report, entities = answer(connection, "Ana leads Atlas", "Ben left Atlas")
    chain = replace(report.hits[0], via={"path": "Ana → leads → Atlas", "entities": ["Ana"]})
    shared = replace(report.hits[1], via={"text": "Ben <b> saw it", "entities": ["VX-77"]})
    report = replace(report, hits=(chain, shared))

    page = Page(html.page("b", "?", report, entities))

    assert "via Ana → leads → Atlas" in page.words
    assert "via Ben <b> saw it → VX-77" in page.words


def test_the_page_shows_what_reranking_did(connection: psycopg.Connection[Any]) -> None:
    report, entities = answer(connection, "Ana leads Atlas", "Ben left Atlas", reranker=relevance)
    first = report.hits[0]
    assert (first.text, first.fused_rank) == ("Ben left Atlas", 2)

    page = Page(html.page("b", "?", report, entities))

    assert first.boost != 1
    said = f"#1 reranked: the reranker says 0.900, times boosts {first.boost:.3f}"
    said += f", in the end {first.final_score:.3f}"
    assert f"#2 fused at {first.score:.4f}, {said}" in page.words


def test_what_is_remembered_cannot_become_part_of_the_page(
    connection: psycopg.Connection[Any],
) -> None:
    report, _ = answer(connection, "Ana leads Atlas")
    evil = QueryEntity(1, EVIL, EVIL, EVIL, 1.0)
    first = replace(report.hits[0], text=EVIL, context=EVIL, fact_key=EVIL)
    hit = replace(first, tags=(EVIL,), fact_type=EVIL, arms={EVIL: first.arms["lexical"]})
    report = replace(
        report,
        hits=(hit,),
        facts=(EVIL,),
        degradations=(Degradation("arm", EVIL, EVIL),),
        arms=(ArmReport(EVIL, EVIL, EVIL, 1, 1.0, 1.0),),
    )

    text = html.page(EVIL, EVIL, report, [evil])

    page = Page(text)
    assert page.words.count("<script>alert(1)</script>") >= 10
    assert not page.all("script")
    assert not page.all("img")
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)


def test_the_page_needs_nothing_from_elsewhere(connection: psycopg.Connection[Any]) -> None:
    report, entities = answer(connection, "Ana leads Atlas")

    text = html.page("b", "?", report, entities)

    attributes = {name for _, attributes in Page(text).tags for name in attributes}
    assert not attributes & {"src", "href", "srcset", "action", "data"}
    assert "url(" not in text
    assert "@import" not in text
    assert "default-src 'none'" in text


def test_a_page_of_nothing_is_a_page() -> None:
    nothing = RecallReport((), Timings(), None, (), (), ())

    page = Page(html.page("b", "?", nothing, []))

    assert "Nothing found." in page.words
    assert "0.0 ms together" in page.words


def test_control_characters_do_not_get_into_the_page() -> None:
    nothing = RecallReport((), Timings(), None, (), (), ())

    text = html.page("b", "a\x1b[31m\x00b\ncd", nothing, [])

    assert not [c for c in text if not c.isprintable() and c != "\n"]


def test_every_arm_has_a_colour_of_its_own(connection: psycopg.Connection[Any]) -> None:
    arms = connection.execute("select arm from pgrecall.arms()").fetchall()

    assert len(set(html.COLOURS)) == len(html.COLOURS) >= len(arms)


def test_the_command_writes_the_page(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Recall.connect(database, embedder=None) as recall:
        recall.create_bank("b")
        recall.retain("b", [{"text": "Ana leads Atlas", "entities": ["Atlas"]}])
    file = tmp_path / "answer.html"

    code = main(
        ["recall", "b", "Who leads Atlas?", "--no-embed", "--html", str(file), "--dsn", database]
    )

    assert code == 0
    assert "Ana leads Atlas" in capsys.readouterr().out
    words = Page(file.read_text(encoding="utf-8")).words
    assert "Atlas: by “atlas”" in words
    assert "no embedding given" in words
