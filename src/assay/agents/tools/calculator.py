"""A calculator: arithmetic that is computed exactly, and nothing else."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from fractions import Fraction

from assay.rollout.tool_limits import tool

__all__ = ["calculate"]

_BITS = 4096
"""Of numerator and denominator of any value on the way: what is larger is refused before it is computed."""

_OPERATORS: Mapping[type[ast.operator], Callable[[Fraction, Fraction], Fraction | int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}


@tool(characters=2000)
def calculate(expression: str) -> str:
    """The value of an expression of numbers, + - * / // % ** and parentheses, computed exactly.

    Args:
        expression: for example "2 * (3 + 4)".

    Raises:
        ValueError: something else stands in it, or a value is too large.
        ZeroDivisionError: it divides by zero.

    >>> calculate("2 * (3 + 4)"), calculate("1/3 + 1/6"), calculate("0.1 + 0.2"), calculate("10 / 3")
    ('14', '0.5', '0.3', '10/3')
    """
    if len(expression) > 1000:
        raise ValueError(f"the expression has {len(expression)} characters; write at most 1000")
    try:
        body = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"{expression[:80]!r} is no expression") from error
    return _text(_value(body))


def _value(node: ast.expr) -> Fraction:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return _check_size(Fraction(str(node.value)))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
        value = _value(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, ast.Pow):
            return _power(left, right)
        if type(node.op) in _OPERATORS:
            return _check_size(Fraction(_OPERATORS[type(node.op)](left, right)))
    raise ValueError(f"{ast.unparse(node)[:80]!r} is neither a number nor one of + - * / // % ** of numbers")


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or abs(exponent) > _BITS:
        raise ValueError(f"the exponent {_text(exponent)} is no whole number up to {_BITS}")
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if bits * abs(int(exponent)) > 2 * _BITS:  # before it is computed: 9**9**9 would never end
        raise ValueError("the power is too large")
    return _check_size(base ** int(exponent))


def _check_size(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _BITS:
        raise ValueError("a number is too large")
    return value


def _text(value: Fraction) -> str:
    """Whole numbers and finite decimals as such, others as a fraction."""
    if value.denominator == 1:
        return str(value.numerator)
    rest, twos, fives = value.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    places = max(twos, fives)
    if rest != 1 or places > 20:
        return str(value)
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"
