"""``assay train --seeds``: the runs that are meant, what is said of them, and that each is what it is alone."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from cli_support import flat

from assay.cli import multi_run
from assay.cli.multi_run import Study, parse_vary, print_summary, seeds_of, shared_words
from assay.cli.study_views import PlainStudyView, StudyTable
from assay.core.errors import CheckpointError, ConfigError
from assay.lab.seeds import StudyRun
from assay.lab.summary import RunEnding, State
from assay.recipes import quickstart


def digests(folder):
    return {p.parent.name: json.loads(p.read_text())["digest"] for p in Path(folder).glob("*/done.json")}


@pytest.mark.slow
def test_seeds_side_by_side_are_what_they_are_alone_and_one_that_fails_stops_no_other(assay, mine, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    assert assay("train", "mine.py:tiny", "--seed", "1", "--folder", "alone", "--plain", "--no-report").code == 0
    Path("all", "seed-7").mkdir(parents=True)
    Path("all", "study.json").write_text('{"recipe": "mine.py:tiny", "args": []}')
    Path("all", "seed-7", "in_the_way").touch()
    words = ("train", "mine.py:tiny", "--seeds", "1,7", "--folder", "all", "--no-report")
    said = assay(*words)
    assert said.code == 1
    assert "seed-1  running" in said.out and "seed-1  step 3/3" in said.out and "mean" in said.out
    assert "seed-7 failed: assay: all/seed-7 is not an empty folder; choose another one (all/seed-7.log)" in said.err
    assert "1 of 2 runs did not finish; continue with: assay resume all" in said.err
    alone = json.loads(Path("alone", "done.json").read_text())["digest"]
    assert digests("all") == {"seed-1": alone}

    asked = Path("all", "study.json")
    asked.write_text(asked.read_text().replace("1,7", "1,"))
    said = assay("resume", "all", "--no-report")  # what is finished is not run again
    assert said.code == 0, said.err
    assert "seed-1  running" not in said.out and "seed-1  finished" in said.out
    assert digests("all") == {"seed-1": alone}
    numbers = json.loads(Path("all", "results.json").read_text())
    assert [(r["seed"], r["digest"]) for r in numbers["runs"]] == [(1, alone)] and numbers["means"][0]["runs"] == 1
    listed = assay("runs", "list", "--root", ".", "--json").json
    assert [r["run"] for r in listed] == ["all/seed-1", "alone"]
    assert {p.name for p in Path("all").iterdir()} == {
        "study.json",
        "results.json",
        ".lock",
        "seed-1",
        "seed-7",
        "seed-1.log",
        "seed-7.log",
    }


# ---- words


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--seeds", "x"), "--seeds 'x': give how many, as in --seeds 5"),
        (("--seeds", "0"), "--seeds '0'"),
        (("--seeds", "1,1"), "two runs would both be called 'seed-1'"),
        (("--seeds", "2", "--seed", "1"), "give one of them"),
        (("--vary", "stages.0.groups"), "--vary 'stages.0.groups': give an option of the recipe and its values"),
        (("--vary", "stages.0.groups=2,2"), "both be called 'groups=2'"),
        (("--at-once", "2"), "give --seeds or --vary too"),
        (("--allow-inexact",), "--allow-inexact is about several runs, or a resume"),
        (("--seeds", "2", "--at-once", "-1"), "--at-once -1"),
        (("--seeds", "2", "--stages.0.steps", "0"), "steps"),
        (("--seeds", "2", "--folder", "."), "holds something else than runs side by side"),
    ],
)
def test_what_is_refused_before_anything_is_done(assay, mine, words, said):
    got = assay("train", "mine.py:tiny", *words)
    assert got.code == 2, got.err
    assert said in got.err
    assert {p.name for p in Path().iterdir()} <= {"mine.py", "__pycache__", "cache"}


def test_words():
    assert seeds_of("2") == (0, 1) and seeds_of("4, 2") == (4, 2)
    assert parse_vary("--a.b=1,x") == [("a.b", "1"), ("a.b", "x")]
    for word in ("=1", "a=", "a=,"):
        with pytest.raises(ConfigError):
            parse_vary(word)
    words = (
        "--seeds=5",
        "--a",
        "1",
        "--vary",
        "b=1,2",
        "c=3,4",
        "--plain",
        "--at_once",
        "2",
        "--allow-inexact",
        "--folder",
        "f",
        "--vary=d=1",
        "e=2",
        "--x",
    )
    assert shared_words(words) == ("--a", "1", "--plain", "--x")


def options(**given):
    from assay.cli.train import TrainOptions

    return TrainOptions(**given)


def test_every_seed_of_every_combination(assay, mine):
    asked = Study(recipe="mine.py:tiny", args=("--seeds", "2", "--vary", "stages.0.groups=2,3", "--stages.0.steps", "1"))
    made = multi_run.members_of(asked, options(seeds="2", vary=("stages.0.groups=2,3",)))
    assert [m.name for m in made] == ["groups=2,seed-0", "groups=2,seed-1", "groups=3,seed-0", "groups=3,seed-1"]
    assert [(m.group, m.run.seed, m.run.stages[0].groups, m.run.stages[0].steps) for m in made] == [
        ("groups=2", 0, 2, 1),
        ("groups=2", 1, 2, 1),
        ("groups=3", 0, 3, 1),
        ("groups=3", 1, 3, 1),
    ]
    assert made[3].words == ("mine.py:tiny", "--stages.0.steps", "1", "--stages.0.groups", "3", "--seed", "1")
    one = multi_run.members_of(Study(recipe="mine.py:tiny", args=()), options(vary=("model.kind=Scratch",)))
    assert [m.name for m in one] == ["kind=Scratch"] and "--seed" not in one[0].words


def test_the_same_command_goes_on_and_another_begins_anew(assay, mine):
    def place(*args):
        asked = Study(recipe="mine.py:tiny", args=args)
        found = multi_run.folder_for(asked, multi_run.members_of(asked, options(seeds="1")))
        return str(found), asked

    folder, asked = place("--seeds", "1", "--plain")
    assert folder == "runs/tiny-study-1"
    Path(folder).mkdir(parents=True)
    assert place("--seeds", "1")[0] == "runs/tiny-study-2"  # what is there is nobody's
    Path(folder, "study.json").write_text(json.dumps({"recipe": asked.recipe, "args": asked.args}))
    assert place("--seeds", "3", "--no-report", "--at-once", "2")[0] == folder
    assert place("--seeds", "1", "--stages.0.steps", "9")[0] == "runs/tiny-study-2"
    Path(folder, "seed-0").mkdir()
    Path(folder, "seed-0", "run.toml").write_text("seed = 4")  # the recipe has changed since
    assert place("--seeds", "1")[0] == "runs/tiny-study-2"
    Path(folder, "study.json").write_text("{}")
    with pytest.raises(CheckpointError, match="is damaged"):
        Study.read(Path(folder))
    assert place("--seeds", "1")[0] == "runs/tiny-study-2"


def test_options_of_one_run_are_refused_for_several(assay, tmp_path):
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "study.json").write_text('{"recipe": "quickstart", "args": ["--seeds", "2"]}')
    said = assay("resume", "all", "--steps", "3")
    assert said.code == 2 and "all holds several runs; --steps and --ranks are for one" in said.err


def test_a_folder_keeps_the_runs_of_the_command_before(assay, mine, tmp_path):
    """Other arms in the same folder join the table; other settings are refused, and the first study's files stay."""

    def ask(recipe, *args):
        asked = Study(recipe=recipe, args=args)
        own, _ = multi_run.settle(multi_run.TrainOptions, recipe, args, "assay train")
        return asked, multi_run.members_of(asked, own)

    folder = tmp_path / "all"
    asked, members = ask("mine.py:tiny", "--vary", "stages.0.groups=2,3")
    assert multi_run.with_earlier(asked, members, folder) == (asked, members)
    for member in members:
        (folder / member.name).mkdir(parents=True)
        (folder / member.name / "run.toml").touch()
    multi_run.storage.write_json(folder / "study.json", multi_run.asdict(asked))
    again, others = multi_run.with_earlier(*ask("mine.py:tiny", "--vary", "stages.0.groups=3,4"), folder)
    assert [m.name for m in others] == ["groups=3", "groups=4", "groups=2"]
    assert again.earlier == (asked.args,)
    multi_run.storage.write_json(folder / "study.json", multi_run.asdict(again))
    assert Study.read(folder) == again
    for name in ("groups=4",):
        (folder / name).mkdir()
        (folder / name / "run.toml").touch()
    third, found = multi_run.with_earlier(*ask("mine.py:tiny", "--vary", "stages.0.groups=5"), folder)
    assert [m.name for m in found] == ["groups=5", "groups=3", "groups=4", "groups=2"]
    assert third.earlier == (again.args, asked.args)
    (folder / "groups=4" / "run.toml").write_text("seed = 4")
    before = (folder / "study.json").read_text()
    said = assay("train", "mine.py:tiny", "--vary", "stages.0.groups=4", "--folder", folder)
    assert said.code == 2 and "holds a run of other settings" in said.err
    assert (folder / "study.json").read_text() == before
    with pytest.raises(
        ConfigError, match=r"all holds runs of another command \(groups=2, groups=3, groups=4: assay train mine.py"
    ):
        multi_run.with_earlier(*ask("mine.py:tiny", "--vary", "stages.0.groups=6", "--stages.0.steps", "1"), folder)


