"""Train, resume, eval and sample on the smallest run."""

import asyncio
import json
import os
import re
import shutil
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from cli_support import flat

from assay.cli import evaluate, train
from assay.cli.asked_model import sampling_of
from assay.cli.evaluation_output import Evaluated, pairs_of, print_evaluations
from assay.core.errors import ConfigError, EngineError, MissingExtraError, RewardError, how_to_install
from assay.core.rollout import Sampling
from assay.measure.trackers import tracker
from assay.train import preflight
from assay.train.driver import RunOutcome


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run and the file it came from, made once."""
    from cli_support import MINE

    from assay.cli import main, user_files

    root = tmp_path_factory.mktemp("finished")
    (root / "mine.py").write_text(MINE)
    here, path = os.getcwd(), list(sys.path)
    os.chdir(root)
    try:
        assert main(["train", "mine.py:tiny", "--plain", "--stages.0.steps", "2"]) == 0
    finally:
        os.chdir(here)
        user_files.USER_FILES.clear()
        sys.modules.pop("mine", None)
        sys.path[:] = path
    return root


@pytest.fixture
def done(finished, tmp_path):
    """A copy of the finished run, in the test's own folder."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    folder = tmp_path / "runs" / "tiny-1"
    record = (folder / "recipe.json").read_text()
    (folder / "recipe.json").write_text(record.replace(str(finished), str(tmp_path)))
    return folder


def test_a_run_leaves_its_record(done):
    for name in ("run.toml", "versions.json", "metrics.jsonl", "evals.jsonl", "LATEST", "report.html", "model", "start"):
        assert (done / name).exists()
    record = json.loads((done / "recipe.json").read_text())
    assert record["recipe"] == "mine.py:tiny"
    assert record["args"] == ["--plain", "--stages.0.steps", "2"]
    assert [f.rpartition("/")[2] for f in record["files"]] == ["mine.py"]


def test_more_steps_for_a_finished_run(assay, done):
    said = assay("resume", done, "--steps", "4", "--plain", "--no-report", "--profile")
    assert said.code == 0, said.err
    assert "done: 4 steps" in said.out
    assert re.search(r"^a step of \d+ ms: .*\brollout \d+ %", said.out, re.MULTILINE)
    assert len((done / "metrics.jsonl").read_text().splitlines()) == 5  # the first evaluation, then four steps
    again = assay("resume", done, "--plain", "--no-report", "--profile")
    assert again.code == 0 and "a step of" in again.out
    assert assay("resume", done, "--plain", "--no-report").code == 0  # the record follows: nothing left to do


def test_resume_of_what_is_no_run(assay, tmp_path):
    said = assay("resume", "nothing")
    assert said.code == 2
    assert "nothing does not exist; 'assay runs list'" in said.err
    assert assay("resume", "x", "--steps", "0").err == "assay: --steps 0: give the new number of steps, at least 1\n"


@pytest.mark.slow
def test_a_reward_inside_a_recipe_is_found_again(assay, mine):
    said = assay("train", "mine.py:rewarded", "--plain", "--no-report", "--folder", "r", "--stages.0.steps", "1")
    assert said.code == 0, said.err
    said = assay("resume", "r", "--steps", "2", "--plain", "--no-report")
    assert (said.code, said.err) == (0, "")
    assert "step 2/2" in said.out
    assert assay("eval", "r", "--n", "2", "--per-level", "2", "--json").json["family"] == "rows"
    (mine.parent / "r" / "recipe.json").unlink()
    said = assay("eval", "r")
    assert said.code == 2
    assert "where no import can find it" in said.err


def test_a_folder_in_use_is_left_alone(assay, done):
    before = (done / "run.toml").read_text()
    said = assay("train", "mine.py:tiny", "--folder", done)
    assert said.code == 2
    assert f"{done} holds a run already: go on with it by 'assay resume {done}', or choose another folder" in said.err
    assert (done / "run.toml").read_text() == before


