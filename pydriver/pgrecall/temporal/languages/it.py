"""Italian."""

from __future__ import annotations

from . import (
    ADJECTIVE_LAST,
    AFTERNOON,
    EVENING,
    MORNING,
    NIGHT,
    NOON,
    SINCE,
    SKIPPING_FIRST,
    THE_FIFTEENTH,
    THE_WEEKEND,
    Language,
    Lexicon,
    contexts,
    words,
)

_MONTHS = (
    "gennaio|gen|genn, febbraio|feb|febb, marzo|mar, aprile|apr, maggio|mag, giugno|giu, "
    "luglio|lug, agosto|ago, settembre|sett|set, ottobre|ott, novembre|nov, dicembre|dic"
)
_WEEKDAYS = "lunedì, martedì, mercoledì, giovedì, venerdì, sabato, domenica"
_HOLIDAYS: dict[str, object] = {
    "natale, giorno di natale": (12, 25),
    "vigilia di natale, vigilia": (12, 24),
    "santo stefano": (12, 26),
    "capodanno": (1, 1),
    "san silvestro, notte di san silvestro": (12, 31),
    "epifania, befana": (1, 6),
    "san valentino": (2, 14),
    "festa della donna": (3, 8),
    "festa del papà": (3, 19),
    "pesce d' aprile": (4, 1),
    "festa della liberazione": (4, 25),
    "festa del lavoro, festa dei lavoratori, primo maggio": (5, 1),
    "festa della mamma": (5, 6, 2),
    "festa della repubblica": (6, 2),
    "ferragosto": (8, 15),
    "halloween": (10, 31),
    "ognissanti, tutti i santi": (11, 1),
    "giorno dei morti": (11, 2),
    "immacolata": (12, 8),
    "(giorno del /)ringraziamento": (11, 3, 4),
    "black friday, venerdì nero": (11, 3, 4, 1),
    "giovedì grasso": -52,
    "martedì grasso, carnevale": -47,
    "mercoledì delle ceneri": -46,
    "domenica delle palme": -7,
    "giovedì santo": -3,
    "venerdì santo": -2,
    "pasqua, domenica di pasqua": 0,
    "pasquetta, lunedì dell' angelo": 1,
    "pentecoste": 49,
}
_SMALL = (
    "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici "
    "quattordici quindici sedici diciassette diciotto diciannove"
).split()
_TENS = "venti trenta quaranta cinquanta sessanta settanta ottanta novanta".split()


