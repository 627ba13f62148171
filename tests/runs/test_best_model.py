"""The best model of a run: which is kept, and what a kill or a resume makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.core.errors import StorageError
from assay.runs import storage
from assay.runs.best_model import best_model, cut_best_models, offer_best_model, settle_best_models


def save(place: Path) -> None:
    (place / "weights").write_text("w")


def offered(folder: Path, step: int, greedy: float, sampled: float = 0.0) -> bool:
    found = offer_best_model(folder, step, {"eval/greedy/all": greedy, "eval/sampled/all": sampled}, save)
    return found is not None


def kept(folder: Path) -> list[int]:
    return sorted(int(path.name.removeprefix("step_")) for path in (folder / "best").glob("step_*"))


def test_better_ones_are_kept_and_the_earliest_of_those_alike(tmp_path: Path) -> None:
    tried = [(0, 0.5, 0.1), (5, 0.4, 0.9), (10, 0.5, 0.2), (15, 0.5, 0.2), (20, 0.75, 0.0)]
    assert [offered(tmp_path, *one) for one in tried] == [True, False, True, False, True]
    assert best_model(tmp_path / "best") == tmp_path / "best" / "step_0000020"
    assert offer_best_model(tmp_path, 25, {"reward/mean": 1.0}, save) is None


def test_a_checkpoint_lets_go_of_those_before_it(tmp_path: Path) -> None:
    for step, value in ((0, 0.1), (5, 0.2), (10, 0.3)):
        offered(tmp_path, step, value)
    settle_best_models(tmp_path, 5)
    assert kept(tmp_path) == [5, 10]
    settle_best_models(tmp_path, 10)
    assert kept(tmp_path) == [10]


def test_a_run_that_goes_on_from_an_earlier_checkpoint_has_the_best_of_that_time(tmp_path: Path) -> None:
    for step, value in ((0, 0.1), (5, 0.2), (10, 0.3)):
        offered(tmp_path, step, value)
    (tmp_path / "best" / ".step_0000015.tmp").mkdir()
    cut_best_models(tmp_path, 5)
    best = best_model(tmp_path / "best")
    assert best is not None and best.name == "step_0000005" and not list((tmp_path / "best").glob(".*"))
    assert offered(tmp_path, 10, 0.3)
    cut_best_models(tmp_path, -1)
    assert best_model(tmp_path / "best") is None


def test_one_that_cannot_be_written_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offered(tmp_path, 0, 0.1)

    def full(point: str) -> None:
        if point.startswith("filled:"):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage, "on_write", full)
    with pytest.raises(StorageError):
        offered(tmp_path, 5, 0.2)
    assert kept(tmp_path) == [0]
