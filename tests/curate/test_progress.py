"""How far it is: lines, bars, or nothing."""

import io
from pathlib import Path

import pytest
from curate_support import write

from assay.curate import Exact, Pipeline, progress_on
from assay.curate import progress as progress_module
from assay.curate.progress import Bars, PlainProgress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_name_stages_and_count_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "_EVERY", 4)
    source, out = write(tmp_path / "in.jsonl", [{"prompt": f"p{i}"} for i in range(10)]), io.StringIO()
    progress = progress_on(out)
    assert isinstance(progress, PlainProgress)
    Pipeline(steps=(Exact(),)).run([source], tmp_path / "out", chunk=3, progress=progress)
    said = [line.removeprefix("assay curate: ") for line in out.getvalue().splitlines()]
    assert said == [
        "exact",
        "exact: 6 rows",
        "exact: 10 rows",
        "deciding: exact",
        "writing",
        "writing: 6 rows",
        "writing: 10 rows",
    ]


def test_bars_on_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    progress = progress_on(Terminal())
    assert isinstance(progress, Bars)
    source = write(tmp_path / "in.jsonl", [{"prompt": f"p{i}"} for i in range(10)])
    Pipeline(steps=(Exact(),)).run([source], tmp_path / "out", chunk=3, progress=progress)
    said = capsys.readouterr().err
    assert "exact" in said
    assert "10 rows" in said
