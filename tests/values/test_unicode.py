"""The same word in another Unicode form is the same word, and stays stored as it was typed."""

from __future__ import annotations

import unicodedata

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import servers
from pgrecall import schema
from pgrecall.server import build
from servers import Server
from sqlcalls import Connection, call, counted_scans, create, ids, retain

PROPERTY = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
# What is stored, what is asked for, and what of the stored text it marks.
PAIRS = {
    "accent": ("São José", "josé", "José"),
    "two accents": ("tiếng Việt", "việt", "Việt"),
    "hangul": ("서울에서 회의를 했다", "회의", "회의"),
    "kana": ("新しいガイドです", "ガイド", "ガイド"),
}
WIDE = {
    "latin": ("ＪＩＲＡ－９９２１ is open", "jira-9921", "ＪＩＲＡ－９９２１"),
    "digits": ("HTTP ５０２ all night", "502", "５０２"),
    "kana": ("新しいｶﾞｲﾄﾞです", "ガイド", "ｶﾞｲﾄﾞ"),
    "ligature": ("the ofﬁce in Lisbon", "office", "ofﬁce"),
    "unit": ("it weighs 5㎏", "5kg", "5㎏"),
}


def form(name: str, text: str) -> str:
    return unicodedata.normalize(name, text)  # type: ignore[arg-type]


def found(connection: Connection, query: str) -> list[int]:
    return ids(call(connection, "lexical_arm", bank="b", query=query))


def marked(connection: Connection, memory: int, query: str) -> str:
    ((text,),) = call(connection, "highlight", bank="b", memory_id=memory, query=query,
                      start_mark="[", end_mark="]")  # fmt: skip
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize("config", ["simple", "english"])
@pytest.mark.parametrize(("stored", "asked"), [("NFC", "NFD"), ("NFD", "NFC"), ("NFD", "NFD")])
@pytest.mark.parametrize("name", PAIRS)
def test_a_word_is_found_and_marked_in_whatever_form_it_was_typed(
    connection: Connection, config: str, stored: str, asked: str, name: str
) -> None:
    text, query, hit = PAIRS[name]
    text, query, hit = form(stored, text), form(asked, query), form(stored, hit)
    create(connection, text_search_config=config)
    memory, _ = retain(connection, [text, "nothing"])

    assert found(connection, query) == [memory]
    assert found(connection, f'"{query}"') == [memory]
    assert found(connection, f'{form(stored, query)} -"{query}"') == []
    assert marked(connection, memory, query) == text.replace(hit, f"[{hit}]")


@pytest.mark.parametrize("name", WIDE)
def test_wide_letters_ligatures_and_the_like_are_as_plain_ones(
    connection: Connection, name: str
) -> None:
    text, query, hit = WIDE[name]
    create(connection)
    wide, plain, _ = retain(connection, [text, form("NFKC", text), "nothing"])

    for typed in (query, hit, f'"{query}"', f'"{hit}"'):
        assert set(found(connection, typed)) == {wide, plain}
    assert found(connection, f'{query} -"{hit}"') == []
    assert marked(connection, wide, query) == text.replace(hit, f"[{hit}]")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("कृष्ण की पुस्तक", "पुस्तक"),
        ("வணக்கம் உலகம்", "வணக்கம்"),
        ("স্বাগতম বন্ধু", "বন্ধু"),
        ("กินข้าว ที่บ้าน", "ที่บ้าน"),
    ],
)
def test_marks_that_are_no_letters_belong_to_their_word(
    connection: Connection, text: str, word: str
) -> None:
    create(connection, text_search_config="simple")
    memory, _ = retain(connection, [text, "nothing"])

    for typed in (word, word[:-1], f'"{word}"'):
        assert ids(call(connection, "find_memories", bank="b", words=typed)) == [memory]
    assert found(connection, word) == [memory]
    assert found(connection, f"{text} -{word}") == []
    assert marked(connection, memory, word) == text.replace(word, f"[{word}]")


