"""The page of pgrecall recall --html: what it says, and what it must never do."""

from __future__ import annotations

import json
import pathlib
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import psycopg
import pytest

from pgrecall import (
    ArmReport,
    Degradation,
    QueryEntity,
    Recall,
    RecallOptions,
    RecallReport,
    RecallStep,
    Timings,
)
from pgrecall.command import main
from pgrecall.console import explain, html
from pgrecall.console.drawing import Path, path_of
from pgrecall.rerankers import ScoreFunction
from visitors import Elements

NOW = datetime(2026, 3, 20, tzinfo=timezone.utc)
OPTIONS: RecallOptions = {"reference_time": NOW, "explain": True, "boosts": {"recency": 0.2}}
EVIL = '<script>alert(1)</script>" onload="alert(2)" <img src=x onerror=alert(3)>'


def relevance(_query: str, texts: Any) -> list[float]:
    return [0.9 if "Ben" in text else 0.3 for text in texts]


def report_of_nothing() -> RecallReport:
    return RecallReport((), Timings(), None, (), (), ())


def answer(
    connection: psycopg.Connection[Any],
    *texts: str,
    question: str = "Who leads Atlas in March 2026?",
    reranker: ScoreFunction | None = None,
) -> tuple[RecallReport, html.Told]:
    recall = Recall(connection, embedder=None, reranker=reranker)
    recall.create_bank("b")
    day = {"occurred": "2026-03-05", "mentioned_at": "2026-03-05"}
    facts = [
        {"text": text, "entities": ["Atlas"], "source_id": f"doc:{text}", **day} for text in texts
    ]
    recall.retain("b", facts)
    report = recall.recall_report("b", question, **OPTIONS)
    told = explain.gathered(recall, "b", question, OPTIONS, report, {}, "toy")
    return report, told


