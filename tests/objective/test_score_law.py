"""The law of set losses: two passes in any micro-batches and on any ranks give loss and gradient of Phi itself."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from objective_batches import spread, tiny

from assay.core.batch import Batch
from assay.objective import BalancedBce, Center, GroupSoftmax, Objective, ScoreLoss
from assay.objective.loss.sets.base import Mix, Scored, SetLoss
from assay.objective.loss.sets.confidence import CONFIDENCE
from assay.objective.loss.sets.groupwise import RewardGaps
from assay.objective.loss.sets.links import JsLink, OddsLink, PowerLink
from assay.objective.loss.sets.pairwise import Pairwise
from assay.objective.loss.sets.pointwise import Kto, Likelihood, ScoreSquare
from assay.objective.loss.sets.shapes import (
    ApoDown,
    ApoZero,
    BcoPair,
    DiscoGap,
    ExoGap,
    HingeGap,
    LogisticGap,
    NcaPair,
    SppoPair,
    SquareGap,
)
from assay.objective.loss.sets.sorted import SortedGaps
from assay.objective.reducers import Partials
from assay.testing.objective import check_objective, check_term, evaluate, over_ranks, shard

LOSSES: list[SetLoss] = [
    BalancedBce(),
    BalancedBce(psi="raw", balance=False),
    BalancedBce(psi="group_norm", eps=0.1),
    BalancedBce(psi="raw", balance=False, mixed=True),
    BalancedBce(balance=False, only="negative"),
    GroupSoftmax(),
    GroupSoftmax(form="product"),
    RewardGaps(beta=0.4),
    Pairwise(),
    Pairwise(pairs="extreme"),
    Pairwise(over="groups"),
    Pairwise(ties=True),
    Pairwise(smoothing=0.2),
    Pairwise(smoothing=0.2, robust=True),
    Pairwise(label="probability"),
    Pairwise(label="bradley_terry", ties=True),
    Pairwise(shape=LogisticGap(beta=0.5, bias=0.5, margin=0.3)),
    Pairwise(shape=HingeGap(beta=0.3)),
    Pairwise(shape=SquareGap(target=2.0)),
    Pairwise(shape=DiscoGap(beta=0.3)),
    Pairwise(shape=ExoGap(beta=0.3)),
    Pairwise(shape=NcaPair()),
    Pairwise(shape=BcoPair()),
    Pairwise(shape=SppoPair(beta=0.2)),
    Pairwise(shape=ApoZero()),
    Pairwise(shape=ApoDown()),
    Pairwise(link=PowerLink(-0.5)),
    Pairwise(link=JsLink()),
    Pairwise(link=OddsLink()),
    Pairwise(confident=True),
    SortedGaps(),
    SortedGaps(paired=False, smoothing=0.1),
    ScoreSquare(beta=0.5),
    Kto(),
    Kto(baseline="zero", desirable=0.5),
    Likelihood(over="attempts"),
]

COLUMNS = ("logp_old", "logp_ref", CONFIDENCE.column)
BROUGHT = (CONFIDENCE.column,)


@st.composite
def drawn(draw: st.DrawFn) -> tuple[Batch, np.ndarray, list[list[int]]]:
    """A batch of groups of any size, some rollouts faulty, log-probabilities, and a split into micro-batches."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    groups = [g for g, n in enumerate(sizes) for _ in range(n)]
    count = len(groups)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rewards = rng.choice([0.0, 0.5, 1.0] if draw(st.booleans()) else [0.0, 1.0], count).tolist()
    lengths = rng.integers(1, 5, count).tolist()
    valid = rng.random(count) < 0.85
    valid[rng.integers(count)] = True
    streams = ["preference" if draw(st.booleans()) else "on_policy"] * count
    tokens = int(np.array(lengths)[valid].sum())
    columns = {name: -np.abs(rng.normal(size=tokens)) - 0.05 for name in COLUMNS}
    batch = tiny(rewards, groups, lengths, valid=valid.tolist(), streams=streams, columns=columns)
    logp = spread(batch, (-np.abs(rng.normal(size=tokens)) - 0.05).tolist())
    rows = rng.permutation(len(batch))
    cuts = np.sort(rng.integers(0, len(batch) + 1, 3))
    return batch, logp, [part.tolist() for part in np.split(rows, cuts) if len(part)]


