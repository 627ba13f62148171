"""Learning from a teacher by the tokens that the policy itself sampled: as a divergence, or as the advantage of a policy
gradient.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.plan import Forward
from assay.objective.credit.paths import path_of
from assay.objective.credit.teacher import check_gap, teacher_gap
from assay.objective.loss.base import View
from assay.objective.loss.kl import Kl
from assay.objective.loss.policy import PolicyGradient
from assay.objective.loss.teachers import Teachers
from assay.objective.loss.trust import TrustRegion
from assay.objective.reducers import F, Reducer, tally

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["TeacherGradient", "TeacherKl"]

_STUDENTS = ("new", "old", "engine")
_INF = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherKl(Kl):
    """`Kl` to the teacher of each rollout's domain.

    Attributes:
        teachers: who they are; rollouts without one are left out, and stay in the denominators.
    """

    anchor: str = field(default="teacher", init=False, repr=False)
    teachers: Teachers = field(default_factory=Teachers)

    @property
    def sparse(self) -> bool:
        """Rollouts without a teacher have no weight."""
        return bool(self.teachers.by)

    @property
    def needs(self) -> tuple[str, ...]:
        """The teachers' columns."""
        return self.teachers.needs

    @property
    def forwards(self) -> tuple[Forward, ...]:
        """The teachers' passes."""
        return self.teachers.forwards

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """What names a rollout's teacher."""
        return self.teachers.rollout_columns

    @property
    def anchors(self) -> tuple[str, ...]:
        """The policy under the ratio."""
        return () if self.against in (None, "self") else (str(self.against),)

    def prepare(self, batch: Batch, share: F, reducer: Reducer) -> Mapping[str, F]:
        """The aggregation's weights, and each token's teacher."""
        logp, taught = self.teachers.of(batch)
        return {"weight": np.where(taught, share, 0.0), "teacher": logp}

    def other(self, view: View) -> Tensor:
        """``[n]`` log-probabilities of the teacher."""
        return view.own("teacher")


@dataclass(frozen=True, slots=True, eq=False)
class _Taught(View):
    """A view whose advantage is a teacher's: ``[N]`` over all tokens of the micro-batch."""

    opinion: Tensor | None = None

    def column(self, name: str) -> Tensor:
        """``[n]`` values of a column."""
        if name == "advantage" and self.opinion is not None:
            return self.opinion[self.indices(self.index)]
        return View.column(self, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherGradient(PolicyGradient):
    """On-policy distillation: the policy gradient with a teacher's opinion of the sampled token as its advantage, ``A_t =
    sg(logp_TEACHER - logp_STUDENT)``, whose mean is ``-KL(pi||teacher)``. It reads no reward.

    All of `PolicyGradient` holds: ratio, trust region by the sign of A, detached weights.

    Attributes:
        teachers: who they are; rollouts without one are left out, and stay in the denominators.
        student: whom the teacher is compared with: ``new``, the current policy; ``old`` or ``engine``, the one that drew.
        discount: worth of the next token's opinion (rLLM); 0 looks at the token alone.
        bound: on the opinion (verl: 10).
        prefix: weight of early tokens (IW-OPD): ``A_t`` times ``1 + prefix (1 - sum_(t' < t) |A_t'| / sum |A_t'|)``, for what an
            early token decides, later ones inherit; 0 weighs all alike.
    """

    trust: TrustRegion | None = None
    teachers: Teachers = field(default_factory=Teachers)
    student: str = "new"
    discount: float = 0.0
    bound: float = _INF
    prefix: float = 0.0
    label: str = "teacher"

    def __post_init__(self) -> None:
        PolicyGradient.__post_init__(self)
        if self.student not in _STUDENTS:
            raise UnknownNameError("student", self.student, _STUDENTS)
        check_gap("TeacherGradient", self.discount, self.bound)
        if not 0 <= self.prefix < _INF:
            raise ConfigError(f"TeacherGradient.prefix={self.prefix}; use a weight of 0 or more (IW-OPD: 0.5)")
        if self.student == "new" and (self.discount or self.prefix):
            raise ConfigError(
                f"TeacherGradient(student='new', discount={self.discount}, prefix={self.prefix}) looks at other tokens than its "
                "own, and those of the current policy are not there yet: use student='old' or 'engine'"
            )

    @property
    def terminal(self) -> bool:
        """It teaches, but not from rewards: a policy term may stand beside it."""
        return False

    @property
    def sparse(self) -> bool:
        """Rollouts without a teacher have no weight."""
        return bool(self.teachers.by)

    @property
    def needs(self) -> tuple[str, ...]:
        """The teachers' columns, the student's where it is not the current policy, and what the parts read."""
        student = () if self.student == "new" else (f"logp_{self.student}",)
        return (*self.teachers.needs, *student, *super(TeacherGradient, self).needs)

    @property
    def forwards(self) -> tuple[Forward, ...]:
        """The teachers' passes."""
        return self.teachers.forwards

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """What names a rollout's teacher."""
        return self.teachers.rollout_columns

    @property
    def reward(self) -> bool:
        """It reads none."""
        return False

    def prepare(self, batch: Batch, share: F, reducer: Reducer) -> Mapping[str, F]:
        """Weights, and the teacher's log-probability (``student="new"``) or its opinion."""
        logp, taught = self.teachers.of(batch)
        own = {"teacher": logp} if self.student == "new" else {"opinion": self._opinion(batch, logp)}
        acting = TokenColumn("advantage", np.where(taught, own.get("opinion", np.ones(len(logp))), 0.0), "objective")
        return {**super(TeacherGradient, self).prepare(batch.with_tokens(acting), share, reducer), **own}

    def _opinion(self, batch: Batch, logp: F) -> F:
        """``[N]`` advantages, 0 outside the loss mask."""
        path = path_of(batch)
        gap = logp[path.at] - np.asarray(batch.token(f"logp_{self.student}"), np.float64)[path.at]
        opinion = teacher_gap(path, gap, self.discount, self.bound)
        if self.prefix:
            size = np.abs(opinion)
            before = np.cumsum(np.append(0.0, size))[:-1]
            before = before - before[path.start[path.owner]]
            total = tally(path.owner, size, len(path.length))[path.owner]
            opinion = opinion * (1 + self.prefix * (1 - before / np.where(total > 0, total, 1.0)))
        return path.spread(opinion, len(logp))

    def apply(self, view: View) -> Tensor:
        """``[n]`` surrogate loss."""
        return super(TeacherGradient, self).apply(self._teacher_view(view))

    def report(self, view: View) -> Mapping[str, Tensor]:
        """As `PolicyGradient`, and ``opinion``: mean of the advantage."""
        seen = self._teacher_view(view)
        return {**super(TeacherGradient, self).report(seen), "opinion": seen.column("advantage")}

    def _teacher_view(self, view: View) -> View:
        if self.student == "new":
            teacher = view.tensor(view.batch.token(f"{view.name}/teacher"))
            opinion = (teacher - view.tensors["logp_new"].detach()).clamp(-self.bound, self.bound)
        else:
            opinion = view.tensor(view.batch.token(f"{view.name}/opinion"))
        return _Taught(view.batch, view.tensors, view.index, view.name, view.fresh, opinion)
