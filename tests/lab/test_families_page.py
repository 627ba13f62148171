"""The study of families: counts by hand, records that hold for their stream, and a page that says what was measured."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from assay.core.canon import FrozenMap
from assay.core.errors import DataError
from assay.core.task import Task
from assay.tasks import family
from assay.testing import stream_digest
from assay_tasks import Reverse, SortDigits
from evidence import arms, families_page
from evidence.arms import Drawn, Measured, Sizes, draw_tasks, measure, measure_or_load

FEW = Sizes(tasks=10, answers=20, draws=400, timed=0.01)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made(SortDigits):
    """Tasks by number: question ``i`` mod ``spread``, in ``words`` of its own or none, gold 1 in three of four."""

    spread: int = 1000
    words: int = 10**6
    share: int = 20
    tests: bool = True

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        """One of ``spread`` questions; those of the test split are others."""
        if split == "test" and not self.tests:
            raise DataError("no tests")
        number = index % self.spread + (0 if split == "train" else 10**6)
        return Task(
            id=f"{split}/{index}",
            domain="d",
            arm=arm,
            level=level,
            split=split,
            index=index,
            public=FrozenMap({"prompt": f"{split} {number % self.words}", "facts": {"n": number}}),
            private=FrozenMap({"answer": str(int(index % 4 == 0)), "effort": level + index % 2}),
        )


def test_counts_by_hand() -> None:
    """Of 400 draws 8 are of the test split."""
    assert draw_tasks(Made(), "sort", 3, 400, 9.0) == Drawn(tasks=400, distinct=400, once=400, both=0, repeats=0)
    assert draw_tasks(Made(spread=4), "sort", 3, 400, 9.0) == Drawn(tasks=400, distinct=8, once=0, both=0, repeats=0)
    some = draw_tasks(Made(spread=391), "sort", 3, 400, 9.0)
    assert (some.distinct, some.once, some.whole) == (399, 398, False)
    assert draw_tasks(Made(tests=False), "sort", 3, 400, 9.0).distinct == 400
    assert draw_tasks(Made(words=40), "sort", 3, 40, 9.0).repeats == 0
    assert draw_tasks(Made(words=20), "sort", 3, 38, 9.0).repeats == 18  # after the first 20 words
    assert draw_tasks(Made(), "sort", 3, 10**6, 0.0).tasks == 1


def test_questions_in_both_splits_are_counted() -> None:
    class Both(Made):
        def task(self, arm: str, level: int, split: str, index: int) -> Task:
            return replace(super().task(arm, level, "train", index), split=split)

    assert draw_tasks(Both(), "sort", 3, 400, 9.0).both == 8


def test_what_a_prompt_does_not_hold_is_not_compared() -> None:
    hidden = draw_tasks(family("games/number"), "games/number", 3, 200, 9.0)
    assert (hidden.tasks, hidden.repeats) == (200, None) and hidden.distinct > 100


def test_an_arm_measured() -> None:
    found = measure(Made(levels=(3, 4, 5)), "sort", FEW)
    assert found.effort == {3: 3.5, 4: 4.5, 5: 5.5} and found.commonest == {3: 0.75, 4: 0.75}
    assert list(found.rate) == [3, 4, 5] and min(found.rate.values()) > 0
    assert (found.drawn.tasks, found.stream) == (400, stream_digest(Made(levels=(3, 4, 5)), "sort"))
    assert Measured.of(json.loads(json.dumps(asdict(found)))) == found
    slow = measure(Made(levels=(3, 4)), "sort", replace(FEW, tasks=10**6, seconds=0.0))  # one task of each level
    assert (slow.effort, slow.commonest) == ({3: 3.0, 4: 4.0}, {3: 1.0, 4: 1.0})


def test_a_record_holds_for_its_stream_and_its_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def counted(source: Any, arm: str, sizes: Sizes, asked: Drawn | None) -> Measured:
        calls.append(arm)
        return measure(source, arm, sizes, asked)

    def sought(source: Any, arm: str, level: int, most: int, seconds: float) -> Drawn:
        draws.append(most)
        return draw_tasks(source, arm, level, most, seconds)

    draws: list[int] = []
    monkeypatch.setattr(arms, "measure", counted)
    monkeypatch.setattr(arms, "draw_tasks", sought)
    first = measure_or_load(SortDigits(levels=(3,)), "sort", tmp_path, FEW)
    assert measure_or_load(SortDigits(levels=(3,)), "sort", tmp_path, FEW) == first and calls == ["sort"]
    measure_or_load(SortDigits(levels=(3,), seed=1), "sort", tmp_path, FEW)
    measure_or_load(SortDigits(levels=(3,), seed=1), "sort", tmp_path, replace(FEW, draws=300))
    measure_or_load(SortDigits(levels=(3, 4), seed=1), "sort", tmp_path, replace(FEW, draws=300))
    assert calls == ["sort"] * 4 and draws == [400, 400, 300, 300]
    measure_or_load(SortDigits(levels=(3, 4), seed=1), "sort", tmp_path, replace(FEW, draws=300, answers=30))
    assert len(calls) == 5 and len(draws) == 4  # the questions are those that were counted


def sound(**changes: Any) -> Measured:
    given: dict[str, Any] = {
        "arm": "a/b",
        "levels": (1, 2, 3),
        "rate": {1: 9000.0, 2: 8000.0, 3: 200.0},
        "effort": {1: 2.0, 2: 4.5, 3: 70.0},
        "commonest": {1: 0.5, 2: 0.25},
        "cpu_seconds": 30.0,
        "stream": "00",
        "drawn": Drawn(tasks=2000, distinct=1900, once=1800, both=0, repeats=0),
    }
    return Measured(**(given | changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rate": {1: 400.0, 2: 8000.0, 3: 300.0}}, "the median arm makes 400 tasks"),
        ({"rate": {1: 9000.0, 2: 8000.0, 3: 40.0}}, "`a/b` makes 40.0 tasks per CPU-second at level 3"),
        ({"commonest": {1: 0.61, 2: 0.2}}, "one gold is that of 61.0% of `a/b` at level 1"),
        ({"effort": {1: 2.0, 2: 3.0, 3: 2.0}}, "`a/b` asks no more effort"),
        ({"drawn": Drawn(tasks=9, distinct=9, once=9, both=2, repeats=0)}, "`a/b` has 2 questions in both splits"),
        ({"drawn": Drawn(tasks=9, distinct=9, once=9, both=0, repeats=3)}, "`a/b` has 3 questions that read like another one"),
    ],
)
def test_bars(changes: dict[str, Any], said: str) -> None:
    assert families_page.failures({"a": [sound()]}) == []
    found = families_page.failures({"a": [sound(**changes)]})
    assert len(found) == 1 and said in found[0]
    assert said in families_page.page({"a": [sound(**changes)]}, (0.5, 1.5))


def test_an_arm_that_counts_no_effort_or_has_one_level_is_not_asked_to_grow() -> None:
    assert families_page.failures({"a": [sound(effort={})]}) == []
    assert families_page.failures({"a": [sound(levels=(1,), rate={1: 9000.0}, effort={1: 2.0})]}) == []


def test_the_page_reads() -> None:
    few = sound(
        arm="c",
        levels=(2, 5),
        rate={2: 7000.0, 5: 60.0},
        effort={2: 1.0, 5: 1.5},
        drawn=Drawn(tasks=400, distinct=64, once=0, both=0, repeats=None),
    )
    text = families_page.page({"a": [sound()], "c": [few]}, (0.5, 1.5))
    assert "All 2 arms of the 2 built-in families" in text and "# 1 CPU-minutes" in text
    assert "| lowest | 8,000 | 7,000 | `c` |\n| middle | 4,030 | 60 | `c` |\n| highest | 130 | 60 | `c` |" in text
    assert "| `a` | 1 | 9,000 | 200 | 200 | 0.50 | 1,900 of 2,000 |" in text
    assert "| `b` | 1–3 | 9,000 · 8,000 · 200 | 2.0 · 4.5 · 70 | 0.50 · 0.25 | 1,900 of 2,000 |" in text
    assert "| `c` | 2–5 | 7,000 · 60 |" in text and "all 64 |" in text
    assert "`c` 64.\n" in text and "## Under a bar" in text and "\nNone.\n" in text
    assert "2,400 tasks were drawn" in text and "median share of different questions is 95.0%" in text


def test_the_study_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(families_page, "families", lambda: ("sort", "reverse"))
    monkeypatch.setattr(families_page, "Sizes", lambda: FEW)
    monkeypatch.setattr(families_page, "BARS", {**families_page.BARS, "median": 0.0, "slowest": 0.0})  # the machine may be busy
    assert families_page.make_page(tmp_path / "out") == []
    first = json.loads((tmp_path / "out" / "tasks.json").read_text())
    assert [a["arm"] for a in first["families"]["reverse"]] == ["reverse"] and len(Reverse().levels) == 6
    families_page.make_page(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "tasks.json").read_text())["families"] == first["families"]
    assert "`sort`" in (tmp_path / "out" / "tasks.md").read_text()
