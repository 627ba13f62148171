"""Each surrogate against its closed-form gradient weight ``g``, and the detached weights."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from objective_batches import run, slopes, spread, tiny

from assay.core.batch import Batch, pack_rows
from assay.core.columns import TokenColumn
from assay.core.errors import ConfigError, DataError
from assay.core.rollout import ids_of
from assay.core.sample import supervised_sample
from assay.objective import (
    Center,
    Gate,
    IcePop,
    Kl,
    MinClip,
    Objective,
    PolicyGradient,
    Ratio,
    Reducer,
    SeqMean,
    SeqSum,
    Token,
    TokenWeight,
    Truncate,
    TrustRegion,
    WeightClip,
    gspo,
    loop,
    rloo,
    scale_rl,
)
from assay.objective.loss.trust_soft import GammaWeight
from assay.testing.objective import evaluate, over_ranks, shard

INF = float("inf")
RATIOS = [0.5, 0.9, 1.2, 1.5, 12.0]
PPO = MinClip(low=0.2, high=0.28, dual=10.0)
DISPO = WeightClip(positive=(0.8, 11.0), negative=(0.0, 101.0))


def g(policy: PolicyGradient, sign: float, ratios: list[float], old: float = -3.0) -> np.ndarray:
    """``g`` of one-token rollouts with reward ``sign`` (no baseline)."""
    batch = tiny([sign] * len(ratios), columns={"logp_old": old})
    gradient = slopes(Objective(policy=policy, aggregate=SeqSum()), batch, old + np.log(ratios))
    return -gradient * len(ratios) / sign


@pytest.mark.parametrize(
    ("trust", "sign", "expected"),
    [
        (PPO, 1, [0.5, 0.9, 1.2, 0, 0]),
        (PPO, -1, [0, 0.9, 1.2, 1.5, 0]),
        (WeightClip(), 1, [0.5, 0.9, 1.2, 1.5, 5]),
        (WeightClip(), -1, [0.5, 0.9, 1.2, 1.5, 5]),
        (DISPO, 1, [0.8, 0.9, 1.2, 1.5, 11]),
        (DISPO, -1, [0.5, 0.9, 1.2, 1.5, 12]),
        (MinClip(), 1, [0.5, 0.9, 1.2, 0, 0]),
        (MinClip(), -1, [0, 0.9, 1.2, 1.5, 12]),
        (Gate(positive=(0.6, 1.3), negative=(0.6, 1.3)), 1, [0, 0.9, 1.2, 0, 0]),
        (None, 1, RATIOS),
    ],
)
def test_gradient_weight(trust: TrustRegion | None, sign: float, expected: list[float]) -> None:
    np.testing.assert_allclose(g(PolicyGradient(trust=trust), sign, RATIOS), expected, atol=1e-12)


@pytest.mark.parametrize(("sign", "ratio", "weight"), [(1, 0.5, 0.8), (1, 20, 11), (-1, 0.5, 0.5), (-1, 20, 20), (-1, 200, 101)])
def test_dispo_weights(sign: float, ratio: float, weight: float) -> None:
    assert g(PolicyGradient(trust=DISPO), sign, [ratio])[0] == pytest.approx(weight)


def test_clip_higher_keeps_a_gradient_where_grpo_has_none() -> None:
    assert g(PolicyGradient(trust=MinClip(low=0.2, high=0.28)), 1, [1.25])[0] == pytest.approx(1.25)
    assert g(PolicyGradient(), 1, [1.25])[0] == 0
    assert g(PolicyGradient(trust=WeightClip(positive=(0.0, 1.28), negative=(0.0, 1.28))), 1, [1.5, 0.5]) == pytest.approx(
        [1.28, 0.5]
    )


def test_loop_bounds_are_reciprocal() -> None:
    policy = loop().policy
    assert isinstance(policy, PolicyGradient)
    assert isinstance(policy.trust, MinClip)
    (_, high), (low, _) = policy.trust.bounds
    assert (low, high) == (pytest.approx(0.909091, abs=1e-6), pytest.approx(1.1))
    assert math.log(high) == pytest.approx(-math.log(low)) == pytest.approx(0.09531, abs=1e-5)


def test_loop_at_the_old_policy_is_leave_one_out() -> None:
    batch = tiny([1, 0, 0, 0], lengths=[1, 2, 3, 2], columns={"logp_old": -1.0})
    free = replace(rloo(), aggregate=SeqMean())
    np.testing.assert_allclose(slopes(loop(), batch), slopes(free, batch))
    np.testing.assert_allclose(slopes(loop(), batch)[0], -1 / 4)


def test_dispo_with_equal_bounds_is_cispo() -> None:
    equal = PolicyGradient(trust=replace(DISPO, positive=(0.0, 5.0), negative=(0.0, 5.0)))
    for sign in (1, -1):
        np.testing.assert_array_equal(g(equal, sign, RATIOS), g(PolicyGradient(trust=WeightClip()), sign, RATIOS))


def test_scale_rl_weighs_by_the_samplers_ratio_per_prompt() -> None:
    """Prompt P with 2 and 6 tokens, Q with 4: each prompt counts a half; the weight is against the engine, capped at 5."""
    w = np.array([1.0, 7.0, 2.0, 0.5])
    batch = tiny([1, 0, 1, 0], [0, 0, 1, 1], [2, 6, 3, 1], columns={"logp_engine": np.repeat(-2.0 - np.log(w), [2, 6, 3, 1])})
    found = slopes(scale_rl(), batch, -2.0)
    advantage = np.array([1, -1, 1, -1]) * 0.5 / (np.std([1, 0, 1, 0], ddof=1) + 1e-6)
    share = np.array([1 / 16, 1 / 16, 1 / 8, 1 / 8])
    np.testing.assert_allclose(found, np.repeat(-advantage * share * np.minimum(w, 5), [2, 6, 3, 1]))


def test_decoupled_ppo_without_a_mismatch_is_ppo() -> None:
    from assay.objective import areal

    batch = tiny([1, 0, 1, 0], lengths=[1, 2, 3, 1], columns={"logp_old": -1.0, "logp_engine": -1.0})
    logp = -1.0 + 0.1 * np.arange(-3, 4)
    np.testing.assert_array_equal(slopes(areal(), batch, logp), slopes(replace(areal(), policy=PolicyGradient()), batch, logp))


def test_hispo_composes_from_masks_that_correct_nothing() -> None:
    """Full ratio against the sampler, masks on trainer/sampler: [.02, -.01, .5, 0] has geometric ratio 1.1360."""
    trust = MinClip(low=0.2, high=0.28, dual=3.0)
    gap = np.array([0.02, -0.01, 0.5, 0.0])
    columns = {"logp_engine": -2.0, "logp_old": -2.0 + gap}
    batch = tiny([1.0], lengths=[4], columns=columns)

    def mask(sequence: float) -> np.ndarray:
        bands = (
            IcePop(low=1 - sequence, high=1 + sequence, level="sequence_mean", unit=True),
            IcePop(low=0.9, high=1.1, unit=True),
        )
        objective = Objective(policy=PolicyGradient(ratio=Ratio(anchor="engine"), trust=trust, weights=bands), aggregate=SeqSum())
        objective.plan()
        return -slopes(objective, batch, -2.0)

    assert math.exp(gap.mean()) == pytest.approx(1.1360, abs=5e-5)
    np.testing.assert_array_equal(mask(0.1), [0, 0, 0, 0])
    np.testing.assert_array_equal(mask(0.2), [1, 1, 0, 1])
    np.testing.assert_allclose(g(PolicyGradient(trust=trust), 1, [1.2, 1.3]), [1.2, 0], atol=1e-12)
    np.testing.assert_allclose(g(PolicyGradient(trust=trust), -1, [0.7, 2.0, 3.5]), [0, 2, 0], atol=1e-12)


LOG_RATIOS = np.array([0.1, -0.3, 0.2, 0.04])


def test_sequence_ratio_is_the_geometric_mean_or_the_product() -> None:
    batch = tiny([1.0], lengths=[4], columns={"logp_old": -2.0})
    logp = -2.0 + LOG_RATIOS
    free = {"trust": None}
    mean = Objective(policy=PolicyGradient(ratio=Ratio("sequence_mean"), **free), aggregate=SeqMean())
    assert run(mean, batch, logp).loss == pytest.approx(-1.01005, abs=5e-6)
    np.testing.assert_allclose(slopes(mean, batch, logp), [-1.01005 / 4] * 4, atol=5e-6)
    product = Objective(policy=PolicyGradient(ratio=Ratio("sequence_product"), **free), aggregate=SeqSum())
    np.testing.assert_allclose(slopes(product, batch, logp), [-1.0408] * 4, atol=5e-5)


def test_gspo_gates_the_whole_sequence() -> None:
    batch = tiny([1.0, 0.0], lengths=[4, 4], columns={"logp_old": -2.0})
    outcome = slopes(gspo(), batch, np.concatenate([-2.0 + LOG_RATIOS, -2.0 + 0.0001 * np.ones(4)]))
    assert (outcome[:4] == 0).all()
    assert (outcome[4:] > 0).all()
    one = tiny([1.0, 0.0], columns={"logp_old": -2.0})
    token = replace(gspo(), policy=PolicyGradient(trust=MinClip(low=3e-4, high=4e-4)))
    np.testing.assert_allclose(slopes(gspo(), one, [-2.0001, -1.9999]), slopes(token, one, [-2.0001, -1.9999]))


def test_sequence_ratio_needs_the_whole_attempt() -> None:
    from assay.testing.objective import split_rows

    batch = tiny([1.0, 0.0], lengths=[4, 4], columns={"logp_old": -2.0})
    split, source = max((split_rows(batch, seed) for seed in range(4)), key=lambda pair: len(pair[0]))
    assert len(split) > len(batch)
    live = {"logp_new": spread(batch, -1.0)[source]}
    rows = [[r] for r in range(len(split))]
    with pytest.raises(DataError, match="only some rows of a rollout"):
        evaluate(gspo().compile(), split, live, rows)


def test_truncated_and_masked_weights() -> None:
    w = np.array([0.3, 1.2, 2.5, 6.0])
    batch = tiny([1.0] * 4, columns={"logp_old": np.log(w) - 3.0, "logp_engine": -3.0})

    def weights(weight: TokenWeight) -> np.ndarray:
        policy = PolicyGradient(ratio=Ratio("none"), trust=None, weights=(weight,))
        return -slopes(Objective(policy=policy, aggregate=SeqSum()), batch) * 4

    np.testing.assert_allclose(weights(Truncate(cap=2.0)), [0.3, 1.2, 2, 2])
    np.testing.assert_allclose(weights(IcePop()), [0, 1.2, 2.5, 0])
    np.testing.assert_allclose(weights(IcePop(unit=True)), [0, 1, 1, 0])
    np.testing.assert_allclose(weights(IcePop(low=0.0, high=INF)), w)
    np.testing.assert_allclose(weights(Truncate(cap=2.0, normalise=True)).mean(), 1.0)


@pytest.mark.parametrize(("level", "expected"), [("sequence_mean", math.exp(0.25)), ("sequence_product", math.exp(0.5))])
def test_sequence_level_mismatch(level: str, expected: float) -> None:
    batch = tiny([1.0, 1.0], lengths=[2, 1], columns={"logp_old": [-1.0, -1.0, -1.0], "logp_engine": [-1.2, -1.3, -1.0]})
    policy = PolicyGradient(ratio=Ratio("none"), trust=None, weights=(Truncate(cap=9.0, level=level),))
    np.testing.assert_allclose(-2 * slopes(Objective(policy=policy, aggregate=SeqSum()), batch), [expected, expected, 1.0])


def test_decoupled_ppo_at_the_current_policy_weighs_by_the_capped_mismatch() -> None:
    from assay.objective import areal

    w = np.array([0.5, 3.0, 9.0, 1.0])
    batch = tiny([1, 0, 1, 0], columns={"logp_old": -1.0, "logp_engine": -1.0 - np.log(w)})
    gradient = slopes(areal(), batch)
    plain = slopes(replace(areal(), policy=PolicyGradient()), batch)
    np.testing.assert_allclose(gradient / plain, np.minimum(w, 5))


def test_reports_what_the_ratio_did() -> None:
    batch = tiny([1.0, 1.0], columns={"logp_old": -2.0})
    outcome = run(Objective(policy=PolicyGradient(), aggregate=Token()), batch, [-2.0, -1.0])
    assert outcome.metrics["policy/clip_fraction"] == 0.5
    assert outcome.metrics["policy/kl_old"] == pytest.approx((math.e - 2) / 2)
    free = run(Objective(policy=PolicyGradient(trust=None), aggregate=Token()), batch, [-2.0, -1.0])
    assert "policy/clip_fraction" not in free.metrics


def test_reports_what_the_ratio_did_to_tokens_of_others() -> None:
    """Four tokens, the first two of an expert; of all of them the second and the third are beyond the border."""
    streams = ["expert", "expert", "on_policy", "on_policy"]
    batch = tiny([1.0, 1.0, 1.0, 1.0], streams=streams, columns={"logp_old": [-1.0, -2.0, -2.0, -1.0]})
    both = PolicyGradient(streams=("on_policy", "expert"))
    hard = run(Objective(policy=both, aggregate=Token()), batch, [-1.0] * 4).metrics
    assert (hard["policy/others"], hard["policy/clip_others"], hard["policy/clip_fraction"]) == (0.5, 0.25, 0.5)
    soft = run(Objective(policy=replace(both, trust=GammaWeight()), aggregate=Token()), batch, [-1.0] * 4).metrics
    assert soft["policy/weight_others"] == pytest.approx((1 + math.exp(2 + 3 * (1 - math.e))) / 4)
    own = tiny([1.0, 1.0], columns={"logp_old": -2.0})
    assert "policy/others" not in run(Objective(policy=PolicyGradient(), aggregate=Token()), own, [-1.0] * 2).metrics


def test_reported_means_are_over_the_tokens_that_have_an_advantage() -> None:
    """One row of two tokens with a signal, all outside its bounds, and three rows without: all that acts is clipped."""
    batch = tiny([1.0, 0.0, 0.0, 0.0], lengths=[2, 1, 3, 2], columns={"logp_old": [-2.0, -2.0, *[-1.0] * 6]})
    objective = Objective(policy=PolicyGradient(), aggregate=Token())
    live = {"logp_new": spread(batch, -1.0)}
    for parts in (None, [[0, 1], [2, 3]], [[1, 2], [3, 0]]):
        metrics = evaluate(objective.compile(), batch, live, parts).metrics
        assert metrics["policy/clip_fraction"] == pytest.approx(1.0)
        assert metrics["policy/kl_old"] == pytest.approx(math.e - 2)


def test_reported_means_count_over_ranks_and_per_term() -> None:
    """Three tokens act on two ranks, one of them clipped; the reference's divergence is a mean over all five."""
    columns = {"logp_old": [-2.0, -1.0, -1.0, -1.0, -1.0], "logp_ref": [-1.0, -1.0, -1.0, -1.0, -2.0]}
    batch = tiny([1.0, -1.0, 1.0, 0.0, 0.0], groups=[0, 1, 1, 2, 2], columns=columns)
    objective = Objective(policy=PolicyGradient(), aggregate=Token(), terms=(Kl("k3", coef=0.1),))
    ranks = [shard(batch, [0]), shard(batch, [1, 2])]

    def run_rank(rank: int, reducer: Reducer) -> Mapping[str, float]:
        here = {"logp_new": spread(ranks[rank], -1.0)}
        return evaluate(objective.compile(reducer=reducer), ranks[rank], here).metrics

    first, second = over_ranks(run_rank, 2)
    assert first["policy/clip_fraction"] + second["policy/clip_fraction"] == pytest.approx(1 / 3)
    assert first["kl/kl_ref"] + second["kl/kl_ref"] == pytest.approx(math.exp(-1) / 5)


