"""Filters: what they keep, by their sheets, and their laws."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.core import FrozenMap, Group, Score, Task, ToolResult
from assay.core.errors import ConfigError
from assay.core.protocols import GroupFilter
from assay.core.score import Fault
from assay.guide import Mixed, Refill, ResampleOnCorrect, SuccessWindow
from assay.testing import check_filter, graded_group


def group(*values: float | Score) -> Group:
    public = FrozenMap({"prompt": "?"})
    return graded_group(Task(id="t", domain="d", arm="a", level=1, split="train", index=0, public=public), values)


@pytest.mark.parametrize(
    "part",
    [
        Mixed(),
        SuccessWindow(),
        SuccessWindow(low=0.0, high=1.0),
        ResampleOnCorrect(keep=2),
        ResampleOnCorrect(keep=8, least=2),
        ResampleOnCorrect(keep=2, tags=("<answer>", "</answer>")),
    ],
)
def test_they_keep_the_laws_of_filters(part: GroupFilter) -> None:
    assert check_filter(part).numbers["kept"] > 0


def test_mixed_is_dapos_rule() -> None:
    assert Mixed().select(group(0.0, 1.0)) is not None
    assert Mixed().select(group(1.0, 1.0)) is None
    assert Mixed().select(group(0.0)) is not None  # a group of one always passes
    assert Mixed().select(group(1.0, Score(components={}, fault=Fault.INFRA))) is None


def test_a_window_of_success_keeps_its_bounds() -> None:
    window = SuccessWindow(low=0.25, high=0.75)
    kept = [k / 4 for k in range(5) if window.select(group(*[1.0] * k, *[0.0] * (4 - k)))]
    assert kept == [0.25, 0.5, 0.75]
    assert window.select(group(Score(components={}, fault=Fault.INFRA))) is None


def test_a_window_that_leaves_out_the_ends_alone_is_dapos_rule() -> None:
    window = SuccessWindow(low=1e-9, high=1 - 1e-9)
    for right in range(9):
        given = group(*[1.0] * right, *[0.0] * (8 - right))
        assert window.select(given) == Mixed().select(given)


def test_a_window_around_one_half_keeps_the_largest_bounds_on_what_is_left_to_learn() -> None:
    """``p (1 - p) / (2 beta^2)`` at beta 1: .125 at 1/2, .09375 at 1/4 and 3/4, 0 at 0 and 1."""
    bound = {k / 8: k / 8 * (1 - k / 8) / 2 for k in range(9)}
    assert [bound[p] for p in (0.5, 0.25, 0.75, 0.0, 1.0)] == [0.125, 0.09375, 0.09375, 0.0, 0.0]
    kept = {p for p in bound if SuccessWindow().select(group(*[1.0] * round(8 * p), *[0.0] * round(8 * (1 - p))))}
    assert kept
    assert min(bound[p] for p in kept) > max(bound[p] for p in bound.keys() - kept)


def quotas(right: int, wrong: int, keep: int, least: int = 1) -> tuple[int, int]:
    found = ResampleOnCorrect(keep=keep, least=least).select(group(*[1.0] * right, *[0.0] * wrong))
    assert found is not None
    assert len(found.rollouts) == keep
    good = sum(s.primary == 1.0 for s in found.scores)
    return good, keep - good


def test_roc_keeps_right_and_wrong_in_proportion_by_its_sheet() -> None:
    assert quotas(6, 10, 8) == (3, 5)
    assert sum(quotas(5, 5, 5)) == 5
    assert quotas(24, 8, 16, least=2) == (12, 4)
    assert quotas(31, 1, 16, least=2) == (15, 1)
    assert quotas(1, 31, 16, least=2) == (1, 15)
    assert ResampleOnCorrect(keep=4).select(group(1.0, 0.0, 0.0)) is None  # fewer than are kept
    assert ResampleOnCorrect(keep=2).select(group(1.0, 1.0, 1.0)) is None


def test_roc_prefers_right_rollouts_with_the_fewest_tool_errors() -> None:
    given = group(1.0, 1.0, 1.0, 0.0, 0.0, 0.0)
    ok, bad = ToolResult(content="1"), ToolResult(content="", error="no such key")
    results = {0: (bad, ok), 1: (ok, ok), 2: ()}
    rollouts = tuple(
        replace(r, calls=(replace(r.calls[0], results=results.get(i, ())), *r.calls[1:])) for i, r in enumerate(given.rollouts)
    )
    played = replace(given, rollouts=rollouts)
    assert [ResampleOnCorrect().penalty(played, i) for i in range(3)] == [0.5, 0.0, 0.5]
    found = ResampleOnCorrect(keep=2).select(played)
    assert found is not None
    assert found.rollouts[0].id == "g0/1"


def test_rounds_that_adapt_draw_by_the_share_that_was_kept() -> None:
    adaptive = Refill(adapt=0.25)
    assert adaptive.tasks_to_draw(missing=128, groups=128, share=0.5) == 256  # CodeV-R1
    assert adaptive.tasks_to_draw(missing=3, groups=128, share=0.3) == 10  # 3 / 0.3 is a bit more than 10 in floats
    assert adaptive.tasks_to_draw(missing=128, groups=128, share=None) == 128  # nothing is known yet
    assert adaptive.tasks_to_draw(missing=128, groups=128, share=0.0) == 512  # bounded where nothing was kept
    assert adaptive.tasks_to_draw(missing=128, groups=128, share=0.01) == 512
    assert Refill(adapt=0.25, draws=200).tasks_to_draw(missing=128, groups=128, share=0.5) == 200
    assert Refill().tasks_to_draw(missing=1, groups=128, share=0.5) == 128
    assert adaptive.average_share(None, drawn=8, kept=2) == 0.25
    assert adaptive.average_share(0.25, drawn=8, kept=6) == 0.375  # 3/4 of 1/4, 1/4 of 3/4
    assert adaptive.average_share(1.0, drawn=4, kept=8) == 1.0  # a guidance may make several groups of a task


def test_roc_prefers_right_rollouts_with_one_answer_in_tags() -> None:
    """No tool was called: 1/2. One answer adds 0, three in two turns 1, two in two turns 1/2, none or an open one 1."""
    roc = ResampleOnCorrect(keep=2, tags=("<a>", "</a>"))
    said = [["so", "<a>1</a>"], ["<a>1</a>", "<a>2</a><a>1</a>"], ["<a>2</a>", "<a>1</a>"], ["1", "2"], ["<a>1", "2"]]
    given = group(*[1.0] * 5, 0.0)
    rollouts = tuple(
        replace(r, calls=tuple(replace(r.calls[0], id=k, text=text) for k, text in enumerate(texts)))
        for r, texts in zip(given.rollouts, said, strict=False)
    )
    played = replace(given, rollouts=(*rollouts, given.rollouts[5]))
    assert [roc.penalty(played, i) for i in range(5)] == [0.5, 1.5, 1.0, 1.5, 1.5]
    assert ResampleOnCorrect(keep=2).penalty(played, 1) == 0.5
    found = roc.select(replace(played, rollouts=played.rollouts[::-1], scores=played.scores[::-1]))
    assert found is not None
    assert [r.id for r in found.rollouts if r.id != "g0/5"] == ["g0/0"]


def test_settings_out_of_range_are_refused() -> None:
    for make, message in (
        (lambda: SuccessWindow(low=0.5, high=0.5), "low < high"),
        (lambda: ResampleOnCorrect(keep=1), "keep=1"),
        (lambda: ResampleOnCorrect(keep=4, least=3), "least=3"),
        (lambda: ResampleOnCorrect(tags=("", "</a>")), "two different texts"),
        (lambda: ResampleOnCorrect(tags=("|", "|")), "two different texts"),
        (lambda: Refill(rounds=1), "rounds=1"),
        (lambda: Refill(draws=-1), "draws=-1"),
        (lambda: Refill(adapt=1.5), "adapt=1.5"),
        (lambda: Refill(short="wait"), "'train' or 'stop'"),  # pyright: ignore
    ):
        with pytest.raises(ConfigError, match=message):
            make()
