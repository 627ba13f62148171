"""Bar charts that are uncovered bar by bar: the smallest family that shows pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.canon import FrozenMap
from assay.core.errors import DataError
from assay.core.media import PLACEHOLDER, Pictures, media_of
from assay.core.protocols import Environment, Obs, Step, Verifier
from assay.core.rollout import ToolResult
from assay.core.seeds import generator
from assay.core.task import Message, Task, TaskView
from assay.tasks.draws import TaskCoordinates, check_stream, checked_levels, redraw, slip
from assay.verify.exact import ExactMatch, FormatIs, Together
from assay_tasks.phases import SingleUse

__all__ = ["BarCharts", "ChartPictures", "ChartViewer", "draw_chart"]

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_DIGITS = "123456789"
_TALLEST = 9
_MOST_BARS = 4
_PAPER, _BAR = (255, 255, 255), (40, 90, 160)


def draw_chart(heights: Sequence[int], bars: int) -> NDArray[np.uint8]:
    """The chart as a picture: a column of pixels for each bar, one white column beside it, and 9 rows.

    Args:
        heights: of the bars that are uncovered, from the left, 1 to 9.
        bars: of the whole chart.

    Returns:
        ``[9, 2 * bars + 1, 3]`` uint8.

    >>> draw_chart([2, 9], 3)[:, :, 0].tolist()[-3:]
    [[255, 255, 255, 40, 255, 255, 255], [255, 40, 255, 40, 255, 255, 255], [255, 40, 255, 40, 255, 255, 255]]
    """
    pixels = np.empty((_TALLEST, 2 * bars + 1, 3), np.uint8)
    pixels[:] = _PAPER
    for at, height in enumerate(heights):
        pixels[_TALLEST - height :, 2 * at + 1] = _BAR
    return pixels


@cache
def _heights_by_digest(bars: int) -> Mapping[str, tuple[int, ...]]:
    """Every picture of a chart of so many bars, the covered ones among them: 9 + 81 + ... of them."""
    shown = [h for n in range(1, bars + 1) for h in product(range(1, _TALLEST + 1), repeat=n)]
    return {media_of(draw_chart(heights, bars)).digest: heights for heights in shown}


@dataclass(frozen=True, slots=True)
class ChartPictures:
    """The pixels of every chart by digest, drawn when they are asked for: nothing is kept, so any process can give them.

    Attributes:
        levels: numbers of bars.
    """

    levels: tuple[int, ...]

    def pixels(self, digest: str) -> NDArray[np.uint8]:
        """The chart.

        Raises:
            DataError: no chart of these levels has this digest.
        """
        for bars in self.levels:
            if (heights := _heights_by_digest(bars).get(digest)) is not None:
                return draw_chart(heights, bars)
        raise DataError(f"no bar chart of {list(self.levels)} bars is the picture {digest}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BarCharts:
    """Uncover the bars of a chart, and say how high the highest is. The level is the number of bars.

    The prompt ``B2ab>`` names the number of bars and the chart. The policy says ``?`` and is shown a picture of the chart with a
    further bar; with captions the bar's height stands behind it, as ``<image>4>``. It answers with the height of the highest bar.
    When all bars are uncovered, ``?`` shows the whole chart again, without a caption. A call that is malformed is an answer.

    A model of text reads the placeholders alone (``Run.pictures="placeholder"``): with captions it can learn the task, without
    them only who sees the pictures can, which makes the one the control of the other.

    Attributes:
        levels: numbers of bars offered, 1 to 4.
        captions: write each new bar's height behind its picture.
        spare: calls beyond the necessary ones before the episode is ended.
        seed: chooses other tasks and other charts.
        test_share: share of contents that belong to the test split.

    Raises:
        ConfigError: a value out of range.

    >>> task = BarCharts().task("charts", 2, "train", 0)
    >>> [m.content for m in BarCharts().trace(task, 0.0, np.random.default_rng(0))]
    ['?', '<image>5>', '?', '<image>2>', '5']
    """

    levels: tuple[int, ...] = (1, 2, 3)
    captions: bool = True
    spare: int = 1
    seed: int = 0
    test_share: float = 0.1

    def __post_init__(self) -> None:
        checked_levels("BarCharts", self.levels, 1, _MOST_BARS)
        check_stream("BarCharts", self.spare, self.test_share)

    @property
    def name(self) -> str:
        """``charts``."""
        return "charts"

    @property
    def alphabet(self) -> str:
        """Letters, which the placeholder is written with too, digits and marks."""
        return _LETTERS + _DIGITS + "B?<>"

    @property
    def pictures(self) -> Pictures:
        """The pixels of what is shown, by digest."""
        return ChartPictures(self.levels)

    def arms(self) -> Mapping[str, tuple[int, ...]]:
        """The family's one arm with its levels."""
        return {self.name: self.levels}

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        """The ``index``-th task of a stream; a pure function of the settings and these four.

        Raises:
            UnknownNameError: arm, level or split.
            DataError: the level has no task of that split.
        """
        place = TaskCoordinates(self.name, arm, level, split, index)
        place.check(self)
        rng = place.generator(self.seed)
        public = redraw(place, lambda: FrozenMap({"prompt": f"B{level}{_word(rng)}>"}), self.test_share)
        drawn = generator("task/charts/heights", self.seed, public["prompt"]).integers(1, _TALLEST + 1, level)
        heights = [int(h) for h in drawn]
        return place.make_task(
            self.name,
            public=public,
            world={"heights": heights, "captions": self.captions, "calls": level + self.spare},
            private={"answer": str(max(heights)), "solution": "?"},
        )

    def verifier(self) -> Verifier:
        """Exact match of the final answer, and a format of one digit."""
        return Together((ExactMatch(), FormatIs("[1-9]")))

    def environment(self, world: TaskView) -> Environment:
        """A chart for one episode."""
        return ChartViewer(world)

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...]:
        """The oracle's calls, what it is shown, and the final answer, which holds a slip with probability ``noise``."""
        heights: Sequence[int] = task.world["heights"]
        turns: list[Message] = []
        for seen in range(1, len(heights) + 1):
            turns += [Message("assistant", "?"), _show(heights, seen, task.world["captions"])]
        return (*turns, Message("assistant", slip(task.private["answer"], noise, _DIGITS, rng)))


