"""Reinforcement learning with verifiable rewards for language models.

Every package is an attribute and is imported when it is first touched, so ``import assay`` stays quick and loads
neither torch nor numpy:

>>> import assay
>>> assay.core.__name__
'assay.core'
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from assay import (
        agents,
        asynchronous,
        audit,
        cli,
        clients,
        core,
        curate,
        guide,
        interop,
        lab,
        measure,
        objective,
        publish,
        recipes,
        rollout,
        runs,
        runtime,
        sandbox,
        scorers,
        select,
        selftest,
        tasks,
        testing,
        train,
        verify,
    )

__version__ = "0.1.0"

__all__ = [
    "agents",
    "asynchronous",
    "audit",
    "cli",
    "clients",
    "core",
    "curate",
    "guide",
    "interop",
    "lab",
    "measure",
    "objective",
    "publish",
    "recipes",
    "rollout",
    "runs",
    "runtime",
    "sandbox",
    "scorers",
    "select",
    "selftest",
    "tasks",
    "testing",
    "train",
    "verify",
]


def __getattr__(name: str) -> "ModuleType":
    """Import the package `name` (PEP 562).

    Raises:
        AttributeError: `name` is not one of its packages.
    """
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
