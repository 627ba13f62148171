"""Rules of thumb on the form of a row."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from assay.core.errors import ConfigError
from assay.curate.rows import Row
from assay.curate.step import RowStep, Verdict, drop

__all__ = ["AnswerForm"]

_LETTER = re.compile(r"\(?([A-Za-z])\)?[.:]?")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerForm(RowStep):
    """Drops rows whose gold answer is missing or of a form that is hard to check.

    A row with a field ``options`` or ``choices`` (a list, or letters with texts) is multiple choice: its gold must be one of
    them, by letter, number from 0, or text. Any other answer is open.

    Attributes:
        characters: longest open answer; 0 for any length.
        words: longest open answer; 0 for any length.
        options: names of the field with the options.

    Raises:
        ConfigError: a limit below 0.

    Source: Guru (arXiv 2506.14965) drops mathematics with answers of more than 100 characters; NEMOTRON-CrossThink (arXiv
    2504.13941) drops multiple choice without the gold option, and open answers of more than 10 words.
    """

    characters: int = 100
    words: int = 0
    options: tuple[str, ...] = ("options", "choices")

    def __post_init__(self) -> None:
        if self.characters < 0 or self.words < 0:
            raise ConfigError(f"AnswerForm: characters={self.characters}, words={self.words}; use 0 (no limit) or more")

    def look(self, row: Row, ready: Any) -> Verdict | None:
        """The verdict on a row."""
        if row.gold is None:
            return drop("no gold answer")
        found = next((row.data[name] for name in self.options if row.data.get(name)), None)
        if found is not None:
            return None if _offered(row.gold, found) else drop("gold is not among the options", gold=row.gold)
        text = row.gold if isinstance(row.gold, str) else str(row.gold)
        if not text.strip():
            return drop("no gold answer")
        if self.characters and len(text) > self.characters:
            return drop("long answer", characters=len(text))
        if self.words and len(text.split()) > self.words:
            return drop("long answer", words=len(text.split()))
        return None


def _offered(gold: Any, options: Any) -> bool:
    """Whether a gold names one of the options: by its text, its letter, or its number from 0."""
    named: dict[str, Any] = {}
    if isinstance(options, Mapping):
        table = cast("Mapping[str, Any]", options)
        if isinstance(table.get("text"), Sequence) and isinstance(table.get("label"), Sequence):  # columns, as in many datasets
            named = dict(zip(map(str, table["label"]), table["text"], strict=False))
        else:
            named = {str(name): value for name, value in table.items()}
    elif isinstance(options, Sequence) and not isinstance(options, str):
        named = {chr(ord("A") + i): value for i, value in enumerate(cast("Sequence[Any]", options))}
    if isinstance(gold, int) and not isinstance(gold, bool):
        return 0 <= gold < len(named) or str(gold) in named or gold in named.values()
    said = str(gold).strip()
    if said in (str(value).strip() for value in named.values()):
        return True
    letter = _LETTER.fullmatch(said)
    return letter is not None and letter[1].upper() in (name.upper() for name in named)
