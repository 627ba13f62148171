"""A teacher's opinion of each token as part of the advantage (on-policy distillation beside a reward)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from assay.core.errors import ConfigError
from assay.core.protocols import State
from assay.objective.credit.base import Credit, CreditTerm
from assay.objective.credit.paths import Path
from assay.objective.reducers import F, Partials, tally

__all__ = ["TeacherAdvantage", "teacher_gap"]


def teacher_gap(path: Path, gap: F, discount: float = 0.0, bound: float = float("inf")) -> F:
    """``[n]`` a teacher's advantage at each link: ``a_k = gap_k + discount a_(k+1)``, within ``+-bound``.

    Args:
        path: the rollouts' loss tokens, in order.
        gap: ``[n]`` ``logp_TEACHER - logp_STUDENT``, which has the expectation ``-KL(pi||teacher)``.
        discount: worth of the next token's; 0 looks at the token alone.
        bound: on the result.
    """
    return np.clip(path.to_go(gap, discount) if discount else gap, -bound, bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherAdvantage(CreditTerm):
    """``A_t' = A_t + coef (logp_TEACHER - logp_STUDENT)``: each token is credited with the teacher's opinion of it, besides what
    the rollout's outcome gives it (slime, ROLL, rLLM). Put it behind baseline and scale.

    Attributes:
        coef: weight of the opinion.
        teacher: whose; a column ``logp_TEACHER``.
        student: the policy that drew the rollouts: ``old`` or ``engine``.
        discount: worth of the next token's opinion (rLLM); 0 looks at the token alone.
        bound: on the opinion, before the weight.
    """

    coef: float = 1.0
    teacher: str = "teacher"
    student: str = "old"
    discount: float = 0.0
    bound: float = float("inf")

    def __post_init__(self) -> None:
        if not 0 < self.coef < float("inf"):
            raise ConfigError(
                f"TeacherAdvantage.coef={self.coef} does nothing or leads away from the teacher; use a positive number"
            )
        if self.teacher == self.student:
            raise ConfigError(
                f"TeacherAdvantage(teacher={self.teacher!r}, student={self.student!r}): the gap would be 0; name two"
            )
        check_gap("TeacherAdvantage", self.discount, self.bound)

    @property
    def needs(self) -> tuple[str, ...]:
        """Log-probabilities of both."""
        return (f"logp_{self.teacher}", f"logp_{self.student}")

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Adds the opinion per token; the rollout's advantage moves by its mean."""
        path, batch = Path.of(credit), credit.batch
        teacher, student = (np.asarray(batch.token(n), np.float64)[path.at] for n in self.needs)
        added = self.coef * teacher_gap(path, teacher - student, self.discount, self.bound)
        mean = tally(path.owner, added, len(credit.reward)) / np.maximum(path.length, 1)
        tokens = credit.per_token() + path.spread(added, len(credit.owner))
        told = credit.with_metrics(credit_teacher=float(added.mean()) if len(added) else 0.0)
        return replace(told, advantage=credit.advantage + mean, tokens=tokens)


def check_gap(part: str, discount: float, bound: float) -> None:
    """Raises ConfigError unless both make sense."""
    if not 0 <= discount <= 1:
        raise ConfigError(f"{part}.discount={discount} is the worth of the next token; use a number in [0, 1]")
    if not bound > 0:
        raise ConfigError(f"{part}.bound={bound} leaves nothing; use a positive number, or infinity for none")
