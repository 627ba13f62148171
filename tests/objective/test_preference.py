"""Losses on pairs: published numbers, labels, ties, rollouts without a verdict, where pairs come from."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from objective_batches import run, slopes, tiny
from torch.nn.functional import logsigmoid

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.errors import ConfigError, DataError
from assay.objective import Objective, ScoreLoss
from assay.objective.loss.sets.confidence import LogSquaredMass
from assay.objective.loss.sets.links import OddsLink, PowerLink
from assay.objective.loss.sets.pairwise import Pairwise
from assay.objective.loss.sets.pointwise import Kto, Likelihood
from assay.objective.loss.sets.shapes import DiscoGap, ExoGap, HingeGap, LogisticGap, SquareGap
from assay.objective.loss.sets.sorted import SortedGaps
from assay.objective.methods.preference import cpl, cpo, dpo, inpo, ipo, kto, orpo, simpo
from assay.objective.methods.preference_variants import aot, apo, bco, discopop, exo, f_dpo, ld_dpo, mpo, nca, rso, sppo

LOG2 = math.log(2)
F64 = {"dtype": torch.float64}


def pair(objective: Objective, better: float, worse: float) -> tuple[float, np.ndarray]:
    """Loss and implicit advantages of one pair of one-token rollouts with these log-ratios to the reference."""
    batch = tiny([1, 0], columns={"logp_ref": -4.0}, streams=["preference"] * 2)
    logp = -4.0 + np.array([better, worse])
    return run(objective, batch, list(logp)).loss, -slopes(objective, batch, list(logp))


# ---- numbers ----------------------------------------------------------------------------------------------------------


def test_dpo_numbers() -> None:
    assert pair(dpo(), 2.0, -1.0)[0] == pytest.approx(0.5544, abs=5e-5)
    loss, implicit = pair(dpo(), 0.0, 0.0)
    assert loss == pytest.approx(LOG2)
    np.testing.assert_allclose(implicit, [0.05, -0.05])


def test_ipo_numbers() -> None:
    loss, implicit = pair(ipo(), 2.0, -1.0)
    assert loss == pytest.approx(4.0)
    np.testing.assert_allclose(implicit, [4.0, -4.0])
    np.testing.assert_allclose(pair(ipo(), 5.0, 0.0)[1], 0, atol=1e-12)
    # Lengths are divided out by default.
    batch = tiny([1, 0], lengths=[2, 4], columns={"logp_ref": -4.0})
    logp = [-2.0, -2.0, -5.0, -5.0, -5.0, -5.0]
    assert run(ipo(), batch, logp).loss == pytest.approx(4.0)
    assert run(ipo(score="sum"), batch, logp).loss == pytest.approx((8 - 5) ** 2)


def test_inpo_numbers() -> None:
    batch = tiny([1, 0], columns={"logp_ref": [-2.0, -3.0], "logp_old": [-1.0, -4.0]})
    logp = [-0.5, -2.5]
    # h = 2 - 1/3 * 1 - 2/3 * 3
    assert run(inpo(), batch, logp).loss == pytest.approx((2 - 1 / 3 - 2 - 200 / 3) ** 2)
    same = tiny([1, 0], columns={"logp_ref": [-2.0, -3.0], "logp_old": [-2.0, -3.0]})
    assert run(inpo(), same, logp).loss == pytest.approx(run(ipo(tau=0.0075, score="sum"), same, logp).loss)
    assert run(inpo(tau=0.0075), batch, logp).loss == pytest.approx(run(ipo(tau=0.0075, score="sum"), batch, logp).loss)
    assert {f.column for f in inpo(tau=0.0075).plan().forwards} == {"logp_ref", "logp_now"}
    assert {f.column for f in inpo(tau=0.0).plan().forwards} == {"logp_old", "logp_now"}
    assert inpo(previous="round").plan().columns == ("logp_round",)
    assert "logp_teacher" in {f.column for f in inpo(previous="teacher").plan().forwards}


def test_cpl_numbers() -> None:
    batch = tiny([1, 0])
    assert run(cpl(), batch, [-10.0, -12.0]).loss == pytest.approx(0.9130, abs=5e-5)
    # Swapping the pair flips the gap's sign only when nothing is biased.
    assert run(cpl(), batch, [-12.0, -10.0]).loss == pytest.approx(math.log1p(math.exp(0.7)))
    flat = [run(cpl(bias=1.0), batch, list(x)).loss for x in ([-10.0, -12.0], [-12.0, -10.0])]
    assert flat[1] - flat[0] == pytest.approx(0.2)
    with_ref = tiny([1, 0], columns={"logp_ref": [-9.0, -10.0]})
    assert run(cpl(bias=1.0, anchor="ref"), with_ref, [-10.0, -12.0]).loss == pytest.approx(
        run(dpo(), with_ref, [-10.0, -12.0]).loss
    )
    long = tiny([1, 0], lengths=[2, 1])
    gap = 0.1 * (-1.0 + 0.5 * -2.0) - 0.05 * -3.0
    assert run(cpl(discount=0.5), long, [-1.0, -2.0, -3.0]).loss == pytest.approx(math.log1p(math.exp(-gap)))


def test_cpl_with_cloning_adds_a_token_mean() -> None:
    batch = tiny([1, 0], lengths=[2, 1])
    logp = [-1.0, -2.0, -6.0]
    assert run(cpl(bc=1.5), batch, logp).loss == pytest.approx(run(cpl(), batch, logp).loss + 1.5 * 3.0)


def test_kto_numbers() -> None:
    batch = tiny([1, 0, 1], [0, 1, 2], columns={"logp_ref": -4.0})
    logp = [-3.0, -4.5, -2.0]  # scores 1, -.5, 2; their mean is 5/6
    z = 2.5 / 3
    sigmoid: Callable[[float], float] = lambda x: 1 / (1 + math.exp(-x))
    expected = sigmoid(-0.1 * (1 - z)) + 3 * sigmoid(0.1 * (-0.5 - z)) + sigmoid(-0.1 * (2 - z))
    outcome = run(kto(undesirable=3.0), batch, logp)
    assert outcome.loss == pytest.approx(expected / 3)
    assert outcome.metrics["score/baseline"] == pytest.approx(z)
    assert outcome.metrics["score/accuracy"] == 1.0  # good ones above the baseline, the bad one below
    assert outcome.metrics["score/margin"] == pytest.approx((1 - z + 0.5 + z + 2 - z) / 3)
    assert not kto().grouped
    # A negative estimate of a divergence is 0, and so is the baseline that APO-zero leaves out.
    low = [-5.0, -4.5, -6.0]
    assert run(kto(), batch, low).loss == pytest.approx(run(kto(baseline="zero"), batch, low).loss)
    found = run(kto(), batch, low).metrics
    assert found["score/baseline"] == 0.0 and found["score/accuracy"] == pytest.approx(1 / 3)
    assert found["score/margin"] == pytest.approx((-1 + 0.5 - 2) / 3)


def test_simpo_cpo_and_orpo_numbers() -> None:
    batch = tiny([1, 0], lengths=[2, 1])
    logp = [-1.0, -2.0, -4.0]  # means -1.5 and -4, sums -3 and -4
    assert run(simpo(), batch, logp).loss == pytest.approx(math.log1p(math.exp(-(2 * 2.5 - 0.5))))
    power: Callable[[float], float] = lambda x: (1 - math.exp(-0.25 * x)) / 0.25
    assert run(simpo(alpha=0.25), batch, logp).loss == pytest.approx(math.log1p(math.exp(-(2 * (power(-1.5) - power(-4)) - 0.5))))
    assert run(cpo(), batch, logp).loss == pytest.approx(math.log1p(math.exp(-0.1)) + 1.5)
    assert run(cpo(nll=0.0), batch, logp).loss == pytest.approx(math.log1p(math.exp(-0.1)))
    odds: Callable[[float], float] = lambda x: x - math.log(1 - math.exp(x))
    assert run(orpo(), batch, logp).loss == pytest.approx(1.5 + 0.1 * math.log1p(math.exp(odds(-4.0) - odds(-1.5))))


def test_the_likelihood_of_the_better_is_a_mean_over_tokens_or_attempts() -> None:
    batch = tiny([1, 1, 0, 1, 1], [0, 0, 0, 1, 1], lengths=[1, 3, 1, 1, 2])
    logp = [-1.0, -2.0, -2.0, -3.0, -9.0, -9.0, -9.0, -9.0]
    for over, expected in (("tokens", 8 / 4), ("attempts", 8 / 2)):
        term = ScoreLoss(phi=Likelihood(over=over), anchor="")
        assert run(Objective(terms=(term,)), batch, logp).loss == pytest.approx(expected)
    assert run(dpo(nll=0.5), _with_ref(batch), logp).loss == pytest.approx(run(dpo(), _with_ref(batch), logp).loss + 0.5 * 2)


def _with_ref(batch: Batch) -> Batch:
    return batch.with_tokens(TokenColumn("logp_ref", np.full(int(batch.offsets[-1]), -1.0)))


def test_tails_of_ld_dpo() -> None:
    batch = tiny([1, 0], lengths=[3, 1], columns={"logp_ref": -4.0})
    logp = [-3.0, -2.0, -1.0, -5.0]
    # The pair shares one token; 2 + 3 lie beyond it and count a half.
    assert run(ld_dpo(), batch, logp).loss == pytest.approx(math.log1p(math.exp(-0.1 * (1 + 2.5 + 1))))
    assert run(ld_dpo(alpha=1.0), batch, logp).loss == pytest.approx(run(dpo(), batch, logp).loss)


def test_pairs_weigh_by_how_likely_their_answers_are() -> None:
    policy = ScoreLoss(phi=Pairwise(confident=True), anchor="ref")
    assert policy.forwards[0].stat == LogSquaredMass()
    assert policy.needs == ("logp_now", "logp_ref", "logp_squared_now")
    columns = {"logp_ref": -1.0, "logp_squared_now": [-0.5, -1.5, -2.0]}
    batch = tiny([1, 0], lengths=[2, 1], columns=columns)
    objective = Objective(policy=policy, brings=("logp_squared_now",))
    plain = Objective(policy=ScoreLoss(phi=Pairwise(), anchor="ref"))
    logp = [-1.0, -2.0, -1.0]
    factor = math.exp((-0.5 - 0.5) / 2) * math.exp(1.0)
    assert run(objective, batch, logp).loss == pytest.approx(factor * run(plain, batch, logp).loss)
    np.testing.assert_allclose(slopes(objective, batch, logp), factor * slopes(plain, batch, logp))
    assert LogSquaredMass().name == "logp_squared"
    logits = torch.log(torch.tensor([[0.5, 0.25, 0.25]]))
    assert float(LogSquaredMass().of(logits, torch.tensor([0]), {}, {})) == pytest.approx(math.log(0.375))


# ---- TRL's losses, written out ----------------------------------------------------------------------------------------

B = 0.3
S: Callable[[torch.Tensor], torch.Tensor] = torch.sigmoid
TRL: dict[str, tuple[Objective, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]]] = {
    "sigmoid": (dpo(beta=B), lambda c, r: -logsigmoid(B * (c - r))),
    "hinge": (rso(beta=B), lambda c, r: torch.relu(1 - B * (c - r))),
    "ipo": (ipo(tau=B), lambda c, r: (c - r - 1 / (2 * B)) ** 2),
    "exo_pair": (
        exo(beta=B, eps=0.01),
        lambda c, r: (
            S(B * (c - r)) * (logsigmoid(B * (c - r)) - math.log(0.99))
            + S(B * (r - c)) * (logsigmoid(B * (r - c)) - math.log(0.01))
        ),
    ),
    "nca_pair": (nca(beta=B), lambda c, r: -logsigmoid(B * c) - 0.5 * logsigmoid(-B * c) - 0.5 * logsigmoid(-B * r)),
    "robust": (
        dpo(beta=B, smoothing=0.1, robust=True),
        lambda c, r: (-0.9 * logsigmoid(B * (c - r)) + 0.1 * logsigmoid(B * (r - c))) / 0.8,
    ),
    "cdpo": (dpo(beta=B, smoothing=0.1), lambda c, r: -0.9 * logsigmoid(B * (c - r)) - 0.1 * logsigmoid(B * (r - c))),
    "bco_pair": (bco(beta=B), lambda c, r: -logsigmoid(B * c) - logsigmoid(-B * r)),
    "sppo_hard": (sppo(beta=B), lambda c, r: (c - 0.5 / B) ** 2 + (r + 0.5 / B) ** 2),
    "apo_zero": (apo(beta=B), lambda c, r: 1 - S(B * c) + S(B * r)),
    "apo_down": (apo(beta=B, side="down"), lambda c, r: S(B * c) + 1 - S(B * (c - r))),
    "discopop": (
        discopop(beta=B, tau=0.5),
        lambda c, r: -logsigmoid(B * (c - r)) * (1 - S(B * (c - r) / 0.5)) + torch.exp(B * (r - c)) * S(B * (c - r) / 0.5),
    ),
    "forward_kl": (f_dpo(beta=B), lambda c, r: -logsigmoid(B * (torch.exp(-r) - torch.exp(-c)))),
    "js_divergence": (f_dpo(beta=B, divergence="js"), lambda c, r: -logsigmoid(B * (logsigmoid(c) - logsigmoid(r)))),
    "alpha_divergence": (
        f_dpo(beta=B, divergence="alpha", alpha=0.5),
        lambda c, r: -logsigmoid(B * (torch.exp(-0.5 * c) - torch.exp(-0.5 * r)) / -0.5),
    ),
    "mpo without its third": (
        mpo(beta=B, generation=0.0),
        lambda c, r: -0.8 * logsigmoid(B * (c - r)) - 0.2 * (logsigmoid(B * c) + logsigmoid(-B * r)),
    ),
}


def test_alpha_is_the_paper_s() -> None:
    """``f'(u) = (1 - u^-a) / a``: with scores .5 and -1, ``a`` .2 and ``beta`` .3."""
    pair = tiny([1, 0], columns={"logp_ref": -4.0})
    link = [(1 - math.exp(-0.2 * s)) / 0.2 for s in (0.5, -1.0)]
    want = -math.log(1 / (1 + math.exp(-0.3 * (link[0] - link[1]))))
    assert run(f_dpo(beta=0.3, divergence="alpha", alpha=0.2), pair, [-3.5, -5.0]).loss == pytest.approx(want, abs=1e-6)
    assert want == pytest.approx(0.483647, abs=1e-6)
    whole = run(f_dpo(beta=0.3, divergence="alpha", alpha=1.0), pair, [-3.5, -5.0]).loss
    assert whole == pytest.approx(run(f_dpo(beta=0.3), pair, [-3.5, -5.0]).loss, abs=1e-6)


