"""Names of verifiers as parameters of tests; one that needs a program which is not on this machine is skipped."""

import shutil
from collections.abc import Iterable

import pytest
from _pytest.mark.structures import ParameterSet

__all__ = ["TOOLS", "with_tools"]

TOOLS = {"verilog": ("vvp", "iverilog")}
"""Name to the program that it needs, and the Debian package that has it."""


def with_tools(names: Iterable[str]) -> list[str | ParameterSet]:
    """Parameters of a test that judges with each of them."""
    return [pytest.param(name, marks=_skip(*TOOLS[name])) if name in TOOLS else name for name in names]


def _skip(program: str, package: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed (Debian package {package})")
