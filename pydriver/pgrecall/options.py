"""Arguments and options of a recall, as the database declares them.

Generated from pgrecall.recall_options() by pydriver/generate.py; do not edit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Literal, TypedDict

ARGUMENTS = ("embedding", "fact_types", "tags", "filter", "top_k", "as_of", "model")
TOP_K = 10
EMBEDDINGS = frozenset(("about_embedding", "hypothetical"))
LISTS = frozenset(("arms", "former_words", "keys", "latest_words", "terms"))


class SqlOptions(TypedDict, total=False):
    """Options of a recall.

    Attributes:
        about_embedding: Embedding of the query without names, about_text of prepare_recall():
            compares the facts about those whom the query names with each other. Only with an
            embedding. Range: numbers, as many as embedding has.
        arm_timeout: Time after which no further arm begins; the arms that ran answer. An arm waits
            for a lock for at most a quarter of it. A running arm goes on; statement_timeout ends
            the statement. Range: longer than 0.
        arms: The arms to run, and no others. Null: all that can help. Range: names of arms().
        budget: mid runs the arms that can help; low leaves out graph, messages and the hypothetical
            answer and looks half as deep; high skips only what has nothing to work on and looks
            twice as deep. One of: low, mid, high. Default: the bank's, else mid.
        candidate_limit: About how many memories the lexical arms score at most, those with the
            rarest words and sets of words first; a quarter as many where these are enough. Range:
            100 to 100000000. Default: the bank's, else 9000.
        collapse: Keeps only the best row of each source_id. Default: the bank's, else false.
        depth: How many rows each arm gives, the graph arm beside others half as many; those that
            compare embeddings and the temporal arm up to half as many more, about whom the query
            names. Where neither bank nor call sets it: at least skip + top_k. Range: 1 to 10000.
            Default: the bank's, else 100.
        diversity: Moves rows that resemble earlier ones further down (maximal marginal relevance
            among the first 200): rows are then not in the order of their scores. Range: 0 to 1.
            Default: the bank's, else 0.
        doubt: Share of its weight that the lexical or a semantic arm loses where it can hardly tell
            memories apart and the other can: embeddings in a language that their model does not
            know, words in long questions. Range: 0 to 1. Default: the bank's, else 0.9.
        ef_search: Candidates that a search of an HNSW index keeps: more find more and take longer.
            Null: a fifth more than depth, or five times depth with vector_search binary or leading.
            Range: 1 to 1000.
        entity: Keeps only what mentions the entity of this name; any of its names will do. For
            several entities, or other conditions too, use entity in a filter. Range: a name.
        exact_limit: Vectors of a bank up to which all that pass a filter are compared where its
            HNSW index finds too few of them; beyond, the report says that some may be missing.
            Range: 0 to 9000000000000000. Default: the bank's, else 1000000.
        explain: Counts the index scans of each arm, for its report. Default: false.
        former_words: Words or phrases by which a question asks for a former state, as in
            latest_words. Range: 100 texts of 1 to 1000 characters.
        fusion: How the arms are joined: by the function of this name. One of: score_rrf, rrf,
            linear. Default: the bank's, else score_rrf.
        gates: Score that the best hit of an arm must reach: {"semantic": 0.3}. An arm below it is
            left out, but never all arms. Range: 0 to 1000000 for an arm. Default: the bank's, else
            {}.
        graph_steps: How many mentions, relations and links that the query does not ask for a path
            of the graph arm may follow. Those that it asks for do not count. Range: 1 to 4.
            Default: the bank's, else 2.
        hypothetical: Embedding of a hypothetical answer (HyDE), which is searched with too. Range:
            numbers, as many as embedding has.
        keys: Keys of facts that the key arm finds, each as a whole, before those that stand in the
            query. A query may then be empty. Range: 100 texts of 1 to 1000 characters.
        known_words: Share of the words of the query that the embedding model knows, as its embedder
            says. From 0.75 on the semantic arm has all of its weight, at 0.25 none. Below 0.75
            doubt takes more of it where similarities are vague. Range: 0 to 1. Default: 1.
        latest_words: Words or phrases by which a question asks for the latest state, beside those
            that the driver knows: it reads them and sets prefer. Range: 100 texts of 1 to 1000
            characters.
        min_relevance: Leaves out rows whose relevance is lower, and may leave none. Range: 0 to 1.
            Default: the bank's, else 0.
        named_boost: How much more a memory counts for each entity that it mentions and the query
            names, or if the graph leads to it from there: contributions are multiplied by 1 +
            named_boost * the sum, at most two thirds, of the confidence in each entity * how much
            its name says: a sixth where half of the facts mention it, a third where a quarter or
            fewer do. Range: 0 to 10. Default: the bank's, else 3.
        prefer: latest puts the newest of nearly equal rows about the same first, former the oldest.
            One of: relevant, latest, former. Default: the bank's, else relevant.
        recency_decay: How recency falls with age; linear reaches 0 at twice the half-life. One of:
            exponential, linear. Default: the bank's, else exponential.
        recency_half_life: Age at which recency neither lifts nor lowers a score, only with fusion
            linear; see recency_boost(). Null: age only settles ties. Range: longer than 0.
        relation_words: Words that ask for relations or causes, {"skipper": ["noun<skippers"]}: over
            those of default_relation_words(). Range: meanings by word.
        rrf_k: k of reciprocal rank fusion; the larger it is, the less ranks count. Range: 1 to
            10000. Default: the bank's, else 60.
        similarity_floor: Cosine similarity below which the semantic arms return nothing. Range: -1
            to 1. Default: the bank's, else 0.2.
        skip: How many of the best rows to skip, for the next page. Set depth for all pages alike:
            arms that look deeper change the order a little. Range: 0 to 10000. Default: the bank's,
            else 0.
        source_rows: Rows of one source_id that may stand before others; further ones follow behind
            all else. 0: any number. Range: 0 to 1000. Default: the bank's, else 0.
        terms: Synonyms and expansions of the query, which the arms lexical and message look for
            with half the weight of its own words. A query may then be empty. Range: 100 texts of 1
            to 1000 characters.
        time_basis: mentioned takes the time when it was said where the time when it happened is not
            known. One of: occurred, mentioned. Default: the bank's, else occurred.
        time_mode: boost lifts what occurred in the window of during; filter leaves out all else;
            events also leaves out what began before the window and ended after it. One of: boost,
            filter, events. Default: the bank's, else boost.
        type_hints: Words that say which fact type a query asks for. Null: those of
            default_type_hints(). Range: words by fact type, "*" for any.
        untrusted_rows: How many rows of one source that is trusted less than 1 (source_trust of the
            bank) may stand before others; more of them come last. Range: 0 to 1000. Default: the
            bank's, else 3.
        use_hints: Searches only the fact types that type_hints() finds in the query, unless that
            finds too little (widen_below). Default: the bank's, else false.
        weights: Weight of each arm in the fusion: {"graph": 0.5}. 0: the arm is not run. Range: 0
            to 1000000 for an arm. Default: the bank's, else {'key': 3, 'graph': 11, 'source': 0,
            'lexical': 1, 'message': 1.2, 'semantic': 1, 'temporal': 1.5, 'hypothetical': 0.5}.
        widen_below: A recall that was narrowed by hints looks everywhere when it finds fewer
            memories than this. 0: never. Range: 0 to 1000. Default: the bank's, else 5.
        window: The window of time by its name, in place of during: {"window": "last quarter"}.
            Range: a name of windows(), or a range.
        with_tokens: Returns the token vectors of memories; the driver reranks by them and sets this
            itself. Default: false.

    """

    about_embedding: Iterable[float] | str | Callable[[str], str] | None
    arm_timeout: timedelta | str | None
    arms: Sequence[str] | None
    budget: Literal["low", "mid", "high"] | None
    candidate_limit: int | None
    collapse: bool | None
    depth: int | None
    diversity: float | None
    doubt: float | None
    ef_search: int | None
    entity: str | None
    exact_limit: int | None
    explain: bool | None
    former_words: Sequence[str] | None
    fusion: Literal["score_rrf", "rrf", "linear"] | None
    gates: Mapping[str, object] | None
    graph_steps: int | None
    hypothetical: Iterable[float] | str | Callable[[str], str] | None
    keys: Sequence[str] | None
    known_words: float | None
    latest_words: Sequence[str] | None
    min_relevance: float | None
    named_boost: float | None
    prefer: Literal["relevant", "latest", "former"] | None
    recency_decay: Literal["exponential", "linear"] | None
    recency_half_life: timedelta | str | None
    relation_words: Mapping[str, object] | None
    rrf_k: int | None
    similarity_floor: float | None
    skip: int | None
    source_rows: int | None
    terms: Sequence[str] | None
    time_basis: Literal["occurred", "mentioned"] | None
    time_mode: Literal["boost", "filter", "events"] | None
    type_hints: Mapping[str, object] | None
    untrusted_rows: int | None
    use_hints: bool | None
    weights: Mapping[str, object] | None
    widen_below: int | None
    window: str | None
    with_tokens: bool | None
