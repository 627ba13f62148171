"""The terminal for regression of values per token: critics, and policies that are value functions (ROVER, B-Coder)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from assay.core.batch import Batch
from assay.core.errors import ConfigError, DataError
from assay.core.vocab import VocabStat
from assay.objective.credit.paths import path_of
from assay.objective.loss.base import LossTerm, View
from assay.objective.loss.td_fits import Fit, Square
from assay.objective.loss.td_paths import check_place, places
from assay.objective.loss.td_targets import OutcomeTarget, Target
from assay.objective.loss.td_values import HeadValue, Value
from assay.objective.loss.vocab import MaxLogp
from assay.objective.reducers import F, Reducer

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Margin", "TdLoss"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TdLoss(LossTerm):
    """``coef * fit(value, sg(target))`` per token, a squared error unless ``fit`` says otherwise.

    With ``clip`` it is the larger of that and the loss of the value clipped around its old one (PPO's value clipping).

    Attributes:
        value: what is regressed.
        target: what it should be.
        fit: how far it is from that.
        clip: largest change from the old value that still lowers the loss; None for none. A distance, in the value's own unit.
        at: tokens that it acts on: every ``token``, or of each segment the first (``start``) or last (``end``). The others have
            no weight and stay in denominators that count tokens; `SeqSum` counts rollouts.
        by: token column that names the segments: ``call`` for turns; each run of equal values is one.
    """

    value: Value = field(default_factory=HeadValue)
    target: Target = field(default_factory=OutcomeTarget)
    fit: Fit = field(default_factory=Square)
    clip: float | None = None
    at: str = "token"
    by: str = "call"
    label: str = "td"

    def __post_init__(self) -> None:
        LossTerm.__post_init__(self)
        head = isinstance(self.value, HeadValue)
        if self.clip is not None and not self.clip > 0:
            raise ConfigError(f"TdLoss.clip={self.clip}; use a positive distance, or None for no clipping")
        if self.clip is not None and not head:
            raise ConfigError(f"TdLoss.clip={self.clip} needs a value head with old values; {type(self.value).__name__} has none")
        if self.clip is not None and self.fit.support is not None:
            raise ConfigError(
                f"TdLoss.clip={self.clip} clips a value, and {type(self.fit).__name__} fits other numbers: set clip=None"
            )
        if self.fit.support is not None and not head:
            raise ConfigError(
                f"{type(self.fit).__name__} fits the outputs of a head, and {type(self.value).__name__} is a value itself: use "
                "Square() or Huber()"
            )
        check_place("TdLoss", self.at)

    @property
    def terminal(self) -> bool:
        """When the value is the policy."""
        return self.value.policy

    @property
    def sparse(self) -> bool:
        """Where it acts on few tokens."""
        return self.at != "token"

    @property
    def needs(self) -> tuple[str, ...]:
        """The target's columns, the old values when clipping, and what names the segments."""
        old = () if self.clip is None else (self._old,)
        by = () if self.at == "token" else (self.by,)
        return tuple(dict.fromkeys((*self.target.needs, *old, *by)))

    @property
    def _old(self) -> str:
        """The column of the head's values at the start of the batch."""
        return f"{getattr(self.value, 'name', '')}_old"

    @property
    def anchors(self) -> tuple[str, ...]:
        """The value's."""
        return self.value.anchors

    @property
    def live(self) -> tuple[str, ...]:
        """The value's."""
        return self.value.live

    @property
    def stats(self) -> tuple[VocabStat, ...]:
        """The value's."""
        return self.value.stats

    @property
    def heads(self) -> Mapping[str, tuple[str, int, float, float]]:
        """The heads that it fits, by name, and what each must be: form, outputs per token, support (`Fit.form`)."""
        return dict.fromkeys(self.value.heads, self.fit.form)

    @property
    def reward(self) -> bool:
        """When the target comes from rewards."""
        return self.target.reward or "advantage" in self.target.needs

    def prepare(self, batch: Batch, share: F, reducer: Reducer) -> Mapping[str, F]:
        """The aggregation's weights where it acts, and the targets."""
        weight = share
        if self.at != "token":
            path = path_of(batch)
            here = places(path, *path.segments(batch.token(self.by)), self.at)
            weight = np.zeros_like(share)
            weight[here] = share[here]
        return {"weight": weight, "target": self.target.of(batch)}

    def apply(self, view: View) -> Tensor:
        """``[n]`` losses."""
        output, target = self._output(view), view.own("target")
        loss = self.fit.of(output, target)
        return loss if self.clip is None else loss.maximum(self.fit.of(self._clip_output(view, output), target))

    def _output(self, view: View) -> Tensor:
        output = self.value.of(view)
        form, outputs, low, high = self.fit.form
        found = output.shape[1] if output.dim() > 1 else 1
        if found != outputs:
            raise DataError(
                f"{type(self.fit).__name__} of {self.name!r} reads {outputs} numbers per token, the head gives {found}: use"
                f" ValueHead(form={form!r}, outputs={outputs}, low={low}, high={high})"
            )
        return output

    def _clip_output(self, view: View, output: Tensor) -> Tensor:
        old = view.column(self._old)
        return old + (output - old).clamp(-(self.clip or 0.0), self.clip)

    def report(self, view: View) -> Mapping[str, Tensor]:
        """``error``: mean squared error; ``value``: mean value; ``clip_fraction``: share of the tokens whose clipped value has
        the larger loss; ``outside``: share of the targets beyond the support of a fit.
        """
        output, target = self._output(view), view.own("target")
        value = self.fit.value(output)
        numbers = {"error": (value - target).square(), "value": value}
        if self.clip is not None:
            cut = self.fit.of(self._clip_output(view, output), target) > self.fit.of(output, target)
            numbers["clip_fraction"] = cut.to(value.dtype)
        if self.fit.support is not None:
            low, high = self.fit.support
            numbers["outside"] = ((target < low) | (target > high)).to(value.dtype)
        return numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin(LossTerm):
    """``alpha (logp_max - logp_new)``: how much less the policy likes a demonstrated token than its own favourite (B-Coder).

    Attributes:
        alpha: value of a nat, as in `DuelingValue`.
    """

    alpha: float = 1.0
    streams: tuple[str, ...] = ("expert",)

    def __post_init__(self) -> None:
        LossTerm.__post_init__(self)
        if not self.alpha > 0:
            raise ConfigError(f"Margin.alpha={self.alpha}; use a positive scale")

    @property
    def live(self) -> tuple[str, ...]:
        """The chosen token's and the largest log-probability."""
        return ("logp_new", "logp_max")

    @property
    def stats(self) -> tuple[VocabStat, ...]:
        """The latter."""
        return (MaxLogp(),)

    def apply(self, view: View) -> Tensor:
        """``[n]`` margins, 0 for the favourite itself."""
        return self.alpha * (view.live("logp_max") - view.live("logp_new"))
