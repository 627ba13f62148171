"""Each training metric against numbers worked out by hand."""

from dataclasses import replace
from math import exp, isnan, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core.batch import Batch, Counts, pack
from assay.core.canon import FrozenMap
from assay.core.columns import TokenColumn
from assay.core.errors import DataError
from assay.core.group import Draw, Group
from assay.core.rollout import Call, Completion, Rollout, Sampling, Span, Stop, ids_of
from assay.core.sample import STREAMS
from assay.core.score import Fault, Score
from assay.core.task import Context, Task
from assay.measure import agreement, comparable, metrics


def score(value: float | None, fault: Fault = Fault.NONE, **components: float) -> Score:
    return Score(components=components if value is None else {"correct": value, **components}, fault=fault)


def rollout(group: str, n: int, tokens: int, stop: Stop, entropy: float | None) -> Rollout:
    task = Task(id=group, domain="d", arm="a", level=1, split="train", index=0, public=FrozenMap({"prompt": "?"}))
    columns = {} if entropy is None else {"entropy": TokenColumn("entropy", np.full(tokens, entropy, np.float32), "engine")}
    completion = Completion(
        ids=ids_of(range(tokens)),
        logp_engine=np.full(tokens, -0.5, np.float32),
        spans=(Span(0, 0, tokens),) if tokens else (),
        stop=stop,
        sampling=Sampling(),
        columns=columns,
    )
    context = Context(key=f"{group}/{n}", group=group, task=task.public_view(), messages=task.public_view().messages)
    call = Call(id=0, parent=None, prefix=ids_of([1, 2]), completion=completion, text="")
    return Rollout(id=f"{group}/{n}", context=context, calls=(call,), stop=stop, seed=n)


def group(
    key: str,
    scores: list[Score],
    tokens: list[int],
    stops: list[Stop] | None = None,
    arm: str = "a",
    entropy: float | None = None,
) -> Group:
    task = Task(id=key, domain="d", arm=arm, level=1, split="train", index=0, public=FrozenMap({"prompt": "?"}))
    given_stops = stops or [Stop.DONE] * len(scores)
    rollouts = tuple(rollout(key, n, t, s, entropy) for n, (t, s) in enumerate(zip(tokens, given_stops, strict=True)))
    return Group(key=key, task=task, draw=Draw(arm, 1, 1.0), rollouts=rollouts, scores=tuple(scores))


@pytest.fixture
def groups() -> list[Group]:
    return [
        group("g1", [score(1.0, format=1.0), score(0.0, format=0.0)], [4, 6], [Stop.DONE, Stop.LENGTH], entropy=0.5),
        group("g2", [score(1.0, format=1.0), score(None, Fault.VERIFIER)], [2, 8], arm="b", entropy=0.1),
        group("g3", [score(0.0, Fault.POLICY, format=1.0), score(0.0, format=1.0)], [10, 10], entropy=0.2),
    ]


def test_reward_counts_valid_rollouts_alone(groups: list[Group]) -> None:
    found = metrics.reward_stats(groups)  # 1, 0, 1, 0, 0; the verifier fault is not a 0
    assert found["reward/mean"] == pytest.approx(0.4)
    assert found["reward/std"] == pytest.approx(np.sqrt(0.24))
    assert found["reward/component/format"] == pytest.approx(0.8)


def test_signal_is_the_share_of_groups_that_differ(groups: list[Group]) -> None:
    assert metrics.signal_fraction(groups) == pytest.approx(1 / 3)
    assert isnan(metrics.signal_fraction([]))


def test_truncation_and_lengths(groups: list[Group]) -> None:
    assert metrics.truncated_share(groups) == pytest.approx(1 / 6)
    assert metrics.length_stats(groups) == {
        "length/mean": pytest.approx(40 / 6),
        "length/max": 10.0,
        "length/mean_right": 3.0,
        "length/mean_wrong": pytest.approx(26 / 3),
    }


def test_faults_by_kind_and_by_arm(groups: list[Group]) -> None:
    assert metrics.fault_rates(groups) == {
        "fault/rate": pytest.approx(1 / 6),
        "fault/policy": pytest.approx(1 / 6),
        "fault/verifier": pytest.approx(1 / 6),
        "fault/infra": 0.0,
        "fault/rate/b": 0.5,
    }


def test_format_rate_is_nan_where_nobody_reports_it(groups: list[Group]) -> None:
    assert metrics.component_mean(groups, "format") == pytest.approx(0.8)
    assert isnan(metrics.component_mean(groups, "style"))


def test_collector_names_and_leaves_out_what_was_not_measured(groups: list[Group]) -> None:
    found = metrics.group_metrics(groups)
    assert found["format/rate"] == pytest.approx(0.8)
    assert (found["rollouts/sampled"], found["tokens/sampled"]) == (6.0, 40.0)
    assert found["entropy/mean"] == pytest.approx((10 * 0.5 + 10 * 0.1 + 20 * 0.2) / 40, rel=1e-6)
    lost = metrics.group_metrics([group("g", [score(None, Fault.INFRA)], [3])])
    assert lost["fault/rate"] == 1.0
    assert not {"reward/mean", "format/rate", "entropy/mean", "length/mean_right"} & lost.keys()
    assert metrics.group_metrics([]) == {"rollouts/sampled": 0.0, "tokens/sampled": 0.0}


