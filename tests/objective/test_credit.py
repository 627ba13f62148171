"""Rewards to advantages: the sheets' numbers."""

import math

import numpy as np
import pytest
from credit_batches import near
from objective_batches import advantages, plain, tiny

from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.objective import (
    Center,
    Credit,
    CreditTerm,
    DropTruncated,
    DropZeroVariance,
    KlInReward,
    Moments,
    Objective,
    Overlong,
    Scalarise,
    Scale,
    SeqSum,
    Sum,
    Whiten,
)
from assay.testing.objective import over_ranks

EIGHT = [1, 1, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("rewards", "chain", "expected"),
    [
        ([1, 0, 0, 0], [Center("leave_one_out")], [1, -1 / 3, -1 / 3, -1 / 3]),
        (EIGHT, [Center("leave_one_out")], [0.857143] * 2 + [-0.285714] * 6),
        ([1, 0, 0, 0], [Center("group"), Scale("group", eps=0)], [1.5, -0.5, -0.5, -0.5]),
        ([1, 0, 0, 0], [Center("group"), Scale("group", ddof=0, eps=0)], [1.732, -0.57735, -0.57735, -0.57735]),
        (EIGHT, [Center("group"), Scale("group")], [1.620] * 2 + [-0.540] * 6),
        ([1, 0, 0, 0], [Center("group")], [0.75, -0.25, -0.25, -0.25]),
        ([1, 0, 0, 0], [Center("constant", value=0.5)], [0.5, -0.5, -0.5, -0.5]),
        ([1, 0, 0, 0], [], [1, 0, 0, 0]),
        ([1] + [0] * 7, [Center("group"), Scale("group", ddof=0, eps=0)], [2.6458] + [-0.3780] * 7),
        ([1] * 7 + [0], [Center("group"), Scale("group", ddof=0, eps=0)], [0.3780] * 7 + [-2.6458]),
    ],
)
def test_one_group(rewards: list[float], chain: list[CreditTerm], expected: list[float]) -> None:
    near(advantages(tiny(rewards), *chain), expected, 5e-4)


def test_batch_statistics() -> None:
    batch = tiny([1, 0, 0, 0, 1, 1, 1, 0], [0] * 4 + [1] * 4)
    near(advantages(batch, Center("group"), Scale("batch")), [1.4031] + [-0.4677] * 3 + [0.4677] * 3 + [-1.4031])
    centred = advantages(batch, Center("group"), Scale("batch", ddof=0, of="advantage"))
    near(centred, [1.732] + [-0.57735] * 3 + [0.57735] * 3 + [-1.732], 5e-4)
    near(advantages(batch, Center("batch")), [0.5, -0.5, -0.5, -0.5, 0.5, 0.5, 0.5, -0.5])
    one = tiny([1, 0, 0, 0])
    near(advantages(one, Center(), Scale("batch")), advantages(one, Center(), Scale("group")), 0)


def test_whitening_counts_tokens_or_attempts() -> None:
    batch = tiny([1, 0], lengths=[1, 3])
    objective = Objective(credit=(Whiten("token", eps=0),), policy=plain())
    tokens = objective.compile().credit(batch).token("advantage")[batch.token("mask")]
    assert tokens.mean() == pytest.approx(0)
    assert tokens.var() == pytest.approx(1)
    assert tokens[0] / tokens[1] == pytest.approx(0.75 / -0.25)
    near(advantages(batch, Whiten("rollout", eps=0)), [1, -1])


def test_whitening_may_teach_from_a_group_without_variance() -> None:
    batch = tiny([1, 0, 1, 1], [0, 0, 1, 1], [1, 3, 2, 2])
    record = Objective(credit=(Center(), Whiten()), policy=plain()).compile().credit(batch)
    assert (record.token("advantage")[batch.per_row("group")[batch.row_of_token] == 1][1:] >= 0).all()
    assert record.token("advantage")[-1] > 0


