"""Small tokenizers with the special tokens and the manner of writing of the families of models that people train."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, trainers
from tokenizers import decoders as token_decoders

TEXT = [
    "the cat sat on the mat and the dog said hello to the user while the assistant thinks about tools",
    "system prompt: you are a helpful assistant. What is 12 + 30? The answer is 42.\n\nuser\nassistant\ntool\n",
]


@dataclass(frozen=True)
class Family:
    """A chat template in a family's manner, with its special tokens (the first two begin and end texts)."""

    name: str
    template: str
    special: tuple[str, ...]
    end: str
    eos: str
    bos: str | None = None
    plain: tuple[str, ...] = ()
    fields: dict[str, Any] = field(default_factory=dict)


_EACH = "{% for m in messages %}"
CHATML = Family(
    "chatml",
    _EACH + "{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    ("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
    "<|im_end|>",
    "<|endoftext|>",
)
# A default system prompt, tool answers in user turns of their own, thoughts only behind the last question, a switch for them.
QWEN = Family(
    "qwen",
    """{%- set ns = namespace(last=-1) -%}
{%- for m in messages -%}{%- if m.role == 'user' -%}{%- set ns.last = loop.index0 -%}{%- endif -%}{%- endfor -%}
{%- if messages[0].role != 'system' -%}{{- '<|im_start|>system\\nBe of help.<|im_end|>\\n' -}}{%- endif -%}
{%- for m in messages -%}
  {%- if m.role == 'assistant' -%}
    {%- set parts = m.content.split('</think>') -%}
    {{- '<|im_start|>assistant\\n' -}}
    {%- if parts | length > 1 and loop.index0 > ns.last -%}
      {{- '<think>\\n' + parts[0].split('<think>')[-1].strip('\\n') + '\\n</think>\\n\\n' -}}
    {%- endif -%}
    {{- parts[-1].lstrip('\\n') + '<|im_end|>\\n' -}}
  {%- elif m.role == 'tool' -%}
    {%- if loop.previtem and loop.previtem.role != 'tool' -%}{{- '<|im_start|>user' -}}{%- endif -%}
    {{- '\\n<tool_response>\\n' + m.content + '\\n</tool_response>' -}}
    {%- if loop.last or loop.nextitem.role != 'tool' -%}{{- '<|im_end|>\\n' -}}{%- endif -%}
  {%- else -%}
    {{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{- '<|im_start|>assistant\\n' -}}
  {%- if enable_thinking is defined and enable_thinking is false -%}{{- '<think>\\n\\n</think>\\n\\n' -}}{%- endif -%}
{%- endif -%}""",
    ("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
    "<|im_end|>",
    "<|endoftext|>",
    plain=("<think>", "</think>", "<tool_response>", "</tool_response>"),
)
LLAMA = Family(
    "llama",
    "{{ bos_token }}" + _EACH + "{% set who = 'ipython' if m.role == 'tool' else m.role %}"
    "{{ '<|start_header_id|>' + who + '<|end_header_id|>\\n\\n' }}"
    "{% if m.role == 'tool' %}{{ m.content | tojson }}{% else %}{{ m.content | trim }}{% endif %}{{ '<|eot_id|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}",
    ("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    "<|eot_id|>",
    "<|end_of_text|>",
    bos="<|begin_of_text|>",
)
# No system turns, strict order, and turn tokens that are not marked as special.
GEMMA = Family(
    "gemma",
    "{{ bos_token }}{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    + _EACH
    + "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate') }}{% endif %}"
    "{% set who = 'model' if m.role == 'assistant' else m.role %}"
    "{{ '<start_of_turn>' + who + '\\n' + m.content | trim + '<end_of_turn>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}",
    ("<bos>", "<eos>"),
    "<end_of_turn>",
    "<eos>",
    bos="<bos>",
    plain=("<start_of_turn>", "<end_of_turn>"),
)
# The system prompt stands in the last user turn; tool answers are left out.
MISTRAL = Family(
    "mistral",
    "{% set first = 1 if messages[0].role == 'system' else 0 %}{{ bos_token }}{% for m in messages[first:] %}"
    "{% if m.role == 'user' %}{{ '[INST] ' }}{% if loop.last and first %}{{ messages[0].content + '\\n\\n' }}{% endif %}"
    "{{ m.content + '[/INST]' }}{% elif m.role == 'assistant' %}{{ ' ' + m.content + eos_token }}{% endif %}{% endfor %}",
    ("<s>", "</s>", "[INST]", "[/INST]"),
    "</s>",
    "</s>",
    bos="<s>",
)
PHI = Family(
    "phi",
    _EACH + "{{ '<|' + m.role + '|>\\n' + m.content + '<|end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}",
    ("<|endoftext|>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>", "<|tool|>"),
    "<|end|>",
    "<|endoftext|>",
)
FAMILIES = {f.name: f for f in (CHATML, QWEN, LLAMA, GEMMA, MISTRAL, PHI)}


def backend(family: Family) -> Tokenizer:
    """A byte-level tokenizer with the family's tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = token_decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=list(family.special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT * 4, trainer)
    strip = family.name == "phi"  # its end token eats the line end behind it
    if strip:
        tokenizer.add_special_tokens([AddedToken("<|end|>", special=True, normalized=False, rstrip=True)])
    tokenizer.add_tokens([AddedToken(t, special=False, normalized=False) for t in family.plain])
    return tokenizer


def folder_of(family: Family, folder: Path, **config: Any) -> Path:
    """A tokenizer folder as on the Hub; fields of ``config`` that are None are left out."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = backend(family)
    tokenizer.save(str(folder / "tokenizer.json"))
    told = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "eos_token": family.eos,
        "bos_token": family.bos,
        "chat_template": family.template,
        **config,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps({k: v for k, v in told.items() if v is not None}))
    ends = [tokenizer.token_to_id(family.end), tokenizer.token_to_id(family.eos)]
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": list(dict.fromkeys(ends))}))
    return folder
