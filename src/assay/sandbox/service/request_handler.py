"""Behind the counter of a sandbox service: requests as SandboxFusion words them, run in a sandbox of ours."""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from time import monotonic
from typing import Any, cast

from assay.core.errors import AssayError, ConfigError, DataError, a_kind
from assay.sandbox.limits import Limits
from assay.sandbox.result import Result, SandboxProgram, Status
from assay.sandbox.sandbox import Sandbox
from assay.sandbox.toolchain import Language, language

__all__ = ["Full", "RunLimits", "RunRequestHandler"]

_SLOW = (Status.TIMEOUT, Status.CPU)
_UNSERVED = ("compile_args", "run_args", "args")
_KNOWN = (
    "code",
    "language",
    "stdin",
    "run_timeout",
    "compile_timeout",
    "memory_limit_MB",
    "files",
    "fetch_files",
    *_UNSERVED,
    "assay",
)
_MOST = Limits(cpu=60.0, wall=60.0, memory=2 << 30)


class Full(AssayError, RuntimeError):
    """So many programs wait already that one more is turned away; it should be sent again later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """What a service takes on.

    Attributes:
        most: the most that a request may ask for; also what holds where it asks for nothing, but for time: then 10 s.
        megabytes: size of one request, in units of 2^20 bytes.
        waiting: requests that wait for a worker; one more is turned away.

    Raises:
        ConfigError: no bytes, or fewer than no requests.
    """

    most: Limits = _MOST
    megabytes: float = 64.0
    waiting: int = 1024

    def __post_init__(self) -> None:
        if not self.megabytes > 0 or self.waiting < 0:
            raise ConfigError("RunLimits: megabytes must be above 0, waiting at least 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """What a request asks for.

    Attributes:
        program: Python source, or whatever a caller of assay's own says.
        limits: of its run.
        language: that the source is written in, where that is not the sandbox's own Python.
        wall: the most seconds that its compiler may take.
    """

    program: SandboxProgram
    limits: Limits
    language: Language | None = None
    wall: float | None = None


class RunRequestHandler:
    """Runs what requests hold; any number at once, as many at work as the sandbox has workers.

    Args:
        sandbox: runs programs, in Python and in the languages that it was made with; closed by whoever made it.
        limits: see `RunLimits`.
    """

    def __init__(self, sandbox: Sandbox, limits: RunLimits | None = None) -> None:
        self._sandbox, self.limits = sandbox, limits or RunLimits()
        self._running = 0
        self._counts: Counter[str] = Counter()
        self._began = monotonic()

    async def run(self, request: object) -> dict[str, Any]:
        """The answer to a request of ``/run_code``.

        Raises:
            DataError: it cannot be read; names the field.
            ConfigError: it asks for more than this service gives, or for what the sandbox cannot keep.
            Full: too many wait.
        """
        order = self._read(request)
        if self._running >= self._sandbox.workers + self.limits.waiting:
            self._counts.update(["turned_away"])
            raise Full(f"{self._running} programs run or wait already; try again later")
        self._running += 1
        try:
            result, compiled = await self._ran(order)
        finally:
            self._running -= 1
        self._counts.update([f"status/{result.status}"])
        return _result_fields(result, compiled)

    def health(self) -> dict[str, Any]:
        """What it is and how it does, as JSON."""
        return {
            "service": "assay sandbox",
            "status": "ok",
            "isolation": self._sandbox.tag,
            "line": self._sandbox.isolation,
            "layers": dict(self._sandbox.probe.layers),
            "seconds": round(monotonic() - self._began, 3),
            "workers": self._sandbox.workers,
            "running": self._running,
            "most": asdict(self.limits.most),
            "languages": ["python", *(one.name for one in self._sandbox.languages if one.run)],
            "served": dict(sorted(self._counts.items())),
        }

    async def _ran(self, order: _Order) -> tuple[Result, Result | None]:
        """How it ended, and how its compiler did; where that refused it, this is how it ended."""
        if order.language is None:
            return await self._sandbox.arun(order.program, order.limits), None
        asked = order.program
        built = await self._sandbox.acompile(order.language, asked.code, files=asked.files, wall=order.wall)
        if built.refused is not None:
            return built.refused, built.refused
        return await self._sandbox.arun(replace(built.program(asked.stdin), keep=asked.keep), order.limits), built.result

    def _read(self, request: object) -> _Order:
        if not isinstance(request, Mapping):
            raise DataError(f"the request is {a_kind(request)}; send an object with 'code'")
        given = cast("Mapping[str, Any]", request)
        unknown = sorted(set(map(str, given)) - set(_KNOWN))
        if unknown:
            raise DataError(f"unknown field {unknown[0]!r}; there are {', '.join(_KNOWN)}")
        for name in _UNSERVED:
            if given.get(name):
                raise DataError(f"{name!r}: programs and compilers of this service have no arguments of their own")
        spoken = self._language(given.get("language", "python"))
        if "code" not in given:
            raise DataError("the request has no 'code'; send an object with 'code'")
        code: Any = given["code"]
        files: Any = given.get("files") or {}
        if not isinstance(code, str) or not isinstance(files, Mapping):
            raise DataError("'code' must be text, and 'files' an object of names and contents in base64")
        more: Any = given.get("assay")
        own: Mapping[str, Any] = cast("Mapping[str, Any]", more) if isinstance(more, Mapping) else {}
        back: Any = given.get("fetch_files") or []
        if not isinstance(back, list) or not all(isinstance(name, str) for name in cast("list[Any]", back)):
            raise DataError(f"'fetch_files' is {back!r}; give a list of names of files")
        laid = {str(name): _decode_base64(data, f"file {name!r}") for name, data in cast("Mapping[Any, Any]", files).items()}
        stdin = _decode_base64(own["stdin"], "assay.stdin") if "stdin" in own else str(given.get("stdin") or "")
        try:
            program = SandboxProgram(
                code=code,
                stdin=stdin,
                files=laid,
                argv=tuple(map(str, own.get("argv", ()))),
                args=tuple(map(str, own.get("args", ()))),
                entry=str(own.get("entry", "")),
                arguments=own.get("arguments", ()),
                keep=tuple(cast("list[str]", back)),
            )
            if spoken is not None and (program.argv or program.args or program.entry):
                raise DataError(f"'language' is {spoken.name!r}: argv, args and entry are Python's alone")
            wall = None if spoken is None else float(given.get("compile_timeout") or spoken.compile_limits.wall)
            return _Order(program=program, limits=self._limits(given, own), language=spoken, wall=wall)
        except AssayError:
            raise
        except (TypeError, ValueError) as error:
            raise DataError(f"the request cannot be read: {error}") from None

    def _language(self, name: object) -> Language | None:
        """What a source is written in; None for the sandbox's own Python."""
        opened = {word: one for one in (language("python"), *self._sandbox.languages) for word in one.names}
        if not isinstance(name, str) or name.lower() not in opened:
            known = dict.fromkeys(one.name for one in opened.values())
            raise DataError(
                f"'language' is {name!r}; this service runs {', '.join(known)}; it is started with --languages for others"
            )
        found = opened[name.lower()]
        return found if found.run else None

    def _limits(self, given: Mapping[str, Any], own: Mapping[str, Any]) -> Limits:
        """Those of the request, where it has any of ours; else its time, which is all that other callers know, and its memory."""
        most = self.limits.most
        if "limits" in own:
            asked = Limits(**{str(name): value for name, value in own["limits"].items()})
        else:
            seconds, memory = float(given.get("run_timeout") or 10.0), int(given.get("memory_limit_MB") or -1)
            asked = replace(most, wall=seconds, cpu=min(seconds, most.cpu), memory=memory << 20 if memory > 0 else most.memory)
        for field in fields(Limits):
            if getattr(asked, field.name) > getattr(most, field.name):
                raise ConfigError(
                    f"limit {field.name}={getattr(asked, field.name)}: this service gives at most {getattr(most, field.name)}; "
                    "ask for less, or start it with other --limits"
                )
        return asked


