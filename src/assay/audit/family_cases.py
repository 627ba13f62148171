"""What an audit asks about where a task family is named: its own held-out tasks, with the answers of its oracle."""

from __future__ import annotations

from itertools import cycle, islice

from assay.audit.cases import AuditCase
from assay.core.errors import ConfigError
from assay.core.protocols import TaskSource
from assay.core.seeds import generator
from assay.core.task import Task
from assay.tasks.one_answer import has_one_answer, oracle_answer

__all__ = ["family_cases"]


def family_cases(source: TaskSource, n: int, seed: int = 0) -> list[AuditCase]:
    """Held-out tasks of a family, arm by arm in turn and from the lowest level up.

    The right answer is the oracle's. Others are taken for wrong where the task has one right answer alone (`has_one_answer`):
    elsewhere the verifier judges whether an answer is right, of which there may be many.

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
    arms = source.arms()
    places = [
        (arm, depth) for depth in range(max(map(len, arms.values()))) for arm, levels in arms.items() if depth < len(levels)
    ]
    out: list[AuditCase] = []
    for number, (arm, depth) in enumerate(islice(cycle(places), n)):
        task = source.task(arm, arms[arm][depth], "test", seed * n + number // len(places))
        out.append(_case(source, task))
    return out


def _case(source: TaskSource, task: Task) -> AuditCase:
    turns = source.trace(task, 0.0, generator("audit/oracle", 0, index=task.id))
    if source.environment(task.public_view()) is not None or (turns is not None and len(turns) != 1):
        raise ConfigError(
            f"{task.arm}: its tasks are answered in several turns, and an audit judges single answers; 'assay tasks check "
            f"{source.name}' plays them; other arms can be audited as FAMILY/ARM"
        )
    if turns is None:
        raise ConfigError(f"{task.arm}: the family has no oracle, so no right answer is known; give --cases FILE.jsonl")
    answer, template = oracle_answer(source, task, turns[0].content)
    return AuditCase(task=task, solutions=(answer,), unique=has_one_answer(source, task), template=template)
