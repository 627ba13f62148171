"""Short options, their values in the help, files of what differs from a recipe, and all mistakes told at once."""

import tomllib
from pathlib import Path

import pytest
from cli_support import flat

TWO = '''
from dataclasses import replace
from mine import tiny

def twice():
    """Two stages of reinforcement learning."""
    run = tiny()
    return replace(run, stages=run.stages * 2)

def shown():
    """No stage of reinforcement learning."""
    from assay.recipes import base
    return base()
'''


def settings(said):
    assert said.code == 0, said.err
    return tomllib.loads(said.out)


# ---- aliases ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("--lr 1e-3", "--stages.0.learner.optimizer.lr 1e-3"),
        ("--learning_rate=1e-3", "--stages.0.learner.optimizer.lr 1e-3"),
        ("--num-generations 4 --batch-size 8", "--stages.0.group-size 4 --stages.0.groups 8"),
        ("--objective gspo", "--stages.0.objective.kind gspo"),
        ("--objective grpo --kl 0.01", "--stages.0.objective grpo --stages.0.objective.kl 0.01"),
        ("--kl 0.01 --objective grpo", "--stages.0.objective grpo --stages.0.objective.kl 0.01"),
        ("--beta 0.01", "--stages.0.objective.terms.0.kind Kl --stages.0.objective.terms.0.coef 0.01"),
        (
            "--objective gspo --kl 0.01",
            "--stages.0.objective gspo --stages.0.objective.terms.0.kind Kl --stages.0.objective.terms.0.coef 0.01",
        ),
        ("--kl 0", ""),
        (
            "--lora-rank 4 --lora-alpha 8",
            "--stages.0.learner.adapter.kind Lora --stages.0.learner.adapter.rank 4 --stages.0.learner.adapter.alpha 8",
        ),
        ("--lora-rank 0", ""),
        ("--model somewhere", "--model.kind Folder --model.path somewhere"),
        ("--steps 7", "--stages.0.steps 7"),
        (
            "--lr-scheduler-type cosine --gradient-checkpointing",
            "--stages.0.learner.schedule.kind cosine --stages.0.learner.schedule.start 0 --stages.0.learner.schedule.floor 0 "
            "--stages.0.learner.checkpointing",
        ),
        (
            "--lr-schedule constant",
            "--stages.0.learner.schedule.kind constant --stages.0.learner.schedule.start 0 --stages.0.learner.schedule.floor 0",
        ),
        ("--lr-schedule linear", ""),
        (
            "--lr-schedule cosine --stages.0.learner.schedule.floor 0.2",
            "--stages.0.learner.schedule.kind cosine --stages.0.learner.schedule.start 0 --stages.0.learner.schedule.floor 0.2",
        ),
        ("--temperature 0.5 --stages.0.groups 4 --groups 8", "--sampling.temperature 0.5 --stages.0.groups 8"),
    ],
)
def test_an_alias_is_the_setting_that_it_stands_for(assay, short, full):
    from assay.cli.explain import ExplainOptions
    from assay.cli.recipe import settle

    def run(words):
        return settle(ExplainOptions, "quickstart", words.split(), "assay explain")[1]

    assert run(short) == run(full)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("constant", "constant at 0.0005"),
        ("cosine", "falls along a cosine from 0.0005, to 0 at update 400"),
        ("linear", "stays at 0.0005, and from update 200 of 400 falls linearly to 5e-05"),
    ],
)
def test_explain_says_what_a_schedule_comes_to(assay, word, said):
    assert f"learning rate of stage 0: {said}\n" in assay("explain", "quickstart", "--lr-schedule", word).out


def test_the_divergence_of_a_term_is_changed_or_taken_away(assay, mine):
    added = ("explain", "kl.toml", "--toml")
    mine.with_name("kl.toml").write_text(assay("explain", "mine.py:tiny", "--objective", "grpo", "--kl", "0.5", "--toml").out)
    terms = settings(assay(*added))["stages"][0]["objective"]["terms"]
    assert [t["coef"] for t in terms] == [0.5]
    assert settings(assay(*added, "--kl", "0.25"))["stages"][0]["objective"]["terms"][0]["coef"] == 0.25
    assert settings(assay(*added, "--beta", "0"))["stages"][0]["objective"]["terms"] == []


