"""Text to ids and back, over Hugging Face's `tokenizers`; conversations to ids through per-role templates."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, cast

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

from assay.core.canon import digest
from assay.core.errors import ConfigError, DataError
from assay.core.rollout import Ids, ids_of
from assay.core.task import Message

__all__ = ["ChatTemplate", "HubTokenizer", "char_tokenizer"]

TOKENIZER_FILE = "tokenizer.json"
CONFIG_FILE = "tokenizer_config.json"
TEMPLATE_FIELD = "assay_template"
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


class HubTokenizer:
    """A `tokenizers.Tokenizer` that never adds special tokens and never reads them out of text.

    Args:
        tokenizer: the wrapped one.
        eos: id that ends an answer.
        template: how turns are written.
        config: further fields of ``tokenizer_config.json``, kept when saved.

    Raises:
        ConfigError: ``eos`` is no id, or the template holds a character that the tokenizer lacks.

    >>> t = char_tokenizer("0123456789S>", ChatTemplate())
    >>> t.encode("S21>").tolist(), t.decode([12, 4, 1]), t.eos
    ([12, 4, 3, 13], 'S2', 1)
    """

    def __init__(
        self, tokenizer: Tokenizer, *, eos: int, template: ChatTemplate | None = None, config: dict[str, Any] | None = None
    ) -> None:
        self._tokenizer = tokenizer
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._eos = eos
        self.template = template or ChatTemplate()
        self._config: dict[str, Any] = dict(config or {})
        self._size: int = tokenizer.get_vocab_size(with_added_tokens=True)
        if not 0 <= eos < self._size:
            raise ConfigError(f"HubTokenizer: eos={eos} is no id of a tokenizer with {self._size} ids")
        self._special = frozenset(i for i, t in tokenizer.get_added_tokens_decoder().items() if t.special)
        self._chars, self._texts = _char_tables(tokenizer, self._special, self._size)
        self._cache: dict[str, Ids] = {}
        self._turns = self._encoded_template()

    def _encoded_template(self) -> dict[str, tuple[Ids, Ids]]:
        out: dict[str, tuple[Ids, Ids]] = {}
        for field in fields(self.template):
            before, after = self.template.parts(field.name)
            try:
                out[field.name] = (self._encode_template(before), self._encode_template(after))
            except DataError as error:
                raise ConfigError(f"ChatTemplate.{field.name}: {error}") from error
        return out

    def _encode_template(self, text: str) -> Ids:
        if self._chars is None or any(_token(self._tokenizer, i) in text for i in self._special):
            self._tokenizer.encode_special_tokens = False
            return ids_of(self._tokenizer.encode(text, add_special_tokens=False).ids)
        return self.encode(text)

    @property
    def size(self) -> int:
        """Number of ids, special ones included."""
        return self._size

    @property
    def eos(self) -> int:
        """Id that ends an answer."""
        return self._eos

    @property
    def pad(self) -> int | None:
        """Id for padding, where the tokenizer names one; assay itself never pads."""
        token = _named(self._config.get("pad_token", PAD))
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
        """Ids of plain text.

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
            self._tokenizer.encode_special_tokens = True
            return ids_of(self._tokenizer.encode(text, add_special_tokens=False).ids)
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
                raise IndexError
        except IndexError:
            wrong = next(i for i in values if not 0 <= i < self._size)
            raise DataError(f"cannot decode id {wrong}: the tokenizer has ids 0 to {self._size - 1}") from None
        return self._tokenizer.decode(values, skip_special_tokens=True)

    def render(self, messages: Sequence[Message], answer: bool = True) -> Ids:
        """Ids of whole turns in order; with ``answer``, also what stands before the assistant's words.

        A rendered conversation is always a prefix of the same conversation with more turns.

        Raises:
            DataError: a role without template, or a character that the alphabet lacks.

        >>> from assay.core import Message
        >>> t = char_tokenizer("0123456789=", ChatTemplate(user="{content}="))
        >>> t.render([Message("user", "12"), Message("assistant", "7")]).tolist()
        [3, 4, 12, 9, 1]
        """
        pieces: list[Ids] = []
        for message in messages:
            if message.role not in self._turns:
                self.template.parts(message.role)
            before, after = self._turns[message.role]
            pieces += [before, self.encode(message.content), after]
            if message.role == "assistant":
                pieces.append(ids_of([self._eos]))
        if answer:
            pieces.append(self._turns["assistant"][0])
        return ids_of(np.concatenate(pieces)) if pieces else ids_of([])

    def save(self, folder: Path) -> None:
        """Writes ``tokenizer.json`` and ``tokenizer_config.json`` as `transformers.AutoTokenizer` reads them."""
        self._tokenizer.encode_special_tokens = False
        (folder / TOKENIZER_FILE).write_text(self._tokenizer.to_str(pretty=True), encoding="utf-8")
        defaults = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
        eos = _token(self._tokenizer, self._eos)
        config = {**defaults, **self._config, "eos_token": eos, TEMPLATE_FIELD: asdict(self.template)}
        if self._tokenizer.token_to_id(PAD) is not None:
            config.setdefault("pad_token", PAD)
        text = json.dumps(config, indent=2, ensure_ascii=False, sort_keys=True)
        (folder / CONFIG_FILE).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path, eos: int | None = None) -> HubTokenizer:
        """Reads a tokenizer as `save` or transformers wrote it.

        Args:
            folder: holds ``tokenizer.json`` and, if there is one, ``tokenizer_config.json``.
            eos: used where the config names no ``eos_token``.

        Raises:
            DataError: a file is missing or damaged, or no end-of-sequence token is named.
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
        config = _read_config(folder / CONFIG_FILE)
        token = _named(config.get("eos_token"))
        end: int | None = tokenizer.token_to_id(token) if token is not None else eos
        if end is None:
            raise DataError(
                f"{folder / CONFIG_FILE} names no usable eos_token ({token!r}); add one, answers could not end without it"
            )
        template = config.pop(TEMPLATE_FIELD, None)
        return cls(tokenizer, eos=end, template=ChatTemplate(**template) if template else None, config=config)


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


def _named(token: Any) -> str | None:
    """A token in ``tokenizer_config.json``: its text, or an object with it."""
    return cast(dict[str, str], token)["content"] if isinstance(token, dict) else token


def _token(tokenizer: Tokenizer, index: int) -> str:
    token = tokenizer.id_to_token(index)
    return token if token is not None else ""


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
