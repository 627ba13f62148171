"""Sampling beside learning: the same numbers as in one process where nothing may be old, faults, resume, and replay."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from live import coin_toss
from scored_runs import Thought
from thread_samplers import ThreadSpawner
from tiny_runs import digest_of, in_child, only_rl, resumed, tiny

from assay.asynchronous import AcceptedLog, Asynchronous
from assay.asynchronous import samplers as looked_after
from assay.asynchronous.messages import LeasedGroup, LoadedVersion, NewWeights, SampledGroup, SamplerEnd, SamplerFailure
from assay.core.errors import CheckpointError, ConfigError, EngineError, MissingExtraError, RewardError, StorageError
from assay.core.group import Group
from assay.core.protocols import Moment, Posed
from assay.core.task import Task
from assay.guide import Dump, Ghpo, Mixed, Refill
from assay.guide.guidance import Stateless, plain_context
from assay.recipes import on_rows
from assay.runtime.settings import AdamW, LearnerSettings, Lora
from assay.train import async_collect
from assay.train.callbacks import Callback
from assay.train.driver import resume, train
from assay.train.outcome import RunOutcome
from assay.train.preflight import check_run
from assay.train.reinforce import Reinforce
from assay.train.replay import replay_run
from assay.train.run import Run


def asynchronously(run: Run, **settings: Any) -> Run:
    """Its stage of reinforcement learning samples in two samplers."""
    made = Asynchronous(**({"samplers": 2, "eta": 2, "keep_log": True} | settings))
    stages = [replace(s, asynchronous=made) if isinstance(s, Reinforce) else s for s in run.stages]
    return replace(run, stages=tuple(stages))


@pytest.fixture(autouse=True)
def spawner(monkeypatch: pytest.MonkeyPatch) -> ThreadSpawner:
    """Samplers are threads here; those of `test_sampler_processes.py` are processes."""
    made = ThreadSpawner()
    monkeypatch.setattr(async_collect, "spawner_of", lambda runtime: made)
    return made


def steps_of(folder: Path) -> list[dict[str, float]]:
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [m for line in lines if "async/age_max" in (m := json.loads(line)["metrics"])]


def events_of(folder: Path, kind: str) -> list[str]:
    lines = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    return [line["message"] for line in lines if line["kind"] == kind]


# ---- nothing may be old: the numbers of a run in one process --------------------------------------------------------


@dataclass(frozen=True)
class Twice(Stateless):
    """Two contexts of a task, and where no answer of either is right a third in place of the first."""

    def next(self, task: Task, history: Sequence[Group], moment: Moment) -> Sequence[Posed]:
        plain = plain_context(task, moment.key)
        if not history:
            return [Posed(context=replace(plain, key=f"{plain.key}/{i}", group=f"{plain.group}/{i}"), n=2) for i in range(2)]
        if len(history) > 2 or any(score.components["correct"] for group in history for score in group.scores):
            return ()
        made = replace(plain, key=f"{plain.key}/2", group=f"{plain.group}/2")
        return [Posed(context=made, replaces=(history[0].key,))]


@dataclass(frozen=True)
class Nothing(Stateless):
    """No context."""

    def next(self, task: Task, history: Sequence[Group], moment: Moment) -> Sequence[Posed]:
        return ()


EQUAL: dict[str, Callable[[], Run]] = {
    "replay of old rollouts": tiny,
    "drawn by advantages": lambda: only_rl(curriculum=Dump()),
    "hints in rounds": lambda: only_rl(guidance=Ghpo(text="{prompt}{hint}")),
    "contexts beside each other, and then another": lambda: only_rl(guidance=Twice()),
    "filtered and drawn again": lambda: coin_toss(only_rl(filter=Mixed(), refill=Refill(rounds=3))),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EQUAL)
def test_at_age_0_a_run_ends_as_in_one_process(name: str, tmp_path: Path) -> None:
    run = EQUAL[name]()
    train(run, tmp_path / "one", progress=False)
    train(asynchronously(run, eta=0), tmp_path / "more", progress=False)
    assert digest_of(tmp_path / "more") == digest_of(tmp_path / "one")


# ---- ages ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["wait", "continue", "drop"])
def test_nothing_is_older_than_promised_and_the_log_replays_to_the_same_digest(policy: str, tmp_path: Path) -> None:
    run = asynchronously(only_rl(steps=8), eta=2, policy=policy)
    train(run, tmp_path / "run", progress=False)
    ages = [step["async/age_max"] for step in steps_of(tmp_path / "run")]
    assert len(ages) == 8 and max(ages) <= 2
    found = replay_run(tmp_path / "run", tmp_path / "again")
    assert found.equal and found.steps == 8 and found.expected == digest_of(tmp_path / "again")
    rows, again = ((tmp_path / place / "row_history.jsonl").read_text(encoding="utf-8") for place in ("run", "again"))
    assert rows == again and rows  # what was practised, too


@pytest.mark.parametrize("policy", ["drop", *(pytest.param(name, marks=pytest.mark.prove) for name in ("wait", "continue"))])
def test_rounds_of_a_guidance_are_sampled_in_the_step_that_asks_for_them_and_replay(policy: str, tmp_path: Path) -> None:
    run = asynchronously(only_rl(steps=6, guidance=Twice()), eta=2, policy=policy)
    train(run, tmp_path / "run", progress=False)
    steps = steps_of(tmp_path / "run")
    assert max(step["async/age_max"] for step in steps) <= 2
    assert replay_run(tmp_path / "run").equal


@pytest.mark.slow
def test_an_adapter_is_what_samplers_get(tmp_path: Path) -> None:
    run = coin_toss(only_rl(steps=3, learner=LearnerSettings(adapter=Lora(rank=2), optimizer=AdamW(lr=1e-2))))
    train(asynchronously(run, samplers=1, eta=0), tmp_path / "run", progress=False)
    before, last = steps_of(tmp_path / "run")[-2:]
    assert before["grad/norm"] > 0 and last["engine/mismatch_k3"] < 1e-9
    assert replay_run(tmp_path / "run").equal


def test_a_replay_notices_other_numbers(tmp_path: Path) -> None:
    train(asynchronously(only_rl(steps=3)), tmp_path / "run", progress=False)
    metrics = tmp_path / "run" / "metrics.jsonl"
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    lines[2]["metrics"]["reward/mean"] += 0.5
    metrics.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = replay_run(tmp_path / "run")
    assert not found.equal and found.differing.startswith(f"step {lines[2]['step']}: reward/mean was ")


# ---- faults ----------------------------------------------------------------------------------------------------------


def faulty(spawner: ThreadSpawner, fault: str) -> None:
    """From now on a sampler misbehaves once."""
    seen = 0

    def back(name: str, epoch: int, message: object) -> Iterable[object]:
        nonlocal seen
        seen += isinstance(message, SampledGroup)
        if isinstance(message, SampledGroup) and fault == "sent twice":
            return (message, message)
        if isinstance(message, SampledGroup) and fault == "lost, and its sampler with it" and seen == 3:
            return (SamplerEnd("it was killed by signal 9"),)
        if isinstance(message, SampledGroup) and fault == "answered after it was given up" and seen == 3:
            return (SamplerEnd("nobody heard it"), message)
        if isinstance(message, LoadedVersion) and fault == "served other weights" and epoch == 0 and message.version > 1:
            return (replace(message, checksums=dict.fromkeys(message.checksums or {}, "f" * 16)),)
        return (message,)

    spawner.back = back


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", ["sent twice", "lost, and its sampler with it", "answered after it was given up", "served other weights"]
)
def test_a_fault_of_a_sampler_changes_no_number(fault: str, spawner: ThreadSpawner, tmp_path: Path) -> None:
    run = only_rl(steps=5)
    train(run, tmp_path / "one", progress=False)
    faulty(spawner, fault)
    train(asynchronously(run, eta=0), tmp_path / "more", progress=False)
    assert digest_of(tmp_path / "more") == digest_of(tmp_path / "one")
    replaced = events_of(tmp_path / "more", "sampler") if (tmp_path / "more" / "events.jsonl").exists() else []
    assert bool(replaced) == (fault != "sent twice") and len(spawner.spawned) == 2 + len(replaced)
    assert all("was replaced, and" in line for line in replaced)


def test_a_silent_sampler_is_replaced(spawner: ThreadSpawner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looked_after.Samplers.__init__, "__defaults__", (2.5,))
    heard: set[int] = set()

    def back(name: str, epoch: int, message: object) -> Iterable[object]:
        """The first one goes silent with its first group."""
        if (name, epoch) == ("sampler-0", 0) and (heard or isinstance(message, SampledGroup)):
            heard.add(1)
            return ()
        return (message,)

    spawner.back = back
    run = only_rl(steps=3)
    train(run, tmp_path / "one", progress=False)
    train(asynchronously(run, eta=0), tmp_path / "more", progress=False)
    assert digest_of(tmp_path / "more") == digest_of(tmp_path / "one")
    (line,) = events_of(tmp_path / "more", "sampler")
    assert line.startswith("sampler-0 was replaced") and "no sign of life for 2 s" in line


def test_a_sampler_that_dies_again_and_again_ends_the_run(spawner: ThreadSpawner, tmp_path: Path) -> None:
    spawner.there = lambda name, epoch, message: () if isinstance(message, LeasedGroup) else (message,)
    spawner.back = lambda name, epoch, message: (
        (SamplerEnd("it ended with status 1"),) if isinstance(message, LoadedVersion) else (message,)
    )
    with pytest.raises(EngineError, match=r"ended 5 times and sampled nothing in between\. The last time it ended with status 1"):
        train(asynchronously(only_rl(steps=3)), tmp_path / "run", progress=False)


def test_an_error_that_another_sampler_would_meet_too_ends_the_run(spawner: ThreadSpawner, tmp_path: Path) -> None:
    spawner.back = lambda name, epoch, message: (
        (SamplerFailure(ConfigError("no such tool"), "the stack"),) if isinstance(message, SampledGroup) else (message,)
    )
    with pytest.raises(ConfigError, match="no such tool"):
        train(asynchronously(only_rl(steps=3)), tmp_path / "run", progress=False)


# ---- kills and resume ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["continue", *(pytest.param(name, marks=pytest.mark.prove) for name in ("wait", "drop"))])
def test_killed_runs_go_on_and_replay_to_their_digest(policy: str, tmp_path: Path) -> None:
    run = asynchronously(replace(only_rl(steps=9), checkpoint_every=3), eta=2, policy=policy)
    folder = tmp_path / "run"

    def work(at: int) -> None:
        """Dies while the log is written: at its ``at``-th line from now."""
        from assay.asynchronous import AcceptedLog

        write, left = AcceptedLog._write, at

        def dying(self: AcceptedLog, record: Any) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                assert self._file is not None or at == 1
                if self._file is not None:
                    self._file.write(b"torn li")
                    self._file.flush()
                os.kill(os.getpid(), signal.SIGKILL)
            write(self, record)

        AcceptedLog._write = dying  # type: ignore[method-assign]
        resume(folder, progress=False) if (folder / "run.toml").exists() else train(run, folder, progress=False)

    for at in (21, 17, 3):
        assert in_child(lambda at=at: work(at)) == -signal.SIGKILL
    digest = resumed(folder)
    found = replay_run(folder)
    assert found.equal and found.digest == digest


@pytest.mark.parametrize("policy", ["drop", pytest.param("wait", marks=pytest.mark.prove)])
def test_a_kill_between_the_log_and_its_checkpoint_costs_nothing(policy: str, tmp_path: Path) -> None:
    """The log of step 6 was begun, and the checkpoint of step 6 was not written; twice."""
    run = asynchronously(replace(only_rl(steps=9), checkpoint_every=3), eta=1, policy=policy)
    folder = tmp_path / "run"

    def work() -> None:
        from assay.runs import checkpoint

        save = checkpoint.save

        def dying(place: Path, step: int, *rest: Any) -> Path:
            if step == 6:
                time.sleep(0.3)  # samplers go on, and what they deliver is written behind the beginning
                os.kill(os.getpid(), signal.SIGKILL)
            return save(place, step, *rest)

        checkpoint.save = dying  # type: ignore[assignment]
        resume(folder, progress=False) if (folder / "run.toml").exists() else train(run, folder, progress=False)

    for _ in range(2):
        assert in_child(work) == -signal.SIGKILL
    digest = resumed(folder)
    found = replay_run(folder)
    assert found.equal and found.digest == digest and (found.steps, found.of) == (9, 9)


def test_a_full_disk_ends_the_run_with_the_place_and_it_goes_on_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, write, left = asynchronously(replace(only_rl(steps=6), checkpoint_every=2), eta=1), AcceptedLog._write, [14]

    def full(self: AcceptedLog, record: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise StorageError("samplers/accepted: No space left on device; make room, and resume the run")
        write(self, record)

    monkeypatch.setattr(AcceptedLog, "_write", full)
    with pytest.raises(StorageError, match="No space left on device"):
        train(run, tmp_path / "run", progress=False)
    assert resume(tmp_path / "run", progress=False).finished
    assert replay_run(tmp_path / "run").equal


def test_samplers_that_serve_what_is_too_old_end_the_run(spawner: ThreadSpawner, tmp_path: Path) -> None:
    """Weights that never arrive: every group is too old, and a step would drop groups for ever."""
    spawner.there = lambda name, epoch, message: (
        () if isinstance(message, NewWeights) and message.weights.manifest.version > 1 else (message,)
    )
    with pytest.raises(EngineError, match="groups in a row were sampled by weights that were too old for step"):
        train(asynchronously(only_rl(steps=9), eta=1, policy="drop"), tmp_path / "run", progress=False)


def test_a_replay_that_is_stopped_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.train import replay

    train(asynchronously(only_rl(steps=2)), tmp_path / "run", progress=False)
    stopped = RunOutcome(folder=tmp_path, step=1, finished=False)
    monkeypatch.setattr(replay, "begin", lambda driver: stopped)
    with pytest.raises(KeyboardInterrupt):
        replay_run(tmp_path / "run")


def test_a_damaged_line_in_the_middle_of_the_log_is_refused(tmp_path: Path) -> None:
    train(asynchronously(only_rl(steps=3)), tmp_path / "run", progress=False)
    file = min((tmp_path / "run" / "samplers" / "accepted").glob("*.jsonl"))
    data = bytearray(file.read_bytes())
    data[30] ^= 1
    file.write_bytes(data)
    with pytest.raises(CheckpointError, match=r"00000000.jsonl, line 1: damaged"):
        replay_run(tmp_path / "run")


@dataclass(frozen=True)
class Unreachable:
    """A judge that cannot be reached while the file is there."""

    outage: str

    def __call__(self, prompt: str, completion: str, row: Any) -> float:
        if Path(self.outage).exists():
            raise ValueError("no connection")
        return float(len(completion) % 2)


class OutageAfter(Callback):
    """Begins after a step."""

    def __init__(self, step: int, outage: Path) -> None:
        self.step, self.outage = step, outage

    def on_step(self, step: int, metrics: Any) -> None:
        if step == self.step:
            self.outage.touch()


@pytest.mark.slow
def test_groups_that_could_not_be_scored_wait_for_the_resumed_run(tmp_path: Path) -> None:
    outage = tmp_path / "outage"
    rows = [{"prompt": f"{a}+{a}=", "answer": str(2 * a)} for a in range(8)]
    run = on_rows(rows, Unreachable(str(outage)), model=tiny().model, steps=5, groups=4, group_size=4)
    run = asynchronously(run, eta=1)
    with pytest.raises(RewardError, match="no verdict on 16 of 16 answers"):
        train(run, tmp_path / "run", progress=False, callbacks=[OutageAfter(2, outage)])
    outage.unlink()
    assert resume(tmp_path / "run", run=run, progress=False).finished
    log = "".join(file.read_text() for file in (tmp_path / "run" / "samplers" / "accepted").glob("*.jsonl"))
    assert log.count('"back":') == 1
    assert replay_run(tmp_path / "run", run=run).equal


# ---- what cannot be ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda run: replace(run, stages=(replace(run.stages[0], lag=1),)), "use one of them"),
        (lambda run: replace(run, tasks=Unsendable()), "which are played in an environment"),
    ],
    ids=["lag", "environment"],
)
def test_settings_that_samplers_cannot_follow_are_refused(change: Callable[[Run], Run], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        check_run(change(asynchronously(only_rl())))


def test_ray_is_missed_before_a_folder_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.train.async_checks.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="ray"):
        train(asynchronously(only_rl(), runtime="ray"), tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


class Unsendable(Thought):
    """A family that cannot be pickled, played in an environment."""

    def __reduce__(self) -> Any:
        raise TypeError("it holds a connection")

    def environment(self, world: Any) -> Any:
        return object()


@pytest.mark.slow
def test_tasks_that_cannot_be_sent_are_not_needed_without_environments(tmp_path: Path) -> None:
    rows = [{"prompt": f"{a}+{a}=", "answer": str(2 * a)} for a in range(8)]
    run = on_rows(rows, lambda prompt, completion, row: 1.0, model=tiny().model, steps=2, groups=2, group_size=2)
    assert train(asynchronously(run), tmp_path / "run", progress=False).finished


def test_a_guidance_that_poses_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Nothing posed task .* in no context"):
        train(asynchronously(only_rl(guidance=Nothing())), tmp_path / "run", progress=False)


def test_only_runs_with_a_whole_log_can_be_replayed(tmp_path: Path) -> None:
    train(only_rl(steps=1), tmp_path / "one", progress=False)
    with pytest.raises(ConfigError, match="sampled in its own process"):
        replay_run(tmp_path / "one")
    train(asynchronously(only_rl(steps=1), keep_log=False), tmp_path / "more", progress=False)
    with pytest.raises(ConfigError, match="train with --keep-log"):
        replay_run(tmp_path / "more")


def test_the_first_lines_and_the_report_tell_of_it(tmp_path: Path) -> None:
    from assay.measure.report import write_report
    from assay.train.describe_settings import describe_settings
    from assay.train.model_facts import facts_in
    from assay.train.model_settings import this_machine

    run = asynchronously(only_rl(steps=3), eta=2, policy="continue")
    train(run, tmp_path / "run", progress=False)
    stage = run.stages[0]
    assert isinstance(stage, Reinforce)
    told = describe_settings(run, stage, facts_in(tmp_path / "run" / "start"), this_machine("cpu"))
    assert any("in 2 processes beside learning, at most 2 steps old, continue" in line for line in told)
    assert "Age of rollouts" in write_report(tmp_path / "run").read_text(encoding="utf-8")
