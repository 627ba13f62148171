"""What the digest of a finished run holds, and what it leaves out."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from assay.train import record


def digest_of(folder: Path, metrics: dict[str, float]) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "metrics.jsonl").write_text(json.dumps({"step": 1, "metrics": metrics}) + "\n")
    parts = SimpleNamespace(learner=SimpleNamespace(state_digest=lambda: "weights"), ids=[])
    return record.run_digest(folder, cast("Any", parts))


@pytest.mark.parametrize("name", ["time/step", "verify/hung", "async/age", "forgetting/greedy"])
def test_what_the_clock_or_the_evaluations_say_changes_no_digest(tmp_path: Path, name: str) -> None:
    plain = digest_of(tmp_path / "run", {"reward/mean": 0.5})
    assert digest_of(tmp_path / "run", {"reward/mean": 0.5, name: 0.25}) == plain
    assert digest_of(tmp_path / "run", {"reward/mean": 0.25}) != plain
