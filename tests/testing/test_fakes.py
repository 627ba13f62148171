"""Fakes behave like the real ones, and each planted fault is visible to a proof of weights."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.core.batch import pack
from assay.core.canon import FrozenMap
from assay.core.columns import TokenColumn
from assay.core.errors import ConfigError, DataError, EngineError
from assay.core.manifest import Manifest, manifest_of
from assay.core.plan import Forward, Plan
from assay.core.protocols import Engine, Learner, Request, Tokenizer
from assay.core.rollout import Sampling, Stop, ids_of
from assay.core.task import Message, Task
from assay.testing import (
    BaseWeights,
    CharCodec,
    FakeLearner,
    ScriptedEngine,
    StaleModel,
    StaleTensor,
    WrongTiedHead,
    graded_group,
)

CODEC = CharCodec("abcdef")
ROWS = [ids_of([2, 3, 4, 5]), ids_of([6, 7])]


def ask(engine: ScriptedEngine, prompt: str = "abc", seed: int = 0, **sampling: Any) -> Any:
    wanted = Sampling(**{"stop_ids": (1,), "max_new_tokens": 8} | sampling)
    return asyncio.run(engine.generate(Request(id="r", prompt=CODEC.encode(prompt), seed=seed, sampling=wanted)))


# ---- tokenizer


def test_codec() -> None:
    assert CODEC.decode(CODEC.encode("fade")) == "fade"
    assert CODEC.decode([0, 1, 2]) == "a"
    assert (CODEC.size, CODEC.eos) == (8, 1)
    turns = [Message("user", "a"), Message("assistant", "b"), Message("tool", "c")]
    assert CODEC.render(turns).tolist() == [2, 3, 1, 4]
    with pytest.raises(DataError, match=r"\['x'\] of 'xa' are not in the alphabet"):
        CODEC.encode("xa")
    with pytest.raises(ConfigError, match="twice"):
        CharCodec("aa")
    tokenizer: Tokenizer = CODEC
    assert tokenizer.size == 8


# ---- engine


def test_an_answer_is_text_or_ids() -> None:
    done = ask(ScriptedEngine(lambda a: a.prompt[::-1], CODEC))
    assert (done.ids.tolist(), done.stop) == ([4, 3, 2, 1], Stop.DONE)
    np.testing.assert_allclose(done.logp_engine, -np.log(8), rtol=1e-6)
    raw = ask(ScriptedEngine(lambda a: [5, 5, 1, 5], CODEC))
    assert (raw.ids.tolist(), raw.stop) == ([5, 5, 1], Stop.DONE)
    cut = ask(ScriptedEngine(lambda a: "abcdef", CODEC), max_new_tokens=3)
    assert (cut.ids.tolist(), cut.stop) == ([2, 3, 4], Stop.LENGTH)
    text = ask(ScriptedEngine(lambda a: "abcdef", CODEC), stop=("cd", "x"))
    assert (CODEC.decode(text.ids), text.stop) == ("abcd", Stop.DONE)
    nothing = ask(ScriptedEngine(lambda a: [], CODEC))
    assert (len(nothing.ids), nothing.spans, nothing.stop) == (0, (), Stop.LENGTH)


def test_none_samples_from_the_weights_by_the_requests_seed() -> None:
    bias = np.log(np.array([1e-9, 0.25, 0.5, 0.25, 1e-9, 1e-9, 1e-9, 1e-9], np.float32))
    weights = {"bias": bias, "model.embed_tokens.weight": np.zeros((8, 2), np.float32)}
    engine = ScriptedEngine(lambda a: None, CODEC, weights)
    firsts = np.bincount([int(ask(engine, seed=s, max_new_tokens=1).ids[0]) for s in range(1000)], minlength=8)
    assert firsts[1:4].sum() == 1000
    assert abs(firsts[2] - 500) < 5 * 250**0.5
    one, two = ask(engine, seed=3), ask(engine, seed=3)
    assert one.ids.tolist() == two.ids.tolist()
    np.testing.assert_allclose(one.logp_engine, np.log([1e-9, 0.25, 0.5, 0.25])[one.ids], rtol=1e-5)


def test_a_prompt_without_room_is_refused() -> None:
    with pytest.raises(ConfigError, match="3 ids and 8 new ones exceed the context of 10"):
        ask(ScriptedEngine(lambda a: "a", CODEC, context=10))


def test_a_script_sees_weights_and_version() -> None:
    learner = FakeLearner(CODEC.size)
    engine = ScriptedEngine(lambda a: "ab"[a.version] if a.weights["bias"].sum() == 0 else "c", CODEC)
    assert CODEC.decode(ask(engine).ids) == "a"
    learner.version = 1
    asyncio.run(engine.swap(learner.publish()))
    done = ask(engine)
    assert CODEC.decode(done.ids) == "b"
    assert done.spans[0].version == 1
    asyncio.run(engine.abort(["r"]))
    assert len(engine.requests) == 2
    with pytest.raises(EngineError, match="version 2 is no full set of arrays"):
        asyncio.run(engine.swap(Manifest(version=2, tensors={})))


# ---- learner


class Loss:
    def __init__(self, **columns: Any) -> None:
        self.columns = columns

    def prepare(self, batch: Any) -> Any:
        return batch.with_tokens(*(TokenColumn(n, make(batch)) for n, make in self.columns.items()))


def batch() -> Any:
    task = Task(id="t", domain="d", arm="a", level=1, split="train", index=0, public=FrozenMap({"prompt": "\x02"}))
    return pack([graded_group(task, [1.0, 0.0], texts={0: "\x03\x03", 1: "\x04"})])


def test_the_learner_raises_what_is_rewarded() -> None:
    learner: Learner = FakeLearner(8)
    before = learner.score(ROWS)
    loss: Any = Loss(advantage=lambda b: np.where(b.token("ids") == 3, 1.0, -1.0))
    stats = learner.step(batch(), Plan(), loss)
    after = learner.score(ROWS)
    assert after[0][1] > before[0][1]  # id 3 was rewarded
    assert after[0][2] < before[0][2]  # id 4 was not
    assert before[0][0] == after[0][0] == 0.0
    assert learner.publish().version == 1
    assert stats.metrics["grad/norm"] > 0


def test_the_gradient_is_the_one_of_the_log_likelihood() -> None:
    learner = FakeLearner(8, lr=1e-4)
    loss: Any = Loss()
    first = learner.step(batch(), Plan(), loss).metrics
    second = learner.step(batch(), Plan(), loss).metrics
    # bias moves by lr g, the row sum of the tied head by 2 * 0.1 lr g
    assert first["loss/total"] - second["loss/total"] == pytest.approx(1.2e-4 * first["grad/norm"] ** 2, rel=0.05)


def test_annotate_adds_the_column_asked_for() -> None:
    learner = FakeLearner(8)
    column = learner.annotate(batch(), Forward("logp_old")).token("logp_old")
    assert column[0] == 0.0
    assert column[1] == learner.score([ids_of([2, 3])])[0][1]
    both = learner.annotate(batch(), Forward("logp_old"), Forward("logp_ref", "ref"))
    assert both.token("logp_old").tolist() == both.token("logp_ref").tolist() == column.tolist()


def test_save_and_load(tmp_path: Path) -> None:
    learner, other = FakeLearner(8), FakeLearner(8, seed=1)
    loss: Any = Loss()
    learner.step(batch(), Plan(), loss)
    learner.save(tmp_path / "x")
    assert other.state_digest() != learner.state_digest()
    other.load(tmp_path / "x")
    assert other.state_digest() == learner.state_digest()
    assert other.publish().digest == learner.publish().digest


def test_engine_and_learner_agree_after_a_swap() -> None:
    learner, engine = FakeLearner(8), ScriptedEngine(lambda a: "a", CODEC)
    asyncio.run(engine.swap(learner.publish()))
    for ours, theirs in zip(learner.score(ROWS), asyncio.run(engine.score(ROWS)), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert wrong_tensors(engine, learner.publish()) == []


# ---- planted faults


def wrong_tensors(engine: Engine, manifest: Manifest) -> list[str]:
    """The tensors whose served digest is not the published one; a tied head must be the embedding."""
    served = asyncio.run(engine.checksums())
    assert served is not None
    wanted = {n: t.digest for n, t in manifest.tensors.items()}
    wanted.setdefault("lm_head.weight", wanted["model.embed_tokens.weight"])
    return sorted(n for n, digest in wanted.items() if served[n] != digest)


EMBED, HEAD = "model.embed_tokens.weight", "lm_head.weight"


@pytest.mark.parametrize(
    ("plant", "after_two", "after_three"),
    [
        (lambda e: StaleTensor(e, "bias"), ["bias"], ["bias"]),
        (StaleModel, ["bias", HEAD, EMBED], ["bias", HEAD, EMBED]),
        (BaseWeights, ["bias", HEAD, EMBED], ["bias", HEAD, EMBED]),
        (WrongTiedHead, [HEAD], [HEAD]),
        (lambda e: StaleModel(e, healthy=2), [], ["bias", HEAD, EMBED]),
    ],
)
def test_each_fault_shows_in_the_checksums(plant: Any, after_two: list[str], after_three: list[str]) -> None:
    learner = FakeLearner(8)
    inner = ScriptedEngine(lambda a: "a", CODEC)
    engine: Engine = plant(inner)
    loss: Any = Loss()
    for wrong in ([], after_two, after_three):
        learner.step(batch(), Plan(), loss)
        asyncio.run(engine.swap(learner.publish()))
        assert wrong_tensors(engine, learner.publish()) == wrong
        assert engine.info().version == learner.version
    first, second = asyncio.run(engine.score(ROWS)), asyncio.run(inner.score(ROWS))
    np.testing.assert_array_equal(first[0], second[0])
    request = Request(id="r", prompt=ids_of([2]), seed=0, sampling=Sampling(stop_ids=(1,)))
    assert asyncio.run(engine.generate(request)).ids.tolist() == [2, 1]
    asyncio.run(engine.abort(["r"]))


def test_stale_and_base_serve_what_they_say() -> None:
    learner = FakeLearner(8)
    loss: Any = Loss()
    stale, base = StaleModel(ScriptedEngine(lambda a: "a", CODEC)), BaseWeights(ScriptedEngine(lambda a: "a", CODEC))
    manifests: list[Manifest] = []
    for _ in range(3):
        learner.step(batch(), Plan(), loss)
        manifests.append(learner.publish())
        asyncio.run(stale.swap(manifests[-1]))
        asyncio.run(base.swap(manifests[-1]))
    assert wrong_tensors(stale, manifests[1]) == []
    assert wrong_tensors(base, manifests[0]) == []


def test_faults_that_cannot_be_planted_are_refused() -> None:
    engine = ScriptedEngine(lambda a: "a", CODEC)
    for make in (lambda: StaleModel(engine, healthy=0), lambda: StaleTensor(engine, "bias", healthy=0)):
        with pytest.raises(ConfigError, match="healthy=0"):
            make()
    with pytest.raises(ConfigError, match="carries no arrays"):
        asyncio.run(StaleModel(engine).swap(Manifest(version=1, tensors={})))
    weights = FakeLearner(8).weights
    for fault, arrays, told in [
        (StaleTensor(engine, "biass"), weights, "no tensor 'biass'"),
        (WrongTiedHead(engine), {**weights, HEAD: weights[EMBED]}, "no tied head"),
    ]:
        asyncio.run(fault.swap(manifest_of(1, arrays)))
        with pytest.raises(ConfigError, match=told):
            asyncio.run(fault.swap(manifest_of(2, arrays)))


def test_perturbed_weights_of_the_fake_learner_differ_in_every_weight_and_leave_none_changed() -> None:
    learner = FakeLearner(8)
    before, scores = learner.state_digest(), learner.score(ROWS)
    with learner.perturbed_weights() as other:
        told = other.effects(ROWS)
        assert learner.publish() == other.manifest
        assert all(other.manifest.tensors[n] != info for n, info in FakeLearner(8).publish().tensors.items())
        assert told.keys() == other.manifest.tensors.keys() and all(np.abs(d).max() > 1e-3 for d in told.values())
        noisy = learner.score(ROWS)
    assert learner.state_digest() == before
    assert not np.array_equal(scores[0], noisy[0])
