"""Chat templates that show tools and write calls, in the manner of the families of models that people train."""

from __future__ import annotations

from chat_families import Family

_EACH = "{%- for m in messages -%}"

# Tools as lines of JSON in the system turn, calls between tags, answers in user turns.
QWEN = Family(
    "qwen-tools",
    """{%- if tools -%}
  {{- '<|im_start|>system\\n' -}}
  {%- if messages[0].role == 'system' -%}{{- messages[0].content + '\\n\\n' -}}{%- endif -%}
  {{- '# Tools\\n<tools>' -}}{%- for t in tools -%}{{- '\\n' + (t | tojson) -}}{%- endfor -%}{{- '\\n</tools><|im_end|>\\n' -}}
{%- elif messages[0].role == 'system' -%}
  {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' -}}
{%- endif -%}"""
    + _EACH
    + """{%- if m.role == 'user' -%}{{- '<|im_start|>user\\n' + m.content + '<|im_end|>\\n' -}}
  {%- elif m.role == 'assistant' -%}
    {{- '<|im_start|>assistant\\n' + m.content -}}
    {%- if m.tool_calls -%}{%- for c in m.tool_calls -%}
      {%- if not loop.first or m.content -%}{{- '\\n' -}}{%- endif -%}
      {%- if c.function -%}{%- set c = c.function -%}{%- endif -%}
      {{- '<tool_call>\\n{"name": "' + c.name + '", "arguments": ' + (c.arguments | tojson) + '}\\n</tool_call>' -}}
    {%- endfor -%}{%- endif -%}
    {{- '<|im_end|>\\n' -}}
  {%- elif m.role == 'tool' -%}
    {%- if loop.first or messages[loop.index0 - 1].role != 'tool' -%}{{- '<|im_start|>user' -}}{%- endif -%}
    {{- '\\n<tool_response>\\n' + m.content + '\\n</tool_response>' -}}
    {%- if loop.last or messages[loop.index0 + 1].role != 'tool' -%}{{- '<|im_end|>\\n' -}}{%- endif -%}
  {%- endif -%}
{%- endfor -%}{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}""",
    ("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
    "<|im_end|>",
    "<|endoftext|>",
    plain=("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"),
)
# Only the function's inner part is shown, calls and answers in turns of role tool of their own.
HERMES = Family(
    "hermes-tools",
    """{{- '<|im_start|>system\\nCall functions. <tools> ' -}}
{%- for t in tools or [] -%}{{- (t.function | tojson) + ' ' -}}{%- endfor -%}
{{- '</tools><|im_end|>\\n' -}}"""
    + _EACH
    + """{%- if m.role == 'assistant' and m.tool_calls is defined -%}
    {{- '<|im_start|>assistant' -}}
    {%- for c in m.tool_calls -%}
      {{- '\\n<tool_call>\\n' + ({'name': c.function.name, 'arguments': c.function.arguments} | tojson) + '\\n</tool_call>' -}}
    {%- endfor -%}{{- '<|im_end|>\\n' -}}
  {%- elif m.role == 'tool' -%}
    {{- '<|im_start|>tool\\n<tool_response>\\n' + m.content + '\\n</tool_response><|im_end|>\\n' -}}
  {%- else -%}{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' -}}{%- endif -%}
{%- endfor -%}{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}""",
    ("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
    "<|im_end|>",
    "<|endoftext|>",
)
# Tools in the first user turn, one call a turn as bare JSON, answers by another name.
LLAMA = Family(
    "llama-tools",
    """{{- bos_token -}}{%- set ns = namespace(shown=false) -%}"""
    + _EACH
    + """{%- if m.tool_calls is defined -%}
    {%- if m.tool_calls | length != 1 -%}{{- raise_exception('only one call at a time') -}}{%- endif -%}
    {%- set c = m.tool_calls[0].function -%}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
    {{- '{"name": "' + c.name + '", "parameters": ' + (c.arguments | tojson) + '}<|eot_id|>' -}}
  {%- elif m.role == 'tool' -%}
    {{- '<|start_header_id|>ipython<|end_header_id|>\\n\\n' + (m.content | tojson) + '<|eot_id|>' -}}
  {%- else -%}
    {{- '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' -}}
    {%- if m.role == 'user' and tools and not ns.shown -%}
      {%- set ns.shown = true -%}
      {{- 'Answer, or call one of these:\\n' -}}{%- for t in tools -%}{{- (t | tojson(indent=4)) + '\\n\\n' -}}{%- endfor -%}
    {%- endif -%}
    {{- m.content | trim + '<|eot_id|>' -}}
  {%- endif -%}
{%- endfor -%}{%- if add_generation_prompt -%}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}{%- endif -%}""",
    ("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    "<|eot_id|>",
    "<|end_of_text|>",
    bos="<|begin_of_text|>",
)
# Strict order, numbered calls, tools before the first question, answers only behind calls.
MISTRAL = Family(
    "mistral-tools",
    """{{- bos_token -}}{%- set ns = namespace(turn=0, before='') -%}"""
    + _EACH
    + """{%- if m.role == 'user' or (m.role == 'assistant' and m.tool_calls is not defined) -%}
    {%- if (m.role == 'user') != (ns.turn % 2 == 0) -%}{{- raise_exception('user and assistant must take turns') -}}{%- endif -%}
    {%- set ns.turn = ns.turn + 1 -%}
  {%- endif -%}
  {%- if m.role == 'user' -%}
    {%- if tools and loop.first -%}{{- '[AVAILABLE_TOOLS] ' + (tools | tojson) + '[/AVAILABLE_TOOLS]' -}}{%- endif -%}
    {{- '[INST] ' + m.content + '[/INST]' -}}
  {%- elif m.tool_calls is defined -%}
    {{- '[TOOL_CALLS] [' -}}
    {%- for c in m.tool_calls -%}
      {%- if c.id is not defined or c.id | length != 9 -%}{{- raise_exception('a call has an id of 9') -}}{%- endif -%}
      {{- (c.function | tojson)[:-1] + ', "id": "' + c.id + '"}' + (', ' if not loop.last else '') -}}
    {%- endfor -%}{{- ']' + eos_token -}}
  {%- elif m.role == 'assistant' -%}{{- ' ' + m.content + eos_token -}}
  {%- elif m.role == 'tool' -%}
    {%- if m.tool_call_id is not defined or ns.before == 'assistant' -%}
      {{- raise_exception('an answer to no call') -}}
    {%- endif -%}
    {{- '[TOOL_RESULTS] {"content": ' + (m.content | tojson) + ', "call_id": "' + m.tool_call_id + '"}[/TOOL_RESULTS]' -}}
  {%- endif -%}
  {%- set ns.before = 'calls' if m.tool_calls is defined else m.role -%}
{%- endfor -%}""",
    (
        "<s>",
        "</s>",
        "[INST]",
        "[/INST]",
        "[TOOL_CALLS]",
        "[TOOL_RESULTS]",
        "[/TOOL_RESULTS]",
        "[AVAILABLE_TOOLS]",
        "[/AVAILABLE_TOOLS]",
    ),
    "</s>",
    "</s>",
    bos="<s>",
)
TOOL_FAMILIES = {f.name.partition("-")[0]: f for f in (QWEN, HERMES, LLAMA, MISTRAL)}
