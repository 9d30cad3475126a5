"""French."""

from __future__ import annotations

from . import (
    ADJECTIVE_LAST,
    AFTERNOON,
    AGO_FIRST,
    EARLY,
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
    "janvier|janv|jan, février|févr|fév, mars, avril|avr, mai, juin, juillet|juil, août, "
    "septembre|sept .|sep, octobre|oct, novembre|nov, décembre|déc"
)
_WEEKDAYS = "lundi, mardi, mercredi, jeudi, vendredi, samedi, dimanche"
_HOLIDAYS: dict[str, object] = {
    "noël, jour de noël": (12, 25),
    "réveillon de noël, veille de noël": (12, 24),
    "nouvel an, (le /)jour de l' an, jour du nouvel an": (1, 1),
    "saint (- /)sylvestre, réveillon du nouvel an": (12, 31),
    "épiphanie": (1, 6),
    "chandeleur": (2, 2),
    "saint (- /)valentin": (2, 14),
    "journée de la femme, journée internationale des femmes": (3, 8),
    "saint (- /)patrick": (3, 17),
    "poisson d' avril, premier avril": (4, 1),
    "fête du travail": {"": (5, 1), "CA": (9, 0, 1), "US": (9, 0, 1)},
    "fête des mères": {"": (5, 6, -1), "CA": (5, 6, 2), "BE": (5, 6, 2), "CH": (5, 6, 2)},
    "fête des pères": (6, 6, 3),
    "fête de la musique": (6, 21),
    "saint (- /)jean": (6, 24),
    "fête nationale": {"": (7, 14), "BE": (7, 21), "CH": (8, 1), "CA": (7, 1)},
    "assomption": (8, 15),
    "halloween": (10, 31),
    "toussaint": (11, 1),
    "armistice": (11, 11),
    "thanksgiving, action de grâce": {"": (11, 3, 4), "CA": (10, 0, 2)},
    "vendredi noir, black friday": (11, 3, 4, 1),
    "mardi gras": -47,
    "mercredi des cendres": -46,
    "(dimanche des /)rameaux": -7,
    "jeudi saint": -3,
    "vendredi saint": -2,
    "pâques, dimanche de pâques": 0,
    "lundi de pâques": 1,
    "ascension": 39,
    "pentecôte": 49,
    "lundi de pentecôte": 50,
}
_SMALL = (
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize"
).split()
_TENS = "vingt trente quarante cinquante soixante".split()


