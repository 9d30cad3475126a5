"""The checks of the doctor, and its advice."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby

from psycopg.pq import TransactionStatus
from psycopg.sql import Literal

from pgrecall._version import __version__
from pgrecall.client import Connection, Recall
from pgrecall.connection.connecting import connect, value_of
from pgrecall.doctor import LEAST_RECALL, queries
from pgrecall.doctor.queries import Table
from pgrecall.errors import RecallError
from pgrecall.inference.embedders import DEFAULT_EMBEDDER, DEFAULT_MODEL, earlier_embedders
from pgrecall.inference.rerankers import SETTING, chosen_reranker
from pgrecall.rows import Bank
from pgrecall.server import build, schema
from pgrecall.server.citus import is_distributed
from pgrecall.server.installed import Installed, installed_by
from pgrecall.wording import own_command, size

_OLDEST_SERVER = 160000
_OLDEST_VECTOR = (0, 8, 4)
_LEAST_SIMILARITY = 0.7
_SAMPLE = 20
_CROWDED = 0.8
_STUCK_SECONDS = 300.0
_FEW = 3  # statements in an advice


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes:
        status: "good", "warning" or "bad".
        about: What was checked.
        found: What was found.
        advice: What to do about it; None if nothing.

    """

    status: str
    about: str
    found: str
    advice: str | None = None


def examine(dsn: str) -> list[Finding]:
    """Check a server, the installed packages and all banks."""
    with connect(dsn, autocommit=True) as connection:
        return examine_connected(connection)


def examine_connected(connection: Connection) -> list[Finding]:
    """Run the checks over an open connection, with its role."""
    try:
        schema.refuse_router(connection)
    except RecallError as error:
        return [Finding("good", "router", error.message, error.hint)]
    with _unquoted(connection):
        return _findings(connection)


@contextmanager
def _unquoted(connection: Connection) -> Iterator[None]:
    """Have names written without quotes, since the checks compare them as text."""
    former = value_of(connection, "select current_setting('quote_all_identifiers')")
    connection.execute("set quote_all_identifiers = off")
    try:
        yield
    finally:
        # In a failed transaction nothing runs, and its end takes the setting back.
        if connection.info.transaction_status in (
            TransactionStatus.IDLE,
            TransactionStatus.INTRANS,
        ):
            connection.execute("select set_config('quote_all_identifiers', %s, false)", [former])


def _findings(connection: Connection) -> list[Finding]:
    recall = Recall(connection)
    findings = [_server(connection), _vector(recall), _pgrecall(connection)]
    findings += [*_locale(recall), _embedder(), _reranker()]
    if findings[2].status == "bad":
        return findings
    expected = installed_by(schema.script(build.install_name(__version__)))
    tables = recall._run(queries.tables())
    gone = [*_columns(recall, expected, tables)]
    findings += gone
    if findings[1].status == "bad":
        return findings
    missing = _missing(recall, connection, expected, tables)
    findings += [*_vector_schema(recall), *_sessions(recall), *missing]
    if gone:  # what follows reads them
        return findings
    findings += _stray_rows(recall, expected, tables)
    if not is_distributed(connection):  # each node has ids of its own
        findings += _sequences(recall)
    findings += [*_tables(recall), *_vector_memory(recall)]
    # What follows calls functions that read tables.
    if all(finding.about not in ("functions", "tables") for finding in missing):
        findings += [*_row_security(recall), *_banks(recall)]
        findings += _indexes(recall)
    return findings


def _server(connection: Connection) -> Finding:
    number = connection.info.server_version
    version = f"PostgreSQL {number // 10000}.{number % 10000}"
    if number < _OLDEST_SERVER:
        return Finding("bad", "server", version, "Use PostgreSQL 16 or newer.")
    return Finding("good", "server", version)


