"""What a run folder remembers of the machine, and whether a resume there could be bit-equal."""

from __future__ import annotations

from pathlib import Path

from assay.core.errors import InexactResumeError
from assay.train import storage

__all__ = ["check_same", "record"]


def record(folder: Path, threads: int) -> None:
    """Writes ``versions.json``."""
    storage.write_json(folder / "versions.json", _now(threads))


def check_same(folder: Path, threads: int, allow_inexact: bool) -> list[str]:
    """Differences between this machine and the one that wrote ``folder``.

    Raises:
        InexactResumeError: there are some and ``allow_inexact`` is False.
    """
    before, now = storage.read_json(folder / "versions.json"), _now(threads)
    changed = [f"{k}: {before.get(k)} then, {now.get(k)} now" for k in sorted(now) if before.get(k) != now.get(k)]
    if changed and not allow_inexact:
        raise InexactResumeError(
            f"resuming {folder} here could not be bit-equal ({'; '.join(changed)}); restore these, or pass --allow-inexact to go "
            "on all the same"
        )
    return changed


def _now(threads: int) -> dict[str, str]:
    import assay
    from assay.runtime.machine import fingerprint

    return {**fingerprint(threads), "assay": assay.__version__}
