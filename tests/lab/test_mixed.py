"""The studies of the mixed recipe and of levels: bars by hand, cells that are what they say, pages that say what was measured."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.core.errors import UnknownNameError
from assay.guide import Frontier
from assay.recipes.accounts import AUXILIARY as LEDGER_AUXILIARY
from assay.recipes.accounts import SHOWN as LEDGER_SHOWN
from assay.recipes.accounts import ledger, ledger_base, ledger_cell
from assay.recipes.mixture import AUXILIARY, SHOWN, mixed, mixed_base, mixed_cell
from assay.train.preflight import check_run
from assay.train.reinforce import Reinforce
from assay.train.stages import WarmUp
from evidence import levels_page, mixed_page
from evidence.cells.levels import levels_cell
from evidence.levels_page import Ladder, rank_correlation
from evidence.mixed import LEDGER, MIXED, cell_means, family_means, judge_mixed
from evidence.pages import STUDIES, make

SEEDS, CONTROLS = MIXED.seeds, MIXED.controls
KNOWN = {"a": (1, 2), "b": (1,)}
CELLS = (("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2), ("b", 3))


def items(values: Mapping[tuple[str, int], float], n: int = 20) -> list[dict[str, Any]]:
    return [
        {"id": f"{arm}/{level}/{i}", "arm": arm, "level": level, "values": [float(i < share * n)]}
        for (arm, level), share in values.items()
        for i in range(n)
    ]


def made(kind: str, seed: int, easy: float, hard: float, cpu: float = 280.0) -> dict[str, Any]:
    def at(easy: float, hard: float) -> list[dict[str, Any]]:
        return items({(arm, level): easy if level in KNOWN[arm] else hard for arm, level in CELLS})

    return {
        "kind": kind,
        "seed": seed,
        "steps": 600,
        "digest": f"{kind}{seed}",
        "cpu_seconds": cpu,
        "base_cpu_seconds": 200.0,
        "machine": "Abacus, 2 cores",
        "load": [0.5, 4.25],
        "base_greedy": at(1.0, 0.15),
        "base_sampled": at(0.95, 0.1),
        "now_greedy": at(easy, hard),
        "now_sampled": at(easy, hard),
    }


def study(**changes: tuple[float, float]) -> list[dict[str, Any]]:
    """Records that meet every bar; ``rl=(easy, hard)`` and the like change a kind."""
    found = {"rl": (0.95, 0.75), "random": (0.5, 0.1), "format": (0.5, 0.1), "longer": (1.0, 0.2)} | changes
    return [made(kind, seed, *found[kind]) for kind, seed, _ in MIXED.cells()]


def test_means_by_hand() -> None:
    means = cell_means(items({("a", 1): 1.0, ("a", 3): 0.5, ("b", 2): 0.25, ("b", 3): 0.75}))
    assert means == {("a", 1): 1.0, ("a", 3): 0.5, ("b", 2): 0.25, ("b", 3): 0.75}
    assert family_means(means, KNOWN, demonstrated=False) == {"a": 0.5, "b": 0.5}
    assert family_means(means, KNOWN, demonstrated=True) == {"a": 1.0}


def test_bars_that_are_met() -> None:
    gate = judge_mixed(study(), KNOWN, 3)
    assert gate.failures() == []
    assert gate.before["rl", SEEDS[0]] == pytest.approx((1.0, 0.15)) and gate.after["rl", SEEDS[1]] == pytest.approx((0.95, 0.75))
    assert [gate.of(kind) for kind in ("rl", "longer")] == [list(SEEDS), [SEEDS[0]]]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"rl": (0.95, 0.55)}, "nobody demonstrated end at 0.550 < .60"),
        ({"rl": (0.9, 0.75)}, "demonstrated levels end at 0.900 < .92"),
        ({"longer": (1.0, 0.25)}, f"longer, seed {SEEDS[0]}: 0.250 is more than 5 points above"),
        ({"random": (1.0, 0.2)}, f"random, seed {SEEDS[1]}: it does not lower"),
    ],
)
def test_each_bar_can_fail(changes: dict[str, tuple[float, float]], told: str) -> None:
    failures = judge_mixed(study(**changes), KNOWN, 3).failures()
    assert any(told in failure for failure in failures), failures


def test_bars_of_the_study_as_a_whole() -> None:
    slow = [r | {"cpu_seconds": 301.0} if (r["kind"], r["seed"]) == ("rl", SEEDS[1]) else r for r in study()]
    assert judge_mixed(slow, KNOWN, 3).failures() == [f"seed {SEEDS[1]}: RL took 301 CPU-seconds > 300"]
    few = [r for r in study() if (r["kind"], r["seed"]) != ("rl", SEEDS[2])]
    assert judge_mixed(few, KNOWN, 3).failures() == ["only 2 of 3 seeds were run"]
    known = [r | {"base_greedy": items({("a", 1): 1.0, ("a", 3): 0.3, ("b", 2): 0.3})} for r in study()]
    assert judge_mixed(known, KNOWN, 3).failures()[0] == "levels that nobody demonstrated begin at 0.300 > .20"


def test_the_mixed_page_says_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    said: dict[str, Any] = {"SHOWN": KNOWN, "AUXILIARY": {"helper": (1,)}}
    monkeypatch.setattr(mixed_page, "_list_families", lambda study, name: said[name])
    monkeypatch.setattr(mixed_page, "run_cells", lambda maker, wanted, out, workers: study())
    for seed in SEEDS:
        folder = tmp_path / "cache" / "studies" / "mixed" / f"rl-{seed}"
        folder.mkdir(parents=True)
        lines = [
            {
                "step": step,
                "metrics": {"eval/greedy/all": 0.5, "eval/greedy/level_1": 0.5, "time/cpu": 100.0 * i}
                | {f"eval/greedy/{arm}/level_{level}": i / 2 for arm, level in CELLS},
            }
            for i, step in enumerate((0, 100, 200))
        ]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines), encoding="utf-8")
    assert make(tmp_path / "docs", ["mixed"]) == 0
    page = (tmp_path / "docs" / "mixed.md").read_text(encoding="utf-8")
    for line in (
        "120 held-out items",
        "and neither practised nor scored: `helper`.",
        "All bars are met.",
        "the levels not shown: none.\nA model",
        "on the levels shown: none.\nNot kept, less than .92 there after RL: none.",
        f"| {SEEDS[1]} | 1.000 | 0.950 | 0.150 | **0.750** | 200 | 280 |",
        "| a | 100 100; 15 | 95 95; 10 | 95 95; 75 |",
        "| b | 100; 15 15 | 95; 10 10 | 95; 75 75 |",
        "| 200 | 1.000 | 1.000 |",
        "| 100 | 0.500 | 0.500 |",
        f"| longer | {SEEDS[0]} | 600 | 1.000 to 1.000 | 0.150 to 0.200 |",
        "| format | 10 | 10 |",
        "| RL | 75 | 75 |",
    ):
        assert line in page, line
    data = json.loads((tmp_path / "docs" / "mixed.json").read_text(encoding="utf-8"))
    assert data["cells"][0]["now_greedy"]["b/level_2"] == 0.75 and data["curves"][str(SEEDS[0])]["cpu"] == [0.0, 100.0, 200.0]
    assert (tmp_path / "docs" / "mixed.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert "luck of the seed.\n\n## On the way" in page
    said["AUXILIARY"] = {}
    mixed_page.make_page(replace(MIXED, notes="Dropped: c."), tmp_path / "docs")
    page = (tmp_path / "docs" / "mixed.md").read_text(encoding="utf-8")
    assert "luck of the seed.\n\nDropped: c.\n\n## On the way" in page and "\nNothing else is shown.\n" in page


# ---- cells


SUITES = {
    "mixed": (mixed, mixed_base, mixed_cell, SHOWN, AUXILIARY),
    "ledger": (ledger, ledger_base, ledger_cell, LEDGER_SHOWN, LEDGER_AUXILIARY),
}


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_declares_what_is_shown_practised_and_scored(name: str) -> None:
    make, make_base, _, told, helping = SUITES[name]
    run, base = make(3), make_base(3)
    (practised,), (shown,) = run.stages, base.stages
    assert isinstance(practised, Reinforce) and isinstance(shown, WarmUp)
    assert isinstance(practised.levels, Mapping) and isinstance(shown.levels, Mapping)
    assert dict(shown.levels) == {**told, **helping} and set(run.tasks.arms()) == {*told, *helping}
    assert set(practised.levels) == set(told) and run.evaluation.levels == practised.levels == base.evaluation.levels
    assert isinstance(practised.curriculum, Frontier)
    for arm, levels in practised.levels.items():
        assert told[arm] == levels[: len(told[arm])] and len(levels) >= len(told[arm]) + 3
        assert practised.curriculum.start[arm] == levels[len(told[arm])]
    assert base.name == f"base-{run.name}" and run.name == name


@pytest.mark.parametrize("kind", ["rl", *CONTROLS])
@pytest.mark.parametrize("name", SUITES)
def test_cells_differ_from_the_recipe_in_one_thing(name: str, kind: str) -> None:
    make, make_base, make_cell, told, _ = SUITES[name]
    cell, run = make_cell(kind, 2, 7), make(2)
    check_run(cell.run)
    assert cell.run.model == run.model and set(cell.truth.arms()) == set(told)
    (stage,) = cell.run.stages
    assert stage.steps == 7
    if kind == "longer":
        assert isinstance(stage, WarmUp) and stage.levels == make_base(2).stages[0].levels and stage.gate == 0.0
    else:
        assert stage == replace(run.stages[0], steps=7)
        assert (cell.run.tasks == run.tasks) == (kind == "rl")


def test_a_study_names_its_recipe_and_each_of_its_cells() -> None:
    for study in (MIXED, LEDGER):
        recipe = importlib.import_module(study.recipe)
        assert getattr(recipe, study.maker)("rl", 1).run.name == study.name and study.name in STUDIES
        assert [c[:2] for c in study.cells()[: len(study.seeds)]] == [("rl", s) for s in study.seeds]
        assert {kind: steps for kind, _, steps in study.cells()} == {"rl": None} | {k: n for k, (n, _) in study.controls.items()}


def test_unknown_cells_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="unknown cell 'rll': did you mean 'rl'"):
        mixed_cell("rll", 0)
    with pytest.raises(UnknownNameError, match="unknown task family 'gatse': did you mean 'gates'"):
        levels_cell("gatse", 0)


# ---- levels


def test_rank_correlation_by_hand() -> None:
    # ranks 0 1 2 3 against 1 0 2 3: 1 - 6 (1 + 1) / (4 x 15) = .8
    assert rank_correlation([1, 2, 3, 4], [5.0, 4.0, 6.0, 9.0]) == 0.8
    assert rank_correlation([1, 2, 3], [0.9, 0.5, 0.1]) == -1.0


@pytest.mark.parametrize(
    ("effort", "accuracy", "told"),
    [
        ({1: 2.0, 2: 3.0, 3: 9.0}, {1: 0.9, 2: 0.5, 3: 0.1}, ""),
        ({1: 2.0, 2: 2.0, 3: 9.0}, {1: 0.9, 2: 0.5, 3: 0.1}, "effort does not grow"),
        ({1: 2.0, 2: 3.0, 3: 9.0}, {1: 0.5, 2: 0.9, 3: 0.1}, "rank correlation of -0.50 > -.9"),
    ],
)
def test_ladders_that_do_not_grow_are_told(effort: dict[int, float], accuracy: dict[int, float], told: str) -> None:
    failures = Ladder(name="x", domain="d", effort=effort, accuracy=accuracy).failures()
    assert (told in failures[0]) if told else not failures


def test_the_page_of_levels_says_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(levels_page, "FAMILIES", ("gates",))

    def run(maker: str, wanted: Sequence[tuple[str, int, int | None]], out: Path, workers: int) -> list[dict[str, Any]]:
        for kind, seed, _ in wanted:
            (out / f"{kind}-{seed}").mkdir(parents=True)
            lines = [
                {"metrics": {f"eval/sampled/level_{n}": (1.0 - n / 10) * k for n in range(2, 10)}} for k in (0.0, 0.5 + seed)
            ]
            text = "".join(json.dumps(x) + "\n" for x in lines)
            (out / f"{kind}-{seed}" / "metrics.jsonl").write_text(text, encoding="utf-8")
        return [made(kind, seed, 1.0, 1.0) for kind, seed, _ in wanted]

    monkeypatch.setattr(levels_page, "run_cells", run)
    assert make(tmp_path / "docs", ["levels"]) == 0
    page = (tmp_path / "docs" / "levels.md").read_text(encoding="utf-8")
    assert "| gates | logic | +1.000 | -1.000 |" in page and "| steps of the solver | 2.0 | 3.0 |" in page
    assert "| accuracy | 0.40 | 0.35 |" in page  # (0 + .5 + 0 + 1.5) / 4 of .8 and of .7
    data = json.loads((tmp_path / "docs" / "levels.json").read_text(encoding="utf-8"))
    assert data["families"][0]["effort"]["9"] == 9.0
