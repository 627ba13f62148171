"""Questions whose level is a point of a box: several quantities at once, for curricula that choose among points."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from random import Random
from typing import Any

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, UnknownNameError
from assay.tasks.problem import Problem

__all__ = ["BoxProblem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxProblem(Problem):
    """Base of questions with several quantities, each with its values: every combination is a level. Levels are
    numbered with the axes in the order of their names, the last one fastest.

    `assay.guide.AlpGmm` draws from the whole box, by the places of its levels. ``levels`` may name a part of it.

    Attributes:
        axes: each quantity with its values, ascending; 1000 combinations at most.
        levels: numbers of combinations, from 1; all when empty.

    Raises:
        ConfigError: no axis, values that do not ascend, more than 1000 combinations, or a level beyond them.

    >>> from dataclasses import dataclass
    >>> from assay.tasks import Solution
    >>> @dataclass(frozen=True, slots=True, kw_only=True)
    ... class Sum(BoxProblem):
    ...     def draw_at(self, point, rng):
    ...         return {"numbers": [rng.randrange(10 ** point["digits"]) for _ in range(point["terms"])]}
    ...     def solve(self, facts):
    ...         return Solution(answer=str(sum(facts["numbers"])))
    >>> sums = Sum(name="box/sum", domain="math", axes={"terms": (2, 3), "digits": (1, 2, 4)})
    >>> len(sums.levels), dict(sums.point(5)), sums.level_point(5)
    (6, {'digits': 4, 'terms': 2}, (4.0, 2.0))
    """

    axes: Mapping[str, tuple[int, ...]] = field(default_factory=FrozenMap)
    levels: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", FrozenMap({name: tuple(values) for name, values in self.axes.items()}))
        wrong = {name: values for name, values in self.axes.items() if not values or list(values) != sorted(set(values))}
        many = prod(map(len, self.axes.values()))
        if not self.axes or wrong or many > 1000:
            raise ConfigError(
                f"{self.name}.axes={dict(wrong or self.axes)}: give each axis ascending values, and 1000 combinations at most "
                f"(these are {many})"
            )
        if not self.levels:
            object.__setattr__(self, "levels", tuple(range(1, many + 1)))
        super(BoxProblem, self).__post_init__()
        if self.levels[-1] > many:
            raise ConfigError(f"{self.name}.levels ends with {self.levels[-1]}, and the box has {many} combinations")

    def point(self, level: int) -> Mapping[str, int]:
        """The combination that a level is.

        >>> class Point(BoxProblem):
        ...     draw_at = solve = None
        >>> [dict(Point(name="a", domain="d", axes={"x": (1, 2), "y": (0, 5)}).point(n)) for n in (1, 2, 3)]
        [{'x': 1, 'y': 0}, {'x': 1, 'y': 5}, {'x': 2, 'y': 0}]
        """
        found: dict[str, int] = {}
        left = level - 1
        for name in sorted(self.axes, reverse=True):  # not as they were written: a file may hold them in another order
            left, at = divmod(left, len(self.axes[name]))
            found[name] = self.axes[name][at]
        return FrozenMap({name: found[name] for name in sorted(self.axes)})

    def level(self, **point: int) -> int:
        """The number of a combination; the inverse of `point`.

        Raises:
            UnknownNameError: an axis that there is not.
            ConfigError: an axis is left out, or has no such value.
        """
        for name in point:
            if name not in self.axes:
                raise UnknownNameError(f"axis of {self.name}", name, self.axes)
        number = 0
        for name, values in sorted(self.axes.items()):
            if point.get(name) not in values:
                raise ConfigError(f"{self.name}: {name}={point.get(name)} is none of its values {values}")
            number = number * len(values) + values.index(point[name])
        return number + 1

    def level_point(self, level: int) -> tuple[float, ...]:
        """The values of its combination."""
        return tuple(map(float, self.point(level).values()))

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Facts at the level's point."""
        return self.draw_at(self.point(level), rng)

    @abstractmethod
    def draw_at(self, point: Mapping[str, int], rng: Random) -> dict[str, Any]:
        """Facts of a question of this combination, as `Problem.draw`."""
        ...