def test_pairs_by_their_defaults() -> None:
    """Scores 1 and -2 against the reference."""
    pair = tiny([1, 0], columns={"logp_ref": -4.0})
    found = {make.__name__: run(make(), pair, [-3.0, -6.0]).loss for make in (rso, exo, mpo)}
    assert found == pytest.approx({"rso": 0.85, "exo": 2.258199, "mpo": 3.691991}, abs=1e-5)


@pytest.mark.parametrize("name", TRL)
def test_losses_of_a_pair_as_written_out(name: str) -> None:
    objective, formula = TRL[name]
    rng = np.random.default_rng(0)
    for scale in (0.1, 1.0, 6.0):
        c, r = (torch.tensor(scale * rng.normal(size=5), requires_grad=True) for _ in range(2))
        formula(c, r).mean().backward()
        order = np.stack([c.detach().numpy(), r.detach().numpy()], 1).reshape(-1)
        batch = tiny([1, 0] * 5, [g for g in range(5) for _ in (0, 1)], columns={"logp_ref": -4.0})
        outcome = run(objective, batch, (order - 4.0).tolist())
        assert outcome.loss == pytest.approx(float(formula(c, r).mean().detach()))
        assert c.grad is not None and r.grad is not None
        expected = np.stack([c.grad.numpy(), r.grad.numpy()], 1).reshape(-1)
        np.testing.assert_allclose(outcome.gradients["logp_new"][batch.token("mask")], expected, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("paired", [True, False])
def test_sorted_gaps_as_written_out(paired: bool) -> None:
    rng = np.random.default_rng(5)
    lp, ref = torch.tensor(rng.normal(size=(6, 2)), requires_grad=True), torch.tensor(rng.normal(size=(6, 2)))
    if paired:
        delta = (lp[:, 0] - lp[:, 1]).sort().values - (ref[:, 0] - ref[:, 1]).sort().values
    else:
        delta = (lp[:, 0] - ref[:, 0]).sort().values - (lp[:, 1] - ref[:, 1]).sort().values
    expected = (-0.9 * logsigmoid(B * delta) - 0.1 * logsigmoid(-B * delta)).mean()
    expected.backward()
    batch = tiny([1, 0] * 6, [g for g in range(6) for _ in (0, 1)], columns={"logp_ref": ref.reshape(-1).numpy()})
    outcome = run(aot(beta=B, paired=paired, smoothing=0.1), batch, lp.detach().reshape(-1).tolist())
    assert outcome.loss == pytest.approx(float(expected.detach()))
    assert lp.grad is not None
    np.testing.assert_allclose(outcome.gradients["logp_new"][batch.token("mask")], lp.grad.reshape(-1).numpy(), atol=1e-12)


def test_equal_values_share_what_stands_at_their_ranks() -> None:
    batch = tiny([1, 0] * 2, [0, 0, 1, 1], columns={"logp_ref": [-1.0, -1.0, -1.0, -2.0]})
    outcome = run(aot(beta=1.0), batch, -1.0)
    # Both gaps of the policy are 0; those of the reference are 0 and 1.
    assert outcome.loss == pytest.approx((LOG2 + math.log1p(math.exp(1.0))) / 2)
    slope = (0.5 + 1 / (1 + math.exp(-1.0))) / 4
    np.testing.assert_allclose(outcome.gradients["logp_new"][batch.token("mask")], [-slope, slope] * 2)


# ---- which pairs, with what labels ------------------------------------------------------------------------------------


def of(rewards: list[float], s: list[float], groups: list[int] | None = None, **settings: Any) -> tuple[float, np.ndarray]:
    batch = tiny(rewards, groups, columns={"logp_ref": -1.0})
    objective = Objective(policy=ScoreLoss(phi=Pairwise(shape=LogisticGap(beta=1.0), **settings), anchor="ref"))
    logp = (np.array(s) - 1.0).tolist()
    return run(objective, batch, logp).loss, -slopes(objective, batch, logp)


def soft(x: float) -> float:
    return math.log1p(math.exp(-x))


def test_pairs_of_sampled_groups() -> None:
    rewards, s = [1, 0, 0, 1], [0.3, 0.1, -0.4, 0.0]
    every = [soft(s[i] - s[j]) for i in (0, 3) for j in (1, 2)]
    assert of(rewards, s)[0] == pytest.approx(sum(every) / 4)
    loss, implicit = of(rewards, s, pairs="extreme")
    assert loss == pytest.approx(soft(0.2))
    np.testing.assert_array_equal(implicit[2:], [0, 0])
    graded = [0.2, 0.9, 0.5]
    assert of(graded, s[:3], pairs="extreme")[0] == pytest.approx(soft(s[1] - s[0]))
    assert of(graded, s[:3])[0] == pytest.approx((soft(s[1] - s[0]) + soft(s[1] - s[2]) + soft(s[2] - s[0])) / 3)


def test_groups_or_pairs_weigh_alike() -> None:
    rewards, groups, s = [1, 0, 0, 1, 0], [0, 0, 0, 1, 1], [0.3, 0.1, -0.4, 0.0, 0.9]
    first, second = [soft(0.2), soft(0.7)], soft(-0.9)
    assert of(rewards, s, groups)[0] == pytest.approx((sum(first) + second) / 3)
    assert of(rewards, s, groups, over="groups")[0] == pytest.approx((sum(first) / 2 + second) / 2)


def test_ties_are_dropped_or_count_one_half() -> None:
    loss, implicit = of([1, 1, 0, 0], [0.3, 0.1, 0.5, 0.5], [0, 0, 1, 1])
    assert loss == 0
    assert not implicit.any()
    # A tied group is in no divisor.
    assert of([1, 0, 1, 1], [0.3, 0.1, 5.0, -5.0], [0, 0, 1, 1])[0] == pytest.approx(soft(0.2))
    tied, implicit = of([1, 1], [0.3, 0.1], ties=True)
    assert tied == pytest.approx((soft(0.2) + soft(-0.2)) / 2)
    assert implicit[0] < 0 < implicit[1]
    assert of([1, 1, 0], [0.3, 0.1, 0.0], ties=True)[0] == pytest.approx((soft(0.3) + soft(0.1) + tied) / 3)


def test_soft_labels() -> None:
    p = 0.8
    for settings, label in (
        ({"label": "probability"}, 0.8),
        ({"label": "bradley_terry"}, 1 / (1 + math.exp(-0.6))),
        ({"label": "probability", "smoothing": 0.1}, 0.74),
        ({"label": "probability", "smoothing": 0.1, "robust": True}, 0.875),
        ({}, 1.0),
    ):
        loss, implicit = of([p, 1 - p], [0.3, 0.1], **settings)
        assert loss == pytest.approx(label * soft(0.2) + (1 - label) * soft(-0.2))
        assert implicit[0] == pytest.approx(label - 1 / (1 + math.exp(-0.2)))
    with pytest.raises(DataError, match=r"rewards 3.0 apart.*bradley_terry"):
        of([3, 0], [0.0, 0.0], label="probability")


def test_a_pair_needs_both_of_its_attempts() -> None:
    columns, streams = {"logp_ref": -1.0}, ["preference"] * 4
    batch = tiny([1, 0, 1, 0], [0, 0, 1, 1], valid=[True, True, True, False], columns=columns, streams=streams)
    outcome = run(dpo(), batch, [-0.5, -1.0, 3.0])
    assert outcome.loss == pytest.approx(math.log1p(math.exp(-0.05)))
    np.testing.assert_allclose(outcome.gradients["logp_new"][batch.token("mask")][2], 0)
    alone = tiny([1, 0], valid=[True, False], columns=columns)
    assert run(dpo(), alone).loss == 0


def test_pairs_of_users_and_of_the_policy_go_together() -> None:
    columns = {"logp_ref": -1.0}
    streams = ["preference", "preference", "on_policy", "on_policy", "expert", "expert"]
    batch = tiny([1, 0] * 3, [0, 0, 1, 1, 2, 2], columns=columns, streams=streams)
    logp = [-0.5, -1.0, -1.0, -0.2, -9.0, -1.0]
    assert run(dpo(beta=1.0), batch, logp).loss == pytest.approx((soft(0.5) + soft(-0.8)) / 2)
    # Rollouts of other streams are in no pair, of their own group neither.
    torn = tiny([1, 0], columns=columns, streams=["preference", "expert"])
    assert run(dpo(), torn).loss == 0


def test_scores_stay_finite() -> None:
    s = torch.tensor([0.0, -1e-12, 3.0, -900.0, 900.0], **F64, requires_grad=True)
    for link in (OddsLink(), PowerLink(-1.0), PowerLink(0.5)):
        (slope,) = torch.autograd.grad(link.of(s).sum(), s)
        assert bool(torch.isfinite(link.of(s)).all())
        assert bool(torch.isfinite(slope).all())
    far = torch.tensor([-1e5, 1e5], **F64, requires_grad=True)
    for shape in (DiscoGap(), LogisticGap(), ExoGap()):
        loss = shape.loss(far, far.flip(0))
        (slope,) = torch.autograd.grad(loss.sum(), far)
        assert bool(torch.isfinite(loss).all())
        assert bool(torch.isfinite(slope).all())


def test_bad_preference_settings_are_named() -> None:
    for make, says in (
        (lambda: Pairwise(pairs="every"), "unknown pairs"),
        (lambda: Pairwise(over="group"), "did you mean 'groups'"),
        (lambda: Pairwise(label="probabilities"), "did you mean 'probability'"),
        (lambda: Pairwise(pairs="extreme", ties=True), "best and the worst"),
        (lambda: Pairwise(smoothing=0.5), r"\[0, 0.5\)"),
        (lambda: Pairwise(robust=True), "smoothing"),
        (lambda: LogisticGap(beta=0.0), "LogisticGap.beta"),
        (lambda: LogisticGap(bias=0.0), "bias"),
        (lambda: LogisticGap(margin=-1.0), "margin"),
        (lambda: HingeGap(beta=-0.1), "HingeGap.beta"),
        (lambda: SquareGap(target=0.0), "target"),
        (lambda: DiscoGap(tau=0.0), "tau"),
        (lambda: ExoGap(eps=0.5), "eps"),
        (lambda: PowerLink(0.0), "power"),
        (lambda: SortedGaps(beta=0.0), "beta"),
        (lambda: SortedGaps(smoothing=0.7), "smoothing"),
        (lambda: Kto(beta=0.0), "beta"),
        (lambda: Kto(desirable=0.0, undesirable=0.0), "not both 0"),
        (lambda: Kto(desirable=-1.0), "not negative"),
        (lambda: Kto(baseline="median"), "unknown baseline"),
        (lambda: Likelihood(pairs="both"), "unknown pairs"),
        (lambda: Likelihood(over="token"), "did you mean 'tokens'"),
        (lambda: ipo(tau=0.0), "tau=0.0"),
        (lambda: inpo(eta=0.001, tau=0.002), "tau <= eta"),
        (lambda: inpo(eta=0.0, tau=0.0), "eta=0.0"),
        (lambda: inpo(previous="ref"), "different policies"),
        (lambda: f_dpo(divergence="reverse_kl"), "unknown divergence"),
        (lambda: f_dpo(divergence="alpha", alpha=0.0), "power"),
        (lambda: apo(side="up"), "unknown side"),
    ):
        with pytest.raises(ConfigError, match=says):
            make()
