"""In which settings and versions runs differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from assay.cli.output import grid

if TYPE_CHECKING:
    from assay.measure import RunView

__all__ = ["differing", "print_differences"]

_MOST = 48  # characters of a value in a table
_ABSENT = "–"


def differing(tables: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Of each table the values, by path and as text, that not all tables have alike; what a table lacks is left out.

    >>> differing([{"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}, "d": 4}])
    [{'b.c': '2'}, {'b.c': '3', 'd': '4'}]
    """
    from assay.measure.trackers.tracker import flat

    found = [flat(t) for t in tables]
    names = dict.fromkeys(name for f in found for name in f)
    kept = [name for name in names if len({f.get(name) for f in found}) > 1]
    return [{name: f[name] for name in kept if name in f} for f in found]


def print_differences(runs: Sequence[RunView]) -> None:
    """A table of the settings that differ and one of the versions; a line where nothing differs or a file is missing."""
    names = [r.name for r in runs]
    if len(set(names)) < len(names):
        names = [str(r.folder) for r in runs]
    _print("settings", "run.toml", names, [r.settings for r in runs], runs)
    _print("versions", "versions.json", names, [r.versions for r in runs], runs)


def _print(what: str, file: str, names: Sequence[str], tables: Sequence[Mapping[str, Any]], runs: Sequence[RunView]) -> None:
    if lacking := [str(r.folder / file) for r, table in zip(runs, tables, strict=True) if not table]:
        print(f"{what} are not compared: {', '.join(lacking)} is missing or empty")
        return
    found = differing(tables)
    rows = list(dict.fromkeys(name for f in found for name in f))
    if not rows:
        print(f"no {what} differ ({file})")
        return
    print(f"{what} that differ ({file})")
    grid(("", *names), [[name, *_cut([f.get(name, _ABSENT) for f in found])] for name in rows])


def _cut(texts: Sequence[str]) -> list[str]:
    """The values short enough for a table: where they are long, from shortly before the first character that differs."""
    shared = next((i for i, row in enumerate(zip(*texts, strict=False)) if len(set(row)) > 1), min(map(len, texts)))
    start = max(0, shared - 8) if max(map(len, texts)) > _MOST else 0
    return [_part(t, start) for t in texts]


def _part(text: str, start: int) -> str:
    end = start + _MOST
    return f"{'...' if start else ''}{text[start:end]}{'...' if len(text) > end else ''}"
