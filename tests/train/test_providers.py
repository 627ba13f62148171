"""Providers of columns: what each gives by hand, one of a user's own at each moment, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from live import coin_toss, session, spied, walk
from tiny_runs import only_rl

from assay.core import dumps_toml, from_dict, loads_toml, to_dict
from assay.core.batch import Batch
from assay.core.canon import FrozenMap
from assay.core.columns import TokenColumn
from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.group import Group
from assay.core.score import Fault, Score
from assay.guide import Compose
from assay.objective.loss.ratio_kinds import Interpolated
from assay.objective.methods import a2po, areal, gui_g1, rae
from assay.objective.objective import Objective
from assay.runtime.settings import AdamW, LearnerSettings
from assay.testing import graded_group
from assay.train.columns import Live, Moment, with_steps, with_values
from assay.train.driver import resume, train
from assay.train.preflight import check_run
from assay.train.providers import (
    DEFAULTS,
    ConstantValue,
    FailureRate,
    Level,
    PairwiseOutcome,
    Peers,
    PlayerRole,
    ReferenceValue,
    RightSoFar,
)
from assay.train.run import Evaluation, Run
from assay_tasks import SortDigits

SORT = SortDigits()
LOST = Score(components={}, fault=Fault.VERIFIER)
NOBODY: Any = None


def group(index: int, *verdicts: float | Score, level: int = 3, texts: dict[int, str] | None = None) -> Group:
    return graded_group(SORT.task("sort", level, "train", index), verdicts, key=f"g{index}", texts=texts)


def values(provider: Any, *groups: Group, live: Any = NOBODY) -> list[list[float]]:
    return [[round(s.columns[provider.name], 6) for s in g.scores] for g in provider.provide(live, groups)]


# ---- by hand ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "wanted"),
    [
        (Level(name="role"), [[3.0] * 4, [5.0] * 2]),
        (PlayerRole(), [[3.0] * 4, [5.0] * 2]),
        (FailureRate(), [[0.25] * 4, [1.0] * 2]),
        (ConstantValue(name="responsiveness", value=0.5), [[0.5] * 4, [0.5] * 2]),
        (Peers(), [[0.0, 0.0, 1.0, 1.0], [0.0, 1.0]]),
        (Peers(parts=1), [[0.0] * 4, [0.0] * 2]),
        (PairwiseOutcome(name="win"), [[0.0, 0.5, 0.5, 0.5], [0.0, 0.0]]),
        (PairwiseOutcome(name="loss"), [[1.0, 0.5, 0.5, 0.5], [1.0, 1.0]]),
        (ReferenceValue(solved=((3, 0.5), (5, 0.0))), [[0.5] * 4, [0.0] * 2]),
        (
            ReferenceValue(name="optimal_value", temperature=0.5, solved=((3, 0.5), (5, 0.0))),
            [[round(0.5 * float(np.log(0.5 + 0.5 * np.exp(2.0))), 6)] * 4, [0.0] * 2],
        ),
    ],
)
def test_columns_of_rollouts(provider: Any, wanted: list[list[float]]) -> None:
    assert values(provider, group(0, 0.0, 1.0, 1.0, 1.0), group(1, 0.0, 0.0, level=5)) == wanted


def test_a_group_without_verdict_has_numbers_too() -> None:
    lost = group(0, LOST, LOST)
    assert values(FailureRate(), lost) == [[1.0, 1.0]]
    assert values(PairwiseOutcome(name="win"), lost) == [[0.0, 0.0]]
    assert values(ReferenceValue(), lost, live=Scores()) == [[0.0, 0.0]]


def test_a_token_is_right_so_far() -> None:
    answer = group(0, 0.0).task.private["answer"]
    wrong = answer[:-1] + ("0" if answer[-1] != "0" else "1")
    one = graded_group(group(0, 0.0).task, [1.0, LOST, 0.0], texts={0: answer, 1: answer, 2: wrong})
    batch = Compose().compose(RightSoFar().provide(NOBODY, [one]), None, 0)
    assert batch is not None
    here = batch.token("mask")
    assert batch.token("process_reward")[~here].tolist() == [0.0] * int((~here).sum())
    paid, n = batch.token("process_reward")[here], int(here.sum()) // 2
    assert paid[:3].tolist() == [0.25] * 3
    assert paid[n : n + 3].tolist() == [0.25, 0.25, 0.0]
    assert len(set(batch.token("segment")[here][:n].tolist())) == n, "each token is a step"
    bare = replace(one, task=replace(one.task, private=FrozenMap({"answer": 3})))
    with pytest.raises(DataError, match=r"compares with private\['answer'\], and found 3.*Score\.spans"):
        RightSoFar().provide(NOBODY, [bare])


@dataclass
class Scores:
    """A run whose reference gives every sampled token 1 nat more than the policy, in rollouts of an odd number of tokens."""

    asked: tuple[str, ...] = ()

    def logprobs(self, rows: Sequence[Any], model: str = "policy") -> list[Any]:
        self.asked = (*self.asked, model)
        return [np.full(len(r), float(model == "ref" and len(r) % 2), np.float32) for r in rows]


def test_the_reference_is_valued_by_the_groups_own_rollouts() -> None:
    texts = {0: "1", 1: "12", 2: "1", 3: "12"}
    one, live = group(0, 1.0, 0.0, 0.0, LOST, texts=texts), Scores()
    sampled = [len(r.calls[0].completion.ids) for r in one.rollouts]
    odd = [len(r.calls[0].tokens) % 2 for r in one.rollouts]
    weight = np.exp([n * o for n, o in zip(sampled, odd, strict=True)])[:3]
    share = float(weight[0] / weight.sum())
    assert len({*odd}) == 2, "or this test would be of equal weights"
    assert values(ReferenceValue(), one, live=live) == [[round(share, 6)] * 4]
    assert live.asked == ("ref", "policy")
    best = 0.5 * np.log(share * np.exp(2.0) + (1 - share))
    assert values(ReferenceValue(name="optimal_value", temperature=0.5), one, live=live) == [[round(float(best), 6)] * 4]


def test_where_policy_and_reference_are_one_it_is_the_groups_mean() -> None:
    run = only_rl(objective=a2po(), columns=(ReferenceValue(name="optimal_value", temperature=0.5),))
    result = walk(session(coin_toss(run)))[0]
    for g in result.groups:
        wanted = 0.5 * np.log(np.mean(np.exp(np.array(g.values) / 0.5)))
        assert [x.columns["optimal_value"] for x in g.scores] == pytest.approx([wanted] * 4, rel=1e-4)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Peers(parts=0), r"Peers\.parts=0"),
        (lambda: PairwiseOutcome(name="draw"), "'win' or 'loss'"),
        (lambda: ReferenceValue(temperature=-1.0), "use 0 for the mean"),
        (lambda: ReferenceValue(solved=((3, 0.5),)).provide(NOBODY, [group(0, 1.0, level=4)]), r"levels \[3\].*level 4; add it"),
    ],
)
def test_settings_that_mean_nothing(make: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make()


def test_the_registry_names_each_column_by_its_provider() -> None:
    assert all(p.name == name and p.moment in ("group", "batch", "update") for name, p in DEFAULTS.items())


# ---- a user's own -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortness:
    """Short answers weigh more; computed while the run waits for something."""

    name: str = "difficulty"
    moment: ClassVar[Moment] = "group"

    async def provide(self, live: Live, rows: Sequence[Group]) -> list[Group]:
        found = await live.play([(g.task, replace(g.rollouts[0].context, key=f"{g.key}/again")) for g in rows], 2)
        assert [len(a.rollouts) for a in found] == [2] * len(rows)
        assert (live.update, live.seed) == (0, 0)
        return [with_values(g, self.name, [1.0 / (1 + r.length) for r in g.rollouts]) for g in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parity:
    """A number per rollout, of the batch."""

    name: str = "role"
    moment: ClassVar[Moment] = "batch"

    def provide(self, live: Live, rows: Batch) -> Batch:
        return rows.with_rollouts(**{self.name: rows.rollout("level") % 2 + 0.0 * live.step})


def test_a_role_has_one_number_in_all_steps_and_no_other_role_or_level_has_it() -> None:
    mine = group(0, 1.0, 0.0)
    played = replace(
        mine, rollouts=tuple(replace(r, role=role) for r, role in zip(mine.rollouts, ("first", "second"), strict=True))
    )
    chess = replace(played, task=replace(played.task, arm="chess"))
    (first, second), (again, _), (other, _), (alone, _) = values(PlayerRole(), played, played, chess, mine)
    assert first == again == float(np.float32(first)) < 0 and second < 0 and other < 0 and alone == 3.0
    assert len({first, second, other}) == 3


def test_a_provider_of_ones_own_is_asked_at_its_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = spied(monkeypatch)
    walk(session(coin_toss(only_rl(objective=gui_g1(length=5), columns=(Shortness(),)))))
    assert batches[0].rollout("difficulty") == pytest.approx(1.0 / (1 + batches[0].rollout("length")))
    walk(session(coin_toss(only_rl(objective=rae(), columns=(Parity(),)))))
    assert batches[-1].rollout("role").tolist() == (batches[-1].rollout("level") % 2).tolist()


def by_age() -> Objective:
    plain = areal(loglinear=True)
    policy: Any = plain.policy
    assert isinstance(policy.ratio, Interpolated)
    return replace(plain, policy=replace(policy, ratio=replace(policy.ratio, column="age")), brings=("age",))


def test_age_counts_the_updates_of_the_batch_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """AReaL's log-linear proximal policy, by the age at each update in place of the age at the start of the batch."""
    batches = spied(monkeypatch)
    run = replace(only_rl(objective=by_age(), minibatches=2, epochs=2, lag=1), prove_weights=False)
    walk(session(coin_toss(run)), 3)
    ages = [{*b.token("age")[b.token("mask")].tolist()} for b in batches]
    assert ages[4:] == [{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}], "the third batch is one batch, four updates, late"
    assert not batches[-1].token("age")[~batches[-1].token("mask")].any()


