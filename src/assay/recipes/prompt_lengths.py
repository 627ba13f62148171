"""Prompts that are too long for a model: counted and refused, left out, or cut at their front."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from assay.core.canon import canonical
from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.protocols import Tokenizer
from assay.core.task import Message

__all__ = ["NOT_FOR_TEXT", "LongPrompts", "fit_prompts", "longest_answer", "longest_prompt", "question_bytes", "turns_of"]

LongPrompts = Literal["error", "skip", "truncate"]
Row = Mapping[str, Any]

_MODES = ("error", "skip", "truncate")
NOT_FOR_TEXT = (
    "take a model that reads text: the embedded base writes single characters and only sorts digits; give model=, or begin with "
    "Scratch and Imitate (docs/tutorials/own-rows.md)"
)
"""What helps where the embedded base is given long prompts."""

_SLACK = 8
"""Tokens by which texts beside a template's may differ in how they join it."""
_ANSWERS = 64
"""Answers whose tokens are counted: those with most characters."""


@dataclass(frozen=True, slots=True)
class _Ruler:
    """Counts the tokens of prompts, and knows of most that they are few without counting: a token is a byte at least."""

    tokenizer: Tokenizer
    around: int

    @classmethod
    def of(cls, tokenizer: Tokenizer, rows: Sequence[Row]) -> _Ruler | None:
        """None where no prompt can be written; whoever checks the rows will say why."""
        for row in rows:
            turns = turns_of(row)
            tokens = None if turns is None else _tokens(tokenizer, turns)
            if turns is not None and tokens is not None:
                return cls(tokenizer, tokens + _SLACK)
        return None

    def bound(self, turns: Sequence[Message]) -> int:
        """Most tokens that a prompt can have."""
        return sum(len(turn.content.encode("utf-8", "surrogatepass")) + self.around for turn in turns)

    def count(self, turns: Sequence[Message]) -> int:
        """Tokens of a prompt; 0 where it cannot be written."""
        return _tokens(self.tokenizer, turns) or 0


def longest_prompt(rows: Sequence[Row], tokenizer: Tokenizer) -> int:
    """Tokens of the longest prompt; 0 where none can be written.

    >>> from assay.runtime import char_tokenizer
    >>> longest_prompt([{"prompt": "12"}, {"prompt": "1212"}], char_tokenizer("12"))
    4
    """
    ruler = _Ruler.of(tokenizer, rows)
    if ruler is None:
        return 0
    bounds = sorted(((ruler.bound(turns), at) for at, row in enumerate(rows) if (turns := turns_of(row))), reverse=True)
    longest = 0
    for bound, at in bounds:
        if bound <= longest:
            break
        longest = max(longest, ruler.count(cast("list[Message]", turns_of(rows[at]))))
    return longest


def longest_answer(rows: Sequence[Row], tokenizer: Tokenizer) -> int:
    """Tokens of the longest ``answer``, its end included; 0 where a row has none that is text or a number."""
    answers = [row.get("answer") if isinstance(row, Mapping) else None for row in rows]  # pyright: ignore[reportUnnecessaryIsInstance]
    if not answers or not all(isinstance(answer, str | int | float) for answer in answers):
        return 0
    texts = sorted({str(answer) for answer in answers}, key=len, reverse=True)[:_ANSWERS]
    try:
        return 1 + max(len(tokenizer.encode(text)) for text in texts)
    except DataError:  # a character that the tokenizer lacks: whoever checks the rows will say so
        return 0


