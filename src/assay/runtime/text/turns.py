"""Conversations to ids as a model's own Jinja template writes them, around what was sampled."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from assay.core.errors import ConfigError, DataError
from assay.core.task import CALLS, Message
from assay.core.thinking import Thinking
from assay.core.tools import as_dicts, declared_tools, mark_content, named_in, rename_tools, with_words
from assay.runtime.text.jinja import JinjaText
from assay.runtime.text.role_turns import Codec

if TYPE_CHECKING:
    from assay.runtime.text.chat import Chat

__all__ = ["JinjaTurns"]

_MARKS = 0xF0000  # private use: no font, no tokenizer and no template knows these characters
Roles = tuple[str, ...]


class JinjaTurns:
    """Turns as a model's own template writes them.

    A conversation is rendered as text and tokenised whole, as `transformers` does it. Control tokens that stand in a message's
    content are hidden from the template behind private characters, and then written as the plain text that they are: only the
    template's own become control tokens.

    What follows a sampled turn is what the template writes behind that turn when a placeholder stands for it. So what was sampled
    is never tokenised again, and a template that trims or reformats it does not get at it.

    Args:
        text: the compiled template.
        codec: of the tokenizer.
        eos: the end-of-sequence id that the folder names; None for none.
        chat: settings.

    Raises:
        ConfigError: the template leaves out user or assistant turns, or nothing ends a turn.
    """

    def __init__(self, text: JinjaText, codec: Codec, eos: int | None, chat: Chat) -> None:
        self._text, self._codec, self._chat = text, codec, chat
        self._tags = chat.thinking or Thinking()
        self._rendered: set[tuple[Roles, str]] = set()
        self._followed: set[tuple[Roles, tuple[bool, ...], int, str]] = set()
        self._warned = False
        asked, said = _mark(0), _mark(1)
        whole = text(_dicts(("user", "assistant"), (asked, said)), False)
        for role, mark in (("user", asked), ("assistant", said)):
            if mark not in whole:
                raise ConfigError(f"{text.where}: the chat template leaves out {role} turns; name another by Chat(template=...)")
        behind = [i for i in codec.template(whole.partition(said)[2]) if self._marker(i)]
        self._ends = bool(behind)  # or else the template knows no end, and the model says it all the same
        if not behind and eos is None:
            raise ConfigError(
                f"{text.where}: neither does its chat template end an assistant's turn with a token, nor does the tokenizer's "
                "config name an eos_token: answers could not end; add one"
            )
        self.end: int = behind[0] if behind else int(eos or 0)
        self.opener = self._opening_text(asked)
        self._controls, self._pattern = self._find_controls(asked, said)

    def _marker(self, index: int) -> bool:
        """Whether an id is an added token that is no white space."""
        token = self._codec.added.get(index)
        return token is not None and not token.content.isspace()

    def _opening_text(self, asked: str) -> str:
        plain, whole = (self._text(_dicts(("user",), (asked,)), answer) for answer in (False, True))
        same = next((i for i, (a, b) in enumerate(zip(plain, whole, strict=False)) if a != b), min(len(plain), len(whole)))
        return whole[same:]

    def _find_controls(self, asked: str, said: str) -> tuple[frozenset[int], re.Pattern[str]]:
        """Special tokens, and those that the template writes around turns; tags of thoughts are text."""
        written = self._codec.template(self._text(_dicts(("user", "assistant"), (asked, said)), False) + self.opener)
        around = {i for i in written if self._marker(i)}
        tags = (self._tags.open, self._tags.close)
        found = {i: t for i, t in self._codec.added.items() if (t.special or i in around) and t.content not in tags}
        longest = sorted((t.content for t in found.values()), key=len, reverse=True)
        first = "".join(sorted({re.escape(c[0]) for c in longest}))
        return frozenset(found), re.compile(f"(?=[{first}])(?:{'|'.join(map(re.escape, longest))})" if longest else "(?!)")

    @property
    def controls(self) -> frozenset[int]:
        """Ids that only the template may write."""
        return self._controls

    # ---- conversations ---------------------------------------------------------------------------------------------------

    def render(self, messages: Sequence[Message], answer: bool) -> list[int]:
        """A whole conversation.

        Raises:
            DataError: the template refuses it, or leaves a message out.
        """
        if not messages:
            return self._ids(self.opener, {}) if answer else []
        tools, rest = declared_tools(messages, self._text.where)
        if not rest:  # tools are written with what follows them
            return self._ids(self.opener, {}) if answer else []
        told = self._prepare_messages(rest)
        roles = tuple(m.role for m in told)
        if (roles, tools) not in self._rendered:
            marks = [_mark(i) for i in range(len(roles))]
            whole = self._render_text(roles, [mark_content(r, m) for r, m in zip(roles, marks, strict=True)], answer, tools)
            self._check_whole(roles, marks, whole)
            self._check_tools(tools, whole, roles, marks)
            self._rendered.add((roles, tools))
        (*contents, tools), hidden = self._hide([*(m.content for m in told), tools])
        return self._ids(self._render_text(roles, contents, answer, tools), hidden)

    def _render_text(
        self, roles: Sequence[str], contents: Sequence[str], answer: bool, tools: str = "", called: bool = False
    ) -> str:
        """The text of a conversation, tools and calls given as templates take them."""
        needs = "tool" in roles or CALLS in roles
        messages = as_dicts(roles, contents, ids=needs and self._numbered, called=called and self._called)
        return self._text(messages, answer, json.loads(tools) if tools else None)

    @cached_property
    def _numbered(self) -> bool:
        """Whether the template writes a tool's answer only where it has the number of its call."""
        roles, marks = ("user", CALLS, "tool"), (_mark(0), mark_content(CALLS, _mark(1)), _mark(2))
        return not self._takes(roles, marks) and self._takes(roles, marks, ids=True)

    @cached_property
    def _called(self) -> bool:
        """Whether the template lets a tool's answer stand behind calls only, not behind an assistant's text."""
        roles, marks = ("user", "assistant", "tool", "assistant"), [_mark(i) for i in range(4)]
        ids = self._numbered
        return not self._takes(roles, marks, ids=ids) and self._takes(roles, marks, ids=ids, called=True)

    def _takes(self, roles: Roles, contents: Sequence[str], **how: bool) -> bool:
        try:
            self._text(as_dicts(roles, contents, **how), True)
        except DataError:
            return False
        return True

    def follow(self, history: Sequence[Message], messages: Sequence[Message], answer: bool) -> list[int]:
        """The end of the history's last turn, and what comes behind it.

        Raises:
            ConfigError: the template would write what was sampled otherwise, and ``Chat.rewrites`` is ``refuse``.
            DataError: the template refuses the conversation, or leaves a message out.
        """
        if not history or history[-1].role not in ("assistant", CALLS):
            raise DataError("a conversation that is gone on with must end with an assistant's turn")
        tools, whole = declared_tools([*history, *messages], self._text.where)
        told = self._prepare_messages(whole)
        roles, last = tuple(m.role for m in told), len(told) - len(messages) - 1
        if answer:
            self._check_follow(roles, [self._tags.close in m.content for m in told[: last + 1]], last, tools)
        (*contents, tools), hidden = self._hide([*(m.content for m in told), tools])
        said = _free([*contents, tools])
        contents[last] = mark_content(roles[last], said)
        rest = self._render_text(roles, contents, answer, tools, called=True).partition(said)[2]
        if not self._ends and roles[last] == CALLS:
            raise ConfigError(f"{self._text.where}: the chat template ends no turn of calls, so nothing can follow one")
        if not self._ends:
            return [self.end, *self._ids(rest, hidden)]
        return self._ids(rest[rest.index(self._codec.added[self.end].content) :], hidden)

    def calls(self, history: Sequence[Message], message: Message) -> list[int]:
        """The assistant's turn of calls behind a conversation, as the template writes it, with the token that ends it.

        Raises:
            ConfigError: the template begins it otherwise than a turn that it asks for, or does not end it.
            DataError: the template refuses the conversation, or the message holds no calls.
        """
        tools, whole = declared_tools([*history, message], self._text.where)
        told = self._prepare_messages(whole)
        roles = tuple(m.role for m in told)
        (*contents, tools), hidden = self._hide([*(m.content for m in told), tools])
        before = self._render_text(roles[:-1], contents[:-1], True, tools, called=True)
        text, end = self._render_text(roles, contents, False, tools, called=True), self._codec.added[self.end].content
        said, found, _ = text.removeprefix(before).partition(end)
        if not text.startswith(before) or not found or not self._ends:
            what = "begins" if not text.startswith(before) else "does not end"
            raise ConfigError(
                f"{self._text.where}: the chat template {what} a turn of calls as one that it asks for, so a model could not say "
                "it; write the calls into the content, or name another template by Chat(template=...)"
            )
        words, _ = with_words(contents[-1])
        if words.strip() not in said:
            raise ConfigError(
                f"{self._text.where}: the chat template leaves out the text in front of calls, so it would not be learned; leave "
                "it out, or name another template by Chat(template=...)"
            )
        return [*self._ids(said, hidden), self.end]

    def _prepare_messages(self, messages: Sequence[Message]) -> list[Message]:
        """With the system prompt, and in front of the first user turn where the template has no system turns."""
        told = list(messages)
        if self._chat.system and told[0].role != "system":
            told.insert(0, Message("system", self._chat.system))
        if told[0].role != "system" or self.takes_system:
            return told
        if len(told) < 2 or told[1].role != "user":
            raise DataError(
                f"{self._text.where}: the chat template has no system turns, and no user turn follows this one, in front of "
                "which it could stand; leave the system message out"
            )
        return [Message("user", f"{told[0].content}\n\n{told[1].content}"), *told[2:]]

    @cached_property
    def takes_system(self) -> bool:
        """Whether the template writes system turns."""
        marks = [_mark(0), _mark(1)]
        try:
            return marks[0] in self._text(_dicts(("system", "user"), marks), True)
        except DataError:
            return False

    # ---- checks ------------------------------------------------------------------------------------------------------------

    def _check_whole(self, roles: Roles, marks: Sequence[str], text: str) -> None:
        for i, (role, mark) in enumerate(zip(roles, marks, strict=True)):
            if mark not in text:
                raise DataError(
                    f"{self._text.where}: the chat template leaves out messages of role {role!r} (message {i + 1} of "
                    f"{', '.join(roles)}); use a template that writes them, as Chat(template='tools') does"
                )

    def _check_tools(self, tools: str, text: str, roles: Roles, marks: Sequence[str]) -> None:
        """That the template shows the tools that are declared: by their names, and by others that it knows from nowhere."""
        if not tools:
            return
        other, names = rename_tools(tools)
        contents = [mark_content(r, m) for r, m in zip(roles, marks, strict=True)]
        shown = self._render_text(roles, contents, True, other)
        lacking = [own for own, mark in names.items() if own not in text or mark not in shown]
        if lacking:
            why = "writes none" if not self._text.knows_tools else f"leaves out {lacking[0]!r}"
            raise ConfigError(
                f"{self._text.where}: the task declares tools ({', '.join(named_in(tools))}), and the chat template {why}; "
                "name a template that writes them, as Chat(template='tools') does, or describe them in the task's prompt instead "
                "of public['tools']"
            )

    def _check_follow(self, roles: Roles, thoughts: Sequence[bool], last: int, tools: str) -> None:
        """That the template writes what was said so far as it was said, whatever the words."""
        key = (roles, tuple(thoughts), last, tools)
        if key in self._followed:
            return
        marks = [mark_content(role, _mark(i)) for i, role in enumerate(roles)]
        begun = self._tags.thought_start(self.opener)
        for i in range(last + 1):
            if roles[i] == "assistant" and thoughts[i]:
                opened = "" if begun else f"{self._tags.open}\n"
                marks[i] = f"{opened}THOUGHT{i}\n{self._tags.close}\n\n{marks[i]}"
        end = self._codec.added[self.end].content if self.end in self._codec.added else ""
        called = roles[last] == CALLS or (
            self._called and roles[last + 1 : last + 2] == ("tool",)
        )  # then it is not written as the text that it is
        ours = self._render_text(roles[:last], marks[:last], True, tools, called=True) + ("" if called else marks[last] + end)
        whole = self._render_text(roles, marks, True, tools, called=True)
        self._check_whole(roles, [_mark(i) for i in range(len(roles))], whole)
        if not _strip_spaces(whole).startswith(_strip_spaces(ours)):
            self._rewritten(roles[last + 1 :], ours, whole)
        self._followed.add(key)

    def _rewritten(self, behind: Roles, ours: str, whole: str) -> None:
        said = (
            f"{self._text.where}: the chat template writes earlier turns otherwise once {' and '.join(behind) or 'another'} "
            f"follows: {self._first_difference(ours, whole)}"
        )
        if self._chat.rewrites == "refuse":
            raise ConfigError(
                f"{said}. Training would see tokens that nobody sampled; go on from what was sampled by Chat(rewrites='keep'), "
                "or use options or a template that leave earlier turns as they are"
            )
        if not self._warned:
            warnings.warn(f"{said}; what was sampled stays as it was (Chat.rewrites='keep')", stacklevel=2)
            self._warned = True

    def _first_difference(self, ours: str, whole: str) -> str:
        """The first token that differs but for white space; MESSAGE, THOUGHT and their numbers stand for what is said."""
        places = _find_difference(ours, whole)
        found = [self._token_at(text, place) for text, place in zip((ours, whole), places, strict=True)]
        words = [f"{word!r} (id {index})" if index >= 0 else "its end" for _, word, index in found]
        behind = ours[max(0, places[0] - 24) : places[0]]
        return f"token {found[0][0]} is {words[0]} as sampled and {words[1]} as the template writes it, behind {behind!r}"

    def _token_at(self, text: str, place: int) -> tuple[int, str, int]:
        """Position, text and id of the token that holds a character of a text; an id of -1 behind its end."""
        ids = self._codec.template(text)
        at = next((k for k in range(len(ids)) if len(self._codec.text(ids[: k + 1])) > place), len(ids))
        return (at, self._codec.text(ids[at : at + 1]), ids[at]) if at < len(ids) else (at, "", -1)

    # ---- text to ids -------------------------------------------------------------------------------------------------------

    def _hide(self, contents: list[str]) -> tuple[list[str], dict[str, str]]:
        """Contents with each control token behind a private character, and what these characters stand for."""
        if not any(map(self._pattern.search, contents)):
            return contents, {}
        taken = set("".join(contents))
        free = (c for c in map(chr, range(_MARKS, _MARKS + 0xFFFD)) if c not in taken)
        found = dict.fromkeys(token for c in contents for token in self._pattern.findall(c))
        marks = dict(zip(found, free, strict=False))
        return [self._pattern.sub(lambda m: marks[m[0]], c) for c in contents], {mark: token for token, mark in marks.items()}

    def _ids(self, text: str, hidden: Mapping[str, str]) -> list[int]:
        """Ids of a rendered text, in which control tokens are the template's; ``hidden`` ones become text."""
        if not hidden:
            ids = self._codec.template(text)
            if sum(i in self._controls for i in ids) == sum(1 for _ in self._pattern.finditer(text)):
                return ids
        back = str.maketrans(dict(hidden))
        by_text = {self._codec.added[i].content: i for i in self._controls}
        out: list[int] = []
        at, strip = 0, False
        for match in self._pattern.finditer(text):
            token = self._codec.added[by_text[match[0]]]
            part = text[at : match.start()]
            part = part.lstrip() if strip else part
            out += [*self._codec.plain((part.rstrip() if token.lstrip else part).translate(back)), by_text[match[0]]]
            at, strip = match.end(), token.rstrip
        return [*out, *self._codec.plain((text[at:].lstrip() if strip else text[at:]).translate(back))]


def _mark(i: int) -> str:
    return f"MESSAGE{i}TEXT"


def _free(contents: Sequence[str]) -> str:
    """A placeholder that occurs nowhere."""
    number = 0
    while any(f"SAMPLED{number}TURN" in c for c in contents):
        number += 1
    return f"SAMPLED{number}TURN"


def _dicts(roles: Sequence[str], contents: Sequence[str]) -> list[dict[str, str]]:
    return [{"role": role, "content": content} for role, content in zip(roles, contents, strict=True)]


def _find_difference(a: str, b: str) -> tuple[int, int]:
    """Where two texts part, white space aside."""
    i = j = 0
    while True:
        while i < len(a) and a[i].isspace():
            i += 1
        while j < len(b) and b[j].isspace():
            j += 1
        if i >= len(a) or j >= len(b) or a[i] != b[j]:
            return i, j
        i, j = i + 1, j + 1


def _strip_spaces(text: str) -> str:
    """Without white space: templates may trim what they are given; what was sampled stays as it was."""
    return "".join(text.split())
