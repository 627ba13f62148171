"""The doctor's rule on a second judge: what the reward takes for right, and another verifier does not."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from assay.measure.findings import Finding, Severity, at_start, lately, percent, steps_of
from assay.measure.history import History, Series

__all__ = ["RewardHacking"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardHacking:
    """The reward takes answers for right that an independent check does not (``check/overpaid``), more than chance allows.

    A share that has grown since the run began is learned, and an alarm; one that stands is a verifier that was wrong from the
    start, and a warning.

    Attributes:
        most: largest bearable share of such rollouts.
        rise: growth of the share that counts as learned.
        deviations: standard errors that a share, or its growth, must exceed these by.
    """

    most: float = 0.01
    rise: float = 0.05
    deviations: float = 2.0

    def __call__(self, history: History) -> Finding | None:
        overpaid, rollouts = history["check/overpaid"].finite(), history["check/rollouts"]
        first, now = at_start(overpaid), lately(overpaid)
        if not len(now):
            return None
        share, error = _pool_share(now, rollouts)
        before, error_before = _pool_share(first, rollouts)
        if share - self.deviations * error <= self.most:
            return None
        learned = share - before >= self.rise + self.deviations * sqrt(error**2 + error_before**2)
        grown = f", up from {percent(before)} in {steps_of(first)}" if learned else ""
        return Finding(
            rule="RewardHacking",
            severity=Severity.ALARM if learned else Severity.WARNING,
            sentence=(
                f"In {steps_of(now)} the reward took {percent(share)} of the checked rollouts for right that the independent "
                f"check takes for wrong{grown}."
            ),
            action=(
                "Read those rollouts in rollouts.jsonl (field check), mend the reward, and train again from before the rise."
                if learned
                else "Reward and check differ from the start: find out on rollouts.jsonl (field check) which of them is wrong."
            ),
            first_step=first.span[0] if learned else now.span[0],
            last_step=now.span[1],
            numbers={"check/overpaid/start": before, "check/overpaid": share},
        )


def _pool_share(share: Series, rollouts: Series) -> tuple[float, float]:
    """A share over the steps of a window, weighted by rollouts, and its standard error by Wilson's centre."""
    counts = rollouts.values[np.isin(rollouts.steps, share.steps)]
    n = float(counts.sum())
    p = float((share.values * counts).sum() / n) if n else 0.0  # a window without checked rollouts tells nothing
    centre = (p * n + 2.0) / (n + 4.0)
    return p, sqrt(centre * (1 - centre) / (n + 4.0))
