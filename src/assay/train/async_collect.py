"""The groups of a step where other processes sample them while the learner works."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from assay.asynchronous import (
    AcceptedLog,
    AgePolicy,
    DeltaEncoder,
    GroupRequest,
    Ledger,
    RolloutQueue,
    Samplers,
    SamplerSettings,
    spawner_of,
)
from assay.asynchronous.settings_pickle import WithoutEnvironments, sendable_tasks
from assay.core.errors import ConfigError, EngineError, RewardError
from assay.core.group import Draw, Group
from assay.core.manifest import Manifest
from assay.core.protocols import Moment, TaskSource
from assay.core.rollout import Rollout, Sampling
from assay.core.task import Context, Task
from assay.core.timing import span
from assay.core.util.owned_folder import OwnedFolder
from assay.core.wire import (
    context_from_wire,
    context_to_wire,
    sampling_from_wire,
    sampling_to_wire,
    task_from_wire,
    task_to_wire,
)
from assay.runtime.engine.settings import ModelEngineSpec, ServerEngineSpec
from assay.runtime.vllm.settings import VllmSettings
from assay.train.collect import moment_of, task_of
from assay.train.grade import groups_of
from assay.train.scoring import grade_rollouts

if TYPE_CHECKING:
    from assay.asynchronous.weight_check import Scores
    from assay.train.reinforce import Reinforce
    from assay.train.reinforce_runner import ReinforceRunner
    from assay.train.run import Run
    from assay.train.session import Parts

__all__ = ["AsyncCollector"]


_DROPS = 3
"""Groups that a step may drop, for each that is under way: those of before the newest weights, and those that had begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingGroup:
    """A group that was drawn and has not been learned from.

    Attributes:
        task, context, draw: what is practised, and how it was chosen.
        moment: when the guidance posed it.
        n: rollouts of it.
        sampling, max_turns: how they are sampled, by the settings of the step that drew it.
    """

    task: Task
    context: Context
    draw: Draw
    moment: Moment
    n: int
    sampling: Sampling
    max_turns: int

    @property
    def request(self) -> GroupRequest:
        """What samplers need of it."""
        return GroupRequest(context=self.context, n=self.n, sampling=self.sampling, max_turns=self.max_turns)

    def to_wire(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "task": task_to_wire(self.task),
            "context": context_to_wire(self.context),
            "draw": asdict(self.draw),
            "moment": asdict(self.moment),
            "n": self.n,
            "sampling": sampling_to_wire(self.sampling),
            "max_turns": self.max_turns,
        }

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Self:
        """What `to_wire` wrote."""
        return cls(
            task=task_from_wire(wire["task"]),
            context=context_from_wire(wire["context"]),
            draw=Draw(**wire["draw"]),
            moment=Moment(**wire["moment"]),
            n=int(wire["n"]),
            sampling=sampling_from_wire(wire["sampling"]),
            max_turns=int(wire["max_turns"]),
        )