UNREAD = {
    "soft hyphens": ("Das Do\u00adnau\u00addampf\u00adschiff", "Donaudampfschiff"),
    "marks of direction": ("\u200fאני גר ליד \u200eחיפה\u200f היום", "חיפה"),
    "word joiner": ("see word\u2060joiner here", "wordjoiner"),
    "points of Hebrew": ("שָׁלוֹם עוֹלָם", "שלום"),
    "points of Arabic": ("قَرَأَ مُحَمَّدٌ الكِتَابَ", "محمد"),
    "lengthened": ("كتـــاب جديد", "كتاب"),
    "digits of Persian": ("در سال ۱۳۵۷ بود", "1357"),
    "digits of Hindi": ("वर्ष २०२४ में", "2024"),
    "digits of Thai": ("ปี ๒๕๖๗ นี้", "2567"),
    "joined words": ("او می\u200cرود", "می رود"),
    "joined words as one": ("او می\u200cرود", "میرود"),
}


@pytest.mark.parametrize("name", UNREAD)
def test_what_is_not_read_does_not_make_another_word(connection: Connection, name: str) -> None:
    text, query = UNREAD[name]
    create(connection, text_search_config="simple")
    memory, plain, _ = retain(connection, [text, query, "nothing"])

    assert set(found(connection, query)) == {memory, plain}
    mark = marked(connection, memory, query)
    assert "[" in mark
    assert mark.replace("[", "").replace("]", "") == text


def test_an_excluded_word_with_a_joint_is_excluded_as_a_whole(connection: Connection) -> None:
    create(connection, text_search_config="simple")
    goes, comes = retain(connection, ["علی می\u200cرود", "علی می\u200cآید"])

    assert found(connection, "علی -می\u200cرود") == [comes]
    assert found(connection, '"می\u200cرود"') == [goes]


def test_a_text_of_nothing_that_is_read_is_marked_as_stored(connection: Connection) -> None:
    create(connection)
    (memory,) = retain(connection, ["\u00ad\u2060"])

    assert marked(connection, memory, "nothing") == "\u00ad\u2060"


# What is stored, what is asked for without accents, and what of the stored text it marks.
UNACCENTED = {
    "acute": ("ein café in Wien", "cafe", "café"),
    "two words": ("she moved to São Tomé", "sao tome", "São] [Tomé"),
    "stroke": ("urodzona w Łódź", "lodz", "Łódź"),
    "stroke and accent": ("blå ǿl", "ol", "ǿl"),
    "two letters as one": ("ma sœur", "soeur", "sœur"),
    "sharp s": ("im großen Haus", "grossen", "großen"),
    "two accents": ("thành phố", "thanh pho", "thành] [phố"),
    "dotless": ("ışık söndü", "isik", "ışık"),
    "greek": ("στην Αθήνα", "αθηνα", "Αθήνα"),
    "cyrillic": ("ёлка стоит", "елка", "ёлка"),
}


@pytest.mark.parametrize("name", UNACCENTED)
def test_a_word_is_found_and_marked_however_its_accents_were_typed(
    connection: Connection, name: str
) -> None:
    accented, plain, hit = UNACCENTED[name]
    create(connection, text_search_config="simple")
    memory, _ = retain(connection, [accented, "nothing"])

    assert found(connection, plain) == [memory]
    assert marked(connection, memory, plain) == accented.replace(
        hit.replace("]", "").replace("[", ""), f"[{hit}]"
    )


def test_a_word_with_accents_finds_those_without_where_the_bank_has_no_other(
    connection: Connection,
) -> None:
    create(connection, text_search_config="simple")
    (plain,) = retain(connection, ["ho ve ha noi"])
    assert found(connection, "hà nội") == [plain]

    (accented,) = retain(connection, ["họ về hà nội"])
    assert found(connection, "hà nội") == [accented]
    assert set(found(connection, "ha noi")) == {plain, accented}


def test_accents_are_told_apart_by_who_types_them(connection: Connection) -> None:
    create(connection, text_search_config="simple")
    became, brown = retain(connection, ["thành quả", "thanh quả"])

    assert found(connection, "thanh") == [brown, became]
    assert found(connection, "thành") == [became]
    assert found(connection, "thanh ở đâu") == [brown]


