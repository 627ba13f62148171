"""The user's own data and reward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.core.errors import ConfigError, HubError, a_kind
from assay.core.protocols import TaskSource
from assay.core.rollout import Sampling
from assay.objective.objective import Objective
from assay.recipes.prompt_lengths import NOT_FOR_TEXT, LongPrompts, longest_answer, longest_prompt
from assay.recipes.row_data import Data, RowData, RowJudge, fit_rows, tasks_of_rows
from assay.recipes.row_keywords import accepts_other_names, check_rows_arguments, named_settings, with_divergence
from assay.recipes.school import CONFIGS
from assay.recipes.sorting import base
from assay.rollout.spec import PlayerSpec
from assay.runtime.anchors import Anchor
from assay.runtime.engine.settings import Auto, EngineSpec
from assay.runtime.learning_rate import schedule_of_kind
from assay.runtime.settings import Lora
from assay.runtime.text.chat import Chat
from assay.tasks.rewards import Metric, Reward
from assay.train.method_names import NamedMethod
from assay.train.model_facts import ModelFacts, facts_in, facts_of_config, facts_of_scratch, small_files, tokenizer_in
from assay.train.model_settings import GivenSettings, ModelSettings, RowFacts, pick_settings, this_machine
from assay.train.models import Built, Folder, Scratch, more_positions, scratch_tokenizer
from assay.train.reinforce import Reinforce
from assay.train.run import ModelSource, Run
from assay.train.stage import Stage
from assay.train.wiring import models_in, wire

if TYPE_CHECKING:
    from assay.core.protocols import Tokenizer

__all__ = ["facts_of_source", "on_rows"]

_BASE = ModelSettings(
    device="cpu",
    precision="fp32",
    learning_rate=5e-4,
    lora=None,
    reference=True,
    checkpointing=False,
    micro_tokens=4096,
    engine=Auto(),
    threads=1,
    context=128,
    max_new_tokens=16,
    groups=16,
    group_size=8,
    warmup=0,
)
"""Of the embedded base, whatever the machine: its runs are the same everywhere."""


@accepts_other_names
def on_rows(
    rows: Data,
    reward: Reward | None = None,
    *,
    metric: Metric | None = None,
    model: str | Path | ModelSource = "base",
    objective: str | Objective | None = None,
    steps: int = 100,
    learning_rate: float | None = None,
    lr_schedule: str | None = None,
    kl: float | None = None,
    groups: int | None = None,
    group_size: int | None = None,
    minibatches: int = 1,
    max_new_tokens: int | None = None,
    temperature: float = 1.0,
    lora: Lora | bool | int | None = None,
    tools: Sequence[Callable[..., Any]] = (),
    evaluate: Data | TaskSource | None = None,
    split: str | Sequence[str] | None = None,
    test_share: float = 0.1,
    weights: Sequence[float] = (),
    reward_deadline: float = 5.0,
    long_prompts: LongPrompts = "error",
    chat: Chat | None = None,
    engine: EngineSpec | None = None,
    device: str | None = None,
    precision: str | None = None,
    micro_tokens: int | None = None,
    threads: int | None = None,
    keep_best: bool = False,
    checkpoint_every: int = 100,
    keep_checkpoints: int = 2,
    seed: int = 0,
) -> Run:
    """Reinforcement learning on your rows, by settings that fit the model and the machine.

    What is None is derived from the model's size and kind, the rows, the device and its memory
    (`assay.train.model_settings.pick_settings`), and printed when the run begins. The embedded base has settings of its own.
    Keywords also go by the other names that the command line knows: ``lr``, ``beta``, ``num_generations`` and so on.

    Args:
        rows: the data; see `assay.tasks.Rows` for the fields. A ``DatasetDict`` or another mapping from the names of splits keeps
            them: ``train`` trains, ``test`` or ``validation`` is held out. A path or ``hub:OWNER/NAME`` is read, also as a split:
            ``{"train": "train.parquet", "test": "test.parquet"}``.
        reward: ``reward(prompt, completion, row) -> float``, or what else `assay.tasks.Rows` takes, also several by name; without
            one, the answer must match exactly, or the verifier that a row names judges (`judged_rows`).
        metric: what accuracy is measured by, other than the reward: the name of one of several rewards, or a function like a
            reward, which is then not learned from. None: the reward, of several the one called ``correct``, else the first.
        model: a model folder in Hugging Face format, a name on the hub, a finished run's folder, or ``"base"``, the embedded
            base.
        objective: any name that ``assay methods`` lists, with all that the method needs, or an `Objective`; None: GRPO without a
            KL term, averaged over tokens. Upper and lower case are alike.
        steps: rollout batches.
        learning_rate: of AdamW.
        lr_schedule: ``linear`` (None: constant, from half of the steps on linear to a tenth), ``cosine`` (to 0) or ``constant``.
        kl: coefficient of the divergence from the starting weights (TRL's ``beta``): the method's setting ``kl`` where it has
            one, else of a term `assay.objective.Kl`; 0 leaves it out, None leaves it as the objective has it.
        groups: prompts of a step.
        group_size: rollouts of a prompt.
        minibatches: optimiser steps of a step. With one, the ratio of PPO's kind of methods is 1, and clips nothing.
        max_new_tokens: most tokens of an answer.
        temperature: of sampling.
        lora: train an adapter: True, a rank or a `Lora`; False trains all weights.
        tools: Python functions that the policy may call; see `assay.rollout.FunctionTool`.
        evaluate: rows to evaluate on, the name of a suite or family, or a task source. None holds out the rows' own test split,
            else ``test_share`` of the prompts, else nothing (``test_share=0``): then accuracies are of the training rows, and the
            run says so. Rows to evaluate on that are trained on are refused before the first step.
        split: of rows in splits, the one to train on, or a pair: that, and the one to hold out.
        test_share: share of the prompts that is held out where rows have no splits.
        weights: of a list of rewards, one each (TRL's ``reward_weights``).
        reward_deadline: seconds that the reward may take for one answer.
        long_prompts: what becomes of prompts that the context cannot hold: ``error``, ``skip`` or ``truncate``.
        chat: how the model is talked to; None: as its own template says.
        engine: what samples.
        device: ``cpu``, ``cuda`` or ``auto``.
        precision: ``fp32`` or ``bf16``.
        micro_tokens: most tokens of a micro-batch.
        threads: of torch.
        keep_best: keep the model of the best held-out evaluation in the run folder, as ``best/``.
        checkpoint_every: steps between checkpoints (TRL's ``save_steps``).
        keep_checkpoints: how many of the newest checkpoints stay (``save_total_limit``); 0 for all.
        seed: all randomness derives from it.

    Raises:
        DataError: a row is wrong; names its number and field. Or prompts are too long; says how many.
        ConfigError: splits that have to be named, settings that contradict each other, a keyword that is another library's
            (says where it stands here), or a value of another kind.
        HubError: a model or data set that neither the cache nor the hub has.

    >>> run = on_rows([{"prompt": "S21>", "answer": "12"}, {"prompt": "S31>", "answer": "13"}], steps=3)
    >>> run.steps, run.stages[0].group_size, run.evaluation.split
    (3, 8, 'train')
    """
    check_rows_arguments(locals())
    given = GivenSettings(
        learning_rate=learning_rate,
        max_new_tokens=max_new_tokens,
        groups=groups,
        group_size=group_size,
        precision=precision,
        micro_tokens=micro_tokens,
        threads=threads,
        lora=lora,
        engine=engine,
    )
    source = _source(model, chat, seed)
    data = RowData.of(rows, evaluate, split)
    known = _Known.of(source)
    settings = _settings(source, known, data, given, device, bool(tools))
    if known.tokenizer is not None:

        def advice(tokens: int) -> str:
            return NOT_FOR_TEXT if _is_base(source) else more_positions(source, tokens)

        data = fit_rows(data, known.tokenizer, known.facts.shape.max_positions, settings.max_new_tokens, long_prompts, advice)
    tasks, levels, evaluation = tasks_of_rows(data, RowJudge(reward, metric, weights), evaluate, test_share)
    stage = replace(_stage(settings, steps, lr_schedule, tools), minibatches=minibatches, levels=levels)
    return Run(
        name="rows",
        seed=seed,
        model=source,
        tasks=tasks,
        stages=(_with_objective(stage, objective, kl, settings, given),),
        sampling=Sampling(max_new_tokens=settings.max_new_tokens, temperature=temperature),
        evaluation=replace(evaluation, kl_to_base=settings.reference),
        engine=settings.engine,
        threads=settings.threads,
        reward_deadline=float(reward_deadline),
        keep_best=keep_best,
        checkpoint_every=checkpoint_every,
        keep_checkpoints=keep_checkpoints,
    )


def _stage(settings: ModelSettings, steps: int, lr_schedule: str | None, tools: Sequence[Callable[..., Any]]) -> Reinforce:
    """The stage as the model's settings have it."""
    learner = settings.learner(steps)
    return Reinforce(
        steps=steps,
        groups=settings.groups,
        group_size=settings.group_size,
        learner=replace(learner, schedule=schedule_of_kind(learner.schedule, lr_schedule)),
        sampler=PlayerSpec(tools=tuple(tools)),
    )


# ---- the model --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Known:
    """What of a model is here: facts, and a tokenizer where it can be loaded."""

    facts: ModelFacts
    tokenizer: Tokenizer | None

    @classmethod
    def of(cls, source: ModelSource) -> _Known:
        while isinstance(source, Built):
            source = source.run.model
        readable = find_spec("tokenizers") is not None
        if isinstance(source, Scratch):
            return cls(facts_of_scratch(source), scratch_tokenizer(source) if readable else None)
        if not isinstance(source, Folder):
            raise ConfigError(
                f"model is {a_kind(source)}; give a folder, a name on the hub, Folder(...), Scratch(...) or Built(...)"
            )
        try:
            folder = small_files(source)
        except HubError:
            if source.path not in CONFIGS:
                raise
            return cls(facts_of_config(CONFIGS[source.path], "chat" if source.chat else "thinking"), None)
        facts = facts_in(folder)
        quiet = source.chat is not None and source.chat.options.get("enable_thinking") is False
        facts = replace(facts, kind="chat") if quiet and facts.kind == "thinking" else facts
        if not readable:
            return cls(facts, None)
        tokenizer = tokenizer_in(folder, facts.shape.vocab_size)
        return cls(facts, tokenizer if source.chat is None else tokenizer.with_chat(source.chat))


def facts_of_source(source: ModelSource) -> ModelFacts:
    """What is known of a model's size and kind, without its weights."""
    return _Known.of(source).facts


def _source(model: str | Path | ModelSource, chat: Chat | None, seed: int) -> ModelSource:
    if isinstance(model, str | Path):
        if str(model) != "base":
            return Folder(str(model), chat=chat)
        model = Built(run=base(seed))
    if chat is not None:
        raise ConfigError("chat is for a model folder or a name on the hub; give Folder(path, chat=...) or Scratch(chat=...)")
    return model


def _is_base(source: ModelSource) -> bool:
    """Whether a model is the embedded base."""
    return isinstance(source, Built) and source.run.name == "base-sort"


def _settings(
    source: ModelSource, known: _Known, data: RowData, given: GivenSettings, device: str | None, turns: bool
) -> ModelSettings:
    if _is_base(source):
        found = _BASE.overridden(given)
        return found if device is None else replace(found, device=device)
    tokenizer = known.tokenizer
    facts = RowFacts(
        prompts=len(data.train),
        longest=longest_prompt((*data.train, *(data.test or ())), tokenizer) if tokenizer and not data.elsewhere else 0,
        answer=longest_answer(data.train, tokenizer) if tokenizer else 0,
        turns=turns,
    )
    found = pick_settings(known.facts, this_machine(device or "auto"), facts, given)
    return replace(found, device=device or "auto")


def _with_objective(
    stage: Reinforce, objective: str | Objective | None, kl: float | None, settings: ModelSettings, given: GivenSettings
) -> Stage:
    """The stage under a method by its name, with all that it needs, or under an objective."""
    made: Stage = stage
    if isinstance(objective, str):
        fields = {name for name in ("groups", "group_size") if getattr(given, name) is not None}
        own = named_settings(objective, kl)
        named = NamedMethod(method=objective, settings=own, given=frozenset(fields))
        made = wire(stage, named, answer=settings.max_new_tokens)[0]
        if kl is None or own:
            return made
        objective = made.objective
    objective, learner = with_divergence(objective, kl), made.learner
    if "ref" in models_in(objective) and not learner.anchors:  # it was left out for its size, and is needed
        learner = replace(learner, anchors=(Anchor(),))
    return replace(made, objective=objective, learner=learner)
