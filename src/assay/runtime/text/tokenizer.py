"""Text to ids and back, over Hugging Face's `tokenizers`; conversations to ids through chat templates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, cast

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

from assay.core.canon import digest
from assay.core.config import from_dict, to_dict
from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.rollout import Ids, ids_of
from assay.core.task import CALLS, Message
from assay.core.thinking import Thinking
from assay.runtime.text.chat import BUILT_IN, Chat
from assay.runtime.text.jinja import JinjaText, roles_in_jinja, with_defaults
from assay.runtime.text.role_turns import BareTurns, Codec, RoleTurns, TurnWriter
from assay.runtime.text.special_tokens import special_tokens_of
from assay.runtime.text.turns import JinjaTurns

__all__ = ["ChatTemplate", "HubTokenizer", "char_tokenizer"]

TOKENIZER_FILE = "tokenizer.json"
CONFIG_FILE = "tokenizer_config.json"
TEMPLATE_FIELD, CHAT_FIELD = "assay_template", "assay_chat"
TEMPLATE_FILE, TEMPLATE_FOLDER, GENERATION_FILE = "chat_template.jinja", "additional_chat_templates", "generation_config.json"
PAD, EOS = "<pad>", "<eos>"
_ANY_CHARACTER = r"[\s\S]"
_CACHED_TEXTS = 4096
_CACHED_LENGTH = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTemplate:
    r"""How a turn of each role is written: text with ``{content}`` exactly once.

    An assistant turn is followed by the end-of-sequence id. Only the text around ``{content}`` may hold special tokens: content
    is always read as plain text.

    >>> ChatTemplate(user="Q:{content}\n", assistant="A:{content}").parts("assistant")
    ('A:', '')
    """

    user: str = "{content}"
    assistant: str = "{content}"
    tool: str = "{content}"
    system: str = "{content}"

    def __post_init__(self) -> None:
        for field in fields(self):
            text: str = getattr(self, field.name)
            if text.count("{content}") != 1:
                raise ConfigError(f"ChatTemplate.{field.name}={text!r} must hold '{{content}}' exactly once")

    def parts(self, role: str) -> tuple[str, str]:
        """Text before and after the content of a role's turn; DataError for an unknown role."""
        names = [f.name for f in fields(self)]
        if role not in names:
            raise DataError(f"message role {role!r} has no template; roles are {', '.join(names)}")
        before, after = getattr(self, role).split("{content}")
        return before, after


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderChatSettings:
    """What a tokenizer's folder says of conversations.

    Attributes:
        where: the folder.
        templates: its chat templates by name, ``default`` the one that is taken.
        ends: further ids that end an answer.
    """

    where: str
    templates: Mapping[str, str]
    ends: tuple[int, ...] = ()


