"""Weights that go to a server without files: what is announced and sent, in which order, and what each failure leaves."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from contextlib import nullcontext
from datetime import timedelta
from multiprocessing import get_context
from types import ModuleType, SimpleNamespace

import httpx
import numpy as np
import pytest
import torch
import torch.distributed as dist
from vllm_book import Book, Memory, arrays_of, asked, engine_of, out_of_vocabulary, refuse, run, sending

from assay.core.canon import array_digest
from assay.core.errors import ConfigError, EngineError
from assay.core.manifest import manifest_of
from assay.runtime import (
    DecoderShape,
    LearnerSettings,
    NcclUpdate,
    TorchLearner,
    VllmEngine,
    VllmSettings,
    char_tokenizer,
    init_model,
    save_model,
    untied_copy,
)
from assay.runtime.vllm import nccl
from assay.runtime.vllm.nccl import NcclTransfer
from assay.runtime.vllm.server import VllmServer
from assay.runtime.vllm.transfer import HeldVersion

LIBRARY = "vllm.distributed.weight_transfer"
START, UPDATE, FINISH = "/start_weight_update", "/update_weights", "/finish_weight_update"
INIT, READ, LABEL = "/init_weight_transfer_engine", "/collective_rpc", "/update_weight_version"
STEPS = ("/pause", "/resume", START, UPDATE, FINISH, INIT, READ, LABEL, "/shutdown_weight_transfer_engine")
CLEAN = [START, FINISH]  # ends what an earlier sender may have left


@pytest.fixture(scope="module")
def model():
    shape = DecoderShape(
        vocab_size=12, hidden_size=8, num_layers=1, num_heads=1, num_kv_heads=1, head_dim=8, intermediate_size=16
    )
    return init_model(shape, char_tokenizer("0123456789"), seed=0)


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    """What the server was started with: the head untied, so that it must be sent a copy of the embedding."""
    place = tmp_path_factory.mktemp("model")
    save_model(model, place / "tied")
    untied_copy(place / "tied", place / "untied")
    return place / "untied"


@pytest.fixture
def book(folder):
    made = Book(folder)
    made.fails["/inference/v1/generate"] = out_of_vocabulary(12)
    made.transfer = {"backend": "nccl"}
    return made


def steps(book):
    return [path for path in book.paths() if path in STEPS]


# ---- order, versions, proof --------------------------------------------------------------------------------------------------


def test_what_a_swap_asks_of_the_server_and_in_which_order(book, model):
    memory, engine = sending(book, model)
    first, second = manifest_of(4, arrays_of(model)), manifest_of(5, {n: a + 1 for n, a in arrays_of(model).items()})
    run(engine.swap(first))
    assert steps(book) == ["/pause", *CLEAN, INIT, START, UPDATE, FINISH, "/resume"]
    run(engine.swap(second))
    assert steps(book)[8:] == ["/pause", START, UPDATE, FINISH, "/resume"]
    assert [body["weight_version"] for path, body in book.asked if path == FINISH and body][-1] == book.label
    assert book.label.endswith(".v5") and engine.info().version == 5
    assert [s.version for s in run(engine.generate(asked())).spans] == [5]
    assert (memory.workers, memory.opened, memory.closed) == (2, 1, 0)
    assert list(memory.sent[1]) == [*second.tensors, "lm_head.weight"]
    assert not any(READ in path for path in book.paths())
    run(engine.close())
    assert steps(book)[-1] == "/shutdown_weight_transfer_engine" and memory.closed == 1


def test_checksums_are_held_against_the_arrays_in_memory(book, model):
    import hashlib

    arrays = arrays_of(model)
    told = {
        name: hashlib.sha256(arrays[name].tobytes()).hexdigest()
        for name in ("model.norm.weight", "model.layers.0.input_layernorm.weight")
    }
    told["model.norm.weight"] = "others"
    book.on_weight_checker = lambda body: {"checksums": {f"dp0:pp0:pcp0:tp0:{n}": sha for n, sha in told.items()}}
    _, engine = sending(book, model)
    made = manifest_of(1, arrays)
    run(engine.swap(made))
    assert run(engine.checksums()) == {
        "model.norm.weight": "the server's model.norm.weight has sha256 others",
        "model.layers.0.input_layernorm.weight": made.tensors["model.layers.0.input_layernorm.weight"].digest,
    }
    name = "model.layers.0.input_layernorm.weight"
    arrays[name] += 1  # as a learner's live weights go on
    assert run(engine.checksums())[name] == made.tensors[name].digest
    engine._weights.newest.array(name)[0] += 1
    assert "memory holds other bytes" in run(engine.checksums())[name]


def test_a_server_that_is_another_one_is_met_anew(book, model):
    memory, engine = sending(book, model)
    run(engine.swap(manifest_of(1, arrays_of(model))))
    book.label = "default"  # started again
    run(engine.swap(manifest_of(2, arrays_of(model))))
    assert (memory.opened, memory.closed) == (2, 1)
    assert [s.version for s in run(engine.generate(asked())).spans] == [2]


# ---- failures ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [INIT, START, UPDATE, FINISH])
def test_whatever_fails_the_version_before_is_served_again(book, model, path):
    memory, engine = sending(book, model)
    run(engine.swap(manifest_of(1, arrays_of(model))))
    if path == INIT:
        book.label = "default"
    tried = []
    fails = lambda body: path in (INIT, UPDATE) or (tried.append(body), len(tried) == 1)[1]
    book.fails[path] = refuse(500, "oh no", fails)
    before = len(steps(book))
    with pytest.raises(EngineError, match=r"version 2 was not loaded: POST .* was refused with status 500: 'oh no'"):
        run(engine.swap(manifest_of(2, arrays_of(model))))
    assert [p for p in steps(book)[before:] if p in (READ, LABEL, "/resume")] == [READ, LABEL, "/resume"]
    served = -1 if path == INIT else 1
    assert engine.info().version == served
    assert [s.version for s in run(engine.generate(asked())).spans] == [served]
    del book.fails[path]
    run(engine.swap(manifest_of(3, arrays_of(model))))
    assert [s.version for s in run(engine.generate(asked())).spans] == [3]
    assert memory.opened == 2


def test_what_broke_is_ended_before_files_are_read(book, model):
    _, engine = sending(book, model)
    run(engine.swap(manifest_of(1, arrays_of(model))))
    book.fails[UPDATE] = refuse(500, "oh no")
    before = len(steps(book))
    with pytest.raises(EngineError, match=r"It serves version 1 again"):
        run(engine.swap(manifest_of(2, arrays_of(model))))
    assert steps(book)[before:] == ["/pause", START, UPDATE, *CLEAN, READ, LABEL, "/resume"]
    assert next(body for path, body in book.asked if path == READ)["kwargs"]["weights_path"].endswith("-v1")


def test_the_version_before_is_read_as_it_was_sent_though_the_learner_went_on(book, model):
    """What a learner publishes on a CPU are views of its live weights."""
    from assay.runtime.vllm.snapshots import WeightFiles

    _, engine = sending(book, model)
    arrays, written, full = arrays_of(model), [], WeightFiles.full
    first = manifest_of(1, arrays)
    run(engine.swap(first))
    for array in arrays.values():
        array += 1
    book.fails[UPDATE] = refuse(500, "oh no")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(WeightFiles, "full", lambda *given: written.append(full(*given)) or written[-1])
        with pytest.raises(EngineError, match="It serves version 1 again"):
            run(engine.swap(manifest_of(2, arrays)))
    (snapshot,) = written
    assert {n: array_digest(snapshot.array(n)) for n in first.tensors} == {n: t.digest for n, t in first.tensors.items()}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_only_what_may_be_live_is_copied_again(model, dtype):
    """Weights in float32 are those that the learner trains on; rounded ones are nobody else's."""
    learner = TorchLearner(model, LearnerSettings(anchors=()), total_steps=1)
    manifest = learner.publish(dtype)
    held = HeldVersion.of(manifest, {})
    for name, array in manifest.payload.items():
        live = np.shares_memory(array, learner.parameters[name].detach().numpy())
        assert live == (dtype == "float32")
        assert np.shares_memory(held.array(name), array) == (not live) and np.array_equal(held.array(name), array)


