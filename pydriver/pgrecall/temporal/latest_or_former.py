"""Detect whether a question asks for the latest state of something or for a former one.

"Where does Ana live now?" asks for the newest of several answers, "Where did Ana use to live?" for
an older one. Each language has the words that say so by themselves. Adjectives such as "last" and
"old" say so only where the question asks for the thing itself ("What was the last offer?"). Other
wordings are left to the embedding (inference/time_order.py) and to the order of hits that say
nearly the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

_LONGEST = 1_000  # maximum characters that are read
_STILL = re.compile(
    r"\b(?:still|noch|nach wie|todav[ií]a|a[uú]n|toujours|encore|ancora|tuttora|nog|ainda)\b"
)


@dataclass(frozen=True, slots=True)
class _Words:
    """Regular expressions over lower-case words.

    In them, NOUN is a following word that is no UNIT, and END the end of a clause.

    Attributes:
        latest: Words for the latest state.
        former: Words for a former state.
        neither: Phrases that look like one but are not; they have precedence.
        last: Adjectives for the latest state where the question asks for the thing itself.
        first: Adjectives for a former state there.
        asked: The question word and the verb of such a question.
        units: Units of time and other nouns that have no states: "last week", "one thing".

    """

    latest: str
    former: str
    neither: str
    last: str
    first: str
    asked: str
    units: str


_LANGUAGES = {
    "en": _Words(
        latest=(
            r"latest|newest|most recent(?:ly)?|up[- ]to[- ]date|currently|current NOUN|presently"
            r"|nowadays|these days|now|at (?:the moment|present)|still|to this day"
        ),
        former=(
            r"used to|did(?:n't)? (?:\w+ ){1,4}(?:use to|first END)|previously|formerly|originally"
            r"|initially|(?:former|original|initial|previous) NOUN|no longer|any ?more|at first"
            r"|to begin with|in the past|before(?: that)? END"
            r"|(?:before|prior to) \w+ (?:current|new) NOUN"
        ),
        neither=(
            r"now (?:and (?:then|again)|that)|(?:from|by|until|till|up to|just) now|at the latest"
            r"|(?:first|last) names?"
            r"|the UNIT before|(?:ever|never) (?:\w+ ){1,4}before|\w+'(?:s|re|m) used to"
            r"|(?:gets?|got|be|been|is|are|am|was|were) (?:(?!who|that|which)\w+ ){0,3}used to"
        ),
        last=r"last|final",
        first=r"first|old",
        asked=r"(?:what|which|where)(?: is| are| was| were|'s)",
        units=r"(?:time|date|day|week|month|quarter|year|season|night|one|thing)s?",
    ),
    "de": _Words(
        latest=(
            r"(?:aktuell|derzeitig|gegenwärtig|momentan|jetzig|neuest)(?:e[rnms]?)?"
            r"|derzeit|zurzeit|zur zeit|im (?:moment|augenblick)|jetzt|heutzutage"
            r"|nach wie vor|weiterhin|zuletzt|inzwischen|mittlerweile|(?:immer|heute) noch"
            r"|noch(?= (?:immer|heute|in|bei|mit|an|am|als|im|auf|für|zu[rm]?|beim|dort|hier)\b)"
        ),
        former=(
            r"(?:früher|ehemalig|ursprünglich|anfänglich|bisherig|vorherig|vorig|einstig|damalig)"
            r"(?:e[rnms]?)?|ehemals|vormals|einst|damals|anfangs|zuerst|zunächst"
            r"|nicht (?:mehr|länger)|(?:vorher|davor|zuvor) END|in der vergangenheit"
        ),
        neither=(
            r"(?:bis|ab|von|erst) jetzt|(?:je )?früher (?:als|oder|auf)|nicht mehr als"
            r"|zur zeit (?:der|des|von)|\w+e[rnms]? UNIT"
        ),
        last=r"letzte[rnms]?",
        first=r"(?:erst|alt)e[rnms]?",
        asked=r"(?:was|wie|wo|welche[rs]?) (?:ist|sind|war|waren|lautet)",
        units=r"mal|zeit|uhrzeit|datum|tage?|wochen?|monate?|quartal|jahre?|nacht|abend|stunden?",
    ),
    "es": _Words(
        latest=(
            r"actual(?:es|mente)?|ahora|hoy en día|en (?:este|estos) momentos?|de momento"
            r"|por (?:el momento|ahora)|todav[ií]a|a[uú]n|más recientes?|vigentes?|en vigor"
            r"|siguen?(?= \w+ndo)|^\W*siguen?"
        ),
        former=(
            r"antes|anterior(?:es|mente)?|previamente|antiguamente|original(?:es|mente)?"
            r"|inicial(?:es|mente)?|al principio|ya no|solía[ns]?|en el pasado|primero END"
        ),
        neither=(
            r"(?:todavía|aún) (?:no|más|así)|(?:hasta|desde|de|a partir de) ahora"
            r"|antes (?:del?|que|posible|o después)|cuanto antes|UNIT antes|anterior al?"
            r"|al principio del?|UNIT (?:anterior|actual)(?:es)?|primer nombre"
        ),
        last=r"[uú]ltim[oa]s?",
        first=r"primera?s?|antigu[oa]s?",
        asked=r"(?:cuál|qué|dónde) (?:es|era|fue|está|estaba)",
        units=r"vez|veces|hora|fecha|día|noche|tarde|semana|mes|trimestre|año|siglo",
    ),
    "fr": _Words(
        latest=(
            r"actuel(?:le)?s?|actuellement|maintenant|à présent|en ce moment|de nos jours"
            r"|pour (?:l'instant|le moment)|à l'heure actuelle|toujours|encore|plus récente?s?"
            r"|en vigueur|continue(?:nt)? à"
        ),
        former=(
            r"avant END|auparavant|autrefois|jadis|anciennement|précédemment|initialement"
            r"|à l'origine|au départ|d'abord|à l'époque|dans le passé|initial(?:e|es)?"
            r"|précédente?s?|(?:(?<=ne )|(?<=n'))\w+(?:-\w+)* plus(?! (?:de|que)\b)"
        ),
        neither=(
            r"(?:jusqu'à|à partir de|dès) (?:maintenant|présent)|maintenant que|pas encore"
            r"|encore (?:une?|plus|moins|fois)|(?:qui|quoi|où) encore|(?:pour|depuis) toujours"
            r"|UNIT (?:précédent|actuel)\w*|tout d'abord|à l'(?:origine|époque) d|au départ d"
            r"|d'avant"
        ),
        last=r"derni(?:er|ère)s?",
        first=r"premi(?:er|ère)s?|ancien(?:ne)?s?",
        asked=r"(?:quel(?:le)?s?|où) (?:est|sont|était|étaient)",
        units=r"fois|heure|date|jour|nuit|soir|semaine|mois|trimestre|année?|siècle",
    ),
    "it": _Words(
        latest=(
            r"attual(?:e|i|mente)|adesso|(?:in questo|al) momento|per ora|oggigiorno"
            r"|al giorno d'oggi|tuttora|ancora|ora END|vigent[ei]|in vigore|più recent[ei]"
            r"|continua(?:no)? a"
        ),
        former=(
            r"prima END|in precedenza|precedentemente|precedent[ei]|un tempo|in origine"
            r"|originari(?:[oa]|amente)|inizial(?:[ei]|mente)|all'inizio|in passato"
            r"|(?<=non )\w+(?: \w+)? più(?! (?:di|che)\b)"
        ),
        neither=(
            r"(?:un'|che |\d+ )ora|(?:fino ad|da) (?:ora|adesso)|non(?: \w+)? ancora"
            r"|ancora (?:una?|più|meno)|all'inizio d\w+|precedente a\w?"
            r"|UNIT (?:precedente|attuale)|(?:la|una) prima|prima (?:di|del\w*|che)|primo nome"
        ),
        last=r"ultim[oa]",
        first=r"prim[oa]|vecchi[oa]",
        asked=r"(?:qual|cosa|che cosa|dove|dov') ?(?:è|era|sono|erano)",
        units=r"volta|ora|data|giorno|notte|sera|settimana|mese|trimestre|anno|secolo",
    ),
    "nl": _Words(
        latest=(
            r"huidige?|momenteel|tegenwoordig|thans|op dit (?:moment|ogenblik)|nu|inmiddels"
            r"|vandaag de dag|meest recente?|nieuwste|actuele|laatst|nog (?:steeds|altijd)"
            r"|nog(?= (?:in|bij|op|met|voor|als|aan|te)\b)"
        ),
        former=(
            r"vroegere?|voorheen|eerdere|oorspronkelijke?|aanvankelijke?|destijds|voormalige?"
            r"|(?:eerst|eerder|daarvoor|ervoor) END|niet (?:meer|langer)|geen \w+ meer"
            r"|in het (?:verleden|begin)|vorige? NOUN"
        ),
        neither=(
            r"nu en dan|(?:tot|vanaf|van|net) nu|nu eenmaal|vroeger dan|niet meer dan"
            r"|in het begin van|huidige UNIT|eerste naam|voor het (?:eerst|laatst)"
        ),
        last=r"laatste",
        first=r"eerste|oude?",
        asked=r"(?:wat|waar|welke?) (?:is|zijn|was|waren)",
        units=r"keer|tijd|datum|uur|dag|nacht|avond|week|maand|kwartaal|jaar|eeuw",
    ),
    "pt": _Words(
        latest=(
            r"atua(?:l|is|lmente)|actualmente|agora|hoje em dia|n(?:o|este) momento|por enquanto"
            r"|ainda|continuam?|mais recentes?|vigentes?|em vigor"
        ),
        former=(
            r"antes|anterior(?:es|mente)?|previamente|antigamente|original(?:mente)?|outrora"
            r"|inicial(?:mente)?|no início|já não|costumavam?|no passado|primeiro END"
            r"|(?<=não )\w+(?: \w+)? mais(?! (?:d[eo]|que)\b)"
        ),
        neither=(
            r"ainda (?:não|mais|bem|assim|que)|(?:até|de|a partir de) agora|agora que"
            r"|antes (?:d[eoa]s?|que)|quanto antes|anterior (?:ao?|à)|no início d\w+"
            r"|UNIT (?:anterior|atual)|(?:primeiro|último) nome"
        ),
        last=r"últim[oa]s?",
        first=r"primeir[oa]s?|antig[oa]s?",
        asked=r"(?:qual|quais|onde) (?:é|são|era|eram|foi|ficava?)",
        units=r"vez|hora|data|dia|noite|semana|mês|trimestre|ano|século",
    ),
}


def read_latest_or_former(
    text: str,
    *,
    language: str = "en",
    latest: Iterable[str] = (),
    former: Iterable[str] = (),
) -> Literal["latest", "former", "neither"] | None:
    """Return the state that a question asks for, the latest or a former one; None for none.

    "neither" is returned for phrases that only look like one ("now and then").

    A question with words of both kinds asks for a former state ("Where did she work before the job
    she has now?"), unless it has the word "still".

    Args:
        text: The question; its first 1,000 characters are read.
        language: Code of the language: "en", "de", "es", "fr", "it", "nl" or "pt".
        latest: Additional words or phrases for the latest state, in upper or lower case, also as
            part of a name.
        former: Additional words or phrases for a former state.

    Raises:
        ValueError: the language is unknown.

    """
    read = text[:_LONGEST].replace("\u2019", "'")
    low = read.lower()
    if len(low) != len(read):  # some letters get longer in lower case
        low = read
    own = _those_in(low, latest), _those_in(low, former)
    pattern, asked = _patterns(language, *own)
    found: set[str | None] = set()
    for match in pattern.finditer(low):
        kind = match.lastgroup
        if kind in ("last", "first") and not asked.fullmatch(low[: match.start()]):
            continue
        if match[0] in own[0] + own[1] or not _is_a_name(read, match):
            found.add("still" if kind == "latest" and _STILL.search(match[0]) else kind)
    if found & {"former", "first"} and "still" not in found:
        return "former"
    if found & {"latest", "last", "still"}:
        return "latest"
    return "neither" if found else None


def _those_in(low: str, words: Iterable[str]) -> tuple[str, ...]:
    """Return the caller's words that occur in a text; a pattern of all of them would be slow."""
    cleaned = (word.strip().lower().replace("\u2019", "'") for word in words)
    return tuple(word for word in cleaned if word and word in low)


@lru_cache(maxsize=64)
def _patterns(
    language: str, latest: tuple[str, ...], former: tuple[str, ...]
) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Make a pattern of the words of a language and the caller's, and one of what asks."""
    table = _LANGUAGES.get(language)
    if table is None:
        known = ", ".join(f'"{one}"' for one in _LANGUAGES)
        raise ValueError(
            f'language "{language}" is not known to the temporal grammar, only {known}'
        )
    own = ["".join(f"|{re.escape(one)}" for one in words) for words in (former, latest)]
    groups = (
        f"(?P<neither>{table.neither})|(?P<former>{table.former}{own[0]})"
        f"|(?P<latest>{table.latest}{own[1]})"
        f"|(?P<first>(?:{table.first}) NOUN)|(?P<last>(?:{table.last}) NOUN)"
    )
    for name, meaning in (
        (" NOUN", rf"(?= (?!(?:{table.units})\b)\w)"),
        ("UNIT", f"(?:{table.units})"),
        (" END", r"(?=\s*(?:[?!.,;:]|$))"),
    ):
        groups = groups.replace(name, meaning)
    begins = r"(?<![\w'])" if language == "en" else r"(?<!\w)"
    return (
        re.compile(rf"{begins}(?:{groups})(?!\w)"),
        re.compile(rf"\W*{table.asked} (?:\w+[ ']){{0,3}}"),
    )


def _is_a_name(text: str, match: re.Match[str]) -> bool:
    """Return whether a word is capitalised within a sentence, as in "Apocalypse Now"."""
    start = match.start()
    if not text[start].isupper() or text[start : match.end()].isupper():
        return False
    return bool(re.search(r"[\w,] $", text[:start]))


__all__ = ["read_latest_or_former"]
