"""Probes of a small decoder: vectors, gradients and updates against what torch computes by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hub_cases import hub_model

from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.curate import AngleOrder, Donod, Influential, Pipeline, Row
from assay.runtime import DecoderShape, char_tokenizer, init_model, load_model, save_model
from assay.runtime.learner.decoder import Decoder
from assay.runtime.models.features import Prober
from assay.runtime.models.hub_model import HubModel, merge_adapter
from assay.runtime.models.model import with_arrays
from assay.runtime.settings import Lora
from assay.select import GradientProbe, UpdateProbe, VectorProbe

SHAPE = DecoderShape(
    vocab_size=14, hidden_size=16, num_layers=2, num_heads=2, num_kv_heads=1, head_dim=8, intermediate_size=24, max_positions=24
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("model") / "model"
    save_model(init_model(SHAPE, char_tokenizer("0123456789S>"), seed=0, init="fan_in"), place)
    return place


def row(question: str, gold: Any) -> Row:
    return Row(question, 0, 1, {}, question, gold, question)


def likelihood(model: Any, ids: np.ndarray, first: int) -> float:
    decoder = Decoder(model.shape)
    decoder.load_tensors(model.tensors)
    with torch.no_grad():
        logp = decoder.logits(torch.from_numpy(ids.astype(np.int64)), np.array([0, len(ids)], np.int64)).double().log_softmax(-1)
    return float(sum(logp[i - 1, int(ids[i])] for i in range(first, len(ids))))


def test_the_gradient_is_that_of_the_likelihood(folder: Path) -> None:
    model = load_model(folder)
    prober, name = Prober(model), "model.layers.1.mlp.down_proj.weight"
    prompt, answer = model.tokenizer.encode("S31>"), model.tokenizer.encode("13")
    gradient, ids = prober.gradient(prompt, answer), np.concatenate([prompt, answer])
    assert gradient.shape == prober.weight.shape == (16, 24)
    rng = np.random.default_rng(0)
    direction = rng.standard_normal(gradient.shape).astype(np.float32)
    weights = {n: t.numpy() for n, t in model.tensors.items()}
    moved = [with_arrays(model, weights | {name: weights[name] + s * 1e-2 * direction}) for s in (1, -1)]
    ends = [likelihood(m, ids, len(prompt)) for m in moved]
    assert (ends[0] - ends[1]) / 2e-2 == pytest.approx(float((gradient * direction).sum()), rel=1e-2)
    assert (prober.weight == model.tensors[name].numpy()).all(), "nothing was changed"
    assert (prober.gradient(prompt, answer) == gradient).all()


def test_vectors_are_normed_and_do_not_see_what_follows(folder: Path) -> None:
    model = load_model(folder)
    prober, ids = Prober(model), model.tokenizer.encode("S31>5")
    vectors = prober.vectors(ids)
    assert vectors.shape == (5, 16)
    assert np.square(vectors).mean(1) == pytest.approx(np.ones(5), rel=1e-3), "behind the norm, whose weights are 1"
    assert prober.vectors(ids[:3]) == pytest.approx(vectors[:3], abs=1e-5)
    for wrong in (ids[:0], np.resize(ids, 25)):
        with pytest.raises(DataError, match="the model reads 1 to 24"):
            prober.vectors(wrong)
    with pytest.raises(DataError, match="at least one of each"):
        prober.gradient(ids, ids[:0])


def test_wrong_blocks_and_settings(folder: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean 'mlp\.up_proj'"):
        Prober(load_model(folder), "mlp.upproj")
    bare = init_model(DecoderShape(vocab_size=14, num_layers=0), char_tokenizer("0123456789S>"), seed=0)
    with pytest.raises(DataError, match="without layers"):
        Prober(bare)
    with pytest.raises(ConfigError, match="rate=0"):
        UpdateProbe(model=folder, rate=0)
    with pytest.raises(ConfigError, match="width=0"):
        GradientProbe(model=folder, width=0)
    with pytest.raises(DataError, match="no gold text"):
        GradientProbe(model=folder).entries([row("S1>", None)])


def test_updates_and_gradients_of_rows(folder: Path) -> None:
    rows, prober = [row("S31>", "13"), row("S2>", None)], Prober(load_model(folder))
    probe = GradientProbe(model=folder, width=64)
    (one, none), tokenizer = probe(rows), load_model(folder).tokenizer
    whole = prober.gradient(tokenizer.encode("S31>"), tokenizer.encode("13"))
    assert one is not None and none is None
    assert float(np.square(one["gradient"]).sum()) == pytest.approx(float(np.square(whole).sum()), rel=0.5), (
        "projection keeps size"
    )
    update, missing = UpdateProbe(model=folder, rate=0.5)(rows)
    assert update is not None and missing is None
    assert update["nod"] == pytest.approx(0.5 * float(np.linalg.norm(whole)) / 2, rel=1e-5)
    assert abs(update["don"]) <= update["nod"]


def test_probes_serve_their_steps(folder: Path, tmp_path: Path) -> None:
    lines = "".join(f'{{"prompt": "S{i}{i + 1}>", "answer": "{i}{i + 1}"}}\n' for i in range(6))
    (tmp_path / "in.jsonl").write_text(lines, encoding="utf-8")
    gradients = GradientProbe(model=folder, width=8)
    validation = tmp_path / "val.jsonl"
    validation.write_text("".join(f"{e}\n".replace("'", '"') for e in gradients.entries([row("S12>", "12")])), encoding="utf-8")
    pipeline = Pipeline(
        steps=(
            AngleOrder(probe=VectorProbe(model=folder, before="S>")),
            Donod(probe=UpdateProbe(model=folder), share=0.5),
            Influential(probe=gradients, validation=validation, share=0.3),
        )
    )
    counts = pipeline.run([tmp_path / "in.jsonl"], tmp_path / "out")["counts"]
    assert [step["kept"] for step in counts["steps"]] == [6, 3, 1]
    text = (tmp_path / "out" / "train.jsonl").read_text() + (tmp_path / "out" / "test.jsonl").read_text()
    assert all(f'"{name}":' in text for name in ("angle", "angle_rank", "closeness", "influence"))


# ---- other families ----------------------------------------------------------------------------------------------------


def other(family: str) -> HubModel:
    """A model of transformers; behind a plus sign beside an adapter that does something."""
    model = hub_model(family.removesuffix("+"))
    if not family.endswith("+"):
        return model
    fresh, noise = model.with_adapter(Lora(rank=2)).adapter, torch.Generator().manual_seed(0)
    assert fresh is not None
    drawn = {n: 0.3 * torch.randn(t.shape, generator=noise) for n, t in fresh.tensors.items()}
    return replace(model, adapter=replace(fresh, tensors=drawn))


LAST = {
    "gpt2": ("transformer.h.1", "mlp.c_proj"),
    "phi": ("model.layers.1", "mlp.fc2"),
    "gemma2+": ("model.layers.1", "mlp.down_proj"),
}


@pytest.mark.parametrize("family", LAST)
def test_any_model_is_looked_into(family: str, tmp_path: Path) -> None:
    model, (layer, block) = other(family), LAST[family]
    whole, prober = merge_adapter(model), Prober(model)
    assert prober.block == block and prober.weight == pytest.approx(whole.tensors[f"{layer}.{block}.weight"].numpy(), abs=1e-6)
    prompt, answer = model.tokenizer.encode("S31>"), model.tokenizer.encode("13")
    ids = torch.from_numpy(np.concatenate([prompt, answer]).astype(np.int64))
    module: Any = whole.module()
    caught: list[torch.Tensor] = []
    module.get_submodule(f"{layer}.mlp").register_forward_pre_hook(lambda _, given: caught.append(given[0][0].detach()))
    weight = module.get_parameter(f"{layer}.{block}.weight")
    logs = module(ids[None]).logits[0].log_softmax(-1)  # Gemma's with a soft cap
    said = sum(logs[i - 1, ids[i]] for i in range(len(prompt), len(ids)))
    (wanted,) = torch.autograd.grad(said, [weight])
    assert prober.gradient(prompt, answer) == pytest.approx(wanted.numpy(), abs=2e-4)
    assert prober.vectors(ids.numpy().astype(np.int32)) == pytest.approx(caught[0].numpy(), abs=2e-4)
    save_model(model, tmp_path / "run" / "model")
    (measured, none) = GradientProbe(model=tmp_path / "run", width=4)([row("S31>", "13"), row("S2>", None)])
    assert measured is not None and none is None and np.isfinite(measured["gradient"]).all()


def test_layers_that_cannot_be_told_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    model = hub_model("gpt2")
    with pytest.raises(UnknownNameError, match=r"mlp\.down_proj.*known: .*mlp\.c_fc"):
        Prober(model, "mlp.down_proj")
    with pytest.raises(ConfigError, match=r"GPT2LMHeadModel: no list of 7 layers in it"):
        Prober(model)._last_layer(7)
    prober = Prober(model)
    monkeypatch.delattr(prober, "_last")
    prober._last = torch.nn.ModuleDict({"attn": prober._decoder.module.transformer.h[-1].attn, "fc1": torch.nn.Linear(2, 2)})
    with pytest.raises(ConfigError, match="the MLP of its last layer is no part of its own"):
        prober.vectors(model.tokenizer.encode("S2"))
