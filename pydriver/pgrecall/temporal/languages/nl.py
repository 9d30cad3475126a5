"""Dutch."""

from __future__ import annotations

from . import (
    AFTERNOON,
    EVENING,
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
    "januari|jan, februari|feb|febr, maart|mrt, april|apr, mei, juni|jun, juli|jul, "
    "augustus|aug, september|sep|sept, oktober|okt, november|nov, december|dec"
)
_WEEKDAYS = (
    "maandag|ma ., dinsdag|di ., woensdag|wo ., donderdag|do ., vrijdag|vr ., zaterdag|za ., "
    "zondag|zo ."
)
_HOLIDAYS: dict[str, object] = {
    "kerst, kerstmis, eerste kerstdag, kerstdag, 1e kerstdag": (12, 25),
    "kerstavond": (12, 24),
    "tweede kerstdag, 2e kerstdag": (12, 26),
    "nieuwjaar, nieuwjaarsdag": (1, 1),
    "oudjaar, oudjaarsdag, oudejaarsavond, oudejaarsdag, oud en nieuw": (12, 31),
    "driekoningen": (1, 6),
    "valentijnsdag, valentijn": (2, 14),
    "vrouwendag, internationale vrouwendag": (3, 8),
    "koningsdag": (4, 27),
    "dag van de arbeid": (5, 1),
    "dodenherdenking": (5, 4),
    "bevrijdingsdag": (5, 5),
    "moederdag": (5, 6, 2),
    "vaderdag": {"": (6, 6, 3), "BE": (6, 6, 2)},
    "prinsjesdag": (9, 1, 3),
    "dierendag": (10, 4),
    "halloween": (10, 31),
    "allerheiligen": (11, 1),
    "allerzielen": (11, 2),
    "sint maarten": (11, 11),
    "sinterklaas, sinterklaasavond, pakjesavond": (12, 5),
    "thanksgiving": (11, 3, 4),
    "black friday": (11, 3, 4, 1),
    "carnaval": -49,
    "aswoensdag": -46,
    "palmzondag, palmpasen": -7,
    "witte donderdag": -3,
    "goede vrijdag": -2,
    "pasen, eerste paasdag, paaszondag, 1e paasdag": 0,
    "tweede paasdag, paasmaandag, 2e paasdag": 1,
    "hemelvaart, hemelvaartsdag": 39,
    "pinksteren, eerste pinksterdag": 49,
    "tweede pinksterdag, pinkstermaandag": 50,
}
_SMALL = (
    "nul één twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien "
    "zestien zeventien achttien negentien"
).split()
_TENS = "twintig dertig veertig vijftig zestig zeventig tachtig negentig".split()


