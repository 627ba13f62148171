"""Settings by size, kind and machine: the page's table, what a person gives, what does not fit, and what a run prints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hub_cases import hub_model

from assay.core.errors import ConfigError, DataError
from assay.runtime import InProcess, Lora, Muon, save_model
from assay.runtime.settings import DecoderShape
from assay.tasks import Rows, TaskMixture, family, judged_rows
from assay.train import Folder, Reinforce, Run
from assay.train.describe_settings import describe_settings, explain_settings
from assay.train.memory import weights_of
from assay.train.model_facts import Kind, ModelFacts, facts_in, facts_of_config
from assay.train.model_settings import GivenSettings, MachineFacts, ModelSettings, RowFacts, learning_rate, pick_settings
from assay.verify import MathAnswer

GIB = 1 << 30
_LLAMA = {"model_type": "llama", "tie_word_embeddings": True}
_QWEN = {"model_type": "qwen3", "vocab_size": 151936, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128}
_LONG = {**_QWEN, "num_hidden_layers": 28, "max_position_embeddings": 40960, "tie_word_embeddings": True}


def config(hidden: int, layers: int, heads: int, inner: int, vocabulary: int, context: int, **more: Any) -> dict[str, Any]:
    sizes = {"hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads, "intermediate_size": inner}
    return {**_LLAMA, **sizes, "vocab_size": vocabulary, "max_position_embeddings": context, **more}


MODELS: dict[str, tuple[dict[str, Any], Kind]] = {
    "0.34M": (config(96, 3, 3, 256, 32, 128), "base"),
    "5M": (config(256, 5, 4, 688, 4096, 1024), "base"),
    "50M": (config(512, 13, 8, 1408, 16384, 2048), "base"),
    "600M": ({**_LONG, "hidden_size": 1024, "intermediate_size": 3072}, "thinking"),
    "1.7B": ({**_LONG, "hidden_size": 2048, "intermediate_size": 6144}, "thinking"),
    "7B": (config(4096, 32, 32, 11008, 32000, 4096, tie_word_embeddings=False), "chat"),
}
"""Configs without weights: of the embedded base's size, two small Llamas, Qwen3 at two sizes, Llama 2."""
MACHINES = {
    "CPU, 16 GiB": MachineFacts(memory=16 * GIB, cores=8),
    "GPU, 24 GiB": MachineFacts(device="cuda", memory=24 * GIB),
    "GPU, 80 GiB": MachineFacts(device="cuda", memory=80 * GIB),
}


def picked(model: str, machine: MachineFacts, **given: Any) -> ModelSettings:
    facts = facts_of_config(*MODELS[model])
    rows = RowFacts(prompts=1000, longest=min(200, facts.shape.max_positions // 2))
    return pick_settings(facts, machine, rows, GivenSettings(**given))


def line(model: str, machine: str) -> str:
    s = picked(model, MACHINES[machine])
    trained = f"LoRA {s.lora.rank}" if s.lora else "all"
    micro = f"{s.micro_tokens:,}" + (", recomputed" if s.checkpointing else "")
    batch = s.engine.max_batch if isinstance(s.engine, InProcess) else "native"
    memory = f"{s.memory / GIB:.1f}" + ("" if s.fits else ", does not fit")
    cells = (
        model,
        machine,
        trained,
        s.precision,
        f"{s.learning_rate:g}",
        f"{s.max_new_tokens:,}",
        f"{s.groups} x {s.group_size}",
    )
    return f"| {' | '.join((*cells, micro, str(batch), memory))} |"


def test_the_page_has_what_each_size_picks() -> None:
    page = (Path(__file__).parents[2] / "docs" / "packages" / "recipes.md").read_text(encoding="utf-8")
    wanted = [line(model, machine) for model in MODELS for machine in MACHINES]
    missing = [row for row in wanted if row not in page]
    assert not missing, "\n".join(wanted)


@pytest.mark.parametrize("name", [n for n in MODELS if n != "0.34M"])
def test_nothing_of_the_embedded_base_is_in_another_models_settings(name: str) -> None:
    for machine in MACHINES.values():
        found = picked(name, machine)
        assert found.learning_rate < 5e-4
        assert found.max_new_tokens > 16
        assert (found.precision == "bf16") == (machine.device == "cuda")


def test_rates_fall_with_size_and_adapters_take_higher_ones() -> None:
    sizes = [10**n for n in range(4, 12)]
    rates = [learning_rate(n) for n in sizes]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == 5e-4
    assert rates[-1] == 1e-6
    assert all(learning_rate(n, adapter=True) >= learning_rate(n) for n in sizes)


def test_what_is_given_stays() -> None:
    given = {"learning_rate": 3e-5, "max_new_tokens": 99, "groups": 3, "group_size": 5, "precision": "fp32", "threads": 2}
    found = picked("600M", MACHINES["GPU, 80 GiB"], **given, micro_tokens=512, lora=4)
    assert {name: getattr(found, name) for name in given} == given
    assert found.micro_tokens == 512
    assert found.lora == Lora(rank=4, alpha=8.0)
    assert picked("7B", MACHINES["GPU, 80 GiB"], lora=False).lora is None
    assert picked("50M", MACHINES["CPU, 16 GiB"], lora=True).lora == Lora()
    engine = InProcess(max_batch=7)
    assert picked("50M", MACHINES["CPU, 16 GiB"], engine=engine).engine == engine


def test_overridden_settings_change_where_something_is_given_alone() -> None:
    found = picked("5M", MACHINES["CPU, 16 GiB"])
    assert found.overridden(GivenSettings()) == found
    assert found.overridden(GivenSettings(lora=2, groups=4)) == replace(found, lora=Lora(rank=2, alpha=4.0), groups=4)


@pytest.mark.parametrize(
    "given", [{"groups": 0}, {"max_new_tokens": -1}, {"learning_rate": float("nan")}, {"learning_rate": -1.0}]
)
def test_sizes_that_are_none_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(given))):
        GivenSettings(**given)


