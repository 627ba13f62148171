"""ALP-GMM and AGAIN: mixtures, progress, draws, the classroom, resume."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, ClassVar, TypeVar

import numpy as np
import pytest

from assay.core import FrozenMap, Task
from assay.core.canon import canonical
from assay.core.errors import ConfigError
from assay.core.group import Outcome
from assay.guide import Again, AlpGmm
from assay.guide.box_curricula import AlpGmmBook, cell_points
from assay.guide.classroom import AgainBook
from assay.guide.gaussian_mixture import GaussianMixture, best_mixture, fit_mixture
from assay.lab import RandomReward, Rewarded
from assay.tasks import BoxProblem, Facts, Problems, Solution, TaskMixture
from assay.testing import as_outcomes, check_curriculum, graded_group

Book = TypeVar("Book", bound=AlpGmmBook)
ARMS = {"a": tuple(range(1, 9))}
SMALL = AlpGmm(fit_every=32, buffer=64, components=3)


def groups(levels: list[int], success: Callable[[int], float], arm: str = "a") -> list[Outcome]:
    out = []
    for level in levels:
        task = Task(id="t", domain="d", arm=arm, level=level, split="train", index=0, public=FrozenMap({"prompt": "?"}))
        right = round(8 * success(level))
        out.append(graded_group(task, [1.0] * right + [0.0] * (8 - right)))
    return as_outcomes(out)


def trained(book: Book, success: Callable[[int, int], float], batches: int) -> Book:
    for batch in range(batches):
        levels = [draw.level for draw in book.draw(16)]
        book.observe(groups(levels, lambda level, batch=batch: success(level, batch)))
    return book


def changing(level: int, batch: int) -> float:
    """Level 6 alternates between right and wrong; the others stay as they are."""
    return float(batch % 2) if level == 6 else 0.0


@pytest.mark.parametrize("spec", [SMALL, AlpGmm(), AlpGmm(fit_every=12, buffer=12, components=2, uniform=1.0)])
@pytest.mark.parametrize("arms", [ARMS, {"a": (1, 2), "b": (1,)}, {"one": (1,)}])
def test_it_keeps_the_laws_of_curricula(spec: AlpGmm, arms: dict[str, tuple[int, ...]]) -> None:
    check_curriculum(spec, arms, seed=1, draws=3_000)


def test_a_mixture_finds_two_clusters_and_the_criterion_prefers_two() -> None:
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(0.2, 0.05, (80, 2)), rng.normal(0.8, 0.05, (40, 2))])
    fit = fit_mixture(points, 2)
    order = np.argsort(fit.means[:, 0])
    np.testing.assert_allclose(fit.means[order], [[0.2, 0.2], [0.8, 0.8]], atol=0.03)
    np.testing.assert_allclose(fit.weights[order], [2 / 3, 1 / 3], atol=0.01)
    assert len(best_mixture(points, 1, 4).weights) == 2
    grid = np.zeros((20, 3))  # all alike: variances are kept above 0
    assert np.isfinite(fit_mixture(grid, 3).likelihood)


def test_draws_are_even_before_the_first_fit_and_with_constant_rewards_no_component_is_preferred() -> None:
    book = trained(SMALL.build(ARMS, seed=0), lambda level, batch: 0.5, 1)
    assert not book.fits and book.propensities.tolist() == [1 / 8] * 8
    trained(book, lambda level, batch: 0.5, 3)
    assert book.fits and {progress for _, _, progress in book._known} == {0.0}
    assert book.metrics()["curriculum/progress"] == 0.0
    assert book.propensities.min() >= 0.2 / 8 and book.propensities.sum() == pytest.approx(1.0)


def test_a_change_of_success_raises_the_draws_there() -> None:
    book = trained(SMALL.build(ARMS, seed=0), changing, 12)
    assert int(np.argmax(book.propensities)) == book.cells.index(("a", 6))
    assert book.propensities[book.cells.index(("a", 6))] > 2 / 8
    assert book.metrics()["curriculum/progress"] > 0.05


def test_progress_is_the_difference_to_the_newest_of_the_nearest_groups() -> None:
    book = SMALL.build(ARMS, seed=0)
    book.observe(groups([1, 1, 1, 8, 8], lambda level: float(level == 8)))
    assert [progress for _, _, progress in book._known] == [0.0] * 5  # too few before them
    book.observe(groups([1, 7], lambda level: 1.0 if level == 1 else 0.75))
    assert [progress for _, _, progress in book._known][-1:] == [0.25]  # level 8 is nearest, with 1
    book.observe(groups([1, 1], lambda level: 0.25))
    assert [progress for _, _, progress in book._known][-2:] == [0.75, 0.0]


def test_points_are_the_arms_coordinates_and_the_levels_place() -> None:
    cells = [("a", 1), ("a", 5), ("b", 1), ("b", 2)]
    given = cell_points(cells, {"a": (0.0, 10.0), "b": (2.0, 30.0)})
    np.testing.assert_allclose(given, [[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]])
    for wrong in ({"a": (0.0,)}, {"a": (0.0,), "b": (1.0, 2.0)}):
        with pytest.raises(ConfigError, match="as many coordinates"):
            cell_points(cells, wrong)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid(BoxProblem):
    templates: ClassVar[tuple[str, ...]] = ("{given}?",)

    def draw_at(self, point: Mapping[str, int], rng: Random) -> dict[str, Any]:
        return {"given": [rng.randrange(point["most"]) for _ in range(point["length"])]}

    def solve(self, facts: Facts) -> Solution:
        return Solution(answer=str(sum(facts["given"])))


LATTICE = Grid(name="a", domain="d", axes={"length": (2, 3, 5), "most": (10, 100, 1000, 4000)})
BOX = Problems(name="box", problems=(LATTICE,))


def test_a_box_of_two_axes_is_drawn_from_by_its_points() -> None:
    assert LATTICE.levels == tuple(range(1, 13)) and LATTICE.level(length=5, most=10) == 9
    assert [LATTICE.level(**LATTICE.point(n)) for n in LATTICE.levels] == list(LATTICE.levels)
    task = BOX.task("a", 12, "train", 0)
    assert len(task.public["facts"]["given"]) == 5 and BOX.level_point("a", 12) == (5.0, 4000.0)
    book = replace(SMALL, fit_every=48, buffer=96).build(BOX.arms(), seed=0)
    book.read_tasks(BOX)
    shuffled = replace(LATTICE, axes={"most": (10, 100, 1000, 4000), "length": (2, 3, 5)})
    assert [shuffled.point(n) for n in (1, 5, 12)] == [LATTICE.point(n) for n in (1, 5, 12)]
    np.testing.assert_allclose(book.points[[0, 4, 11]], [[0, 0], [1 / 3, 0], [1, 1]])
    near = [LATTICE.level(length=5, most=most) for most in (10, 100)]  # two neighbours that are learned; ranks 9 and 10
    trained(book, lambda level, batch: float(batch % 2) if level in near else 0.0, 12)
    p = book.propensities
    assert p.sum() == pytest.approx(1.0) and p.min() >= 0.2 / 12 - 1e-12
    assert p[[level - 1 for level in near]].sum() > 0.4
    wide = GaussianMixture(np.ones(2) / 2, np.array([[1, 0, 0.5], [0, 0, 0.0]]), np.stack([np.eye(3) / 9] * 2), 0.0)
    told = book.at_cells(wide)
    # Level 10 is a third of a side from the component that progresses; level 8, nearer in number, a third and a whole one.
    assert told is not None and told[9] > 2 * told[7]


def test_arms_whose_boxes_differ_are_refused() -> None:
    both = TaskMixture(
        name="both", sources=(BOX, Problems(name="row", problems=(replace(LATTICE, name="b", axes={"most": (4, 8)}, levels=()),)))
    )
    book = SMALL.build(both.arms(), seed=0)
    with pytest.raises(ConfigError, match="box of other axes"):
        book.read_tasks(both)
    paid = SMALL.build(BOX.arms(), seed=0)
    paid.read_tasks(Rewarded(source=BOX, scorer=RandomReward()))  # the same family, paid otherwise
    assert paid.points.shape == (12, 2)
    for axes, why in (({}, "axes="), ({"x": (2, 1)}, "ascending"), ({"x": tuple(range(40)), "y": tuple(range(40))}, "are 1600")):
        with pytest.raises(ConfigError, match=why):
            replace(LATTICE, axes=axes, levels=())
    with pytest.raises(ConfigError, match="the box has 12"):
        replace(LATTICE, levels=(1, 13))
    with pytest.raises(ConfigError, match="most=7 is none of its values"):
        LATTICE.level(length=2, most=7)


# ---- the classroom ----------------------------------------------------------------------------------------------------


def student(
    folder: Path, success: Callable[[int, int], float], batches: int = 12, tests: tuple[tuple[int, float], ...] = ()
) -> str:
    """A run folder with a checkpoint of such a run; of its tests each says at which fit, and what accuracy at level 6."""
    book = trained(replace(SMALL, tested=bool(tests)).build(ARMS, seed=0), success, batches)
    book.tests = [(fits, tuple(at_six if level == 6 else 0.0 for level in range(1, 9))) for fits, at_six in tests]
    place = folder / "checkpoints" / "step_0000001"
    place.mkdir(parents=True)
    state = {"session": {"practice": {"curriculum": book.state_dict()}}}
    (place / "state.json").write_text(json.dumps(state), encoding="utf-8")
    (folder / "LATEST").write_text("step_0000001\n", encoding="utf-8")
    return str(folder)


@pytest.fixture(scope="module")
def classroom(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Two that succeed nowhere at first, one of which learns level 6; one that succeeds everywhere."""
    place = tmp_path_factory.mktemp("classroom")
    still = student(place / "still", lambda level, batch: 0.0)
    learns = student(place / "learns", lambda level, batch: float(batch % 2 or batch > 8) if level == 6 else 0.0)
    return still, learns, student(place / "master", lambda level, batch: 1.0)


