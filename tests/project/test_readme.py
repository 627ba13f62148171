"""What the README shows is run, and what it names exists."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import assay
import assay_control.testing
from assay.cli import COMMANDS, main
from assay.recipes import base, quickstart
from assay.runtime import DecoderShape, char_tokenizer, init_model, save_model
from assay.train.reinforce import Reinforce
from assay.train.stages import WarmUp

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
WORDS = " ".join(README.split())
SHAPE = DecoderShape(
    vocab_size=14, hidden_size=32, num_layers=1, num_heads=2, num_kv_heads=1, head_dim=16, intermediate_size=32, max_positions=32
)


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def run_example(code: str, folder: Path) -> list[str]:
    """Runs the code as a file in ``folder``, as a user would; the lines that it prints."""
    (folder / "example.py").write_text(code, encoding="utf-8")
    environment = {"ASSAY_CACHE": str(folder / "cache"), "PYTHONPATH": str(Path(assay.__file__).parents[1])}
    quiet = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    done = subprocess.run(
        [sys.executable, "example.py"],
        cwd=folder,
        env={**os.environ, **environment, **quiet},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.prove
def test_the_example_runs_on_another_model(tmp_path: Path) -> None:
    """The text itself; only a tiny model folder instead of the base, and three steps, stand in its call."""
    tokenizer = char_tokenizer("0123456789S>")
    save_model(init_model(SHAPE, tokenizer, seed=0, init="fan_in"), tmp_path / "model")
    code = blocks()[0]
    assert code.count("steps=100)") == 1
    accuracies, answers = run_example(code.replace("steps=100)", 'steps=3, model="model")'), tmp_path)
    assert accuracies == "0.0 0.0"  # three steps teach nothing
    assert len(re.findall(r"'[0-9S>]*'", answers)) == 4
    run = tmp_path / "runs" / "seven-digits"
    assert (run / "done.json").exists()
    assert (run / "rollouts.jsonl").read_text(encoding="utf-8").count('"reward"') >= 8
    assert {path.name for path in tmp_path.glob("cache/*")} <= {"kernels"}  # no base was made


@pytest.mark.prove
def test_the_example_teaches_what_it_says(tmp_path: Path) -> None:
    """Unchanged, base included."""
    accuracies, answers = run_example(blocks()[0], tmp_path)
    before, after = map(float, accuracies.split())
    assert before <= 0.4
    assert after >= 0.8
    assert "'1234569'" in answers


def test_the_quickstart_is_the_one_described() -> None:
    (shown,), (practised,) = base().stages, quickstart().stages
    assert isinstance(shown, WarmUp) and isinstance(practised, Reinforce)
    size = DecoderShape(vocab_size=98).parameters / 1e6
    assert f"base of {size:.2f}M parameters" in WORDS
    assert f"examples of sorting {min(shown.levels)} to {max(shown.levels)} digits" in WORDS
    levels = quickstart().tasks.arms()["sort"]
    assert f"RL on {min(levels)} to {max(levels)} digits" in WORDS
    assert f"{practised.steps} steps of {practised.groups} prompts with {practised.group_size} rollouts each" in WORDS
    assert f"Lengths {max(shown.levels) + 1} to {max(levels)} are never demonstrated" in WORDS


def test_every_command_exists() -> None:
    named = re.findall(r"^ +assay (\w+)", README, flags=re.MULTILINE)
    assert {"eval", "sample", "resume", "explain", "train", "runs", "tasks"} <= set(named) <= set(COMMANDS)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert {"quickstart", "test"} <= set(re.findall(r"^ +make (\w+)", README, flags=re.MULTILINE)) <= targets


def test_the_tasks_that_are_sampled_exist(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = re.findall(r"^ +assay (tasks sample [^#\n]*[^ #\n])", README, flags=re.MULTILINE)
    assert main(line.split()) == 0
    assert len(capsys.readouterr().out.splitlines()) == 5


def test_every_named_file_exists() -> None:
    named = re.findall(r"(?:`|\]\()((?:docs|src)/[\w./-]+|[A-Z]+(?:\.md)?)(?:`|\)|#)", README)
    missing = [name for name in named if not (ROOT / name).exists()]
    assert len(named) >= 6
    assert [
        name for name in missing if name != "docs/evidence/quickstart.md" or (ROOT / "docs/evidence/quickstart.json").exists()
    ] == []


def test_the_package_table_is_complete() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE)
    packages = {p.parent.name for p in (ROOT / "src" / "assay").glob("*/__init__.py")}
    assert len(listed) == len(set(listed))
    assert set(listed) == packages


def test_the_parts_that_contributing_walks_through_are_offered() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([A-Z][a-z]\w+|check_\w+)`", text)) - {"Makefile"}
    assert {"Entropy", "Classification", "Scalarise", "check_term", "check_verifier", "check_task_source"} <= named
    offered = {name for package in assay.__all__ for name in getattr(assay, package).__all__} | set(assay_control.testing.__all__)
    assert named - offered == set()


def test_the_pages_are_no_wider_than_the_code() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    assert [line for page in pages for line in page.read_text(encoding="utf-8").splitlines() if len(line) > 130] == []


def test_make_test_leaves_slow_tests_out_and_runs_them_where_coverage_is_recorded() -> None:
    own = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "COV")}
    quick, whole = (
        subprocess.run(["make", "--dry-run", "test", *more], cwd=ROOT, env=own, capture_output=True, text=True, check=True).stdout
        for more in ((), ("COV=1",))
    )
    assert '-m "not slow and' in quick and "--cov-append" not in quick
    assert "not slow" not in whole and "--cov-append" in whole