def test_spellings_of_a_word_have_one_idf(connection: Connection) -> None:
    create(connection, text_search_config="simple")
    texts = ["ma bien", "má bien", "mà bien", "mà sau", "nothing here"]
    retain(connection, texts)

    scores = {hit.memory_id: hit.score for hit in call(connection, "lexical_arm", bank="b",
                                                       query="ma")}  # fmt: skip
    assert len(scores) == 4
    assert len({round(score, 9) for score in scores.values()}) == 1


def test_a_message_is_found_without_its_accents(connection: Connection) -> None:
    create(connection, text_search_config="simple")
    (message,) = call(connection, "retain_messages", bank="b",
                      messages=[{"text": "José navega"}])  # fmt: skip

    assert ids(call(connection, "message_arm", bank="b", query="jose")) == [message.message_id]


def test_a_name_is_found_without_its_accents(connection: Connection) -> None:
    def named(query: str) -> list[str]:
        return [e.name for e in call(connection, "query_entities", bank="b", query=query)]

    create(connection)
    call(connection, "retain", bank="b", facts=[
        {"text": "José Muñoz sails", "entities": ["José Muñoz"]},
        {"text": "Łódź is grey", "entities": ["Łódź"]},
        {"text": "Ægir and Zoë Weiß", "entities": ["Ægir", "Zoë Weiß"]},
    ])  # fmt: skip
    assert named("Where is Aegir?") == ["Ægir"]
    assert named("Where is Weiss?") == ["Zoë Weiß"]
    assert named("When did Jose Munoz sail?") == ["José Muñoz"]
    assert named("is lodz grey") == ["Łódź"]

    call(connection, "retain", bank="b", facts=[
        {"text": "Jose Munoz walks", "entities": ["Jose Munoz"]}
    ])  # fmt: skip
    assert named("When did Jose Munoz sail?") == ["Jose Munoz"]
    assert named("When did José Muñoz sail?") == ["José Muñoz"]


def test_a_name_without_its_accents_is_not_hidden_by_a_part_of_another(
    connection: Connection,
) -> None:
    create(connection)
    call(connection, "retain", bank="b", facts=[
        {"text": f"{name} sails", "entities": [name]} for name in ("José", "Jose Silva")
    ])  # fmt: skip

    named = call(connection, "query_entities", bank="b", query="What does Jose like?")
    assert {e.name: e.confidence for e in named} == {"José": 0.5, "Jose Silva": 0.5}


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("What does Jose like?", {"José Muñoz"}),
        ("What does José like?", {"José Muñoz"}),
        ("What does Munoz like?", {"José Muñoz"}),
        ("what does jose like", {"José Muñoz"}),
        ("What does Joze Munoz like?", {"José Muñoz"}),
        # An accent is not taken away, and who is called so goes before.
        ("What does Rená like?", set()),
        ("what does rená like", set()),
        ("What does Ines like?", {"Ines Roth"}),
        ("What does Inés like?", {"Inés Sol"}),
        # As names of their own and as a word that many facts have.
        ("What does Zoe like?", {"Zoé"}),
        ("what was pate like", set()),
    ],
)
def test_a_word_of_a_name_is_found_without_its_accents(
    connection: Connection, query: str, meant: set[str]
) -> None:
    create(connection)
    call(connection, "retain", bank="b", facts=[
        {"text": f"{name} sails", "entities": [name]}
        for name in ("José Muñoz", "Rena Lund", "Ines Roth", "Inés Sol", "Zoé", "Zoé Pâté")
    ] + [f"pâté, the {n}th of them" for n in range(9)])  # fmt: skip

    named = call(connection, "query_entities", bank="b", query=query)
    assert {e.name for e in named} == meant


