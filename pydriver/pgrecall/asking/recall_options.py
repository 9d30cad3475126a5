"""The options of a recall: the database's and the driver's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal

from pgrecall.options import SqlOptions
from pgrecall.rows import Period
from pgrecall.temporal import Anchors

RerankMode = Literal["blend", "replace"]


class RecallOptions(SqlOptions, total=False):
    """The arguments of a recall, all optional; None is the same as not given.

    The options of :class:`pgrecall.options.SqlOptions`, and:

    Attributes:
        embedding: Embedding of the query, shape (dimensions,). Default: the embedder makes it.
        during: (start, end) that the query is about; either may be None. Default: read out of the
            query.
        fact_types: Only facts of these types.
        tags: Only facts with any of these tags.
        filter: Only facts that meet this condition, such as ``"confidence > 0.8"``, or nested
            lists.
        top_k: Maximum number of hits, 1 to 1000.
        as_of: Answer from what was known at that time. Default: the reference time. A memory is
            known from when it was stored or, where that is earlier, from its mentioned_at.
        model: Name of the model that made the embedding.
        temporal: Whether to read a time out of the query. Default: True.
        language: Language of the query, for the times in it: en, de, es, fr, it, nl, pt, or one
            of those whose calendar words are known, such as ru, ja or tr. Default: the language in
            the bank's time_settings, else that of its text_search_config; what it does not read is
            read in English, then in a language whose words name a time in the query.
        anchors: Times that a clause such as "since I joined" refers to: a mapping from the clause
            in lower case ("i joined") to a datetime, or a function, which may return None.
        reference_time: The moment of asking, which "yesterday" counts back from. Default: now.
        rerank: Whether to rerank. Default: True if the client has a reranker. Hits that prefer or
            diversity orders are not reranked.
        candidates: How many of the best hits to rerank, 1 to 1000. Default: 40. A cross-encoder
            stops when the first places are settled, after at least 12 hits, or 36 if 20 are
            returned.
        rerank_mode: "blend" the reranker's order with the fused one (default), or "replace" that.
        rerank_seconds: Time limit of reranking, including the wait for other callers. Candidates
            not read by then follow in fused order, and the report says so. If more than four
            callers per thread wait, each gets a part of the time. Default: 2.
        boosts: Alpha of the boosts "recency", "period" and "proof" of reranked hits, 0 to 1 each: a
            score is multiplied by 1 - alpha / 2 to 1 + alpha / 2. Default: 0.
        timeout: Seconds for the whole call. Each step before the database, such as embedding, gets
            half of the time left and is left out if that is too short. The database gets all the
            time left, and reranking what remains. Default: no limit.
        strict: Whether to raise an error if the embedder, the reranker, an arm or the function of a
            hypothetical answer fails, instead of answering without it. Default: False.

    """

    embedding: Iterable[float] | None
    during: Period | None
    fact_types: Sequence[str] | None
    tags: Sequence[str] | None
    filter: str | Sequence[object] | None
    top_k: int | None
    as_of: datetime | None
    model: str | None
    temporal: bool | None
    language: str | None
    anchors: Anchors | None
    reference_time: datetime | None
    rerank: bool | None
    candidates: int | None
    rerank_mode: RerankMode | None
    rerank_seconds: float | None
    boosts: Mapping[str, float] | None
    timeout: float | None
    strict: bool | None
