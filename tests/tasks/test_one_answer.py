"""A verifier that accepts whatever contains the answer is found by the natural audit and by the check, and none is said to have
passed what was not tried.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import numpy as np
import pytest

from assay.audit import AuditSettings, Subject, audit, audit_page
from assay.cli import main
from assay.core.errors import UnknownNameError
from assay.core.protocols import TaskSource, Verifier
from assay.tasks import Facts, Form, Problem, Problems, Solution, TaskMixture, families, family
from assay.tasks.one_answer import has_one_answer, oracle_answer
from assay.tasks.packages import Installed
from assay.testing import ContractError, check_task_source
from assay.verify import MathAnswer, Numeric
from tests.tasks.accepts_what_contains import Dozens, eggs

NUMBER = Numeric()
QUICK = AuditSettings(items=4, hostile_items=0, skip=("determinism", "order", "threads", "latency"), deadline=20.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Several(Dozens):
    """The same, said to have several right answers."""

    unique: ClassVar[bool | None] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid(Problem):
    """An answer of two lines."""

    name: str = "grid/rows"
    domain: str = "test"
    templates: ClassVar[tuple[str, ...]] = ("Write {n} twice.",)

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        return {"n": rng.randrange(10**4)}

    def solve(self, facts: Facts) -> Solution:
        return Solution(answer=f"{facts['n']}\n{facts['n']}")


def audited(source: Problems, **settings: Any) -> Any:
    return audit(Subject(source.name, source.verifier(), None, source), settings=replace(QUICK, **settings))


def test_an_audit_of_a_family_finds_what_accepts_all_that_contains_the_answer() -> None:
    found = audited(eggs())
    lines = {line.name: line.rate for line in found.check("wrong_answers").lines}
    assert found.failed == ("wrong_answers",) and found.untried == () and found.verdict == "failed: wrong_answers"
    assert lines["hedge"].failed == lines["hedge"].of > 0 and lines["negated"].failed == lines["negated"].of > 0
    assert lines["near"].failed < lines["near"].of and lines["others"].failed == 0


@pytest.mark.slow
def test_nothing_is_said_to_have_passed_what_was_not_tried() -> None:
    found = audited(Problems(name="eggs", problems=(Several(),)))
    assert found.passed and found.verdict.startswith("passed what was tried. Not tried: near misses, other items, hedges")
    assert "--unique yes" in found.verdict and "Passed what was tried" in audit_page(found)
    assert audited(Problems(name="eggs", problems=(Several(),)), unique=True).failed == ("wrong_answers",)
    assert audited(eggs(), unique=False).passed
    assert audited(Problems(name="grid", problems=(Grid(),))).verdict == "passed"


@pytest.mark.slow
def test_the_check_of_a_family_finds_it_too() -> None:
    with pytest.raises(ContractError, match=r"scores 1 as '\d+ eggs' alone does: its verifier accepts what contains"):
        check_task_source(eggs(), n=2)
    name = "the answer beside another one, denied, or inside a longer text is wrong"
    for problem in (Several(), Grid()):  # several answers may be right, or the answer is of several lines: nothing is claimed
        assert name not in check_task_source(Problems(name="eggs", problems=(problem,)), n=2).passed


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced(Grid):
    """One number, of which the class says nothing; the verifier is the second field's."""

    name: str = "shop/price"
    judge: Numeric | MathAnswer = NUMBER

    def solve(self, facts: Facts) -> Solution:
        return Solution(answer=str(facts["n"] + 1))

    def verifier(self, form: Form) -> Verifier:
        if isinstance(self.judge, MathAnswer):
            return replace(self.judge, look=(form.value,))
        return replace(self.judge, where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedAlone(Priced):
    """The same, declared."""

    unique: ClassVar[bool | None] = True


def test_hedges_are_tried_or_the_check_says_that_they_are_not() -> None:
    name = "the answer beside another one, denied, or inside a longer text is wrong"

    def found(problem: Problem) -> tuple[bool, list[str]]:
        report = check_task_source(Problems(name="shop", problems=(problem,)), n=8)
        return name in report.passed, [line for line in report.skipped if line.startswith(name)]

    assert found(Priced()) == (True, [])  # a number is compared with a number
    tried, (line,) = found(Priced(judge=MathAnswer(symbolic=False)))  # of mathematics several forms may be right
    assert not tried and line.endswith("declare 'unique: ClassVar[bool] = True', or False, for shop/price")
    assert found(PricedAlone(judge=MathAnswer(symbolic=False))) == (True, [])


def test_the_part_that_says_correct_decides_of_a_verifier_made_of_several() -> None:
    sort, strip = family("sort"), family("strip")  # sorted digits; any way through a strip
    assert has_one_answer(sort, sort.task("sort", 3, "train", 0))
    assert not has_one_answer(strip, strip.task("strip", 4, "train", 0))


def test_who_says_that_one_answer_alone_is_right() -> None:
    def of(source: TaskSource) -> bool:
        arm = next(iter(source.arms()))
        return has_one_answer(source, source.task(arm, source.arms()[arm][0], "train", 0))

    assert of(eggs()) and not of(Problems(name="eggs", problems=(Several(),))) and of(Problems(name="g", problems=(Grid(),)))
    assert of(TaskMixture(name="mixed", sources=(eggs(),)))
    assert of(family("arithmetic")) and not of(family("algebra/quadratic"))


def test_an_answer_of_several_lines_is_found_in_its_form() -> None:
    source = Problems(name="grid", problems=(Grid(),))
    task = source.task("grid/rows", 1, "train", 0)
    (turn,) = source.trace(task, 0.0, np.random.default_rng(0))
    assert oracle_answer(source, task, turn.content) == (task.private["answer"], "<answer>\n{answer}\n</answer>")


def test_an_arm_is_found_by_its_own_name_and_behind_its_familys(monkeypatch: pytest.MonkeyPatch) -> None:
    offered = Installed(
        families={"eggs": "tests.tasks.accepts_what_contains:eggs", "gone": "no_such_module:it"},
        suites={},
        readers={},
        clashes={},
        broken={},
    )
    monkeypatch.setattr("assay.tasks.registry.installed_packages", lambda: offered)
    for name in ("eggs/units/dozens", "units/dozens"):
        assert list(family(name).arms()) == ["units/dozens"]
    for name in ("eggs/units/dozen", "units/dozen"):
        with pytest.raises(UnknownNameError):
            family(name)


def test_the_commands_say_it(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(Path(__file__).with_name("accepts_what_contains.py"))
    assert main(["tasks", "check", f"{file}:eggs", "-n", "2"]) == 1
    assert "accepts what contains the answer" in capsys.readouterr().err
    assert "sort" in families()
