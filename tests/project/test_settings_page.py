"""The page of settings by their usual word: each option parses and changes something, each keyword and place exists."""

from __future__ import annotations

import inspect
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from assay.cli.recipe import settle_all
from assay.cli.train_options import TrainOptions
from assay.recipes import on_rows

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
LINE = re.compile(r"^\| (?!word |---)(.+) \|$", re.MULTILINE)
ROWS = [{"prompt": f"S{n}>", "answer": str(n)} for n in range(100, 200)]
TABLE = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", f" {line} ")] for line in LINE.findall(PAGE.read_text(encoding="utf-8"))
]
WORDS = """KL coefficient|learning rate schedule|warm-up|temperature|top-p|top-k|answer length|group size|prompts per step
gradient accumulation|clip range|updates per batch|seed|precision|LoRA|checkpoint|best model|logging|tracker
evaluation frequency|evaluation size|early stopping|reward weights|reward deadline|reward scaling|device|threads|several GPUs"""


def code_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value[int(name)] if name.isdecimal() else getattr(value, name)
    return value


def test_the_table_has_the_words_that_are_looked_for() -> None:
    assert {len(line) for line in TABLE} == {5}
    words = " ".join(line[0] for line in TABLE)
    assert [word for word in re.split(r"[|\n]", WORDS) if word not in words] == []


@pytest.mark.parametrize("option", [code for line in TABLE for code in code_in(line[1])])
def test_each_option_parses_and_changes_the_run_or_what_becomes_of_it(option: str) -> None:
    plain = settle_all(TrainOptions, ["quickstart"], "assay train")
    asked = settle_all(TrainOptions, ["quickstart", *shlex.split(option)], "assay train")
    assert (asked.run, asked.own, asked.trackers) != (plain.run, plain.own, plain.trackers)


def test_each_keyword_is_one_of_on_rows() -> None:
    known = inspect.signature(on_rows).parameters
    named = [re.match(r"\w+", code) for line in TABLE for code in code_in(line[2])]
    assert len(named) > 20
    assert [found.group() for found in named if found and found.group() not in known] == []


def test_each_place_exists_and_has_the_default_that_the_page_says() -> None:
    run = on_rows(ROWS)
    said = {path: code_in(line[4]) for line in TABLE for path in code_in(line[3])}
    assert len(said) > 40
    assert {path: at(run, path) for path, code in said.items() if code and str(at(run, path)) != code[0]} == {}
