"""What a client embeds and reranks with, and where its days begin."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timezone, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pgrecall.errors import InvalidArgument
from pgrecall.inference.embedders import as_embedder, earlier_embedders
from pgrecall.inference.interfaces import Embedder, EmbedFunction, Reranker, ScoreFunction
from pgrecall.inference.rerankers import chosen_reranker
from pgrecall.rows import BankModels, Preparation


@dataclass(frozen=True, slots=True)
class Settings:
    """How a client embeds, reranks and reads times.

    Attributes:
        embedder: Makes embeddings of texts; None to do without.
        reranker: Reorders the candidates; None to keep the fused order.
        timezone: Where "today" is, and what times without a zone are in.
        model: Name of the model of embeddings that callers bring along.
        next_embedder: The one that a bank is being re-embedded with; None for none.

    """

    embedder: Embedder | None
    reranker: Reranker | None
    timezone: tzinfo
    model: str | None
    next_embedder: Embedder | None = None

    @classmethod
    def of(
        cls,
        embedder: Embedder | EmbedFunction | str | None,
        reranker: Reranker | ScoreFunction | str | Path | bool | None,
        zone: str | tzinfo | None,
        model: str | None,
        next_embedder: Embedder | EmbedFunction | None = None,
    ) -> Settings:
        """Read the arguments of a client."""
        return cls(
            as_embedder(embedder, model) if embedder is not None else None,
            chosen_reranker(reranker),
            _zone(zone),
            model,
            as_embedder(next_embedder, None) if next_embedder is not None else None,
        )

    @property
    def depends_on_bank(self) -> bool:
        """Whether the models of a bank say which embedder there is for it."""
        return self.next_embedder is not None or any(earlier_embedders(self.embedder))

    def for_bank(self, models: BankModels | Preparation) -> Settings:
        """Keep the embedders that fit a bank of this model and this next model.

        The next embedder becomes the embedder once the bank was switched to it, and is left out
        while the bank is not being re-embedded with it. A bank that was filled by an earlier one of
        an embedder, without its prompts or with a default of before, goes on with that.
        """
        current, following = models.embedding_model, models.next_model
        new = self.next_embedder
        for earlier in earlier_embedders(self.embedder):
            if earlier.model == current:
                return replace(self, embedder=earlier).for_bank(models)
        if new is None:
            return self
        if new.model == following:
            # A bank whose model has no name gets that of the embedder, as its first one does.
            name = self.embedder.model if self.embedder and current is None else None
            return replace(self, model=self.model or name)
        if new.model != current:
            return replace(self, next_embedder=None)
        is_old = self.embedder is not None and self.model == self.embedder.model
        return replace(self, embedder=new, next_embedder=None, model=None if is_old else self.model)

    def moment(self, time: datetime | None) -> datetime | None:
        """Give a time without a zone the client's; calls refuse what is not a time."""
        if not isinstance(time, datetime) or time.tzinfo is not None:
            return time
        return time.replace(tzinfo=self.timezone)


def _zone(zone: str | tzinfo | None) -> tzinfo:
    if zone is None:
        return timezone.utc
    if isinstance(zone, tzinfo):
        return zone
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InvalidArgument(
            f'unknown time zone "{zone}"', hint='Give a name such as "Europe/Vienna".'
        ) from error
