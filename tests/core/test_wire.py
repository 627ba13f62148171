"""What travels arrives bit for bit."""

import json
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from core_records import call, completion, context, group, one_call, rollout, task, trees
from hypothesis import given
from hypothesis import strategies as st

from assay.core import (
    Draw,
    Fault,
    FrozenMap,
    Group,
    Message,
    Prefill,
    Rollout,
    Sampling,
    Score,
    SpanScore,
    Stop,
    Task,
    TokenColumn,
    ToolResult,
    group_from_wire,
    group_to_wire,
    ids_of,
    rollout_from_wire,
    rollout_to_wire,
    task_from_wire,
    task_to_wire,
)
from assay.core.errors import DataError
from assay.core.media import Media

SHOWN = Media("image", "abc", (2, 3, 3))


def same(a: object, b: object) -> bool:
    """Equal in type, content and, for arrays, in every bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    if is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, dict | FrozenMap):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return a == b or a != a != b


def travelled(value: dict) -> dict:
    return json.loads(json.dumps(value))


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
frozen = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3), max_leaves=6
).map(lambda v: FrozenMap({"prompt": "p", "v": v}))
arrays = st.sampled_from(
    [
        np.arange(6, dtype=np.int64).reshape(2, 3),
        np.zeros((0, 2), np.float16),
        np.array(1.5),
        np.array([True, False]),
        np.array(["ab"]),
    ]
)
snapshots = st.recursive(
    scalars | arrays | frozen,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
messages = st.lists(st.builds(Message, st.text(max_size=4), st.text(max_size=4)), max_size=3).map(tuple)


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    return Task(
        id=draw(st.text(max_size=5)),
        domain="d",
        arm="x",
        level=draw(st.integers()),
        split="test",
        index=3,
        public=draw(frozen),
        world=draw(frozen),
        private=draw(frozen),
    )


@st.composite
def rollouts(draw: st.DrawFn) -> Rollout:
    tree = draw(trees())
    posed = context(
        "c",
        task=draw(tasks()).public_view(),
        messages=draw(messages),
        prefill=draw(st.none() | st.builds(Prefill, st.text(), st.floats(0, 1))),
        snapshot=draw(snapshots),
        score_messages=draw(st.none() | messages),
        privileged=draw(st.none() | messages),
        tag="hint",
    )
    stop = draw(st.sampled_from(Stop))
    fault = draw(st.sampled_from(Fault)) if stop is Stop.ERROR else Fault.NONE
    error = draw(st.none() | st.text())
    answer = draw(st.none() | st.text())
    return Rollout(id="c/0", context=posed, calls=tree.calls, stop=stop, seed=2**64 - 1, error=error, fault=fault, answer=answer)


@given(tasks())
def test_tasks(made: Task) -> None:
    again = task_from_wire(travelled(task_to_wire(made)))
    assert again == made
    assert same(again, made)


@given(rollouts())
def test_rollouts(made: Rollout) -> None:
    assert same(rollout_from_wire(travelled(rollout_to_wire(made))), made)


@given(st.lists(rollouts(), max_size=2), st.floats(0, 1), st.floats(allow_nan=False, allow_infinity=False))
def test_groups(made: list[Rollout], propensity: float, value: float) -> None:
    score = Score(
        components={"correct": value},
        spans=(SpanScore(0, 1, 2, "step", value),),
        info=FrozenMap({"why": (1, None)}),
        fault=Fault.POLICY,
    )
    group = Group(key="c", task=task(), draw=Draw("x", 1, propensity), rollouts=tuple(made), scores=tuple(score for _ in made))
    assert same(group_from_wire(travelled(group_to_wire(group))), group)


def test_every_field_of_a_call_and_every_bit_of_a_float() -> None:
    odd = np.array([-0.0, np.inf, -np.inf, 1e-45, np.float32(0.1)], np.float32)
    odd = np.append(odd, np.array([0x7FC00001], np.uint32).view(np.float32))  # a NaN with a payload
    base = completion([1, 2, 3, 4, 5, 6], [(7, 0, 2), (8, 2, 6)], routing=np.arange(24, dtype=np.int16).reshape(6, 2, 2))
    made = type(base)(
        ids=base.ids,
        logp_engine=odd,
        spans=base.spans,
        stop=Stop.PARTIAL,
        duration=0.1,
        sampling=Sampling(temperature=0.7, max_new_tokens=9, stop_ids=(4, 5), top_p=0.9, top_k=3, stop=("\n", "é"), min_p=0.05),
        columns={**base.columns, "values": TokenColumn("values", odd.astype(np.float64), "critic", 5)},
    )
    full = call(
        0,
        None,
        [9],
        [],
        text="ü\x00",
        role="planner",
        policy="helper",
        media=(SHOWN,),
        score_prefix=ids_of([3, 4]),
        privileged_prefix=ids_of([5]),
        results=(
            ToolResult(content="4", error="late", duration=0.25),
            ToolResult(content=""),
            ToolResult(content="c", cost=0.5, timed_out=True, cut=3),
        ),
        history="spliced",
        forced=1,
    )
    full = type(full)(**{f.name: getattr(full, f.name) for f in fields(full)} | {"completion": made})
    again = rollout_from_wire(travelled(rollout_to_wire(rollout(full)))).calls[0]
    assert same(again, full)
    assert again.completion.logp_engine.tobytes() == odd.tobytes()


def test_snapshots_keep_their_types() -> None:
    snapshot = {"seen": [1, (2.5, None)], "map": FrozenMap({"a": (1, FrozenMap({"b": True}))}), "grid": np.eye(2, dtype=np.int8)}
    posed = context(snapshot=snapshot, prefill=Prefill("x", 0.5), score_messages=(Message("user", "u"),))
    made = Rollout(id="r", context=posed, calls=(), stop=Stop.ERROR, seed=1, error="no world")
    assert same(rollout_from_wire(travelled(rollout_to_wire(made))), made)


def test_numbers_of_numpy_arrive_as_plain_ones() -> None:
    made = group(one_call(1), scores=[Score(components={"correct": np.float32(0.5)})])
    assert group_from_wire(travelled(group_to_wire(made))).scores[0].components == {"correct": 0.5}


@pytest.mark.parametrize("value", [{1}, np.zeros(1), b"x", 1j])
def test_values_that_cannot_travel_name_their_place(value: object) -> None:
    made = task("t", answer=(1, {"deep": value}))
    with pytest.raises(DataError, match=r"task 't': private.answer\[1\].deep: a \w+ cannot travel"):
        task_to_wire(made)


@pytest.mark.parametrize("value", [{1}, {2: 3}, np.array([object()]), object()])
def test_snapshots_that_cannot_travel(value: object) -> None:
    made = Rollout(id="r", context=context(snapshot=[{"a": (value,)}]), calls=(), stop=Stop.DONE, seed=1)
    with pytest.raises(DataError, match="cannot travel"):
        rollout_to_wire(made)


def test_what_is_not_ours_is_refused() -> None:
    good = travelled(rollout_to_wire(one_call(2)))
    with pytest.raises(DataError, match="not a task in wire format 2: its 'wire' is None"):
        task_from_wire({})
    with pytest.raises(DataError, match="not a rollout in wire format: it has no 'seed'"):
        rollout_from_wire({k: v for k, v in good.items() if k != "seed"})
    with pytest.raises(DataError, match="not a rollout in wire format: 'maybe' is not a valid Stop"):
        rollout_from_wire({**good, "stop": "maybe"})
    with pytest.raises(DataError, match="not a rollout in wire format: unknown mark 'set'"):
        rollout_from_wire({**good, "context": {**good["context"], "snapshot": {"set": []}}})
    with pytest.raises(DataError, match="not a group in wire format"):
        group_from_wire({**group_to_wire(group(one_call(1))), "draw": 3})
