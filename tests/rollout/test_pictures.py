"""Pictures in conversations: named in messages, requests, calls and checkpoints; refused by who cannot see them."""

import asyncio
import json
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from assay.core import Completion, Message, Rollout, Sampling, Stop, Task, ids_of, samples
from assay.core.batch import pack
from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError
from assay.core.group import Draw, Group
from assay.core.media import Album, Media, media_of, prefix_key
from assay.core.protocols import AskPolicy, Conversation, Environment, Obs, Request, Step
from assay.core.sample import extends
from assay.core.score import Score
from assay.core.task import Context, TaskView, media_in
from assay.core.wire import rollout_from_wire, rollout_to_wire, task_from_wire, task_to_wire
from assay.guide import Recent
from assay.rollout import KeepLast, Player
from assay.runtime.engine.native import NativeEngine
from assay.runtime.models.model import init_model
from assay.runtime.settings import DecoderShape
from assay.runtime.text.tokenizer import char_tokenizer
from assay.testing import CharCodec, ContractError, ScriptedEngine, check_environment
from assay_tasks import KeyValue
from assay_tasks.keyvalue import Store

CODEC = CharCodec("".join(chr(i) for i in range(32, 127)))


def drawn(number: int) -> Any:
    """A picture of a number of dots."""
    pixels = np.zeros((4, 6, 3), np.uint8)
    pixels[np.arange(number) // 6, np.arange(number) % 6] = 255
    return pixels


@dataclass(frozen=True)
class Dots(KeyValue):
    """The store, which shows a picture of its calls left beside each answer."""

    album: Album = field(default_factory=Album)
    lost: bool = False

    @property
    def pictures(self) -> Album:
        return Album() if self.lost else self.album

    def environment(self, world: TaskView) -> Environment:
        return Screen(world, self.album)


class Screen(Store):
    def __init__(self, world: TaskView, album: Album) -> None:
        super().__init__(world)
        self._album = album

    async def start(self) -> Obs:
        await super().start()
        return Obs((self._shown("see"),))

    async def step(self, action: str) -> Step:
        step = await super().step(action)
        return step if step.done else replace(step, obs=Obs(tuple(self._shown(m.content) for m in step.obs.messages)))

    def _shown(self, text: str) -> Message:
        return Message("tool", f"{text} <image>", (self._album.add(drawn(self._left)),))


SOURCE = Dots()
TASK = KeyValue().task("keyvalue", 2, "train", 0)
SAID = [m.content for m in KeyValue().trace(TASK, 0.0, np.random.default_rng(0)) if m.role == "assistant"]


def played(media: tuple[str, ...] = ("image",), **changed: Any) -> tuple[ScriptedEngine, Rollout]:
    left = list(SAID)
    engine = ScriptedEngine(lambda ask: left.pop(0), CODEC, media=media)
    world = TASK.public_view()
    fields = {"source": SOURCE, "sampling": Sampling(max_new_tokens=8, stop_ids=(1,)), "seed": 0, **changed}
    player = Player(engine=engine, tokenizer=CODEC, **fields)
    (rollout,) = asyncio.run(player.collect([Context(key="c", group="c", task=world, messages=world.messages)], 1))
    return engine, rollout


def native() -> NativeEngine:
    tokenizer = char_tokenizer("0123456789")
    shape = DecoderShape(
        hidden_size=16,
        num_layers=1,
        num_heads=2,
        num_kv_heads=1,
        head_dim=8,
        intermediate_size=16,
        max_positions=32,
        vocab_size=tokenizer.size,
    )
    return NativeEngine(init_model(shape, tokenizer, seed=0))


SHOWN = [media_of(drawn(n)) for n in (4, 3, 2)]


def test_each_call_and_request_names_the_pictures_of_its_prefix() -> None:
    engine, rollout = played()
    wanted = [tuple(SHOWN[: i + 1]) for i in range(3)]
    assert [c.media for c in rollout.calls] == wanted == [r.media for r in engine.requests]
    assert rollout.stop is Stop.DONE
    assert all(np.array_equal(SOURCE.pictures.pixels(m.digest), drawn(n)) for m, n in zip(SHOWN, (4, 3, 2), strict=True))


def test_pictures_go_with_the_turns_that_show_them() -> None:
    _, rollout = played(manager=KeepLast(n=1))
    assert [c.media for c in rollout.calls] == [(SHOWN[0],), tuple(SHOWN[:2]), (SHOWN[0], SHOWN[2])]

    class Fresh:
        async def rewrite(self, conversation: Conversation, ask: AskPolicy) -> Conversation:
            await ask(conversation, [Message("user", "<image>?", (SHOWN[2],))])
            return conversation.restart([])

    SAID.insert(1, "x")
    SAID.insert(3, "y")
    try:
        _, rollout = played(manager=Fresh())
    finally:
        SAID.remove("x")
        SAID.remove("y")
    assert [c.media for c in rollout.calls][1:3] == [(*SHOWN[:2], SHOWN[2]), (SHOWN[0],)]


def test_a_rollout_with_pictures_comes_back_from_a_checkpoint() -> None:
    _, rollout = played()
    scores = tuple(Score(components={"correct": x}) for x in (1.0, 0.0))
    both = (rollout, replace(rollout, id="c/1"))
    group = Group(key="c", task=TASK, draw=Draw("keyvalue", 2, 1.0), rollouts=both, scores=scores)
    replay = Recent(capacity=4).build(0)
    replay.put([group], 0)
    again = Recent(capacity=4).build(0)
    again.load_state_dict(json.loads(json.dumps(replay.state_dict())))
    (back,) = again.sample(1)
    assert [c.media for c in back.rollouts[0].calls] == [c.media for c in rollout.calls]
    posed = replace(rollout.context, messages=(Message("user", "<image>", (SHOWN[0],)),))
    assert rollout_from_wire(rollout_to_wire(replace(rollout, context=posed))).context.messages == posed.messages
    plain = rollout_to_wire(replace(rollout, calls=()))
    assert plain["context"]["messages"] == [["user", TASK.public["prompt"]]]


def test_a_task_may_show_pictures() -> None:
    shown = {
        "role": "user",
        "content": "<image> how many?",
        "media": [{"kind": "image", "digest": SHOWN[0].digest, "size": [4, 6, 3]}],
    }
    task = Task(id="t", domain="d", arm="a", level=1, split="train", index=0, public=FrozenMap({"messages": [shown]}))
    assert media_in(task.public_view().messages) == (SHOWN[0],)
    assert task_from_wire(task_to_wire(task)).public_view().messages == task.public_view().messages


def test_calls_extend_one_another_with_the_same_pictures_only() -> None:
    _, rollout = played()
    first, second, _ = rollout.calls
    assert extends(second, first)
    assert not extends(replace(second, media=(SHOWN[1], SHOWN[1])), first)
    assert len(samples(rollout)) == 1
    other = replace(rollout, calls=(first, replace(second, media=(SHOWN[2],))))
    assert len(samples(other)) == 2


def test_a_batch_cannot_carry_them_yet() -> None:
    _, rollout = played()
    group = Group(
        key="c", task=TASK, draw=Draw("keyvalue", 2, 1.0), rollouts=(rollout,), scores=(Score(components={"correct": 1.0}),)
    )
    with pytest.raises(DataError, match="rollout c/0 shows pictures, which a batch cannot carry"):
        pack([group])


def test_a_policy_may_read_their_placeholders() -> None:
    """Requests are of text then, calls name the pictures and say that nobody saw them, and a batch carries the rows."""
    engine, rollout = played(media=(), pictures="placeholder")
    _, sighted = played()
    assert [r.media for r in engine.requests] == [()] * 3
    assert [c.media for c in rollout.calls] == [c.media for c in sighted.calls]
    assert [(c.placeholders, s.placeholders) for c, s in zip(rollout.calls, sighted.calls, strict=True)] == [(True, False)] * 3
    back = rollout_from_wire(json.loads(json.dumps(rollout_to_wire(rollout))))
    assert [(c.media, c.placeholders) for c in back.calls] == [(c.media, True) for c in rollout.calls]
    score = (Score(components={"correct": 1.0}),)
    group = Group(key="c", task=TASK, draw=Draw("keyvalue", 2, 1.0), rollouts=(rollout,), scores=score)
    assert len(pack([group])) == len(samples(rollout)) == 1


def test_an_engine_that_reads_text_alone_refuses_them() -> None:
    with pytest.raises(
        ConfigError, match=r"context 'c' shows 1 pictures \(\['image'\]\), and the engine ScriptedEngine reads text alone"
    ):
        played(media=())
    engine = native()
    request = Request(id="r", prompt=ids_of([1, 2]), seed=0, sampling=Sampling(max_new_tokens=2), media=(SHOWN[0],))
    with pytest.raises(ConfigError, match=r"request 'r' shows 1 pictures \(\['image'\]\), and this engine reads text alone"):
        asyncio.run(engine.generate(request))


def test_prompts_that_differ_in_pictures_alone_share_no_prefill() -> None:
    engine = native()
    engine._info = replace(engine.info(), media=("image",))  # as one that sees would say
    prompt = ids_of([1, 2, 3])

    def request(name: str, *media: Media) -> Request:
        return Request(id=name, prompt=prompt, seed=0, sampling=Sampling(max_new_tokens=2), media=media)

    async def all_of(*requests: Request) -> list[Completion]:
        return await engine.generate_all(requests)

    asyncio.run(all_of(request("a", SHOWN[0]), request("b", SHOWN[1]), request("c", SHOWN[0]), request("d")))
    assert engine.counters["prefill_prompts"] == 3
    assert prefix_key(prompt, ()) == prompt.tobytes()
    keys = {prefix_key(prompt, m) for m in ((), SHOWN[:1], SHOWN[1:2], SHOWN[:2], SHOWN[1::-1])}
    assert len(keys) == 5


def test_an_environment_that_shows_other_pictures_when_played_again_is_a_fault() -> None:
    class Changing(Dots):
        def environment(self, world: TaskView) -> Environment:
            made.append(Screen(world, self.album))
            made[-1]._left += len(made) - 1
            if len(made) == 1:
                made[0].step = broken  # type: ignore[method-assign]
            return made[-1]

    async def broken(action: str) -> Step:
        raise OSError("no")

    made: list[Screen] = []
    _, rollout = played(source=Changing())
    assert rollout.error is not None
    assert "shows other pictures" in rollout.error


def test_check_environment_looks_for_the_pictures() -> None:
    assert "deterministic" in check_environment(SOURCE, TASK).passed
    with pytest.raises(ContractError, match="which cannot be had: there is no picture"):
        check_environment(Dots(lost=True), TASK)

    class Blind(KeyValue):
        def environment(self, world: TaskView) -> Environment:
            return Screen(world, Album())

    with pytest.raises(ContractError, match="and the family has no `pictures`"):
        check_environment(Blind(), TASK)


def test_names_of_pictures() -> None:
    assert media_of(drawn(3)) == media_of(np.array(drawn(3))) != media_of(drawn(4))
    assert media_of(np.zeros((2, 3, 1), np.uint8)).digest != media_of(np.zeros((3, 2, 1), np.uint8)).digest
    for wrong in (np.zeros((2, 3), np.uint8), np.zeros((2, 3, 3), np.float32)):
        with pytest.raises(DataError, match="a picture is an array"):
            media_of(wrong)
    for kind, digest, size in (
        ("sound", "a", (1, 1, 1)),
        ("image", "", (1, 1, 1)),
        ("image", "a", (1, 1)),
        ("image", "a", (0, 1, 1)),
    ):
        with pytest.raises(DataError, match="Media"):
            Media(kind, digest, size)
    with pytest.raises(DataError, match="a message of 1 pictures has 2 times '<image>'"):
        Message("user", "<image><image>", (SHOWN[0],))
    with pytest.raises(DataError, match="there is no picture x among 0"):
        Album().pixels("x")
    assert Message("user", "<image> as text").media == ()