def _vector(recall: Recall) -> Finding:
    version = recall._run(queries.vector_version())
    if version is None:
        return Finding("bad", "pgvector", "not installed", "Run: create extension vector;")
    former = recall._run(queries.former_vector_schema())
    if former is not None:
        return Finding(
            "bad",
            "pgvector",
            f"functions do not find it: they look in {former}",
            "Move it back: alter extension vector set schema NAME;",
        )
    if tuple(int(part) for part in version.split(".")[:3]) < _OLDEST_VECTOR:
        return Finding(
            "warning",
            "pgvector",
            f"{version}, which has known faults",
            "Install pgvector 0.8.4 or newer, then run: alter extension vector update;",
        )
    return Finding("good", "pgvector", version)


def _pgrecall(connection: Connection) -> Finding:
    try:
        installed = schema.installed_version(connection)
    except RecallError as error:
        return Finding("bad", "pgrecall", error.message, error.hint)
    if installed is None:
        return Finding("bad", "pgrecall", "not installed in this database", "Run: pgrecall migrate")
    if installed != __version__:
        return Finding(
            "bad",
            "pgrecall",
            f"version {installed} in the database, {__version__} in this package",
            "Run pgrecall migrate, or install the package of that version.",
        )
    return Finding("good", "pgrecall", f"{installed}, as this package")


def _locale(recall: Recall) -> Iterator[Finding]:
    if not recall._run(queries.knows_letters()):
        yield Finding(
            "warning",
            "locale",
            "knows no letters but a to z: names and words with others are cut, joined or refused",
            "Use a database of another locale, and retain such facts there anew:"
            " create database memory locale 'C.UTF-8' template template0;",
        )
    versions = recall._run(queries.collation_versions())
    if versions is not None:
        database, former, current = versions
        yield Finding(
            "warning",
            "locale",
            f"of version {former}, now {current}: indexes of texts may miss rows",
            f"Run: reindex database {database};"
            f" alter database {database} refresh collation version;",
        )


def _embedder() -> Finding:
    try:
        DEFAULT_EMBEDDER.embed(["It is there."])
    except RecallError as error:
        return Finding("warning", "embedder", error.message, error.hint)
    return Finding("good", "embedder", f"{DEFAULT_MODEL}, packaged")


def _reranker() -> Finding:
    setting = os.environ.get(SETTING)
    reranker = chosen_reranker(True)
    if reranker is None:
        return Finding("good", "reranker", f"none, as {SETTING} says")
    try:
        reranker.scores("Is it there?", ["It is there."])
    except RecallError as error:
        return Finding("bad" if setting else "warning", "reranker", error.message, error.hint)
    return Finding(
        "good",
        "reranker",
        setting or "late interaction, or else a cross-encoder of MiniLM, packaged",
    )


def _vector_schema(recall: Recall) -> Iterator[Finding]:
    """Look for roles that can create functions on our search path.

    A function in the schema of pgvector whose arguments match a call better than those of the one
    in pg_catalog would run instead, with the privileges of the caller of pgrecall.
    """
    schema_name, owner, creators, members = recall._run(queries.creators_in_vector_schema())
    advice = []
    if creators:
        advice.append(f"revoke create on schema {schema_name} from {', '.join(creators)};")
    if members:  # by membership in its owner, which no revoke takes from them
        advice.append(f"alter schema {schema_name} owner to {owner};")
    if not advice:
        return
    yield Finding(
        "bad" if "public" in creators else "warning",
        "pgvector",
        f'its schema "{schema_name}" lets others create functions there, which pgrecall could'
        f" call: {', '.join([*creators, *members])}",
        f"Run: {' '.join(advice)}",
    )


