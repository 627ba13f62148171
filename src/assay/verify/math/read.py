"""Reads a whole answer: what kind of thing it is, and its parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from assay.verify.language import denied, doubted
from assay.verify.math.clean import clean
from assay.verify.math.computed import compute_ratio
from assay.verify.math.formula import CLOSERS, OPENERS, formula
from assay.verify.math.inequalities import inequality
from assay.verify.math.intervals import as_intervals, end_of, rising, unite
from assay.verify.math.lists import together
from assay.verify.math.literals import literal
from assay.verify.math.matrices import MATRICES, ROWS, determinant, transpose
from assay.verify.math.named import is_function
from assay.verify.math.poly import Undecidable
from assay.verify.math.ratio import number, symbol
from assay.verify.math.residues import residue
from assay.verify.math.tokens import tokens
from assay.verify.math.units import unit_of
from assay.verify.math.values import (
    DENIED,
    Bound,
    Choice,
    Formula,
    Intervals,
    Many,
    Matrix,
    Opaque,
    Piece,
    Relation,
    Text,
    Value,
)
from assay.verify.math.words import fraction_words, number_word

__all__ = ["read"]

_EQUAL = frozenset(["=", "\\approx"])
_RELATIONS = frozenset(["=", "<", ">", "\\le", "\\ge", "\\ne", "\\in", "\\approx", "\\equiv"])
_SEPARATORS = frozenset([",", ";", "\\or", "\\and"])
_BOX = re.compile(r"\\(?:boxed|fbox)(?:\s*\{(?P<braced>.*)\}|\s*(?P<bare>[^\s{A-Za-z].*)|\s+(?P<letter>[A-Za-z]\S*))", re.DOTALL)
_LETTERS = {
    form.replace("#", letter): Choice(letter)
    for letter in "ABCDEFGHIJ"
    for form in ("#", "(#)", "\\text{#}", "\\text{(#)}", "\\textbf{(#)}")
}
_MARKS = _SEPARATORS | _RELATIONS | CLOSERS | OPENERS.keys() | {"\\cup"}
_DEEPEST = 12


@lru_cache(maxsize=4096)
def read(text: str) -> Value:
    """What an answer is; total: what cannot be read is `Opaque`. ``text`` is the answer alone, without the words around it.

    >>> type(read("(1, 2]")).__name__, type(read("5 cm")).__name__, type(read("seven")).__name__
    ('Intervals', 'Formula', 'Formula')
    """
    if text in _LETTERS:
        return _LETTERS[text]
    if len(text) > 20_000:
        return Opaque(text, "an answer that is too long")
    cleaned = clean(text)
    for _ in range(3):
        boxed = _BOX.fullmatch(cleaned)
        if boxed is None:
            break
        cleaned = clean(boxed["braced"] or boxed["bare"] or boxed["letter"] or "")
    if "\\boxed" in cleaned or "\\fbox" in cleaned:
        return Opaque(cleaned, "a box that is a part of a larger expression")
    plain = literal(cleaned)
    if plain is not None:
        return plain
    try:
        return _value(_last_conclusion(_strip(tokens(cleaned))), 0)
    except (Undecidable, RecursionError) as error:  # recursion: the caller's own stack may be nearly full
        return Opaque(cleaned, str(error))


def _strip(parts: list[str]) -> list[str]:
    """Currency in front goes behind, as a unit."""
    sign = parts[0] if parts and parts[0] == "-" else ""
    first = parts[1 if sign else 0 :]
    if first and first[0] in ("@dollars", "@euro", "£") and len(first) > 1:
        name = "unit:" + first[0].lstrip("@")
        return [*([sign] if sign else []), *first[1:], name]
    return parts


def _last_conclusion(parts: list[str]) -> list[str]:
    r"""Of equations joined by ``\Rightarrow`` the last one."""
    if "\\Rightarrow" not in parts:
        return parts
    last = len(parts) - 1 - parts[::-1].index("\\Rightarrow")
    before, behind = parts[:last], parts[last + 1 :]
    return behind if not _EQUAL.isdisjoint(before) and not _EQUAL.isdisjoint(behind) else parts


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
    present = set(parts)
    if "\\mod" in present:
        return _residue(parts, depth)
    if not present.isdisjoint(_MARKS) or any(token.startswith("\\begin") for token in present):
        found = _structure(parts, present, depth)
        if isinstance(found, list):
            parts = found
        else:
            return found
    elif not parts:
        raise Undecidable("nothing at all")
    return _special(parts) or _signs(parts, depth) or _ratio(parts) or _formula(parts)


def _structure(parts: list[str], present: set[str], depth: int) -> Value | list[str]:
    """A list, union, relation, or something in brackets; else the tokens, without separators at their ends."""
    between, signs = _cut(parts, _SEPARATORS)
    listed = [piece for piece in between if piece]
    if not listed:
        raise Undecidable("nothing at all")
    if len(listed) > 1:
        return together([_value(piece, depth + 1) for piece in listed], set(signs))
    parts = listed[0]
    if "\\cup" in present and (parts[0] != "|" or _EQUAL.isdisjoint(present)):  # |A \cup B| = 8 is an equation
        joined = _split(parts, ("\\cup",))
        if len(joined) > 1:
            return unite([_value(piece, depth + 1) for piece in joined])
    if not _RELATIONS.isdisjoint(present):
        pieces, signs = _cut(parts, _RELATIONS)
        if signs:
            return _relation(signs, pieces, depth)
    return _read_brackets(parts, depth) or parts


def _read_brackets(parts: list[str], depth: int) -> Value | None:
    """A set, tuple, interval or matrix in brackets around everything."""
    first, last = parts[0], parts[-1]
    if last in ("T", "}", "\\top") and (bare := _strip_transpose(parts)) is not None:
        if bare[0].startswith("\\begin"):
            return transpose(_read_brackets(bare, depth))
        return transpose(Many("tuple", tuple(_value(piece, depth + 1) for piece in _split(bare[1:-1], (",", ";")))))
    if first.startswith("\\begin") and last == first.replace("begin", "end") and len(parts) > 2:
        return _environment(first[7:-1], parts, depth)
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
        around = (first == "(" and last == ")") or (first == "[" and last == "]" and inner[0].startswith("\\begin"))
        return _value(inner, depth + 1) if around else None
    return _row(first, last, tuple(_value(piece, depth + 1) for piece in pieces))


def _row(first: str, last: str, items: tuple[Value, ...]) -> Value | None:
    if (first, last) == ("(", ")") or first == "\\langle":
        infinite = any(isinstance(item, Formula) and "\\infty" in item.ratio.atoms() for item in items)
        found = Many("tuple", items)
        return (as_intervals(found) if infinite and first == "(" else None) or found
    if len(items) == 2:
        low, high = end_of(items[0], first == "[", True), end_of(items[1], last == "]", False)
        if low is not None and high is not None and rising(low, high):
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


def _strip_transpose(parts: list[str]) -> list[str] | None:
    """What stands in brackets before a ``^T``."""
    for end in (["^", "T"], ["^", "{", "T", "}"], ["^", "\\top"], ["^", "{", "\\top", "}"]):
        bare = parts[: -len(end)]
        if parts[-len(end) :] == end and bare and (bare[0] in ("(", "[") or bare[0].startswith("\\begin")):
            return bare if _step(bare[-1]) < 0 else None
    return None


def _environment(name: str, parts: list[str], depth: int) -> Value:
    """A matrix, the determinant of one, or equations in lines.

    Raises:
        Undecidable: it is none of these.
    """
    rows = [_split(row, ("&",)) for row in _split(parts[1:-1], ("\\\\",)) if row]
    if name in ROWS:
        lines = [_row_of(cells, depth) for cells in rows]
        return together(lines, {","}) if len(lines) > 1 else lines[0] if lines else _unread(name)
    if name not in MATRICES and name != "vmatrix":
        return _unread(name)
    if not rows or len({len(row) for row in rows}) > 1:
        raise Undecidable("a matrix of uneven rows")
    values = tuple(tuple(_value(cell, depth + 1) for cell in row) for row in rows)
    return determinant(values, " ".join(parts)) if name == "vmatrix" else Matrix(values)


def _row_of(cells: list[list[str]], depth: int) -> Value:
    """A line of an environment: an equation, or a value and the case in which it holds."""
    told = [token for cell in cells for token in cell]
    if len(cells) < 2 or not _RELATIONS.isdisjoint(cells[0]) or (cells[1] and cells[1][0] in _RELATIONS):
        return _value(told, depth + 1)
    case = [token for token in cells[1] if token not in ("@if", "@for", "@when", ",")]
    return Many("tuple", (_value(cells[0], depth + 1), _value(case, depth + 1)))


def _unread(name: str) -> Value:
    raise Undecidable(f"an environment {name!r}")


def _residue(parts: list[str], depth: int) -> Value:
    r"""``5 \pmod 7``, ``x \equiv 5 (mod 7)``.

    Raises:
        Undecidable: it is not of this form, or a congruence of numbers that is not true.
    """
    at = parts.index("\\mod")
    head, tail = parts[:at], parts[at + 1 :]
    if head[-1:] == ["("] and tail[-1:] == [")"]:
        head, tail = head[:-1], tail[:-1]
    if not head or not tail or "\\mod" in tail:
        raise Undecidable("a modulus in an unexpected place")
    return residue(_value(head, depth + 1), _formula(tail))


def _relation(signs: list[str], pieces: list[list[str]], depth: int) -> Value:
    if not _EQUAL.isdisjoint(signs) and set(signs) <= _EQUAL:
        if _is_denied(pieces[0]):
            raise Undecidable(DENIED)
        if not pieces[0] and len(pieces) == 2:
            return _value(pieces[1], depth + 1)
        sides = [_side(piece, depth + 1) for piece in pieces]
        return Relation("\\approx" if "\\approx" in signs else "=", sides[0], sides[-1], tuple(sides[1:-1]))
    values = [_value(piece, depth + 1) for piece in pieces]
    if signs == ["\\in"]:
        found = as_intervals(values[1])
        name = values[0].source if isinstance(values[0], Formula) else None
        return values[1] if found is None else Intervals(found.pieces, name)
    if set(signs) <= {"<", ">", "\\le", "\\ge"} or signs == ["\\ne"]:
        found = inequality(signs, values)
        if found is not None:
            return found
    if len(signs) > 1:
        raise Undecidable("several relations in a row")
    return Relation(signs[0], values[0], values[1])


def _is_denied(parts: list[str]) -> bool:
    """Whether what stands left of a sign of equality is a denial: ``not x``, ``x is not``, ``I doubt that x``, and no name."""
    words = " ".join(token.lstrip("@") for token in parts).replace("b u t", "but")  # tokens take short words for factors
    return any(denied(f"{before} ") or doubted(f"{before} ") for before in (words, words.rpartition(" ")[0]))


def _side(parts: list[str], depth: int) -> Value:
    """A side of an equation: what it is, or that it is only a name, or something that is not read."""
    try:
        return _value(parts, depth)
    except Undecidable as error:
        if not parts:
            raise
        source = " ".join(parts)
        value = compute_ratio(source)
        if value is not None:
            return Formula(value, source)
        return Text(source) if is_function(parts) else Opaque(source, str(error))


# ---- single values


def _special(parts: list[str]) -> Value | None:
    if parts == ["\\emptyset"]:
        return Intervals(())
    if parts in (["\\mathbb", "{", "R", "}"], ["\\mathbb", "R"], ["\\R"]):
        return Intervals((Piece(Bound(None, False), Bound(None, False)),))
    if any(token[0] == "@" for token in parts):
        words = " ".join(token.lstrip("@") for token in parts if token not in ("{", "}")).replace("unit:", "")
        named = _number_words(words)
        if named is not None:
            return named
        if words in ("all real numbers", "all reals", "all real"):
            return Intervals((Piece(Bound(None, False), Bound(None, False)),))
        if words.lower() in ("no solution", "no solutions", "empty set", "the empty set"):
            return Intervals(())
        if len(parts) > 12 or "@?" in parts:
            raise Undecidable("more words than an answer has")
        return Text(" ".join(words.lower().replace(".", " ").split()))
    return None


def _number_words(words: str) -> Formula | None:
    """``seven``, ``seven apples``, ``one half``."""
    part = fraction_words(words.replace(" - ", " "))
    if part is not None:
        return Formula(number(part), str(part))
    first, _, label = words.rpartition(" ")
    for said, of in ((words, None), (first, label)):
        named = number_word(said)
        if named is not None and (of is None or unit_of(of, label=True) is not None):
            return Formula(number(named), str(named), None if of is None else unit_of(of, label=True))
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
