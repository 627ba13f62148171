"""Shaping: by class, by length, by repetition, by judges and columns. The task's metric stays what it is."""

import math

import numpy as np
import pytest
from credit_batches import after, around, chains, near, wide
from objective_batches import advantages, tiny

from assay.core.errors import ConfigError
from assay.objective import Center, CreditTerm, DropZeroVariance, KlInReward, Overlong, Scale
from assay.objective.credit.length import CosineLength, CostInGroup, LengthInGroup, TruncatedReward
from assay.objective.credit.repetition import LoopPenalty, NgramPenalty, looped_share, repeated_share
from assay.objective.credit.shape import Bonus, PairwiseWin, Rescale, ScaleByClass
from assay.testing.objective import check_term

__all__ = ["wide"]


def test_cosine_of_length_is_trls() -> None:
    batch = tiny([1, 1, 0, 0, 1], length=[25, 75, 25, 75, 400])
    record = after(batch, CosineLength(limit=100))
    near(record.reward, [0.92678, 0.57322, -0.92678, -0.57322, 0.5], 1e-5)
    near(record.metric, [1, 1, 0, 0, 1], 0)
    near(after(tiny([1, 0], length=[50, 50]), CosineLength(limit=100)).reward, [0.75, -0.75], 1e-12)


def test_length_against_the_group() -> None:
    batch = tiny([1, 1, 0, 0, 1, 1], [0, 0, 0, 0, 1, 1], length=[10, 30, 10, 30, 7, 7])
    near(after(batch, LengthInGroup()).reward, [1.5, 0.5, 0, -0.5, 1, 1], 1e-12)
    near(after(batch, LengthInGroup(coef=0.1)).reward, [1.05, 0.95, 0, -0.05, 1, 1], 1e-12)
    lone = tiny([1, 1], [0, 1], length=[10, 30], valid=[True, False])
    near(after(lone, LengthInGroup()).reward[:1], [1], 0)


def test_costs_in_proportion_to_success() -> None:
    batch = tiny([1, 0, 1], length=[10, 20, 20], turns=[1, 2, 4])
    term = CostInGroup(costs=(("length", 0.25), ("turns", 0.1)))
    cost = np.array([0.25 * 0.5 + 0.1 * 0.25, 0.25 + 0.05, 0.25 + 0.1]) * 2 / 3
    near(after(batch, term).reward, np.array([1, 0, 1]) - cost, 1e-12)
    near(after(tiny([0, 0], length=[5, 50]), CostInGroup()).reward, [0, 0], 0)
    near(after(tiny([1, 1], length=[0, 0]), CostInGroup()).reward, [1, 1], 0)
    equal = tiny([1, 0, 1], length=[10, 10, 10])
    near(advantages(equal, CostInGroup(), Center()), advantages(equal, Center()), 1e-12)


def test_truncated_answers_are_paid_less() -> None:
    batch = tiny([1, 1, -1], truncated=[True, False, True])
    near(after(batch, TruncatedReward()).reward, [0, 1, 0], 0)
    near(after(batch, TruncatedReward(0.5)).reward, [0.5, 1, -0.5], 0)


LOOP = [ord(c) for c in "xabcabcabc"]


def looping(truncated: list[bool]) -> object:
    masks = [[1] * 10, [1] * 10, [1] * 4]
    ids = [LOOP, LOOP, [1, 2, 3, 4]]
    return chains([1.0, 1.0, 0.0], masks, columns={"ids": ids}, truncated=truncated)


def test_a_loop_at_the_end_of_a_cut_off_answer_costs() -> None:
    record = after(looping([True, False, True]), LoopPenalty())
    near(record.reward, [0.9, 1, 0], 1e-12)
    near(record.metric, [1, 1, 0], 0)
    assert record.metrics["credit/looped"] == 1
    near(after(looping([True, False, True]), LoopPenalty(graded=True)).reward, [1 - 0.1 * 0.9, 1, 0], 1e-12)
    near(after(looping([True, False, True]), LoopPenalty(least=10)).reward, [1, 1, 0], 0)
    near(after(looping([True, False, True]), LoopPenalty(repeats=4)).reward, [1, 1, 0], 0)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("xabcabcabc", 0.9),
        ("abcabcab", 1.0),
        ("abcdef", 0.0),
        ("abcdd", 0.4),
        ("aaaa", 1.0),
        ("abab", 1.0),
        ("", 0.0),
        ("a", 0.0),
    ],
)
def test_looped_share(text: str, share: float) -> None:
    assert looped_share(np.array(list(text))) == pytest.approx(share)


