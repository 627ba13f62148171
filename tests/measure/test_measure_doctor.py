"""Each rule of the doctor: a history that must be found, and near ones that must not."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from assay.measure import doctor
from assay.measure.findings import Finding, Rule, Severity
from assay.measure.history import History, Practised
from assay.measure.rules_check import RewardHacking
from assay.measure.rules_heldout import CurriculumStuck, HeldOutDropped, Overfitting, SuspectVerifier, drawn_level
from assay.measure.rules_help import OnlyWithHelp
from assay.measure.rules_machinery import (
    EngineMismatch,
    GraderHangs,
    RisingFaults,
    SilentRewards,
    UnprovenWeights,
    UntrainedWeights,
)
from assay.measure.rules_policy import (
    EntropyCollapse,
    EntropyExplosion,
    FormatFailure,
    LengthTruncation,
    NoSignal,
    NotFinite,
    StalledSteps,
)
from assay.measure.rules_rate import LearningRateTooHigh
from assay.measure.rules_tools import ToolErrors, UnusedTools
from assay.runs import MetricLine

Course = Callable[[float], float]


def run(courses: Mapping[str, Course | float], steps: int = 100, first: int = 1, every: int = 1, items: int = 0) -> History:
    """A history whose metrics follow courses over t in [0, 1]."""
    lines = [
        MetricLine(
            step=s, stage="rl", metrics={n: c((s - first) / (steps - 1)) if callable(c) else c for n, c in courses.items()}
        )
        for s in range(first, first + steps, every)
    ]
    return History.of(lines, items)


HEALTHY: Mapping[str, Course | float] = {
    "reward/mean": lambda t: 0.4 + 0.45 * t,
    "signal/fraction": lambda t: 0.8 - 0.4 * t,
    "entropy/mean": lambda t: 0.5 - 0.4 * t,
    "length/truncated": 0.01,
    "length/mean": 20.0,
    "format/rate": 0.98,
    "fault/rate": 0.0,
    "rollouts/sampled": 64.0,
    "proof/state": 1.0,
    "grad/norm": 0.3,
    "loss/total": 0.02,
    "engine/mismatch_k3": 1e-8,
    "engine/max_ratio": 1.01,
    "eval/greedy/all": lambda t: 0.4 + 0.5 * t,
    "eval/sampled/all": lambda t: 0.3 + 0.5 * t,
    "tools/calls": 1.5,
    "tools/errors": 0.1,
    "curriculum/share/sort/level_2": lambda t: 1 - t,
    "curriculum/share/sort/level_5": lambda t: t,
}


def changed(**courses: Course | float) -> History:
    return run({**HEALTHY, **{k.replace("__", "/"): v for k, v in courses.items()}})


def test_a_healthy_run_has_nothing_wrong() -> None:
    assert doctor.diagnose(run(HEALTHY)) == ()


def test_an_empty_run_has_nothing_to_say() -> None:
    assert doctor.diagnose(History.of([])) == ()


DESTROYED: dict[str, Course | float] = {
    "lr": 0.05,
    "reward__mean": lambda t: 0.3 * (t == 0),
    "eval__sampled__all": lambda t: 0.4 * (t == 0),
    "kl__base_train": lambda t: 1.4 * (0 < t < 0.1),
}

CASES: list[tuple[Rule, dict[str, Course | float], Severity, str, str]] = [
    (NoSignal(), {"signal__fraction": 0.04, "reward__mean": 0.02}, Severity.WARNING, "steps 91–100 only 4.0 %", "easier levels"),
    (NoSignal(), {"signal__fraction": 0.04, "reward__mean": 0.97}, Severity.NOTE, "mean reward of 0.97", "nearly solved"),
    (
        NoSignal(),
        {"signal__fraction": 0.0, "reward__mean": 1.0},
        Severity.NOTE,
        "mean reward of 1.00",
        "the reward is constant, or",
    ),
    (
        NoSignal(),
        {"signal__fraction": lambda t: 0.2 * (1 - t) ** 9, "reward__mean": 1.0},
        Severity.NOTE,
        "of 1.00",
        "nearly solved",
    ),
    (NoSignal(), {"signal__fraction": 0.04, "reward__mean": 0.6}, Severity.WARNING, "mean reward of 0.60", "temperature"),
    (NoSignal(), {"signal__fraction": 0.0, "reward__mean": 0.36}, Severity.WARNING, "mean reward of 0.36", "get the same reward"),
    (
        EntropyCollapse(),
        {"entropy__mean": lambda t: 0.5 if t < 0.5 else 0.01, "reward__mean": 0.4},
        Severity.WARNING,
        "from 0.5 nats (steps 1–10) to 0.01 (steps 91–100), below 10 % of its start since step 51, while the mean reward",
        "checkpoint before",
    ),
    (EntropyExplosion(), {"entropy__mean": lambda t: 0.5 + 2 * t}, Severity.WARNING, "rose from 0.591 nats", "learning rate"),
    (LengthTruncation(), {"length__truncated": 0.3}, Severity.WARNING, "30 % of the answers", "max_new_tokens"),
    (FormatFailure(), {"format__rate": 0.41}, Severity.WARNING, "only 41 %", "warm-up"),
    (
        RisingFaults(),
        {"fault__rate": lambda t: 0.05 * t},
        Severity.ALARM,
        "4.8 % of the rollouts in steps 91–100",
        "events.jsonl",
    ),
    (RisingFaults(), {"fault__rate": 0.2}, Severity.ALARM, "20 % of the rollouts", "fix the scorer"),
    (
        RisingFaults(),
        {"fault__rate": 0.2, "fault__rate__sort": 0.1, "fault__rate__kv": 0.4},
        Severity.ALARM,
        "most of all on 'kv' (40 %)",
        "fix the scorer",
    ),
    (
        OnlyWithHelp(),
        {"help__share": 0.75, "help__success": 0.5, "help__success_without": 0.01},
        Severity.WARNING,
        "75 % of the rollouts had help; 50 % of these succeeded, and 1.0 % without help",
        "Let help become less",
    ),
    (
        OnlyWithHelp(),
        {"help__share": 1.0, "help__success": 0.5, "eval__greedy__all": 0.0},
        Severity.WARNING,
        "50 % of these succeeded, and 0 % of held-out tasks, which give no help",
        "Let help become less",
    ),
    (
        GraderHangs(),
        {"verify__hung": lambda t: float(t > 0.94), "verify__died": lambda t: float(t > 0.995), "verify__retried": 1.0},
        Severity.WARNING,
        "In steps 91–100 the grader hung 6 times and died 1 time, on 1.1 % of the rollouts.",
        "Run.reward_deadline if it is only slow; find what ends its process",
    ),
    (
        GraderHangs(),
        {"verify__hung": 16.0, "verify__retried": 8.0},  # each twice
        Severity.ALARM,
        "the grader hung 160 times, on 12 % of the rollouts",
        "Bound the work that it does",
    ),
    (
        GraderHangs(),
        {"verify__died": 2.0, "verify__retried": 5.0},  # the others raised
        Severity.WARNING,
        "the grader died 20 times, on 3.1 % of the rollouts",
        "Find what ends its process",
    ),
    (
        UnprovenWeights(),
        {"proof__state": lambda t: float(t < 0.98)},
        Severity.ALARM,
        "After 2 of 100 updates (steps 99–100)",
        "prove",
    ),
    (
        SilentRewards(),
        {"reward__silent": 1.0, "reward__mean": 0.1},
        Severity.WARNING,
        "1 of the rewards had no verdict on any rollout, still in steps 1–100.",
        "The event 'reward' in events.jsonl names each",
    ),
    (
        UntrainedWeights(),
        {"grad__untrained": 2.0, "grad__norm": 0.1},
        Severity.WARNING,
        "2 trained tensors had a gradient of exactly 0 in steps 1–100.",
        "The event 'untrained' in events.jsonl names them",
    ),
    (EngineMismatch(), {"engine__mismatch_k3": 0.02}, Severity.ALARM, "by 0.02 nats per token (k3)", "precision"),
    (EngineMismatch(), {"engine__max_ratio": lambda t: 1 + 40 * (t > 0.95)}, Severity.ALARM, "a factor of up to 41", "top-p 1"),
    (
        SuspectVerifier(),
        {"eval__sampled__all": 0.3},
        Severity.ALARM,
        "0.42 (steps 1–10) to 0.83 (steps 91–100), but held-out accuracy went from 30 % (step 1) to 30 % (step 100)",
        "tasks check",
    ),
    (
        RewardHacking(),
        {"check__rollouts": 20.0, "check__overpaid": lambda t: 0.02 + 0.3 * (t > 0.5)},
        Severity.ALARM,
        "In steps 91–100 the reward took 32 % of the checked rollouts for right that the independent check takes for wrong, up "
        "from 2.0 % in steps 1–10",
        "mend the reward",
    ),
    (
        RewardHacking(),
        {"check__rollouts": 20.0, "check__overpaid": 0.2},
        Severity.WARNING,
        "the reward took 20 % of the checked rollouts",
        "differ from the start",
    ),
    (
        HeldOutDropped(),
        {"eval__greedy__all": lambda t: 0.9 - abs(t - 0.5) * 0.6},
        Severity.ALARM,
        "(greedy) fell from 90 %",
        "Use the model of step 5",
    ),
    (
        CurriculumStuck(),
        {"curriculum__share__sort__level_2": 0.75, "curriculum__share__sort__level_5": 0.25, "reward__mean": 0.99},
        Severity.NOTE,
        "In steps 51–100 the curriculum stayed at a mean level of 2.8",
        "harder",
    ),
    (
        CurriculumStuck(),
        {"curriculum__share__sort__level_2": 0.0, "curriculum__share__sort__level_5": 1.0, "reward__mean": 0.0},
        Severity.WARNING,
        "mean level of 5.0",
        "easier",
    ),
    (
        LearningRateTooHigh(),
        DESTROYED,
        Severity.ALARM,
        "rate of up to 0.05: the reward fell from 0.30 (step 1) to 0.00 (steps 2–100), and held-out accuracy from 40 % to 0 %.",
        "(--lr 0.005)",
    ),
    (StalledSteps(), {"grad__norm": lambda t: 0.3 * (t < 0.7)}, Severity.WARNING, "30 of the 100 steps", "nothing was left"),
    (StalledSteps(), {"loss__total": 1e-6}, Severity.NOTE, "gradient norm is 0.3", "That is normal"),
    (UnusedTools(), {"tools__calls": 0.0}, Severity.WARNING, "calls none of its tools in steps 91–100", "demonstrate"),
    (
        UnusedTools(),
        {"tools__calls": 0.01},
        Severity.WARNING,
        "calls of tools per rollout",
        "was taught to call",
    ),
    (ToolErrors(), {"tools__calls": 1.0, "tools__errors": 0.9}, Severity.WARNING, "90 % of the calls of tools", "description"),
    (NotFinite(), {"loss__total": lambda t: float("nan") if t > 0.9 else 0.1}, Severity.ALARM, "step 91: loss/total", "fp32"),
]


def test_one_level_leaves_a_curriculum_nothing_to_choose() -> None:
    alone = {"curriculum__share__rows__level_1": 1.0, "reward__mean": 0.0}
    assert CurriculumStuck()(changed(**alone)) is None


def test_a_run_with_bars_of_its_own_is_taken_at_its_word() -> None:
    """In float32 a thousandth of a nat is an alarm; in bfloat16 the run knew better than the rule's own threshold."""
    faint, loud = {"engine__mismatch_k3": 1e-4, "engine__max_ratio": 1.2}, {"engine__mismatch_k3": 0.02}
    rule = EngineMismatch()
    assert rule(changed(**faint)) is None and rule(changed(**loud)) is not None
    alarmed, calm = rule(changed(engine__alarm=1.0, **faint)), rule(changed(engine__alarm=0.0, **loud))
    assert alarmed is not None and "0.0001 nats" in alarmed.sentence and calm is None


