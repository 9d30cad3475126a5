"""Detect whether a question asks for the latest state of something or for a former one.

"Where does Ana live now?" asks for the newest of several answers, "Where did Ana use to live?" for
an older one. Each language has three lists of regular expressions over lower-case words: for the
latest state, for a former state, and for phrases that look like one but are not ("now and then",
"first name"). They are joined to one pattern, in which the last list has precedence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

_LONGEST = 1_000  # maximum characters that are read
_END = r"(?=\s*(?:[?!.,;:]|$))"  # end of the question or clause
_STILL = frozenset(
    "still noch nach immer todavía aún toujours encore ancora tuttora nog steeds ainda".split()
)


@dataclass(frozen=True, slots=True)
class LatestOrFormer:
    """Which of several states of one thing a question asks for.

    Attributes:
        direction: "latest" for the newest state, "former" for an older one, None for neither.
        matched: The words that ask for it, as written, in order.
        rest: The question without these words, which would only disturb a search.

    """

    direction: Literal["latest", "former"] | None
    matched: tuple[str, ...]
    rest: str


@dataclass(frozen=True, slots=True)
class _Words:
    latest: str
    former: str
    neither: str


_NOUNS_EN = (
    r"(?:address|job|number|name|password|plan|price|employer|boss|manager|phone|apartment|flat|"
    r"house|home|e-?mail|title|version|value|role|position|owner|decision|choice|status|state|"
    r"update|deadline|budget|design|idea|estimate|schedule|date|team|company|partner|car|school|"
    r"policy|rule|setting|limit|provider|supplier|office|diet|routine|doctor|landlord|proposal|"
    r"project|task|assignment|club|band|crew|class|course|coach|hobby|pet|dog|cat|bank|"
    r"leader|director|head|roommate|teacher|coach|tenant|city|word|agreement|offer)s?\b"
)
# "Has Ana left Kiel" asks for the latest state, "which towns has Ana left" for former ones.
_ENDED_EN = (
    r"left|quit|abandoned|given up|dropped|moved (?:on|away|out|off|from)|come off|stepped down"
)
_ENGLISH = _Words(
    latest=(
        r"(?:the )?(?:very )?(?:latest|newest|most recent(?:ly)?|most up[- ]to[- ]date)"
        r"|current(?:ly)?|presently|nowadays|these days|right now|as of (?:now|today)"
        r"|(?:at|for) (?:the moment|the present|present)|at this (?:point|moment)|for now|now"
        r"|still|as (?:it|things) stands?|up[- ]to[- ]date|last known|to this day"
        r"|last (?=(?:\w+[^e]ed|agreed|decide|agree|choose|chose|chosen|settle|report|update"
        r"|confirm|"
        r"approve|say|said|set)\b)"
        rf"|(?:last|final) (?={_NOUNS_EN})"
        rf"|today{_END}"
        rf"|last(?:{_END}| (?=(?:about|for|on|concerning|regarding|with|to|by|in the|at the)\b))"
        rf"|^(?:has|have)(?:n't)? (?:\w+ ){{1,4}}(?:{_ENDED_EN}|stayed|remained)\b"
        r"|^(?:does|do) (?:\w+ ){1,4}(?:continue|keep|remain|stay)\b"
    ),
    former=(
        r"use(?:d)? to(?! (?:it|this|that|these|those|the|being|having|my|her|his|their)\b|"
        r" \w+ing\b)"
        r"|previously|formerly|originally|initially|no longer|not any ?more|any ?more"
        r"|at first|to begin with|back then|in former times|before now|until then"
        rf"|(?:before|prior to)(?:{_END}| (?:that|then|(?:the|her|his|my|our|their|its)"
        r" (?:current|present|latest|new))\b)"
        rf"|(?:earlier|first|in the past){_END}"
        r"|first (?=(?:\w+[^e]ed|agreed|decide|agree|choose|chose|chosen|plan|live|work|propose"
        r"|suggest|"
        r"call|name|set|settle|say|said|think|thought|want|estimate|offer|quote|ask)\b)"
        r"|once (?=(?:lived?|worked?|led|lead|owned?|was|were|had|held|ran|"
        r"taught|stood|use|sell|sold|rent|drive|drove|call|belong|\w+[^e]ed)\b)"
        r"|start(?:ed)? (?:out|off) (?:in|on|with|as|at)|start(?:ed)? (?:out|off)(?=\s*[?.!]|$)"
        rf"|(?<=\w )(?:has|have|had) (?:\w+ ){{1,4}}(?:{_ENDED_EN})\b"
        r"|(?:done|finished|through) with"
        rf"|very first (?={_NOUNS_EN})"
        r"|former|original|initial"
        rf"|(?:previous|prior|earlier|old|first) (?={_NOUNS_EN})"
    ),
    neither=(
        r"now and (?:then|again|forever)|every now|(?:from|by|until|till|up to|than) now(?: on)?"
        r"|now that|just now|at the latest|latest by|(?:electric|electrical|alternating|direct"
        r"|ocean"
        r"|tidal|air|water|river|gulf|eddy|strong|leakage) currents?|current (?:time|date|affairs"
        r"|day|week|"
        r"month|quarter|year|season|summer|winter|spring|autumn|decade|century|session|thread|chat)"
        r"|between .{1,60} and (?:now|today)|(?:from|since|until|till|by|of|before|after|than|to"
        r"|on) "
        r"today|(?:the|twenty|thirty|(?:jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|dec)\w*"
        r"|may)[- ]first"
        rf"{_END}"
        r"|currents|currently? unit|still (?:life|lifes|water|image|images|wine|birth)"
        r"|(?:stand|stands|stood|sit|sits|sat|keep|kept|hold|held|lie|lay|be|stay|stayed) still"
        r"|(?:stand|hold|sit|keep) \w+ still|(?:get|gets|got|getting|gotten|become|becomes|became|"
        r"is|are|am|was|were|be|been|being|\w+'(?:s|re|m)|grow|grew) (?:not )?used to"
        r"|^\W*(?:(?:what|which|how|where|why|when)\b(?: \w+)? )?(?:is|are|was|were|can be"
        r"|could be)"
        r" (?:(?!who|that|which)\w+ ){1,3}used to"
        r"|(?:at|came|come|comes|finish|finished) last\b|how (?:long|much longer)\b.*\blast\b"
        r"|(?:the|our|my|her|his|their|your) last(?= (?:for|to|with|by|about|on|in)\b)"
        r"|last (?:name|names|time|week|night|month|year|one)|first (?:name|names|time|aid|class|"
        r"floor|person|place|thing|of all|lady|grade|day|week|month|year|half)|(?:the )?last time"
        r"|the day before|the (?:week|month|year|night|evening) before|earlier (?:than|today|this)"
        r"|sooner or later|once (?:a|more|again|per|upon|every|in)|at once|original (?:sin|"
        r"soundtrack|equipment)|initials?(?= of)|more than before|as before"
        r"|(?:come|came|go|went|be|finish|finished) first|first come"
        r"|very first (?:time|thing|day|place|person|one)"
        r"|when \w+(?: \w+)? first|first started|former or latter"
        r"|the former (?:and|or) the latter|(?:never|ever|seen|heard|done|happened) before"
        r"|(?:ever|never) (?:\w+ ){1,4}before"
        r"|old (?:town|school|age|english|city)|first (?:language|degree|edition)|today's"
    ),
)

_ENDINGS_DE = r"(?:e|er|en|es|em)?"
_NOUNS_DE = (
    r"(?:adresse|wohnung|job|stelle|nummer|telefonnummer|name|namen|passwort|plan|preis|chef|chefin"
    r"|arbeitgeber|version|wert|stand|status|beschluss|entscheidung|firma|haus|auto|schule|besitzer"
    r"|leiter|leiterin|vorschlag|entwurf|termin|frist|budget|titel|regel|fassung|zuhause|handy"
    r"|büro|laden|schlüssel|vertrag|arbeit|lehrer|trainer|ärztin|arzt)\b"
)
_GERMAN = _Words(
    latest=(
        rf"aktuell{_ENDINGS_DE}|derzeit|derzeitig{_ENDINGS_DE}|gegenwärtig{_ENDINGS_DE}"
        rf"|momentan{_ENDINGS_DE}|jetzig{_ENDINGS_DE}|zurzeit|zur zeit|im (?:moment|augenblick)"
        rf"|jetzt|heutzutage|immer noch|noch immer|nach wie vor|heute noch|zuletzt|inzwischen"
        rf"|mittlerweile|neueste[rnms]?|jüngste[rnms]?|gültig{_ENDINGS_DE}"
        rf"|letzte[rnms]? (?=\w*{_NOUNS_DE})"
        r"|weiterhin|^(?:ist|sind|hat|haben) .{1,60}\b(?:weggezogen|ausgezogen|umgezogen|verlassen"
        r"|gekündigt|aufgehört|gewechselt|geblieben|abgegeben)"
        r"|noch(?= (?:in|bei|mit|an|am|als|im|auf|für|zu|zur|zum|beim|dort|da|hier|verheiratet"
        r"|gültig)\b)"
    ),
    former=(
        rf"früher|frühere[rnms]?|ehemals|ehemalige[rnms]?|vormals|einst|damals|seinerzeit"
        rf"|ursprünglich{_ENDINGS_DE}|anfangs|zuerst|zunächst|nicht (?:mehr|länger)"
        rf"|(?:vorher|davor|zuvor){_END}|bisherige[rnms]?|einstige[rnms]?"
        rf"|(?:vorherige|vorige|alte|erste)[rnms]? (?=\w*{_NOUNS_DE})|in der vergangenheit"
    ),
    neither=(
        r"(?:bis|ab|von|erst) jetzt|jetzt und (?:dann|hier)|noch (?:nicht|nie|ein|eine|einen|einer|"
        r"einmal|mehr|etwas|jemand|kein|keine|keinen)|sonst noch|weder \w+ noch|jüngste[rnms]? "
        r"(?:bruder|schwester|sohn|tochter|kind|tag|gericht)|aktuelle[ns]? (?:uhrzeit|datum|stunde)"
        r"|früher (?:als|auf|oder später|am|im)|je früher|nicht mehr als|zur zeit (?:der|des|von)"
        r"|zuerst da|gleichstrom|früher aufstehen|zum (?:jetzigen|letzten) mal|am frühesten"
        r"|gültige[rs]? ausweis|zunächst einmal"
    ),
)

_NOUNS_ROMANCE = (
    r"(?:versi[oó]n|decisi[oó]n|estado|direcci[oó]n|trabajo|empleo|plan|precio|jefe|jefa|nombre"
    r"|n[uú]mero|contraseña|casa|piso|coche|escuela|empresa|propuesta|fecha|presupuesto|valor"
    r"|dueño|director|directora|acuerdo|cambio)\b"
)
_SPANISH = _Words(
    latest=(
        r"actual(?:es|mente)?|ahora(?: mismo)?|hoy en día|hoy por hoy|en (?:este|estos) momentos?"
        r"|por (?:el momento|ahora)|de momento|todavía|todavia|aún|sigue[ns]? (?=\w+ndo\b)"
        r"|(?:el|la|los|las|lo)? ?más recientes?|vigentes?|en vigor|a día de hoy"
        r"|^\W*(?:sigue|siguen|continúa|continúan)|^\W*(?:se )?(?:ha|han) (?:\w+ ){0,4}"
        r"(?:dejado|abandonado|salido|mudado|marchado|ido|cambiado)"
        rf"|últim[oa] (?={_NOUNS_ROMANCE})|ultim[oa] (?={_NOUNS_ROMANCE})|últimamente decidido"
    ),
    former=(
        r"antes(?! de\b| del\b| que\b| posible)|anteriormente|previamente|antiguamente|antaño"
        r"|originalmente|originariamente|inicialmente|al principio(?! de)|en un principio|ya no"
        rf"|solía[ns]?|solían|solíamos|en el pasado|en aquel entonces|primero{_END}|antigu[oa]s?"
        r"|(?<=dirección )anterior|anterior(?:es)?|original(?:es)?|inicial(?:es)?|de antes"
    ),
    neither=(
        r"(?:todavía|aún) (?:no|más|así|peor|mejor)|(?:hasta|desde) ahora|de ahora en adelante"
        r"|a partir de ahora|ahora bien|(?:semana|mes|año|día|noche|tarde|sesión|mensaje|página|"
        r"conversación|reunión|trimestre) (?:anterior|actual)|anterior (?:a|al)\b|cuanto antes"
        r"|lo antes posible|(?:hora|fecha|semana|año) actual|últimas? vez|antigua (?:grecia|roma)"
        r"|más antigu[oa]s?|mucho antes de|antes o después|banda sonora original"
        r"|(?:nunca|jamás) antes|edad antigua|actuales? circunstancia"
    ),
)
_NOUNS_FR = (
    r"(?:version|décision|état|statut|adresse|emploi|poste|plan|prix|chef|nom|numéro|mot|maison"
    r"|voiture|école|entreprise|proposition|date|budget|valeur|propriétaire|directeur|directrice"
    r"|accord|appartement|employeur|patron)\b"
)
_FRENCH = _Words(
    latest=(
        r"actuel(?:le)?s?|actuellement|maintenant|à présent|en ce moment|pour l'instant"
        r"|pour le moment|de nos jours|à l'heure actuelle|présentement|toujours|encore"
        r"|(?:le|la|les) plus récent(?:e)?s?|plus récent(?:e)?s?|en vigueur|ces jours-ci"
        rf"|derni(?:er|ère)s? (?={_NOUNS_FR})"
        r"|continue(?:nt)? (?:à|de)"
        r"|^(?!\W*(?:quel|que|qu'|où|qui|quand|comment|pourquoi)).{1,40} (?:a|ont|est|sont)"
        r"(?:-t)?-(?:il|elle|on)s? (?:quitté|déménagé|changé|arrêté|parti|resté)e?s?"
    ),
    former=(
        rf"avant{_END}|auparavant|autrefois|jadis|anciennement|précédemment|initialement"
        r"|originellement|à l'origine(?! d)|au départ(?! d)|d'abord|à l'époque(?! d)"
        r"|(?:dans|par) le passé|naguère|ancien(?:ne)?s?|initial(?:e|es)?|précédent(?:e)?s?"
        r"|(?:(?<=ne )|(?<=n'))\w+(?:-\w+)* plus\b(?! (?:de|que|tard|tôt|grand|petit))"
    ),
    neither=(
        r"(?:jusqu'à|à partir de|dès) (?:maintenant|présent)|pas encore|encore (?:une?|plus|"
        r"moins|mieux|fois|jamais)|(?:qui|quoi|où) encore|(?:pour|depuis|comme) toujours"
        r"|derni(?:er|ère)s? fois|(?:semaine|mois|année|jour|nuit|soir|séance|session|message|page|"
        r"réunion|conversation|trimestre) (?:précédente?|actuelle?|dernière?)|ancien testament"
        r"|plus ancien(?:ne)?s?|maintenant que|(?:heure|date|mois|année) actuelle?"
        r"|tout d'abord|sans précédent|ancien combattant|l'année d'avant|jamais avant"
    ),
)
_NOUNS_IT = (
    r"(?:versione|decisione|stato|indirizzo|lavoro|piano|prezzo|capo|nome|numero|password|casa"
    r"|macchina|auto|scuola|azienda|ditta|proposta|data|budget|valore|proprietario|direttore"
    r"|accordo|appartamento|impiego|datore)\b"
)
_ITALIAN = _Words(
    latest=(
        r"attual(?:e|i|mente)|adesso|(?:in questo|al) momento|per ora|ora come ora|oggigiorno"
        rf"|oggi come oggi|tuttora|ancora|ora{_END}|(?:^|(?<=[,;] ))ora(?= \w)|vigent[ei]"
        r"|in vigore|(?:il|la|i|le)? ?più recent[ei]|al giorno d'oggi|correntemente"
        rf"|ultim[oa] (?={_NOUNS_IT})"
        r"|continua(?:no)? a|^(?!\W*(?:qual|che|cosa|dove|chi|quando)).{0,40}?\b(?:ha|hanno) "
        r"(?:\w+ ){0,2}(?:lasciato|abbandonato|cambiato|smesso)"
    ),
    former=(
        rf"prima{_END}|prima (?=(?:viveva|abitava|lavorava|era|aveva|guidava|studiava|usava)\b)"
        r"|in precedenza|precedentemente|un tempo|originariamente|inizialmente|in origine"
        r"|all'inizio(?! d)|in passato|anteriormente|dapprima|una volta (?=(?:viveva|abitava|"
        r"lavorava|era|aveva|guidava)\b)|(?<=non )\w+(?: \w+)? più(?! (?:di|che|tardi|grande))"
        rf"|vecchi[oa] (?={_NOUNS_IT})|vecchio|precedent[ei]|originari[oa]|inizial[ei]|allora{_END}"
        r"|soleva(?:no)?|a quel tempo"
    ),
    neither=(
        r"(?:un'|mezz'|all'|l'|che |quest'|d'|dell'|\d+ )ora|(?:un|una) ora|ora di|ora (?:e"
        r"|in) mezz\w"
        r"|(?:fino ad|da|d') ?ora|(?:non )ancora(?= \w+to\b)|ancora (?:una?|più|meno|volta|no)"
        r"|(?:settimana|mese|anno|giorno|notte|sera|sessione|messaggio|pagina|riunione|"
        r"conversazione|trimestre) (?:precedente|attuale)|precedente a\w?|prima (?:di|che|volta|"
        r"classe|persona|del|della|dell')|(?:la|una|alla|della|nella|sua|mia) prima"
        r"|ultima volta|più vecchi[oa]|fin da adesso|(?:ora|data) attuale|mai prima"
        r"|non(?: \w+)? ancora"
        r"|da adesso|prima o poi|vecchio (?:mondo|continente|testamento)"
    ),
)
_NOUNS_NL = (
    r"(?:adres|baan|werk|nummer|telefoonnummer|naam|wachtwoord|plan|prijs|baas|werkgever|versie"
    r"|waarde|stand|status|besluit|beslissing|bedrijf|huis|auto|school|eigenaar|voorstel|ontwerp"
    r"|datum|budget|titel|regel|afspraak|woning|leider|directeur|keuze|kantoor|winkel|sleutel"
    r"|contract|leraar|trainer|arts)\b"
)
_DUTCH = _Words(
    latest=(
        r"huidige?|momenteel|tegenwoordig|thans|op dit (?:moment|ogenblik)|nog (?:steeds|altijd)"
        r"|nu|vandaag de dag|meest recente?|nieuwste|actuele|geldende|inmiddels"
        rf"|laatste (?=\w*{_NOUNS_NL})|laatst (?=(?:besloten|afgesproken|gekozen|vastgesteld"
        rf"|bekend)\b)"
        r"|nog(?= (?:in|bij|op|met|voor|als|aan|te|getrouwd|geldig)\b)"
        r"|^(?:heeft|hebben|is|zijn) .{1,60}\b(?:verlaten|verhuisd|weggegaan|gestopt|gebleven"
        r"|opgegeven)"
    ),
    former=(
        rf"vroeger|vroegere|voorheen|eerder{_END}|eerdere|oorspronkelijke?|aanvankelijke?|destijds"
        rf"|eerst{_END}|niet (?:meer|langer)|geen \w+ meer|voormalige?|toentertijd|toendertijd"
        rf"|(?:daarvoor|ervoor|hiervoor){_END}|in het verleden|in het begin(?! van)|ooit (?=eens)"
        rf"|(?:vorige?|oude?|eerste) (?=\w*{_NOUNS_NL})|indertijd"
    ),
    neither=(
        r"nu en dan|(?:tot|vanaf|van|voor) nu(?: toe| af)?|nu eenmaal|nu of nooit|nog (?:niet"
        r"|nooit|"
        r"een|meer|eens|iets|iemand|maar)|(?:wie|wat) nog|vroeger dan|niet meer dan|hoe vroeger"
        r"|huidige (?:tijd|datum|maand|week|jaar)|nieuwste testament|eerst volgende|oude stad"
        r"|eerder dan|nooit eerder|net nu|laatste keer|voor het eerst|ten eerste|om te beginnen"
    ),
)
_NOUNS_PT = (
    r"(?:versão|decisão|estado|endereço|morada|trabalho|emprego|plano|preço|chefe|nome|número"
    r"|senha|casa|apartamento|carro|escola|empresa|proposta|data|orçamento|valor|dono|diretor"
    r"|diretora|acordo|patrão)\b"
)
_PORTUGUESE = _Words(
    latest=(
        r"atua(?:l|is|lmente)|actualmente|agora(?: mesmo)?|hoje em dia|(?:n[oe]|neste) momento"
        r"|por enquanto|ainda|continua(?:m)? (?=(?:a )?\w+(?:ndo|r)\b)|mais recentes?|vigentes?"
        r"|continua(?:m)? (?=(?:em|no|na|com)\b)|^(?!\W*(?:que|quais|qual|onde|quem|quando|o que"
        r"|de que)).{0,40}?\b(?:deixou|saiu|largou|abandonou|mudou(?:-se)?)"
        rf"|em vigor|presentemente|últim[oa] (?={_NOUNS_PT})|nos dias de hoje"
    ),
    former=(
        r"antes(?! d[eoa]s?\b| que\b)|anteriormente|previamente|antigamente|originalmente"
        r"|inicialmente|no início(?! d)|a princípio|no princípio(?! d)|já não|costumava(?:m)?"
        rf"|outrora|no passado|antig[oa]s?|anterior(?:es)?|original|inicial|primeiro{_END}"
        r"|(?<=não )\w+(?: \w+)? mais(?! (?:de|do|que|tarde|cedo))|naquela época|naquele tempo"
    ),
    neither=(
        r"ainda (?:não|mais|bem|assim|que|menos)|até agora|de agora em diante|a partir de agora"
        r"|agora que|(?:semana|mês|ano|dia|noite|sessão|mensagem|página|reunião|conversa|trimestre)"
        r" (?:anterior|atual)|anterior (?:a|ao|à)\b|(?:o )?quanto antes|última vez|mais antig[oa]s?"
        r"|(?:hora|data|semana|ano) atual|antes ou depois|nunca antes|grécia antiga|roma antiga"
        r"|trilha sonora original|antigo testamento"
    ),
)
_LANGUAGES = {
    "de": _GERMAN,
    "en": _ENGLISH,
    "es": _SPANISH,
    "fr": _FRENCH,
    "it": _ITALIAN,
    "nl": _DUTCH,
    "pt": _PORTUGUESE,
}


def read_latest_or_former(
    text: str,
    *,
    language: str = "en",
    latest: Iterable[str] = (),
    former: Iterable[str] = (),
) -> LatestOrFormer:
    """Detect whether a question asks for the latest state, for a former one, or for neither.

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
    pattern = _pattern(language, *own)
    found: dict[str, list[tuple[int, int]]] = {"latest": [], "former": []}
    for match in pattern.finditer(low):
        kind = match.lastgroup
        if kind not in found or _is_a_day(low, match, language):
            continue
        if match[0] in own[0] + own[1] or not _is_a_name(text, match):
            found[kind].append((match.start(), match.start() + len(match[0].rstrip())))
    spots = found["latest"], found["former"]
    if not spots[0] and not spots[1]:
        return LatestOrFormer(None, (), text)
    is_still = any(not _STILL.isdisjoint(low[start:end].split()) for start, end in spots[0])
    is_former = bool(spots[1]) and not is_still
    chosen = spots[is_former]
    rest, last = "", 0
    for start, end in chosen:
        rest += text[last:start].rstrip() + " "
        last = end
        while text[last : last + 1] == " ":
            last += 1
    rest = re.sub(r"\s+(?=[?!.,;])", "", (rest + text[last:]).strip())
    matched = tuple(text[start:end] for start, end in chosen)
    return LatestOrFormer("former" if is_former else "latest", matched, rest)


