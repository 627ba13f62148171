"""Plane and solid geometry with exact answers: lengths, areas, angles, circles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import gcd, isqrt
from random import Random
from typing import Any, ClassVar

from assay.tasks.problem import Facts, Solution
from assay.tasks.problems import Problems
from assay_tasks.math.exact import ExactProblem, signed_term, wrap_number

__all__ = ["Angles", "Circle", "Distance", "Intersection", "PolygonArea", "Pythagoras", "Solids", "Transformations", "geometry"]


def _root(n: int) -> str:
    """The square root of a whole number, with its square factors taken out.

    >>> _root(49), _root(12), _root(7)
    ('7', '2*sqrt(3)', 'sqrt(7)')
    """
    out, k = 1, 2
    while k * k <= n:
        if n % (k * k):
            k += 1
        else:
            n //= k * k
            out *= k
    if n == 1:
        return str(out)
    return f"{out}*sqrt({n})" if out > 1 else f"sqrt({n})"


def _of_pi(value: Fraction | int) -> str:
    return "pi" if value == 1 else f"{value}*pi" if value.denominator == 1 else f"({value})*pi"


def _point(rng: Random, most: int) -> list[int]:
    return [rng.randint(-most, most), rng.randint(-most, most)]


def _text_of(point: Any) -> str:
    return f"({', '.join(map(str, point))})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance(ExactProblem):
    r"""The distance of two points, or the length of a path. The level is the number of segments; all lengths are whole but one.

    >>> Distance().solve({"points": [[0, 0], [3, 4], [5, 6]]}).steps
    '(0, 0) to (3, 4): sqrt(3^2 + 4^2) = 5\n(3, 4) to (5, 6): sqrt(2^2 + 2^2) = 2*sqrt(2)\nin all 5 + 2*sqrt(2)'
    """

    name: str = "geometry/distance"
    levels: tuple[int, ...] = (1, 2, 3, 4)

    written: ClassVar[str] = "simple"
    templates: ClassVar[tuple[str, ...]] = (
        "What is the length of the path made of straight lines from {path}? Give the exact value, with square roots if needed.",
        "An ant walks straight from {path}. How long is its way, exactly?",
        "Find the exact total length of the line segments that lead from {path}.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Steps of whole length, and one of any."""
        at = _point(rng, 10)
        points = [at]
        odd = rng.randrange(level)
        for i in range(level):
            dx, dy = (rng.randint(1, 9), rng.randint(1, 9)) if i == odd else rng.choice(_WHOLE)
            k = 1 if i == odd else rng.randint(1, 2)
            at = [at[0] + k * dx * rng.choice((-1, 1)), at[1] + k * dy * rng.choice((-1, 1))]
            points.append(at)
        return {"points": points}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The points in order."""
        return {"path": " to ".join(map(_text_of, facts["points"]))}

    def solve(self, facts: Facts) -> Solution:
        """Pythagoras for each segment."""
        points = facts["points"]
        steps: list[str] = []
        whole, rest = 0, list[str]()
        for (a, b), (c, d) in pairwise(points):
            dx, dy = abs(c - a), abs(d - b)
            square = dx * dx + dy * dy
            steps.append(f"({a}, {b}) to ({c}, {d}): sqrt({dx}^2 + {dy}^2) = {_root(square)}")
            if isqrt(square) ** 2 == square:
                whole += isqrt(square)
            else:
                rest.append(_root(square))
        answer = " + ".join([str(whole)] * (whole > 0) + rest)
        if len(steps) > 1:
            steps.append(f"in all {answer}")
        return Solution(answer=answer, steps="\n".join(steps), effort=3 * len(points) - 3)


_WHOLE = ((3, 4), (4, 3), (5, 12), (12, 5), (8, 15), (6, 8), (0, 5), (7, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pythagoras(ExactProblem):
    r"""A length in a right triangle, a rectangle or a box, a rhombus or an equilateral triangle. The level adds kinds.

    >>> Pythagoras().solve({"kind": "leg", "sides": [5, 13]}).steps
    'sqrt(13^2 - 5^2) = sqrt(144) = 12'
    """

    name: str = "geometry/pythagoras"
    levels: tuple[int, ...] = (1, 2, 3)

    written: ClassVar[str] = "simple"
    templates: ClassVar[tuple[str, ...]] = (
        "{text} Give the exact value, with a square root if it is needed.",
        "{text} Answer exactly; square roots such as sqrt(2) may remain.",
        "Geometry: {text} Write the exact length.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Lengths for one of the kinds of the level."""
        kind = rng.choice((("hypotenuse", "leg"), ("rectangle", "rhombus", "isosceles"), ("box", "far"))[level - 1])
        most = 60
        a, b, c, d = (rng.randint(2, most) for _ in range(4))
        match kind:
            case "hypotenuse" | "rectangle":
                sides = sorted((a, b) if d % 2 else (c * n for n in rng.choice(_WHOLE[:6])))
            case "leg":
                sides = [a, a + b] if d % 2 else rng.choice(([3 * c, 5 * c], [5 * c, 13 * c], [8 * c, 17 * c], [15 * c, 17 * c]))
            case "rhombus":
                sides = sorted((2 * a, 2 * b))
            case "isosceles":
                sides = [2 * a, a + b]  # base and legs
            case "box":
                sides = sorted((a, b, c))
            case _:
                sides = [a, b, c, d]
        return {"kind": kind, "sides": sides}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The figure in words."""
        return {"text": _FIGURES[facts["kind"]].format(*facts["sides"])}

    def solve(self, facts: Facts) -> Solution:
        """The theorem, once or twice."""
        sides = facts["sides"]
        a, b, *rest = sides
        match facts["kind"]:
            case "hypotenuse" | "rectangle":
                how, square = f"sqrt({a}^2 + {b}^2)", a * a + b * b
            case "leg":
                how, square = f"sqrt({b}^2 - {a}^2)", b * b - a * a
            case "rhombus":
                how, square = f"sqrt({a // 2}^2 + {b // 2}^2)", (a * a + b * b) // 4
            case "isosceles":
                how, square = f"sqrt({b}^2 - {a // 2}^2)", b * b - a * a // 4
            case "box":
                how, square = f"sqrt({a}^2 + {b}^2 + {rest[0]}^2)", a * a + b * b + rest[0] ** 2
            case _:
                across, along = abs(a - rest[0]), b + rest[1]
                how, square = f"sqrt({across}^2 + {along}^2)", across * across + along * along
        answer = _root(square)
        effort = {"hypotenuse": 2, "leg": 2, "rectangle": 3, "rhombus": 3, "isosceles": 3}.get(facts["kind"], 4)
        taken = "" if answer == f"sqrt({square})" else f" = {answer}"
        return Solution(answer=answer, steps=f"{how} = sqrt({square}){taken}", effort=effort)


_FIGURES = {
    "hypotenuse": "The legs of a right triangle measure {0} and {1}. How long is the hypotenuse?",
    "leg": "One leg of a right triangle measures {0}, the hypotenuse {1}. How long is the other leg?",
    "rectangle": "A rectangle is {0} wide and {1} long. How long is its diagonal?",
    "rhombus": "The diagonals of a rhombus measure {0} and {1}. How long is each side?",
    "isosceles": "An isosceles triangle has the base {0} and two equal sides of length {1}. How high is it above its base?",
    "box": "A box measures {0} by {1} by {2}. How long is the diagonal through its inside, from corner to opposite corner?",
    "far": "Someone walks {0} steps north, {1} steps east, {2} steps south and {3} steps east, all steps being equally long. "
    "How many steps long is the straight line from start to end?",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PolygonArea(ExactProblem):
    r"""The area of a polygon given by its corners. The level is the number of corners, less two.

    >>> PolygonArea().solve({"corners": [[0, 0], [4, 0], [0, 3]]}).steps
    '0 × 0 - 4 × 0 = 0\n4 × 3 - 0 × 0 = 12\n0 × 0 - 0 × 3 = 0\n(0 + 12 + 0) / 2 = 6'
    """

    name: str = "geometry/polygon_area"

    templates: ClassVar[tuple[str, ...]] = (
        "What is the area of the polygon with the corners {corners}, in this order?",
        "The corners of a plot of land are, one after the other, {corners}. How large is its area, in square units?",
        "Compute the area enclosed by the straight lines {corners} and back to the first point.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Points around a centre, in the order of their angles: one in each sector of less than half a turn."""
        n = level + 2
        sectors = _SECTORS[n]
        while True:
            far = [rng.randint(3, 12) for _ in sectors]
            corners = [[round(x * r), round(y * r)] for (x, y), r in zip(sectors, far, strict=True)]
            if len({tuple(c) for c in corners}) == n and _twice(corners) > 0:
                dx, dy = _point(rng, 8)
                return {"corners": [[x + dx, y + dy] for x, y in corners]}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The corners in order."""
        return {"corners": ", ".join(map(_text_of, facts["corners"]))}

    def solve(self, facts: Facts) -> Solution:
        """Gauss' formula (shoelace)."""
        corners = facts["corners"]
        steps: list[str] = []
        parts: list[int] = []
        for (a, b), (c, d) in zip(corners, [*corners[1:], corners[0]], strict=True):
            parts.append(a * d - c * b)
            steps.append(f"{wrap_number(a)} × {wrap_number(d)} - {wrap_number(c)} × {wrap_number(b)} = {parts[-1]}")
        answer = Fraction(abs(sum(parts)), 2)
        steps.append(f"({' + '.join(map(wrap_number, parts))}) / 2 = {Fraction(sum(parts), 2)}")
        return Solution(answer=str(answer), steps="\n".join(steps), effort=len(parts))


