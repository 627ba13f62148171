"""Every trust region against its gradient weight in closed form, by autograd in float64 over a grid of advantages and ratios."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from objective_batches import run, slopes, spread, tiny

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.plan import Scope
from assay.objective import (
    Center,
    Gate,
    MinClip,
    Objective,
    PolicyGradient,
    Ratio,
    SeqMean,
    SeqSum,
    Token,
    TrustRegion,
    WeightClip,
)
from assay.objective.loss.base import View
from assay.objective.loss.trust import HardRegion
from assay.objective.loss.trust_masks import DivergenceMask, Within
from assay.objective.loss.trust_penalty import Proximal
from assay.objective.loss.trust_soft import ClipWithGradient, GammaWeight, SoftGate
from assay.testing.objective import check_objective, check_term, evaluate

INF = float("inf")
OLD = -3.0
R = np.array([0.01, 0.3, 0.5, 0.8, 0.85, 0.99, 1.0, 1.01, 1.15, 1.2, 1.25, 1.28, 1.5, 2.5, 5.0, 9.0, 12.0, 15.0])
Weight = Callable[[float, np.ndarray, np.ndarray, float], np.ndarray]
"""``g`` of the advantage, ratios, probabilities now, and the probability under the anchor."""


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def ppo(low: float, high: float, dual: float = INF) -> Weight:
    return lambda a, r, p, q: np.where((r <= 1 + high) if a > 0 else (r >= 1 - low) & (r <= dual), r, 0)


def sapo(up: float, down: float) -> Weight:
    def g(a: float, r: np.ndarray, p: np.ndarray, q: float) -> np.ndarray:
        s = sigmoid((up if a > 0 else down) * (r - 1))
        return 4 * r * s * (1 - s)

    return g


def vespo(up: tuple[float, float], down: tuple[float, float]) -> Weight:
    return lambda a, r, p, q: r ** (up if a > 0 else down)[0] * np.exp((up if a > 0 else down)[1] * (1 - r))


def divergence(measure: str, low: float, high: float, cap: float = INF, both: bool = False) -> Weight:
    def g(a: float, r: np.ndarray, p: np.ndarray, q: float) -> np.ndarray:
        size = np.abs(p - q) if measure == "tv" else q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p))
        risen, fallen = (p > q) & (size > high), (p < q) & (size > low)
        return np.where((risen | fallen) if both else risen if a > 0 else fallen, 0, np.minimum(r, cap))

    return g


REGIONS: list[tuple[TrustRegion, Weight]] = [
    (MinClip(), ppo(0.2, 0.2)),
    (MinClip(low=0.2, high=0.28, dual=10.0), ppo(0.2, 0.28, 10)),
    (Gate(positive=(0.8, 1.2), negative=(0.8, 1.2)), lambda a, r, p, q: np.where((r >= 0.8) & (r <= 1.2), r, 0)),
    (WeightClip(), lambda a, r, p, q: np.minimum(r, 5)),
    (WeightClip(positive=(0.8, 11.0), negative=(0.0, 101.0)), lambda a, r, p, q: np.clip(r, *((0.8, 11) if a > 0 else (0, 101)))),
    (WeightClip(positive=(1.0, 1.0), negative=(0.0, 1.0)), lambda a, r, p, q: np.ones_like(r) if a > 0 else np.minimum(r, 1)),
    (SoftGate(), sapo(1.0, 1.05)),
    (SoftGate(positive=2.0, negative=0.5), sapo(2.0, 0.5)),
    (
        ClipWithGradient(),
        lambda a, r, p, q: np.minimum(r, 1.28) if a > 0 else np.where(r >= 0.8, r, 0),
    ),
    (GammaWeight(), vespo((2, 3), (3, 2))),
    (GammaWeight(positive=(2.0, 1.5), negative=(4.0, 2.5)), vespo((2, 1.5), (4, 2.5))),
    (DivergenceMask(anchor="old"), divergence("tv", 0.2, 0.2)),
    (DivergenceMask(low=0.01, high=0.1, cap=2.0, anchor="old"), divergence("tv", 0.01, 0.1, 2)),
    (DivergenceMask(measure="kl", low=0.02, high=0.05, anchor="old"), divergence("kl", 0.02, 0.05)),
    (DivergenceMask(low=0.01, high=0.01, both=True, anchor="old"), divergence("tv", 0.01, 0.01, both=True)),
    (
        Within(inner=WeightClip(), gate=MinClip(low=0.2, high=0.28)),
        lambda a, r, p, q: np.where((r <= 1.28) if a > 0 else (r >= 0.8), np.minimum(r, 5), 0),
    ),
    (
        Within(inner=SoftGate(), gate=DivergenceMask(low=0.03, high=0.3, anchor="old")),
        lambda a, r, p, q: np.where(divergence("tv", 0.03, 0.3)(a, r, p, q) > 0, sapo(1.0, 1.05)(a, r, p, q), 0),
    ),
]
IDS = [f"{i}-{type(region).__name__}" for i, (region, _) in enumerate(REGIONS)]


@pytest.mark.parametrize("advantage", [2.0, 0.5, -0.5, -2.0])
@pytest.mark.parametrize(("trust", "closed"), REGIONS, ids=IDS)
def test_gradient_is_the_closed_form(trust: TrustRegion, closed: Weight, advantage: float) -> None:
    batch = tiny([advantage] * len(R), columns={"logp_old": OLD})
    objective = Objective(policy=PolicyGradient(trust=trust), aggregate=SeqSum())
    found = -slopes(objective, batch, OLD + np.log(R)) * len(R) / advantage
    expected = closed(advantage, R, R * math.exp(OLD), math.exp(OLD))
    edge = np.isin(R, [0.8, 1.2, 1.28])  # on a border, rounding decides
    np.testing.assert_allclose(found[~edge], expected[~edge], rtol=1e-10, atol=1e-12)
    assert ((np.abs(found - expected) < 1e-9) | (found == 0) | (expected == 0)).all()


@pytest.mark.parametrize("advantage", [1.5, -0.5])
@pytest.mark.parametrize(("trust", "closed"), REGIONS, ids=IDS)
def test_what_a_region_says_of_itself(trust: TrustRegion, closed: Weight, advantage: float) -> None:
    """`weight` is the gradient's, and outside its border a hard region's weight is not the ratio."""
    batch = tiny([advantage] * len(R), columns={"logp_old": OLD})
    objective = Objective(policy=PolicyGradient(trust=trust), aggregate=SeqSum())
    ready = objective.compile().prepare(batch)
    live = torch.tensor(spread(batch, OLD + np.log(R)), dtype=torch.float64, requires_grad=True)
    view = View(ready, {"logp_new": live}, np.flatnonzero(ready.token("mask")), "policy")
    ratio, a = Ratio().of(view), view.column("advantage")
    loss = trust.loss(view, ratio, a)
    (gradient,) = torch.autograd.grad(loss.sum(), live, retain_graph=True)
    weight = trust.weight(view, ratio, a)
    np.testing.assert_allclose(-gradient[view.index].numpy() / advantage, weight.detach().numpy(), rtol=1e-10)
    if isinstance(trust, HardRegion):
        out = trust.outside(view, ratio, a)
        assert (weight[out] != ratio[out]).all()


@pytest.mark.parametrize(("trust", "closed"), REGIONS, ids=IDS)
def test_on_policy_the_weight_is_one(trust: TrustRegion, closed: Weight) -> None:
    for level in ("token", "sequence_mean", "sequence_product", "turn_mean", "average", "geometric_average"):
        batch = tiny([1.0, -1.0], lengths=[2, 3], columns={"logp_old": -0.7, "call": [0, 1, 0, 0, 1]})
        objective = Objective(policy=PolicyGradient(ratio=Ratio(level), trust=trust), aggregate=SeqSum())
        np.testing.assert_allclose(slopes(objective, batch, -0.7) * -2, [1, 1, -1, -1, -1], atol=1e-12)
    assert closed(1.0, np.ones(1), np.array([0.5]), 0.5)[0] == pytest.approx(1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("trust", "closed"), REGIONS, ids=IDS)
def test_regions_keep_the_laws(trust: TrustRegion, closed: Weight) -> None:
    for level in ("token", "sequence_mean"):
        policy = PolicyGradient(ratio=Ratio(level), trust=trust)
        check_objective(Objective(credit=(Center(),), policy=policy, aggregate=Token()), range(2))


@pytest.mark.parametrize(("trust", "closed"), REGIONS, ids=IDS)
def test_extreme_moves_stay_finite(trust: TrustRegion, closed: Weight) -> None:
    batch = tiny([1.0, -1.0, 1.0, -1.0], columns={"logp_old": [-1.0, -1.0, 0.0, 0.0]})
    outcome = run(Objective(policy=PolicyGradient(trust=trust)), batch, [-1e30, 900.0, -700.0, -1e-9])
    assert math.isfinite(outcome.loss)
    assert np.isfinite(outcome.gradients["logp_new"]).all()


def test_the_clip_with_a_gradient_has_the_clip_s_value_and_keeps_1_28_above_it() -> None:
    """Ratios 2, 1, .5 under A = 1 and -1: values of PPO's clip; slopes 1.28 A, not 0, at ratio 2, and 0 at .5 under A = -1."""
    ratios = np.log([2.0, 1.0, 0.5])
    for sign, values, weights in ((1.0, [1.28, 1, 0.5], [1.28, 1, 0.5]), (-1.0, [2, 1, 0.8], [2, 1, 0])):
        batch = tiny([sign] * 3, columns={"logp_old": OLD})
        for trust in (ClipWithGradient(), MinClip(high=0.28)):
            objective = Objective(policy=PolicyGradient(trust=trust), aggregate=SeqSum())
            assert run(objective, batch, OLD + ratios).loss == pytest.approx(-sign * sum(values) / 3)
        kept = Objective(policy=PolicyGradient(trust=ClipWithGradient()), aggregate=SeqSum())
        np.testing.assert_allclose(slopes(kept, batch, OLD + ratios) * -3 * sign, weights, atol=1e-12)


