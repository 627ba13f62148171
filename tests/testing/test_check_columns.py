"""What `check_column_provider` and `check_index_policy` hold parts to, and what they find wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.group import Group
from assay.core.score import Score
from assay.core.seeds import generator
from assay.guide import FirstTasks, InOrder
from assay.guide.index_policies import InOrderIndex
from assay.objective.methods import rae
from assay.testing import ContractError, check_column_provider, check_index_policy, graded_group
from assay.train.columns import Live, Moment, with_values
from assay.train.providers import DEFAULTS, ReferenceValue
from assay_tasks import SortDigits

ARMS = {"sort": (3, 4), "reverse": (3,)}


@pytest.mark.parametrize("name", DEFAULTS)
def test_providers_keep_the_contract(name: str) -> None:
    report = check_column_provider(DEFAULTS[name])
    assert report.passed[0] == "named" and report.passed[-1] == "pure" and report.skipped == ()


def test_with_an_objective_and_groups_of_ones_own() -> None:
    solved = ReferenceValue(solved=((3, 0.5),))
    group = graded_group(SortDigits().task("sort", 3, "train", 0), [1.0, 0.0])
    assert check_column_provider(solved, objective=rae(), groups=[group]).numbers == {"groups": 1.0}


@dataclass(frozen=True)
class Wrong:
    fault: str
    name: str = "mine"
    moment: ClassVar[Moment] = "group"

    def provide(self, live: Live, rows: Sequence[Group]) -> Any:
        if self.fault == "drops":
            return [with_values(g, self.name, [0.0] * len(g.scores)) for g in rows[1:]]
        if self.fault == "misses":
            return [with_values(g, self.name, [0.0] * len(g.scores)) if g.informative else g for g in rows]
        if self.fault == "infinite":
            return [with_values(g, self.name, [float("nan")] * len(g.scores)) for g in rows]
        if self.fault == "pays":
            right = Score(components={"correct": 1.0}, columns={self.name: 1.0})
            return [replace(g, scores=(right,) * len(g.scores)) for g in rows]
        if self.fault == "compares":
            return [with_values(g, self.name, [float(len(rows))] * len(g.scores)) for g in rows]
        if self.fault == "draws":
            COUNT.append(0)
            return [with_values(g, self.name, [generator("x", 0, str(len(COUNT) // 99)).random()] * len(g.scores)) for g in rows]
        return None if self.fault == "none" else [None]


COUNT: list[int] = []


@dataclass(frozen=True)
class WrongBatch:
    fault: str
    name: str = "mine"
    moment: ClassVar[Moment] = "batch"

    def provide(self, live: Live, rows: Batch) -> Any:
        n = int(rows.offsets[-1])
        column = TokenColumn(self.name, np.zeros(n, np.float32), "train")
        if self.fault == "infinite":
            return rows.with_tokens(TokenColumn(self.name, np.full(n, np.inf, np.float32), "train"))
        if self.fault == "masks":
            return rows.with_tokens(column, TokenColumn("mask", np.zeros(n, np.bool_), "train"))
        if self.fault == "cuts":
            return rows.mini([0, 1]).with_rollouts(mine=np.zeros(len(rows.rollouts["group"])))
        if self.fault == "random":
            return rows.with_tokens(TokenColumn(self.name, np.full(n, len(COUNT.append(0) or COUNT), np.float32), "train"))  # type: ignore[func-returns-value]
        return rows


@pytest.mark.parametrize(
    ("part", "finding"),
    [
        (Wrong("drops"), "gave other groups"),
        (Wrong("misses"), "has no number in 'mine'"),
        (Wrong("infinite"), "failed on 15 groups: score column 'mine' is nan"),
        (Wrong("pays"), "changed the verdict"),
        (Wrong("compares"), "other numbers alone than among others"),
        (Wrong("other"), "give the groups back"),
        (Wrong("drops", name="length"), "every rollout has 'length' of its own"),
        (Wrong("drops", name=""), "has no name"),
        (WrongBatch("infinite"), "not finite"),
        (WrongBatch("masks"), "changed the column 'mask'"),
        (WrongBatch("cuts"), "changed the column"),
        (WrongBatch("random"), "says two things"),
        (WrongBatch("nothing"), "has no column 'mine'"),
    ],
)
def test_a_wrong_provider_is_found(part: Any, finding: str) -> None:
    with pytest.raises(ContractError, match=finding):
        check_column_provider(part)


def test_a_moment_that_is_none_is_found() -> None:
    class Late(Wrong):
        moment = "step"  # type: ignore[assignment]

    with pytest.raises(ContractError, match="'step' is none of group, batch, update"):
        check_column_provider(Late("drops"))


# ---- index policies -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("spec", "different"), [(InOrder(), 64), (FirstTasks(), 1), (FirstTasks(n=3), 3)], ids=str)
def test_index_policies_keep_the_contract(spec: Any, different: int) -> None:
    report = check_index_policy(spec, ARMS)
    assert report.numbers == {"different tasks of a stream, at most": different} and len(report.passed) == 4


class OneCounter(InOrderIndex):
    def next(self, arm: str, level: int) -> int:
        return super().next("all", 0)


class Forgetful(InOrderIndex):
    def load_state_dict(self, state: Any) -> None:
        """Nothing."""


class Negative(InOrderIndex):
    def next(self, arm: str, level: int) -> int:
        return super().next(arm, level) - 1


class Shared(InOrderIndex):
    _next = {}  # noqa: RUF012

    def __init__(self) -> None:
        self.n = 0


@pytest.mark.parametrize(
    ("policy", "finding"),
    [
        (OneCounter, "other tasks alone than beside other streams"),
        (Forgetful, "goes on otherwise"),
        (Negative, "gave -1"),
        (Shared, "two of seed 0 gave 0 and 1"),
    ],
)
def test_a_wrong_index_policy_is_found(policy: Any, finding: str) -> None:
    class Spec:
        def build(self, seed: int) -> Any:
            return policy()

    with pytest.raises(ContractError, match=finding):
        check_index_policy(Spec(), ARMS)