@pytest.mark.parametrize(("rule", "courses", "severity", "said", "action"), CASES, ids=lambda x: type(x).__name__)
def test_rule_finds_its_case(rule: Rule, courses: dict[str, Course | float], severity: Severity, said: str, action: str) -> None:
    history = changed(**courses)
    found = rule(history)
    assert isinstance(found, Finding)
    assert (found.rule, found.severity) == (type(rule).__name__, severity)
    assert said in found.sentence
    assert action in found.action
    assert 1 <= found.first_step <= found.last_step <= 100
    assert found.numbers
    assert found in doctor.diagnose(history)


@pytest.mark.parametrize("rule", doctor.RULES, ids=lambda x: type(x).__name__)
def test_rule_is_silent_on_health_and_on_nothing(rule: Rule) -> None:
    assert rule(run(HEALTHY)) is None
    assert rule(History.of([])) is None


def test_what_is_told_of_a_reward_that_is_hacked() -> None:
    """A share that grew points at the run's start, where it began to grow; one that stands at the steps that it was seen in."""
    grown = RewardHacking()(run({"check/rollouts": 20.0, "check/overpaid": lambda t: 0.02 + 0.3 * (t > 0.5)}))
    assert grown is not None
    assert (grown.rule, grown.first_step, grown.last_step) == ("RewardHacking", 1, 100)
    assert grown.numbers == pytest.approx({"check/overpaid/start": 0.02, "check/overpaid": 0.32})
    standing = RewardHacking()(run({"check/rollouts": 20.0, "check/overpaid": 0.2}))
    assert standing is not None
    assert (standing.rule, standing.first_step, standing.last_step) == ("RewardHacking", 91, 100)
    assert standing.numbers == pytest.approx({"check/overpaid/start": 0.2, "check/overpaid": 0.2})
    few = RewardHacking()(
        run({"check/rollouts": lambda t: 90.0 if t > 0.98 else 10.0, "check/overpaid": lambda t: 0.5 * (t > 0.98)})
    )
    assert few is not None  # weighted by attempts: 2 of the 10 steps, which had 180 of the 260
    assert few.numbers["check/overpaid"] == pytest.approx(0.5 * 180 / 260)


