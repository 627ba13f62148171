"""The stage of given demonstrations on the command line: told by ``explain``, trained, refused in one sentence."""

import json
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "add" / "demonstrations.md"
SHRUNK = [
    "--stages.0.steps",
    "2",
    "--stages.0.batch",
    "3",
    "--model.shape.hidden-size",
    "16",
    "--model.shape.num-layers",
    "1",
    "--evaluation.final-per-level",
    "2",
    "--stages.1.groups",
    "2",
    "--stages.1.group-size",
    "2",
    "--stages.1.steps",
    "1",
    "--allow-contamination",
]


@pytest.fixture
def page(tmp_path):
    """The page's file and rows."""
    text = PAGE.read_text(encoding="utf-8")
    (code,), (rows,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL), re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    (tmp_path / "mine_sft.py").write_text(code)
    (tmp_path / "shown.jsonl").write_text(rows)
    return tmp_path / "shown.jsonl"


def test_explain_tells_rows_epochs_and_tokens(assay, page):
    said = assay("explain", "mine_sft.py:my_run", "--stages.0.batch", "3", "--json")
    stage = said.json["derived"]["stages"][0]
    assert (stage["stage"], stage["rows"], stage["pool"], stage["walks"], stage["levels"]) == ("Imitate", 3, 3, 100.0, {})
    assert (stage["pool_tokens"], stage["learned_tokens"]) == (3 * 7, 3 * 3)
    text = assay("explain", "mine_sft.py:my_run", "--stages.0.batch", "3").out
    assert re.search(r"^    demonstrations +3, walked 100\.0 times$", text, re.MULTILINE)
    assert re.search(r"^    tokens +21 in all demonstrations, 9 with loss$", text, re.MULTILINE)


def test_the_page_of_demonstrations_runs(assay, page, tmp_path):
    said = assay("explain", "mine_sft.py:my_run")
    assert said.code == 2 and "Imitate.batch=16, but the data has 3 rows; use at most 3" in said.err
    said = assay("train", "mine_sft.py:my_run", *SHRUNK, "--folder", "run", "--plain", "--no-report")
    assert said.code == 0, said.err
    stages = [json.loads(line)["stage"] for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert stages == ["sft", "sft", "sft", "rl"]


@pytest.mark.parametrize("command", ["explain", "train"])
def test_a_row_that_is_wrong_is_named_before_anything_is_built(assay, page, command):
    page.write_text(page.read_text() + '{"prompt": "S1>", "completion": "é"}\n')
    found = assay(command, "mine_sft.py:my_run", "--stages.0.batch", "4")
    assert found.code == 2 and "shown.jsonl, line 4, the assistant's 'é': the model's tokenizer lacks 'é'" in found.err
