"""Rows of ``assay tasks list``: of assay's own families from a file beside them, of anybody else's from the families themselves.

A row tells arms, levels and an example's properties, so making one imports the family's module. The file `DECLARED` in
``assay_tasks`` holds the rows of assay's own with a digest of the sources that they were made of. Where the sources are
others, as in a checkout that is worked on, nothing in it is used and every row is made anew. ``python tools/task_listing.py``
writes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from assay.cli.output import note
from assay.core.errors import ConfigError

__all__ = ["DECLARED", "declared_rows", "digest_sources", "live_row", "own_names", "task_rows"]

DECLARED = "listing.json"
"""Name of the file, in the package ``assay_tasks``."""


def task_rows() -> list[dict[str, Any]]:
    """A row for each family and suite of all installed packages; one that is broken is told of, and the others are listed."""
    from assay.tasks.packages import installed_packages

    found = installed_packages()
    for package, why in found.broken.items():
        note(f"package of tasks {package} cannot be read: {why}")
    declared = declared_rows(own_folder())
    own = own_names() if declared else frozenset[str]()
    rows: list[dict[str, Any]] = []
    for name in (*sorted(found.families), *sorted(found.suites)):
        if name in own and name in declared:
            found.warn_hidden(name)
            rows.append(declared[name])
            continue
        try:
            rows.append(live_row(name))
        except ConfigError as error:
            note(str(error))
    return rows


def own_folder() -> Path:
    """Folder of ``assay_tasks``, found without importing it."""
    spec = find_spec("assay_tasks")
    return Path(next(iter(spec.submodule_search_locations or ()))) if spec else Path()


def own_names() -> frozenset[str]:
    """Names of the families and suites that ``assay_tasks`` offers."""
    catalog = import_module("assay_tasks.catalog")  # by its name, as the catalogs of other packages are found
    return frozenset((*catalog.FAMILIES, *catalog.SUITES))


def declared_rows(folder: Path) -> Mapping[str, dict[str, Any]]:
    """The rows in the file of a folder of families, by name; none where they were made of other sources, or there is no file."""
    try:
        told = json.loads((folder / DECLARED).read_text(encoding="utf-8"))
        return {row["name"]: row for row in told["rows"]} if told["sources"] == digest_sources(folder) else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def digest_sources(folder: Path) -> str:
    """Digest of the contents of what rows are made of: the families, and `assay.tasks`, which gives them their frame."""
    h = blake2b(digest_size=12)
    for root in (folder, Path(__file__).parents[1] / "tasks"):
        for path in sorted(root.rglob("*")):
            if path.suffix in (".py", ".json") and path.name != DECLARED:
                content = path.read_bytes()
                h.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode() + content)
    return h.hexdigest()


def live_row(name: str) -> dict[str, Any]:
    """A family or a suite as a row of the list, made of itself; only a suite has ``parts``.

    Raises:
        ConfigError: it cannot be loaded.
    """
    from assay.tasks import Rows, TaskMixture, card, family
    from assay.tasks.packages import installed_packages

    source = family(name)
    c = card(source)
    said = installed_packages().summary(name) if isinstance(source, Rows) else ""
    parts = {part: list(of) for part, of in source.members().items()} if isinstance(source, TaskMixture) else None
    return {
        "name": name,
        "summary": said or c.summary,
        "domains": sorted(set(c.domains.values())),
        "arms": {a: list(ls) for a, ls in c.arms.items()},
        "problems": {a: {"domain": c.domains[a], "summary": c.summaries[a]} for a in c.arms},
        "oracle": c.has_trace,
        "tools": c.has_tools,
        "parts": parts,
    }
