"""Calls of tools, counted: of stages that have tools, and of no other, whose digests stay."""

from __future__ import annotations

from dataclasses import replace

from assay.core.group import Group
from assay.core.protocols import Draw
from assay.core.rollout import Rollout, ToolResult
from assay.core.score import Score
from assay.rollout.spec import PlayerSpec
from assay.testing import rollout_of
from assay.train.tool_metrics import tool_metrics
from assay_tasks import SortDigits

TASK = SortDigits(levels=(3,)).task("sort", 3, "train", 0)
OK, BAD = ToolResult(content="3"), ToolResult(content="Error: no.", error="no")


def price(item: str) -> str:
    """What an item costs."""
    return item


def played(*results: ToolResult, shared: bool = False) -> Rollout:
    rollout = rollout_of(TASK, "1")
    return replace(rollout, calls=(replace(rollout.calls[0], results=results, shared=shared),))


def group(*rollouts: Rollout) -> Group:
    scores = tuple(Score(components={"correct": 1.0}) for _ in rollouts)
    return Group(key="g0", task=TASK, draw=Draw("sort", 3, 1.0), rollouts=rollouts, scores=scores)


def test_calls_are_per_rollout_and_errors_per_call() -> None:
    found = tool_metrics(PlayerSpec(), [group(played(OK, BAD), played()), group(played(OK))])
    assert found == {"tools/calls": 1.0, "tools/errors": 1 / 3}


def test_a_call_that_another_rollout_made_is_counted_there() -> None:
    assert tool_metrics(PlayerSpec(), [group(played(OK, shared=True), played(OK))])["tools/calls"] == 0.5


def test_no_call_is_a_number_where_there_are_tools_and_nothing_where_there_are_none() -> None:
    assert tool_metrics(PlayerSpec(tools=(price,)), [group(played())]) == {"tools/calls": 0.0}
    assert tool_metrics(PlayerSpec(), [group(played())]) == tool_metrics(PlayerSpec(tools=(price,)), []) == {}


def test_timeouts_cuts_and_costs_are_numbers_where_there_are_any() -> None:
    late, long = ToolResult(content="Error", error="late", timed_out=True, cost=0.5), ToolResult(content="a", cut=7)
    found = tool_metrics(PlayerSpec(), [group(played(OK, late), played(OK, long))])
    assert found == {"tools/calls": 2.0, "tools/errors": 0.25, "tools/timeouts": 0.25, "tools/cut": 0.25, "tools/cost": 0.25}
