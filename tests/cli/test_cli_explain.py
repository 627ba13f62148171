"""Derived sizes, computed by hand."""

import json
import re
from dataclasses import replace

import pytest

from assay.cli import preflight
from assay.cli.explain import _plan
from assay.cli.preflight import outline
from assay.cli.recipe import settle
from assay.cli.sizes import MemoryEstimate, derive, model_shape
from assay.cli.train import TrainOptions
from assay.core.errors import ConfigError, DataError
from assay.core.plan import Plan
from assay.runtime.settings import DecoderShape
from assay.runtime.text.tokenizer import char_tokenizer
from assay.train.driver import train
from assay.train.models import Folder
from assay.train.out_of_memory import format_bytes

# mine.py:tiny: alphabet of 12 characters and 2 specials; embedding 14*16 = 224; attention 16*16*4 + 2*16 = 1056;
# mlp 3*16*32 = 1536; two norms of the layer 32; last norm 16.
PARAMETERS = 224 + 1056 + 1536 + 32 + 16


def test_sizes_of_a_tiny_run(assay, mine):
    found = assay("explain", "mine.py:tiny", "--json").json["derived"]
    assert found["parameters"] == PARAMETERS
    assert found["shape"]["vocab_size"] == 14
    assert found["context"] == 24
    assert found["final_items"] == 2 * 3
    stage = found["stages"][0]
    assert (stage["stage"], stage["steps"], stage["rows"], stage["rollouts"], stage["updates"]) == ("Reinforce", 3, 4, 12, 3)
    assert stage["tokens"] == 12 * 4
    assert stage["levels"] == {"sort": [1, 2]}
    assert stage["evaluations"] == 2 + 1  # before, after step 2, at the end
    assert stage["evaluation_items"] == 4
    assert stage["plan"]["live"] == ["logp_new"]
    four = 4 * PARAMETERS
    rows = 6  # of an evaluation; 4 in training
    cache = 4 * rows * 24 * 2 * 1 * 1 * 16
    # compiled passes: 16 or 32 numbers lie in 48, 48 or 64 in 80; the stream twice, q k v, what attention gives, gate and up
    kept = 2 * 48 + 80 + 48 + 80 + 4 * 48
    passing = 384 * (3 * 48 + 2 * 48 + 80 + 48 + 3 * 80 + 2 * 16)  # of the tokens that go through all layers at once
    acts = 4 * (4096 * kept + passing + 7 * PARAMETERS)  # weights packed for two passes, four sums of gradients, and these
    token = 4 * (2 * 16 + 48 + 16 + 64 + 16)  # the same of a sampled token, on whole lines, and the last state of the stream
    recalled = token * 2 * (2 * 16 + 32)  # of two prompts and of two answers to each, in sheets of sixteen tokens
    head = 4 * (2 * 96 * 14 + 3 * 14 * 16)  # compiled: a block's logits; the weight packed, its gradient summed and handed over
    assert found["memory"] == {
        "weights": four,
        "gradients": four,
        "optimiser": 2 * four,
        "anchors": four,
        "activations": acts,
        "head": head,
        "engine": 2 * four,
        "cache": cache,
        "recalled": recalled,
        "samplers": 0,
        "total": 7 * four + acts + head + cache + recalled,  # the engine's weights as tensors and packed
    }
    assert list(found["less"])[:2] == ["micro_tokens=2048", "precision='bf16'"]
    assert found["base"] is None


def test_anchors_are_set_word_by_word_and_counted(assay, mine):
    place = "--stages.0.learner.anchors"
    words = [
        f"{place}.0.refresh.kind",
        "Every",
        f"{place}.0.refresh.steps",
        "3",
        f"{place}.1.kind",
        "Anchor",
        f"{place}.1.name",
        "mask",
    ]
    found = assay("explain", "mine.py:tiny", "--json", *words).json
    (stage,) = found["settings"]["stages"]
    assert [a["name"] for a in stage["learner"]["anchors"]] == ["ref", "mask"]
    assert stage["learner"]["anchors"][0]["refresh"] == {"kind": "assay.runtime.anchors:Every", "steps": 3}
    assert found["derived"]["memory"]["anchors"] == 2 * 4 * PARAMETERS  # 'mask' stays at the start
    moving = [*words, f"{place}.1.refresh.kind", "Ema", f"{place}.1.refresh.decay", "0.9"]
    assert assay("explain", "mine.py:tiny", "--json", *moving).json["derived"]["memory"]["anchors"] == 3 * 4 * PARAMETERS


