"""What a run folder records of its run: the settings, the machine, and at the end a digest."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.core.canon import digest
from assay.core.config import dumps_toml, from_dict, loads_toml, to_dict
from assay.core.errors import CheckpointError, ConfigError
from assay.core.group import Group
from assay.core.protocols import Verifier
from assay.core.rowfile import rows_beside
from assay.core.util.hub import PREFIX
from assay.runs import folder as run_folder
from assay.runs import storage, user_code, versions
from assay.runs.folder import RunFiles
from assay.runs.journal import Journal
from assay.runs.metric_names import digest_names
from assay.runtime.engine.settings import Movable
from assay.runtime.settings import Mesh
from assay.train import models
from assay.train.mismatch import MismatchCheck
from assay.train.run import Run
from assay.verify.abilities import abilities_of

if TYPE_CHECKING:
    from assay.train.session import Parts

__all__ = [
    "FILES",
    "claim",
    "code_of",
    "isolation",
    "load_run",
    "refuse_used",
    "release",
    "run_digest",
    "run_id",
    "versions_of",
    "write_run",
]

FILES = RunFiles(
    claim=(run_folder.SETTINGS, versions.FILE, user_code.FILE, "recipe.json", "contamination.json"),
    before=("events.jsonl", "isolation.json"),
    folders=("start", "anchors", "bases", "best", "checkpoints", "rollouts", "trackers", "tensorboard", "wandb"),
)

BY_THE_CLOCK = ("time/", "verify/", "async/")
"""Metrics of how a step went, not of what came out: they depend on the machine's load, as a verifier's deadline does."""
NOT_DIGESTED = (*BY_THE_CLOCK, "forgetting/")
"""Metrics that no digest holds: those, and what is computed of the items of evaluations, which digests hold themselves."""


def refuse_used(folder: Path) -> None:
    """Raises ConfigError when ``folder`` holds a run, or anything else that a new run would write beside.

    A run that failed before it measured anything is in nobody's way.
    """
    if not run_folder.failed_at_first(folder):
        run_folder.check_unused(folder, FILES)


def fresh_folder(parent: Path, name: str) -> Path:
    """``parent/NAME-1``, or the first number above those taken."""
    taken = [p.name.rpartition("-")[2] for p in parent.glob(f"{name}-*")]
    return parent / f"{name}-{max((int(t) for t in taken if t.isdecimal()), default=0) + 1}"


def claim(folder: Path, run: Run) -> None:
    """Makes ``folder`` a run folder; ``run.toml`` comes last, so that a folder which has it can be resumed."""
    versions.write_versions(folder, versions_of(run))
    user_code.write_code(folder, code_of(run))
    write_run(folder, run)


def release(folder: Path, made: Sequence[Path] = ()) -> None:
    """Frees a folder whose run could never begin, unless it has a checkpoint.

    Args:
        folder: of the run.
        made: folders that were not there before, the innermost first: those that are then empty go too.
    """
    run_folder.release_folder(folder, FILES, made)


def write_run(folder: Path, run: Run) -> None:
    """Writes ``run.toml``, and beside it the rows of tasks that have many; those of a run that it was before go."""
    run_folder.write_settings(folder, run)


def versions_of(run: Run) -> dict[str, str]:
    """What the bits of a run's results depend on besides its settings, on this machine."""
    import assay
    from assay.runtime.machine import fingerprint

    mesh = run.mesh
    ranks = str(mesh.data) if mesh.context == 1 else f"{mesh.data} x {mesh.context}"
    return {**fingerprint(run.threads), "ranks": ranks, "assay": assay.__version__}


def code_of(run: Run) -> list[object]:
    """What may hold code of the user's: a run's settings and its judges."""
    return [run, [run.tasks.verifier(), *([run.check.verifier] if run.check else [])]]


def isolation(folder: Path, judges: Mapping[str, Verifier]) -> list[str]:
    """Writes ``isolation.json``, where any judge starts programs: what contains them.

    Args:
        folder: a run folder.
        judges: by what each is for.

    Returns:
        A line for each judge whose programs are contained otherwise than the folder says; all of them in a new run.
    """
    found = {name: dict(said) for name, judge in judges.items() if (said := abilities_of(judge).isolation())}
    path = folder / "isolation.json"
    if not found:
        return []
    before: dict[str, Any] = storage.read_json(path) if path.exists() else {}
    storage.write_json(path, found)
    return [f"{name}: {now['line']}" for name, now in found.items() if before.get(name, {}).get("line") != now["line"]]


