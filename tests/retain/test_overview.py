"""What a browser of memories shows: search while typing, counts, entities, what hangs on a fact."""

from __future__ import annotations

from typing import Any

import pytest

from servers import kept_fixture
from sqlcalls import Connection, call, counted_scans, create, retain, value

FACTS: list[dict[str, Any]] = [
    {"text": "Ana moved to Porto", "entities": [{"name": "Ana", "aliases": ["Annie"]}, "Porto"],
     "occurred": "2026-03-05", "relations": [{"from": "Ana", "kind": "lives_in", "to": "Porto"}]},
    {"text": "Bo deploys on Fridays", "entities": ["Bo"], "fact_type": "preference",
     "context": "a retrospective", "confidence": 0.5},
    {"text": "Ana leads the deployment of Atlas", "entities": ["Ana", "Atlas"],
     "fact_key": "atlas.lead", "mentioned_at": "2026-01-01"},
    {"text": "Raised max_client_conn to 1200", "fact_type": "event", "occurred": "2026-03-30"},
    {"text": "東京に住む"},
]  # fmt: skip


def fill(connection: Connection) -> None:
    create(connection)
    retain(connection, FACTS)
    connection.execute("select pgrecall.refresh_statistics('b', true)")


@kept_fixture
def bank(connection: Connection) -> None:
    fill(connection)


def found(bank: Connection, words: str, **arguments: Any) -> list[str]:
    return [row.text for row in call(bank, "find_memories", bank="b", words=words, **arguments)]


@pytest.mark.parametrize(
    ("words", "texts"),
    [
        ("po", ["Ana moved to Porto"]),
        ("Porto ", ["Ana moved to Porto"]),
        ("po ", []),
        ("ana moving", ["Ana moved to Porto"]),
        ("moves an", ["Ana moved to Porto"]),
        ("c++", []),
        ("deplo", ["Ana leads the deployment of Atlas", "Bo deploys on Fridays"]),
        ("atlas.le", ["Ana leads the deployment of Atlas"]),
        ("deployme", ["Ana leads the deployment of Atlas"]),
        ("moved t", ["Ana moved to Porto"]),
        ("moved to", ["Ana moved to Porto"]),
        ("moved the", []),
        ("the", ["Ana leads the deployment of Atlas"]),
        ("ana's", ["Ana leads the deployment of Atlas", "Ana moved to Porto"]),
        ("ana'po", ["Ana moved to Porto"]),
        ("ana–moved,", ["Ana moved to Porto"]),
        ("po,", []),
        ("don't", []),
        ("retro", ["Bo deploys on Fridays"]),
        ("max_cl", ["Raised max_client_conn to 1200"]),
        ("max_client_conn", ["Raised max_client_conn to 1200"]),
        ("東京", ["東京に住む"]),
        ("anap", []),
        ("%", []),
        ("", [fact["text"] for fact in reversed(FACTS)]),
    ],
)
@pytest.mark.parametrize("is_common", [True, False])
def test_the_last_word_may_be_only_begun(
    bank: Connection, words: str, texts: list[str], is_common: bool
) -> None:
    # The other way to look it up, for words that are common in a bank, finds the same.
    bank.execute(
        "update pgrecall_internal.statistics set document_count = %s where bank_id = 'b'",
        [1 if is_common else 1_000_000],
    )

    assert found(bank, words) == texts


@pytest.mark.parametrize(
    "words",
    [
        "@len",
        "#88",
        ".en",
        "/srv/a",
        "--verb",
        "_priv",
        "-5p",
        "-5pm",
        "ping @",
        "ping @l",
        "@lena",
    ],
)
def test_a_word_may_be_begun_behind_a_sign(bank: Connection, words: str) -> None:
    text = "Ping @lena on #8812: .env in /srv/app, --verbose, _private, -5pm."
    retain(bank, [text])

    assert found(bank, words) == [text]
    assert found(bank, words + "x") == []


