"""Functions as tools: schemas, answers, errors, and any task played with them."""

from __future__ import annotations

import asyncio
import functools
import json
import pickle
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import pytest

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.protocols import Obs, SamplerParts
from assay.core.rollout import Rollout, Sampling, Stop
from assay.core.score import Fault
from assay.core.seeds import derive
from assay.core.task import TOOLS, Context, Message
from assay.rollout import Branching, FunctionTool, PlayerSpec
from assay.rollout.tool_source import ToolSource
from assay.runtime.text.tokenizer import char_tokenizer
from assay.testing import CharCodec, FakeLearner, ScriptedEngine
from assay_tasks import Heaps, KeyValue, SortDigits

TEXT = "".join(map(chr, range(32, 127))) + "\n"
CODEC = CharCodec(TEXT)
calls: list[str] = []


def add(a: int, b: int = 1) -> int:
    """The sum.

    Args:
        a: one number,
            any.
        b (int): another.

    Returns:
        What no model reads.
    """
    return a + b


async def later_add(a: int, b: int) -> int:
    """The sum, after a while."""
    await asyncio.sleep(0.001)
    return a + b


def fails(how: Literal["value", "connection", "exit"]) -> str:
    """Fails."""
    raise {"value": ValueError("no such page"), "connection": ConnectionError("down"), "exit": SystemExit(3)}[how]


def hangs() -> str:
    """Does not come back."""
    calls.append("hangs")
    time.sleep(60)
    return ""


def told(name: str, text: Annotated[str, "any text"], ids: list[int] | None = None) -> dict[str, Any]:
    """Repeats."""
    return {"name": name, "text": text, "ids": ids}


def say(name: str, **arguments: Any) -> str:
    return "<tool_call>" + json.dumps({"name": name, "arguments": arguments}) + "</tool_call>"


def answered(function: Callable[..., Any], **arguments: Any) -> tuple[str, str | None]:
    result = asyncio.run(FunctionTool(function).call(arguments, None))
    assert result.duration >= 0
    return result.content, result.error


# ---- functions --------------------------------------------------------------------------------------------------------


def test_the_schema_is_what_the_function_says() -> None:
    assert FunctionTool(add).schema == {
        "name": "add",
        "description": "The sum.",
        "parameters": {
            "type": "object",
            "properties": {
                "a": {"type": "integer", "description": "one number, any."},
                "b": {"type": "integer", "description": "another."},
            },
            "required": ["a"],
            "additionalProperties": False,
        },
    }
    shown = FunctionTool(told).schema["parameters"]["properties"]
    assert shown["ids"] == {"type": ["array", "null"], "items": {"type": "integer"}}
    assert shown["text"] == {"type": "string", "description": "any text"}
    assert FunctionTool(fails).schema["parameters"]["properties"]["how"] == {
        "type": "string",
        "enum": ["value", "connection", "exit"],
    }


def test_types_of_json() -> None:
    def many(
        a: float | None,
        b: Mapping[str, int],
        c: Sequence[list[str]],
        d: Any,
        e: None,
        f: Literal[1, "x"] | None,
        g: bool | str,
        h: list,  # type: ignore[type-arg]
    ) -> None:
        """All of them."""

    assert FunctionTool(many).schema["parameters"]["properties"] == {
        "a": {"type": ["number", "null"]},
        "b": {"type": "object"},
        "c": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
        "d": {},
        "e": {"type": "null"},
        "f": {"type": ["integer", "string", "null"], "enum": [1, "x", None]},
        "g": {"type": ["boolean", "string"]},
        "h": {"type": "array"},
    }


def bare(a: int) -> int:
    return a


def open_ended(a, b: int) -> int:  # type: ignore[no-untyped-def]
    """Any."""
    return b


def starred(*a: int) -> int:
    """Any."""
    return len(a)


def odd(a: complex) -> int:
    """Any."""
    return 0


def either(a: list[int] | Literal["x"]) -> int:
    """Any."""
    return 0


def choice(a: Literal["x"] | int) -> int:
    """Any."""
    return 0


