"""Write the calendar words of some ninety languages, from the Unicode CLDR.

They are ``pgrecall/temporal/languages/calendar_words.json``. What this needs is not in the
development environment, for the file changes only with a release of the CLDR:

    npm pack cldr-dates-full@48.2.0 cldr-core@48.2.0        # Unicode License v3
    for one in cldr-*.tgz; do tar xzf $one --one-top-level; done
    pip install wordfreq==3.1.1                             # decides which words are ambiguous
    python pydriver/calendar_words.py FOLDER

Taken are the languages whose coverage the CLDR calls modern, each with its regional variants: names
of months and weekdays, relative words ("yesterday", "last week"), patterns ("{0} days ago"), and
the words between the parts of a date ("de" in "3 de mayo", 年). A phrase stands in the file once,
with what it means by language, as ``temporal/languages/general.py`` reads it. It begins with "?" if
another language writes it, too, for something else: by the frequencies of words in 39 languages
(wordfreq). "homme" is tomorrow in Estonian and a man in French.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from math import log10
from pathlib import Path
from typing import Any

from wordfreq import available_languages, get_frequency_dict

sys.path.insert(0, str(Path(__file__).parent / "pgrecall"))

from temporal.languages.general import WORD, usual

TARGET = Path(__file__).parent / "pgrecall/temporal/languages/calendar_words.json"
WEEKDAYS = "mon tue wed thu fri sat sun".split()
UNITS = ("day", "week", "month", "quarter", "year")
# Words in two scripts, or of English: their Latin forms are those of other languages.
LEFT_OUT = {"en", "pcm", "hi-Latn"}
WITH_CASES = {"et", "eu"}  # which the CLDR does not say
NOT_COUNTED = {"zh", "ja", "ko"}  # texts without spaces
SAME = {  # as the CLDR or wordfreq name a language, and those that read one another
    "nb": "no nn da sv",
    "da": "no nn sv",
    "sv": "da no nn",
    "sh": "sr hr bs",
    "ms": "id",
}
OFTEN, OFTEN_EACH = 2.5, 3.5  # least zipf frequency of a word, of each word of a phrase
SHORTEST = 3  # letters of a word that is no abbreviation
LONG = 8  # letters of a phrase of two words that is of one language only
SELDOM = 1.5  # so much below the own language a word is a foreign one there, but not in English

Phrases = dict[str, dict[str, set[str]]]


def tokens(text: str) -> str:
    """Return a phrase as the grammar splits it: words, numbers, other signs."""
    text = usual(text).lower().replace("\u2019", "'")
    return " ".join(re.findall(rf"{WORD}|\d+|\S", text))


def name(text: str) -> str:
    """Return the name of a month or a weekday, without the dot of an abbreviation."""
    return text.strip().rstrip(".").strip()


def literals(pattern: str) -> Iterator[tuple[str, str, str]]:
    """Return the quoted and unquoted words of a date pattern, each between its two fields."""
    fields = re.findall(r"'([^']+)'|([A-Za-z])\2*|([^\sA-Za-z']+)|(\s+)", pattern)
    parts = [(quoted or other, field, bool(space)) for quoted, field, other, space in fields]
    for at, (text, _, _) in enumerate(parts):
        if text.strip(" .,-/()"):
            before = parts[at - 1][1] if at else ""
            after = parts[at + 1][1] if at + 1 < len(parts) else ""
            yield before, text.strip(" ()"), after


def add_names(phrases: Phrases, code: str, gregorian: dict[str, Any]) -> None:
    """Add months and weekdays, as they stand alone and in a date."""
    formats = [one for one in gregorian["dateFormats"].values() if isinstance(one, str)]
    formats += gregorian["dateTimeFormats"]["availableFormats"].values()
    formats = [one for one in formats if "MMM" in one or "LLL" in one or re.search("y.*M.*d", one)]
    formats = [one for one in formats if not re.search("[wWQG]", re.sub("'[^']*'", "", one))]
    glued = [one for pattern in formats for one in literals(pattern)]
    ahead = {text for _, text, after in glued if after == "M" and text.isalpha()}
    behind = {text for before, text, _ in glued if before in ("M", "L") and text.isalpha()}
    for place in ("format", "stand-alone"):
        for number, month in gregorian["months"][place]["wide"].items():
            put(phrases, code, f"M{number}", name(month))
            if code == "el":  # the accusative, "τον Μάιο"
                put(phrases, code, f"M{number}", name(month).removesuffix("ς"))
            if not re.search(r"\d", month):
                for text in ahead:
                    put(phrases, code, f"M{number}", text + name(month))
                for text in behind:
                    put(phrases, code, f"M{number}", name(month) + text)
    for place in ("format", "stand-alone"):
        for number, month in gregorian["months"][place]["abbreviated"].items():
            if len(name(month)) > 2 or not name(month).isalpha():
                put(phrases, code, f"m{number}", name(month))
        for number, day in enumerate(WEEKDAYS):
            put(phrases, code, f"W{number}", name(gregorian["days"][place]["wide"][day]))
    numeric = {text for before, text, _ in glued if before in ("M", "L")}
    for pattern in formats:
        for word in re.findall(r"[^\W\d_]+", "".join(re.findall(r"'([^']+)'", pattern))) + [
            one for _, text, _ in literals(pattern) for one in re.findall(r"[^\W\d_]+", text)
        ]:
            if word not in numeric | ahead:
                put(phrases, code, "O", word)


def add_relative(
    phrases: Phrases, code: str, fields: dict[str, Any], names: dict[str, str]
) -> None:
    """Add "yesterday", "last week", "{0} days ago"."""
    week = fields["week"].get("displayName", "")
    for unit in (*UNITS, *WEEKDAYS):
        is_week = unit in WEEKDAYS and names.get(unit, "").lower() == week  # Filipino linggo
        for shift in range(-3, 4):
            for width in ("",) if unit in WEEKDAYS else ("", "-short", "-narrow"):
                said = fields.get(unit + width, {}).get(f"relative-type-{shift}", "")
                is_cut = width and min(map(len, said.split()), default=0) < SHORTEST
                if "." in said or not said[:1].isalpha() or is_cut:
                    continue
                if unit == "day":
                    put(phrases, code, f"D{shift}", said)
                elif shift or unit not in WEEKDAYS:
                    put(phrases, code, f"R{shift}{'week' if is_week else unit}", said)
        if unit in WEEKDAYS:
            continue
        for key, pattern in fields[unit].get("relativeTime-type-past", {}).items():
            add_pattern(phrases, code, unit, key.rsplit("-", 1)[1], pattern)
    year = [set(tokens(fields["year"].get(f"relative-type-{n}", "")).split()) for n in (-1, 0, 1)]
    common = set.intersection(*year)
    nouns = {max(common, key=len)} if common else set()
    for noun in nouns | {tokens(fields["year"].get("displayName", ""))}:
        if len(noun) > 1 or ord(noun[:1] or "a") > 0x2E80:
            put(phrases, code, "Y", noun)


def add_pattern(phrases: Phrases, code: str, unit: str, plural: str, pattern: str) -> None:
    """Add the words around the number of a pattern."""
    if "(" in pattern:
        return
    if "{0}" not in pattern:
        count = {"one": 1, "two": 2}.get(plural)
        if count and len(pattern) > 2:
            put(phrases, code, f"n{count}g{unit}", pattern)
        return
    before, after = (one.strip(" -\u200f\u200e") for one in pattern.split("{0}"))
    if not after or before.startswith(("+", "-")) or "." in after:
        return
    if before:
        put(phrases, code, "K", before)
        put(phrases, code, f"U{unit}", after)
    else:
        put(phrases, code, f"g{unit}", after)


def put(phrases: Phrases, code: str, kind: str, text: str) -> None:
    """Add a phrase of a language."""
    phrase = tokens(text)
    if kind[0] == "M" and re.search(r"(?<!\d)\d(?!\d)", phrase):  # "tháng 05"
        phrases[re.sub(r"(?=\d)", "0", phrase)][kind].add(code)
    if phrase and not re.fullmatch(r"m? ?\d+|\W*", phrase):
        if code not in phrases[phrase][kind[0].upper() + kind[1:]]:
            phrases[phrase][kind].add(code)


def is_ambiguous(phrase: str, codes: set[str], often: dict[str, dict[str, float]]) -> bool:
    """Return whether another language writes a phrase, and not by far more seldom."""
    words = [word for word in phrase.split() if word[0].isalpha()]
    if len(words) > 1 and sum(map(len, words)) >= LONG:
        return False
    mine = codes | {same for code in codes for same in SAME.get(code, "").split()}
    known = {code for code in often if mine & {code, *SAME.get(code, "").split()}}

    def zipf(code: str) -> float:
        return min((log10(often[code].get(word, 1e-9)) + 9 for word in words), default=0)

    often_enough = OFTEN if len(words) == 1 else OFTEN_EACH
    own = max((zipf(code) for code in known), default=0.0)
    least = max(often_enough, own - SELDOM)
    return any(
        zipf(code) >= (often_enough if code == "en" else least) for code in often.keys() - known
    )


def modern(core: Path) -> set[str]:
    """Return the languages, and scripts of them, whose coverage is modern."""
    levels = json.loads((core / "coverageLevels.json").read_text("utf-8"))["coverageLevels"]
    return {code for code, level in levels.items() if level == "modern"} - LEFT_OUT


def languages(folder: Path) -> dict[str, list[str]]:
    """Return what the file says of languages themselves, those of most people first."""
    (core,) = folder.glob("cldr-core-*/package")
    (main,) = folder.glob("cldr-dates-full-*/package/main")
    info = json.loads((core / "supplemental/territoryInfo.json").read_text("utf-8"))
    speakers: dict[str, float] = defaultdict(float)
    for territory in info["supplemental"]["territoryInfo"].values():
        for code, share in territory.get("languagePopulation", {}).items():
            part = float(share["_populationPercent"]) / 100
            speakers[code.split("_")[0]] += part * float(territory["_population"])
    found: dict[str, list[str]] = {"all": [], "capitals": [], "cases": [], "monthfirst": []}
    grammar = json.loads((core / "supplemental/grammaticalFeatures.json").read_text("utf-8"))
    features = grammar["supplemental"]["grammaticalData"]
    for code in sorted(modern(core), key=lambda code: (-speakers[code], code)):
        file = main / code / "ca-gregorian.json"
        if "-" in code or not file.exists():
            continue
        found["all"].append(code)
        dates = json.loads(file.read_text("utf-8"))["main"][code]["dates"]["calendars"]["gregorian"]
        short = dates["dateFormats"]["short"]
        if short.find("M") < short.find("d"):
            found["monthfirst"].append(code)
        cases = features.get(f"{code}-targets-nominal", {}).get("grammaticalCase", ())
        inside, alone = (dates["months"][one]["wide"] for one in ("format", "stand-alone"))
        has_cases = not inside["5"].lower().endswith(alone["5"].lower())
        if inside["5"][0].isupper():
            found["capitals"].append(code)
        elif len(cases) > 3 or has_cases or code in WITH_CASES:
            found["cases"].append(code)
    return found


def read(folder: Path) -> Phrases:
    """Return the phrases of all languages, with their meanings."""
    (core,) = folder.glob("cldr-core-*/package")
    (main,) = folder.glob("cldr-dates-full-*/package/main")
    taken = modern(core)
    phrases: Phrases = defaultdict(lambda: defaultdict(set))
    for locale in sorted(main.iterdir()):
        code, *rest = locale.name.split("-")
        is_script = bool(rest) and len(rest[0]) == 4
        if code not in taken or (is_script and f"{code}-{rest[0]}" not in taken):
            continue

        def dates(file: str, locale: Path = locale) -> dict[str, Any]:
            found = json.loads((locale / file).read_text("utf-8"))["main"][locale.name]["dates"]
            return dict(found)

        gregorian = dates("ca-gregorian.json")["calendars"]["gregorian"]
        add_names(phrases, code, gregorian)
        names = gregorian["days"]["format"]["wide"]
        add_relative(phrases, code, dates("dateFields.json")["fields"], names)
    return phrases


def said_of(meanings: dict[str, set[str]]) -> str:
    """Return the meanings of a phrase as the file has them."""
    by_codes: dict[str, list[str]] = defaultdict(list)
    for kind, codes in meanings.items():
        if not codes:
            continue
        by_codes[" ".join(sorted(codes))].append(kind)
    return ";".join(
        f"{','.join(sorted(kinds))} {codes}" for codes, kinds in sorted(by_codes.items())
    )


def main() -> None:
    """Write the file from a folder with the packages of the CLDR."""
    folder = Path(sys.argv[1])
    phrases = read(folder)
    counted = available_languages().keys() - NOT_COUNTED
    often = {code: get_frequency_dict(code) for code in counted}
    lines = [f'"":"{";".join(" ".join([k, *c]) for k, c in languages(folder).items())}"']
    for phrase, meanings in sorted(phrases.items()):
        all_codes = {code for codes in meanings.values() for code in codes}
        said = "?" * is_ambiguous(phrase, all_codes, often) + said_of(meanings)
        lines.append(f"{json.dumps(phrase, ensure_ascii=False)}:{json.dumps(said)}")
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
