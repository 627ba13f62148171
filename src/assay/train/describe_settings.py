"""What a run is set to, and why, in at most six lines: printed before the first step."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from assay.core.optional_protocols import CountsRows, MixesFamilies
from assay.core.protocols import TaskSource
from assay.runtime.engine.settings import DescribedEngineSpec
from assay.runtime.settings import AdamW
from assay.scorers.from_tasks import FromTasks
from assay.train.levels import arms_of
from assay.train.memory import memory_of
from assay.train.model_facts import ModelFacts, facts_in
from assay.train.model_settings import MachineFacts, learning_rate, this_machine
from assay.train.models import Folder
from assay.train.reinforce import Reinforce
from assay.train.run import Run
from assay.verify.abilities import ability_of
from assay.verify.exact import ExactMatch
from assay.verify.routing import Routed
from assay.verify.user_reward import UserReward, name_of
from assay.verify.weighted_rewards import WeightedRewards

__all__ = ["describe_settings", "explain_settings"]

_KINDS = {"base": "no chat template", "chat": "a chat template", "thinking": "a chat template that lets it think"}
_GIB = 1 << 30


def explain_settings(run: Run, start: Path) -> tuple[str, ...]:
    """`describe_settings` of a run that starts from a model folder or a name on the hub, on this machine; of any other, its model
    alone. And what accuracies are of.

    Args:
        run: settings.
        start: the folder with its starting weights.
    """
    stage = next((cast(Reinforce, s) for s in run.stages if s.uses_tasks), None)
    if not isinstance(run.model, Folder) or stage is None:
        return (f"model {run.model.describe()}", *_notes(run))
    return (*describe_settings(run, stage, facts_in(start), this_machine(stage.learner.device)), *_notes(run))


def describe_settings(run: Run, stage: Reinforce, facts: ModelFacts, machine: MachineFacts) -> tuple[str, ...]:
    """What is trained how, in three or four lines.

    Args:
        run, stage: settings.
        facts: of its model.
        machine: what it computes on.
    """
    learner, new = stage.learner, run.sampling.max_new_tokens
    lora = learner.adapter
    what = f"LoRA of rank {lora.rank} ({_count(facts.weights.trainable_count(lora))} weights)" if lora else "all weights"
    rate = learner.optimizer.lr
    usual = learning_rate(facts.count, lora is not None)
    how = "an adapter on a model" if lora else "full training"
    why = f"for {how} of this size"
    if not isinstance(learner.optimizer, AdamW):
        why = f"of {type(learner.optimizer).__name__}"
    elif not math.isclose(rate, usual):
        why = f"as given; {usual:g} is derived for {how} of this size"
    again = ", layers computed again in the backward pass" if learner.checkpointing else ""
    name = run.model.describe()
    return (
        f"model {name}: {_count(facts.count)} weights ({facts.family}, {_KINDS[facts.kind]}), context of "
        f"{facts.shape.max_positions:,} tokens; on {machine.device} with {machine.memory / _GIB:.0f} GiB",
        f"trains {what} in {learner.precision}, lr {rate:g} {why}{_reference(run, stage)}",
        f"{stage.groups} prompts x {stage.group_size} rollouts a step, answers of at most {new:,} tokens; micro-batches of "
        f"{learner.micro_tokens:,} tokens{again}; samples with {_engine(run, machine)}{_describe_samplers(stage)}"
        f"{_memory(run, stage, facts, machine)}",
    )


def _describe_samplers(stage: Reinforce) -> str:
    """Where other processes sample."""
    settings = stage.asynchronous
    if settings is None:
        return ""
    where = f"{settings.samplers} process" + ("es" if settings.samplers > 1 else "")
    where += " of a Ray cluster" if settings.runtime == "ray" else ""
    old = f"at most {settings.eta} step{'s' if settings.eta > 1 else ''} old" if settings.eta else "with the newest weights"
    return f" in {where} beside learning, {old}, {settings.policy}"


def _notes(run: Run) -> tuple[str, ...]:
    notes = (_describe_evaluations(run),)
    verifier: object = run.tasks.verifier()
    if isinstance(verifier, UserReward):
        return (*notes, _accuracy(verifier, run.evaluation.threshold))
    if _by_tasks(run):
        return (*notes, *_judged_by(run.tasks), *_learned_from(run))
    return (*notes, *_rewarded_by(run))


def _describe_evaluations(run: Run) -> str:
    """How many items evaluations have, and when there are any; of tasks that cannot be counted, as many as are asked for."""
    plan = run.evaluation
    cells = [(arm, level) for arm, levels in arms_of(run.tasks, plan.levels).items() for level in levels]

    def items(most: int) -> int:
        return sum(min(most, _size(run.tasks, arm, level, plan.split, most)) for arm, level in cells)

    whole, part = items(plan.final_per_level), items(plan.per_level)
    answers = "once greedily and once sampled" if plan.n == 1 else f"once greedily and {plan.n} times sampled"
    there = ""
    if _every_is_counted(run.tasks, cells) and whole < (all_there := items(sys.maxsize)):
        there = f" of {all_there:,} (Evaluation.final_per_level={plan.final_per_level} of each level)"
    between = f", and on {part:,} every {plan.every} steps between" if plan.every else ""
    what, none = "held-out items", ""
    if plan.split != "test":
        what, none = "training items", "; no row is held out: accuracies say nothing of other rows"
    return f"evaluates on {whole:,} {what}{there} at both ends{between}, each answered {answers}{none}"


def _every_is_counted(tasks: TaskSource, cells: Sequence[tuple[str, int]]) -> bool:
    """Whether all of the tasks are rows, of which there are finitely many."""
    return all(isinstance(_family_of(tasks, arm), CountsRows) for arm, _ in cells)


def _size(tasks: TaskSource, arm: str, level: int, split: str, otherwise: int) -> int:
    """Different items of a cell, where they can be counted."""
    family = _family_of(tasks, arm)
    return family.size(arm, level, split) if isinstance(family, CountsRows) else otherwise


def _family_of(tasks: TaskSource, arm: str) -> TaskSource:
    """The family that an arm belongs to, of a mixture or alone."""
    return tasks.source(arm) if isinstance(tasks, MixesFamilies) else tasks


def _rewarded_by(run: Run) -> tuple[str, ...]:
    """The scorers that stages learn from, where their judges are asked, and what accuracy is then."""
    scorers = _rewards(run)
    asked: set[str] = {name for scorer in scorers for name in getattr(scorer, "judges", ())}
    where = "".join(f"; judge {j.name!r}: model {j.model!r} at {j.url}" for j in run.judges if j.name in asked)
    kinds = ", ".join(dict.fromkeys(type(scorer).__name__ for scorer in scorers))
    return (f"the reward is {kinds}{where}", *(f"accuracy alone, not the reward: {line}" for line in _judged_by(run.tasks)))


def _judged_by(source: object) -> tuple[str, ...]:
    """What judges answers to a user's rows; nothing of generated tasks, whose verifier is their own."""
    parts: tuple[Any, ...] = getattr(source, "sources", (source,))
    judges: list[object] = [part.verifier() for part in parts if hasattr(part, "rows")]
    return tuple(f"answers are judged by {_describe_judge(judge)}" for judge in judges)


