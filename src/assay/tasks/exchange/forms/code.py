"""Programs: HumanEval, MBPP, APPS, TACO, LiveCodeBench, CodeContests, KodCode, verl's and Guru's code, verification_info."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from assay.core.canon import plain
from assay.sandbox.called import call_tests
from assay.tasks.exchange.forms.route import Asked, Form, Route, Unsupported, as_json, first_text, nested_field, texts_in

__all__ = ["FORMS", "judged_by_tests"]

_STDIN = "'code_output', with 'tests' as a list of {'stdin', 'stdout'}"
_CALLS = "'code_call', with 'entry' and 'tests' as a list of {'args', 'expected'}"
_PIECES = "'unit_tests', with 'tests' as a list of pieces with assertions, or functions test_* without arguments"
_TESTS = ("input_output", "verification_info", "tests", "test_cases", "public_test_cases", "test")
_TAKEN = (
    *_TESTS,
    "private_test_cases",
    "public_tests",
    "private_tests",
    "generated_tests",
    "solutions",
    "canonical_solution",
    "test_list",
    "challenge_test_list",
    "test_setup_code",
    "test_imports",
)
_PYTHON = 3
"""CodeContests' number of Python 3 among the languages of its solutions."""


def human_eval(row: Mapping[str, Any], asked: Asked) -> Route | None:
    """``prompt``, ``test`` with a function ``check``, ``entry_point``, ``canonical_solution``."""
    test, entry = row.get("test"), row.get("entry_point")
    if not isinstance(test, str) or not isinstance(entry, str):
        return None
    call = "" if re.search(r"^check\(", test, re.MULTILINE) else f"\n\ncheck({entry.strip()})"
    body = first_text(row, "canonical_solution", "completion")
    solution = f"{row.get('prompt', '')}{body}" if body else first_text(row, "solution")
    answer = {"tests": _run([test + call], entry.strip())}
    return Route(form="HumanEval", verifier="unit_tests", answer=answer, solution=solution, uses=_TAKEN)


def mbpp(row: Mapping[str, Any], asked: Asked) -> Route | None:
    """``test_list`` of assertions, with what they need before them."""
    tests = texts_in(row.get("test_list"))
    if tests is None:
        return None
    tests += texts_in(row.get("challenge_test_list")) or []
    setup = [first_text(row, "test_setup_code"), *(texts_in(row.get("test_imports")) or [])]
    head = "".join(f"{line}\n" for line in setup if line)
    question = "" if asked.question else first_text(row, "text")
    shown = "" if any(t in (asked.question or question) for t in tests) else f"\nYour code should pass:\n{tests[0]}"
    return Route(
        form="MBPP",
        verifier="unit_tests",
        answer={"tests": _run([head + t for t in tests], "")},
        question=question,
        behind=shown,
        solution=first_text(row, "code"),
        uses=(*_TAKEN, "text", "code"),
    )


def code_contests(row: Mapping[str, Any], asked: Asked) -> Route | None:
    """``public_tests``, ``private_tests``, ``generated_tests``: each ``{"input": list, "output": list}``."""
    kinds = [row.get(name) for name in ("public_tests", "private_tests", "generated_tests")]
    pairs = [
        p
        for k in kinds
        for p in zip(nested_field({"k": k}, "k", "input") or (), nested_field({"k": k}, "k", "output") or (), strict=False)
    ]
    if not pairs:
        return None
    known = row.get("solutions")
    numbers: list[Any] = plain(nested_field({"s": known}, "s", "language")) or []
    texts: list[Any] = plain(nested_field({"s": known}, "s", "solution")) or []
    python = [t for n, t in zip(numbers, texts, strict=False) if n in (_PYTHON, "PYTHON3")]
    question = "" if asked.question else first_text(row, "description")
    answer = {"tests": [{"stdin": str(a), "stdout": str(b)} for a, b in pairs]}
    return Route(
        form="CodeContests",
        verifier="code_output",
        answer=answer,
        question=question,
        solution=_compiles(python),
        uses=(*_TAKEN, "description"),
    )


def with_tests(row: Mapping[str, Any], asked: Asked) -> Route | None:
    """Tests in a field of their own: APPS, TACO, LiveCodeBench, DeepCoder, ``verification_info``."""
    field = next((name for name in _TESTS if isinstance(as_json(row.get(name)), dict | list) and row.get(name)), "")
    if not field:
        return None
    value: Any = as_json(row[field])
    entry = _entry(row)
    if field == "public_test_cases":
        private = as_json(row.get("private_test_cases"))
        value = [
            *value,
            *(cast("list[Any]", private) if isinstance(private, list) else ()),
        ]  # a pickle is not opened: its tests are left out
    made = judged_by_tests(value, first_text(row, "starter_code"), entry)
    if made is None:
        raise Unsupported(f"{field!r} holds tests of a form that is not known: {value!r:.160}", f"{_STDIN}, or {_CALLS}")
    question = "" if asked.question else first_text(row, "question_content", "description", "problem_description")
    starter = first_text(row, "starter_code")
    text = asked.question or question
    behind = f"\n\nComplete this:\n```python\n{starter}\n```" if starter and starter.strip() not in text else ""
    return Route(
        form="tests",
        verifier=made[0],
        answer=made[1],
        question=question,
        behind=behind,
        solution=_solution(row),
        uses=(*_TAKEN, "question_content", "starter_code"),
    )


