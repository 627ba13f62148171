"""Test code that a model wrote, judged by what it tells apart."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from assay.core.errors import DataError
from assay.core.score import Score
from assay.sandbox.result import Program, Result, Status
from assay.verify.answer import ruled
from assay.verify.code.base import Gold, ProgramVerifier, lost, reason, short
from assay.verify.code.cases import FILE, Case, run_cases
from assay.verify.code.unit import INSIDE

__all__ = ["TestQuality"]

_STATIC = (Path(__file__).parent / "static.py").read_text()
_DETECTED = ("calls_focal", "asserts", "unique", "straight", "named")
_INFRA = frozenset({str(Status.INFRA)})


@dataclass(frozen=True, slots=True, kw_only=True)
class TestQuality(ProgramVerifier):
    r"""The answer is test code: it must pass right implementations and fail wrong ones.

    ``private["reference"]`` is an implementation, or a list of them, all right; ``private["mutants"]`` a list of wrong ones;
    ``private["entry"]`` the name of the function under test. The tests may be ``assert`` statements, functions ``test*`` without
    arguments, classes ``Test*``, or ``unittest`` cases; they have the names of the implementation, and may import them from
    ``solution``. There is the standard library and nothing else, so no pytest.

    - ``passes_reference``: they pass every reference. ``mutants_killed``: the share of mutants on which they fail or do not end;
      0 where a reference fails, since tests that always fail say nothing. ``correct``: both are 1.
    - Detectors of RLSQM (arXiv 2310.02368), which read the code and do not run it: ``syntax``: it is Python. ``calls_focal``:
      it calls the function. ``asserts``: it asserts something. ``unique``: no assertion stands twice in one function.
      ``straight``: no branch, loop or ``try``. ``named``: every test function has a name of two words or more behind ``test``,
      or a docstring. The last three are 0 without an assertion. RLSQM trains one reward model for each; the detectors themselves
      stand here, raw, and how they are weighed is the objective's (UNSURE in the source).

    Without valid syntax every component is 0. ``info["verdict"]`` is ``passed``, ``survived`` (some mutant), ``syntax``, or how
    the first reference failed. Tests that read the source of what they test could tell a known reference from mutants; more
    than one reference, written differently, makes that useless.

    Raises:
        DataError: the task lacks one of the fields.

    >>> from assay.verify import posed
    >>> gold = {"entry": "f", "reference": "def f(x): return x * 2", "mutants": ["def f(x): return x + 2", "def f(x): return 2"]}
    >>> score = TestQuality()(*posed(gold, "def test_two_is_doubled():\n    assert f(2) == 4"))
    >>> score.info["verdict"], score.components["mutants_killed"], score.info["mutants"]
    ('survived', 0.5, ('survived', 'killed'))
    """

    __test__ = False  # no test of pytest's, in spite of its name

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("correct", "passes_reference", "mutants_killed", "syntax", *_DETECTED)

    def rule(self, gold: Gold, source: str) -> Score:
        """Read the tests, then run them on each implementation."""
        entry, mutants = gold.text("entry"), _sources(gold, "mutants")
        one = gold.find("reference")
        references = [one] if isinstance(one, str) and one else _sources(gold, "reference")
        read = self.sandbox().run(
            Program(code=_STATIC, entry="findings", arguments=(source, entry.rpartition(".")[2])), self.limits
        )
        if not read.judged:
            return lost(read)
        if read.value is None:
            return self.nothing("syntax", isolation=read.isolation)
        detected = {name: float(cast("dict[str, Any]", read.value)[name]) for name in _DETECTED}
        words, results = self._run(references, source)
        if words[-1] in _INFRA:
            return lost(results[-1])
        failed = next((i for i, word in enumerate(words) if word != "passed"), None)
        if failed is not None:
            components = dict.fromkeys(self.names, 0.0) | detected | {"syntax": 1.0}
            why = reason(results[failed])
            return ruled(words[failed], components, isolation=read.isolation, **({"why": why} if why else {}))
        words, results = self._run(mutants, source)
        if words[-1] in _INFRA:
            return lost(results[-1])
        killed = sum(word != "passed" for word in words)
        rest = {
            "correct": float(killed == len(words)),
            "passes_reference": 1.0,
            "mutants_killed": killed / len(words),
            "syntax": 1.0,
        }
        said = tuple("survived" if word == "passed" else "killed" for word in words)
        return ruled(
            "passed" if killed == len(words) else "survived", {name: (rest | detected)[name] for name in self.names},
            isolation=read.isolation, mutants=said,
        )  # fmt: skip

    def _run(self, implementations: list[str], source: str) -> tuple[list[str], list[Result]]:
        return run_cases(self.sandbox(), [_Tested(i) for i in implementations], source, self.limits, _INFRA)


@dataclass(frozen=True, slots=True)
class _Tested(Case):
    implementation: str

    def program(self, source: str) -> Program:
        files = {FILE: self.implementation.encode("utf-8", "surrogatepass")}
        return Program(code=INSIDE, entry="suite", arguments=(source,), files=files)

    def passes(self, result: Result) -> bool:
        return result.value == ["passed"]


def _sources(gold: Gold, name: str) -> list[str]:
    found = gold.items(name)
    for i, source in enumerate(found):
        if not isinstance(source, str) or not source.strip():
            raise DataError(f"private[{name!r}][{i}] is {short(source)}; give source code as text")
    return found
