"""The recipe of tasks that the base never solves: its arms, its page, and help that is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from assay.core.errors import ConfigError, UnknownNameError
from assay.guide import Ghpo, Plain
from assay.lab.controls import OtherSolutions
from assay.recipes.unsolved import HARD, SHOWN, hard, hard_cell
from assay.tasks.hinted import WithHints
from assay.testing import check_task_source
from assay_tasks import SortDigits
from assay_tasks.small.logic import Gates
from evidence import help_page

ROOT = Path(__file__).parents[2]


def test_the_arms_differ_in_help_alone() -> None:
    (ours,), (plain,), (pope,) = (hard_cell(arm, 1).run.stages for arm in ("ghpo", "plain", "pope"))
    assert ours == hard(1).stages[0] and isinstance(ours.guidance, Ghpo) and isinstance(plain.guidance, Plain)
    assert replace(plain, guidance=ours.guidance, groups=ours.groups, steps=ours.steps) == ours
    assert replace(pope, guidance=ours.guidance, steps=ours.steps) == ours
    wrong = hard_cell("ghpo-other", 1)
    assert replace(wrong.run.stages[0], steps=ours.steps) == ours and isinstance(wrong.run.tasks, OtherSolutions)
    assert max(SHOWN) < min(HARD) and set(hard_cell("pope", 0).truth.arms()["gates"]) == set(HARD)
    assert hard_cell("seele", 0, 5).run.steps == 5
    with pytest.raises(UnknownNameError):
        hard_cell("nothing", 0)
    with pytest.raises(UnknownNameError):
        hard_cell("pope-nothing", 0)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["other", "shuffled"])
def test_a_wrong_solution_leaves_the_verifier_right(how: str) -> None:
    source = OtherSolutions(source=SortDigits(), how=how)
    check_task_source(source)
    pairs = [(source.task("sort", 8, "train", k), SortDigits().task("sort", 8, "train", k)) for k in range(20)]
    wrong = [a.private["solution"] != b.private["solution"] for a, b in pairs]
    assert sum(wrong) > 15 and all(a.private["answer"] == b.private["answer"] and a.public == b.public for a, b in pairs)
    told = source.trace(pairs[0][0], 0.0, np.random.default_rng(0))
    assert told is not None and told[0].content == pairs[0][1].private["solution"]
    assert source.environment(pairs[0][0].public_view()) is None and source.name == "sort"
    with pytest.raises(UnknownNameError):
        OtherSolutions(source=SortDigits(), how="none")


def test_hints_stand_behind_the_prompt() -> None:
    def shares(source: WithHints, level: int) -> list[float]:
        tasks = [source.task("gates", level, "train", k) for k in range(60)]
        hints = [t.public["prompt"].partition(">")[2].removeprefix("|") for t in tasks]
        assert all(t.private["solution"].startswith(h) for t, h in zip(tasks, hints, strict=True))
        return [len(h) / level for h in hints]

    source = WithHints(tasks=Gates(levels=(4, 9)), known=4, beyond=(0.5, 1.0), mark="|")
    check_task_source(source)
    easy, beyond = shares(source, 4), shares(source, 9)
    assert 15 < easy.count(0.0) < 45 and set(easy) == {0.0, 0.25, 0.5, 0.75, 1.0}
    assert min(beyond) >= 0.5 and max(beyond) == 1.0
    assert set(shares(WithHints(tasks=Gates(), known=9, share=0.25), 4)) == {0.25}
    assert "|" in source.alphabet and source.test_share == 0.1


def test_hints_need_prompts_and_solutions_that_are_text() -> None:
    for wrong in ({"probability": 2.0}, {"share": -1.0}, {"beyond": (0.5, 0.25)}):
        with pytest.raises(ConfigError, match=r"must be in \[0, 1\]"):
            WithHints(tasks=Gates(), known=4, **wrong)  # pyright: ignore[reportArgumentType]


def test_the_committed_page_is_what_its_numbers_say() -> None:
    rows = json.loads((ROOT / "docs/evidence/help.json").read_text())["rows"]
    assert [(r["arm"], r["seed"]) for r in rows] == [(arm, s) for arm, seeds in help_page.SEEDS.items() for s in seeds]
    assert (ROOT / "docs/evidence/help.md").read_text() == help_page.page(rows)
    weak = [{**r, "now_greedy": 0.1} if r["arm"] == "ghpo" else r for r in rows]
    assert any(text.startswith("ghpo: 0.100") for text in help_page.failures(weak))
    assert "Not as predicted: " in help_page.page(weak)
    solved = [{**r, "base_sampled": 0.5} for r in rows]
    assert any("solves tasks" in text for text in help_page.failures(solved))


@pytest.mark.evidence
def test_help_teaches_what_rewards_alone_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    found = help_page.make_page(tmp_path)
    assert all(text.startswith("plain: ") for text in found), "rewards alone find a first success on some seeds"
