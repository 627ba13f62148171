"""Tools called in a chat model's own form: what is read as a call, and what is answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core.errors import ConfigError, DataError
from assay.core.rollout import ToolResult
from assay.core.task import TaskView
from assay_tasks.keyvalue import KeyValue, LookUp
from assay_tasks.toolcalls import Asked, ToolCalls, calls_of, schemas_of

WORLD = KeyValue().task("keyvalue", 1, "train", 0).public_view()
ADD = '{"name": "add", "arguments": {"a": 1, "b": 2}}'
ADDED = Asked("add", {"a": 1, "b": 2})


class Add:
    schema: Mapping[str, Any] = {
        "name": "add",
        "description": "A sum.",
        "parameters": {
            "type": "object",
            "required": ["a", "b"],
            "additionalProperties": False,
            "properties": {"a": {"type": "integer"}, "b": {"type": ["integer", "number"]}, "note": {}},
        },
    }

    async def call(self, args: Mapping[str, Any], scope: TaskView) -> ToolResult:
        return ToolResult(content=str(args["a"] + args["b"]))


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (f"First this.\n<tool_call>{ADD}</tool_call>", [ADDED]),
        (f"<tool_call>{ADD}</tool_call>\n<tool_call>\n{ADD}\n</tool_call>", [ADDED, ADDED]),
        (f"<tool_call>{ADD}", [ADDED]),
        ('{"name": "add", "parameters": {"a": 1, "b": 2}}', [ADDED]),
        (f"<|python_tag|>{ADD}", [ADDED]),
        (f"[TOOL_CALLS] [{ADD}, {ADD}]", [ADDED, ADDED]),
        (f" [{ADD}]\n", [ADDED]),
        ("It is 3.", []),
        ("", []),
        ("[]", []),
        ('{"a": 1}', []),
        ("[1, 2]", []),
        ('{"name": "add"}', []),
        ("<tool_call>add(1, 2)</tool_call>", [Asked(wrong="the call is no JSON object")]),
        ("[TOOL_CALLS] add", [Asked(wrong="the call is no JSON object")]),
        ('{"name": "add", "arguments": {"a": NaN, "b": 1}}', []),
        ('<tool_call>{"name": "add", "arguments": {"a": 1e999}}', [Asked(wrong="the call is no JSON object")]),
        (r'<tool_call>{"name": "add", "arguments": {"a": "\ud800"}}', [Asked(wrong="the call is no JSON object")]),
        (r'<tool_call>{"name": "add", "arguments": {"a": "\ud83d\ude00"}}', [Asked("add", {"a": "\U0001f600"})]),
        ('<tool_call>{"name": 3, "arguments": {}}</tool_call>', [Asked(wrong=calls_of('{"name": 3, "arguments": {}}')[0].wrong)]),
    ],
)
def test_what_is_read_as_calls(text: str, calls: list[Asked]) -> None:
    assert calls_of(text) == calls


@given(st.text(st.sampled_from('<tool_call>/{}[]"name:, 1'), max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    for asked in calls_of(text):
        assert asked.wrong or (asked.name is not None and asked.arguments is not None)


@pytest.mark.parametrize(
    ("text", "answer", "error"),
    [
        (call("add", a=1, b=2.5), "3.5", None),
        (call("sub", a=1), "Error: there is no tool 'sub', only add, look_up.", "there is no tool 'sub', only add, look_up"),
        (call("add", a=1), "Error: add needs the argument 'b'.", "add needs the argument 'b'"),
        (call("add", a=1, b=2, c=3), "Error: add has no argument 'c'.", "add has no argument 'c'"),
        (call("add", a="1", b=2), "Error: the argument 'a' of add is no integer.", "the argument 'a' of add is no integer"),
        (call("add", a=True, b=2), "Error: the argument 'a' of add is no integer.", "the argument 'a' of add is no integer"),
        (
            call("add", a=1, b="2"),
            "Error: the argument 'b' of add is no integer or number.",
            "the argument 'b' of add is no integer or number",
        ),
        (call("look_up", key="oa"), "=80>", None),
        ("<tool_call>{</tool_call>", "Error: the call is no JSON object.", "the call is no JSON object"),
    ],
)
def test_what_a_call_is_answered(text: str, answer: str, error: str | None) -> None:
    async def one():
        bench = ToolCalls(WORLD, [Add(), LookUp()])
        await bench.start()
        return await bench.step(text)

    step = asyncio.run(one())
    (message,), (result,) = step.obs.messages, step.results
    assert (message.role, message.content, result.error, step.done) == ("tool", answer, error, False)


class Draw(Add):
    """One whose schema goes deep."""

    schema: Mapping[str, Any] = {
        "name": "draw",
        "parameters": {
            "type": "object",
            "properties": {
                "unit": {"type": "string", "enum": ["cm", "in"]},
                "n": {"enum": [1, None]},
                "any": True,
                "points": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["x"],
                        "additionalProperties": False,
                        "properties": {"x": {"type": "integer"}},
                    },
                },
            },
        },
    }

    async def call(self, args: Mapping[str, Any], scope: TaskView) -> ToolResult:
        return ToolResult(content="drawn")


class Bare(Add):
    schema: Mapping[str, Any] = {"name": "bare", "parameters": None}


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({"unit": "cm", "n": None, "any": [1], "points": [{"x": 1}, {"x": 2}], "more": 1}, ""),
        ({"unit": "km"}, 'the argument \'unit\' of draw is none of "cm", "in"'),
        ({"n": True}, "the argument 'n' of draw is none of 1, null"),
        ({"points": {}}, "the argument 'points' of draw is no array"),
        ({"points": [{"x": 1}, {"x": "2"}]}, "the argument 'points[1].x' of draw is no integer"),
        ({"points": [{}]}, "draw needs the argument 'points[0].x'"),
        ({"points": [{"x": 1, "y": 2}]}, "draw has no argument 'points[0].y'"),
        ({"points": [3]}, "the argument 'points[0]' of draw is no object"),
    ],
)
def test_arguments_are_held_to_the_schema_at_any_depth(arguments: dict[str, Any], wrong: str) -> None:
    async def one():
        bench = ToolCalls(WORLD, [Draw()])
        await bench.start()
        return (await bench.step(call("draw", **arguments))).results[0]

    result = asyncio.run(one())
    assert (result.error or "", result.content) == (wrong, f"Error: {wrong}." if wrong else "drawn")


def test_an_answer_of_json_ends_the_attempt() -> None:
    """Without tags and mark, what names no tool is no call."""

    async def ends(text: str) -> bool:
        bench = ToolCalls(WORLD, [Add()])
        await bench.start()
        return (await bench.step(text)).done

    answer = '{"name": "Ada", "parameters": {"age": 36}}'
    assert asyncio.run(ends(answer))
    assert asyncio.run(ends(f"[{answer}]"))
    assert not asyncio.run(ends(f"<tool_call>{answer}</tool_call>"))
    assert not asyncio.run(ends(f"[TOOL_CALLS][{answer}]"))
    assert not asyncio.run(ends('{"name": "add", "parameters": {"a": 1, "b": 2}}'))


def test_a_tool_without_parameters_or_without_a_name() -> None:
    async def one():
        bench = ToolCalls(WORLD, [Bare()])
        await bench.start()
        return (await bench.step(call("bare", a=1, b=1))).results[0].content

    assert asyncio.run(one()) == "2"
    wrapped = Add()
    wrapped.schema = {"type": "function", "function": Add.schema}
    with pytest.raises(ConfigError, match=r"schema of Add has no name, only \['function', 'type'\]; give {'name',"):
        ToolCalls(WORLD, [wrapped])


def test_a_turn_of_several_calls_is_answered_in_order_and_an_answer_ends_it() -> None:
    async def play():
        bench = ToolCalls(WORLD, [Add(), LookUp()], turns=2)
        with pytest.raises(DataError, match="step while it is new"):
            await bench.step("3")
        await bench.start()
        both = await bench.step(call("look_up", key="oa") + call("add", a=1, b=1))
        assert [m.content for m in both.obs.messages] == ["=80>", "2"]
        assert (await bench.step("It is 80.")).done
        with pytest.raises(DataError, match="step while it is over"):
            await bench.step("3")
        last = ToolCalls(WORLD, [LookUp()], turns=1)
        await last.start()
        assert not (await last.step(call("look_up", key="oa"))).done
        over = await last.step(call("look_up", key="oa"))
        assert over.done and not over.results

    asyncio.run(play())


def test_tools_need_names_of_their_own() -> None:
    for tools, turns in (((), 8), ((Add(), Add()), 8), ((Add(),), 0)):
        with pytest.raises(ConfigError, match="give at least one tool, each by a name of its own, and at least 1 turn"):
            ToolCalls(WORLD, tools, turns)
    assert [schema["name"] for schema in schemas_of([Add(), LookUp()])] == ["add", "look_up"]


def test_a_plain_function_is_a_tool_as_in_a_stage() -> None:
    def double(n: int) -> int:
        """Twice a number."""
        return 2 * n

    assert schemas_of([double])[0]["name"] == "double"
    bench = ToolCalls(KeyValue().task("keyvalue", 1, "train", 0).public_view(), [LookUp(), double])
    asyncio.run(bench.start())
    step = asyncio.run(bench.step('<tool_call>{"name": "double", "arguments": {"n": 4}}</tool_call>'))
    assert [m.content for m in step.obs.messages] == ["8"]
    with pytest.raises(ConfigError, match=r"ToolCalls\.tools=3 is no function"):
        schemas_of([3])
