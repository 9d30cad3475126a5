"""Portuguese."""

from __future__ import annotations

from . import (
    ADJECTIVE_LAST,
    AFTERNOON,
    AGO_FIRST,
    MORNING,
    NIGHT,
    NOON,
    SINCE,
    SKIPPING_FIRST,
    SMALL_HOURS,
    THE_WEEKEND,
    Language,
    Lexicon,
    contexts,
    words,
)

_MONTHS = (
    "janeiro|jan, fevereiro|fev, março|mar, abril|abr, maio|mai, junho|jun, julho|jul, "
    "agosto|ago, setembro|set, outubro|out, novembro|nov, dezembro|dez"
)
_WEEKDAYS = (
    "segunda (- /)feira, terça (- /)feira|terça, quarta (- /)feira, quinta (- /)feira, "
    "sexta (- /)feira, sábado, domingo"
)
_FAIRS = {"segunda": 0, "quarta": 2, "quinta": 3, "sexta": 4}  # ordinals as well
_HOLIDAYS: dict[str, object] = {
    "natal, dia de natal": (12, 25),
    "véspera de natal": (12, 24),
    "ano novo, dia de ano novo": (1, 1),
    "véspera de ano novo, réveillon, passagem de ano, noite de ano novo": (12, 31),
    "dia de reis": (1, 6),
    "dia dos namorados": {"": (2, 14), "BR": (6, 12)},
    "dia da mulher, dia internacional da mulher": (3, 8),
    "dia do pai, dia dos pais": {"": (3, 19), "BR": (8, 6, 2)},
    "dia da mentira": (4, 1),
    "dia da terra": (4, 22),
    "tiradentes, dia de tiradentes": (4, 21),
    "dia da liberdade, 25 de abril": (4, 25),
    "dia do trabalhador, dia do trabalho": (5, 1),
    "dia da mãe, dia das mães": {"": (5, 6, 1), "BR": (5, 6, 2)},
    "dia de portugal": (6, 10),
    "são joão, dia de são joão, noite de são joão": (6, 24),
    "dia da independência": {"": (12, 1), "BR": (9, 7), "US": (7, 4)},
    "dia das crianças": {"": (6, 1), "BR": (10, 12)},
    "halloween, dia das bruxas": (10, 31),
    "dia de todos os santos": (11, 1),
    "finados, dia de finados": (11, 2),
    "proclamação da república": (11, 15),
    "(dia de /)(ação/acção) de graças": (11, 3, 4),
    "black friday": (11, 3, 4, 1),
    "carnaval, terça (- feira /)de carnaval": -47,
    "quarta (- feira /)de cinzas": -46,
    "domingo de ramos": -7,
    "sexta (- feira /)santa": -2,
    "páscoa, domingo de páscoa": 0,
    "corpus christi, corpo de deus": 60,
}
_SMALL = (
    "zero (um/uma) (dois/duas) três quatro cinco seis sete oito nove dez onze doze treze "
    "(catorze/quatorze) quinze (dezesseis/dezasseis) (dezessete/dezassete) dezoito "
    "(dezenove/dezanove)"
).split()
_TENS = "vinte trinta quarenta cinquenta sessenta setenta oitenta noventa".split()
_SAID = {number: word for number, word in enumerate(_SMALL) if number != 1} | {
    10 * ten + unit: f"{word} e {_SMALL[unit]}" if unit else word
    for ten, word in enumerate(_TENS, 2)
    for unit in range(10)
}
_YEARS = {
    1700: "mil e setecentos e ",
    1800: "mil e oitocentos e ",
    1900: "mil (e /)novecentos e ",
    2000: "dois mil e ",
}

_LEXICON = Lexicon()
_LEXICON.count("M", 1, _MONTHS)
_LEXICON.count("W", 0, _WEEKDAYS)
_PLURALS = _LEXICON.units(
    "dia; dias",
    "semana; semanas",
    "quinzena; quinzenas",
    "fim de semana, fim - de - semana, final de semana; (fins/finais) de semana",
    "mês; meses",
    "trimestre; trimestres",
    "semestre; semestres",
    "ano; anos",
    "década; décadas",
    "século; séculos",
)
_LEXICON.holidays(_HOLIDAYS)
_LEXICON.numbers(_SAID, _YEARS)
_LEXICON.put("y", 2000, "dois mil")
_LEXICON.centuries("século {}", "séc . {}")
_LEXICON.count("S", 0, "primavera, verão, outono, inverno")
_LEXICON.count(
    "o",
    1,
    "primeir(o/a/os/as), segund(o/a/os/as), terceir(o/a), quart(o/a), quint(o/a), sext(o/a), "
    "sétim(o/a), oitav(o/a), non(o/a), décim(o/a)",
)

