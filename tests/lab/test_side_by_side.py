"""Runs side by side: what is started when, what becomes of each, and what they come to together."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from assay.core.config import dumps_toml, from_dict, loads_toml, to_dict
from assay.core.errors import ConfigError, InexactResumeError
from assay.lab import seeds as lab
from assay.lab.processes import ProcessJob
from assay.lab.seeds import StudyRun, run_all, same_run, side_by_side
from assay.lab.summary import RunEnding, State, differences, means
from assay.measure.intervals import Interval
from assay.runs import lock, user_code
from assay.train.models import Built, Scratch
from assay.train.run import Run
from assay.train.stages import WarmUp
from assay_tasks import SortDigits

RUN = Run(model=Scratch(), tasks=SortDigits(levels=(1, 2)), stages=(WarmUp(steps=2),))

STAND_IN = """
import json, os, sys, time
from pathlib import Path
how, folder = sys.argv[1], Path(sys.argv[2])
print("line of", how)
folder.mkdir(exist_ok=True)
def line(name, **record):
    with (folder / (name + ".jsonl")).open("a") as file:
        print(json.dumps(record), file=file)
item = {"id": "a", "arm": "s", "level": 1, "answers": ["1"], "faults": 0}
def evaluated(step, right):
    for mode in ("greedy", "sampled"):
        line("evals", step=step, stage="rl", split="test", mode=mode, full=True, items=[{**item, "values": [right]}])
for name, text in {"run.toml": "seed = 1", "versions.json": "{}", "rollouts.jsonl": ""}.items():
    (folder / name).write_text(text)
evaluated(0, 0.0)
line("metrics", step=0, stage="rl", metrics={"eval/greedy/all": 0.0})
if how == "fails":
    print("assay: the loss is NaN", file=sys.stderr)
    sys.exit(1)
if how == "sleeps":
    line("metrics", step=1, stage="rl", metrics={"time/cpu": 1.0})
    time.sleep(60)
(folder / "start").mkdir()
evaluated(2, 1.0)
line("metrics", step=2, stage="rl", metrics={"time/cpu": 3.5})
(folder / "done.json").write_text('{"digest": "abc", "step": 2}')
"""


class Heard:
    """Keeps all news."""

    def __init__(self) -> None:
        self.states: list[tuple[str, str, str]] = []
        self.steps: list[tuple[str, int]] = []
        self.interrupt_at: tuple[str, int] | None = None

    def state(self, name: str, state: State, said: str) -> None:
        self.states.append((name, str(state), said))

    def log(self, name: str, step: int, metrics: Mapping[str, float]) -> None:
        self.steps.append((name, step))
        if (name, step) == self.interrupt_at:
            os.kill(os.getpid(), signal.SIGINT)

    def of(self, name: str) -> list[str]:
        return [s for n, s, _ in self.states if n == name]


@pytest.fixture
def heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Heard:
    """Stand-ins for the command line: `words` of a member say how it behaves."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(lab, "same_run", lambda folder, run: True)
    Path("stand_in.py").write_text(STAND_IN)
    real = lab._SeedRunner._job

    def job(self: lab._SeedRunner, name: str) -> ProcessJob:
        made = real(self, name)
        assert made.words[:2] in (("assay", "train"), ("assay", "resume")) and made.words[-1] == "--plain"
        return replace(made, words=("stand_in", self._members[name].words[0], str(self._folder / name)))

    monkeypatch.setattr(lab._SeedRunner, "_job", job)
    return Heard()


def member(name: str, how: str = "works", seed: int = 0, run: Run = RUN) -> StudyRun:
    return StudyRun(name=name, group="", run=replace(run, seed=seed), words=(how,))


def work(heard: Heard, *members: StudyRun, at_once: int = 2) -> dict[str, RunEnding]:
    found = run_all(members, Path("all"), at_once=at_once, options=("--plain",), news=heard)
    return {e.name: e for e in found}


def test_a_run_that_fails_stops_no_other_and_is_gone_on_with(heard: Heard) -> None:
    found = work(heard, member("a", "fails"), member("b", seed=4), member("c"), at_once=1)
    assert (found["a"].state, found["a"].error) == (State.FAILED, "assay: the loss is NaN")
    b = found["b"]
    assert (b.state, b.seed, b.step, b.digest, b.base, b.greedy, b.sampled, b.gain) == (
        State.FINISHED,
        4,
        2,
        "abc",
        0.0,
        1.0,
        1.0,
        1.0,
    )
    assert b.cpu_seconds == 3.5
    assert heard.of("a") == ["waiting", "running", "failed"] and heard.of("c") == ["waiting", "running", "finished"]
    assert heard.steps == [("a", 0), ("b", 0), ("b", 2), ("c", 0), ("c", 2)]
    written = json.loads(Path("all/results.json").read_text())
    assert [r["state"] for r in written["runs"]] == ["failed", "finished", "finished"]
    assert written["means"] == [{"group": "", "runs": 2, "base": 0.0, "greedy": 1.0, "gain": 1.0, "sampled": 1.0}]
    assert written["differences"] == []

    heard.states.clear()
    again = work(heard, member("a"), member("b", "fails", seed=4), member("c", "fails"))  # finished ones are not run again
    assert {e.state for e in again.values()} == {State.FINISHED}
    assert heard.of("b") == ["finished"]
    assert Path("all/a.log").read_text().splitlines() == ["line of fails", "assay: the loss is NaN", "line of works"]


