"""A temperature that falls along a rollout: its values, and engines and learner that agree on it token by token."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_reference import pair, request, run
from hypothesis import given
from hypothesis import strategies as st
from test_compiled import model_of, some
from test_support import row_of, scored

from assay.core import Annealing, Sampling
from assay.core.batch import pack_rows
from assay.core.errors import ConfigError, DataError
from assay.core.sample import TEMPERATURE
from assay.core.wire import sampling_from_wire, sampling_to_wire
from assay.runtime.engine.hub_engine import TransformersEngine
from assay.runtime.engine.native import NativeEngine
from assay.runtime.learner.learner import TorchLearner
from assay.runtime.settings import LearnerSettings
from assay.runtime.vllm.wire import request_body

FAST = Annealing(peak=1.5, least=0.2, decay=5.0, start=2)


def at(decay: float, *tokens: int) -> list[float]:
    return Annealing(decay=decay, start=0).at(np.array(tokens)).round(4).tolist()


# ---- values -----------------------------------------------------------------------------------------------------------


def test_the_temperature_falls_as_the_exponential_grows() -> None:
    assert at(1000, 0, 100, 500, 1000) == [1.2, 1.0948, 0.5513, 0.1]
    assert at(500, 100) == [0.9786]
    for decay, crossing, floor in ((1000, 182.3, 742), (500, 91.2, 371)):
        before, behind = int(crossing), int(crossing) + 1
        assert at(decay, before)[0] >= 1.0 >= at(decay, behind)[0]
        assert Annealing(decay=decay, start=0).at(np.array([floor - 1, floor]))[0] > 0.1 == at(decay, floor)[0]
    assert at(25, 100) == [0.1]  # the decay of the paper's code without its factor of 20
    assert Sampling(temperature=0.5).temperatures(3, 2).tolist() == [0.5, 0.5]  # without one
    assert Annealing().at(np.array([0, 9, 10, 100_000_000])).round(4).tolist() == [1.0, 1.0, 1.1798, 0.1]


@given(st.lists(st.integers(0, 5000), min_size=2, max_size=20), st.floats(1.0, 2000.0), st.floats(1.0, 3.0))
def test_it_never_rises_and_a_larger_decay_never_lowers_it(tokens: list[int], decay: float, factor: float) -> None:
    ordered = np.array(sorted(tokens))
    one, slower = (Annealing(decay=d, start=0).at(ordered) for d in (decay, decay * factor))
    assert (np.diff(one) <= 0).all() and (slower >= one).all()


def test_numbers_out_of_range_are_refused() -> None:
    for changes, message in (
        ({"least": 0.0}, "least=0.0"),
        ({"least": 2.0}, "0 < least <= peak"),
        ({"decay": 0.0}, "decay=0.0"),
        ({"start": -1}, "start=-1"),
    ):
        with pytest.raises(DataError, match=message):
            Annealing(**changes)  # type: ignore[arg-type]


def test_it_multiplies_the_temperature_and_travels() -> None:
    drawn = Sampling(temperature=0.5, annealing=FAST)
    np.testing.assert_array_equal(drawn.temperatures(3, 4), (0.5 * FAST.at(np.arange(3, 7))).astype(np.float32))
    assert sampling_from_wire(sampling_to_wire(drawn)) == drawn
    assert "annealing" not in sampling_to_wire(Sampling())  # what was written before there was any stays as it is
    assert drawn.whole == Sampling(temperature=0.5)


# ---- engines and learner ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [{}, {"temperature": 0.7}, {"top_k": 5, "keep_support": True}])
@pytest.mark.parametrize("kernel", [True, False])
def test_engine_and_learner_are_one_distribution(way: dict[str, Any], kernel: bool) -> None:
    model = model_of(hidden_size=32, num_layers=2)
    asked = [replace(r, first=i % 3) for i, r in enumerate(some(model, 24, **way, annealing=FAST))]
    done = run(NativeEngine(model, kernel=kernel), asked)
    for one, completion in zip(asked, done, strict=True):  # where a rollout goes on, so does the fall of its temperature
        wanted = one.sampling.temperatures(one.first, len(completion.ids))
        np.testing.assert_array_equal(completion.columns[TEMPERATURE].values, wanted)
    batch = pack_rows([(i, row_of(r, c)) for i, (r, c) in enumerate(zip(asked, done, strict=True))], {"group": np.arange(24)})
    mask = batch.token("mask")
    assert len(set(batch.token(TEMPERATURE)[mask].tolist())) == 5 and not batch.token(TEMPERATURE)[~mask].any()
    learner = TorchLearner(model, LearnerSettings(), total_steps=1)
    # a logit over a temperature of 0.14 has seven times the rounding
    assert np.abs(scored(learner, batch) - batch.token("logp_engine")[mask]).max() < 5e-5
    even = replace(batch, tokens={n: c for n, c in batch.tokens.items() if n != TEMPERATURE})
    assert np.abs(scored(learner, even) - batch.token("logp_engine")[mask]).max() > 0.05  # the control


def test_all_engines_draw_the_same_tokens(tmp_path: Path) -> None:
    hub, model = pair(tmp_path / "m", "qwen3", kv_heads=2)
    asked = [request(i, [2 + i, 5], max_new_tokens=4 + i, annealing=FAST if i % 2 else None) for i in range(8)]
    found = [
        run(engine, asked) for engine in (NativeEngine(model), NativeEngine(model, kernel=False), TransformersEngine(hub, 64))
    ]
    for r, *same in zip(asked, *found, strict=True):
        assert len({tuple(c.ids.tolist()) for c in same}) == 1
        for c in same:
            assert (TEMPERATURE in c.columns) == (r.sampling.annealing is not None)


@pytest.mark.parametrize("kernel", [True, False])
def test_rows_that_join_and_leave_keep_their_temperatures(kernel: bool) -> None:
    model = model_of(hidden_size=32)
    mixed = [request(i, [5, 6], seed=i, max_new_tokens=3 + 5 * (i % 3), annealing=FAST if i % 2 else None) for i in range(12)]
    alone = [run(NativeEngine(model, kernel=kernel), [r])[0] for r in mixed]
    for one, beside in zip(alone, run(NativeEngine(model, kernel=kernel, max_batch=3), mixed), strict=True):
        assert one.ids.tolist() == beside.ids.tolist()
        np.testing.assert_allclose(one.logp_engine, beside.logp_engine, atol=1e-5)


def test_at_temperature_0_there_is_nothing_to_anneal() -> None:
    model = model_of(hidden_size=32)
    plain, annealed = (request(0, [5, 6], max_new_tokens=6, temperature=0.0, annealing=a) for a in (None, FAST))
    one, other = run(NativeEngine(model), [plain]), run(NativeEngine(model), [annealed])
    assert one[0].ids.tolist() == other[0].ids.tolist() and not other[0].logp_engine.any()


def test_a_server_refuses() -> None:
    with pytest.raises(ConfigError, match=r"Sampling\.annealing.* a vLLM server takes one for all"):
        request_body(request(1, [5], annealing=FAST), "w", "m", "s")
