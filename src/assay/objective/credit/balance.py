"""Rewards balanced by what training has reached: multipliers of constraints, and weight by progress of the front."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.plan import Scope
from assay.core.protocols import State
from assay.objective.credit.base import Credit, CreditTerm, check_behind
from assay.objective.credit.components import components_of
from assay.objective.credit.normalise import near_zero
from assay.objective.credit.stats import each, moments, peers
from assay.objective.reducers import F, Partials

__all__ = ["Constrained", "HypervolumeScale", "hypervolume"]

_FORMS = ("sigmoid", "unbounded", "tanh")
_LOST = "it reads the components themselves, so that this would be lost: leave one of the two out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Constrained(CreditTerm):
    """Constrained RLHF: a task's advantage and those of component rewards, mixed by multipliers that thresholds move.

    Each component is normalised within its group, ``A_k = (r_k - mu_qk) / sd_qk``. ``A = (1 - mean_k l_k) A_0 + mean_k l_k A_k``;
    with one constraint ``(1 - l) A_0 + l A_1``. ``unbounded``: ``A_0 + sum_k l_k A_k``. The multiplier ``l_k = f(u_k)``
    descends on ``l_k (mean r_k - theta_k)`` by SGD with momentum: it rises while the component is below its threshold, and
    falls beyond it, so that a component is not driven past the point up to which it means something.

    Attributes:
        main: the task's component, ``A_0``; the reward as `Scalarise` makes it when empty.
        thresholds: pairs of component and threshold ``theta``; without any the task's advantage alone.
        form: ``f``: ``sigmoid``; ``unbounded``, ``u`` itself; ``tanh``, by which too much of a component is penalised.
        lr: step of the multipliers.
        momentum: of their descent.
        start: ``u`` at the start.
        eps: added to a standard deviation.

    Raises:
        UnknownNameError: another form.
        ConfigError: the main component has a threshold, another has two, or a number is out of range.

    Here the advantages come from groups; the source has a value head per component. Unsure: the published form of ``tanh``.

    Source: Confronting Reward Model Overoptimization with Constrained RLHF (arXiv 2310.04373), the released code.
    """

    main: str = ""
    thresholds: tuple[tuple[str, float], ...] = ()
    form: str = "sigmoid"
    lr: float = 0.05
    momentum: float = 0.9
    start: float = 0.0
    eps: float = 1e-6

    kind: ClassVar[str] = "baseline"

    def __post_init__(self) -> None:
        names = [name for name, _ in self.thresholds]
        if self.form not in _FORMS:
            raise UnknownNameError("form of the multipliers", self.form, _FORMS)
        if self.main in names or len(set(names)) < len(names):
            raise ConfigError(
                f"Constrained(main={self.main!r}, thresholds={self.thresholds}): give thresholds to other components, one to each"
            )
        if not self.lr > 0 or not 0.0 <= self.momentum < 1.0:
            raise ConfigError(f"Constrained(lr={self.lr}, momentum={self.momentum}): use lr > 0, and a momentum in [0, 1)")

    @property
    def scope(self) -> Scope:
        """The batch: the components' means move the multipliers."""
        return Scope.BATCH

    @property
    def min_group(self) -> int:
        """A spread needs two values."""
        return 2

    def _components(self, credit: Credit) -> list[tuple[str, F]]:
        """Name and values of the task's component, first, and of those with thresholds."""
        named = [(name, 1.0) for name, _ in self.thresholds]
        if not self.main:
            others = components_of(credit, named, "Constrained") if named else ()
            return [("", credit.reward), *((name, values) for name, _, values in others)]
        return [(name, values) for name, _, values in components_of(credit, [(self.main, 1.0), *named], "Constrained")]

    def check(self, before: Sequence[CreditTerm]) -> None:
        """Raises PlanError: it reads the components themselves."""
        check_behind(self, before, ("shape", "return"), _LOST)

    def init(self) -> State:
        """``u`` and the velocity of each constraint."""
        return {"u": [self.start] * len(self.thresholds), "velocity": [0.0] * len(self.thresholds)}

    def local(self, credit: Credit) -> Partials:
        """Moments of each component per group, and over the batch."""
        found: dict[str, object] = {}
        for name, values in self._components(credit):
            found[f"group.{name}"] = peers(credit, values)
            found[f"batch.{name}"] = moments(values[credit.counted])
        return found

    def advance(self, state: State, stats: Partials) -> State:
        """One step of the multipliers' descent."""
        out: State = {"u": [], "velocity": []}
        for (name, bound), u, velocity in zip(self.thresholds, state["u"], state["velocity"], strict=True):
            over = stats[f"batch.{name}"]
            slope = self._slope(u) * (float(over.mean[0]) - bound) if float(over.count[0]) else 0.0
            out["velocity"].append(self.momentum * velocity + slope)
            out["u"].append(u - self.lr * out["velocity"][-1])
        return out

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """The mixture, by the multipliers from before the batch."""
        shares = [self._multiplier(u) for u in state["u"]]
        parts = [self._advantage(credit, stats, name, values) for name, values in self._components(credit)]
        first, others = parts[0], parts[1:]
        n = 1.0 if self.form == "unbounded" else float(max(1, len(others)))
        base = 1.0 if self.form == "unbounded" else 1.0 - sum(shares) / n
        total = base * first + sum(share / n * part for share, part in zip(shares, others, strict=True))
        names = {f"constraint_{name}": share for (name, _), share in zip(self.thresholds, shares, strict=True)}
        return credit.with_advantage(total).with_metrics(**names)

    def _advantage(self, credit: Credit, stats: Partials, name: str, values: F) -> F:
        m = each(credit, stats[f"group.{name}"])
        sd = m.std(1)
        gap = near_zero(values - m.mean, sd)
        return np.where(sd > 0, gap / np.where(sd > 0, sd + self.eps, 1.0), 0.0)

    def _multiplier(self, u: float) -> float:
        if self.form == "unbounded":
            return u
        return math.tanh(u) if self.form == "tanh" else 0.5 * (1.0 + math.tanh(0.5 * u))

    def _slope(self, u: float) -> float:
        value = self._multiplier(u)
        return 1.0 if self.form == "unbounded" else 1.0 - value * value if self.form == "tanh" else value * (1.0 - value)