def _say(number: int) -> str:
    if number < 20:
        return _SMALL[number]
    ten, unit = _TENS[number // 10 - 2], number % 10
    if unit == 0:
        return ten
    one = "een" if unit == 1 else _SMALL[unit]
    return f"{one}{'ën' if one.endswith('e') else 'en'}{ten}"


def _say_place(number: int) -> str:
    if number in (1, 3, 8):
        return {1: "eerste", 3: "derde", 8: "achtste"}[number]
    return _say(number) + ("de" if number < 20 else "ste")


_YEARS = {
    1700: "zeventienhonderd(/ )",
    1800: "achttienhonderd(/ )",
    1900: "negentienhonderd(/ )",
    2000: "tweeduizend(/ )",
}

_LEXICON = Lexicon()
_LEXICON.count("M", 1, _MONTHS)
_LEXICON.count("W", 0, _WEEKDAYS)
_PLURALS = _LEXICON.units(
    "dag; dagen",
    "week; weken",
    "; ",
    "weekend, weekeinde, week - end, week - einde; weekenden, weekends",
    "maand; maanden",
    "kwartaal; kwartalen",
    "halfjaar, half jaar; halve jaren",
    "jaar; jaren",
    "decennium; decennia",
    "eeuw; eeuwen",
)
_LEXICON.holidays(_HOLIDAYS)
_LEXICON.numbers({number: _say(number) for number in range(100)}, _YEARS)
_LEXICON.count("S", 0, "lente|voorjaar, zomer, herfst|najaar, winter")

_put = _LEXICON.put
for _number in range(1, 32):
    _put("o", _number, _say_place(_number))
_put("u", 60, "uur, uren")
_put("u", 1, "minuut, minuten, min")
for _part, _hours in {
    "(ochtend/morgen)": MORNING,
    "middag": AFTERNOON,
    "avond": EVENING,
    "nacht": NIGHT,
}.items():
    _put("DP", (0, _hours), f"van{_part}")
    _put("DP", (-1, _hours), f"gister{_part}, gisteren{_part}")
    for _number, _name in enumerate(_WEEKDAYS.split(",")):
        _put("WP", (_number, _hours), f"{_name.split('|')[0].strip()}{_part}")
    _put("DP", (1, _hours), f"morgen{_part}".replace("(ochtend/morgen)", "ochtend"))
_put("D", 0, "vandaag, heden")
_put("D", -1, "gisteren, gister")
_put("DP", (-1, NIGHT), "(afgelopen/vorige) nacht")
_put("D", 1, "morgen")
_put("D", -2, "eergisteren, eergister")
_put("D", 2, "overmorgen")
_put(">", None, "meer dan, langer dan, ruim")
_put(">", "least", "minstens, tenminste, ten minste")
_put("<", None, "minder dan, hooguit, hoogstens, maximaal")
_put("J", None, "nu, heden, het heden, vandaag de dag")
_put("J", "date", "huidig(e) (datum/dag/moment), datum van vandaag, dag van vandaag")
_put("j", None, "tot nu, tot nu toe, tot op heden, tot heden, tot dusver, tot vandaag")
_put("@", "year", "jaar tot nu toe, dit jaar tot nu toe, sinds begin dit jaar, jaar tot op heden")
_put("f", "recent", "onlangs, recent, recentelijk, kortgeleden, kort geleden, pasgeleden, laatst")
_put("f", "recent", "de laatste tijd, de afgelopen tijd")
_put("*", None, "rond deze tijd, om deze tijd, deze tijd")
_put("R", (-1, "last"), "vorig(/e), laatst(e), voorbije, verleden, jongstleden")
_put("R", (-1, "past"), "afgelopen")
_put("R", (-1, "previous"), "voorgaand(/e), voorafgaand(/e)")
_put("R", (0, "this"), "deze, dit, dezelfde")
_put("R", (0, "current"), "huidig(/e), lopend(/e)")
_put("R", (1, "next"), "volgend(/e), eerstvolgend(/e)")
_put("R", (1, "coming"), "komend(/e), aankomend(/e), aanstaand(/e), (deze/dit) komend(/e)")
_put("V", -2, "voorlaatst(/e), eervorig(/e)")
_put("V", 2, "na de volgende, na volgende")
_put("h", None, "hele, gehele, heel")
_put("P", MORNING, "(in de /)ochtend, ('s/' s) (ochtends/morgens), ochtends")
_put("P", AFTERNOON, "(in de /)middag, ('s/' s) middags")
_put("P", EVENING, "(in de /)avond, ('s/' s) avonds, avonds")
_put("P", NIGHT, "(in de /)nacht, ('s/' s) nachts")
_put("P", NOON, "tussen de middag, twaalf uur 's middags")
_put("E", "begin", "begin, aan het begin, het begin, start, de start, in het begin, aanvang")
_put("E", "early", "vroeg, vroeg in")
_put("E", "earlier", "eerder, eerder in")
_put("E", "mid", "midden, medio, half, halverwege, het midden, in het midden")
_put("E", "end", "eind, einde, het eind(/e), aan het eind(/e), op het eind(/e), tegen het eind(/e)")
_put("E", "late", "laat, laat in")
_put("E", "later", "later, later in")
_put("E", "half1", "(eerste/1e) helft")
_put("E", "half2", "(tweede/2e) helft")
_put("E", "rest", "rest")
_put("g", None, "geleden, terug")
_put("l", None, "vanaf nu, later")
_put("n", 2, "paar van")
_put("n", 12, "dozijn")
_put("v", 3, "een paar, paar, enkele, enige, verscheidene, meerdere, een aantal")
_put("A", 1, "een, 'n")
_put("nB", (1, None), "anderhalf, anderhalve")
_put("nB", (2, None), "tweeëneenhalf, tweeënhalf, twee en een (half/halve)")
_put("B", None, "en een half, en een halve, half, halve")
_put("E", "mid", "half")
_put("T", None, "de, het, 't")
_put("m", None, "mijn, m'n, onze, ons")
_put("O", None, "van")
_put("i", "in", "in, over")
_put("i", "on", "op, gedateerd, op datum van")
_put("i", "for", "voor de")
_put("i", "at", "tijdens, gedurende, rond, om, bij, met, omstreeks, circa, aan")
_put("I", None, "binnen")
_put("t", "to", "naar, ~")
_put("t", "until", "tot, tot en met, t / m, tot aan, t.e.m.")
_put("w", None, "tussen")
_put("&", None, "en, &")
_put("|", None, "of")
_put("s", None, "sinds, sedert, vanaf, van af, met ingang van, niet eerder dan, ingaande")
_put("a", None, "na, later dan")
_put("b", None, "voor, vóór, eerder dan, voordat, voorafgaand aan")
_put("k", None, "uiterlijk, uiterlijk op, niet later dan, tegen, op zijn laatst")
_put("G", None, "beginnend, beginnend op, te beginnen op, startend op, startend, gerekend vanaf")
_put("p", None, "of later, en later, en daarna, of daarna")
_put("d", None, "of eerder, en eerder, en daarvoor, of daarvoor")
_put("Y", None, "kalenderja(ar/ren), boekjaar, fiscaal jaar")
_put("Y", "month", "kalendermaand(/en)")
_put("#", "w/c", "week die begint op, week beginnend op, week vanaf, week startend op")

LANGUAGE = Language(
    lexicon=_LEXICON,
    order=(SKIPPING_FIRST, THE_WEEKEND, SINCE, (r"([UWMSH])(R)(?=$|[;.,])", "2 1")),
    plurals=_PLURALS,
    decade_words=words("jaren"),
    ordinal_suffixes=words("e ste de ᵉ"),
    quarters={"q": "q", "k": "q", "h": "h"},
    articles=words("de het"),
    bare=contexts(
        "sinds tot voor na vanaf tegen rond met",
        "in van tijdens gedurende over om jaar",
        "op de bij afgelopen",
        "sinds",
    ),
    names=words("april"),
    toward=words("van met voor naar over"),
    possessives=words("mijn jouw je zijn haar ons onze jullie hun uw"),
    every=words("elke iedere ieder elk alle veel meeste"),
    habitual=words("gewoonlijk meestal altijd normaal doorgaans vaak elke iedere elk ieder"),
    general=words("hoeveel kan kunnen zou gemiddeld normaal"),
    spanning=words("gedurende tijdens"),
    past=words("was waren had hadden heeft heb hebben werd ging"),
    not_recent=words("meer minder zo"),
    things=words(
        "kamer zaal gebouw poort versie nummer bestelling ticket vlucht paragraaf hoofdstuk pagina "
        "pagina's regel model code fout zaak kolom rij cel tabel veld blad bestand map roman film "
        "boek album lied spel niveau stap kanaal klas figuur bus trein deur uitgang route spoor "
        "verdieping artikel stoel maat genaamd heet huis lijn"
    ),
    streets=words("straat laan plein weg"),
    measures=words(
        "mensen personen gebruikers rijen woorden bytes mb gb kb tb ms px pixels dollar dollars "
        "euro euro's pond usd eur procent keer mijl km kilometer meter calorieën punten studenten "
        "leerlingen medewerkers klanten documenten bestanden berichten items gevallen graden uur "
        "uren minuten minuut seconden watt volt boeken eenheden kopieën stemmen kg gram liter "
        "vragen stuks"
    ),
    little=words(
        "de het een ik jij je hij zij ze wij we jullie u men me mij jou hem haar ons hun mijn jouw "
        "zijn wie wat wanneer waar hoe waarom en of maar als met in op aan voor van naar bij over "
        "na sinds tot uit door dan toen daar niet nooit altijd weer ook alsjeblieft was waren is "
        "had heb heeft hebben gedaan gezegd gebeurd werd er terug weg"
    ),
    clock=words("u uur"),
    session=(
        r"(?:we|wij|ik)(?: elkaar)?(?: voor het laatst)?(?: hebben)? ?"
        r"(?:spraken|gesproken|praatten|chatten|zagen)(?: hebben)?"
        r"|(?:ons|onze|het|de) (?:laatste|vorige) (?:gesprek|chat|sessie|ontmoeting|vergadering)"
        r"|de (?:laatste|vorige) keer"
    ),
    clause_openers=words("ik we wij je jij hij zij ze mijn"),
    has_bare_weekday=True,
)

__all__ = ["LANGUAGE"]