def _twice(corners: list[list[int]]) -> int:
    """Twice the area, negative for corners in the order of the clock."""
    return sum(a * d - c * b for (a, b), (c, d) in zip(corners, [*corners[1:], corners[0]], strict=True))


_SECTORS = {
    3: ((1.0, 0.0), (-0.5, 0.9), (-0.5, -0.9)),
    4: ((1.0, 0.1), (-0.1, 1.0), (-1.0, -0.1), (0.1, -1.0)),
    5: ((1.0, 0.0), (0.3, 1.0), (-0.8, 0.6), (-0.8, -0.6), (0.3, -1.0)),
    6: ((1.0, 0.0), (0.5, 0.9), (-0.5, 0.9), (-1.0, 0.0), (-0.5, -0.9), (0.5, -0.9)),
    7: ((1.0, 0.0), (0.6, 0.8), (-0.2, 1.0), (-0.9, 0.4), (-0.9, -0.4), (-0.2, -1.0), (0.6, -0.8)),
}
"""Directions of corners, in which two neighbours are less than half a turn apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intersection(ExactProblem):
    r"""Where two lines meet. The level: 1 slopes are whole, 2 equations ax + by = c, 3 each line through two points.

    >>> Intersection().solve({"lines": [[1, -1, -1], [1, 1, 3]], "kind": 2}).answer
    '(1, 2)'
    """

    name: str = "geometry/intersection"
    levels: tuple[int, ...] = (1, 2, 3)

    templates: ClassVar[tuple[str, ...]] = (
        "At which point (x, y) do {first} and {second} meet?",
        "Find the intersection point (x, y) of {first} and {second}.",
        "{First} crosses {second}. What are the coordinates (x, y) of the crossing?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Lines a x + b y = c that are not parallel; through points for level 3."""
        while True:
            if level == 3:
                points = [_point(rng, 9) for _ in range(4)]
                pairs = [points[:2], points[2:]]
                lines = [_through(*pair) for pair in pairs]
                facts: dict[str, Any] = {"points": pairs, "kind": level}
            else:
                sides = ((1, -1), (1,)) if level == 1 else ((-5, 5), ())
                lines = [_line(rng, level, sides[0]) for _ in range(2)]
                facts = {"lines": lines, "kind": level}
            if _cross(lines[0], lines[1]) and all(line[0] or line[1] for line in lines):
                return facts

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The lines in words."""
        if facts["kind"] == 3:
            first, second = (f"the line through {_text_of(p)} and {_text_of(q)}" for p, q in facts["points"])
        else:
            first, second = (f"the line {_equation(line, facts['kind'])}" for line in facts["lines"])
        return {"first": first, "second": second, "First": f"T{first[1:]}"}

    def solve(self, facts: Facts) -> Solution:
        """Cramer's rule."""
        steps: list[str] = []
        lines: list[list[int]] = facts["lines"] if "lines" in facts else [_through(p, q) for p, q in facts["points"]]
        (a, b, c), (d, e, f) = lines
        if facts["kind"] != 2:
            steps += [_equation(line, 2) for line in lines]
        below = a * e - b * d
        x, y = Fraction(c * e - b * f, below), Fraction(a * f - c * d, below)
        steps.append(f"determinant {wrap_number(a)} × {wrap_number(e)} - {wrap_number(b)} × {wrap_number(d)} = {below}")
        steps.append(f"x = {c * e - b * f} / {wrap_number(below)} = {x}, y = {a * f - c * d} / {wrap_number(below)} = {y}")
        return Solution(answer=f"({x}, {y})", steps="\n".join(steps), effort=(4, 6, 9)[facts["kind"] - 1])


