"""Weights without files: vLLM's own two halves of the transfer, over gloo in place of NCCL, and what servers refuse."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from vllm_servers import NCCL, NEEDED, PROCESSED, gap, of, rows, stood_in, trained, version

from assay.core.errors import ConfigError, EngineError
from assay.runtime import NativeEngine, NcclUpdate, VllmEngine, load_model
from assay.runtime.vllm.transfer import Control


class Stub:
    """Meets the server as NCCL would, and gets no further."""

    def check(self) -> None:
        pass

    def open(self, control: Control, workers: int):
        control.init_weight_transfer_engine(
            {"master_address": "127.0.0.1", "master_port": 1, "rank_offset": 1, "world_size": workers + 1, "packed": True}
        )
        raise AssertionError("the server took it")


@pytest.fixture(scope="module")
def steps(start, executable, plugin, tied, tmp_path_factory):
    """What `vllm_trainer` did to a server of its own, by step."""
    fails = tmp_path_factory.mktemp("fails") / "now"
    with start("--dtype", "float32", *PROCESSED, "--enable-scale-out", *NCCL, variables=stood_in(plugin, fails)) as server:
        return trained(executable, server.url, tied, fails)


SERVED = {
    "first": (1, 3),
    "second": (2, 5),
    "kept": (3, 6),
    "server failed": (3, 6),
    "after it": (5, 8),
    "trainer failed": (5, 8),
    "begun by another": (5, 8),
    "one more": (8, 11),
    "to another": (11, 14),
    "as files": (9, 12),
    "and on": (10, 13),
}


@pytest.mark.parametrize("name", SERVED)
def test_what_is_said_to_be_served_is_served_to_the_last_weight(steps, tied, name):
    model = load_model(tied)  # as the trainer has it: noise is drawn in the order of the tensors
    native, (number, seed) = NativeEngine(model), SERVED[name]

    async def exact():
        await native.swap(version(model, number, seed))
        return await native.score(rows())

    (step,) = of(steps, name)
    assert (step["version"], step["spans"]) == (number, [number])
    assert gap([np.array(row) for row in step["scores"]], asyncio.run(exact())) < 1e-5


def test_checksums_witness_what_was_sent_from_memory(steps, model):
    for name in ("first", "second", "kept", "after it"):
        (step,) = of(steps, name)
        assert step["held"] == "Held" and not step["error"]
        assert step["told"] == dict.fromkeys((n for n in model.tensors if "norm" in n or "embed" in n), True)


def test_the_proof_of_weights_tells_what_came_and_what_did_not(steps):
    *proved, stale = of(steps, "proof")[0]["found"]
    assert proved == [True, True]
    assert "after update 23 the sampler's tensors differ from the learner's" in stale


def test_a_kept_request_goes_on_under_the_new_weights(steps):
    assert of(steps, "across")[0]["spans"] == [2, 3]


@pytest.mark.parametrize(
    ("name", "number", "why"),
    [
        ("server failed", 3, "Worker failed with error .the second bucket is lost"),
        ("trainer failed", 5, "sending them over NCCL failed with RuntimeError: the second bucket is lost"),
        ("begun by another", 5, "called while a weight update is already active"),
    ],
)
def test_a_transfer_that_breaks_anywhere_leaves_the_version_before(steps, name, number, why):
    (step,) = of(steps, name)
    assert step["held"] == "Snapshot" and not step["warned"]
    assert step["error"].startswith("EngineError: weight version ") and " was not loaded: " in step["error"]
    assert f"It serves version {number} again" in step["error"]
    with pytest.raises(EngineError, match=why):
        raise EngineError(step["error"])


def test_where_files_are_allowed_a_failure_is_a_warning(steps):
    (failed,), (later,) = of(steps, "as files"), of(steps, "and on")
    assert not failed["error"] and not later["error"]
    (said,) = failed["warned"]
    assert "weight version 9 did not get to" in said and "all later ones go as files" in said
    assert (failed["held"], later["held"], later["warned"]) == ("Snapshot", "Snapshot", [])


def test_what_a_broken_transfer_leaves_would_spoil_every_later_load(steps):
    """Without `Sender.settle` the server cannot even read files any more."""
    swapped, asked = of(steps, "not settled")
    assert "holds no whole weights any more" in swapped["error"].replace("Holds", "holds").lower()
    assert "holds no whole weights any more" in asked["error"]


def test_no_gpu_on_either_side(steps, server, model):
    assert "PyTorch sees none here" in of(steps, "no gpu")[0]["error"]
    engine = VllmEngine(server.settings(update=NcclUpdate()), model, transfer=Stub())
    with pytest.raises(EngineError, match="it has no GPU, and NCCL knows GPUs only: take") as caught:
        asyncio.run(engine.swap(version(model, 1)))
    assert "Cannot access accelerator device" in str(caught.value) and "It serves version -1 again" in str(caught.value)


def test_a_server_that_takes_weights_as_files_only(spare, model):
    engine = VllmEngine(spare.settings(update=NcclUpdate()), model, transfer=Stub())
    with pytest.raises(ConfigError, match="takes weights as files, and VllmSettings") as caught:
        engine.info()
    assert """--weight-transfer-config '{"backend": "nccl"}'""" in str(caught.value)


def test_a_server_that_somebody_left_in_the_middle_is_not_waited_for(server, model):
    server.post("/pause?mode=abort")
    try:
        with pytest.raises(EngineError, match="is paused: whoever used it ended in the middle of a weight update"):
            VllmEngine(server.settings(), model).info()
    finally:
        server.post("/resume")


@pytest.mark.gpu
@pytest.mark.skipif(
    torch.cuda.device_count() < 2 or find_spec("vllm.config") is None, reason="needs two GPUs, and vLLM in this environment"
)
def test_two_gpus(start, model, folder):
    """The learner's side on the first GPU, a server on the second, and NCCL between them."""
    variables = {**NEEDED, "CUDA_VISIBLE_DEVICES": "1"}
    with start("--dtype", "float32", *PROCESSED, "--enable-scale-out", *NCCL, variables=variables, served=folder) as server:
        engine, native = VllmEngine(server.settings(update=NcclUpdate()), model), NativeEngine(model)

        async def across(number: int, seed: int):
            new = version(model, number, seed)
            await engine.swap(new)
            await native.swap(new)
            told = await engine.checksums()
            assert told == {name: new.tensors[name].digest for name in told}
            return gap(await engine.score(rows()), await native.score(rows()))

        assert max(asyncio.run(across(*which)) for which in ((1, 0), (2, 5))) < 1e-3
        asyncio.run(engine.close())
