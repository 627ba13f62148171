"""The quickstart's page: every record that was made stands in it, and what it says of the machine is what was measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from assay.lab.gate import GATE_SEEDS
from evidence import pages as evidence
from evidence.cells.gate import CONTROLS


def items(share: float, levels: Sequence[int] = (9, 10), n: int = 50) -> list[dict[str, Any]]:
    return [{"id": f"{lv}/{i}", "level": lv, "values": [float(i < share * n)]} for lv in levels for i in range(n)]


def made(kind: str, seed: int, now: float) -> dict[str, Any]:
    values = {"base_greedy": 0.4, "base_sampled": 0.3, "now_greedy": now, "now_sampled": now}
    return {
        "kind": kind,
        "seed": seed,
        "steps": 400,
        "digest": f"{kind}{seed}",
        "cpu_seconds": 80.0 + seed,
        "base_cpu_seconds": 20.0,
        "machine": "Abacus, 2 cores",
        "load": [0.5 + seed, 2.25],
        **{k: items(v) for k, v in values.items()},
    }


@pytest.fixture
def cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Records of a study that is done; a test may change them before the page is made."""
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    records = {("rl", s): made("rl", s, 0.96) for s in GATE_SEEDS} | {
        (c, s): made(c, s, 0.1) for c in CONTROLS for s in GATE_SEEDS[:2]
    }
    for seed in GATE_SEEDS:
        folder = tmp_path / "cache" / "studies" / "quickstart" / f"rl-{seed}"
        folder.mkdir(parents=True)
        lines: list[dict[str, Any]] = [
            {"step": s, "metrics": {"eval/greedy/all": s / 400, "eval/sampled/all": s / 500, "eval/greedy/level_10": s / 600}}
            for s in (0, 200, 360, 400)
        ]
        for line in lines[1:]:
            line["metrics"] |= {"time/cpu": 0.1 * line["step"]}
        lines = lines[:2] if seed == 2 else lines  # one that ends before it is good
        (folder / "metrics.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines), encoding="utf-8")

    def run(maker: str, wanted: Sequence[tuple[str, int, int | None]], out: Path, workers: int) -> list[dict[str, Any]]:
        return [records[kind, seed] for kind, seed, _ in wanted]

    monkeypatch.setattr(evidence, "run_cells", run)
    return list(records.values())


def test_the_page_says_what_was_measured(cells: list[dict[str, Any]], tmp_path: Path) -> None:
    assert evidence.make(tmp_path / "docs", ["quickstart"]) == 0
    page = (tmp_path / "docs" / "quickstart.md").read_text(encoding="utf-8")
    for said in (
        "Machine: Abacus, 2 cores. One thread per run, 2 runs at a time.",
        "load average was 0.5 to\n4.5 when a cell began or ended",
        "Median 102, range 100 to 104.",
        "| 2 | 0.400 | **0.960** | 0.96 | never | 102 |",
        "| 3 | 0.400 | **0.960** | 0.96 | 56 | 103 |",
        "| inverted | 1 | 400 | 0.400 | 0.100 |",
        "All bars are met.",
    ):
        assert said in page, said
    data = json.loads((tmp_path / "docs" / "quickstart.json").read_text(encoding="utf-8"))
    assert len(data["cells"]) == len(GATE_SEEDS) + 2 * len(CONTROLS)
    assert data["cells"][0]["load"] == [0.5, 2.25]
    assert data["curves"]["4"]["hardest"] == [0.0, 200 / 600, 360 / 600, 400 / 600]
    assert data["cpu_seconds_to_bar"] == {"0": 56.0, "1": 56.0, "2": None, "3": 56.0, "4": 56.0}
    assert (tmp_path / "docs" / "quickstart.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_a_control_that_learns_at_its_second_seed_fails_the_page(
    cells: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (rose,) = [c for c in cells if (c["kind"], c["seed"]) == ("format", 1)]
    rose["now_greedy"] = items(0.6)
    assert evidence.make(tmp_path, ["quickstart"]) == 1
    assert "not met: control format, seed 1: upper end" in capsys.readouterr().out
    assert "Not met: control format, seed 1" in (tmp_path / "quickstart.md").read_text(encoding="utf-8")