def _row_security(recall: Recall) -> Iterator[Finding]:
    """Look for roles that can read each other's banks."""
    owner = recall._run(queries.stray_searcher())
    if owner is not None:
        yield Finding(
            "bad",
            "row security",
            f'the function of the searcher belongs to "{owner}", as after a restore without the'
            " roles: it answers nobody, and recalls under row security take long",
            f"Run: {_create_roles(recall)}",
        )
    tables, roles, is_fenced = recall._run(queries.open_tables())
    if not tables:
        if is_fenced and owner is None:
            yield Finding("good", "row security", "on")
        return
    if not is_fenced and len(recall.banks()) < 2:
        return
    shown = ", ".join(tables[:3]) + (", ..." if len(tables) > 3 else "")
    yield Finding(
        "bad",
        "row security",
        f"missing from {len(tables)} tables ({shown}), so that these roles reach every bank:"
        f" {', '.join(roles)}",
        "Run: select pgrecall.enable_row_security(); a role that is meant to see every bank:"
        " alter role NAME bypassrls;",
    )


def _create_roles(recall: Recall) -> str:
    """Return the statement that creates the roles again, with the prefix that they had."""
    prefix = recall._run(queries.role_prefix())
    if prefix is None:
        return "select pgrecall.create_roles(); with the prefix that was used, if any."
    return f"select pgrecall.create_roles({_literal(prefix)});"


def _sessions(recall: Recall) -> Iterator[Finding]:
    """Check the number of connections, and look for sessions that block others."""
    taken, most, idle, waiting = recall._run(queries.sessions(_STUCK_SECONDS))
    if taken >= _CROWDED * most:
        yield Finding(
            "warning",
            "connections",
            f"{taken} of {most} are used",
            "Share them: Recall.connect(pool_size=4) in each process, or PgBouncer; or raise"
            " max_connections.",
        )
    since = f"for {_STUCK_SECONDS / 60:.0f} minutes"
    for pids, problem, advice in (
        (idle, "idle in a transaction", "set idle_in_transaction_session_timeout"),
        (waiting, "waiting for a lock", "find the blocking session: select pg_blocking_pids({0})"),
    ):
        if pids:
            listed = ", ".join(map(str, pids))
            yield Finding(
                "warning",
                "sessions",
                f"{problem} {since} or longer: {listed}",
                f"End them: select pg_terminate_backend({pids[0]}); {advice.format(pids[0])}.",
            )


def _columns(recall: Recall, expected: Installed, tables: Mapping[str, Table]) -> Iterator[Finding]:
    """Look for columns that were dropped, as by ``drop extension vector cascade``."""
    there = recall._run(queries.columns())
    gone = [
        f"{table}.{column}"
        for table, columns in expected.tables.items()
        for column in columns
        if table in tables and (table, column) not in there
    ]
    if not gone:
        return
    yield Finding(
        "bad",
        "columns",
        f"missing, with what they held: {', '.join(gone)}",
        "Restore a backup into an empty database: nothing else brings them back.",
    )


