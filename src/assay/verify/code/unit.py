"""Programs judged by test code that runs beside them."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.core.errors import DataError
from assay.sandbox.result import Program, Result
from assay.verify.code.base import CaseVerifier, Gold, short
from assay.verify.code.cases import FILE, Case

__all__ = ["INSIDE", "UnitTests"]

INSIDE = (Path(__file__).parent / "inside.py").read_text()
"""What runs in the contained process before the program does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTests(CaseVerifier):
    """A program passes pieces of test code, written as ``assert`` statements about its names. Prefer `CodeCall`, which holds.

    ``private["tests"]`` is a list of such pieces. Each has a process of its own: the program is imported as a module, then the
    piece runs on its names, with the builtins as they were before the program came. The verdict is a value that must carry a
    token drawn for this run; exit codes and what is printed count for nothing. Components and verdicts are those of
    `CaseVerifier`.

    **The program shares the process with its tests, so it can cheat.** Of the usual hacks one passes: an object whose ``__eq__``
    says yes to everything. A program that walks the frames above it finds the token and the tests, and one that patches a module
    which the tests import is believed. Where a test is a call and a value, make it a case of `CodeCall`: there no hack passes.

    Raises:
        DataError: the tests are not of that form.

    >>> from assay.verify import posed
    >>> score = UnitTests()(*posed({"tests": ["assert f(2) == 4", "assert f(3) == 9"]}, "def f(x): return x * 2"))
    >>> dict(score.components), score.info["cases"]
    ({'correct': 0.0, 'fraction': 0.5, 'ran': 1.0}, ('passed', 'wrong'))
    """

    def cases(self, gold: Gold) -> Sequence[Case]:
        """One for each piece."""
        return [self._case(i, test) for i, test in enumerate(gold.items("tests"))]

    def _case(self, index: int, test: object) -> Case:
        if not isinstance(test, str) or not test.strip():
            raise DataError(f"private['tests'][{index}] is {short(test)}; give test code as text, as in 'assert f(2) == 4'")
        try:
            compile(test, f"private['tests'][{index}]", "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            raise DataError(f"private['tests'][{index}] is no Python: {error}") from None
        return _Asserted(test, secrets.token_hex(16))


@dataclass(frozen=True, slots=True)
class _Asserted(Case):
    test: str
    token: str

    def program(self, source: str) -> Program:
        files = {FILE: source.encode("utf-8", "surrogatepass")}
        return Program(code=INSIDE, entry="unit", arguments=(self.test, self.token), files=files)

    def passes(self, result: Result) -> bool:
        return result.value == [self.token, "passed"]
