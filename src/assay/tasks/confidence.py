"""Tasks whose answers state how sure they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from assay.core.canon import FrozenMap, plain
from assay.core.errors import ConfigError
from assay.core.protocols import Environment, TaskSource, Verifier
from assay.core.task import Message, Task, TaskView
from assay.verify.confidence import ConfidenceMarks, ConfidenceVerifier

__all__ = ["WithConfidence"]

REQUEST = "Then state your confidence that this answer is right, from 0 to 1, as <confidence>0.8</confidence>."


@dataclass(frozen=True, slots=True, kw_only=True)
class WithConfidence:
    """The tasks of another family, whose answers end with a confidence, which the family's verifier does not see.

    Demonstrations, where the family has an oracle, state a confidence drawn evenly from ``shown``, whatever the task: a form to
    learn from, and no knowledge. The split of a task is the family's own.

    Attributes:
        tasks: the family.
        marks: what the confidence stands between.
        request: appended to the prompt, or to the last message, on a line of its own; empty for nothing.
        shown: confidences of the demonstrations.

    Raises:
        ConfigError: no confidence to be shown, or one outside [0, 1].

    >>> from assay.verify.confidence import ConfidenceMarks
    >>> from assay_tasks import SortDigits
    >>> source = WithConfidence(tasks=SortDigits(levels=(3,)), marks=ConfidenceMarks("~", ""), request="")
    >>> source.trace(source.task("sort", 3, "train", 0), 0.0, np.random.default_rng(0))[0].content
    '347~0'
    """

    tasks: TaskSource
    marks: ConfidenceMarks = field(default_factory=ConfidenceMarks)
    request: str = REQUEST
    shown: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shown", tuple(self.shown))
        if not self.shown or not all(0.0 <= q <= 1.0 for q in self.shown):
            raise ConfigError(f"WithConfidence.shown={self.shown}; give confidences from 0 to 1 for demonstrations to state")

    @property
    def name(self) -> str:
        """The family's."""
        return self.tasks.name

    @property
    def test_share(self) -> float:
        """Share of contents that belong to the test split."""
        return float(getattr(self.tasks, "test_share", 0.1))

    @property
    def alphabet(self) -> str:
        """Every character that prompts and answers use, sorted; empty where the family names none."""
        own: str = getattr(self.tasks, "alphabet", "")
        said = "".join((self.marks.opening, self.marks.closing, self.request, *(f"{q:g}" for q in self.shown)))
        return "".join(sorted(set(own + said + ("\n" if self.request else "")))) if own else ""

    def arms(self) -> Mapping[str, tuple[int, ...]]:
        """The family's."""
        return self.tasks.arms()

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        """The family's task, with the request behind its prompt.

        Raises:
            UnknownNameError: arm, level or split.
            DataError: the level has no task of that split.
        """
        made = self.tasks.task(arm, level, split, index)
        if not self.request:
            return made
        public: dict[str, Any] = plain(made.public)
        if "messages" in public:
            *before, last = public["messages"]
            public["messages"] = [*before, {**last, "content": f"{last['content']}\n{self.request}"}]
        else:
            public["prompt"] = f"{public['prompt']}\n{self.request}"
        return replace(made, public=FrozenMap(public))

    def verifier(self) -> Verifier:
        """The family's, which sees the answer without the confidence; and what the confidence is worth."""
        return ConfidenceVerifier(self.tasks.verifier(), self.marks)

    def environment(self, world: TaskView) -> Environment | None:
        """The family's."""
        return self.tasks.environment(world)

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...] | None:
        """The family's oracle, with a confidence that knows nothing."""
        turns = self.tasks.trace(task, noise, rng)
        if not turns:
            return turns
        q = self.shown[int(rng.integers(len(self.shown)))]
        last = turns[-1]
        said = f"{last.content}{self.marks.opening}{q:g}{self.marks.closing}"
        return (*turns[:-1], replace(last, content=said))
