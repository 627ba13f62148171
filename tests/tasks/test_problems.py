"""Families made of problems, and mixtures of families: streams, splits, wordings, forms, privacy."""

from __future__ import annotations

import importlib
import itertools
import pickle
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from assay.core.canon import digest, plain
from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.seeds import content_split
from assay.tasks import Facts, Form, Problem, Problems, Rows, Solution, TaskMixture, card, family
from assay.testing import check_problem, check_task_source, sources
from assay.verify.rollouts import rollout_of
from assay_tasks import Expression, Reverse, SortDigits

ARITHMETIC = "arithmetic/expression"


@dataclass(frozen=True, slots=True, kw_only=True)
class Echo(Problem):
    """Say a number."""

    name: str = "echo/number"
    domain: str = "test"
    levels: tuple[int, ...] = (1, 2)
    size: int = 1000

    templates = ("Say {n}.", "Please say {n}.", "{n}?")

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        return {"n": rng.randrange(self.size) + self.size * level}

    def solve(self, facts: Facts) -> Solution:
        return Solution(answer=str(facts["n"]), steps="It says so." if facts["n"] % 2 else "")


ECHO = Problems(name="echo", problems=(Echo(), Echo(name="echo/other")))


@pytest.mark.slow
def test_the_contract_holds_in_every_form(monkeypatch: pytest.MonkeyPatch) -> None:
    for form in Form:
        report = check_task_source(replace(ECHO, form=form), n=12)
        monkeypatch.setattr(sources, "digest_elsewhere", _here)  # one interpreter with another hash seed, for the first form
        assert not report.skipped and report.numbers["tasks"] == 96


def _here(blob: bytes, places: Sequence[tuple[str, int, str, int]]) -> str:
    source = pickle.loads(blob)
    return digest([source.task(*place) for place in places])


def test_facts_decide_split_and_wording() -> None:
    seen: dict[int, set[str]] = {}
    for split in ("train", "test"):
        for index in range(300):
            task = ECHO.task("echo/number", 1, split, index)
            assert content_split(task.public["facts"]) == split and task.question == task.public["facts"]
            seen.setdefault(task.public["facts"]["n"], set()).add(task.public["prompt"])
    assert all(len(prompts) == 1 for prompts in seen.values())
    used = Counter(next(iter(p)).split("\n")[0].rstrip("0123456789.?") for p in seen.values())
    assert set(used) == {"Say ", "Please say ", ""} and min(used.values()) > 60


def test_a_fixed_wording_and_form() -> None:
    said = [replace(ECHO, wording=w, form="plain").task("echo/number", 1, "train", 0).public for w in range(4)]
    n = said[0]["facts"]["n"]
    assert [p["prompt"].split("\n")[0] for p in said] == [f"Say {n}.", f"Please say {n}.", f"{n}?", f"Say {n}."]
    assert said[0]["prompt"].endswith("Reply with the answer alone.")
    assert {p["facts"]["n"] for p in said} == {n}


def test_what_stays_private() -> None:
    task = next(t for i in range(20) if (t := ECHO.task("echo/number", 2, "train", i)).public["facts"]["n"] % 2)
    n = task.public["facts"]["n"]
    assert dict(task.private) == {"answer": str(n), "solution": f"It says so.\n<answer>{n}</answer>", "effort": 0}
    assert task.domain == "test" and ECHO.solution(task) == Solution(answer=str(n), steps="It says so.")
    assert [m.content for m in ECHO.trace(task, 0.0, np.random.default_rng(0))] == [task.private["solution"]]
    noisy = [ECHO.trace(task, 1.0, np.random.default_rng(i))[0].content for i in range(20)]
    assert sum(text != task.private["solution"] for text in noisy) > 10


def test_arms_of_two_names_are_two_questions() -> None:
    one, other = (ECHO.task(arm, 1, "train", 0) for arm in ("echo/number", "echo/other"))
    assert one.public["facts"]["problem"] == "echo/number" and one.content != other.content
    alone = ECHO.only("echo/other")
    assert alone.task("echo/other", 1, "train", 0) == other and list(alone.arms()) == ["echo/other"]


def test_refusals() -> None:
    with pytest.raises(ConfigError, match="different names"):
        Problems(name="none", problems=())
    with pytest.raises(ConfigError, match="different names"):
        Problems(name="twice", problems=(Echo(), Echo()))
    with pytest.raises(UnknownNameError, match="form of answers 'boxed': did you mean 'box'"):
        replace(ECHO, form="boxed")
    with pytest.raises(ConfigError, match="test_share"):
        replace(ECHO, test_share=0.0)
    with pytest.raises(ConfigError, match="wording"):
        replace(ECHO, wording=-1)
    with pytest.raises(ConfigError, match="needs a name and a domain"):
        Echo(name="")
    with pytest.raises(ConfigError, match=r"echo/number.levels"):
        Echo(levels=(2, 1))
    with pytest.raises(UnknownNameError, match="arm of echo 'echo/numbr': did you mean 'echo/number'"):
        ECHO.only("echo/numbr")
    other = "test" if content_split({"problem": "echo/number", "n": 1}) == "train" else "train"
    with pytest.raises(DataError, match="level 1 is exhausted"):
        Problems(name="tiny", problems=(Echo(size=1),)).task("echo/number", 1, other, 0)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (Form.TAG, "<answer>\na\nb\n</answer>"),
        (Form.BOX, "\\boxed{a\nb}"),
        (Form.MARK, "Answer:\na\nb"),
        (Form.PLAIN, "a\nb"),
    ],
)
def test_answers_of_several_lines(form: Form, text: str) -> None:
    assert form.format_answer("a\nb") == text