def test_less_memory_never_takes_more() -> None:
    facts, rows = facts_of_config(*MODELS["600M"]), RowFacts(prompts=10, longest=200)
    found = [pick_settings(facts, MachineFacts(device="cuda", memory=n * GIB), rows) for n in (160, 80, 40, 20, 10)]
    fitting = [s for s in found if s.fits]
    assert [s.memory for s in fitting] == sorted((s.memory for s in fitting), reverse=True)
    assert len({s.memory for s in fitting}) > 1
    assert not pick_settings(facts, MachineFacts(memory=1 << 20)).fits


def test_answers_go_by_kind_context_and_rows() -> None:
    shape = DecoderShape(max_positions=1024)
    facts = {kind: ModelFacts(shape=shape, weights=weights_of(shape), kind=kind) for kind in ("base", "chat", "thinking")}

    def new(kind: str, **rows: int) -> int:
        return pick_settings(facts[kind], MachineFacts(memory=GIB), RowFacts(**rows)).max_new_tokens

    assert [new(kind) for kind in facts] == [256, 512, 512]  # half the context at most
    assert new("base", answer=10) == 40
    assert new("base", answer=2) == 16
    assert new("chat", answer=2) == 512  # it may reason first
    assert new("chat", longest=700) == 324  # what the longest prompt leaves
    assert new("chat", longest=1000) == 512  # one prompt takes all: it is said to be too long


def test_no_more_prompts_than_there_are() -> None:
    facts = facts_of_config(*MODELS["5M"])
    assert pick_settings(facts, MachineFacts(memory=8 * GIB), RowFacts(prompts=1)).groups == 1
    assert pick_settings(facts, MachineFacts(memory=8 * GIB), RowFacts(prompts=1, turns=True, longest=9)).context == 1024


# ---- facts of a folder ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["qwen3", "gemma2", "gpt2"])
def test_weights_are_counted_without_being_there(family: str, tmp_path: Path) -> None:
    save_model(hub_model(family), tmp_path / "m")
    whole = facts_in(tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").unlink()
    small = facts_in(tmp_path / "m")
    assert (small.count, small.weights.hidden) == (whole.count, whole.weights.hidden)
    assert small.shape == whole.shape


@pytest.mark.parametrize(
    ("template", "kind"),
    [("", "base"), ("{{ messages }}", "chat"), ("{% if enable_thinking %}{{ messages }}{% endif %}", "thinking")],
)
def test_a_chat_template_says_the_kind(template: str, kind: str, tmp_path: Path) -> None:
    save_model(hub_model("qwen3"), tmp_path / "m")
    if template:
        text = (tmp_path / "m" / "tokenizer_config.json").read_text(encoding="utf-8").replace('"assay_template"', '"other"')
        (tmp_path / "m" / "tokenizer_config.json").write_text(text, encoding="utf-8")
        (tmp_path / "m" / "chat_template.jinja").write_text(template, encoding="utf-8")
    assert facts_in(tmp_path / "m").kind == kind


def test_a_config_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}', encoding="utf-8")
    with pytest.raises(DataError, match="does not describe a decoder"):
        facts_in(tmp_path)


# ---- what is printed --------------------------------------------------------------------------------------------------


def described(model: str, machine: MachineFacts, **changes: Any) -> str:
    found = picked(model, machine)
    stage = Reinforce(steps=40, groups=found.groups, group_size=found.group_size, learner=found.learner(40))
    stage = replace(stage, learner=replace(stage.learner, **changes))
    run = Run(model=Folder("my/model"), tasks=Rows([{"prompt": "a", "answer": "b"}]), stages=(stage,), engine=found.engine)
    lines = describe_settings(run, stage, facts_of_config(*MODELS[model]), machine)
    assert len(lines) <= 4
    return "\n".join(lines)