class AsyncCollector:
    """Keeps as many groups under way as the greatest age allows, and gives each step its own.

    Args:
        queue: of groups that others sample.
        folder: the model that samplers start from; removed at the end.
        tasks: as samplers were given them.
    """

    def __init__(self, queue: RolloutQueue, folder: OwnedFolder, tasks: TaskSource | None = None) -> None:
        self._queue, self._folder, self._tasks = queue, folder, tasks
        self._pending: dict[str, PendingGroup] = {}
        self._step, self._posed = -1, 0
        self._ages, self._dropped = list[int](), 0
        self._score: Callable[[], Scores] | None = None

    @classmethod
    def of(cls, stage: Reinforce, parts: Parts) -> Self:
        """As the stage says; samplers start when weights are published."""
        settings, run = stage.asynchronous, parts.run
        assert settings is not None and isinstance(run.engine, ModelEngineSpec)  # as `check_asynchronous` says
        ledger = Ledger(settings.eta, AgePolicy(settings.policy))
        folder = OwnedFolder("assay-sampler-")
        place = (parts.folder or folder.path) / "samplers"
        log = AcceptedLog(place / "accepted", keep=settings.keep_log)
        if parts.replays:
            log.read(parts.step)
            made = cls(RolloutQueue(ledger, log), folder)
        else:
            from assay.runtime.models.hf import save_model

            tasks = sendable_tasks(run.tasks)
            save_model(parts.learner.model(), folder.path / "model")
            sampler = SamplerSettings(
                model=folder.path / "model",
                engine=_engine_of(run, folder),
                sampler=stage.sampler,
                tasks=tasks,
                seed=run.seed,
                deadline=run.environment_deadline,
                device=stage.learner.device,
                threads=settings.threads,
                log=place / "log",
                deltas=settings.updates == "delta",
                probes=tuple(parts.proof.rows) if parts.proof and isinstance(run.engine, ServerEngineSpec) else (),
                servers=settings.servers,
            )
            share = settings.batch or -(-stage.groups // settings.samplers)
            samplers = Samplers(
                sampler,
                spawner_of(settings.runtime),
                settings.samplers,
                share,
                partial(_tell, parts),
                deltas=DeltaEncoder(settings.full_every) if sampler.deltas else None,
            )
            made = cls(RolloutQueue(ledger, log, samplers), folder, tasks)
            made._score = partial(parts.learner.score, sampler.probes) if sampler.probes else None
        parts.subscribers.append(made)
        return made

    async def groups(self, s: ReinforceRunner, number: int) -> tuple[list[Group], set[str]]:
        """The next ``number`` groups of a step, graded; as `assay.train.collect.pose_and_grade`.

        Raises:
            RewardError: a user's reward failed; the groups wait for the next call.
        """
        with span("wait"):
            keys = await self._take(s, number)
        found = {key: self._pending.pop(key) for key in keys}
        rollouts = {key: self._queue.rollouts(key) for key in keys}
        self._ages += [self._queue.age(found) for found in rollouts.values()]
        try:
            graded = await self._grade(s, list(found.values()), [r for key in keys for r in rollouts[key]])
        except RewardError:
            self._queue.put_back(rollouts)
            self._pending = {**found, **self._pending}
            raise
        return graded, set()

    async def _take(self, s: ReinforceRunner, number: int) -> tuple[str, ...]:
        """Admits what is missing, and waits."""
        missing = self._queue.missing(s.stage.groups)
        left = (s.stage.steps - s.parts.stage_step) * s.stage.groups - len(self._pending)
        self._admit(s, max(number - len(self._pending), min(missing, left)))
        dropped, most = 0, _DROPS * (len(self._pending) + number)
        while not (taken := await self._queue.take(number)).keys:
            for key in taken.dropped:
                del self._pending[key]
            dropped += len(taken.dropped)
            if dropped > most:
                raise EngineError(
                    f"{dropped} groups in a row were sampled by weights that were too old for step {s.parts.step + 1}, although "
                    "no newer ones were published meanwhile: the samplers do not serve what they were sent. Resume the run; "
                    "their logs are in the run folder, samplers/"
                )
            self._admit(s, len(taken.dropped))
        self._dropped += dropped
        return taken.keys

    async def _grade(self, s: ReinforceRunner, found: Sequence[PendingGroup], rollouts: Sequence[Rollout]) -> list[Group]:
        with span("score"):
            graded = await grade_rollouts(s, [(p.task, p.context) for p in found], rollouts)
        made: list[Group] = []
        for scored, p in zip(graded, found, strict=True):
            groups = groups_of(scored, p.draw)
            if s.guidance.next(p.task, groups, p.moment):
                self._refuse(s, p.task, "again after it was answered")
            made += groups
        return made

    def _admit(self, s: ReinforceRunner, number: int) -> None:
        if self._step != s.parts.step:
            self._step, self._posed = s.parts.step, 0
        orders: list[GroupRequest] = []
        for draw in s.curriculum.draw(number) if number > 0 else ():
            task = task_of(s, draw)
            moment = moment_of(s, self._posed)
            self._posed += 1
            posed = s.guidance.next(task, [], moment)
            if len(posed) != 1:
                self._refuse(s, task, f"in {len(posed)} contexts")
            if isinstance(self._tasks, WithoutEnvironments) and s.parts.run.tasks.environment(task.exposed()) is not None:
                raise ConfigError(
                    f"task {task.id!r} is played in an environment, and the first tasks of all levels are not, so sampler "
                    "processes were sent none: make it so for a whole level, or leave Reinforce.asynchronous out"
                )
            made = PendingGroup(
                task=task,
                context=posed[0].context,
                draw=draw,
                moment=moment,
                n=posed[0].n or s.group_size,
                sampling=s.sampling,
                max_turns=s.max_turns,
            )
            self._pending[made.context.key] = made
            orders.append(made.request)
        self._queue.admit(orders)

    def _refuse(self, s: ReinforceRunner, task: Task, how: str) -> None:
        raise ConfigError(
            f"{type(s.guidance).__name__} posed task {task.id!r} {how}; a stage that samples asynchronously poses each task in "
            "one context, once: use another guidance, or leave Reinforce.asynchronous out"
        )

    def metrics(self) -> dict[str, float]:
        """Since the last call: greatest and mean age of a group's oldest token when it was taken, in publications of weights;
        groups that were thrown away because they were older than allowed; of samplers' answers to new weights the share that
        proves them; and bytes that a sampler reads of the newest.
        """
        ages, dropped = self._ages or [0], self._dropped
        self._ages, self._dropped = [], 0
        return {
            "async/age_max": float(max(ages)),
            "async/age_mean": sum(ages) / len(ages),
            "async/dropped": float(dropped),
            "async/proved": self._queue.take_proved(),
            "async/weight_bytes": float(self._queue.weight_bytes),
        }

    def publish(self, manifest: Manifest) -> None:
        """New weights for the samplers."""
        self._queue.publish(manifest, self._score() if self._score else ())

    def state_dict(self, step: int) -> dict[str, Any]:
        """JSON-able."""
        return {"pending": [p.to_wire() for p in self._pending.values()], **self._queue.state_dict(step)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict`."""
        found = [PendingGroup.from_wire(wire) for wire in state["pending"]]
        self._pending = {p.context.key: p for p in found}
        self._queue.load_state_dict(state, [p.request for p in found])

    def commit(self, step: int) -> None:
        """A checkpoint is whole."""
        self._queue.commit(step)

    def close(self) -> None:
        """Ends the samplers."""
        self._queue.close()
        self._folder.close()


def _engine_of(run: Run, folder: OwnedFolder) -> ModelEngineSpec:
    """What samples; files for a server go where they end with the run, however its sampler ends."""
    assert isinstance(run.engine, ModelEngineSpec)
    if isinstance(run.engine, VllmSettings) and not run.engine.folder:
        return replace(run.engine, folder=str(folder.path))
    return run.engine


def _tell(parts: Parts, line: str) -> None:
    """Says what became of a sampler at once, and in the journal with the next step."""
    print(line, file=sys.stderr, flush=True)
    parts.news.append(("sampler", line))
