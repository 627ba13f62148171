"""Recipes for big models, tried with small random ones: what is replaced is told, and the run goes through to its end."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from assay.cli import main
from assay.cli.sizes import derive
from assay.core.canon import plain
from assay.core.errors import ConfigError
from assay.recipes import RECIPES, gsm8k, gsm8k_lora, quickstart, random_init
from assay.recipes.dry import config_known
from assay.recipes.school import CONFIGS
from assay.runtime import InProcess, load_model
from assay.runtime.models.reduced import MARK, reduced_config, write_reduced
from assay.train import Folder, load_run
from assay.train.stages import WarmUp
from assay_tasks import SortDigits

GIB = 1 << 30
BIG = ("gsm8k", "gsm8k-lora")
"""Recipes that start from a model of the hub."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache"


def test_every_recipe_of_a_hub_model_is_tried_here() -> None:
    """A recipe that comes later stands in the list of those that are run below; but for the one with tools, which asks for a chat
    template that shows them, and so for a model: it trains in tests/train/test_chat_runs.py.
    """
    found = []
    for name, where in RECIPES.items():
        module, _, function = where.partition(":")
        if isinstance(getattr(importlib.import_module(module), function)().model, Folder):
            found.append(name)
    assert set(found) == {*BIG, "tools-hub"}


@pytest.mark.parametrize("name", [n if n == "gsm8k-lora" else pytest.param(n, marks=pytest.mark.prove) for n in BIG])
def test_the_command_line_tries_it(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", name, "--steps", "2", "--random-init", "--folder", "dry", "--plain"]) == 0
    said = capsys.readouterr().err
    assert "random-init: the model is qwen3 with few random weights instead of Qwen/Qwen3-" in said
    assert "generated rows in the form of gsm8k" in said and "numbers mean nothing" in said
    run = load_run(tmp_path / "dry")
    assert run.name == f"{name}-random-init" and run.steps == 2
    assert isinstance(run.engine, InProcess)
    assert json.loads((Path(run.model.path) / "config.json").read_text())[MARK] is True  # the model says so itself
    lines = [json.loads(x)["metrics"] for x in (tmp_path / "dry" / "metrics.jsonl").read_text().splitlines()]
    assert [m["rollouts/sampled"] for m in lines if "rollouts/sampled" in m] == [16.0, 16.0]
    assert all("eval/greedy/all" in lines[i] for i in (0, -1)), "the evaluation is computed, before and after"
    assert all(m["proof/state"] == 1.0 for m in lines if "proof/state" in m)
    made = load_model(tmp_path / "dry" / "model")
    assert (getattr(made, "adapter", None) is not None) == (name == "gsm8k-lora")


@pytest.mark.parametrize("name", BIG)
def test_explain_knows_the_sizes_without_the_model(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", name, "--json"]) == 0
    said = capsys.readouterr()
    assert "is not here: its sizes are as assay's recipes state them" in said.err
    assert "generated ones stand for them" in said.err
    assert json.loads(said.out)["settings"]["tasks"]["train"] == "hub:openai/gsm8k:main/train*"
    assert main(["explain", name, "--json", "--random-init"]) == 0
    small = json.loads(capsys.readouterr().out)
    assert small["settings"]["name"] == f"{name}-random-init"
    assert small["derived"]["parameters"] < 1e6


def test_memory_is_what_the_docstrings_say() -> None:
    """By hand: 596,049,920 weights; fp32 weights, gradients and two moments, a bf16 copy in the engine, 32 rows of 1,024 tokens
    with 28 layers x 8 heads x 128 x 2 numbers of bf16; an adapter of rank 32 on the seven matrices of 36 layers.
    Activations are estimates.
    """
    small = derive(replace(gsm8k(), tasks=SortDigits()))
    assert small.parameters == 596_049_920
    cache = 32 * 1024 * 28 * 8 * 128 * 2 * 2
    passing = small.memory.activations + small.memory.head
    assert passing > 0 and small.memory.total == 18 * small.parameters + cache + passing
    big = derive(replace(gsm8k_lora(), tasks=SortDigits()))
    assert big.parameters == 8_190_735_360
    one = 2 * (4096 + 4096) + 2 * (4096 + 1024) + 3 * (4096 + 12288)
    passing = big.memory.activations + big.memory.head
    assert passing > 0 and big.memory.total == 2 * big.parameters + 4 * 4 * 32 * 36 * one + passing
    for recipe, memory in ((gsm8k, small.memory), (gsm8k_lora, big.memory)):
        assert f"{memory.total / GIB:.1f} GiB" in (recipe.__doc__ or ""), memory.total / GIB


def test_other_families_from_their_folders(tmp_path: Path) -> None:
    config = {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024, "vocab_size": 50257}
    write_reduced(config, tmp_path / "gpt2", alphabet="ß")
    made = load_model(tmp_path / "gpt2")
    assert (made.shape.architecture, made.shape.hidden_size, made.shape.num_layers) == ("GPT2LMHeadModel", 64, 2)
    assert made.tokenizer.decode(made.tokenizer.encode("Maß\n")) == "Maß\n"
    warm = WarmUp(steps=2, batch=64, demonstrations=0)
    run = replace(gsm8k(), model=Folder(str(tmp_path / "gpt2")), tasks=SortDigits(), stages=(warm, *gsm8k().stages))
    changed, told = random_init(run)
    assert changed.tasks == run.tasks and not any("rows" in line for line in told)
    assert [stage.batch if isinstance(stage, WarmUp) else stage.groups for stage in changed.stages] == [16, 4]
    assert {stage.learner.device for stage in changed.stages} == {"auto"}
    again, _ = random_init(run)
    assert again == changed  # the same weights, not written twice
    assert load_model(Path(changed.model.path)).shape.architecture == "GPT2LMHeadModel"


def test_sizes_are_small_and_all_else_is_kept() -> None:
    small = reduced_config(plain(CONFIGS["Qwen/Qwen3-8B"]), 97)
    assert (small["hidden_size"], small["num_attention_heads"], small["num_key_value_heads"], small["head_dim"]) == (64, 4, 2, 16)
    assert (small["rope_theta"], small["tie_word_embeddings"], small["vocab_size"]) == (1000000.0, False, 97)
    assert "layer_types" not in reduced_config({"model_type": "gemma3_text", "layer_types": ["full"] * 26}, 97)
    with pytest.raises(ConfigError, match="names no family"):
        reduced_config({"hidden_size": 8}, 97)


def test_what_is_no_brought_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="start from a model's folder or hub name"):
        random_init(quickstart())
    with pytest.raises(ConfigError, match="nothing here tells what kind of model nobody/knows is"):
        config_known("nobody/knows")
    with pytest.raises(ConfigError, match="nothing here tells"):
        config_known("runs/never")


def test_steps_of_the_last_stage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "quickstart", "--steps", "0"]) == 2
    assert "--steps 0: give the number of steps of the last stage" in capsys.readouterr().err
