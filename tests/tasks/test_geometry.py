"""Geometry: each solver against sympy's points, lines and polygons, or numbers."""

from __future__ import annotations

from math import dist, isclose, pi
from typing import Any

import pytest
import sympy
from test_algebra import read

from assay.core.canon import plain
from assay.tasks import Form, Problem
from assay.testing import check_problem
from assay.verify.rollouts import task_and_rollout
from assay_tasks.math.geometry import Angles, Circle, Pythagoras, geometry

SOURCE = geometry()


@pytest.mark.parametrize("problem", SOURCE.problems, ids=lambda p: p.name)
def test_problems_keep_their_contract(problem: Problem) -> None:
    check_problem(problem, n=30, growth=1.5)


def value(text: str) -> float:
    return float(read(text.replace("pi", "(pi)")).evalf())


def turned(point: complex, moves: list[list[Any]]) -> complex:
    """Moves as arithmetic of complex numbers."""
    for kind, by in moves:
        match kind:
            case "mirror":
                axis = {"x-axis": 1, "y-axis": -1, "line y = x": 1j, "line y = -x": -1j}[by]
                point = axis * point.conjugate()
            case "turn":
                point *= 1j ** (by // 90)
            case "shift":
                point += complex(*by)
            case _:
                point *= by
    return point


def agrees(arm: str, f: dict[str, Any], said: str) -> bool:
    match arm:
        case "distance":
            return isclose(value(said), sum(dist(p, q) for p, q in zip(f["points"], f["points"][1:], strict=False)))
        case "polygon_area":
            return abs(sympy.Polygon(*f["corners"]).area) == sympy.Rational(said)
        case "intersection":
            if f["kind"] == 3:
                lines = [sympy.Line(*pair) for pair in f["points"]]
            else:
                x, y = sympy.symbols("x y")
                lines = [sympy.Line(a * x + b * y - c) for a, b, c in f["lines"]]
            return tuple(lines[0].intersection(lines[1])[0]) == read(said)
        case "transformations":
            x, y = read(said)
            return turned(complex(*f["point"]), f["moves"]) == complex(x, y)
        case "angles":
            n = len(f["angles"]) + (f["kind"] != "ratio")
            total = 360 if f["kind"] == "outer" else 180 * (n - 2)
            if f["kind"] != "ratio":
                return int(said) + sum(f["angles"]) == total and 0 < int(said) < 180
            picked = max(f["angles"]) if f["largest"] else min(f["angles"])
            return isclose(float(sympy.Rational(said)) * sum(f["angles"]), total * picked)
        case "pythagoras":
            a, b, *rest = f["sides"]
            lengths = {
                "hypotenuse": abs(complex(a, b)),
                "rectangle": abs(complex(a, b)),
                "rhombus": abs(complex(a, b)) / 2,
                "leg": (b * b - a * a) ** 0.5,
                "isosceles": (b * b - a * a / 4) ** 0.5,
                "box": dist((0, 0, 0), (a, b, *rest)) if len(rest) == 1 else 0,
                "far": abs(complex(b + rest[1], a - rest[0])) if len(rest) == 2 else 0,
            }
            return isclose(value(said), lengths[f["kind"]])
        case "circle":
            a, b = f["sizes"]
            areas = {
                "area": pi * (a / 2 if b else a) ** 2,
                "round": pi * (a if b else 2 * a),
                "ring": pi * b * b - pi * a * a,
                "sector": pi * a * a * b / 360,
                "arc": 2 * pi * a * b / 360,
                "inside": a * a - pi * (a / 2) ** 2,
                "outside": pi * 2 * (a / 2) ** 2 - a * a,
                "stadium": a * b + pi * (a / 2) ** 2,
            }
            return isclose(value(said), areas[f["kind"]])
        case _:
            a, b, c = [*f["sizes"], 0, 0][:3]
            sizes = {
                "box": a * b * c,
                "skin": 2 * (a * b + b * c + c * a),
                "pyramid": a * b * c / 3,
                "roof": a * b * c / 2,
                "frame": a * b * c - (a - 2) * (b - 2) * (c - 2),
                "cylinder": pi * a * a * b,
                "cone": pi * a * a * b / 3,
                "sphere": 4 / 3 * pi * a**3,
                "shell": pi * c * (b * b - a * a),
            }
            return isclose(value(said), sizes[f["kind"]])


@pytest.mark.parametrize("arm", SOURCE.arms())
def test_agrees_with_another_way(arm: str) -> None:
    for level in SOURCE.arms()[arm]:
        for index in range(8):
            task = SOURCE.task(arm, level, "train", index)
            facts = plain(task.public["facts"])
            assert agrees(arm.removeprefix("geometry/"), facts, SOURCE.solution(task).answer), facts


def test_by_hand() -> None:
    assert Pythagoras().solve({"kind": "far", "sides": [10, 2, 4, 6]}).answer == "10"
    assert Pythagoras().solve({"kind": "box", "sides": [2, 3, 6]}).steps == "sqrt(2^2 + 3^2 + 6^2) = sqrt(49) = 7"
    assert Angles().solve({"kind": "ratio", "angles": [1, 2, 3], "largest": True}).answer == "90"
    assert Circle().solve({"kind": "area", "sizes": [3, 1]}).answer == "(9/4)*pi"
    assert Circle().solve({"kind": "arc", "sizes": [1, 180]}).answer == "pi"


@pytest.mark.parametrize(
    ("arm", "facts", "right", "wrong"),
    [
        (
            "circle",
            {"kind": "ring", "sizes": [3, 5]},
            ("16\\pi", "16π", "16 pi", "\\pi \\cdot 16"),
            ("16", "50.27", "(5^2 - 3^2)\\pi"),
        ),
        ("pythagoras", {"kind": "hypotenuse", "sides": [2, 4]}, ("2\\sqrt{5}", "sqrt(20)"), ("4.472", "sqrt(2^2 + 4^2)", "20")),
        ("intersection", {"lines": [[1, -1, -1], [1, 1, 3]], "kind": 2}, ("(1, 2)", "x = 1, y = 2"), ("(2, 1)", "1")),
        ("angles", {"kind": "outer", "angles": [100, 100]}, ("160", "160°", "160^\\circ", "160 degrees"), ("20", "360 - 200")),
    ],
)
def test_what_answers_count(arm: str, facts: dict[str, Any], right: tuple[str, ...], wrong: tuple[str, ...]) -> None:
    problem = SOURCE.problem(f"geometry/{arm}")
    gold = problem.solve(facts).answer
    for said, score in [*((r, 1.0) for r in right), *((w, 0.0) for w in wrong)]:
        assert problem.verifier(Form.TAG)(*task_and_rollout(gold, f"<answer>{said}</answer>")).primary == score, said
