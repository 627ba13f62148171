"""The value that an option gives: plain words are read here, collections by tyro, values of a file as files of runs are."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, cast, get_args, get_origin

from assay.cli.given_options import JSON, GivenOption
from assay.cli.leaf_options import Flag
from assay.cli.part_tree import MISSING
from assay.core.config import from_dict
from assay.core.errors import ConfigError, nearest
from assay.core.fields import spell, union_members

__all__ = ["is_typed", "read_value", "typed_value", "value_name"]

_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_WORDS: Mapping[Any, str] = {int: "a whole number", float: "a number", str: "a word", Path: "a path"}


def read_value(flag: Flag, path: str, options: Sequence[GivenOption]) -> Any:
    """What options say of a leaf.

    Args:
        flag: how the command line holds it.
        path: of the leaf; an option may name an entry below it, or deny it: ``no_kernel``.
        options: all that are about it, in order.

    Raises:
        ConfigError: the words give no such value.
    """
    last = options[-1]
    kinds = union_members(flag.type)
    if bool in kinds and (not last.words or len(kinds) == 1):
        return _truth(last, path)
    if any(_is_mapping(kind) for kind in kinds):
        return _by_tyro(flag, _entries(flag, path, options), last)
    if all(_is_plain(kind) for kind in kinds):
        return _plain(kinds, flag, last)
    if not last.words and not any(get_origin(kind) is tuple for kind in kinds):
        raise ConfigError(f"{last.typed} needs a value: {value_name(flag)}")
    return _by_tyro(flag, ["--value", *last.words] if len(last.words) != 1 else [f"--value={last.words[0]}"], last)


def typed_value(declared: Any, option: GivenOption) -> Any:
    """What stands in a file, or behind ``json:``, as a field of the declared type holds it.

    Raises:
        ConfigError: it does not fit.
    """
    given = option.value
    if option.words and option.words[0].startswith(JSON):
        try:
            given = json.loads(option.words[0].removeprefix(JSON))
        except ValueError as error:
            raise ConfigError(f"{option.typed}: what follows {JSON} is no JSON: {error}") from None
    holder = dataclasses.make_dataclass("Value", [("value", declared)])
    try:
        return _as_float(from_dict(holder, {"value": given}).value, declared)
    except ConfigError as error:
        raise ConfigError(str(error).replace("Value.value", option.typed)) from None


def _as_float(value: Any, declared: Any) -> Any:
    """A whole number where only others are declared, so that 1 and 1.0 in a file are the same run."""
    kinds = union_members(declared)
    if isinstance(value, int) and not isinstance(value, bool) and float in kinds and int not in kinds:
        return float(value)
    return value


def is_typed(declared: Any, path: str, option: GivenOption) -> bool:
    """Whether an option gives a value as it is, and not words that say one."""
    if option.path != path or (declared is Any and option.words):
        return False  # of an undeclared type: what stands there says how words are read
    return option.value is not None or (len(option.words) == 1 and option.words[0].startswith(JSON))


def value_name(flag: Flag) -> str:
    """What a value is, as help says it: ``INT``, ``{low,high}``."""
    if flag.metavar is not None:
        return flag.metavar
    kinds = union_members(flag.type)
    return "|".join(_name(kind) for kind in kinds)


def _name(kind: Any) -> str:
    if kind is NoneType:
        return "NONE"
    if get_origin(kind) is Literal:
        return "{" + ",".join(map(str, get_args(kind))) + "}"
    if get_origin(kind) is tuple:
        inner = [_name(a) for a in get_args(kind) if a is not Ellipsis]
        return f"[{inner[0]} ...]" if Ellipsis in get_args(kind) else " ".join(inner)
    if _is_mapping(kind):
        return "[KEY VALUE ...]"
    return kind.__name__.upper() if isinstance(kind, type) else spell(kind).upper()


def _is_mapping(kind: Any) -> bool:
    origin = get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _is_plain(kind: Any) -> bool:
    return kind in (int, float, str, Path, bool, NoneType) or get_origin(kind) is Literal


def _truth(option: GivenOption, path: str) -> bool:
    """``--x``, ``--no-x``, ``--x true``."""
    given = option.path == path
    if not option.words:
        return given
    word = " ".join(option.words).lower()
    if word not in (*_TRUE, *_FALSE):
        raise ConfigError(f"{option.words[0]!r} is neither true nor false; give {option.typed} alone, or with true or false")
    return given is (word in _TRUE)


def _plain(kinds: Sequence[Any], flag: Flag, option: GivenOption) -> Any:
    """One word as the first of several plain types that it fits."""
    if not option.words:
        raise ConfigError(f"{option.typed} needs a value: {value_name(flag)}")
    word, *more = option.words
    if more:
        raise ConfigError(f"{option.typed} takes one value, and {' '.join(more)!r} follows it; quote a value that holds spaces")
    for kind in sorted(kinds, key=lambda k: k is str):  # everything is a text
        if get_origin(kind) is Literal:
            if (found := [choice for choice in get_args(kind) if str(choice) == word]) != []:
                return found[0]
        elif kind is NoneType:
            if word in ("None", "none"):
                return None
        elif kind is bool:
            if word.lower() in (*_TRUE[:1], *_FALSE[:1]):
                return word.lower() in _TRUE
        else:
            try:
                return kind(word)
            except ValueError:
                continue
    choices = [str(c) for kind in kinds if get_origin(kind) is Literal for c in get_args(kind)]
    if choices:
        close = nearest(word, choices)
        raise ConfigError(f"{word!r} is none of {', '.join(choices)}" + (f"; did you mean {close!r}?" if close else ""))
    wanted = " or ".join(_WORDS.get(kind, "none") for kind in kinds)
    raise ConfigError(f"{word!r} is not {wanted}")


def _entries(flag: Flag, path: str, options: Sequence[GivenOption]) -> list[str]:
    """A table's entries as tyro reads them: by key where there are some, else keys and values in turn."""
    below = [o for o in options if o.path != path]
    if not below:
        return ["--value", *options[-1].words]
    keys = {str(key).replace("-", "_"): str(key) for key in cast("Mapping[Any, Any]", flag.shown or {})}
    named = [(_key(o, path, keys), o.words) for o in below]
    if keys:
        return [word for key, words in named for word in (f"--value.{key}", *words)]
    return ["--value", *(word for key, words in named for word in (key, *words))]


def _key(option: GivenOption, path: str, keys: Mapping[str, str]) -> str:
    """A key that stands there, else as it was written: with its dashes."""
    written = option.typed.lstrip("-").split(".", path.count(".") + 1)[-1]
    return keys.get(option.path[len(path) + 1 :], written)


def _by_tyro(flag: Flag, words: Sequence[str], option: GivenOption) -> Any:
    import tyro

    value: Any = Annotated[flag.type, tyro.conf.arg(name="value")]
    default = () if flag.shown is MISSING else (dataclasses.field(default_factory=lambda: flag.shown),)
    made = dataclasses.make_dataclass("Value", [("value", value, *default)])
    made.__doc__ = " "
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            return cast(Any, tyro).cli(made, args=list(words), config=(tyro.conf.HelptextFromCommentsOff,)).value
    except SystemExit:
        said = " ".join(option.words)
        raise ConfigError(f"{said!r} cannot be read; give {value_name(flag)}") from None
