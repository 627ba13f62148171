"""Edits to a repository, judged by what its functions then return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from assay.core.errors import ConfigError, DataError
from assay.core.score import Score
from assay.sandbox.result import Result, SandboxProgram
from assay.verify.answer_verifier import verdict_score
from assay.verify.code.base import CaseVerifier, Gold, short
from assay.verify.code.call import same_value
from assay.verify.code.cases import ProgramCase
from assay.verify.code.diffs import edits_in_diff, has_diff
from assay.verify.code.edits import Unapplied, apply_edits, edits_in
from assay.verify.code.program import ProgramPlace, program_in

__all__ = ["RepositoryTests"]

_MARK = "<<<<<<<"

_CALL = """
import sys

def call(code, value):
    sys.dont_write_bytecode = True
    names = {"__name__": "test"}
    try:
        exec(code, names)
        return {"value": eval(value, names)}
    except Exception as why:
        print(f"{type(why).__name__}: {why}", file=sys.stderr)
        return {"raises": type(why).__name__}
"""
"""Runs one test on the repository in its folder: with no word of what is expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryTests(CaseVerifier):
    r"""Edits are made to the files of a repository, and hidden tests compare what its functions then return.

    ``private["files"]`` maps paths to texts. ``private["tests"]`` is a list of ``{"code": statements, "value": expression}``
    with what is ``"expected"`` of the expression, or the name of the exception that it ``"raises"``. ``private["protected"]``
    lists files, and folders that end in ``/``, which no edit changes: edits to them are left out, and named in
    ``info["left_out"]``.

    The answer has one or more blocks (`assay.verify.code.edits_in`): the path alone on a line, then ``<<<<<<< SEARCH``, lines
    that stand in the file exactly once, ``=======``, the lines that replace them, ``>>>>>>> REPLACE``. With an empty search a
    block makes a new file. Or it has unified diffs, as ``git diff`` writes them (`assay.verify.code.edits_in_diff`), where there
    is no such block. All blocks or hunks of the text count, or of its last ``<answer>`` where that has some, unless ``where``
    says in which part they stand.

    Each test runs in a process of its own, on files that are laid there by this one, and gives a value that is compared here:
    no test framework runs beside the repository's code, and what is expected never enters its process. So an early exit, an
    object equal to everything, a ``conftest.py`` or a patched test library change nothing but the value that comes out.

    ``correct`` is 1 when all tests pass, ``fraction`` is the share of those that do, ``applied`` is 1 when there were edits and
    all could be made. Most tests of a repository with one bug pass without any edit, so ``fraction`` is worth little by itself.
    Verdicts are those of `CaseVerifier` (an unexpected exception is ``wrong``), and ``unapplied``, ``outside`` (a path that
    leads out of the repository, or none), ``large``, ``unparsed`` (no edit at all).

    Attributes:
        tolerance: how far a number may be from an expected float, absolute or relative; 0 for exact values.

    Raises:
        ConfigError: a tolerance out of range.
        DataError: files or tests are not of that form.

    >>> from assay.verify import task_and_rollout
    >>> tests = [{"code": "import a", "value": "a.f(3)", "expected": 9}]
    >>> edit = "a.py\n<<<<<<< SEARCH\n    return x * 2\n=======\n    return x ** 2\n>>>>>>> REPLACE"
    >>> score = RepositoryTests()(*task_and_rollout({"files": {"a.py": "def f(x):\n    return x * 2\n"}, "tests": tests}, edit))
    >>> dict(score.components), score.info["verdict"]
    ({'correct': 1.0, 'fraction': 1.0, 'applied': 1.0}, 'passed')
    """

    tolerance: float = 0.0

    def check(self) -> None:
        """Refuses a tolerance that would accept anything."""
        if not 0.0 <= self.tolerance < 1.0:
            raise ConfigError(f"RepositoryTests.tolerance is {self.tolerance}; it must be in [0, 1)")

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("correct", "fraction", "applied")

    def extract_program(self, text: str) -> str | None:
        """The part of the text in which edits stand."""
        if self.where == ProgramPlace.AUTO:
            rest = text.rpartition("</think>")[2]
            tagged = program_in(rest, ProgramPlace.TAG)
            part = tagged if tagged is not None and _has_edits(tagged) else rest
        else:
            part = program_in(text, self.where, self.fences)
        return part if part is not None and _has_edits(part) else None

    def rule(self, gold: Gold, source: str) -> Score:
        """Make the edits, and run the tests."""
        protected: Any = gold.find("protected") or []
        if not isinstance(protected, list) or not all(isinstance(place, str) for place in cast("list[Any]", protected)):
            raise DataError(f"private['protected'] is {short(protected)}; give a list of paths")
        before = _files(gold)
        try:
            edits = edits_in(source) if _MARK in source else edits_in_diff(source)
            if not edits:
                return self.nothing("unparsed", isolation=self.sandbox().tag)
            after, left_out = apply_edits(before, edits, cast("list[str]", protected))
        except Unapplied as error:
            return self.nothing(error.word, why=str(error), isolation=self.sandbox().tag)
        return self.test_files(gold, after, left_out)

    def test_files(self, gold: Gold, files: Mapping[str, str], left_out: Sequence[str] = ()) -> Score:
        """The verdict on a repository whose edits are made.

        Args:
            gold: what the task holds.
            files: path to text.
            left_out: paths of edits that were not made, for the record.

        Raises:
            DataError: the tests are not of the form that this verifier needs.
        """
        score = self.judge(self._cases(gold, files), "")
        if not score.valid:
            return score
        components = {"correct": score.components["correct"], "fraction": score.components["fraction"], "applied": 1.0}
        info = {key: value for key, value in score.info.items() if key != "verdict"}
        return verdict_score(score.info["verdict"], components, **info, **({"left_out": tuple(left_out)} if left_out else {}))

    def cases(self, gold: Gold) -> Sequence[ProgramCase]:
        """The tests on the files as they are, without an edit."""
        return self._cases(gold, _files(gold))

    def _cases(self, gold: Gold, files: Mapping[str, str]) -> list[ProgramCase]:
        laid = {path: text.encode("utf-8", "surrogatepass") for path, text in files.items()}
        return [_case(i, test, laid, self.tolerance) for i, test in enumerate(gold.items("tests"))]