def test_recipe_comes_first(assay):
    said = assay("train", "--plain", "quickstart")
    assert said.code == 2
    assert "give the recipe first: assay train RECIPE --plain quickstart" in said.err
    assert assay("explain").code == 2
    assert "quickstart" in assay("train", "--help").out


def test_folders_are_numbered(tmp_path):
    assert train.fresh_folder(tmp_path / "runs", "a") == tmp_path / "runs" / "a-1"
    for name in ("a-1", "a-9", "a-x", "ab-12"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    assert train.fresh_folder(tmp_path / "runs", "a") == tmp_path / "runs" / "a-10"


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(assay, mine, monkeypatch):
    from assay.train import progress_view

    real = progress_view.PlainView.log

    def log(self, step, metrics):
        real(self, step, metrics)
        if step == 1:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(progress_view.PlainView, "log", log)
    said = assay("train", "mine.py:tiny", "--plain", "--folder", "r", "--no-report")
    assert said.code == 130
    assert "stopped after step 1; continue with: assay resume r" in said.out
    monkeypatch.setattr(progress_view.PlainView, "log", real)
    said = assay("resume", "r", "--plain", "--no-report")
    assert said.code == 0
    assert "done: 3 steps" in said.out


def test_ctrl_c_in_the_first_evaluation_stops_it_and_in_a_later_one_says_what_it_waits_for(assay, mine, monkeypatch):
    from assay.train import evaluator

    real, seen = evaluator.evaluate, []

    async def slow(player, pool, tasks, n):
        seen.append(len(tasks))
        if len(seen) == at:
            os.kill(os.getpid(), signal.SIGINT)
            if at == 1:
                await asyncio.sleep(600)  # an agent that works
        return await real(player, pool, tasks, n)

    monkeypatch.setattr(evaluator, "evaluate", slow)
    at = 1
    said = assay("train", "mine.py:tiny", "--plain", "--folder", "r", "--no-report")
    assert said.code == 130 and "stopped after step 0; continue with: assay resume r" in said.out and len(seen) == 1
    seen.clear()
    at = 3  # the greedy rollouts behind the step that is evaluated next
    said = assay("resume", "r", "--plain", "--no-report")
    assert said.code in (0, 130) and f"and its evaluation of {seen[2]} items, with a checkpoint" in said.err
    monkeypatch.setattr(evaluator, "evaluate", real)
    assert "done: 3 steps" in assay("resume", "r", "--plain", "--no-report").out


def work(outcome, folder, own=None):
    def job(watch):
        if isinstance(outcome, BaseException):
            watch(object(), folder, 0)
            raise outcome
        return outcome

    return train._work(job, folder, own or train.TrainOptions(plain=True), lambda: None)


def test_how_a_job_can_end(done, monkeypatch, capsys):
    monkeypatch.setattr(train, "view", lambda *args: None)
    monkeypatch.setattr(train, "title_of", lambda *args: "")
    monkeypatch.setattr(train, "tell_settings", lambda *args: None)
    assert work(KeyboardInterrupt(), done) == 130
    assert capsys.readouterr().err == f"stopped; continue with: assay resume {done}\n"
    assert work(KeyboardInterrupt(), done / "nothing") == 130
    assert "before anything was done" in capsys.readouterr().err
    (done / "report.html").unlink()
    assert work(EngineError("broke"), done) == 1
    told = capsys.readouterr().err
    assert told == f"assay: broke\nthe run stopped with an error; once mended, continue with: assay resume {done}\n"
    assert (done / "report.html").exists()
    assert work(RewardError("yours"), done) == 1  # mended, it is other code
    assert capsys.readouterr().err.endswith(f"once your code is mended, continue with: assay resume {done} --allow-inexact\n")
    with pytest.raises(EngineError):
        work(EngineError("broke"), done / "nothing")  # its folder was freed again
    assert capsys.readouterr().err == ""
    assert work(RunOutcome(folder=done, step=1, finished=False), done) == 130
    assert f"stopped after step 1; continue with: assay resume {done}" in capsys.readouterr().out


def test_a_task_cut_off_by_a_second_ctrl_c_is_no_news(done, capsys):
    import logging

    def job(watch):
        for error in (KeyboardInterrupt(), ValueError("news")):
            logging.getLogger("asyncio").error("Task exception was never retrieved", exc_info=error)
        raise KeyboardInterrupt

    assert train._work(job, done, train.TrainOptions(), lambda: None) == 130
    err = capsys.readouterr().err
    assert err.count("Task exception was never retrieved") == 1
    assert "ValueError: news" in err and "KeyboardInterrupt" not in err


def test_a_refusal_before_the_start_is_only_itself(done, capsys):
    def refuse(watch):
        raise ConfigError("no")

    with pytest.raises(ConfigError):
        train._work(refuse, done, train.TrainOptions(), lambda: None)
    assert capsys.readouterr().err == ""


def test_reports_that_cannot_be_written(done, monkeypatch, capsys):
    import assay.measure as measure

    own = train.TrainOptions()
    for error, said in {
        MissingExtraError("matplotlib", "report"): "pip install",
        OSError("disk full"): f"assay report {done}",
    }.items():

        def fail(folder, error=error):
            raise error

        monkeypatch.setattr(measure, "write_report", fail, raising=False)
        assert train._report(done, own) is None
        assert said in capsys.readouterr().err
    assert train._report(done / "nothing", own) is None
    assert train._report(done, train.TrainOptions(no_report=True)) is None


def test_a_missing_extra_is_said_before_anything_starts(assay, mine, monkeypatch):
    monkeypatch.setattr(tracker, "find_spec", lambda name: None)
    said = assay("train", "mine.py:tiny", "--wandb", "--folder", "r")
    assert said.code == 1
    assert "pip install 'assay-rl[wandb]'" in said.err
    assert not (mine.parent / "r").exists()


@pytest.mark.parametrize("command", ["train", "explain"])
def test_an_adapter_without_peft_is_refused_before_anything_is_built(assay, mine, monkeypatch, command):
    monkeypatch.setattr(preflight, "find_spec", lambda name: None if name == "peft" else find_spec(name))
    folder = ("--folder", "r") if command == "train" else ()
    said = assay(command, "mine.py:tiny", "--stages.0.learner.adapter.kind", "Lora", *folder)
    assert said.code == 1 and said.out == ""
    assert f"peft is not installed: {how_to_install('lora')}" in said.err
    assert not (mine.parent / "r").exists()


# ---- asking -----------------------------------------------------------------------------------------------------------


def test_eval_of_a_run_takes_its_own_tasks(assay, done):
    found = assay("eval", done, "--n", "4", "--per-level", "3", "--json").json
    assert found["family"] == "sort"
    assert found["attempts"] == 4
    assert [c["level"] for c in found["cells"]] == [1, 2]
    assert list(found["all"]["metrics"]) == ["avg@4", "pass@1", "pass@2", "pass@4", "maj@2", "maj@4"]
    assert found["all"]["tasks"] == len(found["tasks"])
    again = assay("eval", done, "--n", "4", "--per-level", "3", "--json").json
    assert again == found
    text = assay("eval", done, "--n", "4", "--per-level", "3").out
    assert "avg@4" in text
    assert "pass@k, all" in text


def test_eval_against_the_start(assay, done):
    found = assay("eval", done, "-n", "2", "--per-level", "2", "--against", done / "start", "--json").json
    assert found["against"]["model"] == str(done / "start")
    assert [p["name"] for p in found["paired"]] == [
        "all avg@2",
        "all pass@1",
        "all pass@2",
        "all maj@2",
        "sort level 1 avg@2",
        "sort level 2 avg@2",
    ]
    assert all(p["better"] + p["worse"] + p["same"] > 0 for p in found["paired"])
    bounds = found["boundary"]
    assert bounds["k"] == 1 and bounds["problems"] == 4 and bounds["expansion"]["floor"] is not None
    text = assay("eval", done, "-n", "2", "--per-level", "2", "--against", done / "start").out
    assert f"{done} minus {done / 'start'}, on the same tasks" in text
    assert "of 4 tasks, solved in 1 rollouts:" in text and "expansion: solved now" in text
    same = assay("eval", done, "-n", "2", "--per-level", "2", "--against", done, "--json").json
    assert all(p["difference"]["value"] == 0 and p["p_value"] == 1 for p in same["paired"])


def test_eval_greedy_of_one_level_and_other_tasks(assay, done):
    found = assay("eval", done, "--greedy", "--levels", "2", "--per-level", "2", "--json").json
    assert list(found["all"]["metrics"]) == ["avg@1"]
    assert [c["level"] for c in found["cells"]] == [2]
    assert "avg@1" in assay("eval", done, "--greedy", "--per-level", "2", "--tasks", "mine.py:my_source").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{run}", "--greedy", "--n", "3"], "--greedy gives the same answer every time"),
        (["{run}", "--n", "0"], "--n 0: give at least 1"),
        (["{run}", "--per-level", "-1"], "--per-level -1"),
        (["{run}", "--levels", "9"], "has no level 9"),
        (["{run}", "--tasks", "srot"], "did you mean 'sort'"),
        (["nowhere"], "nowhere does not exist"),
        (["{run}", "--against", "nowhere"], "nowhere does not exist"),
        (["elsewhere"], "elsewhere is no run, so it has no tasks of its own"),
        (["{run}", "--temperature", "-1"], "temperature"),
    ],
)
def test_evaluations_that_make_no_sense(assay, done, words, said):
    shutil.copytree(done / "model", done.parents[1] / "elsewhere")
    got = assay("eval", *(w.format(run=done) for w in words))
    assert got.code == 2
    assert said in got.err


