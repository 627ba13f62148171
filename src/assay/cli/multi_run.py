"""``assay train RECIPE --seeds 5``: the runs of several seeds, or of several settings, side by side."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from assay.cli.output import cell, grid, note
from assay.cli.preflight import check
from assay.cli.recipe import settle
from assay.cli.study_views import PlainStudyView, StudyTable
from assay.cli.tracker_options import split_words
from assay.cli.train_options import TrainOptions
from assay.core.errors import AssayError, CheckpointError, ConfigError
from assay.lab.seeds import StudyRun, check_members, run_all, same_run
from assay.lab.summary import Mean, RunEnding, State, differences, means
from assay.measure.intervals import Interval
from assay.runs import lock, storage
from assay.train.progress_view import say
from assay.train.record import fresh_folder

__all__ = ["STUDY", "Study", "resume_all", "train_many"]

STUDY = "study.json"
"""How the runs of a folder were asked for."""

OWN = {"seeds": 1, "vary": sys.maxsize, "at-once": 1, "folder": 1, "allow-inexact": 0}
"""Options that are about all runs, and how many values each may have."""

ENOUGH = 5
"""Seeds from which on a comparison is worth something, as `assay.lab.Comparison` asks for."""

VIEWS = ("plain", "tensorboard", "wandb", "no-report", "profile")


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """``study.json``: the words of the command line, and of those before it whose runs it does not name."""

    recipe: str
    args: tuple[str, ...]
    earlier: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def read(cls, folder: Path) -> Study | None:
        """That of a folder; None where there is none.

        Raises:
            CheckpointError: it is damaged.
        """
        path = folder / STUDY
        if not path.exists():
            return None
        found: Any = storage.read_json(path)
        try:
            args, *earlier = (tuple(map(str, words)) for words in (found["args"], *found.get("earlier", ())))
            return cls(recipe=str(found["recipe"]), args=args, earlier=tuple(earlier))
        except (KeyError, TypeError) as error:
            raise CheckpointError(f"{path} is damaged ({error!r}); remove it: the runs beside it are whole") from None

    @property
    def settings(self) -> tuple[str, tuple[str, ...]]:
        """What the runs have in common, whichever seeds are asked for and however they are shown."""
        words = split_words(shared_words(self.args))[1]
        return self.recipe, tuple(w for w in words if w.removeprefix("--").replace("_", "-") not in VIEWS)


def train_many(recipe: str, args: Sequence[str], own: TrainOptions) -> int:
    """Runs all; 0 when every run finished, 1 when one failed, 130 when they were stopped.

    Args:
        recipe, args: the words of the command line.
        own: what they say about the command itself.

    Raises:
        ConfigError: seeds or values that cannot be read, two runs of one name, or a folder that holds other runs.
    """
    asked = Study(recipe=recipe, args=tuple(args))
    members = members_of(asked, own)
    for member in {m.group: m for m in reversed(members)}.values():
        check(member.run)
    folder = own.folder or folder_for(asked, members)
    if folder.exists() and Study.read(folder) is None and any(p.name != lock.LOCK for p in folder.iterdir()):
        raise ConfigError(f"{folder} holds something else than runs side by side; choose another --folder")
    asked, members = with_earlier(asked, members, folder)
    check_members(members, folder, own.allow_inexact)
    with storage.storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    note(f"{members[0].run.name}: {len(members)} runs of {members[0].run.steps} steps in {folder}")
    storage.write_json(folder / STUDY, asdict(asked))
    options = ("--plain", *(f"--{v}" for v in VIEWS[1:] if getattr(own, v.replace("-", "_"))))
    news = (
        PlainStudyView(members)
        if own.plain or not sys.stdout.isatty()
        else StudyTable(members, f"{members[0].run.name} · {folder}")
    )
    try:
        endings = run_all(
            members, folder, at_once=own.at_once, options=options, news=news, allow_inexact=own.allow_inexact, note=note
        )
    finally:
        news.close()
    whose = "held-out" if members[0].run.evaluation.split == "test" else "training-task"
    return print_summary(endings, folder, whose)


def resume_all(folder: Path, study: Study, allow_inexact: bool = False) -> int:
    """Goes on with the runs of a folder, by the words that they were asked for."""
    own, _ = settle(TrainOptions, study.recipe, study.args, "assay resume")
    return train_many(study.recipe, study.args, replace(own, folder=folder, allow_inexact=allow_inexact))


# ---- which runs -------------------------------------------------------------------------------------------------------


def members_of(asked: Study, own: TrainOptions) -> list[StudyRun]:
    """The runs: every seed of every combination of the values that vary.

    Raises:
        ConfigError: as `train_many`.
    """
    common = shared_words(asked.args)
    if own.seeds and any(w.partition("=")[0] == "--seed" for w in common):
        raise ConfigError("--seed and --seeds both say which seeds; give one of them")
    seeds = seeds_of(own.seeds) if own.seeds else (None,)
    members: list[StudyRun] = []
    for values in product(*map(parse_vary, own.vary)):
        group = ",".join(f"{path.rpartition('.')[2]}={value}" for path, value in values)
        for seed in seeds:
            words = [*common, *(w for path, value in values for w in (f"--{path}", value))]
            words += [] if seed is None else ["--seed", str(seed)]
            with redirect_stderr(sys.stderr if not members else io.StringIO()):  # what is told of one is told of all
                options, run = settle(TrainOptions, asked.recipe, words, "assay train")
                run = options.apply_to(run)
            name = ",".join([*([group] if group else []), *([f"seed-{seed}"] if seed is not None else [])])
            members.append(StudyRun(name=name.replace("/", "_"), group=group, run=run, words=(asked.recipe, *words)))
    if twice := sorted({m.name for m in members if sum(m.name == n.name for n in members) > 1}):
        raise ConfigError(f"two runs would both be called {twice[0]!r}; give each seed and each value of --vary once")
    return members


def with_earlier(asked: Study, members: list[StudyRun], folder: Path) -> tuple[Study, list[StudyRun]]:
    """What is asked for, with the runs that earlier commands made in the folder and this one does not name.

    Raises:
        ConfigError: those are of other settings, so that one table would mix them.
    """
    found, names = Study.read(folder), {m.name for m in members}
    if found is None or not (others := sorted(p.parent.name for p in folder.glob("*/run.toml") if p.parent.name not in names)):
        return asked, members
    if found.settings != asked.settings:
        raise ConfigError(
            f"{folder} holds runs of another command ({', '.join(others[:3])}: assay train "
            f"{' '.join((found.recipe, *found.args))}); choose another --folder"
        )
    earlier: list[tuple[str, ...]] = []
    for args in (found.args, *found.earlier):
        own, _ = settle(TrainOptions, found.recipe, args, "assay train")
        before = members_of(Study(recipe=found.recipe, args=args), own) if own.several else []
        if new := [m for m in before if m.name not in names]:
            earlier.append(args)
            members, names = [*members, *new], names | {m.name for m in new}
    return replace(asked, earlier=tuple(earlier)), members


def seeds_of(text: str) -> tuple[int, ...]:
    """The seeds that ``--seeds`` names.

    Raises:
        ConfigError: no number, or none of them.

    >>> seeds_of("3"), seeds_of("1,4,7"), seeds_of("7,")
    ((0, 1, 2), (1, 4, 7), (7,))
    """
    try:
        found = tuple(int(word) for word in text.split(",") if word.strip()) if "," in text else tuple(range(int(text)))
    except ValueError:
        found = ()
    if not found:
        raise ConfigError(f"--seeds {text!r}: give how many, as in --seeds 5, or which, as in --seeds 1,4,7")
    return found


def parse_vary(text: str) -> list[tuple[str, str]]:
    """An option and its values, of one entry of ``--vary``.

    Raises:
        ConfigError: it has another form.

    >>> parse_vary("stages.0.groups=16,32")
    [('stages.0.groups', '16'), ('stages.0.groups', '32')]
    """
    path, equals, values = text.partition("=")
    path = path.removeprefix("--")
    found = [(path, value) for value in values.split(",") if value]
    if not equals or not path or not found:
        raise ConfigError(f"--vary {text!r}: give an option of the recipe and its values, as in --vary stages.0.groups=16,32")
    return found


def shared_words(args: Sequence[str]) -> tuple[str, ...]:
    """The words without the options that are about all runs."""
    kept: list[str] = []
    drop = 0  # words that may still belong to an option that is left out
    for word in args:
        name, equals, _ = word.partition("=")
        name = name.removeprefix("--").replace("_", "-")
        if word.startswith("--"):
            drop = 0
            if name in OWN:
                drop = 0 if equals and OWN[name] == 1 else OWN[name]
                continue
        if drop:
            drop -= 1
            continue
        kept.append(word)
    return tuple(kept)


def folder_for(asked: Study, members: Sequence[StudyRun]) -> Path:
    """The newest folder of the same command, so that it goes on; else a new one."""
    parent, name = Path("runs"), f"{members[0].run.name}-study"
    known = [p for p in parent.glob(f"{name}-*") if p.name.rpartition("-")[2].isdecimal()]
    for path in sorted(known, key=lambda p: int(p.name.rpartition("-")[2]), reverse=True):
        try:
            found = Study.read(path)
        except AssayError:
            continue
        if found and found.settings == asked.settings and all(same_run(path / m.name, m.run) for m in members):
            return path
    return fresh_folder(parent, name)


# ---- what a person sees -----------------------------------------------------------------------------------------------


def print_summary(endings: Sequence[RunEnding], folder: Path, whose: str = "held-out") -> int:
    """Prints the table, what went wrong, and where the numbers are; returns the exit code."""
    several = len({e.group for e in endings}) > 1
    rows: list[list[object]] = []
    for mean in means(endings):
        rows += [_row(e) for e in endings if e.group == mean.group]
        rows.append([f"mean{f' of {mean.group}' if several else ''}", f"{mean.runs} runs", "", *_numbers(mean), "", ""])
    head = ("run", "state", "step", "base", "greedy", "gain", "sampled", "CPU-s", "digest")
    grid(head, rows, right=(2, 3, 4, 5, 6, 7))
    say(f"{whose} accuracy; of means the 95 % interval over runs (Student)")
    _compare(endings)
    for line in _warnings(endings):
        say(line)
    for e in endings:
        if e.state is State.FAILED:
            note(f"{e.name} failed: {e.error} ({folder / e.name}.log)")
    open_ = [e for e in endings if e.state is not State.FINISHED]
    if open_:
        note(f"{len(open_)} of {len(endings)} runs did not finish; continue with: assay resume {folder}")
    say(f"numbers: {folder / 'results.json'}")
    return 1 if any(e.state is State.FAILED for e in endings) else 130 if open_ else 0


def _compare(endings: Sequence[RunEnding]) -> None:
    """The table of paired differences, where settings vary."""
    found = [d for d in differences(endings) if d.runs]
    if not found:
        return
    rows = [[f"{d.second} - {d.first}", d.runs, *map(_format_signed, (d.greedy, d.sampled))] for d in found]
    grid(("difference", "seeds", "greedy", "sampled"), rows, right=(1, 2, 3))
    say("paired: each seed with itself under the other setting; the 95 % interval over seeds (Student)")


def _format_signed(of: Interval | float | None) -> str:
    if isinstance(of, Interval):
        return f"{of.value:+.3f} [{of.low:+.3f}, {of.high:+.3f}]"
    return cell(None) if of is None else f"{of:+.3f}"


def _warnings(endings: Sequence[RunEnding]) -> list[str]:
    """What keeps the numbers from saying much of other seeds."""
    found = [m for m in means(endings) if m.runs]
    least = min((m.runs for m in found), default=0)
    out: list[str] = []
    if any(m.runs > 1 and isinstance(getattr(m, f), float) for m in found for f in ("greedy", "sampled")):
        out.append("a mean without interval: all its runs gave the same number, and so few seeds show no spread")
    if 0 < least < ENOUGH:
        few = "1 seed says nothing of others" if least == 1 else f"{least} seeds are few: an interval over them is wide"
        out.append(f"warning: {few}; --seeds {ENOUGH} or more")
    return out


def _row(e: RunEnding) -> list[object]:
    return [e.name, e.state, e.step, *_numbers(e), f"{e.cpu_seconds:.0f}", e.digest[:8]]


def _numbers(of: RunEnding | Mean) -> list[str]:
    return [str(v) if not isinstance(v, float | None) else cell(v) for v in (of.base, of.greedy, of.gain, of.sampled)]
