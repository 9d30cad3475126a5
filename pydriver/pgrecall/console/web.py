"""Serve the console: access, security headers, and a wrapper around each view.

A page loads only scripts and styles that come with pgrecall. A form that writes must come from the
same origin and have the token that the page got for this browser. It is refused unless the console
was started with --write.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl, urlencode

import psycopg

try:
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles
except ImportError as error:
    raise ImportError(
        f"package {error.name} is missing. Run: pip install 'pgrecall[console]'", name=error.name
    ) from error

from pgrecall._version import __version__
from pgrecall.client import Recall
from pgrecall.console import views
from pgrecall.console.templates import environment
from pgrecall.console.views import Asked, File, Moved, Page, ReadOnlyError
from pgrecall.errors import (
    BankNotFound,
    EntityNotFound,
    MemoryNotFound,
    NotPermitted,
    OutOfTime,
    ReadOnly,
    RecallError,
)
from pgrecall.server.doors import Application, Doors, Message, Receive, Scope, Send

FORM_COOKIE = "pgrecall-form"
LARGEST_FORM = 1_000_000
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # With "no-referrer" forms would have the origin "null".
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_STATUS = {
    BankNotFound: HTTPStatus.NOT_FOUND,
    MemoryNotFound: HTTPStatus.NOT_FOUND,
    EntityNotFound: HTTPStatus.NOT_FOUND,
    NotPermitted: HTTPStatus.FORBIDDEN,
    ReadOnly: HTTPStatus.FORBIDDEN,
    OutOfTime: HTTPStatus.GATEWAY_TIMEOUT,
}


@dataclass(frozen=True, slots=True)
class Console:
    """The state that all requests share.

    Attributes:
        memory: The client.
        is_writable: Whether forms that write are accepted.
        secret: The key of the tokens in forms.

    """

    memory: Recall
    is_writable: bool
    secret: bytes


def make_application(
    memory: Recall, *, is_writable: bool, secret: str | None, origins: tuple[str, ...]
) -> Application:
    """Make the console, without a login: see :func:`pgrecall.console.application`."""
    key = (secret or secrets.token_urlsafe(32)).encode()
    console = Console(memory, is_writable, key)
    static = str(files("pgrecall.console") / "static")
    routes: list[Any] = [Mount("/static", StaticFiles(directory=static), name="static")]
    for path, view in views.PAGES.items():
        routes.append(Route(path, partial(_answer, console, view), methods=["GET"]))
    for path, view in views.FORMS.items():
        routes.append(Route(path, partial(_answer, console, view), methods=["POST"]))
    handlers: Mapping[Any, Any] = {
        HTTPException: partial(_http_error, console),
        Exception: partial(_failed, console),
    }
    web = Starlette(routes=routes, exception_handlers=handlers)
    return Doors(_with_headers(web), hosts=None, origins=origins)


def _with_headers(web: Application) -> Application:
    """Add the security headers to every answer."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = {name for name, _ in message["headers"]}
                added = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
                if b"cache-control" not in names:
                    is_file = "/static/" in scope["path"] and message["status"] == HTTPStatus.OK
                    kept = b"max-age=3600" if is_file else b"no-store"
                    added.append((b"cache-control", kept))
                message["headers"] = [*message["headers"], *added]
            await send(message)

        await web(scope, receive, sent)

    return answer


async def _answer(
    console: Console, view: Callable[[Asked], Page | File | Moved | object], request: Request
) -> Response:
    ticket = request.cookies.get(FORM_COOKIE, "")
    is_new = re.fullmatch(r"[A-Za-z0-9_-]{43}", ticket) is None
    if is_new:
        ticket = secrets.token_urlsafe(32)
    form_token = hmac.new(console.secret, ticket.encode(), hashlib.sha256).hexdigest()
    form: Mapping[str, str] = {}
    if request.method == "POST":
        form = await _form(request)
        given = form.get("form_token", "")
        if is_new or not hmac.compare_digest(given.encode(), form_token.encode()):
            late = _error(
                "The form is out of date",
                "Reload the page and send the form again.",
                HTTPStatus.FORBIDDEN,
            )
            return await _page(request, "", late, console)
    asked = Asked(console.memory, console.is_writable, dict(request.query_params), form)
    try:
        found = await run_in_threadpool(view, asked)
    except ReadOnlyError as error:
        found = _error(str(error), "Start it with: pgrecall console --write", HTTPStatus.FORBIDDEN)
    except RecallError as error:
        found = _error(error.message, error.hint, _STATUS.get(type(error), HTTPStatus.BAD_REQUEST))
    except psycopg.errors.InsufficientPrivilege as error:
        said = error.diag.message_primary or str(error)
        found = _error(said, "The connection's role lacks the privilege.", HTTPStatus.FORBIDDEN)
    except psycopg.DataError as error:
        found = _error(error.diag.message_primary or str(error), error.diag.message_hint)
    except psycopg.OperationalError as error:
        found = _error(
            "The database is not available.", str(error).strip(), HTTPStatus.SERVICE_UNAVAILABLE
        )
    response = await _response(request, form_token, found, console)
    if is_new:
        response.set_cookie(
            FORM_COOKIE,
            ticket,
            path=request.scope.get("root_path") or "/",
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
    return response


async def _form(request: Request) -> dict[str, str]:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LARGEST_FORM:
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    try:
        pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=1000)
    except ValueError as error:
        raise HTTPException(HTTPStatus.BAD_REQUEST) from error
    return dict(pairs)


async def _response(request: Request, form_token: str, found: object, console: Console) -> Response:
    root = request.scope.get("root_path", "")
    if isinstance(found, Page):
        return await _page(request, form_token, found, console)
    if isinstance(found, Moved):
        return RedirectResponse(root + found.place, HTTPStatus.SEE_OTHER)
    if isinstance(found, File):
        named = {"content-disposition": f'attachment; filename="{found.name}"'}
        return Response(found.content, media_type=found.kind, headers=named)
    return JSONResponse(found)


async def _page(request: Request, form_token: str, page: Page, console: Console) -> Response:
    root = request.scope.get("root_path", "")

    def href(path: str, /, **asked: object) -> str:
        given = {name: value for name, value in asked.items() if value not in (None, "")}
        return f"{root}{path}" + (f"?{urlencode(given, doseq=True)}" if given else "")

    known = {
        "href": href,
        "here": request.url.path.removeprefix(root),
        "query": dict(request.query_params),
        "form_token": form_token,
        "is_writable": console.is_writable,
        "version": __version__,
        "bank": request.query_params.get("bank", ""),
    }
    template = environment().get_template(page.template)
    text = await run_in_threadpool(template.render, **{**known, **page.values})
    return HTMLResponse(text, page.status)


def _error(title: str, hint: str | None, status: int = HTTPStatus.BAD_REQUEST) -> Page:
    return Page("error.html", {"title": title, "hint": hint}, status)


async def _http_error(console: Console, request: Request, error: HTTPException) -> Response:
    page = _error(HTTPStatus(error.status_code).phrase, None, error.status_code)
    return await _page(request, "", page, console)


async def _failed(console: Console, request: Request, error: Exception) -> Response:
    # Starlette raises the error again, so the server logs it.
    page = _error(
        "Something went wrong here",
        f"{type(error).__name__}; the log of the console has more.",
        HTTPStatus.INTERNAL_SERVER_ERROR,
    )
    return await _page(request, "", page, console)