def test_samples(assay, done):
    found = assay("sample", done, "S21>", "-n", "3", "--seed", "5", "--json").json
    assert len(found["answers"]) == 3
    assert assay("sample", done, "S21>", "-n", "3", "--seed", "5").out == "\n".join(found["answers"]) + "\n"
    cold = assay("sample", done / "model", "S21>", "-n", "2", "--temperature", "0", "--max-new-tokens", "2", "--json").json[
        "answers"
    ]
    assert cold[0] == cold[1]
    assert len(cold[0]) <= 2
    for words, said in {
        ("x",): "lacks 'x'",
        ("S2>", "-n", "0"): "--n 0",
        ("S2>", "--max-new-tokens", "0"): "max_new_tokens",
    }.items():
        got = assay("sample", done, *words)
        assert got.code == 2
        assert said in got.err


def test_sampling_of_a_model_from_elsewhere():
    def options(**given):
        return evaluate.SampleOptions(model=Path("m"), prompt="p", **given)

    assert sampling_of(None, options()) is None
    assert sampling_of(None, options(temperature=0.5)).temperature == 0.5
    assert sampling_of(None, options(max_new_tokens=3)).max_new_tokens == 3
    assert sampling_of(None, options(top_p=0.5, top_k=2, min_p=0.1)) == Sampling(top_p=0.5, top_k=2, min_p=0.1)
    with pytest.raises(ConfigError, match="top_p"):
        sampling_of(None, options(top_p=0.0))


