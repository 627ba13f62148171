"""Baselines: columns, running means, weighted means, optimal baselines per token, the best rollout alone."""

import json
import math

import numpy as np
import pytest
from credit_batches import after, around, chains, flat, near, per_attempt, tokens, wide
from objective_batches import advantages, tiny

from assay.core.errors import ConfigError, DataError
from assay.objective import Center, CreditTerm, Scale, Whiten
from assay.objective.credit.baseline import Against, OptimalToken, RunningBaseline, TopGap
from assay.objective.credit.resample import Resample
from assay.objective.credit.returns import Discount
from assay.testing.objective import check_objective, check_term

__all__ = ["wide"]


def test_skyrl_leave_one_out() -> None:
    batch = tiny([6, 3, 9, 12, 1], [0, 0, 1, 1, 2])
    near(advantages(batch, Center("leave_one_out")), [3, -3, -3, 3, 0], 1e-12)
    near(advantages(batch, Center()), [1.5, -1.5, -1.5, 1.5, 0], 1e-12)


def test_leave_one_out_is_the_mean_rescaled() -> None:
    batch = tiny([1, 0, 0.5, 0.25], [0, 0, 0, 0])
    near(advantages(batch, Center("leave_one_out")), 4 / 3 * advantages(batch, Center()), 1e-12)


def test_optimal_reward_baseline_is_weighted_by_length() -> None:
    batch = tiny([1, 0, 0], lengths=[1, 2, 1])
    near(advantages(batch, Center("length_weighted")), [0.75, -0.25, -0.25], 1e-12)
    same = tiny([1, 0, 0], lengths=[2, 2, 2])
    near(advantages(same, Center("length_weighted")), advantages(same, Center()), 1e-12)
    assert (advantages(tiny([0.1] * 3, lengths=[1, 2, 3]), Center("length_weighted")) == 0).all()
    assert (advantages(tiny([1.0]), Center("length_weighted")) == 0).all()


def test_attempts_without_tokens_weigh_nothing_in_it() -> None:
    batch = chains([1.0, 0.0, 0.0], [[1], [], [1, 1, 1]])
    near(after(batch, Center("length_weighted")).advantage, [0.75, -0.25, -0.25], 1e-12)


def test_greedy_baseline_of_remax() -> None:
    batch = tiny([1, 0, 1], [0, 0, 1], greedy=[1.0, 1.0, 0.0])
    near(advantages(batch, Against("greedy")), [0, -1, 1], 0)
    near(tokens(batch, Discount(), Against("greedy"))[1], [-1], 0)
    with pytest.raises(DataError, match="rollout 1 has greedy=nan"):
        advantages(tiny([1, 0], greedy=[0.0, math.nan]), Against("greedy"))
    near(advantages(tiny([1, 0], greedy=[0.5, math.nan], valid=[True, False]), Against("greedy"))[0], 0.5, 0)
    with pytest.raises(DataError, match=r"reads the column 'greedy' of each rollout.*batch has components/correct"):
        advantages(tiny([1, 0]), Against("greedy"))


def test_the_advantage_of_a_lol() -> None:
    from assay.objective.credit.transform import PositivePart

    record = after(tiny([1.0, 0.2, 0.5], [0, 1, 2], value=[0.4, 0.5, 0.5]), Against("value"), PositivePart())
    near(record.advantage, [0.6, 0, 0], 1e-12)
    near(record.keep, [1, 0, 1], 0)


def test_siblings_roles_and_episodes_are_peers_inside_a_group() -> None:
    rewards, role = [1, 0, 0.5, 0.5, 1, 0], ["solver", "solver", "poser", "poser", "solver", "poser"]
    batch = tiny(rewards, [0, 0, 0, 0, 1, 1], role=role)
    near(advantages(batch, Center(by="role")), [0.5, -0.5, 0, 0, 0, 0], 1e-12)
    near(advantages(batch, Center("leave_one_out", by="role")), [1, -1, 0, 0, 0, 0], 1e-12)
    near(advantages(batch, Center(by="role"), Scale(by="role", eps=0.0)), [1 / math.sqrt(2), -1 / math.sqrt(2), 0, 0, 0, 0], 1e-9)
    program = around(Center(by="role")).compile()
    program.credit(batch)
    assert program.metrics()["credit/lone"] == 2
    one = tiny([1, 0, 0, 0], role=[4, 4, 4, 4])
    near(advantages(one, Center(by="role")), advantages(one, Center()), 0)


