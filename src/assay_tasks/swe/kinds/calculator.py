"""A splitter of text into tokens, with a calculator."""

from __future__ import annotations

from random import Random

from assay_tasks.swe.kind import Example, Kind, Plant

__all__ = ["KIND"]

_ODD = "%x&!"

_SPLITTER = '''\
"""Splits a calculation into tokens."""


def split_tokens(text):
    """The tokens of a calculation: numbers as ["number", value], signs + - * / ( ) as ["sign", sign]. Blanks part tokens.

    Numbers are whole, or have one dot with digits on both sides. ValueError for any other character, and for a number that
    ends in a dot.
    """
    tokens = []
    at = 0
    while at < len(text):
        char = text[at]
        if char == " ":
            at += 1
        elif char in "+-*/()":
            tokens.append(["sign", char])
            at += 1
        elif char.isdigit():
            end = at + 1
            while end < len(text) and (text[end].isdigit() or text[end] == "."):
                end += 1
            tokens.append(["number", to_number(text[at:end])])
            at = end
        else:
            raise ValueError("unknown character " + char)
    return tokens


def to_number(text):
    """A number from its digits: an int, or a float where there is a dot. ValueError for two dots or a dot at the end."""
    if text.count(".") > 1 or text.endswith("."):
        raise ValueError("bad number " + text)
    return float(text) if "." in text else int(text)
'''

_CALC = '''\
"""Works out calculations."""

from .splitter import split_tokens


def calculate(text):
    """The value of a calculation. * and / come before + and -, equal ranks from the left; a minus may stand before a value.

    ValueError where it is none, and for a division by zero.
    """
    tokens = split_tokens(text)
    value, at = read_sum(tokens, 0)
    if at != len(tokens):
        raise ValueError("too much text")
    return value


def read_sum(tokens, at):
    """The value of a sum of products that begins at a token, and where it ends."""
    value, at = read_product(tokens, at)
    while at < len(tokens) and tokens[at][1] in ("+", "-"):
        sign = tokens[at][1]
        other, at = read_product(tokens, at + 1)
        value = value + other if sign == "+" else value - other
    return value, at


def read_product(tokens, at):
    """The value of a product that begins at a token, and where it ends."""
    value, at = read_value(tokens, at)
    while at < len(tokens) and tokens[at][1] in ("*", "/"):
        sign = tokens[at][1]
        other, at = read_value(tokens, at + 1)
        if sign == "*":
            value = value * other
        elif other == 0:
            raise ValueError("division by zero")
        else:
            value = value / other
    return value, at


def read_value(tokens, at):
    """A number, a value in brackets, or a value behind a minus, and where it ends."""
    if at >= len(tokens):
        raise ValueError("too little text")
    kind, token = tokens[at]
    if kind == "number":
        return token, at + 1
    if token == "-":
        value, end = read_value(tokens, at + 1)
        return -value, end
    if token == "(":
        value, end = read_sum(tokens, at + 1)
        if end >= len(tokens) or tokens[end][1] != ")":
            raise ValueError("no closing bracket")
        return value, end + 1
    raise ValueError("no value")
'''


def _sum(rng: Random, deep: int = 2) -> str:
    if not deep or rng.random() < 0.2:
        return str(rng.choice((rng.randint(0, 12), rng.randint(1, 9), f"{rng.randint(0, 9)}.5")))
    left, right = _sum(rng, deep - 1), _sum(rng, deep - 1)
    text = f"{left}{rng.choice((' + ', ' - ', '-', ' * ', '*', ' / ', '+'))}{right}"
    return f"({text})" if rng.random() < 0.35 else f"-{text}" if rng.random() < 0.1 else text


def _tokens_of(rng: Random) -> Example:
    return [], f"split_tokens({_sum(rng)!r})"


def _number_of(rng: Random) -> Example:
    a, b = rng.randint(0, 99), rng.randint(0, 99)
    return [], f"to_number({rng.choice((str(a), f'{a}.{b}', f'{a}.', f'{a}.{b}.{b}'))!r})"


def _tokens_refused(rng: Random) -> Example:
    a = rng.randint(1, 99)
    return [], f"split_tokens({rng.choice((f'{a} {rng.choice(_ODD)} 2', f'{a}. + 1', f'.{a}'))!r})"


def _draw_calculation(rng: Random) -> Example:
    return [], f"calculate({_sum(rng, 3)!r})"


def _draw_chain(rng: Random) -> Example:
    signs = rng.choice(("+-", "-", "*/", "-*", "/"))
    text = str(rng.randint(2, 60)) + "".join(f" {rng.choice(signs)} {rng.randint(1, 9)}" for _ in range(rng.randint(2, 4)))
    return [], f"calculate({text!r})"


def _calc_refused(rng: Random) -> Example:
    a, b = rng.randint(1, 30), rng.randint(1, 30)
    texts = (f"{a} +", f"({a} + {b}", f"{a} {b}", f"{a} / ({b} - {b})", f"{a} + {b})", "", f"* {a}", "()")
    return [], f"calculate({rng.choice(texts)!r})"


def _negative(rng: Random) -> Example:
    a, b, c = rng.randint(1, 30), rng.randint(1, 30), rng.randint(1, 9)
    texts = (f"-{a} + {b}", f"{a} * -{b}", f"-({a} - {b}) * {c}", f"{a} - -{b}", f"--{a}", f"-{a} * {b} - {c}")
    return [], f"calculate({rng.choice(texts)!r})"


KIND = Kind(
    "calculator",
    {"splitter": _SPLITTER, "calc": _CALC},
    {
        "splitter": ("splitter", "lexer", "scanner"),
        "calc": ("calc", "arith", "solver"),
        "split_tokens": ("split_tokens", "tokenize", "scan_text"),
        "to_number": ("to_number", "parse_number", "as_number"),
        "calculate": ("calculate", "work_out", "compute_text"),
        "read_sum read_product read_value": (
            "read_sum read_product read_value",
            "parse_sum parse_product parse_value",
            "sum_at product_at value_at",
        ),
    },
    (_tokens_of, _number_of, _tokens_refused, _draw_calculation, _draw_chain, _calc_refused, _negative),
    (
        Plant("wrong name", "calc", "        other, at = read_product(tokens,", "        other, at = read_sum(tokens,"),
        Plant("wrong name", "calc", "        other, at = read_value(tokens,", "        other, at = read_product(tokens,"),
        Plant("wrong name", "calc", "        value, end = read_sum(tokens,", "        value, end = read_product(tokens,"),
        Plant("missing case", "calc", '    if at != len(tokens):\n        raise ValueError("too much text")\n', ""),
    ),
)
"""A splitter of text into tokens, with a calculator."""
