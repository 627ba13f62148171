"""Rollouts that begin within a preferred answer from a file (DR-PO)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np

from assay.core.errors import ConfigError, DataError
from assay.core.group import Group
from assay.core.protocols import Moment, Posed
from assay.core.seeds import derive, uniforms
from assay.core.task import Prefill, Task
from assay.guide.guidance import Stateless, plain_context

__all__ = ["DataReset"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataReset(Stateless):
    """DR-PO: with some chance an episode begins within a preferred answer of a data set, at an even place, else at its prompt.

    Behind ``x + y[:h]`` the policy writes the rest, with ``h`` uniform on ``0 .. |y| - 1`` tokens; the reward is of prefix and
    rest together, and no token of the prefix is learned from. All rollouts of a group begin at one place. At a probability of 0
    every episode begins at its prompt, as do those of prompts that the data lack. Of a prompt with several preferred answers each
    is as likely.

    Source: Dataset Reset Policy Optimization (arXiv 2404.08495). Its divergence to the supervised model is the objective's:
    ``ppo(kl=...)``; its learned reward is `assay.scorers.RewardModel` as the stage's ``reward``.

    Attributes:
        data: JSON lines with ``prompt`` and ``chosen``, as preferences are kept; or ``prompt`` and ``answer``.
        probability: of beginning within an answer, the paper's beta.
        seed: chooses other draws; each draw is a pure function of seed and key.

    Raises:
        ConfigError: no file, or a probability outside [0, 1].

    >>> DataReset(data="pairs.jsonl", probability=0.5).files
    ('pairs.jsonl',)
    """

    data: str = field(metadata={"arg": {"metavar": "FILE"}})
    probability: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.data or not 0.0 <= self.probability <= 1.0:
            raise ConfigError(
                f"DataReset(data={self.data!r}, probability={self.probability}): name a file of preferred answers, and give a "
                "probability in [0, 1]"
            )

    @property
    def files(self) -> tuple[str, ...]:
        """What it reads; looked for before a run begins."""
        return (self.data,)

    def next(self, task: Task, history: Sequence[Group], moment: Moment) -> Sequence[Posed]:
        """The context, or () when the task was attempted.

        Raises:
            DataError: the file cannot be read, or holds something else.
        """
        if history:
            return ()
        plain = plain_context(task, moment.key)
        answers = _read_preferred(self.data).get("\n".join(m.content for m in plain.messages), ())
        chance, where, which = uniforms(np.array([derive("guidance/reset", self.seed, "", moment.key)], np.uint64), 0, 3)[0]
        if not answers or chance >= self.probability:
            return (Posed(context=plain),)
        text = answers[int(which * len(answers))]
        return (Posed(context=plain_context(task, moment.key, Prefill(text, float(where)))),)


@cache
def _read_preferred(path: str) -> Mapping[str, tuple[str, ...]]:
    """Prompt to its preferred answers, in the order of the file."""
    found: dict[str, list[str]] = {}
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DataError(f"DataReset.data={path!r} cannot be read ({error}); give a file of preferences in JSON lines") from error
    for number, line in enumerate(lines, 1):
        row: Any = _row(line)
        prompt, answer = row.get("prompt"), row.get("chosen", row.get("answer"))
        if not isinstance(prompt, str) or not isinstance(answer, str) or not answer:
            raise DataError(
                f"{path}, line {number}: a row is an object with text in 'prompt' and in 'chosen' (or 'answer'), found "
                f"{line[:80]!r}"
            )
        found.setdefault(prompt, []).append(answer)
    return {prompt: tuple(answers) for prompt, answers in found.items()}


def _row(line: str) -> Mapping[str, Any]:
    try:
        row: Any = json.loads(line)
    except ValueError:
        return {}
    return cast("Mapping[str, Any]", row) if isinstance(row, dict) else {}
