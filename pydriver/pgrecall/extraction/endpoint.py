"""Extract facts with a language model behind an endpoint with the OpenAI API."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

from pgrecall.errors import InvalidArgument
from pgrecall.extraction.schema import FACTS_SCHEMA, plain
from pgrecall.extraction.talk import Message, is_said, speaker_of, text_of
from pgrecall.inference.endpoints import openai_client

INSTRUCTIONS = (
    "Read the conversation and list what is worth remembering, as facts. Each fact is understood"
    " alone: write names instead of pronouns, and dates instead of words such as yesterday,"
    " reckoned from when the message was sent. Leave out greetings and questions."
    " Add nothing that was not said."
)
_KNOWN = "Known already, to understand what follows; list no facts of it:"
_NEW = "The conversation:"


class OpenAIExtractor:
    """Asks a model for facts as structured output, by the official client.

    Messages of the system are left out. The client retries transient failures and obeys rate
    limits.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        instructions: str = INSTRUCTIONS,
        timeout: float = 60.0,
        max_retries: int = 2,
        **settings: object,
    ) -> None:
        """Choose a model; import and send nothing.

        Args:
            model: Name of the model at the endpoint.
            base_url: The endpoint, such as "http://localhost:8080/v1". Default: OPENAI_BASE_URL,
                else OpenAI's own.
            api_key: Default: OPENAI_API_KEY. Not required with a base_url.
            instructions: Instructions for the model; the schema defines its answer.
            timeout: Seconds for one request.
            max_retries: How often a failed request is retried.
            settings: Further parameters of the request, such as temperature=0.

        """
        self.model = model
        self._instructions = instructions
        self._settings = settings
        self._endpoint = {"base_url": base_url, "api_key": api_key}
        self._limits: dict[str, Any] = {"timeout": timeout, "max_retries": max_retries}
        self._client: Any = None
        self._lock = threading.Lock()

    def __call__(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """Return the facts that the model finds in messages.

        Raises:
            InvalidArgument: the package or the key is missing.
            ValueError: the answer does not match the schema.
            TimeoutError: the answer takes too long.
            Exception: the client's error if the endpoint fails or cannot be reached.

        """
        return self.extract_new(messages, [True] * len(messages))

    def extract_new(
        self, messages: Sequence[Message], is_new: Sequence[bool]
    ) -> list[dict[str, Any]]:
        """Return the facts that the model finds in the new ones of some messages.

        Raises:
            Exception: as a call of the extractor.

        """
        said = [one for one in zip(messages, is_new, strict=True) if is_said(one[0])]
        lines = [_line(message) for message, is_wanted in said if is_wanted]
        if not lines:
            return []
        if known := [_line(message) for message, is_wanted in said if not is_wanted]:
            lines = [_KNOWN, *known, _NEW, *lines]
        client = self._connected()
        try:
            answer = client.chat.completions.create(
                model=self.model,
                messages=[
                    {"role": "system", "content": self._instructions},
                    {"role": "user", "content": "\n".join(lines)},
                ],
                response_format={
                    "type": "json_schema",
                    "json_schema": {
                        "name": "facts",
                        "strict": True,
                        "schema": {k: v for k, v in FACTS_SCHEMA.items() if k != "$schema"},
                    },
                },
                **self._settings,
            )
            said = answer.choices[0].message
        except (AttributeError, IndexError, TypeError, RecursionError) as error:
            raise ValueError(f"the answer is not one of a model: {error}") from error
        if not said.content:
            raise ValueError(f"the model answered nothing: {getattr(said, 'refusal', None)}")
        found = json.loads(said.content)
        if not isinstance(found, dict) or not isinstance(found.get("facts"), list):
            raise ValueError(f"the answer has no list of facts: {said.content[:80]!r}")
        return [plain(fact) for fact in found["facts"]]

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                user = f'the extractor "{self.model}"'
                try:
                    self._client = openai_client(
                        self._endpoint, self._limits, user, InvalidArgument
                    )
                except ImportError as error:
                    raise InvalidArgument(
                        f"an extractor behind an endpoint needs package {error.name}",
                        hint="Run: pip install 'pgrecall[openai]'",
                    ) from error
            return self._client


def _line(message: Message) -> str:
    said = f"{speaker_of(message) or message.get('role') or 'user'}: {text_of(message)}"
    return f"[{message['sent_at']}] {said}" if message.get("sent_at") else said
