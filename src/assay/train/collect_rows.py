"""The stage that samples and learns nothing: it keeps rollouts as rows, for a later stage to learn from (rejection sampling)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.fields import later
from assay.core.group import Group
from assay.core.protocols import Tokenizer
from assay.core.rollout import Rollout, ids_of
from assay.core.timing import StepTimer
from assay.objective.methods import nll
from assay.objective.objective import Objective
from assay.rollout.decode_text import text_of
from assay.runs.journal import Journal
from assay.train.collect import collect_groups
from assay.train.group_outcomes import outcomes_of
from assay.train.metrics import step_metrics
from assay.train.reinforce import Reinforce
from assay.train.reinforce_runner import ReinforceRunner
from assay.train.runner import StageRunner, StepResult
from assay.train.stage import Stage

if TYPE_CHECKING:
    from assay.train.session import Parts
    from assay.train.wiring import Wiring

__all__ = ["Collect", "CollectRunner", "read_collected"]

FILE = "collected"
"""Name in the journal of the rows that were kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collect(Reinforce):
    """A stage that samples as `Reinforce` does and keeps rollouts as rows in the run folder's ``collected.jsonl``; the weights
    stay as they are.

    A row has what `RewardedRow` reads: ``messages`` or ``prompt``, ``answer``, ``reward``, and ``logprobs`` where the answer's
    text has the very tokens that were sampled. Rollouts of several calls are counted and left out.

    Attributes:
        keep: ``right``: rollouts whose metric reaches ``least``; ``wrong``: those below it; ``all``.
        least: of the tasks' own metric.
        per_prompt: rows of a group at most, in their order; 0 for all. Equal answers are kept once.

    Raises:
        UnknownNameError: another word for what is kept.
        ConfigError: a number out of range.

    >>> Collect(steps=4, groups=8, group_size=16).keep
    'right'
    """

    collects: ClassVar[bool] = True

    objective: Objective = field(default_factory=nll)
    keep: Literal["right", "wrong", "all"] = later("right")
    least: float = later(1.0)
    per_prompt: int = later(4)

    def __post_init__(self) -> None:
        super(Collect, self).__post_init__()
        if self.keep not in ("right", "wrong", "all"):
            raise UnknownNameError("Collect.keep", self.keep, ("right", "wrong", "all"))
        if self.per_prompt < 0:
            raise ConfigError(f"Collect.per_prompt={self.per_prompt}; use 0 for all, or a number of rows")

    @property
    def name(self) -> str:
        """Stage name in the journal."""
        return "collect"

    def open(self, parts: Parts) -> StageRunner:
        """The stage at work."""
        return CollectRunner.of(self, parts)

    def wire(self, wiring: Wiring, objective: Objective) -> Stage:
        """Raises ConfigError: no method is trained here."""
        raise ConfigError(
            f"{wiring.method.name}: a stage Collect learns nothing; name the method in the stage that learns from its rows"
        )


@dataclass
class CollectRunner(ReinforceRunner):
    """The stage at work."""

    async def advance(self) -> StepResult:
        """One batch of rollouts."""
        p, stage = self.parts, cast("Collect", self.stage)
        with StepTimer() as timer:
            taken = await collect_groups(self)
            rows = [row for group in taken.kept for row in _rows_of(stage, group, p.tokenizer, p.step - p.stage_step)]
            outcomes = outcomes_of(taken.graded, None)
            self.observe(outcomes)
            p.remember(taken.graded)
        metrics = step_metrics(taken.graded, None, {}, self.metrics(), timer.seconds()) | dict(taken.metrics)
        del metrics["waste/rows_filtered"]  # nothing was to be learned from
        several = sum(len(r.calls) > 1 for g in taken.kept for r in g.rollouts)
        metrics |= {"collect/rows": float(len(rows)), "collect/several_calls": float(several), "proof/state": float(p.proved)}
        return StepResult(metrics=metrics, groups=tuple(taken.graded), outcomes=tuple(outcomes), collected=tuple(rows))


def _rows_of(stage: Collect, group: Group, tokenizer: Tokenizer, begin: int) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for rollout, score in zip(group.rollouts, group.scores, strict=True):
        if not score.valid or len(rollout.calls) != 1 or not len(rollout.calls[0].completion.ids):
            continue
        if stage.keep != "all" and (score.primary >= stage.least) != (stage.keep == "right"):
            continue
        row = _row(rollout, tokenizer)
        if row["answer"]:
            found.setdefault(row["answer"], {**row, "reward": score.primary, "task": group.task.id, "since": begin})
    rows = list(found.values())
    return rows[: stage.per_prompt] if stage.per_prompt else rows


def _row(rollout: Rollout, tokenizer: Tokenizer) -> dict[str, Any]:
    (call,) = rollout.calls
    ids, messages = call.completion.ids, rollout.context.messages
    answer = text_of(tokenizer, ids, call.completion)
    asked = [{"role": m.role, "content": m.content} for m in messages]
    plain = len(asked) == 1 and asked[0]["role"] == "user"
    row: dict[str, Any] = {"prompt": asked[0]["content"] if plain else asked, "answer": answer}
    if ids.tolist() == ids_of([*tokenizer.encode(answer), tokenizer.eos]).tolist():
        row["logprobs"] = call.completion.logp_engine.tolist()
    return row


def read_collected(folder: Path, until: int, which: Literal["last", "all"] = "last") -> tuple[Mapping[str, Any], ...]:
    """Rows that a run collected, equal questions with equal answers once.

    Args:
        folder: of the run.
        until: steps that were finished when the reader began; later rows are not read.
        which: those of the last stage that collected, or all.
    """
    lines: Sequence[Mapping[str, Any]] = [line for line in Journal(folder).records(FILE) if line["step"] <= until]
    last = max((line["since"] for line in lines), default=0)
    wanted = lines if which == "all" else [line for line in lines if line["since"] == last]
    rows = {(str(line["prompt"]), line["answer"]): line for line in wanted}
    return tuple({k: v for k, v in line.items() if k not in ("step", "stage", "since", "task")} for line in rows.values())
