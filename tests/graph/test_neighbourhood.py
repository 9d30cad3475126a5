"""The graph around an entity or a fact, as it is drawn."""

from __future__ import annotations

from typing import Any

from servers import kept_fixture
from sqlcalls import Connection, call, create, retain, value

FACTS: list[dict[str, Any]] = [
    {"text": "Bo reports to Ana", "relations": [{"from": "Bo", "kind": "reports_to", "to": "Ana"}]},
    {"text": "Ana mentors Cy", "relations": [{"from": "Ana", "kind": "mentors", "to": "Cy"}],
     "fact_key": "cy"},
    {"text": "Cy broke the build", "entities": ["Cy"],
     "links": [{"kind": "caused_by", "to_key": "cy"}]},
]  # fmt: skip

READ = """
    select sum(pg_stat_get_xact_tuples_returned(c.oid) + pg_stat_get_xact_tuples_fetched(c.oid))
    from   pg_class c where c.oid in ('pgrecall.memory'::regclass, 'pgrecall.mention'::regclass)
"""


@kept_fixture
def bank(connection: Connection) -> None:
    create(connection)
    retain(connection, FACTS)


def entity(bank: Connection, name: str) -> int:
    return int(value(bank, "select entity_id from pgrecall.entity where name = %s", name))


def memory(bank: Connection, text: str) -> int:
    return int(value(bank, "select memory_id from pgrecall.memory where text = %s", text))


def edges(bank: Connection, **arguments: Any) -> set[tuple[str, str, str]]:
    rows = call(bank, "neighbourhood", bank="b", **arguments)
    told = [(row.from_name, row.kind, row.to_name) for row in rows]
    assert len(told) == len(set(told))
    return set(told)


def test_an_entity_has_its_relations_and_its_facts(bank: Connection) -> None:
    assert edges(bank, entity_id=entity(bank, "Bo")) == {
        ("Bo", "reports_to", "Ana"),
        ("Bo reports to Ana", "mentions", "Bo"),
    }


def test_a_hop_more_leads_further(bank: Connection) -> None:
    two = edges(bank, entity_id=entity(bank, "Bo"), hops=2)
    three = edges(bank, entity_id=entity(bank, "Bo"), hops=3)

    assert ("Ana", "mentors", "Cy") in two
    assert ("Cy broke the build", "mentions", "Cy") in three - two


def test_a_fact_has_its_entities_and_its_causes(bank: Connection) -> None:
    around = edges(bank, memory_id=memory(bank, "Cy broke the build"))

    assert ("Cy broke the build", "mentions", "Cy") in around
    assert ("Cy broke the build", "caused_by", "Ana mentors Cy") in around


def test_what_has_ended_is_not_drawn_but_as_of_before(bank: Connection) -> None:
    before = value(bank, "select now()")
    bank.execute(
        "select pgrecall.supersede('b', %s, at => now() + interval '1 second')",
        [memory(bank, "Bo reports to Ana")],
    )
    later = value(bank, "select now() + interval '1 minute'")

    assert edges(bank, entity_id=entity(bank, "Bo"), as_of=later) == set()
    assert edges(bank, entity_id=entity(bank, "Bo"), as_of=before) != set()


def test_nothing_is_drawn_of_a_fact_that_does_not_hold(bank: Connection) -> None:
    broken = memory(bank, "Cy broke the build")

    call(bank, "supersede", bank="b", memory_id=broken)

    assert edges(bank, memory_id=broken) == set()


def test_versions_that_have_ended_leave_room_for_what_holds(bank: Connection) -> None:
    call(bank, "configure_bank", bank="b", settings={"replace": "key"})
    retain(bank, [{"text": "Ana met Dot", "entities": ["Ana", "Dot"]}])
    for n in range(60):
        retain(bank, [{
            "text": f"Ana weighs {n}", "fact_key": "weight",
            "relations": [{"from": "Ana", "kind": "weighs", "to": f"{n} kilos"}],
        }])  # fmt: skip
    ana, dot = entity(bank, "Ana"), entity(bank, "Dot")

    around = edges(bank, entity_id=ana)
    way = call(bank, "path", bank="b", entity_a=ana, entity_b=dot)

    assert around >= {("Ana met Dot", "mentions", "Ana"), ("Bo", "reports_to", "Ana")}
    assert [step.why for step in way] == ["Ana and Dot: Ana met Dot"]


