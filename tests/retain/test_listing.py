"""Reading memories by id, as pages, as versions; forgetting and updating them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from pgrecall import InvalidArgument, InvalidFact, Memory, MemoryNotFound, Recall
from servers import kept_fixture
from sqlcalls import (
    FULL,
    Connection,
    call,
    contents,
    create,
    refused,
    retain,
    rows,
    similar,
    value,
)
from toys import toy_embed

FACTS: list[dict[str, Any]] = [
    {"text": "Ana moved to Porto", "entities": [{"name": "Ana", "aliases": ["Annie"]}, "Porto"],
     "occurred": "2026-03-05", "source_id": "mail", "tags": ["home"]},
    {"text": "Bo likes tea", "entities": ["Bo"], "fact_type": "preference", "fact_key": "bo.tea",
     "mentioned_at": "2026-03-20"},
    {"text": "Ana leads Atlas", "entities": ["Ana", "Atlas"], "fact_key": "atlas.lead",
     "mentioned_at": "2026-01-01", "metadata": {"team": "core"}},
    {"text": "Atlas went live", "entities": ["Atlas"], "fact_type": "event", "source_id": "mail",
     "occurred": ["2026-03-30", "2026-04-02"], "confidence": 0.5},
]  # fmt: skip
MARCH = "[2026-03-01, 2026-04-01)"


@kept_fixture
def bank(connection: Connection) -> None:
    create(connection)
    retain(connection, FACTS)


def texts(bank: Connection, **arguments: Any) -> list[str]:
    return [row.text for row in call(bank, "list_memories", bank="b", **arguments)]


def id_of(bank: Connection, text: str) -> int:
    return int(value(bank, "select max(memory_id) from pgrecall.memory where text = %s", text))


def update(bank: Connection, memory_id: int, **changes: Any) -> Any:
    (row,) = call(bank, "update_memory", bank="b", memory_id=memory_id, changes=Jsonb(changes))
    return row


def day_earlier(bank: Connection) -> None:
    """Let all memories be a day older than what follows in the transaction."""
    bank.execute(
        "update pgrecall.memory set created_at = created_at - interval '1 day',"
        " valid_from = valid_from - interval '1 day'"
    )


# Listing


def test_memories_are_listed_latest_first(bank: Connection) -> None:
    assert texts(bank) == [fact["text"] for fact in reversed(FACTS)]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"filter": "confidence < 0.9"}, ["Atlas went live"]),
        ({"filter": "metadata->>'team' = 'core'"}, ["Ana leads Atlas"]),
        ({"fact_types": ["preference", "event"]}, ["Atlas went live", "Bo likes tea"]),
        ({"tags": ["home", "away"]}, ["Ana moved to Porto"]),
        ({"during": MARCH}, ["Atlas went live", "Bo likes tea", "Ana moved to Porto"]),
        ({"during": "[2026-04-02, 2026-05-01)"}, []),
        ({"during": "(,2026-02-01)"}, ["Ana leads Atlas"]),
        ({"during": "empty"}, []),
        ({"entity": "annie"}, ["Ana leads Atlas", "Ana moved to Porto"]),
        ({"entity": "Cy"}, []),
        ({"entity": "Ana", "during": MARCH}, ["Ana moved to Porto"]),
        ({"entity": "Atlas", "fact_types": ["event"]}, ["Atlas went live"]),
        ({"entity": "Ana", "filter": "fact_key = 'atlas.lead'"}, ["Ana leads Atlas"]),
        ({"as_of": "2026-02-01"}, ["Ana leads Atlas"]),
    ],
)  # fmt: skip
def test_only_what_meets_every_condition_is_listed(
    bank: Connection, arguments: dict[str, Any], found: list[str]
) -> None:
    assert texts(bank, **arguments) == found


@pytest.mark.parametrize(
    "arguments", [{}, {"entity": "Atlas"}, {"during": "[2025-01-01,)"}, {"fact_types": ["world"]}]
)
def test_pages_follow_one_another(bank: Connection, arguments: dict[str, Any]) -> None:
    whole = [row.memory_id for row in call(bank, "list_memories", bank="b", **arguments)]
    paged: list[int] = []
    while page := call(
        bank,
        "list_memories",
        bank="b",
        top_k=1,
        before_id=paged[-1] if paged else None,
        **arguments,
    ):
        paged += [row.memory_id for row in page]

    assert paged == whole
    assert len(whole) > 1


def test_a_null_among_tags_is_an_error_that_says_so(bank: Connection) -> None:
    with refused(bank, "22023", "tags must not contain null", "Leave it out of the list"):
        call(bank, "list_memories", bank="b", tags=["home", None])


def test_what_has_ended_is_listed_where_it_is_asked_for(bank: Connection) -> None:
    ended = id_of(bank, "Bo likes tea")
    call(bank, "supersede", bank="b", memory_id=ended)

    (row,) = [r for r in call(bank, "list_memories", bank="b", as_of=None) if r.valid_to]

    assert "Bo likes tea" not in texts(bank)
    assert (row.memory_id, row.ended_by) == (ended, "supersede")


def test_what_others_were_merged_into_was_not_ended_by_that(connection: Connection) -> None:
    create(connection)
    same = [{"text": "It is MIT", "source_id": name} for name in "ab"]
    retain(connection, same)
    (pair,) = call(connection, "consolidate", bank="b", dry_run=False)
    retain(connection, [{**fact, "expires_at": "2999-01-01"} for fact in same])

    listed = call(connection, "list_memories", bank="b", as_of=None)
    step, *_ = call(
        connection,
        "why_not",
        bank="b",
        query="MIT",
        memory_id=pair.kept_id,
        as_of="3000-01-01",
    )

    assert {row.memory_id: row.ended_by for row in listed} == {
        pair.kept_id: None,
        pair.memory_id: "consolidate",
    }
    assert str(step.reason).endswith("it expired")


@pytest.mark.parametrize(
    ("arguments", "index"),
    [
        ({}, "memory_pkey"),
        ({"before_id": 10**15}, "memory_pkey"),
        ({"filter": "confidence >= 0"}, "memory_pkey"),
        ({"filter": "source_id = 'document 7'"}, "memory_bank_id_source_id_idx"),
        ({"entity": "person 7"}, "mention_pkey"),
        ({"during": "[2020-02-01, 2020-02-02)"}, "memory_bank_id_fact_type_occurred_idx"),
        ({"during": "[2020-02-01, 2020-02-02)"}, "memory_bank_id_fact_type_mentioned_at_idx"),
    ],
)  # fmt: skip
def test_a_page_is_read_by_index(
    crowded: Connection, arguments: dict[str, Any], index: str
) -> None:
    def read() -> dict[str, int]:
        return dict(
            rows(
                crowded,
                "select c.relname, case c.relkind when 'i' then pg_stat_get_xact_tuples_returned("
                "c.oid) else pg_stat_get_xact_numscans(c.oid) end from pg_class c"
                " where c.relname ~ '^(memory|mention)(_|$)' and c.relkind in ('r', 'i')",
            )
        )

    before = read()
    found = call(crowded, "list_memories", bank="b", top_k=10, **arguments)
    after = read()

    assert 0 < len(found) <= 10
    assert after["memory"] == before["memory"], "a sequential scan"
    assert after[index] > before[index]
    grown = {name: after[name] - before[name] for name in after if name != "memory"}
    assert max(grown.values()) <= 300, grown


@pytest.fixture(scope="module")
def crowded(server: Any, installed_template: str) -> Any:
    """A database with 4,000 facts of 100 people, sources and days."""
    facts = [
        {
            "text": f"fact {n}",
            "source_id": f"document {n % 100}",
            "entities": [f"person {n % 100}"],
            **({"occurred": f"2020-0{1 + n % 9}-0{1 + n % 7}"} if n % 2 else
               {"mentioned_at": f"2020-0{1 + n % 9}-0{1 + n % 7}"}),
        }
        for n in range(4000)
    ]  # fmt: skip
    with server.database(installed_template) as dsn, psycopg.connect(dsn) as connection:
        create(connection)
        retain(connection, facts, link="deferred")
        connection.commit()
        connection.execute("analyze")
        connection.commit()
        yield connection


# By id


def test_memories_are_read_by_id_in_the_order_given(bank: Connection) -> None:
    ids = [id_of(bank, "Bo likes tea"), 0, id_of(bank, "Ana moved to Porto")]

    found = call(bank, "stored_memories", bank="b", memory_ids=ids)

    assert [row.text for row in found] == ["Bo likes tea", "Ana moved to Porto"]
    assert found[1].entities == ["Ana", "Porto"]
    assert (found[1].source_id, found[1].tags) == ("mail", ["home"])


def test_another_bank_is_not_looked_into(bank: Connection) -> None:
    create(bank, "c")
    (other,) = retain(bank, [{"text": "secret", "entities": ["Ana"], "fact_key": "k"}], "c")

    assert call(bank, "stored_memories", bank="b", memory_ids=[other]) == []
    assert "secret" not in texts(bank) + texts(bank, entity="Ana")
    assert value(bank, "select pgrecall.forget_where('b', fact_key => 'k')") == 0


# Forgetting


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        ("source_id => 'mail'", ["Ana leads Atlas", "Bo likes tea"]),
        ("fact_key => 'BO.tea'", ["Atlas went live", "Ana leads Atlas", "Ana moved to Porto"]),
        ("filter => 'confidence < 0.9'", ["Ana leads Atlas", "Bo likes tea", "Ana moved to Porto"]),
        ("'fact_type = ''event''', source_id => 'mail'",
         ["Ana leads Atlas", "Bo likes tea", "Ana moved to Porto"]),
    ],
)  # fmt: skip
def test_what_meets_a_condition_is_forgotten(
    bank: Connection, arguments: str, left: list[str]
) -> None:
    counted = value(bank, f"select pgrecall.forget_where('b', {arguments}, dry_run => true)")
    before = texts(bank)
    forgotten = value(bank, f"select pgrecall.forget_where('b', {arguments})")

    assert before == [fact["text"] for fact in reversed(FACTS)]
    assert counted == forgotten == 4 - len(left)
    assert texts(bank) == left


def test_the_same_of_another_document_holds_once_the_merged_one_is_forgotten(
    connection: Connection,
) -> None:
    create(connection)
    names = ("a", "b", "c", "a")
    same = [{"text": "It is MIT" if n < 3 else "it is  MIT", "source_id": name}
            for n, name in enumerate(names)]  # fmt: skip
    memories = retain(connection, same)
    pairs = call(connection, "consolidate", bank="b", dry_run=False)
    left = "select array_agg(source_id order by source_id) from pgrecall.memory"
    (kept,) = {pair.kept_id for pair in pairs}

    gone = value(connection, "select pgrecall.forget_where('b', source_id => 'a')")

    assert (len(pairs), kept) == (3, memories[3])
    assert gone == 2
    assert value(connection, left + " where valid_to is null") == ["b", "c"]
    again = retain(connection, [{"text": "It is MIT", "source_id": name} for name in "bc"])
    assert again == memories[1:3]
    assert value(connection, "select max(proof_count) from pgrecall.memory") == 1
    assert value(connection, "select pgrecall.forget_where('b', source_id => 'b')") == 1
    assert value(connection, left) == ["c"]


def test_what_was_merged_does_not_hold_again_beside_its_equal_that_expires(
    connection: Connection,
) -> None:
    create(connection)
    same = [{"text": "It is MIT", "source_id": name} for name in "ab"]
    retain(connection, same)
    ((merged, kept),) = [
        (pair.memory_id, pair.kept_id)
        for pair in call(connection, "consolidate", bank="b", dry_run=False)
    ]
    source = value(connection, "select source_id from pgrecall.memory where memory_id = %s", kept)
    call(connection, "supersede", bank="b", memory_id=kept)
    again = next(fact for fact in same if fact["source_id"] != source)
    (new,) = retain(connection, [{**again, "expires_at": "2999-01-01"}])
    call(connection, "unsupersede", bank="b", memory_id=kept)
    assert new != merged

    value(connection, "select pgrecall.forget_where('b', source_id => %s)", source)

    listed = call(connection, "list_memories", bank="b")
    assert [row.memory_id for row in listed] == [new]


def said(connection: Connection, *names: str, **more: Any) -> list[int]:
    """Retain the same sentence of each of these documents, and merge what is the same."""
    ids = retain(connection, [{"text": "It is MIT", "source_id": one} | more for one in names])
    call(connection, "consolidate", bank="b", dry_run=False)
    return ids


def after_merging_the_kept(connection: Connection) -> int:
    [merged, _] = said(connection, "b", "a")
    said(connection, "a", context="Licence")
    return merged


def after_updating_the_kept(connection: Connection) -> int:
    [merged, kept] = said(connection, "b", "a")
    version = update(connection, kept, tags=["x"])
    update(connection, version.memory_id, metadata={"page": 3})
    return merged


def after_superseding_the_kept(connection: Connection) -> int:
    [merged, kept] = said(connection, "b", "a")
    (other,) = retain(connection, [{"text": "It was MIT", "source_id": "a"}])
    call(connection, "supersede", bank="b", memory_id=kept, superseded_by=other)
    return merged


def after_forgetting_another_between(connection: Connection) -> int:
    [merged, _] = said(connection, "b", "c")
    said(connection, "a")
    value(connection, "select pgrecall.forget_where('b', source_id => 'c')")
    return merged


def after_merging_it_again(connection: Connection) -> int:
    after_merging_the_kept(connection)
    [merged] = said(connection, "b", confidence=0.5)
    return merged


def after_retaining_it_again(connection: Connection) -> int:
    merged = after_merging_the_kept(connection)
    retain(connection, [{"text": "It is MIT", "source_id": "b", "confidence": 0.5}])
    return merged


@pytest.mark.parametrize(
    ("story", "condition"),
    [
        (after_merging_the_kept, "source_id = 'a'"),
        (after_updating_the_kept, "source_id = 'a'"),
        (after_superseding_the_kept, "source_id = 'a'"),
        (after_forgetting_another_between, "source_id = 'a'"),
        (after_merging_it_again, "source_id = 'a'"),
        (after_retaining_it_again, "source_id = 'a' or confidence < 0.6"),
    ],
)
def test_what_was_merged_holds_whatever_came_of_the_kept(
    connection: Connection, story: Any, condition: str
) -> None:
    create(connection)
    merged = story(connection)

    value(connection, "select pgrecall.forget_where('b', %s)", condition)

    (held,) = call(connection, "list_memories", bank="b")
    assert (held.memory_id, held.source_id, held.text) == (merged, "b", "It is MIT")
    assert (held.superseded_by, held.proof_count) == (None, 1)


def test_what_was_merged_stays_ended_with_the_kept(connection: Connection) -> None:
    create(connection)
    [_, kept] = said(connection, "b", "a")
    call(connection, "supersede", bank="b", memory_id=kept)

    value(connection, "select pgrecall.forget_where('b', source_id => 'a')")

    assert call(connection, "list_memories", bank="b") == []


def test_where_another_kept_it_what_was_merged_can_be_brought_back(connection: Connection) -> None:
    create(connection)
    merged = after_forgetting_another_between(connection)
    (kept,) = call(connection, "list_memories", bank="b")
    (ended,) = call(connection, "stored_memories", bank="b", memory_ids=[merged])

    assert (kept.source_id, ended.superseded_by) == ("a", kept.memory_id)
    (restored,) = call(connection, "unsupersede", bank="b", memory_id=merged)
    assert (restored.memory_id, restored.valid_to) == (merged, None)


def test_the_history_of_a_key_is_forgotten_with_it(bank: Connection) -> None:
    memory_id = id_of(bank, "Bo likes tea")
    update(bank, memory_id, text="Bo likes coffee")

    assert value(bank, "select pgrecall.forget_where('b', fact_key => 'bo.tea')") == 2
    assert value(bank, "select count(*) from pgrecall.memory where text like 'Bo%'") == 0


# Updating


@pytest.mark.parametrize(
    ("changes", "again"),
    [
        ({"tags": ["x"], "metadata": {"page": 3}}, {}),
        ({"text": "Cy sails far"}, {"text": "Cy sails far"}),
        ({"text": "Cy sails far"}, {"text": "Cy sails far", "mentioned_at": "2026-01-01"}),
    ],
)
def test_a_version_is_known_by_what_its_memory_was_known_by(
    bank: Connection, changes: dict[str, Any], again: dict[str, Any]
) -> None:
    told = {"text": "Cy sails", "source_id": "log", "occurred": "2026-03-05"}
    told |= {key: again[key] for key in again if key == "mentioned_at"}
    (memory,) = retain(bank, [told])
    day_earlier(bank)
    said = "select mentioned_at from pgrecall.memory where memory_id = %s"

    new = update(bank, memory, **changes)

    (row,) = call(bank, "retain", bank="b", facts=[told | again])
    assert (row.memory_id, row.is_new) == (new.memory_id, False)
    assert value(bank, said, new.memory_id) == value(bank, said, memory)


def test_an_update_keeps_the_old_version_as_history(bank: Connection) -> None:
    old = id_of(bank, "Ana leads Atlas")

    new = update(bank, old, text="Ana and Bo lead Atlas", tags=["team"])

    assert texts(bank)[0] == "Ana and Bo lead Atlas"
    assert "Ana leads Atlas" not in texts(bank)
    assert (new.fact_key, new.metadata, new.tags) == ("atlas.lead", {"team": "core"}, ["team"])
    assert new.mentioned_at.isoformat()[:10] == "2026-01-01"
    history = call(bank, "memory_history", bank="b", memory_id=new.memory_id)
    assert [(row.text, row.ended_by, row.superseded_by) for row in history] == [
        ("Ana leads Atlas", "update", new.memory_id),
        ("Ana and Bo lead Atlas", None, None),
    ]
    assert call(bank, "memory_history", bank="b", memory_id=old) == history


def test_as_of_an_earlier_time_the_old_version_is_found(bank: Connection) -> None:
    update(bank, id_of(bank, "Ana leads Atlas"), text="Ana and Bo lead Atlas")

    then = call(bank, "hybrid_recall", bank="b", query="Atlas", as_of="2026-02-01")
    now = call(bank, "hybrid_recall", bank="b", query="atlas.lead")

    assert [row.text for row in then] == ["Ana leads Atlas"]
    assert now[0].text == "Ana and Bo lead Atlas"
    assert "Ana leads Atlas" not in [row.text for row in now]


def parts(bank: Connection, memory_id: int) -> dict[str, list[tuple[Any, ...]]]:
    """What belongs to a memory in the other tables, without ids of the memory itself."""
    queries = {
        "mention": "entity_id, fact_type, confidence from pgrecall.mention where memory_id = %s",
        "relation": "from_id, kind, to_id, confidence, valid_from, valid_to"
        " from pgrecall.relation where memory_id = %s",
        "embedding": "model, kind, ordinal, embedding::text, text from pgrecall.embedding"
        " where memory_id = %s",
        "from": "to_id, weight from pgrecall.link where from_id = %s and kind = 'caused_by'",
        "to": "from_id, weight from pgrecall.link where to_id = %s and kind = 'caused_by'",
    }
    return {
        name: rows(bank, f"select {query} order by 1, 2", memory_id)
        for name, query in queries.items()
    }


def test_a_new_version_keeps_what_was_not_changed(connection: Connection) -> None:
    create(connection)
    first, second = retain(connection, FULL, model="m")

    new = update(connection, first, confidence=0.5)

    before, after = parts(connection, first), parts(connection, new.memory_id)
    assert after == before
    assert all(before[name] for name in ("mention", "relation", "embedding", "to"))
    assert (new.text, new.confidence, new.fact_key) == ("Ana leads Atlas", 0.5, "atlas.lead")
    assert (new.memory_id, 1) in parts(connection, second)["from"]


def test_a_new_text_has_no_old_embedding_and_other_neighbours(connection: Connection) -> None:
    create(connection)
    first, second = retain(connection, FULL, model="m")

    bare = update(connection, second, text="Atlas was on time")
    (near,) = call(
        connection, "update_memory", bank="b", memory_id=bare.memory_id, model="m",
        changes=Jsonb({"text": "Ana led Atlas", "embedding": [1, 0.1], "entities": ["Ana"],
                       "links": []}),
    )  # fmt: skip

    assert parts(connection, bare.memory_id)["embedding"] == []
    assert [e[:2] for e in parts(connection, near.memory_id)["embedding"]] == [("m", "text")]
    assert near.entities == ["Ana"]
    assert first in similar(connection, near.memory_id)
    causal = "select from pgrecall.link where kind = 'caused_by' and from_id = %s"
    assert rows(connection, causal, near.memory_id) == []
    assert value(connection, "select pgrecall.pending_links('b')") == 0


LEADS = {
    "text": "Maya leads Atlas from Porto.",
    "entities": ["Maya", "Atlas", "Porto"],
    "relations": [{"from": "Maya", "kind": "leads", "to": "Atlas"},
                  {"from": "Atlas", "kind": "based_in", "to": "Porto"}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "entities", "relations", "ended"),
    [
        ({"text": "Ines leads Atlas from Porto."}, ["Atlas", "Porto"],
         ["Atlas based_in Porto"], ["Maya leads Atlas"]),
        ({"text": "Ines leads Borealis."}, [], [], ["Maya leads Atlas", "Atlas based_in Porto"]),
        ({"text": "Maya heads Atlas from Porto."}, ["Atlas", "Maya", "Porto"],
         ["Maya leads Atlas", "Atlas based_in Porto"], []),
        ({"text": "Maya left Atlas in Porto."}, ["Atlas", "Maya", "Porto"],
         ["Atlas based_in Porto"], ["Maya leads Atlas"]),
        ({"text": "It is Atlas.", "context": "Said by Maya, in Porto"},
         ["Atlas", "Maya", "Porto"], ["Atlas based_in Porto"], ["Maya leads Atlas"]),
        ({"text": "She leads it.", "entities": ["Maya", "Atlas"]}, ["Atlas", "Maya"],
         ["Maya leads Atlas"], ["Atlas based_in Porto"]),
        ({"entities": ["Maya", "Atlas"]}, ["Atlas", "Maya"], ["Maya leads Atlas"],
         ["Atlas based_in Porto"]),
        ({"text": "It is so.", "relations": LEADS["relations"]}, ["Atlas", "Maya", "Porto"],
         ["Maya leads Atlas", "Atlas based_in Porto"], []),
        ({"tags": ["x"]}, ["Atlas", "Maya", "Porto"],
         ["Maya leads Atlas", "Atlas based_in Porto"], []),
    ],
)  # fmt: skip
def test_an_update_ends_the_entities_and_relations_that_the_new_text_does_not_name(
    connection: Connection,
    changes: dict[str, Any],
    entities: list[str],
    relations: list[str],
    ended: list[str],
) -> None:
    create(connection)
    (old,) = retain(connection, [LEADS])

    new = update(connection, old, **changes)

    assert new.entities == entities
    assert stated(connection, new.memory_id) == sorted(relations)
    assert sorted(new.ended_relations) == sorted(ended)
    assert new.ended_entities == sorted({"Atlas", "Maya", "Porto"} - {*entities})
    (before, _) = call(connection, "memory_history", bank="b", memory_id=new.memory_id)
    assert before.entities == ["Atlas", "Maya", "Porto"]
    assert stated(connection, old) == ["Atlas based_in Porto", "Maya leads Atlas"]


def stated(connection: Connection, memory_id: int) -> list[str]:
    """The relations that a memory states, in words."""
    return [
        relation
        for (relation,) in rows(
            connection,
            "select concat_ws(' ', f.name, r.kind, t.name) from pgrecall.relation r"
            " join pgrecall.entity f on f.entity_id = r.from_id"
            " join pgrecall.entity t on t.entity_id = r.to_id"
            " where r.memory_id = %s order by 1",
            memory_id,
        )
    ]


@pytest.mark.parametrize(
    ("entity", "before", "after", "is_named"),
    [
        ("Ana Silva", "Ana moved to Porto", "Ana moved to Lisbon", True),  # by her first name, both
        ("Ana Silva", "Ana Silva moved", "Ana Costa moved", False),
        ("Ana Silva", "Ana moved", "Bo moved", False),
        ("王", "王在北京。", "王在上海。", True),
        ("Ana", "Anas Chefin ist Bo", "Anas Chefin ist Cy", True),
        ("Ana", "Ana's boss is Bo", "ANA’S boss is Cy", True),
        ("Ana", "Ana is here", "Banana bread is here", False),
        ("max_client_conn", "max_client_conn is 5", "Set max_client_conn to 6", True),
    ],
)  # fmt: skip
def test_what_a_text_names_is_found_as_it_is_written(
    connection: Connection, entity: str, before: str, after: str, is_named: bool
) -> None:
    create(connection)
    (old,) = retain(connection, [{"text": before, "entities": [entity]}])

    new = update(connection, old, text=after)

    assert new.entities == ([entity] if is_named else [])


def test_an_update_that_changes_nothing_leaves_the_bank_as_it_is(bank: Connection) -> None:
    memory_id = id_of(bank, "Atlas went live")
    before = contents(bank)

    same = update(bank, memory_id, text="Atlas went live", confidence=0.5)

    assert same.memory_id == memory_id
    assert contents(bank) == before


def test_an_update_is_taken_back(bank: Connection) -> None:
    old = id_of(bank, "Atlas went live")
    before = rows(bank, "select * from pgrecall.memory where memory_id = %s", old)
    new = update(bank, old, text="Atlas went live at last")

    call(bank, "unsupersede", bank="b", memory_id=old)

    ended = "select valid_to = valid_from, superseded_by from pgrecall.memory where memory_id = %s"
    assert rows(bank, ended, new.memory_id) == [(True, old)]
    assert rows(bank, "select * from pgrecall.memory where memory_id = %s", old) == before
    assert sorted(texts(bank)) == sorted(fact["text"] for fact in FACTS)


def test_an_update_of_all_but_the_content_is_taken_back(bank: Connection) -> None:
    old = id_of(bank, "Atlas went live")
    new = update(bank, old, tags=["x"])

    call(bank, "unsupersede", bank="b", memory_id=old)

    listed = call(bank, "memory_history", bank="b", memory_id=old)
    assert [row.memory_id for row in listed if row.valid_to is None] == [old]
    assert new.memory_id != old


def test_an_update_that_was_taken_back_comes_back(bank: Connection) -> None:
    old = id_of(bank, "Atlas went live")
    day_earlier(bank)
    new = update(bank, old, text="Atlas went live at last").memory_id
    spans = "select memory_id, valid_from, valid_to, superseded_by from pgrecall.memory order by 1"
    updated = rows(bank, spans)
    call(bank, "unsupersede", bank="b", memory_id=old)
    reverted = rows(bank, spans)

    call(bank, "unsupersede", bank="b", memory_id=new)
    again = rows(bank, spans)
    call(bank, "unsupersede", bank="b", memory_id=old)

    assert again == updated
    assert rows(bank, spans) == reverted


@pytest.mark.parametrize("correction", ["update", "supersede"])
def test_what_was_corrected_since_is_reverted_before_its_former_version(
    bank: Connection, correction: str
) -> None:
    first = id_of(bank, "Atlas went live")
    second = update(bank, first, text="Atlas went live at last").memory_id
    if correction == "update":
        update(bank, second, text="Atlas went live in April")
    else:
        call(bank, "supersede", bank="b", memory_id=second)

    with refused(
        bank,
        "22023",
        f"memory {second}, the other version of memory {first}, was corrected since",
        rf"^Revert that first: select \* from pgrecall.unsupersede\('b', {second}\);$",
    ):
        call(bank, "unsupersede", bank="b", memory_id=first)
    for memory_id in (second, first):
        call(bank, "unsupersede", bank="b", memory_id=memory_id)

    assert sorted(texts(bank)) == sorted(fact["text"] for fact in FACTS)


def test_a_version_of_what_no_longer_holds_is_not_brought_back(bank: Connection) -> None:
    first = id_of(bank, "Atlas went live")
    day_earlier(bank)
    second = update(bank, first, text="Atlas went live at last").memory_id
    call(bank, "unsupersede", bank="b", memory_id=first)
    update(bank, first, text="Atlas went live in April")

    with refused(
        bank,
        "22023",
        f"memory {first}, the other version of memory {second}, was corrected since",
        rf"unsupersede\('b', {first}\);$",
    ):
        call(bank, "unsupersede", bank="b", memory_id=second)


def test_a_fact_that_an_update_met_stays_when_it_is_taken_back(bank: Connection) -> None:
    old, met = id_of(bank, "Bo likes tea"), id_of(bank, "Ana leads Atlas")

    assert update(bank, old, **FACTS[2], fact_type="world").memory_id == met
    call(bank, "unsupersede", bank="b", memory_id=old)

    assert sorted(texts(bank)) == sorted(fact["text"] for fact in FACTS)


def test_times_survive_an_update(bank: Connection) -> None:
    times = ["2026-03-05", "2026-03-05T10:00:00.123456Z", ["2026-03-05", None],
             [None, "2026-03-05"]]  # fmt: skip
    for n, occurred in enumerate(times):
        expires = {"expires_at": "2999-01-01"} if n % 2 else {}
        (memory_id,) = retain(bank, [{"text": f"time {n}", "occurred": occurred, **expires}])
        columns = "select occurred::text, mentioned_at, valid_to from pgrecall.memory"
        (before,) = rows(bank, f"{columns} where memory_id = %s", memory_id)

        changed = "select memory_id from pgrecall.update_memory('b', %s, '{\"tags\": [\"x\"]}')"
        new_id = value(bank, changed, memory_id)

        (after,) = rows(bank, f"{columns} where memory_id = %s", new_id)
        assert new_id != memory_id
        assert after == before


def test_what_has_ended_is_not_updated(bank: Connection) -> None:
    old = id_of(bank, "Bo likes tea")
    new = update(bank, old, text="Bo likes coffee")
    ended_at = value(bank, "select now()::text")

    with refused(bank, "22023", f"memory {old} ended at {ended_at}", f"memory {new.memory_id},"):
        update(bank, old, text="Bo likes milk")


def test_a_history_goes_both_ways_and_has_an_end(bank: Connection) -> None:
    memory_id = id_of(bank, "Bo likes tea")
    ids = [memory_id]
    for n in range(5):
        ids.append(update(bank, ids[-1], text=f"Bo likes tea {n}").memory_id)

    def found(**arguments: Any) -> list[int]:
        return [row.memory_id for row in call(bank, "memory_history", bank="b", **arguments)]

    assert found(memory_id=ids[2]) == ids
    assert found(memory_id=ids[2], top_k=3) == ids[1:4]
    call(bank, "supersede", bank="b", memory_id=ids[-1], superseded_by=ids[0])  # a ring
    assert sorted(found(memory_id=ids[0])) == ids


# From Python


@pytest.fixture
def recall(connection: Connection) -> Recall:
    recall = Recall(connection, embedder=toy_embed, model="toy")
    recall.create_bank("b")
    recall.retain("b", FACTS)
    return recall


def test_a_memory_is_read_as_it_was_retained(recall: Recall) -> None:
    first = recall.list_memories("b")[-1]

    assert recall.get("b", first.memory_id) == first
    assert (first.text, first.tags, first.entities) == ("Ana moved to Porto", ("home",),
                                                        ("Ana", "Porto"))  # fmt: skip
    assert isinstance(first, Memory)
    assert first.occurred is not None
    assert first.occurred[0] is not None
    assert first.occurred[0].isoformat() == "2026-03-05T00:00:00+00:00"


def test_an_unknown_memory_is_an_error(recall: Recall) -> None:
    with pytest.raises(MemoryNotFound, match='bank "b" has no memory 0') as caught:
        recall.get("b", 0)

    assert caught.value.hint


def test_pages_and_conditions_are_passed_on(recall: Recall) -> None:
    start = datetime(2026, 3, 1)  # without a zone: that of the client

    assert [m.text for m in recall.list_memories("b", during=(start, None), top_k=1)] == [
        "Atlas went live"
    ]
    assert recall.list_memories("b", entity="Annie", filter=["=", "fact_key", "x"]) == []
    last = recall.list_memories("b", fact_types="event")[0]
    assert len(recall.list_memories("b", before_id=last.memory_id)) == 3
    assert recall.list_memories("b", as_of=datetime(2020, 1, 1)) == []


def test_a_new_text_is_embedded_and_found(recall: Recall, connection: Connection) -> None:
    old = recall.list_memories("b", entity="Bo")[0]

    new = recall.update("b", old.memory_id, text="Bo drinks coffee", tags=["drink"])

    assert recall.history("b", old.memory_id) == [recall.get("b", old.memory_id), new]
    assert recall.recall("b", "coffee")[0].memory_id == new.memory_id
    vectors = "select model, kind from pgrecall.embedding where memory_id = %s"
    assert rows(connection, vectors, new.memory_id) == [("toy", "text")]
    assert [m.valid_to for m in recall.list_memories("b", is_ended_too=True)].count(None) == 4


def test_the_same_text_again_is_neither_embedded_nor_a_new_version(connection: Connection) -> None:
    embedded: list[str] = []

    def embed(texts: Sequence[str]) -> list[list[float]]:
        embedded.extend(texts)
        return toy_embed(texts)

    memory = Recall(connection, embedder=embed, model="toy")
    memory.create_bank("b")
    [old] = memory.retain("b", ["Bo drinks tea"])
    del embedded[:]

    same = memory.update("b", old.memory_id, text="Bo drinks tea")
    tagged = memory.update("b", old.memory_id, text="Bo drinks tea", tags=["drink"])
    asked = memory.update(
        "b", tagged.memory_id, text="Bo drinks tea", questions=[{"text": "Who drinks?"}]
    )

    assert same.memory_id == old.memory_id
    assert [one.memory_id for one in memory.history("b", asked.memory_id)] == [
        old.memory_id,
        tagged.memory_id,
        asked.memory_id,
    ]
    assert embedded == ["Who drinks?"]
    assert memory.embed_pending("b") == 0


def test_an_update_names_what_it_does_not_know(recall: Recall, connection: Connection) -> None:
    memory_id = recall.list_memories("b")[0].memory_id

    unknown = pytest.raises(InvalidFact, match=r"facts\[0\]\.colour: unknown field")
    with unknown, connection.transaction():
        recall.update("b", memory_id, colour="red")
    with pytest.raises(InvalidArgument, match="changes must be an object with a field"):
        recall.update("b", memory_id)


def test_memories_are_forgotten_by_id_or_by_condition(recall: Recall) -> None:
    ids = [memory.memory_id for memory in recall.list_memories("b")]

    assert recall.forget("b", source_id="mail", dry_run=True) == 2
    assert recall.forget("b", source_id="mail") == 2
    assert recall.forget("b", filter=["=", "fact_type", "preference"]) == 1
    assert recall.forget("b", ids[1], dry_run=False) == 1
    assert recall.list_memories("b") == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "no condition says what to forget"),
        ({"filter": " "}, "no condition says what to forget"),
        ({"memory_ids": [1], "source_id": "mail"}, "takes memory_ids alone, not with source_id"),
        ({"memory_ids": [1], "dry_run": True}, "takes memory_ids alone, not with dry_run"),
    ],
)
def test_what_to_forget_is_said_in_one_way(
    recall: Recall, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgument, match=message) as caught:
        recall.forget("b", **arguments)

    assert caught.value.hint


def test_an_update_takes_over_a_confidence_to_its_last_digit(connection: Connection) -> None:
    create(connection)
    (memory,) = retain(connection, [{"text": "pi", "confidence": 0.3141593}])
    connection.execute("set local extra_float_digits = -10")
    connection.execute("select pgrecall.update_memory('b', %s, '{\"tags\": [\"t\"]}')", [memory])
    connection.execute("reset extra_float_digits")

    statement = "select distinct confidence from pgrecall.memory"
    assert rows(connection, statement) == [(0.3141593,)]


def test_a_date_of_any_year_is_a_day(connection: Connection) -> None:
    create(connection)
    retain(
        connection,
        [{"text": t, "occurred": t} for t in ("0044-03-15 BC", "2026-03-05", "12026-03-05")],
    )

    statement = "select distinct upper(occurred) - lower(occurred) from pgrecall.memory"
    assert [str(one) for (one,) in rows(connection, statement)] == ["1 day, 0:00:00"]