def phi_of(policy: ScoreLoss, batch: Batch, logp: torch.Tensor) -> torch.Tensor:
    """Phi by the definition, differentiable: rollout by rollout, token by token."""
    group = batch.rollout("group")
    found: dict[int, list[int]] = {}
    for row, i in enumerate(batch.rows["rollout"]):
        where = np.arange(batch.offsets[row], batch.offsets[row + 1])
        found.setdefault(int(i), []).extend(int(t) for t in where if batch.token("mask")[t])
    members = sorted(found)
    s: list[torch.Tensor] = []
    anchored: list[torch.Tensor] = []
    likely: list[float] = []
    for i in members:
        shortest = min(len(found[j]) for j in members if group[j] == group[i])
        own, other = logp[:0].sum(), logp[:0].sum()
        for place, t in enumerate(found[i]):
            share = policy.scale * policy.discount**place * (1.0 if place < shortest else policy.tail)
            share /= len(found[i]) if policy.score == "mean" else 1
            own = own + share * logp[t]
            for name, weight in policy.weights:
                other = other + share * weight * float(batch.token(f"logp_{name}")[t])
        s.append(own - other)
        anchored.append(other)
        gap = [float(logp[t].detach()) - float(batch.token(CONFIDENCE.column)[t]) for t in found[i]]
        likely.append(float(np.exp(np.mean(gap))) if policy.forwards else 1.0)
    reward = torch.tensor(batch.rollout("components/correct")[members])
    names = np.unique(group[members], return_inverse=True)[1]
    present = [int(np.sum(names == g)) for g in names]
    advantage = [float(reward[k] - reward[names == names[k]].mean()) if present[k] > 1 else 0.0 for k in range(len(members))]
    scored = Scored(
        score=torch.stack(s),
        anchored=torch.stack(anchored).detach(),
        reward=reward,
        advantage=torch.tensor(advantage, dtype=torch.float64),
        group=torch.tensor(names),
        tokens=torch.tensor([float(len(found[i])) for i in members], dtype=torch.float64),
        confidence=torch.tensor(likely, dtype=torch.float64),
    )
    total = logp[:0].sum()
    for weight, part in policy.parts:
        known = replace(scored, stats=part.local(replace(scored, score=scored.score.detach())))
        value, count = part.total(known)
        total = total + policy.coef * weight * value / max(count, 1.0)
    return total


def objective_of(policy: ScoreLoss) -> Objective:
    credit = (Center("group"),) if "advantage" in policy.needs else ()
    return Objective(
        scalarise=replace(Objective().scalarise, streams=("on_policy", "preference")),
        credit=credit,
        policy=policy,
        brings=BROUGHT,
    )


