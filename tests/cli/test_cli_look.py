"""Looking at run folders, written by hand."""

import json
from dataclasses import replace

import pytest
from cli_support import flat

from assay.core.config import dumps_toml, to_dict
from assay.objective import Center, Token
from assay.objective.methods import dapo, dr_grpo, grpo, gspo

TOML = """
name = "sort"
seed = 3
[tasks]
kind = "assay.tasks.sort:SortDigits"
[[stages]]
kind = "assay.train.run:Reinforce"
steps = 10
[evaluation]
threshold = 1.0
"""


def with_objective(objective):
    """Settings of a run with this objective."""
    stage = {"kind": "assay.train.run:Reinforce", "steps": 10, "objective": to_dict(objective)}
    return dumps_toml({"name": "sort", "seed": 3, "stages": [stage]})


def run_at(root, name, now, finished=True):
    """A run whose base solves nothing, and which then solves the items listed in ``now`` by level."""
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "run.toml").write_text(TOML)
    (folder / "versions.json").write_text("{}")
    (folder / "rollouts.jsonl").write_text("")
    (folder / "events.jsonl").write_text("")
    steps = [{"step": s, "stage": "rl", "metrics": {"reward/mean": 0.1 * s, "signal/fraction": 0.5}} for s in range(1, 11)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(s) + "\n" for s in steps))
    evals = []
    for step, solved in ((0, {level: [0] * len(v) for level, v in now.items()}), (10, now)):
        items = [
            {"id": f"{level}/{i}", "arm": "sort", "level": level, "values": [value], "answers": ["1"], "faults": 0}
            for level, values in solved.items()
            for i, value in enumerate(values)
        ]
        for mode in ("greedy", "sampled"):
            evals.append({"step": step, "stage": "rl", "split": "test", "mode": mode, "items": items})
    (folder / "evals.jsonl").write_text("".join(json.dumps(e) + "\n" for e in evals))
    if finished:
        (folder / "done.json").write_text(json.dumps({"step": 10, "digest": "d"}))
    return folder


@pytest.fixture
def runs(tmp_path):
    root = tmp_path / "runs"
    run_at(root, "sort-1", {3: [1, 1, 1, 0], 4: [1, 0, 0, 0]})
    run_at(root, "sort-2", {3: [1, 1, 1, 1], 4: [1, 1, 1, 1]}, finished=False)
    return root


def test_a_folder_of_several_runs_is_compared_and_its_runs_are_named(assay, tmp_path):
    for name, right in (("seed-0", [1, 0]), ("seed-1", [1, 1])):
        run_at(tmp_path / "study", name, {3: right})
    said = assay("runs", "compare", tmp_path / "study")
    assert said.code == 0 and "seed-0" in said.out and "seed-1" in said.out
    said = assay("runs", "show", tmp_path / "study")
    assert (
        said.code == 2
        and f"is no run folder, it holds 2 runs; name one: {tmp_path}/study/seed-0, {tmp_path}/study/seed-1" in said.err
    )


def test_list(assay, runs):
    rows = assay("runs", "list", "--json").json
    assert rows[0] == {
        "run": "sort-1",
        "recipe": None,
        "objective": None,
        "model": None,
        "changed": None,
        "tasks": "SortDigits",
        "seed": 3,
        "step": "10/10",
        "state": "finished",
        "base": 0.0,
        "now": 0.5,
    }
    assert (rows[1]["state"], rows[1]["now"]) == ("not finished", 1.0)
    text = assay("runs", "list", "--root", runs).out
    assert "sort-1" in text
    assert "0.500" in text


def test_list_of_nothing(assay, tmp_path):
    said = assay("runs", "list")
    assert (said.code, said.out) == (0, "no runs in runs; start one: assay train quickstart\n")
    assert assay("runs", "list", "--json").json == []
    said = assay("runs", "list", "--root", "elsewhere")
    assert said.code == 2
    assert "elsewhere does not exist" in said.err


def test_list_names_what_it_cannot_read(assay, runs):
    (runs / "sort-1" / "metrics.jsonl").write_text("nonsense\n{}\n")
    rows = assay("runs", "list", "--json").json
    assert rows[0]["state"].startswith("unreadable: ")
    assert "line 1" in rows[0]["state"]
    assert "unreadable" in assay("runs", "list").out


def test_show(assay, runs, monkeypatch):
    found = assay("runs", "show", runs / "sort-1", "--json").json
    assert found["levels"] == [
        {"arm": "sort", "level": 3, "base": 0.0, "now": 0.75, "tasks": 4},
        {"arm": "sort", "level": 4, "base": 0.0, "now": 0.25, "tasks": 4},
    ]
    assert found["newest"] == {"reward/mean": 1.0, "signal/fraction": 0.5}
    listed = runs.parent / "elsewhere" / "runs"
    listed.parent.mkdir()
    listed.symlink_to(runs)
    monkeypatch.chdir(listed.parent)
    assert assay("runs", "show", "sort-1", "--json").json["levels"] == found["levels"]  # as 'assay runs list' prints it
    text = assay("runs", "show", runs / "sort-1").out
    assert "SortDigits" in text
    assert "0.750" in text