@pytest.mark.parametrize(
    ("name", "meant"),
    [("jose munoz", {"José Muñoz", "Jose Munoz"}), ("José Muñoz", {"José Muñoz"}), ("Jose", set())],
)
def test_an_entity_of_a_condition_is_found_without_its_accents(
    connection: Connection, name: str, meant: set[str]
) -> None:
    create(connection)
    call(connection, "retain", bank="b", facts=[
        {"text": f"sails {who}", "entities": [who]} for who in ("José Muñoz", "Jose Munoz", "Ana")
    ])  # fmt: skip

    for condition in ({"entity": name}, {"filter": f"entity = '{name}'"},
                      {"filter": f"entity in ('nobody', '{name}')"}):  # fmt: skip
        rows = call(connection, "list_memories", bank="b", **condition)
        assert {row.text[6:] for row in rows} == meant
        rows = call(connection, "find_memories", bank="b", words="sails", **condition)
        assert {row.text[6:] for row in rows} == meant


@pytest.mark.parametrize("part", ["jose", "MUNOZ", "sé"])
def test_an_entity_is_listed_by_a_part_without_its_accents(
    connection: Connection, part: str
) -> None:
    create(connection)
    call(connection, "retain", bank="b", facts=[
        {"text": who, "entities": [who]} for who in ("José Muñoz", "Jo Munz")
    ])  # fmt: skip

    assert [e.name for e in call(connection, "list_entities", bank="b", name=part)] == [
        "José Muñoz"]  # fmt: skip


@pytest.mark.parametrize(
    ("config", "name", "query"),
    [
        ("english", "Thế", "What is the plan?"),
        ("english", "Đỗ", "what do we do"),
        ("portuguese", "Às", "as vezes"),
    ],
)
def test_a_stop_word_is_no_name_without_its_accents(
    connection: Connection, config: str, name: str, query: str
) -> None:
    create(connection, text_search_config=config)
    call(connection, "retain", bank="b", facts=[{"text": f"{name} sails", "entities": [name]}])

    assert call(connection, "query_entities", bank="b", query=query) == []
    (named,) = call(connection, "query_entities", bank="b", query=f"{query} {name}")
    assert named.name == name


def test_a_word_being_typed_is_compared_with_its_accents(connection: Connection) -> None:
    create(connection, text_search_config="simple")
    became, brown = retain(connection, ["thành quả", "thanh quả"])

    for words, memory in {"thanh ": brown, "thanh q": brown, "thành ": became}.items():
        assert ids(call(connection, "find_memories", bank="b", words=words)) == [memory]


def test_a_phrase_and_an_excluded_word_are_compared_with_their_accents(
    connection: Connection,
) -> None:
    create(connection, text_search_config="simple")
    became, brown = retain(connection, ["thành quả", "thanh quả"])

    assert found(connection, '"thanh quả"') == [brown]
    assert found(connection, "quả -thanh") == [became]


def test_an_index_finds_what_is_typed_without_accents(connection: Connection) -> None:
    create(connection, text_search_config="simple")
    retain(connection, [f"từ{n} khác" for n in range(200)])

    with counted_scans(connection) as scans:
        assert len(found(connection, "tu7")) == 1
    assert scans["lexeme_unaccented_idx"] >= 1


def test_an_accent_is_not_taken_away(connection: Connection) -> None:
    create(connection)
    accented, plain = retain(connection, [form("NFD", "résumé"), "resume"])

    assert found(connection, "résumé") == [accented]
    assert found(connection, "resume") == [plain]


