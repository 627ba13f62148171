"""Mathematical answers: an exact tier, and a symbolic one in processes that can be killed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.verify.math.equality import exact
    from assay.verify.math.extract import PLACES, final_answer
    from assay.verify.math.verifier import MathAnswer, MathVerdict, compare

__all__ = ["PLACES", "MathAnswer", "MathVerdict", "compare", "exact", "final_answer"]

_HOME = {"verifier": "MathAnswer MathVerdict compare", "extract": "PLACES final_answer", "equality": "exact"}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
