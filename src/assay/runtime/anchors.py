"""Weights beside the policy's, which columns such as ``logp_ref`` are computed with: plain values, importable without torch."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from assay.core.errors import ConfigError

if TYPE_CHECKING:
    from assay.runtime.settings import DecoderShape, HubShape
    from assay.runtime.text.tokenizer import HubTokenizer

__all__ = ["BASE", "Anchor", "Ema", "Every", "Frozen", "check_names", "check_vocabulary"]

BASE = "base"
"""Name of the anchor that always is what its stage started from: divergences from the start are measured against it."""

_TAKEN = ("policy", "old", "new", "now", "engine", "kept", "choice", "max", "mean")


@dataclass(frozen=True, slots=True)
class Frozen:
    """The weights never move."""

    def share(self, before: int, after: int) -> float:
        """0: nothing of the policy enters."""
        return 0.0

    def rests(self, updates: int) -> bool:
        """True: they do not move within a rollout batch."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """The weights become a copy of the policy's after each ``steps`` optimiser steps: a reference that is reset, a mask policy
    that lags behind.

    Steps are counted in the stage, from 0, those that found nothing to learn from included.

    Attributes:
        steps: between two copies.

    >>> Every(steps=3).share(2, 3), Every(steps=3).share(3, 5)
    (1.0, 0.0)
    """

    steps: int

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ConfigError(f"Every.steps={self.steps}; copy after a whole number of steps, at least 1")

    def share(self, before: int, after: int) -> float:
        """Part of the policy that enters when the stage goes from ``before`` to ``after`` steps: 1 for a copy, else 0."""
        return float(after // self.steps > before // self.steps)

    def rests(self, updates: int) -> bool:
        """Whether they only move between rollout batches of so many updates."""
        return self.steps % updates == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ema:
    """The weights follow the policy's as an exponential average: ``anchor = decay anchor + (1 - decay) policy``.

    Attributes:
        decay: what is kept each time, in [0, 1).
        every: optimiser steps from one time to the next, counted as in `Every`.

    >>> Ema(decay=0.5).share(0, 1), Ema(decay=0.5, every=2).share(0, 1), Ema(decay=0.5).share(0, 2)
    (0.5, 0.0, 0.75)
    """

    decay: float
    every: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.decay < 1:
            raise ConfigError(f"Ema.decay={self.decay}; use a share in [0, 1), or Frozen() for weights that never move")
        if self.every < 1:
            raise ConfigError(f"Ema.every={self.every}; use a whole number of steps, at least 1")

    def share(self, before: int, after: int) -> float:
        """Part of the policy that enters when the stage goes from ``before`` to ``after`` steps."""
        times = after // self.every - before // self.every
        return 1.0 - self.decay**times

    def rests(self, updates: int) -> bool:
        """Whether they only move between rollout batches of so many updates."""
        return self.every % updates == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """Weights beside the policy's, under a name: passes without gradient fill ``logp_NAME`` and ``entropy_NAME`` with them, and
    statistics over the vocabulary read their distributions.

    Attributes:
        name: ``ref``, ``teacher``, ``mask``, ...: what objectives call it. ``base`` is what the stage started from.
        refresh: `Frozen`, `Every` or `Ema`.
        model: a model folder in Hugging Face format, or a finished run's folder, to start from; the stage's own starting weights
            when empty. It may have another shape if its vocabulary is the policy's.
        privileged: it reads each rollout behind the privileged prompt of its context (`assay.core.Context.privileged`) instead of
            the one that it was sampled behind.

    >>> Anchor("teacher", model="runs/teacher").refresh
    Frozen()
    """

    name: str = field(default="ref", kw_only=False)
    refresh: Frozen | Every | Ema = field(default_factory=Frozen)
    model: str = ""
    privileged: bool = False

    def __post_init__(self) -> None:
        if self.name in _TAKEN or not re.fullmatch(r"[A-Za-z0-9][\w.-]*", self.name):
            raise ConfigError(
                f"Anchor.name={self.name!r}: its columns are called logp_NAME, and {', '.join(_TAKEN)} are others'; use a word "
                "such as 'ref' or 'teacher'"
            )
        if self.name == BASE and (self.model or self.privileged or self.refresh != Frozen()):
            raise ConfigError(f"Anchor({BASE!r}) is what the stage started from, frozen; give {self} another name")

    @property
    def is_start(self) -> bool:
        """Whether it always is what its stage started from."""
        return not self.model and not self.privileged and self.refresh == Frozen()


def check_names(anchors: tuple[Anchor, ...]) -> None:
    """Raises ConfigError when two anchors have one name."""
    names = [a.name for a in anchors]
    if len(set(names)) < len(names):
        raise ConfigError(f"LearnerSettings.anchors are called {names}; give each a name of its own")


class HasVocabulary(Protocol):
    """A model, or what is known of it without its weights."""

    @property
    def shape(self) -> DecoderShape | HubShape: ...

    @property
    def tokenizer(self) -> HubTokenizer: ...


def check_vocabulary(anchor: Anchor, ours: HasVocabulary, theirs: HasVocabulary) -> None:
    """Refuses a model whose token ids do not mean what the policy's mean, or whose weights could not follow the policy's.

    Raises:
        ConfigError: another tokenizer or vocabulary; or another shape, where the anchor is to follow the policy.
    """
    place = f"Anchor({anchor.name!r}, model={anchor.model!r})"
    if theirs.tokenizer.size != ours.tokenizer.size:
        found = f"its tokenizer knows {theirs.tokenizer.size} ids, the policy's {ours.tokenizer.size}"
    elif theirs.tokenizer.digest != ours.tokenizer.digest:
        found = "its tokenizer gives other ids to the same texts than the policy's"
    elif theirs.shape.vocab_size != ours.shape.vocab_size:
        found = f"its head has {theirs.shape.vocab_size} rows, the policy's {ours.shape.vocab_size}"
    elif anchor.refresh != Frozen() and theirs.shape != ours.shape:
        raise ConfigError(
            f"{place}: {anchor.refresh} follows the policy, which only a model of the same shape can; use refresh=Frozen()"
        )
    else:
        return
    raise ConfigError(
        f"{place}: {found}, so that log-probabilities of the same ids would be of other texts; use a model of the policy's family"
    )
