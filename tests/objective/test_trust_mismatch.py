"""Corrections and masks for a sampler that is not quite the trainer, numbers by hand; what is counted twice is refused."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from objective_batches import run, slopes, spread, tiny

from assay.core.batch import Batch
from assay.core.errors import ConfigError, PlanError
from assay.core.plan import Scope
from assay.objective import (
    Center,
    IcePop,
    Kl,
    MinClip,
    Objective,
    PolicyGradient,
    Ratio,
    Reducer,
    SeqSum,
    Token,
    TokenWeight,
    Truncate,
)
from assay.objective.loss.mismatch_reject import Reject, SecondMoment
from assay.objective.loss.ratio_kinds import GeoMean, Mixture
from assay.objective.loss.trust_masks import DivergenceMask
from assay.testing.objective import check_term, evaluate, over_ranks, shard

INF = float("inf")
FREE = {"ratio": Ratio("none"), "trust": None}


def weights(weight: TokenWeight, batch: Batch) -> np.ndarray:
    """The factor of each loss token; all advantages are 1."""
    policy = PolicyGradient(**FREE, weights=(weight,))
    return -slopes(Objective(policy=policy, aggregate=SeqSum()), batch) * len(batch)


def sampled(gaps: Sequence[float], lengths: Sequence[int] | None = None, old: Any = -1.0, **columns: Any) -> Batch:
    """Rollouts with ``log w`` as given."""
    lengths = lengths or [1] * len(gaps)
    old = np.broadcast_to(np.asarray(old, float), len(gaps))
    return tiny([1.0] * len(lengths), lengths=lengths, columns={"logp_old": old, "logp_engine": old - np.array(gaps), **columns})


# ---- truncation ---------------------------------------------------------------------------------------------------------


def test_truncation_from_both_sides() -> None:
    batch = sampled(np.log([0.3, 1.2, 2.5, 6.0]))
    np.testing.assert_allclose(weights(Truncate(), batch), [0.3, 1.2, 2, 2])
    np.testing.assert_allclose(weights(Truncate(low=0.5), batch), [0.5, 1.2, 2, 2])
    np.testing.assert_allclose(weights(Truncate(cap=INF), batch), [0.3, 1.2, 2.5, 6.0])
    np.testing.assert_allclose(weights(Truncate(), sampled([0.0] * 3)), [1, 1, 1])


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("sequence_mean", [np.exp(0.1)] * 4 + [1.0]),
        ("sequence_product", [np.exp(0.4)] * 4 + [1.0]),
        ("turn_mean", np.exp([0.25, 0.25, -0.05, -0.05, 0.0])),
        ("turn_product", np.exp([0.5, 0.5, -0.1, -0.1, 0.0])),
    ],
)
def test_pooled_mismatch(level: str, expected: Any) -> None:
    batch = sampled([0.2, 0.3, -0.3, 0.2, 0.0], [4, 1], call=[0, 0, 3, 3, 0])
    np.testing.assert_allclose(weights(Truncate(cap=9.0, level=level), batch), expected)


def test_normalised_weights_count_each_unit_once() -> None:
    """Two rollouts, w = 2 over four tokens and w = 1 over one: token mean 9/5, rollout mean 3/2."""
    gaps = [math.log(2) / 4] * 4 + [0.0]
    batch = sampled(gaps, [4, 1], call=[0, 0, 1, 1, 0])
    found = weights(Truncate(cap=9.0, level="sequence_product", normalise=True), batch)
    np.testing.assert_allclose(found, np.array([2, 2, 2, 2, 1]) / 1.5)
    turns = weights(Truncate(cap=9.0, level="turn_product", normalise=True), batch)
    np.testing.assert_allclose(turns, np.array([math.sqrt(2)] * 4 + [1]) / ((2 * math.sqrt(2) + 1) / 3))
    whole = sampled([math.log(2)] * 4 + [0.0], [4, 1])
    tokens = weights(Truncate(cap=9.0, normalise=True), whole)
    np.testing.assert_allclose(tokens, np.array([2, 2, 2, 2, 1]) / 1.8)


def clipped(objective: Objective, batch: Batch) -> float:
    """The share that the report gives, over two optimiser steps with half of the groups each."""
    program = objective.compile(2)
    batch = program.credit(batch)
    for rows in np.array_split(np.arange(len(batch)), 2):
        program.prepare(batch.mini(rows))
    return program.metrics()["policy/correction_clipped"]


def test_the_report_says_how_much_a_correction_clips() -> None:
    """w = .3, 1.2, 2.5, 6; the tokens that IcePop masks have no weight left, and count all the same."""
    batch = sampled(np.log([0.3, 1.2, 2.5, 6.0]))
    for weight, share in (
        (Truncate(), 0.5),
        (Truncate(low=0.5), 0.75),
        (Truncate(cap=INF), 0.0),
        (IcePop(low=0.5, high=5.0), 0.5),
        (IcePop(low=0.0, high=5.0, unit=True), 0.25),
        (Reject(measure="ratio", over="token", low=0.5), 0.25),
    ):
        assert clipped(Objective(policy=PolicyGradient(weights=(weight,))), batch) == share
    both = (Reject(measure="ratio", over="token", low=0.5), Truncate())
    assert clipped(Objective(policy=PolicyGradient(weights=both)), batch) == 0.75, "a token that both cut counts once"
    with pytest.raises(KeyError, match="correction_clipped"):
        clipped(Objective(policy=PolicyGradient()), batch)


# ---- rejection ----------------------------------------------------------------------------------------------------------

GAPS = [0.1, -0.4, 0.02, 0.5, 0.0]
"""log w of a rollout of three tokens, and one of two."""


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"measure": "ratio", "over": "token", "low": 0.9, "high": 1.2}, [1, 0, 1, 0, 1]),
        ({"measure": "ratio", "over": "sequence_mean", "low": 0.9, "high": 1.2}, [1, 1, 1, 0, 0]),  # e^-.0933, e^.25
        ({"measure": "ratio", "over": "sequence_sum", "low": 0.7, "high": 1.7}, [1, 1, 1, 1, 1]),  # e^-.28, e^.5
        ({"measure": "ratio", "over": "sequence_sum", "low": 0.8, "high": 1.7}, [0, 0, 0, 1, 1]),
        ({"measure": "ratio", "over": "sequence_any", "low": 0.7, "high": 1.7}, [0, 0, 0, 1, 1]),  # e^-.4 = .670
        ({"measure": "k1", "over": "token", "low": -0.45}, [1, 1, 1, 0, 1]),
        ({"measure": "k1", "over": "sequence_sum", "high": 0.2}, [0, 0, 0, 1, 1]),  # .28, -.5
        ({"measure": "k2", "over": "token", "high": 0.1}, [1, 1, 1, 0, 1]),  # .005 .08 .0002 .125 0
        ({"measure": "k2", "over": "sequence_mean", "high": 0.03}, [1, 1, 1, 0, 0]),  # .0284, .0625
        ({"measure": "k3", "over": "token", "high": 0.1}, [1, 1, 1, 0, 1]),  # .0052 .0703 .0002 .1487 0
        ({"measure": "k3", "over": "sequence_sum", "high": 0.1}, [1, 1, 1, 0, 0]),  # .0757, .1487
        ({"measure": "k3", "over": "turn_any", "high": 0.05}, [1, 0, 0, 0, 0]),
        ({"measure": "k3", "over": "turn_mean", "high": 0.05}, [1, 1, 1, 0, 0]),  # .0052; .0353; .0743
    ],
)
def test_rejection(settings: Mapping[str, Any], kept: list[int]) -> None:
    batch = sampled(GAPS, [3, 2], call=[0, 1, 1, 0, 0])
    np.testing.assert_array_equal(weights(Reject(**settings), batch), kept)


def test_rejection_by_probabilities() -> None:
    """p = .5, .09 under the trainer, q = .4, .06 under the sampler: TV .1, .03; binary KL .0201, .0062."""
    p, q = np.array([0.5, 0.09]), np.array([0.4, 0.06])
    kl = q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p))
    np.testing.assert_allclose(kl, [0.0201355, 0.0061613], atol=1e-7)
    batch = sampled(np.log(p / q), old=np.log(p))
    for measure, between in (("tv", 0.05), ("kl", 0.01)):
        np.testing.assert_array_equal(weights(Reject(measure=measure, over="token", high=between), batch), [0, 1])
        assert weights(Reject(measure=measure, over="token", high=10 * between), batch).all()


def test_what_rejection_must_see() -> None:
    assert (Reject(over="token", high=1.0).scope, Reject(high=1.0).scope) == (Scope.TOKEN, Scope.SEQUENCE)
    assert Reject(over="turn_any", high=1.0).needs == ("logp_old", "logp_engine", "call")


def test_rejection_and_correction_compose() -> None:
    """NeMo's seq-mask-tis: the rollout's geometric mean decides, each token's own w corrects."""
    batch = sampled([0.001, 0.001, 0.1, -0.2], [2, 2])
    policy = PolicyGradient(**FREE, weights=(Reject(measure="ratio", low=0.999, high=1.002), Truncate(cap=INF)))
    objective = Objective(policy=policy, aggregate=SeqSum())
    objective.plan()
    np.testing.assert_allclose(-slopes(objective, batch) * 2, [math.exp(0.001)] * 2 + [0, 0])


