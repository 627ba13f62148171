"""Normalisers: running and constant spreads, others' spreads, means, components by themselves, steps from the same state."""

import math
from dataclasses import replace

import numpy as np
import pytest
from credit_batches import after, around, chains, flat, near, per_attempt, tokens, wide
from objective_batches import advantages, plain, tiny

from assay.core.batch import Batch
from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.objective import Center, CreditTerm, Moments, Objective, Scale, Whiten
from assay.objective.credit.base import Credit
from assay.objective.credit.baseline import OptimalToken, TopGap
from assay.objective.credit.components import ComponentNorm
from assay.objective.credit.normalise import ScaleByMean, ScaleBySignal
from assay.objective.credit.pass_at_k import PassAtK
from assay.objective.credit.resample import Resample
from assay.objective.credit.returns import Discount, ProcessNorm, TokenReward
from assay.objective.credit.steps import StateGroups
from assay.testing.objective import check_objective, check_term, over_ranks

__all__ = ["wide"]


def test_maxrl_divides_by_the_mean() -> None:
    near(advantages(tiny([1, 0, 0, 0]), Center(), ScaleByMean(eps=0.0)), [3, -1, -1, -1], 1e-12)
    near(advantages(tiny([6, 3, 9, 12], [0, 0, 1, 1]), Center(), ScaleByMean()), [1.5 / 4.5, -1.5 / 4.5, -1 / 7, 1 / 7], 1e-5)
    near(advantages(tiny([0, 0, 1, 1, -1, -3], [0, 0, 1, 1, 2, 2]), Center(), ScaleByMean()), [0] * 6, 0)
    near(advantages(tiny([1, 0, 0.5], [0, 0, 1]), Center(), ScaleByMean(eps=0.0)), [1, -1, 0], 0)


def test_scale_by_the_others_spread() -> None:
    rewards = [1.0, 0.0, 0.25, 0.5]
    expected = []
    for i, r in enumerate(rewards):
        others = np.delete(rewards, i)
        expected.append((r - others.mean()) / others.std(ddof=1))
    near(advantages(tiny(rewards), Center("leave_one_out"), Scale("leave_one_out", eps=0.0)), expected, 1e-12)
    # One success: the others of the success do not vary, so it is not divided; all failures share a spread of [1, 0, 0].
    one = advantages(tiny([1, 0, 0, 0]), Center("leave_one_out"), Scale("leave_one_out", eps=0.0))
    near(one, [1] + [-(1 / 3) / math.sqrt(1 / 3)] * 3, 1e-12)
    assert (advantages(tiny([0.1] * 4), Center("leave_one_out"), Scale("leave_one_out")) == 0).all()
    mixed = tiny([1, 0, 0.5, 0.25], streams=["expert", "on_policy", "on_policy", "on_policy"])
    made = advantages(mixed, Center("leave_one_out"), Scale("leave_one_out", eps=0.0))
    near(made[0], (1 - 0.25) / np.std([0, 0.5, 0.25], ddof=1), 1e-12)
    near(
        advantages(tiny(rewards), Center("leave_one_out"), Scale("leave_one_out", of="advantage", eps=0.0)),
        np.array(expected) * 3 / 4,
        1e-12,
    )


def test_constant_and_running_spread() -> None:
    near(advantages(tiny([1, 0]), Center(), Scale("constant", value=0.25, eps=0.0)), [2, -2], 1e-12)
    program = Objective(credit=(Center(), Scale("ema", ddof=0, eps=0.0, decay=0.5)), policy=plain()).compile()
    near(program.credit(tiny([1, 0])).rollout("advantage"), [1, -1], 1e-12)  # the first batch: its own spread, 1/2
    near(program.credit(tiny([4, 0])).rollout("advantage"), [4, -4], 1e-12)  # by the first batch's
    assert program.state_dict()["credit/1"] == {"variance": 0.5 * 0.125 + 0.5 * 4.0, "weight": 0.75}
    near(program.credit(tiny([1, 0])).rollout("advantage"), np.array([0.5, -0.5]) / math.sqrt(2.0625 / 0.75), 1e-12)
    before = program.state_dict()
    program.credit(tiny([1, 0], streams=["expert"] * 2))
    assert program.state_dict() == before
    constant = Objective(credit=(Center(), Scale("constant", value=2.0)), policy=plain())
    assert constant.plan().reductions[0] == "credit/0"
    assert "credit/1" not in constant.plan().reductions