def test_updates_muon_and_levels(assay, mine):
    words = [
        "--stages.0.epochs",
        "2",
        "--stages.0.minibatches",
        "2",
        "--stages.0.levels",
        "2",
        "--stages.0.learner.optimizer.kind",
        "Muon",
    ]
    found = assay("explain", "mine.py:tiny", "--json", *words).json["derived"]
    assert found["stages"][0]["updates"] == 3 * 4
    assert found["stages"][0]["levels"] == {"sort": [2]}
    assert "logp_old" in [f["column"] for f in found["stages"][0]["plan"]["forwards"]]
    hidden = 16 * 16 * 4 + 1536  # matrices of the layer: one momentum instead of two moments
    assert found["memory"]["optimiser"] == 4 * (2 * PARAMETERS - hidden)


def test_quickstart_names_its_base_and_whether_it_is_cached(assay, tmp_path):
    found = assay("explain", "quickstart", "--json").json
    base = found["derived"]["base"]
    assert base["stages"][0]["stage"] == "WarmUp"
    assert base["stages"][0]["rollouts"] == 600 * 64
    assert base["stages"][0]["tokens"] == 0
    assert found["derived"]["cached"] is None
    text = assay("explain", "quickstart")
    assert "that base is not in the cache yet" in text.out
    sampled = found["derived"]["stages"][0]["tokens"]
    assert f"at most {sampled:,}" in text.out
    folder = tmp_path / "cache" / "base" / "base-sort-0"
    other = tmp_path / "cache" / "base" / "base-sort-1"
    for place, seed in ((folder, "0"), (other, "1")):
        place.mkdir(parents=True)
        (place / "done.json").write_text("{}")
        (place / "run.toml").write_text(assay("explain", "base", "--seed", seed, "--toml").out)
    assert assay("explain", "quickstart", "--json").json["derived"]["cached"] == str(folder)
    assert f"that base is in the cache: {folder}" in assay("explain", "quickstart").out


def test_tools_count_turns(assay):
    found = assay("explain", "tools", "--json").json
    run, stage = found["settings"], found["derived"]["stages"][0]
    assert stage["tokens"] == stage["rollouts"] * run["sampling"]["max_new_tokens"] * run["max_turns"]


def test_toml_is_a_recipe(assay, tmp_path):
    (tmp_path / "mine.toml").write_text(assay("explain", "quickstart", "--seed", "4", "--toml").out)
    first, second = (assay("explain", word, "--seed", "4", "--json").json for word in ("quickstart", "mine.toml"))
    assert first["derived"] == second["derived"]
    assert first["settings"]["stages"] == second["settings"]["stages"]
    assert assay("explain", "quickstart", "--toml", "--json").code == 2


def test_text_shows_settings_and_sizes(assay, mine):
    text = assay("explain", "mine.py:tiny").out
    for line in (
        r"  name +'tiny'",
        r"      curriculum +Mine",
        r"        pace +Pace\.CALM",
        rf"  model +{PARAMETERS:,} parameters: .*",
        r"    levels +sort 1, 2",
    ):
        assert re.search(f"^{line}$", text, re.MULTILINE), line


def test_the_plan_says_which_statistics_cross_ranks(assay, mine):
    found = assay("explain", "mine.py:tiny", "--json").json["derived"]["stages"][0]["plan"]["reductions"]
    assert found
    assert f"statistics that cross ranks: {', '.join(found)}\n" in assay("explain", "mine.py:tiny").out
    assert _plan(Plan()).endswith("statistics that cross ranks: none")