def test_every_rule_has_a_case() -> None:
    assert {type(r).__name__ for r in doctor.RULES} == {type(case[0]).__name__ for case in CASES} | {
        "Overfitting",  # below
        "PartialCredit",  # these in test_reward_rules
        "RandomWeights",
    }


def test_low_entropy_is_no_collapse_while_reward_is_high_or_rising() -> None:
    mastered = changed(entropy__mean=lambda t: 0.5 if t < 0.5 else 0.01, reward__mean=lambda t: 0.4 + 0.6 * t)
    rising = changed(entropy__mean=lambda t: 0.5 if t < 0.5 else 0.01, reward__mean=lambda t: 0.2 + 0.5 * t)
    assert EntropyCollapse()(mastered) is None
    assert EntropyCollapse()(rising) is None
    alone = run({"entropy/mean": lambda t: 0.5 if t < 0.5 else 0.01})
    found = EntropyCollapse()(alone)
    assert found is not None
    assert found.first_step == 51


def test_a_small_rise_of_a_small_entropy_is_no_explosion() -> None:
    assert EntropyExplosion()(changed(entropy__mean=lambda t: 0.05 + 0.1 * t)) is None


def test_a_drop_within_chance_is_none() -> None:
    course = {**HEALTHY, "eval/greedy/all": lambda t: 0.6 - 0.1 * t, "eval/sampled/all": 0.4}
    assert HeldOutDropped()(run(course, items=64)) is None
    found = HeldOutDropped()(run(course, items=2048))
    assert found is not None and found.action.startswith("Use the model of step 1:")


