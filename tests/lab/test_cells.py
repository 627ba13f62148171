"""Cells: one run each, judged by the truth, made once."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from assay.core.rollout import Sampling
from assay.lab import cells
from assay.lab.cells import Cell, LabError, run_cell, run_cells
from assay.lab.controls import Inverted, Rewarded
from assay.lab.processes import ProcessJob
from assay.runtime.settings import AdamW, DecoderShape, LearnerSettings
from assay.train.models import Built, Scratch
from assay.train.run import Evaluation, Run
from assay.train.stages import WarmUp
from assay_tasks import SortDigits

MAKER = f"{__name__}:cell"
SHAPE = DecoderShape(
    hidden_size=16, num_layers=1, num_heads=2, num_kv_heads=1, head_dim=8, intermediate_size=16, max_positions=16
)


def cell(kind: str, seed: int, steps: int | None) -> Cell:
    """Two supervised steps of a tiny model under a reward that is upside down."""
    truth = SortDigits(levels=(3, 4))
    stage = WarmUp(steps=steps or 2, batch=4, demonstrations=8, levels=(3,), learner=LearnerSettings(optimizer=AdamW(lr=1e-3)))
    run = Run(
        name=kind,
        seed=seed,
        model=Scratch(shape=SHAPE, seed=seed),
        stages=(stage,),
        sampling=Sampling(max_new_tokens=5),
        tasks=Rewarded(source=truth, scorer=Inverted(truth.verifier())),
        evaluation=Evaluation(every=0, final_per_level=1),
    )
    if kind == "based":
        run = replace(run, model=Built(run=replace(run, name="base", tasks=truth)))
    return Cell(run=run, truth=truth)


def never(*args: object, **options: object) -> None:
    raise AssertionError("this cell is done")


def test_a_cell_is_made_once_and_judged_by_the_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = run_cell(MAKER, "small", 3, tmp_path)
    assert (made["kind"], made["seed"], made["steps"]) == ("small", 3, 2)
    assert made["cpu_seconds"] > 0
    assert re.search(r"cores, Python 3\.\S+, torch 2\.\S+, transformers \d\S+$", made["machine"])
    assert len(made["load"]) == 2
    assert [len(made[f"{name}_{mode}"]) for name in ("base", "now") for mode in ("greedy", "sampled")] == [128] * 4
    # an untrained model sorts next to nothing: the reward that is upside down would call almost all of it right
    assert sum(i["values"][0] for i in made["now_sampled"]) < 40

    with monkeypatch.context() as patch:
        patch.setattr(cells, "train", never)
        patch.setattr(cells, "resume", never)
        assert run_cell(MAKER, "small", 3, tmp_path) == made

    (tmp_path / "small-3.json").unlink()  # stopped before its record was written
    with monkeypatch.context() as patch:
        patch.setattr(cells, "train", never)
        again = run_cell(MAKER, "small", 3, tmp_path)
    assert (again["digest"], again["now_greedy"]) == (made["digest"], made["now_greedy"])


def test_a_cell_of_another_recipe_is_made_anew(tmp_path: Path) -> None:
    first, second = run_cell(MAKER, "small", 0, tmp_path, 1), run_cell(MAKER, "small", 0, tmp_path, 2)
    assert (first["steps"], second["steps"]) == (1, 2)
    assert first["digest"] != second["digest"]
    assert run_cell(MAKER, "small", 0, tmp_path, 2)["digest"] == second["digest"]


@pytest.mark.parametrize(
    ("line", "now", "same"),
    [
        ("prove_weights = true\n", "", True),  # a setting that came later: its default is what the run did
        ("prove_weights = true\n", "prove_weights = false\n", False),
        ("prove_weights = true\n", "no_such_setting = 1\n", False),  # of a version that this one cannot read
    ],
)
def test_a_cell_is_known_by_what_its_settings_mean_now(line, now, same, tmp_path, monkeypatch):
    made, toml = run_cell(MAKER, "small", 0, tmp_path, 1), tmp_path / "small-0" / "run.toml"
    text = toml.read_text()
    assert text.count(line) == 1
    toml.write_text(text.replace(line, now))
    monkeypatch.setattr(cells, "train", never)
    with nullcontext() if same else pytest.raises(AssertionError, match="this cell is done"):
        assert run_cell(MAKER, "small", 0, tmp_path, 1) == made


def test_a_cell_that_was_stopped_does_not_go_on_beside_a_base_of_other_code(tmp_path, monkeypatch):
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    made = run_cell(MAKER, "based", 0, tmp_path, 1)
    assert made["base_cpu_seconds"] > 0
    (tmp_path / "based-0.json").unlink()
    shutil.rmtree(tmp_path / "cache" / "base")  # the code has changed, and with it the base's name
    monkeypatch.setattr(cells, "resume", never)
    again = run_cell(MAKER, "based", 0, tmp_path, 1)
    assert (again["digest"], again["base_cpu_seconds"] > 0) == (made["digest"], True)


def test_a_cell_of_another_recipe_that_was_stopped_is_not_gone_on_with(tmp_path: Path) -> None:
    run_cell(MAKER, "small", 0, tmp_path / "a", 1)
    (tmp_path / "a" / "small-0.json").unlink()
    stopped, fresh = run_cell(MAKER, "small", 0, tmp_path / "a", 2), run_cell(MAKER, "small", 0, tmp_path / "b", 2)
    assert stopped["digest"] == fresh["digest"]


# ---- many cells


def started(code: dict[str, str]) -> Callable[..., ProcessJob]:
    """Stands in for a cell: small programs, which find the study's folder beside them."""

    def job(maker: str, one: tuple[str, int, int | None], out: Path) -> ProcessJob:
        kind, seed, _ = one
        (out / f"{kind}_cell.py").write_text(code[kind])
        return ProcessJob(name=f"{kind}-{seed}", words=(f"{kind}_cell",), log=out / f"{kind}-{seed}.log")

    return job


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small programs in the test's folder are found by name."""
    monkeypatch.chdir(tmp_path)


