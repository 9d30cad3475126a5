"""ASGI middleware that controls access to a server on this machine.

Any page in a browser can send requests to 127.0.0.1, and can make a host name of its own resolve to
127.0.0.1 (DNS rebinding). So a request is accepted only

* with a host name of this server: the header Host is one of ``hosts``;
* from a page of this server: the header Origin, if sent, is the requested address, and a request by
  cookie that may write must have it;
* with the token: as ``Authorization: Bearer``, or as a cookie, which a link with ``?token=`` sets.

It is independent of the application, and needs no package.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class EntryError(Exception):
    """A request that is refused.

    Attributes:
        status: The status of the answer.
        why: The reason, and what to do.

    """

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


class Doors:
    """Accepts requests with a known host name, from a known origin and with the token."""

    def __init__(
        self,
        application: Application,
        *,
        token: str | None = None,
        hosts: Iterable[str] | None = LOCAL_HOSTS,
        origins: Iterable[str] = (),
        cookie: str | None = None,
        is_for_programs: bool = False,
    ) -> None:
        """Keep the rules.

        Args:
            application: The ASGI application.
            token: The token that requests need; None behind another login.
            hosts: Accepted host names, without port; None for any.
            origins: Other accepted origins, such as ``https://app.example.com``.
            cookie: Name of a cookie for the token, set by a link with ``?token=``. None accepts
                only the header, for programs.
            is_for_programs: Whether requests without Origin may write without a token. This is safe
                without a cookie, since browsers send Origin with requests to other sites.

        Raises:
            ValueError: the token is shorter than 32 characters.

        """
        if token is not None and len(token) < 32:
            raise ValueError("a token has 32 characters or more: secrets.token_urlsafe(32)")
        self._application = application
        self._token = token
        self._hosts = None if hosts is None else frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)
        self._cookie = cookie
        self._is_for_programs = is_for_programs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            return
        try:
            self._check_host(scope)
            exchanged = self._exchanged(scope)
            if exchanged is None:
                is_by_cookie = self._check_token(scope)
                self._check_origin(scope, is_by_cookie)
        except EntryError as refused:
            await self._refuse(scope, send, refused)
            return
        if exchanged is not None:
            await _answer(send, 303, b"", exchanged)
            return
        await self._application(scope, receive, send)

    def _check_host(self, scope: Scope) -> None:
        if self._hosts is not None and _name_of(_header(scope, b"host")) not in self._hosts:
            raise EntryError(421, "This server does not accept that host name.")

    def _check_origin(self, scope: Scope, is_by_cookie: bool) -> None:
        origin = _header(scope, b"origin").lower()
        own = f"{scope.get('scheme', 'http')}://{_header(scope, b'host')}".lower()
        if origin:
            if origin != own and origin not in self._origins:
                raise EntryError(403, "Requests from other sites are not accepted.")
            return
        site = _header(scope, b"sec-fetch-site")
        is_safe = scope["type"] == "http" and scope["method"] in SAFE_METHODS
        if is_by_cookie and not self._is_for_programs and not is_safe and site != "same-origin":
            raise EntryError(403, "The request does not say which page it comes from.")

    def _check_token(self, scope: Scope) -> bool:
        """Check the token; return whether it came by cookie."""
        if self._token is None:
            return True
        kind, _, given = _header(scope, b"authorization").partition(" ")
        if kind.lower() == "bearer" and _is_same(given.strip(), self._token):
            return False
        if self._cookie is not None and _is_same(cookie_of(scope, self._cookie), self._ticket):
            return True
        raise EntryError(
            401,
            "The token is missing. Open the link that the server printed when it started."
            if self._cookie
            else "The token is missing. Send it as header: Authorization: Bearer TOKEN",
        )

    @property
    def _ticket(self) -> str:
        """The value of the cookie, from which the token cannot be derived."""
        return hmac.new(str(self._token).encode(), b"ticket", hashlib.sha256).hexdigest()

    def _exchanged(self, scope: Scope) -> list[tuple[bytes, bytes]] | None:
        """Return headers that exchange the token in a link for the cookie."""
        if self._token is None or self._cookie is None or scope["type"] != "http":
            return None
        asked = parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in asked if name == "token"]
        if scope["method"] != "GET" or not given:
            return None
        if not _is_same(given[0], self._token):
            raise EntryError(401, "The token in the link is not valid; the server was restarted.")
        rest = urlencode([pair for pair in asked if pair[0] != "token"])
        # A path with "//" would mean another server.
        place = "/" + scope["path"].encode("utf-8").decode("latin-1").lstrip("/")
        cookie = f"{self._cookie}={self._ticket}; Path=/; HttpOnly; SameSite=Strict"
        secure = "; Secure" if scope.get("scheme") == "https" else ""
        return [
            (b"location", (_quoted(place) + (f"?{rest}" if rest else "")).encode("ascii")),
            (b"set-cookie", (cookie + secure).encode("ascii")),
            (b"referrer-policy", b"no-referrer"),
        ]

    async def _refuse(self, scope: Scope, send: Send, refused: EntryError) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = [(b"www-authenticate", b"Bearer")] if refused.status == 401 else []
        await _answer(send, refused.status, f"{refused.why}\n".encode(), headers)


def cookie_of(scope: Scope, name: str) -> str:
    """Return a cookie of a request; empty if missing."""
    try:
        found = SimpleCookie(_header(scope, b"cookie")).get(name)
    except CookieError:
        return ""
    return found.value if found else ""


def _header(scope: Scope, name: bytes) -> str:
    """Return a header; empty if it is missing or given twice, which is ambiguous."""
    found = [value for key, value in scope["headers"] if key.lower() == name]
    return found[0].decode("latin-1") if len(found) == 1 else ""


def _name_of(host: str) -> str:
    """Return the name in a header Host, without port; empty if it is malformed."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _quoted(place: str) -> str:
    """Quote a path for a header, which a line break would end."""
    return "".join(c if "!" <= c <= "~" and c not in '\\"' else f"%{ord(c):02X}" for c in place)


def _is_same(given: str, wanted: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(given.encode("utf-8"), wanted.encode("utf-8"))


async def _answer(
    send: Send, status: int, body: bytes, headers: Iterable[tuple[bytes, bytes]]
) -> None:
    fixed = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode("ascii")),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
    ]
    start: Message = {"type": "http.response.start", "status": status}
    await send({**start, "headers": [*fixed, *headers]})
    await send({"type": "http.response.body", "body": body})
