"""Chat templates of model folders, in Jinja: messages to text, in a sandbox, the same text every day."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date
from importlib.util import find_spec
from typing import Any

from assay.core.errors import ConfigError, DataError, MissingExtraError, UnknownNameError

__all__ = ["JinjaText", "roles_in_jinja", "with_defaults"]

_GIVEN = ("messages", "add_generation_prompt", "tools", "documents", "raise_exception", "strftime_now", "namespace", "range")


class JinjaText:
    """A compiled chat template, with the filters and functions that such templates may use.

    Args:
        source: the template.
        where: its place, for errors.
        tokens: ``bos_token`` and the like, with their text.
        options: further variables.
        today: what ``strftime_now`` tells, ISO.

    Raises:
        ConfigError: no valid Jinja.
        UnknownNameError: an option that the template never reads.
        MissingExtraError: Jinja is not installed.

    >>> text = JinjaText("{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}", "here", {}, {}, "2025-01-01")
    >>> text([{"role": "user", "content": "2+2?"}], True)
    '[user] 2+2?'
    """

    def __init__(self, source: str, where: str, tokens: Mapping[str, str], options: Mapping[str, Any], today: str) -> None:
        if find_spec("jinja2") is None:
            raise MissingExtraError("jinja2", "train")
        from jinja2 import TemplateSyntaxError, meta

        self.where, self.knows_tools = where, False
        environment = _environment(today)
        try:
            read = meta.find_undeclared_variables(environment.parse(source))
            self._template = environment.from_string(source)
        except TemplateSyntaxError as error:
            raise ConfigError(
                f"{where}: the chat template is no valid Jinja (line {error.lineno}: {error.message}); mend it, or name another "
                "by Chat(template=...)"
            ) from error
        self.knows_tools = "tools" in read
        for name in options:
            if name not in read:
                raise UnknownNameError(f"option of the chat template ({where})", name, read - set(_GIVEN) - set(tokens))
        self._variables: dict[str, Any] = {**tokens, "tools": None, "documents": None, **_open(options)}

    def __call__(
        self, messages: Sequence[Mapping[str, Any]], answer: bool, tools: Sequence[Mapping[str, Any]] | None = None
    ) -> str:
        """The text of a conversation, with ``answer`` up to where the assistant begins to speak, and ``tools`` that it declares.

        Raises:
            DataError: the template refuses it, or fails.
        """
        try:
            given = {**self._variables, "tools": [dict(t) for t in tools] if tools else self._variables["tools"]}
            return self._template.render(messages=[dict(m) for m in messages], add_generation_prompt=answer, **given)
        except Exception as error:  # a template may fail in any way
            roles = ", ".join(f"{m['role']}{' (tool_calls)' if 'tool_calls' in m else ''}" for m in messages)
            raise DataError(
                f"{self.where}: the chat template refuses a conversation of {roles}: {error}; give messages that it knows, or "
                "name another template by Chat(template=...)"
            ) from error


def _environment(today: str) -> Any:
    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.parser import Parser
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """The tag around what an assistant says: what is in it is written as it stands."""

        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Parser) -> list[nodes.Node]:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    def refuse(message: str) -> None:
        raise TemplateError(message)

    def now(form: str) -> str:
        return date.fromisoformat(today).strftime(form)

    def tojson(
        value: Any, ensure_ascii: bool = False, indent: int | None = None, separators: Any = None, sort_keys: bool = False
    ) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    made: Any = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    made.filters["tojson"] = tojson
    made.globals |= {"raise_exception": refuse, "strftime_now": now}
    return made


def _open(value: Any) -> Any:
    """Plain dicts and lists, which templates can walk."""
    if isinstance(value, Mapping):
        return {str(k): _open(v) for k, v in value.items()}  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
    return [_open(v) for v in value] if isinstance(value, list | tuple) else value  # pyright: ignore[reportUnknownVariableType]


def roles_in_jinja(roles: Mapping[str, str]) -> str:
    """Turns written role by role, text with ``{content}`` each, as a template of transformers; an assistant's end with the
    end token.

    >>> text = roles_in_jinja({"user": "Q:{content};", "assistant": "A:{content}"})
    >>> JinjaText(text, "here", {"eos_token": "$"}, {}, "2025-01-01")(
    ...     [{"role": "user", "content": "1+1"}, {"role": "assistant", "content": "2"}, {"role": "user", "content": "?"}], True
    ... )
    'Q:1+1;A:2$Q:?;A:'
    """
    cases: list[str] = []
    for role, text in roles.items():
        before, after = text.split("{content}")
        end = " + eos_token" if role == "assistant" else ""
        cases.append(f"if m['role'] == {role!r} %}}{{{{ {before!a} + m['content'] + {after!a}{end} }}}}")
    refuse = "{% else %}{{ raise_exception('no template for the role ' + m['role']) }}{% endif %}"
    opener = ascii(roles["assistant"].split("{content}")[0])
    turns = "{% for m in messages %}{% " + "{% el".join(cases) + refuse + "{% endfor %}"
    return turns + "{% if add_generation_prompt %}{{ " + opener + " }}{% endif %}"


def with_defaults(source: str, system: str, options: Mapping[str, Any], apart: bool = True) -> str:
    """A template that takes a system prompt and options where a caller gives none.

    Args:
        source: the template.
        system: the prompt; empty for none.
        options: variables with their values.
        apart: whether the prompt is a turn of its own; or else it opens the first user turn.

    >>> text = with_defaults("{{ messages[0].content }} {{ deep }}", "Be brief.", {"deep": True})
    >>> JinjaText(text, "here", {}, {}, "2025-01-01")([{"role": "user", "content": "?"}], True)
    'Be brief. True'
    """
    joined = f"[{{'role': 'user', 'content': {system!a} + '\\n\\n' + messages[0]['content']}}] + messages[1:]"
    opening = f"[{{'role': 'system', 'content': {system!a}}}] + messages" if apart else joined
    found = f"{{% if messages[0]['role'] != 'system' %}}{{% set messages = {opening} %}}{{% endif %}}" if system else ""
    for name, value in options.items():
        found += f"{{% if {name} is not defined %}}{{% set {name} = {_literal(value)} %}}{{% endif %}}"
    return found + source


def _literal(value: Any) -> str:
    """A value as Jinja writes it."""
    if isinstance(value, Mapping):
        pairs = (f"{str(k)!a}: {_literal(v)}" for k, v in value.items())  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_literal, value)) + "]"  # pyright: ignore[reportUnknownArgumentType]
    return ascii(value)
