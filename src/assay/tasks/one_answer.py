"""Whether a task has one right answer alone, and where that answer stands in the oracle's text."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from assay.core.protocols import TaskSource, Verifier
from assay.core.task import Task
from assay.tasks.mixture import TaskMixture
from assay.tasks.problems import Problems
from assay.verify.abilities import ability_of
from assay.verify.answer_templates import PLACE
from assay.verify.composite import CompositeVerifier
from assay.verify.exact import ExactMatch, Together
from assay.verify.routing import Routed
from assay.verify.text.choice import Choice
from assay.verify.text.number import Numeric

__all__ = ["has_one_answer", "leaves_open", "oracle_answer"]

_OURS = ("assay", "assay_tasks")
_COMPARE = (ExactMatch, Numeric, Choice)
"""Verifiers for which one text, number or letter is right."""


def has_one_answer(source: TaskSource, task: Task) -> bool:
    """Whether every other answer than the oracle's is wrong, so that near misses, hedges and denials show what is accepted.

    What the family declares as ``unique`` holds: of `Problems` the arm's `Problem.unique`, of any other family its attribute.
    Where it declares nothing, there is one answer if the verifier compares texts, numbers or letters (`ExactMatch`, `Numeric`,
    `Choice`, also as the part of a `Together` that gives ``correct``), or is none of assay's own and the private answer is a
    text: a verifier of one's own is taken for strict until its author says that several answers are right.

    >>> from assay.tasks import family
    >>> sort, graphs = family("sort"), family("graphs/path")
    >>> has_one_answer(sort, sort.task("sort", 3, "train", 0)), has_one_answer(graphs, graphs.task("graphs/path", 5, "train", 0))
    (True, False)
    """
    verifier, declared = _judged_by(source, task)
    if declared is not None:
        return declared
    return isinstance(verifier, _COMPARE) or (_is_own(verifier) and isinstance(task.private.get("answer"), str))


def leaves_open(source: TaskSource, task: Task) -> bool:
    """Whether nobody says if other answers than the oracle's are right, though one alone may be.

    So it is where the family declares no ``unique``, `has_one_answer` cannot tell, and the private answer is a text or the
    verifier none of assay's own.

    >>> from assay.tasks import Rows
    >>> from assay.verify import MathAnswer
    >>> rows = Rows([{"prompt": "Half of 1?", "answer": "1/2"}], scorer=MathAnswer(), test_share=0.0)
    >>> leaves_open(rows, rows.task("rows", 1, "train", 0))
    True
    """
    verifier, declared = _judged_by(source, task)
    if declared is not None or has_one_answer(source, task):
        return False
    return isinstance(task.private.get("answer"), str) or _is_own(verifier)


def oracle_answer(source: TaskSource, task: Task, text: str) -> tuple[str, str]:
    """The answer in an oracle's text without its form, and the form, with `PLACE` in it; the whole text where none is found.

    Args:
        source: the task's family.
        task: the task.
        text: the oracle's last turn.
    """
    if isinstance(source, TaskMixture):
        return oracle_answer(source.source(task.arm), task, text)
    if isinstance(source, Problems):
        answer = source.solution(task).answer
        form = source.form.format_answer(PLACE)
        if "\n" in answer:  # which stands on lines of its own
            form = source.form.format_answer(f"{PLACE}\n").replace(f"{PLACE}\n", PLACE)
        return (answer, form) if text.endswith(form.replace(PLACE, answer)) else (text, PLACE)
    gold: object = task.private.get("answer")
    return (gold if isinstance(gold, str) and gold == text else text), PLACE


def _judged_by(source: TaskSource, task: Task) -> tuple[Verifier, bool | None]:
    """What judges a task's answers, of several verifiers side by side the one that says ``correct``, and what is declared."""
    if isinstance(source, TaskMixture):
        return _judged_by(source.source(task.arm), task)
    declared = source.problem(task.arm).unique if isinstance(source, Problems) else getattr(source, "unique", None)
    verifier = source.verifier()
    verifier = verifier.route(task) if isinstance(verifier, Routed) else verifier
    if isinstance(verifier, Together) and not _is_own(verifier):
        verifier = next((part for part in verifier.parts if "correct" in ability_of(part, "names")), verifier)
    return verifier, declared if isinstance(declared, bool) else None


def _is_own(verifier: Verifier) -> bool:
    """Whether a verifier, a part of it, or the function that it calls is none of assay's."""
    if isinstance(verifier, CompositeVerifier):
        return any(map(_is_own, verifier.members))
    called = cast("Callable[..., object] | None", getattr(verifier, "fn", None)) or type(verifier)
    return str(getattr(called, "__module__", "")).partition(".")[0] not in _OURS
