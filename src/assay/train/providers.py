"""The providers of columns that come with assay. One of your own stands in a file of yours: `assay.train.columns` says how."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.errors import ConfigError, DataError
from assay.core.group import Group
from assay.core.rollout import ids_of
from assay.core.score import Score
from assay.core.task import Task
from assay.objective.credit.transform import ConfidenceBonus, confidence
from assay.train.columns import ColumnProvider, Live, Moment, with_steps, with_values
from assay.train.judge_rewards import JudgeReward
from assay.train.reference_value import ReferenceValue

__all__ = [
    "AUTOMATIC",
    "DEFAULTS",
    "Age",
    "ConstantValue",
    "FailureRate",
    "GreedyReward",
    "Level",
    "PairwiseOutcome",
    "Peers",
    "PlayerRole",
    "PromptConfidence",
    "ReferenceValue",
    "RightSoFar",
    "TurnState",
]

F = NDArray[np.float64]


# ---- of rollouts ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class GreedyReward:
    """The reward of the policy's greedy answer in the same context, a rollout that is not learned from (ReMax).

    Where that rollout has no verdict its group has no baseline: its rollouts get the same fault, and are counted with them.

    Attributes:
        name: of the column.
    """

    name: str = "greedy"
    moment: ClassVar[Moment] = "group"

    async def provide(self, live: Live, rows: Sequence[Group]) -> list[Group]:
        """Plays each context once more."""
        contexts = [replace(g.rollouts[0].context, key=f"{g.rollouts[0].context.key}/greedy") for g in rows]
        found = await live.play([(g.task, c) for g, c in zip(rows, contexts, strict=True)], greedy=True)
        return [self._compare_group(live, g, a.scores[0]) for g, a in zip(rows, found, strict=True)]

    def _compare_group(self, live: Live, group: Group, best: Score) -> Group:
        if not best.valid:
            return replace(group, scores=tuple(replace(x, components={}, fault=best.fault) for x in group.scores))
        reward = live.objective.scalarise.reward(best.components)
        return with_values(group, self.name, [reward] * len(group.scores))


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptConfidence:
    """How sure the policy is of the least likely tokens of the prompt itself (ARM of ProGRPO).

    Attributes:
        name: of the column.
    """

    name: str = "prompt_confidence"
    moment: ClassVar[Moment] = "group"

    def provide(self, live: Live, rows: Sequence[Group]) -> list[Group]:
        """Scores the prompts by the policy."""
        fraction = next((t.fraction for t in live.objective.credit if isinstance(t, ConfidenceBonus)), 0.2)
        prefixes = [next((c.prefix for r in g.rollouts for c in r.calls), ids_of([])) for g in rows]
        found = [confidence(x[1:].astype(np.float64), fraction) for x in live.logprobs(prefixes)]
        return [with_values(g, self.name, [c] * len(g.scores)) for g, c in zip(rows, found, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The level of the task.

    Attributes:
        name: of the column: ``difficulty`` (GUI-G1), or whatever shall follow the level.

    >>> from assay.objective.methods import gui_g1
    >>> from assay.train import Reinforce
    >>> Reinforce(objective=gui_g1(), columns=(Level(name="difficulty"),)).columns[0].moment
    'group'
    """

    name: str
    moment: ClassVar[Moment] = "group"

    def provide(self, live: Live, rows: Sequence[Group]) -> list[Group]:
        """``[n]`` times the same number."""
        return [with_values(g, self.name, [float(g.task.level)] * len(g.scores)) for g in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayerRole:
    """Who a rollout played in which kind of game (the key ``G, p`` of SPIRAL's baselines, arXiv 2506.24119); of a task with one
    role its level.

    Attributes:
        name: of the column.

    >>> from assay.objective.methods import rae
    >>> from assay.train import Reinforce
    >>> Reinforce(objective=rae(), columns=(PlayerRole(),)).columns[0].name
    'role'
    """

    name: str = "role"
    moment: ClassVar[Moment] = "group"

    def provide(self, live: Live, rows: Sequence[Group]) -> list[Group]:
        """``[n]`` numbers that are the same in every step and every run."""
        return [with_values(g, self.name, [self._number(g.task, r.role) for r in g.rollouts]) for g in rows]

    @staticmethod
    def _number(task: Task, role: str) -> float:
        if not role:
            return float(task.level)
        # Below 0, where no level is, and short enough to be the same number in float32.
        return -1.0 - zlib.crc32(f"{task.arm}/{role}".encode()) % (2**24 - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRate:
    """The share of the group's valid rollouts that failed, 1 where none is valid (``hardness`` of GRPO-S).

    Attributes:
        name: of the column.
    """

    name: str = "hardness"
    moment: ClassVar[Moment] = "group"

    def provide(self, live: Live, rows: Sequence[Group]) -> list[Group]:
        """1 minus `Group.success`."""
        return [with_values(g, self.name, [1.0 - (g.success or 0.0)] * len(g.scores)) for g in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantValue:
    """One number for all: a column that shall not count, or not yet.

    Attributes:
        name: of the column.
        value: the number.
    """

    name: str
    value: float = 0.0
    moment: ClassVar[Moment] = "group"

    def provide(self, live: Live, rows: Sequence[Group]) -> list[Group]:
        """The number, everywhere."""
        return [with_values(g, self.name, [self.value] * len(g.scores)) for g in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Peers:
    """Splits each group into equal parts, in order, which are compared among themselves (hierarchical GRPO).

    Attributes:
        name: of the column.
        parts: of a group.

    >>> from assay_tasks import SortDigits
    >>> from assay.testing import graded_group
    >>> group = graded_group(SortDigits().task("sort", 3, "train", 0), [1.0, 0.0, 0.0, 1.0])
    >>> [x.columns["peers"] for x in Peers().provide(None, [group])[0].scores]
    [0.0, 0.0, 1.0, 1.0]
    """

    name: str = "peers"
    parts: int = 2
    moment: ClassVar[Moment] = "group"

    def __post_init__(self) -> None:
        if self.parts < 1:
            raise ConfigError(f"Peers.parts={self.parts}; use a whole number, at least 1")

    def provide(self, live: Live, rows: Sequence[Group]) -> list[Group]:
        """``floor(i parts / n)`` of the ``i``-th rollout of ``n``."""
        return [with_values(g, self.name, np.floor(np.arange(n) * self.parts / n)) for g in rows for n in (len(g.scores),)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairwiseOutcome:
    """What a judge would say of a rollout beside the right answer (pairwise RL): a tie, 1/2, for a right one, else a defeat.

    Attributes:
        name: ``win``: half the primary metric, 0 for a fault; ``loss``: 1 minus that.
    """

    name: str
    moment: ClassVar[Moment] = "group"

    def __post_init__(self) -> None:
        if self.name not in ("win", "loss"):
            raise ConfigError(f"PairwiseOutcome.name={self.name!r}; use 'win' or 'loss'")

    def provide(self, live: Live, rows: Sequence[Group]) -> list[Group]:
        """Half the verdict, or what is left of 1."""
        wins = [[x.primary / 2 if x.valid else 0.0 for x in g.scores] for g in rows]
        return [
            with_values(g, self.name, w if self.name == "win" else [1.0 - v for v in w]) for g, w in zip(rows, wins, strict=True)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class RightSoFar:
    """A reward per token, by its place: an equal share of 1 for each character of the answer that stands where it should, and for
    ending where the answer ends (GRPO with process rewards). Each token is a step.

    For tasks with one right answer, ``private["answer"]``, and a tokenizer of characters.

    Attributes:
        name: of the token column; ``segment`` comes with it.
    """

    name: str = "process_reward"
    moment: ClassVar[Moment] = "group"

    def provide(self, live: Live, rows: Sequence[Group]) -> list[Group]:
        """``1 / (len(answer) + 1)`` or 0 at each sampled token.

        Raises:
            DataError: a task whose answer is no text.
        """
        return [with_steps(g, self.name, [self._rewards(_answer(g), r.text, n) for r, n in _lengths(g)]) for g in rows]

    def _rewards(self, answer: str, text: str, n: int) -> list[float]:
        pairs = zip(_pad_texts(text, n), _pad_texts(answer, n), strict=True)
        return [float(a == b) / (len(answer) + 1) for a, b in pairs]


def _answer(group: Group) -> str:
    answer: Any = group.task.private.get("answer")
    if not isinstance(answer, str):
        raise DataError(
            f"task {group.task.id!r}: RightSoFar compares with private['answer'], and found {answer!r}; have the verifier give "
            "rewards of steps (Score.spans), or name a provider of your own in Reinforce.columns"
        )
    return answer


def _lengths(group: Group) -> list[tuple[Any, int]]:
    return [(r, sum(len(c.completion.ids) for c in r.calls)) for r in group.rollouts]


def _pad_texts(text: str, n: int) -> list[str]:
    return [*text, *[""] * n][:n]


# ---- of batches -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnState:
    """A number for what stood before a call since the one before, the prompt or the environment's last answer (GiGPO).

    Equal texts have equal numbers; tokens that were not sampled have 0.

    Attributes:
        name: of the token column.
    """

    name: str = "state"
    moment: ClassVar[Moment] = "batch"

    def provide(self, live: Live, rows: Batch) -> Batch:
        """The batch with the column."""
        return rows.with_tokens(self.column(rows))

    def column(self, batch: Batch) -> TokenColumn:
        """``[N]`` int64."""
        ids, call = batch.token("ids"), batch.token("call")
        values = np.zeros(len(ids), np.int64)
        for a, b in zip(batch.offsets[:-1].tolist(), batch.offsets[1:].tolist(), strict=True):
            edges = [a, *(a + 1 + np.flatnonzero(np.diff(call[a:b]))).tolist(), b]
            shown = b""
            for start, end in pairwise(edges):
                if call[start] < 0:
                    shown = ids[start:end].astype("<i4").tobytes()
                else:
                    values[start:end] = 1 + zlib.crc32(shown)
        return TokenColumn(self.name, values, "rollout")


@dataclass(frozen=True, slots=True, kw_only=True)
class Age:
    """Optimiser steps between the weights that sampled a token and those that are about to learn from it.

    ``staleness``, as the loop has it, counts to the start of the rollout batch; this also counts the steps taken from that batch.

    Attributes:
        name: of the token column; an objective that reads it brings it: ``Objective(brings=("age",))``.
    """

    name: str = "age"
    moment: ClassVar[Moment] = "update"

    def provide(self, live: Live, rows: Batch) -> Batch:
        """``staleness`` plus the steps so far, at tokens that carry loss."""
        age = np.where(rows.token("mask"), rows.token("staleness") + live.update, 0).astype(np.int32)
        return rows.with_tokens(TokenColumn(self.name, age, "train"))


# ---- the registry -----------------------------------------------------------------------------------------------------


AUTOMATIC: Mapping[str, ColumnProvider] = {p.name: p for p in (GreedyReward(), PromptConfidence(), TurnState(), Age())}
"""Providers that a stage need not name: what they give is a fact, not a choice."""

DEFAULTS: Mapping[str, ColumnProvider] = AUTOMATIC | {
    p.name: p
    for p in (
        Level(name="difficulty"),
        JudgeReward(),
        PlayerRole(),
        FailureRate(),
        ConstantValue(name="responsiveness"),
        Peers(),
        PairwiseOutcome(name="win"),
        PairwiseOutcome(name="loss"),
        ReferenceValue(),
        ReferenceValue(name="optimal_value", temperature=0.5),
        RightSoFar(),
    )
}
"""Provider of each column where a method is named (`assay.train.wiring`) and neither verifier nor stage says otherwise."""
