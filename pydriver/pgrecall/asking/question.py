"""The steps of one recall.

Nothing here talks to a server. A :class:`Question` makes calls, which the clients run; it yields
what the models compute, which the clients wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from math import inf
from time import perf_counter
from typing import Any, cast

from pgrecall import calls
from pgrecall.arguments import check_recall, check_type
from pgrecall.asking.embedding import EmbeddedBefore, Pending, by_role
from pgrecall.asking.recall_options import RecallOptions
from pgrecall.asking.reranking import Reranking
from pgrecall.calls.call import Call
from pgrecall.calls.recall import Answer
from pgrecall.calls.values import array_text, to_range
from pgrecall.connection import telemetry
from pgrecall.connection.tracing import Trace
from pgrecall.errors import ArmFailed, InvalidArgument, OutOfTime, said
from pgrecall.inference.interfaces import Embedder, Role, WorkedEmbedder
from pgrecall.inference.known_words import known_words
from pgrecall.inference.late_interaction import Embedded, tokens_of
from pgrecall.inference.prompts import embed_as, submit_as
from pgrecall.inference.time_order import Direction, time_order
from pgrecall.inference.vectors import checked, to_floats
from pgrecall.inference.worker import Reading, Start, on_own_thread, on_this_thread
from pgrecall.options import ARGUMENTS, EMBEDDINGS
from pgrecall.report import RecallReport
from pgrecall.rows import (
    ArmFinding,
    ArmReport,
    Degradation,
    Hit,
    Period,
    Preparation,
    RecallStep,
    Reranked,
    Timings,
)
from pgrecall.settings import Settings
from pgrecall.temporal import (
    Anchors,
    TemporalConstraint,
    extract_temporal_constraint,
    languages_of,
)
from pgrecall.temporal.languages import KNOWN
from pgrecall.temporal.latest_or_former import read_latest_or_former

MOST_QUERIES = 1000
_MOST_SECONDS = 2_147_483  # that statement_timeout can hold
_LAST_SESSION = "last_session"
_TOKENS = "tokens"  # of the question, common names included
_ABOUT = "about_embedding"
_TEMPORAL = "temporal"


class Question:
    """One recall: prepared, embedded, sent, reranked and reported.

    Attributes:
        trace: The deadline, and how long the statements took.
        needs_preparation: Whether the bank must be asked before the query is embedded.
        log_share: The share of recalls that the bank wants logged; 0 if the bank was not asked.
        ordering: After rerank(), the call that orders the hits if the database does that.

    """

    log_share = 0.0
    ordering: Call[Reranked, list[Reranked]] | None = None
    _reads_order = False

    def __init__(
        self,
        settings: Settings,
        bank: str,
        query: str,
        options: Mapping[str, Any],
        start: Start = on_this_thread,
        began: float | None = None,
    ) -> None:
        """Separate the driver's options from the database's.

        Args:
            settings: The client's settings.
            bank: Name of the bank.
            query: The query.
            options: The options of the recall.
            start: Calls a function of the user, on this thread or on another one.
            began: perf_counter() at the start of the call. Default: now.

        """
        check_recall(bank, query, options, RecallOptions)
        given = {name: value for name, value in options.items() if value is not None}
        self.trace = Trace(
            timeout=_timeout(given.pop("timeout", None)),
            start=perf_counter() if began is None else began,
        )
        self._start = start if self.trace.timeout is None else on_own_thread
        self._is_strict = bool(given.pop("strict", False))
        self._degradations: list[Degradation] = []
        self._hits: list[Hit] = []
        self._limit = inf
        self._settings = settings
        self._bank = bank
        self._query = self._embedded_text = self._compared_text = query
        self._language: str | None = given.pop("language", None)
        self._anchors: Anchors | None = given.pop("anchors", None)
        self._reranking = Reranking(settings, given)
        reference_time = settings.moment(given.pop("reference_time", None))
        self._reference_time = reference_time or datetime.now(timezone.utc)
        self._seconds = dict.fromkeys(("temporal", "embed", "queue", "rerank"), 0.0)
        self._constraint: TemporalConstraint | None = None
        during: Period | None = given.pop("during", None)
        self._during = settings.period(during)
        has_window = during is not None or given.get("window") is not None
        self._reads_time = given.pop("temporal", True) and not has_window

        self._texts: dict[str, str | Callable[[str], str]] = {}
        for name in EMBEDDINGS & given.keys():
            value = given.pop(name)
            if isinstance(value, str) or callable(value):
                self._texts[name] = value
            else:
                given[name] = to_floats(value, name)
        arguments = {name: given.pop(name) for name in ARGUMENTS if name in given}
        has_embedding = "embedding" in arguments
        if has_embedding:
            vector = to_floats(arguments["embedding"])
            arguments["embedding"] = array_text(vector)
        self._lacks_model = has_embedding and arguments.get("model") is None
        # A reference time in the past also limits the answer to what was known then.
        arguments["as_of"] = settings.moment(arguments.get("as_of")) or reference_time
        arguments |= {"bank": bank, "query": query, "during": to_range(self._during)}
        self._arguments = calls.recall.recall_arguments(arguments, given)
        self._name_model()
        is_query = query.strip() != ""
        self._embeds_query = settings.embedder is not None and not has_embedding and is_query
        self.needs_preparation = (
            self._embeds_query
            or (self._reads_time and is_query)
            or (settings.depends_on_bank and (has_embedding or bool(self._texts)))
        )
        self._reranking.choose(settings, embeds_query=self._embeds_query)
        self._keep_arranged(None, None)

    def _name_model(self) -> None:
        """Name the model of an embedding that the caller gave without its model."""
        if self._lacks_model and self._settings.model is not None:
            self._arguments["model"] = self._settings.model
        elif self._lacks_model:
            self._arguments.pop("model", None)

    def preparation_call(self) -> Call[Preparation, Preparation]:
        """Return the call that asks what the bank knows about the query."""
        return calls.recall.prepare_recall(self._bank, self._query, before=self._reference_time)

    def prepare(self, preparation: Preparation) -> None:
        """Read the time out of the query; choose what to embed, and with which embedder.

        Raises:
            InvalidArgument: the language is unknown.

        """
        self._settings = self._settings.for_bank(preparation)
        self._name_model()
        self._reranking.choose(self._settings, embeds_query=self._embeds_query)
        self._keep_arranged(preparation.prefer, preparation.diversity)
        self._embedded_text = preparation.embedded_text
        if self._embeds_query and preparation.about_text is not None:
            self._compared_text = preparation.about_text
            if _ABOUT not in cast("dict[str, object]", self._arguments["options"]):
                self._texts.setdefault(_ABOUT, preparation.about_text)
        self.log_share = preparation.log_share
        if self._reads_time and self._query.strip():
            self._read_time(preparation)
            self._arguments["during"] = to_range(self._during)
            self._read_latest_or_former(preparation)

    def _languages(self, preparation: Preparation) -> list[str]:
        """Return the languages to read the question in, until one says something.

        Whoever asks a bank in another language may ask it in English, too.
        """
        if self._language is not None:
            return [self._language]
        return [*dict.fromkeys((preparation.time_settings.get("language", "en"), "en"))]

    def _languages_of_times(self, preparation: Preparation) -> Iterator[str]:
        """Return the languages to read times in; last, that of the words for a time."""
        languages = self._languages(preparation)
        yield from languages
        if self._language is None:
            yield from (code for code in languages_of(self._query) if code not in languages)

    def _read_time(self, preparation: Preparation) -> None:
        found = None

        def anchor(name: str) -> datetime | None:
            if self._anchors is not None:
                find = self._anchors if callable(self._anchors) else self._anchors.get
                known = find(name)
                if known is not None:
                    check_type(f'the anchor "{name}"', known, datetime)
                    return self._settings.moment(known)
            return preparation.last_session_end if name == _LAST_SESSION else None

        with self._timed("temporal"):
            try:
                for language in self._languages_of_times(preparation):
                    found = extract_temporal_constraint(
                        self._query,
                        self._reference_time,
                        timezone=self._settings.timezone,
                        anchors=anchor,
                        **{**preparation.time_settings, "language": language},
                    )
                    if found is not None:
                        break
            except ValueError as error:
                raise InvalidArgument(
                    str(error), hint="Pass temporal=False to leave the times in the query unread."
                ) from error
        if found is not None:
            self._constraint = found
            self._during = found.start, found.end

    def _read_latest_or_former(self, preparation: Preparation) -> None:
        """Prefer the latest or a former state if the query asks for it.

        Hits that say nearly the same are then ordered by time, and not reranked.
        """
        options = cast("dict[str, object]", self._arguments["options"])
        languages = [code for code in self._languages(preparation) if code in KNOWN]
        read = None
        for language in languages:
            read = read or read_latest_or_former(
                self._query,
                language=language,
                latest=_texts(options.get("latest_words", preparation.latest_words)),
                former=_texts(options.get("former_words", preparation.former_words)),
            )
        if read != "neither":
            self._prefer(read)
        # If no word of an English query says, the embedding may tell.
        self._reads_order = languages == ["en"] and read is None

    def _prefer(self, direction: Direction | None) -> None:
        options = cast("dict[str, object]", self._arguments["options"])
        if direction is not None and "prefer" not in options:
            options["prefer"] = direction
            self._keep_arranged(None, None)
            options.pop("with_tokens", None)

    def _keep_arranged(self, prefer: str | None, diversity: float | None) -> None:
        """Leave the reranker out where prefer or diversity orders hits: it would undo that.

        Args:
            prefer: The option of the bank, which one of the call overrides.
            diversity: Likewise.

        """
        options = cast("dict[str, object]", self._arguments["options"])
        is_preferring = options.get("prefer", prefer) in ("latest", "former")
        if is_preferring or options.get("diversity", diversity):
            self._reranking.reranker = None

    def embed(self, *, is_strict: bool = False) -> Iterator[Pending[Any]]:
        """Embed all texts of the question; wait for what is yielded.

        Args:
            is_strict: Whether to raise errors of the embedder even if option strict is off.

        Raises:
            Exception: what the embedder or the user's function raised, if strict.

        """
        embedder = self._settings.embedder
        if embedder is None:
            return
        self._is_strict |= is_strict
        texts: dict[str, str] = {}
        for name, text in self._texts.items():
            if not callable(text):
                texts[name] = text
                continue
            try:
                texts[name] = yield from self._waited(
                    "embed", partial(self._start, text, self._query), self._share()
                )
            except Exception as error:  # the other arms still answer
                self._leave_out(name, f"{name} was left out: ", error)
        if self._embeds_query:
            texts["embedding"] = self._embedded_text
            if self._reranking.is_late and self.is_reranked:
                texts[_TOKENS] = self._compared_text
        options = cast("dict[str, object]", self._arguments["options"])
        direction = None
        try:
            for role, names in by_role(embedder, texts):
                # Equal texts, such as a question without names, are embedded once.
                unique = [*dict.fromkeys(texts[name] for name in names)]
                alone = {*unique} - {texts[name] for name in names if name != _TOKENS}
                begin = partial(self._begun_embedding, embedder, role, unique, alone)
                vectors = yield from self._waited("embed", begin, self._share())
                read = dict(
                    zip(unique, checked(embedder.model, [*vectors], len(unique)), strict=True)
                )
                for name in names:
                    vector = read[texts[name]]
                    if name == "embedding":
                        self._arguments[name] = array_text(vector)
                        if self._reads_order:
                            direction = time_order(embedder, vector)
                        known = known_words(embedder, texts[name])
                        if known < 1:
                            options.setdefault("known_words", round(known, 4))
                    elif name == _TOKENS:
                        self._reranking.tokens = tokens_of(vector)
                        options["with_tokens"] = True
                    else:
                        options[name] = vector
                self._arguments.setdefault("model", embedder.model)
                self._prefer(direction)
        except Exception as error:  # the other arms still answer
            self._leave_out("embedder", "nothing was searched by embedding: ", error)

    def _begun_embedding(
        self, embedder: Embedder, role: Role, texts: list[str], for_tokens: set[str]
    ) -> Future[Any]:
        if isinstance(embedder, WorkedEmbedder):
            return submit_as(embedder, role, texts, for_tokens)
        return self._start(lambda: [*embed_as(embedder, role, texts)])

    def _share(self) -> float | None:
        left = self.trace.left
        return None if left is None else left / 2

    def _waited(
        self, stage: str, begin: Callable[[], Future[Any]], seconds: float | None
    ) -> Generator[Pending[Any], None, Any]:
        """Start work, have it waited for, and return its result.

        The time that it waited for other callers counts as "queue", not as the stage.
        """
        start, waited = perf_counter(), 0.0
        try:
            pending = Pending(begin(), seconds)
            yield pending
            found = pending.result()
            if not isinstance(found, Reading):
                return found
            waited = max(0.0, perf_counter() - start - found.seconds)
            self._limit = found.limit
            return found.found
        finally:
            seconds = perf_counter() - start
            self._seconds["queue"] += waited
            self._seconds[stage] += seconds - waited
            telemetry.stage(stage, seconds)

    def _leave_out(self, what: str, why: str, error: Exception) -> None:
        """Report a part that failed and is left out, or raise its error if strict."""
        if self._is_strict:
            raise error
        reason, hint = said(error)
        self._degradations.append(Degradation(what, f"{why}{reason}", hint))

    def call(self) -> Call[Any, Answer]:
        """Return the call that finds the candidates and reports on the arms."""
        return calls.recall.recall_report(self._arguments)

    def explain_call(self, is_run: bool | None) -> Call[ArmReport, list[ArmReport]]:
        """Return the call that only reports on the arms."""
        return calls.recall.explain_recall(self._arguments, is_run=is_run)

    def arm_hits_call(self) -> Call[ArmFinding, list[ArmFinding]]:
        """Return the call that lists what each arm finds."""
        return calls.recall.arm_hits(self._arguments)

    def why_not_call(self, memory_id: int) -> Call[RecallStep, list[RecallStep]]:
        """Return the call that follows one memory through the recall."""
        return calls.recall.why_not(self._arguments, memory_id)

    @property
    def is_reranked(self) -> bool:
        """Whether the database returns candidates for a reranker."""
        return self._reranking.reranker is not None

    def reranked_steps(self, steps: Sequence[RecallStep], memory_id: int) -> list[RecallStep]:
        """Add what reranking did with a memory to its steps."""
        candidate = replace(steps[-1], step="candidates")
        places = {hit.memory_id: place for place, hit in enumerate(self._hits, 1)}
        place = places.get(memory_id) if candidate.status == "returned" else None
        if place is None:
            reason = "it is not among the candidates that the reranker orders"
            return [*steps[:-1], candidate, RecallStep("answer", "left out", None, None, reason)]
        page, score = self._reranking.page, self._hits[place - 1].final_score
        reason, status = f"of {len(self._hits)}, reranked", "returned"
        if not page.start < place <= page.stop:
            reason += f"; the answer is {page.start + 1} to {page.stop}"
            status = "left out"
        return [*steps[:-1], candidate, RecallStep("answer", status, place, score, reason)]

    def rerank(self, answer: Answer) -> Iterator[Pending[Any]]:
        """Rerank the hits; wait for what is yielded.

        Raises:
            Exception: what the reranker raised, if strict.

        """
        for arm in answer.arms:
            if self._is_strict and arm.status == "failed":
                raise ArmFailed(_degradation(arm).why, hint=arm.hint)
        self._arms = answer.arms
        self._hits = answer.hits
        reranking = self._reranking
        if reranking.reranker is None or not self._hits:
            return
        self._leave_time_uncompared()
        constraint = self._constraint
        # A vague word such as "recently" says nothing about a date beside it.
        asked = constraint.matched if constraint and constraint.kind != "fuzzy" else ""
        begin = reranking.begin(
            self._hits,
            self._query,
            self._reference_time,
            self._during,
            asked,
            self.trace.left,
            self._start,
        )
        try:
            scores = yield from self._waited("rerank", begin, self.trace.left)
            if reranking.is_late:
                self.ordering = reranking.ordering(scores)
            else:
                self._hits = reranking.ordered(scores, self._limit)
        except Exception as error:  # the fused order is still an answer
            self._leave_out("reranker", "", error)
            return
        degradation = reranking.degradation
        if degradation and self._is_strict and not reranking.is_late:
            raise OutOfTime(degradation.why, hint=degradation.hint)
        self._degradations += [degradation] if degradation else []

    def _leave_time_uncompared(self) -> None:
        """Compare no token of the time that was read if the window says when.

        Where nothing occurred in the window or near it, only the texts can say.
        """
        constraint, tokens = self._constraint, self._reranking.tokens
        if constraint is None or tokens is None:
            return
        before, matched, after = self._compared_text.partition(constraint.matched)
        is_more = any(map(str.isalnum, before + after))
        is_once = matched not in after  # "What did June say in June?"
        if is_more and is_once and any(_TEMPORAL in hit.arms for hit in self._hits):
            self._reranking.tokens = tokens.without(len(before), len(before) + len(matched))

    def order(self, rows: Sequence[Reranked]) -> None:
        """Order the hits by the result of the call `ordering`."""
        self._hits = self._reranking.ordered_late(rows)

    def keep_order(self, error: Exception) -> None:
        """Keep the fused order, since the call `ordering` failed.

        Raises:
            Exception: the error, if strict.

        """
        self._leave_out("reranker", "", error)

    def report(self) -> RecallReport:
        """Return the report."""
        left_out = [_degradation(arm) for arm in self._arms if arm.hint or arm.status == "failed"]
        page = self._hits[self._reranking.page]
        constraint = self._constraint
        stages = {
            "temporal": self._seconds["temporal"],
            "embed": self._seconds["embed"],
            "wait": self.trace.wait,
            "database": self.trace.database,
            "rerank": self._seconds["rerank"],
            "queue": self._seconds["queue"],
        }
        rest = perf_counter() - self.trace.start - sum(stages.values())
        return RecallReport(
            hits=tuple(page),
            timings=Timings(
                **{stage: seconds * 1000 for stage, seconds in stages.items()},
                driver=max(0.0, rest) * 1000,
            ),
            temporal=constraint,
            facts=(constraint.fact(),) if constraint is not None else (),
            degradations=(*left_out, *self._degradations),
            arms=tuple(self._arms),
            confidence=max((hit.relevance for hit in page), default=0.0),
            reranked=sum(hit.rerank_score is not None for hit in self._hits),
            reranking=self._reranking.note,
            timezone=self._settings.timezone,
        )

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        start = perf_counter()
        try:
            yield
        finally:
            self._seconds[stage] += perf_counter() - start


def repeated(options: RecallOptions) -> RecallOptions:
    """Return options that several questions can read: lists in place of iterators."""
    listed = {name: [*one] if isinstance(one, Iterator) else one for name, one in options.items()}
    return cast("RecallOptions", listed)


def embed_together(questions: Sequence[Question]) -> Iterator[Pending[Any]]:
    """Embed the queries of several questions in one batch.

    Wait for what is yielded. If it fails, each question has that error.
    """
    first = questions[0]
    embedder = first._settings.embedder
    asked = [one for one in questions if one._embeds_query]
    late = [one._compared_text for one in asked if one._reranking.is_late and one.is_reranked]
    whole = [one._embedded_text for one in asked]
    whole += [text for one in asked if isinstance(text := one._texts.get(_ABOUT), str)]
    texts = [*dict.fromkeys([*whole, *late])]
    if embedder is None or not texts:
        return
    vectors: dict[str, Embedded] = {}
    failed = None
    try:
        begin = partial(first._begun_embedding, embedder, "query", texts, {*texts} - {*whole})
        found = yield from first._waited("embed", begin, first._share())
        vectors = dict(zip(texts, checked(embedder.model, [*found], len(texts)), strict=True))
    except Exception as error:  # the other arms still answer
        failed = error
    for one in questions:
        one._settings = replace(one._settings, embedder=EmbeddedBefore(embedder, vectors, failed))


def _texts(words: object) -> list[str]:
    """Return the strings in a list; the database refuses anything else."""
    return [one for one in words if isinstance(one, str)] if isinstance(words, list) else []


def _timeout(seconds: float | None) -> float | None:
    if seconds is not None and not 0 < seconds <= _MOST_SECONDS:
        problem = f"not above 0 and at most {_MOST_SECONDS}"
        hint = "Give seconds for the whole call, such as 2; None for no limit."
        raise InvalidArgument(f"timeout is {seconds}, {problem}", hint=hint)
    return seconds


def _degradation(arm: ArmReport) -> Degradation:
    problem = "the {} arm failed and was left out: {}" if arm.status == "failed" else "{}: {}"
    return Degradation("arm", problem.format(arm.arm, arm.reason or "no reason given"), arm.hint)
