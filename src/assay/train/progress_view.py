"""What a person sees while a run works: a live panel on a terminal, plain lines in a notebook or a file."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from assay.core.protocols import Tracker
    from assay.train.run import Run
    from assay.train.run_driver import Watch

__all__ = [
    "LiveView",
    "ObservesEvaluations",
    "PlainView",
    "RunProgress",
    "in_notebook",
    "say",
    "tell_settings",
    "should_show",
    "title_of",
    "view",
    "with_lines",
    "with_view",
]

BARS = "▁▂▃▄▅▆▇█"
COMPONENT = "reward/component/"
SUM = f"{COMPONENT}reward"
"""Of several rewards, what a stage learns from; ``reward/mean`` is then of the one that says what is right."""
GREEDY, SAMPLED = "eval/greedy/all", "eval/sampled/all"
ROWS = (
    ("held-out, greedy", GREEDY, ".3f"),
    ("held-out, sampled", SAMPLED, ".3f"),
    ("correct", "reward/mean", ".3f"),
    ("reward", SUM, ".3f"),
    ("pairs in order", "score/accuracy", ".3f"),
    ("loss", "loss/total", ".3f"),
    ("entropy, nats", "entropy/mean", ".3f"),
    ("signal fraction", "signal/fraction", ".2f"),
    ("KL to base, nats", "kl/base", ".4f"),
    ("tokens/s", "time/tokens_per_second", ",.0f"),
)
Clock = Callable[[], float]


@runtime_checkable
class ObservesEvaluations(Protocol):
    """A tracker that hears, before the numbers of an evaluation, of how many items they are."""

    def observe_evaluation(self, items: int, part: bool) -> None:
        """The next evaluation logged is of ``items`` items; ``part`` where others of the run are of more."""
        ...


def view(run: Run, title: str, plain: bool, first: int = 0) -> LiveView | PlainView:
    """The view that suits the output: live on a terminal, plain lines when asked for or redirected.

    ``first`` is the first step that it will hear of: 0 in a run that begins, later in one that goes on.
    """
    return PlainView(run, title, first) if plain or not sys.stdout.isatty() else LiveView(run, title, first=first)


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook, such as Jupyter's or Colab's.

    >>> in_notebook()
    False
    """
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def should_show(progress: bool | None) -> bool:
    """Whether a run is to be shown whole: as asked for, and where nobody says (None) on a terminal and in a notebook.

    Elsewhere a run of which nobody says anything tells how far it is, in lines to standard error (`with_lines`).
    """
    return sys.stdout.isatty() or in_notebook() if progress is None else progress


def title_of(run: Run, where: Path, main: bool) -> str:
    """What stands above the view of a run in ``where``: the main one, or a base that it starts from."""
    return f"{run.name} · {where}" if main else f"building the base {run.name!r}, once"


def with_view(watch: Watch, folder: Path) -> Watch:
    """The trackers of ``watch`` and a view of the run in ``folder``, and of each base that it builds first."""

    def trackers(run: Run, where: Path, first: int) -> Sequence[Tracker]:
        if where == folder and not first:
            tell_settings(run, where)
        others = watch(run, where, first)
        return [*others, view(run, title_of(run, where, where == folder), False, first)]  # last: it takes the screen

    return trackers


def with_lines(watch: Watch, folder: Path) -> Watch:
    """The trackers of ``watch``, and lines to standard error that say how far the run in ``folder`` is, and each of its bases."""

    def trackers(run: Run, where: Path, first: int) -> Sequence[Tracker]:
        others = watch(run, where, first)
        return [*others, PlainView(run, title_of(run, where, where == folder), first, say_aside)]

    return trackers


def tell_settings(run: Run, folder: Path) -> None:
    """Prints what a new run is set to, and why, to standard error; see `explain_settings`."""
    from assay.train.describe_settings import explain_settings

    for line in explain_settings(run, folder / "start"):
        print(line, file=sys.stderr, flush=True)


