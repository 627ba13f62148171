"""Where a file or a command line names a method: what it says of it. Nothing of methods is loaded where none is named."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from assay.core.errors import ConfigError, a_kind

if TYPE_CHECKING:
    from assay.objective.methods import Method

__all__ = ["TEACHER", "NamedMethod", "names_in", "read_setting", "refuse_name", "settle_settings"]

TEACHER = "teacher_model"
"""What a named method takes beside its own settings: the model folder or finished run that teaches, several in order."""

_FORMS = ("none", "function", "path", "map")
"""Kinds of a table that name no class, as `assay.core.config` reads them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedMethod:
    """A method as a person names it.

    Attributes:
        method: its name, one of ``assay methods``.
        settings: of the method, and `TEACHER`.
        given: fields of the stage that the person gave too, with dots: ``minibatches``, ``learner.heads``; they stay as they are.
    """

    method: str
    settings: Mapping[str, Any]
    given: frozenset[str] = frozenset()


def names_in(table: Mapping[str, Any]) -> tuple[dict[str, Any], dict[int, NamedMethod]]:
    """A run's table without the methods that its stages name, and these by the number of the stage.

    >>> table, named = names_in({"stages": [{"steps": 3, "objective": {"kind": "grpo", "kl": 0.0}}]})
    >>> table, named[0].method, named[0].settings, sorted(named[0].given)
    ({'stages': [{'steps': 3}]}, 'grpo', {'kl': 0.0}, ['steps'])
    """
    stages: Any = table.get("stages")
    if not isinstance(stages, list | tuple):
        return dict(table), {}
    plain: list[Any] = []
    named: dict[int, NamedMethod] = {}
    for index, given in enumerate(cast("Sequence[Any]", stages)):
        stage: Any = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}
        found = _named_method(stage)
        if found is not None:
            named[index] = found
        plain.append(given if found is None else {k: v for k, v in stage.items() if k != "objective"})
    return ({**table, "stages": plain} if named else dict(table)), named


def _named_method(stage: Mapping[str, Any]) -> NamedMethod | None:
    given = frozenset(_places({k: v for k, v in stage.items() if k not in ("objective", "kind")}))
    match stage.get("objective"):
        case str() as name:
            return NamedMethod(method=name, settings={}, given=given)
        case {"kind": str() as kind, **settings} if ":" not in kind and kind not in _FORMS:
            return NamedMethod(method=kind, settings=settings, given=given)
        case _:
            return None


def _places(table: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for name, value in table.items():
        yield f"{above}{name}"
        if isinstance(value, Mapping):
            yield from _places(cast("Mapping[str, Any]", value), f"{above}{name}.")


def refuse_name(stage: Any) -> None:
    """Raises ConfigError where a stage has the name of a method for an objective: that would be the objective alone."""
    if isinstance(stage.objective, str):
        kind = type(stage).__name__
        raise ConfigError(
            f"{kind}.objective={stage.objective!r} is a name; a method comes with all that it needs by "
            f"assay.train.wire({kind}(...), {stage.objective!r})"
        )


def read_setting(words: Sequence[str]) -> Any:
    """What the words of a command line say as a setting: a number, a truth value, nothing, text, or a tuple of several.

    >>> read_setting(["0.5"]), read_setting(["none"]), read_setting(["max_min"]), read_setting(["0.5", "5"])
    (0.5, None, 'max_min', (0.5, 5))
    """
    if len(words) > 1:
        return tuple(read_setting([word]) for word in words)
    (word,) = words
    low = {"true": True, "false": False, "none": None, "inf": float("inf"), "-inf": float("-inf")}
    if word.lower() in low:
        return low[word.lower()]
    try:
        return ast.literal_eval(word)
    except (ValueError, SyntaxError):
        return word


def settle_settings(method: Method, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as the method's defaults have them: a whole number for a float becomes one, one value for several a tuple.

    Raises:
        ConfigError: another kind of value than the default's; names the setting and the default.
    """
    return {name: _alike(method, name, value) for name, value in settings.items()}


def _alike(method: Method, name: str, value: Any) -> Any:
    default = method.settings.get(name)
    if value is None:  # ``none`` on a command line, which may be a word of the setting's
        return "none" if isinstance(default, str) else None
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(default, tuple):
        return tuple(cast("Sequence[Any]", value)) if isinstance(value, list | tuple) else (value,)
    if isinstance(default, str) and not isinstance(value, str):
        return str(value)
    numbers = (int, float)
    wrong = (isinstance(default, bool) and not isinstance(value, bool)) or (
        type(default) in numbers and (isinstance(value, bool) or not isinstance(value, numbers))
    )
    if wrong:
        raise ConfigError(f"{method.name}: {name}={value!r} is {a_kind(value)}; give one like its default, {default!r}")
    return tuple(cast("list[Any]", value)) if isinstance(value, list) else value
