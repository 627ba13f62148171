"""Rewards of turns that judge what a tool has found (ReSeek)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

from assay.core.errors import ConfigError
from assay.core.group import Group
from assay.core.rollout import Call, Rollout
from assay.core.score import SpanScore
from assay.core.task import Task
from assay.train.columns import Live, Moment
from assay.train.turn_rewards import at_end, is_turn

__all__ = ["JudgeReward", "MentionsAnswer", "Relevance"]


class Relevance(Protocol):
    """How much of use a tool's answer is; it may read the task's private part, and never meets the policy."""

    def __call__(self, task: Task, asked: str, found: str) -> float:
        """From 0 to 1, of what was ``found`` by the turn ``asked``."""
        ...


@dataclass(frozen=True, slots=True)
class MentionsAnswer:
    """1 where the task's answer (``private["answer"]``) stands in what was found, whatever its case and spaces; else 0.

    The paper asks a reranking model how well the found text fits the right answer.

    >>> from assay_tasks import Bills
    >>> task = Bills().task("bills", 2, "train", 0)  # 102
    >>> MentionsAnswer()(task, "?", "It is 102."), MentionsAnswer()(task, "?", "It is 12.")
    (1.0, 0.0)
    """

    def __call__(self, task: Task, asked: str, found: str) -> float:
        """1 or 0."""
        answer, text = (" ".join(re.findall(r"\w+", said.casefold())) for said in (str(task.private["answer"]), found))
        return float(bool(answer) and f" {answer} " in f" {text} ")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeReward:
    """A number for each turn that judges what the turn before it found, at its last token: for `TokenReward` (ReSeek).

    The right judgement is *yes* iff ``relevance(task, asked, found) > threshold``, of several answers to one turn the best. It
    earns ``match``; *yes* to what is of no use earns ``accept_useless``, *no* to what is of use ``reject_useful``. Turns that
    judge nothing, or behind a turn whose tools all failed, earn 0. So does a policy that never searches.

    Attributes:
        name: of the token column.
        relevance: of what was found; see `Relevance`.
        threshold: of it.
        yes, no: regular expressions that are found in a turn that judges so; one that both fit judges nothing.
        match, accept_useless, reject_useful: as above.

    Raises:
        ConfigError: a pattern that is none, a threshold outside [0, 1), or rewards by which a wrong judgement is worth as much as
            the right one.

    Source: ReSeek (arXiv 2510.00568).
    """

    name: str = "judge_reward"
    relevance: Relevance = field(default_factory=MentionsAnswer)
    threshold: float = 0.7
    yes: str = r"(?i)<judge>\s*yes\s*</judge>"
    no: str = r"(?i)<judge>\s*no\s*</judge>"
    match: float = 0.3
    accept_useless: float = -0.6
    reject_useful: float = -0.3
    moment: ClassVar[Moment] = "group"

    def __post_init__(self) -> None:
        for name in ("yes", "no"):
            try:
                re.compile(getattr(self, name))
            except re.error as error:
                raise ConfigError(f"JudgeReward.{name}={getattr(self, name)!r} is no regular expression: {error}") from None
        if not 0.0 <= self.threshold < 1.0:
            raise ConfigError(f"JudgeReward.threshold={self.threshold}; relevance above it is of use: give a number in [0, 1)")
        if not self.match > max(self.accept_useless, self.reject_useful):
            raise ConfigError(
                f"JudgeReward(match={self.match}, accept_useless={self.accept_useless}, reject_useful={self.reject_useful}): a "
                "right judgement must be worth more than a wrong one"
            )

    def provide(self, live: Live, rows: Sequence[Group]) -> list[Group]:
        """The groups with the column."""
        return [self._with(group) for group in rows]

    def _with(self, group: Group) -> Group:
        spans = [self._of(group.task, rollout) for rollout in group.rollouts]
        scores = [replace(x, spans=(*x.spans, *more)) if x.valid else x for x, more in zip(group.scores, spans, strict=True)]
        return replace(group, scores=tuple(scores))

    def _of(self, task: Task, rollout: Rollout) -> list[SpanScore]:
        spans: list[SpanScore] = []
        before: Call | None = None
        for call in rollout.calls:
            if not is_turn(call):
                before = call if call.shared else before
                continue
            spans.append(at_end(call, self.name, self._earned_value(task, before, call.text)))
            before = call
        return spans

    def _earned_value(self, task: Task, before: Call | None, text: str) -> float:
        found = [] if before is None else [r.content for r in before.results if r.error is None]
        yes, no = (re.search(pattern, text) is not None for pattern in (self.yes, self.no))
        if before is None or not found or yes == no:
            return 0.0
        useful = max(self.relevance(task, before.text, content) for content in found) > self.threshold
        if useful == yes:
            return self.match
        return self.accept_useless if yes else self.reject_useful
