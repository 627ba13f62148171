"""Ratios: levels, anchors, clipped means, mixtures and interpolated policies, against numbers by hand and autograd."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from objective_batches import run, slopes, spread, tiny

from assay.core.errors import ConfigError, DataError, PlanError
from assay.core.plan import Scope
from assay.objective import Center, MinClip, Objective, PolicyGradient, Ratio, SeqMean, SeqSum, Token, Truncate
from assay.objective.loss.ratio_kinds import GeoMean, Interpolated, Mixture
from assay.testing.objective import check_objective, evaluate, split_rows

OLD = -2.0
DRIFT = np.array([0.1, -0.3, 0.2, 0.04])


def policy(ratio: Ratio, **settings: Any) -> Objective:
    """No trust region unless one is given; sum over a rollout's tokens."""
    aggregate = settings.pop("aggregate", SeqSum())
    brings = settings.pop("brings", ())
    return Objective(policy=PolicyGradient(**{"ratio": ratio, "trust": None, **settings}), aggregate=aggregate, brings=brings)


# ---- levels -------------------------------------------------------------------------------------------------------------

CALLS = [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("token", np.exp(DRIFT)),
        ("sequence_mean", np.full(4, math.exp(0.01))),
        ("sequence_product", np.full(4, math.exp(0.04))),
        ("turn_mean", np.exp([-0.1, -0.1, 0.12, 0.12])),
        ("turn_product", np.exp([-0.2, -0.2, 0.24, 0.24])),
        ("average", (np.exp(DRIFT) + math.exp(0.01)) / 2),
        ("geometric_average", np.exp((DRIFT + 0.01) / 2)),
    ],
)
def test_levels(level: str, expected: np.ndarray) -> None:
    batch = tiny([1.0, -1.0], lengths=[4, 1], columns={"logp_old": OLD, "call": [*CALLS, 1]})
    outcome = run(policy(Ratio(level)), batch, np.append(OLD + DRIFT, OLD + 0.5))
    np.testing.assert_allclose(outcome.gradients["logp_new"][batch.token("mask")][:4] * -2, expected)
    assert outcome.loss * 2 == pytest.approx(-expected.sum() + math.exp(0.5))
    plan = policy(Ratio(level)).plan()
    assert plan.split is (Scope.TOKEN if level == "token" else Scope.SEQUENCE)
    assert ("call" in plan.columns) == level.startswith("turn")


def test_a_turn_of_one_token_is_a_token_and_a_turn_of_all_is_an_attempt() -> None:
    batch = tiny([1.0], lengths=[4], columns={"logp_old": OLD, "call": [0, 1, 2, 3]})
    for level in ("turn_mean", "turn_product"):
        np.testing.assert_allclose(slopes(policy(Ratio(level)), batch, OLD + DRIFT), -np.exp(DRIFT))
    batch = tiny([1.0], lengths=[4], columns={"logp_old": OLD, "call": [7] * 4})
    for unit in ("mean", "product"):
        turn, sequence = (slopes(policy(Ratio(f"{of}_{unit}")), batch, OLD + DRIFT) for of in ("turn", "sequence"))
        np.testing.assert_allclose(turn, sequence)


@pytest.mark.parametrize("level", ["sequence_mean", "turn_mean", "turn_product", "average", "geometric_average"])
def test_pooled_levels_keep_the_laws(level: str, seeds: range) -> None:
    check_objective(replace(policy(Ratio(level), trust=MinClip(), aggregate=Token()), credit=(Center(),)), seeds)


@pytest.mark.parametrize("level", ["turn_mean", "average"])
def test_pooled_levels_need_the_whole_attempt(level: str) -> None:
    batch = tiny([1.0, 0.0], lengths=[4, 4], columns={"logp_old": OLD, "call": 0})
    split, source = max((split_rows(batch, seed) for seed in range(4)), key=lambda pair: len(pair[0]))
    live = {"logp_new": spread(batch, -1.0)[source]}
    with pytest.raises(DataError, match="only some rows of a rollout"):
        evaluate(policy(Ratio(level)).compile(), split, live, [[r] for r in range(len(split))])


