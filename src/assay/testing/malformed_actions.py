"""Whether an environment answers actions that are almost those of its oracle."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from queue import Empty, Queue
from threading import Thread

from assay.core.protocols import Environment

__all__ = ["MUTATIONS", "why_unanswered"]

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


def _first_error(environment: Environment, actions: Sequence[str], deadline: float) -> Exception | None:
    """What a play raised; `TimeoutError` for a step that took too long. In a thread, since a step may never yield."""
    news: Queue[Exception | None] = Queue()

    async def play() -> None:
        await environment.start()
        news.put(None)
        for action in actions:
            done = (await environment.step(action)).done
            news.put(None)
            if done:
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
