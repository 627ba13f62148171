"""What a form of rows says of one: its verifier, its gold in that verifier's form, what is put to the policy."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from assay.core.canon import plain
from assay.core.errors import DataError
from assay.tasks.verifier_spec import Spec

__all__ = ["Asked", "Form", "Route", "Unsupported", "as_json", "first_text", "nested_field", "texts_in"]


class Unsupported(DataError):
    """A row that no verifier here can judge rightly as it is.

    Args:
        reason: what is missing or different.
        nearest: the route that comes nearest, and what it would take.
    """

    def __init__(self, reason: str, nearest: str) -> None:
        super().__init__(f"{reason}; nearest: {nearest}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was read of a row before its form is known.

    Attributes:
        question: its text; of a conversation the last turn of the user, "" where none was found.
        gold: as it stands; None where there is none under a usual name.
        solution: worked, "" where there is none.
        source: name of the data set, "rows" where none is known.
        option_base: number of the first option where golds are numbers, 0 or 1; None: the row alone must tell.
    """

    question: str
    gold: Any
    solution: str
    source: str
    option_base: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """How a row is judged.

    Attributes:
        form: what it was recognised as.
        verifier: its name, or a table of name and settings.
        answer: the gold in that verifier's form.
        question: what is asked, in the place of the row's own; "" leaves that.
        before, behind: what is put before the question and behind it.
        solution: an answer that is right, where one is known: a program, a worked text.
        uses: fields that stand in ``answer`` or the question now, and are not kept a second time.
    """

    form: str
    verifier: Spec
    answer: Any
    question: str = ""
    before: str = ""
    behind: str = ""
    solution: str = ""
    uses: tuple[str, ...] = ()


Form = Callable[[Mapping[str, Any], Asked], Route | None]
"""Knows a row or not; raises `Unsupported` for one that it knows and nothing here can judge."""


def as_json(value: Any) -> Any:
    """JSON text as its value; anything else as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return plain(value) if isinstance(value, Mapping | list | tuple) else value


def nested_field(row: Mapping[str, Any], *names: str) -> Any:
    """A field of a field; None where there is none."""
    value: Any = row
    for name in names:
        value = cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else None
    return value


def first_text(row: Mapping[str, Any], *names: str) -> str:
    """The first of the fields that holds text; "" without one."""
    return next((v for name in names if isinstance(v := row.get(name), str) and v.strip()), "")


def texts_in(value: Any) -> list[str] | None:
    """A list of texts and numbers as texts; None for anything else."""
    value = plain(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
    if isinstance(value, list) and value and all(isinstance(x, str | int | float) for x in cast("list[Any]", value)):
        return [str(x) for x in cast("list[Any]", value)]
    return None
