"""The rows that earlier runs trained a model on, where it is a run folder's."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from assay.runs.row_history import FILE

__all__ = ["earlier_rows", "key_of_row"]

_KEY = re.compile(r"[0-9a-f]{12}")
_START = "start"
"""Of a run folder, the model that it began with: its rows were not trained on yet."""


def key_of_row(id: str) -> str:
    """What a task's id says of a row, whatever its source is called: the digest of what it asks; "" where the task is no row.

    >>> key_of_row("rows/rows/1/b11f72c4dd8d"), key_of_row("sort/sort/3/train/17")
    ('b11f72c4dd8d', '')
    """
    last = id.rpartition("/")[2]
    return last if _KEY.fullmatch(last) else ""


def earlier_rows(model: str) -> dict[str, str]:
    """The rows that reinforcement learning practised to make a model, and the models that it was made from.

    Args:
        model: a run folder, or a model in one; of any other folder nothing is known.

    Returns:
        Key of a row (`key_of_row`) to the folder of the run that practised it.
    """
    found: dict[str, str] = {}
    seen: set[Path] = set()
    place: Path | None = Path(model)
    while place is not None and (home := _home(place)) is not None and home not in seen:
        seen.add(home)
        if place.name != _START or place == home:
            for key in _practised_tasks(home / FILE):
                found.setdefault(key, str(home))
        place = _begun_from(home)
    return found


def _home(place: Path) -> Path | None:
    return next((folder for folder in (place, *list(place.parents)[:2]) if (folder / "run.toml").is_file()), None)


def _practised_tasks(path: Path) -> Iterator[str]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        try:
            ids: list[Any] = json.loads(line)["id"]
        except (ValueError, KeyError):  # the last line of a run that was killed
            continue
        yield from filter(None, map(key_of_row, map(str, ids)))


def _begun_from(home: Path) -> Path | None:
    """The folder of the model that a run began with; None where it was no folder."""
    try:
        model: Any = tomllib.loads((home / "run.toml").read_text("utf-8")).get("model")
    except (OSError, tomllib.TOMLDecodeError):
        return None
    path = cast("dict[str, Any]", model).get("path") if isinstance(model, dict) else None
    return Path(path) if isinstance(path, str) else None
