"""Parts as a user would write them, for the tests of configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Optional, Protocol

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError
from assay.core.rollout import Sampling

if TYPE_CHECKING:
    from decimal import Decimal


class Rule(Protocol):
    def apply(self, x: float) -> float: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    factor: float = 2.0

    def __post_init__(self) -> None:
        if self.factor == 0:
            raise ConfigError("Scale.factor=0 forgets its input; use another number")

    def apply(self, x: float) -> float:
        return self.factor * x


@dataclass(frozen=True, slots=True, kw_only=True)
class Finer(Scale):
    bias: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinded:
    kind: str = "constant"
    steps: int = 3


class Mode(StrEnum):
    FAST = "fast"
    SLOW = "slow"


class Size(Enum):
    SMALL = 1
    LARGE = 2


def reward(prompt: str, completion: str) -> float:
    return 1.0


class Holder:
    @staticmethod
    def inner(x: int) -> int:
        return x


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    flag: bool = True
    count: int = 3
    rate: float = 0.5
    name: str = "n"
    choice: Literal["a", "b"] = "a"
    maybe: int | None = None
    given: int | None = 4
    old_style: Optional[str] = None  # noqa: UP045
    rule: Rule = field(default_factory=Scale)
    either: Scale | Kinded = field(default_factory=Kinded)
    optional: Scale | None = field(default_factory=Scale)
    plain: Scale = field(default_factory=Scale)
    kinded: Kinded = field(default_factory=Kinded)
    many: tuple[Scale | Kinded, ...] = (Scale(), Kinded(kind="linear"))
    pair: tuple[int, str] = (1, "x")
    levels: tuple[int, ...] = ()
    nested: tuple[tuple[int, ...], ...] = ((1, 2), ())
    listed: list[int] = field(default_factory=lambda: [1])
    sequence: Sequence[float] = (0.5,)
    table: FrozenMap = field(default_factory=lambda: FrozenMap({"a": (1, None), "kind": "x"}))
    mapping: Mapping[str, Scale] = field(default_factory=lambda: FrozenMap({"s": Scale(factor=3.0)}))
    by_level: dict[int, float] = field(default_factory=lambda: {5: 0.5})
    anything: Any = None
    mode: Mode = Mode.SLOW
    mode_or_not: Mode | None = Mode.FAST
    size: Size = Size.LARGE
    any_size: Any = Size.SMALL
    folder: Path = Path("out")
    any_folder: Path | str = Path("in")
    function: Callable[..., float] = reward
    sampling: Sampling = field(default_factory=Sampling)
    elsewhere: Decimal | None = None
    derived: int = field(init=False, default=7)


@dataclass(frozen=True)
class Wide:
    x: int
    y: int = 2


@dataclass(frozen=True)
class Deeper(Wide):
    z: tuple[int, str] | None = None
    inner: Rule | None = None
    loose: object = None
