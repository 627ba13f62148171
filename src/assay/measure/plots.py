"""The report's figures: matplotlib to inline SVG that follows the page's fonts and its light or dark colours.

The only module that touches matplotlib. Figures are drawn in marker colours that the SVG names as CSS variables.
"""

from __future__ import annotations

import io
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import MissingExtraError
from assay.measure.history import Series
from assay.measure.intervals import Interval

__all__ = ["Curve", "bars", "heat_map", "interval_lines", "lines"]

Axes = Any
"""matplotlib leaves its keyword arguments untyped, so this module treats its objects as opaque."""

INK, MUTED, GRID = "#010101", "#020202", "#030303"
SERIES = ("#040404", "#050505", "#060606", "#070707")
_VARIABLES = {INK: "--ink", MUTED: "--muted", GRID: "--grid"} | {c: f"--series-{i}" for i, c in enumerate(SERIES, 1)}
FULL = 5
"""Ticks of an axis that always shows 0 to 100 %."""
_HEAT = ("#f4efe4", "#cfe0d6", "#8fbfae", "#4a9584", "#1c655d", "#0d3d3d")

_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "font.size": 9.5,
    "axes.labelsize": 9,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 3,
    "ytick.major.size": 0,
    "xtick.major.width": 0.8,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
    "figure.constrained_layout.use": True,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "axes.linewidth": 0.8,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One line of a plot: its label at the line's end, its points, and for `interval_lines` an interval per point."""

    label: str
    series: Series
    intervals: tuple[Interval, ...] = ()


