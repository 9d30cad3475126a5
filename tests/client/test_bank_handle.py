"""The handle of one bank: the methods of the client without the name of the bank."""

from __future__ import annotations

import asyncio
import inspect
import pydoc
from collections.abc import Iterator

import pytest

from pgrecall import AsyncBankHandle, AsyncRecall, BankHandle, InvalidArgument, Recall


@pytest.fixture
def bank(pgrecall: Recall) -> BankHandle:
    bank = pgrecall.bank("agent")
    bank.create()
    return bank


def methods(kind: type) -> Iterator[str]:
    """Name the methods of a client whose first argument is a bank."""
    for name, method in vars(kind).items():
        if inspect.isfunction(method) and not name.startswith("_") and name != "bank":
            parameters = [*inspect.signature(method).parameters]
            if parameters[1:2] == ["bank"]:
                yield name


def test_what_is_retained_by_a_handle_is_in_the_bank_of_that_name(
    bank: BankHandle, pgrecall: Recall
) -> None:
    bank.retain(["Maya leads Atlas.", "Ben rows."])

    assert bank.recall("Who leads Atlas?", top_k=1)[0].text == "Maya leads Atlas."
    assert pgrecall.recall("agent", "Who leads Atlas?", top_k=1) == bank.recall(
        "Who leads Atlas?", top_k=1
    )
    assert "Maya leads Atlas." in bank.context("Who leads Atlas?", max_tokens=200).text


def test_a_memory_is_changed_and_forgotten_by_a_handle(bank: BankHandle) -> None:
    (row,) = bank.retain("Maya leads Atlas.")

    new = bank.update(row.memory_id, text="Ines leads Atlas.")

    assert [one.text for one in bank.history(new.memory_id)][-1] == "Ines leads Atlas."
    assert bank.forget(new.memory_id) == 1


def test_two_handles_see_their_own_bank_alone(bank: BankHandle, pgrecall: Recall) -> None:
    other = pgrecall.bank("other")
    other.create()

    bank.retain("Maya leads Atlas.")

    assert (len(bank.list_memories()), other.list_memories()) == (1, [])


@pytest.mark.parametrize(
    ("client", "handle"), [(Recall, BankHandle), (AsyncRecall, AsyncBankHandle)]
)
def test_a_handle_has_all_that_takes_a_bank(client: type, handle: type) -> None:
    of_client = {name.replace("_bank", "").replace("bank_", "") for name in methods(client)}

    of_handle = {name for name in vars(handle) if not name.startswith("_")}

    assert of_handle == of_client


def test_a_method_of_a_handle_is_documented_without_the_bank(bank: BankHandle) -> None:
    assert bank.recall.__doc__ == Recall.recall.__doc__
    assert [*inspect.signature(bank.get).parameters] == ["memory_id"]


@pytest.mark.parametrize("handle", [BankHandle, AsyncBankHandle])
def test_the_help_of_a_handle_shows_arguments(handle: type) -> None:
    shown = pydoc.plain(pydoc.render_doc(handle))

    assert "get(self, memory_id: 'int') -> 'Memory'" in shown
    assert "object at" not in shown


def test_a_method_of_a_handle_is_called_by_its_class_too(bank: BankHandle) -> None:
    bank.retain("Maya leads Atlas.")

    assert BankHandle.list_memories(bank, top_k=1) == bank.list_memories()


def test_the_types_of_a_handle_are_those_of_the_client(bank: BankHandle) -> None:
    """Where mypy did not know them, the comments that silence it would be errors."""
    with pytest.raises(InvalidArgument):
        bank.recall(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument):
        bank.recall("Atlas", top=5)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        bank.get()  # type: ignore[call-arg]


def test_an_async_handle_is_the_same_with_await(database: str) -> None:
    async def body() -> list[str]:
        async with await AsyncRecall.connect(database, embedder=None) as memory:
            bank = memory.bank("agent")
            await bank.create()
            await bank.retain(["Maya leads Atlas."])
            lines = [line async for line in bank.export()]
            hits = await bank.recall("Who leads Atlas?")
            return [hits[0].text, *lines]

    first, *lines = asyncio.run(body())

    assert first == "Maya leads Atlas."
    assert len(lines) > 1
