"""One run of an agent program: a process group of its own, which ends whole."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from assay.agents.watchdog import forget_group, watch_group, watched_environment
from assay.core.errors import ConfigError

__all__ = ["ProgramEnd", "command_words", "program_end", "run_program", "with_absolute_paths"]

MOST_OUTPUT = 1 << 20
"""Bytes of a program's output that are read; of more, the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramEnd:
    """How a program ended.

    Attributes:
        code: exit status, negative for a signal; None where it was ended from outside.
        stdout, stderr: the end of what it wrote.
    """

    code: int | None
    stdout: str
    stderr: str

    @property
    def status(self) -> str:
        """The exit status in words."""
        if self.code is None:
            return "it was ended"
        return f"it ended with exit status {self.code}" if self.code >= 0 else f"it was ended by signal {-self.code}"

    @property
    def trouble(self) -> str:
        """The last words of its errors, in one line."""
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip()]
        return " / ".join(lines[-3:])[-400:]


def command_words(command: str, values: Mapping[str, str]) -> list[str]:
    """A command line as words, ``{name}`` in them replaced: no shell reads it, and a prompt stays one argument.

    Raises:
        ConfigError: quotes that do not close, or no command.

    >>> command_words("agent --task {prompt}", {"prompt": "1 + 1"})
    ['agent', '--task', '1 + 1']
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"AgentProgram.command={command!r}: {error}") from None
    if not words:
        raise ConfigError("AgentProgram.command is empty; name a program, as 'python my_agent.py'")
    for name, value in values.items():
        words = [word.replace(f"{{{name}}}", value) for word in words]
    return words


def with_absolute_paths(command: str) -> str:
    """A command line whose arguments that are files here are absolute paths: each run works in a folder of its own.

    Raises:
        ConfigError: as `command_words`.

    >>> with_absolute_paths("python agent_that_is_not_here.py {prompt}")
    'python agent_that_is_not_here.py {prompt}'
    """
    words = command_words(command, {})
    found = [str(Path(w).resolve()) if _is_file_here(w, first=i == 0) else w for i, w in enumerate(words)]
    return command if found == words else shlex.join(found)


def _is_file_here(word: str, first: bool) -> bool:
    """A file below the present folder; a program's name without a slash is looked for on the path instead."""
    return not Path(word).is_absolute() and (not first or "/" in word) and len(word) < 256 and Path(word).is_file()


async def run_program(words: list[str], environment: Mapping[str, str], folder: Path, deadline: float) -> ProgramEnd:
    """Runs a program until it ends, or its deadline; then every process of its group is killed.

    Standard input is closed. A program that is asked to end might not: the group gets SIGKILL at once. It gets it too when this
    process itself is killed, at whatever moment (`watchdog`).

    Args:
        words: program and arguments.
        environment: all of it, but for the mark by which the program is found after a kill.
        folder: where it works; its output is kept beside that.
        deadline: seconds.

    Raises:
        ConfigError: there is no such program.
    """
    with (folder.parent / "stdout").open("wb") as out, (folder.parent / "stderr").open("wb") as err:
        try:
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=folder,
                env={**environment, **watched_environment()},
                start_new_session=True,
            )
        except OSError as error:
            raise ConfigError(
                f"AgentProgram.command: cannot start {words[0]!r}: {error.strerror}; give a path or install it"
            ) from None
        code: int | None = None
        watch_group(process.pid)
        try:
            with suppress(TimeoutError):
                code = await asyncio.wait_for(process.wait(), deadline)
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            forget_group(process.pid)
    return program_end(folder, code)


def program_end(folder: Path, code: int | None = None) -> ProgramEnd:
    """How a program that worked in a folder ended, by what it wrote; without a status, it was ended from outside."""
    return ProgramEnd(code=code, stdout=_tail(folder.parent / "stdout"), stderr=_tail(folder.parent / "stderr"))


def _tail(path: Path) -> str:
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - MOST_OUTPUT))
        return file.read().decode("utf-8", "replace")
