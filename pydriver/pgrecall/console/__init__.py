"""The console: local web pages that show what is remembered and explain answers.

``pgrecall console`` serves them on this machine. :func:`application` is the same as an ASGI
application, to be mounted behind your own login. Needs the extra ``console``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pgrecall.client import Recall
    from pgrecall.server.doors import Application


def application(
    memory: Recall,
    *,
    is_writable: bool = False,
    secret: str | None = None,
    origins: tuple[str, ...] = (),
) -> Application:
    """Make the console as an ASGI application without a login.

    Everybody who can reach it sees what the role of the connection sees.

    Args:
        memory: The client. Give connect() a pool_size so that it can answer pages concurrently.
        is_writable: Whether facts can be corrected and entities merged.
        secret: The key of the tokens in forms. Processes that serve the same pages need the same
            key. Default: a random one.
        origins: Other origins whose pages may send forms.

    Raises:
        ImportError: a package of the extra is missing.

    """
    from pgrecall.console.web import make_application

    return make_application(memory, is_writable=is_writable, secret=secret, origins=origins)
