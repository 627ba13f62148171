"""Programs judged by what one of their functions returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, cast

from assay.core.errors import ConfigError, DataError
from assay.sandbox.result import Result, SandboxProgram
from assay.verify.code.base import CaseVerifier, Gold, short
from assay.verify.code.cases import FILE, ProgramCase
from assay.verify.code.prelude import PRELUDE, check_prelude, with_prelude
from assay.verify.text.jsonvalue import alike

__all__ = ["CALL", "CodeCall", "same_value"]

CALL = """
import sys

def call(entry, arguments):
    sys.dont_write_bytecode = True
    import solution
    kind, _, method = entry.rpartition(".")
    where = getattr(solution, kind)() if kind else solution
    if not kind and not hasattr(solution, entry) and hasattr(getattr(solution, "Solution", None), entry):
        where = solution.Solution()
    return getattr(where, method)(*arguments)
"""
"""Imports the program and calls its function: what runs in the contained process, with nothing in it that is worth finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeCall(CaseVerifier):
    r"""A function of a program is called, and what it returns is compared with what is expected.

    ``private["entry"]`` names the function, or ``Class.method`` (of an object made without arguments); ``private["tests"]`` is a
    list of ``{"args": list, "expected": value}``. Where the program has no such function but a class ``Solution`` with a
    method of that name, that is called. Each call has a process of its own, in which the program is imported as a
    module, so ``if __name__ == "__main__"`` does not run. The value comes back as JSON and is compared here (`same_value`):
    nothing that the program does to its own process can make a wrong value right. Components and verdicts are those of
    `CaseVerifier`; a value that JSON cannot say (a set, an object) is an ``error``.

    Attributes:
        tolerance: how far a number may be from an expected float, absolute or relative; 0 for exact values.
        typed: a whole number and a float are never equal; otherwise ``1`` equals ``1.0``, as in Python.
        prelude: Python that runs before the program, in its module; imports of names that programs use without saying so.

    Raises:
        ConfigError: a tolerance out of range, or a prelude that is no Python.
        DataError: the tests are not of that form, or a test expects NaN.

    >>> from assay.verify import task_and_rollout
    >>> gold = {"entry": "double", "tests": [{"args": [2], "expected": 4}, {"args": ["a"], "expected": "aa"}]}
    >>> CodeCall()(*task_and_rollout(gold, "def double(x):\n    return x * 2")).components["correct"]
    1.0
    """

    tolerance: float = 0.0
    typed: bool = False
    prelude: str = PRELUDE

    def check(self) -> None:
        """Refuses a tolerance that would accept anything, and a prelude that is no Python."""
        check_prelude(self.prelude, "CodeCall.prelude")
        if not 0.0 <= self.tolerance < 1.0:
            raise ConfigError(f"CodeCall.tolerance is {self.tolerance}; it must be in [0, 1)")

    def cases(self, gold: Gold) -> Sequence[ProgramCase]:
        """One for each test."""
        entry = gold.text("entry")
        if not all(part.isidentifier() for part in entry.split(".")) or entry.count(".") > 1:
            raise DataError(f"private['entry'] is {entry!r}; name a function, or Class.method")
        return [self._case(entry, i, test) for i, test in enumerate(gold.items("tests"))]

    def _case(self, entry: str, index: int, test: Any) -> ProgramCase:
        table = cast("Mapping[str, Any]", test if isinstance(test, Mapping) else {})
        if set(table) != {"args", "expected"} or not isinstance(table["args"], list):
            raise DataError(f"private['tests'][{index}] is {short(test)}; give {{'args': list, 'expected': value}}")
        if not same_value(table["expected"], table["expected"]):
            raise DataError(f"private['tests'][{index}] expects NaN, which equals nothing; expect another value")
        return _Returned(entry, cast("list[Any]", table["args"]), table["expected"], self.tolerance, self.typed, self.prelude)


@dataclass(frozen=True, slots=True)
class _Returned(ProgramCase):
    entry: str
    arguments: list[Any]
    expected: Any
    tolerance: float
    typed: bool
    prelude: str

    def program(self, source: str) -> SandboxProgram:
        files = {FILE: with_prelude(source, self.prelude).encode("utf-8", "surrogatepass")}
        return SandboxProgram(code=CALL, entry="call", arguments=(self.entry, self.arguments), files=files)

    def passes(self, result: Result) -> bool:
        return same_value(self.expected, result.value, self.tolerance, typed=self.typed)


def same_value(expected: Any, given: Any, tolerance: float = 0.0, *, typed: bool = False) -> bool:
    """Whether a value is the expected one, both as JSON carries them.

    Truth values equal truth values only. Numbers are equal by value, or only within their type (``typed``); around an expected
    float there may be a tolerance. NaN equals nothing. Lists and tuples are the same, as are all keys that read the same, for
    JSON has one of each.

    >>> same_value([1, "a"], [1, "a"]), same_value(1, True), same_value(2, 2.0), same_value(2, 2.0, typed=True)
    (True, False, True, False)
    >>> same_value(0.1 + 0.2, 0.3), same_value(0.1 + 0.2, 0.3, 1e-9)
    (False, True)
    """
    return alike(expected, given, lambda x, y: _same_leaf(x, y, tolerance, typed))


def _same_leaf(expected: Any, given: Any, tolerance: float, typed: bool) -> bool:
    if isinstance(expected, bool) or isinstance(given, bool) or not isinstance(given, int | float):
        return type(expected) is type(given) and expected == given
    if not isinstance(expected, int | float) or (typed and type(expected) is not type(given)):
        return False
    if expected == given or not tolerance or not isinstance(expected, float) or not isfinite(expected):
        return expected == given
    try:
        return abs(expected - given) <= tolerance * max(1.0, abs(expected))
    except OverflowError:  # an integer beyond the range of doubles
        return False
