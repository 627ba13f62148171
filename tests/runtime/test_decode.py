"""The parts of the decode path: drawing by hand-computed numbers, cache growth, the table of rows."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from engine_reference import ALPHABET, request, support
from hypothesis import assume, given
from hypothesis import strategies as st

from assay.core.errors import ConfigError
from assay.core.rollout import Sampling
from assay.core.seeds import uniforms
from assay.runtime.engine.decode import DecodePath, KVCache, chunks
from assay.runtime.engine.draw import Draws, draw
from assay.runtime.engine.sequences import EngineRequest, RequestBatch, SlotTable
from assay.runtime.engine.weights import ServedWeights
from assay.runtime.models.model import init_model
from assay.runtime.settings import DecoderShape
from assay.runtime.text.tokenizer import char_tokenizer

SHAPE = DecoderShape(vocab_size=41, hidden_size=32, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=8, intermediate_size=40)


def settings(uniform, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0):
    n = len(uniform)
    return Draws(
        np.full(n, temperature, np.float32),
        np.full(n, top_k, np.int64),
        np.full(n, top_p),
        np.array(uniform, np.float64),
        np.full(n, min_p),
    )


def logits(*p):
    return torch.tensor([p], dtype=torch.float64).log().float()


# ---- drawing -------------------------------------------------------------------------------------------------------------


def test_inverse_of_the_cumulative_distribution():
    """p = .5 .25 .25: edges at .5, .75, 1; an edge belongs to the token behind it."""
    uniform = [0.0, 0.4999, 0.5, 0.7499, 0.75, 1.0 - 2.0**-53]
    out = draw(logits(0.5, 0.25, 0.25).expand(6, -1), settings(uniform))
    assert out.ids.tolist() == [0, 0, 1, 1, 2, 2]
    assert out.logp == pytest.approx([math.log(0.5)] * 2 + [math.log(0.25)] * 4)
    assert out.entropy == pytest.approx([1.5 * math.log(2.0)] * 6)


def test_temperature():
    """At T = 2 probabilities .64, .32, .04 become proportional to .8, .5657, .2."""
    weights = np.sqrt([0.64, 0.32, 0.04])
    p = weights / weights.sum()
    out = draw(logits(0.64, 0.32, 0.04).expand(2, -1), settings([p[0] - 1e-4, p[0] + 1e-4], temperature=2.0))
    assert out.ids.tolist() == [0, 1]
    assert out.logp == pytest.approx(np.log(p[:2]), abs=1e-6)


def test_top_k_and_top_p_renormalise():
    p = logits(0.1, 0.4, 0.3, 0.2).expand(2, -1)
    out = draw(p, settings([0.5, 0.6], top_k=2))  # ids 1, 2 with 4/7, 3/7
    assert out.ids.tolist() == [1, 2]
    assert out.logp == pytest.approx([math.log(4 / 7), math.log(3 / 7)], abs=1e-6)
    out = draw(p, settings([0.0, 0.9999], top_p=0.75))  # .4 + .3 < .75, so the third is needed
    assert out.ids.tolist() == [1, 3]
    assert out.logp == pytest.approx([math.log(4 / 9), math.log(2 / 9)], abs=1e-6)
    out = draw(p, settings([0.0, 0.9999], top_k=3, top_p=0.01))  # at least one token stays
    assert out.ids.tolist() == [1, 1]
    assert out.logp == pytest.approx([0.0, 0.0])
    assert out.entropy == pytest.approx([0.0, 0.0])


def test_min_p_leaves_out_what_is_far_less_likely_than_the_most_likely():
    p = logits(0.1, 0.4, 0.3, 0.2).expand(2, -1)
    out = draw(p, settings([0.0, 0.9999], min_p=0.6))  # .24 is asked for: ids 1 and 2 stay
    assert out.ids.tolist() == [1, 2]
    assert out.logp == pytest.approx([math.log(4 / 7), math.log(3 / 7)], abs=1e-6)
    out = draw(p, settings([0.0, 0.9999], min_p=0.3, top_p=0.5))  # of .4 + .3 + .2 the first has less than half
    assert out.ids.tolist() == [1, 2]
    assert draw(p, settings([0.0, 0.9999], min_p=1.0)).ids.tolist() == [1, 1]


def test_greedy_takes_the_lowest_id_among_equals():
    out = draw(torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]), settings([0.99, 0.99], temperature=0.0))
    assert (out.ids.tolist(), out.logp.tolist(), out.entropy.tolist()) == ([1, 0], [0.0, 0.0], [0.0, 0.0])


@given(
    st.lists(st.integers(-40, 40), min_size=2, max_size=12),
    st.floats(0.0, 1.0, exclude_max=True),
    st.integers(0, 12),
    st.sampled_from([1.0, 0.9, 0.5, 0.1]),
    st.sampled_from([0.5, 1.0, 1.5]),
    st.sampled_from([0.0, 0.0, 0.05, 0.33]),
)
def test_what_is_drawn_has_the_probability_that_is_said(values, u, top_k, top_p, temperature, min_p):
    row = np.array(values) / 8.0
    whole = support(row, Sampling(temperature=temperature, top_k=top_k, min_p=min_p))
    shares = support(row, Sampling(temperature=temperature))
    assume(np.abs(shares / shares.max() - min_p).min() > 1e-6)
    assume(np.abs(np.cumsum(np.sort(whole)[::-1]) - top_p).min() > 1e-6 or top_p == 1.0)  # rounding may not decide the support
    p = support(row, Sampling(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p))
    out = draw(torch.tensor(row[None]).float(), settings([u], temperature, top_k, top_p, min_p))
    cdf, i = np.concatenate([[0.0], np.cumsum(p)]), int(out.ids[0])
    assert p[i] > 0.0
    assert cdf[i] - 1e-6 <= u <= cdf[i + 1] + 1e-6
    assert out.logp[0] == pytest.approx(math.log(p[i]), abs=1e-5)
    assert out.entropy[0] == pytest.approx(-sum(x * math.log(x) for x in p if x > 0), abs=1e-5)


def test_nan_shows_in_the_log_probability_also_when_greedy():
    bad = torch.tensor([[0.0, float("nan")]])
    assert np.isnan(draw(bad, settings([0.5])).logp).all()
    assert np.isnan(draw(bad, settings([0.5], temperature=0.0)).logp).all()


# ---- the cache ----------------------------------------------------------------------------------------------------------


def test_cache_grows_geometrically_within_its_bounds_and_keeps_its_rows():
    cache = KVCache(SHAPE, 10)
    cache.reserve(3, 7, 0)
    assert cache.k.shape == (2, 3, 2, 7, 8)
    cache.k.normal_()
    cache.v.normal_()
    old = cache.k.clone()
    cache.reserve(2, 5, 2)
    assert cache.k.shape == (2, 3, 2, 7, 8)
    cache.reserve(4, 8, 3)
    assert cache.k.shape == (2, 6, 2, 14, 8)
    assert torch.equal(cache.k[:, :3, :, :7], old)
    assert not cache.k[:, 3:].any()
    cache.reserve(9, 100, 3)
    assert (cache.slots, cache.length) == (10, 100)
    cache.reserve(9, 120, 3)
    assert cache.length == 128  # never beyond the context
    assert torch.equal(cache.k[:, :3, :, :7], old)


def test_one_token_at_a_time_is_the_whole_row_at_once():
    """Prefill and steps agree for rows of different lengths that share each step."""
    model = init_model(SHAPE, char_tokenizer(ALPHABET), 0, init="fan_in")
    path = DecodePath(ServedWeights(SHAPE, model.tensors), 3)
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, 41, n).astype(np.int32) for n in (12, 9, 10)]
    heads = [5, 1, 3]
    path.cache.reserve(3, 12, 0)
    first = path.prefill([r[:h] for r, h in zip(rows, heads, strict=True)])
    path.cache.place(first, np.arange(3), np.arange(3))
    got = [[x] for x in first.logits.log_softmax(-1).numpy()]
    for t in range(7):
        tokens = np.array([r[h + t] for r, h in zip(rows, heads, strict=True)], np.int64)
        out = path.step(tokens, np.array(heads) + t).log_softmax(-1).numpy()
        for g, x in zip(got, out, strict=True):
            g.append(x)
    for row, h, g, whole in zip(rows, heads, got, path.score(rows), strict=True):
        stepped = [g[t][row[h + t]] for t in range(7)]
        assert np.abs(np.array(stepped) - whole[h : h + 7]).max() <= 1e-5


@given(st.lists(st.integers(1, 3000), max_size=40))
def test_passes_are_small_and_hold_every_row_once(lengths):
    parts = chunks(lengths)
    assert sorted(i for p in parts for i in p) == list(range(len(lengths)))
    for part in parts:
        assert len(part) == 1 or len(part) * max(lengths[i] for i in part) <= 4096


# ---- the table ----------------------------------------------------------------------------------------------------------


@given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), min_size=1))))
def test_rows_that_end_are_replaced_by_the_last_ones(case):
    n, gone = case
    table = fill(n)
    cache = KVCache(SHAPE, n)
    cache.reserve(n, 4, 0)
    cache.k[:] = torch.arange(n).float()[None, :, None, None, None]
    source, target = table.remove(np.array(sorted(gone), np.int64))
    cache.move(source, target, 3)
    kept = n - len(gone)
    assert {j.request.id for j in table.jobs} == {str(i) for i in range(n) if i not in gone}
    assert len(source) <= len(gone)  # no more is copied than has left
    for slot, job in enumerate(table.jobs):
        i = int(job.request.id)
        assert job.slot == slot
        assert table.limit[slot] == i + 1
        assert table.uniform[slot, 0] == pytest.approx(noise_of(i))
        assert (cache.k[:, slot, :, :3] == i).all()
    assert len(table) == kept


def fill(n):
    loop = asyncio.new_event_loop()
    table = SlotTable()
    jobs = [
        EngineRequest(request(i, [5] * (1 + i % 3), max_new_tokens=i + 1), RequestBatch(loop.create_future(), 1), 0, b"")
        for i in range(n)
    ]
    for part in (jobs[: (n + 1) // 2], jobs[(n + 1) // 2 :]):
        if part:
            table.admit(part, 0)
    loop.close()
    return table


def noise_of(seed):
    return float(uniforms(np.array([seed], np.uint64), 0, 1)[0, 0])


def test_pairs_that_do_not_turn_are_blind_to_position():
    """Without any turning pair a head sees a set: texts that end alike on the same letters in another order read the same."""
    still = replace(SHAPE, rope_pairs=0, num_layers=1)
    model = init_model(still, char_tokenizer(ALPHABET), 0, init="fan_in")
    rows = [np.array(row, np.int32) for row in ([5, 6, 7, 8, 9], [7, 5, 6, 8, 9])]
    for shape, alike in ((still, True), (replace(still, rope_pairs=1), False)):
        path = DecodePath(ServedWeights(shape, model.tensors), 1)
        one, two = (path.score([row])[0][-1] for row in rows)
        assert (abs(one - two) < 1e-6) == alike
    with pytest.raises(ConfigError, match="rope_pairs=99; a head of"):
        replace(still, rope_pairs=99)
