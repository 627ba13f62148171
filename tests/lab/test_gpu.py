"""The GPU's rows: operations, peaks, medians and records by hand; a page that says what was measured; a program that resumes."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from assay.core.errors import DataError, UnknownNameError
from assay.runs.storage import write_json
from assay.runtime.settings import DecoderShape
from evidence import gpu_page
from evidence.gpu import KINDS, SHAPES, WORK, Row, Spread, mfu, peak_of, record, recorded_row, rows_of, training_flops
from evidence.pages import STUDIES

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
WHERE = {"device": "cuda", "gpu": "NVIDIA H200", "torch": "2.13.0", "transformers": "5.23.0", "python": "3.11.7", "assay": "1"}


def test_operations_are_those_counted_by_hand() -> None:
    """One layer, two query heads that share one key head, a head of its own size; rows of 2 and 3 tokens, 4 of them read."""
    shape = DecoderShape(
        vocab_size=7, hidden_size=6, num_layers=1, num_heads=2, num_kv_heads=1, head_dim=4, intermediate_size=5, tied=False
    )
    q, k, v, o, mlp = 8 * 6, 4 * 6, 4 * 6, 6 * 8, 3 * 6 * 5
    assert training_flops(shape, [2, 3], 4) == 6 * (q + k + v + o + mlp) * 5 + 6 * 7 * 6 * 4 + 12 * 8 * (3 + 6)
    two = replace(shape, num_layers=2)
    assert training_flops(two, [2, 3], 0) == 2 * training_flops(shape, [2, 3], 0)


def test_large_models_cost_about_six_operations_a_weight() -> None:
    """The rule of thumb 6 N D, where rows are short beside the width; and the sizes are those of the models named."""
    shape = SHAPES["1.7B"]
    assert shape.parameters == 1_720_574_976 and SHAPES["0.6B"].parameters == 596_049_920
    assert training_flops(shape, [16], 16) == pytest.approx(6 * shape.parameters * 16, rel=0.005)


def test_share_of_a_peak() -> None:
    assert peak_of("NVIDIA H100 PCIe") == 756e12 and peak_of("NVIDIA H100 80GB HBM3") == 989e12
    assert peak_of("NVIDIA A100-SXM4-80GB") == 312e12 and peak_of("NVIDIA L4") == 121e12
    assert peak_of("NVIDIA L40") is None and peak_of("NVIDIA H2000") is None, "no other device is taken for one of the table"
    assert mfu(312e12, 4.0, "NVIDIA A100-PCIE-40GB") == 0.25 and mfu(1.0, 1.0, "cpu") is None


def test_the_range_covers_the_median_as_often_as_it_says() -> None:
    """All four draws lie on one side of the median of what they are drawn from in 2 of 16 cases."""
    from itertools import product

    hits = [min(draws) <= 0.5 <= max(draws) for draws in product((0.0, 1.0), repeat=4)]
    assert sum(hits) / len(hits) == Spread((0.0,) * 4).confidence
    with pytest.raises(DataError, match="a median of 1 repeats has no interval"):
        Spread((1.0,))


def test_rows_are_chosen_by_kind_and_by_name() -> None:
    names = [row.name for row in rows_of(["train", "decode"], ["1.7B", "0.6B"])]
    assert names == ["decode-0.6B", "decode-1.7B", "train-0.6B", "train-1.7B"]
    assert rows_of(["step-tiny"], ["0.6B"]) == (Row("step", "tiny"),)
    assert len(rows_of(list(KINDS), ["0.6B", "1.7B"])) == 2 * len(KINDS)
    with pytest.raises(UnknownNameError, match=r"did you mean 'decode'"):
        rows_of(["decod"], ["0.6B"])
    with pytest.raises(UnknownNameError, match="size"):
        rows_of(["decode"], ["8B"])


def test_work_that_another_trainer_would_split_otherwise_is_refused() -> None:
    assert WORK["0.6B"].micro_rows == 16 and WORK["0.6B"].rollouts == 64
    with pytest.raises(DataError, match=r"64 rollouts of 256 \+ 256 tokens do not go into equal micro-batches"):
        replace(WORK["0.6B"], micro=512 * 12)


def test_a_record_holds_for_its_work_device_and_versions(tmp_path: Path) -> None:
    row, work = Row("decode", "tiny"), WORK["tiny"]
    assert recorded_row(tmp_path, row, work, WHERE) is None
    record(tmp_path, row, work, WHERE, {"seconds": [1.0, 2.0], "tokens": [4, 4]})
    found = recorded_row(tmp_path, row, work, WHERE)
    assert found is not None and found["numbers"] == {"seconds": [1.0, 2.0], "tokens": [4, 4]}
    assert recorded_row(tmp_path, row, replace(work, answer=9), WHERE) is None
    assert recorded_row(tmp_path, row, work, {**WHERE, "gpu": "NVIDIA H100 PCIe"}) is None
    with pytest.raises(DataError, match=r"train-tiny: seconds is nan; nothing is written"):
        record(tmp_path, Row("train", "tiny"), work, WHERE, {"seconds": [float("nan")]})
    assert not (tmp_path / "train-tiny.json").exists()


# ---- the page


def put(folder: Path, kind: str, size: str = "1.7B", where: dict[str, Any] | None = None, **numbers: Any) -> None:
    """A record as the program writes it; six repeats of one second unless told."""
    plain = {"seconds": [1.0] * 6, "tokens": [100] * 6}
    record(folder / "gpu", Row(kind, size), WORK[size], where or WHERE, plain | numbers)


def put_step(folder: Path, kind: str = "step", other: float = 0.02, k3: float = 1e-4, **numbers: Any) -> None:
    parts = {"time/other": [other] * 6, "time/step": [1.0] * 6}
    mismatch = {"engine/mismatch_k3": k3, "engine/max_ratio": 1.25, "engine/ess_rollouts": 0.875}
    memory = {"memory_used": 3 * 2**30, "memory_predicted": 4 * 2**30}
    put(folder, kind, parts=parts, mismatch=mismatch, proved=[1.0] * 7, **memory, **numbers)


def cells(folder: Path) -> dict[str, list[str]]:
    """Cells behind the name of each line of the table."""
    lines = [line[2:-2].split(" | ") for line in (folder / "gpu.md").read_text().splitlines() if line.startswith("| ")]
    return {line[0]: line[1:] for line in lines[1:]}


def test_what_was_not_measured_is_unverified(tmp_path: Path) -> None:
    """Nothing at first; records of a CPU or of other work are none."""
    assert gpu_page.make_page(tmp_path) == [] and "gpu" in STUDIES
    put(tmp_path, "decode", where={**WHERE, "device": "cpu"})
    record(tmp_path / "gpu", Row("train", "1.7B"), replace(WORK["1.7B"], rows=1), WHERE, {"seconds": [1.0] * 6})
    assert gpu_page.make_page(tmp_path) == []
    page = (tmp_path / "gpu.md").read_text()
    assert "18 of 18 rows were not measured" in page and "No GPU has run this yet." in page
    assert all(
        found[:2] == ["unverified"] * 2 for name, found in cells(tmp_path).items() if name not in ("row", "---|---|---|---")
    )


def test_the_page_has_medians_and_what_is_not_met(tmp_path: Path) -> None:
    put(tmp_path, "decode", seconds=[0.5, 1.0, 1.0, 1.0, 1.0, 2.0], tokens=[1000] * 6)
    put(tmp_path, "train", flops=0.5 * 989e12)
    put_step(tmp_path)
    put_step(tmp_path, "step-compiled", seconds=[0.8] * 6)
    put(tmp_path, "trl", seconds=[4.0] * 6)
    put(tmp_path, "trl-static", seconds=[2.0, 2.0, 2.0, 2.0, 2.0, 2.4])
    assert gpu_page.make_page(tmp_path) == []
    found = {name: row[1] for name, row in cells(tmp_path).items()}
    assert found["decode, tokens/s"] == "1,000 [500, 2,000]"
    assert found["forward and backward, MFU"] == "50.0% [50.0%, 50.0%]"
    assert found["TRL's quickest step over assay's"] == "2.50 [2.50, 3.00]"
    assert found["the framework's share of a step"] == "2.0% [2.0%, 2.0%]"
    assert found["memory used over predicted"] == "0.75 (3.0 GiB over 4.0 GiB)"
    assert found["mismatch: k3, largest ratio, ESS of rollouts"] == "1.0e-04, 1.25, 0.875"
    assert found["decode, compiled step, tokens/s"] == "unverified"
    assert "12 of 18 rows were not measured" in (tmp_path / "gpu.md").read_text()

    put(tmp_path, "train", flops=0.39 * 989e12)
    put(tmp_path, "train-compiled", seconds=[0.5] * 6, flops=0.39 * 989e12)
    assert gpu_page.make_page(tmp_path) == []  # the quicker one counts
    assert {name: row[1] for name, row in cells(tmp_path).items()}["forward and backward, MFU of the quicker"].startswith("78.0%")
    put(tmp_path, "train-compiled", seconds=[2.0] * 6, flops=0.39 * 989e12)
    put_step(tmp_path, "step-compiled", other=0.04, k3=0.01, seconds=[1.5] * 6)
    put_step(tmp_path, "step", other=0.04, k3=0.01, seconds=[1.25] * 6)
    failures = gpu_page.make_page(tmp_path)
    assert failures == [
        "1.7B: TRL's step takes 1.60 times assay's, asked 2.0",
        "1.7B: MFU of forward and backward 39.0%, asked 40%",
        "1.7B: 4.0% of a step is the framework's, asked 3% at most",
        "1.7B: k3 0.01 is beyond the alarm's bar 0.005",
    ]
    assert "Not met: 1.7B" in (tmp_path / "gpu.md").read_text()


def test_the_page_shows_the_self_test_of_a_gpu(tmp_path: Path) -> None:
    gpu_page.make_page(tmp_path)
    assert "Self-test" not in (tmp_path / "gpu.md").read_text()
    parts = [
        {"name": "gpu/learner", "shows": "devices agree", "outcome": "passed", "numbers": {"max_nats": 9.5e-7}, "why": ""},
        {"name": "gpu/ranks", "shows": "ranks agree", "outcome": "not available", "numbers": {}, "why": "needs 2 GPU(s)"},
        {"name": "resume", "shows": "something else", "outcome": "passed", "numbers": {}, "why": ""},
    ]
    (tmp_path / "gpu").mkdir()
    write_json(tmp_path / "gpu" / "selftest.json", {"date": "2026-11-26", "machine": "one GPU", "parts": parts})
    gpu_page.make_page(tmp_path)
    page = (tmp_path / "gpu.md").read_text()
    assert "| devices agree | passed | max_nats 9.5e-07 |" in page and "something else" not in page
    assert "| ranks agree | not available | needs 2 GPU(s) |" in page


def test_other_devices_are_not_compared_and_unknown_ones_have_no_peak(tmp_path: Path) -> None:
    elsewhere = {**WHERE, "gpu": "Acme 9000"}
    put_step(tmp_path)
    put(tmp_path, "trl", seconds=[1.0] * 6, where=elsewhere)
    put(tmp_path, "train", flops=1e12, where=elsewhere)
    assert gpu_page.make_page(tmp_path) == []
    found = {name: row[1] for name, row in cells(tmp_path).items()}
    assert found["TRL's quickest step over assay's"] == "unverified"
    assert found["forward and backward, MFU"] == "no peak is known of Acme 9000"


def test_an_update_that_was_not_proved_is_said(tmp_path: Path) -> None:
    put_step(tmp_path)
    path = tmp_path / "gpu" / "step-1.7B.json"
    one = json.loads(path.read_text())
    one["numbers"]["proved"][3] = 0.0
    path.write_text(json.dumps(one))
    assert gpu_page.make_page(tmp_path) == ["1.7B: an update was not proved to have arrived"]


# ---- the program


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import gpu

    return gpu


def test_rows_that_are_there_are_not_measured_again(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One row fails, the others leave records; the second call measures the one alone."""
    started, broken = list[str](), {"train-tiny"}

    def alone(row: Row, device: str, folder: Path, left: float) -> str:
        started.append(row.name)
        if row.name in broken:
            return "its process ended with 1: OutOfMemoryError"
        record(folder, row, WORK[row.size], program.where_of(device), {"seconds": [1.0, 3.0], "tokens": [4, 6]})
        return ""

    monkeypatch.setattr(program, "_alone", alone)
    rows = rows_of(["decode", "train"], ["tiny"])
    assert program.work_off(rows, "cpu", tmp_path, 60.0) == 1
    said = capsys.readouterr().out
    assert "train-tiny: not measured: its process ended with 1: OutOfMemoryError" in said
    assert '"seconds": [1.0, 2.0, 3.0], "tokens_per_second": [2.0, 3.0, 4.0]' in said
    broken.clear()
    assert program.work_off(rows, "cpu", tmp_path, 60.0) == 0
    assert started == ["decode-tiny", "train-tiny", "train-tiny"]
    assert program.work_off(rows_of(["step"], ["tiny"]), "cpu", tmp_path, 0.0) == 1
    assert "no time is left" in capsys.readouterr().out and len(started) == 3