def test_a_server_that_does_not_come_round_serves_nothing(book, model):
    _, engine = sending(book, model)
    run(engine.swap(manifest_of(1, arrays_of(model))))
    book.fails[UPDATE] = book.fails[FINISH] = refuse(500, "oh no")
    with pytest.raises(EngineError, match="holds no whole weights any more"):
        run(engine.swap(manifest_of(2, arrays_of(model))))
    with pytest.raises(EngineError, match=r"request 'a': .*holds no whole weights any more"):
        run(engine.generate(asked()))


def test_a_sender_that_fails_by_itself_is_an_error_of_the_engine(book, model):
    def fail():
        raise RuntimeError("no more memory")

    memory, engine = sending(book, model, fail)
    with pytest.raises(
        EngineError, match=r"sending them over NCCL failed with RuntimeError: no more memory. It serves version -1"
    ):
        run(engine.swap(manifest_of(1, arrays_of(model))))
    assert memory.closed == 1


def test_a_sender_that_waits_for_ever_is_left_alone_and_can_do_no_harm(book, model):
    """It comes round after another version was sent: what it asks then is refused here."""
    gone, ended = threading.Event(), threading.Event()

    def stuck():
        if not gone.is_set():
            gone.wait(20)
            ended.set()

    memory, engine = sending(book, model, stuck, swap_seconds=0.3)
    started = time.monotonic()
    with pytest.raises(EngineError, match=r"were not sent over NCCL within 0\.3 s; look at the server's log"):
        run(engine.swap(manifest_of(1, arrays_of(model))))
    assert time.monotonic() - started < 15
    late = memory.control
    gone.set()
    ended.wait(20)
    run(engine.swap(manifest_of(2, arrays_of(model))))
    assert late.closed and memory.control is not late
    finished = [body for path, body in book.asked if path == FINISH and body]
    with pytest.raises(EngineError, match="was given up"):
        late.finish_weight_update()
    assert len(finished) == 1 and finished[0]["weight_version"].endswith(".v2")


