"""How good: verifiers that judge an answer, and the pool that makes any of them killable."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.verify.exact import ExactMatch, FormatIs, Together
    from assay.verify.function import RewardFunction
    from assay.verify.pool import ScoringPool
    from assay.verify.verdict import judge

__all__ = ["ExactMatch", "FormatIs", "RewardFunction", "ScoringPool", "Together", "judge"]

_HOME = {
    "exact": "ExactMatch FormatIs Together",
    "function": "RewardFunction",
    "verdict": "judge",
    "pool": "ScoringPool",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    for module, names in _HOME.items():
        if name in names.split():
            return getattr(import_module(f"assay.verify.{module}"), name)
    raise AttributeError(f"module 'assay.verify' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
