"""Distillation: which answers of a teacher become rows, what is counted, and that a kill loses nothing."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tiny_runs import SHAPE, imitate, in_child, tiny, warm_up

from assay.clients.openai_client import OpenAIClient
from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError, EngineError, RewardError, UnknownNameError
from assay.core.task import Task
from assay.runs.storage import read_json
from assay.select import Distillation, ModelTeacher, ServerTeacher
from assay.select.teachers import context_of
from assay.tasks import Rows
from assay.train import Evaluation, Scratch, train
from assay.train.imitate import demonstrations_of
from assay_tasks import KeyValue, SortDigits

TASKS = SortDigits(levels=(2, 3))
Say = Callable[[list[dict[str, str]], int], Any]


def server(say: Say, **more: Any) -> ServerTeacher:
    """A server whose n-th answer to a question is what ``say`` gives for the conversation and n: text, or text and reason."""
    asked: dict[str, int] = {}

    def answer(request: httpx.Request) -> httpx.Response:
        talk = json.loads(request.content)["messages"]
        number = asked[str(talk)] = asked.get(str(talk), -1) + 1
        said = say(talk, number)
        if isinstance(said, int):
            return httpx.Response(said, text="no")
        text, finish = said if isinstance(said, tuple) else (said, "stop")
        return httpx.Response(200, json={"choices": [{"index": 0, "message": {"content": text}, "finish_reason": finish}]})

    client = OpenAIClient("http://host/v1", "m", transport=httpx.MockTransport(answer), pause=0.0, attempts=2)
    return ServerTeacher(client=client, **more)


def right(talk: list[dict[str, str]]) -> str:
    return "".join(sorted(re.sub(r"\D", "", talk[-1]["content"])))


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def distil(teacher: Any, **changes: Any) -> Distillation:
    given: dict[str, Any] = {"teacher": teacher, "tasks": TASKS, "per_level": 2, "at_once": 3}
    return Distillation(**(given | changes))


# ---- what is kept -------------------------------------------------------------------------------------------------------


def test_right_answers_become_rows_to_imitate(tmp_path: Path) -> None:
    found = distil(server(lambda talk, n: right(talk))).run(tmp_path / "rows.jsonl")
    assert (found.rows, found.tasks, found.solved, found.again) == (4, 4, 4, 0)
    assert found.counts == {"asked": 16, "right": 16, "repeated": 12, "wrong": 0, "cut_off": 0, "unanswered": 0, "unjudged": 0}
    made = rows(tmp_path / "rows.jsonl")
    train = {TASKS.task("sort", level, "train", i).public["prompt"] for level in (2, 3) for i in range(8)}
    for row, level in zip(made, (2, 2, 3, 3), strict=True):
        asked, said = row["messages"]
        assert asked["role"] == "user" and asked["content"] in train
        assert said == {"role": "assistant", "content": right([asked])}
        assert (row["arm"], row["level"], row["value"]) == ("sort", level, 1.0) and row["task"].startswith("sort/")
    shown = demonstrations_of(imitate(data=tmp_path / "rows.jsonl", batch=4))
    assert [d.turns[-1].content for d in shown] == [row["messages"][1]["content"] for row in made]


def test_each_attempt_counts_as_what_it_was(tmp_path: Path) -> None:
    """By hand, six attempts: right, the same once more, wrong, cut off, empty, unanswered."""

    def say(talk: list[dict[str, str]], n: int) -> Any:
        gold = right(talk)
        return (gold, gold, "x", (gold, "length"), "", 500)[min(n, 5)]

    found = distil(server(say), answers=6, per_level=1).run(tmp_path / "rows.jsonl")
    assert found.counts == {"asked": 12, "right": 4, "repeated": 2, "wrong": 4, "cut_off": 2, "unanswered": 2, "unjudged": 0}
    assert (found.rows, found.solved, found.again) == (2, 2, 0)


def test_thoughts_are_kept_between_their_tags_and_judged_by_nobody(tmp_path: Path) -> None:
    def say(talk: list[dict[str, str]], n: int) -> str:
        thought = ("a long thought, 99", "short")[n % 2]
        return f"<think>{thought}</think>\n{right(talk)}"

    def contents(**changes: Any) -> list[str]:
        distil(server(say), per_level=1, answers=2, levels=(2,), **changes).run(tmp_path / "rows.jsonl")
        return [row["messages"][1]["content"] for row in rows(tmp_path / "rows.jsonl")]

    (first,) = contents()
    gold = right([rows(tmp_path / "rows.jsonl")[0]["messages"][0]])
    assert first == f"<think>\na long thought, 99\n</think>\n\n{gold}"
    assert contents(prefer="shortest") == [f"<think>\nshort\n</think>\n\n{gold}"]
    assert contents(keep=2) == [first, f"<think>\nshort\n</think>\n\n{gold}"]
    assert contents(keep=2, thoughts=False) == [gold], "without their thoughts both say the same"


def test_environments_answer_and_are_part_of_the_row(tmp_path: Path) -> None:
    tasks = KeyValue(levels=(2,))

    def say(talk: list[dict[str, str]], n: int) -> str:
        return next(said for said in plans[talk[0]["content"]] if said not in [m["content"] for m in talk])

    plans: dict[str, list[str]] = {}
    for i in range(40):
        task = tasks.task("keyvalue", 2, "train", i)
        turns = tasks.trace(task, 0.0, np.random.default_rng(0))
        plans[task.public.get("prompt") or task.public_view().messages[0].content] = [
            t.content for t in turns if t.role == "assistant"
        ]
    found = distil(server(say), tasks=tasks, answers=1, per_level=3).run(tmp_path / "rows.jsonl")
    assert found.solved == 3
    for row in rows(tmp_path / "rows.jsonl"):
        roles = [m["role"] for m in row["messages"]]
        assert "tool" in roles and roles[-1] == "assistant" and roles.count("assistant") >= 2
    assert all(len(d.turns) >= 3 for d in demonstrations_of(imitate(data=tmp_path / "rows.jsonl", batch=1)))


def test_tools_that_a_task_declares_open_its_rows_and_are_imitated_behind(tmp_path: Path) -> None:
    schema = {"name": "look_up", "description": "A value.", "parameters": {"type": "object", "properties": {}}}

    class Told(Rows):
        def task(self, arm: str, level: int, split: str, index: int) -> Task:
            made = super().task(arm, level, split, index)
            return replace(made, public=FrozenMap({**made.public, "tools": [schema]}))

    source = Told([{"prompt": f"{a}", "answer": f"{a}"} for a in range(9)])
    distil(server(lambda talk, n: talk[-1]["content"]), tasks=source, answers=1, per_level=1, levels=(1,)).run(
        tmp_path / "rows.jsonl"
    )
    (row,) = demonstrations_of(imitate(data=tmp_path / "rows.jsonl", batch=1))
    assert [m.role for m in row.opening] == ["tools", "user"] and json.loads(row.opening[0].content) == [schema]


def test_held_out_questions_are_never_asked(tmp_path: Path) -> None:
    seen: list[str] = []

    def say(talk: list[dict[str, str]], n: int) -> str:
        seen.append(talk[-1]["content"])
        return right(talk)

    source = Rows(
        [{"prompt": f"{a}{b}", "answer": "".join(sorted(f"{a}{b}"))} for a in range(10) for b in range(10)], test_share=0.3
    )
    found = distil(server(say), tasks=source, per_level=1000, answers=1).run(tmp_path / "rows.jsonl")
    held = {source.task("rows", 1, "test", i).public["prompt"] for i in range(source.size("rows", 1, "test"))}
    assert found.tasks == source.size("rows", 1, "train") == 100 - len(held) and not held & set(seen)


# ---- failures -----------------------------------------------------------------------------------------------------------


def test_a_task_that_nobody_answered_is_asked_again(tmp_path: Path) -> None:
    down = True

    def say(talk: list[dict[str, str]], n: int) -> Any:
        return 503 if down and "S" in talk[-1]["content"] and len(right(talk)) == 3 else right(talk)

    made = distil(server(say), at_once=8)
    found = made.run(tmp_path / "rows.jsonl")
    assert (found.solved, found.again, found.counts["unanswered"], found.counts["wrong"]) == (2, 2, 8, 0)
    down = False
    found = made.run(tmp_path / "rows.jsonl")
    assert (found.solved, found.again, found.counts["unanswered"]) == (4, 0, 0)


def test_a_teacher_that_answers_nothing_ends_it(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"the teacher answered nothing of 12 attempts; the first: POST .* status 500"):
        distil(server(lambda talk, n: 500)).run(tmp_path / "rows.jsonl")
    assert not (tmp_path / "rows.jsonl").exists()
    with pytest.raises(ConfigError, match="status 401"):
        distil(server(lambda talk, n: 401)).run(tmp_path / "rows.jsonl")


def fragile(prompt: str, completion: str, row: Any) -> float:
    if "x" in completion:
        raise RuntimeError("the reward is broken")
    return float(completion == "1")


@pytest.mark.slow
def test_answers_that_the_verifier_fails_on_are_not_wrong(tmp_path: Path) -> None:
    source = Rows([{"prompt": str(i), "answer": "1"} for i in range(30)], reward=fragile)
    made = distil(server(lambda talk, n: "12x"[n]), tasks=source, answers=3)
    found = made.run(tmp_path / "rows.jsonl")
    assert {k: n for k, n in found.counts.items() if n} == {"asked": 6, "right": 2, "wrong": 2, "unjudged": 2}
    assert (found.again, found.rows) == (0, 2)
    found = distil(server(lambda talk, n: "x"), tasks=source, answers=1).run(tmp_path / "again.jsonl")
    assert (found.counts["unjudged"], found.counts["wrong"], found.again, found.rows) == (2, 0, 2, 0)
    with pytest.raises(RewardError, match=r"no verdict on 8 of 8 answers; the first failure: RuntimeError: the reward is broken"):
        distil(server(lambda talk, n: "x"), tasks=source, answers=4).run(tmp_path / "blind.jsonl")


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"keep": 0}, ConfigError, r"Distillation\.keep=0; use at least 1"),
        ({"deadline": 0.0}, ConfigError, r"Distillation\.deadline=0\.0"),
        ({"prefer": "best"}, UnknownNameError, r"Distillation\.prefer"),
        ({"levels": (9,)}, ConfigError, r"Distillation\.levels: .* has no level 9"),
    ],
)
def test_settings_that_are_wrong_are_refused(changes: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        distil(server(lambda talk, n: ""), **changes)


def test_files_of_others_stay_as_they_are(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    made = distil(server(lambda talk, n: right(talk)))
    with pytest.raises(ConfigError, match=r"name a file that ends in \.jsonl"):
        made.run(tmp_path / "rows.csv")
    out.write_text("{}\n")
    with pytest.raises(ConfigError, match="is there already, and not of a distillation"):
        made.run(out)
    out.unlink()
    made.run(out)
    with pytest.raises(ConfigError, match=r"is the work of another distillation: attempts was 4 and is 2; name another file"):
        replace(made, answers=2).run(out)
    with pytest.raises(ConfigError, match=r"another process distils into"), (tmp_path / "rows.jsonl.work").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        made.run(out)
    (tmp_path / "rows.jsonl.work").write_text((tmp_path / "rows.jsonl.work").read_text() + "{]\n")
    with pytest.raises(DataError, match=r"rows\.jsonl\.work, line 6: not JSON"):
        made.run(out)


# ---- a model of one's own -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that sorts two digits mostly, and three sometimes."""
    folder = tmp_path_factory.mktemp("teacher") / "run"
    run = tiny()
    train(
        replace(run, stages=(warm_up(steps=80, levels=(2, 3), noise=0.0),), evaluation=Evaluation(every=0, per_level=1)), folder
    )
    return folder


