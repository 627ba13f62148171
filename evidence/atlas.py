"""The page that says which methods are the same under which conditions."""

from __future__ import annotations

from pathlib import Path

from assay.objective.atlas import atlas_page
from assay.runs import write_text

__all__ = ["make_page"]


def make_page(folder: Path) -> list[str]:
    """Writes ``atlas.md``; computed anew in seconds.

    Returns:
        Nothing: there is no bar to miss.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "atlas.md", atlas_page())
    return []