def _by_tasks(run: Run) -> bool:
    """Whether any stage learns from the tasks' own verifier, and not from a judge or another scorer alone."""
    rewards = _rewards(run)
    return not rewards or any(isinstance(reward, FromTasks) for reward in rewards)


def _rewards(run: Run) -> list[object]:
    """The scorers of the stages that have one."""
    found: list[object] = [getattr(stage, "reward", None) for stage in run.stages]
    return [scorer for scorer in found if scorer is not None]


def _learned_from(run: Run) -> tuple[str, ...]:
    """Which component is learned from, where the verifier gives both ``correct`` and ``reward``."""
    verifier = run.tasks.verifier()
    stages: list[Any] = [s for s in run.stages if isinstance(getattr(s, "reward", None), FromTasks)]
    if not stages or not {"correct", "reward"} <= set(ability_of(verifier, "names")) or stages[0].objective.scalarise.combines:
        return ()
    if ability_of(verifier, "weighted_sum"):
        return ("learns from `reward`, the verifier's partial credit; accuracy is of `correct`",)
    return ("learns from `correct`; `reward` is only reported: declare weighted_sum = True in the verifier to learn from it",)


def _describe_judge(judge: object) -> str:
    if isinstance(judge, Routed) and judge.by == "verifier":
        others = "" if judge.default is None else f"; where a row names none, by {_describe_judge(judge.default)}"
        return f"the verifiers that their rows name: {', '.join(judge.routes)}{others}"
    if isinstance(judge, ExactMatch) and judge == ExactMatch(strip=True):
        return "an exact match with the row's 'answer', white space around it aside"
    return f"`{type(judge).__name__}`"


def _accuracy(reward: UserReward, threshold: float) -> str:
    """What accuracy is, where rewards are the user's own."""
    if not isinstance(reward, WeightedRewards):
        name, why = name_of(reward), ", which the run also learns from; metric= takes another"
    elif reward.metric is None:
        name, why = reward.measured_by, f", one of {len(reward.parts)} rewards; metric= takes another"
    else:
        name, why = reward.metric, ", as metric= says"
    return f"accuracy = share of answers with reward >= {threshold} by `{name}`{why}"


def _reference(run: Run, stage: Reinforce) -> str:
    if stage.learner.anchors or run.evaluation.kl_to_base:
        return ""
    return "; without a copy of the start, so the divergence from it is not measured"


def _engine(run: Run, machine: MachineFacts) -> str:
    engine = run.engine
    return engine.describe(cuda=machine.device == "cuda") if isinstance(engine, DescribedEngineSpec) else type(engine).__name__


def _memory(run: Run, stage: Reinforce, facts: ModelFacts, machine: MachineFacts) -> str:
    """Where the engine's context is bounded: else the most that there could be says nothing of what there will be."""
    if not isinstance(run.engine, DescribedEngineSpec):
        return ""
    found = memory_of(run, stage, facts.shape, facts.weights, 0, run.evaluation.final_per_level).total
    much = found > machine.memory
    return f"; about {found / _GIB:.1f} GiB" + (
        ", more than there is: take a smaller model, or lower max_new_tokens" if much else ""
    )


def _count(n: int) -> str:
    return f"{n / 1e9:.2f}B" if n >= 1e9 else f"{n / 1e6:.1f}M" if n >= 1e5 else f"{n:,}"
