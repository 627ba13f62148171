"""How torch's threads wait for one another: asleep, which they must be told before torch is loaded.

A thread that spins while it waits takes a core from whoever shares the machine, the threads that it waits for included: two
threads beside other work can be twenty times slower than one. OpenMP reads ``OMP_WAIT_POLICY`` once, when torch is loaded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

from assay.core.errors import missing_extra

__all__ = ["POLICY", "policy_known", "sleeping", "sleeping_waits", "with_torch"]

POLICY = "OMP_WAIT_POLICY"
_told = [False]
"""Whether torch was loaded inside `sleeping`."""


def sleeping_waits() -> None:
    """Tells this program's threads, and those of the processes that it starts, to sleep; what the environment says already stays.

    For programs: what is imported into somebody else's edits no environment (`sleeping`).
    """
    os.environ.setdefault(POLICY, "PASSIVE")


@contextmanager
def sleeping() -> Generator[None]:
    """Inside, torch may be loaded, and its threads will sleep while they wait. The environment is afterwards as before.

    >>> with sleeping():
    ...     pass
    >>> "torch" in sys.modules or not policy_known() or POLICY in os.environ
    True
    """
    if POLICY in os.environ or "torch" in sys.modules:
        yield
        return
    os.environ[POLICY] = "PASSIVE"
    try:
        yield
    finally:
        del os.environ[POLICY]
        _told[0] = "torch" in sys.modules


def with_torch(module: str) -> ModuleType:
    """A module that loads torch, imported `sleeping`.

    Raises:
        MissingExtraError: torch, or what comes with it, is not installed.
    """
    with sleeping():
        try:
            return import_module(module)
        except ModuleNotFoundError as error:
            raise missing_extra(error) or error from None


def policy_known() -> bool:
    """Whether torch was, or would now be, loaded with a word on how its threads wait."""
    return _told[0] or POLICY in os.environ
