"""What may be given to the symbolic tier: nothing that is known to make it compute without end."""

from __future__ import annotations

import re

__all__ = ["tame"]

_LONGEST = 300
_DEEPEST = 12
_NESTED = 3
"""Functions in functions, and powers in exponents."""
_OF_SUMS = 20
"""Largest power of something in brackets."""
_PARTS = re.compile(r"\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\S")
_NAMES = (
    "frac sqrt sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh ln log lg exp pi infty binom overline cdot times "
    "lfloor rfloor lceil rceil circ pm mp div lvert rvert le ge ne prime "
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta kappa lambda mu nu xi rho sigma tau phi varphi chi psi "
    "omega Gamma Delta Theta Lambda Sigma Phi Psi Omega ell"
)
_COMMANDS = frozenset("\\" + name for name in _NAMES.split())
_FUNCTIONS = frozenset(
    "\\" + name
    for name in [
        "sin",
        "cos",
        "tan",
        "cot",
        "sec",
        "csc",
        "arcsin",
        "arccos",
        "arctan",
        "sinh",
        "cosh",
        "tanh",
        "ln",
        "log",
        "lg",
        "exp",
        "sqrt",
    ]
)
_DIGITS = 30
_GROWTH = 5_000
"""Largest product of all whole numbers that stand in exponents, before ``!`` or in binomials."""


def tame(source: str) -> bool:
    r"""Whether an expression is short, shallow, of known commands, and without huge powers or factorials.

    >>> tame(r"\sin ( 2 x ) ^ { 2 }"), tame("9^{9^{9^{9}}}"), tame("10000000!"), tame(r"\int x dx")
    (True, False, False, False)
    """
    if len(source) > _LONGEST or not source.isascii():
        return False
    depth = 0
    functions: list[int] = []  # at which depths functions, and exponents, began
    exponents: list[int] = []
    parts = _PARTS.findall(source)
    growth = 1
    for n, part in enumerate(parts):
        before = parts[n - 1] if n else ""
        after = parts[n + 1] if n + 1 < len(parts) else ""
        if part[0] == "\\" and part not in _COMMANDS:
            return False
        if part in "({[":
            depth += 1
            if before in ("^", "\\binom"):
                exponents.append(depth)
            if before in _FUNCTIONS:
                functions.append(depth)
        elif part in ")}]":
            exponents = [level for level in exponents if level < depth]
            functions = [level for level in functions if level < depth]
            depth -= 1
        elif part[0].isdigit() and (exponents or before in ("^", "!") or after == "!"):
            grown = int(float(part)) if len(part) < 8 else _GROWTH + 1
            growth *= max(1, grown)
            if grown > _OF_SUMS and _raises_a_bracket(parts, n):
                return False
        if part[0].isdigit() and len(part) > _DIGITS:
            return False
        if part == "'" and not before.isalpha():  # a prime behind a number would be dropped: feet, minutes, no one knows
            return False
        if (part == "^" and exponents and not before.isalpha()) or (part == "!" and not before.isalnum()):
            return False
        if depth > _DEEPEST or growth > _GROWTH or len(functions) > _NESTED or len(exponents) >= _NESTED:
            return False
    return depth == 0


def _raises_a_bracket(parts: list[str], n: int) -> bool:
    start = n - 1 if parts[n - 1] == "^" else n - 2
    return start > 0 and parts[start] == "^" and parts[start - 1] == ")"