def test_sibling_means_sum_to_nothing() -> None:
    values = tiny([0.6, 0.5, 0.4, 0.9, 0.1], [0, 0, 0, 1, 1], parent=[7, 7, 7, 7, 7])
    near(np.bincount([0, 0, 0, 1, 1], advantages(values, Center(by="parent"))), [0, 0], 1e-12)


def test_role_baseline_is_used_before_it_moves() -> None:
    """One rollout of each role per batch: prime-rl's and SPIRAL's order exactly."""
    program = around(RunningBaseline("role", decay=0.95)).compile()
    expected: dict[int, float] = {0: 0.0, 1: 0.0}
    for rewards in ([1.0, -1.0], [1.0, 0.5], [0.0, 1.0]):
        made = program.credit(tiny(rewards, role=[0, 1])).rollout("advantage")
        near(made, [r - expected[k] for k, r in enumerate(rewards)], 1e-12)
        expected = {k: 0.95 * expected[k] + 0.05 * r for k, r in enumerate(rewards)}
    assert json.loads(json.dumps(program.state_dict())) == program.state_dict()


def test_role_baseline_does_not_ask_for_an_order() -> None:
    moved = []
    for order in ([0, 1, 2], [2, 0, 1]):
        program = around(RunningBaseline("role", decay=0.5)).compile()
        program.credit(tiny([[1.0, 0.0, 0.5][i] for i in order], role=["a", "a", "a"]))
        moved.append(program.state_dict()["credit/0"]["mean"])
    assert list(moved[0].values()) == pytest.approx([0.875 * 0.5])
    assert moved[0] == moved[1]
    equal = around(RunningBaseline("role", decay=0.95)).compile()
    equal.credit(tiny([1.0] * 3, role=[0] * 3))
    b = 0.0
    for _ in range(3):
        b = 0.95 * b + 0.05
    assert equal.state_dict()["credit/0"]["mean"]["0"] == pytest.approx(b, abs=1e-15)


def energy(probability: float, squares: float) -> float:
    return 1 - 2 * probability + squares


def test_optimal_token_baseline_by_hand() -> None:
    p, s = [[0.5, 0.8], [0.25, 0.4, 0.9]], [[0.4, 0.7], [0.3, 0.3, 0.85]]
    batch = chains(
        [1.0, 0.0],
        [[1, 0, 1], [1, 1, 1]],
        columns={
            "logp_old": [[math.log(0.5), 3.0, math.log(0.8)], np.log(p[1]).tolist()],
            "sum_pi_squared_old": [[0.4, 9.0, 0.7], s[1]],
        },
    )
    one, two = (
        np.cumsum([energy(*x) for x in zip(p[0], s[0], strict=True)]),
        np.cumsum([energy(*x) for x in zip(p[1], s[1], strict=True)]),
    )
    first, second = one[0] / (one[0] + two[0]), one[1] / (one[1] + two[1])
    record = after(batch, OptimalToken())
    near(per_attempt(batch, record)[0], [1 - first, 1 - second], 1e-12)
    near(per_attempt(batch, record)[1], [-first, -second, 0.0], 1e-12)  # alone at its third token: its return is 0 here
    near(record.advantage, [np.mean([1 - first, 1 - second]), np.mean([-first, -second, 0])], 1e-12)


def otb_batch(rewards: list[float], lengths: list[int], groups: list[int] | None = None) -> object:
    return tiny(rewards, groups, lengths, columns={"logp_old": -1.0, "sum_pi_squared_old": 0.4, "logp_engine": -2.0})


def test_optimal_token_baseline_at_its_edges() -> None:
    long = otb_batch([1.0, 0.0], [3, 1])
    near(tokens(long, OptimalToken())[0], [0.5, 1.0, 1.0], 1e-12)
    near(tokens(long, OptimalToken(tail=False))[0], [0.5, 0.0, 0.0], 1e-12)
    lone = otb_batch([1.0, 1.0, 0.0], [2, 1, 1], [0, 1, 1])
    record = after(lone, OptimalToken())
    assert per_attempt(lone, record)[0] == [0.0, 0.0]
    assert record.metrics["credit/lone"] == 1
    same = otb_batch([0.1] * 3, [2, 2, 2])
    assert flat(same, OptimalToken()) == [0.0] * 6
    equal = otb_batch([1.0, 0.0, 0.0], [2, 2, 2])
    near(tokens(equal, OptimalToken())[0], [2 / 3] * 2, 1e-12)  # equal energies: the group's mean
    near(tokens(equal, OptimalToken(cap=2.0))[0], [2 / 3] * 2, 1e-12)
    sure = tiny([1.0, 0.0], lengths=[1, 1], columns={"logp_old": 0.0, "sum_pi_squared_old": 1.0})
    near(flat(sure, OptimalToken()), [0.5, -0.5], 1e-12)  # no energy anywhere: the plain mean
    assert OptimalToken(cap=2.0).needs == ("logp_old", "sum_pi_squared_old", "logp_engine")


