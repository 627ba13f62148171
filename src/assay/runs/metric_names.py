"""Metrics that are called otherwise now: files of older runs are read by the new names, and digests are of the old ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

__all__ = ["RENAMED_METRICS", "current_names", "digest_names"]

V = TypeVar("V")

RENAMED_METRICS: Mapping[str, str] = {
    "engine/ess_attempts": "engine/ess_rollouts",
    "check/attempts": "check/rollouts",
    "time/supply": "time/columns",
}
"""Old name to new one."""

_OLD = {new: old for old, new in RENAMED_METRICS.items()}


def current_names(metrics: Mapping[str, V]) -> dict[str, V]:
    """The metrics by their present names, in their order.

    >>> current_names({"engine/ess": 1.0, "engine/ess_attempts": 0.9})
    {'engine/ess': 1.0, 'engine/ess_rollouts': 0.9}
    """
    return {RENAMED_METRICS.get(name, name): value for name, value in metrics.items()}


def digest_names(metrics: Mapping[str, V]) -> dict[str, V]:
    """The metrics by the names that digests of runs are made of: a run has the digest that it had under the old names.

    >>> digest_names({"engine/ess": 1.0, "engine/ess_rollouts": 0.9})
    {'engine/ess': 1.0, 'engine/ess_attempts': 0.9}
    """
    return {_OLD.get(name, name): value for name, value in metrics.items()}
