"""Families by name, of all installed packages, and what there is to know about one.

A family of your own gets a name by an entry point (`assay.tasks.packages`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, cast

import numpy as np

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.protocols import TaskSource
from assay.core.task import Task
from assay.tasks.mixture import TaskMixture
from assay.tasks.named_suites import suite, suite_summary, suites
from assay.tasks.packages import installed_packages
from assay.tasks.problems import Problems
from assay.tasks.rows import Rows

__all__ = ["Card", "card", "families", "family", "with_seed", "with_form"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A family in words and one example, for listings.

    Attributes:
        name: of the family.
        summary: first line of its docstring; of rows, how many there are.
        arms: each arm with its levels.
        domains: each arm with its domain.
        summaries: each arm with what it asks.
        example: the first training task of its lowest level.
        verifier: how answers are judged.
        has_trace: whether an oracle can demonstrate it.
        has_tools: whether it is played in an environment.
        trace: the oracle's turns for the example as (role, text); () without an oracle.
    """

    name: str
    summary: str
    arms: Mapping[str, tuple[int, ...]]
    domains: Mapping[str, str]
    summaries: Mapping[str, str]
    example: Task
    verifier: str
    has_trace: bool
    has_tools: bool
    trace: tuple[tuple[str, str], ...]


def families() -> tuple[str, ...]:
    """Names of the families of all installed packages, sorted.

    Carries: InternBootcamp (arXiv 2508.08636), in part.

    >>> "sort" in families()
    True
    """
    return tuple(sorted(installed_packages().families))


def family(name: str) -> TaskSource:
    """The family or suite of that name with its default settings; ``family/problem`` gives one of its arms alone, ``suite/part``
    one part. An arm whose own name begins with another word is found by it, and behind its family's name too.

    Raises:
        UnknownNameError: no such family, suite, arm or part; says the nearest name.
        ConfigError: two packages offer the name, or the package that offers it cannot be imported.

    >>> family("sort").arms()["sort"][0], list(family("arithmetic/expression").arms())
    (3, ['arithmetic/expression'])
    """
    head, slash, rest = name.partition("/")
    if head in suites():
        return suite(name)
    if slash and head not in installed_packages().families and (home := _home_of_arm(name)) is not None:
        return home.only(name)
    found = installed_packages().family(head)
    if not slash:
        return found
    if not isinstance(found, Problems):
        raise UnknownNameError(f"arm of {head}", name, found.arms())
    return found.only(rest if rest in found.arms() and name not in found.arms() else name)


def _home_of_arm(arm: str) -> Problems | None:
    """The family of somebody's package that has this arm; of assay's own, arms begin with the family's name."""
    known = installed_packages()
    for name, what in known.families.items():
        if what.startswith("assay_tasks.") or name in known.clashes:
            continue
        try:
            found = known.family(name)
        except ConfigError:  # a package that is broken spoils no other
            continue
        if isinstance(found, Problems) and arm in found.arms():
            return found
    return None


def card(source: TaskSource) -> Card:
    """What there is to know about a family.

    >>> card(family("keyvalue")).has_tools
    True
    """
    arms = source.arms()
    arm = next(iter(arms))
    example = source.task(arm, arms[arm][0], "train", 0)
    trace = source.trace(example, 0.0, np.random.default_rng(0))
    return Card(
        name=source.name,
        summary=_first_line(source.problems[0] if isinstance(source, Problems) and len(arms) == 1 else source),
        arms=arms,
        domains={a: _domain(_home(source, a), a) for a in arms},
        summaries={a: _summary_of(_home(source, a), a) for a in arms},
        example=example,
        verifier="each family's own" if isinstance(source, TaskMixture) else repr(source.verifier()),
        has_trace=trace is not None,
        has_tools=source.environment(example.public_view()) is not None,
        trace=tuple((m.role, m.content) for m in trace or ()),
    )


def with_seed(source: TaskSource, seed: int) -> TaskSource:
    """The same family with another stream of tasks.

    Raises:
        ConfigError: the family has no setting ``seed``.

    >>> from assay_tasks import SortDigits
    >>> with_seed(family("sort"), 3) == SortDigits(seed=3)
    True
    """
    if isinstance(source, TaskMixture):
        return replace(source, sources=tuple(with_seed(s, seed) for s in source.sources))
    return _with(source, seed=seed)


def with_form(source: TaskSource, form: str) -> TaskSource:
    """The same family with answers asked for in another `Form`.

    Raises:
        ConfigError: the family's answers have one form only.
        UnknownNameError: no such form; says the nearest.
    """
    if isinstance(source, TaskMixture):
        return replace(source, sources=tuple(with_form(s, form) for s in source.sources))
    return _with(source, form=form)


def _with(source: TaskSource, **settings: Any) -> TaskSource:
    (name,) = settings
    if is_dataclass(source) and name in (f.name for f in fields(source)):
        return replace(cast("Any", source), **settings)
    raise ConfigError(f"task family {source.name!r} ({type(source).__name__}) has no setting {name!r}; leave it out")


def _home(source: TaskSource, arm: str) -> TaskSource:
    """The family that an arm belongs to, out of a mixture."""
    return _home(source.source(arm), arm) if isinstance(source, TaskMixture) else source


def _summary_of(source: TaskSource, arm: str) -> str:
    return _first_line(source.problem(arm) if isinstance(source, Problems) else source)


def _domain(source: TaskSource, arm: str) -> str:
    if isinstance(source, Problems):
        return source.problem(arm).domain
    return source.task(arm, source.arms()[arm][0], "train", 0).domain


def _first_line(made: object) -> str:
    if isinstance(made, TaskMixture) and made.name in suites():
        return suite_summary(made.name)
    if isinstance(made, Rows):
        return f"{len(made.rows):,} rows"
    return (made.summary if isinstance(made, Problems) else made.__doc__ or "").strip().split("\n")[0]
