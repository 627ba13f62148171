"""Stopping and going on: Ctrl-C, more steps, early ends, several updates per rollout batch."""

from __future__ import annotations

import json
import os
import shutil
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import (
    at_named,
    at_point,
    digest_of,
    in_child,
    kill_at,
    on_tiny_base,
    only_rl,
    points_into,
    reinforce,
    resumed,
    tiny,
    trained,
)

from assay.core.errors import CheckpointError, ConfigError
from assay.objective.loss.entropy import Entropy
from assay.objective.methods import areal, dapo, grpo, pacs, rloo
from assay.objective.objective import Objective
from assay.runtime import NcclUpdate, VllmSettings
from assay.runtime.engine.settings import Native
from assay.train.driver import RunOutcome, load_run, resume, train
from assay.train.record import run_id
from assay.train.reinforce import Until
from assay.train.run import Evaluation, Run


def metrics(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """An engine that says where it is."""

    url: str = "http://here"
    batch: int = 64

    def anywhere(self) -> Served:
        return Served(batch=self.batch)

    def build(self, learner: Any) -> Any:
        return Native(max_batch=self.batch).build(learner)


def test_an_engine_may_have_moved_when_a_run_goes_on(tmp_path: Path) -> None:
    """The address under which it is reached decides nothing of what is computed; everything else of it stays refused."""
    run = replace(only_rl(steps=4), engine=Served())
    first = trained(run, tmp_path / "a")
    toml = tmp_path / "a" / "run.toml"
    toml.write_text(toml.read_text().replace("http://here", "http://there"))
    assert load_run(tmp_path / "a").engine == Served(url="http://there")
    (tmp_path / "a" / "done.json").unlink()
    assert resumed(tmp_path / "a") == first
    toml.write_text(toml.read_text().replace("batch = 64", "batch = 32"))
    (tmp_path / "a" / "done.json").unlink()
    with pytest.raises(CheckpointError, match="belongs to another run: its settings are not those"):
        resume(tmp_path / "a")


def test_where_a_vllm_server_is_and_how_weights_get_there_is_no_part_of_a_run() -> None:
    run = tiny()
    at = lambda **settings: run_id(replace(run, engine=VllmSettings(**settings)))
    moved = at(url="http://10.0.0.7:9", folder="/w", model="m", update=NcclUpdate(), api_key_env="K", swap_seconds=1.0)
    assert at() == moved
    assert at() != at(recompute=False)
    assert at() != run_id(run)


# ---- more steps -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_finished_run_goes_on_with_more_steps_to_one_digest(tmp_path: Path) -> None:
    run = only_rl(steps=6)
    first = trained(run, tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    more = resumed(tmp_path / "a", steps=10)
    assert more != first
    assert [r["step"] for r in metrics(tmp_path / "a")] == list(range(11))
    assert load_run(tmp_path / "a").steps == 10

    def killed_on_the_way() -> None:
        kill_at(40)
        resume(tmp_path / "b", steps=10)

    assert in_child(killed_on_the_way) == -signal.SIGKILL
    assert not (tmp_path / "b" / "done.json").exists()
    assert resumed(tmp_path / "b", run=run) == more  # the record knows of the ten steps, the value given does not


def test_a_finished_run_without_more_steps_is_left_alone(tmp_path: Path) -> None:
    outcome = train(only_rl(steps=2), tmp_path / "run")
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.is_file() and p.name != ".lock"}
    assert resume(tmp_path / "run") == resume(tmp_path / "run", steps=2) == outcome
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.is_file() and p.name != ".lock"} == before


def test_fewer_steps_than_were_done_are_refused(tmp_path: Path) -> None:
    train(only_rl(steps=4), tmp_path / "run")
    with pytest.raises(ConfigError, match="steps=3, but stage 'rl' has done 4 already; give at least that many"):
        resume(tmp_path / "run", steps=3)
    assert (tmp_path / "run" / "done.json").exists()


@pytest.mark.slow
def test_steps_given_during_the_warm_up_are_those_of_the_last_stage(tmp_path: Path) -> None:
    def stop_early() -> None:
        kill_at(60)
        train(tiny(warm=8, rl=2), tmp_path / "run")

    assert in_child(stop_early) == -signal.SIGKILL
    assert resumed(tmp_path / "run", steps=3) == trained(tiny(warm=8, rl=3), tmp_path / "other")


