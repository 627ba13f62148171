"""Another model as a tool, at a price: what to do oneself and what to ask for is then learned."""

from __future__ import annotations

from collections.abc import Sequence

from assay.clients.openai_client import OpenAIClient
from assay.core.errors import ConfigError
from assay.core.rollout import ToolResult
from assay.core.task import Message

__all__ = ["PricedModel"]


class PricedModel:
    """A model behind a server that speaks OpenAI's protocol; what `ask` answers is what a tool answers, with its cost.

        BIG = PricedModel(OpenAIClient("http://127.0.0.1:8000/v1", "big"), price=0.02)

        async def ask(question: str) -> ToolResult:
            "Asks a larger model, which is expensive."
            return await BIG.ask(question)

    It is asked greedily, and the same question is asked once: equal calls get equal answers.

    Args:
        client: of the server.
        price: of 1,000 characters of question and answer, in any unit. Characters, because not every server counts tokens.
        per_call: of each call besides.
        system: what the model is told first.
        max_tokens: of an answer.

    Raises:
        ConfigError: a price below 0, or neither of them above.
    """

    def __init__(
        self, client: OpenAIClient, *, price: float = 0.0, per_call: float = 0.0, system: str = "", max_tokens: int = 256
    ) -> None:
        if min(price, per_call) < 0 or not price + per_call > 0:
            raise ConfigError(f"PricedModel(price={price}, per_call={per_call}); give a price above 0, per character or per call")
        self._client, self._price, self._per_call = client, price, per_call
        self._system, self._max_tokens = system, max_tokens
        self._known: dict[str, str] = {}

    async def ask(self, question: str) -> ToolResult:
        """Its answer.

        Raises:
            EngineError: the server does not answer: a fault of the infrastructure.
        """
        if question not in self._known:
            told: Sequence[Message] = (*([Message("system", self._system)] if self._system else []), Message("user", question))
            (answer,) = await self._client.chat(told, temperature=0.0, max_tokens=self._max_tokens)
            self._known[question] = answer.text
        answer = self._known[question]
        return ToolResult(content=answer, cost=self._per_call + self._price * (len(question) + len(answer)) / 1000)
