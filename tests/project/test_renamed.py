"""A name that a package had once says what it is called now, and every new name is there."""

import importlib

import pytest

from assay.core.util.exports import lazy_exports
from assay.core.util.renamed import RENAMED

TABLE = {"assay.core": {"Seed": "derive"}, "assay.verify": {"Old": "New"}}


def test_an_old_name_says_the_new_one() -> None:
    find, _ = lazy_exports("assay.core", {"seeds": "derive"}, renamed=TABLE)
    with pytest.raises(ImportError, match=r"assay.core.Seed is called derive now; write: from assay.core import derive"):
        find("Seed")
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        find("other")


def test_a_name_that_moved_and_was_renamed_says_both() -> None:
    find, _ = lazy_exports(
        "assay.core", {"seeds": "derive"}, moved={"Old": "assay.verify", "Same": "assay.verify"}, renamed=TABLE
    )
    with pytest.raises(ImportError, match=r"write: from assay\.verify import New"):
        find("Old")
    with pytest.raises(ImportError, match=r"write: from assay\.verify import Same"):
        find("Same")


@pytest.mark.parametrize("package", RENAMED)
def test_every_new_name_is_there_and_every_old_one_says_so(package: str) -> None:
    module = importlib.import_module(package)
    for old, new in RENAMED[package].items():
        assert hasattr(module, new), f"{package} has no {new}"
        with pytest.raises(ImportError, match=f"is called {new} now"):
            getattr(module, old)


@pytest.mark.parametrize(
    ("old", "new"),
    [("verify:RubricJudge", "scorers"), ("verify:FromTasks", "scorers"), ("verify.service:RewardClient", "interop.service")],
)
def test_a_name_that_moved_says_where_it_is(old: str, new: str) -> None:
    package, _, name = old.partition(":")
    assert hasattr(importlib.import_module(f"assay.{new}"), name)
    with pytest.raises(ImportError, match=f"write: from assay.{new} import {name}"):
        getattr(importlib.import_module(f"assay.{package}"), name)


def test_the_old_service_says_the_new_name_of_its_handler() -> None:
    with pytest.raises(ImportError, match=r"write: from assay\.interop\.service import ScoringRequestHandler"):
        from assay.verify.service import Desk  # type: ignore[attr-defined]  # noqa: F401