def same(policy: ScoreLoss, batch: Batch, logp: np.ndarray, parts: Sequence[Sequence[int]]) -> None:
    outcome = evaluate(objective_of(policy).compile(), batch, {"logp_new": logp}, parts)
    live = torch.tensor(logp, requires_grad=True)
    phi = phi_of(policy, batch, live)
    (gradient,) = torch.autograd.grad(phi, live, allow_unused=True, materialize_grads=True) if phi.requires_grad else (live * 0,)
    assert outcome.loss == pytest.approx(float(phi.detach()), rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(outcome.gradients["logp_new"], gradient.detach().numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("phi", LOSSES, ids=repr)
@settings(max_examples=5)
@given(drawn(), st.sampled_from(["sum", "mean"]), st.sampled_from(["", "old", (("old", 0.7), ("ref", 0.3))]))
def test_two_passes_give_the_gradient_of_phi(phi: SetLoss, case: Any, score: str, anchor: Any) -> None:
    batch, logp, parts = case
    if isinstance(getattr(phi, "link", None), OddsLink):  # defined for mean log-probabilities alone
        score, anchor = "mean", ""
    policy = ScoreLoss(phi=phi, score=score, anchor=anchor, coef=0.7, streams=("on_policy", "preference"))
    same(policy, batch, logp, parts)


@settings(max_examples=20)
@given(
    drawn(), st.sampled_from(LOSSES[:10]), st.floats(0.2, 1), st.floats(0, 1), st.floats(0.5, 3), st.sampled_from(["sum", "mean"])
)
def test_discounts_tails_and_mixes(case: Any, phi: SetLoss, discount: float, tail: float, scale: float, score: str) -> None:
    batch, logp, parts = case
    policy = ScoreLoss(
        phi=Mix(of=((0.3, phi), (-1.2, Kto()), (0.5, SortedGaps()))),
        score=score,
        anchor="ref",
        discount=discount,
        tail=tail,
        scale=scale,
        streams=("on_policy", "preference"),
    )
    same(policy, batch, logp, parts)


@pytest.mark.parametrize("phi", LOSSES, ids=repr)
def test_parts_keep_the_laws(phi: SetLoss) -> None:
    objective = Objective(
        credit=(Center("group"),) if "advantage" in phi.needs else (),
        policy=ScoreLoss(phi=phi, score="mean", anchor=""),
        brings=BROUGHT,
    )
    check_objective(objective, range(1))


def test_the_terminal_passes_the_public_check(seeds: range) -> None:
    for term in (ScoreLoss(), ScoreLoss(phi=SortedGaps(), discount=0.5, tail=0.3), ScoreLoss(phi=Likelihood(), anchor="")):
        assert "gradient" in check_term(term, seeds).passed


@pytest.mark.parametrize(
    "phi",
    [Pairwise(), SortedGaps(), Kto(), RewardGaps(), GroupSoftmax(), Pairwise(shape=HingeGap(beta=1.2))],  # one pair suffices
    ids=repr,
)
def test_a_pair_on_each_of_two_ranks(phi: SetLoss) -> None:
    """Two pairs, one on each rank, and a third rank without any: together they are one rank with both."""
    columns = {"logp_ref": [-1.0, -1.5, -0.5, -2.0, -1.0]}
    batch = tiny([1, 0, 0, 1, 1], [0, 0, 1, 1, 2], streams=["preference"] * 4 + ["expert"], columns=columns)
    logp = spread(batch, [-0.2, -1.6, -0.4, -1.1, -3.0])
    objective = Objective(policy=ScoreLoss(phi=phi, anchor="ref", streams=("preference",)))
    parts = [shard(batch, [g]) for g in range(3)]
    where = [np.isin(np.repeat(batch.per_row("group"), batch.lengths), [g]) for g in range(3)]

    def step(rank: int, reducer: Any) -> Any:
        return evaluate(objective.compile(reducer=reducer), parts[rank], {"logp_new": logp[where[rank]]})

    whole = evaluate(objective.compile(), batch, {"logp_new": logp})
    ranks = over_ranks(step, 3)
    assert whole.loss != 0
    assert sum(o.loss for o in ranks) == pytest.approx(whole.loss)
    for outcome, here in zip(ranks, where, strict=True):
        np.testing.assert_allclose(outcome.gradients["logp_new"], whole.gradients["logp_new"][here], atol=1e-12)
    for name, value in whole.metrics.items():
        assert sum(o.metrics.get(name, 0.0) for o in ranks) == pytest.approx(value)
    assert not whole.gradients["logp_new"][where[2]].any()


def test_pools_merge_in_order() -> None:
    first: Partials = {"pool": SortedGaps().local(_pair([1.0, 0.0]))["upper"]}
    second = SortedGaps().local(_pair([-2.0, 1.0]))["upper"]
    assert first["pool"].merge(second).values.tolist() == [-3.0, 1.0]


def _pair(s: list[float]) -> Scored:
    two = torch.tensor(s, dtype=torch.float64)
    return Scored(
        score=two,
        anchored=two * 0,
        reward=torch.tensor([1.0, 0.0]),
        advantage=two * 0,
        group=torch.tensor([0, 0]),
        tokens=two * 0 + 1,
        confidence=two * 0 + 1,
    )
