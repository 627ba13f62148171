"""What a wire format is: four pure functions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from assay.agents.errors import AgentRequestError
from assay.agents.messages import AgentAnswer, AgentRequest

__all__ = ["WireFormat", "event", "openai_error"]


@dataclass(frozen=True, slots=True)
class WireFormat:
    """One provider's form of requests and answers.

    Attributes:
        name: for people.
        read: a body to a request; raises AgentRequestError.
        write: an answer to a body.
        stream: an answer to server-sent events, as text.
        refuse: an error to a body.
    """

    name: str
    read: Callable[[Mapping[str, Any]], AgentRequest]
    write: Callable[[AgentRequest, AgentAnswer], dict[str, Any]]
    stream: Callable[[AgentRequest, AgentAnswer], Iterator[str]]
    refuse: Callable[[AgentRequestError], dict[str, Any]]


def event(data: Mapping[str, Any] | str, kind: str = "") -> str:
    r"""One server-sent event.

    >>> event({"a": 1}, "ping")
    'event: ping\ndata: {"a": 1}\n\n'
    """
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return (f"event: {kind}\n" if kind else "") + f"data: {text}\n\n"


def openai_error(error: AgentRequestError) -> dict[str, Any]:
    """An error as OpenAI's clients read it."""
    kind = "invalid_request_error" if error.status < 500 else "server_error"
    return {"error": {"message": str(error), "type": kind, "param": None, "code": error.code or None}}
