"""Help that is taken away before learning: hinted rollouts, learned under the plain prompt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from assay.core.errors import ConfigError, DataError
from assay.core.fields import later
from assay.core.group import Group
from assay.core.protocols import Moment, Posed
from assay.core.task import Task
from assay.guide.guidance import Stateless, plain_context, solution_of
from assay.guide.hints import check_text, hinted_context

__all__ = ["GuideHint", "hint_of"]


def hint_of(task: Task, share: float) -> str:
    """The task's own hint, ``private["hint"]``; where it has none, the first ``share`` of its solution's characters.

    Raises:
        DataError: its hint is no text, or it has neither hint nor solution nor an answer that is text.
    """
    written = task.private.get("hint")
    if written is not None and not isinstance(written, str):
        raise DataError(f"task {task.id!r}: private['hint'] must be text, found {written!r}")
    if written:
        return written
    solution = solution_of(task, "a hint (private['hint'], a column 'hint' of rows)")
    return solution[: math.floor(share * len(solution) + 0.5)]


@dataclass(frozen=True, slots=True, kw_only=True)
class GuideHint(Stateless):
    """Guide-GRPO's guidance: a task at which every rollout fails is posed again with a hint, and learned under the plain prompt.

    The hinted group takes the place of the failed one, with a baseline of its own; it teaches where some of its rollouts succeed
    and some fail. The policy that samples reads the hint, the policy that learns does not, so the ratio is
    ``pi(y_t | x, y_<t) / pi_old(y_t | x, hint, y_<t)``: train with ``assay.objective.guide_grpo``, which shapes it.

    Source: Guide-GRPO (arXiv 2506.13923), with the two options of its code, which are off there.

    Attributes:
        solved: mean success from which on a group is not hinted.
        share: of the solution that is the hint, for tasks without ``private["hint"]``.
        text: the last user turn; ``{prompt}`` and ``{hint}`` stand in it once each.
        again: the last user turn of a further roll before the hinted one, which asks for more thought, with ``{prompt}``; learned
            under the plain prompt too. Empty: none.
        fill: the hinted rollouts join the group that failed, so that `assay.guide.PlainFailures` can put plain failures in place
            of hinted ones.

    Raises:
        ConfigError: a share outside [0, 1], or another text.

    >>> from assay.core import FrozenMap, Moment, Task
    >>> from assay.testing import graded_group
    >>> task = Task(id="a", domain="d", arm="x", level=1, split="train", index=0,
    ...             public=FrozenMap({"prompt": "1+1="}), private=FrozenMap({"answer": "2", "hint": "count"}))
    >>> (posed,) = GuideHint(text="{prompt} {hint}").next(task, [graded_group(task, [0.0])], Moment(key="k"))
    >>> posed.context.messages[0].content, posed.context.score_messages[0].content
    ('1+1= count', '1+1=')
    """

    solved: float = 0.001
    share: float = 0.5
    text: str = "{prompt}\nA hint:\n{hint}\n"
    again: str = later("")
    fill: bool = later(False)

    def __post_init__(self) -> None:
        if not 0.0 <= self.share <= 1.0:
            raise ConfigError(f"GuideHint.share={self.share} must be in [0, 1]")
        check_text(self, self.text, empty=False)
        if self.again and self.again.count("{prompt}") != 1:
            raise ConfigError(f"GuideHint.again={self.again!r} must hold '{{prompt}}' exactly once, or be empty")

    def next(self, task: Task, history: Sequence[Group], moment: Moment) -> Sequence[Posed]:
        """The prompt; behind a failed group the further roll where there is one, and behind its failure the hinted prompt.

        Raises:
            DataError: the task has no user turn, or neither a hint, a solution nor an answer that is text.
        """
        plain = plain_context(task, moment.key)
        if not history:
            return (Posed(context=plain),)
        values = [v for group in history for v in group.values]
        rounds = len({r.context.key for g in history for r in g.rollouts})
        if rounds > 1 + bool(self.again) or not values or sum(values) / len(values) > self.solved:
            return ()
        if self.again and rounds == 1:
            hinted = replace(hinted_context(task, f"{moment.key}/again", "", self.again), tag="again")
        else:
            hinted = hinted_context(task, f"{moment.key}/guide", hint_of(task, self.share), self.text)
        context = replace(hinted, score_messages=plain.messages)
        if self.fill and hinted.tag == "hint":
            return (Posed(context=replace(context, group=history[-1].key)),)
        return (Posed(context=context, replaces=tuple(group.key for group in history)),)
