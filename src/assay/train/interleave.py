"""Supervised updates woven into a stage of reinforcement learning: on what it fails at, or while imitation still moves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from assay.core.batch import Batch, pack_rows
from assay.core.errors import ConfigError, PlanError
from assay.core.fields import check_positive, later
from assay.core.group import Group
from assay.core.score import ROW_WEIGHT
from assay.core.seeds import generator
from assay.core.task import question_text
from assay.core.timing import StepTimer, span
from assay.objective.methods import nll
from assay.objective.objective import Objective
from assay.rollout.decode_text import AnswerReader
from assay.train.loop import step
from assay.train.offline_rows import in_order, settle_data
from assay.train.rewarded_rows import RewardedRow
from assay.train.row_sources import RowSource, rows_in
from assay.train.runner import StepResult

if TYPE_CHECKING:
    from assay.train.reinforce_runner import ReinforceRunner

__all__ = ["ImitateByGradient", "ImitateFailures", "Interleaved", "InterleaveRunner"]

_STREAM = "expert"


class Interleaved(Protocol):
    """Settings of supervised updates within a stage of reinforcement learning.

    Attributes:
        objective: of these updates; it reads no rewards.
    """

    @property
    def objective(self) -> Objective: ...

    @property
    def source(self) -> RowSource:
        """The demonstrations."""
        ...

    def check(self) -> None:
        """Looks at the settings, and at the demonstrations as far as no model is needed."""
        ...

    def build(self, runner: ReinforceRunner) -> InterleaveRunner:
        """At work."""
        ...


class InterleaveRunner(Protocol):
    """Supervised updates at work."""

    async def advance(self) -> StepResult:
        """A step of the stage."""
        ...

    def observe_metrics(self, metrics: Mapping[str, float]) -> None:
        """Hears of the numbers of a finished step, those of an evaluation behind it too."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """All that the next steps depend on, JSON-able."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores `state_dict`."""
        ...


def _source(data: str | tuple[Mapping[str, Any], ...]) -> RowSource:
    return RowSource(data=data, stream=_STREAM, match="own")


def _check(part: Interleaved) -> None:
    name = type(part).__name__
    if part.objective.uses_reward or any(t.reward for t in part.objective.losses):
        raise PlanError(f"{name}.objective reads rewards, and demonstrations have none; use nll()")
    if not all(not t.streams or _STREAM in t.streams for t in part.objective.losses):
        raise PlanError(f"{name}.objective has a term that acts on no demonstration; add 'expert' to its streams, or use nll()")
    other = next((row for row in rows_in(part.source) if row.stream != _STREAM), None)
    if other is not None:
        raise ConfigError(f"{other.place}, field 'stream': {other.stream!r}, and {name} imitates its rows; leave the field out")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImitateFailures:
    """RL, with supervised updates on the demonstrations of tasks that it fails at, as soon as there are enough (ReLIFT).

    A task whose rollouts all have exactly the reward ``failed`` goes into a buffer, once, if the data answer it. Where the buffer
    holds ``size`` tasks behind a step, their demonstrations are learned from, each once, oldest first, and leave it; a task comes
    back only by failing again. An update minimises ``-1/D sum_t logp_t`` over the D tokens of the answers; reinforcement learning
    itself sees nothing of it.

    Attributes:
        data: demonstrations, in the forms of `RewardedRow`; of a question with several the first counts.
        size: tasks of a supervised update round.
        batch: demonstrations per update; all ``size`` of them when 0.
        failed: the reward of a failure.
        objective: of these updates. They use the stage's optimiser, and each counts in its learning-rate schedule.
        rate: their learning rate, as a multiple of the stage's.

    Raises:
        ConfigError: a number out of range.

    Carries: ReLIFT (arXiv 2506.07527). Its supervised updates have a learning rate of their own: there 1e-6 as in RL, ``rate`` 1.

    >>> ImitateFailures(data=[{"prompt": "2+2=", "answer": "4"}], size=1).size
    1
    """

    data: str | tuple[Mapping[str, Any], ...] = ""
    size: int = 128
    batch: int = 0
    failed: float = 0.0
    objective: Objective = field(default_factory=nll)
    rate: float = later(1.0)

    def __post_init__(self) -> None:
        check_positive(self, "size")
        settle_data(self)
        if not 0 < self.rate < float("inf"):
            raise ConfigError(f"ImitateFailures.rate={self.rate}; give a finite multiple of the stage's learning rate above 0")
        if not 0 <= self.batch <= self.size:
            raise ConfigError(f"ImitateFailures.batch={self.batch} of size={self.size}; use 0 for all, or at most the size")

    @property
    def source(self) -> RowSource:
        """The demonstrations."""
        return _source(self.data)

    def check(self) -> None:
        """Looks at the objective and at the rows."""
        _check(self)

    def build(self, runner: ReinforceRunner) -> InterleaveRunner:
        """At work."""
        return FailureBuffer(self, Imitator(runner, self))


