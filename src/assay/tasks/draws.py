"""What generated families share: one cell's checked coordinates, draws that meet a split, noise on traces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

import numpy as np

from assay.core.canon import FrozenMap, canonical
from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.protocols import TaskSource
from assay.core.seeds import derive, generator, text_split
from assay.core.task import Task

__all__ = [
    "SPLITS",
    "TRIES",
    "TaskCoordinates",
    "check_stream",
    "checked_levels",
    "distinct",
    "in_turn",
    "in_turn_to_the_end",
    "redraw",
    "rows_of_cell",
    "slip",
]

_Q = TypeVar("_Q")

SPLITS = ("train", "test")

TRIES = 1000
"""Draws before a level counts as exhausted in a split: at a share of .1 a healthy level fails once in 10^45 times."""


@dataclass(frozen=True, slots=True)
class TaskCoordinates:
    """Where a task stands: family, arm, level, split and index in that stream."""

    family: str
    arm: str
    level: int
    split: str
    index: int

    @property
    def id(self) -> str:
        """The task's name."""
        whole = self.arm if self.arm.startswith(f"{self.family}/") else f"{self.family}/{self.arm}"
        return f"{whole}/{self.level}/{self.split}/{self.index}"

    def generator(self, seed: int) -> np.random.Generator:
        """The stream that the task is drawn from, as numpy's generator."""
        return generator(f"task/{self.family}", seed, self._stream, self.index)

    def random(self, seed: int) -> Random:
        """The same as Python's generator, which is much the faster for single numbers."""
        return Random(derive(f"task/{self.family}", seed, self._stream, self.index))

    @property
    def _stream(self) -> str:
        return f"{self.arm}/{self.level}/{self.split}"

    def make_task(
        self,
        domain: str,
        *,
        public: Mapping[str, Any],
        private: Mapping[str, Any],
        world: Mapping[str, Any] | None = None,
    ) -> Task:
        """The task that stands here, of what the policy may see, scorers know, and environments may use."""
        return Task(
            id=self.id,
            domain=domain,
            arm=self.arm,
            level=self.level,
            split=self.split,
            index=self.index,
            public=FrozenMap(public),
            world=FrozenMap(world or {}),
            private=FrozenMap(private),
        )

    def check(self, source: TaskSource) -> None:
        """Refuse coordinates that the source does not have.

        Raises:
            UnknownNameError: arm, level or split; says the nearest known one.
            DataError: a negative index.
        """
        arms = source.arms()
        if self.arm not in arms:
            raise UnknownNameError(f"arm of {self.family}", self.arm, arms)
        if self.level not in arms[self.arm]:
            raise UnknownNameError(f"level of {self.family}/{self.arm}", self.level, arms[self.arm])
        if self.split not in SPLITS:
            raise UnknownNameError("split", self.split, SPLITS)
        if self.index < 0:
            raise DataError(f"index of {self.family}/{self.arm} must be >= 0, got {self.index}")


def redraw(
    place: TaskCoordinates, make: Callable[[], _Q], test_share: float = 0.1, text: Callable[[_Q], bytes] = canonical
) -> _Q:
    """What ``make`` draws, again and again until its content falls in the place's split: uniform over the contents of that split.

    Args:
        place: whose split is wanted.
        make: draws a content.
        test_share: share of contents that belong to the test split.
        text: the content's canonical JSON, where ``make`` has it at hand.

    Raises:
        DataError: `TRIES` draws found none; names level, split and tries.
    """
    for _ in range(TRIES):
        question = make()
        if text_split(text(question), test_share) == place.split:
            return question
    raise DataError(
        f"{place.family}/{place.arm}: level {place.level} is exhausted: {TRIES} draws gave no task of split {place.split!r} "
        f"(test_share {test_share}); use a level with more different tasks"
    )


def distinct(source: TaskSource, arm: str, level: int, split: str, n: int) -> list[Task]:
    """The first ``n`` tasks of a stream with different contents, in order of their index.

    Raises:
        DataError: fewer than ``n`` different tasks among the first ``20 n + 200``; names level, split and how many there are.
    """
    return list(_distinct(source, arm, level, split, n))


