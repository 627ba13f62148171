"""How large a step of reinforcement learning is: what its sizes must fulfil, the rows that they make, and smaller ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError
from assay.core.fields import check_positive
from assay.train.stage_rows import StageRows

if TYPE_CHECKING:
    from assay.train.reinforce import Reinforce
    from assay.train.run import Run

__all__ = ["check_sizes", "count_rollout_rows", "half_group_size", "reduced_sizes"]


def check_sizes(stage: Reinforce) -> None:
    """Raises ConfigError for sizes that are below their least, or contradict each other or the objective."""
    check_positive(stage, "steps", "groups", "group_size", "epochs", "minibatches")
    if stage.group_size < stage.objective.min_group:
        raise ConfigError(
            f"Reinforce.group_size={stage.group_size}, but the objective's baseline needs at least {stage.objective.min_group} "
            "rollouts of a context: raise group_size or choose a baseline without a group"
        )
    if stage.lag < 0:
        raise ConfigError(f"Reinforce.lag={stage.lag}; use 0 to sample with the newest weights, or a number of rollout batches")
    if stage.minibatches > stage.groups:
        raise ConfigError(
            f"Reinforce.minibatches={stage.minibatches} exceeds groups={stage.groups}; a mini-batch holds whole groups"
        )


def count_rollout_rows(stage: Reinforce, run: Run) -> StageRows:
    """A row for each rollout, at most, and those of the stage's sources."""
    sampled = stage.groups * stage.group_size
    rows = sampled + sum(source.rows * (stage.groups if source.match == "prompt" else 1) for source in stage.sources)
    most = sampled * stage.steps * run.sampling.max_new_tokens * _turns(stage, run)
    return StageRows(step=rows, tokens=most, shared=getattr(run.tasks, "differing", 0))


def _turns(stage: Reinforce, run: Run) -> int:
    """Answers of a rollout at most."""
    arm, levels = next(iter(run.tasks.arms().items()))
    one = run.tasks.task(arm, levels[0], "train", 0)
    return (stage.sampler.max_turns or run.max_turns) if run.tasks.environment(one.public_view()) is not None else 1


def half_group_size(stage: Reinforce) -> int:
    """Half as many rollouts of a context; 0 where the objective or a schedule needs what there is."""
    half = stage.group_size // 2
    fits = stage.group_size > 2 and half >= stage.objective.min_group and "group_size" not in stage.schedules
    return half if fits else 0


def reduced_sizes(stage: Reinforce, groups: int, size: int) -> dict[str, Any]:
    """Fields of the stage with fewer and smaller groups, and without schedules of sizes, which would exceed what is tried."""
    few, least = min(stage.groups, groups), max(min(stage.group_size, size), stage.objective.min_group)
    kept = {k: v for k, v in stage.schedules.items() if k not in ("group_size", "max_new_tokens")}
    return {"groups": few, "group_size": least, "minibatches": min(stage.minibatches, few), "schedules": FrozenMap(kept)}
