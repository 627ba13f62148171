"""All graph problems as one family."""

from __future__ import annotations

from assay.tasks.problems import Problems
from assay_tasks.graphs.arrows import ARROWED
from assay_tasks.graphs.counts import COUNTS
from assay_tasks.graphs.parts import PARTS
from assay_tasks.graphs.rooted import TREES
from assay_tasks.graphs.routes import ROUTES
from assay_tasks.graphs.sets import SETS
from assay_tasks.graphs.tours import TOURS

__all__ = ["graphs"]


def graphs() -> Problems:
    """Questions about graphs: paths, parts, orders, flows, sets, tours, trees and counts.

    Verdicts are those of G1: equality of values, any answer that has the property (`GraphAnswer`), and of a set its likeness to
    the gold, ``jaccard = |A & B| / |A | B|``, beside equality (`SetMatch`).

    Source: G1 (arXiv 2505.18499).
    """
    return Problems(
        name="graphs",
        summary="Graphs of roads, friends or plain edges: paths, trees, cuts, colourings, tours and what else can be asked.",
        problems=(*COUNTS, *ROUTES, *PARTS, *ARROWED, *TREES, *SETS, *TOURS),
    )
