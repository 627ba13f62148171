"""`evaluate`: numbers by hand, gradients by finite differences and by autograd, and every input that is wrong."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from padded_inputs import nudged, random_inputs

from assay.core.errors import ConfigError, DataError, PlanError, UnknownNameError
from assay.objective import (
    AdaptiveKl,
    Center,
    ColumnTarget,
    Credit,
    CreditTerm,
    DropTruncated,
    Entropy,
    Objective,
    Overlong,
    PolicyGradient,
    Ratio,
    Scalarise,
    ScoreLoss,
    TdLoss,
    Token,
    dapo,
    evaluate,
    grpo,
    nll,
    pacs,
    rloo,
)
from assay.objective.methods import methods
from assay.objective.padded_batch import PaddedInputs

NAMED = {name: m.objective() for name, m in methods().items()}
PLAIN = {name: o for name, o in NAMED.items() if o.uses_reward and not o.brings}
"""Methods that need rewards and what passes fill, but no columns of a user's own."""

OLD = np.array([[-1.0, -0.5, -2.0, -0.7], [-0.3, -1.2, 0.0, 0.0]])
MOVED = np.array([[0.1, -0.3, 0.2, 0.04], [-0.5, 0.6, 0.0, 0.0]])
MASK = np.array([[1, 1, 1, 1], [1, 1, 0, 0]])


def hand(**more: Any) -> dict[str, Any]:
    """Two rollouts of a prompt, lengths 4 and 2, advantages +1 and -0.5."""
    return {"mask": MASK, "logp_new": OLD + MOVED, "logp_old": OLD, "advantages": [1.0, -0.5]} | more


def formula(name: str, loss: Callable[[torch.Tensor], torch.Tensor], **settings: Any) -> None:
    """Loss and gradient of a method against autograd of a formula on the same two rollouts."""
    live = torch.tensor(OLD + MOVED, requires_grad=True)
    expected = loss(live)
    expected.backward()
    found = evaluate(name, hand(**settings.pop("more", {})), **settings)
    assert found.loss == pytest.approx(expected.item(), abs=1e-12)
    np.testing.assert_allclose(found.gradient["logp_new"], live.grad, atol=1e-12)


old, mask = torch.tensor(OLD), torch.tensor(MASK, dtype=torch.float64)
advantage = torch.tensor([[1.0], [-0.5]], dtype=torch.float64)


def rows(values: torch.Tensor) -> torch.Tensor:
    return ((values * mask).sum(1) / mask.sum(1)).mean()


def tokens(values: torch.Tensor) -> torch.Tensor:
    return (values * mask).sum() / mask.sum()


def clipped(ratio: torch.Tensor, low: float, high: float) -> torch.Tensor:
    return torch.maximum(-advantage * ratio, -advantage * ratio.clamp(1 - low, 1 + high))


def test_grpo_is_the_formula() -> None:
    formula("grpo", lambda x: rows(clipped((x - old).exp(), 0.2, 0.2)), kl=0.0)
    assert evaluate("grpo", hand(), kl=0.0).loss == pytest.approx(-0.183085, abs=1e-6)
    ref = old - 0.3
    formula(
        "grpo",
        lambda x: rows(clipped((x - old).exp(), 0.2, 0.2) + 0.1 * ((ref - x).exp() - 1 - (ref - x))),
        kl=0.1,
        more={"logp_ref": OLD - 0.3},
    )


def test_dapo_is_the_formula() -> None:
    formula("dapo", lambda x: tokens(clipped((x - old).exp(), 0.2, 0.28)))
    assert evaluate("dapo", hand(), high=0.2).loss == pytest.approx(-0.462623, abs=1e-6)


def test_cispo_is_the_formula() -> None:
    formula("cispo", lambda x: tokens(-(x - old).exp().clamp(max=5).detach() * advantage * x))
    assert evaluate("cispo", hand(), cap=1.28).loss == pytest.approx(0.641026, abs=1e-6)


def test_gspo_is_the_formula() -> None:
    def ratio(x: torch.Tensor) -> torch.Tensor:
        return (((x - old) * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True)).exp()

    formula("gspo", lambda x: clipped(ratio(x), 3e-4, 4e-4).mean())
    formula("gspo", lambda x: clipped(ratio(x), 0.2, 0.2).mean(), low=0.2, high=0.2)
    assert evaluate("gspo", hand()).loss == pytest.approx(-0.237382, abs=1e-6)


