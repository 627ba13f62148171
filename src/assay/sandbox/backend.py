"""What a way of containing programs must offer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from assay.sandbox.limits import Limits
from assay.sandbox.result import Result, SandboxProgram

__all__ = ["Backend", "Refused", "Worker", "WorkerDied"]


class Refused(Exception):
    """What a backend needs is not granted by this host; says why."""


class WorkerDied(Exception):
    """A worker is gone, or does not answer: it must be replaced. Says nothing about the program."""


class Worker(Protocol):
    """Runs one program at a time; used by one thread at a time.

    Attributes:
        layers: what holds its programs: name to what was granted, or to ``no:`` and why not.
    """

    @property
    def layers(self) -> Mapping[str, str]: ...

    def run(self, program: SandboxProgram, limits: Limits) -> Result:
        """Runs a program to its end.

        Raises:
            WorkerDied: this worker must be replaced.
        """
        ...

    def close(self) -> None:
        """Ends it, and what it runs."""
        ...


@runtime_checkable
class Backend(Protocol):
    """A way of containing programs.

    Attributes:
        name: what stands in `Result.isolation`.

    A backend whose workers give back the files that a program keeps says so by ``keeps = True``.
    """

    @property
    def name(self) -> str: ...

    def start(self) -> Worker:
        """A new worker.

        Raises:
            Refused: this host does not grant what it needs.
        """
        ...
