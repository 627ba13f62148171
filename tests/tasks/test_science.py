"""Science: every situation by hand, and solvers against a second way: matrices, atoms counted anew, all crosses, float laws."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import product
from math import gcd
from random import Random
from typing import Any

import pytest
import sympy

from assay.core.canon import plain
from assay.core.errors import DataError
from assay.tasks import Form, Problem
from assay.testing import check_problem
from assay.verify.rollouts import task_and_rollout
from assay_tasks.science.chemistry import _REACTIONS, MolarMass, Stoichiometry, atoms_of, balance_reaction
from assay_tasks.science.law import LawProblem
from assay_tasks.science.nature import Circuits, Genetics, Units, science

SOURCE = science()


@pytest.mark.parametrize("problem", SOURCE.problems, ids=lambda p: p.name)
def test_problems_keep_their_contract(problem: Problem) -> None:
    check_problem(problem, n=40, growth=1.3)


BY_HAND: dict[str, tuple[dict[str, int], str]] = {
    "kinematics/way": ({"v": 3, "t": 10}, "30"),
    "kinematics/time": ({"s": 90, "v": 20}, "4.5"),
    "kinematics/speed": ({"u": 5, "a": 2, "t": 4}, "13"),
    "kinematics/from_rest": ({"a": 3, "t": 3}, "13.5"),
    "kinematics/brake": ({"v": 20, "a": 5}, "40"),
    "kinematics/throw": ({"v": 10, "h": 7}, "12"),
    "kinematics/phases": ({"a": 2, "t": 5, "k": 10, "b": 4}, "145"),  # 25 + 100 + 20
    "kinematics/meet": ({"d": 160, "u": 60, "v": 80, "m": 30}, "10/7"),  # 30 km, then 130 km at 140 km/h
    "forces/newton": ({"f": 30, "m": 4}, "7.5"),
    "forces/hooke": ({"k": 50, "x": 4}, "2"),
    "forces/friction": ({"m": 10, "f": 70, "r": 20}, "5"),
    "forces/lever": ({"f": 10, "a": 20, "e": 20, "b": 30, "c": 40}, "20"),
    "forces/atwood": ({"m": 2, "n": 3}, "-2"),
    "forces/stick": ({"m": 100, "v": 6, "n": 200, "w": 3}, "0"),
    "energy/kinetic": ({"m": 2, "v": 3}, "9"),
    "energy/lift": ({"m": 2, "h": 3}, "60"),
    "energy/power": ({"m": 20, "h": 3, "t": 5}, "120"),
    "energy/efficient": ({"p": 100, "e": 50, "t": 7}, "350"),
    "energy/slide": ({"m": 20, "h": 6, "v": 4}, "1040"),
    "energy/bill": ({"p": 500, "h": 4, "d": 3, "c": 10}, "60"),
    "matter/density": ({"m": 30, "v": 20}, "1.5"),
    "matter/pressure": ({"f": 30, "a": 4}, "7.5"),
    "matter/depth": ({"h": 2, "d": 1000}, "20"),
    "matter/press": ({"f": 20, "a": 4, "b": 100}, "500"),
    "matter/float": ({"d": 600, "v": 10}, "4"),
    "matter/alloy": ({"m": 20, "a": 2, "n": 60, "b": 6}, "4"),
    "heat/warm": ({"m": 2, "t": 10}, "84"),
    "heat/mix": ({"m": 1, "s": 80, "n": 1, "t": 20}, "50"),
    "heat/kettle": ({"p": 2100, "m": 1, "t": 10}, "20"),
    "heat/melt": ({"m": 1, "s": 10, "t": 10}, "397"),
    "waves/speed": ({"f": 50, "w": 4}, "2"),
    "waves/echo": ({"t": 20, "v": 340}, "340"),
    "waves/lens": ({"f": 10, "g": 20}, "20"),
    "waves/string": ({"l": 50, "n": 2, "v": 100}, "200"),
    "waves/doppler": ({"f": 300, "u": 40}, "340"),
    "astronomy/light": ({"d": 3}, "10"),
    "astronomy/period": ({"k": 2, "m": 4}, "2"),  # a = 4, M = 16: T^2 = 64 / 16
    "astronomy/weight": ({"m": 8, "r": 2, "w": 50}, "100"),
    "decay/left": ({"n": 2, "h": 5, "m": 100}, "25"),
    "decay/age": ({"h": 100, "n": 3, "k": 10}, "300"),
    "decay/two": ({"m": 16, "h": 1, "w": 16, "n": 2}, "5"),
    "growth/double": ({"n": 5, "t": 1, "k": 3}, "40"),
    "growth/rate": ({"n": 2, "p": 50, "k": 2}, "4.5"),
    "growth/harvest": ({"n": 100, "p": 10, "h": 10}, "100"),
    "solutions/moles": ({"c": 2, "v": 500}, "1"),
    "solutions/dilute": ({"c": 4, "v": 100, "w": 400}, "1"),
    "solutions/series": ({"c": 1000, "n": 2, "p": 1, "q": 10}, "10"),
    "solutions/titrate": ({"v": 10, "w": 20, "c": 100}, "0.1"),
    "gas/boyle": ({"p": 100, "v": 3, "w": 2}, "150"),
    "gas/state": ({"p": 100, "v": 2, "t": 300, "w": 1, "u": 600}, "400"),
    "gas/law": ({"n": 10, "v": 83, "t": 100}, "10"),
}


def test_every_situation_by_hand() -> None:
    seen: set[str] = set()
    for problem in SOURCE.problems:
        if isinstance(problem, LawProblem) and problem.name != "science/choice":
            for name in problem.kinds:
                key = f"{problem.name.removeprefix('science/')}/{name}"
                facts, answer = BY_HAND[key]
                assert problem.solve({"kind": name, **facts}).answer == answer, key
                seen.add(key)
    assert seen == set(BY_HAND)


def test_what_is_told_says_every_quantity() -> None:
    """Each number that the law uses stands in the question."""
    told = {"years": (), "astronomy": ("k", "m")}
    for problem in SOURCE.problems:
        if isinstance(problem, LawProblem):
            for level in problem.levels:
                for seed in range(6):
                    facts = problem.draw(level, Random(seed))
                    text = problem.word(facts, 0)
                    for key in problem.kinds[facts["kind"]].sizes:
                        if key not in told.get(problem.name.removeprefix("science/"), ()) or facts["kind"] == "weight":
                            assert re.search(rf"(?<!\d){facts[key]}(?!\d)", text), (key, text)


@pytest.mark.parametrize("index", range(len(_REACTIONS)))
def test_listed_reactions_balance(index: int) -> None:
    left, right = (side.split() for side in _REACTIONS[index])
    found = balance_reaction(left, right)
    matrix = sympy.Matrix(
        [
            [s * atoms(f).get(e, 0) for s, side in ((1, left), (-1, right)) for f in side]
            for e in sorted({e for f in left for e in atoms(f)})
        ]
    )
    assert len(matrix.nullspace()) == 1 and not any(matrix * sympy.Matrix(found)) and gcd(*found) == 1 and min(found) > 0


def atoms(formula: str) -> dict[str, int]:
    """Atoms of a formula after brackets are written out, by text alone."""
    while m := re.search(r"\(([^()]*)\)(\d*)", formula):
        formula = formula[: m.start()] + m[1] * int(m[2] or 1) + formula[m.end() :]
    out: dict[str, int] = {}
    for element, count in re.findall(r"([A-Z][a-z]?)(\d*)", formula):
        out[element] = out.get(element, 0) + int(count or 1)
    return out


def resistance(network: Any) -> float:
    if isinstance(network, int):
        return float(network)
    kind, *parts = network
    values = [resistance(p) for p in parts]
    return sum(values) if kind == "series" else 1 / sum(1 / v for v in values)


def agrees(arm: str, f: dict[str, Any], said: str) -> bool:
    match arm:
        case "circuits":
            ohms = resistance(f["network"])
            return abs(float(Fraction(said)) - (f["voltage"] / ohms if f["voltage"] else ohms)) < 1e-6
        case "genetics":
            one, other = ([p[i : i + 2] for i in range(0, len(p), 2)] for p in f["parents"])
            children = list(product(*([x + y for x in a for y in b] for a, b in zip(one, other, strict=True))))
            good = {
                "dominant": lambda g: g != g.lower(),
                "recessive": str.islower,
                "hybrid": lambda g: g[0].isupper() != g[1].isupper(),
            }
            hits = sum(all(good[w](g) for w, g in zip(f["wanted"], child, strict=True)) for child in children)
            return Fraction(said) == Fraction(hits, len(children))
        case "balancing":
            numbers = list(map(int, said.split(", ")))
            sides = [(k, s) for k, s in zip(numbers, [*f["left"], *f["right"]], strict=True)]
            sums: dict[str, int] = {}
            for i, (k, substance) in enumerate(sides):
                for e, n in atoms(substance).items():
                    sums[e] = sums.get(e, 0) + k * n * (1 if i < len(f["left"]) else -1)
            return not any(sums.values()) and gcd(*numbers) == 1
        case "molar_mass":
            told = dict(re.findall(r"(\w+) = (\d+)", MolarMass().fields(f)["masses"]))
            return sum(n * int(told[e]) for e, n in atoms(f["formula"]).items()) == int(said)
        case "stoichiometry":
            told = Stoichiometry().fields(f)
            (j, k), masses = _coefficients(told), list(map(int, re.findall(r"(\d+) g/mol", told["masses"]))) or [1, 1]
            return Fraction(said) == Fraction(f["amount"], masses[0]) * k / j * masses[1] * f["gain"] / 100
        case _:
            scale = {
                "mm": 1e-3,
                "cm": 1e-2,
                "km": 1e3,
                "mg": 1e-3,
                "kg": 1e3,
                "tonnes": 1e6,
                "minutes": 60,
                "hours": 3600,
                "days": 86400,
                "cL": 10,
                "L": 1000,
                "hL": 1e5,
            }
            value = f["value"] * (scale.get(f["above"][0], 1) / scale.get(f["above"][1], 1)) ** f["power"]
            if f["below"]:
                value *= scale.get(f["below"][1], 1) / scale.get(f["below"][0], 1)
            return abs(float(Fraction(said)) / value - 1) < 1e-9


def _coefficients(told: Any) -> tuple[int, int]:
    found: dict[str, int] = {}
    for number, substance in re.findall(r"(?:(\d+) )?([A-Z][\w()]*)", told["reaction"]):
        found[substance] = int(number or 1)
    return found[told["reagent"]], found[told["product"]]


@pytest.mark.parametrize("arm", ["circuits", "genetics", "balancing", "molar_mass", "stoichiometry", "units"])
def test_agrees_with_another_way(arm: str) -> None:
    name = f"science/{arm}"
    for level in SOURCE.arms()[name]:
        for index in range(15):
            task = SOURCE.task(name, level, "train", index)
            facts = plain(task.public["facts"])
            assert agrees(arm, facts, SOURCE.solution(task).answer), facts


def test_refusals() -> None:
    with pytest.raises(DataError, match="no way"):
        balance_reaction(["H2"], ["O2"])
    with pytest.raises(DataError, match="several ways"):
        balance_reaction(["H2", "O2", "C"], ["H2O", "CO2", "CO", "CH4"])
    with pytest.raises(DataError, match="no positive numbers"):
        balance_reaction(["H2O", "H2"], ["O2"])
    assert dict(atoms_of("Fe2(SO4)3")) == atoms("Fe2(SO4)3")


def test_wordings_by_hand() -> None:
    assert Circuits().fields({"network": ["series", 1, 2], "voltage": 0})["network"] == (
        "Connected in series are a resistor of 1 ohm and a resistor of 2 ohms."
    )
    assert (
        Units().fields({"value": 3, "above": ["m", "cm"], "below": ["hours", "seconds"], "power": 2})["old"]
        == "square m per hour"
    )
    assert "is heterozygous for gene A/a" in Genetics().word({"parents": ["Aa", "aa"], "wanted": ["hybrid"]}, 0)


@pytest.mark.parametrize(
    ("arm", "gold", "right", "wrong"),
    [
        ("kinematics", "50 m", ("50", "50 m", "5000 cm", "50 meters"), ("50 km", "51", "20^2/8", "50 s")),
        ("gas", "300 kPa", ("300", "300 kPa", "300000 Pa"), ("300 Pa", "3 kPa")),
        ("circuits", "2 amperes", ("2", "2.0", "2 amperes"), ("2 V", "2 mA", "12/6 + 0")),
        ("choice", "B", ("B", "(B)", "b", "B) 2 m"), ("A", "2", "3 m", "A or B")),
    ],
)
def test_what_answers_count(arm: str, gold: Any, right: tuple[str, ...], wrong: tuple[str, ...]) -> None:
    for said, score in [*((r, 1.0) for r in right), *((w, 0.0) for w in wrong)]:
        found = SOURCE.problem(f"science/{arm}").verifier(Form.TAG)(*task_and_rollout(gold, f"<answer>{said}</answer>"))
        assert found.primary == score, said
