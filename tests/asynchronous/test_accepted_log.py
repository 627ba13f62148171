"""The account of what was accepted and taken: read back exactly, torn ends left out, damage refused."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from assay.asynchronous import AcceptedLog, StepGroups
from assay.core.errors import CheckpointError, StorageError


def written(folder: Path) -> AcceptedLog:
    log = AcceptedLog(folder)
    log.begin(0)
    log.write_accepted("s0/0", 0, ())
    log.write_accepted("s0/1", 1, ())
    log.write_taken(1, StepGroups(("s0/0",)))
    log.begin(3)
    log.write_taken(3, StepGroups(("s0/1",), ("s1/0",)))
    return log


def test_what_was_written_is_given_back_once(tmp_path: Path) -> None:
    written(tmp_path).close()
    log = AcceptedLog(tmp_path)
    log.read(0)
    assert log.pop_accepted("s0/1") == (1, ()) and log.pop_accepted("s0/1") is None
    assert log.pop_taken(1) == StepGroups(("s0/0",)) and log.pop_taken(1) is None
    assert log.pop_taken(3) == StepGroups(("s0/1",), ("s1/0",)) and log.pop_taken(2) is None


def test_a_checkpoint_s_log_begins_with_it(tmp_path: Path) -> None:
    written(tmp_path).close()
    log = AcceptedLog(tmp_path)
    log.read(3)
    assert log.pop_accepted("s0/0") is None and log.pop_taken(1) is None and log.pop_taken(3) is not None
    log.write_taken(4, StepGroups(("s1/1",)))
    log.close()
    assert (tmp_path / "00000003.jsonl").read_text().count("\n") == 2


@pytest.mark.parametrize("torn", [b"12345678 {", b"00000000 {}\n", b"x", b"\n"])
def test_a_torn_end_is_left_out_and_written_over(tmp_path: Path, torn: bytes) -> None:
    written(tmp_path).close()
    last = tmp_path / "00000003.jsonl"
    whole = last.read_bytes()
    last.write_bytes(whole + torn)
    log = AcceptedLog(tmp_path)
    log.read(3)
    log.write_taken(4, StepGroups(("s1/1",)))
    log.close()
    assert last.read_bytes().startswith(whole) and log.pop_taken(3) is not None
    again = AcceptedLog(tmp_path)
    again.read(3)
    assert again.pop_taken(4) == StepGroups(("s1/1",))


def test_damage_in_front_of_other_lines_is_refused(tmp_path: Path) -> None:
    written(tmp_path).close()
    first = tmp_path / "00000000.jsonl"
    first.write_bytes(first.read_bytes()[:-4])
    with pytest.raises(CheckpointError, match=r"00000000.jsonl, line 3: damaged, and later ones need it"):
        AcceptedLog(tmp_path).read(0)


def test_what_was_put_back_was_not_taken(tmp_path: Path) -> None:
    log = AcceptedLog(tmp_path)
    log.write_taken(1, StepGroups(("a",)))
    log.write_put_back(1, ["a"])
    log.write_taken(1, StepGroups(("b",)))
    log.close()
    again = AcceptedLog(tmp_path)
    again.read(0)
    assert again.pop_taken(1) == StepGroups(("b",)) and again.pop_taken(1) is None


@pytest.mark.parametrize(("keep", "left"), [(False, ["00000003.jsonl"]), (True, ["00000000.jsonl", "00000003.jsonl"])])
def test_files_that_no_checkpoint_needs_go_unless_all_is_kept(tmp_path: Path, keep: bool, left: list[str]) -> None:
    written(tmp_path).close()
    log = AcceptedLog(tmp_path, keep=keep)
    log.remove_before(3)
    assert sorted(file.name for file in tmp_path.iterdir()) == left


def test_a_full_disk_is_told_with_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = AcceptedLog(tmp_path)
    log.begin(0)

    class Full:
        name = str(tmp_path / "00000000.jsonl")

        def write(self, data: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(log, "_file", Full())
    with pytest.raises(StorageError, match=r"00000000\.jsonl: No space left on device; make room, and resume"):
        log.write_taken(1, StepGroups(("a",)))


def test_a_log_that_was_begun_for_a_checkpoint_that_never_came_is_joined_and_begun_anew(tmp_path: Path) -> None:
    """Killed between the beginning of a checkpoint's file and the checkpoint: what stands there is used, and stands once."""
    first = AcceptedLog(tmp_path)
    first.begin(3)
    first.write_accepted("s3/0", 3, ())
    first.write_taken(4, StepGroups(("s3/0",)))
    first.begin(6)
    first.write_accepted("s5/0", 5, ())
    first.write_accepted("s6/0", 6, ())
    first.write_taken(6, StepGroups(("s5/0",)))
    first.close()

    second = AcceptedLog(tmp_path)  # from the checkpoint at 3
    second.read(3)
    assert [file.name for file in tmp_path.iterdir()] == ["00000003.jsonl"]
    assert second.pop_accepted("s3/0") and second.pop_taken(4) and second.pop_accepted("s5/0") and second.pop_taken(6)
    second.begin(6)  # and now the checkpoint at 6, at which s6/0 has not been asked for
    second.close()

    third = AcceptedLog(tmp_path)
    third.read(6)
    assert third.pop_accepted("s5/0") is None and third.pop_taken(6) is None, "the checkpoint holds what was used before it"
    assert third.pop_accepted("s6/0") == (6, ())


def test_the_file_that_is_written_to_goes_on_at_a_second_checkpoint_of_its_step(tmp_path: Path) -> None:
    log = AcceptedLog(tmp_path)
    log.begin(2)
    log.write_accepted("s2/0", 2, ())
    log.begin(2)
    log.close()
    again = AcceptedLog(tmp_path)
    again.read(2)
    assert again.pop_accepted("s2/0") == (2, ())
