"""Requests of OpenAI's protocol, read: prompts as token ids, and how to draw."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from assay.core.errors import AssayError, ConfigError, DataError
from assay.core.rollout import Ids, Sampling
from assay.core.seeds import derive
from assay.core.task import CALLS, TOOLS, Message
from assay.core.tools import canonical, named_in
from assay.publish.service.text_generator import TextGenerator

__all__ = ["KNOWN", "CompletionRequest", "RequestError", "ServedDefaults", "chat_request", "text_request"]

MOST = 128
"""Answers that one request may ask for."""

_SHARED = "model n temperature top_p top_k min_p max_tokens stop seed stream stream_options logprobs user"
KNOWN = {
    "chat": frozenset(f"{_SHARED} messages max_completion_tokens top_logprobs tools tool_choice".split()),
    "text": frozenset(f"{_SHARED} prompt echo".split()),
}
"""Fields that are read; others are ignored."""

_PROMPTS = "'prompt' is a text, a list of texts, token ids, or a list of lists of these"
_ROLES = {"developer": "system", "function": "tool"}
_T = TypeVar("_T")


class RequestError(AssayError, ValueError):
    """A request that cannot be answered, as OpenAI's protocol says it.

    Attributes:
        status: of the answer.
        code: for programs, such as ``context_length_exceeded``; None for none.
        param: the field at fault; None for none.
    """

    def __init__(self, message: str, *, status: int = 400, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.param = status, code, param


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedDefaults:
    """How to draw where a request does not say.

    Attributes:
        sampling: temperature, truncation, ends, and most tokens of an answer, fewer where the context is full.
    """

    sampling: Sampling = field(default_factory=lambda: Sampling(max_new_tokens=512))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompletionRequest:
    """What a request asks for.

    Attributes:
        prompts: token ids of each prompt; a chat has one.
        echoed: texts of the prompts that are said before the answers; empty for none.
        n: answers to each prompt.
        sampling: how to draw, for each prompt.
        seeds: of the noise, for each answer, prompt by prompt.
        stream, usage: whether tokens are sent as they come, and usage behind them.
        logprobs: whether tokens are sent with their log-probabilities.
        tools: names of tools whose calls are read in the answers; empty where calls are text.
    """

    prompts: tuple[Ids, ...]
    echoed: tuple[str, ...] = ()
    n: int
    sampling: tuple[Sampling, ...]
    seeds: tuple[int, ...]
    stream: bool
    usage: bool
    logprobs: bool
    tools: frozenset[str] = frozenset()

    @property
    def prompt_tokens(self) -> int:
        """Of all prompts."""
        return sum(len(p) for p in self.prompts)


def chat_request(body: Mapping[str, Any], model: TextGenerator, defaults: ServedDefaults) -> CompletionRequest:
    """A request to ``/v1/chat/completions``.

    Raises:
        RequestError: it cannot be read, or does not fit the model.
    """
    tools = _list(body, "tools")
    messages = _messages(body)
    if tools:
        messages.insert(0, Message(TOOLS, _refusing(lambda: canonical(json.dumps(tools)), "tools")))
    prompt = _refusing(lambda: model.chat_prompt(messages), "messages")
    reads = bool(tools) and body.get("tool_choice") != "none"
    asked = _number(body, "max_completion_tokens", int)
    most = asked if asked is not None else _number(body, "max_tokens", int)
    known = frozenset(named_in(messages[0].content)) if reads else frozenset[str]()
    return _request(body, model, defaults, [prompt], most, param="messages", tools=known, logprobs=body.get("logprobs") is True)


def text_request(body: Mapping[str, Any], model: TextGenerator, defaults: ServedDefaults) -> CompletionRequest:
    """A request to ``/v1/completions``.

    Raises:
        RequestError: as `chat_request`.
    """
    given: Any = body.get("prompt")
    if isinstance(given, str) or (isinstance(given, list) and given and all(_is(int, i) for i in cast("list[Any]", given))):
        given = [given]
    if not isinstance(given, list) or not given:
        raise RequestError(_PROMPTS, param="prompt")
    prompts = [_refusing(lambda one=one: _prompt(one, model), "prompt") for one in cast("list[Any]", given)]
    echo = [p if isinstance(p, str) else model.tokenizer.decode(p) for p in cast("list[Any]", given)]
    wants = body.get("logprobs")
    return _request(
        body,
        model,
        defaults,
        prompts,
        _number(body, "max_tokens", int),
        param="prompt",
        echoed=tuple(echo) if body.get("echo") is True else (),
        logprobs=_is(int, wants) or wants is True,
    )


def _request(
    body: Mapping[str, Any],
    model: TextGenerator,
    defaults: ServedDefaults,
    prompts: Sequence[Ids],
    most: int | None,
    *,
    param: str,
    logprobs: bool,
    echoed: tuple[str, ...] = (),
    tools: frozenset[str] = frozenset(),
) -> CompletionRequest:
    n = _or(_number(body, "n", int), 1)
    if not 1 <= n * len(prompts) <= MOST:
        raise RequestError(f"n={n} for {len(prompts)} prompts: ask for 1 to {MOST} answers in one request", param="n")
    drawn = _sampling(body, defaults)
    limits = [_limit(len(prompt), most, drawn.max_new_tokens, model.context, param) for prompt in prompts]
    seed = _number(body, "seed", int)
    seed = secrets.randbits(63) if seed is None else seed
    options: Any = body.get("stream_options")
    return CompletionRequest(
        prompts=tuple(prompts),
        echoed=echoed,
        n=n,
        sampling=tuple(replace(drawn, max_new_tokens=limit) for limit in limits),
        seeds=tuple(derive("served", seed, "", i) for i in range(n * len(prompts))),
        stream=body.get("stream") is True,
        usage=isinstance(options, dict) and cast("dict[str, Any]", options).get("include_usage") is True,
        logprobs=logprobs,
        tools=tools,
    )


def _limit(prompt: int, most: int | None, default: int, context: int, param: str) -> int:
    """Most tokens of an answer: what is asked for, or the default as far as the context goes."""
    room = context - prompt
    if most is not None and most < 1:
        raise RequestError(f"max_tokens={most}: ask for at least 1 token", param="max_tokens")
    if room < 1 or (most is not None and most > room):
        asked = f"{prompt + (most or 1)} tokens ({prompt} in the {param}, {most or 1} in the completion)"
        raise RequestError(
            f"This model's maximum context length is {context} tokens. However, you requested {asked}. Please reduce the length "
            f"of the {param} or the completion.",
            code="context_length_exceeded",
            param=param,
        )
    return min(default, room) if most is None else most


def _sampling(body: Mapping[str, Any], defaults: ServedDefaults) -> Sampling:
    changed: dict[str, Any] = {}
    for name in ("temperature", "top_p", "min_p"):
        value = _number(body, name, float)
        if value is not None:
            changed[name] = value
    top_k = _number(body, "top_k", int)
    if top_k is not None:
        changed["top_k"] = 0 if top_k == -1 else top_k  # -1 is all to vLLM and others
    stop: Any = body.get("stop")
    if stop is not None:
        stops = cast("list[Any]", stop) if isinstance(stop, list) else [stop]
        if not all(isinstance(s, str) for s in stops):
            raise RequestError("'stop' is a text or a list of texts", param="stop")
        changed["stop"] = tuple(dict.fromkeys(s for s in stops if s))
    return _refusing(lambda: replace(defaults.sampling, **changed), next(iter(changed), None))


def _messages(body: Mapping[str, Any]) -> list[Message]:
    given = _list(body, "messages")
    if not given:
        raise RequestError("'messages' is a list of at least one {'role': ..., 'content': ...}", param="messages")
    return [_message(message, f"messages[{i}]") for i, message in enumerate(given)]


def _message(given: Any, where: str) -> Message:
    told: dict[str, Any] = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    role = told.get("role")
    if not isinstance(role, str):
        raise RequestError(f"{where} is no object with a 'role'", param=where)
    text = _content(told.get("content"), where)
    if role != "assistant" or not told.get("tool_calls"):
        return Message(_ROLES.get(role, role), text)
    calls: list[dict[str, Any]] = []
    for call in _list(told, "tool_calls", where):
        function: Any = cast("dict[str, Any]", call).get("function") if isinstance(call, dict) else None
        try:
            arguments = function["arguments"]
            read = json.loads(arguments) if isinstance(arguments, str) else arguments
            calls.append({"name": function["name"], "arguments": read})
        except (TypeError, KeyError, ValueError):
            raise RequestError(
                f"{where}: a call is {{'function': {{'name': ..., 'arguments': JSON text}}}}", param=where
            ) from None
    return Message(CALLS, json.dumps({"content": text, "tool_calls": calls}, ensure_ascii=False))


def _content(given: Any, where: str) -> str:
    """Text, or parts that are text; nothing where a turn has calls alone."""
    if given is None or isinstance(given, str):
        return given or ""
    parts = cast("list[Any]", given) if isinstance(given, list) else [None]
    texts = [cast("dict[str, Any]", p).get("text") if isinstance(p, dict) else None for p in parts]
    if not all(isinstance(t, str) for t in texts):
        raise RequestError(f"{where}: 'content' is text, or a list of text parts; this server reads no pictures", param=where)
    return "".join(cast("list[str]", texts))


def _prompt(given: Any, model: TextGenerator) -> Ids:
    if isinstance(given, str):
        return model.text_prompt(given)
    ids = cast("list[Any]", given if isinstance(given, list) else [None])
    if not all(_is(int, i) for i in ids):
        raise DataError(_PROMPTS)
    return model.ids_prompt(ids)


def _list(body: Mapping[str, Any], name: str, where: str = "") -> list[Any]:
    given: Any = body.get(name)
    if given is None:
        return []
    if not isinstance(given, list):
        raise RequestError(f"{where + ': ' if where else ''}{name!r} is a list", param=name)
    return cast("list[Any]", given)


def _number(body: Mapping[str, Any], name: str, kind: type[_T]) -> _T | None:
    """A number; None where it is not given, or null."""
    given: Any = body.get(name)
    if given is None:
        return None
    if _is(kind, given):
        return given
    if _is(int, given) and kind is float:
        return cast("Any", float(given))
    raise RequestError(f"{name!r} is {'a whole number' if kind is int else 'a number'}, not {given!r}", param=name)


def _is(kind: type[Any], given: Any) -> bool:
    return isinstance(given, kind) and not isinstance(given, bool)


def _or(given: _T | None, default: _T) -> _T:
    return default if given is None else given


def _refusing(make: Any, param: str | None) -> Any:
    """What is made; errors about the user's words become refusals."""
    try:
        return make()
    except RequestError:
        raise
    except (ConfigError, DataError) as error:
        raise RequestError(str(error), param=param) from None
