"""`check_statistic`: every built-in statistic passes, and each law is broken once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from assay.core.vocab import FullEntropy, VocabStat
from assay.objective import (
    AlphaDivergence,
    ChoiceLogp,
    FDivergence,
    Floor,
    FullKl,
    Jsd,
    LogSquaredMass,
    MaxLogp,
    MeanLogp,
    PowerKl,
    PowerLogp,
    SparseDivergence,
    SquaredMass,
    SupportLogp,
    TopKEntropy,
    TopKModel,
    TopKTeacher,
    TopP,
)
from assay.testing import ContractError, check_statistic

FEW = {"teacher_ids": np.tile([3, 7, -1], (12, 1)), "teacher_logps": np.log(np.tile([0.5, 0.25, 0.1], (12, 1)))}


@pytest.mark.parametrize(
    "stat",
    [
        FullEntropy(),
        TopKEntropy(3),
        MeanLogp(),
        MaxLogp(),
        SquaredMass(),
        LogSquaredMass(),
        ChoiceLogp(),
        SupportLogp(),
        SupportLogp(support=TopP(0.7), model="mask"),
        SupportLogp(support=Floor(0.1)),
        PowerLogp(power="phi"),
        PowerKl(power="phi"),
        FullKl(),
        FullKl(under="model"),
        Jsd(),
        Jsd(beta=0.0),
        AlphaDivergence(),
        FDivergence(generator="chi2"),
        FDivergence(generator="total_variation"),
        TopKModel(k=3),
        TopKModel(k=4, support="policy", sparse=SparseDivergence(direction="reverse", rest="tail")),
    ],
    ids=lambda s: s.name,
)
def test_built_in_statistics(stat: VocabStat) -> None:
    assert check_statistic(stat).subject == type(stat).__name__


@pytest.mark.parametrize("rest", ["ignore", "tail", "renormalise"])
def test_of_columns_that_rows_bring(rest: str) -> None:
    check_statistic(TopKTeacher(sparse=SparseDivergence(rest=rest)), columns=FEW)


@dataclass(frozen=True, slots=True, kw_only=True)
class Own(VocabStat):
    """A statistic from a function."""

    formula: Callable[[Any], Any]

    @property
    def kind(self) -> str:
        return "own"

    def of(self, logp: Any, ids: Any, others: Any, columns: Any) -> Any:
        return self.formula(logp)


@pytest.mark.parametrize(
    ("formula", "law"),
    [
        (lambda p: p, r"shape law, seed 0: 12 positions in torch.float32 gave \[12, 11\]"),
        (lambda p: p.double().sum(1), "shape law, seed 0: .* in torch.float64"),
        (lambda p: p.sum(1) / 0, "finite law, seed 0"),
        (lambda p: p.amax(1) - p.mean(), "position law, seed 0"),
        (lambda p: p.amax(1) + (p - p.detach()).sum(), "gradient law, seed 0: the number at position 4"),
        (lambda p: (p - p).sum(1).sqrt(), "gradient law"),
    ],
)
def test_broken_statistics_are_caught(formula: Callable[[Any], Any], law: str) -> None:
    with pytest.raises(ContractError, match=law):
        check_statistic(Own(formula=formula))


def test_a_statistic_without_gradient_is_one() -> None:
    check_statistic(Own(formula=lambda p: p.detach().amax(1)))