def again(classroom: tuple[str, ...], **changes: object) -> AgainBook:
    given = {"fit_every": 32, "buffer": 64, "components": 3, "pretest": 1, "neighbours": 2, "least": 0.05, **changes}
    return Again(classroom=classroom, **given).build(ARMS, seed=0)  # type: ignore[arg-type]


def test_the_expert_is_the_best_of_the_nearest_and_its_progress_is_followed(classroom: tuple[str, ...]) -> None:
    book = again(classroom)
    assert book.uniform == 0.1 and book.metrics()["curriculum/expert_stage"] == -1.0
    trained(book, lambda level, batch: 0.0, 2)
    assert book.expert == 1  # the master is far, and of the two that are near this one ends better
    assert int(np.argmax(book.propensities)) == book.cells.index(("a", 6)) and book.uniform == 0.02
    assert again(classroom, neighbours=9).expert is None


def test_stages_follow_by_time_by_reward_or_all_at_once(classroom: tuple[str, ...]) -> None:
    nothing = lambda level, batch: 0.0
    timed = trained(again(classroom, mode="time"), nothing, 2)
    stages = len(timed._stages())
    assert stages > 1
    trained(timed, nothing, 4 * stages)
    assert timed.at == stages - 1  # never beyond the list
    rewarded = trained(again(classroom, window=40), nothing, 4)
    assert rewarded.at == 0  # 32 successes since are too few
    trained(rewarded, lambda level, batch: 1.0, 3)
    assert rewarded.at == 1
    pooled = trained(again(classroom, mode="pool", uniform=0.5), nothing, 2)
    mean = np.mean([p for p, _ in pooled._stages()], axis=0)
    own = pooled.at_cells(pooled.fits[-1].mixture)
    assert own is not None
    np.testing.assert_allclose(pooled.propensities, 0.5 / 8 + 0.25 * mean + 0.25 * own)


