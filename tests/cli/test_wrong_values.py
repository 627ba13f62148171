"""A wrong value of a command's own option: one line with the option, the value and what is expected."""

from dataclasses import dataclass, field

import pytest

from assay.cli.options import parse
from assay.cli.tasks_sample import TasksSampleOptions
from assay.cli.wrong_values import explain_wrong_value


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("tasks sample sort --level two", "--level: 'two' is not a whole number"),
        ("tasks sample sort --seed=1.5", "--seed: '1.5' is not a whole number"),
        ("tasks sample sort -n many", "-n: 'many' is not a whole number"),
        ("tasks sample sort -n", "-n needs a value: a whole number"),
        ("eval runs/a --temperature hot", "--temperature: 'hot' is not a number"),
        ("curate a b --conflicts drpo", "--conflicts: 'drpo' is not one of keep, drop; did you mean 'drop'?"),
        ("curate a b --sizes 3 x --seed 1", "--sizes: 'x' is not a whole number"),
        ("curate a b --band_low --seed 1", "--band_low needs a value: a number"),
        ("serve model x --port=-1x", "--port: '-1x' is not a whole number"),
    ],
)
def test_a_wrong_value_is_said_in_one_line(assay, words: str, said: str) -> None:
    got = assay(*words.split())
    assert (got.code, got.out, got.err) == (2, "", f"assay: {said}\n")


def test_other_boxes_stay(assay) -> None:
    got = assay("tasks", "sample", "sort", "--levl", "2")
    assert got.code == 2 and "--level" in got.err and "Unrecognized options" in got.err
    assert explain_wrong_value("Error parsing --nothing: no", TasksSampleOptions, ["--nothing"]) is None


def test_help_is_printed_and_ends_in_0(capsys) -> None:
    with pytest.raises(SystemExit) as stop:
        parse(TasksSampleOptions, ["--help"], "assay tasks sample")
    assert not stop.value.code and "--level" in capsys.readouterr().out


def test_a_position_is_named_too() -> None:

    @dataclass(frozen=True, kw_only=True)
    class Positions:
        count: int = field(metadata={"positional": True, "arg": {"metavar": "COUNT"}})

    with pytest.raises(ValueError, match=r"COUNT: 'few' is not a whole number"):
        parse(Positions, ["few"], "assay x")
