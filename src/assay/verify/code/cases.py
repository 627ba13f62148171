"""The cases of one answer, run side by side, each in a process of its own."""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from assay.core.import_path import filed_as
from assay.sandbox.limits import Limits
from assay.sandbox.result import Result, SandboxProgram, Status
from assay.sandbox.sandbox import Sandbox

__all__ = ["FILE", "ProgramCase", "Unjudged", "run_cases", "word_of"]

FILE = "solution.py"
"""Where a program lies that is imported and not run."""

_SOURCES = ("program.py", FILE)
_PLACE = re.compile(r'^ +File "([^"\n]*)", line \d+(, in .*)?$', re.MULTILINE)
_KINDS = re.compile(r"(?:SyntaxError|IndentationError|TabError): .*")
_TAIL = 4000


@filed_as("assay.verify.code.cases:Case")
class ProgramCase(ABC):
    """One case: what is run, and what the outcome is worth. What is expected stays in it, and so in this process."""

    __slots__ = ()

    @abstractmethod
    def program(self, source: str) -> SandboxProgram:
        """What is run for a program's source."""
        ...

    @abstractmethod
    def passes(self, result: Result) -> bool:
        """Whether a run that ended by itself gave what is expected.

        Raises:
            Unjudged: that needed the sandbox, and it failed.
        """
        ...

    def word(self, result: Result) -> str:
        """The outcome of a run that ended by itself, in a word.

        Raises:
            Unjudged: as `passes`.
        """
        return "passed" if self.passes(result) else "wrong"


class Unjudged(Exception):
    """The sandbox failed where a case's outcome was to be judged."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.detail)
        self.result = result


def word_of(case: ProgramCase, result: Result) -> str:
    """A case's outcome in a word: ``passed``, ``wrong``, ``syntax``, or how the run ended."""
    if result.ok:
        return case.word(result)
    return "syntax" if result.status is Status.ERROR and _is_syntax(result.stderr) else str(result.status)


def run_cases(
    sandbox: Sandbox, cases: Sequence[ProgramCase], source: str, limits: Limits, ending: frozenset[str]
) -> tuple[list[str], list[Result]]:
    """The words and results of the cases in their order, up to the first whose word is in ``ending``.

    That one is the first in the order of the cases, not in time: the outcome does not depend on who is faster.
    """
    running = _Running(sandbox, cases, source, limits, ending)
    helpers = min(sandbox.workers, len(cases)) - 1
    if helpers:
        with ThreadPoolExecutor(helpers, thread_name_prefix="assay-cases") as threads:
            futures = [threads.submit(running.work) for _ in range(helpers)]
            running.work()
            for future in futures:
                future.result()
    else:
        running.work()
    return [running.words[i] for i in range(running.end)], [running.results[i] for i in range(running.end)]


class _Running:
    """The cases of one answer, taken one by one by each thread that is free."""

    def __init__(
        self, sandbox: Sandbox, cases: Sequence[ProgramCase], source: str, limits: Limits, ending: frozenset[str]
    ) -> None:
        self._sandbox, self._cases, self._source, self._limits, self._ending = sandbox, cases, source, limits, ending
        self._lock = threading.Lock()
        self._next = 0
        self.end = len(cases)
        self.words: dict[int, str] = {}
        self.results: dict[int, Result] = {}

    def work(self) -> None:
        """Runs cases until none is left."""
        while (index := self._take()) is not None:
            case = self._cases[index]
            result = self._sandbox.run(case.program(self._source), self._limits)
            try:
                word = word_of(case, result)
            except Unjudged as error:
                result, word = error.result, str(Status.INFRA)
            with self._lock:
                self.words[index], self.results[index] = word, result
                if word in self._ending:
                    self.end = min(self.end, index + 1)

    def _take(self) -> int | None:
        with self._lock:
            if self._next >= self.end:
                return None
            self._next += 1
            return self._next - 1


def _is_syntax(stderr: str) -> bool:
    """Whether the program never began, since it is none. A program that pretends so fails all the same."""
    tail = stderr[-_TAIL:].rstrip()
    places = list(_PLACE.finditer(tail))
    last = places[-1] if places else None
    return last is not None and last[1].endswith(_SOURCES) and not last[2] and bool(_KINDS.match(tail.rpartition("\n")[2]))
