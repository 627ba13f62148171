"""A policy for agent programs to be tried with: every key a session, each call on a line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx
import numpy as np
import pytest

from assay.core.errors import ConfigError
from assay.core.rollout import Sampling
from assay.publish.service import TextGenerator, policy_endpoint, serve_policy
from assay.publish.service import policy as module
from assay.runtime import ChatTemplate, DecoderShape, char_tokenizer, init_model
from assay.runtime.models.hf import save_model

HELLO = [{"role": "user", "content": "Hello"}]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory):
    letters = "".join(map(chr, range(32, 127))) + "\n"
    tokenizer = char_tokenizer(letters, ChatTemplate(user="U:{content}\n", assistant="A:{content}"))
    shape = DecoderShape(
        hidden_size=16, num_layers=1, num_heads=1, num_kv_heads=1, head_dim=16, intermediate_size=32, vocab_size=tokenizer.size
    )
    path = tmp_path_factory.mktemp("policy") / "tiny"
    path.mkdir()
    save_model(init_model(shape, tokenizer, 0), path)
    with TextGenerator(path) as made:
        yield made


def asked(model: TextGenerator, record: Path | None, seed: int = 0) -> list[str]:
    """What two sessions are answered, each twice; the second by its key."""
    endpoint = policy_endpoint(model, Sampling(max_new_tokens=5), seed=seed, record=record)

    async def go() -> list[str]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(endpoint.application), base_url="http://policy") as client:
            out: list[str] = []
            for path, headers in (("/s/a/v1/", {}), ("/v1/", {"authorization": "Bearer b"})):
                messages = list(HELLO)
                for _ in range(2):
                    answer = await client.post(path + "chat/completions", json={"messages": messages}, headers=headers)
                    message = answer.json()["choices"][0]["message"]
                    out.append(message["content"])
                    messages += [message, HELLO[0]]
            return out

    return asyncio.run(go())


def test_each_key_is_a_session_whose_calls_are_recorded(model: TextGenerator, tmp_path: Path) -> None:
    record = tmp_path / "calls.jsonl"
    said = asked(model, record)
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    assert [(x["session"], x["history"]) for x in lines] == [
        ("session-1", ""),
        ("session-1", "exact"),
        ("session-2", ""),
        ("session-2", "exact"),
    ]
    assert [x["text"] for x in lines] == said and lines[1]["parent"] == lines[0]["call"] and lines[0]["parent"] is None
    begun = lines[0]["prompt"] + lines[0]["ids"]
    assert lines[1]["prompt"][: len(begun)] == begun
    assert all(np.isfinite(x["logp"]).all() and len(x["logp"]) == len(x["ids"]) for x in lines)
    assert asked(model, None) == said and asked(model, None, seed=1) != said


def test_a_server_says_where_it_is_and_refuses_a_file_that_cannot_be_written(
    model: TextGenerator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="--record"):
        serve_policy(model, Sampling(), record=tmp_path / "no" / "calls.jsonl")
    told: list[object] = []
    monkeypatch.setattr(module, "listen", lambda *given: told.extend(given))
    serve_policy(model, Sampling(), "mine", port=0, record=tmp_path / "calls.jsonl")
    assert told[1] == "mine" and told[3:5] == ["127.0.0.1", 0]
    assert "OPENAI_BASE_URL=http://here/s/first/v1" in told[-1]("http://here")  # type: ignore[operator]