# ---- second moment ------------------------------------------------------------------------------------------------------


def moved(drift: Sequence[float], advantage: Sequence[float] | float, weight: SecondMoment) -> list[int]:
    """Which tokens keep their gradient, one token per rollout, drifted from the old policy."""
    signs = np.broadcast_to(np.asarray(advantage, float), len(drift))
    batch = tiny(list(signs), columns={"logp_old": -2.0})
    policy = PolicyGradient(trust=None, weights=(weight,))
    objective = Objective(policy=policy, aggregate=SeqSum())
    assert "logp_now" in [f.column for f in objective.plan().forwards]
    return (slopes(objective, batch, -2.0 + np.array(drift)) != 0).astype(int).tolist()


def test_second_moment_drops_the_largest_until_the_mean_fits() -> None:
    """d^2 = .01 .04 .09 .25: means of the smallest .01 .025 .0467 .0975."""
    drift = [0.1, 0.2, 0.3, 0.5]
    assert moved(drift, 1.0, SecondMoment(budget=0.1)) == [1, 1, 1, 1]
    assert moved(drift, 1.0, SecondMoment(budget=0.0975)) == [1, 1, 1, 1]
    assert moved(drift, 1.0, SecondMoment(budget=0.09)) == [1, 1, 1, 0]
    assert moved(drift, 1.0, SecondMoment(budget=0.04)) == [1, 1, 0, 0]
    assert moved(drift, 1.0, SecondMoment(budget=0.001)) == [0, 0, 0, 0]


