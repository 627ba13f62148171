"""From a word on the command line to a `Run`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from assay.core.errors import ConfigError, UnknownNameError
from assay.train.run import Run

__all__ = ["find", "settle"]


def find(word: str) -> Callable[[], Run]:
    """The recipe that a word names: one of assay's, or ``path/to/file.py:function``, or ``package.module:function``.

    Raises:
        UnknownNameError: no recipe of that name; with the nearest.
        ConfigError: the file or function is not there, or importing it fails.
    """
    from assay.recipes import RECIPES

    if ":" not in word:
        if word not in RECIPES:
            raise UnknownNameError("recipe", word, RECIPES)
        word = RECIPES[word]
    where, _, name = word.rpartition(":")
    module = _from_file(Path(where)) if where.endswith(".py") else _from_path(where)
    if not hasattr(module, name):
        public = [n for n in vars(module) if not n.startswith("_")]
        raise UnknownNameError(f"recipe in {where}", name, public)
    return cast(Callable[[], Run], getattr(module, name))


def settle(word: str, args: Sequence[str], prog: str) -> Run:
    """The run of a recipe with the command line's overrides.

    Raises:
        ConfigError: the recipe does not give a `Run`, or an override is refused.
    """
    from assay.cli.tree import parse

    recipe = find(word)
    seed, rest = _seed(args)
    run = _call(recipe, word, seed)
    doc = (recipe.__doc__ or "").strip().split("\n")[0]
    return parse(run, rest, f"{prog} {word}", doc)


def _call(recipe: Callable[..., Run], word: str, seed: int | None) -> Run:
    """A recipe that takes a ``seed`` gets the command line's, so that what it builds first (its base) follows the seed too."""
    import inspect
    from dataclasses import replace

    takes = "seed" in inspect.signature(recipe).parameters
    run = recipe(seed=seed) if takes and seed is not None else recipe()
    if not isinstance(cast(object, run), Run):
        raise ConfigError(f"recipe {word} gave a {type(run).__name__}; it must return an assay Run")
    return run if takes or seed is None else replace(run, seed=seed)


def _seed(args: Sequence[str]) -> tuple[int | None, list[str]]:
    rest = list(args)
    for i, a in enumerate(rest):
        value = a.partition("=")[2] if a.startswith("--seed=") else rest[i + 1] if a == "--seed" and i + 1 < len(rest) else None
        if value is not None:
            try:
                seed = int(value)
            except ValueError:
                raise ConfigError(f"--seed {value!r} is no whole number") from None
            return seed, rest[:i] + rest[i + (1 if "=" in a else 2) :]
    return None, rest


def _from_file(path: Path) -> object:
    if not path.exists():
        raise ConfigError(f"{path} does not exist; give path/to/file.py:function")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} cannot be imported as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # so that the parts it defines can be named in run.toml and found again
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ConfigError(f"importing {path} failed: {type(error).__name__}: {error}") from error
    return module


def _from_path(where: str) -> object:
    try:
        return importlib.import_module(where)
    except ImportError as error:
        raise ConfigError(f"cannot import {where}: {error}") from error
