"""Real templates and stop texts on the native engine: what is trained is what was sampled, token for token."""

from __future__ import annotations

import asyncio
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from chat_families import FAMILIES, folder_of
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.core import Completion, Context, FrozenMap, Message, Prefill, Request, Sampling, Span, Stop, Task, ids_of, samples
from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Environment, Obs, Step
from assay.rollout import HideOlder, KeepAll, KeepLast, Player
from assay.rollout.decode_text import text_of
from assay.runtime.engine.native import NativeEngine
from assay.runtime.engine.stops import StopWatch
from assay.runtime.models.hf import load_model, save_model
from assay.runtime.models.model import Model, init_model
from assay.runtime.settings import DecoderShape
from assay.runtime.text.chat import Chat
from assay.runtime.text.tokenizer import HubTokenizer, char_tokenizer


def model_of(tokenizer: HubTokenizer, positions: int = 512) -> Model:
    shape = DecoderShape(
        vocab_size=tokenizer.size,
        hidden_size=32,
        num_layers=1,
        num_heads=2,
        num_kv_heads=1,
        head_dim=16,
        intermediate_size=32,
        max_positions=positions,
    )
    return init_model(shape, tokenizer, seed=3)


@dataclass
class Asks:
    """Answers each action in a role."""

    role: str
    heard: int = 0

    async def start(self) -> Obs:
        return Obs()

    async def step(self, action: str) -> Step:
        self.heard += 1
        return Step(obs=Obs((Message(self.role, f"the cat says {self.heard}<|im_end|></s>"),)))


@dataclass
class Worlds:
    """Gives environments."""

    role: str = ""

    def environment(self, world: object) -> Environment | None:
        return Asks(self.role) if self.role else None


def posed(prompt: str = "hello to the cat", **changed: object) -> Context:
    task = Task(id="t", domain="d", arm="a", level=1, split="train", index=0, public=FrozenMap({"prompt": prompt})).public_view()
    return Context(**{"key": "c", "group": "c", "task": task, "messages": task.messages, **changed})


def played(tokenizer: HubTokenizer, role: str, manager: object = None, turns: int = 3, **sampling: object):
    model = model_of(tokenizer)
    engine = NativeEngine(model)
    player = Player(
        engine=engine,
        tokenizer=tokenizer,
        source=Worlds(role),
        sampling=Sampling(**{"max_new_tokens": 12, **sampling}),
        seed=1,
        max_turns=turns,
        manager=manager or KeepAll(),
    )
    return engine, asyncio.run(player.collect([posed()], 6))


@pytest.mark.parametrize("name", ["chatml", "qwen", "llama", "phi", "gemma", "mistral"])
@pytest.mark.parametrize("manager", [KeepAll(), KeepLast(1), HideOlder(placeholder="no longer shown")])
def test_turns_with_tools_keep_what_was_sampled(name: str, manager: object, tmp_path: Path) -> None:
    """Every sampled token stands in one row, under the log-probability that it was sampled with."""
    t = HubTokenizer.load(folder_of(FAMILIES[name], tmp_path / "m"))
    role = "user" if name in ("gemma", "mistral") else "tool"
    letters = tuple(range(len(FAMILIES[name].special) + 65, len(FAMILIES[name].special) + 130))  # so that turns end soon
    if name == "mistral" and manager != KeepAll():
        with pytest.raises(ConfigError, match="writes earlier turns otherwise once user follows: token"):
            played(t.with_chat(Chat(system="be a cat")), role, manager, stop_ids=(t.eos, *letters))
        return
    engine, rollouts = played(t, role, manager, stop_ids=(t.eos, *letters))
    assert max(len(r.calls) for r in rollouts) == 3
    rows = [row for r in rollouts for row in samples(r)]
    assert (len(rows) > len(rollouts)) == (manager != KeepAll())
    for row, found in zip(rows, asyncio.run(engine.score([row.ids for row in rows])), strict=True):
        np.testing.assert_allclose(found[row.mask], row.columns["logp_engine"].values[row.mask], atol=1e-5)
    for r in rollouts:
        for a, b in zip(r.calls, r.calls[1:], strict=False):
            if manager == KeepAll():
                tail = b.prefix[len(a.tokens) :].tolist()
                said = a.completion.ids.tolist()
                follow = t.follow([*r.context.messages, Message("assistant", a.text)], [Message(role, "x")]).tolist()
                assert said[-1] != t.eos or tail[0] != t.eos
                assert ([said[-1], *tail] if said[-1] == t.eos else tail)[: follow.index(t.eos) + 2] == follow[:2]
        first = r.calls[0]
        assert first.prefix.tolist() == t.render(r.context.messages).tolist()


