"""Pairs of mathematical answers whose verdict is known because of how they were made.

A value is drawn, and written in two ways: a rewriting keeps it, a perturbation changes it. Nothing here reads mathematics, so it
judges a verifier without sharing its mistakes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["FAMILIES", "MathPair", "math_pairs"]

Rng = random.Random
Made = tuple[str, list[str], list[str]]
"""A gold answer, writings of the same value, writings of other values."""


@dataclass(frozen=True, slots=True)
class MathPair:
    """Two answers, and whether they are equal.

    Attributes:
        family: what kind of value it is.
        gold, answer: the two.
        equal: whether they are the same.
    """

    family: str
    gold: str
    answer: str
    equal: bool


def math_pairs(n: int, seed: int = 0, families: tuple[str, ...] = ()) -> Iterator[MathPair]:
    """``n`` pairs from all families in turn, about as many equal as different.

    Args:
        n: how many.
        seed: decides all draws.
        families: names of `FAMILIES`; () for all.

    >>> [pair.equal for pair in math_pairs(4, seed=1, families=("tuple",))]
    [True, False, True, False]
    """
    rng = Rng(f"math_pairs/{seed}")
    names = families or tuple(FAMILIES)
    for index in range(n):
        name = names[(index // 2) % len(names)]
        gold, same, other = FAMILIES[name](rng)
        equal = index % 2 == 0
        yield MathPair(name, gold, _dressed(rng, rng.choice(same if equal else other)), equal)


def _dressed(rng: Rng, text: str) -> str:
    """The text in wrappers that mean nothing."""
    if rng.random() < 0.3:
        before = rng.choice(["First I had \\boxed{17}, but then ", ""])
        text = f"Let me see. {before}the answer is \\boxed{{{text}}}."
    elif rng.random() < 0.3:
        text = rng.choice([f"${text}$", f"\\({text}\\)", f" {text} ", f"\\[ {text} \\]", f"$ {text} $"])
    return text


def _bit(rng: Rng, low: int = 1, high: int = 99) -> int:
    return rng.choice((-1, 1)) * rng.randint(low, high)


def _frac(value: Fraction, command: str = "\\frac") -> str:
    if value.denominator == 1:
        return str(value.numerator)
    return f"{'-' if value < 0 else ''}{command}{{{abs(value.numerator)}}}{{{value.denominator}}}"


def _grouped(n: int, comma: str = ",") -> str:
    return f"{n:,}".replace(",", comma)


def _integer(rng: Rng) -> Made:
    n = rng.choice((-1, 1)) * rng.randint(10, 10 ** rng.randint(2, 9))
    text = str(n)
    same = [
        text,
        f"{n}.0",
        f"{n}.",
        f"\\text{{{n}}}",
        f"{n} \\text{{ apples}}",
        f"{2 * n}/2",
        f"\\frac{{{3 * n}}}{{3}}",
        f"{n - 7}+7",
    ]
    if abs(n) > 999:
        same += [_grouped(n), _grouped(n, "{,}"), _grouped(n, "\\,"), _grouped(n, "\\!,\\!").replace("\\!,\\!", "{,}")]
    place = rng.randrange(len(text) - 1, len(text))
    off = text[:place] + str((int(text[place]) + rng.randint(1, 9)) % 10) + text[place + 1 :]
    return text, same, [off, str(-n), str(n + 1), str(10 * n), f"{n}.5", f"{n}{rng.randint(0, 9)}", f"{n}, {n + 1}", f"{n}\\%"]


def _fraction(rng: Rng) -> Made:
    value = Fraction(_bit(rng), rng.randint(2, 60))
    while value.denominator == 1 or abs(value.numerator) == value.denominator:
        value = Fraction(_bit(rng), rng.randint(2, 60))
    p, q, k = value.numerator, value.denominator, rng.randint(2, 9)
    same = [
        _frac(value),
        _frac(value, "\\dfrac"),
        f"{p}/{q}",
        f"\\frac{{{k * p}}}{{{k * q}}}",
        f"\\frac{{{-p}}}{{{-q}}}",
        f"{p} \\div {q}",
    ]
    same += [
        f"-\\frac{{{-p}}}{{{q}}}",
        f"\\tfrac{{{p}}}{{{q}}}",
        f"\\left(\\frac{{{p}}}{{{q}}}\\right)",
        f"{p}:{q}" if p > 0 and q < 10 else f"{p}/{q}",
    ]
    if p > q:
        same.append(f"{p // q}\\frac{{{p % q}}}{{{q}}}")
    other = [
        f"\\frac{{{p + 1}}}{{{q}}}",
        f"\\frac{{{p}}}{{{q + 1}}}",
        f"\\frac{{{q}}}{{{p}}}",
        _frac(-value),
        f"{p}{q}",
        f"\\frac{{{p}}}{{{10 * q}}}",
    ]
    other.append(f"{round(float(value), 3) + 0.0007:.4f}")
    return _frac(value), same, other


def _decimal(rng: Rng) -> Made:
    cents = _bit(rng, 1, 99999)
    value = Fraction(cents, 100)
    text = f"{cents / 100:.2f}"
    same = [
        text,
        text + "0",
        _frac(value),
        f"{cents}/100",
        f"{text} \\times 10^0",
        f"{cents}e-2",
        f"{cents} \\times 10^{{-2}}",
        f"{cents}\\%",
    ]
    other = [
        f"{(cents + 1) / 100:.2f}",
        f"{-cents / 100:.2f}",
        str(cents),
        f"{cents}e-3",
        f"{text}\\%",
        f"{text}1",
        f"{cents} \\times 10^{{-3}}",
    ]
    return text, same, other


def _repeating(rng: Rng) -> Made:
    length = rng.randint(1, 3)
    digits = str(rng.randint(1, 10**length - 2)).zfill(length)
    value = Fraction(int(digits), 10**length - 1)
    same = [f"0.\\overline{{{digits}}}", _frac(value), f"{int(digits)}/{10**length - 1}", f"0.{digits}\\overline{{{digits}}}"]
    return (
        _frac(value),
        same,
        [f"0.{digits * 4}", f"0.0\\overline{{{digits}}}", _frac(1 - value / 3), f"1.\\overline{{{digits}}}", f"0.{digits}"],
    )


def _scientific(rng: Rng) -> Made:
    mantissa, power = rng.randint(11, 99), rng.randint(3, 9)
    if mantissa % 10 == 0:
        mantissa += 1
    value = mantissa * 10 ** (power - 1)
    head = f"{mantissa // 10}.{mantissa % 10}"
    same = [
        f"{head} \\times 10^{{{power}}}",
        f"{head}e{power}",
        f"{head}\\cdot 10^{power}",
        f"{head}E+{power}",
        _grouped(value),
        f"{mantissa}\\times 10^{{{power - 1}}}",
    ]
    other = [
        f"{head}\\times 10^{{{power + 1}}}",
        f"{head}e{power - 1}",
        f"{head}\\times 10^{{-{power}}}",
        f"{mantissa}e{power}",
        f"{head}",
        f"{head}+10^{{{power}}}",
    ]
    return str(value), same, other


def _radical(rng: Rng) -> Made:
    a, b, c = rng.randint(2, 12), rng.choice((2, 3, 5, 6, 7, 10, 11)), rng.randint(1, 9)
    gold = f"{a}\\sqrt{{{b}}}" if rng.random() < 0.5 else f"{c}+{a}\\sqrt{{{b}}}"
    plus = f"{c}+" if gold[0] != str(a)[0] or "+" in gold else ""
    same = [
        f"{plus}\\sqrt{{{a * a * b}}}",
        f"{plus}\\sqrt{{{b}}}\\cdot {a}",
        f"{plus}\\frac{{{a * b}}}{{\\sqrt{{{b}}}}}",
        f"{plus}{a}\\cdot {b}^{{1/2}}",
    ]
    if plus:
        same.append(f"{a}\\sqrt{{{b}}}+{c}")
    decimal = (c if plus else 0) + a * b**0.5
    other = [
        f"{plus}{a + 1}\\sqrt{{{b}}}",
        f"{plus}\\sqrt{{{a * b}}}",
        f"{plus}-{a}\\sqrt{{{b}}}" if not plus else f"{c}-{a}\\sqrt{{{b}}}",
        f"{decimal:.9f}",
    ]
    return gold, same, [*other, f"{plus}{a}\\sqrt[3]{{{b}}}"]


def _pi(rng: Rng) -> Made:
    value = Fraction(_bit(rng, 1, 30), rng.randint(1, 12))
    p, q = value.numerator, value.denominator
    gold = f"\\frac{{{p}\\pi}}{{{q}}}" if q > 1 else f"{p}\\pi"
    same = [
        f"\\frac{{{p}}}{{{q}}}\\pi",
        f"{p}\\pi/{q}",
        f"\\pi\\cdot\\frac{{{p}}}{{{q}}}",
        f"\\frac{{{2 * p}\\pi}}{{{2 * q}}}",
        f"{p}π/{q}",
    ]
    return (
        gold,
        same,
        [
            f"{float(value) * 3.141592653589793:.12f}",
            f"\\frac{{{p + 1}\\pi}}{{{q}}}",
            f"\\frac{{{p}}}{{{q}}}",
            f"\\frac{{{-p}\\pi}}{{{q}}}",
            f"\\frac{{{p}\\pi^2}}{{{q}}}",
        ],
    )


def _polynomial(rng: Rng) -> Made:
    x = rng.choice("xyztn")
    a, b, k = _bit(rng, 1, 9), _bit(rng, 1, 9), rng.randint(1, 6)
    while a + b == 0 or a == b:
        b = _bit(rng, 1, 9)
    terms = [f"{k}{x}^2" if k > 1 else f"{x}^2", f"{k * (a + b):+d}{x}", f"{k * a * b:+d}"]
    gold = "".join(terms)
    factored = f"({x}{a:+d})({x}{b:+d})"
    same = [
        f"{terms[2]}{terms[1]}+{terms[0]}",
        f"{k}{factored}",
        f"{k}\\left({x}{b:+d}\\right)\\cdot({x}{a:+d})",
        f"{k}{x}({x}{a + b:+d}){k * a * b:+d}",
    ]
    same += [gold.replace("^2", "^{2}"), f"\\frac{{{2 * k}{factored}}}{{2}}"]
    other = [
        f"{terms[0]}{terms[1]}{k * a * b + 1:+d}",
        f"{k}({x}{a:+d})({x}{-b:+d})",
        gold.replace("^2", "^3"),
        f"{terms[0]}{-k * (a + b):+d}{x}{terms[2]}",
    ]
    return gold, same, [*other, gold.replace(x, "w"), f"{k + 1}{factored}"]


def _rational(rng: Rng) -> Made:
    a, b = rng.sample(range(1, 10), 2)
    gold = f"\\frac{{x+{a}}}{{x-{b}}}"
    same = [
        f"1+\\frac{{{a + b}}}{{x-{b}}}",
        f"\\frac{{-x-{a}}}{{{b}-x}}",
        f"\\frac{{(x+{a})(x+1)}}{{(x-{b})(x+1)}}",
        f"(x+{a})/(x-{b})",
        f"\\frac{{2x+{2 * a}}}{{2x-{2 * b}}}",
    ]
    return (
        gold,
        same,
        [f"\\frac{{x+{a}}}{{x+{b}}}", f"\\frac{{x-{b}}}{{x+{a}}}", f"\\frac{{x+{a + 1}}}{{x-{b}}}", f"-\\frac{{x+{a}}}{{x-{b}}}"],
    )


def _complex(rng: Rng) -> Made:
    a, b = _bit(rng, 1, 20), rng.randint(2, 20)
    same = [
        f"{b}i{a:+d}",
        f"{a}+i\\cdot {b}",
        f"{a}-{b}i^3",
        f"{a}+{b}\\sqrt{{-1}}",
        f"i({b}{-a:+d}i)",
        f"\\frac{{{2 * a}+{2 * b}i}}{{2}}",
    ]
    return (
        f"{a}+{b}i",
        same,
        [f"{a}-{b}i", f"{-a}+{b}i", f"{b}+{a}i" if a != b else f"{b}+{a + 1}i", f"{a + b}", f"{a}+{b}", f"{a}+{b + 1}i"],
    )


def _numbers(rng: Rng, n: int) -> list[Fraction]:
    out: list[Fraction] = []
    while len(out) < n:
        value = Fraction(_bit(rng, 0, 20), rng.choice((1, 1, 1, 2, 3, 4)))
        if value not in out:
            out.append(value)
    return out


def _decimal_or(value: Fraction, rng: Rng) -> str:
    return str(float(value)) if value.denominator in (1, 2, 4) and rng.random() < 0.5 else _frac(value)


def _listed(values: list[Fraction], rng: Rng | None = None) -> str:
    return ", ".join(_frac(v) if rng is None else _decimal_or(v, rng) for v in values)


def _set(rng: Rng) -> Made:
    values = _numbers(rng, rng.randint(2, 5))
    mixed = rng.sample(values, len(values))
    off = [values[0] + 21, *values[1:]]
    same = [
        f"\\{{{_listed(mixed, rng)}\\}}",
        f"\\left\\{{{_listed(mixed)}\\right\\}}",
        f"\\{{{_listed([*mixed, values[0]])}\\}}",
        _listed(mixed),
    ]
    other = [
        f"\\{{{_listed(off)}\\}}",
        f"\\{{{_listed(values[1:])}\\}}",
        f"({_listed(values)})",
        f"\\{{{_listed([*values, Fraction(77)])}\\}}",
        _frac(values[0]),
    ]
    return f"\\{{{_listed(values)}\\}}", same, other


def _tuple(rng: Rng) -> Made:
    values = _numbers(rng, rng.randint(3, 4))
    off = [*values[:-1], values[-1] + 1]
    same = [
        f"({_listed(values, rng)})",
        f"\\left({_listed(values)}\\right)",
        f"\\langle {_listed(values)}\\rangle",
        f"(x,y,z)=({_listed(values)})",
    ]
    return (
        f"({_listed(values)})",
        same,
        [
            f"({_listed(values[::-1])})",
            f"\\{{{_listed(values)}\\}}",
            f"({_listed(off)})",
            f"({_listed(values[:-1])})",
            f"({_listed(values)}, 0)",
        ],
    )


def _point(rng: Rng) -> Made:
    a, b = _numbers(rng, 2)
    same = [
        f"({_decimal_or(a, rng)}, {_frac(b)})",
        f"\\left({_frac(a)},{_frac(b)}\\right)",
        f"\\begin{{pmatrix}}{_frac(a)}\\\\{_frac(b)}\\end{{pmatrix}}",
    ]
    return (
        f"({_frac(a)},{_frac(b)})",
        same,
        [
            f"({_frac(b)},{_frac(a)})",
            f"\\{{{_frac(a)},{_frac(b)}\\}}",
            f"({_frac(a)},{_frac(b + 1)})",
            f"[{_frac(a)},{_frac(b)}]",
            _frac(a),
        ],
    )


def _interval(rng: Rng) -> Made:
    low, high = sorted(_numbers(rng, 2))
    left, right = rng.choice("(["), rng.choice(")]")
    less, more = "<" if left == "(" else "\\le", "<" if right == ")" else "\\leq"
    a, b = _frac(low), _frac(high)
    back = {"<": ">", "\\le": "\\ge", "\\leq": "\\geq"}
    same = [
        f"{left}{a}, {b}{right}",
        f"{a} {less} x {more} {b}",
        f"{b} {back[more]} x {back[less]} {a}",
        f"x \\in \\left{left}{_decimal_or(low, rng)},{b}\\right{right}",
    ]
    same += [f"\\{{x \\mid {a} {less} x {more} {b}\\}}"]
    flip = {"(": "[", "[": "(", ")": "]", "]": ")"}
    other = [
        f"{flip[left]}{a},{b}{right}" if (left, right) != ("[", ")") else f"[{a},{b}]",
        f"{left}{a},{b}{flip[right]}",
        f"{left}{a},{_frac(high + 1)}{right}",
    ]
    other += [f"{a} {less} x", f"x {more} {b}", f"\\{{{a},{b}\\}}"]
    return (f"{left}{a},{b}{right}" if (left, right) != ("(", ")") else f"{a} < x < {b}"), same, other


def _ray(rng: Rng) -> Made:
    (end,) = _numbers(rng, 1)
    a, k = _frac(end), rng.randint(2, 5)
    up, closed = rng.random() < 0.5, rng.random() < 0.5
    text = f"{'[' if closed else '('}{a}, \\infty)" if up else f"(-\\infty, {a}{']' if closed else ')'}"
    sign, back = (">", "<") if up else ("<", ">")
    sign, back = (sign, back) if not closed else ({">": "\\ge", "<": "\\leq"}[sign], {">": "\\geq", "<": "\\le"}[back])
    same = [
        text,
        f"x {sign} {a}",
        f"{a} {back} x",
        f"{k}x {sign} {_frac(k * end)}",
        f"-x {back} {_frac(-end)}",
        f"x - {k} {sign} {_frac(end - k)}",
    ]
    other = [
        f"x {back} {a}",
        f"x {sign} {_frac(end + 1)}",
        text.replace("[", "(")
        if "[" in text
        else text.replace("]", ")")
        if "]" in text
        else f"x {sign}= {a}".replace(">=", "\\ge").replace("<=", "\\le"),
    ]
    return text, same, [*other, a, "(-\\infty,\\infty)"]


def _union(rng: Rng) -> Made:
    a, b, c = sorted(_numbers(rng, 3))
    first, second = f"(-\\infty,{_frac(a)})", f"[{_frac(b)},{_frac(c)}]"
    same = [
        f"{second}\\cup {first}",
        f"x < {_frac(a)} \\text{{ or }} {_frac(b)} \\le x \\le {_frac(c)}",
        f"{first} ∪ {second}",
        f"x\\in {first}\\cup{second}",
    ]
    return (
        f"{first}\\cup{second}",
        same,
        [
            first,
            second,
            f"(-\\infty,{_frac(a)}]\\cup{second}",
            f"{first}\\cup[{_frac(b)},{_frac(c)})",
            f"{first}\\cup{second}\\cup\\{{{_frac(c + 1)}\\}}",
        ],
    )


def _matrix(rng: Rng) -> Made:
    rows = [[rng.randint(-9, 9) for _ in range(rng.choice((2, 2, 3)))]]
    rows += [[rng.randint(-9, 9) for _ in rows[0]] for _ in range(rng.choice((1, 1, 2)))]
    rows[0][1] = rows[1][0] + rng.randint(1, 5)

    def written(cells: list[list[int]], kind: str = "pmatrix") -> str:
        return f"\\begin{{{kind}}}" + "\\\\".join("&".join(map(str, row)) for row in cells) + f"\\end{{{kind}}}"

    turned = [list(column) for column in zip(*rows, strict=True)]
    off = [[*rows[0][:-1], rows[0][-1] + 1], *rows[1:]]
    spaced = written(rows).replace("&", " & ").replace("\\\\", " \\\\ ")
    same = [
        written(rows, "bmatrix"),
        written(rows, "Bmatrix"),
        spaced,
        f"A = {written(rows)}",
        written([row[:] for row in rows], "matrix"),
    ]
    return (
        written(rows),
        same,
        [written(turned), written(off), written(rows[:-1]), written([[-v if v else 1 for v in row] for row in rows])],
    )


def _assigned(rng: Rng) -> Made:
    n, x = _bit(rng), rng.choice("xyabk")
    return (
        f"{x}={n}",
        [str(n), f"{x} = {n}", f"{x} = {2 * n}/2", f"{x}={n}.0"],
        [f"w={n}", f"{x}={n + 1}", f"{x}={-n}", str(n + 1), f"{x} > {n}"],
    )


def _line(rng: Rng) -> Made:
    m, b, k = rng.randint(2, 9), _bit(rng, 1, 9), rng.randint(2, 5)
    same = [f"{m}x-y{b:+d}=0", f"{k}y={k * m}x{k * b:+d}", f"y-{m}x={b}", f"y = {b}+{m}x", f"{m}x{b:+d}=y"]
    return f"y={m}x{b:+d}", same, [f"y={m + 1}x{b:+d}", f"y={m}x{-b:+d}", f"x={m}y{b:+d}", f"{m}x+y{b:+d}=0", f"y={m}x"]


_UNITS = (
    ("cm", "m", 100),
    ("m", "km", 1000),
    ("g", "kg", 1000),
    ("mm", "cm", 10),
    ("minutes", "hours", 60),
    ("seconds", "minutes", 60),
)


def _quantity(rng: Rng) -> Made:
    n = rng.randint(2, 90)
    small, large, size = rng.choice(_UNITS)
    gold = f"{n}\\text{{ {large}}}"
    same = [
        f"{n}\\,\\mathrm{{{large}}}",
        f"{n} \\text{{{large}}}",
        f"{n * size} \\text{{ {small}}}",
        str(n),
        f"{2 * n}/2\\text{{ {large}}}",
    ]
    return (
        gold,
        same,
        [
            f"{n}\\text{{ {small}}}",
            f"{n + 1}\\text{{ {large}}}",
            f"{n}\\text{{ {large}}}^2",
            f"{n}\\text{{ liters}}",
            str(n * size),
            f"{n}^\\circ",
        ],
    )


def _degrees(rng: Rng) -> Made:
    n = rng.choice((30, 45, 60, 72, 90, 120, 135, 150))
    same = [f"{n}°", f"{n}^{{\\circ}}", f"{n} \\text{{ degrees}}", str(n)]
    return (
        f"{n}^\\circ",
        same,
        [f"{n + 1}^\\circ", f"\\frac{{{n}\\pi}}{{180}}", f"{n}\\%", f"{n}\\text{{ cm}}", f"{180 - n if n != 90 else 91}^\\circ"],
    )


def _money(rng: Rng) -> Made:
    n = rng.randint(2, 5000)
    same = [f"\\${n}.00", f"{n} dollars", f"\\${_grouped(n)}", str(n), f"{n} \\text{{ dollars}}", f"\\${n}"]
    return f"\\${n}", same, [f"\\${n + 1}", f"{n}\\text{{ cents}}", f"\\${n}.50", f"€{n}", f"{n}\\text{{ kg}}"]


def _choice(rng: Rng) -> Made:
    letter, wrong = rng.sample("ABCDE", 2)
    n = rng.randint(2, 99)
    return (
        rng.choice([letter, f"\\text{{({letter})}}"]),
        [letter, f"({letter})", f"\\text{{{letter}}}", f"\\text{{({letter})}}", f"({letter}) {n}"],
        [wrong, f"({wrong})", f"\\text{{{wrong}}}", f"{letter}{wrong}", str(n)],
    )


def _words(rng: Rng) -> Made:
    first, second = rng.sample(["even", "odd", "Paris", "Monday", "increasing", "never", "isosceles", "yes", "no"], 2)
    return (
        f"\\text{{{first}}}",
        [first, first.upper(), f"\\textbf{{{first}}}", f"\\mathrm{{{first}}}"],
        [second, f"\\text{{not {first}}}", f"{first} {second}", "1"],
    )


def _spelled(rng: Rng) -> Made:
    ones = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    tens = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
    a, b = rng.randrange(8), rng.randrange(9)
    n = 10 * (a + 2) + b + 1
    return (
        str(n),
        [f"{tens[a]}-{ones[b]}", f"{tens[a]} {ones[b]}".capitalize(), f"\\text{{{tens[a]}-{ones[b]}}}"],
        [tens[a], ones[b], f"{tens[a]}-{ones[(b + 1) % 9]}", f"minus {tens[a]}"],
    )


def _signs(rng: Rng) -> Made:
    a, b = rng.randint(0, 9), rng.randint(1, 9)
    gold = f"{a}\\pm {b}" if a else f"\\pm {b}"
    same = [
        f"{a + b}, {a - b}",
        f"x={a - b}, x={a + b}",
        f"\\{{{a - b}, {a + b}\\}}",
        f"x = {a + b} \\text{{ or }} x = {a - b}",
        f"{a - b} \\text{{ and }} {a + b}",
    ]
    return (
        gold,
        same,
        [str(a + b), str(a - b), f"{a + b}, {a - b - 1}", f"{a}\\pm {b + 1}", f"({a - b}, {a + b})", f"{a + b}, {a - b}, 99"],
    )


def _power(rng: Rng) -> Made:
    base, n = rng.randint(2, 9), rng.randint(3, 12)
    value = base**n
    same = [
        str(value),
        f"{base}\\cdot {base}^{{{n - 1}}}",
        _grouped(value),
        f"\\left({base}\\right)^{{{n}}}",
        f"\\frac{{{base}^{{{n + 1}}}}}{{{base}}}",
        f"\\sqrt{{{base}^{{{2 * n}}}}}",
    ]
    return (
        f"{base}^{{{n}}}",
        same,
        [
            f"{base}^{{{n + 1}}}",
            str(value + 1),
            str(base * n),
            f"{base}^{{-{n}}}",
            f"{n}^{{{base}}}" if n**base != value else "0",
            str(-value),
        ],
    )


def _known(rng: Rng) -> Made:
    """Functions at places where their value is exact."""
    n, k = rng.randint(2, 9), rng.randint(2, 4)
    facts = [
        (f"\\log_{{{n}}} {n**k}", k),
        (f"\\ln(e^{{{k}}})", k),
        (f"{k}!", [0, 1, 2, 6, 24][k]),
        (f"\\binom{{{n}}}{{2}}", n * (n - 1) // 2),
        (f"|{-n}|", n),
        (f"{n}\\sin 90^\\circ", n),
        (f"{2 * n}\\cos\\frac{{\\pi}}{{3}}", n),
        (f"\\sqrt[3]{{{n**3}}}", n),
        (f"{n}\\tan\\frac{{\\pi}}{{4}}", n),
        (f"-{n}e^{{i\\pi}}", n),
        (f"-{n}i^2", n),
        (f"\\lfloor {n}.7\\rfloor", n),
    ]
    gold, value = rng.choice(facts)
    return (
        gold,
        [str(value), f"{value}.0", f"{value + 1}-1"],
        [str(value + 1), str(-value), f"{value}.5", f"\\frac{{1}}{{{value + 1}}}"],
    )


def _exponential(rng: Rng) -> Made:
    a, k = rng.randint(2, 9), rng.randint(2, 6)
    base = rng.choice(["2", "3", "5", "e"])
    gold = f"{base}^{{{a}x+{k}}}"
    same = [
        f"{base}^{{{k}}}\\cdot {base}^{{{a}x}}",
        f"({base}^{{x}})^{{{a}}}\\cdot {base}^{{{k}}}",
        f"{base}^{{{k}+{a}x}}",
        f"{base}^{{{k - 1}}}{base}^{{{a}x+1}}",
    ]
    return (
        gold,
        same,
        [f"{base}^{{{a}x}}", f"{base}^{{{a + 1}x+{k}}}", f"{base}^{{{a}x-{k}}}", f"7^{{{a}x+{k}}}", f"{base}^{{{a}x}}+{k}"],
    )


def _identity(rng: Rng) -> Made:
    """What exact arithmetic does not decide."""
    k, n = rng.randint(2, 9), rng.randint(2, 9)
    u, v = rng.choice([f"{k}x", "x", "\\theta", "t"]), rng.choice(["x", "t", "\\theta"])
    facts = [
        (f"\\sin(2{v})", f"2\\sin {v}\\cos {v}", f"\\cos(2{v})"),
        (f"{n}\\sin^2({u})+{n}\\cos^2({u})", str(n), str(n + 1)),
        (f"\\frac{{\\sin({u})}}{{\\cos({u})}}", f"\\tan({u})", f"\\cot({u})"),
        (f"1+\\tan^2({u})", f"\\frac{{1}}{{\\cos^2({u})}}", f"\\frac{{1}}{{\\sin^2({u})}}"),
        (f"\\sqrt{{{n * n + 1}+{2 * n}}}", str(n + 1), str(n + 2)),
        (f"\\sqrt{{x^2+{2 * n}x+{n * n}}}", f"|x+{n}|", f"|x-{n}|"),
        (f"{n}\\ln x", f"\\ln(x^{{{n}}})", f"\\ln(x^{{{n + 1}}})"),
    ]  # fmt: skip
    gold, same, other = rng.choice(facts)
    return gold, [same], [other]


FAMILIES: dict[str, Callable[[Rng], Made]] = {
    "integer": _integer, "fraction": _fraction, "decimal": _decimal, "repeating": _repeating, "scientific": _scientific,
    "radical": _radical, "pi": _pi, "polynomial": _polynomial, "rational": _rational, "complex": _complex, "set": _set,
    "tuple": _tuple, "point": _point, "interval": _interval, "ray": _ray, "union": _union, "matrix": _matrix,
    "assigned": _assigned, "line": _line, "quantity": _quantity, "degrees": _degrees, "money": _money, "choice": _choice,
    "words": _words, "spelled": _spelled, "signs": _signs, "power": _power, "known": _known, "exponential": _exponential,
    "identity": _identity,
}  # fmt: skip
"""Kinds of values by name; all but ``identity`` can be decided exactly."""
