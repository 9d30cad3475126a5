"""What a server does beside recalls: sizes of tables, builds of indexes, standbys."""

from __future__ import annotations

from threading import Thread

import psycopg

from sqlcalls import Connection, call, create, refused, retain, value, waiting


def test_sizes_are_those_of_our_tables_the_largest_first(connection: Connection) -> None:
    connection.execute("create table public.memory_of_others (id int)")

    found = call(connection, "relation_sizes", top_k=1000)

    sizes = [row.table_bytes + row.index_bytes for row in found]
    assert {row.relation.partition(".")[0] for row in found} == {"pgrecall", "pgrecall_internal"}
    assert "pgrecall.memory" in [row.relation for row in found]
    assert sizes == sorted(sizes, reverse=True)
    assert len(call(connection, "relation_sizes", top_k=3)) == 3
    with refused(connection, "22023", "top_k must be between 1 and 10000, not 0"):
        call(connection, "relation_sizes", top_k=0)


def test_a_build_is_seen_with_what_it_waits_for(database: str) -> None:
    with (
        psycopg.connect(database) as writer,
        psycopg.connect(database, autocommit=True) as looked,
        psycopg.connect(database, autocommit=True) as builder,
    ):
        writing = writer.info.backend_pid
        create(writer)
        writer.commit()
        retain(writer, [{"text": "Ana", "embedding": [1, 0]}], model="m")
        home = value(writer, "select tableoid::regclass::text from pgrecall.embedding")
        assert call(looked, "index_builds") == []
        statement = f"create index concurrently made on {home} (memory_id)"
        building = Thread(target=builder.execute, args=[statement.encode()])
        building.start()
        waiting(looked, builder.info.backend_pid)

        [build] = call(looked, "index_builds")

        writer.commit()
        building.join()
        assert call(looked, "index_builds") == []
    assert (build.relation, build.waits_for) == (home, writing)
    assert build.phase == "waiting for writers before build"


def test_a_server_that_nobody_follows_has_no_standby(connection: Connection) -> None:
    assert call(connection, "standbys") == []
