"""Methods by name, on a command line or in a file: ``--stages.0.objective ppo``, ``--stages.0.objective.kl 0``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from assay.cli.given_options import GivenOption, Mistakes
from assay.core.errors import AssayError, ConfigError, UnknownNameError
from assay.objective.objective import Objective
from assay.train.method_names import TEACHER, NamedMethod, read_setting
from assay.train.models import Built
from assay.train.run import Run

if TYPE_CHECKING:
    from assay.train.wiring import WiredPart

__all__ = ["Place", "split_names", "wire_all", "wire_named"]

Place = tuple[str, int]
"""Where a method is named: the way to the run, empty or ``model.run.`` for its base, and the number of the stage."""

_OPTION = re.compile(r"((?:model\.run\.)*)stages\.(\d+)\.(.+)")
_NAMES = ("objective", "objective.kind")
_ELSEWHERE = {
    "gae": "ppo",
    "group_norm": "grpo",
    "reinforce++": "reinforce_pp",
    "reinforce_plus_plus": "reinforce_pp",
    "reinforce++_baseline": "reinforce_pp_baseline",
    "reinforce_plus_plus_baseline": "reinforce_pp_baseline",
    "reinforce_baseline": "reinforce_pp_baseline",
    "bnpo": "grpo, with --stages.N.objective.aggregate.kind Token",
    "optimal_token_baseline": "otb",
    "geo_mean": "gmpo",
}
"""Names of estimators and losses of verl, OpenRLHF and TRL whose likeness to a name here misleads."""


def split_names(
    given: Sequence[GivenOption], parts: Sequence[str], mistakes: Mistakes
) -> tuple[list[GivenOption], dict[Place, NamedMethod]]:
    """The other options, and the methods that are named.

    Args:
        given: in the order in which they count.
        parts: names of classes that may stand in the place of an objective: they are no methods.
        mistakes: takes names and settings that are not there, and missing values; what follows from these is left out.
    """
    named, wrong = dict[Place, str](), set[Place]()
    for option in given:
        place, _ = _place(option)
        try:
            if place and (name := _name(option, parts)):
                named[place] = name
        except ConfigError as error:
            mistakes.add([option], error)
            wrong |= {place} if place else set()
    rest: list[GivenOption] = []
    settings: dict[Place, dict[str, Any]] = {place: {} for place in named}
    own: dict[Place, set[str]] = {place: set() for place in named}
    for option in given:
        place, field = _place(option)
        if place in wrong and field.partition(".")[0] == "objective":
            continue
        if place not in named or (field in _NAMES and not _is_name(option, parts)):
            rest.append(option)
        elif field not in _NAMES:
            setting = field.removeprefix("objective.")
            try:
                if setting != field and _is_setting(option, setting, named[place]):
                    settings[place][setting] = _value(option)
                    continue
            except ConfigError as error:
                mistakes.add([option], error)
                continue
            own[place].add(field)
            rest.append(option)
    return rest, {
        place: NamedMethod(method=name, settings=settings[place], given=frozenset(own[place])) for place, name in named.items()
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


def wire_all(
    run: Run, given: Sequence[GivenOption], parts: Sequence[str], mistakes: Mistakes
) -> tuple[Run, tuple[WiredPart, ...], list[GivenOption]]:
    """The run under the methods that options name, what was put into it for them, and the other options."""
    rest, named = split_names(given, parts, mistakes)
    if not named:
        return run, (), rest
    try:
        changed, wires = wire_named(run, named)
    except AssayError as error:
        mistakes.add([o for o in given if _place(o)[0] in named and _place(o)[1] in _NAMES], error)
        return run, (), [o for o in rest if not _is_below(o, named)]
    return changed, wires, rest


def _is_below(option: GivenOption, named: Mapping[Place, NamedMethod]) -> bool:
    """Whether an option is about what a method brings."""
    place, field = _place(option)
    return place in named and field.split(".")[0] in ("objective", "learner", "columns")


def _place(option: GivenOption) -> tuple[Place | None, str]:
    """The stage that an option is about, and the field below it."""
    found = _OPTION.fullmatch(option.path)
    return ((found[1], int(found[2])), found[3]) if found else (None, "")


def _is_name(option: GivenOption, parts: Sequence[str]) -> bool:
    """Whether an option in the place of an objective names a method, not a part."""
    name = option.words[0] if option.words else ""
    return not (":" in name or name in parts or name in ("none", "None"))


def _name(option: GivenOption, parts: Sequence[str]) -> str:
    """The method that an option names; empty where it names none."""
    if _place(option)[1] not in _NAMES:
        return ""
    flag, name = option.typed, option.words[0] if option.words else ""
    if not name:
        raise ConfigError(f"{flag} needs a value: the name of a method, as in {flag} grpo ('assay methods' lists them)")
    if not _is_name(option, parts):
        return ""
    from assay.objective.methods import method_named, methods

    if found := method_named(name):
        return found
    if here := _ELSEWHERE.get(name.lower().replace("-", "_")):
        raise ConfigError(f"{flag} {name}: that is another library's name; in assay this is {here}")
    raise UnknownNameError(f"method of {flag}", name, methods())


def _is_setting(option: GivenOption, word: str, method: str) -> bool:
    """Whether a word below the objective is a setting of the method; it may also be a field of the composition."""
    from assay.objective.methods import methods

    known = [*methods()[method].settings, TEACHER]
    if word in known:
        return True
    own = [f.name for f in fields(Objective)]
    if "." not in word and word not in own:
        raise UnknownNameError(f"setting of {method!r} in {option.typed}", word, [*known, *own])
    return False


def _value(option: GivenOption) -> Any:
    if option.value is not None:
        return option.value
    if not option.words:
        raise ConfigError(f"{option.typed} needs a value")
    return read_setting(option.words)
