"""A kind of question: how one is drawn, solved, put into words and judged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, nonmember
from random import Random
from typing import Any, ClassVar

import numpy as np

from assay.core.canon import plain
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.protocols import Environment, Verifier
from assay.core.task import Message, Task, TaskView
from assay.core.util.renamed import RenamedMembers, refuse_renamed
from assay.tasks.draws import checked_levels, slip
from assay.verify.answer_verifier import AnswerPlace
from assay.verify.exact import ExactMatch

__all__ = ["Facts", "Form", "Problem", "Solution"]

Facts = Mapping[str, Any]
"""What a question is about, as plain JSON values: it decides the question, its answer and its split, whatever the words."""


class Form(RenamedMembers, StrEnum):
    r"""How an answer is to be given: ``tag`` between ``<answer>`` and ``</answer>``, ``box`` in ``\boxed{}``, ``mark`` behind
    ``Answer:`` on the last line, ``plain`` alone.
    """

    renamed_members = nonmember({"given": "format_answer"})  # type: ignore[assignment]

    TAG = "tag"
    BOX = "box"
    MARK = "mark"
    PLAIN = "plain"

    @property
    def place(self) -> AnswerPlace:
        """Where a verifier finds it."""
        return AnswerPlace.WHOLE if self is Form.PLAIN else AnswerPlace(self.value)

    @property
    def request(self) -> str:
        """The sentence that asks for it."""
        return _REQUESTS[self]

    def format_answer(self, answer: str) -> str:
        r"""An answer in this form.

        >>> Form.BOX.format_answer("4"), Form.MARK.format_answer("4")
        ('\\boxed{4}', 'Answer: 4')
        """
        match self:
            case Form.TAG:
                return f"<answer>\n{answer}\n</answer>" if "\n" in answer else f"<answer>{answer}</answer>"
            case Form.BOX:
                return f"\\boxed{{{answer}}}"
            case Form.MARK:
                return f"Answer:\n{answer}" if "\n" in answer else f"Answer: {answer}"
            case Form.PLAIN:
                return answer


_REQUESTS = {
    Form.TAG: "Put the final answer, and nothing else, between <answer> and </answer>.",
    Form.BOX: "Put the final answer, and nothing else, in \\boxed{}.",
    Form.MARK: "End with the final answer, and nothing else, behind 'Answer:'.",
    Form.PLAIN: "Reply with the answer alone.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """What a solver found.

    Attributes:
        answer: a right answer, as an oracle writes it.
        gold: what the verifier compares with (``private["answer"]``), a plain JSON value; None where that is the answer itself.
        steps: how it is found, in words; "" where nothing is to be said.
        effort: steps that the solver took: nodes of a search, operations, table look-ups. It measures difficulty and is compared
            only within one problem.
    """

    answer: str
    gold: Any = None
    steps: str = ""
    effort: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem(ABC):
    """Base of kinds of questions. Pure: every method is a function of its arguments.

    A problem says how facts of a level are drawn (`draw`), what the answer is (`solve`), how the question reads (``templates``
    with `fields`, or `word`) and what judges an answer (`verifier`). `assay.tasks.Problems` makes a family of several.

    Attributes:
        name: of the arm, ``family/problem``.
        domain: ``math``, ``logic``, ``graph``, ``code``, ...
        levels: difficulties offered, ascending; the class says what they count.

    Raises:
        ConfigError: no name or domain, or levels that are not ascending whole numbers from 1.
    """

    name: str = ""
    domain: str = ""
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)

    templates: ClassVar[tuple[str, ...]] = ()
    """Wordings: texts in which ``{field}`` stands for one of `fields`."""

    unique: ClassVar[bool | None] = None
    """Whether the answer of `solve` is the only right one: audits and checks then try near misses, hedges and denials. None: so
    it is where the verifier compares texts, numbers or letters, or is one of your own and the gold is a text
    (`assay.tasks.one_answer`).
    """

    hidden: ClassVar[bool] = False
    """Whether the facts hold what the policy is to find out: then they stand in ``world["facts"]``, and a digest is public."""

    def __init_subclass__(cls) -> None:
        super(Problem, cls).__init_subclass__()
        refuse_renamed(cls, {"answered": "format_solution"})

    def __post_init__(self) -> None:
        if not self.name or not self.domain:
            raise ConfigError(f"{type(self).__name__} needs a name and a domain, got {self.name!r} and {self.domain!r}")
        checked_levels(self.name, self.levels, 1, 1000)

    @abstractmethod
    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Facts of a question of this level, as plain JSON values; of nothing but the level and ``rng``.

        Raises:
            DataError: the level's space holds no such question, found within a bounded number of tries.
        """
        ...

    def fair(self, facts: Facts) -> bool:
        """Whether facts that were drawn, and are of the right split, are worth asking; by default all are.

        What takes long to find out, as whether an oracle wins, is cheaper looked at here than in `draw`.
        """
        return True

    def redraw(self, facts: Facts, level: int, rng: Random) -> dict[str, Any]:
        """Facts of another question of this level, in place of some that fell into the other split or are not `fair`.

        By default drawn anew; where draws are dear, what there is may be renamed, relabelled or turned instead.
        """
        return self.draw(level, rng)

    @abstractmethod
    def solve(self, facts: Facts) -> Solution:
        """The answer to any facts that `draw` may give, found without what `draw` knew."""
        ...

    @property
    def variants(self) -> int:
        """How many wordings there are."""
        return len(self.templates)

    def facts(self, task: Task | TaskView) -> dict[str, Any]:
        """The facts of one of its tasks."""
        return plain((task.world if self.hidden else task.public)["facts"])

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """What the templates speak of: by default each fact as text."""
        return {key: str(value) for key, value in facts.items()}

    def word(self, facts: Facts, variant: int) -> str:
        """The question in one of its wordings, 0 to ``variants - 1``, without how the answer is to be given.

        Raises:
            UnknownNameError: the wording speaks of what is none of the `fields`; says the nearest.
        """
        fields = self.fields(facts)
        try:
            return self.templates[variant].format_map(fields)
        except KeyError as error:
            raise UnknownNameError(f"field in templates[{variant}] of {self.name}", error.args[0], fields) from None

    def prompt(self, facts: Facts, variant: int, form: Form) -> str:
        """The question, and how the answer is to be given."""
        return f"{self.word(facts, variant)}\n{form.request}"

    def format_solution(self, solution: Solution, form: Form) -> str:
        """The oracle's whole text: its steps, unless the answer shall stand alone, and the answer in the form asked for."""
        given = form.format_answer(solution.answer)
        return given if form is Form.PLAIN or not solution.steps else f"{solution.steps}\n{given}"

    def verifier(self, form: Form) -> Verifier:
        """What judges an answer in this form; by default `ExactMatch`, white space around it forgiven."""
        return ExactMatch(strip=True, where=form.place)

    def world(self, facts: Facts) -> Mapping[str, Any]:
        """What environment and tools may see besides; by default nothing."""
        return {}

    def environment(self, world: TaskView) -> Environment | None:
        """A fresh world for one rollout; by default None: one answer ends the task."""
        return None

    def level_point(self, level: int) -> tuple[float, ...]:
        """Where a level lies among the others; by default empty: they are a row (`assay.tasks.BoxProblem`)."""
        return ()

    def trace(self, facts: Facts, text: str, noise: float, rng: np.random.Generator) -> tuple[Message, ...]:
        """The oracle's turns. By default its ``text`` in one, with a slip (`assay.tasks.slip`) at probability ``noise``."""
        symbols = "".join(sorted(set(text)))
        return (Message("assistant", slip(text, noise, symbols, rng) if symbols else text),)
