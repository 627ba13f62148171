"""What a program may use."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from assay.core.errors import ConfigError, UnknownNameError

__all__ = ["Limits"]


_MOST_SECONDS, _MOST = 1_000_000, 1 << 60
"""What clocks and kernels can still count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one run; each has its own verdict when a program fails by it.

    Attributes:
        cpu: seconds of processor time; verdict ``cpu``. Of all its processes together, judged at the end; each single one is
            stopped when it has used that much alone.
        wall: seconds from start to end; verdict ``timeout``.
        memory: bytes of address space of one process; verdict ``memory``.
        output: bytes of standard output and of standard error, each, and of a returned value; verdict ``output``.
        file_size: bytes of one file; verdict ``disk``.
        disk: bytes of all files together; verdict ``disk``.
        entries: how many files and folders there may be; verdict ``disk``.
        processes: how many processes there may be at once. With 1 no other can be started, so that ``memory`` bounds the whole
            run, and up to 64 threads are allowed; with more, threads count as processes. Verdict ``processes``.
        files: how many files may be open at once, per process.

    Raises:
        ConfigError: a limit that is not positive, or beyond what a kernel can keep.

    >>> Limits(wall=2.0).wall
    2.0
    """

    cpu: float = 5.0
    wall: float = 10.0
    memory: int = 512 << 20
    output: int = 1 << 20
    file_size: int = 16 << 20
    disk: int = 64 << 20
    entries: int = 4096
    processes: int = 1
    files: int = 64

    def __post_init__(self) -> None:
        least = {"memory": 64 << 20, "disk": 1 << 16, "entries": 8, "files": 16}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            seconds = isinstance(field.default, float)
            if isinstance(value, bool) or not isinstance(value, int | float if seconds else int):
                raise ConfigError(f"Limits.{field.name}={value!r}: give {'seconds' if seconds else 'a whole number'}")
            if not value > 0 or value < least.get(field.name, 0):
                needed = f"at least {least[field.name]}" if field.name in least else "more than 0"
                raise ConfigError(f"Limits.{field.name}={value}: give {needed}")
            most = _MOST_SECONDS if seconds else _MOST
            if value > most:
                raise ConfigError(f"Limits.{field.name}={value}: give at most {most}")

    @classmethod
    def parse(cls, text: str) -> Limits:
        """Limits from ``key=value`` pairs with commas between them.

        Raises:
            ConfigError: a pair that is none, or a value that is no number.
            UnknownNameError: no such limit.

        >>> Limits.parse("wall=2,memory=268435456").memory
        268435456
        """
        kinds: dict[str, type[float]] = {f.name: type(getattr(cls(), f.name)) for f in dataclasses.fields(cls)}
        given: dict[str, float] = {}
        for pair in filter(None, text.split(",")):
            name, equals, value = (part.strip() for part in pair.partition("="))
            if not equals:
                raise ConfigError(f"limits {pair!r}: write key=value, as in wall=2,memory=268435456")
            if name not in kinds:
                raise UnknownNameError("limit", name, kinds)
            if name in given:
                raise ConfigError(f"limits {text!r} give {name} twice")
            try:
                given[name] = kinds[name](value)
            except ValueError:
                whole = "" if kinds[name] is float else " whole"
                fix = "give seconds, as 2.5" if kinds[name] is float else "sizes are in bytes, as 268435456"
                raise ConfigError(f"limit {name}={value!r} is no{whole} number; {fix}") from None
        return cls(**given)  # pyright: ignore[reportArgumentType] -- each has its own kind
