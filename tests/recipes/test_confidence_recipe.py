"""The recipe in which a stated confidence learns the true rate: its page, and the study itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evidence import calibration_page
from evidence.calibration_page import failures, row_of, run_of

ROOT = Path(__file__).parents[2]


def test_the_committed_page_is_what_its_numbers_say() -> None:
    rows = json.loads((ROOT / "docs/evidence/calibration.json").read_text())["rows"]
    assert failures(rows) == [] and len(rows) == 10
    assert (ROOT / "docs/evidence/calibration.md").read_text() == calibration_page.page(rows)
    worse = [{**r, "ece": 0.9} if r["arm"] == "RLCR" else r for r in rows]
    assert len(failures(worse)) == 5 and "Not met: " in calibration_page.page(worse)
    assert "mean accuracy" in failures([{**r, "accuracy": float(r["arm"] == "RLCR")} for r in rows])[0]


def test_the_arms_differ_in_the_reward_alone() -> None:
    ours, control = run_of("RLCR", 1).stages[0], run_of("control", 1).stages[0]
    assert ours.steps == control.steps and ours.learner == control.learner
    assert control.objective.scalarise.weights == (("correct", 0.5), ("stated", 0.5))


@pytest.mark.evidence
def test_ece_falls_by_half_at_equal_accuracy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    assert calibration_page.make_page(tmp_path) == []
    assert row_of(tmp_path / "cache/studies/calibration/RLCR-0", "RLCR", 0)["auroc"] > 0.6
