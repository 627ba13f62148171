"""Pictures of episodes as SVG, in the colours of the report's page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assay_control.records import Array

__all__ = ["Line", "frames", "strip", "traces", "way"]

SIZE = 56
"""Pixels of a frame or cell row."""


@dataclass(frozen=True, slots=True)
class Line:
    """From one point to another; the middle of a frame is 0, upwards is positive."""

    x1: float
    y1: float
    x2: float
    y2: float


def frames(observations: Array, count: int) -> Array:
    """``count`` of ``[T, O]`` observations, evenly spaced, first and last among them.

    >>> frames(np.arange(5.0)[:, None], 3)[:, 0].tolist()
    [0.0, 2.0, 4.0]
    """
    at = np.linspace(0, len(observations) - 1, min(count, len(observations))).round().astype(np.int64)
    return observations[at]


def strip(pictures: Sequence[Sequence[Line]], reach: float) -> str:
    """Frames beside each other.

    Args:
        pictures: lines of each frame.
        reach: of the coordinates that a frame shows.
    """
    out: list[str] = []
    for number, drawn in enumerate(pictures):
        cx, half = number * SIZE + SIZE / 2, SIZE / 2 - 3
        out.append(
            f'<rect x="{number * SIZE + 1}" y="1" width="{SIZE - 2}" height="{SIZE - 2}" fill="none" stroke="var(--grid)"/>'
        )
        for line in drawn:
            (x1, y1), (x2, y2) = (
                (cx + x / reach * half, SIZE / 2 - y / reach * half) for x, y in ((line.x1, line.y1), (line.x2, line.y2))
            )
            out.append(
                f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="var(--series-1)" stroke-width="3" '
                'stroke-linecap="round"/>'
            )
    return _svg(len(pictures) * SIZE, SIZE, out)


def way(free: Array, places: Array, goal: tuple[int, int]) -> str:
    """A walk over a maze.

    Args:
        free: ``[rows, columns]`` where there is no wall.
        places: ``[T, 2]`` rows and columns.
        goal: row and column.
    """
    cell = SIZE / 2
    out = [
        f'<rect x="{c * cell:.1f}" y="{r * cell:.1f}" width="{cell:.1f}" height="{cell:.1f}" fill="var(--grid)"/>'
        for r, c in np.argwhere(~free)
    ]
    points = " ".join(f"{(c + 0.5) * cell:.1f},{(r + 0.5) * cell:.1f}" for r, c in places)
    out.append(f'<polyline points="{points}" fill="none" stroke="var(--series-1)" stroke-width="2"/>')
    y, x = ((value + 0.5) * cell for value in goal)
    out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{cell / 3:.1f}" fill="none" stroke="var(--series-2)" stroke-width="2"/>')
    return _svg(free.shape[1] * cell, free.shape[0] * cell, out)


def traces(columns: Array, width: float = 6 * SIZE) -> str:
    """Numbers over the steps of an episode, one line each, all within the range of the greatest.

    Args:
        columns: ``[T, k]``.
        width: of the picture, pixels.
    """
    reach = max(float(np.abs(columns).max()), 1e-9)
    across = np.linspace(2, width - 2, len(columns))
    out: list[str] = []
    for number, values in enumerate(columns.T):
        points = " ".join(f"{x:.1f},{SIZE - v / reach * (SIZE - 3):.1f}" for x, v in zip(across, values, strict=True))
        out.append(f'<polyline points="{points}" fill="none" stroke="var(--series-{number % 3 + 1})" stroke-width="1.5"/>')
    return _svg(width, 2 * SIZE, out)


def _svg(width: float, height: float, drawn: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img" xmlns="http://www.w3.org/2000/svg">{"".join(drawn)}</svg>'