def _distinct(source: TaskSource, arm: str, level: int, split: str, n: int) -> Iterator[Task]:
    """`distinct`, task by task: each as soon as it is drawn, and the error behind the last that there is."""
    seen: set[str] = set()
    most = 20 * n + 200
    for index in range(most):
        if len(seen) == n:
            return
        task = source.task(arm, level, split, index)
        if task.content not in seen:
            seen.add(task.content)
            yield task
    if len(seen) < n:
        raise DataError(
            f"{source.name}/{arm}: level {level} has only {len(seen)} different tasks of split {split!r} among its "
            f"first {most}, {n} are wanted; ask for fewer or use a harder level"
        )


def in_turn(
    source: TaskSource, n: int, split: str = "train", arms: Sequence[str] = (), levels: Sequence[int] = ()
) -> Iterator[Task]:
    """``n`` tasks with different contents, one of each (arm, level) after the other.

    Where the source has parts (`assay.tasks.TaskMixture`), the parts take turns, in each its families, and in each of these the
    arms:
    every part has its equal share of the tasks.

    Args:
        source: the family.
        n: how many.
        split: ``train`` or ``test``.
        arms: only these; all where empty.
        levels: only these; all where empty.

    Raises:
        UnknownNameError: an arm that the family lacks, or levels of which it has none.
        DataError: a level has too few different tasks; says how many, behind those that there are.

    >>> from assay_tasks import SortDigits
    >>> [t.id for t in in_turn(SortDigits(), 3, levels=(3, 4))]
    ['sort/sort/3/train/0', 'sort/sort/4/train/0', 'sort/sort/3/train/1']
    """
    return _turns(source, split, _tree(source, _levels_by_arm(source, arms, levels)), n)


def in_turn_to_the_end(
    source: TaskSource, split: str = "train", arms: Sequence[str] = (), levels: Sequence[int] = ()
) -> Iterator[Task]:
    """Every row of a source of rows once, one of each (arm, level) after the other; a cell that has none left drops out.

    Args:
        source: a family whose cells are finite (`rows_of_cell`).
        split, arms, levels: as `in_turn` takes them.

    Raises:
        UnknownNameError: an arm that the family lacks, or levels of which it has none.
        DataError: no row of these cells is in the split.

    >>> from assay.tasks import Rows
    >>> rows = [{"prompt": f"{n}?", "level": 1 + (n > 0)} for n in range(3)]
    >>> [t.level for t in in_turn_to_the_end(Rows(rows, reward=lambda completion: 1.0, test_share=0))]
    [1, 2, 2]
    """
    cells = [(arm, level) for arm, chosen in _levels_by_arm(source, arms, levels).items() for level in chosen]
    sizes = {cell: rows_of_cell(source, *cell, split) or 0 for cell in cells}
    if not any(sizes.values()):
        source.task(*cells[0], split, 0)  # raises, and says why there is none
    return _round([_distinct(source, *cell, split, n) for cell, n in sizes.items() if n])


def rows_of_cell(source: TaskSource, arm: str, level: int, split: str) -> int | None:
    """How many different tasks a cell of a source of rows has; None where tasks are generated."""
    home: Any = source.source(arm) if isinstance(source, _HasSources) else source
    return int(home.size(arm, level, split)) if hasattr(home, "size") else None


@runtime_checkable
class _HasSources(Protocol):
    """Families together, as a `assay.tasks.TaskMixture`."""

    def source(self, arm: str) -> TaskSource: ...


def _levels_by_arm(source: TaskSource, arms: Sequence[str], levels: Sequence[int]) -> dict[str, list[int]]:
    """Levels by arm, of those that were asked for."""
    offered = source.arms()
    for arm in arms:
        if arm not in offered:
            raise UnknownNameError(f"arm of {source.name}", arm, offered)
    wanted = {arm: [x for x in offered[arm] if not levels or x in levels] for arm in arms or offered}
    if not any(wanted.values()):
        known = sorted({str(level) for arm in arms or offered for level in offered[arm]})
        raise UnknownNameError(f"level of {source.name}", ", ".join(map(str, levels)), known)
    return wanted


