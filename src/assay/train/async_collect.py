"""The groups of a step where other processes sample them while the learner works."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Self

from assay.asynchronous import (
    AcceptedLog,
    AgePolicy,
    DeltaEncoder,
    Ledger,
    RolloutQueue,
    Samplers,
    SamplerSettings,
    spawner_of,
    wanted_samplers,
)
from assay.asynchronous.settings_pickle import WithoutEnvironments, sendable_tasks
from assay.core.errors import ConfigError, EngineError, RewardError
from assay.core.group import Group
from assay.core.manifest import Manifest
from assay.core.protocols import TaskSource
from assay.core.rollout import Rollout
from assay.core.timing import span
from assay.core.util.owned_folder import OwnedFolder
from assay.runtime.engine.settings import ModelEngineSpec, ServerEngineSpec
from assay.scorers import FromTasks
from assay.train.collect import MOST_ROUNDS, join_groups, moment_of, task_of
from assay.train.grade import groups_of
from assay.train.pending_group import PendingGroup
from assay.train.score_ahead import ScoreAhead
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


class AsyncCollector:
    """Keeps as many groups under way as the greatest age allows, and gives each step its own.

    Args:
        queue: of groups that others sample.
        folder: the model that samplers start from; removed at the end.
        tasks: as samplers were given them.
        ahead: has groups judged as they arrive; None where the reward asks for more than the tasks' verifier.
    """

    def __init__(
        self, queue: RolloutQueue, folder: OwnedFolder, tasks: TaskSource | None = None, ahead: ScoreAhead | None = None
    ) -> None:
        self._queue, self._folder, self._tasks, self._ahead = queue, folder, tasks, ahead
        self._pending: dict[str, PendingGroup] = {}
        self._step, self._posed = -1, 0
        self._ages, self._dropped = list[int](), 0
        self._groups = self._judged = 0
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
                pictures=run.pictures,
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
                wanted=partial(wanted_samplers, place, settings.samplers),
            )
            ahead = ScoreAhead(parts.pool) if isinstance(stage.reward, FromTasks) else None
            made = cls(RolloutQueue(ledger, log, samplers, lambda key, found: made.accept(key, found)), folder, tasks, ahead)
            made._score = partial(parts.learner.score, sampler.probes) if sampler.probes else None
        parts.subscribers.append(made)
        return made

    async def groups(self, s: ReinforceRunner, number: int) -> tuple[list[Group], set[str]]:
        """The next ``number`` groups of a step, graded, and those that the guidance poses of their tasks then, which samplers
        begin before all others; as `assay.train.collect.pose_and_grade`.

        Raises:
            RewardError: a user's reward failed; the groups wait for the next call.
            ConfigError: a task is still posed after `MOST_ROUNDS` rounds.
        """
        with span("wait"):
            keys = await self._take(s, number)
        first = {key: self._pending.pop(key) for key in keys}
        taken: list[dict[str, tuple[Rollout, ...]]] = [self._collect(keys)]
        done: list[dict[str, Group]] = [{} for _ in keys]
        replaced, live = set[str](), list(enumerate(first.values()))
        try:
            for turn in count():
                for (i, p), groups in zip(live, await self._grade(s, [p for _, p in live], taken[-1]), strict=True):
                    for group in groups:
                        done[i][group.key] = join_groups(done[i].get(group.key), group)
                    replaced.update(p.replaces)
                live = [(i, q) for i, p in enumerate(first.values()) for q in self._follow(s, p, list(done[i].values()), turn)]
                if not live:
                    return [group for groups in done for group in groups.values()], replaced
                if turn == MOST_ROUNDS:
                    raise ConfigError(
                        f"{type(s.guidance).__name__} still poses task {live[0][1].task.id!r} after {turn} rounds of a step; "
                        "return () when the task is done"
                    )
                taken.append(await self._sample_now([q for _, q in live]))
        except RewardError:
            for later in reversed(taken[1:]):
                self._queue.withdraw(list(later))
            self._queue.put_back(taken[0])
            self._pending = {**first, **self._pending}
            raise
        raise AssertionError("unreachable")

    def _collect(self, keys: Sequence[str]) -> dict[str, tuple[Rollout, ...]]:
        """Rollouts of groups that were taken."""
        found = {key: self._queue.rollouts(key) for key in keys}
        self._ages += [self._queue.age(rollouts) for rollouts in found.values()]
        return found

    def _follow(self, s: ReinforceRunner, p: PendingGroup, groups: list[Group], turn: int) -> list[PendingGroup]:
        """What the guidance poses of a task after its groups so far: behind the first, those that it posed beside it."""
        posed = p.more if p.more and not turn else s.guidance.next(p.task, groups, p.moment)
        return [replace(p, context=q.context, n=q.n or s.group_size, replaces=q.replaces, more=()) for q in posed]

    async def _sample_now(self, wanted: Sequence[PendingGroup]) -> dict[str, tuple[Rollout, ...]]:
        """Has groups sampled for the present step."""
        named = {p.context.key: p for p in wanted}
        self._pending |= named
        self._queue.admit([p.request for p in wanted], urgent=True)
        with span("wait"):
            await self._queue.take_these(list(named))
        for key in named:
            del self._pending[key]
        return self._collect(list(named))

    async def _take(self, s: ReinforceRunner, number: int) -> tuple[str, ...]:
        """Admits what is missing, and waits."""
        missing = self._queue.missing(s.stage.groups)
        left = (s.stage.steps - s.parts.stage_step) * s.stage.groups - len(self._pending)
        self._admit(s, max(number - len(self._pending), min(missing, left)))
        dropped, most = 0, _DROPS * (len(self._pending) + number)
        while not (taken := await self._queue.take(number)).keys:
            for key in taken.dropped:
                del self._pending[key]
            if self._ahead:
                self._ahead.forget(taken.dropped)
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

    async def _grade(
        self, s: ReinforceRunner, found: Sequence[PendingGroup], rollouts: Mapping[str, tuple[Rollout, ...]]
    ) -> list[list[Group]]:
        """The groups of each."""
        with span("score"):
            s.parts.judged = self._ahead.take([p.context.key for p in found]) if self._ahead else {}
            self._groups, self._judged = self._groups + 1, self._judged + bool(s.parts.judged)
            everything = [r for p in found for r in rollouts[p.context.key]]
            graded = await grade_rollouts(s, [(p.task, p.context) for p in found], everything)
            s.parts.judged = {}
        return [groups_of(scored, p.draw) for scored, p in zip(graded, found, strict=True)]

    def _admit(self, s: ReinforceRunner, number: int) -> None:
        if self._step != s.parts.step:
            self._step, self._posed = s.parts.step, 0
        made: list[PendingGroup] = []
        for draw in s.curriculum.draw(number) if number > 0 else ():
            task = task_of(s, draw)
            moment = moment_of(s, self._posed)
            self._posed += 1
            posed = s.guidance.next(task, [], moment)
            if not posed:
                raise ConfigError(
                    f"{type(s.guidance).__name__} posed task {task.id!r} in no context, and a stage that samples asynchronously "
                    "needs one of each: use another guidance, or leave Reinforce.asynchronous out"
                )
            if isinstance(self._tasks, WithoutEnvironments) and s.parts.run.tasks.environment(task.public_view()) is not None:
                raise ConfigError(
                    f"task {task.id!r} is played in an environment, and the first tasks of all levels are not, so sampler "
                    "processes were sent none: make it so for a whole level, or leave Reinforce.asynchronous out"
                )
            made.append(
                PendingGroup(
                    task=task,
                    context=posed[0].context,
                    draw=draw,
                    moment=moment,
                    n=posed[0].n or s.group_size,
                    sampling=s.sampling,
                    max_turns=s.max_turns,
                    replaces=posed[0].replaces,
                    more=tuple(posed[1:]),
                )
            )
        self._pending |= {p.context.key: p for p in made}
        self._queue.admit([p.request for p in made])

    def accept(self, key: str, rollouts: tuple[Rollout, ...]) -> None:
        """A group arrived; it is judged while others are sampled."""
        if self._ahead and (pending := self._pending.get(key)):
            self._ahead.add(key, [(pending.task, rollout) for rollout in rollouts])

    def metrics(self) -> dict[str, float]:
        """Since the last call: greatest and mean age of a group's oldest token when it was taken, in publications of weights;
        groups that were thrown away because they were older than allowed; of samplers' answers to new weights the share that
        proves them; bytes that a sampler reads of the newest; and the share of batches that were judged before a step took them.
        """
        ages, dropped, judged = self._ages or [0], self._dropped, self._judged / max(1, self._groups)
        self._ages, self._dropped, self._groups, self._judged = [], 0, 0, 0
        return {
            "async/age_max": float(max(ages)),
            "async/age_mean": sum(ages) / len(ages),
            "async/dropped": float(dropped),
            "async/scored_ahead": judged,
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
        if self._ahead:
            self._ahead.close()
        self._folder.close()


def _engine_of(run: Run, folder: OwnedFolder) -> ModelEngineSpec:
    """What samples; files for a server go where they end with the run, however its sampler ends."""
    assert isinstance(run.engine, ModelEngineSpec)
    return run.engine.in_folder(str(folder.path)) if isinstance(run.engine, ServerEngineSpec) else run.engine


def _tell(parts: Parts, line: str) -> None:
    """Says what became of a sampler at once, and in the journal with the next step."""
    print(line, file=sys.stderr, flush=True)
    parts.news.append(("sampler", line))
