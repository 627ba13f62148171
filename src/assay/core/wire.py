"""Tasks, rollouts and groups as JSON types and back, exactly: for checkpoints, queues and processes.

Arrays travel as base64 of their bytes with dtype and shape, so float32 bits and columns of any shape survive. Everything else
is a JSON number, string, list or dict.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from assay.core.canon import FrozenMap
from assay.core.columns import Array, TokenColumn
from assay.core.errors import DataError, a_kind
from assay.core.group import Draw, Group
from assay.core.media import Media
from assay.core.ragged import flat_of, lists_of
from assay.core.rollout import Call, Completion, Rollout, Sampling, Span, Stop, ToolResult
from assay.core.score import Fault, Score, SpanScore
from assay.core.task import Context, Message, Prefill, Task, TaskView

__all__ = [
    "context_from_wire",
    "context_to_wire",
    "group_from_wire",
    "group_to_wire",
    "rollout_from_wire",
    "rollout_to_wire",
    "sampling_from_wire",
    "sampling_to_wire",
    "task_from_wire",
    "task_to_wire",
]

Wire = dict[str, Any]
T = TypeVar("T")
_VERSION = 2
_SCALARS = (bool, int, float, str)


def task_to_wire(task: Task) -> Wire:
    """A task, its private part included.

    Raises:
        DataError: a value that JSON cannot say; names where it stands.

    >>> t = Task(id="a", domain="d", arm="x", level=1, split="train", index=0, public=FrozenMap({"prompt": "1+1="}))
    >>> task_from_wire(task_to_wire(t)) == t
    True
    """
    return {"wire": _VERSION, **_task(task)}


def task_from_wire(data: Mapping[str, Any]) -> Task:
    """The task that `task_to_wire` wrote; raises DataError when ``data`` is something else."""
    return _checked("task", data, _read_task)


def context_to_wire(context: Context) -> Wire:
    """A context with its task; raises as `task_to_wire`."""
    return {"wire": _VERSION, **_context(context)}


def context_from_wire(data: Mapping[str, Any]) -> Context:
    """The context that `context_to_wire` wrote; raises DataError when ``data`` is something else."""
    return _checked("context", data, _read_context)


def rollout_to_wire(rollout: Rollout) -> Wire:
    """A rollout with all its calls and token columns; raises as `task_to_wire`."""
    return {"wire": _VERSION, **_rollout(rollout)}


def rollout_from_wire(data: Mapping[str, Any]) -> Rollout:
    """The rollout that `rollout_to_wire` wrote, bit for bit; raises DataError when ``data`` is something else."""
    return _checked("rollout", data, _read_rollout)


def group_to_wire(group: Group) -> Wire:
    """A graded group; raises as `task_to_wire`."""
    return {
        "wire": _VERSION,
        "key": group.key,
        "task": _task(group.task),
        "draw": _draw(group.draw),
        "rollouts": [_rollout(r) for r in group.rollouts],
        "scores": [_score(s) for s in group.scores],
    }


def _draw(draw: Draw) -> list[Any]:
    """Its fields; the index only where there is one."""
    return [draw.arm, draw.level, float(draw.propensity), *(() if draw.index is None else (draw.index,))]


def group_from_wire(data: Mapping[str, Any]) -> Group:
    """The group that `group_to_wire` wrote, bit for bit; raises DataError when ``data`` is something else."""
    return _checked("group", data, _read_group)


def _checked(what: str, data: Mapping[str, Any], read: Callable[[Mapping[str, Any]], T]) -> T:
    if data.get("wire") != _VERSION:
        raise DataError(f"not a {what} in wire format {_VERSION}: its 'wire' is {data.get('wire')!r}")
    try:
        return read(data)
    except KeyError as failure:
        raise DataError(f"not a {what} in wire format: it has no {failure}") from failure
    except (TypeError, ValueError, AttributeError) as failure:
        raise DataError(f"not a {what} in wire format: {failure}") from failure


# ---- values -----------------------------------------------------------------------------------------------------------


def _array(array: Array) -> Wire:
    data = np.ascontiguousarray(array)
    if data.dtype.hasobject:
        raise DataError(f"an array of Python objects cannot travel: {array!r}")
    return {"dtype": data.dtype.str, "shape": list(array.shape), "data": base64.b64encode(data.tobytes()).decode("ascii")}


def _read_array(data: Mapping[str, Any]) -> Array:
    """Read-only, on the decoded bytes."""
    return np.frombuffer(base64.b64decode(data["data"]), np.dtype(data["dtype"])).reshape(data["shape"])


def _frozen(value: Any, place: str) -> Any:
    """Contents of a `FrozenMap`: lists stand for tuples, dicts for maps."""
    if value is None or type(value) in _SCALARS:
        return value
    if isinstance(value, FrozenMap):
        return {k: _frozen(v, f"{place}.{k}") for k, v in value.items()}
    if isinstance(value, tuple):
        return [_frozen(v, f"{place}[{i}]") for i, v in enumerate(cast("tuple[Any, ...]", value))]
    raise DataError(f"{place}: {a_kind(value)} cannot travel: {value!r}; use numbers, strings, lists and dicts")


def _open(value: Any, place: str) -> Any:
    """Any plain value, with what JSON would confuse marked."""
    if value is None or type(value) in _SCALARS:
        return value
    if isinstance(value, FrozenMap):
        return {"map": _frozen(value, place)}
    if isinstance(value, np.ndarray):
        return {"array": _array(cast("Array", value))}
    if isinstance(value, tuple):
        return {"tuple": [_open(v, f"{place}[{i}]") for i, v in enumerate(cast("tuple[Any, ...]", value))]}
    if isinstance(value, list):
        return [_open(v, f"{place}[{i}]") for i, v in enumerate(cast("list[Any]", value))]
    if isinstance(value, dict):
        table = cast("dict[Any, Any]", value)
        for key in table:
            if not isinstance(key, str):
                raise DataError(f"{place}: key {key!r} cannot travel; use strings")
        return {"dict": {k: _open(v, f"{place}.{k}") for k, v in table.items()}}
    raise DataError(f"{place}: {a_kind(value)} cannot travel: {value!r}; use numbers, strings, lists, dicts and arrays")


def _read_open(data: Any) -> Any:
    if isinstance(data, list):
        return [_read_open(v) for v in cast("list[Any]", data)]
    if not isinstance(data, dict):
        return data
    ((mark, inner),) = cast("dict[str, Any]", data).items()
    match mark:
        case "map":
            return FrozenMap(inner)
        case "array":
            return _read_array(inner)
        case "tuple":
            return tuple(_read_open(v) for v in inner)
        case "dict":
            return {k: _read_open(v) for k, v in inner.items()}
        case _:
            raise DataError(f"unknown mark {mark!r}")


def _with(data: Mapping[str, Any], **changed: Any) -> Wire:
    return {**data, **changed}


# ---- tasks and contexts -----------------------------------------------------------------------------------------------


def _world(task: Task | TaskView) -> Wire:
    return {
        "id": task.id,
        "domain": task.domain,
        "arm": task.arm,
        "level": int(task.level),
        "split": task.split,
        "index": int(task.index),
        "public": _frozen(task.public, f"task {task.id!r}: public"),
        "world": _frozen(task.world, f"task {task.id!r}: world"),
    }


def _task(task: Task) -> Wire:
    return {**_world(task), "private": _frozen(task.private, f"task {task.id!r}: private")}


def _read_world(data: Mapping[str, Any]) -> TaskView:
    return TaskView(**_with(data, public=FrozenMap(data["public"]), world=FrozenMap(data["world"])))


def _read_task(data: Mapping[str, Any]) -> Task:
    maps = {name: FrozenMap(data[name]) for name in ("public", "world", "private")}
    return Task(**_with({k: v for k, v in data.items() if k != "wire"}, **maps))


def _messages(messages: Sequence[Message] | None) -> list[list[Any]] | None:
    if messages is None:
        return None
    return [[m.role, m.content, *([_media(m.media)] if m.media else [])] for m in messages]


def _read_messages(data: Sequence[Sequence[Any]]) -> tuple[Message, ...]:
    return tuple(Message(role, content, _read_media(rest[0]) if rest else ()) for role, content, *rest in data)


def _media(media: Sequence[Media]) -> list[list[Any]]:
    return [[m.kind, m.digest, list(m.size)] for m in media]


def _read_media(data: Sequence[Sequence[Any]]) -> tuple[Media, ...]:
    return tuple(Media(kind, digest, tuple(size)) for kind, digest, size in data)


def _context(context: Context) -> Wire:
    return {
        "key": context.key,
        "group": context.group,
        "task": _world(context.task),
        "messages": _messages(context.messages),
        "prefill": None if context.prefill is None else [context.prefill.text, float(context.prefill.share)],
        "snapshot": _open(context.snapshot, f"context {context.key!r}: snapshot"),
        "score_messages": _messages(context.score_messages),
        "privileged": _messages(context.privileged),
        "tag": context.tag,
    }


def _read_context(data: Mapping[str, Any]) -> Context:
    score, privileged = data["score_messages"], data["privileged"]
    return Context(
        key=data["key"],
        group=data["group"],
        task=_read_world(data["task"]),
        messages=_read_messages(data["messages"]),
        prefill=None if data["prefill"] is None else Prefill(*data["prefill"]),
        snapshot=_read_open(data["snapshot"]),
        score_messages=None if score is None else _read_messages(score),
        privileged=None if privileged is None else _read_messages(privileged),
        tag=data["tag"],
    )


# ---- rollouts ---------------------------------------------------------------------------------------------------------


def sampling_to_wire(sampling: Sampling) -> Wire:
    """How tokens are drawn.

    >>> sampling_from_wire(sampling_to_wire(Sampling(top_k=3, stop=("x",)))) == Sampling(top_k=3, stop=("x",))
    True
    """
    return {
        "temperature": float(sampling.temperature),
        "max_new_tokens": int(sampling.max_new_tokens),
        "stop_ids": [int(i) for i in sampling.stop_ids],
        "top_p": float(sampling.top_p),
        "top_k": int(sampling.top_k),
        "stop": list(sampling.stop),
        **({"min_p": float(sampling.min_p)} if sampling.min_p else {}),
        **({"keep_support": True} if sampling.keep_support else {}),
    }


def sampling_from_wire(data: Mapping[str, Any]) -> Sampling:
    """What `sampling_to_wire` wrote."""
    data = {"stop": (), **data}
    return Sampling(**_with(data, stop_ids=tuple(data["stop_ids"]), stop=tuple(data["stop"])))


def _completion(completion: Completion) -> Wire:
    return {
        "ids": _array(completion.ids),
        "logp_engine": _array(completion.logp_engine),
        "spans": [[int(p.version), int(p.start), int(p.end)] for p in completion.spans],
        "stop": completion.stop.value,
        "sampling": sampling_to_wire(completion.sampling),
        "duration": float(completion.duration),
        "columns": _columns(completion.columns),
        **({"prompt": _columns(completion.prompt)} if completion.prompt else {}),
    }


def _columns(columns: Mapping[str, TokenColumn]) -> Wire:
    return {
        key: {"name": c.name, "values": _values(c.values), "producer": c.producer, "version": int(c.version)}
        | ({"fill": int(c.fill)} if c.fill else {})
        for key, c in columns.items()
    }


def _read_columns(data: Mapping[str, Any]) -> dict[str, TokenColumn]:
    return {k: TokenColumn(**_with(c, values=_read_values(c["values"]))) for k, c in data.items()}


def _values(values: Array) -> Wire:
    """A column's values, lists of ids among them."""
    if values.dtype != np.object_:
        return _array(values)
    lengths, ids = flat_of(values)
    return {"lengths": _array(lengths), "ids": _array(ids)}


