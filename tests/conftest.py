"""Fixtures: a real server, databases with pgrecall in them, and connections that roll back.

A test takes the least of these that will do:

* ``pgrecall``: a Recall over ``connection``.
* ``connection``: a connection inside a transaction that is rolled back after the test. What many
  tests of a module need there is written once by a ``kept_fixture`` of the module (servers.py).
* ``database``: the dsn of a database of its own, for tests that commit or use several connections.
* ``empty_database``: the same with pgvector, without pgrecall.
* ``dsn``: the database that all ``connection`` share, to read from only.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from pytest_postgresql import factories

import servers
from servers import Server, Session

if TYPE_CHECKING:
    from pgrecall import Recall


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--route",
        choices=servers.ROUTES,
        default=os.environ.get("PGRECALL_ROUTE", "driver"),
        help="how pgrecall is installed into the databases that the tests use",
    )
    parser.addoption(
        "--fast",
        action="store_true",
        help="two cases of each test, and none that takes seconds: for work in between",
    )


# Modules whose tests take seconds each: they install, dump, load models or wait for one another.
SLOW = frozenset(
    "test_build test_cli test_concurrency test_dump_restore test_evaluate test_failover"
    " test_freeze test_hostile test_index_command test_install test_package test_readme"
    " test_reembed test_rerank test_replicas test_shards test_site test_skew test_upgrade".split()
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--fast"):
        return
    seen: Counter[str] = Counter()
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        test = item.nodeid.split("[")[0]
        seen[test] += 1
        is_slow = item.path.stem in SLOW or item.get_closest_marker("slow")
        (left_out if is_slow or seen[test] > 2 else kept).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


@pytest.fixture(autouse=True)
def fused_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep answers in fused order; a test of the reranker says which one it wants."""
    monkeypatch.setenv("PGRECALL_RERANKER", "none")


def pytest_report_header(config: pytest.Config) -> str:
    server = os.environ.get("PGRECALL_DSN") or f"embedded {os.environ.get('PGRECALL_PG') or 18}"
    return f"pgrecall: server {server}, installed by {config.getoption('--route')}"


def create_vector(
    host: str, port: int, user: str, dbname: str, password: str | None, **_: object
) -> None:
    with psycopg.connect(
        host=host, port=port, user=user, dbname=dbname, password=password
    ) as connection:
        connection.execute("create extension vector")


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with servers.server_under_test() as server:
        yield server


vector_template = factories.postgresql_noproc(
    depends_on="server", dbname=f"pgrecall_vector_{os.getpid()}", load=[create_vector]
)


@pytest.fixture(scope="session")
def route(request: pytest.FixtureRequest) -> str:
    return str(request.config.getoption("--route"))


@pytest.fixture(scope="session")
def installed_template(server: Server, vector_template: Any, route: str) -> Iterator[str]:
    with server.database(vector_template.template_dbname) as dsn:
        servers.install(route, server, dsn)
        yield str(conninfo_to_dict(dsn)["dbname"])


@pytest.fixture(scope="session")
def dsn(server: Server, installed_template: str) -> Iterator[str]:
    with server.database(installed_template) as dsn:
        yield dsn


@pytest.fixture(scope="session")
def session(dsn: str) -> Iterator[Session]:
    session = Session(dsn)
    yield session
    session.close()


@pytest.fixture(scope="module")
def kept_rows(session: Session) -> Iterator[None]:
    """End the transaction of the fixtures that are kept with the module that has them."""
    yield
    session.forget()


@pytest.fixture
def connection(
    session: Session, request: pytest.FixtureRequest
) -> Iterator[psycopg.Connection[Any]]:
    with session.connection(servers.kept_for(request)) as connection:
        yield connection


@pytest.fixture
def pgrecall(connection: psycopg.Connection[Any]) -> Recall:
    from pgrecall import Recall

    return Recall(connection)


@pytest.fixture
def database(server: Server, installed_template: str) -> Iterator[str]:
    with server.database(installed_template) as dsn:
        yield dsn


@pytest.fixture
def empty_database(server: Server, vector_template: Any) -> Iterator[str]:
    with server.database(vector_template.template_dbname) as dsn:
        yield dsn


@pytest.fixture
def bare_database(server: Server) -> Iterator[str]:
    """A database without pgvector."""
    with server.database() as dsn:
        yield dsn