def test_runs_by_name_from_python(heard: Heard) -> None:
    runs = {"small": RUN, "long": replace(RUN, stages=(WarmUp(steps=9),))}
    found = side_by_side(runs, "all", at_once=2, groups={"long": "l"}, news=heard)
    assert [(e.name, e.group, e.state) for e in found] == [("small", "", State.FINISHED), ("long", "l", State.FINISHED)]
    assert {n: from_dict(Run, loads_toml(Path("all", f"{n}.toml").read_text())) for n in runs} == runs
    assert {e.state for e in side_by_side(runs, "all")} == {State.FINISHED}


def test_ctrl_c_ends_all_and_starts_no_more(heard: Heard) -> None:
    heard.interrupt_at = ("a", 1)
    found = work(heard, member("a", "sleeps"), member("b"), at_once=1)
    assert {n: e.state for n, e in found.items()} == {"a": State.STOPPED, "b": State.STOPPED}
    assert not Path("all/b").exists()
    assert (found["a"].step, found["a"].digest, found["b"].step) == (1, "", 0)


def test_a_run_whose_process_was_killed_is_told_so(heard: Heard) -> None:
    class Killing(Heard):
        def log(self, name: str, step: int, metrics: Mapping[str, float]) -> None:
            if step == 1:
                os.kill(next(p for p in _pids() if b"stand_in\0sleeps" in _read(p, "cmdline")), signal.SIGKILL)

    found = work(Killing(), member("a", "sleeps"), member("b"))
    assert (found["a"].state, found["a"].error) == (State.FAILED, "was killed by signal 9")
    assert found["b"].state is State.FINISHED


def _pids() -> list[int]:
    """Processes that work in this test's folder."""
    return [int(p.name) for p in Path("/proc").glob("[0-9]*") if _at(p) == Path.cwd()]


def _at(process: Path) -> Path | None:
    try:
        return (process / "cwd").readlink()
    except OSError:
        return None


def _read(pid: int, name: str) -> bytes:
    try:
        return Path("/proc", str(pid), name).read_bytes()
    except OSError:
        return b""


def test_the_first_builds_a_base_that_several_start_from(heard: Heard) -> None:
    base = Built(run=RUN)
    shared, other = replace(RUN, model=base), replace(RUN, model=Built(run=replace(RUN, seed=9)))
    at_work: set[str] = set()

    class Alone(Heard):
        def state(self, name: str, state: State, said: str) -> None:
            super().state(name, state, said)
            (at_work.add if state is State.RUNNING else at_work.discard)(name)
            building = [n for n, s, x in self.states if (s, x) == ("running", "base") and n in at_work]
            assert not {"a", "b"} <= {n for n in building if not Path("all", n, "start").exists()}

    found = work(
        alone := Alone(), *(member(n, seed=i, run=r) for i, (n, r) in enumerate({"a": shared, "b": shared, "c": other}.items()))
    )
    assert {e.state for e in found.values()} == {State.FINISHED}
    began = [n for n, s, _ in alone.states if s == "running"]
    assert set(began[:2]) == {"a", "c"}  # b has to wait for a's base, c has a base of its own


def test_a_run_at_which_a_process_is_still_at_work_is_waited_for(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["77", "77"])
    monkeypatch.setattr(lock, "holder", lambda folder: next(answers, "") if folder.name == "a" else "")
    found = work(heard, member("a"))
    assert found["a"].state is State.FINISHED
    assert ("a", "waiting", "process 77 works on it") in heard.states


def test_who_works_on_a_folder(tmp_path: Path) -> None:
    assert lock.holder(tmp_path / "none") == ""
    (tmp_path / lock.LOCK).write_text("1\n")
    assert lock.holder(tmp_path) == ""
    pid = os.fork()
    if not pid:
        with lock.worker(tmp_path):
            (tmp_path / "held").touch()
            signal.pause()
    while not (tmp_path / "held").exists():
        time.sleep(0.01)
    assert lock.holder(tmp_path) == str(pid)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert lock.holder(tmp_path) == ""


# ---- which runs


def test_a_folder_is_known_by_what_its_settings_mean(tmp_path: Path) -> None:
    assert same_run(tmp_path, RUN)
    toml = tmp_path / "run.toml"
    toml.write_text(dumps_toml(to_dict(RUN)))
    assert same_run(tmp_path, RUN)
    assert not same_run(tmp_path, replace(RUN, seed=1))
    assert not same_run(tmp_path, replace(RUN, stages=(WarmUp(steps=3),)))
    toml.write_text("no = toml = at all")
    assert not same_run(tmp_path, RUN)


