"""What a part of the self-test is, what it may find, and what it works with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.core.canon import FrozenMap
from assay.core.errors import AssayError

__all__ = ["NotAvailable", "SelftestContext", "SelftestFinding", "SelftestPart"]


class NotAvailable(AssayError, RuntimeError):
    """What a part needs is not there; its text says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelftestFinding:
    """What a part measured.

    Attributes:
        numbers: name to number or word, with the unit in the name (``decode_tokens_per_second``).
        failures: each bar that is not met, in words; none: the part is passed.
    """

    numbers: Mapping[str, Any] = field(default_factory=FrozenMap)
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SelftestContext:
    """What a part works with.

    Attributes:
        folder: empty; what is written there is deleted behind the part.
        say: takes a line about what goes on.
    """

    folder: Path
    say: Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SelftestPart:
    """A part of the self-test.

    Attributes:
        name: ``mismatch/native``.
        shows: what a pass says, in one line.
        check: measures; raises `NotAvailable` where the machine lacks what it needs. Any other exception fails the part.
        gpus: CUDA devices that it needs; it is run where the person asks for as many.
    """

    name: str
    shows: str
    check: Callable[[SelftestContext], SelftestFinding]
    gpus: int = 0