# ---- Ctrl-C -----------------------------------------------------------------------------------------------------------------


def interrupted(run: Run, folder: Path, point: str, times: int = 1) -> Path:
    """Ctrl-C, so many times, at the first write point of a name, in a child that tells how it ended."""
    report, left = folder.with_suffix(".json"), iter([times])

    def press() -> None:
        for _ in range(next(left, 0)):
            os.kill(os.getpid(), signal.SIGINT)

    def work() -> None:
        at_named(point, press)
        try:
            outcome: RunOutcome | None = train(run, folder)
        except KeyboardInterrupt:
            outcome = None
        report.write_text(json.dumps([outcome.finished, outcome.step] if outcome else None))

    assert in_child(work) == 0
    return report


@pytest.mark.slow
def test_one_interrupt_ends_the_step_and_leaves_a_checkpoint(tmp_path: Path) -> None:
    run = only_rl(steps=8)
    report = interrupted(run, tmp_path / "run", "append:rollouts")  # in step 1
    assert json.loads(report.read_text()) == [False, 1]
    assert (tmp_path / "run" / "LATEST").read_text() == "step_0000001\n"
    assert not (tmp_path / "run" / "done.json").exists()
    assert resumed(tmp_path / "run") == trained(run, tmp_path / "whole")


@pytest.mark.slow
def test_a_second_interrupt_ends_at_once(tmp_path: Path) -> None:
    run = only_rl(steps=8)
    report = interrupted(run, tmp_path / "run", "append:rollouts", times=2)
    assert json.loads(report.read_text()) is None
    assert (tmp_path / "run" / "LATEST").read_text() == "step_0000000\n"
    assert resumed(tmp_path / "run") == trained(run, tmp_path / "whole")


def test_an_interrupt_behind_the_last_step_changes_nothing(tmp_path: Path) -> None:
    run = only_rl(steps=2)
    report = interrupted(run, tmp_path / "run", "synced:step_0000002")
    assert json.loads(report.read_text()) == [True, 2]
    assert digest_of(tmp_path / "run") == trained(run, tmp_path / "whole")


@pytest.mark.prove
def test_an_interrupt_between_two_stages_stops_there(tmp_path: Path) -> None:
    run = tiny(warm=8, rl=2)
    report = interrupted(run, tmp_path / "run", "synced:step_0000008")
    assert json.loads(report.read_text()) == [False, 8]
    assert resumed(tmp_path / "run") == trained(run, tmp_path / "whole")


@pytest.mark.slow
def test_an_interrupt_while_the_base_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    report = interrupted(on_tiny_base(), tmp_path / "run", "synced:step_0000004")
    assert json.loads(report.read_text()) == [False, 0]
    again = resumed(tmp_path / "run")
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "other"))
    assert again == trained(on_tiny_base(), tmp_path / "whole")


