"""A program ready to be run, many times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Protocol

from assay.core.errors import ConfigError
from assay.core.import_path import filed_as
from assay.sandbox.limits import Limits
from assay.sandbox.result import Result, SandboxProgram, Status
from assay.sandbox.toolchain import Language, language

__all__ = ["CompiledProgram", "build"]

_NO_FILES: Mapping[str, bytes] = MappingProxyType({})
_SLACK = 1 << 13
"""What a file takes beyond its bytes, at most: the rest of a page, and its folder."""


@filed_as("assay.sandbox.built:Built")
@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledProgram:
    """A program of some language, compiled where that is needed.

    Attributes:
        language: that it is written in.
        files: what is in its folder when it runs: what the compiler made, or the source, and what was laid beside it.
        result: how compiling ended; None where nothing was compiled.

    >>> from assay.sandbox import Sandbox
    >>> with Sandbox(workers=1, languages=("perl",)) as sandbox:
    ...     built = sandbox.compile("perl", "print 2 * <STDIN>;")
    ...     print([sandbox.run(built.program(text)).stdout for text in ("3", "4")])
    ['6', '8']
    """

    language: Language
    files: Mapping[str, bytes]
    result: Result | None = None

    @property
    def refused(self) -> Result | None:
        """Why it cannot be run: with the status ``compile``, or ``infra``, which is no verdict; None where it can."""
        return None if self.result is None or self.result.ok else self.result

    def program(self, stdin: str | bytes = b"") -> SandboxProgram:
        """One run.

        Args:
            stdin: what it reads.

        Raises:
            ConfigError: it was `refused`.
        """
        if self.refused is not None:
            raise ConfigError(f"this {self.language.name} program did not compile: look at Built.refused before you run it")
        if not self.language.run:
            beside = {name: data for name, data in self.files.items() if name != self.language.file}
            return SandboxProgram(code=self.files[self.language.file].decode("utf-8", "surrogatepass"), stdin=stdin, files=beside)
        own = {"disk": sum(len(data) + _SLACK for data in self.files.values()), "entries": 2 * len(self.files) + 2}
        extra = {name: own.get(name, 0) + self.language.extra.get(name, 0) for name in {*own, *self.language.extra}}
        return SandboxProgram(
            argv=self.language.run, stdin=stdin, files=self.files, extra=extra, no_memory=self.language.no_memory
        )


class _Sandbox(Protocol):
    """What `build` needs of a sandbox."""

    languages: tuple[Language, ...]

    def run(self, program: SandboxProgram, limits: Limits | None = None) -> Result: ...


def build(
    sandbox: _Sandbox, name: str | Language, source: str, files: Mapping[str, bytes] = _NO_FILES, wall: float | None = None
) -> CompiledProgram:
    """As `assay.sandbox.Sandbox.compile` says."""
    own = _open_language(sandbox.languages, name)
    laid = {**files, own.file: source.encode("utf-8", "surrogatepass")}
    if not own.compile:
        return CompiledProgram(language=own, files=laid)
    limits = own.compile_limits if wall is None else replace(own.compile_limits, wall=min(wall, own.compile_limits.wall))
    result = sandbox.run(SandboxProgram(argv=own.compile, files=laid, keep=own.keep), limits)
    if result.ok and not _kept(own.keep, result.files):
        result = replace(result, status=Status.ERROR, detail=f"it left no {own.keep[0]}")
    if result.judged and not result.ok:
        result = replace(result, status=Status.COMPILE, detail=result.detail or str(result.status))
    return CompiledProgram(language=own, files={**files, **result.files}, result=replace(result, files={}))


def _open_language(languages: Sequence[Language], name: str | Language) -> Language:
    wanted = language(name) if isinstance(name, str) else name
    if wanted.run and wanted not in languages:
        opened = ", ".join(one.name for one in languages) or "none"
        raise ConfigError(
            f"this Sandbox has no language {wanted.name!r} (it has: {opened}); make it with languages=({wanted.name!r},), so "
            "that programs can see its toolchain"
        )
    return wanted


def _kept(keep: Sequence[str], files: Mapping[str, bytes]) -> bool:
    return all(any(name == one or name.startswith(f"{one}/") for name in files) for one in keep)
