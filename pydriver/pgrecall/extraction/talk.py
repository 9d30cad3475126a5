"""Call an extractor on batches of messages, retry it, and record failures.

Facts are extracted of messages that the bank does not have yet. A failing extractor is retried with
growing delays. Of its results only malformed facts are lost. The messages of a batch are stored
behind its facts, so that what is interrupted is done again.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, tzinfo
from itertools import islice
from typing import Any, Protocol, runtime_checkable
from zoneinfo import ZoneInfo

from pgrecall.connection.retries import RETRIES, retry_delays
from pgrecall.inference.runtime import settled
from pgrecall.retaining.facts import Fact, several
from pgrecall.rows import ExtractionFailure, RetainedMessage

Message = Mapping[str, object]
"""A message in the format of retain_messages: text, speaker, role, session, sent_at."""

Extractor = Callable[[Sequence[Message]], Iterable[Fact] | Fact | Awaitable[Iterable[Fact] | Fact]]
"""A function from messages to one or more facts in retain's format; it may be async."""


@runtime_checkable
class ContextExtractor(Protocol):
    """An extractor that understands new messages by those that are known."""

    def extract_new(
        self, messages: Sequence[Message], is_new: Sequence[bool]
    ) -> Iterable[Fact] | Fact | Awaitable[Iterable[Fact] | Fact]:
        """Return the facts in the new ones of some messages."""
        ...


MESSAGES_AT_ONCE = 20
_TIME = re.compile(  # as the database takes it
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:\.(\d*))?)?)?"
    r"\s*(?:Z|([+-]\d\d):?(\d\d)?|([A-Za-z][\w/+-]*))?\s*"
)

logger = logging.getLogger(__name__)


def batches(messages: Sequence[Message], size: int) -> Iterator[tuple[int, Sequence[Message]]]:
    """Split messages into batches of one session and limited size; yield each with its position."""
    start = 0
    for n in range(1, len(messages) + 1):
        is_cut = n == len(messages) or messages[n].get("session") != messages[start].get("session")
        if is_cut or n - start == size:
            yield start, messages[start:n]
            start = n


def to_extract(messages: Sequence[Message], is_new: Sequence[bool]) -> list[bool]:
    """Return which messages facts are made of: the new ones, and answers that are given again.

    Without a time a second "yes" is the message that the bank knows. But what stands behind a new
    message of its session was said after it.
    """
    grown = set()
    wanted = []
    for message, one in zip(messages, is_new, strict=True):
        if one:
            grown.add(message.get("session"))
        is_again = message.get("sent_at") is None and message.get("session") in grown
        wanted.append(one or is_again)
    return wanted


def extracted(
    extract: Extractor, messages: Sequence[Message], is_new: Sequence[bool]
) -> tuple[list[Fact], str | None]:
    """Call an extractor for the new ones of some messages, and retry it if it fails.

    Returns:
        Facts, with the session and time of the messages as defaults; and the error, or None.

    """
    new = [message for message, one in zip(messages, is_new, strict=True) if one]
    if not new:
        return [], None
    delays = islice(retry_delays(), RETRIES)
    while True:
        try:
            if len(new) < len(messages) and isinstance(extract, ContextExtractor):
                found = extract.extract_new(messages, is_new)
            else:
                found = extract(new)
            facts = [_with_origin(fact, new) for fact in several(settled(found))]
        except Exception as error:  # any error of the user's function
            problem = f"{type(error).__name__}: {error}"
            delay = next(delays, None)
            logger.debug("extractor failed: %s", type(error).__name__)
            if delay is None:
                return [], problem
            time.sleep(delay)
        else:
            return facts, None


def _with_origin(fact: Fact, messages: Sequence[Message]) -> Fact:
    known = {"text": fact} if isinstance(fact, str) else fact
    if not isinstance(known, Mapping):
        return known  # retain() says what is wrong
    last = messages[-1]
    origin = {"source_id": last.get("session"), "mentioned_at": last.get("sent_at")}
    # Models write null for what they do not know.
    given = {name: value for name, value in known.items() if value is not None}
    return {name: value for name, value in (origin | given).items() if value is not None}


def without(facts: Sequence[Fact], place: int) -> list[Fact]:
    """Return facts without one, their links to it left out and those beyond it moved."""
    return [_unlinked(fact, place) for n, fact in enumerate(facts) if n != place]


def _unlinked(fact: Fact, place: int) -> Fact:
    links = fact.get("links") if isinstance(fact, Mapping) else None
    if not isinstance(fact, Mapping) or not isinstance(links, list | tuple):
        return fact
    kept = []
    for link in links:
        index = link.get("to_index") if isinstance(link, Mapping) else None
        if isinstance(index, int) and index > place:
            link = {**link, "to_index": index - 1}
        if index != place:
            kept.append(link)
    return {**fact, "links": kept}


def failure(first: int, messages: Sequence[Message], problem: str, fact: Any) -> ExtractionFailure:
    """Make a failure of messages."""
    return ExtractionFailure(first, first + len(messages) - 1, problem, fact)


def warn(failures: Sequence[ExtractionFailure]) -> None:
    """Log how much was left out, for callers who do not look; never what was said."""
    if failures:
        logger.warning(
            "%s facts were refused, or batches of messages that the extractor failed for:"
            " the result lists them as failures",
            len(failures),
        )


def placed(first: int, row: RetainedMessage) -> RetainedMessage:
    """Return the row of a message with its position among all, not in a batch from first on."""
    return replace(row, index=first + row.index)


def zoned(message: Message, zone: tzinfo) -> Message:
    """Return a message whose time, if that is a datetime without a zone, is in a zone."""
    sent = message.get("sent_at")
    if not isinstance(sent, datetime) or sent.tzinfo is not None:
        return message
    return {**message, "sent_at": sent.replace(tzinfo=zone)}


def text_of(message: Message) -> str:
    """Return the text of a message, which chat APIs call content and may write in parts."""
    said = message.get("text") or message.get("content") or ""
    if isinstance(said, str) or not isinstance(said, Sequence):
        return str(said)
    return "\n".join(str(part["text"]) for part in said if part.get("text"))


def speaker_of(message: Message) -> str:
    """Return who says a message, which chat APIs call name; empty if unknown."""
    return str(message.get("speaker") or message.get("name") or "")


def is_said(message: Message) -> bool:
    """Return whether somebody says a message, which is no instruction of the system."""
    return message.get("role") not in ("system", "developer")


def moment(message: Message) -> datetime | None:
    """Return when a message was sent; None if unknown. Dates and texts without a zone are UTC.

    Raises:
        ValueError: Python has no such time.

    """
    sent = message.get("sent_at")
    if isinstance(sent, datetime):
        return sent
    if isinstance(sent, date):
        sent = sent.isoformat()
    if not isinstance(sent, str):
        return None
    found = _TIME.fullmatch(sent)
    if found is None:
        raise ValueError(f"not a time: {sent!r}")
    day, clock, seconds, part, hours, minutes, zone = found.groups()
    # In the one form that every version of Python reads.
    written = f"{day}T{clock or '00:00'}:{seconds or '00'}.{(part or '')[:6]:0<6}"
    if zone is not None:
        return datetime.fromisoformat(written).replace(tzinfo=ZoneInfo(zone))
    return datetime.fromisoformat(f"{written}{hours or '+00'}:{minutes or '00'}")