def test_outside_the_main_thread_a_run_leaves_signals_alone(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(train, only_rl(steps=1), tmp_path / "run").result().finished


# ---- early ends ---------------------------------------------------------------------------------------------------------------


def early(steps: int = 8) -> Run:
    """Ends at its first evaluation, at step 3."""
    often = Evaluation(every=3, per_level=1, final_per_level=2)
    return replace(only_rl(steps=steps, until=Until(at_least=0.0)), evaluation=often)


def test_a_stage_ends_when_its_metric_is_reached(tmp_path: Path) -> None:
    outcome = train(early(), tmp_path / "run")
    assert (outcome.finished, outcome.step) == (True, 3)
    lines = [json.loads(line) for line in (tmp_path / "run" / "evals.jsonl").read_text().splitlines()]
    assert [(r["step"], r["full"]) for r in lines if r["mode"] == "greedy"] == [(0, True), (3, False), (3, True)]


def test_an_early_end_survives_a_kill_while_finishing(tmp_path: Path) -> None:
    points = tmp_path / "points.txt"
    whole = trained(early(), tmp_path / "whole", lambda: points_into(points))

    def killed() -> None:
        kill_at(points.read_text().splitlines().index("filled:model"))
        train(early(), tmp_path / "run")

    assert in_child(killed) == -signal.SIGKILL
    assert resumed(tmp_path / "run") == whole
    assert [r["step"] for r in metrics(tmp_path / "run")] == [0, 1, 2, 3]


def test_more_steps_lift_an_early_end_until_the_next_evaluation(tmp_path: Path) -> None:
    train(early(), tmp_path / "run")
    assert resume(tmp_path / "run", steps=20).step == 6
    train(early(20), tmp_path / "never")
    assert load_run(tmp_path / "never").steps == 20


def test_an_early_end_hands_over_to_the_next_stage(tmp_path: Path) -> None:
    first = early().stages[0]
    run = replace(early(), stages=(first, reinforce(steps=2)))
    assert train(run, tmp_path / "run").step == 5


# ---- several updates per rollout batch ----------------------------------------------------------------------------------------


def test_one_update_per_batch_needs_no_pass_for_the_old_policy() -> None:
    assert [f.column for f in grpo(kl=0.0).plan(1).forwards] == []
    assert [f.column for f in grpo(kl=0.0).plan(4).forwards] == ["logp_old"]


@pytest.mark.parametrize("epochs", [1, 2])
def test_minibatches_take_all_their_updates(tmp_path: Path, epochs: int) -> None:
    run = only_rl(steps=2, epochs=epochs, minibatches=2, objective=grpo(kl=0.01))
    train(run, tmp_path / "run")
    learner = next((tmp_path / "run" / "checkpoints").glob("step_0000002")) / "learner" / "learner.json"
    assert json.loads(learner.read_text())["version"] == 2 * 2 * epochs
    last = metrics(tmp_path / "run")[-1]["metrics"]
    assert last["proof/state"] == 1.0 and "kl/kl_ref" in last
    # counts add up over the updates of a step: every sampled token is trained once an epoch
    assert last["tokens/trained"] == last["tokens/sampled"] * epochs
    assert last["rows/computed"] + last["rows/skipped"] == 4 * 4 * epochs


@pytest.mark.slow
def test_several_updates_resume_exactly(tmp_path: Path) -> None:
    run = replace(only_rl(steps=4, epochs=2, minibatches=2, objective=grpo(kl=0.01)), checkpoint_every=1)
    log = tmp_path / "points.txt"
    whole = trained(run, tmp_path / "whole", lambda: points_into(log))

    def killed() -> None:
        at_point(log.read_text().splitlines().index("synced:step_0000003"), lambda: os.kill(os.getpid(), signal.SIGKILL))
        train(run, tmp_path / "run")

    assert in_child(killed) == -signal.SIGKILL
    assert resumed(tmp_path / "run") == whole


OBJECTIVES: dict[str, Objective] = {
    "old and reference": grpo(kl=0.01),
    "entropy": grpo(kl=0.0) + Entropy(coef=0.01),
    "dapo": dapo(),
    "decoupled from the engine": areal(),
    "leave one out": rloo(kl=0.05),
    "two passes": pacs(),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_objectives_with_other_needs_run_through_the_loop(tmp_path: Path, name: str) -> None:
    run = only_rl(steps=2, objective=OBJECTIVES[name], epochs=1 if name == "two passes" else 2)
    assert train(run, tmp_path / "run").finished
    last = metrics(tmp_path / "run")[-1]["metrics"]
    assert all(abs(last[key]) < 1e6 for key in ("loss/total", "grad/norm", "reward/mean"))


def test_a_second_stage_goes_on_where_the_first_ended(tmp_path: Path) -> None:
    """Weight versions count on, and no task is posed twice."""
    run = only_rl(steps=2)
    train(replace(run, stages=(run.stages[0], run.stages[0]), checkpoint_every=1, rollouts_every=1), tmp_path / "run")
    newest = tmp_path / "run" / "checkpoints" / "step_0000004"
    assert json.loads((newest / "learner" / "learner.json").read_text())["version"] == 4
    state = json.loads((newest / "state.json").read_text())["session"]
    assert sum(state["counter"].values()) == 4 * 4
    shown = [json.loads(line) for line in (tmp_path / "run" / "rollouts.jsonl").read_text().splitlines()]
    steps_of: dict[str, set[int]] = {}
    for record in shown:
        steps_of.setdefault(record["task"], set()).add(record["step"])
    assert all(len(steps) == 1 for steps in steps_of.values())
