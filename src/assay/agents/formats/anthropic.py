"""Anthropic's messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from assay.agents.errors import AgentRequestError
from assay.agents.formats.fields import count, flag, halves, ignored_fields, items, refuse_unless, stops, table, text_in, tools_in
from assay.agents.formats.wire_format import WireFormat, event
from assay.agents.messages import AgentAnswer, AgentMessage, AgentRequest, ToolCall, node_named

__all__ = ["ANTHROPIC"]

_KNOWN = ["model", "messages", "system", "tools", "tool_choice", "max_tokens", "stop_sequences", "stream"]
_FINISH = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}
_KINDS = {401: "authentication_error", 404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error"}


def _read(body: Mapping[str, Any]) -> AgentRequest:
    system = text_in(body.get("system"), "system")
    messages = [AgentMessage(role="system", text=system)] if system else []
    given = items(body.get("messages"))
    refuse_unless(bool(given), "messages: at least one message is required", "invalid_messages")
    for i, message in enumerate(given):
        messages += _messages(message, f"messages[{i}]")
    schemas = [
        {"name": t.get("name"), "description": t.get("description") or "", "parameters": table(t.get("input_schema"))}
        for t in items(body.get("tools"))
        if "input_schema" in t or t.get("type", "custom") == "custom"  # those of the server, as web search, have none
    ]
    return AgentRequest(
        messages=tuple(messages),
        tools=tools_in(schemas),
        reads_calls=table(body.get("tool_choice")).get("type") != "none",
        max_tokens=count(body, "max_tokens"),
        stop=stops(body.get("stop_sequences")),
        stream=flag(body, "stream"),
        usage=True,
        model=str(body.get("model") or "policy"),
        ignored=ignored_fields(body, _KNOWN),
    )


def _messages(given: Mapping[str, Any], where: str) -> list[AgentMessage]:
    """One message, or the results of tools and what the user says behind them."""
    role, content = str(given.get("role", "user")), given.get("content")
    if not isinstance(content, list):
        return [AgentMessage(role=role, text=text_in(content, where))]
    blocks = items(content)
    if role == "assistant":
        return [_turn(blocks, where)]
    out = [
        AgentMessage(role="tool", text=text_in(b.get("content"), where), call_id=str(b.get("tool_use_id", "")))
        for b in blocks
        if b.get("type") == "tool_result"
    ]
    rest = [b for b in blocks if b.get("type") != "tool_result"]
    return [*out, AgentMessage(role=role, text=text_in(rest, where))] if rest or not out else out


def _turn(blocks: list[dict[str, Any]], where: str) -> AgentMessage:
    thoughts = [b for b in blocks if b.get("type") == "thinking"]
    signed = next((name for b in thoughts if (name := node_named(str(b.get("signature", ""))))), "")
    calls = [b for b in blocks if b.get("type") == "tool_use"]
    return AgentMessage(
        role="assistant",
        text=text_in([b for b in blocks if b.get("type") == "text"], where),
        thought="".join(str(b.get("thinking", "")) for b in thoughts) or None,
        calls=tuple(ToolCall(str(c.get("id", "")), str(c.get("name", "")), json.dumps(c.get("input", {}))) for c in calls),
        node=signed,
    )


def _blocks(answer: AgentAnswer) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    if answer.thought is not None:
        out.append({"type": "thinking", "thinking": answer.thought, "signature": f"sig_{answer.name}"})
    if answer.text or not answer.calls:
        out.append({"type": "text", "text": answer.text})
    for i, call in enumerate(answer.calls):
        arguments = json.loads(call.arguments)
        out.append({"type": "tool_use", "id": answer.call_id(i, "toolu"), "name": call.name, "input": arguments})
    return out


def _body(answer: AgentAnswer, content: list[dict[str, Any]], finish: str | None, sampled: int) -> dict[str, Any]:
    return {
        "id": f"msg_{answer.name}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content,
        "stop_reason": finish,
        "stop_sequence": None,
        "usage": {
            "input_tokens": len(answer.prompt),
            "output_tokens": sampled,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }


def _write(request: AgentRequest, answer: AgentAnswer) -> dict[str, Any]:
    return _body(answer, _blocks(answer), _FINISH[answer.finish], answer.sampled)


def _stream(request: AgentRequest, answer: AgentAnswer) -> Iterator[str]:
    def say(kind: str, **more: Any) -> str:
        return event({"type": kind, **more}, kind)

    yield say("message_start", message=_body(answer, [], None, 1))
    yield say("ping")
    for i, block in enumerate(_blocks(answer)):
        yield say("content_block_start", index=i, content_block=_empty(block))
        yield from (say("content_block_delta", index=i, delta=delta) for delta in _deltas(block))
        yield say("content_block_stop", index=i)
    finish = {"stop_reason": _FINISH[answer.finish], "stop_sequence": None}
    usage = {"input_tokens": len(answer.prompt), "output_tokens": answer.sampled}
    yield say("message_delta", delta=finish, usage=usage)
    yield say("message_stop")


def _empty(block: Mapping[str, Any]) -> dict[str, Any]:
    blank: dict[str, Any] = {"thinking": {"thinking": "", "signature": ""}, "text": {"text": ""}, "tool_use": {"input": {}}}
    return {**block, **blank[block["type"]]}


def _deltas(block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if block["type"] == "thinking":
        yield from ({"type": "thinking_delta", "thinking": part} for part in halves(block["thinking"]))
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif block["type"] == "text":
        yield from ({"type": "text_delta", "text": part} for part in halves(block["text"]))
    else:
        written = json.dumps(block["input"], ensure_ascii=False)
        yield from ({"type": "input_json_delta", "partial_json": part} for part in halves(written))


def _refuse(error: AgentRequestError) -> dict[str, Any]:
    kind = _KINDS.get(error.status, "invalid_request_error" if error.status < 500 else "api_error")
    long = error.code == "context_length_exceeded"
    message = f"prompt is too long: {error.tokens} tokens > {error.most} maximum" if long else str(error)
    return {"type": "error", "error": {"type": kind, "message": message}}


ANTHROPIC = WireFormat("Anthropic messages", _read, _write, _stream, _refuse)
"""``POST /v1/messages``."""
