"""Listings that are made once for a state of assay's files: what is only listed need not be loaded."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import assay
from assay.core.util.paths import cache_folder

__all__ = ["fingerprint", "kept_rows", "task_packages"]

Rows = list[dict[str, Any]]


def kept_rows(name: str, make: Callable[[], Rows], folders: Sequence[Path] = ()) -> Rows:
    """The rows that ``make`` gives, or those that it gave before, while no file of assay has changed since.

    They stand in the cache folder; where that cannot be read or written they are made each time.

    Args:
        name: of the listing.
        make: gives rows that JSON can hold.
        folders: whose files count besides assay's own: those of packages that offer what is listed.
    """
    counted = [Path(assay.__file__).parent, *folders]
    state = "-".join(map(fingerprint, counted))
    path = cache_folder() / "lists" / f"{name}-{blake2b(str(counted[0]).encode(), digest_size=6).hexdigest()}.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["state"] == state:
            return found["rows"]
    except (OSError, ValueError, KeyError, TypeError):
        pass
    rows = make()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        part.write_text(json.dumps({"state": state, "rows": rows}), encoding="utf-8")
        part.replace(path)
    except OSError:
        pass
    return rows


def task_packages() -> list[Path]:
    """Folders of the packages that offer task families, found without importing them."""
    found: list[Path] = []
    for package in sorted({point.module.partition(".")[0] for point in entry_points(group="assay.tasks")}):
        spec = find_spec(package)
        found += map(Path, spec.submodule_search_locations or () if spec else ())
    return found


def fingerprint(folder: Path) -> str:
    """Digest of names, sizes and times of a package's sources, and of the version of Python."""
    h = blake2b(sys.version.encode(), digest_size=16)
    for place, size, changed in sorted(_sources(str(folder))):
        h.update(f"{place}\0{size}\0{changed}\0".encode())
    return h.hexdigest()


def _sources(folder: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from _sources(entry.path)
            elif entry.name.endswith((".py", ".json", ".toml")):
                stat = entry.stat()
                yield entry.path, stat.st_size, stat.st_mtime_ns