@contextmanager
def _figure(name: str, width: float, height: float, rows: Sequence[float] = (1.0,)) -> Generator[tuple[list[Axes], list[str]]]:
    """A styled figure with stacked axes; its SVG is appended to the list when the block ends."""
    try:
        matplotlib: Any = import_module("matplotlib")
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "report") from error
    out: list[str] = []
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": f"assay-{name}"}):
        figure: Any = Figure(figsize=(width, height))
        axes = figure.subplots(len(rows), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": list(rows)})
        yield list(axes[:, 0]), out
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    out.append(_inline(buffer.getvalue(), name))


def _inline(svg: str, name: str) -> str:
    """The ``<svg>`` element alone, with page colours and fonts, and ids of its own."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg).replace("xlink:href", "href")
    for color, variable in _VARIABLES.items():
        svg = svg.replace(color, f"var({variable})")
    svg = re.sub(r"font: ([\d.]+px) '[^;\"]*", r"font-size: \1", svg)
    svg = re.sub(r"font-family: [^;\"]*;? ?", "", svg)
    svg = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1" aria-hidden="true" focusable="false">', svg, count=1)
    svg = re.sub(r'<g id="[a-zA-Z]+[\w.]*_\d+">', "<g>", svg)
    svg = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    return re.sub(r"\n\s*", "\n", svg).strip()


# ---- kinds of figures -------------------------------------------------------------------------------------------------


def lines(name: str, panels: Sequence[Sequence[Curve]], *, percent: Sequence[bool] = (), labels: Sequence[str] = ()) -> str:
    """Curves over steps in stacked panels: recorded values faint, a moving average on top.

    Args:
        name: unique in the page.
        panels: curves of each panel, top first; the first panel is the tallest.
        percent: per panel, whether its values are shares.
        labels: per panel, its name above the axis when there are several.
    """
    heights = [2.0] + [1.0] * (len(panels) - 1)
    with _figure(name, 4.4, 2.5 + 0.45 * (len(panels) - 1), heights) as (axes, out):
        for index, (axis, curves) in enumerate(zip(axes, panels, strict=True)):
            for color, curve in zip(SERIES, curves, strict=False):
                _smooth_line(axis, curve.series.finite(), color)
            share = bool(percent) and percent[index]
            _finish(axis, [c.series.finite() for c in curves], share, 0, 2 if index else 4)
            axis.tick_params(length=3 if axis is axes[-1] else 0, axis="x")
            if len(curves) > 1:
                _end_labels(axis, [(c.label, c.series.finite(), color) for color, c in zip(SERIES, curves, strict=False)])
            if labels:
                axis.set_title(labels[index], loc="left", fontsize=8.5, color=MUTED, pad=4)
        axes[-1].set_xlabel("step")
    return out[0]


def interval_lines(name: str, curves: Sequence[Curve], end: int, narrow: bool = False) -> str:
    """Accuracies with their intervals as bands, in percent over steps, labelled at the end of each line.

    Args:
        name: unique in the page.
        curves: with an interval per point.
        end: last step of the axis.
        narrow: draw for a phone.
    """
    with _figure(name, *((4.3, 3.0) if narrow else (7.6, 3.3))) as (axes, out):
        axis = axes[0]
        for color, curve in zip(SERIES, curves, strict=False):
            low, high = (np.array([getattr(i, side) for i in curve.intervals]) for side in ("low", "high"))
            x, y = curve.series.steps, curve.series.values
            axis.fill_between(x, low, high, color=color, alpha=0.14, linewidth=0)
            axis.plot(x, y, color=color, marker="o", markersize=3.6)
            if len(x) < 3:  # a band between so few points would hide how wide it is at them
                axis.vlines(x, low, high, color=color, linewidth=1)
        _finish(axis, [c.series for c in curves], True, end, FULL)
        _end_labels(axis, [(c.label, c.series, color) for color, c in zip(SERIES, curves, strict=False)])
        axis.set_xlabel("step")
    return out[0]


def heat_map(name: str, steps: Sequence[int], rows: Sequence[str], values: NDArray[np.float64], narrow: bool = False) -> str:
    """Shares by row (level) and step as coloured, labelled cells.

    Args:
        name: unique in the page.
        steps: ``[S]`` evaluated steps; evenly chosen ones are drawn where there are too many.
        rows: ``[L]`` row names, lowest first.
        values: ``[L, S]`` in [0, 1]; NaN where nothing was evaluated.
        narrow: draw for a phone.
    """
    columns = _spread(len(steps), 9 if narrow else 20)
    with _figure(name, 4.3 if narrow else 7.6, 0.85 + (0.27 if narrow else 0.3) * len(rows)) as (axes, out):
        from matplotlib.colors import LinearSegmentedColormap

        axis = axes[0]
        axis.grid(False)
        colors = LinearSegmentedColormap.from_list("share", _HEAT)
        shown = values[:, columns]
        axis.pcolormesh(np.ma.masked_invalid(shown), cmap=colors, vmin=0, vmax=1, edgecolors="none", linewidth=0)
        for y, x in np.argwhere(np.isfinite(shown)):
            share = float(shown[y, x])
            ink = "white" if share > 0.55 else "#23312e"
            axis.text(x + 0.5, y + 0.5, f"{100 * share:.0f}", ha="center", va="center", fontsize=8, color=ink)
        axis.set_xlim(0, max(len(columns), 4))
        axis.set_xticks(np.arange(len(columns)) + 0.5, [str(steps[i]) for i in columns])
        axis.set_yticks(np.arange(len(rows)) + 0.5, list(rows))
        axis.spines["bottom"].set_visible(False)
        axis.tick_params(length=0)
        axis.set_xlabel("step", loc="left" if len(columns) < 4 else "center")
    return out[0]


def bars(name: str, parts: Mapping[str, float], unit: str) -> str:
    """Horizontal bars, largest first, each with its value and its share of the whole."""
    order = sorted(parts, key=lambda n: -parts[n])
    whole = sum(parts.values())
    with _figure(name, 4.4, max(2.5, 0.5 + 0.28 * len(order))) as (axes, out):
        axis = axes[0]
        axis.grid(False)
        y = np.arange(len(order))[::-1]
        axis.barh(y, [parts[n] for n in order], height=0.55, color=SERIES[0], alpha=0.85)
        for position, part in zip(y, order, strict=True):
            text = f"{100 * parts[part] / whole:.0f} %, {parts[part]:,.1f} {unit}" if whole else "0"
            axis.annotate(
                text, (parts[part], position), (5, 0), textcoords="offset points", va="center", fontsize=8.5, color=MUTED
            )
        axis.set_yticks(y, order, color=INK)
        axis.set_ylim(-0.7, max(len(order), 3) - 0.3)
        axis.set_xlim(0, 1.45 * max(parts.values(), default=1.0) or 1.0)
        axis.set_xticks([])
        axis.spines["bottom"].set_visible(False)
    return out[0]


# ---- details ----------------------------------------------------------------------------------------------------------


def _spread(n: int, most: int) -> list[int]:
    """Up to ``most`` indices spread evenly over ``range(n)``, first and last included."""
    return sorted({round(i) for i in np.linspace(0, n - 1, min(n, most))}) if n else []


def moving_average(values: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Mean over ``width`` points around each, over those that exist at the ends, so that it stays as long as the input."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    at = np.arange(len(values))
    first, end = np.maximum(at - width // 2, 0), np.minimum(at + width // 2 + 1, len(values))
    return (sums[end] - sums[first]) / (end - first)


def _smooth_line(axis: Axes, series: Series, color: str) -> None:
    width = len(series) // 12
    if width < 2:
        axis.plot(series.steps, series.values, color=color, marker="o" if len(series) < 3 else None, markersize=4)
        return
    keep = _spread(len(series), 400)
    axis.plot(series.steps[keep], series.values[keep], color=color, alpha=0.25, linewidth=0.8)
    axis.plot(series.steps[keep], moving_average(series.values, width)[keep], color=color)


def _finish(axis: Axes, series: Sequence[Series], percent: bool, end: int, ticks: int) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    steps = np.concatenate([s.steps for s in series] or [np.zeros(0)])
    values = np.concatenate([s.values for s in series] or [np.zeros(0)])
    if len(steps):
        first, last = float(steps.min()), float(max(steps.max(), end))
        pad = 0.02 * max(last - first, 1.0)
        axis.set_xlim(first - pad, max(last, first + 1) + pad)
    axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axis.yaxis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 2.5, 5, 10]))
    if percent:
        axis.yaxis.set_major_formatter(FuncFormatter(_percent_tick))
    top, low = (float(values.max()), float(values.min())) if len(values) else (1.0, 0.0)
    if ticks == FULL:
        axis.set_ylim(0, 1.04)
    elif low >= 0:
        axis.set_ylim(0, (min(1.08 * top, 1.04) if percent else 1.08 * top) or (0.01 if percent else 1.0))
    else:
        margin = 0.08 * (top - low or 1.0)
        axis.set_ylim(low - margin, top + margin)


def _percent_tick(value: float, position: int) -> str:
    return f"{100 * value:g} %"


def _end_labels(axis: Axes, ends: Sequence[tuple[str, Series, str]]) -> None:
    """Names at the ends of the lines, pushed apart where lines end close together."""
    shown = [(label, s, color) for label, s, color in ends if len(s)]
    low, high = axis.get_ylim()
    points = axis.get_window_extent().height * 72 / axis.get_figure().dpi
    gap, last = 11.5 / points * (high - low), -np.inf
    tail = [float(s.values[-max(1, len(s) // 12) :].mean()) for _, s, _ in shown]
    for index in np.argsort(tail, kind="stable"):
        label, s, color = shown[int(index)]
        last = max(tail[int(index)], last + gap)
        axis.annotate(
            label,
            (float(s.steps[-1]), last),
            (8, 0),
            textcoords="offset points",
            color=color,
            va="center",
            fontsize=9,
            annotation_clip=False,
        )
