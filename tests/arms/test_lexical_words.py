"""What the lexical arms take for words: fields, languages, phrases, exclusions, and their marks."""

from __future__ import annotations

import math
import re
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pgrecall import Recall
from pgrecall.doctor import checks as doctor
from sqlcalls import Connection, call, column, counted_scans, create, ids, refused, retain

PROPERTY = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
ANYTHING = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60)


def found(connection: Connection, query: str, **arguments: Any) -> list[int]:
    return ids(call(connection, "lexical_arm", bank="b", query=query, **arguments))


# Fields


@pytest.mark.parametrize(
    ("field", "setting"), [("context", "context_weight"), ("fact_key", "key_weight")]
)
def test_a_field_that_does_not_count_has_no_word_that_is_kept_out(
    connection: Connection, field: str, setting: str
) -> None:
    create(connection, settings={setting: 0})
    memory_ids = retain(connection, [{"text": "a boat", field: "blue"}])

    assert found(connection, "boat -blue") == memory_ids


def test_fields_are_weighted_as_in_bm25f(connection: Connection) -> None:
    create(connection, settings={"context_weight": 0.25, "key_weight": 2})
    facts = [
        {"text": "kraken sails", "context": "kraken kraken port", "fact_key": "kraken"},
        {"text": "port of lisbon", "context": "kraken"},
        {"text": "nothing at all"},
    ]
    first, second, _ = retain(connection, facts)
    call(connection, "refresh_statistics", bank="b", is_full=True)

    rows = call(connection, "lexical_arm", bank="b", query="kraken")

    lengths = [2 + 0.25 * 3 + 2 * 1, 2 + 0.25 * 1, 1]
    frequencies = [1 + 0.25 * 2 + 2 * 1, 0.25]
    average = sum(lengths) / 3
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    expected = [
        idf * tf / (tf + 1.2 * (1 - 0.75 + 0.75 * length / average))
        for tf, length in zip(frequencies, lengths, strict=False)
    ]
    assert ids(rows) == [first, second]
    assert [row.score for row in rows] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("field", ["context", "fact_key"])
def test_a_field_of_weight_zero_is_not_searched(connection: Connection, field: str) -> None:
    setting = {"context": "context_weight", "fact_key": "key_weight"}[field]
    create(connection, settings={setting: 0})
    retain(connection, [{"text": "plain", field: "kraken"}])

    assert found(connection, "kraken") == []
    assert found(connection, '"kraken" plain') == []


def test_a_full_refresh_takes_up_field_weights(connection: Connection) -> None:
    create(connection, settings={"context_weight": 0.5})
    retain(connection, [{"text": "plain", "context": "kraken sails"}])
    call(connection, "configure_bank", bank="b", settings={"context_weight": 2})
    lengths = "select lexical_length from pgrecall.memory"
    assert column(connection, lengths) == [2.0]

    call(connection, "refresh_statistics", bank="b", is_full=True)

    assert column(connection, lengths) == [5.0]


def test_weights_are_not_rounded_where_the_session_prints_fewer_digits(
    connection: Connection,
) -> None:
    found = []
    for digits in (0, -15):
        connection.execute(f"set local extra_float_digits = {digits}".encode())
        bank = f"b{digits}"
        create(connection, bank)
        retain(connection, ["kraken sails far", "plain"], bank=bank)
        scored = "select float8send(score) from pgrecall.lexical_arm(%s, 'kraken far')"
        scores = column(connection, scored, bank)
        connection.execute("set local extra_float_digits = 1")
        stored = "select lexical_weights from pgrecall.memory where bank_id = %s order by text"
        found.append((column(connection, stored, bank), scores))

    assert found[0] == found[1]


# Languages

EAST_ASIAN = {
    "東京タワーは1958年に完成した。": ["東京タワー", "東京", "完成", "1958", "1958年"],
    "我们在上海的办公室明年搬家": ["办公室", "上海办公室", "搬家"],
    "서울에서 회의를 했다": ["서울", "회의", "서울 회의"],
    "Ana fixed JIRA-9921の不具合 on Monday": ["JIRA-9921", "不具合", "JIRA-9921の不具合", "ana"],
    "猫 sleeps all day": ["猫", "猫 sleeps"],
    "iPhone用の充電器をMarkが買った": ["iphone", "充電器", "mark 充電器"],
    "カタカナだけ": ["カタカナ"],
}


