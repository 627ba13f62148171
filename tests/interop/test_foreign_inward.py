"""Other trainers' reward functions as verifiers: each is called as its trainer calls it, and its verdict read as it reads it."""

import asyncio
import sys
from dataclasses import dataclass, field
from typing import Any

import pytest

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError, RewardError, UnknownNameError
from assay.core.score import Fault
from assay.core.task import Task
from assay.interop import OpenRlhfReward, RubricReward, Signature, TrlReward, VerlReward, adapt, load, load_verifier, signature_of
from assay.verify import ExactMatch, RewardFunction, ScoringPool, judge
from assay.verify.rollouts import rollout_of, task_and_rollout

# ---- rewards as other people write them


def verl(data_source, solution_str, ground_truth, extra_info=None, **more):
    return {"score": float(solution_str == ground_truth), "turns": extra_info["num_turns"], "source": data_source}


def verl_short(solution_str, ground_truth):
    return solution_str == ground_truth


def verl_batch(data_sources, solution_strs, ground_truths, extra_infos):
    return [float(s == g) for s, g in zip(solution_strs, ground_truths, strict=True)]


def trl(completions, solution, **columns):
    return [None if s is None else float(c == s) for c, s in zip(completions, solution, strict=True)]


async def trl_async(prompts, completions, answer, completion_ids, trainer_state, log_extra, log_metric):
    await asyncio.sleep(0)
    log_extra("length", [len(c) for c in completions])
    log_metric("mean", 0.5)
    assert trainer_state is None and [len(i) for i in completion_ids] == [len(c) for c in completions]
    return [float(c == a) for c, a in zip(completions, answer, strict=True)]


def trl_chat(prompts, completions, answer, **columns):
    assert prompts[0][0]["role"] == "user"
    return [float(c[0]["content"] == a) for c, a in zip(completions, answer, strict=True)]


def openrlhf(queries, prompts, labels):
    values = [float(q == p + gold) for q, p, gold in zip(queries, prompts, labels, strict=True)]
    return {"rewards": values, "scores": values, "extra_logs": {"n": [7.0] * len(values)}}


class Tensor:
    """What torch would give, as far as anybody looks."""

    def __init__(self, values):
        self.values = values

    def tolist(self):
        return self.values

    def numel(self):
        return len(self.values)

    def item(self):
        return self.values[0]


def rubric_match(completion, answer, **rest):
    return completion[-1]["content"] == answer


async def rubric_state(state, info, task):
    return Tensor([0.5 * (state["completion"][0]["role"] == "assistant") * (info == {}) * (task == "case")])


def rubric_parser(completion, parser):
    return parser(completion)


@dataclass
class Rubric:
    funcs: list[Any]
    weights: list[float] = field(default_factory=list)
    class_objects: dict[str, Any] = field(default_factory=dict)


@dataclass
class MyRubric:
    funcs: tuple[Any, ...] = (rubric_match,)
    weights: tuple[float, ...] = (1.0,)


class Needy:
    def __init__(self, setting):
        self.setting = setting

    def __call__(self, task, rollout): ...


RIGHT, WRONG = task_and_rollout("2", "2", prompt="1+1="), task_and_rollout("2", "3", prompt="1+1=", id="other")


# ---- whose it is


@pytest.mark.parametrize(
    ("found", "signature"),
    [
        (ExactMatch(), "assay"),
        (lambda prompt, completion, row: 1.0, "plain"),
        (verl, "verl"),
        (verl_short, "verl"),
        (verl_batch, "verl-batch"),
        (trl, "trl"),
        (trl_async, "trl"),
        (openrlhf, "openrlhf"),
        (Rubric([rubric_match]), "verifiers"),
        (rubric_match, "verifiers"),
        (rubric_state, "verifiers"),
        (lambda prompt, answer: 1.0, "verifiers"),
    ],
)
def test_a_signature_is_told_by_the_names_of_its_parameters(found: Any, signature: str) -> None:
    assert signature_of(found, "it") == signature


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (lambda a, b: 1.0, r"parameters \(a, b\).*no known signature"),
        (lambda *rest, **more: 1.0, r"none that has a name"),
        (3, "is an int, which cannot be called"),
        (getattr, "does not say which parameters"),
        (Needy, "cannot be made without settings"),
    ],
)
def test_no_known_signature_is_said_with_what_is_accepted(found: Any, said: str) -> None:
    with pytest.raises(ConfigError, match="(?s)" + said) as caught:
        adapt(found)
    if "signature" in said:
        assert "solution_str, ground_truth" in str(caught.value) and "queries, prompts, labels" in str(caught.value)


