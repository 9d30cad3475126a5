"""The console: a local web page of what is remembered, and why an answer is as it is.

``pgrecall console`` serves it on this machine. :func:`application` is the same as ASGI application,
to be mounted behind a login of your own. Needs the extra ``console``.
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
    """Make the console as ASGI application; it asks nobody for a login.

    Whoever reaches it sees what the role of the connection sees.

    Args:
        memory: The client; made by connect() with a pool_size, it answers pages at once.
        is_writable: Whether corrections can be made and undone, and entities merged.
        secret: What the tokens of its forms are made with; default: a random one. Several
            processes that serve the same pages need the same.
        origins: Other origins whose pages may send its forms.

    Raises:
        ImportError: a package of the extra is missing.

    """
    from pgrecall.console.web import make_application

    return make_application(memory, is_writable=is_writable, secret=secret, origins=origins)
