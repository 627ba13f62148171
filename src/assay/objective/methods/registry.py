"""What a published method is: a constructor of an objective, with source and status."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, cast

from assay.core.errors import ConfigError, UnknownNameError
from assay.objective.methods.requires import Requires
from assay.objective.objective import Objective
from assay.objective.settings import with_checks

__all__ = ["Make", "Method", "composition", "method", "registered_methods", "describe_part"]

Make = Callable[..., Objective]

_STATUSES = ("published", "unsure")


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A named composition.

    Attributes:
        name: of the method and of its constructor.
        make: the constructor; keyword arguments are the method's settings.
        source: where it was published.
        status: ``published``; ``unsure`` where a part of the source was not found and the docstring says which.
        example: settings without which it does not compile.
        requires: what a run needs for it besides; `assay.train.wiring` puts it there where the method is named.
    """

    name: str
    make: Make
    source: str
    status: str = "published"
    example: Mapping[str, Any] = field(default_factory=dict[str, Any])
    requires: Requires = field(default_factory=Requires)

    def __post_init__(self) -> None:
        if self.status not in _STATUSES:
            raise UnknownNameError("method status", self.status, _STATUSES)

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings with their defaults, `inspect.Parameter.empty` where there is none; ``example`` goes before them."""
        return {p.name: p.default for p in signature(self.make).parameters.values()} | dict(self.example)

    @property
    def summary(self) -> str:
        """First line of the docstring."""
        return (self.make.__doc__ or "").strip().splitlines()[0].strip()

    @property
    def sentence(self) -> str:
        """What is different about it, in a plain sentence; of a method that is not assay's, the first line of its docstring.

        >>> from assay.objective.methods import methods
        >>> methods()["remax"].sentence
        "Subtracts the reward of the prompt's greedy answer, so that one sampled rollout is enough."
        """
        return _sentences().get(self.name, self.summary)

    def objective(self, **settings: Any) -> Objective:
        """The composition under settings.

        Raises:
            UnknownNameError: no such setting.
            ConfigError: a setting without default is missing.

        >>> from assay.objective.methods import methods
        >>> methods()["grpo"].objective(kl=0.0).terms
        ()
        """
        for name in settings:
            if name not in self.settings:
                raise UnknownNameError(f"setting of {self.name!r}", name, list(self.settings))
        given = {**self.example, **settings}
        missing = [name for name, value in self.settings.items() if value is Parameter.empty and name not in given]
        if missing:
            raise ConfigError(f"{self.name} needs the settings {missing}")
        return self.make(**given)

    @property
    def composition(self) -> str:
        """The parts under the default settings, as text."""
        return composition(self.objective())

    @property
    def needs(self) -> tuple[str, ...]:
        """Columns that forward passes, engine, rows, verdicts and the gradient pass bring, sorted; tokens, mask, rewards and
        lengths are always there.
        """
        plan = self.objective().plan()
        brought = {*plan.columns, *(f.column for f in plan.forwards), *plan.live, *plan.rollout_columns}
        brought -= {"ids", "mask", "logp_new", "logp_now", "length"}
        return tuple(sorted(brought))


_METHODS: dict[str, Method] = {}


@cache
def _sentences() -> dict[str, str]:
    """By the names of assay's methods."""
    return tomllib.loads(Path(__file__).with_name("sentences.toml").read_text(encoding="utf-8"))


def method(
    source: str, *, status: str = "published", example: Mapping[str, Any] | None = None, requires: Requires | None = None
) -> Callable[[Make], Make]:
    """Registers the constructor that it decorates under its own name, and makes it refuse settings of the wrong kind
    (`assay.objective.settings.with_checks`).

    Args:
        source, status, example, requires: of the `Method`.

    Raises:
        ConfigError: the name is taken.
    """

    def register(make: Make) -> Make:
        name = make.__name__
        if name in _METHODS:
            raise ConfigError(f"two methods are called {name!r}")
        checked = with_checks(make)
        _METHODS[name] = Method(
            name=name, make=checked, source=source, status=status, example=example or {}, requires=requires or Requires()
        )
        return checked

    return register


def registered_methods() -> Mapping[str, Method]:
    """Those of the modules that have been imported, by name."""
    return dict(_METHODS)


def name_among(name: str, known: Iterable[str]) -> str | None:
    """The one of the names that is this one but for case and dashes; None where there is none, or more than one.

    >>> name_among("Dr-GRPO", ["grpo", "dr_grpo"]), name_among("gpro", ["grpo"])
    ('dr_grpo', None)
    """
    names = tuple(known)
    if name in names:
        return name
    found = [n for n in names if n.casefold() == name.casefold().replace("-", "_")]
    return found[0] if len(found) == 1 else None


def composition(objective: Objective) -> str:
    """A composition as one line: credit chain, ``>>`` terminal, ``>>`` aggregation, ``+`` further terms.

    >>> from assay.objective import Center, Objective, PolicyGradient, SeqMean
    >>> composition(Objective(credit=(Center("group"),), policy=PolicyGradient(), aggregate=SeqMean()))
    'Center() >> PolicyGradient(Ratio(), MinClip()) >> SeqMean()'
    """
    chain = [describe_part(objective.scalarise)] if objective.scalarise != type(objective.scalarise)() else []
    chain += [describe_part(t) for t in objective.credit]
    steps = [" | ".join(chain)] if chain else []
    steps += [describe_part(objective.policy)] if objective.policy else []
    used = [t for t in objective.losses if t.aggregate is None and t.averages]
    steps += [describe_part(objective.aggregate)] if used else []
    terms = " + ".join(describe_part(t) for t in objective.terms)
    return " + ".join(x for x in (" >> ".join(steps), terms) if x) if objective.policy else f"{' >> '.join([terms, *steps])}"


def describe_part(part: Any) -> str:
    """A part with those of its settings that are not the default."""
    if isinstance(part, tuple):
        items = [describe_part(x) for x in cast(tuple[Any, ...], part)]
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    return f"{type(part).__name__}({', '.join(_arguments(part))})" if is_dataclass(part) else repr(part)


def _arguments(part: Any) -> Iterator[str]:
    """Settings in order; without their names while none before them was left out. Parts are shown even when they are default."""
    bare, every = True, fields(part)
    for f in sorted(every, key=lambda f: bool(f.kw_only)):
        value: Any = getattr(part, f.name)
        default: Any = f.default_factory() if callable(f.default_factory) else f.default
        nested = is_dataclass(value)
        if not f.init or (value == default and not nested):
            bare = False
        else:
            yield describe_part(value) if nested or (bare and not f.kw_only) else f"{f.name}={describe_part(value)}"
