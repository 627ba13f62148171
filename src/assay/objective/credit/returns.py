"""Returns: from what tokens are paid to values per token. Without one of them an outcome is credited to all tokens alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from assay.core.errors import ConfigError
from assay.core.plan import Scope
from assay.core.protocols import State
from assay.objective.credit.base import Credit, CreditTerm, check_behind
from assay.objective.credit.paths import Path, check_gamma
from assay.objective.credit.stats import moments
from assay.objective.reducers import F, Moments, Partials, tally

__all__ = ["Discount", "Gae", "ProcessNorm", "TokenReward", "Turns"]


@dataclass(frozen=True, slots=True)
class TokenReward(CreditTerm):
    """A reward per token that rows bring, from a token or process reward model: added to the reward, paid where it stands.

    Attributes:
        column: the token column; what stands outside the loss mask is not read.
        coef: its factor.
        alone: pay nothing else; the task's outcome stays the metric that filters look at.
    """

    column: str
    coef: float = 1.0
    alone: bool = False

    kind: ClassVar[str] = "shape"

    def __post_init__(self) -> None:
        if not self.coef:
            raise ConfigError("TokenReward.coef=0 does nothing; use another number or leave the term out")

    @property
    def needs(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    def check(self, before: Sequence[CreditTerm]) -> None:
        """Raises PlanError: it would undo what other shapes did."""
        if self.alone:
            check_behind(self, before, ("shape",), "it replaces the reward, and with it what was added before: put it first")

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Adds it."""
        paid = self.coef * np.where(credit.batch.token("mask"), np.asarray(credit.batch.token(self.column), np.float64), 0.0)
        summed = tally(credit.owner, paid, len(credit.reward))
        if self.alone:
            return credit.with_reward(summed, paid)
        return credit.with_reward(credit.reward + summed, paid if credit.steps is None else credit.steps + paid)


@dataclass(frozen=True, slots=True)
class Discount(CreditTerm):
    """Each token gets the discounted reward that follows it: ``G_t = sum_(t' >= t) gamma^(t' - t) rew_t'``.

    The outcome is paid at the last loss token, so without token rewards ``G_t = gamma^(T - t) R``. A baseline after it is
    subtracted from every token.

    Attributes:
        gamma: worth of the next action token.
    """

    gamma: float = 1.0

    kind: ClassVar[str] = "return"

    def __post_init__(self) -> None:
        if says := check_gamma("Discount", self.gamma):
            raise ConfigError(says)

    def check(self, before: Sequence[CreditTerm]) -> None:
        """Raises PlanError: a return comes before baselines."""
        check_behind(
            self,
            before,
            ("return", "baseline", "scale", "whiten"),
            "a return is what baselines compare, and there is one: put it before them, or keep one",
        )

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Returns per token."""
        path = Path.of(credit)
        total = path.to_go(path.link_payments(credit), self.gamma)
        return replace(credit, tokens=path.spread(total, len(credit.owner)))


@dataclass(frozen=True, slots=True)
class Turns(CreditTerm):
    """Step or turn credit: all tokens of a segment get ``G_k = r_k + gamma G_(k+1)``, ``r_k`` what the segment is paid.

    Attributes:
        by: token column that names the segments: ``call`` for turns, or a column of the user's own (``segment``) for steps; each
            run of equal values is one.
        gamma: worth of the next segment.
    """

    by: str = "call"
    gamma: float = 1.0

    kind: ClassVar[str] = "return"

    def __post_init__(self) -> None:
        if says := check_gamma("Turns", self.gamma):
            raise ConfigError(says)

    @property
    def needs(self) -> tuple[str, ...]:
        """The column."""
        return (self.by,)

    def check(self, before: Sequence[CreditTerm]) -> None:
        """Raises PlanError: a return comes before baselines."""
        check_behind(
            self,
            before,
            ("return", "baseline", "scale", "whiten"),
            "a return is what baselines compare, and there is one: put it before them, or keep one",
        )

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Returns per segment."""
        path = Path.of(credit)
        whole, segment = path.segments(credit.batch.token(self.by))
        total = whole.to_go(tally(segment, path.link_payments(credit), len(whole.at)), self.gamma)
        return replace(credit, tokens=path.spread(total[segment], len(credit.owner)))


