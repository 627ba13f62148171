"""What other libraries call it: each of their losses, estimators and corrections as a composition here, or why there is none.

The tables stand in `assay.objective.peer_tables`, one file per library, read when first asked for.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any

from assay.core.errors import ConfigError, UnknownNameError
from assay.objective.credit.base import CreditTerm
from assay.objective.credit.components import ComponentNorm
from assay.objective.credit.reward import Scalarise
from assay.objective.loss.aggregate import Aggregation, SeqSum, Token
from assay.objective.loss.base import LossTerm
from assay.objective.loss.likelihood import Nll
from assay.objective.loss.policy import PolicyGradient
from assay.objective.loss.ratio import Ratio
from assay.objective.loss.weights import TokenWeight
from assay.objective.methods import methods
from assay.objective.objective import Objective
from assay.objective.plan import forward_of

__all__ = ["KINDS", "PEERS", "Part", "PeerMatch", "match", "matches"]

PEERS: Mapping[str, str] = {
    "verl": "verl 0.9.1",
    "trl": "TRL 1.16.0",
    "skyrl": "SkyRL 0.3.0",
    "areal": "AReaL 1.0.4",
    "openrlhf": "OpenRLHF 0.11.2",
    "slime": "slime, August 2026",
    "prime_rl": "prime-rl, August 2026",
    "nemo_rl": "NeMo-RL, August 2026",
    "roll": "ROLL, August 2026",
    "rllm": "rLLM, August 2026",
    "art": "ART 0.5.18",
}
"""Library to the version whose names and formulas were read."""

KINDS = ("loss", "advantage", "correction", "kl", "aggregation", "value")
"""What a name can stand for."""

Part = Objective | CreditTerm | LossTerm | TokenWeight | Aggregation | tuple[CreditTerm, ...] | tuple[TokenWeight, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerMatch:
    """One name of a library.

    Attributes:
        peer: the library, as in `PEERS`.
        kind: what the name stands for, one of `KINDS`.
        name: as the library spells it; behind a slash a variant.
        code: what it is here, an expression in the names that `assay.objective` offers, with ``replace`` and ``inf``: a method or
            an `Objective` for a loss, terms for an estimator, and so on. Empty where there is none.
        note: how the library's differs.
        reason: why there is none.
    """

    peer: str
    kind: str
    name: str
    code: str = ""
    note: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        if self.peer not in PEERS:
            raise UnknownNameError("library", self.peer, PEERS)
        if self.kind not in KINDS:
            raise UnknownNameError("kind of name", self.kind, KINDS)
        if bool(self.code) == bool(self.reason):
            raise ConfigError(f"{self.peer}:{self.name}: say what it is here, or why there is none, and not both")

    @property
    def part(self) -> Part:
        """The composition or the terms.

        Raises:
            ConfigError: there is none.
            UnknownNameError: the code names a part that does not exist.

        >>> from assay.objective.peers import match
        >>> match("trl", "dr_grpo").part.aggregate
        Constant(denominator='kept', length=256)
        """
        if not self.code:
            raise ConfigError(f"{self.peer}:{self.name} has no composition here: {self.reason}")
        try:
            return eval(compile(self.code, f"{self.peer}:{self.name}", "eval"), {"__builtins__": {}}, _Names())
        except NameError as error:
            raise UnknownNameError(f"part in the code of {self.peer}:{self.name}", error.name, [*methods(), *_homes()]) from None

    def objective(self) -> Objective:
        """The composition, or the smallest one around the terms: what `evaluate` takes.

        Raises:
            ConfigError: there is none.
            UnknownNameError: the code names a part that does not exist.
        """
        part = self.part
        if isinstance(part, Objective):
            return part
        parts = part if isinstance(part, tuple) else (part,)
        brings = tuple(dict.fromkeys(n for t in parts for n in getattr(t, "needs", ()) if forward_of(n) is None))
        if isinstance(part, LossTerm):
            return Objective(terms=(part,), aggregate=Token(), brings=brings)
        if isinstance(part, Aggregation):
            return Objective(terms=(Nll(),), aggregate=part)
        chain = tuple(t for t in parts if isinstance(t, CreditTerm))
        weights = tuple(t for t in parts if isinstance(t, TokenWeight))
        plain = PolicyGradient(ratio=Ratio("none"), trust=None, weights=weights)
        scalarise = Scalarise(every=any(isinstance(t, ComponentNorm) for t in chain))
        return Objective(scalarise=scalarise, credit=chain, policy=plain, aggregate=SeqSum(), brings=brings)


def matches(peer: str = "") -> Iterator[PeerMatch]:
    """Every name of a library, or of all of them.

    Raises:
        UnknownNameError: no such library.

    >>> from assay.objective.peers import matches
    >>> [m.name for m in matches("skyrl")][:2]
    ['regular', 'dual_clip']
    """
    if peer and peer not in PEERS:
        raise UnknownNameError("library", peer, PEERS)
    for name in (peer,) if peer else PEERS:
        yield from import_module(f"assay.objective.peer_tables.{name}").TABLE


def match(peer: str, name: str, kind: str = "") -> PeerMatch:
    """One name of a library; of several kinds the loss, unless ``kind`` says otherwise.

    Raises:
        UnknownNameError: no such library or name.
    """
    found = {(m.name, m.kind): m for m in matches(peer)}
    for want in (kind,) if kind else KINDS:
        if (name, want) in found:
            return found[name, want]
    raise UnknownNameError(f"name of {PEERS[peer]}", name, [n for n, k in found if not kind or k == kind])


class _Names(dict[str, Any]):
    """The names that a code may use, looked up when they are used."""

    def __missing__(self, name: str) -> Any:
        if name in ("replace", "inf"):
            return {"replace": replace, "inf": float("inf")}[name]
        if name in _homes():
            return getattr(import_module(_homes()[name]), name)
        return methods()[name].make


@cache
def _homes() -> Mapping[str, str]:
    """Public name of a part to the module that defines it."""
    import assay.objective as package

    out: dict[str, str] = {}
    for found in pkgutil.walk_packages(package.__path__, "assay.objective."):
        if not found.name.startswith(("assay.objective.peer_tables", "assay.objective.methods")):
            module = import_module(found.name)
            for name in getattr(module, "__all__", ()):
                if getattr(getattr(module, name), "__module__", "") == found.name:
                    out.setdefault(name, found.name)
    return out