# ---- what is seen


@pytest.fixture
def members():
    run = quickstart()
    run = replace(run, stages=(replace(run.stages[0], steps=10),))
    return [StudyRun(name=f"seed-{s}", group="", run=run, words=("quickstart",)) for s in (0, 11)]


def test_lines(members, capsys):
    lines = PlainStudyView(members)
    lines.state("seed-0", State.WAITING, "")
    lines.state("seed-0", State.RUNNING, "base")
    lines.state("seed-11", State.WAITING, "process 7 works on it")
    lines.log("seed-0", 0, {"eval/greedy/all": 0.25})
    for step in (1, 2):
        lines.log("seed-0", step, {"reward/mean": 0.5})
    lines.state("seed-0", State.FAILED, "no memory")
    lines.close()
    said = capsys.readouterr().out.splitlines()
    assert said[:3] == [
        "seed-0   building its base, or reading it",
        "seed-11  waiting: process 7 works on it",
        "seed-0   step 0/10  held-out greedy 0.250",
    ]
    assert said[3].startswith("seed-0   step 2/10  reward 0.500  held-out greedy 0.250  left ") and len(said) == 5
    assert said[4] == "seed-0   failed: no memory"


def test_the_board(members):
    from rich.console import Console

    out = io.StringIO()
    board = StudyTable(members, "quickstart · all", Console(file=out, width=90, force_terminal=True))
    board.state("seed-0", State.RUNNING, "")
    board.log("seed-0", 0, {"eval/greedy/all": 0.25})
    board.log("seed-0", 4, {"eval/greedy/all": 0.5, "reward/mean": 0.75})
    plain = io.StringIO()
    Console(file=plain, width=90).print(board.table())
    assert "seed-0 running 4/10 0.500 0.750 0:0" in flat(plain.getvalue())  # of fewer items than the first
    board.log("seed-0", 10, {"eval/greedy/all": 0.5, "reward/mean": 0.75})
    board.close()
    plain = io.StringIO()
    Console(file=plain, width=90).print(board.table())
    text = flat(plain.getvalue())
    assert "quickstart · all" in text
    assert "seed-0 running 10/10 0.250 → 0.500 0.750 0:0" in text and "seed-11 waiting 0/10 – –" in text