def test_another_run_in_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "run.toml").write_text(dumps_toml(to_dict(replace(RUN, seed=8))))
    with pytest.raises(ConfigError, match="a holds a run of other settings than asked for"):
        run_all([member("a")], tmp_path)


def paid_for_ones(prompt: str, completion: str) -> float:
    return float(completion.count("1"))


def paid_for_twos(prompt: str, completion: str) -> float:
    return float(completion.count("2"))


def test_finished_runs_of_other_code_are_refused_or_named(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record of a finished run must not stand in a table beside runs of another reward."""
    monkeypatch.setattr(lab, "code_of", lambda run: [paid_for_ones])
    work(heard, member("a"))
    user_code.write_code(Path("all/a"), [paid_for_ones])
    assert work(heard, member("a"))["a"].state is State.FINISHED
    monkeypatch.setattr(lab, "code_of", lambda run: [paid_for_twos])
    with pytest.raises(InexactResumeError, match=r"the code that all/a was made with has changed .*pass --allow-inexact"):
        work(heard, member("a"), member("b"))
    assert not Path("all/b").exists()
    told: list[str] = []
    found = run_all([member("a"), member("b")], Path("all"), options=("--plain",), allow_inexact=True, note=told.append)
    assert [e.state for e in found] == [State.FINISHED, State.FINISHED]
    assert len(told) == 1 and told[0].startswith("a was made with other code than now: ")


@pytest.mark.parametrize(
    ("begun", "allowed", "words"),
    [(True, True, ["resume", "--allow-inexact"]), (True, False, ["resume"]), (False, True, ["train"])],
)
def test_runs_that_are_continued_hear_that_inexact_is_allowed(
    tmp_path: Path, begun: bool, allowed: bool, words: list[str]
) -> None:
    if begun:
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "run.toml").touch()
    runner = lab._SeedRunner([member("a")], tmp_path, ("--plain",), Heard(), ("--allow-inexact",) if allowed else ())
    assert [w for w in runner._job("a").words if w in ("train", "resume", "--allow-inexact")] == words


# ---- together


def test_means_by_hand() -> None:
    def one(seed: int, greedy: float | None, group: str = "x", state: State = State.FINISHED) -> RunEnding:
        return RunEnding(name=f"{group}{seed}", group=group, seed=seed, state=state, base=0.5, greedy=greedy)

    # values .8 .9 1.0: mean .9, s = .1, half width 4.3027 * .1 / sqrt(3) = .24842
    found = means([one(0, 0.8), one(1, 0.9), one(2, 1.0), one(3, 0.0, state=State.FAILED), one(0, 0.7, "y"), one(1, None, "z")])
    x, y, z = found
    assert isinstance(x.greedy, Interval) and isinstance(x.gain, Interval)
    assert (x.runs, x.greedy.n) == (3, 3)
    assert x.greedy.value == pytest.approx(0.9) and x.greedy.low == pytest.approx(0.9 - 0.248413, abs=1e-5)
    assert x.greedy.high == 1.0  # no accuracy is above 1
    assert x.gain.value == pytest.approx(0.4) and x.gain.high == pytest.approx(0.4 + 0.248413, abs=1e-5)
    assert (y.runs, y.greedy, y.base, y.sampled) == (1, 0.7, 0.5, None)
    assert (z.greedy, z.gain, z.base) == (None, None, 0.5)


def test_paired_differences_by_hand() -> None:
    def one(group: str, seed: int, greedy: float | None, state: State = State.FINISHED) -> RunEnding:
        return RunEnding(name=f"{group}{seed}", group=group, seed=seed, state=state, greedy=greedy, sampled=0.5)

    # seeds differ by far more than settings: second - first is .1 .2 .3, mean .2, s = .1, half width 4.3027 * .1 / sqrt(3)
    first = [one("a", s, v) for s, v in enumerate((0.1, 0.5, 0.7))]
    second = [one("b", s, v) for s, v in ((2, 1.0), (0, 0.2), (1, 0.7), (9, 0.0))]  # 9 has no partner
    (found,) = differences([*first, *second])
    assert (found.first, found.second, found.runs) == ("a", "b", 3)
    assert isinstance(found.greedy, Interval)
    assert found.greedy.value == pytest.approx(0.2) and found.greedy.low == pytest.approx(0.2 - 0.248413, abs=1e-5)
    assert found.sampled == 0.0  # alike in all: no interval
    failed, unknown = differences([*first, one("b", 0, 0.3, State.FAILED), one("c", 0, None)])
    assert (failed.runs, failed.greedy) == (0, None) and (unknown.runs, unknown.greedy, unknown.sampled) == (1, None, 0.0)
    assert differences([]) == differences(first) == ()
