"""Several workers at once: answers that stop their judge are waited for side by side, and verdicts do not depend on it."""

import itertools
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import pytest
from foreign_code import LONG, act, alive, items, pids

from assay.core.errors import RewardError
from assay.core.rollout import Rollout
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.verify import RewardFunction, ScoringPool

N = 4

Function = Callable[[str, str, dict[str, Any]], Any]


@pytest.fixture(autouse=True)
def cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many cores as workers, whatever the machine has."""
    monkeypatch.setattr("assay.verify.workers.cpu.cores", lambda: N)


def met(folder: Path, name: str, n: int) -> bool:
    """Waits until ``n`` processes are here at the same time."""
    (folder / name).touch()
    while len(list(folder.iterdir())) < n:
        time.sleep(0.005)
    return True


def test_what_a_death_leaves_of_a_batch_is_judged_side_by_side(tmp_path: Path) -> None:
    def together(prompt: str, completion: str, row: dict[str, Any]) -> float:
        return float(met(tmp_path, prompt, N)) if completion == "meet" else act(prompt, completion, row)

    with ScoringPool(RewardFunction(together), LONG, workers=N) as pool:
        verdicts = pool.score(items("yes", "die", *["meet"] * N, "no"))
        assert len(pids(pool)) <= 1 + N
    assert [s.components["reward"] for s in verdicts.values()] == [1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0]
    assert [s.fault for s in verdicts.values()].count(Fault.POLICY) == 1
    assert pool.counts == Counter(died=2, retried=1)


def test_suspects_are_judged_again_side_by_side_each_on_a_worker_of_its_own(tmp_path: Path) -> None:
    seen, meeting = tmp_path / "seen", tmp_path / "meeting"
    seen.mkdir()
    meeting.mkdir()

    def fragile(prompt: str, completion: str, row: dict[str, Any]) -> dict[str, float]:
        if completion == "die":
            if not (seen / prompt).exists():
                (seen / prompt).touch()
                os._exit(1)
            met(meeting, prompt, 3)
        return {"correct": 1.0, "pid": float(os.getpid())}

    with ScoringPool(RewardFunction(fragile), LONG, workers=3) as pool:
        verdicts = pool.score(items("yes", "die", "yes", "die", "die", "yes"))
    assert [s.fault for s in verdicts.values()] == [Fault.NONE] * 6
    judges = [verdicts[k].components["pid"] for k in ("r1", "r3", "r4")]
    assert len(set(judges)) == 3
    assert not set(judges) & {verdicts[k].components["pid"] for k in ("r0", "r2", "r5")}
    assert pool.counts == Counter(died=3, retried=3)


@pytest.mark.parametrize("workers", [1, N])
def test_an_answer_whose_worker_waited_for_a_core_is_given_that_time(monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    told = itertools.count()
    monkeypatch.setattr("assay.verify.workers.cpu.waited_seconds", lambda pid: 60.0 * next(told))

    def slow(prompt: str, completion: str, row: dict[str, Any]) -> float:
        time.sleep(0.75 if completion == "late" else 0.0)
        return 1.0

    with ScoringPool(RewardFunction(slow), 0.5, workers=workers) as pool:
        verdicts = pool.score(items("yes", "late"))
        assert [s.components["reward"] for s in verdicts.values()] == [1.0, 1.0]
        assert pool.counts == Counter()


def test_hangs_are_waited_for_side_by_side() -> None:
    def run(workers: int) -> tuple[float, dict[str, Any], Counter[str]]:
        with ScoringPool(RewardFunction(act), 1.0, workers=workers) as pool:
            pool.score(items("yes"))
            began = time.monotonic()
            verdicts = pool.score(items("yes", *["sleep"] * 3, "no", "raise", *["yes"] * 4))
            told = {k: (s.fault, dict(s.components), s.info.get("error")) for k, s in verdicts.items()}
            return time.monotonic() - began, told, pool.counts

    alone, spread = run(1), run(N)
    assert spread[1:] == alone[1:]  # whoever judged
    assert alone[1]["r3"] == (Fault.POLICY, {"reward": 0.0}, "no verdict within 1 s, twice on the same answer")
    assert alone[2] == Counter(hung=6, retried=4)
    assert alone[0] >= 6 * 1.0
    assert spread[0] < alone[0]


@pytest.mark.parametrize("stops", ["sleep", "die"])
def test_a_batched_call_that_stops_its_worker_is_split_side_by_side(tmp_path: Path, stops: str) -> None:
    def batch(prompts: list[str], completions: list[str], rows: list[dict[str, Any]]) -> list[float]:
        if completions == ["meet"]:
            return [float(met(tmp_path, prompts[0], 3))]
        return [act(p, c, r) for p, c, r in zip(prompts, completions, rows, strict=True) if c != "meet"]

    with ScoringPool(RewardFunction(batch, batched=True), 2.0 if stops == "sleep" else LONG, workers=N) as pool:
        verdicts = pool.score(items("meet", stops, "meet", "meet", "no"))
    assert [s.components["reward"] for s in verdicts.values()] == [1.0, 0.0, 1.0, 1.0, 0.0]
    assert pool.counts == Counter(split=1, retried=1) + Counter({"hung" if stops == "sleep" else "died": 3})


def test_exceptions_that_turn_into_deaths_stop_nobody_else(tmp_path: Path) -> None:
    """What raised is judged again in a row on one fresh worker, and one by one after a death there."""

    def worse(prompt: str, completion: str, row: dict[str, Any]) -> float:
        if completion != "worse" or not (tmp_path / prompt).exists():
            (tmp_path / prompt).touch()
            return act(prompt, "raise" if completion == "worse" else completion, row)
        return act(prompt, "die" if prompt == "p1" else "yes", row)

    with ScoringPool(RewardFunction(worse), LONG, workers=N) as pool:
        verdicts = pool.score(items("yes", "worse", "worse", "worse", "no", "yes"))
    assert [s.fault for s in verdicts.values()] == [Fault.NONE, Fault.INFRA, *[Fault.NONE] * 4]
    assert pool.counts == Counter(retried=3, died=1)


@pytest.mark.parametrize("sleeping", [True, False])
def test_answers_that_compute_have_a_core_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sleeping: bool) -> None:
    """On one core computing answers are judged one by one after a death; ones that sleep do not stand in their way."""
    monkeypatch.setattr("assay.verify.workers.cpu.cores", lambda: 1)
    monkeypatch.setattr("assay.verify.workers.cpu.runs", lambda pid: not sleeping)
    log = tmp_path / "log"

    def logged(prompt: str, completion: str, row: dict[str, Any]) -> float:
        if completion != "yes":
            return act(prompt, completion, row)
        with log.open("a") as file:
            print("begin", file=file, flush=True)
            if sleeping:
                while log.read_text().count("begin") < 3:
                    time.sleep(0.005)
            else:
                time.sleep(0.1)
            print("end", file=file)
        return 1.0

    with ScoringPool(RewardFunction(logged), LONG, workers=N) as pool:
        verdicts = pool.score(items("die", "yes", "yes", "yes"))
    assert sum(s.components["reward"] for s in verdicts.values()) == 3.0
    assert log.read_text().split() == (["begin"] * 3 + ["end"] * 3 if sleeping else ["begin", "end"] * 3)


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.prove) for n in (0, 2, 3))])
def test_whoever_judges_the_verdicts_are_the_same(seed: int, batched: bool) -> None:
    draw = random.Random(seed)
    batches = [draw.choices(["yes", "no", "raise", "die", "exit"], [6, 6, 2, 1, 1], k=12) for _ in range(3)]
    batches = [texts + ["yes"] * 12 for texts in batches]  # never blind

    def batch(prompts: list[str], completions: list[str], rows: list[dict[str, Any]]) -> list[float]:
        return [act(p, c, r) for p, c, r in zip(prompts, completions, rows, strict=True)]

    def run(workers: int) -> list[object]:
        with ScoringPool(RewardFunction(batch if batched else act, batched=batched), LONG, workers=workers) as pool:
            told: list[object] = []
            for texts in batches:
                verdicts = pool.score(items(*texts))
                told += [(s.fault, dict(s.components), s.info.get("error")) for s in verdicts.values()]
                assert len(pids(pool)) <= 1 + workers
            return [*told, pool.counts, pool.state_dict()]

    assert run(N) == run(1)


def test_a_function_that_hangs_from_the_start_is_found_out_with_several_workers() -> None:
    with ScoringPool(RewardFunction(lambda p, c, r: act(p, "sleep", r)), 0.2, workers=N) as pool:
        with pytest.raises(RewardError, match=r"no verdict within 0\.2 s on its first 3 different answers"):
            pool.score(items(*"abcdefgh"))
        assert pool.counts == Counter(hung=3)
        assert len(pids(pool)) == 1  # nobody is left with what was not refused yet


def test_nobody_is_left_after_an_interrupt_among_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hangs(prompt: str, completion: str, row: dict[str, Any]) -> float:
        (tmp_path / str(os.getpid())).touch()
        return act(prompt, completion, row)

    with ScoringPool(RewardFunction(hangs), LONG, workers=N) as pool:

        def interrupted(connections: list[Any], timeout: float) -> None:
            while len(list(tmp_path.iterdir())) < N:
                time.sleep(0.005)
            raise KeyboardInterrupt

        monkeypatch.setattr("assay.verify.workers.dispatch.wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pool.score(items(*["hang"] * N))
        monkeypatch.undo()
        assert [p for p in map(int, os.listdir(tmp_path)) if alive(p)] == []
        assert pool.score(items("yes"))["r0"].primary == 1.0


@dataclass(frozen=True)
class Beside:
    """Answers ``meet`` where so many are judged at once; what it was asked to be beside, it tells."""

    folder: str
    among: int = 0

    names = ("correct", "among")

    def for_workers(self, answers: int) -> Self:
        return replace(self, among=answers)

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        came = met(Path(self.folder), task.id, N) if rollout.text == "meet" else bool(act("", rollout.text, {"answer": "yes"}))
        return Score(components={"correct": float(came), "among": float(self.among)})


def test_answers_that_are_programs_are_judged_side_by_side_from_the_first(tmp_path: Path) -> None:
    with ScoringPool(Beside(str(tmp_path)), LONG, workers=N) as pool:
        first = pool.score(items(*["meet"] * N, "no"))
        assert [s.components["correct"] for s in first.values()] == [1.0] * N + [0.0]
        assert {s.components["among"] for s in first.values()} == {float(N)}
        stay = pids(pool)
        assert len(stay) == 1 + N  # each worker has a sandbox of its own by now, so none is sent away
        pool.score(items("yes", "no", "yes"))
        assert pids(pool) == stay
        assert pool.counts == Counter()


def test_what_is_spread_is_judged_the_same(tmp_path: Path) -> None:
    def told(workers: int) -> dict[str, Any]:
        with ScoringPool(Beside(str(tmp_path)), LONG, workers=workers, refuse=False) as pool:
            scores = pool.score(items("yes", "die", "no", "raise", "yes", "nan", "die", "no"))
            return {k: (s.fault, s.components.get("correct"), s.info.get("error")) for k, s in scores.items()}

    alone = told(1)
    assert alone == told(N)
    assert [fault for fault, _, _ in alone.values()].count(Fault.POLICY) == 2
