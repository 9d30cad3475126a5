"""ASGI middleware that bounds the size and the rate of requests.

Bytes are counted as they arrive, whatever the header says; the rate is per address. It needs no
package.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

from pgrecall.server.doors import Application, EntryError, Message, Receive, Scope, Send

MAX_BYTES = 4 * 1024 * 1024
REQUESTS_A_MINUTE = 600
_CLIENTS = 10_000  # number of addresses remembered, the most recent ones


class Bounds:
    """Refuses requests that are too large or too many."""

    def __init__(
        self,
        application: Application,
        *,
        max_bytes: int = MAX_BYTES,
        requests_a_minute: int = REQUESTS_A_MINUTE,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Keep the bounds.

        Args:
            application: The ASGI application.
            max_bytes: Maximum size of a request's body.
            requests_a_minute: Maximum rate per address; this many may also come at once.
            clock: Returns the time in seconds.

        """
        self._application = application
        self._max_bytes = max_bytes
        self._rate = requests_a_minute
        self._clock = clock
        self._used: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        is_answered = False

        async def noting(message: Message) -> None:
            nonlocal is_answered
            is_answered = True
            await send(message)

        try:
            self._check_rate(scope)
            self._check_length(scope)
            await self._application(scope, self._counted(receive), noting)
        except EntryError as refused:
            if is_answered:
                raise
            await _refuse(send, refused)

    def _check_rate(self, scope: Scope) -> None:
        address = (scope.get("client") or ("",))[0]
        now = self._clock()
        used, since = self._used.pop(address, (0.0, now))
        used = max(0.0, used - (now - since) * self._rate / 60)
        if used + 1 > self._rate:
            self._used[address] = used, now
            raise EntryError(429, f"More than {self._rate} requests a minute; wait a little.")
        self._used[address] = used + 1, now
        while len(self._used) > _CLIENTS:
            self._used.popitem(last=False)

    def _check_length(self, scope: Scope) -> None:
        for name, value in scope["headers"]:
            if name.lower() == b"content-length" and (
                not value.isdigit() or len(value) > 18 or int(value) > self._max_bytes
            ):
                raise self._too_long()

    def _counted(self, receive: Receive) -> Receive:
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._max_bytes:
                raise self._too_long()
            return message

        return counted

    def _too_long(self) -> EntryError:
        return EntryError(413, f"A request may have at most {self._max_bytes:,} bytes.")


async def _refuse(send: Send, refused: EntryError) -> None:
    body = f"{refused.why}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode("ascii")),
        (b"connection", b"close"),
    ]
    if refused.status == 429:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
