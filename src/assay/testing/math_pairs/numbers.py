"""Single numbers."""

from __future__ import annotations

from fractions import Fraction

from assay.testing.math_pairs.base import Made, Rng, bit, frac, group_thousands

__all__ = ["decimal", "degrees", "fraction", "integer", "money", "repeating", "scientific", "signs"]


def integer(rng: Rng) -> Made:
    """A whole number."""
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
        same += [
            group_thousands(n),
            group_thousands(n, "{,}"),
            group_thousands(n, "\\,"),
            group_thousands(n, "\\!,\\!").replace("\\!,\\!", "{,}"),
        ]
    place = rng.randrange(len(text) - 1, len(text))
    off = text[:place] + str((int(text[place]) + rng.randint(1, 9)) % 10) + text[place + 1 :]
    return text, same, [off, str(-n), str(n + 1), str(10 * n), f"{n}.5", f"{n}{rng.randint(0, 9)}", f"{n}, {n + 1}", f"{n}\\%"]


def fraction(rng: Rng) -> Made:
    """A fraction."""
    value = Fraction(bit(rng), rng.randint(2, 60))
    while value.denominator == 1 or abs(value.numerator) == value.denominator:
        value = Fraction(bit(rng), rng.randint(2, 60))
    p, q, k = value.numerator, value.denominator, rng.randint(2, 9)
    same = [
        frac(value),
        frac(value, "\\dfrac"),
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
        frac(-value),
        f"{p}{q}",
        f"\\frac{{{p}}}{{{10 * q}}}",
    ]
    other.append(f"{round(float(value), 3) + 0.0007:.4f}")
    return frac(value), same, other


def decimal(rng: Rng) -> Made:
    """A decimal of two places."""
    cents = bit(rng, 1, 99999)
    value = Fraction(cents, 100)
    text = f"{cents / 100:.2f}"
    same = [
        text,
        text + "0",
        frac(value),
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


def repeating(rng: Rng) -> Made:
    """A repeating decimal."""
    length = rng.randint(1, 3)
    digits = str(rng.randint(1, 10**length - 2)).zfill(length)
    value = Fraction(int(digits), 10**length - 1)
    same = [f"0.\\overline{{{digits}}}", frac(value), f"{int(digits)}/{10**length - 1}", f"0.{digits}\\overline{{{digits}}}"]
    return (
        frac(value),
        same,
        [f"0.{digits * 4}", f"0.0\\overline{{{digits}}}", frac(1 - value / 3), f"1.\\overline{{{digits}}}", f"0.{digits}"],
    )


def scientific(rng: Rng) -> Made:
    """A number with a power of ten."""
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
        group_thousands(value),
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


def degrees(rng: Rng) -> Made:
    """An angle."""
    n = rng.choice((30, 45, 60, 72, 90, 120, 135, 150))
    same = [f"{n}°", f"{n}^{{\\circ}}", f"{n} \\text{{ degrees}}", str(n)]
    return (
        f"{n}^\\circ",
        same,
        [f"{n + 1}^\\circ", f"\\frac{{{n}\\pi}}{{180}}", f"{n}\\%", f"{n}\\text{{ cm}}", f"{180 - n if n != 90 else 91}^\\circ"],
    )


def money(rng: Rng) -> Made:
    """An amount of dollars."""
    n = rng.randint(2, 5000)
    same = [f"\\${n}.00", f"{n} dollars", f"\\${group_thousands(n)}", str(n), f"{n} \\text{{ dollars}}", f"\\${n}"]
    return f"\\${n}", same, [f"\\${n + 1}", f"{n}\\text{{ cents}}", f"\\${n}.50", f"€{n}", f"{n}\\text{{ kg}}"]


def signs(rng: Rng) -> Made:
    """Two numbers by a sign that is both."""
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
