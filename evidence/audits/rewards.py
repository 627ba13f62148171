"""Reward functions to audit, and second implementations to hold built-in verifiers against: short, and not assay's code."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

__all__ = ["MATH_VERIFY", "SECOND", "math_verify"]

MATH_VERIFY = "evidence.audits.rewards:math_verify"

SECOND = {
    "exact": "as_text",
    "set": "as_set",
    "list": "as_list",
    "json": "as_json",
    "json_schema": "as_json_value",
    "choice": "as_letter",
    "classification": "as_label",
    "numeric": "as_float",
    "math": "math_verify",
}
"""Built-in verifier to the function here that does the same in the plainest way."""


def math_verify(prompt: str, completion: str, row: Mapping[str, Any]) -> float:
    """The library as its own documentation calls it: gold between dollar signs, ``verify(parse(gold), parse(answer))``."""
    library: Any = import_module("math_verify")
    return float(library.verify(library.parse(f"${row['answer']}$"), library.parse(completion)))


def as_text(prompt: str, completion: str, row: Mapping[str, Any]) -> float:
    """The same characters."""
    return float(completion == str(row["answer"]))


def as_set(prompt: str, completion: str, row: Mapping[str, Any]) -> float:
    """The same words between commas, in any order."""
    return float(sorted(_words(completion)) == sorted(row["answer"]))


def as_list(prompt: str, completion: str, row: Mapping[str, Any]) -> float:
    """The same words between commas."""
    return float(_words(completion) == list(row["answer"]))


def as_json(prompt: str, completion: str, row: Mapping[str, Any]) -> float:
    """Python's own JSON, the whole text or what a fence or tag holds."""
    return float(_json(completion) == json.dumps(row["answer"], sort_keys=True))


def as_json_value(prompt: str, completion: str, row: Mapping[str, Any]) -> float:
    """As `as_json`, with the value that a schema's gold holds."""
    return float(_json(completion) == json.dumps(row["answer"]["value"], sort_keys=True))


def as_letter(prompt: str, completion: str, row: Mapping[str, Any]) -> float:
    """The last capital letter that stands alone."""
    gold: Any = row["answer"]
    letters: list[str] = re.findall(r"\b[A-D]\b", _inner(completion))
    return float(letters[-1:] == [gold["answer"] if isinstance(gold, Mapping) else gold])


def as_label(prompt: str, completion: str, row: Mapping[str, Any]) -> float:
    """The same word, in any case."""
    return float(_inner(completion).casefold() == str(row["answer"]).casefold())


def as_float(prompt: str, completion: str, row: Mapping[str, Any]) -> float:
    """The whole text as a floating-point number."""
    try:
        return float(abs(_number(_inner(completion)) - _number(str(row["answer"]))) < 1e-9)
    except (ValueError, ZeroDivisionError, OverflowError):
        return 0.0


def _number(text: str) -> float:
    over, slash, under = text.partition("/")
    return float(over) / float(under) if slash else float(text.replace(",", ""))


def _inner(text: str) -> str:
    found = list(re.finditer(r"<answer>(.*?)</answer>|\\boxed\{([^{}]*)\}", text, re.DOTALL))
    return (found[-1][1] or found[-1][2] or "").strip() if found else text.strip()


def _words(text: str) -> list[str]:
    inner = _inner(text)
    try:
        found: Any = json.loads(inner)
    except (ValueError, RecursionError):
        found = None
    return [str(x) for x in cast("list[Any]", found)] if isinstance(found, list) else [word.strip() for word in inner.split(",")]


def _json(text: str) -> str:
    inner = re.sub(r"^```(?:json)?|```$", "", _inner(text)).strip()
    try:
        return json.dumps(json.loads(inner), sort_keys=True)
    except (ValueError, RecursionError):
        return ""
