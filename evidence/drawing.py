"""Pictures of studies: the same numbers give the same file."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from assay.core import MissingExtraError

__all__ = ["grid", "plotting"]

COLUMNS = 8


def plotting() -> Any:
    """``matplotlib.pyplot``, set to write the same file for the same numbers.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        matplotlib: Any = import_module("matplotlib")
        plt: Any = import_module("matplotlib.pyplot")
    except ImportError:
        raise MissingExtraError("matplotlib", "report") from None
    matplotlib.rcParams["svg.hashsalt"] = "assay"
    return plt


def grid(curves: Mapping[str, Mapping[float, float]], path: Path) -> None:
    """A small curve per name, in order, row by row, all on one scale from 0 to 1."""
    plt = plotting()
    rows = -(-len(curves) // COLUMNS)
    last = max((max(c) for c in curves.values()), default=1)
    with plt.rc_context({"svg.fonttype": "none"}):
        figure, axes = plt.subplots(rows, COLUMNS, figsize=(1.35 * COLUMNS, 0.95 * rows), squeeze=False, layout="constrained")
        for axis, (name, curve) in zip(axes.flat, curves.items(), strict=False):
            axis.axhline(next(iter(curve.values())), color="0.8", lw=0.8)
            axis.plot(list(curve), list(curve.values()), lw=1.2)
            axis.set_title(name, fontsize=6, pad=2)
        for axis in axes.flat:
            axis.set(xlim=(0, last), ylim=(0, 1), xticks=[], yticks=[])
        for axis in axes.flat[len(curves) :]:
            axis.set_axis_off()
        figure.savefig(path, format="svg", metadata={"Date": None})
        plt.close(figure)
