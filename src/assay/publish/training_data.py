"""The data sets on a hub that a run learned from, as its records name them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from assay.core.errors import AssayError
from assay.core.util.hub import PREFIX, HubName
from assay.curate.rows import entries, read_rows

__all__ = ["HubRows", "hub_rows"]

HELD_OUT = "test"
"""The field of a task family that names rows which it holds out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubRows:
    """Rows of a data set on a hub.

    Attributes:
        repo: ``owner/name``.
        revision: commit; empty where the run did not record one.
        files: which of it, as the run names them; empty: all.
        rows: how many; None where they are not on this machine.
        use: what the run did with them.
    """

    repo: str
    revision: str
    files: str
    rows: int | None
    use: str

    def __str__(self) -> str:
        commit = f"at commit {self.revision}" if self.revision else "(commit not recorded)"
        files = f", files `{self.files}`" if self.files else ""
        rows = f"{self.rows:,} rows" if self.rows is not None else "not here to be counted"
        return f"{self.repo} {commit}{files}, {rows}: {self.use}"


def hub_rows(settings: Mapping[str, Any], until: int) -> tuple[HubRows, ...]:
    """What a run, and the bases that it built first, had learned from, each once.

    Args:
        settings: of the run, as ``run.toml`` holds them.
        until: steps of the run that had been taken.
    """
    return tuple(dict.fromkeys(_of_run(settings, until)))


def _of_run(settings: Mapping[str, Any], until: int | None) -> Iterator[HubRows]:
    model: Any = settings.get("model", {})
    if "run" in model:
        yield from _of_run(model["run"], None)
    before, asked = 0, False
    for stage in cast("Sequence[Mapping[str, Any]]", settings.get("stages", ())):
        if until is not None and before >= until:
            break
        before += int(stage.get("steps", 0))
        asked = asked or "data" not in stage
        yield from _hub_rows(stage.get("data"), f"given to {str(stage.get('kind', 'a stage')).rpartition(':')[2]}")
    for field, text in _texts(settings.get("tasks"), "tasks"):
        if field == HELD_OUT or asked:
            yield from _hub_rows(text, "tasks, held out" if field == HELD_OUT else "tasks")


def _texts(value: Any, field: str) -> Iterator[tuple[str, str]]:
    """All texts inside a value, each with the field that it stands in."""
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, Mapping):
        for name, inner in cast("Mapping[str, Any]", value).items():
            yield from _texts(inner, name)
    elif isinstance(value, list | tuple):
        for inner in cast("Sequence[Any]", value):
            yield from _texts(inner, field)


def _hub_rows(data: Any, use: str) -> Iterator[HubRows]:
    if not isinstance(data, str) or not data.startswith(PREFIX):
        return
    repo, _, files = data.removeprefix(PREFIX).partition(":")
    name = HubName.read(repo)
    if name is not None:
        revision = name.revision if name.pinned else ""
        yield HubRows(repo=name.repo, revision=revision, files=files, rows=_count(data) if revision else None, use=use)


def _count(data: str) -> int | None:
    try:
        return sum(1 for path in entries(data) for _ in read_rows(path))
    except (AssayError, OSError):  # neither in the cache nor to be fetched: the card says so
        return None