def _missing(
    recall: Recall, connection: Connection, expected: Installed, tables: Mapping[str, Table]
) -> list[Finding]:
    """Compare tables, functions, indexes and constraints with those in the installation script."""
    indexes, constraints = recall._run(queries.indexes()), recall._run(queries.constraints())
    restore = (
        "A restore that stopped halfway leaves a schema like this: restore again into an empty"
        " database and look at the first error."
    )
    findings = []

    def add(
        about: str, problem: str, mending: Mapping[str, str], instead: str | None = restore
    ) -> None:
        """Give the statement for each name; or other advice, if any, where one lacks or many do."""
        if mending:
            is_short = instead is None or (len(mending) <= _FEW and all(mending.values()))
            advice = f"Run: {' '.join(mending.values())}" if is_short else instead
            findings.append(Finding("bad", about, f"{problem}: {', '.join(mending)}", advice))

    add(
        "functions",
        "missing",
        dict.fromkeys(schema.missing_functions(connection), ""),
        f"Run: pgrecall migrate; then, if its roles are used: {_create_roles(recall)}",
    )
    lost = sorted(expected.tables.keys() - tables.keys())
    add("tables", "missing", dict.fromkeys(lost, ""))
    if not is_distributed(connection):
        bare = [name for name, table in tables.items() if table.lacks_partitions]
        add("tables", "without partitions", dict.fromkeys(bare, ""))
    add(
        "tables",
        "not among the partitions of pgrecall.embedding",
        {
            name: f"alter table pgrecall.embedding attach partition {name} {bound};"
            if name in tables
            else f"create table {name} partition of pgrecall.embedding {bound};"
            for name, bound in recall._run(queries.missing_partitions())
        },
    )
    add(
        "indexes",
        "missing",
        {
            name: statement
            for name, statement in sorted(expected.indexes.items())
            if name not in indexes and not any(f" on {table} " in statement for table in lost)
        },
    )
    invalid = recall._run(queries.invalid_indexes())
    add("indexes", "invalid", {name: "" for name, drop in invalid.items() if drop is None})
    add(
        "indexes",
        "left invalid by a build that was interrupted",
        {
            name: f"{drop} {name}; {expected.indexes.get(name.partition('.')[2], '')}".rstrip()
            for name, drop in invalid.items()
            if drop is not None
        },
        None,
    )
    add(
        "triggers",
        "disabled, so that no foreign key is checked, on",
        {
            name: f"alter table {name} enable trigger all;"
            for name in recall._run(queries.disabled_triggers())
        },
        None,
    )
    add(
        "constraints",
        "missing",
        {
            one.name: f"alter table {one.table} add constraint {one.name} {one.definition};"
            for one in expected.constraints
            if (one.table, one.name) not in constraints and one.table in tables
        },
    )
    add(
        "constraints",
        "not validated",
        {
            one.name: f"alter table {one.table} validate constraint {one.name};"
            for one in expected.constraints
            if constraints.get((one.table, one.name)) is False
        },
        None,
    )
    return findings


def _stray_rows(
    recall: Recall, expected: Installed, tables: Mapping[str, Table]
) -> Iterator[Finding]:
    """Look for rows that refer to no row, which foreign keys allow where triggers were disabled."""
    readable = {name for name, table in tables.items() if table.is_readable}
    for one in expected.constraints:
        if one.reference is None or not {one.table, one.reference[1]} <= readable:
            continue
        columns, other, keys = one.reference
        given = ", ".join(f"x.{column}" for column in columns)
        same = " and ".join(
            f"y.{key} = x.{column}" for key, column in zip(keys, columns, strict=True)
        )
        rows = (
            f"{one.table} x where ({given}) is not null"
            f" and not exists (select from {other} y where {same})"
        )
        strays = recall._run(queries.count(rows))
        if strays:
            yield Finding(
                "bad",
                "rows",
                f"{strays:,} of {one.table} belong to no row of {other}",
                f"Restore the table {other} from the same dump. See which: select x.* from {rows};",
            )


def _sequences(recall: Recall) -> Iterator[Finding]:
    """Look for sequences that would give out ids which are in use."""
    for statement in recall._run(queries.sequences()):
        name, last, greatest = recall._run(queries.sequence_state(statement))
        if greatest is not None and last < greatest:
            yield Finding(
                "bad",
                "ids",
                f"{name} is at {last:,}, below the greatest id, {greatest:,}",
                f"Run: select setval({_literal(name)}, {greatest});",
            )


def _orphans(recall: Recall, bank: Bank, counted: Mapping[str, int]) -> Iterator[Finding]:
    """Look for memories without their counterparts, as after a restore of single tables."""
    bare = recall._run(queries.without_embedding(bank.bank_id))
    about = f'bank "{bank.bank_id}"'
    if bank.embedding_dimensions is not None and bare:
        yield Finding(
            "bad" if bare == bank.memories else "warning",
            about,
            f"{bare:,} of {bank.memories:,} memories have no embedding and are found only by words",
            f"Run: {own_command('embed', bank.bank_id)}; or restore the table pgrecall.embedding.",
        )
    for kind, documents in (("memory", bank.memories), ("message", bank.messages)):
        if documents and not counted.get(kind):
            yield Finding(
                "bad",
                about,
                f"there are no statistics for {documents:,} {kind} texts: keyword search fails",
                "Run: select"
                f" pgrecall.refresh_statistics({_literal(bank.bank_id)}, is_full => true);",
            )


