"""Rows of other people: recognised, tried, refused with reasons; and those of reasoning-gym and verifiers."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fake_verifiers as fake
import pytest

from assay.cli import main
from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError, MissingExtraError, RewardError, UnknownNameError
from assay.core.rollout import Stop
from assay.core.score import Fault
from assay.interop import gym
from assay.interop.gym import GymReward
from assay.interop.taskset import taskset_class
from assay.sandbox import Result, Status
from assay.tasks import judged_rows, load_jsonl, load_rows
from assay.tasks.exchange import gym as gym_rows_of
from assay.tasks.exchange.gym import gym_rows
from assay.tasks.exchange.importing import ImportableRows, Importer, Rejected, Summary, found_in, write_rows
from assay.verify.rollouts import rollout_of, task_and_rollout


def taken(
    rows: list[Mapping[str, Any] | None], importer: Importer | None = None
) -> tuple[list[dict[str, Any]], list[Rejected], Summary]:
    summary = Summary()
    found = [ImportableRows("rows", i, row, "" if row else "line 1 is no JSON object") for i, row in enumerate(rows, 1)]
    made = list((importer or Importer()).run(found, summary))
    return [m for m in made if not isinstance(m, Rejected)], [m for m in made if isinstance(m, Rejected)], summary


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        (
            {"question": "1+1?", "answer": "It is two.\n#### 2"},
            {"prompt": "1+1?", "answer": "2", "solution": "It is two.\n#### 2", "verifier": "math"},
        ),
        ({"prompt": "p", "answer": "1,000", "solution": "q\n#### 7"}, {"verifier": {"name": "exact", "strip": True}}),
        ({"problem": "p", "solution": "s"}, {"prompt": "p", "answer": "s"}),
        ({"instruction": "add", "input": "1, 2", "output": "3"}, {"prompt": "add\n1, 2", "answer": "3"}),
        ({"instruction": "say yes", "output": "yes"}, {"prompt": "say yes", "answer": "yes"}),
        (
            {"conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hello"}]},
            {"messages": [{"role": "user", "content": "hi"}], "answer": "hello", "solution": "hello"},
        ),
        (
            {"prompt": [{"role": "user", "content": "q"}], "data_source": "openai/gsm8k", "reward_model": {"ground_truth": "7"}},
            {"messages": [{"role": "user", "content": "q"}], "answer": "7", "data_source": "openai/gsm8k", "verifier": "math"},
        ),
        ({"prompt": "p", "answer": "1,000", "licence": "MIT", "topic": "t"}, {"license": "MIT", "topic": "t"}),
        ({"prompt": "p", "answer": ["a", "b"], "verifier": "set"}, {"answer": ["a", "b"], "verifier": "set"}),
    ],
)
def test_forms_of_rows(raw: dict[str, Any], wanted: dict[str, Any]) -> None:
    (row,), refused, _ = taken([raw])
    assert not refused and {name: row[name] for name in wanted} == wanted


def test_fields_by_name() -> None:
    importer = Importer(prompt="ask", gold="key", verifier="math", license="CC0", source="mine")
    (row,), _, summary = taken([{"ask": "1/2?", "key": "0.5", "answer": "distractor"}], importer)
    assert (row["prompt"], row["answer"], row["license"], row["data_source"]) == ("1/2?", "0.5", "CC0", "mine")
    assert summary.record() == {
        "read": 1,
        "taken": 1,
        "rejected": {},
        "licences": {"CC0": 1},
        "verifiers": {"math": 1},
        "sources": {"mine": 1},
    }
    routed = Importer(routes={"x": {"name": "numeric", "relative": 0.1}})
    assert taken([{"prompt": "p", "answer": "3", "data_source": "x"}], routed)[0][0]["verifier"]["relative"] == 0.1


def test_why_rows_are_refused() -> None:
    rows: list[Mapping[str, Any] | None] = [
        {"prompt": "fine", "answer": "yes"},
        None,
        {"text": "no question"},
        {"prompt": "no gold"},
        {"prompt": "fine", "answer": "no"},
        {"prompt": "v", "answer": "1", "verifier": "mth"},
        {"prompt": "n", "answer": "many", "verifier": "numeric"},
        {"prompt": "j", "answer": "I cannot say."},
        {"messages": ["hi"], "answer": "x"},
        {"prompt": "s", "answer": {"clauses": 3}, "verifier": "sat"},
        {"prompt": "t", "answer": 3, "verifier": {"name": "choice"}},
        {"prompt": " ", "answer": "1"},
        {"prompt": "fine", "answer": "yes"},
    ]
    good, bad, summary = taken(rows)
    assert [r["prompt"] for r in good] == ["fine"]
    said = {r.number: (r.step, r.reason) for r in bad}
    assert said[2] == ("read", "line 1 is no JSON object")
    assert said[3][0] == "fields" and "no question" in said[3][1] and said[4][0] == "fields" and "no gold" in said[4][1]
    assert said[5][0] == "differing" and said[5][1].startswith(
        "the same question as rows, row 1, with another answer (this is rows, row 5): nobody knows"
    )
    assert said[6][0] == "verifier" and "did you mean 'math'" in said[6][1]
    assert said[7][0] == "gold" and said[8] == ("gold", "an answer that says nothing scores 1")
    assert said[9][0] == "fields" and "is no turn" in said[9][1]
    assert said[10][0] == "gold" and said[11][0] == "gold"
    assert said[12] == ("fields", "no question: 'prompt' is ' '; give text or chat messages, not empty")
    assert said[13] == ("repeated", "the same question as rows, row 1")
    assert summary.read == len(rows) and summary.taken + sum(summary.rejected.values()) == len(rows)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"problem": "x+2=7?", "solution": "Then x = 5", "level": "Level 1", "type": "Algebra"}, "no final answer in a box"),
        ({"question": "9 eggs at 2?", "answer": "It is 9*2=<<9*2=18>>18"}, "no line '#### '"),
        ({"question": "9 eggs at 2?", "answer": "It is 9*2=18", "data_source": "openai/gsm8k"}, "no line '#### '"),
        ({"question": "Capital of Italy?", "answer": 1, "subject": "geography"}, "the row has no options"),
        ({"question": "Capital of Italy?", "answerKey": "B", "answer": "B"}, "the row has no options"),
    ],
)
def test_a_row_without_the_mark_that_its_form_promises_is_refused(row: dict[str, Any], why: str) -> None:
    good, (bad,), _ = taken([row])
    assert not good and bad.step == "unsupported" and why in bad.reason


def test_a_bare_answer_needs_no_mark() -> None:
    rows = [
        {"problem": "x+2=7?", "solution": "5", "level": "Level 1"},
        {"question": "9 eggs at 2?", "answer": "18", "data_source": "openai/gsm8k"},
        {"question": "Which? A) 1 B) 2", "answerKey": "B", "answer": "B"},
    ]
    good, bad, _ = taken(rows)
    assert not bad and [row["answer"] for row in good] == ["5", "18", "B"]


def test_of_rows_that_contradict_each_other_none_is_taken(tmp_path: Path) -> None:
    rows = [{"prompt": p, "answer": a} for p, a in (("1+1?", "2"), ("2+2?", "4"), ("1+1?", "3"), ("2+2?", "4"), ("1+1?", "5"))]
    found = [ImportableRows("rows", i, row) for i, row in enumerate(rows, 1)]
    summary = Summary()
    refused = write_rows(Importer().run(found, summary), tmp_path / "out.jsonl", summary)
    assert [row["prompt"] for row in map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())] == ["2+2?"]
    bad = {row["number"]: row["reason"] for row in map(json.loads, refused.read_text().splitlines())}
    assert sorted(bad) == [1, 3, 4, 5]
    assert bad[1].startswith("the same question as rows, row 3, with another answer (this is rows, row 1): nobody knows")
    assert "to keep both" in bad[1] and "row 1, with another answer (this is rows, row 5)" in bad[5]


def test_both_answers_of_a_question_are_kept_in_one_row() -> None:
    good, bad, _ = taken([{"prompt": "A prime below 4?", "answer": ["2", "3"], "verifier": "exact"}])
    assert not bad and good[0]["answer"] == ["2", "3"]


def test_counts_of_rows_that_contradict_each_other(tmp_path: Path) -> None:
    rows = [{"prompt": p, "answer": a} for p, a in (("1+1?", "2"), ("2+2?", "4"), ("1+1?", "3"), ("2+2?", "4"), ("1+1?", "5"))]
    summary = Summary()
    write_rows(
        Importer().run([ImportableRows("rows", i, row) for i, row in enumerate(rows, 1)], summary), tmp_path / "o", summary
    )
    assert (summary.read, summary.taken, dict(summary.rejected)) == (5, 1, {"differing": 3, "repeated": 1})
    assert summary.sources == {"rows": 1} and summary.licences == {"unknown": 1} and summary.verifiers == {"math": 1}


def test_files_in_and_out(tmp_path: Path) -> None:
    rows = [{"question": f"{i}+1?", "answer": str(i + 1)} for i in range(300)]  # more than are judged at once
    with gzip.open(tmp_path / "a.jsonl.gz", "wt") as file:
        file.write("\n".join(map(json.dumps, rows)) + "\n{broken\n")
    summary, out = Summary(), tmp_path / "new" / "out.jsonl"
    refused = write_rows(Importer(verifier="math").run(found_in(str(tmp_path / "a.jsonl.gz")), summary), out)
    assert (summary.read, summary.taken, dict(summary.rejected)) == (301, 300, {"read": 1})
    assert json.loads(refused.read_text())["number"] == 301 and refused.name == "out.rejected.jsonl"
    source = load_rows(out)
    assert source.size("out", 1, "train") + source.size("out", 1, "test") == 300
    with pytest.raises(ConfigError, match="does not exist"):
        list(found_in(str(tmp_path / "none.jsonl")))
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot write"):
        write_rows([], tmp_path / "file" / "out.jsonl")
    assert sorted(p.name for p in out.parent.iterdir()) == ["out.jsonl", "out.rejected.jsonl"]


# ---- verifiers --------------------------------------------------------------------------------------------------------


class SayData(fake.TaskData):
    pass


class Say(fake.Task[SayData]):
    @fake.reward()
    async def right(self, trace: Any) -> float:
        return float(trace.last_reply == self.data.answer)


class Boxed(Say):
    NEEDS_CONTAINER = True


class SayConfig(fake.TasksetConfig):
    pass


class Saying(fake.Taskset[Say, SayConfig]):
    def load(self) -> Any:
        yield Say(SayData(prompt="say a", answer="a"))
        yield Say(SayData(prompt=[{"role": "user", "content": "say b"}], system_prompt="Be brief.", answer="b"))
        yield Boxed(SayData(prompt="say c", answer="c"))


class Failing(Saying):
    def load(self) -> Any:
        raise OSError("no network")


def test_the_number_of_the_first_option_is_a_setting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"question": f"q{n}", "choices": ["x", "y", "z"], "label": n} for n in (1, 2)]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, rows)))
    command = ["tasks", "import", str(tmp_path / "in.jsonl"), str(tmp_path / "out.jsonl")]
    assert main(command) == 1
    assert "--option-base 0 or 1" in (tmp_path / "out.rejected.jsonl").read_text()
    capsys.readouterr()
    assert main([*command, "--force", "--option-base", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["taken"] == 2
    assert [row["answer"]["answer"] for row in load_jsonl(tmp_path / "out.jsonl")] == ["A", "B"]


def test_tasks_of_a_taskset_as_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    fake.install(monkeypatch, {"say": Saying, "broken": type("B", (Saying,), {"__iter__": lambda self: 1 / 0})})
    taskset_class.cache_clear()
    summary = Summary()
    made = list(Importer().run(found_in("taskset:say"), summary))
    assert [isinstance(m, Rejected) for m in made] == [False, False, True] and summary.sources == {"verifiers/say": 2}
    assert isinstance(made[2], Rejected) and "unjudged" in str(made[2].reason)
    rows = [m for m in made if not isinstance(m, Rejected)]
    assert rows[1]["messages"][0] == {"role": "system", "content": "Be brief."}
    source = judged_rows(rows, test_share=0)
    for index in range(2):
        task = source.task("rows", 1, "train", index)
        assert source.verifier()(task, rollout_of(task, task.private["row"]["data"]["answer"])).primary == 1.0
    with pytest.raises(ConfigError, match="cannot be made with its default config"):
        found_in("taskset:broken")
    taskset_class.cache_clear()


# ---- reasoning-gym ----------------------------------------------------------------------------------------------------

ITEM = {"question": "What is 2+2?", "answer": "4", "metadata": {"numbers": [1, 2], "target": 3}}


def test_items_of_reasoning_gym_as_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[Any] = []

    def run(words: list[str], **how: Any) -> Any:
        orders.append((json.loads(how["input"]), how["env"]["PYTHONHASHSEED"]))
        return SimpleNamespace(returncode=0, stdout=json.dumps(ITEM) + "\n", stderr="")

    monkeypatch.setattr(gym_rows_of.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(subprocess, "run", run)
    (row,) = gym_rows("gcd", 1, seed=3, level=2)
    assert orders == [(["gcd", 1, 3, 2, {}], "0")]
    assert row["verifier"] == {"name": "reasoning_gym", "dataset": "gcd"} and row["entry"] == ITEM
    assert (row["license"], row["data_source"], row["arm"], row["level"]) == ("Apache-2.0", "reasoning_gym/gcd", "gym/gcd", 2)
    (row,) = gym_rows("countdown", 1)
    assert row["answer"] == {"numbers": [1, 2], "target": 3} and row["verifier"] == {"name": "countdown", "every": True}
    assert gym_rows("puzzle24", 1)[0]["answer"]["target"] == 24
    assert (
        gym_rows("spiral_matrix", 1)[0]["answer"] == ["4"]
        and gym_rows("game_of_life_halting", 1)[0]["verifier"]["name"] == "exact"
    )


def test_what_reasoning_gym_cannot_give(monkeypatch: pytest.MonkeyPatch) -> None:
    said = SimpleNamespace(returncode=0, stdout=json.dumps({"unknown": ["gcd"]}), stderr="")
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: said)
    monkeypatch.setattr(gym_rows_of.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="reasoning_gym is not installed"):
        gym_rows("gcd", 1)
    with pytest.raises(MissingExtraError, match="reasoning_gym is not installed"):
        GymReward(dataset="gcd").ready()
    monkeypatch.setattr(gym_rows_of.importlib.util, "find_spec", lambda name: object())
    GymReward(dataset="gcd").ready()
    with pytest.raises(ConfigError, match="'n_queens' is not taken: its scorer runs the answer as code"):
        gym_rows("n_queens", 1)
    with pytest.raises(UnknownNameError, match="did you mean 'gcd'"):
        gym_rows("gdc", 1)
    said.returncode, said.stderr = 1, "Traceback\nValueError: too small"
    with pytest.raises(DataError, match=r"could not make 1 items of 'gcd' at level 1: ValueError: too small"):
        gym_rows("gcd", 1)


class Desk:
    def __init__(self, *results: Result) -> None:
        self.results, self.orders = list(results), list[Any]()

    def ask(self, order: str, seconds: float) -> Result:
        self.orders.append(json.loads(order))
        return self.results.pop(0)


def result(status: Status = Status.OK, stdout: str = "", stderr: str = "") -> Result:
    return Result(status=status, isolation="strong", stdout=stdout, stderr=stderr)


def gym_task(**row: Any) -> Any:
    task, _ = task_and_rollout("4", "")
    return replace(task, private=FrozenMap({"row": row}))


def test_verdicts_of_a_scorer(monkeypatch: pytest.MonkeyPatch) -> None:
    reward, task = GymReward(dataset="gcd"), gym_task(entry=ITEM)
    slow = result(Status.TIMEOUT)

    def judged(text: str, *results: Result, stop: Stop = Stop.DONE) -> Any:
        process = Desk(*results)
        monkeypatch.setattr(gym, "_process_of", lambda backend: process)
        return reward(task, replace(rollout_of(task, text), stop=stop)), process.orders

    score, orders = judged("so <answer> 4 </answer>", result(stdout="noise\n1.0\n"))
    assert score.primary == 1.0 and orders == [["gcd", "4", ITEM]]
    assert judged("4", slow, result(stdout="0.5"))[0].primary == 0.5
    score, _ = judged("9**9**9", slow, slow)
    assert (score.fault, score.primary) == (Fault.POLICY, 0.0)
    assert judged("4", stop=Stop.LENGTH)[0].primary == 0.0
    with pytest.raises(RewardError, match=r"failed \(error\): ValueError: odd"):
        judged("4", result(Status.ERROR, stderr="Traceback\nValueError: odd"))
    with pytest.raises(RewardError, match="gave no number"):
        judged("4", result(stdout="\n"))
    with pytest.raises(DataError, match="has no 'entry'"):
        reward(gym_task(other=1), rollout_of(task, "4"))
    assert reward.trusted and reward.names == ("reward",)


def test_settings_of_a_scorer() -> None:
    with pytest.raises(ConfigError, match="dataset is empty"):
        GymReward()
    with pytest.raises(ConfigError, match="'codeio' is not taken"):
        GymReward(dataset="codeio")
    with pytest.raises(ConfigError, match="deadline"):
        GymReward(dataset="gcd", deadline=0)


class Scope:
    """A contained interpreter that can be told what to answer."""

    def __init__(self, *results: Result) -> None:
        self.results, self.codes, self.starts = list(results), list[str](), 1

    def run(self, code: str, limits: Any = None) -> Result:
        self.codes.append(code)
        return self.results.pop(0)


def test_one_interpreter_is_opened_once_and_again_after_it_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    ok, lost = result(), result(Status.TIMEOUT)
    scope = Scope(ok, ok, lost, ok, ok, result(Status.ERROR, stderr="ImportError: no reasoning_gym"))
    room = SimpleNamespace(scope=lambda limits: scope, manifest=lambda: {"tag": "strong"})
    monkeypatch.setattr(gym, "sandbox_of", lambda *a, **k: room)
    gym._processes.clear()
    process = gym._process_of("auto")
    assert gym._process_of("auto") is process and GymReward(dataset="gcd").isolation() == {"tag": "strong"}
    assert [process.ask("1", 1.0).status for _ in range(3)] == [Status.OK, Status.TIMEOUT, Status.OK]
    assert [code.lstrip()[:6] for code in scope.codes] == ["import", "_score", "_score", "import", "_score"]
    scope.starts += 1
    with pytest.raises(ConfigError, match="cannot be imported inside the sandbox: ImportError"):
        process.ask("1", 1.0)
    gym._processes.clear()


@pytest.mark.evidence
def test_reasoning_gym_itself(tmp_path: Path) -> None:
    pytest.importorskip("reasoning_gym")
    summary = Summary()
    out = tmp_path / "gcd.jsonl"
    write_rows(Importer().run(found_in("gym:gcd", 50), summary), out)
    assert summary.taken >= 45 and not summary.rejected.keys() - {"repeated", "differing"}
    task = load_rows(out, test_share=0).task("gym/gcd", 1, "train", 0)
    verifier = load_rows(out, test_share=0).verifier()
    assert verifier(task, rollout_of(task, f" {task.private['answer']}\n")).primary == 1.0
    assert verifier(task, rollout_of(task, "0")).primary == 0.0


def test_open_questions_beside_a_verifier_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"--choices open --verifier.*leave one of the two out"):
        Importer(choices="open", verifier="numeric")
