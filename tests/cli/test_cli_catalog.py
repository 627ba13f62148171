"""Task families and recipes on the command line."""

import pytest

from assay.cli import show
from assay.recipes import RECIPES


def test_recipes(assay):
    rows = assay("recipes", "--json").json
    assert [r["name"] for r in rows] == list(RECIPES)
    assert all(r["summary"] for r in rows)
    assert "`" not in assay("recipes").out


def test_families(assay):
    rows = {r["name"]: r for r in assay("tasks", "list", "--json").json}
    assert rows["sort"]["arms"] == {"sort": [3, 4, 5, 6, 7, 8, 9, 10]}
    assert (rows["keyvalue"]["tools"], rows["sort"]["tools"]) == (True, False)
    text = assay("tasks", "list").out
    assert "3-10" in text
    assert "Write the digits in ascending order" in text


def test_one_family(assay, mine):
    found = assay("tasks", "show", "sort", "--level", "5", "--index", "2", "--json").json
    from assay.tasks import SortDigits

    task = SortDigits().task("sort", 5, "train", 2)
    assert found["example"]["messages"] == [["user", task.public["prompt"]]]
    assert found["example"]["private"] == {"answer": task.private["answer"]}
    assert f"answer (private)  {task.private['answer']}" in assay("tasks", "show", "sort", "--level", "5", "--index", "2").out
    assert assay("tasks", "show", "mine.py:my_source", "--json").json["arms"] == {"sort": [2]}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "srot"], "did you mean 'sort'"), (["show", "sort", "--arm", "srot"], "did you mean 'sort'"),
        (["show", "sort", "--level", "99"], "99"), (["check", "srot"], "did you mean 'sort'"),
    ],
)  # fmt: skip
def test_unknown_names(assay, words, said):
    got = assay("tasks", *words)
    assert got.code == 2
    assert said in got.err


def test_check(assay, mine):
    found = assay("tasks", "check", "reverse", "--json").json
    assert found["passed"]
    text = assay("tasks", "check", "mine.py:my_source").out
    assert text.startswith("task family sort\npass  ")


def test_check_of_a_family_that_breaks_its_promise(assay, tmp_path):
    (tmp_path / "wrong.py").write_text(
        "from dataclasses import dataclass\n"
        "from assay.tasks import SortDigits\n"
        "@dataclass(frozen=True, kw_only=True)\n"
        "class Wrong(SortDigits):\n"
        "    '''Answers are not sorted.'''\n"
        "    def solve(self, prompt):\n"
        "        return super().solve(prompt) if prompt[1] != '3' else ''\n"
        "    def trace(self, task, noise, rng):\n"
        "        from assay.core.task import Message\n"
        "        return (Message('assistant', '?'),)\n"
    )
    said = assay("tasks", "check", "wrong.py:Wrong")
    assert said.code == 1
    assert "task family sort" in said.err


def test_a_family_whose_oracle_fails(assay, tmp_path):
    (tmp_path / "lost.py").write_text(
        "from dataclasses import dataclass\n"
        "from assay.core.errors import DataError\n"
        "from assay.tasks import SortDigits\n"
        "@dataclass(frozen=True, kw_only=True)\n"
        "class Lost(SortDigits):\n"
        "    'Its oracle does not know.'\n"
        "    def trace(self, task, noise, rng):\n"
        "        raise DataError('nothing known')\n"
    )
    said = assay("tasks", "check", "lost.py:Lost")
    assert (said.code, said.err) == (1, "assay: task family sort: nothing known\n")


@pytest.mark.parametrize(("value", "text"), [(None, "–"), (True, "yes"), (False, "no"), (0.5, "0.500"), (3, "3")])
def test_cells(value, text):
    assert show.cell(value) == text


def test_json_of_values_that_json_lacks(capsys):
    assert show.show(True, {"a": [float("inf"), 1.0], "b": float("nan")}, lambda: None) == 0
    assert '"inf"' in capsys.readouterr().out


def test_levels_of_several_arms():
    from assay.cli.catalog import _span

    assert _span({"a": (1, 2, 3), "b": (5,)}) == "a 1-3, b 5"
    assert _span({"a": (4,)}) == "4"
