"""How a stage scores its rollouts: by its scorer, which may ask the learner and the run's judges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import EngineError, RewardError
from assay.core.protocols import Tokenizer
from assay.core.rollout import Ids, Rollout, Stop
from assay.core.score import Fault, Score
from assay.core.scoring import JudgePort, RolloutGroup
from assay.core.timing import span
from assay.scorers import FromTasks
from assay.train.early_scores import EarlyScores
from assay.train.grade import Posed, ScoredRollouts, VerifierContext, grade, no_stage
from assay.train.stage_learner import scoring_model
from assay.verify.abilities import ability_of
from assay.verify.user_reward import abstained

if TYPE_CHECKING:
    from assay.train.reinforce_runner import ReinforceRunner
    from assay.train.run import Run
    from assay.train.session import Parts
    from assay.train.stage import Stage

__all__ = ["StageContext", "grade_rollouts", "weigh_rewards"]


class StageContext(VerifierContext):
    """What a scorer may ask for in a stage.

    Args:
        parts: of the stage.
    """

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts.pool)
        self._parts = parts

    @property
    def step(self) -> int:
        """Global steps finished."""
        return self._parts.step

    @property
    def tokenizer(self) -> Tokenizer:
        """Of the policy."""
        return self._parts.tokenizer

    async def verify(self, groups: Sequence[RolloutGroup]) -> list[tuple[Score, ...]]:
        """As `VerifierContext.verify`; verdicts that were given while others were sampled stand."""
        known, ids = self._parts.judged, [r.id for g in groups for r in g.rollouts]
        if not known or not all(name in known for name in ids):
            return await super().verify(groups)
        return [tuple(known[r.id] for r in g.rollouts) for g in groups]

    async def logprob(self, rows: Sequence[Ids], model: str = "policy") -> list[NDArray[np.float32]]:
        """By the learner: of the policy, or of one of its anchors."""
        with span("logprob"):
            return self._parts.learner.score(rows, scoring_model(self._parts.settings, model)) if rows else []

    def judge(self, name: str) -> JudgePort:
        """One of ``Run.judges``."""
        if self._parts.judges is None:
            raise no_stage("judges")
        return self._parts.judges.client(name, self._parts.step)


def weigh_rewards(run: Run, stage: Stage) -> Stage:
    """The stage with an objective that learns from ``reward`` and not from ``correct``, where the tasks' rewards are a weighted
    sum, or the scorer says that its reward is (``weighted_sum``), and the objective itself weighs no components.
    """
    reward: Any = getattr(stage, "reward", None)
    summed = getattr(reward, "weighted_sum", False) or (
        isinstance(reward, FromTasks) and ability_of(run.tasks.verifier(), "weighted_sum")
    )
    if not summed or stage.objective.scalarise.combines:
        return stage
    scalarise = replace(stage.objective.scalarise, weights=(("reward", 1.0),))
    return cast("Stage", replace(cast("Any", stage), objective=replace(stage.objective, scalarise=scalarise)))


async def grade_rollouts(
    s: ReinforceRunner, posed: Posed, rollouts: Sequence[Rollout], early: EarlyScores | None = None
) -> list[ScoredRollouts]:
    """`grade` by the scorer of a stage; ``early`` has what was asked for while others were sampled.

    Raises:
        RewardError: no score on more than half of the rollouts, or a user's reward failed and `Run.reward_errors` says to stop;
            shows the first failure.
    """
    graded = await grade(s.scorer, StageContext(s.parts), posed, rollouts, early.score if early else None)
    if (error := s.parts.reward_error()) is not None:
        raise error
    shown = sum([len(a.rollouts) for a in graded])
    failed = [(r, x) for a in graded for r, x in zip(a.rollouts, a.scores, strict=True) if not x.valid]
    if failed:
        shown -= sum([r.stop is Stop.ERROR for a in graded for r in a.rollouts])
        failed = [(r, x) for r, x in failed if r.stop is not Stop.ERROR]
    if len(failed) < shown:  # that a reward has no verdict on some is what it says of them
        failed = [(r, x) for r, x in failed if not abstained(x)]
    if 2 * len(failed) > shown:
        rollout, score = failed[0]
        outside = all(x.fault is Fault.INFRA for _, x in failed)  # no code of the user's is to be changed
        cause = EngineError(str(score.info.get("error", score.fault))) if outside else None
        raise RewardError(
            f"{type(s.scorer).__name__} gave no score on {len(failed)} of {shown} rollouts; training on the rest would be "
            f"blind. The first failure: {score.info.get('error', score.fault)}, on the answer {rollout.text[:200]!r}"
        ) from cause
    return graded
