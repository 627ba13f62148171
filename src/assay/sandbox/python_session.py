"""An interpreter that keeps its names over several turns, for tools."""

from __future__ import annotations

import secrets
import selectors
import struct
from contextlib import suppress
from dataclasses import asdict, replace
from time import monotonic
from types import TracebackType
from typing import Any

from assay.core.errors import ConfigError, SandboxError
from assay.sandbox.backend import Refused, WorkerDied
from assay.sandbox.channels import Channels, payload
from assay.sandbox.client import Zygote
from assay.sandbox.levels import ZygoteBackend
from assay.sandbox.limits import Limits
from assay.sandbox.result import Result, SandboxProgram, Status

__all__ = ["PythonSession"]

_LOST = "the interpreter ended: what it had defined is lost"
_GRACE = 60.0


class PythonSession:
    """A contained Python interpreter that keeps its names from one turn to the next. One thread at a time uses it.

    The value of a last expression is shown, as in a notebook. The limits of time and output hold for each turn, the others for
    the interpreter. A turn that exceeds a limit, or ends the interpreter itself, loses its state: the result says so in
    ``detail``, and the next turn begins with an empty interpreter.

    Made by `Sandbox.scope`. Use it as a context manager, or call `close`.

    Args:
        backend: how it is contained.
        limits: of each turn.

    Attributes:
        starts: how many interpreters there have been.

    Raises:
        SandboxError: no zygote can be started.
        ConfigError: limits that cannot be kept here.
    """

    def __init__(self, backend: ZygoteBackend, limits: Limits) -> None:
        self.starts = 0
        self._backend, self._limits = backend, limits
        self._channels: Channels | None = None
        self._zygote = self._begin()
        try:
            self._zygote.admit(limits)
        except ConfigError:
            self._zygote.close()
            raise

    def run(self, code: str, limits: Limits | None = None) -> Result:
        """One turn.

        Args:
            code: Python source.
            limits: of this turn; of them time and output count.
        """
        allowed = limits or self._limits
        try:
            channels = self._channels or self._start()
            return self._turn(channels, code, allowed)
        except WorkerDied as error:
            self._lose()
            self._zygote.close()
            self._zygote = self._begin()
            return Result(status=Status.INFRA, isolation=self._zygote.tag, detail=f"{error}; {_LOST}")

    def close(self) -> None:
        """Ends the interpreter."""
        self._lose()
        self._zygote.close()

    def __enter__(self) -> PythonSession:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _begin(self) -> Zygote:
        try:
            return self._backend.start()
        except Refused as error:
            raise SandboxError(f"no interpreter could be started: {error}") from None

    def _start(self) -> Channels:
        made = Channels(payload(SandboxProgram(code=" "), "scope"), b"", self._limits.output, both_ways=True)
        self._channels = made
        limits = asdict(self._limits) | {"wall": None, "turns": True}
        self._zygote.send({"order": "run", "limits": limits}, made.theirs)
        made.close_far_ends()
        self.starts += 1
        return made

    def _turn(self, channels: Channels, code: str, limits: Limits) -> Result:
        began = monotonic()
        channels.clear(limits.output)
        self._zygote.send({"order": "turn", "wall": limits.wall, "cpu": limits.cpu}, [])
        source, turn = code.encode("utf-8", "surrogatepass"), secrets.randbits(62)
        channels.say(struct.pack("<QQ", len(source), turn) + source, began + limits.wall)
        end = self._listen(channels, turn, began + limits.wall + _GRACE)
        if "error" in end:
            self._zygote.send({"order": "rest"}, [])
            rest = self._zygote.hear()
            if "status" not in rest and "infra" not in rest:
                return self._result_of(channels, end["error"], rest["cpu"], monotonic() - began)
            end = rest
        channels.drain()
        result = self._zygote.result(end, channels, limits, "run")
        self._lose()
        return replace(result, detail=f"{result.detail}; {_LOST}" if result.detail else _LOST)

    def _listen(self, channels: Channels, turn: int, due: float) -> dict[str, Any]:
        """Reads until the turn is over, or the interpreter is: what the program says of the first, or the zygote of the other."""
        with selectors.DefaultSelector() as ready:
            for fd in (self._zygote.control.fileno(), *channels.ours):
                ready.register(fd, selectors.EVENT_READ)
            while monotonic() < due:
                for key, _ in ready.select(due - monotonic()):
                    if key.fd == self._zygote.control.fileno():
                        return self._zygote.hear()
                    if not channels.read(key.fd):
                        ready.unregister(key.fd)
                        if channels.full and not channels.told:
                            channels.told = True
                            self._zygote.send({"order": "kill", "reason": "output"}, [])
                if not channels.full and (said := channels.answer(turn)) is not None:
                    return said
        raise WorkerDied(f"no word {_GRACE:g} s after the turn's time was up")

    def _result_of(self, channels: Channels, error: str, cpu: float, seconds: float) -> Result:
        channels.drain()
        return Result(
            status=Status.ERROR if error else Status.OK,
            stdout=channels.data[0].decode("utf-8", "replace"),
            stderr=channels.data[1].decode("utf-8", "replace"),
            seconds=seconds,
            cpu_seconds=cpu,
            isolation=self._zygote.tag,
            detail=error[:200],
        )

    def _lose(self) -> None:
        if self._channels is not None:
            with suppress(OSError):
                self._channels.__exit__()
            self._channels = None