def test_divergences_by_hand() -> None:
    sampled, other, mask = [0.0, -1.0, -2.0], [9.0, -1.0 + log(2), -2.0 - log(2)], [False, True, True]
    found = metrics.divergences(sampled, other, mask)
    assert found["k1"] == pytest.approx(0.0, abs=1e-15)
    assert found["k3"] == pytest.approx(((2 - 1 - log(2)) + (0.5 - 1 + log(2))) / 2)
    assert all(isnan(v) for v in metrics.divergences([0.0], [0.0], [False]).values())
    with pytest.raises(DataError, match="masked"):
        metrics.divergences([1.0, 2.0], [1.0, 2.0], [True])


def test_divergences_estimate_the_true_kl() -> None:
    rng = np.random.default_rng(0)
    p, q = np.array([0.6, 0.3, 0.1]), np.array([0.5, 0.3, 0.2])
    truth = float((p * np.log(p / q)).sum())
    drawn = rng.choice(3, 200_000, p=p)
    found = metrics.divergences(np.log(p)[drawn], np.log(q)[drawn], np.ones(len(drawn), bool))
    assert found["k1"] == pytest.approx(truth, rel=0.05)
    assert found["k3"] == pytest.approx(truth, rel=0.03)


@given(st.lists(st.tuples(st.floats(-20, 0), st.floats(-20, 0)), min_size=1, max_size=30))
def test_k3_is_never_negative(pairs: list[tuple[float, float]]) -> None:
    a, b = np.array(pairs).T
    found = metrics.divergences(a, b, np.ones(len(a), bool))
    assert found["k3"] >= -1e-12


def test_small_divergences_keep_their_digits() -> None:
    found = metrics.divergences([-1.0], [-1.0 + 1e-6], [True])
    assert found["k3"] == pytest.approx(5e-13, rel=1e-3)


def test_max_ratio_looks_both_ways() -> None:
    assert metrics.max_ratio([-1.0, -3.0], [-1.5, -1.0], [True, True]) == pytest.approx(exp(2))
    assert metrics.max_ratio([-1.0, -3.0], [-1.5, -1.0], [True, False]) == pytest.approx(exp(0.5))
    assert isnan(metrics.max_ratio([0.0], [0.0], [False]))


def test_effective_sample_size() -> None:
    assert metrics.effective_sample_size(np.log([1.0, 1.0, 2.0]), [True] * 3) == pytest.approx(16 / (3 * 6))
    assert metrics.effective_sample_size([-2000.0, -2000.0], [True, True]) == pytest.approx(1.0)  # no underflow
    assert isnan(metrics.effective_sample_size([0.0], [False]))


def test_filtered_share() -> None:
    drawn, kept = Counts(100, 10, 10, 5), Counts(80, 8, 8, 4)
    assert metrics.filtered_share(drawn, kept) == 0.2
    assert metrics.filtered_share(drawn, drawn) == 0.0
    assert isnan(metrics.filtered_share(Counts(0, 0, 0, 0), Counts(0, 0, 0, 0)))
    with pytest.raises(DataError, match="10 rows kept of only 8 drawn"):
        metrics.filtered_share(kept, drawn)


def test_throughput() -> None:
    assert metrics.throughput(10, 4) == 2.5
    assert isnan(metrics.throughput(10, 0))


def annotated(groups: list[Group], **columns: float) -> Batch:
    batch = pack(groups)
    engine = batch.token("logp_engine")
    return batch.with_tokens(*(TokenColumn(n, engine + np.float32(d), "learner") for n, d in columns.items()))


def test_batch_collector(groups: list[Group]) -> None:
    bare = metrics.batch_metrics(pack(groups))
    assert bare == {"waste/rows_filtered": 0.0, "tokens/trained": 32.0}
    found = metrics.batch_metrics(annotated(groups, logp_old=log(2), logp_ref=-log(2)))
    assert found["engine/mismatch_k1"] == pytest.approx(-log(2), rel=1e-6)
    assert found["engine/mismatch_k3"] == pytest.approx(1 - log(2), rel=1e-6)
    assert found["engine/max_ratio"] == pytest.approx(2.0, rel=1e-6)
    assert found["ess"] == pytest.approx(1.0)
    assert found["kl/base_train"] == pytest.approx(0.5 - 1 + log(2), rel=1e-6)