class HubTokenizer:
    """A `tokenizers.Tokenizer` that never reads special tokens out of text, and adds its own only in front of a whole prompt.

    Args:
        tokenizer: the wrapped one.
        eos: id that ends an answer; None leaves it to the chat template.
        template: how turns are written; None: as the folder's own template does, where it comes from one.
        config: further fields of ``tokenizer_config.json``, kept when saved.
        chat: how the model is talked to; a template that it names comes before ``template``.
        brought: what the folder says; None for a tokenizer that comes from none.
        rows: rows of the model's embedding; ids from the tokenizer's size to there are padding and decode to nothing.

    Raises:
        ConfigError: ``eos`` is no id, or the template holds a character that the tokenizer lacks, or is no template.
        UnknownNameError: ``chat`` names a template that is not there, or an option that it does not read.

    >>> t = char_tokenizer("0123456789S>", ChatTemplate())
    >>> t.encode("S21>").tolist(), t.decode([12, 4, 1]), t.eos
    ([12, 4, 3, 13], 'S2', 1)
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        eos: int | None,
        template: ChatTemplate | None = None,
        config: dict[str, Any] | None = None,
        chat: Chat | None = None,
        brought: FolderChatSettings | None = None,
        rows: int | None = None,
    ) -> None:
        self._tokenizer = self._reads = tokenizer
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._named_eos, self._brought, self._rows = eos, brought, rows
        self.chat = chat or Chat()
        self._config: dict[str, Any] = dict(config or {})
        self._size = _size(tokenizer)
        if eos is not None and not 0 <= eos < self._size:
            raise ConfigError(f"HubTokenizer: eos={eos} is no id of a tokenizer with {self._size} ids")
        self._added = special_tokens_of(tokenizer)
        self._special = frozenset(i for i, t in tokenizer.get_added_tokens_decoder().items() if t.special)
        self._chars, self._texts = _char_tables(tokenizer, self._special, self._size)
        if self._texts is not None:
            self._texts += [""] * ((rows or 0) - self._size)  # rows of the head that no id of the tokenizer uses mean no text
        self._cache: dict[str, Ids] = {}
        self.template = template
        self._turns = self._turn_writer()
        self._eos = self._turns.end
        if isinstance(self._turns, JinjaTurns):
            self._reads = _reading(tokenizer, self._special, self._turns.controls)
        self._cache.clear()

    def _turn_writer(self) -> TurnWriter:
        """What writes conversations."""
        chat, where = self.chat, self._brought.where if self._brought else "the tokenizer"
        added = self._tokenizer.get_added_tokens_decoder()
        codec = Codec(lambda text: self.encode(text).tolist(), self._encode_template, added, self._whole_text, self._added)
        if isinstance(chat.template, ChatTemplate):
            self.template = chat.template
        source = self._source()
        if source is not None:
            self.template = None
            tokens = {n: t for n, v in self._special_tokens().items() if n.endswith("_token") and v and (t := _token_text(v))}
            text = JinjaText(source, where, tokens, chat.options, chat.today)
            return JinjaTurns(text, codec, self._named_eos, chat)
        if self._named_eos is None:
            raise DataError(
                f"{where} names no usable eos_token, and brings no chat template that would show how an answer ends; add one to "
                f"its {CONFIG_FILE}, answers could not end without it"
            )
        if self.template is None and self._brought is not None:
            return BareTurns(ChatTemplate(), codec, self._named_eos, where, chat.system)
        self.template = self.template or ChatTemplate()
        if chat.options or chat.rewrites != "refuse":
            what = "Chat.options and Chat.rewrites are for Jinja templates, and this tokenizer has none"
            raise ConfigError(f"{what}: leave them out (on the command line: --model.chat.kind none)")
        return RoleTurns(self.template, codec, self._named_eos, chat.system)

    def _special_tokens(self) -> dict[str, Any]:
        """The config with the names that `save` writes into it: a template is given the same before and after."""
        config = dict(self._config)
        if self._named_eos is not None:
            config["eos_token"] = _token(self._tokenizer, self._named_eos)
        if self._tokenizer.token_to_id(PAD) is not None:
            config.setdefault("pad_token", PAD)
        return config

    def _source(self) -> str | None:
        """The Jinja text to write by; None without one."""
        own: Mapping[str, str] = self._brought.templates if self._brought else {}
        wanted = self.chat.template
        if (self.template is not None and not wanted) or not isinstance(wanted, str):
            return None
        if not wanted:
            return own.get("default")
        if "{" in wanted:
            return wanted
        found = own.get(wanted, BUILT_IN.get(wanted))
        if found is None:
            raise UnknownNameError("Chat.template", wanted, {*own, *BUILT_IN})
        if wanted == "chatml" and wanted not in own and self._tokenizer.token_to_id("<|im_end|>") is None:
            raise ConfigError("Chat.template='chatml': the tokenizer has no token '<|im_end|>'; use 'dialogue', which needs none")
        return found if wanted in own else self._prepend_special(found)

    def _prepend_special(self, source: str) -> str:
        """A Jinja text that begins with the special tokens that stand in front of plain text."""
        begin = self._added.before_text
        return f"{{{{ {begin!a} }}}}{source}" if begin else source

    def with_chat(self, chat: Chat) -> HubTokenizer:
        """The same tokenizer, its model talked to otherwise."""
        template = None if isinstance(chat.template, ChatTemplate) else self.template
        return HubTokenizer(
            self._tokenizer,
            eos=self._named_eos,
            template=template,
            config=self._config,
            chat=chat,
            brought=self._brought,
            rows=self._rows,
        )

    def _encode_template(self, text: str) -> list[int]:
        if self._chars is None or any(_token(self._tokenizer, i) in text for i in self._special):
            self._tokenizer.encode_special_tokens = False
            return list(self._tokenizer.encode(text, add_special_tokens=False).ids)
        return self.encode(text).tolist()

    def _whole_text(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(list(ids), skip_special_tokens=False)

    @property
    def size(self) -> int:
        """Number of ids, special ones included."""
        return self._size

    @property
    def eos(self) -> int:
        """Id that ends an answer: as the chat template ends it, or as the folder says."""
        return self._eos

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """Ids that end an answer: `eos`, and those that the folder names besides."""
        named = (self._named_eos,) if self._named_eos is not None else ()
        return tuple(dict.fromkeys((self._eos, *named, *(self._brought.ends if self._brought else ()))))

    @property
    def thinking(self) -> Thinking | None:
        """The tags of the model's thoughts; None where answers are read as they are."""
        return self.chat.thinking

    @property
    def opener(self) -> str:
        """What is written before the assistant's words."""
        return self._turns.opener

    @property
    def jinja(self) -> str | None:
        """How conversations are written, as a template that transformers reads, with system prompt and options as its
        defaults; None where text is written bare.
        """
        source = self._source()
        if source is None:
            if isinstance(self._turns, BareTurns) or self.template is None:
                return None
            source = roles_in_jinja(asdict(self.template))
            source = self._prepend_special(source) if isinstance(self._turns, RoleTurns) and self._turns.begin else source
        apart = not isinstance(self._turns, JinjaTurns) or self._turns.takes_system
        return with_defaults(source, self.chat.system, self.chat.options, apart)

    @property
    def bos_ids(self) -> Ids:
        """Special ids that the tokenizer puts in front of plain text, one BOS or none in most families: a prompt without a chat
        template begins with them, as with ``tokenizer(text)`` of transformers.
        """
        return ids_of(self._added.before)

    @property
    def bos(self) -> int | None:
        """Id of ``bos_token``, where the tokenizer's config names one."""
        token = _token_text(self._config.get("bos_token"))
        return None if token is None else self._tokenizer.token_to_id(token)

    @property
    def pad(self) -> int | None:
        """Id for padding, where the tokenizer names one; assay itself never pads."""
        token = _token_text(self._config.get("pad_token", PAD))
        return None if token is None else self._tokenizer.token_to_id(token)

    @property
    def digest(self) -> str:
        """Digest of its table from text to id: tokenizers with one digest mean the same by an id."""
        return digest(self._tokenizer.get_vocab(with_added_tokens=True))

    @property
    def backend(self) -> Tokenizer:
        """The wrapped tokenizer."""
        return self._tokenizer

    def encode(self, text: str) -> Ids:
        """Ids of a piece of plain text, without `bos_ids`: what stands inside a prompt, or an answer.

        Raises:
            DataError: a character tokenizer's alphabet lacks a character; names it and its position.
        """
        found = self._cache.get(text)
        if found is not None:
            return found
        ids = self._encode(text)
        if len(text) <= _CACHED_LENGTH:
            if len(self._cache) >= _CACHED_TEXTS:
                self._cache.clear()
            self._cache[text] = ids
        return ids

    def _encode(self, text: str) -> Ids:
        if self._chars is None:
            self._reads.encode_special_tokens = True
            return ids_of(self._reads.encode(text, add_special_tokens=False).ids)
        chars = self._chars
        try:
            return ids_of([chars[c] for c in text])
        except KeyError:
            position = next(i for i, c in enumerate(text) if c not in chars)
            raise DataError(
                f"the tokenizer's alphabet lacks {text[position]!r} (position {position} of {_short(text)}); "
                f"it has {_short(''.join(chars))}"
            ) from None

    def decode(self, ids: Sequence[int] | Ids) -> str:
        """Text of ids, special ones left out.

        Raises:
            DataError: an id that the tokenizer does not have.
        """
        values: list[int] = ids.tolist() if isinstance(ids, np.ndarray) else [int(i) for i in ids]
        try:
            if min(values, default=0) < 0:
                raise IndexError
            texts = self._texts
            if texts is not None:
                return "".join([texts[i] for i in values])
            if max(values, default=0) >= self._size:
                if max(values) >= (self._rows or 0):
                    raise IndexError
                values = [i for i in values if i < self._size]
        except IndexError:
            wrong = next(i for i in values if not 0 <= i < max(self._size, self._rows or 0))
            raise DataError(f"cannot decode id {wrong}: the tokenizer has ids 0 to {self._size - 1}") from None
        return self._reads.decode(values, skip_special_tokens=True)

    def render(self, messages: Sequence[Message], answer: bool = True) -> Ids:
        """Ids of whole turns in order; with ``answer``, also what stands before the assistant's words.

        With a `ChatTemplate` a rendered conversation is always a prefix of the same conversation with more turns. A model's own
        template may write earlier turns otherwise once more follow: `follow` goes on from what was sampled.

        Raises:
            DataError: a role that the template does not write, a conversation that it refuses, or a character that the alphabet
                lacks.
            ConfigError: there is no chat template, and the conversation is more than one user turn and its answer.

        >>> from assay.core import Message
        >>> t = char_tokenizer("0123456789=", ChatTemplate(user="{content}="))
        >>> t.render([Message("user", "12"), Message("assistant", "7")]).tolist()
        [3, 4, 12, 9, 1]
        """
        return ids_of(self._turns.render(messages, answer))

    def follow(self, history: Sequence[Message], messages: Sequence[Message], answer: bool = True) -> Ids:
        """Ids of messages behind a conversation whose last turn was sampled, ``[eos, ...]``.

        Args:
            history: the conversation so far, an assistant's turn last.
            messages: what comes behind it.
            answer: also what stands before the assistant's next words.

        Raises:
            ConfigError: the template would write what was sampled otherwise now; names the first token that differs.
            DataError: as `render`.

        >>> from assay.core import Message
        >>> t = char_tokenizer("0123456789=", ChatTemplate(tool="{content}="))
        >>> t.follow([Message("user", "12"), Message("assistant", "7")], [Message("tool", "9")]).tolist()
        [1, 11, 12]
        """
        return ids_of(self._turns.follow(history, messages, answer))

    def render_turn(self, history: Sequence[Message], message: Message) -> Ids:
        """Ids of an assistant's turn behind a conversation, with the token that ends it: what a model would sample to say it.

        A turn of calls (role ``tool_calls``) is written by the chat template; a text is encoded by itself.

        Raises:
            ConfigError: the template writes no calls, or begins turns of calls otherwise than turns that it asks for.
            DataError: as `render`.

        >>> from assay.core import Message
        >>> t = char_tokenizer("0123456789=", ChatTemplate(user="{content}="))
        >>> t.render_turn([Message("user", "12")], Message("assistant", "7")).tolist()
        [9, 1]
        """
        if message.role != CALLS:
            return ids_of([*self.encode(message.content), self.eos])
        return ids_of(self._turns.calls(history, message))

    def save(self, folder: Path) -> None:
        """Writes ``tokenizer.json`` and ``tokenizer_config.json`` as `transformers.AutoTokenizer` reads them."""
        self._tokenizer.encode_special_tokens = False
        (folder / TOKENIZER_FILE).write_text(self._tokenizer.to_str(pretty=True), encoding="utf-8")
        defaults = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
        config = {**defaults, **self._special_tokens()}
        if self.template is not None:
            config[TEMPLATE_FIELD] = asdict(self.template)
        if self.chat != Chat():
            config[CHAT_FIELD] = to_dict(self.chat)
        if self._brought is not None and self._brought.templates:
            config["chat_template"] = _one_or_all(self._brought.templates)
        text = json.dumps(config, indent=2, ensure_ascii=False, sort_keys=True)
        (folder / CONFIG_FILE).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path, eos: int | None = None, rows: int | None = None) -> HubTokenizer:
        """Reads a tokenizer as `save` or transformers wrote it, with its chat templates.

        Args:
            folder: holds ``tokenizer.json`` and, if there are any, ``tokenizer_config.json``, ``chat_template.jinja`` and
                ``generation_config.json``.
            eos: used where the config names no ``eos_token``.
            rows: rows of the model's embedding.

        Raises:
            DataError: a file is missing or damaged, or nothing says how an answer ends.
            ConfigError: a tokenizer with more ids than the model has rows, or a chat template that is no Jinja.
        """
        path = folder / TOKENIZER_FILE
        if not path.is_file():
            raise DataError(
                f"{folder} has no {TOKENIZER_FILE}; save the tokenizer there with save_pretrained (fast tokenizers only)"
            )
        try:
            tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
        except Exception as error:  # the library raises bare Exception
            raise DataError(f"{path} is no readable tokenizer ({error}); copy it again from its source") from error
        size = _size(tokenizer)
        if rows is not None and size > rows:
            raise ConfigError(
                f"{path} has {size} ids, but the weights embed {rows}: it is another model's tokenizer; copy the one that came "
                "with these weights"
            )
        config = _read_config(folder / CONFIG_FILE)
        token = _token_text(config.get("eos_token"))
        end: int | None = tokenizer.token_to_id(token) if token is not None else eos
        if end is not None and not 0 <= end < size:
            raise ConfigError(
                f"{folder} names {end} as the id that ends an answer (eos_token_id of config.json), but {path} has ids 0 to "
                f"{size - 1}: it is another model's tokenizer; copy the one that came with these weights"
            )
        template, chat = config.pop(TEMPLATE_FIELD, None), config.pop(CHAT_FIELD, None)
        brought = FolderChatSettings(where=str(folder), templates=_templates(folder, config), ends=_ends(folder, size))
        return cls(
            tokenizer,
            eos=end,
            template=ChatTemplate(**template) if template else None,
            config=config,
            chat=from_dict(Chat, chat) if chat else None,
            brought=brought,
            rows=rows,
        )


