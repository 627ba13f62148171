"""Filters and resampling: windows, histories, lag, classes, lots that depend on names alone."""

import json
import math

import numpy as np
import pytest
from credit_batches import after, around, chains, near, wide
from objective_batches import advantages, plain, run, tiny

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.seeds import generator
from assay.objective import Center, CreditTerm, DropTruncated, DropZeroVariance, Objective, Scale, SeqSum, Token
from assay.objective.credit.filters import (
    DropOneClass,
    DropSmall,
    DropStale,
    PassRateHistory,
    PassRateWindow,
    PositivesOnly,
)
from assay.objective.credit.resample import Balance, BestAnd, Deduplicate, Resample
from assay.objective.credit.stats import Gathered, Keyed, Largest, identity, lottery, rank_in_group
from assay.testing.objective import check_objective, check_term, over_ranks, shard

__all__ = ["wide"]


def kept(batch: object, *chain: CreditTerm) -> list[float]:
    return after(batch, *chain).keep.tolist()  # type: ignore[arg-type]


def test_pass_rates_by_column_and_by_group() -> None:
    batch = tiny([1, 1, 0, 1], [0, 1, 2, 3], pass_rate=[0.9, 0.89, 0.0, 0.1])
    assert kept(batch, PassRateWindow(column="pass_rate")) == [0, 1, 1, 1]
    assert kept(batch, PassRateWindow(column="pass_rate", low=0.1, high=0.5)) == [0, 0, 0, 1]
    groups = tiny([1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 2, 2])
    record = after(groups, PassRateWindow(low=0.01, high=1.0), Center("batch"))
    assert record.keep.tolist() == [0, 0, 1, 1, 0, 0]
    assert record.metrics["credit/dropped_by_rate"] == 4
    near(record.advantage[2:4], [0.5, -0.5], 0)  # what was dropped leaves the statistics


def test_history_judges_by_earlier_batches() -> None:
    program = around(PassRateHistory(high=0.9)).compile()
    rewards, prompt = [1] * 9 + [0, 1, 0], ["a"] * 10 + ["b"] * 2
    first = program.credit(tiny(rewards, [0] * 10 + [1] * 2, prompt=prompt))
    assert first.rollout("keep").tolist() == [1] * 12
    again = json.loads(json.dumps(program.state_dict()))
    second = around(PassRateHistory(high=0.9)).compile()
    second.load_state_dict(again)
    batch = tiny([0, 0, 1], [0, 1, 2], prompt=["a", "b", "c"])
    assert second.credit(batch).rollout("keep").tolist() == [0, 1, 1]  # a: 9 of 10; b: 1 of 2; c: never seen
    assert second.metrics()["credit/dropped_by_rate"] == 1
    after_it = second.state_dict()["credit/0"]["seen"]
    assert sorted(after_it.values()) == [[1.0, 1.0], [3.0, 1 / 3], [11.0, 9 / 11]]
    # The failure has lowered a's rate, as a rollout at a dropped prompt that is drawn anyway does.
    assert second.credit(tiny([1], prompt=["a"])).rollout("keep").tolist() == [1]


def test_history_needs_enough_and_may_have_a_floor() -> None:
    program = around(PassRateHistory(low=0.1, high=0.9, least=3)).compile()
    program.credit(tiny([0, 0, 0, 1, 1], [0, 0, 0, 1, 1], prompt=[1, 1, 1, 2, 2]))
    batch = tiny([0, 0], [0, 1], prompt=[1, 2])
    assert program.credit(batch).rollout("keep").tolist() == [0, 1]


def test_stale_attempts_leave() -> None:
    batch = tiny([1, 0, 1], lag=[0, 8, 9])
    record = after(batch, DropStale(), Center())
    assert record.keep.tolist() == [1, 1, 0]
    assert record.metrics["credit/dropped_stale"] == 1
    near(record.advantage[:2], [0.5, -0.5], 0)
    assert kept(batch, DropStale(limit=0)) == [1, 0, 0]