def test_the_page_tells_how_the_answer_came_about(connection: psycopg.Connection[Any]) -> None:
    report, told = answer(connection, "Ana leads Atlas", "Ben left Atlas")
    hits = (replace(report.hits[0], variant_of=7), *report.hits[1:])
    report = replace(report, hits=hits, degradations=(Degradation("arm", "because", "do this"),))

    page = Elements(html.page("b", "Who leads Atlas in March 2026?", report, told))

    assert [attributes.get("lang") for attributes in page.all("html")] == ["en"]
    for words in (
        "Who leads Atlas in March 2026?",
        "March 2026 = 2026-03-01 to 2026-03-31",
        "Atlas: by “atlas”, 100% sure",
        "Ana leads Atlas",
        "happened 2026-03-05",
        "doc:Ben left Atlas",
        "another state of 7",
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
    report, told = answer(connection, "Ana leads Atlas", "Ben left Atlas", "Cem saw Ana")

    page = Elements(html.page("b", "?", report, told))

    bars: list[float] = []
    for tag, attributes in page.tags:
        if tag == "svg":
            bars.append(0.0)
        elif tag == "rect":
            bars[-1] += float(attributes["width"] or 0)
    best = report.hits[0].score
    assert bars[:-1] == pytest.approx([100 * hit.score / best for hit in report.hits], abs=0.01)
    assert bars[-1] == pytest.approx(100, abs=0.01)  # of the time


def test_the_first_bars_follow_the_order_shown(connection: psycopg.Connection[Any]) -> None:
    texts = ("Ana leads Atlas", "Ben left Atlas", "Cem saw Ben")
    report, told = answer(connection, *texts, question="Who leads Atlas?", reranker=relevance)

    page = Elements(html.page("b", "?", report, told))

    drawn = [float(one["width"] or 0) for one in page.all("rect") if "order" in str(one["fill"])]
    best = report.hits[0].final_score
    assert drawn == pytest.approx([100 * hit.final_score / best for hit in report.hits], abs=0.01)
    assert drawn == sorted(drawn, reverse=True)
    assert [hit.score for hit in report.hits] != sorted(
        (hit.score for hit in report.hits), reverse=True
    )


def test_words_that_match_are_marked(connection: psycopg.Connection[Any]) -> None:
    report, told = answer(connection, "Ana <i>leads</i> Atlas", "Ben lead ATLAS & more")

    text = html.page("b", "?", report, told)

    assert "Ana &lt;i&gt;<mark>leads</mark>&lt;/i&gt; <mark>Atlas</mark>" in text
    assert "Ben <mark>lead</mark> <mark>ATLAS</mark> &amp; more" in text


def test_the_page_names_the_settings_that_differ(connection: psycopg.Connection[Any]) -> None:
    recall = Recall(connection, embedder=None)
    recall.create_bank("w", settings={"weights": {"graph": 0.1}})
    report, told = answer(connection, "Ana leads Atlas")
    given: RecallOptions = {"weights": {"lexical": 2}}

    page = Elements(html.page("b", "?", report, told))
    merged = explain.gathered(recall, "w", "?", given, report_of_nothing(), {}, None)
    settings = explain.changed(
        Recall(connection).recall_options(),
        {"rrf_k": 60, "fusion": "rrf", "depth": 100, "weights": {"graph": 0.1, "lexical": 1}},
    )

    assert {name: value for name, value, _ in told.settings} == {
        "budget": "mid",
        "depth": "100",
        "reference_time": '"2026-03-20 00:00:00+00:00"',
        "boosts": '{"recency": 0.2}',
        "model": "toy",
    }
    assert "Settings of this recall" in page.words
    assert ("weights", '{"graph": 0.1, "lexical": 2}', '{"graph": 11, "lexical": 1}') in {
        (name, json.dumps(dict(sorted(json.loads(value).items()))), default)
        for name, value, default in merged.settings
        if name == "weights"
    }
    assert settings == [
        ("fusion", "rrf", "score_rrf"),
        ("depth", "100", "100"),
        ("weights", '{"graph": 0.1}', '{"graph": 11}'),
    ]


def test_the_page_says_where_a_memory_is(connection: psycopg.Connection[Any]) -> None:
    report, told = answer(connection, "Ana leads Atlas")
    steps = [
        RecallStep("lexical", "missed", None, 0.125, "too low"),
        RecallStep("answer", "left out", 12, None, "of 12; the answer ends at 10"),
    ]

    page = Elements(html.page("b", "?", report, replace(told, missed=[(77, "Ben sleeps", steps)])))

    said = " ".join(page.words.split())
    assert "Where is 77? Ben sleeps step status place score reason" in said
    assert "lexical missed 0.125 too low" in said
    assert "answer left out 12 of 12; the answer ends at 10" in said


PATHS: list[tuple[dict[str, Any], Path | None]] = [
    (
        {
            "path": "Ana ← mentors ← Bo → reports_to → Cy, Di (+2)",
            "relations": ["mentors", "reports_to"],
            "entities": ["Ana", "Bo", "Cy", "Di"],
            "facts": [1, 2],
        },
        Path(
            [("Ana", False), ("Bo", False), ("Cy, Di (+2)", False)],
            [("mentors", False), ("reports_to", True)],
        ),
    ),
    (
        {"facts": [1, 2, 3], "direction": "root"},
        Path([("one", True), ("two", True), ("fact 3", True)], [("causes", False)] * 2),
    ),
    ({"facts": [1, 2], "direction": "effect"}, Path([("one", True), ("two", True)],
                                                    [("causes", True)])),
    (
        {"facts": [1, 2], "entities": ["VX-77"]},
        Path([("one", True), ("VX-77", False), ("two", True)], [("names", True), ("names", False)]),
    ),
    ({"path": "Ana and Bo", "relations": ["knows"], "facts": [1, 2]}, None),
    ({"direction": "effect"}, None),
]  # fmt: skip


@pytest.mark.parametrize(("via", "path"), PATHS)
def test_the_path_is_drawn_with_its_directions(
    connection: psycopg.Connection[Any], via: dict[str, Any], path: Path | None
) -> None:
    report, told = answer(connection, "Ana leads Atlas")
    hit = replace(report.hits[0], via=via)
    told = replace(told, texts={1: "one", 2: "two"}, found={})

    found = path_of(hit, told.texts)
    page = Elements(html.page("b", "?", replace(report, hits=(hit,)), told))

    assert found == path
    drawn = [svg for svg in page.all("svg") if svg["class"] == "path"]
    assert len(drawn) == (path is not None)
    if path is not None:
        label = str(drawn[0]["aria-label"])
        assert [label.index(text) for text, _ in path.nodes] == sorted(
            label.index(text) for text, _ in path.nodes
        )
        assert len(page.all("polygon")) == len(path.edges)


def test_every_bar_says_in_words_what_it_shows(connection: psycopg.Connection[Any]) -> None:
    report, told = answer(connection, "Ana leads Atlas")

    page = Elements(html.page("b", "?", report, told))

    assert all(bar["role"] == "img" for bar in page.all("svg"))
    assert str(page.all("svg")[0]["aria-label"]).startswith(f"Score {report.hits[0].score:.4f}: ")


def test_the_page_tells_the_path_that_led_to_an_answer(
    connection: psycopg.Connection[Any],
) -> None:
    report, told = answer(connection, "Ana leads Atlas", "Ben left Atlas")
    chain = replace(report.hits[0], via={"path": "Ana → leads → Atlas", "entities": ["Ana"]})
    shared = replace(report.hits[1], via={"text": "Ben <b> saw it", "entities": ["VX-77"]})
    report = replace(report, hits=(chain, shared))

    page = Elements(html.page("b", "?", report, told))

    assert "via Ana → leads → Atlas" in page.words
    assert "via Ben <b> saw it → VX-77" in page.words


def test_the_page_shows_what_reranking_did(connection: psycopg.Connection[Any]) -> None:
    texts = ("Ben left Atlas", "Ana leads Atlas")
    report, told = answer(connection, *texts, question="Atlas", reranker=relevance)
    first = report.hits[0]
    assert (first.text, first.fused_rank) == ("Ben left Atlas", 2)

    page = Elements(html.page("b", "?", report, told))

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
    cause = replace(hit, via={"facts": [7, 8], "direction": "cause", "text": EVIL})
    chain = replace(hit, via={"path": f"{EVIL} → {EVIL} → Bo", "relations": [EVIL]})
    report = replace(
        report,
        hits=(hit, cause, chain),
        facts=(EVIL,),
        degradations=(Degradation("arm", EVIL, EVIL),),
        arms=(ArmReport(EVIL, EVIL, EVIL, 1, 1.0, 1.0),),
    )

    told = html.Told(
        entities=[evil],
        marked={hit.memory_id: f"(({EVIL})) {EVIL}"},
        marks=("((", "))"),
        texts={7: EVIL, 8: EVIL},
        settings=[(EVIL, EVIL, EVIL)],
        missed=[(9, EVIL, [RecallStep(EVIL, EVIL, 1, 1.0, EVIL)])],
    )

    text = html.page(EVIL, EVIL, report, told)

    page = Elements(text)
    assert page.words.count("<script>alert(1)</script>") >= 20
    assert not page.all("script")
    assert not page.all("img")
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)


