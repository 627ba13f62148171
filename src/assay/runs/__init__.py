"""Run folders: files written whole, journals, checkpoints, locks. Needs neither torch nor a language model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.runs.checkpoint import file_digests
    from assay.runs.journal import Journal
    from assay.runs.rollout_files import RolloutFiles
    from assay.runs.storage import fresh_folder, guarded, read_json, write_bytes, write_json, write_text

__all__ = [
    "Journal",
    "RolloutFiles",
    "file_digests",
    "fresh_folder",
    "guarded",
    "read_json",
    "write_bytes",
    "write_json",
    "write_text",
]

_HOME = {
    "checkpoint": "file_digests",
    "journal": "Journal",
    "rollout_files": "RolloutFiles",
    "storage": "fresh_folder guarded read_json write_bytes write_json write_text",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
