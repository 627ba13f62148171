"""Databases in the Metamath language: what is declared, assumed and proved, in its order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import TypeAlias

from assay.core.errors import DataError
from assay.core.import_path import filed_as

__all__ = ["Assertion", "Expression", "Hypothesis", "MetamathDatabase"]

Expression: TypeAlias = tuple[str, ...]
"""Symbols, the first of which is a constant that says the kind."""

COMMENT = re.compile(r"(?<!\S)\$\((?=\s)(?:(?!\$\().)*?\s\$\)(?!\S)", re.DOTALL)
_ITEM = re.compile(
    r"\s*(?:\$([{}])(?=\s|\Z)|(?:([A-Za-z0-9._-]+)\s+)?\$([cvdfeap])\s([^$]*)(?:\$=\s([^$]*))?(?<=\s)\$\.(?=\s|\Z))"
)


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A variable's kind (``$f``) or an assumption (``$e``).

    Attributes:
        label: its name.
        expression: what it says.
        floating: whether it is a variable's kind.
    """

    label: str
    expression: Expression
    floating: bool


@dataclass(frozen=True, slots=True)
class Assertion:
    """An axiom or theorem, and all that a proof of it may refer to beside earlier ones.

    Attributes:
        label: its name.
        order: its place in the database.
        expression: what it says.
        needs: the hypotheses that it has, in their order.
        apart: pairs of its variables that may not be given a variable in common.
        scope: all hypotheses in force where it stands.
        kept: all pairs of variables that are distinct where it stands.
        proof: as written; None for an axiom.
    """

    label: str
    order: int
    expression: Expression
    needs: tuple[Hypothesis, ...]
    apart: tuple[tuple[str, str], ...]
    scope: tuple[Hypothesis, ...]
    kept: frozenset[tuple[str, str]]
    proof: str | None = None


@dataclass(slots=True)
class _Block:
    """What a ``${`` began with."""

    variables: int
    hypotheses: int
    apart: frozenset[tuple[str, str]]


