"""What a stage is made of and what its checkpoint holds; the scoring pool's counts; what trackers are told after a resume."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import at_named, in_child, on_tiny_base, only_rl, reinforce, resumed, tiny, trained, warm_up

from assay.core.batch import Batch
from assay.core.plan import Forward
from assay.core.protocols import Obs, Step
from assay.core.task import Context, Task, TaskView
from assay.lab.controls import RandomReward, Rewarded
from assay.objective import Entropy
from assay.objective.methods import grpo
from assay.objective.methods import reinforce as reinforce_method
from assay.rollout import Player
from assay.tasks import Rows
from assay.testing import rollout_of
from assay.train import Policy, models
from assay.train.driver import resume, train
from assay.train.grade import verify_rollouts
from assay.train.loop import step as rl_step
from assay.train.opening import open_stage
from assay.train.run import Evaluation, Run
from assay.verify import ScoringPool
from assay_tasks import KeyValue, SortDigits

ROWS = [{"prompt": f"S{a}{b}>", "answer": "".join(sorted(f"{a}{b}"))} for a in range(10) for b in range(10)]


def opened(run: Run, stage: int = 0) -> Any:
    model = models.load_source(run.model, lambda run, folder: folder)
    return open_stage(run, run.stages[stage], model, ScoringPool(run.tasks.verifier()), 0)


def metrics(folder: Path) -> dict[int, dict[str, float]]:
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return {r["step"]: r["metrics"] for r in map(json.loads, lines)}


def killed(run: Run, folder: Path, moment: str) -> None:
    def work() -> None:
        at_named(moment, lambda: os.kill(os.getpid(), signal.SIGKILL))
        train(run, folder)

    assert in_child(work) == -signal.SIGKILL


# ---- a stage's parts ------------------------------------------------------------------------------------------------------


def test_a_warm_up_has_nothing_of_reinforcement_learning() -> None:
    run = tiny()
    warm, practising = opened(run), opened(run, 1)
    assert not hasattr(warm, "curriculum") and warm.state_dict() == {}
    assert practising.replay is not None and practising.state_dict().keys() == {"practice", "scorer"}
    warm.load_state_dict({"practice": None, "scorer": {}})  # what older checkpoints say of such a stage


def test_the_state_of_a_session_is_plain_and_comes_back() -> None:
    run = only_rl()
    s, other = opened(run), opened(run)
    s.parts.step, s.parts.stage_step, s.parts.ids, s.parts.proved = 7, 5, "ab", True
    s.curriculum.draw(4)
    state = json.loads(json.dumps({**s.parts.state_dict(), **s.state_dict()}))
    other.parts.load_state_dict(state)
    other.load_state_dict(state)
    assert json.loads(json.dumps({**other.parts.state_dict(), **other.state_dict()})) == state
    p = other.parts
    assert (p.step, p.stage_step, p.ids, p.proved) == (7, 5, "ab", True)


def test_the_columns_of_a_rollout_batch_are_asked_for_at_once() -> None:
    s = opened(only_rl(objective=grpo(kl=0.1) + Entropy(), epochs=2))
    asked: list[tuple[str, ...]] = []
    annotate = s.parts.learner.annotate

    def counted(batch: Batch, *forwards: Forward) -> Batch:
        asked.append(tuple(f.column for f in forwards))
        return annotate(batch, *forwards)

    s.parts.learner.annotate = counted  # type: ignore[method-assign]
    asyncio.run(rl_step(s))
    assert asked == [("logp_old", "logp_ref")]


def test_attempts_are_sorted_to_their_contexts_in_the_order_posed() -> None:
    source = SortDigits(levels=(2,))
    tasks = [source.task("sort", 2, "train", i) for i in range(3)]

    def answered(task: Task, id: str, text: str) -> Any:
        rollout = rollout_of(task, text, id=id)
        return replace(rollout, context=replace(rollout.context, key=id.partition("/")[0]))

    right = ["".join(sorted(str(t.public["prompt"])[1:-1])) for t in tasks]
    mixed = [
        answered(tasks[1], "b/0", "x"),
        answered(tasks[0], "a/0", right[0]),
        answered(tasks[1], "b/1", right[1]),
        answered(tasks[0], "a/1", "x"),
    ]
    posed = [(t, Context(key=key, group=key, task=t.public_view(), messages=())) for t, key in zip(tasks, "abc", strict=True)]
    with ScoringPool(source.verifier()) as pool:
        a, b, none = asyncio.run(verify_rollouts(pool, posed, mixed))
    assert [[r.id for r in x.rollouts] for x in (a, b, none)] == [["a/0", "a/1"], ["b/0", "b/1"], []]
    assert [[s.primary for s in x.scores] for x in (a, b, none)] == [[1.0, 0.0], [0.0, 1.0], []]
    assert [(x.task, x.context) for x in (a, b, none)] == posed


# ---- environments that hang -----------------------------------------------------------------------------------------------


class Silent:
    """Never answers."""

    async def start(self) -> Obs:
        await asyncio.Event().wait()
        raise AssertionError("an event that nobody sets")

    async def step(self, action: str) -> Step:
        raise AssertionError(f"never asked: {action}")


@dataclass(frozen=True)
class Silence(KeyValue):
    def environment(self, world: TaskView) -> Any:
        return Silent()


def test_the_deadline_of_environments_holds_in_training_and_evaluation(tmp_path: Path) -> None:
    run = replace(only_rl(steps=1), tasks=Silence(levels=(1,)), environment_deadline=0.01)
    run = replace(run, evaluation=Evaluation(every=0, final_per_level=2))
    run = replace(run, model=models.Scratch(shape=replace(models.DecoderShape(), max_positions=64)))
    player = opened(run).sampler
    assert isinstance(player, Player) and player.deadline == 0.01
    assert train(run, tmp_path / "run").finished
    found = metrics(tmp_path / "run")[1]
    assert found["fault/infra"] == 1.0
    items = Policy(tmp_path / "run").evaluate(run.tasks, per_level=2, environment_deadline=0.01)
    assert [(item["values"], item["faults"]) for item in items] == [([], 1)] * 2


# ---- what the pool counts ---------------------------------------------------------------------------------------------------


def deadly(prompt: str, completion: str, row: dict[str, Any]) -> float:
    """Some answers end the process that judges them."""
    if completion[:1] > "x":
        os._exit(3)
    return float(len(completion) % 3)


def with_deadly_reward() -> Run:
    run = only_rl(steps=4, objective=reinforce_method(), group_size=2)
    return replace(run, tasks=Rows(ROWS, reward=deadly), evaluation=Evaluation(every=0, final_per_level=2), checkpoint_every=2)


@pytest.mark.slow
def test_what_the_pool_counted_stands_beside_the_step_that_it_happened_in(tmp_path: Path) -> None:
    whole = trained(with_deadly_reward(), tmp_path / "whole")
    found = metrics(tmp_path / "whole")
    ended = {step: round(16 // 2 * m["fault/policy"]) for step, m in found.items() if 1 <= step <= 3}
    assert any(ended.values()) and not all(ended.values())
    for step, answers in ended.items():  # each is judged twice, and dies of it twice
        wanted = {"verify/died": 2.0 * answers, "verify/retried": 1.0 * answers} if answers else {}
        assert {n: v for n, v in found[step].items() if n.startswith("verify/")} == wanted
    killed(with_deadly_reward(), tmp_path / "run", "synced:step_0000004")
    assert resumed(tmp_path / "run") == whole
    again = metrics(tmp_path / "run")
    assert {s: m.get("verify/died") for s, m in again.items()} == {s: m.get("verify/died") for s, m in found.items()}


def test_counts_that_depend_on_the_machines_load_are_no_part_of_the_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm = train(only_rl(steps=3), tmp_path / "calm").digest
    score = ScoringPool.score

    def slow(self: ScoringPool, items: Any) -> Any:
        self.counts["hung"] += 2
        self.counts["retried"] += 1
        return score(self, items)

    monkeypatch.setattr(ScoringPool, "score", slow)
    assert train(only_rl(steps=3), tmp_path / "busy").digest == calm
    found = metrics(tmp_path / "busy")
    assert [found[step]["verify/hung"] for step in range(4)] == [4.0, 2.0, 2.0, 6.0]  # evaluations score twice
    assert not any(name.startswith("verify/") for m in metrics(tmp_path / "calm").values() for name in m)


def test_trackers_hear_of_the_pools_counts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    score = ScoringPool.score

    def slow(self: ScoringPool, items: Any) -> Any:
        self.counts["split"] += 1
        return score(self, items)

    monkeypatch.setattr(ScoringPool, "score", slow)
    heard = Hearing()
    train(only_rl(steps=1), tmp_path / "run", watch=heard.watch)
    assert heard.told[0][1]["verify/split"] == 2.0


@pytest.mark.slow
def test_a_resume_gives_the_pool_its_state_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(with_deadly_reward(), tmp_path / "run", "synced:step_0000004")
    state = json.loads((tmp_path / "run" / "checkpoints" / "step_0000002" / "state.json").read_text())["session"]["pool"]
    given: list[Any] = []
    load = ScoringPool.load_state_dict

    def spy(self: ScoringPool, state: dict[str, Any]) -> None:
        given.append(state)
        load(self, state)

    monkeypatch.setattr(ScoringPool, "load_state_dict", spy)
    assert resume(tmp_path / "run").finished
    assert given == [state] and state


# ---- trackers after a resume ----------------------------------------------------------------------------------------------


@dataclass
class Hearing:
    """Makes a tracker that keeps what it is told, and the first step that it was announced."""

    announced: list[tuple[str, int]] = field(default_factory=list)
    told: list[tuple[int, Mapping[str, float]]] = field(default_factory=list)

    def watch(self, run: Run, folder: Path, first: int) -> list[Hearing]:
        self.announced.append((run.name, first))
        return [self]

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self.told.append((step, metrics))

    def close(self) -> None: ...

    @property
    def steps(self) -> list[int]:
        return [step for step, _ in self.told]


def test_trackers_are_told_the_first_step_that_they_will_hear_of(tmp_path: Path) -> None:
    run, folder = only_rl(steps=6), tmp_path / "run"
    new = Hearing()
    train(run, tmp_path / "new", watch=new.watch)
    assert new.announced == [("tiny", 0)] and new.steps == [0, 1, 2, 3, 4, 5, 6]
    killed(run, folder, "synced:step_0000006")  # steps 5 and 6 were told, but the last checkpoint is that of step 4
    on = Hearing()
    assert resume(folder, watch=on.watch).finished
    assert on.announced == [("tiny", 5)] and on.steps == [5, 6]
    more = Hearing()
    resume(folder, steps=7, watch=more.watch)
    assert more.announced == [("tiny", 7)] and more.steps == [7]


def test_a_run_killed_before_its_first_checkpoint_tells_everything_again(tmp_path: Path) -> None:
    killed(only_rl(steps=2), tmp_path / "run", "synced:step_0000000")
    again = Hearing()
    resume(tmp_path / "run", watch=again.watch)
    assert again.announced == [("tiny", 0)] and again.steps == [0, 1, 2]


def test_a_base_has_steps_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    killed(on_tiny_base(rl=1), tmp_path / "run", "renamed:step_0000008")  # of the base, whose points come first
    heard = Hearing()
    resume(tmp_path / "run", watch=heard.watch)
    assert heard.announced == [("tiny-base", 5), ("on-base", 0)]
    assert heard.steps == [5, 6, 7, 8, 0, 1]


def test_a_run_killed_between_two_stages_repeats_no_step(tmp_path: Path) -> None:
    run = replace(tiny(), stages=(warm_up(steps=4), reinforce(steps=2)))
    killed(run, tmp_path / "run", "renamed:step_0000006")
    heard = Hearing()
    resume(tmp_path / "run", watch=heard.watch)
    assert heard.announced == [("tiny", 5)] and heard.steps == [5, 6]


def test_a_reward_that_is_random_needs_no_pool_state_of_its_own(tmp_path: Path) -> None:
    """A trusted verifier has no worker; its pool's state is saved and restored all the same."""
    run = only_rl(steps=4)
    run = replace(run, tasks=Rewarded(source=run.tasks, scorer=RandomReward()), checkpoint_every=2)
    killed(run, tmp_path / "run", "synced:step_0000004")
    assert resumed(tmp_path / "run") == trained(run, tmp_path / "whole")
