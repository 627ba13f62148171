"""Repositories to mend: by edits to files that are all shown, or at a workbench in several turns."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Any, ClassVar

from assay.core.errors import DataError
from assay.core.protocols import Verifier
from assay.tasks.draws import TRIES
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.verify.code.edits import Edit, edits_between
from assay.verify.code.repository import RepositoryTests
from assay_tasks.swe.bugs import Bug
from assay_tasks.swe.kind import Example
from assay_tasks.swe.repository import KINDS, Repository, about, bug_in, changed_example, hidden_examples, run_example

__all__ = ["EDITS", "PROTECTED", "Mending", "Patch", "shown_edits"]

PROTECTED = ("tests/",)
"""What no edit changes."""

EDITS = """path/of/the/file.py
<<<<<<< SEARCH
lines as they are in the file
=======
lines that come in their place
>>>>>>> REPLACE"""
"""The form of an edit."""

_RULES = (
    "Give your changes as one or more blocks of this form:\n\n" + EDITS + "\n\nThe lines to search are whole lines with their "
    "indentation, and stand in the file exactly once: give more lines where one alone is not unique. All blocks are made, one "
    "after the other."
)

_SIZES = {1: (2, "e"), 2: (3, "e"), 3: (4, "e"), 4: (4, "s"), 5: (5, "s"), 6: (5, "ee"), 7: (5, "es"), 8: (6, "ff")}
"""Level to files and bugs: e is an obvious one, s a subtle one, f a subtle one that is noticed in another module."""

_LEAST = 3
"""So many hidden tests, at least, notice each bug."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mending(Problem, ABC):
    """Base of problems about a repository with bugs.

    Facts: the repository (``package``, ``kinds``, ``files``, ``names``), ``wrong`` (path to source with a bug), ``reports``
    (what was done, what came out). The bugs themselves are not among them: the solver compares each module with the one that
    its kind says.
    """

    domain: str = "code"
    levels: tuple[int, ...] = tuple(_SIZES)

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A repository, bugs in it that its hidden tests notice, and what a user says of them."""
        files, sorts = _SIZES[min(level, len(_SIZES))]
        for _ in range(TRIES):
            repository = Repository.draw(files, rng)
            places = rng.sample(range(len(repository.kinds)), len(sorts))
            found = [_report_bug(repository, at, sort, rng) for at, sort in zip(places, sorts, strict=True)]
            reported = [one for one in found if one is not None]
            if len(reported) == len(sorts):
                reports, bugs = [report for report, _ in reported], {report["kind"]: bug for report, bug in reported}
                facts = repository.facts() | {"wrong": _wrong(repository, bugs), "reports": reports}
                return facts | self.more(level, repository, reports, bugs, rng)
        raise DataError(f"{self.name}: level {level}: no bug of {TRIES} drawn was noticed by enough tests")

    def more(
        self, level: int, repository: Repository, reports: list[dict[str, Any]], bugs: Mapping[int, Bug], rng: Random
    ) -> dict[str, Any]:
        """Further facts; by default none."""
        return {}

    def solve(self, facts: Facts) -> Solution:
        """Each module against what its kind says; the effort is the lines to read, once for each bug."""
        repository = Repository.of(facts)
        right = repository.sources()
        before = right | dict(facts["wrong"])
        edits = edits_between(before, right)
        tests = [_test(repository, at, example) for at, example in hidden_examples(repository, facts["reports"])]
        lines = sum(text.count("\n") for text in before.values())
        places = ", ".join(dict.fromkeys(edit.path for edit in edits))
        return Solution(
            answer=shown_edits(edits),
            gold={"files": before, "tests": tests, "protected": list(PROTECTED)},
            steps=f"What is wrong stands in {places}.",
            effort=lines * len(facts["reports"]),
        )

    def sources(self, facts: Facts) -> dict[str, str]:
        """Path to source, as the policy finds it."""
        return Repository.of(facts).sources() | dict(facts["wrong"])

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The package and what was reported."""
        repository, reports = Repository.of(facts), facts["reports"]
        told = [_report_text(repository, report, i) for i, report in enumerate(reports)]
        one = len(told) == 1
        text = told[0] if one else "\n\n".join(f"Report {i}:\n\n{each}" for i, each in enumerate(told, 1))
        return {
            "package": repository.package,
            "report": text,
            "bugs": "a bug" if one else "2 bugs",
            "are": "is" if one else "are",
        }

    def format_solution(self, solution: Solution, form: Form) -> str:
        """The edits, whatever the form."""
        return solution.answer if form is Form.PLAIN else f"{solution.steps}\n\n{solution.answer}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch(Mending):
    """Mend a package whose files are all in the prompt, by edits. Levels have 2 to 6 files, and bugs that are harder to notice.

    Levels 1 to 3 have an obvious bug, which changes at least one in four of the things that a user may do with its modules; 4
    and 5 a subtle one (at most one in eight); 6 two obvious ones, 7 one of each, 8 two subtle ones that are noticed in another
    module than their own. The form of edits is that of SWE-RL (arXiv 2502.18449). Bugs are changes of one token or line, or
    put in by hand; `assay_tasks.swe.bugs.SORTS` names them.

    >>> facts = Patch().draw(1, Random(1))
    >>> len(Patch().sources(facts)), list(facts["wrong"]) == [e.split(chr(10))[0] for e in [Patch().solve(facts).answer]]
    (2, True)
    """

    name: str = "swe/patch"

    templates: ClassVar[tuple[str, ...]] = (
        "A user of the Python package {package} reports {bugs}.\n\n{report}\n\nThese are all files of the package.\n\n{files}\n\n"
        "Mend the code, not the docstrings: they say what is meant. Hidden tests try it with other values too.\n\n",
        "There {are} {bugs} in this Python package, whose docstrings are right.\n\n{files}\n\nThis is the report:\n\n{report}\n\n"
        "Correct the package so that it does what the docstrings say.\n\n",
        "Issue in {package}:\n\n{report}\n\nFiles:\n\n{files}\n\nFind the cause and repair it. What each function should do is "
        "said by its docstring. Hidden tests try the functions with other values too.\n\n",
    )

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The report and all files."""
        files = [f"{path}\n```python\n{text}```" for path, text in sorted(self.sources(facts).items())]
        return {"files": "\n\n".join(files), **Mending.fields(self, facts)}

    def prompt(self, facts: Facts, variant: int, form: Form) -> str:
        """The question, and how edits are to be given."""
        return f"{self.word(facts, variant)}{_RULES}"

    def verifier(self, form: Form) -> Verifier:
        """By hidden tests, after the edits."""
        return RepositoryTests(stop_at_first_failure=True, tolerance=1e-9)


def shown_edits(edits: list[Edit]) -> str:
    """Edits in the form that is asked for."""
    return "\n\n".join(
        "\n".join([e.path, "<<<<<<< SEARCH", *filter(None, [e.search]), "=======", *filter(None, [e.replace]), ">>>>>>> REPLACE"])
        for e in edits
    )


def _report_bug(repository: Repository, at: int, sort: str, rng: Random) -> tuple[dict[str, Any], Bug] | None:
    """A report of a bug that enough hidden tests notice; None where none of some that are drawn serves."""
    kind = KINDS[repository.kinds[at]]
    for _ in range(60):
        found = bug_in(repository, at, rng, subtle=sort != "e", far=sort == "f")
        example = changed_example(kind, *found, rng) if found else None
        if found is None or example is None:
            continue
        bug, by = found
        report = {"kind": at, "by": by, "lines": example[0], "ask": example[1], "got": run_example(kind, example, bug)}
        noticing = (one for one in about(repository, report) if run_example(kind, one, bug) != run_example(kind, one))
        if len(list(islice(noticing, _LEAST))) == _LEAST:
            return report, bug
    return None


def _wrong(repository: Repository, bugs: Mapping[int, Bug]) -> dict[str, str]:
    return {
        repository.path(at, bug.module): repository.text(at, bug.put_into(KINDS[repository.kinds[at]].modules[bug.module]))
        for at, bug in bugs.items()
    }


def _test(repository: Repository, at: int, example: Example) -> dict[str, Any]:
    wanted = run_example(KINDS[repository.kinds[at]], example)
    code = "\n".join(repository.program(at, example))
    end = {"raises": wanted["raises"]} if "raises" in wanted else {"expected": wanted["value"]}
    return {"code": code, "value": repository.text(at, example[1]), **end}


_SAID = (
    ("I ran this:\n\n{code}\n\n{got}, but {want}.", "It came to {}", "it raised {}", "I expected {}", "I expected {}"),
    ("With\n\n{code}\n\n{got}. By the docstrings {want}.", "I get {}", "I get {}", "it should be {}", "it should raise {}"),
    ("{code}\n\n{got}; {want}.", "This gives {}", "This raises {}", "I would expect {}", "I would expect {}"),
)


def _report_text(repository: Repository, report: Mapping[str, Any], number: int) -> str:
    """A report as its user would write it."""
    at = int(report["kind"])
    example: Example = (list(report["lines"]), report["ask"])
    code = "\n".join(["```python", *repository.program(at, example), repository.text(at, example[1]), "```"])
    want = run_example(KINDS[repository.kinds[at]], example)
    frame, value, raised, should, raises = _SAID[(len(example[1]) + number) % len(_SAID)]
    said = _outcome(report["got"], value, raised)
    return frame.format(code=code, got=said[:1].upper() + said[1:], want=_outcome(want, should, raises))


def _outcome(found: Mapping[str, Any], value: str, raised: str) -> str:
    if "raises" in found:
        name = found["raises"]
        return raised.format(f"{'an' if name[0] in 'AEIOU' else 'a'} {name}")
    return value.format("something of the type " + found["strange"] if "strange" in found else repr(found["value"]))