GOOD = "import pathlib; pathlib.Path('good-0.json').write_text('{\"kind\": \"good\"}')"
BAD = "raise ValueError('the loss is NaN')"


def test_a_failed_cell_is_recorded_and_the_others_go_on(tmp_path: Path, beside: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "_job", started({"bad": BAD, "good": GOOD, "silent": "raise SystemExit(3)"}))
    wanted = [("bad", 0, None), ("good", 0, None), ("silent", 1, None)]
    bad, good, silent = run_cells("", wanted, tmp_path, 2, go_on=True)
    assert bad == {"kind": "bad", "seed": 0, "failed": "ValueError: the loss is NaN"}
    assert good == {"kind": "good"}
    assert silent == {"kind": "silent", "seed": 1, "failed": "ended with status 3"}


def test_a_failed_cell_ends_a_study_that_needs_it(tmp_path: Path, beside: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "_job", started({"bad": BAD, "good": GOOD}))
    with pytest.raises(LabError, match=r"cell bad-0 failed with status 1(?s:.*)the loss is NaN"):
        run_cells("", [("bad", 0, None), ("good", 0, None)], tmp_path, 1)
    assert not (tmp_path / "good-0.json").exists()


def test_a_failed_cell_is_tried_again_from_its_beginning(tmp_path: Path) -> None:
    first = run_cell(MAKER, "small", 0, tmp_path, 1)
    left = tmp_path / "small-0" / "left"
    left.write_text("by the one that failed", encoding="utf-8")
    (tmp_path / "small-0.json").write_text('{"kind": "small", "seed": 0, "failed": "out of memory"}', encoding="utf-8")
    assert run_cell(MAKER, "small", 0, tmp_path, 1)["digest"] == first["digest"]
    assert not left.exists()
