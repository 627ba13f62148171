"""How a task is posed: as it is, with the first part of a solution given, or with a teacher who knows the solution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from assay.core.errors import ConfigError, DataError
from assay.core.group import Group, Outcome
from assay.core.protocols import Moment, Posed, State
from assay.core.seeds import derive, uniforms
from assay.core.task import Context, Prefill, Task

__all__ = ["Plain", "Prefix", "Privileged", "Stateless", "plain_context", "solution_of"]


class Stateless:
    """Base of guidance that remembers nothing, for frozen dataclasses: define ``next``. The settings are the thing itself."""

    __slots__ = ()

    def build(self, seed: int) -> Self:
        """Itself."""
        return self

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Nothing is remembered."""

    def metrics(self) -> Mapping[str, float]:
        """None."""
        return {}

    def state_dict(self) -> State:
        """Empty."""
        return {}

    def load_state_dict(self, state: State) -> None:
        """There is nothing to restore."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain(Stateless):
    """One context per task: the prompt.

    ``next`` gives it before the first rollout and nothing after; ``moment.key`` names both context and group.
    """

    def next(self, task: Task, history: Sequence[Group], moment: Moment) -> Sequence[Posed]:
        """The context, or () when the task was attempted."""
        return () if history else (Posed(context=plain_context(task, moment.key)),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix(Stateless):
    """With some probability the answer begins with a share of the oracle's own text; the group shares one prefix.

    The text is ``private["solution"]``, else ``private["answer"]``. It is cut on token ids, never trained, and the rollout's
    group has one start state, so its baseline compares like with like: behind ``x + y[:h]`` the policy writes the rest, with
    ``h / |y|`` uniform between the bounds.

    Attributes:
        share: ``(low, high)``, between which the share given is drawn evenly.
        probability: of giving a prefix at all.
        seed: chooses other draws; each draw is a pure function of seed and key.

    Raises:
        ConfigError: a value out of range.

    Source: POPE (arXiv 2601.18779), in part; PrefixRL (arXiv 2601.18795), in part;
    RLGF (arXiv 2306.11816), the roll-in of its PPO++.
    """

    share: tuple[float, float] = (0.0, 0.9)
    probability: float = 0.75
    seed: int = 0

    def __post_init__(self) -> None:
        low, high = self.share
        if not 0.0 <= low <= high <= 1.0:
            raise ConfigError(f"Prefix.share must be (low, high) with 0 <= low <= high <= 1, got {self.share}")
        if not 0.0 <= self.probability <= 1.0:
            raise ConfigError(f"Prefix.probability must be in [0, 1], got {self.probability}")

    def next(self, task: Task, history: Sequence[Group], moment: Moment) -> Sequence[Posed]:
        """The context, or () when the task was attempted.

        Raises:
            DataError: the task has neither a solution nor an answer that is text.
        """
        if history:
            return ()
        chance, where = uniforms(np.array([derive("guidance/prefix", self.seed, "", moment.key)], np.uint64), 0, 2)[0]
        if chance >= self.probability:
            return (Posed(context=plain_context(task, moment.key)),)
        text = solution_of(task, "a prefix")
        low, high = self.share
        return (Posed(context=plain_context(task, moment.key, Prefill(text, low + (high - low) * float(where)))),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Privileged(Stateless):
    """The task as it is, and beside it the conversation that a privileged teacher reads: the last user turn with the task's
    solution put in.

    It is for anchors with ``privileged=True``: self-distillation (SDPO, SDFT). The policy never sees it.

    Attributes:
        text: the turn; ``{prompt}`` stands for what the policy is shown, ``{solution}`` for ``private["solution"]``, else
            ``private["answer"]``.

    >>> from assay.core import FrozenMap, Moment, Task
    >>> task = Task(id="a", domain="d", arm="x", level=1, split="train", index=0,
    ...             public=FrozenMap({"prompt": "1+1="}), private=FrozenMap({"answer": "2"}))
    >>> (posed,) = Privileged(text="{solution};{prompt}").next(task, [], Moment(key="k"))
    >>> posed.context.messages[0].content, posed.context.privileged[0].content
    ('1+1=', '2;1+1=')
    """

    text: str = "{prompt}\n\nA solution:\n{solution}\n\n"

    def __post_init__(self) -> None:
        for part in ("{prompt}", "{solution}"):
            if self.text.count(part) != 1:
                raise ConfigError(f"Privileged.text={self.text!r} must hold {part!r} exactly once")

    def next(self, task: Task, history: Sequence[Group], moment: Moment) -> Sequence[Posed]:
        """The context, or () when the task was attempted.

        Raises:
            DataError: the task has no user turn, or neither a solution nor an answer that is text.
        """
        if history:
            return ()
        plain = plain_context(task, moment.key)
        at = max((i for i, m in enumerate(plain.messages) if m.role == "user"), default=None)
        if at is None:
            raise DataError(f"task {task.id!r}: it has no user turn to put a solution in; use Plain()")
        before, after = self.text.split("{prompt}")
        solution = solution_of(task, "a privileged prompt")
        turn = plain.messages[at]
        told = "".join((before.replace("{solution}", solution), turn.content, after.replace("{solution}", solution)))
        privileged = (*plain.messages[:at], replace(turn, content=told), *plain.messages[at + 1 :])
        return (Posed(context=replace(plain, privileged=privileged, tag="privileged")),)


def solution_of(task: Task, what: str) -> str:
    """The text of ``private["solution"]``, else of ``private["answer"]``.

    Raises:
        DataError: neither is text; says what needs it.
    """
    text = task.private.get("solution", task.private.get("answer"))
    if not isinstance(text, str):
        raise DataError(
            f"task {task.id!r}: {what} needs text in private['solution'] or private['answer'], found {text!r}; use Plain()"
        )
    return text


def plain_context(task: Task, key: str, prefill: Prefill | None = None) -> Context:
    """The task as it is, or with the answer begun, as a group of its own.

    Args:
        task: what is posed; its private part is left out.
        key: of the context and of its group; unique in the step, and it begins with ``moment.key``.
        prefill: with which the answer begins.

    >>> from assay.core import FrozenMap, Task
    >>> task = Task(id="a", domain="d", arm="x", level=1, split="train", index=0,
    ...             public=FrozenMap({"prompt": "1+1="}), private=FrozenMap({"answer": "2"}))
    >>> plain_context(task, "k").messages
    (Message(role='user', content='1+1='),)
    """
    world = task.public_view()
    tag = "plain" if prefill is None else "prefix"
    return Context(key=key, group=key, task=world, messages=world.messages, prefill=prefill, tag=tag)