def _say(number: int) -> str:
    if number < 20:
        return _SMALL[number]
    ten, unit = _TENS[number // 10 - 2], number % 10
    stem = ten[:-1] if unit in (1, 8) else ten
    return stem + {0: "", 1: "un(o/)", 3: "tré"}.get(unit, _SMALL[unit])


_YEARS = {
    1500: "millecinquecento(/ )",
    1600: "milleseicento(/ )",
    1700: "millesettecento(/ )",
    1800: "milleottocento(/ )",
    1900: "millenovecento(/ )",
    2000: "due(/ )mila(/ )",
}

_LEXICON = Lexicon()
_LEXICON.count("M", 1, _MONTHS)
_LEXICON.count("W", 0, _WEEKDAYS)
_PLURALS = _LEXICON.units(
    "giorno, giornata; giorni, giornate",
    "settimana; settimane",
    "quindicina; ",
    "fine settimana, fine - settimana, weekend, week - end, finesettimana; ",
    "mese; mesi",
    "trimestre; trimestri",
    "semestre; semestri",
    "anno; anni",
    "decennio; decenni",
    "secolo; secoli",
)
_LEXICON.holidays(_HOLIDAYS)
_LEXICON.numbers({number: _say(number) for number in range(100)}, _YEARS)
_LEXICON.centuries("{} secolo", "secolo {}")
_LEXICON.count("S", 0, "primavera, estate, autunno, inverno")
_LEXICON.count(
    "o",
    1,
    "prim(o/a/i/e), second(o/a), terz(o/a), quart(o/a), quint(o/a), sest(o/a), settim(o/a), "
    "ottav(o/a), non(o/a), decim(o/a), undicesim(o/a), dodicesim(o/a)",
)
_put = _LEXICON.put
for _number in range(13, 32):
    _put("o", _number, f"{_say(_number).replace('(o/)', 'o')[:-1]}esim(o/a)")
for _century, _name in enumerate(
    "duecento trecento quattrocento cinquecento seicento settecento ottocento novecento".split(), 13
):
    _put("q", ("century", _century), f"(il/l'/nel/nell'/del/dell') {_name}")
_put("u", 60, "ora, ore")
_put("u", 1, "minuto, minuti, min")
_put("D", 0, "oggi")
_put("D", -1, "ieri")
_put("D", 1, "domani")
for _part, _hours in {
    "(mattina/mattino)": MORNING,
    "(/a )mezzogiorno": NOON,
    "pomeriggio": AFTERNOON,
    "sera": EVENING,
    "notte": NIGHT,
}.items():
    for _day, _shift in (("oggi", 0), ("ieri", -1), ("domani", 1), ("(questa/questo)", 0)):
        _put("DP", (_shift, _hours), f"{_day} {_part}")
_put("DP", (0, EVENING), "stasera")
_put("DP", (0, MORNING), "stamattina, stamani, stamane")
_put("DP", (0, NIGHT), "stanotte")
_put("DP", (-1, NIGHT), "la notte scorsa, la scorsa notte")
_put("D", -2, "l' altro ieri, altroieri, avantieri, ieri l' altro, altro ieri")
_put("D", 2, "dopodomani, dopo domani")
_put(">", None, "più di, più d', oltre")
_put(">", "least", "almeno")
_put("<", None, "meno di, meno d', non più di, al massimo")
_put("J", None, "adesso, ora, presente, al presente")
_put("J", "date", "data (odierna/attuale/corrente/di oggi), giorno d' oggi, momento attuale")
_put("j", None, "fino ad (oggi/ora/adesso), finora, fino a oggi")
_put("@", "year", "anno in corso fino ad oggi, da inizio anno, dall' inizio dell' anno")
_put("f", "recent", "recentemente, ultimamente, di recente, negli ultimi tempi, poco fa")
_put("f", "other day", "l' altro giorno, l' altra sera")
_put("f", "other week", "l' altra settimana")
_put("*", None, "in questo periodo, di questi tempi, a quest' ora, nello stesso periodo")
_put("R", (-1, "last"), "scors(o/a/i/e), ultim(o/a/i/e), ultim', passat(o/a/i/e)")
_put("R", (-1, "previous"), "precedent(e/i)")
_put("R", (0, "this"), "quest(o/a/i/e), quest', stess(o/a)")
_put("R", (0, "current"), "corrente, attuale, in corso")
_put("R", (1, "next"), "prossim(o/a/i/e), seguent(e/i), successiv(o/a/i/e)")
_put("R", (1, "coming"), "che viene, che vengono, entrante, a venire")
_put("V", -2, "penultim(o/a), prima di quell(o/a) scors(o/a)")
_put("V", 2, "dopo (il/la) prossim(o/a)")
_put("h", None, "tutt(o/a), inter(o/a)")
_put("P", None, "mezzanotte")
for _part, _hours in {
    "(mattino/mattina)": MORNING,
    "pomeriggio": AFTERNOON,
    "sera": EVENING,
    "notte": NIGHT,
}.items():
    _put("P", _hours, f"(di /del /al /nel /alla /della /){_part}")
_put("P", NOON, "mezzogiorno, a mezzogiorno")
_put("P", MORNING, "in mattinata")
_put("P", EVENING, "in serata")
_put("E", "begin", "inizio, (all'/l'/agli/dall'/dell') (inizio/inizi), inizi, inizi di, primi di")
_put("E", "begin", "primi giorni, ai primi")
_put("E", "mid", "metà, (a/alla/verso/la/dalla) metà")
_put("E", "end", "fine, (alla/a/verso la/la/dalla) fine, fin")
_put("E", "early", "presto")
_put("E", "late", "tardi, tarda")
_put("E", "half1", "prima metà")
_put("E", "half2", "seconda metà")
_put("E", "rest", "resto")
_put("g", None, "fa, or sono, addietro")
_put("l", None, "da adesso, a partire da adesso")
_put("n", 2, "paio, paio di")
_put("n", 12, "dozzina di")
_put("v", 3, "qualche, alcuni, alcune, pochi, poche, diversi, diverse, parecchi")
_put("A", 1, "un, una, un'")
_put("B", None, "e mezz(o/a), mezz(o/a), mezz'")
_put("T", None, "il, lo, la, l', i, gli, le")
_put("OT", (None, None), "del, dello, della, dell', dei, degli, delle")
_put("m", None, "mio, mia, nostr(o/a)")
_put("O", None, "di, d'")
_put("i", "in", "in, tra, fra")
_put("iT", ("in", None), "nel, nello, nella, nell', nei, negli, nelle")
_put("i", "on", "in data, datato, con data")
_put("i", "at", "durante, nel corso (di/del/della/dell'), per, verso, circa, sull', sul, sulla")
_put("I", None, "entro")
_put("t", "to", "a, ad, ~")
_put("tT", ("to", None), "al, allo, alla, all', ai, agli, alle")
_put("t", "until", "fino a, fino ad, fino (al/alla/all'/ai), sino a, sino al")
_put("w", None, "tra, fra")
_put("&", None, "e, ed, &")
_put("|", None, "o, od, oppure")
_put("s", None, "da, dal, dalla, dall', dagli, dai, dalle, sin da, sin dal, fin da, fin dal")
_put("s", None, "a partire (da/dal/dalla/dall'/dai), a decorrere (da/dal), non prima di")
_put("a", None, "dopo, dopo (il/la/l'/di/del), successivo a, in seguito a")
_put("b", None, "prima (di/del/della/dell'/dello/dei/degli/delle), precedente a, precedente al")
_put("k", None, "entro e non oltre, non oltre, non più tardi di, al più tardi")
_put("G", None, "iniziando, cominciando, che inizia, che comincia, con inizio")
_put("p", None, "in poi, o dopo, o successivo, e dopo, o più tardi, in avanti")
_put("d", None, "o prima, e prima, o precedente")
_put("Y", None, "ann(o/i) (solar/fiscal)(e/i)")
_put("Y", "month", "mes(e/i) solar(e/i)")
_put("#", "w/c", "settimana che (inizia/comincia) (il/), settimana a partire dal")

LANGUAGE = Language(
    lexicon=_LEXICON,
    order=(
        (r"w(?=A?[nNv]U)", "i=in"),
        SKIPPING_FIRST,
        SINCE,
        *ADJECTIVE_LAST,
        THE_WEEKEND,
        THE_FIFTEENTH,
    ),
    plurals=_PLURALS,
    decade_words=words("anni"),
    ordinal_suffixes=words("° º ª o a mo ma"),
    quarters={"q": "q", "t": "q", "s": "h", "h": "h"},
    date_article="il",
    articles=words("il lo la l' i gli le"),
    bare=contexts(
        "da dal dalla dall' fino prima dopo del di dello dell' a ad al alla verso entro per",
        "in nel nell' nella durante circa anno",
        "il data",
        "in nell' nella dell' d' quest' dall' in",
    )
    | {"weekday": words("da dal di fino a prima dopo entro del questo di dello per")},
    ambiguous=words("set fin"),
    names=words(""),
    possessives=words("mio mia miei mie tuo tua suo sua suoi sue nostro nostra vostro loro"),
    every=words("ogni tutti tutte i le molti molte qualsiasi"),
    habitual=words("solitamente normalmente sempre spesso generalmente ogni tutti tutte"),
    general=words("quanti quante può possono normalmente generalmente media"),
    spanning=words("durante"),
    past=words("era erano fatto stato stati aveva avevano ho ha abbiamo hanno"),
    not_recent=words("più meno molto così"),
    things=words(
        "stanza camera sala edificio porta versione numero ordine biglietto volo sezione capitolo "
        "pagina pagine riga modello codice ticket errore colonna cella tabella campo foglio file "
        "cartella romanzo film libro album canzone gioco livello passo canale classe figura "
        "autobus treno uscita binario piano articolo posto taglia chiamato chiamata"
    ),
    streets=words("via viale piazza corso"),
    measures=words(
        "persone utenti righe parole byte mb gb kb tb ms px pixel dollari euro sterline usd eur "
        "percento volte miglia km chilometri metri calorie punti studenti dipendenti clienti "
        "documenti file messaggi voci casi gradi ore ora minuti secondi watt volt pagine libri "
        "unità copie voti kg grammi litri domande"
    ),
    little=words(
        "il lo la i gli le un una io tu lui lei noi voi loro mi ti si ci vi me te se mio mia suo "
        "sua chi che cosa quando dove come perché e ed o ma se con in nel a al alla per di del da "
        "dal su sul sulla prima dopo fino tra fra non mai sempre ancora anche è era erano sono ho "
        "ha hai abbiamo hanno fatto detto successo"
    ),
    clock=words("h"),
    session=(
        r"(?:ci siamo|abbiamo) (?:sentiti|parlato|visti|discusso)(?: l'ultima volta)?"
        r"|(?:quando )?(?:ci siamo|abbiamo) (?:sentiti|parlato|visti)"
        r"|(?:nostra |la nostra )?(?:ultima|precedente) (?:volta|conversazione|sessione|chiamata)"
        r"|ultima volta|ultima conversazione"
    ),
    clause_openers=words("quando che"),
    has_numbered_day=True,
    has_bare_weekday=True,
    has_elision=True,
)

__all__ = ["LANGUAGE"]
