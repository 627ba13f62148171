"""Anchors at work: decoders beside the policy, how they follow it, and since when each is what it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from assay.core.errors import ConfigError
from assay.runtime.anchors import Anchor, check_vocabulary
from assay.runtime.learner.causal import Causal
from assay.runtime.learner.decoder import Decoder
from assay.runtime.learner.lm_head import LmHead
from assay.runtime.learner.packing import Packing
from assay.runtime.models.model import Model
from assay.runtime.settings import DecoderShape, HubShape, LearnerSettings

if TYPE_CHECKING:
    from assay.runtime.distributed.collectives import Collectives
    from assay.runtime.models.hub_model import HubModel

__all__ = ["AnchorModels", "check_buildable", "decoder_of", "device_of"]


def decoder_of(model: Model | HubModel, settings: LearnerSettings | None = None, ranks: Collectives | None = None) -> Causal:
    """A decoder with a copy of the model's weights: assay's own where it has the architecture, computes on a CPU and trains all
    weights; else that of transformers.

    An adapter that the settings ask for goes on where the model has one of that kind, and is put in freshly otherwise; one that
    they do not ask for becomes part of the weights. On several ranks each has a part of it.
    """
    wanted = settings or LearnerSettings()
    device = device_of(wanted)
    theirs = wanted.checkpointing or wanted.compile or ranks is not None  # what transformers' layers alone can
    if isinstance(model, Model) and wanted.adapter is None and device == "cpu" and not theirs:
        if wanted.replay_routing:
            raise ConfigError("LearnerSettings.replay_routing: assay's own decoder has no experts; leave it out")
        decoder = Decoder(model.shape, wanted.kernel)
        decoder.load_tensors(model.tensors)
        return decoder
    from assay.runtime.learner.hub_decoder import HubDecoder  # transformers takes seconds to import: only where it is used
    from assay.runtime.models.hub_model import hub_of, with_adapter

    dtype = torch.bfloat16 if wanted.precision == "bf16" else torch.float32
    made = HubDecoder(
        with_adapter(hub_of(model), wanted.adapter),
        dtype=dtype,
        device=device,
        checkpointing=wanted.checkpointing,
        replay_routing=wanted.replay_routing,
        compile=wanted.compile,
    )
    if ranks is None:
        return made
    from assay.runtime.distributed.fsdp import Sharded

    return Sharded(made, ranks)


def device_of(settings: LearnerSettings) -> str:
    """``cpu`` or ``cuda``.

    Raises:
        ConfigError: CUDA was asked for, and there is none.
    """
    if settings.device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("LearnerSettings.device='cuda', and PyTorch sees no CUDA device; use 'cpu' or 'auto'")
    return "cuda" if settings.device != "cpu" and torch.cuda.is_available() else "cpu"


def check_buildable(model: Model | HubModel, settings: LearnerSettings) -> None:
    """What a learner of these settings would refuse as it is built, as far as a config and the machine tell it: for stages that
    begin late.

    Raises:
        ConfigError: CUDA where there is none, routing or compiled layers of a model that cannot have them, or an adapter for
            layers that it has not.
    """
    device_of(settings)
    config: Mapping[str, object] = {} if isinstance(model, Model) else _config_of(model)
    experts = any("experts" in name and isinstance(value, int) and value > 0 for name, value in config.items())
    if settings.replay_routing and not experts:
        raise ConfigError(f"LearnerSettings.replay_routing: {_name(model)} has no experts; leave it out")
    if settings.compile and experts:
        raise ConfigError(
            f"LearnerSettings.compile: {_name(model)} is not compiled: its routers are looked at while they compute; leave it out"
        )
    if settings.adapter is not None:
        from assay.runtime.models.hub_model import hub_of
        from assay.runtime.models.lora import check_targets

        check_targets(hub_of(model).meta_module(), settings.adapter)


def _config_of(model: HubModel) -> Mapping[str, object]:
    """What the config of a model's decoder says, its family's defaults filled in."""
    from assay.runtime.models.hub_model import hub_config

    return cast(Any, hub_config(model.config)).get_text_config().to_dict()


def _name(model: Model | HubModel) -> str:
    return "assay's own decoder" if isinstance(model, Model) else model.shape.architecture


class _Adapted(Causal):
    """A decoder whose adapter is another one for as long as a pass takes: an anchor that shares the policy's base."""

    def __init__(self, policy: Causal) -> None:
        super().__init__()
        self._policy = (policy,)  # in a tuple, so that its weights are not this module's
        self.kept = {name: p.detach().clone() for name, p in policy.trainable_parameters().items()}

    @property
    def shape(self) -> DecoderShape | HubShape:
        return self._policy[0].shape

    @property
    def device(self) -> torch.device:
        return self._policy[0].device

    @property
    def head(self) -> LmHead:
        return self._policy[0].head

    @property
    def embedding(self) -> Tensor:
        return self._policy[0].embedding

    def weights(self) -> dict[str, Tensor]:
        return self.kept

    def shard(self, name: str, part: Tensor) -> Tensor:
        return self._policy[0].shard(name, part)

    def whole(self, name: str, part: Tensor) -> Tensor:
        return self._policy[0].whole(name, part)

    def own(self, name: str, whole: Tensor) -> Tensor:
        return self._policy[0].own(name, whole)

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        for name, mine in self.kept.items():
            mine.copy_(tensors[name])

    @torch.no_grad()
    def hidden_states(self, ids: Tensor, packing: Packing, wanted: Tensor | None = None) -> Tensor:
        policy = self._policy[0].trainable_parameters()
        now = {name: p.detach().clone() for name, p in policy.items()}
        try:
            for name, parameter in policy.items():
                parameter.copy_(self.kept[name])
            return self._policy[0].hidden_states(ids, replace(packing, experts=None), wanted)
        finally:
            for name, parameter in policy.items():
                parameter.copy_(now[name])


