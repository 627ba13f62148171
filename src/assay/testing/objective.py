"""The laws of the objective algebra, as checks for built-in terms and users' own.

Each law computes loss and gradient twice, in float64, on a small random batch, along two ways that must agree: whole or in
micro-batches, on one rank or on two, with a rollout in one row or in several, with or without the rows that may be skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from assay.core.batch import Batch
from assay.core.plan import Plan
from assay.objective.credit.base import CreditTerm
from assay.objective.credit.baseline import Center
from assay.objective.loss.aggregate import Aggregation, SeqSum
from assay.objective.loss.base import LossTerm, View
from assay.objective.loss.likelihood import Nll
from assay.objective.loss.policy import PolicyGradient
from assay.objective.loss.ratio import Ratio
from assay.objective.loss.score import ScoreLoss
from assay.objective.loss.select import Selector
from assay.objective.loss.sets.base import SetLoss
from assay.objective.loss.trust import TrustRegion
from assay.objective.loss.weights import TokenWeight
from assay.objective.loss.wrap import Where
from assay.objective.objective import Objective
from assay.objective.plan import forward_of
from assay.objective.program import Program
from assay.objective.reducers import F
from assay.testing.batches import head_widths, random_batch, random_live, shard, split_rows
from assay.testing.contracts import Report, require
from assay.testing.laws import LAWS, Trial, subject_of
from assay.testing.passes import RanksOutcome, evaluate, over_ranks

__all__ = [
    "RanksOutcome",
    "check_objective",
    "check_term",
    "evaluate",
    "objective_around",
    "over_ranks",
    "random_batch",
    "random_live",
    "shard",
    "split_rows",
]

Part = CreditTerm | LossTerm | TokenWeight | Aggregation | Ratio | TrustRegion | SetLoss | Selector


def check_objective(objective: Objective, seeds: Sequence[int] = range(6)) -> Report:
    """Holds a composition to the laws that need no knowledge of what it computes.

    Raises:
        ContractError: names the law, the seed and both numbers.
        PlanError: the composition does not compile.
    """
    plan = objective.plan()
    for seed in seeds:
        batch, live = _random_batch_for(objective, plan, seed)
        trial = Trial(objective, batch, live, seed, plan, evaluate(Program(objective, plan), batch, live))
        for law in LAWS.values():
            law(trial)
    return Report(subject=subject_of(objective), passed=tuple(LAWS))


def check_term(term: Part, seeds: Sequence[int] = range(6)) -> Report:
    """Holds one part, built-in or a user's own, to the laws, inside the smallest objective that uses it.

    A part that makes a loss must also have a gradient on some batch, and a trust region's loss the gradient that its weight says.

    Args:
        term: a credit term, a loss term, a token weight, an aggregation, a ratio, a trust region, a loss on scores or a selector.
        seeds: batches to try.

    Raises:
        ContractError: names the law, the seed and both numbers.

    >>> from assay.objective import Center
    >>> from assay.testing.objective import check_term
    >>> check_term(Center("leave_one_out"), seeds=[0]).passed[0]
    'partition'
    """
    objective = objective_around(term)
    report = check_objective(objective, seeds)
    if not isinstance(term, CreditTerm | TokenWeight | Aggregation):
        plan = objective.plan()
        moved = any(bool(np.any(g)) for seed in seeds for g in _outcome(objective, plan, seed).gradients.values())
        require(moved, type(term).__name__, f"the gradient is zero on all of the seeds {list(seeds)}: the term teaches nothing")
        report = replace(report, passed=(*report.passed, "gradient"))
    if isinstance(term, TrustRegion):
        for seed in seeds:
            _weighs(term, objective, seed)
        report = replace(report, passed=(*report.passed, "weight"))
    return replace(report, subject=f"{type(term).__name__}")


def _outcome(objective: Objective, plan: Plan, seed: int) -> RanksOutcome:
    batch, live = _random_batch_for(objective, plan, seed)
    return evaluate(Program(objective, plan), batch, live)


def _random_batch_for(objective: Objective, plan: Plan, seed: int) -> tuple[Batch, dict[str, F]]:
    """A batch with all that the objective reads, and its live columns."""
    rollouts = [name for term in (*objective.credit, *objective.losses) for name in term.rollout_columns]
    batch = random_batch(seed, (*plan.columns, *(f.column for f in plan.forwards)), rollout_columns=rollouts)
    return batch, random_live(batch, plan.live, seed, head_widths(objective))


def _weighs(region: TrustRegion, objective: Objective, seed: int) -> None:
    """The gradient of a trust region's loss is ``-A g`` at each token."""
    import torch

    batch, live = _random_batch_for(objective, objective.plan(), seed)
    tensors = {name: torch.tensor(values, dtype=torch.float64, requires_grad=True) for name, values in live.items()}
    ready = objective.compile().prepare(batch)
    view = View(ready, tensors, np.flatnonzero(ready.token("policy/weight")), "policy")
    advantage = view.column("advantage")
    ratio = Ratio().of(view)
    (slope,) = torch.autograd.grad(region.loss(view, ratio, advantage).sum(), tensors["logp_new"], materialize_grads=True)
    found, said = slope[view.indices(view.index)], -advantage * region.weight(view, ratio, advantage)
    require(
        bool(torch.allclose(found, said.detach(), rtol=1e-9, atol=1e-11)),
        type(region).__name__,
        f"weight law, seed {seed}: the loss has the gradient {found}, -A times the weight is {said.detach()}",
    )


def objective_around(term: Part) -> Objective:
    """The smallest objective that uses a part; columns that no pass produces count as brought by the user."""
    plain = PolicyGradient(ratio=Ratio("none"), trust=None)
    if isinstance(term, Aggregation):
        return Objective(terms=(Nll(),), aggregate=term)
    if isinstance(term, TokenWeight):
        return Objective(
            credit=(Center("group"),), policy=replace(plain, weights=(term,)), aggregate=SeqSum(), brings=_own(term.needs)
        )
    if isinstance(term, CreditTerm):
        before = (Center("group"),) if term.kind == "scale" else ()
        return Objective(credit=(*before, term), policy=plain, aggregate=SeqSum(), brings=_own(term.needs))
    if isinstance(term, Ratio):
        return objective_around(PolicyGradient(ratio=term, trust=None))
    if isinstance(term, TrustRegion):
        return objective_around(PolicyGradient(trust=term))
    if isinstance(term, SetLoss):
        return objective_around(ScoreLoss(phi=term))
    if isinstance(term, Selector):
        return objective_around(Where(Nll(), (term,)))
    credit = (Center("group"),) if term.reward else ()
    if term.terminal:
        return Objective(credit=credit, policy=term, brings=_own(term.needs))
    policy = plain if "advantage" in term.needs else None
    return Objective(
        credit=credit or ((Center("group"),) if policy else ()), policy=policy, terms=(term,), brings=_own(term.needs)
    )


def _own(needs: Sequence[str]) -> tuple[str, ...]:
    return tuple(n for n in needs if forward_of(n, ()) is None and n != "advantage")