def unknown(a: "Nowhere") -> int:  # type: ignore[name-defined]  # noqa: F821, UP037
    """Any."""
    return 0


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        (bare, "tool 'bare' has no docstring, which is what the model reads"),
        (lambda a: a, "tool '<lambda>' has no name"),
        (open_ended, "parameter 'a' has no annotation, so the model cannot know what to give; write 'a: int'"),
        (starred, r"parameter \*a: 'int' has no name to be given by"),
        (odd, "parameter 'a': <class 'complex'> is nothing that a JSON schema says; use str, int"),
        (either, "a union of two composite types"),
        (choice, "is a choice and another type"),
        (unknown, "its annotations cannot be read .*Nowhere"),
        (int, "is no function; give one, or its import path"),
        (3, r"PlayerSpec.tools\[0\]=3 is no function"),
        ("assay.core.errors:a_kin", "did you mean 'a_kind'"),
        ("a_kind", "is no import path"),
    ],
)
def test_what_no_model_could_call_is_refused(tool: Any, words: str) -> None:
    with pytest.raises((ConfigError, UnknownNameError), match=words):
        PlayerSpec(tools=(tool,))


def test_a_tool_may_be_named_by_its_path() -> None:
    (found,) = PlayerSpec(tools=("assay.core.errors:a_kind",)).tools  # type: ignore[arg-type]
    assert found(3) == "an int"


def test_answers_are_text_or_json() -> None:
    assert answered(add, a=2) == ("3", None)
    assert answered(later_add, a=2, b=3) == ("5", None)
    assert answered(told, name="x", text="é", ids=[1]) == ('{"name": "x", "text": "é", "ids": [1]}', None)

    def wraps() -> Any:
        """A coroutine of another function."""
        return later_add(1, 1)

    def unjson() -> object:
        """No JSON."""
        return object()

    assert answered(wraps) == ("2", None)
    content, error = answered(unjson)
    assert content.startswith("Error: TypeError: Object of type object is not JSON") and error


def test_errors_are_answered_and_those_of_the_infrastructure_raised() -> None:
    assert answered(fails, how="value") == ("Error: ValueError: no such page", "ValueError: no such page")
    assert answered(fails, how="exit")[1] == "RuntimeError: SystemExit: 3"
    with pytest.raises(ConnectionError, match="down"):
        answered(fails, how="connection")


def test_functions_run_apart_from_the_event_loop() -> None:
    """Two that wait for each other could not end on one thread."""
    barrier = threading.Barrier(2, timeout=20)

    def meet() -> int:
        """Waits for the other."""
        return barrier.wait() * 0

    async def both() -> list[str]:
        return [r.content for r in await asyncio.gather(*(FunctionTool(meet).call({}, None) for _ in range(2)))]

    assert asyncio.run(both()) == ["0", "0"]


# ---- any task ---------------------------------------------------------------------------------------------------------


def parts(source: Any, script: Callable[[str], str], deadline: float = 20.0) -> SamplerParts:
    """What a player is made of; ``script`` answers by a request's id."""
    engine = ScriptedEngine(lambda ask: script(engine.requests[-1].id), CODEC, FakeLearner(CODEC.size).weights, 4096)
    return SamplerParts(
        engine=engine,
        tokenizer=CODEC,
        source=source,
        sampling=Sampling(max_new_tokens=200, stop_ids=(CODEC.eos,)),
        seed=0,
        max_turns=4,
        deadline=deadline,
    )


def played(
    source: Any, turns: Sequence[str], tools: Sequence[Any], n: int = 1, deadline: float = 20.0, spec: Any = None, **context: Any
) -> list[Rollout]:
    task = source.task(next(iter(source.arms())), next(iter(source.arms().values()))[0], "train", 0)
    asked = Context(**({"key": "c", "group": "c", "task": task.public_view(), "messages": task.public_view().messages} | context))

    def script(request: str) -> str:
        return turns[int(request.rpartition("#")[2])]

    sampler = (spec or PlayerSpec(tools=tuple(tools))).build(parts(source, script, deadline))
    return asyncio.run(sampler.collect([asked], n))


def shown(rollout: Rollout, call: int) -> str:
    return CODEC.decode(rollout.calls[call].prefix)