def test_a_signature_can_be_said() -> None:
    def unusual(**everything):
        return [1.0 for _ in everything["completions"]]

    assert adapt(unusual, signature="trl")(*RIGHT).primary == 1.0
    with pytest.raises(UnknownNameError, match="did you mean 'trl'"):
        adapt(unusual, signature="tlr")


def test_assays_own_are_left_as_they_are() -> None:
    own = ExactMatch(strip=True)
    assert adapt(own) is own
    assert adapt(ExactMatch) == ExactMatch()
    made = adapt(lambda prompt, completion, row: float(completion == row["answer"]))
    assert isinstance(made, RewardFunction) and made(*RIGHT).primary == 1.0


# ---- each signature


@pytest.mark.parametrize(
    "reward",
    [
        verl,
        verl_short,
        verl_batch,
        trl,
        trl_async,
        openrlhf,
        rubric_match,
        Rubric([rubric_match]),
        MyRubric,
        lambda queries, prompts, labels: Tensor([float(q == p + a) for q, p, a in zip(queries, prompts, labels, strict=True)]),
    ],
)
def test_right_and_wrong_answers(reward: Any) -> None:
    made = adapt(reward)
    assert made.names == ("reward",)
    assert (made(*RIGHT).primary, made(*WRONG).primary) == (1.0, 0.0)
    assert [s.primary for s in made.many([RIGHT, WRONG, RIGHT])] == [1.0, 0.0, 1.0]
    with ScoringPool(made, 30.0) as pool:
        assert {i: s.primary for i, s in pool.score([RIGHT, WRONG]).items()} == {"case": 1.0, "other": 0.0}


def test_which_take_several_at_once() -> None:
    found = {f: adapt(f).batched for f in (verl, verl_batch, trl, openrlhf, rubric_match)}
    assert found == {verl: False, verl_batch: True, trl: True, openrlhf: True, rubric_match: False}


def test_what_verl_says_besides() -> None:
    score = VerlReward(verl)(*RIGHT)
    assert score.info == {"extra": {"turns": 1.0}}
    row = {"data_source": "gsm8k", "reward_model": {"ground_truth": "2"}, "prompt": "1+1=", "extra_info": {"num_turns": 9}}
    task = Task(
        id="t",
        domain="d",
        arm="a",
        level=1,
        split="train",
        index=0,
        public=FrozenMap({"prompt": "1+1="}),
        private=FrozenMap({"row": row}),
    )
    score = VerlReward(verl)(task, rollout_of(task, "2"))
    assert score.primary == 1.0 and score.info["extra"] == {"turns": 9.0}
    assert VerlReward(verl, gold="target")(*task_and_rollout("2", "2")).primary == 1.0
    with pytest.raises(DataError, match="no gold for ground_truth"):
        VerlReward(verl)(*task_and_rollout(None, "2"))
    with pytest.raises(RewardError, match="without 'score'"):
        VerlReward(lambda solution_str, ground_truth: {"acc": 1.0})(*RIGHT)
    with pytest.raises(DataError, match=r"needs the columns \['level'\].*--gold"):
        VerlReward(lambda solution_str, ground_truth, level: 1.0)(*RIGHT)


def test_trl_none_is_no_verdict() -> None:
    other = Task(
        id="u",
        domain="d",
        arm="a",
        level=1,
        split="train",
        index=0,
        public=FrozenMap({"prompt": "?"}),
        private=FrozenMap({"row": {"solution": None}}),
    )
    scores = TrlReward(trl).many([RIGHT, (other, rollout_of(other, "2", id="u"))])
    assert scores[0].fault is Fault.VERIFIER  # the row of another family has no such column
    first, second = TrlReward(trl, gold="solution").many([RIGHT, (other, rollout_of(other, "2", id="u"))])
    assert first.primary == 1.0
    assert second.fault is Fault.VERIFIER and second.info["verdict"] == "none"


def test_trl_gold_under_another_name_and_without_any() -> None:
    def by_key(completions, key, **rest):
        return [float(c == k) for c, k in zip(completions, key, strict=True)]

    assert TrlReward(by_key, gold="key")(*RIGHT).primary == 1.0
    with pytest.raises(DataError, match=r"needs the columns \['key'\]"):
        TrlReward(by_key)(*RIGHT)
    blank = Task(id="t", domain="d", arm="a", level=1, split="train", index=0, public=FrozenMap({"prompt": "?"}))
    with pytest.raises(DataError, match="solution"):
        TrlReward(trl)(blank, rollout_of(blank, "2"))


def test_conversations() -> None:
    assert TrlReward(trl_chat, chat=True)(*RIGHT).primary == 1.0
    task = Task(
        id="t",
        domain="d",
        arm="a",
        level=1,
        split="train",
        index=0,
        private=FrozenMap({"answer": "2"}),
        public=FrozenMap({"messages": [{"role": "user", "content": "1+1="}]}),
    )
    assert TrlReward(trl_chat)(task, rollout_of(task, "2")).primary == 1.0
    text = RubricReward(lambda completion, answer: completion == answer, chat=False)
    assert text(*RIGHT).primary == 1.0