def _say(number: int) -> str:
    if number < 17:
        return _SMALL[number]
    if number < 20:
        return f"dix (- /){_SMALL[number - 10]}"
    if number >= 80:
        rest = number - 80
        return f"quatre (- /)vingt(s/) (- /){_say(rest)}" if rest else "quatre (- /)vingt(s/)"
    ten, unit = (60, number - 60) if number >= 60 else (number // 10 * 10, number % 10)
    word = _TENS[ten // 10 - 2]
    if unit == 0:
        return word
    return (
        f"{word} (- et - /et /- /){_say(unit)}" if unit in (1, 11) else f"{word} (- /){_say(unit)}"
    )


_YEARS = {
    1700: "mille sept cent ",
    1800: "mille huit cent ",
    1900: "mille neuf cent ",
    2000: "deux mille ",
}

_LEXICON = Lexicon()
_LEXICON.count("M", 1, _MONTHS)
_LEXICON.count("W", 0, _WEEKDAYS)
_PLURALS = _LEXICON.units(
    "jour, journée; jours, journées",
    "semaine, semaine - ci; semaines",
    "quinzaine; quinzaines",
    "week - end, weekend, fin de semaine; week - ends, weekends, fins de semaine",
    "mois, mois - ci; ",
    "trimestre; trimestres",
    "semestre; semestres",
    "an, année, année - ci; ans, années",
    "décennie; décennies",
    "siècle; siècles",
)
_LEXICON.holidays(_HOLIDAYS)
_LEXICON.numbers({number: _say(number) for number in range(100)}, _YEARS)
_LEXICON.centuries("{}e siècle", "{}ème siècle")
_LEXICON.count("S", 0, "printemps, été|étés, automne|automnes, hiver|hivers")
_LEXICON.count(
    "o",
    1,
    "prem(ier/ière/iers/ières), deuxième|second(/e), troisième, quatrième, cinquième, sixième, "
    "septième, huitième, neuvième, dixième, onzième, douzième",
)

_put = _LEXICON.put
for _number, _name in enumerate(("premier", "deuxième", "troisième", "quatrième"), 1):
    _put("oU", (_number, "quarter"), f"{_name} quart")
_put("u", 60, "heure, heures")
_put("u", 1, "minute, minutes, min")
_put("D", 0, "aujourd' hui")
_put("D", -1, "hier")
_put("D", 1, "demain, le lendemain")
_put("Ua", ("day", None), "le lendemain (de/du/des/d')")
_put("Ub", ("day", None), "la veille (de/du/des/d')")
for _part, _hours in {
    "matin": MORNING,
    "midi": NOON,
    "après - midi": AFTERNOON,
    "soir": EVENING,
}.items():
    _put("DP", (0, _hours), f"(ce/cet) {_part}")
    _put("DP", (-1, _hours), f"hier {_part}")
    _put("DP", (1, _hours), f"demain {_part}")
_put("DP", (0, NIGHT), "cette nuit")
_put("DP", (-1, NIGHT), "la nuit (dernière/passée)")
_put("D", -2, "avant - hier, avant hier")
_put("D", 2, "après - demain, après demain")
_put(">", None, "plus de, plus d'")
_put(">", "least", "au moins")
_put("<", None, "moins de, moins d', pas plus de, pas plus d', au plus")
_put("J", None, "maintenant, à présent, présent")
_put("J", "date", "date (actuelle/courante/d' aujourd' hui/du jour), ce jour, moment présent")
_put("j", None, "jusqu' à présent, jusqu' à maintenant, jusqu' ici, à ce jour")
_put("@", "year", "année à ce jour, depuis le début de l' année")
_put("f", "recent", "récemment, dernièrement, ces derniers temps, ces temps - ci, il y a peu")
_put("f", "other day", "l' autre jour, l' autre soir")
_put("f", "other week", "l' autre semaine")
_put("*", None, "à la même époque, à cette époque, à pareille époque, à la même période")
_put("R", (-1, "last"), "derni(er/ère/ers/ères), passé(/e/s/es)")
_put("R", (-1, "previous"), "précédent(/e/s/es), d' avant, antérieur(/e)")
_put("R", (0, "this"), "ce, cet, cette, ces")
_put("R", (0, "current"), "actuel(/le), en cours, courant(/e)")
_put("R", (1, "next"), "prochain(/e/s/es), suivant(/e/s/es), d' après")
_put("R", (1, "coming"), "à venir, qui vient, qui viennent")
_put("V", -2, "avant - derni(er/ère), d' il y a deux")
_put("V", 2, "après le prochain, après la prochaine")
_put("h", None, "tout(/e)")
_put("P", None, "minuit")
_put("P", MORNING, "matin, matinée, au matin, du matin, dans la matinée")
_put("P", EARLY, "tôt le matin")
_put("P", NOON, "midi, à midi")
_put("P", AFTERNOON, "après - midi, de l' après - midi, dans l' après - midi")
_put("P", EVENING, "soir, soirée, au soir, du soir, dans la soirée")
_put("P", NIGHT, "nuit, dans la nuit")
_put("E", "begin", "début, au début, commencement, au commencement, en début, dès le début")
_put("E", "early", "tôt")
_put("E", "earlier", "plus tôt")
_put("E", "mid", "mi, milieu, au milieu, à la mi, courant")
_put("E", "end", "fin, à la fin, en fin")
_put("E", "late", "tard")
_put("E", "later", "plus tard")
_put("E", "half1", "première moitié")
_put("E", "half2", "deuxième moitié, seconde moitié")
_put("E", "rest", "reste")
_put(
    "K",
    None,
    "il y a, il y a (environ/presque/à peu près), il ya, y a, voilà, ça fait",
)
_put("l", None, "plus tard, à partir de maintenant")
_put("n", 2, "couple de")
_put("n", 12, "douzaine de")
_put("v", 3, "quelques, plusieurs")
_put("A", 1, "un, une")
_put("B", None, "et demi, et demie, demi, demie, une demi -")
_put("T", None, "le, la, les, l'")
_put("OT", (None, None), "du, des")
_put("m", None, "mon, ma, notre")
_put("O", None, "de, d'")
_put("i", "in", "dans, d' ici")
_put("i", "on", "en date du, daté du, datée du")
_put("i", "at", "en, durant, pendant, lors de, lors du, au cours de, au cours du, vers, pour")
_put("I", None, "en moins de")
_put("t", "to", "à, au, aux, ~")
_put("t", "until", "jusqu' à, jusqu' au, jusqu' en, jusqu' aux, jusque")
_put("w", None, "entre")
_put("&", None, "et, &")
_put("|", None, "ou")
_put("s", None, "depuis, dès, à partir de, à partir du, à compter de, à compter du, à partir d'")
_put("a", None, "après, postérieur à, ultérieur à")
_put("b", None, "avant, antérieur à, avant de")
_put("k", None, "au plus tard, pas plus tard que")
_put("G", None, "commençant, commençant le, à commencer par, qui commence le, débutant le")
_put("p", None, "ou plus tard, ou après, et après, et au - delà, ou ultérieur")
_put("d", None, "ou avant, et avant, ou plus tôt, ou antérieur")
_put("Y", None, "année(/s) (civile/fiscale/calendaire)(/s)")
_put("Y", "month", "mois (civil/calendaire)(/s)")
_put("#", "w/c", "semaine (commençant/débutant) (le/), semaine qui (commence/débute) (le/)")

LANGUAGE = Language(
    lexicon=_LEXICON,
    order=(SKIPPING_FIRST, AGO_FIRST, SINCE, *ADJECTIVE_LAST, THE_WEEKEND, THE_FIFTEENTH),
    plurals=_PLURALS,
    decade_words=words("années"),
    ordinal_suffixes=words("er re ère e ème eme nd nde ième"),
    quarters={"q": "q", "t": "q", "s": "h", "h": "h"},
    date_article="le",
    articles=words("le la les l'"),
    bare=contexts(
        "depuis jusqu'à jusqu'au jusqu'en à au dès avant après vers",
        "en de d' durant pendant du pour courant",
        "le du daté sur",
        "en au cet depuis",
    )
    | {
        "weekday": words("depuis jusqu'à à dès avant après ce du"),
    },
    ambiguous=words("été"),
    names=words("avril mai"),
    toward=words("à de d' avec pour par"),
    possessives=words("mon ma mes ton ta tes son sa ses notre votre leur"),
    ages=words("ans"),
    every=words("chaque tous toutes les"),
    habitual=words("habituellement généralement toujours souvent d'habitude chaque tous toutes"),
    general=words("combien peut peuvent généralement moyenne"),
    spanning=words("durant pendant"),
    past=words("était étaient fait eu allé avons avait"),
    not_recent=words("plus moins très aussi"),
    things=words(
        "salle chambre bâtiment port version numéro commande billet vol section chapitre page "
        "pages ligne modèle code ticket bug colonne rangée cellule table champ feuille fichier "
        "dossier roman film livre album chanson jeu niveau étape canal erreur bus train porte "
        "sortie route étage article place taille nommé appelé"
    ),
    streets=words("rue avenue place boulevard quai"),
    measures=words(
        "personnes utilisateurs lignes mots octets mo go ko to ms px pixels dollars euros livres "
        "usd eur pour_cent fois km kilomètres mètres calories points étudiants employés clients "
        "documents fichiers messages entrées cas degrés heures heure minutes secondes watts pages "
        "unités copies voix kg grammes litres questions"
    ),
    little=words(
        "le la les l' un une je j' tu il elle nous vous ils elles on me m' te t' se s' lui leur "
        "mon ma mes son sa ses qui que qu' quoi quand où comment pourquoi et ou mais si avec dans "
        "en à au aux par pour de d' du des depuis avant après jusqu' entre comme ne n' pas jamais "
        "encore aussi est était sont a ai as avons avez ont avait sur chez dernier"
    ),
    clock=words("h"),
    session=(
        r"(?:que |qu')?(?:nous nous sommes|on s'est|nous avons|on a) "
        r"(?:parlé|parlés|discuté|vus|échangé)(?: pour la dernière fois)?"
        r"|notre (?:dernière|dernier|précédente) "
        r"(?:conversation|discussion|session|réunion|échange|appel)"
        r"|la dernière (?:fois|conversation|session)"
    ),
    clause_openers=words("que qu'il qu'elle qu'on je nous"),
    has_bare_weekday=True,
    has_elision=True,
)

__all__ = ["LANGUAGE"]