def test_a_server_that_fails_ends_the_waiting_of_the_sender(book, model):
    """As when the server refuses an update while this process already broadcasts it: nobody would ever receive that."""

    class Blocked(Memory):
        def send(self, held):
            self.control.start_weight_update()
            thread = threading.Thread(target=self._update)
            thread.start()
            self.never.wait(20)
            thread.join()

        def _update(self):
            try:
                self.control.update_weights({})
            except EngineError:
                self.told.set()

        never, told = threading.Event(), threading.Event()

    memory = Blocked()
    engine = engine_of(book, model, transfer=memory, update=NcclUpdate())
    book.fails[UPDATE] = refuse(500, "no such layer")
    with pytest.raises(EngineError, match="'no such layer'"):
        run(engine.swap(manifest_of(1, arrays_of(model))))
    assert memory.told.wait(20) and memory.closed == 1
    memory.never.set()


def test_a_swap_that_is_cancelled_leaves_nothing_that_answers(book, model):
    waits = threading.Event()
    _, engine = sending(book, model, lambda: waits.wait(20))

    async def cancel():
        task = asyncio.create_task(engine.swap(manifest_of(1, arrays_of(model))))
        while UPDATE not in book.paths():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        waits.set()
        with pytest.raises(EngineError, match="was left in the middle of taking weight version 1; swap weights in again"):
            await engine.generate(asked())

    run(cancel())
    run(engine.swap(manifest_of(2, arrays_of(model))))
    assert [s.version for s in run(engine.generate(asked())).spans] == [2]


def test_where_the_settings_say_so_a_failure_goes_on_with_files(book, model):
    memory, engine = sending(book, model, update=NcclUpdate(on_failure="files"))
    run(engine.swap(manifest_of(1, arrays_of(model))))
    book.fails[UPDATE] = refuse(500, "oh no")
    before = len(steps(book))
    with pytest.warns(RuntimeWarning, match=r"version 2 did not get to .* over NCCL: .*'oh no'.*all later ones go as files"):
        run(engine.swap(manifest_of(2, arrays_of(model))))
    assert steps(book)[before:] == ["/pause", START, UPDATE, *CLEAN, READ, LABEL, "/resume"]
    run(engine.swap(manifest_of(3, arrays_of(model))))
    assert steps(book)[-4:] == ["/pause", READ, LABEL, "/resume"]
    assert [s.version for s in run(engine.generate(asked())).spans] == [3]
    assert (memory.opened, memory.closed) == (1, 1)


