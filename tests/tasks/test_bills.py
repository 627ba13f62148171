"""Bills: what the tools answer, when they lie, and both forms held to the contract of families."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import numpy as np
import pytest

from assay.core.errors import ConfigError
from assay.core.task import CALLS
from assay.testing import check_environment, check_task_source
from assay.verify.rollouts import rollout_of
from assay_tasks import Bills

QUIET = np.random.default_rng(0)


def said(source: Bills, actions: list[str], level: int = 2) -> list[tuple[str, bool, bool]]:
    """What is shown to each action, whether it was an error, and whether the episode is over."""
    world = source.environment(source.task("bills", level, "train", 0).public_view())

    async def play() -> list[tuple[str, bool, bool]]:
        await world.start()
        steps = [await world.step(action) for action in actions]
        return [("".join(m.content for m in s.obs.messages), any(r.error for r in s.results), s.done) for s in steps]

    return asyncio.run(play())


@pytest.mark.slow
@pytest.mark.parametrize("form", ["marks", "calls"])
def test_it_is_a_family(form: Any) -> None:
    source = Bills(levels=(1, 2), form=form)
    check_task_source(source)
    check_environment(source, source.task("bills", 2, "train", 0))


def test_the_oracle_looks_up_and_adds() -> None:
    source = Bills()
    task = source.task("bills", 2, "train", 0)
    turns = source.trace(task, 0.0, QUIET)
    assert [m.content for m in turns] == ["?ib", "=90ui>", "#90", "=90>", "?ui", "=12.>", "#12", "=102>", "102"]
    assert source.verifier()(task, rollout_of(task, "102")).components == {"correct": 1.0, "format": 1.0}
    noisy = source.trace(task, 1.0, np.random.default_rng(3))
    assert len(noisy) > len(turns) and any(m.content == "!>" for m in noisy)


def test_the_same_in_the_form_of_calls() -> None:
    source = Bills(form="calls")
    task = source.task("bills", 1, "train", 0)
    first, shown, second, _, answer = source.trace(task, 0.0, QUIET)
    assert (first.role, second.role, answer.role) == (CALLS, CALLS, "assistant") and shown.content.endswith(".")
    assert [json.loads(m.content)[0]["name"] for m in (first, second)] == ["line", "add"]
    assert [tool["name"] for tool in task.public["tools"]] == ["line", "add"] and "first line" in task.public["prompt"]
    call = '<tool_call>{"name": "add", "arguments": {"number": 12}}</tool_call>'
    assert [text for text, _, _ in said(source, [call, call, "24"])] == ["12", "24", ""]


def test_what_cannot_be_called_is_answered() -> None:
    asked = said(Bills(), ["?zz", "#", "#123456", "#1x", "?ib", "#90", "#12"])
    assert [text for text, _, _ in asked] == ["!>", "!>", "!>", "!>", "=90ui>", "=90>", "=102>"]
    assert [wrong for _, wrong, _ in asked] == [True] * 4 + [False] * 3
    assert [done for _, _, done in said(Bills(spare=0), ["?ib", "#90", "?ui", "#12"])] == [False, False, False, True]
    assert said(Bills(), ["7"]) == [("", False, True)]


def test_tools_that_lie_say_the_same_again_and_never_the_truth() -> None:
    honest, lying = Bills(levels=(1, 2, 3, 4)), Bills(levels=(1, 2, 3, 4), lies=1.0)
    for level in (1, 2, 3, 4):
        assert honest.task("bills", level, "train", 0).private == lying.task("bills", level, "train", 0).private
        key = honest.task("bills", level, "train", 0).public["prompt"][1:3]
        true, false = said(honest, [f"?{key}", "#7"], level), said(lying, [f"?{key}", "#7"], level)
        assert all(a[0] != b[0] for a, b in zip(true, false, strict=True)) and false == said(lying, [f"?{key}", "#7"], level)
        assert true[0][0].lstrip("=0123456789") == false[0][0].lstrip("=0123456789")  # the next line is told


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"levels": (0,)}, "from 1 to 12"),
        ({"form": "words"}, "use 'marks' or 'calls'"),
        ({"spare": -1}, "spare must be >= 0"),
        ({"lies": 2.0}, "a share in"),
        ({"test_share": 1.0}, "between 0 and 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Bills(**given)