def test_trl_reward_scales() -> None:
    batch = tiny([1, 0, 0, 0, 1, 1, 1, 0], [0] * 4 + [1] * 4)
    rewards = np.array([1, 0, 0, 0, 1, 1, 1, 0.0])
    centred = rewards - np.repeat([0.25, 0.75], 4)
    near(advantages(batch, Center(), Scale("group", eps=1e-4)), centred / (0.5 + 1e-4), 1e-12)
    near(advantages(batch, Center(), Scale("batch", eps=1e-4)), centred / (rewards.std(ddof=1) + 1e-4), 1e-12)
    near(advantages(batch, Center()), centred, 1e-12)


def test_gpg_makes_up_for_groups_without_signal() -> None:
    batch = tiny([1, 0, 1, 1, 0, 0], [0, 0, 1, 1, 2, 2])
    near(advantages(batch, Center(), ScaleBySignal()), [1.5, -1.5, 0, 0, 0, 0], 1e-12)  # 6 rollouts, 2 with a signal
    near(advantages(batch, Center(), ScaleBySignal("reward")), [1, -1, 0, 0, 0, 0], 1e-12)  # 6 rollouts, 3 rewards that are not 0
    none = tiny([0, 0])
    for of in ("variance", "reward"):
        near(advantages(none, Center(), ScaleBySignal(of)), [0, 0], 0)


def test_sample_deviation_of_whitening() -> None:
    batch = tiny([1, 0], lengths=[1, 3])
    values = np.array([1.0, 0, 0, 0])
    near(flat(batch, Whiten("token", eps=0.0, ddof=1)), (values - 0.25) / values.std(ddof=1), 1e-12)
    one = tiny([1.0], lengths=[1])
    assert tokens(one, Whiten("token", ddof=1)) == [[0.0]]


def gdpo_batch(second: list[float], valid: list[bool] | None = None) -> object:
    return tiny([1, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1], valid=valid, **{"components/format": second})


def test_components_are_normalised_by_themselves() -> None:
    second = [0.0, 0.01, 0.02, 5.0, 1.0, 3.0]
    made = advantages(gdpo_batch(second), ComponentNorm(scale=Scale(eps=0.0)))
    expected = np.zeros(6)
    for r in ([1, 0, 0, 1, 1, 1], second):
        for g in (slice(0, 3), slice(3, 6)):
            part = np.array(r, float)[g]
            expected[g] += (part - part.mean()) / part.std(ddof=1) if part.std() else 0.0
    near(made, expected, 1e-9)
    weighted = advantages(gdpo_batch(second), ComponentNorm(weights=(("correct", 1.0), ("format", 0.0)), scale=Scale(eps=0.0)))
    near(weighted, advantages(gdpo_batch(second), Center(), Scale(eps=0.0)), 1e-12)
    whole = advantages(gdpo_batch(second), ComponentNorm(scale=Scale(eps=0.0)), Whiten("rollout", eps=0.0, ddof=1))
    near(whole, (expected - expected.mean()) / expected.std(ddof=1), 1e-9)


def test_one_component_reduces_to_grpo() -> None:
    batch = tiny([1, 0, 0.5, 0, 1, 1], [0, 0, 0, 1, 1, 1])
    near(advantages(batch, ComponentNorm()), advantages(batch, Center(), Scale()), 0)
    both = ComponentNorm(centre=Center("leave_one_out"), scale=Scale("leave_one_out"))
    near(advantages(batch, both), advantages(batch, Center("leave_one_out"), Scale("leave_one_out")), 0)
    assert after(tiny([1, 0, 1], [0, 0, 1]), ComponentNorm()).metrics["credit/lone"] == 1