def test_used_for_one_update_the_old_policy_is_the_current_one() -> None:
    from assay.objective import grpo

    objective = grpo(kl=0.0)
    assert [f.column for f in objective.plan().forwards] == ["logp_old"]
    assert objective.plan(updates=1).forwards == ()
    with_old = tiny([1, 0], columns={"logp_old": -1.0})
    live = {"logp_new": spread(with_old, -1.0)}
    first = evaluate(objective.compile(), with_old, live)
    second = evaluate(objective.compile(updates=1), tiny([1, 0]), live)
    np.testing.assert_array_equal(first.gradients["logp_new"], second.gradients["logp_new"])
    corrected = Objective(policy=PolicyGradient(weights=(Truncate(),)))
    assert [f.column for f in corrected.plan(updates=1).forwards] == ["logp_old"]


def test_extreme_log_ratios_stay_finite() -> None:
    batch = tiny([1.0, -1.0], columns={"logp_old": -1.0})
    outcome = run(Objective(policy=PolicyGradient(trust=None)), batch, [-1e30, 900.0])
    assert math.isfinite(outcome.loss)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Ratio("tokens"), "did you mean 'token'"),
        (lambda: Ratio("none", anchor="engine"), "does nothing"),
        (lambda: MinClip(low=1.5), "0 <= low <= 1"),
        (lambda: MinClip(dual=0.5), "dual >= 1"),
        (lambda: WeightClip(positive=(2.0, 5.0)), "must hold r = 1"),
        (lambda: Gate(negative=(0.0, 0.5)), "must hold r = 1"),
        (lambda: Truncate(level="sequence"), "unknown mismatch level"),
        (lambda: Truncate(cap=0.0), "positive number"),
        (lambda: IcePop(low=2.0), "must hold w = 1"),
        (lambda: PolicyGradient(coef=0.0), "does nothing"),
        (lambda: PolicyGradient(streams=("expret",)), "did you mean 'expert'"),
    ],
)
def test_bad_settings_are_named(make: object, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()  # type: ignore[operator]


def test_what_weights_are_unless_they_say_otherwise() -> None:
    class Half(TokenWeight):
        def weigh(self, batch: Batch, stats: object) -> np.ndarray:
            return np.full(int(batch.offsets[-1]), 0.5)

    policy = PolicyGradient(ratio=Ratio("none"), trust=None, weights=(Half(),))
    np.testing.assert_array_equal(slopes(Objective(policy=policy), tiny([1.0])), [-0.5])
    assert not Half().corrects
    assert Half().needs == ()
    assert Truncate(level="sequence_mean").scope.value == "sequence"
    assert Half().scope.value == Truncate().scope.value == "token"


def test_the_old_policy_of_a_replayed_attempt_is_the_one_that_sampled_it() -> None:
    """A replayed rollout was drawn by older weights: its ratio is against those, on the first update too."""
    engine = [-1.0, -1.0, -2.0, -1.0]
    batch = tiny([1, 0, 1, 0], streams=["on_policy", "on_policy", "replay", "replay"], columns={"logp_engine": engine})
    objective = Objective(credit=(Center(),), policy=PolicyGradient(trust=None), aggregate=SeqSum())
    found = evaluate(objective.compile(updates=1), batch, {"logp_new": spread(batch, -1.0)}).gradients["logp_new"]
    near = np.array([-0.5, 0.5, -0.5 * math.e, 0.5]) / 4
    np.testing.assert_allclose(found[batch.token("mask")], near, atol=1e-6)


def test_skipping_keeps_attempts_whole_where_a_term_needs_them_whole() -> None:
    """IcePop masks a whole row of a rollout of two rows; the sequence ratio still needs both."""
    objective = Objective(
        credit=(Center(),),
        aggregate=SeqSum(),
        policy=PolicyGradient(ratio=Ratio("sequence_mean"), trust=None, weights=(IcePop(),)),
    )
    rows = [(0, supervised_sample("a", [(ids_of([5]), False), (ids_of([6]), True)], "on_policy"))]
    rows += [(0, rows[0][1]), (1, rows[0][1])]
    table = {"group": np.array([0, 0]), "components/correct": np.array([1.0, 0.0]), "valid": np.array([True, True])}
    batch = pack_rows(rows, table)
    columns = {"logp_engine": [0.0, -9.0, 0.0, -1.0, 0.0, -1.0], "logp_old": [0.0, -1.0, 0.0, -1.0, 0.0, -1.0]}
    batch = batch.with_tokens(*(TokenColumn(n, np.array(v)) for n, v in columns.items()))
    live = {"logp_new": np.array([0.0, -1.0, 0.0, -1.0, 0.0, -1.0])}
    whole, skipped = (evaluate(objective.compile(), batch, live, whole=w) for w in (True, False))
    np.testing.assert_allclose(skipped.gradients["logp_new"], whole.gradients["logp_new"])
    assert np.abs(whole.gradients["logp_new"]).sum() > 0
