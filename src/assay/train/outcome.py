"""How a call of `train` or `resume` ended, and what its folder says of the run."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.core.errors import AssayError

if TYPE_CHECKING:
    from assay.measure import Finding

__all__ = ["RunOutcome"]

GREEDY = "eval/greedy/all"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunOutcome:
    """How a call of `train` or `resume` ended. What it says besides its fields is read from the folder when it is asked for.

    Attributes:
        folder: the run folder.
        step: global steps finished.
        finished: False after a clean stop by Ctrl-C, SIGTERM, SIGUSR1, SIGHUP or a callback.
        digest: of weights, optimiser, sampled ids and all metrics outside ``time/`` and ``verify/``; empty unless finished.
        signal: that asked for the stop; 0 where none did.

    >>> RunOutcome(folder=Path("no/such"), step=3, finished=False)
    RunOutcome(folder='no/such', step=3, finished=False)
    """

    folder: Path
    step: int
    finished: bool
    digest: str = ""
    signal: int = 0

    @property
    def accuracy(self) -> float | None:
        """Held-out greedy accuracy at the end, in [0, 1]; None where nothing was evaluated."""
        return self._accuracies()[1]

    @property
    def accuracy_before(self) -> float | None:
        """The same before reinforcement learning, or at the first evaluation; None where nothing was evaluated."""
        return self._accuracies()[0]

    @property
    def sentence(self) -> str:
        """What was trained, and from which to which held-out accuracy, with 95 % intervals over items.

        Raises:
            DataError: the folder is gone or damaged.
        """
        from assay.measure import read_run
        from assay.measure.report import verdict

        return verdict(read_run(self.folder))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the doctor finds in the run's curves, alarms first.

        Raises:
            DataError: the folder is gone or damaged.
        """
        from assay.measure import diagnose, read_run

        return diagnose(read_run(self.folder).history())

    @property
    def report(self) -> Path:
        """Path of ``report.html``, which is written when it is asked for, unless it is newer than the run's metrics.

        Raises:
            MissingExtraError: matplotlib is not installed.
            DataError: the folder is gone or damaged.
        """
        from assay.measure import write_report

        path, metrics = self.folder / "report.html", self.folder / "metrics.jsonl"
        fresh = path.exists() and metrics.exists() and path.stat().st_mtime_ns > metrics.stat().st_mtime_ns
        return path if fresh else write_report(self.folder)

    @property
    def history(self) -> Any:
        """All metrics: a `pandas.DataFrame` where pandas is installed, else the list of its rows.

        A row is a step: ``step`` and ``stage``, then every metric that any step has; what a step did not measure, such as
        held-out accuracy between evaluations, is NaN. The page of `assay.measure` says what each metric means.

        Raises:
            DataError: the folder is gone or damaged.
        """
        from assay.measure import read_metrics

        lines = read_metrics(self.folder)
        names = dict.fromkeys(name for line in lines for name in line.metrics)
        empty = dict.fromkeys(names, float("nan"))
        rows: list[dict[str, Any]] = [{"step": x.step, "stage": x.stage, **empty, **x.metrics} for x in lines]
        if find_spec("pandas") is None:
            return rows
        import pandas  # pyright: ignore[reportMissingImports, reportMissingModuleSource]

        return pandas.DataFrame(rows, columns=["step", "stage", *names])  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]

    def summary(self) -> str:
        """Several lines: how it ended, from which to which accuracy, what the doctor finds, and where the report is.

        Raises:
            DataError: the folder is gone or damaged.
        """
        from assay.measure import diagnose, read_run, write_report
        from assay.measure.report import verdict

        run = read_run(self.folder)
        ended = f"done: {self.step} steps in {self.folder}, digest {self.digest}"
        stopped = f"stopped after step {self.step}; continue with assay.train.resume({str(self.folder)!r})"
        try:
            report = f"report: {write_report(self.folder)}"
        except (AssayError, OSError) as error:
            report = f"no report: {error}"
        found = [str(finding) for finding in diagnose(run.history())]
        return "\n".join([ended if self.finished else stopped, verdict(run), *found, report])

    def _accuracies(self) -> tuple[float | None, float | None]:
        """Greedy accuracy before reinforcement learning and at the end."""
        from assay.measure import History, read_metrics

        series = History.of(read_metrics(self.folder)).learning()[GREEDY].finite()
        return (float(series.values[0]), float(series.values[-1])) if len(series) else (None, None)

    def __repr__(self) -> str:
        said = f"folder={str(self.folder)!r}, step={self.step}, finished={self.finished}"
        try:
            before, after = self._accuracies()
        except (AssayError, OSError):  # a folder that was moved
            before = after = None
        shown = "" if before is None or after is None else f", accuracy={after:.3f}, accuracy_before={before:.3f}"
        return f"RunOutcome({said}{shown})"
