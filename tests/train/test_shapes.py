"""What the records promise, through the real loop: tools, compaction, other token columns, two weight versions in one rollout."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live import coin_toss, rollouts, session, spied, walk
from tiny_runs import SHAPE, only_rl, warm_up

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.manifest import manifest_of
from assay.core.protocols import EngineInfo, Request, SwapMode
from assay.core.rollout import Completion, Sampling, Span, Stop, ids_of
from assay.objective.loss.likelihood import Nll
from assay.objective.methods import areal, grpo
from assay.rollout.context import KeepLast
from assay.runtime.compiled import decode_path
from assay.train import models
from assay.train.driver import train
from assay.train.run import Evaluation, Run
from assay_tasks import KeyValue


class Wrapped:
    """An engine that passes everything on to another one."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine

    async def generate(self, request: Request) -> Completion:
        return await self.engine.generate(request)

    async def abort(self, ids: Any) -> None:
        await self.engine.abort(ids)

    async def score(self, rows: Any) -> Any:
        return await self.engine.score(rows)

    async def swap(self, manifest: Any, mode: SwapMode = SwapMode.DRAIN) -> None:
        await self.engine.swap(manifest, mode)

    async def checksums(self) -> Any:
        return await self.engine.checksums()

    def info(self) -> EngineInfo:
        return self.engine.info()


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[Batch]:
    """The batches that the learner is given."""
    return spied(monkeypatch)


# ---- tools ----------------------------------------------------------------------------------------------------------------


def tool_run(**changes: Any) -> Run:
    run = replace(
        only_rl(steps=3, **changes),
        model=models.Scratch(shape=replace(SHAPE, max_positions=64)),
        tasks=KeyValue(levels=(1, 2)),
        sampling=Sampling(max_new_tokens=5),
        evaluation=Evaluation(every=0, final_per_level=2),
    )
    return run


@dataclass
class LooksUp(Wrapped):
    """Says ``?KEY`` with the last key that it was told, twice, and then a number: a policy that uses its tool."""

    engine: Any
    tokenizer: Any

    async def generate(self, request: Request) -> Completion:
        said = self.tokenizer.decode(request.prompt)
        turns = int(request.id.partition("#")[2])
        key = said.split(">")[-2][-2:]
        ids = ids_of([*self.tokenizer.encode("12" if turns == 2 else f"?{key}"), self.tokenizer.eos])
        logp = (await self.engine.score([np.concatenate([request.prompt, ids])]))[0][len(request.prompt) :]
        spans = (Span(self.engine.info().version, 0, len(ids)),)
        return Completion(ids=ids, logp_engine=logp, spans=spans, stop=Stop.DONE, sampling=request.sampling)


def test_the_tool_environment_runs_from_warm_up_to_report(tmp_path: Path, batches: list[Batch]) -> None:
    run = tool_run()
    outcome = train(replace(run, stages=(warm_up(steps=4, levels=(1,)), *run.stages)), tmp_path / "run")
    assert (outcome.finished, outcome.step, len(batches)) == (True, 7, 7)


def test_no_loss_on_what_the_tool_says(batches: list[Batch]) -> None:
    run = coin_toss(tool_run())
    s = session(run)
    s = session(run, lambda engine: LooksUp(engine, s.parts.tokenizer))
    result = walk(s, 2)[0]
    assert all(len(r.calls) == 3 for r in rollouts(result))
    batch, played = batches[0], rollouts(result)
    assert len(batch) == len(played)  # one row per attempt: each call extends the last
    mask, ids, call = batch.token("mask"), batch.token("ids"), batch.token("call")
    assert (mask == (call >= 0)).all()
    for row, rollout in zip(np.split(np.arange(len(ids)), batch.offsets[1:-1]), played, strict=True):
        sampled = np.concatenate([c.completion.ids for c in rollout.calls])
        assert (ids[row][mask[row]] == sampled).all()
        told = "".join(result.content for c in rollout.calls for result in c.results)
        told_ids = ids[row][~mask[row]][len(rollout.calls[0].prefix) :]
        assert s.parts.tokenizer.decode(told_ids) == told != ""
    assert result.metrics["loss/total"] != 0.0 and s.parts.learner.publish().version == 2


def test_a_compacted_conversation_gives_several_rows_and_trains(batches: list[Batch]) -> None:
    run = coin_toss(tool_run(objective=grpo(kl=0.01)))
    s = session(run)
    s = session(run, lambda engine: LooksUp(engine, s.parts.tokenizer), manager=KeepLast(1))
    result = walk(s)[0]
    batch, played = batches[0], rollouts(result)
    assert len(batch) == 2 * len(played)  # the third call lost the first turn: it starts a row of its own
    assert (np.bincount(batch.rows["rollout"]) == 2).all()
    assert batch.counts.rollouts == len(played)
    assert int(batch.token("mask").sum()) == sum(r.length for r in played) == batch.counts.tokens
    assert (batch.rollouts["tokens"] == [r.length for r in played]).all()
    assert s.parts.learner.publish().version == 1 and s.parts.proved


# ---- columns of the user's own ------------------------------------------------------------------------------------------