@pytest.mark.parametrize(("stored", "asked"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_a_message_is_found_in_whatever_form(
    connection: Connection, stored: str, asked: str
) -> None:
    create(connection)
    (message,) = call(connection, "retain_messages", bank="b",
                      messages=[{"text": form(stored, "José sails")}])  # fmt: skip

    heard = call(connection, "message_arm", bank="b", query=form(asked, "josé"))
    assert ids(heard) == [message.message_id]


@pytest.mark.parametrize(
    ("key", "asked"),
    [
        (form("NFC", "café.menü"), form("NFD", "what is on café.menü?")),
        (form("NFD", "café.menü"), form("NFC", "what is on CAFÉ.menü?")),
        ("ｄｅｐｌｏｙ.window", "deploy.window"),
        ("deploy.window", "ＤＥＰＬＯＹ.window"),
    ],
)
def test_a_key_is_looked_up_in_whatever_form(connection: Connection, key: str, asked: str) -> None:
    create(connection)
    memory, cause = retain(
        connection,
        [
            {"text": "one", "fact_key": key},
            {"text": "two", "links": [{"kind": "causes", "to_key": asked.split()[-1].rstrip("?")}]},
        ],
    )

    assert ids(call(connection, "key_arm", bank="b", query=asked)) == [memory]
    assert (cause, memory) in connection.execute(
        "select from_id, to_id from pgrecall.link where kind = 'causes'"
    ).fetchall()


@pytest.mark.parametrize(
    "other", [form("NFD", "José Núñez"), "ＪＯＳÉ núñez", "\u2066José\u2069 Nú\u00adñez"]
)
def test_a_name_is_of_the_same_entity_in_whatever_form(connection: Connection, other: str) -> None:
    create(connection)
    name = form("NFC", "José Núñez")
    retain(connection, [{"text": f"{n} sails", "entities": [n]} for n in (name, other)])

    entities = connection.execute("select name from pgrecall.entity").fetchall()
    assert entities == [(name,)]
    for query in (name, other):
        named = call(connection, "query_entities", bank="b", query=f"where is {query}?")
        assert [row.name for row in named] == [name]


MARKS = st.sampled_from(
    [*"aeq가각ー", *"\u0301\u0323\u0316\u0345\u0334", *"\u1100\u1161\u11a8", *"ｶﾞﾟ", *"ﬁ㎏ﷺ½",
     "\u0cc6\u0cc2\u0cd5", "\u0915\u093c", " ", *"\u00ad\u200c\u200f\u05b8\u0640٣๓"]
)  # fmt: skip
ANYTHING = st.characters(exclude_characters="\0", exclude_categories=["Cs"])


@PROPERTY
@given(text=st.lists(MARKS | ANYTHING, max_size=12).map("".join))
def test_letters_are_those_of_the_text_and_normalise_one_by_one(
    connection: Connection, text: str
) -> None:
    row = connection.execute(
        "select coalesce(string_agg(letter, '' order by n), ''),"
        " coalesce(string_agg(pgrecall_internal._normalised(letter), '' order by n), ''),"
        " pgrecall_internal._normalised(%(text)s)"
        " from pgrecall_internal._letters(%(text)s) with ordinality as l(letter, n)",
        {"text": text},
    ).fetchone()

    assert row is not None
    stored, joined, whole = row
    assert stored == text
    assert joined == whole


def test_a_long_text_is_marked_in_linear_time(connection: Connection) -> None:
    create(connection)
    (memory,) = retain(connection, [form("NFD", "é가" * 20_000)])
    connection.execute("set statement_timeout = '10s'")

    assert "[" not in marked(connection, memory, "nothing")


def test_facts_of_0_1_0_are_normalised_by_a_full_refresh_and_names_and_keys_at_once(
    server: Server, empty_database: str
) -> None:
    frozen = (build.MIGRATIONS / "pgrecall--0.1.0.sql").read_text(encoding="utf-8")
    servers.run_script(server, empty_database, frozen)
    nfd = form("NFD", "José Núñez")
    with psycopg.connect(empty_database) as connection:
        create(connection)
        fact = {"text": f"{nfd} sails", "fact_key": form("NFD", "café"), "entities": [nfd]}
        memory, *_ = retain(connection, [fact, "nothing", "no more"])
        call(connection, "retain_messages", bank="b", messages=[{"text": f"{nfd} sails"}])

    with psycopg.connect(empty_database) as connection:
        schema.migrate(connection)

    with psycopg.connect(empty_database) as connection:
        named = call(connection, "query_entities", bank="b", query=form("NFC", nfd))
        assert [row.name for row in named] == [nfd]
        assert ids(call(connection, "key_arm", bank="b", query=form("NFC", "café"))) == [memory]
        assert found(connection, "sails") == [memory]
        call(connection, "refresh_statistics", bank="b", is_full=True)
        assert found(connection, form("NFC", "josé")) == [memory]
        assert len(call(connection, "message_arm", bank="b", query=form("NFC", "josé"))) == 1
        lengths = connection.execute(
            "select lexical_length = (select sum(frequency) from pgrecall.lexemes('english', text))"
            " from pgrecall.message"
        ).fetchall()
        assert lengths == [(True,)]
