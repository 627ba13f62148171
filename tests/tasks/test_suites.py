"""Suites: what they consist of, that their parts count alike, and that a name is all one needs."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.core.config import dumps_toml, from_dict, loads_toml, to_dict
from assay.core.errors import ConfigError, UnknownNameError
from assay.guide import SuccessVariance, Uniform
from assay.recipes import SHOWN, assay_small
from assay.tasks import TaskMixture, card, family, in_turn, suite, suites, with_form, with_seed
from assay.tasks.exchange.packaging import write_package
from assay.testing import check_task_source
from assay_tasks import Reverse, SortDigits

SMALL = TaskMixture(
    name="three",
    sources=(SortDigits(levels=(3, 4)), Reverse(levels=(3,)), family("gates")),
    parts={"lists": ("sort", "reverse"), "logic": ("gates",)},
)


def test_the_six_domains() -> None:
    six = suite("assay-six")
    assert list(six.members()) == ["math", "code", "science", "logic", "simulation", "tabular"]
    of_parts = [arm for families in six.members().values() for arms in families.values() for arm in arms]
    assert sorted(of_parts) == sorted(six.arms()) and len(of_parts) > 200
    assert {"graphs/degree", "coding/function", "tables/pivot"} <= set(of_parts)


@pytest.mark.parametrize("name", suites())
def test_a_suite_is_a_family(name: str) -> None:
    whole = family(name)
    assert whole == suite(name) and card(whole).summary
    assert from_dict(TaskMixture, loads_toml(dumps_toml(to_dict(whole)))) == whole
    one = card(with_seed(whole, 1)).example
    assert one != card(whole).example


def test_a_part_is_a_family() -> None:
    code = family("assay-six/code")
    assert isinstance(code, TaskMixture)
    assert (
        code.name == "assay-six-code" and list(code.members()) == ["code"] and list(code.members()["code"]) == ["coding", "sql"]
    )
    with pytest.raises(UnknownNameError, match="unknown part of assay-six 'maths': did you mean 'math'"):
        family("assay-six/maths")
    with pytest.raises(UnknownNameError, match="unknown part of assay-small 'logic'"):
        suite("assay-small/logic")
    with pytest.raises(UnknownNameError, match="unknown suite 'assay-sik': did you mean 'assay-six'"):
        suite("assay-sik")
    with pytest.raises(UnknownNameError, match="did you mean 'assay-six'"):
        family("assay-sixx")


def test_the_small_suite_is_what_its_recipe_scores() -> None:
    assert suite("assay-small") == assay_small(auxiliary=False)
    assert sorted(suite("assay-small").arms()) == sorted(SHOWN) == sorted(set(assay_small().arms()) - {"skip"})


def test_other_forms_and_summaries() -> None:
    boxed = with_form(suite("assay-logic"), "box")
    assert "\\boxed" in boxed.task("sat/solve", 1, "train", 0).public["prompt"]
    summaries = card(suite("assay-six")).summaries
    assert summaries["graphs/degree"] == card(family("graphs")).summaries["graphs/degree"]


# ---- balance ------------------------------------------------------------------------------------------------------------


def test_tasks_in_turn_by_hand() -> None:
    """Parts take turns, in each its families, in each of these the cells; every part has half of the tasks."""
    ids = [t.id for t in in_turn(SMALL, 8)]
    assert ids == [
        "sort/sort/3/train/0",
        "gates/gates/2/train/0",
        "reverse/reverse/3/train/0",
        "gates/gates/3/train/0",
        "sort/sort/4/train/0",
        "gates/gates/4/train/0",
        "reverse/reverse/3/train/1",
        "gates/gates/5/train/0",
    ]
    assert [t.arm for t in in_turn(SMALL, 3, levels=(3,))] == ["sort", "gates", "reverse"]
    assert {t.arm for t in in_turn(SMALL, 4, arms=("reverse",))} == {"reverse"}
    flat = replace(SMALL, parts=None)
    assert [t.arm for t in in_turn(flat, 4)] == ["sort", "sort", "reverse", "gates"]


def test_parts_of_a_suite_have_equal_shares() -> None:
    six = suite("assay-six")
    home = {arm: part for part, families in six.members().items() for of in families.values() for arm in of}
    assert Counter(home[t.arm] for t in in_turn(six, 60, levels=(2,))) == dict.fromkeys(six.members(), 10)
    for spec in (six.balance_parts(), six.balance_parts(SuccessVariance()), six.balance_parts(Uniform(), shares={"math": 2.0})):
        curriculum, sums = spec.build(six.arms(), 0), defaultdict[str, float](float)
        for (arm, _), p in zip(curriculum.cells, curriculum.propensities, strict=True):
            sums[home[arm]] += float(p)
        other = 1 / 7 if spec.shares else 1 / 6
        assert dict(sums) == pytest.approx({part: 2 / 7 if spec.shares and part == "math" else other for part in home.values()})


def test_families_whose_arms_are_called_otherwise_are_named_arm_by_arm() -> None:
    assert SMALL.balance_parts(Uniform()).parts == {"lists": ("sort", "reverse"), "logic": ("gates",)}
    odd = TaskMixture(name="odd", sources=(replace(SMALL, name="pair", parts=None),), parts={"all": ("pair",)})
    assert odd.balance_parts().parts == {"all": ("sort", "reverse", "gates")}


@pytest.mark.parametrize(
    "parts", [{"lists": ("sort",)}, {"lists": ("sort", "sort", "gates")}, {"x": ("sort", "reverse", "gates"), "y": ()}]
)
def test_parts_hold_every_family_once(parts: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="put each family in one part"):
        replace(SMALL, parts=parts)


# ---- by name ------------------------------------------------------------------------------------------------------------


def test_a_package_of_a_suite(tmp_path: Path) -> None:
    files = write_package("assay-six/tabular", tmp_path / "out").files
    assert 'name = "assay-six-tabular"' in files["pyproject.toml"] and "assay_six_tabular/__init__.py" in files
    assert 'taskset_of("assay-six/tabular")' in files["assay_six_tabular/__init__.py"]


def test_a_small_suite_keeps_the_contract() -> None:
    report = check_task_source(suite("assay-small"), n=1)
    assert report.skipped == () and report.numbers["tasks"] >= 100