def _tables(recall: Recall) -> Iterator[Finding]:
    unknown = recall._run(queries.unanalysed_tables())
    if unknown:
        names = ", ".join(unknown)
        yield Finding("warning", "statistics", f"never analysed: {names}", f"Run: analyze {names};")


def _vector_memory(recall: Recall) -> Iterator[Finding]:
    indexes, memory = recall._run(queries.vector_index_memory())
    if indexes <= memory:
        return
    yield Finding(
        "warning",
        "memory",
        f"vector indexes take {size(indexes)}, more than shared_buffers, {size(memory)}",
        "Raise shared_buffers, to a quarter of the machine's memory; or let large banks search"
        """ by less: select pgrecall.configure_bank(BANK, '{"vector_search": "binary"}');""",
    )


def _indexes(recall: Recall) -> Iterator[Finding]:
    owner = recall._run(queries.other_owner())
    run = "Run: pgrecall index --apply" + (f', as "{owner}", who owns the tables' if owner else "")
    for bank, steps in groupby(recall.index_plan(), key=lambda step: step.bank_id):
        due = list(steps)
        reasons = "; ".join(dict.fromkeys(step.reason for step in due))
        yield Finding(
            "warning",
            "a dropped bank" if bank is None else f'bank "{bank}"',
            f"{len(due)} statements for its vector indexes are due: {reasons}",
            run,
        )


def _index_recall(recall: Recall, bank: str) -> list[Finding]:
    return [
        Finding(
            "warning",
            f'bank "{bank}"',
            f"searches of {check.fact_type} find {check.recall:.0%} of the nearest",
            f"Run: select pgrecall.configure_bank({_literal(bank)}, "
            """'{"ef_search": 400}'); or raise"""
            " hnsw_m and hnsw_ef_construction and run: pgrecall index --apply",
        )
        for check in recall.recall_check(bank, sample=_SAMPLE)
        if check.recall < LEAST_RECALL
    ]


def _language(recall: Recall, bank: str) -> Iterator[Finding]:
    """Look for a bank whose words are stemmed by nothing, or in another language than its texts."""
    lost = recall._run(queries.lost_configuration(bank))
    if lost is not None:
        values = f"{_literal(bank)}, {_literal(json.dumps({'text_search_config': 'english'}))}"
        yield Finding(
            "bad",
            f'bank "{bank}"',
            f'its text search configuration "{lost}" does not exist',
            f"Create it again, or choose another: select pgrecall.configure_bank({values});",
        )
        return
    better = recall._run(queries.better_configuration(bank))
    if better is None:
        return
    own, other, share, other_share = better
    values = f"{_literal(bank)}, {_literal(json.dumps({'text_search_config': other}))}"
    yield Finding(
        "warning",
        f'bank "{bank}"',
        f"its words are read as {own}, which knows {share:.0%} of them as stop words;"
        f" {other} knows {other_share:.0%}",
        f"If its texts are in that language, run: select pgrecall.configure_bank({values});",
    )


