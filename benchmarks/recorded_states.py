"""States between the turns of episodes of three look-ups, by the oracle or a policy."""

from __future__ import annotations

import asyncio
import json
from functools import cache
from pathlib import Path
from typing import Any

from assay.core import Context, Message, SamplerParts, Sampling, Task, generator
from assay.guide import plain_context
from assay.rollout import PlayerSpec, states_between
from assay.runtime import NativeEngine
from assay_tasks import KeyValue
from pair_reward import TASKS


@cache
def oracle_states() -> tuple[dict[str, Any], ...]:
    """States behind each look-up of the oracle, on each of the tasks."""
    return tuple(_row(i, [m.content for m in _lookup(i)[2] if m.role == "assistant"]) for i in range(TASKS))


def policy_states(model: Any) -> tuple[dict[str, Any], ...]:
    """States between the turns of a policy, one episode on each of the tasks."""
    parts = SamplerParts(
        engine=NativeEngine(model),
        tokenizer=model.tokenizer,
        source=KeyValue(),
        sampling=Sampling(max_new_tokens=6),
        seed=0,
        max_turns=8,
        deadline=30.0,
    )
    found = asyncio.run(PlayerSpec().build(parts).collect([_lookup(i)[1] for i in range(TASKS)], 1))
    return tuple(_row(i, [call.text for call in rollout.calls]) for i, rollout in enumerate(found))


def write_states(rows: tuple[dict[str, Any], ...], path: Path) -> Path:
    """The rows as JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _lookup(i: int) -> tuple[Task, Context, tuple[Message, ...]]:
    """A task, where it begins, and its oracle's turns."""
    task = KeyValue().task("keyvalue", 3, "train", i)
    return task, plain_context(task, f"t{i}"), KeyValue().trace(task, 0.0, generator("oracle", 0, str(i)))


def _row(i: int, said: list[str]) -> dict[str, Any]:
    task, context, _ = _lookup(i)
    return {"prompt": task.public["prompt"], "states": asyncio.run(states_between(KeyValue(), context, said))}
