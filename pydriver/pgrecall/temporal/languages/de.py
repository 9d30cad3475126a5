"""German."""

from __future__ import annotations

from . import (
    AFTERNOON,
    BEFORE_AS_AGO,
    EARLY,
    EVENING,
    FORENOON,
    MORNING,
    NIGHT,
    NOON,
    SINCE,
    SKIPPING_FIRST,
    THE_WEEKEND,
    Language,
    Lexicon,
    contexts,
    words,
)

_MONTHS = (
    "januar|jänner|jan, februar|feber|feb, märz|maerz|mär|mrz, april|apr, mai, juni|jun, juli|jul, "
    "august|aug, september|sep|sept, oktober|okt, november|nov, dezember|dez"
)
_WEEKDAYS = (
    "montag|mo ., dienstag|di ., mittwoch|mi ., donnerstag|do ., freitag|fr ., "
    "samstag|sonnabend|sa ., sonntag|so ."
)
_HOLIDAYS: dict[str, object] = {
    "weihnachten, erster weihnachtstag, weihnachtstag, christtag": (12, 25),
    "heiligabend, heiliger abend": (12, 24),
    "zweiter weihnachtstag, stephanstag, stefanitag": (12, 26),
    "neujahr, neujahrstag": (1, 1),
    "silvester, silvesterabend": (12, 31),
    "dreikönigstag, heilige drei könige, epiphanias": (1, 6),
    "valentinstag": (2, 14),
    "frauentag, weltfrauentag, internationaler frauentag": (3, 8),
    "aprilscherz": (4, 1),
    "tag der arbeit, maifeiertag": (5, 1),
    "muttertag": (5, 6, 2),
    "vatertag": {"": 39, "AT": (6, 6, 2), "CH": (6, 6, 1)},
    "nationalfeiertag": {"": (10, 3), "AT": (10, 26), "CH": (8, 1)},
    "tag der deutschen einheit": (10, 3),
    "reformationstag": (10, 31),
    "halloween": (10, 31),
    "allerheiligen": (11, 1),
    "allerseelen": (11, 2),
    "martinstag, sankt martin": (11, 11),
    "nikolaus, nikolaustag": (12, 6),
    "(erster/1 ./ersten) advent, (am /)ersten advent": (11, 3, -1, 3),
    "(zweiter/2 ./zweiten) advent": (11, 3, -1, 10),
    "(dritter/3 ./dritten) advent": (11, 3, -1, 17),
    "(vierter/4 ./vierten) advent": (11, 3, -1, 24),
    "volkstrauertag": (11, 3, -1, -11),
    "buß - und bettag": (11, 3, -1, -8),
    "totensonntag, ewigkeitssonntag": (11, 3, -1, -4),
    "mariä himmelfahrt": (8, 15),
    "thanksgiving": (11, 3, 4),
    "black friday": (11, 3, 4, 1),
    "weiberfastnacht": -52,
    "rosenmontag": -48,
    "faschingsdienstag, fastnacht, fasching, karneval": -47,
    "aschermittwoch": -46,
    "palmsonntag": -7,
    "gründonnerstag": -3,
    "karfreitag": -2,
    "karsamstag": -1,
    "ostern, ostersonntag": 0,
    "ostermontag": 1,
    "(christi /)himmelfahrt": 39,
    "pfingsten, pfingstsonntag": 49,
    "pfingstmontag": 50,
    "fronleichnam": 60,
}
_SMALL = (
    "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn "
    "fünfzehn sechzehn siebzehn achtzehn neunzehn"
).split()
_TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()
_SAID = {number: word for number, word in enumerate(_SMALL) if number != 1} | {
    10 * ten + unit: f"{_SMALL[unit]}und{word}" if unit else word
    for ten, word in enumerate(_TENS, 2)
    for unit in range(10)
}
_SAID[1] = "eins"
_YEARS = {
    1700: "siebzehnhundert",
    1800: "achtzehnhundert",
    1900: "neunzehnhundert",
    2000: "zweitausend(und/)",
}
_ENDINGS = "(e/er/en/es/em)"

