"""Facts from elsewhere: every field comes along, and what does not fit is reported."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import psycopg
import pytest

from pgrecall import InvalidArgument, Memory, Recall
from pgrecall.importing import Imported, Source, import_rows, read_file
from sqlcalls import Connection, column, value
from toys import toy_embed

ROWS: list[dict[str, Any]] = [
    {"text": "Ana leads Atlas", "fact_key": "atlas.lead", "tags": ["team", "lead"],
     "occurred": "2026-03-05", "confidence": 0.5, "metadata": {"deep": [1]}, "team": "core"},
    {"text": "Bo left", "mentioned_at": "2026-03-06T10:00:00+00:00", "entities": ["Bo"]},
]  # fmt: skip


@pytest.fixture
def recall(connection: Connection) -> Recall:
    recall = Recall(connection, embedder=toy_embed, model="toy")
    recall.create_bank("b")
    return recall


def as_jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def as_csv(rows: list[dict[str, Any]]) -> bytes:
    file = io.StringIO()
    writer = csv.DictWriter(file, sorted({name for row in rows for name in row}))
    writer.writeheader()
    for row in rows:
        cells = {k: v if isinstance(v, str | float) else json.dumps(v) for k, v in row.items()}
        writer.writerow(cells)
    return file.getvalue().encode("utf-8-sig")


def as_parquet(rows: list[dict[str, Any]]) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    file = io.BytesIO()
    names = sorted({name for row in rows for name in row})
    columns = {name: [row.get(name) for row in rows] for name in names}
    parquet.write_table(pyarrow.table(columns), file)
    return file.getvalue()


def taken(recall: Recall, content: bytes, kind: str, **options: Any) -> Imported:
    return import_rows(recall, "b", read_file(io.BytesIO(content), kind, **options))


@pytest.mark.parametrize(
    ("kind", "write"), [("jsonl", as_jsonl), ("csv", as_csv), ("parquet", as_parquet)]
)
def test_a_file_is_imported_with_every_field(recall: Recall, kind: str, write: Any) -> None:
    content = write(ROWS)

    done = taken(recall, content, kind)
    again = taken(recall, content, kind)

    assert (done.total, done.new, done.misfits) == (2, 2, ())
    assert (again.total, again.new, again.misfits) == (2, 0, ())
    left, ana = recall.list_memories("b")
    assert (left.text, left.entities) == ("Bo left", ("Bo",))
    assert left.mentioned_at is not None
    assert left.mentioned_at.isoformat() == "2026-03-06T10:00:00+00:00"
    assert (ana.text, ana.fact_key, ana.tags) == ("Ana leads Atlas", "atlas.lead", ("team", "lead"))
    assert (ana.confidence, ana.metadata) == (0.5, {"deep": [1], "team": "core"})
    assert ana.occurred is not None


def test_a_list_in_a_cell_may_have_semicolons(recall: Recall) -> None:
    taken(recall, b"content,tags,entities\nAna leads Atlas,a; b,Ana;Atlas\n", "csv")

    (found,) = recall.list_memories("b")
    assert (found.tags, found.entities) == (("a", "b"), ("Ana", "Atlas"))


def test_the_column_of_the_text_can_be_named(recall: Recall) -> None:
    taken(recall, as_jsonl([{"text": "title", "note": "Ana leads Atlas"}]), "jsonl", text="note")

    (found,) = recall.list_memories("b")
    assert (found.text, found.metadata) == ("Ana leads Atlas", {"text": "title"})


def test_what_may_not_be_stored_is_reported_and_not_in_the_way(database: str) -> None:
    truth = {"text": "Atlas sails", "fact_key": "atlas", "mentioned_at": "2026-01-01"}
    lie = {"text": "Atlas sank", "fact_key": "atlas", "source_id": "web:1"}
    hidden = {"text": "Atlas left", "source_id": "web:2"}
    with Recall.connect(database, embedder=None) as recall:
        recall.create_bank("b", settings={"replace": "key", "source_trust": {"web:*": 0.1}})
        recall.retain("b", [truth])
        recall.quarantine("b", "web:2")

        done = taken(recall, as_jsonl([lie, {"text": "Bo sails"}, hidden]), "jsonl")

    assert (done.total, done.new) == (3, 1)
    assert [(misfit.place, misfit.problem[:16]) for misfit in done.misfits] == [
        ("line 3", "source_id: sourc"),
        ("line 1", "a fact of source"),
    ]


def test_what_does_not_fit_is_reported_and_not_in_the_way(database: str) -> None:
    recall = Recall(psycopg.connect(database, autocommit=True), embedder=toy_embed, model="toy")
    recall.create_bank("b")
    lines = [
        '{"text": "one"}',
        "{oops",
        "[1]",
        '{"texts": "x"}',
        '{"text": "two", "confidence": 7}',
        '{"text": "three", "fact_type": "tale"}',
        '{"text": "four", "tags": "[1"}',
        '"five"',
    ]

    done = taken(recall, "\n".join(lines).encode(), "jsonl")

    assert sorted(memory.text for memory in recall.list_memories("b")) == ["five", "one"]
    assert (done.total, done.new, done.misfit_count) == (8, 2, 6)
    said = {misfit.place: misfit.problem for misfit in done.misfits}
    assert said.keys() == {f"line {n}" for n in range(2, 8)}
    assert said["line 3"] == "not an object"
    assert said["line 4"] == 'there is no text in column "text"'
    assert said["line 5"] == "confidence: expected a number from 0 to 1, not 7"
    assert 'has no fact type "tale"' in said["line 6"]
    assert said["line 7"] == "tags is not JSON: '[1'"


@pytest.mark.parametrize(
    ("content", "kind", "message"),
    [
        (b"", "csv", "the CSV file has no header"),
        (b"text\n\xff\xfe\n", "csv", "is not CSV in UTF-8"),
        (b"text,tags,text\na,b,c\n", "csv", 'has the column "text" twice'),
        (b"text\nx\n", "parquet", "the file is not Parquet"),
    ],
)
def test_a_file_of_another_kind_is_refused(
    recall: Recall, content: bytes, kind: str, message: str
) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    with pytest.raises(InvalidArgument, match=message) as caught:
        taken(recall, content, kind)

    assert caught.value.hint


def test_a_parquet_file_that_is_damaged_inside_is_refused(recall: Recall) -> None:
    content = as_parquet([{"text": f"Boat {n} is blue"} for n in range(5000)])
    middle = len(content) // 2
    damaged = content[:middle] + bytes(len(content) // 4) + content[middle + len(content) // 4 :]

    with pytest.raises(InvalidArgument, match="the file is not Parquet"):
        taken(recall, damaged, "parquet")


def test_a_time_in_nanoseconds_is_refused() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    times = pyarrow.array([1_772_719_200_000_000_001], pyarrow.timestamp("ns"))

    with pytest.raises(InvalidArgument, match="can be read after row 0: Nanosecond"):
        list(read_file(io.BytesIO(as_parquet([{"text": "a", "at": times[0]}])), "parquet"))


def test_metadata_that_is_none_is_reported_beside_other_columns(database: str) -> None:
    recall = Recall(psycopg.connect(database, autocommit=True), embedder=toy_embed, model="toy")
    recall.create_bank("b")

    done = taken(recall, b"text,metadata,team\none,blue,core\ntwo,,core\n", "csv")

    assert [one.metadata for one in recall.list_memories("b")] == [{"team": "core"}]
    assert [misfit.place for misfit in done.misfits] == ["line 2"]


def test_a_cell_that_is_too_long_is_reported_and_not_in_the_way(database: str) -> None:
    recall = Recall(psycopg.connect(database, autocommit=True), embedder=toy_embed, model="toy")
    recall.create_bank("b")

    done = taken(recall, b"text\none\n" + b"x" * 200_000 + b"\ntwo\n", "csv")

    assert sorted(memory.text for memory in recall.list_memories("b")) == ["one", "two"]
    assert [misfit.place for misfit in done.misfits] == ["line 3"]


# Other stores

LANGCHAIN = """\
create table langchain_pg_collection (uuid uuid primary key, name text, cmetadata json);
create table langchain_pg_embedding (
  id text primary key, collection_id uuid, embedding vector, document text, cmetadata jsonb);
