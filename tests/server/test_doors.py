"""What the doors in front of a local server let in. No browser and no socket: plain ASGI."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pgrecall.server.doors import Doors, Message, Receive, Scope, Send

TOKEN = "t" * 43
BEARER = {"authorization": f"Bearer {TOKEN}"}


async def inside(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"inside"})


def asked(
    doors: Doors,
    headers: dict[str, str] | list[tuple[str, str]],
    *,
    method: str = "GET",
    path: str = "/",
    query: str = "",
    kind: str = "http",
) -> tuple[int, dict[str, str]]:
    """Return the status and the headers of the answer."""
    given = list(headers.items()) if isinstance(headers, dict) else headers
    if "host" not in dict(given):
        given = [*given, ("host", "127.0.0.1:8765")]
    scope: dict[str, Any] = {
        "type": kind,
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "scheme": "http",
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in given],
    }
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request"}

    asyncio.run(doors(scope, receive, send))
    if kind == "websocket":
        return sent[0].get("code", 0), {}
    return sent[0]["status"], {k.decode(): v.decode() for k, v in sent[0]["headers"]}


def for_programs() -> Doors:
    return Doors(inside, token=TOKEN)


def for_browsers() -> Doors:
    return Doors(inside, token=TOKEN, cookie="seen")


def cookie() -> dict[str, str]:
    _, headers = asked(for_browsers(), {}, query=f"token={TOKEN}")
    return {"cookie": headers["set-cookie"].split(";")[0]}


def test_the_token_lets_in() -> None:
    assert asked(for_programs(), BEARER)[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer " + "x" * 43},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": TOKEN},
        [("authorization", f"Bearer {TOKEN}"), ("authorization", "Bearer x")],
        {"authorization": f"Bearer {TOKEN}ü"},
        {"cookie": f"seen={TOKEN}"},
        {"cookie": "seen=; ="},
    ],
)
def test_no_other_token_lets_in(headers: dict[str, str] | list[tuple[str, str]]) -> None:
    for doors in (for_programs(), for_browsers()):
        status, answered = asked(doors, headers)

        assert (status, answered["www-authenticate"]) == (401, "Bearer")


def test_a_short_token_is_refused() -> None:
    with pytest.raises(ValueError, match="32 characters"):
        Doors(inside, token="secret")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8765", "localhost:1", "LOCALHOST", "[::1]:8765"]
)
def test_names_of_this_machine_are_known(host: str) -> None:
    assert asked(for_programs(), BEARER | {"host": host})[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "evil.example:8765",
        "",
        "[::1",
        "127.0.0.1@evil.example",
    ],
)
def test_a_name_that_was_made_to_mean_this_machine_is_refused(host: str) -> None:
    assert asked(for_programs(), BEARER | {"host": host})[0] == 421


def test_two_names_in_a_request_are_refused() -> None:
    headers = [*BEARER.items(), ("host", "127.0.0.1"), ("host", "evil.example")]

    assert asked(for_programs(), headers)[0] == 421


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://127.0.0.1",
        "https://127.0.0.1:8765",
        "http://localhost:8765",
    ],
)
def test_another_site_is_refused_even_with_the_token(method: str, origin: str) -> None:
    for headers in (BEARER, cookie()):
        assert asked(for_browsers(), headers | {"origin": origin}, method=method)[0] == 403


def test_a_page_of_this_server_may_write() -> None:
    own = {"origin": "http://127.0.0.1:8765"}

    assert asked(for_browsers(), cookie() | own, method="POST")[0] == 200
    assert (
        asked(for_browsers(), cookie() | {"sec-fetch-site": "same-origin"}, method="POST")[0] == 200
    )


@pytest.mark.parametrize("site", ["", "cross-site", "same-site", "none"])
def test_by_cookie_nothing_is_written_that_does_not_say_where_it_comes_from(site: str) -> None:
    headers = cookie() | ({"sec-fetch-site": site} if site else {})

    assert asked(for_browsers(), headers, method="POST")[0] == 403
    assert asked(for_browsers(), headers)[0] == 200


def test_another_origin_is_let_in_where_it_is_named() -> None:
    doors = Doors(inside, token=TOKEN, origins=["https://app.example.com/"])

    assert asked(doors, BEARER | {"origin": "https://app.example.com"}, method="POST")[0] == 200
    assert asked(doors, BEARER | {"origin": "https://other.example.com"}, method="POST")[0] == 403


def test_a_link_exchanges_the_token_for_a_cookie_that_scripts_and_sites_cannot_use() -> None:
    status, headers = asked(for_browsers(), {}, path="/bank", query=f"a=1&token={TOKEN}&b=%2F")

    assert (status, headers["location"]) == (303, "/bank?a=1&b=%2F")
    assert headers["set-cookie"].endswith("; Path=/; HttpOnly; SameSite=Strict")
    assert TOKEN not in headers["set-cookie"]
    assert (headers["cache-control"], headers["referrer-policy"]) == ("no-store", "no-referrer")
    assert asked(for_browsers(), cookie())[0] == 200


@pytest.mark.parametrize("path", ["//evil.example/", "/a\r\nset-cookie: b=c", "/\\evil.example"])
def test_a_link_leads_nowhere_else(path: str) -> None:
    _, headers = asked(for_browsers(), {}, path=path, query=f"token={TOKEN}")

    assert headers["location"].startswith("/")
    assert not headers["location"].startswith(("//", "/\\"))
    assert "\n" not in headers["location"]


def test_a_link_with_another_token_is_refused() -> None:
    assert asked(for_browsers(), {}, query="token=" + "x" * 43)[0] == 401


def test_without_a_cookie_a_link_opens_nothing() -> None:
    assert asked(for_programs(), {}, query=f"token={TOKEN}")[0] == 401


def test_behind_another_login_host_and_origin_are_still_checked() -> None:
    doors = Doors(inside, hosts=["memory.example.com"])
    named = {"host": "memory.example.com"}

    assert asked(doors, named)[0] == 200
    assert asked(doors, {})[0] == 421
    assert asked(doors, named, method="POST")[0] == 403
    assert asked(doors, named | {"origin": "https://evil.example"})[0] == 403


def test_a_websocket_needs_the_same() -> None:
    assert asked(for_programs(), {}, kind="websocket")[0] == 1008
    assert asked(for_programs(), BEARER | {"host": "evil.example"}, kind="websocket")[0] == 1008
