"""Exports: whole and as adapters, of finished and stopped runs and of checkpoints, read back, with a card."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hub_cases import hub_model
from huggingface_hub import ModelCard
from safetensors.torch import load_file, save_file
from test_hub_runs import LORA, hub_run
from tiny_runs import only_rl, reinforce, tiny
from transformers import AutoModelForCausalLM, AutoTokenizer

from assay.cli.preflight import outline
from assay.cli.sizes import derive
from assay.core.errors import CheckpointError, ConfigError, DataError, UnknownNameError
from assay.core.task import Message
from assay.publish import export
from assay.publish import training_data as trained_on
from assay.publish.training_data import hub_rows
from assay.runs.storage import read_json
from assay.runtime import Chat, ChatTemplate, load_model, save_model
from assay.runtime.models import exported as files
from assay.runtime.text.transformers_ids import TEXTS, readable
from assay.train import Folder, Policy, Reinforce, Run, train
from assay_tasks import SortDigits


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A finished run of all weights of assay's own decoder."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    train(tiny(warm=2, rl=2), folder)
    return folder


@pytest.fixture(scope="module")
def adapted(tmp_path_factory) -> Path:
    """A finished run of an adapter, on a model of another family."""
    place = tmp_path_factory.mktemp("adapted")
    save_model(hub_model("llama"), place / "base")
    run = hub_run(place / "base", LORA, warm=1, rl=2, checkpoint_every=1)
    sft = replace(run.stages[0], steps=2, learner=replace(run.stages[0].learner, adapter=LORA))
    train(replace(run, stages=(sft,)), place / "run")
    return place / "run"


def loaded(folder: Path, **options: Any) -> Any:
    return AutoModelForCausalLM.from_pretrained(folder, **options).eval()


def logp(module: Any, rows: Any) -> np.ndarray:
    with torch.no_grad():
        return module(input_ids=torch.tensor(rows)).logits.float().log_softmax(-1).numpy()


ROWS = [[5, 9, 3, 7, 12, 4]]

# ---- what is written -----------------------------------------------------------------------------------------------------


def test_a_finished_run_is_loaded_by_transformers_as_it_ended(whole, tmp_path):
    made = export(whole, tmp_path / "out")
    assert made.step == 4 and made.reloaded.tensors > 10 and made.reloaded.worst < 1e-4 and made.reloaded.texts > 8
    ours = load_file(whole / "model" / "model.safetensors")
    theirs = load_file(tmp_path / "out" / "model.safetensors")
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[n], theirs[n]) for n in ours)
    assert json.loads((tmp_path / "out" / "generation_config.json").read_text()) == {
        "do_sample": True,
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": 0,
        "max_new_tokens": 5,
        "eos_token_id": 1,
        "pad_token_id": 0,
    }
    assert load_model(tmp_path / "out").tokenizer.digest == load_model(whole / "model").tokenizer.digest


def test_bfloat16_is_rounded_to_the_nearest_even_and_said_so(whole, tmp_path):
    made = export(whole, tmp_path / "out", dtype="bfloat16")
    assert 1e-4 < made.reloaded.worst < 0.5
    ours = load_file(whole / "model" / "model.safetensors")["model.norm.weight"]
    theirs = load_file(tmp_path / "out" / "model.safetensors")["model.norm.weight"]
    bits = ours.numpy().view(np.uint32).astype(np.uint64)
    kept = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    assert np.array_equal(theirs.view(torch.int16).numpy().view(np.uint16), kept)
    card = (tmp_path / "out" / "README.md").read_text()
    assert "rounded from float32 to the nearest, ties to even" in card
    assert "before the weights were rounded to bfloat16" in card
    assert loaded(tmp_path / "out", dtype="auto").dtype == torch.bfloat16


def test_float16_refuses_what_it_cannot_hold(whole, tmp_path):
    assert export(whole, tmp_path / "out", dtype="float16").reloaded.worst < 0.05
    save_model(load_model(whole / "model"), tmp_path / "big")
    tensors = load_file(tmp_path / "big" / "model.safetensors")
    tensors["model.norm.weight"][3] = 1e5
    save_file(tensors, tmp_path / "big" / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        ConfigError, match=r"model\.norm\.weight has numbers that float16 cannot hold; export float32 or bfloat16"
    ):
        export(tmp_path / "big", tmp_path / "none", dtype="float16")
    assert not (tmp_path / "none").exists()


def test_large_weights_lie_in_shards(whole, tmp_path):
    (tmp_path / "out").mkdir()
    model = load_model(whole / "model")
    files.write_exported(model, tmp_path / "out", shard="20KB")
    assert len(list((tmp_path / "out").glob("model-*.safetensors"))) > 1
    assert files.reload_exported(model, tmp_path / "out", [np.array(ROWS[0])], []).worst < 1e-4


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")  # PEFT asks transformers for it
def test_an_adapter_is_added_or_stays_apart(adapted, tmp_path):
    from peft import PeftModel

    merged, apart = export(adapted, tmp_path / "merged"), export(adapted, tmp_path / "apart", form="adapter")
    assert merged.reloaded.worst < 1e-4 and apart.reloaded.worst < 1e-4
    assert {p.name for p in (tmp_path / "apart").iterdir()} >= {"adapter_config.json", "adapter_model.safetensors", "README.md"}
    assert apart.size < merged.size
    base = json.loads((tmp_path / "apart" / "adapter_config.json").read_text())["base_model_name_or_path"]
    tuned = PeftModel.from_pretrained(loaded(base), tmp_path / "apart").eval()
    one, two = logp(loaded(tmp_path / "merged"), ROWS), logp(tuned, ROWS)
    assert np.abs(one - two).max() < 1e-5 < np.abs(one - logp(loaded(base), ROWS)).max()
    again = load_model(tmp_path / "apart")  # and by assay itself
    assert again.adapter.settings == LORA


@pytest.mark.slow
def test_an_adapter_that_lies_alone_is_a_model(adapted, tmp_path):
    """Whose sizes and end token are its base's: sampled, explained, exported again; without its base it is nothing."""
    export(adapted, tmp_path / "adapter", form="adapter")
    whole = export(tmp_path / "adapter", tmp_path / "whole").reloaded
    again = export(tmp_path / "adapter", tmp_path / "again", form="adapter")
    assert whole.tensors > 10 and again.form == "adapter"
    ours, theirs = (load_file(tmp_path / n / "adapter_model.safetensors") for n in ("adapter", "again"))
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[n], theirs[n]) for n in ours)
    run = Run(model=Folder(str(tmp_path / "adapter")), tasks=SortDigits(levels=(1,)), stages=(Reinforce(),))
    assert derive(run) == derive(replace(run, model=Folder(str(adapted / "start"))))
    assert outline(run.model).tokenizer.digest == load_model(adapted / "model").tokenizer.digest
    assert Policy(tmp_path / "adapter").sample("S21>", n=2, seed=1) == Policy(adapted).sample("S21>", n=2, seed=1)
    config = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    told = json.dumps(config | {"base_model_name_or_path": "../gone"})
    (tmp_path / "adapter" / "adapter_config.json").write_text(told)
    with pytest.raises(DataError, match=r"its base '../gone' is no folder here, and no name on the hub; get it"):
        derive(run)


