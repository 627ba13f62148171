"""The check of an environment calls every tool that its tasks declare."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from assay.core import FrozenMap, Task, TaskView, ToolResult
from assay.tasks import Rows
from assay.testing import ContractError, check_environment, check_task_source
from assay.testing.malformed_actions import calls_to_try
from assay_tasks import ToolCalls, schemas_of

ROWS = [{"prompt": f"{n} figs cost?", "answer": str(3 * n)} for n in range(2, 60)]
PRICE = {
    "name": "price",
    "description": "What one costs.",
    "parameters": {"type": "object", "properties": {"thing": {"type": "string"}}, "required": ["thing"]},
}


class Price:
    """A tool of a class, as a family's own: what it raises is no answer."""

    schema: Mapping[str, Any] = PRICE

    def __init__(self, answer: Callable[[str], str]) -> None:
        self.answer = answer

    async def call(self, args: Mapping[str, Any], scope: TaskView) -> ToolResult:
        return ToolResult(content=self.answer(args["thing"]))


class Shop(Rows):
    """Rows whose tasks declare the tool."""

    answer: Callable[[str], str] = staticmethod(lambda thing: {"figs": "3"}.get(thing, "not sold here"))

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        plain = super().task(arm, level, split, index)
        return replace(
            plain, public=FrozenMap({**plain.public, "facts": plain.public, "tools": schemas_of([Price(self.answer)])})
        )

    def environment(self, world: TaskView) -> ToolCalls:
        return ToolCalls(world, [Price(self.answer)])


numbers = itertools.count()


class Untraced(Shop):
    def trace(self, task: Task, noise: float, rng: Any) -> None:
        return None


class Raises(Shop):
    answer = staticmethod(lambda thing: {"figs": "3"}[thing])


class RaisesOnTheRightOne(Shop):
    answer = staticmethod(lambda thing: str(1 // 0) if thing == "figs" else "not sold here")


class Counts(Shop):
    answer = staticmethod(lambda thing: str(next(numbers)))


def check(family: type[Shop]) -> Any:
    source = family(ROWS)
    return check_environment(source, source.task("rows", 1, "train", 0))


def test_every_declared_tool_is_called() -> None:
    report = check(Shop)
    assert "answers calls of every declared tool, the same again" in report.passed
    # "x", "", and the prompt's three words; without arguments; with another type
    assert report.numbers["calls of declared tools"] == 7
    skipped = check_task_source(Untraced(ROWS), n=4).skipped
    assert "environment: answers the oracle as its trace says: the family has no trace" in skipped


@pytest.mark.parametrize(
    ("family", "finding"),
    [
        (Raises, r"raised KeyError on price with fitting arguments, .*\"x\""),
        (RaisesOnTheRightOne, r"raised ZeroDivisionError on price with fitting arguments, .*\"figs\""),
        (Counts, r"answers price with fitting arguments, .*, first with \['\d+'\] and then with"),
    ],
)
def test_a_tool_that_raises_or_is_random_is_found(family: type[Shop], finding: str) -> None:
    with pytest.raises(ContractError, match=finding):
        check(family)


def test_an_argument_of_several_types_or_of_few_values() -> None:
    parameters = {"properties": {"unit": {"enum": ["cm", "in"]}, "n": {"type": ["null", "integer"]}}, "required": ["unit"]}
    actions = [action for _, action in calls_to_try([{"name": "draw", "parameters": parameters}], "")]
    assert actions[:2] == [
        f'<tool_call>{{"name": "draw", "arguments": {{"unit": "{u}", "n": null}}}}</tool_call>' for u in ("cm", "in")
    ]
    assert len(actions) == 4 and '"arguments": {}' in actions[2]