def test_the_longest_prompts_and_answers_that_just_fit_go_on(assay, mine):
    assert assay("explain", "mine.py:tiny", "--sampling.max-new-tokens", "20").code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--sampling.max-new-tokens", "21"],
            "(arm 'sort', level 2) has a prompt of 4 tokens; with Run.sampling.max_new_tokens=21",
        ),
        (["--sampling.max-new-tokens", "24"], "leaves no room for a prompt"),
        (["--tasks.levels", "1", "19"], "level 19) has a prompt of 21 tokens"),
        (["--model.alphabet", "0123456789>"], "the tokenizer's alphabet lacks 'S'"),
        (["--sampling.temperature", "0"], "no group would have a signal"),
    ],
)
def test_what_train_refuses_is_refused(assay, mine, words, said):
    """One token more than fits, and both refuse with the same words."""
    got = assay("explain", "mine.py:tiny", *words)
    assert (got.code, got.out) == (2, "")
    assert said in got.err
    assert assay("train", "mine.py:tiny", *words).err == got.err
    run = settle(TrainOptions, "mine.py:tiny", words, "assay train")[1]
    with pytest.raises((ConfigError, DataError), match=re.escape(said)):
        train(run, "r")


def test_the_base_is_looked_at_too(assay, mine):
    mine.with_name("two.py").write_text(
        "from dataclasses import replace\n"
        "from mine import tiny\n"
        "from assay_tasks import SortDigits\n"
        "from assay.train.models import Built\n"
        "def two():\n"
        "    'Its base has the longer tasks.'\n"
        "    return replace(tiny(), model=Built(run=replace(tiny(), tasks=SortDigits(levels=(1, 19)))))\n"
    )
    assert "level 19) has a prompt of 21 tokens" in assay("explain", "two.py:two").err


def test_a_model_folder_is_looked_at_without_its_weights(assay, mine, tmp_path):
    tokenizer = char_tokenizer("0123456789S>")
    tokenizer.save(tmp_path)
    config = {
        "vocab_size": 14,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 8,
        "model_type": "qwen3",
        "head_dim": 8,
        "eos_token_id": [1, 0],
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert outline(Folder(str(tmp_path))).tokenizer.eos == 1
    words = ["--model.kind", "Folder", "--model.path", tmp_path]
    assert assay("explain", "mine.py:tiny", *words).code == 0  # 4 tokens asked, 4 answered
    assert "level 2) has a prompt of 4 tokens" in assay("explain", "mine.py:tiny", *words, "--sampling.max-new-tokens", "5").err
    named = json.loads((tmp_path / "tokenizer_config.json").read_text())
    del named["eos_token"]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(named))
    assert outline(Folder(str(tmp_path))).tokenizer.eos == 1  # as the config says
    (tmp_path / "tokenizer.json").unlink()
    assert "has no tokenizer.json" in assay("explain", "mine.py:tiny", *words).err


ON_A_MODEL = """
from assay.recipes import on_rows

def on_a_model():
    rows = [{"prompt": f"S{n}>", "answer": str(n)} for n in range(10, 30)]
    return on_rows(rows, model="small", steps=1, groups=1, group_size=2, max_new_tokens=2, device="cpu")
"""


