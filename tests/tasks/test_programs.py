"""Programs as families: what is refused, what scale is found, and programs that run in the sandbox."""

from __future__ import annotations

import re
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

from assay.core.errors import ConfigError, DataError
from assay.tasks import Foreign, ProgramTask, make_program_family
from assay.testing import check_task_source

STATEMENT = "Print the sum of the numbers."  # 29 characters


def total(text: str) -> str:
    return f"{sum(map(int, text.split()))}  \n"


def total_otherwise(text: str) -> str:
    numbers = [int(word) for word in text.split()]
    return str(numbers[0] + sum(numbers[1:]))


def wrong_when_long(text: str) -> str:
    return str(sum(map(int, text.split())) + (len(text.split()) > 20))


def numbers(scale: int, seed: int) -> str:
    rng = Random(seed)
    return " ".join(str(rng.randint(100, 999)) for _ in range(scale))


def test_a_family_of_a_program() -> None:
    found = make_program_family("toy/sum", STATEMENT, [total, total_otherwise], numbers, most_characters=200, steps=4)
    # scale n has 29 + 4 n - 1 + digits of the sum: at 41 numbers 192 + 5, at 42 it is 196 + 5
    assert found.largest == 41 and found.task.levels == (1, 3, 12, 41)
    assert [scale for scale, _ in found.refused] == [42, 44, 48, 64]
    assert found.refused[0][1] == "question and answer have 201 characters, 200 are allowed"
    source = found.family
    assert source.name == "toy" and check_task_source(source, n=4).skipped == ()
    task = source.task("toy/sum", 3, "train", 0)
    given = task.public["facts"]["input"]
    assert (
        task.private["answer"] == str(sum(map(int, given.split())))
        and task.private["effort"] == 3
        and given in task.public["prompt"]
    )


def test_the_largest_scale_is_bounded() -> None:
    assert make_program_family("toy/sum", STATEMENT, [total], numbers, most_scale=5, samples=4).task.levels == (1, 2, 3, 4, 5)
    assert make_program_family("toy/sum", STATEMENT, [total], numbers, most_scale=1, samples=4).task.levels == (1,)
    assert make_program_family("toy/sum", STATEMENT, [total], numbers, most_scale=6, samples=4, steps=1).task.levels == (1, 6)


def test_references_that_disagree_are_refused() -> None:
    with pytest.raises(DataError, match=r"toy/sum: reference 0 gives '\d+' and reference 1 gives '\d+' on the input"):
        make_program_family("toy/sum", STATEMENT, [total, wrong_when_long], numbers)
    assert make_program_family("toy/sum", STATEMENT, [total, wrong_when_long], numbers, most_scale=20).largest == 20
    count = iter(range(10**6))
    with pytest.raises(DataError, match="reference 0 gives '0' and reference 0 gives '1'"):
        make_program_family("toy/sum", STATEMENT, [lambda _: str(next(count))], numbers)


def test_outputs_that_do_not_vary_are_refused() -> None:
    with pytest.raises(DataError, match="12 of 12 inputs at scale 1 have the output 'yes'; a constant answer would be right"):
        make_program_family("toy/yes", STATEMENT, [lambda _: "yes"], numbers, most_scale=4)


def test_what_takes_too_long_or_is_too_large() -> None:
    def slow(text: str) -> str:
        if len(text.split()) > 3:
            time.sleep(0.02)
        return total(text)

    found = make_program_family("toy/slow", STATEMENT, [slow], numbers, most_seconds=0.015, samples=4)
    assert found.largest <= 3 and "0.015 are allowed" in found.refused[0][1]
    with pytest.raises(DataError, match="even scale 1 does not fit: question and answer have 35 characters, 20 are allowed"):
        make_program_family("toy/sum", STATEMENT, [total], numbers, most_characters=20)
    shrinking = [6, 1, 9, 1, 1, 1, 1, 1]  # sizes that do not grow with the scale
    with pytest.raises(DataError, match=r"scale 3 does not fit, though 8 does: .*sizes must grow with the scale"):
        make_program_family(
            "toy/sum",
            STATEMENT,
            [total],
            lambda scale, seed: numbers(shrinking[scale - 1], seed),
            most_characters=60,
            most_scale=8,
        )


def test_programs_that_fail_are_named() -> None:
    with pytest.raises(DataError, match=r"toy/sum: reference 0 on the input '\d+': ZeroDivisionError"):
        make_program_family("toy/sum", STATEMENT, [lambda _: str(1 // 0)], numbers)
    with pytest.raises(DataError, match="gave int, not text"):
        make_program_family("toy/sum", STATEMENT, [lambda _: 1], numbers)  # pyright: ignore
    with pytest.raises(DataError, match=r"generator at scale 1, seed .*: ValueError: no"):
        make_program_family("toy/sum", STATEMENT, [total], lambda scale, seed: (_ for _ in ()).throw(ValueError("no")))


def test_settings_that_are_refused() -> None:
    for setting in ({"most_scale": 0}, {"samples": 3}, {"steps": 0}, {"same": 1.0}, {"most_characters": 0}):
        with pytest.raises(ConfigError, match="most_scale must be 1 to 1000"):
            make_program_family("toy/sum", STATEMENT, [total], numbers, **setting)  # pyright: ignore
    for gap in ({"statement": " "}, {"references": ()}, {"generator": None}):
        with pytest.raises(ConfigError, match="toy/sum: give a statement"):
            ProgramTask(**{"name": "toy/sum", "statement": STATEMENT, "references": (total,), "generator": numbers, **gap})  # pyright: ignore


def test_programs_of_others_run_in_the_sandbox() -> None:
    program = Foreign("print(sum(map(int, input().split())))")
    made = Foreign("import random as r\nn, s = map(int, input().split())\nr.seed(s)\nprint(*[r.randrange(99) for _ in range(n)])")
    found = make_program_family("toy/sum", STATEMENT, [program, total], made, most_scale=2, samples=4, steps=2)
    task = found.family.task("toy/sum", 2, "train", 0)
    assert task.private["answer"] == str(sum(map(int, task.public["facts"]["input"].split())))
    with pytest.raises(DataError, match=r"the program '1/0' ended as error on the input '3': ZeroDivisionError"):
        Foreign("1/0")("3")
    assert found.task.references[0] == Foreign(program.code) and hash(program) == hash(Foreign(program.code))


def test_the_program_shown_in_the_docs_is_taken(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/add/program.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    shown: dict[str, Any] = {}
    exec(code, shown)
    assert shown["found"].largest > 100
    assert check_task_source(shown["source"].only("runs/longest"), n=1).passed
    assert shown["longest_run"]("1 1 0 0 0 1") == "3"
