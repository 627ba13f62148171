"""What is run, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar

from assay.core.errors import ConfigError
from assay.core.util.renamed import RenamedMembers
from assay.sandbox.limits import Limits

__all__ = ["Result", "SandboxProgram", "Status"]

_NOTHING: Mapping[str, Any] = MappingProxyType({})


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
    COMPILE = "compile"
    """Its compiler refused it, or needed more than a compiler may; ``detail`` says how that ended, ``stderr`` why."""
    INFRA = "infra"
    """The sandbox failed: this says nothing about the program, and is no verdict on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxProgram(RenamedMembers):
    """What is run.

    Attributes:
        code: Python source; empty where ``argv`` is given.
        argv: any other program and its arguments.
        stdin: its standard input.
        files: files to lay in its folder first, by relative path; they may be executed.
        args: ``sys.argv[1:]`` of Python source.
        entry: a function of the source to call after it ran; its return value is the result's ``value``.
        arguments: what ``entry`` is called with: plain values that JSON can say.
        keep: files, or folders of files, that come back in `Result.files` when it ended by itself.
        extra: what its runtime takes for itself, by the limits' names, as address space that an interpreter reserves and does
            not use: `Sandbox.run` adds it to the limits. ``{memory}`` in its ``argv`` is then what they said before, in MiB.
        no_memory: what it writes to its standard error when it fails for want of memory: an ``error`` that says so is ``memory``.

    Raises:
        ConfigError: neither source nor ``argv``, both, or a file outside the folder.

    >>> SandboxProgram(code="print(1)").argv
    ()
    """

    renamed_members: ClassVar[Mapping[str, str]] = {"fitted": "fit_limits"}

    code: str = ""
    argv: tuple[str, ...] = ()
    stdin: str | bytes = b""
    files: Mapping[str, bytes] = field(default_factory=lambda: _NOTHING)
    args: tuple[str, ...] = ()
    entry: str = ""
    arguments: Sequence[Any] = ()
    keep: tuple[str, ...] = ()
    extra: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    no_memory: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.argv) and bool(self.code or self.entry):
            raise ConfigError("a Program has either code or argv; to give a program a source file, put it into files")
        for kind, names in (("files", self.files), ("keep", self.keep)):
            for name in names:
                if not name or name.startswith("/") or ".." in name.split("/") or "\0" in name:
                    raise ConfigError(f"Program.{kind}[{name!r}]: give a path below the program's own folder")
        for name in self.files:
            if any(other.startswith(f"{name}/") for other in self.files):
                raise ConfigError(f"Program.files[{name!r}] is a folder of another file; give it another name")

    def fit_limits(self, limits: Limits) -> tuple[SandboxProgram, Limits]:
        """It and the limits as a backend runs them: with what its runtime takes for itself.

        >>> program, limits = SandboxProgram(argv=("node", "--max-old-space-size={memory}"),
        ...     extra={"memory": 2 << 30}).fit_limits(Limits())
        >>> program.argv[1], limits.memory >> 20
        ('--max-old-space-size=512', 2560)
        """
        if not self.extra:
            return self, limits
        raised = {name: getattr(limits, name) + value for name, value in self.extra.items()}
        argv = tuple(word.replace("{memory}", str(limits.memory >> 20)) for word in self.argv)
        return replace(self, argv=argv), replace(limits, **raised)

    def reclassify(self, result: Result) -> Result:
        """Its result, where what it says of its failure is known to mean a lack of memory."""
        short = result.status is Status.ERROR and any(word in result.stderr for word in self.no_memory)
        return replace(result, status=Status.MEMORY) if short else result


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
        isolation: what held it: ``strong``, ``landlock``, another backend's name, or ``rlimits (UNSAFE)``.
        value: what ``SandboxProgram.entry`` returned, as JSON carries it (tuples as lists).
        detail: why, where the status alone does not say: for ``infra``, ``compile``, and for a call without a value.
        files: what it was to keep: relative path to content.
        left: files and folders that it left in its folder, which were removed; 0 where the folder ends with the run, and where
            there were too many to remove them in time (``detail`` says so).
        cleanup_seconds: how long their removal took, after ``seconds``.
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
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    left: int = 0
    cleanup_seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether it did what was asked."""
        return self.status is Status.OK

    @property
    def judged(self) -> bool:
        """Whether this says anything about the program."""
        return self.status is not Status.INFRA
