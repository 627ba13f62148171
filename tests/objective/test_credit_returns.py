"""Returns per token: discount, turns, process rewards, generalised advantages."""

import math

import numpy as np
import pytest
from credit_batches import after, around, chains, flat, near, per_attempt, tokens
from objective_batches import run, tiny

from assay.core.errors import ConfigError, PlanError, UnknownNameError
from assay.objective import Center, KlInReward, PolicyGradient, Ratio, Scale, Whiten
from assay.objective.credit.divergence import AdaptiveKlInReward
from assay.objective.credit.paths import Path
from assay.objective.credit.returns import Discount, Gae, ProcessNorm, TokenReward, Turns
from assay.testing.objective import check_objective, check_term

ONE = [[1, 1, 1]]
GAPS = [[0, 1, 0, 0, 1, 1]]  # the same three actions, with tool output between them


def gae_batch(masks: list[list[int]], values: list[list[float]], reward: float = 1.0) -> object:
    return chains([reward], masks, columns={"values_old": values})


@pytest.mark.parametrize(("masks", "values"), [(ONE, [[0.2, 0.4, 0.6]]), (GAPS, [[9.0, 0.2, -7.0, 8.0, 0.4, 0.6]])])
def test_gae_skips_what_is_no_action(masks: list[list[int]], values: list[list[float]]) -> None:
    batch = gae_batch(masks, values)
    record = after(batch, Gae(gamma=1.0, lam=0.95))
    near(per_attempt(batch, record)[0], [0.751, 0.58, 0.4], 1e-12)
    near(record.columns["returns"][batch.token("mask")], [0.951, 0.98, 1.0], 1e-12)
    near(record.advantage, [(0.751 + 0.58 + 0.4) / 3], 1e-12)
    assert not record.columns["returns"][~batch.token("mask")].any()


def test_gae_limits() -> None:
    values = [[1.0, 2.0, 3.0]]
    batch = chains([5.0], ONE, columns={"values_old": values})
    near(tokens(batch, Gae(lam=0.0))[0], [1, 1, 2])  # NeMo-RL's vector
    near(tokens(batch, Gae(lam=1.0))[0], [4, 3, 2])  # Monte Carlo less the value
    discounted = chains([3.0], ONE, columns={"values_old": [[0.0] * 3], "steps": [[1.0, 2.0, 0.0]]})
    near(tokens(discounted, TokenReward("steps"), Gae(gamma=0.5, lam=1.0))[0], [2.75, 3.5, 3.0])


def test_gae_with_two_lambdas_and_by_length() -> None:
    values = [[0.2, 0.4, 0.6], [0.1]]
    batch = chains([1.0, 1.0], [[1, 1, 1], [1]], columns={"values_old": values})
    record = after(batch, Gae(lam=0.5, lam_returns=1.0))
    near(record.columns["returns"][batch.token("mask")], [1, 1, 1, 1], 1e-12)
    near(per_attempt(batch, record)[0], [0.2 + 0.5 * (0.2 + 0.5 * 0.4), 0.2 + 0.5 * 0.4, 0.4], 1e-12)
    adaptive = after(batch, Gae(lam=0.3, adaptive=0.5, lam_returns=1.0))  # 1 - 1 / 1.5 for three tokens; 0 for one
    lam = 1 - 1 / 1.5
    near(per_attempt(batch, adaptive)[0], [0.2 + lam * (0.2 + lam * 0.4), 0.2 + lam * 0.4, 0.4], 1e-12)
    near(per_attempt(batch, adaptive)[1], [0.9], 1e-12)


def test_gae_of_turns_values_the_first_token() -> None:
    batch = chains([1.0], [[1, 1, 0, 1, 1]], columns={"values_old": [[0.5, 9.0, 9.0, 0.25, 9.0]], "call": [[0, 0, -1, 3, 3]]})
    record = after(batch, Gae(lam=0.5, by="call"))
    near(per_attempt(batch, record)[0], [-0.25 + 0.5 * 0.75] * 2 + [0.75] * 2, 1e-12)
    near(record.columns["returns"][batch.token("mask")], [0.625] * 2 + [1.0] * 2, 1e-12)


