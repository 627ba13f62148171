"""Base models: what their tokenizers put in front of plain text stands in front of every prompt, as in transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from base_families import BASES, ENDED, TEXT, write_base
from tokenizers import Tokenizer, models, processors
from transformers import AutoTokenizer

from assay.core.errors import ConfigError
from assay.core.task import Message
from assay.objective.preferences import Preference, preference_batch
from assay.rollout.decode_text import AnswerReader
from assay.runtime import Chat, ChatTemplate, char_tokenizer
from assay.runtime.text.special_tokens import special_tokens_of
from assay.runtime.text.tokenizer import HubTokenizer
from assay.train.demonstration import Demonstration

PROMPTS = [*TEXT, "7 * 6 =", " spaces  and\n\nlines\n", "漢字", "x"]
TALKS = {
    "dialogue": Chat(template="dialogue"),
    "system": Chat(template="dialogue", system="Be brief."),
    "roles": Chat(template=ChatTemplate(user="Q: {content}\n", assistant="A: {content}")),
}


@pytest.fixture(params=BASES)
def family(request) -> str:
    return request.param


def theirs(folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(folder)


def front(t: HubTokenizer, family: str) -> list[int]:
    return [t.backend.token_to_id(token) for token in BASES[family].before]


def test_a_prompt_begins_as_transformers_begins_plain_text(family, tmp_path):
    ours, other = HubTokenizer.load(write_base(BASES[family], tmp_path)), theirs(tmp_path)
    for text in PROMPTS:
        assert ours.render([Message("user", text)]).tolist() == other(text).input_ids
        assert ours.encode(text).tolist() == other(text, add_special_tokens=False).input_ids
    assert ours.bos_ids.tolist() == front(ours, family)
    assert ours.bos == other.bos_token_id


@pytest.mark.parametrize("talk", TALKS)
def test_built_in_and_role_templates_begin_with_it_once_and_are_saved_so(talk, family, tmp_path):
    ours = HubTokenizer.load(write_base(BASES[family], tmp_path / "base")).with_chat(TALKS[talk])
    turns = [Message("user", "x = 7"), Message("assistant", "so"), Message("user", "the cat")]
    ids, begin = ours.render(turns).tolist(), front(ours, family)
    assert ids[: len(begin)] == begin and not set(begin) - {ours.eos} & set(ids[len(begin) :])
    (tmp_path / "out").mkdir()
    ours.save(tmp_path / "out")
    other, messages = theirs(tmp_path / "out"), [{"role": m.role, "content": m.content} for m in turns]
    found = other.apply_chat_template(messages, chat_template=ours.jinja, add_generation_prompt=True, return_dict=False)
    assert found[: len(begin)] == begin and (talk == "roles" or found == ids)  # roles are cut into tokens turn by turn
    again = HubTokenizer.load(tmp_path / "out")
    assert again.render(turns).tolist() == ids
    assert again.follow(turns[:2], turns[2:]).tolist() == ids[len(ids) - len(again.follow(turns[:2], turns[2:])) :]


def test_a_role_template_that_writes_it_gets_no_second(tmp_path):
    ours = HubTokenizer.load(write_base(BASES["llama3"], tmp_path))
    own = ours.with_chat(Chat(template=ChatTemplate(user="<|begin_of_text|>Q: {content}\n")))
    assert own.render([Message("user", "x")]).tolist().count(0) == 1
    assert own.jinja is not None and own.jinja.count("begin_of_text") == 1


def test_demonstrations_and_preferences_begin_with_it(family, tmp_path):
    ours = HubTokenizer.load(write_base(BASES[family], tmp_path))
    begin = front(ours, family)
    row = Demonstration.of({"prompt": "7 * 6 =", "completion": "42"}).row("a", AnswerReader.of(ours))
    prompt = theirs(tmp_path)("7 * 6 =").input_ids
    assert row.ids.tolist() == [*prompt, *ours.encode("42"), ours.eos]
    assert prompt[: len(begin)] == begin and not row.mask[: len(prompt)].any()
    pair = Preference.of({"prompt": "7 * 6 =", "chosen": "42", "rejected": "7"})
    batch = preference_batch([pair], ours.render, ours.encode)
    for start in batch.offsets[:-1]:
        assert batch.token("ids")[start : start + len(prompt)].tolist() == prompt


def test_a_tokenizer_that_ends_plain_text_asks_how_prompts_are_written(tmp_path):
    ours = HubTokenizer.load(write_base(ENDED, tmp_path))
    with pytest.raises(ConfigError, match=r"writes '</s>' behind every text.*Chat\(template='dialogue'\)"):
        ours.render([Message("user", "x")])
    asked = ours.with_chat(Chat(template="dialogue")).render([Message("user", "x")]).tolist()
    assert asked[0] == ours.bos and ours.eos not in asked


PROCESSORS = {
    "bert": (processors.BertProcessing(("</s>", 1), ("<s>", 0)), (0,), (1,)),
    "roberta": (processors.RobertaProcessing(("</s>", 1), ("<s>", 0)), (0,), (1,)),
    "offsets": (processors.ByteLevel(), (), ()),
    "sequence": (
        processors.Sequence([processors.ByteLevel(), processors.RobertaProcessing(("</s>", 1), ("<s>", 0))]),
        (0,),
        (1,),
    ),
}


@pytest.mark.parametrize("name", PROCESSORS)
def test_every_kind_of_post_processor_is_read_as_it_works(name):
    made = Tokenizer(models.WordLevel({"<s>": 0, "</s>": 1, "a": 2}))
    processor, before, after = PROCESSORS[name]
    made.post_processor = processor
    found = special_tokens_of(made)
    assert (found.before, found.after) == (before, after)
    assert [*before, 2, *after] == made.encode("a").ids
    assert (found.before_text, found.after_text) == tuple("".join(map(made.id_to_token, ids)) for ids in (before, after))


def test_post_processors_that_nobody_could_follow_are_refused():
    made = Tokenizer(models.WordLevel({"<s>": 0, "a": 1}))
    twice = processors.TemplateProcessing(single="<s> $A $A", special_tokens=[("<s>", 0)])
    once = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    made.post_processor = twice
    with pytest.raises(ConfigError, match="writes a text 2 times"):
        special_tokens_of(made)
    made.post_processor = processors.Sequence([once, once])
    with pytest.raises(ConfigError, match="2 post-processors add special tokens"):
        special_tokens_of(made)


def test_own_tokenizers_put_nothing_in_front():
    made = char_tokenizer("0123456789=")
    assert made.bos_ids.tolist() == [] and made.bos is None
    assert made.render([Message("user", "12=")]).tolist() == made.encode("12=").tolist()