insert into langchain_pg_collection values
  ('00000000-0000-0000-0000-000000000001', 'notes', null),
  ('00000000-0000-0000-0000-000000000002', 'other', null);
insert into langchain_pg_embedding values
  ('a', '00000000-0000-0000-0000-000000000001', '[1,0]', 'Ana leads Atlas', '{"source": "mail"}'),
  ('b', '00000000-0000-0000-0000-000000000001', '[0,1]', '', null),
  ('c', '00000000-0000-0000-0000-000000000002', '[0,1]', 'Bo left', '{"page": 3}');
create table vectors (
  langchain_id uuid primary key, content text, embedding vector(2), langchain_metadata json);
insert into vectors values
  ('00000000-0000-0000-0000-00000000000a', 'Cy came', '[1,1]', '{"source": "chat"}');
"""
MEM0 = """\
create table mem0 (id uuid primary key, vector vector(2), payload jsonb);
insert into mem0 values
  ('00000000-0000-0000-0000-00000000000a', '[1,0]', '{"data": "Likes tea", "hash": "x",
    "user_id": "ana", "created_at": "2026-03-05T10:00:00-07:00", "updated_at": null}'),
  ('00000000-0000-0000-0000-00000000000b', '[0,1]', '{"data": "Likes rum", "user_id": "bo",
    "created_at": "2026-03-05T10:00:00-07:00", "updated_at": "2026-03-07T00:00:00+00:00"}');
