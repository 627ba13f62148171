"""The learning gate: the main job learns, and what must not learn does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.core.errors import AssayError
from assay.core.util.paths import cache_folder
from assay.lab.cells import run_cells
from assay.lab.gate import GATE_SEEDS, LearningGate, accuracy, judge
from evidence.cells.gate import CONTROLS, MAKER

CONTROL_STEPS = 120
"""Controls of RL run for fewer steps here: a wrong reward has destroyed the policy long before."""


def items(values: list[float], level: int = 10) -> list[dict[str, object]]:
    return [{"id": f"{level}/{i}", "level": level, "values": [v]} for i, v in enumerate(values)]


def record(kind: str, seed: int, base: float, now: float, n: int = 100) -> dict[str, object]:
    def right(share: float) -> list[dict[str, object]]:
        return items([1.0] * round(share * n) + [0.0] * (n - round(share * n)))

    return {
        "kind": kind,
        "seed": seed,
        "base_greedy": right(base),
        "now_greedy": right(now),
        "cpu_seconds": 50.0,
        "base_cpu_seconds": 25.0,
    }


def test_accuracy_counts_right_answers() -> None:
    assert accuracy(items([1.0, 0.0, 1.0, 1.0])) == 0.75


def test_a_good_set_of_cells_passes() -> None:
    gate = judge([record("rl", s, 0.5, 0.95) for s in range(5)] + [record("random", 0, 0.5, 0.1)])
    assert gate.failures() == []
    assert gate.cpu_seconds[0] == 75.0
    assert gate.controls["random", 0][1] < 0


def test_each_bar_can_fail() -> None:
    weak = LearningGate(
        greedy={0: 0.7, 1: 0.85, 2: 0.85},
        base={0: 0.65, 1: 0.5, 2: 0.5},
        hardest={0: 0.1, 1: 0.6, 2: 0.6},
        controls={("random", 1): (-0.1, 0.05)},
        cpu_seconds={0: 1.0},
    )
    text = " ".join(weak.failures())
    for word in ("median", "seed 0: greedy", "seed 0: base", "hardest", "control random, seed 1: upper end +0.050"):
        assert word in text


@pytest.mark.parametrize("seed", [0, 1])
def test_a_control_that_rises_at_one_seed_alone_is_seen(seed: int) -> None:
    rose = [record("format", s, 0.5, 0.6 if s == seed else 0.4) for s in (0, 1)]
    gate = judge([*(record("rl", s, 0.5, 0.95) for s in GATE_SEEDS), *rose])
    assert set(gate.controls) == {("format", 0), ("format", 1)}
    (failure,) = gate.failures()
    assert failure.startswith(f"control format, seed {seed}: upper end")


@pytest.mark.prove
def test_the_learning_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "kernels").symlink_to(cache_folder() / "kernels")  # else each cell that begins compiles the library
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    cells = [("rl", s, None) for s in GATE_SEEDS] + [(k, 0, None if k == "longer" else CONTROL_STEPS) for k in CONTROLS]
    records = run_cells(MAKER, cells, tmp_path / "gate")
    gate = judge(records)
    print("\nlearning gate:", json.dumps({"greedy": gate.greedy, "base": gate.base, "hardest": gate.hardest}))
    print("controls:", gate.controls, "CPU-seconds:", gate.cpu_seconds)
    assert set(gate.controls) == {(k, 0) for k in CONTROLS}
    assert gate.failures() == []


def test_a_failed_cell_says_why(tmp_path: Path) -> None:
    with pytest.raises(AssayError, match="no-such-control"):
        run_cells(MAKER, [("no-such-control", 0, 1)], tmp_path)
