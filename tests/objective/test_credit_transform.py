"""Transforms of the advantage: difficulty of prompts, weights of rollouts, bonuses, signs, pass@k in closed form."""

import itertools
import math

import numpy as np
import pytest
from credit_batches import after, around, chains, near, per_attempt, tokens, wide
from objective_batches import advantages, tiny

from assay.core.errors import ConfigError
from assay.objective import Center, CreditTerm, Scale
from assay.objective.credit.pass_at_k import PassAtK, PassAtKBonus, pass_at_k
from assay.objective.credit.resample import Resample
from assay.objective.credit.returns import Discount
from assay.objective.credit.transform import (
    AddBonus,
    ClipAdvantage,
    ConfidenceBonus,
    PositivePart,
    ScaleByPrompt,
    ScaleBySample,
    SignSplit,
    confidence,
)
from assay.testing.objective import check_objective, check_term

__all__ = ["wide"]


@pytest.mark.parametrize(("rule", "easy", "hard"), [("power", 0.25, 0.85), ("exp", 1.2214, 2.2255), ("log", 0.1985, 1.5141)])
def test_difficulty_of_univg(rule: str, easy: float, hard: float) -> None:
    near(ScaleByPrompt(rule=rule).weight(np.array([0.8, 0.2])), [easy, hard])
    values = ScaleByPrompt(rule=rule).weight(np.linspace(0, 1, 50))
    assert (np.diff(values) <= 0).all()
    assert (values >= 0).all()
    batch = tiny([0.1, 0.3, 0.9, 0.7], [0, 0, 1, 1])
    near(advantages(batch, Center(), ScaleByPrompt(rule=rule)), [-0.1 * hard, 0.1 * hard, 0.1 * easy, -0.1 * easy], 5e-5)


def test_difficulty_at_its_edges() -> None:
    assert ScaleByPrompt(rule="log").weight(np.array([0.99, 1.0])).tolist() == [0.0, 0.0]
    assert ScaleByPrompt(rule="power").weight(np.array([1.2])).tolist() == [0.0]
    near(ScaleByPrompt(rule="power", gamma=2.0).weight(np.array([0.05])), [1.0], 1e-12)
    assert math.isfinite(ScaleByPrompt(rule="log").weight(np.array([-5.0]))[0])


def test_difficulty_by_a_component_or_a_column() -> None:
    batch = tiny([1, 0, 1, 0], [0, 0, 1, 1], difficulty=[2.0, 2.0, 1.0, 1.0], **{"components/iou": [0.3, 0.1, 0.7, 0.9]})
    near(
        advantages(batch, Center(), ScaleByPrompt(rule="power", component="iou")), np.array([0.85, -0.85, 0.25, -0.25]) / 2, 1e-12
    )
    near(advantages(batch, Center(), ScaleByPrompt(rule="column", column="difficulty")), [1, -1, 0.5, -0.5], 1e-12)
    near(tokens(batch, Discount(0.5), Center(), ScaleByPrompt(rule="column", column="difficulty"))[0], [1.0], 1e-12)
    with pytest.raises(ConfigError, match="difficulty=-1"):
        advantages(tiny([1, 0], difficulty=[-1.0, 1.0]), Center(), ScaleByPrompt(rule="column", column="difficulty"))


def test_weights_of_attempts_are_those_of_grpo_s() -> None:
    near([_sigmoid(0.8) / _sigmoid(0.5), _sigmoid(1.2) / _sigmoid(0.6)], [1.1085, 1.1903])
    # Means 0.5 and 0.6 over the batch; the first rollout has 0.8 and 1.2.
    batch = tiny([1, 0], hardness=[0.8, 0.2], responsiveness=[1.2, 0.0])
    made = advantages(batch, Center(), Scale(eps=0.0), ScaleBySample())
    near(made[0] * math.sqrt(2), 1.3194)
    equal = tiny([1, 0], hardness=[0.3, 0.3], responsiveness=[0.9, 0.9])
    near(advantages(equal, Center(), ScaleBySample()), advantages(equal, Center()), 1e-12)
    near(advantages(batch, Center(), ScaleBySample(columns=("hardness",), rule="value")), [0.4, -0.1], 1e-12)
    near(advantages(batch, Center(), ScaleBySample(columns=("hardness",), rule="value", low=0.5, high=0.6)), [0.3, -0.25], 1e-12)


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_a_bonus_stays_behind_the_baseline() -> None:
    batch = tiny([1, 0], extra=[0.5, 0.5])
    near(advantages(batch, Center(), AddBonus("extra", coef=2.0)), [1.5, 0.5], 1e-12)
    near(tokens(batch, Discount(), Center(), AddBonus("extra"))[1], [0.0], 1e-12)


