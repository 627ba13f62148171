"""The study of kills: blocks that are done are kept, and the page says what they found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.core.errors import UnknownNameError
from evidence import __main__ as command
from evidence import kills
from evidence import pages as evidence
from evidence.kills import BLOCKS, TRIALS, Trial


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))


def trial(number: int) -> Trial:
    """The first two end before their moment, the next three are killed before a step, every seventh in RL."""
    stage = "start" if number < 5 else "rl" if number % 7 == 0 else "warm-up"
    return Trial(killed=number > 1, stage=stage, digest="same")


def never(number: int) -> Trial:
    raise AssertionError("this block is done")


def run_all(code: str = "code", first: int = 0) -> None:
    for block in range(first, BLOCKS):
        kills.run_block(block, code, "same", trial)


def test_the_study_has_a_thousand_trials() -> None:
    assert BLOCKS * TRIALS == 1000


def test_a_block_is_kept_for_its_code() -> None:
    made = kills.run_block(3, "code", "same", trial)
    assert (made.trials, made.killed, made.different) == (50, 48, [])
    assert made.reached == {"start": 3, "warm-up": 38, "rl": 7}
    assert kills.run_block(3, "code", "same", never) == made
    with pytest.raises(AssertionError, match="this block is done"):
        kills.run_block(4, "code", "same", never)
    with pytest.raises(AssertionError, match="this block is done"):
        kills.run_block(3, "other code", "same", never)


def test_the_page_adds_the_blocks_up(tmp_path: Path) -> None:
    run_all()
    assert kills.make_page(tmp_path / "docs") == []
    page = (tmp_path / "docs" / "exact_resume.md").read_text(encoding="utf-8")
    for row in (
        "| trials | 1,000 |",
        "| killed before the first step was done | 60 |",
        "| killed in the warm-up | 760 |",
        "| killed in RL | 140 |",
        "| ended before the kill came | 40 |",
        "| **digests that differ** | **0** |",
        "below 0.40 %",  # Wilson's upper end of 0 in 960
    ):
        assert row in page, row
    data = json.loads((tmp_path / "docs" / "exact_resume.json").read_text(encoding="utf-8"))
    assert [b["trials"] for b in data["blocks"]] == [TRIALS] * BLOCKS
    assert all(b["machine"] and len(b["load"]) == 2 and b["seconds"] >= 0 for b in data["blocks"])


def test_a_run_that_ends_otherwise_is_told(tmp_path: Path) -> None:
    run_all(first=1)
    found = kills.run_block(0, "code", "same", lambda n: Trial(killed=True, stage="rl", digest="" if n == 9 else "same"))
    assert found.different == [9]
    assert kills.make_page(tmp_path) == ["exact_resume: 1 runs ended with another digest"]
    assert "| **1** |" in (tmp_path / "exact_resume.md").read_text(encoding="utf-8")


def test_no_page_is_made_from_some_blocks_or_from_blocks_of_two_codes(tmp_path: Path) -> None:
    run_all(first=1)
    assert "19 of 20 blocks are recorded" in kills.make_page(tmp_path / "docs")[0]
    kills.run_block(0, "other code", "same", trial)
    assert "19 of 20 blocks are recorded" in kills.make_page(tmp_path / "docs")[0]
    assert not (tmp_path / "docs").exists()


def test_the_command_makes_the_page_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command.main(["exact_resume"]) == 1
    assert "not met: exact_resume: 0 of 20 blocks" in capsys.readouterr().out
    run_all()
    assert command.main(["exact_resume"]) == 0
    assert [p.name for p in sorted((tmp_path / "docs" / "evidence").iterdir())] == ["exact_resume.json", "exact_resume.md"]
    assert command.main(["--nothing"]) == 2


def test_an_unknown_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="no-such"):
        evidence.make(tmp_path, ["no-such"])
