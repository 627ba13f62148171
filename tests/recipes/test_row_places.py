"""A run on rows tells of each rollout which row it answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.cli import main
from assay.recipes import on_rows
from assay.train import train

ROWS = [{"prompt": f"S{a}{b}>", "answer": "".join(sorted(f"{a}{b}"))} for a in range(6) for b in range(6)]


def test_a_rollout_names_its_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chat: list[Any] = [{"role": "user", "content": "S"}, {"role": "assistant", "content": "1"}, {"role": "user", "content": "S>"}]
    rows: list[Any] = [*ROWS[:5], {"prompt": chat, "answer": "1"}]
    run = on_rows(rows, steps=2, groups=6, group_size=2, test_share=0.0)
    train(run, tmp_path / "run")
    capsys.readouterr()
    for number, row in enumerate(rows, 1):
        assert main(["rollouts", "show", str(tmp_path / "run"), "--row", str(number), "--step", "last"]) == 0
        head, *lines = capsys.readouterr().out.splitlines()
        assert f"  row {number}  " in head
        texts = [line[10:] for line in lines[: next(i for i, line in enumerate(lines) if line.startswith("  answer"))]]
        expected = ["[user] S", "", "[assistant] 1", "", "[user] S>"] if number == 6 else [row["prompt"]]
        assert texts == expected
        assert any(line.split()[:2] == ["gold", row["answer"]] for line in lines)
    assert main(["rollouts", "show", str(tmp_path / "run"), "--row", "7"]) == 0
    found = capsys.readouterr()
    assert found.out == "" and "0 of 0 that match" in found.err
