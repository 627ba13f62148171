"""Derived sizes, computed by hand."""

import json

import pytest

from assay.cli.explain import _size
from assay.cli.sizes import Memory, derive, model_shape
from assay.core.errors import DataError
from assay.runtime.settings import DecoderShape
from assay.train.models import Folder

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
    assert (stage["stage"], stage["steps"], stage["rows"], stage["attempts"], stage["updates"]) == ("Reinforce", 3, 4, 12, 3)
    assert stage["tokens"] == 12 * 4
    assert stage["levels"] == {"sort": [1, 2]}
    assert stage["evaluations"] == 2 + 1  # before, after step 2, at the end
    assert stage["evaluation_items"] == 4
    assert stage["plan"]["live"] == ["logp_new"]
    four = 4 * PARAMETERS
    rows = 6  # of an evaluation; 4 in training
    cache = 4 * rows * 24 * 2 * 1 * 1 * 16
    assert found["memory"] == {
        "weights": four, "gradients": four, "optimiser": 2 * four, "anchors": four, "engine": four, "cache": cache,
        "total": 6 * four + cache,
    }  # fmt: skip
    assert found["base"] is None


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
    assert base["stages"][0]["attempts"] == 600 * 64
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
    assert stage["tokens"] == stage["attempts"] * run["sampling"]["max_new_tokens"] * run["max_turns"]


def test_toml_is_a_recipe(assay, tmp_path):
    (tmp_path / "mine.toml").write_text(assay("explain", "quickstart", "--seed", "4", "--toml").out)
    first, second = (assay("explain", word, "--seed", "4", "--json").json for word in ("quickstart", "mine.toml"))
    assert first["derived"] == second["derived"]
    assert first["settings"]["stages"] == second["settings"]["stages"]
    assert assay("explain", "quickstart", "--toml", "--json").code == 2


def test_text_shows_settings_and_sizes(assay, mine):
    text = assay("explain", "mine.py:tiny").out
    for line in (
        "  name              'tiny'",
        "      curriculum   Mine",
        "        pace   Pace.CALM",
        f"  model    {PARAMETERS:,} parameters",
    ):
        assert line in text
    assert "sort 1, 2" in text


def test_shape_of_a_model_folder(tmp_path):
    config = {
        "vocab_size": 14, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
        "max_position_embeddings": 24, "tie_word_embeddings": True, "model_type": "llama",
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    wanted = DecoderShape(
        vocab_size=14, hidden_size=16, num_layers=1, num_heads=2, num_kv_heads=2, head_dim=8, intermediate_size=32,
        max_positions=24, tied=True, qk_norm=False,
    )  # fmt: skip
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
            found.memory.engine,
            found.memory.cache,
        )
    )
    assert found.base is not None
    assert found.memory.optimiser > found.base.memory.optimiser
    assert Memory(weights=1, gradients=2, optimiser=3, anchors=4, engine=5, cache=6).total == 21


@pytest.mark.parametrize(
    ("count", "text"), [(512, "512 B"), (1536, "1.5 KiB"), (3 * 2**30, "3.0 GiB"), (5000 * 2**40, "5000.0 TiB")]
)
def test_bytes_for_people(count, text):
    assert _size(count) == text
