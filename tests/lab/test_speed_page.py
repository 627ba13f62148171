"""The page of speed: what benchmarks printed stands in it, and each bar can be missed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.core.errors import DataError
from evidence import pages as evidence
from evidence.speed_page import DECODE, FIRST, ROUNDED, STEP

Rows = list[dict[str, Any]]


def decoded(engine: str, model: str, threads: int, times: float) -> dict[str, Any]:
    row = {"engine": engine, "model": model, "threads": threads, "case": "even", "load": 0.5 + threads, "repeats": 5}
    ratios = {f"to_{p}_{c}": [times, times + 1, times + 2] for p in ("generate", "generate_batch") for c in ("cpu", "wall")}
    return {**row, **ratios, "assay_tokens_per_cpu_s": 12345, "of_product": 0.8}


def stepped(model: str, case: str, times: float) -> dict[str, Any]:
    ratio = [times + 0.5, times, times + 1]
    return {
        "model": model,
        "case": case,
        "threads": 1,
        "load": 1.0,
        "versions": {"trl": "1.16.0"},
        "gradients_differ_by": 2e-6,
        "trl_over_assay_cpu": ratio,
        "trl_over_assay_wall": ratio,
        "assay_cpu_ms": 500.0,
        "trl_cpu_ms": 1700.0,
        "assay_parts_cpu_ms": {"engine": 120.0, "forward": 130.0, "backward": 240.0, "optimizer": 1.0, "publish": 9.0},
        "trl_parts_cpu_ms": {"generate": 670.0, "forward": 369.0, "backward": 640.0, "rest": 21.0},
    }


@pytest.fixture
def lines() -> tuple[Rows, Rows, dict[str, float | None]]:
    """Of a machine that meets each bar, but just."""
    bars = {"native": DECODE, "native, bfloat16": ROUNDED}
    decode: Rows = [decoded(e, model, n, bar) for e, of in bars.items() for (model, n), bar in of.items()]
    step: Rows = [stepped(model, case, bar) for (model, case), bar in STEP.items()]
    return decode, step, {"0": 31.0, "1": 60.0}


def write(folder: Path, machine: str, decode: Rows, step: Rows) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    head = {"machine": machine, "decoder": "C++ 0123", "batch": 128, "new": 64}
    for name, rows in (("decode", decode), ("step", step)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in [head, *rows]), encoding="utf-8")


def page(folder: Path, lines: tuple[Rows, Rows, dict[str, float | None]]) -> tuple[int, str]:
    decode, step, soon = lines
    write(folder / "speed" / FIRST, "Abacus, 2 cores", decode, step)
    (folder / "quickstart.json").write_text(json.dumps({"cpu_seconds_to_bar": soon}), encoding="utf-8")
    code = evidence.make(folder, ["speed"])
    return code, (folder / "speed.md").read_text(encoding="utf-8")


def test_the_page_says_what_was_measured(lines: tuple[Rows, Rows, dict[str, float | None]], tmp_path: Path) -> None:
    code, text = page(tmp_path, lines)
    assert code == 0
    spread = "4.0 [3.0, 5.0]"
    for said in (
        "All bars are met.",
        "Machine: Abacus, 2 cores.\nLibrary: C++ 0123. Load average 1.5 to 2.5",
        f"| 1M | even | 1 | 12,345 | {spread} | {spread} | {spread} | {spread} | 0.80 |",
        "3.0 (1M, one thread), 1.8 (4M, one thread), 1.5 (12M, one thread), 5.0 (1M, 2 threads); 0.75 of",
        "| 1M | third | 1 | 5.50 [5.00, 6.00] | 5.50 [5.00, 6.00] | 500 | 1,700 | 2.0e-06 |",
        "| 4M | same | 120 | 130 | 240 | 1 | 9 | 670 | 369 | 640 | 21 |",
        "take\n1.8% to 1.8% of assay's step; the bar is 2%.",
        "31, 60 for seeds 0, 1.",
    ):
        assert said in text, said


def test_it_says_which_lines_computed_every_pass(lines: tuple[Rows, Rows, dict[str, float | None]], tmp_path: Path) -> None:
    said = "The library of these lines computed every\nforward pass again."
    assert said in page(tmp_path, lines)[1]
    for row in lines[1]:
        row["tokens_recalled"] = 0.0
    assert said not in page(tmp_path, lines)[1]


def slow_peer(lines: tuple[Rows, Rows, dict[str, float | None]]) -> None:
    lines[0][0]["to_generate_batch_wall"][0] = 2.9


def other_case(lines: tuple[Rows, Rows, dict[str, float | None]]) -> None:
    lines[0][1]["case"] = "joining"


def without_batches(lines: tuple[Rows, Rows, dict[str, float | None]]) -> None:
    del lines[0][2]["to_generate_batch_cpu"], lines[0][2]["to_generate_batch_wall"]


def products(lines: tuple[Rows, Rows, dict[str, float | None]]) -> None:
    lines[0][0]["of_product"] = 0.74


def rounded(lines: tuple[Rows, Rows, dict[str, float | None]]) -> None:
    lines[0][-1]["to_generate_cpu"][0] = 2.4


def step(lines: tuple[Rows, Rows, dict[str, float | None]]) -> None:
    lines[1][1]["trl_over_assay_cpu"][1] = 1.9


def packing(lines: tuple[Rows, Rows, dict[str, float | None]]) -> None:
    lines[1][1]["assay_parts_cpu_ms"]["publish"] = 10.5


def no_step(lines: tuple[Rows, Rows, dict[str, float | None]]) -> None:
    del lines[1][2]


def seed(lines: tuple[Rows, Rows, dict[str, float | None]]) -> None:
    lines[2]["1"] = 60.5


def never(lines: tuple[Rows, Rows, dict[str, float | None]]) -> None:
    lines[2]["0"] = None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (slow_peer, "native, 1M, one thread: 2.9 times as fast, asked 3.0"),
        (other_case, "native, 4M, one thread: not measured beside both"),
        (without_batches, "native, 12M, one thread: not measured beside both"),
        (products, "1M: products at 0.74 of PyTorch's rate, asked 0.75"),
        (rounded, "native, bfloat16, 12M, one thread: 2.4 times as fast, asked 2.5"),
        (step, "step of 4M, same: TRL's takes 2.5 times assay's, asked 2.0"),
        (packing, "step of 4M, same: new weights take 2.1% of it, asked 2%"),
        (no_step, "step of 1M, third: not measured"),
        (seed, "quickstart, seed 1: 60.5 CPU-seconds to .90, asked 60"),
        (never, "quickstart, seed 0: None CPU-seconds to .90, asked 60"),
    ],
)
def test_each_bar_can_be_missed(
    change: Callable[[Any], None],
    said: str,
    lines: tuple[Rows, Rows, dict[str, float | None]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    change(lines)
    code, text = page(tmp_path, lines)
    assert code == 1
    assert capsys.readouterr().out == f"not met: {said}\n"
    assert f"Not met: {said}." in text


def test_what_another_machine_misses_is_told_and_fails_nothing(
    lines: tuple[Rows, Rows, dict[str, float | None]], tmp_path: Path
) -> None:
    slow = [decoded("native", "1M", 1, 2.5), *lines[0][1:]]
    write(tmp_path / "speed" / "Slide rule", "Slide rule, 1 core", slow, lines[1])
    code, text = page(tmp_path, lines)
    assert code == 0
    first, _, other = text.partition("\n## On another machine: Slide rule\n")
    assert "All bars are met." in first
    assert "Slide rule" not in first
    assert "Slide rule, 1 core. Library: C++ 0123. Load average 1.0 to 2.5." in other
    assert "these are not met here:\n\n- native, 1M, one thread: 2.5 times as fast, asked 3.0\n" in other


def test_lines_that_are_missing_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"decode\.jsonl is missing; docs/evidence/speed\.md names the command"):
        evidence.make(tmp_path, ["speed"])
