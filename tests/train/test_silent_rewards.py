"""Of several rewards, one that never has a verdict is told of once, and a resume does not tell of it again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.measure import diagnose, read_run
from assay.recipes import on_rows
from assay.train import resume, train

ROWS = [{"prompt": f"S{a}{b}>", "answer": "".join(sorted(f"{a}{b}"))} for a in range(6) for b in range(6)]


def right(completion: str, answer: str) -> float:
    return float(completion == answer)


def nothing(completion: str, answer: str) -> None:
    return None


def seldom(completion: str, answer: str) -> float | None:
    return 1.0 if answer == "00" else None


def told(folder: Path) -> list[tuple[int, str]]:
    file = folder / "events.jsonl"
    events = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
    return [(e["step"], e["message"]) for e in events if e["kind"] == "reward"]


@pytest.mark.slow
def test_a_reward_that_always_gives_none_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = on_rows(ROWS, {"right": right, "style": (nothing, 0.5)}, steps=3, groups=10, group_size=4, test_share=0.0)  # pyright: ignore[reportArgumentType]
    train(run, tmp_path / "run")
    ((step, line),) = told(tmp_path / "run")
    assert step == 2 and "the reward 'style' has given None for all of the 80 rollouts" in line
    assert line in capsys.readouterr().err
    view = read_run(tmp_path / "run")
    assert view.history()["reward/silent"].steps.tolist() == [2, 3]
    assert "SilentRewards" in [f.rule for f in diagnose(view.history())]
    resume(tmp_path / "run", steps=4)
    assert told(tmp_path / "run") == [(step, line)] and read_run(tmp_path / "run").history()["reward/silent"].steps[-1] == 4


@pytest.mark.slow
def test_a_reward_of_a_few_rows_is_not(tmp_path: Path) -> None:
    every = {"right": right, "seldom": seldom}
    train(on_rows(ROWS, every, steps=2, groups=36, group_size=2, test_share=0.0), tmp_path / "run")  # pyright: ignore[reportArgumentType]
    assert told(tmp_path / "run") == [] and not len(read_run(tmp_path / "run").history()["reward/silent"])
