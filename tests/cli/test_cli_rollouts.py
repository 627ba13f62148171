"""Looking at rollouts on the command line, in run folders written by hand."""

from __future__ import annotations

import json

import pytest
from test_cli_look import run_at

from assay.runs import RolloutFiles


def record(step, value, **changes):
    given = {"step": step, "id": f"s{step}", "task": f"sort/{step}", "arm": "sort", "level": 3, "prompt": "S312>", "text": "132"}
    given |= {"stop": "done", "components": {"correct": value}, "fault": "none", "length": 4, "gold": "123", "advantage": -0.25}
    return given | changes


@pytest.fixture
def run(tmp_path):
    folder = run_at(tmp_path, "sort-1", {3: [1, 0], 4: [0, 1]})
    files = RolloutFiles(folder)
    files.write(1, [record(1, 0.0), record(1, 1.0, text="123")], of=8)
    files.write(9, [record(9, 0.0, level=4, stop="length"), record(9, 0.0, components={}, fault="infra", reason="no host")], of=2)
    files.write_items([{"id": "3/0", "arm": "sort", "level": 3, "prompt": "S21>", "gold": "12"}])
    return folder


def test_show(assay, run):
    found = assay("rollouts", "show", run)
    first, *lines = found.out.splitlines()
    assert first == "WRONG  step 9  sort level 4  sort/9  4 tokens  correct 0  advantage -0.250  stop length"
    assert lines[:4] == ["  prompt  S312>", "  answer  132", "  gold    123", ""]
    assert lines[4].endswith("fault infra") and "  reason  no host" in lines
    assert "4 of 4 that match; 4 rollouts are kept of 2 recorded steps (1 to 9), of 10 sampled in them" in found.err


def test_rows_that_no_rollout_solved(assay, run):
    line = {
        "step": 9,
        "stage": "rl",
        "arm": ["sort"] * 3,
        "level": [3, 4, 4],
        "index": [0, 1, 2],
        "id": ["sort/1", "sort/9", "sort/7"],
    }
    line |= {"rollouts": [2, 8, 2], "reward": [0.5, 0.0, 0.0], "length": [4, 4, 4], "kept": [1, 0, 0]}
    assert "has no rows that reinforcement learning has practised" in assay("rollouts", "show", run, "--never-solved").err
    (run / "row_history.jsonl").write_text(json.dumps(line) + "\n")
    found = assay("rollouts", "show", run, "--never-solved")
    first, *lines = found.out.splitlines()
    assert first == "NEVER SOLVED  sort level 4  sort/9  8 rollouts in 1 step, the last 9"
    assert (
        lines[:3] == ["  prompt  S312>", "  answer  132", "  gold    123"]
        and "sort/7" in found.out
        and "sort/1 " not in found.out
    )
    assert "2 of 2 rows that no rollout solved; look whether their golds are right" in found.err
    told = assay("rollouts", "show", run, "--never-solved", "--json").json
    assert told["never_solved"] == 2 and told["rows"][0]["answers"] == ["132"] and told["rows"][1]["prompt"] == ""


def test_raw_shows_the_tokens_where_they_are_recorded(assay, run):
    RolloutFiles(run).write(9, [record(9, 0.0, raw=["<s>user S312>", "132</s>"])], of=1)
    found = assay("rollouts", "show", run, "--raw", "-n", "1")
    assert found.out.splitlines()[1:4] == ["  prompt  <s>user S312>", "  answer  132</s>", "  gold    123"]
    old = assay("rollouts", "show", run, "--raw", "--step", "1")
    assert "  answer  132" in old.out.splitlines() and "recorded without its tokens" in old.err
    assert "recorded without" not in assay("rollouts", "show", run, "--raw", "--faulty", "--level", "7").err


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ((), ["wrong", "faulty", "wrong", "right"]),
        (("--right",), ["right"]),
        (("--wrong", "--level", "3"), ["wrong"]),
        (("--faulty", "--right"), ["faulty", "right"]),
        (("--step", "1"), ["wrong", "right"]),
        (("--step", "last"), ["wrong", "faulty"]),
        (("--task", "sort/9", "-n", "1"), ["wrong"]),
        (("-n", "0"), ["wrong", "faulty", "wrong", "right"]),
    ],
)
def test_filters(assay, run, options, found):
    value = assay("rollouts", "show", run, *options, "--json").json
    assert [r["verdict"] for r in value["rollouts"]] == found
    assert value["recorded"] == (2 if "--step" in options else 4)


def test_diff_of_one_run_is_from_its_base_to_its_end(assay, run):
    found = assay("rollouts", "diff", run)
    lines = found.out.splitlines()
    assert lines[:6] == ["BECAME RIGHT  sort level 3  3/0", "  prompt  S21>", "  before  1", "  now     1", "  gold    12", ""]
    said = "sort-1@0 to sort-1@10, greedy: 2 items became right, 0 became wrong, 0 stayed right, 2 stayed wrong"
    assert lines[-1] == said
    every = assay("rollouts", "diff", run, "--all", "-n", "3")
    assert every.out.count("STAYED WRONG") == 1 and "3 of 4 items are shown" in every.err


def test_diff_of_two(assay, run, tmp_path):
    other = run_at(tmp_path, "sort-2", {3: [0, 1], 4: [1, 1], 5: [1]})
    value = assay("rollouts", "diff", run, other, "--json").json
    assert (value["fixed"], value["broken"], value["right"], value["wrong"]) == (2, 1, 1, 0)
    assert (value["only_before"], value["only_after"]) == (0, 1)
    assert [item["kind"] for item in value["items"]] == ["broken", "fixed", "fixed"]
    assert "only in sort-1@10: 0 items; only in sort-2@10: 1" in assay("rollouts", "diff", run, other).out
    back = assay("rollouts", "diff", f"{run}@10", f"{run}@0", "--json").json
    assert (back["before"], back["after"], back["broken"]) == ("sort-1@10", "sort-1@0", 2)
    later = assay("rollouts", "diff", f"{run}@10", "--json").json
    assert (later["before"], later["after"]) == ("sort-1@10", "sort-1@10")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("show", "{run}", "--step", "4"), "no recorded rollouts of step 4; the nearest is 1"),
        (("show", "{run}", "--step", "first"), "--step first: give the number of a recorded step, or last"),
        (("show", "{run}", "-n", "-1"), "--n -1"),
        (("show", "{run}-nowhere"), "did you mean 'sort-1'"),
        (("diff", "{run}@3"), "no greedy evaluation at step 3; the nearest is"),
        (("diff", "{run}", "--mode", "greed"), "greedy"),
        (("diff", "{run}", "-n", "-2"), "--n -2"),
        (("diff", "{run}", "{run}", "{run}"), "3 runs: give one, or two"),
    ],
)
def test_what_is_wrong_is_said(assay, run, args, said):
    found = assay("rollouts", *(a.replace("{run}", str(run)) for a in args))
    assert found.code == 2 and said in found.err
