"""A disk that fills up, and checkpoints that are damaged or not ours: typed errors, and nothing lost."""

from __future__ import annotations

import errno
import io
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import at_named, digest_of, in_child, reinforce, resumed, tiny, trained

from assay.core.errors import CheckpointError, ConfigError, InexactResumeError, StorageError
from assay.runs import checkpoint, storage
from assay.runs.journal import Journal
from assay.train.driver import resume, train

# ---- a full disk ------------------------------------------------------------------------------------------------------


class Disk:
    """Files opened for writing share a number of bytes; beyond it every write and fsync fails as on a full disk."""

    def __init__(self, room: int) -> None:
        self.left, self.open, self.fsync = room, io.open, os.fsync
        io.open = self.opened  # type: ignore[assignment]
        os.fsync = self.synced

    def opened(self, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        made = self.open(file, mode, *args, **kwargs)
        return made if "r" in mode else _Limited(made, self)

    def spend(self, data: Any) -> None:
        self.left -= len(data)
        self.check()

    def synced(self, number: int) -> None:
        self.check()
        self.fsync(number)

    def check(self) -> None:
        if self.left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class _Limited:
    def __init__(self, file: Any, disk: Disk) -> None:
        self._file, self._disk = file, disk

    def write(self, data: Any) -> int:
        self._disk.spend(data)
        return int(self._file.write(data))

    def __enter__(self) -> _Limited:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def fills_up(folder: Path, room: int) -> None:
    """A tiny run on a disk with so much room ends with a `StorageError` that says what to do."""

    def work() -> None:
        Disk(room)
        with pytest.raises(StorageError, match=r"No space left.*free some space"):
            train(tiny(), folder)

    assert in_child(work) == 0
    if (folder / "LATEST").exists():
        assert checkpoint.latest(folder) is not None
    assert not list(folder.glob("checkpoints/.*.tmp")), "half a checkpoint was left on a full disk"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    trained(tiny(), folder)
    return folder


@pytest.mark.parametrize("room", [500_000, *(pytest.param(n, marks=pytest.mark.prove) for n in (0, 400, 1_500_000))])
def test_a_full_disk_loses_nothing(whole: Path, tmp_path: Path, room: int) -> None:
    fills_up(tmp_path / "run", room)
    assert resumed(tmp_path / "run", tiny()) == digest_of(whole)


@pytest.mark.prove
def test_a_full_disk_at_any_moment_loses_nothing(whole: Path, tmp_path: Path) -> None:
    for number, room in enumerate([1, 3_000, 60_000, *range(100_000, 1_800_000, 100_000)]):
        fills_up(tmp_path / str(number), room)
        assert resumed(tmp_path / str(number), tiny()) == digest_of(whole), f"full after {room} bytes"


POINTS = ["write:run.toml", "filled:start", "append:metrics", "append:evals", "synced:step_0000004", "write:LATEST"]
POINTS += ["filled:model"]


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_an_error_at_a_write_point_is_a_storage_error(tmp_path: Path, point: str) -> None:
    def fail() -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    def work() -> None:
        at_named(point, fail)
        with pytest.raises(StorageError, match="quota exceeded"):
            train(tiny(warm=8, rl=2), tmp_path / "run")

    assert in_child(work) == 0


@pytest.mark.parametrize(("path", "why"), [("file/run", "Not a directory"), ("x" * 300, "File name too long"), ("a\0b", "null")])
def test_a_path_that_can_be_no_folder_is_no_place_for_a_run(tmp_path: Path, path: str, why: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=f"(?s)is no place for a run: .*{why}.*choose another"):
        train(tiny(), tmp_path / path)


def test_a_place_that_cannot_be_written_is_no_place_for_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class ReadOnly:
        f_flag = os.ST_RDONLY

    monkeypatch.setattr(os, "statvfs", lambda path: ReadOnly())
    with pytest.raises(ConfigError, match=r"run is no place for a run: Read-only file system"):
        train(tiny(), tmp_path / "run")


def test_the_hint_fits_the_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"Not a directory; name another place"):
        storage.write_text(tmp_path / "file" / "a", "")


