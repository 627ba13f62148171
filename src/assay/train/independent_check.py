"""A second judge, written another way, who looks at a sample of the rollouts and pays for none of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.core.errors import ConfigError, RewardError
from assay.core.group import Group
from assay.core.protocols import Verifier
from assay.core.score import Score
from assay.core.seeds import derive
from assay.verify import ScoringPool

__all__ = ["IndependentCheck", "IndependentChecker", "IndependentVerdicts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndependentCheck:
    """What tells reward hacking: a verifier that the policy is not trained on, and how much of the training it sees.

    Its main component must mean what that of the reward means, on the same scale, 1 for a right answer. Where the two part, one
    of them is wrong; where they part more and more, the policy has found out how (`assay.measure.RewardHacking`).

    Attributes:
        verifier: another implementation of the task's verifier: a slow exact one, or hidden tests.
        share: of the rollouts that it judges, in (0, 1], drawn by a hash of the rollout.

    Raises:
        ConfigError: a share out of range.
    """

    verifier: Verifier
    share: float = 0.1

    def __post_init__(self) -> None:
        if not 0.0 < self.share <= 1.0:
            raise ConfigError(f"IndependentCheck.share={self.share}; use a share of the rollouts in (0, 1]")


@dataclass(frozen=True, slots=True)
class IndependentVerdicts:
    """What the second judge found in a step: its scores by rollout id, and the numbers."""

    scores: Mapping[str, Score] = field(default_factory=dict[str, Score])
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])


class IndependentChecker:
    """The second judge at work.

    Args:
        check: who judges, and how much.
        seed: of the run.
        deadline, workers, memory: as those of the reward.
    """

    def __init__(self, check: IndependentCheck, seed: int, deadline: float, workers: int, memory: float | None = None) -> None:
        self._check, self._seed = check, seed
        self.pool = ScoringPool(check.verifier, deadline, workers=workers, memory=memory)

    def look(self, groups: Sequence[Group]) -> IndependentVerdicts:
        """Judges a sample of graded rollouts once more.

        Returns:
            Scores, and over the rollouts that both judged: ``check/rollouts``, their number; ``check/reward`` and
            ``check/value``, the mean of the main component as the reward has it and as the check has it; ``check/gap``, the
            difference; ``check/overpaid``, the share that the reward takes for right (at least 1/2) and the check does not.
            Besides ``check/faults``, the share of the sample on which the check gave no verdict.

        Raises:
            RewardError: the check gave no verdict on more than half of the sample.
        """
        drawn = [
            (g.task, r, s)
            for g in groups
            for r, s in zip(g.rollouts, g.scores, strict=True)
            if s.valid and self._is_sampled(r.id)
        ]
        if not drawn:
            return IndependentVerdicts()
        try:
            scores = self.pool.score([(task, rollout) for task, rollout, _ in drawn])
        except RewardError as error:
            raise RewardError(f"Run.check, the second judge beside the reward: {error}") from error
        both = [(paid.primary, scores[r.id].primary) for _, r, paid in drawn if scores[r.id].valid]
        metrics = {"check/rollouts": float(len(both)), "check/faults": 1.0 - len(both) / len(drawn)}
        if both:
            reward, value = (sum(column) / len(both) for column in zip(*both, strict=True))
            overpaid = sum(paid >= 0.5 > found for paid, found in both) / len(both)
            metrics |= {"check/reward": reward, "check/value": value, "check/gap": reward - value, "check/overpaid": overpaid}
        return IndependentVerdicts(scores, metrics)

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run must remember of the verifier."""
        return self.pool.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores `state_dict`."""
        self.pool.load_state_dict(state)

    def _is_sampled(self, rollout: str) -> bool:
        return derive("check", self._seed, "", rollout) < self._check.share * 2.0**64
