"""What can be known to go wrong before a run spends anything: parts that contradict each other, and tasks that are missing,
too long, or beyond the tokenizer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from assay.core.errors import ConfigError, DataError, MissingExtraError
from assay.core.plan import Plan
from assay.core.protocols import ChatTokenizer, TaskSource, Tokenizer, Tool, Verifier
from assay.core.seeds import generator
from assay.core.task import Message, Task
from assay.rollout.decode_text import AnswerReader, with_stop
from assay.rollout.spec import PlayerSpec
from assay.rollout.tool_source import ToolSource
from assay.runtime.anchors import check_vocabulary
from assay.train.char_coverage import spelling_of
from assay.train.evaluate import held_out
from assay.train.levels import Levels, arms_of
from assay.train.models import from_folder, more_positions
from assay.train.offline_rows import short as shown
from assay.train.run import Run
from assay.train.stage import Stage
from assay.train.warmup import trace_row
from assay.verify import ExactMatch, Together
from assay.verify.exact import expected_answer

if TYPE_CHECKING:
    from assay.runtime.models.any_model import AnyModel

__all__ = ["check_fits", "check_run"]

PROBES = 16
"""Tasks looked at per (arm, level) of a source without end; of one with a ``size``, as the user's rows, all are."""


def check_run(run: Run) -> None:
    """What the settings alone tell, before any model is built or loaded; needs no torch.

    Raises:
        ConfigError: a replay or a provider of columns that is not read, a lag that the method cannot correct for, rollouts drawn
            from another distribution than the learner scores, an anchor that moves when it must not, or less than a batch of
            given rows.
        DataError: no task of the evaluation's levels is held out, or a given row is wrong.
        PlanError: an objective that cannot be right, or that needs what the stage's learner or its rows do not offer.
        MissingExtraError: a stage trains an adapter, and PEFT is not installed.
    """
    if any(stage.learner.adapter for stage in run.stages) and find_spec("peft") is None:
        raise MissingExtraError("peft", "lora")
    for stage in run.stages:
        run.mesh.check(stage.learner)
        _check_routing(stage)
        plan = stage.effective_objective.plan(stage.updates, stage.learner.offers)
        _check_anchors(stage, plan)
        stage.check(run)
    held_out(run.tasks, run.evaluation.levels, 1, run.evaluation.split)  # refuses a run that could not be evaluated at all


def check_fits(run: Run, model: AnyModel, others: Callable[[str], AnyModel] = from_folder) -> None:
    """Looks at the models that anchors name and at the first tasks of every arm and level of a run, besides `check_run`.

    Args:
        run: settings.
        model: what it starts from.
        others: gives the models that anchors name.

    Raises:
        ConfigError: an answer leaves no room for a prompt, a prompt or trace exceeds the context, a task needs more turns than a
            rollout has, a warm-up has no traces, an anchor's vocabulary is another, or a task has no privileged prompt for an
            anchor that reads it.
        DataError: a level without tasks of a split, text that the tokenizer lacks, an answer that must be matched exactly and
            that the model cannot spell, or a given row that exceeds the context; names the task or the row.
    """
    check_run(run)
    context, new = model.shape.max_positions, with_stop(run.sampling, model.tokenizer).max_new_tokens
    if new >= context:
        raise ConfigError(
            f"Run.sampling.max_new_tokens={new} leaves no room for a prompt in the model's context of {context} tokens; lower it"
        )
    for text in run.sampling.stop:
        if missing := spelling_of(model.tokenizer)(text):
            raise ConfigError(
                f"Run.sampling.stop={run.sampling.stop}: the model's tokenizer lacks {', '.join(map(repr, missing))}, so no "
                f"answer could ever end with {text!r}; leave it out"
            )
    check_answer, fits = _answer_check(run.tasks.verifier(), model.tokenizer), _Fits()
    for stage in run.stages:
        for anchor in stage.learner.anchors:
            if anchor.model:
                check_vocabulary(anchor, model, others(anchor.model))
        short = min((others(a.model).shape.max_positions for a in stage.learner.anchors if a.model), default=context)
        stage.check_rows(run, model.tokenizer, min(context, short))
        if not stage.uses_tasks:
            continue
        played = _with_tools(run, stage, model.tokenizer)
        for task in _first_tasks(played.tasks, stage.levels, "train"):
            if not fits(task, context - new):
                fits.note(task, _check_prompt(played, task, model.tokenizer, new, context))
            if short < context:
                _check_prompt(played, task, model.tokenizer, new, short, "anchors' shortest")
            check_answer(task)
            _check_turns(played, task, model.tokenizer)
            stage.check_task(run, task, model.tokenizer, (context, min(context, short)))
    played = _with_tools(run, max(run.stages, key=lambda stage: len(_tools_of(stage))), model.tokenizer)
    for task in _first_tasks(played.tasks, run.evaluation.levels, run.evaluation.split):
        if not fits(task, context - new):
            _check_prompt(played, task, model.tokenizer, new, context)
        check_answer(task)
        _check_turns(played, task, model.tokenizer)