@pytest.mark.parametrize("given", [{"low": 1.5}, {"high": -0.1}, {"high": INF}])
def test_a_clip_with_a_gradient_has_bounds(given: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="ClipWithGradient"):
        ClipWithGradient(**given)


# ---- values that are published ------------------------------------------------------------------------------------------


def test_soft_gate_value() -> None:
    """f(1) = 2 / tau; f(1.5) at tau 1 is 4 sigmoid(.5) = 2.489837."""
    batch = tiny([1.0], columns={"logp_old": OLD})
    objective = Objective(policy=PolicyGradient(trust=SoftGate()), aggregate=SeqSum())
    assert run(objective, batch, OLD).loss == pytest.approx(-2.0)
    assert run(objective, batch, OLD + math.log(1.5)).loss == pytest.approx(-2.489837, abs=1e-6)


def test_gamma_weight_is_one_at_one_and_largest_at_k_over_lambda() -> None:
    grid = np.exp(np.linspace(-3, 2, 2001))
    batch = tiny([1.0] * len(grid), columns={"logp_old": -8.0})
    objective = Objective(policy=PolicyGradient(trust=GammaWeight()), aggregate=SeqSum())
    g = -slopes(objective, batch, -8.0 + np.log(grid)) * len(grid)
    assert grid[g.argmax()] == pytest.approx(2 / 3, rel=2e-3)
    assert g.max() == pytest.approx((2 / 3) ** 2 * math.e, rel=1e-5)