def test_no_variance_is_exactly_nothing() -> None:
    batch = tiny([0.1] * 3 + [0.7] * 3, [0] * 3 + [1] * 3)
    for chain in ([Center()], [Center("leave_one_out")], [Center(), Scale(eps=0)], [Center(), Scale()]):
        assert (advantages(batch, *chain) == 0).all()
    assert (advantages(tiny([0.1] * 3), Center("batch"), Scale("batch", eps=0)) == 0).all()
    assert (advantages(tiny([0.1] * 3), Whiten("rollout")) == 0).all()


def test_faulty_attempts_are_no_zeros() -> None:
    batch = tiny([1, 0, 55, 0], valid=[True, True, False, True])
    near(advantages(batch, Center())[[0, 1, 3]], [2 / 3, -1 / 3, -1 / 3])
    near(advantages(batch, Center("leave_one_out"))[[0, 1, 3]], [1, -0.5, -0.5])


def test_a_group_reduced_to_one_gets_nothing_and_is_counted() -> None:
    batch = tiny([1, 0, 1, 0], [0, 0, 1, 1], valid=[True, False, True, True])
    for baseline in ("group", "leave_one_out"):
        program = Objective(credit=(Center(baseline), Scale()), policy=plain()).compile()
        values = program.credit(batch).rollout("advantage")
        assert values[0] == 0
        assert values[2] > 0 > values[3]
        assert program.metrics() == {"credit/lone": 1.0}


def test_other_streams_are_judged_but_do_not_count() -> None:
    batch = tiny([1, 0, 0, 1], streams=["on_policy", "on_policy", "on_policy", "expert"])
    near(advantages(batch, Center()), [2 / 3, -1 / 3, -1 / 3, 2 / 3])
    near(advantages(batch, Center("leave_one_out")), [1, -0.5, -0.5, 2 / 3])
    every = Scalarise(streams=("on_policy", "expert"))
    near(advantages(batch, Center(), scalarise=every), [0.5, -0.5, -0.5, 0.5])


def test_running_baseline_is_of_earlier_batches() -> None:
    program = Objective(credit=(Center("ema", decay=0.5),), policy=plain()).compile()
    near(program.credit(tiny([1, 0])).rollout("advantage"), [1, 0])
    near(program.credit(tiny([1, 1])).rollout("advantage"), [0.5, 0.5])
    assert program.state_dict()["credit/0"] == {"mean": 0.75 * 1.0 - 0.125, "weight": 0.75}
    near(program.credit(tiny([0, 0])).rollout("advantage"), [-0.625 / 0.75] * 2)
    before = program.state_dict()
    program.credit(tiny([1, 1], streams=["expert", "expert"]))
    assert program.state_dict() == before


