"""The text of a query: where it stands in an answer, its tokens, and that it is one statement that only reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

__all__ = ["Refusal", "Statement", "StatementVerdict", "extract", "read"]

_TOKEN = re.compile(
    r"""
    (?P<blank>\s+|--[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z))
  | (?P<text>'(?:[^']|'')*+(?:'|\Z))
  | (?P<quoted>"(?:[^"]|"")*+(?:"|\Z)|`(?:[^`]|``)*+(?:`|\Z)|\[[^\]]*+(?:\]|\Z))
  | (?P<word>[^\W\d][\w$]*+)
  | (?P<number>\d\w*+(?:\.\w*+)?|\.\d\w*+)
  | (?P<mark>\|\||<<|>>|<=|>=|<>|!=|==|->>|->|.)
    """,
    re.VERBOSE | re.DOTALL,
)
"""Possessive throughout, so that time grows with the length of the text and not faster."""

_READS = frozenset({"select", "with", "values"})
_CHANGES = (
    "alter analyze attach begin commit create delete detach drop end explain insert pragma reindex release replace rollback "
    "savepoint update vacuum"
)
_VERBS = frozenset(_CHANGES.split())
_UNFOLDED, _DEEP = 500, 16
"""Selects that a query may be written out as, and how deep they may stand in one another: SQLite's time doubles with each."""


class StatementVerdict(StrEnum):
    """The verdict on a query, in a word.

    ``equal`` and ``different`` compare results. ``syntax``: SQLite refuses the query or fails to run it. ``forbidden``: it is
    more than one statement, or does something other than read. ``limit``: it exceeds a limit. ``unparsed``: the rollout holds
    no query.
    """

    EQUAL = "equal"
    DIFFERENT = "different"
    SYNTAX = "syntax"
    FORBIDDEN = "forbidden"
    LIMIT = "limit"
    UNPARSED = "unparsed"


class Refusal(Exception):
    """A query that has no result: the verdict on it and the reason, in words."""

    def __init__(self, verdict: StatementVerdict, reason: str) -> None:
        super().__init__(f"{verdict}: {reason}")
        self.verdict = verdict
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Statement:
    """One reading statement.

    Attributes:
        text: as it goes to SQLite, without the closing semicolon.
        tokens: without white space and comments; words and quoted names in lower case and without quotes.
        terms: where in ``text`` the terms of its own ``ORDER BY`` end, the one outside all brackets; None without one.
    """

    text: str
    tokens: tuple[str, ...]
    terms: int | None

    @property
    def ordered(self) -> bool:
        """Whether the order of its rows is part of its meaning."""
        return self.terms is not None

    def breaking_ties(self, width: int, direction: str) -> str:
        """Its text with rows that its order leaves tied in the order of their columns.

        Args:
            width: how many columns it gives; the first 64 count.
            direction: ``ASC`` or ``DESC``.

        >>> read("SELECT a, b FROM t ORDER BY a LIMIT 1", 100).breaking_ties(2, "DESC")
        'SELECT a, b FROM t ORDER BY a, 1 DESC, 2 DESC LIMIT 1'
        """
        more = "".join(f", {column} {direction}" for column in range(1, min(width, 64) + 1))
        return self.text[: self.terms] + more + self.text[self.terms :] if self.ordered else self.text

    def grams(self, n: int) -> frozenset[tuple[str, ...]]:
        """Its runs of ``n`` tokens; all of it where it has fewer.

        >>> sorted(read("SELECT a;", 100).grams(1))
        [('a',), ('select',)]
        """
        return frozenset(self.tokens[i : i + n] for i in range(max(1, len(self.tokens) - n + 1)))


def extract(text: str) -> tuple[str, bool]:
    r"""The query that an answer gives, and whether the answer marks it as such exactly once.

    What stands after the last ``</think>`` counts. There, the last closed ``sql`` fence holds the query; without one the last
    ``<answer>``, else the last closed fence without a language, else all of it. Time grows with the length of the text.

    >>> extract("Try this:\n```sql\nSELECT 1\n```"), extract("<answer> SELECT 2 </answer>"), extract("SELECT 3")
    (('SELECT 1', True), ('SELECT 2', True), ('SELECT 3', False))
    """
    said = text.rpartition("</think>")[2]
    plain: list[str] = []
    marked: list[str] = []
    for fence in said.split("```")[1:-1:2]:
        language, newline, rest = fence.partition("\n")
        language = language.strip().lower()
        if newline and language in ("sql", "sqlite"):
            marked.append(rest.strip())
        elif newline and not language:
            plain.append(rest.strip())
    if marked:
        return marked[-1], len(marked) == 1
    before, closed, _ = said.rpartition("</answer>")
    head, opened, inside = before.rpartition("<answer>")
    if closed and opened:
        once = "<answer>" not in head and said.count("</answer>") == 1
        return (plain[-1] if plain and plain[-1] in inside else inside.strip()), once
    if plain:
        return plain[-1], len(plain) == 1
    return said.strip(), False


def read(text: str, longest: int) -> Statement:
    """A query as one statement that reads.

    Args:
        text: the query.
        longest: characters that it may have.

    Raises:
        Refusal: ``unparsed`` if nothing looks like a statement, ``limit`` if it is too long, ``forbidden`` if it is several
            statements or begins like one that does not read.

    >>> read("SELECT a FROM t ORDER BY a; -- done", 100)
    Statement(text='SELECT a FROM t ORDER BY a', tokens=('select', 'a', 'from', 't', 'order', 'by', 'a'), terms=26)
    """
    if len(text) > longest:
        raise Refusal(StatementVerdict.LIMIT, f"a query of {len(text)} characters; at most {longest} are read")
    tokens: list[_Token] = []
    closed = False
    for token in _scan(text):
        if token.mark == ";":
            closed = bool(tokens)
            continue
        if closed:
            raise Refusal(StatementVerdict.FORBIDDEN, "more than one statement; an answer is one query")
        tokens.append(token)
    first = tokens[0].word if tokens else ""
    if first in _VERBS:
        raise Refusal(StatementVerdict.FORBIDDEN, f"begins with {first.upper()}; a query only reads")
    if first not in _READS:
        raise Refusal(StatementVerdict.UNPARSED, "no query: it begins with none of SELECT, WITH, VALUES")
    _refuse_unfolding(tokens)
    return Statement(text[: tokens[-1].end], tuple(token.value for token in tokens), _terms(tokens))


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    value: str
    end: int

    @property
    def word(self) -> str:
        """The word that it is, unquoted; else nothing."""
        return self.value if self.kind == "word" else ""

    @property
    def mark(self) -> str:
        """The sign that it is, unquoted; else nothing."""
        return self.value if self.kind == "mark" else ""


def _scan(text: str) -> Iterator[_Token]:
    """The tokens that are not blank."""
    for found in _TOKEN.finditer(text):
        kind, value = str(found.lastgroup), found.group()
        if kind == "quoted":
            yield _Token(kind, value[1:-1].lower(), found.end())
        elif kind != "blank":
            yield _Token(kind, value if kind == "text" else value.lower(), found.end())


def _refuse_unfolding(tokens: list[_Token]) -> None:
    """SQLite writes each table expression out wherever it is named, before any limit on steps counts.

    Raises:
        Refusal: ``limit`` where table expressions hold one another too often or too deep.
    """
    known: dict[str, tuple[int, int]] = {}  # name to how many selects it is written out as, and how deep they stand
    opened: list[tuple[str, int, int, int]] = []  # of each open bracket: the table expression in it, and what held before it
    name, selects, depth, level = "", 0, 0, 0
    for before, this, following in zip([tokens[0], *tokens], tokens, [*tokens[1:], tokens[-1]], strict=False):
        if this.mark == "(":
            own = name if before.word in ("as", "materialized") else ""
            opened.append((own, selects, depth, level))
            if own:
                name, selects, depth, level = "", 0, 0, 0
            level += following.word in _READS
        elif this.mark == ")" and opened:
            own, outer, deep, level = opened.pop()
            if own:
                known[own] = (selects, depth)
                selects, depth = outer, deep
        elif this.word == "select":
            selects, depth = selects + 1, max(depth, level)
        elif this.value in known:
            selects, depth = selects + known[this.value][0], max(depth, level + known[this.value][1])
        elif (following.word == "as" or following.mark == "(") and this.word not in ("as", "materialized"):
            name = this.value
        if selects > _UNFOLDED or depth > _DEEP:
            raise Refusal(
                StatementVerdict.LIMIT, f"table expressions in one another: more than {_UNFOLDED} selects, or {_DEEP} deep"
            )


def _terms(tokens: list[_Token]) -> int | None:
    """Where the terms of the outermost ``ORDER BY`` end: before its ``LIMIT``, or at the end."""
    depth = 0
    ordered = False
    for this, following in pairwise(tokens):
        depth += (this.mark == "(") - (this.mark == ")")
        if depth == 0 and ordered and following.word == "limit":
            return this.end
        ordered = ordered or (depth == 0 and this.word == "order" and following.word == "by")
    return tokens[-1].end if ordered else None
