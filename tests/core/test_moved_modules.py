"""Modules that moved: files know them by the name of before, and that name leads to where they are."""

from __future__ import annotations

import importlib
from importlib.util import find_spec

import pytest

from assay.core import moved_modules
from assay.core.import_path import load_class, name_of
from assay.core.moved_modules import filed_module, module_of_filed
from assay_tasks import SortDigits

TABLE: dict[str, str] = vars(moved_modules)["_FILED"]


@pytest.mark.parametrize("now", sorted(TABLE))
def test_the_way_there_is_the_way_back(now: str) -> None:
    before = TABLE[now]
    assert now.endswith(".") == before.endswith(".")
    assert find_spec(now.rstrip(".")) is not None
    if now.endswith("."):
        now, before = f"{now}some.module", f"{before}some.module"
    assert filed_module(now) == before and module_of_filed(before) == now
    assert module_of_filed(now) == now


def test_a_module_that_never_moved_is_itself() -> None:
    assert filed_module("assay.core.task") == module_of_filed("assay.core.task") == "assay.core.task"


def test_a_class_is_filed_as_before_and_found_by_both_names() -> None:
    assert name_of(SortDigits) == "assay.tasks.sort:SortDigits"
    assert load_class("assay.tasks.sort:SortDigits", "here") is load_class("assay_tasks.sort:SortDigits", "here") is SortDigits
    assert importlib.import_module(module_of_filed("assay.verify.audit.cases")).__name__ == "assay.audit.cases"
