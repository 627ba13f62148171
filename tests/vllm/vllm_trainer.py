"""The sending side of a weight transfer, run by the Python that has vLLM; prints what happened as JSON, a line per step."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import vllm_stand_in
from vllm_servers import request, rows, version

from assay.core.errors import AssayError, ConfigError, EngineError, WeightProofError
from assay.core.manifest import manifest_of
from assay.core.protocols import SwapMode
from assay.runtime import LearnerSettings, NcclUpdate, TorchLearner, VllmEngine, VllmSettings, load_model
from assay.runtime.vllm.nccl import NcclTransfer
from assay.runtime.vllm.server import VllmServer
from assay.runtime.vllm.transfer import Sender
from assay.train.proof import WeightProof, probe_rows


async def main(url: str, folder: str, server_fails: str, few: str = "") -> None:
    model, update = load_model(folder), NcclUpdate(bucket_bytes=300_000)
    try:
        NcclTransfer(update, url).check()
    except ConfigError as error:
        say("no gpu", error=str(error))
    vllm_stand_in.register()
    settings = VllmSettings(url=url, update=update, swap_seconds=40, request_seconds=40)
    engine = VllmEngine(settings, model, transfer=NcclTransfer(update, url, device="cpu"))

    async def step(name: str, number: int, seed: int, mode: SwapMode = SwapMode.DRAIN, who: VllmEngine = engine) -> None:
        new, error = version(model, number, seed), ""
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                await who.swap(new, mode)
            except AssayError as caught:
                error = f"{type(caught).__name__}: {caught}"
        made, told = await who.generate(request("a", rows(1)[0])), await who.checksums() or {}
        say(
            name,
            error=error,
            version=who.info().version,
            spans=[s.version for s in made.spans],
            held=type(who._weights.newest).__name__,
            scores=[row.tolist() for row in await who.score(rows())],
            told={n: d == new.tensors[n].digest for n, d in told.items()},
            warned=[str(w.message) for w in warned if w.category is RuntimeWarning],
        )

    await step("first", 1, 3)
    await step("second", 2, 5)
    kept = asyncio.create_task(engine.generate(request("kept", rows(1)[0], max_new_tokens=800)))
    await asyncio.sleep(0.5)
    await step("kept", 3, 6, SwapMode.KEEP)
    say("across", spans=[s.version for s in (await kept).spans])
    Path(server_fails).touch()
    await step("server failed", 4, 7)
    Path(server_fails).unlink()
    await step("after it", 5, 8)
    if few:
        await engine.close()
        return
    here = os.environ[vllm_stand_in.FAIL] = server_fails + ".here"
    Path(here).touch()
    await step("trainer failed", 6, 9)
    Path(here).unlink()
    VllmServer(settings).ask("POST", "/start_weight_update")
    await step("begun by another", 7, 10)
    await step("one more", 8, 11)
    say("proof", found=await proved(engine, model))
    await engine.close()

    update = NcclUpdate(bucket_bytes=300_000, on_failure="files")
    lenient = VllmEngine(
        VllmSettings(url=url, update=update, swap_seconds=40, request_seconds=40),
        model,
        transfer=NcclTransfer(update, url, device="cpu"),
    )
    await step("to another", 11, 14, who=lenient)
    Path(server_fails).touch()
    await step("as files", 9, 12, who=lenient)
    await step("and on", 10, 13, who=lenient)
    await lenient.close()

    Sender.settle = nothing
    careless = VllmEngine(settings, model, transfer=NcclTransfer(update, url, device="cpu"))
    for what in (careless.swap(version(model, 7, 10)), careless.generate(request("a", [5]))):
        try:
            await what
        except EngineError as error:
            say("not settled", error=str(error))
    await careless.close()


async def proved(engine: VllmEngine, model: Any) -> list[bool | str]:
    """What the proof of weights says of two updates, and of one that was announced and not sent."""
    learner, found = TorchLearner(model, LearnerSettings(), total_steps=9), list[bool | str]()
    proof = WeightProof(probe_rows(model.shape.vocab_size, 64, 0, rows=8, length=32))
    sent = manifest_of(20, copied(learner.publish().payload))
    await engine.swap(sent)
    await proof.calibrate(sent, engine, learner)
    for number, arrives in ((21, True), (22, True), (23, False)):
        with torch.no_grad():
            for parameter in learner.parameters.values():
                parameter.add_(1e-5 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number)).sign())
        new = replace(learner.publish(), version=number)
        sent = manifest_of(number, copied(new.payload if arrives else sent.payload))  # a payload is the learner's live weights
        await engine.swap(sent)
        try:
            found.append(await proof.check(new, engine, learner))
        except WeightProofError as error:
            found.append(str(error))
    return found


def copied(arrays: Any) -> dict[str, np.ndarray]:
    return {name: np.array(array) for name, array in arrays.items()}


async def nothing(self: Sender) -> None:
    pass


def say(name: str, **what: object) -> None:
    print(json.dumps({"step": name, **what}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
