"""Providers of rewards for single turns: of calls of tools, and of tagged thoughts (RLVMR)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError
from assay.core.group import Group
from assay.core.rollout import ASIDE, Call, Rollout
from assay.core.score import Score, SpanScore
from assay.train.columns import Live, Moment

__all__ = ["INVALID", "META_TAG", "MetaReasoning", "ToolReward", "at_end", "is_turn"]

META_TAG, INVALID = "meta_tag", "invalid_action"
"""Token columns: the number of a turn's tag, and 1 where its action failed, at its last token."""

_TAGS: Mapping[str, str] = FrozenMap({tag: rf"(?s)<{tag}>.*?</{tag}>" for tag in ("planning", "explore", "reflection")})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReward:
    """A number for each turn by what its calls of tools did, at the turn's last token: for `TokenReward`, which pays it there.

    Attributes:
        name: of the token column.
        answered: for each call that a tool answered.
        failed: for each call that ended in an error, one of the policy's or the tool's.
        cost: factor of `ToolResult.cost`, which is taken off.

    Raises:
        ConfigError: all of them are 0.

    >>> ToolReward(failed=-0.1).moment
    'group'
    """

    name: str = "tool_reward"
    answered: float = 0.0
    failed: float = 0.0
    cost: float = 0.0
    moment: ClassVar[Moment] = "group"

    def __post_init__(self) -> None:
        if not (self.answered or self.failed or self.cost):
            raise ConfigError("ToolReward pays for nothing; set answered, failed or cost")

    def provide(self, live: Live, rows: Sequence[Group]) -> list[Group]:
        """The groups with the column."""
        return [_with_spans(group, [self._of(r) for r in group.rollouts]) for group in rows]

    def _of(self, rollout: Rollout) -> list[SpanScore]:
        return [at_end(call, self.name, self._pay_call(call)) for call in rollout.calls if is_turn(call)]

    def _pay_call(self, call: Call) -> float:
        return sum((self.failed if r.error is not None else self.answered) - self.cost * r.cost for r in call.results)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaReasoning:
    """Rule rewards of tagged turns (RLVMR): columns ``meta_reward``, ``meta_tag`` and ``invalid_action``, at a turn's last token.

    *planning* earns 1 where the rollout ends in success; *explore* where its action was not already taken validly before;
    *reflection* where the action before was invalid and this is another one. An action is what a turn says besides the tagged
    text; it is invalid where a tool or the environment answered it with an error, and has then no tag and no reward. Numbers of
    tags: 1, 2, 3.

    Attributes:
        name: of the column of rewards.
        planning, explore, reflection: regular expressions that tell a turn's tag; the first that is found counts. The defaults
            are tags in angle brackets; give others for policies that write none, such as ``(?=[?])`` for turns with a question
            mark. Empty: nothing has that tag.
        magnitude: of a reward.
        success: of the task's metric, from which on a rollout ended in success.

    Raises:
        ConfigError: a pattern that is none, or no magnitude.

    Source: RLVMR (arXiv 2507.22844).
    """

    name: str = "meta_reward"
    planning: str = _TAGS["planning"]
    explore: str = _TAGS["explore"]
    reflection: str = _TAGS["reflection"]
    magnitude: float = 1.0
    success: float = 1.0
    moment: ClassVar[Moment] = "group"
    _patterns: tuple[re.Pattern[str] | None, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.magnitude > 0:
            raise ConfigError(f"MetaReasoning.magnitude={self.magnitude}; use a positive number")
        found: list[re.Pattern[str] | None] = []
        for tag in ("planning", "explore", "reflection"):
            try:
                found.append(re.compile(getattr(self, tag)) if getattr(self, tag) else None)
            except re.error as error:
                raise ConfigError(f"MetaReasoning.{tag}={getattr(self, tag)!r} is no regular expression: {error}") from None
        object.__setattr__(self, "_patterns", tuple(found))

    def provide(self, live: Live, rows: Sequence[Group]) -> list[Group]:
        """The groups with the columns."""
        return [_with_spans(group, [self._of(r, s) for r, s in zip(group.rollouts, group.scores, strict=True)]) for group in rows]

    def _of(self, rollout: Rollout, score: Score) -> list[SpanScore]:
        spans: list[SpanScore] = []
        taken: set[str] = set()
        before: tuple[str, bool] | None = None  # the last turn's action, and whether it was valid
        for call in rollout.calls:
            if not is_turn(call):
                continue
            tag, action = self.read(call.text)
            valid = all(result.error is None for result in call.results)
            rules = (
                score.valid and score.primary >= self.success,
                action not in taken,
                before is not None and not before[1] and before[0] != action,
            )
            earned = self.magnitude * rules[tag - 1] if valid and tag else 0.0
            numbers = {self.name: earned, META_TAG: float(tag * valid), INVALID: float(not valid)}
            spans += [at_end(call, name, value) for name, value in numbers.items()]
            if valid:
                taken.add(action)
            before = (action, valid)
        return spans

    def read(self, text: str) -> tuple[int, str]:
        """The number of a turn's tag, 0 for none, and its action.

        >>> MetaReasoning().read("<explore>What is left?</explore> go north")
        (2, 'go north')
        """
        for number, pattern in enumerate(self._patterns, 1):
            found = pattern.search(text) if pattern is not None else None
            if found is not None:
                return number, (text[: found.start()] + text[found.end() :]).strip()
        return 0, text.strip()


def is_turn(call: Call) -> bool:
    """Whether a call is a turn of the policy that this rollout sampled, and not an aside."""
    return call.role != ASIDE and not call.shared and len(call.completion.ids) > 0


def at_end(call: Call, name: str, value: float) -> SpanScore:
    """A value at a turn's last token."""
    return SpanScore(call.id, 0, len(call.completion.ids), name, value)


def _with_spans(group: Group, spans: Sequence[list[SpanScore]]) -> Group:
    scores = tuple(replace(x, spans=(*x.spans, *more)) if x.valid else x for x, more in zip(group.scores, spans, strict=True))
    return replace(group, scores=scores)
