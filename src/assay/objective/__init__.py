"""Objectives as compositions: credit terms (numpy) from rewards to advantages, loss terms (torch) from log-probabilities to a
loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.objective.credit.base import Credit, CreditTerm
    from assay.objective.credit.baseline import Center, Scale, Whiten
    from assay.objective.credit.filters import DropTruncated, DropZeroVariance
    from assay.objective.credit.reward import KlInReward, Overlong, Scalarise
    from assay.objective.loss.aggregate import Aggregation, Constant, Prompt, Selection, SeqMean, SeqSum, Token
    from assay.objective.loss.base import LossTerm, View
    from assay.objective.loss.policy import Gate, MinClip, PolicyGradient, Ratio, TrustRegion, WeightClip
    from assay.objective.loss.score import BalancedBce, GroupSoftmax, ScoreLoss, SetLoss
    from assay.objective.loss.td import ColumnTarget, HeadValue, LogRatioValue, OutcomeTarget, Target, TdLoss, Value
    from assay.objective.loss.terms import AdaptiveKl, Entropy, Kl, Nll
    from assay.objective.loss.weights import IcePop, Mismatch, TokenWeight, Truncate
    from assay.objective.methods import (
        areal,
        cispo,
        dapo,
        dispo,
        dr_grpo,
        grpo,
        gspo,
        icepop,
        lite_ppo,
        loop,
        nll,
        pacs,
        real,
        reinforce,
        reinforce_pp,
        reinforce_pp_baseline,
        rloo,
        scale_rl,
        tis,
    )
    from assay.objective.objective import Objective
    from assay.objective.program import Program
    from assay.objective.reduce import Local, Moments, Reducer, Sum

__all__ = [
    "Objective",
    "Program",
    "nll",
    "grpo",
    "dr_grpo",
    "rloo",
    "reinforce",
    "dapo",
    "areal",
    "cispo",
    "dispo",
    "gspo",
    "icepop",
    "lite_ppo",
    "loop",
    "pacs",
    "real",
    "reinforce_pp",
    "reinforce_pp_baseline",
    "scale_rl",
    "tis",
    "Scalarise",
    "Overlong",
    "KlInReward",
    "Center",
    "Scale",
    "Whiten",
    "DropTruncated",
    "DropZeroVariance",
    "PolicyGradient",
    "Ratio",
    "TrustRegion",
    "MinClip",
    "Gate",
    "WeightClip",
    "Mismatch",
    "Truncate",
    "IcePop",
    "ScoreLoss",
    "BalancedBce",
    "GroupSoftmax",
    "TdLoss",
    "HeadValue",
    "LogRatioValue",
    "OutcomeTarget",
    "ColumnTarget",
    "Kl",
    "AdaptiveKl",
    "Entropy",
    "Nll",
    "Aggregation",
    "Token",
    "SeqMean",
    "SeqSum",
    "Prompt",
    "Constant",
    "Selection",
    "Credit",
    "CreditTerm",
    "LossTerm",
    "View",
    "TokenWeight",
    "SetLoss",
    "Value",
    "Target",
    "Reducer",
    "Local",
    "Moments",
    "Sum",
]

_HOME = {
    "credit.base": "Credit CreditTerm",
    "credit.baseline": "Center Scale Whiten",
    "credit.filters": "DropTruncated DropZeroVariance",
    "credit.reward": "KlInReward Overlong Scalarise",
    "loss.aggregate": "Aggregation Constant Prompt Selection SeqMean SeqSum Token",
    "loss.base": "LossTerm View",
    "loss.policy": "Gate MinClip PolicyGradient Ratio TrustRegion WeightClip",
    "loss.score": "BalancedBce GroupSoftmax ScoreLoss SetLoss",
    "loss.td": "ColumnTarget HeadValue LogRatioValue OutcomeTarget Target TdLoss Value",
    "loss.terms": "AdaptiveKl Entropy Kl Nll",
    "loss.weights": "IcePop Mismatch TokenWeight Truncate",
    "methods": "areal cispo dapo dispo dr_grpo grpo gspo icepop lite_ppo "
    "loop nll pacs real reinforce reinforce_pp reinforce_pp_baseline rloo scale_rl tis",
    "objective": "Objective",
    "program": "Program",
    "reduce": "Local Moments Reducer Sum",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    for module, names in _HOME.items():
        if name in names.split():
            return getattr(import_module(f"assay.objective.{module}"), name)
    raise AttributeError(f"module 'assay.objective' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
