"""A vLLM server by the book: it answers as vLLM's pages say, and notes what it was asked."""

from __future__ import annotations

import asyncio
import json

import httpx

from assay.core.protocols import Request
from assay.core.rollout import Sampling, ids_of
from assay.runtime import NcclUpdate, VllmEngine, VllmSettings


def asked(seed=7, first=0, **sampling):
    return Request(
        id="a", prompt=ids_of([3, 4, 5]), seed=seed, first=first, sampling=Sampling(**{"max_new_tokens": 3, **sampling})
    )


def answer(ids=(6, 7, 8), reason="length", logp=(-1.0, -2.0, -3.0), spans=(("x", 0, 3),), **more):
    content = [{"token_id": i, "logprob": x, "top_logprobs": []} for i, x in zip(ids, logp, strict=True)]
    choice = {
        "token_ids": list(ids),
        "finish_reason": reason,
        "logprobs": {"content": content},
        "weight_versions": [{"version": v, "start": a, "end": b} for v, a, b in spans],
    }
    return {"model": "m", "choices": [choice | more]}


def arrays_of(model):
    return {n: t.numpy().copy() for n, t in model.tensors.items()}


class Book:
    """Answers as vLLM's pages say, and notes what it was asked; ``fails`` maps a path to a status and a text."""

    def __init__(self, folder, **config):
        self.folder, self.asked, self.fails, self.label, self.adapters = folder, [], {}, "default", []
        self.config = {"logprobs_mode": "processed_logprobs", "dtype": "torch.float32", **config}
        self.device, self.rank, self.model = "cuda", 0, "base"
        self.transfer, self.paused, self.extension = None, False, ""

    def __call__(self, request):
        path, body = request.url.path, json.loads(request.content or "{}")
        self.asked.append((path, body))
        if path in self.fails and self.fails[path][0](body):
            return httpx.Response(self.fails[path][1], text=self.fails[path][2])
        return httpx.Response(200, json=getattr(self, "on_" + path.strip("/").replace("/", "_"), lambda body: {})(body))

    def on_v1_models(self, body):
        card = {"id": "base", "root": str(self.folder), "parent": None, "max_model_len": 16}
        return {"data": [card, *({"id": name, "parent": "base"} for name in self.adapters)]}

    def on_server_info(self, body):
        lora = {"max_lora_rank": self.rank} if self.rank else None
        config = {"model_config": self.config, "lora_config": lora, "device_config": {"device": self.device}}
        more = {"weight_transfer_config": self.transfer, "parallel_config": {"worker_extension_cls": self.extension}}
        return {"vllm_config": config | more}

    def on_is_paused(self, body):
        return {"is_paused": self.paused}

    def on_get_world_size(self, body):
        return {"world_size": 2}

    def on_finish_weight_update(self, body):
        self.label = body.get("weight_version", self.label)
        return {}

    def on_weight_info(self, body):
        return {"weight_version": self.label}

    def on_update_weight_version(self, body):
        self.label = body["new_version"]
        return {}

    def on_v1_load_lora_adapter(self, body):
        self.adapters.append(body["lora_name"])
        return "ok"

    def on_weight_checker(self, body):
        return {"checksums": {"dp0:pp0:pcp0:tp0:lm_head.weight": "s"}}

    def on_inference_v1_generate(self, body):
        tokens = [6] * body["sampling_params"]["max_tokens"]
        made = answer(tokens, "length", [-1.0] * len(tokens), ((self.label, 0, len(tokens)),))
        told = [None, *({str(i): {"logprob": -2.0}} for i in body["token_ids"][1:])]
        return made | {"prompt_logprobs": told, "model": self.model if self.model != "base" else body.get("model", "base")}

    def paths(self):
        return [path for path, _ in self.asked]


def refuse(status, text, when=lambda body: True):
    return (when, status, text)


def out_of_vocabulary(size):
    return refuse(400, '{"error": {"message": "Token id is out of vocabulary"}}', lambda body: max(body["token_ids"]) >= size)


def engine_of(book, model, adapter=None, transfer=None, **settings):
    return VllmEngine(VllmSettings(**settings), model, adapter, httpx.MockTransport(book), transfer)


def run(coroutine):
    return asyncio.run(coroutine)


class Memory:
    """Carries nothing further than its own list."""

    def __init__(self, during=lambda: None) -> None:
        self.sent, self.workers, self.opened, self.closed, self.during = [], 0, 0, 0, during

    def check(self) -> None:
        pass

    def open(self, control, workers):
        self.control, self.workers = control, workers
        control.init_weight_transfer_engine({"world_size": workers + 1})
        self.opened += 1
        return self

    def send(self, held) -> None:
        self.control.start_weight_update()
        self.control.update_weights({"names": [wire.name for wire in held.wires()]})
        self.during()
        self.sent.append({name: array.copy() for name, array in held.tensors_to_send()})
        self.control.finish_weight_update()

    def close(self) -> None:
        self.closed += 1


def sending(book, model, during=lambda: None, **settings):
    memory = Memory(during)
    update = settings.pop("update", NcclUpdate())
    return memory, engine_of(book, model, transfer=memory, update=update, **settings)
