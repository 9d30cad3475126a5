"""Spanish."""

from __future__ import annotations

from . import (
    ADJECTIVE_LAST,
    AGO_FIRST,
    LONG_AFTERNOON,
    MORNING,
    NIGHT,
    NOON,
    SINCE,
    SKIPPING_FIRST,
    SMALL_HOURS,
    THE_FIFTEENTH,
    THE_WEEKEND,
    Language,
    Lexicon,
    contexts,
    words,
)

_MONTHS = (
    "enero|ene, febrero|feb, marzo, abril|abr, mayo, junio|jun, julio|jul, agosto|ago, "
    "septiembre|setiembre|sep|sept|set, octubre|oct, noviembre|nov, diciembre|dic"
)
_WEEKDAYS = "lunes, martes, miércoles, jueves, viernes, sábado, domingo"
_HOLIDAYS: dict[str, object] = {
    "navidad, navidades, día de navidad": (12, 25),
    "nochebuena": (12, 24),
    "año nuevo, día de año nuevo": (1, 1),
    "nochevieja, noche vieja, fin de año": (12, 31),
    "reyes, día de reyes, epifanía": (1, 6),
    "san valentín, día de san valentín, día de los enamorados": (2, 14),
    "día de la mujer, día internacional de la mujer": (3, 8),
    "san patricio, día de san patricio": (3, 17),
    "día del padre": {"": (6, 6, 3), "ES": (3, 19)},
    "día de la tierra": (4, 22),
    "día del trabajador, día del trabajo, día internacional de los trabajadores": (5, 1),
    "día de la madre": {"": (5, 6, 1), "MX": (5, 10), "AR": (10, 6, 3), "US": (5, 6, 2)},
    "san juan, noche de san juan": (6, 24),
    "día de (la /)independencia": {"": (7, 4), "MX": (9, 16), "AR": (7, 9), "CO": (7, 20)},
    "día de la hispanidad, día de la raza": (10, 12),
    "halloween": (10, 31),
    "todos los santos, día de todos los santos": (11, 1),
    "día de (los /)muertos, día de los difuntos": (11, 2),
    "(día de /)acción de gracias": (11, 3, 4),
    "viernes negro": (11, 3, 4, 1),
    "día de la constitución": (12, 6),
    "carnaval, martes de carnaval": -47,
    "miércoles de ceniza": -46,
    "domingo de ramos": -7,
    "jueves santo": -3,
    "viernes santo": -2,
    "pascua, pascuas, domingo de pascua, domingo de resurrección": 0,
    "lunes de pascua": 1,
    "pentecostés": 49,
}
_SMALL = (
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince "
    "dieciséis diecisiete dieciocho diecinueve veinte veintiun(o/a) veintidós veintitrés "
    "veinticuatro veinticinco veintiséis veintisiete veintiocho veintinueve"
).split()
_TENS = "treinta cuarenta cincuenta sesenta setenta ochenta noventa".split()
_SAID = dict(enumerate(_SMALL)) | {
    10 * ten + unit: f"{word} y {_SMALL[unit]}" if unit else word
    for ten, word in enumerate(_TENS, 3)
    for unit in range(10)
}
_YEARS = {
    1500: "mil quinientos ",
    1600: "mil seiscientos ",
    1700: "mil setecientos ",
    1800: "mil ochocientos ",
    1900: "mil novecientos ",
    2000: "dos mil ",
}

_LEXICON = Lexicon()
_LEXICON.count("M", 1, _MONTHS)
_LEXICON.count("W", 0, _WEEKDAYS)
_PLURALS = _LEXICON.units(
    "día; días",
    "semana; semanas",
    "quincena; quincenas",
    "fin de semana, finde; fines de semana, findes",
    "mes; meses",
    "trimestre, cuatrimestre; trimestres, cuatrimestres",
    "semestre; semestres",
    "año, ano; años, anos",
    "década, decenio; décadas, decenios",
    "siglo; siglos",
)
_LEXICON.holidays(_HOLIDAYS)
_LEXICON.numbers(_SAID, _YEARS)
_LEXICON.centuries("siglo {}", "s . {}")
_LEXICON.count("S", 0, "primavera, verano, otoño, invierno")
_LEXICON.count(
    "o",
    1,
    "primer(/o/a/os/as), segund(o/a/os/as), tercer(/o/a/os/as), cuart(o/a), quint(o/a), "
    "sext(o/a), séptim(o/a), octav(o/a), noven(o/a), décim(o/a), undécim(o/a), duodécim(o/a)",
)
_LEXICON.count("o", 21, "vigésim(o/a) primer(/o/a), vigésim(o/a) segund(o/a)")
_LEXICON.count("o", 30, "trigésim(o/a), trigésim(o/a) primer(/o/a)")

