"""The tutorial's start from a few worked rows: without it no group has a signal, with it the model learns."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from page_blocks import ROOT, blocks

from assay.measure import read_metrics
from assay.train import train

PAGE = ROOT / "docs" / "tutorials" / "own-rows.md"


@pytest.fixture(scope="module")
def recipes() -> dict[str, Any]:
    """The code of the page, up to the recipes of its section."""
    code = [b.text for b in blocks(PAGE) if b.kind == "python"]
    (last,) = [i for i, text in enumerate(code) if "def with_a_start" in text]
    found: dict[str, Any] = {"__name__": "own_rows"}
    exec("\n\n".join(code[: last + 1]), found)
    return found


def test_without_a_start_no_group_has_a_signal(recipes: dict[str, Any], tmp_path: Path) -> None:
    run = recipes["from_nothing"]()
    (stage,) = run.stages
    done = train(replace(run, stages=(replace(stage, steps=2),)), tmp_path / "run", progress=False)
    signals = [line.metrics["signal/fraction"] for line in read_metrics(done.folder) if "signal/fraction" in line.metrics]
    assert signals == [0.0, 0.0] and done.accuracy == 0.0


@pytest.mark.slow
def test_a_few_worked_rows_are_a_start_that_rl_improves(recipes: dict[str, Any], tmp_path: Path) -> None:
    done = train(recipes["with_a_start"](), tmp_path / "run", progress=False)
    greedy = {x.step: x.metrics["eval/greedy/all"] for x in read_metrics(done.folder) if "eval/greedy/all" in x.metrics}
    assert greedy[60] > 0.05 and greedy[60] + 0.1 < greedy[90], greedy
    said = re.findall(r"`with_a_start`, seeds 0 and 1 \| ([\d.]+), [\d.]+ \| ([\d.]+)", PAGE.read_text(encoding="utf-8"))
    assert [[greedy[60], greedy[90]]] == [pytest.approx([float(x) for x in pair], abs=0.2) for pair in said]  # by the processor
