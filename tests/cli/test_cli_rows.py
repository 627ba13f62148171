"""A file of rows in the place of a recipe."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assay.core.config import to_dict
from assay.core.errors import ConfigError
from assay.recipes import on_rows
from assay.runtime.models.reduced import write_reduced

ROWS = [{"prompt": f"S{a}{b}>", "answer": "".join(sorted(f"{a}{b}"))} for a in range(6) for b in range(6)]
QWEN = {"model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}


def test_a_file_of_rows_picks_the_settings_that_python_does(assay, tmp_path):
    write_reduced(QWEN | {"head_dim": 16, "intermediate_size": 128, "max_position_embeddings": 512}, tmp_path / "model")
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "mine.py").write_text("def right(prompt, completion, row):\n    return float(completion == row['answer'])\n")
    words = ("--model", "model", "--reward=mine.py:right", "--objective", "rloo", "--stages.0.group_size", 4, "--seed", 3)
    told = assay("explain", "rows.jsonl", *words, "--json").json["settings"]
    run = to_dict(on_rows(ROWS, model="model", objective="rloo", seed=3))
    assert told["stages"][0]["learner"] == run["stages"][0]["learner"]
    assert (told["sampling"], told["evaluation"], told["seed"]) == (run["sampling"], run["evaluation"], 3)
    assert told["stages"][0]["group_size"] == 4
    assert ":right" in str(told["tasks"]["reward"])


def test_words_beside_rows_that_are_wrong(assay, tmp_path):
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "mine.py").write_text("number = 3\n")
    for words, said in (
        (("--model",), "--model needs one value, as in: assay train rows.jsonl --model MODEL"),
        (("--reward", "mine.py:number"), "reward mine.py:number is an int; name a function of (prompt, completion, row)"),
        (("--long-prompts", "cut"), "unknown long_prompts 'cut'"),
        (("--split", "train"), "the rows come in no splits"),
    ):
        got = assay("explain", "rows.jsonl", *words)
        assert got.code == 2
        assert said in got.err
    assert "gone.jsonl" in assay("explain", "gone.jsonl").err


def _data(folder):
    """Rows in verl's form in two files, a reward of verl's signature, in a folder."""
    folder.mkdir()
    for name, numbers in (("train", range(20)), ("test", range(20, 26))):
        rows = [{"prompt": [{"role": "user", "content": f"{n}+1="}], "data_source": "d"} for n in numbers]
        rows = [
            row | {"reward_model": {"style": "rule", "ground_truth": str(n + 1)}} for row, n in zip(rows, numbers, strict=True)
        ]
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")
    (folder / "reward.py").write_text(
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    return float(solution_str == ground_truth)\n"
    )


def test_a_file_of_settings_says_all_of_the_rows_beside_it(assay, tmp_path):
    _data(tmp_path / "job")
    write_reduced(QWEN | {"head_dim": 16, "intermediate_size": 128, "max_position_embeddings": 512}, tmp_path / "model")
    (tmp_path / "job" / "run.toml").write_text(
        'recipe = "train.parquet"\nreward = "reward.py:compute_score"\nevaluate = "test.parquet"\nmodel = "model"\n'
        'long-prompts = "error"\ngroup_size = 4\nsteps = 3\n'
    )
    told = assay("explain", "job/run.toml", "--json").json["settings"]  # the model stands in the current folder
    assert told["tasks"]["tests"] == 6 and ":compute_score" in str(told["tasks"]["reward"])
    assert told["model"]["path"] == "model" and told["stages"][0]["group_size"] == 4 and told["stages"][0]["steps"] == 3
    again = assay("explain", "job/run.toml", "--evaluate", "job/train.parquet", "--json").json["settings"]
    assert again["tasks"]["tests"] == 20  # the command line counts


def test_settings_of_rows_that_are_wrong_in_a_file(assay, tmp_path):
    _data(tmp_path / "job")
    head = 'recipe = "train.parquet"\nreward = "reward.py:compute_score"\nmodel = "base"\n'
    for more, said in (
        ("reward = 3\n", 'a.toml: reward = 3; give text, as in reward = "reward.py:compute_score"'),
        ("split = [1]\n", "a.toml: split = [1]; give text"),
        ('split = ["train", "test"]\n', "the rows come in no splits"),
        ("group = 3\n", "a.toml: group: there is no such option"),
    ):
        (tmp_path / "a.toml").write_text(
            (head.replace('reward = "reward.py:compute_score"\n', "") if "reward" in more else head) + more
        )
        (tmp_path / "a.toml").replace(tmp_path / "job" / "a.toml")
        got = assay("explain", "job/a.toml")
        assert got.code == 2 and said in got.err, got.err
        assert "group: group" not in got.err


def test_a_folder_is_rows_too(assay, tmp_path):
    _data(tmp_path / "data")
    for word in ("data", "data/"):
        told = assay(
            "explain", word, "--reward", "data/reward.py:compute_score", "--model", "base", "--split", "train", "test", "--json"
        )
        assert told.json["settings"]["tasks"]["tests"] == 6
    assert "gone/ does not exist" in assay("explain", "gone/").err.replace("gone does", "gone/ does")
    data = {"train": tmp_path / "data" / "train.parquet", "test": str(tmp_path / "data" / "test.parquet")}
    run = on_rows(data, lambda prompt, completion, row: 0.0)
    assert (len(run.tasks.rows), run.tasks.tests) == (26, 6)
    with pytest.raises(ConfigError, match=r"split 'train': .* holds splits of its own, test, train; name one file of them"):
        on_rows({"train": tmp_path / "data"})


def test_what_is_derived_from_a_given_setting_follows_it(assay, tmp_path) -> None:
    """The learning rate of an adapter, and a warm-up of at most a twentieth of the steps."""
    from assay.runtime import DecoderShape, char_tokenizer, init_model, save_model

    shape = DecoderShape(
        vocab_size=20, hidden_size=256, num_layers=4, num_heads=4, num_kv_heads=4, head_dim=64, intermediate_size=1024
    )
    save_model(init_model(shape, char_tokenizer("0123456789+= "), seed=0), tmp_path / "small")
    rows = [{"prompt": f"{a}+{b}=", "answer": str(a + b)} for a in range(8) for b in range(8)]
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "lora.toml").write_text('recipe = "sums.jsonl"\nmodel = "small"\nlora = 8\nsteps = 40\n')

    def learner(*words: str) -> dict:
        said = assay("explain", *words, "--json")
        assert said.code == 0, said.err
        return said.json["settings"]["stages"][0]["learner"]

    whole, adapted = learner("sums.jsonl", "--model", "small"), learner("sums.jsonl", "--model", "small", "--lora-rank", "8")
    of_file = learner("lora.toml")
    assert adapted["adapter"]["rank"] == of_file["adapter"]["rank"] == 8
    assert whole["optimizer"]["lr"] < adapted["optimizer"]["lr"] == of_file["optimizer"]["lr"]
    assert of_file["schedule"]["warmup"] <= 2 < whole["schedule"]["warmup"]
    assert "as given" not in assay("explain", "lora.toml").out
