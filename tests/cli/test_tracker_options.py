"""Trackers on the command line and in files of settings, and ``assay runs sync``."""

import json
import sys
from pathlib import Path

import pytest

from assay.cli.multi_run import Study
from assay.cli.recipe import settle_all
from assay.cli.tracker_options import choose_trackers, split_words
from assay.cli.train_options import TrainOptions
from assay.core.errors import ConfigError, UnknownNameError
from assay.measure import MlflowTracker, TensorBoardTracker, TrackioTracker, WandbTracker, recorded_trackers

OWN = """
from dataclasses import dataclass
from assay.measure import TrackerSettings


@dataclass(frozen=True, kw_only=True)
class Mine(TrackerSettings):
    place: str = "here"

    def open(self, run):
        raise RuntimeError("not today")


class Other:
    pass
"""


def chosen(words: str, *before, flags=()):
    return choose_trackers(split_words(words.split())[0], flags, before)


def test_trackers_are_chosen_by_name_with_settings_of_one_or_of_all():
    assert chosen("") == ()
    assert chosen("--tracker wandb --tracker.project sums") == (WandbTracker(project="sums"),)
    found = chosen("--tracker wandb mlflow --tracker.name a --tracker.wandb.tags x y --tracker.rollouts=4 --tracker.uri u")
    assert found == (WandbTracker(name="a", tags=("x", "y"), rollouts=4), MlflowTracker(name="a", uri="u", rollouts=4))
    assert chosen("--tracker wandb --tracker mlflow") == (MlflowTracker(),)
    assert chosen("--tracker.mode online", flags=("wandb",)) == (WandbTracker(mode="online"),)


def test_a_resume_has_the_trackers_of_before():
    had = WandbTracker(project="sums")
    assert chosen("", had) == (had,)
    assert chosen("--tracker.mode online", had) == (WandbTracker(project="sums", mode="online"),)
    assert chosen("--tracker tensorboard wandb", had) == (TensorBoardTracker(), had)
    assert chosen("--tracker none", had) == ()


@pytest.mark.parametrize(
    ("words", "said"),
    {
        "--tracker": "--tracker needs a value: tensorboard, wandb",
        "--tracker.project x": "no tracker chosen (none) has 'project'",
        "--tracker wandb --tracker.uri x": "no tracker chosen (wandb) has 'uri'; they have entity, group",
        "--tracker wandb --tracker.mlflow.uri x": "mlflow is not among the trackers chosen (wandb); add --tracker mlflow",
        "--tracker wandb --tracker.wandb.projct x": "did you mean --tracker.wandb.project?",
        "--tracker wandb --tracker.mode onlin": "unknown WandbTracker.mode 'onlin': did you mean 'online'",
        "--tracker wandb --tracker.rollouts many": "many",
        "--tracker assay.runs:Journal": "neither a dataclass nor an enum",
        "--tracker assay.core.rollout:Sampling": "assay.core.rollout:Sampling is no tracker",
    }.items(),
)
def test_what_is_wrong_with_trackers_is_said(words, said):
    with pytest.raises(ConfigError) as error:
        chosen(words)
    assert said in str(error.value)


def test_an_unknown_tracker_gets_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'wandb'"):
        chosen("--tracker wandbb")


def test_files_of_settings_choose_trackers_and_the_command_line_changes_them(assay, mine):
    Path("a.toml").write_text(
        'recipe = "mine.py:tiny"\n[tracker.wandb]\nproject = "p"\ntags = ["a", "b"]\nreport = false\n[tracker.mlflow]\n'
    )
    asked = settle_all(TrainOptions, ["--config", "a.toml", "--tracker.project", "q"], "assay train")
    assert choose_trackers(asked.trackers) == (WandbTracker(project="q", tags=("a", "b"), report=False), MlflowTracker())
    again = split_words(asked.words)[0]  # the words of a run of several seeds
    assert choose_trackers(again) == choose_trackers(asked.trackers)
    Path("b.toml").write_text('tracker = ["tensorboard"]\n')
    both = settle_all(TrainOptions, ["mine.py:tiny", "--config", "b.toml"], "assay train")
    assert choose_trackers(both.trackers) == (TensorBoardTracker(),)
    assert assay("explain", "--config", "a.toml").code == 0  # what only trains has no effect on what only looks
    Path("c.toml").write_text("tracker = 3\n")
    said = assay("train", "mine.py:tiny", "--config", "c.toml")
    assert said.code == 2 and "c.toml: tracker is" in said.err