def test_a_fall_within_a_trial_of_few_steps_is_said_to_be_one() -> None:
    course = {**HEALTHY, "eval/greedy/all": lambda t: 0.44 - 0.27 * t}
    found = HeldOutDropped()(run(course, steps=3, items=512))
    assert found is not None and found.action.startswith("These are 2 steps: a trial.")
    assert "compare with the same command without what you try" in found.action


def with_items(scores: Mapping[int, Mapping[str, float]]) -> History:
    """A history of evaluations by item, whose accuracies are over what each has."""
    means = {s: {"eval/greedy/all": sum(found.values()) / len(found)} for s, found in scores.items()}
    lines = [MetricLine(step=s, stage="rl", metrics={"reward/mean": s / 100, **means.get(s, {})}) for s in range(100)]
    return replace(History.of(lines), item_scores={"eval/greedy/all": scores})


def test_evaluations_of_different_sizes_are_compared_on_the_items_of_both() -> None:
    whole = {f"i{i}": float(i < 32) for i in range(50)}
    part = {name: whole[name] for name in list(whole)[:16]}
    steady = with_items({0: whole, 25: part, 50: whole})  # 0.64, 1.00, 0.64: other items, the same answers
    assert HeldOutDropped()(steady) is None
    worse = with_items({25: part, 50: whole | dict.fromkeys(list(part)[:10], 0.0)})
    found = HeldOutDropped()(worse)
    assert found is not None and found.numbers == {"eval/greedy/all/best": 1.0, "eval/greedy/all": 0.375}
    assert found.sentence.endswith("fell from 100 % at step 25 to 38 % at step 50 on the 16 items that both evaluations have.")
    assert HeldOutDropped()(with_items({25: part, 50: {"other": 0.0}})) is None
    assert HeldOutDropped()(with_items({0: whole, 50: dict.fromkeys(whole, 0.0)})) is not None