def test_gspo_token_form_is_the_gradient_of_the_sequence_form() -> None:
    """Autograd of -A exp(mean_t l_t), equal advantages inside the rollout."""
    batch = tiny([1.5], lengths=[4], columns={"logp_old": OLD})
    lp = torch.tensor(OLD + DRIFT, dtype=torch.float64, requires_grad=True)
    (expected,) = torch.autograd.grad(-1.5 * (lp - OLD).mean().exp(), lp)
    found = slopes(policy(Ratio("sequence_mean"), aggregate=SeqMean()), batch, OLD + DRIFT)
    np.testing.assert_allclose(found, expected.numpy())


@pytest.mark.parametrize("anchor", ["ref", "teacher", "adversary"])
def test_any_policy_may_be_the_anchor(anchor: str) -> None:
    """A-LoL's ratio is against the reference; a copy of one's own is promised by name."""
    objective = policy(Ratio(anchor=anchor), brings=() if anchor != "adversary" else ("logp_adversary",))
    batch = tiny([1.0], columns={f"logp_{anchor}": -1.5})
    np.testing.assert_allclose(slopes(objective, batch, -1.0), [-math.exp(0.5)])
    assert f"logp_{anchor}" in {*objective.plan().columns, *(f.column for f in objective.plan().forwards)}


def test_an_anchor_that_nobody_brings_is_refused() -> None:
    with pytest.raises(PlanError, match="PolicyGradient needs the column 'logp_adversary'"):
        policy(Ratio(anchor="adversary")).plan()


# ---- GMPO ---------------------------------------------------------------------------------------------------------------


def gmpo_by_autograd(advantage: float, drift: np.ndarray, low: float, high: float) -> tuple[float, np.ndarray]:
    """-A exp(mean_t sgn(A) min(sgn(A) l, sgn(A) clamp(l, -low, high))), as published."""
    lp = torch.tensor(OLD + drift, dtype=torch.float64, requires_grad=True)
    z = lp - OLD
    sign = math.copysign(1.0, advantage)
    inner = sign * torch.minimum(sign * z, sign * z.clamp(-low, high))
    loss = -advantage * inner.mean().exp()
    (gradient,) = torch.autograd.grad(loss, lp)
    return float(loss.detach()), gradient.numpy()


@pytest.mark.parametrize("advantage", [1.0, -0.5])
@pytest.mark.parametrize("bounds", [(0.4, 0.4), (0.15, 0.05), (0.0, 0.0)])
def test_geometric_mean_of_clipped_ratios(advantage: float, bounds: tuple[float, float]) -> None:
    drift = np.array([0.5, -0.6, 0.2, 0.04])
    batch = tiny([advantage], lengths=[4], columns={"logp_old": OLD})
    objective = policy(GeoMean(low=bounds[0], high=bounds[1]), aggregate=SeqMean())
    outcome = run(objective, batch, OLD + drift)
    loss, gradient = gmpo_by_autograd(advantage, drift, *bounds)
    assert outcome.loss == pytest.approx(loss)
    np.testing.assert_allclose(outcome.gradients["logp_new"][batch.token("mask")], gradient, atol=1e-12)
    clipped = (drift > bounds[1]) if advantage > 0 else (drift < -bounds[0])
    assert outcome.metrics["policy/clip_fraction"] == pytest.approx(clipped.mean())


def test_geometric_mean_numbers_and_limits() -> None:
    """A > 0, log-ratios .5, -.6, .2, .04, high .4: (.4 - .6 + .2 + .04) / 4 = .01; the clipped token has no gradient."""
    drift = np.array([0.5, -0.6, 0.2, 0.04])
    batch = tiny([1.0], lengths=[4], columns={"logp_old": OLD})
    found = slopes(policy(GeoMean(), aggregate=SeqMean()), batch, OLD + drift)
    np.testing.assert_allclose(found, [0, *[-math.exp(0.01) / 4] * 3], atol=1e-12)
    free = slopes(policy(GeoMean(low=9.0, high=9.0), aggregate=SeqMean()), batch, OLD + drift)
    np.testing.assert_allclose(free, slopes(policy(Ratio("sequence_mean"), aggregate=SeqMean()), batch, OLD + drift))
    one = tiny([1.0, -1.0], columns={"logp_old": OLD})
    narrow = GeoMean(low=-math.log(0.8), high=math.log(1.2))
    for logp in (OLD - 0.3, OLD + 0.1, OLD + 0.3):
        np.testing.assert_allclose(slopes(policy(narrow), one, logp), slopes(policy(Ratio(), trust=MinClip()), one, logp))


