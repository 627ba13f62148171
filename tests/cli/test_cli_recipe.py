"""Words that name recipes, task families and files."""

import json
import sys

import pytest

from assay.cli import recipe, sources, user_objects
from assay.cli.run_request import Record
from assay.core.errors import CheckpointError, ConfigError, UnknownNameError


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("quickstrat", "unknown recipe 'quickstrat': did you mean 'quickstart'?"),
        ("mine.py", "say which function: mine.py:my_recipe"),
        ("mine.py:tinny", "unknown recipe in mine.py 'tinny': did you mean 'tiny'?"),
        ("gone.py:x", "gone.py does not exist"),
        ("no.such:x", "cannot import no.such"),
        ("mine.py:number", "is an int; it must be a function"),
        ("mine.py:no_run", "gave an int; it must return an assay Run"),
        ("mine.py:needs", "needs a value for 'value'"),
        ("quits.py:x", "quits.py failed: SystemExit: 0"),
        ("mine.py:fails", "failed: ValueError: in recipe (mine.py, line"),
        ("broken.py:x", "failed: ZeroDivisionError: division by zero"),
        ("json.py:x", "a module called 'json' exists already"),
        ("gone.toml", "cannot read a run from gone.toml"),
        ("bad.toml", "not TOML"),
    ],
)
def test_words_that_name_no_recipe(assay, mine, word, said):
    for name, text in {"broken.py": "1 / 0", "quits.py": "raise SystemExit(0)", "json.py": "", "bad.toml": "a = = 1"}.items():
        mine.with_name(name).write_text(text)
    got = assay("explain", word)
    assert got.code == 2
    assert said in got.err
    assert got.err.count("\n") == 1
    assert "broken" not in sys.modules


def test_a_file_is_imported_once_and_can_be_found_by_name(assay, mine):
    first = recipe.find("mine.py:tiny")
    assert recipe.find(f"{mine}:tiny") is first
    assert user_objects.user_modules() == ("mine",)
    assert user_objects.user_files() == (str(mine),)
    import mine as found

    assert found.tiny is first
    assert user_objects.first_line(first) == "The smallest run that does everything."


def test_recipes_by_module(assay):
    assert recipe.find("assay.recipes:quickstart") is recipe.find("quickstart")


def test_seed_reaches_the_base_of_a_recipe_that_takes_one(assay):
    for words in (["--seed", "7"], ["--seed=7"], ["--seed", "3", "--seed", "7"]):
        settings = assay("explain", "quickstart", *words, "--json").json["settings"]
        assert (settings["seed"], settings["model"]["run"]["seed"]) == (7, 7)


def test_seed_of_a_recipe_that_takes_none(assay, mine):
    assert assay("explain", "mine.py:tiny", "--seed", "7", "--json").json["settings"]["seed"] == 7


@pytest.mark.parametrize("words", [["--seed"], ["--seed", "x"], ["--seed=1.5"]])
def test_seed_that_is_no_number(assay, words):
    said = assay("explain", "quickstart", *words)
    assert said.code == 2
    assert "is no whole number" in said.err


def test_bare_names_are_looked_up_in_the_users_file(assay, mine):
    said = assay("explain", "mine.py:tiny", "--json", "--stages.0.curriculum.kind", "Mine", "--stages.0.curriculum.pace", "quick")
    assert said.json["settings"]["stages"][0]["curriculum"]["pace"] == "quick"
    said = assay(
        "explain",
        "quickstart",
        "--stages.0.curriculum.kind",
        "mine.py:Mine",
        "--stages.0.curriculum.shape",
        "mine.py:twice",
        "--json",
    )
    assert said.json["settings"]["stages"][0]["curriculum"]["shape"] == {"kind": "function", "name": "mine:twice"}


def test_users_part_that_refuses_a_setting(assay, mine):
    said = assay("explain", "mine.py:tiny", "--stages.0.curriculum.least", "-1")
    assert (said.code, said.err) == (2, "assay: --stages.0.curriculum.least -1: Mine.least=-1.0; use at least 0\n")


def test_help_lists_the_users_fields(assay, mine):
    from cli_support import flat

    text = flat(assay("train", "mine.py:tiny", "--help-all").out)
    assert "--stages.0.curriculum.pace {calm,quick} how fast it moves. (default: calm)" in text
    assert "--stages.0.curriculum.least FLOAT bounds of the weights, both included. (default: 0.0)" in text
    assert "--stages.0.curriculum.shape MODULE:FUNCTION a function of the weight. (default: mine:twice)" in text
    assert "--stages.0.curriculum.firm, --stages.0.curriculum.no-firm hold what was learned. (default: False)" in text
    assert "--folder PATH the new run's folder; runs/NAME-1, -2, ... when not given." in text
    assert "--plain lines instead of the live view." in text


def test_sources(assay, mine):
    assert sources.source("sort").name == "sort"
    assert sources.source("mine.py:my_source").arms() == {"sort": (2,)}
    assert sources.source("assay_tasks:Reverse").name == "reverse"
    for word, said in {
        "srot": "did you mean 'sort'",
        "mine.py": "say which",
        "mine.py:twice": "task family mine.py:twice needs a value for 'x'",
        "mine.py:number": "is an int without",
    }.items():
        with pytest.raises(ConfigError, match=said):
            sources.source(word)
    with pytest.raises(UnknownNameError, match="did you mean 'my_source'"):
        sources.source("mine.py:my_sorce")


def test_records_of_how_a_run_was_asked_for(tmp_path):
    assert Record.read(tmp_path) is None
    (tmp_path / "recipe.json").write_text(json.dumps({"recipe": "x", "args": ["--a"], "files": []}))
    assert Record.read(tmp_path) == Record(recipe="x", args=("--a",))
    (tmp_path / "recipe.json").write_text(json.dumps({"recipe": "x"}))
    with pytest.raises(CheckpointError, match=r"recipe\.json is damaged"):
        Record.read(tmp_path)
