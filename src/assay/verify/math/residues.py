"""Values up to multiples of a modulus."""

from __future__ import annotations

from assay.verify.math.named import is_name
from assay.verify.math.poly import Undecidable
from assay.verify.math.ratio import number
from assay.verify.math.values import Formula, Many, Relation, Residue, Value

__all__ = ["residue"]


def residue(value: Value, modulus: Formula) -> Residue:
    """What stands before and behind a "mod"; of a congruence the right side, if the left is a name or congruent to it.

    Raises:
        Undecidable: a congruence of numbers that is not known to be true.
    """
    if isinstance(value, Relation) and value.sign in ("\\equiv", "=") and not value.middle:
        left = None if is_name(value.left) else _reduce_residue(value.left, modulus)
        value = _reduce_residue(value.right, modulus)
        if left is not None and not (isinstance(left, Formula) and isinstance(value, Formula) and left.ratio.same(value.ratio)):
            raise Undecidable("a congruence that is not known to be true")
    return Residue(_reduce_residue(value, modulus), modulus)


def _reduce_residue(value: Value, modulus: Formula) -> Value:
    by = modulus.ratio.value
    if isinstance(value, Many) and value.kind == "list":
        return Many("list", tuple(_reduce_residue(item, modulus) for item in value.items))
    if (
        not isinstance(value, Formula)
        or (at := value.ratio.value) is None
        or not by
        or by.denominator != 1
        or at.denominator != 1
    ):
        return value
    return Formula(number(at.numerator % abs(by.numerator)), str(at.numerator % abs(by.numerator)))