@pytest.mark.parametrize("config", ["simple", "english", "german"])
@pytest.mark.parametrize(
    ("text", "query"), [(text, query) for text, queries in EAST_ASIAN.items() for query in queries]
)
def test_chinese_japanese_and_korean_are_found_also_amid_english(
    connection: Connection, config: str, text: str, query: str
) -> None:
    create(connection, text_search_config=config)
    memory_ids = retain(connection, [*EAST_ASIAN, "京都大阪", "海上", "Ben left"])

    assert found(connection, query)[0] == memory_ids[list(EAST_ASIAN).index(text)]


SOUTH_EAST_ASIAN = {
    "ร้านอาหารในเชียงใหม่ปิดวันจันทร์": ["เชียงใหม่", "อาหาร", "วันจันทร์ปิดไหม", '"ในเชียงใหม่"'],
    "ຂ້ອຍຢູ່ວຽງຈັນກັບແມ່": ["ວຽງຈັນ", "ແມ່"],
    "ရန်ကုန်မြို့တွင်နေသည်": ["ရန်ကုန်", "မြို့"],
    "ខ្ញុំរស់នៅភ្នំពេញជាមួយគ្រួសារ": ["ភ្នំពេញ", "គ្រួសារ"],
    "Ana fixed JIRA-9921ที่กรุงเทพ on Monday": ["JIRA-9921", "กรุงเทพ", "ana กรุงเทพ"],
}


@pytest.mark.parametrize("config", ["simple", "english"])
@pytest.mark.parametrize(
    ("text", "query"),
    [(text, query) for text, queries in SOUTH_EAST_ASIAN.items() for query in queries],
)
def test_words_of_scripts_without_spaces_are_found_inside_a_text(
    connection: Connection, config: str, text: str, query: str
) -> None:
    create(connection, text_search_config=config)
    memory_ids = retain(connection, [*SOUTH_EAST_ASIAN, "ของใหม่ที่ทำงาน", "Ben left"])

    assert found(connection, query)[0] == memory_ids[list(SOUTH_EAST_ASIAN).index(text)]


def test_a_word_of_a_script_without_spaces_is_marked_required_and_excluded(
    connection: Connection,
) -> None:
    create(connection)
    chiang_mai, bangkok = retain(connection, ["อาหารในเชียงใหม่ดี", "อาหารในกรุงเทพดี"])

    assert set(found(connection, "อาหาร")) == {chiang_mai, bangkok}
    assert found(connection, "อาหาร -เชียงใหม่") == [bangkok]
    assert found(connection, 'อาหาร "ในเชียงใหม่"') == [chiang_mai]
    assert found(connection, '"ดี"') == []
    ((text,),) = call(connection, "highlight", bank="b", memory_id=bangkok, query="กรุงเทพ มา")
    assert text == "อาหารใน<mark>กรุงเทพ</mark>ดี"


AMOUNTS = "Paid 1,299.00 for 512MB and 3,120 cans at 5pm in the 1990s."


@pytest.mark.parametrize(
    ("query", "marked"),
    [
        ("1299", ["1,299"]),
        ("512 mb", ["512MB"]),
        ("512MB", ["512MB"]),
        ("3120", ["3,120"]),
        ("3,120", ["3,120"]),
        ("5 pm", ["5pm"]),
        ("1990", ["1990s"]),
        ("12", []),
        ("20", []),
        ("51 MBA", []),
    ],
)
def test_an_amount_is_found_however_it_is_written(
    connection: Connection, query: str, marked: list[str]
) -> None:
    create(connection)
    (memory,) = retain(connection, [AMOUNTS])

    ((text,),) = call(connection, "highlight", bank="b", memory_id=memory, query=query)

    assert found(connection, query) == [memory] * bool(marked)
    assert re.findall("<mark>(.*?)</mark>", text) == marked


@pytest.mark.parametrize(
    ("stored", "query"), [("512 MB", "512MB"), ("1299 EUR", "1,299.00"), ("1299", "1’299")]
)
def test_an_amount_written_apart_is_found_by_one_written_together(
    connection: Connection, stored: str, query: str
) -> None:
    create(connection)
    (memory,) = retain(connection, [stored])

    assert found(connection, query) == [memory]


