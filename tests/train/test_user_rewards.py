"""What users pass as a reward: recognised by its parameters' names, adapted, or refused with the forms that are accepted."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import torch

from assay.core.config import from_dict, to_dict
from assay.core.errors import ConfigError, DataError, RewardError
from assay.interop import OpenRlhfReward, RubricReward, TrlReward, VerlReward
from assay.tasks import Rows
from assay.testing import rollout_of
from assay.verify import ExactMatch, RewardFunction, WeightedRewards

ROWS = [{"prompt": f"{n}+1=", "answer": str(n + 1), "level": 1} for n in range(8)]


def plain(prompt: str, completion: str, row: dict[str, Any]) -> float:
    return float(completion == row["answer"])


def scaled(factor: float, prompt: str, completion: str, row: dict[str, Any]) -> float:
    return factor * plain(prompt, completion, row)


class Judge:
    """An object that can be called."""

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor

    def __call__(self, prompt: str, completion: str, row: dict[str, Any]) -> float:
        return self.factor * plain(prompt, completion, row)

    def of_answer(self, completion: str, answer: str) -> float:
        return self.factor * float(completion == answer)


def compute_score(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None) -> dict[str, float]:
    return {"score": float(solution_str == ground_truth), "length": float(len(solution_str))}


def trl(prompts: list[str], completions: list[str], answer: list[str], **columns: Any) -> list[float | None]:
    assert [p.endswith("=") for p in prompts] == [True] * len(completions)
    return [float(c == a) for c, a in zip(completions, answer, strict=True)]


def half(completion: str) -> float:
    return 0.5


def scores(reward: Any, **settings: Any) -> list[float]:
    """The main values of a right answer and a wrong one."""
    source = Rows(ROWS, reward=reward, test_share=0.0, **settings)
    task = source.task("rows", 1, "train", 0)
    return [source.verifier()(task, rollout_of(task, text)).primary for text in (task.private["answer"], "x")]


@pytest.mark.parametrize(
    "reward",
    [
        plain,
        functools.partial(scaled, 1.0),
        Judge(),
        Judge().of_answer,
        lambda p, c, row: plain(p, c, row),
        lambda *given: plain(*given),
        lambda completion, answer: completion == answer,
        lambda completion, answer, prompt, row: np.float32(completion == answer == row["answer"] and prompt == row["prompt"]),
        lambda completion, **columns: torch.tensor(float(completion == columns["answer"])),
        lambda completion, row, strict=True: int(strict and completion == row["answer"]),
        lambda prompt, response, row: np.bool_(response == row["answer"]),
        lambda prompts, completions, rows: [plain(*given) for given in zip(prompts, completions, rows, strict=True)],
        compute_score,
        lambda solution_strs, ground_truths, data_sources, extra_infos: np.array(solution_strs) == np.array(ground_truths),
        lambda queries, prompts, labels: torch.tensor(
            [float(q == p + a) for q, p, a in zip(queries, prompts, labels, strict=True)]
        ),
        trl,
        lambda completions, answer: [float(c == g) for c, g in zip(completions, answer, strict=True)],
    ],
)
def test_what_says_how_it_is_called_is_accepted(reward: Any) -> None:
    assert scores(reward) == [1.0, 0.0]


@pytest.mark.parametrize(
    ("reward", "kind"),
    [
        (compute_score, VerlReward),
        (trl, TrlReward),
        (lambda queries, prompts, labels: [], OpenRlhfReward),
        (RewardFunction(plain, floor=-1.0), RewardFunction),
        (RubricReward(lambda completion, answer: 1.0), RubricReward),
    ],
)
def test_other_trainers_rewards_get_their_adapter_and_adapters_stay(reward: Any, kind: type[Any]) -> None:
    found: Any = Rows(ROWS, reward=reward).verifier()
    assert type(found) is kind
    assert found is reward or found.fn is reward


class Verifierlike:
    def __call__(self, task: Any, rollout: Any) -> Any: ...


class Rubric:
    funcs, weights = [plain], [1.0]

    def __call__(self) -> None: ...


def test_what_does_not_is_refused_with_the_accepted_forms() -> None:
    refused: list[tuple[Any, type[Exception], str]] = [
        (lambda x, y: 1.0, ConfigError, r"'.*<lambda>' \(.*test_user_rewards.py:\d+\) has the parameters \(x, y\)"),
        (lambda text: 1.0, ConfigError, r"reward\(completion, answer\)"),
        (lambda: 1.0, ConfigError, "none that has a name"),
        (lambda completion, prompt, gold: 1.0, DataError, r"takes 'gold', .*fields? of the rows \(answer, level, prompt\)"),
        (lambda response, prompt, row: 1.0, ConfigError, "do not say what it takes"),
        (lambda prompt, answer, row: 1.0, ConfigError, "do not say what it takes"),
        (lambda p, c, r, extra: 1.0, ConfigError, "do not say what it takes"),
        (lambda p, c, r, *, extra: 1.0, ConfigError, "do not say what it takes"),
        (lambda completion, state: 1.0, ConfigError, r"takes 'state', .*assay.interop.RubricReward\(reward\)"),
        (lambda completions, gold_text: [], DataError, "with TRL's signature, takes the column 'gold_text'"),
        (Verifierlike(), ConfigError, "pass it as scorer="),
        (Rubric(), ConfigError, r"pass assay.interop.RubricReward\(rubric\)"),
        (Judge, ConfigError, r"is a class; pass an object of it: Judge\(\.\.\.\)"),
        (7, ConfigError, r"the reward is an int \(7\), which cannot be called. Accepted are"),
    ]
    for reward, error, message in refused:
        with pytest.raises(error, match=message):
            Rows(ROWS, reward=reward)
    assert scores(lambda p, c, r, *, extra=1.0: extra * plain(p, c, r)) == [1.0, 0.0]


def test_a_function_that_does_not_say_is_called_by_position() -> None:
    assert isinstance(Rows(ROWS, reward=max).verifier(), RewardFunction)
    assert Rows(ROWS, reward=lambda completion, *, factor=1.0: factor).verifier().takes == ("completion",)  # pyright: ignore


def test_a_row_without_a_field_that_the_function_takes_is_named() -> None:
    rows = [{"prompt": "a", "answer": "1", "unit": "m"}, {"prompt": "b", "answer": "2"}]
    with pytest.raises(DataError, match=r"row 2 has no 'unit', which the reward .* takes; add it"):
        Rows(rows, reward=lambda completion, unit: 1.0, test_share=0.0)
    source = Rows([{**rows[0]}, {**rows[1], "unit": None}], reward=lambda completion, unit: float(unit == "m"), test_share=0.0)
    tasks = {t.public["prompt"]: t for t in (source.task("rows", 1, "train", i) for i in range(2))}
    assert [source.verifier()(tasks[p], rollout_of(tasks[p], "1")).primary for p in "ab"] == [1.0, 0.0]
    other = RewardFunction(lambda completion, size: 1.0, takes=("completion", "size"))
    with pytest.raises(RewardError, match=r"takes 'size', and the row has only \['answer', 'prompt', 'unit'\]"):
        other(tasks["a"], rollout_of(tasks["a"], "1"))
    with pytest.raises(ConfigError, match="leave it out, or batched"):
        RewardFunction(plain, batched=True, takes=("completion",))


def test_several_rewards_with_weights() -> None:
    named = Rows(ROWS, reward={"correct": plain, "short": (lambda completion: 1 / len(completion), 0.2)})
    assert isinstance(named.reward, WeightedRewards)
    assert [(p.name, p.weight) for p in named.reward.parts] == [("correct", 1.0), ("short", 0.2)]
    listed: Any = [
        plain,
        compute_score,
        lambda completion: 1.0,
        plain,
        RewardFunction(plain),
        functools.partial(scaled, 2.0),
        Judge(),
    ]
    many = Rows(ROWS, reward=listed, weights=[1.0, 0.5, 0.25, 1.0, 1.0, 1.0, 1.0])
    assert isinstance(many.reward, WeightedRewards)
    assert [(p.name, p.weight) for p in many.reward.parts] == [
        ("plain", 1.0),
        ("compute_score", 0.5),
        ("reward_3", 0.25),
        ("plain_4", 1.0),
        ("plain_5", 1.0),
        ("scaled", 1.0),
        ("Judge", 1.0),
    ]
    assert scores([plain, compute_score], weights=[1.0, 0.5]) == [1.0, 0.0]  # by ``plain``, not by the sum


def test_a_metric_of_its_own_is_measured_and_not_learned_from() -> None:
    source = Rows(ROWS, reward=half, metric=plain, test_share=0.0)
    task = source.task("rows", 1, "train", 0)
    score = source.verifier()(task, rollout_of(task, task.private["answer"]))
    assert dict(score.components) == {"reward": 0.5, "correct": 1.0, "half": 0.5, "plain": 1.0}
    assert to_dict(from_dict(Rows, to_dict(source))) == to_dict(source) and "metric" not in to_dict(source)
    assert Rows(ROWS, reward=plain, metric=plain).reward is plain
    assert to_dict(Rows(ROWS, reward=plain)) == to_dict(Rows(ROWS, reward=plain, metric=plain))
    by_name = Rows(ROWS, reward={"half": half, "right": plain}, metric="right").reward
    by_function = Rows(ROWS, reward=[half, plain], metric=plain).reward
    assert isinstance(by_name, WeightedRewards) and isinstance(by_function, WeightedRewards)
    assert (by_name.metric, by_function.metric, len(by_function.parts)) == ("right", "plain", 2)
    again = Rows(ROWS, reward=by_name, metric=compute_score).reward
    assert isinstance(again, WeightedRewards) and [p.weight for p in again.parts] == [1.0, 1.0, 0.0]
    clash = Rows(ROWS, reward={"plain": half}, metric=plain).reward
    assert isinstance(clash, WeightedRewards) and clash.metric == "metric_plain"


def test_a_metric_that_cannot_stand_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"metric= goes with reward="):
        Rows(ROWS, metric=plain)
    with pytest.raises(ConfigError, match=r"metric='right' names none of the rewards; they are called plain"):
        Rows(ROWS, reward=plain, metric="right")


def test_weights_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigError, match="weights= goes with a list"):
        Rows(ROWS, reward=plain, weights=(1.0,))
    with pytest.raises(ConfigError, match="weights= goes with a list"):
        Rows(ROWS, reward={"a": plain}, weights=(1.0,))
    with pytest.raises(ConfigError, match="2 weights for 1 rewards"):
        Rows(ROWS, reward=[plain], weights=(1.0, 2.0))
    with pytest.raises(ConfigError, match="reward 'a' is a list of 3; give a function, or a pair"):
        Rows(ROWS, reward={"a": (plain, 1.0, 2.0)})
    with pytest.raises(ConfigError, match="both a reward and a scorer"):
        Rows(ROWS, reward=[plain], scorer=ExactMatch())


def test_several_rewards_come_back_from_a_file() -> None:
    source = Rows(ROWS, reward={"correct": plain, "score": (compute_score, 0.2), "own": functools.partial(scaled, 2.0)})
    again = from_dict(Rows, to_dict(source))
    assert to_dict(again) == to_dict(source)
    assert [type(p.verifier) for p in again.reward.parts] == [RewardFunction, VerlReward, RewardFunction]
    assert again.reward.parts[2].verifier.fn.args == (2.0,)
    assert "weights" not in to_dict(source) and "takes" not in to_dict(Rows(ROWS, reward=RewardFunction(plain)))["reward"]
