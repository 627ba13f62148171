"""Baselines. Each rollout counts once, however many rows it has; faulty rollouts never count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.plan import Scope
from assay.core.protocols import State
from assay.objective.credit.base import Credit, CreditTerm, check_behind
from assay.objective.credit.normalise import near_zero
from assay.objective.credit.paths import Path
from assay.objective.credit.stats import Keyed, Largest, column, each, identity, moments, peers
from assay.objective.reducers import F, Moments, Partials

__all__ = ["Against", "Center", "OptimalToken", "RunningBaseline", "TopGap"]

_BASELINES = ("group", "leave_one_out", "length_weighted", "batch", "constant", "ema")
_GROUPED = ("group", "leave_one_out", "length_weighted")


@dataclass(frozen=True, slots=True)
class Center(CreditTerm):
    """Subtracts a baseline.

    ``group``: the group's mean ``mu_q``. ``leave_one_out``: the mean of the *others* in the group, ``n / (n - 1) (R - mu_q)``.
    ``length_weighted``: the group's mean weighted by loss tokens, ``sum_i T_i R_i / sum_i T_i`` (OPO). ``batch``: the mean over
    the rollout batch. ``constant``: ``value``. ``ema``: a running mean of earlier batches' rewards (0 before the first), with
    weight ``decay`` on the past and its start corrected.

    A group without variance gets exactly 0. A group left with one rollout gets 0 under every group baseline, and is counted as
    ``credit/lone``. Where a return made values per token, each loses the rollout's baseline.

    Attributes:
        baseline: which one.
        value: only for ``constant``.
        decay: only for ``ema``.
        by: only for group baselines: a column of the rollouts whose equal values, inside a group, make the peers that are
            compared: siblings of one prefix, the rollouts of one role, of one episode.
    """

    baseline: str = "group"
    value: float | None = None
    decay: float | None = None
    by: str = ""

    kind: ClassVar[str] = "baseline"

    def __post_init__(self) -> None:
        if self.baseline not in _BASELINES:
            raise UnknownNameError("baseline", self.baseline, _BASELINES)
        if (self.baseline == "constant") != (self.value is not None):
            raise ConfigError(
                f"Center({self.baseline!r}, value={self.value}): a value belongs to baseline='constant', and only there"
            )
        if (self.baseline == "ema") != (self.decay is not None):
            raise ConfigError(f"Center({self.baseline!r}, decay={self.decay}): a decay belongs to baseline='ema', and only there")
        if self.decay is not None and not 0 <= self.decay < 1:
            raise ConfigError(f"Center.decay={self.decay} is the weight of the past; use a number in [0, 1)")
        if self.by and self.baseline not in _GROUPED:
            raise ConfigError(f"Center({self.baseline!r}, by={self.by!r}): peers belong to the group baselines {_GROUPED}")

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """What tells the peers apart."""
        return (self.by,) if self.by else ()

    @property
    def scope(self) -> Scope:
        """What the mean runs over."""
        if self.baseline in _GROUPED:
            return Scope.GROUP
        return Scope.SEQUENCE if self.baseline == "constant" else Scope.BATCH

    @property
    def min_group(self) -> int:
        """Two for the group baselines."""
        return 2 if self.scope is Scope.GROUP else 1

    @property
    def reduces(self) -> bool:
        """All but the constant are means."""
        return self.baseline != "constant"

    def init(self) -> State:
        """Running mean and the weight it has gathered."""
        return {"mean": 0.0, "weight": 0.0} if self.baseline == "ema" else {}

    def local(self, credit: Credit) -> Partials:
        """Moments of the advantages."""
        if self.scope is Scope.GROUP:
            found: dict[str, object] = {"moments": peers(credit, credit.advantage, self.by)}
            if self.baseline == "length_weighted":
                tokens = np.asarray(credit.batch.rollout("tokens"), np.float64)
                weights = tokens if credit.copies is None else tokens * credit.copies
                found["weighted"] = peers(credit, credit.advantage, self.by, weights)
            return found
        if self.baseline == "constant":
            return {}
        weights = None if credit.copies is None else credit.copies[credit.counted]
        return {"moments": moments(credit.advantage[credit.counted], weights=weights)}

    def advance(self, state: State, stats: Partials) -> State:
        """Moves the running mean."""
        if self.decay is None or not float(stats["moments"].count[0]):
            return state
        new = 1.0 - self.decay
        return {
            "mean": self.decay * state["mean"] + new * float(stats["moments"].mean[0]),
            "weight": self.decay * state["weight"] + new,
        }

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Subtracts the baseline."""
        if self.baseline == "batch":
            of_batch: Moments = stats["moments"]
            sd = of_batch.std(0)[0]
            return credit.center(near_zero(credit.advantage - of_batch.mean[0], sd), sd)
        if self.scope is not Scope.GROUP:
            return credit.center(credit.advantage - self._common(state))
        m = each(credit, stats["moments"], self.by)
        mean = each(credit, stats["weighted"], self.by).mean if self.baseline == "length_weighted" else m.mean
        sd = m.std(0)
        deviation = near_zero(credit.advantage - mean, sd)
        if self.baseline == "leave_one_out":
            # A rollout outside the statistics has all n counted ones as its others.
            others = np.where(credit.counted, np.maximum(m.count - 1, 1), m.count)
            deviation = deviation * m.count / np.maximum(others, 1)
        found = stats["moments"].moments if isinstance(stats["moments"], Keyed) else stats["moments"]
        told = credit.with_metrics(credit_lone=float(np.sum(found.count == 1)))
        return told.center(deviation, sd).scale_by(np.where(m.count <= 1, 0.0, 1.0))

    def _common(self, state: State) -> float:
        if self.value is not None:
            return self.value
        return state["mean"] / state["weight"] if state["weight"] else 0.0


