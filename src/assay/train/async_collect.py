"""The groups of a step where other processes sample them while the learner works."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from assay.asynchronous.accepted_log import AcceptedLog
from assay.asynchronous.ledger import AgePolicy, Ledger
from assay.asynchronous.messages import SamplerSettings
from assay.asynchronous.processes import Process
from assay.asynchronous.queue import Order, RolloutQueue
from assay.core.errors import ConfigError
from assay.core.group import Draw
from assay.core.manifest import Manifest
from assay.core.task import Context, Task
from assay.core.timing import span
from assay.core.wire import context_from_wire, context_to_wire, task_from_wire, task_to_wire
from assay.train.collect import Collected, moment_of, task_of
from assay.train.grade import groups_of
from assay.train.scoring import grade_rollouts
from assay.train.support import sampling_of

if TYPE_CHECKING:
    from assay.train.reinforce import Reinforce
    from assay.train.reinforce_runner import ReinforceRunner
    from assay.train.session import Parts

__all__ = ["AsyncCollector"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A group that was drawn and has not been learned from."""

    task: Task
    context: Context
    n: int
    draw: Draw

    def to_wire(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "task": task_to_wire(self.task),
            "context": context_to_wire(self.context),
            "n": self.n,
            "draw": asdict(self.draw),
        }

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Self:
        """What `to_wire` wrote."""
        task, context = task_from_wire(wire["task"]), context_from_wire(wire["context"])
        return cls(task=task, context=context, n=int(wire["n"]), draw=Draw(**wire["draw"]))


class AsyncCollector:
    """Keeps as many groups under way as the greatest age allows, and gives each step its own.

    Args:
        queue: of groups that others sample.
        eta: greatest age, in steps.
        folder: the model that samplers start from; removed at the end.
    """

    def __init__(self, queue: RolloutQueue, eta: int, folder: tempfile.TemporaryDirectory[str]) -> None:
        self._queue, self._eta, self._folder = queue, eta, folder
        self._pending: dict[str, Pending] = {}
        self._step, self._posed = -1, 0

    @classmethod
    def of(cls, stage: Reinforce, parts: Parts) -> Self:
        """As the stage says; samplers start when weights are published."""
        from assay.runtime.models.hf import save_model

        settings, run = stage.asynchronous, parts.run
        assert settings is not None
        folder = tempfile.TemporaryDirectory(prefix="assay-sampler-")
        save_model(parts.learner.model(), Path(folder.name))
        place = (parts.folder or Path(folder.name)) / "samplers"
        sampler = SamplerSettings(
            model=Path(folder.name),
            engine=run.engine,
            sampler=stage.sampler,
            tasks=run.tasks,
            sampling=sampling_of(run, stage),
            seed=run.seed,
            max_turns=run.max_turns,
            deadline=run.environment_deadline,
            threads=settings.threads,
            log=place / "log",
        )
        queue = RolloutQueue(
            sampler,
            Process(),
            settings.samplers,
            Ledger(settings.eta, AgePolicy(settings.policy)),
            AcceptedLog(place / "accepted", parts.step),
            share=settings.batch or -(-stage.groups // settings.samplers),
            tell=lambda line: print(line, file=sys.stderr, flush=True),
        )
        made = cls(queue, settings.eta, folder)
        parts.subscribers.append(made)
        return made

    async def collect(self, s: ReinforceRunner) -> Collected:
        """Admits what is missing, waits for the step's groups, and grades them."""
        groups = s.stage.groups
        self._admit(s, min(self._queue.missing(groups), self._left(s)))
        with span("generate"):
            taken = await self._queue.take(groups)
            while not taken.keys:
                for key in taken.dropped:
                    del self._pending[key]
                self._admit(s, len(taken.dropped))
                taken = await self._queue.take(groups)
        found = [self._pending.pop(key) for key in taken.keys]
        rollouts = [r for key in taken.keys for r in self._queue.rollouts(key)]
        with span("score"):
            graded = await grade_rollouts(s, [(p.task, p.context) for p in found], rollouts)
        made = [group for scored, p in zip(graded, found, strict=True) for group in groups_of(scored, p.draw)]
        kept = [g for group in made if (g := s.stage.filter.select(group) if s.stage.filter else group) is not None]
        return Collected(graded=made, kept=kept, rounds=1, metrics={})

    def _left(self, s: ReinforceRunner) -> int:
        """Groups that the steps to come take, less those that wait."""
        return (s.stage.steps - s.parts.stage_step) * s.stage.groups - len(self._pending)

    def _admit(self, s: ReinforceRunner, number: int) -> None:
        if self._step != s.parts.step:
            self._step, self._posed = s.parts.step, 0
        orders: list[Order] = []
        for draw in s.curriculum.draw(number) if number > 0 else ():
            task = task_of(s, draw)
            posed = s.guidance.next(task, [], moment_of(s, self._posed))
            self._posed += 1
            if len(posed) != 1:
                raise ConfigError(
                    f"{type(s.guidance).__name__} posed task {task.id!r} in {len(posed)} contexts; a stage that samples "
                    "asynchronously poses each task in one: use another guidance, or leave Reinforce.asynchronous out"
                )
            made = Pending(task=task, context=posed[0].context, n=posed[0].n or s.group_size, draw=draw)
            self._pending[made.context.key] = made
            orders.append(Order(made.context, made.n))
        self._queue.admit(orders)

    def publish(self, manifest: Manifest) -> None:
        """New weights for the samplers."""
        self._queue.publish(manifest)

    def state_dict(self, step: int) -> dict[str, Any]:
        """JSON-able."""
        return {"pending": [p.to_wire() for p in self._pending.values()], **self._queue.state_dict(step)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict`."""
        found = [Pending.from_wire(wire) for wire in state["pending"]]
        self._pending = {p.context.key: p for p in found}
        self._queue.load_state_dict(state, [Order(p.context, p.n) for p in found])

    def commit(self, step: int) -> None:
        """A checkpoint is whole."""
        self._queue.commit(step)

    def close(self) -> None:
        """Ends the samplers."""
        self._queue.close()
        self._folder.cleanup()
