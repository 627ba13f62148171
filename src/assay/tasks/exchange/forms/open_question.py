"""Multiple choice asked as an open question: without its options, answered by the text of the right one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from assay.tasks.exchange.forms.choice import options_shown
from assay.tasks.exchange.forms.route import Asked, Route, Unsupported
from assay.tasks.exchange.forms.text import by_gold

__all__ = ["MOST_WORDS", "open_question"]

MOST_WORDS = 10
"""Of an answer that can be judged when it is said in words."""

_NEEDS_OPTIONS = re.compile(
    r"(?i)\b(?:of|from|among) (?:the )?(?:following|these|those|below|above)\b|\bfollowing\b[^.?]*[:?]?\s*$|\bexcept\b"
    r"|\bwhich (?:statement|sentence|option|choice|answer)s?\b|\bbest (?:describes|answers|explains|completes)\b"
)
_NAMES_OPTIONS = re.compile(
    r"(?i)^(?:all|none|both|neither|any|either)\b.*\b(?:of|above|these|those|and)\b|^[A-H] (?:and|or) [A-H]$"
)
_KEEP = "'choice', as it stands (without --choices open)"


def open_question(route: Route, question: str) -> Route:
    r"""The route of a row of multiple choice as an open question; any other route as it is.

    Source: Nemotron-CrossThink (arXiv 2504.13941), whose rows in open form alone trained best; it drops questions that mean
    nothing without their options, and answers of more than ten words.

    Args:
        route: as the row's form was recognised.
        question: its text.

    Raises:
        Unsupported: the question means nothing without its options or shows them in its text, or the answer is long or names
            other options.

    >>> asked = {"answer": "B", "options": {"A": "iron", "B": "gold"}}
    >>> route = Route(form="multiple choice", verifier="choice", answer=asked, behind="\nA. iron\nB. gold")
    >>> found = open_question(route, "Which metal is Au?")
    >>> found.answer, found.behind, found.form
    ('gold', '', 'open question')
    """
    if route.verifier != "choice" or isinstance(route.answer, str):
        return route
    answer = cast("Mapping[str, Any]", route.answer)
    options: Mapping[str, str] = answer["options"]
    text = options[answer["answer"]].strip().rstrip(".")
    if not route.behind or options_shown(question, options):
        raise Unsupported("its question shows the options in its own text", _KEEP)
    if _NEEDS_OPTIONS.search(question):
        raise Unsupported(f"its question, {question[-80:]!r}, means nothing without its options", _KEEP)
    if _NAMES_OPTIONS.search(text):
        raise Unsupported(f"its answer, {text!r}, is about its options", _KEEP)
    if len(text.split()) > MOST_WORDS:
        raise Unsupported(f"its answer has {len(text.split())} words, which no open answer says again one by one", _KEEP)
    found = by_gold(Asked(question=question, gold=text, solution="", source="rows"))
    return replace(route, form="open question", verifier=found.verifier, answer=found.answer, behind="")