def _has_edits(text: str) -> bool:
    return _MARK in text or has_diff(text)


@dataclass(frozen=True, slots=True)
class _Valued(ProgramCase):
    code: str
    value: str
    expected: Any
    raises: str
    files: Mapping[str, bytes]
    tolerance: float

    def program(self, source: str) -> SandboxProgram:
        return SandboxProgram(code=_CALL, entry="call", arguments=(self.code, self.value), files=self.files)

    def passes(self, result: Result) -> bool:
        return same_value({"raises": self.raises} if self.raises else {"value": self.expected}, result.value, self.tolerance)


def _case(index: int, test: Any, files: Mapping[str, bytes], tolerance: float) -> ProgramCase:
    table = cast("Mapping[str, Any]", test if isinstance(test, Mapping) else {})
    ends = set(table) - {"code", "value"}
    if len(table) != 3 or ends not in ({"expected"}, {"raises"}):
        raise DataError(
            f"private['tests'][{index}] is {short(test)}; give {{'code': text, 'value': text, 'expected': value}}, or 'raises'"
        )
    code, value, raises = table["code"], table["value"], table.get("raises", "")
    if not isinstance(code, str) or not isinstance(value, str) or not isinstance(raises, str):
        raise DataError(f"private['tests'][{index}] is {short(test)}; code, value and raises are texts")
    expected = table.get("expected")
    if ends == {"raises"} and not raises.isidentifier():
        raise DataError(f"private['tests'][{index}] raises {raises!r}; name an exception's class")
    if not same_value(expected, expected):
        raise DataError(f"private['tests'][{index}] expects NaN, which equals nothing; expect another value")
    for text, mode in ((code, "exec"), (value, "eval")):
        try:
            compile(text, f"private['tests'][{index}]", mode, dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            raise DataError(f"private['tests'][{index}] is no Python: {error}") from None
    return _Valued(code, value, expected, raises, files, tolerance)


def _files(gold: Gold) -> dict[str, str]:
    found = gold.find("files")
    table = cast("Mapping[Any, Any]", found if isinstance(found, Mapping) else {})
    if not table or not all(isinstance(path, str) and isinstance(text, str) for path, text in table.items()):
        raise DataError(f"private['files'] is {short(found)}; give a table of paths and texts with at least one file")
    return {str(path): str(text) for path, text in table.items()}
