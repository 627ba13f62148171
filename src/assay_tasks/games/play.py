"""What games share: a match, its environment, the oracle's play, and the verifier that plays a rollout again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from assay.core.canon import FrozenMap
from assay.core.errors import DataError
from assay.core.protocols import Environment, Obs, Step, Verifier
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.task import Message, Task, TaskView
from assay.tasks.draws import slip
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.tasks.turns import actions_of
from assay.verify.answer_verifier import answer_in
from assay_tasks.phases import SingleUse

__all__ = ["MOST_TURNS", "Game", "Match", "Playing", "Replay"]

MOST_TURNS = 60
"""No match is longer."""

_LONG = 200
"""An action is never longer; the rest of it is not read."""

_REQUESTS = {
    Form.TAG: "In each of your turns put one {move}, and nothing else, between <answer> and </answer>.",
    Form.BOX: "In each of your turns put one {move}, and nothing else, in \\boxed{{}}.",
    Form.MARK: "End each of your turns with one {move}, and nothing else, behind 'Answer:'.",
    Form.PLAIN: "Reply in each of your turns with one {move} alone.",
}


class Match(ABC):
    """One play of a game: what it answers to actions, and how it stands. It belongs to one rollout and changes with each action.

    A subclass says how it answers (`answer`), calls `win` or `lose` when it is decided, and knows what an oracle would do next
    (`advise`). Every action costs a turn, understood or not.

    Attributes:
        turns: the match is over after so many actions.
        taken: actions so far.
        over, won: how it stands.
        progress: share of the goal that is reached, 0 to 1; a match won has 1.
        effort: steps that the oracle took so far to find its actions.
    """

    def __init__(self, turns: int) -> None:
        self.turns, self.taken, self.effort = turns, 0, 0
        self.over = self.won = False
        self.progress = 0.0

    def opening(self) -> str:
        """What is shown before the first action; nothing where it is empty."""
        return ""

    def act(self, text: str) -> str:
        """What is shown after a turn of the policy.

        The action is what the text gives as its answer (in a tag, a box, behind ``Answer:``, or all of it), in small letters
        and with single spaces.
        """
        words = (answer_in(text) or "")[:_LONG].casefold().split()
        said = self.answer(" ".join(words).rstrip("."))
        self.taken += 1
        if self.taken >= self.turns:
            self.over = True
        return said

    @abstractmethod
    def answer(self, action: str) -> str:
        """What is shown after an action; never raises."""
        ...

    @abstractmethod
    def advise(self) -> str:
        """The oracle's next action; asked only while the match is not over."""
        ...

    def win(self) -> None:
        """Ends the match."""
        self.over = self.won = True
        self.progress = 1.0

    def lose(self) -> None:
        """Ends the match."""
        self.over = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Game(Problem, ABC):
    """Base of games: one arm of several turns against a `Match`.

    The match is a function of the facts, which the policy does not see (`Problem.hidden`). The oracle's ``answer`` is its
    actions, one to a line.
    """

    domain: str = "games"
    hidden: ClassVar[bool] = True
    move: ClassVar[str] = "move"
    """What a turn holds, in a word or two."""

    @abstractmethod
    def match(self, facts: Facts) -> Match:
        """A fresh match."""
        ...

    def play_oracle(self, facts: Facts) -> tuple[Match, list[str]]:
        """The oracle's match to its end, and its actions."""
        match, actions = self.match(facts), list[str]()
        while not match.over:
            actions.append(match.advise())
            match.act(actions[-1])
        return match, actions

    def solve(self, facts: Facts) -> Solution:
        """What the oracle does, turn by turn."""
        match, actions = self.play_oracle(facts)
        return Solution(answer="\n".join(actions), effort=match.effort)

    def prompt(self, facts: Facts, variant: int, form: Form) -> str:
        """The rules, and how a turn is to be given."""
        return f"{self.word(facts, variant)}\n{_REQUESTS[form].format(move=self.move)}"

    def format_solution(self, solution: Solution, form: Form) -> str:
        """The oracle's turns, one to a line."""
        return "\n".join(map(form.format_answer, solution.answer.split("\n")))

    def verifier(self, form: Form) -> Verifier:
        """Whether the rollout's actions win."""
        return Replay(self)

    def environment(self, world: TaskView) -> Environment:
        """A match for one rollout."""
        return Playing(world.id, self.match(self.facts(world)))

    def trace(self, facts: Facts, text: str, noise: float, rng: np.random.Generator) -> tuple[Message, ...]:
        """The oracle's turns and what it is shown.

        Each action holds a slip (`assay.tasks.slip`) with probability ``noise``; the match answers what was really said, and the
        oracle goes on from there.
        """
        match, said = self.match(facts), text.split("\n")[0]
        symbols = "".join(sorted(set(text)))
        shown = match.opening()
        turns = [Message("user", shown)] if shown else []
        form: Form | None = None
        while not match.over:
            action = match.advise()
            form = form or next(f for f in Form if f.format_answer(action) == said)
            turns.append(Message("assistant", form.format_answer(slip(action, noise, symbols, rng))))
            shown = match.act(turns[-1].content)
            if not match.over:
                turns.append(Message("user", shown))
        return tuple(turns)


