"""Blends of sources by name: Nemotron-CrossThink's (arXiv 2504.13941)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.core.errors import ConfigError, UnknownNameError
from assay.guide.balanced_arms import Balanced
from assay.guide.cell_curricula import CellRule
from assay.guide.curriculum import Uniform

__all__ = ["BLENDS", "blend"]

BLENDS: Mapping[str, tuple[float, float] | None] = {
    "natural": None,
    "general": (2.0, 1.0),
    "math": (1.0, 2.0),
    "general_only": (1.0, 0.0),
    "math_only": (0.0, 1.0),
}
"""Shares of general and of mathematical sources. ``general``, two to one, was best there; ``natural`` is by numbers of rows."""


def blend(
    name: str,
    general: Mapping[str, int] | Sequence[str],
    math: Mapping[str, int] | Sequence[str],
    rule: CellRule | None = None,
) -> Balanced:
    """The curriculum that draws general and mathematical sources in the shares of a blend, and within a part each source alike.

    Under ``natural`` every source is drawn in proportion to its rows. An arm of a part that a blend leaves out must not be
    practised (``Reinforce.levels``).

    Source: Nemotron-CrossThink (arXiv 2504.13941). UNSURE: the shares within the general part, here even; its blends by format
    (two to one for multiple choice or for open questions) and by scores on benchmarks: the first is ``general`` of arms by
    format, the second any shares of `Balanced`.

    Args:
        name: of `BLENDS`.
        general: arms, or families, of general sources; for ``natural`` with their numbers of rows.
        math: those of mathematics.
        rule: weighs the cells of an arm among each other; None draws them evenly.

    Raises:
        UnknownNameError: another blend.
        ConfigError: a part without an arm that the blend practises, or ``natural`` without numbers of rows.

    >>> from assay.guide import blend
    >>> book = blend("general", general=["law", "history"], math=["sums"]).build({"law": (1,), "history": (1,), "sums": (1,)}, 0)
    >>> dict(zip([arm for arm, _ in book.cells], book.propensities.round(4).tolist()))
    {'history': 0.3333, 'law': 0.3333, 'sums': 0.3333}
    """
    if name not in BLENDS:
        raise UnknownNameError("blend", name, BLENDS)
    sources = {"general": general, "math": math}
    within = Uniform() if rule is None else rule
    shares = BLENDS[name]
    if shares is None:
        rows = {arm: n for of in sources.values() if isinstance(of, Mapping) for arm, n in of.items()}
        if set(rows) != {arm for of in sources.values() for arm in of} or not rows or min(rows.values()) < 1:
            raise ConfigError(f"blend('natural'): give each source's number of rows, as in {{'law': 400}}; got {sources}")
        return Balanced(parts={arm: (arm,) for arm in rows}, rule=within, shares={arm: float(n) for arm, n in rows.items()})
    wanted = {part: share for part, share in zip(sources, shares, strict=True) if share}
    if empty := [part for part in wanted if not sources[part]]:
        raise ConfigError(f"blend({name!r}) practises {list(wanted)}, and {empty} has no arm; name one, or take another blend")
    return Balanced(parts={part: tuple(sources[part]) for part in wanted}, rule=within, shares=wanted)
