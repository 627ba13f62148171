"""The groups of a step: drawn, posed, rolled out, graded and filtered, again where a stage refills."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from assay.core.errors import ConfigError
from assay.core.group import Draw, Group
from assay.core.optional_protocols import SamplerByContext
from assay.core.protocols import Moment, Posed
from assay.core.rollout import Rollout
from assay.core.task import Task
from assay.core.timing import span
from assay.train.early_scores import EarlyScores
from assay.train.grade import ScoredRollouts, groups_of
from assay.train.scoring import StageContext, grade_rollouts
from assay.train.screen import screen_tasks

if TYPE_CHECKING:
    from assay.train.reinforce_runner import ReinforceRunner

__all__ = ["MOST_ROUNDS", "Collected", "collect_groups", "join_groups", "moment_of", "pose_and_grade", "task_of"]


MOST_ROUNDS = 64
"""Rounds in which a guidance may pose a task within a step, as `assay.testing.check_guidance` allows it too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """The groups of a step before they are learned from.

    Attributes:
        graded: every group, in order.
        kept: what is to be learned from: those that no other replaced, as the stage's filter selects them.
        rounds: how often tasks were drawn.
        metrics: ``filter/graded`` and ``filter/kept``, numbers of groups, and ``filter/rounds``; none where nothing selects.
            With `Refill.adapt` ``filter/share``, which the next round goes by. With a screen ``screen/drawn`` and
            ``screen/left_out``, numbers of tasks.
    """

    graded: list[Group]
    kept: list[Group]
    rounds: int
    metrics: Mapping[str, float]

    def graded_with(self, supplied: Sequence[Group]) -> list[Group]:
        """Every group, in order; those kept whole as they are with further columns."""
        named = {group.key: group for group in supplied}
        same = [named.get(group.key, group) for group in self.graded]
        return [new if len(new.rollouts) == len(old.rollouts) else old for new, old in zip(same, self.graded, strict=True)]


async def collect_groups(s: ReinforceRunner) -> Collected:
    """Draws tasks and grades rollouts of them; with a `Refill` again, until enough groups are kept.

    Raises:
        GateError: too few were kept after the last round, and the refill says to stop.
    """
    stage, graded, kept = s.stage, list[Group](), list[Group]()
    rounds = drawn = s.screened = 0
    most = stage.refill.rounds if stage.refill else 1
    while rounds < most and (len(kept) < stage.groups or not rounds):
        rounds += 1
        wanted = s.refill.tasks_to_draw(stage.groups, len(kept)) if s.refill else stage.groups
        groups, replaced = await (s.async_collector.groups(s, wanted) if s.async_collector else draw_and_grade(s, wanted, drawn))
        drawn += wanted
        graded += groups
        standing = [group for group in groups if group.key not in replaced]
        chosen = [g for group in standing if (g := stage.filter.select(group) if stage.filter else group) is not None]
        kept += chosen
        if s.refill:
            s.refill.observe(wanted, len(chosen))
    adaptive: Mapping[str, float] = {}
    if s.refill:
        s.refill.end(s, len(kept), len(graded), rounds)
        kept, adaptive = kept[: stage.groups], s.refill.metrics()
    screened = {"screen/drawn": float(drawn), "screen/left_out": float(s.screened)} if stage.screen else {}
    if not stage.filter and len(kept) == len(graded):
        return Collected(graded=graded, kept=kept, rounds=rounds, metrics=screened)
    counts = {"filter/graded": float(len(graded)), "filter/kept": float(len(kept)), "filter/rounds": float(rounds)}
    return Collected(graded=graded, kept=kept, rounds=rounds, metrics={**screened, **counts, **adaptive})


async def draw_and_grade(s: ReinforceRunner, number: int, first: int) -> tuple[list[Group], set[str]]:
    """Draws tasks and grades rollouts of them, sampled now in this process; as `pose_and_grade`."""
    draws = s.curriculum.draw(number)
    tasks = [task_of(s, draw) for draw in draws]
    kept = await screen_tasks(s, tasks, first)
    return await pose_and_grade(s, [tasks[i] for i in kept], [draws[i] for i in kept], first)


