"""Models, engines and learners: the only package that needs torch, and only when a name from it is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports
from assay.core.util.threads import with_torch

if TYPE_CHECKING:
    from assay.runtime.anchors import Anchor, Ema, Every, Frozen
    from assay.runtime.compiled.build import decoder_identity
    from assay.runtime.distributed.collectives import Collectives
    from assay.runtime.distributed.mesh import MeshLearner
    from assay.runtime.engine.hub_engine import TransformersEngine
    from assay.runtime.engine.native import NativeEngine
    from assay.runtime.engine.settings import (
        Auto,
        EngineFootprint,
        EngineSpec,
        InProcess,
        LocalEngineSpec,
        ModelEngineSpec,
        Native,
        ServerEngineSpec,
    )
    from assay.runtime.engine.stale import StaleEngine
    from assay.runtime.learner.learner import TorchLearner
    from assay.runtime.machine import set_threads
    from assay.runtime.models.any_model import AnyModel
    from assay.runtime.models.exported import Reloaded
    from assay.runtime.models.hf import load_decoder, load_model, save_model
    from assay.runtime.models.hub_model import Adapter, HubModel, hub_of
    from assay.runtime.models.model import Model, init_model, parameter_shapes
    from assay.runtime.settings import (
        AdamW,
        DecoderShape,
        HubShape,
        LearnerSettings,
        LearningRateSchedule,
        Lora,
        Mesh,
        Muon,
        Trunk,
        ValueHead,
    )
    from assay.runtime.text.chat import Chat
    from assay.runtime.text.tokenizer import ChatTemplate, HubTokenizer, char_tokenizer
    from assay.runtime.vllm.engine import VllmEngine
    from assay.runtime.vllm.settings import NcclUpdate, VllmSettings
    from assay.runtime.vllm.untied import untied_copy

__all__ = [
    "AdamW",
    "Adapter",
    "Anchor",
    "AnyModel",
    "Auto",
    "Chat",
    "ChatTemplate",
    "Collectives",
    "DecoderShape",
    "Ema",
    "EngineFootprint",
    "EngineSpec",
    "Every",
    "Frozen",
    "HubModel",
    "HubShape",
    "HubTokenizer",
    "InProcess",
    "LearnerSettings",
    "LearningRateSchedule",
    "LocalEngineSpec",
    "Lora",
    "Mesh",
    "MeshLearner",
    "Model",
    "ModelEngineSpec",
    "ServerEngineSpec",
    "Muon",
    "Native",
    "NativeEngine",
    "NcclUpdate",
    "Reloaded",
    "StaleEngine",
    "TorchLearner",
    "TransformersEngine",
    "Trunk",
    "ValueHead",
    "VllmEngine",
    "VllmSettings",
    "char_tokenizer",
    "decoder_identity",
    "hub_of",
    "init_model",
    "load_decoder",
    "load_model",
    "parameter_shapes",
    "save_model",
    "set_threads",
    "untied_copy",
]

_HOME = {
    "models.any_model": "AnyModel",
    "machine": "set_threads",
    "compiled.build": "decoder_identity",
    "anchors": "Anchor Ema Every Frozen",
    "distributed.collectives": "Collectives",
    "distributed.mesh": "MeshLearner",
    "engine.hub_engine": "TransformersEngine",
    "engine.native": "NativeEngine",
    "engine.settings": "Auto EngineFootprint EngineSpec InProcess LocalEngineSpec ModelEngineSpec Native ServerEngineSpec",
    "engine.stale": "StaleEngine",
    "learner.learner": "TorchLearner",
    "models.exported": "Reloaded",
    "models.hf": "load_decoder load_model save_model",
    "models.hub_model": "Adapter HubModel hub_of",
    "models.model": "Model init_model parameter_shapes",
    "settings": "AdamW DecoderShape HubShape LearnerSettings Lora Mesh Muon LearningRateSchedule Trunk ValueHead",
    "text.chat": "Chat",
    "text.tokenizer": "ChatTemplate HubTokenizer char_tokenizer",
    "vllm.engine": "VllmEngine",
    "vllm.settings": "NcclUpdate VllmSettings",
    "vllm.untied": "untied_copy",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME, load=with_torch)