def test_divergence_bounds_frequent_tokens_where_a_ratio_bounds_rare_ones() -> None:
    """Ratio 1.5: from 1 % to 1.5 % is no move in total variation, from 60 % to 90 % is one."""
    batch = tiny([1.0, 1.0], columns={"logp_old": np.log([0.01, 0.6])})
    logp = np.log([0.015, 0.9])
    region = Objective(policy=PolicyGradient(trust=DivergenceMask(anchor="old")), aggregate=SeqSum())
    np.testing.assert_allclose(slopes(region, batch, logp) * -2, [1.5, 0])
    clipped = Objective(policy=PolicyGradient(), aggregate=SeqSum())
    np.testing.assert_allclose(slopes(clipped, batch, logp) * -2, [0, 0])
    # The step that leads back is never left out.
    back = tiny([-1.0], columns={"logp_old": math.log(0.6)})
    np.testing.assert_allclose(slopes(region, back, math.log(0.9)), [1.5])


def test_a_certain_token_has_a_finite_divergence() -> None:
    batch = tiny([1.0, -1.0], columns={"logp_old": [0.0, -1e-12]})
    trust = DivergenceMask(measure="kl", anchor="old")
    outcome = run(Objective(policy=PolicyGradient(trust=trust), aggregate=SeqSum()), batch, [0.0, 0.0])
    assert math.isfinite(outcome.loss)
    np.testing.assert_allclose(outcome.gradients["logp_new"][batch.token("mask")] * -2, [1, -1])