def test_dropped_turns_read_as_the_template_writes_them(tmp_path: Path) -> None:
    t = HubTokenizer.load(folder_of(FAMILIES["chatml"], tmp_path / "m"))
    _, rollouts = played(t, "tool", KeepLast(1), stop_ids=(t.eos, *range(70, 130)))
    calls = next(r.calls for r in rollouts if len(r.calls) == 3)
    said = t.backend.decode(calls[1].completion.ids.tolist(), skip_special_tokens=False)
    end = "" if calls[1].completion.ids[-1] == t.eos else "<|im_end|>"
    assert t.backend.decode(calls[2].prefix.tolist(), skip_special_tokens=False) == (
        "<|im_start|>user\nhello to the cat<|im_end|>\n<|im_start|>assistant\n"
        + said
        + end
        + "\n<|im_start|>tool\nthe cat says 2<|im_end|></s><|im_end|>\n<|im_start|>assistant\n"
    )


def test_a_template_that_rewrites_stops_the_player_with_a_sentence(tmp_path: Path) -> None:
    t = HubTokenizer.load(folder_of(FAMILIES["qwen"], tmp_path / "m"))
    off = t.with_chat(Chat(options={"enable_thinking": False}))
    with pytest.raises(ConfigError, match=r"once user follows: token \d+ is '<think>' \(id \d+\) as sampled and 'M"):
        played(off, "user", stop_ids=tuple(range(5, 200)))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        kept = off.with_chat(Chat(options={"enable_thinking": False}, rewrites="keep"))
        _, rollouts = played(kept, "user", stop_ids=tuple(range(5, 200)))
    assert len(said) >= 1 and all("Chat.rewrites='keep'" in str(w.message) for w in said)
    (row,) = samples(rollouts[0])
    assert row.ids[: len(rollouts[0].calls[0].tokens)].tolist() == rollouts[0].calls[0].tokens.tolist()
    with pytest.raises(DataError, match="leaves out messages of role 'tool'"):
        played(HubTokenizer.load(folder_of(FAMILIES["mistral"], tmp_path / "n")), "tool", stop_ids=tuple(range(5, 200)))


# ---- stop texts --------------------------------------------------------------------------------------------------------


CHARS = char_tokenizer("abc")
SERVED = NativeEngine(model_of(CHARS, 64))


def asked(engine: NativeEngine, tokenizer: HubTokenizer, n: int = 4, prompt: str = "abc", begun: int = 0, **sampling: object):
    async def go() -> list[Completion]:
        return await asyncio.gather(
            *(
                engine.generate(
                    Request(
                        id=str(i), prompt=tokenizer.encode(prompt), seed=i, sampling=Sampling(**sampling), prefix_tokens=begun
                    )
                )
                for i in range(n)
            )
        )

    return asyncio.run(go())


@settings(max_examples=25, deadline=None)
@given(stops=st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=2))
def test_an_answer_ends_with_the_token_that_completes_a_text(stops: list[str]) -> None:
    whole = asked(SERVED, CHARS, max_new_tokens=16)
    cut = asked(SERVED, CHARS, max_new_tokens=16, stop=tuple(stops))
    for a, b in zip(whole, cut, strict=True):
        text = CHARS.decode(a.ids)
        ends = [at + len(s) for s in stops if (at := text.find(s)) >= 0]
        if ends:
            n = min(k for k in range(1, len(a.ids) + 1) if any(s in CHARS.decode(a.ids[:k]) for s in stops))
            assert b.ids.tolist() == a.ids[:n].tolist() and b.stop is Stop.DONE
            np.testing.assert_allclose(b.logp_engine, a.logp_engine[:n], atol=1e-6)
            first = min(found for s in stops if (found := CHARS.decode(b.ids).find(s)) >= 0)
            assert text_of(CHARS, b.ids, b) == CHARS.decode(b.ids)[:first]
        else:
            assert b.ids.tolist() == a.ids.tolist() and b.stop is a.stop


def test_rows_with_and_without_texts_share_a_batch() -> None:
    async def go() -> list[Completion]:
        stops = [("b",), (), ("ca", "ac"), ()]
        wanted = [Sampling(max_new_tokens=12, stop=s) for s in stops]
        prompt = CHARS.encode("abc")
        return await asyncio.gather(
            *(SERVED.generate(Request(id=str(i), prompt=prompt, seed=i, sampling=s)) for i, s in enumerate(wanted))
        )

    together = asyncio.run(go())
    for i, stop in enumerate([("b",), (), ("ca", "ac"), ()]):
        alone = asked(SERVED, CHARS, n=4, max_new_tokens=12, stop=stop)[i]
        assert alone.ids.tolist() == together[i].ids.tolist()
    assert SERVED._table._watched == 0


def test_a_text_may_begin_in_what_was_said_before() -> None:
    """Forced tokens and calls that go on: the answer is one text, of which the prompt holds the first part."""
    (free,) = asked(SERVED, CHARS, n=1, max_new_tokens=8)
    first = CHARS.decode(free.ids[:1])
    (cut,) = asked(SERVED, CHARS, n=1, max_new_tokens=8, stop=("c" + first,), begun=1)
    assert cut.ids.tolist() == free.ids[:1].tolist() and cut.stop is Stop.DONE
    (on,) = asked(SERVED, CHARS, n=1, max_new_tokens=1, stop=("c" + first,))
    assert on.stop is Stop.LENGTH
    assert (
        asked(SERVED, CHARS, n=1, prompt="abc", max_new_tokens=2, stop=("abc",), begun=3)[0].stop is Stop.LENGTH
    )  # not its doing


