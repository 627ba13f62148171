"""From ``package.module:name`` or ``path/to/file.py:name`` to the object of that name."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from assay.core.canon import digest
from assay.core.errors import ConfigError, UnknownNameError

__all__ = ["load"]


def load(name: str) -> object:
    """The object called ``package.module:name`` or ``path/to/file.py:name``.

    A file is imported once per process, with its own folder on the module path, as a script would have it.

    Raises:
        ConfigError: the name has another form, the module or file is not there, or importing it fails.
        UnknownNameError: nothing of that name in it; says the nearest.

    >>> load("math:sqrt")(9.0)
    3.0
    """
    where, colon, inside = name.rpartition(":")
    if not colon or not where or not inside:
        raise ConfigError(f"{name!r} names no object; write package.module:name or path/to/file.py:name")
    module = _of_file(where) if where.endswith(".py") else _of_package(where)
    found: object = module
    for part in inside.split("."):
        if not hasattr(found, part):
            raise UnknownNameError(f"name in {where}", inside, [n for n in vars(module) if not n.startswith("_")])
        found = getattr(found, part)
    return found


def _of_package(where: str) -> ModuleType:
    try:
        return importlib.import_module(where)
    except ModuleNotFoundError as error:
        raise ConfigError(f"cannot import {where}: {_missing(where, error)}") from error
    except (Exception, SystemExit) as error:
        raise ConfigError(f"cannot import {where}: {type(error).__name__}: {error}") from error


def _missing(where: str, error: ModuleNotFoundError) -> str:
    """What is not there, and what to install."""
    lacks = error.name or where
    if where == lacks or where.startswith(f"{lacks}."):
        part = "" if "." not in lacks else f" in package {lacks.partition('.')[0]!r}"
        return f"there is no module {lacks!r}{part}; install the package that has it, or give path/to/file.py:name"
    top = lacks.partition(".")[0]
    return f"it needs the module {lacks!r}, which is not here; install the package that has it: pip install {top}"


def _of_file(where: str) -> ModuleType:
    file = Path(where).resolve()
    if not file.is_file():
        raise ConfigError(f"{where} does not exist; give path/to/file.py:name")
    name = f"assay_user_{file.stem}_{digest(str(file), 4)}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None  # the name ends with .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # what it defines can be pickled for another process
    sys.path.append(str(file.parent))
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        del sys.modules[name]
        raise ConfigError(f"importing {where} failed: {_missing(where, error)}") from error
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ConfigError(f"importing {where} failed: {type(error).__name__}: {error}") from error
    return module