def test_an_arm_that_falls_while_the_whole_rises_is_named() -> None:
    """Two arms of 50 items: one falls from 0.8 to 0.5, the other rises from 0.1 to 0.9."""
    sums = ({f"s{i}": float(i < 40) for i in range(50)}, {f"s{i}": float(i < 25) for i in range(50)})
    code = ({f"c{i}": float(i < 5) for i in range(50)}, {f"c{i}": float(i < 45) for i in range(50)})
    names = {
        "eval/greedy/sums/a/all": sums,
        "eval/greedy/code/all": code,
        "eval/greedy/all": (sums[0] | code[0], sums[1] | code[1]),
    }
    at = {n: {0: found[0], 50: found[1]} for n, found in names.items()}
    lines = [MetricLine(step=s, stage="rl", metrics={n: sum(x[s].values()) / len(x[s]) for n, x in at.items()}) for s in (0, 50)]
    found = HeldOutDropped()(replace(History.of(lines), item_scores=at))
    assert found is not None and found.numbers == {"eval/greedy/sums/a/all/best": 0.8, "eval/greedy/sums/a/all": 0.5}
    assert "Held-out accuracy of sums/a (greedy) fell from 80 % at step 0 to 50 % at step 50" in found.sentence
    # 0.18 is more than two standard deviations of such a difference, 0.16, and less than those of the lower of two arms, 0.25.
    less = {**at, "eval/greedy/sums/a/all": {0: sums[0], 50: {f"s{i}": float(i < 31) for i in range(50)}}}
    lines[1] = replace(lines[1], metrics={**lines[1].metrics, "eval/greedy/sums/a/all": 0.62})
    assert HeldOutDropped()(replace(History.of(lines), item_scores=less)) is None


def test_a_verifier_is_not_suspected_for_the_choice_of_items() -> None:
    """Of the first 16 items 4 more are answered at the end, which the accuracies over 16 and 50 items hide."""
    part = {f"i{i}": float(i < 8) for i in range(16)}
    whole = {f"i{i}": float(i < 12) for i in range(50)}
    assert SuspectVerifier()(with_items({1: part, 90: whole})) is None
    found = SuspectVerifier()(with_items({1: part, 90: whole | {f"i{i}": 0.0 for i in range(8, 12)}}))
    assert found is not None and "to 50 % (step 90) on the 16 items that both evaluations have." in found.sentence
    assert SuspectVerifier()(with_items({1: part, 90: {"other": 0.0}})) is None