def test_looped_share_against_a_plain_search() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        text = rng.integers(0, 2, int(rng.integers(0, 12)))
        n, best = len(text), 0
        for period in range(1, n // 2 + 1):
            same = period
            while same < n and text[n - 1 - same] == text[n - 1 - same + period]:
                same += 1
            best = max(best, same if same >= 2 * period else 0)
        assert looped_share(text) == pytest.approx(best / n if n else 0.0)


def test_a_loop_shifts_the_whole_group_and_resurrects_none() -> None:
    batch = looping([True, False, False])
    plainly, shaped = advantages(batch, Center()), advantages(batch, LoopPenalty(), Center())
    assert (plainly != shaped).all()
    solved = chains([1.0, 1.0], [[1] * 10, [1] * 4], columns={"ids": [LOOP, [1, 2, 3, 4]]}, truncated=[True, False])
    record = after(solved, DropZeroVariance(), LoopPenalty(), Center())
    near(record.keep, [0, 0], 0)
    later = after(solved, LoopPenalty(), DropZeroVariance(), Center())
    near(later.keep, [0, 0], 0)


def test_repeated_grams_are_trls() -> None:
    assert repeated_share(np.array([1, 2, 3, 4]), 2) == 0
    assert repeated_share(np.array([5] * 5), 2) == 0.75
    assert repeated_share(np.array([5]), 2) == 0
    batch = chains([1.0, 1.0], [[1] * 4, [1, 1, 0, 1, 1, 1]], columns={"ids": [[1, 2, 3, 4], [5, 5, 9, 5, 5, 5]]})
    near(after(batch, NgramPenalty(n=2)).reward, [1, 0.25], 1e-12)
    near(after(batch, NgramPenalty(n=2, penalty=0.5)).reward, [1, 0.625], 1e-12)


def test_pairwise_win_averages_both_orders() -> None:
    batch = tiny([0, 0, 0], win=[0.8, 0.6, 0.5], loss=[0.2, 0.6, 0.5])
    near(after(batch, PairwiseWin()).reward, [0.8, 0.5, 0.5], 1e-12)  # the first judge knows no position
    near(after(batch, PairwiseWin(centre=0.5)).reward, [0.3, 0, 0], 1e-12)
    near(after(batch, PairwiseWin(loss=None)).reward, [0.8, 0.6, 0.5], 1e-12)
    same = tiny([0, 0], win=[0.7, 0.7], loss=[0.1, 0.1])
    near(advantages(same, PairwiseWin(), Center()), [0, 0], 0)


def test_class_rewards_of_w_grpo() -> None:
    one, seven = [1] + [0] * 7, [1] * 7 + [0]
    chain = [ScaleByClass(), Center(), Scale(ddof=0, eps=0.0)]
    near(advantages(tiny(one), *chain), [2.6458] + [-0.3780] * 7)
    near(advantages(tiny(seven), *chain), [0.3780] * 7 + [-2.6458])
    both = tiny(one + seven, [0] * 8 + [1] * 8)
    near(np.abs(advantages(both, ScaleByClass(), Center("batch"), Scale("batch", ddof=0, eps=0.0))), [1] * 16, 1e-12)
    # The group's standard deviation cancels lambda exactly; a baseline alone does not: A = (1 + lambda) (y - p).
    near(after(tiny(one), ScaleByClass(wrong=-3.0), *chain[1:]).advantage, advantages(tiny(one), *chain), 1e-12)
    near(advantages(tiny(one), ScaleByClass(wrong=-3.0), Center()), 4 * (np.array(one) - 1 / 8), 1e-12)


def test_columns_and_bounds() -> None:
    batch = tiny([1, 0], extra=[2.0, -1.0])
    near(after(batch, Bonus("extra", coef=0.5)).reward, [2, -0.5], 0)
    near(after(tiny([30, -30, 1]), Rescale(scale=2.0, shift=1.0, low=-20.0, high=20.0)).reward, [20, -20, 3], 0)


def test_shapes_add_up_and_leave_the_steps() -> None:
    batch = chains(
        [1.0, 0.0],
        [[1, 1], [1]],
        columns={"logp_old": [[-1.0, -1.0], [-1.0]], "logp_ref": [[-2.0, -1.0], [-1.0]]},
        length=[8, 1],
    )
    record = after(batch, KlInReward(coef=0.1), Overlong(limit=8, cache=4))
    near(record.reward, [1 - 0.1 - 1, 0], 1e-12)
    assert record.steps is not None
    near(record.steps[batch.token("mask")], [-0.1, 0, 0], 1e-12)


def test_a_faulty_attempt_has_no_part() -> None:
    batch = tiny([1, 0, 9], length=[10, 20, 10000], valid=[True, True, False], turns=[1, 1, 1])
    near(after(batch, LengthInGroup()).reward[:2], [1.5, -0.5], 1e-12)
    near(after(batch, CostInGroup()).reward[:2], [1 - 0.5 * 0.125, -0.5 * 0.25], 1e-12)
    near(after(tiny([1, 0], extra=[1.0, math.nan], valid=[True, False]), Bonus("extra")).reward[0], 2, 0)


@pytest.mark.parametrize(
    "term",
    [
        Rescale(scale=0.5, high=0.4),
        Bonus("extra"),
        PairwiseWin(),
        PairwiseWin(loss=None, centre=0.5),
        ScaleByClass(),
        TruncatedReward(),
        CosineLength(limit=6),
        LengthInGroup(),
        CostInGroup(costs=(("length", 0.25), ("turns", 0.1))),
        LoopPenalty(),
        NgramPenalty(n=1),
    ],
)
def test_laws(term: CreditTerm, wide: None, seeds: range) -> None:
    assert term.kind == "shape"
    check_term(term, seeds)


def test_shaped_rewards_are_one_over_ranks(wide: None) -> None:
    from assay.testing.objective import over_ranks

    rewards, length = [1.0, 0.0, 1.0, 0.0], [4, 8, 2, 6]
    whole = advantages(tiny(rewards, length=length), LengthInGroup(), CostInGroup())

    def rank(number: int, reducer: object) -> np.ndarray:
        part = slice(2 * number, 2 * number + 2)
        objective = around(LengthInGroup(), CostInGroup())
        batch = tiny(rewards[part], length=length[part])
        return objective.compile(reducer=reducer).credit(batch).rollout("advantage")  # type: ignore[arg-type]

    near(np.concatenate(over_ranks(rank, 2)), whole, 1e-12)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Rescale(scale=0.0), "positive scale"),
        (lambda: Rescale(shift=math.inf), "finite shift"),
        (lambda: Rescale(low=1.0, high=1.0), "low < high"),
        (lambda: Bonus("extra", coef=0.0), "Bonus.coef"),
        (lambda: ScaleByClass(wrong=1.0), "worth more"),
        (lambda: TruncatedReward(1.0), "TruncatedReward.factor"),
        (lambda: CosineLength(limit=0), "CosineLength.limit"),
        (lambda: LengthInGroup(coef=0.0), "LengthInGroup.coef"),
        (lambda: CostInGroup(costs=()), "at least one column"),
        (lambda: CostInGroup(costs=(("length", 0.0),)), "positive weight"),
        (lambda: LoopPenalty(penalty=0.0), "LoopPenalty.penalty"),
        (lambda: LoopPenalty(repeats=1), "LoopPenalty.repeats"),
        (lambda: LoopPenalty(least=1), "LoopPenalty.least"),
        (lambda: NgramPenalty(penalty=0.0), "positive penalty"),
        (lambda: NgramPenalty(n=0), "n of 1"),
    ],
)
def test_bad_settings_are_named(make: object, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()  # type: ignore[operator]


def test_what_shapes_read() -> None:
    assert PairwiseWin().rollout_columns == ("win", "loss")
    assert PairwiseWin(loss=None).rollout_columns == ("win",)
    assert LoopPenalty().needs == ("ids",)
    assert LoopPenalty().rollout_columns == ("truncated",)
    assert CostInGroup(costs=(("turns", 0.1),)).rollout_columns == ("turns",)
    assert (Bonus("x").rollout_columns, TruncatedReward().rollout_columns) == (("x",), ("truncated",))
    assert (
        LengthInGroup().rollout_columns
        == CosineLength(limit=4).rollout_columns
        == Overlong(limit=4, cache=2).rollout_columns
        == ("length",)
    )
    assert (LengthInGroup().scope.value, CostInGroup().scope.value) == ("group", "group")
