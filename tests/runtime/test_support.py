"""A learner scores each token within the ids that it was drawn from: by hand, against a plain softmax, and beside the engines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from engine_reference import pair, request, run
from test_compiled import model_of, some
from torch import Tensor

from assay.core import Forward, FrozenMap, Task
from assay.core.batch import Batch, pack, pack_rows
from assay.core.columns import TokenColumn
from assay.core.errors import ConfigError
from assay.core.ragged import SUPPORT, flat_of, ragged_array
from assay.core.rollout import Call, Completion, Rollout, Sampling, ids_of
from assay.core.sample import Sample
from assay.core.vocab import FullEntropy, VocabStat
from assay.core.wire import group_from_wire, group_to_wire
from assay.runtime.engine.draw import Draws, draw
from assay.runtime.engine.hub_engine import TransformersEngine
from assay.runtime.engine.native import NativeEngine
from assay.runtime.learner.learner import TorchLearner
from assay.runtime.learner.lm_head import LmHead, StatisticInputs, head_columns, head_statistics
from assay.runtime.learner.packing import pack_offsets
from assay.runtime.learner.privileged import behind_privilege
from assay.runtime.learner.support import Support
from assay.runtime.settings import LearnerSettings
from assay.runtime.vllm.wire import request_body
from assay.testing import graded_group

FIVE = np.log([0.5, 0.25, 0.125, 0.0625, 0.0625])
WAYS = [{"top_k": 2}, {"top_p": 0.6}, {"min_p": 0.2}, {"top_k": 3, "top_p": 0.6, "min_p": 0.1, "temperature": 0.7}]


def how(rows: int, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0) -> Draws:
    uniform = np.linspace(0.01, 0.99, rows)
    given = (np.full(rows, value, kind) for value, kind in ((temperature, np.float32), (top_k, np.int64), (top_p, np.float64)))
    return Draws(*given, uniform, np.full(rows, min_p), np.ones(rows, np.bool_))


# ---- by hand ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("way", "ids", "odds"),
    [
        ({"top_k": 2}, [0, 1], [2 / 3, 1 / 3]),
        ({"top_p": 0.6}, [0, 1], [2 / 3, 1 / 3]),  # 0.5 alone does not reach 0.6
        ({"min_p": 0.25}, [0, 1, 2], [4 / 7, 2 / 7, 1 / 7]),  # 0.125 is a quarter of 0.5
        ({"top_k": 1}, [0], [1.0]),
    ],
)
def test_five_tokens_by_hand(way: dict[str, Any], ids: list[int], odds: list[float]) -> None:
    """What is drawn, from what, and what the learner makes of it, in float64."""
    drawn = draw(torch.tensor(np.tile(FIVE, (40, 1))), how(40, **way))
    assert all(drawn.support[row].tolist() == ids for row in range(40))
    assert set(drawn.ids.tolist()) == set(ids)
    np.testing.assert_allclose(drawn.logp, np.log(np.array(odds)[drawn.ids]), atol=1e-15)
    hidden = torch.ones(40, 1, dtype=torch.float64)
    weight = torch.tensor(FIVE)[:, None].requires_grad_()
    support = Support.of(ragged_array([drawn.support[row] for row in range(40)]), 40)
    logp, entropy = head_columns(hidden, replace(LmHead(weight), support=support), torch.tensor(drawn.ids), True)
    np.testing.assert_allclose(logp.detach().numpy(), drawn.logp, atol=1e-12)
    np.testing.assert_allclose(entropy.detach().numpy(), drawn.entropy, atol=1e-12)
    logp[0].backward()
    gradient, first = np.zeros(5), int(drawn.ids[0])
    gradient[ids] = -np.array(odds)
    gradient[first] += 1.0
    np.testing.assert_allclose(weight.grad[:, 0].numpy(), gradient, atol=1e-12)  # and 0 outside, exactly
    assert not weight.grad[[i for i in range(5) if i not in ids]].any()


def test_rows_that_keep_nothing_are_told_nothing() -> None:
    some_kept = replace(how(3, top_k=2), kept=np.array([False, True, False]))
    drawn = draw(torch.tensor(np.tile(FIVE, (3, 1))), some_kept)
    assert {row: ids.tolist() for row, ids in drawn.support.items()} == {1: [0, 1]}
    assert not draw(torch.tensor(FIVE[None]), replace(how(1, top_k=2), kept=None)).support


# ---- readout ----------------------------------------------------------------------------------------------------------

POSITIONS, WIDTH, VOCABULARY = 40, 8, 37


def inputs(bias: bool) -> tuple[Tensor, Tensor, Tensor | None, Tensor, Tensor, Tensor]:
    """States, weight, bias, temperatures, targets, and ``[M, V]`` which ids are in the supports; those of some rows are whole."""
    rng = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=rng, dtype=torch.float64).requires_grad_()

    warmth = torch.rand(POSITIONS, generator=rng, dtype=torch.float64) + 0.3
    targets = torch.randint(0, VOCABULARY, (POSITIONS,), generator=rng)
    inside = torch.rand(POSITIONS, VOCABULARY, generator=rng) < 0.3
    inside[torch.arange(POSITIONS), targets] = True
    inside[::7] = True
    return normal(POSITIONS, WIDTH), normal(VOCABULARY, WIDTH), normal(VOCABULARY) if bias else None, warmth, targets, inside


def support_of(inside: Tensor) -> Support:
    """Rows that hold all ids are given none, which means all."""
    lists = ragged_array([ids_of(np.flatnonzero(row)) for row in inside.numpy()])
    lists[inside.all(1).numpy()] = 0
    return Support.of(lists, len(lists))


def by_softmax(hidden: Tensor, head: LmHead, warmth: Tensor, inside: Tensor) -> Tensor:
    z = hidden @ head.weight.T
    z = (z if head.bias is None else z + head.bias) * head.scale
    z = head.cap * torch.tanh(z / head.cap) if head.cap else z
    return torch.log_softmax((z / warmth[:, None]).masked_fill(~inside, float("-inf")), 1)


class CrossEntropy(VocabStat):
    """Of another model's distribution against the policy's."""

    models = ("other",)

    @property
    def kind(self) -> str:
        return "cross_entropy"

    def of(self, logp: Tensor, ids: Tensor, others: dict[str, Tensor], columns: dict[str, Tensor]) -> Tensor:
        return -(others["other"].exp() * logp).sum(1)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("scale", "cap"), [(1.0, 0.0), (0.5, 0.0), (1.0, 3.0), (0.5, 3.0)])
@pytest.mark.parametrize("warm", [False, True])
def test_values_and_gradients_are_those_of_a_softmax_within(
    bias: bool, scale: float, cap: float, warm: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.runtime.learner.lm_head.head_rows", lambda *_: 7)  # several chunks
    hidden, weight, shift, warmth, targets, inside = inputs(bias)
    warmth = warmth if warm else torch.ones_like(warmth)
    leaves = [x for x in (hidden, weight, shift) if x is not None]
    head = LmHead(weight, shift, scale, cap)
    table = by_softmax(hidden, head, warmth, inside)
    logp, entropy = table.gather(1, targets[:, None])[:, 0], -(table.exp() * table.masked_fill(~inside, 0.0)).sum(1)
    wanted = torch.autograd.grad((logp * warmth).sum() + entropy.square().sum(), leaves)
    made = replace(head.at_temperature(warmth if warm else None), support=support_of(inside))
    for found in (
        head_columns(hidden, made, targets, True),
        head_statistics(hidden, made, targets, (FullEntropy(),), StatisticInputs()),
    ):
        torch.testing.assert_close(found[0], logp)
        torch.testing.assert_close(found[1], entropy)
        grads = torch.autograd.grad((found[0] * warmth).sum() + found[1].square().sum(), leaves)
        for mine, theirs in zip(grads, wanted, strict=True):
            torch.testing.assert_close(mine, theirs)


def test_other_models_are_read_within_the_same_ids() -> None:
    hidden, weight, _, _, targets, inside = inputs(False)
    others, support = hidden.detach().flip(0), support_of(inside)
    ones = torch.ones(POSITIONS, dtype=torch.float64)
    own, theirs = (by_softmax(x, LmHead(weight), ones, inside).masked_fill(~inside, 0.0) for x in (hidden, others))
    beside = StatisticInputs({"other": (others, replace(LmHead(weight.detach()), support=support))})
    found = head_statistics(hidden, replace(LmHead(weight), support=support), targets, (CrossEntropy(),), beside)
    torch.testing.assert_close(found[1], -(theirs.detach().exp() * inside * own).sum(1))


def test_supports_follow_the_tokens_that_are_read() -> None:
    lists = ragged_array([ids_of(range(n)) for n in (2, 3, 1)])
    lists[1] = 0
    support = Support.of(lists, 5)  # two tokens of padding
    assert support.ends.tolist() == [0, 2, 2, 3, 3, 3]
    packing = replace(pack_offsets(np.array([0, 5])), support=support).to(torch.device("cpu"))
    taken = packing.support_at(torch.tensor([2, 0, 1]))
    assert taken is not None
    assert (taken.ends.tolist(), taken.ids.tolist()) == ([0, 1, 3, 3], [0, 0, 1])
    logits = taken.mask(torch.zeros(2, 4), slice(1, 3))
    assert (logits > -1.0).tolist() == [[True, True, False, False], [True] * 4]
    assert pack_offsets(np.array([0, 5])).support_at(torch.tensor([0])) is None


# ---- engines and learner ----------------------------------------------------------------------------------------------


def row_of(asked: Any, done: Completion) -> Sample:
    """What was sampled, as a training row."""
    call = Call(id=0, parent=None, prefix=asked.prompt, completion=done, text="")
    rollout = Rollout(id=asked.id, context=None, calls=(call,), stop=done.stop, seed=0)  # type: ignore[arg-type]
    from assay.core.sample import samples

    return samples(rollout)[0]


def scored(learner: TorchLearner, batch: Batch) -> np.ndarray:
    return learner.annotate(batch, Forward("logp_old")).token("logp_old")[batch.token("mask")]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kernel", [True, False])
def test_engine_and_learner_are_one_distribution(way: dict[str, Any], kernel: bool) -> None:
    model = model_of(hidden_size=32, num_layers=2)
    asked = some(model, 24, **way, keep_support=True)
    done = run(NativeEngine(model, kernel=kernel), asked)
    batch = pack_rows([(i, row_of(r, c)) for i, (r, c) in enumerate(zip(asked, done, strict=True))], {"group": np.arange(24)})
    lengths, _ = flat_of(batch.token(SUPPORT))
    mask = batch.token("mask")
    assert (lengths[mask] >= 1).all() and (lengths[~mask] == -1).all()
    assert lengths[mask].mean() < model.shape.vocab_size
    assert all(int(i) in ids for i, ids in zip(batch.token("ids")[mask], batch.token(SUPPORT)[mask], strict=True))
    learner = TorchLearner(model, LearnerSettings(), total_steps=1)
    assert np.abs(scored(learner, batch) - batch.token("logp_engine")[mask]).max() < 1e-5
    whole = replace(batch, tokens={n: c for n, c in batch.tokens.items() if n != SUPPORT})
    assert np.abs(scored(learner, whole) - batch.token("logp_engine")[mask]).max() > 0.05  # the control


@pytest.mark.parametrize("way", WAYS)
def test_compiled_and_pytorch_engines_keep_the_same_ids(way: dict[str, Any]) -> None:
    model = model_of(hidden_size=32, num_layers=2)
    asked = some(model, 24, **way, keep_support=True)
    one, other = (run(NativeEngine(model, kernel=kernel), asked) for kernel in (True, False))
    for a, b in zip(one, other, strict=True):
        assert a.ids.tolist() == b.ids.tolist()
        assert [x.tolist() for x in a.columns[SUPPORT].values] == [x.tolist() for x in b.columns[SUPPORT].values]


def test_only_requests_that_ask_for_them_carry_supports() -> None:
    model = model_of(hidden_size=32)
    asked = [request(i, [5, 6], max_new_tokens=3 + 9 * (i % 2), top_k=3, keep_support=i % 3 == 0) for i in range(9)]
    plain = run(NativeEngine(model), [replace(r, sampling=replace(r.sampling, keep_support=False)) for r in asked])
    for kernel in (True, False):
        engine = NativeEngine(model, kernel=kernel, max_batch=4)
        for r, c, p in zip(asked, run(engine, asked), plain, strict=True):
            assert (SUPPORT in c.columns) == r.sampling.keep_support
            assert c.ids.tolist() == p.ids.tolist()
            if SUPPORT in c.columns:
                assert [len(ids) for ids in c.columns[SUPPORT].values] == [3] * len(c.ids)


@pytest.mark.parametrize("kernel", [True, False])
def test_an_answer_that_ends_at_a_text_has_as_many_supports_as_tokens(kernel: bool) -> None:
    model = model_of(hidden_size=32, scale=1.0)
    asked = [request(i, [5, 6], seed=i, max_new_tokens=40, top_k=20, keep_support=True, stop=("a", "7")) for i in range(12)]
    done = run(NativeEngine(model, kernel=kernel), asked)
    assert any(len(c.ids) < 40 for c in done)
    for c in done:
        assert len(c.columns[SUPPORT].values) == len(c.ids)
        assert all(int(i) in ids for i, ids in zip(c.ids, c.columns[SUPPORT].values, strict=True))


def test_an_engine_of_transformers_tells_them_too(tmp_path: Path) -> None:
    hub, model = pair(tmp_path / "m", "qwen3", kv_heads=2)
    asked = [request(i, [2 + i, 5], max_new_tokens=6, keep_support=True, **WAYS[i % 4]) for i in range(8)]
    one, other = run(TransformersEngine(hub, 64), asked), run(NativeEngine(model), asked)
    for a, b in zip(one, other, strict=True):
        assert [x.tolist() for x in a.columns[SUPPORT].values] == [x.tolist() for x in b.columns[SUPPORT].values]


def test_a_server_that_cannot_tell_refuses() -> None:
    asked = request(1, [5], top_k=2, keep_support=True)
    with pytest.raises(ConfigError, match=r"wants the ids that each token is drawn from .*which a vLLM server does not tell"):
        request_body(asked, "w", "m", "s")


# ---- rows -------------------------------------------------------------------------------------------------------------


def of_one_call(change: Callable[[Completion], Completion]) -> Any:
    task = Task(id="t", domain="d", arm="a", level=1, split="train", index=0, public=FrozenMap({"prompt": "?"}))
    group = graded_group(task, [1.0, 0.0])
    first, second = group.rollouts
    call = replace(first.calls[0], completion=change(first.calls[0].completion))
    return replace(group, rollouts=(replace(first, calls=(call,)), second))


def kept(completion: Completion) -> Completion:
    lists = ragged_array([ids_of([int(i), int(i) + n + 1]) for n, i in enumerate(completion.ids)])
    return replace(
        completion,
        sampling=Sampling(top_k=2, keep_support=True),
        columns={SUPPORT: TokenColumn(SUPPORT, lists, "engine")},
    )


def test_supports_travel_and_stand_beside_rows_without() -> None:
    group = of_one_call(kept)
    back = group_from_wire(group_to_wire(group))
    for one in (group, back):
        batch = pack([one])
        lengths, ids = flat_of(batch.token(SUPPORT))
        first = batch.row_of_token == 0
        assert (lengths[batch.token("mask") & first] == 2).all() and (lengths[~first] == -1).all()
        assert len(ids) == 2 * int((batch.token("mask") & first).sum())
        part = batch.micro([1, 0])
        assert (flat_of(part.token(SUPPORT))[0][part.row_of_token == 1] == lengths[first]).all()
    assert back.rollouts[0].calls[0].completion.sampling == Sampling(top_k=2, keep_support=True)


def test_a_privileged_prompt_moves_them_along() -> None:
    batch = pack([of_one_call(kept)])
    rows = {**batch.rows, "prompt": np.array([1, 1]), "privileged": np.array([[3, 4, 5], [3, -1, -1]], np.int32)}
    moved = behind_privilege(replace(batch, rows=rows), "teacher")
    before, after = (flat_of(b.token(SUPPORT))[1].tolist() for b in (batch, moved))
    assert before == after and len(moved.token(SUPPORT)) == len(batch.token(SUPPORT)) + 2


def test_asyncio_is_left_alone() -> None:
    """Requests of one loop that ends do not leave counts of supports behind."""
    model = model_of(hidden_size=32)
    engine = NativeEngine(model)

    async def cut() -> None:
        task = asyncio.ensure_future(engine.generate(request(1, [5], max_new_tokens=60, top_k=2, keep_support=True)))
        for _ in range(8):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(cut())
    assert engine._table.keeps_support() is None