@dataclass(frozen=True, slots=True)
class ProcessNorm(CreditTerm):
    """Process supervision of GRPO: rewards of steps, normalised over all steps of the group, summed from each token's step on.

    ``A_it = sum_(k >= step of t) (r_ik - mean_q) / (sd_q + eps)``. Put ``TokenReward(column, alone=True)`` before it: an outcome
    that is paid besides counts as part of the last step. Exactly 0 in a group whose steps are all worth the same.

    Attributes:
        by: token column that names the steps, as in `Turns`.
        ddof: 1 for the sample standard deviation, 0 for the population's.
        eps: added to the standard deviation.
    """

    by: str = "segment"
    ddof: int = 1
    eps: float = 1e-6

    kind: ClassVar[str] = "baseline"

    def __post_init__(self) -> None:
        if self.ddof not in (0, 1) or not self.eps >= 0:
            raise ConfigError(f"ProcessNorm(ddof={self.ddof}, eps={self.eps}): use ddof 0 or 1, and eps >= 0")

    @property
    def needs(self) -> tuple[str, ...]:
        """The column."""
        return (self.by,)

    @property
    def scope(self) -> Scope:
        """A group's steps."""
        return Scope.GROUP

    def check(self, before: Sequence[CreditTerm]) -> None:
        """Raises PlanError: it makes returns of its own."""
        check_behind(self, before, ("return",), "it makes returns of its own from what is paid; keep one of the two")

    def local(self, credit: Credit) -> Partials:
        """Moments of the steps' rewards per group."""
        _, whole, _, paid = self._steps(credit)
        here = credit.counted[whole.owner]
        weights = None if credit.copies is None else credit.copies[whole.owner][here]
        return {"moments": moments(paid[here], credit.group[whole.owner][here], credit.groups, weights)}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Normalised steps, summed forwards."""
        path, whole, segment, paid = self._steps(credit)
        m: Moments = stats["moments"]
        group = credit.group[whole.owner]
        sd = m.std(self.ddof)[group]
        gap = paid - m.mean[group]
        gap = np.where((sd > 0) & (np.abs(gap) > 1e-12 * sd), gap / np.where(sd > 0, sd + self.eps, 1.0), 0.0)
        total = whole.to_go(gap, 1.0)
        first = np.zeros(len(credit.reward))
        first[whole.owner[::-1]] = total[::-1]
        return replace(credit, advantage=first, tokens=path.spread(total[segment], len(credit.owner)))

    def _steps(self, credit: Credit) -> tuple[Path, Path, np.ndarray, F]:
        path = Path.of(credit)
        whole, segment = path.segments(credit.batch.token(self.by))
        return path, whole, segment, tally(segment, path.link_payments(credit), len(whole.at))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gae(CreditTerm):
    """Generalised advantage estimation (PPO): ``delta_t = rew_t + gamma V_(t+1) - V_t``, ``A_t = delta_t + gamma lam A_(t+1)``.

    ``t + 1`` is the next *action* token: tool output and prompts are skipped. It makes the column ``returns``, ``A_t + V_t``
    before any whitening, which a critic regresses. With ``lam=1`` the advantage is the Monte-Carlo return less the value.

    Attributes:
        gamma: worth of the next action.
        lam: how far beyond the next action rewards themselves are believed, 0 to 1.
        lam_returns: the same for ``returns``; ``lam`` when None (VAPO: 1).
        adaptive: VAPO's length-adaptive ``lam = 1 - 1 / (adaptive T_i)`` for the advantages, ``T_i`` loss tokens; replaces
            ``lam`` there when given.
        values: token column with the critic's values at the start of the batch.
        by: token column that names turns, as in `Turns`: one action is then a whole turn, valued at its first token. None: a
            token.
    """

    gamma: float = 1.0
    lam: float = 0.95
    lam_returns: float | None = None
    adaptive: float | None = None
    values: str = "values_old"
    by: str | None = None

    kind: ClassVar[str] = "baseline"

    def __post_init__(self) -> None:
        if says := check_gamma("Gae", self.gamma):
            raise ConfigError(says)
        for name, lam in (("lam", self.lam), ("lam_returns", self.lam_returns)):
            if lam is not None and not 0 <= lam <= 1:
                raise ConfigError(f"Gae.{name}={lam}; use a number in [0, 1]")
        if self.adaptive is not None and not self.adaptive > 0:
            raise ConfigError(f"Gae.adaptive={self.adaptive}; use a positive number (VAPO: 0.05), or None for a fixed lam")

    @property
    def needs(self) -> tuple[str, ...]:
        """The values, and what names the turns."""
        return (self.values,) if self.by is None else (self.values, self.by)

    @property
    def makes(self) -> tuple[str, ...]:
        """What the critic should have said."""
        return ("returns",)

    def check(self, before: Sequence[CreditTerm]) -> None:
        """Raises PlanError: it makes returns of its own."""
        check_behind(self, before, ("return",), "it makes returns of its own from what is paid; keep one of the two")

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Advantages and returns per token; a rollout's own advantage is the mean of its tokens'."""
        path, total = Path.of(credit), len(credit.owner)
        links, link = path, np.arange(len(path.at))
        if self.by is not None:
            links, link = path.segments(credit.batch.token(self.by))
        value = np.asarray(credit.batch.token(self.values), np.float64)[links.at]
        delta = tally(link, path.link_payments(credit), len(links.at)) + self.gamma * links.next(value) - value
        made = links.to_go(delta, self.gamma * self._lam(links))
        found = links.to_go(delta, self.gamma * (self.lam if self.lam_returns is None else self.lam_returns)) + value
        mean = tally(path.owner, made[link], len(credit.reward)) / np.maximum(path.length, 1)
        columns = {**credit.columns, "returns": path.spread(found[link], total)}
        return replace(credit, advantage=mean, tokens=path.spread(made[link], total), columns=columns)

    def _lam(self, links: Path) -> F | float:
        if self.adaptive is None:
            return self.lam
        return 1.0 - 1.0 / np.maximum(self.adaptive * links.length, 1.0)
