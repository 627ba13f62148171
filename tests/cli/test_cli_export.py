"""``assay export``."""

from pathlib import Path

import pytest


@pytest.fixture
def run(assay, mine) -> Path:
    assert assay("train", f"{mine}:tiny", "--folder", "run", "--stages.0.steps", "1", "--plain", "--no-report").code == 0
    return Path("run")


def test_export_of_a_run(assay, run):
    said = assay("export", run, "--to", "out", "--dtype", "bfloat16")
    assert said.code == 0 and "out: merged, bfloat16, " in said.out and "tensors hold the bits that they should" in said.out
    assert "recipe | `assay train " in Path("out/README.md").read_text()
    found = assay("export", run, "--to", "more", "--no-check", "--step", "0", "--json").json
    assert found["step"] == 0 and found["reloaded"] is None and found["folder"] == "more"
    assert "not loaded again (--no-check)" in assay("export", "run/model", "--to", "again", "--no-check").out


def test_what_export_refuses(assay, run):
    for code, told, *args in (
        (2, "did you mean 'run'", "rum", "--to", "out"),
        (2, "has no adapter", run, "--to", "out", "--adapter"),
        (2, "two forms of the same model", run, "--to", "out", "--adapter", "--merged"),
        (2, "has no checkpoint of step 9", run, "--to", "out", "--step", "9"),
        (2, "exists already", run, "--to", run),
        (2, "unknown dtype of an export 'fp8'", run, "--to", "out", "--dtype", "fp8"),
    ):
        said = assay("export", *args)
        assert (said.code, told in said.err, said.out) == (code, True, ""), said
        assert not Path("out").exists()
    assert "in PEFT's format" in assay("export", "--help").out
