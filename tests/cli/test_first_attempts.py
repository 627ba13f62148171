"""What a person who knows other trainers tries first, and what the command line makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.cli.given_options import split_options
from assay.cli.objective_name import objective_name
from assay.cli.recipe import settle
from assay.cli.tracker_options import choose_trackers, file_options, split_trackers
from assay.cli.train_options import TrainOptions
from assay.core.config import to_dict
from assay.core.errors import ConfigError


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("--kl 0.125", "grpo + kl 0.125 >> Token()"),
        ("--kl 0.25 --entropy 0.5 --clip 0.2 0.28", "grpo + kl 0.25 + entropy 0.5, clip 0.2 0.28 >> Token()"),
        ("--objective gspo --kl 0.25", "gspo + kl 0.25"),
        ("--kl-in-reward 0.25", "grpo + kl in the reward 0.25 >> Token()"),
    ],
)
def test_an_objective_is_named_by_its_method_and_what_stands_beside(words: str, name: str) -> None:
    stage = settle(TrainOptions, "quickstart", words.split(), "assay train")[1].stages[0]
    assert objective_name(to_dict(stage.objective)) == name


def trackers(words: str, table: dict[str, object]) -> list[str]:
    about = [*file_options(Path("a.toml"), {"tracker": table}), *split_trackers(split_options(words.split())[1])[0]]
    return [tracker.tracker_name() for tracker in choose_trackers(about)]


def test_the_command_line_turns_a_files_tracker_off() -> None:
    table: dict[str, object] = {"wandb": {"project": "sums"}}
    assert trackers("", table) == ["wandb"]
    assert trackers("--tracker none", table) == []
    assert trackers("--tracker tensorboard", table) == ["tensorboard"]
    with pytest.raises(ConfigError, match="wandb is not among the trackers chosen"):
        trackers("--tracker none --tracker.wandb.project x", table)


def test_a_resume_says_that_it_takes_no_settings(assay, mine) -> None:
    said = assay("resume", "runs/a", "--lr", "1e-5")
    assert said.code == 2
    assert "--lr 1e-5: a resume goes on with the settings that the run has" in said.err
    assert "assay train RECIPE --model runs/a/model --lr 1e-5" in said.err


def test_recipes_of_a_file_are_what_may_be_one(assay, mine) -> None:
    mine.with_name("own.py").write_text(
        "rows = [1]\ndef reward(prompt, completion, row): return 1.0\ndef my_run(seed: int = 0): return None\n"
    )
    assert assay("explain", "own.py:my_rum").err.rstrip().endswith("did you mean 'my_run'? known: my_run")


def test_a_file_that_is_not_there_is_told_in_words(assay, mine) -> None:
    assert "there is no such file" in assay("explain", "gone.toml").err
    assert "there is no such file" in assay("explain", "mine.py:tiny", "--config", "gone.toml").err


def test_explain_begins_with_sizes_and_ends_with_the_settings_of_the_base(assay) -> None:
    said = assay("explain", "quickstart").out
    order = [said.index(word) for word in ("memory", "learning rate of stage 0", "\nsettings\n", "\nsettings of the base")]
    assert order == sorted(order)


def test_explain_says_how_a_server_gets_a_base_that_is_built(assay) -> None:
    said = assay("explain", "quickstart", "--engine.kind", "VllmSettings", "--engine.url", "http://127.0.0.1:9/v1").out
    assert (
        "assay train quickstart --engine.kind Auto --steps 1 --folder runs/base" in said and "vllm serve runs/base/start" in said
    )
