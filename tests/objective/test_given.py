"""What users pass to `evaluate` and `torch_loss`: whole shapes, kinds of numbers, graphs; and rows in any order."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from padded_inputs import random_inputs

from assay.core.errors import DataError
from assay.objective import Objective, evaluate, kd_topk, torch_loss
from assay.objective.methods import methods
from assay.objective.padded_batch import required_inputs
from assay.objective.user_arrays import place_by_content, read_array

NAMED = {name: m.objective() for name, m in methods().items()}

Change = Callable[[np.ndarray], Any]


def ragged(values: np.ndarray) -> Any:
    return [row.tolist()[: 1 + i % 2] for i, row in enumerate(np.nan_to_num(values))]


STRANGE: dict[str, Change] = {
    "one axis more": lambda v: v[..., None],
    "two axes more": lambda v: v[..., None, None],
    "turned": lambda v: np.swapaxes(v, 0, 1),
    "a row less": lambda v: v[:-1],
    "a number": lambda v: 1.0,
    "text": lambda v: np.full(v.shape, "-1.0"),
    "words": lambda v: np.full(v.shape, "x", object),
    "None": lambda v: None,
    "None in it": lambda v: np.where(np.arange(v.size).reshape(v.shape) == 1, None, np.nan_to_num(v)),
    "complex": lambda v: np.nan_to_num(v) + 0j,
    "dates": lambda v: np.zeros(v.shape, "datetime64[s]"),
    "masked": lambda v: np.ma.masked_invalid(v),
    "ragged": ragged,
    "a graph": lambda v: torch.tensor(np.nan_to_num(v), requires_grad=True),
}


def columns_of(objective: Objective) -> list[str]:
    want = required_inputs(objective)
    return [*want.live, *want.columns]


@pytest.mark.parametrize("name", NAMED)
def test_every_column_is_read_strictly(name: str) -> None:
    """Nothing broadcasts, nothing is converted that was no number, no graph is dropped: the column is named instead."""
    objective = NAMED[name]
    inputs = random_inputs(objective, 2)
    lists = {n for stat in objective.plan().vocab for n in stat.lists}
    for column in columns_of(objective):
        for case, change in STRANGE.items():
            if (column in lists and case == "one axis more") or (inputs[column].ndim == 3 and case == "ragged"):
                continue
            with pytest.raises(DataError, match=column):
                evaluate(objective, {**inputs, column: change(inputs[column])})
                pytest.fail(f"{name}: {column} taken with {case}")


@pytest.mark.parametrize("name", NAMED)
def test_every_input_of_attempts_is_read_strictly(name: str) -> None:
    objective = NAMED[name]
    inputs = random_inputs(objective, 2)
    for column in ("rewards", "group_id", "valid", *required_inputs(objective).rollout_columns):
        for case, change in STRANGE.items() if column in inputs else ():
            if case in ("turned", "ragged", "masked") or (column == "group_id" and case in ("text", "words")):
                continue
            given = np.asarray(inputs[column], np.float64)
            with pytest.raises(DataError, match="reward|" + column):
                evaluate(objective, {**inputs, column: change(given)})
                pytest.fail(f"{name}: {column} taken with {case}")


@pytest.mark.parametrize("case", ["one axis more", "text", "None", "complex", "words", "masked", "a graph"])
def test_the_mask_is_read_strictly(case: str) -> None:
    inputs = random_inputs(NAMED["grpo"], 2)
    with pytest.raises(DataError, match="mask"):
        evaluate("grpo", {**inputs, "mask": STRANGE[case](inputs["mask"].astype(float))})


@pytest.mark.parametrize("name", ["grpo", "dpo", "ppo", "pacs", "nll", "ppo_hl_gauss", "tis"])
def test_tensors_are_read_strictly(name: str) -> None:
    """`torch_loss` has the same gate: a live input of another shape, and a graph where none is read."""
    objective = NAMED[name]
    inputs, want = random_inputs(objective, 2), required_inputs(objective)

    def given(**change: Any) -> dict[str, Any]:
        made = {k: torch.tensor(np.nan_to_num(v), requires_grad=k in want.live) for k, v in inputs.items()}
        return made | change

    loss, _ = torch_loss(objective)(given())
    assert torch.isfinite(loss)
    for column in columns_of(objective):
        plain = given()[column]
        with pytest.raises(DataError, match=f"{column} has the shape"):
            torch_loss(objective)(given(**{column: plain[..., None]}))
        if column not in want.live:
            with pytest.raises(DataError, match=rf"{column} requires a gradient.*{column}.detach\(\)"):
                torch_loss(objective)(given(**{column: plain.requires_grad_()}))
    rest = {k: v.detach() for k, v in given().items() if k not in want.live}
    rest |= {k: given()["logp_new" if k == "logp_now" else k.rpartition("_")[0]].detach() for k in want.derived}
    prepared = torch_loss(objective).prepare(rest)
    live = {k: given()[k] for k in want.live}
    assert prepared(live)[0].item() == pytest.approx(loss.item())
    for column in want.live:
        with pytest.raises(DataError, match=f"{column} has the shape"):
            prepared({**live, column: live[column][..., None]})


def test_tensors_without_a_graph_are_as_good_as_arrays() -> None:
    inputs = random_inputs(NAMED["grpo"], 2)
    half = {k: torch.tensor(v) for k, v in inputs.items()}
    assert evaluate("grpo", half).loss == evaluate("grpo", inputs).loss
    short = torch.tensor(np.nan_to_num(inputs["logp_old"])).to(torch.bfloat16)
    assert np.isfinite(evaluate("grpo", {**inputs, "logp_old": short}).loss)


def test_what_is_named() -> None:
    with pytest.raises(DataError, match=r"x holds complex numbers; give booleans, integers or floats"):
        read_array("x", [1j])
    with pytest.raises(DataError, match=r"x is no rectangular array"):
        read_array("x", [[1.0], [1.0, 2.0]])
    with pytest.raises(DataError, match="x holds 'a', a str, which is no number"):
        read_array("x", ["a", "b"])
    with pytest.raises(DataError, match=r"x is "):
        read_array("x", None)
    with pytest.raises(DataError, match=r"x is empty, of dtype <U1"):
        read_array("x", np.zeros(0, "<U1"))
    with pytest.raises(DataError, match="group_id holds None"):
        evaluate("grpo", {**random_inputs(NAMED["grpo"], 2), "group_id": np.array([None] * 12)})
    words = np.array(["a", "b", "c"], object)[random_inputs(NAMED["grpo"], 2)["group_id"]]
    inputs = random_inputs(NAMED["grpo"], 2)
    assert evaluate("grpo", {**inputs, "group_id": words}).loss == evaluate("grpo", inputs).loss


def test_a_teachers_few_tokens_are_a_list_of_one_length() -> None:
    objective = kd_topk()
    inputs = random_inputs(objective, 1) | {"mask": np.ones((12, 6), bool), "valid": np.ones(12, bool)}
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(12, 6, 5))
    given = {"mask": inputs["mask"], "logits": logits, "ids": inputs["mask"] * 1, "teacher_ids": rng.integers(0, 5, (12, 6, 2))}
    assert np.isfinite(evaluate(objective, {**given, "teacher_logps": -np.ones((12, 6, 2))}).loss)
    with pytest.raises(DataError, match=r"teacher_ids \[12, 6, 2\], teacher_logps \[12, 6, 1\] differ"):
        evaluate(objective, {**given, "teacher_logps": -np.ones((12, 6, 1))})
    with pytest.raises(DataError, match=r"teacher_logps has the shape \[12, 6, 2, 1\]; give \[rollouts, tokens, k\]"):
        evaluate(objective, {**given, "teacher_logps": -np.ones((12, 6, 2, 1))})


# ---- rows in any order ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tied", [False, True], ids=["any", "tied"])
@pytest.mark.parametrize("name", NAMED)
def test_permuted_rows_have_permuted_results(name: str, tied: bool) -> None:
    """Lots and ties go by what a rollout says, not by where it stands (aot, oreal, pf_grpo, lp_reg, top_entropy)."""
    for seed in range(3):
        inputs = random_inputs(NAMED[name], seed, 2, 6)
        if tied:  # equal entropies, log-probabilities and rewards, so that every rank has to be shared out
            for column in columns_of(NAMED[name]):
                if column != "logp_new":
                    inputs[column] = np.where(np.isnan(inputs[column]), np.nan, np.round(inputs[column]) - 0.25)
        order = np.random.default_rng(seed).permutation(len(inputs["mask"]))
        found = evaluate(NAMED[name], inputs)
        turned = evaluate(NAMED[name], {k: np.asarray(v)[order] for k, v in inputs.items()})
        assert turned.loss == pytest.approx(found.loss, rel=1e-9, abs=1e-12)
        np.testing.assert_allclose(turned.advantages, found.advantages[order], rtol=1e-9, atol=1e-12)
        for column, gradient in found.gradient.items():
            np.testing.assert_allclose(turned.gradient[column], gradient[order], rtol=1e-9, atol=1e-12)


def test_places_by_content() -> None:
    group = np.array([0, 1, 0, 0, 1])
    used = np.array([[1], [1], [1], [0], [1]], bool)
    numbers = np.array([3.0, 5.0, -1.0, -9.0, 5.0])
    assert place_by_content(group, used, [numbers]).tolist() == [1, 0, 0, 2, 1]
    last = np.array([[0.0, 0.0], [0.0, -1.0], [0.0, 0.0], [0.0, 0.0], [0.0, -2.0]])
    assert place_by_content(group, used, [numbers, last]).tolist() == [1, 1, 0, 2, 0]
    assert place_by_content(np.zeros(0, np.int64), np.zeros((0, 2), bool), []).tolist() == []
    with_nan = np.array([np.nan, 0.0, -0.0, 0.0, 1.0])
    assert place_by_content(group, used, [with_nan]).tolist() == [0, 0, 1, 2, 1]