def test_second_moment_with_what_is_left_out_still_counted() -> None:
    """Capped at .01: .01; at .04: (.01 + 3 * .04) / 4 = .0325; at .09: (.05 + .18) / 4 = .0575; free: .0975."""
    drift = [0.1, 0.2, 0.3, 0.5]
    for budget, kept in ((0.1, [1, 1, 1, 1]), (0.06, [1, 1, 1, 0]), (0.04, [1, 1, 0, 0]), (0.02, [1, 0, 0, 0]), (0.005, [0] * 4)):
        assert moved(drift, 1.0, SecondMoment(budget=budget, rule="cap")) == kept
    free = SecondMoment(budget=0.02, rule="cap", free=(0.7, 1.25))
    assert moved(drift, 1.0, free) == [1, 1, 0, 0]  # e^.2 = 1.2214


def test_second_moment_counts_only_what_the_step_moves_away() -> None:
    drift, signs = [0.5, -0.5, 0.5, -0.1], [1.0, 1.0, -1.0, -1.0]
    assert moved(drift, signs, SecondMoment(budget=0.04)) == [0, 1, 1, 1]
    assert moved(drift, signs, SecondMoment(budget=0.04, harmful=False)) == [0, 0, 0, 1]


def test_equal_moves_go_together() -> None:
    assert moved([0.3, 0.3, 0.1], 1.0, SecondMoment(budget=0.05)) == [0, 0, 1]
    assert moved([0.0, 0.0], 1.0, SecondMoment()) == [1, 1]


def test_second_moment_of_trainer_and_sampler_needs_no_pass_of_its_own() -> None:
    weight = SecondMoment(budget=0.04, of="old", anchor="engine", harmful=False)
    np.testing.assert_array_equal(weights(weight, sampled([0.1, 0.2, -0.3, 0.5])), [1, 1, 0, 0])
    forwards = Objective(policy=PolicyGradient(weights=(weight,))).plan().forwards
    assert [f.column for f in forwards] == ["logp_old"]


