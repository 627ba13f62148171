"""``assay eval`` and ``assay sample``: asking a run or a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.cli.options import parse
from assay.cli.output import busy, grid, note, show, table
from assay.cli.row_recipe import names_rows
from assay.cli.run_request import missing, recorded
from assay.cli.sources import held_out_rows, source
from assay.core.config import from_dict, loads_toml
from assay.core.errors import ConfigError, DataError, RewardError
from assay.core.protocols import TaskSource
from assay.core.rollout import Sampling
from assay.train.levels import check_levels, taken_and_known
from assay.train.models import model_folder

if TYPE_CHECKING:
    from assay.measure import EvalRow, EvalTable, Interval, Paired
    from assay.train.run import Evaluation

__all__ = ["eval_command", "sample_command"]

_ATTEMPTS = 16
_PER_LEVEL = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalOptions:
    """Measures held-out accuracy: unbiased pass@k, avg@k and maj@k by level and in all, with 95 % bootstrap intervals over tasks.

    Attributes:
        model: a run folder, or a model folder in Hugging Face format (RUN/start holds a run's starting weights).
        tasks: a task family, my_file.py:my_source, or rows (file, folder, hub:OWNER/NAME), all of which are taken; a run's own
            family when not given.
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
        against: another run or model to compare with on the same tasks.
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
    seed: int = 0
    json: bool = False

    def __post_init__(self) -> None:
        if self.greedy and any(x is not None for x in (self.n, self.temperature, self.top_p, self.top_k, self.min_p)):
            raise ConfigError("--greedy gives the same answer every time: leave out --n, --temperature and the like, or --greedy")
        if self.n is not None and self.n < 1:
            raise ConfigError(f"--n {self.n}: give at least 1 rollout; --greedy takes the most likely answer")
        if self.per_level is not None and self.per_level < 0:
            raise ConfigError(f"--per-level {self.per_level}: give at least 1 task, or 0 for all that there are")
        if self.reward and not (self.tasks and names_rows(self.tasks)):
            raise ConfigError("--reward is for rows: give them too, as in --tasks heldout.parquet --reward my_file.py:my_reward")

    @property
    def attempts(self) -> int:
        """As `assay.train.Policy.evaluate` counts them: 0 is greedy."""
        return 0 if self.greedy else self.n or _ATTEMPTS


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleOptions:
    """Prints a model's answers to a prompt.

    Attributes:
        model: a run folder, or a model folder in Hugging Face format.
        prompt: text of one user turn.
        n: how many answers.
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


def sample_command(args: list[str]) -> int:
    """``assay sample MODEL_OR_RUN "prompt"``."""
    own = parse(SampleOptions, args, "assay sample")
    _found(own.model)
    sampling = _sampling(_Recorded.of(own.model), own)
    from assay.train.policy import Policy

    answers = Policy(own.model).sample(own.prompt, own.n, sampling, own.seed)
    return show(own.json, {"model": str(own.model), "prompt": own.prompt, "answers": answers}, lambda: print("\n".join(answers)))


def eval_command(args: list[str]) -> int:
    """``assay eval RUN_OR_MODEL``."""
    own = parse(EvalOptions, args, "assay eval")
    for path in (own.model, own.against) if own.against else (own.model,):
        _found(path)
    run = _Recorded.of(own.model)
    family = _family(own, run)
    own = _with_count(own, family, run)
    made = _Evaluated.of(own.model, own, family, run)
    other = _Evaluated.of(own.against, own, family, run) if own.against else None
    value = {"family": family.name, "per_level": own.per_level, "attempts": own.attempts, "seed": own.seed, **made.json()}
    pairs = _pairs(other, made) if other else []
    if other:
        from assay.measure import paired_json

        value |= {"against": other.json(), "paired": paired_json(pairs)}
    return show(own.json, value, lambda: _text(family, made, other, pairs))


def _with_count(own: EvalOptions, family: TaskSource, run: _Recorded | None) -> EvalOptions:
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


def _found(path: Path) -> None:
    """Refuses what is neither a model nor a run with one, before anything slow is loaded."""
    missing(path)
    model_folder(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evaluated:
    """One model's evaluation."""

    path: Path
    table: EvalTable
    items: Sequence[dict[str, Any]]

    @classmethod
    def of(cls, path: Path, own: EvalOptions, family: TaskSource, run: _Recorded | None) -> _Evaluated:
        from assay.measure import eval_items, tabulate
        from assay.train.policy import Policy

        sampling = _sampling(run, own)
        with busy(f"evaluating {path} on {family.name}"):
            items = Policy(path).evaluate(
                family,
                n=own.attempts,
                per_level=own.per_level or _PER_LEVEL,
                levels=own.levels,
                sampling=sampling,
                seed=own.seed,
                **(run.limits if run else {}),
            )
        judged = [i for i in items if i["values"]]
        if not judged:
            raise RewardError(f"no rollout of {family.name} got a verdict: its verifier failed on all; try 'assay tasks check'")
        threshold = run.evaluation.threshold if run else 1.0
        return cls(path=path, table=tabulate(eval_items(judged), threshold=threshold, seed=own.seed), items=items)

    @property
    def faults(self) -> int:
        return sum(i["faults"] for i in self.items)

    def json(self) -> dict[str, Any]:
        from assay.measure import evaluation_json

        return {"model": str(self.path), "faults": self.faults, **evaluation_json(self.table)}


def _pairs(first: _Evaluated, second: _Evaluated) -> list[tuple[str, Paired]]:
    """Second minus first on the same tasks: every metric over all tasks, and the mean verdict by (arm, level)."""
    from assay.measure import paired

    def scores(made: _Evaluated, name: str, cell: tuple[str | None, int | None] | None = None) -> dict[str, float]:
        return {t.name: t.metrics[name].value for t in made.table.tasks if cell is None or (t.arm, t.level) == cell}

    shared = [n for n in second.table.names if n in first.table.names]
    if not shared:
        raise RewardError("the two evaluations have no metric in common: faults left them different numbers of rollouts")
    cells = [(c.name, (c.arm, c.level)) for c in second.table.cells] if len(second.table.cells) > 1 else []
    wanted = [(f"all {n}", n, None) for n in shared] + [(f"{name} {shared[0]}", shared[0], cell) for name, cell in cells]
    out: list[tuple[str, Paired]] = []
    for name, metric, cell in wanted:
        one, two = scores(first, metric, cell), scores(second, metric, cell)
        if one.keys() & two.keys():
            out.append((name, paired(one, two)))
    return out


def _text(family: TaskSource, made: _Evaluated, other: _Evaluated | None, pairs: Sequence[tuple[str, Paired]]) -> None:
    """By level the metrics at the most rollouts; over all tasks those of every k. Wider tables would not fit a terminal."""
    from assay.measure import evaluation_table, paired_table

    for one in (made, other) if other else (made,):
        print(f"{one.path} on {family.name}, 95 % intervals over tasks")
        chosen = _widest(one.table.names)
        table(evaluation_table(_only(one.table, chosen)))
        if len(chosen) < len(one.table.names):
            _by_k(one.table)
        if one.faults:
            note(f"{one.path}: {one.faults} rollouts without a verdict (the verifier or the machine failed); they are left out")
    if other:
        print(f"{made.path} minus {other.path}, on the same tasks")
        chosen = _widest(made.table.names)
        table(paired_table([(n, p) for n, p in pairs if not n.startswith("all ") or n.removeprefix("all ") in chosen]))


def _widest(names: Sequence[str]) -> list[str]:
    """Of each kind of metric (avg, pass, maj, best) the one with the most rollouts; pass@1 says what avg says."""
    last = {name.partition("@")[0]: name for name in names if name != "pass@1"}
    return list(last.values())


def _only(found: EvalTable, names: Sequence[str]) -> EvalTable:
    def cut(row: EvalRow) -> EvalRow:
        return replace(row, metrics={n: row.metrics[n] for n in names})

    return replace(found, total=cut(found.total), cells=tuple(map(cut, found.cells)), tasks=tuple(map(cut, found.tasks)))


def _by_k(found: EvalTable) -> None:
    """One row per k, over all tasks."""
    kinds = list(dict.fromkeys(n.partition("@")[0] for n in found.names if not n.startswith("avg")))
    ks = sorted({int(n.partition("@")[2]) for n in found.names if not n.startswith("avg")})
    values = found.total.metrics
    rows = [[k, *(_interval_text(values.get(f"{kind}@{k}")) for kind in kinds)] for k in ks]
    grid(("k", *(f"{kind}@k, all" for kind in kinds)), rows, range(len(kinds) + 1))


def _interval_text(x: Interval | None) -> str:
    return f"{x.value:.3f} ({x.low:.3f}, {x.high:.3f})" if x else "–"


def _family(own: EvalOptions, run: _Recorded | None) -> TaskSource:
    from assay.tasks import families

    if own.tasks is not None:
        return held_out_rows(own.tasks, own.reward) if names_rows(own.tasks) else source(own.tasks)
    if run is None:
        known = ", ".join(families())
        raise ConfigError(
            f"{own.model} is no run, so it has no tasks of its own: give --tasks, one of {known}, or my_file.py:my_source"
        )
    if run.tasks is None:
        raise ConfigError(f"the tasks of {own.model} cannot be loaded: {run.trouble}; give --tasks")
    return run.tasks


_LIMITS = {"max_turns": "max_turns", "reward_deadline": "deadline", "environment_deadline": "environment_deadline"}
"""Field of a run to its name in `Policy.evaluate`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recorded:
    """What a run folder says about how its model is asked.

    Attributes:
        sampling, evaluation: its own.
        limits: turns, deadlines and what plays, by their names in `Policy.evaluate`; those that are not the default.
        tasks: its family.
        trouble: why its tasks cannot be loaded, if they cannot.
    """

    sampling: Sampling
    evaluation: Evaluation
    limits: Mapping[str, Any]
    tasks: TaskSource | None
    trouble: str = ""

    @classmethod
    def of(cls, path: Path) -> _Recorded | None:
        """Of a run folder, or of a model folder inside one; None for a model from elsewhere."""
        folder = next((f for f in (path, path.parent) if (f / "run.toml").exists()), None)
        if folder is None:
            return None
        try:
            run = recorded(folder)
        except ConfigError as error:  # a reward from a script or notebook: the model can be asked all the same
            from assay.train.run import Evaluation

            table = loads_toml((folder / "run.toml").read_text(encoding="utf-8"))
            sampling = from_dict(Sampling, table.get("sampling", {}))
            evaluation = from_dict(Evaluation, table.get("evaluation", {}))
            limits = {name: table[field] for field, name in _LIMITS.items() if field in table}
            return cls(sampling=sampling, evaluation=evaluation, limits=limits, tasks=None, trouble=str(error))
        limits: dict[str, Any] = {name: getattr(run, field) for field, name in _LIMITS.items()}
        samplers = [stage.sampler for stage in run.stages if stage.samples]
        limits |= {"player": samplers[-1].player} if samplers else {}
        return cls(sampling=run.sampling, evaluation=run.evaluation, limits=limits, tasks=run.tasks)


def _sampling(run: _Recorded | None, own: EvalOptions | SampleOptions) -> Sampling | None:
    """How to draw: the run's way with what the person changed; None leaves all to the model's own limits."""
    names = ("temperature", "top_p", "top_k", "min_p", "max_new_tokens")
    changed = {name: getattr(own, name) for name in names if getattr(own, name) is not None}
    if run is None and not changed:
        return None
    try:
        return replace(run.sampling if run else Sampling(), **changed)
    except DataError as error:
        raise ConfigError(str(error)) from None