def _read_values(data: Mapping[str, Any]) -> Array:
    return lists_of(_read_array(data["lengths"]), _read_array(data["ids"])) if "lengths" in data else _read_array(data)


def _read_completion(data: Mapping[str, Any]) -> Completion:
    return Completion(
        ids=_read_array(data["ids"]),
        logp_engine=_read_array(data["logp_engine"]),
        spans=tuple(Span(*s) for s in data["spans"]),
        stop=Stop(data["stop"]),
        sampling=sampling_from_wire(data["sampling"]),
        duration=data["duration"],
        columns=_read_columns(data["columns"]),
        prompt=_read_columns(data.get("prompt", {})),
    )


def _call(call: Call) -> Wire:
    return {
        "id": call.id,
        "parent": call.parent,
        "prefix": _array(call.prefix),
        "completion": _completion(call.completion),
        "text": call.text,
        "role": call.role,
        "policy": call.policy,
        "thought": call.thought,
        "results": [[r.content, r.error, float(r.duration)] for r in call.results],
        "media": _media(call.media),
        "score_prefix": None if call.score_prefix is None else _array(call.score_prefix),
        "privileged_prefix": None if call.privileged_prefix is None else _array(call.privileged_prefix),
        **({"shared": True} if call.shared else {}),
    }