def test_runs_side_by_side_are_the_same_whatever_tracks_them():
    plain = Study(recipe="r", args=("--seeds", "2", "--lr", "1"))
    tracked = Study(recipe="r", args=("--seeds", "2", "--tracker", "wandb", "--tracker.project=x", "--lr", "1", "--wandb"))
    assert plain.settings == tracked.settings


def journal(folder):
    folder.mkdir()
    lines = [json.dumps({"step": step, "metrics": {"x": step / 2}}) for step in range(3)]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def test_a_run_is_sent_afterwards(assay, tmp_path):
    pytest.importorskip("tensorboard")
    folder = journal(tmp_path / "run")
    said = assay("runs", "sync", folder)
    assert said.code == 2 and "had no tracker; say which with --tracker: tensorboard, wandb" in said.err
    said = assay("runs", "sync", folder, "--tracker", "tensorboard", "--tracker.rollouts", "3")
    assert (said.code, said.out) == (0, "tensorboard: steps up to 2 of 2\n")
    assert recorded_trackers(folder) == (TensorBoardTracker(rollouts=3),)
    assert assay("runs", "sync", folder, "--json").json["trackers"] == [
        {"tracker": "tensorboard", "sent": 2, "url": "", "error": ""}
    ]


def test_one_that_fails_does_not_keep_the_others_from_theirs(assay, tmp_path):
    pytest.importorskip("tensorboard")
    Path("own.py").write_text(OWN)
    folder = journal(tmp_path / "run")
    said = assay("runs", "sync", folder, "--tracker", "own.py:Mine", "tensorboard", "--tracker.place", "there")
    assert said.code == 1
    assert "mine: RuntimeError: not today; nothing is lost, try again later" in said.err
    assert said.out == "tensorboard: steps up to 2 of 2\n"
    sys.modules.pop("own", None)


@pytest.mark.slow
def test_a_run_is_trained_with_a_tracker_and_resumed_with_it(assay, mine):
    pytest.importorskip("tensorboard")
    said = assay(
        "train", "mine.py:tiny", "--plain", "--no-report", "--folder", "r", "--tracker", "tensorboard", "--tracker.wait=200"
    )
    assert said.code == 0 and said.err.count("tracker") == 0
    state = json.loads(Path("r/trackers/tensorboard.json").read_text())
    last = state["sent"]
    assert last >= 1 and state["error"] == "" and state["tracker"]["wait"] == 200.0
    assert assay("resume", "r", "--plain", "--no-report", "--steps", last + 1).code == 0
    assert json.loads(Path("r/trackers/tensorboard.json").read_text())["sent"] == last + 1


def test_each_tracker_says_where_a_person_finds_the_run():
    folder = Path("runs/a")
    assert WandbTracker().where(folder, "") == "offline; send it by: wandb sync runs/a/wandb/offline-run-*"
    assert WandbTracker(mode="online").where(folder, "https://w/x") == "https://w/x"
    assert WandbTracker(mode="disabled").where(folder, "") == ""
    assert TensorBoardTracker().where(folder, "") == "tensorboard --logdir runs/a/tensorboard"
    assert TrackioTracker(project="sums").where(folder, "") == "trackio show --project sums"
    assert MlflowTracker().where(folder, "http://m") == "http://m"


def test_a_tracked_run_ends_with_where_it_is(assay, monkeypatch, capsys, tmp_path):
    from assay.cli import train
    from assay.measure.trackers.state import TrackerState

    TrackerState(tracker={}, url="").write(tmp_path, "wandb")
    TrackerState(tracker={}, url="", error="no network").write(tmp_path, "tensorboard")
    monkeypatch.setattr(train, "_work_off", lambda job, folder, own, begun: begun.append(folder) or 0)
    own = train.TrainOptions(plain=True)
    assert train._work(lambda watch: None, tmp_path, own, lambda: None, (WandbTracker(), TensorBoardTracker())) == 0
    assert capsys.readouterr().out == f"wandb: offline; send it by: wandb sync {tmp_path}/wandb/offline-run-*\n"
