import math
from dataclasses import replace

import numpy as np
import pytest
from objective_batches import tiny

from assay.core.columns import TokenColumn
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.plan import Scope
from assay.core.sample import STREAMS
from assay.objective.loss.token_noise import token_noise
from assay.objective.loss.token_weights import (
    ClipCovariance,
    EntropyChange,
    Focal,
    LowLogp,
    ProbabilityGate,
    TopCovariance,
    TopEntropy,
)
from assay.objective.reducers import Local, Lowest
from assay.testing.objective import check_term, over_ranks, random_batch, shard, split_rows

OWN = ("on_policy", "replay")


def one_row(**columns):
    """One rollout whose loss tokens have these values."""
    length = len(next(iter(columns.values())))
    return tiny([1.0], lengths=[length], columns={name: list(values) for name, values in columns.items()})


def weights(weight, batch, streams=OWN):
    """Factors at the loss tokens."""
    return weight.factors(batch, streams, Local())[batch.token("mask")]


# ---- STEER ------------------------------------------------------------------------------------------------------------


def changes(*rows):
    """A batch of tokens with (A, p, p_old, H)."""
    advantage, now, old, entropy = np.array(rows, float).T
    return one_row(advantage=advantage, logp_now=np.log(now), logp_old=np.log(old), entropy_now=entropy)


STEERED = ((1, 0.9, 0.9, 0.4), (1, 0.2, 0.2, 1.5), (-0.5, 0.5, 0.5, 0.7))


def test_the_largest_change_of_entropy_has_the_smallest_weight():
    batch = changes(*STEERED)
    change = EntropyChange().change(batch)[batch.token("mask")]
    assert change.tolist() == pytest.approx([0.02946, 0.08755, 0.00171], abs=5e-6)
    assert -math.log(0.8) / change.max() == pytest.approx(2.5487, abs=5e-5)
    assert weights(EntropyChange(), batch).tolist() == pytest.approx([0.9277, 0.8, 0.9956], abs=5e-5)


def test_small_changes_alone_do_not_reach_the_floor():
    batch = changes(STEERED[2])
    assert weights(EntropyChange(), batch).tolist() == pytest.approx([0.8 ** (0.001713 / 0.02)], abs=1e-5)
    assert weights(EntropyChange(least=1e-4), batch).tolist() == pytest.approx([0.8])


def test_a_certain_token_keeps_its_weight_and_a_rare_one_only_off_policy():
    certain, rare, stale = (1, 1.0, 1.0, 0.0), (1, 1e-6, 1e-6, 0.5), (1, 1e-6, 0.5, 0.5)
    assert weights(EntropyChange(), changes(certain, rare, stale)).tolist() == pytest.approx([1.0, 0.8, 1.0], abs=1e-6)


def test_the_linear_map_of_entropy_changes():
    low, high = 0.001713, 0.087551
    found = weights(EntropyChange(ceiling=1.2), changes(*STEERED))
    assert found.tolist() == pytest.approx([1.2 - 0.4 * (0.029464 - low) / (high - low), 0.8, 1.2], abs=1e-4)
    assert weights(EntropyChange(ceiling=1.2), changes(*STEERED[:1] * 3)).tolist() == pytest.approx(
        [1.0] * 3
    )  # all alike: the middle


def test_without_own_tokens_no_weight_breaks():
    batch = replace(changes(*STEERED), rows={"rollout": np.array([0]), "stream": np.array([STREAMS.index("expert")], np.int8)})
    for part in (EntropyChange(), EntropyChange(ceiling=1.2), TopEntropy(normalise=True), TopCovariance(), ClipCovariance()):
        assert np.isfinite(part.factors(batch, OWN, Local())).all()


# ---- covariance -------------------------------------------------------------------------------------------------------


