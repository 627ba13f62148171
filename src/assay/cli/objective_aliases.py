"""What the short options of an objective stand for: terms are added to those that stand there, and none is put over another."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from assay.cli.given_options import GivenOption
from assay.cli.part_tree import FIRST
from assay.core.errors import ConfigError

if TYPE_CHECKING:
    from assay.train.run import Run

__all__ = ["Settings", "StageOfRun", "coef_of", "with_clip", "with_entropy", "with_kl", "with_kl_in_reward"]

Settings = list[tuple[str, tuple[str, ...]]]
"""Paths with their words."""


@dataclass(frozen=True, slots=True)
class StageOfRun:
    """The stage that a short option is about.

    Attributes:
        run: as the recipe gives it.
        stage: the number of the stage.
        method: the name of the method that other options give it; empty where they name none.
        others: the other options, those that short ones before this one stand for among them.
    """

    run: Run
    stage: int
    method: str
    others: Sequence[GivenOption]

    @property
    def path(self) -> str:
        """Of the stage."""
        return f"stages.{self.stage}"

    def has(self, path: str) -> bool:
        """Whether another option is about a place."""
        return any(o.path == path for o in self.others)


def with_kl(at: StageOfRun, option: GivenOption) -> Settings:
    """The coefficient of the divergence: the method's setting, else that of the term there, else of a new term ``Kl``; 0 takes it
    away.
    """
    held = _positions(at, "terms", ("Kl",)) or _positions(at, "credit", ("KlInReward",), own=True)
    return _with_term(at, option, "kl", held, lambda: (_free(at, "terms"), "assay.objective:Kl"))


def with_entropy(at: StageOfRun, option: GivenOption) -> Settings:
    """The coefficient of the entropy bonus, in the same way."""
    return _with_term(
        at, option, "entropy", _positions(at, "terms", ("Entropy",)), lambda: (_free(at, "terms"), "assay.objective:Entropy")
    )


def with_kl_in_reward(at: StageOfRun, option: GivenOption) -> Settings:
    """The coefficient of the divergence that is subtracted from the reward, before anything else is made of the reward."""
    method = _method(at)
    paid = method is not None and "kl" in method.settings and any(map(_is_kl_in_reward, method.objective(kl=1.0).credit))
    held = _positions(at, "credit", ("KlInReward",))
    new = f"{at.path}.objective.credit.{FIRST}", "assay.objective:KlInReward"
    return _with_term(at, option, "kl" if paid else "", held, lambda: new)


def with_clip(at: StageOfRun, option: GivenOption) -> Settings:
    """Both bounds of the ratio, as distances from 1: one number for both, or the one below and the one above.

    Raises:
        ConfigError: other than one or two values, or the objective has no such bounds.
    """
    _refuse_text(option)
    given: object = option.value
    listed = cast("list[object]", given) if isinstance(given, list) else []
    words = option.words or tuple(map(str, listed))
    if len(words) not in (1, 2):
        raise ConfigError(
            f"{option.typed} needs one value for both bounds of the ratio, or the one below and the one above: 0.2 0.28"
        )
    path, trust = f"{at.path}.objective", f"{at.path}.objective.policy.trust"
    policy = _objective(at).policy
    if type(getattr(policy, "trust", None)).__name__ == "MinClip" or at.has(f"{trust}.kind"):
        return [(f"{trust}.low", words[:1]), (f"{trust}.high", words[-1:])]
    method = _method(at)
    if method and "clip" in method.settings and len(words) == 1:
        return [(f"{path}.clip", words)]
    raise ConfigError(
        f"{option.typed}: the ratio of this objective is not clipped between two bounds; name a method where it is, as in "
        f"--objective grpo --clip {' '.join(words)}"
    )


def coef_of(run: Run, stage: int, names: Sequence[str]) -> str:
    """The coefficient of the first term of these classes in the objective of a stage; 0 where there is none."""
    objective: Any = run.stages[stage].objective
    return next((str(t.coef) for t in (*objective.credit, *objective.terms) if type(t).__name__ in names), "0")


# ---- inside -----------------------------------------------------------------------------------------------------------


def _with_term(
    at: StageOfRun, option: GivenOption, setting: str, held: Sequence[str], new: Callable[[], tuple[str, str]]
) -> Settings:
    _refuse_text(option)
    method = _method(at)
    if method and setting and setting in method.settings:
        return [(f"{at.path}.objective.{setting}", option.words)]
    off = len(option.words) == 1 and _number(option.words[0]) == 0.0
    if held:
        return [(f"{held[0]}.kind", ("none",))] if off else [(f"{held[0]}.coef", option.words)]
    place, kind = new()
    return [] if off else [(f"{place}.kind", (kind,)), (f"{place}.coef", option.words)]


def _refuse_text(option: GivenOption) -> None:
    """Raises ConfigError for a number in quotes in a file of settings."""
    given: object = option.value
    for item in cast("list[object]", given) if isinstance(given, list) else [given]:
        if isinstance(item, str) and _number(item) is not None:
            raise ConfigError(f"{option.typed}={given!r}: {item!r} is text; leave the quotes out: {item}")


def _method(at: StageOfRun) -> Any:
    from assay.objective.methods import methods

    return methods().get(at.method)


def _objective(at: StageOfRun) -> Any:
    """The objective that the stage has before options change it."""
    method = _method(at)
    return method.objective() if method else at.run.stages[at.stage].objective


def _kinds(at: StageOfRun, field: str, own: bool = False) -> dict[str, str]:
    """Names of the classes in a tuple of the objective, by position: as the objective has them, and as other options put them."""
    out = {str(i): type(term).__name__ for i, term in enumerate(getattr(_objective(at), field))}
    for option in () if own else at.others:
        found = re.fullmatch(rf"{re.escape(at.path)}\.objective\.{field}\.(\w+)\.kind", option.path)
        if found and option.words:
            out[found[1]] = option.words[0].rpartition(":")[2]
    return out


def _positions(at: StageOfRun, field: str, names: Sequence[str], own: bool = False) -> list[str]:
    return [f"{at.path}.objective.{field}.{place}" for place, name in _kinds(at, field, own).items() if name in names]


def _free(at: StageOfRun, field: str) -> str:
    """The place behind all entries of a tuple, those that other options add among them."""
    taken = [int(place) for place in _kinds(at, field) if place.isdecimal()]
    return f"{at.path}.objective.{field}.{max(taken, default=-1) + 1}"


def _is_kl_in_reward(term: Any) -> bool:
    return type(term).__name__ == "KlInReward"


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None