@dataclass(frozen=True, slots=True, kw_only=True)
class HypervolumeScale(CreditTerm):
    """Dynamic reward weighting by hypervolume: advantages times ``m = 1/2 + 3/2 tanh(gain)``, in [1/2, 2).

    ``gain`` is by how much the batch before, as a point of its components' means, enlarged the volume that all earlier points
    dominate from a reference, the first batch. A point that enlarges it joins them. Within a batch all rewards keep their
    weights. It multiplies advantages, because a division by a deviation would cancel a factor of rewards.

    Attributes:
        components: the objectives, each to be large; all components of the batch, by name, when empty.

    Raises:
        ConfigError: one twice.

    The source measures the point on held-out prompts after each step; here it is the batch that was just sampled.

    Source: Dynamic Reward Weighting (arXiv 2509.11452), the released code.
    """

    components: tuple[str, ...] = ()

    kind: ClassVar[str] = "transform"

    def __post_init__(self) -> None:
        object.__setattr__(self, "components", tuple(self.components))
        if len(set(self.components)) < len(self.components):
            raise ConfigError(f"HypervolumeScale(components={self.components}): name each component once")

    @property
    def scope(self) -> Scope:
        """The batch."""
        return Scope.BATCH

    def init(self) -> State:
        """No reference, no points, and a factor of 1."""
        return {"reference": [], "points": [], "factor": 1.0}

    def local(self, credit: Credit) -> Partials:
        """Moments of each component over the batch."""
        weights = [(name, 1.0) for name in self.components]
        return {name: moments(values[credit.counted]) for name, _, values in components_of(credit, weights, "HypervolumeScale")}

    def advance(self, state: State, stats: Partials) -> State:
        """The factor for the next batch, and the points."""
        found = [stats[name] for name in self.components or sorted(stats)]
        if not float(found[0].count[0]):
            return state
        point = [float(m.mean[0]) for m in found]
        if not state["reference"]:
            return {"reference": point, "points": [], "factor": 1.0}
        reference, points = state["reference"], state["points"]
        gain = hypervolume([*points, point], reference) - hypervolume(points, reference)
        return {"reference": reference, "points": [*points, point] if gain > 0 else points, "factor": 0.5 + 1.5 * math.tanh(gain)}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Multiplies."""
        factor = float(state["factor"])
        return credit.scale_by(np.full(len(credit.reward), factor)).with_metrics(hypervolume_factor=factor)


def hypervolume(points: Sequence[Sequence[float]], reference: Sequence[float]) -> float:
    """Volume that points dominate, all coordinates to be large, from a reference; by slices along the last coordinate.

    >>> hypervolume([(1, 1)], (0, 0)), hypervolume([(1, 2), (2, 1)], (0, 0)), hypervolume([(1, 1), (0.5, 0.5)], (0, 0))
    (1.0, 3.0, 1.0)
    """
    above = [tuple(p) for p in points if all(x > r for x, r in zip(p, reference, strict=True))]
    if not above:
        return 0.0
    if len(reference) == 1:
        return float(max(p[0] for p in above) - reference[0])
    levels = sorted({p[-1] for p in above})
    total, low = 0.0, float(reference[-1])
    for level in levels:
        total += (level - low) * hypervolume([p[:-1] for p in above if p[-1] >= level], reference[:-1])
        low = level
    return total