def test_texts_across_bytes_and_characters(tmp_path: Path) -> None:
    t = HubTokenizer.load(folder_of(FAMILIES["qwen"], tmp_path / "m"))
    for text, stop in [("the cat says 漢字!", "漢"), ("xé\n\nyz", "\n\ny"), ("a</think> b", "</think> b"), ("aaab", "aab")]:
        watch = StopWatch(t.decode, ("never", stop), [])
        ids = t.encode(text).tolist()
        first = next(i for i, token in enumerate(ids) if watch.push(token))
        assert stop in t.decode(ids[: first + 1]) and stop not in t.decode(ids[:first])
        said = ids_of(ids[: first + 1])
        done = Completion(
            ids=said,
            logp_engine=np.zeros(len(said), np.float32),
            spans=(Span(0, 0, len(said)),),
            stop=Stop.DONE,
            sampling=Sampling(stop=("never", stop)),
        )
        assert text_of(t, said, done) == text[: text.index(stop)]


@pytest.mark.parametrize("stop", ["ab", ("",), ("a", 3)])
def test_texts_that_make_no_sense(stop: object) -> None:
    with pytest.raises(DataError, match=r"Sampling.stop=.*; give a tuple of texts, none of them empty"):
        Sampling(stop=stop)  # type: ignore[arg-type]


def test_the_player_reads_answers_without_the_text_and_goes_on_behind_the_end_token() -> None:
    t = char_tokenizer("abcdefghijklmno")
    stops = ("a", "b", "c", "d", "e")
    model = model_of(t, 256)
    player = Player(
        engine=NativeEngine(model),
        tokenizer=t,
        source=Echoes(),
        sampling=Sampling(max_new_tokens=30, stop=stops),
        seed=0,
        max_turns=2,
    )
    rollouts = asyncio.run(player.collect([posed("abc", prefill=Prefill("ab"))], 8))
    ended = [r for r in rollouts if len(r.calls) == 2]
    assert len(ended) >= 3
    for r in ended:
        a, b = r.calls
        assert a.text.startswith("ab") and not any(s in a.text[2:] for s in stops)
        ended_by_text = a.completion.ids[-1] != t.eos
        assert (t.decode(a.completion.ids)[-1:] in stops) == ended_by_text
        assert b.prefix[len(a.tokens) :].tolist() == [*([t.eos] if ended_by_text else []), *t.encode("go")]
        (row,) = samples(r)
        assert not row.mask[len(a.tokens)]


class Echoes:
    """Says ``go`` to all."""

    def environment(self, world: object) -> Environment | None:
        return self  # type: ignore[return-value]

    async def start(self) -> Obs:
        return Obs()

    async def step(self, action: str) -> Step:
        return Step(obs=Obs((Message("tool", "go"),)))


# ---- folders -----------------------------------------------------------------------------------------------------------


def test_another_models_tokenizer_is_refused(tmp_path: Path) -> None:
    t = HubTokenizer.load(folder_of(FAMILIES["qwen"], tmp_path / "t"))
    save_model(model_of(t), tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert again.tokenizer.stop_ids == t.stop_ids
    assert again.tokenizer.render([Message("user", "hi")]).tolist() == t.render([Message("user", "hi")]).tolist()
    save_model(model_of(CHARS), tmp_path / "small")
    (tmp_path / "small" / "tokenizer.json").write_bytes((tmp_path / "t" / "tokenizer.json").read_bytes())
    with pytest.raises(
        ConfigError, match=rf"small/tokenizer.json has {t.size} ids, but the weights embed 5: it is another model's"
    ):
        load_model(tmp_path / "small")


def test_engines_of_transformers_end_at_texts_where_they_are_given_a_tokenizer() -> None:
    from transformers import AutoModelForCausalLM, GPT2Config

    from assay.runtime.engine.hub_engine import TransformersEngine

    config = GPT2Config(
        vocab_size=CHARS.size, n_embd=16, n_layer=1, n_head=2, n_positions=64, bos_token_id=None, eos_token_id=None
    )
    module = AutoModelForCausalLM.from_config(config)
    (cut,) = asked(TransformersEngine(module, 64, decode=CHARS.decode), CHARS, n=1, max_new_tokens=40, stop=("a",))
    assert (CHARS.decode(cut.ids)[-1], CHARS.decode(cut.ids).count("a"), cut.stop) == ("a", 1, Stop.DONE)
    with pytest.raises(ConfigError, match=r"ends at the texts \('a',\), but this engine was given no tokenizer"):
        asked(TransformersEngine(module, 64), CHARS, n=1, max_new_tokens=4, stop=("a",))