@dataclass(frozen=True, slots=True, kw_only=True)
class ImitateByGradient:
    """Each step imitates or reinforces, by chance, from how much imitation still moves the policy (after SASR).

    The first ``warm_up`` steps imitate; ``g0`` is the mean gradient norm of the last at their end. Then a step imitates with
    probability ``g / (g + g0)``, ``g`` the moving average of the norms since: much at the beginning, ever less as the gradients
    shrink. While the last ``kl/base`` of an evaluation is above ``kl``, it imitates with probability 1/2 at least.

    Attributes:
        data: demonstrations, in the forms of `RewardedRow`, walked in a seeded order.
        batch: demonstrations per step.
        warm_up: steps that imitate for sure.
        decay: of the moving average.
        kl: nats per token of the divergence from the stage's start; inf never looks.
        objective: of the updates that imitate. They use the stage's optimiser.

    Raises:
        ConfigError: a number out of range.

    Carries: SASR (arXiv 2505.13026), in part. Unsure: the paper's formula was not found; this one is built from its description.

    >>> ImitateByGradient(data=[{"prompt": "2+2=", "answer": "4"}], batch=1).chance(g=1.0, g0=3.0)
    0.25
    """

    data: str | tuple[Mapping[str, Any], ...] = ""
    batch: int = 32
    warm_up: int = 10
    decay: float = 0.9
    kl: float = float("inf")
    objective: Objective = field(default_factory=nll)

    def __post_init__(self) -> None:
        check_positive(self, "batch", "warm_up")
        settle_data(self)
        if not 0 <= self.decay < 1 or not self.kl > 0:
            raise ConfigError(
                f"ImitateByGradient(decay={self.decay}, kl={self.kl}): a share in [0, 1) and a divergence above 0; inf for never"
            )

    @property
    def source(self) -> RowSource:
        """The demonstrations."""
        return _source(self.data)

    def check(self) -> None:
        """Looks at the objective and at the rows."""
        _check(self)
        if self.batch > len(rows := rows_in(self.source)):
            raise ConfigError(f"ImitateByGradient.batch={self.batch}, but the data has {len(rows)} rows; use at most {len(rows)}")

    def chance(self, g: float, g0: float, far: bool = False) -> float:
        """How likely a step imitates: ``g / (g + g0)``, and 1/2 at least where the policy is too ``far`` from its start.

        >>> made = ImitateByGradient(data=[{"prompt": "2+2=", "answer": "4"}], batch=1)
        >>> made.chance(0.0, 1.0), made.chance(99.0, 1.0), made.chance(0.0, 1.0, far=True)
        (0.0, 0.99, 0.5)
        """
        found = g / (g + g0) if g + g0 > 0 else 0.0
        return max(found, 0.5) if far else found

    def build(self, runner: ReinforceRunner) -> InterleaveRunner:
        """At work."""
        return GradientChoice(self, Imitator(runner, self))


class Imitator:
    """Makes supervised updates of a stage's learner.

    Args:
        runner: the stage at work.
        settings: whose demonstrations and objective.
    """

    def __init__(self, runner: ReinforceRunner, settings: Interleaved) -> None:
        self.runner = runner
        self.rows = rows_in(settings.source)
        self._reader = AnswerReader.of(runner.parts.tokenizer)
        self._program = settings.objective.compile(1, offers=runner.stage.learner.offers)

    async def learn(self, batches: Sequence[Sequence[RewardedRow]], rate: float = 1.0) -> dict[str, float]:
        """An update for each batch at ``rate`` times the stage's learning rate, then the new weights go to the engine; means of
        loss and gradient norm before clipping, and the learning rate of the last update.
        """
        p, stats = self.runner.parts, list[Mapping[str, float]]()
        with span("update"):
            for rows in batches:
                batch = self._program.credit(self._batch(rows))
                stats.append(p.learner.step(batch, self._program.plan, self._program, rate=rate).metrics)
        await p.publish()
        told = {name: float(np.mean([s[of] for s in stats])) for name, of in (("loss", "loss/total"), ("gradient", "grad/norm"))}
        told["lr"] = float(stats[-1]["lr"])
        return {"imitate/rows": float(sum(map(len, batches))), **{f"imitate/{name}": value for name, value in told.items()}}

    def _batch(self, rows: Sequence[RewardedRow]) -> Batch:
        table: dict[str, Any] = {"group": np.arange(len(rows))}
        weights = np.array([row.weight for row in rows], np.float64)
        samples = [row.sample(self._reader) for row in rows]
        return pack_rows(list(enumerate(samples)), table | ({ROW_WEIGHT: weights} if (weights != 1.0).any() else {}))


