"""Runs that talk: thoughts and stop texts in what is judged and recorded, and how a folder's model is talked to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from chat_families import FAMILIES, folder_of
from tiny_runs import SHAPE, reinforce, tiny, warm_up
from tool_families import TOOL_FAMILIES

from assay.core import FrozenMap, Message, Sampling, Task, TaskView, Thinking, dumps_toml, from_dict, loads_toml, to_dict
from assay.core.errors import ConfigError, DataError
from assay.recipes import tools_of
from assay.rollout.decode_text import AnswerReader
from assay.runs.journal import Journal
from assay.runtime.models.hf import load_model, save_model
from assay.runtime.models.model import init_model
from assay.runtime.text.chat import Chat
from assay.runtime.text.tokenizer import ChatTemplate, HubTokenizer, char_tokenizer
from assay.train import models
from assay.train.driver import train
from assay.train.models import Folder, Scratch
from assay.train.policy import Policy
from assay.train.preflight import check_fits
from assay.train.run import Evaluation, Run
from assay.train.warmup import trace_row
from assay_tasks import KeyValue, ToolCalls, schemas_of
from assay_tasks.keyvalue import LookUp

THINKS = Thinking(open="<", close=">", required=True)


def thinking_run() -> Run:
    """Demonstrations show an empty thought; a 9 ends an answer."""
    made = tiny(warm=40, rl=2)
    return replace(
        made,
        model=Scratch(shape=SHAPE, chat=Chat(thinking=THINKS)),
        sampling=Sampling(max_new_tokens=10, stop=("9",)),
        stages=(warm_up(steps=60, levels=(1,)), reinforce(steps=2, levels=(1,))),
        rollouts_every=1,
    )


def test_a_run_of_thoughts_and_stop_texts(tmp_path: Path) -> None:
    run = thinking_run()
    assert from_dict(Run, loads_toml(dumps_toml(to_dict(run)))) == run
    train(run, tmp_path / "run")
    records = list(Journal(tmp_path / "run").records("rollouts"))
    assert len(records) == 16
    assert sum("thought" in r for r in records) >= 8  # that is what was demonstrated
    for r in records:
        assert "9" not in r["text"] and "<" not in r["text"] and ">" not in r["text"]
        assert r["text"] == "" or "thought" in r  # without a thought there is no answer
    assert any(r["components"]["correct"] == 1.0 for r in records)
    folder = tmp_path / "run" / "model"
    assert load_model(folder).tokenizer.chat == Chat(thinking=THINKS)  # whoever takes the model reads it alike
    items = Policy(folder).evaluate(run.tasks, per_level=4, levels=(1,), n=0, sampling=run.sampling)
    assert all("<" not in text for item in items for text in item["answers"])
    (said,) = Policy(folder).sample("S1>", sampling=Sampling(temperature=0.0, max_new_tokens=10, stop=("\n\n",)))
    assert said.startswith("<") and "\n\n" not in said


def test_a_stop_text_that_nobody_can_write_is_refused() -> None:
    run = replace(thinking_run(), sampling=Sampling(max_new_tokens=5, stop=("é",)))
    with pytest.raises(ConfigError, match=r"Run.sampling.stop=\('é',\): the model's tokenizer lacks 'é'"):
        check_fits(run, models.load_source(run.model, lambda *_: Path()))


def test_one_template_is_enough() -> None:
    with pytest.raises(ConfigError, match=r"Scratch.template and Scratch.chat.template both"):
        Scratch(template=ChatTemplate(), chat=Chat(template=ChatTemplate()))
    made = models.load_source(Scratch(shape=SHAPE, chat=Chat(template=ChatTemplate(user="{content}>"))), lambda *_: Path())
    assert made.tokenizer.decode(made.tokenizer.render([Message("user", "1")])) == "1>"


def folder(name: str, place: Path) -> Path:
    tokenizer = HubTokenizer.load(folder_of(FAMILIES[name], place / "tokenizer"))
    save_model(init_model(replace(SHAPE, vocab_size=tokenizer.size, max_positions=384), tokenizer, seed=0), place / name)
    return place / name


def lookups(model: object) -> Run:
    return replace(
        tiny(),
        model=model,
        tasks=KeyValue(),
        stages=(reinforce(steps=1),),
        sampling=Sampling(max_new_tokens=8),
    )


def test_demonstrations_are_what_the_template_writes(tmp_path: Path) -> None:
    tokenizer = HubTokenizer.load(folder_of(FAMILIES["qwen"], tmp_path / "m"))
    tasks = KeyValue()
    task = next(t for i in range(20) if (t := tasks.task("keyvalue", 2, "train", i)))
    row = trace_row(tasks, task, AnswerReader.of(tokenizer), 0.0, 0, 0)
    turns = tasks.trace(task, 0.0, np.random.default_rng(0))
    whole = tokenizer.render([*task.public_view().messages, *turns], answer=False).tolist()
    assert row.ids.tolist() == whole[: len(row.ids)]  # but for the line end behind the last turn
    assert tokenizer.decode(row.ids[len(row.ids) - 1 :]) == "" and row.ids[-1] == tokenizer.eos
    said = [tokenizer.encode(t.content).tolist() for t in turns if t.role == "assistant"]
    assert row.ids[row.mask].tolist() == [i for ids in said for i in (*ids, tokenizer.eos)]


def test_a_folder_is_talked_to_as_the_run_says(tmp_path: Path) -> None:
    run = lookups(Folder(str(folder("qwen", tmp_path)), chat=Chat(system="Look it up.", options={"enable_thinking": False})))
    assert from_dict(Run, loads_toml(dumps_toml(to_dict(run)))) == run
    with pytest.raises(ConfigError, match=r"once tool follows: token \d+ is '<think>'"):
        train(run, tmp_path / "refused")
    kept = replace(run, model=replace(run.model, chat=replace(run.model.chat, rewrites="keep")))
    with pytest.warns(UserWarning, match="what was sampled stays as it was"):
        train(kept, tmp_path / "run")
    again = load_model(tmp_path / "run" / "model").tokenizer
    assert again.decode(again.render([Message("user", "x")])) == (
        "system\nLook it up.\nuser\nx\nassistant\n<think>\n\n</think>\n\n"
    )


def test_the_recipe_of_tools_runs_with_a_template_that_shows_them(tmp_path: Path) -> None:
    """`tools-hub` on a small random model behind a template of Qwen's form: demonstrations and rollouts in its own calls."""
    tokenizer = HubTokenizer.load(folder_of(TOOL_FAMILIES["qwen"], tmp_path / "tokenizer"))
    model = tmp_path / "model"
    save_model(init_model(replace(SHAPE, vocab_size=tokenizer.size, max_positions=2048), tokenizer, seed=0), model)
    run = tools_of(str(model))
    warm, rl = run.stages
    rl = replace(rl, steps=1, groups=1, group_size=2)
    warm = replace(warm, steps=1, batch=2, demonstrations=2)
    run = replace(
        run,
        tasks=replace(run.tasks, levels=(1, 2)),
        stages=(replace(warm, levels=(1,)), rl),
        sampling=Sampling(max_new_tokens=8),
        evaluation=Evaluation(every=0, final_per_level=1, kl_to_base=False),
    )
    done = train(run, tmp_path / "run", progress=False)
    assert done.step == 2
    row = trace_row(run.tasks, run.tasks.task("bills", 1, "train", 0), AnswerReader.of(tokenizer), 0.0, 0, 0)
    said = tokenizer.decode(row.ids[row.mask])
    assert '"name": "line"' in said and '"name": "add"' in said


