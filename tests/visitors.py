"""Who visits the console in tests: a visitor without a browser, and the Chromium of the system."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from threading import Thread
from urllib.parse import urlencode, urlsplit

from pgrecall.server.doors import Application, Message

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = os.environ.get("PGRECALL_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
ORIGIN = "http://127.0.0.1:8765"
VOID = ("meta", "link", "input", "br", "img", "hr")


class Elements(HTMLParser):
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
        assert len(attrs) == len(dict(attrs)), (tag, attrs)
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("style", "script"):
            self.words += f" {data}"

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def form(self, action: str) -> dict[str, str]:
        """Return the fields of the first form that leads somewhere, with their values."""
        place = next(
            n
            for n, (tag, attributes) in enumerate(self.tags)
            if tag == "form" and urlsplit(attributes.get("action") or "").path.endswith(action)
        )
        fields = {}
        for tag, attributes in self.tags[place + 1 :]:
            if tag == "form":
                break
            # A box that is not ticked is not sent.
            if tag == "input" and attributes.get("name") and attributes.get("type") != "checkbox":
                fields[str(attributes["name"])] = attributes.get("value") or ""
        return fields


@dataclass
class Answered:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def page(self) -> Elements:
        return Elements(self.text)


@dataclass
class Visitor:
    """A browser without a screen: it keeps cookies, and says where it comes from."""

    application: Application
    root: str = ""
    cookies: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, **asked: object) -> Answered:
        return self.ask("GET", path, asked)

    def post(
        self, path: str, form: Mapping[str, str], headers: Mapping[str, str] | None = None
    ) -> Answered:
        """Send a form as a page of the console does; headers that are given replace those."""
        kind = {"content-type": "application/x-www-form-urlencoded", "origin": ORIGIN}
        body = urlencode(form).encode()
        return self.ask("POST", path, {}, {**kind, **(headers or {})}, body)

    def ask(
        self,
        method: str,
        path: str,
        asked: Mapping[str, object],
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Answered:
        given = urlsplit(path)
        sent = {"host": "127.0.0.1:8765", **(headers or {})}
        if self.cookies:
            sent["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        scope = {
            "type": "http",
            "method": method,
            "scheme": "http",
            "http_version": "1.1",
            "server": ("127.0.0.1", 8765),
            "client": ("127.0.0.1", 50000),
            "path": self.root + given.path,
            "root_path": self.root,
            "query_string": (urlencode(asked, doseq=True) or given.query).encode(),
            "headers": [
                (name.encode(), value.encode("latin-1")) for name, value in sent.items() if value
            ],
        }
        messages: list[Message] = []
        waiting = [body]

        async def receive() -> Message:
            if not waiting:  # a browser that waits for the answer says nothing more
                await asyncio.Event().wait()
            return {"type": "http.request", "body": waiting.pop()}

        async def send(message: Message) -> None:
            messages.append(message)

        async def run() -> None:
            await self.application(scope, receive, send)

        asyncio.run(run())
        found = {name.decode(): value.decode("latin-1") for name, value in messages[0]["headers"]}
        if "set-cookie" in found:
            name, _, value = found["set-cookie"].partition(";")[0].partition("=")
            self.cookies[name] = value
        text = b"".join(message.get("body", b"") for message in messages[1:])
        return Answered(messages[0]["status"], found, text.decode("utf-8", "replace"))


@contextmanager
def served(application: Application) -> Iterator[str]:
    """Serve an application at a free port, as long as the block runs; yields its address."""
    import socket

    import uvicorn

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(128)
    server = uvicorn.Server(uvicorn.Config(application, log_level="warning", access_log=False))
    thread = Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