def test_scalarise_finds_the_reward() -> None:
    batch = tiny([1, 0]).with_rollouts(**{"components/format": np.array([1.0, 1.0]), "components/reward": np.array([7.0, 8.0])})
    near(Scalarise().start(batch).reward, [1, 0])
    both = Scalarise(weights=(("correct", 1.0), ("format", 0.5))).start(batch)
    near(both.reward, [1.5, 0.5])
    near(both.metric, [1, 0])
    bare = tiny([1, 0])
    rest = {k: v for k, v in bare.rollouts.items() if not k.startswith("components/")}
    from dataclasses import replace

    def of(**components: list[float]) -> object:
        return replace(bare, rollouts={**rest, **{f"components/{k}": np.array(v) for k, v in components.items()}})

    near(Scalarise().start(of(reward=[2.0, 3.0], other=[0.0, 0.0])).reward, [2, 3])
    near(Scalarise().start(of(reward=[np.nan, 3.0], correct=[1.0, np.nan])).reward, [1, 3])
    with pytest.raises(DataError, match="1 graded rollouts lack one of the reward components"):
        Scalarise(weights=(("correct", 1.0), ("format", 1.0))).start(of(correct=[1.0, 1.0], format=[1.0, np.nan]))
    near(Scalarise().start(of(iou=[0.2, 0.3])).reward, [0.2, 0.3])
    near(Scalarise(weights=(("a", 1.0), ("b", 1.0))).start(of(a=[1.0, 2.0], b=[1.0, 1.0])).metric, [2, 3])
    near(Scalarise(every=True).start(of(a=[1.0, 2.0], b=[1.0, 1.0])).reward, [2, 3])
    whole = Scalarise(every=True).start(of(correct=[1.0, 0.0], b=[1.0, 1.0]))
    near((whole.reward, whole.metric), ([2, 1], [1, 0]))
    with pytest.raises(DataError, match=r"1 graded rollouts lack one of the reward components \['a', 'b'\]"):
        Scalarise(every=True).start(of(a=[1.0, 2.0], b=[np.nan, 1.0]))
    with pytest.raises(DataError, match="no reward components"):
        Scalarise().start(of())
    with pytest.raises(DataError, match=r"Scalarise\(weights.*every=True"):
        Scalarise().start(of(a=[1.0, 2.0], b=[1.0, 1.0]))
    with pytest.raises(UnknownNameError, match="did you mean 'correct'"):
        Scalarise(weights=(("correkt", 1.0),)).start(batch)
    no_table = replace(bare, rollouts={k: v for k, v in bare.rollouts.items() if k != "valid"})
    assert Scalarise().start(no_table).counted.all()


def test_overlong_ramp_shapes_the_reward_and_not_the_metric() -> None:
    ramp = Overlong(limit=20480, cache=4096)
    near(ramp.ramp(np.array([16384.0, 18432.0, 20480.0])), [0, -0.5, -1])
    batch = tiny([1, 1, 1, 0], [0, 0, 1, 1], length=[16384, 20480, 1, 1])
    near(advantages(batch, ramp), [1, 0, 1, 0])
    # A solved group that a length penalty gives variance is still dropped: the filter looks at the metric.
    program = Objective(credit=(ramp, DropZeroVariance(), Center()), policy=plain()).compile()
    near(program.credit(batch).rollout("keep"), [0, 0, 1, 1])
    assert program.metrics()["credit/dropped_groups"] == 1


def test_filters_leave_statistics_in_chain_order() -> None:
    batch = tiny([1, 1, 1, 1, 1, 0], [0, 0, 1, 1, 2, 2])
    first = advantages(batch, DropZeroVariance(), Center(), Scale("batch", ddof=0, eps=0))
    near(first[4:], [1, -1])
    later = advantages(batch, Center(), Scale("batch", ddof=0, eps=0), DropZeroVariance())
    near(later[4:], np.array([0.5, -0.5]) / math.sqrt(5 / 36))
    cut = tiny([1, 0, 0], truncated=[False, True, False])
    program = Objective(credit=(DropTruncated(), Center()), policy=plain()).compile()
    record = program.credit(cut)
    near(record.rollout("keep"), [1, 0, 1])
    near(record.rollout("advantage"), [2 / 3, -1 / 3, -1 / 3])
    assert program.metrics() == {"credit/dropped_truncated": 1.0, "credit/lone": 0.0}


def test_kl_in_reward_sums_k1_over_the_attempt() -> None:
    batch = tiny([1, 0], lengths=[2, 1], columns={"logp_old": [-1.0, -2.0, -3.0], "logp_ref": [-1.5, -1.0, -1.0]})
    near(advantages(batch, KlInReward(coef=0.1)), [1 - 0.1 * (0.5 - 1.0), 0 - 0.1 * -2.0])


def test_moments_merge_like_the_union() -> None:
    values, keys = np.array([0.1, 0.1, 5.0, -2.0, 7.0]), np.array([0, 0, 2, 2, 0])
    whole = Moments.of(values, keys, 3)
    merged = Moments.of(values[:2], keys[:2], 1).merge(Moments.of(values[2:], keys[2:], 3))
    for name in ("count", "mean", "m2"):
        near(getattr(merged, name), getattr(whole, name), 1e-12)
    near(whole.std(1), [np.std([0.1, 0.1, 7.0], ddof=1), 0, np.std([5.0, -2.0], ddof=1)], 1e-12)
    assert Sum(np.array([1.0, 2.0])).merge(Sum(np.array([1.0]))).values.tolist() == [2.0, 2.0]


