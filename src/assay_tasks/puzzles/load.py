"""Puzzles from TOML files."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.tasks.problems import Problems
from assay_tasks.puzzles.spec import Spec

__all__ = ["load_puzzle", "puzzle_from"]

_KEYS = (
    "name",
    "domain",
    "texts",
    "parameters",
    "secret",
    "levels",
    "variables",
    "constraints",
    "clues",
    "answer",
    "maximize",
    "minimize",
    "easier_when_larger",
)


def load_puzzle(path: str | Path) -> Spec:
    """The puzzle that a TOML file describes.

    Raises:
        DataError: there is no such file, it is no TOML, or something in it is wrong; names the file, the key and a fix.
    """
    place = Path(path)
    try:
        table: dict[str, Any] = tomllib.loads(place.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{place}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{place}: is no TOML: {error}") from None
    for key in table:
        if key not in _KEYS:
            raise DataError(f"{place}: {UnknownNameError('key of a puzzle', key, _KEYS)}")
    try:
        return _spec(table, place)
    except ConfigError as error:
        raise DataError(f"{place}: {error}") from None


def _spec(table: Mapping[str, Any], place: Path) -> Spec:
    levels: Any = table.get("levels", {"1": {}})
    if not isinstance(levels, dict) or not all(
        key.isdecimal() and isinstance(v, dict) for key, v in cast("dict[str, Any]", levels).items()
    ):
        raise ConfigError("key 'levels' must be tables [levels.1], [levels.2], ... of parameters")
    by_level = cast("dict[str, dict[str, Any]]", levels)
    answer = table.get("answer", {})
    texts, constraints = table.get("texts", ()), table.get("constraints", ())
    return Spec(
        name=str(table.get("name", f"puzzle/{place.stem}")),
        domain=str(table.get("domain", "logic")),
        levels=tuple(sorted(map(int, by_level))),
        texts=(texts,) if isinstance(texts, str) else tuple(texts),
        parameters=table.get("parameters", {}),
        secret=table.get("secret", {}),
        by_level={str(int(key)): value for key, value in by_level.items()},
        variables=table.get("variables", {}),
        constraints=(constraints,) if isinstance(constraints, str) else tuple(constraints),
        clues=tuple(table.get("clues", ())),
        answer={"value": answer} if isinstance(answer, str) else {"values": answer} if isinstance(answer, list) else answer,
        maximize=table.get("maximize", ""),
        minimize=table.get("minimize", ""),
        easier=tuple(table.get("easier_when_larger", ())),
    )


def puzzle_from(path: str | Path) -> Problems:
    """A family with the one puzzle of a TOML file.

    Raises:
        DataError: as `load_puzzle`.
    """
    spec = load_puzzle(path)
    return Problems(name=spec.name.partition("/")[0], problems=(spec,))
