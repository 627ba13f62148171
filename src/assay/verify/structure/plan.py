"""Plans that are carried out step by step."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, cast

from assay.core.errors import DataError
from assay.core.import_path import filed_as
from assay.core.score import Score
from assay.verify.answer_verifier import AnswerPlace, AnswerVerifier, answer_in, option, verdict_score
from assay.verify.structure.planning_domains import domain_of

__all__ = ["PlanVerifier"]

_BETWEEN = re.compile(r"[,;\n]")
_NUMBERED = re.compile(r"(?:[0-9]{1,4}[.)]|[-*•])[ \t]")
_LONG = 10_000


@filed_as("assay.verify.structure.plan:Plan")
@dataclass(frozen=True, slots=True)
class PlanVerifier(AnswerVerifier):
    """``valid`` is 1 when every action is legal and the last leaves the goal reached; ``correct``, when they are also no more
    than the gold's ``most``.

    The gold describes a small world: ``{"world": "jugs", "sizes": [3, 5], "target": 4}``; ``hanoi`` has ``pegs`` and ``goal``,
    ``pancakes`` a ``stack``, ``lights`` and ``warehouse`` ``rows`` of text, ``slide`` ``rows`` of numbers, ``blocks`` ``stacks``
    and ``goal``; the module ``assay.verify.structure.planning_domains`` says how each acts. Without ``most`` any plan is right.
    An answer
    is actions between commas, semicolons or line ends, numbered or not; case does not matter. Of actions that are one letter,
    several may stand together.

    Attributes:
        where: in which part of the text the answer stands (`assay.verify.AnswerPlace`).

    Raises:
        UnknownNameError: ``where`` is no place.
        DataError: the gold describes no world.

    >>> from assay.verify.rollouts import task_and_rollout
    >>> gold = {"world": "jugs", "sizes": [3, 5], "target": 2, "most": 2}
    >>> plans = ("fill B, pour B A", "fill A, fill B", "pour A B", "fill A, empty A, fill B, pour B A")
    >>> [PlanVerifier()(*task_and_rollout(gold, said)).info["verdict"] for said in plans]
    ['equal', 'different', 'invalid', 'suboptimal']
    """

    where: AnswerPlace = AnswerPlace.AUTO

    def __post_init__(self) -> None:
        option(AnswerPlace, self.where, "Plan.where")

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("correct", "valid")

    def rule(self, gold: Any, text: str) -> Score:
        """Carry it out."""
        world = domain_of(gold)
        most = cast("dict[str, Any]", gold).get("most")
        if most is not None and (not isinstance(most, int) or isinstance(most, bool)):
            raise DataError(f"the gold's 'most' is {most!r}; give a whole number of actions, or leave it out")
        state = world.start
        words = {word.casefold() for word in world.moves(state)}
        actions = _actions(answer_in(text, self.where) or "", letters=all(len(word) == 1 and word.isalpha() for word in words))
        if not actions or len(actions) > _LONG:
            return self.nothing("unparsed")
        for number, action in enumerate(actions, 1):
            after = {word.casefold(): other for word, other in world.moves(state).items()}
            if action not in after:
                return self.nothing("invalid", why=f"action {number}, {action[:40]!r}, is not possible")
            state = after[action]
        if not world.done(state):
            return self.nothing("different", why="the goal is not reached")
        right = most is None or len(actions) <= most
        return verdict_score("equal" if right else "suboptimal", {"correct": float(right), "valid": 1.0}, steps=len(actions))


def _actions(place: str, letters: bool) -> list[str]:
    parts = [_NUMBERED.sub("", part.strip(" \t\r()[]{}\"'`."), count=1) for part in _BETWEEN.split(place.strip(" \t\r\n()[]{}"))]
    actions = [" ".join(part.strip(" \t\r()[]{}\"'`.").casefold().split()) for part in parts]
    actions = [action for action in actions if action]
    return [letter for action in actions for letter in action.replace(" ", "")] if letters else actions
