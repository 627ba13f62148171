"""Files of settings, ``--config a.toml``: what differs from a recipe, in TOML, as options that come before the command line's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from assay.cli.given_options import GivenOption
from assay.cli.part_tree import MISSING, Node, class_word
from assay.core.config import loads_toml
from assay.core.errors import AssayError, ConfigError
from assay.core.import_path import load_class

__all__ = ["CONFIG", "config_options", "names_recipe", "path_in", "read_config", "recipe_of", "split_config", "with_bases"]

CONFIG = "config"
RECIPE = "recipe"
"""The key that names a file's recipe."""

_VALUES = ("function", "path", "map", "rows")
"""Kinds of a table that is a value, as `assay.core.config` reads them."""


def split_config(options: Sequence[GivenOption]) -> tuple[list[Path], list[GivenOption]]:
    """The files of ``--config``, in order, and the other options.

    Raises:
        ConfigError: no file is named.
    """
    files: list[Path] = []
    rest: list[GivenOption] = []
    for option in options:
        if option.path != CONFIG:
            rest.append(option)
            continue
        if not option.words:
            raise ConfigError(
                f"{option.typed} needs a value: a file of settings that differ from the recipe, as in --config a.toml"
            )
        files += map(Path, option.words)
    return files, rest


def read_config(path: Path) -> dict[str, Any]:
    """A file's table.

    Raises:
        ConfigError: it cannot be read, or is no TOML; names the file.
    """
    try:
        return loads_toml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"cannot read settings from {path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read settings from {path}: {error}") from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def path_in(file: Path, word: str) -> str:
    """A path, or ``path/to/file.py:name``, that a file of settings names: as it stands beside the file where it is there, else
    unchanged, which is a name or a path from the current folder.
    """
    beside = file.parent / word.partition(":")[0]
    return str(file.parent / word) if word and not word.startswith("hub:") and beside.exists() else word


def recipe_of(path: Path, table: Mapping[str, Any]) -> str:
    """The recipe that a file names, its path from the current folder; empty where it names none.

    Raises:
        ConfigError: it is no text.
    """
    word = table.get(RECIPE, "")
    if not isinstance(word, str):
        raise ConfigError(f'{path}: recipe = {word!r}; give the name of a recipe, as in recipe = "quickstart"')
    return word if ":" not in word and "." not in word and "/" not in word else path_in(path, word)


def names_recipe(path: Path) -> bool:
    """Whether a file holds what differs from a recipe, and not a run; False too for one that cannot be read."""
    try:
        return bool(recipe_of(path, read_config(path)))
    except ConfigError:
        return False


def with_bases(files: Sequence[Path]) -> dict[Path, dict[str, Any]]:
    """The tables of files of settings, each behind the one that its ``recipe`` names where that is such a file itself.

    Raises:
        ConfigError: a file cannot be read, or builds on itself.
    """
    tables: dict[Path, dict[str, Any]] = {}
    for file in files:
        chain = [file]
        while (word := recipe_of(chain[0], read_config(chain[0]))).endswith(".toml") and names_recipe(Path(word)):
            if Path(word).resolve() in [known.resolve() for known in chain]:
                raise ConfigError(f"{chain[0]}: recipe = {word!r} builds on itself; name a recipe that 'assay recipes' lists")
            chain.insert(0, Path(word))
        for path in chain:
            tables.setdefault(path, read_config(path))
    return tables


def config_options(path: Path, table: Mapping[str, Any], root: Node, layer: int) -> list[GivenOption]:
    """What a file says, option by option.

    Args:
        path: of the file, for messages.
        table: what it holds.
        root: the run that it changes, taken apart: which tables are parts, and which are values, depends on it.
        layer: of the file.
    """
    rows = _flat({k: v for k, v in table.items() if k != RECIPE}, root, "")
    return [
        GivenOption(path=where, words=words, typed=where, file=str(path), layer=layer, value=value)
        for where, words, value in rows
    ]


Row = tuple[str, tuple[str, ...], Any]


def _flat(table: Mapping[str, Any], node: Any, above: str) -> Iterator[Row]:
    """Each value below a table, with its path. What names the class that stands there already says nothing."""
    for name, value in table.items():
        place = f"{above}{name.replace('-', '_')}"
        if name in ("kind", "class") and isinstance(value, str):
            if not (name == class_word(node) and _stands_there(node, value)):
                yield place, (value,), value
        else:
            yield from _value(value, _child(node, name.replace("-", "_")), place)


def _child(node: Any, name: str) -> Any:
    """What stands there: a part or a leaf; MISSING where that is not known."""
    return node.fields.get(name, MISSING) if isinstance(node, Node) else MISSING


def _value(value: Any, child: Any, place: str) -> Iterator[Row]:
    """A value, or what a table says of the parts below it."""
    part = isinstance(child, Node)
    match value:
        case {"kind": "none"}:
            yield (f"{place}.kind" if part else place), ("none",), None
        case {"kind": str() as kind} if kind in _VALUES:
            yield place, (), value
        case dict() if part or child is MISSING or _names_class(cast("dict[str, Any]", value)):
            yield from _flat(cast("dict[str, Any]", value), child, f"{place}.")
        case [] if part and child.kind is tuple:
            yield from ((f"{place}.{name}.kind", ("none",), None) for name in child.fields)
        case list() if part or (child in (MISSING, ()) and any(isinstance(v, dict) for v in cast("list[Any]", value))):
            for index, item in enumerate(cast("list[Any]", value)):
                yield from _value(item, _child(child, str(index)), f"{place}.{index}")
        case list() | dict():
            yield place, (), value
        case _:
            yield place, (str(value).lower() if isinstance(value, bool) else str(value),), value


def _names_class(table: Mapping[str, Any]) -> bool:
    return any(isinstance(table.get(word), str) for word in ("kind", "class"))


def _stands_there(node: Any, word: str) -> bool:
    """Whether a word names the class of a part."""
    if not isinstance(node, Node) or node.kind in (tuple, dict):
        return False
    if ":" not in word:
        return node.kind.__name__ == word
    try:
        return load_class(word, "kind") is node.kind
    except AssayError:
        return False  # said when it is to be put there
