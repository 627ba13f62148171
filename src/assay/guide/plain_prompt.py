"""Help that is taken away before learning: hinted, decomposed and reflected rollouts, learned under the plain prompt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from assay.core.errors import ConfigError, DataError
from assay.core.fields import later
from assay.core.group import Group
from assay.core.protocols import Moment, Posed
from assay.core.task import Context, Task
from assay.guide.guidance import Stateless, plain_context, solution_of
from assay.guide.hints import check_text, hinted_context

__all__ = ["GuideHint", "Rethink", "hint_of"]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Rethink(Stateless):
    """Cog-Rethinker's ladder: a task without success is posed again, to be decomposed, and then with a wrong answer to refine.

    Stage ``k + 1`` follows where ``max_i r_i = 0`` at stage ``k``. A later group takes the place of the one before, and is
    learned under the plain prompt, so evaluation needs one template.

    Source: Cog-Rethinker (arXiv 2510.15979), in part. UNSURE: the wording. Left out: demonstrations retrieved from earlier
    successes, and the supervised loss on rewritten answers: here they are learned as rollouts of the plain prompt.

    Attributes:
        decompose: the last user turn of the second round, with ``{prompt}``.
        reflect: of the third, with ``{prompt}`` and, as ``{answer}``, a wrong answer.

    Raises:
        ConfigError: another text.

    >>> Rethink(reflect="{prompt} not {answer}").reflect
    '{prompt} not {answer}'
    """

    decompose: str = "{prompt}\nSplit this into smaller problems, solve each, and combine what you found.\n"
    reflect: str = "{prompt}\nThis answer is wrong:\n{answer}\nSay where it fails, and give the right one.\n"

    def __post_init__(self) -> None:
        for name, text, words in (
            ("decompose", self.decompose, ("{prompt}",)),
            ("reflect", self.reflect, ("{prompt}", "{answer}")),
        ):
            for word in words:
                if text.count(word) != 1:
                    raise ConfigError(f"Rethink.{name}={text!r} must hold {word!r} exactly once")

    def next(self, task: Task, history: Sequence[Group], moment: Moment) -> Sequence[Posed]:
        """The prompt; after groups without success the next stage.

        Raises:
            DataError: the task has no user turn.
        """
        plain = plain_context(task, moment.key)
        if not history:
            return (Posed(context=plain),)
        stage = len({r.context.key for g in history for r in g.rollouts})
        values = [v for group in history for v in group.values]
        if stage > 2 or not values or max(values) > 0.0:
            return ()
        calls = [r.calls[-1].text for g in history for r in g.rollouts if r.calls]
        text = self.decompose if stage == 1 else self.reflect.replace("{answer}", "{hint}")
        return (Posed(context=self._posed(task, plain, moment, stage, text, calls), replaces=tuple(g.key for g in history)),)

    def _posed(self, task: Task, plain: Context, moment: Moment, stage: int, text: str, said: Sequence[str]) -> Context:
        wrong = said[0] if said else ""
        context = hinted_context(task, f"{moment.key}/rethink{stage}", wrong, text)
        return replace(context, score_messages=plain.messages, tag="decompose" if stage == 1 else "reflect")
