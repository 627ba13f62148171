"""Opens a stage: builds learner, engine and all that it shares from its settings and the weights that it starts from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from assay.core.errors import ConfigError
from assay.core.protocols import CarriesHeads, IndexPolicy, Learner
from assay.runtime.settings import LearnerSettings
from assay.train.async_checks import own_engine
from assay.train.independent_check import IndependentChecker
from assay.train.judgements import RunJudges
from assay.train.levels import arms_of
from assay.train.mismatch import Agreement, coarser
from assay.train.models import from_folder
from assay.train.proof import WeightProof, probe_rows
from assay.train.run import Run
from assay.train.runner import StageRunner
from assay.train.scoring import weigh_rewards
from assay.train.session import Parts
from assay.train.stage import Stage
from assay.train.stage_learner import learner_of
from assay.train.support import keeps_support
from assay.verify import ScoringPool

if TYPE_CHECKING:
    from assay.core.protocols import Engine
    from assay.runtime.models.any_model import AnyModel

__all__ = ["open_stage"]


def open_stage(
    run: Run,
    stage: Stage,
    model: AnyModel,
    pool: ScoringPool,
    step: int = 0,
    before: Parts | None = None,
    others: Callable[[str], AnyModel] = from_folder,
    checker: IndependentChecker | None = None,
    judges: RunJudges | None = None,
    folder: Path | None = None,
    replays: bool = False,
) -> StageRunner:
    """A stage at work, from its settings and the weights that it starts from.

    Args:
        run, stage: settings.
        model: starting weights; anchors start there too, unless they name another model.
        pool: scores rollouts.
        step: steps finished by earlier stages.
        before: of the stage before, whose weight versions, task streams and alike value heads go on.
        others: gives the models that anchors name.
        checker: a second judge.
        judges: models that a scorer may ask.
        folder: of the run.
        replays: what was sampled comes from the run's log of an asynchronous stage.

    Raises:
        ConfigError: lengths beyond the context, no arm left for the stage's levels, an anchor of another vocabulary.
    """
    if run.sampling.max_new_tokens >= model.shape.max_positions:
        raise ConfigError(
            f"Run.sampling.max_new_tokens={run.sampling.max_new_tokens} leaves no room for a prompt in the model's context of "
            f"{model.shape.max_positions} tokens; lower it"
        )
    if not arms_of(run.tasks, stage.levels):
        raise ConfigError(f"no arm of task family {run.tasks.name!r} has a level of {stage.levels}")
    stage = weigh_rewards(run, stage)
    settings = learner_of(run, stage)
    program = stage.effective_objective.compile(stage.updates, offers=stage.learner.offers)
    learner, engine = _build(run, stage, settings, model, before.learner if before else None, others)
    dtype = coarser(engine.info().dtype, stage.learner.precision)
    parts = Parts(
        run=run,
        stage=stage,
        settings=settings,
        learner=learner,
        engine=engine,
        tokenizer=model.tokenizer,
        pool=pool,
        program=program,
        plan=program.plan,
        index=_index(run, stage, before),
        agreement=Agreement(
            run.mismatch, dtype=dtype, truncated=run.sampling.truncated and not keeps_support(run.sampling, stage)
        ),
        proof=_proof(run, model, stage.lag, learner.replays_routing) if run.prove_weights else None,
        checker=checker,
        judges=judges,
        step=step,
        folder=folder,
        replays=replays,
    )
    try:
        return stage.open(parts)
    except BaseException:
        parts.close()
        raise


def _build(
    run: Run,
    stage: Stage,
    settings: LearnerSettings,
    model: AnyModel,
    before: Learner | None,
    others: Callable[[str], AnyModel],
) -> tuple[Learner, Engine]:
    """The learner and its engine: the one place that knows which there are."""
    from assay.runtime.distributed.mesh import build_learner
    from assay.runtime.engine.stale import stale_engine

    learner = build_learner(
        model,
        settings,
        total_steps=stage.steps * stage.updates,
        version=before.version if before else 0,
        models={a.model: others(a.model) for a in settings.anchors if a.model},
        mesh=run.mesh,
        threads=run.threads,
    )
    try:
        if isinstance(before, CarriesHeads):
            learner.load_heads(before.export_heads())
        engine = own_engine(run, stage).build(learner)
        if settings.replay_routing and "routed_experts" not in engine.info().columns:
            raise ConfigError(
                f"LearnerSettings.replay_routing: the engine of Run.engine={run.engine} does not tell where it sends tokens; use "
                "InProcess(), or leave it out"
            )
        return learner, stale_engine(engine, stage.lag)
    except BaseException:
        learner.close()
        raise


def _proof(run: Run, model: AnyModel, lag: int, experts: bool) -> WeightProof:
    vocabulary, context = model.shape.vocab_size, model.shape.max_positions
    more = probe_rows(vocabulary, context, run.seed, rows=8, length=32)
    return WeightProof(probe_rows(vocabulary, context, run.seed), perturbed_rows=more, lag=lag, spared=0.25 if experts else 0.0)


def _index(run: Run, stage: Stage, before: Parts | None) -> IndexPolicy:
    """The stage's index policy; one of the stage before's kind goes on where that stood."""
    index = stage.index.build(run.seed)
    if before and type(index) is type(before.index):
        index.load_state_dict(before.index.state_dict())
    return index
