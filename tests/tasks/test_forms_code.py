"""Rows with test code: what nobody calls is called or refused; programs and prose are no short texts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from test_forms import imported, scores, verl

from assay.tasks.exchange.importing import Rejected

RIGHT = "def f0(x):\n    return x * 2"
WRONG = ("def f0(x): return 'anything'", "x=1", "print('hi')")
UNCALLED = "def test_f():\n    assert f0(2)==4\n"
CANDIDATE = "def check(candidate):\n    assert candidate(2)==4\n"

RUN: dict[str, dict[str, Any]] = {
    "a list of functions": {"prompt": "p", "tests": [UNCALLED], "solution": RIGHT},
    "the same in JSON": {"prompt": "p", "tests": json.dumps([UNCALLED]), "solution": RIGHT},
    "verl's list": verl("apps", [UNCALLED]),
    "verl's text": verl("apps", json.dumps([UNCALLED])),
    "assert_case": verl("codegen__x", json.dumps({"assert_case": [UNCALLED]})),
    "functional with an entry point": verl("livecodebench", json.dumps({"functional": CANDIDATE, "entry_point": "f0"})),
    "functional of a row that names it": verl("livecodebench", json.dumps({"functional": CANDIDATE}), entry_point="f0"),
    "MBPP's list": {"text": "p", "test_list": [UNCALLED], "code": RIGHT},
    "unit_tests": {"question": "p", "unit_tests": ["assert f0(2) == 4"], "solution": RIGHT},
    "unit_tests of functions": {"question": "p", "unit_tests": [UNCALLED], "solution": RIGHT},
    "test_code": {"question": "p", "test_code": UNCALLED, "solution": RIGHT},
    "unit_test_code": {"question": "p", "unit_test_code": "assert f0(2) == 4\nassert f0(3) == 6", "answer": RIGHT},
    "test_code with an entry point": {"question": "p", "test_code": CANDIDATE, "entry_point": "f0", "solution": RIGHT},
    "KodCode": {"question": "p", "test": f"from solution import f0\n\n{UNCALLED}", "solution": RIGHT},
    "KodCode, the module": {
        "question": "p",
        "tests": f"import solution\n{UNCALLED.replace('f0', 'solution.f0')}",
        "solution": RIGHT,
    },
    "unit_tests as cases": {"question": "p", "unit_tests": {"fn_name": "f0", "inputs": [[2]], "outputs": [4]}, "solution": RIGHT},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_tests_run_and_pay_only_what_passes(name: str) -> None:
    row = imported(RUN[name])
    assert not isinstance(row, Rejected), row
    assert row["verifier"] in ("unit_tests", "code_call")
    assert scores(row, RIGHT, *WRONG) == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (verl("livecodebench", json.dumps({"functional": CANDIDATE})), "cannot be called"),
        (verl("codegen__x", json.dumps({"assert_case": ["assert f0(2) == 4", "x=1"]})), "piece of tests 1 checks nothing"),
        ({"prompt": "p", "tests": ["async def test_f():\n    assert f0(2) == 4"], "solution": RIGHT}, "checks nothing"),
        ({"prompt": "p", "tests": ["import pytest\ndef test_f():\n    assert f0(2) == 4"], "solution": RIGHT}, "framework"),
        ({"text": "p", "test_list": ["assert f0("], "code": RIGHT}, "is no Python"),
        ({"question": "p", "test_code": "print(f0(2))", "solution": RIGHT}, "checks nothing"),
        ({"question": "p", "unit_tests": [{"in": 1}], "solution": RIGHT}, "not known"),
        ({"question": "p", "solution": "def k(x): return 2*x"}, "is a program"),
        ({"question": "p", "answer": "```python\nprint(3)\n```"}, "is a program"),
        ({"question": "p", "answer": "#include <stdio.h>"}, "is a program"),
        ({"question": "What is x?", "solution": "Hence x = 4, done."}, "prose"),
        ({"question": "Prove that the sum is even.", "solution": "By definition."}, "prose"),
        ({"question": "Is it so?", "solution": "By definition."}, "prose"),
        ({"question": "Is it so?", "answer": "It follows from the lemma."}, "prose"),
        ({"question": "Show that n is even.", "answer": "induction"}, "asks for a proof"),
    ],
)
def test_what_cannot_be_judged_is_refused_with_the_reason(raw: dict[str, Any], reason: str) -> None:
    row = imported(raw)
    assert isinstance(row, Rejected) and row.step == "unsupported" and reason in row.reason, row


@pytest.mark.parametrize(
    "gold",
    ["Paris", "New York City", "the Treaty of Versailles", "The Treaty of Versailles.", "Martin Luther King Jr.",
     "Washington, D.C.", "Let It Be", "So What",
     "By Night in Chile", "yes", "import tax", "What Is Art?", "a blue whale", "class struggle"],
)  # fmt: skip
def test_short_answers_in_words_stay(gold: str) -> None:
    for field in ("answer", "solution"):
        row = imported({"question": "What is it?", field: gold})
        assert not isinstance(row, Rejected) and row["verifier"]["name"] == "exact", row


@pytest.mark.parametrize(
    ("question", "line", "behind"),
    [
        ("Write f0.", "from solution import f0", ""),
        ("Double it.", "from solution import f0", "\n\nYour program must define `f0`."),
        ("Double it.", "from solution import (\n    f0,\n    G,\n)", "\n\nYour program must define `f0`, `G`."),
        ("Double it.", "from solution import *", ""),
    ],
)
def test_a_question_names_what_its_tests_import(question: str, line: str, behind: str) -> None:
    row = imported({"question": question, "test": f"{line}\n{UNCALLED}", "solution": f"{RIGHT}\nG = 1"})
    assert not isinstance(row, Rejected), row
    assert row["prompt"] == question + behind
