"""The console: what its pages show, what they must never do, and who may write."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, Request, build_opener, urlopen

import psycopg
import pytest

from pgrecall import Recall
from pgrecall.calls.operations import log_recalls
from pgrecall.console import application
from pgrecall.console.views import PAGES
from pgrecall.server import build
from sqlcalls import SAMPLE, Connection, value
from toys import toy_embed
from visitors import Elements, Visitor

# One for each way in: markup, attributes with either quote and none, addresses, templates,
# comments, text that ends an element, letters that are read as others, control characters.
PAYLOADS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg onload=alert(1)>",
    "x onmouseover=alert(1) y=",
    "javascript:alert(1)",
    "{{ 71 * 977 }}{% raw %}${71*977}<%= 7 %>",
    "--><!--<![CDATA[ <b>",
    "</title></style></textarea></script><script>alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;&#60;b&#62;",
    "＜script＞alert(1)＜/script＞",
    "\u202e<bdo dir=rtl>\u2028\u0007\x1b[31m",
    '{"a": "</div><iframe srcdoc=x>"}',
    "data:text/html,<script>alert(1)</script>",
    "//evil.example/%0d%0aset-cookie:a=b",
]
EVIL = " ".join(PAYLOADS)
OWN_TAGS = set(
    "html head meta title link script body a header svg circle path span bdi nav main footer h1 h2"
    " h3 p b form label input button dl div dt dd section details summary table thead tr th tbody"
    " td ul ol li code select option q output textarea br figure figcaption mark rect g line"
    " polygon text pre progress".split()
)


def fill(memory: Recall, bank: str = "b") -> None:
    memory.create_bank(bank)
    memory.retain(
        bank,
        [
            {"text": "Ana leads Atlas", "entities": ["Ana", "Atlas"], "fact_key": "atlas.lead",
             "relations": [{"from": "Ana", "kind": "leads", "to": "Atlas"}],
             "occurred": "2026-03-05"},
            {"text": "Bo likes tea", "entities": ["Bo"], "fact_type": "preference"},
            {"text": "Atlas went live", "entities": ["Atlas"], "fact_type": "event",
             "occurred": "2026-04-01"},
        ],
    )  # fmt: skip


@pytest.fixture
def memory(connection: Connection) -> Recall:
    made = Recall(connection, embedder=toy_embed, model="toy")
    fill(made)
    return made


@pytest.fixture
def reader(memory: Recall) -> Visitor:
    return Visitor(application(memory))


@pytest.fixture
def writer(memory: Recall) -> Visitor:
    return Visitor(application(memory, is_writable=True))


def fact_id(memory: Recall, text: str = "Ana leads Atlas", bank: str = "b") -> int:
    [found] = [one for one in memory.list_memories(bank) if one.text == text]
    return found.memory_id


def entity_id(connection: Connection, name: str) -> int:
    return int(value(connection, "select entity_id from pgrecall.entity where name = %s", name))


def addresses(
    memory: Recall, bank: str, fact: int, entity: int
) -> list[tuple[str, dict[str, object]]]:
    """Return each page with all that can be asked of it."""
    asked: dict[str, list[dict[str, object]]] = {
        "/": [{}],
        "/facts": [{}, {"words": "at"}, {"entity": EVIL}, {"state": "all"}],
        "/fact": [{"id": fact}],
        "/entities": [{}, {"name": EVIL}],
        "/entity": [{"id": entity}],
        "/graph": [{}, {"memory": fact, "hops": 3}, {"entity": entity}],
        "/graph.json": [{"memory": fact}],
        "/timeline": [{}, {"basis": "said", "unit": "day", "entity": EVIL}],
        "/ask": [{}, {"question": f"Who leads Atlas? {EVIL}", "why": fact}],
        "/answer.html": [{"question": f"Who leads Atlas? {EVIL}"}],
    }
    return [(path, {"bank": bank, **more}) for path in PAGES for more in asked.get(path, [{}])]


# Safety


def test_no_page_has_what_its_policy_would_refuse(memory: Recall, writer: Visitor) -> None:
    places = addresses(memory, "b", fact_id(memory), entity_id(memory._source, "Ana"))  # type: ignore[arg-type]
    assert {path for path, _ in places} == set(PAGES)
    for path, asked in places:
        answered = writer.get(path, **asked)

        assert answered.status == 200, (path, answered.text)
        policy = answered.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answered.headers["x-frame-options"] == "DENY"
        assert answered.headers["cache-control"] == "no-store"
        if path in ("/graph.json", "/answer.html"):
            continue
        for tag, attributes in answered.page.tags:
            assert "style" not in attributes, (path, tag)
            assert tag != "script" or str(attributes.get("src")).startswith("/static/")
            for name in ("src", "href", "action", "hx-get", "data-source"):
                assert str(attributes.get(name, "/")).startswith(("/", "#")), (path, attributes)


def test_what_is_remembered_cannot_become_part_of_a_page(connection: Connection) -> None:
    memory = Recall(connection, embedder=toy_embed, model="toy")
    memory.create_bank(EVIL[:190])
    facts: list[dict[str, Any]] = [
        {
            "text": f"Atlas {payload}",
            "context": payload,
            "fact_key": payload,
            "source_id": payload,
            "tags": [payload],
            "metadata": {payload: payload},
            "entities": [
                {"name": payload, "kind": payload, "aliases": [f"Alias {payload}"]},
                "Atlas",
            ],
            "relations": [{"from": payload, "kind": payload, "to": "Atlas"}],
        }
        for payload in PAYLOADS
        if payload.isprintable()
    ]
    memory.retain(EVIL[:190], facts)
    visitor = Visitor(application(memory, is_writable=True))
    for one in memory.list_memories(EVIL[:190])[:3]:
        named = entity_id(connection, one.entities[0])
        for path, asked in addresses(memory, EVIL[:190], one.memory_id, named):
            answered = visitor.get(path, **asked)

            assert answered.status in (200, 404), (path, answered.text)
            if path == "/graph.json":
                assert answered.headers["content-type"] == "application/json"
                continue
            page = Elements(answered.text)
            own = OWN_TAGS | ({"style"} if path == "/answer.html" else set())
            assert {tag for tag, _ in page.tags} <= own, path
            for tag, attributes in page.tags:
                assert not [name for name in attributes if name.startswith("on")], (path, tag)
                for name in ("href", "src", "action"):
                    assert str(attributes.get(name, "/")).startswith(("/", "#")), attributes
                    assert not str(attributes.get(name)).startswith("//")
            assert "69367" not in page.words, path


@pytest.mark.parametrize("moment", ["20000-01-01", "294000-12-31", "0001-01-01", "9999-12-31"])
@pytest.mark.parametrize("others", [[], ["Ana leads Atlas."]])
def test_no_time_of_a_fact_keeps_a_page_away(
    connection: Connection, moment: str, others: list[str]
) -> None:
    memory = Recall(connection, embedder=toy_embed, model="toy")
    memory.create_bank("b")
    far = {"occurred": moment, "mentioned_at": moment}
    memory.retain("b", [{"text": "Atlas ends.", "entities": ["Atlas"], **far}, *others])
    visitor = Visitor(application(memory))

    fact = memory.list_memories("b")[-1].memory_id
    places = addresses(memory, "b", fact, entity_id(connection, "Atlas"))
    places += [("/timeline", {"bank": "b", "basis": basis}) for basis in ("occurred", "said")]

    assert [one for one in places if visitor.get(one[0], **one[1]).status not in (200, 404)] == []


def test_a_text_is_shown_as_it_is(connection: Connection, memory: Recall, reader: Visitor) -> None:
    text = "Ana said <b>\"it's\" & 'that'</b> {{ 7 * 7 }}"
    memory.retain("b", [{"text": text}])

    assert text in reader.get("/facts", bank="b").page.words
    assert text in reader.get("/fact", bank="b", id=fact_id(memory, text)).page.words


FORMS = {
    "/fact/end": {"id": "fact"},
    "/fact/undo": {"id": "fact"},
    "/entity/merge": {"id": "entity", "other": "entity"},
    "/entity/split": {"id": "entity", "name": "x"},
    "/entity/rename": {"id": "entity", "name": "x"},
}


@pytest.mark.parametrize("path", FORMS)
def test_a_console_writes_only_where_it_was_started_to(
    connection: Connection, memory: Recall, reader: Visitor, path: str
) -> None:
    keys = {"fact": fact_id(memory), "entity": entity_id(connection, "Ana")}
    form = {name: str(keys.get(what, what)) for name, what in FORMS[path].items()}
    token = reader.get("/compare", bank="b").page.form("/compare")["form_token"]
    before = memory.list_memories("b", is_ended_too=True), memory.query_entities("b", "Ana")

    answered = reader.post(path, {**form, "bank": "b", "form_token": token})

    assert (answered.status, "is read-only" in answered.text) == (403, True)
    assert before == (
        memory.list_memories("b", is_ended_too=True),
        memory.query_entities("b", "Ana"),
    )
    for shown in ("/fact", "/entity", "/entities"):
        asked = {"id": keys["entity" if shown == "/entity" else "fact"]}
        actions = [
            form.get("action") for form in reader.get(shown, bank="b", **asked).page.all("form")
        ]
        assert not {action for action in actions if action in FORMS}


@pytest.mark.parametrize(
    ("form", "headers", "status"),
    [
        ({"form_token": ""}, {}, 403),
        ({"form_token": "0" * 64}, {}, 403),
        ({"form_token": "ü"}, {}, 403),
        ({}, {"origin": "https://evil.example"}, 403),
        ({}, {"origin": "null"}, 403),
        ({}, {"origin": ""}, 403),
        ({}, {"origin": "", "sec-fetch-site": "cross-site"}, 403),
        ({}, {"content-type": "text/plain"}, 415),
        ({}, {"content-type": "application/json"}, 415),
        ({"x": "x" * 1_100_000}, {}, 413),
    ],
)
def test_a_form_of_another_page_is_refused(
    memory: Recall, writer: Visitor, form: dict[str, str], headers: dict[str, str], status: int
) -> None:
    own = writer.get("/fact", bank="b", id=fact_id(memory)).page.form("/fact/end")

    answered = writer.post("/fact/end", {**own, **form}, headers)

    assert answered.status == status
    assert len(memory.list_memories("b")) == 3


def test_a_token_is_of_one_browser(memory: Recall, writer: Visitor) -> None:
    other = Visitor(writer.application)
    own = other.get("/fact", bank="b", id=fact_id(memory)).page.form("/fact/end")
    writer.get("/", bank="b")

    assert writer.post("/fact/end", own).status == 403
    assert Visitor(writer.application).post("/fact/end", own).status == 403
    assert other.post("/fact/end", own).status == 303


def test_the_cookie_of_forms_is_out_of_reach_of_scripts_and_sites(reader: Visitor) -> None:
    headers = reader.get("/").headers

    assert "httponly" in headers["set-cookie"].lower()
    assert "samesite=strict" in headers["set-cookie"].lower()


def test_a_role_sees_only_its_bank(connection: Connection) -> None:
    memory = Recall(connection, embedder=toy_embed, model="toy")
    for name in ("acme", "bolt"):
        fill(memory, name)
        connection.execute(f"create role {name}")
        connection.execute(f"grant usage on schema pgrecall, pgrecall_internal to {name}")
        connection.execute(
            f"grant select on all tables in schema pgrecall, pgrecall_internal to {name}"
        )
    connection.execute("select pgrecall.enable_row_security()")
    theirs = fact_id(memory, bank="bolt")
    connection.execute("set local role acme")
    visitor = Visitor(application(memory))

    first = visitor.get("/")

    assert "acme" in first.page.words
    assert "bolt" not in first.page.words
    assert visitor.get("/facts", bank="acme").status == 200
    for path, asked in addresses(memory, "bolt", theirs, 1):
        with connection.transaction(force_rollback=True):
            answered = visitor.get(path, **asked)
        if path not in ("/", "/compare", "/operations", "/doctor"):
            assert answered.status == 404, path
        assert "Ana leads" not in answered.text
    assert visitor.get("/fact", bank="acme", id=theirs).status == 404


def test_a_right_that_is_missing_is_said(connection: Connection, memory: Recall) -> None:
    connection.execute("create role stranger")
    connection.execute("set local role stranger")

    with connection.transaction(force_rollback=True):
        answered = Visitor(application(memory)).get("/facts", bank="b")

    assert answered.status == 403


@pytest.mark.parametrize(
    ("path", "asked", "status", "said"),
    [
        ("/facts", {"bank": "nowhere"}, 404, 'bank "nowhere" does not exist'),
        ("/facts", {}, 400, "no bank is selected"),
        ("/fact", {"bank": "b", "id": 0}, 404, "has no memory 0"),
        ("/entity", {"bank": "b", "id": 0}, 404, "has no entity 0"),
        ("/fact", {"bank": "b", "id": "1; drop"}, 400, "must be a whole number"),
        ("/fact", {"bank": "b", "id": "9" * 30}, 400, "out of range"),
        ("/facts", {"bank": "b", "filter": "colour = 1"}, 400, 'unknown column "colour"'),
        ("/facts", {"bank": "b", "filter": "1) or (1=1"}, 400, "filter"),
        ("/facts", {"bank": "b", "since": "soon"}, 400, "must be a day"),
        ("/facts", {"bank": "b", "until": "9999-12-31"}, 400, "of the years 2 to 9998"),
        ("/facts", {"bank": "b", "type": "tale"}, 400, "has no fact type"),
        ("/timeline", {"bank": "b", "unit": "fortnight"}, 400, "unit must be one of"),
        ("/graph", {"bank": "b", "hops": "9"}, 400, "hops must be one of"),
        ("/ask", {"bank": "b", "question": "x", "weight-graph": "much"}, 400, "must be a number"),
        ("/nowhere", {}, 404, "Not Found"),
    ],
)
def test_what_is_wrong_is_said_on_a_page(
    reader: Visitor, path: str, asked: dict[str, object], status: int, said: str
) -> None:
    answered = reader.get(path, **asked)

    assert answered.status == status
    assert said in answered.page.words


# What pages show


def test_facts_come_in_pages_and_are_searched(memory: Recall, reader: Visitor) -> None:
    memory.retain("b", [{"text": f"Cy wrote page {n}"} for n in range(70)])

    first = reader.get("/facts", bank="b").page
    [link] = [str(a["href"]) for a in first.all("a") if a.get("class") == "next"]
    second = reader.get(link).page
    begun = reader.get("/facts", bank="b", words="lea").page
    narrow = reader.get("/facts", bank="b", words="Cy wr", entity="Ana")

    assert sum(str(a.get("href")).startswith("/fact?") for a in first.all("a")) == 50
    assert sum(str(a.get("href")).startswith("/fact?") for a in second.all("a")) == 23
    assert "Ana leads Atlas" in begun.words
    assert "Bo likes" not in begun.words
    assert "No fact meets these conditions" in narrow.text


def test_a_fact_ends_and_comes_back(memory: Recall, writer: Visitor) -> None:
    fact = fact_id(memory)
    end = writer.get("/fact", bank="b", id=fact).page.form("/fact/end")

    ended = writer.post("/fact/end", end)

    assert (ended.status, ended.headers["location"]) == (303, f"/fact?bank=b&id={fact}")
    shown = writer.get("/fact", bank="b", id=fact)
    assert "no longer holds" in shown.page.words
    assert fact not in [one.memory_id for one in memory.list_memories("b")]
    undone = writer.post("/fact/undo", shown.page.form("/fact/undo"))
    assert undone.status == 303
    assert fact in [one.memory_id for one in memory.list_memories("b")]


def test_entities_are_renamed_split_and_merged(
    connection: Connection, memory: Recall, writer: Visitor
) -> None:
    atlas, live = entity_id(connection, "Atlas"), fact_id(memory, "Atlas went live")
    page = writer.get("/entity", bank="b", id=atlas).page
    form = page.form("/entity/split")

    split = writer.post("/entity/split", {**form, f"m-{live}": "on", "name": "Atlas, the book"})
    other = entity_id(connection, "Atlas, the book")
    assert split.headers["location"] == f"/entity?bank=b&id={other}"
    writer.post("/entity/rename", {**page.form("/entity/rename"), "name": "Project Atlas"})
    writer.post("/entity/merge", {**page.form("/entity/merge"), "other": str(other)})

    named = {one.name for one in memory.query_entities("b", "Project Atlas")}
    assert named == {"Project Atlas"}
    assert (
        value(connection, "select count(*) from pgrecall.entity where entity_id = %s", other) == 0
    )


def test_asking_shows_what_the_sliders_say(memory: Recall, reader: Visitor) -> None:
    asked = {"bank": "b", "question": "Who leads Atlas in March 2026?", "top_k": 2}

    plain = reader.get("/ask", **asked).page
    tuned = reader.get("/ask", **asked, **{"weight-lexical": "0", "why": fact_id(memory)}).page

    assert "March 2026 = 2026-03-01 to 2026-03-31" in plain.words
    assert "What each arm did" in plain.words
    assert "weight 0" in tuned.words or '"lexical": 0' in tuned.words
    assert f"Where is {fact_id(memory)}?" in tuned.words
    file = reader.get("/answer.html", **asked)
    assert file.headers["content-disposition"] == 'attachment; filename="answer.html"'
    assert "Who leads Atlas in March 2026?" in Elements(file.text).words


def test_two_settings_are_compared(memory: Recall, reader: Visitor) -> None:
    form = reader.get("/compare", bank="b").page.form("/compare")
    known = json.dumps({"question": "Who leads Atlas?", "relevant": ["atlas.lead"]})
    form |= {"questions": f"What does Bo like?\n{known}", "a": "{}", "b": '{"arms": ["key"]}'}

    shown = reader.post("/compare", form)

    assert shown.status == 200
    words = " ".join(shown.page.words.split())
    assert "Place of the answer: A 1, B beyond 10" in words
    assert "nDCG@10 1.000 0.000 -1.000" in words
    assert "recall@10 1.000 0.000 -1.000" in words
    assert reader.post("/compare", {**form, "b": "[]"}).status == 400
    assert reader.post("/compare", {**form, "b": '{"armz": 1}'}).status == 400
    assert reader.post("/compare", {**form, "b": '{"bank": "c"}'}).status == 400
    assert reader.post("/compare", {**form, "b": "[" * 100_000}).status == 400
    assert reader.post("/compare", {**form, "questions": "{"}).status == 400
    assert reader.post("/compare", {**form, "questions": '{"a":' * 50_000}).status == 400


def test_a_search_for_better_settings_is_offered(memory: Recall, reader: Visitor) -> None:
    form = reader.get("/compare", bank="b").page.form("/compare")
    asked = [("Who leads Atlas?", "Ana leads Atlas"), ("What does Bo like?", "Bo likes tea")]
    lines = [
        json.dumps({"question": question, "relevant": [fact_id(memory, text)]})
        for question, text in asked
    ]
    before = memory.bank_options("b")

    shown = reader.post("/compare", {**form, "questions": "\n".join(lines), "do": "tune"})
    alone = reader.post("/compare", {**form, "questions": lines[0], "do": "tune"})

    assert shown.status == 200, shown.text
    assert "rankings tried" in shown.page.words
    assert "95% interval" in shown.page.words
    assert '"rrf_k"' in shown.page.words
    assert memory.bank_options("b") == before
    assert (alone.status, "folds must be between" in alone.text) == (400, True)


def test_a_hub_says_that_it_has_more(
    connection: Connection, memory: Recall, reader: Visitor
) -> None:
    memory.retain("b", [{"text": f"Hub saw {n}", "entities": ["Hub"]} for n in range(40)])
    hub = entity_id(connection, "Hub")

    page = reader.get("/graph", bank="b", entity=hub).page
    drawn = json.loads(reader.get("/graph.json", bank="b", entity=hub).text)

    nodes = {one["data"]["id"]: one["data"] for one in drawn["nodes"]}
    assert "At least 30 more facts mention Hub" in " ".join(page.words.split())
    assert (len(nodes), nodes[f"entity-{hub}"]["more"]) == (11, 30)


def test_a_key_that_a_double_cannot_hold_is_drawn_as_text(
    connection: Connection, memory: Recall, reader: Visitor
) -> None:
    """As JSON.parse of JavaScript would lead to another fact."""
    first = 2**53 + 1
    # Unlike setval(), this is rolled back.
    connection.execute(f"alter sequence pgrecall.id_seq restart with {first}".encode())
    [new] = memory.retain("b", [{"text": "Zoe rows.", "entities": ["Zoe"]}])

    drawn = json.loads(reader.get("/graph.json", bank="b", memory=new.memory_id).text)

    assert new.memory_id >= first
    assert {one["data"]["key"] for one in drawn["nodes"]} == {
        str(new.memory_id),
        str(entity_id(connection, "Zoe")),
    }


def test_a_rare_entity_is_drawn_larger(connection: Connection, memory: Recall) -> None:
    memory.retain("b", [{"text": f"Ana saw {n}", "entities": ["Ana"]} for n in range(40)])
    reader = Visitor(application(memory))

    drawn = json.loads(reader.get("/graph.json", bank="b", memory=fact_id(memory)).text)

    rarity = {one["data"]["name"]: one["data"]["rarity"] for one in drawn["nodes"]}
    assert rarity["Atlas"] > 2 * rarity["Ana"] > 0


def test_the_hits_of_each_arm_are_shown(memory: Recall, reader: Visitor) -> None:
    asked = {"bank": "b", "question": "Who leads Atlas?", "top_k": 1}

    page = reader.get("/ask", **asked).page
    [why] = {str(a["href"]) for a in page.all("a") if f"why={fact_id(memory, 'Atlas went live')}"
             in str(a["href"])}  # fmt: skip

    assert "lexical : its first" in " ".join(page.words.replace(":", " :").split())
    assert "answer #1" in page.words
    assert "Where is" in reader.get(why).page.words


def test_slow_recalls_and_sizes_are_shown(memory: Recall, reader: Visitor) -> None:
    sample = {**SAMPLE, "asked_at": datetime.now(timezone.utc).isoformat(), "total_ms": 4321}
    memory._run(log_recalls("b", [sample]))

    page = reader.get("/operations", bank="b").page

    assert "Slowest recalls of the last day" in page.words
    assert "4321" in page.words
    assert "pgrecall.memory" in page.words


def test_a_console_is_mounted_below_a_path(memory: Recall) -> None:
    visitor = Visitor(application(memory), root="/memory")

    page = visitor.get("/facts", bank="b").page

    links = [a["href"] for a in page.all("a") if a["href"] != "#main"]
    assert all(str(link).startswith("/memory/") for link in links)
    assert visitor.get("/static/console.css").status == 200


# Served


@contextmanager
def running(dsn: str, *words: str) -> Iterator[str]:
    """Run the command, and yield the link that it prints."""
    command = [sys.executable, "-m", "pgrecall", "console", *words, "--dsn", dsn]
    command += ["--no-embed", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGTERM)


def status_of(address: str, headers: dict[str, str]) -> int:
    try:
        with urlopen(Request(address, headers=headers), timeout=30) as answered:
            return int(answered.status)
    except HTTPError as error:
        return error.code


@pytest.mark.slow
def test_the_command_lets_in_by_its_link_alone(database: str) -> None:
    with psycopg.connect(database) as connection:
        fill(Recall(connection, embedder=None))
    with running(database, "b") as link:
        place = link.partition("/bank?")[0]
        page = f"{place}/facts?bank=b"
        with build_opener(HTTPCookieProcessor()).open(link, timeout=30) as opened:
            text = opened.read().decode()

            assert opened.url == f"{place}/bank?bank=b"
        assert "Ana leads Atlas" in text
        token = {"Authorization": f"Bearer {link.partition('token=')[2].partition('&')[0]}"}
        assert status_of(page, token) == 200
        assert status_of(page, {}) == 401
        assert status_of(link, {}) == 401  # who keeps no cookie is not let in
        assert status_of(page, token | {"Host": "evil.example"}) == 421
        assert status_of(page, token | {"Origin": "https://evil.example"}) == 403


@pytest.mark.slow
def test_the_demo_opens_the_console_on_its_bank(database: str, tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}\n')
    browser.chmod(0o755)
    command = [sys.executable, "-m", "pgrecall", "demo", "--open", "--dsn", database]
    environment = {**os.environ, "BROWSER": str(browser)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            told, link = "", ""
            while not link.startswith("http://127.0.0.1:"):
                link = process.stdout.readline()
                assert link, told
                told += link
            with build_opener(HTTPCookieProcessor()).open(link.strip(), timeout=30) as answered:
                page = answered.read().decode()
        finally:
            process.send_signal(signal.SIGTERM)

    assert "console demo --open" in told
    assert "Brinewick" in page
    assert opened.read_text() == link.strip()


def test_what_comes_with_the_package_is_what_is_pinned() -> None:
    sys.path.insert(0, str(build.ROOT / "pydriver"))
    try:
        import vendor
    finally:
        sys.path.pop(0)

    assert vendor.wrong_files() == []
    pins = json.loads(vendor.PINS.read_text())
    assert {package["licence"] for package in pins} <= {"MIT", "0BSD"}
    assert all(any("LICENSE" in name for name in package["files"]) for package in pins)
