"""What an answer to a row would say that is right."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from assay.core.canon import plain
from assay.core.task import Task

__all__ = ["gold_text", "task_gold_text"]


def gold_text(row: Mapping[str, Any]) -> str | None:
    """A right answer as text, by the row's gold and the verifier that it names; None where the gold is no answer, and no solution
    is known.

    Args:
        row: with ``answer``, ``solution`` and ``verifier``, a name or a table with one, as far as it has them.

    >>> gold_text({"answer": {"answer": "B", "options": {"A": "red", "B": "blue"}}, "verifier": "choice"})
    'B'
    >>> gold_text({"answer": {"tests": ["assert f(2) == 4"]}, "solution": "def f(x): return 2 * x", "verifier": "unit_tests"})
    'def f(x): return 2 * x'
    """
    solution, gold, spec = row.get("solution"), row.get("answer"), row.get("verifier")
    named = cast("Mapping[str, Any]", spec).get("name") if isinstance(spec, Mapping) else spec
    name = named if isinstance(named, str) else ""
    if isinstance(gold, str | int | float):
        return str(gold)
    if isinstance(gold, Mapping):
        table = cast("Mapping[str, Any]", gold)
        if name == "choice" and "answer" in table:
            return str(table["answer"])
        if name == "sql" and "query" in table:
            return str(table["query"])
    if name in ("json", "grid"):
        return json.dumps(plain(gold))
    if isinstance(gold, list | tuple) and gold and all(isinstance(x, str | int | float) for x in cast("list[Any]", gold)):
        texts = [str(x) for x in cast("list[Any]", gold)]
        return texts[0] if name == "exact" else json.dumps(texts) if name in ("set", "list") else ", ".join(texts)
    return str(solution) if isinstance(solution, str) and name not in ("constraints", "swe") else None


def task_gold_text(task: Task) -> str | None:
    """A right answer to a task, by its private ``answer``, and the ``solution`` and ``verifier`` of the row that it was made of.

    None where it has no answer, or a table as its answer of which nothing is known. A list of texts without a named verifier is
    given as it is written in Python.

    >>> from assay.tasks import Rows
    >>> task_gold_text(Rows([{"prompt": "2+2?", "answer": 4}], test_share=0).task("rows", 1, "train", 0))
    '4'
    """
    if task.private.get("answer") is None:
        return None
    answer: Any = task.private["answer"]
    row: Any = task.private.get("row")
    known: dict[str, Any] = dict(cast("Mapping[str, Any]", row)) if isinstance(row, Mapping) else {}
    if isinstance(answer, Mapping) or (isinstance(answer, tuple) and "verifier" in known):
        return gold_text({**known, **task.private})
    return str(task.private["answer"])
