"""What an audit asks about where a task family is named: its own held-out tasks, with the answers of its oracle."""

from __future__ import annotations

from itertools import cycle, islice

from assay.audit.cases import AuditCase
from assay.audit.probes import PLACE
from assay.core.errors import ConfigError
from assay.core.protocols import TaskSource, Verifier
from assay.core.seeds import generator
from assay.core.task import Task
from assay.tasks.problems import Problems
from assay.verify.exact import ExactMatch
from assay.verify.routing import Routed

__all__ = ["family_cases"]


def family_cases(source: TaskSource, n: int, seed: int = 0) -> list[AuditCase]:
    """Held-out tasks of a family, arm by arm in turn and from the lowest level up.

    The right answer is the oracle's. Others are taken for wrong only where the verifier compares texts: any other judges whether
    an answer is right, of which there may be many.

    Args:
        source: the family.
        n: how many.
        seed: another one takes other tasks.

    Raises:
        ConfigError: a task has no oracle, or is answered in several turns.

    >>> from assay.tasks import family
    >>> [(case.task.arm, case.unique) for case in family_cases(family("arithmetic/expression"), 2)]
    [('arithmetic/expression', False), ('arithmetic/expression', False)]
    """
    arms, verifier = source.arms(), source.verifier()
    places = [
        (arm, depth) for depth in range(max(map(len, arms.values()))) for arm, levels in arms.items() if depth < len(levels)
    ]
    out: list[AuditCase] = []
    for number, (arm, depth) in enumerate(islice(cycle(places), n)):
        task = source.task(arm, arms[arm][depth], "test", seed * n + number // len(places))
        out.append(_case(source, task, verifier.route(task) if isinstance(verifier, Routed) else verifier))
    return out


def _case(source: TaskSource, task: Task, verifier: Verifier) -> AuditCase:
    unique = isinstance(verifier, ExactMatch)
    turns = source.trace(task, 0.0, generator("audit/oracle", 0, index=task.id))
    if source.environment(task.public_view()) is not None or (turns is not None and len(turns) != 1):
        raise ConfigError(
            f"{task.arm}: its tasks are answered in several turns, and an audit judges single answers; 'assay tasks check "
            f"{source.name}' plays them; other arms can be audited as FAMILY/ARM"
        )
    if turns is None:
        raise ConfigError(f"{task.arm}: the family has no oracle, so no right answer is known; give --cases FILE.jsonl")
    answer, template = _answer(source, task, turns[0].content)
    return AuditCase(task=task, solutions=(answer,), unique=unique, template=template)


def _answer(source: TaskSource, task: Task, text: str) -> tuple[str, str]:
    """A right answer without its form, and the form; the oracle's whole text where the answer is not found in it."""
    if isinstance(source, Problems):
        answer = source.solution(task).answer
        form = source.form.format_answer(PLACE)
        return (answer, form) if text.endswith(form.replace(PLACE, answer)) else (text, PLACE)
    gold: object = task.private.get("answer")
    return (gold if isinstance(gold, str) and gold == text else text), PLACE
