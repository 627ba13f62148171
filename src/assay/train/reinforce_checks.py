"""What can be known to go wrong with a stage of reinforcement learning before a run spends anything."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from assay.core.errors import ConfigError, DataError, MissingExtraError, UnknownNameError
from assay.core.protocols import Moment, Tokenizer
from assay.core.rollout import Sampling
from assay.core.sample import STREAMS
from assay.core.task import Task
from assay.guide import AlpGmm, Plain, Promoted, ResampleOnCorrect, RewrittenAnswers
from assay.guide.hint_composers import packer_of
from assay.rollout.decode_text import with_stop
from assay.train.async_checks import check_asynchronous
from assay.train.complete_columns import check_providers
from assay.train.guidance_files import check_guidance_files
from assay.train.replay_checks import check_replay
from assay.train.row_sources import check_sources, streams_in
from assay.train.schedules import check_schedules
from assay.train.stage_learner import learner_of, scoring_model
from assay.train.support import check_annealing, check_support

if TYPE_CHECKING:
    from assay.train.reinforce import Reinforce
    from assay.train.run import Run

__all__ = ["check_privileged", "check_stage"]


def check_stage(run: Run, stage: Reinforce) -> None:
    """Looks at a stage's settings.

    Raises:
        ConfigError, UnknownNameError: they contradict each other or the run; with a fix.
    """
    check_refill(stage)
    check_tested(run, stage)
    check_guidance_files(stage.guidance)
    check_replay(stage)
    check_streams(stage)
    check_sources(stage)
    check_interleaved(stage)
    if stage.balance is not None:
        stage.balance.check(stage.objective)
    check_reward(run, stage)
    plan = stage.effective_objective.plan(stage.updates, stage.learner.offers)
    check_temperature(run.sampling)
    check_annealing(run)
    check_schedules(run, stage)
    check_support(run, stage, plan)
    check_providers(stage.columns, plan)
    check_asynchronous(run, stage)


def check_refill(stage: Reinforce) -> None:
    """Raises ConfigError for a refill without a filter (nothing could be missing), and for a filter or a refill that could
    never keep enough. Not at construction, as `check_replay`.
    """
    if stage.refill is not None and stage.filter is None:
        raise ConfigError(
            "Reinforce.refill draws again until the filter has kept enough, and there is no filter: give filter=Mixed() "
            "(DAPO's dynamic sampling), SuccessWindow(), ..., or leave the refill out"
        )
    if not isinstance(stage.guidance, Plain):  # it may give more groups, and more rollouts of each
        return
    if isinstance(stage.filter, ResampleOnCorrect) and stage.filter.keep > stage.group_size:
        raise ConfigError(
            f"ResampleOnCorrect.keep={stage.filter.keep} of Reinforce.group_size={stage.group_size} rollouts: every group "
            "would be left out; roll out about twice as many as are kept"
        )
    if stage.refill is not None and 0 < stage.refill.draws * stage.refill.rounds < stage.groups:
        raise ConfigError(
            f"Refill(rounds={stage.refill.rounds}, draws={stage.refill.draws}) draws at most "
            f"{stage.refill.draws * stage.refill.rounds} contexts, and Reinforce.groups={stage.groups} are wanted: "
            "raise one of them"
        )


def check_tested(run: Run, stage: Reinforce) -> None:
    """Raises ConfigError for a curriculum that follows held-out evaluations where there are none during a stage."""
    if run.evaluation.every:
        return
    if isinstance(stage.curriculum, AlpGmm) and stage.curriculum.tested:
        raise ConfigError(
            f"{type(stage.curriculum).__name__}.tested=True, and Evaluation.every=0 tests at the end of a stage only: give it a "
            "number of steps, or compare by success in practice, tested=False"
        )
    if isinstance(stage.curriculum, Promoted):
        raise ConfigError(
            "Promoted moves on by held-out evaluations, and Evaluation.every=0 makes none during a stage: give it a number of "
            "steps, or use Frontier, which follows the success of training rollouts"
        )


def check_streams(stage: Reinforce) -> None:
    """Raises ConfigError when experts are asked for and never read, when something learns from experts alone and has none, or
    when nothing learns from any rows that the stage brings.
    """
    objective = stage.objective
    credit, losses = objective.credit if objective.uses_reward else (), objective.losses
    read = {
        *objective.scalarise.streams,
        *(s for t in credit for s in t.streams),
        *(s for t in losses for s in t.streams or STREAMS),
    }
    alone = [type(t).__name__ for t in (*credit, *losses) if t.streams == ("expert",)]
    own = {stream for source in stage.sources for stream in streams_in(source)}
    packer = packer_of(stage.composer)
    given = "RewrittenAnswers" if isinstance(stage.composer, RewrittenAnswers) else ""
    if given or (packer is not None and packer.learn_forced):
        own.add("expert")
        if "expert" not in read:
            raise ConfigError(
                f"{given or 'Compose.learn_forced=True'}, but no part of the objective reads the stream 'expert' (they read "
                f"{sorted(read)}): "
                "add a term, such as grpo() + Nll(streams=('expert',), coef=0.001), or leave it out"
            )
    brought = {"on_policy", "replay", "expert"} | own
    if packer is not None and not any(brought & set(t.streams or STREAMS) for t in losses):
        raise ConfigError(
            f"Reinforce: the objective's terms act on rows of {sorted({s for t in losses for s in t.streams})} alone, which "
            "this stage never has: give a composer that brings them, or use a method for sampled rollouts"
        )
    if stage.experts and "expert" not in read:
        raise ConfigError(
            f"Reinforce.experts=True, but no part of the objective reads the stream 'expert' (they read {sorted(read)}): use "
            "a method that does (rl_plus, visurf, ...), or False"
        )
    if alone and not stage.experts and "expert" not in own:
        raise ConfigError(
            f"{' and '.join(alone)} of the objective learns from expert rollouts alone, and Reinforce.experts=False brings "
            "none: use Reinforce(experts=True), or bring demonstrations of yours, Reinforce(sources=[RowSource(data=...)])"
        )


def check_interleaved(stage: Reinforce) -> None:
    """Raises ConfigError for supervised updates where sampled weights are older than the newest, whose age they would change;
    and what `assay.train.interleave` says.
    """
    if stage.imitate is None:
        return
    if stage.lag or stage.asynchronous:
        other = f"lag={stage.lag}" if stage.lag else "asynchronous"
        raise ConfigError(
            f"Reinforce(imitate={type(stage.imitate).__name__}(...), {other}): the updates between rollout batches would make "
            "the weights that sample older than is said; use one or the other, or mix the rows into the batches (sources)"
        )
    stage.imitate.check()


def check_reward(run: Run, stage: Reinforce) -> None:
    """Raises UnknownNameError when a scorer asks for a judge that the run does not name, or an anchor that the stage has not."""
    for name in stage.reward.judges:
        if name not in (known := [judge.name for judge in run.judges]):
            raise UnknownNameError(f"judge in Run.judges, which {type(stage.reward).__name__} asks:", name, known)
        if find_spec("httpx") is None:  # said now, not after the first evaluation
            raise ConfigError(f"judge {name!r} is asked over HTTP, and {MissingExtraError('httpx', 'judge')}")
    for name in stage.reward.models:
        settings = learner_of(run, stage)
        known = ["policy", *(a.name for a in settings.anchors)]
        if scoring_model(settings, name) not in known:
            raise UnknownNameError(f"anchor, which {type(stage.reward).__name__} asks for log-probabilities:", name, known)


def check_temperature(sampling: Sampling) -> None:
    """The learner scores each token at the temperature it was sampled at; at 0 there is nothing to compare."""
    if sampling.temperature == 0.0:
        raise ConfigError(
            "Run.sampling.temperature=0.0 in a run with RL: every rollout of a context would be the same, and no group would "
            "have a signal; use a temperature above 0 (evaluation takes the greedy answer besides)"
        )


def check_privileged(run: Run, stage: Reinforce, task: Task, tokenizer: Tokenizer, context: int) -> None:
    """A teacher with privileged prompts needs one at each task, and room for it."""
    readers = [a.name for a in stage.learner.anchors if a.privileged]
    if not readers:  # said at once: it is asked of every task
        return
    new = with_stop(run.sampling, tokenizer).max_new_tokens
    for posed in (p.context for p in stage.guidance.build(0).next(task, (), Moment(key="check"))):
        place = f"task {task.id!r} (arm {task.arm!r}, level {task.level})"
        if posed.privileged is None:
            raise ConfigError(
                f"{place}: Anchor({readers[0]!r}) reads rollouts behind their privileged prompts, and {stage.guidance} poses it "
                "without one: use guidance=Privileged(...), or an anchor with privileged=False"
            )
        try:
            tokens = len(tokenizer.render(posed.privileged))
        except DataError as error:
            raise DataError(f"{place}, privileged prompt: {error}") from None
        if tokens + new > context:
            raise ConfigError(
                f"{place} has a privileged prompt of {tokens} tokens; with Run.sampling.max_new_tokens={new} that exceeds the "
                f"shortest context of model and anchors, {context}: shorten the guidance's text, or use longer models"
            )
