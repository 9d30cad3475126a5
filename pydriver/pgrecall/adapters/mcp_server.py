"""``pgrecall mcp``: serve one bank to MCP clients, by the official SDK, 1.x or 2.x.

The bank is chosen when the server starts; no tool takes another.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import psycopg
from typing_extensions import NotRequired, TypedDict

from pgrecall.adapters import missing

try:
    from mcp.server.transport_security import TransportSecuritySettings
    from mcp.types import ToolAnnotations
    from pydantic import ConfigDict, Field, with_config

    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError:  # 1.x
        from mcp.server.fastmcp import FastMCP as MCPServer  # type: ignore
        from mcp.server.fastmcp.exceptions import ToolError  # type: ignore
except ImportError as error:
    raise missing("mcp", error) from error

from pgrecall._version import __version__
from pgrecall.context import likely_hits, make_context
from pgrecall.errors import BankNotFound, RecallError
from pgrecall.server.bounds import Bounds
from pgrecall.server.doors import LOCAL_HOSTS, Doors

if TYPE_CHECKING:
    from pgrecall.aio import AsyncRecall
    from pgrecall.retaining.facts import Fact
    from pgrecall.rows import Memory

logger = logging.getLogger(__name__)

T = TypeVar("T")
IS_FIRST = MCPServer.__name__ == "FastMCP"
"""Whether the SDK is 1.x, whose server takes its settings in the constructor."""

INSTRUCTIONS = (
    "Long-term memory. Call recall before you answer what earlier conversations may have settled;"
    " call retain when something is worth knowing next time: decisions, preferences, facts, events."
)
CREATE = "Start the server with --create, or create the bank with: pgrecall bank create NAME"
READING = {"readOnlyHint": True, "openWorldHint": False}
ADDING = {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False}
ERASING = {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": False}
EXACT = 2**53 - 1
"""The largest integer that JavaScript represents exactly; larger ids are sent as text."""
Id = int | Annotated[str, Field(pattern=r"^[0-9]{1,19}$")]


class NamedEntity(TypedDict):
    """What a new fact is about."""

    name: str
    kind: NotRequired[
        Annotated[str, Field(description="person, place, organization, project, product, ...")]
    ]
    aliases: NotRequired[list[str]]


@with_config(ConfigDict(extra="allow"))
class NewFact(TypedDict):
    """The fields of a new fact; the bank takes or refuses others: relations, context, metadata."""

    text: Annotated[str, Field(description="One statement that is understood on its own.")]
    fact_type: NotRequired[
        Annotated[str, Field(description="world, experience, opinion, preference, event, ...")]
    ]
    occurred: NotRequired[
        Annotated[str, Field(description="When it happened: 2026-03-05 or 2026-03-05T14:00Z.")]
    ]
    entities: NotRequired[
        Annotated[
            list[str | NamedEntity],
            Field(
                description="People, places, projects, ... that it names. Give the kind of people:"
                " then a first name means who has it in full."
            ),
        ]
    ]
    fact_key: NotRequired[
        Annotated[str, Field(description="Exact key to find it by, such as deploy.window.")]
    ]
    source_id: NotRequired[
        Annotated[str, Field(description="The document or conversation it comes from.")]
    ]
    tags: NotRequired[list[str]]


class Stored(TypedDict):
    """A fact that was retained."""

    memory_id: Id
    is_new: bool


class Recalled(TypedDict):
    """What a bank knows about a question."""

    text: Annotated[str, Field(description="The memories, numbered.")]
    memory_ids: Annotated[dict[str, Id], Field(description="By number in the text, for forget.")]
    confidence: Annotated[float, Field(description="How likely the answer is in it, 0 to 1.")]
    sources: Annotated[
        dict[str, str], Field(description="By number, the document or conversation it comes from.")
    ]


class Listed(TypedDict):
    """A memory as it is stored."""

    memory_id: Id
    text: str
    fact_type: str
    fact_key: str | None
    source_id: str | None
    tags: list[str]
    entities: list[str]
    occurred: list[str | None] | None
    stored_at: str | None


class _Server(MCPServer[Any]):
    """A server that refuses arguments that a tool does not take; the SDK leaves them out.

    Attributes:
        takes: The names of the arguments of each tool.

    """

    takes: dict[str, list[str]]

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Call a tool, unless an argument is unknown."""
        for argument in arguments:
            if argument not in self.takes.get(name, [argument]):
                raise ToolError(
                    f'{name} takes no argument "{argument}"\nhint: {", ".join(self.takes[name])}.'
                )
        given = () if IS_FIRST else (context,)
        return await super().call_tool(name, arguments, *given)


