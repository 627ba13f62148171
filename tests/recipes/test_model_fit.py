"""A recipe on another model: what is kept of its settings, and what is derived from the model instead."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.cli.explain import ExplainOptions
from assay.cli.recipe import settle_all
from assay.cli.train_options import TrainOptions
from assay.recipes import quickstart
from assay.recipes.model_fit import fit_to_model, settings_kept
from assay.runtime import AdamW, DecoderShape
from assay.runtime.models.reduced import write_reduced
from assay.train import Scratch
from assay.train.model_settings import MachineFacts, learning_rate
from assay.train.run import Run

SIZES = {"0.34M": (64, 5), "5M": (256, 6), "50M": (576, 12)}
"""Width and layers of look-alikes."""


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU with 16 GiB, wherever the test runs."""
    here = MachineFacts(device="cpu", memory=16 << 30, cores=4)
    monkeypatch.setattr("assay.recipes.model_fit.this_machine", lambda device="auto": here)


def alike(size: str) -> Run:
    """The quickstart on a fresh model of a size, whose shape alone is looked at."""
    width, layers = SIZES[size]
    shape = DecoderShape(
        hidden_size=width,
        num_layers=layers,
        num_heads=width // 64,
        num_kv_heads=width // 64,
        head_dim=64,
        intermediate_size=4 * width,
    )
    return replace(quickstart(), model=Scratch(shape=shape))


@pytest.mark.parametrize("size", SIZES)
def test_what_follows_from_a_model_is_derived_from_its_size(size: str) -> None:
    recipe = alike(size)
    run = fit_to_model(recipe)
    stage, old = run.stages[0], recipe.stages[0]
    count = {"0.34M": 4e5, "5M": 6e6, "50M": 6e7}[size]
    assert isinstance(stage.learner.optimizer, AdamW)
    assert stage.learner.optimizer.lr == pytest.approx(learning_rate(int(count)), rel=0.25)
    assert (stage.learner.precision, stage.learner.adapter, stage.learner.device) == ("fp32", None, "auto")
    assert run.threads == (1 if size != "50M" else 4)
    kept = ("steps", "groups", "group_size", "objective", "curriculum", "levels")
    assert all(getattr(stage, name) == getattr(old, name) for name in kept)
    assert stage.learner.schedule == old.learner.schedule and run.tasks == recipe.tasks
    assert settings_kept(run) == () and fit_to_model(run) == run
    assert any(line.startswith("max-new-tokens 14 (not ") for line in settings_kept(recipe))
    assert any(line.startswith("lr 0.0005 (not ") for line in settings_kept(recipe)) is (size != "0.34M")


def test_a_run_without_reinforcement_stays_as_it_is() -> None:
    base: Any = quickstart().model
    assert fit_to_model(base.run) is base.run and settings_kept(base.run) == ()


@pytest.fixture
def model(tmp_path: Path) -> str:
    qwen = {"model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    sizes = {"head_dim": 16, "intermediate_size": 128, "max_position_embeddings": 1024, "vocab_size": 99}
    write_reduced({**qwen, **sizes, "tie_word_embeddings": True}, tmp_path / "small")
    return str(tmp_path / "small")


@pytest.mark.parametrize("options", [TrainOptions, ExplainOptions])
@pytest.mark.parametrize("words", [("--model.kind", "Folder", "--model.path"), ("--model",), ("--model-name-or-path",)])
def test_the_command_line_derives_them_and_other_options_win(model: str, options: type[Any], words: tuple[str, ...]) -> None:
    plain = settle_all(options, ["quickstart", *words, model], "assay train")
    assert plain.run.sampling.max_new_tokens == 14
    assert plain.kept.startswith("kept from the recipe's model: ") and plain.kept.endswith(
        "--for-model derives them from this one"
    )
    assert "max-new-tokens 14 (not 256)" in plain.kept
    found = settle_all(options, ["quickstart", "--for-model", *words, model, "--lr", "3e-4", "--lora-rank", "4"], "assay train")
    learner: Any = found.run.stages[0].learner
    assert (found.kept, found.run.sampling.max_new_tokens, learner.optimizer.lr) == ("", 256, 3e-4)
    assert learner.adapter.rank == 4


def test_nothing_is_said_of_the_recipes_own_model() -> None:
    assert settle_all(TrainOptions, ["quickstart", "--lr", "1e-3"], "assay train").kept == ""
    assert settle_all(TrainOptions, ["quickstart", "--model", "no-such-folder"], "assay train").kept == ""
