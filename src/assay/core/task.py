"""What is posed: a `Task` with its three privacy levels, and the `Context` in which a policy meets it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from assay.core.canon import FrozenMap, digest, plain
from assay.core.errors import DataError
from assay.core.import_path import filed_as
from assay.core.media import PLACEHOLDER, Media
from assay.core.util.renamed import RenamedMembers

__all__ = ["CALLS", "TOOLS", "Context", "Message", "Prefill", "Task", "TaskView", "media_in", "question_text"]

TOOLS, CALLS = "tools", "tool_calls"
"""Roles of messages that hold JSON: a declaration of tools, an assistant's calls."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation: ``role`` (system, user, assistant, tool) and its text.

    Two further roles hold JSON, for chat templates that write it in their model's own form: ``tools``, in front of everything,
    declares tools by a list of ``{"name", "description", "parameters"}``; ``tool_calls`` is an assistant's turn of calls, a list
    of ``{"name", "arguments"}``, or an object with such a list as ``tool_calls`` and the ``content`` in front of it.

    Attributes:
        role, content: as above.
        media: pictures that it shows, in the order of the `PLACEHOLDER` in the text that stand for them.

    Raises:
        DataError: there are pictures, and not as many placeholders.
    """

    role: str
    content: str
    media: tuple[Media, ...] = ()

    def __repr__(self) -> str:
        shown = f", media={self.media!r}" if self.media else ""
        return f"Message(role={self.role!r}, content={self.content!r}{shown})"

    def __post_init__(self) -> None:
        if self.media and self.content.count(PLACEHOLDER) != len(self.media):
            raise DataError(
                f"a message of {len(self.media)} pictures has {self.content.count(PLACEHOLDER)} times {PLACEHOLDER!r} in its "
                f"text {self.content[:80]!r}; write it where each of them stands"
            )


def media_in(messages: Iterable[Message]) -> tuple[Media, ...]:
    """The pictures of some messages, in order."""
    return tuple([m for message in messages for m in message.media])


def question_text(messages: Iterable[Message]) -> list[str]:
    """What a conversation asks: the texts of all turns but the system's and the assistant's; declared tools are no text.

    >>> question_text([Message("tools", '[{"name": "add"}]'), Message("system", "Be kind."), Message("user", "1+1?")])
    ['1+1?']
    """
    return [m.content for m in messages if m.role not in ("system", "assistant", TOOLS, CALLS)]


def _name_media(media: Iterable[Any]) -> tuple[Media, ...]:
    return tuple(Media(m["kind"], m["digest"], tuple(m["size"])) for m in media)


@filed_as("assay.core.task:World")
@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """What environments, tools and context managers may see of a task: no answer, no tests, no rubric."""

    id: str
    domain: str
    arm: str
    level: int
    split: str
    index: int
    public: FrozenMap
    world: FrozenMap

    @property
    def messages(self) -> tuple[Message, ...]:
        """The opening conversation: ``public["messages"]``, or ``public["prompt"]`` as one user turn; in front of it
        ``public["tools"]``, schemas of tools, where the task declares some. A message may have ``media``, a list of tables
        with the fields of `Media`.
        """
        told = self.public.get("tools")  # in the order in which they were written: so models were taught to read them
        tools = (Message(TOOLS, json.dumps(plain(told), ensure_ascii=False)),) if told else ()
        if "messages" in self.public:
            return (*tools, *(Message(m["role"], m["content"], _name_media(m.get("media", ()))) for m in self.public["messages"]))
        return (*tools, Message("user", self.public["prompt"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(RenamedMembers):
    """One problem whose answer a program can check.

    Attributes:
        id: unique name, stable across processes.
        domain, arm: coarse and fine category; a curriculum chooses the arm.
        level: difficulty, an integer that grows.
        split: ``"train"`` or ``"test"``, decided by a hash of the `question`.
        index: position in the source's stream for (arm, level, split).
        public: what the policy may see; has ``"prompt"`` (text) or ``"messages"``, ``"facts"`` where one question may be put
            in several wordings, and ``"tools"``, a list of schemas, where the chat template is to show tools.
        world: what environment and tools may use besides.
        private: what only scorers may see: answer, tests, rubric, solution.

    >>> t = Task(id="a", domain="d", arm="x", level=1, split="train", index=0,
    ...          public=FrozenMap({"prompt": "1+1="}), private=FrozenMap({"answer": "2"}))
    >>> hasattr(t.public_view(), "private"), t.public_view().messages[0].content
    (False, '1+1=')
    """

    renamed_members: ClassVar[Mapping[str, str]] = {"exposed": "public_view"}

    id: str
    domain: str
    arm: str
    level: int
    split: str
    index: int
    public: FrozenMap
    world: FrozenMap = field(default_factory=FrozenMap)
    private: FrozenMap = field(default_factory=FrozenMap)

    def __post_init__(self) -> None:
        if "prompt" not in self.public and "messages" not in self.public:
            raise DataError(f"task {self.id!r}: public has neither 'prompt' nor 'messages': {sorted(self.public)}")

    def public_view(self) -> TaskView:
        """The task without its private part."""
        return TaskView(
            id=self.id,
            domain=self.domain,
            arm=self.arm,
            level=self.level,
            split=self.split,
            index=self.index,
            public=self.public,
            world=self.world,
        )

    @property
    def question(self) -> FrozenMap:
        """What is asked, whatever the words: ``public["facts"]``, or all of the public part where there are none."""
        return self.public.get("facts", self.public)

    @property
    def content(self) -> str:
        """Digest of the `question`: two tasks with the same content are the same question."""
        return digest(self.question)


@dataclass(frozen=True, slots=True)
class Prefill:
    """Forced first tokens of the answer: the first ``share`` of the tokens of ``text``, rounded down.

    The cut is made on token ids by the sampler, so it never creates a token that the tokenizer would not.
    """

    text: str
    share: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.share <= 1.0:
            raise DataError(f"Prefill.share must be in [0, 1], got {self.share}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A start state of generation, posed from a task.

    Attributes:
        key: unique in the run; rollout ids and their seeds derive from it.
        group: the key within which rollouts share a baseline.
        task: the task view.
        messages: the conversation shown to the policy.
        prefill: forced answer prefix, never trained.
        snapshot: environment state to start from, as the environment itself wrote it.
        score_messages: learn under this conversation instead of the sampled one; None for the same.
        privileged: the conversation behind which a teacher reads what was sampled, with more than the policy was shown (a
            solution, feedback); never sampled or learned under. None for none.
        tag: ``plain``, ``prefix``, ``hint``, ``retry``, ...
        max_turns: assistant turns of a rollout at most, where that is fewer than the sampler's; None for the sampler's. What goes
            on beyond them is cut off (stop ``length``).
    """

    key: str
    group: str
    task: TaskView
    messages: tuple[Message, ...]
    prefill: Prefill | None = None
    snapshot: Any = None
    score_messages: tuple[Message, ...] | None = None
    privileged: tuple[Message, ...] | None = None
    tag: str = "plain"
    max_turns: int | None = None
