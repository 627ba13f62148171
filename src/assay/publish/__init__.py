"""Trained models for others: exported folders, model cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.publish.exported_folder import Exported, export
    from assay.publish.push import Upload, prepare_upload

__all__ = [
    "Exported",
    "Upload",
    "export",
    "prepare_upload",
]

_HOME = {
    "exported_folder": "Exported export",
    "push": "Upload prepare_upload",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