def confident(rewards: list[float], prompt: float = 0.3162277660168379) -> object:
    # The two least likely of five answer tokens have probabilities .5 and .2: confidence sqrt(.1).
    logp = [np.log([0.9, 0.5, 0.8, 0.2, 0.9]).tolist(), np.log([0.9] * 5).tolist()]
    return chains(rewards, [[1] * 5] * 2, columns={"logp_old": logp}, prompt_confidence=[prompt] * 2)


def test_confidence_of_arm() -> None:
    assert confidence(np.log([0.9, 0.5, 0.8, 0.2, 0.9]), 0.4) == pytest.approx(math.sqrt(0.1))
    assert confidence(np.log([0.4, 0.5]), 0.1) == pytest.approx(0.4)  # at least one token
    assert confidence(np.array([])) == 1.0
    term = ConfidenceBonus(coef=2.0, fraction=0.4)
    near(advantages(confident([1, 0]), Center(), term), [0.5, -0.5 + 2 * (math.sqrt(0.1) - 0.9)], 1e-12)
    near(advantages(confident([0, 0], 0.9), Center(), term), [0, 0], 0)  # no success: as it was
    near(advantages(confident([1, 0], 0.9), Center(), ConfidenceBonus(fraction=0.4)), [0.5 + 0.9 - math.sqrt(0.1), -0.5], 1e-12)
    faulty = chains(
        [1.0, 0.0], [[1], [1]], columns={"logp_old": [[-1.0], [-1.0]]}, prompt_confidence=[0.5, 0.5], valid=[False, True]
    )
    near(after(faulty, ConfidenceBonus()).advantage[1], 0, 0)


def test_parts_bounds_and_signs() -> None:
    batch = chains([1.0, 0.0, 0.5], [[1, 1], [1], [1]])
    record = after(batch, Center(), PositivePart())
    near(record.advantage, [0.5, 0, 0], 1e-12)
    near(record.keep, [1, 0, 1], 0)
    near(after(batch, Center(), PositivePart(drop=False)).keep, [1, 1, 1], 0)
    near(advantages(batch, Center(), ClipAdvantage(low=-0.1, high=0.2)), [0.2, -0.1, 0], 1e-12)
    near(advantages(batch, Center(), SignSplit(positive=1.0, negative=0.5)), [0.5, -0.25, 0], 1e-12)
    per_token = (Discount(0.5), Center())  # [0.0, 0.5 | -0.5 | 0.0]
    near(tokens(batch, *per_token, PositivePart())[1], [0.0], 0)
    near(tokens(batch, *per_token, ClipAdvantage(high=0.2))[0], [0.0, 0.2], 1e-12)
    near(tokens(batch, *per_token, SignSplit(negative=0.0))[1], [0.0], 0)


@pytest.mark.parametrize(("n", "c", "k"), [(10, 2, 4), (8, 1, 2), (6, 4, 2), (6, 2, 1), (5, 3, 2)])
def test_pass_at_k_over_all_subsets(n: int, c: int, k: int) -> None:
    """The mean, over the subsets that a rollout is in, of the normalised success of the subset."""
    rewards = np.array([1.0] * c + [0.0] * (n - c))
    subsets = list(itertools.combinations(range(n), k))
    solved = np.array([rewards[list(s)].max() for s in subsets])
    normal = (solved - solved.mean()) / solved.std()
    expected = [np.mean([x for s, x in zip(subsets, normal, strict=True) if i in s]) for i in range(n)]
    right, wrong = pass_at_k(n, c, k)
    near([right] * c + [wrong] * (n - c), expected, 1e-12)
    assert c * right + (n - c) * wrong == pytest.approx(0, abs=1e-12)


def test_pass_at_k_at_its_edges() -> None:
    near(pass_at_k(10, 2, 4), [0.7071, -0.1768])
    assert pass_at_k(10, 0, 4) == pass_at_k(10, 10, 4) == pass_at_k(10, 7, 4) == (0.0, 0.0)
    assert pass_at_k(3, 1, 4) == pass_at_k(0, 0, 1) == (0.0, 0.0)
    near(pass_at_k(4, 1, 1), [math.sqrt(3), -1 / math.sqrt(3)], 1e-12)  # k = 1 is GRPO with the population's deviation


