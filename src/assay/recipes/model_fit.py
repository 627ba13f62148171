"""A run on another model than its recipe's: the settings that follow from a model, derived anew, or what they would be."""

from __future__ import annotations

from dataclasses import replace

from assay.recipes.rows import facts_of_source
from assay.runtime.settings import AdamW
from assay.train.model_settings import ModelSettings, RowFacts, pick_settings, this_machine
from assay.train.reinforce import Reinforce
from assay.train.run import Run

__all__ = ["fit_to_model", "settings_kept"]


def fit_to_model(run: Run) -> Run:
    """The run with what `assay.recipes.on_rows` derives from a model's size and kind and from the machine, in its stages of
    reinforcement learning: learning rate, adapter, precision, micro-batches, recomputed layers, answer length, engine, threads
    and the copy of the start. All else stays the recipe's: tasks, steps, prompts and rollouts of a step, objective, schedule.

    Raises:
        ConfigError, DataError, HubError: the model's config cannot be read.

    >>> from assay.recipes import quickstart
    >>> from assay.runtime import DecoderShape
    >>> from assay.train import Scratch
    >>> large = DecoderShape(hidden_size=512, num_layers=12, num_heads=8, num_kv_heads=8, head_dim=64, intermediate_size=2048)
    >>> run = fit_to_model(replace(quickstart(), model=Scratch(shape=large)))
    >>> run.stages[0].learner.optimizer.lr < 5e-4, run.stages[0].groups
    (True, 32)
    """
    found = _derive_settings(run)
    if found is None:
        return run
    stages = tuple(_fit_stage(stage, found) if isinstance(stage, Reinforce) else stage for stage in run.stages)
    return replace(
        run,
        stages=stages,
        sampling=replace(run.sampling, max_new_tokens=found.max_new_tokens),
        evaluation=replace(run.evaluation, kl_to_base=found.reference),
        engine=found.engine,
        threads=found.threads,
    )


def settings_kept(run: Run) -> tuple[str, ...]:
    """Settings of the run that would be others were they derived from its model, each with what is derived; none where all fit.

    Raises:
        ConfigError, DataError, HubError: as `fit_to_model`.
    """
    found = _derive_settings(run)
    stage = next((s for s in run.stages if isinstance(s, Reinforce)), None)
    if found is None or stage is None:
        return ()
    learner = stage.learner
    lora, other = (f"LoRA of rank {a.rank}" if a else "all weights" for a in (learner.adapter, found.lora))
    pairs = {
        "lr": (f"{learner.optimizer.lr:g}", f"{found.learning_rate:g}"),
        "trains": (lora, other),
        "precision": (learner.precision, found.precision),
        "max-new-tokens": (f"{run.sampling.max_new_tokens:,}", f"{found.max_new_tokens:,}"),
    }
    return tuple(f"{name} {now} (not {then})" for name, (now, then) in pairs.items() if now != then)


def _derive_settings(run: Run) -> ModelSettings | None:
    """What `assay.recipes.on_rows` would choose; None where no stage learns by reinforcement."""
    stage = next((s for s in run.stages if isinstance(s, Reinforce)), None)
    if stage is None:
        return None
    rows = RowFacts(turns=bool(getattr(stage.sampler.player, "tools", ())))
    return pick_settings(facts_of_source(run.model), this_machine("auto"), rows)


def _fit_stage(stage: Reinforce, found: ModelSettings) -> Reinforce:
    """A stage under derived settings; anchors that its objective needs stay."""
    derived, learner = found.learner(stage.steps), stage.learner
    return replace(
        stage,
        learner=replace(
            learner,
            optimizer=AdamW(lr=found.learning_rate),
            precision=derived.precision,
            adapter=derived.adapter,
            checkpointing=derived.checkpointing,
            device="auto",
            micro_tokens=derived.micro_tokens,
            anchors=learner.anchors or derived.anchors,
        ),
    )
