"""Agent programs as samplers: processes and functions, answers, deadlines, budgets, and training that resumes exactly."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import urllib.error
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.agents import AgentProgram, Budget, program_sampler
from assay.agents.program_process import command_words, run_program
from assay.core import from_dict, to_dict
from assay.core.errors import ConfigError, DataError, EngineError
from assay.core.group import Draw, Group
from assay.core.protocols import SamplerParts
from assay.core.rollout import Rollout, Sampling, Stop
from assay.core.sample import extends, samples
from assay.core.score import Fault, Score
from assay.core.task import Context, Prefill
from assay.lab.controls import RandomReward, Rewarded
from assay.measure.rollout_line import rollout_line
from assay.runtime import DecoderShape, NativeEngine, char_tokenizer, init_model
from assay.testing.conversations import trained_once
from assay.train.driver import train
from assay.train.evaluate import context_of
from assay.train.metrics import rollout_records
from assay_tasks import KeyValue, SortDigits
from tests.agents import agent_functions as agents
from tests.train.tiny_runs import digest_of, in_child, kill_at, only_rl, resumed

HERE = Path(__file__).parent
PROGRAM = f"{sys.executable} {HERE / 'urllib_agent.py'}"
SOURCE = SortDigits(levels=(2,))
TOKENIZER = char_tokenizer("0123456789S>")
SHAPE = DecoderShape(
    vocab_size=TOKENIZER.size,
    hidden_size=16,
    num_layers=1,
    num_heads=1,
    num_kv_heads=1,
    head_dim=16,
    intermediate_size=16,
    max_positions=96,
)


@pytest.fixture(scope="module")
def engine() -> NativeEngine:
    return NativeEngine(init_model(SHAPE, TOKENIZER, 0))


def parts_of(engine: Any, source: Any = SOURCE) -> SamplerParts:
    sampling = Sampling(max_new_tokens=6)
    return SamplerParts(engine=engine, tokenizer=TOKENIZER, source=source, sampling=sampling, seed=0, max_turns=1, deadline=30.0)


def contexts(count: int = 1) -> list[Context]:
    return [context_of(SOURCE.task("sort", 2, "train", i)) for i in range(count)]


def collect(spec: AgentProgram, engine: Any, n: int = 1, count: int = 1) -> list[Rollout]:
    return asyncio.run(spec.build(parts_of(engine)).collect(contexts(count), n))


def tokens(rollouts: list[Rollout]) -> list[Any]:
    return [[(c.tokens.tolist(), c.history, c.shared) for c in r.calls] for r in rollouts]


# ---- programs -------------------------------------------------------------------------------------------------------


def test_a_program_of_the_standard_library_is_sampled_exactly(engine: NativeEngine):
    """Two calls, in two wire formats: ids as sampled, re-scored to their log-probabilities, one row, the same again."""
    spec = AgentProgram(command=f"{PROGRAM} 2 chat", answer="stdout")
    found = collect(spec, engine, n=2)
    assert [r.id for r in found] == [f"{contexts()[0].key}/{i}" for i in range(2)]
    for rollout in found:
        first, second = rollout.calls
        assert second.history in ("exact", "spliced") and extends(second, first) and rollout.stop is Stop.DONE
        assert rollout.text == second.text.strip() and len(samples(rollout)) == 1
        trained_once(rollout, "program")
        for call in rollout.calls:
            (scored,) = asyncio.run(engine.score([call.tokens]))
            assert np.abs(scored[len(call.prefix) :] - call.completion.logp_engine).max() < 1e-4
    assert tokens(collect(spec, engine, n=2)) == tokens(found)
    (other,) = collect(AgentProgram(command=f"{PROGRAM} 2 anthropic", answer="file:answer.txt"), engine)
    assert other.text == other.calls[1].text.strip() and extends(other.calls[1], other.calls[0])


def test_a_program_that_hangs_is_killed_with_all_that_it_started(tmp_path: Path):
    folder = tmp_path / "run" / "work"
    folder.mkdir(parents=True)
    pids = tmp_path / "pids"

    async def go() -> None:
        words = [sys.executable, str(agents.hanging_program(tmp_path))]
        running = asyncio.ensure_future(run_program(words, {"PIDS": str(pids)}, folder, 1000.0))
        while not (pids.exists() and pids.read_text().count(" ") == 1):
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(go())
    for pid in pids.read_text().split():
        while alive(int(pid)):
            time.sleep(0.01)


def test_a_program_that_does_not_end_is_a_fault(engine: NativeEngine):
    command = f"{sys.executable} -c 'import time; time.sleep(1000)'"
    (found,) = collect(AgentProgram(command=command, timeout=0.05), engine)
    assert (found.stop, found.fault) == (Stop.ERROR, Fault.INFRA) and str(found.error).startswith(
        "the agent made no call, and it did not end within 0.05 s"
    )


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def test_a_program_that_makes_no_call_or_is_not_there(engine: NativeEngine):
    (found,) = collect(AgentProgram(command=f"{sys.executable} -c 'raise SystemExit(\"no key\")'"), engine)
    assert found.fault is Fault.INFRA and "made no call, and it ended with exit status 1: no key" in str(found.error)
    with pytest.raises(ConfigError, match="cannot start '/no/such/program'"):
        collect(AgentProgram(command="/no/such/program"), engine)


def test_a_program_sees_its_task_and_nothing_of_this_process(engine: NativeEngine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    monkeypatch.setenv("MY_TOKEN", "secret")
    code = "import os,sys,json; sys.stderr.write(json.dumps([dict(os.environ), sys.argv[1:], sys.stdin.read()])); sys.exit(3)"
    command = f"{sys.executable} -c '{code}' {{prompt}} {{url}} {{root}} {{key}} {{task}}"
    spec = AgentProgram(command=command, env={"MINE": "1"})
    ends: list[Any] = []
    inner = program_sampler.run_program

    async def run(*given: Any) -> Any:
        ends.append(await inner(*given))
        return ends[-1]

    monkeypatch.setattr(program_sampler, "run_program", run)
    collect(spec, engine)
    seen, words, stdin = json.loads(ends[0].stderr)
    prompt = contexts()[0].messages[0].content
    assert stdin == "" and not {"HTTPS_PROXY", "MY_TOKEN"} & set(seen) and seen["MINE"] == "1"
    assert seen["ASSAY_PROMPT"] == words[0] == prompt and words[1] == seen["OPENAI_BASE_URL"] == f"{words[2]}/v1"
    assert words[2] == seen["ANTHROPIC_BASE_URL"] == seen["GOOGLE_GEMINI_BASE_URL"] and words[2].endswith(f"/s/{words[3]}")
    assert words[4] == seen["ASSAY_TASK"] and not Path(seen["HOME"]).exists()


# ---- functions ------------------------------------------------------------------------------------------------------


def test_a_function_gives_its_answer_or_that_of_its_last_call(engine: NativeEngine):
    (once,) = collect(AgentProgram(function=agents.once), engine)
    assert once.answer is None and once.text == once.calls[0].text
    (twice,) = collect(AgentProgram(function=agents.twice), engine)
    assert twice.text == twice.calls[0].text and twice.calls[1].history == "spliced"


def test_agents_that_misbehave_are_no_scores(engine: NativeEngine):
    for function, message in {agents.never: "made no call", agents.crashes: "ValueError: a bug of its own"}.items():
        (found,) = collect(AgentProgram(function=function), engine)
        assert (found.stop, found.fault) == (Stop.ERROR, Fault.INFRA) and message in str(found.error)
    (graded,) = collect(AgentProgram(function=agents.crashes, failed_exit="graded"), engine)
    assert graded.error is None and graded.text == graded.calls[0].text
    (late,) = collect(AgentProgram(function=agents.gives_up, timeout=100.0), engine)
    assert late.fault is Fault.INFRA and "did not end within 100 s" in str(late.error) and len(late.calls) == 1
    (never,) = collect(AgentProgram(function=agents.waits, timeout=0.05), engine)
    assert never.fault is Fault.INFRA and never.calls == ()


def test_a_folder_has_the_same_path_again(engine: NativeEngine, tmp_path: Path):
    def paths() -> list[str]:
        agents.seen.clear()
        collect(AgentProgram(function=agents.keeps, folder=str(tmp_path / "runs")), engine, n=2)
        return sorted(str(task.folder) for task in agents.seen)

    first = paths()
    Path(first[0]).mkdir(parents=True)
    assert paths() == first and len(set(first)) == 2 and not Path(first[0]).exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="can be written"):
        collect(AgentProgram(function=agents.keeps, folder=str(tmp_path / "file")), engine)


def test_an_agent_that_asks_for_ever_ends_with_its_budget(engine: NativeEngine):
    (found,) = collect(AgentProgram(function=agents.forever, budget=Budget(calls=3)), engine)
    assert found.stop is Stop.LENGTH and found.error is None and len(found.calls) == 3


def test_an_agent_that_does_not_stop_at_its_budget_is_ended(
    engine: NativeEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(program_sampler, "GRACE_SECONDS", 0.1)
    program = tmp_path / "endless.py"
    program.write_text(ENDLESS)
    spec = AgentProgram(
        command=f"{sys.executable} {program}", budget=Budget(calls=2), answer="stdout", env={"PYTHONPATH": str(HERE)}
    )
    (found,) = collect(spec, engine)
    assert found.stop is Stop.LENGTH and found.text == "so far" and len(found.calls) == 2
    (function,) = collect(AgentProgram(function=agents.stubborn, budget=Budget(calls=2)), engine)
    assert function.stop is Stop.LENGTH and len(function.calls) == 2


ENDLESS = """
import urllib_agent