class RunProgress:
    """The newest value of each metric, and how fast steps go.

    Args:
        run: whose steps count, and whose evaluations are expected.
        clock: seconds; replaced in tests.
        first: first step that it will hear of.
    """

    def __init__(self, run: Run, clock: Clock = time.monotonic, first: int = 0) -> None:
        self.steps, self.step, self._first = run.steps, max(0, first - 1), first
        self.now: dict[str, float] = {}
        self.first: dict[str, float] = {}
        self.history: dict[str, list[float]] = {}
        self._run, self._clock, self._heard, self._started = run, clock, clock(), False
        self._spent, self._counted = 0.0, 0
        self._items: tuple[int, bool] | None = None
        self._sizes: list[tuple[int, bool] | None] = []

    def observe_evaluation(self, items: int, part: bool) -> None:
        """The next evaluation is of so many items, which are a part of those of others."""
        self._items = items, part

    def take(self, step: int, metrics: Mapping[str, float]) -> None:
        """Adds the metrics of one step, or of an evaluation between steps."""
        now = self._clock()
        if self._started and step > self.step:
            self._spent, self._counted = self._spent + now - self._heard, self._counted + step - self.step
        self.step, self._heard, self._started = step, now, True
        self._sizes += [self._items] if GREEDY in metrics or SAMPLED in metrics else []
        for name, value in metrics.items():
            self.first.setdefault(name, value)
            self.history.setdefault(name, []).append(value)
        self.now |= metrics

    @property
    def eta(self) -> str:
        """Time left, as m:ss or h:mm:ss, evaluations so far included; empty before the first measured step."""
        if not self._counted:
            return ""
        left = int(self._spent / self._counted * max(0, self.steps - self.step))
        hours, minutes = divmod(left // 60, 60)
        return f"{hours}:{minutes:02d}:{left % 60:02d}" if hours else f"{minutes}:{left % 60:02d}"

    @property
    def doing(self) -> str:
        """What is going on since the last news, as far as the plan of the run tells."""
        quiet = self._clock() - self._heard
        if self.step >= self.steps:
            return "finishing"
        if not self._started:
            return f"first evaluation, or loading ({quiet:.0f} s)" if self._evaluates_first else f"starting ({quiet:.0f} s)"
        usual = self._spent / self._counted if self._counted else 1.0
        if self._evaluation_due and quiet > max(1.0, 2.0 * usual):
            return f"evaluating on {self.whose} tasks ({quiet:.0f} s)"
        return f"working on step {self.step + 1}" + (f" ({quiet:.0f} s)" if quiet > max(2.0, 3.0 * usual) else "")

    @property
    def _evaluates_first(self) -> bool:
        return not self._first and self._run.stages[0].evaluates_first

    @property
    def _evaluation_due(self) -> bool:
        """Whether the step at work ends with an evaluation."""
        begun, every = 0, self._run.evaluation.every
        for stage in self._run.stages:
            in_stage = self.step + 1 - begun
            if in_stage <= stage.steps:
                return in_stage == stage.steps or (every > 0 and in_stage % every == 0)
            begun += stage.steps
        return False

    @property
    def whose(self) -> str:
        """Which tasks the evaluations are of: a run without held-out tasks evaluates on those that it trains on."""
        return "held-out" if self._run.evaluation.split == "test" else "training"

    @property
    def hint(self) -> str:
        """What to do where nothing was right and nothing earned from the start; "" elsewhere."""
        rewards = self.history.get("reward/mean", [])
        if not rewards or any(rewards) or any(self.history.get(SAMPLED, [1.0])):
            return ""
        parts = {name.removeprefix(COMPONENT): values for name, values in self.history.items() if name.startswith(COMPONENT)}
        earned = [repr(name) for name, values in parts.items() if name not in ("reward", "correct") and any(values)]
        what = f"although {' and '.join(earned)} gave a reward" if earned else "and none has earned a reward"
        return f"no answer was right, {what}: begin with easier rows, or with demonstrations (docs/add/demonstrations.md)"

    @property
    def rewards(self) -> tuple[tuple[str, str], ...]:
        """What is shown of the reward, each with its metric: of several the one that says what is right, and their sum."""
        if SUM in self.now and "reward/component/correct" in self.now:
            return (("correct", "reward/mean"), ("reward", SUM))
        return (("reward", "reward/mean"),) if "reward/mean" in self.now else ()

    def show(self, name: str, form: str = ".3f") -> str:
        """The newest value, or a dash."""
        return format(self.now[name], form) if name in self.now else "–"

    @property
    def of_items(self) -> str:
        """``of 16 items`` where the newest evaluation is of a part of the items; "" elsewhere."""
        items, part = (self._sizes[-1] if self._sizes else None) or (0, False)
        return f"of {items} items" if part else ""

    def show_change(self, name: str, form: str = ".3f") -> str:
        """First and newest held-out accuracy where they are of the same items, else the newest alone, and of how many it is."""
        first, now = format(self.first.get(name, 0.0), form), self.show(name, form)
        evaluated = name in (GREEDY, SAMPLED)
        if len(self.history.get(name, [])) < 2 or (evaluated and not self._same_items):
            return f"{now} {self.of_items if evaluated else ''}".rstrip()
        return f"{first} → {now}"

    @property
    def _same_items(self) -> bool:
        """Whether the first and the newest evaluation are of as many items: as told, else as far as the plan of the run says."""
        first, newest = self._sizes[0], self._sizes[-1]
        if first is None or newest is None:
            plan = self._run.evaluation
            return plan.per_level >= plan.final_per_level or self.step >= self.steps
        return first[0] == newest[0]

    def spark(self, name: str, width: int = 32) -> str:
        """The course of a metric as a row of bars, from 0 (or its least value below) to its greatest."""
        values = self.history.get(name, [])
        if not values:
            return ""
        cells = min(width, len(values))
        means = [_mean(values[i * len(values) // cells : (i + 1) * len(values) // cells]) for i in range(cells)]
        low = min(0.0, *means)
        span = max(means) - low or 1.0
        return "".join(BARS[round((m - low) / span * (len(BARS) - 1))] for m in means)


def say(line: str) -> None:
    """Prints a line; a reader that goes away, as ``| head`` does or a terminal that is closed, must not end the run."""
    try:
        print(line, flush=True)
    except OSError as error:
        if not isinstance(error, BrokenPipeError) and error.errno != errno.EIO:
            raise
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 -- the interpreter flushes it at the end


def say_aside(line: str) -> None:
    """Prints a line to standard error, where there is one."""
    with suppress(OSError, AttributeError):
        print(line, file=sys.stderr, flush=True)


class PlainView:
    """One line per evaluation, and for every twentieth part of the run; printed, or given to ``to``."""

    def __init__(self, run: Run, title: str, first: int = 0, to: Callable[[str], None] | None = None) -> None:
        self._p, self._say = RunProgress(run, first=first), to or say
        self._every, self._hinted = max(1, run.steps // 20), False
        done = f", {self._p.step} done" if first else ""
        self._say(f"{title}: {run.steps} steps in {run.tasks.name}{done}")

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Prints a line when there is an evaluation or the step is due."""
        self._p.take(step, metrics)
        evaluated = GREEDY in metrics
        if not evaluated and step % self._every:
            return
        parts = [f"step {step}/{self._p.steps}"]
        if "reward/mean" in metrics:
            parts += [
                *(f"{label} {self._p.show(name)}" for label, name in self._p.rewards),
                f"signal {self._p.show('signal/fraction', '.2f')}",
                f"entropy {self._p.show('entropy/mean')}",
                f"tok/s {self._p.show('time/tokens_per_second', ',.0f')}",
            ]
        elif "loss/total" in metrics:
            parts.append(f"loss {self._p.show('loss/total')}")
            if "score/accuracy" in metrics:
                parts.append(f"in order {self._p.show('score/accuracy')}")
        if evaluated:
            values = f"greedy {self._p.show(GREEDY)} sampled {self._p.show(SAMPLED)} {self._p.of_items}"
            parts.append(f"{self._p.whose} {values.rstrip()}")
        if self._p.eta and step < self._p.steps:
            parts.append(f"left {self._p.eta}")
        self._say("  ".join(parts))
        if self._p.hint and not self._hinted:
            self._hinted = True
            self._say(self._p.hint)

    def observe_evaluation(self, items: int, part: bool) -> None:
        """Takes of how many items the next evaluation is."""
        self._p.observe_evaluation(items, part)

    def close(self) -> None:
        """Nothing is held open."""


class LiveView:
    """A panel that is redrawn in place, four times a second, also while nothing is logged.

    Args:
        run: the run.
        title: of the panel.
        console: where to draw; the terminal when None.
        clock: seconds; replaced in tests.
        first: first step that it will hear of.
    """

    def __init__(
        self, run: Run, title: str, console: Console | None = None, clock: Clock = time.monotonic, first: int = 0
    ) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.spinner import Spinner

        self._p, self._title, self._open = RunProgress(run, clock, first), title, True
        self._spinner = Spinner("dots", style="cyan")
        self._console = console or Console()
        # No redirection: a worker forked while the panel is up would draw it too when the user's reward function prints.
        self._live = Live(
            console=self._console, get_renderable=self.panel, refresh_per_second=4, redirect_stdout=False, redirect_stderr=False
        )
        self._live.start(refresh=True)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Takes the news; the next redraw shows them."""
        self._p.take(step, metrics)

    def observe_evaluation(self, items: int, part: bool) -> None:
        """Takes of how many items the next evaluation is."""
        self._p.observe_evaluation(items, part)

    def close(self) -> None:
        """Leaves the last panel on the screen."""
        self._open = False
        self._live.stop()

    def panel(self) -> RenderableType:
        """The panel as it should look now."""
        from rich.console import Group
        from rich.panel import Panel
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        p = self._p
        width = min(90, self._console.width)
        grid = Table.grid(padding=(0, 2))
        for _ in range(3):
            grid.add_column(no_wrap=True)
        labels = {name: label for label, name in p.rewards}
        for label, name, form in ROWS:
            label = labels.get(name, label)
            if name in p.now and not (name == "loss/total" and "reward/mean" in p.now) and (name != SUM or name in labels):
                value = p.show_change(name, form) if name in (GREEDY, SAMPLED) else p.show(name, form)
                course = "" if name.startswith("time/") else p.spark(name, max(8, width - 44))
                label = label.replace("held-out", p.whose)
                grid.add_row(Text(label, style="dim"), Text(value, style="bold"), Text(course, style="cyan"))
        weights = {1.0: "weights proved", 0.0: "weights unproven"}.get(p.now.get("proof/state", -1.0), "")
        facts = [f"step {p.step}/{p.steps}", f"left {p.eta}" if p.eta and self._open else "", weights]
        foot = Table.grid(padding=(0, 1))
        doing = Text(p.doing if self._open else "", style="cyan")
        foot.add_row(self._spinner if self._open else "", Text("   ".join(f for f in facts if f), style="dim"), Text(" "), doing)
        bar = Table.grid(expand=True)  # a bar alone ends without a line break
        bar.add_row(ProgressBar(total=max(1, p.steps), completed=p.step))
        hint = [Text(p.hint, style="yellow")] if p.hint else []
        return Panel(Group(grid, *hint, bar, foot), title=Text(self._title), title_align="left", width=width)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