def _with_tools(run: Run, stage: Stage, tokenizer: Tokenizer) -> Run:
    """The run with its tasks as a stage plays them: with the tools of its sampler in their prompts."""
    tools = _tools_of(stage)
    return replace(run, tasks=ToolSource(run.tasks, tools, tokenizer)) if tools else run


def _tools_of(stage: Stage) -> tuple[Tool, ...]:
    player = stage.sampler.player
    return player.all_tools() if isinstance(player, PlayerSpec) else ()


def _check_anchors(stage: Stage, plan: Plan) -> None:
    """A statistic of the policy at the start of a batch cannot be computed anew, so what else it reads must stay till its end."""
    anchors = {a.name: a for a in stage.learner.anchors}
    if not stage.samples and any(a.privileged for a in stage.learner.anchors):
        raise ConfigError(
            f"{type(stage).__name__}.learner.anchors: given rows have no privileged prompts to read; give privileged anchors to "
            "Reinforce only"
        )
    for forward in plan.forwards:
        read = () if forward.stat is None or not forward.stat.models else (forward.model, *forward.stat.models)
        for anchor in (anchors[name] for name in read if name in anchors):
            if forward.when == "batch" and not anchor.refresh.rests(stage.updates):
                raise ConfigError(
                    f"LearnerSettings.anchors: {anchor.name!r} with {anchor.refresh} moves amid the {stage.updates} updates of a "
                    f"rollout batch, for whose length {forward.column!r} needs it as it was: let it move after a multiple of "
                    f"{stage.updates} steps"
                )


def _check_routing(stage: Stage) -> None:
    """Given rows were sampled by no engine of ours, so there is no routing to replay."""
    if stage.learner.replay_routing and not stage.samples:
        raise ConfigError(
            f"{type(stage).__name__}.learner.replay_routing: no engine sampled these rows; leave it to the Reinforce stages"
        )


def _first_tasks(source: TaskSource, levels: Levels, split: str) -> Iterator[Task]:
    for arm, of_arm in arms_of(source, levels).items():
        for level in of_arm:
            for index in range(_count(source, arm, level, split)):
                yield source.task(arm, level, split, index)


def _count(source: TaskSource, arm: str, level: int, split: str) -> int:
    size: Callable[[str, int, str], int] | None = getattr(source, "size", None)
    return size(arm, level, split) if size is not None else PROBES


def _check_prompt(run: Run, task: Task, tokenizer: Tokenizer, new: int, context: int, whose: str = "model's") -> int:
    """Tokens of a task's prompt."""
    try:
        tokens = len(tokenizer.render(task.public_view().messages))
    except DataError as error:
        raise DataError(f"task {task.id!r} (arm {task.arm!r}, level {task.level}): {error}") from None
    if tokens + new > context:
        raise ConfigError(
            f"task {task.id!r} (arm {task.arm!r}, level {task.level}) has a prompt of {tokens} tokens; with "
            f"Run.sampling.max_new_tokens={new} that exceeds the {whose} context of {context}: "
            + (_told_of_tools(run.tasks, task, tokenizer, tokens, context - new) or "lower max_new_tokens, leave the level out,")
            + f" or {more_positions(run.model, tokens + new) or 'use a model with more positions'}"
        )
    return tokens


def _told_of_tools(tasks: TaskSource, task: Task, tokenizer: Tokenizer, tokens: int, most: int) -> str:
    """How much of a prompt describes a stage's tools, and what to do; "" where it has none."""
    if not isinstance(tasks, ToolSource):
        return ""
    bare = len(tokenizer.render(tasks.source.task(task.arm, task.level, task.split, task.index).public_view().messages))
    names, described = ", ".join(str(tool.schema["name"]) for tool in tasks.tools), tokens - bare
    if described > most:
        return f"the description of the tools {names} alone has {described} tokens, so no task fits; shorten their docstrings,"
    return f"{described} tokens describe the tools {names}; shorten their docstrings, lower max_new_tokens, leave the level out,"