def test_components_must_be_there() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'format'"):
        advantages(gdpo_batch([0.0] * 6), ComponentNorm(weights=(("fromat", 1.0),)))
    with pytest.raises(DataError, match="1 graded rollouts lack the reward component 'format'"):
        advantages(gdpo_batch([math.nan] + [0.0] * 5), ComponentNorm())
    faulty = [False] + [True] * 5
    near(
        advantages(gdpo_batch([math.nan] + [0.0] * 5, valid=faulty), ComponentNorm())[1:],
        advantages(gdpo_batch([0.0] * 6, valid=faulty), ComponentNorm())[1:],
        0,
    )
    constant = ComponentNorm(centre=Center("constant", value=0.0), scale=Scale("constant", value=1.0))
    assert not constant.reduces
    assert ComponentNorm().reduces
    assert ComponentNorm(centre=Center(by="role")).rollout_columns == ("role",)
    with pytest.raises(ConfigError, match="running means of components"):
        ComponentNorm(centre=Center("ema", decay=0.5))


def gigpo_batch() -> object:
    return chains(
        [1.0, 0.0, 0.0],
        [[1, 1, 0, 1], [1, 1, 1], [1]],
        [0, 0, 1],
        columns={"call": [[0, 0, -1, 1], [0, 1, 1], [0]], "state": [[7, 1, 0, 8], [7, 9, 9], [7]]},
    )


def test_steps_from_the_same_state_are_compared() -> None:
    """Both rollouts of group 0 begin in state 7, with returns 0.5 and 0; the other states are each met once."""
    batch = gigpo_batch()
    record = after(batch, Center(), StateGroups(gamma=0.5, scale=False))
    near(per_attempt(batch, record)[0], [0.5 + 0.25, 0.5 + 0.25, 0.5], 1e-12)
    near(per_attempt(batch, record)[1], [-0.5 - 0.25, -0.5, -0.5], 1e-12)
    assert per_attempt(batch, record)[2] == [0.0]
    assert record.metrics["credit/shared_states"] == 2 / 5
    scaled = per_attempt(batch, after(batch, Center(), StateGroups(gamma=0.5, weight=2.0, ddof=0, eps=0.0)))
    near(scaled[0], [0.5 + 2, 0.5 + 2, 0.5], 1e-12)


def test_steps_without_shared_states_are_the_episode() -> None:
    batch = chains([1.0, 0.0], [[1, 1], [1]], columns={"call": [[0, 1], [0]], "state": [[1, 2], [3]]})
    near(flat(batch, Center(), StateGroups()), flat(batch, Center()), 0)
    level = chains([0.1, 0.1], [[1], [1]], columns={"call": [[0], [0]], "state": [[1], [1]]})
    assert flat(level, Center(), StateGroups()) == [0.0, 0.0]
    nothing = chains([1.0, 0.0], [[], [1]], columns={"call": [[], [0]], "state": [[], [1]]})
    none_here = Credit(
        batch=nothing.micro([]),
        metric=np.zeros(2),
        reward=np.zeros(2),
        advantage=np.zeros(2),
        keep=np.ones(2),
        counted=np.ones(2, bool),
    )
    term = StateGroups()
    assert term.apply(none_here, term.local(none_here), {}).metrics["credit/shared_states"] == 0


def test_step_rewards_count_where_they_are_paid() -> None:
    batch = chains(
        [0.0, 0.0],
        [[1, 1], [1, 1]],
        columns={"call": [[0, 1]] * 2, "state": [[5, 6], [5, 6]], "steps": [[1.0, 0.0], [0.0, 0.0]]},
    )
    near(tokens(batch, TokenReward("steps"), Center(), StateGroups(scale=False))[0], [0.5 + 0.5, 0.5], 1e-12)