class Routed(Wrapped):
    """Brings ``routing``: for each token and layer the ids of k experts, here digits of the token's id."""

    async def generate(self, request: Request) -> Completion:
        found = await self.engine.generate(request)
        column = TokenColumn("routing", routing(found.ids), "engine", self.engine.info().version)
        return replace(found, columns={**found.columns, "routing": column})


def routing(ids: Any) -> Any:
    return (np.asarray(ids)[:, None, None] // np.array([[1, 2], [4, 8], [16, 32]]) % 2).astype(np.int16)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByRoute(Nll):
    """Weighs the likelihood of a token by its first expert: reads the column inside the gradient pass."""

    @property
    def needs(self) -> tuple[str, ...]:
        return ("routing",)

    def apply(self, view: Any) -> Any:
        routes = view.batch.token("routing")
        return super(ByRoute, self).apply(view) * float(routes[view.index].mean())


def test_a_column_of_layers_and_experts_travels_to_the_loss(batches: list[Batch]) -> None:
    objective = replace(grpo(kl=0.0), brings=("routing",)) + ByRoute(coef=0.1)
    s = session(coin_toss(only_rl(steps=2, objective=objective)), Routed)
    assert "routing" in s.parts.plan.columns
    result = walk(s, 2)[0]
    column = batches[0].tokens["routing"]
    assert (column.trailing, column.dtype, column.version) == ((3, 2), np.dtype(np.int16), 0)
    mask, ids = batches[0].token("mask"), batches[0].token("ids")
    assert (column.values[mask] == routing(ids[mask])).all() and not column.values[~mask].any()
    assert batches[1].tokens["routing"].version == 1
    assert result.metrics["loss/byroute"] > 0.0


# ---- two weight versions in one rollout ---------------------------------------------------------------------------------


class SwapsMidway(Wrapped):
    """After two decode steps of the first generation other weights are served, and running rows go on under them."""

    def __init__(self, engine: Any) -> None:
        super().__init__(engine)
        self.swapping: asyncio.Task[None] | None = None

    async def generate(self, request: Request) -> Completion:
        if self.swapping is None:
            self.swapping = asyncio.ensure_future(self.other_weights())
        return await self.engine.generate(request)

    async def other_weights(self) -> None:
        while self.engine.counters["steps"] < 2:
            await asyncio.sleep(0)
        arrays = {n: np.array(t.numpy()) for n, t in self.engine.weights.tensors.items() if n != "lm_head.weight"}
        rng = np.random.default_rng(0)
        noisy = {n: (a + 0.05 * rng.standard_normal(a.shape)).astype(np.float32) for n, a in arrays.items()}
        await self.engine.swap(manifest_of(41, noisy), SwapMode.KEEP)


def test_a_rollout_of_two_weight_versions_trains(batches: list[Batch], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode_path, "TOKENS", 1)
    s = session(coin_toss(only_rl(steps=2, objective=areal())), SwapsMidway)
    result = walk(s)[0]
    mixed = [r for r in rollouts(result) if len({span.version for c in r.calls for span in c.completion.spans}) == 2]
    assert mixed, "the swap came too late to be seen"
    batch = batches[0]
    versions, mask, engine = batch.token("weight_version"), batch.token("mask"), batch.token("logp_engine")
    assert set(versions[mask].tolist()) == {0, 41}
    old = batch.token("logp_old")
    assert np.abs(old - engine)[mask & (versions == 0)].max() < 1e-4  # the learner still holds version 0
    assert np.abs(old - engine)[mask & (versions == 41)].max() > 1e-2
    assert result.metrics["engine/mismatch_k3"] > 0.0
    assert np.isfinite(result.metrics["loss/total"]) and s.parts.learner.publish().version == 1


def test_an_environment_that_breaks_is_an_infrastructure_fault_and_teaches_nothing(batches: list[Batch]) -> None:
    @dataclass(frozen=True)
    class Breaks(KeyValue):
        def environment(self, world: Any) -> Any:
            if world.index % 2:
                raise OSError("the store is down")
            return super().environment(world)

    run = replace(tool_run(), tasks=Breaks(levels=(1,)))
    result = walk(session(run))[0]
    broken = [(r, x) for g in result.groups for r, x in zip(g.rollouts, g.scores, strict=True) if r.stop is Stop.ERROR]
    assert broken and all(not x.valid and "the store is down" in x.info["error"] for _, x in broken)
    assert [b.counts.rollouts for b in batches] == [len(rollouts(result)) - len(broken)]
    assert result.metrics["fault/infra"] == len(broken) / len(rollouts(result))


def test_a_step_without_anything_to_learn_from_leaves_the_weights() -> None:
    @dataclass(frozen=True)
    class Down(KeyValue):
        def environment(self, world: Any) -> Any:
            raise OSError("the store is down")

    s = session(replace(tool_run(), tasks=Down(levels=(1,))))
    before = s.parts.learner.state_digest()
    result = walk(s)[0]
    assert s.parts.learner.state_digest() == before
    assert result.metrics["fault/rate"] == 1.0 and result.metrics["proof/state"] == 0.0
