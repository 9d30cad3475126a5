"""What models need: quiet loading, the threads they may use, a loop for those that are async."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from inspect import isawaitable
from pathlib import Path
from typing import Any, TypeVar

from pgrecall.errors import EmbedderUnavailable

T = TypeVar("T")

THREADS = 8
"""At most so many texts are read at a time, however many cores there are."""


FILE_BYTES = 2 * 1024**3
"""No file of a model is larger: a graph cannot be, its weights seldom are."""


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


def bounded(path: Path, limit: int = FILE_BYTES) -> Path:
    """Return the path of a part of a model that is not too large to be read.

    Raises:
        ValueError: it is, before anything is read; the text names the file and both sizes.

    """
    size = path.stat().st_size
    if size > limit:
        raise ValueError(f"{path.name} has {size:,} bytes, more than {limit:,}")
    return path


def onnx_session(graph: bytes | str, options: Any) -> Any:
    """Load a graph to run on the processor, on one thread, by operators of ONNX alone.

    What a graph may do is compute: no library of operators is registered, and a graph given as
    bytes has no folder to read further files from.
    """
    import onnxruntime

    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def settled(value: T | Awaitable[T]) -> T:
    """Return what a function of the user returned, or wait for it where the function is async.

    All of them run on one loop, beside that of the caller: their clients keep connections by loop.
    """
    if not isawaitable(value):
        return value

    async def waited() -> T:
        return await value

    return asyncio.run_coroutine_threadsafe(waited(), _loop()).result()


@lru_cache(maxsize=1)
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="pgrecall-async", daemon=True).start()
    return loop


def cannot_embed(package: str | None, command: str) -> EmbedderUnavailable:
    """Return the error of a package that is missing, with the command that gets it."""
    return EmbedderUnavailable(
        f"cannot embed texts: package {package} is missing", hint=f"Run: {command}"
    )