@pytest.mark.parametrize("point", ["write:recipe.json", "write:versions.json", "write:run.toml", "filled:start"])
def test_a_disk_that_is_full_at_first_leaves_a_folder_to_begin_in_or_to_resume(tmp_path: Path, point: str) -> None:
    """Without run.toml the folder is free; with it the record of the user's files is there too."""
    folder = tmp_path / "run"

    def fail() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def work() -> None:
        at_named(point, fail)
        with pytest.raises(StorageError, match="No space left"):
            train(tiny(warm=1, rl=1), folder, prepare=lambda place: storage.write_json(place / "recipe.json", {}))

    assert in_child(work) == 0
    assert folder.exists() == (folder / "run.toml").exists() == (folder / "recipe.json").exists() == (point == "filled:start")


def test_a_journal_that_cannot_be_synced_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path)
    journal.event(0, "gate", "passed")

    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"events.jsonl: No space left"):
        journal.sync()


def test_nothing_is_left_of_a_folder_whose_filling_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), storage.fresh_folder(tmp_path / "made") as beside:
        (beside / "file").write_text("x")
        _ = 1 / 0
    assert list(tmp_path.iterdir()) == []


# ---- damaged and foreign checkpoints ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose last step was lost: it has two checkpoints."""
    folder = tmp_path_factory.mktemp("stopped") / "run"

    def work() -> None:
        at_named("renamed:step_0000016", lambda: os._exit(0))
        train(tiny(), folder)

    assert in_child(work) == 0
    return folder


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


