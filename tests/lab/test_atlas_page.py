"""The study that writes the atlas."""

from pathlib import Path

import pytest

from assay.objective import atlas, dapo, rloo
from evidence.pages import make


def test_the_study_writes_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atlas, "_named_objectives", lambda: {"dapo": dapo(), "rloo": rloo()})
    monkeypatch.setattr(atlas, "SEEDS", range(2))
    assert make(tmp_path / "docs", ["atlas"]) == 0
    assert (tmp_path / "docs" / "atlas.md").read_text(encoding="utf-8") == atlas.atlas_page()