def test_the_table_and_the_exit_code(capsys, tmp_path):
    def one(seed, state, group="", **more):
        return RunEnding(name=f"{group}seed-{seed}", group=group, seed=seed, state=state, **more)

    good = [one(s, State.FINISHED, base=0.5, greedy=0.8 + s / 10, sampled=0.7, digest="abcdefghij") for s in (0, 1)]
    assert print_summary(good, tmp_path) == 0
    said = capsys.readouterr()
    assert "0.850 [0.215, 1.000]" in said.out and "abcdefgh" in said.out and "abcdefghi" not in said.out
    assert said.err == "" and f"numbers: {tmp_path / 'results.json'}" in said.out
    assert print_summary([good[0], one(5, State.STOPPED, "b", step=3)], tmp_path) == 130
    said = capsys.readouterr()
    assert "mean of b" in said.out and f"1 of 2 runs did not finish; continue with: assay resume {tmp_path}" in said.err
    assert print_summary([one(0, State.FAILED, error="no memory"), one(1, State.STOPPED)], tmp_path) == 1
    assert f"seed-0 failed: no memory ({tmp_path / 'seed-0'}.log)" in capsys.readouterr().err


def test_values_that_vary_are_compared_seed_by_seed_and_few_seeds_are_said(capsys, tmp_path):
    def ended(group, values):
        return [
            RunEnding(name=f"{group},seed-{s}", group=group, seed=s, state=State.FINISHED, base=0.5, greedy=v, sampled=0.75)
            for s, v in enumerate(values)
        ]

    assert print_summary([*ended("x=a", (0.5, 0.7)), *ended("x=b", (0.6, 0.9))], tmp_path) == 0
    out = flat(capsys.readouterr().out)
    assert "x=b - x=a 2 +0.150 [-0.485, +0.785] +0.000" in out
    assert "[0.750, 0.750]" not in out and "[0.500, 0.500]" not in out and "so few seeds show no spread" in out
    assert "warning: 2 seeds are few" in out and "--seeds 5 or more" in out
    print_summary([*ended("x=a", (0.5,)), *ended("x=b", (0.6,))], tmp_path)
    out = flat(capsys.readouterr().out)
    assert "x=b - x=a 1 +0.100 +0.000" in out and "warning: 1 seed says nothing of others" in out
    print_summary(ended("", (0.5, 0.6, 0.7, 0.8, 0.9)), tmp_path)
    out = capsys.readouterr().out
    assert "warning" not in out and "difference" not in out


