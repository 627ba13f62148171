"""Tasks, rollouts and groups as JSON types and back, exactly: for checkpoints, queues and processes.

Arrays travel as base64 of their bytes with dtype and shape, so float32 bits and columns of any shape survive. Everything else
is a JSON number, string, list or dict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from assay.core.canon import FrozenMap
from assay.core.errors import DataError
from assay.core.group import Draw, Group
from assay.core.media import Media
from assay.core.rollout import Annealing, Call, Completion, Rollout, Sampling, Span, Stop, ToolResult
from assay.core.score import Fault, Score, SpanScore
from assay.core.task import Context, Message, Prefill, Task, TaskView
from assay.core.wire_values import (
    Wire,
    array_from_wire,
    array_to_wire,
    columns_from_wire,
    columns_to_wire,
    frozen_to_wire,
    value_from_wire,
    value_to_wire,
    with_changes,
)

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

T = TypeVar("T")
_VERSION = 2


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
    return _read_checked("task", data, _read_task)


def context_to_wire(context: Context) -> Wire:
    """A context with its task; raises as `task_to_wire`."""
    return {"wire": _VERSION, **_context(context)}


def context_from_wire(data: Mapping[str, Any]) -> Context:
    """The context that `context_to_wire` wrote; raises DataError when ``data`` is something else."""
    return _read_checked("context", data, _read_context)


def rollout_to_wire(rollout: Rollout) -> Wire:
    """A rollout with all its calls and token columns; raises as `task_to_wire`."""
    return {"wire": _VERSION, **_rollout(rollout)}


def rollout_from_wire(data: Mapping[str, Any]) -> Rollout:
    """The rollout that `rollout_to_wire` wrote, bit for bit; raises DataError when ``data`` is something else."""
    return _read_checked("rollout", data, _read_rollout)


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
    return _read_checked("group", data, _read_group)


def _read_checked(what: str, data: Mapping[str, Any], read: Callable[[Mapping[str, Any]], T]) -> T:
    if data.get("wire") != _VERSION:
        raise DataError(f"not a {what} in wire format {_VERSION}: its 'wire' is {data.get('wire')!r}")
    try:
        return read(data)
    except KeyError as failure:
        raise DataError(f"not a {what} in wire format: it has no {failure}") from failure
    except (TypeError, ValueError, AttributeError) as failure:
        raise DataError(f"not a {what} in wire format: {failure}") from failure


# ---- tasks and contexts -----------------------------------------------------------------------------------------------


def _world(task: Task | TaskView) -> Wire:
    return {
        "id": task.id,
        "domain": task.domain,
        "arm": task.arm,
        "level": int(task.level),
        "split": task.split,
        "index": int(task.index),
        "public": frozen_to_wire(task.public, f"task {task.id!r}: public"),
        "world": frozen_to_wire(task.world, f"task {task.id!r}: world"),
    }


def _task(task: Task) -> Wire:
    return {**_world(task), "private": frozen_to_wire(task.private, f"task {task.id!r}: private")}


def _read_world(data: Mapping[str, Any]) -> TaskView:
    return TaskView(**with_changes(data, public=FrozenMap(data["public"]), world=FrozenMap(data["world"])))


def _read_task(data: Mapping[str, Any]) -> Task:
    maps = {name: FrozenMap(data[name]) for name in ("public", "world", "private")}
    return Task(**with_changes({k: v for k, v in data.items() if k != "wire"}, **maps))


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
        "snapshot": value_to_wire(context.snapshot, f"context {context.key!r}: snapshot"),
        "score_messages": _messages(context.score_messages),
        "privileged": _messages(context.privileged),
        "tag": context.tag,
        **({} if context.max_turns is None else {"max_turns": context.max_turns}),
    }


def _read_context(data: Mapping[str, Any]) -> Context:
    score, privileged = data["score_messages"], data["privileged"]
    return Context(
        key=data["key"],
        group=data["group"],
        task=_read_world(data["task"]),
        messages=_read_messages(data["messages"]),
        prefill=None if data["prefill"] is None else Prefill(*data["prefill"]),
        snapshot=value_from_wire(data["snapshot"]),
        score_messages=None if score is None else _read_messages(score),
        privileged=None if privileged is None else _read_messages(privileged),
        tag=data["tag"],
        max_turns=data.get("max_turns"),
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
        **({"annealing": [float(a.peak), float(a.least), float(a.decay), int(a.start)]} if (a := sampling.annealing) else {}),
    }


def sampling_from_wire(data: Mapping[str, Any]) -> Sampling:
    """What `sampling_to_wire` wrote."""
    data = {"stop": (), **data}
    if given := data.get("annealing"):
        peak, least, decay, start = given
        data["annealing"] = Annealing(peak=peak, least=least, decay=decay, start=start)
    return Sampling(**with_changes(data, stop_ids=tuple(data["stop_ids"]), stop=tuple(data["stop"])))


def _completion(completion: Completion) -> Wire:
    return {
        "ids": array_to_wire(completion.ids),
        "logp_engine": array_to_wire(completion.logp_engine),
        "spans": [[int(p.version), int(p.start), int(p.end)] for p in completion.spans],
        "stop": completion.stop.value,
        "sampling": sampling_to_wire(completion.sampling),
        "duration": float(completion.duration),
        "columns": columns_to_wire(completion.columns),
        **({"prompt": columns_to_wire(completion.prompt)} if completion.prompt else {}),
    }


def _read_completion(data: Mapping[str, Any]) -> Completion:
    return Completion(
        ids=array_from_wire(data["ids"]),
        logp_engine=array_from_wire(data["logp_engine"]),
        spans=tuple(Span(*s) for s in data["spans"]),
        stop=Stop(data["stop"]),
        sampling=sampling_from_wire(data["sampling"]),
        duration=data["duration"],
        columns=columns_from_wire(data["columns"]),
        prompt=columns_from_wire(data.get("prompt", {})),
    )


def _call(call: Call) -> Wire:
    return {
        "id": call.id,
        "parent": call.parent,
        "prefix": array_to_wire(call.prefix),
        "completion": _completion(call.completion),
        "text": call.text,
        "role": call.role,
        "policy": call.policy,
        "thought": call.thought,
        "results": [_result(r) for r in call.results],
        "media": _media(call.media),
        "score_prefix": None if call.score_prefix is None else array_to_wire(call.score_prefix),
        "privileged_prefix": None if call.privileged_prefix is None else array_to_wire(call.privileged_prefix),
        **({"placeholders": True} if call.placeholders else {}),
        **({"shared": True} if call.shared else {}),
        **({"history": call.history} if call.history else {}),
        **({"forced": int(call.forced)} if call.forced else {}),
    }


def _result(result: ToolResult) -> list[Any]:
    """A list; what a call cost, and whether it was cut, stands in it only where there is something to say."""
    more = [float(result.cost), result.timed_out, result.cut]
    return [result.content, result.error, float(result.duration), *(more if any(more) else ())]


def _read_result(
    content: str, error: str | None, duration: float, cost: float = 0.0, timed_out: bool = False, cut: int = 0
) -> ToolResult:
    return ToolResult(content=content, error=error, duration=duration, cost=cost, timed_out=timed_out, cut=cut)


def _read_call(data: Mapping[str, Any]) -> Call:
    score, privileged = data["score_prefix"], data["privileged_prefix"]
    return Call(
        id=data["id"],
        parent=data["parent"],
        prefix=array_from_wire(data["prefix"]),
        completion=_read_completion(data["completion"]),
        text=data["text"],
        role=data["role"],
        policy=data["policy"],
        thought=data.get("thought"),
        results=tuple(_read_result(*r) for r in data["results"]),
        media=_read_media(data["media"]),
        placeholders=data.get("placeholders", False),
        score_prefix=None if score is None else array_from_wire(score),
        privileged_prefix=None if privileged is None else array_from_wire(privileged),
        shared=data.get("shared", False),
        history=data.get("history", ""),
        forced=int(data.get("forced", 0)),
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
        **({} if rollout.answer is None else {"answer": rollout.answer}),
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
        answer=data.get("answer"),
    )


# ---- verdicts ---------------------------------------------------------------------------------------------------------


def _score(score: Score) -> Wire:
    return {
        "components": {k: float(v) for k, v in score.components.items()},
        "spans": [[s.call, s.start, s.end, s.name, float(s.value)] for s in score.spans],
        "columns": {k: float(v) for k, v in score.columns.items()},
        "info": frozen_to_wire(score.info, "score info"),
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