def test_the_mask_may_have_another_anchor_than_the_ratio() -> None:
    """Stable-RL's recomputed masks: ratio against the sampler, divergence against the trainer's old policy."""
    columns = {"logp_old": math.log(0.5), "logp_engine": math.log(0.2)}
    batch = tiny([1.0], columns=columns)
    policy = PolicyGradient(ratio=Ratio(anchor="engine"), trust=DivergenceMask(anchor="old"))
    objective = Objective(policy=policy, aggregate=SeqSum())
    assert {*objective.plan().columns, *(f.column for f in objective.plan().forwards)} == {"logp_engine", "logp_old"}
    np.testing.assert_allclose(slopes(objective, batch, math.log(0.6)), [-3.0])
    engine = Objective(policy=PolicyGradient(ratio=Ratio(anchor="engine"), trust=DivergenceMask()), aggregate=SeqSum())
    np.testing.assert_allclose(slopes(engine, batch, math.log(0.6)), [0.0])


# ---- a gate with a ratio of its own -------------------------------------------------------------------------------------


def test_a_gate_may_judge_whole_attempts() -> None:
    """Rollouts of two tokens drifted by -.1 and +.1 per token: only the one with A < 0 and a negative drift goes."""
    gate = Gate(positive=(0.0, INF), negative=(math.exp(-0.05), INF))
    trust = Within(inner=MinClip(), gate=gate, ratio=Ratio("sequence_mean", anchor="engine"))
    drift = np.repeat([-0.1, 0.1, -0.1, 0.1], 2) + np.tile([0.02, -0.02], 4)
    columns = {"logp_engine": -1.0 - drift, "logp_old": -1.0}
    batch = tiny([1.0, 1.0, -1.0, -1.0], lengths=[2] * 4, columns=columns)
    objective = Objective(policy=PolicyGradient(trust=trust), aggregate=SeqSum())
    assert objective.policy is not None
    assert objective.policy.scope is Scope.SEQUENCE
    np.testing.assert_allclose(slopes(objective, batch) * -4, [1, 1, 1, 1, 0, 0, -1, -1])
    assert run(objective, batch).metrics["policy/clip_fraction"] == pytest.approx(0.25)


def test_within_adds_up_borders_and_reads_what_its_parts_read() -> None:
    soft = Within(inner=SoftGate(), gate=MinClip())
    assert (soft.scope, soft.needs, soft.anchors) == (Scope.TOKEN, (), ())
    wide = Within(inner=soft, gate=Gate(), ratio=Ratio("turn_mean", anchor="ref"))
    assert (wide.scope, wide.needs, wide.anchors) == (Scope.SEQUENCE, ("call",), ("ref",))
    batch = tiny([1.0] * 3, columns={"logp_old": OLD})
    both = Objective(policy=PolicyGradient(trust=Within(inner=MinClip(high=0.5), gate=MinClip(high=0.1))), aggregate=Token())
    assert run(both, batch, OLD + np.log([1.05, 1.3, 2.0])).metrics["policy/clip_fraction"] == pytest.approx(2 / 3)
    gated = Objective(policy=PolicyGradient(trust=soft), aggregate=Token())
    metrics = run(gated, batch, OLD + np.log([1.05, 1.1, 2.0])).metrics
    assert metrics["policy/clip_fraction"] == pytest.approx(1 / 3)


