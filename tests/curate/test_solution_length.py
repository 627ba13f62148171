"""Rows by the length of a strong model's solutions, as AceReason chooses them."""

from __future__ import annotations

from pathlib import Path

import pytest
from curate_support import curated, write
from test_difficulty import ROWS, kept, why

from assay.core.errors import ConfigError, DataError
from assay.curate import SolutionLength

Attempts = dict[str, list[tuple[bool, int]]]


def attempts(folder: Path, found: Attempts) -> Path:
    lines = [{"prompt": name, "passed": passed, "tokens": n} for name, each in found.items() for passed, n in each]
    return write(folder / "attempts.jsonl", lines)


def test_a_majority_of_eight_tries_and_two_thousand_tokens(tmp_path: Path) -> None:
    four = [(True, 5000)] * 4
    file = attempts(
        tmp_path,
        {
            "a": [(True, 5000)],
            "b": [*four, *[(False, 9000)] * 4],  # a half is no majority
            "c": [*four, (True, 6000), *[(False, 9000)] * 3],
            "d": [(True, 1999)],
            "e": [(False, 100), (True, 4000), (True, 10)],  # the first right solution counts
            "f": [*[(False, 1)] * 8, *[(True, 5000)] * 9],  # tries behind the eighth do not
            "g": [(True, 2000)],
        },
    )
    found = curated(tmp_path, ROWS, [SolutionLength(file=file, share=1.0)])
    assert kept(found) == "aceg"
    assert why(found) == {"b": "no majority is right", "d": "solved at once", "f": "no majority is right", "h": "no attempts"}
    none = curated(tmp_path, ROWS, [SolutionLength(file=file, share=0.0)])
    assert kept(none) == "ace" and why(none)["g"] == "of middle length, not drawn"


def test_of_middle_lengths_a_share_stays_and_it_is_the_same_again(tmp_path: Path) -> None:
    rows = [{"prompt": f"q{i}", "n": f"{i} "} for i in range(400)]
    file = attempts(tmp_path, {str(row["prompt"]): [(True, 3000)] for row in rows})
    first = curated(tmp_path, rows, [SolutionLength(file=file, share=0.25)])
    again = curated(tmp_path, list(reversed(rows)), [SolutionLength(file=file, share=0.25)])
    stayed = {row["prompt"] for row in first.train + first.test}
    assert 70 <= len(stayed) <= 130 and stayed == {row["prompt"] for row in again.train + again.test}


def test_what_is_no_attempt_and_what_is_out_of_range_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "wrong.jsonl", [{"prompt": "a", "passed": 1, "tokens": 5}])
    with pytest.raises(DataError, match="passed=1, tokens=5"):
        curated(tmp_path, ROWS, [SolutionLength(file=file)])
    for wrong in (
        lambda: SolutionLength(file=file, tries=0),
        lambda: SolutionLength(file=file, short=10, middle=5),
        lambda: SolutionLength(file=file, share=1.5),
    ):
        with pytest.raises(ConfigError, match="SolutionLength"):
            wrong()