def with_gold(row: Mapping[str, Any], asked: Asked) -> Route | None:
    """Tests where other rows have their gold: verl's ``reward_model["ground_truth"]``, Guru's ``functional``."""
    if asked.source.startswith("simulation__cruxeval"):
        raise Unsupported("its gold is a function, and the answer an assertion about it", "'json', with the value as the gold")
    value = as_json(asked.gold)
    made = judged_by_tests(value, "", _entry(row)) if isinstance(value, dict | list) else None
    if made is None:
        if asked.source.startswith("codegen") or asked.source in ("codecontests", "apps", "codeforces", "taco", "livecodebench"):
            raise Unsupported(
                f"the tests of {asked.source!r} are of a form that is not known: {value!r:.160}", f"{_STDIN}, or {_CALLS}"
            )
        return None
    reference = nested_field(row, "extra_info", "reference")
    solution = (
        _compiles([str(nested_field(row, "extra_info", "prefix") or "") + reference])
        if isinstance(reference, str)
        else _solution(row)
    )
    return Route(form="code rows", verifier=made[0], answer=made[1], solution=solution)


def test_code(row: Mapping[str, Any], asked: Asked) -> Route | None:
    """Test code as text or a list of texts, in a field that is named so: ``unit_tests``, ``test_code``, ``unit_test_code``."""
    field = next((name for name in _TEST_CODE if row.get(name)), "")
    if not field:
        return None
    value = as_json(row[field])
    pieces = [value] if isinstance(value, str) else texts_in(value)
    if pieces is None:
        made = judged_by_tests(value, first_text(row, "starter_code"), _entry(row))
        if made is None:
            raise Unsupported(f"{field!r} holds tests of a form that is not known: {value!r:.160}", _PIECES)
    else:
        made = "unit_tests", {"tests": _run(pieces, _entry(row))}
    return Route(form="test code", verifier=made[0], answer=made[1], solution=_solution(row), uses=(*_TAKEN, field))


def test_module(row: Mapping[str, Any], asked: Asked) -> Route | None:
    """A module of tests as text, as KodCode has it: ``from solution import f`` and functions ``test_*``."""
    field = next((name for name in ("test", "tests") if _MODULE.search(first_text(row, name))), "")
    if not field:
        return None
    test = first_text(row, field)
    tests = _run([test], _entry(row))
    names = [name.strip(" ()\n") for found in _OF_SOLUTION.findall(test) for name in found.split(" as ")[0].split(",")]
    missing = [f"`{name}`" for name in names if name.isidentifier() and name not in asked.question]
    return Route(
        form="test module",
        verifier="unit_tests",
        answer={"tests": tests},
        behind=f"\n\nYour program must define {', '.join(missing)}." if missing else "",
        solution=_solution(row),
        uses=(*_TAKEN, field),
    )


_MODULE = re.compile(r"^(?:from solution import |import (?:pytest|solution)\b|def test_)", re.MULTILINE)
_OF_SOLUTION = re.compile(r"^from solution import (\([^)]*\)|.+)", re.MULTILINE)
_TEST_CODE = ("unit_tests", "test_code", "unit_test_code", "unittests", "unit_test")


def judged_by_tests(value: Any, starter: str, entry: str) -> tuple[str, dict[str, Any]] | None:
    """Verifier and gold of tests: inputs and outputs, a list of cases, assertions, or one piece of test code.

    Raises:
        Unsupported: tests that are known and cannot be run here.
    """
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        if str(table.get("language") or "python").lower() not in ("python", "python3", "py"):
            raise Unsupported(f"its programs are written in {table['language']!r}", f"{_STDIN}, and the setting language")
        entry = str(table.get("fn_name") or table.get("entry_point") or entry)
        if isinstance(table.get("functional"), str):
            return "unit_tests", {"tests": _run([table["functional"]], entry)}
        if asserts := texts_in(table.get("assert_case")):
            return "unit_tests", {"tests": _run(asserts, entry)}
        if isinstance(table.get("test_cases"), list):
            return judged_by_tests(table["test_cases"], starter, entry)
        inputs, outputs = table.get("inputs"), table.get("outputs")
        if not isinstance(inputs, list) or not isinstance(outputs, list):
            return None
        given, wanted = cast("list[Any]", inputs), cast("list[Any]", outputs)
        return _cases(given, wanted, starter, entry) if given and len(given) == len(wanted) else None
    if not isinstance(value, list) or not value:
        return None
    if (pieces := texts_in(value)) and all(_is_test(p) for p in pieces):
        return "unit_tests", {"tests": _run(pieces, entry)}
    cases = [cast("Mapping[str, Any]", c) for c in cast("list[Any]", value) if isinstance(c, dict)]
    if len(cases) < len(cast("list[Any]", value)) or not all({"input", "output"} <= set(c) for c in cases):
        return None
    called = any(c.get("testtype") == "functional" or c.get("type") in ("function_call", "functional") for c in cases)
    entry = str(next((c["fn_name"] for c in cases if c.get("fn_name")), entry)) if called or entry else ""
    if called and not entry:
        raise Unsupported("its tests call a function that nothing names", _CALLS)
    return _cases([c["input"] for c in cases], [c["output"] for c in cases], starter, entry)


