"""Reading run folders, also partial ones: settings, versions, and the lines of the journals."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from assay.core.errors import DataError, a_kind
from assay.runs.metric_names import current_names

__all__ = ["EventLine", "MetricLine", "RunRecord", "metric_line", "read_document", "read_lines", "read_record"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricLine:
    """A line of ``metrics.jsonl``."""

    step: int
    stage: str
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLine:
    """A line of ``events.jsonl``: something that happened at a step."""

    step: int
    kind: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What the folder of any run says.

    Attributes:
        folder: where it is.
        settings: ``run.toml``.
        versions: ``versions.json``.
        metrics, events: the lines of these two journals, in order of step.
        finished: whether the run says that it reached its end (``done.json``).
        problems: sentences on what is missing or was cut off.
    """

    folder: Path
    settings: Mapping[str, Any]
    versions: Mapping[str, Any]
    metrics: tuple[MetricLine, ...] = ()
    events: tuple[EventLine, ...] = ()
    finished: bool = False
    problems: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.resolve().name

    @property
    def seed(self) -> int | None:
        """The run's seed, None where the settings do not say."""
        seed = self.settings.get("seed")
        return seed if isinstance(seed, int) else None

    @property
    def planned_steps(self) -> int | None:
        """Steps over all stages of the settings; None where they do not say."""
        stages: Any = self.settings.get("stages")
        tables = (
            [cast("dict[str, Any]", s) for s in cast("list[Any]", stages) if isinstance(s, dict)]
            if isinstance(stages, list)
            else []
        )
        steps = [s["steps"] for s in tables if isinstance(s.get("steps"), int)]
        return sum(steps) if steps and len(steps) == len(tables) else None

    @property
    def last_step(self) -> int:
        """Last step that any journal knows; 0 for an empty run."""
        return max((line.step for lines in (self.metrics, self.events) for line in lines), default=0)


def read_record(folder: Path, also: Sequence[str] = ()) -> RunRecord:
    r"""A run folder, complete or not.

    A missing file (but events, which a quiet run has none of) and a last line that a kill tore apart are named in ``problems``;
    anything else that is wrong is an error.

    Args:
        folder: of a run.
        also: files that a run of this kind has besides; where one of them is there, the folder is a run's.

    Raises:
        DataError: not a folder, no file of a run in it, or a file that cannot be read; names the file and the line.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "metrics.jsonl").write_text('{"step": 1, "metrics": {"return": 0.5}}\n{"step": 2, "met')
    ...     record = read_record(Path(folder))
    >>> record.metrics[0].metrics["return"], record.last_step, record.problems[0]
    (0.5, 1, 'run.toml is missing')
    >>> record.problems[-1]
    'metrics.jsonl, line 2: cut off in the middle, as a kill leaves it; it is not used'
    """
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; give a run folder (it holds run.toml and metrics.jsonl)")
    problems: list[str] = []
    found = RunRecord(
        folder=folder,
        settings=read_document(folder / "run.toml", tomllib.loads, problems),
        versions=read_document(folder / "versions.json", json.loads, problems),
        metrics=read_lines(folder / "metrics.jsonl", metric_line, problems),
        events=read_lines(folder / "events.jsonl", _event_line, problems, needed=False),
        finished=(folder / "done.json").exists(),
    )
    names = ("run.toml", "versions.json", "metrics.jsonl", *also)
    if not found.events and not any((folder / name).exists() for name in names):
        raise DataError(f"{folder} holds no file of a run (run.toml, metrics.jsonl, ...); give a run folder")
    return replace(found, problems=tuple(problems))


def read_document(path: Path, parse: Callable[[str], Any], problems: list[str], needed: bool = True) -> Mapping[str, Any]:
    """A file of settings; empty where it is missing.

    Args:
        path: of the file.
        parse: of its text: `json.loads`, `tomllib.loads`.
        problems: gets a sentence where a file that is needed is missing.
        needed: whether every run has it.

    Raises:
        DataError: it cannot be parsed, or is no table.
    """
    if not path.exists():
        if needed:
            problems.append(f"{path.name} is missing")
        return {}
    try:
        value = parse(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {error}; restore the file or remove it") from None
    if not isinstance(value, dict):
        raise DataError(f"{path}, line 1: expected a table of settings, found {a_kind(value)}")
    return cast("Mapping[str, Any]", value)


def read_lines(path: Path, build: Callable[[Mapping[str, Any]], T], problems: list[str], needed: bool = True) -> tuple[T, ...]:
    """The lines of a journal in order of step.

    Args:
        path: of the file.
        build: makes a record, with its ``step``, of a line's table.
        problems: gets a sentence where a file that is needed is missing or empty, or its last line is cut off.
        needed: whether every run has it.

    Raises:
        DataError: a line is not JSON, or lacks a field; names the line.
    """
    if not path.exists():
        if needed:
            problems.append(f"{path.name} is missing")
        return ()
    lines = path.read_bytes().split(b"\n")
    out: list[T] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            out.append(build(json.loads(line)))
        except json.JSONDecodeError as error:
            if number != len(lines):  # only a line without its end can be torn
                raise DataError(f"{path}, line {number}: not JSON ({error.msg}); remove the line or the file") from None
            problems.append(f"{path.name}, line {number}: cut off in the middle, as a kill leaves it; it is not used")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"field {error} is missing" if isinstance(error, KeyError) else str(error)
            raise DataError(f"{path}, line {number}: {reason}") from None
    if not out and needed:
        problems.append(f"{path.name} is empty")
    return tuple(sorted(out, key=lambda line: cast("Any", line).step))


def metric_line(record: Mapping[str, Any]) -> MetricLine:
    """A line of ``metrics.jsonl`` from its table."""
    metrics = {str(n): float(v) for n, v in current_names(record["metrics"]).items()}
    return MetricLine(step=int(record["step"]), stage=str(record.get("stage", "rl")), metrics=metrics)


def _event_line(record: Mapping[str, Any]) -> EventLine:
    return EventLine(step=int(record["step"]), kind=str(record["kind"]), message=str(record["message"]))
