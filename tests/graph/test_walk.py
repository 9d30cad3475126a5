"""What a question means by words that no lexicon has: kinds of relations near its embedding."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from pgrecall import Recall
from pgrecall.embedders import FunctionEmbedder
from servers import kept_fixture
from sqlcalls import Connection, call, counted_scans, create, retain, value
from toys import toy_embed

# Meanings of kinds, and of nothing.
SIGNS, KEEPS, OTHER = [1.0, 0, 0, 0], [0, 1.0, 0, 0], [0, 0, 1.0, 0]
NOTHING = [0, 0, 0, 1.0]


def stating(text: str, start: str, kind: str, end: str) -> dict[str, Any]:
    relation = {"from": start, "kind": kind, "to": end}
    return {"text": text, "relations": [relation], "embedding": NOTHING}


def embed_words(connection: Connection, vector_of: Callable[[str], list[float]]) -> int:
    """Store the embeddings of the words of relations that are pending; return how many."""
    given = [
        {**row._asdict(), "embedding": vector_of(row.text)}
        for row in call(connection, "relations_pending", bank="b")
    ]
    stored: int = value(
        connection, "select pgrecall.embed_store('b', %s, 'made')", json.dumps(given)
    )
    return stored


@kept_fixture
def keepers(connection: Connection) -> None:
    """Bo signs off for Ana and keeps a heron; others keep and sign off, and Ana does more."""
    create(connection)
    facts = [
        stating("Leave is a matter of Bo.", "Ana", "signs_off_by", "Bo"),
        stating("The heron is with Bo.", "Bo", "keeps", "the heron"),
        stating("Noon belongs to Cy.", "Ana", "lunches_with", "Cy"),
        stating("The crane is with Cy.", "Cy", "keeps", "the crane"),
        stating("A tandem is shared with Di.", "Ana", "cycles_with", "Di"),
        stating("Di dines at Ed's.", "Di", "lunches_with", "Ed"),
    ]
    retain(connection, facts, model="made")
    words = {"signs off by": SIGNS, "keeps": KEEPS, "lunches with": OTHER, "cycles with": OTHER}
    assert embed_words(connection, words.__getitem__) == 4


@pytest.fixture
def recall(connection: Connection) -> Recall:
    return Recall(connection, embedder=toy_embed, model="toy", reranker=None)


def found(connection: Connection, query: str, embedding: list[float]) -> list[str]:
    rows = call(
        connection, "hybrid_recall", bank="b", query=query, embedding=embedding, model="made",
        options={"arms": ["graph"]},
    )  # fmt: skip
    return [row.text for row in rows]


HERON, CRANE, DINNER = "The heron is with Bo.", "The crane is with Cy.", "Di dines at Ed's."


@pytest.mark.parametrize(
    ("meaning", "wanted", "others"),
    [
        ([1, 1, 0, 0], HERON, {CRANE, DINNER}),
        ([0, 1, 1, 0], CRANE, {HERON, DINNER}),
        ([0, 0, 1, 0], DINNER, {HERON, CRANE}),
    ],
)
def test_a_question_leads_along_what_it_means_whatever_its_words(
    keepers: Connection, meaning: list[float], wanted: str, others: set[str]
) -> None:
    texts = found(keepers, "zug zwang of Ana", meaning)

    assert next(text for text in texts if text in {wanted, *others}) == wanted


def test_without_what_kinds_mean_a_chain_is_not_told_from_others(keepers: Connection) -> None:
    keepers.execute("delete from pgrecall.embedding where fact_type = ''")

    orders = {
        tuple(
            text for text in found(keepers, "zug zwang of Ana", meaning) if text in {HERON, CRANE}
        )
        for meaning in ([1.0, 1, 0, 0], [0.0, 1, 1, 0])
    }
    assert len(orders) == 1


def test_a_walk_is_planned_only_where_a_bank_has_a_relation(database: str) -> None:
    plans = (
        "select count(*) from pg_backend_memory_contexts"
        " where name = 'CachedPlan' and ident like 'with recursive start%'"
    )
    with psycopg.connect(database) as connection:
        create(connection)
        retain(connection, [{"text": f"boat {n}", "entities": ["Ana"]} for n in range(3)])
        call(connection, "hybrid_recall", bank="b", query="the boat of Ana")

        before = value(connection, plans)

        retain(connection, [stating("Ana has a boat.", "Ana", "owns", "a boat")], model="made")
        call(connection, "hybrid_recall", bank="b", query="the boat of Ana")
        assert (before, value(connection, plans)) == (0, 1)


def test_what_kinds_mean_is_read_without_the_embeddings_of_facts(connection: Connection) -> None:
    long = [1.0, *[0.0] * 767]
    create(connection)
    facts = [
        {**stating(f"note {n}", "Ana", f"kind {n % 300}", f"name {n}"), "embedding": long}
        for n in range(600)
    ]
    retain(connection, facts, model="made", link="deferred")
    embed_words(connection, lambda words: long)
    connection.execute("analyze pgrecall.embedding")

    with counted_scans(connection) as scans:
        found(connection, "zug zwang of Ana", long)

    # The primary key leads through the embeddings of all facts.
    assert not [name for name in scans if re.fullmatch(r"embedding_\d+_pkey", name) and scans[name]]


def test_no_arm_finds_a_fact_by_the_words_of_its_relation(keepers: Connection) -> None:
    for given in (None, "confidence > 0"):
        rows = call(keepers, "semantic_arm", bank="b", embedding=KEEPS, model="made", filter=given)
        assert {round(row.score, 3) for row in rows} <= {0.0}


def test_retain_embeds_the_words_of_new_relations(connection: Connection, recall: Recall) -> None:
    create(connection)
    relation = {"from": "Ana", "kind": "reports_to", "to": "Bo"}

    recall.retain("b", [{"text": "Bo leads Ana.", "relations": [relation]}, "Cy is here."])

    count = "select count(*) from pgrecall.embedding where kind = %s and text = 'reports to'"
    assert value(connection, count, "relation") == 1
    assert value(connection, count, "usage") == 1
    assert recall.embed_pending("b") == 0


def test_relations_retained_in_sql_are_embedded_with_their_facts(
    connection: Connection, recall: Recall
) -> None:
    create(connection)
    relation = {"from": "Ana", "kind": "reports_to", "to": "Bo"}
    retain(connection, [{"text": "Bo leads Ana.", "relations": [relation]}])

    assert recall.embed_pending("b") == 2
    assert recall.embed_pending("b") == 0


def test_a_re_embedding_makes_what_relations_mean_anew(
    connection: Connection, recall: Recall
) -> None:
    create(connection)
    relation = {"from": "Ana", "kind": "reports_to", "to": "Bo"}
    recall.retain("b", [{"text": "Bo leads Ana.", "relations": [relation]}])

    back = FunctionEmbedder(lambda texts: [v[::-1] for v in toy_embed(texts)], "back")

    recall.reembed_fill("b", back)
    recall.reembed_finish("b")

    held = "select distinct kind from pgrecall.embedding where model = 'back' order by 1"
    assert [kind for (kind,) in connection.execute(held)] == ["relation", "text", "usage"]


def test_time_decides_among_facts_that_state_the_same_relation(connection: Connection) -> None:
    create(connection)
    facts = [
        {
            "text": text,
            "relations": [{"from": "Ana Silva", "kind": "lives_in", "to": place}],
            "mentioned_at": at,
        }
        for text, place, at in (
            ("Ana Silva got the keys to a house in Porto, home now.", "Porto", "2026-01-01"),
            ("Ana relocated to Faro.", "Faro", "2026-03-01"),
        )
    ]
    facts[1]["entities"] = [{"name": "Ana Silva", "aliases": ["Ana"]}]
    retain(connection, facts)

    for prefer, first in (("relevant", "Porto"), ("latest", "Faro")):
        rows = call(
            connection, "hybrid_recall", bank="b", query="Where is Ana Silva's home now?",
            options={"prefer": prefer},
        )  # fmt: skip
        assert first in rows[0].text


def test_a_walk_reads_the_meanings_of_the_kinds_that_it_meets(connection: Connection) -> None:
    create(connection)
    facts = [stating(f"note {n}", f"Bo {n}", f"kind {n}", f"name {n}") for n in range(300)]
    retain(connection, [*facts, stating("Ana is here.", "Ana", "keeps", "a heron")], model="made")
    embed_words(connection, lambda words: KEEPS if words == "keeps" else OTHER)

    with counted_scans(connection) as scans:
        assert found(connection, "zug zwang of Ana", KEEPS) == ["Ana is here."]

    index = re.compile(r"embedding_\d+_bank_id_text_idx")
    assert 1 <= sum(count for name, count in scans.items() if index.fullmatch(name)) <= 4


def test_only_kinds_new_to_a_bank_are_listed_after_a_retain(connection: Connection) -> None:
    create(connection)
    [first, second] = retain(
        connection,
        [stating("Ana keeps a heron.", "Ana", "keeps", "a heron"),
         stating("Bo keeps a crane.", "Bo", "Keeps", "a crane")],
        model="made",
    )  # fmt: skip
    embed_words(connection, lambda words: KEEPS)
    retain(connection, [stating("Ana has a boat.", "Ana", "owns", "a boat")], model="made")

    def listed(*memory_ids: int) -> list[str]:
        pending = call(connection, "relations_pending", bank="b", memory_ids=list(memory_ids))
        return [row.text for row in pending]

    [third] = retain(connection, [stating("Cy has a car.", "Cy", "owns", "a car")], model="made")
    assert listed(first, second) == []
    assert listed(second, third) == ["owns"]


def test_what_a_kind_means_is_computed_for_new_words_alone(keepers: Connection) -> None:
    computed = "select xmin::text || ctid::text from pgrecall.embedding where kind = 'usage'"
    before = {row for (row,) in keepers.execute(computed)}
    memory_id = value(keepers, "select min(memory_id) from pgrecall.memory")
    new = {"memory_id": memory_id, "kind": "relation", "text": "owns", "embedding": OTHER}

    keepers.execute("select pgrecall.embed_store('b', %s, 'made')", [json.dumps([new])])

    after = {row for (row,) in keepers.execute(computed)}
    assert before < after
    assert len(after) == len(before) + 1 == 5


def test_a_kind_that_is_no_longer_stated_keeps_its_meaning(connection: Connection) -> None:
    create(connection)
    fact = stating("Ana keeps a heron.", "Ana", "keeps", "a heron")
    retain(connection, [{**fact, "embedding": OTHER}], model="made")
    embed_words(connection, lambda words: KEEPS)
    meaning = "select embedding::text from pgrecall.embedding where kind = 'usage'"
    before = value(connection, meaning)

    connection.execute("delete from pgrecall.relation")
    connection.execute("select pgrecall_internal._refresh_usage(b, 'made') from pgrecall.bank b")

    assert value(connection, meaning) == before


@pytest.mark.parametrize(
    ("query", "is_near", "is_followed"),
    [
        ("zug zwang of Ana", True, True),
        ("zug zwang of Ana", False, False),
        ("the home of the mentor of the boss of Ana", False, True),
    ],
)
def test_a_path_that_is_hardly_near_is_followed_only_where_words_ask_for_it(
    connection: Connection, query: str, is_near: bool, is_followed: bool
) -> None:
    create(connection)
    facts = [
        {**stating(f"note {n}", start, kind, end), "embedding": OTHER}
        for n, (start, kind, end) in enumerate([
            ("Ana", "reports_to", "Bo"), ("Bo", "mentored_by", "Cy"), ("Cy", "lives_in", "Porto"),
        ])
    ]  # fmt: skip
    home = retain(connection, facts, model="made")[-1]
    embed_words(connection, lambda words: OTHER)

    rows = call(
        connection, "arm_hits", bank="b", query=query, model="made",
        embedding=OTHER if is_near else [0, 0, 0.1, 1], options={"arms": ["graph"]},
    )  # fmt: skip

    # Three relations are further than activation spreads.
    path = str([row.via for row in rows if row.memory_id == home])
    assert all(kind in path for kind in ("reports_to", "mentored_by", "lives_in")) == is_followed


@pytest.mark.parametrize(
    ("kind", "along", "against"),
    [
        ("inhabitant_of", {"lives_in>"}, {"lives_in<"}),
        ("has gaffer", {"reports_to>", "led_by>"}, {"reports_to<", "led_by<"}),
        ("is_underling_of", {"reports_to>"}, {"reports_to<"}),
        ("gaffer_of", {"reports_to<", "led_by<"}, {"reports_to>", "led_by>"}),
        ("has underling", {"reports_to<"}, {"reports_to>"}),
        ("takes_orders_from", {"reports_to>"}, {"reports_to<"}),
        ("at_the_helm_of", {"led_by<"}, {"led_by>"}),
        ("keeps", set(), set()),
        ("gaffer", set(), set()),
        ("", set(), set()),
    ],
)
def test_a_kind_in_words_of_the_lexicon_is_as_good_as_its_relation(
    connection: Connection, kind: str, along: set[str], against: set[str]
) -> None:
    alike = (
        "select split_part(r.forth, ' ', 1) || right(key, 1)"
        " from pgrecall_internal._alike_keys(%s, %s) as key"
        " join pgrecall_internal._relation_rows() with ordinality as r(forth, b, c, d, e, f, row)"
        " on key like '#' || row || '_'"
    )

    assert {key for (key,) in connection.execute(alike, [kind, ">"])} == along
    assert {key for (key,) in connection.execute(alike, [kind, "<"])} == against


def test_a_walk_follows_kinds_in_words_of_the_lexicon(connection: Connection) -> None:
    create(connection)
    retain(connection, [
        {"text": f"note {n}", "relations": [{"from": start, "kind": kind, "to": end}]}
        for n, (start, kind, end) in enumerate([
            ("Ana", "has_gaffer", "Bo"), ("Cy", "role_model_of", "Bo"),
            ("Cy", "inhabitant_of", "Porto"), ("Ana", "beside", "Di"),
        ])
    ])  # fmt: skip

    rows = call(
        connection, "hybrid_recall", bank="b", query="the home of the mentor of the boss of Ana",
        options={"arms": ["graph"]},
    )  # fmt: skip

    # Three relations are further than activation spreads.
    assert "note 2" in {row.text for row in rows}


def test_kinds_that_are_much_alike_share_what_they_mean(connection: Connection) -> None:
    create(connection)
    kinds = {"keeps": [0, 1.0, 0, 0], "minds": [0, 0.98, 0.2, 0], "owns": [0, 0.2, 0, 0.98]}
    retain(
        connection,
        [{**stating(kind, "Ana", kind, f"a {kind}"), "embedding": None} for kind in kinds],
        model="made",
    )
    embed_words(connection, kinds.__getitem__)

    def meant(kind: str) -> list[float]:
        rows = connection.execute(
            "select embedding::vector::text from pgrecall.embedding"
            " where kind = 'usage' and text = %s", [kind]).fetchall()  # fmt: skip
        return [round(number, 2) for number in json.loads(rows[0][0])]

    assert meant("owns") == [0, 0.2, 0, 0.98]
    # Two thirds its own.
    assert meant("keeps") == [0, 1, 0.07, 0]
    assert meant("minds") == [0, 0.99, 0.13, 0]
