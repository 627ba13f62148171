"""Circuits, decay, genes, growth and units; and the family of all problems of science."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction as F
from random import Random
from typing import Any, ClassVar, cast

from assay.tasks.problem import Facts, Solution
from assay.tasks.problems import Problems
from assay_tasks.math.exact import ExactProblem
from assay_tasks.math.stories import list_parts
from assay_tasks.science.chemistry import Balancing, Gas, MolarMass, Solutions, Stoichiometry
from assay_tasks.science.law import Kind, LawProblem, decimal
from assay_tasks.science.physics import Energy, Forces, Heat, Kepler, Kinematics, Matter, PhysicsChoice, Waves

__all__ = ["Circuits", "Decay", "Genetics", "Growth", "Units", "science"]

Network = int | list[Any]
"""A resistor in ohms, or ``["series" or "parallel", network, network, ...]``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Circuits(ExactProblem):
    r"""The resistance of a network, or the current through it. The level is the number of resistors, less one.

    >>> Circuits().solve({"network": ["series", 4, ["parallel", 3, 6]], "voltage": 12}).steps
    'parallel 3, 6: 1 / (1/3 + 1/6) = 2\nseries 4, 2: 4 + 2 = 6\n12 / 6 = 2 A'
    """

    name: str = "science/circuits"
    domain: str = "science"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6)

    templates: ClassVar[tuple[str, ...]] = (
        "{network} {question} Give the exact number, as a decimal or a fraction.",
        "A circuit is made of resistors. {network} {question} Do not round.",
        "Consider this network of resistors: {small} {question} Answer with an exact number.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A random tree of series and parallel connections."""
        voltage = rng.randint(1, 24) * 2 if rng.random() < 0.5 else 0
        return {"network": _network(level + 1, rng.choice(("series", "parallel")), rng), "voltage": voltage}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The network in words, from the outside."""
        said = _network_text(facts["network"])
        voltage = facts["voltage"]
        question = (
            f"It is connected to {voltage} V. Which total current flows, in amperes?"
            if voltage
            else "What is its resistance in ohms?"
        )
        return {"network": f"Connected {said}.", "small": f"connected {said}.", "question": question}

    def solve(self, facts: Facts) -> Solution:
        """From the inside."""
        steps: list[str] = []
        total = _resistance(facts["network"], steps)
        answer = total
        if facts["voltage"]:
            answer = facts["voltage"] / total
            steps.append(f"{facts['voltage']} / {decimal(total)} = {decimal(answer)} A")
        unit = "amperes" if facts["voltage"] else "ohms"
        effort = _count(facts["network"]) * 2 + (facts["voltage"] > 0)
        return Solution(answer=decimal(answer), gold=f"{decimal(answer)} {unit}", steps="\n".join(steps), effort=effort)


def _network(size: int, kind: str, rng: Random) -> Network:
    if size == 1:
        return rng.randint(1, 60)
    parts = rng.randint(2, min(3, size))
    cuts = sorted(rng.sample(range(1, size), parts - 1))
    other = "parallel" if kind == "series" else "series"
    return [kind, *(_network(b - a, other, rng) for a, b in zip([0, *cuts], [*cuts, size], strict=True))]


def _network_text(network: Network) -> str:
    """Nested parts in brackets.

    >>> _network_text(["series", 4, ["parallel", 3, 6]])
    'in series are a resistor of 4 ohms and (connected in parallel: a resistor of 3 ohms and a resistor of 6 ohms)'
    """
    kind, *parts = cast("list[Any]", network)
    return f"in {kind} are {list_parts([_part(p) for p in parts])}"


def _part(network: Network) -> str:
    if isinstance(network, int):
        return f"a resistor of {network} ohm{'s' * (network > 1)}"
    kind, *parts = network
    return f"(connected in {kind}: {list_parts([_part(p) for p in parts])})"


def _resistance(network: Network, steps: list[str]) -> F:
    if isinstance(network, int):
        return F(network)
    kind, *parts = network
    values = [_resistance(p, steps) for p in parts]
    shown = [str(v) if v.denominator == 1 else f"({v})" for v in values]
    if kind == "series":
        total, how = sum(values, F(0)), " + ".join(shown)
    else:
        total, how = 1 / sum((1 / v for v in values), F(0)), f"1 / ({' + '.join(f'1/{s}' for s in shown)})"
    steps.append(f"{kind} {', '.join(shown)}: {how} = {total}")
    return total


def _count(network: Network) -> int:
    return 1 if isinstance(network, int) else sum(map(_count, network[1:]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Decay(LawProblem):
    """Half-lives. The level: what is left, how long it took, mixtures.

    >>> Decay().solve({"kind": "left", "n": 3, "h": 8, "m": 200}).steps
    '200 / 2^3 = 25 g'
    """

    name: str = "science/decay"
    levels: tuple[int, ...] = (1, 2, 3)

    kinds: ClassVar[Mapping[str, Kind]] = {
        "left": Kind(
            1,
            "An isotope has a half-life of {h} days. After {n} half-lives, how much is left of {m} g?",
            {"n": (2, 6, 1), "h": (2, 90, 1), "m": (10, 900, 10)},
            "g",
            lambda q: (F(q["m"], 2 ** q["n"]), f"{q['m']} / 2^{q['n']}"),
        ),
        "age": Kind(
            2,
            "An isotope has a half-life of {h} years. Of {k} grams per tonne that were there at first, one part in "
            "2^{n} is left. How old "
            "is the sample?",
            {"h": (20, 6000, 10), "n": (2, 9, 1), "k": (10, 80, 10)},
            "years",
            lambda q: (F(q["h"] * q["n"]), f"n × h = {q['n']} × {q['h']}"),
        ),
        "two": Kind(
            3,
            "A sample has {m} g of an isotope A with a half-life of {h} days and {w} g of an isotope B with a "
            "half-life twice as long. "
            "How many grams of both together are left after {n} half-lives of B?",
            {"m": (16, 960, 16), "h": (2, 60, 1), "w": (16, 960, 16), "n": (1, 4, 1)},
            "g",
            lambda q: (
                F(q["m"], 4 ** q["n"]) + F(q["w"], 2 ** q["n"]),
                f"{q['m']} / 2^{2 * q['n']} + {q['w']} / 2^{q['n']}",
            ),
        ),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth(LawProblem):
    """Populations. The level: doubling, growth by a share, growth and catch.

    >>> Growth().solve({"kind": "double", "n": 50, "t": 20, "k": 3}).steps
    '50 × 2^3 = 400 bacteria'
    """

    name: str = "science/growth"
    levels: tuple[int, ...] = (1, 2, 3)

    kinds: ClassVar[Mapping[str, Kind]] = {
        "double": Kind(
            1,
            "A culture of {n} bacteria doubles every {t} minutes. How many are there after {k} doublings?",
            {"n": (5, 900, 5), "t": (10, 60, 5), "k": (2, 8, 1)},
            "bacteria",
            lambda q: (F(q["n"] * 2 ** q["k"]), f"{q['n']} × 2^{q['k']}"),
        ),
        "rate": Kind(
            2,
            "A herd of {n} thousand animals grows by {p}% a year. By this rule, how many thousand are there after {k} years?",
            {"n": (1, 80, 1), "p": (5, 60, 5), "k": (2, 3, 1)},
            "thousand animals",
            lambda q: (q["n"] * F(100 + q["p"], 100) ** q["k"], f"{q['n']} × (1 + {q['p']}/100)^{q['k']}"),
        ),
        "harvest": Kind(
            3,
            "A pond holds {n} kg of fish. In each of two years the mass grows by {p}%, and then {h} kg are caught. How "
            "many kilograms "
            "are there after the second catch?",
            {"n": (200, 900, 20), "p": (5, 60, 5), "h": (5, 90, 5)},
            "kg",
            lambda q: (
                (q["n"] * F(100 + q["p"], 100) - q["h"]) * F(100 + q["p"], 100) - q["h"],
                f"({q['n']} × {100 + q['p']}/100 - {q['h']}) × {100 + q['p']}/100 - {q['h']}",
            ),
        ),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Genetics(ExactProblem):
    r"""The probability of traits in a cross of independent genes. The level is the number of genes, less one.

    The lowest level has only about 500 questions.

    >>> Genetics().solve({"parents": ["Aa", "Aa"], "wanted": ["dominant"]}).steps
    'A: Aa × Aa, 3 of 4 dominant\n3/4'
    """

    name: str = "science/genetics"
    domain: str = "science"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)

    templates: ClassVar[tuple[str, ...]] = (
        "Two plants with the genotypes {first} and {second} are crossed; the genes are inherited independently. What "
        "is the probability "
        "that an offspring {wanted}? Give an exact fraction.",
        "In the cross {first} × {second} (genes on different chromosomes), how likely is an offspring that {wanted}? "
        "Answer with a "
        "fraction.",
        "Parents: {first} and {second}. All genes assort independently. Find the exact probability that one of their "
        "offspring {wanted}.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Genotypes whose cross may give what is wanted, but need not."""
        while True:
            pairs = [[rng.choice((c * 2, c + c.lower(), c.lower() * 2)) for c in "ABDEGH"[: level + 1]] for _ in range(2)]
            wanted = [rng.choice(("dominant", "recessive", "hybrid")) for _ in range(level + 1)]
            facts = {"parents": ["".join(p) for p in pairs], "wanted": wanted}
            if self.solve(facts).answer not in ("0", "1"):
                return facts

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The cross, and what is wanted."""
        letters = facts["parents"][0][::2].upper()
        words = {
            "dominant": "shows the dominant trait of gene {}",
            "recessive": "shows the recessive trait of gene {}",
            "hybrid": "is heterozygous for gene {}",
        }
        parts = [words[w].format(f"{c}/{c.lower()}") for c, w in zip(letters, facts["wanted"], strict=True)]
        first, second = facts["parents"]
        return {"first": first, "second": second, "wanted": list_parts(parts)}

    def solve(self, facts: Facts) -> Solution:
        """A square of Punnett for each gene."""
        one, other = facts["parents"]
        total = F(1)
        steps: list[str] = []
        for i, wanted in enumerate(facts["wanted"]):
            a, b = one[2 * i : 2 * i + 2], other[2 * i : 2 * i + 2]
            cells = [x.isupper() + y.isupper() for x in a for y in b]
            good = sum({"dominant": n > 0, "recessive": n == 0, "hybrid": n == 1}[wanted] for n in cells)
            total *= F(good, 4)
            steps.append(f"{a[0].upper()}: {a} × {b}, {good} of 4 {wanted}")
        return Solution(answer=str(total), steps="\n".join([*steps, str(total)]), effort=4 * len(steps) + 1)


_UNITS = {
    "length": {"mm": F(1, 1000), "cm": F(1, 100), "m": F(1), "km": F(1000)},
    "mass": {"mg": F(1, 1000), "g": F(1), "kg": F(1000), "tonnes": F(10**6)},
    "time": {"seconds": F(1), "minutes": F(60), "hours": F(3600), "days": F(86400)},
    "volume": {"mL": F(1), "cL": F(10), "L": F(1000), "hL": F(100_000)},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Units(ExactProblem):
    r"""A quantity in other units. The level: 1 neighbours, 2 any, 3 quotients, 4 quotients with powers.

    >>> Units().solve({"value": 72, "above": ["km", "m"], "below": ["hours", "seconds"], "power": 1}).steps
    'km to m: × 1000\nhours to seconds: / 3600\n72 × 1000 / 3600 = 20'
    """

    name: str = "science/units"
    domain: str = "science"
    levels: tuple[int, ...] = (1, 2, 3, 4)

    templates: ClassVar[tuple[str, ...]] = (
        "Convert {value} {old} to {new}. Give the exact number without its unit, as a decimal or a fraction.",
        "How much is {value} {old}, expressed in {new}? Answer with the number alone, and do not round.",
        "{value} {old} = ? {new}. Write the exact number only.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A number and two units of one kind, or four of two."""
        above, below = rng.sample(tuple(_UNITS), 2)
        names = list(_UNITS[above])
        at = rng.randrange(len(names) - 1)
        pair = [names[at], names[at + 1]] if level == 1 else rng.sample(names, 2)
        if rng.random() < 0.5:
            pair.reverse()
        rest = rng.sample(tuple(_UNITS[below]), 2) if level > 2 else []
        if level == 4:
            above = "length"
            pair = rng.sample(tuple(_UNITS["length"]), 2)
            below = rng.choice(("mass", "time", "volume"))
            rest = rng.sample(tuple(_UNITS[below]), 2)
        return {
            "value": rng.randint(2, 900),
            "above": pair,
            "below": rest,
            "power": rng.choice((2, 3)) if level == 4 else 1,
        }

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Both units in words."""
        power = {1: "", 2: "square ", 3: "cubic "}[facts["power"]]
        below = [f" per {_ONE.get(u, u)}" for u in facts["below"]] or ["", ""]
        old, new = (f"{power}{u}{b}" for u, b in zip(facts["above"], below, strict=True))
        return {"value": str(facts["value"]), "old": old, "new": new}

    def solve(self, facts: Facts) -> Solution:
        """Factor by factor."""
        value, power = F(facts["value"]), facts["power"]
        a, b = facts["above"]
        factor = (_size(a) / _size(b)) ** power
        exponent = f"^{power}" if power > 1 else ""
        steps = [f"{a}{exponent} to {b}{exponent}: × {factor}"]
        how, answer = f"{value} × {factor}", value * factor
        if facts["below"]:
            c, d = facts["below"]
            under = _size(c) / _size(d)
            steps.append(f"{c} to {d}: / {under}")
            how, answer = f"{how} / {under if under.denominator == 1 else f'({under})'}", answer / under
        steps.append(f"{how} = {decimal(answer)}")
        return Solution(answer=decimal(answer), steps="\n".join(steps), effort=len(steps) + power + len(str(factor)) // 2)


_ONE = {"seconds": "second", "minutes": "minute", "hours": "hour", "days": "day", "tonnes": "tonne"}


def _size(unit: str) -> F:
    return next(units[unit] for units in _UNITS.values() if unit in units)


def science() -> Problems:
    """Physics, chemistry, biology and astronomy, with units and exact numbers."""
    return Problems(
        name="science",
        summary="Physics, chemistry, biology and astronomy, with units and exact numbers.",
        problems=(
            Kinematics(),
            Forces(),
            Energy(),
            Matter(),
            Heat(),
            Waves(),
            Kepler(),
            Circuits(),
            Decay(),
            Growth(),
            Genetics(),
            Units(),
            Balancing(),
            MolarMass(),
            Stoichiometry(),
            Solutions(),
            Gas(),
            PhysicsChoice(),
        ),
    )