def test_where_no_stage_or_several_are_meant_the_full_options_are_named(assay, mine):
    mine.with_name("mine_two.py").write_text(TWO)
    said = assay("explain", "mine_two.py:twice", "--lr", "0.1")
    assert said.code == 2
    assert "tiny has 2 stages of it (0 Reinforce, 1 Reinforce): --stages.0.learner.optimizer.lr or --stages.1.learner" in said.err
    said = assay("explain", "mine_two.py:shown", "--group-size", "4")
    assert "has no stage of it (0 WarmUp): --stages.0.group-size" in said.err


def test_a_run_by_aliases_is_recorded_as_typed_and_digests_alike(assay, mine, tmp_path):
    common = ("--plain", "--no-report", "--steps", "1")
    assert assay("train", "mine.py:tiny", *common, "--out", "a", "--group_size", "4", "--lr", "1e-3").code == 0
    full = ("--stages.0.group-size", "4", "--stages.0.learner.optimizer.lr", "1e-3")
    assert assay("train", "mine.py:tiny", *common, "--folder", "b", *full).code == 0
    assert (tmp_path / "a/done.json").read_text() == (tmp_path / "b/done.json").read_text()
    assert (tmp_path / "a/run.toml").read_text() == (tmp_path / "b/run.toml").read_text()
    assert assay("resume", "a", "--steps", "2", "--plain", "--no-report").code == 0