def test_small_advantages_leave_the_loss_alone() -> None:
    batch = tiny([1, 0, 0.5, 0.5], [0, 0, 1, 1])
    record = after(batch, Center(), DropSmall(), Scale("batch", ddof=0, eps=0.0))
    assert record.keep.tolist() == [1, 1, 0, 0]
    assert record.metrics["credit/dropped_small"] == 2
    near(record.advantage, np.array([0.5, -0.5, 0, 0]) / np.std([1, 0, 0.5, 0.5]), 1e-12)
    tokens = Objective(credit=(Center(), DropSmall()), policy=plain(), aggregate=Token())
    assert run(tokens, batch).gradients["logp_new"][batch.token("mask")][0] == pytest.approx(-0.25)  # D is 2, not 4


def test_groups_of_one_class() -> None:
    batch = tiny([1, 0.9, 0.1, 0, 1, 0, 1], [0, 0, 1, 1, 2, 2, 3], valid=[True] * 6 + [False])
    assert kept(batch, DropOneClass()) == [0, 0, 0, 0, 1, 1, 0]
    assert kept(batch, DropOneClass(which="correct")) == [0, 0, 1, 1, 1, 1, 0]
    assert kept(batch, DropOneClass(which="wrong")) == [1, 1, 0, 0, 1, 1, 0]
    assert after(batch, DropOneClass()).metrics["credit/dropped_groups"] == 2
    assert kept(batch, DropZeroVariance())[:2] == [1, 1]  # they do vary


def test_positives_alone_are_supervised_learning() -> None:
    batch = tiny([1, 0, 1, 0], lengths=[1, 2, 3, 4])
    objective = Objective(credit=(PositivesOnly(),), policy=plain(), aggregate=Token())
    found = run(objective, batch).gradients["logp_new"][batch.token("mask")]
    near(found, [-0.25] + [0] * 2 + [-0.25] * 3 + [0] * 4, 1e-12)
    everything = run(Objective(policy=plain(), aggregate=SeqSum()), batch).gradients["logp_new"][batch.token("mask")]
    near(found / np.linalg.norm(found), everything / np.linalg.norm(everything), 1e-12)  # REINFORCE's direction
    assert after(batch, PositivesOnly()).metrics["credit/positives"] == 2


def test_nothing_left_is_no_loss() -> None:
    batch = tiny([0, 0], lengths=[2, 1])
    for chain in (
        [PositivesOnly()],
        [DropZeroVariance(), Center()],
        [Balance()],
        [PassRateWindow(low=0.5, high=1.0), Center("batch")],
    ):
        for aggregate in (Token(), SeqSum()):
            outcome = run(Objective(credit=tuple(chain), policy=plain(), aggregate=aggregate), batch)
            assert outcome.loss == 0
            assert not outcome.gradients["logp_new"].any()


def test_weights_of_pf_ppo() -> None:
    batch = tiny([-2, 1, 0, 1])
    near(kept(batch, Resample()), 4 * np.array([4, 1, 0, 1]) / 6, 1e-12)
    near(kept(batch, Resample(power=1.0)), 4 * np.array([2, 1, 0, 1]) / 4, 1e-12)
    near(kept(batch, Resample(rule="max_min")), [4 / 3, 4 / 3, 0, 4 / 3], 1e-12)
    near(kept(batch, Resample(rule="max_random")), 4 * np.array([0.1, 0.4, 0.1, 0.4]), 1e-12)
    two = tiny([1, 0, 0.5, 3, 2, 2.5], [0, 0, 0, 1, 1, 1])
    near(kept(two, Resample(rule="max_min")), [1.5, 1.5, 0, 1.5, 1.5, 0], 1e-12)
    near(kept(two, Resample(rule="max_min", over="batch")), [0, 3, 0, 3, 0, 0], 1e-12)
    near(kept(two, Resample(rule="max_random", over="batch")), 6 * np.array([1, 1, 1, 4, 1, 1]) / 9, 1e-12)
    assert after(two, Resample(rule="max_min")).metrics["credit/effective_rollouts"] == pytest.approx(4)