def test_the_page_needs_nothing_from_elsewhere(connection: psycopg.Connection[Any]) -> None:
    report, told = answer(connection, "Ana leads Atlas")

    text = html.page("b", "?", report, told)

    attributes = {name for _, attributes in Elements(text).tags for name in attributes}
    assert not attributes & {"src", "href", "srcset", "action", "data"}
    assert "url(" not in text
    assert "@import" not in text
    assert "default-src 'none'" in text


def test_a_page_of_nothing_is_a_page() -> None:
    nothing = report_of_nothing()

    page = Elements(html.page("b", "?", nothing, html.Told()))

    assert "Nothing found." in page.words
    assert "0.0 ms together" in page.words


def test_control_characters_do_not_get_into_the_page() -> None:
    nothing = report_of_nothing()

    text = html.page("b", "a\x1b[31m\x00b\ncd", nothing, html.Told())

    assert not [c for c in text if not c.isprintable() and c != "\n"]


def test_every_arm_has_a_colour_of_its_own(connection: psycopg.Connection[Any]) -> None:
    arms = connection.execute("select arm from pgrecall.arms()").fetchall()

    assert len(set(html.COLOURS)) == len(html.COLOURS) >= len(arms)


def test_the_command_writes_the_page(
    database: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Recall.connect(database, embedder=None) as recall:
        recall.create_bank("b")
        recall.retain("b", [{"text": "Ana leads Atlas", "entities": ["Atlas"]}])
    file = tmp_path / "answer.html"

    arguments = ["recall", "b", "Who leads Atlas?", "--no-embed", "--dsn", database]
    code = main([*arguments, "--html", str(file), "--why", "1"])
    printed = capsys.readouterr().out
    as_json = main([*arguments, "--why", "1", "--json"])
    rows = json.loads(capsys.readouterr().out)

    assert (code, as_json) == (0, 0)
    assert "Ana leads Atlas" in printed
    assert "where 1 is:" in printed
    assert "returned" in printed
    assert rows["why"]["1"][-1]["status"] == "returned"
    assert rows["hits"][0]["text"] == "Ana leads Atlas"
    words = Elements(file.read_text(encoding="utf-8")).words
    assert "Where is 1?" in words
    assert "Atlas: by “atlas”" in words
    assert "no embedding given" in words
