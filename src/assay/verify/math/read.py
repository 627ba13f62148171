"""Reads a whole answer: what kind of thing it is, and its parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from assay.verify.math.formula import CLOSERS, OPENERS, formula
from assay.verify.math.intervals import crossed
from assay.verify.math.poly import Undecidable
from assay.verify.math.ratio import Ratio, number, symbol
from assay.verify.math.tokens import clean, tokens
from assay.verify.math.units import number_word, unit_of
from assay.verify.math.values import (
    Based,
    Bound,
    Choice,
    Clock,
    Formula,
    Intervals,
    Many,
    Matrix,
    Opaque,
    Piece,
    Relation,
    Text,
    Value,
)  # fmt: skip

__all__ = ["read"]

_RELATIONS = frozenset(["=", "<", ">", "\\le", "\\ge", "\\ne", "\\in", "\\approx", "\\equiv"])
_SEPARATORS = frozenset([",", ";", "\\or", "\\and"])
_LETTER = re.compile(r"(?:\\text\s*\{\s*)?\(?\s*([A-Za-z])\s*\)?(?:\s*\})?\.?")
_LABELLED = re.compile(r"(?:\\text\s*\{\s*)?\(\s*([A-Z])\s*\)(?:\s*\})?[\s:.]+\S.*", re.DOTALL)
_HEDGED = re.compile(r"\(\s*[A-Z]\s*\)|\b(?:or|and|not|nor|[A-Z])\b")
_CLOCK = re.compile(r"(\d{1,2})\s*:\s*(\d\d)")
_BASED = re.compile(r"([0-9A-Fa-f]+)_\{?(\d{1,2})\}?")
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{(.*)\}", re.DOTALL)
_WORDS = re.compile(r"[A-Za-z][A-Za-z' -]*")
_DEEPEST = 12


@lru_cache(maxsize=4096)
def read(text: str) -> Value:
    """What an answer is; total: what cannot be read is `Opaque`. ``text`` is the answer alone, without the words around it.

    >>> type(read("(1, 2]")).__name__, type(read("5 cm")).__name__, type(read("seven")).__name__
    ('Intervals', 'Formula', 'Formula')
    """
    if len(text) > 20_000:
        return Opaque(text, "an answer that is too long")
    cleaned = clean(text)
    for _ in range(3):
        boxed = _BOX.fullmatch(cleaned)
        if boxed is None:
            break
        cleaned = clean(boxed.group(1))
    plain = _plain(cleaned)
    if plain is not None:
        return plain
    try:
        return _value(_strip(tokens(cleaned)), 0)
    except (Undecidable, RecursionError) as error:  # recursion: the caller's own stack may be nearly full
        return Opaque(cleaned, str(error))


def _plain(text: str) -> Value | None:
    """Forms that are told by how they look."""
    number_named = number_word(text) if text[:1].isalpha() else None
    if number_named is not None:
        return Formula(number(number_named), str(number_named))
    letter = _LETTER.fullmatch(text)
    if letter is not None and letter.group(1) in ("abcdefghijABCDEFGHIJ" if text[-1] in ")}" else "ABCDEFGHIJ"):
        return Choice(letter.group(1).upper())
    labelled = _LABELLED.fullmatch(text)
    if labelled is not None and _HEDGED.search(text, labelled.end(1)) is None:
        return Choice(labelled.group(1))
    clock = _CLOCK.fullmatch(text)
    if clock is not None:
        return Clock(int(clock.group(1)), int(clock.group(2)))
    based = _BASED.fullmatch(text)
    if based is not None and based.group(1)[0].isdigit():
        return Based(based.group(1).upper().lstrip("0") or "0", int(based.group(2)))
    return None


def _strip(parts: list[str]) -> list[str]:
    """Currency in front goes behind, as a unit."""
    sign = parts[0] if parts and parts[0] == "-" else ""
    first = parts[1 if sign else 0 :]
    if first and first[0] in ("@dollars", "@euro", "£") and len(first) > 1:
        name = "unit:" + first[0].lstrip("@")
        return [*([sign] if sign else []), *first[1:], name]
    return parts


# ---- structure


def _split(parts: Sequence[str], at: frozenset[str] | tuple[str, ...]) -> list[list[str]]:
    """Cut at separators outside all brackets; see `_cut`."""
    return _cut(parts, at)[0]


def _cut(parts: Sequence[str], at: frozenset[str] | tuple[str, ...]) -> tuple[list[list[str]], list[str]]:
    """The pieces between separators outside all brackets, and those separators.

    Raises:
        Undecidable: brackets do not match.
    """
    pieces: list[list[str]] = [[]]
    signs: list[str] = []
    depth = 0
    for token in parts:
        depth += _step(token)
        if depth < 0:
            raise Undecidable("brackets that do not match")
        if depth == 0 and token in at:
            pieces.append([])
            signs.append(token)
        else:
            pieces[-1].append(token)
    if depth:
        raise Undecidable("brackets that do not match")
    return pieces, signs


def _step(token: str) -> int:
    """How much deeper a token leads into brackets."""
    if token in OPENERS or token.startswith("\\begin"):
        return 1
    return -1 if token in CLOSERS or token.startswith("\\end") else 0


def _value(parts: list[str], depth: int) -> Value:
    if depth > _DEEPEST:
        raise Undecidable("brackets in brackets without end")
    between, signs = _cut(parts, _SEPARATORS)
    listed = [piece for piece in between if piece]
    if not listed:
        raise Undecidable("nothing at all")
    if len(listed) > 1:
        return _together([_value(piece, depth + 1) for piece in listed], set(signs))
    parts = listed[0]
    united = _split(parts, ("\\cup",))
    if len(united) > 1:
        return _union([_value(piece, depth + 1) for piece in united])
    pieces, signs = _cut(parts, _RELATIONS)
    if signs:
        return _relation(signs, pieces, depth)
    return _bracketed(parts, depth) or _special(parts) or _signs(parts, depth) or _ratio(parts) or _formula(parts)


def _together(items: list[Value], signs: set[str]) -> Value:
    """A list; ``x = 1, x = -1`` is the list of the values.

    Of inequalities, ``or`` makes the union and ``and`` what they have in common; so does a comma where they have anything.
    """
    if all(isinstance(item, Intervals) for item in items):
        if "\\or" in signs:
            return _union(items)
        common = crossed([item for item in items if isinstance(item, Intervals)])
        return common if common.pieces or "\\and" in signs else _union(items)
    names = {
        item.left.source for item in items if isinstance(item, Relation) and item.sign == "=" and isinstance(item.left, Formula)
    }
    if len(names) == 1 and all(isinstance(item, Relation) and item.sign == "=" for item in items):
        return Many("list", tuple(_flat([item.right for item in items if isinstance(item, Relation)])))
    if items and isinstance(items[0], Relation) and items[0].sign == "=" and not any(isinstance(i, Relation) for i in items[1:]):
        return Relation("=", items[0].left, Many("list", tuple(_flat([items[0].right, *items[1:]]))))
    return Many("list", tuple(_flat(items)))


def _flat(items: Sequence[Value]) -> list[Value]:
    out: list[Value] = []
    for item in items:
        out.extend(item.items if isinstance(item, Many) and item.kind == "list" else [item])
    return out


def _union(items: Sequence[Value]) -> Value:
    pieces: list[Piece] = []
    variables: set[str | None] = set()
    for item in items:
        found = as_intervals(item)
        if found is None:
            raise Undecidable("a union of other things than intervals")
        pieces.extend(found.pieces)
        variables.add(found.variable)
    return Intervals(tuple(pieces), variables.pop() if len(variables) == 1 else None)


def as_intervals(value: Value) -> Intervals | None:
    """A value as a union of intervals: a pair in round brackets is an open one, a finite set is points."""
    if isinstance(value, Intervals):
        return value
    if isinstance(value, Many) and value.kind == "tuple" and len(value.items) == 2:
        low, high = (_bound(item, closed=False, low=n == 0) for n, item in enumerate(value.items))
        return Intervals((Piece(low, high),)) if low is not None and high is not None and _rising(low, high) else None
    if isinstance(value, Many) and value.kind == "set" and all(isinstance(i, Formula) and i.unit is None for i in value.items):
        points = [Bound(item.ratio, True) for item in value.items if isinstance(item, Formula)]
        return Intervals(tuple(Piece(point, point) for point in points))
    return None


def _bound(value: Value, closed: bool, low: bool) -> Bound | None:
    if not isinstance(value, Formula) or value.unit is not None:
        return None
    if value.ratio.atoms() == {"\\infty"}:
        term = value.ratio.term
        right = term is not None and (term[1] < 0) == low
        return Bound(None, False) if right and not closed else None
    return Bound(value.ratio, closed)


def _rising(low: Bound, high: Bound) -> bool:
    """Whether these can be the ends of an interval: not where the first is known to be the larger one."""
    first, second = low.at and low.at.value, high.at and high.at.value
    return first is None or second is None or first < second or (first == second and low.closed and high.closed)


def _bracketed(parts: list[str], depth: int) -> Value | None:
    """A set, tuple, interval or matrix in brackets around everything."""
    first, last = parts[0], parts[-1]
    if first.startswith("\\begin") and last == first.replace("begin", "end") and len(parts) > 2:
        return _matrix(parts[1:-1], depth)
    if first not in OPENERS or first in ("{", "\\lfloor", "\\lceil") or last not in CLOSERS or len(parts) < 2:
        return None
    level = 0
    for n, token in enumerate(parts):
        level += _step(token)
        if level == 0 and n < len(parts) - 1:
            return None
    inner = parts[1:-1]
    if first == "\\lbrace":
        return _set(inner, depth) if last == "\\rbrace" else None
    pieces = _split(inner, (",", ";"))
    if any(not piece for piece in pieces):
        return None
    if len(pieces) == 1:
        return _value(inner, depth + 1) if first == "(" and last == ")" else None
    return _row(first, last, tuple(_value(piece, depth + 1) for piece in pieces))


def _row(first: str, last: str, items: tuple[Value, ...]) -> Value | None:
    if (first, last) == ("(", ")") or first == "\\langle":
        infinite = any(isinstance(item, Formula) and "\\infty" in item.ratio.atoms() for item in items)
        found = Many("tuple", items)
        return (as_intervals(found) if infinite and first == "(" else None) or found
    if len(items) == 2:
        low, high = _bound(items[0], first == "[", True), _bound(items[1], last == "]", False)
        if low is not None and high is not None and _rising(low, high):
            return Intervals((Piece(low, high),))
    return Many("row", items) if (first, last) == ("[", "]") else None


def _set(inner: list[str], depth: int) -> Value:
    if not inner:
        return Intervals(())
    for bar in ("|", ":"):
        described = _split(inner, (bar,))
        if len(described) == 2 and any(token in _RELATIONS for token in described[1]):
            return _value(described[1], depth + 1)
    value = _value(inner, depth + 1)
    return Many("set", value.items if isinstance(value, Many) and value.kind == "list" else (value,))


def _matrix(inner: list[str], depth: int) -> Value:
    rows: list[tuple[Value, ...]] = []
    for row in _split(inner, ("\\\\",)):
        if row:
            rows.append(tuple(_value(cell, depth + 1) for cell in _split(row, ("&",))))
    if not rows or len({len(row) for row in rows}) > 1:
        raise Undecidable("a matrix of uneven rows")
    return Matrix(tuple(rows))


def _relation(signs: list[str], pieces: list[list[str]], depth: int) -> Value:
    values = [_value(piece, depth + 1) for piece in pieces]
    if signs == ["\\in"]:
        found = as_intervals(values[1])
        return (
            values[1] if found is None else Intervals(found.pieces, values[0].source if isinstance(values[0], Formula) else None)
        )
    if set(signs) <= {"<", ">", "\\le", "\\ge"} or signs == ["\\ne"]:
        found = _inequality(signs, values)
        if found is not None:
            return found
    if set(signs) == {"="}:
        return Relation("=", values[0], values[-1])
    if len(signs) > 1:
        raise Undecidable("several relations in a row")
    return Relation(signs[0], values[0], values[1])


def _inequality(signs: list[str], values: list[Value]) -> Intervals | None:
    r"""``a < x <= b``, ``2x + 1 >= 5``, ``x \ne 3`` as intervals of the one variable."""
    formulas = [value.ratio for value in values if isinstance(value, Formula) and value.unit is None]
    if len(formulas) < len(values) or len(signs) > 2:
        return None
    if len(signs) == 2:
        up = all(sign in ("<", "\\le") for sign in signs)
        if not up and not all(sign in (">", "\\ge") for sign in signs):
            return None
        closed = ["e" in sign for sign in signs]
        low, middle, high = formulas if up else formulas[::-1]
        closed = closed if up else closed[::-1]
        name = _variable(middle)
        if name is None or _names(low) or _names(high):
            return None
        lower, upper = _end(low, closed[0], -1), _end(high, closed[1], 1)
        return Intervals((Piece(lower, upper),), name) if lower and upper else None
    return _solved(signs[0], formulas[0] - formulas[1])


def _end(at: Ratio, closed: bool, side: int) -> Bound | None:
    if at.atoms() == {"\\infty"}:
        term = at.term
        return Bound(None, False) if not closed and term is not None and term[1] * side > 0 else None
    return None if "\\infty" in at.atoms() else Bound(at, closed)


def _names(value: Ratio) -> set[str]:
    return {atom for atom in value.atoms() if atom not in ("pi", "e", "i", "\\infty") and atom[0] not in "#%&"}


def _variable(value: Ratio) -> str | None:
    term = value.term
    return (
        term[0][0][0]
        if term is not None and term[1] == 1 and len(term[0]) == 1 and term[0][0][1] == 1 and _names(value)
        else None
    )


def _solved(sign: str, difference: Ratio) -> Intervals | None:
    """``a x + b sign 0`` with rational ``a``, solved for ``x``."""
    names = _names(difference)
    if len(names) != 1 or len(difference.bottom) != 1 or any(atom[0] in "^?" for atom in names):
        return None
    (name,) = names
    slope = difference.top.get(((name, 1),))
    rest = {mono: value for mono, value in difference.top.items() if mono != ((name, 1),)}
    if slope is None or any(atom == name for mono in rest for atom, _ in mono):
        return None
    at = Ratio(rest, difference.bottom) * number(-1) / number(slope)
    if "\\infty" in at.atoms():
        return None
    if sign == "\\ne":
        return Intervals((Piece(Bound(None, False), Bound(at, False)), Piece(Bound(at, False), Bound(None, False))), name)
    below = (sign in ("<", "\\le")) == (slope > 0)
    bound = Bound(at, sign in ("\\le", "\\ge"))
    return Intervals((Piece(Bound(None, False), bound) if below else Piece(bound, Bound(None, False)),), name)


# ---- single values


def _special(parts: list[str]) -> Value | None:
    if parts == ["\\emptyset"]:
        return Intervals(())
    if parts in (["\\mathbb", "{", "R", "}"], ["\\mathbb", "R"], ["\\R"]):
        return Intervals((Piece(Bound(None, False), Bound(None, False)),))
    if any(token[0] == "@" for token in parts):
        words = " ".join(token.lstrip("@") for token in parts if token not in ("{", "}")).replace("unit:", "")
        named = number_word(words)
        if named is not None:
            return Formula(number(named), str(named))
        if words in ("all real numbers", "all reals", "all real"):
            return Intervals((Piece(Bound(None, False), Bound(None, False)),))
        if len(parts) > 12 or "@?" in parts:
            raise Undecidable("more words than an answer has")
        return Text(" ".join(words.lower().replace(".", " ").split()))
    return None


def _signs(parts: list[str], depth: int) -> Value | None:
    r"""``a \pm b`` is a list of two."""
    if "\\pm" not in parts and "\\mp" not in parts:
        return None
    pair: list[Value] = []
    for plus, minus in ("+-", "-+"):
        pair.append(_value([{"\\pm": plus, "\\mp": minus}.get(token, token) for token in parts], depth + 1))
    return Many("list", tuple(pair))


def _ratio(parts: list[str]) -> Value | None:
    pieces = _split(parts, (":",))
    if len(pieces) == 1:
        return None
    if len(pieces) > 2:
        return Many("ratio", tuple(_formula(piece) for piece in pieces))
    top, bottom = formula(pieces[0]), formula(pieces[1])
    return Formula(top / bottom, " ".join(["(", *pieces[0], ")", "/", "(", *pieces[1], ")"]))


def _formula(parts: list[str]) -> Formula:
    unit = None
    for n, token in enumerate(parts):
        if token.startswith("unit:"):
            written = "".join(t.removeprefix("unit:").removeprefix("@") + (" " if t[0] in "u@" else "") for t in parts[n:])
            unit = unit_of(written.replace("*", " "), label=True)
            if unit is None or n == 0:
                raise Undecidable(f"{written!r} behind a number")
            parts = parts[:n]
            break
    source = " ".join(parts)
    if not parts:
        raise Undecidable("nothing beside a sign")
    if parts in (["\\infty"], ["-", "\\infty"], ["+", "\\infty"]):
        return Formula(symbol("\\infty") * number(-1 if parts[0] == "-" else 1), source)
    value = formula(parts)
    term = value.term
    if unit is None and term is not None and term[0] == (("deg", 1),):
        return Formula(number(term[1]), source, (1, (("degree", 1),)))
    return Formula(value, source, unit)
