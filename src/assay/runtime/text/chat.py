"""How a model is talked to, as plain values: its chat template, a system prompt, its thoughts. Importable without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any, Literal, get_args

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.thinking import Thinking

if TYPE_CHECKING:
    from assay.runtime.text.tokenizer import ChatTemplate

__all__ = ["BUILT_IN", "Chat"]

Rewrites = Literal["refuse", "keep"]

BUILT_IN: Mapping[str, str] = {
    "chatml": (
        "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    ),
    "dialogue": (
        "{% for message in messages %}{{ message.role | capitalize }}: {{ message.content }}"
        "{{ eos_token if message.role == 'assistant' }}\n{% endfor %}{% if add_generation_prompt %}Assistant: {% endif %}"
    ),
    "tools": (
        "{% if tools %}You may call functions. These are there:\n<tools>\n{% for tool in tools %}{{ tool.function | tojson }}\n"
        "{% endfor %}</tools>\nTo call one, answer with its name and arguments:\n"
        '<tool_call>{"name": <name>, "arguments": <arguments>}</tool_call>\n{% endif %}'
        "{% for message in messages %}{{ message.role | capitalize }}: {{ message.content or '' }}"
        "{% for call in message.tool_calls or [] %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}"
        "{{ eos_token if message.role == 'assistant' }}\n{% endfor %}{% if add_generation_prompt %}Assistant: {% endif %}"
    ),
}
"""Templates for tokenizers that bring none: ``chatml`` for those that have its two tokens, ``dialogue`` for any other, and
``tools`` for any other whose tasks or demonstrations declare tools: ``dialogue`` with these and with calls of them.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """How conversations with a model are written and read.

    Attributes:
        template: ``""``: the model's own; the name of another that it brings, or of one built in (``chatml``, ``dialogue``,
            ``tools``); a Jinja text; or a `ChatTemplate`, which writes turn by turn.
        system: text of a system turn that opens every conversation without one. A template without system turns gets it in
            front of the first user turn.
        options: further variables of a Jinja template, such as ``{"enable_thinking": False}``.
        today: the date, ISO, that a template sees which asks for the present one: a run does not depend on its day.
        rewrites: what is done where the template would write earlier turns differently once another follows, as those do that
            drop earlier thoughts. ``refuse``: an error that names the first token that differs. ``keep``: what was sampled stays
            as it was sampled; a warning says so once.
        thinking: the tags of the model's thoughts; None: a turn is read as it is.

    Raises:
        ConfigError: no such date, or what a `ChatTemplate` would ignore.
        UnknownNameError: another word for ``rewrites``.

    >>> Chat(system="Answer in one word.", options={"enable_thinking": False}).options["enable_thinking"]
    False
    """

    template: str | ChatTemplate = ""
    system: str = ""
    options: Mapping[str, Any] = field(default_factory=FrozenMap)
    today: str = "2025-01-01"
    rewrites: Rewrites = "refuse"
    thinking: Thinking | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", FrozenMap(self.options))
        if self.rewrites not in get_args(Rewrites):
            raise UnknownNameError("Chat.rewrites", self.rewrites, get_args(Rewrites))
        try:
            date.fromisoformat(self.today)
        except ValueError:
            raise ConfigError(f"Chat.today={self.today!r} is no date; write it as 2025-01-31") from None
        if not isinstance(self.template, str) and (self.options or self.rewrites != "refuse"):
            raise ConfigError(
                "Chat.options and Chat.rewrites are for Jinja templates; a ChatTemplate writes each turn alike, whatever "
                "follows: leave them out"
            )