def test_former_versions_leave_room_for_similar_facts(bank: Connection) -> None:
    call(bank, "configure_bank", bank="b", settings={"replace": "key"})
    retain(bank, [{"text": "a twin", "embedding": [1, 0.2]}])
    for n in range(9):
        retain(bank, [{"text": f"version {n}", "fact_key": "v", "embedding": [1, 0]}])

    around = edges(bank, memory_id=memory(bank, "version 8"))

    assert around == {("version 8", "semantic", "a twin")}


def test_former_versions_leave_room_for_what_a_fact_caused(bank: Connection) -> None:
    call(bank, "configure_bank", bank="b", settings={"replace": "key"})
    for n in range(30):
        links = [{"kind": "caused_by", "to_key": "cy"}]
        retain(bank, [{"text": f"version {n}", "fact_key": "v", "links": links}])

    around = edges(bank, memory_id=memory(bank, "Ana mentors Cy"))

    assert ("version 29", "caused_by", "Ana mentors Cy") in around


def test_what_held_before_is_drawn_whatever_came_after(bank: Connection) -> None:
    retain(bank, [{"text": f"Bo saw {n}", "entities": ["Bo"]} for n in range(30)])
    bank.execute("update pgrecall.memory set valid_from = '2999-01-01' where text like 'Bo saw %'")

    assert edges(bank, entity_id=entity(bank, "Bo")) == {
        ("Bo", "reports_to", "Ana"),
        ("Bo reports to Ana", "mentions", "Bo"),
    }


def test_of_a_hub_of_ten_thousand_edges_little_is_read(bank: Connection) -> None:
    retain(bank, [{"text": "Hub is busy", "entities": ["Hub"]}])
    hub = entity(bank, "Hub")
    bank.execute("""
        with made as (
          insert into pgrecall.memory (bank_id, memory_id, fact_type, text, content_hash, is_linked,
                                       mentioned_at, valid_from, lexical_length, lexical_weights)
          select 'b', nextval('pgrecall.id_seq'), m.fact_type, m.text || n,
                 sha256(convert_to(n::text, 'UTF8')), true, m.mentioned_at, m.valid_from,
                 m.lexical_length, m.lexical_weights
          from   pgrecall.memory m, generate_series(1, 10000) as n
          where  m.text = 'Hub is busy'
          returning memory_id, fact_type
        )
        insert into pgrecall.mention (bank_id, entity_id, fact_type, memory_id)
        select 'b', %s, fact_type, memory_id from made
    """, [hub])  # fmt: skip
    bank.execute("analyze pgrecall.memory, pgrecall.mention")

    before = value(bank, READ)

    around = call(bank, "neighbourhood", bank="b", entity_id=hub, hops=3)

    assert len(around) == 10
    assert around[0].to_mentions >= 1000
    assert value(bank, READ) - before < 2000


def test_rarity_is_that_of_the_graph_arm(bank: Connection) -> None:
    retain(bank, [{"text": f"Ana met guest {n}", "entities": ["Ana"]} for n in range(20)])

    found = call(bank, "neighbourhood", bank="b", entity_id=entity(bank, "Bo"))
    rarity = {row.from_name: row.from_rarity for row in found}
    rarity |= {row.to_name: row.to_rarity for row in found}

    assert rarity["Bo reports to Ana"] is None
    assert 0 < rarity["Ana"] < rarity["Bo"] <= 1


def test_a_hub_is_bounded(bank: Connection) -> None:
    retain(bank, [
        {"text": f"Hub meets guest {n}",
         "relations": [{"from": "Hub", "kind": "meets", "to": f"guest {n}"}]}
        for n in range(300)
    ])  # fmt: skip

    one = call(bank, "neighbourhood", bank="b", entity_id=entity(bank, "Hub"))
    three = call(bank, "neighbourhood", bank="b", entity_id=entity(bank, "Hub"), hops=3, top_k=50)

    assert [row.kind for row in one].count("meets") == 25
    assert len(one) <= 35
    assert len(three) == 50
    assert max(row.from_mentions or 0 for row in one) == 300
