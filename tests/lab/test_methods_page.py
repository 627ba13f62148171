"""Every method has a kind and either a cell that its learner can serve or a reason; the page says what the cells found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.core.errors import UnknownNameError
from assay.core.task import Message
from assay.guide import Compose, Privileged
from assay.objective.methods import build_method, methods
from assay.runtime.anchors import Frozen
from assay.testing import rollout_of
from assay.train.models import Built
from assay.train.preflight import check_run
from assay.train.reinforce import Reinforce
from assay.train.stages import WarmUp
from assay.train.wiring import models_of, updates_of
from assay_tasks import SortDigits
from evidence import methods_page
from evidence.cells.methods import COLUMNS, COMPOSERS, GROUPS, POLICY_AFTER, RATES, method_cell, reader
from evidence.methods import (
    BROUGHT,
    CONTROLS,
    EXPERTS,
    KINDS,
    LONGER,
    NOTES,
    READS,
    SETTINGS,
    TEACHER,
    cells,
    kind_of,
    objective_of,
)
from evidence.pages import make
from evidence.solved import Solved

RUN = [name for name, _, _ in cells()]


def test_every_method_is_run_once_and_the_teacher_first() -> None:
    assert sorted(RUN) == sorted([*methods(), *CONTROLS])
    assert RUN[0] == TEACHER
    assert {kind_of(name, objective_of(name)) for name in methods()} == set(KINDS)


def test_tables_name_methods_alone() -> None:
    for table in (BROUGHT, EXPERTS, NOTES, READS, SETTINGS, LONGER, COLUMNS, COMPOSERS, GROUPS, POLICY_AFTER, RATES):
        assert set(table) <= set(methods()), table
    assert {*COLUMNS, *COMPOSERS} <= set(BROUGHT)


@pytest.mark.slow
def test_what_the_page_says_is_brought_is_in_the_cell() -> None:
    brought = {n for n in methods() if n != "nll" and _brings(method_cell(n, 0).run.stages[0])}
    assert brought == set(BROUGHT)
    assert {n for n in methods() if n != "nll" and method_cell(n, 0).run.stages[0].experts} == set(EXPERTS)


def _brings(stage: object) -> bool:
    assert isinstance(stage, Reinforce)
    return bool(stage.columns) or stage.composer != Compose()


@pytest.mark.parametrize("name", RUN)
def test_the_learner_offers_what_a_cell_asks(name: str) -> None:
    cell = method_cell(name, 0)
    (stage,) = cell.run.stages
    check_run(cell.run)
    assert isinstance(stage, WarmUp if name == "nll" else Reinforce)
    assert cell.truth.name == "sort"


def test_a_teacher_is_what_the_study_made_of_the_base() -> None:
    (stage,) = method_cell("opd", 0).run.stages
    assert [(a.name, Path(a.model).name) for a in stage.learner.anchors] == [("ref", ""), ("teacher", "grpo-0")]
    assert models_of(method_cell("nlpo", 0).run.stages[0].objective) == ("mask",)
    assert models_of(method_cell("sdft", 0).run.stages[0].objective) == ("privileged",)


def test_a_base_that_shall_teach_itself_has_read_solutions() -> None:
    for name in READS:
        run = method_cell(name, 0).run
        assert isinstance(run.model, Built)
        assert run.model.run == reader(0)
        (stage,) = run.stages
        assert isinstance(stage, Reinforce)
        assert stage.guidance == Privileged(text="{solution};{prompt}")
        assert [(a.name, a.refresh) for a in stage.learner.anchors] == [("ref", Frozen()), ("privileged", Frozen())]


def test_prompts_behind_their_solution() -> None:
    truth, shown = SortDigits(), Solved(source=SortDigits(), plain=(3,))
    pairs = [
        (truth.task("sort", level, "train", i), shown.task("sort", level, "train", i)) for level in (3, 4) for i in range(200)
    ]
    for plain, solved in pairs:
        prompt, answer = plain.public["prompt"], plain.private["answer"]
        assert solved.public["prompt"] in (prompt, f"{answer};{prompt}")
        assert (solved.private, solved.split) == (plain.private, "train")
        assert solved.id == plain.id or solved.id == f"{plain.id}-solved"
        assert shown.trace(solved, 0.0, np.random.default_rng(0)) == (Message("assistant", answer),)
        assert shown.environment(solved.public_view()) is None
        assert shown.verifier()(solved, rollout_of(solved, answer)).primary == 1.0
    left = [plain.level for plain, solved in pairs if plain == solved]
    assert set(left) == {3}
    assert 80 < len(left) < 120
    assert (shown.name, shown.arms()) == (truth.name, truth.arms())


def test_two_steps_where_a_ratio_can_move() -> None:
    asked = {name: updates_of(build_method(name)) for name in ("grpo", "dppo", "opo", "dpo", "kl_rl", "topr")}
    assert asked == {"grpo": 2, "dppo": 2, "opo": 1, "dpo": 1, "kl_rl": 1, "topr": 2}


def test_a_control_tosses_a_coin_and_is_judged_by_the_truth() -> None:
    cell = method_cell("random_grpo", 3)
    assert cell.run.tasks.verifier() != cell.truth.verifier()
    assert (cell.run.seed, cell.run.stages[0].objective) == (3, build_method("grpo"))
    with pytest.raises(UnknownNameError, match="cell 'random_dapo'"):
        method_cell("random_dapo", 0)


# ---- the page


def items(right: int, n: int = 100) -> list[dict[str, Any]]:
    return [{"id": str(i), "level": 3, "values": [float(i < right)]} for i in range(n)]


def record(kind: str, now: int) -> dict[str, Any]:
    return {
        "kind": kind,
        "seed": 0,
        "steps": 40,
        "digest": kind,
        "cpu_seconds": 10.0,
        "machine": "Abacus",
        "load": [1.0, 2.5],
        "base_greedy": items(40),
        "base_sampled": items(40),
        "now_greedy": items(now),
        "now_sampled": items(now),
    }


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """Records of a study that is done; a test may change them before the page is made."""
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    records = {name: record(name, 5 if name in CONTROLS else 70) for name in RUN}
    records["ppo"], records["opo"] = record("ppo", 42), record("opo", 20)
    folder = tmp_path / "cache" / "studies" / "methods" / "grpo-0"
    folder.mkdir(parents=True)
    lines = [{"step": s, "metrics": {"eval/sampled/all": s / 50, "time/cpu": 1.0}} for s in (0, 20, 40)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines), encoding="utf-8")

    def run(
        maker: str, wanted: Sequence[tuple[str, int, int | None]], out: Path, workers: int, *, go_on: bool
    ) -> list[dict[str, Any]]:
        assert go_on
        return [records[kind] for kind, _, _ in wanted]

    monkeypatch.setattr(methods_page, "run_cells", run)
    return records


def test_the_page_says_what_each_cell_found(made: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    assert make(tmp_path / "docs", ["methods"]) == 0
    page = (tmp_path / "docs" / "methods.md").read_text(encoding="utf-8")
    for said in (
        "This page ranks nothing",
        "0.400 of sampled answers",
        f"{len(methods()) - 2} trains, 1 no change, 1 fell.",
        "| `grpo` | 0.700 | [+0.",
        "| `ppo` | 0.420 | [+0.000",
        "| `opo` | 0.200 | [-0.",
        "| `grpo` | 0.050 | [-0.",  # the control
        "load average 1.0 to\n2.5",
        "- `gui_g1`: `difficulty` is the level.",
    ):
        assert said in page, said
    for name in methods():
        assert f"| `{name}` |" in page
    for kind, title in KINDS.items():
        rows = [
            x.split("`")[1] for x in page.partition(f"## {title}\n")[2].partition("\n## ")[0].splitlines() if x.startswith("| `")
        ]
        assert rows == sorted(rows), kind
        assert rows, kind
    data = json.loads((tmp_path / "docs" / "methods.json").read_text(encoding="utf-8"))
    (grpo,) = [c for c in data["cells"] if c["kind"] == "grpo"]
    assert (grpo["says"], grpo["curve"], grpo["now_sampled"]) == ("trains", {"0": 0.0, "20": 0.4, "40": 0.8}, 0.7)
    picture = (tmp_path / "docs" / "methods.svg").read_text(encoding="utf-8")
    assert ">grpo</text>" in picture
    assert ">dapo</text>" not in picture  # no curve was journalled


def test_a_control_that_trains_and_a_cell_that_breaks_fail_the_study(
    made: dict[str, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made["random_grpo"] = record("random_grpo", 80)
    made["dapo"] = {"kind": "dapo", "seed": 0, "failed": "PlanError: no such column"}
    assert make(tmp_path, ["methods"]) == 1
    told = capsys.readouterr().out
    assert "not met: methods: random_grpo trains" in told
    assert "not met: methods: dapo broke: PlanError: no such column" in told
    page = (tmp_path / "methods.md").read_text(encoding="utf-8")
    assert "| `dapo` | | | broke: PlanError: no such column |" in page
    assert ", 1 broke." in page


@pytest.mark.slow
def test_cells_of_the_page_that_are_not_on_this_machine_keep_its_numbers(
    made: dict[str, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert make(tmp_path / "docs", ["methods"]) == 0
    path = tmp_path / "docs" / "methods.json"
    before = path.read_text(encoding="utf-8")
    data = json.loads(before)
    path.write_text(json.dumps({"cells": [c for c in data["cells"] if c["kind"] != "dapo"]}), encoding="utf-8")
    asked: list[list[str]] = []

    def run(maker: str, wanted: Sequence[tuple[str, int, int | None]], *_: Any, go_on: bool) -> list[dict[str, Any]]:
        asked.append([kind for kind, _, _ in wanted])
        return [made[kind] for kind, _, _ in wanted]

    monkeypatch.setattr(methods_page, "run_cells", run)
    assert make(tmp_path / "docs", ["methods"]) == 0
    assert asked == [[TEACHER], ["dapo"]]
    assert json.loads(path.read_text(encoding="utf-8")) == data
