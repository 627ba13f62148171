"""Works through one stage of a run: steps, evaluations, journal, checkpoints, gate."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from assay.core.errors import GateError, MismatchError
from assay.core.protocols import Tracker
from assay.core.rollout import Sampling
from assay.core.task import Task
from assay.core.util.profiler import Parts
from assay.runs import checkpoint
from assay.runs.journal import Journal
from assay.train.clock import Clock
from assay.train.data import data_digests
from assay.train.evaluate import by_arm, evaluate, greedy, held_out, items_of, summary
from assay.train.given import Given, given_step
from assay.train.grade import Attempts
from assay.train.imitate import Imitations
from assay.train.levels import Levels, arms_of
from assay.train.loop import publish
from assay.train.loop import step as rl_step
from assay.train.metrics import pool_metrics, rollout_records
from assay.train.mismatch import coarser
from assay.train.prefer import Preferences
from assay.train.record import run_id
from assay.train.reinforce import Reinforce
from assay.train.room import asking
from assay.train.run import Run, learner_of
from assay.train.session import Session, player_of
from assay.train.stages import Imitate, Prefer, WarmUp
from assay.train.warmup import Demonstrations

__all__ = ["Desk", "Progress", "check_gate"]


@dataclass(slots=True)
class Progress:
    """What a checkpoint remembers besides the session.

    Attributes:
        evaluated: global step of the newest full evaluation.
        cpu: CPU seconds spent in steps so far, evaluation excluded.
        ended: number of steps that the stage was to have when it ended, by steps or by metric; 0 while it goes on.
        gate: temperature-1 accuracy that the stage's gate found at its end, of the arm where it is lowest.
        apart: sampler and learner disagreed too much at the last step that compared them.
        untrained: the tensors without gradient that the journal has told of, in this stage.
    """

    evaluated: int = -1
    cpu: float = 0.0
    ended: int = 0
    gate: float | None = None
    apart: bool = False
    untrained: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class Desk:
    """What a run writes to while it works.

    Attributes:
        run, folder, journal, trackers: where results go.
        stop: set by the first Ctrl-C; the stage ends after its current step, with a checkpoint.
        step: global steps done, for messages.
        progress: what is saved beside the session.
        identity: of the run, in its checkpoints; derived from the run when empty.
        data: digests of the files that it learns from, in its checkpoints too; likewise.
        counted: what the scoring pool and the judges had counted at the last line.
        held: evaluation's tasks, by their number per level; drawn once.
        profile: whether each step tells where its time went.
    """

    run: Run
    folder: Path
    journal: Journal
    trackers: Sequence[Tracker] = field(default=())
    stop: bool = False
    step: int = 0
    progress: Progress = field(default_factory=Progress)
    identity: str = ""
    data: Mapping[str, str] = field(default_factory=dict[str, str])
    counted: Mapping[str, int] = field(default_factory=dict[str, int])
    held: dict[int, Sequence[Task]] = field(default_factory=dict[int, "Sequence[Task]"])
    profile: bool = False

    def __post_init__(self) -> None:
        self.identity = self.identity or run_id(self.run)
        self.data = self.data or data_digests(self.run)

    async def stage(self, index: int, s: Session) -> bool:
        """Runs stage ``index`` from where its session stands to its end (True), or to a stop (False).

        Raises:
            GateError: it ended below its gate.
            MismatchError: sampler and learner disagree by more than the run allows.
        """
        self.step, self.counted = s.step, s.counts()
        if s.proof:
            async with s.present():
                await s.proof.calibrate(s.published(), s.lagged.engine if s.lagged else s.engine, s.learner)
        given = given_rows(s)
        for what, line in s.notes():
            self.journal.event(s.step, what, line)
        if s.stage_step == 0:
            self.progress.ended, self.progress.gate, self.progress.untrained = 0, None, []
            if not isinstance(s.stage, WarmUp) and self.progress.evaluated != s.step:
                self._log(s, await self._evaluate(s, full=True))
            self._checkpoint(index, s)
        while not _ended(s, self.progress):
            if self.stop:
                return False
            await self._advance(index, s, given)
        if isinstance(s.stage, WarmUp):
            check_gate(s.stage, self.progress.gate)
        return True

    async def _advance(self, index: int, s: Session, given: Given | None) -> None:
        """One step, with the evaluation and the checkpoint that are due behind it."""
        metrics = await self._step(s, given)
        refused = self._look_apart(s, metrics)
        self._tell_untrained(s)
        last = s.stage_step >= s.stage.steps
        if last or _due(s.stage_step, self.run.evaluation.every):
            metrics |= await self._evaluate(s, full=last)
        if not last and _reached(s, metrics):
            metrics |= await self._evaluate(s, full=True)
            last = True
        if last:
            self.progress.ended = s.stage.steps
            if isinstance(s.stage, WarmUp) and s.stage.gate:
                self.progress.gate = await self._gate(s, s.stage)
        self._log(s, metrics)
        if last or self.stop or refused or _due(s.stage_step, self.run.checkpoint_every):
            self._checkpoint(index, s)
        if refused:
            raise refused

    def _look_apart(self, s: Session, metrics: Mapping[str, float]) -> MismatchError | None:
        """Says where sampler and learner begin to disagree too much; the error by which the run is to end, if it is to."""
        if "engine/alarm" in metrics:
            said = self.run.mismatch.alarmed(metrics, coarser(s))
            if said and not self.progress.apart:
                self.journal.event(s.step, "mismatch", said)
            self.progress.apart = bool(said)
        try:
            self.run.mismatch.check(metrics, s.step)
        except MismatchError as error:
            return error
        return None

    def _tell_untrained(self, s: Session) -> None:
        """Says which tensors have had no gradient although others learn."""
        new = [name for name in s.untrained if name not in self.progress.untrained]
        if new:
            shown = ", ".join(new[:4]) + (f" and {len(new) - 4} more" if len(new) > 4 else "")
            self.journal.event(
                s.step,
                "untrained",
                f"the gradient of {len(new)} trained tensor{'s' if len(new) > 1 else ''} has been exactly 0 at every step that "
                f"moved others: {shown}; nothing that the loss reads depends on them",
            )
            self.progress.untrained += new

    async def _step(self, s: Session, given: Given | None) -> dict[str, float]:
        begin = time.process_time()
        if given is not None:
            with self._counted(s):
                metrics = dict(given_step(s, given))
        else:
            with self._counted(s):
                result = await rl_step(s)
            metrics = {**result.metrics, **s.scorer.metrics()}
            if s.stage_step == 0 or _due(s.stage_step + 1, self.run.rollouts_every):
                for record in rollout_records(result.groups, s.tokenizer, result.found.scores):
                    self.journal.append("rollouts", {"step": s.step + 1, "stage": s.stage.name, **record})
        s.step, s.stage_step = s.step + 1, s.stage_step + 1
        self.step = s.step
        self.progress.cpu += time.process_time() - begin
        return metrics | {"time/cpu": self.progress.cpu}

    def _counted(self, s: Session) -> AbstractContextManager[None]:
        """Inside, parts of a step are counted, where that is wanted."""
        from assay.runtime.machine import wait_for

        return Parts(wait_for(s.learner.policy.device)).here() if self.profile else nullcontext()

    async def _evaluate(self, s: Session, full: bool) -> dict[str, float]:
        """Greedy and sampled attempts at held-out items: journals the items, returns the summary."""
        begin, plan = time.perf_counter(), self.run.evaluation
        if not isinstance(s.stage, Reinforce):
            await publish(s, Clock())
        per_level = plan.final_per_level if full else plan.per_level
        tasks = self.held.get(per_level) or self.held.setdefault(per_level, held_out(self.run.tasks, plan.levels, per_level))
        metrics: dict[str, float] = {}
        async with s.present():
            for mode in ("greedy", "sampled"):
                metrics |= await self._judge(s, tasks, mode, full)
        if full:
            self.progress.evaluated = s.step
        return metrics | {"time/evaluate": time.perf_counter() - begin}

    async def _judge(self, s: Session, tasks: Sequence[Task], mode: str, full: bool) -> dict[str, float]:
        """One mode of an evaluation: journals its items, returns its metrics."""
        plan = self.run.evaluation
        drawn, n = (greedy(self.run.sampling), 1) if mode == "greedy" else (self.run.sampling, plan.n)
        attempts = await self._attempts(s, tasks, drawn, n)
        items = items_of(attempts)
        self.journal.append(
            "evals", {"step": s.step, "stage": s.stage.name, "split": "test", "mode": mode, "full": full, "items": items}
        )
        found = summary(mode, items, plan.threshold)
        # The divergence is of the model's own distribution, so attempts drawn from another one cannot tell it.
        own = drawn.temperature == 1.0 and not drawn.truncated
        return found | ({"kl/base": kl_to_base(s, attempts)} if mode == "sampled" and plan.kl_to_base and own else {})

    async def _attempts(self, s: Session, tasks: Sequence[Task], sampling: Sampling, n: int) -> list[Attempts]:
        with asking("the sampler, in an evaluation,"):
            return await evaluate(player_of(s, sampling), s.pool, tasks, n)

    async def _gate(self, s: Session, stage: WarmUp) -> float:
        tasks = held_out(self.run.tasks, gated_levels(self.run, stage), self.run.evaluation.final_per_level)
        attempts = await self._attempts(s, tasks, replace(self.run.sampling.whole, temperature=1.0), 1)
        found = by_arm(items_of(attempts), self.run.evaluation.threshold)
        said = ", ".join(f"{arm} {value:.3f}" for arm, value in found.items())
        text = f"temperature-1 accuracy on the demonstrated levels: {said}; gate {stage.gate:.3f}"
        self.journal.event(s.step, "gate", text)
        return min(found.values())

    def _log(self, s: Session, metrics: Mapping[str, float]) -> None:
        counts = s.counts()
        metrics = {**metrics, **pool_metrics(counts, self.counted)}
        self.counted = counts
        for line in s.pool.news():
            self.journal.event(s.step, "reward", line)
        self.journal.append("metrics", {"step": s.step, "stage": s.stage.name, "metrics": metrics})
        for tracker in self.trackers:
            tracker.log(s.step, metrics)

    def _checkpoint(self, index: int, s: Session) -> None:
        self.journal.sync()
        state = {
            "run": self.identity,
            "data": self.data,
            "stage": index,
            "progress": asdict(self.progress),
            "session": s.state_dict(),
        }
        checkpoint.save(self.folder, s.step, state, s.save)


def given_rows(s: Session) -> Given | None:
    """The rows that a stage is given; None of one that samples its own.

    Raises:
        ConfigError, DataError: as `assay.train.prefer.preferences_of` and `assay.train.imitate.demonstrations_of`.
    """
    if isinstance(s.stage, WarmUp):
        return Demonstrations(s.run, s.stage, s.tokenizer)
    if isinstance(s.stage, Imitate):
        return Imitations(s.run, s.stage, s.tokenizer)
    return Preferences(s.run, s.stage, s.tokenizer) if isinstance(s.stage, Prefer) else None


def gated_levels(run: Run, stage: WarmUp) -> Levels:
    """The demonstrated levels of the arms that are evaluated: one that only helps others learn need not pass."""
    looked_at = arms_of(run.tasks, run.evaluation.levels)
    return {arm: levels for arm, levels in arms_of(run.tasks, stage.levels).items() if arm in looked_at} or stage.levels


def check_gate(stage: WarmUp, found: float | None) -> None:
    """Raises GateError when a warm-up ended below its gate."""
    if found is not None and found < stage.gate:
        raise GateError(
            f"the warm-up ended at temperature-1 accuracy {found:.3f} on the levels it demonstrated (of the arm where it is "
            f"lowest; events.jsonl has all), below its gate of {stage.gate:.3f}: RL from there would see almost no success; give "
            f"it more steps ('assay resume --steps', more than {stage.steps}), lower levels or less noise"
        )


def kl_to_base(s: Session, attempts: Sequence[Attempts]) -> float:
    """Mean over sampled tokens of log p(token) - log p_base(token), by the learner: k1 on held-out attempts, nats per token.

    The base is what the stage started from, whatever becomes of its reference.
    """
    start = next(a.name for a in learner_of(s.run, s.stage).anchors if a.is_start)
    calls = [c for a in attempts for r in a.rollouts for c in r.calls]
    rows, starts = [c.tokens for c in calls], [len(c.prefix) for c in calls]
    now, base = s.learner.score(rows), s.learner.score(rows, start)
    total = sum(float((x[k:] - y[k:]).sum()) for x, y, k in zip(now, base, starts, strict=True))
    return total / max(1, sum(len(x) - k for x, k in zip(now, starts, strict=True)))


def _ended(s: Session, progress: Progress) -> bool:
    return s.stage_step >= s.stage.steps or progress.ended == s.stage.steps


def _reached(s: Session, metrics: Mapping[str, float]) -> bool:
    until = s.stage.until if isinstance(s.stage, Reinforce) else None
    return until is not None and metrics.get(until.metric, float("-inf")) >= until.at_least


def _due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0