def test_second_moment_is_the_whole_batchs_on_every_rank() -> None:
    """One rank alone would keep its token; with the other's the budget is spent."""
    batch = tiny([1.0, 1.0, 1.0], groups=[0, 1, 1], columns={"logp_old": -2.0})
    objective = Objective(policy=PolicyGradient(trust=None, weights=(SecondMoment(budget=0.04),)), aggregate=SeqSum())
    logp = spread(batch, [-1.7, -1.9, -1.9])
    parts = [shard(batch, [0]), shard(batch, [1])]
    where = [slice(0, 2), slice(2, 6)]

    def one(rank: int, reducer: Reducer) -> np.ndarray:
        live = {"logp_new": logp[where[rank]]}
        return evaluate(objective.compile(reducer=reducer), parts[rank], live).gradients["logp_new"]

    found = np.concatenate(over_ranks(one, 2))
    np.testing.assert_array_equal(found, evaluate(objective.compile(), batch, {"logp_new": logp}).gradients["logp_new"])
    assert found[1] != 0
    assert moved([0.3, 0.1, 0.1], 1.0, SecondMoment(budget=0.036)) == [0, 1, 1]


@pytest.mark.parametrize(
    "weight",
    [
        Truncate(level="turn_mean"),
        Truncate(level="sequence_product", normalise=True),
        IcePop(level="turn_product"),
        Truncate(level="turn_product", normalise=True),
        Reject(high=0.1),
        Reject(measure="tv", over="token", high=0.2),
        Reject(measure="kl", over="turn_sum", high=0.5),
        Reject(measure="ratio", over="sequence_any", low=0.2, high=4.0),
        SecondMoment(budget=0.2),
        SecondMoment(budget=0.2, harmful=False, of="old", anchor="engine"),
        SecondMoment(rule="cap", budget=0.1, free=(0.7, 1.5)),
    ],
    ids=repr,
)
def test_weights_keep_the_laws(weight: TokenWeight, seeds: range) -> None:
    check_term(weight, seeds)


# ---- nothing is corrected twice -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["token", "sequence_product"])
def test_a_replayed_attempt_is_corrected_once(level: str) -> None:
    """Its ratio is against the sampler already, so a correction beside it is 1; without a ratio there is only that."""
    streams = ["on_policy", "replay"]
    columns = {"logp_old": [-1.0, -1.0], "logp_engine": [-1.5, -1.5]}
    batch = tiny([1.0, 1.0], streams=streams, columns=columns)

    def g(ratio: Ratio, trust: Any = None) -> np.ndarray:
        policy = PolicyGradient(ratio=ratio, trust=trust, weights=(Truncate(cap=9.0, level=level),))
        return -2 * slopes(Objective(policy=policy, aggregate=SeqSum()), batch, -0.8)

    np.testing.assert_allclose(g(Ratio()), [math.exp(0.2) * math.exp(0.5), math.exp(0.7)])
    np.testing.assert_allclose(g(Ratio("none")), [math.exp(0.5)] * 2)
    masked = PolicyGradient(trust=None, weights=(IcePop(low=0.9, high=1.1),))
    found = -2 * slopes(Objective(policy=masked, aggregate=SeqSum()), batch, -0.8)
    np.testing.assert_allclose(found, [0, math.exp(0.7)])


