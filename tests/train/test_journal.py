"""The journal: cut back at a resume, damage cut out and told, text that holds line ends of other kinds."""

from __future__ import annotations

import json
import os
import re
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import at_named, in_child, only_rl, resumed, trained

from assay.core.errors import CheckpointError
from assay.runs.journal import FILES, Journal
from assay.tasks import Rows
from assay.train.driver import resume, train
from assay.train.models import Scratch
from assay.train.run import Run

TORN = b'{"metrics": {"loss/total": 0.2'


def record(step: int) -> bytes:
    return json.dumps({"step": step}).encode()


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().split("\n")[:-1]]


def damage(folder: Path) -> list[str]:
    return [e["message"] for e in read(folder, "events") if e["kind"] == "damaged"]


def steps(folder: Path, name: str) -> list[int]:
    return [r["step"] for r in read(folder, name)]


@pytest.mark.parametrize("name", ["metrics", "evals", "rollouts"])
def test_a_torn_last_line_is_cut_and_told(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.jsonl").write_bytes(b"\n".join([record(1), record(2), record(3), TORN]))
    Journal(tmp_path).cut(2)
    assert steps(tmp_path, name) == [1, 2]
    assert read(tmp_path, "events") == [
        {"step": 2, "kind": "damaged", "message": f"{name}.jsonl: 1 line is no record and was cut: 30 bytes, line 4 of 4"}
    ]


DAMAGED: dict[str, tuple[list[bytes], str]] = {
    "bytes that are no text": ([record(1), b'{"step": 1, "text": "\xff\xfe"}'], "1 line .* 25 bytes, line 2 of 2"),
    "zeros, as a crash of the machine leaves": ([record(1), b"\0" * 40], "1 line .* 40 bytes, line 2 of 2"),
    "another kind of value": ([record(1), b"[1, 2]", b'"step"', b"7"], "3 lines are no records .* 13 bytes, line 2, 3, 4 of 4"),
    "no step, or none that counts": ([b'{"a": 1}', record(1), b'{"step": "x"}'], "2 lines .* 21 bytes, line 1, 3 of 3"),
    "an empty line": ([record(1), b"", record(1)], "1 line .* 0 bytes, line 2 of 3"),
    "brackets without end": ([record(1), b"[" * 100_000], "1 line .* 100000 bytes, line 2 of 2"),
    "many": ([record(1), *[TORN] * 9], r"9 lines .* 270 bytes, line 2, 3, 4, 5, 6, \.\.\. of 10"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_whatever_is_no_record_is_cut_and_counted(tmp_path: Path, kind: str) -> None:
    lines, message = DAMAGED[kind]
    (tmp_path / "evals.jsonl").write_bytes(b"\n".join([*lines, b""]))
    with pytest.raises(CheckpointError, match=r"evals.jsonl, line \d, is damaged: resume"):
        Journal(tmp_path).records("evals")
    Journal(tmp_path).cut(1)
    assert all(step == 1 for step in steps(tmp_path, "evals")) and steps(tmp_path, "evals")
    assert len(damage(tmp_path)) == 1
    assert re.search(message, damage(tmp_path)[0])


def test_damage_to_the_events_themselves_is_told_and_what_was_there_stays(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.event(1, "gate", "passed")
    journal.event(5, "error", "late")
    journal.close()
    with (tmp_path / "events.jsonl").open("ab") as file:
        file.write(TORN)
    assert journal.newest("error") == "late"
    journal.cut(3)
    assert [e["kind"] for e in read(tmp_path, "events")] == ["gate", "damaged"]
    assert damage(tmp_path) == ["events.jsonl: 1 line is no record and was cut: 30 bytes, line 3 of 3"]


def test_whole_files_lose_what_is_later_without_a_word(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for step in (1, 2, 3):
        for name in FILES:
            journal.append(name, {"step": step})
    journal.close()
    (tmp_path / "metrics.jsonl").write_bytes((tmp_path / "metrics.jsonl").read_bytes().rstrip())  # all but its last newline
    journal.cut(2)
    journal.close()
    assert all(steps(tmp_path, name) == [1, 2] for name in FILES)
    Journal(tmp_path / "nothing").cut(2)
    assert not (tmp_path / "nothing").exists()


def test_a_kill_between_telling_and_cutting_loses_neither(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(b"\n".join([record(1), TORN]))

    def work() -> None:
        at_named("journal:events", lambda: os.kill(os.getpid(), signal.SIGKILL))
        Journal(tmp_path).cut(1)

    assert in_child(work) == -signal.SIGKILL
    assert (tmp_path / "metrics.jsonl").read_bytes().endswith(TORN)
    Journal(tmp_path).cut(1)
    assert len(damage(tmp_path)) == 2 and steps(tmp_path, "metrics") == [1]


# ---- in a run -------------------------------------------------------------------------------------------------------------

BREAKS = "\u2028\u2029\x85"
"""JSON leaves them as they are, and Python takes each for the end of a line."""


def with_line_ends() -> Run:
    rows = [{"prompt": f"S{BREAKS}{i}>", "answer": str(i)} for i in range(60)]
    alphabet = "".join(map(chr, range(32, 127))) + "\n" + BREAKS
    run = only_rl(steps=4, groups=2, group_size=2)
    model = run.model
    assert isinstance(model, Scratch)
    return replace(run, model=replace(model, alphabet=alphabet), tasks=Rows(rows), checkpoint_every=2)


def test_text_with_other_line_ends_survives_a_resume(tmp_path: Path) -> None:
    whole = trained(with_line_ends(), tmp_path / "whole")
    assert any(BREAKS in r["prompt"] for r in Journal(tmp_path / "whole").records("rollouts"))

    def killed() -> None:
        at_named("synced:step_0000004", lambda: os.kill(os.getpid(), signal.SIGKILL))
        train(with_line_ends(), tmp_path / "run")

    assert in_child(killed) == -signal.SIGKILL
    assert resumed(tmp_path / "run") == whole
    assert damage(tmp_path / "run") == []


def test_a_line_that_the_kill_tore_is_told_by_the_resume(tmp_path: Path) -> None:
    run, folder = replace(only_rl(steps=4), checkpoint_every=2), tmp_path / "run"

    def killed() -> None:
        def torn() -> None:
            for name in ("metrics", "evals", "rollouts"):
                with (folder / f"{name}.jsonl").open("ab") as file:
                    file.write(TORN)
            os.kill(os.getpid(), signal.SIGKILL)

        at_named("synced:step_0000004", torn)
        train(run, folder)

    assert in_child(killed) == -signal.SIGKILL
    assert resumed(folder) == trained(run, tmp_path / "whole")
    assert [m.split(":")[0] for m in damage(folder)] == ["metrics.jsonl", "evals.jsonl", "rollouts.jsonl"]
    assert [e["kind"] for e in read(folder, "events")] == ["damaged"] * 3 + ["resumed"]
    assert {e["step"] for e in read(folder, "events")} == {2}


def test_damage_to_what_the_checkpoint_claims_cannot_pass_for_the_whole_run(tmp_path: Path) -> None:
    """The digest then differs, and the journal says why."""
    run, folder = replace(only_rl(steps=4), checkpoint_every=2), tmp_path / "run"

    def killed() -> None:
        at_named("synced:step_0000004", lambda: os.kill(os.getpid(), signal.SIGKILL))
        train(run, folder)

    assert in_child(killed) == -signal.SIGKILL
    lines = (folder / "metrics.jsonl").read_bytes().split(b"\n")
    lines[1] = lines[1][:20]
    (folder / "metrics.jsonl").write_bytes(b"\n".join(lines))
    assert resumed(folder) != trained(run, tmp_path / "whole")
    assert len(damage(folder)) == 1 and ": 20 bytes, line 2 of" in damage(folder)[0]


# ---- lines that are gone ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["metrics", "evals", "rollouts"])
def test_a_journal_that_lost_lines_is_told_on_the_screen_and_in_the_events(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    train(only_rl(steps=4), folder)
    (folder / f"{name}.jsonl").unlink() if name != "evals" else (folder / f"{name}.jsonl").write_text("")
    capsys.readouterr()
    assert resume(folder, steps=6).finished
    said = f"{name}.jsonl: no line of"
    assert f"damaged: {said}" in capsys.readouterr().err
    assert said in (folder / "events.jsonl").read_text()


def test_a_whole_journal_is_cut_without_a_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    train(only_rl(steps=4), folder)
    assert resume(folder, steps=6).finished
    assert "damaged" not in capsys.readouterr().err + (folder / "events.jsonl").read_text()
