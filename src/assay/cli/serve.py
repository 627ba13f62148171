"""``assay serve``: a model with OpenAI's protocol, a verifier as a reward service, or the sandbox to run programs in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from assay.cli.options import parse
from assay.cli.output import busy, choose, note
from assay.cli.sources import scorer, source
from assay.cli.verify import gather_settings, settings_of
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
        limits: the most that a request may ask for, as in wall=60,cpu=60; times in seconds, sizes in bytes.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeModelOptions:
    """Serves a model with OpenAI's protocol, to try it: chat completions, completions, models under /v1. Ctrl-C stops it.

    Attributes:
        model: a run folder, a model folder in Hugging Face format, or a name on the hub.
        name: what callers call the model; the folder's name when not given.
        host: the address to listen on; one that other machines reach needs a key.
        port: the port to listen on; 0 for any that is free.
        api_key: a key that every caller must send; other users of this machine can see it in the list of processes.
        token_file: a file with such a key.
        max_new_tokens: most tokens of an answer where a request does not say; the run's own, else 512, when not given.
        temperature: where a request does not say; the run's own, else 1, when not given. So for those below.
        top_p: draw from the fewest most likely tokens that have this much probability.
        top_k: draw from so many most likely tokens, 0 for all.
        min_p: leave out tokens less likely than this share of the most likely one.
    """

    model: Path = field(metadata={"positional": True, "arg": {"metavar": "RUN_OR_FOLDER"}})
    name: str | None = field(default=None, metadata={"arg": {"metavar": "NAME"}})
    host: str = field(default="127.0.0.1", metadata={"arg": {"metavar": "ADDRESS"}})
    port: int = field(default=8000, metadata={"arg": {"metavar": "N"}})
    api_key: str = field(default="", metadata={"arg": {"metavar": "KEY"}})
    token_file: Path | None = field(default=None, metadata={"arg": {"metavar": "FILE"}})
    max_new_tokens: int | None = field(default=None, metadata={"arg": {"metavar": "N"}})
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None

    def __post_init__(self) -> None:
        if self.api_key and self.token_file is not None:
            raise ConfigError("--api-key and --token-file both give the key that callers send; give one of them")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServePolicyOptions:
    """Serves a model to agent programs as training does, on this machine: OpenAI's chat completions, completions and responses,
    Anthropic's messages, Gemini's generateContent. Ctrl-C stops it.

    Attributes:
        model: a run folder, a model folder in Hugging Face format, or a name on the hub.
        name: in the list of models; agents may call it anything.
        port: the port to listen on; 0 for any that is free.
        record: a file to which each call is added, with its tokens and log-probabilities.
        seed: of the noise.
        max_new_tokens: most tokens of an answer; the run's own, else 512, when not given.
        temperature: of all answers, whatever requests say; the run's own, else 1, when not given. So for those below.
        top_p: draw from the fewest most likely tokens that have this much probability.
        top_k: draw from so many most likely tokens, 0 for all.
        min_p: leave out tokens less likely than this share of the most likely one.
    """

    model: Path = field(metadata={"positional": True, "arg": {"metavar": "RUN_OR_FOLDER"}})
    name: str = field(default="policy", metadata={"arg": {"metavar": "NAME"}})
    port: int = field(default=8000, metadata={"arg": {"metavar": "N"}})
    record: Path | None = field(default=None, metadata={"arg": {"metavar": "FILE"}})
    seed: int = 0
    max_new_tokens: int | None = field(default=None, metadata={"arg": {"metavar": "N"}})
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None


def serve_command(args: list[str]) -> int:
    """``assay serve model``, ``policy``, ``verifier NAME`` and ``sandbox``."""
    known = {
        "policy": (_policy, "a run's or folder's model to agent programs, every call recorded"),
        "model": (_model, "a run's or folder's model, with OpenAI's protocol, to try it"),
        "verifier": (_verifier, "a verifier as a reward service, for any trainer"),
        "sandbox": (_sandbox, "a sandbox for programs, with SandboxFusion's protocol"),
    }
    return choose("serve", args, known)


def _model(args: list[str]) -> int:
    own = parse(ServeModelOptions, args, "assay serve model")
    try:
        from assay.publish.service.server import serve
    except ImportError:
        raise MissingExtraError("starlette and uvicorn", "serve") from None
    from assay.cli.asked_model import RecordedRun, check_model, sampling_of
    from assay.sandbox.service.http import check_address

    check_model(own.model)
    key = own.api_key if own.token_file is None else _token(own.token_file)
    check_address(own.host, own.port, key)
    from assay.publish.service.completion_request import ServedDefaults
    from assay.publish.service.text_generator import TextGenerator

    defaults = ServedDefaults()
    sampling = sampling_of(RecordedRun.of(own.model), own, defaults.sampling) or defaults.sampling

    with busy(f"loading {own.model}"):
        model = TextGenerator(own.model)
    with model:
        serve(
            model,
            own.name or _model_name(own.model),
            ServedDefaults(sampling=sampling),
            host=own.host,
            port=own.port,
            key=key,
            notify=note,
        )
    return 0


def _policy(args: list[str]) -> int:
    own = parse(ServePolicyOptions, args, "assay serve policy")
    try:
        from assay.publish.service.policy import serve_policy
    except ImportError:
        raise MissingExtraError("starlette and uvicorn", "serve") from None
    from assay.cli.asked_model import RecordedRun, check_model, sampling_of
    from assay.publish.service.completion_request import ServedDefaults
    from assay.publish.service.text_generator import TextGenerator
    from assay.sandbox.service.http import check_address

    check_model(own.model)
    check_address("127.0.0.1", own.port, "")
    base = ServedDefaults().sampling
    sampling = sampling_of(RecordedRun.of(own.model), own, base) or base
    with busy(f"loading {own.model}"):
        model = TextGenerator(own.model)
    with model:
        serve_policy(model, sampling, own.name, port=own.port, seed=own.seed, record=own.record, notify=note)
    return 0


def _model_name(path: Path) -> str:
    """A run's own name, a folder's, or a name on the hub as it is."""
    if not path.exists():
        return str(path)
    return path.resolve().parent.name if path.resolve().name == "model" else path.resolve().name


def _verifier(args: list[str]) -> int:
    own = parse(ServeVerifierOptions, gather_settings(args), "assay serve verifier")
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