# ---- help -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["train", "explain"])
def test_help_is_one_screen_with_the_values_of_the_recipe(assay, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    said = assay(command, "quickstart", "--lr", "0.25", "--help")
    lines = said.out.splitlines()
    assert said.code == 0 and len(lines) <= 60 and max(map(len, lines)) <= 80
    rows = {line.split()[0]: flat(line) for line in lines if line.startswith("  --")}
    assert rows["--lr"] == "--lr FLOAT 0.25 learning rate (--learning-rate)"
    assert rows["--group-size"] == "--group-size INT 8 rollouts per prompt (--num-generations)"
    assert rows["--steps"].startswith("--steps INT 400 ")
    assert "--help-all" in said.out


@pytest.mark.parametrize("recipe", ["base", "tools", "mixed", "gsm8k-lora"])
def test_every_recipe_has_a_screen(assay, recipe):
    said = assay("train", recipe, "--help")
    assert said.code == 0 and len(said.out.splitlines()) <= 60


def test_help_of_a_word(assay):
    said = assay("train", "quickstart", "--help", "group-size")
    assert said.code == 0
    assert "--stages.0.group-size INT" in said.out and "--group-size, --num-generations INT" in said.out
    assert "--stages.0.learner" not in said.out
    shown = assay("train", "quickstart", "--help", "sampler").out
    assert "--stages.0.sampler.kind KIND" in shown and "one of AgentProgram, Branching," in " ".join(shown.split())
    assert "--stages.0.sampler.command" in shown and "AgentProgram: program and arguments" in " ".join(shown.split())
    assert "one of Again," in assay("train", "quickstart", "--help", "curriculum").out
    said = " ".join(assay("train", "quickstart", "--help", "dynamic sampling").out.split())
    assert "dynamic-sampling, " not in said and "--stages.0.filter.kind Mixed --stages.0.refill.kind Refill" in said
    assert "no option of assay train quickstart is about 'xyzzy'" in assay("train", "quickstart", "--help", "xyzzy").out


def test_help_in_spite_of_a_mistake(assay):
    assert "--lr FLOAT" in assay("train", "quickstart", "--lrr", "3", "--help").out


# ---- files ------------------------------------------------------------------------------------------------------------


def test_files_hold_what_differs_and_the_command_line_wins(assay, mine):
    mine.with_name("a.toml").write_text(
        'recipe = "mine.py:tiny"\nlr = 0.5\nseed = 3\n[sampling]\ntemperature = 0.5\n'
        "[[stages]]\nsteps = 9\ngroup_size = 4\n[stages.curriculum]\nleast = 0.25\nfirm = true\ntilt = { x = 0.5 }\n"
    )
    mine.with_name("b.toml").write_text('group_size = 8\n[stages.0.curriculum]\npace = "quick"\n')
    files = ("--config", "a.toml", "--config", "b.toml")
    found = settings(assay("explain", *files, "--temperature", "2", "--toml"))
    stage = found["stages"][0]
    assert (found["seed"], found["sampling"]["temperature"], stage["steps"], stage["group_size"]) == (3, 2.0, 9, 8)
    mine_too = stage["curriculum"]
    assert (mine_too["least"], mine_too["firm"], mine_too["pace"], mine_too["tilt"]) == (0.25, True, "quick", {"x": 0.5})
    assert stage["learner"]["optimizer"]["lr"] == 0.5
    assert settings(assay("explain", "a.toml", "--config=b.toml", "--temperature", "2", "--toml")) == found


def test_a_file_builds_on_another(assay, mine):
    mine.with_name("a.toml").write_text('recipe = "mine.py:tiny"\nlr = 0.5\n[[stages]]\nsteps = 9\ngroup_size = 4\n')
    more = mine.parent / "more"
    more.mkdir()
    (more / "b.toml").write_text('recipe = "../a.toml"\n[[stages]]\ngroup_size = 8\n')
    (more / "c.toml").write_text('recipe = "b.toml"\nlr = 0.25\n')
    found = settings(assay("explain", "more/c.toml", "--steps", "3", "--toml"))
    stage = found["stages"][0]
    assert (stage["steps"], stage["group_size"], stage["learner"]["optimizer"]["lr"]) == (3, 8, 0.25)
    assert settings(assay("explain", "mine.py:tiny", "--config", "more/c.toml", "--steps", "3", "--toml")) == found
    mine.with_name("a.toml").write_text('recipe = "more/c.toml"\n')
    assert "builds on itself" in assay("explain", "more/c.toml").err


def test_a_file_that_explain_printed_changes_nothing(assay, mine):
    whole = assay("explain", "mine.py:tiny", "--toml").out
    mine.with_name("whole.toml").write_text(whole)
    assert assay("explain", "mine.py:tiny", "--config", "whole.toml", "--toml").out == whole


def test_what_no_words_can_say_is_json(assay, mine):
    word = 'json:{"sort": [1, 2]}'
    found = settings(assay("explain", "mine.py:tiny", f"--evaluation.levels={word}", "--stages.0.levels", word, "--toml"))
    assert found["evaluation"]["levels"] == found["stages"][0]["levels"] == {"sort": [1, 2]}
    said = assay("explain", "mine.py:tiny", "--evaluation.levels=json:{", "--lr", "json:[1]")
    assert "what follows json: is no JSON" in said.err and "--lr: a list where float is declared" in said.err


def test_a_whole_number_in_a_file_is_the_float_that_it_is_on_the_command_line(assay, mine):
    mine.with_name("a.toml").write_text("lr = 1\n")
    words = ("explain", "mine.py:tiny", "--toml")
    assert assay(*words, "--config", "a.toml").out == assay(*words, "--lr", "1").out


def test_a_later_layer_that_replaces_a_part_drops_what_earlier_ones_said_of_it(assay, mine):
    mine.with_name("a.toml").write_text('[[stages]]\nobjective = { kind = "ppo", kl = 0.5 }\ncurriculum = { least = 0.5 }\n')
    words = ("explain", "mine.py:tiny", "--config", "a.toml", "--toml")
    assert settings(assay(*words))["stages"][0]["curriculum"]["least"] == 0.5
    found = settings(assay(*words, "--stages.0.curriculum.kind", "Uniform", "--objective", "gspo"))["stages"][0]
    assert found["curriculum"]["kind"].endswith(":Uniform")
    assert found["learner"]["heads"] == [] and found["objective"]["policy"]["ratio"]["level"] == "sequence_mean"


@pytest.mark.slow
def test_a_run_from_a_file_does_not_need_it_again(assay, mine, tmp_path):
    text = 'recipe = "mine.py:rewarded"\ngroup_size = 3\nseed = 5\n[evaluation.levels]\nrows = [1]\n'
    mine.with_name("a.toml").write_text(text)
    said = assay("train", "--config", "a.toml", "--folder", "r", "--plain", "--no-report", "--steps", "1")
    assert said.code == 0, said.err
    mine.with_name("a.toml").unlink()
    assert assay("resume", "r", "--steps", "2", "--plain", "--no-report").code == 0
    assert '"--stages.0.group-size=3"' in (tmp_path / "r/recipe.json").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lr = 'high'", "a.toml: lr='high' is a str; declared is float"),
        ("grup_size = 3", "a.toml: grup_size: there is no such option; did you mean group_size?"),
        ("[sampling]\ntemprature = 1.0", "did you mean sampling.temperature?"),
        ("folder = 'x'", "a.toml: folder: it belongs to the command, not to a file of settings"),
        ("objective = 'gpro'", "did you mean 'grpo'?"),
        ("a = = 1", "a.toml: not TOML"),
        ("recipe = 3", "a.toml: recipe = 3; give the name of a recipe"),
        ("seed = 'x'", "a.toml: seed 'x' is no whole number"),
        ("[[stages]]\ngroups = 0", "a.toml: stages.0.groups: Reinforce.groups=0"),
    ],
)
def test_mistakes_in_a_file_name_file_and_key(assay, mine, text, said):
    mine.with_name("a.toml").write_text(text)
    got = assay("train", "mine.py:tiny", "--config", "a.toml")
    assert got.code == 2 and said in got.err, got.err
    assert not (mine.parent / "runs").exists()


