"""What draws and poses the tasks of a step: built for a stage, and set back where a reward fails."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from assay.core.optional_protocols import ReadsMetrics, ReadsTasks
from assay.core.protocols import Curriculum
from assay.core.seeds import derive
from assay.scorers import FromTasks
from assay.train.levels import arms_of

if TYPE_CHECKING:
    from assay.train.reinforce import Reinforce
    from assay.train.reinforce_runner import ReinforceRunner
    from assay.train.session import Parts

__all__ = ["build_curriculum", "copy_draw_state", "optional_parts", "restore_draw_state", "show_metrics"]


def build_curriculum(stage: Reinforce, parts: Parts) -> Curriculum:
    """The stage's curriculum over the levels that it trains on, by a seed of its own."""
    step = parts.step - parts.stage_step
    seed = derive("curriculum", parts.run.seed, "stage", step) if step else parts.run.seed
    made = stage.curriculum.build(arms_of(parts.run.tasks, stage.levels), seed)
    if isinstance(made, ReadsTasks):
        made.read_tasks(parts.run.tasks)
    return made


def show_metrics(curriculum: Curriculum, metrics: Mapping[str, float]) -> None:
    """What a step and the evaluation behind it measured, to a curriculum that reads it."""
    if isinstance(curriculum, ReadsMetrics):
        curriculum.observe_metrics(metrics)


def copy_draw_state(runner: ReinforceRunner) -> dict[str, Any] | None:
    """What a step changes before its rollouts are scored; None where no reward of a user's can fail."""
    if runner.parts.pool.abilities.trusted and type(runner.scorer) is FromTasks:
        return None
    return deepcopy(
        {
            "curriculum": runner.curriculum.state_dict(),
            "guidance": runner.guidance.state_dict(),
            "scorer": runner.scorer.state_dict(),
            "index": runner.parts.index.state_dict(),
            "refill": runner.refill.state_dict() if runner.refill else {},
        }
    )


def restore_draw_state(runner: ReinforceRunner, before: dict[str, Any] | None) -> None:
    """Sets the runner to before the step: a reward that fails does so before anything is learned."""
    if before is None:
        return
    stage, parts = runner.stage, runner.parts
    runner.scorer = stage.reward.build()
    runner.scorer.load_state_dict(before["scorer"])
    if runner.refill:
        runner.refill.load_state_dict(before["refill"])
    if runner.async_collector:  # what was drawn waits there
        return
    parts.index = stage.index.build(parts.run.seed)
    runner.curriculum = build_curriculum(stage, parts)
    runner.guidance = stage.guidance.build(parts.run.seed)
    runner.curriculum.load_state_dict(before["curriculum"])
    runner.guidance.load_state_dict(before["guidance"])
    parts.index.load_state_dict(before["index"])


def optional_parts(runner: ReinforceRunner) -> list[tuple[str, Any]]:
    """Parts with a state that only some stages have, by their names in a checkpoint."""
    parts = {"interleaved": runner.interleaved, "balance": runner.balance, "refill": runner.refill}
    return [(name, part) for name, part in parts.items() if part]
