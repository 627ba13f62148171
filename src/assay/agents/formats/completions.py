"""OpenAI's completions: a text, or token ids, to go on with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any, cast

from assay.agents.formats.chat import usage_of
from assay.agents.formats.fields import count, flag, ignored_fields, refuse_unless, stops, table
from assay.agents.formats.wire_format import WireFormat, event, openai_error
from assay.agents.messages import AgentAnswer, AgentRequest

__all__ = ["COMPLETIONS"]

_KNOWN = ["model", "prompt", "max_tokens", "stop", "stream", "stream_options", "logprobs", "return_token_ids", "n", "echo"]


def _read(body: Mapping[str, Any]) -> AgentRequest:
    refuse_unless(body.get("n") in (None, 1), f"n={body.get('n')!r}: this endpoint gives one answer a request", "unsupported_n")
    refuse_unless(not flag(body, "echo"), "echo: prompts are not scored here, only answers are sampled", "unsupported_echo")
    wants = body.get("logprobs")
    return AgentRequest(
        prompt=_prompt(body.get("prompt")),
        reads_calls=False,
        max_tokens=count(body, "max_tokens"),
        stop=stops(body.get("stop")),
        stream=flag(body, "stream"),
        usage=flag(table(body.get("stream_options")), "include_usage"),
        logprobs=wants is True or (isinstance(wants, int) and wants >= 0 and wants is not False),
        token_ids=flag(body, "return_token_ids"),
        model=str(body.get("model") or "policy"),
        ignored=ignored_fields(body, _KNOWN),
    )


def _prompt(given: Any) -> str | tuple[int, ...]:
    entries = cast("list[Any]", given) if isinstance(given, list) else [given]
    nested = len(entries) == 1 and isinstance(entries[0], str | list)
    one = cast("Any", entries[0] if nested else given)
    if isinstance(one, str):
        return one
    ids = cast("list[Any]", one) if isinstance(one, list) else []
    fine = bool(ids) and all(isinstance(i, int) and not isinstance(i, bool) for i in ids)
    refuse_unless(fine, "'prompt' is one text, or one list of token ids", "invalid_prompt")
    return tuple(ids)


def _head(answer: AgentAnswer) -> dict[str, Any]:
    return {"id": f"cmpl-{answer.name}", "object": "text_completion", "created": answer.created, "model": answer.model}


def _choice(request: AgentRequest, answer: AgentAnswer, text: str) -> dict[str, Any]:
    out: dict[str, Any] = {"index": 0, "text": text, "logprobs": None, "finish_reason": answer.finish}
    if request.logprobs:
        ends = list(accumulate(map(len, answer.pieces), initial=0))
        values = answer.completion.logp_engine.tolist()
        out["logprobs"] = {
            "tokens": list(answer.pieces),
            "token_logprobs": values,
            "top_logprobs": None,
            "text_offset": ends[:-1],
        }
    if request.token_ids:
        out |= {"token_ids": answer.completion.ids.tolist(), "prompt_token_ids": answer.prompt.tolist()}
    return out


def _write(request: AgentRequest, answer: AgentAnswer) -> dict[str, Any]:
    return {**_head(answer), "choices": [_choice(request, answer, answer.text)], "usage": usage_of(answer)}


def _stream(request: AgentRequest, answer: AgentAnswer) -> Iterator[str]:
    if answer.text:
        yield event({**_head(answer), "choices": [{"index": 0, "text": answer.text, "logprobs": None, "finish_reason": None}]})
    yield event({**_head(answer), "choices": [_choice(request, answer, "")]})
    if request.usage:
        yield event({**_head(answer), "choices": [], "usage": usage_of(answer)})
    yield event("[DONE]")


COMPLETIONS = WireFormat("OpenAI completions", _read, _write, _stream, openai_error)
"""``POST /v1/completions``."""
