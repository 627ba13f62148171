"""The tutorials are read one behind the other: what trains on a model folder trains on the one that the pages before it make."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from page_blocks import ROOT, blocks

from assay.train import Folder, Run, train
from assay.train.models import load_source
from assay.train.preflight import check_fits

FIRST = ROOT / "docs" / "tutorials" / "first-run.md"


def pages_in_order() -> list[Path]:
    """The first tutorial, and those that each names as the next."""
    found = [FIRST]
    while after := re.search(r"^Next: .*\]\(([\w-]+\.md)\)", found[-1].read_text(encoding="utf-8"), re.MULTILINE):
        found.append(FIRST.parent / after.group(1))
    return found


def trained_in(page: Path) -> list[str]:
    """The recipes that the page's commands explain or train."""
    commands = [command for b in blocks(page) for command in b.commands]
    named = [found.group(1) for c in commands if (found := re.match(r"assay (?:explain|train) my_file\.py:(\w+)", c))]
    return list(dict.fromkeys(named))


def small(run: Run) -> Run:
    """One step of few rollouts, of the rows as they are."""
    cut = {"steps": 1, "groups": 2, "group_size": 2, "batch": 2}
    stages = tuple(replace(s, **{k: v for k, v in cut.items() if hasattr(s, k)}) for s in run.stages)
    return replace(run, stages=stages, evaluation=replace(run.evaluation, per_level=1, final_per_level=1))


def no_base(run: Run, folder: Path) -> Path:
    raise AssertionError(f"{run.name} in {folder}: a folder needs no base")


@pytest.mark.slow
def test_what_trains_on_a_folder_trains_on_that_of_the_page_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    trained: list[str] = []
    for page in pages_in_order():
        names: dict[str, Any] = {
            "__name__": "__main__" if "`python my_file.py`" in page.read_text(encoding="utf-8") else "my_file"
        }
        exec("\n\n".join(b.text for b in blocks(page) if b.kind == "python"), names)
        for name in trained_in(page):
            run = names[name]()
            if not isinstance(run.model, Folder):
                continue
            trained.append(f"{page.stem}:{name}")
            check_fits(run, load_source(run.model, no_base))
            if not run.judges:
                train(small(run), tmp_path / "runs" / trained[-1].replace(":", "-"), progress=False)
    assert trained == ["hub-model:my_recipe", "tools:my_recipe", "tools:base_model", "tools:shown_first", "judge:my_recipe"]
