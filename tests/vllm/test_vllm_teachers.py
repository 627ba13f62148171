"""A real server as a teacher and as a judge, by OpenAI's routes."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from assay.clients import OpenAIClient
from assay.core.canon import FrozenMap
from assay.core.errors import EngineError
from assay.core.protocols import Obs, Step
from assay.core.task import Message
from assay.select import Distillation, ServerTeacher
from assay.tasks import Rows
from assay.verify import RewardFunction, rollout_of
from assay_tasks import KeyValue, schemas_of
from assay_tasks.keyvalue import LookUp

PROMPTS = [{"prompt": f"Say something about {n}."} for n in range(24)]


def has_digits(prompt: str, completion: str, row: dict[str, str]) -> float:
    return float(sum(c.isdigit() for c in completion) >= 2)


@pytest.fixture
def client(server, folder):
    return lambda: OpenAIClient(server.url + "/v1", str(folder), seconds=60, concurrency=8)


def test_a_distillation_keeps_what_the_verifier_calls_right(client, tmp_path):
    """The random model says noise until its end token; what holds digits counts as right."""
    source = Rows(PROMPTS, reward=has_digits)
    teacher = lambda: ServerTeacher(client=client(), max_new_tokens=300, thinking=None)
    made = Distillation(teacher=teacher(), tasks=source, per_level=8, answers=2)
    found = made.run(tmp_path / "rows.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    counts = found.counts
    assert counts["asked"] == 16 and found.tasks == 8
    assert 0 < found.solved == len(rows) == found.rows
    assert sum(n for name, n in counts.items() if name != "asked") == 16
    for row in rows:
        said = row["messages"][-1]["content"] if "messages" in row else row["completion"]
        assert has_digits("", said if isinstance(said, str) else said[-1]["content"], {}) == 1.0

    gone = ServerTeacher(client=OpenAIClient("http://127.0.0.1:9/v1", "x", attempts=1), max_new_tokens=300, thinking=None)
    again = Distillation(teacher=teacher(), tasks=source, per_level=8, answers=2, prefer="shortest").run(tmp_path / "rows.jsonl")
    assert (again.tasks, again.solved, again.counts) == (found.tasks, found.solved, counts)  # nothing was asked again
    with pytest.raises(
        EngineError, match=r"the teacher answered nothing of 2 attempts; the first: POST .* no answer in 1 attempts"
    ):
        Distillation(teacher=gone, tasks=source, per_level=2, answers=1).run(tmp_path / "none.jsonl")


class Twice:
    """Answers once, then ends."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def start(self) -> Obs:
        return Obs()

    async def step(self, action: str) -> Step:
        self.heard.append(action)
        return Step(done=True) if len(self.heard) > 1 else Step(obs=Obs((Message("tool", "=80>"),)))


def test_several_turns_with_a_tool_that_the_servers_template_shows(server, client, folder):
    """Turns of role tool and declared tools pass vLLM's own checks; calls come back as text."""
    task = KeyValue().task("keyvalue", 1, "train", 0)
    public = FrozenMap({"prompt": "What is oa?", "tools": schemas_of([LookUp()])})
    worlds: list[Twice] = []

    def environment(world):
        worlds.append(Twice())
        return worlds[-1]

    teacher = ServerTeacher(client=client(), max_new_tokens=400, thinking=None)
    source = SimpleNamespace(environment=environment)

    async def ask():
        made = await teacher.ask(source, [replace(task, public=public)], 4)
        await teacher.close()
        return made[0]

    rollouts = asyncio.run(ask())
    assert len(rollouts) == 4
    done = [a for a in rollouts if not isinstance(a, str) and len(a.calls) == 2]
    assert done, rollouts
    assert [c.text for c in done[0].calls] in [w.heard for w in worlds]

    asked = {"model": str(folder), "messages": [{"role": "user", "content": "What is oa?"}], "max_tokens": 1}
    shown = {"tools": [{"type": "function", "function": LookUp().schema}], "tool_choice": "none"}
    plain, more = (server.post("/v1/chat/completions", asked | extra).json()["usage"]["prompt_tokens"] for extra in ({}, shown))
    assert more == plain + len("look_up\n")  # a letter is a token here


def test_a_judge_is_a_reward_function_that_asks(client):
    """What a judge says becomes a number."""

    def judge(prompt: str, completion: str, row: dict[str, str]) -> float:
        async def ask():
            judging = client()
            answers = await judging.chat([Message("user", f"Rate this: {completion}")], n=4, max_tokens=64, seed=1)
            await judging.close()
            return answers

        said = [answer.text for answer in asyncio.run(ask())]
        marks = [int(c) for text in said for c in text if c.isdigit()]
        if not marks:
            raise EngineError(f"no mark in {said!r}")
        return sum(marks) / len(marks) / 9

    task = Rows(PROMPTS, reward=judge).task("rows", 1, "train", 0)
    score = RewardFunction(judge)
    values = [score(task, rollout_of(task, text)).components["reward"] for text in ("A fine day.", "A fine day.")]
    assert 0.0 <= values[0] == values[1] <= 1.0
