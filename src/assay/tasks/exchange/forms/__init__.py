"""What rows of well-known data sets look like, and which verifier judges each: recognised by their fields, kinds and sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assay.tasks.exchange.forms import choice, code, other, text
from assay.tasks.exchange.forms.route import Asked, Form, Route, Unsupported

__all__ = ["FORMS", "Asked", "Route", "Unsupported", "known_route", "route_of"]

FORMS: tuple[Form, ...] = (*other.REFUSED, other.own_repositories, *code.FORMS, *choice.FORMS, *other.FORMS, *text.FORMS)
"""Forms in the order in which they are tried; the first that knows a row decides."""


def route_of(row: Mapping[str, Any], asked: Asked, fallback: Callable[[Asked], Route] = text.by_gold) -> Route:
    """How a row is judged.

    Args:
        row: as it came.
        asked: what was read of it so far: question, gold, solution, source.
        fallback: for a row that no form knows: decides by the kind of its gold.

    Raises:
        Unsupported: nothing here could judge it rightly; says why, and the nearest route.

    >>> row = {"question": "Capital of Italy?", "choices": ["Paris", "Rome"], "answer": 1}
    >>> found = route_of(row, Asked(question="Capital of Italy?", gold=1, solution="", source="rows", option_base=0))
    >>> found.verifier, found.answer["answer"]
    ('choice', 'B')
    """
    return known_route(row, asked) or fallback(asked)


def known_route(row: Mapping[str, Any], asked: Asked) -> Route | None:
    """How a row of a known form is judged; None where no form knows it.

    Raises:
        Unsupported: its form is known, and nothing here could judge it rightly.
    """
    return next((found for form in FORMS if (found := form(row, asked)) is not None), None)
