"""What a person sees while a run works: a live panel on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

    from assay.train.run import Run

__all__ = ["LiveView", "PlainView", "view"]

BARS = "▁▂▃▄▅▆▇█"


def view(run: Run, title: str, plain: bool) -> LiveView | PlainView:
    """The view that suits the output: live on a terminal, plain lines when asked for or redirected."""
    return PlainView(run, title) if plain or not sys.stdout.isatty() else LiveView(run, title)


class Progress:
    """The newest value of each metric, and how fast steps go."""

    def __init__(self, steps: int) -> None:
        self.steps, self.step = steps, 0
        self.now: dict[str, float] = {}
        self.first: dict[str, float] = {}
        self.history: dict[str, list[float]] = {}
        self._begin: tuple[int, float] | None = None

    def take(self, step: int, metrics: Mapping[str, float]) -> None:
        """Adds the metrics of one step."""
        self._begin = self._begin or (step, time.monotonic())
        self.step = step
        for name, value in metrics.items():
            self.first.setdefault(name, value)
            self.history.setdefault(name, []).append(value)
        self.now |= metrics

    @property
    def eta(self) -> str:
        """Time left, as m:ss; empty before two steps are known."""
        if self._begin is None or self.step <= self._begin[0]:
            return ""
        rate = (time.monotonic() - self._begin[1]) / (self.step - self._begin[0])
        left = int(rate * max(0, self.steps - self.step))
        return f"{left // 60}:{left % 60:02d}"

    def show(self, name: str, form: str = ".3f") -> str:
        """The newest value, or a dash."""
        return format(self.now[name], form) if name in self.now else "–"

    def spark(self, name: str, width: int = 32) -> str:
        """The course of a metric as a row of bars."""
        values = self.history.get(name, [])
        if not values:
            return ""
        cells = min(width, len(values))
        means = [_mean(values[i * len(values) // cells : (i + 1) * len(values) // cells]) for i in range(cells)]
        low, high = min(0.0, *means), max(1e-9, *means)
        return "".join(BARS[int((m - low) / (high - low) * (len(BARS) - 1))] for m in means)


class PlainView:
    """One line per evaluation, and every tenth of the run."""

    def __init__(self, run: Run, title: str) -> None:
        self._p, self._title = Progress(run.steps), title
        self._every = max(1, run.steps // 20)
        print(f"{title}: {run.steps} steps in {run.tasks.name}", flush=True)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Prints a line when there is an evaluation or the step is due."""
        self._p.take(step, metrics)
        evaluated = "eval/greedy/all" in metrics
        if not evaluated and step % self._every:
            return
        parts = [f"step {step}/{self._p.steps}"]
        if "reward/mean" in metrics:
            parts += [
                f"reward {self._p.show('reward/mean')}", f"signal {self._p.show('signal/fraction', '.2f')}",
                f"entropy {self._p.show('entropy/mean')}", f"tok/s {self._p.show('time/tokens_per_second', ',.0f')}",
            ]  # fmt: skip
        elif "loss/total" in metrics:
            parts.append(f"loss {self._p.show('loss/total')}")
        if evaluated:
            parts.append(f"held-out greedy {self._p.show('eval/greedy/all')} sampled {self._p.show('eval/sampled/all')}")
        if self._p.eta:
            parts.append(f"left {self._p.eta}")
        print("  ".join(parts), flush=True)

    def close(self) -> None:
        """Nothing is held open."""


class LiveView:
    """A panel that is redrawn in place."""

    def __init__(self, run: Run, title: str) -> None:
        from rich.console import Console
        from rich.live import Live

        self._p, self._title = Progress(run.steps), title
        self._live = Live(console=Console(), auto_refresh=False, transient=False)
        self._live.start()
        self._drawn = 0.0

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Redraws, at most eight times a second."""
        self._p.take(step, metrics)
        if time.monotonic() - self._drawn > 0.125 or step >= self._p.steps or "eval/greedy/all" in metrics:
            self._drawn = time.monotonic()
            self._live.update(self._panel(), refresh=True)

    def close(self) -> None:
        """Leaves the last panel on the screen."""
        self._live.update(self._panel(), refresh=True)
        self._live.stop()

    def _panel(self) -> RenderableType:
        from rich.console import Group
        from rich.panel import Panel
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        p = self._p
        grid = Table.grid(padding=(0, 2))
        for _ in range(3):
            grid.add_column(no_wrap=True)
        rows = [
            ("held-out, greedy", _moved(p, "eval/greedy/all"), p.spark("eval/greedy/all")),
            ("held-out, sampled", _moved(p, "eval/sampled/all"), p.spark("eval/sampled/all")),
            ("reward", p.show("reward/mean"), p.spark("reward/mean")),
            ("loss", p.show("loss/total"), ""),
            ("entropy", p.show("entropy/mean"), p.spark("entropy/mean")),
            ("signal fraction", p.show("signal/fraction", ".2f"), p.spark("signal/fraction")),
            ("tokens/s", p.show("time/tokens_per_second", ",.0f"), ""),
        ]
        for name, value, course in rows:
            if value != "–" and not (name == "loss" and "reward/mean" in p.now):
                grid.add_row(Text(name, style="dim"), Text(value, style="bold"), Text(course, style="cyan"))
        weights = {1.0: "weights proved", 0.0: "weights unproven"}.get(p.now.get("proof/state", -1.0), "")
        foot = Text(f"step {p.step}/{p.steps}   left {p.eta or '–'}   {weights}", style="dim")
        bar = ProgressBar(total=max(1, p.steps), completed=p.step)
        return Panel(Group(grid, bar, foot), title=self._title, title_align="left", width=min(90, self._live.console.width))


def _moved(p: Progress, name: str) -> str:
    if name not in p.now:
        return "–"
    first, now = p.first[name], p.now[name]
    return f"{now:.3f}" if len(p.history[name]) < 2 else f"{first:.3f} → {now:.3f}"


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
