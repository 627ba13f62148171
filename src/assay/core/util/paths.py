"""Where assay keeps on this machine what it made and can make again."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_folder", "share_files"]


def cache_folder() -> Path:
    """``$ASSAY_CACHE``, else ``$XDG_CACHE_HOME/assay``, else ``~/.cache/assay``."""
    own, shared = os.environ.get("ASSAY_CACHE"), os.environ.get("XDG_CACHE_HOME")
    return Path(own) if own else (Path(shared) if shared else Path.home() / ".cache") / "assay"


def share_files(folder: Path) -> None:
    """Gives every file in a folder the permissions that the user's umask leaves to new ones, as those of the folder show: some
    libraries write files that nobody else may read.
    """
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(folder.stat().st_mode & 0o666)