# ---- refusals ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("there", "text"),
    [
        (None, r"takes weights as files, and VllmSettings\.update=NcclUpdate\(\) sends them over NCCL; start it with: "),
        ({"backend": "ipc"}, r"takes weights by 'ipc' or as files, and .* --weight-transfer-config '\{\"backend\": \"nccl\"\}'$"),
    ],
)
def test_a_server_that_takes_weights_otherwise(book, model, there, text):
    book.transfer = there
    with pytest.raises(ConfigError, match=text):
        sending(book, model)[1].info()


def test_a_paused_server_is_somebody_elses(book, model):
    book.paused = True
    with pytest.raises(EngineError, match="is paused: whoever used it ended in the middle of a weight update"):
        engine_of(book, model).info()


def test_a_server_without_a_gpu(book, model):
    book.fails[INIT] = refuse(500, "Worker failed with error 'Cannot access accelerator device when none is available.'")
    with pytest.raises(EngineError, match=r"it has no GPU, and NCCL knows GPUs only: take VllmSettings\.update out"):
        run(sending(book, model)[1].swap(manifest_of(1, arrays_of(model))))


def test_an_adapter_is_refused_when_the_engine_is_made(model):
    with pytest.raises(ConfigError, match="this run publishes an adapter, which goes as files; take it out"):
        VllmEngine(VllmSettings(update=NcclUpdate()), model, {"r": 2})


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"port": 70000}, "port=70000; use a port"),
        ({"bucket_bytes": 0}, "bucket_bytes=0; use 1 or more"),
        ({"buckets": 0}, "buckets=0; use 1 or more"),
        ({"on_failure": "ignore"}, "on_failure='ignore'; use 'stop' or 'files'"),
    ],
)
def test_settings_refuse_what_cannot_be(settings, text):
    with pytest.raises(ConfigError, match=text):
        NcclUpdate(**settings)


def test_the_command_line_says_how_weights_come():
    said = VllmSettings(update=NcclUpdate()).command("m")
    assert said.endswith("""--logprobs-mode processed_logprobs --weight-transfer-config '{"backend": "nccl"}'""")
    assert "weight-transfer" not in VllmSettings().command("m")