def covarying(seed=0, tokens=400):
    rng = np.random.default_rng(seed)
    advantage, now = rng.normal(size=tokens) * 2, -np.abs(rng.normal(size=tokens)) * 2
    return one_row(advantage=advantage, logp_now=now, logp_old=now - rng.normal(size=tokens) * 0.3)


def plain_covariance(batch):
    here = batch.token("mask")
    advantage, logp = (batch.token(n)[here] for n in ("advantage", "logp_now"))
    return (advantage - advantage.mean()) * (logp - logp.mean())


def test_shares_of_the_covariance_add_up_to_it():
    batch = covarying()
    part = TopCovariance()
    found = part.covariance(batch, part.local(batch))[batch.token("mask")]
    assert found.tolist() == pytest.approx(plain_covariance(batch).tolist(), abs=1e-12)
    pair = [batch.token(n)[batch.token("mask")] for n in ("advantage", "logp_now")]
    assert found.sum() == pytest.approx(len(found) * np.cov(*pair, ddof=0)[0, 1])


@pytest.mark.parametrize(("fraction", "count"), [(0.01, 4), (0.0074, 2), (1e-9, 1), (1.0, 400)])
def test_kl_cov_picks_the_tokens_that_covary_most(fraction, count):
    batch = covarying()
    found = weights(TopCovariance(fraction=fraction), batch)
    best = np.argsort(plain_covariance(batch))[::-1][:count]
    assert sorted(np.flatnonzero(found)) == sorted(best)
    assert set(found) <= {0.0, 1.0}


def test_clip_cov_silences_a_share_of_the_candidates():
    batch = covarying()
    here = batch.token("mask")
    cov = plain_covariance(batch)
    advantage, ratio = batch.token("advantage")[here], np.exp(batch.token("logp_now") - batch.token("logp_old"))[here]
    free = ~((advantage > 0) & (ratio > 1.2)) & ~((advantage < 0) & (ratio < 0.8))
    candidates = set(np.flatnonzero((cov > 1) & (cov < 5) & free))
    tight = {"low": 0.2, "high": 0.2}
    drawn = [set(np.flatnonzero(weights(ClipCovariance(fraction=0.01, seed=s, **tight), batch) == 0)) for s in range(8)]
    assert len(candidates) > 20
    assert all(d <= candidates and len(d) == 4 for d in drawn)
    assert len(set(map(frozenset, drawn))) > 4  # a seed's own choice
    assert set(np.flatnonzero(weights(ClipCovariance(fraction=1.0, **tight), batch) == 0)) == candidates
    wide = set(np.flatnonzero(weights(ClipCovariance(fraction=1.0), batch) == 0))
    assert wide > candidates  # bounds of 0 and 2 clip less
    assert weights(ClipCovariance(least=4.9999, most=5.0), batch).all()  # no candidate


def test_the_choice_of_clip_cov_is_another_one_under_other_weights():
    batch = covarying()
    part = ClipCovariance(fraction=0.02)
    seen = set()
    for version in range(5):
        column = TokenColumn("logp_now", batch.token("logp_now"), "learner", version)
        seen.add(tuple(np.flatnonzero(weights(part, batch.with_tokens(column)) == 0)))
    assert len(seen) == 5


# ---- ranks by probability and entropy ---------------------------------------------------------------------------------


def test_the_least_likely_tokens_of_one_sign():
    rng = np.random.default_rng(1)
    advantage, now = rng.permutation([1.0, -1.0, -1.0, 0.0] * 50), -np.abs(rng.normal(size=200))
    batch = one_row(advantage=advantage, logp_now=now)
    for side, of in (("negative", advantage < 0), ("positive", advantage > 0), ("all", advantage < 9)):
        found = weights(LowLogp(fraction=0.05, side=side), batch)
        order = np.flatnonzero(of)[np.argsort(now[of])]
        assert sorted(np.flatnonzero(found)) == sorted(order[: int(0.05 * of.sum())]), side
    assert LowLogp(side="all").needs == ("logp_now",)


