"""Mixtures of experts on a vLLM server, without one: names and pieces of checkpoints, what is sent, what checksums tell."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from types import SimpleNamespace

import httpx
import numpy as np
import pytest
import torch
from hub_cases import FAMILIES, hub_model, tokenizer
from safetensors.numpy import load_file
from vllm_book import Book, arrays_of, engine_of, out_of_vocabulary, refuse, run, sending

from assay.core.canon import array_digest
from assay.core.errors import ConfigError, EngineError
from assay.core.manifest import manifest_of
from assay.runtime import VllmEngine, VllmSettings, load_model, save_model
from assay.runtime.vllm.checkpoint import TensorRows, checkpoint_names, cut, whole
from assay.runtime.vllm.checksums import compare_checksums
from assay.runtime.vllm.flags import EXTENSION
from assay.runtime.vllm.server import WHOLE
from assay.runtime.vllm.snapshots import WeightFiles, shapes_in
from assay.runtime.vllm.transfer import HeldVersion
from assay.runtime.vllm.worker import FORGET, ExpertKernels

MLP = "model.layers.1.mlp."
MIXTRAL = "model.layers.1.block_sparse_moe."


def parts_of(model):
    return cut(model, {n: tuple(t.shape) for n, t in model.tensors.items()})


def manifest(model, number=1, by=0.0):
    return manifest_of(number, {n: a + np.float32(by) for n, a in arrays_of(model).items()})


# ---- names and pieces --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_each_tensor_stands_in_checkpoints_as_transformers_writes_it(family, tmp_path):
    model = hub_model(family)
    parts, arrays = parts_of(model), arrays_of(model)
    save_model(model, tmp_path / "m")
    written = load_file(tmp_path / "m" / "model.safetensors")
    assert written.keys() == parts.keys()
    for name, rows in parts.items():
        assert np.array_equal(rows.of(arrays[rows.source]), written[name]), name
    for name, array in arrays.items():
        pieces = [parts[n].of(array).ravel() for n in checkpoint_names(name, parts)]
        assert np.array_equal(np.concatenate(pieces), array.ravel()), name


def test_experts_of_two_families_by_hand():
    """Qwen's keep their names; Mixtral's gate, up and down projections are called w1, w3 and w2."""
    qwen, mixtral = parts_of(hub_model("qwen3_moe")), parts_of(hub_model("mixtral"))
    assert qwen[MLP + "experts.3.gate_proj.weight"] == TensorRows(MLP + "experts.gate_up_proj", 3 * 64, (32, 48))
    assert qwen[MLP + "experts.3.up_proj.weight"] == TensorRows(MLP + "experts.gate_up_proj", 3 * 64 + 32, (32, 48))
    assert qwen[MLP + "experts.3.down_proj.weight"] == TensorRows(MLP + "experts.down_proj", 3 * 48, (48, 32))
    assert mixtral[MIXTRAL + "experts.1.w1.weight"] == TensorRows(MLP + "experts.gate_up_proj", 160, (80, 48))
    assert mixtral[MIXTRAL + "experts.1.w3.weight"] == TensorRows(MLP + "experts.gate_up_proj", 160 + 80, (80, 48))
    assert mixtral[MIXTRAL + "experts.1.w2.weight"] == TensorRows(MLP + "experts.down_proj", 48, (48, 80))
    assert mixtral[MIXTRAL + "gate.weight"] == TensorRows(MLP + "gate.weight", 0, (4, 48))


class Odd:
    def __init__(self, saved):
        self.checkpoint_tensors = saved

    def constants(self):
        return {}


@pytest.mark.parametrize(
    ("saved", "text"),
    [
        (lambda t: {"a": t["a"].transpose(0, 1)}, "tensor 'a' of this model's checkpoints is no run of rows"),
        (lambda t: {"a": t["a"].flip(0)}, "is no run of rows"),
        (lambda t: {"ab": torch.cat([t["a"].reshape(6, 2), t["b"]])}, "'ab' .* is no run of rows"),
        (lambda t: {"a": t["a"]}, "leave out some of its tensors"),
    ],
    ids=["transposed", "in another order", "of two", "left out"],
)
def test_what_is_no_run_of_rows_is_refused(saved, text):
    with pytest.raises(ConfigError, match=text):
        cut(Odd(saved), {"a": (2, 3, 4), "b": (5, 4)})


def test_vectors_numbers_and_other_models_go_as_they_are():
    shapes = {"a": (4,), "b": (), "c": (2, 1)}
    assert cut(Odd(dict), shapes) == cut(SimpleNamespace(), shapes) == whole(shapes)
    assert TensorRows("b", 0, ()).of(np.float32(3.0).reshape(())).shape == ()


# ---- what is sent ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_snapshot_of_experts_is_a_checkpoint_and_gives_the_fused_tensors_back(tmp_path, dtype):
    model = hub_model("mixtral")
    made, parts = manifest(model).round_to(dtype), parts_of(model)
    save_model(model, tmp_path / "m")
    snapshot = WeightFiles(str(tmp_path / "w"), tmp_path / "m", "n").full(made, parts)
    assert shapes_in(snapshot.path) == shapes_in(tmp_path / "m")
    for name, told in made.tensors.items():
        assert array_digest(snapshot.array(name)) == told.digest, name


def test_what_goes_without_files_has_the_names_of_a_checkpoint(tmp_path):
    model = hub_model("qwen3_moe")
    held = HeldVersion.of(manifest(model), parts_of(model))
    sent = dict(held.tensors_to_send())
    save_model(model, tmp_path / "m")
    assert {w.name: w.shape for w in held.wires()} == shapes_in(tmp_path / "m")
    fused = held.array(MLP + "experts.gate_up_proj")
    assert np.shares_memory(sent[MLP + "experts.2.up_proj.weight"], fused)
    assert np.array_equal(sent[MLP + "experts.2.up_proj.weight"], fused[2, 32:])


# ---- checksums ---------------------------------------------------------------------------------------------------------------

W13, W2 = MIXTRAL + "experts.routed_experts.w13_weight", MIXTRAL + "experts.routed_experts.w2_weight"
GATE_UP, DOWN = MLP + "experts.gate_up_proj", MLP + "experts.down_proj"


def sha(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


@pytest.mark.parametrize("held", [True, False], ids=["memory", "files"])
def test_experts_are_told_where_a_server_keeps_them_as_they_come(tmp_path, held):
    model = hub_model("mixtral")
    made, parts = manifest(model), parts_of(model)
    sent = HeldVersion.of(made, parts) if held else WeightFiles(str(tmp_path), None, "n").full(made, parts)
    gate_up, down = made.payload[GATE_UP], made.payload[DOWN]
    laid: set[str] = set()
    assert (compare_checksums(sent, {W13: "in an order of a kernel", W2: "so too"}, laid), laid) == ({}, set())
    right = {W13: sha(gate_up), W2: sha(down), MIXTRAL + "gate.weight": sha(made.payload[MLP + "gate.weight"])}
    told = {name: made.tensors[name].digest for name in (GATE_UP, DOWN, MLP + "gate.weight")}
    assert compare_checksums(sent, right, laid) == told
    swapped = np.concatenate([gate_up[:, 80:], gate_up[:, :80]], axis=1)  # the up projections first
    assert compare_checksums(sent, {**right, W13: sha(swapped)}, laid) == told
    assert laid == {W13, W2}


def test_experts_that_did_not_arrive_are_told_once_their_order_is_known():
    model = hub_model("mixtral")
    first, second, parts = manifest(model), manifest(model, 2, by=0.5), parts_of(model)
    laid: set[str] = set()
    served = {W13: sha(first.payload[GATE_UP]), W2: sha(second.payload[DOWN])}
    assert compare_checksums(HeldVersion.of(first, parts), served, laid) == {GATE_UP: first.tensors[GATE_UP].digest}
    told = compare_checksums(HeldVersion.of(second, parts), served, laid)
    assert told == {GATE_UP: f"the server's {W13} has sha256 {served[W13]}", DOWN: second.tensors[DOWN].digest}
    damaged = HeldVersion.of(replace(second, payload={**second.payload, DOWN: second.payload[DOWN] + 1}), parts)
    assert compare_checksums(damaged, served, laid)[DOWN] == "memory holds other bytes than were published"


# ---- a server by the book ----------------------------------------------------------------------------------------------------


@pytest.fixture
def model():
    return hub_model("mixtral")


@pytest.fixture
def book(model, tmp_path):
    save_model(model, tmp_path / "m")
    made = Book(tmp_path / "m")
    made.fails["/inference/v1/generate"] = out_of_vocabulary(model.shape.vocab_size)
    made.on_collective_rpc = lambda body: {"results": ["2", "2"] if body["method"] == FORGET else [None, None]}
    return made


def on_cpu(book, extension=EXTENSION):
    book.device, book.extension = "cpu", extension


def methods(book):
    return [body.get("method", path) for path, body in book.asked if path in ("/pause", "/collective_rpc", "/resume")]


def test_a_gpu_server_is_sent_a_checkpoint_and_told_nothing_else(book, model):
    engine = engine_of(book, model)
    run(engine.swap(manifest(model)))
    assert methods(book) == ["/pause", "reload_weights", "/resume"]
    path = next(body["kwargs"]["weights_path"] for p, body in book.asked if p == "/collective_rpc")
    assert shapes_in(book.folder) == shapes_in(type(book.folder)(path))


def test_a_cpu_server_is_told_to_make_its_kernels_anew(book, model):
    on_cpu(book)
    engine = engine_of(book, model)
    run(engine.swap(manifest(model)))
    assert methods(book) == ["/pause", FORGET, "reload_weights", "/resume"]
    book.fails["/collective_rpc"] = refuse(
        500, "broken", lambda body: body.get("kwargs", {}).get("weights_path", "").endswith("v2")
    )
    book.asked.clear()
    with pytest.raises(EngineError, match="It serves version 1 again"):
        run(engine.swap(manifest(model, 2)))
    assert methods(book) == ["/pause", FORGET, "reload_weights", FORGET, "reload_weights", "/resume"]


def test_so_is_one_that_takes_weights_without_files(book, model):
    on_cpu(book)
    book.transfer = {"backend": "nccl"}
    memory, engine = sending(book, model)
    run(engine.swap(manifest(model)))
    assert methods(book) == ["/pause", FORGET, "/resume"]
    assert book.paths().index("/collective_rpc") < book.paths().index("/update_weights")
    assert list(memory.sent[0]) == list(parts_of(model))


def test_a_cpu_server_without_the_extension_is_refused(book, model):
    on_cpu(book, "")
    with pytest.raises(ConfigError, match=r"serves a mixture of experts on the CPU, where .*the wrong order") as caught:
        engine_of(book, model).info()
    assert str(caught.value).endswith(f"--logprobs-mode processed_logprobs --worker-extension-cls {EXTENSION} {WHOLE}")


def test_adapters_beside_experts_on_the_cpu_are_refused_before_any_request(book, model):
    """At its first request the engine of such a server ends."""
    on_cpu(book)
    book.rank = 8
    with pytest.raises(ConfigError, match=r"experts on the CPU with adapters, .*InProcess.*to train all weights start it with: "):
        engine_of(book, model).info()
    assert "/inference/v1/generate" not in book.paths()
    book.rank = 0
    adapter = manifest_of(1, {"base_model.model.q.lora_A.weight": np.zeros((2, 8), np.float32)})
    with pytest.raises(ConfigError, match=r"on the CPU, where vLLM takes no adapters; sample in process"):
        run(engine_of(book, model, {"r": 2}).swap(adapter))


def test_a_server_whose_kernels_are_not_found_is_told_nothing_new(book, model):
    on_cpu(book)
    book.on_collective_rpc = lambda body: {"results": ["2", "0"]}
    with pytest.raises(EngineError, match=r"finds no kernels of experts on .*another version of vLLM"):
        run(engine_of(book, model).swap(manifest(model)))
    assert not any(body.get("method") == "reload_weights" for _, body in book.asked)


def test_numbers_that_no_learner_publishes_are_sent_with_each_version(tmp_path):
    """The biases by which GLM chooses experts lie in its files; no gradient moves them."""
    from transformers import AutoModelForCausalLM, Glm4MoeConfig

    sizes = {
        "hidden_size": 32,
        "intermediate_size": 32,
        "moe_intermediate_size": 16,
        "n_routed_experts": 4,
        "n_shared_experts": 1,
    }
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "num_hidden_layers": 2, "eos_token_id": 1}
    config = Glm4MoeConfig(vocab_size=112, num_experts_per_tok=2, first_k_dense_replace=1, pad_token_id=0, **sizes, **heads)
    module = AutoModelForCausalLM.from_config(config)
    bias = "model.layers.1.mlp.gate.e_score_correction_bias"
    module.get_buffer(bias).copy_(torch.arange(4.0))
    module.save_pretrained(tmp_path / "m")
    tokenizer().save(tmp_path / "m")
    model = load_model(tmp_path / "m")
    book = Book(tmp_path / "m")
    book.fails["/inference/v1/generate"] = out_of_vocabulary(112)
    published = {n: a for n, a in arrays_of(model).items() if n != bias}
    assert len(published) == len(model.tensors) - 1 == len(dict(module.named_parameters()))
    engine = engine_of(book, model)
    for dtype in ("float32", "bfloat16"):
        book.config["dtype"] = f"torch.{dtype}"
        engine = engine_of(book, model)
        run(engine.swap(manifest_of(1, published).round_to(dtype)))
        path = next(body["kwargs"]["weights_path"] for p, body in reversed(book.asked) if p == "/collective_rpc")
        assert shapes_in(tmp_path / "m") == shapes_in(type(tmp_path)(path))
        assert engine._weights.newest.array(bias).tolist() == [0.0, 1.0, 2.0, 3.0]
    with pytest.raises(EngineError, match=r"has the unknown tensor .*e_score_correction_bias"):
        run(engine.swap(manifest_of(2, arrays_of(model)).round_to("bfloat16")))


def test_another_model_of_that_name_is_refused(book, model):
    deeper = replace(model, tensors={**model.tensors, "model.norm.weight": torch.zeros(2)})
    with pytest.raises(
        ConfigError, match=r"serves another model: in .* tensor 'model.norm.weight' has shape \(48,\), here \(2,\)"
    ):
        VllmEngine(VllmSettings(), deeper, None, httpx.MockTransport(book)).info()


# ---- on the server -----------------------------------------------------------------------------------------------------------


def test_kernels_are_forgotten_once_a_layer():
    method = SimpleNamespace(moe_kernel=object())
    runner, experts = SimpleNamespace(quant_method=method), SimpleNamespace(quant_method=method)
    linear, norm = SimpleNamespace(quant_method=SimpleNamespace()), SimpleNamespace()
    worker = ExpertKernels()
    worker.model_runner = SimpleNamespace(get_model=lambda: SimpleNamespace(modules=lambda: [runner, experts, linear, norm]))
    assert worker.forget_expert_kernels() == 1 and method.moe_kernel is None
    assert worker.forget_expert_kernels() == 1  # behind a load that failed
    assert FORGET in dir(worker)
