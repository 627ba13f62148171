"""What needs an extra says so in one line: a base install has no torch, no httpx and no huggingface_hub."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LACKS = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from importlib.machinery import PathFinder

class Lacking(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {lacks!r} else PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Lacking
from assay.cli import main
told = []
for command in sys.argv[1:]:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = main(command.split())
    told.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(told))
"""
TRAIN = ("torch", "transformers", "tokenizers", "safetensors", "jinja2", "huggingface_hub", "httpx")


def base(folder: Path, commands: Sequence[str], lacks: tuple[str, ...] = TRAIN) -> list[tuple[int, str, str]]:
    """Commands where packages are missing, one after another in one process; of each its code, output and errors."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", LACKS.format(lacks=lacks), *commands],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return [tuple(told) for told in json.loads(done.stdout)]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    return tmp_path


@pytest.mark.slow
def test_a_command_that_needs_torch_says_so_in_one_line(model: Path) -> None:
    commands = (
        "train quickstart --folder r --plain",
        "eval model --tasks sort",
        "sample model a",
        "export model --to out",
        "tasks admit model sort",
    )
    for command, (code, out, err) in zip(commands, base(model, commands), strict=True):
        assert (code, out) == (1, "") and err.count("\n") == 1, (command, err)
        assert "torch is not installed: pip install 'assay-rl[train]'" in err, (command, err)
    assert not (model / "r").exists() and not (model / "out").exists()


def test_a_run_that_does_not_exist_is_no_name_on_the_hub(tmp_path: Path) -> None:
    commands = ("eval runs/missing", "sample runs/missing a", "export runs/missing --to out", "eval owner/model")
    *missing, (code, _, err) = base(tmp_path, commands)
    assert code == 2 and "owner/model does not exist" in err and "'assay-rl[hub]'" in err and err.count("\n") == 1, err
    for code, _, err in missing:
        assert code == 2 and "runs/missing does not exist" in err and "assay runs list" in err and err.count("\n") == 1, err


@pytest.mark.slow
def test_the_selftest_cannot_try_what_is_not_installed(tmp_path: Path) -> None:
    ((code, out, err),) = base(tmp_path, ["selftest --only mismatch/native weights/native throughput"])
    assert "0 failed" in out + err and "torch is not installed" in out + err, out + err
    assert code == 0


JUDGED = """
from dataclasses import replace
from assay.clients import Judge
from assay.recipes import quickstart
from assay.scorers import Criterion, Rubric, RubricJudge

def recipe(seed: int = 0):
    run = quickstart()
    stage = replace(run.stages[0], reward=RubricJudge(rubric=Rubric(criteria=(Criterion(name="a", text="b"),))))
    return replace(run, stages=(stage,), judges=(Judge(),))
"""


@pytest.mark.slow
def test_a_judge_without_httpx_is_refused_before_anything_is_evaluated(tmp_path: Path) -> None:
    (tmp_path / "judged.py").write_text(JUDGED)
    commands = ("train judged.py:recipe --folder r --plain", "explain judged.py:recipe")
    for code, out, err in base(tmp_path, commands, lacks=("httpx",)):
        assert (code, out) == (2, "") and err.count("\n") == 1, err
        assert "judge 'judge'" in err and "pip install 'assay-rl[judge]'" in err
    assert not (tmp_path / "r").exists()
