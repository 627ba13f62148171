"""Demonstrations with switches on turns, and with tools and calls: what carries loss, and in the model's own form."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest
from chat_families import FAMILIES, folder_of
from tiny_runs import SHAPE, imitate, imitating
from tool_families import TOOL_FAMILIES
from transformers import AutoTokenizer

from assay.core.errors import ConfigError, DataError
from assay.core.task import CALLS, Message
from assay.rollout.decode_text import AnswerReader
from assay.runtime import char_tokenizer, init_model, save_model
from assay.runtime.text.tokenizer import HubTokenizer
from assay.train import Folder, train
from assay.train.demonstration import Demonstration
from assay.train.imitate import Imitations

CHARACTERS = char_tokenizer("".join(map(chr, range(32, 127))) + "\n")
OFF = [{"weight": 0}, {"weight": 0.0}, {"train": False}, {"loss_mask": 0}, {"loss_mask": False}, {"trainable": False}]
ON = [{}, {"weight": 1}, {"weight": 1.0}, {"train": True}, {"loss_mask": 1}, {"trainable": True}, {"weight": None}]


def turn(role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def talk(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    return {
        "messages": [turn("user", "u"), turn("assistant", "ab", **first), turn("user", "v"), turn("assistant", "c", **second)]
    }


def learned(row: Any, everything: bool = False, tokenizer: HubTokenizer = CHARACTERS) -> tuple[str, list[bool]]:
    made = Demonstration.of(row).row("r", AnswerReader.of(tokenizer), everything)
    return "".join(tokenizer.decode([i]) or "$" for i in made.ids.tolist()), made.mask.tolist()


# ---- switches ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("off", OFF, ids=str)
@pytest.mark.parametrize("on", ON, ids=str)
def test_a_turn_that_is_switched_off_is_read_and_not_learned(off, on):
    text, mask = learned(talk(off, on))
    assert text == "uab$vc$"
    assert "".join(c for c, said in zip(text, mask, strict=True) if said) == "c$"
    text, mask = learned(talk(on, off))
    assert "".join(c for c, said in zip(text, mask, strict=True) if said) == "ab$"


def test_switches_hold_where_all_tokens_carry_loss():
    text, mask = learned(talk({"weight": 0}, {}), everything=True)
    assert "".join(c for c, said in zip(text, mask, strict=True) if said) == "vc$"
    assert learned(talk({}, {}), everything=True)[1] == [False] + [True] * 6


def test_a_silent_user_turn_is_what_it_is_and_cannot_be_learned_whole():
    row = {"messages": [turn("user", "u", loss_mask=0), turn("assistant", "a", loss_mask=1)]}
    assert learned(row)[1] == [False, True, True]
    with pytest.raises(DataError, match=r"demonstration: a field of the user's turn says .* use learn='assistant'"):
        learned(row, everything=True)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (talk({"weight": 0}, {"train": False}), "every turn of the assistant is switched off"),
        (talk({"weight": 0.5}, {}), r"turn 2, field 'weight': 0.5 is neither on nor off"),
        (talk({"train": "no"}, {}), r"turn 2, field 'train': 'no' is neither on nor off"),
        (talk({"loss_mask": [0, 1]}, {}), r"turn 2, field 'loss_mask': \[0, 1\] is neither"),
        (talk({"weight": 0, "train": True}, {}), r"turn 2: 'weight' and 'train' contradict each other"),
        ({"messages": [turn("user", "u", train=True), turn("assistant", "a")]}, r"turn 1, field 'train': a turn of role 'user'"),
        (
            {"prompt": [turn("user", "u"), turn("assistant", "a", train=True), turn("user", "v")], "completion": "c"},
            "turns in front of an answer are only read",
        ),
        ({"prompt": "u", "completion": "a", "weight": 0}, r"here, field 'weight': 0 of a whole row would not be heeded"),
        ({"prompt": "u", "completion": "a", "train": False}, r"here, field 'train': False of a whole row"),
    ],
)
def test_switches_that_mean_nothing_are_named(row, says):
    with pytest.raises(DataError, match=says):
        Demonstration.of(row, "here")


def test_rows_may_be_of_a_split_or_a_weight_of_one():
    for more in ({"train": "train"}, {"weight": 1}, {"weight": None}, {"trainable": True}):
        assert Demonstration.of({"prompt": "u", "completion": "a"} | more).skipped == frozenset()


def test_the_gradient_is_that_of_the_turns_that_are_left():
    """The same as the conversation up to its last turn as a prompt, and its last turn as the answer."""
    whole = talk({"weight": 0}, {})
    cut = {"prompt": whole["messages"][:3], "completion": "c"}
    made = []
    for row in (whole, cut):
        stage = imitate(data=[row], batch=1, steps=1)
        run = imitating(stage)
        batch = Imitations(run, stage, CHARACTERS).batch(0)
        made.append((batch.token("ids").tolist(), batch.token("mask").tolist()))
    assert made[0] == made[1]


# ---- calls -------------------------------------------------------------------------------------------------------------------

NAMES = sorted(TOOL_FAMILIES)
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look_up",
            "description": "The value of a key; not <|im_end|>.",
            "parameters": {"type": "object", "properties": {"key": {"type": "string"}}},
        },
    },
]


def call(number: int, **arguments: Any) -> dict[str, Any]:
    return {"id": f"call{number:05d}", "type": "function", "function": {"name": "look_up", "arguments": arguments}}


CALLED: list[dict[str, Any]] = [
    turn("user", "What is the cat?"),
    {"role": "assistant", "content": "", "tool_calls": [call(0, key="cat é")]},
    {"role": "tool", "content": "cat: 7", "tool_call_id": "call00000"},
    turn("assistant", "The answer is 7."),
]


@cache
def place(name: str) -> Path:
    return folder_of(TOOL_FAMILIES[name], Path(mkdtemp()) / name)


@cache
def tokenizer(name: str) -> HubTokenizer:
    return HubTokenizer.load(place(name))


def text_of(name: str, ids: Any) -> str:
    return tokenizer(name).backend.decode(list(ids), skip_special_tokens=False)


@pytest.mark.parametrize("name", NAMES)
def test_calls_and_tools_are_learned_as_the_template_writes_them(name):
    """The row is, token for token, what transformers writes of the whole conversation, as far as its last end."""
    ours = tokenizer(name)
    row = Demonstration.of({"messages": CALLED, "tools": TOOLS}).row("r", AnswerReader.of(ours))
    ids = row.ids.tolist()
    whole = AutoTokenizer.from_pretrained(place(name)).apply_chat_template(CALLED, tools=TOOLS, return_dict=False)
    shown = text_of(name, whole).replace("] The", "]The")  # Mistral's space in front of an answer is no part of what is sampled
    assert shown.startswith(text_of(name, ids))
    told = [text_of(name, row.ids[a:b]) for a, b in runs(row.mask)]
    end = TOOL_FAMILIES[name].end
    assert len(told) == 2 and told[1] == f"The answer is 7.{end}"
    assert '"look_up"' in told[0] and "cat é" in told[0] and told[0].endswith(end) and told[0].count(end) == 1
    assert "cat: 7" not in told[0] + told[1] and "What is" not in told[0]


def runs(mask: Any) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


@pytest.mark.parametrize("name", ["qwen", "hermes"])
def test_a_conversation_may_end_with_calls(name):
    ours = tokenizer(name)
    shown = Demonstration.of({"messages": CALLED[:2], "tools": TOOLS}).row("r", AnswerReader.of(ours))
    (part,) = runs(shown.mask)
    assert text_of(name, shown.ids[slice(*part)]).endswith("</tool_call><|im_end|>")


def test_words_in_front_of_calls_are_learned_or_refused():
    said = [CALLED[0], CALLED[1] | {"content": "Let me see. <|im_end|>"}, *CALLED[2:]]
    found = Demonstration.of({"messages": said, "tools": TOOLS})
    row = found.row("r", AnswerReader.of(tokenizer("qwen")))
    text = text_of("qwen", row.ids[slice(*runs(row.mask)[0])])
    assert text.startswith("Let me see. <|im_end|>\n<tool_call>") and row.ids.tolist().count(tokenizer("qwen").eos) == 5
    with pytest.raises(ConfigError, match="leaves out the text in front of calls"):
        found.row("r", AnswerReader.of(tokenizer("hermes")))


FORMS = {
    "arguments as JSON": {"tool_calls": [{"function": {"name": "look_up", "arguments": '{"key": "cat é"}'}}]},
    "bare": {"tool_calls": [{"name": "look_up", "arguments": {"key": "cat é"}}]},
    "all JSON": {"tool_calls": json.dumps([{"name": "look_up", "arguments": {"key": "cat é"}}])},
    "one call": {"function_call": {"name": "look_up", "arguments": '{"key": "cat é"}'}},
    "no content": {"content": None, "tool_calls": [call(0, key="cat é")]},
}


@pytest.mark.parametrize("form", FORMS)
def test_calls_in_every_form_are_the_same(form):
    wanted = Demonstration.of({"messages": CALLED, "tools": TOOLS})
    rows = {"messages": [CALLED[0], {"role": "assistant", "content": ""} | FORMS[form], *CALLED[2:]], "tools": json.dumps(TOOLS)}
    assert Demonstration.of(rows) == wanted
    assert wanted.turns[0] == Message(CALLS, '[{"name": "look_up", "arguments": {"key": "cat é"}}]')


def test_a_call_may_be_switched_off():
    said = [CALLED[0], CALLED[1] | {"weight": 0}, *CALLED[2:]]
    row = Demonstration.of({"messages": said, "tools": TOOLS}).row("r", AnswerReader.of(tokenizer("qwen")))
    assert len(runs(row.mask)) == 1


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ([CALLED[0], turn("assistant", "", tool_calls=[{"name": 3}])], r"turn 2, field 'tool_calls': .* is no call"),
        ([CALLED[0], turn("assistant", "", tool_calls="[{")], r"turn 2, field 'tool_calls': .* is no JSON"),
        ([CALLED[0], turn("assistant", "", tool_calls=[{"name": "f", "arguments": "x"}])], r"'arguments': 'x' is no JSON"),
        ([turn("user", "u", tool_calls=[call(0)]), CALLED[3]], r"turn 1: a turn of role 'user' has calls"),
        ([CALLED[0], CALLED[1] | {"content": 4}, *CALLED[2:]], r"turn 2, field 'content': it is 4"),
        (
            [
                CALLED[0],
                turn("assistant", "", tool_calls=[call(0), call(1)]),
                turn("tool", "7", tool_call_id="call00001"),
                CALLED[3],
            ],
            r"turn 3, field 'tool_call_id': 'call00001' answers another call than 'call00000'",
        ),
        ([CALLED[0], CALLED[1], CALLED[1]], "two turns of the assistant behind one another"),
    ],
)
def test_calls_that_are_wrong_are_named(messages, says):
    with pytest.raises(DataError, match=says):
        Demonstration.of({"messages": messages}, "here")


def test_a_template_that_knows_no_tools_says_so(tmp_path):
    plain = HubTokenizer.load(folder_of(FAMILIES["chatml"], tmp_path / "m"))
    found = Demonstration.of({"messages": CALLED, "tools": TOOLS})
    with pytest.raises(ConfigError, match=r"the task declares tools .look_up., and the chat template writes none"):
        found.row("r", AnswerReader.of(plain))
    with pytest.raises(ConfigError, match="a ChatTemplate writes no messages of role"):
        found.row("r", AnswerReader.of(CHARACTERS))
    asked = [CALLED[0], turn("assistant", "", tool_calls=[call(0, key="cat")])]
    stage = imitate(data=[{"messages": asked}], batch=1)
    with pytest.raises(DataError, match=r"Imitate.data, row 1: a ChatTemplate writes no messages of role 'tool_calls'"):
        Imitations(imitating(stage), stage, CHARACTERS).check(200)


def test_a_stage_trains_on_calls(tmp_path):
    model = init_model(replace(SHAPE, vocab_size=tokenizer("qwen").size, max_positions=400), tokenizer("qwen"), seed=0)
    save_model(model, tmp_path / "base")
    rows = [{"messages": CALLED, "tools": TOOLS}, {"messages": [CALLED[0], CALLED[3] | {"weight": 1}]}]
    run = replace(imitating(imitate(data=rows, batch=2, steps=2)), model=Folder(str(tmp_path / "base")))
    done = train(run, tmp_path / "run")
    assert done.finished and done.digest
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    wanted = sum(int(Demonstration.of(row).row("r", AnswerReader.of(tokenizer("qwen"))).mask.sum()) for row in rows)
    assert [line["metrics"]["tokens/trained"] for line in lines if "tokens/trained" in line["metrics"]] == [wanted] * 2
