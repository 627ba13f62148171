"""`torch_loss`: the same numbers as `evaluate`, on the caller's graph, whole or in parts."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from padded_inputs import random_inputs

from assay.core.batch import Counts
from assay.core.errors import CheckpointError, ConfigError, DataError, UnknownNameError
from assay.objective import AdaptiveKl, Center, Entropy, Objective, Scalarise, evaluate, grpo, nll
from assay.objective.methods import methods
from assay.objective.padded_batch import required_inputs
from assay.objective.padded_loss import TorchLoss, torch_loss

NAMED = {name: m.objective() for name, m in methods().items()}
PLAIN = {name: o for name, o in NAMED.items() if not o.brings}


def tensors(inputs: dict[str, Any], live: tuple[str, ...], dtype: torch.dtype = torch.float64) -> dict[str, Any]:
    """The inputs as a trainer has them; live ones are leaves."""
    made: dict[str, Any] = {}
    for name, value in inputs.items():
        values = torch.as_tensor(np.asarray(value))
        made[name] = values.to(dtype).requires_grad_(name in live) if values.is_floating_point() else values
    return made


def leaves(given: dict[str, Any], live: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Gradients, 0 where nothing reached a leaf."""
    found = {name: given[name].grad for name in live}
    return {name: np.zeros(given[name].shape) if g is None else g.double().numpy() for name, g in found.items()}


@pytest.mark.parametrize("name", PLAIN)
def test_equal_to_evaluate(name: str) -> None:
    inputs, live = random_inputs(PLAIN[name], 1), required_inputs(PLAIN[name]).live
    expected = evaluate(PLAIN[name], inputs)
    given = tensors(inputs, live)
    loss, metrics = torch_loss(name, **methods()[name].example)(given)
    (2 * loss).backward()
    assert loss.item() == pytest.approx(expected.loss, abs=1e-14)
    assert metrics == pytest.approx(dict(expected.metrics), nan_ok=False)
    for column, gradient in leaves(given, live).items():
        np.testing.assert_allclose(gradient, 2 * expected.gradient[column], atol=1e-14)


@pytest.mark.parametrize("name", PLAIN)
def test_the_shares_of_a_prepared_batch_add_up(name: str) -> None:
    """Any cut into micro-batches, narrower ones included, gives the whole batch's gradient: no mean of means."""
    inputs, live = random_inputs(PLAIN[name], 2), required_inputs(PLAIN[name]).live
    expected = evaluate(PLAIN[name], inputs)
    given = tensors(inputs, live)
    rest = {k: v for k, v in given.items() if k not in live}
    rest |= {k: given["logp_new" if k == "logp_now" else k.rpartition("_")[0]] for k in required_inputs(PLAIN[name]).derived}
    prepared = torch_loss(PLAIN[name]).prepare(rest)
    total, seen = 0.0, dict[str, float]()
    for rows in ([7, 3, 0], [], [1, 2, 4, 5, 6], [11, 10, 9, 8]):
        loss, metrics = prepared({column: given[column][rows] for column in live}, rows)
        loss.backward()
        total += loss.item()
        for key, value in metrics.items():
            seen[key] = seen.get(key, 0.0) + value
    assert total == pytest.approx(expected.loss, abs=1e-13, rel=1e-12)
    for column, gradient in leaves(given, live).items():
        np.testing.assert_allclose(gradient, expected.gradient[column], atol=1e-12, rtol=1e-9)
    assert seen == pytest.approx({k: expected.metrics[k] for k in seen}, abs=1e-12, rel=1e-9)
    assert seen.keys() | prepared.metrics.keys() == expected.metrics.keys()


@pytest.mark.parametrize("name", ["grpo", "dapo", "cispo", "gspo", "rloo", "dr_grpo", "tis", "nll", "reinforce_pp_baseline"])
def test_parts_with_advantages_and_counts_add_up(name: str) -> None:
    inputs, want = random_inputs(NAMED[name], 2), required_inputs(NAMED[name])
    whole = evaluate(NAMED[name], inputs)
    used = inputs["mask"] & inputs["valid"][:, None]
    if want.uses_reward:
        inputs = {k: v for k, v in inputs.items() if k not in ("rewards", "group_id")} | {"advantages": whole.advantages}
    alive = used.any(1)
    counts = Counts(int(used.sum()), int(alive.sum()), int(alive.sum()), 3)
    given, total, loss_of = tensors(inputs, want.live), 0.0, torch_loss(NAMED[name])
    for rows in ([0, 1, 2], [3], [4, 5, 6, 7, 8], [9, 10, 11]):
        part = {k: v[rows] for k, v in given.items()}
        loss, _ = loss_of(part, counts=counts)
        loss.backward()
        total += loss.item()
    assert total == pytest.approx(whole.loss, abs=1e-13)
    for column, gradient in leaves(given, want.live).items():
        np.testing.assert_allclose(gradient, whole.gradient[column], atol=1e-13)


