"""Supervised learning from rows that the run itself has collected: expert iteration, and self-distillation between stages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.fields import later
from assay.core.protocols import Tokenizer
from assay.train.collect_rows import read_collected
from assay.train.given_checks import check_imitation
from assay.train.imitate import Imitate
from assay.train.offline_rows import RowsRunner
from assay.train.runner import StageRunner
from assay.train.stage import StageRows, TokenCounts

if TYPE_CHECKING:
    from assay.train.run import Run
    from assay.train.session import Parts

__all__ = ["ImitateCollected"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImitateCollected(Imitate):
    """A supervised stage on what earlier `Collect` stages of the run kept.

    Attributes:
        rows_of: ``last``: rows of the last of these stages; ``all``: of all of them.
        start: ``last``: goes on from the weights of the stage before; ``first``: begins anew from those that the run began with.
        batch: rows per step; all of them where there are fewer.

    Raises:
        ConfigError: data are given.

    Carries: Echo Chamber's expert iteration (arXiv 2504.07912), with `Collect` and `Cycle`.

    >>> ImitateCollected(steps=20, start="first").rows_of
    'last'
    """

    rows_of: Literal["last", "all"] = later("last")
    start: Literal["last", "first"] = later("last")

    def __post_init__(self) -> None:
        super(ImitateCollected, self).__post_init__()
        if self.data:
            raise ConfigError("ImitateCollected.data: its rows are those that the run collects; leave it out, or use Imitate")
        for name in ("rows_of", "start"):
            if getattr(self, name) not in ("last", "first" if name == "start" else "all"):
                raise UnknownNameError(
                    f"ImitateCollected.{name}", getattr(self, name), ("last", "first" if name == "start" else "all")
                )

    def open(self, parts: Parts) -> StageRunner:
        """The stage at work.

        Raises:
            ConfigError: there is no run folder.
            DataError: nothing was collected.
        """
        if parts.folder is None:
            raise ConfigError("ImitateCollected reads the run's folder, and there is none; train the run in one")
        rows = read_collected(parts.folder, parts.step, self.rows_of)
        if not rows:
            raise DataError(
                f"{parts.folder}/collected.jsonl holds no row of a stage before step {parts.step}: put a stage Collect before "
                "ImitateCollected; where there is one, no rollout passed it: practise easier levels, sample more, or lower "
                "Collect.least"
            )
        made = Imitate(data=rows, batch=min(self.batch, len(rows)), learn=self.learn, steps=self.steps, objective=self.objective)
        parts.news.append(("rows", f"{len(rows)} collected rows are learned from, {made.batch} per step"))
        return RowsRunner(parts, made.rows(parts.run, parts.tokenizer))

    def check(self, run: Run) -> None:
        """Looks at the objective, and for a stage before it that collects."""
        check_imitation(self)
        at = next(i for i, stage in enumerate(run.stages) if stage is self)
        if not any(getattr(stage, "collects", False) for stage in run.stages[:at]):
            raise ConfigError(
                "ImitateCollected learns from what a stage before it collected, and there is none: put a Collect in front of it"
            )

    def check_rows(self, run: Run, tokenizer: Tokenizer, context: int) -> TokenCounts:
        """Nothing: there are no rows yet."""
        return TokenCounts(0, 0)

    def training_texts(self) -> Iterator[tuple[str, str]]:
        """None: they are the run's own tasks."""
        return iter(())

    def count_rows(self, run: Run) -> StageRows:
        """A batch for each step."""
        return StageRows(step=self.batch)