def _tree(source: TaskSource, wanted: Mapping[str, list[int]]) -> Any:
    """The wanted cells as lists of lists, parts before families before cells; one list where the source has no parts."""
    if getattr(source, "parts", None) is None:
        return [(arm, level) for arm, levels in wanted.items() for level in levels]
    parts: Mapping[str, Mapping[str, Sequence[str]]] = cast("Any", source).members()
    tree = [[[(a, x) for a in arms for x in wanted.get(a, ())] for arms in part.values()] for part in parts.values()]
    return [part for part in ([member for member in part if member] for part in tree) if part]


def _turns(source: TaskSource, split: str, tree: Any, n: int) -> Iterator[Task]:
    """``n`` tasks of the cells (arm, level) of a tree: its branches have equal shares, and take turns."""
    if isinstance(tree, tuple):
        arm, level = cast("tuple[str, int]", tree)
        return _distinct(source, arm, level, split, n)
    share, more = divmod(n, len(tree))
    counts = [share + (i < more) for i in range(len(tree))]
    return _round([_turns(source, split, branch, count) for branch, count in zip(tree, counts, strict=True) if count])


def _round(streams: list[Iterator[Task]]) -> Iterator[Task]:
    """One of each stream after the other, until all have ended."""
    while streams:
        for stream in list(streams):
            task = next(stream, None)
            if task is None:
                streams.remove(stream)
            else:
                yield task


def slip(text: str, noise: float, alphabet: str, rng: np.random.Generator) -> str:
    """``text`` with, at probability ``noise``, one slip of the pen at an even position.

    The four slips are equally likely: a symbol of ``alphabet`` in place of a character, one put in before it, the character left
    out, or changed over with the one before. Some slips change nothing, as a digit replaced by itself.

    Args:
        text: what is right; empty text cannot slip.
        noise: probability of a slip.
        alphabet: symbols that slips may bring.
        rng: draws four numbers, whatever comes of them.

    Raises:
        ConfigError: ``noise`` outside [0, 1].

    >>> slip("0123", 0.0, "0123456789", np.random.default_rng(0))
    '0123'
    >>> [slip("0123", 1.0, "9", np.random.default_rng(seed)) for seed in (0, 1, 2, 10)]
    ['023', '0132', '0923', '90123']
    """
    if not 0.0 <= noise <= 1.0:
        raise ConfigError(f"trace noise is a probability in [0, 1], got {noise}")
    if not text:
        return text
    hit, kind = rng.random() < noise, int(rng.integers(4))
    at, symbol = int(rng.integers(len(text))), alphabet[int(rng.integers(len(alphabet)))]
    if not hit:
        return text
    before, here, after = text[:at], text[at], text[at + 1 :]
    swapped = before[:-1] + here + before[-1:] + after
    return (before + symbol + after, before + symbol + here + after, before + after, swapped)[kind]


def check_stream(family: str, spare: int, test_share: float) -> None:
    """Refuses settings that families with a budget of calls share.

    Args:
        family: name of the class, for errors.
        spare: calls beyond those of the oracle.
        test_share: share of contents that belong to the test split.

    Raises:
        ConfigError: fewer than 0 spare calls, or a share that leaves a split empty.
    """
    if spare < 0:
        raise ConfigError(f"{family}.spare must be >= 0, got {spare}")
    if not 0.0 < test_share < 1.0:
        raise ConfigError(f"{family}.test_share must be between 0 and 1, got {test_share}")


def checked_levels(family: str, levels: tuple[int, ...], least: int, most: int) -> None:
    """Refuse levels that are empty, repeated, unsorted or out of range.

    Raises:
        ConfigError: names the family, the levels and the range.
    """
    if not levels or list(levels) != sorted(set(levels)) or levels[0] < least or levels[-1] > most:
        raise ConfigError(
            f"{family}.levels must be different whole numbers in ascending order from {least} to {most}, got {levels}"
        )