@pytest.mark.parametrize(
    ("stored", "query", "is_found"),
    [
        ("66a36e77fd", "66a36e7", True),
        ("66A36E77FD", "66a36e77", True),
        ("66a36e7", "66a36e77fd9c0e1d2b3a495867768594a3b2c1d0", True),
        ("sha256:9f86d081884c7d659a2feaa0c55ad015", "9f86d081884c", True),
        ("66a36e77fd", "66a36f77fd", False),
        ("66a36e77fd", "66a36e", False),
        ("1234567890", "1234567", False),
        ("deadbeef", "deadbee", False),
        ("66a36e77fdx", "66a36e7", False),
    ],
)
def test_a_hash_is_found_however_it_is_abbreviated(
    connection: Connection, stored: str, query: str, is_found: bool
) -> None:
    create(connection)
    (memory,) = retain(connection, [f"Commit {stored}, reverted."])

    ((text,),) = call(connection, "highlight", bank="b", memory_id=memory, query=query)

    assert found(connection, query) == [memory] * is_found
    assert ("<mark>" in text) is is_found


def test_letters_that_never_stand_together_are_not_found_together(connection: Connection) -> None:
    create(connection)
    retain(connection, ["海上", "京東"])

    assert found(connection, "上海東京") == []


def test_a_script_without_spaces_is_counted_by_pairs_of_letters(connection: Connection) -> None:
    counted = connection.execute("select * from pgrecall.lexemes('simple', '日本日本 go 語')")

    assert dict(counted.fetchall()) == {"日本": 2, "本日": 1, "go": 1, "語": 1}


def test_thai_is_counted_by_three_letters(connection: Connection) -> None:
    counted = connection.execute("select * from pgrecall.lexemes('simple', 'กรุงเทพ go มา日本')")

    assert dict(counted.fetchall()) == {
        "กรุ": 1, "รุง": 1, "ุงเ": 1, "งเท": 1, "เทพ": 1, "go": 1, "มา": 1, "日本": 1
    }  # fmt: skip


def test_a_long_text_without_spaces_is_read_in_linear_time(connection: Connection) -> None:
    connection.execute("set statement_timeout = '5s'")

    counted = connection.execute(
        "select count(*) from pgrecall.lexemes('simple', repeat('日本語', 33333))"
    ).fetchone()
    in_thai = connection.execute(
        "select count(*) from pgrecall.lexemes('simple', repeat('กรุง', 25000))"
    ).fetchone()

    assert counted == (3,)
    assert in_thai == (4,)


STEMMED = {
    "english": ("She deployed the café tables", ["deploying", "CAFÉ", "table"]),
    "german": ("Die Häuser wurden über Nacht geräumt", ["Häusern", "ÜBER NACHT", "geräumt"]),
    "simple": ("São Tomé, naïve Ørsted", ["são", "TOMÉ", "naïve", "ørsted"]),
}


@pytest.mark.parametrize("config", STEMMED)
def test_a_configuration_stems_and_keeps_accents(connection: Connection, config: str) -> None:
    text, queries = STEMMED[config]
    create(connection, text_search_config=config)
    memory, _ = retain(connection, [text, "nichts nothing nada"])

    assert {query: found(connection, query) for query in queries} == {q: [memory] for q in queries}


# Query syntax