def test_files_that_are_not_there(assay, mine):
    assert "cannot read settings from gone.toml" in assay("train", "mine.py:tiny", "--config", "gone.toml").err
    assert "--config needs a value" in assay("train", "mine.py:tiny", "--config").err
    mine.with_name("a.toml").write_text("lr = 1.0")
    assert "give the recipe first" in assay("train", "--config", "a.toml").err


# ---- mistakes ---------------------------------------------------------------------------------------------------------


def test_all_mistakes_over_files_and_options_are_told_at_once(assay, mine):
    mine.with_name("a.toml").write_text("lr = 'high'\n[[stages]]\ngrups = 3\n[sampling]\ntop_p = 7.0\n")
    got = assay(
        "train", "mine.py:tiny", "--config", "a.toml", "--objectve", "gspo", "--group-size", "0", "--steps", "0",
        "--stages.0.epochs", "x", "--seed", "y", "--num_train_epochs", "1",
    )  # fmt: skip
    assert got.code == 2
    first, *lines = got.err.rstrip().split("\n  ")
    told = "\n".join(lines)
    assert first == f"assay: {len(lines)} settings are wrong"
    for said in (
        "--seed 'y' is no whole number",
        "a.toml: lr=",
        "a.toml: stages.0.grups: ",
        "a.toml: sampling.top_p: Sampling.top_p must be in (0, 1], got 7.0",
        "--objectve: there is no such option; did you mean --objective?",
        "--group-size 0: Reinforce.group_size=0",
        "--steps 0: give the number of steps",
        "--stages.0.epochs x: 'x' is not a whole number",
        "--num_train_epochs is another library's; in assay this is --steps",
    ):
        assert said in told
    assert len(lines) == 9
    assert not (mine.parent / "runs").exists()


def test_sampler_processes_by_short_options(assay) -> None:
    said = assay("explain", "quickstart", "--samplers", "2", "--eta", "3", "--age-policy", "drop", "--keep-log", "--json")
    found = said.json["settings"]["stages"][0]["asynchronous"]
    assert {k: found[k] for k in ("samplers", "eta", "policy", "runtime", "keep_log")} == {
        "samplers": 2,
        "eta": 3,
        "policy": "drop",
        "runtime": "process",
        "keep_log": True,
    }
    assert said.json["derived"]["memory"]["samplers"] > 500 << 20
    assert "asynchronous" not in assay("explain", "quickstart", "--samplers", "0", "--json").json["settings"]["stages"][0]
    text = assay("explain", "quickstart", "--max-staleness", "2").out
    assert "sampling beside learning in stage 0: 1 process of this machine samples while the learner works, at most 96" in text


def test_sampler_processes_that_cannot_be_are_refused_in_one_line(assay) -> None:
    for words, why in {
        ("--samplers", "2", "--lag", "1"): "use one of them",
        ("--eta", "-1"): "--eta -1: Asynchronous.eta=-1; use a number from 0 on",
        ("--samplers", "two"): "--samplers two",
        ("--age-policy", "waits"): "wait",
        ("--samplers", "1", "--objective", "reinforce"): "Reinforce.asynchronous.eta=1: rollouts come from older weights",
    }.items():
        said = assay("explain", "quickstart", *words)
        assert said.code == 2 and why in said.err and said.err.count("\n") == 1, said.err


@pytest.mark.slow
def test_a_replay_says_whether_every_number_is_the_same(assay, mine) -> None:
    short = ("--steps", "2", "--plain", "--no-report", "--objective", "grpo", "--folder", "run")
    said = assay("train", "mine.py:tiny", *short, "--samplers", "1", "--keep-log")
    assert said.code == 0, said.err
    said = assay("runs", "replay", "run", "--out", "again", "--json")
    assert said.code == 0 and said.json["equal"] and said.json["steps"] == 2 and Path("again/done.json").exists()
    said = assay("runs", "replay", "run")
    assert "2 of 2 steps replayed: the same digest, " in said.out
    metrics = Path("run/metrics.jsonl")
    metrics.write_text(metrics.read_text().replace('"reward/mean": ', '"reward/mean": 1', 3))
    said = assay("runs", "replay", "run")
    assert said.code == 1 and "2 of 2 steps replayed, and they differ: step 1: reward/mean was 1" in said.out
