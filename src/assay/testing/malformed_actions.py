"""Whether an environment answers actions that are almost those of its oracle, and calls of the tools that its tasks declare."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from queue import Empty, Queue
from threading import Thread
from typing import Any, cast

from assay.core.protocols import Environment

__all__ = ["MUTATIONS", "calls_to_try", "why_call_unanswered", "why_unanswered"]

MUTATIONS: dict[str, Callable[[str], str]] = {
    "cut short": lambda text: text[: len(text) // 2],
    "without its first character": lambda text: text[1:],
    "said twice": lambda text: f"{text}\n{text}",
    "without its numbers": lambda text: re.sub(r"\d+", "", text),
    "with very large numbers": lambda text: re.sub(r"\d+", "9" * 30, text),
    "with negative numbers": lambda text: re.sub(r"\d+", "-1", text),
    "with words for numbers": lambda text: re.sub(r"\d+", "many", text),
    "with other words": lambda text: re.sub(r"[A-Za-z]+", "zz", text),
    "without its brackets and quotes": lambda text: re.sub(r"[\[\](){}\"'<>]", "", text),
}
"""Ways to get an action a little wrong, as a policy does."""


def why_unanswered(fresh: Callable[[], Environment], said: Sequence[str], deadline: float) -> str:
    """Plays the oracle's actions up to a turn and then one that is a little wrong, each of `MUTATIONS` at another turn.

    Args:
        fresh: gives an environment of the same task.
        said: the oracle's actions.
        deadline: seconds for one step.

    Returns:
        Which step raised, or took longer than its deadline, and where; "" where all were answered.
    """
    for number, (name, mutate) in enumerate(MUTATIONS.items()):
        turn = number % len(said) if said else 0
        if not said or (action := mutate(said[turn])) == said[turn]:
            continue
        error = _first_error(fresh(), [*said[:turn], action], deadline)
        if isinstance(error, TimeoutError):
            return f"did not answer the action {action!r} within {deadline:g} s: it is {said[turn]!r} of the oracle, {name}"
        if error is not None:
            return (
                f"raised {type(error).__name__} on the action {action!r}: {error}; it is {said[turn]!r} of the oracle, {name}. A "
                "policy will say it: answer it, or end the task"
            )
    return ""


_FITTING: Mapping[str, tuple[Any, ...]] = {
    "string": ("x", ""),
    "integer": (1, 0, -1),
    "number": (1.5, 0, -1),
    "boolean": (True, False),
    "array": ([],),
    "object": ({},),
    "null": (None,),
}
"""Values of a type of JSON Schema."""

_WORDS = 8
"""Words of a question that are tried as texts: a tool may know one of them."""


def calls_to_try(schemas: Sequence[Mapping[str, Any]], prompt: str) -> Iterator[tuple[str, str]]:
    """A kind and an action for each call that tools are to answer: with fitting arguments, without arguments, and with others.

    Args:
        schemas: of the tools, as ``public["tools"]`` declares them.
        prompt: of the task; its words are tried where an argument is a text.

    >>> add = {"name": "add", "parameters": {"properties": {"a": {"type": "integer"}}, "required": ["a"]}}
    >>> next(calls_to_try([add], "1+1?"))
    ('add with fitting arguments', '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>')
    """
    words = tuple(dict.fromkeys(re.findall(r"[\w.]+", prompt)))[:_WORDS]
    for schema in schemas:
        name, parameters = str(schema["name"]), cast("Mapping[str, Any]", schema.get("parameters") or {})
        properties = cast("Mapping[str, Mapping[str, Any]]", parameters.get("properties") or {})
        values = {key: _values(told, words) for key, told in properties.items()}
        for i in range(max([1, *map(len, values.values())])):
            yield f"{name} with fitting arguments", _call(name, {key: some[i % len(some)] for key, some in values.items()})
        if values:
            yield f"{name} without arguments", _call(name, {})
            yield f"{name} with arguments of another type", _call(name, {key: [{"no": "such"}] for key in values})


def _values(told: Mapping[str, Any], words: tuple[str, ...]) -> tuple[Any, ...]:
    if told.get("enum"):
        return tuple(told["enum"])
    said: Any = told.get("type")
    kinds = [said] if isinstance(said, str) else cast("Sequence[str]", said or ())
    kind = next((kind for kind in kinds if kind in _FITTING), "string")
    return (*_FITTING["string"], *words) if kind == "string" else _FITTING[kind]


def _call(name: str, arguments: Mapping[str, Any]) -> str:
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments}, ensure_ascii=False)}</tool_call>"


def why_call_unanswered(
    fresh: Callable[[], Environment], schemas: Sequence[Mapping[str, Any]], prompt: str, deadline: float
) -> tuple[str, int]:
    """Calls each tool that a task declares, in an environment of its own each time, and twice.

    Returns:
        Which call raised, took longer than its deadline or was answered otherwise the second time, "" where none was; and how
        many calls were made.
    """
    made = 0
    for kind, action in calls_to_try(schemas, prompt):
        made += 1
        answers: list[list[str]] = [[], []]
        for shown in answers:
            error = _first_error(fresh(), [action], deadline, shown)
            if isinstance(error, TimeoutError):
                return f"did not answer {kind} within {deadline:g} s: {action}", made
            if error is not None:
                said = f"raised {type(error).__name__} on {kind}, {action}: {error}"
                return f"{said}. A policy will say it: let the tool answer with what is wrong", made
        if answers[0] != answers[1]:
            return f"answers {kind}, {action}, first with {answers[0]} and then with {answers[1]}", made
    return "", made


def _first_error(
    environment: Environment, actions: Sequence[str], deadline: float, shown: list[str] | None = None
) -> Exception | None:
    """What a play raised; `TimeoutError` for a step that took too long. In a thread, since a step may never yield.

    ``shown`` gets what the actions are answered with.
    """
    news: Queue[Exception | None] = Queue()

    async def play() -> None:
        await environment.start()
        news.put(None)
        for action in actions:
            step = await environment.step(action)
            if shown is not None:
                shown.extend([message.content for message in step.obs.messages])
            news.put(None)
            if step.done:
                break

    def run() -> None:
        try:
            asyncio.run(play())
            news.put(_Finished())
        except Exception as error:
            news.put(error)

    Thread(target=run, daemon=True).start()
    try:
        while (said := news.get(timeout=deadline)) is None:
            pass
    except Empty:
        return TimeoutError()
    return None if isinstance(said, _Finished) else said


class _Finished(Exception):
    pass
