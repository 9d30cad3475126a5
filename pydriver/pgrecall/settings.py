"""Settings of a client: embedders, reranker, time zone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timezone, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pgrecall.arguments import check_type
from pgrecall.errors import InvalidArgument
from pgrecall.inference.embedders import as_embedder, earlier_embedders
from pgrecall.inference.interfaces import (
    Embedder,
    EmbedFunction,
    Reranker,
    ScoreFunction,
)
from pgrecall.inference.rerankers import chosen_reranker
from pgrecall.rows import BankModels, Period, Preparation


@dataclass(frozen=True, slots=True)
class Settings:
    """How a client embeds, reranks and reads times.

    Attributes:
        embedder: Makes embeddings of texts; None for no embeddings.
        reranker: The reranker; None to keep the fused order.
        timezone: Time zone of "today" and of times without a zone.
        model: Name of the model of given embeddings.
        next_embedder: The embedder of the next model of banks; None for none.

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
        check_type("model", model, str | None)
        return cls(
            as_embedder(embedder, model) if embedder is not None else None,
            chosen_reranker(reranker),
            _zone(zone),
            model,
            as_embedder(next_embedder, None) if next_embedder is not None else None,
        )

    @property
    def depends_on_bank(self) -> bool:
        """Whether the choice of embedders depends on the bank's models."""
        return self.next_embedder is not None or any(earlier_embedders(self.embedder))

    @property
    def embeds(self) -> bool:
        """Whether there is an embedder."""
        return self.embedder is not None or self.next_embedder is not None

    def for_bank(self, models: BankModels | Preparation) -> Settings:
        """Return settings with the embedders that fit the models of a bank.

        The next embedder becomes the embedder once the bank has switched, and is left out unless
        the bank is being re-embedded with it. A bank filled by an earlier embedder, such as one
        without prompts or an earlier default, keeps it.
        """
        current, following = models.embedding_model, models.next_model
        new = self.next_embedder
        for earlier in earlier_embedders(self.embedder):
            if earlier.model == current:
                return replace(self, embedder=earlier).for_bank(models)
        if new is None:
            return self
        if new.model == following:
            # A bank whose model has no name yet gets the embedder's.
            name = self.embedder.model if self.embedder and current is None else None
            return replace(self, model=self.model or name)
        if new.model != current:
            return replace(self, next_embedder=None)
        is_old = self.embedder is not None and self.model == self.embedder.model
        return replace(self, embedder=new, next_embedder=None, model=None if is_old else self.model)

    def moment(self, time: datetime | None) -> datetime | None:
        """Add the client's zone to a time without one; calls refuse other types."""
        if not isinstance(time, datetime) or time.tzinfo is not None:
            return time
        return time.replace(tzinfo=self.timezone)

    def period(self, during: Period | None) -> Period | None:
        """Add the client's zone to the times of a period without one."""
        check_type("during", during, Period | None)
        return during and (self.moment(during[0]), self.moment(during[1]))


def _zone(zone: str | tzinfo | None) -> tzinfo:
    if zone is None:
        return timezone.utc
    # One of pytz would stand for local mean time in a datetime that is given it by replace().
    zone = getattr(zone, "zone", None) or zone
    if isinstance(zone, tzinfo):
        return zone
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, OSError, TypeError, ValueError) as error:
        raise InvalidArgument(
            f'unknown time zone "{zone}"', hint='Give a name such as "Europe/Vienna".'
        ) from error
