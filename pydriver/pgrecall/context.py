"""Write an answer for a language model.

Facts are grouped by day, oldest first, and numbered by rank for citation. Who said it, or the
heading that it stands under, is written before a text. Repetitions are left out. Contradicted facts
and less trusted sources are marked. The list ends when the scores show that more would not help, or
when the budget is used up. A memory of several lines keeps them, indented. Characters that a model
reads and a person does not see are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta, timezone, tzinfo
from itertools import groupby
from typing import Protocol

from pgrecall.arguments import check_given, check_type
from pgrecall.errors import InvalidArgument
from pgrecall.rows import Context, Hit
from pgrecall.sentences import heading_of, sentences

CountTokens = Callable[[str], int]

MAX_TOKENS = 2000
HELPS_FROM = 0.1
"""Share of the best hit's relevance below which hits do not help; see bench/README.md."""

HELPS_ALWAYS = 3
"""Best hits that are kept however they compare: the second may be what corrects the first."""

_HEAD = "Memories, by the day they are about. Cite them by number."
_NOTHING = "No memory answers this."
_PIECES = re.compile(r"[^\W\d_]+|\d+|[^\w\s]|_|\s")
# Controls of terminals, and what Unicode has every font ignore: controls of the direction of
# writing, invisible copies of ASCII, zero widths, variation selectors.
_IGNORED = (
    "\0-\x08\x0e-\x1b\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Where one of these says how a sign or letter before it looks, as in emoji, Persian, Hindi and
# Mongolian, it stays: not between letters of ASCII, nor in a row, which could spell something.
_SHAPING = "\ufe0f?[\u200c\u200d]|[\ufe0e\ufe0f\u180b-\u180f]"
_UNSEEN = re.compile(f"((?<=[^\0-\x7f{_IGNORED}])(?:{_SHAPING})|\ufe0f(?=\u20e3))|[{_IGNORED}]")
_ELLIPSIS = "…"
_INDENT = "    "
_FULL_STOPS = ".!?…。！？"
_LONGEST_NAME = 80  # characters


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text, on the high side, without knowing the tokenizer.

    A word counts one token per five letters, outside of ASCII one per one and a half letters; three
    digits count one, as does each sign, line break and further space.
    """
    count = 0
    before = ""
    for piece in _PIECES.findall(text):
        if piece == " " and before != " ":
            cost = 0  # belongs to the next word
        elif piece[0].isdigit():
            cost = -(-len(piece) // 3)
        elif piece.isascii():
            cost = -(-len(piece) // 5)
        else:
            cost = -(-2 * len(piece) // 3) if piece.isalpha() else 2
        count += cost
        before = piece
    return count


class Answered(Protocol):
    """An answer, such as a RecallReport."""

    @property
    def hits(self) -> Sequence[Hit]:
        """The hits, best first."""
        ...

    @property
    def facts(self) -> Sequence[str]:
        """Statements to begin with, such as which dates "last week" stands for."""
        ...

    @property
    def timezone(self) -> tzinfo:
        """The time zone of days."""
        ...


@dataclass(frozen=True, slots=True)
class _Line:
    """One hit in the context."""

    number: int
    hit: Hit
    day: str
    text: str


def likely_hits(max_tokens: int) -> int:
    """Return the number of hits that a budget can hold."""
    return min(max(max_tokens // 12, 20), 1000)


def make_context(
    report: Answered,
    *,
    max_tokens: int = MAX_TOKENS,
    count_tokens: CountTokens | None = None,
) -> Context:
    """Write the answer for a language model, within a budget.

    Args:
        report: The answer.
        max_tokens: Maximum number of tokens of the whole text.
        count_tokens: Counts the tokens of a text as the model does. Default: a high estimate.

    Raises:
        InvalidArgument: the budget is too small for one line.

    """
    check_given(max_tokens=max_tokens, count_tokens=count_tokens)

    def count(text: str) -> int:
        counted = (count_tokens or estimate_tokens)(text)
        check_type("the result of count_tokens", counted, float)
        return counted

    zone = report.timezone
    hits = _helpful(_distinct(report.hits, zone))
    lines = [_line(number, hit, report.hits, zone) for number, hit in enumerate(hits, 1)]
    head = [*report.facts]
    if not lines:
        texts = ("\n".join([*head, _NOTHING]), _NOTHING)
        text = next((one for one in texts if count(one) <= max_tokens), "")
        return Context(text, count(text), {}, 0, is_shortened=False)

    chosen: list[_Line] = []
    spent = count(_written(head, []))
    for line in lines:
        cost = count(f"{line.day}\n{line.text}\n")
        if not chosen or spent + cost <= max_tokens:
            chosen.append(line)
            spent += cost
    # Count the whole text, since lines share days and tokens can span lines.
    fits = _most(len(chosen), lambda n: count(_written(head, chosen[:n])) <= max_tokens)
    is_shortened = fits == 0
    if is_shortened:
        chosen = [_shortened(lines[0], head, max_tokens, count)]
        fits = 1
    text = _written(head, chosen[:fits])
    return Context(
        text=text,
        tokens=count(text),
        citations={line.number: line.hit.memory_id for line in chosen[:fits]},
        left_out=len(report.hits) - fits,
        is_shortened=is_shortened,
        hits=tuple(line.hit for line in chosen[:fits]),
    )


def _distinct(hits: Sequence[Hit], zone: tzinfo) -> list[Hit]:
    """Remove repetitions of better hits: the same about the same, on the same day.

    A message is a repetition, too, if each of its sentences is.
    """
    shown: set[tuple[str, str, str]] = set()
    kept = []
    for hit in hits:
        about, day = _about(hit).casefold(), _day(hit, zone)
        pieces = sentences(hit.text) if hit.kind == "message" else [hit.text]
        whole, *parts = [_alike(text) for text in (hit.text, *pieces)]
        if (about, whole, day) not in shown and any((about, x, day) not in shown for x in parts):
            kept.append(hit)
            days = {day, _day(replace(hit, occurred=None), zone)}
            shown |= {(about, text, one) for text in (whole, *parts) for one in days}
    return kept


def _alike(text: str) -> str:
    """Return what texts that say the same have in common."""
    plain = " ".join(text.casefold().split())
    return plain.rstrip(_FULL_STOPS) or plain


def _about(hit: Hit) -> str:
    """Return who said a hit, or else the heading that it stands under, if any."""
    about = hit.metadata.get("speaker", hit.context)
    if not isinstance(about, str):
        return ""
    if hit.kind != "message" and "speaker" not in hit.metadata:
        return " ".join(heading_of(about).split())
    is_name = len(about.strip().splitlines()) == 1 and len(about) <= _LONGEST_NAME
    return " ".join(about.split()).rstrip(" :") if is_name else ""


def _helpful(hits: Sequence[Hit]) -> list[Hit]:
    """Remove the rest once no further hit, but for a few, is relevant compared with the best."""
    shares = [hit.relevance * hit.trust for hit in hits]
    floor = HELPS_FROM * max(shares, default=0.0)
    last = max(
        (n for n, share in enumerate(shares) if n < HELPS_ALWAYS or share >= floor), default=-1
    )
    return list(hits[: last + 1])


def _line(number: int, hit: Hit, hits: Sequence[Hit], zone: tzinfo) -> _Line:
    text = _lined(hit.text)
    about = _about(hit)
    if about and not re.match(rf"{re.escape(about)}(?!\w)", text, re.IGNORECASE):
        text = f"{about}: {text}"
    marks = []
    path = (hit.via or {}).get("path")
    if isinstance(path, str):
        marks.append(f"by way of {' '.join(path.split())}")
    if hit.trust < 1:
        marks.append(f"from {' '.join((hit.source_id or 'nobody named').split())}, trusted less")
    rivals = [
        other
        for other in hits
        if other.memory_id in hit.conflicts_with and other.trust >= hit.trust
    ]
    newer = [other for other in rivals if _said_at(other) > _said_at(hit)]
    if newer:
        marks.append("outdated: contradicted by a newer one")
    elif hit.conflicts_with:
        marks.append("contradicted by an older one" if rivals else "contradicted by another")
    note = f" ({'; '.join(marks)})" if marks else ""
    return _Line(number, hit, _day(hit, zone), _UNSEEN.sub(r"\1", f"[{number}] {text}{note}"))


def _lined(text: str) -> str:
    """Keep the lines of code, tables and lists, indented so that none looks like another memory."""
    lines = [line.expandtabs(4) for line in text.splitlines() if line.strip()]
    indents = [len(line) - len(line.lstrip()) for line in lines]
    least = min(indents, default=0)
    return f"\n{_INDENT}".join(
        " " * (indent - least) + " ".join(line.split())
        for indent, line in zip(indents, lines, strict=True)
    )


def _said_at(hit: Hit) -> datetime:
    start = (hit.occurred or (None, None))[0]
    return start or hit.mentioned_at or datetime.min.replace(tzinfo=timezone.utc)


def _day(hit: Hit, zone: tzinfo) -> str:
    """Format when a hit happened or, if unknown, was mentioned.

    What begins and ends at midnight UTC was given as dates, which no zone changes.
    """
    start, end = hit.occurred or (None, None)
    given = [one for one in (start, end) if one] if start or end else [hit.mentioned_at]
    is_instant = start is not None and start == end
    if not is_instant and all(map(_is_midnight, given)):
        zone = timezone.utc
    if start is None and end is None:
        return f"said {_date(hit.mentioned_at, zone)}" if hit.mentioned_at else "undated"
    if start is None or end is None:
        return f"since {_date(start, zone)}" if start else f"until {_date(end, zone)}"
    last = end - timedelta(microseconds=1) if end > start else end
    days = _date(start, zone), _date(last, zone)
    return days[0] if days[0] == days[1] else " to ".join(days)


def _is_midnight(moment: datetime | None) -> bool:
    return moment is not None and moment.astimezone(timezone.utc).time() == time.min


def _date(moment: datetime | None, zone: tzinfo) -> str:
    try:
        return moment.astimezone(zone).strftime("%Y-%m-%d") if moment else ""
    except OverflowError:  # in the first or the last year that there is
        return _date(moment, timezone.utc)


def _written(head: Sequence[str], lines: Sequence[_Line]) -> str:
    """Write lines grouped by day, in order of time."""
    ordered = sorted(lines, key=lambda line: (_said_at(line.hit), line.day, line.number))
    written = [*head, _HEAD]
    for day, group in groupby(ordered, key=lambda line: line.day):
        written += [day, *(line.text for line in group)]
    return "\n".join(written)


def _shortened(line: _Line, head: Sequence[str], max_tokens: int, count: CountTokens) -> _Line:
    """Truncate the text of the best hit to fit the budget."""

    def cut(length: int) -> _Line:
        return _Line(line.number, line.hit, line.day, line.text[:length].rstrip() + _ELLIPSIS)

    def does_fit(length: int) -> bool:
        return count(_written(head, [cut(length)])) <= max_tokens

    length = _most(len(line.text), does_fit)
    if length <= len(f"[{line.number}] "):
        raise InvalidArgument(
            f"max_tokens is {max_tokens}, too few for one memory",
            hint=f"Pass at least {count(_written(head, [cut(40)]))}; {MAX_TOKENS} is the default.",
        )
    return cut(length)


def _most(limit: int, does_fit: Callable[[int], bool]) -> int:
    """Return the greatest number up to a limit that fits; 0 if none does."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if does_fit(middle):
            low = middle
        else:
            high = middle - 1
    return low