def test_energy_is_corrected_by_the_capped_ratio_squared() -> None:
    batch = tiny(
        [1.0, 0.0],
        lengths=[1, 1],
        columns={"logp_old": [-1.0, -1.0], "sum_pi_squared_old": 0.4, "logp_engine": [-1.0, -3.0]},
    )
    near(tokens(batch, OptimalToken(cap=2.0))[0], [1 - 1 / (1 + 4)], 1e-12)


def test_copies_count_in_the_optimal_token_baseline() -> None:
    batch = otb_batch([1.0, 0.5], [1, 1])  # power 2: weights 1 and 0.25, copies 1.6 and 0.4
    near(tokens(batch, Resample(), OptimalToken())[0], [1 - (1.6 * 1 + 0.4 * 0.5) / 2], 1e-12)


def test_the_best_attempt_alone() -> None:
    near(advantages(tiny([0.2, 0.9, 0.5]), TopGap()), [0, 0.4, 0], 1e-12)
    near(advantages(tiny([0.2, 0.9, 0.9]), TopGap()), [0, 0, 0], 0)
    near(advantages(tiny([1, 0, 0, 0]), TopGap(), Scale(eps=0.0)), [2, 0, 0, 0], 1e-12)
    near(advantages(tiny([1, 1, 0.5, 0], [0, 0, 1, 2]), TopGap()), [0] * 4, 0)
    assert after(tiny([1, 1, 0.5], [0, 0, 1]), TopGap()).metrics["credit/lone"] == 1
    near(advantages(tiny([1, 0, 0.5], streams=["expert", "on_policy", "on_policy"]), TopGap())[1:], [0, 0.5], 0)
    near(advantages(tiny([1.0, 1.0], valid=[True, False]), TopGap()), [0, 0], 0)


def test_baselines_do_not_read_faulty_scores() -> None:
    for chain in ([Center("length_weighted")], [Center(by="role")], [TopGap()], [Against("greedy")]):
        found = [
            advantages(tiny([1, 0, bad, 0], valid=[True, True, False, True], role=[1] * 4, greedy=[0.5] * 4), *chain)[[0, 1, 3]]
            for bad in (0, 77)
        ]
        near(*found, 0)


@pytest.mark.parametrize(
    "term",
    [
        Against("greedy"),
        RunningBaseline("role"),
        OptimalToken(),
        OptimalToken(tail=False, cap=2.0),
        TopGap(),
        Center("length_weighted"),
        Center(by="peers"),
        Center("leave_one_out", by="peers"),
    ],
)
def test_laws(term: CreditTerm, wide: None, seeds: range) -> None:
    check_term(term, seeds)


@pytest.mark.parametrize(
    "chain",
    [
        (Resample(), Center("length_weighted"), Scale()),
        (Resample(draw=True), Center(by="peers"), Scale(by="peers")),
        (Resample(), OptimalToken(), Whiten("token")),
        (Discount(0.9), OptimalToken()),
        (RunningBaseline("role"), Whiten("rollout")),
    ],
)
def test_laws_of_chains(chain: tuple[CreditTerm, ...], wide: None, seeds: range) -> None:
    check_objective(around(*chain, brings=("sum_pi_squared_old",)), seeds)


def test_scopes_and_sizes() -> None:
    assert Center("length_weighted").scope.value == "group"
    assert (Center("length_weighted").min_group, OptimalToken().min_group, TopGap().min_group) == (2, 2, 2)
    assert (OptimalToken().scope.value, TopGap().scope.value, RunningBaseline().scope.value) == ("group", "group", "batch")
    assert (RunningBaseline("task").rollout_columns, Against("greedy").rollout_columns) == (("task",), ("greedy",))
    assert Center(by="role").rollout_columns == ("role",)
    assert Center().rollout_columns == ()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Center("batch", by="role"), "peers belong to"),
        (lambda: RunningBaseline(decay=1.0), "weight of the past"),
        (lambda: OptimalToken(cap=0.0), "OptimalToken.cap"),
    ],
)
def test_bad_settings_are_named(make: object, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()  # type: ignore[operator]