DAMAGE: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "cut short": ("learner/weights.safetensors", cut_short, r"step_0000014 is damaged: learner/weights.safetensors differ"),
    "one bit": ("learner/optimizer.safetensors", flip, r"learner/optimizer.safetensors differ"),
    "missing": ("learner/anchors.safetensors", Path.unlink, r"learner/anchors.safetensors differ"),
    "state": ("state.json", flip, r"state.json differ"),
    "digests missing": ("digests.json", Path.unlink, r"digests.json is missing"),
    "digests torn": ("digests.json", cut_short, r"digests.json is damaged"),
    "digests of another kind": ("digests.json", lambda p: p.write_text("3"), r"step_0000014 is damaged"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_checkpoint_is_named_with_the_one_to_go_back_to(stopped: Path, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "run"
    shutil.copytree(stopped, folder)
    name, damage, message = DAMAGE[kind]
    damage(folder / "checkpoints" / "step_0000014" / name)
    with pytest.raises(CheckpointError, match=message + r"(?s:.*)write 'step_.*' into .*LATEST to go back"):
        resume(folder)


def test_going_back_to_the_older_checkpoint_works_as_the_message_says(stopped: Path, whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(stopped, folder)
    flip(folder / "checkpoints" / "step_0000014" / "state.json")
    shutil.rmtree(folder / "checkpoints" / "step_0000016")
    with pytest.raises(CheckpointError) as error:
        resume(folder)
    named = re.search(r"write '(step_\d+)' into", str(error.value))
    assert named
    (folder / "LATEST").write_text(named[1])
    assert resumed(folder) == digest_of(whole)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("step_0000099\n", r"LATEST names 'step_0000099', but .* does not exist"),
        ("", r"LATEST holds '', which names no checkpoint"),
        ("../../elsewhere", r"names no checkpoint"),
    ],
)
def test_a_pointer_to_nothing(stopped: Path, tmp_path: Path, text: str, message: str) -> None:
    shutil.copytree(stopped, tmp_path / "run")
    (tmp_path / "run" / "LATEST").write_text(text)
    with pytest.raises(CheckpointError, match=message):
        resume(tmp_path / "run")


def test_with_no_other_checkpoint_the_message_does_not_promise_one(stopped: Path, tmp_path: Path) -> None:
    shutil.copytree(stopped, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    with pytest.raises(CheckpointError, match="no other checkpoint is there: start the run again"):
        resume(tmp_path / "run")


def test_a_checkpoint_of_another_run_is_refused(stopped: Path, tmp_path: Path) -> None:
    shutil.copytree(stopped, tmp_path / "run")
    text = (tmp_path / "run" / "run.toml").read_text()
    (tmp_path / "run" / "run.toml").write_text(text.replace("seed = 0", "seed = 5", 1))
    with pytest.raises(CheckpointError, match=r"belongs to another run: its settings are not those of run.toml"):
        resume(tmp_path / "run")


def test_a_learner_of_another_shape_is_refused(stopped: Path, tmp_path: Path) -> None:
    """Where the settings say nothing of the shape: a starting model that was exchanged."""
    from assay.runtime.models.hf import save_model
    from assay.train import models

    folder = tmp_path / "run"
    shutil.copytree(stopped, folder)
    shutil.rmtree(folder / "start")
    source = tiny().model
    assert isinstance(source, models.Scratch)
    save_model(models.load_source(replace(source, shape=replace(source.shape, hidden_size=48)), lambda r, f: f), folder / "start")
    with pytest.raises(CheckpointError, match="another learner: shape is"):
        resume(folder)


def test_a_checkpoint_of_another_format_is_refused(tmp_path: Path) -> None:
    storage.write_json(tmp_path / "state.json", {"format": 99, "run": "x"})
    with pytest.raises(CheckpointError, match="has format 99, this version of assay reads 2"):
        checkpoint.load_state(tmp_path, "x")


def test_a_folder_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"is no run folder: it has no run.toml"):
        resume(tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match="is not an empty folder"):
        train(tiny(), tmp_path)


# ---- another machine ----------------------------------------------------------------------------------------------------


def test_other_versions_need_the_word_of_the_user(stopped: Path, whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(stopped, folder)
    found = storage.read_json(folder / "versions.json")
    storage.write_json(folder / "versions.json", found | {"torch": "1.0", "threads": "7"})
    with pytest.raises(InexactResumeError, match=r"threads: 7 then, 1 now; torch: 1.0 then, .*--allow-inexact"):
        resume(folder)
    assert resumed(folder, allow_inexact=True) == digest_of(whole)  # the machine did not really change
    events = (folder / "events.jsonl").read_text()
    assert '"kind": "inexact"' in events and "torch: 1.0 then" in events
    assert storage.read_json(folder / "versions.json") == found


def test_a_run_given_as_a_value_must_be_the_recorded_one(stopped: Path, whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(stopped, folder)
    with pytest.raises(CheckpointError, match="differs from the one in"):
        resume(folder, run=tiny(seed=3))
    with pytest.raises(CheckpointError, match="differs from the one in"):
        resume(folder, run=replace(tiny(), stages=(reinforce(),)))
    assert in_child(lambda: resume(folder, run=tiny())) == 0
    assert digest_of(folder) == digest_of(whole)


@pytest.mark.parametrize(
    ("checkpoints", "finished", "lost"),
    [((), False, False), ((4,), False, False), ((4, 8), False, True), ((4,), True, True), ((), True, True)],
)
def test_a_pointer_counts_as_lost_where_more_was_written_than_one_kill_leaves(
    tmp_path: Path, checkpoints: tuple[int, ...], finished: bool, lost: bool
) -> None:
    """A kill between a checkpoint's rename and the first LATEST leaves one, and no finished run."""
    for step in checkpoints:
        (tmp_path / "checkpoints" / f"step_{step:07d}").mkdir(parents=True)
    if finished:
        (tmp_path / "done.json").write_text("{}")
    if not lost:
        assert checkpoint.latest(tmp_path) is None
        return
    fix = f"write 'step_{max(checkpoints):07d}' into" if checkpoints else "start the run again"
    with pytest.raises(CheckpointError, match=rf"LATEST is missing, but the run has checkpoints; .*{fix}"):
        checkpoint.latest(tmp_path)


def test_a_lost_pointer_is_not_a_new_beginning(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "run")
    (tmp_path / "run" / "LATEST").unlink()
    before = (tmp_path / "run" / "metrics.jsonl").read_bytes()
    with pytest.raises(CheckpointError, match=r"LATEST is missing(?s:.*)write 'step_\d+' into"):
        resume(tmp_path / "run", steps=40)
    assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == before


def test_a_run_toml_that_is_no_toml_is_named(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "run")
    (tmp_path / "run" / "run.toml").write_text("name = ", encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"run\.toml is damaged: not TOML"):
        resume(tmp_path / "run")