def _result_fields(result: Result, compiled: Result | None = None) -> dict[str, Any]:
    """A result in SandboxFusion's words, and beside them in ours; ``compiled`` is how its compiler ended."""
    told = {
        "status": str(result.status),
        "exit_code": result.exit_code,
        "signal": result.signal,
        "value": result.value,
        "cpu_seconds": result.cpu_seconds,
        "isolation": result.isolation,
        "detail": result.detail,
        "left": result.left,
        "cleanup_seconds": result.cleanup_seconds,
    }
    answer: dict[str, Any] = {
        "status": "Success" if result.ok else "Failed",
        "message": result.detail,
        "compile_result": None,
        "run_result": None,
        "executor_pod_name": None,
        "files": {name: base64.b64encode(data).decode() for name, data in result.files.items()},
        "assay": told,
    }
    if not result.judged:
        return answer | {"status": "SandboxError"}
    if compiled is not None:
        answer["compile_result"] = _command(compiled)
    return answer if result is compiled else answer | {"run_result": _command(result)}


def _command(result: Result) -> dict[str, Any]:
    """One process in SandboxFusion's words, in which ``Error`` would be the service's own, never the program's."""
    slow = result.status in _SLOW or (result.status is Status.COMPILE and result.detail in _SLOW)
    return {
        "status": "TimeLimitExceeded" if slow else "Finished",
        "execution_time": result.seconds,
        "return_code": result.exit_code if result.exit_code is not None else -(result.signal or 9),
        "stdout": result.stdout,
        "stderr": result.stderr,
    }


def _decode_base64(data: object, what: str) -> bytes:
    try:
        return base64.b64decode(str(data), validate=True)
    except binascii.Error as error:
        raise DataError(f"{what} is no base64: {error}") from None
