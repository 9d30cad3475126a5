"""Banks on several servers behind a router, a PostgreSQL with PL/Proxy and without banks.

The router has the public functions with their signatures; each function about a bank runs as a
whole on the bank's shard. Functions here take a connection to the router in autocommit mode, as a
superuser. This process must reach the shards by the same DSNs as the router. router.py makes the
functions, router.sql has the directory and shared functions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgrecall._version import __version__
from pgrecall.cluster.router import statements
from pgrecall.connection.connecting import checked_dsn, connect, value_of
from pgrecall.errors import BankNotFound, InstallError, InvalidArgument, translated
from pgrecall.server import schema

Connection = psycopg.Connection[Any]

_BLOCK = 2**40
_PAGE = 2000
_STYLE = ("-c datestyle=ISO,MDY", "-c intervalstyle=postgres")
_DRAIN_SECONDS = 60.0
_SETTLE_SECONDS = 0.5  # for calls that have looked up the old shard but not reached it yet


class Shard(NamedTuple):
    """A shard in the router's directory."""

    shard: str
    dsn: str
    is_open: bool
    version: str


@dataclass(frozen=True, slots=True)
class ShardStatus:
    """A shard and its state.

    Attributes:
        shard: Name of the shard.
        dsn: Its DSN.
        is_open: Whether it gets new banks.
        banks: Number of its banks.
        version: Its version of pgrecall; None if it does not answer.
        bytes: Size of its database; None if it does not answer.
        problem: What is wrong, or None.

    """

    shard: str
    dsn: str
    is_open: bool
    banks: int
    version: str | None
    bytes: int | None
    problem: str | None


def init(router: Connection) -> bool:
    """Make a database the router; return False if it is one already.

    Raises:
        InstallError: the server has no PL/Proxy, or the database holds pgrecall itself.

    """
    with translated():
        if schema.is_router(router):
            return False
        if schema.installed_version(router) is not None:
            raise InstallError(
                "this database has banks, so it cannot be the router",
                hint="Use another database as the router, and add this one as a shard.",
            )
        try:
            router.execute("create extension if not exists plproxy")
        except psycopg.errors.FeatureNotSupported as error:
            raise InstallError(
                "the server has no PL/Proxy",
                hint="Install its package, such as Debian's postgresql-15-plproxy.",
            ) from error
        with router.transaction():
            router.execute(Path(__file__).with_name("router.sql").read_bytes())
        return True


def shards(router: Connection) -> list[Shard]:
    """List the shards by name.

    Raises:
        InstallError: the database is not a router.

    """
    if not schema.is_router(router):
        raise InstallError("this database is not a router", hint="Make it one: pgrecall shard init")
    found = router.execute(
        "select shard, dsn, is_open, version from pgrecall_router.shard order by shard"
    )
    return [Shard(*row) for row in found]


def add(router: Connection, name: str, dsn: str, *, is_open: bool = True) -> list[str]:
    """Add a server with pgrecall and its banks; return their names.

    The shard gets its own block of ids, so that ids are unique across shards.

    Args:
        router: A connection to the router.
        name: A name for the server: lower-case letters, digits, underscores.
        dsn: Its DSN, for the router and this process, without user and password, which are the
            caller's.
        is_open: Whether it gets new banks.

    Raises:
        InstallError: the server has no pgrecall, or the database is not a router.
        InvalidArgument: the name is taken or invalid, or another shard has a bank of the same name.

    """
    known = shards(router)
    dsn = _styled(dsn)
    given = conninfo_to_dict(dsn)
    if {"user", "password"} & given.keys():
        raise InvalidArgument(
            "the DSN of a shard names a user or password, which every caller would use",
            hint="Remove it. The router connects to the shard as the calling role.",
        )
    if any(name == one.shard or dsn == one.dsn for one in known):
        raise InvalidArgument(f'there is already a shard "{name}" or one with this DSN')
    with _connected(router, dsn) as shard, router.transaction():
        version = schema.installed_version(shard)
        if version is None:
            raise InstallError(
                f'the database of shard "{name}" has no pgrecall',
                hint="Install it: pgrecall migrate --dsn ...",
            )
        try:
            router.execute(
                "insert into pgrecall_router.shard (shard, dsn, is_open, version)"
                " values (%s, %s, %s, %s)",
                [name, dsn, is_open, version],
            )
        except psycopg.errors.CheckViolation as error:
            raise InvalidArgument(
                f'"{name}" is not a name for a shard', hint="Use a-z, 0-9 and _, at most 40."
            ) from error
        banks = [bank for (bank,) in shard.execute("select bank_id from pgrecall.bank order by 1")]
        taken = router.execute(
            "select bank_id, shard from pgrecall_router.bank where bank_id = any (%s)", [banks]
        ).fetchone()
        if taken is not None:
            raise InvalidArgument(
                f'bank "{taken[0]}" is on shard "{taken[1]}" already',
                hint="Rename one of the two by exporting, importing and dropping it.",
            )
        with router.cursor() as cursor:
            cursor.executemany(
                "insert into pgrecall_router.bank (bank_id, shard) values (%s, %s)",
                [(bank, name) for bank in banks],
            )
        _new_block(router, shard)
        if not known:
            _make_functions(router, shard)
    return banks