def test_a_checkpoint_has_the_weights_of_its_step(adapted, tmp_path):
    """Two checkpoints are kept: the last is the run's end, the one before is not."""
    end, before = export(adapted, tmp_path / "end", step=2), export(adapted, tmp_path / "before", step=1)
    assert (end.step, before.step) == (2, 1)
    gone = loaded(tmp_path / "before")
    assert np.abs(logp(gone, ROWS) - logp(loaded(tmp_path / "end"), ROWS)).max() > 1e-4
    path = adapted / "checkpoints" / "step_0000001" / "learner" / "weights.safetensors"
    kept, model = load_file(path), files.with_weights(load_model(adapted / "start"), path, LORA)
    assert all(torch.equal(kept[n], t) for n, t in model.adapter.tensors.items())
    with pytest.raises(CheckpointError, match=r"has no checkpoint of step 7; it has 1, 2 \(--keep-checkpoints says how many"):
        export(adapted, tmp_path / "none", step=7)


def test_a_run_that_was_stopped_gives_its_newest_checkpoint(whole, tmp_path):
    import shutil

    shutil.copytree(whole, tmp_path / "run")
    for name in ("done.json", "model"):
        path = tmp_path / "run" / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    made = export(tmp_path / "run", tmp_path / "out")
    assert made.step == 4
    theirs, ours = (load_file(p / "model.safetensors") for p in (tmp_path / "out", whole / "model"))
    assert all(torch.equal(ours[n], theirs[n]) for n in ours)
    card = (tmp_path / "out" / "README.md").read_text()
    assert "not finished at these weights" in card and "none: only a finished run has one" in card
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    (tmp_path / "run" / "LATEST").unlink()
    with pytest.raises(CheckpointError, match="has no checkpoint yet"):
        export(tmp_path / "run", tmp_path / "more")


