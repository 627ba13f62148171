"""Answers in OpenAI's protocol: whole ones, pieces of a stream, errors."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from assay.core.protocols import Tokenizer
from assay.core.rollout import Completion, Stop
from assay.publish.service.completion_request import CompletionRequest, RequestError
from assay.rollout.tool_calls import calls_of

__all__ = ["Answered", "CompletionResponse", "error_body"]


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """One answer, with its text."""

    completion: Completion
    text: str

    @property
    def finish(self) -> str:
        """Why it ended, in the protocol's word."""
        return "stop" if self.completion.stop is Stop.DONE else "length"


class CompletionResponse:
    """Writes the answers to one request.

    Args:
        asked: the request.
        model: the name that the answers carry.
        chat: of ``/v1/chat/completions``, or ``/v1/completions``.
        tokenizer: of the model.
    """

    def __init__(self, asked: CompletionRequest, model: str, chat: bool, tokenizer: Tokenizer) -> None:
        self._asked, self._chat, self._tokenizer = asked, chat, tokenizer
        prefix = "chatcmpl" if chat else "cmpl"
        self._head: dict[str, Any] = {"id": f"{prefix}-{secrets.token_hex(12)}", "created": int(time.time()), "model": model}

    def whole(self, answers: Sequence[Answered]) -> dict[str, Any]:
        """All answers at once."""
        kind = "chat.completion" if self._chat else "text_completion"
        choices = [self._choice(i, a) for i, a in enumerate(answers)]
        return {**self._head, "object": kind, "choices": choices, "usage": self.usage([a.completion for a in answers])}

    def begin(self, index: int) -> dict[str, Any] | None:
        """The first piece of an answer; None for none."""
        if self._chat:
            return self._piece(index, {"delta": {"role": "assistant", "content": ""}})
        return self._piece(index, {"text": self._echo(index)}) if self._asked.echoed else None

    def piece(self, index: int, text: str) -> dict[str, Any]:
        """More of an answer's text."""
        return self._piece(index, {"delta": {"content": text}} if self._chat else {"text": text})

    def last(self, index: int, answer: Answered, rest: str) -> dict[str, Any]:
        """The last piece: what is left of the text, or calls of tools; log-probabilities of all tokens; why it ended."""
        calls = self._calls(answer.text)
        delta: dict[str, Any] = {"content": rest} if rest else {}
        if calls:  # what was said in front of them has been sent
            delta = {"tool_calls": [{"index": i, **call} for i, call in enumerate(calls)]}
        finish = "tool_calls" if calls else answer.finish
        what: dict[str, Any] = {"delta": delta} if self._chat else {"text": rest}
        return self._piece(index, {**what, "logprobs": self._logprobs(answer.completion)}, finish)

    def end(self, completions: Sequence[Completion]) -> dict[str, Any]:
        """The usage behind a stream."""
        return {**self._head, "object": self._stream_kind, "choices": [], "usage": self.usage(completions)}

    def usage(self, completions: Sequence[Completion]) -> dict[str, int]:
        """Tokens: of the prompts, once each, and all that were sampled, tokens that end answers included."""
        sampled, prompt = sum(len(c.ids) for c in completions), self._asked.prompt_tokens
        return {"prompt_tokens": prompt, "completion_tokens": sampled, "total_tokens": prompt + sampled}

    @property
    def _stream_kind(self) -> str:
        return "chat.completion.chunk" if self._chat else "text_completion"

    def _piece(self, index: int, what: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": index, **what, "finish_reason": finish}
        return {**self._head, "object": self._stream_kind, "choices": [choice]}

    def _choice(self, index: int, answer: Answered) -> dict[str, Any]:
        logprobs = self._logprobs(answer.completion)
        if not self._chat:
            text = self._echo(index) + answer.text
            return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": answer.finish}
        message: dict[str, Any] = {"role": "assistant", "content": answer.text}
        calls = self._calls(answer.text)
        if calls:
            message = {"role": "assistant", "content": _words(answer.text) or None, "tool_calls": calls}
        finish = "tool_calls" if calls else answer.finish
        return {"index": index, "message": message, "logprobs": logprobs, "finish_reason": finish}

    def _echo(self, index: int) -> str:
        return self._asked.echoed[index // self._asked.n] if self._asked.echoed else ""

    def _calls(self, text: str) -> list[dict[str, Any]]:
        """Calls of the request's tools; none where one of them has no form that can be read, which stays text."""
        asked = calls_of(text, self._asked.tools) if self._asked.tools else []
        if any(call.wrong for call in asked):
            return []
        return [
            {
                "id": f"call_{secrets.token_hex(12)}",
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments or {}, ensure_ascii=False)},
            }
            for call in asked
        ]

    def _logprobs(self, completion: Completion) -> dict[str, Any] | None:
        """Of the tokens that were sampled, as they were drawn, temperature and truncation included; None where nobody asks."""
        if not self._asked.logprobs:
            return None
        texts = [self._tokenizer.decode([i]) for i in completion.ids.tolist()]
        values: list[float] = completion.logp_engine.tolist()
        if not self._chat:
            ends = list(accumulate(map(len, texts), initial=0))
            return {"tokens": texts, "token_logprobs": values, "top_logprobs": None, "text_offset": ends[:-1]}
        entries = [
            {"token": text, "logprob": p, "bytes": list(text.encode("utf-8", "surrogatepass")), "top_logprobs": list[Any]()}
            for text, p in zip(texts, values, strict=True)
        ]
        return {"content": entries}


def _words(text: str) -> str:
    """What is said in front of calls between tags."""
    before, tag, _ = text.partition("<tool_call>")
    return before.strip() if tag else ""


def error_body(error: Exception) -> tuple[int, dict[str, Any]]:
    """Status and body of an error, in the form that OpenAI's clients read."""
    if isinstance(error, RequestError):
        kind = "invalid_request_error" if error.status < 500 else "server_error"
        return error.status, {"error": {"message": str(error), "type": kind, "param": error.param, "code": error.code}}
    return 500, {"error": {"message": str(error), "type": "server_error", "param": None, "code": None}}
