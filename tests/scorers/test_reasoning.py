"""A judge's votes on reasoning: what it is asked, how it is read, and that its silence is no vote."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from assay.core.errors import DataError, EngineError
from assay.core.task import Message
from assay.scorers import first_wrong_step, reasoning_question, vote_on_reasoning
from assay.scorers.reasoning import steps_of
from assay.testing import ScriptedScoring


def test_the_question_numbers_the_steps_between_marks() -> None:
    _, asked = reasoning_question("2+2?", "two and two\n\nfour")
    mark = asked.content.split("between two lines ")[1].split(":")[0]
    assert f"{mark}\n[0] two and two\n[1] four\n{mark}" in asked.content
    assert steps_of("") == [""]


@pytest.mark.parametrize("reply", ["", "3", "-2", "0 or 1", "none"])
def test_what_is_no_step_is_refused(reply: str) -> None:
    with pytest.raises(DataError):
        first_wrong_step(reply, 3)


def reply(messages: Sequence[Message]) -> str:
    asked = messages[-1].content
    if "silent" in asked:
        raise EngineError("no answer")
    return "0" if "guess" in asked else "-1"


def test_only_right_answers_are_judged() -> None:
    ctx = ScriptedScoring(replies={"critic": reply})
    items = [{"id": "a", "values": [1.0, 1.0, 0.0, 1.0], "answers": ["sum", "guess", "guess", "silent"]}]
    (found,) = asyncio.run(vote_on_reasoning(items, {"a": "2+2?"}, ctx.judge("critic"), votes=2))
    assert found["reasoning"] == [[True, True], [False, False], None, []]
    with pytest.raises(DataError, match="'b'"):
        asyncio.run(vote_on_reasoning([{**items[0], "id": "b"}], {"a": ""}, ctx.judge("critic")))
