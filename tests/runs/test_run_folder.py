"""A run folder of any kind of training: claimed, read while it grows, checked before a resume, released."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from assay.core import ConfigError, DataError, InexactResumeError, from_dict, loads_toml
from assay.runs import (
    Journal,
    RunFiles,
    check_unused,
    check_versions,
    read_record,
    release_folder,
    remove_leftovers,
    write_settings,
    write_versions,
)

FILES = RunFiles(claim=("run.toml", "versions.json"), before=("events.jsonl",), folders=("checkpoints", "replay"))


@dataclass(frozen=True, slots=True, kw_only=True)
class CartPole:
    """Settings of a run that knows no language model."""

    seed: int = 0
    gamma: float = 0.99


def claimed(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    write_versions(folder, {"numpy": "2", "threads": "1"})
    write_settings(folder, CartPole(seed=7))
    return folder


def test_a_folder_is_claimed_read_and_refused_to_another_run(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    check_unused(folder, FILES)
    claimed(folder)
    journal = Journal(folder)
    for step in (1, 2):
        journal.append("metrics", {"step": step, "stage": "td", "metrics": {"return": 10.0 * step}})
    journal.event(2, "resumed", "from step 1")
    journal.close()
    record = read_record(folder)
    assert [line.metrics["return"] for line in record.metrics] == [10.0, 20.0] and record.metrics[0].stage == "td"
    assert (record.name, record.seed, record.last_step, record.finished, record.problems) == ("run", 7, 2, False, ())
    assert record.events[0].message == "from step 1" and record.planned_steps is None and record.versions["numpy"] == "2"
    assert from_dict(CartPole, loads_toml((folder / "run.toml").read_text())) == CartPole(seed=7)
    with pytest.raises(ConfigError, match="holds a run already: go on with it by 'assay resume"):
        check_unused(folder, FILES)


def test_leftovers_of_a_killed_process_are_no_run_and_other_files_are_refused(tmp_path: Path) -> None:
    for name in ("versions.json", ".run.toml.tmp", "rows-12.jsonl", ".rows-12.jsonl.tmp"):
        (tmp_path / name).write_text("")
    check_unused(tmp_path, FILES)
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(ConfigError, match="is not an empty folder"):
        check_unused(tmp_path, FILES)


def test_a_run_that_could_not_begin_leaves_the_folder_empty_and_one_with_a_checkpoint_stays(tmp_path: Path) -> None:
    folder = claimed(tmp_path / "run")
    Journal(folder).event(0, "error", "no such level")
    (folder / "replay").mkdir()
    release_folder(folder, FILES)
    assert list(folder.iterdir()) == []
    claimed(folder)
    (folder / "LATEST").write_text("step_1")
    release_folder(folder, FILES)
    assert (folder / "run.toml").exists()


def test_what_a_kill_left_goes_and_so_do_later_checkpoints(tmp_path: Path) -> None:
    kept = tmp_path / "checkpoints" / "step_000010"
    for name in ("step_000010", "step_000020", ".step_000030.tmp"):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
    (tmp_path / ".done.json.tmp").write_text("{")
    remove_leftovers(tmp_path, kept)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["checkpoints", "step_000010"]
    remove_leftovers(tmp_path, None)
    assert not kept.exists()


def test_another_machine_is_named_and_allowed_on_request(tmp_path: Path) -> None:
    write_versions(tmp_path, {"numpy": "2", "threads": "1"})
    assert check_versions(tmp_path, {"numpy": "2", "threads": "1"}) == []
    now = {"numpy": "2", "threads": "4"}
    with pytest.raises(InexactResumeError, match=r"threads: 1 then, 4 now.*--allow-inexact"):
        check_versions(tmp_path, now)
    assert check_versions(tmp_path, now, allow_inexact=True) == ["threads: 1 then, 4 now"]


def test_a_folder_without_a_file_of_a_run_is_none_unless_it_has_one_of_its_kind(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no file of a run"):
        read_record(tmp_path)
    (tmp_path / "episodes.jsonl").write_text("")
    assert read_record(tmp_path, also=("episodes.jsonl",)).problems[0] == "run.toml is missing"
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"step": 1}) + "\n")
    with pytest.raises(DataError, match=r"metrics.jsonl, line 1: field 'metrics' is missing"):
        read_record(tmp_path)