def test_a_run_says_what_it_is_set_to_and_why() -> None:
    text = described("600M", MACHINES["GPU, 80 GiB"])
    for part in ("my/model: 596.0M weights (qwen3", "trains all weights in bf16, lr 2e-06 for full training of this size", "GiB"):
        assert part in text
    assert "an adapter on a model of this size" in described("7B", MACHINES["GPU, 80 GiB"])
    assert "samples with Auto" in described("50M", MACHINES["CPU, 16 GiB"])


def test_a_rate_that_was_given_is_called_so() -> None:
    found = picked("600M", MACHINES["GPU, 80 GiB"], learning_rate=1e-3).learner(1).optimizer
    assert "as given; 2e-06 is derived" in described("600M", MACHINES["GPU, 80 GiB"], optimizer=found)
    assert "lr 0.004 of Muon" in described("600M", MACHINES["GPU, 80 GiB"], optimizer=Muon())


def test_more_than_there_is_is_said() -> None:
    assert "more than there is" in described("7B", MACHINES["GPU, 24 GiB"])


def right(completion: str, answer: str) -> bool:
    return completion == answer


def short(completion: str) -> float:
    return 1 / len(completion)


def test_runs_from_any_model_say_which_it_is(tmp_path: Path) -> None:
    from assay.recipes import quickstart

    first, second = explain_settings(quickstart(), tmp_path)
    assert first == "model base 'base-sort', built on first use (600 steps)"
    assert second.startswith("evaluates on 512 held-out items at both ends, and on 128 every 25 steps between")


@pytest.mark.parametrize(
    ("judged", "line"),
    [
        (
            {"reward": right},
            "accuracy = share of answers with reward >= 1.0 by `right`, which the run also learns from; metric= takes another",
        ),
        (
            {"reward": {"right": right, "short": short}},
            "accuracy = share of answers with reward >= 1.0 by `right`, one of 2 rewards; metric= takes another",
        ),
        ({"reward": short, "metric": right}, "accuracy = share of answers with reward >= 1.0 by `right`, as metric= says"),
    ],
)
def test_a_run_on_own_rewards_says_what_accuracy_is(judged: dict[str, Any], line: str, tmp_path: Path) -> None:
    from assay.recipes import on_rows

    run = on_rows([{"prompt": f"S{n}>", "answer": str(n)} for n in range(10, 90)], **judged)
    assert explain_settings(run, tmp_path)[-1] == line
    ours = on_rows([{"prompt": f"S{n}>", "answer": str(n)} for n in range(10, 90)])
    assert not any("accuracy" in said for said in explain_settings(ours, tmp_path))


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([{"prompt": "1+1=", "answer": "2"}], "an exact match with the row's 'answer', white space around it aside"),
        (
            [{"prompt": "1+1=", "answer": "2", "verifier": "math"}],
            "the verifiers that their rows name: math; where a row names none, by an exact match with the row's 'answer', white "
            "space around it aside",
        ),
    ],
)
def test_a_run_on_rows_says_what_judges_them(rows: list[dict[str, Any]], line: str, tmp_path: Path) -> None:
    from assay.recipes import on_rows, quickstart

    run = on_rows(rows, steps=1)
    assert explain_settings(run, tmp_path)[-1] == f"answers are judged by {line}"
    mixed = replace(run, tasks=TaskMixture(name="both", sources=(judged_rows(rows), family("sort"))))
    assert explain_settings(mixed, tmp_path)[-1] == f"answers are judged by {line}"
    alone = replace(run, tasks=judged_rows([{"prompt": "1+1=", "answer": "2"}], default=MathAnswer()))
    assert explain_settings(alone, tmp_path)[-1] == "answers are judged by `MathAnswer`"
    assert not any("judged" in said for said in explain_settings(quickstart(), tmp_path))


def test_a_run_that_a_judge_rewards_says_who_and_that_accuracy_is_another(tmp_path: Path) -> None:
    from assay.clients import Judge
    from assay.recipes import on_rows
    from assay.scorers import Criterion, Rubric, RubricJudge

    run = on_rows([{"prompt": "1+1=", "answer": "2"}], steps=1)
    scorer = RubricJudge(rubric=Rubric(criteria=(Criterion(name="polite", text="Is it polite?"),)))
    judge = Judge(url="http://127.0.0.1:9/v1", model="small")
    judged = replace(run, stages=(replace(run.stages[0], reward=scorer),), judges=(judge,))  # pyright: ignore[reportCallIssue]
    reward, accuracy = explain_settings(judged, tmp_path)[-2:]
    assert reward == "the reward is RubricJudge; judge 'judge': model 'small' at http://127.0.0.1:9/v1"
    assert accuracy.startswith("accuracy alone, not the reward: answers are judged by an exact match")
