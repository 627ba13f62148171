"""Small base models' tokenizers, without chat templates, in the manner of the families that people train."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import decoders as token_decoders

TEXT = [
    "the cat sat on the mat and the dog said hello to the user while the assistant thinks about tools",
    "What is 12 + 30? The answer is 42.\n\nx = 7 * 6, so x is 42; café 漢",
]


@dataclass(frozen=True)
class Base:
    """A family's way to write plain text: ``single`` is its post-processor, ``kind`` the way to cut words."""

    kind: str
    special: tuple[str, ...]
    eos: str
    single: str = "$A"
    before: tuple[str, ...] = ()
    bos: str | None = None
    fields: dict[str, Any] = field(default_factory=dict)


BASES = {
    "llama2": Base(
        "metaspace",
        ("<unk>", "<s>", "</s>"),
        "</s>",
        "<s> $A",
        ("<s>",),
        "<s>",
        {"tokenizer_class": "LlamaTokenizer", "unk_token": "<unk>", "add_bos_token": True},
    ),
    "llama3": Base(
        "bytes",
        ("<|begin_of_text|>", "<|end_of_text|>"),
        "<|end_of_text|>",
        "<|begin_of_text|> $A",
        ("<|begin_of_text|>",),
        "<|begin_of_text|>",
    ),
    "gemma": Base(
        "spaces",
        ("<pad>", "<eos>", "<bos>", "<unk>"),
        "<eos>",
        "<bos> $A",
        ("<bos>",),
        "<bos>",
        {"tokenizer_class": "GemmaTokenizer", "unk_token": "<unk>", "pad_token": "<pad>"},
    ),
    "mistral": Base("spaces", ("<unk>", "<s>", "</s>"), "</s>", "<s> $A", ("<s>",), "<s>", {"unk_token": "<unk>"}),
    "opt": Base("bytes", ("</s>", "<pad>"), "</s>", "</s> $A", ("</s>",), "</s>"),
    "glm": Base("bytes", ("<|endoftext|>", "[gMASK]", "<sop>"), "<|endoftext|>", "[gMASK] <sop> $A", ("[gMASK]", "<sop>")),
    "qwen": Base("bytes", ("<|endoftext|>",), "<|endoftext|>"),
}
ENDED = Base("bytes", ("<s>", "</s>"), "</s>", "<s> $A </s>", ("<s>",), "<s>")


def backend(base: Base) -> Tokenizer:
    """A tokenizer of a few hundred ids with the family's post-processor."""
    byte_level = base.kind == "bytes"
    made = Tokenizer(models.BPE() if byte_level else models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    special = list(base.special)
    alphabet = pre_tokenizers.ByteLevel.alphabet() if byte_level else []
    if byte_level:
        made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), token_decoders.ByteLevel()
    else:
        special += [f"<0x{i:02X}>" for i in range(256)]
        pieces = [token_decoders.Replace("▁", " "), token_decoders.ByteFallback(), token_decoders.Fuse()]
        if base.kind == "metaspace":
            made.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=False)
            pieces.append(token_decoders.Strip(" ", 1, 0))
        else:
            made.normalizer = normalizers.Replace(" ", "▁")
            made.pre_tokenizer = pre_tokenizers.Split(Regex("(?<=▁)"), "merged_with_previous")
        made.decoder = token_decoders.Sequence(pieces)
    trainer = trainers.BpeTrainer(
        vocab_size=len(special) + 340 * byte_level + 90 * (not byte_level),
        special_tokens=special,
        initial_alphabet=alphabet,
        show_progress=False,
    )
    made.train_from_iterator(TEXT * 4, trainer)
    if not byte_level:  # bytes are plain pieces there, not special tokens
        plan = json.loads(made.to_str())
        plan["added_tokens"] = [t for t in plan["added_tokens"] if t["content"] in base.special]
        made = Tokenizer.from_str(json.dumps(plan))
    made.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in base.special])
    if base.single != "$A":
        ids = [(t, made.token_to_id(t)) for t in base.special]
        template: Any = processors.TemplateProcessing(single=base.single, pair=f"{base.single} $B:1", special_tokens=ids)
        made.post_processor = processors.Sequence([processors.ByteLevel(), template]) if byte_level else template
    return made


def write_base(base: Base, folder: Path, **more: Any) -> Path:
    """A tokenizer folder as on the hub."""
    folder.mkdir(parents=True, exist_ok=True)
    backend(base).save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "eos_token": base.eos,
        "bos_token": base.bos,
        **base.fields,
        **more,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not None}))
    return folder