def test_pass_at_k_bonus_of_srpo() -> None:
    rewards = [1, 1, 0.707] + [0] * 7
    batch = tiny(rewards)
    near(advantages(batch, PassAtK(k=4)), [0.7071, 0.7071] + [-0.1768] * 8)
    near(advantages(batch, Center(), Scale(eps=0.0), PassAtKBonus(k=4)), [2.3530] * 2 + [0.8079] + [-0.7877] * 7)
    missed = tiny([0.707, 0.5] + [0] * 8)
    near(advantages(missed, Center(), PassAtKBonus(k=4)), advantages(missed, Center()), 0)
    near(
        advantages(batch, Center(), PassAtKBonus(k=4, coef=0.5)), advantages(batch, Center()) + 0.5 * advantages(batch, PassAtK())
    )
    faulty = tiny([*rewards, 1], valid=[True] * 10 + [False])
    near(advantages(faulty, PassAtK(k=4))[:10], advantages(batch, PassAtK(k=4)), 0)
    near(advantages(batch, Resample(rule="max_random"), PassAtK(k=4)), advantages(batch, PassAtK(k=4)), 0)


@pytest.mark.parametrize(
    "term",
    [
        ScaleByPrompt(),
        ScaleByPrompt(rule="log", component="correct"),
        ScaleByPrompt(rule="column", column="difficulty"),
        ScaleBySample(),
        ScaleBySample(rule="value"),
        AddBonus("extra"),
        ConfidenceBonus(),
        PositivePart(),
        PositivePart(drop=False),
        ClipAdvantage(high=0.5),
        SignSplit(negative=0.5),
        PassAtK(k=2),
        PassAtKBonus(k=2),
    ],
)
def test_laws(term: CreditTerm, wide: None, seeds: range) -> None:
    check_term(term, seeds)


def test_laws_of_chains(wide: None, seeds: range) -> None:
    check_objective(
        around(Discount(0.9), Center(), Scale(), ScaleByPrompt(), SignSplit(negative=0.5), ClipAdvantage(high=1.0)), seeds
    )
    check_objective(around(Center(), Scale("batch"), ScaleBySample(), AddBonus("extra"), PositivePart()), seeds)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ScaleByPrompt(rule="expp"), "did you mean 'exp'"),
        (lambda: ScaleByPrompt(rule="column"), "a column belongs to"),
        (lambda: ScaleByPrompt(column="difficulty"), "a column belongs to"),
        (lambda: ScaleByPrompt(rule="power", gamma=0.0), "gamma"),
        (lambda: ScaleBySample(columns=()), "columns is empty"),
        (lambda: ScaleBySample(rule="valeu"), "did you mean 'value'"),
        (lambda: ScaleBySample(low=1.0, high=0.5), "low < high"),
        (lambda: AddBonus("extra", coef=0.0), "AddBonus.coef"),
        (lambda: ConfidenceBonus(coef=0.0), "ConfidenceBonus.coef"),
        (lambda: ConfidenceBonus(fraction=0.0), "fraction"),
        (lambda: ClipAdvantage(), "without bounds"),
        (lambda: ClipAdvantage(low=0.5), "low <= 0 <= high"),
        (lambda: ClipAdvantage(low=0.0, high=0.0), "not both 0"),
        (lambda: SignSplit(negative=-1.0), "turns signs around"),
        (lambda: SignSplit(), "two factors"),
        (lambda: PassAtK(k=0), "PassAtK.k=0"),
        (lambda: PassAtKBonus(k=0), "PassAtKBonus.k=0"),
        (lambda: PassAtKBonus(coef=0.0), "PassAtKBonus.coef"),
    ],
)
def test_bad_settings_are_named(make: object, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()  # type: ignore[operator]


def test_scopes() -> None:
    assert ScaleByPrompt().scope.value == "group"
    assert ScaleByPrompt(rule="column", column="x").scope.value == "sequence"
    assert (ScaleBySample().scope.value, ScaleBySample(rule="value").scope.value) == ("batch", "sequence")
    assert ConfidenceBonus().scope.value == "group"
    assert ScaleByPrompt(rule="column", column="x").rollout_columns == AddBonus("x").rollout_columns == ("x",)
    assert (ScaleBySample().rollout_columns, ConfidenceBonus().rollout_columns) == (
        ("hardness", "responsiveness"),
        ("prompt_confidence",),
    )
    assert (PassAtK(k=3).min_group, PassAtK().scope.value, PassAtKBonus().kind, PassAtK().kind) == (
        4,
        "group",
        "transform",
        "baseline",
    )


def test_tokens_keep_what_a_transform_adds() -> None:
    batch = chains([1.0, 0.0], [[1, 1], [1]], extra=[0.25, 0.0])
    record = after(batch, Discount(0.5), Center(), AddBonus("extra"))
    near(per_attempt(batch, record)[0], [0.25, 0.75], 1e-12)
