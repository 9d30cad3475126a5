"""A bank as the knowledge of an agent of agno, which runs with a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from pgrecall import AsyncRecall, InvalidArgument, Recall

pytest.importorskip("agno.knowledge.protocol", reason="agno is not installed: make test-adapters")

from agno.agent import Agent
from agno.knowledge.protocol import KnowledgeProtocol
from agno.models.base import Model
from agno.models.response import ModelResponse

from pgrecall.adapters.agno import PgrecallKnowledge


class Scripted(Model):
    """Says what it is told to, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(id="scripted")
        self.asked: list[str] = []
        self.tools: list[str] = []

    def invoke(self, messages: list[Any], *_args: Any, **kwargs: Any) -> ModelResponse:
        self.asked.extend(str(message.content) for message in messages)
        self.tools = [tool["function"]["name"] for tool in kwargs.get("tools") or []]
        return ModelResponse(role="assistant", content="done")

    async def ainvoke(self, messages: list[Any], *args: Any, **kwargs: Any) -> ModelResponse:
        return self.invoke(messages, *args, **kwargs)

    def invoke_stream(self, *_args: Any, **_kwargs: Any) -> Iterator[ModelResponse]:
        raise NotImplementedError

    def ainvoke_stream(self, *_args: Any, **_kwargs: Any) -> AsyncIterator[ModelResponse]:
        raise NotImplementedError

    def _parse_provider_response(self, response: Any, **_kwargs: Any) -> ModelResponse:
        return ModelResponse(content=str(response))

    def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
        return ModelResponse(content=str(response))


@pytest.fixture
def memory(database: str) -> Iterator[Recall]:
    with Recall.connect(database, embedder=None, pool_size=2) as memory:
        memory.create_bank("agent")
        memory.retain(
            "agent",
            [
                {"text": "Maya leads Atlas.", "metadata": {"team": "core"}, "source_id": "notes"},
                {"text": "Atlas has a boat.", "metadata": {"team": "sea"}},
            ],
        )
        yield memory


def test_it_is_a_knowledge_of_agno(memory: Recall) -> None:
    assert isinstance(PgrecallKnowledge(memory, "agent"), KnowledgeProtocol)


def test_what_is_retrieved_is_what_a_recall_finds(memory: Recall) -> None:
    knowledge = PgrecallKnowledge(memory, "agent", top_k=1)

    [found] = knowledge.retrieve("Who leads Atlas?")
    both = asyncio.run(knowledge.aretrieve("Atlas", max_results=5))
    of_sea = knowledge.retrieve("Atlas", max_results=5, filters={"team": "sea"})

    assert (found.content, found.name, found.meta_data) == (
        "Maya leads Atlas.",
        "notes",
        {"team": "core"},
    )
    assert {one.content for one in both} == {"Maya leads Atlas.", "Atlas has a boat."}
    assert [one.content for one in of_sea] == ["Atlas has a boat."]
    with pytest.raises(ValueError, match="filters must be a mapping of metadata"):
        knowledge.retrieve("Atlas", filters=["team"])


def test_filters_of_a_question_narrow_the_filter_of_the_knowledge(memory: Recall) -> None:
    knowledge = PgrecallKnowledge(memory, "agent", filter=["=", "source_id", "notes"])
    by_text = PgrecallKnowledge(memory, "agent", filter="source_id = 'notes'")

    assert [one.name for one in knowledge.retrieve("Atlas")] == ["notes"]
    assert [one.name for one in by_text.retrieve("Atlas")] == ["notes"]
    assert knowledge.retrieve("Atlas", filters={"team": "sea"}) == []
    with pytest.raises(ValueError, match="write the filter as a list"):
        by_text.retrieve("Atlas", filters={"team": "sea"})


def test_the_tools_recall_and_retain(memory: Recall) -> None:
    recall_memories, retain_memory = PgrecallKnowledge(memory, "agent").get_tools()

    assert retain_memory("Ben left Porto.") == "Kept."
    assert retain_memory("Ben left Porto.") == "That was known already."
    assert "Ben left Porto." in recall_memories("Who left Porto?")
    assert recall_memories("zebra") == "No memory answers this."
    assert len(PgrecallKnowledge(memory, "agent", may_retain=False).get_tools()) == 1


def test_the_tools_are_those_that_the_agent_is_told_of(memory: Recall) -> None:
    model = Scripted()
    knowledge = PgrecallKnowledge(memory, "agent")
    tools = knowledge.get_tools()

    Agent(model=model, knowledge=knowledge, telemetry=False).run("Who?")
    told = "\n".join(model.asked)
    offered = set(model.tools)
    Agent(
        model=model, knowledge=knowledge, search_knowledge=False, tools=tools, telemetry=False
    ).run("Who?")

    assert "You have a memory." in told
    assert {name for name in ("recall_memories", "retain_memory") if name in told} <= offered
    assert model.tools == ["recall_memories", "retain_memory"]


def test_filters_of_the_agent_hold_for_its_tools(memory: Recall) -> None:
    knowledge = PgrecallKnowledge(memory, "agent", may_retain=False)
    [recall_memories] = knowledge.get_tools(knowledge_filters={"team": "sea"})

    assert "Atlas has a boat." in recall_memories("Atlas")
    assert "Maya" not in recall_memories("Who leads Atlas?")
    assert knowledge.validate_filters({"team": "sea"}, user_id="u") == ({"team": "sea"}, [])
    assert asyncio.run(knowledge.avalidate_filters({"team": "sea"})) == ({"team": "sea"}, [])
    with pytest.raises(ValueError, match="filters must be a mapping of metadata"):
        knowledge.get_tools(knowledge_filters=["team"])


def test_an_agent_is_given_what_the_bank_knows(memory: Recall) -> None:
    model = Scripted()
    agent = Agent(
        model=model,
        knowledge=PgrecallKnowledge(memory, "agent"),
        add_knowledge_to_context=True,
        telemetry=False,
    )

    agent.run("Who leads Atlas?")

    sent = "\n".join(model.asked)
    assert "Maya leads Atlas." in sent
    assert "You have a memory." in sent


def test_a_client_of_the_other_kind_is_refused() -> None:
    other: Any = AsyncRecall(SimpleNamespace(connection=list))  # type: ignore[arg-type]

    with pytest.raises(InvalidArgument, match="memory must be a client of class Recall, not "):
        PgrecallKnowledge(other, "b")