class _Fits:
    """Which prompts surely fit, without a look at their tokens: a token is a character at least, where all are ASCII, and the
    template writes around one user's text what it writes around another.
    """

    def __init__(self) -> None:
        self._around = 0
        self._known: set[str] = set()

    def __call__(self, task: Task, most: int) -> bool:
        text: Any = task.public.get("prompt")
        if not self._around or not isinstance(text, str) or "tools" in task.public:
            return False
        return self._around + len(text) <= most and text.isascii() and self._known.issuperset(text)

    def note(self, task: Task, tokens: int) -> None:
        """A prompt of so many tokens was written; no template writes more around one."""
        text: Any = task.public.get("prompt")
        if isinstance(text, str) and "tools" not in task.public:
            self._around = max(self._around, tokens + _MORE)
            self._known.update(text)


_MORE = 8
"""Tokens by which two texts beside a template's may differ in how they join it."""


def _check_turns(run: Run, task: Task, tokenizer: Tokenizer) -> None:
    """A task that its own oracle cannot finish in the turns of a rollout would score 0 for ever, and nobody would know why.

    And the chat template must be able to write what the environment answers.
    """
    if run.tasks.environment(task.public_view()) is None:
        return
    if isinstance(tokenizer, ChatTokenizer) and (task.public.get("tools") or isinstance(run.tasks, ToolSource)):
        _check_heard(task, tokenizer)
    said = run.tasks.trace(task, 0.0, generator("turns", 0, task.id))
    needed = sum(message.role == "assistant" for message in said or ())
    allowed = max((s.sampler.max_turns or run.max_turns for s in run.stages if s.samples), default=run.max_turns)
    if needed > allowed:
        raise ConfigError(
            f"task {task.id!r} (arm {task.arm!r}, level {task.level}) takes its oracle {needed} turns, and Run.max_turns="
            f"{allowed} cuts every rollout off before: raise max_turns, or leave the level out"
        )
    if said:
        trace_row(run.tasks, task, AnswerReader.of(tokenizer), 0.0, run.seed, task.index)


def _check_heard(task: Task, tokenizer: ChatTokenizer) -> None:
    """What declared tools answer must be written behind a call, which no trace may show; and behind a thought where there are."""
    opening, tags = task.public_view().messages, tokenizer.thinking
    word = opening[-1].content  # what the tokenizer can write, as the prompt shows
    for said in (word, *((f"{tags.open}{tags.close}{word}",) if tags else ())):
        try:
            tokenizer.follow([*opening, Message("assistant", said)], [Message("tool", word)], True)
        except (ConfigError, DataError) as error:
            kind = DataError if isinstance(error, DataError) else ConfigError
            raise kind(f"task {task.id!r} (arm {task.arm!r}, level {task.level}), what its tools answer: {error}") from None


def _answer_check(verifier: Verifier, tokenizer: Tokenizer) -> Callable[[Task], None]:
    """A check that the policy can spell a task's answer, where it must be matched exactly; else one that passes everything."""
    match, missing_in = _exact_match(verifier), spelling_of(tokenizer)

    def check(task: Task) -> None:
        if match is None:
            return
        answer = expected_answer(task)
        missing = missing_in(answer.strip() if match.strip else answer)
        if missing:
            raise DataError(
                f"task {task.id!r} (arm {task.arm!r}, level {task.level}): its answer {shown(answer)} holds "
                f"{', '.join(map(repr, missing))}, which the model's tokenizer lacks, so that no rollout could ever match it "
                "exactly: use a model whose alphabet has them (Scratch.alphabet), leave the row out, or score it by a reward "
                "of your own"
            )

    return check


def _exact_match(verifier: Verifier) -> ExactMatch | None:
    """The exact match in a verifier; None where answers need not be matched, as far as one can see."""
    if isinstance(verifier, ExactMatch):
        return verifier
    parts = verifier.parts if isinstance(verifier, Together) else ()
    return next((found for part in parts if (found := _exact_match(part)) is not None), None)