def test_without_vllm_in_this_environment(book, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    engine = engine_of(book, model, update=NcclUpdate())
    with pytest.raises(ConfigError, match=r"cannot be imported here \(.*vllm.*\); install vllm 0\.32 or later where"):
        engine.info()
    assert not book.asked


def test_this_machine_as_the_server_sees_it():
    assert nccl._here("http://127.0.0.1:8000") == "127.0.0.1"
    with pytest.raises(EngineError, match=r"no way to nowhere\.invalid from here .*NcclUpdate\.address"):
        nccl._here("https://nowhere.invalid")


# ---- the bytes: two processes, gloo in place of NCCL ---------------------------------------------------------------------------


class Info(SimpleNamespace):
    """What vLLM's NCCL half is told."""


class Half:
    """A trainer half that keeps to vLLM's order of things: announced first, received meanwhile, and compared."""

    def __init__(self, info, client, source) -> None:
        self.client, self.source = client, source
        self.model_update_group = SimpleNamespace(disabled=False)
        self.store = dist.TCPStore(info.master_address, info.master_port, info.world_size, is_master=True, wait_for_workers=False)
        client.init_weight_transfer_engine(
            {k: getattr(info, k) for k in ("master_address", "master_port", "world_size", "packed")}
        )
        self.group = dist.ProcessGroupGloo(dist.PrefixStore("bytes", self.store), 0, info.world_size, timedelta(seconds=30))

    @classmethod
    def trainer_init(cls, info, *, client, source):
        return cls(info, client, source)

    def send_weights(self) -> None:
        meta = self.source.metadata()
        told = {
            "names": [m.name for m in meta],
            "dtype_names": [str(m.dtype).split(".")[-1] for m in meta],
            "shapes": [list(m.shape) for m in meta],
        }
        self.client.start_weight_update()
        self.store.set("update", json.dumps(told))
        self.client.update_weights(told)
        for announced, (name, tensor) in zip(meta, self.source, strict=True):
            assert (name, tensor.dtype, tuple(tensor.shape)) == (announced.name, announced.dtype, announced.shape)
            self.group.broadcast([tensor], dist.BroadcastOptions()).wait()
        self.client.finish_weight_update()

    def shutdown(self) -> None:
        self.group = None


@pytest.fixture
def library(monkeypatch):
    """vLLM's two modules with `Half` in them."""
    for name, holds in (("factory", {"WeightTransferTrainerFactory": Half}), ("nccl_engine", {"NCCLTrainerInitInfo": Info})):
        made = ModuleType(f"{LIBRARY}.{name}")
        vars(made).update(holds)
        monkeypatch.setitem(sys.modules, made.__name__, made)
    for name in ("vllm", "vllm.distributed", LIBRARY):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")


def receive(port: int, out) -> None:
    """A server's process: makes room for what was announced, receives it, and tells its digests."""
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port, 2, is_master=False, timeout=timedelta(seconds=60))
    group = dist.ProcessGroupGloo(dist.PrefixStore("bytes", store), 1, 2, timedelta(seconds=30))
    told, found = json.loads(store.get("update")), {}
    for name, kind, shape in zip(told["names"], told["dtype_names"], told["shapes"], strict=True):
        room = torch.empty(shape, dtype=getattr(torch, kind))
        group.broadcast([room], dist.BroadcastOptions()).wait()
        found[name] = (
            kind,
            shape,
            array_digest(room.view(torch.int16).numpy().view(np.uint16) if kind == "bfloat16" else room.numpy()),
        )
    out.put(found)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_another_process_receives_exactly_the_bytes_of_the_manifest(book, model, library, dtype):
    book.config["dtype"], book.on_get_world_size = f"torch.{dtype}", lambda body: {"world_size": 1}
    settings = VllmSettings(update=NcclUpdate(address="127.0.0.1", port=nccl._free_port()))
    context = get_context("fork")
    out = context.Queue()
    receiver = context.Process(target=receive, args=(settings.update.port, out))
    receiver.start()
    transfer = NcclTransfer(settings.update, settings.url, device="cpu")
    engine = VllmEngine(settings, model, None, httpx.MockTransport(book), transfer)
    made = manifest_of(1, arrays_of(model)).round_to(dtype)
    run(engine.swap(made))
    found = out.get(timeout=60)
    receiver.join(60)
    assert list(found) == [*made.tensors, "lm_head.weight"]
    assert found.pop("lm_head.weight") == found["model.embed_tokens.weight"]
    assert found == {n: (dtype, list(t.shape), t.digest) for n, t in made.tensors.items()}
    assert next(body for path, body in book.asked if path == INIT)["init_info"] == {
        "master_address": "127.0.0.1",
        "master_port": settings.update.port,
        "world_size": 2,
        "packed": True,
    }
    assert engine.info().version == 1
    run(engine.close())


def test_the_sending_thread_is_given_the_learners_device(monkeypatch):
    """A fresh thread would have the first one."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    inside = []
    monkeypatch.setattr(torch.cuda, "device", lambda device: inside.append(device) or nullcontext())
    link = nccl.NcclLink(NcclTransfer(NcclUpdate(), "http://127.0.0.1:9")._device)
    link.engine = SimpleNamespace(send_weights=lambda: None)
    link.send(None)
    assert inside == ["cuda:1"]


def test_a_sender_needs_a_gpu_and_a_library(library, monkeypatch):
    transfer = NcclTransfer(NcclUpdate(), "http://127.0.0.1:9")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match="sends from a GPU, and PyTorch sees none here"):
        transfer.check()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    transfer.check()
    disabled = SimpleNamespace(model_update_group=SimpleNamespace(disabled=True))
    monkeypatch.setattr(Half, "trainer_init", lambda info, client, source: disabled)
    with pytest.raises(EngineError, match="vLLM found no NCCL library in this environment; install nvidia-nccl"):
        transfer.open(VllmServer(VllmSettings()), 1)
