"""Supervised updates between those of reinforcement learning: which tasks wait for one, which steps imitate, resume."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live import session
from tiny_runs import digest_of, only_rl, trained

from assay.core.errors import AssayError
from assay.core.score import Score
from assay.lab.controls import Rewarded
from assay.objective.methods import grpo, nll
from assay.testing import check_stage
from assay.train import ImitateByGradient, ImitateFailures, RewardedRow
from assay.train.preflight import check_run
from assay.train.reinforce_runner import ReinforceRunner
from assay.train.run import ContaminationCheck, Run
from assay_tasks import SortDigits

TASKS = SortDigits(levels=(1, 2, 3))


def shown(levels: tuple[int, ...] = (3,), most: int = 40) -> list[dict[str, Any]]:
    tasks = [TASKS.task("sort", level, "train", i) for level in levels for i in range(most)]
    return [{"prompt": t.public["prompt"], "answer": t.private["answer"]} for t in tasks]


def woven(imitate: Any, **changes: Any) -> Run:
    made = only_rl(**{"imitate": imitate, "levels": (3,), "group_size": 2, "steps": 6, **changes})
    return replace(made, contamination=ContaminationCheck(mode="off"))


def advance(s: ReinforceRunner, steps: int) -> list[dict[str, float]]:
    """The metrics of some steps."""

    async def work() -> list[dict[str, float]]:
        if s.parts.proof:
            await s.parts.proof.calibrate(s.parts.publish_weights(), s.parts.engine, s.parts.learner)
        out: list[dict[str, float]] = []
        for _ in range(steps):
            out.append(dict((await s.step()).metrics))
            s.parts.step, s.parts.stage_step = s.parts.step + 1, s.parts.stage_step + 1
        return out

    return asyncio.run(work())


# ---- what it fails at -------------------------------------------------------------------------------------------------------


def test_failed_tasks_wait_and_leave_oldest_first() -> None:
    """Fresh weights fail at every task: four a step, of which as many as make a round leave it."""
    s = session(woven(ImitateFailures(data=shown(), size=6)))
    seen = list[str]()
    waiting = list[int]()
    for found in (advance(s, 1)[0] for _ in range(3)):
        waiting.append(len(s.interleaved.state_dict()["waiting"]))  # type: ignore[union-attr]
        seen.append(str(found.get("imitate/rows", 0.0)))
        assert found["imitate/failed"] == 4.0
    assert seen == ["0.0", "6.0", "6.0"] and waiting == [4, 2, 0], "after a round so many wait as did before, less its size"


def test_a_round_learns_each_demonstration_once_in_updates_of_a_batch() -> None:
    s = session(woven(ImitateFailures(data=shown(), size=4, batch=2)))
    learned: list[list[str]] = []
    keep = s.interleaved._imitator  # type: ignore[union-attr]

    async def spy(batches: list[list[RewardedRow]], rate: float) -> dict[str, float]:
        learned.extend([row.question for row in rows] for rows in batches)
        return {}

    keep.learn = spy
    advance(s, 1)
    assert [len(rows) for rows in learned] == [2, 2] and len({q for rows in learned for q in rows}) == 4
    again = [s.parts.run.tasks.task("sort", 3, "train", i).public["prompt"] for i in range(4)]
    assert [q for rows in learned for q in rows] == again, "oldest first"


def test_tasks_without_a_demonstration_and_those_solved_once_do_not_wait() -> None:
    s = session(woven(ImitateFailures(data=shown(most=2), size=50)))
    assert advance(s, 1)[0]["imitate/waiting"] == 2.0

    def half_right(task: Any, rollout: Any) -> Score:
        return Score(components={"correct": float(rollout.id.endswith("/0"))})

    run = woven(ImitateFailures(data=shown(), size=50))
    s = session(replace(run, tasks=Rewarded(source=run.tasks, scorer=half_right)))
    assert advance(s, 1)[0]["imitate/failed"] == 0.0


def test_the_same_failure_waits_once() -> None:
    s = session(woven(ImitateFailures(data=shown(), size=50)))
    advance(s, 1)
    before = s.interleaved.state_dict()["waiting"]  # type: ignore[union-attr]
    s.parts.index.load_state_dict(session(woven(None)).parts.index.state_dict())  # the same tasks come again
    advance(s, 1)
    assert s.interleaved.state_dict()["waiting"] == before  # type: ignore[union-attr]


def test_supervised_updates_have_a_learning_rate_of_their_own() -> None:
    """A round of one update behind a first step of reinforcement learning, which is the same in all three."""
    whole, half, none = (
        session(woven(imitate)) for imitate in (*(ImitateFailures(data=shown(), size=4, rate=r) for r in (1.0, 0.5)), None)
    )
    (a,), (b,), _ = (advance(s, 1) for s in (whole, half, none))
    assert a["lr"] == b["lr"] and b["imitate/lr"] == 0.5 * a["imitate/lr"] and a["imitate/loss"] == b["imitate/loss"]
    start, far, near = (s.parts.learner.model().tensors for s in (none, whole, half))
    for name, tensor in start.items():
        moved, other = (np.asarray(x[name], np.float64) - np.asarray(tensor, np.float64) for x in (far, near))
        np.testing.assert_allclose(other, 0.5 * moved, atol=1e-6)
        assert np.abs(moved).max() > 1e-5


def test_reinforcement_learning_sees_nothing_of_what_waits(tmp_path: Path) -> None:
    waits = woven(ImitateFailures(data=shown(), size=500), steps=2, levels=(1, 3))
    trained(waits, tmp_path / "a")
    trained(woven(None, steps=2, levels=(1, 3)), tmp_path / "b")
    import safetensors.numpy

    a, b = (safetensors.numpy.load_file(tmp_path / name / "model" / "model.safetensors") for name in "ab")
    assert all((a[name] == b[name]).all() for name in a) and digest_of(tmp_path / "a")


# ---- by the gradient ----------------------------------------------------------------------------------------------------------


def test_imitation_is_as_likely_as_its_gradient_is_large() -> None:
    s = session(woven(ImitateByGradient(data=shown(), batch=8, warm_up=2), steps=20, levels=(1,)))
    found = advance(s, 14)
    assert [m["imitate/chance"] for m in found[:3]] == [1.0, 1.0, 0.5], "g is g0 where the warm-up ends"
    g = g0 = 0.0
    for number, m in enumerate(found):
        if number >= 2:
            assert m["imitate/chance"] == pytest.approx(g / (g + g0))
        if "imitate/gradient" in m:
            g = 0.9 * g + 0.1 * m["imitate/gradient"] if number else m["imitate/gradient"]
            g0 = g if number < 2 else g0
            assert "reward/mean" not in m, "a step either imitates or reinforces"
    assert 0 < sum("imitate/gradient" in m for m in found[2:]) < 12


def test_a_policy_far_from_its_start_imitates_more() -> None:
    s = session(woven(ImitateByGradient(data=shown(), batch=8, warm_up=1, kl=0.1), steps=20))
    assert s.interleaved is not None
    s.interleaved.load_state_dict({"g": 0.0, "g0": 1.0, "imitated": 1, "far": False})
    s.parts.stage_step = s.parts.step = 5
    assert advance(s, 1)[0]["imitate/chance"] == 0.0
    s.observe_metrics({"kl/base": 0.2})
    assert advance(s, 1)[0]["imitate/chance"] == 0.5
    s.observe_metrics({"kl/base": 0.05})
    assert not s.interleaved.state_dict()["far"]


# ---- stages -----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "imitate",
    [
        ImitateFailures(data=shown(), size=3),
        ImitateFailures(data=shown(), size=3, rate=0.1),
        ImitateByGradient(data=shown(), batch=4, warm_up=1),
    ],
    ids=["relift", "relift at a rate of its own", "sasr"],
)
def test_the_stage_resumes_exactly(imitate: Any) -> None:
    rl = only_rl(levels=(3,), group_size=2, groups=2, imitate=imitate).stages[0]
    check_stage(rl, tasks=TASKS)


def test_what_makes_no_sense_is_refused() -> None:
    rows = shown(most=3)
    for make, said in (
        (lambda: ImitateFailures(data=rows, size=0), r"ImitateFailures\.size"),
        (lambda: ImitateFailures(data=rows, size=2, batch=3), "at most the size"),
        (lambda: ImitateFailures(data=rows, rate=0.0), r"ImitateFailures\.rate=0\.0"),
        (lambda: ImitateByGradient(data=rows, decay=1.0), "a share in"),
        (lambda: check_run(woven(ImitateByGradient(data=rows, batch=4))), "the data has 3 rows"),
        (lambda: check_run(woven(ImitateFailures(data=rows, objective=grpo()))), "reads rewards"),
        (lambda: check_run(woven(ImitateFailures(data=rows), lag=1)), "use one or the other"),
        (lambda: check_run(woven(ImitateFailures(data=[rows[0] | {"stream": "offline"}]))), "'offline', and ImitateFailures"),
        (lambda: check_run(woven(ImitateFailures())), "data is empty"),
        (lambda: check_run(woven(ImitateFailures(data=rows, objective=_own_alone()))), "acts on no demonstration"),
    ):
        with pytest.raises(AssayError, match=said):
            make()


def _own_alone() -> Any:
    from assay.objective.loss.likelihood import Nll

    return replace(nll(), terms=(Nll(streams=("on_policy",)),))
