"""The stage of given preferences on the command line: every field an option, told by ``explain``, refused in one sentence."""

import json
import re
from pathlib import Path

import pytest

PAIRS = [{"prompt": f"S{a}{b}>", "chosen": f"{a}{b}", "rejected": f"{b}{a}"} for a in range(4) for b in range(4) if a < b]
PREFER = [
    "mine.py:tiny",
    "--stages.0.kind",
    "Prefer",
    "--stages.0.data",
    "pairs.jsonl",
    "--stages.0.batch",
    "4",
    "--stages.0.steps",
    "3",
]


@pytest.fixture
def pairs(tmp_path, mine):
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in PAIRS))
    return path


def test_explain_tells_rows_epochs_and_plan(assay, pairs):
    stage = assay("explain", *PREFER, "--json").json["derived"]["stages"][0]
    assert (stage["stage"], stage["steps"], stage["rows"], stage["rollouts"], stage["updates"]) == ("Prefer", 3, 8, 24, 3)
    assert (stage["pool"], stage["tokens"], stage["levels"]) == (6, 0, {})
    assert stage["evaluations"] == 2 + 1  # before, after step 2, at the end
    assert [f["column"] for f in stage["plan"]["forwards"]] == ["logp_ref", "logp_now"]
    text = assay("explain", *PREFER).out
    assert re.search(r"^      data +'pairs.jsonl'$", text, re.MULTILINE)
    assert re.search(r"^    preferences +6, walked 2\.0 times$", text, re.MULTILINE)
    assert "levels  " not in text.split("stage 0")[1]


def test_explain_counts_rows_that_share_a_prompt(assay, pairs):
    turns = [{"role": "user", "content": "S01>"}]
    more = {
        "chosen": [*turns, {"role": "assistant", "content": "01"}],
        "rejected": [*turns, {"role": "assistant", "content": "11"}],
    }
    pairs.write_text(pairs.read_text() + json.dumps(more | {"prompt_id": "7f", "score_chosen": 9.0}) + "\n")
    assert assay("explain", *PREFER, "--json").json["derived"]["stages"][0]["shared"] == 1
    told = r"^    prompts +1 rows have the prompt of one before them, and say something else$"
    assert re.search(told, assay("explain", *PREFER).out, re.MULTILINE)


def test_lists_of_answers_count_as_many_rows(assay, pairs):
    pairs.write_text(json.dumps({"prompt": "S1>", "answers": ["1", "2", "3"]}) + "\n" + json.dumps(PAIRS[0]) + "\n")
    assert assay("explain", *PREFER, "--stages.0.batch", "2", "--json").json["derived"]["stages"][0]["rows"] == 6


@pytest.mark.slow
def test_a_run_is_trained_resumed_and_refused_on_another_file(assay, pairs, tmp_path):
    said = assay("train", *PREFER, "--folder", "run", "--plain", "--no-report")
    assert said.code == 2 and "pairs.jsonl, line 3 is the same as the held-out task" in said.err  # all pairs of four digits
    said = assay("train", *PREFER, "--folder", "run", "--plain", "--no-report", "--allow-contamination")
    assert said.code == 0, said.err
    assert "in order" in said.out
    assert 'data = "pairs.jsonl"' in (tmp_path / "run" / "run.toml").read_text()
    assert assay("resume", "run", "--steps", "4", "--plain").code == 0
    before = pairs.read_text()
    pairs.write_text(before + json.dumps(PAIRS[0] | {"chosen": "00"}) + "\n")
    said = assay("resume", "run", "--steps", "5", "--plain")
    assert said.code == 2 and "pairs.jsonl is not the file that the run began with" in said.err
    pairs.write_text(before)
    assert assay("resume", "run", "--steps", "5", "--plain").code == 0


@pytest.mark.parametrize(
    ("line", "words", "said"),
    [
        ('{"prompt": "S1>", "chosen": "1"}', [], "pairs.jsonl, line 7, field 'rejected': missing"),
        ('{"prompt": "S1>", "chosen": "x", "rejected": "1"}', [], "line 7, field 'chosen': the model's tokenizer lacks 'x'"),
        ("", ["--stages.0.batch", "7"], "Prefer.batch=7, but the data has 6 rows"),
        ("", ["--stages.0.data", "nothing.jsonl"], "Prefer.data: nothing.jsonl does not exist; give a .jsonl"),
        ("", ["--stages.0.data", ""], "Prefer.data is empty"),
    ],
)
@pytest.mark.parametrize("command", ["explain", "train"])
def test_what_is_wrong_is_said_before_anything_is_built(assay, pairs, command, line, words, said):
    pairs.write_text(pairs.read_text() + line + "\n")
    found = assay(command, *PREFER, *words)
    assert found.code == 2 and said in " ".join(found.err.split())


def test_the_page_of_preferences_runs(assay, tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "add" / "preferences.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (rows,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    (tmp_path / "mine_prefer.py").write_text(code)
    (tmp_path / "pairs.jsonl").write_text(rows)
    said = assay("explain", "mine_prefer.py:my_run", "--stages.0.batch", "3")
    assert said.code == 2 and "line 2: 1 answer where the objective compares at least 2" in " ".join(said.err.split())
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in PAIRS * 3))
    shrunk = ["--model.shape.hidden-size", "16", "--model.shape.num-layers", "1", "--evaluation.final-per-level", "2"]
    said = assay("train", "mine_prefer.py:my_run", "--stages.0.steps", "2", *shrunk, "--folder", "run", "--plain", "--no-report")
    assert said.code == 0, said.err
    found = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])["metrics"]
    for name in re.findall(r"`((?:score|loss|kl)/\w+)`", page):
        assert name in found, name


def test_a_stage_behind_another_one(assay, pairs):
    """The page's third command, on a run that needs no base."""
    words = ["--stages.1.kind", "Prefer", "--stages.1.data", "pairs.jsonl", "--stages.1.batch", "4", "--json"]
    stages = assay("explain", "mine.py:tiny", *words).json["derived"]["stages"]
    assert [s["stage"] for s in stages] == ["Reinforce", "Prefer"]