def char_tokenizer(alphabet: str, template: ChatTemplate | None = None) -> HubTokenizer:
    """One id per character: 0 is ``<pad>``, 1 is ``<eos>``, then the alphabet in order.

    Raises:
        ConfigError: an empty alphabet, a character given twice, or a template with characters outside it.

    >>> char_tokenizer("ab").size
    4
    """
    if not alphabet:
        raise ConfigError("char_tokenizer: the alphabet is empty; name at least one character")
    twice = sorted({c for c in alphabet if alphabet.count(c) > 1})
    if twice:
        raise ConfigError(f"char_tokenizer: the alphabet holds {twice[0]!r} more than once")
    vocabulary = {PAD: 0, EOS: 1, **{c: i + 2 for i, c in enumerate(alphabet)}}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=None))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(_ANY_CHARACTER), "isolated")
    tokenizer.decoder = decoders.Fuse()
    special = [AddedToken(PAD, special=True, normalized=False), AddedToken(EOS, special=True, normalized=False)]
    tokenizer.add_special_tokens(special)  # type: ignore[reportUnknownMemberType]
    return HubTokenizer(tokenizer, eos=1, template=template)


def _char_tables(tokenizer: Tokenizer, special: frozenset[int], size: int) -> tuple[dict[str, int] | None, list[str] | None]:
    """Direct tables for a tokenizer as `char_tokenizer` makes it; None for any other."""
    plan = json.loads(tokenizer.to_str())
    split: dict[str, Any] = plan["pre_tokenizer"] or {}
    wanted = {"type": "Split", "pattern": {"Regex": _ANY_CHARACTER}, "behavior": "Isolated", "invert": False}
    per_char = split == wanted
    fuse = plan["decoder"] == {"type": "Fuse"}
    if plan["model"]["type"] != "WordLevel" or plan["normalizer"] is not None or not (per_char and fuse):
        return None, None
    chars: dict[str, int] = {t: i for t, i in tokenizer.get_vocab().items() if i not in special}
    if any(len(c) != 1 for c in chars) or size != len(chars) + len(special):
        return None, None
    texts = [""] * size
    for char, index in chars.items():
        texts[index] = char
    return dict(sorted(chars.items(), key=lambda item: item[1])), texts