def test_weights_that_compare_nothing_leave_replayed_rows_alone() -> None:
    class Half(TokenWeight):
        def weigh(self, batch: Batch, stats: object) -> np.ndarray:
            return np.full(int(batch.offsets[-1]), 0.5)

    batch = tiny([1.0, 1.0], streams=["on_policy", "replay"], columns={"logp_old": -1.0})
    policy = PolicyGradient(ratio=Ratio("token"), trust=None, weights=(Half(),))
    program = Objective(policy=policy, aggregate=SeqSum()).compile()
    np.testing.assert_array_equal(program.prepare(batch).token("policy/weight")[batch.token("mask")], [0.25, 0.25])


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (PolicyGradient(weights=(Truncate(), IcePop())), "Truncate and IcePop both multiply by pi_old/pi_engine"),
        (PolicyGradient(weights=(Truncate(), Truncate(level="sequence_mean"))), "both multiply"),
        (PolicyGradient(ratio=Ratio(anchor="engine"), weights=(Truncate(),)), r"which Ratio\(anchor='engine'\) holds already"),
        (PolicyGradient(ratio=GeoMean(), trust=MinClip()), "GeoMean clips inside its mean, and MinClip would"),
        (PolicyGradient(streams=("expert",), weights=(Truncate(),)), r"no sampler wrote the rows of \['expert'\]"),
        (PolicyGradient(streams=(), ratio=Ratio(anchor="engine")), r"\['expert', 'preference'\]"),
        (PolicyGradient(streams=("on_policy", "expert"), trust=DivergenceMask()), r"\['expert'\]"),
    ],
)
def test_what_parts_make_of_each_other(policy: PolicyGradient, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        policy.check()


@pytest.mark.parametrize(
    "policy",
    [
        PolicyGradient(),
        PolicyGradient(weights=(Truncate(), IcePop(unit=True), Reject(high=0.1))),
        PolicyGradient(ratio=Ratio(anchor="engine"), weights=(IcePop(unit=True), Reject(high=0.1))),
        PolicyGradient(ratio=GeoMean(), trust=None),
        PolicyGradient(ratio=Mixture(), trust=None, streams=("expert",)),
        PolicyGradient(**FREE, weights=(Truncate(),)),
        PolicyGradient(streams=("offline",), ratio=Ratio(anchor="engine")),
    ],
)
def test_what_goes_together(policy: PolicyGradient) -> None:
    policy.check()
    assert Objective(credit=(Center(),), policy=policy).plan().live == ("logp_new",)


def test_a_ratio_at_the_sampler_does_not_clip_what_is_only_stale() -> None:
    """AReaL's point: at the current policy the decoupled ratio is 1 whatever the staleness; against the sampler it is clipped."""
    batch = tiny([1.0, -1.0], columns={"logp_old": -1.0, "logp_engine": [-1.6, -0.4]})
    decoupled = PolicyGradient(weights=(Truncate(cap=5.0),))
    found = slopes(Objective(policy=decoupled, aggregate=SeqSum()), batch, -1.0)
    np.testing.assert_allclose(found * [-2, 2], np.exp([0.6, -0.6]))
    naive = slopes(Objective(policy=PolicyGradient(ratio=Ratio(anchor="engine")), aggregate=SeqSum()), batch, -1.0)
    np.testing.assert_array_equal(naive, [0, 0])


def test_a_drift_penalty_beside_a_ratio_at_the_sampler_acts_on_masked_tokens_too() -> None:
    """prime-rl: the square pulls back what the mask has left out."""
    batch = tiny([1.0], columns={"logp_engine": math.log(0.3)})
    policy = PolicyGradient(ratio=Ratio(anchor="engine"), trust=DivergenceMask())
    objective = Objective(policy=policy, aggregate=Token(), terms=(Kl("k2", coef=2e-3, anchor="engine"),))
    outcome = run(objective, batch, math.log(0.6))
    assert outcome.metrics["policy/clip_fraction"] == 1.0
    np.testing.assert_allclose(outcome.gradients["logp_new"][batch.token("mask")], [2e-3 * math.log(2)])


# ---- settings -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Truncate(low=1.5), "Truncate.low=1.5"),
        (lambda: Truncate(cap=0.4, low=0.5), "at most cap=0.4"),
        (lambda: IcePop(level="segment"), "unknown mismatch level 'segment'"),
        (lambda: Reject(measure="k4", high=1.0), "unknown measure of Reject 'k4'"),
        (lambda: Reject(over="sequence", high=1.0), "unknown unit of Reject 'sequence'"),
        (lambda: Reject(), "must leave something out"),
        (lambda: Reject(high=-0.1), "equal policies give 0.0"),
        (lambda: Reject(measure="ratio", low=1.01), "equal policies give 1.0"),
        (lambda: SecondMoment(rule="clip"), "unknown rule of SecondMoment 'clip'"),
        (lambda: SecondMoment(budget=0.0), "SecondMoment.budget=0.0"),
        (lambda: SecondMoment(free=(1.1, 2.0)), "must hold the ratio 1"),
        (lambda: SecondMoment(of="old", anchor="old"), "does not differ from itself"),
    ],
)
def test_bad_settings_are_named(make: Callable[[], object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()