def task_of(s: ReinforceRunner, draw: Draw) -> Task:
    """The task that was drawn: the stream's next one, where the draw leaves it open."""
    index = s.parts.index.next(draw.arm, draw.level) if draw.index is None else draw.index
    return s.parts.run.tasks.task(draw.arm, draw.level, "train", index)


async def pose_and_grade(
    s: ReinforceRunner, tasks: Sequence[Task], draws: Sequence[Draw], first: int = 0
) -> tuple[list[Group], set[str]]:
    """Poses each task as the guidance says, round after round, and grades the rollouts.

    Args:
        s: the stage at work.
        tasks, draws: what to practise, and how it was chosen.
        first: number of the first task in its step.

    Returns:
        All graded groups, task by task, and the keys of those that another one replaces.

    Raises:
        ConfigError: a task is still posed after `MOST_ROUNDS` rounds.
    """
    replaced = set[str]()
    done: list[dict[str, Group]] = [{} for _ in tasks]
    live = list(range(len(tasks)))
    for number in count():
        posed: list[tuple[int, Posed]] = [
            (i, p) for i in live for p in s.guidance.next(tasks[i], list(done[i].values()), moment_of(s, first + i))
        ]
        live = sorted({i for i, _ in posed})
        if not posed:
            break
        if number == MOST_ROUNDS:
            raise ConfigError(
                f"{type(s.guidance).__name__}.next posed task {tasks[live[0]].id!r} in {MOST_ROUNDS} rounds of step "
                f"{s.parts.step + 1} and does not come to an end: return () when the task is done, and try 'check_guidance' of "
                "assay.testing on it"
            )
        graded = await _play_and_grade(s, [(tasks[i], p) for i, p in posed])
        for (i, p), found in zip(posed, graded, strict=True):
            for group in groups_of(found, draws[i]):
                done[i][group.key] = join_groups(done[i].get(group.key), group)
            replaced.update(p.replaces)
    return [group for groups in done for group in groups.values()], replaced


def moment_of(s: ReinforceRunner, number: int) -> Moment:
    """When a guidance poses task ``number`` of the present step."""
    return Moment(key=f"s{s.parts.step}/{number}", step=s.parts.step, seed=s.parts.run.seed)


async def _play_and_grade(s: ReinforceRunner, posed: Sequence[tuple[Task, Posed]]) -> list[ScoredRollouts]:
    """Rolls out and grades what was posed; a group is graded while others are sampled, where scorer and sampler can."""
    contexts = [(task, p.context) for task, p in posed]
    early = EarlyScores.of(s, StageContext(s.parts), contexts)
    try:
        with span("generate"):
            rollouts = await _roll_out(s, [p for _, p in posed], early)
        with span("score"):
            return await grade_rollouts(s, contexts, rollouts, early)
    finally:
        if early:
            await early.cancel()


async def _roll_out(s: ReinforceRunner, posed: Sequence[Posed], early: EarlyScores | None) -> list[Rollout]:
    """All rollouts; contexts that want equally many together."""
    sizes = [p.n or s.group_size for p in posed]
    found: list[Rollout] = []
    for n in dict.fromkeys(sizes):
        contexts = [p.context for p, size in zip(posed, sizes, strict=True) if size == n]
        if early and isinstance(s.sampler, SamplerByContext):
            found += await s.sampler.collect_each(contexts, n, early.ask)
        else:
            found += await s.sampler.collect(contexts, n)
    return found


def join_groups(old: Group | None, new: Group) -> Group:
    """One group of two rounds with one key."""
    if old is None:
        return new
    twice = {r.context.key for r in old.rollouts} & {r.context.key for r in new.rollouts}
    if twice:
        raise ConfigError(f"the guidance posed the context {sorted(twice)[0]!r} twice; give each context a key of its own")
    return replace(old, rollouts=old.rollouts + new.rollouts, scores=old.scores + new.scores)