def test_what_a_template_cannot_write_is_found_before_the_run(tmp_path: Path) -> None:
    run = lookups(Folder(str(folder("mistral", tmp_path))))
    with pytest.raises(DataError, match="leaves out messages of role 'tool'"):
        train(run, tmp_path / "run")
    assert not (tmp_path / "run" / "start").exists()


@dataclass(frozen=True)
class Called(KeyValue):
    """The store by a tool that the chat template is to show; nothing shows how it is called."""

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        made = super().task(arm, level, split, index)
        return replace(made, public=FrozenMap({**made.public, "tools": schemas_of([LookUp()])}))

    def environment(self, world: TaskView) -> ToolCalls:
        return ToolCalls(world, [LookUp()])

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> None:
        return None


SHOWS = (
    "{% for t in tools or [] %}{{ t.function.name }} {% endfor %}{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{{ m.content WHERE }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
ANSWERS = {
    "if m.role != 'tool'": (None, "leaves out messages of role 'tool'"),
    "if m.role != 'assistant' or loop.last or messages[-1].role != 'tool' else 'x'": (None, "leaves out messages"),
    "if '</think>' not in m.content else m.content.split('</think>')[1]": (Thinking(), "otherwise once tool follows"),
}


@pytest.mark.parametrize("where", ANSWERS)
def test_a_template_that_cannot_write_what_tools_answer_is_found_before_the_run(where: str, tmp_path: Path) -> None:
    place, (thinking, told) = folder_of(FAMILIES["qwen"], tmp_path / "m"), ANSWERS[where]
    wrong, right = (
        HubTokenizer.load(place).with_chat(Chat(template=SHOWS.replace("WHERE", w), thinking=thinking)) for w in (where, "")
    )
    shape = replace(SHAPE, vocab_size=wrong.size, max_positions=512)
    run = replace(tiny(), tasks=Called(levels=(1,)), stages=(reinforce(steps=1),), sampling=Sampling(max_new_tokens=8))
    check_fits(run, init_model(shape, right, 0))
    with pytest.raises((ConfigError, DataError), match=rf"^task 'keyvalue/.* level 1\), what its tools answer: .*{told}"):
        check_fits(run, init_model(shape, wrong, 0))


def test_oracles_think_before_they_answer() -> None:
    tokenizer = char_tokenizer("0123456789S<>\n").with_chat(Chat(thinking=THINKS))
    tasks = tiny().tasks
    task = tasks.task("sort", 1, "train", 0)
    row = trace_row(tasks, task, AnswerReader.of(tokenizer), 0.0, 0, 0)
    assert tokenizer.decode(row.ids[row.mask]) == f"<>\n\n{task.private['answer']}"
