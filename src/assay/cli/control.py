"""``assay control``: control RL, of the package ``assay_control`` where it is installed."""

from __future__ import annotations

from importlib import import_module

from assay.core.errors import ConfigError

__all__ = ["control_command"]

PACKAGE = "assay_control"


def control_command(args: list[str]) -> int:
    """``assay control ...``.

    Raises:
        ConfigError: the package is not installed.
    """
    try:
        module = import_module(f"{PACKAGE}.cli")
    except ModuleNotFoundError as error:
        if error.name != PACKAGE:
            raise
        raise ConfigError(f"the package {PACKAGE} is not installed; it comes with assay-rl: install that again") from None
    code: int = module.control_command(args)
    return code