def _read_call(data: Mapping[str, Any]) -> Call:
    score, privileged = data["score_prefix"], data["privileged_prefix"]
    return Call(
        id=data["id"],
        parent=data["parent"],
        prefix=_read_array(data["prefix"]),
        completion=_read_completion(data["completion"]),
        text=data["text"],
        role=data["role"],
        policy=data["policy"],
        thought=data.get("thought"),
        results=tuple(ToolResult(content=c, error=e, duration=d) for c, e, d in data["results"]),
        media=_read_media(data["media"]),
        score_prefix=None if score is None else _read_array(score),
        privileged_prefix=None if privileged is None else _read_array(privileged),
        shared=data.get("shared", False),
    )


def _rollout(rollout: Rollout) -> Wire:
    return {
        "id": rollout.id,
        "context": _context(rollout.context),
        "calls": [_call(c) for c in rollout.calls],
        "stop": rollout.stop.value,
        "seed": int(rollout.seed),
        "error": rollout.error,
        "fault": rollout.fault.value,
        **({"role": rollout.role, "episode": rollout.episode} if rollout.role else {}),
    }


def _read_rollout(data: Mapping[str, Any]) -> Rollout:
    return Rollout(
        id=data["id"],
        context=_read_context(data["context"]),
        calls=tuple(_read_call(c) for c in data["calls"]),
        stop=Stop(data["stop"]),
        seed=data["seed"],
        error=data["error"],
        fault=Fault(data["fault"]),
        role=data.get("role", ""),
        episode=data.get("episode", ""),
    )


# ---- verdicts ---------------------------------------------------------------------------------------------------------


def _score(score: Score) -> Wire:
    return {
        "components": {k: float(v) for k, v in score.components.items()},
        "spans": [[s.call, s.start, s.end, s.name, float(s.value)] for s in score.spans],
        "columns": {k: float(v) for k, v in score.columns.items()},
        "info": _frozen(score.info, "score info"),
        "fault": score.fault.value,
    }


def _read_score(data: Mapping[str, Any]) -> Score:
    return Score(
        components=dict(data["components"]),
        spans=tuple(SpanScore(*s) for s in data["spans"]),
        columns=dict(data["columns"]),
        info=FrozenMap(data["info"]),
        fault=Fault(data["fault"]),
    )


def _read_group(data: Mapping[str, Any]) -> Group:
    return Group(
        key=data["key"],
        task=_read_task(data["task"]),
        draw=Draw(*data["draw"]),
        rollouts=tuple(_read_rollout(r) for r in data["rollouts"]),
        scores=tuple(_read_score(s) for s in data["scores"]),
    )
