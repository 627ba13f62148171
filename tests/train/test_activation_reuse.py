"""Runs whose gradient passes take over what sampling computed: the same runs, to the bit, as those that compute it again."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from test_stale_engine import lagging, opened, series
from tiny_runs import SHAPE, tiny

from assay.core.errors import ConfigError
from assay.core.rollout import Sampling
from assay.guide import Compose
from assay.objective.methods import grpo
from assay.runtime import Native, machine
from assay.runtime.compiled.activation_cache import CachedActivations
from assay.runtime.compiled.training import CompiledPasses
from assay.runtime.engine.native import NativeEngine
from assay.runtime.settings import AdamW, LearnerSettings
from assay.train import loop, models
from assay.train.driver import train
from assay.train.reinforce_runner import ReinforceRunner
from assay.train.run import Run
from assay_tasks import KeyValue


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    """A run sets torch's threads; this puts the number back."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Tokens of gradient passes, and those of them that were not computed again."""
    seen: Counter[str] = Counter()
    forward = CompiledPasses.forward

    def counting(self: CompiledPasses, *given: Any) -> Any:
        states, tape = forward(self, *given)
        if tape is not None:
            seen["nodes"] += self.nodes
            seen["recalled"] += self.recalled
        return states, tape

    monkeypatch.setattr(CompiledPasses, "forward", counting)
    return seen


def recorded(folder: Path) -> list[Any]:
    """Metrics outside time/, evaluations and rollouts of a run."""
    lines = [json.loads(line) for name in ("metrics", "evals", "rollouts") for line in (folder / f"{name}.jsonl").open()]
    for line in lines:
        line["metrics"] = {name: x for name, x in line.get("metrics", {}).items() if not name.startswith("time/")}
    return lines


def both(run: Run, folder: Path, counted: Counter[str]) -> tuple[int, int]:
    """Of a run that recalls: tokens that it did not compute again, and all of its gradient passes; it ends as one that computes
    everything: with the same weights, optimiser, sampled ids, rollouts and metrics.
    """
    found: list[tuple[int, int]] = []
    for recall in (512, 0):
        counted.clear()
        assert train(replace(run, engine=Native(recall=recall)), folder / str(recall)).finished
        found.append((counted["recalled"], counted["nodes"]))
    assert found[1] == (0, found[0][1])
    assert recorded(folder / "512") == recorded(folder / "0")
    ended = [json.loads((folder / str(recall) / "done.json").read_text()) for recall in (512, 0)]
    assert ended[0] == ended[1]
    return found[0]


def coins(**changes: Any) -> Run:
    """Rewards by the toss of a coin: there is something to learn in every step."""
    return lagging(0, **{"steps": 4, **changes})


def test_a_step_computes_no_token_twice(tmp_path: Path, counted: Counter[str]) -> None:
    recalled, nodes = both(coins(), tmp_path, counted)
    assert recalled == nodes > 4 * 16


def test_a_run_of_several_stages_with_replay(tmp_path: Path, counted: Counter[str]) -> None:
    """Nobody sampled what a warm-up learns from, nor with these weights what is replayed."""
    recalled, nodes = both(tiny(), tmp_path, counted)
    assert 0 < recalled < nodes


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"epochs": 2}, {"minibatches": 2}, {"epochs": 2, "minibatches": 2}])
def test_of_several_updates_the_first_recalls(tmp_path: Path, counted: Counter[str], changes: dict[str, int]) -> None:
    recalled, nodes = both(coins(**changes), tmp_path, counted)
    updates = changes.get("epochs", 1) * changes.get("minibatches", 1)
    assert 0.5 * nodes / updates < recalled < 1.5 * nodes / updates


def test_a_term_that_reads_a_reference(tmp_path: Path, counted: Counter[str]) -> None:
    """The reference has other weights from the first update on, and follows nothing."""
    recalled, nodes = both(coins(objective=grpo(kl=0.1), epochs=2), tmp_path, counted)
    assert 0 < recalled < nodes
    assert max(series(tmp_path / "512", "kl/kl_ref")) > 0.0


def test_two_threads(tmp_path: Path, counted: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_POLICY_KNOWN", True)  # whatever the environment says of threads that wait
    recalled, nodes = both(replace(coins(), threads=2), tmp_path, counted)
    assert recalled == nodes > 0


def test_groups_that_are_left_out(tmp_path: Path, counted: Counter[str]) -> None:
    run = coins(composer=Compose(drop_zero_signal=True), group_size=2, steps=6)
    recalled, nodes = both(run, tmp_path, counted)
    assert recalled == nodes > 0
    dropped = series(tmp_path / "512", "waste/rows_filtered")
    assert max(dropped) > 0.0 and min(dropped) < 1.0


def test_small_micro_batches(tmp_path: Path, counted: Counter[str]) -> None:
    settings = LearnerSettings(optimizer=AdamW(lr=1e-2), micro_tokens=32)
    recalled, nodes = both(coins(learner=settings), tmp_path, counted)
    assert recalled == nodes > 0


def test_conversations(tmp_path: Path, counted: Counter[str]) -> None:
    """Turns of which one goes on from the other, with what the environment says between them."""
    model = models.Scratch(shape=replace(SHAPE, max_positions=64))
    run = replace(coins(), model=model, tasks=KeyValue(levels=(1,)), max_turns=3, sampling=Sampling(max_new_tokens=4))
    recalled, nodes = both(run, tmp_path, counted)
    assert recalled == nodes > 0


def test_without_a_kernel_nothing_is_recalled(tmp_path: Path, counted: Counter[str]) -> None:
    settings = LearnerSettings(optimizer=AdamW(lr=1e-2), kernel=False)
    assert both(coins(learner=settings, steps=2), tmp_path, counted) == (0, 0)


def left_at_updates(run: Run, monkeypatch: pytest.MonkeyPatch) -> tuple[list[CachedActivations], CachedActivations]:
    """What is on the cache as each of three steps updates the weights, and behind the last."""
    s = opened(replace(run, prove_weights=False))
    engine = s.parts.stale.engine if s.parts.stale else s.parts.engine
    assert isinstance(engine, NativeEngine) and engine.activation_cache is not None
    cache, update, found = engine.activation_cache, loop.update, list[CachedActivations]()

    def noting(s: ReinforceRunner, batch: Any) -> Any:
        found.append(cache.remaining())
        return update(s, batch)

    async def walk() -> None:
        await s.parts.serve()
        for _ in range(3):
            await loop.step(s)
            s.parts.step += 1

    monkeypatch.setattr(loop, "update", noting)
    asyncio.run(walk())
    return found, cache.remaining()


def test_attempts_are_there_until_new_weights_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four groups of four, of prompts of three tokens or more, with answers of five."""
    found, after = left_at_updates(coins(), monkeypatch)
    assert [left.paths for left in found] == [16] * 3
    assert all(16 * (3 + 4) <= left.tokens <= 16 * (6 + 4) for left in found)
    assert (after.paths, after.tokens) == (0, 0)


def test_a_sampler_that_lags_leaves_nothing(tmp_path: Path, counted: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found, after = left_at_updates(lagging(2), monkeypatch)
    assert [*found, after] == [(0, 0, 0)] * 4
    recalled, nodes = both(lagging(2), tmp_path, counted)
    assert recalled == 0 < nodes


@pytest.mark.parametrize("recall", [-1, -512])
def test_less_than_nothing_is_refused(recall: int) -> None:
    with pytest.raises(ConfigError, match=rf"Native\.recall={recall}; use a number of MiB, or 0 to keep nothing"):
        Native(recall=recall)
