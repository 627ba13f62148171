"""What a person sees of runs side by side: lines, or a table that is redrawn."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from assay.lab.seeds import StudyRun
from assay.lab.summary import State
from assay.train.progress_view import GREEDY, Clock, RunProgress, say

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

__all__ = ["PlainStudyView", "StudyTable"]


class PlainStudyView:
    """A line per run where its state changes, at its evaluations, and for every fifth part of it."""

    def __init__(self, members: Sequence[StudyRun], clock: Clock = time.monotonic) -> None:
        self._width = max(len(m.name) for m in members)
        self._runs = {m.name: RunProgress(m.run, clock) for m in members}

    def state(self, name: str, state: State, said: str) -> None:
        """Prints it."""
        if state is not State.WAITING or said:
            self._say(name, _describe_state(state, said))

    def log(self, name: str, step: int, metrics: Mapping[str, float]) -> None:
        """Prints a line when there is an evaluation, or the step is due."""
        run = self._runs[name]
        run.take(step, metrics)
        if GREEDY in metrics or step % max(1, run.steps // 5) == 0:
            self._say(name, "  ".join(_parts(run)))

    def _say(self, name: str, text: str) -> None:
        say(f"{name:<{self._width}}  {text}")

    def close(self) -> None:
        """Nothing is held open."""


class StudyTable:
    """A table of the runs that is redrawn in place, twice a second.

    Args:
        members: the runs.
        title: above the table.
        console: where to draw; the terminal when None.
        clock: seconds; replaced in tests.
    """

    def __init__(
        self, members: Sequence[StudyRun], title: str, console: Console | None = None, clock: Clock = time.monotonic
    ) -> None:
        from rich.live import Live

        self._title = title
        self._runs = {m.name: RunProgress(m.run, clock) for m in members}
        self._whose = next(iter(self._runs.values())).whose
        self._states = dict.fromkeys(self._runs, "waiting")
        self._live = Live(
            console=console, get_renderable=self.table, refresh_per_second=2, redirect_stdout=False, redirect_stderr=False
        )
        self._live.start(refresh=True)

    def state(self, name: str, state: State, said: str) -> None:
        """Takes the news; the next redraw shows them."""
        self._states[name] = _describe_state(state, said)

    def log(self, name: str, step: int, metrics: Mapping[str, float]) -> None:
        """Takes the news likewise."""
        self._runs[name].take(step, metrics)

    def table(self) -> RenderableType:
        """The table as it should look now."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        made = Table(title=Text(self._title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for column in ("run", "state", "step", f"{self._whose} greedy", "reward", "left"):
            made.add_column(column, justify="left" if column in ("run", "state") else "right", overflow="fold")
        for name, run in self._runs.items():
            state = self._states[name]
            made.add_row(
                Text(name),
                Text(state, style="cyan" if state == "running" else "dim"),
                f"{run.step}/{run.steps}",
                run.show_change(GREEDY),
                run.show(run.rewards[-1][1] if run.rewards else "reward/mean"),
                run.eta if state == "running" else "",
            )
        return made

    def close(self) -> None:
        """Leaves the last table on the screen."""
        self._live.stop()


def _describe_state(state: State, said: str) -> str:
    if state is State.RUNNING and said == "base":
        return "building its base, or reading it"
    return f"{state}: {said}" if said else str(state)


def _parts(run: RunProgress) -> list[str]:
    parts = [f"step {run.step}/{run.steps}"]
    shown = run.rewards or (("loss", "loss/total"),)
    parts += [f"{word} {run.show(name)}" for word, name in shown if name in run.now]
    parts += [f"{run.whose} greedy {run.show(GREEDY)}"] if GREEDY in run.now else []
    return parts + ([f"left {run.eta}"] if run.eta and run.step < run.steps else [])