class AnchorModels(Mapping[str, Causal]):
    """The anchors of a learner, by name. Where an adapter is trained, those that start from the policy are adapters beside it.

    Args:
        settings: the learner's.
        start: what the policy starts from.
        policy: its decoder.
        models: other models by the ``model`` of the anchors that start from them.
        version: weight version of ``start``.
        ranks: that share the weights; None for a single process.

    Attributes:
        versions: by name, the weight version of the policy that last entered; -1 while nothing of the policy did.

    Raises:
        ConfigError: a model is missing, or its vocabulary is not the policy's.
    """

    def __init__(
        self,
        settings: LearnerSettings,
        start: Model | HubModel,
        policy: Causal,
        models: Mapping[str, Model | HubModel],
        version: int,
        ranks: Collectives | None = None,
    ) -> None:
        self._anchors = {a.name: a for a in settings.anchors}
        frozen = replace(settings, adapter=None, checkpointing=False, replay_routing=False)

        def make_anchor(anchor: Anchor) -> Causal:
            if not anchor.model and settings.adapter is not None:
                return _Adapted(policy)
            own = replace(frozen, compile=frozen.compile and not anchor.model)  # another model may have layers of another kind
            return decoder_of(_model(anchor, start, models), own, ranks).requires_grad_(False)

        self._decoders = {a.name: make_anchor(a) for a in settings.anchors}
        self.versions = {a.name: -1 if a.model else version for a in settings.anchors}

    def __getitem__(self, name: str) -> Causal:
        return self._decoders[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._decoders)

    def __len__(self) -> int:
        return len(self._decoders)

    def privileged(self, name: str) -> bool:
        """Whether the model of that name, an anchor or the policy, reads rows behind their privileged prompts."""
        return name in self._anchors and self._anchors[name].privileged

    @torch.no_grad()
    def follow(self, policy: Causal, version: int, before: int, after: int) -> None:
        """Moves each anchor whose turn it is towards the policy, whose weights have ``version``.

        Args:
            policy: present weights.
            version: of these.
            before, after: steps of the stage before and after what has just been done.
        """
        for name, anchor in self._anchors.items():
            share = anchor.refresh.share(before, after)
            if not share:
                continue
            theirs = policy.trainable_parameters()
            for key, mine in self[name].weights().items():
                if share == 1.0:
                    mine.copy_(theirs[key])
                else:
                    mine.lerp_(theirs[key], share)
            self.versions[name] = version

    def tensors(self) -> dict[str, Tensor]:
        """``NAME/PARAMETER`` to weights."""
        return {f"{name}/{n}": p.detach() for name, decoder in self.items() for n, p in decoder.weights().items()}

    def load(self, tensors: Mapping[str, Tensor], versions: Mapping[str, int]) -> None:
        """Restores what `tensors` and `versions` gave."""
        for name, decoder in self.items():
            mine = {n.removeprefix(f"{name}/"): t for n, t in tensors.items() if n.startswith(f"{name}/")}
            for key, weight in decoder.weights().items():
                with torch.no_grad():
                    weight.copy_(mine[key])
        self.versions = {name: int(versions[name]) for name in self}


def _model(anchor: Anchor, start: Model | HubModel, models: Mapping[str, Model | HubModel]) -> Model | HubModel:
    if not anchor.model:
        return start
    if anchor.model not in models:
        raise ConfigError(
            f"Anchor({anchor.name!r}) starts from {anchor.model!r}, whose weights the learner was not given: load them, "
            f"models={{{anchor.model!r}: load_model(...)}}"
        )
    check_vocabulary(anchor, start, models[anchor.model])
    return models[anchor.model]