def _cases(inputs: list[Any], outputs: list[Any], starter: str, entry: str) -> tuple[str, dict[str, Any]] | None:
    if not entry:
        if not all(isinstance(x, str | list) for x in (*inputs, *outputs)):
            return None
        return "code_output", {"tests": [{"stdin": _lines(a), "stdout": _lines(b)} for a, b in zip(inputs, outputs, strict=True)]}
    arguments = [_arguments(x) for x in inputs]
    expected = [_value(x) for x in outputs]
    if any(a is None for a in arguments):
        return None
    if all(isinstance(x, list) and len(cast("list[Any]", x)) == 1 for x in expected):  # APPS wraps what is returned
        expected = [x[0] for x in expected]
    whole = f"Solution.{entry}" if re.search(r"^class Solution\b", starter, re.MULTILINE) else entry
    return "code_call", {"entry": whole, "tests": [{"args": a, "expected": e} for a, e in zip(arguments, expected, strict=True)]}


def _lines(value: Any) -> str:
    return value if isinstance(value, str) else "\n".join(map(str, cast("Sequence[Any]", value)))


def _arguments(value: Any) -> list[Any] | None:
    """Arguments of one call: a list, or one JSON value a line; None where they are neither."""
    if not isinstance(value, str):
        return cast("list[Any]", value) if isinstance(value, list) else None
    try:
        return [json.loads(line) for line in value.split("\n") if line.strip()]
    except ValueError:
        return None


def _value(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _entry(row: Mapping[str, Any]) -> str:
    """The name of what the tests call, where a row says it."""
    named = nested_field(as_json(row.get("metadata")) or {}, "func_name") or row.get("fn_name") or row.get("entry_point")
    return str(named or nested_field(row, "extra_info", "entry_point") or "")


def _run(pieces: Sequence[str], entry: str) -> list[str]:
    """Pieces of test code with the calls of the tests that they define.

    Raises:
        Unsupported: a piece is no Python, needs a test framework, or checks nothing when it is executed.
    """
    made: list[str] = []
    for i, piece in enumerate(pieces):
        try:
            called = call_tests(piece, entry)
        except (SyntaxError, ValueError, RecursionError) as error:
            raise Unsupported(f"its piece of tests {i} is no Python ({error}): {piece!r:.120}", _PIECES) from None
        if re.search(r"^\s*(?:import pytest|from pytest)\b", piece, re.MULTILINE):
            raise Unsupported(f"its piece of tests {i} needs a test framework: {piece!r:.120}", _PIECES)
        if not called.checks:
            raise Unsupported(
                f"its piece of tests {i} checks nothing when executed, and what it defines cannot be called: {piece!r:.120}",
                f"{_PIECES}; check(candidate) needs the program's name as 'entry_point'",
            )
        made.append(called.code)
    return made


def _is_test(text: str) -> bool:
    """Whether a text is Python with an assertion in it."""
    try:
        return any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return False


def _solution(row: Mapping[str, Any]) -> str:
    """A program that is said to be right; "" where none is known."""
    known = as_json(row.get("solutions"))
    many = texts_in(known) or []
    return _compiles([*many, first_text(row, "solution", "canonical_solution", "code", "gold_standard_solution", "answer")])


def _compiles(texts: Sequence[str]) -> str:
    """The first of some texts that is a program, fences taken off; "" without one."""
    for text in texts:
        fenced = re.search(r"```(?:python|py)?\s*\n(.*?)```", text, re.DOTALL)
        program = fenced[1] if fenced else text
        try:
            if ast.parse(program).body:
                return program
        except (SyntaxError, ValueError, RecursionError):
            continue
    return ""


FORMS: tuple[Form, ...] = (human_eval, mbpp, code_contests, with_tests, with_gold, test_code, test_module)