def test_equal_weights_change_nothing() -> None:
    batch = tiny([1, -1, 1, 1])
    for draw in (False, True):
        record = after(batch, Resample(draw=draw))
        assert record.keep.tolist() == [1, 1, 1, 1]
        near(advantages(batch, Resample(draw=draw), Center()), advantages(batch, Center()), 1e-12)
    nothing = tiny([0, 0])
    assert kept(nothing, Resample()) == [1, 1]
    assert after(nothing, Resample()).metrics["credit/effective_rollouts"] == 2
    strangers = tiny([1, 2, 0], streams=["on_policy", "on_policy", "expert"])
    near(kept(strangers, Resample()), [0.4, 1.6, 1], 1e-12)


def test_draws_are_whole_unbiased_and_the_seeds() -> None:
    rewards = [-2, 1, 0.5, 1]
    batch, term = tiny(rewards), Resample(draw=True, seed=3)
    times = np.array([after(batch, term, state={0: {"batch": b}}).keep for b in range(400)])
    assert (times == np.round(times)).all()
    weights = np.array([4, 1, 0.25, 1]) * 4 / 6.25
    near(times.mean(0), weights, 0.08)
    assert (times == np.array([after(batch, term, state={0: {"batch": b}}).keep for b in range(400)])).all()
    other = np.array([after(batch, Resample(draw=True, seed=4), state={0: {"batch": b}}).keep for b in range(400)])
    assert (times != other).any()
    program = around(term).compile()
    program.credit(batch)
    assert program.state_dict()["credit/0"] == {"batch": 1}


def test_resampling_twice_multiplies() -> None:
    batch = tiny([1, 2])
    record = after(batch, Resample(), Resample())
    assert record.copies is not None
    near(record.copies, np.array([0.4, 1.6]) ** 2, 1e-12)


def test_best_and_another() -> None:
    batch = tiny([0.5, 1, 0, 0.2, 0.3, 0.1, 0.7], [0, 0, 0, 0, 1, 1, 2])
    assert kept(batch, BestAnd(other="worst")) == [0, 1, 1, 0, 1, 1, 1]
    seen = {tuple(after(batch, BestAnd(seed=s)).keep.tolist()) for s in range(40)}
    assert seen == {(1, 1, 0, 0, 1, 1, 1), (0, 1, 1, 0, 1, 1, 1), (0, 1, 0, 1, 1, 1, 1)}
    ties = {tuple(after(tiny([1, 1, 1]), BestAnd(seed=s)).keep.tolist()) for s in range(40)}
    assert len(ties) == 3
    assert kept(tiny([1, 0, 5], valid=[True, True, False]), BestAnd()) == [1, 1, 0]
    expert = tiny([1, 0, 5], streams=["on_policy", "on_policy", "expert"])
    assert kept(expert, BestAnd()) == [1, 1, 1]  # what is not judged is not dropped


def test_balance_keeps_one_of_each() -> None:
    batch = tiny([1, 1, 0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 0, 1, 1, 2, 2])
    seen = set()
    for seed in range(40):
        keep = np.array(kept(batch, Balance(seed=seed)))
        assert keep[:2].sum() == keep[2:5].sum() == 1
        assert not keep[5:].any()  # one class alone
        seen.add(tuple(keep))
    assert len(seen) == 6
    loose = np.array(kept(batch, Balance(both=False)))
    assert (loose[5:7].sum(), loose[7:].sum()) == (1, 1)
    many = np.array(kept(batch, Balance(positives=0, negatives=2, both=False)))
    assert (many[:2].sum(), many[2:5].sum(), many[5:7].sum(), many[7:].sum()) == (0, 2, 0, 2)
    assert after(batch, Balance()).metrics["credit/balanced"] == 2


def test_oreals_baseline_sees_all_attempts() -> None:
    rewards = [1] * 3 + [0] * 5
    record = after(tiny(rewards), Center("leave_one_out"), Balance())
    assert record.keep.sum() == 2
    near(record.advantage[3:], [-3 / 7] * 5, 1e-12)  # -k / (K - 1)


