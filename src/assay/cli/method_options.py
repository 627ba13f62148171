"""Methods that a command line names, ``--stages.0.objective ppo``, with their settings, ``--stages.0.objective.kl 0``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from assay.core.errors import ConfigError, UnknownNameError
from assay.objective.objective import Objective
from assay.train.method_names import TEACHER, NamedMethod, read_setting
from assay.train.models import Built
from assay.train.run import Run

if TYPE_CHECKING:
    from assay.train.wiring import WiredPart

__all__ = ["Place", "split_names", "wire_named"]

Place = tuple[str, int]
"""Where a method is named: the way to the run, empty or ``model.run.`` for its base, and the number of the stage."""

_OPTION = re.compile(r"--((?:model\.run\.)*)stages\.(\d+)\.(.+)")


def split_names(args: Sequence[str], parts: Sequence[str] = ()) -> tuple[list[str], dict[Place, NamedMethod]]:
    """The other arguments, and the methods that they name.

    Args:
        args: arguments without the program.
        parts: names of classes that may stand in the place of an objective: they are no methods.

    Raises:
        UnknownNameError: no such method, or no such setting of it; with the nearest.
        ConfigError: a name or a value is missing.
    """
    options = _options(args)
    named = {place: name for place, name in (_name(option, words, parts) for option, words in options) if place and name}
    if not named:
        return list(args), {}
    rest: list[str] = []
    settings: dict[Place, dict[str, Any]] = {place: {} for place in named}
    given: dict[Place, set[str]] = {place: set() for place in named}
    for option, words in options:
        place, field = _place(option)
        if place not in named:
            rest += [option, *words]
            continue
        if field in ("objective", "objective.kind") and _name(option, words, parts)[1]:
            continue
        setting = field.removeprefix("objective.")
        if setting != field and _is_setting(option, setting, named[place]):
            settings[place][setting] = _value(option, words)
            continue
        given[place].add(field)
        rest += [option, *words]
    return rest, {
        place: NamedMethod(method=name, settings=settings[place], given=frozenset(given[place])) for place, name in named.items()
    }


def wire_named(run: Run, named: Mapping[Place, NamedMethod]) -> tuple[Run, tuple[WiredPart, ...]]:
    """The run with all that the methods need, and what that was; of its base too.

    Raises:
        UnknownNameError, ConfigError: as `assay.train.wiring.wire_run`; or there is no base.
    """
    from assay.train.wiring import wire_run

    run, wires = wire_run(run, {index: name for (way, index), name in named.items() if not way})
    deeper = {(way.removeprefix("model.run."), index): name for (way, index), name in named.items() if way}
    if not deeper:
        return run, wires
    if not isinstance(run.model, Built):
        raise ConfigError(f"--model.run.stages: the run has no base that is built first; its model is {run.model.describe()}")
    base, more = wire_named(run.model.run, deeper)
    return replace(run, model=Built(run=base)), (*wires, *(replace(w, place=f"model.run.{w.place}") for w in more))


def _options(args: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Each option with the words behind it; words before the first option stand by themselves."""
    out: list[tuple[str, list[str]]] = []
    for word in args:
        if word.startswith("--") or not out:
            out.append((word, []))
        else:
            out[-1][1].append(word)
    return out


def _place(option: str) -> tuple[Place | None, str]:
    """The stage that an option is about, and the field below it."""
    found = _OPTION.fullmatch(option.partition("=")[0])
    return ((found[1], int(found[2])), found[3].replace("-", "_")) if found else (None, "")


def _name(option: str, words: Sequence[str], parts: Sequence[str]) -> tuple[Place | None, str]:
    """The stage and the method that an option names; an empty name where it names none."""
    place, field = _place(option)
    if place is None or field not in ("objective", "objective.kind"):
        return None, ""
    flag, equals, value = option.partition("=")
    name = value if equals else words[0] if words else ""
    if not name:
        raise ConfigError(f"{flag} needs a value: the name of a method, as in {flag} grpo ('assay methods' lists them)")
    if ":" in name or name in parts or name in ("none", "None"):
        return place, ""
    from assay.objective.methods import methods

    known = methods()
    if name not in known:
        raise UnknownNameError(f"method of {flag}", name, known)
    return place, name


def _is_setting(option: str, word: str, method: str) -> bool:
    """Whether a word below the objective is a setting of the method; it may also be a field of the composition."""
    from assay.objective.methods import methods

    known = [*methods()[method].settings, TEACHER]
    if word in known:
        return True
    own = [f.name for f in fields(Objective)]
    if "." not in word and word not in own:
        raise UnknownNameError(f"setting of {method!r} in {option.partition('=')[0]}", word, [*known, *own])
    return False


def _value(option: str, words: Sequence[str]) -> Any:
    flag, equals, value = option.partition("=")
    if not equals and not words:
        raise ConfigError(f"{flag} needs a value")
    return read_setting([value, *words] if equals else words)
