"""Every part of ``assay guides``, by the very options that `assay guides show` prints, trains."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from live import coin_toss
from test_methods_by_name import FEW, SMALL, weights

import assay.guide
from assay.cli import main
from assay.cli.recipe import settle_all
from assay.cli.train import TrainOptions
from assay.core import FrozenMap, Task
from assay.guide import AlpGmm
from assay.guide.catalog import guides
from assay.guide.guide_record import PLACES
from assay.guide.row_book import RowRule
from assay.testing import as_outcomes, graded_group
from assay.train import models
from assay.train.opening import open_stage
from assay.train.preflight import check_fits
from assay.train.reinforce import Reinforce
from assay.train.run import Run
from assay.verify import ScoringPool

TINY = {
    "HardFocus": "@.pool 2 @.warm 1 @.sizes 3 2 @.batches 1 1",
    "Retrospective": "@.pool 2 @.batches 1",
    "Rounds": "@.pool 2 @.batches 1",
    "PromptPair": "@.pool 2 @.probes 1",
    "HistoryRows": "@.pool 2 @.epochs 2 @.keep 2",
    "Bell": "@.pool 4",
    "PromptValue": "@.pool 4",
    "AlpGmm": "@.fit_every 8 @.buffer 8 @.components 2",
    "Again": "@.fit_every 8 @.buffer 8 @.components 2 @.pretest 1 @.classroom CLASSROOM",
    "Promoted": "--evaluation.every 2",
    "DataReset": "@.data CLASSROOM/pairs.jsonl",
    "TracePrefix": "@.traces CLASSROOM/traces.jsonl",
}
"""Settings by which two or three steps reach what comes behind the beginning."""


@pytest.fixture(scope="module")
def pool() -> Iterator[ScoringPool]:
    with_pool = ScoringPool(coin_toss(settled("Uniform")).tasks.verifier())
    yield with_pool
    with_pool.close()


@pytest.fixture(scope="module")
def classroom(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run folder with the checkpoint of a run with `AlpGmm` on the same cells."""
    book = AlpGmm(fit_every=8, buffer=8, components=2).build({"sort": (3, 4)}, seed=0)
    for level, value in zip((3, 4) * 4, (0.0, 1.0, 1.0, 0.0) * 2, strict=True):
        task = Task(id="t", domain="d", arm="sort", level=level, split="train", index=0, public=FrozenMap({"prompt": "?"}))
        book.observe(as_outcomes([graded_group(task, [value])]))
    folder = tmp_path_factory.mktemp("earlier")
    (folder / "checkpoints/step_0000001").mkdir(parents=True)
    state = {"session": {"practice": {"curriculum": book.state_dict()}}}
    (folder / "checkpoints/step_0000001/state.json").write_text(json.dumps(state), encoding="utf-8")
    row = {"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "1"}]}
    (folder / "traces.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    (folder / "pairs.jsonl").write_text(json.dumps({"prompt": "?", "chosen": "1", "rejected": "2"}) + "\n", encoding="utf-8")
    (folder / "LATEST").write_text("step_0000001\n", encoding="utf-8")
    return str(folder)


def settled(name: str, classroom: str = "") -> Run:
    """The run of the command that a part's page prints, made small."""
    guide = guides()[name]
    program, *words = shlex.split(guide.command)
    assert program == "assay" and words.pop(0) == "train"
    tiny = TINY.get(name, "").replace("@", f"--stages.0.{PLACES[guide.kind]}").replace("CLASSROOM", classroom).split()
    return settle_all(TrainOptions, [*words, *SMALL, *FEW, *tiny], "assay train").run


@pytest.mark.parametrize("name", list(guides()))
def test_the_printed_command_trains(name: str, pool: ScoringPool, classroom: str) -> None:
    run = coin_toss(settled(name, classroom))
    (stage,) = run.stages
    assert isinstance(stage, Reinforce) and isinstance(run.model, models.Scratch)
    part: Any = stage
    for word in PLACES[guides()[name].kind].split("."):
        part = part[word] if word == "temperature" else getattr(part, word)
    assert type(part) is guides()[name].part
    model = models.load_source(run.model, lambda run, folder: folder)
    check_fits(run, model)
    s = open_stage(run, stage, model, pool, 0)
    before = weights(s)
    for _ in range(3):
        result = asyncio.run(s.step())
        s.parts.step, s.parts.stage_step = s.parts.step + 1, s.parts.stage_step + 1
        s.observe_metrics(result.metrics)
        assert all(np.isfinite(value) for value in result.metrics.values())
    assert any((a != b).any() for a, b in zip(before, weights(s), strict=True)), "nothing was learned"


def test_no_part_of_the_package_is_missing_among_the_guides() -> None:
    """Whatever can stand in one of the places of a stage is listed, and nothing else is."""
    spoken = {"build": "curriculum", "select": "filter", "keep_task": "screen", "compose": "composer", "at": "schedule"}
    offered = {name: getattr(assay.guide, name) for name in assay.guide.__all__}
    bases = {"CellRule", "RowRule", "Stateless", "CellBook", "RowBook", "RecentBuffer", "Guide", "StepSchedule"}
    parts = {
        name
        for name, made in offered.items()
        if isinstance(made, type) and name not in bases and (any(hasattr(made, method) for method in spoken) or name == "Refill")
    }
    assert parts == set(guides())
    for name, guide in guides().items():
        assert guide.status == "own" or guide.source, f"{name}: where was it published?"
        assert (guide.status == "unsure") == ("UNSURE" in guide.doc), f"{name}: status and docstring differ on what is unsure"
        assert issubclass(guide.part, RowRule) <= (guide.kind == "row curriculum")
        assert guide.sentence.endswith(".") and guide.observes


def test_a_guidance_whose_file_is_not_there_is_refused_before_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--stages.0.guidance.kind", "TracePrefix", "--stages.0.guidance.traces", "nowhere.jsonl"]
    assert main(["explain", "quickstart", *words]) == 2
    assert "TracePrefix reads nowhere.jsonl, and there is no such file here" in capsys.readouterr().err
