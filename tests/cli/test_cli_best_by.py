"""`assay eval --best-by`: how often the answer is right that a selector takes among k."""

from __future__ import annotations

from pathlib import Path

import pytest

REWARDS = """
def same(prompt, completion, row):
    return 0.5

def broken(prompt, completion, row):
    raise RuntimeError("no reward today")

def brittle(prompt, completion, row):
    return 1 / (sum(map(ord, str(completion))) % 5)
"""


@pytest.fixture
def folder(assay, mine: Path) -> Path:
    (mine.parent / "rewards.py").write_text(REWARDS)
    assert assay("train", "mine.py:tiny", "--folder", "run", "--plain", "--no-report").code == 0
    return mine.parent / "run"


def test_the_verifier_selects_as_pass_at_k_says_and_a_constant_as_the_mean(assay, folder: Path) -> None:
    words = ("eval", folder, "--per-level", "6", "-n", "4", "--json", "--best-by")
    whole = assay(*words, "exact").json
    perfect, found = whole["selection"]["metrics"], whole["all"]["metrics"]
    assert list(perfect) == ["selected@1", "selected@2", "selected@4"]
    for k in (1, 2, 4):
        assert perfect[f"selected@{k}"]["value"] == pytest.approx(found[f"pass@{k}"]["value"])
    blind = assay(*words, "rewards.py:same").json
    assert blind["all"] == whole["all"], "the selector changes nothing else"
    assert blind["selection"]["unscored"] == 0
    for interval in blind["selection"]["metrics"].values():
        assert interval["value"] == pytest.approx(found["avg@4"]["value"])
    shown = assay(*(w for w in words if w != "--json"), "exact")
    assert "best by exact, right" in shown.out and "by a perfect selector (pass@k)" in shown.out


@pytest.mark.slow
def test_a_selector_that_fails_is_no_score_of_zero(assay, folder: Path) -> None:
    said = assay("eval", folder, "--per-level", "2", "-n", "2", "--best-by", "rewards.py:broken")
    assert said.code == 1 and "no verdict on" in said.err and "no reward today" in said.err
    words = ("eval", folder, "--per-level", "6", "-n", "4", "--best-by", "rewards.py:brittle")
    told = assay(*words, "--json")
    assert told.code == 0, told.err
    found = told.json
    answers = 4 * len(found["tasks"])
    assert 0 < found["selection"]["unscored"] < answers
    assert found["faults"] == 0, "the verdicts stay"
    said = assay(*words)
    assert f"{found['selection']['unscored']} answers that rewards.py:brittle failed on" in said.err


def test_a_single_answer_leaves_no_choice(assay) -> None:
    for words in (("-n", "1"), ("--greedy",)):
        said = assay("eval", "nowhere", *words, "--best-by", "exact")
        assert said.code == 2 and "give --n 2 or more" in said.err
