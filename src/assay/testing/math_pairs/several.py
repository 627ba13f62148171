"""Several values at once: sets, tuples, intervals, matrices."""

from __future__ import annotations

from fractions import Fraction

from assay.testing.math_pairs.base import Made, Rng, decimal_or, frac, list_numbers, numbers

__all__ = ["interval", "matrix", "point", "ray", "set_of", "tuple_of", "union"]


def set_of(rng: Rng) -> Made:
    """A set of numbers."""
    values = numbers(rng, rng.randint(2, 5))
    mixed = rng.sample(values, len(values))
    off = [values[0] + 21, *values[1:]]
    same = [
        f"\\{{{list_numbers(mixed, rng)}\\}}",
        f"\\left\\{{{list_numbers(mixed)}\\right\\}}",
        f"\\{{{list_numbers([*mixed, values[0]])}\\}}",
        list_numbers(mixed),
    ]
    other = [
        f"\\{{{list_numbers(off)}\\}}",
        f"\\{{{list_numbers(values[1:])}\\}}",
        f"({list_numbers(values)})",
        f"\\{{{list_numbers([*values, Fraction(77)])}\\}}",
        frac(values[0]),
    ]
    return f"\\{{{list_numbers(values)}\\}}", same, other


def tuple_of(rng: Rng) -> Made:
    """A tuple of three or four numbers."""
    values = numbers(rng, rng.randint(3, 4))
    off = [*values[:-1], values[-1] + 1]
    same = [
        f"({list_numbers(values, rng)})",
        f"\\left({list_numbers(values)}\\right)",
        f"\\langle {list_numbers(values)}\\rangle",
        f"(x,y,z)=({list_numbers(values)})",
    ]
    return (
        f"({list_numbers(values)})",
        same,
        [
            f"({list_numbers(values[::-1])})",
            f"\\{{{list_numbers(values)}\\}}",
            f"({list_numbers(off)})",
            f"({list_numbers(values[:-1])})",
            f"({list_numbers(values)}, 0)",
        ],
    )


def point(rng: Rng) -> Made:
    """A point of the plane."""
    a, b = numbers(rng, 2)
    same = [
        f"({decimal_or(a, rng)}, {frac(b)})",
        f"\\left({frac(a)},{frac(b)}\\right)",
        f"\\begin{{pmatrix}}{frac(a)}\\\\{frac(b)}\\end{{pmatrix}}",
    ]
    return (
        f"({frac(a)},{frac(b)})",
        same,
        [
            f"({frac(b)},{frac(a)})",
            f"\\{{{frac(a)},{frac(b)}\\}}",
            f"({frac(a)},{frac(b + 1)})",
            f"[{frac(a)},{frac(b)}]",
            frac(a),
        ],
    )


def interval(rng: Rng) -> Made:
    """An interval with two ends."""
    low, high = sorted(numbers(rng, 2))
    left, right = rng.choice("(["), rng.choice(")]")
    less, more = "<" if left == "(" else "\\le", "<" if right == ")" else "\\leq"
    a, b = frac(low), frac(high)
    back = {"<": ">", "\\le": "\\ge", "\\leq": "\\geq"}
    same = [
        f"{left}{a}, {b}{right}",
        f"{a} {less} x {more} {b}",
        f"{b} {back[more]} x {back[less]} {a}",
        f"x \\in \\left{left}{decimal_or(low, rng)},{b}\\right{right}",
    ]
    same += [f"\\{{x \\mid {a} {less} x {more} {b}\\}}"]
    flip = {"(": "[", "[": "(", ")": "]", "]": ")"}
    other = [
        f"{flip[left]}{a},{b}{right}" if (left, right) != ("[", ")") else f"[{a},{b}]",
        f"{left}{a},{b}{flip[right]}",
        f"{left}{a},{frac(high + 1)}{right}",
    ]
    other += [f"{a} {less} x", f"x {more} {b}", f"\\{{{a},{b}\\}}"]
    return (f"{left}{a},{b}{right}" if (left, right) != ("(", ")") else f"{a} < x < {b}"), same, other


def ray(rng: Rng) -> Made:
    """An interval with one end."""
    (end,) = numbers(rng, 1)
    a, k = frac(end), rng.randint(2, 5)
    up, closed = rng.random() < 0.5, rng.random() < 0.5
    text = f"{'[' if closed else '('}{a}, \\infty)" if up else f"(-\\infty, {a}{']' if closed else ')'}"
    sign, back = (">", "<") if up else ("<", ">")
    sign, back = (sign, back) if not closed else ({">": "\\ge", "<": "\\leq"}[sign], {">": "\\geq", "<": "\\le"}[back])
    same = [
        text,
        f"x {sign} {a}",
        f"{a} {back} x",
        f"{k}x {sign} {frac(k * end)}",
        f"-x {back} {frac(-end)}",
        f"x - {k} {sign} {frac(end - k)}",
    ]
    other = [
        f"x {back} {a}",
        f"x {sign} {frac(end + 1)}",
        text.replace("[", "(")
        if "[" in text
        else text.replace("]", ")")
        if "]" in text
        else f"x {sign}= {a}".replace(">=", "\\ge").replace("<=", "\\le"),
    ]
    return text, same, [*other, a, "(-\\infty,\\infty)"]


def union(rng: Rng) -> Made:
    """A union of two intervals."""
    a, b, c = sorted(numbers(rng, 3))
    first, second = f"(-\\infty,{frac(a)})", f"[{frac(b)},{frac(c)}]"
    same = [
        f"{second}\\cup {first}",
        f"x < {frac(a)} \\text{{ or }} {frac(b)} \\le x \\le {frac(c)}",
        f"{first} ∪ {second}",
        f"x\\in {first}\\cup{second}",
    ]
    return (
        f"{first}\\cup{second}",
        same,
        [
            first,
            second,
            f"(-\\infty,{frac(a)}]\\cup{second}",
            f"{first}\\cup[{frac(b)},{frac(c)})",
            f"{first}\\cup{second}\\cup\\{{{frac(c + 1)}\\}}",
        ],
    )


def matrix(rng: Rng) -> Made:
    """A matrix."""
    rows = [[rng.randint(-9, 9) for _ in range(rng.choice((2, 2, 3)))]]
    rows += [[rng.randint(-9, 9) for _ in rows[0]] for _ in range(rng.choice((1, 1, 2)))]
    rows[0][1] = rows[1][0] + rng.randint(1, 5)

    def write_cells(cells: list[list[int]], kind: str = "pmatrix") -> str:
        return f"\\begin{{{kind}}}" + "\\\\".join("&".join(map(str, row)) for row in cells) + f"\\end{{{kind}}}"

    turned = [list(column) for column in zip(*rows, strict=True)]
    off = [[*rows[0][:-1], rows[0][-1] + 1], *rows[1:]]
    spaced = write_cells(rows).replace("&", " & ").replace("\\\\", " \\\\ ")
    same = [
        write_cells(rows, "bmatrix"),
        write_cells(rows, "Bmatrix"),
        spaced,
        f"A = {write_cells(rows)}",
        write_cells([row[:] for row in rows], "matrix"),
    ]
    return (
        write_cells(rows),
        same,
        [
            write_cells(turned),
            write_cells(off),
            write_cells(rows[:-1]),
            write_cells([[-v if v else 1 for v in row] for row in rows]),
        ],
    )