def test_learning_begins_behind_imitation() -> None:
    """What was imitated is not of reinforcement learning, and an evaluation after the first update is not the base."""
    sft = [MetricLine(step=s, stage="sft", metrics={"loss/total": 2.0, "eval/greedy/all": s / 10}) for s in (1, 2)]
    rl = [MetricLine(step=s, stage="rl", metrics={"reward/mean": 0.5, "eval/greedy/all": 0.9}) for s in (3, 4)]
    history = History.of([*sft, *rl])
    assert (history.learning_from, history.first_update) == (3, 3)
    part = history.learning()
    assert part.stages == (("rl", 3, 4),) and part["eval/greedy/all"].values.tolist() == [0.2, 0.9, 0.9]
    assert not len(part["loss/total"]) and history.supervised_part("loss/total").steps.tolist() == [1, 2]
    given = [MetricLine(step=s, stage="preferences", metrics={"loss/total": 1.0}) for s in (3, 4)]
    assert History.of([*sft, *given]).learning().stages == (("preferences", 3, 4),)


def test_a_few_attempts_that_the_check_doubts_may_be_chance() -> None:
    assert RewardHacking()(changed(check__rollouts=20.0, check__overpaid=0.03)) is None
    assert RewardHacking()(changed(check__rollouts=20.0, check__overpaid=0.0)) is None
    found = RewardHacking(most=0.0)(changed(check__rollouts=20.0, check__overpaid=0.03))
    assert found is not None
    assert found.numbers == pytest.approx({"check/overpaid/start": 0.03, "check/overpaid": 0.03})


def test_flat_held_out_needs_a_rise_in_reward_and_room_to_grow() -> None:
    assert SuspectVerifier()(changed(eval__sampled__all=0.3, reward__mean=0.5)) is None
    assert SuspectVerifier()(changed(eval__sampled__all=0.97)) is None
    greedy = {k: v for k, v in HEALTHY.items() if k != "eval/sampled/all"} | {"eval/greedy/all": 0.4}
    found = SuspectVerifier()(run(greedy))
    assert found is not None
    assert found.numbers["eval/greedy/all"] == 0.4


def test_what_a_learning_rate_destroyed_is_told_once() -> None:
    shown = {"signal__fraction": 0.0, "format__rate": 0.0, "length__truncated": 1.0, "grad__norm": lambda t: 0.3 * (t < 0.1)}
    found = doctor.diagnose(changed(**DESTROYED, **shown, eval__greedy__all=lambda t: 0.4 * (t == 0)))
    assert [f.rule for f in found] == ["LearningRateTooHigh"]
    for healthier in (
        {"kl__base_train": 0.01, "entropy__mean": 0.5},  # the policy is the one of before: the reward broke
        {"reward__mean": lambda t: 0.3 * (t < 0.5)},  # late: something else
        {"reward__mean": lambda t: 0.3 * (t < 0.1 or t > 0.8)},  # it recovered
        {"eval__sampled__all": 0.4},
        {"reward__mean": 0.0},
    ):
        assert LearningRateTooHigh()(changed(**{**DESTROYED, **healthier})) is None, healthier


def test_a_verifier_is_not_suspected_for_levels_that_are_practised_more() -> None:
    """Reward 0.3 to 0.7 at accuracies of 1 and 0 that stay, while the share of the easy level goes from 0.3 to 0.7."""
    levels = {
        "reward__mean": lambda t: 0.3 + 0.4 * t,
        "eval__sampled__all": 0.5,
        "eval__sampled__level_2": 1.0,
        "eval__sampled__level_5": 0.0,
        "curriculum__share__sort__level_2": lambda t: 0.3 + 0.4 * t,
        "curriculum__share__sort__level_5": lambda t: 0.7 - 0.4 * t,
    }
    assert SuspectVerifier()(changed(**levels)) is None
    steady = {"curriculum__share__sort__level_2": 0.3, "curriculum__share__sort__level_5": 0.7}
    found = SuspectVerifier()(changed(**{**levels, **steady}))
    assert found is not None and "curriculum" not in found.action
    other_scale = {"reward__mean": lambda t: 3.0 + 0.4 * t}
    assert SuspectVerifier()(changed(**{**levels, **other_scale})) is not None


def test_faults_that_fall_are_no_rise() -> None:
    assert RisingFaults()(changed(fault__rate=lambda t: 0.05 * (1 - t))) is None


