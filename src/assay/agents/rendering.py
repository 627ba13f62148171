"""Messages of agents as a tokenizer takes them: tools declared, calls of tools written, characters that it lacks escaped."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

from assay.agents.errors import AgentRequestError
from assay.agents.messages import AgentMessage, AgentRequest
from assay.core.errors import ConfigError, DataError
from assay.core.protocols import ChatTokenizer, Tokenizer
from assay.core.rollout import Ids, ids_of
from assay.core.task import CALLS, TOOLS, Message
from assay.core.thinking import Thinking
from assay.core.util.renamed import RenamedMembers
from assay.rollout.block import render_following

__all__ = ["AgentRenderer"]

_DESCRIBED = (
    "You may call functions. These are there:\n<tools>\n{tools}\n</tools>\nTo call one, answer with its name and arguments:\n"
    '<tool_call>\n{{"name": <name>, "arguments": <arguments>}}\n</tool_call>'
)


@dataclass(slots=True)
class AgentRenderer(RenamedMembers):
    """Renders the conversations of agents for one policy.

    Tools are declared by the chat template, or described in words in the system turn where it shows none.

    Attributes:
        tokenizer: of the policy.
    """

    renamed_members: ClassVar[Mapping[str, str]] = {"spelled": "escape", "written": "to_messages"}

    tokenizer: Tokenizer
    _writes_calls: bool | None = field(default=None, init=False)

    @property
    def thinking(self) -> Thinking | None:
        """The tags of the policy's thoughts; None without any."""
        return self.tokenizer.thinking if isinstance(self.tokenizer, ChatTokenizer) else None

    def opening(self, request: AgentRequest) -> tuple[Ids, tuple[Message, ...]]:
        """``[P]`` ids of a whole request up to where the assistant begins, and the messages that they show.

        Raises:
            AgentRequestError: the tokenizer or its chat template cannot write it.
        """
        try:
            if request.prompt is not None:
                return self._prompt(request.prompt), ()
            messages = self.to_messages(request.messages)
            if not request.tools:
                return self.tokenizer.render(messages), messages
            try:
                shown = (Message(TOOLS, json.dumps(self._escape_json(json.loads(request.tools)), ensure_ascii=False)), *messages)
                return self.tokenizer.render(shown), shown
            except ConfigError:  # the template shows no tools
                described = self._describe_tools(request.tools, messages)
                return self.tokenizer.render(described), described
        except (ConfigError, DataError) as error:
            raise AgentRequestError(
                f"the policy's tokenizer cannot write this conversation: {error}", code="unwritable"
            ) from None

    def following(self, history: Sequence[Message], messages: Sequence[AgentMessage]) -> tuple[Ids, tuple[Message, ...]]:
        """``[T]`` ids of messages behind an answer that was sampled and has ended, and the messages that they show.

        Raises:
            ConfigError, DataError: the chat template cannot write them there.
        """
        shown = self.to_messages(messages)
        return render_following(self.tokenizer, history, shown).ids, shown

    def to_messages(self, messages: Sequence[AgentMessage]) -> tuple[Message, ...]:
        """Messages as the chat template is given them."""
        return tuple(self._to_message(message) for message in messages)

    def _to_message(self, message: AgentMessage) -> Message:
        if message.role != "assistant":
            return Message(message.role, self.escape(message.text))
        words = message.text
        if message.thought and (tags := self.thinking):
            words = f"{tags.open}\n{message.thought}\n{tags.close}\n\n{words}"
        if not message.calls:
            return Message("assistant", self.escape(words))
        calls = [{"name": call.name, "arguments": _object(call.arguments)} for call in message.calls]
        if self.writes_calls:
            told = self._escape_json({"content": words, "tool_calls": calls})
            return Message(CALLS, json.dumps(told, ensure_ascii=False))
        written = "\n".join(f"<tool_call>\n{json.dumps(call, ensure_ascii=False)}\n</tool_call>" for call in calls)
        return Message("assistant", self.escape(f"{words}\n{written}" if words else written))

    @property
    def writes_calls(self) -> bool:
        """Whether the chat template writes calls of tools in its model's own form."""
        if self._writes_calls is None:
            asked = (Message("user", "0"), Message(CALLS, '[{"name": "0", "arguments": {}}]'), Message("tool", "0"))
            try:
                self.tokenizer.render(asked)
                self._writes_calls = True
            except (ConfigError, DataError):
                self._writes_calls = False
        return self._writes_calls

    def escape(self, text: str) -> str:
        """A text that the policy can be shown: characters that its tokenizer lacks as escapes."""
        try:
            self.tokenizer.encode(text)
        except (DataError, UnicodeEncodeError):
            return text.encode("ascii", "backslashreplace").decode()
        return text

    def _escape_json(self, value: Any) -> Any:
        """A value with its texts escaped."""
        if isinstance(value, str):
            return self.escape(value)
        if isinstance(value, list):
            return [self._escape_json(entry) for entry in cast("list[Any]", value)]
        if isinstance(value, dict):
            return {self.escape(k): self._escape_json(v) for k, v in cast("dict[str, Any]", value).items()}
        return value

    def _prompt(self, prompt: str | tuple[int, ...]) -> Ids:
        if isinstance(prompt, str):
            return ids_of([*getattr(self.tokenizer, "bos_ids", ()), *self.tokenizer.encode(prompt).tolist()])
        wrong = [i for i in prompt if not 0 <= i < self.tokenizer.size]
        if wrong:
            raise DataError(f"token id {wrong[0]} is none of the vocabulary's {self.tokenizer.size}")
        return ids_of(prompt)

    def _describe_tools(self, tools: str, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Tools in words in front of the first turn of system or user."""
        schemas = [json.dumps(entry["function"], ensure_ascii=False) for entry in json.loads(tools)]
        words = self.escape(_DESCRIBED.format(tools="\n".join(schemas)))
        first = next((i for i, m in enumerate(messages) if m.role in ("system", "user")), None)
        if first is None:
            raise DataError("tools are declared, and there is no system or user turn in front of which they could be described")
        told = list(messages)
        before, after = (told[first].content, words) if told[first].role == "system" else (words, told[first].content)
        told[first] = replace(told[first], content=f"{before}\n\n{after}")
        return tuple(told)


def _object(arguments: str) -> dict[str, Any]:
    try:
        found: Any = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        found = arguments
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {"input": found}
