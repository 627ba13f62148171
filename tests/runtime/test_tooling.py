"""Tools in conversations: shown and called in the template's own form, as transformers writes it, around what was sampled."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace

import pytest
from chat_families import FAMILIES, folder_of
from tool_families import TOOL_FAMILIES

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError
from assay.core.rollout import Sampling
from assay.core.task import CALLS, TOOLS, Context, Message, TaskView
from assay.rollout import Player
from assay.runtime import char_tokenizer
from assay.runtime.text.chat import Chat
from assay.runtime.text.tokenizer import ChatTemplate, HubTokenizer
from assay.testing.fakes import Ask, ScriptedEngine
from assay_tasks.keyvalue import KeyValue, LookUp
from assay_tasks.toolcalls import ToolCalls, schemas_of

NAMES = sorted(TOOL_FAMILIES)
SCHEMAS = [
    {
        "name": "look_up",
        "description": "The value of a key.",
        "parameters": {"type": "object", "properties": {"key": {"type": "string"}}},
    },
    {
        "name": "add",
        "description": "A sum; not <|im_end|>.",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
    },
]
DECLARED = Message(TOOLS, json.dumps(SCHEMAS))
USER, SAID, RESULT = Message("user", "What is the cat?"), Message("assistant", "The answer is 42."), Message("tool", "the cat: 7")
CALL = Message(CALLS, json.dumps([{"name": "look_up", "arguments": {"key": "cat"}}]))


@cache
def place(name: str) -> Path:
    return folder_of(TOOL_FAMILIES[name], Path(mkdtemp()) / name)


@cache
def tokenizer(name: str) -> HubTokenizer:
    return HubTokenizer.load(place(name))


def text(name: str, ids) -> str:
    return tokenizer(name).backend.decode(list(ids), skip_special_tokens=False)


def theirs(name: str, talk, tools, answer: bool) -> list[int]:
    from transformers import AutoTokenizer

    oracle = AutoTokenizer.from_pretrained(place(name))
    return oracle.apply_chat_template(talk, tools=tools, add_generation_prompt=answer, return_dict=False)


FUNCTIONS = [{"type": "function", "function": s} for s in [SCHEMAS[0], SCHEMAS[1] | {"description": "A sum."}]]
TELLS = Message(TOOLS, json.dumps(FUNCTIONS))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("answer", [False, True])
def test_tools_calls_and_answers_are_written_as_transformers_writes_them(name: str, answer: bool) -> None:
    user = {"role": "user", "content": USER.content}
    call = {"type": "function", "function": {"name": "look_up", "arguments": {"key": "cat"}}}
    numbered = name == "mistral"
    asked = {"role": "assistant", "content": "", "tool_calls": [call | ({"id": "call00000"} if numbered else {})]}
    heard = {"role": "tool", "content": RESULT.content} | ({"tool_call_id": "call00000"} if numbered else {})
    said = {"role": "assistant", "content": SAID.content}
    for ours, talk in (
        ([TELLS, USER], [user]),
        ([TELLS, USER, CALL, RESULT], [user, asked, heard]),
        ([TELLS, USER, CALL, RESULT, SAID], [user, asked, heard, said]),
    ):
        assert tokenizer(name).render(ours, answer).tolist() == theirs(name, talk, FUNCTIONS, answer)


@pytest.mark.parametrize("name", NAMES)
def test_what_follows_a_sampled_call_is_what_the_template_writes_behind_it(name: str) -> None:
    """The call itself stays as sampled, whatever its form, and the tools stay declared."""
    t, sampled = tokenizer(name), Message("assistant", 'So: {"name": "look_up"}')
    opening = t.render([DECLARED, USER], True)
    behind = t.follow([DECLARED, USER, sampled], [RESULT], True)
    assert behind[0] == t.eos
    told = text(name, behind)
    assert "the cat: 7" in told and "look_up" not in told and "MESSAGE" not in told
    again = t.follow([DECLARED, USER, sampled, RESULT, sampled], [RESULT], True)
    assert again[0] == t.eos and "the cat: 7" in text(name, again)
    ended = t.follow([DECLARED, USER, sampled, RESULT, SAID], [USER], True)
    assert "What is the cat?" in text(name, ended) and "the cat: 7" not in text(name, ended)
    assert "look_up" in text(name, opening) and "add" in text(name, opening)
    if name == "mistral":
        assert told.endswith('[TOOL_RESULTS] {"content": "the cat: 7", "call_id": "call00000"}[/TOOL_RESULTS]')
        assert '"call_id": "call00001"' in text(name, again)


@pytest.mark.parametrize("name", NAMES)
def test_control_tokens_in_schemas_are_text(name: str) -> None:
    t = tokenizer(name)
    token = TOOL_FAMILIES[name].end
    with_token = Message(TOOLS, json.dumps([SCHEMAS[0] | {"description": f"one {token} two"}]))
    without = Message(TOOLS, json.dumps([SCHEMAS[0] | {"description": "one two"}]))
    counts = [t.render([tools, USER], True).tolist().count(t.eos) for tools in (with_token, without)]
    assert counts[0] == counts[1]
    assert token in text(name, t.render([with_token, USER], True)).replace(token, "", counts[0])


def test_openings_are_append_only_from_the_tools_on() -> None:
    t = tokenizer("qwen")
    assert t.render([DECLARED], answer=False).tolist() == []
    one = t.render([DECLARED, USER], answer=False).tolist()
    assert t.render([DECLARED, USER, SAID], answer=False).tolist()[: len(one)] == one


@pytest.mark.parametrize("family", ["chatml", "gemma", "phi"])
def test_a_template_that_knows_no_tools_refuses_them(family: str, tmp_path: Path) -> None:
    t = HubTokenizer.load(folder_of(FAMILIES[family], tmp_path / family))
    with pytest.raises(
        ConfigError, match=r"the task declares tools \(look_up, add\), and the chat template writes none; name a template"
    ):
        t.render([DECLARED, USER], True)
    assert t.render([USER], True).tolist()


@pytest.mark.parametrize(("family", "name"), [("chatml", "start"), ("gemma", "user"), ("phi", "end")])
def test_a_tool_whose_name_the_template_writes_anyway_is_not_taken_for_shown(family: str, name: str, tmp_path: Path) -> None:
    t = HubTokenizer.load(folder_of(FAMILIES[family], tmp_path / family))
    with pytest.raises(ConfigError, match=rf"the task declares tools \({name}\), and the chat template writes none"):
        t.render([Message(TOOLS, json.dumps([{"name": name}])), USER], True)


def test_a_tool_that_the_template_drops_for_its_name_is_refused() -> None:
    own = Chat(
        template="{% for t in tools or [] if t.function.name != 'python' %}{{ t.function.name }} {% endfor %}"
        "{% for m in messages %}<{{ m.content }}</s>{% endfor %}"
    )
    t = tokenizer("mistral").with_chat(own)
    with pytest.raises(ConfigError, match="the chat template leaves out 'python'"):
        t.render([Message(TOOLS, '[{"name": "search"}, {"name": "python"}]'), USER], True)


def test_a_template_that_shows_some_tools_only_is_refused() -> None:
    first = Chat(template="{% for m in messages %}<{{ m.content }}</s>{% endfor %}{{ tools[0].function.name if tools }}")
    t = tokenizer("mistral").with_chat(first)
    with pytest.raises(ConfigError, match="the chat template leaves out 'add'"):
        t.render([DECLARED, USER], True)


def test_turns_that_are_written_role_by_role_have_no_tools() -> None:
    t = tokenizer("mistral").with_chat(Chat(template=ChatTemplate()))
    for message in (DECLARED, CALL):
        with pytest.raises(ConfigError, match=f"a ChatTemplate writes no messages of role '{message.role}': name a template"):
            t.render([message, USER], True)


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        ([USER, DECLARED], "tools are declared once, before all other messages"),
        ([DECLARED, DECLARED, USER], "tools are declared once"),
        ([Message(TOOLS, "look_up"), USER], "a message of role 'tools' is no JSON"),
        ([Message(TOOLS, "[]"), USER], "'tools' is a JSON list of objects"),
        ([Message(TOOLS, '[{"description": "x"}]'), USER], "has no name; give {'name', 'description', 'parameters'}"),
        ([Message(TOOLS, '[{"type": "web", "name": "x"}]'), USER], "has no name"),
        ([USER, Message(CALLS, '[{"name": "add", "arguments": "1"}]')], "is no call; give {'name': text, 'arguments': object}"),
    ],
)
def test_bad_declarations_and_calls(messages: list[Message], error: str) -> None:
    with pytest.raises(DataError, match=error):
        tokenizer("qwen").render(messages, True)


def test_the_built_in_template_of_tools_writes_declarations_calls_and_answers() -> None:
    t = char_tokenizer("".join(map(chr, range(32, 127))) + "\n").with_chat(Chat(template="tools"))
    add = {"name": "add", "description": "Adds.", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}
    called = Message("tool_calls", '[{"name": "add", "arguments": {"a": 1}}]')
    talk = [Message("tools", json.dumps([add])), Message("user", "1+1?"), called, Message("tool", "2")]
    written = t.decode(t.render(talk))
    assert f"<tools>\n{json.dumps(add)}\n</tools>" in written
    assert 'Assistant: <tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>' in written
    assert written.endswith("Tool: 2\nAssistant: ") and "User: 1+1?" in written
    plain = t.with_chat(Chat(template="dialogue"))
    assert t.render([Message("user", "1+1?")]).tolist() == plain.render([Message("user", "1+1?")]).tolist()
    with pytest.raises(ConfigError, match=r"name a template that writes them, as Chat\(template='tools'\) does"):
        plain.render(talk[:2])


def test_a_task_declares_its_tools_beside_its_prompt() -> None:
    told = {"id": "a", "domain": "d", "arm": "x", "level": 1, "split": "train", "index": 0, "world": FrozenMap({})}
    world = TaskView(public=FrozenMap({"prompt": "cat?", "tools": SCHEMAS}), **told)
    assert [m.role for m in world.messages] == [TOOLS, "user"]
    assert json.loads(world.messages[0].content) == SCHEMAS
    spoken = TaskView(public=FrozenMap({"messages": [{"role": "user", "content": "cat?"}], "tools": SCHEMAS}), **told)
    assert spoken.messages == world.messages
    plainly = TaskView(public=FrozenMap({"prompt": "cat?", "tools": [f["function"] for f in FUNCTIONS]}), **told)
    for name in NAMES:  # keys in the order of the schema
        assert tokenizer(name).render(plainly.messages, True).tolist() == theirs(
            name, [{"role": "user", "content": "cat?"}], FUNCTIONS, True
        )


@pytest.mark.parametrize("name", NAMES)
def test_a_whole_attempt_with_a_tool_that_the_template_shows(name: str) -> None:
    """The policy sees the schema, calls in JSON, hears the answer in the template's own form, and answers."""
    t, seen = tokenizer(name), []
    task = KeyValue().task("keyvalue", 1, "train", 0)
    world = replace(task.public_view(), public=FrozenMap({"prompt": "What is oa?", "tools": schemas_of([LookUp()])}))

    def script(ask: Ask) -> str:
        seen.append(t.backend.decode(ask.ids.tolist(), skip_special_tokens=False))
        return "It is 80." if "=80>" in seen[-1] else '{"name": "look_up", "arguments": {"key": "oa"}}'

    engine = ScriptedEngine(script, t, context=4096)
    player = Player(
        engine=engine,
        tokenizer=t,
        source=SimpleNamespace(environment=lambda world: ToolCalls(world, [LookUp()])),
        sampling=Sampling(max_new_tokens=64),
        seed=0,
    )
    (rollout,) = asyncio.run(player.collect([Context(key="a", group="a", task=world, messages=world.messages)], 1))
    assert [call.text for call in rollout.calls] == ['{"name": "look_up", "arguments": {"key": "oa"}}', "It is 80."]
    assert [r.content for r in rollout.calls[0].results] == ["=80>"]
    assert "The value of a key" in seen[0] and "What is oa?" in seen[0]
    first, second = rollout.calls
    assert second.prefix[: len(first.tokens)].tolist() == first.tokens.tolist()
    assert "=80>" in seen[1] and seen[1].startswith(seen[0])


def test_calls_that_are_no_json_are_refused_with_their_text() -> None:
    from assay.core.tools import with_words

    with pytest.raises(DataError):
        with_words("{")
    assert with_words('[{"name": "add", "arguments": {}}]')[0] == ""