def evaluated(path, values, faults=0):
    from assay.measure import eval_items, tabulate

    items = [
        {"id": str(i), "arm": "a", "level": 1, "values": v, "answers": ["x"] * len(v), "faults": faults}
        for i, v in enumerate(values)
    ]
    return Evaluated(name=path, table=tabulate(eval_items(items)), items=items)


def test_pairs_need_a_common_metric():
    pairs = dict(pairs_of(evaluated("a", [[0, 1], [1, 1]]), evaluated("b", [[1, 1], [1, 1]])))
    assert pairs["all avg@2"].difference.value == 0.25
    assert pairs["all pass@2"].difference.value == 0
    with pytest.raises(RewardError, match="no metric in common"):
        pairs_of(evaluated("a", [[0], [1]]), evaluated("b", [[1] * 2, [1] * 2]))


def test_faults_are_said(capsys):
    from assay_tasks import SortDigits

    print_evaluations(SortDigits().name, evaluated("a", [[1, 0]], faults=2), None, [])
    assert "a: 2 rollouts without a verdict" in flat(capsys.readouterr().err)


def test_an_evaluation_without_a_verdict(assay, done, monkeypatch):
    from assay.train.policy import Policy

    monkeypatch.setattr(
        Policy, "evaluate", lambda *a, **k: [{"id": "1", "arm": "a", "level": 1, "values": [], "answers": [], "faults": 2}]
    )
    said = assay("eval", done)
    assert said.code == 1
    assert "no rollout of sort got a verdict" in said.err