def test_runs_with_providers_are_written_down_and_resume_exactly(tmp_path: Path) -> None:
    def run(steps: int) -> Run:
        stage = only_rl(objective=gui_g1(length=5), columns=(Level(name="difficulty"),), steps=steps, learner=LEARNER)
        return replace(coin_toss(stage), checkpoint_every=2, evaluation=Evaluation(every=0, final_per_level=2))

    assert from_dict(Run, loads_toml(dumps_toml(to_dict(run(4))))) == run(4)
    train(run(4), tmp_path / "whole")
    train(run(2), tmp_path / "halves")
    resume(tmp_path / "halves", steps=4)
    weights = [(tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("whole", "halves")]
    assert weights[0] == weights[1]


LEARNER = LearnerSettings(optimizer=AdamW(lr=1e-3))


def test_a_stage_without_providers_is_written_as_ever() -> None:
    assert "columns" not in to_dict(only_rl())["stages"][0]


# ---- what is refused --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """Gives what it should not."""

    how: str
    name: str = "difficulty"
    moment: ClassVar[Any] = "group"

    def provide(self, live: Live, rows: Sequence[Group]) -> Sequence[Group]:
        return list(rows)[1:] if self.how == "fewer" else rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """Gives the batch as it was."""

    name: str = "age"
    moment: ClassVar[Any] = "update"

    def provide(self, live: Live, rows: Batch) -> Batch:
        return rows.with_tokens(TokenColumn("other", np.zeros(len(rows.token("ids"))), "user"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Late(Broken):
    """At no moment."""

    moment: ClassVar[Any] = "later"


def test_providers_that_do_not_provide_are_named() -> None:
    with pytest.raises(DataError, match=r"Broken\(how='fewer'.*gave other groups than it got"):
        walk(session(only_rl(objective=gui_g1(length=5), columns=(Broken(how="fewer"),))))
    with pytest.raises(DataError, match=r"Broken\(how='nothing'.*has no column 'difficulty' behind it"):
        walk(session(only_rl(objective=gui_g1(length=5), columns=(Broken(how="nothing"),))))
    with pytest.raises(DataError, match=r"Idle\(name='age'\): its batch has no column 'age'"):
        walk(session(coin_toss(only_rl(objective=by_age(), columns=(Idle(),), minibatches=2))))


def test_values_for_other_tokens_than_were_sampled() -> None:
    with pytest.raises(DataError, match="1 values of 'x' for"):
        with_steps(group(0, 1.0), "x", [[1.0]])


def test_providers_that_nobody_reads_are_refused() -> None:
    check_run(only_rl(objective=rae(), columns=(Level(name="role"),)))
    with pytest.raises(ConfigError, match=r"nothing in the objective reads 'difficulty' \(it reads .*: leave Level"):
        check_run(only_rl(objective=rae(), columns=(Level(name="difficulty"),)))
    with pytest.raises(ConfigError, match="2 providers of 'role'; give one"):
        check_run(only_rl(objective=rae(), columns=(Level(name="role"), ConstantValue(name="role"))))
    with pytest.raises(ConfigError, match="every rollout has 'level' of its own"):
        check_run(only_rl(objective=rae(), columns=(Level(name="level"),)))
    with pytest.raises(UnknownNameError, match=r"moment of Late.*'later'"):
        check_run(only_rl(objective=gui_g1(length=5), columns=(Late(how=""),)))
