"""Repositories to mend at the workbench, in several turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any, ClassVar

import numpy as np

from assay.core.protocols import Environment, Verifier
from assay.core.task import Message, TaskView
from assay.tasks.draws import slip
from assay.tasks.problem import Facts, Form, Solution
from assay.verify.code.repository import RepositoryTests
from assay_tasks.swe.bugs import Bug
from assay_tasks.swe.environment import UNKNOWN, Files, RepairVerifier, RepositoryEnvironment, parse_command, tested_here
from assay_tasks.swe.kind import Example
from assay_tasks.swe.problems import EDITS, PROTECTED, Mending
from assay_tasks.swe.repository import KINDS, Repository, run_example

__all__ = ["Repair"]

_COMMANDS = (
    "The repository is on a workbench. Each of your turns ends with one command on its last line:\n\nlist - all files\n"
    "read PATH - a file\nsearch TEXT - lines that hold a text\ntest - run the repository's own tests\ndone - you are finished\n\n"
    "or it holds edits of this form instead:\n\n" + EDITS + "\n\nThe lines to search are whole lines with their indentation, and "
    "stand in the file exactly once. Several edits may follow one another in a turn: all of them are made, or none. Files below "
    "tests/ stay as they are. You have {turns} turns; what the files are in the end is judged, by hidden tests."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair(Mending):
    """Mend a repository at a workbench: list, read, search, edit, test, in several turns. Levels are those of `Patch`.

    At levels 1 to 3 one of the repository's own tests fails, by what was reported; above, all of them pass in spite of the bugs.
    The tests run in the sandbox, the hidden ones judge what the files are in the end.

    Attributes:
        spare: turns beyond those that the oracle takes.
    """

    name: str = "swe/repair"
    spare: int = 10

    shown: ClassVar[tuple[int, ...]] = (1, 2, 3)
    """Levels at which the repository's own tests find the bug."""

    templates: ClassVar[tuple[str, ...]] = (
        "A user of the Python package {package} reports {bugs}.\n\n{report}\n\nFind the cause and mend it; docstrings say what "
        "is meant.\n\n",
        "Issue in {package}:\n\n{report}\n\nMend the package so that every function does what its docstring says.\n\n",
        "There {are} {bugs} in the Python package {package}, whose docstrings are right. The report:\n\n{report}\n\nCorrect the "
        "code.\n\n",
    )

    def more(
        self, level: int, repository: Repository, reports: list[dict[str, Any]], bugs: Mapping[int, Bug], rng: Random
    ) -> dict[str, Any]:
        """What the repository's own tests try: what goes well in spite of the bugs, and at `shown` levels what was reported."""
        found = [{"kind": r["kind"], "lines": r["lines"], "ask": r["ask"]} for r in reports] if level in self.shown else []
        for at, name in enumerate(repository.kinds):
            kind = KINDS[name]
            for by in repository.usable(at):
                example = kind.examples[by](rng)
                if run_example(kind, example, bugs.get(at)) == run_example(kind, example):
                    found.append({"kind": at, "lines": example[0], "ask": example[1]})
        return {"tests": found}

    def sources(self, facts: Facts) -> dict[str, str]:
        """Modules and tests, as the policy finds them."""
        return Mending.sources(self, facts) | _tests(Repository.of(facts), facts["tests"])

    def solve(self, facts: Facts) -> Solution:
        """As `Patch`, with the oracle's commands as steps."""
        found = Mending.solve(self, facts)
        gold: dict[str, Any] = {**found.gold, "files": self.sources(facts)}
        paths = [path for path in gold["files"] if not path.startswith("tests/")]
        return replace(found, gold=gold, steps="\n".join(["list", "test", *(f"read {path}" for path in paths)]))

    def prompt(self, facts: Facts, variant: int, form: Form) -> str:
        """The report, the commands and how many there may be."""
        return f"{self.word(facts, variant)}{_COMMANDS.format(turns=self.turns(facts))}".rstrip()

    def turns(self, facts: Facts) -> int:
        """How many commands are answered: those of an oracle that reads every file, and some to spare."""
        return 5 + facts["files"] + self.spare

    def format_solution(self, solution: Solution, form: Form) -> str:
        """The oracle's commands one to a line, and its edits."""
        return f"{solution.steps}\n\n{solution.answer}"

    def verifier(self, form: Form) -> Verifier:
        """By hidden tests, on what the files are in the end."""
        return RepairVerifier(RepositoryTests(stop_at_first_failure=True, tolerance=1e-9))

    def environment(self, world: TaskView) -> Environment:
        """An environment for one rollout."""
        facts = self.facts(world)
        return RepositoryEnvironment(world, self.sources(facts), self.turns(facts), PROTECTED)

    def trace(self, facts: Facts, text: str, noise: float, rng: np.random.Generator) -> tuple[Message, ...]:
        """The oracle looks at all files, makes its edits in one turn, tests again and is done.

        A command of one line holds a slip (`assay.tasks.slip`) with probability ``noise``, and is then said once more and right;
        edits hold none, since nothing but the sandbox runs what comes of them.
        """
        steps, _, edits = text.partition("\n\n")
        files, turns = Files(self.sources(facts), PROTECTED), list[Message]()
        symbols = "".join(sorted(set(steps)))
        for right in [*steps.split("\n"), edits, "test"]:
            for said in dict.fromkeys((slip(right, 0.0 if right is edits else noise, symbols, rng), right)):
                turns += [Message("assistant", said), Message("tool", _answer_command(files, said))]
        return (*turns, Message("assistant", "done"))


def _answer_command(files: Files, said: str) -> str:
    """What the workbench says to a command, where its files are of our own making."""
    match parse_command(said):
        case ("list", _):
            return files.list().content
        case ("read", path):
            return files.read(path).content
        case ("search", words):
            return files.search(words).content
        case ("test", _):
            return tested_here(files)
        case ("edit", text) if (result := files.edit(text)) is not None:
            return result.content
        case _:
            return UNKNOWN


def _tests(repository: Repository, tried: list[dict[str, Any]]) -> dict[str, str]:
    """Test files, one for each kind of module that is tried."""
    files: dict[str, list[str]] = {}
    for number, one in enumerate(tried, 1):
        at = int(one["kind"])
        example: Example = (list(one["lines"]), one["ask"])
        kind = KINDS[repository.kinds[at]]
        name = repository.names[at].get(kind.core, kind.core)
        files.setdefault(f"tests/test_{name}.py", []).append(_test_function(repository, at, example, number))
    return {path: "\n\n\n".join(functions) + "\n" for path, functions in files.items()}


def _test_function(repository: Repository, at: int, example: Example, number: int) -> str:
    wanted = run_example(KINDS[repository.kinds[at]], example)
    lines, ask = repository.program(at, example), repository.text(at, example[1])
    if "raises" in wanted:  # whichever of the lines it is that raises
        first = sum(line.startswith("from ") for line in lines)
        body = [*lines[:first], "try:", *(f"    {line}" for line in [*lines[first:], ask]), f"except {wanted['raises']}:"]
        body += ["    return", f"raise AssertionError('no {wanted['raises']}')"]
    else:
        body = [*lines, f"got = {ask}", f"assert got == {wanted['value']!r}, got"]
    return "\n".join([f"def test_{number}():", *(f"    {line}" for line in body)])