def test_show_says_what_the_doctor_finds_and_what_is_missing(assay, runs):
    folder = runs / "sort-1"
    lines = [{"step": s, "stage": "rl", "metrics": {"reward/mean": 0.0, "signal/fraction": 0.0}} for s in range(1, 60)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(s) + "\n" for s in lines))
    (folder / "rollouts.jsonl").unlink()
    found = assay("runs", "show", folder, "--json").json
    assert "NoSignal" in [f["rule"] for f in found["doctor"]]
    text = assay("runs", "show", folder).out
    assert found["doctor"][0]["sentence"] in text
    assert "note: rollouts.jsonl is missing" in text


def test_show_before_any_evaluation(assay, runs):
    folder = runs / "sort-1"
    for name in ("evals.jsonl", "metrics.jsonl", "run.toml"):
        (folder / name).write_text("")
    found = assay("runs", "show", folder, "--json").json
    assert (found["levels"], found["newest"], found["tasks"], found["step"]) == ([], {}, None, "0")
    text = assay("runs", "show", folder).out
    assert "base       –" in text and "overlap    nobody looked whether training prompts contain evaluation items" in text


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("runs/sort-3", "did you mean 'sort-"),
        ("runs", "is no run folder, it holds 2 runs; name one: runs/sort-1, runs/sort-2"),
        (".", "is no run folder: it has no run.toml"),
        ("x/y", "x/y does not exist"),
    ],
)
def test_folders_that_are_no_runs(assay, runs, name, said):
    got = assay("runs", "show", name)
    assert got.code == 2
    assert said in got.err


def test_compare(assay, runs):
    one, two = assay("runs", "compare", runs / "sort-1", runs / "sort-2", "--json").json
    assert (one["accuracy"]["value"], two["accuracy"]["value"]) == (0.5, 1.0)
    assert one["versus_first"] is None
    assert two["versus_first"]["difference"]["value"] == 0.5
    assert two["versus_first"]["better"] == 4
    assert two["versus_first"]["p_value"] == 2 / 16  # four tasks differ, all one way
    text = assay("runs", "compare", runs / "sort-1", runs / "sort-2", "--mode", "sampled").out
    assert "held-out accuracy, sampled" in text
    assert "+0.500" in text


def test_compare_lists_settings_and_versions_that_differ(assay, runs):
    one, two = runs / "sort-1", runs / "sort-2"
    long = "x" * 60
    (one / "run.toml").write_text(TOML + f'note = "{long}a"\n')
    (two / "run.toml").write_text(TOML.replace("steps = 10", "steps = 20\nlr = 0.5") + f'note = "{long}b"\n')
    (one / "versions.json").write_text('{"torch": "2.1", "isa": "AVX2"}')
    (two / "versions.json").write_text('{"torch": "2.2", "isa": "AVX2"}')
    first, second = assay("runs", "compare", one, two, "--json").json
    assert first["settings"] == {"stages.0.steps": "10", "evaluation.note": long + "a"}
    assert second["settings"] == {"stages.0.steps": "20", "stages.0.lr": "0.5", "evaluation.note": long + "b"}
    assert (first["versions"], second["versions"]) == ({"torch": "2.1"}, {"torch": "2.2"})
    text = assay("runs", "compare", one, two).out
    rows = [line.split() for line in text.splitlines()]
    assert ["stages.0.steps", "10", "20"] in rows and ["stages.0.lr", "–", "0.5"] in rows and ["torch", "2.1", "2.2"] in rows
    assert ["evaluation.note", "...xxxxxxxxa", "...xxxxxxxxb"] in rows
    assert text.index("stages.0.steps") < text.index("torch") < text.index("held-out accuracy") and "isa" not in text


def test_compare_says_where_nothing_differs_and_what_is_missing(assay, runs):
    for name in ("sort-1", "sort-2"):
        (runs / name / "versions.json").write_text('{"torch": "2.1"}')
    text = assay("runs", "compare", runs / "sort-1", runs / "sort-2").out
    assert "no settings differ (run.toml)" in text and "no versions differ (versions.json)" in text
    (runs / "sort-2" / "versions.json").unlink()
    text = assay("runs", "compare", runs / "sort-1", runs / "sort-2").out
    assert f"versions are not compared: {runs / 'sort-2' / 'versions.json'} is missing or empty" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [(["runs/sort-1"], "needs two runs or more"), (["runs/sort-1", "runs/sort-2", "--mode", "gready"], "did you mean 'greedy'")],
)
def test_comparisons_that_make_no_sense(assay, runs, words, said):
    got = assay("runs", "compare", *words)
    assert got.code == 2
    assert said in got.err


def test_report(assay, runs):
    folder = runs / "sort-1"
    said = assay("report", folder)
    assert (said.code, said.out) == (0, f"{folder / 'report.html'}\n")
    assert "<html" in (folder / "report.html").read_text()
    assert assay("report", folder, "--json").json == {"report": str(folder / "report.html")}
    assert assay("report", "runs").code == 2


