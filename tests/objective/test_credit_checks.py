"""Which credit terms cannot follow which, and why."""

import pytest

from assay.core.errors import PlanError
from assay.objective import Center, CreditTerm, DropTruncated, KlInReward, Overlong, Scale, Whiten
from assay.objective.credit.baseline import TopGap
from assay.objective.credit.components import ComponentNorm
from assay.objective.credit.filters import DropSmall
from assay.objective.credit.length import CosineLength, TruncatedReward
from assay.objective.credit.pass_at_k import PassAtK, PassAtKBonus
from assay.objective.credit.resample import Resample
from assay.objective.credit.returns import Discount, Gae, ProcessNorm, TokenReward, Turns
from assay.objective.credit.shape import Bonus, PairwiseWin, ScaleByClass

KL = KlInReward(coef=0.1)
RAMP = Overlong(limit=8, cache=4)


def check(chain: tuple[CreditTerm, ...]) -> None:
    for i, term in enumerate(chain):
        term.check(chain[:i])


@pytest.mark.parametrize(
    ("chain", "says"),
    [
        ((Center(), Discount(0.9)), "Discount behind Center: a return is what baselines compare"),
        ((Whiten(), Turns()), "Turns behind Whiten"),
        ((Discount(0.9), Turns()), "Turns behind Discount"),
        ((Discount(0.9), Gae()), "Gae behind Discount: it makes returns of its own"),
        ((Turns(), ProcessNorm()), "ProcessNorm behind Turns"),
        ((Discount(0.9), TopGap()), "TopGap behind Discount: it compares whole rollouts"),
        ((Discount(0.9), PassAtK()), "PassAtK behind Discount"),
        ((KL, TokenReward("x", alone=True)), "TokenReward behind KlInReward: it replaces the reward"),
        ((KL, ScaleByClass()), "ScaleByClass behind KlInReward"),
        ((KL, PairwiseWin()), "PairwiseWin behind KlInReward"),
        ((KL, CosineLength(limit=8)), "CosineLength behind KlInReward"),
        ((KL, ComponentNorm()), "ComponentNorm behind KlInReward: it reads the components themselves"),
        ((Center(), Resample()), "Resample behind Center: baselines and returns must see the copies"),
        ((DropSmall(),), "DropSmall before a baseline"),
        ((RAMP, DropTruncated()), "Overlong and DropTruncated both treat"),
        ((TruncatedReward(), RAMP), "TruncatedReward and Overlong both treat"),
        ((DropTruncated(), TruncatedReward()), "DropTruncated and TruncatedReward both treat"),
        ((ScaleByClass(wrong=-2.0), Center(), Scale()), r"wrong=-2.0\): a group's standard deviation cancels both"),
        ((ScaleByClass(wrong=-2.0), Center(), Scale("leave_one_out")), "cancels both"),
    ],
)
def test_refused(chain: tuple[CreditTerm, ...], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        check(chain)


@pytest.mark.parametrize(
    "chain",
    [
        (KL, TokenReward("x"), Discount(0.9), Center(), Scale()),
        (TokenReward("x", alone=True), ProcessNorm()),
        (Discount(0.9), Center(), PassAtKBonus()),
        (ScaleByClass(), Center(), Scale()),
        (ScaleByClass(wrong=-2.0), Center(), Scale("batch")),
        (ScaleByClass(wrong=-2.0), Bonus("x"), Center(), Scale()),
        (Resample(), KL, Gae(), Whiten()),
        (RAMP, Whiten("rollout"), DropSmall()),
        (Center(), DropSmall(), DropTruncated()),
    ],
)
def test_allowed(chain: tuple[CreditTerm, ...]) -> None:
    check(chain)
