"""``assay simulate``: always called simulated; lengths from a run, a file or a formula."""

from __future__ import annotations

SHORT = ("--engines", "4", "--groups", "8", "--group-size", "2", "--steps", "4", "--seeds", "3")


def test_the_table_says_that_it_is_simulated(assay) -> None:
    said = assay("simulate", *SHORT, "--eta", "0", "2", "--age-policy", "continue")
    assert said.code == 0 and said.out.startswith("simulated, not measured: 4 engines, 8 x 2 rollouts a step")
    found = assay("simulate", *SHORT, "--eta", "2", "--age-policy", "continue", "--json").json
    assert found["simulated"] is True and [row["eta"] for row in found["rows"]] == [2]
    (row,) = found["rows"]
    assert row["speed-up"] > 1 and row["interval"][0] < row["speed-up"] < row["interval"][1] and row["age max"] <= 2


def test_lengths_of_a_file(assay, tmp_path) -> None:
    (tmp_path / "lengths").write_text("4\n4\n4\n")
    one = ("--engines", "1", "--groups", "1", "--group-size", "1", "--steps", "3", "--seeds", "1", "--eta", "0")
    speeds = ("--step-ms", "1000", "--sequence-ms", "0", "--train-tokens", "1", "--sync-s", "2")
    (row,) = assay("simulate", *one, *speeds, "--lengths", "lengths", "--json").json["rows"]
    assert row["steps per hour"] == 360.0 and row["interval"] is None  # 4 s of decoding, 4 of learning, 2 of the update


def test_what_cannot_be_simulated(assay, tmp_path) -> None:
    (tmp_path / "words").write_text("four\n")
    (tmp_path / "empty").mkdir()
    for words, why in {
        ("--lengths", "words"): "give a run folder, or a file with a whole number per line",
        ("--lengths", "missing"): "No such file",
        ("--lengths", "empty"): "empty",
        ("--engines", "0"): "engines",
        ("--age-policy", "waits"): "wait",
        ("--seeds", "0"): "give at least one",
    }.items():
        said = assay("simulate", *words)
        assert said.code == 2 and why in said.err and said.err.count("\n") == 1, said.err