"""
HINDSIGHT = """\
create table memory_units (
  id uuid primary key, bank_id text, document_id text, text text, embedding vector(2),
  context text, event_date timestamptz, occurred_start timestamptz, occurred_end timestamptz,
  mentioned_at timestamptz, fact_type text, confidence_score double precision, tags text[],
  metadata jsonb, proof_count integer);
create table entities (id uuid primary key, canonical_name text, bank_id text);
create table unit_entities (unit_id uuid, entity_id uuid);
create table memory_links (
  from_unit_id uuid, to_unit_id uuid, link_type text, entity_id uuid, weight double precision);
insert into memory_units values
  ('00000000-0000-0000-0000-00000000000a', 'agent', 'doc', 'The shop stayed shut', '[1,0]', 'talk',
   '2026-03-05Z', '2026-03-05Z', '2026-03-06Z', '2026-03-07Z', 'world', 0, '{ops}',
   '{"n": 1}', 2),
  ('00000000-0000-0000-0000-00000000000b', 'agent', null, 'A fuse had blown', '[0,1]', null,
   '2026-03-04Z', '2026-03-04Z', '2026-03-04Z', null, 'experience', null, null, null, 0),
  ('00000000-0000-0000-0000-00000000000c', 'other', null, 'Elsewhere', null, null,
   '2026-03-04Z', null, null, null, 'world', null, null, null, null);
insert into entities values ('00000000-0000-0000-0000-0000000000ff', 'Corner Shop', 'agent');
insert into unit_entities values
  ('00000000-0000-0000-0000-00000000000a', '00000000-0000-0000-0000-0000000000ff');
insert into memory_links
select ('00000000-0000-0000-0000-00000000000' || from_key)::uuid,
       ('00000000-0000-0000-0000-00000000000' || to_key)::uuid, kind, null, weight
from   (values ('b', 'a', 'causes', 0.8), ('a', 'b', 'semantic', 1), ('a', 'c', 'caused_by', 1))
         as v(from_key, to_key, kind, weight);
