"""What a list of runs says of each: how it was asked for, how far it is, how good it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, cast

from assay.cli.given_options import GivenOption, split_options
from assay.cli.objective_name import objective_name, objective_table
from assay.cli.run_request import Record
from assay.cli.run_settings import name_own
from assay.cli.tracker_options import split_trackers
from assay.cli.train_options import TrainOptions
from assay.runs import lock
from assay.runs.folder import failed_at_first

if TYPE_CHECKING:
    from assay.measure import RunView

__all__ = ["run_row"]


def run_row(view: RunView) -> dict[str, Any]:
    """One run: ``None`` where nothing is known, as of the recipe of a run that was started from Python."""
    base, now = view.base("greedy"), view.final("greedy")
    if base and now:
        base, now = base.shared_with(now), now.shared_with(base)
    record = Record.read(view.folder)
    given = name_own(TrainOptions, split_options(record.args)[1]) if record else []
    planned = view.planned_steps
    return {
        "run": view.name,
        "recipe": record.recipe if record else None,
        "objective": _objective(given, view.settings),
        "model": _model(_table(view.settings.get("model"))),
        "changed": _describe_changes(given, record.unchanged) if record else None,
        "tasks": _kind(_table(view.settings.get("tasks"))) or None,
        "seed": view.seed,
        "step": f"{view.last_step}/{planned}" if planned else str(view.last_step),
        "state": _state(view),
        "base": base.accuracy(view.threshold).value if base else None,
        "now": now.accuracy(view.threshold).value if now else None,
    }


def _state(view: RunView) -> str:
    if (view.folder / "done.json").exists():
        return "finished"
    if lock.holder(view.folder):
        return "running"
    return "failed" if failed_at_first(view.folder) else "not finished"


def _objective(given: Sequence[GivenOption], settings: Mapping[str, Any]) -> str | None:
    """The method that was named last, else the one that the settings equal; None where they do not say."""
    named = [o.words[0] for o in given if _names_method(o.path) and o.words]
    if named:
        return named[-1]
    table = objective_table(settings)
    return None if table is None else objective_name(table)


def _names_method(path: str) -> bool:
    return path in ("objective", "algorithm") or path.removesuffix(".kind").endswith(".objective")


def _describe_changes(given: Sequence[GivenOption], unchanged: Collection[str]) -> str:
    """What differs from the recipe, as it was asked for, without what is about the command and the folder, and without what the
    recipe says too.
    """
    own = {f.name for f in fields(TrainOptions)} - {"steps", "random_init"}
    given = split_trackers(given)[1]
    kept = [o for o in given if o.path not in own and o.path not in unchanged and not _names_method(o.path)]
    return " ".join("=".join((o.path.replace("_", "-"), *filter(None, [" ".join(o.words)]))) for o in kept)


def _model(table: Mapping[str, Any]) -> str | None:
    """The model's folder or name, or that of the base that is built first."""
    kind = _kind(table)
    if kind == "Built":
        return f"base {_table(table.get('run')).get('name', '')}".strip()
    return str(table["path"]) if "path" in table else "fresh" if kind == "Scratch" else kind or None


def _kind(table: Mapping[str, Any]) -> str:
    return str(table.get("kind", "")).rpartition(":")[2]


def _table(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
