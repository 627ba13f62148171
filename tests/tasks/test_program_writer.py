"""A model writes generator and solutions of a problem: what is asked, what is refused, and the family that comes of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from assay.clients import OpenAIClient
from assay.core.errors import ConfigError, DataError
from assay.select import ProgramWriter, WrittenFamily
from assay.tasks import ProgramTask

STATEMENT = "Print the sum of the numbers in the line."
SOLUTION = "print(sum(map(int, input().split())))"
WRONG = "print(max(map(int, input().split())))"
GENERATOR = "import random as r\nn, s = map(int, input().split())\nr.seed(s)\nprint(*[r.randrange(99) for _ in range(n + 1)])"
CONSTANT = "input()\nprint(1, 2)"
SMALL = {"most_scale": 2, "samples": 4, "steps": 2}


def block(code: str) -> str:
    return f"Here it is.\n```python\n{code}\n```"


class Asked:
    """A server: what it says of uniqueness, and its generators and solutions in order, the last one over and over."""

    def __init__(self, generators: list[str], solutions: list[str], unique: str = "UNIQUE: yes\nSCALE: how many numbers") -> None:
        self.left = {"generator": list(generators), "solution": list(solutions)}
        self.unique = unique
        self.questions: list[tuple[str, str]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        question = json.loads(request.content)["messages"][-1]["content"]
        kind = "unique" if "UNIQUE" in question else "generator" if "makes random" in question else "solution"
        self.questions.append((kind, question))
        said = self.unique if kind == "unique" else self.left[kind][0]
        if kind != "unique" and len(self.left[kind]) > 1:
            self.left[kind].pop(0)
        return httpx.Response(200, json={"choices": [{"index": 0, "message": {"content": said}, "finish_reason": "stop"}]})

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.questions]


def written(server: Asked, references: list[Callable[[str], str]] | None = None, **changes: Any) -> WrittenFamily:
    client = OpenAIClient("http://here/v1", "m", transport=httpx.MockTransport(server))
    writer = ProgramWriter(client=client, **{"references": 2, **changes})
    return asyncio.run(writer.write("toy/sum", STATEMENT, references or [], **SMALL))


def test_a_generator_and_solutions_become_a_family_whose_answers_are_right() -> None:
    server = Asked([block(GENERATOR)], [block(SOLUTION)])
    found = written(server)
    assert server.kinds == ["unique", "generator", "solution", "solution"]
    assert "grow with the scale: how many numbers" in server.questions[1][1]
    assert (found.scale, found.refused, found.scaled.largest) == ("how many numbers", (), 2)
    task = found.scaled.family.task("toy/sum", 2, "train", 0)
    numbers = [int(word) for word in task.public["facts"]["input"].split()]
    assert len(numbers) == 3 and task.private["answer"] == str(sum(numbers))


def test_what_is_refused_is_written_again_with_the_reason() -> None:
    server = Asked([block(CONSTANT), "no code", block(GENERATOR)], [block(SOLUTION)])
    found = written(server)
    assert server.kinds == ["unique", "generator", "solution", "solution", "generator", "generator", "solution", "solution"]
    assert len(found.refused) == 2 and "let the generator vary more" in found.refused[0] and "no code" in found.refused[1]
    again = [question for kind, question in server.questions if kind == "generator"]
    assert "refused" not in again[0] and "let the generator vary more" in again[1]


def test_solutions_that_disagree_are_refused_and_those_that_a_problem_brings_are_taken() -> None:
    with pytest.raises(DataError, match=r"toy/sum: none of 1 attempts of m is fit: .*reference 1 gives"):
        written(Asked([block(GENERATOR)], [block(SOLUTION), block(WRONG)]), tries=1)
    server = Asked([block(GENERATOR)], [])
    found = written(server, references=[lambda text: str(sum(map(int, text.split())))])
    assert server.kinds == ["unique", "generator"] and isinstance(found.scaled.task, ProgramTask)


def test_a_problem_of_several_right_outputs_and_an_answer_of_another_form_are_refused() -> None:
    for said, why in (
        ("UNIQUE: no\nSCALE: n", "several right outputs"),
        ("Yes, n.", "asked for two lines"),
        ("UNIQUE: yes\nSCALE: ", "two lines"),
    ):
        server = Asked([block(GENERATOR)], [block(SOLUTION)], unique=said)
        with pytest.raises(DataError, match=why):
            written(server)
        assert server.kinds == ["unique"]
    with pytest.raises(ConfigError, match="references=1"):
        ProgramWriter(client=OpenAIClient("http://here/v1", "m"), references=1)
