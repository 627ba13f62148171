"""Trackers: what is written can be read back, also after a kill."""

import json
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from assay.core.errors import ConfigError, DataError, MissingExtraError
from assay.core.protocols import Tracker
from assay.measure.trackers import JsonlTracker, MultiTracker, TensorBoardTracker, WandbTracker


def steps(path: Path) -> list[int]:
    return [json.loads(x)["step"] for x in path.read_text(encoding="utf-8").splitlines()]


def test_jsonl_lines_are_there_at_once_and_append(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "metrics.jsonl"
    tracker = JsonlTracker(path, stage="warm-up", fsync=True)
    tracker.log(1, {"b": np.float32(0.5), "a": 1.0})
    assert path.read_text(encoding="utf-8") == '{"metrics": {"a": 1.0, "b": 0.5}, "stage": "warm-up", "step": 1}\n'
    tracker.stage = "rl"
    tracker.log(2, {})
    tracker.close()
    again = JsonlTracker(path)
    again.log(3, {})
    again.close()
    assert steps(path) == [1, 2, 3]


def test_truncation_makes_a_resumed_file_equal_an_uninterrupted_one(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"
    for path, last in ((whole, 5), (killed, 4)):
        tracker = JsonlTracker(path)
        for step in range(1, last + 1):
            tracker.log(step, {"x": step / 2})
        tracker.close()
    with killed.open("a", encoding="utf-8") as file:
        file.write('{"metrics": {"x": 2.')  # torn by the kill
    resumed = JsonlTracker(killed)
    resumed.truncate_after(3)
    for step in (4, 5):
        resumed.log(step, {"x": step / 2})
    resumed.close()
    assert killed.read_bytes() == whole.read_bytes()
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_a_last_line_without_a_step_is_dropped_and_others_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    tracker = JsonlTracker(path)
    tracker.log(1, {})
    with path.open("a", encoding="utf-8") as file:
        file.write("{}\n")
    tracker.truncate_after(9)
    assert steps(path) == [1]
    path.write_text('{"step": 1}\nnoise\n{"step": 2}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"m\.jsonl, line 2"):
        tracker.truncate_after(9)


def test_tensorboard_writes_what_its_own_reader_reads(tmp_path: Path) -> None:
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    tracker = TensorBoardTracker(tmp_path, start_step=3)
    tracker.log(3, {"reward/mean": 0.5, "lr": 1e-3})
    tracker.log(4, {"reward/mean": 0.75})
    tracker.close()
    (file,) = tmp_path.iterdir()
    events = list(loader.EventFileLoader(str(file)).Load())
    values = [
        (e.step, v.tag, round(float(v.tensor.float_val[0] if v.tensor.float_val else v.simple_value), 6))
        for e in events
        for v in e.summary.value
    ]
    assert values == [(3, "lr", 0.001), (3, "reward/mean", 0.5), (4, "reward/mean", 0.75)]
    assert [e.step for e in events if e.HasField("session_log")] == [3]


@pytest.mark.skipif(find_spec("wandb") is None, reason="wandb is not installed")
def test_wandb_stays_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tracker = WandbTracker(tmp_path / "wandb", name="trial", config={"seed": 3})
    tracker.log(1, {"reward/mean": 0.5})
    tracker.close()
    files = list((tmp_path / "wandb").rglob("*.wandb"))
    assert len(files) == 1
    assert files[0].parent.name.startswith("offline-run")


class FakeWandb:
    """The three calls of wandb that are used."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def Settings(self, **settings: object) -> dict[str, object]:
        return settings

    def init(self, **arguments: object) -> "FakeWandb":
        self.told.append(arguments)
        return self

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        self.told.append((step, dict(metrics)))

    def finish(self) -> None:
        self.told.append("finish")


def test_wandb_is_told_steps_and_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", fake)  # pyright: ignore
    tracker = WandbTracker(tmp_path / "w", config={"levels": (1, 2)})
    tracker.log(4, {"x": np.float64(0.5)})
    tracker.close()
    arguments, *rest = fake.told
    assert isinstance(arguments, dict)
    assert (arguments["mode"], arguments["name"], arguments["config"]) == ("offline", None, {"levels": [1, 2]})
    assert rest == [(4, {"x": 0.5}), "finish"]
    with pytest.raises(ConfigError, match="'cloud'"):
        WandbTracker(tmp_path, mode="cloud")


@pytest.mark.parametrize(
    ("kind", "module", "extra"), [(TensorBoardTracker, "tensorboard", "tensorboard"), (WandbTracker, "wandb", "wandb")]
)
def test_absent_extras_are_named(
    kind: type[TensorBoardTracker | WandbTracker], module: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [n for n in sys.modules if n.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"assay-rl\[{extra}\]"):
        kind(tmp_path)


class Broken:
    def __init__(self) -> None:
        self.closed = False

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        raise OSError("disk full")

    def close(self) -> None:
        self.closed = True


def test_one_broken_tracker_does_not_silence_the_others(tmp_path: Path) -> None:
    broken, good = Broken(), JsonlTracker(tmp_path / "m.jsonl")
    trackers: list[Tracker] = [broken, good]
    both = MultiTracker(trackers)
    with pytest.raises(OSError, match="disk full"):
        both.log(1, {"x": 1.0})
    both.close()
    assert steps(tmp_path / "m.jsonl") == [1]
    assert broken.closed
