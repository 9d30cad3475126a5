"""Runtime of models: quiet loading, threads, and an event loop for async functions."""

from __future__ import annotations

import asyncio
import ctypes
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from inspect import isawaitable
from pathlib import Path
from typing import Any, Generic, TypeVar

from pgrecall.errors import EmbedderUnavailable

T = TypeVar("T")

THREADS = 8
"""Maximum number of texts that are read at once, however many cores there are."""
FILE_BYTES = 2 * 1024**3
"""Maximum size of a file of a model. A graph cannot be larger, weights seldom are."""


class LoadedOnce(ABC, Generic[T]):
    """A model that is loaded on first use, once for all threads."""

    def __init__(self) -> None:
        self._loaded: T | None = None
        self._loading = threading.Lock()

    def load(self) -> T:
        """Load the model unless it is loaded.

        Raises:
            EmbedderUnavailable: a package or the model is missing.
            RerankerUnavailable: the same, of a reranker.

        """
        with self._loading:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    @abstractmethod
    def _load(self) -> T:
        """Load the model."""


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
    """Return the number of cores that the process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def limit_torch() -> None:
    """Limit torch to the threads of the worker, unless the user has set its threads."""
    import torch

    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(min(torch.get_num_threads(), cores(), THREADS))


def bounded(path: Path, limit: int = FILE_BYTES) -> Path:
    """Check that a file of a model is not too large, and return its path.

    Raises:
        ValueError: the file is too large; the message has its name and both sizes.

    """
    size = path.stat().st_size
    if size > limit:
        raise ValueError(f"{path.name} has {size:,} bytes, more than {limit:,}")
    return path


def onnx_session(graph: bytes | str, options: Any) -> Any:
    """Load a graph to run on one thread of the CPU, with standard ONNX operators only.

    A graph can only compute: no custom operators are registered, and a graph given as bytes has no
    folder from which it could read other files.
    """
    import onnxruntime

    _let_children_end()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


@lru_cache(maxsize=1)
def _let_children_end() -> None:
    """Let children of forks end without the exit handlers of onnxruntime.

    There these wait for threads of the parent for ever, or abort. Python has ended and flushed its
    files when the handlers of C run, the last one first.
    """
    if not hasattr(os, "register_at_fork"):
        return
    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit"):  # of glibc; calls the handler with the exit status
        os.register_at_fork(after_in_child=lambda: libc.on_exit(libc._exit, None))


def settled(value: T | Awaitable[T]) -> T:
    """Return the result of a user's function; if it is async, run it and wait.

    All of them run on one event loop, not the caller's, since their clients keep connections per
    loop.
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


if hasattr(os, "register_at_fork"):  # its thread does not exist in the child of a fork
    os.register_at_fork(after_in_child=_loop.cache_clear)


def cannot_embed(package: str | None, command: str) -> EmbedderUnavailable:
    """Return the error for a missing package, with the command that installs it."""
    return EmbedderUnavailable(
        f"cannot embed texts: package {package} is missing", hint=f"Run: {command}"
    )
