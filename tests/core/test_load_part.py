"""What a name may stand for where a function, a class or a part does."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.import_path import load_part


@dataclass(frozen=True)
class Part:
    size: int


PART, NUMBER = Part(3), 4


def test_a_function_a_class_and_a_part_are_found() -> None:
    assert load_part(f"{__name__}:Part", "here") is Part
    assert load_part(f"{__name__}:PART", "here") is PART
    assert load_part("assay.core.errors:a_kind", "here")(3) == "an int"


def test_nothing_else_is() -> None:
    with pytest.raises(ConfigError, match=r"here: '.*:NUMBER' is an int, not a function"):
        load_part(f"{__name__}:NUMBER", "here")
    with pytest.raises(UnknownNameError, match="PARTS"):
        load_part(f"{__name__}:PARTS", "here")
