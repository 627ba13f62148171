"""One reader of rows: the same files train, are evaluated on, and audit a reward."""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assay.audit import read_cases
from assay.cli.sources import held_out_rows, source
from assay.core.errors import ConfigError, DataError
from assay.runtime import DecoderShape, char_tokenizer, init_model, save_model

REWARD = (
    "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
    "    return float(solution_str.strip() == ground_truth)\n"
)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Rows of verl's form as Parquet and as JSON lines, and a reward of verl's signature."""
    rows = [
        {
            "data_source": "sums",
            "prompt": [{"role": "user", "content": f"{n}+1="}],
            "reward_model": {"style": "rule", "ground_truth": str(n + 1)},
        }
        for n in range(70)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "held.parquet")
    (tmp_path / "held.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "reward.py").write_text(REWARD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("name", ["held.parquet", "held.jsonl"])
def test_a_reward_is_audited_on_rows_of_verls_form(assay, files, name):
    cases = read_cases(files / name)
    assert len(cases) == 70 and cases[3].gold == "4" and cases[3].prompt == "3+1="
    got = assay("verify", "audit", "reward.py:compute_score", "--cases", name, "--items", "4", "--no-sandbox", "--json")
    assert got.json["items"] == 4 and got.json["probes"] > 4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["held.parquet", "held.jsonl"])
def test_a_model_is_evaluated_on_all_rows_of_a_file(assay, files, name):
    model = init_model(DecoderShape(vocab_size=14), char_tokenizer("0123456789+="), seed=0)
    save_model(model, files / "model")
    words = ("eval", "model", "--tasks", name, "--greedy", "--max-new-tokens", "2")
    got = assay(*words, "--reward", "reward.py:compute_score")
    assert "64 of 70 held-out tasks of held; --per-level 0 takes all" in got.err
    found = assay(*words, "--reward", "reward.py:compute_score", "--per-level", "0", "--json").json
    assert found["per_level"] == 70 and len(found["tasks"]) == 70
    refused = assay(*words)
    assert refused.code == 2 and f"{name}: row 1 names no verifier and has no 'answer'" in refused.err
    assert "--reward my_file.py:my_reward" in refused.err


def test_words_that_do_not_fit_rows(assay, files):
    model = init_model(DecoderShape(vocab_size=14), char_tokenizer("0123456789+="), seed=0)
    save_model(model, files / "model")
    got = assay("eval", "model", "--tasks", "sort", "--reward", "reward.py:compute_score")
    assert got.code == 2 and "--reward is for rows" in got.err
    got = assay("eval", "model", "--tasks", "sort", "--per-level", "0")
    assert got.code == 2 and "sort makes tasks without end" in got.err
    (files / "empty.jsonl").write_text("")
    with pytest.raises(ConfigError, match=r"empty\.jsonl holds no rows"):
        held_out_rows("empty.jsonl", None)
    (files / "data").mkdir()
    for split in ("train", "test"):
        (files / "data" / f"{split}.csv").write_text(f"prompt,answer\n{split},1\n")
    assert held_out_rows("data", None).task("data", 1, "test", 0).public["prompt"] == "test"
    (files / "t.csv").write_text("prompt,answer\na,1\nb,2\n")
    assert source("t.csv").name == "t"
    with pytest.raises(DataError, match=r"row 1: 'prompt' is .* give text, or turns"):
        (files / "bad.jsonl").write_text('{"gold": "1", "prompt": [3]}\n')
        read_cases(files / "bad.jsonl")


def test_explain_counts_the_held_out_tasks_that_there_are(assay, files):
    found = assay("explain", "held.parquet", "--reward", "reward.py:compute_score", "--model", "base", "--json").json
    assert 0 < found["derived"]["final_items"] < 70


def test_all_that_is_wrong_of_rows_and_options_is_told_at_once(assay, files):
    words = ("--reward", "reward.py:compute_scor", "--objective", "gpro", "--evaluate", "no.csv", "--lr", "fast", "--grups", "3")
    got = assay("train", "held.jsonl", *words)
    assert got.code == 2 and got.err.startswith("assay: 5 settings are wrong")
    for place, mended in (("--reward", "'compute_score'"), ("--objective", "'grpo'"), ("--grups", "--groups")):
        assert re.search(rf"{place}.*did you mean {mended}", got.err)
    assert "--evaluate no.csv: no.csv does not exist" in got.err and "--lr fast: 'fast' is not a number" in got.err
    (files / "c.toml").write_text('recipe = "held.jsonl"\nreward = "reward.py:nothing"\n[stages.0]\ngroups = "many"\n')
    told = assay("train", "c.toml").err
    assert "2 settings are wrong" in told and "c.toml: reward: unknown reward" in told and "stages.0.groups='many'" in told
    told = assay("train", "none.jsonl", "--lr", "fast").err
    assert "2 settings are wrong" in told and "none.jsonl does not exist" in told
    told = assay("train", "held.jsonl", "--reward", "reward.py:compute_score", "--split", "dev", "--lr", "fast").err
    assert "2 settings are wrong" in told and "the rows come in no splits" in told


def test_a_wrong_reward_is_the_only_thing_that_is_said_of_it(assay, files):
    """Rows that have no answer are judged by the reward: what is wrong with it is no mistake of the rows to evaluate on."""
    (files / "other.py").write_text("def wrong(completion, answr):\n    return 1.0\n")
    words = ("train", "held.jsonl", "--evaluate", "held.parquet")
    for reward, said in (
        ("other.py:wrong", "takes 'answr', which is none of"),
        ("other.py:wrng", "did you mean 'wrong'?"),
        ("gone.py:wrong", "gone.py does not exist"),
    ):
        got = assay(*words, "--reward", reward)
        assert got.code == 2 and said in got.err and "cannot be matched" not in got.err, got.err
        assert "settings are wrong" not in got.err
    told = assay(*words, "--reward", "other.py:wrong", "--objective", "gpro").err
    assert "2 settings are wrong" in told and "'answr'" in told and "did you mean 'grpo'?" in told
    (files / "base.toml").write_text('recipe = "held.jsonl"\nreward = "reward.py:compute_score"\nevaluate = "held.parquet"\n')
    (files / "c.toml").write_text('recipe = "base.toml"\nobjective = "gpro"\n')
    told = assay("train", "c.toml").err
    assert "'grpo'" in told and "cannot be matched" not in told and "settings are wrong" not in told


def test_rows_without_answers_and_without_a_reward_are_told_of_once(assay, files):
    told = assay("train", "held.jsonl", "--evaluate", "held.parquet").err
    assert told.count("cannot be matched") == 1 and "row 101" not in told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("compute_score", "it names no file or module; give my_file.py:compute_score or package.module:compute_score"),
        (":compute_score", "it names no file or module; give my_file.py:compute_score"),
        ("reward.py", "that is a file only; say which function: reward.py:my_function"),
        ("reward.py:", "no name stands behind the colon; give reward.py:my_function"),
        ("reward:", "no name stands behind the colon; give reward:my_function"),
        (":", "it names no file or module; give my_file.py:my_function"),
        (".here:compute_score", "cannot import .here"),
        ("a..b:compute_score", "cannot import a..b"),
    ],
)
def test_a_reward_that_is_named_by_half(assay, files, word, said):
    for words in (("train", "held.jsonl"), ("eval", "model", "--tasks", "held.jsonl")):
        got = assay(*words, "--reward", word)
        assert got.code == 2, got.err
    assert said in (got := assay("train", "held.jsonl", "--reward", word)).err and len(got.err.splitlines()) == 1
    (files / "r.toml").write_text(f'recipe = "held.jsonl"\nreward = "{word}"\n')
    assert said in assay("train", "r.toml").err


@pytest.mark.parametrize("word", ["compute_score:", ":compute_score", ":"])
def test_recipes_and_families_that_are_named_by_half(assay, files, word):
    for words in (("train", word), ("tasks", "sample", word), ("verify", "audit", word)):
        got = assay(*words)
        assert got.code == 2 and "Traceback" not in got.err and re.search(r"file\.py:|:my_function", got.err), got.err


def test_a_model_in_the_place_of_a_recipe_is_told_apart(assay, files):
    save_model(init_model(DecoderShape(vocab_size=14), char_tokenizer("0123456789+="), seed=0), files / "model")
    for word in ("model", "model/"):
        got = assay("train", word)
        assert got.code == 2 and f"{word} is a model's folder, not a recipe" in got.err and "--model" in got.err


@pytest.mark.parametrize("step", [("--step", "115"), ("--step=115",)])
def test_a_step_to_evaluate_is_named_with_the_run(assay, files, step):
    got = assay("eval", "runs/a", *step)
    assert got.code == 2 and "assay eval runs/a@STEP" in got.err and len(got.err.splitlines()) == 1


def test_explain_says_what_each_of_several_processes_needs(assay, files):
    words = ("explain", "quickstart")
    alone, shared = assay(*words).out, assay(*words, "--mesh.data", "2").out
    assert "memory in each" not in alone and "processes  " not in alone
    assert "memory in each" in shared and "2, each with a device of its own" in shared


def test_explain_warns_of_a_device_that_is_not_here(assay, files):
    import torch

    told = assay("explain", "quickstart", "--device", "cuda").err
    assert ("there is no CUDA device here" in told) is not torch.cuda.is_available()


@pytest.mark.slow
def test_mistakes_of_a_file_are_answered_in_its_spelling(assay, files):
    for line, said in (
        ("num_samples = 8", "num_samples is another library's; in assay this is group_size = 8"),
        ("clip_range_x = 1", "there is no such option"),
        ("rollout_batch_size = 4", "in assay this is groups = 4"),
        ("eps_clip_low_high = [0.2, 0.28]", "in assay this is clip = [LOW, HIGH]"),
        ("bf16 = true", 'in assay this is precision = "bf16"'),
        ('save_path = "x"', "in assay this is --folder x"),
        ('clip = [0.2, "0.28"]', "clip=[0.2, '0.28']: '0.28' is text; leave the quotes out: 0.28"),
        ('kl = "0.1"', "kl='0.1': '0.1' is text; leave the quotes out: 0.1"),
    ):
        (files / "t.toml").write_text(f'recipe = "held.jsonl"\nreward = "reward.py:compute_score"\nmodel = "base"\n{line}\n')
        got = assay("train", "t.toml")
        assert got.code == 2 and said in got.err and "t.toml" in got.err, got.err


def test_what_is_no_toml_is_said_of_its_file(assay, files):
    (files / "base.toml").write_text('recipe = "held.jsonl"\nlr = 1\nlr = 2\n')
    (files / "c.toml").write_text('recipe = "base.toml"\nsteps = 3\n')
    assert "base.toml: not TOML: Cannot overwrite a value (at line 3" in assay("train", "c.toml").err
    assert "base.toml: not TOML" in assay("train", "base.toml").err
    assert "base.toml: not TOML" in assay("train", "quickstart", "--config", "base.toml").err