def test_agreement_by_hand() -> None:
    """d = ln 2, 0 of one rollout and -ln 2 of another: w = 2, 1, .5; products 2 and .5."""
    found = agreement([-1.0, -1.0, -1.0], [-1.0 + log(2), -1.0, -1.0 - log(2)], [7, 7, 3])
    assert found["engine/mismatch_k1"] == pytest.approx(0.0, abs=1e-12)
    assert found["engine/mismatch_k3"] == pytest.approx((1 - log(2) + 0 - 0.5 + log(2)) / 3)
    assert found["engine/mismatch_abs"] == pytest.approx(2 * log(2) / 3)
    assert found["engine/max_ratio"] == pytest.approx(2.0)
    assert found["engine/ess"] == pytest.approx(3.5**2 / (3 * 5.25))
    assert found["engine/ess_rollouts"] == pytest.approx(2.5**2 / (2 * 4.25))
    assert agreement([], [], []) == {}
    assert set(agreement([0.0], [-900.0], [0])) >= {"engine/mismatch_k3", "engine/max_ratio"}, "far, but finite"
    with pytest.raises(DataError, match="one of each per token"):
        agreement([0.0], [0.0, 1.0], [0])


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=20))
def test_agreement_of_a_policy_with_itself_is_perfect_and_a_gap_never_improves_it(gaps: list[float]) -> None:
    drawn, rollout = np.full(len(gaps), -2.0), np.arange(len(gaps)) // 3
    same = agreement(drawn, drawn, rollout)
    assert (same["engine/mismatch_k3"], same["engine/max_ratio"], same["engine/ess_rollouts"]) == (0.0, 1.0, 1.0)
    found = agreement(drawn, drawn + np.array(gaps), rollout)
    assert found["engine/mismatch_k3"] >= 0 and found["engine/max_ratio"] >= 1
    assert 0 < found["engine/ess"] <= 1 + 1e-12 and 0 < found["engine/ess_rollouts"] <= 1 + 1e-12


def test_tokens_behind_others_of_older_weights_are_not_comparable(groups: list[Group]) -> None:
    """Their keys and values are of neither version."""
    batch = pack(groups)
    mask = np.asarray(batch.token("mask"), np.bool_)
    row = next(r for r in range(len(batch)) if mask[batch.row_of_token == r].sum() >= 2)
    here = np.flatnonzero(mask & (batch.row_of_token == row))
    versions = np.array(batch.token("weight_version"))
    newest = int(versions[here[0]])

    def changed(*at: int) -> np.ndarray:
        other = versions.copy()
        other[here[list(at)]] = newest - 1
        tokens = {**batch.tokens, "weight_version": replace(batch.tokens["weight_version"], values=other)}
        return comparable(replace(batch, tokens=tokens), newest)

    assert not changed(0)[here].any(), "begun by older weights"
    assert changed(1)[here].tolist() == [True, *[False] * (len(here) - 1)]
    others = batch.row_of_token != row
    assert (changed(0)[others] == comparable(batch, newest)[others]).all()


def test_only_tokens_that_the_policy_sampled_at_these_weights_are_comparable(groups: list[Group]) -> None:
    batch = pack(groups)
    mask = np.asarray(batch.token("mask"), np.bool_)
    version = batch.tokens["weight_version"].values[mask][0]
    assert (comparable(batch, int(version)) == mask).all() and not comparable(batch, int(version) + 1).any()
    assert (comparable(batch, -1) == mask).all(), "where nobody can tell all weights count as the same"
    for other in ("replay", "expert"):
        rows = {**batch.rows, "stream": np.full(len(batch), STREAMS.index(other), np.int8)}
        assert not comparable(replace(batch, rows=rows), int(version)).any()
    reposed = replace(batch, rows={**batch.rows, "reposed": np.arange(len(batch)) > 0})
    assert (comparable(reposed, int(version)) == mask & (batch.row_of_token == 0)).all()


def test_a_gap_between_other_weights_is_no_mismatch(groups: list[Group]) -> None:
    batch = pack(groups)
    engine, mask = batch.token("logp_engine"), np.asarray(batch.token("mask"), np.bool_)
    first = np.arange(len(engine)) < len(engine) // 2
    old = engine + np.where(first, np.float32(log(2)), np.float32(5.0))
    aged = batch.with_tokens(
        TokenColumn("weight_version", np.where(first, 3, 2).astype(np.int32)),
        TokenColumn("logp_old", old, "learner", 3),
        TokenColumn("staleness", np.where(first, 0, 1).astype(np.int32)),
    )
    found = metrics.batch_metrics(aged)
    assert found["engine/mismatch_k1"] == pytest.approx(-log(2), rel=1e-6)
    assert found["engine/max_ratio"] == pytest.approx(2.0, rel=1e-6)
    assert found["policy/age"] == pytest.approx(np.mean(~first[mask]))
    assert found["ess"] < 0.9, "weights of all tokens, of whatever age"
    older = metrics.batch_metrics(aged.with_tokens(TokenColumn("logp_old", old, "learner", 9)))
    assert "engine/mismatch_k1" not in older and "engine/max_ratio" not in older and older["ess"] == found["ess"]
    own = metrics.batch_metrics(aged.with_tokens(TokenColumn("logp_old", engine, "engine")))
    assert not {"engine/mismatch_k1", "ess"} & own.keys(), "the engine's own numbers were compared with themselves"
