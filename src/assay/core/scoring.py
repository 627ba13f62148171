"""How rollouts become scores: what a scorer is given, what it may ask for, and what it promises."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from assay.core.canon import FrozenMap
from assay.core.errors import EngineError
from assay.core.protocols import State, Tokenizer
from assay.core.rollout import Ids, Rollout
from assay.core.score import Fault, Score
from assay.core.task import Context, Message, Task

__all__ = [
    "JudgePort",
    "RolloutGroup",
    "ScoreContext",
    "Scorer",
    "ScorerSpec",
    "StatelessScorer",
    "score_each",
    "unanswered_score",
]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutGroup:
    """All rollouts of a task in one context, before they are scored. None of them ended in an error."""

    task: Task
    context: Context
    rollouts: tuple[Rollout, ...]


class JudgePort(Protocol):
    """A model that is asked for a judgement in words."""

    async def ask(self, messages: Sequence[Message], read: Callable[[str], _T], *, sample: int = 0) -> _T:
        """What ``read`` makes of the judge's answer; an answer in which it finds nothing is asked for again.

        Args:
            messages: the question, the last turn the user's.
            read: text to judgement; raises ValueError or DataError where there is none in it.
            sample: number of the answer, where a question is asked several times.

        Raises:
            EngineError: no judgement after all tries, or before the deadline; the rollout gets a fault (`unanswered_score`).
            ConfigError: the server refuses such requests: the run ends.
        """
        ...


class ScoreContext(Protocol):
    """What a scorer may ask for while it scores."""

    @property
    def step(self) -> int:
        """Global steps finished."""
        ...

    @property
    def tokenizer(self) -> Tokenizer:
        """Of the policy."""
        ...

    @property
    def task_floor(self) -> Mapping[str, float]:
        """The floor of each component of the tasks' own verifier."""
        ...

    async def verify(self, groups: Sequence[RolloutGroup]) -> list[tuple[Score, ...]]:
        """The verdicts of the tasks' own verifier, in its pool."""
        ...

    async def logprob(self, rows: Sequence[Ids], model: str = "policy") -> list[NDArray[np.float32]]:
        """``[len(row)]`` log-probabilities of each token given those before it, 0 first, at temperature 1, in nats.

        Args:
            rows: token ids.
            model: ``policy``, or the name of one of the learner's anchors, such as ``base``: what the stage started from.
        """
        ...

    def judge(self, name: str) -> JudgePort:
        """The judge of that name in ``Run.judges``.

        Raises:
            UnknownNameError: there is none.
        """
        ...


class Scorer(Protocol):
    """Gives the scores from which a stage of reinforcement learning computes its rewards."""

    async def score(self, groups: Sequence[RolloutGroup], ctx: ScoreContext) -> Sequence[Sequence[Score]]:
        """For each group the scores of its rollouts, in order: raw components, and a fault where there is no verdict.

        Weights belong to the objective's `Scalarise`. A score without a verdict is a fault and never a 0.
        """
        ...

    def floor(self, ctx: ScoreContext) -> Mapping[str, float]:
        """Each component's lowest value: the score of a rollout that ended because of what the policy said."""
        ...

    def metrics(self) -> Mapping[str, float]:
        """Numbers for the step that was just scored."""
        ...

    def state_dict(self) -> State:
        """JSON-able; what a resumed run must remember."""
        ...

    def load_state_dict(self, state: State) -> None: ...


class ScorerSpec(Protocol):
    """The frozen settings of a scorer; ``build`` gives the thing with state."""

    @property
    def models(self) -> tuple[str, ...]:
        """Anchors that it asks for log-probabilities; ``base`` is provided where the stage has no anchor of this name."""
        ...

    @property
    def judges(self) -> tuple[str, ...]:
        """Judges that it asks, by name."""
        ...

    def build(self) -> Scorer: ...


class StatelessScorer:
    """Base of scorers without state: a frozen dataclass with ``score`` and ``floor`` is its own spec.

    Override ``models`` or ``judges`` where it asks any, and ``by_group`` where it waits for others.
    """

    __slots__ = ()

    @property
    def by_group(self) -> bool:
        """Whether a group's scores depend on nothing else and take no computing here, as where a judge on a server is asked:
        each group is then scored as soon as it is sampled, while others still are.
        """
        return False

    @property
    def models(self) -> tuple[str, ...]:
        """None."""
        return ()

    @property
    def judges(self) -> tuple[str, ...]:
        """None."""
        return ()

    def build(self) -> Self:
        """Itself."""
        return self

    def metrics(self) -> Mapping[str, float]:
        """None."""
        return {}

    def state_dict(self) -> State:
        """Empty."""
        return {}

    def load_state_dict(self, state: State) -> None:
        """Nothing to restore."""


async def score_each(groups: Sequence[RolloutGroup], one: Callable[[Task, Rollout], Awaitable[Score]]) -> list[list[Score]]:
    """The score of each rollout by ``one``, all at once: what a scorer's ``score`` returns.

    >>> import asyncio
    >>> async def short(task: Task, rollout: Rollout) -> Score:
    ...     return Score(components={"reward": float(len(rollout.text) < 100)})
    >>> asyncio.run(score_each([], short))
    []
    """
    import asyncio  # not above: commands that only read settings need no event loop

    scores = iter(await asyncio.gather(*(one(g.task, r) for g in groups for r in g.rollouts)))
    return [[next(scores) for _ in g.rollouts] for g in groups]


def unanswered_score(error: EngineError) -> Score:
    """The score of a rollout on which a judge gave no judgement: an ``infra`` fault, which is masked and counted.

    >>> unanswered_score(EngineError("no answer in 6 attempts")).valid
    False
    """
    return Score(components={}, fault=Fault.INFRA, info=FrozenMap({"error": str(error)}))