def test_openrlhf_logs_and_its_mistakes() -> None:
    assert OpenRlhfReward(openrlhf)(*RIGHT).info == {"extra": {"score": 1.0, "n": 7.0}}
    assert OpenRlhfReward(openrlhf, gold="solution")(*RIGHT).primary == 1.0
    assert OpenRlhfReward(lambda queries, prompts, labels: 0.25)(*RIGHT).primary == 0.25
    with pytest.raises(RewardError, match="without 'rewards'"):
        OpenRlhfReward(lambda queries, prompts, labels: {"score": [1.0]})(*RIGHT)
    with pytest.raises(RewardError, match="has 1 value for 2"):
        OpenRlhfReward(lambda queries, prompts, labels: [1.0]).many([RIGHT, WRONG])
    with pytest.raises(RewardError, match="return one number per completion"):
        OpenRlhfReward(lambda queries, prompts, labels: 1.0).many([RIGHT, WRONG])


def test_a_rubric_is_a_weighted_sum() -> None:
    made = RubricReward(Rubric([rubric_match, rubric_state], [1.0, 0.5]))
    score = made(*RIGHT)
    assert score.primary == 1.25
    assert score.info["extra"] == {"rubric_match": 1.0, "rubric_state": 0.5}
    assert RubricReward(Rubric([rubric_parser], [2.0], {"parser": len}))(*RIGHT).primary == 2.0
    none = RubricReward(Rubric([lambda completion: None]))(*RIGHT)
    assert none.fault is Fault.VERIFIER


@pytest.mark.parametrize(
    ("rubric", "said"),
    [
        (Rubric([]), "0 functions"),
        (Rubric([rubric_match], [1.0, 2.0]), "2 weights"),
        (Rubric([rubric_match, lambda completions, answer: [1.0]]), r"judges a group at once \(it takes \['completions'\]\)"),
    ],
)
def test_rubrics_that_cannot_judge_one_attempt(rubric: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        RubricReward(rubric)


def test_a_reward_that_raises_is_a_fault() -> None:
    def broken(completion, answer):
        raise KeyError("gold")

    assert judge(RubricReward(broken), *RIGHT).fault is Fault.VERIFIER


def test_async_rewards_work_while_a_loop_runs() -> None:
    async def inside() -> float:
        return adapt(trl_async)(*RIGHT).primary

    assert asyncio.run(inside()) == 1.0


# ---- by name


def test_names_of_files_and_packages(tmp_path) -> None:
    file = tmp_path / "my_reward.py"
    file.write_text(
        "import helper_of_mine\nclass Kind:\n    @staticmethod\n    def f(solution_str, ground_truth):\n"
        "        return helper_of_mine.same(solution_str, ground_truth)\n"
    )
    (tmp_path / "helper_of_mine.py").write_text("def same(a, b):\n    return float(a == b)\n")
    try:
        made = load_verifier(f"{file}:Kind.f")
        assert made(*RIGHT).primary == 1.0 and made(*WRONG).primary == 0.0
        assert load(f"{file}:Kind") is load(f"{file}:Kind")
        assert load("assay.verify:ExactMatch") is ExactMatch
    finally:
        sys.path.remove(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing", "package.module:name"),
        (":f", "package.module:name"),
        ("no_such_package:f", "cannot import no_such_package"),
        ("missing.py:f", "does not exist"),
        ("assay.verify:ExactMtch", "unknown name in assay.verify 'ExactMtch'"),
    ],
)
def test_names_that_lead_nowhere(name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load(name)


def test_a_file_that_fails_says_how(tmp_path) -> None:
    file = tmp_path / "fails_at_once.py"
    file.write_text("raise SystemExit('no')\n")
    try:
        with pytest.raises(ConfigError, match=r"importing .* failed: SystemExit: no"):
            load(f"{file}:f")
    finally:
        sys.path.remove(str(tmp_path))


def test_a_package_that_fails_says_how(tmp_path, monkeypatch) -> None:
    (tmp_path / "fails_on_import.py").write_text("raise SystemExit('no')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=r"cannot import fails_on_import: SystemExit: no"):
        load("fails_on_import:f")


def test_a_closed_set_of_signatures() -> None:
    assert [str(s) for s in Signature] == ["assay", "plain", "verl", "verl-batch", "trl", "openrlhf", "verifiers"]


def test_the_package_offers_its_names() -> None:
    from assay import interop as foreign

    assert set(foreign.__all__) <= set(dir(foreign))
    assert all(getattr(foreign, name) for name in foreign.__all__)
    assert not hasattr(foreign, "no_such_name")
