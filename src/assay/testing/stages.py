"""The contract of a stage: the same run again, exactly resumed, and bad input refused."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.core.config import dumps_toml, from_dict, loads_toml, to_dict
from assay.core.errors import AssayError
from assay.core.fields import class_key
from assay.core.protocols import TaskSource, Tracker
from assay.testing.contracts import Report, require

if TYPE_CHECKING:
    from assay.train.run import ModelSource, Run
    from assay.train.stage import Stage

__all__ = ["check_stage"]

STEPS, STOP = 4, 2
"""Steps of a run, and the checkpoint that a stopped one goes on from: it is stopped one step later."""


def check_stage(stage: Stage, *, tasks: TaskSource, model: ModelSource | None = None, bad: Sequence[Stage] = ()) -> Report:
    """Trains four steps by a stage, three times, in temporary folders, and holds it to what runs rely on.

    - Its settings are frozen, come back from a file as they were, and refuse a number of steps below 1.
    - Steps have a loss and a gradient.
    - Two runs with one seed have one digest, in one process too: nothing outside of the stage counts.
    - Stopped in the middle and resumed, a run ends with the digest of one that was not: all that the next step depends on is in
      `StageRunner.state_dict`, or follows from the number of the step.
    - Each of ``bad`` is refused before a run begins.

    Args:
        stage: settings, with any number of steps.
        tasks: of the run.
        model: that it starts from; a decoder of two layers over printable characters when None.
        bad: stages with settings or data that an `AssayError` must refuse before a run begins.

    Raises:
        ContractError: it does not hold; says what.

    >>> from assay_tasks import SortDigits
    >>> from assay.train import WarmUp
    >>> print(*check_stage(WarmUp(batch=4), tasks=SortDigits(levels=(1, 2))).passed, sep=", ")
    frozen, can be filed, learns, the same again, resumes exactly, refuses bad input
    """
    subject = f"stage {type(stage).__name__}"
    _check_settings(subject, stage)
    run = _run_of(replace(stage, steps=STEPS), tasks, model)
    with tempfile.TemporaryDirectory(prefix="assay-check-stage-") as place:
        first = _train_digest(subject, run, Path(place) / "first")
        again = _train_digest(subject, run, Path(place) / "again")
        require(first == again, subject, "two runs with one seed differ: a step must be a function of the seed and its number")
        resumed = _resume_digest(run, Path(place) / "resumed")
        require(
            first == resumed,
            subject,
            f"a run that was stopped and resumed from step {STOP} ends otherwise than one that was not: what the next step "
            "depends on must be in the runner's state_dict, or follow from the number of the step",
        )
        for number, wrong in enumerate(bad):
            refused = _refused(_run_of(wrong, tasks, model), Path(place) / f"bad-{number}")
            require(refused, subject, f"takes {wrong}; refuse it in __post_init__, check or check_rows")
    return Report(
        subject=subject, passed=("frozen", "can be filed", "learns", "the same again", "resumes exactly", "refuses bad input")
    )


def _check_settings(subject: str, stage: Stage) -> None:
    parameters: Any = getattr(stage, "__dataclass_params__", None)
    require(is_dataclass(stage) and parameters.frozen, subject, "is no frozen dataclass, so that no run.toml can hold it")
    table = loads_toml(dumps_toml(to_dict(stage)))
    back: Any = from_dict(type(stage), {name: value for name, value in table.items() if name != class_key(type(stage))})
    require(back == stage, subject, f"comes back from a file as {back}")
    try:
        replace(stage, steps=0)
    except AssayError:
        return
    require(False, subject, "takes steps=0; refuse it in __post_init__ (assay.core.fields.check_positive)")


def _run_of(stage: Stage, tasks: TaskSource, model: ModelSource | None) -> Run:
    from assay.core.rollout import Sampling
    from assay.runtime.settings import DecoderShape
    from assay.train.models import Scratch
    from assay.train.run import ContaminationCheck, Evaluation, Run

    shape = DecoderShape(
        hidden_size=32, num_layers=2, num_heads=2, num_kv_heads=1, head_dim=16, intermediate_size=64, max_positions=128
    )
    return Run(
        name="check-stage",
        model=model or Scratch(shape=shape),
        tasks=tasks,
        stages=(stage,),
        sampling=Sampling(max_new_tokens=8),
        evaluation=Evaluation(every=0, final_per_level=1, kl_to_base=False),
        checkpoint_every=STOP,
        contamination=ContaminationCheck(mode="off"),
    )


def _train_digest(subject: str, run: Run, folder: Path) -> str:
    """The digest of a run whose steps learned."""
    from assay.runs.journal import Journal
    from assay.train.driver import train

    digest = train(run, folder, progress=False).digest
    lines: list[Mapping[str, Any]] = [line["metrics"] for line in Journal(folder).records("metrics") if line["step"] > 0]
    silent = [i for i, m in enumerate(lines, 1) if "loss/total" not in m]
    require(not silent, subject, f"gives no 'loss/total' among the metrics of steps {silent}")
    require(
        any(m.get("grad/norm", 0.0) > 0 for m in lines), subject, "has no gradient (grad/norm) at any step: nothing is learned"
    )
    return digest


class _StoppedError(Exception):
    """Ends a run."""


class _Stop:
    """A tracker that ends a run one step behind its checkpoint."""

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Raises there."""
        if step > STOP:
            raise _StoppedError

    def close(self) -> None:
        """Nothing is open."""


def _resume_digest(run: Run, folder: Path) -> str:
    """The digest of a run that was stopped in the middle."""
    from assay.train.driver import resume, train

    def watch(run: Run, folder: Path, first: int) -> Sequence[Tracker]:
        return (_Stop(),)

    with suppress(_StoppedError):
        train(run, folder, watch=watch, progress=False)
    return resume(folder, run=run, progress=False).digest


def _refused(run: Run, folder: Path) -> bool:
    """Whether a run is refused before it begins."""
    from assay.train.driver import train

    def watch(run: Run, folder: Path, first: int) -> Sequence[Tracker]:
        raise _StoppedError

    try:
        train(run, folder, watch=watch, progress=False)
    except AssayError:
        return True
    except _StoppedError:
        return False
    return False
