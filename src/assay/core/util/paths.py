"""Where assay keeps on this machine what it made and can make again."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_folder"]


def cache_folder() -> Path:
    """``$ASSAY_CACHE``, else ``$XDG_CACHE_HOME/assay``, else ``~/.cache/assay``."""
    own, shared = os.environ.get("ASSAY_CACHE"), os.environ.get("XDG_CACHE_HOME")
    return Path(own) if own else (Path(shared) if shared else Path.home() / ".cache") / "assay"
