"""A folder whose text transformers cuts otherwise than its tokenizer.json is refused before it is trained."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from assay.core.errors import DataError
from assay.core.rollout import Sampling
from assay.core.task import Message
from assay.publish import export
from assay.runtime import char_tokenizer, load_model
from assay.runtime.settings import Lora
from assay.runtime.text import transformers_ids as ids
from assay.train import Evaluation, Folder, Policy, Reinforce, Run, train
from assay_tasks import SortDigits

CHAT = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
CHAT += "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"


def write_qwen2(folder: Path, kind: str = "qwen2") -> Path:
    """A model folder with a plain byte-level tokenizer, for which transformers has a class of its own."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=360, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    made.train_from_iterator([f"What is {a}+{b}?" for a in range(60) for b in range(40)], trainer)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, vocab_size=360, num_key_value_heads=2, max_position_embeddings=64, **sizes)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    made.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|im_end|>", "chat_template": CHAT}))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_qwen2(tmp_path_factory.mktemp("qwen2") / "model")


def run_of(path: Path) -> Run:
    return Run(
        model=Folder(str(path)),
        tasks=SortDigits(levels=(1,)),
        stages=(Reinforce(steps=1, groups=2, group_size=2),),
        sampling=Sampling(max_new_tokens=2),
        evaluation=Evaluation(every=0, final_per_level=1),
    )


def test_a_run_is_refused_before_anything_is_trained(folder, tmp_path):
    with pytest.raises(DataError) as refused:
        train(run_of(folder), tmp_path / "run")
    said = str(refused.value)
    assert "reads its tokenizer as a Qwen2Tokenizer" in said and "'What is 23+0?'" in said and "8 tokens" in said
    assert str(folder) in said and "save_pretrained" in said and not (tmp_path / "run").exists()
    with pytest.raises(DataError, match="Qwen2Tokenizer"):
        Policy(folder).sample("What is 23+0?")


def test_explain_and_train_refuse_it_on_the_command_line(folder, tmp_path, monkeypatch, capsys):
    from assay.cli import main

    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"prompt": f"What is {n}+0?", "answer": str(n)}) + "\n" for n in range(30)))
    monkeypatch.chdir(tmp_path)
    for command in ("explain", "train"):
        assert main(shlex.split(f"{command} rows.jsonl --model {folder} --steps 1")) == 2
        assert "Qwen2Tokenizer" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_the_fix_that_is_named_lets_it_train_and_export(folder, tmp_path):
    copy = write_qwen2(tmp_path / "copy")
    AutoTokenizer.from_pretrained(copy).save_pretrained(copy)
    train(run_of(copy), tmp_path / "run")
    found = export(tmp_path / "run", tmp_path / "out").reloaded
    assert found is not None and found.texts > len(ids.TEXTS)


def test_an_adapter_is_compared_by_the_class_of_its_base_too(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("assay.train.models.check_tokenizer", lambda source, tokenizer: None)  # as a run of before
    run = run_of(folder)
    learner = replace(run.stages[0].learner, adapter=Lora(rank=2))
    train(replace(run, stages=(replace(run.stages[0], learner=learner),)), tmp_path / "run")
    with pytest.raises(DataError, match="loaded by transformers as a Qwen2Tokenizer"):
        export(tmp_path / "run", tmp_path / "out", form="adapter")
    assert not (tmp_path / "out").exists()


def test_texts_that_a_tokenizer_lacks_are_left_out_and_folders_that_cannot_be_loaded_are_let_pass(tmp_path, monkeypatch):
    assert ids.readable(char_tokenizer("ab"), ["abc", "a"]) == ["a"]
    own = load_model(write_qwen2(tmp_path / "m")).tokenizer
    ids.check_agreement(own, tmp_path)  # no config there: transformers has nothing to say
    monkeypatch.setattr(ids, "find_spec", lambda name: None)
    ids.check_agreement(own, tmp_path / "m")


def test_a_prompt_is_compared_through_the_chat_template(tmp_path):
    folder = write_qwen2(tmp_path / "m")
    own = load_model(folder).tokenizer
    theirs = PreTrainedTokenizerFast.from_pretrained(folder)
    assert ids.first_difference(own, theirs, ["What is 23+0?"]) is None
    theirs.chat_template = CHAT.replace("assistant\n", "assistant:")
    text, mine, others = ids.first_difference(own, theirs, ["What is 23+0?"]) or ("", [], [])
    assert text == "What is 23+0?" and mine != others
    assert ids.first_difference(own, theirs, ["What is 23+0?"], given=True) is None
    assert mine == own.render([Message("user", text)]).tolist()
