"""Transforms of the advantage: by prompt, by rollout, by sign."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.plan import Scope
from assay.core.protocols import State
from assay.objective.credit.base import Credit, CreditTerm
from assay.objective.credit.paths import Path
from assay.objective.credit.shape import solved_rollouts
from assay.objective.credit.stats import column, each, moments, peers
from assay.objective.reducers import F, Partials, Sum, tally

__all__ = [
    "AddBonus",
    "ClipAdvantage",
    "ConfidenceBonus",
    "PositivePart",
    "ScaleByPrompt",
    "ScaleBySample",
    "SignSplit",
    "confidence",
]

_RULES = ("power", "exp", "log", "column")
_INF = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleByPrompt(CreditTerm):
    """Multiplies the advantages of a prompt by its difficulty, from the group's mean ``m`` (UniVG-R1) or from a column (GUI-G1).

    ``power``: ``max(1.05 - m, 0)^gamma``. ``exp``: ``exp(1 - m)``. ``log``: ``max(-log(0.02 + m), 0)``. ``column``: the column.

    Attributes:
        rule: which one.
        gamma: exponent of ``power``.
        component: reward component whose mean is meant; the task's metric when empty. The other rules read ``m`` in [0, 1].
        column: only for ``column``: a column of the rollouts with the prompt's weight, 0 or more.
    """

    rule: str = "exp"
    gamma: float = 1.0
    component: str = ""
    column: str = ""

    def __post_init__(self) -> None:
        if self.rule not in _RULES:
            raise UnknownNameError("difficulty", self.rule, _RULES)
        if (self.rule == "column") != bool(self.column):
            raise ConfigError(
                f"ScaleByPrompt({self.rule!r}, column={self.column!r}): a column belongs to rule='column', only there"
            )
        if not self.gamma > 0:
            raise ConfigError(f"ScaleByPrompt.gamma={self.gamma}; use a positive exponent")

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """The column with the weights."""
        return (self.column,) if self.column else ()

    @property
    def scope(self) -> Scope:
        """A group's mean."""
        return Scope.SEQUENCE if self.column else Scope.GROUP

    @property
    def reduces(self) -> bool:
        """When it asks the group."""
        return not self.column

    def local(self, credit: Credit) -> Partials:
        """Moments of the metric per group."""
        if self.column:
            return {}
        values = column(credit, f"components/{self.component}") if self.component else credit.metric
        return {"moments": peers(credit, values)}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Multiplies.

        Raises:
            ConfigError: a weight in the column is negative.
        """
        if not self.column:
            return credit.scale_by(self.weight(each(credit, stats["moments"]).mean))
        weight = column(credit, self.column)
        if (weight < 0).any():
            raise ConfigError(f"ScaleByPrompt: {self.column}={weight.min()} would turn advantages around; weights are 0 or more")
        return credit.scale_by(weight)

    def weight(self, mean: F) -> F:
        """The difficulty at each mean.

        >>> ScaleByPrompt(rule="log").weight(np.array([0.2, 0.8, 1.0])).round(4).tolist()
        [1.5141, 0.1985, 0.0]
        """
        if self.rule == "power":
            return np.maximum(1.05 - mean, 0.0) ** self.gamma
        return np.exp(1.0 - mean) if self.rule == "exp" else np.maximum(-np.log(0.02 + np.maximum(mean, 0.0)), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleBySample(CreditTerm):
    """Multiplies the advantage of each rollout by numbers that rows bring (GRPO-S), and bounds the product.

    ``sigmoid``: each column is a difficulty ``x``, its factor ``sigmoid(x_i) / sigmoid(mean of x)`` over the rollout batch, so
    that equally hard rollouts have the factor 1. ``value``: the columns are the factors.

    Attributes:
        columns: columns of the rollouts, multiplied.
        rule: which one.
        low, high: bounds of the product.
    """

    columns: tuple[str, ...] = ("hardness", "responsiveness")
    rule: str = "sigmoid"
    low: float = 0.0
    high: float = 10.0

    def __post_init__(self) -> None:
        if not self.columns:
            raise ConfigError("ScaleBySample.columns is empty, so nothing would be scaled; name at least one column")
        if self.rule not in ("sigmoid", "value"):
            raise UnknownNameError("factor", self.rule, ("sigmoid", "value"))
        if not 0 <= self.low < self.high:
            raise ConfigError(f"ScaleBySample(low={self.low}, high={self.high}): use 0 <= low < high")

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """The columns."""
        return self.columns

    @property
    def scope(self) -> Scope:
        """The batch's mean."""
        return Scope.BATCH if self.rule == "sigmoid" else Scope.SEQUENCE

    @property
    def reduces(self) -> bool:
        """When it asks the batch."""
        return self.rule == "sigmoid"

    def local(self, credit: Credit) -> Partials:
        """Moments of each column."""
        return {n: moments(column(credit, n)[credit.counted]) for n in self.columns} if self.reduces else {}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Multiplies."""
        factor = np.ones(len(credit.reward))
        for name in self.columns:
            values = column(credit, name)
            factor = factor * (_sigmoid(values) / _sigmoid(stats[name].mean[0]) if self.reduces else values)
        return credit.scale_by(np.clip(factor, self.low, self.high))


@dataclass(frozen=True, slots=True)
class AddBonus(CreditTerm):
    """``A' = A + coef * c_i``: a number per rollout that rows bring, added to the advantage, so that no baseline takes it away.

    Attributes:
        column: the column of the rollouts.
        coef: its factor.
    """

    column: str
    coef: float = 1.0

    def __post_init__(self) -> None:
        if not self.coef:
            raise ConfigError("AddBonus.coef=0 does nothing; use another number or leave the term out")

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Adds it."""
        return credit.center(credit.advantage + self.coef * column(credit, self.column))


