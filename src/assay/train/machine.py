"""What a run folder remembers of the machine, and whether a resume there could be bit-equal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from assay.core.errors import InexactResumeError
from assay.runs import storage

if TYPE_CHECKING:
    from assay.runtime.settings import Mesh
    from assay.train.run import Run

__all__ = ["check_same", "record"]


def record(folder: Path, run: Run) -> None:
    """Writes ``versions.json``."""
    storage.write_json(folder / "versions.json", _now(run))


def check_same(folder: Path, run: Run, allow_inexact: bool) -> list[str]:
    """Differences between this machine and the one that wrote ``folder``.

    Raises:
        InexactResumeError: there are some and ``allow_inexact`` is False.
    """
    before, now = storage.read_json(folder / "versions.json"), _now(run)
    changed = [f"{k}: {before.get(k)} then, {now.get(k)} now" for k in sorted(now) if before.get(k) != now.get(k)]
    if changed and not allow_inexact:
        raise InexactResumeError(
            f"resuming {folder} here could not be bit-equal ({'; '.join(changed)}); restore these, or pass --allow-inexact to go "
            "on all the same"
        )
    return changed


def _now(run: Run) -> dict[str, str]:
    import assay
    from assay.runtime.machine import fingerprint

    return {**fingerprint(run.threads), "ranks": _ranks(run.mesh), "assay": assay.__version__}


def _ranks(mesh: Mesh) -> str:
    return str(mesh.data) if mesh.context == 1 else f"{mesh.data} x {mesh.context}"
