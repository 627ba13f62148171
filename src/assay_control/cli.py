"""``assay control``: worlds, data sets, methods, and runs of control."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from assay.cli.options import parse, parse_with
from assay.cli.output import busy, cell, choose, grid, lines, note, show, strip_marks
from assay.core import ConfigError, to_dict
from assay.core.errors import UnknownNameError
from assay_control.catalog import DATASETS, METHODS, WORLDS, dataset, method, world
from assay_control.data.recipes import FileData, OfflineData
from assay_control.parts.base import Composition, ControlMethod
from assay_control.run import ControlRun
from assay_control.worlds.base import World

__all__ = ["control_command"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingOptions:
    """Prints a list.

    Attributes:
        json: print JSON.
    """

    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetOptions:
    """Lists data sets, or makes and measures one.

    Attributes:
        out: file to write its episodes to: .npz, .hdf5 or .h5.
        json: print JSON.
    """

    out: Path | None = None
    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOptions:
    """Trains a policy.

    Attributes:
        folder: for the run; a new one below runs where not given.
        file: episodes to learn from, of the world that is named: .npz, .hdf5, or minari: and a name.
        no_report: do not write report.html at the end.
        json: print the outcome as JSON.
    """

    folder: Path | None = None
    file: str | None = None
    no_report: bool = False
    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeOptions:
    """Goes on with a run from its last checkpoint.

    Attributes:
        folder: of the run.
        steps: new last step.
        allow_inexact: go on although versions differ.
        no_report: do not write report.html at the end.
        json: print the outcome as JSON.
    """

    folder: Path = field(metadata={"positional": True, "arg": {"metavar": "RUN"}})
    steps: int | None = None
    allow_inexact: bool = False
    no_report: bool = False
    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalOptions:
    """Evaluates the last checkpoint of a run.

    Attributes:
        folder: of the run.
        episodes: to play.
        seed: of their starts; that of the run where not given.
        json: print JSON.
    """

    folder: Path = field(metadata={"positional": True, "arg": {"metavar": "RUN"}})
    episodes: int = 100
    seed: int | None = None
    json: bool = False


def control_command(args: list[str]) -> int:
    """``assay control methods | worlds | datasets | train | resume | eval | report``."""
    return choose(
        "control",
        args,
        {
            "train": (_train, "train on a data set or in a world: assay control train [DATA|WORLD] [METHOD]"),
            "resume": (_resume, "go on with a run"),
            "eval": (_eval, "returns of a run's policy, with intervals"),
            "report": (_report, "write a run's report.html again"),
            "mismatch": (_mismatch, "whether a run's model is better where its policy is: rank correlation over its evaluations"),
            "methods": (_methods, "list methods, or show one with its parts"),
            "worlds": (_worlds, "list worlds"),
            "datasets": (_datasets, "list data sets, or make one and measure it"),
        },
    )


# ---- listings ---------------------------------------------------------------------------------------------------------


def _summary(path: str) -> str:
    module, _, name = path.partition(":")
    return strip_marks(inspect.cleandoc(getattr(import_module(module), name).__doc__ or "").split("\n")[0])


def _methods(args: list[str]) -> int:
    name, rest = _leading(args, 1)
    own = parse(ListingOptions, rest, "assay control methods")
    if name:
        return _method(name[0], own.json)
    rows = {name: _summary(str(path)) for name, path in METHODS.items()}
    return show(own.json, rows, lambda: grid(("method", "what"), list(rows.items())))


def _method(name: str, as_json: bool) -> int:
    made = method(name)
    parts = made.compose()
    values = {"settings": to_dict(made), "parts": to_dict(parts)}

    def text() -> None:
        print(strip_marks(inspect.cleandoc(type(made).__doc__ or "").split("\n\nAttributes:")[0]), end="\n\n")
        lines({f.name: getattr(made, f.name) for f in dataclasses.fields(cast("Any", made))})
        print()
        grid(("network", "declared"), [(n, repr(net)) for n, net in parts.nets.items()])
        shown = [
            (
                u.owner,
                repr(u.fit),
                repr(u.target) if u.target is not None else "–",
                " ".join(map(repr, u.regularisers)) or "–",
                u.every,
            )
            for u in parts.updates
        ]
        grid(("owner", "loss", "target", "regularisers", "every"), shown)
        lines({"source": parts.source, "schedule": parts.schedule, "explorer": parts.explorer or "–"})

    return show(as_json, values, text)


def _worlds(args: list[str]) -> int:
    own = parse(ListingOptions, args, "assay control worlds")
    rows: list[dict[str, Any]] = []
    for name, path in WORLDS.items():
        made = world(name)
        rows.append(
            {
                "name": name,
                "observation": made.observation_size,
                "actions": repr(made.actions),
                "horizon": made.horizon,
                "what": _summary(str(path)),
            }
        )
    names = ("name", "observation", "actions", "horizon", "what")
    return show(own.json, rows, lambda: grid(names, [[row[n] for n in names] for row in rows]))


def _datasets(args: list[str]) -> int:
    name, rest = _leading(args, 1)
    own = parse(DatasetOptions, rest, "assay control datasets")
    if own.out is not None and not name:
        raise ConfigError("assay control datasets --out: name the data set to be written, such as pendulum/mixed")
    if name:
        from assay_control.card import data_card
        from assay_control.data.external import write_episodes

        if own.out is not None:
            write_episodes(dataset(name[0]).cached(), own.out)

        with busy("making episodes"):
            card = data_card(dataset(name[0]))
        return show(own.json, card, lambda: lines({n: cell(v) for n, v in card.items()}))
    rows = {name: text for name, (_, text) in DATASETS.items()}
    return show(own.json, rows, lambda: grid(("data set", "what"), list(rows.items())))


# ---- runs -------------------------------------------------------------------------------------------------------------


def _train(args: list[str]) -> int:
    words, rest = _leading(args, 3)
    run = named_run(words, _option(rest, "--file"))
    prog, about = "assay control train [DATA|WORLD] [METHOD]", "Trains a policy; any setting can be changed."
    own, run = parse_with(TrainOptions, run, rest, prog, about, ("assay_control",))
    from assay_control.run_folders import train

    folder = own.folder or _fresh_folder(words)
    note(f"{_title(run)}: {run.steps} steps into {folder}")
    with busy("training"):
        outcome = train(run, folder, watch=_watch)
    return _print_outcome(outcome, not own.no_report, own.json)


def named_run(words: Sequence[str], file: str | None = None) -> ControlRun:
    """The run that names on the command line mean: a data set or a world, a method, or both of the former and a method.

    Raises:
        UnknownNameError: one that is no data set, no world and no method.
        ConfigError: two of a kind.
    """
    data: OfflineData | None = None
    place: World | None = None
    how: ControlMethod | None = None
    for word in words or ("pendulum/mixed",):
        if word in DATASETS and data is None:
            data = dataset(word)
        elif word in WORLDS and place is None:
            place = world(word)
        elif word in METHODS and how is None:
            how = method(word)
        elif word in (*DATASETS, *WORLDS, *METHODS):
            raise ConfigError(
                f"assay control train: {' '.join(words)} names two of a kind; give a data set or world, and a method"
            )
        else:
            raise UnknownNameError("data set, world or method", word, [*DATASETS, *WORLDS, *METHODS])
    if file is not None:
        if place is None:
            raise ConfigError(
                f"--file {file}: name the world that it is of, as in 'assay control train pendulum iql --file {file}'"
            )
        data = FileData(world=place, path=file)
    if how is None:
        how = quickstart_method() if not words else method("iql" if data is not None else "sac")
    if data is None and place is None:
        raise ConfigError(f"assay control train {' '.join(words)}: name a data set or a world too, as pendulum/mixed or pendulum")
    learns = how.compose()
    online = learns.explorer is not None
    return ControlRun(method=how, data=data, world=place, steps=5000 if online else 2500, evaluate_every=1000 if online else 500)


def quickstart_method() -> ControlMethod:
    """Implicit Q-learning on weighted episodes: what ``assay control train`` does without a name."""
    from assay_control.methods.offline import IQL

    return IQL(weight="advantage", reward=0.03)


def _resume(args: list[str]) -> int:
    own = parse(ResumeOptions, args, "assay control resume")
    from assay_control.run_folders import resume

    with busy("training"):
        outcome = resume(own.folder, own.steps, watch=_watch, allow_inexact=own.allow_inexact)
    return _print_outcome(outcome, not own.no_report, own.json)


def _eval(args: list[str]) -> int:
    own = parse(EvalOptions, args, "assay control eval")
    from assay.measure import bootstrap
    from assay_control.evaluation import evaluate_policy, normalise_return, references
    from assay_control.run_folders import load_session

    session = load_session(own.folder)
    place = session.run.evaluated_in
    with busy("playing"):
        found = evaluate_policy(
            place, session.player(own.episodes), own.episodes, session.run.seed if own.seed is None else own.seed
        )
    mean = bootstrap(found.returns)
    row: dict[str, Any] = {
        "step": session.step,
        "episodes": own.episodes,
        "return": mean.value,
        "low": mean.low,
        "high": mean.high,
    }
    known = references(place)
    if known is not None:
        row |= {"score": normalise_return(mean.value, known), "random": known.random.value, "expert": known.expert.value}
    row |= {"length": float(found.lengths.mean()), "terminated": float(found.terminated.mean())}
    return show(own.json, row, lambda: lines({n: cell(v) for n, v in row.items()}))


def _report(args: list[str]) -> int:
    words, rest = _leading(args, 1)
    own = parse(ListingOptions, rest, "assay control report RUN")
    if not words:
        raise ConfigError("assay control report: give the folder of a run")
    from assay_control.report import write_control_report

    path = write_control_report(Path(words[0]))
    return show(own.json, {"report": str(path)}, lambda: print(path))


def _mismatch(args: list[str]) -> int:
    words, rest = _leading(args, 1)
    own = parse(ListingOptions, rest, "assay control mismatch RUN")
    if not words:
        raise ConfigError("assay control mismatch: give the folder of a run of a method with a model, such as mbpo")
    from assay.runs import read_record
    from assay_control.statistics import rank_correlation

    told = [row.metrics for row in read_record(Path(words[0])).metrics]
    held = [(m["model/nll"], m["eval/return"]) for m in told if "model/nll" in m and "eval/return" in m]
    if len(held) < 2:
        raise ConfigError(f"{words[0]} has {len(held)} evaluations of a model; train mbpo with --evaluate-every, for two or more")
    likelihoods, returns = zip(*held, strict=True)
    row = {"evaluations": len(held), "rank correlation": rank_correlation([-x for x in likelihoods], returns)}
    return show(own.json, row, lambda: lines({n: cell(v) for n, v in row.items()}))


def _print_outcome(outcome: Any, report: bool, as_json: bool) -> int:
    row: dict[str, Any] = {
        "folder": str(outcome.folder),
        "step": outcome.step,
        "digest": outcome.digest,
        "metrics": {n: v for n, v in sorted(outcome.metrics.items()) if n.startswith("eval/")},
    }
    if report:
        from assay.core.errors import MissingExtraError
        from assay_control.report import write_control_report

        try:
            row["report"] = str(write_control_report(outcome.folder))
        except MissingExtraError as error:
            note(f"no report: {error}")

    def text() -> None:
        lines({n: f"{v:.3f}" for n, v in row["metrics"].items()})
        print(f"done: {outcome.step} steps in {outcome.folder}" + (f", report in {row['report']}" if "report" in row else ""))

    return show(as_json, row, text)


def _watch(step: int, values: Mapping[str, float]) -> None:
    if "eval/return" in values:
        score = f"   score {values['eval/score']:.1f}" if "eval/score" in values else ""
        note(f"step {step}: return {values['eval/return']:.2f}{score}")


def _title(run: ControlRun) -> str:
    kind = "composition" if isinstance(run.method, Composition) else type(run.method).__name__
    return f"{kind} in {type(run.acted_in).__name__}"


def _leading(args: list[str], most: int) -> tuple[list[str], list[str]]:
    """The words before the first option, and the rest."""
    count = 0
    while count < min(most, len(args)) and not args[count].startswith("-"):
        count += 1
    return args[:count], args[count:]


def _option(args: Sequence[str], name: str) -> str | None:
    """The value of an option, before the others are read."""
    for at, word in enumerate(args):
        if word == name and at + 1 < len(args):
            return args[at + 1]
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return None


def _fresh_folder(words: Sequence[str]) -> Path:
    """``runs/control-NAME-1``, or the next number that is free."""
    name = "-".join(["control", *(word.replace("/", "-") for word in words)])
    number = 1
    while Path("runs", f"{name}-{number}").exists():
        number += 1
    return Path("runs", f"{name}-{number}")
