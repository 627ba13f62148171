"""The doctor's rule on a learning rate that destroys the policy at once, and what else it then sees because of that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.measure.findings import Finding, Severity, percent, steps_of
from assay.measure.history import History
from assay.measure.rules_heldout import accuracy_name, held_out

__all__ = ["CONSEQUENCES", "LearningRateTooHigh"]

CONSEQUENCES = frozenset(
    {
        "HeldOutDropped",
        "NoSignal",
        "EntropyCollapse",
        "EntropyExplosion",
        "LengthTruncation",
        "FormatFailure",
        "CurriculumStuck",
        "StalledSteps",
    }
)
"""Rules whose findings say nothing of their own about a policy that the learning rate has destroyed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRateTooHigh:
    """The first updates destroyed the policy: reward and held-out accuracy stay gone, and it went far from its start.

    Attributes:
        within: most updates after which the fall counts as at once.
        left: largest share of the accuracy, and of the first reward, that is left afterwards.
        least: smallest accuracy and first reward from which a fall can be told.
        far: divergence from the start in nats per token, or share by which the entropy has changed, of a policy that is another.
    """

    within: int = 20
    left: float = 0.25
    least: float = 0.05
    far: float = 0.5

    def __call__(self, history: History) -> Finding | None:
        reward, rates = history["reward/mean"].finite(), history["lr"].finite()
        name, accuracy = held_out(history)
        if len(reward) < 4 or len(accuracy) < 2 or reward.values[0] < self.least or accuracy.values[0] < self.least:
            return None
        low = reward.values <= self.left * reward.values[0]
        since = len(low) if not low[-1] else len(low) - int(np.argmin(low[::-1])) if not low.all() else 0
        if since > self.within or len(low) - since < 3 or accuracy.values[-1] > self.left * accuracy.values[0]:
            return None
        if not self._went_far(history):
            return None
        first, step = int(reward.steps[0]), int(reward.steps[since])
        rate = float(rates.values.max()) if len(rates) else float("nan")
        after, known = reward.last(len(reward) - since), accuracy_name(history)
        so_far = f" at a learning rate of up to {rate:g}" if len(rates) else ""
        try_this = f"a tenth of it (--lr {rate / 10:g})" if len(rates) else "a tenth of it (--lr)"
        return Finding(
            rule="LearningRateTooHigh",
            severity=Severity.ALARM,
            sentence=(
                f"The first updates destroyed the policy{so_far}: the reward fell from {reward.values[0]:.2f} (step {first}) to "
                f"{after.mean:.2f} ({steps_of(after)}), and {known} from {percent(float(accuracy.values[0]))} to "
                f"{percent(float(accuracy.values[-1]))}."
            ),
            action=f"The learning rate is too high: begin again with {try_this}, and warm it up (--warmup-steps).",
            first_step=first,
            last_step=step,
            numbers={"reward/mean": after.mean, name: float(accuracy.values[-1])} | ({"lr": rate} if len(rates) else {}),
        )

    def _went_far(self, history: History) -> bool:
        """Whether the policy became another one: a reward that broke does not move it."""
        distance, entropy = history["kl/base_train"].finite(), history["entropy/mean"].finite()
        if len(distance) and float(distance.first(self.within).values.max()) >= self.far:
            return True
        values = entropy.first(self.within).values
        return bool(len(values)) and float(np.abs(values - values[0]).max()) >= self.far * max(float(values[0]), 1.0)