def confidence(logp: F, fraction: float = 0.2) -> float:
    """``exp`` of the mean log-probability of an answer's least likely tokens: the lowest ``fraction`` of them, at least one.

    >>> round(confidence(np.log([0.9, 0.5, 0.8, 0.2, 0.9]), 0.4), 4)
    0.3162
    """
    count = max(int(np.ceil(fraction * len(logp) - 1e-9)), 1)
    return float(np.exp(np.sort(logp)[:count].mean())) if len(logp) else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceBonus(CreditTerm):
    """Damps answers that the policy is surer of than of the prompt (ARM of ProGRPO): ``A' = A + coef (c(q) - c(o_i))``.

    ``c`` is `confidence` over the least likely tokens: of the answer under the old policy, computed here; of the prompt, a column
    that rows bring. Groups without a correct rollout are left as they are.

    Attributes:
        coef: weight.
        fraction: share of the answer's tokens that is meant.
        column: column of the rollouts with the prompt's confidence.
        threshold: task metric from which a rollout is correct.
    """

    coef: float = 1.0
    fraction: float = 0.2
    column: str = "prompt_confidence"
    threshold: float = 0.5

    def __post_init__(self) -> None:
        if not self.coef:
            raise ConfigError("ConfidenceBonus.coef=0 does nothing; use another number or leave the term out")
        if not 0 < self.fraction <= 1:
            raise ConfigError(f"ConfidenceBonus.fraction={self.fraction}; use a share in (0, 1]")

    @property
    def needs(self) -> tuple[str, ...]:
        """The old policy."""
        return ("logp_old",)

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """The prompt's confidence."""
        return (self.column,)

    @property
    def scope(self) -> Scope:
        """Whether a group has a success."""
        return Scope.GROUP

    def local(self, credit: Credit) -> Partials:
        """Correct rollouts of each group."""
        hits = (solved_rollouts(credit, self.threshold) & credit.counted).astype(np.float64)
        return {"correct": Sum(tally(credit.group, hits, credit.groups))}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Adds the difference."""
        path = Path.of(credit)
        logp = np.split(credit.batch.token("logp_old").astype(np.float64)[path.at], path.start[1:])
        answer = np.array([confidence(x, self.fraction) for x in logp])
        some = stats["correct"].values[credit.group] > 0
        return credit.center(credit.advantage + np.where(some, self.coef * (column(credit, self.column) - answer), 0.0))


@dataclass(frozen=True, slots=True)
class PositivePart(CreditTerm):
    """``max(A, 0)``. Rollouts with a negative advantage leave the loss and its denominator (A-LoL).

    Attributes:
        drop: False keeps them in the denominator.
    """

    drop: bool = True

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Cuts off what is negative."""
        bad = credit.advantage < 0
        tokens = None if credit.tokens is None else np.maximum(credit.tokens, 0.0)
        keep = np.where(bad, 0.0, credit.keep) if self.drop else credit.keep
        return replace(credit, advantage=np.maximum(credit.advantage, 0.0), tokens=tokens, keep=keep)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipAdvantage(CreditTerm):
    """``clip(A, low, high)``, per token where advantages differ per token.

    Attributes:
        low, high: bounds; 0 lies between them, so that no advantage is made up.
    """

    low: float = -_INF
    high: float = _INF

    def __post_init__(self) -> None:
        if not self.low <= 0 <= self.high or self.low == self.high:
            raise ConfigError(f"ClipAdvantage(low={self.low}, high={self.high}): use low <= 0 <= high, not both 0")
        if self.low == -_INF and self.high == _INF:
            raise ConfigError("ClipAdvantage() without bounds does nothing; give low, high or both")

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Clips."""
        tokens = None if credit.tokens is None else np.clip(credit.tokens, self.low, self.high)
        return replace(credit, advantage=np.clip(credit.advantage, self.low, self.high), tokens=tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignSplit(CreditTerm):
    """One factor for positive advantages, another for negative ones: ``A' = positive A`` or ``negative A``.

    Attributes:
        positive, negative: factors, 0 or more.
    """

    positive: float = 1.0
    negative: float = 1.0

    def __post_init__(self) -> None:
        if not self.positive >= 0 or not self.negative >= 0:
            raise ConfigError(
                f"SignSplit(positive={self.positive}, negative={self.negative}): a factor below 0 turns signs around"
            )
        if self.positive == self.negative:
            raise ConfigError(f"SignSplit(positive={self.positive}, negative={self.negative}) only rescales; give two factors")

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Multiplies."""
        tokens = None if credit.tokens is None else self._split(credit.tokens)
        return replace(credit, advantage=self._split(credit.advantage), tokens=tokens)

    def _split(self, values: F) -> F:
        return values * np.where(values > 0, self.positive, self.negative)


def _sigmoid(values: F) -> F:
    return 1.0 / (1.0 + np.exp(-np.asarray(values, np.float64)))
