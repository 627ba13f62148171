"""Each notebook runs in a kernel, cell by cell, for two steps and on weights of a few kilobytes."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.runtime import DecoderShape, char_tokenizer, init_model, save_model

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))
SMALL = DecoderShape(vocab_size=14, hidden_size=32, num_layers=1, num_heads=2, num_kv_heads=1, head_dim=16, intermediate_size=32)
SAYS = {
    "first_run": (r"rows · runs/rows-1: 2 steps in rows", r"step 2/2  reward .* held-out greedy", r"2 done\n", r"report: "),
    "own_rows": (
        r"'\d{7}' \{'reward': 1\.1, 'correct': 1\.0, 'digits': 1\.0, 'short': 1\.0\}",
        r"step 2/2 ",
        r"reward/component/short",
    ),
    "not_learning": (r"NoSignal - ", r"gold '\d{7}\.' 1\.0", r"said .* 0\.0\n", r"'NoSignal'"),
}
"""What stands among the outputs of each."""


def cells(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def shown(cell: Any) -> Iterator[str]:
    """The texts of a cell's outputs."""
    for output in cell.get("outputs", []):
        yield output["text"] if output["output_type"] == "stream" else output.get("data", {}).get("text/plain", "")


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One kernel for all of them: each would load PyTorch anew."""
    if importlib.util.find_spec("nbclient") is None and not os.environ.get("CI"):
        pytest.skip("nbclient is not installed: pip install -e '.[dev]'")
    import nbformat
    from nbclient import NotebookClient

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPLBACKEND", "agg")
        home = {"metadata": {"path": str(tmp_path_factory.mktemp("kernel"))}}
        first = NotebookClient(nbformat.v4.new_notebook(), timeout=200, kernel_name="python3", resources=home)
        first.execute(cleanup_kc=False)
    yield first.km
    asyncio.run(first.km.shutdown_kernel(now=True))


@pytest.mark.prove
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_the_notebook_runs(path: Path, tmp_path: Path, manager: Any) -> None:
    import nbformat
    from nbclient import NotebookClient

    save_model(init_model(SMALL, char_tokenizer("0123456789S>"), seed=0, init="fan_in"), tmp_path / "model")
    book: Any = nbformat.read(path, as_version=4)
    (given,) = [cell for cell in book.cells if "parameters" in cell.metadata.get("tags", [])]
    given.source = "steps, model = 2, 'model'"
    anew = nbformat.v4.new_code_cell(f"%reset -f\n%cd -q {tmp_path}")  # no name of the one before, and a folder of its own
    book.cells.insert(0, anew)
    NotebookClient(book, timeout=200, km=manager).execute()
    text = "".join(text for cell in book.cells for text in shown(cell))
    assert [pattern for pattern in SAYS[path.stem] if not re.search(pattern, text)] == [], text


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_the_notebook_is_kept_without_outputs(path: Path) -> None:
    code = [cell for cell in cells(path) if cell["cell_type"] == "code"]
    assert len(code) >= 4 and all(not cell["outputs"] and cell["execution_count"] is None for cell in code)
    assert sum("parameters" in cell["metadata"].get("tags", []) for cell in code) == 1
    words = "".join("".join(cell["source"]) for cell in cells(path))
    links = re.findall(r"\]\(([^)#]+)", words)
    assert links and [link for link in links if not (path.parent / link).exists()] == []


def test_every_notebook_is_known() -> None:
    assert sorted(SAYS) == [path.stem for path in NOTEBOOKS]