def test_equal_answers_count_once() -> None:
    ids = [[1, 2, 3], [1, 2, 3], [1, 2, 4], [1, 2, 3]]
    batch = chains([1, 1, 1, 1], [[1, 1, 1]] * 4, [0, 0, 0, 1], columns={"ids": ids})
    record = after(batch, Deduplicate())
    near(record.keep, [0.5, 0.5, 1, 1], 0)
    assert record.metrics["credit/duplicates"] == 2
    near(record.advantage, [1] * 4, 0)
    whole = Objective(credit=(Deduplicate(),), policy=plain(), aggregate=Token())
    once = chains([1, 1, 1], [[1, 1, 1]] * 3, [0, 0, 1], columns={"ids": ids[1:]})
    assert run(whole, batch).loss == pytest.approx(run(whole, once).loss)
    hidden = chains([1, 1], [[1, 0], [1, 0]], columns={"ids": [[7, 8], [7, 9]]})
    near(after(hidden, Deduplicate()).keep, [0.5, 0.5], 0)  # what is no action tells nothing apart


def test_lots_do_not_ask_for_ranks_or_neighbours() -> None:
    batch = tiny([1, 0, 1, 0, 1, 0], [0, 0, 0, 1, 1, 1])
    whole = lottery(after(batch), "x", 1, 0)
    second = lottery(after(shard(batch, [1])), "x", 1, 0)
    assert whole[3:].tolist() == second.tolist()
    assert len(set(whole.tolist())) == 6
    assert (whole >= 0).all()
    assert (whole < 1).all()
    assert (whole != lottery(after(batch), "x", 1, 1)).all()
    assert (whole != lottery(after(batch), "y", 1, 0)).all()


def test_lots_are_even() -> None:
    batch = tiny([0] * 4000, np.repeat(np.arange(500), 8).tolist())
    lots = lottery(after(batch), "even", 0, 0)
    counts = np.histogram(lots, 20, (0, 1))[0]
    assert ((counts - 200) ** 2 / 200).sum() < 45  # chi squared with 19 degrees: p = 0.001 is 43.8
    near(np.corrcoef(lots[:-1], lots[1:])[0, 1], 0, 0.05)


def test_partials_merge_like_the_union() -> None:
    rng = generator("test/partials", 0)
    values, group = rng.normal(size=20), rng.integers(0, 3, 20)
    keys = np.stack([group, rng.integers(0, 2, 20)], axis=1)
    whole, parts = Largest.of(values, group, 3, 2), [Largest.of(values[s], group[s], 3, 2) for s in (slice(0, 9), slice(9, 20))]
    assert (parts[0].merge(parts[1]).values == whole.values).all()
    assert (Largest.of(values[:0], group[:0], 1, 2).merge(whole).values == whole.values).all()
    both = Keyed.of(values[:9], keys[:9]).merge(Keyed.of(values[9:], keys[9:]))
    near(both.at(keys).mean, Keyed.of(values, keys).at(keys).mean, 1e-12)
    assert (
        Keyed.of(values[:0], keys[:0]).merge(Keyed.of(values, keys)).at(keys).count.tolist()
        == Keyed.of(values, keys).at(keys).count.tolist()
    )
    assert Gathered(np.ones((2, 3))).merge(Gathered(np.zeros((1, 3)))).rows.shape == (3, 3)
    assert rank_in_group(np.array([1, 0, 1]), np.array([3.0, 1.0, 2.0])).tolist() == [1, 0, 0]


def test_identity_of_values() -> None:
    assert identity(np.array([3, 1])).tolist() == [3, 1]
    assert identity(np.array([True, False])).tolist() == [1, 0]
    assert identity(np.array([0.0, -0.0, 0.5])).tolist()[:2] == [0, 0]
    assert len(set(identity(np.array([0.5, 0.25, 1.0])).tolist())) == 3
    assert identity(np.array(["a", "b", "a"])).tolist() == identity(np.array(["a", "b", "a"], object)).tolist()


