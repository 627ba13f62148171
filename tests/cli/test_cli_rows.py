"""A file of rows in the place of a recipe."""

import json

from assay.core.config import to_dict
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
