"""How much and how often one client may ask. No socket: plain ASGI."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pgrecall.server.bounds import Bounds
from pgrecall.server.doors import Message, Receive, Scope, Send


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def reading(scope: Scope, receive: Receive, send: Send) -> None:
    """Read the whole body, as an application that trusts its server does."""
    more = True
    while more:
        more = (await receive()).get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def asked(
    bounds: Bounds, *parts: bytes, length: str | None = None, client: str = "10.0.0.1"
) -> tuple[int, int]:
    """Return the status of the answer, and how many parts of the body were taken."""
    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "client": (client, 1),
        "headers": [] if length is None else [(b"content-length", length.encode())],
    }
    sent: list[Message] = []
    left = [*parts, b""]

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

    asyncio.run(bounds(scope, receive, send))
    return sent[0]["status"], len(parts) + 1 - len(left)


def test_a_body_is_counted_as_it_comes() -> None:
    bounds = Bounds(reading, max_bytes=10)

    assert asked(bounds, b"12345", b"67890") == (200, 3)
    assert asked(bounds, *[b"12345"] * 1000) == (413, 3)


@pytest.mark.parametrize("length", ["11", "9" * 30, "-1", "1e3", "x"])
def test_a_length_that_is_too_long_or_none_is_refused_unread(length: str) -> None:
    assert asked(Bounds(reading, max_bytes=10), b"1", length=length) == (413, 0)


def test_an_address_may_ask_so_often_a_minute() -> None:
    clock = Clock()
    bounds = Bounds(reading, requests_a_minute=60, clock=clock)

    first = [asked(bounds)[0] for _ in range(61)]
    other = asked(bounds, client="10.0.0.2")[0]
    clock.now += 1.5
    later = [asked(bounds)[0] for _ in range(2)]

    assert (first, other, later) == ([200] * 60 + [429], 200, [200, 429])


def test_addresses_that_come_and_go_are_forgotten() -> None:
    bounds = Bounds(reading)

    for n in range(10_050):
        bounds._check_rate({"client": (f"10.{n}", 1)})

    assert len(bounds._used) == 10_000
