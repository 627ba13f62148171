"""Each example runs as it is, for two steps, on weights of a few kilobytes, and is listed in the folder's page."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
import tyro

from assay.runtime import DecoderShape, char_tokenizer, init_model, save_model

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(EXAMPLES.glob("*.py"))
LINES = 60
SMALL = DecoderShape(vocab_size=14, hidden_size=32, num_layers=1, num_heads=2, num_kv_heads=1, head_dim=16, intermediate_size=32)
WITHOUT_BASE = {"own_rewards", "curriculum"}
"""Those that begin with the embedded base, which takes half a minute to build: here they get a model of their own."""
SAYS = {
    "own_rewards": r"^accuracy 0\.\d+ -> 0\.\d+\n\['",
    "hub_model_lora": r"^2 steps of reinforcement learning on rows .*\n.*out$",
    "tool": r"^2 steps of reinforcement learning on rows ",
    "judge": r"^2 steps of reinforcement learning on rows ",
    "environment": r"^2 steps of reinforcement learning on rows ",
    "own_trainer": r"^step 2/2  reward \d\.\d{3}$",
    "curriculum": r"exact resume[^\n]*\n\{'level_10': .*'level_9': ",
}


def loaded(path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The example as a module, whose functions a run's file can name."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    return module


def words_for(name: str, folder: Path) -> list[str]:
    """The command line of a short run."""
    words = ["--steps", "2"]
    if name in WITHOUT_BASE:
        save_model(init_model(SMALL, char_tokenizer("0123456789S>"), seed=0, init="fan_in"), folder / "model")
        words += ["--model", str(folder / "model")]
    if name != "own_trainer":
        words += ["--folder", str(folder / "run")]
    return [*words, "--to", str(folder / "out")] if name == "hub_model_lora" else words


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_the_example_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = loaded(path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    tyro.cli(module.main, args=words_for(path.stem, tmp_path))
    assert re.search(SAYS[path.stem], capsys.readouterr().out, re.MULTILINE)
    if path.stem == "own_trainer":
        return
    assert json.loads((tmp_path / "run" / "done.json").read_text())["step"] == 2
    first = json.loads((tmp_path / "run" / "rollouts.jsonl").read_text().splitlines()[0])
    assert not first["fault"] or first["fault"] in ("none", "policy")
    if path.stem == "hub_model_lora":
        assert (tmp_path / "out" / "model.safetensors").exists()


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_the_example_is_short_and_listed(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LINES
    assert f"| `{path.name}` |" in (EXAMPLES / "README.md").read_text(encoding="utf-8")


def test_links_of_the_page_lead_somewhere() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"\]\(([^)#]+)", text) + re.findall(r"^\| `([\w./]+)` \|", text, re.MULTILINE)
    assert len(named) > 15 and [name for name in named if not (EXAMPLES / name).exists()] == []


def test_guesses_are_answered() -> None:
    """The environment's answers lead to the number; what is no number, or after the last guess, ends nothing early."""
    import asyncio

    sys.path.insert(0, str(EXAMPLES))
    try:
        import environment
    finally:
        sys.path.remove(str(EXAMPLES))
    source = environment.my_recipe().tasks
    world = source.task("rows", 1, "train", 0).public_view()
    number = world.world["number"]

    async def play(*guesses: str) -> list[tuple[str, bool]]:
        there = source.environment(world)
        await there.start()
        steps = [await there.step(guess) for guess in guesses]
        return [(step.obs.messages[0].content if step.obs.messages else "", step.done) for step in steps]

    heard = asyncio.run(play("x", str(number + 1), f" {number - 1}", str(number)))
    assert heard == [("Not a number.", False), ("less", False), ("more", False), ("", True)]
    assert asyncio.run(play(*["9" * 9] * 5))[-1] == ("", True)
