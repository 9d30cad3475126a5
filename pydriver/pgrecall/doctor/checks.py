"""The checks of the doctor, and its advice."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

import psycopg
from psycopg.sql import Literal

from pgrecall._version import __version__
from pgrecall.client import Connection, Recall
from pgrecall.doctor import LEAST_RECALL, queries
from pgrecall.errors import RecallError
from pgrecall.inference.embedders import DEFAULT_EMBEDDER, DEFAULT_MODEL, earlier_embedders
from pgrecall.inference.rerankers import SETTING, chosen_reranker
from pgrecall.rows import Bank
from pgrecall.server import build, schema
from pgrecall.wording import own_command, size

_OLDEST_SERVER = 160000
_OLDEST_VECTOR = (0, 8, 4)
_INDEX = re.compile(r"^\s*create (?:unique )?index (\w+)\s+on ", re.MULTILINE)
_LEAST_SIMILARITY = 0.7
_SAMPLE = 20
_CROWDED = 0.8
_STUCK_SECONDS = 300.0


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
    with psycopg.connect(dsn, autocommit=True) as connection:
        return examine_connected(connection)


def examine_connected(connection: Connection) -> list[Finding]:
    """Run the checks over an open connection, with its role."""
    recall = Recall(connection)
    findings = [_server(connection), _vector(recall), _pgrecall(connection)]
    findings += [_embedder(), _reranker()]
    if findings[2].status != "bad":
        findings += [*_vector_schema(recall), *_row_security(recall)]
        findings += _sessions(recall)
        findings += [*_missing(recall), *_tables(recall), *_vector_memory(recall)]
        findings += [*_banks(recall), *_indexes(recall), *_index_recall(recall)]
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


def _vector_schema(recall: Recall) -> list[Finding]:
    """Look for roles that can create functions on our search path.

    A function in the schema of pgvector whose arguments match a call better than those of the one
    in pg_catalog would run instead, with the privileges of the caller of pgrecall.
    """
    schema_name, creators = recall._run(queries.creators_in_vector_schema())
    if not creators:
        return []
    return [
        Finding(
            "bad" if "public" in creators else "warning",
            "pgvector",
            f'its schema "{schema_name}" lets others create functions there, which pgrecall could'
            f" call: {', '.join(creators)}",
            f"Run: revoke create on schema {schema_name} from {', '.join(creators)};",
        )
    ]


def _row_security(recall: Recall) -> list[Finding]:
    """Look for roles that can read each other's banks."""
    tables, roles, is_fenced = recall._run(queries.open_tables())
    if not tables:
        return [Finding("good", "row security", "on")] if is_fenced else []
    if not is_fenced and len(recall.banks()) < 2:
        return []
    shown = ", ".join(tables[:3]) + (", ..." if len(tables) > 3 else "")
    return [
        Finding(
            "bad",
            "row security",
            f"missing from {len(tables)} tables ({shown}), so that these roles reach every bank:"
            f" {', '.join(roles)}",
            "Run: select pgrecall.enable_row_security(); a role that is meant to see every bank:"
            " alter role NAME bypassrls;",
        )
    ]


def _sessions(recall: Recall) -> list[Finding]:
    """Check the number of connections, and look for sessions that block others."""
    taken, most, idle, waiting = recall._run(queries.sessions(_STUCK_SECONDS))
    findings = []
    if taken >= _CROWDED * most:
        findings.append(
            Finding(
                "warning",
                "connections",
                f"{taken} of {most} are used",
                "Share them: Recall.connect(pool_size=4) in each process, or PgBouncer; or raise"
                " max_connections.",
            )
        )
    since = f"for {_STUCK_SECONDS / 60:.0f} minutes"
    for pids, problem, advice in (
        (idle, "idle in a transaction", "set idle_in_transaction_session_timeout"),
        (waiting, "waiting for a lock", "find the blocking session: select pg_blocking_pids({0})"),
    ):
        if pids:
            listed = ", ".join(map(str, pids))
            findings.append(
                Finding(
                    "warning",
                    "sessions",
                    f"{problem} {since} or longer: {listed}",
                    f"End them: select pg_terminate_backend({pids[0]}); {advice.format(pids[0])}.",
                )
            )
    return findings


