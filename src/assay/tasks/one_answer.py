"""Whether a task has one right answer alone, and where that answer stands in the oracle's text."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from assay.core.protocols import TaskSource, Verifier
from assay.core.task import Task
from assay.tasks.mixture import TaskMixture
from assay.tasks.problems import Problems
from assay.verify.answer_templates import PLACE
from assay.verify.composite import CompositeVerifier
from assay.verify.exact import ExactMatch
from assay.verify.routing import Routed

__all__ = ["has_one_answer", "oracle_answer"]

_OURS = ("assay", "assay_tasks")


def has_one_answer(source: TaskSource, task: Task) -> bool:
    """Whether every other answer than the oracle's is wrong, so that near misses, hedges and denials show what is accepted.

    What the family declares as ``unique`` holds: of `Problems` the arm's `Problem.unique`, of any other family its attribute.
    Where it declares nothing, there is one answer if the verifier compares texts (`ExactMatch`), or is none of assay's own and
    the private answer is a text: a verifier of one's own is taken for strict until its author says that several answers are
    right.

    >>> from assay.tasks import family
    >>> arithmetic = family("arithmetic")
    >>> has_one_answer(arithmetic, arithmetic.task("arithmetic/expression", 1, "train", 0))
    False
    """
    if isinstance(source, TaskMixture):
        return has_one_answer(source.source(task.arm), task)
    declared = source.problem(task.arm).unique if isinstance(source, Problems) else getattr(source, "unique", None)
    if isinstance(declared, bool):
        return declared
    verifier = source.verifier()
    verifier = verifier.route(task) if isinstance(verifier, Routed) else verifier
    return isinstance(verifier, ExactMatch) or (_is_own(verifier) and isinstance(task.private.get("answer"), str))


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


def _is_own(verifier: Verifier) -> bool:
    """Whether a verifier, a part of it, or the function that it calls is none of assay's."""
    if isinstance(verifier, CompositeVerifier):
        return any(map(_is_own, verifier.members))
    called = cast("Callable[..., object] | None", getattr(verifier, "fn", None)) or type(verifier)
    return str(getattr(called, "__module__", "")).partition(".")[0] not in _OURS