# ---- kills


def killed(number, whom):
    """Goes on with two seeds, kills ``whom`` ten steps later; the exit code of the command."""
    lines = Path("all", "seed-0", "metrics.jsonl")
    words = [sys.executable, "-m", "assay", "train", "mine.py:based", "--seeds", "2", "--folder", "all", "--no-report"]
    wanted = _steps(lines) + 10
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while _steps(lines) < wanted:
        time.sleep(0.02)
        assert process.poll() is None
    os.kill(process.pid if whom == "all" else int(Path("all", "seed-0", ".lock").read_text()), number)
    return process.wait()


def _steps(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.mark.prove
def test_kills_of_one_and_of_all_lose_nothing(assay, mine, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    mine.write_text(mine.read_text() + BASED)
    for seed in (0, 1):
        assert assay("train", "mine.py:based", "--seed", seed, "--folder", f"alone/seed-{seed}", "--no-report").code == 0
    assert len(list(Path("cache", "base").glob("base-*/done.json"))) == 1
    shutil.rmtree("cache/base")
    assert killed(signal.SIGKILL, "one") == 1
    assert digests("all") == {"seed-1": digests("alone")["seed-1"]}
    assert killed(signal.SIGKILL, "all") == -9
    assert killed(signal.SIGINT, "all") == 130
    said = assay("resume", "all", "--no-report")
    assert said.code == 0, said.err + said.out
    assert digests("all") == digests("alone")
    assert len(list(Path("cache", "base").glob("base-*/done.json"))) == 1  # one for all seeds


BASED = '''
from assay.train.models import Built
from assay.train.stages import WarmUp

def based():
    """From one base, whatever the seed."""
    start = tiny()
    base = replace(start, name="base", stages=(WarmUp(steps=20, batch=4, demonstrations=8, levels=(1,)),))
    run = replace(start, name="based", model=Built(run=base), stages=(replace(start.stages[0], steps=120),), checkpoint_every=15)
    return replace(run, evaluation=replace(run.evaluation, every=40))
'''
