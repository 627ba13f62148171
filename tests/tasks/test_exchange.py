"""Families out to, and in from, the library ``verifiers``; rows of many kinds in one file."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fake_verifiers as fake
import pytest

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError, MissingExtraError, RewardError, UnknownNameError
from assay.core.media import PLACEHOLDER
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.task import Task
from assay.interop.taskset import TasksetReward, taskset_class
from assay.tasks import Problems, family, in_turn, judged_rows, load_rows, verifier_of
from assay.tasks.exchange.reading import check_exact
from assay.tasks.exchange.tasksets import TasksetJudge, environment_of, prompt_of, source_of, taskset_of
from assay.testing import check_task_source
from assay.verify import ExactMatch, MathAnswer, Numeric
from assay.verify.rollouts import rollout_of
from assay_tasks import Expression


class ToyData(fake.TaskData):
    pass


class ToyTask(fake.Task[ToyData]):
    @fake.reward(weight=1.0)
    async def correct(self, trace: Any) -> float | None:
        return None if trace.last_reply == "none" else float(trace.last_reply == self.data.answer)

    @fake.reward(weight=0.5)
    async def short(self, trace: Any) -> float:
        return float(len(trace.last_reply) < 5)


class Toy(fake.Taskset[ToyTask]):
    pass


class Boxed(ToyTask):
    NEEDS_CONTAINER = True


class Tooled(ToyTask):
    @classmethod
    def toolsets(cls, config: Any) -> list[Any]:
        return ["search"]


class Judged(ToyTask):
    judges = ("a model",)


class Looking(fake.Task[ToyData]):
    @fake.reward()
    async def files(self, trace: Any, runtime: Any) -> float:
        return 1.0


class Idle(fake.Task[ToyData]):
    pass


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    kinds = {"Boxed": Boxed, "Tooled": Tooled, "Judged": Judged, "Looking": Looking, "Idle": Idle}
    fake.install(monkeypatch, {"toy": Toy, **{n: type(n, (fake.Taskset,), {"made": (k,)}) for n, k in kinds.items()}})
    taskset_class.cache_clear()
    yield
    taskset_class.cache_clear()


def toy_rows(n: int = 40) -> list[dict[str, Any]]:
    spec = {"name": "taskset", "taskset": "toy"}
    return [{"prompt": f"say {i}", "data": {"prompt": f"say {i}", "answer": str(i)}, "verifier": spec} for i in range(n)]


# ---- in ---------------------------------------------------------------------------------------------------------------


def test_a_task_of_a_taskset_is_judged_by_its_own_rewards() -> None:
    source = judged_rows(toy_rows(), test_share=0)
    task = source.task("rows", 1, "train", 0)
    answer = task.public["prompt"].split()[1]
    scores = [source.verifier()(task, rollout_of(task, said)) for said in (answer, "no", "a long answer")]
    assert [s.primary for s in scores] == [1.5, 0.5, 0.0]
    assert scores[1].info["rewards"] == {"correct": 0.0, "short": 1.0}
    TasksetReward(taskset="toy").prepare()
    assert TasksetReward(taskset="toy").names == ("reward",)


def test_what_a_text_cannot_be_judged_by() -> None:
    task = judged_rows(toy_rows(), test_share=0).task("rows", 1, "train", 0)
    refused = {
        "Boxed": "a container",
        "Tooled": "has tools",
        "Judged": "asks a model",
        "Looking": r"'files'. need",
        "Idle": "no rewards",
    }
    for name, why in refused.items():
        with pytest.raises(RewardError, match=why):
            TasksetReward(taskset=name)(task, rollout_of(task, "1"))
    with pytest.raises(RewardError, match=r"gave no number: \['correct'\]"):
        TasksetReward(taskset="toy")(task, rollout_of(task, "none"))
    with pytest.raises(ConfigError, match="no taskset 'tox' of verifiers v1 here"):
        TasksetReward(taskset="tox")(task, rollout_of(task, "1"))
    other = judged_rows([{"prompt": "p", "answer": "1"}], test_share=0).task("rows", 1, "train", 0)
    with pytest.raises(DataError, match="has no 'data' of a task of 'toy'"):
        TasksetReward(taskset="toy")(other, rollout_of(other, "1"))
    turns = [{"role": "tool", "content": "x"}, {"role": "user", "content": "y"}]
    talk = judged_rows([{"messages": turns, **_without_prompt()}], test_share=0)
    task = talk.task("rows", 1, "train", 0)
    with pytest.raises(DataError, match="not of 'tool'"):
        TasksetReward(taskset="toy")(task, rollout_of(task, "1"))


def _without_prompt() -> dict[str, Any]:
    return {name: value for name, value in toy_rows(1)[0].items() if name != "prompt"}


def test_the_library_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.split(".")[0] == "verifiers"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"verifiers is not installed: pip install 'assay-rl\[tasksets\]'"):
        taskset_of("sort")


def test_a_package_that_the_library_lacks_is_named_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(name: str) -> Any:
        raise ModuleNotFoundError("No module named 'pydantic'", name="pydantic")

    monkeypatch.setattr("assay.interop.taskset.import_module", lacking)
    with pytest.raises(ModuleNotFoundError, match="pydantic"):
        taskset_of("sort")


# ---- rows that name their verifier ------------------------------------------------------------------------------------


def test_rows_name_their_verifiers(tmp_path: Path) -> None:
    rows = [
        {"prompt": "1/2?", "answer": "1/2", "verifier": "math"},
        {"prompt": "pi?", "answer": "3.14", "data_source": "rough"},
        {"prompt": "sky?", "answer": "blue"},
    ]
    source = judged_rows(rows, routes={"rough": {"name": "numeric", "relative": 0.01}}, test_share=0)
    tasks = {t.public["prompt"]: t for t in (source.task("rows", 1, "train", i) for i in range(3))}
    said = {"1/2?": "0.5", "pi?": "3.15", "sky?": " blue"}
    verdicts = {p: source.verifier()(t, rollout_of(t, said[p])).primary for p, t in tasks.items()}
    assert verdicts == {"1/2?": 1.0, "pi?": 1.0, "sky?": 1.0}
    assert tasks["pi?"].private["row"]["verifier"]["name"] == "numeric"
    assert isinstance(judged_rows(rows[2:], default=MathAnswer(symbolic=False), test_share=0).verifier(), MathAnswer)
    (tmp_path / "mine.jsonl").write_text("\n".join(map(json.dumps, rows)))
    loaded = load_rows(tmp_path / "mine.jsonl", test_share=0.5)
    assert loaded.name == "mine" and sum(loaded.size("mine", 1, s) for s in ("train", "test")) == 3


def test_specs() -> None:
    assert verifier_of("exact") == ExactMatch() and verifier_of({"name": "numeric", "relative": 0.5}) == Numeric(relative=0.5)
    assert verifier_of({"name": "taskset", "taskset": "toy"}) == TasksetReward(taskset="toy")
    with pytest.raises(UnknownNameError, match="verifier 'mathh': did you mean 'math'"):
        verifier_of("mathh")
    with pytest.raises(DataError, match="names no verifier"):
        verifier_of({"kind": "os:system"})
    with pytest.raises(UnknownNameError, match="'id'"):
        verifier_of({"name": "taskset", "id": "toy"})
    with pytest.raises(ConfigError, match=r"TasksetReward\.taskset is empty"):
        verifier_of("taskset")


def test_a_wrong_row_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="row 2, field 'verifier': unknown verifier 'mth'"):
        judged_rows([{"prompt": "a", "answer": "b"}, {"prompt": "c", "answer": "d", "verifier": "mth"}])
    (tmp_path / "bad.jsonl").write_text('{"prompt": "a", "answer": "b", "verifier": 3}\n')
    with pytest.raises(DataError, match=r"bad\.jsonl: row 1, field 'verifier': 3 names no verifier"):
        load_rows(tmp_path / "bad.jsonl")
    with pytest.raises(DataError, match="cannot read rows from"):
        load_rows(tmp_path / "none.jsonl")


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"prompt": "2+3?", "answer": "Two and three.\n#### 5"}, "worked solution that ends in '#### 5', which 'math' judges"),
        ({"prompt": "2+3?", "answer": "So \\boxed{5}."}, r"of a known form \(boxed solution\), which 'math' judges"),
        ({"prompt": "2+3?", "answer": "5", "data_source": "gsm8k"}, r"of a known form \(mathematics\), which 'math' judges"),
        ({"prompt": "Which?", "answer": "B", "A": "red", "B": "blue"}, r"\(multiple choice\), which 'choice' judges"),
        ({"prompt": "Which?", "answer": "B"}, "answer 'B' is a letter and the row has no options"),
        ({"prompt": "Which?", "answer": 1, "choices": ["red", "blue", "grey"]}, "counted from 0, another counted from 1"),
    ],
)
def test_rows_that_an_exact_match_would_misjudge_are_refused(row: dict[str, Any], why: str, tmp_path: Path) -> None:
    plain = {"prompt": "4+4=", "answer": "8"}
    with pytest.raises(DataError, match=rf"^row 2 names no verifier, .*{why}.* Run 'assay tasks import ROWS OUT.jsonl' first"):
        judged_rows([plain, row])
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    with pytest.raises(DataError, match=r"rows.jsonl: row 1 names no verifier"):
        load_rows(tmp_path / "rows.jsonl")
    assert len(judged_rows([plain, {**row, "verifier": "exact"}]).rows) == 2
    assert len(judged_rows([{**row, "prompt": "4+4="}], default=ExactMatch()).rows) == 1


def test_worked_solutions_are_found_wherever_they_stand_and_other_rows_pass() -> None:
    rows = [{"prompt": f"{n}+1=", "answer": str(n + 1)} for n in range(200)]
    with pytest.raises(DataError, match="row 201 names no verifier"):
        judged_rows([*rows, {"prompt": "2+3?", "answer": "Five.\n#### 5"}])
    odd = {"messages": [{"role": "critic", "content": "2+3?"}], "answer": "5"}  # `Rows` itself says what is wrong
    check_exact([*enumerate(rows, 1), (201, odd), (202, ["no row"])])  # type: ignore[list-item]


def test_judged_rows_keep_the_contract() -> None:
    rows = [{"prompt": f"{i}+1?", "answer": str(i + 1), "verifier": ("math", "exact")[i % 2]} for i in range(60)]
    check_task_source(judged_rows(rows), n=4)


# ---- out --------------------------------------------------------------------------------------------------------------


def loaded(name: str, **config: Any) -> list[Any]:
    made = taskset_of(name)
    return list(made(made.made[1](**config)))


def reply(text: str) -> Any:
    return fake.Trace(None, None, [SimpleNamespace(message=SimpleNamespace(content=text), sampled=True)])


def test_a_taskset_yields_the_familys_tasks_without_answers() -> None:
    tasks = loaded("arithmetic", num_tasks=5, levels=(2, 3), split="test", form="box")
    wanted = list(in_turn(source_of("arithmetic", None, "box"), 5, "test", levels=(2, 3)))
    assert [t.data.prompt for t in tasks] == [t.public["prompt"] for t in wanted]
    assert all("answer" not in t.data.model_dump() and "boxed" in t.data.prompt for t in tasks)
    for task, own in zip(tasks, wanted, strict=True):
        assert asyncio.run(task.correct(reply(own.private["solution"]))) == 1.0
        assert asyncio.run(task.correct(reply("no"))) == 0.0
    (other,) = loaded("arithmetic", num_tasks=1, seed=9, arm="arithmetic/expression")
    assert other.data.prompt != loaded("arithmetic", num_tasks=1)[0].data.prompt
    with pytest.raises(UnknownNameError, match="arm of arithmetic 'sums'"):
        loaded("arithmetic", arm="sums")
    tasks[0].data.arm = "gone"
    with pytest.raises(UnknownNameError, match="arm of arithmetic 'gone'"):
        asyncio.run(tasks[0].correct(reply("1")))


@pytest.mark.slow
def test_all_rows_are_loaded_unless_a_number_is_asked_for(tmp_path: Path) -> None:
    rows = [{"prompt": f"{n}+1=", "answer": str(n + 1), "level": 1 + (n >= 5)} for n in range(40)]
    (tmp_path / "sums.jsonl").write_text("\n".join(map(json.dumps, rows)))
    name = str(tmp_path / "sums.jsonl")
    source = source_of(name)
    sizes = {split: [source.size("sums", n, split) for n in (1, 2)] for split in ("train", "test")}  # pyright: ignore
    train, test = loaded(name), loaded(name, split="test")
    assert len(train) == sum(sizes["train"]) and len(test) == sum(sizes["test"]) and len(train) + len(test) == 40
    assert len({t.data.prompt for t in (*train, *test)}) == 40
    assert [t.data.id for t in loaded(name, num_tasks=14)] == [t.data.id for t in train[:14]]
    assert len(loaded(name, num_tasks=1000)) == len(train) and {t.data.level for t in loaded(name, levels=(2,))} == {2}
    assert len(loaded("sort", levels=(4,))) == 1000
    with pytest.raises(DataError, match="are wanted"):
        loaded("sort", levels=(3,), num_tasks=1001)


def test_rows_of_an_empty_split_say_why(tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text('{"prompt": "1+1=", "answer": "2"}')
    splits = [s for s in ("train", "test") if source_of(str(tmp_path / "one.jsonl")).size("one", 1, s) == 0]  # pyright: ignore
    with pytest.raises(DataError, match=f"falls in the {splits[0]} split"):
        loaded(str(tmp_path / "one.jsonl"), split=splits[0])


def test_what_a_prompt_of_verifiers_cannot_hold() -> None:
    def task(**public: Any) -> Task:
        plain = {"id": "a", "domain": "d", "arm": "shop", "level": 1, "split": "train", "index": 0, "private": FrozenMap()}
        return Task(**plain, public=FrozenMap(public))

    price = {"name": "price", "description": "What it costs.", "parameters": {}}
    with pytest.raises(ConfigError, match=r"shop: its tasks declare tools \(price\).*describe them in the prompt"):
        prompt_of(task(prompt="2 figs?", tools=[price]))
    with pytest.raises(ConfigError, match="a message of role 'tool'"):
        prompt_of(task(messages=[{"role": "user", "content": "2?"}, {"role": "tool", "content": "3"}]))
    with pytest.raises(ConfigError, match="begin with pictures"):
        shown = {"kind": "image", "digest": "0" * 64, "size": [2, 2, 3]}
        prompt_of(task(messages=[{"role": "user", "content": PLACEHOLDER, "media": [shown]}]))
    turns = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "2?"}]
    assert prompt_of(task(messages=turns)) == turns and prompt_of(task(prompt="2?")) == "2?"
    assert prompt_of(task(messages=turns[:1])) == turns[:1]


def test_a_family_of_several_turns_is_played_in_its_own_environment() -> None:
    (task,) = loaded("keyvalue", num_tasks=1, levels=(2,))
    own = family("keyvalue").task("keyvalue", 2, "train", 0)
    store, played = own.world["store"], []

    def oracle(heard: list[str]) -> str:
        value = own.private["solution"][1:] if len(heard) == 1 else heard[-1].strip("=>")
        return value if value.isdigit() else f"?{value}"

    for policy, worth in ((oracle, 1.0), (lambda heard: "12", 0.0), (lambda heard: None, 0.0), (lambda heard: "?zz", 0.0)):
        played.clear()
        asyncio.run(environment_of()().run(task, fake.player(policy, played)))
        assert played[0].info["assay"] == worth and asyncio.run(task.correct(played[0])) == worth
    assert len(store) == 2
    assert asyncio.run(task.validate(None)) is True
    assert asyncio.run(task.correct(reply(""))) == 0.0  # untouched, as vf-validate looks at it


def test_an_arm_without_an_environment_is_one_turn_in_one() -> None:
    (plain,) = loaded("sort", num_tasks=1)
    played: list[Any] = []
    solution = family("sort").task("sort", 3, "train", 0).private["solution"]
    for said, worth in ((solution, 1.0), ("x", 0.0)):
        played.clear()
        asyncio.run(environment_of()().run(plain, fake.player(lambda heard, said=said: said, played)))
        assert played[0].last_reply == said and "assay" not in played[0].info
        assert asyncio.run(plain.correct(played[0])) == worth


def test_the_oracles_own_answer_validates_a_task() -> None:
    (task,) = loaded("arithmetic", num_tasks=1)
    assert asyncio.run(task.validate(None)) is True
    (row,) = loaded("assay_tasks:SortDigits", num_tasks=1)
    assert asyncio.run(row.validate(None)) is True


class Broken(Problems):
    """A family whose verifier has no verdict."""

    def verifier(self) -> Any:
        return Failing()


class Failing:
    trusted = True

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        raise ValueError("no idea")


def test_a_fault_is_no_zero() -> None:
    source = Broken(name="arithmetic", problems=(Expression(),))
    task = source.task("arithmetic/expression", 1, "train", 0)
    with pytest.raises(RewardError, match=r"no verdict on task .*no idea"):
        asyncio.run(TasksetJudge(source).score(task, "1"))


def test_sources_by_module() -> None:
    assert source_of("assay_tasks:SortDigits", seed=3).seed == 3  # pyright: ignore
    assert source_of("assay_tasks.math.arithmetic:arithmetic") == family("arithmetic")
    for name, why in {
        "nowhere.families:f": "there is no module 'nowhere'; install the package that has it",
        "assay.nowhere:f": "there is no module 'assay.nowhere' in package 'assay'",
        "assay_tasks.catalog:FAMILIES": "is a dict, no task family",
        "assay.tasks:families": "gives a tuple, no task family",
        "assay.tasks:family": "failed: TypeError: .*name",
    }.items():
        with pytest.raises(ConfigError, match=why):
            source_of(name)
