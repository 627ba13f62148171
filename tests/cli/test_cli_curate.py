"""`assay curate`: options become steps, and what is wrong is said before anything is read."""

import json
from pathlib import Path
from typing import Any

import pytest

from assay.curate import Pipeline

ROWS = [{"prompt": f"What is {i} + {i} in words that nobody else uses {chr(97 + i)}?", "answer": str(2 * i)} for i in range(8)]
STEP = """
from dataclasses import dataclass
from assay.curate import RowStep, drop

@dataclass(frozen=True)
class NoZero(RowStep):
    "Drops zeros."
    def look(self, row, ready):
        return drop("zero") if row.gold == "0" else None

other = 3
"""


def lines(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return str(path)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    lines(tmp_path / "in.jsonl", ROWS)
    lines(tmp_path / "eval.jsonl", ROWS[:1])
    return tmp_path


def test_json_is_the_manifest(assay, files: Path) -> None:
    done = assay("curate", "in.jsonl", "out", "--against", "eval.jsonl", "--test-share", "0", "--json")
    assert done.code == 0
    manifest = json.loads(done.out)
    assert manifest == json.loads((files / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert [s["step"] for s in manifest["counts"]["steps"]] == ["exact", "near_duplicates", "decontaminate"]
    assert (manifest["counts"]["train"], manifest["counts"]["rejected"]) == (7, 1)
    assert "assay curate: exact, near_duplicates, decontaminate" in done.err


@pytest.mark.parametrize(
    ("asked", "test"),
    [((), True), (("--against", "eval.jsonl"), False), (("--against", "eval.jsonl", "--test-share", ".5"), True)],
)
def test_a_named_test_leaves_all_rows_to_train_on_unless_a_split_is_asked_for(assay, files: Path, asked, test: bool) -> None:
    rows = [{"prompt": f"{chr(97 + i % 26)}{i}q{i * i}", "answer": "1"} for i in range(60)]
    lines(files / "many.jsonl", rows)
    counts = assay("curate", "many.jsonl", "out", "--near", "0", *asked, "--json").json["counts"]
    assert counts["train"] + counts["test"] == 60
    assert (counts["test"] > 0) is test


def test_every_option_becomes_its_step(assay, files: Path) -> None:
    prompts = [r["prompt"] for r in ROWS]
    lines(files / "weak.jsonl", [{"prompt": p, "passed": 1, "n": 4} for p in prompts])
    lines(files / "strong.jsonl", [{"prompt": p, "passed": 3, "n": 4} for p in prompts])
    lines(files / "solver.jsonl", [{"prompt": p, "answer": r["answer"]} for p, r in zip(prompts, ROWS, strict=True)])
    measured = {"history": [0, 1], "question": [[1, 0]], "don": 0.1, "nod": 1.0, "gradient": [1.0]}
    lines(files / "probe.jsonl", [{"prompt": p, **measured} for p in prompts])
    (files / "mine.py").write_text(STEP, encoding="utf-8")
    words = [
        "curate",
        "in.jsonl",
        "out",
        "--against",
        "eval.jsonl",
        "--substrings",
        "--max-answer",
        "50",
        "--verifier",
        "exact",
        "--template",
        "{answer}",
        "--solvers",
        "a=solver.jsonl",
        "--passes",
        "weak=weak.jsonl",
        "strong=strong.jsonl",
        "--band",
        "weak",
        "--unsolved",
        "nobody",
        "--hardest",
        "strong",
        "--limr",
        "probe.jsonl",
        "--limr-above",
        "-1",
        "--varied",
        "probe.jsonl",
        "--varied-count",
        "5",
        "--angles",
        "probe.jsonl",
        "--donod",
        "probe.jsonl",
        "--influence",
        "probe.jsonl",
        "--validation",
        "probe.jsonl",
        "--influence-share",
        "1",
        "--step",
        "mine.py:NoZero",
    ]
    done = assay(*words)
    assert (done.code, "model of --unsolved: --passes has none 'nobody'" in done.err) == (2, True)
    done = assay(*(w for w in words if w not in ("--unsolved", "nobody")), "--json")
    assert done.code == 0, done.err
    assert [s["step"] for s in json.loads(done.out)["counts"]["steps"]] == [
        "answer_form",
        "exact",
        "near_duplicates",
        "substrings",
        "decontaminate",
        "verifier_accepts",
        "solvers_agree",
        "pass_rates.weak",
        "pass_rates.strong",
        "weak_strong",
        "band.weak",
        "hardest",
        "learning_impact",
        "most_varied",
        "angle_order",
        "donod",
        "influential",
        "no_zero",
    ]


def test_a_table_for_people(assay, files: Path) -> None:
    done = assay("curate", "in.jsonl", "out", "--near", "0", "--question", "prompt", "--gold", "answer")
    assert done.code == 0
    assert "evaluation items stay" in done.err
    assert "rejected  0, each with its reason in out/rejected.jsonl" in done.out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["none.jsonl", "out"], "none.jsonl does not exist"),
        (["in.jsonl", "out", "--against", "none.jsonl"], "none.jsonl does not exist"),
        (["in.jsonl", "out", "--solvers", "a=b"], "--solvers needs --verifier"),
        (["in.jsonl", "out", "--set", "a=b"], "is a setting of a verifier"),
        (["in.jsonl", "out", "--verifier", "mth"], "did you mean 'math'"),
        (["in.jsonl", "out", "--passes", "weak"], "write NAME=FILE"),
        (["in.jsonl", "out", "--passes", "a=in.jsonl", "a=in.jsonl"], "names 'a' twice"),
        (["in.jsonl", "out", "--influence", "in.jsonl"], "needs --validation"),
        (["in.jsonl", "out", "--step", "mine.py:other"], "is no step"),
        (["in.jsonl", "out", "--near", "2"], "use a share in (0, 1]"),
    ],
)
def test_wrong_arguments_are_2_and_leave_nothing(assay, files: Path, words: list[str], why: str) -> None:
    (files / "mine.py").write_text(STEP, encoding="utf-8")
    done = assay("curate", *words)
    assert done.code == 2
    assert why in done.err
    assert not (files / "out").exists()


def test_an_error_before_the_first_row_is_1_and_can_be_mended(assay, files: Path) -> None:
    lines(files / "weak.jsonl", [{"prompt": "q", "passed": 3, "n": 1}])
    words = ("curate", "in.jsonl", "out", "--passes", "weak=weak.jsonl")
    done = assay(*words)
    assert done.code == 1
    assert "weak.jsonl, line 1: passed=3, n=1" in done.err
    lines(files / "weak.jsonl", [{"prompt": "q", "passed": 1, "n": 1}])
    assert assay(*words).code == 0
    lines(files / "weak.jsonl", [{"prompt": "q", "passed": 0, "n": 1}])
    assert "its references differ" in assay(*words).err
    assert assay(*words, "--fresh").code == 0


def test_ctrl_c_says_how_to_go_on(assay, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Pipeline, "run", stopped)
    done = assay("curate", "in.jsonl", "out")
    assert done.code == 130
    assert "the same command continues" in done.err