def test_copies_count_as_often_as_they_were_drawn() -> None:
    """Weights 1 and 4 of rewards 1 and 2 (power 2): copies 0.4 and 1.6, so statistics are those of one 1 and four 2."""
    batch = tiny([1.0, 2.0], lengths=[2, 1])
    drawn = np.array([1, 2, 2, 2, 2.0])
    near(advantages(batch, Resample(), Center()), [1 - drawn.mean(), 2 - drawn.mean()], 1e-12)
    near(advantages(batch, Resample(), Center("batch")), [1 - drawn.mean(), 2 - drawn.mean()], 1e-12)
    sd = drawn.std()
    near(advantages(batch, Resample(), Center(), Scale("batch", ddof=0, eps=0.0)), np.array([1 - 1.8, 2 - 1.8]) / sd, 1e-12)
    near(advantages(batch, Resample(), Whiten("rollout", eps=0.0)), np.array([1 - 1.8, 2 - 1.8]) / sd, 1e-12)
    weighted = np.array([1, 1, 2, 2, 2, 2.0])  # by tokens: two of the first, each as often
    made = tokens(batch, Resample(), Whiten("token", eps=0.0))
    near(made[0][0], (1 - weighted.mean()) / weighted.std(), 1e-12)
    near(advantages(batch, Resample(), Center("length_weighted")), [1 - weighted.mean(), 2 - weighted.mean()], 1e-12)
    steps = chains([1.0, 2.0], [[1], [1]], columns={"call": [[0], [0]], "state": [[1], [1]], "segment": [[0], [0]]})
    near(tokens(steps, Resample(), StateGroups(scale=False))[0], [1 + 1 - 1.8], 1e-12)
    near(tokens(steps, Resample(), ProcessNorm(ddof=0, eps=0.0))[1], [0.2 / sd], 1e-12)


def test_spread_over_ranks_is_that_of_the_union() -> None:
    rewards, role = [1.0, 0.0, 0.5, 0.25, 1.0, 0.0], [0, 1, 0, 1, 0, 0]
    chain = (Center("leave_one_out", by="role"), Scale("leave_one_out", by="role"))
    whole = advantages(tiny(rewards, role=role), *chain)

    def rank(number: int, reducer: object) -> np.ndarray:
        part = slice(0, 3) if number == 0 else slice(3, 6)
        batch = tiny(rewards[part], role=role[part])
        return around(*chain).compile(reducer=reducer).credit(batch).rollout("advantage")  # type: ignore[arg-type]

    near(np.concatenate(over_ranks(rank, 2)), whole, 1e-12)


def test_moments_with_weights_are_those_of_repeated_values() -> None:
    from assay.objective.credit.stats import moments

    values, times = np.array([0.1, 0.7, 0.1, 5.0]), np.array([2, 1, 3, 0])
    keys = np.array([0, 0, 1, 1])
    found, plainly = (
        moments(values, keys, 3, times.astype(float)),
        Moments.of(np.repeat(values, times), np.repeat(keys, times), 3),
    )
    for name in ("count", "mean", "m2"):
        near(getattr(found, name), getattr(plainly, name), 1e-12)
    assert found.mean[1] == 0.1


GROUP_CHAINS = [
    (Center("length_weighted"),),
    (Center(by="peers"), Scale(by="peers")),
    (Center("leave_one_out"), Scale("leave_one_out")),
    (Center(), ScaleBySignal()),
    (ComponentNorm(),),
    (Discount(), Center(), Scale()),
    (Center(), StateGroups()),
    (TopGap(), Scale()),
    (OptimalToken(),),
]


def varied(rewards: list[float]) -> Batch:
    masks = [[1, 1], [1], [1, 0, 1], [1], [1, 1], [1]]
    columns = {"call": 0.0, "state": 3.0, "logp_old": -1.0, "sum_pi_squared_old": 0.5}
    given = {name: [[value] * len(m) for m in masks] for name, value in columns.items()}
    return chains(rewards, masks, [0, 0, 0, 1, 1, 1], columns=given, peers=[1] * 6)


