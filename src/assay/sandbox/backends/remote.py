"""Programs run by a service over HTTP: an ``assay serve sandbox``, or another that speaks SandboxFusion's ``/run_code``."""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, cast
from urllib.parse import urlsplit

from assay.core.errors import ConfigError, DataError, a_kind
from assay.sandbox.backend import Refused
from assay.sandbox.limits import Limits
from assay.sandbox.result import Result, SandboxProgram, Status
from assay.sandbox.values import check

__all__ = ["Remote", "RemoteWorker"]

_GRACE = 30.0
_LATER = (429, 502, 503, 504)
_KEPT = ("wall", "memory", "output")
"""Limits that any such service is told of, or that are looked at here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A service elsewhere as a backend: ``POST /run_code`` as SandboxFusion has it, which verl and others speak too.

    An ``assay serve sandbox`` is told the whole of the program and its limits. Another service knows only source, input, files
    (those to keep too), time and memory: a program that needs more is refused, and so are limits of which it would never hear,
    unless ``own`` says that they are the service's own affair. Whatever fails on the way is ``infra``, never a verdict.

    Attributes:
        url: ``http://host:port``.
        token: sent as ``Authorization: Bearer TOKEN``.
        patience: seconds over which a busy or absent service is asked again.
        own: limits that another service than assay's keeps by settings of its own.
        keeps: its workers give back files that a program keeps.
        advice: what to do where it does not hold.

    Raises:
        ConfigError: a URL that is not http or https, negative patience, or no such limit.

    >>> Remote(url="http://10.0.0.7:8080", own=("cpu", "files")).name
    'remote (10.0.0.7:8080)'
    """

    url: str
    token: str = ""
    patience: float = 20.0
    own: tuple[str, ...] = ()
    keeps: ClassVar[bool] = True
    advice: ClassVar[str] = (
        "Look whether the service runs ('assay serve sandbox' starts one) and listens at that URL, and whether the token is its "
        "own (Remote.token, or the variable ASSAY_SANDBOX_TOKEN); GET /health says what contains its programs."
    )

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")) or not urlsplit(self.url).netloc:
            raise ConfigError(f"Remote.url={self.url!r}; give http://HOST:PORT")
        if self.patience < 0:
            raise ConfigError(f"Remote.patience={self.patience}; give seconds, 0 to ask once")
        unknown = set(self.own) - set(asdict(Limits()))
        if unknown:
            raise ConfigError(f"Remote.own: {sorted(unknown)} are no limits; there are {', '.join(asdict(Limits()))}")

    @property
    def name(self) -> str:
        """``remote`` and the host."""
        return f"remote ({urlsplit(self.url).netloc.rpartition('@')[2]})"

    def start(self) -> RemoteWorker:
        """A worker.

        Raises:
            Refused: the service cannot be reached, or turns us away.
        """
        return RemoteWorker(self)


class RemoteWorker:
    """Asks a service to run one program at a time.

    Args:
        backend: whom to ask.

    Attributes:
        layers: what the service says of itself, as `Worker` says.

    Raises:
        Refused: it cannot be reached, or turns us away.
    """

    def __init__(self, backend: Remote) -> None:
        self._backend = backend
        self._assay = False
        try:
            said = self._ask("/health", None, 10.0)
            self._assay = said.get("service") == "assay sandbox"
        except _Failed as error:
            if error.code not in (404, 405):
                raise Refused(f"{backend.url}: {error}") from None
            said = {}
        found: Any = said.get("layers") if self._assay else None
        layers: Mapping[str, Any] = cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}
        self.layers: Mapping[str, str] = {str(name): str(text) for name, text in layers.items()} | {
            "service": f"assay, at {said.get('isolation')}" if self._assay else "another's, which alone knows what it contains"
        }

    def run(self, program: SandboxProgram, limits: Limits) -> Result:
        """Runs a program to its end.

        Raises:
            ConfigError: what the service cannot be told: a limit, or part of the program.
            DataError: arguments that JSON cannot say.
        """
        name = self._backend.name
        request = self._request(program, limits)
        try:
            data = json.dumps(request).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise DataError(f"Program.arguments must be plain values that JSON can say: {error}") from None
        try:
            said = self._ask("/run_code", data, limits.wall + _GRACE)
            result = _own(said, name, program) if self._assay else _foreign(said, name, limits)
            return _fetch_files(result, said, program, limits)
        except _Failed as error:
            if error.code == 400 and self._assay:
                raise ConfigError(f"{self._backend.url}: {error}") from None
            return Result(status=Status.INFRA, isolation=name, detail=f"{self._backend.url}: {error}")
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            why = f"{self._backend.url} answered in a form that is not known: {type(error).__name__}: {error}"
            return Result(status=Status.INFRA, isolation=name, detail=why)

    def close(self) -> None:
        """Nothing lives here."""

    def _request(self, program: SandboxProgram, limits: Limits) -> dict[str, Any]:
        stdin = program.stdin if isinstance(program.stdin, bytes) else program.stdin.encode("utf-8", "surrogatepass")
        request: dict[str, Any] = {
            "code": program.code,
            "language": "python",
            "run_timeout": limits.wall,
            "compile_timeout": limits.wall,
            "memory_limit_MB": limits.memory >> 20,
            "files": {n: _encode_data(data) for n, data in program.files.items()},
        }
        if program.keep:
            request["fetch_files"] = list(program.keep)
        if self._assay:
            more = {"argv": program.argv, "args": program.args, "entry": program.entry, "arguments": list(program.arguments)}
            return request | {"assay": {**more, "stdin": _encode_data(stdin), "limits": asdict(limits)}}
        lost = [n for n in ("argv", "args", "entry") if getattr(program, n)]
        unheard = [n for n in asdict(limits) if n not in (*_KEPT, *self._backend.own)]
        if lost:
            raise ConfigError(f"Program.{lost[0]}: {self._backend.url} is no 'assay serve sandbox' and cannot be told of it")
        if unheard:
            raise ConfigError(
                f"limits {', '.join(unheard)}: {self._backend.url} is no 'assay serve sandbox' and cannot be told of them; if it "
                "keeps limits of its own, say Remote(own=(...)) with these names"
            )
        try:
            return request | {"stdin": stdin.decode()}
        except UnicodeDecodeError:
            raise ConfigError(f"Program.stdin is no UTF-8, and {self._backend.url} takes text alone") from None

    def _ask(self, path: str, data: bytes | None, timeout: float) -> dict[str, Any]:
        until, pause = time.monotonic() + self._backend.patience, 0.1
        while True:
            try:
                return self._once(path, data, timeout)
            except _Failed as failed:
                if not failed.later or time.monotonic() + pause > until:
                    raise
                time.sleep(pause)
                pause = min(2.0, 2 * pause)

    def _once(self, path: str, data: bytes | None, timeout: float) -> dict[str, Any]:
        token = self._backend.token
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        try:
            asked = urllib.request.Request(self._backend.url.rstrip("/") + path, data, headers)
            with urllib.request.urlopen(asked, timeout=timeout) as answer:
                found: Any = json.load(answer)
        except urllib.error.HTTPError as error:
            raise _Failed(f"status {error.code}: {_error_text(error)}", error.code, error.code in _LATER) from None
        except TimeoutError:
            raise _Failed(f"no answer within {timeout:g} s") from None
        except (OSError, ValueError) as error:
            raise _Failed(str(getattr(error, "reason", error)), later=isinstance(error, OSError)) from None
        if not isinstance(found, dict):
            raise _Failed(f"answered with {a_kind(found)}, not an object")
        return cast("dict[str, Any]", found)


