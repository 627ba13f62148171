"""A model with OpenAI's protocol, asked in this process: whole answers, streams, errors, and what is held back."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import Future
from typing import Any

import httpx
import numpy as np
import pytest

from assay.core.errors import EngineError
from assay.core.rollout import Completion, Sampling, Span, Stop, ids_of
from assay.core.task import Message
from assay.publish.service import ServedDefaults, TextGenerator, TextStream, application
from assay.publish.service.text_stream import before_call
from assay.runtime import ChatTemplate, DecoderShape, char_tokenizer, init_model
from assay.runtime.models.hf import save_model
from assay.runtime.text.chat import Chat

CHAT = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "Hello"}]
TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}]
TOOL_TEMPLATE = (
    "{% for t in tools or [] %}{{ t | tojson }}\n{% endfor %}{% for m in messages %}{{ m.role }}:{{ m.content }}"
    "{% for c in m.tool_calls or [] %}{{ c.function | tojson }}{% endfor %}{{ eos_token if m.role == 'assistant' }}\n"
    "{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    tokenizer = char_tokenizer(
        "".join(map(chr, range(32, 127))) + "\n", ChatTemplate(user="U:{content}\n", assistant="A:{content}")
    )
    shape = DecoderShape(hidden_size=16, num_layers=1, num_heads=1, num_kv_heads=1, head_dim=16, intermediate_size=32)
    shape = DecoderShape(**{**{f: getattr(shape, f) for f in shape.__dataclass_fields__}, "vocab_size": tokenizer.size})
    path = tmp_path_factory.mktemp("served") / "tiny"
    path.mkdir()
    save_model(init_model(shape, tokenizer, 0), path)
    return path


@pytest.fixture(scope="module")
def model(folder):
    with TextGenerator(folder) as made:
        yield made


class Scripted:
    """Says what it is told to, token by token, with the tokenizer and the limits of a real model."""

    def __init__(self, model: TextGenerator, text: str, error: Exception | None = None) -> None:
        self.tokenizer = model.tokenizer.with_chat(Chat(template=TOOL_TEMPLATE))
        self.context, self.chats, self._text, self._error = 4096, True, text, error

    def chat_prompt(self, messages):
        return self.tokenizer.render(messages)

    def submit(self, prompt, sampling, seed, tell=None):
        ids = ids_of([*self.tokenizer.encode(self._text), self.tokenizer.eos])
        found: Future[Completion] = Future()
        if self._error:
            found.set_exception(self._error)
            return found
        for i in range(len(ids)):
            if tell:
                tell(ids[i : i + 1])
        found.set_result(
            Completion(
                ids=ids,
                logp_engine=np.zeros(len(ids), np.float32),
                spans=(Span(0, 0, len(ids)),),
                stop=Stop.DONE,
                sampling=Sampling(stop_ids=(self.tokenizer.eos,)),
            )
        )
        return found


def ask(model: Any, path: str, body: Any = None, key: str = "", said: list[str] | None = None, **made: Any) -> httpx.Response:
    """One request to a server of its own."""

    async def once() -> httpx.Response:
        notes = said if said is not None else []
        app = application(model, "tiny", key=key, notify=notes.append, **made)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here", timeout=60) as client:
            headers = {"Authorization": f"Bearer {made.get('sent', key)}"} if key else {}
            return await (client.get(path, headers=headers) if body is None else client.post(path, json=body, headers=headers))

    return asyncio.run(once())


def pieces(response: httpx.Response) -> list[dict[str, Any]]:
    events = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert events.pop() == "[DONE]"
    return [json.loads(e) for e in events]


def joined(found: list[dict[str, Any]], index: int) -> str:
    return "".join(c["delta"].get("content", "") for p in found for c in p["choices"] if c["index"] == index)


def test_a_whole_answer_and_its_stream_are_the_same(model):
    body = {
        "model": "tiny",
        "messages": HELLO,
        "max_tokens": 9,
        "seed": 3,
        "n": 3,
        "top_k": 9,
        "stop": ["z", ""],
        "logprobs": True,
    }
    whole = ask(model, CHAT, body).json()
    assert [c["index"] for c in whole["choices"]] == [0, 1, 2] and whole["object"] == "chat.completion"
    sampled = sum(len(c["logprobs"]["content"]) for c in whole["choices"])
    assert whole["usage"] == {"prompt_tokens": 10, "completion_tokens": sampled, "total_tokens": 10 + sampled}
    response = ask(model, CHAT, {**body, "stream": True, "stream_options": {"include_usage": True}})
    assert response.headers["content-type"].startswith("text/event-stream")
    found = pieces(response)
    assert found[-1]["choices"] == [] and found[-1]["usage"] == whole["usage"]
    for i, choice in enumerate(whole["choices"]):
        assert joined(found, i) == choice["message"]["content"]
        ends = [c for p in found for c in p["choices"] if c["index"] == i and c["finish_reason"]]
        assert [c["finish_reason"] for c in ends] == [choice["finish_reason"]] and ends[0]["logprobs"] == choice["logprobs"]


def test_seeds_and_truncation_decide_the_answer(model):
    def said(**more: Any) -> list[str]:
        found = ask(model, CHAT, {"messages": HELLO, "max_completion_tokens": 12, **more}).json()
        return [c["message"]["content"] for c in found["choices"]]

    assert said(seed=1) == said(seed=1, top_k=-1, min_p=0) != said(seed=2)
    assert said(temperature=0) == said(top_k=1) and len(set(said(temperature=0, n=2))) == 1
    assert said() != said()


def test_texts_go_on(model):
    body = {"prompt": ["Once", "Twice"], "max_tokens": 4, "temperature": 0, "echo": True, "logprobs": 1}
    found = ask(model, "/v1/completions", body).json()
    assert [c["text"][:-4] for c in found["choices"]] == ["Once", "Twice"] and found["usage"]["prompt_tokens"] == 9
    assert found["choices"][0]["logprobs"]["text_offset"] == [0, 1, 2, 3]
    streamed = pieces(ask(model, "/v1/completions", {**body, "stream": True}))
    for i in range(2):
        assert "".join(c["text"] for p in streamed for c in p["choices"] if c["index"] == i) == found["choices"][i]["text"]
    ids = model.tokenizer.encode("Once").tolist()
    same = ask(model, "/v1/completions", {"prompt": ids, "max_tokens": 4, "temperature": 0}).json()
    assert "Once" + same["choices"][0]["text"] == found["choices"][0]["text"]


def test_requests_share_the_batch_and_tell_of_tokens_as_they_come(model):
    engine, ready = model._engine._engine, threading.Event()
    before = engine.counters["steps"], engine.counters["sampled_tokens"]
    heard: list[list[int]] = [[] for _ in range(24)]
    model._engine._loop.call_soon_threadsafe(ready.wait, 60)  # the engine begins when all have asked
    prompt, sampling = model.chat_prompt([Message("user", "Hello")]), Sampling(max_new_tokens=40, stop_ids=(0,))
    asked = [model.submit(prompt, sampling, i, lambda ids, i=i: heard[i].extend(ids.tolist())) for i in range(24)]
    ready.set()
    assert [f.result(60).ids.tolist() for f in asked] == heard
    steps, sampled = (engine.counters[n] - b for n, b in zip(("steps", "sampled_tokens"), before, strict=True))
    assert steps < sampled / 8


@pytest.mark.parametrize(
    ("body", "status", "code", "param", "said"),
    [
        ({"messages": HELLO, "max_tokens": 500}, 400, "context_length_exceeded", "messages", "maximum context length is 128"),
        (
            {"messages": [{"role": "user", "content": "x" * 200}]},
            400,
            "context_length_exceeded",
            "messages",
            "205 in the messages",
        ),
        ({"messages": HELLO, "model": "gpt"}, 404, "model_not_found", "model", "this server has 'tiny'"),
        ({"messages": []}, 400, None, "messages", "at least one"),
        ({"messages": HELLO, "temperature": -1}, 400, None, "temperature", "must be >= 0"),
        ({"messages": HELLO, "temperature": "hot"}, 400, None, "temperature", "'temperature' is a number, not 'hot'"),
        ({"messages": HELLO, "n": 0}, 400, None, "n", "1 to 128"),
        ({"messages": HELLO, "max_tokens": 0}, 400, None, "max_tokens", "at least 1"),
        ({"messages": HELLO, "stop": [1]}, 400, None, "stop", "a text or a list of texts"),
        ({"messages": HELLO, "tools": TOOLS}, 400, None, "messages", "writes no messages of role 'tools'"),
        ({"messages": HELLO, "tools": [{}]}, 400, None, "tools", "has no name"),
        ({"messages": HELLO, "tools": "add"}, 400, None, "tools", "'tools' is a list"),
        ({"messages": [{"content": "a"}]}, 400, None, "messages[0]", "no object with a 'role'"),
        ({"messages": [{"role": "poet", "content": "a"}]}, 400, None, "messages", "role 'poet' has no template"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, None, "messages[0]", "no pictures"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}]}, 400, None, "messages[0]", "a call is"),
        ({"messages": [{"role": "user", "content": "é"}]}, 400, None, "messages", "alphabet lacks 'é'"),
        ([1], 400, None, None, "no JSON object"),
    ],
)
def test_what_cannot_be_answered(model, body, status, code, param, said):
    response = ask(model, CHAT, body)
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["param"]) == (status, code, param)
    assert said in error["message"] and error["type"] == "invalid_request_error"


@pytest.mark.parametrize("prompt", [None, [], 4, ["a", 4], [[]], [4000], [True]])
def test_prompts_that_are_none(model, prompt):
    response = ask(model, "/v1/completions", {"prompt": prompt})
    assert response.status_code == 400 and response.json()["error"]["param"] == "prompt"


def test_unknown_fields_are_ignored_and_told_once(model):
    said: list[str] = []
    response = ask(model, CHAT, {"messages": HELLO, "max_tokens": 1, "presence_penalty": 2, "user": "a", "stop": None}, said=said)
    assert response.status_code == 200 and len(said) == 1 and "'presence_penalty'" in said[0]


def test_what_is_sent_as_no_json(model):
    async def once(content: bytes, kind: str) -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(application(model)), base_url="http://here") as client:
            return await client.post(CHAT, content=content, headers={"Content-Type": kind})

    assert asyncio.run(once(b"{}", "text/plain")).status_code == 415
    broken = asyncio.run(once(b"{", "application/json"))
    assert broken.status_code == 400 and "not JSON" in broken.json()["error"]["message"]


def test_models_and_keys(model):
    assert ask(model, "/v1/models").json()["data"][0]["id"] == "tiny"
    assert ask(model, "/v1/models/tiny").json()["max_model_len"] == 128
    assert ask(model, "/v1/models/other").status_code == 404
    assert ask(model, "/v1/models", key="secret").status_code == 200
    refused = asyncio.run(_without_key(model))
    assert refused.status_code == 401 and refused.json()["error"]["code"] == "invalid_api_key"


async def _without_key(model) -> httpx.Response:
    app = application(model, key="secret")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
        assert (await client.get("/health")).json() == {"status": "ok"}
        return await client.get("/v1/models")


def test_defaults_are_those_of_whoever_serves(model):
    defaults = ServedDefaults(sampling=Sampling(temperature=0.0, max_new_tokens=3))
    one, two = (ask(model, CHAT, {"messages": HELLO}, defaults=defaults).json() for _ in range(2))
    assert one["choices"][0]["message"] == two["choices"][0]["message"]
    assert one["usage"]["completion_tokens"] <= 3


CALL = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'


@pytest.mark.parametrize(("text", "words"), [(CALL, None), ("I add.\n" + CALL, "I add."), (CALL[11:-12], None)])
def test_calls_of_tools(model, text, words):
    body = {"messages": HELLO, "tools": TOOLS}
    choice = ask(Scripted(model, text), CHAT, body).json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls" and choice["message"]["content"] == words
    call = choice["message"]["tool_calls"][0]
    assert (call["type"], call["function"]) == ("function", {"name": "add", "arguments": '{"a": 1}'})
    found = pieces(ask(Scripted(model, text), CHAT, {**body, "stream": True}))
    assert joined(found, 0).strip() == (words or "")
    last = found[-1]["choices"][0]
    assert last["finish_reason"] == "tool_calls" and last["delta"]["tool_calls"][0]["function"] == call["function"]
    plain = ask(Scripted(model, text), CHAT, {**body, "tool_choice": "none"}).json()["choices"][0]
    assert plain["message"]["content"] == text and plain["finish_reason"] == "stop"


@pytest.mark.parametrize("text", ["<tool_call>add 1</tool_call>", '{"name": "Ada", "parameters": {}}', "Four."])
def test_what_is_no_call_is_text(model, text):
    body = {"messages": HELLO, "tools": TOOLS}
    assert ask(Scripted(model, text), CHAT, body).json()["choices"][0]["message"] == {"role": "assistant", "content": text}
    assert joined(pieces(ask(Scripted(model, text), CHAT, {**body, "stream": True})), 0) == text


def test_calls_and_results_go_into_the_prompt(model):
    talk = [
        *HELLO,
        {"role": "assistant", "content": None, "tool_calls": [{"id": "x", "function": {"name": "add", "arguments": '{"a": 1}'}}]},
        {"role": "tool", "tool_call_id": "x", "content": "2"},
    ]
    seen: list[str] = []

    class Listening(Scripted):
        def submit(self, prompt, *rest):
            seen.append(self.tokenizer.decode(prompt))
            return super().submit(prompt, *rest)

    assert ask(Listening(model, "2"), CHAT, {"messages": talk, "tools": TOOLS}).status_code == 200
    assert '"add"' in seen[0] and '{"a": 1}' in seen[0] and "tool:2\n" in seen[0]


def test_an_engine_that_fails(model):
    broken = Scripted(model, "a", EngineError("out of luck"))
    response = ask(broken, CHAT, {"messages": HELLO})
    assert response.status_code == 500 and response.json()["error"]["type"] == "server_error"
    streamed = ask(broken, CHAT, {"messages": HELLO, "stream": True}).text
    assert '"out of luck"' in streamed and "[DONE]" not in streamed


def test_a_stream_holds_back_what_may_become_something_else(model):
    stream = TextStream(model.tokenizer, ("END", "!!"))
    said = [stream.push(model.tokenizer.encode(c)) for c in "aENbE!c"]
    assert said == ["a", "", "", "ENb", "", "E", "!c"] or "".join(said) == "aENbE!c"
    assert said[1] == said[2] == "" and said[3] == "ENb"
    assert stream.push(model.tokenizer.encode("EN")) == ""


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("  {", 0), ("<|py", 0), ("It is <", 6), ("It is <b", 8), ("a <tool_call>{", 2), ("[1", 0)]
)
def test_what_stands_in_front_of_a_call(text, count):
    assert before_call(text) == count


def test_a_request_that_is_cancelled_leaves_the_batch(model):
    prompt = model.chat_prompt([])
    future = model.submit(prompt, Sampling(max_new_tokens=100, stop_ids=(0,)), 1)
    future.cancel()
    assert model.submit(prompt, Sampling(max_new_tokens=3, stop_ids=(0,)), 1).result(60).stop is Stop.LENGTH
    assert not model._engine._engine._jobs


def test_an_engine_that_has_ended(folder):
    model = TextGenerator(folder)
    running = model.submit(model.text_prompt("a"), Sampling(max_new_tokens=100, stop_ids=(0,)), 1)
    model.close()
    model.close()
    assert running.cancelled() or running.done()
    with pytest.raises(EngineError, match="has ended"):
        model.submit(model.text_prompt("a"), Sampling(), 1)