def _those_in(low: str, words: Iterable[str]) -> tuple[str, ...]:
    """Return the caller's words that occur in a text; a pattern of all of them would be slow."""
    cleaned = (word.strip().lower().replace("\u2019", "'") for word in words)
    return tuple(word for word in cleaned if word and word in low)


@lru_cache(maxsize=64)
def _pattern(language: str, latest: tuple[str, ...], former: tuple[str, ...]) -> re.Pattern[str]:
    """Make one pattern from the lists of a language and the caller's words."""
    table = _LANGUAGES.get(language)
    if table is None:
        known = ", ".join(f'"{one}"' for one in _LANGUAGES)
        raise ValueError(
            f'language "{language}" is not known to the temporal grammar, only {known}'
        )
    own = ["".join(f"|{re.escape(one)}" for one in words) for words in (former, latest)]
    begins = r"(?<![\w'])" if language == "en" else r"(?<!\w)"
    return re.compile(
        rf"{begins}(?:(?P<neither>{table.neither})|(?P<former>{table.former}{own[0]})"
        rf"|(?P<latest>{table.latest}{own[1]}))(?:(?!\w)|(?<=\s))"
    )


def _is_a_name(text: str, match: re.Match[str]) -> bool:
    """Return whether a word is capitalised within a sentence, as in "Apocalypse Now"."""
    start = match.start()
    if not text[start].isupper() or text[start : match.end()].strip().isupper():
        return False
    return bool(re.search(r"[\w,] $", text[:start]))


def _is_a_day(low: str, match: re.Match[str], language: str) -> bool:
    """Return whether "today" means the day and not "nowadays": no verb is in the present tense."""
    if language != "en" or match[0] != "today":
        return False
    return re.match(r"\W*(?:\w+ )?(?:\w+ )?(?:does|do|is|are|has|'s)\b", low) is None


__all__ = ["LatestOrFormer", "read_latest_or_former"]