class FailureBuffer:
    """`ImitateFailures` at work.

    Args:
        settings: as above.
        imitator: makes the updates.
    """

    def __init__(self, settings: ImitateFailures, imitator: Imitator) -> None:
        self._settings, self._imitator = settings, imitator
        self._shown: dict[str, RewardedRow] = {}
        for row in imitator.rows:
            self._shown.setdefault(row.question, row)
        self._waiting: list[str] = []

    async def advance(self) -> StepResult:
        """A step of RL, and the supervised updates that are due behind it."""
        result = await step(self._imitator.runner)
        failed = [g for g in result.groups if g.values and set(g.values) == {self._settings.failed}]
        for question in map(_question, failed):
            if question in self._shown and question not in self._waiting:
                self._waiting.append(question)
        told = {"imitate/failed": float(len(failed)), "imitate/waiting": float(len(self._waiting))}
        if len(self._waiting) >= self._settings.size:
            taken, self._waiting = self._waiting[: self._settings.size], self._waiting[self._settings.size :]
            rows, n = [self._shown[question] for question in taken], self._settings.batch or len(taken)
            told |= await self._imitator.learn([rows[i : i + n] for i in range(0, len(rows), n)], self._settings.rate)
        return _with(result, told)

    def observe_metrics(self, metrics: Mapping[str, float]) -> None:
        """Nothing depends on them."""

    def state_dict(self) -> dict[str, Any]:
        """The questions that wait, oldest first."""
        return {"waiting": list(self._waiting)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores `state_dict`."""
        self._waiting = [str(question) for question in state["waiting"]]


class GradientChoice:
    """`ImitateByGradient` at work.

    Args:
        settings: as above.
        imitator: makes the updates.
    """

    def __init__(self, settings: ImitateByGradient, imitator: Imitator) -> None:
        self._settings, self._imitator = settings, imitator
        self._g = self._g0 = 0.0
        self._imitated = 0
        self._far = False

    async def advance(self) -> StepResult:
        """One step, of either kind."""
        s, p = self._settings, self._imitator.runner.parts
        warm = p.stage_step < s.warm_up
        chance = 1.0 if warm else s.chance(self._g, self._g0, self._far)
        if generator("imitate or reinforce", p.run.seed, str(p.step)).random() >= chance:
            return _with(await step(self._imitator.runner), {"imitate/chance": chance})
        n = s.batch
        places = in_order(
            "interleaved", p.run.seed, len(self._imitator.rows), range(self._imitated * n, (self._imitated + 1) * n)
        )
        with StepTimer() as timer:
            told = await self._imitator.learn([[self._imitator.rows[i] for i in places]])
        norm = told["imitate/gradient"]
        self._g = s.decay * self._g + (1 - s.decay) * norm if self._imitated else norm
        self._imitated += 1
        if warm:
            self._g0 = self._g
        told |= {"loss/total": told["imitate/loss"], "grad/norm": norm, "proof/state": float(p.proved)}
        return StepResult(metrics={"imitate/chance": chance, **told, **timer.seconds()})

    def observe_metrics(self, metrics: Mapping[str, float]) -> None:
        """How far the policy is from its start, where that was measured."""
        if "kl/base" in metrics:
            self._far = metrics["kl/base"] > self._settings.kl

    def state_dict(self) -> dict[str, Any]:
        """Both norms, the number of steps that imitated, and whether the policy is far from its start."""
        return {"g": self._g, "g0": self._g0, "imitated": self._imitated, "far": self._far}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores `state_dict`."""
        self._g, self._g0 = float(state["g"]), float(state["g0"])
        self._imitated, self._far = int(state["imitated"]), bool(state["far"])


def _with(result: StepResult, told: Mapping[str, float]) -> StepResult:
    return replace(result, metrics={**result.metrics, **told})


def _question(group: Group) -> str:
    return "\n".join(question_text(group.task.public_view().messages))
