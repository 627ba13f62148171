"""The pages of all parts: every public name of the package once, none that is not there, and scopes that are true."""

import re
from pathlib import Path
from typing import Any

import pytest

import assay.objective as package
from assay.objective import (
    AdaptiveKlInReward,
    AddBonus,
    Against,
    Bonus,
    ClipAdvantage,
    CosineLength,
    KlInReward,
    Known,
    LowLogp,
    Marked,
    MinClip,
    OneOf,
    Overlong,
    PassRate,
    ProxyKl,
    Reject,
    SelectedKl,
    SignSplit,
    SoftGate,
    TokenReward,
    Within,
)
from assay.objective.methods import methods

PAGES = Path(__file__).parents[2] / "docs" / "packages"
TEXT = "".join((PAGES / f"objective-{page}.md").read_text(encoding="utf-8") for page in ("parts", "losses"))
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in TEXT.splitlines() if line.startswith("| `")]
NAMES = [name for row in ROWS for name in re.findall(r"`(\w+)`", row[0])]
METHODS = set(methods())

EXAMPLES: dict[str, Any] = {
    type(part).__name__: part
    for part in (
        AddBonus("x"),
        AdaptiveKlInReward(coef=0.1),
        Against("x"),
        Bonus("x"),
        ClipAdvantage(low=-1.0),
        CosineLength(limit=9),
        KlInReward(coef=0.1),
        Known("x", low=0.5),
        Marked("x"),
        OneOf(("x",)),
        Overlong(limit=9, cache=3),
        PassRate(low=1.0),
        ProxyKl(weights=(LowLogp(),)),
        Reject(high=0.1),
        SelectedKl(weights=(LowLogp(),)),
        SignSplit(negative=0.5),
        TokenReward("x"),
        Within(inner=SoftGate(), gate=MinClip()),
    )
}
"""Parts that have no default settings."""


def test_every_public_name_stands_in_a_table_once() -> None:
    assert sorted(NAMES) == sorted(set(NAMES))
    assert set(NAMES) == set(package.__all__) - METHODS


def test_tables_have_their_columns() -> None:
    assert {len(row) for row in ROWS} == {2, 3, 4}
    assert all(all(row) for row in ROWS)


SCOPES = {row[0].strip("`"): row[2] for row in ROWS if len(row) == 4 and row[2] not in ("–", "the term's")}


@pytest.mark.parametrize("name", SCOPES)
def test_scopes_are_those_of_the_default_settings(name: str) -> None:
    part = EXAMPLES.get(name) or getattr(package, name)()
    assert str(part.scope) == SCOPES[name]
