"""Loading models quietly: no progress bars, no network; and the threads they may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

THREADS = 8
"""At most so many texts are read at a time, however many cores there are."""


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Keep transformers from drawing progress bars while a model is loaded."""
    from transformers.utils import logging

    if not logging.is_progress_bar_enabled():
        yield
        return
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.enable_progress_bar()


def cores() -> int:
    """Count the cores that the process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def limit_torch() -> None:
    """Let torch use no more threads than the worker, unless it was told otherwise."""
    import torch

    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(min(torch.get_num_threads(), cores(), THREADS))
