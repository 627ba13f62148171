"""``assay eval http://HOST:PORT/v1``: held-out accuracy of a model behind any server that speaks OpenAI's protocol."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.cli.evaluation_output import Evaluated, boundary_between, pairs_of, print_evaluations
from assay.cli.options import parse
from assay.cli.output import note, show
from assay.cli.row_recipe import names_rows
from assay.cli.sources import held_out_rows, own_code, source
from assay.core.canon import plain
from assay.core.errors import ConfigError, DataError, EngineError
from assay.core.protocols import TaskSource
from assay.core.rollout import Sampling
from assay.core.util.event_loop import run_async

if TYPE_CHECKING:
    from assay.clients.openai_client import OpenAIClient
    from assay.train.served_evaluation import ServedEvaluation, ServedOutcome

__all__ = ["eval_server"]

_MOST = 2048
"""Tokens of an answer, at most, where nobody says how many."""
_N: dict[str, str] = {"metavar": "N"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedEvalOptions:
    """Measures held-out accuracy of a model behind a server with OpenAI's protocol, as 'assay eval' of a model on this machine.
    What a server does not answer is missing, neither right nor wrong; with more than --max-missing of it the exit code is 1. The
    same command with the same --out asks only for what is missing.

    Attributes:
        url: the server's address, up to and with /v1.
        model: name of the model on the server.
        api_key_env: environment variable that holds the server's key; none is sent when not given.
        tasks: a task family ('assay tasks list' names them), my_file.py:my_source, or rows (file, folder, hub:OWNER/NAME), all of
            which are taken.
        rows: a file of rows, as --tasks FILE.
        reward: my_file.py:my_reward for rows; else a row's own verifier judges, or its answer is matched.
        n: sampled answers per task; 16 when not given.
        per_level: tasks per arm and level; 64, or all rows, when not given.
        levels: levels to evaluate; all when not given.
        greedy: take the most likely answer to each task instead of samples.
        temperature: of the samples.
        top_p: draw from the fewest most likely tokens that have this much probability; left to the server when not given.
        max_new_tokens: most tokens in an answer; 2048, or half of the context that the server names, when not given.
        max_turns: answers per task, in families with an environment.
        out: a file that every judged answer is written into at once.
        against: a file of such answers, or a run or model folder, to compare with on the same tasks.
        concurrency: most requests at once.
        seconds: what the server has for one answer, further attempts included.
        attempts: how often one request is sent, where the server is busy or fails.
        max_missing: share of answers that may be missing.
        seed: seed of the intervals.
        json: print JSON, with the verdicts of every task.
    """

    url: str = field(metadata={"positional": True, "arg": {"metavar": "URL"}})
    model: str = field(default="", metadata={"arg": {"metavar": "NAME"}})
    api_key_env: str = field(default="", metadata={"arg": {"metavar": "VARIABLE"}})
    tasks: str | None = field(default=None, metadata={"arg": {"metavar": "FAMILY"}})
    rows: str | None = field(default=None, metadata={"arg": {"metavar": "FILE"}})
    reward: str | None = field(default=None, metadata={"arg": {"metavar": "FILE.py:NAME"}})
    n: int | None = field(default=None, metadata={"arg": {"metavar": "N", "aliases": ["-n"]}})
    per_level: int | None = field(default=None, metadata={"arg": _N})
    levels: tuple[int, ...] = ()
    greedy: bool = False
    temperature: float | None = None
    top_p: float | None = None
    max_new_tokens: int | None = field(default=None, metadata={"arg": _N})
    max_turns: int = field(default=8, metadata={"arg": _N})
    out: Path | None = field(default=None, metadata={"arg": {"metavar": "FILE"}})
    against: Path | None = field(default=None, metadata={"arg": {"metavar": "FILE_OR_MODEL"}})
    concurrency: int = field(default=16, metadata={"arg": _N})
    seconds: float = 300.0
    attempts: int = field(default=6, metadata={"arg": _N})
    max_missing: float = 0.01
    seed: int = 0
    json: bool = False

    def __post_init__(self) -> None:
        if not self.model:
            raise ConfigError(f"{self.url} is a server; say which of its models to ask: --model NAME")
        if (self.tasks is None) == (self.rows is None):
            raise ConfigError("say what is asked: --tasks FAMILY ('assay tasks list' names them), or --tasks FILE of rows")
        if self.reward and not (self.rows or names_rows(self.tasks or "")):
            raise ConfigError("--reward is for rows: give them too, as in --tasks heldout.jsonl --reward my_file.py:my_reward")
        if self.greedy and any(x is not None for x in (self.n, self.temperature, self.top_p)):
            raise ConfigError("--greedy takes the same answer every time: leave out --n, --temperature and --top-p, or --greedy")
        for name in ("n", "per_level", "max_turns"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"--{name.replace('_', '-')} {value}: give at least 1")
        if not 0.0 <= self.max_missing <= 1.0:
            raise ConfigError(f"--max-missing {self.max_missing}: give a share from 0 to 1")
        try:
            Sampling(
                temperature=self.temperature or 0.0,
                top_p=1.0 if self.top_p is None else self.top_p,
                max_new_tokens=_MOST if self.max_new_tokens is None else self.max_new_tokens,
            )
        except DataError as error:
            raise ConfigError(str(error)) from None

    @property
    def answers(self) -> int:
        """To each task."""
        return 1 if self.greedy else self.n or 16


def eval_server(args: list[str]) -> int:
    """``assay eval URL``."""
    own = parse(ServedEvalOptions, args, "assay eval")
    own = replace(own, max_new_tokens=_most_new_tokens(own))
    word = own.tasks or own.rows or ""
    if own.rows or names_rows(word):
        from assay.train.levels import taken_and_known

        rows = held_out_rows(word, own.reward)
        return _evaluate(own, rows, own.per_level or taken_and_known(rows, own.levels, 0, "test")[1] or 0)
    with own_code(word):
        return _evaluate(own, source(word), own.per_level or 64)


def _most_new_tokens(own: ServedEvalOptions) -> int:
    """As given; else `_MOST`, or half of the context that the server names where that is less."""
    if own.max_new_tokens is not None:
        return own.max_new_tokens
    client = _client(own)

    async def count_asked() -> int | None:
        try:
            return await client.context_length()
        finally:
            await client.close()

    context = run_async(count_asked())
    if context is None or context >= 2 * _MOST:
        return _MOST
    note(f"answers of at most {context // 2} tokens: half of the server's context of {context}; --max-new-tokens says otherwise")
    return max(1, context // 2)


def _evaluate(own: ServedEvalOptions, family: TaskSource, per_level: int) -> int:
    from assay.train.evaluate import held_out
    from assay.train.levels import check_levels
    from assay.train.served_evaluation import JudgedRolloutFile, read_judged_rollouts
    from assay.verify import ScoringPool

    check_levels(family, own.levels, "--levels")
    before = read_judged_rollouts(own.against) if own.against is not None and own.against.is_file() else None
    made = _evaluation(own, family, held_out(family, own.levels, per_level))
    file = JudgedRolloutFile(own.out, _question_settings(own, family, per_level))
    try:
        with ScoringPool(made.tasks.verifier(), refuse=False) as pool, _progress() as tell:
            outcome = run_async(made.run(file, pool, tell))
    except KeyboardInterrupt:
        note(
            f"stopped; what was judged is in {own.out}: the same command continues" if own.out else "stopped; --out FILE keeps it"
        )
        return 130
    finally:
        file.close()
    _tell_missing(own, outcome)
    found = Evaluated.of(own.model, [dict(i) for i in outcome.items], family, 1.0, own.seed)
    other = _other(own, family, before, per_level)
    pairs = pairs_of(other, found) if other else []
    value = {"family": family.name, "per_level": per_level, "attempts": own.answers, "seed": own.seed, "url": own.url}
    value |= {"missing": outcome.missing, "asked": outcome.asked, **found.json()}
    if other:
        from assay.measure import paired_json

        bounds = plain(boundary_between(other, found))
        value |= {"against": other.json(), "paired": paired_json(pairs), "boundary": bounds}
    show(own.json, value, lambda: print_evaluations(family.name, found, other, pairs))
    return 1 if _too_many(own, outcome) else 0


def _evaluation(own: ServedEvalOptions, family: TaskSource, items: Any) -> ServedEvaluation:
    from assay.train.served_evaluation import ServedEvaluation
    from assay.train.server_player import ServerPlayer

    player = ServerPlayer(
        client=_client(own),
        temperature=_temperature(own),
        max_new_tokens=own.max_new_tokens or _MOST,
        max_turns=own.max_turns,
        more={} if own.top_p is None else {"top_p": own.top_p},
    )
    return ServedEvaluation(player=player, tasks=family, items=items, n=own.answers, concurrency=own.concurrency)


def _client(own: ServedEvalOptions) -> OpenAIClient:
    from assay.clients.openai_client import OpenAIClient

    return OpenAIClient(
        own.url, own.model, own.api_key_env, concurrency=own.concurrency, seconds=own.seconds, attempts=own.attempts
    )


def _temperature(own: ServedEvalOptions) -> float:
    return 0.0 if own.greedy else 1.0 if own.temperature is None else own.temperature


def _question_settings(own: ServedEvalOptions, family: TaskSource, per_level: int) -> dict[str, Any]:
    """What decides the attempts; where the server is may change."""
    return {
        "model": own.model,
        "tasks": family.name,
        "levels": list(own.levels),
        "per_level": per_level,
        "n": own.answers,
        "temperature": _temperature(own),
        "top_p": own.top_p,
        "max_new_tokens": own.max_new_tokens,
        "max_turns": own.max_turns,
        **({"reward": own.reward} if own.reward else {}),
    }


def _other(own: ServedEvalOptions, family: TaskSource, before: list[dict[str, Any]] | None, per_level: int) -> Evaluated | None:
    if own.against is None:
        return None
    if before is None:
        from assay.cli.asked_model import RecordedRun, check_model, sampling_of
        from assay.train.policy import Policy

        check_model(own.against)
        run = RecordedRun.of(own.against)
        before = Policy(own.against).evaluate(
            family,
            n=0 if own.greedy else own.answers,
            per_level=per_level,
            levels=own.levels,
            sampling=sampling_of(run, _Drawn(temperature=own.temperature, top_p=own.top_p)),
            seed=own.seed,
            **(run.limits if run else {}),
        )
    return Evaluated.of(str(own.against), before, family, 1.0, own.seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """How a model on this machine draws that a server's is compared with: its own way, but for what was said."""

    temperature: float | None
    top_p: float | None
    top_k: int | None = None
    min_p: float | None = None
    max_new_tokens: int | None = None


