"""A task posed twice: with its events in order, and shuffled."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from assay.core.errors import ConfigError
from assay.core.group import Group
from assay.core.protocols import Moment, Posed
from assay.core.seeds import generator
from assay.core.task import Task
from assay.guide.guidance import Stateless, plain_context

__all__ = ["SHUFFLED", "ShuffledEvents"]

SHUFFLED = "shuffled"
"""Tag of contexts whose events are not in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledEvents(Stateless):
    r"""The task as it is, and a twin whose events stand in another order, for `assay.scorers.TemporalBonus` (TimeHC-RL).

    Events are the lines of the last user turn that match ``pattern``; they change places among themselves. The twin is rolled
    out and scored; ``Reinforce(filter=Admitted())`` leaves it out of what is learned. A task with fewer than two different
    events has no twin.

    Attributes:
        pattern: regular expression that an event's line begins with.
        seed: chooses other orders; each is a pure function of seed and key.

    Raises:
        ConfigError: ``pattern`` is no regular expression.

    >>> from assay.core import FrozenMap, Moment, Task
    >>> task = Task(id="a", domain="d", arm="x", level=1, split="train", index=0,
    ...             public=FrozenMap({"prompt": "- Ann goes out\n- Bo comes in\nWho is in?"}))
    >>> plain, twin = ShuffledEvents().next(task, [], Moment(key="k"))
    >>> twin.context.messages[0].content, twin.context.tag, twin.context.key
    ('- Bo comes in\n- Ann goes out\nWho is in?', 'shuffled', 'k/shuffled')
    """

    pattern: str = r"(- |\* |[0-9]+[.)] )"
    seed: int = 0

    def __post_init__(self) -> None:
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise ConfigError(f"ShuffledEvents.pattern {self.pattern!r} is not a regular expression: {error}") from None

    def next(self, task: Task, history: Sequence[Group], moment: Moment) -> Sequence[Posed]:
        """Both contexts, or () when the task was attempted."""
        if history:
            return ()
        plain = plain_context(task, moment.key)
        at = max((i for i, m in enumerate(plain.messages) if m.role == "user"), default=None)
        text = None if at is None else self._shuffle_text(plain.messages[at].content, moment.key)
        if at is None or text is None:
            return (Posed(context=plain),)
        messages = (*plain.messages[:at], replace(plain.messages[at], content=text), *plain.messages[at + 1 :])
        key = f"{moment.key}/{SHUFFLED}"
        twin = replace(plain, key=key, group=key, messages=messages, tag=SHUFFLED)
        return (Posed(context=plain), Posed(context=twin))

    def _shuffle_text(self, text: str, key: str) -> str | None:
        """The text in another order; None where there is none."""
        lines = text.split("\n")
        places = [n for n, line in enumerate(lines) if re.match(self.pattern, line)]
        events = [lines[n] for n in places]
        if len(set(events)) < 2:
            return None
        order = generator("guidance/shuffled", self.seed, key, 0).permutation(len(places)).tolist()
        if [events[n] for n in order] == events:
            order = [*order[1:], order[0]]  # turned by one, it differs: not all events are alike
        for place, n in zip(places, order, strict=True):
            lines[place] = events[n]
        return "\n".join(lines)
