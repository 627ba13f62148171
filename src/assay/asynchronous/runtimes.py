"""Runtimes by name: processes of this machine, or actors of a Ray cluster."""

from __future__ import annotations

from assay.asynchronous.spawner import Spawner
from assay.core.errors import UnknownNameError

__all__ = ["RUNTIMES", "spawner_of"]

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