_put = _LEXICON.put
_FEMININE = {"semana": "week", "quinzena": "fortnight", "década": "decade"}
for _fair, _number in _FAIRS.items():
    _put("iTW", ("on", None, _number), f"na {_fair}, na {_fair} (- /)feira")
    _put("RW", ((0, "this"), _number), f"nesta {_fair}, nesta {_fair} (- /)feira")
    _put(
        "RW",
        ((-1, "last"), _number),
        f"(última/passada) {_fair}(/ - feira/ feira), (na /){_fair} passada",
    )
    _put(
        "RW",
        ((1, "next"), _number),
        f"próxima {_fair}(/ - feira/ feira), {_fair} (que vem/próxima)",
    )
    for _word, _unit in _FEMININE.items():
        _put("ioU", ("in", _number + 2, _unit), f"na {_fair} {_word}")
_DAYS = _FAIRS | {"terça": 1, "sábado": 5, "domingo": 6}
for _fair, _number in _DAYS.items():
    for _other, _last in _DAYS.items():
        _put("wW&W", (None, _number, None, _last), f"entre {_fair}(/ - feira/ feira) e {_other}")
_put("E", "half2", "na segunda metade, segunda metade")
_put("iTH", ("on", None, -2), "na sexta (- feira /)santa")
_put("u", 60, "hora, horas")
_put("u", 1, "minuto, minutos, min")
_put("D", 0, "hoje")
_put("D", -1, "ontem")
for _part, _hours in {"noite": NIGHT, "manhã": MORNING, "tarde": AFTERNOON}.items():
    _put("DP", (0, _hours), f"(esta/nesta) {_part}")
    for _day, _shift in (("hoje", 0), ("ontem", -1)):
        _put("DP", (_shift, _hours), f"{_day} (à/de/pela) {_part}")
_put("DP", (-1, NIGHT), "(a/na) noite passada")
_put("D", 1, "amanhã")
_put("D", -2, "anteontem, antes de ontem, antes - de - ontem, trasanteontem")
_put("D", 2, "depois de amanhã")
_put(">", None, "mais de")
_put(">", "least", "pelo menos, no mínimo, ao menos")
_put("<", None, "menos de, não mais de, no máximo")
_put("J", None, "agora, hoje em dia, o presente")
_put("J", "date", "(a /)data (atual/corrente/de hoje), (o /)dia de hoje, (o /)momento atual")
_put("j", None, "até agora, até à data, até a data, até o momento, até ao momento")
_put("@", "year", "ano até à data, ano até a data, ano até agora")
_put("f", "recent", "recentemente, ultimamente, há pouco, há pouco tempo, nos últimos tempos")
_put("f", "other day", "outro dia, no outro dia, a outra noite")
_put("*", None, "por esta altura, nesta altura, nesta época, por esta época, nesta mesma época")
_put("R", (-1, "last"), "últim(o/a/os/as), passad(o/a/os/as)")
_put("R", (-1, "previous"), "anterior(/es), prévi(o/a)")
_put("R", (0, "this"), "est(e/a/es/as), dest(e/a/es/as), mesm(o/a)")
_put("iR", ("in", (0, "this")), "nest(e/a/es/as)")
_put("R", (0, "current"), "atual, corrente, em curso")
_put("R", (1, "next"), "próxim(o/a/os/as), seguinte(/s), que vem")
_put("R", (1, "coming"), "que vêm, vindour(o/a), est(e/a) próxim(o/a)")
_put("V", -2, "retrasad(o/a), antes d(o/a) passad(o/a), penúltim(o/a)")
_put("V", 2, "depois d(o/a) próxim(o/a)")
_put("h", None, "tod(o/a) (o/a), inteir(o/a)")
for _part, _hours in {"noite": NIGHT, "manhã": MORNING, "tarde": AFTERNOON}.items():
    _put("P", _hours, f"(à /da /de /pela /na /a ){_part}, {_part}")