def test_expressions_by_hand() -> None:
    tree = ["-", ["*", ["+", 1, ["//", 1, 2]], ["^", 2, 3]], ["/", 9, ["-", 1, 4]]]
    problem = Expression()
    assert problem.fields({"tree": tree})["expression"] == "(1 + (1/2)) × 2^3 - 9 ÷ (1 - 4)"
    found = problem.solve({"tree": tree})
    assert found.answer == "15" and found.effort == 5
    assert found.steps.split("\n")[-2:] == ["9 ÷ (-3) = -3", "12 - (-3) = 15"]


def test_expressions_agree_with_python() -> None:
    source = family("arithmetic")
    for level in (1, 2, 5, 20):
        for index in range(50):
            task = source.task(ARITHMETIC, level, "train", index)
            text = Expression(levels=(level,)).fields(plain(task.public["facts"]))["expression"]
            code = "".join(f"F({w})" if w.isdigit() else w for w in _words(text))
            value = eval(code.replace("×", "*").replace("÷", "/").replace("^", "**"), {"F": Fraction})
            assert str(value) == task.private["answer"] and task.private["effort"] == level


def _words(text: str) -> list[str]:
    return re.findall(r"\d+|\D", text)


def test_the_arithmetic_card() -> None:
    found = card(family(ARITHMETIC))
    assert found.summary == "The exact value of an expression. The level is the number of operations."
    with pytest.raises(UnknownNameError, match="arm of arithmetic"):
        family("arithmetic/none")
    with pytest.raises(UnknownNameError, match="arm of sort"):
        family("sort/digits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Picky(Echo):
    """Only numbers that end with a digit, and which one is not for the policy to see."""

    hidden = True
    digit: int = 7

    def fair(self, facts: Facts) -> bool:
        return facts["n"] % 10 == self.digit


def test_questions_that_are_not_fair_are_not_asked() -> None:
    source = Problems(name="echo", problems=(Picky(),))
    for split in ("train", "test"):
        task = source.task("echo/number", 1, split, 0)
        assert task.world["facts"]["n"] % 10 == 7 and set(task.public["facts"]) == {"problem", "digest"}
        assert content_split(task.question) == split and source.solution(task).answer == task.private["answer"]
    with pytest.raises(DataError, match="level 1 is exhausted: none of 1000 questions drawn is fair"):
        Problems(name="echo", problems=(Picky(digit=10),)).task("echo/number", 1, "train", 0)


# ---- mixtures ---------------------------------------------------------------------------------------------------------


def test_a_mixture_is_its_families_side_by_side() -> None:
    sort, echo = SortDigits(levels=(3,)), ECHO
    both = TaskMixture(name="both", sources=(sort, echo))
    assert dict(both.arms()) == {"sort": (3,), "echo/number": (1, 2), "echo/other": (1, 2)}
    assert both.task("sort", 3, "test", 4) == sort.task("sort", 3, "test", 4)
    for arm, level in (("sort", 3), ("echo/other", 2)):
        task = both.task(arm, level, "train", 0)
        (turn,) = both.trace(task, 0.0, np.random.default_rng(0)) or ()
        assert both.verifier()(task, rollout_of(task, turn.content)).primary == 1.0
        assert both.verifier()(task, rollout_of(task, "junk")).primary == 0.0
        assert both.environment(task.public_view()) is None
    assert set(both.verifier().routes) == set(both.arms())  # pyright: ignore
    check_task_source(both, n=4)


def test_mixtures_know_their_characters() -> None:
    assert TaskMixture(name="m", sources=(SortDigits(), Reverse())).alphabet == "0123456789>RSabcdefgh"
    with pytest.raises(ConfigError, match=r"families \['echo'\] name no alphabet"):
        _ = TaskMixture(name="m", sources=(SortDigits(), ECHO)).alphabet


def test_mixtures_refuse() -> None:
    with pytest.raises(ConfigError, match="'sort' and 'sort' both have the arm 'sort'"):
        TaskMixture(name="m", sources=(SortDigits(), SortDigits()))
    with pytest.raises(ConfigError, match="needs at least one family"):
        TaskMixture(name="m", sources=())
    with pytest.raises(ConfigError, match="hold out different shares"):
        TaskMixture(name="m", sources=(SortDigits(), Rows([{"prompt": "a", "answer": "b"}], test_share=0.5)))
    with pytest.raises(UnknownNameError, match="arm of m 'srot': did you mean 'sort'"):
        TaskMixture(name="m", sources=(SortDigits(),)).task("srot", 3, "train", 0)


# ---- the page on adding one -------------------------------------------------------------------------------------------


def test_the_problem_shown_in_the_docs_keeps_the_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs/add/task.md").read_text()
    code = next(block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "class Inversions" in block)
    (tmp_path / "shown_lists.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    made = importlib.import_module("shown_lists").lists()
    assert check_problem(made.problems[0], growth=2.0).passed
    assert not check_task_source(made, n=4).skipped
    task = made.task("lists/inversions", 2, "train", 0)
    items = task.public["facts"]["items"]
    assert task.private["answer"] == str(sum(a > b for a, b in itertools.combinations(items, 2)))
