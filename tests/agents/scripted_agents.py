"""A policy that says what a script says, a tokenizer that writes tools, and sessions of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from assay.agents import AgentEndpoint, AgentMessage, AgentRenderer, AgentRequest, AgentSession, Budget, CallNode, CallRecorder
from assay.core.rollout import Completion, Sampling, Span, Stop, ids_of
from assay.runtime.text.chat import Chat
from assay.runtime.text.tokenizer import HubTokenizer, char_tokenizer
from assay.testing import ScriptedEngine

TEXT = "".join(map(chr, range(32, 127))) + "\n"
TEMPLATE = (
    "{% for t in tools or [] %}{{ t | tojson }}\n{% endfor %}{% for m in messages %}{{ m.role }}:{{ m.content }}"
    "{% for c in m.tool_calls or [] %}{{ c.function | tojson }}{% endfor %}{{ eos_token if m.role == 'assistant' }}\n"
    "{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"
)
ADD = {
    "type": "function",
    "function": {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}},
}
CALL = 'I add.\n<tool_call>\n{"name": "add", "arguments": {"a":  1, "b": "x"}}\n</tool_call>'


def tools_tokenizer(chat: Chat | None = None) -> HubTokenizer:
    return char_tokenizer(TEXT).with_chat(chat or Chat(template=TEMPLATE))


def recorder_of(tokenizer: Any = None, context: int = 4096, limit: int = 200, name: str = "t/0") -> CallRecorder:
    return CallRecorder(name, AgentRenderer(tokenizer or tools_tokenizer()), limit, context)


def say(recorder: CallRecorder, request: AgentRequest, text: str, ends: bool = True) -> CallNode:
    """A call that is answered by a text."""
    node = recorder.begin(request)
    tokenizer = recorder.renderer.tokenizer
    ids = ids_of([*tokenizer.encode(text).tolist(), *([tokenizer.eos] if ends else [])])
    logp = np.linspace(-1, -0.5, len(ids), dtype=np.float32)
    sampling = Sampling(max_new_tokens=200, stop_ids=(tokenizer.eos,))
    stop = Stop.DONE if ends else Stop.LENGTH
    recorder.end(node, Completion(ids=ids, logp_engine=logp, spans=(Span(0, 0, len(ids)),), stop=stop, sampling=sampling))
    node.delivered = True
    return node


def ask(*messages: AgentMessage, **more: Any) -> AgentRequest:
    return AgentRequest(messages=messages, **more)


def user(text: str) -> AgentMessage:
    return AgentMessage(role="user", text=text)


def session_of(
    script: Callable[[Any], Any], secret: str = "secret", context: int = 4096, budget: Budget | None = None, seed: int = 0
) -> AgentSession:
    tokenizer = tools_tokenizer()
    engine = ScriptedEngine(script, tokenizer, context=context)
    return AgentSession(
        secret=secret,
        recorder=recorder_of(tokenizer, context, name=f"session {secret}"),
        sampling=Sampling(max_new_tokens=200, stop_ids=(tokenizer.eos,)),
        seed=seed,
        generate=engine.generate,
        budget=budget or Budget(),
    )


def endpoint_of(*sessions: AgentSession) -> AgentEndpoint:
    endpoint = AgentEndpoint()
    for session in sessions:
        endpoint.add(session)
    return endpoint
