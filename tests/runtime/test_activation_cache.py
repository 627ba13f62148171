"""What sampling leaves on a cache: the same bits as computing it again, and only where rows and weights are the sampler's."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from engine_reference import request, run
from hypothesis import given, settings
from hypothesis import strategies as st
from test_compiled_training import SHAPE, SHAPES, Likelihood, gradients, pair
from test_engine import manifest, running_then_swapped, turns

from assay.core.batch import pack_rows
from assay.core.errors import EngineError
from assay.core.plan import Forward, Plan
from assay.core.protocols import SwapMode
from assay.core.rollout import ids_of
from assay.core.sample import supervised_sample
from assay.runtime import LearnerSettings, TorchLearner, char_tokenizer
from assay.runtime.compiled import build as builds
from assay.runtime.compiled import decode_path
from assay.runtime.compiled.activation_cache import ActivationCache
from assay.runtime.engine.native import NativeEngine
from assay.runtime.engine.settings import Native
from assay.runtime.learner.decoder import Decoder
from assay.runtime.learner.packing import pack_offsets
from assay.runtime.models.model import Model

CHECKED = 4096
"""As `train.cpp` has it: recalled tokens on which a row is computed too."""


@pytest.fixture(scope="module")
def decoder():
    return pair(SHAPE)[0]


@pytest.fixture
def step_by_step(monkeypatch):
    """Requests may join and leave between any two tokens."""
    monkeypatch.setattr(decode_path, "TOKENS", 1)


@contextmanager
def on(threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def model_of(decoder):
    tensors = {name: weight.detach().clone() for name, weight in decoder.named_parameters()}
    return Model(decoder.shape, tensors, char_tokenizer("0"))


def engine_of(decoder, *, recall=1 << 30, **options):
    return NativeEngine(model_of(decoder), recall=recall, **options)


def posed(groups=6, size=4, *, seed=0, vocabulary=SHAPE.vocab_size, longest=40):
    """Requests in groups that share a prompt, with answers of 1 to 24 tokens."""
    rng = np.random.default_rng(seed)
    prompts = [rng.integers(0, vocabulary, rng.integers(1, longest + 1)) for _ in range(groups)]
    return [request(i, prompts[i // size], max_new_tokens=int(rng.integers(1, 25))) for i in range(groups * size)]


def rows_of(requests, done):
    return [np.concatenate([r.prompt, c.ids]) for r, c in zip(requests, done, strict=True) if len(c.ids)]


def sampled(engine, requests):
    """Prompts with what is sampled behind them while the cache is open."""
    with engine.activation_cache.open():
        return rows_of(requests, run(engine, requests))


def laid(rows):
    """Ids and offsets of rows, and which tokens a loss on all of them reads: each but the last of its row."""
    offsets = np.cumsum([0, *map(len, rows)])
    ids = torch.from_numpy(np.concatenate(rows).astype(np.int64))
    return ids, offsets, torch.from_numpy(np.setdiff1d(np.arange(len(ids)), offsets[1:] - 1))


def passed(decoder, rows, cache, wanted=None):
    """Bytes of the states of tokens (by themselves all but the last ones), and of the gradients of a weighted sum of them."""
    ids, offsets, most = laid(rows)
    wanted = most if wanted is None else wanted
    weight = torch.randn(len(wanted), decoder.shape.hidden_size, generator=torch.Generator().manual_seed(0))
    decoder.follow(cache)
    states, found = gradients(decoder, ids, offsets, wanted, weight)
    decoder.follow(None)
    return {"states": states.numpy().tobytes()} | {name: grad.numpy().tobytes() for name, grad in found.items()}


def counts(decoder):
    """Tokens of the last pass that were not computed again, and how many it had."""
    return decoder._passes.recalled, decoder._passes.nodes


def recalled(decoder, rows, cache, wanted=None):
    """`counts` of a pass that follows a cache, once it is sure that its bits are those of one that does not."""
    plain = passed(decoder, rows, None, wanted)
    assert decoder._passes.recalled == 0
    assert passed(decoder, rows, cache, wanted) == plain
    return counts(decoder)


def all_of(found):
    return found[0] == found[1] > 0


# ---- the same bits -------------------------------------------------------------------------------------------------------------


def test_what_is_on_a_trail_by_hand(decoder):
    engine = engine_of(decoder)
    requests = [
        request(0, [5, 6, 7], max_new_tokens=1),
        request(1, [5, 6, 7], max_new_tokens=4),
        request(2, [8], max_new_tokens=2),
    ]
    assert engine.activation_cache.remaining() == (0, 0, 0)
    rows = sampled(engine, requests)
    left = engine.activation_cache.remaining()
    assert (left.paths, left.tokens) == (3, 3 + (3 + 3) + (1 + 1))  # no token is read behind the last
    sheet = 16 * 4 * (2 * (48 + 80 + 48 + 48 + 112) + 48)  # of each layer x, qkv, mixed, middle, gate and up, then what leaves it
    assert left.bytes == 4 * sheet  # prompts, and answers that go on
    assert recalled(decoder, rows, engine.activation_cache) == (8, 8)  # 5 6 7 once


SIZES = st.builds(
    lambda shape, dim: replace(shape, head_dim=dim, vocab_size=shape.vocab_size + 1),
    SHAPES,
    st.sampled_from([2, 6, 10, 16, 20, 36, 80]),
)


@pytest.mark.slow
@settings(max_examples=40)
@given(
    shape=SIZES,
    seed=st.integers(0, 99),
    groups=st.integers(1, 24),
    size=st.integers(1, 6),
    read=st.sampled_from(["all", "answers", "some"]),
    block=st.sampled_from([5, 12, 72]),
)
def test_any_shape_has_the_bits_of_computing_it_again(shape, seed, groups, size, read, block):
    decoder = pair(shape, seed)[0]
    requests = posed(groups, size, seed=seed, vocabulary=shape.vocab_size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode_path, "_block", lambda *_: block)
        engine = engine_of(decoder)
    found = set()
    for threads in (1, 2):
        with on(threads):
            rows = sampled(engine, requests)
            wanted = laid(rows)[2]
            if read == "answers":
                starts = np.cumsum([0, *map(len, rows)])
                answers = [np.arange(a + len(r.prompt), b) for r, (a, b) in zip(requests, pairwise(starts), strict=True)]
                wanted = torch.from_numpy(np.concatenate(answers) - 1)
            elif read == "some":  # what is not read behind the last of them is cut off
                wanted = wanted[torch.rand(len(wanted), generator=torch.Generator().manual_seed(seed)) < 0.3]
            if len(wanted):
                assert all_of(recalled(decoder, rows, engine.activation_cache, wanted))
            found.add(tuple(row.tobytes() for row in rows))
    assert len(found) == 1


@pytest.mark.parametrize("threads", [1, 2])
def test_many_blocks_have_the_bits_of_computing_them_again(decoder, threads):
    """Often enough that rows are checked: what is right is never taken for wrong."""
    engine = engine_of(decoder)
    with on(threads):
        rows = sampled(engine, posed(40, 6))
        for _ in range(3):
            found = recalled(decoder, rows, engine.activation_cache)
            assert all_of(found)
            assert found[1] > 5 * 384
        with torch.no_grad():
            ids, offsets, wanted = laid(rows)
            plain = decoder.hidden_states(ids, pack_offsets(offsets), wanted)
            decoder.follow(engine.activation_cache)
            again = decoder.hidden_states(ids, pack_offsets(offsets), wanted)
            decoder.follow(None)
    assert again.numpy().tobytes() == plain.numpy().tobytes()


def test_rows_longer_than_a_block():
    decoder = pair(replace(SHAPE, max_positions=1200))[0]
    engine = engine_of(decoder)
    rng = np.random.default_rng(0)
    rows = sampled(engine, [request(i, rng.integers(0, 12, 500 - i // 2), max_new_tokens=300 + i) for i in range(4)])
    assert all_of(recalled(decoder, rows, engine.activation_cache))


def batch_of(requests, rows):
    answers = [ids_of(row[len(r.prompt) :]) for r, row in zip(requests, rows, strict=True)]
    made = [supervised_sample(r.id, [(r.prompt, False), (answer, True)]) for r, answer in zip(requests, answers, strict=True)]
    return pack_rows(list(enumerate(made)), {"group": np.arange(len(made)) // 4})


def test_a_learner_that_follows_makes_the_same_step(decoder):
    """In micro-batches of several blocks; with the next weights it computes everything again."""
    engine, requests = engine_of(decoder), posed(24, 4)
    batch = batch_of(requests, sampled(engine, requests))
    learners = [TorchLearner(model_of(decoder), LearnerSettings(micro_tokens=700), total_steps=9) for _ in range(2)]
    learners[1].policy.follow(engine.activation_cache)
    plan = Plan(live=("logp_new", "entropy"))
    old = [learner.annotate(batch, Forward(column="logp_old")).token("logp_old").tobytes() for learner in learners]
    assert old[0] == old[1]
    for taken in (True, False, False):
        told = [learner.step(batch, plan, Likelihood()).metrics for learner in learners]
        kept = [{name: value for name, value in metrics.items() if not name.startswith("time/")} for metrics in told]
        assert kept[0] == kept[1]
        assert learners[0].state_digest() == learners[1].state_digest()
        for (name, a), b in zip(learners[0].parameters.items(), learners[1].parameters.values(), strict=True):
            assert a.grad.numpy().tobytes() == b.grad.numpy().tobytes(), name
        assert all_of(counts(learners[1].policy)) if taken else counts(learners[1].policy)[0] == 0
        assert counts(learners[0].policy)[0] == 0


# ---- which rows ----------------------------------------------------------------------------------------------------------------


def test_blocks_with_a_row_that_nobody_sampled_are_computed(decoder):
    engine, requests = engine_of(decoder), posed(40, 6)
    rows = sampled(engine, requests)
    whole = recalled(decoder, rows, engine.activation_cache)
    one = recalled(decoder, [*rows, np.array([3, 3, 3, 3, 3, 3, 3])], engine.activation_cache)
    assert 0 < one[0] < whole[0]
    assert whole[0] - one[0] <= 2 * 384
    strange = [np.random.default_rng(i).integers(0, 12, 30) for i in range(20)]
    assert recalled(decoder, strange, engine.activation_cache)[0] == 0
    assert recalled(decoder, [*rows, *strange], engine.activation_cache)[0] < whole[0]


@pytest.mark.slow
def test_every_token_that_is_read_counts_and_no_other(decoder):
    engine = engine_of(decoder)
    (row,) = sampled(engine, [request(0, [5, 6, 7, 8], max_new_tokens=20)])
    for at in range(len(row)):
        for token in set(range(12)) - {row[at]}:
            other = row.copy()
            other[at] = token
            found = recalled(decoder, [other], engine.activation_cache)
            assert found == ((23, 23) if at == 23 else (0, 23)), (at, token)
    assert recalled(decoder, [row, np.array([9, 5])], engine.activation_cache) == (0, 24)


@pytest.mark.parametrize("length", [2, 4, 5, 16, 17, 18, 36, 44])
def test_beginnings_are_there_and_what_goes_on_is_not(decoder, length):
    """The last token of 44 was sampled, and never read."""
    engine = engine_of(decoder)
    (row,) = sampled(engine, [request(0, np.arange(18) % 12, max_new_tokens=26)])
    assert recalled(decoder, [row[:length]], engine.activation_cache) == (length - 1, length - 1)
    assert recalled(decoder, [row], engine.activation_cache, torch.tensor([length - 1])) == (length if length < 44 else 0, length)
    assert recalled(decoder, [np.append(row, 3)[:45]], engine.activation_cache) == (0, 44)


def test_a_conversation_is_the_path_of_its_last_turn(decoder):
    engine = engine_of(decoder)

    async def talk(i):
        said = np.random.default_rng(i).integers(0, 12, 3 + i)
        for turn in range(3):
            done = await engine.generate(request(10 * i + turn, said, max_new_tokens=4 + turn))
            said = np.concatenate([said, done.ids, [i % 12] * 5])
        return said[:-5]

    async def go():
        return await asyncio.gather(*map(talk, range(20)))

    with engine.activation_cache.open():
        rows = asyncio.run(go())
    assert all_of(recalled(decoder, rows, engine.activation_cache))


def test_requests_that_join_leave_and_share(decoder, step_by_step):
    engine = engine_of(decoder, max_batch=5)
    requests = posed(6, 4)
    requests += [replace(r, id=str(100 + i), seed=100 + i) for i, r in enumerate(requests[4:12])]  # prompts of two groups again

    async def go():
        tasks = [asyncio.create_task(engine.generate(r)) for r in requests[:10]]
        await turns(engine, 6)
        tasks += [asyncio.create_task(engine.generate(r)) for r in requests[10:]]
        await turns(engine, 11)
        running = [job.request.id for job in engine._table.jobs]
        await engine.abort([running[0], running[2], requests[31].id])
        await turns(engine, 20)
        tasks[20].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    with engine.activation_cache.open():
        done = asyncio.run(go())
    assert isinstance(done[20], asyncio.CancelledError)
    kept = [(r, c) for r, c in zip(requests, done, strict=True) if not isinstance(c, asyncio.CancelledError)]
    assert sum(c.stop == "partial" for _, c in kept) == 3
    assert any(0 < len(c.ids) < r.sampling.max_new_tokens for r, c in kept)
    rows = rows_of(*zip(*kept, strict=True))
    assert all_of(recalled(decoder, rows, engine.activation_cache))


# ---- whose weights -------------------------------------------------------------------------------------------------------------

UNTIED = replace(SHAPE, num_layers=1, tied=False)
NAMES = [name for name, _ in Decoder(UNTIED).named_parameters()]


@pytest.fixture(scope="module")
def served():
    """A decoder, and what an engine with its weights left."""
    decoder = pair(UNTIED)[0]
    engine = engine_of(decoder)
    return decoder, engine, sampled(engine, posed(4, 2))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("at", [0, -1])
def test_one_bit_of_one_weight_makes_other_weights(served, name, at):
    decoder, engine, rows = served
    assert all_of(recalled(decoder, rows, engine.activation_cache))
    bits = decoder.get_parameter(name).detach().view(-1).view(torch.int32)
    bits[at] ^= 1
    found = recalled(decoder, rows, engine.activation_cache)
    bits[at] ^= 1
    assert all_of(found) if name == "lm_head.weight" else found[0] == 0 < found[1]  # no state depends on a head
    assert all_of(recalled(decoder, rows, engine.activation_cache))


def test_a_sign_of_zero_is_a_bit():
    decoder = pair(UNTIED)[0]
    weight = decoder.model.norm.weight.data
    weight[3] = 0.0
    engine = engine_of(decoder)
    rows = sampled(engine, posed(2))
    assert all_of(recalled(decoder, rows, engine.activation_cache))
    weight[3] = -0.0
    assert recalled(decoder, rows, engine.activation_cache)[0] == 0


@pytest.mark.parametrize(
    "sizes",
    [{"norm_eps": 1e-5}, {"max_positions": 100}, {"num_layers": 1}, {"num_kv_heads": 4}, {"rope_theta": 9.0}, {"rope_pairs": 1}],
)
def test_another_shape_takes_nothing(decoder, sizes):
    engine = engine_of(decoder)
    rows = sampled(engine, posed())
    assert recalled(pair(replace(SHAPE, **sizes))[0], rows, engine.activation_cache)[0] == 0


def test_new_weights_in_the_engine_forget(decoder):
    engine, other = engine_of(decoder), pair(SHAPE, 5)[0]
    with engine.activation_cache.open():
        old = rows_of(posed(), run(engine, posed()))
        assert all_of(recalled(decoder, old, engine.activation_cache))
        asyncio.run(engine.swap(manifest(model_of(other), 1)))
        assert engine.activation_cache.remaining()[:2] == (0, 0)
        new = rows_of(posed(), run(engine, posed()))
    for rows, whose, there in ((old, decoder, False), (new, decoder, False), (old, other, False), (new, other, True)):
        found = recalled(whose, rows, engine.activation_cache)
        assert all_of(found) if there else found[0] == 0


@pytest.mark.parametrize("back", [False, True])
def test_what_was_sampled_across_a_swap_is_never_there(decoder, step_by_step, back):
    """Also where the old weights come back at last: keys and values are of both."""
    other = pair(SHAPE, 5)[0]
    engine = engine_of(decoder, max_batch=8)
    requests = [request(i, [5, 6 + i % 2], max_new_tokens=12) for i in range(10)]  # the last two wait, with prompts that passed
    late = [request(20 + i, [5, 6], max_new_tokens=9) for i in range(2)]

    async def go():
        tasks = [asyncio.create_task(engine.generate(r)) for r in requests]
        await turns(engine, 5)
        await engine.swap(manifest(model_of(other), 1), SwapMode.KEEP)
        if back:
            await turns(engine, 8)
            await engine.swap(manifest(model_of(decoder), 2), SwapMode.KEEP)
        tasks += [asyncio.create_task(engine.generate(r)) for r in late]
        return await asyncio.gather(*tasks)

    with engine.activation_cache.open():
        done = asyncio.run(go())
    across, after = rows_of(requests[:8], done[:8]), rows_of([*requests[8:], *late], done[8:])
    assert all(len(c.spans) > 1 for c in done[:8])
    assert engine.activation_cache.remaining().paths == 4
    for whose in (decoder, other):
        for row in across:
            assert recalled(whose, [row], engine.activation_cache)[0] == 0
    now, before = (decoder, other) if back else (other, decoder)
    assert all_of(recalled(now, after, engine.activation_cache))
    assert recalled(before, after, engine.activation_cache)[0] == 0


def test_a_swap_that_ends_requests_first(decoder, step_by_step):
    other = pair(SHAPE, 5)[0]
    engine = engine_of(decoder)
    requests, late = [request(i, [5, 6, i], max_new_tokens=9) for i in range(4)], request(9, [5, 6, 0], max_new_tokens=9)
    with engine.activation_cache.open():
        done = running_then_swapped(engine, requests, late, manifest(model_of(other), 1), SwapMode.DRAIN)
    rows = rows_of([*requests, late], done)
    assert engine.activation_cache.remaining().paths == 1
    assert all_of(recalled(other, rows[-1:], engine.activation_cache))
    for row in rows[:-1]:
        assert recalled(decoder, [row], engine.activation_cache)[0] == recalled(other, [row], engine.activation_cache)[0] == 0


# ---- how much ------------------------------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_computed(decoder):
    """Room for a prompt and an answer, and half a sheet that nobody can use."""
    engine = engine_of(decoder)
    sampled(engine, [request(0, [5], max_new_tokens=1)])
    sheet = engine.activation_cache.remaining().bytes
    engine = engine_of(decoder, recall=5 * sheet // 2)
    first, second = request(0, [5, 6], max_new_tokens=5), request(1, [7, 8, 9], max_new_tokens=5)
    for requests in ([first, second], [second, first]):  # what is forgotten makes room
        with engine.activation_cache.open():
            rows = [row for r in requests for row in rows_of([r], run(engine, [r]))]
        assert engine.activation_cache.remaining() == (1, len(rows[0]) - 1, 2 * sheet)
        assert all_of(recalled(decoder, rows[:1], engine.activation_cache))
        assert recalled(decoder, rows[1:], engine.activation_cache)[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_as_many_are_left_as_fit(decoder, threads):
    engine, requests = engine_of(decoder), posed(12, 4)
    sampled(engine, requests)
    most, found = engine.activation_cache.remaining().bytes, []
    for share in (0.002, 0.3, 0.7, 1.0):
        engine = engine_of(decoder, recall=int(share * most))
        for _ in range(2):
            with on(threads):
                rows = sampled(engine, requests)
            assert engine.activation_cache.remaining().bytes <= share * most
            recalled(decoder, rows, engine.activation_cache)
            found.append(sum(recalled(decoder, [row], engine.activation_cache)[0] > 0 for row in rows))
    assert found[0] == found[1] == 0 < min(found[2:6]) <= max(found[2:6]) < found[6] == found[7] == 48


def test_where_nothing_is_left_there_is_no_trail(decoder):
    model = model_of(decoder)
    assert NativeEngine(model).activation_cache is None
    assert NativeEngine(model, recall=0).activation_cache is None
    assert NativeEngine(model, recall=1 << 20, dtype="bfloat16").activation_cache is None
    assert NativeEngine(model, recall=1 << 20, kernel=False).activation_cache is None
    assert NativeEngine(model, recall=1 << 20).activation_cache is not None


@pytest.mark.parametrize(
    ("settings", "options", "there"),
    [
        ({}, {}, True),
        ({}, {"recall": 0}, False),
        ({}, {"dtype": "bfloat16"}, False),
        ({}, {"kernel": False}, False),
        ({"kernel": False}, {}, False),
        ({"precision": "bf16"}, {}, False),
    ],
)
def test_an_engine_is_followed_where_both_sides_are_compiled_and_exact(decoder, settings, options, there):
    learner = TorchLearner(model_of(decoder), LearnerSettings(**settings), total_steps=1)
    engine = Native(**{"recall": 3, **options}).build(learner)
    assert (engine.activation_cache is not None) == there
    if learner.policy.follows:
        assert learner.policy._passes.activation_cache is engine.activation_cache


# ---- how long ------------------------------------------------------------------------------------------------------------------


def test_nothing_is_left_while_a_trail_is_closed(decoder):
    engine = engine_of(decoder)
    rows = rows_of(posed(), run(engine, posed()))
    assert engine.activation_cache.remaining() == (0, 0, 0)
    assert recalled(decoder, rows, engine.activation_cache)[0] == 0
    first = sampled(engine, posed(seed=1))
    left = engine.activation_cache.remaining()
    run(engine, posed(seed=2))
    asyncio.run(engine.score([row.astype(np.int32) for row in rows]))
    assert engine.activation_cache.remaining() == left
    assert all_of(recalled(decoder, first, engine.activation_cache))


def test_opening_again_forgets(decoder):
    engine = engine_of(decoder)
    first = sampled(engine, posed(seed=1))
    bytes_made = engine.activation_cache.remaining().bytes
    with engine.activation_cache.open():
        assert engine.activation_cache.remaining() == (0, 0, bytes_made)
        assert recalled(decoder, first, engine.activation_cache)[0] == 0
    second = sampled(engine, posed(seed=2))
    assert recalled(decoder, first, engine.activation_cache)[0] == 0
    assert all_of(recalled(decoder, second, engine.activation_cache))
    for seed in (1, 2) * 3:
        sampled(engine, posed(seed=seed))
    assert engine.activation_cache.remaining().bytes < 2 * bytes_made


def test_a_prompt_of_an_earlier_opening_is_none_of_this_one(decoder, step_by_step):
    """A request that began, and one whose prompt passed, before the cache was opened: for the first time, or again."""
    engine = engine_of(decoder, max_batch=1)
    requests = [request(i, [5, 6, 7], max_new_tokens=8) for i in range(2)]

    async def go(before):
        tasks = [asyncio.create_task(engine.generate(r)) for r in requests]
        if before:
            with before:
                await turns(engine, engine.counters["steps"] + 3)
        with engine.activation_cache.open():
            return await asyncio.gather(*tasks)

    for before in (nullcontext(), engine.activation_cache.open(), None):
        rows = rows_of(requests, asyncio.run(go(before)))
        assert engine.activation_cache.remaining().paths == (0 if before else 2)
        for row in rows:
            assert recalled(decoder, [row], engine.activation_cache) == (0 if before else 10, 10)


def test_a_gradient_reads_states_that_the_trail_has_forgotten(decoder):
    """They are not given away before the tape is gone, whoever samples, opens, swaps or is deleted meanwhile."""
    engine = engine_of(decoder)
    rows = sampled(engine, posed(24, 4))
    made, plain = engine.activation_cache.remaining().bytes, passed(decoder, rows, None)
    ids, offsets, wanted = laid(rows)
    weight = torch.randn(len(wanted), SHAPE.hidden_size, generator=torch.Generator().manual_seed(0))
    decoder.follow(engine.activation_cache)
    states = decoder.hidden_states(ids, pack_offsets(offsets), wanted)
    decoder.follow(None)
    assert all_of(counts(decoder))
    sampled(engine, posed(24, 4, seed=1))
    assert engine.activation_cache.remaining().bytes > 1.5 * made
    asyncio.run(engine.swap(manifest(model_of(pair(SHAPE, 5)[0]), 1)))
    sampled(engine, posed(24, 4, seed=2))
    del engine
    gc.collect()
    decoder.zero_grad()
    (states * weight).sum().backward()
    assert states.detach().numpy().tobytes() == plain["states"]
    for name, parameter in decoder.named_parameters():
        if parameter.grad is not None:
            assert parameter.grad.numpy().tobytes() == plain[name], name


def test_a_trail_outlives_its_engine_and_has_nothing_then(decoder):
    engine = engine_of(decoder)
    rows, cache = sampled(engine, posed()), engine.activation_cache
    assert all_of(recalled(decoder, rows, cache))
    del engine
    gc.collect()
    assert cache.remaining()[:2] == (0, 0)
    assert recalled(decoder, rows, cache)[0] == 0
    with cache.open():
        assert recalled(decoder, rows, cache)[0] == 0


def test_an_engine_outlives_its_trail(decoder):
    engine = engine_of(decoder)
    rows = sampled(engine, posed())
    engine.activation_cache = engine._runner.activation_cache = None
    gc.collect()
    for _ in range(2):
        assert [row.tolist() for row in rows_of(posed(), run(engine, posed()))] == [row.tolist() for row in rows]
    asyncio.run(engine.swap(manifest(model_of(decoder), 1)))


# ---- faults -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
def test_states_that_the_weights_do_not_give_are_an_error(threads):
    """An engine that was given another cache does not tell the first of new weights: what is there is of the old ones."""
    decoder, other = pair(SHAPE, 1)[0], pair(SHAPE, 2)[0]
    engine = engine_of(decoder)
    rows, cache = sampled(engine, posed(12, 6)), engine.activation_cache
    told = ActivationCache(builds.kernel(), engine._runner._engine.pointer, 1 << 20)
    asyncio.run(engine.swap(manifest(model_of(other), 1)))
    assert cache.remaining().paths == 72 and told.remaining().paths == 0
    right = passed(other, rows, None)
    nodes = other._passes.nodes
    assert 384 < nodes < CHECKED / 3
    with on(threads):
        for _ in range(2):
            for _ in range((CHECKED - 1) // nodes):
                assert passed(other, rows, cache).keys() == right.keys()
                assert all_of(counts(other))
            with pytest.raises(
                EngineError, match=r"what the sampler left of a row .*Native\(recall=0\) computes everything again"
            ):
                passed(other, rows, cache)
        assert passed(other, rows, None) == right


OUT_OF_MEMORY = """
import asyncio, resource, sys
from dataclasses import replace
from test_activation_cache import SHAPE, counts, engine_of, pair, passed, request, rows_of, run