def _line(rng: Random, level: int, ends: tuple[int, int]) -> list[int]:
    if level == 1:
        return [rng.choice((-1, 1)) * rng.randint(1, 6), -1, rng.randint(-12, 12)]
    return [rng.randint(*ends), rng.choice((-1, 1)) * rng.randint(1, 6), rng.randint(-20, 20)]


def _through(p: list[int], q: list[int]) -> list[int]:
    a, b = q[1] - p[1], p[0] - q[0]
    common = gcd(a, b) or 1
    return [a // common, b // common, (a * p[0] + b * p[1]) // common]


def _cross(one: list[int], other: list[int]) -> int:
    return one[0] * other[1] - one[1] * other[0]


def _equation(line: list[int], kind: int) -> str:
    a, b, c = line
    if kind == 1:  # b is -1: y = a x - c
        return f"y = {signed_term(a, 'x', first=True)}{signed_term(-c, '')}"
    left = f"{signed_term(a, 'x', first=True)}{signed_term(b, 'y', first=not a)}"
    return f"{left} = {c}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Angles(ExactProblem):
    r"""An angle of a polygon, from the others or from their ratio. The level adds angles.

    >>> Angles().solve({"kind": "polygon", "angles": [100, 80, 120]}).steps
    'the sum in a 4-gon is 2 × 180 = 360\n360 - 100 - 80 - 120 = 60'
    """

    name: str = "geometry/angles"

    templates: ClassVar[tuple[str, ...]] = (
        "{text} Give the number of degrees.",
        "{text} Answer in degrees.",
        "In a plane figure all angles are measured in degrees. {text}",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Angles that leave room for the one asked for."""
        kind = rng.choice(("polygon", "outer", "ratio"))
        n = level + 2
        if kind == "ratio":
            parts = sorted(rng.randint(1, 9) for _ in range(n))
            return {"kind": kind, "angles": parts, "largest": rng.random() < 0.5}
        total = 180 * (n - 2) if kind == "polygon" else 360
        while True:
            cuts = sorted(rng.sample(range(1, total), n - 1))
            angles = [b - a for a, b in zip([0, *cuts], [*cuts, total], strict=True)]
            if min(angles) >= 8 and max(angles) < 175:
                return {"kind": kind, "angles": angles[:-1]}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The figure in words."""
        angles = facts["angles"]
        listed = f"{', '.join(f'{a}°' for a in angles[:-1])} and {angles[-1]}°"
        n = len(angles) + (facts["kind"] != "ratio")
        if facts["kind"] == "ratio":
            which = "largest" if facts["largest"] else "smallest"
            return {
                "text": f"The inner angles of a convex {_gon(n)} are to each other as {':'.join(map(str, angles))}. "
                f"How large is the {which} of them?"
            }
        which = "inner" if facts["kind"] == "polygon" else "exterior"
        others = "" if facts["kind"] == "polygon" else " (one at each corner)"
        return {"text": f"In a convex {_gon(n)}, all {which} angles{others} but one are {listed}. How large is the last one?"}

    def solve(self, facts: Facts) -> Solution:
        """What is left of the sum."""
        angles, kind = facts["angles"], facts["kind"]
        n = len(angles) + (kind != "ratio")
        total = 360 if kind == "outer" else 180 * (n - 2)
        said = "the exterior angles sum to 360" if kind == "outer" else f"the sum in a {n}-gon is {n - 2} × 180 = {total}"
        if kind == "ratio":
            part = max(angles) if facts["largest"] else min(angles)
            answer = Fraction(total * part, sum(angles))
            how = f"{part}/{sum(angles)} of {total} = {answer}"
        else:
            answer = Fraction(total - sum(angles))
            how = f"{total} - {' - '.join(map(str, angles))} = {answer}"
        return Solution(answer=str(answer), steps=f"{said}\n{how}", effort=n)


def _gon(n: int) -> str:
    return {3: "triangle", 4: "quadrilateral", 5: "pentagon", 6: "hexagon", 7: "heptagon"}[n]


@dataclass(frozen=True, slots=True, kw_only=True)
class Circle(ExactProblem):
    r"""Area or length of circles, rings, sectors, and squares with circles, as a multiple of pi. The level adds kinds.

    >>> Circle().solve({"kind": "ring", "sizes": [3, 5]}).steps
    '(5^2 - 3^2) × pi = 16*pi'
    """

    name: str = "geometry/circle"
    levels: tuple[int, ...] = (1, 2, 3)

    written: ClassVar[str] = "simple"
    templates: ClassVar[tuple[str, ...]] = (
        "{text} Give the exact value in terms of pi.",
        "{text} Answer exactly, with pi (π) as a symbol.",
        "{text} Do not round: leave pi in the answer.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Sizes for one of the kinds of the level."""
        kind = rng.choice((("area", "round"), ("ring", "sector", "arc"), ("inside", "outside", "stadium"))[level - 1])
        a, b = rng.randint(2, 400 if level == 1 else 40), rng.randint(1, 40)
        match kind:
            case "area" | "round":
                sizes = [a, rng.randrange(2)]  # radius or diameter
            case "ring":
                sizes = [a, a + b]
            case "sector" | "arc":
                sizes = [a, 10 * rng.randint(1, 35)]
            case _:
                sizes = [2 * a, b]
        return {"kind": kind, "sizes": sizes}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The figure in words."""
        a, b = facts["sizes"]
        kind = facts["kind"]
        if kind in ("area", "round"):
            what = "How large is its area?" if kind == "area" else "How long is its circumference?"
            return {"text": f"A circle has the {'diameter' if b else 'radius'} {a}. {what}"}
        return {"text": _ROUND[kind].format(a=a, b=b)}

    def solve(self, facts: Facts) -> Solution:
        """The formula of the figure."""
        a, b = facts["sizes"]
        match facts["kind"]:
            case "area":
                r = Fraction(a, 1 + b)
                how, answer = f"{wrap_number(r)}^2 × pi", _of_pi(r * r)
            case "round":
                how, answer = f"{a} × pi" if b else f"2 × {a} × pi", _of_pi(a if b else 2 * a)
            case "ring":
                how, answer = f"({b}^2 - {a}^2) × pi", _of_pi(b * b - a * a)
            case "sector":
                how, answer = f"{b}/360 × {a}^2 × pi", _of_pi(Fraction(b * a * a, 360))
            case "arc":
                how, answer = f"{b}/360 × 2 × {a} × pi", _of_pi(Fraction(2 * b * a, 360))
            case "inside":
                how, answer = f"{a}^2 - ({a}/2)^2 × pi", f"{a * a} - {_of_pi(a * a // 4)}"
            case "outside":
                how, answer = f"2 × ({a}/2)^2 × pi - {a}^2", f"{_of_pi(a * a // 2)} - {a * a}"
            case _:
                how, answer = f"{a} × {b} + ({a}/2)^2 × pi", f"{a * b} + {_of_pi(a * a // 4)}"
        effort = {"area": 2, "round": 2, "ring": 3, "sector": 3, "arc": 3}.get(facts["kind"], 5)
        return Solution(answer=answer, steps=f"{how} = {answer}", effort=effort)


_ROUND = {
    "ring": "A ring lies between two circles with the same centre and the radii {a} and {b}. How large is its area?",
    "sector": "A sector of a circle with radius {a} has the central angle {b}°. How large is its area?",
    "arc": "On a circle with radius {a}, how long is the arc that belongs to a central angle of {b}°?",
    "inside": "A circle is inscribed in a square with side {a}, so that it touches all four sides. How large is the part of the "
    "square outside the circle?",
    "outside": "A circle goes through all four corners of a square with side {a}. How large is the part of the disc outside the "
    "square?",
    "stadium": "A field consists of a rectangle, {a} wide and {b} long, and of a half disc on each of its two sides of length "
    "{a}. How large is its area?",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Solids(ExactProblem):
    r"""Volume or surface of a solid. The level: 1 boxes, 2 prisms and pyramids, 3 round ones.

    >>> Solids().solve({"kind": "cone", "sizes": [3, 4]}).steps
    '3^2 × pi × 4 / 3 = 12*pi'
    """

    name: str = "geometry/solids"
    levels: tuple[int, ...] = (1, 2, 3)

    written: ClassVar[str] = "simple"
    templates: ClassVar[tuple[str, ...]] = (
        "{text} Give the exact value.",
        "{text} Answer with the exact number; pi may remain as a symbol.",
        "Solid geometry: {text} Do not round.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Sizes for one of the kinds of the level."""
        kind = rng.choice((("box", "skin"), ("pyramid", "roof", "frame"), ("cylinder", "cone", "sphere", "shell"))[level - 1])
        sizes = [rng.randint(2, 30) for _ in range({"cylinder": 2, "cone": 2, "sphere": 1}.get(kind, 3))]
        if kind == "frame":
            sizes = [s + 2 for s in sizes]
        if kind == "sphere":
            sizes = [rng.randint(1, 300)]
        if kind == "shell":
            sizes[1] += sizes[0]
        return {"kind": kind, "sizes": sizes}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The solid in words."""
        return {"text": _SOLIDS[facts["kind"]].format(*facts["sizes"])}

    def solve(self, facts: Facts) -> Solution:
        """The formula of the solid."""
        a, b, c = [*facts["sizes"], 0, 0][:3]
        match facts["kind"]:
            case "box":
                how, answer = f"{a} × {b} × {c}", str(a * b * c)
            case "skin":
                how, answer = f"2 × ({a} × {b} + {a} × {c} + {b} × {c})", str(2 * (a * b + a * c + b * c))
            case "pyramid":
                how, answer = f"{a} × {b} × {c} / 3", str(Fraction(a * b * c, 3))
            case "roof":
                how, answer = f"{a} × {b} / 2 × {c}", str(Fraction(a * b * c, 2))
            case "frame":
                inner = (a - 2) * (b - 2) * (c - 2)
                how, answer = f"{a} × {b} × {c} - {a - 2} × {b - 2} × {c - 2}", str(a * b * c - inner)
            case "cylinder":
                how, answer = f"{a}^2 × pi × {b}", _of_pi(a * a * b)
            case "cone":
                how, answer = f"{a}^2 × pi × {b} / 3", _of_pi(Fraction(a * a * b, 3))
            case "sphere":
                how, answer = f"4/3 × {a}^3 × pi", _of_pi(Fraction(4 * a**3, 3))
            case _:
                how, answer = f"({b}^2 - {a}^2) × pi × {c}", _of_pi((b * b - a * a) * c)
        effort = {"box": 2, "skin": 3, "pyramid": 3, "roof": 3, "frame": 5}.get(facts["kind"], 5)
        return Solution(answer=answer, steps=f"{how} = {answer}", effort=effort)


_SOLIDS = {
    "box": "A box is {0} long, {1} wide and {2} high. What is its volume?",
    "skin": "A closed box is {0} long, {1} wide and {2} high. How large is its whole surface?",
    "pyramid": "A pyramid has a rectangular base of {0} by {1} and the height {2}. What is its volume?",
    "roof": "A prism of length {2} has a triangle as its cross-section, with the base {0} and the height {1}. What is its "
    "volume?",
    "frame": "A closed box measures {0} by {1} by {2} outside; its walls, bottom and lid are 1 thick. What is the volume of the "
    "material?",
    "cylinder": "A cylinder has the radius {0} and the height {1}. What is its volume, in terms of pi?",
    "cone": "A cone has a base of radius {0} and the height {1}. What is its volume, in terms of pi?",
    "sphere": "A ball has the radius {0}. What is its volume, in terms of pi?",
    "shell": "A pipe of length {2} has the inner radius {0} and the outer radius {1}. What is the volume of its wall, in "
    "terms of pi?",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformations(ExactProblem):
    r"""Where a point goes under reflections, turns and shifts. The level is how many there are.

    >>> Transformations().solve({"point": [2, 1], "moves": [["turn", 90], ["shift", [1, -1]]]}).steps
    '(2, 1) goes to (-1, 2)\n(-1, 2) goes to (0, 1)'
    """

    name: str = "geometry/transformations"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6)

    templates: ClassVar[tuple[str, ...]] = (
        "The point {point} is {moves}. Where is it now? Answer with its coordinates (x, y).",
        "Start with the point {point}. One after the other, it is {moves}. What are the coordinates (x, y) of the image?",
        "A point lies at {point}. It is {moves}. At which coordinates (x, y) does it end?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Moves that take whole coordinates to such."""
        moves: list[list[Any]] = []
        for _ in range(level):
            kind = rng.choice(("mirror", "turn", "shift", "stretch"))
            match kind:
                case "mirror":
                    moves.append([kind, rng.choice(("x-axis", "y-axis", "line y = x", "line y = -x"))])
                case "turn":
                    moves.append([kind, rng.choice((90, 180, 270))])
                case "shift":
                    moves.append([kind, _point(rng, 9)])
                case _:
                    moves.append([kind, rng.choice((2, 3, -2))])
        return {"point": _point(rng, 20), "moves": moves}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The moves in words."""
        return {"point": _text_of(facts["point"]), "moves": ", then ".join(_move(kind, by) for kind, by in facts["moves"])}

    def solve(self, facts: Facts) -> Solution:
        """Move by move."""
        x, y = facts["point"]
        steps: list[str] = []
        for kind, by in facts["moves"]:
            match kind:
                case "mirror":
                    u, v = {"x-axis": (x, -y), "y-axis": (-x, y), "line y = x": (y, x), "line y = -x": (-y, -x)}[by]
                case "turn":
                    u, v = {90: (-y, x), 180: (-x, -y), 270: (y, -x)}[by]
                case "shift":
                    u, v = x + by[0], y + by[1]
                case _:
                    u, v = by * x, by * y
            steps.append(f"({x}, {y}) goes to ({u}, {v})")
            x, y = u, v
        return Solution(answer=f"({x}, {y})", steps="\n".join(steps), effort=len(steps))


def _move(kind: str, by: Any) -> str:
    match kind:
        case "mirror":
            return f"reflected in the {by}"
        case "turn":
            return f"rotated by {by}° counterclockwise about the origin"
        case "shift":
            return f"moved by {by[0]} in the direction of x and by {by[1]} in the direction of y"
        case _:
            return f"stretched from the origin by the factor {by}"


def geometry() -> Problems:
    """Lengths, areas, angles, circles and solids, with exact answers."""
    return Problems(
        name="geometry",
        summary="Lengths, areas, angles, circles and solids, with exact answers.",
        problems=(
            Distance(),
            Pythagoras(),
            PolygonArea(),
            Intersection(),
            Angles(),
            Circle(),
            Solids(),
            Transformations(),
        ),
    )
