"""OpenAI's chat completions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from assay.agents.formats.fields import count, flag, halves, ignored_fields, items, refuse_unless, stops, table, text_in, tools_in
from assay.agents.formats.wire_format import WireFormat, event, openai_error
from assay.agents.messages import AgentAnswer, AgentMessage, AgentRequest, ToolCall

__all__ = ["CHAT", "usage_of"]

_KNOWN = [
    "model",
    "messages",
    "tools",
    "tool_choice",
    "max_tokens",
    "max_completion_tokens",
    "stop",
    "stream",
    "stream_options",
    "logprobs",
    "return_token_ids",
    "n",
]
_ROLES = {"developer": "system", "function": "tool"}


def _read(body: Mapping[str, Any]) -> AgentRequest:
    messages = tuple(_message(m, f"messages[{i}]") for i, m in enumerate(items(body.get("messages"))))
    refuse_unless(bool(messages), "'messages' is a list of at least one {'role': ..., 'content': ...}", "invalid_messages")
    refuse_unless(body.get("n") in (None, 1), f"n={body.get('n')!r}: this endpoint gives one answer a request", "unsupported_n")
    return AgentRequest(
        messages=messages,
        tools=tools_in([t for t in items(body.get("tools")) if t.get("type", "function") == "function"]),
        reads_calls=body.get("tool_choice") != "none",
        max_tokens=count(body, "max_completion_tokens", "max_tokens"),
        stop=stops(body.get("stop")),
        stream=flag(body, "stream"),
        usage=flag(table(body.get("stream_options")), "include_usage"),
        logprobs=flag(body, "logprobs"),
        token_ids=flag(body, "return_token_ids"),
        model=str(body.get("model") or "policy"),
        ignored=ignored_fields(body, _KNOWN),
    )


def _message(given: Mapping[str, Any], where: str) -> AgentMessage:
    role = str(given.get("role", "user"))
    thought: Any = given.get("reasoning_content", given.get("reasoning"))
    calls = [table(call) for call in items(given.get("tool_calls"))]
    return AgentMessage(
        role=_ROLES.get(role, role),
        text=text_in(given.get("content"), where),
        thought=thought if isinstance(thought, str) and thought else None,
        calls=tuple(ToolCall(str(c.get("id", "")), *_function(c)) for c in calls),
        call_id=str(given.get("tool_call_id") or given.get("id") or "") if role in ("tool", "function") else "",
    )


def _function(call: Mapping[str, Any]) -> tuple[str, str]:
    function = table(call.get("function"))
    arguments: Any = function.get("arguments", "{}")
    return str(function.get("name", "")), arguments if isinstance(arguments, str) else json.dumps(arguments)


def _head(answer: AgentAnswer, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{answer.name}", "object": kind, "created": answer.created, "model": answer.model}


def usage_of(answer: AgentAnswer) -> dict[str, Any]:
    """Tokens in OpenAI's words."""
    prompt, sampled = len(answer.prompt), answer.sampled
    return {"prompt_tokens": prompt, "completion_tokens": sampled, "total_tokens": prompt + sampled}


def _calls(answer: AgentAnswer) -> list[dict[str, Any]]:
    return [
        {"id": answer.call_id(i), "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for i, call in enumerate(answer.calls)
    ]


def _extras(request: AgentRequest, answer: AgentAnswer) -> dict[str, Any]:
    """Log-probabilities and token ids, where they are asked for."""
    out: dict[str, Any] = {"logprobs": None}
    if request.logprobs:
        pairs = zip(answer.pieces, answer.completion.logp_engine.tolist(), strict=True)
        out["logprobs"] = {
            "content": [
                {"token": t, "logprob": p, "bytes": list(t.encode("utf-8", "replace")), "top_logprobs": []} for t, p in pairs
            ]
        }
    if request.token_ids:
        out["token_ids"] = answer.completion.ids.tolist()
    return out


def _write(request: AgentRequest, answer: AgentAnswer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or (None if answer.calls else "")}
    if answer.thought is not None:
        message["reasoning_content"] = answer.thought
    if answer.calls:
        message["tool_calls"] = _calls(answer)
    choice = {"index": 0, "message": message, "finish_reason": answer.finish, **_extras(request, answer)}
    out = {**_head(answer, "chat.completion"), "choices": [choice], "usage": usage_of(answer)}
    return out | ({"prompt_token_ids": answer.prompt.tolist()} if request.token_ids else {})


def _stream(request: AgentRequest, answer: AgentAnswer) -> Iterator[str]:
    head = _head(answer, "chat.completion.chunk")

    def piece(delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> str:
        return event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish, **more}]})

    yield piece({"role": "assistant", "content": ""})
    yield from (piece({"reasoning_content": part}) for part in halves(answer.thought or ""))
    yield from (piece({"content": part}) for part in halves(answer.text))
    for i, call in enumerate(_calls(answer)):
        function = call["function"]
        yield piece({"tool_calls": [{"index": i, **call, "function": {"name": function["name"], "arguments": ""}}]})
        for part in halves(function["arguments"]):
            yield piece({"tool_calls": [{"index": i, "function": {"arguments": part}}]})
    yield piece({}, answer.finish, **_extras(request, answer))
    if request.usage:
        yield event({**head, "choices": [], "usage": usage_of(answer)})
    yield event("[DONE]")


CHAT = WireFormat("OpenAI chat completions", _read, _write, _stream, openai_error)
"""``POST /v1/chat/completions``."""