@filed_as("assay.verify.proof.database:Database")
@dataclass(slots=True)
class MetamathDatabase:
    """A Metamath database, read once. It is the task's, so it is believed: proofs in it are not checked.

    Attributes:
        assertions: by label.
        constants: all symbols that are constants.
        variables: those that are variables at its end.

    >>> found = MetamathDatabase.read("$c wff |- $. $v p $. wp $f wff p $. ax $a |- p $.")
    >>> found.assertions["ax"].expression, [h.label for h in found.assertions["ax"].needs]
    (('|-', 'p'), ['wp'])
    """

    assertions: dict[str, Assertion] = field(default_factory=dict[str, Assertion])
    constants: set[str] = field(default_factory=set[str])
    variables: list[str] = field(default_factory=list[str])
    _hypotheses: list[Hypothesis] = field(default_factory=list[Hypothesis])
    _apart: frozenset[tuple[str, str]] = frozenset()
    _labels: set[str] = field(default_factory=set[str])
    _blocks: list[_Block] = field(default_factory=list[_Block])
    _scope: tuple[Hypothesis, ...] | None = None

    @classmethod
    def read(cls, text: str) -> MetamathDatabase:
        """Reads a database.

        Raises:
            DataError: it is none: a word out of place, an undeclared symbol, a label that is taken. Files are not included.
        """
        made = cls()
        for item in _items(text):
            made._take(*item)
        if made._blocks:
            raise DataError("the database ends inside of ${; a $} is missing")
        return made

    def goal(
        self, label: str, expression: Expression, hypotheses: dict[str, Expression], apart: frozenset[tuple[str, str]]
    ) -> Assertion:
        """A statement to prove behind the end of this database.

        Raises:
            DataError: a label that is taken or is none, or an undeclared symbol.
        """
        for name, said in ((label, expression), *hypotheses.items()):
            if not re.fullmatch(r"[A-Za-z0-9._-]+", name) or name in self._labels or (name == label and name in hypotheses):
                raise DataError(f"the label {name!r} is taken or is none; give letters, digits, '.', '-' and '_'")
            self._check_known(said, name)
        scope = (*self._hypotheses, *(Hypothesis(name, said, False) for name, said in hypotheses.items()))
        return _assertion(label, len(self.assertions), expression, scope, self._apart | apart, set(self.variables), None)

    def _take(self, brace: str, label: str, kind: str, body: str, proof: str | None) -> None:
        symbols = tuple(body.split())
        if brace == "{":
            self._blocks.append(_Block(len(self.variables), len(self._hypotheses), self._apart))
        elif brace:
            self._close()
        elif kind == "c":
            self._declare(symbols, kind)
            self.constants |= set(symbols)
        elif kind == "v":
            self._declare(symbols, kind)
            self.variables += symbols
        elif kind == "d":
            if not set(symbols) <= set(self.variables):
                raise DataError(f"$d {body.strip()} $. has symbols that are no variables")
            self._apart |= pairs(symbols)
        else:
            self._state(label, kind, symbols, proof)

    def _close(self) -> None:
        if not self._blocks:
            raise DataError("the database has a $} without a ${")
        block = self._blocks.pop()
        del self.variables[block.variables :], self._hypotheses[block.hypotheses :]
        self._apart, self._scope = block.apart, None

    def _declare(self, symbols: Expression, kind: str) -> None:
        taken = [s for s in symbols if s in self.constants or s in self.variables]
        if taken or (kind == "c" and self._blocks):
            raise DataError(f"${kind} {' '.join(symbols)} $. declares symbols again, or constants inside of ${{: {taken[:3]}")

    def _state(self, label: str, kind: str, symbols: Expression, proof: str | None) -> None:
        if not label or label in self._labels:
            raise DataError(f"the statement ${kind} {' '.join(symbols)[:60]} $. has no label, or one that is taken: {label!r}")
        self._labels.add(label)
        if kind == "f":
            if len(symbols) != 2 or symbols[0] not in self.constants or symbols[1] not in self.variables:
                raise DataError(f"{label} $f must be a constant and a variable")
        else:
            self._check_known(symbols, label)
        if kind in "fe":
            self._hypotheses.append(Hypothesis(label, symbols, kind == "f"))
            self._scope = None
            return
        if (kind == "p") != (proof is not None):
            raise DataError(f"{label}: a $p has a proof behind $=, and no other statement has")
        if self._scope is None:
            self._scope = tuple(self._hypotheses)
        made = _assertion(label, len(self.assertions), symbols, self._scope, self._apart, set(self.variables), proof)
        self.assertions[label] = made

    def _check_known(self, expression: Expression, label: str) -> None:
        """Refuses an expression of undeclared symbols."""
        typed = {h.expression[1] for h in self._hypotheses if h.floating}
        unknown = [s for s in expression[1:] if s not in self.constants and s not in typed]
        if not expression or expression[0] not in self.constants or unknown:
            raise DataError(
                f"{label}: {' '.join(expression)[:100]!r} begins with no constant, or has undeclared symbols {unknown[:3]}"
            )


def pairs(variables: Expression) -> frozenset[tuple[str, str]]:
    """All pairs of some variables, each in order.

    >>> sorted(pairs(("b", "a", "c")))
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    return frozenset((min(a, b), max(a, b)) for a, b in combinations(variables, 2) if a != b)


def _assertion(
    label: str,
    order: int,
    expression: Expression,
    scope: tuple[Hypothesis, ...],
    kept: frozenset[tuple[str, str]],
    variables: set[str],
    proof: str | None,
) -> Assertion:
    used = {s for said in (expression, *(h.expression for h in scope if not h.floating)) for s in said if s in variables}
    needs = tuple(h for h in scope if not h.floating or h.expression[1] in used)
    apart = tuple(sorted(pair for pair in kept if pair[0] in used and pair[1] in used))
    return Assertion(label, order, expression, needs, apart, scope, kept, proof)


def _items(text: str) -> Iterator[tuple[str, str, str, str, str | None]]:
    """The statements of a database without its comments: brace, label, kind, body, proof."""
    text = COMMENT.sub(" ", text)
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _ITEM.match(text, at)
        if found is None:
            raise DataError(f"the database cannot be read at {' '.join(text[at : at + 100].split())[:60]!r}")
        yield found[1] or "", found[2] or "", found[3] or "", found[4] or "", found[5]
        at = found.end()
