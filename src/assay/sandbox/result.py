"""What is run, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from assay.core.errors import ConfigError

__all__ = ["Program", "Result", "Status"]


class Status(StrEnum):
    """How a run ended. All but ``ok`` and ``infra`` are the program's own failures."""

    OK = "ok"
    """It ended by itself with exit code 0; a call returned a value."""
    ERROR = "error"
    """Another exit code, a signal, or a call without a value."""
    TIMEOUT = "timeout"
    """It ran longer than ``Limits.wall``."""
    CPU = "cpu"
    """It used more processor time than ``Limits.cpu``."""
    MEMORY = "memory"
    """It failed for want of memory."""
    OUTPUT = "output"
    """It wrote more than ``Limits.output``."""
    DISK = "disk"
    """It failed for want of disk, or wrote too large a file."""
    PROCESSES = "processes"
    """It failed because it may start no more processes or threads."""
    BLOCKED = "blocked"
    """It failed because it tried what is not allowed."""
    INFRA = "infra"
    """The sandbox failed: this says nothing about the program, and is no verdict on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is run.

    Attributes:
        code: Python source; empty where ``argv`` is given.
        argv: any other program and its arguments.
        stdin: its standard input.
        files: files to lay in its folder first, by relative path; they may be executed.
        args: ``sys.argv[1:]`` of Python source.
        entry: a function of the source to call after it ran; its return value is the result's ``value``.
        arguments: what ``entry`` is called with: plain values that JSON can say.

    Raises:
        ConfigError: neither source nor ``argv``, both, or a file outside the folder.

    >>> Program(code="print(1)").argv
    ()
    """

    code: str = ""
    argv: tuple[str, ...] = ()
    stdin: str | bytes = b""
    files: Mapping[str, bytes] = field(default_factory=lambda: MappingProxyType({}))
    args: tuple[str, ...] = ()
    entry: str = ""
    arguments: Sequence[Any] = ()

    def __post_init__(self) -> None:
        if bool(self.argv) and bool(self.code or self.entry):
            raise ConfigError("a Program has either code or argv; to give a program a source file, put it into files")
        for name in self.files:
            if not name or name.startswith("/") or ".." in name.split("/") or "\0" in name:
                raise ConfigError(f"Program.files[{name!r}]: give a path below the program's own folder")
            if any(other.startswith(f"{name}/") for other in self.files):
                raise ConfigError(f"Program.files[{name!r}] is a folder of another file; give it another name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a run ended.

    Attributes:
        status: in one word.
        exit_code: what it ended with; None if a signal or the sandbox ended it.
        signal: the number of the signal that ended it, or None.
        stdout, stderr: what it wrote, up to ``Limits.output`` bytes each; bytes that are no UTF-8 are replaced.
        seconds: from start to end.
        cpu_seconds: processor time of all its processes.
        isolation: what held it: ``strong``, ``landlock``, or ``rlimits (UNSAFE)``.
        value: what ``Program.entry`` returned, as JSON carries it (tuples as lists).
        detail: why, where the status alone does not say: for ``infra``, and for a call without a value.
    """

    status: Status
    exit_code: int | None = None
    signal: int | None = None
    stdout: str = ""
    stderr: str = ""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    isolation: str = ""
    value: Any = None
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether it did what was asked."""
        return self.status is Status.OK

    @property
    def judged(self) -> bool:
        """Whether this says anything about the program."""
        return self.status is not Status.INFRA
