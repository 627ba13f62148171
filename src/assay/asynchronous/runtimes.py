"""Runtimes by name: processes of this machine, or actors of a Ray cluster."""

from __future__ import annotations

from pathlib import Path

from assay.asynchronous.spawner import Spawner
from assay.core.errors import ConfigError, UnknownNameError
from assay.runs import storage

__all__ = ["RUNTIMES", "spawner_of", "want_samplers", "wanted_samplers"]

_COUNT = "count"
RUNTIMES = ("process", "ray")


def spawner_of(runtime: str) -> Spawner:
    """By name.

    Raises:
        UnknownNameError: another name than those of `RUNTIMES`.
        MissingExtraError: Ray is not installed.

    >>> type(spawner_of("process")).__name__
    'ProcessSpawner'
    """
    if runtime == "process":
        from assay.asynchronous.process_spawner import ProcessSpawner

        return ProcessSpawner()
    if runtime == "ray":
        from assay.asynchronous.ray_spawner import RaySpawner

        return RaySpawner()
    raise UnknownNameError("Asynchronous.runtime", runtime, RUNTIMES)


def want_samplers(folder: Path, count: int) -> None:
    """Says how many samplers a run is to have from now on; one that is at work starts and ends samplers within a second.

    Args:
        folder: ``samplers`` of the run folder.
        count: of samplers.

    Raises:
        ConfigError: none.
        StorageError: it cannot be written.
    """
    if count < 1:
        raise ConfigError(f"{count} samplers would sample nothing, and the learner would wait; use 1 or more, or stop the run")
    storage.write_bytes(folder / _COUNT, b"%d\n" % count)


def wanted_samplers(folder: Path, count: int) -> int:
    """How many samplers a run is to have: what `want_samplers` said last, else ``count``.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> before = wanted_samplers(folder, 2)
    >>> want_samplers(folder, 5)
    >>> before, wanted_samplers(folder, 2)
    (2, 5)
    """
    try:
        return int((folder / _COUNT).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return count
