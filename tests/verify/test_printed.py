"""What foreign code prints: kept for a reader up to a limit, never shown, never waited for."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from foreign_code import LONG, act, items

from assay.core.errors import RewardError
from assay.core.score import Fault
from assay.verify import RewardFunction, ScoringPool
from assay.verify.workers.stdout import LIMIT, StdoutFile, capture, printed_in


def test_the_first_bytes_are_kept_and_the_rest_is_dropped() -> None:
    with tempfile.TemporaryFile() as file:
        printed = StdoutFile(file.fileno())
        assert printed.text() == ""
        assert printed.add(b"x" * 1500) == 1500
        assert printed.add(b"y" * 1500) == 1500  # as if all had been written
        assert printed.add(b"z") == 1
        assert printed.text() == printed_in(file.fileno()) == "x" * 1500 + "y" * (LIMIT - 1500)
        printed.clear()
        assert printed.text() == printed_in(file.fileno()) == ""
        printed.add(b"again \xff")
        assert printed.text() == "again �"


def test_a_file_that_cannot_be_written_is_not_the_functions_fault(tmp_path: Path) -> None:
    path = tmp_path / "output"
    path.touch()
    with path.open("rb") as file:
        assert StdoutFile(file.fileno()).add(b"lost") == 4


def test_both_streams_are_captured_in_the_order_of_printing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # put back at the end
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    with tempfile.TemporaryFile() as file:
        printed = capture(file.fileno())
        print("one")
        print("two \ud800", file=sys.stderr)
        sys.stdout.buffer.write(b"three")
        assert (sys.stdout.fileno(), sys.stderr.fileno(), sys.stdout.isatty()) == (1, 2, False)
        assert printed.text() == "one\ntwo \\ud800\nthree"
        sys.stdout.close()
        assert sys.stderr.write("four") == 4


def loud(prompt: str, completion: str, row: dict[str, Any]) -> float:
    print(f"judging {completion}")
    print(f"odd: {completion}", file=sys.stderr)
    return act(prompt, completion, row)


def test_each_verdict_has_what_was_printed_on_its_answer_and_nothing_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    with ScoringPool(RewardFunction(loud), LONG) as pool:
        verdicts = pool.score(items("yes", "raise", "die", "no", "yes"))
    said = {"r0": "yes", "r1": "raise", "r2": "die", "r3": "no", "r4": "yes"}
    assert {k: s.info["printed"].splitlines()[0] for k, s in verdicts.items()} == {k: f"judging {v}" for k, v in said.items()}
    assert "odd: yes" in verdicts["r0"].info["printed"]
    assert verdicts["r2"].fault is Fault.POLICY
    assert capfd.readouterr() == ("", "")


def test_the_errors_of_a_pool_show_what_was_printed() -> None:
    with ScoringPool(RewardFunction(loud), LONG) as pool, pytest.raises(RewardError, match=r"\nprinted: judging raise\nodd"):
        pool.score(items("raise"))
    with ScoringPool(RewardFunction(loud), 0.2) as pool, pytest.raises(RewardError, match="\nprinted: judging sleep"):
        pool.score(items("sleep", "sleep", "sleep"))


def test_megabytes_neither_block_nor_are_kept(capfd: pytest.CaptureFixture[str]) -> None:
    def flood(prompt: str, completion: str, row: dict[str, Any]) -> float:
        for _ in range(1000):
            print(completion * 5000)
            os.write(1, b"x" * 5000)
            os.write(2, b"x" * 5000)
        subprocess.run([sys.executable, "-c", "print('y' * 5_000_000)"], check=True)
        return 1.0

    with ScoringPool(RewardFunction(flood), LONG) as pool:
        verdicts = pool.score(items("a", "b"))
    assert [(s.primary, s.info["printed"]) for s in verdicts.values()] == [(1.0, "a" * LIMIT), (1.0, "b" * LIMIT)]
    assert pool.counts == {}
    assert capfd.readouterr() == ("", "")