def test_unknown_sub_command(assay):
    said = assay("runs", "lst")
    assert said.code == 2
    assert "unknown command of 'assay runs' 'lst': did you mean 'list'?" in said.err
    assert "show" in flat(assay("runs", "-h").out)


def test_a_list_says_how_a_run_was_asked_for(assay, runs):
    words = ["--plain", "--out", "x", "--objective", "gspo", "--lr=1e-4", "--group_size", "4", "--steps", "3", "--wandb"]
    words += ["--tracker", "mlflow", "--tracker.uri", "http://h"]
    record = {"recipe": "quickstart", "args": words, "files": []}
    (runs / "sort-1" / "recipe.json").write_text(json.dumps(record))
    (runs / "sort-2" / "recipe.json").write_text(json.dumps({**record, "args": []}))
    model = '[model]\nkind = "assay.train.models:Built"\n[model.run]\nname = "base-sort"\n'
    (runs / "sort-1" / "run.toml").write_text(TOML + model)
    folder = '[model]\nkind = "assay.train.models:Folder"\npath = "m"\n'
    (runs / "sort-2" / "run.toml").write_text(with_objective(replace(grpo(kl=0.0), aggregate=Token())) + folder)
    one, two = assay("runs", "list", "--json").json
    assert (one["recipe"], one["objective"], one["model"]) == ("quickstart", "gspo", "base base-sort")
    assert one["changed"] == "lr=1e-4 group-size=4 steps=3"
    assert (two["objective"], two["model"], two["changed"]) == ("grpo(kl=0.0) >> Token()", "m", "")
    text = assay("runs", "list").out
    assert "gspo" in text and "lr=1e-4 group-size=4 steps=3" in text
    assert "changed    lr=1e-4 group-size=4 steps=3" in assay("runs", "show", runs / "sort-1").out


@pytest.mark.parametrize(
    ("objective", "said"),
    [
        (gspo(), "gspo"),
        (dapo(), "cure/dapo"),  # one composition; what else CURE needs is wired beside it
        (dr_grpo(), "dr_grpo"),
        (replace(grpo(), credit=(Center("group"),)), "dr_grpo + kl 0.001 >> SeqMean()"),
    ],
)
def test_an_objective_is_called_by_the_method_that_it_equals(assay, runs, objective, said):
    (runs / "sort-1" / "run.toml").write_text(with_objective(objective))
    assert assay("runs", "list", "--json").json[0]["objective"] == said


def test_an_objective_with_parts_that_are_not_here_is_called_by_their_names(assay, runs):
    text = with_objective(gspo()).replace("assay.objective.credit.baseline:Center", "gone:Mine")
    (runs / "sort-1" / "run.toml").write_text(text)
    assert "Mine" in assay("runs", "list", "--json").json[0]["objective"]


def test_a_list_leaves_out_what_was_typed_as_the_recipe_has_it(assay, runs):
    words = ["--lr", "1e-3", "--group-size", "4", "--seed", "0"]
    record = {"recipe": "quickstart", "args": words, "files": [], "unchanged": ["lr", "seed"]}
    (runs / "sort-1" / "recipe.json").write_text(json.dumps(record))
    assert assay("runs", "list", "--json").json[0]["changed"] == "group-size=4"


def test_options_that_say_what_the_recipe_says_are_known_when_a_run_begins(assay):
    from assay.cli.recipe import settle_all
    from assay.cli.train_options import TrainOptions
    from assay.recipes import quickstart

    own = quickstart()
    words = [f"--lr={own.stages[0].learner.optimizer.lr}", "--group-size", str(own.stages[0].group_size), "--groups", "5"]
    words += ["--steps", str(own.stages[0].steps), "--seed", "0", "--tasks.kind", "SortDigits", "--stages.0.filter.kind", "Mixed"]
    asked = settle_all(TrainOptions, ["quickstart", *words], "assay train")
    assert set(asked.unchanged) == {"lr", "group_size", "steps", "seed", "tasks.kind"}
    other = settle_all(TrainOptions, ["quickstart", "--steps", "7", "--seed", "1", "--lr", "0.5"], "assay train")
    assert other.unchanged == ()


def test_a_list_of_a_folder_that_is_named(assay, runs):
    assert assay("runs", "list", runs, "--json").json == assay("runs", "list", "--root", runs, "--json").json
    said = assay("runs", "list", runs / "sort-1")
    assert said.code == 2 and "is a run, not a folder of runs" in said.err and said.err.count("\n") == 1


def test_a_run_that_is_worked_on_is_running(assay, runs):
    import subprocess
    import sys

    code = (
        "import sys; from pathlib import Path; from assay.runs import lock\n"
        "with lock.worker(Path(sys.argv[1])):\n print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(runs / "sort-2")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        assert [r["state"] for r in assay("runs", "list", "--json").json] == ["finished", "running"]
        other.communicate()
    assert [r["state"] for r in assay("runs", "list", "--json").json] == ["finished", "not finished"]
