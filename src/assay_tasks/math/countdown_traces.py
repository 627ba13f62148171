"""Searches for countdown written out with a chosen number of backtracks and habits, and controls without: rows to imitate."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.seeds import derive
from assay_tasks.math.countdown import MakeTarget, countdown

__all__ = ["ARMS", "SearchTraces"]

ARMS = ("search", "shuffled", "wrong", "dummy", "empty")
HABITS = ("verification", "subgoals", "backward_chaining")
_SIGNS = ("+", "-", "*")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTraces:
    """Rows of countdown questions with searches written out, for `assay.train.Imitate` before RL.

    A search tries ``backtracks`` branches that fail, each a calculation that does not give the target and ends with "go back",
    and then the solver's.

    Attributes:
        backtracks: failed branches, exactly.
        habits: further habits that a search shows once each: ``verification``, ``subgoals``, ``backward_chaining``.
        arm: ``search``; ``shuffled``: its lines in random order; ``wrong``: with a wrong answer at the end; ``dummy``: as long,
            in characters, without any habit; ``empty``: the answer alone.
        level: of countdown/target.
        seed: of the branches.

    Raises:
        ConfigError, UnknownNameError: a setting out of range.

    Carries: How Much Backtracking (arXiv 2505.24273) and Four Habits (arXiv 2503.01307), their priming rows on countdown; the
    number of markers is ``b = backtracks``. Unsure: the papers' own texts, and the sizes of their sets.

    >>> row = SearchTraces(backtracks=2).rows(1)[0]
    >>> row["completion"].count("go back")
    2
    """

    backtracks: int = 1
    habits: tuple[str, ...] = ()
    arm: str = "search"
    level: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.backtracks < 0:
            raise ConfigError(f"SearchTraces.backtracks={self.backtracks}; use 0 or more")
        if self.arm not in ARMS:
            raise UnknownNameError("SearchTraces.arm", self.arm, ARMS)
        for habit in self.habits:
            if habit not in HABITS:
                raise UnknownNameError("SearchTraces.habits", habit, HABITS)

    def rows(self, n: int) -> list[dict[str, Any]]:
        """``n`` rows of training tasks: ``prompt``, ``completion``, and ``characters`` of the part before the answer."""
        tasks = countdown()
        out: list[dict[str, Any]] = []
        for index in range(n):
            task = tasks.task("countdown/target", self.level, "train", index)
            facts = {"numbers": list(task.public["facts"]["numbers"]), "target": task.public["facts"]["target"]}
            rng = Random(derive("search trace", self.seed, f"level {self.level}", index))
            thought, answer = self._write_trace(facts, rng)
            said = f"{thought}<answer>{answer}</answer>"
            out.append({"prompt": task.public["prompt"], "completion": said, "characters": len(thought)})
        return out

    def _write_trace(self, facts: dict[str, Any], rng: Random) -> tuple[str, str]:
        solution = MakeTarget().solve(facts)
        lines = [f"{self._branch(facts, rng)} That is not {facts['target']}, go back." for _ in range(self.backtracks)]
        if "backward_chaining" in self.habits:
            lines.insert(0, f"From the target {facts['target']}.")
        if "subgoals" in self.habits:
            lines.append(f"Step 1: use {solution.answer}.")
        steps = (solution.steps or solution.answer).replace("\n", ", ")
        lines.append(f"Try {steps}.")
        if "verification" in self.habits:
            lines.append(f"Let me check: {solution.answer} = {facts['target']}.")
        answer = str(solution.answer)
        if self.arm == "empty":
            return "", answer
        if self.arm == "shuffled":
            rng.shuffle(lines)
        thought = "\n".join(lines) + "\n"
        if self.arm == "dummy":
            return "." * (len(thought) - 1) + "\n", answer
        return thought, f"{answer} + 1" if self.arm == "wrong" else answer

    def _branch(self, facts: dict[str, Any], rng: Random) -> str:
        """A calculation of some of the numbers that misses the target."""
        while True:
            a, b = rng.sample(facts["numbers"], 2)
            sign = rng.choice(_SIGNS)
            found = {"+": a + b, "-": a - b, "*": a * b}[sign]
            if found != facts["target"]:
                return f"Try {a} {sign} {b} = {found}."