decoder = pair(replace(SHAPE, num_layers=8, num_heads=4, num_kv_heads=4, head_dim=80, max_positions=200))[0]
engine, requests = engine_of(decoder), [request(i, [5, 6, 7], max_new_tokens=40) for i in range(12)]
passed(decoder, [[1, 2, 3]], None)

async def cut_off():
    tasks = [asyncio.create_task(engine.generate(r)) for r in requests]
    while engine.counters["steps"] < 16 and not tasks[0].done():
        await asyncio.sleep(0)
    size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + int(sys.argv[1]), resource.RLIM_INFINITY))
    done = await asyncio.gather(*tasks, return_exceptions=True)
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
    return done

with engine.activation_cache.open():
    assert all("MemoryError" in str(error) for error in asyncio.run(cut_off()))
    rows = rows_of(requests, run(engine, requests))
for i, row in enumerate(rows):
    for n in range(5 + i % 3, len(row) + 1, 3):
        plain = passed(decoder, [row[:n]], None)
        assert passed(decoder, [row[:n]], engine.activation_cache) == plain, (n, counts(decoder))
print("the same")
"""


@pytest.mark.prove
def test_states_that_memory_did_not_suffice_for_are_not_there():
    """What such a step had begun to leave is forgotten, and the same requests leave it anew."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", OUT_OF_MEMORY, str(3 << 20)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("the same\n"), done.stderr
