"""``pgrecall console``: serve the console on this machine and print its link."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from types import SimpleNamespace
from urllib.parse import quote

from rich.console import Console

from pgrecall.adapters import missing
from pgrecall.client import Recall
from pgrecall.command.actions import embedder_of
from pgrecall.console import application
from pgrecall.errors import InvalidArgument
from pgrecall.server.doors import LOCAL_HOSTS, Doors

try:
    import uvicorn
except ImportError as error:
    raise missing("console", error) from error

POOL_SIZE = 6


def serve(options: SimpleNamespace, console: Console) -> int:
    """Serve the console until it is interrupted."""
    with Recall.connect(options.dsn, embedder=embedder_of(options), pool_size=POOL_SIZE) as memory:
        if options.bank is not None:
            memory.bank_options(options.bank)  # fails if the bank does not exist
        run(
            memory,
            console,
            bank=options.bank,
            host=options.host,
            port=options.port,
            is_writable=options.write,
            is_opened=options.open,
        )
    return 0


def open_bank(dsn: str, bank: str, console: Console) -> None:
    """Serve a bank read-only and open it in the browser."""
    with Recall.connect(dsn, pool_size=POOL_SIZE) as memory:
        run(memory, console, bank=bank, is_opened=True)


def run(
    memory: Recall,
    console: Console,
    *,
    bank: str | None = None,
    host: str = "127.0.0.1",
    port: int | None = None,
    is_writable: bool = False,
    is_opened: bool = False,
) -> None:
    """Serve the console for a client and print the link with the token.

    Raises:
        InvalidArgument: the port is taken, or the address is not this machine's.

    """
    listening = _listening(host, port)
    place = listening.getsockname()[1]
    token = secrets.token_urlsafe(32)
    web = application(memory, is_writable=is_writable)
    doors = Doors(web, token=token, hosts={*LOCAL_HOSTS, host}, cookie=f"pgrecall-{place}")
    named = f"[{host}]" if ":" in host else host
    asked = f"&bank={quote(bank, safe='')}" if bank else ""
    link = f"http://{named}:{place}/{'bank' if bank else ''}?token={token}{asked}"
    console.print(link, style="cyan", soft_wrap=True, markup=False)
    console.print(
        "Anybody with this link "
        + ("may read and write" if is_writable else "may read")
        + " what you may. Press Ctrl-C to stop.",
        style="dim",
    )
    if is_opened:
        webbrowser.open(link)
    # No access log, since URLs contain the token and the questions.
    config = uvicorn.Config(
        doors, log_level="warning", access_log=False, proxy_headers=False, server_header=False
    )
    uvicorn.Server(config).run(sockets=[listening])


def _listening(host: str, port: int | None) -> socket.socket:
    """Listen at the given port; by default at 8765 or, if it is taken, at a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for one in (port,) if port is not None else (8765, 0):
        made = socket.socket(family, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, one))
            # Listen before the link is printed, so that early requests wait for the server.
            made.listen(128)
        except OSError as error:
            made.close()
            failed = error
            continue
        return made
    raise InvalidArgument(
        f"cannot listen at {host}:{port or 8765}: {failed.strerror}",
        hint="Choose another port with --port, or omit --host.",
    )