def test_machines_that_cannot_measure_are_told_why(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    import gpu_trl

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert "finds no CUDA device here" in program.refusal(rows_of(["step"], ["0.6B"]), "cuda")
    assert "says nothing of a GPU; use --sizes tiny" in program.refusal(rows_of(["step"], ["0.6B"]), "cpu")
    monkeypatch.setattr(gpu_trl, "missing", lambda: "TRL is not here")
    assert program.refusal(rows_of(["trl"], ["tiny"]), "cpu") == "TRL is not here"
    assert program.refusal(rows_of(["trl", "decode"], ["tiny"]), "cpu") == "", "the others can be measured"


@pytest.mark.prove
def test_the_program_runs_with_tiny_shapes(tmp_path: Path) -> None:
    """Decoding, training and whole steps on a CPU, TRL's too where it is installed; the page takes none of it."""
    rows = ["decode", "train", "step", "trl"]
    command = [sys.executable, str(BENCHMARKS / "gpu.py"), "--device", "cpu", "--sizes", "tiny", "--out", str(tmp_path / "gpu")]
    ended = subprocess.run([*command, "--rows", *rows], check=False, capture_output=True, text=True, timeout=600)
    measured = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "gpu").glob("*.json")}
    assert {"decode-tiny", "train-tiny", "step-tiny"} <= measured.keys(), ended.stdout + ended.stderr
    assert ("trl-tiny" in measured) == ("TRL is not here" not in ended.stdout) == (ended.returncode == 0)
    work = WORK["tiny"]
    for one in measured.values():
        assert one["work"] == asdict(work) and len(one["numbers"]["seconds"]) == work.repeats
    step, flops = measured["step-tiny"]["numbers"], measured["train-tiny"]["numbers"]["flops"]
    assert flops == training_flops(SHAPES["tiny"], [work.length] * work.rows, work.rows * work.length * 7 // 8)
    assert step["proved"] == [1.0] * (work.repeats + 1) and step["memory_parts"]["anchors"] == 0
    assert 0 < step["mismatch"]["engine/mismatch_k3"] < 5e-3 and max(step["tokens"]) == work.rollouts * work.answer
    assert sum(step["memory_parts"].values()) == step["memory_predicted"]
    assert gpu_page.make_page(tmp_path) == []
