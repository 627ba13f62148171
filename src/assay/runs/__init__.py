"""Run folders: files written whole, journals, checkpoints, locks. Needs neither torch nor a language model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.runs.checkpoint import file_digests
    from assay.runs.folder import RunFiles, check_unused, release_folder, remove_leftovers, write_settings
    from assay.runs.journal import Journal
    from assay.runs.reader import EventLine, MetricLine, RunRecord, read_document, read_lines, read_record
    from assay.runs.rollout_files import RolloutFiles
    from assay.runs.row_history import RowCurves, RowHistory
    from assay.runs.storage import fresh_folder, read_json, storage_errors, write_bytes, write_json, write_text
    from assay.runs.user_code import changed_code, check_code, code_digests, write_code
    from assay.runs.versions import check_versions, write_versions

__all__ = [
    "EventLine",
    "Journal",
    "RolloutFiles",
    "MetricLine",
    "RowCurves",
    "RowHistory",
    "RunFiles",
    "RunRecord",
    "changed_code",
    "check_code",
    "check_unused",
    "check_versions",
    "code_digests",
    "file_digests",
    "fresh_folder",
    "storage_errors",
    "read_document",
    "read_json",
    "read_lines",
    "read_record",
    "release_folder",
    "remove_leftovers",
    "write_bytes",
    "write_code",
    "write_json",
    "write_settings",
    "write_text",
    "write_versions",
]

_HOME = {
    "versions": "check_versions write_versions",
    "user_code": "changed_code check_code code_digests write_code",
    "reader": "EventLine MetricLine RunRecord read_document read_lines read_record",
    "folder": "RunFiles check_unused release_folder remove_leftovers write_settings",
    "checkpoint": "file_digests",
    "journal": "Journal",
    "rollout_files": "RolloutFiles",
    "row_history": "RowCurves RowHistory",
    "storage": "fresh_folder storage_errors read_json write_bytes write_json write_text",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
