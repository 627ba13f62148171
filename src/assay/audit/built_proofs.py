"""Statements for the audit of the verifier of formal proofs, with proofs and what is none."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["formal"]

_DATABASE = """$c ( ) -> wff |- $.  $v ph ps ch $.  wph $f wff ph $.  wps $f wff ps $.  wch $f wff ch $.
wi $a wff ( ph -> ps ) $.  id $a |- ( ph -> ph ) $.  ax-1 $a |- ( ph -> ( ps -> ph ) ) $.
${ a1i.1 $e |- ph $.  a1i $a |- ( ps -> ph ) $. $}"""


def formal(rng: np.random.Generator, i: int) -> dict[str, Any]:
    """An implication with some premises that are not needed, to be proved in a small Metamath database."""
    first, *premises = (("ph", "ps", "ch")[int(n)] for n in rng.integers(0, 3, 3 + i % 4))
    statement, formula, proof = f"( {first} -> {first} )", f"w{first} w{first} wi", f"w{first} id"
    for name in premises:
        proof = f"{formula} w{name} {proof} a1i"
        statement, formula = f"( {name} -> {statement} )", f"w{name} {formula} wi"
    label = f"goal{i}"
    whole = f"{label} $p |- {statement} $= {proof} $."
    gold = {"database": _DATABASE, "label": label, "statement": f"|- {statement}"}
    wrong = (
        "?",
        f"{proof} ?",
        label,
        formula,
        proof.removesuffix(" a1i"),
        f"w{first} {proof}",
        whole.replace(" $p ", " $a "),
        whole.replace("|-", "wff", 1),
        f"{label} $p |- ( ph -> ph ) $= wph id $.",
        f"x $a |- {statement} $. {label} $p |- {statement} $= x $.",
    )
    fenced = f"It is so:\n\n```metamath\n{whole}\n```"
    return {
        "gold": gold,
        "prompt": f"prove in Metamath: |- {statement}",
        "solutions": [proof, fenced],
        "wrong": list(wrong),
        "unique": False,
    }
