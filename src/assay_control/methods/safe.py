"""Offline methods under constraints."""

from __future__ import annotations

from dataclasses import dataclass

from assay_control.methods.size import Weighted
from assay_control.parts.base import Composition, Update
from assay_control.parts.feasible import FeasibleClone, FeasibleValue, FitFeasible
from assay_control.parts.fits import Expectile, FitQ
from assay_control.parts.schedules import Offline
from assay_control.parts.targets import NextValue

__all__ = ["FISOR"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FISOR(Weighted):
    """Feasibility-guided safe offline RL: learns from which states the hazard can be kept out of, then clones within them.

    Three fits that do not touch: values by IQL, ``V_h`` and ``Q_h`` of the hazard (``(1 - γ) h + γ max(h, V_h(s'))``), and a
    policy that clones by advantage where ``V_h <= 0`` and by safety elsewhere. Source: Zheng et al. 2024, arXiv 2401.10700,
    with a normal policy in place of one that denoises, and without the choice among 16 drawn actions.

    Attributes:
        tau: expectile of the value.
        safety: expectile of the hazard's.
        beta: sharpness of the cloning where safe.
        flee: sharpness where not.
        unsafe: ``h`` of a step with a cost; 25 in the paper.
        danger_discount: γ of the hazard; .99 in the paper, for longer runs.
    """

    tau: float = 0.9
    safety: float = 0.9
    beta: float = 3.0
    flee: float = 5.0
    unsafe: float = 5.0
    danger_discount: float = 0.9

    def compose(self) -> Composition:
        """Its parts."""
        return Composition(
            nets={
                "v": self.net(),
                "q": self.critic(),
                "vh": self.net(),
                "qh": self.critic(),
                "pi": self.net(outputs="normal"),
            },
            updates=(
                Update(owner="v", fit=Expectile(self.tau)),
                Update(owner="q", fit=FitQ(), target=NextValue()),
                Update(owner="vh", fit=FeasibleValue(tau=self.safety)),
                Update(owner="qh", fit=FitFeasible(unsafe=self.unsafe, discount=self.danger_discount)),
                Update(owner="pi", fit=FeasibleClone(beta=self.beta, flee=self.flee)),
            ),
            source=self.source(),
            schedule=Offline(),
            discount=self.discount,
            reward=(self.reward, 0.0),
        )