def _too_many(own: ServedEvalOptions, outcome: ServedOutcome) -> bool:
    return outcome.missing > own.max_missing * outcome.asked


def _tell_missing(own: ServedEvalOptions, outcome: ServedOutcome) -> None:
    """Says what is missing, and why.

    Raises:
        EngineError: everything.
    """
    if not outcome.missing:
        return
    reasons = sorted(outcome.reasons.items(), key=lambda pair: -pair[1])
    why = "; ".join(f"{count}: {reason}" for reason, count in reasons[:3])
    if outcome.missing == outcome.asked:
        raise EngineError(f"{own.url} answered none of {outcome.asked} requests: {why}")
    rest = (
        f"the same command asks for them again (--out {own.out})"
        if own.out
        else "with --out FILE a second run asks for them alone"
    )
    share = "more than --max-missing allows, so this is no result" if _too_many(own, outcome) else "they are left out"
    note(f"{outcome.missing} of {outcome.asked} answers are missing, neither right nor wrong: {share}; {rest}\n{why}")


@contextmanager
def _progress() -> Generator[Callable[[int, int, int], None]]:
    """A bar on a terminal, a line for each tenth elsewhere."""
    if not sys.stderr.isatty():
        said = 0

        def line(done: int, of: int, missing: int) -> None:
            nonlocal said
            if 10 * done // of > said:
                said = 10 * done // of
                note(f"assay eval: {done:,} of {of:,} answers" + (f", {missing:,} missing" if missing else ""))

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    parts = (BarColumn(), MofNCompleteColumn(), TextColumn("answers, {task.fields[missing]:,} missing"))
    with Progress(*parts, TimeRemainingColumn(), console=Console(stderr=True)) as bars:
        task = bars.add_task("answers", total=None, missing=0)
        yield lambda done, of, missing: bars.update(task, completed=done, total=of, missing=missing)
