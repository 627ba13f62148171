"""Chemistry: formulas, equations, amounts, solutions, gases."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction as F
from math import gcd, lcm
from random import Random
from typing import Any, ClassVar

from assay.core.errors import DataError
from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Solution
from assay.verify.text.items import ListMatch
from assay_tasks.math.exact import ExactProblem
from assay_tasks.science.law import Kind, LawProblem, decimal

__all__ = ["Balancing", "Gas", "MolarMass", "Solutions", "Stoichiometry", "atoms_of", "balance_reaction"]

_TOKEN = re.compile(r"([A-Z][a-z]?)([0-9]*)|(\()|\)([0-9]*)")
_MASSES = {
    "H": 1,
    "C": 12,
    "N": 14,
    "O": 16,
    "Na": 23,
    "Mg": 24,
    "Al": 27,
    "P": 31,
    "S": 32,
    "K": 39,
    "Ca": 40,
    "Fe": 56,
    "Cu": 64,
    "Zn": 65,
}
"""Molar masses in g/mol, rounded to whole numbers; they are told in the questions."""


def atoms_of(formula: str) -> Counter[str]:
    """How many atoms of each element a formula has.

    >>> dict(atoms_of("Ca(OH)2")), dict(atoms_of("Al2(SO4)3"))
    ({'Ca': 1, 'O': 2, 'H': 2}, {'Al': 2, 'S': 3, 'O': 12})
    """
    stack: list[Counter[str]] = [Counter()]
    for element, count, opens, times in _TOKEN.findall(formula):
        if element:
            stack[-1][element] += int(count or 1)
        elif opens:
            stack.append(Counter())
        else:
            for inner, n in stack.pop().items():
                stack[-1][inner] += n * int(times or 1)
    return stack[0]


def balance_reaction(left: Sequence[str], right: Sequence[str]) -> list[int]:
    """The least whole numbers that balance a reaction, from linear equations for its elements.

    Raises:
        DataError: there are none, or several that are no multiples of each other.

    >>> balance_reaction(["C3H8", "O2"], ["CO2", "H2O"])
    [1, 5, 3, 4]
    """
    counts = [atoms_of(f) for f in (*left, *right)]
    signs = [1] * len(left) + [-1] * len(right)
    elements = sorted({e for c in counts for e in c})
    rows = [[F(s * c[e]) for s, c in zip(signs, counts, strict=True)] for e in elements]
    n, pivots = len(counts), list[int]()
    for column in range(n):
        rest = next((i for i in range(len(pivots), len(rows)) if rows[i][column]), None)
        if rest is None:
            continue
        at = len(pivots)
        rows[at], rows[rest] = rows[rest], rows[at]
        rows[at] = [x / rows[at][column] for x in rows[at]]
        for i, row in enumerate(rows):
            if i != at and row[column]:
                rows[i] = [x - row[column] * y for x, y in zip(row, rows[at], strict=True)]
        pivots.append(column)
    free = [c for c in range(n) if c not in pivots]
    if len(free) != 1:
        raise DataError(f"{' + '.join(left)} -> {' + '.join(right)} is balanced in {'several ways' if free else 'no way'}")
    found = [F(0)] * n
    found[free[0]] = F(1)
    for row, column in zip(rows, pivots, strict=False):
        found[column] = -row[free[0]]
    if min(found) <= 0:
        raise DataError(f"{' + '.join(left)} -> {' + '.join(right)} is balanced by no positive numbers")
    scale = lcm(*(x.denominator for x in found))
    whole = [int(x * scale) for x in found]
    return [x // gcd(*whole) for x in whole]


_REACTIONS = (
    ("H2 O2", "H2O"),
    ("N2 H2", "NH3"),
    ("Fe O2", "Fe2O3"),
    ("Al O2", "Al2O3"),
    ("Na Cl2", "NaCl"),
    ("K H2O", "KOH H2"),
    ("CaCO3", "CaO CO2"),
    ("KClO3", "KCl O2"),
    ("Fe2O3 CO", "Fe CO2"),
    ("Al Fe2O3", "Al2O3 Fe"),
    ("NH3 O2", "NO H2O"),
    ("Na2CO3 HCl", "NaCl H2O CO2"),
    ("Ca(OH)2 H3PO4", "Ca3(PO4)2 H2O"),
    ("Al(OH)3 H2SO4", "Al2(SO4)3 H2O"),
    ("FeS2 O2", "Fe2O3 SO2"),
    ("Cu HNO3", "Cu(NO3)2 NO H2O"),
    ("KMnO4 HCl", "KCl MnCl2 Cl2 H2O"),
    ("Ca3(PO4)2 SiO2 C", "CaSiO3 P4 CO"),
    ("P4 O2", "P2O5"),
    ("K2Cr2O7 HCl", "KCl CrCl3 Cl2 H2O"),
    ("Zn HNO3", "Zn(NO3)2 NH4NO3 H2O"),
    ("PCl5 H2O", "H3PO4 HCl"),
    ("Mg N2", "Mg3N2"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Balancing(ExactProblem):
    """The numbers that balance a reaction. The level grows with the number of atoms: hydrocarbons, alcohols, then salts and more.

    The lowest level has only about 800 questions.

    >>> Balancing().solve({"left": ["C3H8", "O2"], "right": ["CO2", "H2O"]}).answer
    '1, 5, 3, 4'
    """

    name: str = "science/balancing"
    domain: str = "science"
    levels: tuple[int, ...] = (1, 2, 3)

    templates: ClassVar[tuple[str, ...]] = (
        "Balance the reaction {reaction} with the least whole numbers. List the coefficients in the order of the "
        "substances, separated "
        "by commas; a coefficient 1 is listed too.",
        "Which least whole coefficients balance {reaction}? Answer with all of them from left to right (1 included), "
        "with commas.",
        "In {reaction}, as many atoms of each element must stand on the right as on the left. Give the least whole "
        "coefficients, in "
        "order, separated by commas.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A combustion, in half of the questions of level 3 a reaction from a list."""
        if level == 3 and rng.random() < 0.2:
            left, right = rng.choice(_REACTIONS)
            return {"left": rng.sample(left.split(), len(left.split())), "right": rng.sample(right.split(), len(right.split()))}
        carbon, hydrogen = rng.randint(1, 15 + 5 * level), rng.randint(1, 30 + 10 * level)
        fuel = f"C{carbon if carbon > 1 else ''}H{hydrogen if hydrogen > 1 else ''}"
        products = ["CO2", "H2O"]
        if level > 1:
            oxygen = rng.randint(1, min(2 * carbon, 9))
            fuel += f"O{oxygen if oxygen > 1 else ''}"
        if level > 2:
            nitrogen = rng.randint(1, 5)
            fuel += f"N{nitrogen if nitrogen > 1 else ''}"
            products.append(rng.choice(("N2", "NO2")))
            if rng.random() < 0.5:
                sulfur = rng.randint(1, 3)
                fuel += f"S{sulfur if sulfur > 1 else ''}"
                products.append("SO2")
        return {"left": [fuel, "O2"], "right": products}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The reaction with an arrow."""
        return {"reaction": f"{' + '.join(facts['left'])} -> {' + '.join(facts['right'])}"}

    def verifier(self, form: Form) -> Verifier:
        """The numbers in their order."""
        return ListMatch(where=form.place)

    def solve(self, facts: Facts) -> Solution:
        """Linear equations, one for each element."""
        left, right = facts["left"], facts["right"]
        found = balance_reaction(left, right)
        sides = [f"{k} {f}" if k > 1 else f for k, f in zip(found, [*left, *right], strict=True)]
        steps = f"{' + '.join(sides[: len(left)])} -> {' + '.join(sides[len(left) :])}"
        atoms = sum(sum(atoms_of(f).values()) for f in (*left, *right))
        return Solution(answer=", ".join(map(str, found)), gold=found, steps=steps, effort=len(found) * atoms)


@dataclass(frozen=True, slots=True, kw_only=True)
class MolarMass(ExactProblem):
    r"""The molar mass of a formula. The level adds elements and brackets.

    >>> MolarMass().solve({"formula": "Ca(OH)2"}).steps
    'Ca: 1 × 40 = 40\nO: 2 × 16 = 32\nH: 2 × 1 = 2\nin all 74 g/mol'
    """

    name: str = "science/molar_mass"
    domain: str = "science"
    levels: tuple[int, ...] = (1, 2, 3)

    templates: ClassVar[tuple[str, ...]] = (
        "What is the molar mass of {formula} in g/mol? Use these molar masses: {masses}. Give the number alone.",
        "Molar masses in g/mol: {masses}. How many grams does one mole of {formula} weigh? Answer with the number.",
        "Calculate the mass in grams of one mole of {formula}, with {masses} (g/mol). Give the number only.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Elements with numbers, and groups in brackets."""
        chosen = rng.sample(tuple(_MASSES), level + 1)
        parts = [e + _count(rng.randint(1, 12)) for e in chosen]
        for _ in range(level - 1):
            group = "".join(e + _count(rng.randint(1, 4)) for e in rng.sample(("O", "H", "N", "S", "P", "C"), 2))
            parts.append(f"({group}){rng.randint(2, 6)}")
        return {"formula": "".join(parts)}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The formula, and the masses of its elements."""
        masses = ", ".join(f"{e} = {_MASSES[e]}" for e in sorted(atoms_of(facts["formula"])))
        return {"formula": facts["formula"], "masses": masses}

    def solve(self, facts: Facts) -> Solution:
        """Element by element."""
        atoms = atoms_of(facts["formula"])
        steps = [f"{e}: {n} × {_MASSES[e]} = {n * _MASSES[e]}" for e, n in atoms.items()]
        total = sum(n * _MASSES[e] for e, n in atoms.items())
        steps.append(f"in all {total} g/mol")
        brackets = facts["formula"].count("(")
        return Solution(answer=str(total), steps="\n".join(steps), effort=len(atoms) + 3 * brackets)


def _count(n: int) -> str:
    return str(n) if n > 1 else ""


_AMOUNTS = (
    ("2 Mg + O2 -> 2 MgO", 2, "Mg", 24, 2, "MgO", 40),
    ("CaCO3 -> CaO + CO2", 1, "CaCO3", 100, 1, "CO2", 44),
    ("4 Al + 3 O2 -> 2 Al2O3", 4, "Al", 27, 2, "Al2O3", 102),
    ("CH4 + 2 O2 -> CO2 + 2 H2O", 1, "CH4", 16, 2, "H2O", 18),
    ("C3H8 + 5 O2 -> 3 CO2 + 4 H2O", 1, "C3H8", 44, 3, "CO2", 44),
    ("N2 + 3 H2 -> 2 NH3", 1, "N2", 28, 2, "NH3", 17),
    ("Fe2O3 + 3 CO -> 2 Fe + 3 CO2", 1, "Fe2O3", 160, 2, "Fe", 56),
    ("2 H2 + O2 -> 2 H2O", 2, "H2", 2, 2, "H2O", 18),
    ("2 NaOH + H2SO4 -> Na2SO4 + 2 H2O", 2, "NaOH", 40, 1, "Na2SO4", 142),
    ("Zn + 2 HCl -> ZnCl2 + H2", 1, "Zn", 65, 1, "H2", 2),
)
"""Reactions, and of one reagent and one product the coefficient, formula and molar mass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stoichiometry(ExactProblem):
    r"""How much of a product comes of a reagent. The level: 1 in moles, 2 in grams, 3 with a yield besides.

    >>> Stoichiometry().solve({"reaction": 0, "amount": 12, "level": 2, "gain": 100}).steps
    '12 g Mg / 24 g/mol = 0.5 mol\n0.5 × 2/2 = 0.5 mol MgO\n0.5 × 40 = 20 g'
    """

    name: str = "science/stoichiometry"
    domain: str = "science"
    levels: tuple[int, ...] = (1, 2, 3)

    templates: ClassVar[tuple[str, ...]] = (
        "In the reaction {reaction}, how many {unit} of {product} come of {amount} {unit} of {reagent}?{masses}{gain} "
        "Give the exact "
        "number, as a decimal or a fraction.",
        "{amount} {unit} of {reagent} react completely: {reaction}.{masses}{gain} How many {unit} of {product} result? "
        "Do not round.",
        "Given {reaction}.{masses}{gain} Calculate the exact number of {unit} of {product} obtained from {amount} "
        "{unit} of {reagent}.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A reaction and an amount."""
        return {
            "reaction": rng.randrange(len(_AMOUNTS)),
            "amount": rng.randint(2, 120 if level == 1 else 600),
            "level": level,
            "gain": rng.choice((40, 50, 60, 70, 75, 80, 90, 95)) if level == 3 else 100,
        }

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The reaction, the masses and the yield in words."""
        reaction, _, a, m, _, b, n = _AMOUNTS[int(facts["reaction"])]
        grams = facts["level"] > 1
        return {
            "reaction": reaction,
            "unit": "grams" if grams else "moles",
            "reagent": a,
            "product": b,
            "amount": str(facts["amount"]),
            "masses": f" The molar masses are {m} g/mol for {a} and {n} g/mol for {b}." if grams else "",
            "gain": f" The yield is {facts['gain']}% of what is possible." if facts["gain"] < 100 else "",
        }

    def solve(self, facts: Facts) -> Solution:
        """By way of moles."""
        _, j, a, m, k, b, n = _AMOUNTS[int(facts["reaction"])]
        grams, gain = facts["level"] > 1, int(facts["gain"])
        moles = F(facts["amount"], m) if grams else F(facts["amount"])
        made = moles * k / j
        steps = [f"{facts['amount']} g {a} / {m} g/mol = {decimal(moles)} mol"] if grams else []
        steps.append(f"{decimal(moles)} × {k}/{j} = {decimal(made)} mol {b}")
        answer = made * n if grams else made
        if grams:
            steps.append(f"{decimal(made)} × {n} = {decimal(answer)} g")
        if gain < 100:
            steps.append(f"{decimal(answer)} × {gain}/100 = {decimal(answer * gain / 100)} g")
            answer = answer * gain / 100
        return Solution(answer=decimal(answer), steps="\n".join(steps), effort=len(steps))


@dataclass(frozen=True, slots=True, kw_only=True)
class Solutions(LawProblem):
    """Concentration and dilution. The level: amounts, dilution, several in a row.

    >>> Solutions().solve({"kind": "dilute", "c": 6, "v": 50, "w": 300}).steps
    'c × v / w = 6 × 50 / 300 = 1 mol/L'
    """

    name: str = "science/solutions"
    levels: tuple[int, ...] = (1, 2, 3)

    kinds: ClassVar[Mapping[str, Kind]] = {
        "moles": Kind(
            1,
            "How many moles of salt are in {v} mL of a solution with {c} mol/L?",
            {"c": (1, 12, 1), "v": (10, 900, 5)},
            "mol",
            lambda q: (F(q["c"] * q["v"], 1000), f"c × v = {q['c']} × {q['v']}/1000"),
        ),
        "dilute": Kind(
            2,
            "{v} mL of a solution with {c} mol/L are diluted with water to {w} mL. What is the concentration then?",
            {"c": (1, 18, 1), "v": (10, 200, 5), "w": (250, 1000, 50)},
            "mol/L",
            lambda q: (F(q["c"] * q["v"], q["w"]), f"c × v / w = {q['c']} × {q['v']} / {q['w']}"),
        ),
        "series": Kind(
            3,
            "A solution has {c} mg per litre. {n} times in a row it is diluted by taking {p} mL of it and filling up "
            "to {q} mL. How "
            "many milligrams per litre has the last one?",
            {"c": (100, 9000, 100), "n": (2, 5, 1), "p": (1, 5, 1), "q": (10, 50, 10)},
            "mg/L",
            lambda q: (q["c"] * F(q["p"], q["q"]) ** q["n"], f"{q['c']} × ({q['p']}/{q['q']})^{q['n']}"),
        ),
        "titrate": Kind(
            3,
            "{v} mL of sulfuric acid (H2SO4) are neutralised by {w} mL of sodium hydroxide (NaOH) with {c} mmol/L; one "
            "H2SO4 takes two "
            "NaOH. What is the concentration of the acid?",
            {"v": (5, 50, 5), "w": (5, 60, 1), "c": (20, 500, 20)},
            "mol/L",
            lambda q: (F(q["w"] * q["c"], 2000 * q["v"]), f"w × c / (2v) = {q['w']} × {q['c']}/1000 / (2 × {q['v']})"),
        ),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Gas(LawProblem):
    """Ideal gases. The level: one of pressure and volume, both with temperature, amounts.

    >>> Gas().solve({"kind": "boyle", "p": 100, "v": 6, "w": 2}).steps
    'p × v / w = 100 × 6 / 2 = 300 kPa'
    """

    name: str = "science/gas"
    levels: tuple[int, ...] = (1, 2, 3)

    kinds: ClassVar[Mapping[str, Kind]] = {
        "boyle": Kind(
            1,
            "{v} L of a gas at {p} kPa are brought to {w} L at the same temperature. What is the pressure then?",
            {"p": (50, 400, 10), "v": (2, 60, 1), "w": (2, 60, 1)},
            "kPa",
            lambda q: (F(q["p"] * q["v"], q["w"]), f"p × v / w = {q['p']} × {q['v']} / {q['w']}"),
        ),
        "state": Kind(
            2,
            "{v} L of a gas at {p} kPa and {t} K are brought to {w} L and {u} K. What is the pressure then?",
            {"p": (50, 400, 10), "v": (2, 60, 1), "t": (200, 400, 10), "w": (2, 60, 1), "u": (200, 600, 10)},
            "kPa",
            lambda q: (
                F(q["p"] * q["v"] * q["u"], q["w"] * q["t"]),
                f"p × v × u / (w × t) = {q['p']} × {q['v']} × {q['u']} / ({q['w']} × {q['t']})",
            ),
        ),
        "law": Kind(
            3,
            "What is the pressure of {n} tenths of a mole of an ideal gas in {v} L at {t} K? Take R = 8.3 kPa L / (mol K).",
            {"n": (1, 60, 1), "v": (2, 80, 1), "t": (200, 500, 10)},
            "kPa",
            lambda q: (F(83 * q["n"] * q["t"], 100 * q["v"]), f"n × R × T / V = {q['n']}/10 × 8.3 × {q['t']} / {q['v']}"),
        ),
    }