def _missing(recall: Recall) -> list[Finding]:
    """Compare indexes and primary keys with those in the installation script."""
    expected = set(_INDEX.findall(schema.script(build.install_name(__version__))))
    rows = recall._run(queries.indexes())
    there = dict(rows)
    missing = sorted(expected - there.keys())
    invalid = sorted(name for name in expected & there.keys() if not there[name])
    keyless = recall._run(queries.keyless_tables())
    findings = []
    for names, problem in (
        (missing, "missing"),
        (invalid, "invalid"),
        (keyless, "tables without a primary key"),
    ):
        if names:
            findings.append(
                Finding(
                    "bad",
                    "indexes",
                    f"{problem}: {', '.join(names)}",
                    "A restore that stopped halfway leaves a schema like this: restore again into"
                    " an empty database and look at the first error.",
                )
            )
    return findings


def _orphans(recall: Recall, bank: Bank, counted: Mapping[str, int]) -> list[Finding]:
    """Look for rows without their counterparts, as after a restore of single tables."""
    bare, embeddings, mentions = recall._run(queries.orphans(bank.bank_id))
    findings = []

    def add(status: str, found: str, advice: str) -> None:
        findings.append(Finding(status, f'bank "{bank.bank_id}"', found, advice))

    if bank.embedding_dimensions is not None and bare:
        add(
            "bad" if bare == bank.memories else "warning",
            f"{bare:,} of {bank.memories:,} memories have no embedding and are found only by words",
            f"Run: {own_command('embed', bank.bank_id)}; or restore the table pgrecall.embedding.",
        )
    for orphans, table in ((embeddings, "embedding"), (mentions, "mention")):
        if orphans:
            add(
                "bad",
                f"{orphans:,} rows of pgrecall.{table} belong to no memory",
                "Restore the table pgrecall.memory from the same dump.",
            )
    for kind, documents in (("memory", bank.memories), ("message", bank.messages)):
        if documents and not counted.get(kind):
            add(
                "bad",
                f"there are no statistics for {documents:,} {kind} texts: keyword search fails",
                "Run: select"
                f" pgrecall.refresh_statistics({_literal(bank.bank_id)}, is_full => true);",
            )
    return findings


def _tables(recall: Recall) -> list[Finding]:
    unknown = recall._run(queries.unanalysed_tables())
    if not unknown:
        return []
    names = ", ".join(unknown)
    return [Finding("warning", "statistics", f"never analysed: {names}", f"Run: analyze {names};")]


def _vector_memory(recall: Recall) -> list[Finding]:
    indexes, memory = recall._run(queries.vector_index_memory())
    if indexes <= memory:
        return []
    return [
        Finding(
            "warning",
            "memory",
            f"vector indexes take {size(indexes)}, more than shared_buffers, {size(memory)}",
            "Raise shared_buffers, to a quarter of the machine's memory; or let large banks search"
            """ by less: select pgrecall.configure_bank(BANK, '{"vector_search": "binary"}');""",
        )
    ]


def _indexes(recall: Recall) -> list[Finding]:
    findings = []
    for bank, steps in groupby(recall.index_plan(), key=lambda step: step.bank_id):
        due = list(steps)
        reasons = "; ".join(dict.fromkeys(step.reason for step in due))
        findings.append(
            Finding(
                "warning",
                "a dropped bank" if bank is None else f'bank "{bank}"',
                f"{len(due)} statements for its vector indexes are due: {reasons}",
                "Run: pgrecall index --apply",
            )
        )
    return findings


