"""``assay chat``: a conversation with a run's or folder's model in the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from assay.cli.asked_model import RecordedRun, check_model, sampling_of
from assay.cli.options import parse
from assay.cli.output import busy, note
from assay.core.errors import AssayError, ConfigError, DataError, UnknownNameError
from assay.core.rollout import Sampling, Stop
from assay.core.seeds import derive
from assay.core.task import Message

if TYPE_CHECKING:
    from assay.core.rollout import Completion, Ids
    from assay.publish.service.text_generator import TextGenerator

__all__ = ["chat_command"]

_MOST = 512
"""Tokens of an answer, where neither the person nor the run says."""

_CONTROLS = dict.fromkeys(c for c in range(32) if chr(c) not in "\n\t") | dict.fromkeys(range(127, 160))
"""Characters of an answer that could steer a terminal; left out there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """Talks with a model: answers as they are sampled. Ctrl-C stops an answer, at the prompt it quits; Ctrl-D quits.
    Commands are /reset, /system TEXT, /temperature X, /undo, /save FILE and /help. Lines from a pipe are turns, too.

    Attributes:
        model: a run folder, a model folder in Hugging Face format, or a name on the hub.
        system: text of a system turn that opens the conversation.
        temperature: 0 takes the most likely token; the run's own, else 1, when not given.
        top_p: draw from the fewest most likely tokens that have this much probability; the run's own, else 1, when not given.
        top_k: draw from so many most likely tokens, 0 for all; the run's own, else 0, when not given.
        min_p: leave out tokens less likely than this share of the most likely one; the run's own, else 0, when not given.
        max_new_tokens: most tokens in an answer; the run's own, else 512, when not given.
        seed: seed of the sampling noise.
    """

    model: Path = field(metadata={"positional": True, "arg": {"metavar": "RUN_OR_FOLDER"}})
    system: str = field(default="", metadata={"arg": {"metavar": "TEXT"}})
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    max_new_tokens: int | None = None
    seed: int = 0


def chat_command(args: list[str]) -> int:
    """``assay chat RUN_OR_FOLDER``."""
    own = parse(ChatOptions, args, "assay chat")
    check_model(own.model)
    base = Sampling(max_new_tokens=_MOST)
    sampling = sampling_of(RecordedRun.of(own.model), own, base) or base
    from assay.publish.service.text_generator import TextGenerator

    with busy(f"loading {own.model}"):
        model = TextGenerator(own.model)
    with model:
        talk = Conversation(model, sampling, own.seed)
        if not model.chats:
            note(f"{own.model} has no chat template: it goes on with your text, and with its own")
        if own.system:
            talk.set_system(own.system)
        failed = _converse(talk, sys.stdin.isatty())
    return 1 if failed and not sys.stdin.isatty() else 0


def _converse(talk: Conversation, terminal: bool) -> int:
    """Turns until the input ends; how many of them failed."""
    if terminal:
        with suppress(ImportError):
            import readline  # noqa: F401  # pyright: ignore[reportUnusedImport] -- input() edits lines with it
        note("Ctrl-C stops an answer, Ctrl-D quits; /help lists commands")
    failed = 0
    while True:
        try:
            line = input(">>> " if terminal else "")
        except EOFError:
            if terminal:
                print()
            return failed
        except UnicodeDecodeError as error:
            raise DataError(f"the input is no UTF-8 text: {error}") from None
        if not line.strip():
            continue
        try:
            _turn(talk, line, terminal)
        except (AssayError, OSError) as error:
            failed += 1
            note(f"assay: {error}")


def _turn(talk: Conversation, line: str, terminal: bool) -> None:
    if line.startswith("/") and not line.startswith("//"):
        talk.command(line)
        return

    def show(piece: str) -> None:
        print(piece.translate(_CONTROLS) if terminal else piece, end="", flush=True)

    talk.ask(line.removeprefix("/") if line.startswith("//") else line, show)
    print(flush=True)
    if talk.trouble:
        note(talk.trouble)


