"""Formulas."""

from __future__ import annotations

from fractions import Fraction

from assay.testing.math_pairs.base import Made, Rng, bit, group_thousands

__all__ = [
    "assigned_letter",
    "complex_number",
    "exponential",
    "identity",
    "known_value",
    "line",
    "pi",
    "polynomial",
    "power",
    "radical",
    "rational",
]


def radical(rng: Rng) -> Made:
    """A multiple of a root."""
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


def pi(rng: Rng) -> Made:
    """A multiple of pi."""
    value = Fraction(bit(rng, 1, 30), rng.randint(1, 12))
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


def polynomial(rng: Rng) -> Made:
    """A polynomial of the second degree."""
    x = rng.choice("xyztn")
    a, b, k = bit(rng, 1, 9), bit(rng, 1, 9), rng.randint(1, 6)
    while a + b == 0 or a == b:
        b = bit(rng, 1, 9)
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


def rational(rng: Rng) -> Made:
    """A quotient of two linear terms."""
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


def complex_number(rng: Rng) -> Made:
    """A complex number."""
    a, b = bit(rng, 1, 20), rng.randint(2, 20)
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


def assigned_letter(rng: Rng) -> Made:
    """A letter with its value."""
    n, x = bit(rng), rng.choice("xyabk")
    return (
        f"{x}={n}",
        [str(n), f"{x} = {n}", f"{x} = {2 * n}/2", f"{x}={n}.0"],
        [f"w={n}", f"{x}={n + 1}", f"{x}={-n}", str(n + 1), f"{x} > {n}"],
    )


def line(rng: Rng) -> Made:
    """A straight line."""
    m, b, k = rng.randint(2, 9), bit(rng, 1, 9), rng.randint(2, 5)
    same = [f"{m}x-y{b:+d}=0", f"{k}y={k * m}x{k * b:+d}", f"y-{m}x={b}", f"y = {b}+{m}x", f"{m}x{b:+d}=y"]
    return f"y={m}x{b:+d}", same, [f"y={m + 1}x{b:+d}", f"y={m}x{-b:+d}", f"x={m}y{b:+d}", f"{m}x+y{b:+d}=0", f"y={m}x"]


def power(rng: Rng) -> Made:
    """A power of a small base."""
    base, n = rng.randint(2, 9), rng.randint(3, 12)
    value = base**n
    same = [
        str(value),
        f"{base}\\cdot {base}^{{{n - 1}}}",
        group_thousands(value),
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


def known_value(rng: Rng) -> Made:
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


def exponential(rng: Rng) -> Made:
    """A power with a letter in its exponent."""
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


def identity(rng: Rng) -> Made:
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
    ]
    gold, same, other = rng.choice(facts)
    return gold, [same], [other]