"""


@pytest.fixture
def store(connection: Connection) -> Connection:
    """The same connection, with the tables of three stores in a schema of their own."""
    namespace = value(
        connection,
        "select n.nspname from pg_extension x join pg_namespace n on n.oid = x.extnamespace"
        " where x.extname = 'vector'",
    )
    connection.execute("create schema stores")
    connection.execute(
        "select set_config('search_path', format('stores, %%I', %s::text), true)", [namespace]
    )
    for script in (LANGCHAIN, MEM0, HINDSIGHT):
        connection.execute(script.encode())
    return connection


def moved(recall: Recall, source: Source, **options: Any) -> tuple[Imported, list[Memory]]:
    links = source.links()
    rows = {"links": links, "again": source.rows()}
    done = import_rows(recall, "b", source.rows(), **rows, **options)  # type: ignore[arg-type]
    return done, recall.list_memories("b")


def test_a_table_of_langchain_is_imported(recall: Recall, store: Connection) -> None:
    done, (found,) = moved(recall, Source(store, "langchain", part="notes"))

    assert (done.total, done.new) == (2, 1)
    assert [(m.place, m.problem) for m in done.misfits] == [("langchain b", "it has no text")]
    assert (found.text, found.source_id) == ("Ana leads Atlas", "mail")
    assert found.metadata == {"source": "mail", "langchain_id": "a"}
    named, _ = moved(recall, Source(store, "langchain", table="stores.vectors"))
    assert named.new == 1


def test_a_table_of_mem0_is_imported_with_its_embeddings(recall: Recall, store: Connection) -> None:
    source = Source(store, "mem0", has_embeddings=True)

    done, (rum, tea) = moved(recall, source, model="theirs")
    again, _ = moved(recall, source, model="theirs")

    assert (done.new, again.new) == (2, 0)
    assert (tea.text, tea.metadata["user_id"]) == ("Likes tea", "ana")
    assert [m.mentioned_at.isoformat() for m in (tea, rum) if m.mentioned_at] == [
        *("2026-03-05T17:00:00+00:00", "2026-03-07T00:00:00+00:00"),
    ]
    assert column(store, "select model || embedding::text from pgrecall.embedding order by 1") == [
        *("theirs[0,1]", "theirs[1,0]"),
    ]


def test_a_bank_of_hindsight_is_imported_with_its_causes(recall: Recall, store: Connection) -> None:
    done, (fuse, shop) = moved(recall, Source(store, "hindsight", part="agent"))

    assert (done.total, done.new) == (2, 2)
    assert [m.problem for m in done.misfits] == [
        "its link caused_by leads to 00000000-0000-0000-0000-00000000000c, not imported"
    ]
    assert (shop.text, shop.context, shop.source_id) == ("The shop stayed shut", "talk", "doc")
    assert (shop.entities, shop.tags, shop.proof_count) == (("Corner Shop",), ("ops",), 2)
    assert (shop.metadata["n"], shop.confidence) == (1, 0)
    assert (fuse.fact_type, fuse.confidence) == ("experience", 1)
    causes = "select from_id from pgrecall.link where kind = 'causes' and to_id = %s"
    assert column(store, causes, shop.memory_id) == [fuse.memory_id]


def test_a_store_that_is_none_is_refused(recall: Recall, connection: Connection) -> None:
    source = Source(connection, "mem0", table="pgrecall.bank")

    with pytest.raises(InvalidArgument, match=r"this is not a mem0 store: column e\.id") as caught:
        list(source.rows())

    assert "--table" in str(caught.value.hint)


def test_a_name_of_a_table_is_no_sql(database: str) -> None:
    with psycopg.connect(database) as connection:
        source = Source(connection, "mem0", table='x"; drop table pgrecall.bank; --')

        with pytest.raises(InvalidArgument, match="this is not a mem0 store: relation"):
            list(source.rows())
