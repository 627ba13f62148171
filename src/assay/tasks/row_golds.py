"""Whether a row that names a verifier has the gold that this verifier reads, where it looks for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

from assay.core.errors import DataError, a_kind, nearest
from assay.verify.catalog import about, verifiers

__all__ = ["check_gold"]

_FREE = ("none", "that of", "a regular expression")
"""How the golds begin that a row need not have."""


def check_gold(row: Mapping[str, Any], name: str, place: str) -> None:
    """Raises DataError where a row lacks the gold of the verifier that it names, or has none of its fields.

    Every verifier reads the row's column ``answer``.

    Args:
        row: of the user.
        name: of the verifier; one that is not assay's is not looked at.
        place: which row, for the message.

    >>> check_gold({"prompt": "1+1", "anwser": "red"}, "set", "row 1")
    Traceback (most recent call last):
        ...
    assay.core.errors.DataError: row 1 has no 'answer', which is where the verifier 'set' reads its gold: a list. \
Rename 'anwser' to 'answer'. The row has ['anwser', 'prompt']
    """
    if name not in verifiers() or (form := _form(name)).startswith(_FREE):
        return
    fields = re.findall(r"'(\w+)':", _outer(form)) if form.startswith("{") else []
    answer: Any = row.get("answer")
    if answer is None:
        raise DataError(
            f"{place} has no 'answer', which is where the verifier {name!r} reads its gold: {form}. {_fix(row, fields)}. The row "
            f"has {sorted(row)}"
        )
    if not fields or " or " in (outer := _outer(form)) or "either" in outer:
        return
    if not isinstance(answer, Mapping):
        raise DataError(f"{place}, field 'answer' is {a_kind(answer)}; the verifier {name!r} reads {form} there")
    inside = cast("Mapping[str, Any]", answer)
    if not set(fields) & set(inside):
        close = next((f"; rename {found!r} to {f!r}" for f in fields if (found := nearest(f, inside))), "")
        raise DataError(
            f"{place}, field 'answer' has {sorted(inside)}, none of what the verifier {name!r} reads there: {form}{close}"
        )


@cache
def _form(name: str) -> str:
    """What the gold of a verifier must be, in words."""
    return about(name).gold


def _outer(form: str) -> str:
    """The form without what stands in inner brackets."""
    inner = form[1:]
    while (shorter := re.sub(r"\{[^{}]*\}", "", inner)) != inner:
        inner = shorter
    return inner


def _fix(row: Mapping[str, Any], fields: list[str]) -> str:
    if there := [name for name in fields if name in row]:
        return f'Put {", ".join(map(repr, there))} into it: "answer": {{"{there[0]}": ...}}'
    close = nearest("answer", row) or next((c for f in fields if (c := nearest(f, row))), None)
    usual = next((name for name in ("gold", "label", "target", "ground_truth", "expected") if name in row), None)
    return f"Rename {close or usual!r} to 'answer'" if close or usual else "Add it"