def make_server(
    memory: AsyncRecall, bank: str, *, is_read_only: bool = False, **settings: Any
) -> MCPServer:
    """Make a server for one bank; methods of the SDK run it.

    Args:
        memory: The client. Give connect() a pool_size so that it can answer calls concurrently.
        bank: Name of an existing bank.
        is_read_only: Whether to leave out the tools that write: retain and forget.
        settings: Further arguments of the SDK's server.

    """
    if not IS_FIRST:  # 1.x takes no version
        settings = {"version": __version__, **settings}
    server = _Server("pgrecall", instructions=INSTRUCTIONS, **{"log_level": "WARNING", **settings})

    async def recall(
        question: Annotated[str, Field(description="The question, in words.")],
        max_tokens: Annotated[int, Field(description="Maximum tokens in the answer.")] = 1000,
        filter: Annotated[
            str | None, Field(description="Such as: confidence > 0.8 and fact_type = 'event'")
        ] = None,
        tags: Annotated[list[str] | None, Field(description="Only facts with any of them.")] = None,
        as_of: Annotated[
            datetime | None, Field(description="Answer from what was known at that time.")
        ] = None,
    ) -> Recalled:
        """Find what the memory knows about a question; meaning, words, names and dates count."""
        report = await memory.recall_report(
            bank,
            question,
            filter=filter,
            tags=tags or None,
            as_of=as_of,
            top_k=likely_hits(max_tokens),
        )
        context = make_context(report, max_tokens=max_tokens)
        cited = {
            str(number): hit
            for number, hit in zip(context.citations, context.hits, strict=True)
            if hit.kind == "memory"
        }
        return {
            "text": context.text,
            "memory_ids": {number: _exact(hit.memory_id) for number, hit in cited.items()},
            "confidence": report.confidence,
            "sources": {n: hit.source_id for n, hit in cited.items() if hit.source_id is not None},
        }

    async def list_memories(
        filter: Annotated[str | None, Field(description="Such as: fact_type = 'event'")] = None,
        entity: Annotated[str | None, Field(description="Only memories that mention it.")] = None,
        tags: Annotated[list[str] | None, Field(description="Only facts with any of them.")] = None,
        before_id: Annotated[
            Id | None, Field(description="For the next page, the last memory_id of this one.")
        ] = None,
        top_k: Annotated[int, Field(description="Maximum number of memories.", ge=1, le=200)] = 20,
    ) -> list[Listed]:
        """List memories, latest stored first, with the ids that forget takes."""
        found = await memory.list_memories(
            bank,
            filter=filter,
            entity=entity or None,
            tags=tags or None,
            top_k=top_k,
            before_id=None if before_id is None else int(before_id),
        )
        return [_listed(one) for one in found]

    async def retain(facts: list[str | NewFact] | str | NewFact) -> list[Stored]:
        """Remember facts: all of them or, if one is refused, none. Known facts are not changed."""
        rows = await memory.retain(bank, cast("list[Fact]", facts))
        return [{"memory_id": _exact(row.memory_id), "is_new": row.is_new} for row in rows]

    async def forget(memory_ids: list[Id]) -> int:
        """Erase memories for good, by ids from recall or list; returns how many were erased."""
        return await memory.forget(bank, [*map(int, memory_ids)])

    tools: list[tuple[str, Callable[..., Awaitable[object]], dict[str, bool]]] = [
        ("recall", recall, READING),
        ("list", list_memories, READING),
    ]
    if not is_read_only:
        tools += [("retain", retain, ADDING), ("forget", forget, ERASING)]
    server.takes = {name: [*signature(function).parameters] for name, function, _ in tools}
    for name, function, hints in tools:
        annotations = ToolAnnotations.model_validate(hints)
        server.tool(name=name, annotations=annotations)(_refusing(function))
    return server


async def serve(
    memory: AsyncRecall,
    bank: str,
    *,
    is_read_only: bool = False,
    address: tuple[str, int] | None = None,
    token: str | None = None,
    hosts: Iterable[str] | None = LOCAL_HOSTS,
    origins: Iterable[str] = (),
) -> None:
    """Serve a bank until the client leaves or the task is cancelled.

    Args:
        memory: As for make_server().
        bank: As for make_server().
        is_read_only: As for make_server().
        address: Host and port of a server over streamable HTTP. Default: standard input and output.
        token: Bearer token that HTTP requests must have. Default: none.
        hosts: Host names that HTTP requests may use; None for any. Default: those of this machine.
        origins: Other origins whose pages may send requests, such as "https://app.example.com".
            Default: none.

    """
    if address is None:
        await make_server(memory, bank, is_read_only=is_read_only).run_stdio_async()
        return
    import uvicorn

    host, port = address
    # Doors checks host names and origins; the SDK does not know which are allowed.
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    if IS_FIRST:
        server = make_server(memory, bank, is_read_only=is_read_only, transport_security=security)
        application = server.streamable_http_app()
    else:
        server = make_server(memory, bank, is_read_only=is_read_only)
        application = server.streamable_http_app(transport_security=security)
    doors = Doors(application, token=token, hosts=hosts, origins=origins, is_for_programs=True)
    config = uvicorn.Config(Bounds(doors), host=host, port=port, log_level="warning")
    await uvicorn.Server(config).serve()


def _refusing(function: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
    """Pass errors that the model can correct on to it, and hide details of the server."""

    @wraps(function)
    async def tool(*arguments: Any, **named: Any) -> T:
        try:
            return await function(*arguments, **named)
        except BankNotFound as error:
            raise ToolError(f"{error.message}\nhint: {CREATE}") from error
        except RecallError as error:
            raise ToolError(str(error)) from error
        except psycopg.Error as error:
            logger.error("%s failed: %s", function.__name__, error)
            raise ToolError("the memory is not available now; see the server's log") from error

    return tool


def _exact(memory_id: int) -> Id:
    return memory_id if memory_id <= EXACT else str(memory_id)


def _listed(one: Memory) -> Listed:
    return {
        "memory_id": _exact(one.memory_id),
        "text": one.text,
        "fact_type": one.fact_type,
        "fact_key": one.fact_key,
        "source_id": one.source_id,
        "tags": [*one.tags],
        "entities": [*one.entities],
        "occurred": [*map(_written, one.occurred)] if one.occurred else None,
        "stored_at": _written(one.created_at),
    }


def _written(time: datetime | None) -> str | None:
    return time.isoformat() if time else None
