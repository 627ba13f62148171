"""A family made of problems: streams, splits, wordings and privacy, the same for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from assay.core.canon import FrozenMap, canonical, hash_text, plain
from assay.core.errors import ConfigError, DataError, UnknownNameError, a_kind
from assay.core.protocols import Environment, Verifier
from assay.core.seeds import derive
from assay.core.task import Message, Task, TaskView
from assay.tasks.draws import TRIES, TaskCoordinates, redraw
from assay.tasks.problem import Form, Problem, Solution
from assay.verify.routing import Routed

__all__ = ["Problems"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problems:
    """A family of tasks with one arm per `Problem`.

    The facts of a question (``public["facts"]``) decide its split, so that no question is in both splits in other words. Its
    wording is drawn by its facts too: the same question always reads the same, unless ``wording`` says which. Where they hold
    what the policy is to find out (`Problem.hidden`), ``world["facts"]`` has them and the public part only their digest.

    Attributes:
        name: of the family.
        problems: its arms.
        summary: what they have in common, in one line.
        form: how answers are asked for and read.
        wording: the number of a wording that all questions take, modulo how many a problem has; None draws one per question.
        seed: chooses another stream of tasks.
        test_share: share of questions that belong to the test split.

    Raises:
        ConfigError: no problems, two of one name, or a value out of range.
        UnknownNameError: ``form`` is none.

    >>> from assay.tasks import family
    >>> task = family("arithmetic").task("arithmetic/expression", 2, "train", 0)
    >>> sorted(task.public), sorted(task.private)
    (['facts', 'prompt'], ['answer', 'effort', 'solution'])
    """

    name: str
    problems: tuple[Problem, ...]
    summary: str = ""
    form: Form = Form.TAG
    wording: int | None = None
    seed: int = 0
    test_share: float = 0.1
    _arms: FrozenMap = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = [p.name for p in self.problems]
        if not names or len(set(names)) < len(names):
            raise ConfigError(f"family {self.name!r} needs problems with different names, got {names}")
        if self.form not in tuple(Form):
            raise UnknownNameError("form of answers", str(self.form), [f.value for f in Form])
        if not 0.0 < self.test_share < 1.0:
            raise ConfigError(f"{self.name}.test_share must be between 0 and 1, got {self.test_share}")
        if self.wording is not None and self.wording < 0:
            raise ConfigError(f"{self.name}.wording must be None or the number of a wording from 0, got {self.wording}")
        object.__setattr__(self, "form", Form(self.form))
        object.__setattr__(self, "_arms", FrozenMap({p.name: p.levels for p in self.problems}))

    def arms(self) -> Mapping[str, tuple[int, ...]]:
        """Each problem with its levels."""
        return self._arms

    def problem(self, arm: str) -> Problem:
        """The problem of an arm.

        Raises:
            UnknownNameError: there is none of that name.
        """
        for problem in self.problems:
            if problem.name == arm:
                return problem
        raise UnknownNameError(f"arm of {self.name}", arm, self._arms)

    def level_point(self, arm: str, level: int) -> tuple[float, ...]:
        """Where the problem's levels are points of a box, this one's."""
        return self.problem(arm).level_point(level)

    def only(self, *arms: str) -> Problems:
        """The same family with some of its arms.

        Raises:
            UnknownNameError: an arm that it does not have.
        """
        return replace(self, problems=tuple(map(self.problem, arms)))

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        """The ``index``-th task of a stream; a pure function of the settings and these four.

        Raises:
            UnknownNameError: arm, level or split.
            DataError: the level has no task of that split.
            ConfigError: the arm's solver gave an answer that is no text.
        """
        place = TaskCoordinates(self.name, arm, level, split, index)
        place.check(self)
        problem = self.problem(arm)
        question = self._question(place, problem)
        facts, drawn = question.facts, FrozenMap(question.facts)
        public = FrozenMap(question.public) if problem.hidden else drawn
        solution = problem.solve(facts)
        if not isinstance(solution.answer, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- a user's solver
            raise ConfigError(
                f"{arm}: solve gave the answer {solution.answer!r}, {a_kind(solution.answer)}; give text, as str(...)"
            )
        prompt = problem.prompt(facts, self._variant(problem, question), self.form)
        world = {**problem.world(facts), "facts": drawn} if problem.hidden else problem.world(facts)
        gold = solution.answer if solution.gold is None else solution.gold
        return Task(
            id=place.id,
            domain=problem.domain,
            arm=arm,
            level=level,
            split=split,
            index=index,
            public=FrozenMap({"prompt": prompt, "facts": public}),
            world=FrozenMap(world),
            private=FrozenMap(
                {
                    "answer": gold,
                    "solution": problem.format_solution(solution, self.form),
                    "effort": solution.effort,
                }
            ),
        )

    def solution(self, task: Task) -> Solution:
        """What the arm's solver makes of a task's facts."""
        problem = self.problem(task.arm)
        return problem.solve(problem.facts(task))

    def verifier(self) -> Verifier:
        """Each arm's own verifier, where there are several (`Routed`)."""
        routes = {p.name: p.verifier(self.form) for p in self.problems}
        return routes[self.problems[0].name] if len(routes) == 1 else Routed(routes)

    def environment(self, world: TaskView) -> Environment | None:
        """A fresh world of the arm, or None where one answer ends the task."""
        return self.problem(world.arm).environment(world)

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...]:
        """The oracle's turns: its steps and the answer in the form asked for."""
        problem = self.problem(task.arm)
        return problem.trace(problem.facts(task), task.private["solution"], noise, rng)

    def _question(self, place: TaskCoordinates, problem: Problem) -> _Question:
        rng, last = place.random(self.seed), list[_Question]()

        def question() -> _Question:
            facts = problem.redraw(last[0].facts, place.level, rng) if last else problem.draw(place.level, rng)
            last[:] = [_question_of(problem, plain({**facts, "problem": place.arm}))]
            return last[0]

        for _ in range(TRIES):
            found = redraw(place, question, self.test_share, _Question.canonical)
            if problem.fair(found.facts):
                return found
        raise DataError(
            f"{place.arm}: level {place.level} is exhausted: none of {TRIES} questions drawn is fair; use another level"
        )

    def _variant(self, problem: Problem, question: _Question) -> int:
        if self.wording is not None:
            return self.wording % problem.variants
        return 0 if problem.variants == 1 else derive("wording", 0, problem.name, hash_text(question.text)) % problem.variants


@dataclass(frozen=True, slots=True)
class _Question:
    """Facts that were drawn, what of them is public and decides the split, and the canonical JSON of that: written once."""

    facts: dict[str, Any]
    public: dict[str, Any]
    text: bytes

    def canonical(self) -> bytes:
        return self.text


def _question_of(problem: Problem, facts: dict[str, Any]) -> _Question:
    text = canonical(facts)
    if not problem.hidden:
        return _Question(facts, facts, text)
    public = {"problem": facts["problem"], "digest": hash_text(text)}
    return _Question(facts, public, canonical(public))
