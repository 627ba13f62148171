"""Names of other trainers, as keywords and as options of the command line: one table, and each hint works as printed."""

from __future__ import annotations

import inspect
import re
import warnings
from dataclasses import fields
from functools import cache
from typing import Any

import pytest

from assay.asynchronous import Asynchronous
from assay.cli.given_options import split_options
from assay.cli.option_names import unknown_option
from assay.cli.part_tree import take
from assay.cli.recipe import settle
from assay.cli.train_options import TrainOptions
from assay.core.config import replace_at
from assay.core.errors import ConfigError, DataError
from assay.objective import Kl, Objective
from assay.recipes import on_rows, quickstart
from assay.recipes.setting_names import SHORT, misnamed_keyword, path_of, peer_names, replacing_code
from assay.tasks import Rows
from assay.train.reinforce import Reinforce
from assay.train.run import Run

ROWS = [{"prompt": f"S{a}{b}>", "answer": "".join(sorted(f"{a}{b}"))} for a in range(6) for b in range(6)]
VALUES = {
    "EVALUATIONS": "3",
    "CLASS": "AdamW",
    "NAME": "gspo", "PROMPTS": "8", "ROLLOUTS": "4", "COUNT": "2", "TOKENS": "512", "WORD": "cosine", "COEFFICIENT": "0.01",
    "LOW": "0.2", "HIGH": "0.3", "RANK": "8", "LAYERS": "q_proj", "STEPS": "1", "VALUE": "1",
}  # fmt: skip
KEYWORDS = list(inspect.signature(on_rows).parameters)


def right(prompt: str, completion: str, row: dict[str, Any]) -> float:
    return float(completion == row["answer"])


def short(prompt: str, completion: str, row: dict[str, Any]) -> float:
    return 1.0 / (1 + len(completion))


def rl(run: Any) -> Reinforce:
    (stage,) = run.stages
    assert isinstance(stage, Reinforce)
    return stage


