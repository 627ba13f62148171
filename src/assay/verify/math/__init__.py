"""Mathematical answers: an exact tier, and a symbolic one in processes that can be killed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.verify.math.equality import exact
    from assay.verify.math.extract import PLACES, final_answer
    from assay.verify.math.verifier import MathAnswer, Verdict, compare

__all__ = ["MathAnswer", "PLACES", "Verdict", "compare", "exact", "final_answer"]

_HOME = {"verifier": "MathAnswer Verdict compare", "extract": "PLACES final_answer", "equality": "exact"}


def __getattr__(name: str) -> object:
    from importlib import import_module

    for module, names in _HOME.items():
        if name in names.split():
            return getattr(import_module(f"assay.verify.math.{module}"), name)
    raise AttributeError(f"module 'assay.verify.math' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