_put = _LEXICON.put
for _number, _name in enumerate(("primer", "segundo", "tercer", "cuarto"), 1):
    _put("oU", (_number, "quarter"), f"{_name} cuarto")
for _ten in range(20, 100, 10):
    _put("Z", (_ten, "ages"), f"(de/en) los {_ten}")
_put("u", 60, "hora, horas")
_put("u", 1, "minuto, minutos, min")
_put("D", 0, "hoy")
_put("DP", (0, NIGHT), "esta noche")
_put("DP", (0, MORNING), "esta mañana")
_put("DP", (0, LONG_AFTERNOON), "esta tarde")
_put("DP", (0, NOON), "este mediodía")
_put("D", -1, "ayer")
_put("DP", (-1, NIGHT), "anoche, la noche pasada")
_put("D", 1, "mañana")
_put("D", -2, "anteayer, antier, antes de ayer, anteanoche, el día antes de ayer")
_put("D", 2, "pasado mañana, el día después de mañana")
_put(">", None, "más de")
_put(">", "least", "al menos, por lo menos, como mínimo")
_put("<", None, "menos de, no más de, como mucho, como máximo")
_put("J", None, "ahora, hoy en día, el presente, la actualidad")
_put("J", "date", "(la /)(fecha/actual) (actual/fecha), el día de hoy, (el momento/la hora) actual")
_put("j", None, "hasta ahora, hasta la fecha, hasta el momento")
_put("@", "year", "(año/ano) hasta la fecha, en lo que va de (año/ano), lo que va de (año/ano)")
_put("@", "month", "mes hasta la fecha, en lo que va de mes")
_put("f", "recent", "recientemente, últimamente, hace poco, hace poco tiempo")
_put("f", "other day", "(el /)otro día, la otra noche, la otra tarde")
_put("f", "other week", "la otra semana")
_put("*", None, "por estas fechas, en estas fechas, por esta época, a estas alturas")
_put("R", (-1, "last"), "últim(o/a/os/as), pasad(o/a/os/as)")
_put("R", (-1, "previous"), "anterior(/es), previ(o/a/os/as), precedente(/s)")
_put("R", (0, "this"), "est(e/a/os/as), mism(o/a)")
_put("R", (0, "current"), "actual, en curso")
_put("R", (1, "next"), "próxim(o/a/os/as), siguiente(/s), que viene(/n)")
_put("R", (1, "coming"), "est(e/a) próxim(o/a), venider(o/a/os/as), entrante")
_put("V", -2, "antepasad(o/a), antes (de la/del) pasad(o/a), anterior (al/a la) pasad(o/a)")
_put("V", 2, "después (de la/del) próxim(o/a), tras (la/el) próxim(o/a)")
_put("h", None, "tod(o/a)")
_put("P", None, "a medianoche, medianoche")
_put("P", MORNING, "(por/de/en) la mañana")
_put("P", NOON, "al mediodía, mediodía, a mediodía")
_put("P", LONG_AFTERNOON, "(por/de/en) la tarde, tarde")
_put("P", NIGHT, "(por/de/en) la noche, noche")
_put("P", SMALL_HOURS, "de madrugada, (por/de/en) la madrugada, madrugada")
_put("E", "begin", "(/a )(principio/principios/comienzo/comienzos/inicio/inicios)")
_put("E", "begin", "al (principio/comienzo/inicio), a primeros, primeros días (de/del)")
_put("E", "early", "temprano")
_put("E", "earlier", "más temprano")
_put("E", "mid", "(/a )mediados, mitad, medianos")
_put("E", "end", "(/a )(final/finales/fin/fines), al final, a últimos, últimos días (de/del)")
_put("E", "later", "más tarde")
_put("E", "half1", "primera mitad, 1 ª mitad")
_put("E", "half2", "segunda mitad, 2 ª mitad")
_put("E", "rest", "resto, lo que queda")
_put("K", None, "hace, hará, hace (casi/como/aproximadamente/cerca de/más o menos)")
_put("g", None, "atrás")
_put("l", None, "a partir de ahora, desde ahora, más tarde")
_put("n", 2, "par, par de")
_put("n", 12, "docena de")
_put(
    "v", 3, "unos pocos, unas pocas, poc(os/as), vari(os/as), algun(os/as), un(os/as) cuant(os/as)"
)
_put("v", 3, "un(os/as)")
_put("A", 1, "un, una")
_put("B", None, "y medi(o/a), medi(o/a)")
_put("T", None, "el, la, los, las")
_put("OT", (None, None), "del")
_put("m", None, "mi, nuestr(o/a)")
_put("O", None, "de")
_put("i", "in", "dentro de, en")
_put("i", "on", "con fecha de, con fecha del")
_put("i", "at", "durante, por, sobre, alrededor de")
_put("I", None, "en menos de, dentro de menos de")
_put("t", "to", "a, al, ~, hacia")
_put("t", "until", "hasta, hasta el")
_put("w", None, "entre")
_put("&", None, "y, e, &")
_put("|", None, "o, u")
_put("s", None, "desde, a partir de, a partir del, a contar de, no antes de, tan pronto como")
_put("a", None, "después de, después del, tras, posterior a, posterior al, posterior de")
_put("b", None, "antes de, antes del, previo a, anterior a, anterior al, antes de que")
_put("k", None, "a más tardar, no más tarde de, tan tarde como")
_put("G", None, "empezando, empezando el, comenzando el, que empieza el, que comienza el")
_put("p", None, "en adelante, o después, o posterior, y después, y más tarde, o más tarde")
_put("d", None, "o antes, y antes, o anterior, y anterior")
_put("Y", None, "año(/s) (calendario/natural/fiscal/naturales/fiscales), este calendario año")
_put("Y", "month", "mes(/es) (calendario/natural/naturales)")
_put("#", "w/c", "semana que (inicia/comienza/empieza/va) (el/del), semana a partir del")

