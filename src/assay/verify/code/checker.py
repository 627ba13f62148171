"""Special judges: a function of the task that says whether a printed text is right, run in the sandbox."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from assay.core.errors import DataError
from assay.sandbox.limits import Limits
from assay.sandbox.result import Result, SandboxProgram
from assay.sandbox.sandbox import Sandbox
from assay.verify.code.base import short
from assay.verify.code.cases import Unjudged

__all__ = ["Checker", "accepts_its_own", "checker_source"]

_ENTRY = "check"


@dataclass(frozen=True, slots=True)
class Checker:
    """A special judge: what it is shown is text, in a process in which nothing else runs.

    Attributes:
        source: Python with a function ``check(stdin, expected, printed)``.
        sandbox: where it runs; it makes no difference between two judges.
        limits: of each run.
    """

    source: str
    sandbox: Sandbox = field(compare=False)
    limits: Limits

    def run(self, stdin: str, expected: str, printed: str) -> Result:
        """What it says of a printed text.

        Raises:
            Unjudged: the sandbox failed.
        """
        result = self.sandbox.run(
            SandboxProgram(code=self.source, entry=_ENTRY, arguments=(stdin, expected, printed)), self.limits
        )
        if not result.judged:
            raise Unjudged(result)
        return result

    def accepts(self, stdin: str, expected: str, printed: str) -> bool:
        """Whether a printed text is right; one on which it raises, returns nothing or exceeds a limit is not.

        Raises:
            DataError: it returned something else than a truth value.
            Unjudged: the sandbox failed.
        """
        result = self.run(stdin, expected, printed)
        if result.ok and not isinstance(result.value, bool | None):
            raise DataError(f"private['checker'] returned {short(result.value)}; return True or False")
        return result.ok and result.value is True


def checker_source(found: Any) -> str:
    """The source of a task's checker.

    Raises:
        DataError: it is no Python source.

    >>> checker_source("def check(stdin, expected, printed): return printed == stdin")[:9]
    'def check'
    """
    if not isinstance(found, str):
        raise DataError(f"private['checker'] is {short(found)}; give Python source with check(stdin, expected, printed)")
    try:
        compile(found, "private['checker']", "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise DataError(f"private['checker'] is no Python: {error}") from None
    return found


@lru_cache(maxsize=4096)
def accepts_its_own(checker: Checker, stdin: str, stdout: str, index: int) -> None:
    """Refuses a checker to which the task's own output is wrong: with it no answer could be right.

    Raises:
        DataError: it refuses it, or fails on it; says why.
        Unjudged: the sandbox failed.
    """
    result = checker.run(stdin, stdout, stdout)
    if not result.ok or result.value is not True:
        why = result.stderr.rstrip().rpartition("\n")[2] or (f"it returned {short(result.value)}" if result.ok else result.detail)
        raise DataError(f"private['checker'] does not accept private['tests'][{index}]['stdout']: {why[:200]}")
