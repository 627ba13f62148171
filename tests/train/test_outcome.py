"""What `train` shows while it works, prints at its end, and returns."""

from __future__ import annotations

import asyncio
import json
import math
import os
import pty
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from tiny_runs import digest_of, ended, started, tiny

from assay.core.errors import DataError
from assay.train import RunOutcome, resume, train
from assay.train.progress_view import in_notebook, should_show


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunOutcome:
    return train(tiny(warm=2, rl=2), tmp_path_factory.mktemp("run") / "run")


def folder_with(path: Path, *lines: dict[str, object]) -> Path:
    path.mkdir(exist_ok=True)
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


EVALUATED = (
    {"step": 0, "stage": "warm-up", "metrics": {"eval/greedy/all": 0.0}},
    {"step": 1, "stage": "warm-up", "metrics": {"loss/total": 2.0, "eval/greedy/all": 0.25}},
    {"step": 2, "stage": "rl", "metrics": {"reward/mean": 0.3}},
    {"step": 3, "stage": "rl", "metrics": {"reward/mean": 0.5, "eval/greedy/all": 0.75}},
)


def test_a_silent_run_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(tiny(warm=1, rl=1), tmp_path / "run", progress=False).finished
    assert not should_show(None) and capsys.readouterr().out == ""


def test_a_run_that_is_shown_ends_with_its_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = train(tiny(warm=1, rl=1), tmp_path / "run", progress=True)
    first, *_, last = lines = capsys.readouterr().out.splitlines()
    assert first == f"tiny · {tmp_path}/run: 2 steps in sort"
    assert f"done: 2 steps in {tmp_path}/run, digest {result.digest}" in lines
    assert result.sentence in lines
    assert any(re.search(r"^warning: .*docs/not_learning\.md#[a-z]+\)$", line) for line in lines)
    assert last == f"report: {tmp_path}/run/report.html" and (tmp_path / "run" / "report.html").exists()
    longer = resume(tmp_path / "run", steps=2, progress=True)
    assert longer.step == 3 and "3 steps in sort, 2 done" in capsys.readouterr().out


def test_a_plain_script_hears_how_far_its_run_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(tiny(warm=1, rl=1), tmp_path / "run")
    told = capsys.readouterr()
    first, *lines = told.err.splitlines()
    assert told.out == "" and first == f"tiny · {tmp_path}/run: 2 steps in sort"
    assert [line.partition("  ")[0] for line in lines if line.startswith("step ")] == ["step 1/2", "step 2/2"]
    assert not (tmp_path / "run" / "report.html").exists()
    resume(tmp_path / "run", steps=2)
    assert "step 3/3  " in capsys.readouterr().err


def test_on_a_terminal_there_is_a_panel(tmp_path: Path) -> None:
    leader, follower = pty.openpty()

    def work() -> None:
        os.dup2(follower, 1)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        os.environ["TERM"] = "xterm"
        assert train(tiny(warm=1, rl=1), tmp_path / "run").finished

    child = started(work)
    os.close(follower)
    text = bytearray()
    while True:  # the terminal's buffer is small: read until the child has closed it
        try:
            text += os.read(leader, 4096)
        except OSError:
            break
    os.close(leader)
    assert ended(child) == 0
    assert "step 2/2" in text.decode() and "╭" in text.decode() and "report: " in text.decode()


def test_a_cell_of_a_notebook_gives_the_same_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def cell() -> RunOutcome:
        return train(tiny(warm=1, rl=1), tmp_path / "cell", progress=False)

    assert asyncio.run(cell()).digest == train(tiny(warm=1, rl=1), tmp_path / "script", progress=False).digest
    shell = SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert not in_notebook()  # ipython on a terminal
    shell.kernel = object()
    assert in_notebook() and should_show(None) and not should_show(False)


def test_without_a_folder_it_goes_below_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert [train(tiny(warm=1, rl=1)).folder for _ in range(2)] == [Path("runs/tiny-1"), Path("runs/tiny-2")]


def test_what_an_outcome_says_of_its_run(finished: RunOutcome) -> None:
    assert finished.digest == digest_of(finished.folder)
    assert isinstance(finished.accuracy, float) and isinstance(finished.accuracy_before, float)
    assert finished.sentence.startswith("2 steps of reinforcement learning on sort")
    assert {f.rule for f in finished.findings} >= {"LengthTruncation"}
    assert [row["step"] for row in finished.history] == [1, 2, 3, 4]


def test_the_report_is_written_when_asked_for_and_again_when_the_run_went_on(finished: RunOutcome) -> None:
    path = finished.report
    before = path.stat().st_mtime_ns
    assert path == finished.folder / "report.html" and finished.report.stat().st_mtime_ns == before
    os.utime(path, (0, 0))
    assert finished.report.stat().st_mtime_ns > before


def test_accuracy_is_from_before_reinforcement_learning_to_the_end(tmp_path: Path) -> None:
    result = RunOutcome(folder=folder_with(tmp_path / "run", *EVALUATED), step=3, finished=True)
    assert (result.accuracy_before, result.accuracy) == (0.25, 0.75)
    assert repr(result).endswith("step=3, finished=True, accuracy=0.750, accuracy_before=0.250)")
    imitated = [{**line, "stage": str(line["stage"]).replace("warm-up", "sft")} for line in EVALUATED]
    assert RunOutcome(folder=folder_with(tmp_path / "sft", *imitated), step=3, finished=True).accuracy_before == 0.25
    bare = RunOutcome(folder=folder_with(tmp_path / "bare", *EVALUATED[2:3]), step=2, finished=False)
    assert bare.accuracy is None and bare.accuracy_before is None and "accuracy=" not in repr(bare)


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    result = RunOutcome(folder=tmp_path / "gone", step=3, finished=True)
    assert "gone" in repr(result)
    with pytest.raises(DataError, match="gone is not a folder"):
        _ = result.history


def test_history_is_a_table_where_pandas_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = RunOutcome(folder=folder_with(tmp_path / "run", *EVALUATED), step=3, finished=True)
    monkeypatch.setattr("assay.train.outcome.find_spec", lambda name: None)
    rows = result.history
    assert [row["step"] for row in rows] == [0, 1, 2, 3] and rows[3]["reward/mean"] == 0.5
    assert math.isnan(rows[0]["reward/mean"]) and {tuple(row) for row in rows} == {tuple(rows[0])}

    def frame(given: Sequence[dict[str, object]], columns: Sequence[str]) -> tuple[object, ...]:
        return "frame", given, columns

    monkeypatch.setattr("assay.train.outcome.find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=frame))
    kind, given, columns = result.history
    assert (kind, columns) == ("frame", list(rows[0])) and len(given) == 4
