"""Methods of a client whose first argument is a bank, as methods of one bank."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, update_wrapper
from inspect import Signature, signature
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

P = ParamSpec("P")
T = TypeVar("T")


class Handle(Protocol):
    """A bank of a client."""

    memory: Any
    name: str


class OfBank(Generic[P, T]):
    """A method of a client, called without the name of the bank."""

    def __init__(self, method: Callable[Concatenate[Any, str, P], T]) -> None:
        """Keep the method; its first argument is the bank."""
        self.method = method
        update_wrapper(self, method)
        del self.__wrapped__  # type: ignore[attr-defined]  # whose signature names the bank

    def __call__(self, handle: Handle, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the method for a bank, as in ``BankHandle.drop(bank)``."""
        return self.__get__(handle)(*args, **kwargs)

    @property
    def __signature__(self) -> Signature:
        """The arguments, for ``help(BankHandle)``."""
        found = signature(self.method)
        return found.replace(parameters=[p for p in found.parameters.values() if p.name != "bank"])

    @overload
    def __get__(self, handle: None, kind: type) -> OfBank[P, T]: ...

    @overload
    def __get__(self, handle: Handle, kind: type | None = None) -> Callable[P, T]: ...

    def __get__(
        self, handle: Handle | None, kind: type | None = None
    ) -> OfBank[P, T] | Callable[P, T]:
        """Return the method of this bank; of the class, what documents it."""
        if handle is None:
            return self
        bound = partial(self.method, handle.memory, handle.name)
        update_wrapper(bound, self.method)
        del bound.__wrapped__  # type: ignore[attr-defined]  # whose signature names the bank
        return bound