def test_a_task_of_one_answer_is_played_with_tools() -> None:
    """Calls are answered, what is wrong with one too, and the last turn is the answer."""
    turns = ["I add." + say("add", a=2, b=3), say("add", a="x") + say("sub", a=1), "It is 5."]
    (rollout,) = played(SortDigits(), turns, [add])
    assert rollout.stop is Stop.DONE and rollout.text == "It is 5."
    assert [[r.content for r in c.results] for c in rollout.calls] == [
        ["5"],
        ["Error: the argument 'a' of add is no integer.", "Error: there is no tool 'sub', only add."],
        [],
    ]
    assert shown(rollout, 1).endswith("5") and shown(rollout, 1).startswith(shown(rollout, 0))
    assert '"description": "The sum."' in rollout.context.messages[0].content


def test_a_policy_that_only_calls_runs_out_of_turns() -> None:
    (rollout,) = played(SortDigits(), [say("add", a=1)] * 4, [add])
    assert (rollout.stop, len(rollout.calls)) == (Stop.LENGTH, 4)


def test_the_environment_of_the_task_hears_all_other_turns() -> None:
    task = KeyValue(levels=(1,)).task("keyvalue", 1, "train", 0)
    key, value = task.public["prompt"][2:-1], task.private["answer"]
    (rollout,) = played(KeyValue(levels=(1,)), [say("add", a=1, b=1), f"?{key}", value], [add])
    assert [[r.content for r in c.results] for c in rollout.calls] == [["2"], [f"={value}>"], []]
    assert rollout.stop is Stop.DONE


def test_errors_of_a_tool_are_observations_and_those_of_the_infrastructure_no_score() -> None:
    (rollout,) = played(SortDigits(), [say("fails", how="value"), "5"], [fails])
    assert rollout.stop is Stop.DONE
    assert rollout.calls[0].results[0].content == "Error: ValueError: no such page"
    (rollout,) = played(SortDigits(), [say("fails", how="connection"), "5"], [fails])
    assert (rollout.stop, rollout.fault) == (Stop.ERROR, Fault.INFRA)
    assert "ConnectionError: down" in str(rollout.error)


def test_a_call_that_hangs_ends_its_rollout_and_no_other() -> None:
    calls.clear()

    def script(request: str) -> str:
        return say("hangs") if "/0#" in request else ("5" if request.endswith("#1") else say("add", a=1))

    task = SortDigits().task("sort", 3, "train", 0).public_view()
    context = Context(key="c", group="c", task=task, messages=task.messages)
    sampler = PlayerSpec(tools=(hangs, add)).build(parts(SortDigits(), script, 0.3))
    begun = time.monotonic()
    hung, other = asyncio.run(sampler.collect([context], 2))
    assert time.monotonic() - begun < 20  # nobody waits for the thread
    assert (hung.stop, hung.fault) == (Stop.ERROR, Fault.POLICY)
    assert (other.stop, other.text) == (Stop.DONE, "5")
    assert calls == ["hangs", "hangs"]


def test_a_broken_tool_that_comes_back_leaves_no_trace() -> None:
    """The rollout is played again: equal tokens, whether or not the tool failed once."""
    down = [1]

    def flaky(a: int) -> int:
        """Down once."""
        if down:
            raise ConnectionError(down.pop())
        return a

    turns = [say("add", a=1), say("flaky", a=7), "7"]
    once, never = (played(SortDigits(), turns, [add, flaky])[0] for _ in range(2))
    assert [c.tokens.tolist() for c in once.calls] == [c.tokens.tolist() for c in never.calls]
    assert once.stop is never.stop is Stop.DONE


def test_tools_stand_where_the_template_shows_them() -> None:
    source = ToolSource(SortDigits(), [FunctionTool(add)], Shows(TEXT))
    first, *rest = source.declare((Message(TOOLS, '[{"name": "own"}]'), Message("user", "?")), "here")
    assert [entry["name"] for entry in json.loads(first.content)] == ["own", "add"]
    assert rest == [Message("user", "?")]
    again = source.declare((first, *rest), "here")
    assert again == (first, *rest)  # a rollout's own context is played again as it was
    with pytest.raises(ConfigError, match="here declares a tool 'add' of its own; give that of the sampler another name"):
        source.declare((Message(TOOLS, '[{"name": "add"}]'), Message("user", "?")), "here")
    task = source.task("sort", 3, "train", 0)
    assert task.public["tools"][0]["name"] == "add" and source.name == "sort"
    assert task.public_view().messages[0].role == TOOLS


