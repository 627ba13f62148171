"""The client of OpenAI's protocol against a real server's routes."""

from __future__ import annotations

import asyncio

import pytest

from assay.clients import OpenAIClient
from assay.core.errors import ConfigError
from assay.core.task import Message

TEMPLATE = "{% for m in messages %}{{ m['content'] }}\n{% endfor %}"


@pytest.fixture
def named(server, folder):
    return lambda model=None: OpenAIClient(server.url + "/v1", model or str(folder), seconds=60)


def test_completions_and_chat(named):
    client = named()

    async def ask():
        several = await client.complete("hello", n=3, max_tokens=5, seed=1, ignore_eos=True)
        once = await client.complete("hello", max_tokens=5, temperature=0.0)
        again = await client.complete("hello", max_tokens=5, temperature=0.0)
        chat = await client.chat([Message("user", "hello")], n=2, max_tokens=4, ignore_eos=True, chat_template=TEMPLATE)
        await client.close()
        return several, once, again, chat

    several, once, again, chat = asyncio.run(ask())
    assert [a.finish for a in several] == ["length"] * 3
    assert all(0 < len(a.text) <= 5 for a in several)  # end tokens have no text
    assert len({a.text for a in several}) == 3
    assert once == again
    assert [a.finish for a in chat] == ["length"] * 2
    assert all(0 < len(a.text) <= 4 for a in chat)


def test_what_the_server_refuses(named):
    with pytest.raises(ConfigError, match=r"status 404: .*look at base_url, and whether the server has a model 'nobody'"):
        asyncio.run(named("nobody").complete("hello"))
    with pytest.raises(ConfigError, match=r"status 400: .*does not take this request"):
        asyncio.run(named().complete("hello", max_tokens=100_000))
