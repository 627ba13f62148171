"""Phases over rows (DRIVE, QwenLong-L1, Vision-G1, W-GRPO's pair) and PCL's values of prompts: sheets, laws, resume."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from assay.core import FrozenMap, Score, Task
from assay.core.canon import canonical
from assay.core.errors import CheckpointError, ConfigError
from assay.core.group import Outcome
from assay.core.score import Fault
from assay.guide import Bell, HardFocus, HistoryRows, PromptPair, PromptValue, Retrospective, Rounds, RowBook, RowRule
from assay.guide.prompt_values import PromptValueCurriculum, chances_of_selection
from assay.tasks import Rows
from assay.testing import as_outcomes, check_curriculum, graded_group

ARMS = {"a": (1, 2), "b": (1,)}


def group(arm: str, level: int, index: int, *values: float | Score):
    public = FrozenMap({"prompt": "?"})
    return graded_group(Task(id="t", domain="d", arm=arm, level=level, split="train", index=index, public=public), values)


def practise(book: RowBook, success: Callable[[int], float], batches: int = 1, n: int = 4) -> set[int]:
    """Batches in which each row drawn succeeds as often as ``success`` says; the rows that were drawn."""
    drawn: set[int] = set()
    for _ in range(batches):
        rows = [(d.arm, d.level, d.index) for d in book.draw(n) if d.index is not None]
        drawn |= {book.rows.index(row) for row in rows}
        groups = [
            group(*row, *([1.0] * round(8 * success(i))), *([0.0] * (8 - round(8 * success(i)))))
            for row in rows
            for i in [book.rows.index(row)]
        ]
        book.observe(as_outcomes(groups))
    return drawn


@pytest.mark.parametrize(
    "spec",
    [
        HardFocus(pool=3, warm=1, sizes=(4, 2), batches=(1, 1)),
        Retrospective(pool=3, batches=1, carry=1),
        Retrospective(pool=2, bounds=(1, 2), batches=1),
        Rounds(pool=3, batches=1),
        PromptPair(pool=2, probes=1),
        PromptPair(pool=2, probes=1, hard_levels=(1,)),
        PromptValue(pool=5),
        PromptValue(pool=3, candidates=1),
        PromptValue(pool=2, candidates=50, learning_rate=1.0),
    ],
)
@pytest.mark.parametrize("arms", [ARMS, {"one": (1,)}])
def test_they_keep_the_laws_of_curricula(spec: RowRule | PromptValue, arms: dict[str, tuple[int, ...]]) -> None:
    check_curriculum(spec, arms, seed=1, draws=800)


# ---- phases -----------------------------------------------------------------------------------------------------------


def test_drive_keeps_nested_sets_of_the_hardest_rows() -> None:
    """72, 50 and 25 of 90: each set within the one before it, none of the kept easier than one that went."""
    spec = HardFocus(pool=90, warm=3, batches=(9, 7, 4))
    book = spec.build({"a": (1,)}, seed=0)
    assert practise(book, lambda i: (i % 9) / 8, 3, n=30) == set(range(90))
    kept = [set(range(90))]
    for size, batches in zip(spec.sizes, spec.batches, strict=True):
        now = set(np.flatnonzero(book.active).tolist())
        assert len(now) == size and now < kept[-1]
        assert max(i % 9 for i in now) <= min(i % 9 for i in kept[-1] - now)
        kept.append(now)
        assert practise(book, lambda i: (i % 9) / 8, batches, n=12) <= now
    assert book.phase == 3 and set(np.flatnonzero(book.active).tolist()) == kept[-1]


def test_rows_that_were_never_solved_stay_only_where_they_may() -> None:
    for unsolved, wanted in ((True, {0, 1}), (False, {1, 2})):
        book = HardFocus(pool=4, warm=1, sizes=(2,), batches=(1,), unsolved=unsolved).build({"a": (1,)}, seed=0)
        practise(book, lambda i: i / 4)
        assert set(np.flatnonzero(book.active).tolist()) == wanted
    stuck = HardFocus(pool=2, warm=1, sizes=(2,), batches=(1,), unsolved=False).build({"a": (1,)}, seed=0)
    practise(stuck, lambda i: 0.0, 3)
    assert stuck.phase == 0  # nobody is left to choose from: it goes on with all


def test_retrospective_phases_carry_the_hard_rows_and_never_one_that_was_always_right() -> None:
    """Lengths 20,000 and 20,001 fall in phases 1 and 2; means (0, .25, .5) are carried in this order, 1 never is."""
    lengths = {"doc": (20_000, 20_001, 60_000, 60_001)}
    spec = Retrospective(pool=4, bounds=(20_000, 60_000), batches=2, carry=3)
    book = spec.build(lengths, seed=0)
    assert spec.phase_of(book).tolist() == [0] * 4 + [1] * 8 + [2] * 4
    assert practise(book, lambda i: (1.0, 0.25, 0.0, 0.5)[i % 4], 2) == set(range(4))
    assert set(np.flatnonzero(book.active).tolist()) == {1, 2, 3, *range(4, 12)}
    few = Retrospective(pool=4, bounds=(20_000, 60_000), batches=1, carry=1).build(lengths, seed=0)
    practise(few, lambda i: (1.0, 0.25, 0.0, 0.5)[i % 4])
    assert set(np.flatnonzero(few.active).tolist()) == {2, *range(4, 12)}
    practise(book, lambda i: 0.0, 9)
    assert book.phase == 1  # rows beyond the last bound are in no phase


def test_rounds_practise_what_this_rounds_policy_solves_sometimes() -> None:
    """Of five rollouts 0 to 5 right, [.2, .8] keeps 1 to 4; the next round asks the policy of that round."""
    book = Rounds(pool=6, batches=2).build({"a": (1,)}, seed=0)
    success = {i: i / 5 for i in range(6)}

    def five(rows: list[int]) -> None:
        book.observe(
            as_outcomes([group("a", 1, i, *([1.0] * round(5 * success[i])), *([0.0] * round(5 - 5 * success[i]))) for i in rows])
        )

    five(list(range(6)))
    assert np.flatnonzero(book.active).tolist() == [1, 2, 3, 4] and book.phase == 1
    success = {i: (i + 1) / 5 if i < 5 else 0.0 for i in range(6)}
    five([1, 2])
    five([3, 4])
    assert book.phase == 2 and book.active.all()
    five(list(range(6)))
    assert np.flatnonzero(book.active).tolist() == [0, 1, 2, 3]
    hopeless = Rounds(pool=2).build({"a": (1,)}, seed=0)
    practise(hopeless, lambda i: float(i) * 0.1)
    assert np.flatnonzero(hopeless.active).tolist() == [1]  # the nearest to the band


def test_rounds_give_each_arm_the_same_share() -> None:
    book = Rounds(pool=3).build({"a": (1, 2), "b": (1,)}, seed=0)
    practise(book, lambda i: 0.5, 3)
    metrics = book.metrics()
    assert metrics["curriculum/share/b/level_1"] == pytest.approx(0.5) and metrics["curriculum/phase"] == 1.0


def test_the_pair_is_the_hardest_solvable_and_the_easiest_brittle_row_chosen_once() -> None:
    book = PromptPair(pool=5, probes=2).build({"a": (1,)}, seed=0)
    rates = (0.0, 0.125, 0.5, 0.875, 1.0)
    practise(book, lambda i: rates[i], 6, n=5)
    assert practise(book, lambda i: 1.0, 3, n=2) == {1, 3} and book.phase == 1
    lone = PromptPair(pool=2, probes=1).build({"a": (1,)}, seed=0)
    practise(lone, lambda i: float(i), 4)
    assert lone.phase == 0  # none is solved sometimes: all are tried again
    practise(lone, lambda i: 0.5, 8)
    assert lone.phase == 1


def test_each_of_the_pair_is_sought_in_its_own_pool() -> None:
    """Rows 0 and 1 are of level 1, 2 and 3 of level 2, 4 and 5 of level 3: hard from 3, easy from 1, and 2 is not tried."""
    book = PromptPair(pool=2, probes=1, hard_levels=(3,), easy_levels=(1,)).build({"a": (1, 2, 3)}, seed=0)
    rates = (0.25, 0.875, 0.125, 0.875, 0.5, 0.25)
    assert practise(book, lambda i: rates[i], 2) == {0, 1, 4, 5} and book.phase == 1
    assert practise(book, lambda i: 1.0, 2, n=2) == {1, 5}
    easy = PromptPair(pool=1, probes=1, hard_levels=(2,), easy_levels=(1,)).build({"a": (1, 2)}, seed=0)
    practise(easy, lambda i: float(i == 0) or 0.5, 2)
    assert easy.phase == 0  # the easy pool has no brittle row
    with pytest.raises(ConfigError, match=r"hard_levels=\(9,\)"):
        PromptPair(hard_levels=(9,)).build({"a": (1, 2)}, seed=0).draw(1)


def test_a_phase_continues_after_a_state_was_saved() -> None:
    for spec in (
        HardFocus(pool=3, warm=2, sizes=(2,), batches=(2,)),
        Retrospective(pool=2, batches=2),
        Rounds(pool=2, batches=2),
    ):
        book = spec.build(ARMS, seed=3)
        for _ in range(6):
            copy = spec.build(ARMS, seed=3)
            copy.load_state_dict(json.loads(canonical(book.state_dict())))
            assert copy.state_dict() == book.state_dict()
            assert practise(copy, lambda i: (i % 3) / 2) == practise(book, lambda i: (i % 3) / 2)


def test_a_state_of_before_there_were_phases_chooses_from_its_histories() -> None:
    spec = HistoryRows(pool=2, epochs=2, keep=1)
    book = spec.build({"a": (1,)}, seed=0)
    for success in (0.0, 1.0):
        book.observe(as_outcomes([group("a", 1, 0, 1.0), group("a", 1, 1, success)]))
    old = {name: value for name, value in book.state_dict().items() if name not in ("phase", "batches")}
    copy = spec.build({"a": (1,)}, seed=0)
    copy.load_state_dict(old)
    assert copy.draw(4) == book.draw(4)


def test_a_pool_is_no_larger_than_the_source() -> None:
    source = Rows([{"prompt": f"{n}?", "answer": "1", "level": 1 + n % 2} for n in range(5)], test_share=0.0)
    for spec in (Bell(pool=64), PromptValue(pool=64)):
        book = spec.build(source.arms(), seed=0)
        book.read_tasks(source)
        assert sorted({(d.level, d.index) for d in book.draw(20)}) == [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1)]
        empty = spec.build({"rows": (7,)}, seed=0)
        with pytest.raises(ConfigError, match="no training row"):
            empty.read_tasks(source)


def test_a_bell_follows_the_order_that_curation_wrote() -> None:
    ranks = {"a?": 2, "b?": 0, "c?": 1}
    rows = [{"prompt": prompt, "answer": "1", "curate": {"angle_rank": rank}} for prompt, rank in ranks.items()]
    source = Rows(rows, test_share=0.0)
    book = Bell(order="angle_rank", sigma=0.1).build(source.arms(), seed=0)
    book.read_tasks(source)
    prompts = [source.task(*row[:2], "train", row[2]).public["prompt"] for row in book.rows]
    assert [int(rank) for rank in book.rank] == [ranks[prompt] for prompt in prompts]
    assert prompts[int(np.argmax(book.propensities()))] == "b?"
    with pytest.raises(ConfigError, match="has no score 'angle'"):
        Bell(order="angle").build(source.arms(), seed=0).read_tasks(source)


def test_the_angles_of_a_batch_move_the_bell_beside_its_accuracy() -> None:
    rows = [{"prompt": f"{i}?", "answer": "1", "curate": {"angle": angle}} for i, angle in enumerate((0.1, 0.3, 0.8))]
    source = Rows(rows, test_share=0.0)
    angle = {str(row["prompt"]): row["curate"]["angle"] for row in rows}
    book = Bell(angle="angle", stride=10.0).build(source.arms(), seed=0)
    book.read_tasks(source)
    at = {source.task(*row[:2], "train", row[2]).public["prompt"]: row for row in book.rows}
    assert angle.keys() == at.keys()
    batch = as_outcomes([group(*at["0?"], 1.0), group(*at["1?"], 0.0)])
    book.observe(batch)
    assert book.centre == pytest.approx(10.0 * np.tanh(2.0 * 0.2))  # accuracy is at its target, and the mean angle 0.2
    plain = Bell(stride=10.0).build(source.arms(), seed=0)
    plain.read_tasks(source)
    plain.observe(batch)
    assert plain.centre == 0.0
    with pytest.raises(ConfigError, match="has no score 'angel'"):
        Bell(angle="angel").build(source.arms(), seed=0).read_tasks(source)


# ---- values of prompts ------------------------------------------------------------------------------------------------


def outcomes(book: PromptValueCurriculum, rows: list[int], success: Callable[[int], float]) -> list[Outcome]:
    return as_outcomes([group(*book.rows[i], success(i)) for i in rows])


def test_an_oracle_value_takes_exactly_the_nearest_to_the_target() -> None:
    book = PromptValue(pool=8, candidates=8, learning_rate=1.0).build({"a": tuple(range(8))}, seed=0)
    wanted = {level: 0.05 + level / 8 for level in range(8)}
    book.model[1 : 1 + 8] = [(wanted[level] - 0.5) * np.sqrt(2.0) for level in range(8)]
    np.testing.assert_allclose(book.values[::8], list(wanted.values()))
    assert {d.level for d in book.draw(8)} == {4}  # .55 is nearest to .5: its eight rows
    one = PromptValue(pool=8, candidates=1).build({"a": tuple(range(8))}, seed=0)
    one.model[:] = book.model
    assert [d.propensity for d in one.draw(3)] == pytest.approx([1 / 64] * 3)  # one candidate each: even draws


def test_values_learn_from_the_text_of_the_rows_that_were_drawn() -> None:
    rows = [{"prompt": word * 4 + str(n), "answer": "1"} for n in range(16) for word in ("easy", "hopeless")]
    source = Rows(rows, test_share=0.0)
    book = PromptValue(pool=32, learning_rate=0.5).build(source.arms(), seed=0)
    book.read_tasks(source)
    easy = [i for i, row in enumerate(book.rows) if source.task(*row[:2], "train", row[2]).public["prompt"].startswith("easy")]
    shown = sorted({*range(0, 32, 2)})
    for _ in range(30):
        book.observe(outcomes(book, shown, lambda i: float(i in easy)))
    unseen = [i for i in range(32) if i not in shown]
    assert min(book.values[i] for i in unseen if i in easy) > max(book.values[i] for i in unseen if i not in easy)
    assert book.metrics()["curriculum/value_error"] < 0.1


def test_chances_of_selection_are_those_of_a_simulation() -> None:
    rng = np.random.default_rng(0)
    counts = np.zeros(10)
    for _ in range(4000):
        counts[np.sort(rng.permutation(10)[:6])[:2]] += 1
    np.testing.assert_allclose(counts / 4000, chances_of_selection(10, 6, 2), atol=0.03)
    assert chances_of_selection(10, 6, 2).sum() == pytest.approx(2.0)


def test_values_say_nothing_of_other_rows_and_of_groups_without_a_verdict() -> None:
    book = PromptValue(pool=2).build({"a": (1,)}, seed=0)
    fault = Score(components={}, fault=Fault.INFRA)
    book.observe(as_outcomes([group("a", 1, 0, fault), group("a", 9, 0, 1.0)]))
    assert not book.model.any() and book.metrics()["curriculum/groups"] == 0.0
    with pytest.raises(CheckpointError, match="value model"):
        PromptValue(pool=2, features=8).build({"a": (1,)}, seed=0).load_state_dict(book.state_dict())


def test_settings_out_of_range_are_refused() -> None:
    for make, message in (
        (lambda: HardFocus(sizes=(2, 3), batches=(1, 1)), r"sizes=\(2, 3\)"),
        (lambda: HardFocus(batches=(1,)), r"batches=\(1,\)"),
        (lambda: Retrospective(bounds=(3, 2)), r"bounds=\(3, 2\)"),
        (lambda: Rounds(low=0.9), "low=0.9"),
        (lambda: PromptPair(probes=0), "probes=0"),
        (lambda: PromptPair(pool=0), "pool=0"),
        (lambda: PromptValue(candidates=0), "candidates=0"),
        (lambda: PromptValue(learning_rate=0.0), "learning_rate=0"),
        (lambda: PromptValue().build({"a": (1,)}, seed=0).draw(0), "n=0"),
    ):
        with pytest.raises(ConfigError, match=message):
            make()