LIBRARY = {
    "swapped": "The release was deployed by Ana",
    "deploys": "Ana deploys the release at night",
    "hamlet": "To be or not to be, she said of the release",
    "jira": "Closed JIRA-9921 with Ben",
    "other": "Closed JIRA 9921-b with Ana",
    "tower": "東京タワーへ行く",
    "rower": "タワー、東京",
    "cold": "It was -5 degrees in Oslo",
    "sharp": "Ben writes C#",
    "plus": "Ben writes C++ and C",
}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('"ana deployed the release"', {"deploys"}),
        ('"release was deployed"', {"swapped"}),
        ('"deployed release" ana', set()),
        ("“deploys the release”", {"deploys"}),
        ('release "to be or not to be"', {"hamlet"}),
        ('"JIRA-9921"', {"jira"}),
        ('"closed jira-9921 with"', {"jira"}),
        ('"東京タワー"', {"tower"}),
        ('"タワー" "東京"', {"tower", "rower"}),
        ("release -ana", {"hamlet"}),
        ("release -deployed", {"hamlet"}),
        ('release -"to be"', {"swapped", "deploys"}),
        ("closed -JIRA-9921", {"other"}),
        ("タワー -東京タワー", {"rower"}),
        ("closed JIRA-9921", {"jira", "other"}),
        ("was it -5 in oslo?", {"cold"}),
        ("closed - ana", {"jira", "other", "swapped", "deploys"}),
        ("-ana", set()),
        ('"release', {"swapped", "deploys", "hamlet"}),
        ('"" "?" oslo', {"cold"}),
        ('"C#"', {"sharp"}),
        ('"writes c++ and"', {"plus"}),
        ("writes -C++", {"sharp"}),
        # What stands between quotes is text.
        ("`closed -ana`", {"jira", "other", "swapped", "deploys"}),
        ("'closed -ana'", {"jira", "other", "swapped", "deploys"}),
        ("‘closed -ana’", {"jira", "other", "swapped", "deploys"}),
        ("closed ('at night' -ana)", {"jira"}),
        ('"ben writes" -C++', {"sharp"}),
        ('"deployed by -ana"', {"swapped"}),
        ('release ("to be or")', {"hamlet"}),
        # So do those of code, and what is pasted.
        ('raise Late("deployed release")', {"swapped", "deploys", "hamlet"}),
        ('{"release": "to be or"}', {"hamlet"}),
        ('{"by":"Ana at night"}', {"swapped", "deploys", "other"}),
        ('x["closed degrees"] -ana', {"jira", "cold"}),
        ('closed\n"with Ana" -Ben', {"jira", "swapped", "deploys", "other", "sharp", "plus"}),
        ('\n"deployed by Ana"\n', {"swapped"}),
        ("""'closed "of Oslo" -ana'""", {"jira", "other", "swapped", "deploys", "cold"}),
        ("closed the ships' -ana 'nights'", {"jira"}),
        ("ana's release -ana and ben's", {"hamlet", "jira", "sharp", "plus"}),
        ("`release -ana", {"hamlet"}),
    ],
)
def test_quotes_require_and_minus_excludes(
    connection: Connection, query: str, expected: set[str]
) -> None:
    create(connection)
    names = dict(zip(retain(connection, LIBRARY.values()), LIBRARY, strict=True))
    messages = [{"text": text, "role": "user"} for text in LIBRARY.values()]
    rows = call(connection, "retain_messages", bank="b", messages=messages)
    names |= dict(zip([row.message_id for row in rows], LIBRARY, strict=True))

    assert {names[memory] for memory in found(connection, query)} == expected
    heard = call(connection, "message_arm", bank="b", query=query)
    assert {names[message] for message in ids(heard)} == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("may we terraform apply -target?", {0}),
        ("psql -v ON_ERROR_STOP=1", {1}),
        ("what does -v do?", {1}),
        ("terraform -Target -v", {0}),
        ("the target -of", {0}),
        ("grep -rn src", {3}),
        ("terraform -apply", {2}),
        ("what about -hit?", set()),
    ],
)
def test_what_writes_the_minus_as_well_is_not_excluded(
    connection: Connection, query: str, expected: set[int]
) -> None:
    create(connection)
    memory_ids = retain(
        connection,
        [
            "`terraform apply -target` was banned.",
            "Migrations run by psql -v ON_ERROR_STOP=1.",
            "Terraform hit the target of the re-target, v 2.",
            "Use (grep -rn TODO src) for it.",
        ],
    )

    assert {memory_ids.index(memory) for memory in found(connection, query)} == expected


def test_a_phrase_does_not_reach_from_one_field_into_another(connection: Connection) -> None:
    create(connection)
    _, memory = retain(
        connection,
        [
            {"text": "sails for red", "context": "harbour nights"},
            {"text": "sails at dawn", "context": "from the red harbour"},
        ],
    )

    assert found(connection, '"red harbour"') == [memory]


def test_a_phrase_of_common_words_is_found_however_many_facts_share_them(
    connection: Connection,
) -> None:
    create(connection, settings={"candidate_limit": 100})
    facts = [f"red {n} blue" for n in range(400)]
    *_, memory = retain(connection, [*facts, "red blue 1"])

    assert found(connection, '"red blue"') == [memory]