def test_adapters_over_trained_weights_are_read_from_the_base_that_the_run_kept(tmp_path):
    save_model(hub_model("gpt2"), tmp_path / "base")
    run = hub_run(tmp_path / "base", LORA, warm=1, rl=2, checkpoint_every=1)
    train(run, tmp_path / "run")
    export(tmp_path / "run", tmp_path / "out", form="adapter", step=2)
    base = json.loads((tmp_path / "out" / "adapter_config.json").read_text())["base_model_name_or_path"]
    assert base == str(tmp_path / "run" / "bases" / "stage_1")


# ---- chat templates ---------------------------------------------------------------------------------------------------------


TALKS = {
    "roles": ChatTemplate(user="Q: {content}\n", assistant="A: {content}"),
    "dialogue": Chat(template="dialogue", system="Be 'brief'."),
    "own": Chat(
        template="{% for m in messages %}[{{ m.role if loud else '' }}]{{ m.content }}{% endfor %}"
        "{{ '>' if add_generation_prompt }}",
        options={"loud": True},
    ),
    "joined": Chat(template="{% for m in messages if m.role != 'system' %}{{ m.content }};{% endfor %}", system="Sort."),
}


@pytest.mark.parametrize("name", TALKS)
def test_the_template_that_was_used_is_the_one_that_transformers_takes(name, whole, tmp_path):
    plain, talk = load_model(whole / "model"), TALKS[name]
    chat = talk if isinstance(talk, Chat) else Chat(template=talk)
    model = replace(plain, tokenizer=plain.tokenizer.with_chat(chat))
    (tmp_path / "out").mkdir()
    files.write_exported(model, tmp_path / "out")
    found = files.reload_exported(model, tmp_path / "out", [np.array(ROWS[0])], ["31"])
    theirs: Any = AutoTokenizer.from_pretrained(tmp_path / "out")
    said = theirs.apply_chat_template([{"role": "user", "content": "31"}], add_generation_prompt=True, tokenize=False)
    assert found.texts == 2 + len(readable(model.tokenizer, TEXTS)) and "31" in said
    assert model.tokenizer.render([Message("user", "31")]).tolist() == theirs(said, add_special_tokens=False).input_ids


# ---- refused ------------------------------------------------------------------------------------------------------------------


def tampered(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    """Whatever is written is changed behind it."""
    real = files.write_exported

    def write(model: Any, folder: Path, **options: Any) -> None:
        real(model, folder, **options)
        change(folder)

    monkeypatch.setattr(files, "write_exported", write)


def edit(name: str, **changes: Any) -> Any:
    def change(folder: Path) -> None:
        config = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(config | changes))

    return change