@pytest.mark.parametrize(
    ("objective", "said"),
    [
        (NAMED["grpo"], "give 'advantages'"),
        (NAMED["pacs"], "score must see the whole"),
        (NAMED["scale_rl"], "Prompt must see the whole"),
    ],
    ids=["rewards", "scores", "prompts"],
)
def test_counts_need_a_method_that_can_be_cut(objective: Objective, said: str) -> None:
    inputs = random_inputs(objective, 2)
    if said != "give 'advantages'":
        inputs |= {"advantages": np.ones(12)}
    with pytest.raises(ConfigError, match=said):
        torch_loss(objective)(tensors(inputs, ("logp_new",)), counts=Counts(9, 9, 9, 9))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_precisions(dtype: torch.dtype) -> None:
    """Half precision is rounded once, on the way in; ratios and losses are float32."""
    inputs = tensors(random_inputs(NAMED["dapo"], 3), ("logp_new",), dtype)
    loss, _ = torch_loss("dapo")(inputs)
    loss.backward()
    rounded = {k: v.detach().double().numpy() if v.is_floating_point() else v.numpy() for k, v in inputs.items()}
    expected = evaluate("dapo", rounded)
    assert loss.dtype is torch.float32 and inputs["logp_new"].grad.dtype is dtype
    assert loss.item() == pytest.approx(expected.loss, abs=1e-5)
    tolerance = 1e-6 if dtype is torch.float32 else 1e-2
    np.testing.assert_allclose(inputs["logp_new"].grad.double(), expected.gradient["logp_new"], atol=tolerance)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["grpo", "gspo", "pacs", "tis"])
def test_on_a_device(name: str) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    inputs, live = random_inputs(NAMED[name], 3), required_inputs(NAMED[name]).live
    given = {k: v.detach().cuda().requires_grad_(k in live) for k, v in tensors(inputs, ()).items()}
    loss, _ = torch_loss(NAMED[name])(given)
    loss.backward()
    expected = evaluate(NAMED[name], inputs)
    assert loss.device.type == "cuda" and loss.item() == pytest.approx(expected.loss, abs=1e-12)
    np.testing.assert_allclose(given["logp_new"].grad.cpu(), expected.gradient["logp_new"], atol=1e-12)


def test_the_loss_hangs_on_the_callers_graph() -> None:
    inputs = random_inputs(NAMED["rloo"], 0)
    weight = torch.ones((), dtype=torch.float64, requires_grad=True)
    logp = torch.tensor(np.where(inputs["mask"], inputs["logp_new"], 0.0)) * weight
    loss, _ = torch_loss("rloo")({**inputs, "logp_new": logp})
    loss.backward()
    expected = evaluate("rloo", inputs)
    assert weight.grad.item() == pytest.approx(np.nansum(expected.gradient["logp_new"] * inputs["logp_new"]))


def test_nothing_to_learn_from_is_a_zero_with_a_graph() -> None:
    logp = torch.zeros(2, 3, requires_grad=True)
    loss, metrics = torch_loss("rloo")({"mask": torch.zeros(2, 3), "logp_new": logp, "rewards": [1, 0], "group_id": [0, 0]})
    loss.backward()
    assert loss.item() == 0 and not logp.grad.any() and metrics == {}


def test_further_live_columns() -> None:
    objective = grpo(kl=0.0) + Entropy(coef=0.1)
    inputs = random_inputs(objective, 2)
    given = tensors(inputs, ("logp_new", "entropy"))
    torch_loss(objective)(given)[0].backward()
    np.testing.assert_allclose(given["entropy"].grad, evaluate(objective, inputs).gradient["entropy"], atol=1e-15)


