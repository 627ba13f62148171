"""Gemini's generateContent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from assay.agents.errors import AgentRequestError
from assay.agents.formats.fields import count, ignored_fields, items, refuse_unless, stops, table, text_in, tools_in
from assay.agents.formats.wire_format import WireFormat, event
from assay.agents.messages import AgentAnswer, AgentMessage, AgentRequest, ToolCall

__all__ = ["GEMINI"]

_KNOWN = [
    "contents",
    "systemInstruction",
    "system_instruction",
    "tools",
    "toolConfig",
    "generationConfig",
    "generation_config",
    "model",
    "stream",
]
_STATUS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 409: "ABORTED", 429: "RESOURCE_EXHAUSTED"}


def _read(body: Mapping[str, Any]) -> AgentRequest:
    told = body.get("systemInstruction", body.get("system_instruction"))
    system = told if isinstance(told, str) else text_in(table(told).get("parts"), "systemInstruction")
    messages = [AgentMessage(role="system", text=system)] if system else []
    given = body.get("contents")
    contents = [{"parts": [{"text": given}]}] if isinstance(given, str) else items(given)
    refuse_unless(bool(contents), "contents: at least one content is required", "invalid_messages")
    for i, content in enumerate(contents):
        messages += _messages(content, f"contents[{i}]")
    config = table(body.get("generationConfig", body.get("generation_config")))
    declared = [f for tool in items(body.get("tools")) for f in items(tool.get("functionDeclarations"))]
    mode = table(table(body.get("toolConfig")).get("functionCallingConfig")).get("mode")
    return AgentRequest(
        messages=tuple(messages),
        tools=tools_in([_schema(f) for f in declared]),
        reads_calls=mode != "NONE",
        max_tokens=count(config, "maxOutputTokens"),
        stop=stops(config.get("stopSequences")),
        stream=body.get("stream") is True,
        model=str(body.get("model") or "policy"),
        ignored=ignored_fields(body, _KNOWN),
    )


def _schema(function: Mapping[str, Any]) -> dict[str, Any]:
    given: Any = function.get("parametersJsonSchema") or function.get("parameters") or {"type": "object", "properties": {}}
    return {"name": function.get("name"), "description": function.get("description") or "", "parameters": _lower(given)}


def _lower(schema: Any) -> Any:
    """A schema whose types are written in small letters, as JSON Schema has them."""
    if isinstance(schema, list):
        return [_lower(entry) for entry in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    told = cast("dict[str, Any]", schema)
    return {k: v.lower() if k == "type" and isinstance(v, str) else _lower(v) for k, v in told.items()}


def _messages(content: Mapping[str, Any], where: str) -> list[AgentMessage]:
    parts = items(content.get("parts"))
    if content.get("role") == "model":
        calls = [table(p["functionCall"]) for p in parts if "functionCall" in p]
        said = [p for p in parts if "text" in p]
        return [
            AgentMessage(
                role="assistant",
                text=text_in([p for p in said if not p.get("thought")], where),
                thought=text_in([p for p in said if p.get("thought")], where) or None,
                calls=tuple(
                    ToolCall(str(c.get("id") or ""), str(c.get("name", "")), json.dumps(c.get("args") or {})) for c in calls
                ),
            )
        ]
    results = [table(p["functionResponse"]) for p in parts if "functionResponse" in p]
    out = [AgentMessage(role="tool", text=_result(r.get("response")), call_id=str(r.get("id") or "")) for r in results]
    rest = [p for p in parts if "functionResponse" not in p]
    return [*out, AgentMessage(role="user", text=text_in(rest, where))] if rest or not out else out


def _result(response: Any) -> str:
    told = table(response)
    only = next(iter(told.values())) if len(told) == 1 else None
    return only if isinstance(only, str) else json.dumps(response, ensure_ascii=False)


def _write(request: AgentRequest, answer: AgentAnswer) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": answer.thought, "thought": True}] if answer.thought else []
    if answer.text or not answer.calls:
        parts.append({"text": answer.text})
    parts += [
        {"functionCall": {"id": answer.call_id(i), "name": c.name, "args": json.loads(c.arguments)}}
        for i, c in enumerate(answer.calls)
    ]
    finish = "MAX_TOKENS" if answer.finish == "length" else "STOP"
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0}
    prompt, sampled = len(answer.prompt), answer.sampled
    return {
        "candidates": [candidate],
        "usageMetadata": {"promptTokenCount": prompt, "candidatesTokenCount": sampled, "totalTokenCount": prompt + sampled},
        "modelVersion": answer.model,
        "responseId": answer.name,
    }


def _stream(request: AgentRequest, answer: AgentAnswer) -> Iterator[str]:
    yield event(_write(request, answer))


def _refuse(error: AgentRequestError) -> dict[str, Any]:
    message = str(error)
    if error.code == "context_length_exceeded":
        message = f"The input token count ({error.tokens}) exceeds the maximum number of tokens allowed ({error.most})."
    return {"error": {"code": error.status, "message": message, "status": _STATUS.get(error.status, "INTERNAL")}}


GEMINI = WireFormat("Gemini generateContent", _read, _write, _stream, _refuse)
"""``POST /v1beta/models/NAME:generateContent``."""