def flip(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors["model.norm.weight"][0] += 1e-6
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def swap_ids(folder: Path) -> None:
    plan = json.loads((folder / "tokenizer.json").read_text())
    table = plan["model"]["vocab"]
    table["1"], table["2"] = table["2"], table["1"]
    (folder / "tokenizer.json").write_text(json.dumps(plan))


def cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


FAULTS = {
    "a bit of a weight": (flip, r"weight model\.norm\.weight of the exported folder is not the run's"),
    "other arithmetic": (edit("config.json", rms_norm_eps=0.3), r"its config asks for other arithmetic"),
    "another tokenizer": (swap_ids, r"reads '.*' otherwise than the run's: token \d+ of \d+ differs"),
    "half a file": (cut, r"cannot be loaded by transformers"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_folder_that_is_not_the_model_is_refused_and_nothing_is_left(fault, whole, tmp_path, monkeypatch):
    change, told = FAULTS[fault]
    tampered(monkeypatch, change)
    with pytest.raises(DataError, match=told):
        export(whole, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_bad_requests_are_refused_first(whole, adapted, tmp_path):
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").touch()
    for wanted, options, told in (
        (ConfigError, {"to": tmp_path / "used"}, "exists already"),
        (ConfigError, {"form": "adapter"}, "has no adapter: all its weights were trained"),
        (UnknownNameError, {"dtype": "bf16"}, "did you mean 'bfloat16'"),
        (UnknownNameError, {"form": "lora"}, "unknown form of an export"),
        (ConfigError, {"source": whole / "model", "step": 2}, "without checkpoints"),
        (ConfigError, {"source": tmp_path / "gone", "step": 2}, "does not exist"),
        (ConfigError, {"source": tmp_path / "nowhere"}, "does not exist"),
    ):
        given: Any = {"source": whole, "to": tmp_path / "out"} | options
        with pytest.raises(wanted, match=told):
            export(**given)
    assert [p.name for p in tmp_path.iterdir()] == ["used"]


# ---- the card -----------------------------------------------------------------------------------------------------------------


def test_the_card_says_what_the_run_recorded(whole, tmp_path):
    export(whole, tmp_path / "out")
    card = ModelCard.load(tmp_path / "out" / "README.md")
    text, done, data = card.text, read_json(whole / "done.json"), card.data
    assert data.library_name == "transformers" and set(data.tags) == {"assay", "reinforcement-learning"}
    assert data.base_model is None, "fresh weights have no base on a hub"
    line = next(x for x in map(json.loads, (whole / "evals.jsonl").read_text().splitlines()) if x["step"] == 4)
    right = [item["values"] == [1.0] for item in line["items"]]
    assert data.eval_results[0].metric_value == pytest.approx(sum(right) / len(right), abs=1e-6)
    assert done["digest"] in text and "fresh weights, seed 0" in text
    assert (
        "WarmUp, 2 of 2 steps, objective Nll; Token → Reinforce, 2 of 2 steps, objective Center, Scale; PolicyGradient with"
        in text
    )
    assert "| weights in the sampler | proved after each of 2 steps |" in text
    assert "| seed | 0 |" in text and "Evaluation items in training: 0 of " in text


def test_the_card_invents_nothing(whole, adapted, tmp_path):
    """A model folder has no run; weights of a step without evaluation have no accuracy; unproven weights are said so."""
    export(whole / "model", tmp_path / "bare")
    bare = ModelCard.load(tmp_path / "bare" / "README.md")
    assert "how it was trained is not known here" in bare.text and "None recorded." in bare.text
    assert bare.data.eval_results is None and bare.data.tags == ["assay"]
    export(adapted, tmp_path / "early", step=1, check=False)
    early = ModelCard.load(tmp_path / "early" / "README.md")
    assert "These weights were not evaluated" in early.text and early.data.eval_results is None
    assert "It was not loaded again" in early.text and "the local folder 'base'" in early.text
    unproved = replace(only_rl(steps=1), prove_weights=False)
    train(unproved, tmp_path / "run")
    export(tmp_path / "run", tmp_path / "out", check=False)
    assert "unproven: proved after 0 of 1 steps" in (tmp_path / "out" / "README.md").read_text()


def test_stages_that_had_not_begun_are_no_lineage(whole, tmp_path):
    folder = tmp_path / "run"
    run = replace(tiny(), stages=(*tiny(warm=1).stages[:1], reinforce(steps=1), reinforce(steps=3)), checkpoint_every=1)
    train(run, folder)
    export(folder, tmp_path / "out", step=4, check=False)
    text = (tmp_path / "out" / "README.md").read_text()
    assert text.count("Reinforce, ") == 2 and "2 of 3 steps" in text


def test_data_sets_are_those_that_had_been_learned_from(monkeypatch):
    """Of the stages that had begun, of the base before them, and of the tasks where a stage practises them."""
    commit, stage = "0" * 40, "assay.train.run:"
    given = [{"kind": f"{stage}Imitate", "data": f"hub:a/sft@{commit}:x*", "steps": 2}, {"kind": f"{stage}Reinforce", "steps": 3}]
    tasks = {"kind": "mix", "sources": [{"train": f"hub:b/math@{commit}:main/train*", "test": "hub:b/math:main/test*"}]}
    base = {"kind": "built", "run": {"stages": [{"kind": f"{stage}Prefer", "data": f"hub:c/pairs@{commit}", "steps": 9}]}}
    settings = {"stages": given, "tasks": tasks, "model": base}
    monkeypatch.setattr(trained_on, "entries", lambda data: [f"{data}/file"])
    monkeypatch.setattr(trained_on, "read_rows", lambda path: iter("abc"))
    before = [
        f"c/pairs at commit {commit}, 3 rows: given to Prefer",
        f"a/sft at commit {commit}, files `x*`, 3 rows: given to Imitate",
    ]
    held_out = "b/math (commit not recorded), files `main/test*`, not here to be counted: tasks, held out"
    assert list(map(str, hub_rows(settings, 2))) == [*before, held_out]
    practised = f"b/math at commit {commit}, files `main/train*`, 3 rows: tasks"
    assert list(map(str, hub_rows(settings, 3))) == [*before, practised, held_out]
    monkeypatch.setattr(trained_on, "entries", lambda data: (_ for _ in ()).throw(DataError("gone")))
    assert [rows.rows for rows in hub_rows(settings, 3)] == [None] * 4
    assert hub_rows({"tasks": {"train": "rows.jsonl"}, "stages": []}, 3) == ()
