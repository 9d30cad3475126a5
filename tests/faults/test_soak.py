"""A bank that is used for a month, compressed into minutes: ``make test-faults`` takes ten."""

from __future__ import annotations

import os

import pytest
from bench.scale.soak import soaked

MINUTES = float(os.environ.get("PGRECALL_SOAK_MINUTES", "0"))
NONE = (
    "lost",
    "twice",
    "doctor",
    "fingerprint.schema",
    "fingerprint.rows",
    "fingerprint.answers",
)
LEVEL = ("memory", "embedding", "entity", "mention", "link", "entity_count", "backend")

pytestmark = [
    pytest.mark.skipif("PGRECALL_DSN" in os.environ, reason="somebody else's server"),
    pytest.mark.skipif(not MINUTES, reason="PGRECALL_SOAK_MINUTES says how long"),
    pytest.mark.slow,
]


def test_a_bank_that_is_used_for_a_month_stays_as_it_was() -> None:
    figures = soaked(MINUTES)

    print(figures)
    # A tenth of the facts may not be counted yet, or gone since.
    assert figures["statistics.idf_error"] < 0.25
    assert {name: figures[name] for name in NONE} == dict.fromkeys(NONE, 0)
    assert figures["facts"] > 3000
    assert {
        name: figures[f"growth.{name}"] for name in LEVEL if figures[f"growth.{name}"] > 1.3
    } == {}