class Conversation:
    """A conversation and how its answers are drawn.

    Args:
        model: answers.
        sampling: how to draw.
        seed: of the noise; each answer has another.

    Attributes:
        turns: what was asked and answered, in order.
        trouble: what there is to say of the last answer; empty for nothing.
    """

    def __init__(self, model: TextGenerator, sampling: Sampling, seed: int) -> None:
        self._model, self._sampling, self._seed = model, sampling, seed
        self._system = ""
        self._asked = 0
        self.turns: list[tuple[str, str]] = []
        self.trouble = ""

    def ask(self, text: str, show: Callable[[str], None]) -> None:
        """Answers a turn. An answer that Ctrl-C stops stays in the conversation as far as it came.

        Args:
            text: of the turn.
            show: called with the answer's text as it is sampled.

        Raises:
            ConfigError: no room is left in the context.
            ConfigError, DataError: the chat template cannot write the conversation, or the tokenizer lacks a character.
            EngineError: generation failed.
        """
        prompt = self._prompt(text)
        room = self._model.context - len(prompt)
        if room < 1:
            raise ConfigError(
                f"the conversation has {len(prompt)} tokens, the model's context {self._model.context}: go back by /undo, or "
                "begin afresh by /reset"
            )
        sampling = replace(self._sampling, max_new_tokens=min(room, self._sampling.max_new_tokens))
        self._asked += 1
        said = list[str]()
        with closing(self._model.stream(prompt, sampling, derive("chat", self._seed, "", self._asked - 1))) as pieces:
            try:
                while True:
                    said.append(next(pieces))
                    show(said[-1])
            except StopIteration as end:
                self.trouble = self._cut(end.value, room)
            except KeyboardInterrupt:
                self.trouble = "stopped"
        self.turns.append((text, "".join(said)))

    def _cut(self, completion: Completion, room: int) -> str:
        if completion.stop is not Stop.LENGTH:
            return ""
        if len(completion.ids) == room:
            return f"cut off: the context of {self._model.context} tokens is full; /undo or /reset"
        return f"cut off at {len(completion.ids)} tokens: raise --max-new-tokens"

    def command(self, line: str) -> None:
        """Carries out a command.

        Raises:
            UnknownNameError: there is none of this name.
            ConfigError: a value that cannot be.
            OSError: a file that cannot be written.
        """
        name, _, rest = line[1:].partition(" ")
        known: dict[str, Callable[[str], None]] = {
            "reset": self._reset,
            "system": self.set_system,
            "temperature": self._set_temperature,
            "undo": self._undo,
            "save": self._save,
            "help": self._help,
        }
        if name not in known:
            raise UnknownNameError("command of a chat", name, known)
        known[name](rest.strip())

    def set_system(self, text: str) -> None:
        """Begins afresh behind a system turn; without text, without one."""
        if text and not self._model.chats:
            raise ConfigError("this model has no chat template, so there are no system turns: write it at the start of your text")
        if text:
            self._model.chat_prompt([Message("system", text), Message("user", "")])
        self._system, self.turns = text, []

    def messages(self) -> list[Message]:
        """All turns so far."""
        system = [Message("system", self._system)] if self._system else []
        both = [m for user, said in self.turns for m in (Message("user", user), Message("assistant", said))]
        return [*system, *both]

    def text(self) -> str:
        """All text so far, as a model without a chat template reads it."""
        return "\n".join(user + said for user, said in self.turns)

    def _prompt(self, text: str) -> Ids:
        if self._model.chats:
            return self._model.chat_prompt([*self.messages(), Message("user", text)])
        return self._model.text_prompt("\n".join([self.text(), text]) if self.turns else text)

    def _reset(self, rest: str) -> None:
        self.turns = []
        note("the conversation begins afresh")

    def _set_temperature(self, rest: str) -> None:
        try:
            self._sampling = replace(self._sampling, temperature=float(rest))
        except (ValueError, DataError):
            raise ConfigError(f"/temperature {rest}: give a number of at least 0, 0 for the most likely answer") from None

    def _undo(self, rest: str) -> None:
        if not self.turns:
            raise ConfigError("/undo: nothing was said yet")
        asked, _ = self.turns.pop()
        note(f"took back {asked!r} and its answer")

    def _save(self, rest: str) -> None:
        if not rest:
            raise ConfigError("/save: name a file; what was said is written into it")
        told = [{"role": m.role, "content": m.content} for m in self.messages()]
        whole = json.dumps({"messages": told}, ensure_ascii=False) if self._model.chats else self.text()
        try:
            with open(rest, "x", encoding="utf-8") as file:
                file.write(whole + "\n")
        except FileExistsError:
            raise ConfigError(f"/save: {rest} exists; name another file") from None
        note(f"wrote {len(self.turns)} turns into {rest}")

    def _help(self, rest: str) -> None:
        note(
            "/reset            begin afresh\n"
            "/system TEXT      begin afresh behind a system turn; without TEXT, without one\n"
            "/temperature X    draw answers at temperature X; 0 takes the most likely token\n"
            "/undo             take back the last turn and its answer\n"
            "/save FILE        write the conversation as a line of JSON, {'messages': [...]}; as text without a chat template\n"
            "//...             a turn that begins with a slash"
        )