LANGUAGE = Language(
    lexicon=_LEXICON,
    order=(SKIPPING_FIRST, AGO_FIRST, SINCE, *ADJECTIVE_LAST, THE_WEEKEND, THE_FIFTEENTH),
    plurals=_PLURALS,
    decade_words=words("años anos"),
    ordinal_suffixes=words("º ª er ro ra do da to ta o a"),
    quarters={"q": "q", "t": "q", "s": "h", "h": "h"},
    date_article="el",
    articles=words("el la los las"),
    bare=contexts(
        "desde hasta antes después del tras sobre a para",
        "en de durante por hacia este año mes",
        "el día fecha",
        "en durante del este desde",
    ),
    ambiguous=words("set"),
    names=words("abril julio"),
    toward=words("a de con para por sobre"),
    possessives=words("mi mis tu tus su sus nuestro nuestra"),
    every=words("cada todos todas los las cualquier muchos muchas"),
    habitual=words("suele suelen suelo sueles siempre normalmente generalmente cada todos todas"),
    general=words("cuántos cuántas puede pueden suele normalmente promedio"),
    spanning=words("durante"),
    past=words("hizo hice hicimos fue fueron era estaba tuvo"),
    not_recent=words("más menos muy tan"),
    things=words(
        "sala habitación edificio puerto versión número pedido boleto billete vuelo sección "
        "capítulo página páginas línea modelo código incidencia error columna fila celda tabla "
        "campo hoja archivo carpeta novela película libro álbum canción juego nivel paso canal "
        "autobús tren puerta salida ruta piso artículo asiento talla apartado llamado llamada"
    ),
    streets=words("calle avenida plaza paseo"),
    measures=words(
        "personas usuarios filas palabras líneas bytes mb gb kb tb ms px píxeles dólares euros "
        "pesos libras usd eur por_ciento veces millas km kilómetros metros calorías puntos "
        "estudiantes empleados clientes documentos archivos mensajes entradas casos grados horas "
        "hora minutos segundos vatios páginas libros unidades copias votos kg gramos litros "
        "preguntas"
    ),
    little=words(
        "el la los las un una yo tú él ella nosotros ellos me te se nos le les lo mi tu su qué "
        "quién cuándo dónde cómo y e o u pero si que con en a al por para de desde sobre antes "
        "después hasta entre como cuando no nunca jamás otra también fue era es son había hay "
        "tuvo hizo hice ha he han favor"
    ),
    clock=words("h hs hrs am pm"),
    session=(
        r"(?:que )?(?:hablamos|conversamos|charlamos|nos vimos)(?: por última vez)?"
        r"|nuestra (?:última|anterior) (?:conversación|charla|sesión|reunión|llamada)"
        r"|la última (?:vez|conversación|charla|sesión)"
    ),
    clause_openers=words("que"),
    has_numbered_day=True,
)

__all__ = ["LANGUAGE"]
