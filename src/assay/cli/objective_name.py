"""What to call the objective of a run: the named method that it equals, else its parts in short."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any, cast

from assay.core.errors import AssayError, ConfigError

if TYPE_CHECKING:
    from assay.objective.objective import Objective

__all__ = ["objective_name", "objective_table"]

_BESIDE = {"Kl": "kl", "KlInReward": "kl in the reward", "Entropy": "entropy"}
"""Terms that are told beside a method's name."""

_MOST = 60  # characters of a composition


def objective_table(settings: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The objective in the tables of a run: that of the last stage of reinforcement learning, else of the last that has one."""
    stages: Any = settings.get("stages")
    every = cast("list[Any]", stages) if isinstance(stages, list) else []
    tables = [cast("Mapping[str, Any]", s) for s in every if isinstance(s, Mapping)]
    having = [t for t in tables if isinstance(t.get("objective"), Mapping)]
    learning = [t for t in having if str(t.get("kind", "")).endswith(":Reinforce")]
    return (learning or having)[-1]["objective"] if having else None


def objective_name(table: Mapping[str, Any]) -> str:
    """The method that an objective equals under its default settings; of several with one composition all, with slashes.

    Else the method and what differs, where that is the divergence left out or the aggregation; else the composition, cut.

    >>> from assay.core.config import to_dict
    >>> from assay.objective import Token
    >>> from assay.objective.methods import grpo, gspo
    >>> objective_name(to_dict(gspo())), objective_name(to_dict(replace(grpo(kl=0.0), aggregate=Token())))
    ('gspo', 'grpo(kl=0.0) >> Token()')
    """
    from assay.core.config import from_dict
    from assay.objective.methods.registry import composition, describe_part
    from assay.objective.objective import Objective

    try:
        found = cast("Objective", from_dict(Objective, table))
    except AssayError:  # parts of a file that is not here
        return _cut(" ".join(_kinds(table)) or "not readable here")
    known = _known_methods()
    if same := dict.fromkeys(name for name, objective in known if objective == found):
        return "/".join(same)
    for name, objective in known:
        if replace(objective, aggregate=found.aggregate) == found:
            return f"{name} >> {describe_part(found.aggregate)}"
    return _with_terms(found) or _cut(composition(found))


def _with_terms(found: Objective) -> str:
    """The method, and what stands beside it in words: ``grpo + kl 0.001 + entropy 0.001, clip 0.2 0.28``; empty where that is not
    all that differs.
    """
    more = [(field, term) for field in ("credit", "terms") for term in getattr(found, field) if type(term).__name__ in _BESIDE]
    bare = replace(
        found, **{field: tuple(t for t in getattr(found, field) if (field, t) not in more) for field in ("credit", "terms")}
    )
    said = "".join(f" + {_BESIDE[type(term).__name__]} {getattr(term, 'coef', 0):g}" for _, term in more)
    trust: Any = getattr(bare.policy, "trust", None)
    for name, objective in _known_methods():
        plain: Any = getattr(objective.policy, "trust", None)
        clip = ""
        other = bare
        if type(trust) is type(plain) and hasattr(trust, "low") and hasattr(trust, "high") and bare.policy is not None:
            other = replace(bare, policy=replace(bare.policy, **{"trust": replace(trust, low=plain.low, high=plain.high)}))
            clip = f", clip {trust.low:g} {trust.high:g}" if other != bare else ""
        if (more or clip) and replace(objective, aggregate=found.aggregate) == other:
            beside = "" if objective == other else f" >> {type(found.aggregate).__name__}()"
            return f"{name.removesuffix('(kl=0.0)')}{said}{clip}{beside}"
    return ""


@cache
def _known_methods() -> Sequence[tuple[str, Objective]]:
    """Methods under their default settings, then without their divergence; GRPO first, of which others are variants."""
    from assay.objective.methods import methods

    every = sorted(methods().values(), key=lambda m: (m.name != "grpo", m.name))
    out: list[tuple[str, Objective]] = []
    without: list[tuple[str, Objective]] = []
    for method in every:
        out.append((method.name, method.objective()))
        if method.example and all(p.default is not p.empty for p in signature(method.make).parameters.values()):
            out.append((method.name, method.make()))  # as Python calls it, without what the command line puts there
        if method.settings.get("kl"):
            with suppress(ConfigError):  # one that is nothing but its divergence
                without.append((f"{method.name}(kl=0.0)", method.objective(kl=0.0)))
    return out + without


def _kinds(table: Any) -> Iterator[str]:
    """Names of the classes in a table, in order."""
    if isinstance(table, Mapping):
        for name, value in cast("Mapping[str, Any]", table).items():
            if name == "kind":
                yield str(value).rpartition(":")[2]
            else:
                yield from _kinds(value)
    elif isinstance(table, list):
        for value in cast("list[Any]", table):
            yield from _kinds(value)


def _cut(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[: _MOST - 3]}..."