def test_words_of_facts_that_are_not_counted_yet_are_found(bank: Connection) -> None:
    bank.execute("update pgrecall_internal.statistics set document_count = 1000")
    retain(bank, [{"text": "Quokkas smile"}])

    assert value(bank, "select max(waiting) from pgrecall.bank_statistics('b')") == 1
    assert found(bank, "quokkas") == found(bank, "quok") == ["Quokkas smile"]
    assert found(bank, "quok ") == found(bank, "uok") == []


@pytest.mark.parametrize("words", ["item i-", "i-", "item n"])
def test_a_word_may_begin_like_any_number_of_others(bank: Connection, words: str) -> None:
    texts = [f"item i-{n} n{n}" for n in range(300)]
    retain(bank, texts)

    assert found(bank, words, top_k=1000) == texts[::-1]


def test_words_are_joined_with_conditions(bank: Connection) -> None:
    assert found(bank, "deplo", filter="entity = 'annie'") == ["Ana leads the deployment of Atlas"]
    assert found(bank, "deplo", fact_types=["preference"]) == ["Bo deploys on Fridays"]
    assert found(bank, "", during="[2026-03-01, 2026-03-10)") == ["Ana moved to Porto"]


def test_a_page_begins_behind_the_one_before(bank: Connection) -> None:
    first = call(bank, "find_memories", bank="b", words="deplo", top_k=1)

    rest = found(bank, "deplo", before_id=first[0].memory_id)

    assert [*[row.text for row in first], *rest] == found(bank, "deplo")


def test_what_has_ended_is_found_only_where_it_is_asked_for(bank: Connection) -> None:
    bank.execute(
        "select pgrecall.supersede('b', memory_id) from pgrecall.memory where text like 'Bo %'"
    )

    assert "Bo deploys on Fridays" not in found(bank, "deplo")
    assert "Bo deploys on Fridays" in found(bank, "deplo", as_of=None)


def test_memories_are_counted_by_time_and_type(bank: Connection) -> None:
    counted = call(bank, "memory_counts", bank="b", unit="month", basis="occurred")
    stored = call(bank, "memory_counts", bank="b", unit="year", filter="confidence < 0.9")

    assert [(f"{c.starts_at:%Y-%m}", c.fact_type, c.memories) for c in counted] == [
        ("2026-03", "event", 1),
        ("2026-03", "world", 1),
    ]
    assert [(c.fact_type, c.memories, c.current_memories) for c in stored] == [("preference", 1, 1)]


def test_memories_that_have_ended_are_counted_apart(bank: Connection) -> None:
    bank.execute(
        "select pgrecall.supersede('b', memory_id) from pgrecall.memory where text like 'Bo %'"
    )

    counted = call(bank, "memory_counts", bank="b", filter="fact_type = 'preference'")

    assert [(c.memories, c.current_memories) for c in counted] == [(1, 0)]


def test_entities_are_listed_by_how_many_memories_mention_them(bank: Connection) -> None:
    listed = call(bank, "list_entities", bank="b")
    page = call(bank, "list_entities", bank="b", before_id=listed[1].entity_id)

    assert (listed[0].name, listed[0].mention_count, listed[0].aliases) == (
        "Ana", 2, ["ana", "annie"])  # fmt: skip
    assert [e.name for e in page] == [e.name for e in listed[2:]]
    assert [e.name for e in call(bank, "list_entities", bank="b", name="ANNI")] == ["Ana"]
    assert call(bank, "list_entities", bank="b", kind="planet") == []


def test_all_that_hangs_on_a_memory_is_in_one_row(bank: Connection) -> None:
    memory = value(bank, "select memory_id from pgrecall.memory where text like '%%Porto'")

    [details] = call(bank, "memory_details", bank="b", memory_id=memory)

    assert [m["name"] for m in details.mentions] == ["Ana", "Porto"]
    assert [(r["from"], r["kind"], r["to"]) for r in details.relations] == [
        ("Ana", "lives_in", "Porto")
    ]
    assert (details.embeddings, details.corrections) == ([], [])
    bank.execute("select pgrecall.supersede('b', %s)", [memory])
    [details] = call(bank, "memory_details", bank="b", memory_id=memory)
    assert [c["kind"] for c in details.corrections] == ["supersede"]