_put("P", None, "à meia - noite")
_put("P", NOON, "ao meio - dia, meio - dia")
_put("P", SMALL_HOURS, "de madrugada, (da/na/pela) madrugada, madrugada")
_put("E", "begin", "(/no /ao )(início/começo/princípio), inícios, (começos/princípios)")
_put("E", "begin", "primeiros dias")
_put("E", "mid", "meados, em meados, meio, no meio")
_put("E", "end", "fim, final, finais, fins, em fins, em finais")
_put("E", "early", "cedo")
_put("E", "earlier", "mais cedo")
_put("E", "late", "tarde em")
_put("E", "later", "mais tarde")
_put("E", "half1", "primeira metade, na primeira metade")
_put("E", "rest", "resto, restante")
_put("K", None, "há, faz, (há/faz) (cerca de/mais ou menos/quase/uns)")
_put("g", None, "atrás")
_put("l", None, "a partir de agora")
_put("i", "in", "daqui a, daqui, dentro de")
_put("n", 2, "par de")
_put("n", 12, "dúzia de")
_put("v", 3, "algu(ns/mas), pouc(os/as), un(s/mas poucas), vári(os/as), uns, umas, uns poucos")
_put("A", 1, "um, uma")
_put("B", None, "e mei(o/a), mei(o/a)")
_put("T", None, "o, a, os, as")
_put("OT", (None, None), "do, da, dos, das")
_put("m", None, "meu, minha, noss(o/a)")
_put("O", None, "de")
_put("i", "in", "em")
_put("iT", ("in", None), "no, na, nos, nas")
_put("i", "on", "com data de, datado de")
_put("i", "at", "durante, por, pelo, pela, sobre, cerca de, por volta de, para o, para a, para")
_put("t", "to", "ao, à, aos, às, ~")
_put("t", "until", "até, até ao, até à, até o, até a")
_put("w", None, "entre")
_put("&", None, "e, &")
_put("|", None, "ou")
_put("s", None, "desde, a partir (de/do/da), desde (o/a/os/as), não antes de, tão cedo quanto")
_put("a", None, "após, depois (de/do/da/dos/das), posterior a, posterior ao, após (o/a)")
_put("b", None, "antes (de/do/da/dos/das), anterior a, anterior ao")
_put("k", None, "o mais tardar, no máximo até, não depois de, tão tarde quanto")
_put("G", None, "começando, começando em, a começar em, que começa em, iniciando em")
_put("p", None, "em diante, ou depois, ou posterior, e depois, ou mais tarde")
_put("d", None, "ou antes, e antes, ou anterior")
_put("Y", None, "ano(/s) (civil/fiscal/calendário/civis/fiscais)")
_put("Y", "month", "m(ês/eses) (civil/civis)")
_put("#", "w/c", "semana que (começa/inicia) (em/no dia/a/), semana com início em")

LANGUAGE = Language(
    lexicon=_LEXICON,
    order=(
        (r"(?<=[nyoWMD])T(?=[nyoWMHD])", "t=to"),  # "de março a maio"
        SKIPPING_FIRST,
        AGO_FIRST,
        SINCE,
        *ADJECTIVE_LAST,
        THE_WEEKEND,
    ),
    plurals=_PLURALS,
    decade_words=words("anos"),
    ordinal_suffixes=words("º ª o a ro ra"),
    quarters={"q": "q", "t": "q", "s": "h", "h": "h"},
    articles=words("o a os as"),
    bare=contexts(
        "desde até ao à antes depois após do da de para pelo",
        "em no na durante este ano mês",
        "no na dia em",
        "no do neste deste desde",
    ),
    names=words("abril"),
    toward=words("a de com para por sobre"),
    possessives=words("meu minha meus minhas teu tua seu sua seus suas nosso nossa"),
    every=words("cada todo toda todos todas os as qualquer muitos muitas aos às"),
    habitual=words(
        "todo toda costuma costumam costumo sempre normalmente geralmente cada todos todas"
    ),
    general=words("quantos quantas pode podem costuma normalmente média"),
    spanning=words("durante"),
    past=words("fez fiz fizemos foi foram era estava teve"),
    not_recent=words("mais menos muito tão"),
    things=words(
        "sala quarto edifício porta versão número pedido bilhete voo seção secção capítulo página "
        "páginas linha modelo código ticket erro coluna célula tabela campo folha arquivo ficheiro "
        "pasta romance filme livro álbum canção jogo nível passo canal ônibus autocarro trem "
        "comboio saída rota andar artigo lugar assento tamanho chamado chamada"
    ),
    streets=words("rua avenida praça largo"),
    measures=words(
        "pessoas usuários utilizadores linhas palavras bytes mb gb kb tb ms px pixels dólares "
        "euros reais libras usd eur brl vezes milhas km quilômetros quilómetros metros calorias "
        "pontos estudantes alunos funcionários clientes documentos arquivos ficheiros mensagens "
        "entradas casos graus horas hora minutos segundos watts páginas livros unidades cópias "
        "votos kg gramas litros perguntas"
    ),
    little=words(
        "o a os as um uma eu tu você ele ela nós vocês eles elas me te se nos lhe meu minha seu "
        "sua quem que quando onde como por e ou mas com em no na ao à para de do da desde sobre "
        "antes depois até entre não nunca sempre outra também é foi era são há havia tinha fez fiz "
        "feito disse aconteceu favor"
    ),
    clock=words("h hs hrs am pm"),
    session=(
        r"(?:que )?(?:falamos|falámos|conversamos|conversámos|nos falamos|nos vimos)"
        r"(?: pela última vez)?"
        r"|(?:a )?nossa (?:última|anterior) (?:conversa|sessão|reunião|chamada|ligação)"
        r"|a última (?:vez|conversa|sessão)"
    ),
    clause_openers=words("que"),
    has_numbered_day=True,
)

__all__ = ["LANGUAGE"]
