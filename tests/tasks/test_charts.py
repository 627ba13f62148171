"""Bar charts: what is shown, to whom it is shown, and where its pixels come from."""

import asyncio
import pickle

import numpy as np
import pytest

from assay.core.errors import ConfigError, DataError
from assay.core.media import media_of
from assay.testing import check_environment, rollout_of
from assay_tasks import BarCharts
from assay_tasks.charts import draw_chart

TASK = BarCharts().task("charts", 3, "train", 0)
HEIGHTS = list(TASK.world["heights"])


def shown(source: BarCharts, actions: list[str]) -> list[tuple[str, tuple[int, ...], bool]]:
    """Text, heights of the pictured bars and end of each step."""

    async def all_of() -> list[tuple[str, tuple[int, ...], bool]]:
        viewer = source.environment(source.task("charts", 3, "train", 0).public_view())
        await viewer.start()
        steps = [await viewer.step(action) for action in actions]
        return [
            (m.content, tuple((source.pictures.pixels(p.digest)[:, 1::2, 0] == 40).sum(0).tolist()), step.done)
            for step in steps
            for m in step.obs.messages
            for p in m.media
        ]

    return asyncio.run(all_of())


def test_each_call_uncovers_one_more_bar() -> None:
    a, b, c = HEIGHTS
    wanted = [
        (f"<image>{a}>", (a, 0, 0), False),
        (f"<image>{b}>", (a, b, 0), False),
        (f"<image>{c}>", (a, b, c), False),
        ("<image>>", (a, b, c), True),
    ]
    assert shown(BarCharts(), ["?"] * 4) == wanted
    assert [text for text, _, _ in shown(BarCharts(captions=False), ["?"] * 3)] == ["<image>>"] * 3
    assert shown(BarCharts(), ["5"]) == []


def test_the_answer_is_the_highest_bar() -> None:
    judge, best = BarCharts().verifier(), str(max(HEIGHTS))
    assert judge(TASK, rollout_of(TASK, "?", best)).primary == 1.0
    assert judge(TASK, rollout_of(TASK, "?", str(max(HEIGHTS) % 9 + 1))).primary == 0.0
    said = [m.content for m in BarCharts().trace(TASK, 0.0, np.random.default_rng(0)) if m.role == "assistant"]
    assert said == ["?", "?", "?", best]


def test_the_captions_are_all_that_text_can_tell() -> None:
    """Without captions two charts differ in their pictures alone."""
    blind = BarCharts(captions=False)
    traces = [blind.trace(blind.task("charts", 2, "train", i), 0.0, np.random.default_rng(0)) for i in range(12)]
    assert len({tuple(m.content for m in t if m.role == "tool") for t in traces}) == 1
    assert len({tuple(m.media for m in t) for t in traces}) > 8


def test_another_process_gives_the_same_pixels() -> None:
    source = pickle.loads(pickle.dumps(BarCharts(levels=(2, 4))))
    pixels = draw_chart([3, 9, 1], 4)
    found = source.pictures.pixels(media_of(pixels).digest)
    assert found.shape == (9, 9, 3) and np.array_equal(found, pixels)
    with pytest.raises(DataError, match=r"no bar chart of \[2, 4\] bars is the picture x"):
        source.pictures.pixels("x")


def test_the_environment_keeps_its_contract() -> None:
    assert "deterministic" in check_environment(BarCharts(), TASK).passed
    for wrong in ({"levels": (5,)}, {"spare": -1}, {"test_share": 1.0}):
        with pytest.raises(ConfigError, match="BarCharts"):
            BarCharts(**wrong)
