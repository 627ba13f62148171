"""What rows of texts cannot give to an objective: looked at before a run begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.errors import PlanError
from assay.objective.objective import Objective

if TYPE_CHECKING:
    from assay.train.offline_rows import OneUpdate

__all__ = ["DEMONSTRATED", "PREFERRED", "check_given", "check_imitation", "check_preferred"]

DEMONSTRATED = "expert"
"""Stream of rows that are imitated."""
PREFERRED = "preference"
"""Stream of answers that were judged."""
ELSE = "train by it in a Reinforce stage"
_OF_ATTEMPTS = ("group", "valid", "length", "truncated", "tokens")


def check_given(stage: OneUpdate, stream: str, fitting: str) -> None:
    """Looks for what rows of texts cannot give to an objective.

    Args:
        stage: settings.
        stream: of its rows.
        fitting: names what can be used, for messages.

    Raises:
        PlanError: a term acts on none of the rows, or needs a column that only sampled rollouts bring.
    """
    of, objective = type(stage).__name__, stage.objective
    for term in objective.losses:
        if term.streams and stream not in term.streams:
            raise PlanError(
                f"{of}: {type(term).__name__} ({term.name!r}) acts on rows of {', '.join(term.streams)}, but the stage's rows "
                f"are of the stream {stream!r}, so it would do nothing: use {fitting}, add the stream to the term's streams, or "
                f"{ELSE}"
            )
    brought = objective.plan(stage.updates, stage.learner.offers).columns
    for part in (*objective.credit, *objective.losses):
        for column in part.needs:
            if column in brought and column not in ("ids", "mask"):
                raise PlanError(
                    f"{of}: {type(part).__name__} needs the column {column!r}, which comes with sampled rollouts, but the "
                    f"stage's rows are texts: use {fitting}, or {ELSE}"
                )


def check_imitation(stage: OneUpdate) -> None:
    """Looks for what rows that are imitated cannot give to an objective.

    Raises:
        PlanError: a part reads rewards, acts on none of the rows, or needs a column that only sampled rollouts bring.
    """
    for term in stage.objective.losses:
        if term.reward:
            raise PlanError(
                f"{type(stage).__name__}: {type(term).__name__} ({term.name!r}) reads rewards, and demonstrations have "
                "none: use nll(), or judge rollouts in a Reinforce stage, answers in a Prefer stage"
            )
    check_given(stage, DEMONSTRATED, "nll()")


def check_preferred(stage: OneUpdate) -> None:
    """Looks for what a preference stage cannot give to an objective.

    Raises:
        PlanError: nothing asks which answer is better; a part acts on no preference, or takes statistics of none; it needs a
            column that only sampled rollouts bring, or a component that only a verifier gives. Names the part and a fix.
    """
    objective = stage.objective
    if not objective.uses_reward:
        names = " and ".join(type(term).__name__ for term in objective.losses)
        raise PlanError(
            f"Prefer: {names} asks for no rewards, so it would imitate rejected answers as it does chosen ones: use a method for "
            "preferences (dpo, orpo, kto, ...); dpo(nll=1.0) imitates the chosen ones too"
        )
    check_given(stage, PREFERRED, "a method for preferences (dpo, simpo, kto, ...)")
    if objective.credit and PREFERRED not in objective.scalarise.streams:
        raise PlanError(
            f"Prefer: {type(objective.credit[0]).__name__} takes statistics of {', '.join(objective.scalarise.streams)}, so of "
            f"none of the stage's rows: add {PREFERRED!r} to Scalarise.streams, or {ELSE}"
        )
    _check_rollout_columns(stage, objective)
    _check_reward(stage, objective)


def _check_rollout_columns(stage: OneUpdate, objective: Objective) -> None:
    for part in (*objective.credit, *objective.losses):
        for name in part.rollout_columns:
            if name not in _OF_ATTEMPTS:
                raise PlanError(
                    f"Prefer: {type(part).__name__} reads {name!r} of each rollout, which the stage's rows do not have: leave "
                    f"the part out, or {ELSE}"
                )


def _check_reward(stage: OneUpdate, objective: Objective) -> None:
    for name, _ in objective.scalarise.weights:
        if name != "reward":
            raise PlanError(
                f"Prefer: Scalarise.weights names a verifier's component {name!r}, but no verifier judges the stage's rows: "
                f"leave the weights out, or {ELSE}"
            )