def test_discount_and_baseline() -> None:
    batch = chains([1.0, 0.0], [[1, 1, 0, 1], [1, 1]])
    near(tokens(batch, Discount(0.5))[0], [0.25, 0.5, 1.0])
    near(tokens(batch, Discount(0.5), Center())[0], [-0.25, 0.0, 0.5])
    near(tokens(batch, Discount(0.5), Center())[1], [-0.5, -0.5])
    near(tokens(batch, Discount(1.0), Center(), Scale(eps=0.0))[0], [1 / math.sqrt(2)] * 3)
    record = after(batch, Discount(0.5), Center("leave_one_out"))
    near(record.advantage, [1, -1])
    near(per_attempt(batch, record)[0], [0.25, 0.5, 1.0])
    near(tokens(batch, Discount(0.5), Whiten("rollout", eps=0.0))[0], [-0.5, 0.0, 1.0])


def test_discount_without_discount_is_the_outcome() -> None:
    batch = chains([1.0, 0.0, 0.5], [[1, 1], [1], [1, 0, 1]])
    for chain in ([Center()], [Center("leave_one_out"), Scale()], [Whiten("token")], [Center("constant", value=0.3)]):
        near(flat(batch, Discount(), *chain), flat(batch, *chain), 1e-12)


def test_a_lone_attempt_has_no_signal_at_any_token() -> None:
    batch = chains([1.0, 0.5, 0.0], [[1, 1], [1], [1]], [0, 1, 1])
    assert tokens(batch, Discount(0.5), Center())[0] == [0.0, 0.0]


def test_skyrl_returns() -> None:
    batch = chains([3.0], ONE, columns={"steps": [[1.0, 2.0, 0.0]]})
    near(tokens(batch, TokenReward("steps"), Discount(0.5))[0], [2.75, 3.5, 3.0])


def test_roll_whitening() -> None:
    batch = chains([3.0], [[1, 1]], columns={"steps": [[1.0, 0.0]]})
    # gamma 0 is refused here: a segment of its own per token gives each token its own reward with a small discount.
    near(tokens(batch, TokenReward("steps"), Discount(1e-300), Whiten("token", ddof=1, eps=0.0))[0], [-0.70710677, 0.70710677])


def test_reinforce_pp_pays_k1_at_its_token() -> None:
    batch = chains([1.0], ONE, columns={"logp_old": [[-1.0, -2.0, -3.0]], "logp_ref": [[-1.5, -1.0, -3.0]]})
    near(tokens(batch, KlInReward(coef=0.1), Discount(1.0))[0], [1 - 0.05 + 0.1, 1 + 0.1, 1.0])
    near(tokens(batch, KlInReward(coef=0.1))[0], [1.05] * 3)  # without a return the sum is the outcome's


@pytest.mark.parametrize(("estimator", "paid"), [("k1", 0.5), ("abs", 0.5), ("k2", 0.125), ("k3", math.exp(-0.5) - 1 + 0.5)])
def test_estimators_of_the_divergence(estimator: str, paid: float) -> None:
    batch = chains([1.0], [[1]], columns={"logp_old": [[-1.0]], "logp_ref": [[-1.5]]})
    near(after(batch, KlInReward(coef=2.0, estimator=estimator)).reward, [1 - 2 * paid], 1e-12)


def test_adaptive_coefficient_follows_the_sheet() -> None:
    size = 256
    batch = tiny([1.0] * size, columns={"logp_old": -1.0, "logp_ref": -10.0})
    term = AdaptiveKlInReward(coef=0.2, target=6.0, horizon=10000.0)
    program = around(term).compile()
    first = program.credit(batch)
    near(first.rollout("advantage"), [1 - 0.2 * 9] * size, 1e-12)
    assert program.metrics()["credit/kl_coef"] == 0.2
    assert program.state_dict()["credit/0"]["coef"] == pytest.approx(0.201024, abs=1e-12)
    near(program.credit(batch).rollout("advantage"), [1 - 0.201024 * 9] * size, 1e-9)
    strangers = tiny([1.0, 0.0], columns={"logp_old": -1.0, "logp_ref": -10.0}, streams=["expert", "expert"])
    before = program.state_dict()
    program.credit(strangers)
    assert program.state_dict() == before


