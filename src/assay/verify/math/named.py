"""What stands left of a sign of equality: a name of what is asked for, or something that the equation is about."""

from __future__ import annotations

import re
from collections.abc import Sequence

from assay.verify.math.computed import is_size
from assay.verify.math.inequalities import names
from assay.verify.math.poly import ONE, Mono
from assay.verify.math.values import Formula, Many, Opaque, Text, Value

__all__ = ["is_function", "is_name", "name_of", "quantity"]

_FUNCTION = re.compile(
    r"(?:([fghpquA-Z]|\\(?:phi|varphi|sigma|tau|mu|Gamma|zeta)|\\mathbb (?:\{ )?[A-Z](?: \})?)"
    r"(?: _ (?:\w+|\{ [^{}]* \}))?(?: ')*(?: \^ \{ - 1 \})?)"
    r" ([(\[] .* [)\]])"
)
_MARKED = re.compile(r"(?:m )?(?:\\(?:overline|det|dim|deg|Pr|Re|Im|operatorname)) ?(?:\{ [A-Za-z ]+ \}|[(] .* [)]|[A-Z])")
_MEASURED = re.compile(
    r"\| [^|]*[A-Za-z][^|]* \||\| [A-Z] \|(?: [-+] \| [A-Z](?: \\c[ua]p [A-Z])* \|)+"
    r"|\\(?:sin|cos|tan|cot|sec|csc) (?:[A-Za-z]|\\(?!pi\b)[a-z]+|\( (?:[A-Za-z]|\\(?!pi\b)[a-z]+) \))"
)
_PLAIN_UNKNOWNS = frozenset("xyzt")


def is_function(parts: Sequence[str]) -> bool:
    r"""Whether tokens are a function at a place, ``f(2)``, or a marked name, ``\overline{AB}``, that no formula is read from."""
    source = " ".join(parts)
    return _applied(source) or _MARKED.fullmatch(source) is not None


def _applied(source: str) -> bool:
    found = _FUNCTION.fullmatch(source)
    if found is None:
        return False
    depth = 0
    for n, token in enumerate(arguments := found.group(2).split()):
        depth += (token in "([{") - (token in ")]}")
        if depth == 0 and n < len(arguments) - 1:
            return False
    return found.group(1) not in arguments  # p(p + 1) is a product


def name_of(value: Value) -> str | None:
    """What only names the right side: ``x``, ``f(x)``, ``(x, y)``, ``AB``, ``[ABC]``, ``f(2)``, words; None for anything else."""
    if isinstance(value, Many) and value.kind == "tuple":
        parts = [name_of(item) for item in value.items]
        return None if None in parts else ",".join(str(part) for part in parts)
    if isinstance(value, Text):
        return value.words
    if not isinstance(value, Formula) or value.unit is not None:
        return None
    if _applied(value.source):
        return value.source
    if value.ratio.term is None:
        return None
    mono, factor = value.ratio.term
    if factor != 1 or not mono or any(power != 1 or atom[0] in "#%^?&" or atom in ("pi", "i") for atom, power in mono):
        return None
    if len(mono) == 1:
        return mono[0][0]
    if re.fullmatch(r"[A-Za-z] \( [A-Za-z] \)", value.source) or _is_segment(mono, value.source):
        return value.source
    return None


def _is_segment(mono: Mono, source: str) -> bool:
    return all(len(atom) == 1 and atom.isupper() for atom, _ in mono) and all(c.isupper() or c in " []" for c in source)


def is_name(value: Value) -> bool:
    """Whether `name_of` gives one."""
    return name_of(value) is not None


def quantity(value: Value) -> bool:
    r"""Whether a left side is rather what is asked for, as in ``m + n = 5``, than a part of an equation that is to be solved.

    It is one in sums and differences of symbols, in products of symbols, in absolute values and ``\sin A``, and in other
    polynomials without a constant term of several symbols that are not called ``x``, ``y``, ``z`` or ``t``.
    """
    if isinstance(value, Opaque):
        return is_size(value.source)
    if not isinstance(value, Formula) or value.unit is not None or value.ratio.bottom is not ONE:
        return False
    if _MEASURED.fullmatch(value.source) is not None:
        return True
    found = names(value.ratio)
    if len(found) < 2 or any(atom[0] in "?^" for atom in found) or () in value.ratio.top:
        return False
    terms = value.ratio.top.items()
    if len(terms) == 1 and all(factor == 1 for _, factor in terms):
        return True
    if all(factor in (1, -1) and len(mono) == 1 and mono[0][1] == 1 for mono, factor in terms):
        return True
    return found.isdisjoint(_PLAIN_UNKNOWNS) and all(factor.denominator == 1 for _, factor in terms)
