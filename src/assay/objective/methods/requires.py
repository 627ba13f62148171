"""What a method needs of a run beside its objective, where its composition alone does not tell: plain values, declared beside it.

Most of what a run needs follows from the composition: heads from the losses that fit them, models from the columns that are
read, expert rollouts from the streams of its terms. Here stands what the sources say besides. `assay.train.wiring` reads both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.core.errors import ConfigError, UnknownNameError

__all__ = ["Critic", "Requires"]

_STORED = ("", "beside")


@dataclass(frozen=True, slots=True, kw_only=True)
class Critic:
    """What a value head has besides its form, range and name, which the losses that fit it say.

    Attributes:
        name: of the head.
        model: name of a model of the critics' own whose states it reads; the policy's when empty.
        behind: its value is that of the state behind a token, ``Q(s, a)``.
        tau: rate of its target weights, and of its model's; 0 for none.
        init: spread of its first outputs.
        lr: learning rate; the policy's when None.
        model_lr: learning rate of ``model``; the policy's when None.
    """

    name: str = "values"
    model: str = ""
    behind: bool = False
    tau: float = 0.0
    init: float = 0.0
    lr: float | None = None
    model_lr: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Requires:
    """What a run needs for a method, with the reason in words where a reader would ask.

    Attributes:
        settings: of the method, in place of defaults that are meant for rows or samplers of the user's own; a user's come first.
        critics: heads that need more than their form.
        critics_first: optimiser steps in which critics learn alone, at the start of a stage.
        refresh: model to the number of optimiser steps after which it is made a copy of the policy again.
        stored: what stands for stored answers: ``beside``: right rollouts to prompts that the base masters, beside the others.
        demonstrations: it learns from demonstrations and from nothing else.
        why: of these, in one sentence.

    Raises:
        UnknownNameError: another kind of stored answers.
        ConfigError: steps below 0.
    """

    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    critics: tuple[Critic, ...] = ()
    critics_first: int = 0
    refresh: Mapping[str, int] = field(default_factory=dict[str, int])
    stored: str = ""
    demonstrations: bool = False
    why: str = ""

    def __post_init__(self) -> None:
        if self.stored not in _STORED:
            raise UnknownNameError("kind of stored answers", self.stored, _STORED)
        if self.critics_first < 0:
            raise ConfigError(f"Requires.critics_first={self.critics_first}; use a number of optimiser steps, or 0")