def test_a_batch_that_hangs_and_is_split_counts_once() -> None:
    found = GraderHangs(most=0.001)(changed(verify__hung=0.5))
    assert found is not None
    assert found.numbers["verify/share"] == pytest.approx(0.5 / 64)


def test_what_hangs_in_an_evaluation_is_not_held_against_training() -> None:
    def lines(step: int) -> dict[str, float]:
        if step % 4:
            return {"rollouts/sampled": 8.0}
        return {"rollouts/sampled": 8.0, "verify/hung": 5.0, "verify/retried": 5.0, "time/evaluate": 1.0}

    history = History.of([MetricLine(step=s, stage="rl", metrics=lines(s)) for s in range(1, 41)])
    assert GraderHangs()(history) is None
    each = History.of([MetricLine(step=s, stage="rl", metrics=lines(4 * s)) for s in range(1, 41)])
    assert GraderHangs()(each) is not None


def test_few_hangs_are_borne() -> None:
    assert GraderHangs()(changed(verify__hung=0.5, verify__retried=0.5)) is None


def test_weights_are_unproven_when_nothing_was_recorded() -> None:
    found = UnprovenWeights()(run({"reward/mean": 0.5}, first=7))
    assert found is not None
    assert "From step 7 to 106 it was not proved" in found.sentence


def test_tensors_that_got_a_gradient_at_last_are_not_held_against_a_run() -> None:
    lines = [
        MetricLine(step=s, stage="rl", metrics={"grad/norm": 0.1, **({"grad/untrained": 1.0} if s < 6 else {})})
        for s in range(1, 9)
    ]
    assert UntrainedWeights()(History.of(lines)) is None
    assert UntrainedWeights()(History.of(lines[:5])) is not None


def test_a_step_without_update_needs_no_proof() -> None:
    lines = [
        MetricLine(step=1, stage="rl", metrics={"reward/mean": 0.0, "proof/state": 0.0}),
        *(
            MetricLine(step=s, stage="rl", metrics={"reward/mean": 0.5, "proof/state": 1.0, "grad/norm": 0.1})
            for s in range(2, 9)
        ),
    ]
    assert UnprovenWeights()(History.of(lines)) is None


def test_only_the_reinforced_part_counts_with_the_base_evaluation() -> None:
    warm = [
        MetricLine(step=s, stage="warm-up", metrics={"loss/total": 9.0, "length/truncated": 1.0, "eval/sampled/all": 0.1})
        for s in (1, 2)
    ]
    rl = [MetricLine(step=s, stage="rl", metrics={"length/truncated": 0.0, "proof/state": 1.0}) for s in range(2, 12)]
    part = History.of([*warm, *rl]).learning()
    assert part["length/truncated"].values.max() == 0.0
    assert part["eval/sampled/all"].steps.tolist() == [2]
    assert len(part["loss/total"]) == 0
    assert History.of([*warm, *rl]).supervised_part("loss/total").steps.tolist() == [1, 2]
    assert History.of(warm).learning()["loss/total"].mean == 9.0
    assert doctor.diagnose(History.of([*warm, *rl])) == ()


def test_alarms_come_first() -> None:
    found = doctor.diagnose(changed(loss__total=1e-6, length__truncated=0.5, fault__rate=0.5))
    assert [f.severity for f in found] == [Severity.ALARM, Severity.WARNING, Severity.NOTE]


def test_mean_level_of_the_draw() -> None:
    lines = [
        MetricLine(step=1, stage="rl", metrics={"curriculum/share/a/level_2": 0.5, "curriculum/share/b/level_4": 0.5}),
        MetricLine(step=2, stage="rl", metrics={"curriculum/share/a/level_2": 0.25, "curriculum/share/b/level_4": 0.75}),
        MetricLine(step=3, stage="rl", metrics={"curriculum/share/a/level_2": 1.0}),
    ]
    found = drawn_level(History.of(lines))
    assert (found.steps.tolist(), found.values.tolist()) == ([1, 2], [3.0, 3.5])
    assert len(drawn_level(History.of([]))) == 0