def test_components() -> None:
    objective = replace(NAMED["rloo"], scalarise=Scalarise(weights=(("right", 1.0), ("form", 0.5))))
    inputs = random_inputs(NAMED["rloo"], 2)
    parts = {"right": inputs.pop("rewards"), "form": np.arange(12) % 2}
    expected = evaluate(objective, {**inputs, "components": parts})
    given = tensors(inputs, ("logp_new",)) | {"components": {k: torch.tensor(v) for k, v in parts.items()}}
    assert torch_loss(objective)(given)[0].item() == pytest.approx(expected.loss, abs=1e-14)
    with pytest.raises(DataError, match="give a mapping"):
        torch_loss(objective)({**given, "components": parts["right"]})


# ---- running statistics -----------------------------------------------------------------------------------------------


def ema() -> TorchLoss:
    return torch_loss(replace(NAMED["reinforce"], credit=(Center("ema", decay=0.5),)))


def step(loss_of: TorchLoss, reward: float) -> float:
    logp = torch.full((2, 1), -1.0, dtype=torch.float64, requires_grad=True)
    return loss_of({"mask": torch.ones(2, 1), "logp_new": logp, "rewards": [reward, reward]})[0].item()


def test_a_running_baseline_moves_and_is_saved() -> None:
    first, second = ema(), ema()
    assert (step(first, 1.0), step(first, 1.0)) == (1.0, 0.0)
    step(second, 0.0)
    second.load_state_dict(first.state_dict())
    assert step(second, 2.0) == step(first, 2.0) == 1.0
    assert first.state_dict()["credit/0"]["mean"] > 0
    assert torch_loss("grpo").state_dict() == {}
    torch_loss("grpo").load_state_dict({})
    with pytest.raises(CheckpointError):
        torch_loss("grpo").load_state_dict(first.state_dict())


def test_an_adaptive_coefficient_needs_the_rewards() -> None:
    objective = replace(grpo(), terms=(AdaptiveKl("k2"),))
    inputs = random_inputs(objective, 2)
    loss_of = torch_loss(objective)
    before = loss_of.state_dict()
    loss_of(tensors(inputs, ("logp_new",)))
    assert loss_of.state_dict() != before
    with pytest.raises(ConfigError, match="give 'rewards' instead"):
        loss_of(tensors(inputs, ("logp_new",)) | {"advantages": np.ones(12)})


# ---- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"logp_new": np.zeros((12, 6))}, "no floating-point tensor but ndarray"),
        ({"logp_new": torch.zeros(12, 6).long()}, "no floating-point tensor but Tensor"),
        ({"logp_new": torch.zeros(12, 5)}, r"logp_new has the shape \[12, 5\]"),
        ({"logp_new": torch.full((12, 6), torch.nan)}, "must be finite"),
        ({"logp_old": torch.full((12, 6), torch.nan)}, "must be finite"),
        ({"logp_odl": torch.zeros(12, 6)}, "did you mean 'logp_old'"),
    ],
)
def test_wrong_inputs(change: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        torch_loss("dapo")(tensors(random_inputs(NAMED["dapo"], 1), ("logp_new",)) | change)


def test_wrong_shares() -> None:
    inputs = random_inputs(NAMED["pacs"], 1)
    rest = {k: v for k, v in inputs.items() if k != "logp_new"}
    with pytest.raises(DataError, match="'logp_now', which is missing"):
        torch_loss("pacs").prepare(rest)
    prepared = torch_loss("pacs").prepare({**rest, "logp_now": inputs["logp_new"]})
    with pytest.raises(DataError, match="live input 'logp_new' is missing"):
        prepared({})
    with pytest.raises(DataError, match="not finite inside the mask"):
        prepared({"logp_new": torch.full((12, 6), torch.nan)})
    with pytest.raises(DataError, match=r"has the shape \[3, 6\], the mask \[2, 6\]"):
        prepared({"logp_new": torch.zeros(3, 6)}, [0, 1])


def test_unknown_names() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'cispo'"):
        torch_loss("cipso")
    with pytest.raises(UnknownNameError, match="setting of 'cispo'"):
        torch_loss("cispo", cpa=3.0)
    with pytest.raises(ConfigError, match="belong to a named method"):
        torch_loss(nll(), cap=3.0)