def _read_config(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is no JSON ({error}); copy it again from its source") from error


def _size(tokenizer: Tokenizer) -> int:
    """Ids up to the highest; some tokenizers leave numbers out."""
    return 1 + max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)


def _templates(folder: Path, config: Mapping[str, Any]) -> dict[str, str]:
    """The chat templates of a folder by name: files come before what the config says."""
    told: Any = config.get("chat_template")
    named = cast("list[dict[str, str]]", told if isinstance(told, list) else [])
    found = {"default": told} if isinstance(told, str) else {t["name"]: t["template"] for t in named}
    if (folder / TEMPLATE_FILE).is_file():
        found["default"] = (folder / TEMPLATE_FILE).read_text(encoding="utf-8")
    for path in sorted((folder / TEMPLATE_FOLDER).glob("*.jinja")):
        found[path.stem] = path.read_text(encoding="utf-8")
    return found


def _one_or_all(templates: Mapping[str, str]) -> str | list[dict[str, str]]:
    if set(templates) == {"default"}:
        return templates["default"]
    return [{"name": name, "template": text} for name, text in templates.items()]


def _ends(folder: Path, size: int) -> tuple[int, ...]:
    """The end-of-sequence ids that the model's own settings for generation name."""
    ends: Any = _read_config(folder / GENERATION_FILE).get("eos_token_id")
    named = cast("list[Any]", ends if isinstance(ends, list) else [ends])
    return tuple(i for i in named if isinstance(i, int) and 0 <= i < size)


def _reading(tokenizer: Tokenizer, special: frozenset[int], controls: frozenset[int]) -> Tokenizer:
    """The tokenizer as content is read by: control tokens are special, and nothing else is."""
    if special == controls:
        return tokenizer
    plan = json.loads(tokenizer.to_str())
    for token in plan["added_tokens"]:
        token["special"] = token["id"] in controls
    return Tokenizer.from_str(json.dumps(plan))


def _token_text(token: Any) -> str | None:
    """A token in ``tokenizer_config.json``: its text, or an object with it."""
    return cast(dict[str, str], token)["content"] if isinstance(token, dict) else token


def _token(tokenizer: Tokenizer, index: int) -> str:
    token = tokenizer.id_to_token(index)
    return token if token is not None else ""


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
