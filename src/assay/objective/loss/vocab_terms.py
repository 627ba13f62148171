"""Loss terms that need more of the distribution than the drawn token's probability, and divergences on chosen tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.plan import Forward
from assay.core.protocols import State
from assay.core.vocab import VocabStat
from assay.objective.loss.aggregate import of_streams
from assay.objective.loss.base import LossTerm, View
from assay.objective.loss.entropy import Entropy
from assay.objective.loss.kl import Kl
from assay.objective.loss.policy import PolicyGradient
from assay.objective.loss.token_weights import counted_tokens
from assay.objective.loss.vocab import OUTSIDE, MinP, PowerLogp, Support, SupportLogp, TopP
from assay.objective.loss.vocab_divergence import FullKl, PowerKl
from assay.objective.loss.weights import TokenWeight
from assay.objective.reducers import F, Moments, Partials, Reducer

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["AdaptiveEntropy", "ProxyKl", "RestrictedGradient", "ReweightedKl", "SelectedKl", "StatLoss"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatLoss(LossTerm):
    """A statistic of the current distribution as the loss per token: a divergence from another model over the whole vocabulary,
    or, with a negative ``coef``, something to raise, such as a truncated entropy.

    Attributes:
        stat: which.
    """

    stat: VocabStat = field(default_factory=FullKl, kw_only=False)

    @property
    def name(self) -> str:
        """The label, else the statistic's name."""
        return self.label or self.stat.name

    @property
    def stats(self) -> tuple[VocabStat, ...]:
        """It."""
        return (self.stat,)

    @property
    def needs(self) -> tuple[str, ...]:
        """What it reads."""
        return self.stat.needs

    @property
    def live(self) -> tuple[str, ...]:
        """Its column."""
        return ("logp_new", self.stat.name)

    def apply(self, view: View) -> Tensor:
        """``[n]`` values."""
        return view.live(self.stat.name)

    def report(self, view: View) -> Mapping[str, Tensor]:
        """``value``: the mean."""
        return {"value": view.live(self.stat.name)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedKl(Kl):
    """`Kl` on chosen tokens. KL-Cov is ``abs`` from ``old`` on the tokens of `TopCovariance`; denominators count all tokens.

    Attributes:
        weights: detached factors that choose the tokens, multiplied.
    """

    estimator: str = field(default="abs", kw_only=False)
    anchor: str = "old"
    weights: tuple[TokenWeight, ...] = ()
    label: str = "selected_kl"

    def __post_init__(self) -> None:
        Kl.__post_init__(self)
        if not self.weights:
            raise ConfigError(
                f"{type(self).__name__}(weights=()): nothing chooses tokens; give a weight, or use Kl for all tokens"
            )

    @property
    def sparse(self) -> bool:
        """Only chosen tokens have weight."""
        return True

    @property
    def needs(self) -> tuple[str, ...]:
        """What the weights read."""
        return tuple(dict.fromkeys(n for w in self.weights for n in w.needs))

    @property
    def reduces(self) -> bool:
        """When a weight does."""
        return any(w.reduces for w in self.weights)

    def prepare(self, batch: Batch, share: F, reducer: Reducer) -> Mapping[str, F]:
        """The aggregation's weights on the chosen tokens."""
        weight = share
        for part in self.weights:
            weight = weight * part.factors(batch, self.streams, reducer)
        return {"weight": weight}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyKl(SelectedKl):
    """Lp-Reg's regulariser: ``k3`` towards a proxy on chosen tokens that are less likely now than under it.

    Its slope is ``1 - proxy / p``: it lifts them. The proxy is the policy at the start of the batch, restricted to a support and
    renormalised. A token outside the support has no proxy probability and is left alone.

    Attributes:
        support: which tokens the proxy keeps.
    """

    estimator: str = field(default="k3", kw_only=False)
    anchor: str = "proxy"
    support: Support = field(default_factory=MinP)
    label: str = "proxy_kl"

    @property
    def needs(self) -> tuple[str, ...]:
        """Current and proxy log-probabilities, and what the weights read."""
        return tuple(dict.fromkeys(("logp_now", f"logp_{self.anchor}", *(n for w in self.weights for n in w.needs))))

    @property
    def anchors(self) -> tuple[str, ...]:
        """All but the proxy, which is a column of its own."""
        return tuple(a for a in cast(Any, Kl.anchors).fget(self) if a != self.anchor)

    @property
    def forwards(self) -> tuple[Forward, ...]:
        """The proxy's."""
        column = f"logp_{self.anchor}"
        return (Forward(column, "policy", "batch", SupportLogp(support=self.support, label=column)),)

    def prepare(self, batch: Batch, share: F, reducer: Reducer) -> Mapping[str, F]:
        """The aggregation's weights on the chosen tokens below the proxy."""
        proxy, now = (np.asarray(batch.token(n), np.float64) for n in (f"logp_{self.anchor}", "logp_now"))
        below = (proxy > OUTSIDE) & (now < proxy)
        return SelectedKl.prepare(self, batch, np.where(below, share, 0.0), reducer)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReweightedKl(LossTerm):
    """RAPO's pull towards a reference that is flattened where rewards are low: ``KL(q || pi)`` with ``q ~ ref^phi``, renormalised
    over the vocabulary, and ``phi`` the group's mean reward, clipped to ``[low, high]``.

    ``sampled``: ``r (u log u - u + 1)`` with ``u = q / pi`` at the drawn token and the live ratio ``r = pi / pi_old`` in front,
    without which its gradient would not be the divergence's. ``full``: the sum over the vocabulary itself, which needs no ratio.
    ``phi = 1`` is the plain reference, ``phi = 0`` the uniform distribution.

    Attributes:
        estimator: ``sampled`` or ``full``.
        model: the reference.
        low, high: bounds of ``phi``.
    """

    estimator: str = field(default="sampled", kw_only=False)
    model: str = "ref"
    low: float = 0.0
    high: float = 1.0
    label: str = "rapo"

    def __post_init__(self) -> None:
        LossTerm.__post_init__(self)
        if self.estimator not in ("sampled", "full"):
            raise UnknownNameError("estimator of a reweighted divergence", self.estimator, ("sampled", "full"))
        if not 0 <= self.low < self.high <= 1:
            raise ConfigError(f"ReweightedKl(low={self.low}, high={self.high}): phi lies in [0, 1]; use 0 <= low < high <= 1")

    @property
    def stats(self) -> tuple[VocabStat, ...]:
        """The reference's log-probability, or the divergence."""
        if self.estimator == "full":
            return (PowerKl(self.model, power=f"{self.name}/phi", label=f"kl_{self.name}"),)
        return (PowerLogp(self.model, power=f"{self.name}/phi", label=f"logp_{self.name}"),)

    @property
    def live(self) -> tuple[str, ...]:
        """The statistic's column."""
        return ("logp_new", self.stats[0].name)

    @property
    def anchors(self) -> tuple[str, ...]:
        """``old``, for the ratio."""
        return ("old",) if self.estimator == "sampled" else ()

    @property
    def reward(self) -> bool:
        """``phi`` is one."""
        return True

    @property
    def reduces(self) -> bool:
        """Group means."""
        return True

    @property
    def grouped(self) -> bool:
        """It reads a group's mean."""
        return True

    def prepare(self, batch: Batch, share: F, reducer: Reducer) -> Mapping[str, F]:
        """The aggregation's weights, and ``phi``."""
        group = np.asarray(batch.rollout("group"), np.int64)
        here = np.unique(of_streams(batch, self.streams).rows["rollout"]).astype(np.int64)
        reward = np.asarray(batch.rollout("reward"), np.float64)[here]
        moments: Moments = reducer.reduce({"reward": Moments.of(reward, group[here], int(group.max()) + 1)})["reward"]
        phi = np.clip(moments.mean, self.low, self.high)[group]
        return {"weight": share, "phi": np.repeat(phi[batch.rows["rollout"]], batch.lengths)}

    def apply(self, view: View) -> Tensor:
        """``[n]`` estimates, or divergences."""
        if self.estimator == "full":
            return view.live(self.stats[0].name)
        log_u = (view.live(self.stats[0].name) - view.live("logp_new")).clamp(-20.0, 20.0)
        u = log_u.exp()
        return view.log_ratio("old").exp() * (u * log_u - u + 1)

    def report(self, view: View) -> Mapping[str, Tensor]:
        """``value``: the mean."""
        return {"value": self.apply(view)}


@dataclass(frozen=True, slots=True, kw_only=True)
class RestrictedGradient(PolicyGradient):
    """The policy gradient of a *restricted* policy (NLPO): current and old policy keep the tokens that a mask policy's support
    has at each place, and are renormalised; everything else is `PolicyGradient` on these.

    Sampling must be restricted alike. A drawn token outside the support, which such a sampler never gives, has no weight.

    Attributes:
        support: which tokens the mask policy keeps.
        mask: the model that decides.
    """

    support: Support = field(default_factory=TopP)
    mask: str = "mask"

    def __post_init__(self) -> None:
        LossTerm.__post_init__(self)
        if self.ratio.anchor != "old":
            raise ConfigError(
                f"RestrictedGradient(ratio anchored at {self.ratio.anchor!r}): only the old policy is known under the present "
                "support; anchor the ratio at 'old'"
            )

    @property
    def stats(self) -> tuple[VocabStat, ...]:
        """The restricted policy's log-probability."""
        return (SupportLogp(support=self.support, model=self.mask, label="logp_kept"),)

    @property
    def forwards(self) -> tuple[Forward, ...]:
        """The same of the policy at the start of the batch."""
        return (Forward("logp_kept_old", "policy", "batch", *self.stats),)

    @property
    def live(self) -> tuple[str, ...]:
        """The restricted policy's log-probability."""
        return ("logp_new", "logp_kept")

    @property
    def needs(self) -> tuple[str, ...]:
        """What the weights read, and the old restricted log-probabilities."""
        return (*cast(Any, PolicyGradient.needs).fget(self), "logp_kept_old")

    @property
    def anchors(self) -> tuple[str, ...]:
        """All but the old policy, which is a column of its own."""
        return tuple(a for a in cast(Any, PolicyGradient.anchors).fget(self) if a != "old")

    def prepare(self, batch: Batch, share: F, reducer: Reducer) -> Mapping[str, F]:
        """As `PolicyGradient`, without tokens outside the support."""
        inside = np.asarray(batch.token("logp_kept_old"), np.float64) > OUTSIDE
        return PolicyGradient.prepare(self, batch, np.where(inside, share, 0.0), reducer)

    def apply(self, view: View) -> Tensor:
        """``[n]`` surrogate loss."""
        return PolicyGradient.apply(self, _restrict_view(view))

    def report(self, view: View) -> Mapping[str, Tensor]:
        """As `PolicyGradient`, of the restricted policy."""
        return PolicyGradient.report(self, _restrict_view(view))


def _restrict_view(view: View) -> View:
    """The view in which the restricted policies are the policies."""
    old = TokenColumn("logp_old", view.batch.token("logp_kept_old"), "objective")
    tensors = {**view.tensors, "logp_new": view.tensors["logp_kept"]}
    return replace(view, batch=view.batch.with_tokens(old), tensors=tensors, fresh=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveEntropy(Entropy):
    """Entropy bonus that holds the entropy near a target (Skywork-OR1).

    Its coefficient rises by ``step`` after a rollout batch whose mean entropy is at or below ``target``, falls by ``step`` after
    one above it, and is in force only after one at or below. The mean is over the batch's loss tokens, under the policy at its
    start. A batch is learned from with the coefficient from before it; its measurement counts from the next batch on.

    Attributes:
        coef: factor of the coefficient.
        start: the first coefficient.
        target: wanted mean entropy, in nats.
        step: change of the coefficient per rollout batch.
        most: largest coefficient; the smallest is 0.
    """

    start: float = 0.0
    target: float = 0.2
    step: float = 0.005
    most: float = 1.0
    label: str = "entropy"

    def __post_init__(self) -> None:
        Entropy.__post_init__(self)
        if not 0 <= self.start <= self.most:
            raise ConfigError(f"AdaptiveEntropy(start={self.start}, most={self.most}): use 0 <= start <= most")
        if not self.target > 0 or not self.step > 0:
            raise ConfigError(f"AdaptiveEntropy(target={self.target}, step={self.step}): both must be positive")

    @property
    def needs(self) -> tuple[str, ...]:
        """Entropies at the start of the batch."""
        return ("entropy_old",)

    def init(self) -> State:
        """The coefficient, and whether it is in force: not before the first measurement."""
        return {"coef": self.start, "below": False}

    def local(self, batch: Batch) -> Partials:
        """Moments of the entropies."""
        return {"entropy": Moments.of(np.asarray(batch.token("entropy_old"), np.float64)[counted_tokens(batch)])}

    def advance(self, state: State, stats: Partials) -> State:
        """Moves the coefficient; a batch without loss tokens moves nothing."""
        m: Moments = stats["entropy"]
        if not m.count[0]:
            return state
        below = bool(m.mean[0] <= self.target)
        return {"coef": float(np.clip(state["coef"] + (self.step if below else -self.step), 0.0, self.most)), "below": below}

    def factor(self, state: State) -> float:
        """The coefficient in force."""
        return self.coef * float(state["coef"]) if state["below"] else 0.0
