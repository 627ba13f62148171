"""What follows from a run's settings: rows, steps, tokens, parameters, memory. Pure arithmetic, without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from assay.core.config import dumps_toml, to_dict
from assay.core.errors import AssayError, DataError, a_kind
from assay.core.plan import Plan
from assay.core.rowfile import rows_beside
from assay.core.util.paths import cache_folder
from assay.runtime.models.adapter_base import whole_of
from assay.runtime.settings import DecoderShape, HubShape
from assay.train.levels import arms_of, taken_and_known
from assay.train.memory import MemoryEstimate, WeightSizes, memory_of, savings, weights_in, weights_of
from assay.train.model_facts import decoder_of, shape_in
from assay.train.models import Built, Folder, Scratch, model_folder
from assay.train.preflight import check_run
from assay.train.run import Run
from assay.train.stage import Stage

__all__ = ["AnyShape", "Derived", "MemoryEstimate", "StageSizes", "derive", "model_shape", "stated_config"]

_SPECIAL = 2  # ids of a character tokenizer besides its alphabet: padding and end

AnyShape = DecoderShape | HubShape


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSizes:
    """Sizes of one stage; all are exact but ``tokens``, which is the most there can be.

    Attributes:
        stage: class of the stage.
        steps: rollout batches, or optimiser steps where rows are given.
        rows: training rows per step; of preferences that differ in their number of answers the most there can be.
        rollouts: rows over all steps; likewise.
        updates: optimiser steps.
        tokens: sampled at most; 0 where rows are given.
        pool: given rows that the stage walks over; 0 in other stages.
        walks: how often it does.
        pool_tokens, learned_tokens: of demonstrations, each once: all tokens, and those that carry loss; 0 in other stages, and
            where no tokenizer was asked.
        shared: given preferences, or rows of the tasks, that have the prompt of a row before them, and say something else.
        levels: levels trained on, by arm.
        evaluations: held-out evaluations in the stage, those at its ends included.
        evaluation_items: tasks in an evaluation during the stage.
        plan: what the objective asks of the machinery.
        what: name of the given rows, in the plural; empty in other stages.
    """

    stage: str
    steps: int
    rows: int
    rollouts: int
    updates: int
    tokens: int
    pool: int
    walks: float
    levels: Mapping[str, tuple[int, ...]]
    evaluations: int
    evaluation_items: int
    plan: Plan
    pool_tokens: int = 0
    learned_tokens: int = 0
    shared: int = 0
    what: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """Everything that follows from a run.

    Attributes:
        shape: of the decoder; None where only loading the model could tell.
        parameters: number of weights.
        context: longest prompt plus answer.
        final_items: tasks of the evaluations at the start and the end of the run.
        stages: sizes of each.
        memory: of the stage that needs most.
        less: settings of that stage that would take less, and how many bytes less each.
        base: what must be built first; None where the weights are fresh or in a folder.
        cached: folder of a finished base with the very same settings; None when there is none. It is taken if assay's code,
            torch and the files that it learns from have not changed since.
    """

    shape: AnyShape
    parameters: int
    context: int
    final_items: int
    stages: tuple[StageSizes, ...]
    memory: MemoryEstimate
    less: tuple[tuple[str, int], ...]
    base: Derived | None
    cached: Path | None


def derive(run: Run) -> Derived:
    """The sizes of a run and of the base that it builds first.

    Raises:
        ConfigError, DataError: a model folder that is not there or not readable.
        ConfigError: parts of the run that contradict each other.
        PlanError: an objective that cannot be right, or that needs what the learner does not offer.
    """
    check_run(run)
    shape = model_shape(run.model)
    stages = tuple(_stage(run, stage, index) for index, stage in enumerate(run.stages))
    base = run.model.run if isinstance(run.model, Built) else None
    needs = [needs_of(run, stage, shape) for stage in run.stages]
    most = max(needs, key=lambda given: memory_of(*given).total)
    return Derived(
        shape=shape,
        parameters=shape.parameters,
        context=shape.max_positions,
        final_items=_items(run, run.evaluation.final_per_level),
        stages=stages,
        memory=memory_of(*most),
        less=tuple(savings(*most)),
        base=derive(base) if base else None,
        cached=_cached_base(base) if base else None,
    )


def model_shape(source: object) -> AnyShape:
    """Shape of the decoder that a model source gives.

    Raises:
        ConfigError: no model in the folder.
        DataError: its ``config.json`` cannot be read.
    """
    if isinstance(source, Built):
        return model_shape(source.run.model)
    if isinstance(source, Scratch):
        return replace(source.shape, vocab_size=len(source.alphabet) + _SPECIAL)
    if isinstance(source, Folder):
        stated = stated_config(source)
        return shape_in(whole_of(model_folder(Path(source.path))) / "config.json") if stated is None else decoder_of(stated)
    raise DataError(f"the sizes of {a_kind(source)} are only known once it is loaded; give Folder, Scratch or Built")


def stated_config(source: object) -> Mapping[str, Any] | None:
    """What assay's recipes say of a model by its name on the hub, where its files are not here; None of any other source."""
    if not isinstance(source, Folder):
        return None
    from assay.recipes.school import CONFIGS

    if source.path not in CONFIGS:
        return None
    try:
        model_folder(Path(source.path))
    except AssayError:
        return CONFIGS[source.path]
    return None


def _items(run: Run, per_level: int) -> int:
    """Tasks of an evaluation: of each level so many, or as many as there are."""
    return taken_and_known(run.tasks, run.evaluation.levels, per_level, run.evaluation.split)[0]


def _stage(run: Run, stage: Stage, index: int) -> StageSizes:
    every = run.evaluation.every
    ends = 2 if stage.evaluates_first and not index else 1
    during = sum(1 for step in range(1, stage.steps) if every and step % every == 0)
    rows = stage.count_rows(run)
    return StageSizes(
        stage=type(stage).__name__,
        steps=stage.steps,
        rows=rows.step,
        rollouts=rows.step * stage.steps,
        updates=stage.steps * stage.updates,
        tokens=rows.tokens,
        pool=rows.pool,
        walks=stage.steps * rows.batch / rows.pool if rows.pool else 0.0,
        levels={} if rows.pool else arms_of(run.tasks, stage.levels),
        evaluations=during + ends,
        evaluation_items=_items(run, run.evaluation.per_level),
        plan=stage.effective_objective.plan(stage.updates, stage.learner.offers),
        shared=rows.shared,
        what=rows.what,
    )


def needs_of(run: Run, stage: Stage, shape: AnyShape) -> tuple[Run, Stage, AnyShape, WeightSizes, int, int]:
    """What the memory of a stage is told from, as `memory_of` takes it."""
    evaluated = max(run.evaluation.n, 1) * _items(run, run.evaluation.final_per_level)
    others = sum(model_shape(Folder(a.model)).parameters for a in stage.learner.anchors if a.model)
    return run, stage, shape, _weights(run.model, shape), others, evaluated


def _weights(source: object, shape: AnyShape) -> WeightSizes:
    if isinstance(shape, DecoderShape):
        return weights_of(shape)
    while isinstance(source, Built):
        source = source.run.model
    return weights_in(whole_of(model_folder(Path(cast(Folder, source).path))))


def _cached_base(base: Run) -> Path | None:
    with rows_beside(Path()):
        text = dumps_toml(to_dict(base))
    for done in sorted((cache_folder() / "base").glob(f"{base.name}-*/done.json")):
        recorded = done.with_name("run.toml")
        if recorded.exists() and recorded.read_text(encoding="utf-8") == text:
            return done.parent
    return None
