"""Programs to read: the family."""

from __future__ import annotations

from assay.tasks.problems import Problems
from assay_tasks.code.machines import Registers, Stack, Tape
from assay_tasks.code.predict import Complete, Executions, FindInput, Output, Trace, Variable
from assay_tasks.code.texts import Matches, Strings

__all__ = ["code"]


def code() -> Problems:
    """Questions about what programs do, in nine languages and on small machines."""
    problems = (
        Output(),
        Variable(),
        Trace(),
        Executions(),
        FindInput(),
        Complete(),
        Stack(),
        Registers(),
        Tape(),
        Strings(),
        Matches(),
    )
    return Problems(name="code", summary="Programs to read, in nine languages.", problems=problems)
