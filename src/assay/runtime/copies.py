"""Anchors at work: decoders beside the policy, how they follow it, and since when each is what it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from assay.core.errors import ConfigError
from assay.runtime.anchors import Anchor, check_vocabulary
from assay.runtime.decoder import Decoder
from assay.runtime.model import Model

__all__ = ["Copies", "decoder_of"]


def decoder_of(model: Model) -> Decoder:
    """A decoder with a copy of the model's weights."""
    decoder = Decoder(model.shape)
    decoder.load_tensors(model.tensors)
    return decoder


class Copies(Mapping[str, Decoder]):
    """The anchors of a learner, by name.

    Args:
        anchors: their settings.
        start: what the policy starts from.
        models: other models by the ``model`` of the anchors that start from them.
        version: weight version of ``start``.

    Attributes:
        versions: by name, the weight version of the policy that last entered; -1 while nothing of the policy did.

    Raises:
        ConfigError: a model is missing, or its vocabulary is not the policy's.
    """

    def __init__(self, anchors: tuple[Anchor, ...], start: Model, models: Mapping[str, Model], version: int) -> None:
        self._anchors = {a.name: a for a in anchors}
        self._decoders = {a.name: decoder_of(_model(a, start, models)).requires_grad_(False) for a in anchors}
        self.versions = {a.name: -1 if a.model else version for a in anchors}

    def __getitem__(self, name: str) -> Decoder:
        return self._decoders[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._decoders)

    def __len__(self) -> int:
        return len(self._decoders)

    def privileged(self, name: str) -> bool:
        """Whether the model of that name, an anchor or the policy, reads rows behind their privileged prompts."""
        return name in self._anchors and self._anchors[name].privileged

    @torch.no_grad()
    def follow(self, policy: Decoder, version: int, before: int, after: int) -> None:
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
            for mine, theirs in zip(self[name].parameters(), policy.parameters(), strict=True):
                if share == 1.0:
                    mine.copy_(theirs)
                else:
                    mine.lerp_(theirs, share)
            self.versions[name] = version

    def tensors(self) -> dict[str, Tensor]:
        """``NAME/PARAMETER`` to weights."""
        return {f"{name}/{n}": p.detach() for name, decoder in self.items() for n, p in decoder.named_parameters()}

    def load(self, tensors: Mapping[str, Tensor], versions: Mapping[str, int]) -> None:
        """Restores what `tensors` and `versions` gave."""
        for name, decoder in self.items():
            decoder.load_tensors({n.removeprefix(f"{name}/"): t for n, t in tensors.items() if n.startswith(f"{name}/")})
        self.versions = {name: int(versions[name]) for name in self}


def _model(anchor: Anchor, start: Model, models: Mapping[str, Model]) -> Model:
    if not anchor.model:
        return start
    if anchor.model not in models:
        raise ConfigError(
            f"Anchor({anchor.name!r}) starts from {anchor.model!r}, whose weights the learner was not given: load them, "
            f"models={{{anchor.model!r}: load_model(...)}}"
        )
    check_vocabulary(anchor, start, models[anchor.model])
    return models[anchor.model]
