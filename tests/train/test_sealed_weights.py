"""A flipped byte in a run's weights is found by whatever reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_runs import only_rl

from assay.cli import main
from assay.core.errors import CheckpointError
from assay.core.util.folder_digest import SEAL, check_seal, seal_folder
from assay.train import Policy, resume, train


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sealed") / "run"
    train(only_rl(steps=2), folder)
    return folder


def flipped(path: Path) -> bytes:
    """Flips one bit in the middle of a file; returns what it was."""
    before = path.read_bytes()
    middle = len(before) // 2
    path.write_bytes(before[:middle] + bytes([before[middle] ^ 1]) + before[middle + 1 :])
    return before


@pytest.mark.parametrize("folder", ["model", "start"])
def test_weights_that_changed_are_refused_by_eval_export_and_resume(
    finished: Path, folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = finished / folder / "model.safetensors"
    before = flipped(weights)
    try:
        read = finished if folder == "model" else finished / "start"
        assert main(["eval", str(read), "--tasks", "sort", "--per-level", "1", "-n", "1"]) == 2
        assert "model.safetensors is not what was written" in capsys.readouterr().err
        if folder == "model":
            assert main(["export", str(finished), "--to", str(tmp_path / "out")]) == 2
            assert not (tmp_path / "out").exists()
        else:
            with pytest.raises(CheckpointError, match=r"start/model\.safetensors is not what was written"):
                resume(finished, steps=3)
    finally:
        weights.write_bytes(before)
    assert Policy(finished).sample("S1>", n=1)


def test_missing_files_and_a_damaged_list_are_told(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    seal_folder(tmp_path)
    seal_folder(tmp_path)  # the list itself is no part of it
    check_seal(tmp_path)
    assert list(json.loads((tmp_path / SEAL).read_text())) == ["a"]
    (tmp_path / "b").write_text("a file beside is nobody's")
    check_seal(tmp_path)
    (tmp_path / "a").unlink()
    with pytest.raises(CheckpointError, match="a is missing"):
        check_seal(tmp_path)
    (tmp_path / SEAL).write_text("{")
    with pytest.raises(CheckpointError, match="is damaged"):
        check_seal(tmp_path)
    (tmp_path / SEAL).unlink()
    check_seal(tmp_path)
