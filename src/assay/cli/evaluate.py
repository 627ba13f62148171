"""``assay eval`` and ``assay sample``: asking a run or a model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.cli.asked_model import RecordedRun, check_model, sampling_of
from assay.cli.evaluation_output import Evaluated, boundary_between, pairs_of, print_evaluations
from assay.cli.options import parse
from assay.cli.output import busy, note, show
from assay.cli.row_recipe import names_rows
from assay.cli.sources import held_out_rows, scorer, source
from assay.core.canon import plain
from assay.core.errors import ConfigError
from assay.core.protocols import TaskSource
from assay.train.levels import check_levels, taken_and_known

if TYPE_CHECKING:
    from assay.measure import CotPass

__all__ = ["eval_command", "sample_command"]

_ROLLOUTS = 16
_PER_LEVEL = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalOptions:
    """Measures held-out accuracy: unbiased pass@k, avg@k and maj@k by level and in all, with 95 % bootstrap intervals over tasks.
    A server is evaluated by its address; 'assay eval http://HOST:PORT/v1 --help' has its options.

    Attributes:
        model: a run folder, RUN@STEP or RUN/checkpoints/step_N for a checkpoint, or a model folder in Hugging Face format
            (RUN/start holds a run's starting weights).
        tasks: a task family, my_file.py:my_source, or rows (file, folder, hub:OWNER/NAME), all of which are taken; the
            run's own when not given, or those of the run of --against.
        reward: my_file.py:my_reward for rows; else a row's own verifier judges, or its answer is matched.
        n: sampled rollouts per task; 16 when not given.
        per_level: tasks per arm and level, 0 for all there are; as at the run's end, else 64, when not given.
        levels: levels to evaluate; all when not given.
        greedy: take the most likely answer to each task instead of samples.
        temperature: temperature of the samples; the run's own, else 1, when not given.
        top_p: draw from the fewest most likely tokens that have this much probability; the run's own, else 1, when not given.
        top_k: draw from so many most likely tokens, 0 for all; the run's own, else 0, when not given.
        min_p: leave out tokens less likely than this share of the most likely one; the run's own, else 0, when not given.
        max_new_tokens: most tokens in an answer; the run's own, else 64, when not given.
        against: another run or model to compare with on the same tasks; with the shares of tasks that only one of the two solves.
        reasoning_judge: address of a server of OpenAI's protocol, http://HOST:PORT/v1, whose model votes on the reasoning of
            right answers: CoT-Pass@K beside pass@k.
        reasoning_model: its name on that server.
        reasoning_votes: votes on each right answer.
        best_by: a verifier, reward or reward model that would choose among k answers, by name or my_file.py:my_reward: how often
            the answer that it takes is right, beside pass@k, which a perfect chooser reaches.
        seed: seed of the sampling noise and the intervals.
        json: print JSON, with the verdicts of every task.
    """

    model: Path = field(metadata={"positional": True, "arg": {"metavar": "RUN_OR_MODEL"}})
    tasks: str | None = field(default=None, metadata={"arg": {"metavar": "FAMILY"}})
    reward: str | None = field(default=None, metadata={"arg": {"metavar": "FILE.py:NAME"}})
    n: int | None = field(default=None, metadata={"arg": {"aliases": ["-n"]}})
    per_level: int | None = None
    levels: tuple[int, ...] = ()
    greedy: bool = False
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    max_new_tokens: int | None = None
    against: Path | None = None
    reasoning_judge: str | None = field(default=None, metadata={"arg": {"metavar": "URL"}})
    reasoning_model: str = "judge"
    reasoning_votes: int = 3
    best_by: str | None = field(default=None, metadata={"arg": {"metavar": "NAME"}})
    seed: int = 0
    json: bool = False

    def __post_init__(self) -> None:
        if self.reasoning_votes < 1:
            raise ConfigError(f"--reasoning-votes {self.reasoning_votes}: give at least 1 vote")
        if self.greedy and any(x is not None for x in (self.n, self.temperature, self.top_p, self.top_k, self.min_p)):
            raise ConfigError("--greedy gives the same answer every time: leave out --n, --temperature and the like, or --greedy")
        if self.best_by is not None and self.rollouts < 2:
            raise ConfigError(f"--best-by {self.best_by} chooses among several answers: give --n 2 or more, without --greedy")
        if self.n is not None and self.n < 1:
            raise ConfigError(f"--n {self.n}: give at least 1 rollout; --greedy takes the most likely answer")
        if self.per_level is not None and self.per_level < 0:
            raise ConfigError(f"--per-level {self.per_level}: give at least 1 task, or 0 for all that there are")
        if self.reward and not (self.tasks and names_rows(self.tasks)):
            raise ConfigError("--reward is for rows: give them too, as in --tasks heldout.parquet --reward my_file.py:my_reward")

    @property
    def rollouts(self) -> int:
        """As `assay.train.Policy.evaluate` counts them: 0 is greedy."""
        return 0 if self.greedy else self.n or _ROLLOUTS


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleOptions:
    """Prints a model's answers to a prompt.

    Attributes:
        model: a run folder, RUN@STEP, or a model folder in Hugging Face format.
        prompt: text of one user turn.
        n: how many answers.
        greedy: the most likely answer, as --temperature 0.
        temperature: 0 takes the most likely token; the run's own, else 1, when not given.
        top_p: draw from the fewest most likely tokens that have this much probability; the run's own, else 1, when not given.
        top_k: draw from so many most likely tokens, 0 for all; the run's own, else 0, when not given.
        min_p: leave out tokens less likely than this share of the most likely one; the run's own, else 0, when not given.
        max_new_tokens: most tokens in an answer; the run's own, else 64, when not given.
        seed: seed of the sampling noise.
        json: print JSON.
    """

    model: Path = field(metadata={"positional": True, "arg": {"metavar": "MODEL_OR_RUN"}})
    prompt: str = field(metadata={"positional": True, "arg": {"metavar": "PROMPT"}})
    n: int = field(default=1, metadata={"arg": {"aliases": ["-n"]}})
    greedy: bool = False
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    max_new_tokens: int | None = None
    seed: int = 0
    json: bool = False

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ConfigError(f"--n {self.n}: give at least 1 answer")
        if self.greedy and (self.n > 1 or any(x is not None for x in (self.temperature, self.top_p, self.top_k, self.min_p))):
            raise ConfigError("--greedy gives the same answer every time: leave out --n, --temperature and the like, or --greedy")


def sample_command(args: list[str]) -> int:
    """``assay sample MODEL_OR_RUN "prompt"``."""
    own = parse(SampleOptions, args, "assay sample")
    check_model(own.model)
    sampling = sampling_of(RecordedRun.of(own.model), own)
    from assay.train.policy import Policy

    answers = Policy(own.model).sample(own.prompt, own.n, sampling, own.seed, temperature=0.0 if own.greedy else None)
    return show(own.json, {"model": str(own.model), "prompt": own.prompt, "answers": answers}, lambda: print("\n".join(answers)))


def eval_command(args: list[str]) -> int:
    """``assay eval RUN_OR_MODEL``, or of a server, ``assay eval http://HOST:PORT/v1``."""
    if names_server(args):
        from assay.cli.evaluate_server import eval_server

        return eval_server(args)
    if (given := next((arg for arg in args if arg.partition("=")[0] == "--step"), None)) is not None:
        raise ConfigError(f"{given}: the model of an earlier checkpoint is named RUN@STEP, as in: assay eval {args[0]}@STEP")
    own = parse(EvalOptions, args, "assay eval")
    for path in (own.model, own.against) if own.against else (own.model,):
        check_model(path)
    run = RecordedRun.of(own.model)
    if run is None and own.tasks is None and own.against:  # a model from elsewhere beside a run: both at the run's tasks
        run = RecordedRun.of(own.against)
    family = _family(own, run)
    own = _with_count(own, family, run)
    made = _evaluate_path(own.model, own, family, run)
    if own.reasoning_judge:
        made = replace(made, reasoning=_reasoning(own, made, family))
    other = _evaluate_path(own.against, own, family, run) if own.against else None
    value = {"family": family.name, "per_level": own.per_level, "attempts": own.rollouts, "seed": own.seed, **made.json()}
    pairs = pairs_of(other, made) if other else []
    if other:
        from assay.measure import paired_json

        bounds = plain(boundary_between(other, made))
        value |= {"against": other.json(), "paired": paired_json(pairs), "boundary": bounds}
    return show(own.json, value, lambda: print_evaluations(family.name, made, other, pairs))


def names_server(args: list[str]) -> bool:
    """Whether the first argument that is no value of an option is a server's address."""
    return any(
        word.startswith(("http://", "https://")) and (n == 0 or args[n - 1] != "--reasoning-judge") for n, word in enumerate(args)
    )


def _reasoning(own: EvalOptions, made: Evaluated, family: TaskSource) -> CotPass:
    """Votes of a judge on the reasoning of right answers."""
    from assay.clients import Judge, JudgeClient, MemoryStore
    from assay.core.util.event_loop import run_async
    from assay.measure import cot_pass
    from assay.scorers import vote_on_reasoning
    from assay.train.evaluate import held_out
    from assay.verify.reward_function import prompt_of

    assert own.reasoning_judge is not None
    tasks = held_out(family, own.levels, own.per_level or _PER_LEVEL, "test")
    # several votes of a judge that always takes its most likely word would be one
    judge = Judge(url=own.reasoning_judge, model=own.reasoning_model, temperature=float(own.reasoning_votes > 1), seed=own.seed)
    threshold = made.table.threshold

    async def votes() -> list[dict[str, Any]]:
        client = JudgeClient(judge, MemoryStore())
        try:
            prompts = {task.id: prompt_of(task) for task in tasks}
            return await vote_on_reasoning(made.items, prompts, client, own.reasoning_votes, threshold)
        finally:
            await client.close()

    with busy(f"asking {own.reasoning_model} about the reasoning of right answers"):
        items = run_async(votes())
    return cot_pass([i for i in items if i["values"]], threshold, own.seed)


def _with_count(own: EvalOptions, family: TaskSource, run: RecordedRun | None) -> EvalOptions:
    """With the number of tasks per level; says how many of those there are it takes, where it leaves some out.

    Raises:
        ConfigError: all tasks of a family without end are asked for.
    """
    wanted = own.per_level
    if wanted is None:
        wanted = run.evaluation.final_per_level if run else _PER_LEVEL
    check_levels(family, own.levels, "levels")
    taken, known = taken_and_known(family, own.levels, wanted, "test")
    if known is None and not wanted:
        raise ConfigError(f"--per-level 0: {family.name} makes tasks without end; give a number")
    if known is not None and taken < known:
        note(f"{taken:,} of {known:,} held-out tasks of {family.name}; --per-level 0 takes all")
    return replace(own, per_level=wanted or known)


def _evaluate_path(path: Path, own: EvalOptions, family: TaskSource, run: RecordedRun | None) -> Evaluated:
    from assay.measure import selected_accuracy
    from assay.train.policy import Policy

    sampling = sampling_of(run, own)
    with busy(f"evaluating {path} on {family.name}"):
        items = Policy(path).evaluate(
            family,
            n=own.rollouts,
            per_level=own.per_level or _PER_LEVEL,
            levels=own.levels,
            sampling=sampling,
            seed=own.seed,
            best_by=scorer(own.best_by, {}) if own.best_by else None,
            **(run.limits if run else {}),
        )
    made = Evaluated.of(str(path), items, family, run.evaluation.threshold if run else 1.0, own.seed)
    return replace(made, selection=selected_accuracy(items, own.best_by, made.table.threshold, own.seed)) if own.best_by else made


def _family(own: EvalOptions, run: RecordedRun | None) -> TaskSource:
    from assay.tasks import families

    if own.tasks is not None:
        return held_out_rows(own.tasks, own.reward) if names_rows(own.tasks) else source(own.tasks)
    if run is None:
        known = ", ".join(families())
        raise ConfigError(
            f"{own.model} is no run, so it has no tasks of its own: compare it with a run, whose tasks it then gets (--against "
            f"RUN), or give --tasks, one of {known}, or my_file.py:my_source"
        )
    if run.tasks is None:
        raise ConfigError(f"the tasks of {own.model} cannot be loaded: {run.trouble}; give --tasks")
    return run.tasks
