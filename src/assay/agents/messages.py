"""An agent's request and its answer in one form, whatever the wire format: what the formats translate to and from."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.core.canon import canonical
from assay.core.rollout import Completion, Ids

__all__ = ["AgentAnswer", "AgentMessage", "AgentRequest", "ToolCall", "chain_digests", "node_named"]

_NAMED = re.compile(r"\A(?:call|toolu|fc|rs|sig|assay)[_-]([0-9a-f]{16})")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool in an assistant's turn.

    Attributes:
        id: as it was minted, or as the client made it; empty for none.
        name: of the tool.
        arguments: JSON text.
    """

    id: str
    name: str
    arguments: str

    @property
    def meaning(self) -> list[Any]:
        """Name and arguments by value: what stays the same when a client writes the JSON anew.

        >>> ToolCall("a", "add", '{"b":1, "a":2}').meaning == ToolCall("b", "add", '{"a": 2, "b": 1}').meaning
        True
        """
        try:
            return [self.name, json.dumps(json.loads(self.arguments or "{}"), sort_keys=True)]
        except (ValueError, RecursionError):
            return [self.name, self.arguments]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMessage:
    """One message of a request.

    Attributes:
        role: ``system``, ``user``, ``assistant`` or ``tool``.
        text: parts joined; empty for none.
        thought: an assistant's reasoning; None where the client sends none.
        calls: of tools, in an assistant's turn.
        call_id: of the call that a tool's result answers; empty where the client names none.
        node: name of the recorded answer that an opaque field of it names (encrypted reasoning, a signature); empty for none.
    """

    role: str
    text: str = ""
    thought: str | None = None
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    node: str = ""

    @property
    def meaning(self) -> list[Any]:
        r"""What is the same where only the representation differs: blanks around a text, ids, the way JSON is written.

        >>> AgentMessage(role="user", text="hi\n").meaning == AgentMessage(role="user", text="hi").meaning
        True
        """
        return [self.role, self.text.strip(), (self.thought or "").strip(), [call.meaning for call in self.calls]]

    @property
    def named_nodes(self) -> tuple[str, ...]:
        """Names of the recorded answers that its opaque fields say."""
        found = [self.node, *(node_named(call.id) for call in self.calls)]
        return tuple(dict.fromkeys(name for name in found if name))


def node_named(opaque: str) -> str:
    """The name of a recorded answer in an id that was minted from it; empty where it is none of these.

    >>> node_named("call_0123456789abcdef_1"), node_named("call_abc")
    ('0123456789abcdef', '')
    """
    found = _NAMED.match(opaque)
    return found.group(1) if found else ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AgentRequest:
    """What an agent asks for.

    Attributes:
        messages: the conversation; empty where ``prompt`` is given.
        tools: schemas as OpenAI's list of functions, JSON in one way of writing; empty for none.
        reads_calls: whether calls are read in the answer; without, they stay text.
        max_tokens: most tokens of the answer; None for the policy's own limit.
        stop: texts that end it.
        stream, usage: whether it is sent in pieces, and its usage behind them.
        logprobs, token_ids: whether log-probabilities and token ids are sent.
        model: what the client calls the policy: any name is taken.
        prompt: text or token ids to go on with instead of a conversation; None for none.
        ignored: names of the fields that changed nothing.
    """

    messages: tuple[AgentMessage, ...] = ()
    tools: str = ""
    reads_calls: bool = True
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    stream: bool = False
    usage: bool = False
    logprobs: bool = False
    token_ids: bool = False
    model: str = "policy"
    prompt: str | tuple[int, ...] | None = None
    ignored: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The same for requests that mean the same; fields that an endpoint ignores are no part of it."""
        prompt = list(self.prompt) if isinstance(self.prompt, tuple) else self.prompt
        chain = chain_digests(self.tools, self.messages)[-1]
        return _hash(chain, [prompt, self.max_tokens, list(self.stop), self.reads_calls])


def chain_digests(tools: str, messages: Sequence[AgentMessage]) -> list[str]:
    """Digests of the first 0, 1, 2, ... messages of a conversation by their `AgentMessage.meaning`, tools included.

    >>> a, b = AgentMessage(role="user", text="a"), AgentMessage(role="user", text="b")
    >>> chain_digests("", [a, b])[:2] == chain_digests("", [a])
    True
    """
    out = [_hash("", tools)]
    for message in messages:
        out.append(_hash(out[-1], message.meaning))
    return out


def _hash(before: str, value: Any) -> str:
    return hashlib.blake2b(canonical([before, value]), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AgentAnswer:
    """One sampled answer as the formats write it.

    Attributes:
        name: of the recorded answer; ids are minted from it.
        text: what is said, without thought and calls.
        thought: reasoning; None without any.
        calls: of tools, their ids unset: each format mints them with `call_id`.
        finish: ``stop``, ``tool_calls`` or ``length``.
        prompt: ``[P]`` ids that were read.
        completion: what was sampled.
        pieces: text of each sampled token.
        model: the name that the client used.
        created: seconds since 1970.
    """

    name: str
    text: str
    thought: str | None
    calls: tuple[ToolCall, ...]
    finish: str
    prompt: Ids
    completion: Completion
    pieces: tuple[str, ...] = ()
    model: str = "policy"
    created: int = field(default_factory=lambda: int(time.time()))

    def call_id(self, index: int, prefix: str = "call") -> str:
        """The id of a call of a tool, in which the answer's name travels."""
        return f"{prefix}_{self.name}_{index}"

    @property
    def sampled(self) -> int:
        """Tokens of the answer, the one that ended it included."""
        return len(self.completion.ids)

    @property
    def message(self) -> AgentMessage:
        """The answer as a message of a conversation."""
        calls = tuple(ToolCall(self.call_id(i), call.name, call.arguments) for i, call in enumerate(self.calls))
        return AgentMessage(role="assistant", text=self.text, thought=self.thought, calls=calls, node=self.name)
