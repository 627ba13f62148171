"""What a run folder remembers of the machine, and whether a resume there could be bit-equal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from assay.core.errors import InexactResumeError
from assay.runs import storage

__all__ = ["FILE", "check_versions", "write_versions"]

FILE = "versions.json"


def write_versions(folder: Path, versions: Mapping[str, str]) -> None:
    """Writes ``versions.json``: everything besides a run's settings on which its bits depend, by name.

    Raises:
        StorageError: the disk is full.
    """
    storage.write_json(folder / FILE, dict(versions))


def check_versions(folder: Path, versions: Mapping[str, str], allow_inexact: bool = False) -> list[str]:
    """Differences between this machine and the one that wrote ``folder``.

    Args:
        folder: a run folder with ``versions.json``.
        versions: of this machine, as `write_versions` takes them.
        allow_inexact: return the differences instead of raising.

    Raises:
        InexactResumeError: there are some and ``allow_inexact`` is False.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_versions(Path(folder), {"python": "3.11", "threads": "1"})
    ...     check_versions(Path(folder), {"python": "3.12", "threads": "1"}, allow_inexact=True)
    ['python: 3.11 then, 3.12 now']
    """
    before = storage.read_json(folder / FILE)
    changed = [f"{k}: {before.get(k)} then, {versions[k]} now" for k in sorted(versions) if before.get(k) != versions[k]]
    if changed and not allow_inexact:
        raise InexactResumeError(
            f"resuming {folder} here could not be bit-equal ({'; '.join(changed)}); restore these, or pass --allow-inexact to go "
            "on all the same"
        )
    return changed