class _Failed(Exception):
    """The service gave no answer; ``code`` is its HTTP status, 0 for none; ``later``: worth asking again."""

    def __init__(self, why: str, code: int = 0, later: bool = False) -> None:
        super().__init__(why)
        self.code, self.later = code, later


def _own(said: Mapping[str, Any], name: str, program: SandboxProgram) -> Result:
    """What an ``assay serve sandbox`` says of a run."""
    told, run = said["assay"], cast("Mapping[str, Any]", said["run_result"] or {})
    status = Status(told["status"])
    if status is Status.INFRA:
        return Result(status=status, isolation=name, detail=str(told["detail"]))
    check(told["value"])
    return Result(
        status=status,
        exit_code=None if told["exit_code"] is None else int(told["exit_code"]),
        signal=None if told["signal"] is None else int(told["signal"]),
        stdout=str(run["stdout"]),
        stderr=str(run["stderr"]),
        seconds=float(run["execution_time"]),
        cpu_seconds=float(told["cpu_seconds"]),
        isolation=name,
        value=told["value"] if program.entry and status is Status.OK else None,
        detail=str(told["detail"]),
        left=int(told.get("left", 0)),  # services of before did not say
        cleanup_seconds=float(told.get("cleanup_seconds", 0.0)),
    )


def _foreign(said: Mapping[str, Any], name: str, limits: Limits) -> Result:
    """What any other service says of a run: only ``Success`` and ``Failed`` with a result of the run are about the program."""
    run = said.get("run_result")
    if said["status"] not in ("Success", "Failed") or not isinstance(run, Mapping):
        why = f"{said['status']}: {str(said.get('message', ''))[:500]}"
        return Result(status=Status.INFRA, isolation=name, detail=why)
    found = cast("Mapping[str, Any]", run)
    words = {"Finished": Status.OK, "Error": Status.ERROR, "TimeLimitExceeded": Status.TIMEOUT}
    status, code = words.get(str(found["status"]), Status.INFRA), found.get("return_code")
    out, errors = str(found.get("stdout") or ""), str(found.get("stderr") or "")
    if status is Status.OK and code not in (0, None):
        status = Status.ERROR
    if max(len(out.encode("utf-8", "replace")), len(errors.encode("utf-8", "replace"))) > limits.output:
        status = Status.OUTPUT
    return Result(
        status=status,
        exit_code=int(code) if code is not None and int(code) >= 0 and status in (Status.OK, Status.ERROR) else None,
        signal=-int(code) if code is not None and int(code) < 0 else None,
        stdout=out[: limits.output],
        stderr=errors[: limits.output],
        seconds=float(found.get("execution_time") or 0.0),
        isolation=name,
        detail="" if status is not Status.INFRA else f"a run that ended as {found['status']!r}",
    )


def _fetch_files(result: Result, said: Mapping[str, Any], program: SandboxProgram, limits: Limits) -> Result:
    """The result with the files that the program keeps, of what came; other files of the service's choice are dropped."""
    if not (program.keep and result.judged):
        return result
    came: Any = said.get("files") or {}
    if not isinstance(came, dict):
        raise TypeError(f"'files' is {a_kind(came)}")
    files: dict[str, bytes] = {}
    for name, data in ((str(name), str(data)) for name, data in cast("dict[Any, Any]", came).items()):
        if any(name == one or name.startswith(f"{one}/") for one in program.keep) and ".." not in name.split("/"):
            files[name] = base64.b64decode(data, validate=True)
    if sum(map(len, files.values())) > limits.disk:
        return replace(result, status=Status.DISK, detail="the files to keep are larger than Limits.disk")
    return replace(result, files=files)


def _encode_data(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _error_text(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["error"])
    except (ValueError, KeyError, TypeError, OSError):
        return str(error.reason)
