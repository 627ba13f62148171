"""The doctor's rules on training itself: signal, entropy, length, form, steps.

Each is a frozen dataclass of thresholds and a pure function of the reinforcement-learning part of a history.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.measure.findings import Finding, Severity, at_start, lately, percent, steps_of
from assay.measure.history import History, Series

__all__ = [
    "EntropyCollapse",
    "EntropyExplosion",
    "FormatFailure",
    "LengthTruncation",
    "NoSignal",
    "NotFinite",
    "StalledSteps",
]


def _reward(window: Series) -> dict[str, float]:
    return {"reward/mean": window.mean} if len(window) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class NoSignal:
    """Too few groups whose rollouts differ in reward: a group baseline learns nothing from the others.

    Attributes:
        least: smallest healthy share of such groups lately.
        mastered: reward from which on too little signal means that the tasks are solved.
        hopeless: reward up to which it means that nothing is earned; in between, rollouts of a prompt are rewarded alike.
    """

    least: float = 0.15
    mastered: float = 0.9
    hopeless: float = 0.02

    def __call__(self, history: History) -> Finding | None:
        now, reward = lately(history["signal/fraction"]), lately(history["reward/mean"])
        if not len(now) or now.mean >= self.least:
            return None
        solved = reward.mean >= self.mastered
        first, earned = at_start(history["signal/fraction"]), at_start(history["reward/mean"])
        if solved and not any(first.values) and len(set(earned.values.tolist())) == 1:
            action = (
                "Every answer got the same reward from the first step on: the reward is constant, or the model could do all "
                "of it before."
            )
        elif solved:
            action = "The tasks are nearly solved: stop here, or add harder levels to the curriculum."
        elif len(reward) and reward.mean > self.hopeless:
            action = (
                "No signal: all rollouts of a prompt get the same reward. Read the sampled rollouts: if their answers are alike, "
                "raise the temperature or the group size; if not, the reward does not tell answers to one prompt apart."
            )
        else:
            action = (
                "The tasks are too hard for this model, or the reward cannot be earned: check that a right answer gets it, then "
                "begin with easier levels or rows, demonstrations first (docs/add/demonstrations.md), or larger groups."
            )
        so_far = f" at a mean reward of {reward.mean:.2f}" if len(reward) else ""
        return Finding(
            rule="NoSignal",
            severity=Severity.NOTE if solved else Severity.WARNING,
            sentence=f"In {steps_of(now)} only {percent(now.mean)} of the groups held rollouts that differ in reward{so_far}.",
            action=action,
            first_step=now.span[0],
            last_step=now.span[1],
            numbers={"signal/fraction": now.mean} | _reward(reward),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EntropyCollapse:
    """Entropy is gone while reward is not there yet: the policy repeats itself and has stopped exploring.

    Attributes:
        share: of the entropy at the start, below which it counts as gone.
        reward: mean reward from which on low entropy is mastery, not collapse.
        gain: recent rise in reward that shows that learning goes on.
    """

    share: float = 0.1
    reward: float = 0.9
    gain: float = 0.03

    def __call__(self, history: History) -> Finding | None:
        entropy, reward = history["entropy/mean"].finite(), history["reward/mean"].finite()
        start, now = at_start(entropy), lately(entropy)
        if len(entropy) < 2 or start.mean <= 0 or now.mean >= self.share * start.mean:
            return None
        recent = lately(reward)
        half = reward.first(len(reward) - len(reward) // 4)  # what it was a quarter of the run ago
        gain = recent.mean - half.last(half.window()).mean if len(reward) else 0.0
        if len(reward) and (recent.mean >= self.reward or gain >= self.gain):
            return None
        below = entropy.values < self.share * start.mean
        since = int(entropy.steps[len(below) - int(np.argmin(below[::-1]))]) if not below.all() else entropy.span[0]
        at_reward = f" while the mean reward stands at {recent.mean:.2f}" if len(reward) else ""
        return Finding(
            rule="EntropyCollapse",
            severity=Severity.WARNING,
            sentence=(
                f"Entropy fell from {start.mean:.3g} nats ({steps_of(start)}) to {now.mean:.3g} ({steps_of(now)}), below "
                f"{percent(self.share)} of its start since step {since},{at_reward}."
            ),
            action=(
                "Resume from a checkpoint before that with a lower learning rate, a wider upper clip or an entropy "
                "bonus; check that the "
                "sampling temperature is 1."
            ),
            first_step=since,
            last_step=now.span[1],
            numbers={"entropy/start": start.mean, "entropy/mean": now.mean} | _reward(recent),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EntropyExplosion:
    """Entropy has risen far above its start: the policy dissolves into noise.

    Attributes:
        factor: above the entropy at the start.
        least: smallest rise in nats that matters.
    """

    factor: float = 2.0
    least: float = 0.2

    def __call__(self, history: History) -> Finding | None:
        entropy = history["entropy/mean"]
        start, now = at_start(entropy), lately(entropy)
        if not len(now) or now.mean < max(self.factor * start.mean, start.mean + self.least):
            return None
        return Finding(
            rule="EntropyExplosion",
            severity=Severity.WARNING,
            sentence=f"Entropy rose from {start.mean:.3g} nats ({steps_of(start)}) to {now.mean:.3g} ({steps_of(now)}).",
            action="Lower the learning rate or remove the entropy bonus, and clip or mask tokens whose probability is tiny.",
            first_step=start.span[0],
            last_step=now.span[1],
            numbers={"entropy/start": start.mean, "entropy/mean": now.mean},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthTruncation:
    """Many answers are cut off at the length limit.

    Attributes:
        most: largest healthy share lately.
    """

    most: float = 0.1

    def __call__(self, history: History) -> Finding | None:
        now, length = lately(history["length/truncated"]), lately(history["length/mean"])
        if not len(now) or now.mean <= self.most:
            return None
        mean = f" (mean length {length.mean:.0f} tokens)" if len(length) else ""
        return Finding(
            rule="LengthTruncation",
            severity=Severity.WARNING,
            sentence=f"In {steps_of(now)} {percent(now.mean)} of the answers were cut off at the length limit{mean}.",
            action=(
                "Raise max_new_tokens (--max-new-tokens), or, if answers ramble, make truncation cost reward (Overlong) or take "
                "cut answers out of the loss: --stages.N.objective.credit.first.kind DropTruncated (TRL's "
                "mask_truncated_completions); N is the number of the stage."
            ),
            first_step=now.span[0],
            last_step=now.span[1],
            numbers={"length/truncated": now.mean},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatFailure:
    """The verifier cannot read many answers.

    Attributes:
        least: smallest healthy share of readable answers lately.
    """

    least: float = 0.8

    def __call__(self, history: History) -> Finding | None:
        now = lately(history["format/rate"])
        if not len(now) or now.mean >= self.least:
            return None
        return Finding(
            rule="FormatFailure",
            severity=Severity.WARNING,
            sentence=f"In {steps_of(now)} only {percent(now.mean)} of the answers had the form that the verifier reads.",
            action=(
                "Read the sampled rollouts: teach the form in a warm-up, give it a small reward of its own, or relax the parser."
            ),
            first_step=now.span[0],
            last_step=now.span[1],
            numbers={"format/rate": now.mean},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StalledSteps:
    """Steps that moved nothing; and the opposite: a loss near 0 that is no reason to worry.

    Attributes:
        most: largest healthy share of steps without gradient.
        zero: gradient norm below which nothing moves.
    """

    most: float = 0.2
    zero: float = 1e-10

    def __call__(self, history: History) -> Finding | None:
        grad, loss, reward = history["grad/norm"], lately(history["loss/total"]), history["reward/mean"]
        if not len(reward):
            return None
        moved = set(grad.steps[grad.values > self.zero].tolist())
        idle = [s for s in reward.steps.tolist() if s not in moved]
        share = len(idle) / len(reward)
        now = lately(grad)
        if share > self.most:
            return Finding(
                rule="StalledSteps",
                severity=Severity.WARNING,
                sentence=(
                    f"{len(idle)} of the {len(reward)} steps in {steps_of(reward)} changed no weight: their gradient "
                    "was zero or there was no batch."
                ),
                action=(
                    "Look at the signal fraction and at what filters removed: nothing was left to learn from. If it was so from "
                    "the start, change the tasks or the reward; if it came after a fall of the reward, the learning rate (--lr)."
                ),
                first_step=idle[0],
                last_step=idle[-1],
                numbers={"stalled/share": share},
            )
        if len(loss) and len(now) and float(np.abs(loss.values).max()) < 1e-3 and now.mean > 1e-3:
            return Finding(
                rule="StalledSteps",
                severity=Severity.NOTE,
                sentence=(
                    f"The loss reads about 0 in {steps_of(loss)} (largest {np.abs(loss.values).max():.1e}), yet the "
                    f"gradient norm is {now.mean:.2g}."
                ),
                action=(
                    "That is normal: on fresh samples advantages cancel in the value of the loss but not in its "
                    "gradient. Judge by reward and accuracy."
                ),
                first_step=loss.span[0],
                last_step=loss.span[1],
                numbers={"loss/total": loss.mean, "grad/norm": now.mean},
            )
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotFinite:
    """A metric became NaN or infinite."""

    def __call__(self, history: History) -> Finding | None:
        bad = {n: s.steps[~np.isfinite(s.values)] for n, s in history.series.items()}
        first = {n: int(steps[0]) for n, steps in sorted(bad.items()) if len(steps)}
        if not first:
            return None
        start = min(first.values())
        named = ", ".join(f"{n} (step {s})" for n, s in list(first.items())[:4])
        return Finding(
            rule="NotFinite",
            severity=Severity.ALARM,
            sentence=f"NaN or infinity first appeared at step {start}: {named}{' and others' if len(first) > 4 else ''}.",
            action=(
                "Resume from a checkpoint before that with a lower learning rate or in fp32; the rollouts of that step "
                "show what caused it."
            ),
            first_step=start,
            last_step=max(int(steps[-1]) for steps in bad.values() if len(steps)),
            numbers={n: float(s) for n, s in first.items()},
        )
