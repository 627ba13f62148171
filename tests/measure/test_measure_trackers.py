"""Trackers: what is written can be read back, and a resumed run shows no step twice."""

import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.core.errors import ConfigError, MissingExtraError
from assay.measure import trackers
from assay.measure.trackers import TensorBoardTracker, WandbTracker

needs_wandb = pytest.mark.skipif(find_spec("wandb") is None, reason="wandb is not installed")


def test_tensorboard_writes_what_its_own_reader_reads(tmp_path: Path) -> None:
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    tracker = TensorBoardTracker(tmp_path, start_step=2)
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


def test_tensorboard_shows_each_step_of_a_resumed_run_once(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    first = TensorBoardTracker(tmp_path)
    for step in range(1, 6):
        first.log(step, {"x": step / 2})
    first.close()
    (file,) = tmp_path.iterdir()
    file.rename(file.with_name("events.out.tfevents.0000000001.host"))  # files are read by name, which begins with the second
    again = TensorBoardTracker(tmp_path, start_step=3)
    for step in (4, 5):
        again.log(step, {"x": 10.0 * step})
    again.close()
    shown = accumulator.EventAccumulator(str(tmp_path))
    shown.Reload()
    values = [(e.step, e.value) for e in shown.Scalars("x")]
    assert values == [(1, 0.5), (2, 1.0), (3, 1.5), (4, 40.0), (5, 50.0)]


@needs_wandb
def test_wandb_stays_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tracker = WandbTracker(tmp_path / "wandb", name="trial", config={"seed": 3})
    tracker.log(1, {"reward/mean": 0.5})
    tracker.close()
    files = list((tmp_path / "wandb").rglob("*.wandb"))
    assert len(files) == 1
    assert files[0].parent.name.startswith("offline-run")


def told(folder: Path) -> tuple[set[str], list[tuple[int, dict[str, float]]]]:
    """Run ids, and the numbers per step, of all W&B files in a folder: what W&B's own reader finds there."""
    import wandb

    reader = Path(wandb.__file__).parent / "bin" / "wandb-core"
    found: list[dict[str, Any]] = []
    for file in sorted(folder.rglob("*.wandb"), key=lambda p: p.stat().st_mtime):
        words = [str(reader), "leet", "inspect", "-json", "-no-observability", "-run-file", str(file)]
        found += map(json.loads, subprocess.run(words, capture_output=True, text=True).stdout.splitlines())
    rows = [x["history"] for x in found if x["type"] == "history"]
    values = [(r["step"]["num"], {n: v for n, v in r["item"].items() if not n.startswith("_")}) for r in rows]
    return {x["run"]["run_id"] for x in found if x["type"] == "run"}, values


def wandb_run(folder: Path, steps: range, width: int = 1) -> None:
    """One process's life with W&B, to the end of W&B's service: only then is everything in its file."""
    import wandb

    tracker = WandbTracker(folder)
    for step in steps:
        tracker.log(step, {f"curriculum/share/arm/level_{n}": step / 2 for n in range(width)})
    tracker.close()
    wandb.teardown()


@needs_wandb
def test_wandb_is_told_each_step_of_a_resumed_run_once(tmp_path: Path) -> None:
    wandb_run(tmp_path, range(1, 6))
    wandb_run(tmp_path, range(4, 7))  # from the checkpoint of step 3
    ids, values = told(tmp_path)
    assert values == [(s, {"curriculum/share/arm/level_0": s / 2}) for s in range(1, 7)]
    assert len(ids) == 1


@needs_wandb
def test_wandb_is_told_what_else_belongs_to_the_last_step(tmp_path: Path) -> None:
    wandb_run(tmp_path, range(1, 3))
    wandb_run(tmp_path, range(2, 3), width=2)  # as an evaluation that the kill had cut off
    assert told(tmp_path)[1][2:] == [(2, {"curriculum/share/arm/level_1": 1.0})]


@needs_wandb
def test_wandb_files_longer_than_a_block_and_torn_ones_are_read(tmp_path: Path) -> None:
    wandb_run(tmp_path, range(1, 41), width=60)
    (file,) = tmp_path.rglob("*.wandb")
    whole = file.read_bytes()
    assert len(whole) > 3 * 32768
    file.write_bytes(whole[: len(whole) * 2 // 3])
    left = [s for s, _ in told(tmp_path)[1]]
    assert 20 < left[-1] < 35
    wandb_run(tmp_path, range(1, 41), width=60)
    assert sorted(s for s, _ in told(tmp_path)[1]) == list(range(1, 41))


def test_messages_are_read_across_the_end_of_a_block() -> None:
    """LevelDB's log: blocks of 32768 bytes, a message in parts (1 whole, 2 first, 3 middle, 4 last), no head across a border."""

    def part(kind: int, content: bytes) -> bytes:
        return bytes(4) + struct.pack("<HB", len(content), kind) + content

    header, head = b":W&B\x01\x02\x00", 7
    first, long = b"a" * (32768 - len(header) - head - 3), b"b" * (2 * 32768)
    room = 32768 - head
    data = header + part(1, first) + bytes(3)  # three bytes are left of the block
    data += part(2, long[:room]) + part(3, long[room : 2 * room]) + part(4, long[2 * room :]) + part(1, b"c")
    assert list(trackers._messages(data)) == [first, long, b"c"]
    assert list(trackers._messages(data[:-1])) == [first, long]
    assert list(trackers._messages(data + bytes(20))) == [first, long, b"c"]


@needs_wandb
def test_a_damaged_wandb_file_does_not_stop_a_run(tmp_path: Path) -> None:
    wandb_run(tmp_path, range(1, 6), width=9)
    (file,) = tmp_path.rglob("*.wandb")
    whole = file.read_bytes()
    at = whole.rindex(b"curriculum/share/arm/level_8")
    file.write_bytes(whole[: at - 60] + b"\xff" * 60 + whole[at:])
    wandb_run(tmp_path, range(5, 8), width=9)
    assert {s for s, _ in told(tmp_path)[1]} >= {5, 6, 7}


@needs_wandb
def test_wandb_loses_no_step_that_is_done_again_after_a_kill(tmp_path: Path) -> None:
    work = (
        "import os, sys; from pathlib import Path; from assay.measure import WandbTracker\n"
        "tracker = WandbTracker(Path(sys.argv[1]))\n"
        "for step in range(1, 6): tracker.log(step, {'curriculum/share/arm/level_0': step / 2})\n"
        "os.kill(os.getpid(), 9)"  # W&B has written none of it, or some
    )
    alone = {k: v for k, v in os.environ.items() if k != "WANDB_SERVICE"}  # not the service of this process
    done = subprocess.run([sys.executable, "-c", work, str(tmp_path)], env=alone, capture_output=True)
    assert done.returncode == -signal.SIGKILL
    assert len(list(tmp_path.rglob("*.wandb"))) == 1
    wandb_run(tmp_path, range(1, 7))
    assert told(tmp_path)[1] == [(s, {"curriculum/share/arm/level_0": s / 2}) for s in range(1, 7)]


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
    assert arguments["settings"] == {"silent": True, "console": "off"}  # this one knows no interval of flushing
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
