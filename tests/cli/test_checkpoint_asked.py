"""A run at a checkpoint is asked as a run is: ``RUN@STEP``, or the folder of the checkpoint."""

from pathlib import Path

import pytest

from assay.core.errors import CheckpointError, ConfigError
from assay.train import Policy
from assay.train.checkpoint_weights import checkpoint_place
from assay.train.models import model_folder

PLAIN = ("--plain", "--no-report")


@pytest.fixture
def finished(assay, mine) -> Path:
    said = assay("train", "mine.py:tiny", *PLAIN, "--steps", "3", "--checkpoint-every", "1", "--folder", "runs/early1")
    assert said.code == 0, said.err
    return mine.parent / "runs/early1"


def test_a_run_is_asked_at_a_checkpoint(assay, finished: Path, tmp_path: Path) -> None:
    few = ("--per-level", "2", "-n", "1", "--json")
    at = assay("eval", "runs/early1@2", *few)
    assert at.code == 0, at.err
    by_folder = assay("eval", "runs/early1/checkpoints/step_0000002", *few)
    assert by_folder.json["all"] == at.json["all"]
    exported = assay("export", "runs/early1@2", "--to", "out")
    assert exported.code == 0 and "step 2" in exported.out
    same = assay("eval", "out", "--against", "runs/early1", *few)
    assert same.code == 0, same.err  # at the tasks of the run
    assert same.json["all"] == at.json["all"] and same.json["family"] == at.json["family"]
    assert assay("eval", "runs/early1@3", *few).json["all"] == assay("eval", "runs/early1", *few).json["all"]
    wrong = assay("export", "runs/early1@2", "--step", "3", "--to", "out3")
    assert wrong.code == 2 and "names step 2, and step=3 (--step) another" in wrong.err


def test_a_checkpoint_that_is_not_there_is_named(assay, finished: Path) -> None:
    said = assay("eval", "runs/early1@1")
    assert said.code == 2 and "has no checkpoint of step 1; it has 2, 3" in said.err
    assert "did you mean 'early1'?" in assay("eval", "runs/early2@1").err
    assert checkpoint_place(finished) is None
    assert checkpoint_place(finished.with_name("early1@2")) == (finished, 2)
    with pytest.raises(CheckpointError, match="no checkpoint of step 1"):
        Policy(finished.with_name("early1@1")).model()
    with pytest.raises(
        ConfigError, match=r"is a checkpoint, not a model folder; make one of it: assay export .*early1@2 --to FOLDER"
    ):
        model_folder(finished / "checkpoints/step_0000002")