@pytest.mark.parametrize(
    ("given", "real"),
    [
        ({"lr": 1e-3}, {"learning_rate": 1e-3}),
        ({"num_generations": 4, "batch_size": 2}, {"group_size": 4, "groups": 2}),
        ({"max_completion_length": 5, "max_steps": 7}, {"max_new_tokens": 5, "steps": 7}),
        ({"beta": 0.01}, {"kl": 0.01}),
        ({"reward": [right, short], "reward_weights": [1.0, 0.5]}, {"reward": [right, short], "weights": [1.0, 0.5]}),
        ({"algorithm": "gspo"}, {"objective": "gspo"}),
        ({"objective": "DAPO"}, {"objective": "dapo"}),
        ({"objective": "Dr-GRPO"}, {"objective": "dr_grpo"}),
    ],
)
def test_a_name_that_means_the_same_works_as_a_keyword(given: dict[str, Any], real: dict[str, Any]) -> None:
    assert on_rows(ROWS, **given) == on_rows(ROWS, **real)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"num_train_epochs": 3}, "here it is the keyword steps"),
        ({"n_samples_per_prompt": 3}, "here it is the keyword group_size"),
        ({"init_kl_coef": 0.1}, "here it is objective=replace(objective, credit=(KlInReward(coef=...), *objective.credit))"),
        ({"kl_loss_coef": 0.1}, "here it is the keyword kl"),
        ({"entropy_coef": 0.1}, "here it is objective=replace(objective, terms=(*objective.terms, Entropy(coef=...)))"),
        ({"per_device_train_batch_size": 8}, "here it is the keywords groups and group_size"),
        ({"reward_funcs": [right]}, "here it is the argument reward"),
        ({"train_dataset": ROWS}, "here it is the argument rows"),
        ({"output_dir": "x"}, "the second argument of assay.train.train(run, folder)"),
        ({"num_iterations": 2}, 'run = replace_at(run, "stages.0.epochs", ...)'),
        ({"warmup_ratio": 0.1}, "(steps up to the full rate): from assay.core.config import replace_at"),
        ({"epsilon": 0.2}, "here it is objective=grpo(clip=...), of assay.objective.methods"),
        ({"epsilon_high": 0.2}, "here it is objective=dapo(low=..., high=...), of assay.objective.methods"),
        ({"dynamic_sampling": True}, 'replace_at(run, "stages.0.filter", Mixed()), "stages.0.refill", Refill())'),
        ({"max_prompt_length": 20}, "nothing to set"),
        ({"early_stopping": 3}, 'replace_at(run, "stages.0.until", Until(patience=...)), of assay.train'),
        ({"mask_truncated_completions": True}, "dapo(overlong=DropTruncated())"),
        ({"system_prompt": "x"}, "chat=Chat(system=...)"),
        ({"callbacks": []}, "train(run, folder, callbacks=[...])"),
        ({"optim": "adamw"}, 'replace_at(run, "stages.0.learner.optimizer", AdamW(lr=...))'),
        ({"learning_rat": 1e-3}, "did you mean learning_rate?"),
        ({"xyzzy": 1}, "known: rows, reward, metric"),
        ({"lr": 1e-3, "learning_rate": 1e-3}, "the same as learning_rate"),
        ({"learning_rate": "1e-4"}, "learning_rate='1e-4' is a str, no number; leave out the quotes: learning_rate=1e-4"),
        ({"group_size": 4.5}, "group_size=4.5 is a float, no whole number"),
        ({"steps": True}, "steps=True is a bool"),
        ({"steps": "ten"}, "steps='ten' is a str, no whole number; give a whole number"),
        ({"tools": right}, "give a list: tools=[...]"),
        ({"tools": "right"}, "give a list of functions"),
    ],
)
def test_a_keyword_that_cannot_be_taken_is_answered_with_what_was_meant(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        on_rows(ROWS, **given)
    assert said in str(caught.value)


def test_rows_and_reward_in_the_wrong_order() -> None:
    with pytest.raises(ConfigError, match="first argument is a function; give the rows first"):
        on_rows(right, ROWS)  # pyright: ignore[reportArgumentType]


def test_every_known_name_is_answered_in_python_and_code_for_a_run_makes_one() -> None:
    run = on_rows(ROWS)
    for name in (*peer_names(), *(n for first, (others, _) in SHORT.items() for n in (first, *others.split()))):
        said = misnamed_keyword(name.replace("-", "_"), KEYWORDS)
        assert "there is no keyword" not in said or name in SHORT, name
    for name in ("num_iterations", "top_p", "weight_decay", "save_steps", "eval_freq"):
        value = "0.5" if name in ("top_p", "weight_decay") else "3"
        assert eval(replacing_code(path_of(name) or "", value), {"replace_at": replace_at, "run": run}) != run


def test_a_field_of_the_run_or_of_its_stage_is_answered_with_the_code_that_sets_it() -> None:
    run = on_rows(ROWS)
    for settings, start in ((run, ""), (rl(run), "stages.0.")):
        for field in fields(settings):
            said = misnamed_keyword(field.name, KEYWORDS)
            if field.name in KEYWORDS or field.name in SHORT or "library's name" in said:
                continue
            code = said.partition("run = ")[2]
            assert repr(start + field.name)[1:-1] in code, said
    code = misnamed_keyword("reward_workers", KEYWORDS).partition("run = ")[2].replace("...", "2")
    assert eval(code, {"replace_at": replace_at, "run": run}).reward_workers == 2
    assert "train(run, folder, progress=True)" in misnamed_keyword("progress", KEYWORDS)
    assert "did you mean" not in misnamed_keyword("num_epochs", KEYWORDS)


def test_names_of_asynchronous_sampling_give_code_that_puts_the_part_there() -> None:
    run = on_rows(ROWS)
    for name, setting in {
        "async_steps": "eta",
        "staleness_threshold": "eta",
        "samplers": "samplers",
        "partial_rollout": "samplers",
    }.items():
        said = misnamed_keyword(name, KEYWORDS)
        code = said.partition("run = ")[2].replace("...", "2")
        made = eval(code, {"replace_at": replace_at, "run": run, "Asynchronous": Asynchronous})
        assert getattr(rl(made).asynchronous, setting) == 2, said


def test_the_divergence_is_one_keyword_whatever_the_objective() -> None:
    assert Kl(coef=0.02) in rl(on_rows(ROWS, kl=0.02)).objective.terms
    assert rl(on_rows(ROWS, kl=0.0)).objective == rl(on_rows(ROWS)).objective
    assert [t.coef for t in rl(on_rows(ROWS, objective="grpo", kl=0.5)).objective.terms if isinstance(t, Kl)] == [0.5]
    assert not rl(on_rows(ROWS, objective="grpo", kl=0.0)).objective.terms
    assert Kl(coef=0.5) in rl(on_rows(ROWS, objective="dapo", kl=0.5)).objective.terms
    own = rl(on_rows(ROWS, objective="grpo")).objective
    assert isinstance(own, Objective)
    assert [t.coef for t in rl(on_rows(ROWS, objective=own, kl=0.5)).objective.terms if isinstance(t, Kl)] == [0.5]
    assert not rl(on_rows(ROWS, objective=own, kl=0)).objective.terms


def test_the_deadline_of_the_reward_is_a_keyword() -> None:
    assert on_rows(ROWS, reward_deadline=30).reward_deadline == 30.0


@pytest.mark.parametrize("name", ["question", "problem", "instruction"])
def test_rows_whose_prompt_goes_by_another_name(name: str) -> None:
    other = [{name: row["prompt"], "answer": row["answer"]} for row in ROWS]
    found, usual = on_rows(other, right), on_rows(ROWS, right)
    assert [found.tasks.task("rows", 1, "test", 0).public, found.stages] == [
        usual.tasks.task("rows", 1, "test", 0).public,
        usual.stages,
    ]
    row = Rows(other, reward=right).rows[0]
    assert row[name] == row["prompt"]


def test_rows_with_several_questions_are_refused_with_the_fix() -> None:
    with pytest.raises(DataError, match="rename the one of 'question', 'problem' that is the question to 'prompt'"):
        Rows([{"question": "a", "problem": "b", "answer": "c"}])
    with pytest.raises(DataError, match="no 'prompt' and no 'messages'"):
        Rows([{"question": "a", "answer": "c"}, {"text": "a", "answer": "c"}])


@cache
def settled(words: str) -> Run:
    return settle(TrainOptions, "quickstart", words.split(), "assay train")[1]


def hinted(name: str, words: str = "1", given: str = "") -> list[str]:
    """The options that the command line answers a name with; empty where there is nothing to set."""
    run = settled(given)
    _, (option,) = split_options([f"--{name}", *words.split()])
    said = unknown_option(option, {"folder", "steps"}, take(run)).partition("this is ")[2].partition(";")[0]
    return [VALUES.get(word, word) for word in said.split()] if said.startswith("--") else []


def accepted(name: str, value: str) -> bool:
    """Whether what is hinted for a value is accepted; True where there is nothing to set."""
    try:
        settled(" ".join(hinted(name, value)))
    except ConfigError:
        return False
    return True


def test_every_hint_works_as_it_is_printed() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [name for name in peer_names() if not accepted(name, "2") and not accepted(name, "0.5")] == []
    assert sum(bool(hinted(name)) for name in peer_names()) > 100


@pytest.mark.parametrize("objective", ["dapo", "gspo", "cispo", "reinforce"])
def test_hints_of_bounds_fit_the_objective_at_hand(objective: str) -> None:
    for name in ("actor_rollout_ref.actor.clip_ratio_low", "epsilon_low", "epsilon_high"):
        words = hinted(name, "0.15", f"--objective {objective}")
        assert "0.15" in words
        settle(
            TrainOptions,
            "quickstart",
            [*(["--objective", objective] if "--objective" not in words else []), *words],
            "assay train",
        )


def test_a_setting_of_a_method_that_is_not_named_says_how_to_name_one() -> None:
    _, (option,) = split_options(["--stages.0.objective.clip", "0.1"])
    said = unknown_option(option, set(), take(quickstart()))
    commands = re.findall(r"--stages[^;:]*", said.partition("named: ")[2])
    assert len(commands) == 2
    for words in commands:
        run = settle(TrainOptions, "quickstart", words.split(), "assay train")[1]
        assert rl(run).objective.policy is not None and rl(run).objective.policy.trust.low == 0.1  # type: ignore[union-attr]


def test_a_loss_of_trl_is_looked_up_in_its_table() -> None:
    _, (option,) = split_options(["--loss_type", "dapo"])
    assert "'assay methods --peer trl:dapo' says what its 'dapo' is here" in unknown_option(option, set(), take(quickstart()))