def test_turns_credit_whole_segments() -> None:
    columns = {"call": [[0, 0, -1, 2, 2, 5]], "steps": [[0.5, 0.0, 0.0, 0.0, 1.0, 0.0]]}
    batch = chains([2.0], [[1, 1, 0, 1, 1, 1]], columns=columns)
    near(tokens(batch, TokenReward("steps"), Turns("call", gamma=0.5))[0], [1.5, 1.5, 2.0, 2.0, 2.0])
    near(tokens(batch, Turns("call"))[0], [2.0] * 5)


def test_two_calls_in_two_rows_are_one_chain() -> None:
    """The rows of a rollout follow one another: what a second row repeats as context is no action."""
    from assay.testing.objective import random_batch, split_rows

    batch = random_batch(3, ("values_old",))
    split, source = split_rows(batch, 3)
    one, two = after(batch, Gae(lam=0.9)), after(split, Gae(lam=0.9))
    assert len(split) > len(batch)
    loss = split.token("mask")
    near(two.per_token()[loss], one.per_token()[source[loss]], 1e-12)
    near(two.columns["returns"][loss], one.columns["returns"][source[loss]], 1e-12)


def test_process_rewards_are_normalised_over_the_groups_steps() -> None:
    columns = {"steps": [[0.0, 1.0, 0.0], [0.0, 0.0]], "segment": [[0, 0, 1], [0, 1]]}
    batch = chains([1.0, 0.0], [[1, 1, 1], [1, 1]], columns=columns)
    record = after(batch, TokenReward("steps", alone=True), ProcessNorm("segment", eps=0.0))
    near(record.reward, [1, 0])
    near(record.metric, [1, 0])
    near(per_attempt(batch, record)[0], [1.0, 1.0, -0.5])  # steps 1, 0 | 0, 0: mean 1/4, sd 1/2
    near(per_attempt(batch, record)[1], [-1.0, -0.5])
    near(record.advantage, [1.0, -1.0])
    level = chains([0.7, 0.7], [[1, 1], [1]], columns={"steps": [[0.1, 0.1], [0.1]], "segment": [[0, 1], [0]]})
    assert flat(level, TokenReward("steps", alone=True), ProcessNorm("segment")) == [0.0] * 3


def test_token_rewards_add_to_the_outcome() -> None:
    batch = chains([1.0, 0.0], [[1, 0], [1, 1]], columns={"a": [[0.5, 99.0], [0.25, 0.25]], "b": [[1.0, 0.0], [0.0, 1.0]]})
    record = after(batch, TokenReward("a"), TokenReward("b", coef=2.0))
    near(record.reward, [3.5, 2.5])
    near(record.metric, [1, 0])
    assert record.steps is not None
    near(record.steps[batch.token("mask")], [2.5, 0.25, 2.25])
    near(tokens(batch, TokenReward("a"), TokenReward("b", coef=2.0), Discount())[1], [2.5, 2.25])


def test_an_attempt_without_tokens_has_its_part_in_the_group() -> None:
    batch = chains([1.0, 0.0, 0.0], [[1, 1], [], [1]], columns={"values_old": [[0.0, 0.0], [], [0.0]]})
    near(after(batch, Discount(0.5), Center()).advantage, [2 / 3, -1 / 3, -1 / 3])
    near(tokens(batch, Discount(0.5), Center())[0], [0.5 - 1 / 3, 1 - 1 / 3])
    assert tokens(batch, Gae())[1] == []
    near(after(batch, Gae()).advantage[1], 0.0)


