"""``assay serve``: a verifier as a reward service over HTTP, or the sandbox as a service that runs programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from assay.cli.options import parse
from assay.cli.output import choose, note
from assay.cli.sources import scorer, source
from assay.cli.verify import gathered, settings_of
from assay.core.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from assay.sandbox import Language

__all__ = ["serve_command"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeVerifierOptions:
    """Scores answers over HTTP for any trainer: POST /score, GET /health. Ctrl-C stops it.

    Attributes:
        name: a verifier ('assay verify list' names them), or my_file.py:function or package.module:Class of your own.
        set: a setting of the verifier, KEY=VALUE, the value as JSON or plain text; may be given several times.
        family: a task family whose tasks callers name by their ids.
        host: the address to listen on; one that other machines reach needs a token.
        port: the port to listen on; 0 for any that is free.
        token_file: a file with a token that every caller must send.
        parallel: requests that are judged at once.
        deadline: seconds for one verdict of a verifier that runs in a process of its own.
        items: answers that one request may hold.
        megabytes: size that one request may have.
        waiting: requests that may wait.
    """

    name: str = field(metadata={"positional": True, "arg": {"metavar": "NAME"}})
    set: tuple[str, ...] = field(default=(), metadata={"arg": {"metavar": "KEY=VALUE"}})
    family: str | None = field(default=None, metadata={"arg": {"metavar": "FAMILY"}})
    host: str = field(default="127.0.0.1", metadata={"arg": {"metavar": "ADDRESS"}})
    port: int = field(default=8900, metadata={"arg": {"metavar": "N"}})
    token_file: Path | None = field(default=None, metadata={"arg": {"metavar": "FILE"}})
    parallel: int = field(default=2, metadata={"arg": {"metavar": "N"}})
    deadline: float = field(default=5.0, metadata={"arg": {"metavar": "SECONDS"}})
    items: int = field(default=4096, metadata={"arg": {"metavar": "N"}})
    megabytes: float = field(default=64.0, metadata={"arg": {"metavar": "N"}})
    waiting: int = field(default=256, metadata={"arg": {"metavar": "N"}})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSandboxOptions:
    """Runs programs over HTTP as SandboxFusion does: POST /run_code, GET /health. Ctrl-C stops it.

    Attributes:
        backend: auto, or a backend by name ('assay sandbox probe' says which hold here).
        workers: programs that run at once.
        languages: that programs may be written in besides Python, as in c,cpp; or all whose toolchains are here. Their programs,
            and with them all others, see /usr/bin.
        limits: the most that a request may ask for, as in wall=60,memory=2147483648; times in seconds, sizes in bytes.
        host: the address to listen on; one that other machines reach needs a token.
        port: the port to listen on; 0 for any that is free.
        token_file: a file with a token that every caller must send.
        megabytes: size that one request may have.
        waiting: requests that may wait.
    """

    backend: str = field(default="auto", metadata={"arg": {"metavar": "BACKEND"}})
    workers: int = field(default=2, metadata={"arg": {"metavar": "N"}})
    languages: str = field(default="", metadata={"arg": {"metavar": "all|NAME,..."}})
    limits: str = field(default="cpu=60,wall=60,memory=2147483648", metadata={"arg": {"metavar": "KEY=VALUE,..."}})
    host: str = field(default="127.0.0.1", metadata={"arg": {"metavar": "ADDRESS"}})
    port: int = field(default=8901, metadata={"arg": {"metavar": "N"}})
    token_file: Path | None = field(default=None, metadata={"arg": {"metavar": "FILE"}})
    megabytes: float = field(default=64.0, metadata={"arg": {"metavar": "N"}})
    waiting: int = field(default=1024, metadata={"arg": {"metavar": "N"}})


def serve_command(args: list[str]) -> int:
    """``assay serve verifier NAME`` and ``assay serve sandbox``."""
    known = {
        "verifier": (_verifier, "a verifier as a reward service, for any trainer"),
        "sandbox": (_sandbox, "a sandbox for programs, with SandboxFusion's protocol"),
    }
    return choose("serve", args, known)


def _verifier(args: list[str]) -> int:
    own = parse(ServeVerifierOptions, gathered(args), "assay serve verifier")
    try:
        from assay.interop.service.server import serve
    except ImportError:
        raise MissingExtraError("starlette and uvicorn", "serve") from None
    from assay.interop.service.request_handler import ScoringRequestHandler, ServiceLimits

    limits = ServiceLimits(
        parallel=own.parallel, deadline=own.deadline, items=own.items, megabytes=own.megabytes, waiting=own.waiting
    )
    family = None if own.family is None else source(own.family)
    token = "" if own.token_file is None else _token(own.token_file)
    with ScoringRequestHandler(scorer(own.name, settings_of(own.set)), own.name, limits, family) as handler:
        serve(handler, own.host, own.port, token, note)
    return 0


def _sandbox(args: list[str]) -> int:
    own = parse(ServeSandboxOptions, args, "assay serve sandbox")
    try:
        from assay.sandbox.service.server import serve
    except ImportError:
        raise MissingExtraError("starlette and uvicorn", "serve") from None
    from assay.sandbox import Limits, Sandbox
    from assay.sandbox.service.request_handler import RunLimits, RunRequestHandler

    limits = RunLimits(most=Limits.parse(own.limits), megabytes=own.megabytes, waiting=own.waiting)
    token = "" if own.token_file is None else _token(own.token_file)
    with Sandbox(own.backend, workers=own.workers, languages=_languages(own.languages, own.backend)) as sandbox:
        note(f"{sandbox.isolation}; languages: {', '.join(['python', *(one.name for one in sandbox.languages)])}")
        serve(RunRequestHandler(sandbox, limits), own.host, own.port, token, note)
    return 0


def _languages(text: str, backend: str) -> list[Language]:
    from assay.sandbox import choose as choose_backend
    from assay.sandbox import language, languages

    if text.strip() == "all":
        layers = choose_backend(backend)[1].layers
        return [one for one in languages() if one.run and not one.missing() and _admitted(one, layers)]
    return [one for one in (language(word.strip()) for word in text.split(",") if word.strip()) if one.run]


def _admitted(one: Language, layers: Mapping[str, str]) -> bool:
    try:
        one.admit(layers)
    except ConfigError:
        return False
    return True


def _token(path: Path) -> str:
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read a token from {path}: {error}") from None
    if not token:
        raise ConfigError(f"{path} holds no token; write one line of text into it, as from 'openssl rand -hex 32'")
    return token