@dataclass(frozen=True, slots=True)
class Against(CreditTerm):
    """Subtracts a number per rollout that rows bring: ``A_i = R_i - b_i``.

    The reward of the greedy answer to the same prompt (ReMax), the value of the prompt under the reference (A-LoL), or a critic's
    value of the whole rollout.

    Attributes:
        column: the column of the rollouts.
    """

    column: str

    kind: ClassVar[str] = "baseline"

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Subtracts it."""
        return credit.center(credit.advantage - column(credit, self.column))


@dataclass(frozen=True, slots=True)
class RunningBaseline(CreditTerm):
    """A running mean of earlier rewards per role or task (RAE of SPIRAL): ``A_i = R_i - b_k``, then ``b_k`` moves.

    ``b`` starts at 0. After a batch with ``n`` rollouts of key ``k`` and mean ``m``, ``b_k = decay^n b_k + (1 - decay^n) m``:
    what ``n`` moves one by one give when the rewards are equal, and no matter in what order the rollouts stand.

    Attributes:
        by: column of the rollouts with the key.
        decay: weight of the past per rollout.
    """

    by: str = "role"
    decay: float = 0.95

    kind: ClassVar[str] = "baseline"

    def __post_init__(self) -> None:
        if not 0 <= self.decay < 1:
            raise ConfigError(f"RunningBaseline.decay={self.decay} is the weight of the past; use a number in [0, 1)")

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """The key."""
        return (self.by,)

    @property
    def scope(self) -> Scope:
        """A key's rollouts stand in any group."""
        return Scope.BATCH

    def init(self) -> State:
        """The mean per key."""
        return {"mean": {}}

    def local(self, credit: Credit) -> Partials:
        """Moments per key."""
        here = credit.counted
        return {"moments": Keyed.of(credit.advantage[here], self._keys(credit)[here, None])}

    def advance(self, state: State, stats: Partials) -> State:
        """Moves the means of the keys that the batch holds."""
        found: Keyed = stats["moments"]
        mean = dict(state["mean"])
        for key, n, m in zip(found.keys[:, 0].tolist(), found.moments.count.tolist(), found.moments.mean.tolist(), strict=True):
            past = self.decay**n
            mean[str(key)] = past * mean.get(str(key), 0.0) + (1.0 - past) * m
        return {"mean": mean}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Subtracts the mean of earlier batches."""
        known = np.array([state["mean"].get(str(k), 0.0) for k in self._keys(credit).tolist()])
        return credit.center(credit.advantage - known)

    def _keys(self, credit: Credit) -> np.ndarray:
        return identity(credit.batch.rollout(self.by))


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimalToken(CreditTerm):
    """The optimal baseline per token (OTB): ``A_it = G_it - B_qt``, ``B_qt = sum_i W_it G_it / sum_i W_it`` over the group.

    ``W_it = sum_(t' <= t) (1 - 2 p_it' + sum_v p_it'v^2)`` is the energy of the rollout's score up to there: ``p_it`` the
    probability of the token, ``p_itv`` that of each token of the vocabulary (a certain token has no energy). ``t`` counts action
    tokens, so tool output shifts nothing (the TIR variant). A lone rollout gets 0, and is counted as ``credit/lone``.

    Attributes:
        squares: token column with ``sum_v p_v^2`` of the old policy.
        tail: a rollout's tokens behind the end of all others keep their whole return; False: they get 0, their own baseline.
        cap: multiply each token's energy by ``min(pi_old / pi_engine, cap)^2``; None: not.
    """

    squares: str = "sum_pi_squared_old"
    tail: bool = True
    cap: float | None = None

    kind: ClassVar[str] = "baseline"

    def __post_init__(self) -> None:
        if self.cap is not None and not self.cap > 0:
            raise ConfigError(f"OptimalToken.cap={self.cap}; use a positive number, or None")

    @property
    def needs(self) -> tuple[str, ...]:
        """Both columns of the old policy, and the sampler's when the energy is corrected."""
        return ("logp_old", self.squares) if self.cap is None else ("logp_old", self.squares, "logp_engine")

    @property
    def scope(self) -> Scope:
        """A group."""
        return Scope.GROUP

    @property
    def min_group(self) -> int:
        """Others to compare with."""
        return 2

    def local(self, credit: Credit) -> Partials:
        """Moments of the returns at each place of a group, weighted by energy, and how many rollouts stand there."""
        path = Path.of(credit)
        here = credit.counted[path.owner]
        at, values = path.at[here], credit.per_token()
        keys, weights = self._keys(credit, path)[here], self._energy(credit, path)[here]
        return {
            "weighted": Keyed.of(
                values[at], keys, weights if credit.copies is None else weights * credit.copies[path.owner][here]
            ),
            "moments": Keyed.of(values[at], keys),
            "attempts": peers(credit, credit.advantage),
        }

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Subtracts the baseline of each place."""
        path = Path.of(credit)
        keys = self._keys(credit, path)
        weighted: Moments = stats["weighted"].at(keys)
        plain: Moments = stats["moments"].at(keys)
        value = credit.per_token()[path.at]
        baseline: F = np.where(weighted.count > 0, weighted.mean, plain.mean)
        gap = near_zero(value - baseline, plain.std(0))
        if self.tail:
            others = plain.count - credit.counted[path.owner]
            gap = np.where(others > 0, gap, value)
        rollouts: Moments = stats["attempts"]
        gap = np.where(rollouts.count[credit.group[path.owner]] <= 1, 0.0, gap)
        mean = np.bincount(path.owner, gap, len(credit.reward)) / np.maximum(path.length, 1)
        told = credit.with_metrics(credit_lone=float(np.sum(rollouts.count == 1)))
        return replace(told, advantage=mean, tokens=path.spread(gap, len(credit.owner)))

    def _keys(self, credit: Credit, path: Path) -> np.ndarray:
        return np.stack([credit.group[path.owner], path.place], axis=1)

    def _energy(self, credit: Credit, path: Path) -> F:
        """``[n]`` summed energy of each rollout up to each of its tokens."""
        batch = credit.batch
        old = batch.token("logp_old").astype(np.float64)[path.at]
        each_token = 1.0 - 2.0 * np.exp(old) + np.asarray(batch.token(self.squares), np.float64)[path.at]
        if self.cap is not None:
            gap = np.clip(old - batch.token("logp_engine").astype(np.float64)[path.at], -20.0, 20.0)
            each_token = each_token * np.minimum(np.exp(gap), self.cap) ** 2
        return path.so_far(np.maximum(each_token, 0.0))


@dataclass(frozen=True, slots=True)
class TopGap(CreditTerm):
    """Pass@k by the best rollout alone (2025): it gets its lead over the second best, all others 0; a tie at the top gives none.

    ``Scale("group")`` after it is verl's ``grpo_passk``. A lone rollout gets 0, and is counted as ``credit/lone``.
    """

    kind: ClassVar[str] = "baseline"

    @property
    def scope(self) -> Scope:
        """A group."""
        return Scope.GROUP

    @property
    def min_group(self) -> int:
        """A best and a second best."""
        return 2

    def check(self, before: Sequence[CreditTerm]) -> None:
        """Raises PlanError: it compares whole rollouts."""
        check_behind(
            self, before, ("return",), "it compares whole rollouts, and a return makes values per token: leave the return out"
        )

    def local(self, credit: Credit) -> Partials:
        """The two largest rewards of each group."""
        here = credit.counted
        return {"top": Largest.of(credit.advantage[here], credit.group[here], credit.groups, 2)}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """The lead of the best."""
        first, second = stats["top"].values[credit.group].T
        whole = np.isfinite(second)
        lead = np.where(whole, first, 0.0) - np.where(whole, second, 0.0)
        top = stats["top"].values
        told = credit.with_metrics(credit_lone=float(np.sum(np.isfinite(top[:, 0]) & ~np.isfinite(top[:, 1]))))
        return told.with_advantage(np.where((credit.advantage >= first) & whole, lead, 0.0))
