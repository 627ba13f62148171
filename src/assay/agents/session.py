"""One agent's session at the endpoint: its secret, its budgets, its record."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace

from assay.agents.errors import AgentRequestError
from assay.agents.lanes import Lanes
from assay.agents.messages import AgentRequest
from assay.agents.recorder import CallNode, CallRecorder
from assay.core.errors import ConfigError
from assay.core.fields import check_positive, later
from assay.core.protocols import Request
from assay.core.ragged import SUPPORT
from assay.core.rollout import Completion, Sampling
from assay.core.sample import check_annealed
from assay.core.seeds import derive

__all__ = ["AgentSession", "Budget", "Generate"]

Generate = Callable[[Request], Awaitable[Completion]]
"""Samples one completion, as `assay.core.protocols.Engine.generate`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What an agent may use in one session.

    Attributes:
        calls: of the policy. One that always delegates to agents of its own made 126 in 24 seconds.
        tokens: sampled, over all calls.
        concurrency: calls that are sampled at once; further ones wait.
        depth: how deep agents may call agents of their own, 0 for not at all; None: as deep as they like. Only clients that say
            who asks are known by it, as Claude Code and opencode do; a call from too deep is refused, and the run goes on.

    Raises:
        ConfigError: one that is below 1.
    """

    calls: int = 64
    tokens: int = 1_000_000
    concurrency: int = 8
    depth: int | None = later(None)

    def __post_init__(self) -> None:
        check_positive(self, "calls", "tokens", "concurrency")
        if self.depth is not None and self.depth < 0:
            raise ConfigError(f"Budget.depth={self.depth}; use 0 or more, or None for no limit")


@dataclass(slots=True, kw_only=True, eq=False)
class AgentSession:
    """A session at the endpoint.

    Attributes:
        secret: names it in addresses and keys; whoever knows it speaks for the agent.
        recorder: of its calls.
        sampling: how tokens are drawn; requests cannot change temperature or truncation.
        seed: of the noise of its calls, with their names.
        generate: samples.
        budget: what it may use.
        sealed: no further call is answered.
        exceeded: what of the budget was used up when more was asked for; empty while nothing was.
        failure: the engine's error, which ends the run.
        refused: codes of requests that could not be answered, in order.
        refusals: why, in words.
        on_call: called with each recorded call.
    """

    secret: str
    recorder: CallRecorder
    sampling: Sampling
    seed: int
    generate: Generate
    budget: Budget = field(default_factory=Budget)
    sealed: bool = False
    exceeded: str = ""
    failure: Exception | None = None
    refused: list[str] = field(default_factory=list[str])
    refusals: list[str] = field(default_factory=list[str])
    on_call: Callable[[AgentSession, CallNode], None] | None = None
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, "asyncio.Task[None]"])
    _lost: dict[str, CallNode] = field(default_factory=dict[str, CallNode])
    _waiting: dict[str, CallNode] = field(default_factory=dict[str, CallNode])
    _lanes: Lanes = field(default_factory=Lanes)
    _gate: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._gate = asyncio.Semaphore(self.budget.concurrency)

    async def answer(self, request: AgentRequest, again: bool = False) -> CallNode:
        """The recorded call that answers a request.

        A request that means the same as one whose answer never reached the client gets that very answer, whatever retry
        headers say: several clients send none, or always 0.

        Args:
            request: what the agent asks.
            again: the client says that it repeats a request: one that still waits is then the same.

        Raises:
            AgentRequestError: the session is sealed, its budget used up, or the request cannot be written.
            EngineError: sampling failed.
        """
        if self.sealed:
            raise AgentRequestError("this session has ended", status=409, code="session_ended")
        digest = request.digest
        node = self._lost.pop(digest, None) or (self._waiting.get(digest) if again else None)
        if node is None:
            self._check_budget()
            node = self.recorder.begin(request)
            self._waiting[digest] = node
            self._tasks[node.name] = asyncio.ensure_future(self._sample(node, digest))
        await asyncio.shield(self._tasks[node.name])
        return node

    def check_depth(self, headers: Mapping[str, str]) -> None:
        """Refuses an agent that was called by agents too deep.

        Raises:
            AgentRequestError: it is deeper than the budget allows.
        """
        most, depth = self.budget.depth, self._lanes.depth(headers)
        if most is not None and depth > most:
            told = "an agent called by another" if most == 0 else f"agents called {depth} deep"
            raise AgentRequestError(f"{told} may not ask here (budget: depth {most}): do this work yourself", code="budget_depth")

    def refuse(self, code: str, reason: str) -> None:
        """Remembers a request that is not answered."""
        self.refused.append(code)
        self.refusals.append(reason)

    def lose(self, node: CallNode) -> None:
        """The answer to a call did not reach the client: it is kept for the same request."""
        self._lost[node.asked] = node

    def lose_request(self, request: AgentRequest) -> None:
        """The client of a call that still waits has gone."""
        node = self._waiting.get(request.digest)
        if node is not None:
            self.lose(node)

    async def seal(self) -> None:
        """Ends the session: calls that still wait are cancelled."""
        self.sealed = True
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    @property
    def sampled(self) -> int:
        """Tokens of all answers so far."""
        return sum(len(n.completion.ids) for n in self.recorder.nodes if n.completion is not None)

    def _check_budget(self) -> None:
        used = {"calls": len(self.recorder.nodes), "tokens": self.sampled}
        for name, amount in used.items():
            most = getattr(self.budget, name)
            if amount >= most:
                self.exceeded = self.exceeded or f"{most} {name}"
                raise AgentRequestError(f"the budget of {most} {name} is used up: stop here", code="budget_exceeded")

    async def _sample(self, node: CallNode, digest: str) -> None:
        completion: Completion | None = None
        stop = tuple(dict.fromkeys((*self.sampling.stop, *node.request.stop)))
        sampling = replace(self.sampling, max_new_tokens=self.recorder.most(node), stop=stop)
        name = f"{self.recorder.session}#{node.name}"
        wanted = Request(id=name, prompt=node.pose.prefix, seed=derive("agent", self.seed, node.name), sampling=sampling)
        try:
            async with self._gate:
                completion = await self.generate(wanted)
            if sampling.keep_support and SUPPORT not in completion.columns:
                raise ConfigError(
                    "the engine was asked for the ids that each token is drawn from, and tells none (Sampling.keep_support); use "
                    "one that does (engine=Auto()), or an objective that corrects for truncation"
                )
            check_annealed(completion, "the engine")
        except Exception as error:
            self.failure = self.failure or error
            raise
        finally:
            self.recorder.end(node, completion)
            if self._waiting.get(digest) is node:
                del self._waiting[digest]
        if self.on_call is not None:
            self.on_call(self, node)
