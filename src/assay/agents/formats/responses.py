"""OpenAI's responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count as numbers
from typing import Any

from assay.agents.formats.fields import count, flag, halves, ignored_fields, items, refuse_unless, text_in, tools_in
from assay.agents.formats.wire_format import WireFormat, event, openai_error
from assay.agents.messages import AgentAnswer, AgentMessage, AgentRequest, ToolCall, node_named

__all__ = ["RESPONSES"]

_KNOWN = ["model", "input", "instructions", "tools", "tool_choice", "max_output_tokens", "stream", "previous_response_id"]
_ROLES = {"developer": "system"}
_CALLS = ("function_call", "custom_tool_call")
_RESULTS = ("function_call_output", "custom_tool_call_output")


def _read(body: Mapping[str, Any]) -> AgentRequest:
    message = "previous_response_id: this endpoint keeps no responses for later; send the whole input"
    refuse_unless(body.get("previous_response_id") is None, message, "unsupported_previous_response_id")
    told = body.get("instructions")
    messages = [AgentMessage(role="system", text=told)] if isinstance(told, str) and told else []
    given = body.get("input")
    entries = [{"role": "user", "content": given}] if isinstance(given, str) else items(given)
    refuse_unless(bool(entries), "'input' is a text, or a list of at least one item", "invalid_input")
    for i, item in enumerate(entries):
        _add(messages, item, f"input[{i}]")
    return AgentRequest(
        messages=tuple(messages),
        tools=tools_in(list(_functions(items(body.get("tools"))))),
        reads_calls=body.get("tool_choice") != "none",
        max_tokens=count(body, "max_output_tokens"),
        stream=flag(body, "stream"),
        usage=True,
        model=str(body.get("model") or "policy"),
        ignored=ignored_fields(body, _KNOWN),
    )


def _functions(tools: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Schemas of functions, those in a namespace included; what a provider runs itself, as a search, is left out."""
    for tool in tools:
        if tool.get("type") == "namespace":
            yield from _functions(items(tool.get("tools")))
        elif tool.get("type") in ("function", "custom") and tool.get("name"):
            one = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
            yield {
                "name": tool["name"],
                "description": tool.get("description") or "",
                "parameters": tool.get("parameters") or one,
            }


def _add(messages: list[AgentMessage], item: Mapping[str, Any], where: str) -> None:
    """Adds an item; those of one assistant's turn (reasoning, text, calls) make one message."""
    kind = item.get("type", "message")
    if kind in _RESULTS:
        text = text_in(item.get("output"), where)
        messages.append(AgentMessage(role="tool", text=text, call_id=str(item.get("call_id", ""))))
    elif kind == "reasoning":
        said = text_in(item.get("content") or item.get("summary"), where) or _summary(item)
        named = node_named(str(item.get("encrypted_content") or ""))
        messages.append(AgentMessage(role="assistant", thought=said or None, node=named))
    elif kind in _CALLS:
        told: Any = item.get("arguments", item.get("input", "{}"))
        call = ToolCall(str(item.get("call_id", "")), str(item.get("name", "")), str(told))
        turn = _open_turn(messages)
        messages[-1] = replace(turn, calls=(*turn.calls, call))
    elif kind == "message":
        role = str(item.get("role", "user"))
        text = text_in(item.get("content"), where)
        if role != "assistant":
            messages.append(AgentMessage(role=_ROLES.get(role, role), text=text))
            return
        turn = _open_turn(messages)
        messages[-1] = replace(turn, text=turn.text + text)


def _summary(item: Mapping[str, Any]) -> str:
    return "".join(str(part.get("text", "")) for part in items(item.get("summary")))


def _open_turn(messages: list[AgentMessage]) -> AgentMessage:
    """The assistant's turn that the last message is, or a new one."""
    if not messages or messages[-1].role != "assistant":
        messages.append(AgentMessage(role="assistant"))
    return messages[-1]


def _items(answer: AgentAnswer) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    if answer.thought is not None:
        summary = [{"type": "summary_text", "text": answer.thought}]
        encrypted = f"assay-{answer.name}"
        out.append({"id": f"rs_{answer.name}", "type": "reasoning", "summary": summary, "encrypted_content": encrypted})
    if answer.text or not answer.calls:
        content: Any = [{"type": "output_text", "text": answer.text, "annotations": []}]
        message: dict[str, Any] = {"type": "message", "role": "assistant", "status": "completed", "content": content}
        out.append({"id": f"msg_{answer.name}", **message})
    for i, call in enumerate(answer.calls):
        ids = {"id": answer.call_id(i, "fc"), "call_id": answer.call_id(i)}
        out.append({**ids, "type": "function_call", "name": call.name, "arguments": call.arguments, "status": "completed"})
    return out


def _body(answer: AgentAnswer, output: list[dict[str, Any]], status: str) -> dict[str, Any]:
    prompt, sampled = len(answer.prompt), answer.sampled
    usage = {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": sampled,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + sampled,
    }
    return {
        "id": f"resp_{answer.name}",
        "object": "response",
        "created_at": answer.created,
        "model": answer.model,
        "status": status,
        "output": output,
        "usage": None if status == "in_progress" else usage,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "temperature": None,
        "top_p": None,
    }


def _status(answer: AgentAnswer) -> str:
    return "incomplete" if answer.finish == "length" else "completed"


def _write(request: AgentRequest, answer: AgentAnswer) -> dict[str, Any]:
    return _body(answer, _items(answer), _status(answer))


def _stream(request: AgentRequest, answer: AgentAnswer) -> Iterator[str]:
    number = numbers()

    def say(kind: str, **more: Any) -> str:
        return event({"type": kind, "sequence_number": next(number), **more}, kind)

    begun = _body(answer, [], "in_progress")
    yield say("response.created", response=begun)
    yield say("response.in_progress", response=begun)
    for i, item in enumerate(_items(answer)):
        yield say("response.output_item.added", output_index=i, item=_start_item(item))
        for kind, more in _parts(item):
            yield say(kind, output_index=i, item_id=item["id"], **more)
        yield say("response.output_item.done", output_index=i, item=item)
    status = _status(answer)
    yield say(f"response.{status}", response=_body(answer, _items(answer), status))


def _start_item(item: Mapping[str, Any]) -> dict[str, Any]:
    blank: dict[str, Any] = {"reasoning": {"summary": []}, "message": {"content": []}, "function_call": {"arguments": ""}}
    status = {} if item["type"] == "reasoning" else {"status": "in_progress"}
    return {**item, **blank[item["type"]], **status}


def _parts(item: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is said between the beginning and the end of an item."""
    if item["type"] == "function_call":
        written = item["arguments"]
        yield from (("response.function_call_arguments.delta", {"delta": part}) for part in halves(written))
        yield "response.function_call_arguments.done", {"arguments": written, "name": item["name"]}
        return
    thinks = item["type"] == "reasoning"
    part = item["summary"][0] if thinks else item["content"][0]
    at = {"summary_index": 0} if thinks else {"content_index": 0}
    outer, inner = ("reasoning_summary_part", "reasoning_summary_text") if thinks else ("content_part", "output_text")
    more: dict[str, Any] = {} if thinks else {"logprobs": []}
    yield f"response.{outer}.added", {**at, "part": {**part, "text": ""}}
    yield from ((f"response.{inner}.delta", {**at, "delta": piece, **more}) for piece in halves(part["text"]))
    yield f"response.{inner}.done", {**at, "text": part["text"], **more}
    yield f"response.{outer}.done", {**at, "part": part}


RESPONSES = WireFormat("OpenAI responses", _read, _write, _stream, openai_error)
"""``POST /v1/responses``."""