def test_rloo_is_the_formula() -> None:
    live = torch.tensor([[-1.0, -2.0], [-0.5, 0.0], [-3.0, -0.1]], dtype=torch.float64, requires_grad=True)
    reward, here = torch.tensor([1.0, 0.0, 0.5]), torch.tensor([[1.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    others = (reward.sum() - reward) / 2
    (-((reward - others)[:, None] * live * here).sum() / 3).backward()
    found = evaluate(
        "rloo", {"mask": here.numpy(), "logp_new": live.detach().numpy(), "rewards": reward.numpy(), "group_id": [4, 4, 4]}
    )
    np.testing.assert_allclose(found.advantages[:, 0], reward - others, atol=1e-7)
    np.testing.assert_allclose(found.gradient["logp_new"], live.grad, atol=1e-12)


def test_pacs_is_the_formula() -> None:
    """Balanced cross-entropy of leave-one-out scores; the number of the sheet at its scores."""
    score = np.array([0.4, -0.2, 0.0, -0.2])
    half = np.repeat(score[:, None] / 2, 2, 1)
    inputs = {
        "mask": np.ones((4, 2)),
        "logp_new": half - 1,
        "logp_old": np.full((4, 2), -1.0),
        "rewards": [1, 0, 0, 0],
        "group_id": [0] * 4,
    }
    live = torch.tensor(half - 1, requires_grad=True)
    s = (live + 1).sum(1)
    psi = s - (s.sum() - s) / 3
    label = torch.tensor([1.0, 0, 0, 0], dtype=torch.float64)
    weight = torch.tensor([2.0, 2 / 3, 2 / 3, 2 / 3], dtype=torch.float64)
    expected = torch.nn.functional.binary_cross_entropy_with_logits(psi, label, weight=weight)
    expected.backward()
    found = evaluate("pacs", inputs)
    assert found.loss == pytest.approx(expected.item(), abs=1e-12) == pytest.approx(0.5359, abs=1e-4)
    np.testing.assert_allclose(found.gradient["logp_new"], live.grad, atol=1e-12)
    np.testing.assert_allclose(found.advantages, -live.grad, atol=1e-12)


@pytest.mark.parametrize("name", ["grpo", "dapo", "gspo", "rloo", "pacs", "real", "dr_grpo", "reinforce_pp", "nll"])
def test_gradient_by_finite_differences(name: str) -> None:
    """Methods whose loss is itself what is differentiated: no detached weight moves with the log-probabilities."""
    inputs = random_inputs(NAMED[name], 3)
    found, step = evaluate(NAMED[name], inputs).gradient, 1e-6
    for live, gradient in found.items():
        for row, token in np.argwhere(inputs["mask"])[:12]:
            up, down = (evaluate(NAMED[name], nudged(inputs, live, row, token, by)).loss for by in (step, -step))
            assert (up - down) / (2 * step) == pytest.approx(gradient[row, token], abs=2e-8)


@pytest.mark.parametrize("name", PLAIN)
def test_every_named_method_takes_what_it_says_that_it_reads(name: str) -> None:
    inputs = random_inputs(PLAIN[name], 1)
    found = evaluate(PLAIN[name], inputs)
    assert np.isfinite(found.loss)
    assert all(np.isfinite(v) for v in found.metrics.values())
    outside = ~(inputs["mask"] & inputs["valid"][:, None])
    for values in (*found.gradient.values(), found.advantages):
        assert np.isfinite(values).all()
        assert not values[outside].any()


@pytest.mark.parametrize("name", PLAIN)
def test_every_input_that_a_method_needs_is_asked_for(name: str) -> None:
    inputs = random_inputs(PLAIN[name], 1)
    optional = {"valid", "length"} | ({"group_id"} if not PLAIN[name].grouped else set())
    for missing in inputs.keys() - optional:
        with pytest.raises(DataError, match=missing):
            evaluate(PLAIN[name], {k: v for k, v in inputs.items() if k != missing})


@pytest.mark.parametrize("name", PLAIN)
def test_an_input_that_is_not_used_is_refused(name: str) -> None:
    inputs = random_inputs(PLAIN[name], 1)
    with pytest.raises(DataError, match="'logp_odl' is not used"):
        evaluate(PLAIN[name], {**inputs, "logp_odl": inputs["logp_new"]})


@pytest.mark.parametrize("name", PLAIN)
def test_every_column_must_be_finite_and_of_the_masks_shape(name: str) -> None:
    inputs = random_inputs(PLAIN[name], 1)
    row, token = np.argwhere(inputs["mask"] & inputs["valid"][:, None])[0]
    for column in [k for k, v in inputs.items() if np.ndim(v) == 2 and k != "mask"]:
        for bad in (np.nan, np.inf):
            with pytest.raises(DataError, match=rf"{column}\[{row}, {token}\] is"):
                evaluate(PLAIN[name], {**nudged(inputs, column, row, token, bad)})
        with pytest.raises(DataError, match=f"{column} has the shape"):
            evaluate(PLAIN[name], {**inputs, column: inputs[column][:, :-1]})


@pytest.mark.parametrize("name", PLAIN)
def test_a_group_of_one_and_equal_rewards_are_finite(name: str) -> None:
    inputs = random_inputs(PLAIN[name], 2)
    alone = evaluate(PLAIN[name], {**inputs, "group_id": np.arange(12)})
    equal = evaluate(PLAIN[name], {**inputs, "rewards": np.full(12, 0.1)})
    for found in (alone, equal):
        assert np.isfinite(found.loss) and all(np.isfinite(g).all() for g in found.gradient.values())
    kinds = [t.kind for t in PLAIN[name].credit]
    if kinds == ["baseline", "scale"] or kinds == ["filter", "baseline", "scale"]:
        assert not equal.advantages.any()


@pytest.mark.parametrize("name", PLAIN)
def test_nothing_to_learn_from(name: str) -> None:
    inputs = random_inputs(PLAIN[name], 2)
    for empty in ({"mask": np.zeros((12, 6))}, {"valid": np.zeros(12)}):
        found = evaluate(PLAIN[name], {**inputs, **empty})
        assert found.loss == 0
        assert all(g.shape == inputs[live].shape and not g.any() for live, g in found.gradient.items())
        assert found.advantages.shape == (12, 6) and not found.advantages.any()


@pytest.mark.parametrize("name", PLAIN)
def test_huge_ratios_stay_finite(name: str) -> None:
    inputs = random_inputs(PLAIN[name], 2)
    for other in ("logp_old", "logp_engine", "logp_ref"):
        if other in inputs:
            found = evaluate(PLAIN[name], {**inputs, other: np.where(inputs["mask"], -300.0, np.nan)})
            assert np.isfinite(found.loss) and all(np.isfinite(g).all() for g in found.gradient.values())


@pytest.mark.parametrize("name", [n for n, o in PLAIN.items() if not any(hasattr(t, "seed") for t in o.credit)])
def test_an_attempt_without_verdict_is_as_good_as_absent(name: str) -> None:
    inputs = random_inputs(PLAIN[name], 4)
    with_it = evaluate(PLAIN[name], {**inputs, "rewards": np.where(inputs["valid"], inputs["rewards"], np.nan)})
    rest = {k: np.asarray(v)[inputs["valid"]] for k, v in inputs.items()}
    without = evaluate(PLAIN[name], rest)
    assert with_it.loss == pytest.approx(without.loss, abs=1e-12)
    for live, gradient in with_it.gradient.items():
        np.testing.assert_allclose(gradient[inputs["valid"]], without.gradient[live], atol=1e-12)
        assert not gradient[~inputs["valid"]].any()


def test_a_group_that_a_fault_leaves_with_one() -> None:
    found = evaluate(
        "rloo",
        {
            "mask": np.ones((3, 1)),
            "logp_new": -np.ones((3, 1)),
            "rewards": [1.0, np.nan, 0.5],
            "group_id": [0, 0, 1],
            "valid": [1, 0, 1],
        },
    )
    assert not found.advantages.any()
    assert found.metrics["credit/lone"] == 2


def test_an_attempt_without_loss_tokens_counts_in_its_group_only() -> None:
    inputs = {
        "mask": [[1, 1], [0, 0], [1, 0]],
        "logp_new": -np.ones((3, 2)),
        "logp_old": -np.ones((3, 2)),
        "rewards": [1.0, 0, 0],
        "group_id": [0, 0, 0],
    }
    found = evaluate(Objective(credit=(Center(),), policy=PolicyGradient()), inputs)
    np.testing.assert_allclose(found.advantages, [[2 / 3, 2 / 3], [0, 0], [-1 / 3, 0]])
    np.testing.assert_allclose(found.gradient["logp_new"], [[-1 / 6, -1 / 6], [0, 0], [1 / 6, 0]], atol=1e-15)


def test_all_filtered_is_no_loss() -> None:
    inputs = random_inputs(NAMED["dapo"], 0)
    found = evaluate("dapo", {**inputs, "rewards": np.ones(12)})
    assert found.loss == 0 and not found.gradient["logp_new"].any()
    assert found.metrics["credit/dropped_groups"] == 3


def test_ratios_beyond_the_clamp_have_no_gradient() -> None:
    inputs = hand(logp_old=OLD - 30)
    assert np.isfinite(evaluate("cispo", inputs).loss)
    assert not evaluate("dapo", {**inputs, "advantages": [1.0, 1.0]}).gradient["logp_new"].any()


def test_advantages_stand_for_the_credit_chain() -> None:
    inputs = random_inputs(NAMED["dr_grpo"], 2)
    own = evaluate("dr_grpo", inputs, length=6)
    given = {k: v for k, v in inputs.items() if k not in ("rewards", "group_id")} | {"advantages": own.advantages}
    other = evaluate("dr_grpo", given, length=6)
    assert other.loss == own.loss
    np.testing.assert_array_equal(other.gradient["logp_new"], own.gradient["logp_new"])
    np.testing.assert_array_equal(other.advantages, own.advantages)
    with pytest.raises(DataError, match=r"advantages has the shape \[12, 7\]"):
        evaluate("dr_grpo", {**given, "advantages": np.ones((12, 7))}, length=6)
    with pytest.raises(DataError, match=r"advantages\[0, 0\] is nan"):
        evaluate("dr_grpo", {**given, "advantages": np.full(12, np.nan)}, length=6)
    with pytest.raises(DataError, match="not used"):
        evaluate("nll", {"mask": MASK, "logp_new": OLD, "advantages": [1, 1]})


def test_rewards_may_stand_beside_advantages() -> None:
    """A loss on scores reads the rewards, whatever the advantages are."""
    inputs = random_inputs(NAMED["pacs"], 2)
    assert evaluate("pacs", {**inputs, "advantages": np.zeros(12)}).loss == evaluate("pacs", inputs).loss
    with pytest.raises(DataError, match="reward"):
        evaluate("pacs", {k: v for k, v in inputs.items() if k != "rewards"} | {"advantages": np.zeros(12)})


def test_columns_that_a_chain_would_make_are_given_beside_advantages() -> None:
    with_chain = replace(NAMED["rloo"], credit=(*NAMED["rloo"].credit, Returns()))
    inputs = random_inputs(NAMED["rloo"], 1)
    given = {k: v for k, v in inputs.items() if k not in ("rewards", "group_id")} | {"advantages": np.ones(12)}
    table = PaddedInputs.of({**given, "returns": np.full((12, 6), 0.5)}, with_chain, NAMED["rloo"].plan())
    assert table.columns["returns"].sum() == 0.5 * (inputs["mask"] & inputs["valid"][:, None]).sum()
    with pytest.raises(DataError, match="'returns' is not used"):
        PaddedInputs.of({**inputs, "returns": np.ones((12, 6))}, with_chain, NAMED["rloo"].plan())


@dataclass(frozen=True, slots=True)
class Returns(CreditTerm):
    """Makes the column ``returns``."""

    @property
    def makes(self) -> tuple[str, ...]:
        return ("returns",)

    def apply(self, credit: Credit, stats: Any, state: Any) -> Credit:
        return replace(credit, columns={"returns": credit.per_token()})


def critic_on(column: str) -> TdLoss:
    return TdLoss(target=ColumnTarget(column=column))


def test_live_columns_have_gradients_of_their_own() -> None:
    inputs = random_inputs(grpo(kl=0.0) + Entropy(coef=0.5), 2)
    used = inputs["mask"] & inputs["valid"][:, None]
    found = evaluate(grpo(kl=0.0) + Entropy(coef=0.5), inputs)
    assert sorted(found.gradient) == ["entropy", "logp_new"]
    per_row = np.divide(-0.5, used.sum(1) * used.any(1).sum(), where=used.any(1), out=np.zeros(12))
    np.testing.assert_allclose(found.gradient["entropy"], used * per_row[:, None], atol=1e-15)


def test_metrics_of_credit_and_losses() -> None:
    inputs = random_inputs(grpo(), 1)
    objective = replace(grpo(), terms=(AdaptiveKl("k2", label="tied"),))
    found = evaluate(objective, inputs)
    assert {"credit/lone", "loss/policy", "loss/tied", "coef/tied", "policy/clip_fraction"} <= set(found.metrics)
    rest = {k: inputs[k] for k in ("mask", "logp_new", "logp_old", "logp_ref")}
    assert evaluate(nll() + AdaptiveKl("k2", label="tied"), rest).metrics["coef/tied"] > 0


def test_components_and_weights() -> None:
    objective = replace(rloo(), scalarise=Scalarise(weights=(("right", 1.0), ("format", 0.5))))
    inputs = {
        "mask": np.ones((2, 1)),
        "logp_new": -np.ones((2, 1)),
        "group_id": ["a", "a"],
        "components": {"right": [1, 0], "format": [0, 1]},
    }
    assert evaluate(objective, inputs).advantages[:, 0].tolist() == [0.5, -0.5]
    with pytest.raises(UnknownNameError, match="right"):
        evaluate(objective, {**inputs, "components": {"rihgt": [1, 0], "format": [0, 1]}})
    with pytest.raises(DataError, match=r"format has the shape \[3\]"):
        evaluate(objective, {**inputs, "components": {"right": [1, 0], "format": [0, 1, 1]}})
    with pytest.raises(DataError, match="give a mapping"):
        evaluate(objective, {**inputs, "components": [1, 0]})
    with pytest.raises(DataError, match="one of the first two at most"):
        evaluate(objective, {**inputs, "rewards": [1, 0]})
    with pytest.raises(DataError, match=r"right\[0\] is nan"):
        evaluate(objective, {**inputs, "components": {"right": [np.nan, 0], "format": [0, 1]}})


def test_length_and_truncated_are_the_attempts() -> None:
    objective = dapo(overlong=Overlong(limit=4, cache=2), filter_groups=False)
    inputs = {
        "mask": np.tri(4)[[3, 1]] > 0,
        "logp_new": -np.ones((2, 4)),
        "logp_old": -np.ones((2, 4)),
        "rewards": [1.0, 1.0],
        "group_id": [0, 0],
    }
    assert evaluate(objective, inputs).advantages[:, 0] == pytest.approx([-(0.5**0.5), 0.5**0.5], abs=1e-5)
    assert not evaluate(objective, {**inputs, "length": [2, 2]}).advantages.any()
    cut = replace(NAMED["rloo"], credit=(DropTruncated(), *NAMED["rloo"].credit))
    flagged = {k: v for k, v in inputs.items() if k != "logp_old"} | {"truncated": [1, 0]}
    assert not evaluate(cut, flagged).gradient["logp_new"][0].any()
    with pytest.raises(DataError, match=r"truncated holds 2"):
        evaluate(cut, {**flagged, "truncated": [2, 0]})


def test_a_replayed_attempt_is_compared_with_its_sampler() -> None:
    inputs = hand(stream=["on_policy", "replay"], logp_engine=OLD - 0.1)
    found = evaluate("dapo", inputs)
    mixed = evaluate("dapo", hand(logp_old=np.stack([OLD[0], OLD[1] - 0.1])))
    assert found.loss == pytest.approx(mixed.loss, abs=1e-15)
    with pytest.raises(DataError, match="'logp_engine', which is missing"):
        evaluate("dapo", hand(stream=["on_policy", "replay"]))
    with pytest.raises(DataError, match="'logp_engine' is not used"):
        evaluate("dapo", hand(logp_engine=OLD))
    assert (
        evaluate(
            Objective(policy=PolicyGradient(ratio=Ratio("none"), trust=None)),
            {
                "mask": MASK,
                "logp_new": OLD,
                "advantages": [1, 1],
                "stream": ["replay", "replay"],
            },
        ).loss
        != 0
    )


def test_rows_of_other_streams_are_left_out() -> None:
    found = evaluate("dapo", hand(stream=["on_policy", "expert"]))
    alone = evaluate("dapo", {k: np.asarray(v)[:1] for k, v in hand().items()})
    assert found.loss == alone.loss and not found.gradient["logp_new"][1].any()
    with pytest.raises(UnknownNameError, match="did you mean 'expert'"):
        evaluate("dapo", hand(stream=["on_policy", "exprt"]))


WRONG: Mapping[str, tuple[dict[str, Any], str]] = {
    "mask of one axis": ({"mask": [1, 1]}, r"mask has the shape \[2\]"),
    "soft mask": ({"mask": MASK * 0.5}, "mask holds 0.5"),
    "mask with NaN": ({"mask": np.where(MASK, 1, np.nan)}, "mask holds nan"),
    "short rewards": ({"rewards": [1.0]}, r"rewards? has the shape \[1\], there are 2"),
    "rewards of two axes": ({"rewards": [[1.0, 0.0]]}, "has the shape"),
    "NaN reward": ({"rewards": [np.nan, 0.0]}, r"reward\[0\] is nan"),
    "infinite reward": ({"rewards": [0.0, np.inf]}, r"reward\[1\] is inf"),
    "short groups": ({"group_id": [0]}, r"group_id has the shape \[1\]"),
    "NaN group": ({"group_id": [0.0, np.nan]}, r"group_id\[1\] is not finite"),
    "validity of another kind": ({"valid": [2, 1]}, "valid holds 2"),
    "short streams": ({"stream": ["on_policy"]}, "stream has the shape"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named(case: str) -> None:
    inputs = {"mask": MASK, "logp_new": OLD, "logp_old": OLD, "rewards": [1.0, 0.0], "group_id": [0, 0]}
    change, said = WRONG[case]
    with pytest.raises(DataError, match=said):
        evaluate("dapo", {**inputs, **change})


def test_what_cannot_be_evaluated() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'grpo'"):
        evaluate("gropo", hand())
    with pytest.raises(UnknownNameError, match="did you mean 'clip'"):
        evaluate("grpo", hand(), clpi=0.1)
    with pytest.raises(ConfigError, match="dataclasses"):
        evaluate(grpo(), hand(), clip=0.1)
    with pytest.raises(PlanError):
        evaluate(Objective(), hand())
    with pytest.raises(DataError, match="'mask'"):
        evaluate("grpo", {"logp_new": OLD})


def test_empty_batches() -> None:
    for shape in ((0, 3), (2, 0)):
        inputs = {"mask": np.ones(shape), "logp_new": np.ones(shape), "rewards": np.ones(shape[0])}
        found = evaluate("reinforce", inputs)
        assert found.loss == 0 and found.gradient["logp_new"].shape == shape


def test_columns_with_more_axes_keep_their_shape() -> None:
    """A categorical critic has several numbers per token."""
    objective = NAMED["ppo_hl_gauss"]
    inputs = random_inputs(objective, 1)
    outputs = inputs["values"].shape[2]
    table = PaddedInputs.of(inputs, objective, objective.plan())
    assert outputs > 1 and table.pad_values(table.flat("values")).shape == (12, 6, outputs)
    used = inputs["mask"] & inputs["valid"][:, None]
    np.testing.assert_array_equal(table.pad_values(table.flat("values"))[used], inputs["values"][used])
    for shape in ((12, 6), (12, 6, 1), (12, 6, outputs + 1), (12, 6, outputs, 1)):
        with pytest.raises(DataError, match=rf"values has the shape .*; give \[rollouts, tokens, {outputs}\]"):
            evaluate(objective, {**inputs, "values": np.zeros(shape)})
    with pytest.raises(DataError, match="values"):
        evaluate(objective, {**inputs, "values": inputs["values"] * np.nan})


def test_groups_may_be_named_by_anything() -> None:
    inputs = random_inputs(NAMED["grpo"], 2)
    words = np.array(["x", "b", "q"])[inputs["group_id"]]
    assert evaluate("grpo", {**inputs, "group_id": words}).loss == evaluate("grpo", inputs).loss


def test_scores_have_implicit_advantages() -> None:
    found = evaluate(pacs(), random_inputs(pacs(), 0))
    assert found.advantages.any()
    assert isinstance(pacs().policy, ScoreLoss)
    assert not evaluate(nll(), {"mask": MASK, "logp_new": OLD}).advantages.any()
    assert evaluate(replace(nll(), aggregate=Token()), {"mask": MASK, "logp_new": OLD}).loss == pytest.approx(
        -OLD[MASK > 0].mean()
    )
