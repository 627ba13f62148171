"""Filters that weigh or choose rollouts by score and chance; a chance is a function of seed, number of the batch, and rollout."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.plan import Scope
from assay.core.protocols import State
from assay.objective.credit.base import Credit, CreditTerm, check_behind
from assay.objective.credit.filters import Filter, drop_rollouts
from assay.objective.credit.paths import Path
from assay.objective.credit.shape import solved_rollouts
from assay.objective.credit.stats import Gathered, Keyed, lottery, rank_in_group
from assay.objective.reducers import F, Moments, Partials

__all__ = ["Balance", "BestAnd", "Chance", "Deduplicate", "Resample"]

_RULES = ("pow", "max_min", "max_random")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance(Filter):
    """Base of the filters that draw lots: each batch has a number, so that its lots differ from the last one's.

    A group's rollouts must stand on one rank together.

    Attributes:
        seed: everything random derives from it.
    """

    seed: int = 0

    def init(self) -> State:
        """The number of the next batch."""
        return {"batch": 0}

    def advance(self, state: State, stats: Partials) -> State:
        """One more batch."""
        return {"batch": state["batch"] + 1}

    def lots(self, credit: Credit, state: State) -> F:
        """``[R]`` uniforms in [0, 1)."""
        return lottery(credit, type(self).__name__, self.seed, int(state["batch"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Resample(Chance):
    """Resampling with replacement in proportion to a weight, as weights (PF-PPO): ``n w_i / sum w``, so as many as before.

    ``pow``: ``|R_i|^power``. ``max_min``: 1 for the best and worst scores, else 0. ``max_random``: 0.4 for the best, 0.1 for the
    others. Put it before baselines and returns: a rollout counts in their statistics as often as it was drawn. It changes the
    expectation: no importance weight corrects it. Equal weights change nothing.

    Attributes:
        rule: which one.
        power: of ``pow``.
        over: best and worst of the ``group`` or of the ``batch``.
        draw: whole numbers, drawn so that their mean is the weight; False: the weights themselves.
    """

    rule: str = "pow"
    power: float = 2.0
    over: str = "group"
    draw: bool = False

    def __post_init__(self) -> None:
        if self.rule not in _RULES:
            raise UnknownNameError("resampling rule", self.rule, _RULES)
        if self.over not in ("group", "batch"):
            raise UnknownNameError("scope of the best", self.over, ("group", "batch"))
        if not self.power > 0:
            raise ConfigError(f"Resample.power={self.power}; use a positive number (PF-PPO: 2)")

    @property
    def weighs(self) -> bool:
        """Copies."""
        return True

    @property
    def scope(self) -> Scope:
        """The sum of all weights."""
        return Scope.BATCH

    def check(self, before: Sequence[CreditTerm]) -> None:
        """Raises PlanError: advantages must see the copies."""
        check_behind(
            self,
            before,
            ("return", "baseline", "scale", "whiten"),
            "baselines and returns must see the copies: put Resample before them",
        )

    def local(self, credit: Credit) -> Partials:
        """Group and reward of the rollouts that count."""
        here = credit.counted
        return {"rows": Gathered(np.stack([credit.group[here].astype(np.float64), credit.reward[here]], axis=1))}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Weights in the losses, and in the statistics that follow."""
        group, reward = stats["rows"].rows.T
        whole = self._weights(reward, group, reward, group)
        total = float(np.sort(whole).sum())  # sorted: a sum that does not depend on the order of the ranks
        weight = self._weights(credit.reward, credit.group.astype(np.float64), reward, group)
        times = weight * len(whole) / total if total > 0 else np.ones(len(weight))
        if self.draw:
            low = np.floor(times + 1e-12)
            times = low + (self.lots(credit, state) < times - low)
        times = np.where(credit.counted, times, 1.0)
        copies = times if credit.copies is None else credit.copies * times
        told = credit.with_metrics(credit_effective_rollouts=_effective(whole))
        return replace(told, keep=credit.keep * times, counted=credit.counted & (times > 0), copies=copies)

    def _weights(self, reward: F, group: F, all_rewards: F, all_groups: F) -> F:
        """``[n]`` the weights of rewards among all."""
        if self.rule == "pow":
            return np.abs(reward) ** self.power
        key, keys = (group, all_groups) if self.over == "group" else (np.zeros_like(group), np.zeros_like(all_groups))
        size = int(max(key.max(initial=0), keys.max(initial=0))) + 1
        best, worst = np.full(size, -np.inf), np.full(size, np.inf)
        np.maximum.at(best, keys.astype(np.int64), all_rewards)
        np.minimum.at(worst, keys.astype(np.int64), all_rewards)
        top, bottom = reward == best[key.astype(np.int64)], reward == worst[key.astype(np.int64)]
        return np.where(top, 0.4, 0.1) if self.rule == "max_random" else (top | bottom).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class BestAnd(Chance):
    """Keeps two rollouts of each group: the best, and another one, drawn or the worst (the filters of PF-PPO).

    Ties are broken by lot. A lone rollout stays.

    Attributes:
        other: ``random`` or ``worst``.
    """

    other: str = "random"

    def __post_init__(self) -> None:
        if self.other not in ("random", "worst"):
            raise UnknownNameError("other rollout", self.other, ("random", "worst"))

    @property
    def scope(self) -> Scope:
        """A group."""
        return Scope.GROUP

    @property
    def min_group(self) -> int:
        """Two to keep."""
        return 2

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Sets the weight of the others to 0."""
        here = np.flatnonzero(credit.counted)
        group, reward, lot = credit.group[here], credit.reward[here], self.lots(credit, state)[here]
        best = rank_in_group(group, -reward, lot) == 0
        rest = np.flatnonzero(~best)
        order = reward[rest] if self.other == "worst" else np.zeros(len(rest))
        kept = np.zeros(len(credit.reward), np.bool_)
        kept[here[best]] = kept[here[rest[rank_in_group(group[rest], order, lot[rest]) == 0]]] = True
        return drop_rollouts(credit, credit.counted & ~kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance(Chance):
    """Keeps so many correct and so many wrong rollouts per prompt, chosen by lot (OREAL: one of each).

    Put it behind the baseline, so that this one sees all rollouts.

    Attributes:
        positives, negatives: how many of each stay.
        both: drop prompts that lack one of the classes.
        threshold: task metric from which a rollout is correct.
    """

    positives: int = 1
    negatives: int = 1
    both: bool = True
    threshold: float = 0.5

    def __post_init__(self) -> None:
        if self.positives < 0 or self.negatives < 0 or not self.positives + self.negatives:
            raise ConfigError(f"Balance(positives={self.positives}, negatives={self.negatives}) keeps nothing; keep some")

    @property
    def scope(self) -> Scope:
        """A group."""
        return Scope.GROUP

    @property
    def min_group(self) -> int:
        """Both classes."""
        return 2 if self.both else 1

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Sets the weight of the others to 0."""
        here = np.flatnonzero(credit.counted)
        group, right = credit.group[here], solved_rollouts(credit, self.threshold)[here]
        place = rank_in_group(2 * group + right, self.lots(credit, state)[here])
        kept = place < np.where(right, self.positives, self.negatives)
        if self.both:
            share = Moments.of(right.astype(np.float64), group, credit.groups).mean[group]
            kept = kept & (share > 0) & (share < 1)
        dropped = np.array(credit.counted)
        dropped[here[kept]] = False
        return drop_rollouts(credit.with_metrics(credit_balanced=float(kept.sum())), dropped)