def fit_prompts(
    rows: Sequence[Row],
    tokenizer: Tokenizer,
    context: int,
    new: int,
    mode: LongPrompts = "error",
    advice: Callable[[int], str] | None = None,
) -> tuple[Sequence[Row], str]:
    """Rows whose prompts leave room for an answer.

    Args:
        rows: with ``prompt`` or ``messages``.
        tokenizer: of the model.
        context: its longest row, in tokens.
        new: most tokens of an answer.
        mode: ``error``, ``skip`` to leave out those that are too long, or ``truncate`` to drop the beginning of their longest
            turn that is not the system's.
        advice: what helps with this model, of the tokens of the longest prompt and its answer together.

    Returns:
        The rows, and what was done, in a sentence; empty where nothing was.

    Raises:
        DataError: some are too long; says how many, and the longest; or none is left.
        ConfigError: an answer alone fills the context.
        UnknownNameError: another mode.

    >>> from assay.runtime import char_tokenizer
    >>> rows = [{"prompt": "12"}, {"prompt": "121212"}]
    >>> fit_prompts(rows, char_tokenizer("12"), 6, 3, "truncate")
    (({'prompt': '12'}, {'prompt': '212'}), \
'1 of 2 prompts cut at their front, with any instruction there, to 3 tokens; the longest had 6')
    """
    if mode not in _MODES:
        raise UnknownNameError("long_prompts", mode, _MODES)
    most = context - new
    if most < 1:
        raise ConfigError(
            f"max_new_tokens={new} leaves no room for a prompt in the model's context of {context} tokens; lower it"
        )
    ruler = _Ruler.of(tokenizer, rows)
    if ruler is None:
        return rows, ""
    over = _too_long(rows, ruler, most)
    if not over:
        return rows, ""
    count, worst = f"{len(over):,} of {len(rows):,} prompts", max(over, key=lambda at: over[at])
    if mode == "error":
        fixes = [
            advice(over[worst] + new) if advice else "",
            f"lower max_new_tokens to {context - over[worst]:,} or less" if over[worst] < context else "",
            "leave them out (long_prompts='skip')" if len(over) < len(rows) else "",
            "cut off their beginning, with any instruction that stands there (long_prompts='truncate')",
        ]
        first, *others = filter(None, fixes)
        raise DataError(
            f"{count} exceed the {most:,} tokens that a context of {context:,} leaves beside answers of {new:,}; the longest, "
            f"row {worst + 1}, has {over[worst]:,}. {'; or '.join([first[0].upper() + first[1:], *others])}"
        )
    if mode == "skip":
        kept = tuple(row for at, row in enumerate(rows) if at not in over)
        if not kept:
            raise DataError(f"all {len(rows):,} prompts exceed {most:,} tokens, so that long_prompts='skip' leaves none")
        return kept, f"{count} left out, for they exceed {most:,} tokens; the longest had {over[worst]:,}"
    cut = tuple(_cut(row, at, ruler, most) if at in over else row for at, row in enumerate(rows))
    return cut, f"{count} cut at their front, with any instruction there, to {most:,} tokens; the longest had {over[worst]:,}"


def _too_long(rows: Sequence[Row], ruler: _Ruler, most: int) -> dict[int, int]:
    """Tokens of those prompts that exceed ``most``, by the number of the row."""
    over: dict[int, int] = {}
    for at, row in enumerate(rows):
        turns = turns_of(row)
        if turns and ruler.bound(turns) > most and (tokens := ruler.count(turns)) > most:
            over[at] = tokens
    return over


def _cut(row: Row, at: int, ruler: _Ruler, most: int) -> Row:
    """The row with as much of the end of its longest turn as fits."""
    turns = cast("list[Message]", turns_of(row))
    which = max((i for i, t in enumerate(turns) if t.role != "system"), key=lambda i: len(turns[i].content))
    text = turns[which].content

    def cut(kept: int) -> list[Message]:
        return [*turns[:which], Message(turns[which].role, text[len(text) - kept :]), *turns[which + 1 :]]

    low, high = 0, len(text)  # the most characters that fit lie in [low, high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if ruler.count(cut(middle)) <= most else (low, middle)
    if not low:
        raise DataError(f"row {at + 1}: without its longest turn its prompt still exceeds {most} tokens; leave it out")
    place = "prompt" if "prompt" in row else "messages"
    if isinstance(row[place], str):
        return {**row, place: text[len(text) - low :]}
    return {**row, place: [{"role": t.role, "content": t.content} for t in cut(low)]}


def turns_of(row: Any) -> list[Message] | None:
    """The turns of a prompt; None of a row that is wrong, which `assay.tasks.Rows` refuses."""
    if not isinstance(row, Mapping):
        return None
    found: Any = cast("Row", row).get("prompt", cast("Row", row).get("messages"))
    if isinstance(found, str):
        return [Message("user", found)]
    try:
        return [Message(turn["role"], turn["content"]) for turn in found] or None
    except (TypeError, KeyError):
        return None


def question_bytes(row: Row) -> bytes:
    """What a row asks; a row that is wrong is refused by `Rows`."""
    turns = turns_of(row) or ()
    return canonical([[turn.role, turn.content] for turn in turns])


def _tokens(tokenizer: Tokenizer, turns: Sequence[Message]) -> int | None:
    try:
        return len(tokenizer.render(turns))
    except DataError:  # a character that the tokenizer lacks: whoever checks the rows will say so
        return None
