"""``assay tasks admit``: what a model may practise of a family, and what is only evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.cli.options import parse
from assay.cli.output import busy, cell, grid, note, show
from assay.cli.sources import source
from assay.core.config import to_dict
from assay.core.errors import ConfigError
from assay.core.rollout import Sampling

if TYPE_CHECKING:
    from assay.select import Admission

__all__ = ["admit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksAdmitOptions:
    """Measures a model on the lowest level of every arm of a suite, and selects the arms to train on: those that it solves
    sometimes. What it hardly ever solves is to be warmed up first; what it nearly always solves is for evaluation only.

    Attributes:
        model: a run folder, or a model folder in Hugging Face format (RUN/start holds a run's starting weights).
        name: a suite, a task family or one of its arms ('assay tasks list' names them), or my_file.py:my_source.
        n: questions of each arm, one answer each at temperature 1.
        least: accuracy from which an arm is practised.
        most: accuracy up to which it is.
        warmed: the model has had its warm-up: what it still fails is for evaluation only.
        max_new_tokens: most tokens in an answer; 64 when not given.
        seed: seed of the sampling noise.
        out: a new file for the result as JSON; a run is narrowed by assay.select.Admission.
        json: print JSON.
    """

    model: Path = field(metadata={"positional": True, "arg": {"metavar": "RUN_OR_MODEL"}})
    name: str = field(metadata={"positional": True, "arg": {"metavar": "SUITE"}})
    n: int = field(default=64, metadata={"arg": {"metavar": "N", "aliases": ["-n"]}})
    least: float = 0.1
    most: float = 0.6
    warmed: bool = False
    max_new_tokens: int | None = None
    seed: int = 0
    out: Path | None = field(default=None, metadata={"arg": {"metavar": "OUT"}})
    json: bool = False


def admit(args: list[str]) -> int:
    """``assay tasks admit RUN_OR_MODEL SUITE``."""
    own = parse(TasksAdmitOptions, args, "assay tasks admit")

    from assay.cli.asked_model import check_model  # loads the run's parts, which lists of families do not need

    check_model(own.model)
    if own.out is not None and own.out.exists():
        raise ConfigError(f"--out {own.out} is there already; name a new file")
    family = source(own.name)
    from assay.select import admission

    sampling = None if own.max_new_tokens is None else Sampling(max_new_tokens=own.max_new_tokens)
    with busy(f"asking {own.model} {len(family.arms())} arms of {family.name}"):
        found = admission(
            own.model, family, n=own.n, least=own.least, most=own.most, warmed=own.warmed, sampling=sampling, seed=own.seed
        )
    if own.out is not None:
        found.write(own.out)
    value = {**to_dict(found), "only_evaluated": list(found.only_evaluated)}
    return show(own.json, value, lambda: _text(found, own.out))


def _text(found: Admission, out: Path | None) -> None:
    from assay.select import ArmVerdict

    print(f"{found.model} on {found.tasks}: accuracy at temperature 1 at the lowest level of each arm, 95 % Wilson intervals")
    grid(("arm", "part", "level", "accuracy", "verdict", "sure"), _rows(found), right=(2,))
    heads = ("part", *(str(verdict) for verdict in ArmVerdict))
    grid(heads, [[part, *of.values()] for part, of in found.parts.items()], right=range(1, len(heads)))
    if found.only_evaluated:
        note(f"for evaluation only, no arm of it is practised: {', '.join(found.only_evaluated)}")
    unsure = sum(not arm.sure for arm in found.arms)
    if unsure:
        note(f"{unsure} of {len(found.arms)} verdicts might change with more questions (-n)")
    if out is not None:
        print(f"{out}; a run narrowed by it: assay.select.Admission.read({str(out)!r}).admit(run)")


def _rows(found: Admission) -> Sequence[Sequence[Any]]:
    return [
        [a.arm, a.part, a.level, f"{a.accuracy:.2f} ({a.low:.2f}, {a.high:.2f})", str(a.verdict), cell(a.sure)]
        for a in found.arms
    ]
