"""Curricula that follow a run's evaluations: they hear of each, resume with it, and are refused where there is none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from live import coin_toss
from tiny_runs import in_child, kill_at, only_rl, resumed, trained

from assay.core.errors import ConfigError
from assay.guide import AlpGmm, Promoted
from assay.train.driver import train
from assay.train.preflight import check_run
from assay.train.run import Evaluation, Run

TESTED = AlpGmm(fit_every=8, buffer=8, components=2, tested=True)
EVERY = Evaluation(every=1, per_level=2, final_per_level=2, kl_to_base=False)


def curriculum_state(folder: Path) -> dict[str, list[object]]:
    place = folder / "checkpoints" / (folder / "LATEST").read_text(encoding="utf-8").strip() / "state.json"
    return json.loads(place.read_text(encoding="utf-8"))["session"]["practice"]["curriculum"]


def following(curriculum: AlpGmm | Promoted, steps: int = 3) -> Run:
    return replace(coin_toss(only_rl(steps=steps, groups=4, curriculum=curriculum)), evaluation=EVERY)


def test_a_curriculum_keeps_every_test_behind_a_step(tmp_path: Path) -> None:
    done = tmp_path / "run"
    trained(following(TESTED), done)
    lines = [json.loads(line)["metrics"] for line in (done / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    measured = [line["eval/greedy/all"] for line in lines if "eval/greedy/all" in line and "loss/total" in line]
    tests = curriculum_state(done)["tests"]
    assert len(tests) == len(measured) == 3
    assert [sum(values) / len(values) for _, values in tests] == pytest.approx(measured)  # type: ignore[misc]


@pytest.mark.parametrize("curriculum", [TESTED, Promoted(above=0.0)], ids=["tested", "promoted"])
def test_a_run_that_was_killed_goes_on_to_the_same_bytes(tmp_path: Path, curriculum: AlpGmm | Promoted) -> None:
    run = replace(following(curriculum), checkpoint_every=1)
    whole = trained(run, tmp_path / "whole")
    for point in (9, 14):
        place = tmp_path / f"killed-{point}"
        assert in_child(lambda place=place, point=point: (kill_at(point), train(run, place))) == -9
        assert resumed(place, run) == whole


def test_one_that_follows_evaluations_is_refused_where_there_are_none_during_a_stage() -> None:
    for curriculum, why in ((TESTED, "AlpGmm.tested=True, and Evaluation.every=0"), (Promoted(), "Promoted moves on")):
        check_run(following(curriculum))
        with pytest.raises(ConfigError, match=why):
            check_run(replace(following(curriculum), evaluation=replace(EVERY, every=0)))