def _index_recall(recall: Recall) -> list[Finding]:
    has_indexes = recall._run(queries.has_vector_indexes())
    banks = [bank.bank_id for bank in recall.banks()] if has_indexes else []
    return [
        Finding(
            "warning",
            f'bank "{bank}"',
            f"searches of {check.fact_type} find {check.recall:.0%} of the nearest",
            f"Run: select pgrecall.configure_bank({_literal(bank)}, "
            """'{"ef_search": 400}'); or raise"""
            " hnsw_m and hnsw_ef_construction and run: pgrecall index --apply",
        )
        for bank in banks
        for check in recall.recall_check(bank, sample=_SAMPLE)
        if check.recall < LEAST_RECALL
    ]


def _reembedding(recall: Recall, bank: str) -> list[Finding]:
    state = recall.reembed_status(bank)
    about = f'bank "{bank}"'
    if state.next_model is not None:
        return [
            Finding(
                "warning",
                about,
                f'being re-embedded with "{state.next_model}":'
                f" {state.pending:,} of {state.vectors:,} embeddings to go",
                f"Go on with: {own_command('reembed', bank, '--model', state.next_model)}; or"
                f" give up with: {own_command('reembed', bank, '--cancel')}",
            )
        ]
    if state.previous_model is not None or state.leftover:
        return [
            Finding(
                "warning",
                about,
                f"{state.leftover:,} memories still have embeddings of another model than"
                f' "{state.model or ""}"',
                f"Call until it returns 0: select pgrecall.reembed_clean({_literal(bank)});",
            )
        ]
    if any(state.model == earlier.model for earlier in earlier_embedders(DEFAULT_EMBEDDER)):
        newer = DEFAULT_EMBEDDER.model
        return [
            Finding(
                "good",
                about,
                f'embedded with "{state.model}"; the driver has "{newer}", which finds more',
                f"Run: {own_command('reembed', bank, '--model', newer)}",
            )
        ]
    return []


def _banks(recall: Recall) -> list[Finding]:
    banks = recall.banks()
    if not banks:
        advice = "Run: pgrecall bank create NAME, or pgrecall demo"
        return [Finding("good", "banks", "none yet", advice)]
    findings = []
    for bank in banks:
        counted = recall.bank_statistics(bank.bank_id)
        waiting = sum(row.waiting for row in counted)
        documents = bank.memories + bank.messages
        about, name = f'bank "{bank.bank_id}"', _literal(bank.bank_id)
        found = f"{bank.memories:,} memories, {bank.messages:,} messages, {waiting:,} not counted"
        if waiting * 5 > documents:
            advice = f"Run: select pgrecall.refresh_statistics({name});"
            findings.append(Finding("warning", about, found, advice))
        else:
            findings.append(Finding("good", about, found))
        if not all(row.is_weighed for row in counted):
            found = "the mean length of its texts differs from the one in its word weights"
            advice = f"Run: {own_command('maintain', bank.bank_id)}"
            findings.append(Finding("warning", about, found, advice))
        similarity = recall.vocabulary_drift(bank.bank_id)
        if similarity is not None and similarity < _LEAST_SIMILARITY:
            findings.append(
                Finding(
                    "warning",
                    about,
                    f"its frequent words have changed: similarity {similarity:.2f} to the snapshot",
                    "See whether text_search_config and the embedding model still fit what it"
                    " holds; then run:"
                    f" select pgrecall.refresh_statistics({name}, is_full => true);"
                    f" select pgrecall.snapshot_vocabulary({name});",
                )
            )
        unlinked = recall.pending_links(bank.bank_id)
        if unlinked:
            found = f"{unlinked:,} facts have no links yet: the graph does not reach them"
            advice = f"Run: {own_command('link', bank.bank_id)}"
            findings.append(Finding("warning", about, found, advice))
        findings += _reembedding(recall, bank.bank_id)
        findings += _orphans(
            recall, bank, {row.kind: row.document_count + row.waiting for row in counted}
        )
    return findings


def _literal(text: str) -> str:
    return Literal(text).as_string()