def test_explain_begins_with_what_train_says_of_the_model_and_the_machine(assay, tmp_path):
    from assay.runtime import init_model, save_model

    shape = DecoderShape(
        vocab_size=14,
        hidden_size=16,
        num_layers=1,
        num_heads=2,
        num_kv_heads=2,
        head_dim=8,
        intermediate_size=32,
        max_positions=24,
    )
    save_model(init_model(shape, char_tokenizer("0123456789S>"), seed=0), tmp_path / "small")
    (tmp_path / "mine_model.py").write_text(ON_A_MODEL)
    said = assay("explain", "mine_model.py:on_a_model")
    assert said.code == 0, said.err
    lines = said.out[said.out.index("model small: ") :].partition("\n\n")[0].splitlines()
    assert (
        lines[0].startswith("model small: 2,848 weights")  # two norms of heads of 8, not 16
        and "trains all weights in fp32, lr" in lines[1]
        and "for full training" in lines[1]
    )
    assert "\n\nsettings" in said.out
    assert assay("explain", "mine_model.py:on_a_model", "--json").json["chosen"] == lines
    trained = assay("train", "mine_model.py:on_a_model", "--folder", "run", "--plain", "--no-report")
    assert trained.code == 0 and "\n".join(lines) in trained.err
    assert assay("explain", "quickstart", "--json").json["chosen"] == []


def test_without_tokenizers_explain_says_that_it_has_not_looked(assay, mine, monkeypatch):
    monkeypatch.setattr(preflight, "find_spec", lambda name: None)
    said = assay("explain", "mine.py:tiny", "--sampling.max-new-tokens", "21")
    assert said.code == 0
    assert "is not checked: tokenizers is not installed" in said.err
    assert assay("explain", "mine.py:tiny", "--sampling.temperature", "0").code == 2  # the settings tell


def test_a_config_of_qwen_has_its_own_defaults(tmp_path):
    config = {
        "vocab_size": 14,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "model_type": "qwen3",
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = model_shape(Folder(str(tmp_path)))
    assert (found.head_dim, found.max_positions, found.qk_norm) == (128, 32768, True)


def test_shape_of_a_model_folder(tmp_path):
    config = {
        "vocab_size": 14,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 24,
        "tie_word_embeddings": True,
        "model_type": "llama",
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    wanted = DecoderShape(
        vocab_size=14,
        hidden_size=16,
        num_layers=1,
        num_heads=2,
        num_kv_heads=2,
        head_dim=8,
        intermediate_size=32,
        max_positions=24,
        tied=True,
        qk_norm=False,
    )
    assert model_shape(Folder(str(tmp_path))) == wanted
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(DataError, match="it does not describe a decoder"):
        model_shape(Folder(str(tmp_path)))
    with pytest.raises(DataError, match="only known once it is loaded"):
        model_shape(object())


def test_memory_is_that_of_the_stage_that_needs_most():
    from assay.recipes import quickstart

    run = quickstart()
    found = derive(run)
    assert found.memory.total == sum(
        (
            found.memory.weights,
            found.memory.gradients,
            found.memory.optimiser,
            found.memory.anchors,
            found.memory.activations,
            found.memory.head,
            found.memory.engine,
            found.memory.cache,
            found.memory.recalled,
        )
    )
    assert found.base is not None
    assert found.memory.optimiser > found.base.memory.optimiser
    stage = replace(run.stages[0], lag=2)
    older = derive(replace(run, stages=(stage,)))
    copy = 4 * found.parameters
    assert (found.memory.engine, older.memory.engine) == (2 * copy, 5 * copy), "three wait beside what is served, and packed"
    assert (
        MemoryEstimate(weights=1, gradients=2, optimiser=3, anchors=4, activations=5, head=6, engine=7, cache=8, recalled=9).total
        == 45
    )


@pytest.mark.parametrize(
    ("count", "text"), [(512, "512 B"), (1536, "1.5 KiB"), (3 * 2**30, "3.0 GiB"), (5000 * 2**40, "5000.0 TiB")]
)
def test_bytes_for_people(count, text):
    assert format_bytes(count) == text


def test_the_command_of_a_server_that_the_engine_asks(assay):
    words = ("explain", "gsm8k-lora", "--engine.kind", "VllmSettings", "--engine.url", "http://10.0.0.7:81")
    told = assay(*words).out
    assert "VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 vllm serve Qwen/Qwen3-8B --host 10.0.0.7 --port 81" in told
    assert "--max-lora-rank 32" in assay(*words, "--json").json["server"]
    assert "server" not in assay("explain", "gsm8k", "--engine.kind", "Auto", "--json").json