class Playing(SingleUse):
    """The environment of a match; its snapshot is the actions that were made, of which the match is a function.

    Raises:
        DataError: started twice, stepped before the start or after the end.
    """

    def __init__(self, task: str, match: Match) -> None:
        super().__init__(task)
        self._match, self._actions = match, list[str]()

    async def start(self) -> Obs:
        """What the match shows first."""
        self._enter("new", "start")
        self._phase = "open"
        shown = self._match.opening()
        return Obs((Message("user", shown),) if shown else ())

    async def snapshot(self) -> dict[str, list[str]]:
        """The actions so far."""
        return {"actions": list(self._actions)}

    async def restore(self, snapshot: Any) -> Obs:
        """The match behind a snapshot's actions, with all that was said and shown.

        Raises:
            DataError: the match is over there, or the snapshot is of another kind.
        """
        shown = list((await self.start()).messages)
        for action in played_before(snapshot):
            step = await self.step(action)
            shown += [Message("assistant", action), *step.obs.messages]
        if self._match.over:
            raise DataError(
                f"environment of task {self._task!r}: the match is over behind the snapshot's {len(self._actions)} actions"
            )
        return Obs(tuple(shown))

    async def step(self, action: str) -> Step:
        """What the match answers; nothing more when it is over."""
        self._enter("open", "step")
        self._actions.append(action)
        shown = self._match.act(action)
        if self._match.over:
            self._phase = "over"
            return Step(done=True)
        return Step(obs=Obs((Message("user", shown),)))


def played_before(snapshot: Any) -> list[str]:
    """The actions of a match's snapshot; none without one.

    Raises:
        DataError: it is something else.
    """
    if snapshot is None:
        return []
    try:
        return [str(action) for action in snapshot["actions"]]
    except (TypeError, KeyError) as failure:
        raise DataError(f"{snapshot!r} is no snapshot of a match, which is {{'actions': [...]}}") from failure


@dataclass(frozen=True, slots=True)
class Replay:
    """``correct`` is 1 when the rollout's actions, played again in a fresh match, win; ``progress`` is how far they come.

    A rollout that began at a snapshot goes on from its actions. The state that they lead to decides and no word that was said,
    so nothing is believed of what the environment reported. A call that was cut off is no action, and what stands behind the end
    of a match counts nothing.

    Attributes:
        game: gives the match of a task.

    Raises:
        DataError: a task that has no facts of a game in its world.
    """

    trusted: ClassVar[bool] = True

    game: Game

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("correct", "progress")

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """Play one rollout again."""
        if "facts" not in task.world:
            raise DataError(f"task {task.id!r} has no 'facts' in its world to play again; it has {sorted(task.world)}")
        match = self.game.match(self.game.facts(task))
        for action in (*played_before(rollout.context.snapshot), *actions_of(rollout)):
            if match.over:
                break
            match.act(action)
        verdict = "won" if match.won else "lost" if match.over else "unfinished"
        return Score(
            components={"correct": float(match.won), "progress": match.progress},
            info=FrozenMap({"verdict": verdict, "turns": match.taken}),
        )
