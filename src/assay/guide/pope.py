"""Guided and plain rollouts side by side (POPE), and as much of a solution as a task's plain failures ask for (ADHint)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from assay.core.errors import ConfigError
from assay.core.group import Group, Outcome
from assay.core.protocols import Moment, Posed, State
from assay.core.seeds import derive, uniforms
from assay.core.task import Task
from assay.guide.guidance import Stateless, plain_context, solution_of
from assay.guide.hints import REMEMBERED, check_shares, check_text, guided_context

__all__ = ["AdHint", "Pope", "PopeGuidance"]

_GUIDED = "/guided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pope:
    """POPE: a hard task is posed plainly and, as a second group, behind the shortest part of its solution that succeeded.

    ``h = min {h in shares: max_i r_i(x + y[:h |y|]) > 0}``. That part is searched within the step: while every guided rollout
    fails, a guided group with the next share takes its place.
    What succeeded is remembered by task; one that is new begins one share below what its arm and level needed last. Plain and
    guided rollouts are one to one, each group has a baseline of its own, and no token of the solution is learned from.

    Source: POPE (arXiv 2601.18779). There the part is searched once, with the base. UNSURE: the grid of shares.

    Attributes:
        shares: of the solution's characters, ascending, in (0, 1].
        text: the last user turn, with ``{prompt}`` and ``{hint}``; empty: the answer itself begins with the part.

    Raises:
        ConfigError: shares out of range or order, or another text.

    >>> Pope(shares=(0.5,)).build(seed=0).state_dict()
    {}
    """

    shares: tuple[float, ...] = (0.125, 0.25, 0.5, 0.75)
    text: str = "{prompt}\nThe first part of a solution; build on it and finish:\n{hint}\n"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shares", tuple(self.shares))
        check_shares(self, self.shares, whole=True)
        check_text(self, self.text)

    def build(self, seed: int) -> PopeGuidance:
        """The guidance with its state."""
        return PopeGuidance(self)


class PopeGuidance:
    """The state of `Pope`: by task, and by arm and level, the number of the share that succeeded last."""

    def __init__(self, spec: Pope) -> None:
        self.spec = spec
        self._needed: dict[str, int] = {}

    def next(self, task: Task, history: Sequence[Group], moment: Moment) -> Sequence[Posed]:
        """The plain and the first guided context; after a guided group without success the next share.

        Raises:
            DataError: the task has no user turn, or neither a solution nor an answer that is text.
        """
        guided = [group for group in history if _GUIDED in group.key]
        if not guided:
            if history:
                return ()
            near = max(0, self._needed.get(_cell(task), 0) - 1)
            rung = min(self._needed.get(task.id, near), len(self.spec.shares) - 1)
            return (Posed(context=plain_context(task, moment.key)), self._pose_rung(task, moment, rung))
        last, rung = guided[-1], _rung(guided[-1]) + 1
        if rung >= len(self.spec.shares) or not last.values or max(last.values) > 0.0:
            return ()
        return (replace(self._pose_rung(task, moment, rung), replaces=(last.key,)),)

    def _pose_rung(self, task: Task, moment: Moment, rung: int) -> Posed:
        solution = solution_of(task, "a guided prompt")
        key = f"{moment.key}{_GUIDED}{rung}"
        return Posed(context=guided_context(task, key, solution, self.spec.shares[rung], self.spec.text))

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Remembers the share with which a task succeeded."""
        for group in (o.group for o in outcomes):
            if _GUIDED in group.key and any(v > 0.0 for v in group.values):
                for name in (group.task.id, _cell(group.task)):
                    self._needed.pop(name, None)  # the newest stands last
                    self._needed[name] = _rung(group)
        self._needed = dict(list(self._needed.items())[-REMEMBERED:])

    def metrics(self) -> Mapping[str, float]:
        """``guidance/share``: mean over the tasks met so far of the share that succeeded last."""
        found = [self.spec.shares[rung] for name, rung in self._needed.items() if not name.startswith("cell/")]
        return {"guidance/share": sum(found) / len(found)} if found else {}

    def state_dict(self) -> State:
        """Number of the share, by task, and by arm and level."""
        return dict(self._needed)

    def load_state_dict(self, state: State) -> None:
        """Restores `state_dict`."""
        self._needed = {str(name): min(int(rung), len(self.spec.shares) - 1) for name, rung in state.items()}


def _cell(task: Task) -> str:
    return f"cell/{task.arm}/{task.level}"


def _rung(group: Group) -> int:
    return int(group.key.rpartition(_GUIDED)[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class AdHint(Stateless):
    """ADHint: plain rollouts first, then as many behind a part of the solution, the longer the fewer of them succeeded.

    The share given is ``(most - least) (1 - mean) + least`` and noise drawn evenly from ``[-noise, noise]``, within [0, 1]. The
    two groups have baselines of their own.

    Source: ADHint (arXiv 2512.13095). UNSURE: ``least``, ``most`` and ``noise``. Its likelihood on
    the tokens of the hint with selective masks is ``Compose(learn_forced=True)`` with ``Nll(streams=("expert",),
    by="advantage")`` in the objective, its modulation by entropy ``weights=(assay.train.HintEntropy(),)`` there, and its
    difficulty posterior ``DifficultyWeights`` around the composer.

    Attributes:
        least, most: of the solution's characters.
        noise: largest deviation.
        text: the last user turn, with ``{prompt}`` and ``{hint}``; empty: the answer itself begins with the part.
        seed: chooses other noise, a pure function of seed and key.

    Raises:
        ConfigError: a value out of range, or another text.

    >>> AdHint(least=0.1, most=0.9, noise=0.0).share(1.0, "k"), AdHint(least=0.1, most=0.9, noise=0.0).share(0.5, "k")
    (0.1, 0.5)
    """

    least: float = 0.0
    most: float = 0.9
    noise: float = 0.05
    text: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0.0 <= self.least <= self.most <= 1.0 or not 0.0 <= self.noise <= 1.0:
            raise ConfigError(
                f"AdHint(least={self.least}, most={self.most}, noise={self.noise}): 0 <= least <= most <= 1, and noise in [0, 1]"
            )
        check_text(self, self.text)

    def share(self, mean: float, key: str) -> float:
        """Of the solution, behind a mean success of the plain rollouts."""
        drawn = float(uniforms(np.array([derive("guidance/adhint", self.seed, "", key)], np.uint64), 0, 1)[0, 0])
        wanted = (self.most - self.least) * (1.0 - mean) + self.least + self.noise * (2.0 * drawn - 1.0)
        return min(1.0, max(0.0, wanted))

    def next(self, task: Task, history: Sequence[Group], moment: Moment) -> Sequence[Posed]:
        """The prompt, then one guided context; nothing where no plain rollout has a verdict.

        Raises:
            DataError: the task has no user turn, or neither a solution nor an answer that is text.
        """
        if not history:
            return (Posed(context=plain_context(task, moment.key)),)
        values = [min(1.0, max(0.0, v)) for v in history[0].values]
        if len(history) > 1 or not values:
            return ()
        share = self.share(sum(values) / len(values), moment.key)
        solution = solution_of(task, "a hint")
        return (Posed(context=guided_context(task, f"{moment.key}{_GUIDED}", solution, share, self.text)),)
