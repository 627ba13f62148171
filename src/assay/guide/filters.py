"""Which graded rollouts are learned from, and drawing again until there are enough."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from assay.core.errors import ConfigError
from assay.core.fields import later
from assay.core.group import Group
from assay.core.rollout import ASIDE
from assay.core.score import Score
from assay.core.seeds import generator
from assay.core.task import Task

__all__ = ["Admitted", "Mixed", "Refill", "ResampleOnCorrect", "SkipSolved", "SuccessWindow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixed:
    """Keeps groups whose valid rollouts differ in their main component, whole: DAPO's rule. A group of one rollout passes.

    The spread is taken of the main component (accuracy), not of the shaped reward. Denominators count what is kept. With a
    `Refill` this is DAPO's dynamic sampling (arXiv 2503.14476).
    """

    def select(self, group: Group) -> Group | None:
        """The group, or None where all rollouts are alike or none is valid."""
        return group if group.informative or len(group.values) == 1 == len(group.rollouts) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessWindow:
    """Keeps groups whose success lies between two bounds: online difficulty filtering.

    The KL divergence that a group can still teach is at least ``p (1 - p) / (2 beta^2)`` for success ``p``, so a window around
    1/2 is best. Source: arXiv 2504.03380. UNSURE: its defaults.

    Attributes:
        low, high: bounds of success, both kept, 0 <= low < high <= 1.

    Raises:
        ConfigError: bounds out of range or order.
    """

    low: float = 0.25
    high: float = 0.75

    def __post_init__(self) -> None:
        if not 0.0 <= self.low < self.high <= 1.0:
            raise ConfigError(f"SuccessWindow({self.low}, {self.high}); use 0 <= low < high <= 1")

    def select(self, group: Group) -> Group | None:
        """The group, or None outside the window."""
        return group if group.success is not None and self.low <= group.success <= self.high else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """Keeps groups that their scorer admitted: of which some rollout's column is above 0, or has none.

    A scorer with a memory, such as `assay.scorers.ReferenceProbability` with its filter by spread (RLPR), decides and writes the
    column; a filter is pure.

    Attributes:
        column: of the scores (`assay.core.Score.columns`).
    """

    column: str = "admitted"

    def select(self, group: Group) -> Group | None:
        """The group, or None where it was not admitted."""
        return group if any(score.columns.get(self.column, 1.0) > 0.0 for score in group.scores) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SkipSolved:
    """SELF: leaves out drawn tasks that the policy's greedy answer solves, before any rollout is sampled of them.

    So it practises problems to which right answers are unlikely, and does not narrow where it is right anyway. An answer without
    a verdict solves nothing. A step whose tasks are all solved learns nothing.

    Source: The Reasoning Boundary Paradox (arXiv 2510.02230), its code. Its paper also has a forward divergence from the base,
    ``-w sum log p(y)`` over stored answers ``y`` of the base but for a constant: ``Collect(keep="all")`` stores them in a run of
    the base, and a ``RowSource`` of the file with ``grpo() + Nll(streams=("expert",), coef=w)`` learns from them. UNSURE: ``w``.

    Attributes:
        solved: main component from which an answer counts as right.

    Raises:
        ConfigError: a value that is not in (0, 1].
    """

    solved: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 < self.solved <= 1.0:
            raise ConfigError(f"SkipSolved.solved={self.solved}; use a value in (0, 1]")

    def keep_task(self, task: Task, score: Score) -> bool:
        """Whether the greedy answer is wrong."""
        return not score.valid or score.primary < self.solved


@dataclass(frozen=True, slots=True, kw_only=True)
class ResampleOnCorrect:
    """GRPO-RoC: of more rollouts than are learned from, keeps right ones with the least faults on their way, and any wrong ones.

    Of ``N`` valid rollouts, ``Z`` wrong and ``C`` right, it keeps ``round(Z keep / N)`` wrong ones, without preference, and right
    ones for the rest, lowest penalty first; at least ``least`` of each as far as there are so many. Groups with fewer valid
    rollouts than ``keep`` are left out, those whose rollouts are all alike too. Set ``group_size`` to about twice ``keep``.

    The penalty is ``p_err + p_format``: ``p_err`` the share of tool results that were errors, 1/2 where no tool was called; with
    ``tags``, ``p_format = min((answers - 1) / turns, 1)``, and 1 where no answer stands in tags or one is not closed.

    Source: rStar2-Agent (arXiv 2508.20722). Its authors' code keeps the first wrong rollouts; here they are drawn, as its paper
    intends.

    Attributes:
        keep: rollouts learned from per group, at least 2.
        least: of right and of wrong ones each.
        tags: what opens and what closes an answer, as ``("<answer>", "</answer>")``; None: the form of answers is not looked at.

    Raises:
        ConfigError: a number out of range, or tags that are empty or alike.
    """

    keep: int = 4
    least: int = 1
    tags: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if self.keep < 2 or not 0 <= self.least <= self.keep // 2:
            raise ConfigError(f"ResampleOnCorrect.keep={self.keep} must be at least 2 and .least={self.least} at most half of it")
        if self.tags is not None and (not all(self.tags) or self.tags[0] == self.tags[1]):
            raise ConfigError(f"ResampleOnCorrect.tags={self.tags}; give two different texts, as ('<answer>', '</answer>')")

    def select(self, group: Group) -> Group | None:
        """The group with ``keep`` rollouts, or None."""
        valid = [i for i, score in enumerate(group.scores) if score.valid]
        if len(valid) < self.keep or not group.informative:
            return None
        right = sorted((i for i in valid if correct(group.scores[i])), key=lambda i: (self.penalty(group, i), i))
        order: list[int] = generator("filter/roc", 0, group.key).permutation(len(valid)).tolist()
        wrong = [valid[k] for k in order if not correct(group.scores[valid[k]])]
        fair = int(len(wrong) * self.keep / len(valid) + 0.5)  # halves up: both quotas rounded to even could lose one
        low = max(min(self.least, len(wrong)), self.keep - len(right))
        high = min(len(wrong), self.keep - min(self.least, len(right)))
        quota = min(max(fair, low), high)
        kept = sorted([*wrong[:quota], *right[: self.keep - quota]])
        return replace(group, rollouts=tuple(group.rollouts[i] for i in kept), scores=tuple(group.scores[i] for i in kept))

    def penalty(self, group: Group, i: int) -> float:
        """What speaks against a right rollout, from 0 to 2."""
        calls = [call for call in group.rollouts[i].calls if call.role != ASIDE]
        results = [result for call in calls for result in call.results]
        errors = sum(r.error is not None for r in results) / len(results) if results else 0.5
        return errors if self.tags is None else errors + _format_penalty([call.text for call in calls], *self.tags)


def correct(score: Score) -> bool:
    """Whether a rollout counts as right: its main component is at least 1/2."""
    return score.primary >= 0.5


def _format_penalty(turns: list[str], opening: str, closing: str) -> float:
    """Of the turns' texts, from 0 for one answer in tags to 1."""
    answers, closed = (sum(turn.count(tag) for turn in turns) for tag in (opening, closing))
    return 1.0 if not answers or answers != closed else min((answers - 1) / len(turns), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refill:
    """Draws, poses, rolls out and grades again within a step until the filter has kept the stage's number of groups.

    What is kept beyond it is cut off. Every graded group is observed, kept or not.

    With ``adapt`` it is CodeV-R1's adaptive form (arXiv 2505.24183): a round draws as many tasks as should fill what is missing,
    ``ceil(missing / p)``, where ``p`` is the share of drawn tasks that were kept so far, a moving average over the rounds of all
    steps. UNSURE: the constant of its average, and its bounds.

    Attributes:
        rounds: most rounds per step, the first among them.
        draws: tasks drawn per round; 0 for the stage's ``groups``. With ``adapt`` the most that a round draws; 0 for four times
            ``groups``.
        short: what happens where too few are kept after the last round: ``train`` on those, or ``stop`` the run.
        adapt: weight of the newest round in the share that is kept, in (0, 1]; 0 for rounds of fixed size.

    Raises:
        ConfigError: a number out of range, or another word.

    >>> Refill(adapt=0.5).tasks_to_draw(missing=128, groups=128, share=0.5), Refill().tasks_to_draw(128, 512, 0.5)
    (256, 512)
    """

    rounds: int = 10
    draws: int = 0
    short: Literal["train", "stop"] = "train"
    adapt: float = later(0.0)

    def tasks_to_draw(self, missing: int, groups: int, share: float | None) -> int:
        """How many tasks the next round draws.

        Args:
            missing: groups that the step still wants, at least 1.
            groups: that a step wants in all.
            share: of drawn tasks that were kept so far, in [0, 1]; None before the first round.
        """
        if not self.adapt:
            return self.draws or groups
        most = self.draws or 4 * groups
        return min(most, math.ceil(missing / share - 1e-9) if share else most if share == 0.0 else missing)

    def average_share(self, share: float | None, drawn: int, kept: int) -> float:
        """The share of drawn tasks that are kept, after a round that drew and kept so many; at most 1."""
        newest = min(1.0, kept / drawn)
        return newest if share is None else (1.0 - self.adapt) * share + self.adapt * newest

    def __post_init__(self) -> None:
        if not 0.0 <= self.adapt <= 1.0:
            raise ConfigError(f"Refill.adapt={self.adapt}; use a weight in (0, 1], or 0 for rounds of fixed size")
        if self.rounds < 2 or self.draws < 0:
            raise ConfigError(f"Refill.rounds={self.rounds} must be at least 2 and Refill.draws={self.draws} at least 0")
        if self.short not in ("train", "stop"):
            raise ConfigError(f"Refill.short={self.short!r}; use 'train' or 'stop'")
