"""A policy for agent programs to be tried with: every wire format, each key a session, each call recorded."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from assay.agents import AgentEndpoint, AgentRenderer, AgentSession, Budget, CallNode, CallRecorder
from assay.core.errors import ConfigError
from assay.core.protocols import Request
from assay.core.rollout import Completion, Sampling
from assay.core.seeds import derive
from assay.core.util.renamed import refuse_old_keywords
from assay.publish.service.text_generator import TextGenerator
from assay.rollout.decode_text import with_stop
from assay.sandbox.service.http import listen

__all__ = ["policy_endpoint", "serve_policy"]

ENDLESS = Budget(calls=10**9, tokens=10**12, concurrency=64)
"""Who tries a policy by hand is not stopped."""


@refuse_old_keywords({"said": "notify"})
def policy_endpoint(
    model: TextGenerator,
    sampling: Sampling,
    name: str = "policy",
    *,
    seed: int = 0,
    record: Path | None = None,
    notify: Callable[[str], None] = print,
) -> AgentEndpoint:
    """An endpoint where every key, and every secret in the path, opens a session.

    Args:
        model: samples.
        sampling: how; requests change its limit and its stop texts alone.
        name: in the list of models.
        seed: of the noise, with the number of the session and the call.
        record: a file to which a line of JSON is added for each call: session, name, parent, how the prompt came about, ids of
            prompt and answer, log-probabilities, text.
        notify: called with a line for each ignored field, once.
    """
    drawn = with_stop(sampling, model.tokenizer)
    renderer, opened = AgentRenderer(model.tokenizer), list[str]()

    async def generate(request: Request) -> Completion:
        return await asyncio.wrap_future(model.submit(request.prompt, request.sampling, request.seed))

    def open_session(secret: str) -> AgentSession:
        opened.append(secret)
        session = f"session-{len(opened)}"
        return AgentSession(
            secret=secret,
            recorder=CallRecorder(session, renderer, drawn.max_new_tokens, model.context),
            sampling=drawn,
            seed=derive("serve policy", seed, session),
            generate=generate,
            budget=ENDLESS,
            on_call=None if record is None else partial(_write, record),
        )

    return AgentEndpoint(open_session, model=name, notify=notify)


@refuse_old_keywords({"said": "notify"})
def serve_policy(
    model: TextGenerator,
    sampling: Sampling,
    name: str = "policy",
    *,
    port: int = 8000,
    seed: int = 0,
    record: Path | None = None,
    notify: Callable[[str], None] = print,
) -> None:
    """Serves `policy_endpoint` on 127.0.0.1 until Ctrl-C or SIGTERM.

    Raises:
        ConfigError: a port that cannot be had, or a file that cannot be written.
    """
    if record is not None:
        try:
            record.touch()
        except OSError as error:
            raise ConfigError(f"--record {record}: {error.strerror}; give a file in a folder that is there") from None
    endpoint = policy_endpoint(model, sampling, name, seed=seed, record=record, notify=notify)
    ways = "OpenAI's chat, completions and responses, Anthropic's messages, Gemini's generateContent"
    listen(endpoint.application, name, ways, "127.0.0.1", port, "", notify, _hint)


def _hint(address: str) -> str:
    return (
        f"any key opens a session of its own, as does a name in the address, {address}/s/NAME/v1\n"
        f"OPENAI_BASE_URL={address}/s/first/v1 OPENAI_API_KEY=first ANTHROPIC_BASE_URL={address}/s/first ANTHROPIC_API_KEY=first "
        "YOUR_AGENT"
    )


def _write(record: Path, session: AgentSession, node: CallNode) -> None:
    if node.completion is None:
        return
    line: dict[str, Any] = {
        "session": session.recorder.session,
        "call": node.name,
        "parent": node.pose.parent.name if node.pose.parent else None,
        "history": node.pose.history,
        "prompt": node.pose.prefix.tolist(),
        "ids": node.completion.ids.tolist(),
        "logp": [float(x) for x in node.completion.logp_engine],
        "stop": node.completion.stop.value,
        "text": node.text,
    }
    with record.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + os.linesep)
