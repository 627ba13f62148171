"""Contexts that begin in the middle of an episode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Environment, Snapshots, TaskSource
from assay.core.task import Context

__all__ = ["context_after", "states_between"]


async def context_after(source: TaskSource, context: Context, actions: Sequence[str]) -> Context:
    """The context behind some actions: its environment is begun at the snapshot that it wrote there.

    Args:
        source: gives the environment.
        context: where the actions begin.
        actions: what was said turn by turn, by a rollout (`Rollout.text` of its calls) or an oracle.

    Raises:
        ConfigError: the environment writes no snapshots.
        DataError: the episode is over before the actions are.

    >>> import asyncio
    >>> from assay.core import Context
    >>> from assay_tasks import Heaps
    >>> world = Heaps().task("heaps", 2, "test", 0).public_view()
    >>> start = Context(key="c", group="c", task=world, messages=world.messages)
    >>> asyncio.run(context_after(Heaps(), start, [])).snapshot
    {'heaps': [3, 6], 'turn': 0}
    """
    environment = _with_snapshots(source.environment(context.task), context)
    await (environment.start() if context.snapshot is None else environment.restore(context.snapshot))
    for turn, action in enumerate(actions, 1):
        if (await environment.step(action)).done:
            raise DataError(f"context {context.key!r}: the episode is over behind action {turn} of {len(actions)}, {action!r}")
    return replace(context, snapshot=await environment.snapshot())


async def states_between(source: TaskSource, context: Context, actions: Sequence[str]) -> list[Any]:
    """The states between the actions of an episode, in their order: where `assay.guide.StartStates` lets others begin.

    Args:
        source, context: as of `context_after`.
        actions: what was said turn by turn, by all its roles. What stands behind an episode's end is left out.

    Raises:
        ConfigError: the environment writes no snapshots.

    >>> import asyncio
    >>> from assay.core import Context
    >>> from assay_tasks import Heaps
    >>> world = Heaps().task("heaps", 2, "train", 0).public_view()
    >>> start = Context(key="c", group="c", task=world, messages=world.messages)
    >>> asyncio.run(states_between(Heaps(), start, ["a1", "a1"]))[0]["turn"]
    1
    """
    environment = _with_snapshots(source.environment(context.task), context)
    await (environment.start() if context.snapshot is None else environment.restore(context.snapshot))
    states: list[Any] = []
    for action in actions:
        if (await environment.step(action)).done:
            break
        states.append(await environment.snapshot())
    return states


def _with_snapshots(environment: Environment | None, context: Context) -> Snapshots:
    if not isinstance(environment, Snapshots):
        what = "has none" if environment is None else f"{type(environment).__name__} writes no snapshots"
        raise ConfigError(
            f"context {context.key!r}: its environment {what}; give it `async snapshot()` and `async restore(snapshot)`, or "
            "begin at the start"
        )
    return environment
