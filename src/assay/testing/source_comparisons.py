"""Helpers of the check of a family: how tasks differ, what an answer ends on, the same tasks in another process."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, cast

from assay.core.canon import plain
from assay.core.task import Task
from assay.tasks.problem import Form
from assay.testing.contracts import ContractError

__all__ = ["describe_difference", "digest_elsewhere", "ends_with", "keys_of", "tag_calls"]


def tag_calls(calls: str) -> str:
    """Calls of tools as a model says them."""
    return "".join(f"<tool_call>{json.dumps(call)}</tool_call>" for call in json.loads(calls))


def describe_difference(task: Task, again: Task) -> str:
    """What differs between two tasks that should be the same: the first field in which they do, with both values."""
    for f in fields(Task):
        first, second = getattr(task, f.name), getattr(again, f.name)
        if first != second:
            return f", with another {f.name}: {_short(plain(first))}, then {_short(plain(second))}"
    return ", and the two are not equal"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def ends_with(gold: str | None, text: str) -> bool:
    """Whether a text is what an oracle's words end on, in whatever form: a verifier need not insist on the form."""
    return gold is not None and text != "" and any(gold.casefold().endswith(f.format_answer(text).casefold()) for f in Form)


def keys_of(value: object) -> set[str]:
    """All keys of nested mappings."""
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value)
        return set(items) | {key for v in items.values() for key in keys_of(v)}
    if isinstance(value, tuple):
        return {key for v in cast("tuple[Any, ...]", value) for key in keys_of(v)}
    return set()


_CHILD = """
import pickle, sys
path, blob, places = pickle.load(sys.stdin.buffer)
sys.path[:0] = path
from assay.core.canon import digest, plain
source = pickle.loads(blob)
print(digest([source.task(*place) for place in places]))
"""


def digest_elsewhere(blob: bytes, places: Sequence[tuple[str, int, str, int]]) -> str:
    """Digest of the tasks in a fresh interpreter with another hash seed."""
    seed = "54321" if os.environ.get("PYTHONHASHSEED") == "12345" else "12345"
    path = [p for p in sys.path if p]
    done = subprocess.run(
        [sys.executable, "-c", _CHILD],
        input=pickle.dumps((path, blob, places)),
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )
    if done.returncode:
        raise ContractError(f"the source fails in a fresh interpreter: {done.stderr.decode(errors='replace')[-800:]}")
    return done.stdout.decode().split()[-1]
