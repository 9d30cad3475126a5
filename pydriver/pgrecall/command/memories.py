"""Commands about single memories: list, get, history, update, forget."""

from __future__ import annotations

from types import SimpleNamespace

from rich.console import Console

from pgrecall.client import Recall
from pgrecall.command import render
from pgrecall.command.actions import embedder_of, print_done, print_rows
from pgrecall.rows import Period


def list_them(options: SimpleNamespace, console: Console) -> int:
    """List memories."""
    with Recall.connect(options.dsn, embedder=None) as recall:
        found = recall.list_memories(
            options.bank,
            filter=options.filter,
            fact_types=options.fact_type,
            tags=options.tag,
            during=_during(options),
            entity=options.entity,
            is_ended_too=options.all,
            before_id=options.before,
            top_k=options.top_k,
        )
    return print_rows(options, console, found, render.memories_table)


def get(options: SimpleNamespace, console: Console) -> int:
    """Show memories by id."""
    with Recall.connect(options.dsn, embedder=None) as recall:
        found = [recall.get(options.bank, memory_id) for memory_id in options.memory_id]
    return print_rows(options, console, found, render.memories_table)


def history(options: SimpleNamespace, console: Console) -> int:
    """List the versions of a fact."""
    with Recall.connect(options.dsn, embedder=None) as recall:
        found = recall.history(options.bank, options.memory_id)
    return print_rows(options, console, found, render.memories_table)


def update(options: SimpleNamespace, console: Console) -> int:
    """Change fields of a memory."""
    with Recall.connect(options.dsn, embedder=embedder_of(options)) as recall:
        new = recall.update(options.bank, options.memory_id, **dict(options.changes))
        former = recall.history(options.bank, new.memory_id)
    found = [new if memory.memory_id == new.memory_id else memory for memory in former]
    code = print_rows(options, console, found, render.memories_table)
    if not options.json and (ended := [*new.ended_entities, *new.ended_relations]):
        console.print(f"no longer said: {'; '.join(ended)}", markup=False)
    return code


def forget(options: SimpleNamespace, console: Console) -> int:
    """Erase memories by id or by conditions."""
    with Recall.connect(options.dsn, embedder=None) as recall:
        removed = recall.forget(
            options.bank,
            list(options.memory_id) or None,
            filter=options.filter,
            fact_key=options.key,
            source_id=options.source,
            dry_run=options.dry_run or None,
        )
    if options.memory_id:
        said = f"forgot {removed:,} of {len(options.memory_id):,} memories"
    else:
        said = _forgotten(options, removed, "memory", "memories")
    print_done(options, console, said, forgotten=removed, dry_run=options.dry_run)
    return 0


def forget_messages(options: SimpleNamespace, console: Console) -> int:
    """Erase raw messages by id, session or time."""
    with Recall.connect(options.dsn, embedder=None) as recall:
        removed = recall.forget_messages(
            options.bank,
            list(options.message_id) or None,
            session=options.session,
            during=_during(options),
            dry_run=options.dry_run or None,
        )
    said = _forgotten(options, removed, "message", "messages")
    print_done(options, console, said, forgotten=removed, dry_run=options.dry_run)
    return 0


def _during(options: SimpleNamespace) -> Period | None:
    is_given = options.since is not None or options.until is not None
    return (options.since, options.until) if is_given else None


def _forgotten(options: SimpleNamespace, count: int, one: str, many: str) -> str:
    verb = "would forget" if options.dry_run else "forgot"
    return f"{verb} {count:,} {one if count == 1 else many}"