@dataclass(frozen=True, slots=True)
class Deduplicate(Filter):
    """Rollouts of a group with the same loss tokens count as one: each keeps ``1 / m`` of its weight, ``m`` of them being equal.

    Loss and gradient are those of one of them. Their rewards stay in the statistics.
    """

    @property
    def needs(self) -> tuple[str, ...]:
        """Token ids."""
        return ("ids",)

    @property
    def weighs(self) -> bool:
        """Shares."""
        return True

    @property
    def scope(self) -> Scope:
        """A group."""
        return Scope.GROUP

    def local(self, credit: Credit) -> Partials:
        """How often each text stands in its group."""
        here = credit.counted
        return {"texts": Keyed.of(np.ones(int(here.sum())), self._keys(credit)[here])}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Shares out the weight."""
        times = np.where(credit.counted, stats["texts"].at(self._keys(credit)).count, 1.0)
        told = credit.with_metrics(credit_duplicates=float(np.sum(times > 1)))
        return replace(told, keep=credit.keep / times)

    def _keys(self, credit: Credit) -> NDArray[np.int64]:
        path = Path.of(credit)
        texts = np.split(credit.batch.token("ids")[path.at], path.start[1:])
        digests = [hashlib.blake2b(t.tobytes(), digest_size=8).digest() for t in texts]
        return np.stack([credit.group, np.frombuffer(b"".join(digests), np.int64)], axis=1)


def _effective(weights: F) -> float:
    """How many equally weighted rollouts are as good: ``(sum w)^2 / sum w^2``."""
    total = np.sort(weights)
    return float(total.sum() ** 2 / (total**2).sum()) if total.any() else float(len(weights))
