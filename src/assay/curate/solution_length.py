"""How long a strong model thinks about a question, as what says how hard it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.core.errors import ConfigError, DataError
from assay.core.seeds import generator
from assay.curate.row_index import Joined
from assay.curate.rows import Fields, Row
from assay.curate.step import Chunk, RowStep, Verdict, drop

__all__ = ["SolutionLength"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SolutionLength(RowStep):
    """Keeps rows to which a strong model finds its way, and not at once: by attempts with their verdicts and lengths.

    Of the first ``tries`` attempts at a row more than half must be right, ``2 p > n``; then its first right solution counts. A
    row whose solution has fewer than ``short`` tokens goes, and of those with fewer than ``middle`` only ``share`` stay, by a
    draw of the row's own.

    Source: AceReason (arXiv 2505.16400): 8 tries, 2,000 and 4,000 tokens. UNSURE: the share that stays in between.

    Attributes:
        file: attempts, an entry each with ``passed``, true or false, and ``tokens``; it names its row by ``id`` or question.
        tries: attempts that count, in their order.
        short: solutions below are too easy, in tokens.
        middle: solutions below are drawn from.
        share: of these that stay, in [0, 1].
        seed: of the draw.
        fields: where an entry without an ``id`` holds its question.

    Raises:
        ConfigError: a number out of range.

    >>> from pathlib import Path
    >>> SolutionLength(file=Path("attempts.jsonl")).name
    'solution_length'
    """

    file: Path
    tries: int = 8
    short: int = 2000
    middle: int = 4000
    share: float = 0.5
    seed: int = 0
    fields: Fields = field(default_factory=Fields)

    def __post_init__(self) -> None:
        if self.tries < 1 or not 0 <= self.short <= self.middle or not 0 <= self.share <= 1:
            raise ConfigError(
                f"SolutionLength: tries={self.tries} must be at least 1, 0 <= short={self.short} <= middle={self.middle}, and "
                f"share={self.share} in [0, 1]"
            )

    @property
    def files(self) -> tuple[Path, ...]:
        """The attempts."""
        return (self.file,)

    def prepare(self, scratch: Path) -> Joined:
        """An index of the attempts."""
        return Joined(scratch / "solutions.sqlite", [self.file], self.fields, _solution)

    def judge(self, chunk: Chunk, ready: Any) -> Sequence[Verdict | None]:
        """A verdict for each row."""
        return [self._verdict(row, found[: self.tries]) for row, found in zip(chunk.rows, ready.of(chunk.rows), strict=True)]

    def _verdict(self, row: Row, attempts: Sequence[tuple[bool, int]]) -> Verdict | None:
        if not attempts:
            return drop("no attempts")
        right = [tokens for passed, tokens in attempts if passed]
        if 2 * len(right) <= len(attempts):
            return drop("no majority is right", passed=len(right), attempts=len(attempts))
        if right[0] < self.short:
            return drop("solved at once", tokens=right[0])
        if right[0] < self.middle and generator("curate/solution-length", self.seed, row.id).random() >= self.share:
            return drop("of middle length, not drawn", tokens=right[0])
        return None


def _solution(entry: Mapping[str, Any]) -> tuple[bool, int]:
    """(passed, tokens) of an attempt."""
    passed, tokens = entry.get("passed"), entry.get("tokens")
    if not isinstance(passed, bool) or not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
        raise DataError(
            f"passed={passed!r}, tokens={tokens!r}; give each attempt's verdict, true or false, and its number of tokens"
        )
    return passed, tokens