def test_geometric_mean_against_the_sampler_keeps_the_laws(seeds: range) -> None:
    ratio = GeoMean(anchor="engine", low=0.3)
    objective = Objective(credit=(Center(),), policy=PolicyGradient(ratio=ratio, trust=None), aggregate=SeqMean())
    assert objective.plan().columns == ("logp_engine",)
    check_objective(objective, seeds)


# ---- RL-PLUS ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("uniform", "expected"), [(1.0, 0.25), (1e-9, 0.1 * 2 / 0.3)])
def test_mixture_numbers(uniform: float, expected: float) -> None:
    """p = .1, p_old = .2: pi_hat = .6 with U = 1, ratio .2/.8; pi_hat = .1 with U near 0, ratio 2/3."""
    batch = tiny([1.0], columns={"logp_old": math.log(0.2)})
    outcome = run(policy(Mixture(uniform=uniform)), batch, math.log(0.1))
    assert outcome.loss == pytest.approx(-expected)
    np.testing.assert_allclose(outcome.gradients["logp_new"][batch.token("mask")], [-expected])


def test_mixture_share_and_bound(seeds: range) -> None:
    batch = tiny([1.0], columns={"logp_ref": -50.0})
    outcome = run(policy(Mixture(anchor="ref", uniform=0.01, share=0.25)), batch, math.log(0.5))
    assert outcome.loss == pytest.approx(-1.0 / 0.0025)
    assert outcome.loss > -2 / (0.25 * 0.01)
    check_objective(replace(policy(Mixture()), credit=(Center(),)), seeds)


# ---- AReaL's interpolated policy ----------------------------------------------------------------------------------------


def test_interpolated_policy_numbers() -> None:
    """Staleness 0, 1: the recent policy is the sampler's; 2: half way; 4: three quarters."""
    d = 0.4
    stale = np.array([0.0, 1.0, 2.0, 4.0])
    batch = tiny([1.0] * 4, columns={"logp_engine": OLD, "staleness": stale})
    a = np.array([0, 0, 0.5, 0.75])
    objective = policy(Interpolated(), brings=("staleness",))
    assert objective.plan().columns == ("logp_engine", "staleness")
    outcome = run(objective, batch, OLD + d)
    np.testing.assert_allclose(-4 * outcome.gradients["logp_new"][batch.token("mask")], np.exp((1 - a) * d) * np.exp(a * d))
    for mask, kept in ((False, np.minimum(np.exp(a * d), 1.25)), (True, np.where(np.exp(a * d) <= 1.25, np.exp(a * d), 0))):
        capped = policy(Interpolated(cap=1.25, mask=mask), trust=MinClip(high=0.3), brings=("staleness",))
        inside = np.exp((1 - a) * d) <= 1.3
        np.testing.assert_allclose(-4 * slopes(capped, batch, OLD + d), np.where(inside, np.exp((1 - a) * d) * kept, 0))


def test_interpolated_policy_keeps_the_laws_and_holds_the_correction_already() -> None:
    objective = policy(Interpolated(cap=1.5), trust=MinClip(), brings=("staleness",), aggregate=Token())
    check_objective(replace(objective, credit=(Center(),)), range(3))
    with pytest.raises(PlanError, match="multiplies by pi_old/pi_engine"):
        PolicyGradient(ratio=Interpolated(), weights=(Truncate(),)).check()
    with pytest.raises(PlanError, match="multiplies by pi_old/pi_engine"):
        policy(Interpolated(), weights=(Truncate(),), brings=("staleness",)).plan()


# ---- settings -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Ratio("sequence"), "unknown ratio level 'sequence'"),
        (lambda: GeoMean(low=-0.1), "numbers >= 0"),
        (lambda: GeoMean(high=float("nan")), "numbers >= 0"),
        (lambda: Mixture(uniform=0.0), "both in .0, 1."),
        (lambda: Mixture(share=1.5), "both in .0, 1."),
        (lambda: Interpolated(cap=0.0), "Interpolated.cap=0.0"),
    ],
)
def test_bad_settings_are_named(make: Callable[[], object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()