def accuracies(at_six: float, arm: str = "") -> dict[str, float]:
    """Metrics of an evaluation."""
    return {"eval/greedy/all": at_six / 8, **{f"eval/greedy/{arm}level_{n}": at_six if n == 6 else 0.0 for n in range(1, 9)}}


@pytest.fixture(scope="module")
def tested(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Three runs alike in practice. At their first test the second and the third know level 6, and the third ends best."""
    place, same = tmp_path_factory.mktemp("tested"), lambda level, batch: 0.0
    tests = (((1, 0.0), (3, 0.9)), ((0, 0.0), (1, 0.5), (4, 0.5)), ((2, 0.75), (4, 1.0)))
    return tuple(student(place / str(i), same, tests=each) for i, each in enumerate(tests))


def test_with_a_test_on_fixed_tasks_the_expert_is_the_best_of_those_nearest_in_it(tested: tuple[str, ...]) -> None:
    book = trained(again(tested, tested=True), lambda level, batch: 0.0, 2)
    assert len(book.fits) == 1 and book.expert is None  # waits for a test
    book.observe_metrics({"reward/mean": 1.0})
    assert book.expert is None and not book.tests
    book.observe_metrics(accuracies(0.625))  # 0.125 from 0.5 and from 0.75, 0.625 from the first
    assert book.expert == 2 and book.tests == [(1, (0.0,) * 5 + (0.625, 0.0, 0.0))]
    assert trained(again(tested), lambda level, batch: 0.0, 2).expert == 0  # in practice all are alike
    copy = again(("/nowhere",), tested=True)
    copy.load_state_dict(json.loads(canonical(book.state_dict())))
    assert copy.draw(20) == book.draw(20) and copy.state_dict() == book.state_dict()


def test_a_test_before_the_pretest_or_of_another_arms_names(tested: tuple[str, ...]) -> None:
    early = again(tested, tested=True)
    early.draw(1)
    early.observe_metrics(accuracies(0.625))
    assert early.expert is None and early.tests[0][0] == 0
    named = SMALL.build(ARMS, seed=0)
    named.observe_metrics(accuracies(1.0, "a/"))
    assert named.tests == []  # nobody asked
    asked = replace(SMALL, tested=True).build(ARMS, seed=0)
    asked.observe_metrics(accuracies(1.0, "a/"))
    assert asked.tests == [(0, (0.0,) * 5 + (1.0, 0.0, 0.0))]
    with pytest.raises(ConfigError, match=r"no item of \[\('a', 2\), \('a', 3\)"):
        asked.observe_metrics({"eval/greedy/all": 1.0, "eval/greedy/level_1": 1.0})


def test_a_restart_follows_the_expert_of_its_first_look_from_the_first_step(tested: tuple[str, ...], tmp_path: Path) -> None:
    look = student(tmp_path / "look", lambda level, batch: 0.0, 2, tests=((1, 0.5),))
    book = again(tested, tested=True, looked=look, least=0.0, neighbours=1)
    book.draw(1)
    assert book.expert == 1 and book.uniform == 0.02 and not book.fits and book.guided_weights() is not None
    assert again(tested, tested=True, looked=look).metrics()["curriculum/expert_stage"] == -1.0  # not read yet
    with pytest.raises(ConfigError, match="one of the classroom"):
        again(tested, looked=tested[0])
    with pytest.raises(ConfigError, match="has no test"):
        again((student(tmp_path / "untested", changing),), tested=True).draw(1)


def test_it_goes_on_without_the_folders_and_keeps_the_laws(classroom: tuple[str, ...]) -> None:
    book = trained(again(classroom), lambda level, batch: 0.0, 3)
    copy = again(("/nowhere",))
    copy.load_state_dict(json.loads(canonical(book.state_dict())))
    assert copy.draw(20) == book.draw(20) and copy.state_dict() == book.state_dict()
    check_curriculum(Again(classroom=classroom, fit_every=12, buffer=12, components=2, pretest=1), ARMS, draws=3_000)


def test_what_is_no_classroom_is_refused(classroom: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no run with a checkpoint"):
        again((str(tmp_path),)).draw(1)
    with pytest.raises(ConfigError, match="no fit of AlpGmm"):
        again((student(tmp_path / "short", changing, 1),)).draw(1)
    with pytest.raises(ConfigError, match="and this run has"):
        Again(classroom=classroom).build({"a": (1, 2)}, seed=0).draw(1)
    for make, message in (
        (lambda: Again(classroom=()), "classroom"),
        (lambda: Again(classroom=("x",), window=0), "window=0"),
        (lambda: AlpGmm(fit_every=2), "fit_every=2"),
        (lambda: AlpGmm(uniform=0.0), "uniform=0"),
    ):
        with pytest.raises(ConfigError, match=message):
            make()
