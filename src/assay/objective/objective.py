"""An objective as a value: rewards to advantages, a policy term, an aggregation, further terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from assay.core.plan import Offers, Plan, Scope
from assay.core.util.renamed import RenamedMembers
from assay.objective.credit.base import CreditTerm
from assay.objective.credit.reward import Scalarise
from assay.objective.loss.aggregate import Aggregation, SeqMean
from assay.objective.loss.base import LossTerm
from assay.objective.plan import compile_plan, is_fresh
from assay.objective.reducers import Local, Reducer
from assay.objective.settings import check_parts

if TYPE_CHECKING:
    from assay.objective.program import Program

__all__ = ["Objective"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective(RenamedMembers):
    """A method's loss as a composition of parts; a variation is `dataclasses.replace`, a further term is ``objective + term``.

    Attributes:
        scalarise: components to one reward per rollout.
        credit: transforms from reward to advantage, in order.
        policy: the term that teaches the policy from rewards; None where none does.
        aggregate: how per-token losses become one number, for every term that does not say otherwise.
        terms: additive terms.
        brings: token columns that the user's sampler or rows promise to bring; no pass of the learner fills them.

    Raises:
        ConfigError: a setting of a part is not of the kind that the part declares, or is NaN.

    >>> from assay.objective import Entropy, grpo
    >>> (grpo(kl=0.0) + Entropy(coef=0.001)).plan().live
    ('logp_new', 'entropy')
    """

    renamed_members: ClassVar[Mapping[str, str]] = {"pays": "uses_reward"}
    named_by: ClassVar[str] = "a method of 'assay methods', with all that it needs"

    scalarise: Scalarise = field(default_factory=Scalarise)
    credit: tuple[CreditTerm, ...] = ()
    policy: LossTerm | None = None
    aggregate: Aggregation = field(default_factory=SeqMean)
    terms: tuple[LossTerm, ...] = ()
    brings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_parts(self)

    @property
    def losses(self) -> tuple[LossTerm, ...]:
        """All terms of the loss, the policy's first."""
        return self.terms if self.policy is None else (self.policy, *self.terms)

    @property
    def uses_reward(self) -> bool:
        """Whether any term reads rewards, so that the credit chain runs."""
        return any(t.reward for t in self.losses)

    @property
    def min_group(self) -> int:
        """Rollouts that a context needs, so that every baseline means something."""
        return max((p.min_group for p in (*self.credit, *self.losses)), default=1)

    @property
    def grouped(self) -> bool:
        """Whether any part compares the rollouts of a group."""
        ways = [t.aggregate or self.aggregate for t in self.losses if t.averages]
        return any(t.scope is Scope.GROUP for t in self.credit if self.uses_reward) or any(
            p.grouped for p in (*self.losses, *ways)
        )

    def __add__(self, term: LossTerm) -> Objective:
        return replace(self, terms=(*self.terms, term))

    def plan(self, updates: int = 0, offers: Offers | None = None) -> Plan:
        """What the composition asks of the machinery; see `assay.objective.plan.compile_plan`.

        Args:
            updates: optimiser steps per rollout batch; 0 when unknown.
            offers: what the learner can do; with it, what the learner cannot do is refused.

        Raises:
            PlanError: the composition cannot be right, or the learner does not offer what it needs; names the parts and a fix.

        >>> from assay.core import Offers
        >>> from assay.objective import Kl, nll
        >>> (nll() + Kl(anchor="teacher")).plan(offers=Offers(models=("policy", "ref")))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        assay.core.errors.PlanError: Kl needs 'logp_teacher', but the learner has no model 'teacher': it offers policy, ref. ...
        """
        return compile_plan(self, updates, offers)

    def compile(self, updates: int = 0, reducer: Reducer | None = None, offers: Offers | None = None) -> Program:
        """The loss that a learner calls.

        Args:
            updates, offers: as in `plan`.
            reducer: merges statistics over ranks; None on a single process.

        Raises:
            PlanError: as `plan`.
        """
        from assay.objective.program import Program

        return Program(self, compile_plan(self, updates, offers), fresh=is_fresh(self, updates), reducer=reducer or Local())