@kept_fixture
def large(connection: Connection) -> None:
    """A bank of 5,000 facts more: half have "even", one in a thousand "rare"."""
    fill(connection)
    connection.execute("""
        with made as (
          insert into pgrecall.memory (bank_id, memory_id, fact_type, text, content_hash, is_linked,
                                       mentioned_at, valid_from, lexical_length, lexical_weights)
          select 'b', nextval('pgrecall.id_seq'), 'world', t.text,
                 sha256(convert_to(n::text, 'UTF8')), true, t.at, t.at, w.length, w.weights
          from   generate_series(1, 5000) as n
          cross  join lateral (
            select format('fact %s %s %s', n, case when n % 2 = 0 then 'even' else 'odd' end,
                          case when n % 1000 = 0 then 'rare' end),
                   timestamptz '2020-01-01' + n * interval '1 hour') as t(text, at)
          cross  join lateral pgrecall_internal._document_weights(
                   pgrecall_internal._bank('b'), t.text, null, null, 4) as w
          returning memory_id, fact_type, text
        )
        insert into pgrecall.mention (bank_id, entity_id, fact_type, memory_id)
        select 'b', e.entity_id, fact_type, memory_id
        from   made, pgrecall.entity e
        where  e.bank_id = 'b' and e.name = 'Bo' and split_part(text, ' ', 2)::integer % 50 = 0
    """)
    connection.execute("select pgrecall.refresh_statistics('b', true)")
    connection.execute("analyze pgrecall.memory, pgrecall.mention")


WINDOW = "[2020-03-01, 2020-03-02)"


@pytest.mark.parametrize(
    ("function", "arguments", "index"),
    [
        ("list_memories", {}, "memory_pkey"),
        ("list_memories", {"before_id": "middle"}, "memory_pkey"),
        ("list_memories", {"entity": "Bo"}, "mention_pkey"),
        ("list_memories", {"during": WINDOW}, "memory_bank_id_fact_type_mentioned_at_idx"),
        ("find_memories", {"words": "rare "}, "memory_lexical_keys_idx"),
        ("find_memories", {"words": "rar"}, "memory_lexical_keys_idx"),
        ("find_memories", {"words": "rare ", "entity": "Bo"}, "memory_lexical_keys_idx"),
        ("find_memories", {"words": "even "}, "memory_pkey"),
        ("find_memories", {"words": "eve", "before_id": "middle"}, "memory_pkey"),
        ("find_memories", {"words": "even ", "entity": "Bo"}, "mention_pkey"),
        ("find_memories", {"words": "eve", "during": WINDOW},
         "memory_bank_id_fact_type_mentioned_at_idx"),
    ],
)  # fmt: skip
def test_a_page_of_a_large_bank_is_found_by_index(
    large: Connection, function: str, arguments: dict[str, Any], index: str
) -> None:
    middle = value(large, "select percentile_disc(0.5) within group (order by memory_id)"
                          " from pgrecall.memory where bank_id = 'b'")  # fmt: skip
    arguments = {name: middle if at == "middle" else at for name, at in arguments.items()}

    with counted_scans(large) as scans:
        page = call(large, function, bank="b", top_k=5, **arguments)

    assert len(page) > 0
    assert scans[index] > 0
    assert scans["memory"] == scans["mention"] == 0
    assert (scans["memory_lexical_keys_idx"] > 0) == (index == "memory_lexical_keys_idx")


def test_a_page_of_common_words_reads_few_memories(large: Connection) -> None:
    fetched = "select pg_stat_get_xact_tuples_fetched('pgrecall.memory'::regclass)"
    before = value(large, fetched)

    call(large, "find_memories", bank="b", words="even ", top_k=20)

    assert value(large, fetched) - before < 300


def test_words_and_an_entity_are_met_together(large: Connection) -> None:
    both = call(large, "find_memories", bank="b", words="even", entity="bo", top_k=1000)
    among = call(large, "find_memories", bank="b", words="even", filter="entity = 'bo'", top_k=1000)

    assert [row.memory_id for row in both] == [row.memory_id for row in among]
    assert len(both) == 100
