"""Another model for a recipe or for rows: both spellings of the option, and what of the recipe's chat is dropped."""

import json

import pytest

from assay.runtime.models.reduced import write_reduced

QWEN = {"model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
QWEN |= {"head_dim": 16, "intermediate_size": 128, "max_position_embeddings": 512}
ROWS = [{"prompt": f"S{a}{b}>", "answer": "".join(sorted(f"{a}{b}"))} for a in range(6) for b in range(6)]
SAY = (
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


@pytest.fixture
def small(tmp_path):
    write_reduced(QWEN, tmp_path / "small")
    return tmp_path / "small"


def test_rows_and_recipes_take_the_model_by_both_names(assay, tmp_path, small):
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    whole = assay("explain", "rows.jsonl", "--model", "small", "--json").json["settings"]
    assert assay("explain", "rows.jsonl", "--model.path", "small", "--json").json["settings"] == whole
    (tmp_path / "more.toml").write_text('recipe = "rows.jsonl"\n[model]\npath = "small"\n')
    assert assay("explain", "more.toml", "--json").json["settings"]["model"] == whole["model"]
    for words in (("--model", "small"), ("--model.path", "small")):
        assert assay("explain", "gsm8k", "--tasks.kind", "sort", *words, "--json").json["settings"]["model"]["path"] == "small"


@pytest.mark.parametrize(
    ("words", "template", "kept"),
    [
        ((), "", False),  # the folder brings no template
        ((), SAY, False),
        ((), "{% if enable_thinking %}x{% endif %}" + SAY, True),
        (("--model.chat.template", "dialogue"), "{% if enable_thinking %}x{% endif %}" + SAY, False),
    ],
)
def test_a_recipes_options_of_a_template_are_for_its_own_model(assay, small, words, template, kept):
    if template:
        told = json.loads((small / "tokenizer_config.json").read_text())
        del told["assay_template"]  # of a character tokenizer, whose turns are written bare
        (small / "tokenizer_config.json").write_text(json.dumps(told | {"chat_template": template}))
    got = assay("explain", "gsm8k", "--tasks.kind", "sort", "--model", "small", *words, "--json")
    assert (got.json["settings"]["model"]["chat"].get("options") == {"enable_thinking": False}) is kept
    assert ("the chat template of small reads no 'enable_thinking'" in got.err) is not kept
    fitted = assay("explain", "gsm8k", "--tasks.kind", "sort", "--model", "small", "--for-model", *words, "--json")
    assert (fitted.json["settings"]["model"]["chat"].get("options") == {"enable_thinking": False}) is kept
