"""Constraints on a text that a program can check, in words for the policy, and their conjunction as a verifier."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.verify.constraints.base import Constraint, Relation
    from assay.verify.constraints.verifier import CONSTRAINTS, Instructions, constraint_of, describe_constraints

__all__ = ["CONSTRAINTS", "Constraint", "Instructions", "Relation", "constraint_of", "describe_constraints"]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in __all__:
        home = "base" if name in ("Constraint", "Relation") else "verifier"
        return getattr(import_module(f"assay.verify.constraints.{home}"), name)
    raise AttributeError(f"module 'assay.verify.constraints' has no attribute {name!r}")
