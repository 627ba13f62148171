"""Files of settings, ``--config a.toml``: what differs from a recipe, in TOML, as options that come before the command line's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from assay.cli.given_options import GivenOption
from assay.cli.part_tree import Node, class_word
from assay.core.config import loads_toml
from assay.core.errors import AssayError, ConfigError
from assay.core.import_path import load_class

__all__ = ["CONFIG", "config_options", "names_recipe", "read_config", "recipe_of", "split_config"]

CONFIG = "config"
RECIPE = "recipe"
"""The key that names a file's recipe."""


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
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read settings from {path}: {error}") from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def recipe_of(path: Path, table: Mapping[str, Any]) -> str:
    """The recipe that a file names; empty where it names none.

    Raises:
        ConfigError: it is no text.
    """
    word = table.get(RECIPE, "")
    if not isinstance(word, str):
        raise ConfigError(f'{path}: recipe = {word!r}; give the name of a recipe, as in recipe = "quickstart"')
    return word


def names_recipe(path: Path) -> bool:
    """Whether a file holds what differs from a recipe, and not a run; False too for one that cannot be read."""
    try:
        return bool(recipe_of(path, read_config(path)))
    except ConfigError:
        return False


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
        child = node.fields.get(name.replace("-", "_")) if isinstance(node, Node) else None
        if name in ("kind", "class") and isinstance(value, str):
            if not (name == class_word(node) and _stands_there(node, value)):
                yield place, (value,), value
        else:
            yield from _value(value, child, place)


def _value(value: Any, child: Any, place: str) -> Iterator[Row]:
    match value:
        case {"kind": "none"}:
            yield (f"{place}.kind" if isinstance(child, Node) else place), ("none",), None
        case {"kind": "function", "name": str() as name}:
            yield place, (name,), None
        case {"kind": "path", "value": str() as text}:
            yield place, (text,), None
        case {"kind": "map", "items": dict()}:
            yield from _flat(cast("dict[str, Any]", value["items"]), child, f"{place}.")
        case dict():
            yield from _flat(cast("dict[str, Any]", value), child, f"{place}.")
        case [] if isinstance(child, Node) and child.kind is tuple:
            yield from ((f"{place}.{name}.kind", ("none",), None) for name in child.fields)
        case list() if any(isinstance(v, dict) for v in cast("list[Any]", value)):
            for index, item in enumerate(cast("list[Any]", value)):
                below = child.fields.get(str(index)) if isinstance(child, Node) else None
                yield from _value(item, below, f"{place}.{index}")
        case list():
            yield place, tuple(_words(cast("list[Any]", value))), value
        case _:
            yield place, tuple(_words([value])), value


def _words(values: Sequence[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, list):
            yield from _words(cast("list[Any]", value))
        else:
            yield str(value).lower() if isinstance(value, bool) else str(value)


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
