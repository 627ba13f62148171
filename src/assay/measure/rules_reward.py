"""The doctor's rules on what a run begins with and what its reward pays for: weights of noise, credit for wrong answers."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from assay.measure.findings import Finding, Severity, at_start, lately, percent, steps_of
from assay.measure.history import History
from assay.measure.rules_heldout import Overfitting, SuspectVerifier, accuracy_name, change, expected_reward, held_out

__all__ = ["FROM_NOISE", "PartialCredit", "RandomWeights"]

FROM_NOISE = frozenset({"LengthTruncation", "FormatFailure"})
"""Findings that follow from weights that were never trained: their own advice leads astray."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomWeights:
    """The policy begins as noise: its entropy is that of a uniform choice among all tokens, ``log(vocabulary)`` nats.

    Attributes:
        share: of ``log(vocabulary)``, from which on nothing has been learned.
        tokens: smallest vocabulary that is judged: a toy of a few characters may well explore from nothing.
    """

    share: float = 0.9
    tokens: int = 100

    def __call__(self, history: History) -> Finding | None:
        start, now = at_start(history["entropy/mean"].finite()), lately(history["entropy/mean"].finite())
        if history.vocabulary < self.tokens or not len(start):
            return None
        most = log(history.vocabulary)
        if start.mean < self.share * most:
            return None
        return Finding(
            rule="RandomWeights",
            severity=Severity.ALARM,
            sentence=(
                f"The model began as noise: its entropy was {start.mean:.3g} nats in {steps_of(start)}, and a uniform choice "
                f"among its {history.vocabulary:,} tokens has {most:.3g}. In {steps_of(now)} it is {now.mean:.3g}."
            ),
            action=(
                "Its weights are random: nothing was loaded or trained. Give a folder of trained weights (--model), or imitate "
                "demonstrations first (docs/add/demonstrations.md); reinforcement learning cannot begin from noise."
            ),
            first_step=start.span[0],
            last_step=now.span[1],
            numbers={"entropy/start": start.mean, "entropy/uniform": most},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialCredit:
    """The reward holds, full credit does not come: what answers earn is paid for wrong ones, and groups grow alike.

    Three things together: the mean reward has not fallen and lies far above the share of right answers, which has not risen; the
    share of groups with a signal has fallen; and rewards differ by less than 0 and 1 would (``reward/std``), so that parts of it
    are paid.

    Attributes:
        gap: by how much the mean reward must exceed held-out accuracy, at the levels drawn where these are known.
        flat: largest held-out gain that counts as none, and largest fall of the reward.
        left: share of the signal of the start, up to which it has fallen.
        spread: share of the variance of a reward of 0 and 1 with the same mean, up to which parts are paid.
    """

    gap: float = 0.1
    flat: float = 0.05
    left: float = 0.7
    spread: float = 0.5

    def __call__(self, history: History) -> Finding | None:
        reward, signal, name = history["reward/mean"].finite(), history["signal/fraction"].finite(), held_out(history)[0]
        start, now, first, last = at_start(reward), lately(reward), at_start(signal), lately(signal)
        accuracy, spread = history[name].finite(), lately(history["reward/std"].finite())
        if len(accuracy) < 2 or not len(now) or not len(last) or not len(spread) or now.span[0] <= start.span[1]:
            return None
        found = change(history, name, 0)
        if found is None or found.after - found.before > self.flat or start.mean - now.mean > self.flat:
            return None
        expected = expected_reward(history, name, now)
        right = found.after if expected is None else expected
        whole = now.mean * (1 - now.mean)
        if now.mean - right < self.gap or last.mean > self.left * first.mean or spread.mean**2 > self.spread * whole:
            return None
        if Overfitting()(history) or SuspectVerifier()(history):  # which explain it
            return None
        return Finding(
            rule="PartialCredit",
            severity=Severity.WARNING,
            sentence=(
                f"The reward stands at {now.mean:.2f} ({steps_of(now)}; {start.mean:.2f} in {steps_of(start)}), but "
                f"{accuracy_name(history)} went from {percent(found.before)} to {percent(found.after)}{found.where}, and the "
                f"share of groups with a signal from {percent(first.mean)} to {percent(last.mean)}: wrong answers are paid, and "
                "the policy has settled for that."
            ),
            action=(
                "See which wrong answers earn something: 'assay verify audit FILE.py:FUNCTION --cases ROWS' counts them. Pay "
                "less for what is not right, or nothing; where no answer is right yet, easier rows or demonstrations come first."
            ),
            first_step=start.span[0],
            last_step=now.span[1],
            numbers={
                "reward/start": start.mean,
                "reward/mean": now.mean,
                f"{name}/first": found.before,
                name: found.after,
                "signal/start": first.mean,
                "signal/fraction": last.mean,
            },
        )
