"""Test code that a model wrote, judged by what it tells apart."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, cast

from assay.core.errors import ConfigError, DataError
from assay.core.score import Score
from assay.sandbox.result import Result, SandboxProgram, Status
from assay.verify.answer_verifier import verdict_score
from assay.verify.code.base import Gold, ProgramVerifier, lost_run, reason, short
from assay.verify.code.cases import FILE, ProgramCase, run_cases
from assay.verify.code.unit import INSIDE

__all__ = ["TestQuality"]

_STATIC = (Path(__file__).parent / "static.py").read_text()
_DETECTED = ("calls_focal", "asserts", "unique", "straight", "named")
_INFRA = frozenset({str(Status.INFRA)})
_SLOW = frozenset({str(Status.TIMEOUT), str(Status.CPU)})


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

    - Each implementation is tested ``runs`` times, in an order that the tests cannot know. Tests that do not say the same of one
      implementation each time toss a coin: every component is 0, the verdict is ``unsteady``.

    Without valid syntax every component is 0. ``info["verdict"]`` is ``passed``, ``survived`` (some mutant), ``syntax``, or how
    the first reference failed. What is tested shows the tests no file, no source and no code object, so they tell implementations
    apart by what they do; where a docstring or a name would tell, give more than one reference, written differently.

    Attributes:
        runs: how often each implementation is tested.

    Raises:
        ConfigError: no runs.
        DataError: the task lacks one of the fields.

    >>> from assay.verify import task_and_rollout
    >>> gold = {"entry": "f", "reference": "def f(x): return x * 2", "mutants": ["def f(x): return x + 2", "def f(x): return 2"]}
    >>> score = TestQuality()(*task_and_rollout(gold, "def test_two_is_doubled():\n    assert f(2) == 4"))
    >>> score.info["verdict"], score.components["mutants_killed"], score.info["mutants"]
    ('survived', 0.5, ('survived', 'killed'))
    """

    __test__ = False  # no test of pytest's, in spite of its name
    runs: int = 5

    def check(self) -> None:
        """Refuses to test nothing."""
        if self.runs < 1:
            raise ConfigError(f"TestQuality.runs={self.runs}; use at least 1")

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
            SandboxProgram(code=_STATIC, entry="findings", arguments=(source, entry.rpartition(".")[2])), self.limits
        )
        if not read.judged:
            return lost_run(read)
        if read.value is None:
            return self.nothing("syntax", isolation=read.isolation)
        detected = {name: float(cast("dict[str, Any]", read.value)[name]) for name in _DETECTED}
        words, results = self._run(references, source)
        if words[-1] in _INFRA:
            return lost_run(results[-1])
        failed = next((i for i, word in enumerate(words) if word != "passed"), None)
        if failed is not None:
            components = dict.fromkeys(self.names, 0.0) | detected | {"syntax": 1.0}
            why = reason(results[failed])
            return verdict_score(words[failed], components, isolation=read.isolation, **({"why": why} if why else {}))
        survived = self._survivors(references, mutants, source)
        if isinstance(survived, Result):
            return lost_run(survived)
        if survived is None:
            why = "the tests do not say the same of one implementation each time"
            return self.nothing("unsteady", isolation=read.isolation, why=why)
        killed = len(survived) - sum(survived)
        rest = {
            "correct": float(not any(survived)),
            "passes_reference": 1.0,
            "mutants_killed": killed / len(survived),
            "syntax": 1.0,
        }
        return verdict_score(
            "survived" if any(survived) else "passed",
            {name: (rest | detected)[name] for name in self.names},
            isolation=read.isolation,
            mutants=tuple("survived" if lives else "killed" for lives in survived),
        )

    def _survivors(self, references: list[str], mutants: list[str], source: str) -> list[bool] | Result | None:
        """Whether each mutant passed, or the run that was lost; None where one implementation passed and failed.

        All references have passed once. In each round the order is drawn anew; a mutant that took too long is not tried again.
        """
        every = [*references, *mutants]
        seen = [{True} for _ in references] + [set[bool]() for _ in mutants]
        slow: set[int] = set()
        for again in range(self.runs):
            places = [i for i in range(0 if again else len(references), len(every)) if i not in slow]
            Random(secrets.token_bytes(16)).shuffle(places)
            words, results = self._run([every[i] for i in places], source)
            if words[-1] in _INFRA:
                return results[-1]
            for i, word in zip(places, words, strict=True):
                seen[i].add(word == "passed")
            slow |= {i for i, word in zip(places, words, strict=True) if word in _SLOW}
            if any(len(said) > 1 for said in seen):
                return None
        return [True in said for said in seen[len(references) :]]

    def _run(self, implementations: list[str], source: str) -> tuple[list[str], list[Result]]:
        return run_cases(self.sandbox(), [_Tested(i) for i in implementations], source, self.limits, _INFRA)


@dataclass(frozen=True, slots=True)
class _Tested(ProgramCase):
    implementation: str

    def program(self, source: str) -> SandboxProgram:
        files = {FILE: self.implementation.encode("utf-8", "surrogatepass")}
        return SandboxProgram(code=INSIDE, entry="suite", arguments=(source,), files=files)

    def passes(self, result: Result) -> bool:
        return result.value == ["passed"]


def _sources(gold: Gold, name: str) -> list[str]:
    found = gold.items(name)
    for i, source in enumerate(found):
        if not isinstance(source, str) or not source.strip():
            raise DataError(f"private[{name!r}][{i}] is {short(source)}; give source code as text")
    return found
