"""Small records for the tests of core, and random rollouts as trees."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from assay.core import (
    Call,
    Completion,
    Context,
    Draw,
    FrozenMap,
    Group,
    Message,
    Rollout,
    Sampling,
    Score,
    Span,
    Stop,
    Task,
    TokenColumn,
    ids_of,
)


def task(name: str = "a", level: int = 1, **private: object) -> Task:
    return Task(
        id=name,
        domain="d",
        arm="x",
        level=level,
        split="train",
        index=0,
        public=FrozenMap({"prompt": "1+1="}),
        private=FrozenMap(private),
    )


def context(key: str = "c", **changed: object) -> Context:
    fields = {"key": key, "group": key, "task": task().public_view(), "messages": (Message("user", "1+1="),)}
    return Context(**{**fields, **changed})


def completion(ids: list[int], spans: list[tuple[int, int, int]] | None = None, /, **columns: np.ndarray) -> Completion:
    """A completion whose log-probability of token i is ``-i / 1000``."""
    found = [(0, 0, len(ids))] if spans is None else spans
    return Completion(
        ids=ids_of(ids),
        logp_engine=-np.array(ids, np.float32) / 1000,
        spans=tuple(Span(*s) for s in found if s[2] > s[1]),
        stop=Stop.DONE,
        sampling=Sampling(),
        columns={name: TokenColumn(name, values, "engine", 0) for name, values in columns.items()},
    )


def call(position: int, parent: int | None, prefix: list[int], sampled: list[int], **changed: object) -> Call:
    of_completion = {k: changed.pop(k) for k in ("spans", "columns") if k in changed}
    made = completion(sampled, of_completion.get("spans"), **of_completion.get("columns", {}))
    return Call(**{"id": position, "parent": parent, "prefix": ids_of(prefix), "completion": made, "text": "", **changed})


def rollout(*calls: Call, name: str = "c/0", key: str = "c", stop: Stop = Stop.DONE) -> Rollout:
    return Rollout(id=name, context=context(key), calls=calls, stop=stop, seed=7)


def one_call(sampled: int, prompt: int = 2, name: str = "c/0", key: str = "c", **columns: np.ndarray) -> Rollout:
    """A single call: ``prompt`` ids from 1, then ``sampled`` ids from 100."""
    return rollout(
        call(0, None, list(range(1, prompt + 1)), list(range(100, 100 + sampled)), columns=columns), name=name, key=key
    )


def group(*rollouts: Rollout, key: str = "c", scores: list[Score] | None = None, level: int = 1) -> Group:
    found = [Score(components={"correct": float(i % 2)}) for i in range(len(rollouts))] if scores is None else scores
    return Group(key=key, task=task(key, level), draw=Draw("x", level, 1.0), rollouts=rollouts, scores=tuple(found))


@st.composite
def trees(draw: st.DrawFn) -> Rollout:
    """Random trees: linear turns, branches, compaction, sub-agents, continued partial calls, two weight versions.

    Every sampled token has an id of its own, from 1000 up; shown tokens are below 100.
    """
    calls: list[Call] = []
    fresh = 1000
    for position in range(draw(st.integers(1, 7))):
        parent = None if position == 0 else draw(st.none() | st.integers(0, position - 1))
        shown = draw(st.lists(st.integers(0, 99), min_size=1, max_size=3))
        how = draw(st.sampled_from(["extend", "continue", "compact"]))
        if parent is None or how == "compact":
            prefix = shown
        else:
            prefix = [*calls[parent].tokens.tolist(), *(shown if how == "extend" else [])]
        count = draw(st.integers(0, 4))
        cut = draw(st.integers(0, count))
        changed: dict[str, object] = {"spans": [(1, 0, cut), (2, cut, count)]}
        if draw(st.booleans()):
            changed["columns"] = {"routing": np.arange(fresh * 6, (fresh + count) * 6, dtype=np.int16).reshape(count, 2, 3)}
        if draw(st.integers(0, 4)) == 0:
            changed["policy"] = "helper"
        calls.append(call(position, parent, prefix, list(range(fresh, fresh + count)), **changed))
        fresh += count
    return rollout(*calls)