def test_a_depth_is_filled_past_what_is_excluded(connection: Connection) -> None:
    create(connection)
    retain(connection, [f"red red bad {n}" for n in range(50)])
    kept = retain(connection, [f"red and a good deal more of it {n}" for n in range(5)])

    assert set(found(connection, "red -bad", depth=5)) == set(kept)


def test_syntax_is_for_short_queries(connection: Connection) -> None:
    create(connection)
    (memory,) = retain(connection, ["ana sails"])

    assert found(connection, 'ana "never said" -sails') == []
    assert found(connection, 'ana "never said" -sails' + " x" * 500) == [memory]


@pytest.mark.slow
def test_a_phrase_is_looked_up_in_the_index(connection: Connection) -> None:
    create(connection)
    memory_ids = retain(connection, [f"fact number {n}" for n in range(3000)])

    with counted_scans(connection) as scans:
        rows = found(connection, '"number 77"', fact_types=["world"])

    assert rows == [memory_ids[77]]
    assert scans["memory_lexical_keys_idx"] == 1
    assert scans["memory_bank_id_fact_type_occurred_idx"] == 0


SYNTAX = st.lists(
    st.sampled_from([*"\"-\\'`.(*+é“", " ", "ana", "日本", "a-b"]) | ANYTHING,
    max_size=12,
).map("".join)


@pytest.mark.slow
@settings(PROPERTY, max_examples=200)
@given(query=SYNTAX, text=SYNTAX)
def test_nothing_that_is_typed_raises(connection: Connection, query: str, text: str) -> None:
    with connection.transaction(force_rollback=True):
        create(connection)
        retain(connection, ["ana " + text, "日本 a-b"])

        for typed in (query, f'"{query}"', f'ana -"{query}"', f"-{query}"):
            found(connection, typed)
            call(connection, "message_arm", bank="b", query=typed)


def test_a_phrase_may_end_in_the_first_letter_of_a_word_without_spaces(
    connection: Connection,
) -> None:
    create(connection)
    memory_ids = retain(connection, ["red 猫座", "red 座猫"])

    assert found(connection, '"red 猫"') == memory_ids[:1]


# Collisions


def colliding(connection: Connection) -> tuple[str, str]:
    """Return two words that share a dimension."""
    row = connection.execute(
        "select min(w), max(w) from generate_series(1, 300000) as n, concat('w', n) as w"
        " group by pgrecall_internal._dimension(w) having count(*) > 1 order by 1 limit 1"
    ).fetchone()
    assert row is not None
    return row[0], row[1]


@pytest.mark.parametrize("is_counted", [True, False])
def test_a_fact_with_none_of_the_words_is_not_found_by_a_collision(
    connection: Connection, is_counted: bool
) -> None:
    one, other = colliding(connection)
    create(connection)
    retain(connection, [f"filler {n}" for n in range(40)])
    retain(connection, [f"it holds {one}"])
    call(connection, "retain_messages", bank="b", messages=[{"text": f"it holds {one}"}])
    if is_counted:
        call(connection, "refresh_statistics", bank="b")

    assert found(connection, other) == []
    assert len(found(connection, one)) == 1
    fillers = call(connection, "lexical_arm", bank="b", query=f"{other} filler")
    assert [row.rank for row in fillers] == [1] * 40
    assert call(connection, "message_arm", bank="b", query=other) == []


# Highlights


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("Ana deployed it.", "who deploys?", "Ana [deployed] it."),
        ("Raise max_client_conn now", "max_client_conn", "Raise [max_client_conn] now"),
        ("Raise max_client_conn now", "client", "Raise max_[client]_conn now"),
        ("See JIRA-9921, HTTP 502", "jira-9921 http 502", "See [JIRA-9921], [HTTP] [502]"),
        ("a.b@c.org wrote", "a.b@c.org", "[a.b@c.org] wrote"),
        ("(C++, a+b)", "c++", "([C++], a+b)"),
        ("1.2.3 has 123 users", "123", "1.2.3 has [123] users"),
        ("昨日東京タワーへ行く", "東京タワー", "昨日[東京タワー]へ行く"),
        ("iPhone用の充電器", "充電器 iphone", "[iPhone]用の[充電器]"),
        ("猫 and 犬", "猫", "[猫] and 犬"),
        ("Café, NAÏVE", "café naïve", "[Café], [NAÏVE]"),
        ("red blue", '"red" -blue', "[red] blue"),
        ("red <b>blue</b>", "green the", "red <b>blue</b>"),
        ("  red\n\tblue ", "blue", "  red\n\t[blue] "),
    ],
)
def test_what_matches_is_marked_and_nothing_else_changes(
    connection: Connection, text: str, query: str, expected: str
) -> None:
    create(connection)
    (memory,) = retain(connection, [text])

    ((marked,),) = call(connection, "highlight", bank="b", memory_id=memory, query=query,
                        start_mark="[", end_mark="]")  # fmt: skip

    assert marked == expected