print("so far", flush=True)
while True:
    try:
        urllib_agent.chat([{"role": "user", "content": "S1>"}])
    except OSError:
        pass
"""


def test_pictures_are_refused_and_calls_behind_the_end_find_nobody(engine: NativeEngine):
    (found,) = collect(AgentProgram(function=agents.shows_a_picture), engine)
    assert found.text == "unsupported_media" and len(found.calls) == 1
    agents.seen.clear()
    collect(AgentProgram(function=agents.keeps), engine)
    with pytest.raises(urllib.error.URLError):
        agents.once(agents.seen[0])


def test_forks_are_trained_once_and_counted(engine: NativeEngine):
    spec = AgentProgram(function=agents.forks)
    found = collect(spec, engine)
    (rollout,) = found
    assert sorted(c.history for c in rollout.calls)[0] == "" and "rendered" in {c.history for c in rollout.calls}
    trained_once(rollout, "forks")
    metrics = spec.rollout_metrics(found)
    assert (
        metrics["agent/calls"] == 4.0 and metrics["agent/rendered"] == pytest.approx(1 / 3) and metrics["agent/undelivered"] == 0
    )
    assert spec.rollout_metrics([]) == {} and "agent/spliced" in AgentProgram(function=agents.once).rollout_metrics(found)


def test_many_sessions_at_once_are_the_same_as_one_after_the_other(engine: NativeEngine):
    many = collect(AgentProgram(function=agents.twice, parallel=16), engine, n=4, count=4)
    few = collect(AgentProgram(function=agents.twice, parallel=1, one_by_one=True), engine, n=4, count=4)
    assert tokens(many) == tokens(few) and len({str(t) for t in tokens(many)}) > 8


def test_an_engine_that_fails_ends_the_collection():
    class Broken(NativeEngine):
        async def generate(self, request: Any, tell: Any = None) -> Any:
            raise self.error

    broken = Broken(init_model(SHAPE, TOKENIZER, 0))
    for error in (EngineError("out of memory"), ValueError("odd")):
        broken.error = error  # type: ignore[attr-defined]
        with pytest.raises(EngineError, match=str(error)):
            collect(AgentProgram(function=agents.once), broken)


def test_an_engine_that_does_not_tell_what_it_drew_from_is_refused(engine: NativeEngine):
    class Silent(NativeEngine):
        async def generate(self, request: Any, tell: Any = None) -> Any:
            found = await super().generate(replace(request, sampling=request.sampling.whole), tell)
            return replace(found, columns={})

    parts = parts_of(Silent(init_model(SHAPE, TOKENIZER, 0)))
    parts = replace(parts, sampling=replace(parts.sampling, top_k=4, keep_support=True))
    with pytest.raises(ConfigError, match="ids that each token is drawn from"):
        asyncio.run(AgentProgram(function=agents.once).build(parts).collect(contexts(), 1))


def test_what_the_policy_cannot_be_shown_is_an_error_of_the_settings(engine: NativeEngine):
    with pytest.raises(ConfigError, match="tokenizer cannot write what the agent sends"):
        collect(AgentProgram(command=f"{PROGRAM} 1 chat", env={"ASSAY_TASK": str(HERE / "words.json")}), engine)


def test_settings_and_contexts_that_are_refused(engine: NativeEngine):
    for wrong, message in (
        ({}, "neither a command nor a function"),
        ({"command": "x", "function": agents.once}, "or both"),
        ({"command": "x 'y"}, "No closing quotation"),
        ({"command": "x", "answer": "file:.."}, "answer='file:..'"),
        ({"command": "x", "answer": "stderr"}, "answer='stderr'"),
        ({"command": "x", "failed_exit": "maybe"}, "failed_exit='maybe'"),
        ({"command": "x", "timeout": 0}, "timeout=0"),
        ({"command": "x", "parallel": 0}, "parallel=0"),
    ):
        with pytest.raises(ConfigError, match=message):
            AgentProgram(**wrong)
    with pytest.raises(ConfigError, match="is empty"):
        command_words("  ", {})
    sampler = AgentProgram(function=agents.once).build(parts_of(engine))
    with pytest.raises(ConfigError, match="n=0"):
        asyncio.run(sampler.collect(contexts(), 0))
    with pytest.raises(DataError, match="share a key"):
        asyncio.run(sampler.collect(contexts() * 2, 1))
    forced = replace(contexts()[0], prefill=Prefill("1"))
    with pytest.raises(ConfigError, match="a forced beginning"):
        asyncio.run(sampler.collect([forced], 1))
    store = KeyValue()
    world = context_of(store.task("keyvalue", 1, "train", 0))
    with pytest.raises(ConfigError, match="an environment"):
        asyncio.run(replace(AgentProgram(function=agents.once), parallel=1).build(parts_of(engine, store)).collect([world], 1))


def test_settings_can_be_filed():
    spec = AgentProgram(function=agents.once, budget=Budget(calls=3), env={"A": "1"})
    assert from_dict(AgentProgram, to_dict(spec)) == spec
    assert from_dict(AgentProgram, {"function": "tests.agents.agent_functions:once"}).function is agents.once


# ---- training -------------------------------------------------------------------------------------------------------


def trained_agents(folder: Path) -> Any:
    """Coins pay for rollouts, so that every group teaches."""
    run = only_rl(steps=4, groups=2, sampler=AgentProgram(function=agents.twice, folder=str(folder)))
    tasks = Rewarded(source=run.tasks, scorer=RandomReward())
    return replace(run, tasks=tasks, checkpoint_every=1, evaluation=replace(run.evaluation, every=0, final_per_level=1))


@pytest.mark.slow
def test_a_killed_run_of_agents_resumes_to_the_same_digest(tmp_path: Path):
    def whole() -> None:
        assert train(trained_agents(tmp_path / "runs"), tmp_path / "whole", progress=False).finished

    def killed() -> None:
        kill_at(30)
        train(trained_agents(tmp_path / "runs"), tmp_path / "killed", progress=False)

    assert in_child(whole) == 0
    assert in_child(killed) == -9
    lines = [json.loads(line)["metrics"] for line in (tmp_path / "whole" / "metrics.jsonl").read_text().splitlines()]
    taught = [m for m in lines if "grad/norm" in m]
    assert len(taught) == 4 and min(m["grad/norm"] for m in taught) > 1e-4 and {m["agent/calls"] for m in taught} == {2.0}
    kept = [json.loads(line) for line in (tmp_path / "whole" / "rollouts.jsonl").read_text().splitlines()]
    assert kept and all(line["answer"] in line["text"] for line in kept)
    assert not (tmp_path / "killed" / "done.json").exists()
    assert resumed(tmp_path / "killed") == digest_of(tmp_path / "whole")
    assert os.environ.get("ASSAY_PROMPT") is None


# ---- what a user is told ---------------------------------------------------------------------------------------------


def test_a_coroutine_that_blocks_holds_up_nobody_and_its_deadline_holds(engine: NativeEngine):
    """Asking by a blocking call inside ``async def`` is what many write; it must reach the endpoint that runs beside it."""
    found = collect(AgentProgram(function=agents.asks_by_a_blocking_call), engine, n=2)
    assert [len(r.calls) for r in found] == [1, 1] and all(r.stop is not Stop.ERROR for r in found)
    (late,) = collect(AgentProgram(function=agents.waits_for_ever, timeout=0.05), engine)
    assert late.fault is Fault.INFRA and "did not end within 0.05 s" in str(late.error)
    assert agents.cancelled.wait(30), "a coroutine is cancelled where it can be"


def test_calls_that_were_refused_are_no_silence(engine: NativeEngine):
    (found,) = collect(AgentProgram(function=agents.asks_too_much), engine)
    told = str(found.error)
    assert told.startswith("none of the agent's 1 calls could be answered (This model's maximum context length is 96 tokens.")
    assert "made no call" not in told


def test_a_program_that_never_works_ends_the_training(engine: NativeEngine):
    spec = AgentProgram(command=f"{sys.executable} -c 'raise SystemExit(\"no key\")'")
    with pytest.raises(ConfigError, match=r"failed in all of its first 8 runs.*made no call.*no key"):
        collect(spec, engine, n=8)
    sampler = spec.build(parts_of(engine))
    asyncio.run(sampler.collect(contexts(), 7))
    with pytest.raises(ConfigError, match="first 8 runs"):
        asyncio.run(sampler.collect(contexts(), 1))


def test_the_signal_that_ended_a_program_is_named(engine: NativeEngine):
    (found,) = collect(AgentProgram(command=f"{sys.executable} -c 'import os; os.kill(os.getpid(), 9)'"), engine)
    assert "it was ended by signal 9; it wrote no error" in str(found.error)


def test_files_of_a_command_are_found_from_where_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "agent.py").write_text("")
    monkeypatch.chdir(tmp_path)
    spec = AgentProgram(command="python agent.py {prompt}")
    assert command_words(spec.command, {}) == ["python", str(tmp_path / "agent.py"), "{prompt}"]
    assert from_dict(AgentProgram, to_dict(spec)) == spec
    (tmp_path / "python").write_text("")  # a program's name is looked for on the path
    assert AgentProgram(command="python other.py").command == "python other.py"


def test_folders_of_processes_that_were_killed_are_removed(engine: NativeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left, held = tmp_path / "assay-agent-4194999-x", tmp_path / "assay-agent-4194999-y"
    own, other = tmp_path / f"assay-agent-{os.getpid()}-x", tmp_path / "assay-agent-other"
    for folder in (left, held, own, other):
        folder.mkdir()
    lock = program_sampler._hold(held)  # as of a process in another container, whose id is not known here
    collect(AgentProgram(function=agents.once), engine)
    assert {p.name for p in tmp_path.iterdir()} == {held.name, own.name, other.name}
    os.close(lock)
    collect(AgentProgram(function=agents.once), engine)
    assert {p.name for p in tmp_path.iterdir()} == {own.name, other.name}


@pytest.mark.parametrize("answer", ["stdot", "file:../../x", "file:/etc/passwd", "file:"])
def test_where_an_answer_may_stand(answer: str):
    with pytest.raises(ConfigError, match=f"answer='{answer}'"):
        AgentProgram(answer=answer)


def test_what_an_agent_said_and_what_was_graded_can_be_looked_at(engine: NativeEngine):
    (found,) = collect(AgentProgram(function=agents.twice), engine)
    task = SOURCE.task("sort", 2, "train", 0)
    draw = Draw(arm=task.arm, level=task.level, propensity=1.0)
    group = Group(key=found.context.group, draw=draw, task=task, rollouts=(found,), scores=(Score(components={"correct": 0.0}),))
    (record,) = rollout_records([group], TOKENIZER, {})
    line = rollout_line({**json.loads(json.dumps(record)), "step": 1})
    first, second = line.calls
    assert first["prompt"] == found.context.messages[0].content and first["text"] == found.calls[0].text
    assert second["history"] in ("exact", "spliced") and second["prompt"].endswith(first["prompt"])
    assert not second["prompt"].startswith(first["prompt"]) or second["prompt"] == first["prompt"], "only what was added"
    assert line.answer == found.answer == found.calls[0].text
    assert [label for label, _ in line.answers] == ["call 1: ", "call 2: ", "graded: "]
