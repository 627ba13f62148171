"""The client of OpenAI's protocol: what it asks, what it asks again, and what it never says."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from assay.clients import Answer, OpenAIClient
from assay.core.errors import ConfigError, EngineError
from assay.core.task import Message


def chat(*texts):
    return {"choices": [{"index": i, "message": {"role": "assistant", "content": t}, "finish_reason": "stop"} for i, t in texts]}


def client(answer, **more):
    return OpenAIClient("http://host/v1/", "m", transport=httpx.MockTransport(answer), pause=0.0, **more)


def ask(made, **more):
    return asyncio.run(made.chat([Message("user", "hello")], **more))


def test_a_conversation_and_its_answers_in_order():
    seen = []

    def answer(request):
        seen.append((str(request.url), json.loads(request.content), request.headers.get("authorization")))
        return httpx.Response(200, json=chat((1, "two"), (0, None)))

    made = ask(client(answer), n=2, temperature=0.5, max_tokens=7, seed=3)
    assert made == [Answer("", "stop"), Answer("two", "stop")]
    assert seen == [
        (
            "http://host/v1/chat/completions",
            {
                "model": "m",
                "messages": [{"role": "user", "content": "hello"}],
                "n": 2,
                "temperature": 0.5,
                "max_tokens": 7,
                "seed": 3,
            },
            None,
        )
    ]


def test_tools_go_apart_and_calls_in_the_protocols_form():
    seen = []

    def answer(request):
        seen.append(json.loads(request.content))
        return httpx.Response(200, json=chat((0, "two")))

    talk = [
        Message("tools", '[{"name": "add"}]'),
        Message("user", "1+1"),
        Message("tool_calls", '[{"name": "add", "arguments": {"a": 1}}]'),
        Message("tool", "2"),
    ]
    asyncio.run(client(answer).chat(talk))
    asyncio.run(client(answer).chat(talk[:2], tool_choice="required"))
    assert seen[0]["messages"] == [
        {"role": "user", "content": "1+1"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"type": "function", "id": "call00000", "function": {"name": "add", "arguments": '{"a": 1}'}}],
        },
        {"role": "tool", "content": "2", "tool_call_id": "call00000"},
    ]
    add = {"name": "add", "description": "", "parameters": {"type": "object", "properties": {}}}
    assert (seen[0]["tools"], seen[0]["tool_choice"]) == ([{"type": "function", "function": add}], "none")
    assert seen[1]["tool_choice"] == "required"


def test_a_completion():
    def answer(request):
        assert request.url.path == "/v1/completions" and json.loads(request.content)["prompt"] == "once"
        return httpx.Response(200, json={"choices": [{"index": 0, "text": " more", "finish_reason": "length"}]})

    made = client(answer)

    async def complete():
        found = await made.complete("once")
        await made.close()
        await made.close()
        return found

    assert asyncio.run(complete()) == [Answer(" more", "length")]


def test_what_fails_for_a_while_is_asked_again():
    turns = iter([httpx.Response(429, headers={"retry-after": "0"}), httpx.Response(503, headers={"retry-after": "soon"}), None])

    def answer(request):
        turn = next(turns, httpx.Response(200, json=chat((0, "yes"))))
        if turn is None:
            raise httpx.ReadError("reset")
        return turn

    assert ask(client(answer)) == [Answer("yes", "stop")]
    tried = []
    with pytest.raises(EngineError, match=r"no answer in 3 attempts; the last: status 500: 'oh'"):
        ask(client(lambda request: (tried.append(1), httpx.Response(500, text="oh"))[1], attempts=3))
    assert len(tried) == 3


@pytest.mark.parametrize(
    ("status", "fix"),
    [
        (401, "name the variable that holds the key"),
        (403, "what the key allows"),
        (404, "whether the server has a model 'm'"),
        (422, "does not take this request"),
    ],
)
def test_refusals_are_told_at_once(status, fix):
    tried = []
    with pytest.raises(
        ConfigError, match=rf"POST http://host/v1/chat/completions \(model 'm'\) was refused with status {status}: 'no'; .*{fix}"
    ):
        ask(client(lambda request: (tried.append(1), httpx.Response(status, text="no"))[1]))
    assert len(tried) == 1


def test_the_key_is_sent_and_never_said(monkeypatch):
    seen = []

    def answer(request):
        seen.append(request.headers["authorization"])
        return httpx.Response(401, text="wrong key: sk-123")

    made = client(answer, api_key_env="A_KEY")
    monkeypatch.delenv("A_KEY", raising=False)
    with pytest.raises(ConfigError, match="'A_KEY' is not set"):
        ask(made)
    monkeypatch.setenv("A_KEY", "sk-123")
    with pytest.raises(ConfigError, match=r"'wrong key: \[key\]'; look at the key") as caught:
        ask(made)
    assert seen == ["Bearer sk-123"]
    assert "sk-123" not in str(caught.value) + repr(made)


@pytest.mark.parametrize("told", [{"error": "x"}, {"choices": [{"index": 0}]}, {"choices": 3}])
def test_an_answer_of_another_form_is_an_error(told):
    with pytest.raises(EngineError, match="an answer of another form"):
        ask(client(lambda request: httpx.Response(200, json=told)))


def test_too_few_answers_and_no_json_are_errors():
    with pytest.raises(EngineError, match="1 answers where 2 were asked for"):
        ask(client(lambda request: httpx.Response(200, json=chat((0, "a")))), n=2)
    for text in ("oh", "[1]"):
        with pytest.raises(EngineError, match="no JSON object"):
            ask(client(lambda request, text=text: httpx.Response(200, text=text)))


def test_a_call_ends_at_its_deadline_and_waits_for_its_turn():
    running, most = 0, 0

    async def answer(request):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return httpx.Response(200, json=chat((0, "a")))

    made = client(answer, concurrency=3)

    async def many():
        return await asyncio.gather(*(made.chat([Message("user", str(i))]) for i in range(12)))

    assert len(asyncio.run(many())) == 12
    assert most == 3

    async def never(request):
        await asyncio.Event().wait()

    with pytest.raises(EngineError, match=r"no answer within 0.05 s; raise OpenAIClient\(seconds="):
        ask(client(never, seconds=0.05))


@pytest.mark.parametrize(
    ("more", "text"), [({"concurrency": 0}, "concurrency=0"), ({"seconds": 0}, "seconds=0"), ({"attempts": 0}, "attempts=0")]
)
def test_settings_that_cannot_be(more, text):
    with pytest.raises(ConfigError, match=text):
        OpenAIClient("http://host/v1", "m", **more)
    with pytest.raises(ConfigError, match="'host' is no address"):
        OpenAIClient("host", "m")


def test_what_came_instead_of_an_answer_is_told_when_the_time_is_over():
    def refuse(request):
        raise httpx.ConnectError("All connection attempts failed")

    made = OpenAIClient("http://host/v1", "m", transport=httpx.MockTransport(refuse), pause=5.0, seconds=0.2)
    with pytest.raises(
        EngineError, match=r"no answer within 0\.2 s; the last attempt: ConnectError: .*no server listens at this address"
    ):
        ask(made)


def test_an_address_without_its_version_is_told():
    made = OpenAIClient("http://host:8000", "m", transport=httpx.MockTransport(lambda request: httpx.Response(404)))
    with pytest.raises(ConfigError, match=r"'/v1' may be missing from the address: http://host:8000/v1"):
        ask(made)
