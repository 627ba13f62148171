"""The page of rung L1: what the cells measured stands in it, and what is not as it should be is said."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from assay.core.errors import UnknownNameError
from assay.lab.controls import RandomReward
from assay.recipes.long_answers import ENGINES, PRACTISED, SHAPE, traces, traces_base, traces_cell
from assay.selftest.selftest_part import NotAvailable
from assay.tasks import family
from assay.train.models import scratch_tokenizer
from evidence import rung_page

STEPS = [
    {"eval/greedy/all": 0.3},
    {"time/step": 40.0, "tokens/sampled": 9000.0, "rollouts/sampled": 64.0, "time/generate": 25.0, "proof/state": 1.0},
    {"time/step": 60.0, "tokens/sampled": 3800.0, "rollouts/sampled": 64.0, "time/generate": 15.0, "proof/state": 1.0},
]


def items(share: float, n: int = 60) -> list[dict[str, Any]]:
    return [{"id": str(i), "level": 6, "values": [float(i < share * n)]} for i in range(n)]


def record(kind: str, now: float) -> dict[str, Any]:
    values = {"base_greedy": 0.4, "base_sampled": 0.1, "now_greedy": now, "now_sampled": now}
    return {
        "kind": kind,
        "seed": 0,
        "steps": 2,
        "digest": f"{kind}-digest",
        "cpu_seconds": 61.2,
        "machine": "Abacus, 2 cores",
        "load": [0.5, 3.25],
        **{name: items(share) for name, share in values.items()},
    }


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """A study that is done; a test may change its records before the page is made."""
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    records = {kind: record(kind, 0.1 if kind == "random" else 0.9) for kind in rung_page.KINDS}
    folder = tmp_path / "cache" / "studies" / "rung_l1"
    for kind in records:
        (folder / f"{kind}-0").mkdir(parents=True)
        (folder / f"{kind}-0" / "metrics.jsonl").write_text("".join(json.dumps({"metrics": m}) + "\n" for m in STEPS))
    (folder / "vllm-0.json").write_text("{}")
    (folder / "server.json").write_text(json.dumps({"cpu_seconds": 99.0, "mismatch": {"max_nats": 2e-5, "mean_nats": 1e-6}}))

    def run(maker: str, wanted: Sequence[tuple[str, int, int | None]], out: Path, workers: int) -> list[dict[str, Any]]:
        assert maker == "assay.recipes.long_answers:traces_cell" and out == folder
        return [records[kind] for kind, _, _ in wanted]

    monkeypatch.setattr(rung_page, "run_cells", run)
    monkeypatch.setattr(rung_page, "_mismatch", lambda kind, work: {"max_nats": 3e-6, "mean_nats": 4e-7})
    return records


def test_the_page_says_what_was_measured(work: Any, tmp_path: Path) -> None:
    assert rung_page.make_page(tmp_path / "docs") == []
    page = (tmp_path / "docs" / "rung_l1.md").read_text(encoding="utf-8")
    for said in (
        "A decoder of 30.5M weights begins from nothing",
        "All that was asked is so.",
        "Machine: Abacus, 2 cores, float32",
        "Load average 0.5 to 3.2",
        "60 held-out items per evaluation",
        "| native | 0.400 [0.29, 0.53] | 0.900 [0.80, 0.95] | 0.100 [0.05, 0.20] | 0.900 [0.80, 0.95] |",
        "| native | 2 | 12,800 | 100 | 61 | – | 100 | 40 | 3.0e-06, 4.0e-07 | 2 |",
        "| vllm | 2 | 12,800 | 100 | 61 | 99 | 100 | 40 | 2.0e-05, 1.0e-06 | 2 |",
        "| random | 2 | 12,800 | 100 | 61 | – | 100 | 40 | – | 2 |",
    ):
        assert said in page, said
    kept = json.loads((tmp_path / "docs" / "rung_l1.json").read_text())
    assert kept["cells"]["in-process"]["digest"] == "in-process-digest" and kept["cells"]["vllm"]["server_cpu_seconds"] == 99.0


def test_the_version_of_the_server_is_said_where_its_record_has_it(work: Any, tmp_path: Path) -> None:
    server = tmp_path / "cache" / "studies" / "rung_l1" / "server.json"
    server.write_text(json.dumps({**json.loads(server.read_text()), "version": "0.1.2"}))
    rung_page.make_page(tmp_path / "docs")
    assert "Machine: Abacus, 2 cores, vLLM 0.1.2, float32" in (tmp_path / "docs" / "rung_l1.md").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "docs" / "rung_l1.json").read_text())["cells"]["vllm"]["vllm"] == "0.1.2"


def test_what_is_not_so_is_said(work: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work["native"] = record("native", 0.1)
    work["random"] = record("random", 0.5)

    def nowhere(maker: str, out: Path) -> Any:
        raise NotAvailable("no vllm on the path")

    monkeypatch.setattr(rung_page, "_through_vllm", nowhere)
    wrong = rung_page.make_page(tmp_path / "docs")
    assert wrong[0] == "vllm: no vllm on the path"
    assert wrong[1].startswith("native: accuracy of sampled answers changed by [") and wrong[2].startswith(
        "random: accuracy of sampled answers rose by ["
    )
    page = (tmp_path / "docs" / "rung_l1.md").read_text(encoding="utf-8")
    assert "Not so: vllm: no vllm on the path" in page and "| vllm |" not in page


def test_updates_that_are_not_proved_are_said(work: Any, tmp_path: Path) -> None:
    metrics = tmp_path / "cache" / "studies" / "rung_l1" / "native-0" / "metrics.jsonl"
    metrics.write_text(metrics.read_text().replace('"proof/state": 1.0', '"proof/state": 0.5', 1))
    assert rung_page.make_page(tmp_path / "docs") == ["native: 1 of 2 updates are proved"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"native": (0.1, 0.2), "vllm": (-0.1, 0.1)}, "rose through native."),
        ({"native": (0.1, 0.2), "vllm": (-0.2, -0.1)}, "rose through native and fell through vllm."),
        ({"native": (-0.1, 0.2), "vllm": (-0.2, -0.1)}, "fell through vllm: what so few"),
        ({"native": (-0.1, 0.2), "random": (0.1, 0.2)}, "did not change: what so few"),
    ],
)
def test_what_became_of_greedy_answers_is_said(changes: dict[str, tuple[float, float]], said: str) -> None:
    told = rung_page._greedy({kind: {"change_greedy": change} for kind, change in changes.items()})
    assert told.startswith(f"Greedy accuracy {said}")


def test_the_recipe_is_the_rung_it_says() -> None:
    """Thirty million weights, and answers of one to two hundred tokens that fit the context."""
    run = traces()
    assert 30e6 <= SHAPE.parameters <= 50e6
    tokenizer = scratch_tokenizer(traces_base().model)  # pyright: ignore[reportArgumentType]
    for level in PRACTISED:
        task = family("generations").task("generations", level, "train", 0)
        prompt, answer = (len(tokenizer.encode(text)) for text in (task.public["prompt"], task.private["solution"]))
        assert 100 <= answer <= 300 and answer < run.sampling.max_new_tokens
        assert prompt + run.sampling.max_new_tokens <= SHAPE.max_positions


def test_cells_differ_in_what_their_kind_says() -> None:
    for kind, engine in ENGINES.items():
        cell = traces_cell(kind, 0)
        assert cell.run.engine == engine and cell.run.stages == traces().stages and cell.per_level == 32
        assert cell.run.model == traces().model
    control = traces_cell("random", 0, steps=3)
    assert control.run.tasks.scorer == RandomReward(0) and control.run.steps == 3  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(UnknownNameError, match="in-process"):
        traces_cell("inprocess", 0)