def test_path_knows_order_last_and_next() -> None:
    batch = chains([1.0, 0.0], [[1, 0, 1], [1]])
    path = Path.of(after(batch))
    assert path.last.tolist() == [False, True, True]
    assert path.place.tolist() == [0, 1, 0]
    assert path.next(np.array([1.0, 2.0, 3.0])).tolist() == [2.0, 0.0, 0.0]
    assert path.to_go(np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.0])).tolist() == [2.0, 2.0, 3.0]
    assert path.so_far(np.array([1.0, 2.0, 3.0])).tolist() == [1.0, 3.0, 3.0]


def test_moving_attempts_alone_is_refused_once_tokens_differ() -> None:
    from assay.objective.credit.baseline import TopGap

    with pytest.raises(PlanError, match=r"Credit\.centred"):
        after(chains([1.0, 0.0], [[1, 1], [1]]), Discount(0.5), TopGap())


def test_loss_of_a_discounted_return_is_reinforce() -> None:
    batch = chains([1.0, 0.0], [[1, 1], [1]])
    objective = around(Discount(0.5), Center())
    assert isinstance(objective.policy, PolicyGradient)
    assert objective.policy.ratio == Ratio("none")
    near(run(objective, batch).gradients["logp_new"][batch.token("mask")], [0.0, -0.25, 0.25], 1e-12)


@pytest.mark.parametrize(
    "term",
    [
        TokenReward("extra_reward"),
        TokenReward("extra_reward", alone=True),
        Discount(0.9),
        Turns("call", 0.9),
        ProcessNorm("call"),
        Gae(gamma=0.9, lam=0.8),
        Gae(gamma=0.9, lam=0.8, by="call", lam_returns=1.0),
        Gae(adaptive=0.5),
        AdaptiveKlInReward(coef=0.1),
        KlInReward(coef=0.1, estimator="k3"),
    ],
)
def test_laws(term: object, seeds: range) -> None:
    check_term(term, seeds)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "chain",
    [
        (KlInReward(coef=0.1), TokenReward("extra_reward"), Discount(0.9), Center("leave_one_out"), Scale()),
        (TokenReward("extra_reward"), Turns("call"), Center(), Whiten("token")),
        (KlInReward(coef=0.1), Gae(), Whiten("token")),
        (Discount(0.9), Whiten("rollout")),
    ],
)
def test_laws_of_chains(chain: tuple[object, ...], seeds: range) -> None:
    check_objective(around(*chain, brings=("extra_reward", "values_old")), seeds)  # type: ignore[arg-type]


def test_what_gae_asks_and_makes() -> None:
    assert Gae().needs == ("values_old",)
    assert Gae(by="call").needs == ("values_old", "call")
    assert Gae().makes == ("returns",)
    assert Discount().makes == ()
    assert TokenReward("x").needs == ("x",)
    assert Turns().needs == ("call",)
    assert (ProcessNorm().needs, ProcessNorm().scope.value) == (("segment",), "group")
    assert (Discount().kind, Gae().kind, ProcessNorm().kind, TokenReward("x").kind) == ("return", "baseline", "baseline", "shape")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Discount(0.0), "Discount.gamma=0.0"),
        (lambda: Turns("call", 1.5), "Turns.gamma"),
        (lambda: Gae(gamma=-1.0), "Gae.gamma"),
        (lambda: Gae(lam=1.5), "Gae.lam=1.5"),
        (lambda: Gae(lam_returns=-0.5), "Gae.lam_returns"),
        (lambda: Gae(adaptive=0.0), "Gae.adaptive"),
        (lambda: TokenReward("x", coef=0.0), "TokenReward.coef"),
        (lambda: ProcessNorm(ddof=2), "ddof"),
        (lambda: ProcessNorm(eps=-1.0), "eps"),
        (lambda: AdaptiveKlInReward(coef=0.1, target=0.0), "both must be positive"),
        (lambda: AdaptiveKlInReward(coef=0.0), "AdaptiveKlInReward.coef=0.0"),
    ],
)
def test_bad_settings_are_named(make: object, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()  # type: ignore[operator]


def test_unknown_estimator() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'k1'"):
        KlInReward(coef=0.1, estimator="k11")