def test_series_windows() -> None:
    history = run({"x": lambda t: t}, steps=100)
    x = history["x"]
    assert (x.window(), x.last(0).steps.tolist(), x.first(2).span) == (10, [], (1, 2))
    assert run({"x": 1.0}, steps=2000)["x"].window() == 50
    assert history.names("x") == ("x",)
    assert history.learning_from == 1
    assert History.of([]).learning_from == 0


@pytest.mark.parametrize(
    "numbers",
    [
        {"help__success": 0.5, "help__success_without": 0.3},  # it succeeds alone
        {"help__success": 0.1, "help__success_without": 0.0},  # nor with help: NoSignal speaks of that
        {"help__success": 0.5},  # nothing tells how it does alone
    ],
    ids=str,
)
def test_help_that_is_no_crutch_is_not_warned_of(numbers: dict[str, float]) -> None:
    assert OnlyWithHelp()(run({"help__share": 0.5, **numbers})) is None


def over_rows(before: float, after: float, held: tuple[int, int], items: int = 40, times: int = 14) -> History:
    """A run that drew 160 rows some times each; so many held-out items were right before and after."""
    scores = {s: {f"i{i}": float(i < right) for i in range(items)} for s, right in zip((0, 99), held, strict=True)}
    error = ((before * (1 - before) + after * (1 - after)) / 160) ** 0.5
    practised = Practised(rows=160, groups=160 * times, before=before, after=after, error=error)
    rising = {s: before + (after - before) * s / 99 for s in range(100)}
    evaluated = {s: {"eval/sampled/all": sum(found.values()) / items} for s, found in scores.items()}
    lines = [MetricLine(step=s, stage="rl", metrics={"reward/mean": r, **evaluated.get(s, {})}) for s, r in rising.items()]
    return replace(History.of(lines), item_scores={"eval/sampled/all": scores}, practised=practised)


def test_rows_learned_by_heart_are_a_finding_of_their_own() -> None:
    """0.30 to 0.63 on 160 rows with 2 and 3 of 40 held-out items: by hand 0.33 - 0.025 less two errors of 0.053 and 0.070."""
    history = over_rows(0.30, 0.63, (2, 3))
    found = Overfitting()(history)
    assert found is not None and found.severity is Severity.ALARM
    assert (
        "160 training rows: drawn 14 times each" in found.sentence and "from 5.0 % (step 0) to 7.5 % (step 99)" in found.sentence
    )
    assert SuspectVerifier(flat=0.1)(history) is None, "one explanation is enough"
    assert SuspectVerifier(flat=0.1)(replace(history, practised=None)) is not None
    assert Overfitting(gap=0.14)(history) is None
    assert "Overfitting" in [f.rule for f in doctor.diagnose(over_rows(0.27, 0.70, (4, 0)))]


@pytest.mark.parametrize(
    "history",
    [
        over_rows(0.30, 0.63, (12, 25)),  # held-out items rise alike
        over_rows(0.30, 0.90, (4, 16)),  # harder ones, which rise less
        over_rows(0.30, 0.40, (2, 2)),  # a rise by chance
        over_rows(0.30, 0.63, (2, 3), times=2),  # too few draws to know a row by heart
        over_rows(0.30, 0.63, (0, 1), items=6),  # too few items
        replace(over_rows(0.30, 0.63, (2, 3)), held_out=False),
        replace(over_rows(0.30, 0.63, (2, 3)), practised=None),
    ],
)
def test_what_is_no_learning_by_heart(history: History) -> None:
    assert Overfitting()(history) is None


def test_a_reward_that_never_has_a_verdict_is_told_while_it_has_none():
    lines = [
        MetricLine(step=s, stage="rl", metrics={"reward/mean": 0.1, **({"reward/silent": 1.0} if 2 <= s < 6 else {})})
        for s in range(1, 9)
    ]
    assert SilentRewards()(History.of(lines)) is None, "it has had one since"
    found = SilentRewards()(History.of(lines[:5]))
    assert found is not None and found.numbers == {"reward/silent": 1.0} and (found.first_step, found.last_step) == (2, 5)
