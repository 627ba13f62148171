"""Who is what: a role for every name, as in puzzles of knights and knaves."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, cast

from assay.core.errors import DataError
from assay.core.score import Score
from assay.verify.answer_verifier import AnswerPlace, AnswerVerifier, answer_in, option, verdict_score
from assay.verify.structure.reading import table_in

__all__ = ["Assignment"]

_IS = re.compile(r"\b(\w{1,40}) (?:is|are) (?:a |an |the )?(\w{1,40})\b")


@dataclass(frozen=True, slots=True)
class Assignment(AnswerVerifier):
    """``correct`` is 1 when every name has the gold's role; ``fraction`` is the share of names that have.

    The gold is ``{"Ann": "knight", "Bob": "knave"}``. An answer is a table, ``Ann: knight, Bob: knave``, a JSON object, or
    sentences, ``Ann is a knight and Bob is a knave.`` Case does not matter. A name given two roles, or a role that nobody has
    in the gold nor in ``roles``, makes an answer ``unparsed``.

    Attributes:
        roles: that there are besides those in the gold.
        where: in which part of the text the answer stands (`assay.verify.AnswerPlace`).

    Raises:
        UnknownNameError: ``where`` is no place.
        DataError: the gold is no table.

    >>> from assay.verify.rollouts import task_and_rollout
    >>> gold = {"Ann": "knight", "Bob": "knave"}
    >>> dict(Assignment()(*task_and_rollout(gold, "So Ann is a knight, and Bob is a knight.")).components)
    {'correct': 0.0, 'fraction': 0.5}
    """

    roles: tuple[str, ...] = ("knight", "knave")
    where: AnswerPlace = AnswerPlace.AUTO

    def __post_init__(self) -> None:
        option(AnswerPlace, self.where, "Assignment.where")

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("correct", "fraction")

    def rule(self, gold: Any, text: str) -> Score:
        """Compare the roles."""
        if not isinstance(gold, dict) or not gold:
            raise DataError(f"the gold {gold!r} is no table of roles, such as {{'Ann': 'knight'}}")
        wanted = {str(k).casefold(): str(v).casefold() for k, v in cast("dict[str, Any]", gold).items()}
        said = self._roles_of(answer_in(text, self.where) or "", wanted)
        if said is None:
            return self.nothing("unparsed")
        share = sum(said.get(name) == role for name, role in wanted.items()) / len(wanted)
        right = said == wanted
        return verdict_score("equal" if right else "different", {"correct": float(right), "fraction": share})

    def _roles_of(self, place: str, wanted: dict[str, str]) -> dict[str, str] | None:
        """The roles that an answer gives, by name; None where it gives none, or contradicts itself."""
        table = table_in(place)
        pairs = list(table.items()) if table else [(a, b) for a, b in _IS.findall(place) if a.casefold() in wanted]
        roles = {r.casefold() for r in self.roles} | set(wanted.values())
        out: dict[str, str] = {}
        for name, role in pairs:
            name, role = name.casefold(), role.casefold().removeprefix("a ").removeprefix("an ")
            if role not in roles or out.setdefault(name, role) != role:
                return None
        return out or None
