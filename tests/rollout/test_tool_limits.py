"""Tools that hang, flood, change their arguments or keep a state: what the policy is told, and what is counted."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest
from test_function_tools import parts, played, say

from assay.core.config import dumps_toml, from_dict, loads_toml, to_dict
from assay.core.errors import ConfigError
from assay.core.rollout import Stop, ToolResult
from assay.core.score import Fault
from assay.core.task import TaskView
from assay.rollout import FunctionTool, MethodTool, PlayerSpec, ToolLimits, tool
from assay.rollout.tool_class import EpisodeTools, ToolClass, tools_from
from assay_tasks import SortDigits

closed: list[str] = []
seen: list[Any] = []


@tool(deadline=0.05, cost=0.5)
def sleeps(seconds: float) -> str:
    """Sleeps."""
    time.sleep(seconds)
    return "awake"


@tool(deadline=0.05)
async def naps(seconds: float) -> str:
    """Sleeps on the event loop."""
    await asyncio.sleep(seconds)
    return "awake"


@tool(characters=10)
def floods(n: int) -> str:
    """Says much."""
    return "x" * n


def spoils(items: list[int], more: dict[str, int]) -> str:
    """Changes what it is given."""
    items.clear()
    more["new"] = 1
    return "spoilt"


async def late_itself() -> str:
    """Fails as a network does."""
    raise TimeoutError("the network")


def priced() -> ToolResult:
    """Tells its own cost."""
    return ToolResult(content="x" * 3, cost=0.25)


class Counter:
    """Counts for one rollout."""

    def __init__(self) -> None:
        self.n = 0

    def count(self, by: int = 1) -> int:
        """Counts on.

        Args:
            by: so many.
        """
        self.n += by
        return self.n

    async def look(self) -> int:
        """What the count is."""
        return self.n

    def close(self) -> None:
        closed.append(f"at {self.n}")


@tool(characters=5)
class Knowing:
    """Knows its task."""

    def __init__(self, task: TaskView) -> None:
        self.task = task

    def whose(self) -> str:
        """The task's name."""
        return self.task.id

    async def close(self) -> None:
        raise RuntimeError("cannot be closed")


class Needy:
    def __init__(self, key: str) -> None:
        self.key = key

    def use(self) -> str:
        """Uses the key."""
        return self.key


def test_a_call_that_hangs_is_told_and_the_rollout_goes_on() -> None:
    (rollout,) = played(
        SortDigits(), [say("sleeps", seconds=5), say("naps", seconds=5), say("sleeps", seconds=0), "7"], [sleeps, naps]
    )
    assert rollout.stop is Stop.DONE and rollout.fault is Fault.NONE and rollout.text == "7"
    first, second, third = (call.results[0] for call in rollout.calls[:3])
    for late in (first, second):
        assert (late.content, late.error, late.timed_out) == ("Error: no answer within 0.05 s.", "no answer within 0.05 s", True)
    assert (third.content, third.timed_out, third.cost, first.cost, second.cost) == ("awake", False, 0.5, 0.5, 0.0)
    assert first.duration < 4


def test_a_timeout_of_its_own_is_a_fault_of_the_infrastructure() -> None:
    with pytest.raises(TimeoutError, match="the network"):
        asyncio.run(FunctionTool(late_itself).call({}, None))


def test_an_answer_that_floods_is_cut_and_says_so() -> None:
    (rollout,) = played(SortDigits(), [say("floods", n=1000), say("floods", n=10), "7"], [floods])
    long, short = rollout.calls[0].results[0], rollout.calls[1].results[0]
    assert long.content == "x" * 10 + " ... (990 more characters are left out)" and (long.cut, long.error) == (990, None)
    assert (short.content, short.cut) == ("x" * 10, 0)


def test_what_a_tool_does_to_its_arguments_changes_no_record() -> None:
    given: Mapping[str, Any] = {"items": [1, 2], "more": {"a": 1}}
    assert asyncio.run(FunctionTool(spoils).call(given, None)).content == "spoilt"
    assert given == {"items": [1, 2], "more": {"a": 1}}
    said = say("spoils", items=[1, 2], more={"a": 1})
    (rollout,) = played(SortDigits(), [said, said, "7"], [spoils])
    assert [call.text for call in rollout.calls[:2]] == [said, said] and rollout.calls[0].results[0].error is None


def test_a_tool_may_tell_what_a_call_cost() -> None:
    assert asyncio.run(FunctionTool(priced).call({}, None)).cost == 0.25


def test_calls_of_a_turn_run_side_by_side_and_keep_their_order() -> None:
    barrier = threading.Barrier(2, timeout=20)

    def meets(who: str) -> str:
        """Waits for the other."""
        barrier.wait()
        return who

    (rollout,) = played(SortDigits(), [say("meets", who="a") + say("meets", who="b"), "7"], [meets])
    assert [r.content for r in rollout.calls[0].results] == ["a", "b"]


def test_each_rollout_has_an_instance_of_its_own_which_is_closed() -> None:
    closed.clear()
    turns = [say("count") + say("count", by=4) + say("look"), say("look"), "7"]
    rollouts = played(SortDigits(), turns, [Counter], n=2)
    for rollout in rollouts:
        assert [r.content for call in rollout.calls for r in call.results] == ["1", "5", "5", "5"]
    assert closed == ["at 5", "at 5"]
    spec = PlayerSpec(tools=(Counter,))
    assert spec.tools == (ToolClass(f"{__name__}:Counter"),) and [t.schema["name"] for t in spec.all_tools()] == ["count", "look"]
    assert PlayerSpec(tools=(f"{__name__}:Counter",)) == spec  # type: ignore[arg-type]
    assert from_dict(PlayerSpec, loads_toml(dumps_toml(to_dict(spec)))) == spec
    assert spec.build(parts(SortDigits(), str)).tools == spec.all_tools()
    assert spec.all_tools()[0].schema["parameters"]["properties"] == {"by": {"type": "integer", "description": "so many."}}


def test_an_instance_may_know_its_task_and_failing_to_close_changes_nothing() -> None:
    (rollout,) = played(SortDigits(), [say("whose"), "7"], [Knowing])
    assert rollout.calls[0].results[0].content.startswith("sort/ ...") and rollout.stop is Stop.DONE


def test_a_method_can_be_checked_alone() -> None:
    closed.clear()
    assert asyncio.run(MethodTool(Counter, "count").call({"by": 3}, None)).content == "3" and closed == ["at 3"]
    episode = EpisodeTools(None)
    asyncio.run(episode.close())
    assert closed == ["at 3"]


def test_an_object_with_a_schema_is_a_tool_already() -> None:
    made = FunctionTool(priced)
    assert tools_from(made, "here") == (made,)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: tools_from(Needy, "here"), "here=Needy needs 'key' to be made"),
        (lambda: ToolClass("assay.core.errors:a_kind"), "is a function; name it"),
        (lambda: tools_from(int, "here"), "is no function.*or a class with public methods"),
        (lambda: ToolLimits(deadline=0.0), "give seconds above 0"),
        (lambda: ToolLimits(characters=0), "at least 1 character"),
        (lambda: tool(cost=float("inf")), "a cost of 0 or more"),
    ],
)
def test_what_cannot_be_is_refused(made: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        made()
