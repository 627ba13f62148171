"""Every recipe builds, says what it would do, and comes back from its own TOML; so does a run on a user's rows."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.cli import main
from assay.core.config import dumps_toml, from_dict, loads_toml, to_dict
from assay.core.errors import ConfigError, DataError
from assay.objective import rloo
from assay.recipes import RECIPES, on_rows
from assay.recipes.school import CONFIGS
from assay.tasks import Rows
from assay.train.models import Built, Folder, Scratch
from assay.train.reinforce import Reinforce
from assay.train.run import Run
from assay.train.stages import WarmUp
from assay_tasks import SortDigits
from evidence.cells.gate import CONTROLS, quickstart_cell

ROWS = [{"prompt": f"S{a}{b}>", "answer": "".join(sorted(f"{a}{b}"))} for a in range(6) for b in range(6)]


def length_right(prompt: str, completion: str, row: dict[str, Any]) -> float:
    """A reward at the top of a module, as a user's file would have it."""
    return float(len(completion) == len(row["answer"]))


def made(name: str, seed: int = 0) -> Run:
    module, _, function = RECIPES[name].partition(":")
    return getattr(importlib.import_module(module), function)(seed)


def again(run: Run) -> Run:
    return from_dict(Run, loads_toml(dumps_toml(to_dict(run))))


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_comes_back_from_its_toml(name: str) -> None:
    run = made(name)
    assert isinstance(run, Run)
    assert again(run) == run
    assert dumps_toml(to_dict(again(run))) == dumps_toml(to_dict(run))


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_says_what_it_is(name: str) -> None:
    module, _, function = RECIPES[name].partition(":")
    recipe = getattr(importlib.import_module(module), function)
    assert (inspect.getdoc(recipe) or "").strip()
    assert list(inspect.signature(recipe).parameters) == ["seed"]
    assert inspect.signature(recipe).parameters["seed"].default == 0


@pytest.mark.parametrize("name", RECIPES)
def test_the_seed_reaches_the_base(name: str) -> None:
    zero, one = made(name), made(name, seed=1)
    assert (zero.seed, one.seed) == (0, 1)
    match one.model:
        case Built(run=inner):
            assert inner.seed == 1 and isinstance(inner.model, Scratch) and inner.model.seed == 1
        case Scratch(seed=seed):
            assert seed == 1
        case Folder(path=path):  # a model by its name on the hub; `--random-init` tries such a recipe without it
            assert path in CONFIGS and one.model == zero.model
        case other:
            pytest.fail(f"a recipe starts from {other!r}, which needs files that are not ours")


@pytest.mark.parametrize("name", RECIPES)
def test_the_objectives_compile_for_their_stage(name: str) -> None:
    for stage in made(name).stages:
        updates = stage.epochs * stage.minibatches if isinstance(stage, Reinforce) else 1
        plan = stage.objective.compile(updates).plan
        assert plan.live[0] == "logp_new"
        assert plan.forwards == ()  # one update per batch and no divergence: the gradient pass is the only one


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_explained_without_running(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    assert main(["explain", name, "--toml"]) == 0
    assert from_dict(Run, loads_toml(capsys.readouterr().out)) == made(name)
    assert main(["explain", name, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["settings"]["name"] == made(name).name
    assert told["derived"]


@pytest.mark.parametrize(("name", "base"), [("quickstart", "base"), ("tools", "tool-base")])
def test_rl_goes_beyond_what_the_base_was_shown(name: str, base: str) -> None:
    run, start = made(name), made(base)
    assert run.model == Built(run=start)
    (shown,), (practised,) = start.stages, run.stages
    assert isinstance(shown, WarmUp) and isinstance(practised, Reinforce)
    every = {level for levels in run.tasks.arms().values() for level in levels}
    assert shown.levels and practised.levels == ()
    assert max(shown.levels) < max(every)
    assert shown.gate > 0


def test_answers_fit_their_limit() -> None:
    run = made("quickstart")
    longest = max(SortDigits().levels)
    task = run.tasks.task("sort", longest, "train", 0)
    assert len(task.private["answer"]) == longest < run.sampling.max_new_tokens


def test_the_recipe_on_the_page_runs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "packages" / "recipes.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, "recipes.md", "exec"), names)
    run = names["my_recipe"](seed=2)
    assert run == replace(made("quickstart", 2), name="mine", stages=run.stages)
    assert run.stages[0].objective == rloo()


# ---- rows -------------------------------------------------------------------------------------------------------------


def test_rows_with_a_reward_of_a_module_come_back() -> None:
    run = on_rows(ROWS, length_right, steps=7, max_new_tokens=4, seed=3)
    back = again(run)
    assert back == run
    assert isinstance(back.tasks, Rows)
    assert back.tasks.reward is length_right
    assert (back.steps, back.seed, back.sampling.max_new_tokens) == (7, 3, 4)


def test_rows_train_the_embedded_base_of_their_seed() -> None:
    assert on_rows(ROWS, seed=2).model == Built(run=made("base", seed=2))


def test_a_lambda_trains_but_cannot_be_read_back() -> None:
    run = on_rows(ROWS, lambda prompt, completion, row: 1.0)
    table = loads_toml(dumps_toml(to_dict(run)))
    with pytest.raises(ConfigError, match="lambda"):
        from_dict(Run, table)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([], "at least one row"),
        ([{"prompts": "S21>", "answer": "12"}], "rename 'prompts'"),
        ([{"prompt": "S21>"}], "row 1, field 'answer'"),
    ],
)
def test_wrong_rows_are_refused_by_number(rows: list[dict[str, str]], told: str) -> None:
    with pytest.raises(DataError, match=told):
        on_rows(rows)


def test_no_steps_are_refused() -> None:
    with pytest.raises(ConfigError, match="steps=0"):
        on_rows(ROWS, steps=0)


# ---- the gate's cells -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["rl", *CONTROLS])
def test_cells_start_from_the_same_base_and_are_judged_by_the_truth(kind: str) -> None:
    cell, run = quickstart_cell(kind, 4, 9), made("quickstart", seed=4)
    assert cell.run.model == run.model
    assert cell.truth == SortDigits()
    assert cell.run.steps == 9
    assert again(cell.run) == cell.run
    changed = replace(cell.run, name=run.name, stages=run.stages, evaluation=run.evaluation)
    assert (changed == run) == (kind in ("rl", "longer"))  # the others differ in their reward


def test_an_unknown_cell_says_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'random'"):
        quickstart_cell("radnom", 0)
