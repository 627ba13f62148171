"""Declarations of papers: of assay's packages, and of packages that offer task families, one of which may be gone."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from assay.core import papers
from assay.core.papers import load_papers


def test_a_package_of_tasks_that_is_gone_takes_no_other_papers_along(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = load_papers()
    gone = EntryPoint(name="gone", value="no_such_package.catalog", group="assay.tasks")
    own = EntryPoint(name="assay", value="assay_tasks.catalog", group="assay.tasks")
    monkeypatch.setattr(papers, "entry_points", lambda group: (gone, own))
    assert load_papers() == whole
    monkeypatch.setattr(papers, "entry_points", lambda group: (gone,))
    assert 0 < len(load_papers()) < len(whole)
