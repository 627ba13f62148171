"""A small random model of any family of transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from assay.core.seeds import generator

if TYPE_CHECKING:
    from assay.runtime.models.hub_model import HubModel

__all__ = ["random_model"]


LETTERS = "".join(map(chr, range(32, 127))) + "\n"


def random_model(kind: str, sizes: dict[str, Any], *, spread: float = 0.15, seed: int = 0, letters: str = LETTERS) -> HubModel:
    """Matrices drawn with one standard deviation, vectors as transformers begins with them.

    A spread of .15 is several times what models begin with: distributions are far from uniform, and rounding shows.

    Args:
        kind: transformers' name of the family, ``model_type``.
        sizes: of its config, the vocabulary's left out.
        spread: standard deviation of every entry of a matrix.
        seed: of the draw; a tensor's depends on its name besides.
        letters: the vocabulary, beside padding and the end of a text.

    >>> sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    >>> random_model("llama", {**sizes, "num_key_value_heads": 1}).shape.architecture
    'LlamaForCausalLM'
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from assay.runtime.models.hub_model import HubModel
    from assay.runtime.text.tokenizer import char_tokenizer

    tokenizer = char_tokenizer(letters)
    given: dict[str, Any] = {"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": None, **sizes}
    with cast(Any, torch.random).fork_rng():
        config = cast(Any, AutoConfig).for_model(kind, vocab_size=tokenizer.size, **given)
        module = cast(Any, AutoModelForCausalLM).from_config(config)
    begun: dict[str, torch.Tensor] = {name: parameter.detach() for name, parameter in module.named_parameters()}

    def draw(name: str, like: torch.Tensor) -> torch.Tensor:
        values = generator("random-model", seed, name).standard_normal(tuple(like.shape)) * spread
        return torch.from_numpy(values).to(torch.float32)  # type: ignore[reportUnknownMemberType]

    tensors = {name: draw(name, tensor) if tensor.dim() > 1 else tensor for name, tensor in begun.items()}
    config = {**module.config.to_dict(), "architectures": [type(module).__name__]}
    return HubModel(config=config, tensors=tensors, tokenizer=tokenizer)
