"""What a tracker is: settings that open a session, and the session that takes the steps of a run in their order."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, cast

from assay.core.errors import ConfigError, MissingExtraError
from assay.core.util.renamed import refuse_renamed
from assay.measure.rollout_line import RolloutLine

__all__ = ["Ending", "RolloutTable", "TrackedRun", "TrackerSession", "TrackerSettings", "load_library", "rollout_table"]

Ending = Literal["finished", "stopped", "failed"]
"""How a run ended: ``stopped`` ones are to be resumed, ``failed`` ones stopped with an error or were killed."""

LONGEST = 4000
"""Characters of a prompt or an answer in a table."""

MOST_ENTRIES = 64
"""Entries of a list in the settings that a tracker is told, such as the rows of a data set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedRun:
    """What a tracker knows of a run before its first number.

    Attributes:
        folder: of the run.
        name: of the folder.
        settings: ``run.toml``, without lists of more than 64 entries.
        id: what the tracker's last session called its own run; empty in the first.
        sent: the last step of that session; -1 where there was none.
        finished: whether the run has reached its end.
    """

    folder: Path
    name: str
    settings: Mapping[str, Any]
    id: str = ""
    sent: int = -1
    finished: bool = False


@dataclass(frozen=True, slots=True)
class RolloutTable:
    """Rollouts of a step as rows.

    Attributes:
        columns: their names.
        rows: one per rollout: text and numbers.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


class TrackerSession(Protocol):
    """An open run of a tracker.

    Attributes:
        id: of the tracker's own run; the next session gets it and goes on with the same.
        url: where a person sees it; empty where that is not known.
        sent: the last step that the tracker has for certain: the next step is the first that it is told. -1 asks for all.
    """

    id: str
    url: str
    sent: int

    def log(self, step: int, metrics: Mapping[str, float], rollouts: RolloutTable | None) -> None:
        """The numbers of a step, and the table of its rollouts where these were recorded."""
        ...

    def flush(self) -> None:
        """Makes sure that what was logged outlives this process, as far as the library can."""
        ...

    def log_report(self, path: Path) -> None:
        """The run's report, a file of HTML."""
        ...

    def close(self, ending: Ending) -> None:
        """Ends the session; returns when all has been sent."""
        ...


@dataclass(frozen=True, kw_only=True)
class TrackerSettings(ABC):
    """Settings of a tracker; subclasses are frozen dataclasses that `open` a session.

    The session lives in a process of its own, which reads what the run writes into its folder. So nothing that it does, or
    waits for, reaches the run.

    Attributes:
        rollouts: rows of each recorded step's table of rollouts; 0 sends no tables.
        report: send the report when the run ends.
        wait: seconds that the end of a run waits for what has not been sent yet.

    Raises:
        ConfigError: a number below 0.
    """

    title: ClassVar[str] = ""
    """The name on the command line and in the run folder; the class's own name where it is empty."""
    needs: ClassVar[tuple[str, str]] = ("", "")
    """Module that must be there, and the extra that installs it."""

    rollouts: int = 32
    report: bool = True
    wait: float = 30.0

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        refuse_renamed(cls, {"called": "tracker_name"})

    def __post_init__(self) -> None:
        if self.rollouts < 0 or not self.wait >= 0:
            raise ConfigError(
                f"{type(self).__name__}: rollouts={self.rollouts}, wait={self.wait}; use 0 or more rows, and 0 s or more"
            )

    @abstractmethod
    def open(self, run: TrackedRun) -> TrackerSession:
        """Begins a session, or goes on with the run of the last one.

        Raises:
            MissingExtraError: the library is not installed.
            Exception: whatever the library raises; the session is then tried again later.
        """

    def where(self, folder: Path, url: str) -> str:
        """Where a person sees the run of ``folder``, or the command that shows it; empty where that is not known.

        Args:
            folder: of the run.
            url: of the tracker's own run, as its session said.
        """
        return url

    @classmethod
    def tracker_name(cls) -> str:
        """Its name on the command line and in the run folder."""
        return cls.title or cls.__name__.lower()

    @classmethod
    def check_installed(cls) -> None:
        """Raises MissingExtraError where its library is not installed."""
        module, extra = cls.needs
        if module and find_spec(module) is None:
            raise MissingExtraError(module, extra)


def load_library(module: str, extra: str) -> Any:
    """A module of a tracker's library.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(module.partition(".")[0], extra) from error


def rollout_table(lines: Sequence[RolloutLine], most: int) -> RolloutTable:
    """The first rollouts of a step as a table: whole groups come first, so that advantages can be compared.

    Args:
        lines: of one step.
        most: how many rows.
    """
    columns = (
        "step",
        "task",
        "level",
        "prompt",
        "answer",
        "gold",
        "verdict",
        "reward",
        "components",
        "advantage",
        "tokens",
        "fault",
    )
    rows = tuple(
        (
            line.step,
            line.task,
            line.level,
            line.prompt[-LONGEST:],  # the question stands behind the instructions
            line.text[:LONGEST],
            line.gold[:LONGEST],
            line.verdict,
            line.primary,
            " ".join(f"{name}={value:g}" for name, value in line.components.items()),
            line.advantage,
            line.length,
            line.fault,
        )
        for line in lines[:most]
    )
    return RolloutTable(columns, rows)


def shorten_lists(value: Any) -> Any:
    """Settings without lists of very many entries.

    >>> shorten_lists({"rows": [0] * 100, "steps": 3})
    {'rows': '100 entries', 'steps': 3}
    """
    if isinstance(value, Mapping):
        return {str(k): shorten_lists(v) for k, v in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        several = cast("Sequence[Any]", value)
        return f"{len(several)} entries" if len(several) > MOST_ENTRIES else [shorten_lists(v) for v in several]
    return value


def flat(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings by their paths, as text.

    >>> flat({"stages": [{"steps": 3, "lags": [1, 2]}]})
    {'stages.0.steps': '3', 'stages.0.lags': '[1, 2]'}
    """
    out: dict[str, str] = {}

    def walk(value: Any, path: str) -> None:
        children: list[tuple[Any, Any]] = []
        if isinstance(value, Mapping):
            children = list(cast("Mapping[Any, Any]", value).items())
        elif isinstance(value, list) and any(isinstance(v, Mapping | list) for v in cast("list[Any]", value)):
            children = list(enumerate(cast("list[Any]", value)))
        for name, child in children:
            walk(child, f"{path}.{name}" if path else str(name))
        if not children:
            out[path] = str(cast(object, value))

    walk(settings, "")
    return out


def plain_name(name: str) -> str:
    """A name of a metric or a setting in the characters that every tracker takes.

    >>> plain_name("eval/level[3]")
    'eval/level_3_'
    """
    return re.sub(r"[^\w./: -]", "_", name)
