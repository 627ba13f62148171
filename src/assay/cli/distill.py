"""``assay distill``: right answers of a teacher, as rows to imitate."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from assay.cli.options import parse
from assay.cli.output import lines, note, show
from assay.cli.run_request import missing
from assay.cli.sources import own_code, source
from assay.core.errors import ConfigError, EngineError, RewardError
from assay.core.protocols import TaskSource
from assay.train.levels import Levels, check_levels
from assay.train.models import model_folder

if TYPE_CHECKING:
    from assay.select import Distilled, Teacher

__all__ = ["distill_command"]

_N: dict[str, str] = {"metavar": "N"}
_SERVED = ("http://", "https://")


@dataclass(frozen=True, slots=True, kw_only=True)
class DistillOptions:
    """Has a teacher answer training tasks of a family, scores the answers with the family's verifier, and writes the right ones
    as JSON lines for a stage Imitate(data=OUT). Held-out tasks are never used. The same command continues a distillation that was
    stopped or killed; with a larger --per-level it adds tasks.

    Attributes:
        teacher: a run folder, a model folder in Hugging Face format, a name on the hub, or the address of a server that speaks
            OpenAI's protocol, up to and with /v1.
        name: a task family, one of its arms, or a suite ('assay tasks list' names them), rows.jsonl, or my_file.py:my_source.
        out: the file to write; the teacher's answers are kept in OUT.work.
        model: name of the model on the server.
        key: environment variable that holds the server's key; none is sent when not given.
        arm: only this arm; all when not given.
        level: only this level; all when not given.
        per_level: different tasks of each arm and level.
        n: answers to each task.
        keep: most right answers kept of each task, all different.
        prefer: which of them: the first ones, or the shortest.
        threshold: an answer is right from this value of the verifier's on.
        thoughts: the teacher's thoughts are kept, between its tags; with --no-thoughts they are left out.
        temperature: of its answers; 0 takes the most likely token.
        max_new_tokens: most tokens in an answer; when not given, 2048 of a server's, else 512, or half the model's context.
        seed: of the sampling noise of a model on this machine.
        at_once: tasks that are asked at the same time; behind each such block the work is saved.
        requests: most requests to the server at once.
        seconds: what the server has for one answer, waiting and retries included.
        json: print the counts as JSON.
    """

    teacher: str = field(metadata={"positional": True, "arg": {"metavar": "TEACHER"}})
    name: str = field(metadata={"positional": True, "arg": {"metavar": "FAMILY"}})
    out: Path = field(metadata={"positional": True, "arg": {"metavar": "OUT"}})
    model: str = field(default="", metadata={"arg": {"metavar": "NAME"}})
    key: str = field(default="", metadata={"arg": {"metavar": "VARIABLE"}})
    arm: str | None = field(default=None, metadata={"arg": {"metavar": "ARM"}})
    level: int | None = field(default=None, metadata={"arg": _N})
    per_level: int = field(default=64, metadata={"arg": _N})
    n: int = field(default=4, metadata={"arg": {"metavar": "N", "aliases": ["-n"]}})
    keep: int = field(default=1, metadata={"arg": _N})
    prefer: Literal["first", "shortest"] = "first"
    threshold: float = 1.0
    thoughts: bool = True
    temperature: float = 1.0
    max_new_tokens: int | None = field(default=None, metadata={"arg": _N})
    seed: int = field(default=0, metadata={"arg": _N})
    at_once: int = field(default=32, metadata={"arg": _N})
    requests: int = field(default=16, metadata={"arg": _N})
    seconds: float = 300.0
    json: bool = False


def distill_command(args: list[str]) -> int:
    """``assay distill TEACHER FAMILY OUT``."""
    own = parse(DistillOptions, args, "assay distill")
    teacher, family = _teacher(own), source(own.name)
    levels = _levels(own, family)
    from assay.select import Distillation

    with own_code(own.name):
        made = Distillation(
            teacher=teacher,
            tasks=family,
            levels=levels,
            per_level=own.per_level,
            answers=own.n,
            keep=own.keep,
            prefer=own.prefer,
            threshold=own.threshold,
            thoughts=own.thoughts,
            at_once=own.at_once,
        )
        try:
            with _progress() as tell:
                found = made.run(own.out, tell)
        except KeyboardInterrupt:
            note(f"stopped; what was answered is kept in {own.out}.work: the same command continues")
            return 130
        except (EngineError, RewardError) as error:
            note(f"assay: {error}")
            note(f"what was answered is kept in {own.out}.work: the same command continues")
            return 1
    show(own.json, asdict(found) | {"out": str(found.out)}, lambda: _text(found))
    return 0 if found.rows else 1


def _text(found: Distilled) -> None:
    counts = {name.replace("_", " "): n for name, n in found.counts.items() if n and name != "asked"}
    lines(
        {
            str(found.out): f"{found.rows:,} rows to imitate: Imitate(data={str(found.out)!r})",
            "tasks": f"{found.tasks:,}, {found.solved:,} of them answered rightly",
            "attempts": f"{found.counts['asked']:,}: {', '.join(f'{n:,} {name}' for name, n in counts.items())}",
        }
    )
    if found.again:
        note(
            f"{found.again} tasks had rollouts without an answer or a verdict, and no right one: the same command asks them again"
        )


def _teacher(own: DistillOptions) -> Teacher:
    if not own.teacher.startswith(_SERVED):
        for name in ("model", "key"):
            if getattr(own, name):
                raise ConfigError(f"--{name} is of a server, and {own.teacher} is a model on this machine: leave it out")
        missing(Path(own.teacher))
        model_folder(Path(own.teacher))
        from assay.select import ModelTeacher

        return ModelTeacher(model=own.teacher, temperature=own.temperature, max_new_tokens=own.max_new_tokens, seed=own.seed)
    if not own.model:
        raise ConfigError(f"{own.teacher} is a server; say which of its models to ask: --model NAME")
    if own.seed:
        raise ConfigError(f"--seed {own.seed} is of a model on this machine; a server draws as it likes: leave it out")
    from assay.clients.openai_client import OpenAIClient
    from assay.select import ServerTeacher

    client = OpenAIClient(own.teacher, own.model, own.key, concurrency=own.requests, seconds=own.seconds)
    return ServerTeacher(client=client, temperature=own.temperature, max_new_tokens=own.max_new_tokens or 2048)


def _levels(own: DistillOptions, family: TaskSource) -> Levels:
    some = () if own.level is None else (own.level,)
    check_levels(family, some, "--level")
    if own.arm is None:
        return some
    found: Levels = {own.arm: some or tuple(family.arms().get(own.arm, ()))}
    check_levels(family, found, "--arm")
    return found


@contextmanager
def _progress() -> Generator[Callable[[int, int, int], None]]:
    """A bar on a terminal, a line for each tenth elsewhere."""
    if not sys.stderr.isatty():
        said = -1

        def line(done: int, of: int, solved: int) -> None:
            nonlocal said
            if 10 * done // of > said:
                said = 10 * done // of
                note(f"assay distill: {done:,} of {of:,} tasks, {solved:,} answered rightly")

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    parts = (BarColumn(), MofNCompleteColumn(), TextColumn("tasks, {task.fields[solved]:,} answered rightly"))
    with Progress(*parts, TimeRemainingColumn(), console=Console(stderr=True)) as bars:
        task = bars.add_task("tasks", total=None, solved=0)
        yield lambda done, of, solved: bars.update(task, completed=done, total=of, solved=solved)