def load_run(folder: Path, run: Run | None = None) -> Run:
    """The run that a folder records.

    Args:
        folder: a run folder.
        run: the same run as a value; needed when the record names functions that cannot be imported. Its stages' steps and its
            ranks are taken from the record, where a resume may have changed them.

    Raises:
        CheckpointError: no ``run.toml``, or ``run`` differs from it.
    """
    path = folder / "run.toml"
    if not path.exists():
        raise CheckpointError(f"{folder} is no run folder: it has no run.toml; 'assay runs list' shows those there are")
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        recorded = loads_toml(text)
    except ConfigError as error:
        raise CheckpointError(f"{path} is damaged: {error}; restore it from a copy") from None
    if run is None:
        with rows_beside(folder):
            return from_dict(Run, recorded)
    commits = {found.partition("@")[0]: found for found in re.findall(r'"([\w.-]+/[\w.-]+@[0-9a-f]{40})"', text)}
    steps = [int(stage["steps"]) for stage in recorded.get("stages", []) if "steps" in stage]
    data = {f"{a}{c}": f"{a}@{b}{c}" for a, b, c in re.findall(r'"(hub:[\w.-]+/[\w.-]+)@([0-9a-f]{40})((?::[^"]*)?)"', text)}
    run = models.pin_commits(
        run,
        lambda path: commits.get(path.removeprefix(PREFIX).partition("@")[0], path),
        lambda name: data.get(_branchless(name), name),
    )
    if len(steps) == len(run.stages):
        run = replace(run, stages=tuple(replace(s, steps=n) for s, n in zip(run.stages, steps, strict=True)))
    run = replace(run, mesh=from_dict(Mesh, recorded.get("mesh", {})))
    with rows_beside(folder):
        same = dumps_toml(to_dict(run)) == text
    if not same and dumps_toml(to_dict(run)) != text:  # a folder of before, whose rows stand in run.toml
        raise CheckpointError(f"the run given differs from the one in {path}; pass the same recipe, or start a new run")
    return run


def _branchless(data: str) -> str:
    """The name of a data set on the hub without its revision."""
    return re.sub(rf"^({PREFIX}[\w.-]+/[\w.-]+)@[\w./-]+", r"\1", data)


def run_id(run: Run) -> str:
    """Digest of all settings that a resume may not change: everything but threads, ranks, the stages' steps, when to stop at a
    mismatch, and where an engine is that may be elsewhere.
    """
    with rows_beside(Path()):
        return _identity(run)


def run_id_of_before(run: Run) -> str:
    """`run_id` as checkpoints have it that were written when all rows stood in ``run.toml``."""
    return _identity(run)


def _identity(run: Run) -> str:
    engine = run.engine.anywhere() if isinstance(run.engine, Movable) else run.engine
    table = to_dict(replace(run, threads=1, mesh=Mesh(), mismatch=MismatchCheck(), engine=engine))
    for stage in table["stages"]:
        del stage["steps"]
    return digest(table)


def ids_digest(before: str, groups: Sequence[Group]) -> str:
    """The running digest of sampled token ids, ``before`` and those of a step's groups."""
    h = hashlib.blake2b(before.encode(), digest_size=16)
    for rollout in (r for group in groups for r in group.rollouts):
        h.update(rollout.id.encode())
        for call in rollout.calls:
            h.update(call.completion.ids.tobytes())
    return h.hexdigest()


def run_digest(folder: Path, parts: Parts) -> str:
    """Digest of a finished run.

    Weights, optimiser, anchors, sampled ids, evaluation items, and all metrics but `NOT_DIGESTED`.
    """
    records: list[dict[str, Any]] = [r for name in ("metrics", "evals", "rollouts") for r in Journal(folder).records(name)]
    for record in records:
        if "metrics" in record:
            record["metrics"] = {k: v for k, v in digest_names(record["metrics"]).items() if not k.startswith(NOT_DIGESTED)}
    return digest([parts.learner.state_digest(), parts.ids, records])
