"""Python files that a user names on the command line, imported once as modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from assay.core.errors import ConfigError

__all__ = ["USER_FILES", "module_of"]

USER_FILES: dict[str, Path] = {}
"""Modules loaded from files that a person named, by name."""


def module_of(path: str) -> str:
    """Name of the module made from a file, imported once; its folder is then on the module path.

    Raises:
        ConfigError: no such file, a name that another module has, or importing it fails.
    """
    file = Path(path).resolve()
    if not file.exists():
        raise ConfigError(f"{path} does not exist; give path/to/file.py:name")
    name = file.stem
    if USER_FILES.get(name) == file:
        return name
    known = sys.modules.get(name)
    spec = known.__spec__ if known else importlib.util.find_spec(name) if name.isidentifier() else None
    if known or (spec and spec.origin and Path(spec.origin).resolve() != file):
        where = spec.origin if spec else "built in"
        raise ConfigError(f"{path}: a module called {name!r} exists already ({where}); rename the file")
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    _import(file, name)
    USER_FILES[name] = file
    return name


def _import(file: Path, name: str) -> None:
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{file} cannot be imported as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # so that the parts it defines can be named in run.toml and found again
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ConfigError(f"importing {file} failed: {type(error).__name__}: {error}") from error
