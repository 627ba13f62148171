"""What fields are declared to hold: annotations as text, with names that only type checkers or somebody else knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from assay.core.fields import hints_of, resolve_annotation

if TYPE_CHECKING:
    from decimal import Decimal


@dataclass(frozen=True)
class Part:
    own: Other | None
    late: Decimal
    anything: object
    built_in: int


@dataclass(frozen=True)
class Other:
    pass


def offered(name: str) -> Any:
    return {"Decimal": float}[name]


def test_names_of_a_module_come_first_then_those_that_are_offered() -> None:
    assert hints_of(Part) == {"own": Other | None, "late": Any, "anything": Any, "built_in": int}
    assert hints_of(Part, offered)["late"] is float


@pytest.mark.parametrize(
    ("declared", "meant"),
    [
        (int, int),
        ("int", int),
        ("list[int]", list[int]),
        ("Nobody", Any),
        ("Nobody | int", Any),
        ("json.Gone", Any),
        ("1 | 2 | int", Any),
    ],
)
def test_what_cannot_be_resolved_is_anything(declared: Any, meant: Any) -> None:
    assert resolve_annotation(declared, "json.decoder", offered) == meant


def test_a_module_that_is_gone_has_only_the_built_in_names() -> None:
    assert resolve_annotation("int", "no.such.module") is int and resolve_annotation("Part", "no.such.module") is Any