def test_ties_are_broken_by_the_token():
    batch = one_row(entropy_now=[0.0] * 40, advantage=[1.0] * 40, logp_now=[-1.0] * 40)
    assert weights(LowLogp(fraction=0.1, side="all"), batch).sum() == 4
    assert weights(TopCovariance(fraction=0.1), batch).sum() == 4
    assert weights(TopEntropy(fraction=0.1), batch).sum() == 4  # the quantile lies at 35.1 of 39: from the 36th upwards


@pytest.mark.parametrize("fraction", [0.2, 0.25, 0.5, 1.0, 0.01])
@pytest.mark.parametrize("tokens", [10, 11, 37])
def test_the_top_of_the_entropies_is_what_lies_above_their_quantile(fraction, tokens):
    entropy = np.random.default_rng(tokens).random(tokens)
    batch = one_row(entropy_now=entropy)
    plain = entropy >= np.quantile(entropy, 1 - fraction)
    assert (weights(TopEntropy(fraction=fraction), batch) == plain).all()
    normal = weights(TopEntropy(fraction=fraction, normalise=True), batch)
    assert normal.sum() == pytest.approx(tokens)
    assert ((normal > 0) == plain).all()


def test_another_column_of_entropies():
    batch = one_row(entropy_old=[1.0, 2.0, 3.0])
    assert weights(TopEntropy(fraction=0.1, column="entropy_old"), batch).tolist() == [0, 0, 1]


def test_dropped_attempts_and_other_streams_do_not_compete():
    columns = {"logp_now": [-9.0, -8.0, -1.0, -2.0, -7.0, -3.0], "advantage": [-1.0] * 6}
    batch = tiny([1, 0, 0], [0, 0, 0], [2, 2, 2], columns=columns, streams=["on_policy", "on_policy", "expert"])
    part = LowLogp(fraction=0.25)
    assert weights(part, batch).tolist() == [1, 0, 0, 0, 0, 0]
    kept = batch.with_rollouts(keep=np.array([0.0, 1.0, 1.0]))
    assert weights(part, kept).tolist() == [0, 0, 0, 1, 1, 1]  # the last two are an expert's: the term gives them no share


def test_focal_and_gate():
    batch = one_row(logp_now=np.log([0.1, 0.5, 0.999, 1.0]))
    assert weights(Focal(0.5), batch).tolist() == pytest.approx([0.9487, 0.7071, 0.0316, 0.0], abs=5e-5)
    assert weights(ProbabilityGate(low=0.2, high=0.6), batch).tolist() == [0, 1, 0, 0]
    assert weights(ProbabilityGate(high=0.11), batch).tolist() == [1, 0, 0, 0]


# ---- laws -------------------------------------------------------------------------------------------------------------


PARTS = [
    EntropyChange(),
    EntropyChange(ceiling=1.2),
    TopCovariance(fraction=0.3),
    ClipCovariance(fraction=0.2, least=0.0, low=0.5),
    LowLogp(fraction=0.3),
    LowLogp(fraction=0.3, side="all"),
    TopEntropy(fraction=0.3),
    TopEntropy(fraction=0.3, normalise=True),
    Focal(0.5),
    ProbabilityGate(high=0.3),
]


@pytest.mark.parametrize("part", PARTS, ids=repr)
def test_laws(part, seeds):
    check_term(part, seeds)