def _reembedding(recall: Recall, bank: str) -> Iterator[Finding]:
    state = recall.reembed_status(bank)
    about = f'bank "{bank}"'
    if state.next_model is not None:
        yield Finding(
            "warning",
            about,
            f'being re-embedded with "{state.next_model}":'
            f" {state.pending:,} of {state.vectors:,} embeddings to go",
            f"Go on with: {own_command('reembed', bank, '--model', state.next_model)}; or"
            f" give up with: {own_command('reembed', bank, '--cancel')}",
        )
    elif state.previous_model is not None or state.leftover:
        yield Finding(
            "warning",
            about,
            f"{state.leftover:,} memories still have embeddings of another model than"
            f' "{state.model or ""}"',
            f"Call until it returns 0: select pgrecall.reembed_clean({_literal(bank)});",
        )
    elif any(state.model == earlier.model for earlier in earlier_embedders(DEFAULT_EMBEDDER)):
        newer = DEFAULT_EMBEDDER.model
        yield Finding(
            "good",
            about,
            f'embedded with "{state.model}"; the driver has "{newer}", which finds more',
            f"Run: {own_command('reembed', bank, '--model', newer)}",
        )


def _attached(recall: Recall, bank: str) -> Iterator[Finding]:
    """Look for attached tables whose changes do not reach the bank."""
    for table in recall.attached_tables(bank):
        if table.status == "broken":
            if not recall._run(queries.sees_all_rows(table.relation)):
                continue  # a matter of the caller
            advice = (
                "Attach the table again, which reads all rows; or run:"
                f" {own_command('detach', bank, table.relation)}"
            )
            yield Finding("bad", f'bank "{bank}"', str(table.problem), advice)
        elif table.failed:
            found = f"{table.failed:,} rows of {table.relation} cannot be stored: {table.problem}"
            advice = "Change these rows, and sync again."
            yield Finding("warning", f'bank "{bank}"', found, advice)


def _bank(recall: Recall, bank: Bank) -> Iterator[Finding]:
    counted = recall.bank_statistics(bank.bank_id)
    waiting = sum(row.waiting for row in counted)
    documents = bank.memories + bank.messages
    about, name = f'bank "{bank.bank_id}"', _literal(bank.bank_id)
    found = f"{bank.memories:,} memories, {bank.messages:,} messages, {waiting:,} not counted"
    if waiting * 5 > documents:
        advice = f"Run: select pgrecall.refresh_statistics({name});"
        yield Finding("warning", about, found, advice)
    else:
        yield Finding("good", about, found)
    if not all(row.is_weighed for row in counted):
        found = "the mean length of its texts differs from the one in its word weights"
        advice = f"Run: {own_command('maintain', bank.bank_id)}"
        yield Finding("warning", about, found, advice)
    similarity = recall.vocabulary_drift(bank.bank_id)
    if similarity is not None and similarity < _LEAST_SIMILARITY:
        yield Finding(
            "warning",
            about,
            f"its frequent words have changed: similarity {similarity:.2f} to the snapshot",
            "See whether text_search_config and the embedding model still fit what it"
            " holds; then run:"
            f" select pgrecall.refresh_statistics({name}, is_full => true);"
            f" select pgrecall.snapshot_vocabulary({name});",
        )
    yield from _language(recall, bank.bank_id)
    unlinked = recall.pending_links(bank.bank_id)
    if unlinked:
        found = f"{unlinked:,} facts have no links yet: the graph does not reach them"
        advice = f"Run: {own_command('link', bank.bank_id)}"
        yield Finding("warning", about, found, advice)
    yield from _reembedding(recall, bank.bank_id)
    yield from _attached(recall, bank.bank_id)
    yield from _orphans(
        recall, bank, {row.kind: row.document_count + row.waiting for row in counted}
    )


def _banks(recall: Recall) -> Iterator[Finding]:
    banks = recall.banks()
    if not banks:
        if recall._run(queries.is_fenced()):
            found = "row security shows this role none"
            yield Finding("good", "banks", found, "Connect as a role that has banks.")
        else:
            advice = "Run: pgrecall bank create NAME, or pgrecall demo"
            yield Finding("good", "banks", "none yet", advice)
    has_indexes = recall._run(queries.has_vector_indexes())
    for bank in banks:
        yield from _bank(recall, bank)
        if has_indexes:
            yield from _index_recall(recall, bank.bank_id)


def _literal(text: str) -> str:
    return Literal(text).as_string()