def test_what_a_soft_region_reports() -> None:
    batch = tiny([1.0, -1.0], columns={"logp_old": OLD})
    metrics = run(Objective(policy=PolicyGradient(trust=GammaWeight()), aggregate=Token()), batch, OLD + math.log(2)).metrics
    assert metrics["policy/gradient_weight"] == pytest.approx((4 * math.exp(-3) + 8 * math.exp(-2)) / 2)
    assert "policy/clip_fraction" not in metrics


# ---- a penalty in place of a region -------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["sequence_sum", "sequence_mean"])
def test_proximal_is_half_the_square_of_the_attempts_log_ratio(level: str) -> None:
    drift = np.array([0.3, -0.1, 0.4, 0.2])
    batch = tiny([1.0, 0.0], lengths=[3, 1], columns={"logp_old": -2.0})
    objective = Objective(terms=(Proximal(coef=0.5, level=level),), aggregate=SeqSum())
    s = np.array([0.6, 0.2]) if level == "sequence_sum" else np.array([0.2, 0.2])
    outcome = run(objective, batch, -2.0 + drift)
    assert outcome.loss == pytest.approx(0.5 * (s**2 / 2).mean())
    inner = np.repeat(s / (np.array([3, 1]) if level == "sequence_mean" else 1), [3, 1])
    np.testing.assert_allclose(outcome.gradients["logp_new"][batch.token("mask")], 0.5 * inner / 2)


def test_proximal_holds_the_attempt_at_advantage_over_coefficient() -> None:
    """-A s + tau/2 s^2 is stationary at s = A / tau."""
    batch = tiny([0.25], lengths=[2], columns={"logp_old": -4.0})
    policy = PolicyGradient(ratio=Ratio("none"), trust=None)
    objective = Objective(policy=policy, terms=(Proximal(coef=0.1),), aggregate=SeqSum())
    np.testing.assert_allclose(slopes(objective, batch, [-3.0, -2.5]), [0, 0], atol=1e-12)
    assert (slopes(objective, batch, [-3.0, -3.0]) < 0).all()


@pytest.mark.parametrize("term", [Proximal(), Proximal(level="sequence_mean", anchor="ref")], ids=["sum", "mean"])
def test_proximal_keeps_the_laws(term: Proximal, seeds: range) -> None:
    assert "gradient" in check_term(term, seeds).passed


# ---- settings -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: SoftGate(positive=0.0), "positive temperatures"),
        (lambda: SoftGate(negative=INF), "positive temperatures"),
        (lambda: GammaWeight(positive=(0.0, 1.0)), "GammaWeight.positive=.0.0, 1.0"),
        (lambda: GammaWeight(negative=(1.0, -1.0)), "GammaWeight.negative"),
        (lambda: DivergenceMask(measure="js"), "unknown divergence measure 'js'"),
        (lambda: DivergenceMask(low=-0.1), "bounds >= 0"),
        (lambda: DivergenceMask(high=-0.1), "bounds >= 0"),
        (lambda: DivergenceMask(cap=0.5), "a cap >= 1"),
        (lambda: Within(inner=SoftGate(), gate=MinClip(), ratio=Ratio("none")), "no use for that ratio"),
        (lambda: Within(inner=SoftGate(), gate=DivergenceMask(), ratio=Ratio()), "no use for that ratio"),
        (lambda: Proximal(level="token"), "unknown level of Proximal 'token'"),
        (lambda: Proximal(coef=0.0), "does nothing"),
    ],
)
def test_bad_settings_are_named(make: Callable[[], object], says: str) -> None:
    with pytest.raises((ConfigError, UnknownNameError), match=says):
        make()


def test_regions_without_an_advantage_teach_nothing() -> None:
    batch = tiny([0.0, 1.0], columns={"logp_old": -1.0})
    for trust, _ in REGIONS:
        objective = Objective(policy=PolicyGradient(trust=trust), aggregate=SeqMean())
        live = {"logp_new": spread(batch, -0.9)}
        assert evaluate(objective.compile(), batch, live).gradients["logp_new"][1] == 0
