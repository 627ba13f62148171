"""Named methods of policy following: published numbers, limits, laws. The batch and its losses were also computed by running the
carriers' own functions.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from objective_batches import plain, run, slopes, tiny

from assay.core.errors import ConfigError, PlanError, UnknownNameError
from assay.objective import (
    Center,
    Constant,
    Gate,
    IcePop,
    Kl,
    MinClip,
    Objective,
    PolicyGradient,
    Ratio,
    Scale,
    SeqMean,
    SeqSum,
    Token,
    Truncate,
    WeightClip,
    dapo,
    grpo,
)
from assay.objective.loss.aggregate import Aggregation
from assay.objective.loss.ratio_kinds import GeoMean
from assay.objective.loss.trust_masks import DivergenceMask, Within
from assay.objective.loss.trust_soft import SoftGate
from assay.objective.methods import mismatch, trust
from assay.objective.methods.registry import registered_methods

INF = float("inf")
NAMES = [*trust.__all__, *mismatch.__all__]
TOKEN, ROWS = Token(), SeqMean()


# ---- two rollouts of four and two tokens, A = 1 and -.5 -----------------------------------------------------------------

BEFORE = np.array([-1.0, -0.5, -2.0, -0.7, -0.3, -1.2])
DRIFT = np.array([0.1, -0.3, 0.2, 0.04, -0.5, 0.6])


def loss(policy: PolicyGradient, aggregate: Aggregation = TOKEN, terms: tuple[Kl, ...] = ()) -> float:
    batch = tiny([1.0, -0.5], lengths=[4, 2], columns={"logp_old": BEFORE, "logp_engine": BEFORE})
    return run(Objective(policy=policy, aggregate=aggregate, terms=terms), batch, BEFORE + DRIFT).loss


def clip(low: float, high: float, **settings: Any) -> PolicyGradient:
    return PolicyGradient(trust=WeightClip(positive=(low, high), negative=(low, high)), **settings)


GSPO = PolicyGradient(ratio=Ratio("sequence_mean"), trust=MinClip(low=3e-4, high=4e-4))
LUSPO = PolicyGradient(ratio=Ratio("sequence_mean"), trust=MinClip(low=2e-3, high=2.5e-3))
ENGINE = Ratio(anchor="engine")


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (-0.462623, lambda: loss(PolicyGradient(trust=MinClip(dual=3.0)))),  # verl vanilla, TRL dapo
        (-0.183085, lambda: loss(PolicyGradient(), ROWS)),  # TRL grpo
        (-0.173484, lambda: loss(PolicyGradient(), Constant(length=8))),  # TRL dr_grpo
        (-1.479364, lambda: loss(LUSPO, SeqSum())),  # TRL luspo
        (-0.237382, lambda: loss(GSPO, ROWS)),  # TRL, SkyRL, OpenRLHF
        (-0.491721, lambda: loss(GSPO)),  # AReaL
        (-0.489060, lambda: loss(PolicyGradient(trust=SoftGate()), ROWS)),  # SkyRL
        (-1.001760, lambda: loss(PolicyGradient(trust=SoftGate()))),  # AReaL
        (0.622246, lambda: loss(clip(1.0, 6.0))),  # SkyRL cispo
        (0.641026, lambda: loss(clip(0.0, 1.28))),  # slime, NeMo-RL cispo
        (0.614489, lambda: loss(clip(0.9, 1.1))),  # ROLL cispo
        (0.568340, lambda: loss(clip(0.0, 1.0))),  # ROLL tis
        (0.602898, lambda: loss(PolicyGradient(trust=WeightClip(positive=(1.0, 1.0), negative=(0.0, 1.0))))),  # ROLL topr
        (0.582930, lambda: loss(plain(), TOKEN, trust.kimi15(level="token").terms)),  # ROLL kimi15
        (0.536919, lambda: loss(trust.vespo().policy, TOKEN)),  # TRL vespo
        (-3.196392 / 6, lambda: loss(trust.prime_rl().policy, TOKEN, trust.prime_rl().terms)),  # prime-rl default
        (-3.366633 / 6, lambda: loss(trust.prime_rl_ipo().policy, TOKEN, trust.prime_rl_ipo().terms)),  # prime-rl ipo
    ],
)
def test_losses_of_the_carriers(expected: float, found: Any) -> None:
    assert found() == pytest.approx(expected, abs=6e-7)


# ---- limits -------------------------------------------------------------------------------------------------------------

COLUMNS = {"logp_old": -1.0, "logp_engine": -1.0, "logp_ref": -1.0}
REWARDS, LENGTHS = [1, 0, 0, 1], [1, 2, 3, 4]
LOGP = -1.0 + 0.03 * np.arange(-5, 5)


def same(first: Objective, second: Objective, columns: Mapping[str, Any] = COLUMNS, logp: Any = LOGP) -> None:
    batch = tiny(REWARDS, lengths=LENGTHS, columns=columns)
    found = slopes(first, batch, logp)
    assert np.abs(found).sum() > 0
    np.testing.assert_allclose(found, slopes(second, batch, logp), atol=1e-12)


def test_methods_reduce_to_what_they_are_made_of() -> None:
    bare = grpo(kl=0.0)
    free = replace(bare, policy=PolicyGradient(trust=None))
    same(trust.opsm(delta=9.0), bare)
    same(trust.gmpo(low=9.0, high=9.0), replace(bare, policy=PolicyGradient(ratio=Ratio("sequence_mean"), trust=None)))
    same(trust.luspo(low=0.9, high=9.0), replace(trust.gmpo(low=9.0, high=9.0), aggregate=SeqSum()))
    same(trust.dppo(low=1.0, high=1.0, anchor="old"), replace(free, aggregate=Token()))
    same(trust.cispo_masked(cap=INF), dapo(filter_groups=False))
    same(trust.m2po(budget=9.0), replace(free, aggregate=Token()))
    same(trust.rollout_is(low=1.0, high=INF), trust.dppo(low=1.0, high=1.0, cap=INF))
    same(trust.gpg(filter_groups=False), Objective(credit=(Center(),), policy=plain(), aggregate=Token()))
    same(mismatch.tis(cap=INF), replace(mismatch.areal(cap=INF), aggregate=SeqMean()))
    triplet = replace(dapo(filter_groups=False), policy=PolicyGradient(trust=MinClip(high=0.28, dual=3.0)))
    same(mismatch.hispo(9.0, 9.0, 8), replace(triplet, aggregate=Constant(length=8)))
    engine = {**COLUMNS, "logp_engine": -1.2}
    same(mismatch.masked_is(high=INF), replace(mismatch.tis(cap=INF, level="sequence_product"), aggregate=Token()), engine)
    same(mismatch.geo_mask(low=0.0, high=INF), mismatch.areal(cap=INF), engine)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("topr", "gpg", "kimi15", "dro", "prime_rl", "prime_rl_ipo")])
def test_on_policy_the_first_step_is_grpos(name: str) -> None:
    batch = tiny(REWARDS, lengths=LENGTHS, columns=COLUMNS | {"staleness": 0.0})
    objective = replace(registered_methods()[name].objective(), aggregate=Token())
    soft = 1.0
    np.testing.assert_allclose(
        soft * slopes(objective, batch), slopes(replace(grpo(kl=0.0), aggregate=Token()), batch), atol=1e-12
    )


def test_squares_have_no_gradient_on_policy_and_pull_back_off_it() -> None:
    batch = tiny(REWARDS, lengths=LENGTHS, columns=COLUMNS)
    for objective in (trust.kimi15(), trust.kimi15(level="token"), trust.dro(beta=0.3), trust.dro(beta=0.3, level="sequence")):
        bare = replace(objective, terms=())
        np.testing.assert_allclose(slopes(objective, batch), slopes(bare, batch), atol=1e-12)
        pull = slopes(objective, batch, -0.9) - slopes(bare, batch, -0.9)
        assert (pull > 0).all()
    token, sequence = (
        slopes(replace(trust.dro(beta=0.3, level=x), policy=None, credit=()), batch, -0.9) for x in ("token", "sequence")
    )
    np.testing.assert_allclose(sequence, token * np.repeat(LENGTHS, LENGTHS))
    assert trust.dro(beta=0.3, anchor="ref").plan().forwards[0].column == "logp_ref"


def test_topr_never_truncates_what_it_lifts() -> None:
    """Product ratios e^.8 and e^-.8: weight 1 where A > 0; min(w, 1) where A < 0."""
    batch = tiny([1.0, 1.0, 0.0, 0.0], lengths=[2] * 4, columns={"logp_old": -1.0})
    logp = -1.0 + np.repeat([0.4, -0.4, 0.4, -0.4], 2)
    weight = slopes(trust.topr(), batch, logp) / np.repeat([-0.5, -0.5, 0.5, 0.5], 2) * 4
    np.testing.assert_allclose(weight, np.repeat([1, 1, 1, math.exp(-0.8)], 2))
    assert trust.topr(level="token", anchor="engine").plan().columns == ("logp_engine",)


def test_gpg_makes_up_for_groups_that_do_not_vary() -> None:
    """Two groups of two rollouts with one token; one does not vary: alpha = 4 / 2."""
    batch = tiny([1, 0, 1, 1], [0, 0, 1, 1])
    np.testing.assert_allclose(slopes(trust.gpg(), batch), 2 * slopes(trust.gpg(filter_groups=False), batch))


def test_m2po_leaves_a_free_band_and_drops_the_rest_over_budget() -> None:
    batch = tiny([1.0, 0.0, 1.0, 0.0], columns={"logp_old": -2.0})
    logp = -2.0 + np.array([0.9, 0.9, 0.3, -0.3])
    assert (slopes(trust.m2po(), batch, logp) != 0).tolist() == [False, True, True, True]  # e^.3 = 1.35 and e^-.3 = .74 are free
    assert (slopes(trust.m2po(rule="drop", free_low=1.0, free_high=1.0, budget=0.1), batch, logp) != 0).tolist() == [
        False,
        True,
        True,
        True,
    ]
    assert not slopes(trust.m2po(rule="drop", free_low=1.0, free_high=1.0, budget=0.01), batch, logp)[[0, 2, 3]].any()


def test_off_policy_sequence_mask_drops_drifted_failures_only() -> None:
    batch = tiny([1, 0, 1, 0], columns={"logp_old": -1.0, "logp_engine": -1.0})
    drift = np.array([-0.1, -0.1, 0.1, 0.1])
    found = slopes(trust.opsm(delta=0.05), batch, -1.0 + drift)
    assert (found != 0).tolist() == [True, False, True, True]
    loose = slopes(trust.opsm(delta=0.15), batch, -1.0 + drift)
    assert (loose != 0).all()
    old = trust.opsm(anchor="old").plan()
    assert (old.columns, [f.column for f in old.forwards]) == ((), ["logp_old"])


# ---- corrections --------------------------------------------------------------------------------------------------------


def test_areal_in_its_three_forms() -> None:
    w = np.array([0.5, 3.0, 9.0, 1.0])
    columns = {"logp_old": -1.0, "logp_engine": -1.0 - np.log(w), "staleness": [1.0, 2.0, 3.0, 0.0]}
    batch = tiny([1, 0, 1, 0], columns=columns)
    bare = slopes(replace(mismatch.areal(), policy=PolicyGradient()), batch)
    np.testing.assert_allclose(slopes(mismatch.areal(), batch) / bare, np.minimum(w, 5))
    np.testing.assert_allclose(slopes(mismatch.areal(mask=True), batch) / bare, np.where(w <= 5, w, 0))
    loglinear = mismatch.areal(loglinear=True, clip=0.9)
    assert loglinear.plan().columns == ("logp_engine", "staleness")
    assert loglinear.plan().forwards == ()
    # s = 1: prox is the sampler, ratio w; s = 2: half way, ratio and weight sqrt(3); s = 3: w^(1/3) and w^(2/3).
    a = np.array([0, 0.5, 2 / 3, 0])
    kept = [1, 1, w[2] ** (1 / 3) <= 1.9, 1]
    np.testing.assert_allclose(slopes(loglinear, batch) / bare, w ** (1 - a) * np.minimum(w**a, 5) * kept)


def test_hispo_numbers() -> None:
    """log w = [.02, -.01, .5, 0] has geometric mean 1.1360: inside .2, not inside .1; the third token is out by itself."""
    gap = np.array([0.02, -0.01, 0.5, 0.0])
    batch = tiny([1.0, 0.0], lengths=[4, 1], columns={"logp_engine": -2.0, "logp_old": [*(-2.0 + gap), -2.0]})

    def kept(sequence: float, token: float = 0.1) -> list[bool]:
        return (slopes(mismatch.hispo(sequence, token, 8), batch, -2.0)[:4] != 0).tolist()

    assert math.exp(gap.mean()) == pytest.approx(1.1360, abs=5e-5)
    assert kept(0.1) == [False] * 4
    assert kept(0.2) == [True, True, False, True]
    assert kept(0.2, 0.7) == [True] * 4
    assert kept(2.0, 1.5) == [True] * 4
    policy = mismatch.hispo(0.2, 0.1, 8).policy
    assert isinstance(policy, PolicyGradient)
    one = tiny([1.0] * 2 + [-1.0] * 3, columns={"logp_engine": -3.0, "logp_old": -3.0})
    rho = np.array([1.2, 1.3, 0.7, 2.0, 3.5])
    g = slopes(Objective(policy=policy, aggregate=SeqSum()), one, -3.0 + np.log(rho)) * [-5, -5, 5, 5, 5]
    np.testing.assert_allclose(g, [1.2, 0, 0, 2, 0], atol=1e-12)


def test_settings_reach_the_parts() -> None:
    assert mismatch.tis(cap=5.0, level="sequence_product", low=0.5, normalise=True).policy == PolicyGradient(
        weights=(Truncate(cap=5.0, level="sequence_product", low=0.5, normalise=True),)
    )
    assert mismatch.masked_is().policy == PolicyGradient(weights=(IcePop(low=0.0, high=3.0, level="sequence_product"),))
    assert trust.sapo(positive=2.0, level="sequence_mean").policy == PolicyGradient(
        ratio=Ratio("sequence_mean"), trust=SoftGate(positive=2.0)
    )
    assert trust.dppo("kl").policy == PolicyGradient(
        ratio=ENGINE, trust=DivergenceMask(measure="kl", low=0.05, high=0.05, cap=20.0)
    )
    assert trust.dppo(low=0.1).policy == PolicyGradient(ratio=ENGINE, trust=DivergenceMask(low=0.1, cap=20.0))
    assert trust.gmpo(0.2, 0.3).policy == PolicyGradient(ratio=GeoMean(low=0.2, high=0.3), trust=None)
    assert trust.prime_rl(kl=0.0).terms == ()
    assert trust.prime_rl_ipo(0.3).policy == PolicyGradient(ratio=ENGINE, trust=DivergenceMask(low=0.3, high=0.3, both=True))
    assert trust.rollout_is(1.5, 0.4).policy == PolicyGradient(ratio=ENGINE, trust=Gate(positive=(0, 1.4), negative=(0, 1.4)))
    assert trust.cispo_masked(4.0, 0.1, 0.2).policy == PolicyGradient(
        trust=Within(inner=WeightClip(positive=(0, 4.0), negative=(0, 4.0)), gate=MinClip(low=0.1, high=0.2))
    )
    assert trust.vespo(anchor="engine").credit == (Center(), Scale())


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: trust.opsm(delta=-0.1), ConfigError, "must hold r = 1"),
        (lambda: trust.dppo("js"), UnknownNameError, "unknown divergence measure"),
        (lambda: trust.kimi15(level="turn"), UnknownNameError, "unknown level of Proximal 'turn_sum'"),
        (lambda: trust.topr(level="none").plan(), PlanError, "bounds a ratio"),
        (lambda: mismatch.hispo(0.1, 0.1).plan(), PlanError, "constant divisor needs its constant"),
        (lambda: registered_methods()["hispo"].make(), TypeError, "sequence"),
        (lambda: mismatch.areal(cap=0.5, mask=True), ConfigError, "must hold w = 1"),
    ],
)
def test_bad_settings_are_named(make: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        make()
