"""Wire formats: requests in the shapes that real clients send, answers whole and in pieces, errors that clients act on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scripted_agents import CALL, ask, recorder_of, say, tools_tokenizer, user

from assay.agents import AgentAnswer, AgentMessage, AgentRequest, AgentRequestError, ToolCall
from assay.agents.errors import overflow
from assay.agents.formats import ANTHROPIC, CHAT, COMPLETIONS, GEMINI, RESPONSES, WireFormat
from assay.core.thinking import Thinking
from assay.runtime.text.chat import Chat

FORMATS = [CHAT, ANTHROPIC, GEMINI, RESPONSES]
PLAIN = "{% for m in messages %}{{ m.role }}:{{ m.content }}{{ eos_token if m.role == 'assistant' }}\n{% endfor %}assistant:"
SEEN_CHAT = {  # OpenHands, openai-agents, Copilot and qwen-agent in one
    "model": "openai/gpt-9",
    "messages": [
        {"role": "developer", "content": [{"type": "text", "text": "Be "}, {"type": "text", "text": "kind."}]},
        {"role": "user", "content": "1+2?", "name": "user1"},
        {
            "role": "assistant",
            "content": None,
            "refusal": None,
            "reasoning_content": "hm",
            "tool_calls": [{"id": "call_0123456789abcdef_0", "type": "function", "function": {"name": "add", "arguments": "{}"}}],
        },
        {"role": "tool", "id": "call_0123456789abcdef_0", "content": [{"type": "text", "text": "3"}], "extra": {}},
    ],
    "tools": [{"type": "function", "function": {"name": "add", "description": "", "parameters": {"type": "object"}}}],
    "tool_choice": "auto",
    "max_completion_tokens": 99,
    "max_tokens": 7,
    "stop": ["Observation:", "Observation:", ""],
    "seed": 1,
    "store": False,
    "presence_penalty": 0,
    "temperature": 0,
    "top_p": 0.95,
    "parallel_tool_calls": True,
    "prompt_cache_key": "x",
    "reasoning_effort": "high",
    "stream": True,
    "stream_options": {"include_usage": True},
    "logprobs": True,
    "return_token_ids": True,
    "n": 1,
}
SEEN_ANTHROPIC = {  # Claude Code
    "model": "claude",
    "max_tokens": 32000,
    "stream": True,
    "system": [
        {"type": "text", "text": "Be ", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "kind."},
    ],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "1+2?", "cache_control": {"type": "ephemeral"}}]},
        {"role": "system", "content": "A reminder."},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "sig_0123456789abcdef"},
                {"type": "tool_use", "id": "toolu_0123456789abcdef_0", "name": "add", "input": {"a": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_0123456789abcdef_0", "content": [{"type": "text", "text": "3"}]},
                {"type": "text", "text": "Go on."},
            ],
        },
    ],
    "tools": [{"name": "add", "input_schema": {"type": "object"}}, {"type": "web_search_20260101", "name": "web_search"}],
    "tool_choice": {"type": "any"},
    "thinking": {"type": "adaptive"},
    "context_management": {"edits": []},
    "output_config": {"effort": "high"},
    "metadata": {"user_id": '{"a": 1}'},
    "stop_sequences": ["END"],
}
SEEN_RESPONSES = {  # Codex
    "model": "gpt-9-codex",
    "instructions": "Be kind.",
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "A reminder."}]},
        {"role": "user", "content": "1+2?"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "assay-0123456789abcdef"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I add."}]},
        {"type": "function_call", "call_id": "call_0123456789abcdef_0", "name": "add", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "call_0123456789abcdef_1", "name": "patch", "input": "*** Begin"},
        {"type": "function_call_output", "call_id": "call_0123456789abcdef_0", "output": "3"},
        {
            "type": "custom_tool_call_output",
            "call_id": "call_0123456789abcdef_1",
            "output": [{"type": "input_text", "text": "ok"}],
        },
        {"type": "item_reference", "id": "x"},
    ],
    "tools": [
        {"type": "function", "name": "add", "parameters": {"type": "object"}},
        {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "sub", "parameters": {"type": "object"}}]},
        {"type": "custom", "name": "patch", "format": {"type": "grammar"}},
        {"type": "web_search"},
    ],
    "tool_choice": "auto",
    "reasoning": {"summary": "auto"},
    "include": ["reasoning.encrypted_content"],
    "store": False,
    "stream": True,
    "prompt_cache_key": "x",
    "client_metadata": {"b": 1, "a": 2},
}
SEEN_GEMINI = {  # Gemini CLI
    "model": "gemini-3",
    "systemInstruction": {"role": "user", "parts": [{"text": "Be kind."}]},
    "contents": [
        {"role": "user", "parts": [{"text": "1+2?"}]},
        {
            "role": "model",
            "parts": [
                {"text": "hm", "thought": True},
                {"text": "I add."},
                {"functionCall": {"id": "c", "name": "add", "args": {"a": 1}}},
            ],
        },
        {
            "role": "user",
            "parts": [{"functionResponse": {"id": "c", "name": "add", "response": {"output": "3"}}}, {"text": "Go on."}],
        },
    ],
    "tools": [{"functionDeclarations": [{"name": "add", "parametersJsonSchema": {"type": "OBJECT", "required": ["a"]}}]}],
    "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
    "generationConfig": {"temperature": 1, "topK": 64, "maxOutputTokens": 50, "thinkingConfig": {}, "stopSequences": ["END"]},
    "safetySettings": [],
}


def test_chat_requests_are_read():
    found = CHAT.read(SEEN_CHAT)
    assert [(m.role, m.text) for m in found.messages] == [
        ("system", "Be kind."),
        ("user", "1+2?"),
        ("assistant", ""),
        ("tool", "3"),
    ]
    assert found.messages[2].thought == "hm" and found.messages[2].named_nodes == ("0123456789abcdef",)
    assert found.messages[3].call_id == "call_0123456789abcdef_0"  # no tool_call_id: its id is taken
    assert (found.max_tokens, found.stop, found.stream, found.usage) == (99, ("Observation:",), True, True)
    assert found.logprobs and found.token_ids and {"seed", "store", "reasoning_effort", "temperature"} <= set(found.ignored)
    assert json.loads(found.tools)[0]["function"]["name"] == "add"
    odd = {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}, {}]}]}
    assert CHAT.read(odd).messages[0].calls[0].arguments == '{"a": 1}'


def test_messages_requests_are_read():
    found = ANTHROPIC.read(SEEN_ANTHROPIC)
    roles = [
        ("system", "Be kind."),
        ("user", "1+2?"),
        ("system", "A reminder."),
        ("assistant", ""),
        ("tool", "3"),
        ("user", "Go on."),
    ]
    assert [(m.role, m.text) for m in found.messages] == roles
    turn = found.messages[3]
    assert (turn.thought, turn.node, turn.calls[0].arguments) == ("hm", "0123456789abcdef", '{"a": 1}')
    assert [t["function"]["name"] for t in json.loads(found.tools)] == ["add"] and found.stop == ("END",)
    bare = ANTHROPIC.read({"messages": [{"role": "user", "content": []}, {"role": "user", "content": "x"}]})
    assert [m.text for m in bare.messages] == ["", "x"]


def test_what_clients_change_between_turns_changes_no_request():
    """Claude Code moves its cache marks, Codex writes its metadata in another order, retries come with other ids and blanks."""
    moved = json.loads(json.dumps(SEEN_ANTHROPIC).replace(', "cache_control": {"type": "ephemeral"}', ""))
    moved["messages"][-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    moved["messages"][-1]["content"][0]["content"] = "3\n"
    assert moved != SEEN_ANTHROPIC and ANTHROPIC.read(moved).digest == ANTHROPIC.read(SEEN_ANTHROPIC).digest
    other = {**SEEN_RESPONSES, "client_metadata": {"a": 2, "b": 1}, "prompt_cache_key": "y"}
    assert RESPONSES.read(other).digest == RESPONSES.read(SEEN_RESPONSES).digest
    for change in ({"max_completion_tokens": 98}, {"stop": None}, {"tools": []}, {"tool_choice": "none"}):
        assert CHAT.read({**SEEN_CHAT, **change}).digest != CHAT.read(SEEN_CHAT).digest


def test_responses_requests_are_read():
    found = RESPONSES.read(SEEN_RESPONSES)
    assert [(m.role, m.text) for m in found.messages] == [
        ("system", "Be kind."),
        ("system", "A reminder."),
        ("user", "1+2?"),
        ("assistant", "I add."),
        ("tool", "3"),
        ("tool", "ok"),
    ]
    turn = found.messages[3]
    assert turn.node == "0123456789abcdef" and [c.arguments for c in turn.calls] == ["{}", "*** Begin"]
    assert [t["function"]["name"] for t in json.loads(found.tools)] == ["add", "sub", "patch"]
    said = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
    assert RESPONSES.read({"input": [said]}).messages[0].thought == "hm"
    assert RESPONSES.read({"input": "hi"}).messages == (user("hi"),)


def test_gemini_requests_are_read():
    found = GEMINI.read(SEEN_GEMINI)
    roles = [("system", "Be kind."), ("user", "1+2?"), ("assistant", "I add."), ("tool", "3"), ("user", "Go on.")]
    assert [(m.role, m.text) for m in found.messages] == roles
    assert found.messages[2].thought == "hm" and found.messages[2].calls == (ToolCall("c", "add", '{"a": 1}'),)
    assert json.loads(found.tools)[0]["function"]["parameters"]["type"] == "object"
    assert (found.max_tokens, found.stop) == (50, ("END",))
    more = GEMINI.read({"contents": "hi", "systemInstruction": "Be kind."})
    assert [m.text for m in more.messages] == ["Be kind.", "hi"]
    table = {"contents": [{"parts": [{"functionResponse": {"response": {"a": 1, "b": 2}}}]}]}
    assert GEMINI.read(table).messages[0].text == '{"a": 1, "b": 2}'


def test_completions_requests_are_read():
    assert COMPLETIONS.read({"prompt": "a", "logprobs": 0}).logprobs
    assert COMPLETIONS.read({"prompt": ["a"]}).prompt == "a"
    assert COMPLETIONS.read({"prompt": [[1, 2]]}).prompt == COMPLETIONS.read({"prompt": [1, 2]}).prompt == (1, 2)


@pytest.mark.parametrize(
    "wire, body, code",
    [
        (CHAT, {"messages": []}, "invalid_messages"),
        (CHAT, {"messages": [{"role": "user", "content": "x"}], "n": 2}, "unsupported_n"),
        (CHAT, {"messages": [{"role": "user", "content": "x"}], "tools": [{"function": {}}]}, "invalid_tools"),
        (CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}, "unsupported_media"),
        (COMPLETIONS, {"prompt": ["a", "b"]}, "invalid_prompt"),
        (COMPLETIONS, {"prompt": []}, "invalid_prompt"),
        (COMPLETIONS, {"prompt": "a", "echo": True}, "unsupported_echo"),
        (COMPLETIONS, {"prompt": "a", "n": 3}, "unsupported_n"),
        (RESPONSES, {"input": []}, "invalid_input"),
        (RESPONSES, {"input": "x", "previous_response_id": "resp_1"}, "unsupported_previous_response_id"),
        (RESPONSES, {"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "unsupported_media"),
        (ANTHROPIC, {"messages": []}, "invalid_messages"),
        (ANTHROPIC, {"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, "unsupported_media"),
        (GEMINI, {"contents": []}, "invalid_messages"),
        (GEMINI, {"contents": [{"parts": [{"inlineData": {}}]}]}, "unsupported_media"),
    ],
)
def test_what_cannot_be_answered_is_refused_by_name(wire: WireFormat, body: dict[str, Any], code: str):
    with pytest.raises(AgentRequestError) as refused:
        wire.read(body)
    assert refused.value.code == code and refused.value.status == 400


def test_errors_have_the_words_that_clients_act_on():
    error = overflow(600, 512)
    assert CHAT.refuse(error)["error"]["code"] == RESPONSES.refuse(error)["error"]["code"] == "context_length_exceeded"
    assert "maximum context length is 512 tokens" in CHAT.refuse(error)["error"]["message"]
    assert ANTHROPIC.refuse(error)["error"] == {
        "type": "invalid_request_error",
        "message": "prompt is too long: 600 tokens > 512 maximum",
    }
    told = GEMINI.refuse(error)["error"]
    assert told["status"] == "INVALID_ARGUMENT" and told["message"].startswith("The input token count (600) exceeds")
    down = AgentRequestError("down", status=500)
    assert ANTHROPIC.refuse(down)["error"]["type"] == "api_error" and CHAT.refuse(down)["error"]["type"] == "server_error"
    assert GEMINI.refuse(down)["error"]["status"] == "INTERNAL"


# ---- answers --------------------------------------------------------------------------------------------------------


def answered(text: str, request: AgentRequest, thinking: bool = False, ends: bool = True) -> AgentAnswer:
    chat = Chat(template=PLAIN.replace("assistant:", "{% if add_generation_prompt %}assistant:{% endif %}"), thinking=Thinking())
    recorder = recorder_of(tools_tokenizer(chat) if thinking else None)
    return recorder.answer(say(recorder, request, text, ends))


def events(wire: WireFormat, request: AgentRequest, answer: AgentAnswer) -> list[Any]:
    told = [line[6:] for piece in wire.stream(request, answer) for line in piece.split("\n") if line.startswith("data: ")]
    return [json.loads(line) for line in told if line != "[DONE]"]


TOOLS = CHAT.read(SEEN_CHAT).tools


@pytest.mark.parametrize("wire", FORMATS)
@pytest.mark.parametrize(
    "text, tools, thinking, ends",
    [
        ("42", "", False, True),
        (CALL, TOOLS, False, True),
        ("<think>hm</think>\n\n42", "", True, True),
        ("4", "", False, False),
        ("", "", False, True),
    ],
)
def test_an_answer_that_is_sent_back_is_the_answer(wire: WireFormat, text: str, tools: str, thinking: bool, ends: bool):
    """Whole and streamed answers say the same, and as history they are read as what was answered."""
    request = ask(user("1+2?"), tools=tools, usage=True, logprobs=True, token_ids=True)
    answer = answered(text, request, thinking, ends)
    whole = json.loads(json.dumps(wire.write(request, answer)))
    streamed = JOINED[wire.name](events(wire, request, answer))
    for body in (whole, streamed):
        told = wire.read(BACK[wire.name](body)).messages[-1]
        assert (told.text, told.thought, [c.meaning for c in told.calls]) == (
            answer.text,
            answer.thought,
            [c.meaning for c in answer.calls],
        )
        assert not answer.calls or answer.name in told.named_nodes
    assert USAGE[wire.name](whole) == (len(answer.prompt), answer.sampled) == USAGE[wire.name](streamed)


def chat_back(body: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [body["choices"][0]["message"]]}


def chat_joined(pieces: list[Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": "", "reasoning_content": "", "tool_calls": []}
    usage = None
    for piece in pieces:
        usage = piece.get("usage") or usage
        for choice in piece["choices"]:
            delta = choice["delta"]
            message["content"] += delta.get("content") or ""
            message["reasoning_content"] += delta.get("reasoning_content") or ""
            for call in delta.get("tool_calls", ()):
                if "id" in call:
                    message["tool_calls"].append({**call, "function": dict(call["function"])})
                else:
                    message["tool_calls"][call["index"]]["function"]["arguments"] += call["function"]["arguments"]
    assert pieces[0]["choices"][0]["delta"]["role"] == "assistant" and len({p["id"] for p in pieces}) == 1
    return {"choices": [{"message": message}], "usage": usage}


def anthropic_joined(pieces: list[Any]) -> dict[str, Any]:
    assert [p["type"] for p in pieces[:2]] == ["message_start", "ping"] and pieces[-1]["type"] == "message_stop"
    blocks: list[dict[str, Any]] = []
    usage: dict[str, Any] = {}
    for piece in pieces:
        if piece["type"] == "content_block_start":
            assert piece["index"] == len(blocks)
            blocks.append({**piece["content_block"], "json": ""})
        elif piece["type"] == "content_block_delta":
            delta, block = piece["delta"], blocks[piece["index"]]
            for key in ("text", "thinking", "signature"):
                block[key] = block.get(key, "") + delta.get(key, "")
            block["json"] += delta.get("partial_json", "")
        elif piece["type"] == "message_delta":
            usage = piece["usage"]
    for block in blocks:
        if block["type"] == "tool_use":
            block["input"] = json.loads(block["json"])
    return {"content": blocks, "usage": usage}


def responses_joined(pieces: list[Any]) -> dict[str, Any]:
    assert [p["sequence_number"] for p in pieces] == list(range(len(pieces)))
    last = pieces[-1]["response"]
    done = [p["item"] for p in pieces if p["type"] == "response.output_item.done"]
    texts = "".join(p["delta"] for p in pieces if p["type"] == "response.output_text.delta")
    assert done == last["output"] and pieces[0]["type"] == "response.created"
    assert texts == "".join(p["text"] for i in done if i["type"] == "message" for p in i["content"])
    arguments = "".join(p["delta"] for p in pieces if p["type"] == "response.function_call_arguments.delta")
    assert arguments == "".join(i["arguments"] for i in done if i["type"] == "function_call")
    return last


BACK = {
    CHAT.name: chat_back,
    ANTHROPIC.name: lambda body: {"messages": [{"role": "assistant", "content": body["content"]}]},
    RESPONSES.name: lambda body: {"input": body["output"]},
    GEMINI.name: lambda body: {"contents": [body["candidates"][0]["content"]]},
}
JOINED = {
    CHAT.name: chat_joined,
    ANTHROPIC.name: anthropic_joined,
    RESPONSES.name: responses_joined,
    GEMINI.name: lambda pieces: pieces[0],
}
USAGE = {
    CHAT.name: lambda b: (b["usage"]["prompt_tokens"], b["usage"]["completion_tokens"]),
    ANTHROPIC.name: lambda b: (b["usage"]["input_tokens"], b["usage"]["output_tokens"]),
    RESPONSES.name: lambda b: (b["usage"]["input_tokens"], b["usage"]["output_tokens"]),
    GEMINI.name: lambda b: (b["usageMetadata"]["promptTokenCount"], b["usageMetadata"]["candidatesTokenCount"]),
}


def test_a_length_finish_and_token_ids():
    request = ask(user("a"), logprobs=True, token_ids=True)
    answer = answered("4", request, ends=False)
    choice = CHAT.write(request, answer)["choices"][0]
    assert choice["finish_reason"] == "length" and choice["token_ids"] == answer.completion.ids.tolist()
    assert choice["logprobs"]["content"][0]["token"] == "4"
    assert ANTHROPIC.write(request, answer)["stop_reason"] == "max_tokens"
    assert RESPONSES.write(request, answer)["status"] == "incomplete"
    assert events(RESPONSES, request, answer)[-1]["type"] == "response.incomplete"
    assert GEMINI.write(request, answer)["candidates"][0]["finishReason"] == "MAX_TOKENS"


def test_completions_have_tokens_and_text():
    request = AgentRequest(prompt="ab", logprobs=True, token_ids=True, usage=True)
    answer = answered("42", request)
    choice = COMPLETIONS.write(request, answer)["choices"][0]
    assert choice["text"] == "42" and choice["logprobs"]["tokens"] == ["4", "2", ""]
    assert choice["logprobs"]["text_offset"] == [0, 1, 2] and choice["prompt_token_ids"] == answer.prompt.tolist()
    pieces = events(COMPLETIONS, request, answer)
    assert "".join(c["text"] for p in pieces for c in p["choices"]) == "42" and pieces[-1]["usage"]["completion_tokens"] == 3
    bare = AgentRequest(prompt="ab")
    assert len(events(COMPLETIONS, bare, answered("", bare))) == 1


def test_odd_fields_change_nothing():
    odd = {
        "messages": [{"role": "user", "content": {"a": 1}}, "no message", {"content": [7, "x"]}],
        "max_tokens": True,
        "stop": 3,
    }
    found = CHAT.read(odd)
    assert [m.text for m in found.messages] == ['{"a": 1}', "x"] and found.max_tokens is None and found.stop == ()
    assert AgentMessage(role="assistant", calls=(ToolCall("", "f", "{"),)).meaning[-1] == [["f", "{"]]