_LEXICON = Lexicon()
_LEXICON.count("M", 1, _MONTHS)
_LEXICON.count("W", 0, _WEEKDAYS)
_PLURALS = _LEXICON.units(
    "tag(/es/e); tage, tagen",
    "woche, kw, kalenderwoche; wochen",
    "; ",
    "wochenende(/s); wochenenden",
    "monat(/s); monate, monaten",
    "quartal(/s), vierteljahr(/es/s); quartale, quartalen",
    "halbjahr(/es/s); halbjahre, halbjahren",
    "jahr(/es/s/e); jahre, jahren",
    "jahrzehnt(/s/es), dekade; jahrzehnte, jahrzehnten, dekaden",
    "jahrhundert(/s/es); jahrhunderte, jahrhunderten",
)
_LEXICON.holidays(_HOLIDAYS)
_LEXICON.numbers(_SAID, _YEARS)
_LEXICON.count("S", 0, "frühling(/s)|frühjahr(/s), sommer(/s), herbst(/es/s), winter(/s)")
_LEXICON.count(
    "o",
    1,
    "erst@, zweit@, dritt@, viert@, fünft@, sechst@, siebt@|siebent@, acht@, neunt@, zehnt@, "
    "elft@, zwölft@, dreizehnt@, vierzehnt@, fünfzehnt@, sechzehnt@, siebzehnt@, achtzehnt@, "
    "neunzehnt@, zwanzigst@, einundzwanzigst@, zweiundzwanzigst@, dreiundzwanzigst@, "
    "vierundzwanzigst@, fünfundzwanzigst@, sechsundzwanzigst@, siebenundzwanzigst@, "
    "achtundzwanzigst@, neunundzwanzigst@, dreißigst@, einunddreißigst@".replace("@", _ENDINGS),
)

_put = _LEXICON.put
for _ten, _word in enumerate(_TENS, 2):
    _put("Z", (10 * _ten, "ages"), f"{_word}er(/n), {_word}er (jahre/jahren), {_word}erjahre(/n)")
    _put("Z", (1900 + 10 * _ten, ""), f"neunzehnhundert{_word}er(/ jahre/ jahren)")
_put("u", 60, "stunde, stunden")
_put("u", 1, "minute, minuten, min")
for _part, _hours in {
    "(morgen/früh)": MORNING,
    "vormittag": FORENOON,
    "mittag": NOON,
    "nachmittag": AFTERNOON,
    "abend": EVENING,
    "nacht": NIGHT,
}.items():
    for _day, _shift in (("heute", 0), ("gestern", -1), ("vorgestern", -2)):
        _put("DP", (_shift, _hours), f"{_day} {_part}")
    _put("DP", (1, _hours), f"morgen {_part}".replace("(morgen/früh)", "früh"))
    for _number, _name in enumerate(_WEEKDAYS.split(",")):
        for _variant in (
            ("sonnabend", "samstag") if _number == 5 else (_name.split("|")[0].strip(),)
        ):
            _put("WP", (_number, _hours), f"{_variant}{_part}, {_variant} {_part}")
