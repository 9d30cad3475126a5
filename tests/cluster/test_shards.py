"""A router with PL/Proxy before three shards: the same calls, errors and rows as without it.

The shards are databases of one server; the router is Debian's PostgreSQL 15, unpacked.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import servers
from pgrecall import (
    BankExists,
    BankNotFound,
    InstallError,
    InvalidArgument,
    Recall,
    command,
    schema,
)
from pgrecall.cluster import router, shards
from pgrecall.server import embedded_server
from sqlcalls import READS, Connection, column, fill, rows, value
from toys import toy_embed

NAMES = ("one", "two", "three")


@dataclass
class Cluster:
    """A router and its shards, by DSN."""

    router: str
    shards: dict[str, str]

    def place(self, bank: str) -> str:
        with connect(self.router) as connection:
            return str(dict(shards.banks(connection))[bank])

    def other(self, bank: str) -> str:
        return next(name for name in NAMES if name != self.place(bank))


def connect(dsn: str) -> Connection:
    return psycopg.connect(dsn, autocommit=True)


def without_user(dsn: str) -> str:
    return make_conninfo("", **{k: v for k, v in conninfo_to_dict(dsn).items() if k != "user"})


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    servers.router_programs()
    version, settings = servers.embedded_version(), servers.TEST_SETTINGS
    with (
        servers.folder_of_servers() as folder,
        embedded_server(version, folder / "shards", settings=settings) as server,
        servers.router_server(folder / "router") as router_dsn,
    ):
        made = {}
        for name in NAMES:
            with connect(server.dsn) as admin:
                admin.execute(f"create database {name}".encode())
            made[name] = make_conninfo(server.dsn, dbname=name)
            with connect(made[name]) as connection:
                connection.execute("create extension vector")
                schema.migrate(connection)
                if name == "one":
                    fill(connection, "old")  # a server that was there before the router
        with connect(router_dsn) as connection:
            assert shards.init(connection)
            for name, dsn in made.items():
                shards.add(connection, name, without_user(dsn))
        yield Cluster(router_dsn, made)


@pytest.fixture
def routed(cluster: Cluster) -> Iterator[Connection]:
    with connect(cluster.router) as connection:
        yield connection


@pytest.fixture
def memory(routed: Connection) -> Recall:
    return Recall(routed, embedder=toy_embed, model="toy")


@pytest.fixture
def bank(memory: Recall) -> Iterator[str]:
    memory.create_bank("b")
    memory.retain("b", ["Ana leads Atlas.", "Boats are blue."])
    yield "b"
    memory.drop_bank("b")


# The same calls


def test_a_server_that_was_there_brings_its_banks(cluster: Cluster) -> None:
    assert cluster.place("old") == "one"


@pytest.mark.parametrize("function", sorted(set(READS) - {"link_expansion"}))
def test_the_router_finds_what_the_shard_finds(
    cluster: Cluster, routed: Connection, function: str
) -> None:
    key, arguments = READS[function]
    statement = f"select {key} from pgrecall.{function}('old', {arguments})"

    with connect(cluster.shards["one"]) as shard:
        assert rows(routed, statement) == rows(shard, statement) != []


def test_the_router_has_every_function_with_its_signature(
    cluster: Cluster, routed: Connection
) -> None:
    signatures = (
        "select p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid)"
        " from pg_proc p where pronamespace = 'pgrecall'::regnamespace order by 1"
    )
    with connect(cluster.shards["one"]) as shard:
        theirs = set(rows(shard, signatures))
        writes = "select proname from pg_proc where oid = any (%s::regproc[]) and provolatile = 'v'"
        alone = [f"pgrecall.{name}" for name, given, _ in theirs if not given.startswith("bank ")]
        elsewhere = router.PER_SERVER | set(column(shard, writes, alone))

    assert elsewhere - {name for name, *_ in theirs} == set()
    assert elsewhere >= {"create_roles", "enable_row_security", "log_position"}
    assert set(rows(routed, signatures)) == {one for one in theirs if one[0] not in elsewhere}


def test_the_router_has_every_row_type_and_comment(cluster: Cluster, routed: Connection) -> None:
    types = (
        "select c.relname, a.attname, replace(format_type(a.atttypid, null), 'halfvec', 'text')"
        " from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0"
        " where c.relnamespace = 'pgrecall'::regnamespace and c.relkind = 'c' order by 1, a.attnum"
    )
    comment = "select obj_description('pgrecall.retain'::regproc)"
    with connect(cluster.shards["one"]) as shard:
        assert rows(routed, types) == rows(shard, types)
        assert value(routed, comment) == value(shard, comment)


def test_the_driver_works_through_the_router(memory: Recall, bank: str) -> None:
    [first, *_] = memory.recall(bank, "who leads Atlas?", timeout=30)
    many = memory.recall_many(bank, ["who leads Atlas?", "what is blue?"])

    assert first.text == many[0].hits[0].text == "Ana leads Atlas."
    assert first.arms.keys() >= {"semantic", "lexical"}
    assert many[1].hits[0].text == "Boats are blue."
    assert [one.is_new for one in memory.retain(bank, ["Ana leads Atlas.", "Cy cooks."])] == [0, 1]
    assert memory.get(bank, first.memory_id).text == first.text
    assert memory.update(bank, first.memory_id, text="Ana led Atlas.").text == "Ana led Atlas."
    assert memory.forget(bank, filter="text = 'Cy cooks.'") == 1
    assert memory.bank_options(bank)["rrf_k"] == 60
    assert memory.arms()[0].arm == "key"
    assert {one.status for one in memory.explain(bank, "Atlas")} >= {"ran"}
    assert len([*memory.export(bank)]) > 2
    assert bank in [one.bank_id for one in memory.banks()]


def test_defaults_and_names_of_arguments_hold(routed: Connection, bank: str) -> None:
    found = rows(
        routed,
        "select h.text from pgrecall.hybrid_recall(bank => 'b', query => 'Ana boats',"
        ' during => null, top_k => 5, options => \'{"weights": {"semantic": 0}}\') as h',
    )
    lateral = rows(
        routed,
        "select q, h.text from (values ('Ana'), ('boats')) as v(q)"
        " cross join lateral pgrecall.hybrid_recall('b', q, top_k => 1) as h order by 1",
    )

    assert {text for (text,) in found} == {"Ana leads Atlas.", "Boats are blue."}
    assert lateral == [("Ana", "Ana leads Atlas."), ("boats", "Boats are blue.")]


def test_what_was_retained_a_moment_ago_is_found(memory: Recall, routed: Connection) -> None:
    """The default of as_of is the clock of the shard: that of the router may be behind."""
    body = value(
        routed, "select prosrc from pg_proc where oid = 'pgrecall_router.hybrid_recall'::regproc"
    )

    assert "pg_catalog.now()" in body


def test_maintain_without_a_bank_is_for_all_shards(memory: Recall, routed: Connection) -> None:
    for name in "pqrstu":
        memory.create_bank(name, exist_ok=True)
        memory.create_bank(name, exist_ok=True)
        memory.retain(name, ["Ana leads Atlas."], link="deferred")

    done = set(column(routed, "select bank_id from pgrecall.maintain(batch_size => 100000)"))

    assert done >= set("pqrstu")
    assert {memory.drop_bank(name) for name in "pqrstu"} == {1}


def test_ids_are_unique_across_shards(cluster: Cluster, memory: Recall) -> None:
    ids, places = [], set()
    for n in range(12):
        memory.create_bank(f"id{n}")
        ids += [one.memory_id for one in memory.retain(f"id{n}", ["Ana.", "Bo."])]
        places.add(cluster.place(f"id{n}"))
        memory.drop_bank(f"id{n}")

    assert len(set(ids)) == 24
    assert len(places) > 1


@pytest.mark.parametrize(
    ("of_router", "of_shards"), [("ISO, MDY", "SQL, DMY"), ("German, DMY", "ISO, MDY")]
)
def test_times_are_the_same_however_router_and_shards_write_them(
    cluster: Cluster, bank: str, of_router: str, of_shards: str
) -> None:
    """Also while a bank moves."""
    dsns = [cluster.router, *cluster.shards.values()]
    setting = "alter database {} set datestyle = '{}'; alter database {} set intervalstyle = '{}'"
    day = datetime(2026, 3, 5, tzinfo=timezone.utc)
    occurred = (day, day + timedelta(days=1))
    for dsn in dsns:
        name = conninfo_to_dict(dsn)["dbname"]
        style = of_router if dsn == cluster.router else of_shards
        with connect(dsn) as admin:
            admin.execute(setting.format(name, style, name, "sql_standard").encode())
    try:
        with connect(cluster.router) as fresh:
            memory = Recall(fresh, embedder=toy_embed, model="toy")
            memory.retain(
                bank,
                [{"text": "Dee sails.", "occurred": ["2026-03-05T00:00Z", "2026-03-06T00:00Z"]}],
            )
            found = [memory.recall(bank, "Dee", during=occurred)[0].occurred]
            shards.move(fresh, bank, cluster.other(bank))
            found.append(memory.recall(bank, "Dee", during=occurred)[0].occurred)
            created = {one.bank_id: one.created_at for one in memory.banks()}[bank]
    finally:
        for dsn in dsns:
            name = conninfo_to_dict(dsn)["dbname"]
            with connect(dsn) as admin:
                admin.execute(f"alter database {name} reset all".encode())

    assert found == [occurred] * 2
    assert abs(datetime.now(timezone.utc) - created) < timedelta(days=1)


def test_new_banks_spread_evenly(routed: Connection) -> None:
    shares = Counter(
        column(
            routed,
            "select pgrecall_router.place_of('bank ' || n) from generate_series(1, 600) n",
        )
    )

    assert set(shares) == set(NAMES)
    assert min(shares.values()) > 150


# Errors


def test_an_error_is_that_of_the_shard(cluster: Cluster, routed: Connection) -> None:
    for statement in (
        "select * from pgrecall.hybrid_recall('nobody', 'q')",
        "select * from pgrecall.hybrid_recall('old', 'q', top_k => 0)",
        "select * from pgrecall.hybrid_recall('old', 'q', filter => 'confidnce > 1')",
        "select * from pgrecall.hybrid_recall(null, 'q')",
        "select pgrecall.create_bank('old')",
        "select * from pgrecall.retain('old', '[{\"text\": 5}]')",
        "select pgrecall.clone_bank('old', 'old')",
    ):
        said = []
        for dsn in (cluster.router, cluster.shards["one"]):
            with connect(dsn) as connection, pytest.raises(psycopg.Error) as caught:
                connection.execute(statement.encode())
            diagnosis = caught.value.diag
            said.append(
                (diagnosis.sqlstate, diagnosis.message_primary, diagnosis.message_hint or "")
            )
        assert said[0] == said[1]


def test_the_driver_raises_its_own_errors(memory: Recall, bank: str) -> None:
    with pytest.raises(BankNotFound, match='bank "nobody" does not exist'):
        memory.recall("nobody", "q")
    with pytest.raises(BankExists):
        memory.create_bank(bank)
    with pytest.raises(BankExists):
        memory.clone_bank(bank, "old")
    with pytest.raises(InvalidArgument) as caught:
        memory.recall(bank, "q", top_k=0)
    assert caught.value.hint


def test_a_bank_that_is_not_created_is_not_entered(routed: Connection, memory: Recall) -> None:
    with pytest.raises(InvalidArgument):
        memory.create_bank("wrong", text_search_config="no such")
    memory.create_bank("brief")
    memory.drop_bank("brief")

    entered = column(routed, "select bank_id from pgrecall_router.bank")

    assert not {"wrong", "brief"} & set(entered)


def test_a_shard_that_is_down_fails_its_own_banks_and_is_named(
    cluster: Cluster, routed: Connection, memory: Recall, bank: str
) -> None:
    memory.clone_bank(bank, "beside")
    place = cluster.place(bank)
    with connect(cluster.router) as admin:
        if cluster.place("old") == place:
            shards.move(admin, bank, cluster.other("old"))
            place = cluster.place(bank)
    with down(cluster, routed, place):
        with pytest.raises(psycopg.OperationalError) as caught:
            Recall(routed, embedder=None).recall(bank, "who leads Atlas?")
        alive = Recall(routed, embedder=None).recall("old", "Ana")
        listed = {one.shard: one.problem for one in shards.status(routed)}
        # What no bank is needed for, and one bank of another shard.
        assert memory.arms()
        memory.create_bank("old", exist_ok=True)

    assert caught.value.sqlstate == "08006"
    assert f'shard "{place}" does not answer' in str(caught.value.diag.message_primary)
    assert "not affected" in str(caught.value.diag.message_hint)
    assert alive
    assert [name for name, problem in listed.items() if problem] == [place]
    memory.drop_bank("beside")


@dataclass
class down:  # noqa: N801
    """A shard that nobody can connect to, for as long as the block runs."""

    cluster: Cluster
    routed: Connection
    shard: str

    def __enter__(self) -> None:
        self._point(make_conninfo("host=/nonexistent", dbname=self.shard))

    def __exit__(self, *_: object) -> None:
        self._point(without_user(self.cluster.shards[self.shard]))

    def _point(self, dsn: str) -> None:
        self.routed.execute(
            "update pgrecall_router.shard set dsn = %s where shard = %s", [dsn, self.shard]
        )


# Roles


def test_the_shard_is_asked_as_the_role_that_asks(
    cluster: Cluster, routed: Connection, bank: str
) -> None:
    dsns = [cluster.router, *cluster.shards.values()]
    for dsn in dsns:
        with connect(dsn) as admin:
            if dsn == cluster.router or dsn == cluster.shards["one"]:
                admin.execute("create role nosy login")
    routed.execute(
        "grant usage on schema pgrecall, pgrecall_internal, pgrecall_router to nosy;"
        " grant select on pgrecall.bank_overview to nosy"
    )
    try:
        with connect(make_conninfo(cluster.router, user="nosy")) as role:
            with pytest.raises(psycopg.errors.InsufficientPrivilege) as caught:
                role.execute("select * from pgrecall.hybrid_recall('b', 'q')")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                role.execute("select * from pgrecall_router.shard")
            role.execute("select pgrecall_router.unplaced('b')")
            superuser = make_conninfo(cluster.shards["one"], user="postgres")
            for shard in (superuser, None):  # the name of a shard, and no other way to one
                with pytest.raises(psycopg.Error) as other:
                    role.execute("select pgrecall_router.drop_bank(%s, 'old')", [shard])
                assert other.value.sqlstate == "XX000"
        assert "permission denied for schema pgrecall" in str(caught.value)
        assert cluster.place(bank)  # still entered: its shard has it
        assert cluster.place("old") == "one"
    finally:
        routed.execute("drop owned by nosy; drop role nosy")
        with connect(cluster.shards["one"]) as admin:
            admin.execute("drop role nosy")


# Moving


def test_a_bank_is_moved_whole(cluster: Cluster, routed: Connection, memory: Recall) -> None:
    memory.import_rows("moved", Recall(routed, embedder=None).export("old"))
    before, place, to = [*memory.export("moved")], cluster.place("moved"), cluster.other("moved")

    moved = shards.move(routed, "moved", to)
    after, again = [*memory.export("moved")], shards.move(routed, "moved", to)
    [new] = Recall(routed, embedder=None).retain("moved", ["Di dives."])

    assert (moved.rows, again.rows) == (len(before), 0)
    assert after == before
    assert cluster.place("moved") == to
    with connect(cluster.shards[place]) as source:
        assert column(source, "select bank_id from pgrecall.bank where bank_id = 'moved'") == []
    ids = [one.memory_id for one in memory.list_memories("moved", is_ended_too=True)]
    assert max(ids) == new.memory_id  # ids rise within a bank, wherever it was
    memory.drop_bank("moved")


def test_a_bank_is_moved_to_and_fro_under_load(cluster: Cluster, routed: Connection) -> None:
    setup = Recall(routed, embedder=None)
    setup.create_bank("busy")
    setup.retain("busy", ["Ana leads Atlas."])
    stop = threading.Event()

    def write(writer: int) -> list[str]:
        done: list[str] = []
        with connect(cluster.router) as connection:
            mine = Recall(connection, embedder=None)
            while not stop.is_set():
                text = f"Writer {writer} has written number {len(done)}."
                mine.retain("busy", [text])
                done.append(text)
        return done

    def read(_: int) -> int:
        count = 0
        with connect(cluster.router) as connection:
            mine = Recall(connection, embedder=None)
            while not stop.is_set():
                found = mine.recall("busy", "who leads Atlas?", top_k=1)
                assert [hit.text for hit in found] == ["Ana leads Atlas."]
                count += 1
        return count

    with ThreadPoolExecutor(4) as threads:
        writers = [threads.submit(write, n) for n in range(2)]
        readers = [threads.submit(read, n) for n in range(2)]
        try:
            paused = [shards.move(routed, "busy", cluster.other("busy")).paused for _ in range(4)]
            time.sleep(0.2)
        finally:
            stop.set()
        written = [text for one in writers for text in one.result(60)]
        recalls = sum(one.result(60) for one in readers)

    held = {one.text for one in setup.list_memories("busy", top_k=100_000)}
    assert set(written) <= held
    assert len(held) == len(written) + 1
    assert len(written) > 4
    assert recalls > 4
    assert all(seconds < 60 for seconds in paused)
    setup.drop_bank("busy")


def test_a_move_that_broke_off_is_repeated(
    cluster: Cluster, routed: Connection, memory: Recall, bank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, to = cluster.place(bank), cluster.other(bank)

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    for step in ("_copy", "_drain"):
        with monkeypatch.context() as patch:
            patch.setattr(shards, step, fail)
            with pytest.raises(KeyboardInterrupt):
                shards.move(routed, bank, to)
        assert len(memory.list_memories(bank)) == 2
        problems = {one.shard for one in shards.status(routed) if one.problem}
        assert problems == ({to} if step == "_copy" else {place})
    shards.move(routed, bank, to)

    assert cluster.place(bank) == to
    assert [one.problem for one in shards.status(routed)] == [None] * 3
    with connect(cluster.shards[place]) as source:
        assert column(source, "select bank_id from pgrecall.bank where bank_id = 'b'") == []


def test_what_cannot_be_moved_is_said(routed: Connection, cluster: Cluster, bank: str) -> None:
    with pytest.raises(InvalidArgument, match='there is no shard "four"') as caught:
        shards.move(routed, bank, "four")
    assert caught.value.hint == "There are: one, three, two."
    with pytest.raises(BankNotFound, match='bank "nobody" does not exist'):
        shards.move(routed, "nobody", "two")
    to = cluster.other(bank)
    with connect(cluster.shards[to]) as stray:
        stray.execute("select pgrecall.create_bank('b')")
        with pytest.raises(InvalidArgument, match="which the router does not know"):
            shards.move(routed, bank, to)
        stray.execute("select pgrecall.drop_bank('b')")
    assert cluster.place(bank) != to


# Adding and upgrading


@pytest.mark.parametrize(
    ("name", "dsn", "error", "message"),
    [
        ("One", "dbname=three", InvalidArgument, "is not a name for a shard"),
        ("one", "dbname=x", InvalidArgument, "or one with this DSN"),
        ("new", "dbname=x user=me", InvalidArgument, "names a user or password"),
        ("new", "dbname=postgres", InstallError, "has no pgrecall"),
    ],
)
def test_what_cannot_be_added_is_said(
    routed: Connection, cluster: Cluster, name: str, dsn: str, error: Any, message: str
) -> None:
    host = conninfo_to_dict(cluster.shards["one"])["host"]

    with pytest.raises(error, match=message):
        shards.add(routed, name, make_conninfo(dsn, host=host, application_name="add"))

    assert [one.shard for one in shards.shards(routed)] == ["one", "three", "two"]


def test_a_database_with_banks_or_without_plproxy_is_no_router(cluster: Cluster) -> None:
    with connect(cluster.shards["two"]) as shard:
        with pytest.raises(InstallError, match="has banks"):
            shards.init(shard)
        with pytest.raises(InstallError, match="is not a router"):
            shards.banks(shard)
    plain = make_conninfo(cluster.shards["two"], dbname="postgres")
    with connect(plain) as shard, pytest.raises(InstallError, match="has no PL/Proxy"):
        shards.init(shard)


def test_migrations_are_rolled_over_the_shards(
    cluster: Cluster, routed: Connection, memory: Recall, bank: str
) -> None:
    with connect(cluster.shards["one"]) as shard:
        shard.execute("alter type pgrecall.fused add attribute extra integer")
    done: list[tuple[str, str]] = []

    before = memory.recall(bank, "who leads Atlas?")  # a shard that is ahead answers as before
    shards.migrate(routed, lambda name, version: done.append((name, version)))

    assert [name for name, _ in done] == ["one", "three", "two"]
    assert memory.recall(bank, "who leads Atlas?") == before
    assert (
        value(
            routed,
            "select count(*) from pg_attribute where attrelid = 'pgrecall.fused'::regclass"
            " and attname = 'extra'",
        )
        == 1
    )
    with connect(cluster.shards["one"]) as shard:
        shard.execute("alter type pgrecall.fused drop attribute extra")
    routed.execute("alter type pgrecall.fused drop attribute extra")


# The command


def test_the_command_shows_and_moves(
    cluster: Cluster, bank: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> Any:
        assert command.main(["shard", *words, "--dsn", cluster.router, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    place, to = cluster.place(bank), cluster.other(bank)

    assert run("init") == {"is_new": False}
    assert {"bank_id": bank, "shard": place} in run("list")
    assert bank not in [one["bank_id"] for one in run("list", "--shard", to)]
    moved = run("move", bank, to)
    assert (moved["shard"], moved["rows"] > 2, moved["paused"] > 0) == (to, True, True)
    assert [one["problem"] for one in run("status")] == [None] * 3
    assert set(run("migrate")["shards"]) == set(NAMES)

    assert command.main(["shard", "status", "--dsn", cluster.router]) == 0
    assert command.main(["shard", "list", "--dsn", cluster.router]) == 0
    shown = capsys.readouterr().out
    assert "problem" in shown
    assert to in shown
    wrong = ["shard", "add", "one", "dbname=one", "--dsn", cluster.router]
    assert command.main(wrong) == 1


@pytest.mark.parametrize("words", ["migrate", "migrate --dry-run", "migrate --sql", "index"])
def test_what_is_done_on_the_shards_is_refused_on_the_router(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    assert command.main([*words.split(), "--dsn", cluster.router]) == 1
    said = capsys.readouterr().err

    assert said.startswith("error: this database is a router: its shards hold the banks\n")
    assert "pgrecall shard status, pgrecall shard migrate" in said


def test_doctor_says_that_a_database_is_a_router(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["doctor", "--json", "--dsn", cluster.router]) == 0
    [finding] = json.loads(capsys.readouterr().out)

    assert finding["about"] == "router"
    assert "--dsn of a shard" in finding["advice"]


def test_a_problem_of_a_shard_is_shown_in_full(
    cluster: Cluster, routed: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    with down(cluster, routed, "two"):
        [problem] = [one.problem for one in shards.status(routed) if one.problem]
        assert command.main(["shard", "status", "--dsn", cluster.router]) == 1
    shown = capsys.readouterr().out

    assert f'shard "two": {problem}\n' in shown
    assert "three" in shown