def test_filters_over_ranks_are_one() -> None:
    rewards = [1.0, 0.0, 0.5, 0.25, 1.0, 0.0]
    groups = [0, 0, 0, 1, 1, 1]
    chain = (Resample(rule="max_min", over="batch", draw=True), Balance(both=False), BestAnd())
    whole = around(*chain).compile().credit(tiny(rewards, groups)).rollout("keep")

    def rank(number: int, reducer: object) -> np.ndarray:
        program = around(*chain).compile(reducer=reducer)  # type: ignore[arg-type]
        return program.credit(shard(tiny(rewards, groups), [number])).rollout("keep")

    near(np.concatenate(over_ranks(rank, 2)), whole, 0)


@pytest.mark.parametrize(
    "term",
    [
        PassRateWindow(),
        PassRateWindow(column="pass_rate"),
        PassRateHistory(),
        DropStale(limit=1),
        DropOneClass(),
        DropOneClass(which="correct"),
        PositivesOnly(),
        Resample(),
        Resample(rule="max_min", draw=True),
        Resample(rule="max_random", over="batch"),
        BestAnd(),
        BestAnd(other="worst"),
        Balance(),
        Balance(both=False, positives=2),
        Deduplicate(),
    ],
)
def test_laws(term: CreditTerm, wide: None, seeds: range) -> None:
    assert term.kind == "filter"
    check_term(term, seeds)


def test_laws_of_chains(wide: None, seeds: range) -> None:
    check_objective(around(PassRateHistory(), Resample(draw=True), Center(), Scale(), DropSmall(), Balance(both=False)), seeds)
    check_objective(around(Center(), DropSmall(limit=0.6)), seeds)
    check_objective(around(DropStale(limit=1), BestAnd(), Center("leave_one_out")), seeds)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: PassRateWindow(low=0.9), "keeps nothing"),
        (lambda: PassRateHistory(low=0.9), "keeps nothing"),
        (lambda: PassRateHistory(least=0), "least"),
        (lambda: DropStale(limit=-1), "DropStale.limit"),
        (lambda: DropSmall(limit=0.0), "drops nothing"),
        (lambda: Resample(power=0.0), "Resample.power"),
        (lambda: Balance(positives=0, negatives=0), "keeps nothing"),
        (lambda: Balance(positives=-1), "keeps nothing"),
    ],
)
def test_bad_settings_are_named(make: object, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: DropOneClass(which="corect"), "did you mean 'correct'"),
        (lambda: Resample(rule="max"), "did you mean 'max_min'"),
        (lambda: Resample(over="batsh"), "did you mean 'batch'"),
        (lambda: BestAnd(other="worse"), "did you mean 'worst'"),
    ],
)
def test_unknown_names(make: object, says: str) -> None:
    with pytest.raises(UnknownNameError, match=says):
        make()  # type: ignore[operator]


def test_scopes_and_sizes() -> None:
    assert (PassRateWindow().scope.value, PassRateWindow(column="x").scope.value) == ("group", "sequence")
    assert (PassRateHistory().scope.value, Resample().scope.value, Deduplicate().scope.value) == ("batch", "batch", "group")
    assert (DropOneClass().min_group, BestAnd().min_group, Balance().min_group, Balance(both=False).min_group) == (2, 2, 2, 1)
    assert (DropOneClass().scope.value, BestAnd().scope.value, Balance().scope.value) == ("group", "group", "group")
    assert (PassRateWindow(column="x").rollout_columns, PassRateWindow().rollout_columns) == (("x",), ())
    assert (PassRateHistory().rollout_columns, DropStale().rollout_columns, DropZeroVariance().min_group) == (
        ("prompt",),
        ("lag",),
        2,
    )
    assert (Resample().weighs, Deduplicate().weighs, Balance().weighs) == (True, True, False)
    assert DropTruncated().rollout_columns == ("truncated",)
    assert math.isclose(DropSmall().limit, 0.01)