@pytest.mark.parametrize("part", [p for p in PARTS if p.reduces], ids=repr)
def test_ranks_pick_the_same_tokens_as_one_process(part):
    columns = ("logp_now", "logp_old", "entropy_now", "advantage")
    for seed in range(4):
        batch = random_batch(seed, columns)
        whole = part.factors(batch, OWN, Local())
        numbered = batch.with_tokens(TokenColumn("token", np.arange(len(whole))))
        parts = [shard(numbered, [0, 2]), shard(numbered, [1])]
        found = over_ranks(lambda rank, reducer, parts=parts: part.factors(parts[rank], OWN, reducer), 2)
        for piece, factors in zip(parts, found, strict=True):
            assert factors.tolist() == pytest.approx(whole[piece.token("token").astype(int)].tolist(), abs=1e-12)
        assert part.scope is Scope.BATCH


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: TopEntropy(fraction=0.0), ConfigError),
        (lambda: TopCovariance(fraction=20.0), ConfigError),
        (lambda: LowLogp(side="left"), UnknownNameError),
        (lambda: ClipCovariance(least=5.0, most=1.0), ConfigError),
        (lambda: ClipCovariance(low=1.5), ConfigError),
        (lambda: EntropyChange(floor=1.0), ConfigError),
        (lambda: EntropyChange(least=0.0), ConfigError),
        (lambda: EntropyChange(ceiling=0.9), ConfigError),
        (lambda: Focal(0.0), ConfigError),
        (lambda: ProbabilityGate(low=0.0, high=1.0), ConfigError),
        (lambda: ProbabilityGate(low=0.5, high=0.5), ConfigError),
    ],
)
def test_settings_that_mean_nothing_are_refused(make, error):
    with pytest.raises(error):
        make()


# ---- numbers of tokens ------------------------------------------------------------------------------------------------


def test_noise_belongs_to_the_token():
    batch = random_batch(3)
    here = batch.token("mask")
    whole = token_noise(batch, "a")
    order = np.random.default_rng(0).permutation(len(batch))
    numbered = batch.with_tokens(TokenColumn("token", np.arange(len(whole))))
    for part in (numbered.micro(order), numbered.micro(order[:3]), shard(numbered, [1, 2])):
        assert (token_noise(part, "a") == whole[part.token("token").astype(int)]).all()
    split, source = split_rows(batch, 5)
    assert (token_noise(split, "a") == whole[source]).all()
    assert len(np.unique(whole[here])) == here.sum()
    assert len(token_noise(batch.micro([]), "a")) == 0


def test_noise_depends_on_name_seed_and_draw():
    batch = random_batch(3)
    found = [token_noise(batch, *args) for args in (("a",), ("b",), ("a", 1), ("a", 0, 1), ("a", 0, -1))]
    assert len({tuple(f) for f in found}) == 5


def test_noise_of_equal_answers_differs():
    batch = tiny([1.0] * 64, [0] * 32 + [1] * 32, [8] * 64)  # all with the same tokens
    found = token_noise(batch, "a")[batch.token("mask")]
    assert len(np.unique(found)) == 512
    assert abs(found.mean() - 0.5) < 0.05
    assert abs(np.quantile(found, 0.1) - 0.1) < 0.05


# ---- order statistics -------------------------------------------------------------------------------------------------


def test_the_lowest_of_parts_are_the_lowest_of_all():
    rng = np.random.default_rng(0)
    for size in (0, 1, 3, 40, 100):
        values = np.stack([rng.integers(0, 5, 60) * 1.0, rng.random(60)], 1)
        whole = Lowest.of(values, size)
        cut = np.sort(rng.integers(0, 61, 3))
        first, *rest = (Lowest.of(part, size) for part in np.split(values, cut))
        for other in rest:
            first = first.merge(other)
        assert (first.rows == whole.rows).all()
        assert whole.holds(values).sum() == min(size, 60)
        assert whole.rows.tolist() == sorted(map(list, values.tolist()))[:size]


def test_the_lowest_of_single_numbers():
    found = Lowest.of(np.array([2.0, -1.0, 2.0, 3.0]), 2)
    assert found.rows.tolist() == [[-1.0], [2.0]]
    assert found.bound == 2.0
    assert found.holds(np.array([2.0, 2.0, 2.5, np.nan])).tolist() == [True, True, False, False]
    nothing = Lowest.of(np.zeros(0), 3)
    assert (nothing.bound, nothing.holds(np.ones(2)).any()) == (-np.inf, np.False_)
