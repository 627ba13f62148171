"""Contexts that begin in the middle of an episode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Snapshots, TaskSource
from assay.core.task import Context

__all__ = ["context_after"]


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
    >>> from assay_tasks import Heaps
    >>> world = Heaps().task("heaps", 2, "test", 0).public_view()
    >>> start = Context(key="c", group="c", task=world, messages=world.messages)
    >>> asyncio.run(context_after(Heaps(), start, [])).snapshot
    {'heaps': [3, 6], 'turn': 0}
    """
    environment = source.environment(context.task)
    if not isinstance(environment, Snapshots):
        what = "has none" if environment is None else f"{type(environment).__name__} writes no snapshots"
        raise ConfigError(
            f"context {context.key!r}: its environment {what}; give it `async snapshot()` and `async restore(snapshot)`, or "
            "begin at the start"
        )
    await (environment.start() if context.snapshot is None else environment.restore(context.snapshot))
    for turn, action in enumerate(actions, 1):
        if (await environment.step(action)).done:
            raise DataError(f"context {context.key!r}: the episode is over behind action {turn} of {len(actions)}, {action!r}")
    return replace(context, snapshot=await environment.snapshot())