class Shows(CharCodec):
    """A tokenizer that can write declarations."""

    def render(self, messages: Sequence[Message], answer: bool = True) -> Any:
        return super().render([replace(m, role="user") if m.role == TOOLS else m for m in messages], answer)


def test_tools_are_described_in_words_where_no_template_shows_them() -> None:
    source = ToolSource(SortDigits(), [FunctionTool(add)], char_tokenizer(TEXT))
    (told_user,) = source.declare((Message("user", "1+1?"),), "here")
    assert told_user.content.startswith("You may call functions.") and told_user.content.endswith("</tool_call>\n\n1+1?")
    system, user = source.declare((Message("system", "Be kind."), Message("user", "?")), "here")
    assert system.content.startswith("Be kind.\n\nYou may") and user == Message("user", "?")
    assert source.declare((system, user), "here") == (system, user)
    with pytest.raises(ConfigError, match="no system or user turn in front of which tools could be described"):
        source.declare((Message("assistant", "?"),), "here")
    with pytest.raises(ConfigError, match="a ChatTemplate writes no messages of role 'tools'"):
        source.declare((Message(TOOLS, '[{"name": "own"}]'), Message("user", "?")), "here")
    assert source.task("sort", 3, "train", 0).public_view().messages[0].content.startswith("You may")


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"tools have the names \['add', 'add'\]"):
        played(SortDigits(), ["5"], [add, add])


def test_privileged_and_scored_prompts_show_the_tools_too() -> None:
    (rollout,) = played(
        SortDigits(), ["5"], [add], score_messages=(Message("user", "?"),), privileged=(Message("user", "It is 5."),)
    )
    for messages in (rollout.context.messages, rollout.context.score_messages, rollout.context.privileged):
        assert messages and '"name": "add"' in messages[0].content


def test_an_answer_that_the_tokenizer_lacks_is_given_in_escapes() -> None:
    def odd_text() -> str:
        """Says é."""
        return "é"

    codec = char_tokenizer(TEXT)
    task = SortDigits().task("sort", 3, "train", 0)
    environment = ToolSource(SortDigits(), [FunctionTool(odd_text)], codec).environment(task.public_view())

    async def heard() -> Obs:
        await environment.start()
        return (await environment.step(say("odd_text"))).obs

    (message,) = asyncio.run(heard()).messages
    assert message.content == "\\xe9"


def test_a_game_goes_on_from_a_snapshot_and_names_who_acts() -> None:
    source = Heaps(levels=(2,))
    task = source.task("heaps", 2, "train", 0)
    (rollout, *_) = played(
        source,
        [say("add", a=1), "nonsense", "nonsense", "nonsense"],
        [add],
        snapshot={"heaps": [1, 1], "turn": 0},
        messages=task.public_view().messages,
    )
    first = rollout.calls[0]
    assert first.results[0].content == "2"
    assert rollout.calls[1].role == first.role  # a tool's answer goes to whoever asked


def test_branches_of_a_rollout_with_tools_share_its_context() -> None:
    spec = Branching(tau=-10.0, play=PlayerSpec(tools=(add,)))
    rollouts = played(SortDigits(), [say("add", a=1), "5", "5"], [], n=4, spec=spec)
    assert len(rollouts) == 4
    assert any(c.shared for r in rollouts for c in r.calls)
    assert all(r.context.messages[0].content.count('"name": "add"') == 1 for r in rollouts)


def test_seeds_do_not_depend_on_tools() -> None:
    (rollout,) = played(SortDigits(), ["5"], [add])
    assert rollout.seed == derive("rollout", 0, "c", 0)


def test_the_source_behind_tools_offers_what_the_source_offers() -> None:
    source = ToolSource(SortDigits(), [FunctionTool(add)], CODEC)
    assert source.arms() == SortDigits().arms() and source.alphabet == SortDigits().alphabet
    with pytest.raises(AttributeError):
        source.size  # noqa: B018
    assert pickle.loads(pickle.dumps(source)).name == source.name


def test_partial_functions_have_no_name() -> None:
    with pytest.raises(ConfigError, match="has no name"):
        PlayerSpec(tools=(functools.partial(add, 1),))
