"""Programs judged by test code that runs beside them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, cast

from assay.core.canon import FrozenMap
from assay.core.errors import DataError
from assay.core.score import Score
from assay.sandbox.called import call_tests
from assay.sandbox.result import Result, SandboxProgram
from assay.verify.code.assertions import Raised, SplitTests, plain_of, split_tests
from assay.verify.code.base import CaseVerifier, Gold, short
from assay.verify.code.cases import FILE, ProgramCase
from assay.verify.code.prelude import PRELUDE, check_prelude, with_prelude

__all__ = ["INSIDE", "UnitTests"]

INSIDE = re.sub(
    r"(?m)^from assay\..*\n",
    "",
    "".join((files("assay.sandbox") / name).read_text() for name in ("inside_compare.py", "inside.py")),
)
"""What runs in the contained process before the program does: one module, which imports nothing of assay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTests(CaseVerifier):
    r"""A program passes pieces of test code, written as ``assert`` statements about its names. Prefer `CodeCall`, which holds.

    ``private["tests"]`` is a list of such pieces. Each has a process of its own: the program is imported as a module, then the
    piece runs on its names, with the builtins as they were before the program came. Where the program has no function of a name
    but a class ``Solution`` with a method of it, that is the function. Components and verdicts are those of `CaseVerifier`.

    A test that a piece defines and does not call is called (`assay.sandbox.called.call_tests`): functions ``test*`` without
    arguments, classes of unittest and pytest, and ``check(candidate)`` with ``private["entry"]`` (or ``entry_point``). A piece
    that executes no check is refused: it would pass every program.

    A piece whose comparisons stand in ``assert`` statements of its own body, in a function of such that it calls once, or in a
    loop over values that are written out, is taken apart (`assay.verify.code.assertions.split_tests`): the program's process
    evaluates
    what the program must give and shows it as plain data; what is expected stays here and is compared here. There neither an
    object that equals everything nor a program that walks the frames gains anything. An object of the program's own class equals
    no number, text, list, set or table in it; two of one class equal each other as the class says.

    **Any other piece shares the process with the program.** Its comparisons, those of unittest's methods too, follow the same
    rule, modules that it imports are put back as they were once the program has run, its verdict must carry a token that is
    drawn for the run, and frames, tracebacks' frames, the garbage collector's lists and tracing are refused there. A program
    that patches such a module while a test calls it, or reaches the token in a way not named here, is believed.
    ``info["apart"]`` says how many pieces are taken apart. Where a test is a call and a value, make it a case of `CodeCall`.

    Attributes:
        prelude: Python that runs before the program, in its module; imports of names that programs use without saying so.

    Raises:
        ConfigError: a prelude that is no Python.
        DataError: the tests are not of that form, or a piece checks nothing.

    >>> from assay.verify import task_and_rollout
    >>> score = UnitTests()(*task_and_rollout({"tests": ["assert f(2) == 4", "assert f(3) == 9"]}, "def f(x): return x * 2"))
    >>> dict(score.components), score.info["cases"]
    ({'correct': 0.0, 'fraction': 0.5, 'ran': 1.0}, ('passed', 'wrong'))
    """

    prelude: str = PRELUDE

    def check(self) -> None:
        """Refuses a prelude that is no Python."""
        check_prelude(self.prelude, "UnitTests.prelude")

    def cases(self, gold: Gold) -> Sequence[ProgramCase]:
        """One for each piece."""
        row = gold.private.get("row")
        known = [gold, Gold(cast("Mapping[str, Any]", row))] if isinstance(row, Mapping) else [gold]
        entry = next((e for g in known for e in (g.find("entry"), g.find("entry_point")) if e), "")
        return [self._case(i, test, entry if isinstance(entry, str) else "") for i, test in enumerate(gold.items("tests"))]

    def _case(self, index: int, test: object, entry: str) -> ProgramCase:
        if not isinstance(test, str) or not test.strip():
            raise DataError(f"private['tests'][{index}] is {short(test)}; give test code as text, as in 'assert f(2) == 4'")
        try:
            compile(test, f"private['tests'][{index}]", "exec", dont_inherit=True)
            called = call_tests(test, entry)
        except (SyntaxError, ValueError, RecursionError) as error:
            raise DataError(f"private['tests'][{index}] is no Python: {error}") from None
        found = split_tests(called.code)
        if not called.checks and (found is not None or not called.calls):
            raise _unchecked_error(index, test)
        if found is not None:
            return _Apart(found, self.prelude)
        return _Shared(called.code, secrets.token_hex(16), self.prelude, called.checks)

    def judge(self, cases: Sequence[ProgramCase], source: str) -> Score:
        """The verdict on a program by what it does on the cases."""
        score = CaseVerifier.judge(self, cases, source)
        for i, (case, word) in enumerate(zip(cases, score.info.get("cases", ()), strict=False)):
            if word == "passed" and isinstance(case, _Shared) and not case.checks:
                raise _unchecked_error(i, case.test)
        apart = sum(isinstance(case, _Apart) for case in cases)
        return replace(score, info=FrozenMap({**score.info, "apart": apart}))


@dataclass(frozen=True, slots=True)
class _Shared(ProgramCase):
    test: str
    token: str
    prelude: str
    checks: bool

    def program(self, source: str) -> SandboxProgram:
        return SandboxProgram(
            code=INSIDE, entry="unit", arguments=(self.test, self.token), files=_program_files(source, self.prelude)
        )

    def passes(self, result: Result) -> bool:
        return result.value == [self.token, "passed"]


@dataclass(frozen=True, slots=True)
class _Apart(ProgramCase):
    test: SplitTests
    prelude: str

    def program(self, source: str) -> SandboxProgram:
        return SandboxProgram(
            code=INSIDE, entry="parts", arguments=([*self.test.steps],), files=_program_files(source, self.prelude)
        )

    def passes(self, result: Result) -> bool:
        return self.word(result) == "passed"

    def word(self, result: Result) -> str:
        try:
            return self._word([_read(step) for step in result.value["given"]])
        except Raised as error:
            return "wrong" if str(error).startswith("AssertionError") else "error"
        except Exception:  # what was shown is of another form, or cannot be compared as the test says
            return "wrong"

    def _word(self, given: list[Any]) -> str:
        done = next(
            (i for i, step in enumerate(given) if self.test.steps[i][0] == "run" and isinstance(step, Raised)), len(given)
        )
        for steps, holds in self.test.checks:
            if steps > done:
                raise given[done]
            if not holds(given):
                return "wrong"
        if done < len(given):
            raise given[done]
        return "passed" if len(given) == len(self.test.steps) else "wrong"


def _unchecked_error(index: int, test: str) -> DataError:
    return DataError(
        f"private['tests'][{index}] checks nothing when it is executed, so every program would pass: {short(test)}; "
        "give assertions, functions test_* without arguments, or check(candidate) with the program's name as private['entry']"
    )


def _read(step: Any) -> Any:
    kind, *values = step
    if kind == "raised":
        return Raised(values[0])
    if kind == "pair":
        return (plain_of(values[0]), plain_of(values[1]), values[2] is True)
    return plain_of(values[0]) if kind == "see" else None


def _program_files(source: str, prelude: str) -> dict[str, bytes]:
    return {FILE: with_prelude(source, prelude).encode("utf-8", "surrogatepass")}
