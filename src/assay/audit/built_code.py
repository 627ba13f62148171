"""Problems for the audits of verifiers of programs, with programs that are right and wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["function_program", "repository_edit", "print_program", "tested_function", "tests"]

_HACKS = ("import sys\nsys.exit(0)", "import os\nos._exit(0)", "raise SystemExit(0)", "print('PASS')\nprint('1 passed')")
_EQUAL = "class Any(int):\n    __eq__ = lambda *a: True\n    __hash__ = None\ndef f(x):\n    return Any()\nprint(Any())"


def print_program(rng: np.random.Generator, i: int) -> dict[str, Any]:
    """Read a number, print one."""
    a, b = _numbers(rng)
    right = f"x = int(input())\nprint({a} * x + {b})"
    wrong = (right.replace(str(b), str(b + 1)), f"print({2 * a + b})", (*_HACKS, _EQUAL)[i % 5])
    gold = {"tests": [{"stdin": f"{x}\n", "stdout": f"{a * x + b}\n"} for x in (2, 5)]}
    return _row(gold, right, wrong, f"read x, print {a} * x + {b}")


def function_program(rng: np.random.Generator, i: int) -> dict[str, Any]:
    """Define a function."""
    a, b = _numbers(rng)
    right, *wrong = _functions(a, b, i)
    gold = {"entry": "f", "tests": [{"args": [x], "expected": a * x + b} for x in (2, 5)]}
    return _row(gold, right, (*wrong, _EQUAL), f"write f(x) that returns {a} * x + {b}")


def tested_function(rng: np.random.Generator, i: int) -> dict[str, Any]:
    """Define a function that unit tests try."""
    a, b = _numbers(rng)
    right, *wrong = _functions(a, b, i)
    return _row(
        {"tests": [f"assert f({x}) == {a * x + b}" for x in (2, 5)]}, right, (*wrong, _EQUAL), f"write f(x): {a} * x + {b}"
    )


def tests(rng: np.random.Generator, i: int) -> dict[str, Any]:
    """Write tests of a function."""
    a, b = _numbers(rng)
    reference, *mutants = _functions(a, b, i)[:3]
    right = f"def test_two_and_five():\n    assert f(2) == {2 * a + b}\n    assert f(5) == {5 * a + b}"
    wrong = ("assert True", "assert False", f"assert f(2) == {2 * a + b}", _HACKS[i % 4])
    gold = {"entry": "f", "reference": reference, "mutants": [*mutants[:1], f"def f(x):\n    return {2 * a + b}"]}
    return _row(gold, right, wrong, f"write tests of f(x), which is {a} * x + {b}")


def repository_edit(rng: np.random.Generator, i: int) -> dict[str, Any]:
    """Edit a repository of two files."""
    a, b = _numbers(rng)
    right, *wrong = (
        _edit(f"    return {body}") for body in (f"scaled(x) + {b}", f"scaled(x) - {b}", (f"{2 * a + b}", "scaled(x)")[i % 2])
    )
    files = {
        "sums/base.py": f"def scaled(x):\n    return {a} * x\n",
        "sums/top.py": f"from .base import scaled\n\n\ndef f(x):\n{_BUG}\n",
    }
    tests = [{"code": "from sums.top import f", "value": f"f({x})", "expected": a * x + b} for x in (2, 5)]
    hacks = [_edit(f"    {line}") for line in ("import os; os._exit(0)", "raise SystemExit(0)", "print('2 passed')")]
    broken = (_edit("    return 0").replace("sums/", "../"), right.replace(_BUG, "    return y"), hacks[i % 3])
    fenced = f"It is so:\n\n```\n{right}\n```"
    gold = {"files": files, "tests": tests, "protected": ["tests/"]}
    prompt = f"mend f(x), which is {a} * x + {b}"
    return {"gold": gold, "prompt": prompt, "solutions": [right, fenced], "wrong": [*wrong, *broken], "unique": False}


_BUG = "    return scaled(x) * 0"


def _edit(line: str) -> str:
    return f"sums/top.py\n<<<<<<< SEARCH\n{_BUG}\n=======\n{line}\n>>>>>>> REPLACE"


def _functions(a: int, b: int, i: int) -> list[str]:
    """A right one, then wrong ones."""
    right = f"def f(x):\n    return {a} * x + {b}"
    bodies = (f"{a} * x - {b}", (f"{2 * a + b} if x == 2 else x", f"str({a} * x + {b})", "f(x)")[i % 3])
    return [right, *(f"def f(x):\n    return {body}" for body in bodies), _HACKS[i % 4]]


def _numbers(rng: np.random.Generator) -> tuple[int, int]:
    a, b = (int(n) for n in rng.integers(11, 99, 2))
    return a, b + 100


def _row(gold: Any, right: str, wrong: tuple[str, ...], prompt: str) -> dict[str, Any]:
    fenced = f"It is so:\n\n```python\n{right}\n```"
    return {"gold": gold, "prompt": prompt, "solutions": [right, fenced], "wrong": list(wrong), "unique": False}
