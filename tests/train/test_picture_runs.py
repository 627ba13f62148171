"""Runs on tasks that show pictures: refused, or read by their placeholders, with rollouts that name them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import SHAPE, reinforce, warm_up

from assay.core.config import from_dict, to_dict
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.media import media_of
from assay.core.rollout import Sampling
from assay.core.wire import group_from_wire
from assay.guide import Compose, Recent
from assay.runs import checkpoint, storage
from assay.train.callbacks import Callback
from assay.train.driver import resume, train
from assay.train.models import Scratch
from assay.train.run import Evaluation, Run
from assay_tasks import BarCharts
from assay_tasks.charts import draw_chart

KNOWN = {media_of(draw_chart([a], 1)).digest: a for a in range(1, 10)}


def seen(steps: int = 4, **changes: Any) -> Run:
    run = Run(
        name="charts",
        model=Scratch(shape=replace(SHAPE, max_positions=48), seed=0),
        tasks=BarCharts(levels=(1,)),
        stages=(
            warm_up(steps=60, levels=(1,)),
            reinforce(steps=steps, replay=Recent(capacity=8), composer=Compose(replay_share=0.25)),
        ),
        sampling=Sampling(max_new_tokens=3),
        evaluation=Evaluation(every=0, final_per_level=4),
        checkpoint_every=2,
        rollouts_every=1,
        pictures="placeholder",
    )
    return replace(run, **changes)


class Stops(Callback):
    def __init__(self, at: int) -> None:
        self.at = at

    def on_step(self, step: int, metrics: Mapping[str, float]) -> bool:
        return step == self.at


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("whole") / "run"
    return folder, train(seen(), folder, progress=False).digest


def test_rollouts_name_what_they_were_shown(whole: tuple[Path, str]) -> None:
    """In the journal, and in the replay of a checkpoint; the caption tells which picture it has to be."""
    folder, _ = whole
    lines = [json.loads(line) for line in (folder / "rollouts.jsonl").read_text().splitlines()]
    named = {picture for line in lines if line["stage"] == "rl" for picture in line.get("pictures", ())}
    assert len(named) > 3 and named <= KNOWN.keys()
    newest = checkpoint.latest(folder)
    assert newest is not None
    state = storage.read_json(newest / "state.json")
    groups = [group_from_wire(g) for _, g in state["session"]["practice"]["replay"]["groups"]]
    calls = [call for group in groups for r in group.rollouts for call in r.calls]
    shown = [call for call in calls if call.media]
    assert len(shown) > 5 and all(c.placeholders for c in shown) and not any(c.placeholders for c in calls if not c.media)
    assert {m.digest for c in shown for m in c.media} <= KNOWN.keys()


@pytest.mark.slow
def test_a_stopped_run_ends_with_the_same_digest(whole: tuple[Path, str], tmp_path: Path) -> None:
    stops = Stops(at=62)
    assert not train(seen(), tmp_path / "run", progress=False, callbacks=[stops]).finished
    assert resume(tmp_path / "run", progress=False).digest == whole[1]


def test_without_a_word_for_it_the_first_picture_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"reads text alone: .* Run\.pictures='placeholder'"):
        train(seen(stages=(warm_up(steps=60, levels=(1,)),), pictures="refuse"), tmp_path / "run", progress=False)


def test_the_setting_stays_out_of_files_without_it(whole: tuple[Path, str]) -> None:
    assert tomllib.loads((whole[0] / "run.toml").read_text())["pictures"] == "placeholder"
    assert "pictures" not in to_dict(seen(pictures="refuse"))
    assert from_dict(Run, to_dict(seen())) == seen()
    with pytest.raises(UnknownNameError, match=r"Run\.pictures"):
        seen(pictures="see")