def test_a_group_of_512_over_ranks_has_the_statistics_of_the_union() -> None:
    rewards = (np.arange(512) < 100).astype(float)
    whole = advantages(tiny(rewards.tolist()), Center(), Scale(eps=0))

    def rank(number: int, reducer: object) -> np.ndarray:
        objective = Objective(credit=(Center(), Scale(eps=0)), policy=plain())
        part = tiny(rewards[number * 300 : 300 + number * 300].tolist())
        return objective.compile(reducer=reducer).credit(part).rollout("advantage")

    near(np.concatenate(over_ranks(rank, 2)), whole, 1e-12)
    population = advantages(tiny(rewards.tolist()), Center(), Scale(eps=0, ddof=0))
    near(whole / population, math.sqrt(511 / 512), 1e-12)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Center("gruup"), "did you mean 'group'"),
        (lambda: Center("group", value=1.0), "value belongs to"),
        (lambda: Center("constant"), "value belongs to"),
        (lambda: Center("group", decay=0.9), "decay belongs to"),
        (lambda: Center("ema"), "decay belongs to"),
        (lambda: Center("ema", decay=1.0), "weight of the past"),
        (lambda: Scale("gruup"), "did you mean 'group'"),
        (lambda: Scale(of="rewards"), "did you mean 'reward'"),
        (lambda: Scale(ddof=2), "use 0"),
        (lambda: Scale(eps=-1.0), "eps"),
        (lambda: Whiten("tokens"), "did you mean 'token'"),
        (lambda: Whiten(eps=float("nan")), "eps"),
        (lambda: DropZeroVariance(tolerance=-1.0), "tolerance"),
        (lambda: Overlong(limit=4, cache=5), "cache"),
        (lambda: KlInReward(coef=0.0), "does nothing"),
        (lambda: Scalarise(streams=("on_polcy",)), "did you mean 'on_policy'"),
        (lambda: Scalarise(streams=()), "streams is empty"),
        (lambda: Scalarise(weights=(("a", 1.0),), every=True), "either each component alike or by weights"),
    ],
)
def test_bad_settings_are_named(make: object, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()  # type: ignore[operator]


def test_what_a_credit_term_is_unless_it_says_otherwise() -> None:
    class Double(CreditTerm):
        def apply(self, credit: Credit, stats: object, state: object) -> Credit:
            return credit.with_advantage(2 * credit.advantage)

    near(advantages(tiny([1, 0]), Double()), [2, 0])
    assert (Double().kind, Double().needs, Double().min_group, Double().scope.value) == ("transform", (), 1, "sequence")
    assert (Double().reduces, DropTruncated().reduces, DropZeroVariance().reduces) == (False, False, True)
    assert DropZeroVariance().scope.value == "group"
    assert Double().init() == Double().local(None) == Double().advance({}, {}) == {}  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e9])
@pytest.mark.parametrize(
    "chain", [(Center(),), (Center("leave_one_out"),), (Center("batch"),), (Whiten("rollout"),), (Center("batch"), Whiten())]
)
def test_the_last_bit_of_a_mean_decides_nothing(chain: tuple[CreditTerm, ...], scale: float) -> None:
    """The mean of 0.1, 0.5 and 0.9 is 0.5 but for rounding: who stands on it has no advantage, and no token that acts."""
    rewards = [0.1, 0.5, 0.9]
    assert float(Moments.of(np.array(rewards)).mean[0]) != 0.5
    program = Objective(credit=chain, policy=plain(), aggregate=SeqSum()).compile()
    batch = program.credit(tiny([scale * r for r in rewards]))
    assert np.sign(batch.token("advantage"))[1::2].tolist() == [-1, 0, 1]
