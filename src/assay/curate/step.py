"""What a step of curation is: it looks at rows, keeps or drops them, and says why.

A `RowStep` judges each row alone. A `SetStep` compares rows: it first notes a few numbers of each, and decides when it has seen
all. Both are frozen dataclasses, and pure: the verdict on a row depends on the rows, never on their order, chunks or time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from assay.core.canon import digest, plain
from assay.core.errors import DataError
from assay.core.moved_modules import filed_module
from assay.curate.text import HashedTexts

if TYPE_CHECKING:
    from assay.curate.rows import Row

__all__ = ["Chunk", "CurationStep", "Decision", "RowStep", "SetStep", "StepNotes", "Verdict", "drop", "keep", "settings_of"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a step says of a row.

    Attributes:
        reason: why it is dropped; empty where it is kept.
        evidence: what shows it, as JSON values.
        scores: numbers or words to keep with the row, whether it is dropped or not.
    """

    reason: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict[str, Any])
    scores: Mapping[str, Any] = field(default_factory=dict[str, Any])


def keep(**scores: Any) -> Verdict:
    """The row stays, with these scores.

    >>> keep(words=12).reason
    ''
    """
    return Verdict(scores=scores)


def drop(reason: str, scores: Mapping[str, Any] | None = None, **evidence: Any) -> Verdict:
    """The row goes, for a reason in a few words, the same for all like it; what is special to it is evidence.

    Raises:
        DataError: no reason.

    >>> drop("too short", words=3)
    Verdict(reason='too short', evidence={'words': 3}, scores={})
    """
    if not reason:
        raise DataError("a row is dropped without a reason; name one in a few words")
    return Verdict(reason, evidence, scores or {})


class Chunk:
    """Rows that are looked at together.

    Attributes:
        rows: the rows, those that earlier passes dropped left out.
        positions: number of each among all readable rows ``[n]``.
    """

    def __init__(self, rows: Sequence[Row], positions: NDArray[np.int64]) -> None:
        self.rows = rows
        self.positions = positions

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def texts(self) -> HashedTexts:
        """The questions, normalised, with their hashes; computed once for all steps."""
        return HashedTexts([row.text for row in self.rows])


class CurationStep(Protocol):
    """What every step has.

    Attributes:
        name: for reports; the same step may stand twice in a pipeline under two names.
        costly: it is shown only rows that all earlier steps have kept; the others share one pass over the rows.
    """

    costly: ClassVar[bool]

    @property
    def name(self) -> str: ...

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that it reads; their digests stand in the manifest."""
        ...

    def prepare(self, scratch: Path) -> Any:
        """What the step needs and must not be built for each chunk, such as an index; handed to its other methods.

        Args:
            scratch: a folder that is there until the curation is done, also across a kill.
        """
        ...


class RowStep:
    """A step that judges each row by itself. Override `look`; or `judge`, to look at many rows at once."""

    __slots__ = ()
    costly: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The class's name, in lower case, words apart."""
        return _words(type(self).__name__)

    @property
    def files(self) -> tuple[Path, ...]:
        """Reads none."""
        return ()

    def prepare(self, scratch: Path) -> Any:
        """Nothing to prepare."""
        return None

    def look(self, row: Row, ready: Any) -> Verdict | None:
        """The verdict on a row; None keeps it, without scores."""
        raise DataError(f"{type(self).__name__} has neither look(row, ready) nor judge(chunk, ready); write one of them")

    def judge(self, chunk: Chunk, ready: Any) -> Sequence[Verdict | None]:
        """The verdict on each row of a chunk, in order."""
        return [self.look(row, ready) for row in chunk.rows]


@dataclass(frozen=True, slots=True)
class Decision:
    """Rows that a step drops for one reason.

    Attributes:
        reason: why, in a few words; empty for scores alone.
        rows: their positions ``[m]``.
        of: positions of the rows because of which they go ``[m]``, if there are such.
        evidence: further numbers ``[m]``, by name.
        scores: numbers for every row seen ``[n]``, NaN where there is none, by name.
        details: further evidence of each row, as JSON values; one for each of ``rows``, or none.
    """

    reason: str
    rows: NDArray[np.int64]
    of: NDArray[np.int64] | None = None
    evidence: Mapping[str, NDArray[Any]] = field(default_factory=dict[str, "NDArray[Any]"])
    scores: Mapping[str, NDArray[np.float64]] = field(default_factory=dict[str, "NDArray[np.float64]"])
    details: Sequence[Mapping[str, Any]] = ()


class StepNotes(Protocol):
    """What a step noted, chunk by chunk, and which rows are still there."""

    @property
    def positions(self) -> NDArray[np.int64]:
        """Of the rows that were noted ``[n]``."""
        ...

    @property
    def alive(self) -> NDArray[np.bool_]:
        """Which of them no earlier step has dropped ``[n]``."""
        ...

    @property
    def rank(self) -> NDArray[np.int64]:
        """A number for each row that depends on its content alone; rows of equal content are in their order ``[n]``."""
        ...

    def column(self, name: str) -> NDArray[Any]:
        """What was noted under a name, of all chunks one after another."""
        ...

    def parts(self, name: str) -> Iterator[NDArray[Any]]:
        """The same, a chunk at a time, not held in memory."""
        ...


class SetStep:
    """A step that needs all rows before it can judge one."""

    __slots__ = ()
    costly: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The class's name, in lower case, words apart."""
        return _words(type(self).__name__)

    @property
    def files(self) -> tuple[Path, ...]:
        """Reads none."""
        return ()

    def prepare(self, scratch: Path) -> Any:
        """Nothing to prepare."""
        return None

    def note(self, chunk: Chunk, ready: Any) -> Mapping[str, NDArray[Any]]:
        """Arrays to remember of a chunk; they are kept on disk."""
        raise DataError(f"{type(self).__name__} has no note(chunk, ready); write it")

    def decide(self, seen: StepNotes, ready: Any) -> Sequence[Decision]:
        """What goes, when all chunks have been noted. Only rows that are ``seen.alive`` may go or be a reason to."""
        raise DataError(f"{type(self).__name__} has no decide(seen, ready); write it")


def settings_of(step: object) -> dict[str, Any]:
    """A step's settings as plain values, for the manifest; a part that is code stands there by name.

    Raises:
        DataError: a setting that is neither a plain value nor a part nor code.

    >>> from assay.curate import Exact
    >>> settings_of(Exact())
    {'kind': 'assay.curate.exact:Exact', 'conflicts': 'keep'}
    """
    kind: type[Any] = type(step)
    found = _name_code(kind)
    for one in fields(cast("Any", step)):
        if not one.name.startswith("_"):
            found[one.name] = _plain(getattr(step, one.name))
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(v) for v in cast("tuple[Any, ...]", value)]
    if is_dataclass(value) and not isinstance(value, type):
        return settings_of(value)
    if callable(value):
        return _name_code(value if hasattr(value, "__qualname__") else type(value))
    return plain(value)


def _name_code(code: Any) -> dict[str, Any]:
    """The name of a class or function; where it is somebody's own, with a digest of its file, since that may change."""
    found: dict[str, Any] = {"kind": f"{filed_module(code.__module__)}:{code.__qualname__}"}
    file = getattr(sys.modules.get(code.__module__), "__file__", None)
    if not code.__module__.startswith("assay.") and file is not None:
        found["code"] = digest(Path(file).read_bytes().hex())
    return found


def _words(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))
