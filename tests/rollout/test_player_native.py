"""The player on the native engine: what was sampled is what training will score, however the conversation went."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scripted import Echo, Worlds, posed

from assay.core import Message, Prefill, Rollout, Sampling, samples
from assay.core.protocols import Environment, Step
from assay.rollout import KeepAll, KeepLast, Player
from assay.runtime.engine.native import NativeEngine
from assay.runtime.models.model import init_model
from assay.runtime.settings import DecoderShape
from assay.runtime.text.tokenizer import ChatTemplate, char_tokenizer

SHAPE = DecoderShape(
    hidden_size=32, num_layers=2, num_heads=2, num_kv_heads=1, head_dim=16, intermediate_size=48, max_positions=192
)
TOKENIZER = char_tokenizer("abcdefgh<>+=12 ", ChatTemplate(user="{content}=", tool="{content} "))
STOPS = tuple(int(i) for i in TOKENIZER.encode("aceg12"))


def engine() -> NativeEngine:
    shape = DecoderShape(**{f: getattr(SHAPE, f) for f in SHAPE.__slots__} | {"vocab_size": TOKENIZER.size})
    return NativeEngine(init_model(shape, TOKENIZER, seed=3))


def player(served: NativeEngine, manager: object, limit: int = 12) -> Player:
    sampling = Sampling(max_new_tokens=limit, stop_ids=STOPS)
    return Player(
        engine=served, tokenizer=TOKENIZER, source=Worlds(Echo), sampling=sampling, seed=1, max_turns=4, manager=manager
    )


def contexts() -> list:
    hinted = (Message("user", "1+1"), Message("user", "2"))
    return [
        posed("plain", "1+2"),
        posed("prefix", "1+1", prefill=Prefill("ab", 0.5)),
        posed("hinted", "1+1", messages=hinted),
    ]


@pytest.mark.parametrize("manager", [KeepAll(), KeepLast(1)])
def test_log_probabilities_as_sampled_are_those_of_the_rows(manager: object) -> None:
    served = engine()
    rollouts = asyncio.run(player(served, manager).collect(contexts(), 3))
    assert max(len(r.calls) for r in rollouts) == 4
    rows = [row for r in rollouts for row in samples(r)]
    assert (len(rows) > len(rollouts)) == (manager == KeepLast(1))
    scored = asyncio.run(served.score([row.ids for row in rows]))
    for row, found in zip(rows, scored, strict=True):
        np.testing.assert_allclose(found[row.mask], row.columns["logp_engine"].values[row.mask], atol=1e-5)
        assert row.columns["entropy"].values[row.mask].min() > 0


def ids(rollout: Rollout) -> list[list[int]]:
    return [c.completion.ids.tolist() for c in rollout.calls]


def test_a_rollout_does_not_depend_on_its_company() -> None:
    together = asyncio.run(player(engine(), KeepAll()).collect(contexts(), 3))
    alone = asyncio.run(player(engine(), KeepAll()).collect(contexts()[1:2], 2))
    assert [ids(r) for r in alone] == [ids(r) for r in together[3:5]]


@dataclass
class OneByOne:
    """Passes requests on singly: an engine that cannot be asked for many."""

    engine: NativeEngine

    def __getattr__(self, name: str) -> object:
        if name == "generate_all":
            raise AttributeError(name)
        return getattr(self.engine, name)


def test_one_call_attempts_are_the_same_asked_for_together_and_singly() -> None:
    said = (Message("user", "1+2"),)
    asked = [*contexts(), posed("taught", "1+2", score_messages=said, privileged=said)]
    played = [
        asyncio.run(replace(player(one, KeepAll()), source=Worlds()).collect(asked, 3)) for one in (engine(), OneByOne(engine()))
    ]
    for together, singly in zip(*played, strict=True):
        assert (together.id, together.seed, together.stop) == (singly.id, singly.seed, singly.stop)
        [here], [there] = together.calls, singly.calls
        assert (here.text, here.thought, here.completion.stop) == (there.text, there.thought, there.completion.stop)
        for name in ("prefix", "score_prefix", "privileged_prefix"):
            np.testing.assert_array_equal(getattr(here, name), getattr(there, name))
        np.testing.assert_array_equal(here.completion.ids, there.completion.ids)
        np.testing.assert_array_equal(here.completion.logp_engine, there.completion.logp_engine)


def test_an_environment_that_was_made_to_see_whether_there_is_one_is_played_with() -> None:
    made: list[Echo] = []
    source = Worlds(lambda: made.append(Echo()) or made[-1])
    rollouts = asyncio.run(replace(player(engine(), KeepAll()), source=source).collect(contexts(), 2))
    assert len(made) == len(rollouts) == 6
    assert sum(world.steps for world in made) == sum(len(call.results) for r in rollouts for call in r.calls)


@pytest.mark.parametrize("manager", [KeepAll(), KeepLast(1)])
def test_a_world_that_breaks_once_changes_no_bit(manager: object) -> None:
    @dataclass
    class Breaking(Echo):
        async def step(self, action: str) -> Step:
            if self.steps == 2:
                raise OSError("the world broke")
            return await super().step(action)

    worlds = [Breaking(), Echo()]

    def alone(make: Callable[[], Environment]) -> Rollout:
        (rollout,) = asyncio.run(replace(player(engine(), manager), source=Worlds(make)).collect(contexts()[:1], 1))
        return rollout

    calm, again = alone(Echo), alone(lambda: worlds.pop(0))
    assert not worlds
    assert len(calm.calls) == 4
    for a, b in zip(samples(calm), samples(again), strict=True):
        assert (a.ids.tolist(), a.mask.tolist()) == (b.ids.tolist(), b.mask.tolist())
        assert a.columns["logp_engine"].values.tobytes() == b.columns["logp_engine"].values.tobytes()
