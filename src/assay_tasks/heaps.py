"""Nim: the smallest family that two roles play against each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from assay.core.canon import FrozenMap
from assay.core.protocols import Environment, Obs, Step, Verifier
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.task import Message, Task, TaskView
from assay.tasks.draws import checked_levels, slip
from assay.tasks.single import SingleTurn
from assay.tasks.turns import moves_of
from assay_tasks.nim import HEAPS, Stones, answer_move, apply_move, best, heaps_of, show_heaps
from assay_tasks.phases import SingleUse

__all__ = ["ROLES", "Heaps", "HeapsVerdict"]

ROLES = ("first", "second")


@dataclass(frozen=True, slots=True, kw_only=True)
class Heaps(SingleTurn):
    """Take stones from heaps in turn; whoever takes the last one wins. The level is the number of heaps.

    The prompt ``H352>`` has heaps ``a``, ``b`` and ``c``; the move ``b2`` leaves ``=332>``. A move that is none loses. Training
    tasks are played by two roles, ``first`` and ``second``, each a rollout of its own; held-out tasks by the policy alone,
    against an opponent that never errs. Whoever moves first can win.

    >>> Heaps().solve("H352>")
    'b4'
    """

    levels: tuple[int, ...] = (2, 3, 4)

    def __post_init__(self) -> None:
        SingleTurn.__post_init__(self)
        checked_levels("Heaps", self.levels, 1, len(HEAPS))

    @property
    def name(self) -> str:
        """``heaps``."""
        return "heaps"

    @property
    def domain(self) -> str:
        """``games``."""
        return "games"

    @property
    def symbols(self) -> str:
        """Stones and digits."""
        return HEAPS + "01234567"

    @property
    def alphabet(self) -> str:
        """The symbols, ``H``, ``=`` and ``>``."""
        return self.symbols + "H=>"

    def ask(self, level: int, rng: np.random.Generator) -> str:
        """Stones of up to 7 stones that the first to move can win."""
        while True:
            heaps = tuple(map(int, rng.integers(1, 8, level)))
            if np.bitwise_xor.reduce(heaps):
                return show_heaps(heaps, "H")

    def solve(self, prompt: str) -> str:
        """A move that wins."""
        return best(tuple(map(int, prompt[1:-1])))

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        """The same with what is on the table before each later move of the oracle's own play, for `assay.guide.StartStates`."""
        made = SingleTurn.task(self, arm, level, split, index)
        states = _states(heaps_of(made), split) if split == "train" else ()
        return replace(made, private=FrozenMap({**made.private, "states": states}))

    def verifier(self) -> Verifier:
        """Who won, by the moves played again."""
        return HeapsVerdict()

    def environment(self, world: TaskView) -> Environment:
        """A table for two, or for one and an opponent that never errs."""
        return _Table(world)

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...]:
        """The oracle's moves, of both roles where there are two; a slip at probability ``noise`` is a move that may lose."""
        heaps: Stones | None = heaps_of(task)
        turns: list[Message] = []
        while heaps and any(heaps):
            turns += [Message("tool", show_heaps(heaps, "="))] if turns else []
            turns.append(Message("assistant", slip(best(heaps), noise, self.symbols, rng)))
            heaps = answer_move(heaps, turns[-1].content, task.split)
        return tuple(turns)


def _states(heaps: Stones, split: str) -> tuple[FrozenMap, ...]:
    """Snapshots of the oracle's own play behind its first move."""
    found: list[FrozenMap] = []
    left: Stones | None = answer_move(heaps, best(heaps), split)
    while left and any(left):
        found.append(FrozenMap({"heaps": left, "turn": len(found) + 1}))
        left = answer_move(left, best(left), split)
    return tuple(found)


class _Table(SingleUse):
    """One match. Its snapshot is what is on the table, and whose turn it is."""

    def __init__(self, world: TaskView) -> None:
        super().__init__(world.id)
        self._heaps, self._split, self._turn = heaps_of(world), world.split, 0

    async def start(self) -> Obs:
        """Nothing beyond the prompt."""
        await super().start()
        return self._obs(())

    async def snapshot(self) -> Any:
        """The heaps and the number of moves that were made."""
        return {"heaps": list(self._heaps), "turn": self._turn}

    async def restore(self, snapshot: Any) -> Obs:
        """Goes on there."""
        await super().start()
        self._heaps, self._turn = tuple(snapshot["heaps"]), int(snapshot["turn"])
        return self._obs((Message("tool", show_heaps(self._heaps, "=")),))

    async def step(self, action: str) -> Step:
        """Makes a move, and where the policy plays alone the opponent's too."""
        self._enter("open", "step")
        heaps = answer_move(self._heaps, action, self._split)
        if not heaps or not any(heaps):
            self._phase = "over"
            return Step(done=True)
        self._heaps, self._turn = heaps, self._turn + 1
        return Step(obs=self._obs((Message("tool", show_heaps(self._heaps, "=")),)))

    def _obs(self, messages: tuple[Message, ...]) -> Obs:
        return Obs(messages, actor=ROLES[self._turn % 2] if self._split == "train" else "")


@dataclass(frozen=True, slots=True)
class HeapsVerdict:
    """``correct`` is 1 for the role that took the last stone or whose opponent's move was none, by all moves played again.

    ``legal`` is 0 for a role that lost by a move that is none. What is not finished is won by nobody. A rollout without a role
    is that of whoever moves first.
    """

    trusted: ClassVar[bool] = True

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("correct", "legal")

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """Plays one rollout again."""
        start: dict[str, Any] = rollout.context.snapshot or {"heaps": heaps_of(task), "turn": 0}
        heaps: Stones = tuple(int(h) for h in start["heaps"])
        turn, two = int(start["turn"]), task.split == "train"
        own = ROLES.index(rollout.role) if rollout.role else turn % 2 * two
        winner, legal = None, True
        for _, move in moves_of(rollout):
            mover, left = turn % 2 * two, apply_move(heaps, move)
            if left is None:
                winner, legal = 1 - mover, mover != own
                break
            heaps = left if two else answer_move(heaps, move, task.split) or left
            if not any(heaps):
                winner = mover if not any(left) else 1 - mover
                break
            turn += 1
        verdict = "unfinished" if winner is None else "won" if winner == own else "lost"
        return Score(
            components={"correct": float(winner == own), "legal": float(legal)},
            info=FrozenMap({"verdict": verdict, "left": list(heaps)}),
        )