@pytest.mark.parametrize("chain", [*GROUP_CHAINS, (Center(), ScaleByMean()), (PassAtK(k=2, hit=0.9),)])
def test_a_group_of_equal_rewards_teaches_nothing(chain: tuple[CreditTerm, ...]) -> None:
    batch = varied([0.1, 0.1, 0.1, 1.0, 0.0, 0.5])
    found = tokens(batch, *chain)
    assert [set(found[i]) <= {0.0} for i in range(3)] == [True] * 3
    assert any(v for rollout in found[3:] for v in rollout)


@pytest.mark.parametrize("chain", GROUP_CHAINS)
def test_a_shift_of_all_rewards_changes_nothing(chain: tuple[CreditTerm, ...]) -> None:
    rewards = [0.25, 0.5, 1.0, 1.0, 0.0, 0.5]
    chain = tuple(replace(t, tail=False) if isinstance(t, OptimalToken) else t for t in chain)
    near(flat(varied([r + 7 for r in rewards]), *chain), flat(varied(rewards), *chain), 1e-9)


@pytest.mark.parametrize("chain", [c for c in GROUP_CHAINS if any(isinstance(t, Scale | ComponentNorm) for t in c)])
def test_a_scale_of_all_rewards_is_divided_out(chain: tuple[CreditTerm, ...]) -> None:
    rewards = [0.25, 0.5, 1.0, 1.0, 0.0, 0.5]
    near(flat(varied([5 * r for r in rewards]), *chain), flat(varied(rewards), *chain), 1e-4)


@pytest.mark.parametrize(
    "term",
    [
        Scale("leave_one_out"),
        Scale("group", by="peers"),
        Scale("constant", value=0.5),
        Scale("ema", decay=0.5),
        ScaleByMean(),
        ScaleBySignal(),
        ScaleBySignal("reward"),
        Whiten("token", ddof=1),
        ComponentNorm(),
        ComponentNorm(weights=(("correct", 2.0),), centre=Center("leave_one_out"), scale=Scale("batch")),
        StateGroups(),
        StateGroups(scale=False, by="segment"),
    ],
)
def test_laws(term: CreditTerm, wide: None, seeds: range) -> None:
    check_term(term, seeds)


def test_laws_of_gdpo_and_gigpo(wide: None, seeds: range) -> None:
    check_objective(around(ComponentNorm(), Whiten("token")), seeds)
    check_objective(around(Center(), Scale(), StateGroups(), brings=("state",)), seeds)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Scale("batch", by="role"), "peers belong to"),
        (lambda: Scale("constant"), "value belongs to"),
        (lambda: Scale("group", value=1.0), "value belongs to"),
        (lambda: Scale("constant", value=0.0), "positive"),
        (lambda: Scale("ema"), "decay belongs to"),
        (lambda: Scale("ema", decay=1.0), "weight of the past"),
        (lambda: Whiten(ddof=2), "ddof"),
        (lambda: ScaleByMean(eps=-1.0), "eps"),
        (lambda: ScaleBySignal("rewards"), "did you mean 'reward'"),
        (lambda: StateGroups(gamma=0.0), "StateGroups.gamma"),
        (lambda: StateGroups(weight=0.0), "weight"),
        (lambda: StateGroups(ddof=3), "ddof"),
        (lambda: StateGroups(eps=-1.0), "eps"),
    ],
)
def test_bad_settings_are_named(make: object, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()  # type: ignore[operator]


def test_scopes_and_sizes() -> None:
    assert (Scale("leave_one_out").min_group, Scale("constant", value=1.0).min_group, ScaleByMean().min_group) == (3, 1, 2)
    assert Scale("constant", value=1.0).scope.value == "sequence"
    assert (ScaleByMean().scope.value, ScaleBySignal().scope.value, StateGroups().scope.value) == ("group", "batch", "group")
    assert (ScaleByMean().kind, ScaleBySignal().kind, ComponentNorm().kind, StateGroups().kind) == (
        "scale",
        "scale",
        "baseline",
        "transform",
    )
    assert (ComponentNorm().scope.value, ComponentNorm().min_group) == ("group", 2)