_put("D", 0, "heute, heut")
_put("D", -1, "gestern")
_put("DP", (-1, NIGHT), "letzte nacht, vergangene nacht")
_put("D", 1, "morgen")
_put("D", -2, "vorgestern")
_put("D", 2, "übermorgen")
_put("z", "morgen", "(am/jeden/guten/guter/der/den) morgen")
_put(">", None, "mehr als, länger als")
_put(">", "least", "mindestens, wenigstens")
_put("<", None, "weniger als, höchstens, maximal, unter")
_put("J", None, "jetzt, die gegenwart, zur gegenwart, dato")
_put("J", "date", f"(heutig/aktuell){_ENDINGS} (tag/tage/datum/zeitpunkt)")
_put("j", None, "bis jetzt, bis heute, bis dato, bisher, bis zum heutigen tag")
_put("@", "year", "das laufende jahr bis heute, seit jahresbeginn, seit jahresanfang")
_put("@", "month", "seit monatsbeginn, seit monatsanfang")
_put("f", "recent", "kürzlich, in letzter zeit, vor kurzem, unlängst, jüngst, zuletzt")
_put("f", "other day", "neulich, letztens")
_put("*", None, "um diese zeit, zu dieser zeit, um dieselbe zeit")
_put("R", (-1, "last"), f"letzt{_ENDINGS}")
_put("R", (-1, "past"), f"vergangen{_ENDINGS}")
_put("R", (-1, "previous"), f"vorig{_ENDINGS}, vorherig{_ENDINGS}, vorangegangen{_ENDINGS}")
_put("R", (0, "this"), "dies(e/er/en/es/em)")
_put("R", (0, "current"), f"laufend{_ENDINGS}, aktuell{_ENDINGS}, jetzig{_ENDINGS}")
_put("R", (0, "current"), f"(der/die/das/den/dem/des) heutig{_ENDINGS}")
_put("R", (1, "next"), f"nächst{_ENDINGS}, folgend{_ENDINGS}")
_put("R", (1, "coming"), f"kommend{_ENDINGS}, (diese/diesen/dieses) kommend{_ENDINGS}")
_put("V", -2, f"vorletzt{_ENDINGS}, vorvorig{_ENDINGS}, vorvergangen{_ENDINGS}")
_put("V", 2, f"übernächst{_ENDINGS}")
_put("h", None, f"ganz{_ENDINGS}, gesamt{_ENDINGS}")
_put("P", None, "mitternacht")
_put("P", MORNING, "morgens, früh, in der früh, früh am morgen")
_put("P", EARLY, "frühmorgens")
_put("P", FORENOON, "vormittag, vormittags, am vormittag")
_put("P", NOON, "mittag, mittags, am mittag, zu mittag")
_put("P", AFTERNOON, "nachmittag, nachmittags, am nachmittag")
_put("P", EVENING, "abend, abends, am abend")
_put("P", NIGHT, "nacht, nachts, in der nacht")
_put("E", "begin", "anfang, anfangs, beginn, zu beginn, zu anfang")
_put("E", "early", "früh im, frühe(/n/r/s)")
_put("E", "mid", "mitte")
_put("E", "end", "ende, schluss, zum ende, gegen ende, am ende")
_put("E", "late", "spät im, späte(/n/r/s)")
_put("E", "half1", f"erst{_ENDINGS} hälfte")
_put("E", "half2", f"zweit{_ENDINGS} hälfte")
_put("E", "rest", "rest")
_put("g", None, "her, zuvor")
_put("l", None, "ab jetzt, von jetzt an")
_put("n", 2, "paar von")
_put("n", 14, "vierzehn")
_put("v", 3, "ein paar, paar, einige, einigen, mehrere, mehreren, wenige, wenigen")
_put("A", 1, "ein, eine, einem, einen, einer, eines")
_put("B", None, "einhalb, und ein(/e/er/em/en) halb(e/er/en/es/em), halb(e/er/en/es/em)")
_put("nB", (1, None), "anderthalb, eineinhalb")
_put("nB", (2, None), "zweieinhalb")
_put("T", None, "der, die, das, den, dem")
_put("m", None, "mein(/e/em/en/er/es), unser(/e/em/en/er/es)")
_put("O", None, "von, vom, des")
_put("i", "in", "in")
_put("iT", ("in", None), "im")
_put("iT", ("on", None), "am")
_put("iT", ("at", None), "zum, zur, beim, ums")
_put("i", "on", "datiert auf den, datiert vom")
_put("i", "for", "für, für den")
_put("i", "at", "während, zu, an, um, gegen, übers, bei")
_put("i", "over", "über")
_put("I", None, "innerhalb, binnen, innert")
_put("t", "until", "bis, bis zum, bis zur, bis zu, bis in, bis ins, bis einschließlich, ~")
_put("w", None, "zwischen")
_put("&", None, "und, &")
_put("|", None, "oder")
_put("s", None, "seit, seitdem, ab, ab dem, beginnend mit, nicht vor")
_put("a", None, "nach, später als")
_put("b", None, "vor, vor (etwa/ungefähr/circa/ca ./rund/fast/gut), bevor, früher als")
_put("k", None, "bis spätestens, spätestens, spätestens am, nicht später als")
_put("G", None, "beginnend, beginnend am, angefangen, angefangen am, ab dem")
_put("p", None, "und später, oder später, und danach, oder danach")
_put("d", None, "und früher, oder früher, und davor, oder davor")
_put("Y", None, "kalenderjahr(/es/s/en/e), geschäftsjahr(/es/s/en/e)")
_put("Y", "month", "kalendermonat(/s/es/en/e)")
_put("iU", ("in", "year"), "im jahre, im jahr")
_put("#", "w/c", "woche ab, woche beginnend am, woche beginnend mit")