def test_busy_shows_on_a_terminal_only(monkeypatch, capsys):
    from assay.cli.output import busy

    with busy("counting"):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with busy("counting"):
        pass


@pytest.mark.slow
def test_evaluation_items_among_the_prompts_stop_training_unless_allowed(assay, mine):
    (mine.parent / "eval.jsonl").write_text('{"problem": "what else?"}\n{"problem": "S34>"}\n{"problem": "s21>"}\n')
    words = ("train", "mine.py:rewarded", "--plain", "--folder", "r", "--stages.0.steps", "1", "--against", "eval.jsonl")
    said = assay(*words)
    assert said.code == 2 and not (mine.parent / "r").joinpath("run.toml").exists()
    assert "training prompts contain" in said.err and "--allow-contamination" in said.err
    assert "is the same as eval.jsonl, line " in said.err and "'assay curate IN OUT --against eval.jsonl'" in said.err
    said = assay(*words, "--allow-contamination")
    assert said.code == 0 and "contamination: " in said.err
    assert 'class="unsafe">CONTAMINATED' in (mine.parent / "r" / "report.html").read_text()
    assert "allowed by Run.contamination.mode='report'" in assay("runs", "show", "r").out
    found = assay("runs", "show", "r", "--json").json["contamination"]
    assert 0 < found["contaminated"] == found["found"] <= 2 and found["sources"][1] == {"name": "eval.jsonl", "items": 3}
    assert assay("resume", "r", "--steps", "2", "--plain", "--no-report").code == 0
    assert "--against" in assay("train").out and "Refuses to begin if training" in assay("train").out


TOOLS = '''
from dataclasses import replace
from mine import SHAPE, tiny
from assay.train.models import Scratch

def add(a: int, b: int) -> int:
    """The sum."""
    return a + b

def silent(a: int) -> int:
    return a

def roomy():
    """Room for tools in the prompt."""
    return replace(tiny(), model=Scratch(shape=replace(SHAPE, max_positions=600)))

def terse():
    """Digits alone."""
    return tiny()
'''


@pytest.mark.slow
def test_tools_are_named_by_file_or_module(assay, mine, tmp_path):
    (tmp_path / "mine_tools.py").write_text(TOOLS)
    words = ("train", "mine_tools.py:roomy", "--plain", "--no-report", "--stages.0.steps", "1", "--stages.0.sampler.tools")
    said = assay(*words, "mine_tools.py:add", "--folder", "out")
    assert said.code == 0, said.err
    assert 'name = "mine_tools:add"' in (tmp_path / "out" / "run.toml").read_text()
    small = assay(*words, "mine_tools:add", "--model.shape.max-positions", "64", "--folder", "small")
    alone = re.search(r"the description of the tools add alone has (\d+) tokens, so no task fits", flat(small.err))
    assert small.code == 2 and alone is not None, small.err
    just = str(int(alone.group(1)) + 4)  # and an answer, but no question
    small = assay(*words, "mine_tools:add", "--model.shape.max-positions", just, "--folder", "small")
    assert small.code == 2 and f"{alone.group(1)} tokens describe the tools add; shorten" in flat(small.err), small.err
    refused = assay(*words, "mine_tools:silent")
    assert refused.code == 2 and "tool 'silent' has no docstring, which is what the model reads" in flat(refused.err)
    missing = assay(*words, "mine_tools:ad")
    assert missing.code == 2 and "did you mean 'add'" in flat(missing.err)
    short = assay("train", "mine_tools.py:terse", "--stages.0.sampler.tools", "mine_tools:add")
    assert short.code == 2 and "the tokenizer's alphabet lacks" in flat(short.err)
