"""Proofs in the Metamath language, checked here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, cast

from assay.core.errors import ConfigError, DataError
from assay.verify.proof.checker import ProofCheck
from assay.verify.proof.database import COMMENT, Assertion, Expression, MetamathDatabase, pairs
from assay.verify.proof.steps import Gap, Misstep, TooMuch, check_steps

__all__ = ["Metamath"]

_FORM = re.compile(r"(?:(\S+)\s+\$p\s([^$]*))?(?:\$=\s)?([^$]*)(?:\$\.)?", re.DOTALL)
_KEYWORD = re.compile(r"(?<!\S)\$\S*")
_FIELDS = {"database", "label", "statement", "hypotheses", "distinct"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Metamath:
    r"""Checks proofs in the Metamath language: labels on a stack, and nothing but substitution (docs/packages/proof.md).

    The gold is a table: ``label`` and ``statement`` of what is to be proved, ``hypotheses`` (label to statement) and ``distinct``
    (lists of variables), all that they may build on in ``database``. Where a database has the theorem (``$p``) itself, its
    ``label`` is enough: then what stands before it is what a proof may use.

    The answer is a proof, normal or compressed, as it stands between ``$=`` and ``$.``; it may stand in its statement, ``label $p
    ... $= ... $.``, and then label and statement must be those that were asked, symbol by symbol. Any other keyword is illegal:
    ``$a`` would assume, ``$c``, ``$v``, ``$f``, ``$e`` and ``$d`` would declare, ``$[`` would include, ``${`` would hide. A
    comment must be whole.

    Attributes:
        database: a file with a database, for tasks that bring none.
        symbols: how many symbols a proof may make the checker write; more is ``limit``.
        length: characters of an answer; more is ``limit``.

    Raises:
        ConfigError: a bound below 1, or a file that is not there.

    >>> asked = {"database": "$c wff |- $. $v p $. wp $f wff p $. ax $a |- p $.", "label": "new", "statement": "|- p"}
    >>> Metamath().check(asked, "wp ax").verdict, Metamath().check(asked, "new $p wff p $= wp $.").verdict
    ('proved', 'altered')
    """

    fences: ClassVar[Sequence[str]] = ("metamath", "mm")
    database: str = ""
    symbols: int = 5_000_000
    length: int = 1_000_000

    def __post_init__(self) -> None:
        if self.symbols < 1 or self.length < 1:
            raise ConfigError(f"Metamath: symbols={self.symbols} and length={self.length} must be at least 1")
        if self.database and not Path(self.database).is_file():
            raise ConfigError(f"Metamath.database={self.database!r} is no file")

    def prepare(self) -> None:
        """Reads the database of tasks that bring none."""
        if self.database:
            self._read({})

    def check(self, asked: Mapping[str, Any], proof: str) -> ProofCheck:
        """Judges a proof.

        Raises:
            DataError: ``asked`` has no database or no statement, or they cannot be read.
        """
        database, target = self._statement_of(asked)
        if len(proof) > self.length:
            return ProofCheck("limit", {"why": f"{len(proof)} characters, and {self.length} are allowed"})
        bare = COMMENT.sub(" ", proof).strip()
        form = _FORM.fullmatch(bare)
        if form is None:
            word = next(iter(_KEYWORD.findall(bare)), "$")
            return ProofCheck("illegal", {"why": f"{word[:20]} has no place in a proof"})
        label, statement, body = form.groups()
        if label is not None and (label != target.label or tuple(statement.split()) != target.expression):
            return ProofCheck("altered", {"why": f"asked was {target.label} $p {' '.join(target.expression)[:100]}"})
        words = body.split()
        if not words:
            return ProofCheck("unparsed")
        try:
            return ProofCheck("proved", {"steps": check_steps(words, target, database, self.symbols)})
        except Gap:
            return ProofCheck("incomplete", {"why": "a step is ?"})
        except Misstep as error:
            return ProofCheck("wrong", {"why": str(error)[:200]})
        except TooMuch:
            return ProofCheck("limit", {"why": f"the steps write more than {self.symbols} symbols"})

    def _read(self, asked: Mapping[str, Any]) -> MetamathDatabase:
        text = asked.get("database")
        if isinstance(text, str) and text:
            return _database(text)
        if text is not None or not self.database:
            raise DataError(
                f"'database' is {text!r:.60}; give the text of a database, or the checker a file, Metamath(database=PATH)"
            )
        changed = Path(self.database).stat()
        return _file(self.database, changed.st_mtime_ns, changed.st_size)

    def _statement_of(self, asked: Mapping[str, Any]) -> tuple[MetamathDatabase, Assertion]:
        unknown = set(asked) - _FIELDS
        label = asked.get("label")
        if unknown or not isinstance(label, str):
            raise DataError(f"the gold has {sorted(asked)}; give 'label', and of {sorted(_FIELDS)} what else is needed")
        database = self._read(asked)
        known = database.assertions.get(label)
        if "statement" not in asked:
            if known is None or known.proof is None or set(asked) - {"database", "label"}:
                raise DataError(f"the database has no theorem {label!r}, and the gold no 'statement' for it")
            return database, known
        hypotheses: Any = asked.get("hypotheses") or {}
        distinct: Any = asked.get("distinct") or []
        if not isinstance(hypotheses, dict) or not isinstance(distinct, list):
            raise DataError("'hypotheses' must be a table of label and statement, 'distinct' a list of lists of variables")
        apart: frozenset[tuple[str, str]] = frozenset()
        for group in cast("list[Any]", distinct):
            names = tuple(group.split() if isinstance(group, str) else cast("list[str]", group))
            if not set(names) <= set(database.variables):
                raise DataError(f"'distinct' has {names}, which are not all variables of the database")
            apart |= pairs(names)
        said = {name: _expression(name, text) for name, text in cast("dict[str, Any]", hypotheses).items()}
        return database, database.goal(label, _expression(label, asked["statement"]), said, apart)


def _expression(name: str, text: Any) -> Expression:
    if not isinstance(text, str):
        raise DataError(f"the statement of {name!r} is {text!r:.60}; give symbols with spaces between them")
    return tuple(text.split())


@lru_cache(maxsize=16)
def _database(text: str) -> MetamathDatabase:
    return MetamathDatabase.read(text)


@lru_cache(maxsize=2)
def _file(path: str, changed: int, size: int) -> MetamathDatabase:
    return MetamathDatabase.read(Path(path).read_text("ascii", "replace"))