class ChartViewer(SingleUse):
    """The environment of one episode: shows the chart with one more bar at each call.

    Args:
        world: the task view; ``world["heights"]`` are the bars, ``world["calls"]`` is the most calls answered.

    Raises:
        DataError: started twice, stepped before the start or after the end.
    """

    def __init__(self, world: TaskView) -> None:
        super().__init__(world.id)
        self._world: Mapping[str, Any] = world.world
        self._calls = 0

    async def step(self, action: str) -> Step:
        """Answers the call ``?``; other text is the final answer. That and the last call end the episode."""
        self._enter("open", "step")
        if action != "?":
            self._phase = "over"
            return Step(done=True)
        self._calls += 1
        heights = self._world["heights"]
        new = self._calls <= len(heights)
        message = _show(heights, min(self._calls, len(heights)), self._world["captions"] and new)
        done = self._calls == self._world["calls"]
        if done:
            self._phase = "over"
        return Step(obs=Obs((message,)), done=done, results=(ToolResult(content=message.content),))


def _show(heights: Sequence[int], seen: int, caption: bool) -> Message:
    """A picture of the first ``seen`` bars."""
    media = media_of(draw_chart(heights[:seen], len(heights)))
    return Message("tool", f"{PLACEHOLDER}{heights[seen - 1] if caption else ''}>", (media,))


def _word(rng: np.random.Generator) -> str:
    return "".join(_LETTERS[i] for i in rng.integers(0, len(_LETTERS), 2))
