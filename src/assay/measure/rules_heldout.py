"""The doctor's rules on what is held out: reward against held-out accuracy, regressions, and a curriculum that does not move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from assay.measure.findings import Finding, Severity, at_start, lately, percent, steps_of
from assay.measure.history import History, Series

__all__ = ["CurriculumStuck", "HeldOutDropped", "Overfitting", "SuspectVerifier"]


def held_out(history: History) -> tuple[str, Series]:
    """The held-out accuracy to judge by, with its name: sampled, else greedy; reward is sampled too."""
    for name in ("eval/sampled/all", "eval/greedy/all"):
        series = history[name].finite()
        if len(series) >= 2:
            return name, series
    return "eval/sampled/all", history["eval/sampled/all"].finite()


def accuracy_name(history: History) -> str:
    """What the evaluations measure: a run without held-out tasks evaluates on those that it trains on."""
    return "held-out accuracy" if history.held_out else "accuracy on training tasks"


def noise(items: int, p: float, deviations: float = 2.0) -> float:
    """Difference of two accuracies near ``p`` that chance alone would rarely exceed; 0 when the number of items is unknown."""
    return deviations * sqrt(2 * p * (1 - p) / items) if items else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """Two evaluations of one mode on the same items: ``items`` of them, of which ``part`` says that there are others too."""

    step: int
    before: float
    after: float
    items: int
    part: bool = False

    @property
    def where(self) -> str:
        """Which items, where not all of both evaluations count."""
        return f" on the {self.items} items that both evaluations have" if self.part else ""


def change(history: History, name: str, index: int) -> _Change | None:
    """From the evaluation at ``index`` to the last, on the items that both have; None where no item is in both.

    An evaluation during a run is often of a part of the items of the last: the two accuracies themselves would compare items.
    """
    s, known = history[name].finite(), history.item_scores.get(name, {})
    step, last = int(s.steps[index]), int(s.steps[-1])
    if step not in known or last not in known:
        return _Change(step=step, before=float(s.values[index]), after=float(s.values[-1]), items=history.eval_items)
    first, second = known[step], known[last]
    shared = sorted(first.keys() & second.keys())
    if not shared:
        return None
    before, after = (float(np.mean([scores[i] for i in shared])) for scores in (first, second))
    return _Change(step=step, before=before, after=after, items=len(shared), part=len(shared) < max(len(first), len(second)))


def drawn_level(history: History) -> Series:
    """Mean level that the curriculum draws, from its ``curriculum/share/ARM/level_L``; only steps that have every share."""
    shares = {n: history[n].finite() for n in history.names("curriculum/share/") if "level_" in n}
    recorded = [{int(x) for x in s.steps} for s in shares.values()]
    common = sorted(recorded[0].intersection(*recorded)) if recorded else []
    table = [s.values[np.isin(s.steps, common)] for s in shares.values()]
    levels = [float(n.rpartition("level_")[2]) for n in shares]
    if not common:
        return Series(np.zeros(0, np.int64), np.zeros(0))
    weights = np.stack(table)  # [cells, steps]
    return Series(np.array(common, np.int64), np.asarray(levels) @ weights / np.maximum(weights.sum(axis=0), 1e-12))


def expected_reward(history: History, name: str, window: Series) -> float | None:
    """Held-out accuracy at the levels that the curriculum draws in a window, ``sum_L share_L * accuracy_L``, by the evaluation
    that is the last one up to its end; None where a level's share or accuracy is not known.
    """
    total = 0.0
    cells = history.names("curriculum/share/")
    for cell in cells:
        arm, _, level = cell.removeprefix("curriculum/share/").rpartition("/")
        mode = name.removesuffix("/all")
        share = history[cell].finite()
        of_arm, of_all = (history[f"{mode}/{place}{level}"].finite() for place in (f"{arm}/", ""))
        scores = of_arm if len(of_arm) else of_all
        drawn = share.values[np.isin(share.steps, window.steps)]
        if not len(scores) or not len(drawn):
            return None
        at = max(int((scores.steps <= window.span[1]).sum()) - 1, 0)
        total += float(drawn.mean()) * float(scores.values[at])
    return total if cells else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspectVerifier:
    """Reward rose, held-out accuracy did not: the policy may have learned to please the verifier.

    A reward that is no higher than the last held-out accuracy at the levels that the curriculum draws now is explained by it: the
    levels that are practised change while those of the evaluation do not, and the first steps may have drawn unlucky tasks.

    Attributes:
        gain: rise in mean reward that should show elsewhere, and by how much it must exceed what the levels explain.
        flat: largest held-out gain that counts as none.
        scale: largest distance, at the start, of the reward from the accuracy at the levels drawn for the two to be of one scale.
    """

    gain: float = 0.1
    flat: float = 0.02
    scale: float = 0.3

    def __call__(self, history: History) -> Finding | None:
        reward = history["reward/mean"]
        start, now = at_start(reward), lately(reward)
        name, accuracy = held_out(history)
        if not len(now) or len(accuracy) < 2 or now.mean - start.mean < self.gain:
            return None
        found = change(history, name, 0)
        if found is None or found.after - found.before > self.flat or found.before >= 0.95:
            return None
        if Overfitting()(history):  # which explains it
            return None
        before, after = found.before, found.after
        first, last = (expected_reward(history, name, window) for window in (start, now))
        if first is not None and last is not None and abs(start.mean - first) <= self.scale:
            variance = after * (1 - after) / found.items if found.items else 0.0
            chance = 2 * sqrt(float(now.values.var()) / len(now) + variance)
            if now.mean - last <= max(self.gain, chance):
                return None
        return Finding(
            rule="SuspectVerifier",
            severity=Severity.ALARM,
            sentence=(
                f"Reward rose from {start.mean:.2f} ({steps_of(start)}) to {now.mean:.2f} ({steps_of(now)}), but "
                f"{accuracy_name(history)} went from "
                f"{percent(before)} (step {accuracy.span[0]}) to {percent(after)} (step {accuracy.span[1]}){found.where}."
            ),
            action=(
                "Suspect the verifier: read the late rollouts with high reward, run `assay tasks check`, and "
                "compare training with held-out tasks."
                + ("" if last is not None else " A curriculum that moved to easier levels explains it too.")
            ),
            first_step=start.span[0],
            last_step=now.span[1],
            numbers={"reward/start": start.mean, "reward/mean": now.mean, f"{name}/first": before, name: after},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Overfitting:
    """Few training rows, drawn again and again, are answered better and better; held-out ones are not.

    The rise on the rows must exceed that on held-out items by ``gap`` and two standard errors of both, and the held-out rise must
    be within two of its own: rows that are only easier than the held-out ones are no finding. Four items, two of them right, are
    added to each accuracy (Agresti and Coull), so that 0 of 40 has an error too.

    Attributes:
        times: how often each row must have been drawn, on average.
        gap: by how much the rise on the rows must exceed the held-out one.
    """

    times: float = 3.0
    gap: float = 0.05

    def __call__(self, history: History) -> Finding | None:
        rows, (name, accuracy) = history.practised, held_out(history)
        if rows is None or rows.times < self.times or not history.held_out or len(accuracy) < 2:
            return None
        found = change(history, name, 0)
        if found is None or not found.items:
            return None
        shrunk = [(p * found.items + 2) / (found.items + 4) for p in (found.before, found.after)]
        error = sqrt(sum(p * (1 - p) / (found.items + 4) for p in shrunk))
        rise, gain = rows.after - rows.before, found.after - found.before
        if rise - gain - 2 * sqrt(rows.error**2 + error**2) < self.gap or gain > 2 * error:
            return None
        return Finding(
            rule="Overfitting",
            severity=Severity.ALARM,
            sentence=(
                f"The run memorises its {rows.rows} training rows: drawn {rows.times:.0f} times each, their success went from "
                f"{percent(rows.before)} to {percent(rows.after)}, while held-out accuracy went from {percent(found.before)} "
                f"(step {found.step}) to {percent(found.after)} (step {accuracy.span[1]}){found.where}."
            ),
            action=(
                "Use more rows, or fewer steps: --keep-best keeps the model of the best evaluation. Imitation of the same rows "
                "beforehand memorises too; make that stage shorter."
            ),
            first_step=found.step,
            last_step=accuracy.span[1],
            numbers={
                "rows": rows.rows,
                "rows/drawn": rows.times,
                "rows/before": rows.before,
                "rows/after": rows.after,
                name: found.after,
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutDropped:
    """Held-out accuracy has fallen by more than chance, on the items that both evaluations have: of all arms, or else of one.

    An arm may fall while the whole rises, as when stages practise one after the other (AceReason's alarm, arXiv 2505.16400).
    Of ``n`` arms one falls by chance about ``sqrt(2 ln n)`` standard deviations, so that their bound is so much farther.

    Attributes:
        drop: smallest fall that matters.
    """

    drop: float = 0.05

    def __call__(self, history: History) -> Finding | None:
        whole = ("eval/greedy/all", "eval/sampled/all")
        arms = [name for name in history.item_scores if name.count("/") > 2]
        further = sqrt(2 * log(max(1, len({_arm_of(name) for name in arms}))))
        falls = self._falls(history, whole, 2.0) or self._falls(history, arms, 2.0 + further)
        if not falls:
            return None
        name, worst = max(falls, key=lambda x: x[1].before - x[1].after)
        last, mode = history[name].finite().span[1], name.split("/")[1]
        if name not in whole:
            return self._of_arm(name, worst, last, mode)
        return Finding(
            rule="HeldOutDropped",
            severity=Severity.ALARM,
            sentence=(
                f"{accuracy_name(history).capitalize()} ({mode}) fell from {percent(worst.before)} at step {worst.step} to "
                f"{percent(worst.after)} at step {last}{worst.where}."
            ),
            action=_trial(last - worst.step)
            + (
                f"Use the model of step {worst.step}: a run with --keep-best has it as RUN/best (assay export RUN/best); "
                "without, the same command with --keep-best comes to the same step. Then lower the learning rate (--lr), or add "
                "a penalty on the divergence from the base (--kl)."
            ),
            first_step=worst.step,
            last_step=last,
            numbers={f"{name}/best": worst.before, name: worst.after},
        )

    def _falls(self, history: History, names: Sequence[str], deviations: float) -> list[tuple[str, _Change]]:
        """Evaluations from which the accuracies of these names fell by more than chance."""
        return [
            (name, found)
            for name in names
            for index in range(len(history[name].finite()) - 1)
            if (found := change(history, name, index))
            and found.before - found.after > max(self.drop, noise(found.items, found.before, deviations))
        ]

    def _of_arm(self, name: str, worst: _Change, last: int, mode: str) -> Finding:
        arm = _arm_of(name)
        return Finding(
            rule="HeldOutDropped",
            severity=Severity.ALARM,
            sentence=(
                f"Held-out accuracy of {arm} ({mode}) fell from {percent(worst.before)} at step {worst.step} to "
                f"{percent(worst.after)} at step {last}{worst.where}, although the whole did not."
            ),
            action=(
                f"Practise {arm} beside the other arms or in a stage behind them (--stages.N.levels), or weigh it with "
                "--stages.N.curriculum.kind Balanced."
            ),
            first_step=worst.step,
            last_step=last,
            numbers={f"{name}/best": worst.before, name: worst.after},
        )


def _arm_of(name: str) -> str:
    """The arm of ``eval/MODE/ARM/all``."""
    return name.split("/", 2)[2].removesuffix("/all")


_TRIAL = 5
"""Steps in which a fall says little of what was changed."""


def _trial(steps: int) -> str:
    """What to bear in mind of a run of a few steps, as one that tries whether a new part works at all."""
    if steps > _TRIAL:
        return ""
    many = "1 step" if steps == 1 else f"{steps} steps"
    return (
        f"These are {many}: a trial. The first updates of an adaptive optimiser are its largest, so compare with the same "
        "command without what you try, or train longer, before you blame it. "
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CurriculumStuck:
    """The curriculum keeps drawing the same levels although these are solved, or although nothing is ever solved.

    Attributes:
        moved: smallest change of the mean level over the second half of the run that counts as moving.
        solved, hopeless: mean reward from which on, and up to which, standing still is a mistake.
    """

    moved: float = 0.1
    solved: float = 0.95
    hopeless: float = 0.02

    def __call__(self, history: History) -> Finding | None:
        level, reward = drawn_level(history), lately(history["reward/mean"])
        levels = {name.rpartition("level_")[2] for name in history.names("curriculum/share/") if "level_" in name}
        if len(level) < 10 or not len(reward) or len(levels) < 2:  # one level alone leaves nothing to choose
            return None
        half = level.last(len(level) // 2)
        width = half.window()
        change = abs(half.last(width).mean - half.first(width).mean)
        if change >= self.moved or self.hopeless < reward.mean < self.solved:
            return None
        solved = reward.mean >= self.solved
        return Finding(
            rule="CurriculumStuck",
            severity=Severity.NOTE if solved else Severity.WARNING,
            sentence=(
                f"In {steps_of(half)} the curriculum stayed at a mean level of {half.mean:.1f} although the mean "
                f"reward there is {reward.mean:.2f}."
            ),
            action="Offer harder levels: these are solved." if solved else "Offer easier levels, or raise their floor.",
            first_step=half.span[0],
            last_step=half.span[1],
            numbers={"curriculum/level": half.mean, "curriculum/change": change, "reward/mean": reward.mean},
        )