def of(teacher: Path) -> Distillation:
    return distil(ModelTeacher(model=teacher, max_new_tokens=5), per_level=12, answers=2, at_once=5, keep=2)


def test_answers_are_a_function_of_seed_and_task(teacher: Path, tmp_path: Path) -> None:
    tasks = [TASKS.task("sort", 2, "train", i) for i in range(3)]
    model = ModelTeacher(model=teacher, max_new_tokens=5)
    together, alone = asyncio.run(model.ask(TASKS, tasks, 2)), asyncio.run(model.ask(TASKS, tasks[1:2], 2))
    assert [r.text for r in together[1]] == [r.text for r in alone[0]]  # type: ignore[union-attr]
    assert [r.context.key for r in together[2]] == [context_of(tasks[2]).key] * 2  # type: ignore[union-attr]
    with pytest.raises(ConfigError, match=r"ModelTeacher: .*temperature"):
        ModelTeacher(model=teacher, temperature=-1.0)


def test_a_killed_distillation_goes_on_as_if_nothing_had_happened(teacher: Path, tmp_path: Path) -> None:
    whole = of(teacher).run(tmp_path / "whole.jsonl")
    assert 0 < whole.solved < 24 and whole.rows >= whole.solved

    def kill(done: int, of_all: int, solved: int) -> None:
        if done == 10:
            with (tmp_path / "rows.jsonl.work").open("ab") as file:
                file.write(b'{"task": "torn')
            os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(lambda: of(teacher).run(tmp_path / "rows.jsonl", kill)) == -signal.SIGKILL
    assert not (tmp_path / "rows.jsonl").exists()
    heard: list[tuple[int, int]] = []
    again = of(teacher).run(tmp_path / "rows.jsonl", lambda done, of_all, solved: heard.append((done, of_all)))
    assert again.counts == whole.counts
    assert heard == [(15, 24), (20, 24), (24, 24)], "ten tasks were not asked again"
    assert (tmp_path / "rows.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    more = replace(of(teacher), per_level=14).run(tmp_path / "rows.jsonl")
    assert more.tasks == 28 and set(rows_of(tmp_path / "whole.jsonl")) <= set(rows_of(tmp_path / "rows.jsonl"))


def rows_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


@pytest.mark.prove
def test_what_a_small_model_has_learned_goes_into_a_fresh_one(tmp_path: Path) -> None:
    levels = (2, 3)
    taught = tiny()
    evaluation = Evaluation(every=0, levels=levels, final_per_level=64)
    run = replace(taught, stages=(warm_up(steps=500, levels=levels, noise=0.0),), evaluation=evaluation)
    train(run, tmp_path / "teacher")
    made = Distillation(teacher=ModelTeacher(model=tmp_path / "teacher", max_new_tokens=5), tasks=TASKS, per_level=300)
    found = made.run(tmp_path / "rows.jsonl")
    student = replace(
        taught,
        model=Scratch(shape=SHAPE, seed=7),
        evaluation=evaluation,
        stages=(imitate(data=tmp_path / "rows.jsonl", steps=500, batch=32, learner=warm_up().learner),),
    )
    train(student, tmp_path / "student")
    before, after = (accuracy(tmp_path / "student", step) for step in (0, 500))
    assert found.solved > 200 and before < 0.05 and after > 0.6
    assert read_json(tmp_path / "student" / "contamination.json")["contaminated"] == 0


def accuracy(folder: Path, step: int) -> float:
    for line in (folder / "evals.jsonl").read_text().splitlines():
        record = json.loads(line)
        if (record["step"], record["mode"]) == (step, "greedy"):
            values = [value for item in record["items"] for value in item["values"]]
            return sum(value >= 1 for value in values) / len(values)
    raise AssertionError(f"no evaluation at step {step}")