for _phrase, _entry in list(_LEXICON.items()):  # "naechste Woche"
    for _umlaut, _letters in (("ä", "ae"), ("ö", "oe"), ("ü", "ue")):
        _phrase = _phrase.replace(_umlaut, _letters)
    _LEXICON.setdefault(_phrase, _entry)

LANGUAGE = Language(
    lexicon=_LEXICON,
    order=(BEFORE_AS_AGO, SKIPPING_FIRST, THE_WEEKEND, SINCE),
    plurals=_PLURALS,
    ordinal_suffixes=words(". te ten ter tes tem ste sten"),
    decade_suffixes=words("er ern"),
    articles=words("der die das den dem"),
    bare=contexts(
        "seit bis vor nach ab gegen zum zur",
        "in im von vom des für über während jahr jahre um",
        "am den datum zu an auf übers",
        "im am des seit diesen dieses vom",
    ),
    names=words("august mai"),
    toward=words("von mit für zu an über"),
    possessives=words(
        "mein meine meinen meinem meiner dein deine deinen seine seinen seinem ihre ihren ihrem "
        "unsere unseren eure euren"
    ),
    every=words("jeder jede jeden jedes jedem alle allen viele vielen meisten"),
    habitual=words("üblicherweise normalerweise gewöhnlich immer meistens oft jeder jeden jedes"),
    general=words("viele kann können könnte normalerweise durchschnittlich"),
    spanning=words("während über"),
    past=words("war waren hat haben hatte hatten wurde wurden ging bin"),
    not_recent=words("mehr weniger"),
    things=words(
        "raum zimmer gebäude port version nummer bestellung auftrag ticket flug abschnitt kapitel "
        "seite seiten zeile modell code fehler vorgang spalte reihe zelle tabelle feld blatt datei "
        "ordner roman film buch album lied spiel stufe schritt kanal klasse figur bus zug tor "
        "ausfahrt gleis platz sitz etage stock artikel größe namens genannt heißt linie haus"
    ),
    streets=words("straße platz allee weg"),
    measures=words(
        "personen leute benutzer nutzer zeilen wörter bytes mb gb kb tb ms px pixel dollar euro "
        "pfund usd eur prozent mal meilen km kilometer meter kalorien punkte studenten schüler "
        "mitarbeiter kunden dokumente dateien anfragen nachrichten einträge fälle grad stunden "
        "stunde minuten minute sekunden watt volt seiten bücher einheiten kopien stimmen kg gramm "
        "liter fragen stück"
    ),
    little=words(
        "der die das den dem des ein eine ich du er sie es wir ihr man mich mir dich dir uns euch "
        "mein meine sein seine unser wer was wann wo wie warum und oder aber wenn mit in im auf an "
        "am für von vom zu zum zur bei über nach vor seit bis aus als dann dort nicht nie immer "
        "wieder auch bitte war waren ist sind hat haben hatte habe hast wurde gewesen passiert "
        "gesagt gemacht los"
    ),
    clock=words("uhr h"),
    session=(
        r"(?:wir|ich|du)(?: uns)?(?: zuletzt| das letzte mal| letztes mal)? "
        r"(?:\w+ )?(?:gesprochen|geredet|gechattet|getroffen|unterhalten)(?: haben)?"
        r"|(?:unserem|unserer|unser|dem|der) "
        r"(?:letzten|vorigen) (?:gespräch|chat|sitzung|unterhaltung|treffen|anruf)"
        r"|dem letzten mal|letztem mal"
    ),
    clause_openers=words("ich wir du er sie es man mein meine"),
    has_capital_nouns=True,
)

__all__ = ["LANGUAGE"]
