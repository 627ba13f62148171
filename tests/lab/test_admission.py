"""What a model may practise: verdicts by hand, runs narrowed by them, and a small model asked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from assay.core.errors import ConfigError, DataError, RewardError
from assay.core.rollout import Sampling
from assay.core.task import Message, Task
from assay.guide import Balanced, Frontier, SuccessVariance
from assay.measure import wilson
from assay.objective import Objective, grpo
from assay.runtime.settings import DecoderShape, LearnerSettings, Muon
from assay.select import Admission, ArmVerdict, admission, judge_arms
from assay.tasks import TaskMixture, family
from assay.train.driver import train
from assay.train.levels import Levels
from assay.train.models import Folder, Scratch
from assay.train.preflight import check_run
from assay.train.reinforce import Reinforce
from assay.train.run import Evaluation, Run
from assay.train.stage import Stage
from assay.train.stages import WarmUp
from assay_tasks import Reverse, SortDigits

TRAIN, WARM, EASY, HARD = ArmVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Untold(Reverse):
    """Nobody shows how letters are reversed."""

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...] | None:
        return None


SUITE = TaskMixture(
    name="suite",
    sources=(SortDigits(levels=(3, 4)), Untold(levels=(3, 4)), family("gates"), family("knights")),
    parts={"lists": ("sort", "reverse"), "logic": ("gates", "knights")},
)
LOWEST = {arm: levels[0] for arm, levels in SUITE.arms().items()}


def items(n: int = 100, **right: int) -> list[dict[str, Any]]:
    """Of each arm ``n`` tasks at its lowest level with one rollout each; so many of them are right."""
    return [
        {"id": f"{arm}/{i}", "arm": arm, "level": level, "values": [float(i < right.get(arm, 30))]}
        for arm, level in LOWEST.items()
        for i in range(n)
    ]


def found(warmed: bool = False, **right: int) -> Admission:
    arms = judge_arms(items(**right), SUITE, warmed=warmed)
    return Admission(model="m", tasks="suite", least=0.1, most=0.6, warmed=warmed, arms=arms)


def run(**changes: Any) -> Run:
    given: dict[str, Any] = {
        "name": "suite",
        "model": Scratch(),
        "tasks": SUITE,
        "stages": (Reinforce(steps=3, curriculum=SUITE.balance_parts()),),
        "sampling": Sampling(max_new_tokens=8),
    }
    return Run(**(given | changes))


# ---- verdicts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "verdict"), [(0, WARM), (9, WARM), (10, TRAIN), (30, TRAIN), (60, TRAIN), (61, EASY), (100, EASY)]
)
def test_bounds_are_included(right: int, verdict: ArmVerdict) -> None:
    (arm,) = (a for a in found(sort=right).arms if a.arm == "sort")
    assert (arm.verdict, arm.accuracy, arm.part, arm.level, arm.n) == (verdict, right / 100, "lists", 3, 100)
    assert (arm.low, arm.high) == (wilson(right, 100).low, wilson(right, 100).high)


def test_what_no_oracle_shows_or_a_warm_up_has_not_taught_is_too_hard() -> None:
    one = found(sort=0, reverse=0, gates=90)
    assert {a.arm: a.verdict for a in one.arms} == {"sort": WARM, "reverse": HARD, "gates": EASY, "knights": TRAIN}
    assert one.of(WARM, TRAIN) == ("sort", "knights")
    assert found(warmed=True, sort=0).of(HARD) == ("sort",)


def test_verdicts_within_the_interval_are_sure() -> None:
    """Of 100, 30 right lie within .22 and .40, and 15 within .09 and .23: below .1 there is another verdict."""
    sure = {a.arm: a.sure for a in found(sort=30, gates=15, knights=99).arms}
    assert (sure["sort"], sure["gates"], sure["knights"]) == (True, False, True)


def test_domains_of_which_nothing_is_practised() -> None:
    one = found(reverse=0, gates=90, knights=99)
    assert one.parts == {"lists": {TRAIN: 1, WARM: 0, EASY: 0, HARD: 1}, "logic": {TRAIN: 0, WARM: 0, EASY: 2, HARD: 0}}
    assert one.only_evaluated == ("logic",)
    flat = judge_arms(items(), replace(SUITE, parts=None))
    assert [a.part for a in flat] == ["sort", "reverse", "gates", "knights"]
    (alone,) = judge_arms(items(), SortDigits(levels=(3,)))
    assert alone.part == "sort"


def test_an_arm_without_a_verdict_is_an_error() -> None:
    with pytest.raises(RewardError, match="no rollout of 'gates' of 'suite' got a verdict"):
        judge_arms([i for i in items() if i["arm"] != "gates"], SUITE)


# ---- runs ---------------------------------------------------------------------------------------------------------------


def test_a_run_practises_what_is_admitted_and_evaluates_all() -> None:
    """Sorting is warmed up on its lowest level, beside the other arm that is practised; reversal and gates are only evaluated."""
    start = Frontier(start={"sort": 4, "gates": 3})
    whole = run(stages=(Reinforce(steps=3, curriculum=SUITE.balance_parts(start)),))
    narrow = found(sort=0, reverse=0, gates=90).admit(whole)
    warm_up, rl = narrow.stages
    assert isinstance(warm_up, WarmUp) and (warm_up.levels, warm_up.gate) == ({"sort": (3,), "knights": (1,)}, 0.1)
    assert isinstance(rl, Reinforce) and rl.levels == {"sort": (3, 4), "knights": SUITE.arms()["knights"]}
    assert rl.curriculum == SUITE.balance_parts(Frontier(start={"sort": 4}))
    assert narrow.evaluation == whole.evaluation and narrow.tasks == SUITE
    assert isinstance(rl.curriculum, Balanced)
    curriculum = rl.curriculum.build(rl.levels, 0)  # pyright: ignore[reportArgumentType]
    assert {arm for arm, _ in curriculum.cells} == {"sort", "knights"}
    check_run(narrow)


def test_a_stages_own_levels_stay() -> None:
    narrow = found(gates=90).admit(run(stages=(Reinforce(levels={"sort": (4,), "gates": (2,)}, curriculum=SuccessVariance()),)))
    assert [s.levels for s in narrow.stages] == [{"sort": (4,)}]
    narrow = found(sort=0).admit(run(stages=(Reinforce(levels=(4,), curriculum=Frontier(start={"gates": 4})),)), WarmUp(steps=7))
    warm_up, rl = narrow.stages
    assert (warm_up.steps, warm_up.levels) == (7, {"sort": (3,), "gates": (2,), "knights": (1,)})  # nobody can show reversal
    assert rl.levels == {"sort": (4,), "reverse": (4,), "gates": (4,), "knights": (4,)}
    untouched = found(sort=0).admit(run(stages=(Reinforce(levels={"gates": (2,)}, curriculum=SuccessVariance()),)))
    assert [s.levels for s in untouched.stages] == [{"gates": (2,)}]  # nobody practises sorting, so nobody shows it


@dataclass(frozen=True, slots=True, kw_only=True)
class Searching(Stage):
    """A stage of somebody else's that samples answers to the run's tasks."""

    steps: int = 2
    objective: Objective = field(default_factory=grpo)
    learner: LearnerSettings = field(default_factory=LearnerSettings)
    levels: Levels = ()
    samples: ClassVar[bool] = True
    uses_tasks: ClassVar[bool] = True


def test_any_stage_that_samples_answers_to_its_tasks_is_narrowed() -> None:
    (stage,) = found(gates=90).admit(run(stages=(Searching(levels={"sort": (3, 4), "gates": (2,)}),))).stages
    assert stage == Searching(levels={"sort": (3, 4)})
    warm_up, stage = found(sort=0).admit(run(stages=(Searching(levels={"sort": (4,)}),))).stages
    assert warm_up.levels == {"sort": (3,)} and isinstance(stage, Searching)


def test_runs_that_cannot_be_narrowed() -> None:
    with pytest.raises(ConfigError, match="is of 'suite', the run's tasks are 'sort' with other arms"):
        found().admit(run(tasks=SortDigits(), stages=(Reinforce(),)))
    with pytest.raises(ConfigError, match="has no stage that samples answers"):
        found().admit(run(stages=(WarmUp(),)))
    with pytest.raises(ConfigError, match=r"admitted to none of the arms that run 'suite' practises.*outside 0\.1 to 0\.6"):
        found(sort=99, reverse=99, gates=99, knights=99).admit(run())


def test_it_is_written_and_read(tmp_path: Path) -> None:
    one = found(sort=0, gates=90)
    one.write(tmp_path / "admission.json")
    assert Admission.read(tmp_path / "admission.json") == one
    with pytest.raises(DataError, match="cannot read an admission from"):
        Admission.read(tmp_path / "none.json")
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(DataError, match="cannot read an admission from"):
        Admission.read(tmp_path / "other.json")


# ---- a model ------------------------------------------------------------------------------------------------------------


SHAPE = DecoderShape(
    hidden_size=32, num_layers=2, num_heads=2, num_kv_heads=1, head_dim=16, intermediate_size=64, max_positions=32
)


def shown(steps: int, **levels: tuple[int, ...]) -> Run:
    """A model that was shown some levels."""
    learner = LearnerSettings(optimizer=Muon(lr=4e-3))
    stage = WarmUp(steps=steps, batch=32, demonstrations=0, noise=0.0, levels=levels, learner=learner)
    quiet = Evaluation(every=0, final_per_level=1, levels=levels, kl_to_base=False)
    return run(model=Scratch(shape=SHAPE), stages=(stage,), evaluation=quiet)


@pytest.mark.parametrize(
    ("settings", "said"), [({"least": 0.6, "most": 0.1}, "give two accuracies"), ({"n": 0}, "at least 1 question")]
)
def test_wrong_settings_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        admission("nowhere", SUITE, **settings)


def test_a_model_that_knows_nothing_is_to_be_warmed_up(tmp_path: Path) -> None:
    model = train(shown(1, sort=(3,)), tmp_path / "run").folder
    one = admission(model, SUITE, n=8, sampling=Sampling(max_new_tokens=6, temperature=0.1))
    assert {a.arm: (a.verdict, a.n) for a in one.arms} == {
        "sort": (WARM, 8),
        "reverse": (HARD, 8),
        "gates": (WARM, 8),
        "knights": (WARM, 8),
    }
    assert admission(model, SUITE, n=8, sampling=Sampling(max_new_tokens=6)) == one  # the temperature is always 1


@pytest.mark.prove
def test_a_small_model_practises_what_it_half_knows(tmp_path: Path) -> None:
    """Sorting was shown a little, knights are easy, gates were never shown: a warm-up, and the model is admitted to them."""
    limits, learner = Sampling(max_new_tokens=6), LearnerSettings(optimizer=Muon(lr=4e-3))
    model = train(shown(110, sort=(3,), knights=(1,)), tmp_path / "base").folder
    one = admission(model, SUITE, sampling=limits)
    assert {a.arm: a.verdict for a in one.arms} == {"sort": TRAIN, "reverse": HARD, "gates": WARM, "knights": EASY}
    rl = Reinforce(steps=1, groups=4, group_size=2, curriculum=SUITE.balance_parts())
    whole = run(model=Folder(path=str(model)), stages=(rl,), evaluation=Evaluation(every=0, final_per_level=2, kl_to_base=False))
    narrow = one.admit(whole, WarmUp(steps=300, batch=32, demonstrations=0, noise=0.0, gate=0.1, learner=learner))
    after = admission(train(narrow, tmp_path / "warmed").folder, SUITE, warmed=True, sampling=limits)
    accuracy = {a.arm: a.accuracy for a in after.arms}
    assert min(accuracy["sort"], accuracy["gates"]) >= 0.1 and "reverse" in after.of(HARD)
