"""What `assay.recipes.on_rows` is given by keyword: names of other trainers, and values of another kind than is meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar, cast

from assay.core.errors import ConfigError, a_kind
from assay.objective.loss.aggregate import Token
from assay.objective.loss.kl import Kl
from assay.objective.methods import grpo, method_named, methods
from assay.objective.objective import Objective
from assay.recipes.setting_names import keyword_of, misnamed_keyword

__all__ = ["accepts_other_names", "check_rows_arguments", "named_settings", "with_divergence"]

P = ParamSpec("P")
T = TypeVar("T")

_WHOLE = (
    *("steps", "groups", "group_size", "max_new_tokens", "micro_tokens", "threads", "seed"),
    *("checkpoint_every", "keep_checkpoints"),
)
_NUMBERS = ("learning_rate", "kl", "temperature", "test_share", "reward_deadline")


def accepts_other_names(function: Callable[P, T]) -> Callable[P, T]:
    """The function, which takes its keywords by their other names too, and says of a wrong one which was meant.

    Raises:
        ConfigError: a keyword that is none, or one that is given twice, by two of its names.
    """
    keywords = [p.name for p in inspect.signature(function).parameters.values()]

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        given: dict[str, Any] = {}
        for name, value in kwargs.items():
            real = name if name in keywords else keyword_of(name, keywords)
            if real is None:
                raise ConfigError(f"{function.__name__}({name}={value!r:.60}): {misnamed_keyword(name, keywords)}")
            if real in given:
                raise ConfigError(f"{function.__name__}: {name} is the same as {real}, which is given too; keep one")
            given[real] = value
        return cast("Callable[..., T]", function)(*args, **given)

    return call


def check_rows_arguments(given: Mapping[str, Any]) -> None:
    """Raises ConfigError where an argument of `assay.recipes.on_rows` is of another kind than it takes; names it and a fix."""
    if callable(given["rows"]) and not hasattr(given["rows"], "__len__"):
        raise ConfigError("the first argument is a function; give the rows first, then the reward: on_rows(rows, reward)")
    for name in (*_WHOLE, *_NUMBERS):
        value: Any = given[name]
        kind: type[Any] = Integral if name in _WHOLE else Real
        if value is None or (isinstance(value, kind) and not isinstance(value, bool)):
            continue
        what = "whole number" if name in _WHOLE else "number"
        unquoted = isinstance(value, str) and _is_number(value, name in _WHOLE)
        fix = f"leave out the quotes: {name}={value}" if unquoted else f"give a {what}"
        raise ConfigError(f"{name}={value!r:.60} is {a_kind(value)}, no {what}; {fix}")
    tools: Any = given["tools"]
    if callable(tools):
        raise ConfigError(f"tools={getattr(tools, '__name__', 'f')} is one function; give a list: tools=[...]")
    if isinstance(tools, str) or not isinstance(tools, Sequence):
        raise ConfigError(f"tools={tools!r:.60} is {a_kind(tools)}; give a list of functions, as tools=[search]")


def _is_number(text: str, whole: bool) -> bool:
    try:
        int(text) if whole else float(text)
    except ValueError:
        return False
    return True


def named_settings(objective: str, kl: float | None) -> dict[str, float]:
    """The settings of a named method that a coefficient of the divergence is; empty where it has none of that name."""
    method = method_named(objective)
    return {} if kl is None or method is None or "kl" not in methods()[method].settings else {"kl": float(kl)}


def with_divergence(objective: Objective | None, kl: float | None) -> Objective:
    """An objective under a coefficient of the divergence from the start: 0 leaves it out, None leaves it as it is.

    >>> with_divergence(None, 0.01).terms[0].coef
    0.01
    """
    if objective is None:
        objective = replace(grpo(kl=0.0), aggregate=Token())
    if kl is None:
        return objective
    is_kl = ("Kl", "KlInReward")
    for field in ("credit", "terms"):
        held = cast("tuple[Any, ...]", getattr(objective, field))
        if any(type(t).__name__ in is_kl for t in held):
            kept = [t for t in held if kl or type(t).__name__ not in is_kl]
            changed = tuple(replace(t, coef=float(kl)) if type(t).__name__ in is_kl else t for t in kept)
            return replace(objective, **cast("Any", {field: changed}))
    return replace(objective, terms=(*objective.terms, Kl(coef=float(kl)))) if kl else objective
