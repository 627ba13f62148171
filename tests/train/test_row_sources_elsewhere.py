"""Rows of a user's own where the learner is several processes, and where sampling goes on beside learning."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from thread_samplers import ThreadSpawner
from tiny_runs import only_rl, trained

from assay.asynchronous import Asynchronous
from assay.objective.methods import visurf
from assay.runtime import Mesh
from assay.train import RowSource, async_collect
from assay.train.driver import train
from assay.train.run import ContaminationCheck, Run
from assay_tasks import SortDigits

TASKS = SortDigits(levels=(1, 2, 3))
ROWS = [
    {"prompt": task.public["prompt"], "answer": task.private["answer"]}
    for task in (TASKS.task("sort", level, "train", index) for level in (1, 2, 3) for index in range(30))
]


def mixing(**changes: Any) -> Run:
    stage: dict[str, Any] = {"objective": visurf(), "sources": (RowSource(data=ROWS),), "steps": 2} | changes
    return replace(only_rl(**stage), contamination=ContaminationCheck(mode="off"))


def sources_of(folder: Path) -> list[dict[str, float]]:
    lines = [json.loads(line)["metrics"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in m.items() if k.startswith("sources/")} for m in lines if "reward/mean" in m]


def test_samplers_beside_the_learner_meet_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With nothing older than the newest weights, every number of the rows is that of one process."""
    made = ThreadSpawner()
    monkeypatch.setattr(async_collect, "spawner_of", lambda runtime: made)
    train(mixing(), tmp_path / "alone", progress=False)
    train(mixing(asynchronous=Asynchronous(samplers=2, eta=0)), tmp_path / "beside", progress=False)
    alone, beside = sources_of(tmp_path / "alone"), sources_of(tmp_path / "beside")
    assert len(alone) == 2 and alone[0]["sources/expert"] > 0 and alone == beside


@pytest.mark.prove
def test_two_ranks_learn_from_the_same_rows_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    trained(mixing(), tmp_path / "one")
    trained(replace(mixing(), mesh=Mesh(data=2)), tmp_path / "two")
    one, two = sources_of(tmp_path / "one"), sources_of(tmp_path / "two")
    assert len(one) == len(two) == 2
    assert two[0] == pytest.approx(one[0], rel=1e-4), "before the first update both have the same weights"
    assert two[1].keys() == one[1].keys() and two[1]["sources/clipped"] == one[1]["sources/clipped"] == 0.0
