"""The endpoint: routes that clients were seen to use, who may ask, retries, budgets, and what becomes of lost answers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from scripted_agents import endpoint_of, session_of

from assay.agents import AgentEndpoint, AgentSession, Budget
from assay.agents import endpoint as module
from assay.core.errors import ConfigError, EngineError

HELLO = [{"role": "user", "content": "hi"}]
CHAT = {"messages": HELLO, "model": "gpt-of-another-company"}
ROUTES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": CHAT,
    "/v1/completions": {"prompt": "hi"},
    "/v1/responses": {"input": "hi"},
    "/v1/messages": {"messages": HELLO, "max_tokens": 9, "metadata": {"user_id": "{}"}},
    "/v1beta/models/gemini-3:generateContent": {"contents": "hi"},
    "/v1beta/models/gemini-3:streamGenerateContent": {"contents": "hi"},
}


def client_of(endpoint: AgentEndpoint) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(endpoint.application), base_url="http://agents")


def post(session: AgentSession, path: str, body: Any, **more: Any) -> httpx.Response:
    async def go() -> httpx.Response:
        async with client_of(endpoint_of(session)) as client:
            return await client.post(path, json=body, **more)

    return asyncio.run(go())


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("stream", [False, True])
def test_every_route_answers_with_the_secret_in_the_path(path: str, stream: bool):
    session = session_of(lambda ask: "hello")
    body = {**ROUTES[path], "stream": stream, "a field that nobody knows": {"x": 1}}
    found = post(session, f"/s/secret{path}?beta=true&alt=sse", body)
    assert found.status_code == 200 and ("hello" in found.text or f'"{"hello"[:3]}"' in found.text)
    pieces = "stream" in path or (stream and "gemini" not in path)
    assert found.headers["content-type"].startswith("text/event-stream" if pieces else "application/json")
    (node,) = session.recorder.nodes
    assert node.delivered and node.request.model in ("policy", "gpt-of-another-company", "gemini-3")


@pytest.mark.parametrize(
    "headers, query",
    [
        ({"authorization": "Bearer secret"}, ""),
        ({"x-api-key": "secret"}, ""),
        ({"x-goog-api-key": "secret"}, ""),
        ({}, "?key=secret"),
        ({"authorization": "Bearer their-own-key", "x-api-key": "secret"}, ""),
    ],
)
def test_the_secret_is_taken_as_a_key_in_any_place(headers: dict[str, str], query: str):
    session = session_of(lambda ask: "hello")
    assert post(session, f"/v1/chat/completions{query}", CHAT, headers=headers).status_code == 200


def test_who_has_no_session_is_told_so_in_the_format_s_form():
    session = session_of(lambda ask: "hello")
    for path, body in ROUTES.items():
        assert post(session, f"/s/other{path}", body).status_code == 401
    found = post(session, "/v1/messages", CHAT, headers={"x-api-key": "other"})
    assert found.json()["error"]["type"] == "authentication_error" and not session.recorder.nodes
    path_wins = post(session, "/s/secret/v1/chat/completions", CHAT, headers={"authorization": "Bearer other"})
    assert path_wins.status_code == 200


def test_the_small_routes():
    session = session_of(lambda ask: "hello", context=321)

    async def go() -> None:
        async with client_of(endpoint_of(session)) as client:
            assert (await client.head("/")).status_code == (await client.get("/s/secret")).status_code == 200
            assert (await client.get("/s/secret/v1/responses")).status_code == 426
            models = (await client.get("/s/secret/v1/models")).json()["data"]
            assert [(m["id"], m["max_model_len"]) for m in models] == [("policy", 321)]
            assert (await client.get("/s/secret/v1/models/any/name")).json()["id"] == "any/name"
            assert (await client.get("/v1/models")).status_code == 401
            counted = await client.post("/s/secret/v1/messages/count_tokens", json=ROUTES["/v1/messages"])
            assert counted.json() == {"input_tokens": len("user:hi\nassistant:")}
            counted = await client.post("/s/secret/v1beta/models/x:countTokens", json={"contents": "hi"})
            assert counted.json() == {"totalTokens": len("user:hi\nassistant:")}
            assert (await client.post("/s/secret/v1beta/models/x:embed", json={})).status_code == 404
            assert (await client.post("/s/secret/v1/chat/completions", content=b"{}")).status_code == 415
            for odd in (b"[]", b"{"):
                json_type = {"content-type": "application/json"}
                assert (await client.post("/s/secret/v1/chat/completions", content=odd, headers=json_type)).status_code == 400

    asyncio.run(go())
    assert not session.recorder.nodes and session.refused == ["415", "invalid_json", "invalid_json"]


def test_unknown_fields_are_said_once_and_never_refused():
    told: list[str] = []
    endpoint = AgentEndpoint(lambda secret: session_of(lambda ask: "hello", secret), notify=told.append)

    async def go() -> None:
        async with client_of(endpoint) as client:
            for _ in range(2):
                assert (await client.post("/s/new/v1/chat/completions", json={**CHAT, "seed": 1})).status_code == 200

    asyncio.run(go())
    assert told == ["OpenAI chat completions: the field 'seed' changes nothing here"]


def test_a_prompt_that_is_too_long_has_the_code_that_clients_act_on():
    session = session_of(lambda ask: "hello", context=40)
    found = post(session, "/s/secret/v1/chat/completions", {"messages": [{"role": "user", "content": "x" * 99}]})
    assert found.status_code == 400 and found.json()["error"]["code"] == "context_length_exceeded"
    assert session.refused == ["context_length_exceeded"]


def test_budgets_and_a_sealed_session():
    session = session_of(lambda ask: "hello", budget=Budget(calls=2))

    async def go() -> None:
        async with client_of(endpoint_of(session)) as client:
            codes = [(await client.post("/s/secret/v1/chat/completions", json=CHAT)) for _ in range(3)]
            assert [c.status_code for c in codes] == [200, 200, 400] and "stop here" in codes[-1].text
            streamed = await client.post("/s/secret/v1/chat/completions", json={**CHAT, "stream": True})
            assert "budget_exceeded" in streamed.text
            await session.seal()
            late = await client.post("/s/secret/v1/chat/completions", json=CHAT)
            assert late.status_code == 409 and late.json()["error"]["code"] == "session_ended"

    asyncio.run(go())
    assert session.exceeded == "2 calls" and len(session.recorder.nodes) == 2
    words = session_of(lambda ask: "hello", budget=Budget(tokens=6))
    assert post(words, "/s/secret/v1/chat/completions", CHAT).status_code == 200
    assert post(words, "/s/secret/v1/chat/completions", CHAT).status_code == 400 and words.exceeded == "6 tokens"
    with pytest.raises(ConfigError, match=r"Budget\.calls=0"):
        Budget(calls=0)


def test_agents_that_agents_call_are_refused_beyond_a_depth():
    claude, opencode = "x-claude-code-agent-id", "x-session-id"
    one_deep = session_of(lambda ask: "hello", budget=Budget(depth=1))
    asked = [
        {},
        {claude: "a"},
        {claude: "b", "x-claude-code-parent-agent-id": "a"},
        {opencode: "main"},
        {opencode: "child", "x-parent-session-id": "main"},
        {opencode: "grandchild", "x-parent-session-id": "child"},
    ]
    found = [post(one_deep, "/s/secret/v1/chat/completions", CHAT, headers=headers) for headers in asked]
    assert [answer.status_code for answer in found] == [200, 200, 400, 200, 200, 400]
    assert "agents called 2 deep may not ask here (budget: depth 1): do this work yourself" in found[2].text
    assert not one_deep.exceeded and one_deep.refused == ["budget_depth"] * 2  # the run goes on
    alone = session_of(lambda ask: "hello", budget=Budget(depth=0))
    refused = post(alone, "/s/secret/v1/chat/completions", CHAT, headers={claude: "a"})
    assert refused.status_code == 400 and "an agent called by another may not ask here" in refused.text
    with pytest.raises(ConfigError, match=r"Budget.depth=-1"):
        Budget(depth=-1)


def test_no_more_calls_are_sampled_at_once_than_the_budget_says():
    session = session_of(lambda ask: "hello", budget=Budget(concurrency=3))
    inner, now, most = session.generate, 0, 0

    async def generate(request: Any) -> Any:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.002)
        now -= 1
        return await inner(request)

    session.generate = generate

    async def go() -> None:
        async with client_of(endpoint_of(session)) as client:
            bodies = [{"messages": [{"role": "user", "content": str(i)}]} for i in range(12)]
            answers = await asyncio.gather(*(client.post("/s/secret/v1/chat/completions", json=b) for b in bodies))
            assert [a.status_code for a in answers] == [200] * 12

    asyncio.run(go())
    assert most == 3


def test_an_engine_that_fails_is_no_answer_and_is_kept():
    session = session_of(lambda ask: "hello")

    async def fails(request: Any) -> Any:
        await asyncio.sleep(0.01)
        raise EngineError("out of memory")

    session.generate = fails
    found = post(session, "/s/secret/v1/messages", ROUTES["/v1/messages"])
    assert found.status_code == 500 and found.json()["error"]["type"] == "api_error"
    streamed = post(session, "/s/secret/v1/chat/completions", {**CHAT, "stream": True})
    assert streamed.status_code == 500 or "server_error" in streamed.text
    assert isinstance(session.failure, EngineError) and session.recorder.calls() == ()


# ---- connections that break -----------------------------------------------------------------------------------------


class Connection:
    """One request as an ASGI server makes it, which may be closed before the answer is there."""

    def __init__(self, endpoint: AgentEndpoint, body: Any, path: str = "/s/secret/v1/chat/completions", **headers: str) -> None:
        self.messages: asyncio.Queue[Any] = asyncio.Queue()
        self.messages.put_nowait({"type": "http.request", "body": json.dumps(body).encode(), "more_body": False})
        self.sent: list[Any] = []
        told = {"content-type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
        raw = [(k.encode(), v.encode()) for k, v in told.items()]
        scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"", "headers": raw}
        self.task = asyncio.ensure_future(endpoint.application(scope, self.messages.get, self._send))

    async def _send(self, message: Any) -> None:
        self.sent.append(message)

    def close(self) -> None:
        self.messages.put_nowait({"type": "http.disconnect"})

    @property
    def text(self) -> str:
        return b"".join(m.get("body", b"") for m in self.sent).decode()


class Slow:
    """Samples when it is told to."""

    def __init__(self) -> None:
        self.session = session_of(lambda ask: f"answer {ask.seed}")
        self.endpoint, self.go = endpoint_of(self.session), asyncio.Event()
        inner = self.session.generate

        async def generate(request: Any) -> Any:
            await self.go.wait()
            return await inner(request)

        self.session.generate = generate


async def until(condition: Any) -> None:
    """Waits for what comes in the end, however busy the machine is."""
    while not condition():
        await asyncio.sleep(0.002)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_was_not_delivered_is_given_to_the_same_request(stream: bool, monkeypatch: pytest.MonkeyPatch):
    """Timed out, cut, or closed by the client, whatever its retry headers say; and it is trained on once."""
    monkeypatch.setattr(module, "PING_SECONDS", 0.005)

    async def go() -> None:
        slow = Slow()
        first = Connection(slow.endpoint, {**CHAT, "stream": stream})
        await settle()
        await until(lambda: not stream or ": still sampling" in first.text)
        assert stream or not first.sent
        first.close()
        await asyncio.gather(first.task, return_exceptions=True)
        slow.go.set()
        again = Connection(
            slow.endpoint, {**CHAT, "stream": stream, "client_metadata": {"new": "order"}}, x_stainless_retry_count="0"
        )
        await again.task
        (node,) = slow.session.recorder.nodes
        assert node.delivered and ("answer" in again.text or '"answer' in again.text)
        (call,) = slow.session.recorder.calls()
        assert not call.shared
        other = Connection(slow.endpoint, {**CHAT, "stream": stream})  # asked anew: another sample
        await other.task
        assert len(slow.session.recorder.nodes) == 2

    asyncio.run(go())


def test_twins_in_flight_are_two_samples_unless_the_client_says_that_it_repeats():
    async def go() -> None:
        slow = Slow()
        twins = [Connection(slow.endpoint, CHAT), Connection(slow.endpoint, CHAT)]
        await settle()
        again = Connection(slow.endpoint, CHAT, x_stainless_retry_count="1")
        await settle()
        slow.go.set()
        await asyncio.gather(*(c.task for c in (*twins, again)))
        assert len(slow.session.recorder.nodes) == 2 and len({c.text for c in twins}) == 2
        assert again.text in {c.text for c in twins}

    asyncio.run(go())


def test_calls_that_still_wait_end_with_their_session(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "PING_SECONDS", 0.005)

    async def go() -> None:
        slow = Slow()
        waits = Connection(slow.endpoint, {**CHAT, "stream": True})
        await until(lambda: waits.sent)
        await slow.session.seal()
        await asyncio.gather(waits.task, return_exceptions=True)
        assert slow.session.recorder.calls() == () and slow.session.failure is None

    asyncio.run(go())


def test_an_error_behind_the_head_of_a_stream_is_said_in_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "PING_SECONDS", 0.005)

    async def go() -> None:
        slow = Slow()

        async def fails(request: Any) -> Any:
            await slow.go.wait()
            raise EngineError("gone")

        slow.session.generate = fails
        waits = Connection(slow.endpoint, {**CHAT, "stream": True})
        await until(lambda: waits.sent)
        slow.go.set()
        await waits.task
        assert "event: error" in waits.text and "gone" in waits.text

    asyncio.run(go())