def migrate(router: Connection, report: Callable[[str, str], None] | None = None) -> None:
    """Upgrade pgrecall on each shard in turn, then the functions of the router.

    Args:
        router: A connection to the router.
        report: Called with the name and version of each upgraded shard.

    Raises:
        InstallError: as :func:`pgrecall.schema.migrate`; earlier shards stay upgraded.

    """
    for one in shards(router):
        with _connected(router, one.dsn) as shard:
            after = schema.migrate(shard).after
            router.execute(
                "update pgrecall_router.shard set version = %s, dsn = %s where shard = %s",
                [after, _styled(one.dsn), one.shard],
            )
        if report:
            report(one.shard, after)
    for one in shards(router)[:1]:
        with _connected(router, one.dsn) as shard, router.transaction():
            _make_functions(router, shard)


def banks(router: Connection, shard: str | None = None) -> list[tuple[str, str]]:
    """List the banks by name, with their shards."""
    shards(router)
    return router.execute(
        "select bank_id, shard from pgrecall_router.bank"
        " where shard = %(shard)s or %(shard)s::text is null order by bank_id",
        {"shard": shard},
    ).fetchall()


def status(router: Connection) -> list[ShardStatus]:
    """Return the state of each shard."""
    known = shards(router)
    counts = dict(
        router.execute("select shard, count(*) from pgrecall_router.bank group by shard").fetchall()
    )
    unfinished: dict[str, list[str]] = {}
    for bank, place in router.execute(
        "select bank_id, coalesce(moving_to, left_on) from pgrecall_router.bank"
        " where moving_to is not null or left_on is not null"
    ):
        unfinished.setdefault(place, []).append(bank)
    found = []
    for one in known:
        version = size = problem = None
        try:
            with _connected(router, one.dsn) as shard:
                version = schema.installed_version(shard)
                size = value_of(shard, "select pg_database_size(current_database())")
            if version != __version__:
                problem = f"version {version}, not {__version__}: pgrecall shard migrate"
            elif one.shard in unfinished:
                left = ", ".join(unfinished[one.shard])
                problem = f"an interrupted move left a copy: {left}: repeat pgrecall shard move"
        except psycopg.Error as error:
            problem = str(error).strip().splitlines()[0]
        found.append(
            ShardStatus(
                one.shard,
                one.dsn,
                one.is_open,
                counts.get(one.shard, 0),
                version,
                size,
                problem,
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class Moved:
    """A bank on its new shard.

    Attributes:
        rows: Number of rows copied; 0 if the bank was there already.
        paused: Seconds that writers had to wait.

    """

    rows: int
    paused: float


def move(router: Connection, bank: str, to: str) -> Moved:
    """Move a bank to another shard. Recalls go on; writers wait until it is done.

    The bank is locked on its shard like by an exclusive writer, copied in one transaction, given
    its vector indexes, and recorded in the directory. Once no call runs on the old shard any more,
    it is dropped there. Waiting writers then find no bank and are sent to the new shard. After an
    interruption the directory is right, and the next move cleans up.

    Args:
        router: A connection to the router.
        bank: Name of the bank.
        to: Name of the shard.

    Raises:
        BankNotFound: the router knows no such bank.
        InvalidArgument: the shard does not exist, or has another bank with that name.

    """
    known = {one.shard: one for one in shards(router)}
    if to not in known:
        raise InvalidArgument(
            f'there is no shard "{to}"', hint=f"There are: {', '.join(known) or 'none'}."
        )
    row = router.execute(
        "select shard, moving_to, left_on from pgrecall_router.bank where bank_id = %s", [bank]
    ).fetchone()
    if row is None:
        raise BankNotFound(
            f'bank "{bank}" does not exist', hint="List them with: pgrecall shard list"
        )
    place, moving_to, left_on = row
    for left in {moving_to, left_on} - {None, place}:
        with _connected(router, known[left].dsn) as shard, shard.transaction():
            if _has(shard, bank):
                shard.execute("select pgrecall.drop_bank(%s)", [bank])
    _note(router, bank, "moving_to = null, left_on = null")
    if place == to:
        return Moved(0, 0.0)
    with (
        _connected(router, known[place].dsn) as source,
        _connected(router, known[to].dsn) as target,
    ):
        if _has(target, bank):
            raise InvalidArgument(
                f'shard "{to}" has a bank "{bank}", which the router does not know',
                hint="Drop it there, or export it under another name.",
            )
        _note(router, bank, "moving_to = %s", to)
        with source.transaction():
            # Wait for open writers of the bank, and block others until the end of this transaction.
            source.execute("select pgrecall.configure_bank(%s, '{}')", [bank])
            began = time.perf_counter()
            _above(router, source, target, bank)
            with target.transaction():
                rows = _copy(source, target, bank)
            plan = target.execute("select statement from pgrecall.index_plan(%s)", [bank])
            for (statement,) in plan.fetchall():
                target.execute(statement.encode())
            # A source that was lost meanwhile no longer blocks writers: its successor may have
            # facts that were not copied.
            source.execute("select 1")
            _note(router, bank, "shard = %s, moving_to = null, left_on = %s", to, place)
            _drain(source)
            source.execute("select pgrecall.drop_bank(%s)", [bank])
        paused = time.perf_counter() - began
    _note(router, bank, "left_on = null")
    return Moved(rows, paused)


def _note(router: Connection, bank: str, change: str, *values: object) -> None:
    statement = f"update pgrecall_router.bank set {change} where bank_id = %s"
    router.execute(statement.encode(), [*values, bank])


def _has(shard: Connection, bank: str) -> bool:
    query = "select exists (select from pgrecall.bank where bank_id = %s)"
    return bool(value_of(shard, query, bank))


def _copy(source: Connection, target: Connection, bank: str) -> int:
    last, rows = None, 0
    while True:
        page = source.execute(
            "select r::text from pgrecall.exported_rows(%s, %s, %s) as r", [bank, last, _PAGE]
        ).fetchall()
        if not page:
            return rows
        last = page[-1][0]
        texts = f"[{','.join(text for (text,) in page)}]"
        target.execute("select pgrecall.import_rows(%s, %s::jsonb)", [bank, texts])
        rows += len(page)


def _drain(source: Connection) -> None:
    """Wait for all calls on a shard that began before now, except those that wait for a lock."""
    time.sleep(_SETTLE_SECONDS)
    since = value_of(source, "select clock_timestamp()")
    until = time.monotonic() + _DRAIN_SECONDS
    running = (
        "select count(*) from pg_stat_activity where datname = current_database()"
        " and pid <> pg_backend_pid() and backend_type = 'client backend' and state = 'active'"
        " and wait_event_type is distinct from 'Lock' and query_start < %s"
    )
    while value_of(source, running, since) and time.monotonic() < until:
        source.execute("select pg_stat_clear_snapshot()")
        time.sleep(0.05)


def _above(router: Connection, source: Connection, target: Connection, bank: str) -> None:
    """Let the target's ids continue above those of the bank, since they rise within a bank."""
    last = "select coalesce(pg_sequence_last_value('pgrecall.id_seq'), 0)"
    if value_of(source, last) > value_of(target, last):
        _new_block(router, target)


def _new_block(router: Connection, shard: Connection) -> None:
    block = value_of(router, "select nextval('pgrecall_router.id_block')")
    shard.execute(
        "select setval('pgrecall.id_seq', greatest(%s, 1 +"
        " coalesce(pg_sequence_last_value('pgrecall.id_seq'), 0)))",
        [block * _BLOCK],
    )


@contextmanager
def _connected(router: Connection, dsn: str) -> Iterator[Connection]:
    """Connect to a shard as the role of the router's connection."""
    limited = make_conninfo(_styled(dsn), user=router.info.user, connect_timeout=5)
    with connect(limited, autocommit=True) as shard:
        yield shard


def _styled(dsn: str) -> str:
    """Have sessions of a shard write times as the router reads them, whatever the server's way."""
    options = str(conninfo_to_dict(checked_dsn(dsn)).get("options") or "")
    lacking = [setting for setting in _STYLE if setting not in options]
    return make_conninfo(dsn, options=" ".join([options, *lacking]).strip())


def _make_functions(router: Connection, shard: Connection) -> None:
    for statement in statements(router, shard):
        router.execute(statement.encode())
