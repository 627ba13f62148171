"""The parts of the vLLM engine that need no server: what is sent, what answers mean, files, checksums, refusals."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import replace
from types import SimpleNamespace

import httpx
import numpy as np
import pytest
from vllm_book import Book, answer, arrays_of, asked, engine_of, out_of_vocabulary, refuse, run

from assay.core.canon import array_digest
from assay.core.errors import CheckpointError, ConfigError, DataError, EngineError
from assay.core.manifest import manifest_of
from assay.core.protocols import Request
from assay.core.rollout import Sampling, Span, Stop, ids_of
from assay.runtime import DecoderShape, VllmEngine, VllmSettings, char_tokenizer, init_model, save_model, untied_copy
from assay.runtime.vllm.checkpoint import whole
from assay.runtime.vllm.checksums import EMPTY, compare_checksums, parameters
from assay.runtime.vllm.request_gate import RequestGate
from assay.runtime.vllm.server import VllmServer
from assay.runtime.vllm.snapshots import WeightFiles, is_adapter, read_header, shapes_in
from assay.runtime.vllm.wire import completion_of, request_body, score_body, scores_of

SETTINGS = VllmSettings(url="http://127.0.0.1:9")
LOADS = "/v1/load_lora_adapter"


def named(told, tokens):
    return tuple(Span(int(s["version"] == "y"), s["start"], s["end"]) for s in told)


# ---- settings ----------------------------------------------------------------------------------------------------------


def test_settings_refuse_what_cannot_be():
    with pytest.raises(ConfigError, match="'localhost:8000' is no address"):
        VllmSettings(url="localhost:8000")
    with pytest.raises(ConfigError, match="swap_seconds=0; use a positive"):
        VllmSettings(swap_seconds=0)


def test_the_command_line_has_the_port_and_what_adapters_need():
    assert VllmSettings(url="https://host").command() == (
        "VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --host host --port 443 --enable-scale-out --logprobs-mode processed_logprobs"
    )
    assert VllmSettings(url="http://host:8123").command("m", rank=8) == (
        "VLLM_SERVER_DEV_MODE=1 VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 vllm serve m --host host --port 8123 --enable-scale-out "
        "--logprobs-mode processed_logprobs --enable-lora --max-lora-rank 8"
    )


# ---- what is sent, and what comes back -----------------------------------------------------------------------------------


def test_a_request_says_all_that_decides_its_tokens():
    body = request_body(asked(temperature=0.5, top_p=0.9, top_k=4, stop_ids=(9, 10)), "w-1", "m", "salt")
    sampling = body.pop("sampling_params")
    assert body == {"request_id": "w-1", "model": "m", "token_ids": [3, 4, 5], "cache_salt": "salt"}
    assert 0 <= sampling.pop("seed") < 2**63
    assert sampling == {
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 4,
        "max_tokens": 3,
        "stop_token_ids": [9, 10],
        "ignore_eos": True,
        "logprobs": 0,
        "detokenize": False,
        "skip_special_tokens": False,
    }


def test_seeds_of_a_request_and_of_its_continuation_are_others():
    seeds = [
        request_body(r, "w", "m", "s")["sampling_params"]["seed"]
        for r in (asked(), asked(), asked(first=3), asked(seed=2**64 - 1))
    ]
    assert seeds[0] == seeds[1]
    assert len(set(seeds)) == 3
    assert all(0 <= s < 2**63 for s in seeds)


def test_a_completion_is_what_the_answer_says():
    made = completion_of(answer(spans=(("x", 0, 1), ("y", 1, 3))), asked(), named, 1.5)
    assert (made.ids.tolist(), made.stop, made.duration) == ([6, 7, 8], Stop.LENGTH, 1.5)
    assert made.logp_engine.tolist() == [-1.0, -2.0, -3.0] and made.logp_engine.dtype == np.float32
    assert made.spans == (Span(0, 0, 1), Span(1, 1, 3))
    done = completion_of(answer((6, 9), "stop", (-1.0, -2.0), (("x", 0, 2),)), asked(stop_ids=(9,)), named, 0.0)
    assert (done.stop, done.ids.tolist()) == (Stop.DONE, [6, 9])
    nothing = completion_of(answer((), "abort", (), (), logprobs=None, weight_versions=None), asked(), named, 0.0)
    assert (nothing.stop, len(nothing.ids), nothing.spans) == (Stop.PARTIAL, 0, ())
    greedy = completion_of(answer(), asked(temperature=0.0), named, 0.0)
    assert greedy.logp_engine.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("told", "text"),
    [
        (answer(reason="repetition"), "ended with 'repetition'"),
        (answer(reason="stop", stop_reason=5), r"stopped by the server \(5\) at none of its stop ids \(\)"),
        (answer((6,), "length", (-1.0,), (("x", 0, 1),)), "cut off after 1 tokens instead of max_new_tokens=3"),
        (answer(logprobs=None), "0 log-probabilities came with 3 tokens"),
        (answer(logp=(-1.0, -9999.0, -1.0)), "not finite"),
        (answer(logp=(-1.0, float("nan"), -1.0)), "not finite"),
        ({"choices": []}, "another form than vLLM's"),
        ("oh", "another form than vLLM's"),
    ],
)
def test_an_answer_that_is_not_what_was_asked_is_an_error(told, text):
    with pytest.raises(EngineError, match=text):
        completion_of(told, asked(), named, 0.0)


def test_scores_of_a_row_and_of_one_that_fills_the_context():
    row = ids_of([3, 4, 5])
    assert score_body(row, "w", "m", "s", full=False)["token_ids"] == [3, 4, 5]
    body = score_body(row, "w", "m", "s", full=True)
    assert body["token_ids"] == [3, 4]
    assert body["sampling_params"]["logprob_token_ids"] == [5, 4]
    assert score_body(ids_of([3, 0]), "w", "m", "s", full=True)["sampling_params"]["logprob_token_ids"] == [0, 1]

    told = [None, {"4": {"logprob": -1.5}}, {"5": {"logprob": -2.5}}]
    assert scores_of({**answer(), "prompt_logprobs": told}, row, "row 0", False).tolist() == [0.0, -1.5, -2.5]
    last = {"content": [{"token_id": 9, "logprob": -0.1, "top_logprobs": [{"token_id": 5, "logprob": -3.5}]}]}
    full = {**answer(logprobs=last), "prompt_logprobs": told[:2]}
    assert scores_of(full, row, "row 0", True).tolist() == [0.0, -1.5, -3.5]
    for missing in ({**answer(logprobs=None), "prompt_logprobs": told[:2]}, {**answer(logprobs=last), "prompt_logprobs": None}):
        with pytest.raises(EngineError, match="row 0: 1 log-probabilities for a row of 3 tokens"):
            scores_of(missing, row, "row 0", True)


# ---- refusals ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "text", "path", "kind", "wanted"),
    [
        (403, '{"error": {"message": "use --enable-scale-out"}}', "/inference/v1/generate", ConfigError, "serves no tokens"),
        (401, '{"error": "Unauthorized"}', "/v1/models", ConfigError, "VllmSettings.api_key_env"),
        (403, "no", "/v1/models", ConfigError, "VllmSettings.api_key_env"),
        (404, '{"detail": "Not Found"}', "/server_info", ConfigError, "development mode"),
        (404, '{"detail": "Not Found"}', "/v1/models", ConfigError, "no vLLM server of version"),
        (404, '{"detail": "Not Found"}', LOADS, ConfigError, "VLLM_ALLOW_RUNTIME_LORA_UPDATING=1"),
        (404, '{"error": {"message": "no model", "type": "NotFoundError"}}', "/inference/v1/generate", EngineError, "'no model'"),
        (400, '{"error": {"message": "Out of range float values are not JSON compliant"}}', "/x", EngineError, "not finite"),
        (500, '{"error": {"message": "EngineCore encountered an issue"}}', "/x", EngineError, "its engine has died"),
        (500, "[1]", "/pause", EngineError, r"status 500: '\[1\]'; the server's log"),
    ],
)
def test_each_refusal_says_what_to_do(status, text, path, kind, wanted):
    transport = httpx.MockTransport(lambda request: httpx.Response(status, text=text))
    with pytest.raises(kind, match=wanted) as caught:
        VllmServer(SETTINGS, transport).ask("POST", path, {})
    assert f"POST http://127.0.0.1:9{path} was refused with status {status}" in str(caught.value)


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (httpx.ConnectError("refused"), "no server can be reached there"),
        (httpx.ConnectTimeout(""), r"no server can be reached there \(ConnectTimeout\)"),
        (httpx.ReadTimeout("late"), "no answer within 2 s.*VllmSettings.swap_seconds"),
        (httpx.RemoteProtocolError("gone"), "went away before it answered"),
        (httpx.ReadError("reset"), "went away before it answered"),
    ],
)
def test_each_silence_says_what_happened(error, wanted):
    def fail(request):
        raise error

    server = VllmServer(SETTINGS, httpx.MockTransport(fail))
    with pytest.raises(EngineError, match=wanted):
        server.ask("GET", "/pause", seconds=2)

    async def send():
        await server.send(server.client(), "/pause", seconds=2)

    with pytest.raises(EngineError, match=wanted):
        asyncio.run(send())


def test_the_key_is_sent_and_must_be_there(monkeypatch):
    seen = []
    transport = httpx.MockTransport(
        lambda request: (seen.append(request.headers.get("authorization")), httpx.Response(200, text="ok"))[1]
    )
    server = VllmServer(VllmSettings(api_key_env="A_KEY"), transport)
    monkeypatch.delenv("A_KEY", raising=False)
    with pytest.raises(ConfigError, match="api_key_env='A_KEY': that environment variable is not set"):
        server.ask("GET", "/x")
    monkeypatch.setenv("A_KEY", "secret")
    assert server.ask("GET", "/x") == "ok"
    assert seen == ["Bearer secret"]


# ---- files -----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    tokenizer = char_tokenizer("0123456789")
    return init_model(
        DecoderShape(vocab_size=12, hidden_size=8, num_layers=1, num_heads=1, num_kv_heads=1, head_dim=8, intermediate_size=16),
        tokenizer,
        seed=0,
    )


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    place = tmp_path_factory.mktemp("model") / "m"
    save_model(model, place)
    return place


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_snapshot_holds_the_bytes_of_the_manifest(model, folder, tmp_path, dtype):
    made = manifest_of(3, arrays_of(model)).round_to(dtype)
    files, parts = WeightFiles(str(tmp_path / "w"), folder, "n"), whole({n: t.shape for n, t in made.tensors.items()})
    snapshot = files.full(made, {**parts, "lm_head.weight": parts["model.embed_tokens.weight"]})
    assert snapshot.path.name == "n-1-v3" and snapshot.manifest.payload is None
    assert {f.name for f in snapshot.path.iterdir()} >= {"config.json", "tokenizer.json", "manifest.json", "model.safetensors"}
    for name, told in made.tensors.items():
        assert array_digest(snapshot.array(name)) == told.digest
    assert shapes_in(snapshot.path) == {n: t.shape for n, t in made.tensors.items()} | {"lm_head.weight": (12, 8)}
    header, _ = read_header(snapshot.path / "model.safetensors")
    assert {e["dtype"] for e in header.values()} == {"F32" if dtype == "float32" else "BF16"}
    again = files.full(made)
    files.keep(again)
    assert [p.name for p in (tmp_path / "w").iterdir()] == ["n-2-v3"]
    files.close()
    assert list((tmp_path / "w").iterdir()) == []


def test_what_cannot_be_written_leaves_nothing_behind(model, tmp_path):
    made = manifest_of(3, arrays_of(model))
    files = WeightFiles(str(tmp_path / "w"), None, "n")
    (tmp_path / "w" / "n-1-v3").mkdir()
    (tmp_path / "w" / "n-1-v3" / "taken").touch()
    with pytest.raises(EngineError, match=r"version 3 cannot be written to .*it keeps its old weights"):
        files.full(made)
    assert [p.name for p in (tmp_path / "w").iterdir()] == ["n-1-v3"]
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"cannot be written: .*name one that the server sees too"):
        WeightFiles(str(tmp_path / "file" / "w"), None, "n")


def test_a_temporary_folder_goes_with_the_engine(model):
    files = WeightFiles("", None, "n")
    place = files.full(manifest_of(1, arrays_of(model))).path
    assert place.is_dir()
    files.close()
    assert not place.parent.exists()


def test_damaged_files_are_told(model, tmp_path):
    (tmp_path / "a.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{no}")
    with pytest.raises(CheckpointError, match="cannot be read as safetensors"):
        shapes_in(tmp_path)
    snapshot = WeightFiles(str(tmp_path / "w"), None, "n").full(manifest_of(1, arrays_of(model)))
    file = snapshot.path / "model.safetensors"
    header, start = read_header(file)
    last = max(header, key=lambda name: header[name]["data_offsets"][1])
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(CheckpointError, match=f"is cut off at tensor '{last}'"):
        snapshot.array(last)
    assert start < file.stat().st_size


def test_adapters_are_written_as_peft_does(tmp_path):
    made = manifest_of(1, {"base_model.model.q.lora_A.weight": np.zeros((2, 8), np.float32)})
    assert is_adapter(made)
    assert not is_adapter(manifest_of(1, {"q.weight": np.zeros(2, np.float32)}))
    path = WeightFiles(str(tmp_path), None, "n").adapter(made, {"r": 2, "target_modules": {"v", "q"}, "task_type": object}).path
    config = json.loads((path / "adapter_config.json").read_text())
    assert (config["r"], config["target_modules"]) == (2, ["q", "v"])
    assert shapes_in(path) == {"base_model.model.q.lora_A.weight": (2, 8)}
    own = manifest_of(2, {"q.lora_A.default.weight": np.ones((2, 8), np.float32)})
    assert shapes_in(WeightFiles(str(tmp_path), None, "n").adapter(own, {}).path) == {"base_model.model.q.lora_A.weight": (2, 8)}


def test_an_untied_copy_has_a_head_equal_to_its_embedding(folder, tmp_path):
    from assay.runtime import load_model

    untied_copy(folder, tmp_path / "copy")
    tied, free = load_model(folder), load_model(tmp_path / "copy")
    assert tied.shape.tied and not free.shape.tied
    assert (free.tensors["lm_head.weight"] == tied.tensors["model.embed_tokens.weight"]).all()
    with pytest.raises(ConfigError, match="exists already"):
        untied_copy(folder, tmp_path / "copy")
    with pytest.raises(ConfigError, match="nothing to untie"):
        untied_copy(tmp_path / "copy", tmp_path / "more")


def test_an_untied_copy_of_several_files_is_listed_in_the_index(folder, tmp_path):
    import shutil

    shutil.copytree(folder, tmp_path / "m")
    index = {"weight_map": {"model.embed_tokens.weight": "model.safetensors"}}
    (tmp_path / "m" / "model.safetensors.index.json").write_text(json.dumps(index))
    untied_copy(tmp_path / "m", tmp_path / "copy")
    told = json.loads((tmp_path / "copy" / "model.safetensors.index.json").read_text())
    assert told["weight_map"]["lm_head.weight"] == "model.safetensors"


# ---- checksums -------------------------------------------------------------------------------------------------------------


def sha(*arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()


def test_parameters_that_tell_nothing_are_left_out():
    one = {"dp0:pp0:pcp0:tp0:a.base_layer.weight": "s", "dp0:pp0:pcp0:tp0:b": EMPTY}
    assert parameters(one) == {"a.weight": "s"}
    assert parameters({"dp0:pp0:pcp0:tp0:a": "s", "dp1:pp0:pcp0:tp0:a": "s"}) == {"a": "s"}
    assert parameters({"dp0:pp0:pcp0:tp0:a": "s", "dp1:pp0:pcp0:tp0:a": "t"}) == {"a": "copies that differ"}
    assert parameters(
        {"dp0:pp0:pcp0:tp0:a": "s", "dp0:pp0:pcp0:tp1:a": "t", "dp0:pp0:pcp0:tp1:n": "u", "dp0:pp0:pcp0:tp0:n": "u"}
    ) == {"n": "u"}


def test_checksums_of_fused_padded_and_transposed_parameters(tmp_path):
    rng = np.random.default_rng(0)
    draw = lambda *shape: rng.standard_normal(shape).astype(np.float32)
    arrays = {f"l.self_attn.{x}_proj.weight": draw(4, 4) for x in "qkvo"}
    arrays |= {f"l.mlp.{x}_proj.weight": draw(6, 4) for x in ("gate", "up")}
    arrays |= {
        "model.embed_tokens.weight": draw(70, 4),
        "l.c_attn.weight": draw(4, 12),
        "l.alone.q_proj.weight": draw(2, 2),
        "n": draw(4),
    }
    made = manifest_of(1, arrays)
    snapshot = WeightFiles(str(tmp_path), None, "n").full(made)
    q, k, v = (arrays[f"l.self_attn.{x}_proj.weight"] for x in "qkv")
    served = {
        "l.self_attn.qkv_proj.weight": sha(q, k, v),
        "l.self_attn.o_proj.weight": sha(arrays["l.self_attn.o_proj.weight"]),
        "l.mlp.gate_up_proj.weight": sha(arrays["l.mlp.up_proj.weight"], arrays["l.mlp.gate_proj.weight"]),  # in the wrong order
        "model.embed_tokens.weight": sha(arrays["model.embed_tokens.weight"], np.zeros((58, 4), np.float32)),
        "l.c_attn.weight": sha(arrays["l.c_attn.weight"].T),
        "l.alone.qkv_proj.weight": "of others",
        "n": sha(arrays["n"] + 1),
        "unknown": "s",
    }
    told = compare_checksums(snapshot, served, set())
    right = {n for n in told if told[n] == made.tensors[n].digest}
    assert right == {f"l.self_attn.{x}_proj.weight" for x in "qkvo"} | {"model.embed_tokens.weight", "l.c_attn.weight"}
    assert told.keys() - right == {"l.mlp.gate_proj.weight", "l.mlp.up_proj.weight", "n"}
    assert told["n"] == f"the server's n has sha256 {served['n']}"
    assert "l.alone.q_proj.weight" not in told


# ---- a server by the book, for what its answers lead to -----------------------------------------------------------------------


@pytest.fixture
def book(folder):
    made = Book(folder)
    made.fails["/inference/v1/generate"] = out_of_vocabulary(12)
    return made


def test_what_a_swap_tells_the_server_and_in_which_order(book, model):
    engine = engine_of(book, model)

    async def swap():
        await engine.swap(manifest_of(4, arrays_of(model)))
        made = await engine.generate(asked())
        scores = await engine.score([ids_of([3, 4]), ids_of([5])])
        return made, scores, await engine.checksums()

    book.asked.clear()
    made, scores, told = run(swap())
    steps = ["/pause", "/collective_rpc", "/update_weight_version", "/resume"]
    assert [p for p in book.paths() if p in steps] == steps
    assert (engine.info().version, made.spans, told) == (4, (Span(4, 0, 3),), None)
    assert [x.tolist() for x in scores] == [[0.0, -2.0], [0.0]]
    salts = {body.get("cache_salt") for path, body in book.asked if path.endswith("generate")} - {None}
    assert len(salts) == 1 and "/" not in salts.pop()
    run(engine.close())
    run(engine.close())


def test_a_failed_load_loads_what_was_there_before(book, model, folder):
    engine = engine_of(book, model)
    book.fails["/collective_rpc"] = refuse(500, "broken", lambda body: body["kwargs"]["weights_path"] != str(folder))
    with pytest.raises(EngineError, match=r"version 4 was not loaded: .*'broken'.* It serves version -1 again \('default'\)"):
        run(engine.swap(manifest_of(4, arrays_of(model))))
    assert book.paths()[-1] == "/resume"
    assert [s.version for s in run(engine.generate(asked())).spans] == [-1]


def test_where_nothing_loads_any_more_requests_are_refused_until_something_does(book, model):
    engine = engine_of(book, model)
    book.fails["/collective_rpc"] = refuse(500, "EngineDeadError")
    with pytest.raises(EngineError, match=r"version 4 was not loaded: .*holds no whole weights any more"):
        run(engine.swap(manifest_of(4, arrays_of(model))))
    with pytest.raises(EngineError, match=r"request 'a': .*holds no whole weights any more"):
        run(engine.generate(asked()))
    with pytest.raises(EngineError, match=r"row 0: .*holds no whole weights any more"):
        run(engine.score([ids_of([3, 4])]))
    del book.fails["/collective_rpc"]
    run(engine.swap(manifest_of(5, arrays_of(model))))
    assert [s.version for s in run(engine.generate(asked())).spans] == [5]

    book.folder = "name/on-a-hub"
    far = engine_of(book, model)
    book.fails["/pause"] = refuse(500, "no")
    with pytest.raises(EngineError, match="there is nothing to load again"):
        run(far.swap(manifest_of(4, arrays_of(model))))


def test_another_label_is_another_server(book, model):
    engine = engine_of(book, model)
    run(engine.swap(manifest_of(1, arrays_of(model))))
    book.label = "default"
    with pytest.raises(EngineError, match=r"calls 'default', and it was told to serve .*restarted"):
        run(engine.generate(asked()))
    run(engine.swap(manifest_of(2, arrays_of(model))))
    assert engine.info().version == 2


def test_adapters_are_asked_for_by_name(book, model):
    book.rank = 8
    parts = {"base_model.model.q.lora_A.weight": np.zeros((2, 8), np.float32)}
    engine = engine_of(book, model, {"r": 2})
    for number in (1, 2):
        run(engine.swap(manifest_of(number, parts)))
    made = run(engine.generate(asked()))
    name = next(body["model"] for path, body in reversed(book.asked) if path.endswith("generate"))
    assert name.startswith("assay-") and name.endswith("-v2")
    assert made.spans == (Span(2, 0, 3),)
    assert [body["lora_name"][-2:] for path, body in book.asked if path.endswith("unload_lora_adapter")] == ["v1"]
    assert run(engine.checksums()) is None
    book.model = "another"
    with pytest.raises(EngineError, match=r"request 'a' asked .* for 'assay-.*', and 'another' answered"):
        run(engine.generate(asked()))
    with pytest.raises(EngineError, match="made without VllmEngine"):
        run(engine_of(book, model).swap(manifest_of(1, parts)))
    book.rank = 0
    with pytest.raises(ConfigError, match=r"takes no adapters, this one has rank 2: .*--enable-lora --max-lora-rank 2"):
        run(engine_of(book, model, {"r": 2}).swap(manifest_of(1, parts)))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda book: book.config.update(logprobs_mode="raw_logprobs"), "of kind 'raw_logprobs', not of the distribution"),
        (lambda book: book.config.update(dtype="torch.float16"), "serves float16.*--dtype bfloat16"),
        (lambda book: book.fails.update({"/inference/v1/generate": out_of_vocabulary(11)}), "does not know token 11"),
        (lambda book: book.fails.clear(), "knows token 12: its vocabulary is not the model's 12"),
        (lambda book: setattr(book, "device", "cpu"), "tied to its embedding on the CPU"),
        (lambda book: setattr(book, "on_v1_models", lambda body: {"data": []}), "lists no base model"),
    ],
)
def test_a_server_that_cannot_serve_the_model_is_refused(book, model, change, text):
    change(book)
    with pytest.raises(ConfigError, match=text):
        engine_of(book, model).info()


def test_other_failures_while_connecting_are_told_as_they_are(book, model):
    book.fails["/inference/v1/generate"] = refuse(500, "oh")
    with pytest.raises(EngineError, match="'oh'"):
        engine_of(book, model).info()


def test_another_model_in_the_servers_folder_is_refused(book, model, folder, tmp_path):
    untied_copy(folder, tmp_path / "copy")
    book.folder = tmp_path / "copy"
    engine = engine_of(book, model)
    assert engine.info().context == 16
    run(engine.swap(manifest_of(1, arrays_of(model))))
    written = next(body["kwargs"]["weights_path"] for path, body in book.asked if path == "/collective_rpc")
    assert "lm_head.weight" in shapes_in(type(folder)(written))
    deeper = SimpleNamespace(shape=model.shape, tensors=model.tensors | {"more": np.zeros(2)})
    with pytest.raises(ConfigError, match=r"serves another model: in .* tensor 'more' has shape None"):
        VllmEngine(VllmSettings(), deeper, None, httpx.MockTransport(book)).info()


def test_a_request_that_the_server_does_not_end_is_an_error(book, model):
    engine = engine_of(book, model, swap_seconds=0.3)

    async def stuck():
        await engine.connect()
        job = engine._here().enter("a", "w-1")
        with pytest.raises(EngineError, match="was told to abort 1 requests and goes on with them"):
            await engine.abort(["a"])
        engine._here().leave("a")
        assert job.done.done()

    run(stuck())
    aborted = [body["request_ids"] for path, body in book.asked if path == "/abort_requests"]
    assert len(aborted) >= 2 and aborted[0] == ["generate-tokens-w-1"]


def test_checksums_on_the_cpu_do_not_count_the_head(book, folder, tmp_path):
    from assay.runtime import load_model

    untied_copy(folder, tmp_path / "copy")
    free = load_model(tmp_path / "copy")
    book.folder, book.device = tmp_path / "copy", "cpu"
    for device, told in (("cpu", None), ("cuda", {"lm_head.weight": "the server's lm_head.weight has sha256 s"})):
        book.device = device
        engine = engine_of(book, free)
        run(engine.swap(manifest_of(1, arrays_of(free))))
        assert run(engine.checksums()) == told


def test_a_shut_gate_holds_requests_back_until_it_opens():
    async def pass_through():
        gate = RequestGate(asyncio.get_running_loop(), httpx.AsyncClient())
        first = gate.enter("a", "w-1")
        with pytest.raises(DataError, match="'a' is already running"):
            gate.enter("a", "w-2")
        assert gate.shut() == [first] and first.running
        late, gone = gate.enter("b", "w-3"), gate.enter("c", "w-4")
        assert not late.go.done() and not late.running
        gone.go.set_result(False)
        assert gate.shut() == [first]
        gate.open()
        assert late.running and not gone.running
        gate.leave("a")
        assert first.done.done() and not first.running and sorted(gate.jobs) == ["b", "c"]
        assert gate.enter("a", "w-5").running

    run(pass_through())


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda m, a: manifest_of(2, {"model.norm.weight": a["model.norm.weight"]}, base=m.digest), "is a delta"),
        (lambda m, a: replace(m, payload=None), "carries 0 arrays"),
        (lambda m, a: manifest_of(2, {n: x for n, x in a.items() if "norm" not in n}), r"lacks tensor '.*' \(\d such names\)"),
        (lambda m, a: manifest_of(2, a | {"extra": np.zeros(2, np.float32)}), "has the unknown tensor 'extra'"),
        (lambda m, a: manifest_of(2, a | {"model.norm.weight": np.zeros(2, np.float32)}), r"has shape \(2,\) instead of \(8,\)"),
        (lambda m, a: m.round_to("bfloat16"), "is bfloat16, the server serves float32"),
        (lambda m, a: manifest_of(2, a | {"model.norm.weight": np.zeros(8)}), "is <f8, the server serves float32"),
    ],
)
def test_what_cannot_be_loaded_is_refused_before_the_server_is_told(book, model, change, text):
    arrays = arrays_of(model)
    engine = engine_of(book, model)
    with pytest.raises(EngineError, match=text):
        run(engine.swap(change(manifest_of(2, arrays), arrays)))
    assert "/pause" not in book.paths()


@pytest.mark.parametrize(
    ("prompt", "kind", "text"),
    [
        ([], DataError, "request 'b' has an empty prompt"),
        ([3, 12], DataError, "request 'b' holds id 12; the vocabulary has ids 0 to 11"),
        ([3] * 14, ConfigError, "14 tokens plus max_new_tokens=3 exceeds the server's context of 16"),
    ],
)
def test_requests_that_cannot_be_answered_are_not_sent(book, model, prompt, kind, text):
    engine = engine_of(book, model)
    engine.info()
    before = len(book.asked)
    with pytest.raises(kind, match=text):
        run(engine.generate(Request(id="b", prompt=ids_of(prompt), seed=0, sampling=Sampling(max_new_tokens=3))))
    with pytest.raises(ConfigError, match="row 0 has 17 tokens"):
        run(engine.score([ids_of([3] * 17)]))
    assert len(book.asked) == before


def test_what_a_request_came_to_names_it(book, model):
    engine = engine_of(book, model)
    engine.info()
    book.fails["/inference/v1/generate"] = refuse(500, "oh")
    with pytest.raises(EngineError, match=r"request 'a': POST .* was refused with status 500: 'oh'"):
        run(engine.generate(asked()))


def test_a_second_swap_at_a_time_is_refused(book, model):
    engine, made = engine_of(book, model), manifest_of(1, arrays_of(model))

    async def both():
        await engine.connect()  # which of two would come first through it, nobody says
        return await asyncio.gather(engine.swap(made), engine.swap(made), return_exceptions=True)

    first, second = run(both())
    assert first is None
    assert "another swap is under way" in str(second)
