"""Programs judged by what they print."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import isfinite
from typing import Any, cast

from assay.core.errors import ConfigError, DataError
from assay.core.score import Score
from assay.sandbox.compiled_program import CompiledProgram
from assay.sandbox.result import Result, SandboxProgram
from assay.sandbox.toolchain import Language, language
from assay.verify.answer_verifier import option
from assay.verify.code.base import CaseVerifier, Gold, lost_run, refusal, short
from assay.verify.code.build_cache import build
from assay.verify.code.cases import ProgramCase, Unjudged
from assay.verify.code.checker import Checker, accepts_its_own, checker_source

__all__ = ["CodeOutput", "Compare", "same_text"]

_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?")
_WHOLE = re.compile(r"[+-]?[0-9]{1,400}")


class Compare(StrEnum):
    """How printed text is compared.

    ``lines``: white space at the end of each line and of the whole does not count. ``tokens``: nor does any other white space
    but as what parts words. ``exact``: every character counts.
    """

    LINES = "lines"
    TOKENS = "tokens"
    EXACT = "exact"


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeOutput(CaseVerifier):
    r"""A program reads standard input, and what it prints is compared with what is expected.

    ``private["tests"]`` is a list of ``{"stdin": text, "stdout": text}``; ``stdin`` may be left out. The program is run once
    for each, in a process of its own, and what is expected never leaves this process. Components and verdicts are those of
    `CaseVerifier`; a program that exits with an error did not pass, whatever it printed.

    Where more than one output is right, the task has a special judge: ``private["checker"]``, Python source with a function
    ``check(stdin, expected, printed)`` that returns True or False. It runs in the sandbox, in a process of its own for each
    case, to which what the program printed is text and nothing more; a ``stdout`` may then be left out, and is empty text for
    it. A checker that raises on a printed text or exceeds a limit on it has not accepted it. It must accept every ``stdout`` that
    the task itself gives.

    Agnostics (arXiv 2508.04865) rewards 1 where all pass and .2 where a program ran and printed something wrong: that is
    ``Scalarise(weights=(("correct", 0.8), ("ran", 0.2)))`` of these components, since what is correct ran.

    A program of another `language` is compiled once for all cases, contained as it runs; one that does not compile has the
    verdict ``compile``, with the compiler's error under ``info["why"]``. Equal answers are compiled once.

    Attributes:
        language: what it is written in: a name of `assay.sandbox.languages`, or the path of a TOML file of your own.
        compare: how text is compared (`Compare`).
        tolerance: with ``tokens``: how far a number may be from the expected one, absolute or relative; from an expected whole
            number only absolute, and another whole number is another number.

    Raises:
        ConfigError: a tolerance out of range, or without ``tokens``; a language's file that is wrong; when judging, a language
            that needs more processes than can be contained here.
        UnknownNameError: no such language.
        ToolchainError: when judging or preparing: the language's compiler or interpreter is not installed; names its package.
        DataError: the tests are not of that form, more is expected than ``limits.output`` lets through, or the checker is no
            Python, refuses a test's own output or returns something else than a truth value.

    >>> from assay.verify import task_and_rollout
    >>> tests = [{"stdin": "2\n", "stdout": "4"}, {"stdin": "3\n", "stdout": "9"}]
    >>> score = CodeOutput()(*task_and_rollout({"tests": tests}, "```python\nprint(int(input()) * 2)\n```"))
    >>> dict(score.components), score.info["cases"]
    ({'correct': 0.0, 'fraction': 0.5, 'ran': 1.0}, ('passed', 'wrong'))
    """

    language: str = "python"
    compare: Compare = Compare.LINES
    tolerance: float = 0.0

    def check(self) -> None:
        """Refuses a tolerance that would have no effect, or accept anything, and a language that is none."""
        language(self.language)
        option(Compare, self.compare, "CodeOutput.compare")
        if not 0.0 <= self.tolerance < 1.0:
            raise ConfigError(f"CodeOutput.tolerance is {self.tolerance}; it must be in [0, 1)")
        if self.tolerance and self.compare != Compare.TOKENS:
            raise ConfigError(f"CodeOutput.tolerance needs compare='tokens', and compare is {str(self.compare)!r}")

    def program_language(self) -> Language:
        """As `language` says."""
        return language(self.language)

    def rule(self, gold: Gold, source: str) -> Score:
        """Compile it, and run the cases."""
        try:
            cases, own = self.cases(gold), self.program_language()
        except Unjudged as error:
            return lost_run(error.result)
        if not own.run:
            return self.judge(cases, source)
        built = build(self.sandbox(), own, source)
        if built.refused is None:
            return self.judge([replace(case, built=built) for case in cases], source)
        if not built.refused.judged:
            return lost_run(built.refused)
        words = ("compile", *["skipped"] * (len(cases) - 1))
        return self.nothing("compile", cases=words, isolation=built.refused.isolation, why=refusal(built.refused))

    def cases(self, gold: Gold) -> Sequence[_Printed]:
        """One for each test."""
        checker = gold.find("checker")
        judge = None if checker is None else Checker(checker_source(checker), self.sandbox(), self.limits)
        return [self._case(i, test, judge) for i, test in enumerate(gold.items("tests"))]

    def _case(self, index: int, test: Any, judge: Checker | None) -> _Printed:
        table = cast("Mapping[str, Any]", test if isinstance(test, Mapping) else {})
        stdin, stdout = table.get("stdin", ""), table.get("stdout", None if judge is None else "")
        if not isinstance(stdin, str) or not isinstance(stdout, str) or not table.keys() <= {"stdin", "stdout"}:
            raise DataError(f"private['tests'][{index}] is {short(test)}; give {{'stdin': text, 'stdout': text}}")
        if len(stdout.encode("utf-8", "surrogatepass")) > self.limits.output:
            raise DataError(
                f"private['tests'][{index}] expects more than the {self.limits.output} bytes of limits.output; raise that"
            )
        if judge is not None and "stdout" in table:
            accepts_its_own(judge, stdin, stdout, index)
        return _Printed(stdin, stdout, self.compare, self.tolerance, judge)


@dataclass(frozen=True, slots=True)
class _Printed(ProgramCase):
    stdin: str
    stdout: str
    compare: str
    tolerance: float
    judge: Checker | None = None
    built: CompiledProgram | None = None

    def program(self, source: str) -> SandboxProgram:
        return SandboxProgram(code=source, stdin=self.stdin) if self.built is None else self.built.program(self.stdin)

    def passes(self, result: Result) -> bool:
        if self.judge is not None:
            return self.judge.accepts(self.stdin, self.stdout, result.stdout)
        return same_text(self.stdout, result.stdout, self.compare, self.tolerance)


def same_text(expected: str, given: str, compare: str = Compare.LINES, tolerance: float = 0.0) -> bool:
    r"""Whether a printed text is the expected one.

    >>> same_text("1 2\n3", "1 2 \n3\n\n"), same_text("1 2", "1  2"), same_text("1 2", "1\n2", "tokens")
    (True, False, True)
    >>> same_text("0.3333", "0.33333", "tokens", 1e-3), same_text("1000000", "1000001", "tokens", 1e-3)
    (True, False)
    """
    if compare == Compare.EXACT:
        return expected == given
    if compare == Compare.LINES:
        return _lines(expected) == _lines(given)
    wanted, said = expected.split(), given.split()
    return len(wanted) == len(said) and all(_same_token(w, s, tolerance) for w, s in zip(wanted, said, strict=True))


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().split("\n")]


def _same_token(expected: str, given: str, tolerance: float) -> bool:
    if expected == given:
        return True
    if not tolerance or not _NUMBER.fullmatch(expected) or not _NUMBER.fullmatch(given):
        return False
    whole = _WHOLE.fullmatch(expected) is not None
    if whole and _WHOLE.fullmatch(given):
        return int(expected) == int(given)
    one, other = float(expected), float(given)
    return isfinite(one) and abs(one - other) <= tolerance * (1.0 if whole else max(1.0, abs(one)))