def test_marks_are_those_of_html_unless_told(connection: Connection) -> None:
    create(connection)
    (memory,) = retain(connection, ["ana sails"])

    ((marked,),) = call(connection, "highlight", bank="b", memory_id=memory, query="sail")

    assert marked == "ana <mark>sails</mark>"


@PROPERTY
@given(text=SYNTAX.filter(lambda text: text.strip()), query=SYNTAX)
def test_without_the_marks_it_is_the_text(connection: Connection, text: str, query: str) -> None:
    with connection.transaction(force_rollback=True):
        create(connection)
        (memory,) = retain(connection, [text])

        ((marked,),) = call(connection, "highlight", bank="b", memory_id=memory, query=query,
                            start_mark="", end_mark="")  # fmt: skip

        assert marked == text


def test_a_memory_that_is_not_there_cannot_be_marked(connection: Connection) -> None:
    create(connection)

    with refused(connection, "RC010", 'bank "b" has no memory 7', "Pass ids"):
        call(connection, "highlight", bank="b", memory_id=7, query="ana")


# Vocabulary


def drift(connection: Connection) -> float | None:
    ((value,),) = call(connection, "vocabulary_drift", bank="b")
    assert value is None or isinstance(value, float)
    return value


def test_vocabulary_that_stays_has_a_similarity_of_one(connection: Connection) -> None:
    create(connection)
    assert drift(connection) is None

    retain(connection, ["ana sails", "ben rows"])

    assert drift(connection) == 1


def test_drift_is_measured_from_the_snapshot_on(connection: Connection) -> None:
    create(connection)
    retain(connection, ["red green blue"])
    call(connection, "snapshot_vocabulary", bank="b")
    old = [row[0] for row in connection.execute("select memory_id from pgrecall.memory")]
    retain(connection, ["blue black", "black white"])
    call(connection, "forget", bank="b", memory_ids=old)
    call(connection, "refresh_statistics", bank="b", is_full=True)

    # blue stays, red and green are gone, black and white are new.
    assert drift(connection) == pytest.approx(1 / 5)

    call(connection, "snapshot_vocabulary", bank="b")
    assert drift(connection) == 1


def test_a_bank_that_is_still_small_takes_its_snapshot_anew(connection: Connection) -> None:
    create(connection)
    for text in ["ana", "ben", "cora"]:
        retain(connection, [text])
        assert drift(connection) == 1
    connection.execute("update pgrecall_internal.statistics set document_count = 10000")

    retain(connection, ["dana"])
    call(connection, "refresh_statistics", bank="b")

    assert drift(connection) == pytest.approx(3 / 4)


def test_the_doctor_says_what_to_do_about_drift(database: str) -> None:
    with psycopg.connect(database) as connection:
        create(connection)
        retain(connection, ["ana sails"])
    healthy = doctor.examine(database)
    with psycopg.connect(database) as connection:
        connection.execute("update pgrecall_internal.vocabulary set lexemes = '{ana,rows}'")

    ill = doctor.examine(database)

    (finding,) = [finding for finding in ill if finding not in healthy]
    assert (finding.status, finding.about) == ("warning", 'bank "b"')
    assert finding.found.endswith("similarity 0.33 to the snapshot")
    assert finding.advice is not None
    assert "select pgrecall.snapshot_vocabulary('b');" in finding.advice


# Driver


def test_the_driver_marks_words_and_watches_vocabulary(pgrecall: Recall) -> None:
    pgrecall.create_bank("b")
    assert pgrecall.vocabulary_drift("b") is None
    (retained,) = pgrecall.retain("b", ["ana sails"])

    pgrecall.snapshot_vocabulary("b")

    assert pgrecall.vocabulary_drift("b") == 1
    marked = pgrecall.highlight("b", retained.memory_id, "sail", start_mark="*", end_mark="*")
    assert marked == "ana *sails*"
