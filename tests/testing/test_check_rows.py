"""Rows whose gold is a table are held to their contract by what their verifier reads, or by their solution."""

from __future__ import annotations

from typing import Any

import numpy as np

from assay.tasks import judged_rows
from assay.tasks.exchange.importing import ImportableRows, Importer, Rejected, Summary
from assay.tasks.gold_text import gold_text
from assay.testing import check_task_source


def taken(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    made = list(Importer().run([ImportableRows("rows", i, row) for i, row in enumerate(rows, 1)], Summary()))
    assert not [row for row in made if isinstance(row, Rejected)]
    return [row for row in made if not isinstance(row, Rejected)]


def test_multiple_choice() -> None:
    colours = ("red", "blue", "green", "white")
    rows = [{"question": f"Colour {i}?", "choices": [f"{c} {i}" for c in colours], "answer": i * 7 % 4} for i in range(80)]
    report = check_task_source(judged_rows(taken(rows)), n=16, deadline=30)
    assert {"the oracle scores 1", "another task's answer is wrong"} <= set(report.passed)


def test_programs() -> None:
    rows = [
        {
            "prompt": f"def add{i}(x):\n    '''x and {i}.'''\n",
            "canonical_solution": f"    return x + {i}\n",
            "test": f"def check(candidate):\n    assert candidate(2) == {2 + i}\n",
            "entry_point": f"add{i}",
        }
        for i in range(3)
    ]
    report = check_task_source(judged_rows(taken(rows), test_share=0), n=3, closely=2, deadline=30)
    assert "the oracle scores 1" in report.passed


def test_texts_of_golds() -> None:
    assert gold_text({"answer": ("a", "b"), "verifier": {"name": "exact"}}) == "a"
    assert gold_text({"answer": ("a", "b"), "verifier": "set"}) == '["a", "b"]'
    assert gold_text({"answer": ("a", "b"), "verifier": "math"}) == "a, b"
    assert gold_text({"answer": {"a": 1}, "verifier": "json"}) == '{"a": 1}'
    assert gold_text({"answer": {"query": "select 1"}, "verifier": "sql"}) == "select 1"
    assert gold_text({"answer": {"tests": []}, "verifier": "unit_tests"}) is None
    assert gold_text({"answer": [{"constraint": "json"}], "solution": "x", "verifier": "constraints"}) is None
    assert gold_text({"answer": 3}) == "3" and gold_text({}) is None


def test_a_table_without_a_known_answer_has_no_trace() -> None:
    rows = [{"prompt": "p", "answer": {"tests": ["assert f(1) == 1"]}, "verifier": "unit_tests"}]
    source = judged_rows(rows, test_share=0)
    task = source.task("rows", 1, "train", 0)
    assert source.trace(task, 0.0, np.random.default_rng(0)) is None
    source = judged_rows([{**rows[0], "solution": "def f(x): return x"}], test_share=0)
    trace = source.trace(source.task("rows", 1, "train", 0), 0.0, np.random.default_rng(0))
    assert trace is not None and trace[0].content == "def f(x): return x"
