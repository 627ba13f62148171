"""Whole runs whose learner several processes share."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hub_cases import hub_model
from tiny_runs import SHAPE, at_named, digest_of, in_child, kill_at, points_into, reinforce, resumed, tiny, trained, warm_up

from assay.core.errors import ConfigError, InexactResumeError, RankError
from assay.core.rollout import Sampling
from assay.runtime import AdamW, LearnerSettings, Lora, Mesh, save_model
from assay.runtime.kernels.typed import array_of
from assay.train import Evaluation, Folder, Run, load_run, resume, train
from assay.train.preflight import check_run

pytestmark = pytest.mark.prove


@pytest.fixture(autouse=True)
def loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")


def shared(ranks: int = 2, **changes: object) -> Run:
    warm = warm_up(steps=6, learner=LearnerSettings(optimizer=AdamW(lr=2e-3)))
    run = tiny(rl=6)
    return replace(run, stages=(warm, *run.stages[1:]), mesh=Mesh(data=ranks), **changes)


def ranks_alive(folder: Path) -> list[int]:
    """Processes that serve as a rank of a run of this test: they inherit ``ASSAY_TEST_FOLDER``."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
                mine = str(folder).encode() in (entry / "environ").read_bytes()
            except OSError:
                continue
            if b"assay.runtime.distributed.worker" in line and mine:
                found.append(int(entry.name))
    return found


def test_two_stages_on_two_ranks_go_on_exactly_after_kill_and_on_one_rank_near(tmp_path, monkeypatch):
    monkeypatch.setenv("ASSAY_TEST_FOLDER", str(tmp_path))
    points = tmp_path / "points"
    whole = trained(shared(), tmp_path / "whole", lambda: points_into(points))
    metrics = (tmp_path / "whole" / "metrics.jsonl").read_text()
    assert metrics.count('"proof/state": 1.0') == 6
    written = points.read_text().split()
    places = [i for i, point in enumerate(written) if point.startswith("renamed:step_")]
    for number in (places[0] - 1, places[1]):
        folder = tmp_path / f"killed_{number}"
        assert in_child(lambda at=number, place=folder: (kill_at(at), train(shared(), place))) == -signal.SIGKILL
        for _ in range(100):
            if not ranks_alive(tmp_path):
                break
            time.sleep(0.1)
        assert not ranks_alive(tmp_path), "a rank outlives rank 0"
        assert resumed(folder) == whole
    folder = tmp_path / "fewer"
    assert in_child(lambda: (kill_at(places[1]), train(shared(), folder))) == -signal.SIGKILL
    with pytest.raises(InexactResumeError, match="ranks: 2 then, 1 now"):
        resume(folder, ranks=1)
    assert resumed(folder, ranks=1, allow_inexact=True) != whole
    assert load_run(folder).mesh == Mesh(data=1)
    assert '"resumed on a different machine: ranks: 2 then, 1 now"' in (folder / "events.jsonl").read_text()


def test_a_run_begun_alone_goes_on_on_two_ranks(tmp_path):
    run = shared(1)
    points = tmp_path / "points"
    trained(run, tmp_path / "whole", lambda: points_into(points))
    last = max(i for i, point in enumerate(points.read_text().split()) if point.startswith("renamed:step_"))
    folder = tmp_path / "killed"
    assert in_child(lambda: (kill_at(last - 1), train(run, folder))) == -signal.SIGKILL
    resumed(folder, ranks=2, allow_inexact=True)
    assert load_run(folder).mesh == Mesh(data=2)


def test_a_run_whose_ranks_share_rows_is_proved(tmp_path):
    run = replace(shared(), mesh=Mesh(data=1, context=2), model=replace(tiny().model, shape=replace(SHAPE, num_kv_heads=2)))
    assert trained(run, tmp_path / "run")
    assert (tmp_path / "run" / "metrics.jsonl").read_text().count('"proof/state": 1.0') == 6
    resumed(tmp_path / "run", ranks=2, steps=7, allow_inexact=True)
    assert load_run(tmp_path / "run").mesh == Mesh(data=2)


def test_a_lost_rank_ends_the_run_which_goes_on_exactly(tmp_path, monkeypatch):
    monkeypatch.setenv("ASSAY_TEST_FOLDER", str(tmp_path))
    whole = trained(shared(), tmp_path / "whole")
    folder = tmp_path / "lost"

    def work() -> None:
        def lose() -> None:
            (pid,) = ranks_alive(tmp_path)
            os.kill(pid, signal.SIGKILL)

        at_named("renamed:step_0000010", lose)
        with pytest.raises(RankError, match="was killed by signal 9"):
            train(shared(), folder)

    assert in_child(work) == 0
    assert "RankError: rank 1" in (folder / "events.jsonl").read_text()
    assert resumed(folder) == whole


def test_an_adapter_of_a_hub_model_is_shared_proved_and_whole_in_the_end(tmp_path):
    save_model(hub_model("gpt2"), tmp_path / "base")
    settings = LearnerSettings(optimizer=AdamW(lr=2e-3), adapter=Lora(rank=4))
    run = Run(
        model=Folder(str(tmp_path / "base")),
        tasks=tiny().tasks,
        sampling=Sampling(max_new_tokens=5),
        mesh=Mesh(data=2),
        stages=(warm_up(steps=4, learner=settings), reinforce(steps=3, learner=settings)),
        evaluation=Evaluation(every=0, final_per_level=2),
        checkpoint_every=3,
    )
    digest = trained(run, tmp_path / "run")
    assert (tmp_path / "run" / "metrics.jsonl").read_text().count('"proof/state": 1.0') == 3
    alone = trained(replace(run, mesh=Mesh()), tmp_path / "alone")
    assert digest != alone and digest_of(tmp_path / "run") == digest
    from assay.runtime import load_model

    two, one = (load_model(tmp_path / name / "model").adapter.tensors for name in ("run", "alone"))
    first = {n: abs(array_of(two[n]) - array_of(one[n])).max() for n in one}
    assert two.keys() == one.keys() and max(first.values()) < 5e-2, first


def test_heads_that_do_not_go_into_parts_are_refused(tmp_path):
    def work() -> None:  # in a process of its own, as all that belongs to a group
        with pytest.raises(ConfigError, match=r"Run.mesh.context=2: Qwen3ForCausalLM has 1 and 2 heads for keys and queries"):
            train(replace(shared(), mesh=Mesh(context=2)), tmp_path / "run")

    assert in_child(work) == 0
    assert not (tmp_path / "run" / "run.toml").exists()


def test_what_cannot_be_shared_is_refused_before_anything_is_built():
    with pytest.raises(ConfigError, match=r"Run.mesh has 2 ranks, and LearnerSettings.optimizer is Muon\(\)"):
        check_run(replace(tiny(), mesh=Mesh(data=2)))
