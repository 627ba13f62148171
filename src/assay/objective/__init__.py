# ruff: noqa: I001  (one line a module, packed)
"""Objectives as compositions: credit terms (numpy) from rewards to advantages, loss terms (torch) from log-probabilities to a
loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    # fmt: off
    from assay.objective.credit.base import Credit, CreditTerm
    from assay.objective.credit.baseline import Against, Center, OptimalToken, RunningBaseline, TopGap
    from assay.objective.credit.balance import Constrained, HypervolumeScale
    from assay.objective.credit.combine import LogTamed, ScaleByType, VarianceAdaptive
    from assay.objective.credit.components import ComponentNorm
    from assay.objective.credit.critics import TurnAdvantage
    from assay.objective.credit.divergence import AdaptiveKlInReward, KlInReward
    from assay.objective.credit.expert import AlignExpert, SmoothExpert
    from assay.objective.credit.filters import (
        DropOneClass, DropSmall, DropStale, DropTruncated, DropZeroVariance, Filter, PassRateHistory, PassRateWindow,
        PositivesOnly,
    )
    from assay.objective.credit.length import CosineLength, CostInGroup, LengthInGroup, Overlong, TruncatedReward
    from assay.objective.credit.normalise import Scale, ScaleByMean, ScaleBySignal, Whiten
    from assay.objective.credit.pass_at_k import PassAtK, PassAtKBonus
    from assay.objective.credit.repetition import LoopPenalty, NgramPenalty
    from assay.objective.credit.resample import Balance, BestAnd, Chance, Deduplicate, Resample
    from assay.objective.credit.returns import Discount, Gae, ProcessNorm, TokenReward, Turns
    from assay.objective.credit.reward import Scalarise
    from assay.objective.credit.shape import Bonus, PairwiseWin, Rescale, ScaleByClass
    from assay.objective.credit.steps import StateGroups
    from assay.objective.credit.tags import TagAdvantage
    from assay.objective.credit.teacher import TeacherAdvantage
    from assay.objective.credit.tilt import Tilt
    from assay.objective.credit.transform import (
        AddBonus, ClipAdvantage, ConfidenceBonus, PositivePart, ScaleByPrompt, ScaleBySample, SignSplit,
    )
    from assay.objective.credit.uncertainty import ScaleByEntropy
    from assay.objective.evaluation import ObjectiveEvaluation, resolve_method, evaluate
    from assay.objective.logits import Logits
    from assay.objective.loss.aggregate import Aggregation, Constant, Prompt, Selection, SeqMean, SeqSum, Token, TurnMean
    from assay.objective.loss.base import LossTerm, View
    from assay.objective.loss.distill import TeacherGradient, TeacherKl
    from assay.objective.loss.divergence import AnchorDivergence
    from assay.objective.loss.hybrid import Calibrated, Confidence, OutcomeMean, PrefixScore
    from assay.objective.loss.kl import AdaptiveKl, Kl
    from assay.objective.loss.likelihood import Nll
    from assay.objective.loss.mismatch import IcePop, Mismatch, Truncate
    from assay.objective.loss.mismatch_reject import Reject, SecondMoment
    from assay.objective.loss.policy import PolicyGradient
    from assay.objective.loss.ratio import Ratio
    from assay.objective.loss.ratio_kinds import GeoMean, Interpolated, Mixture
    from assay.objective.loss.schedule import Annealed, Cosine, Linear, Schedule
    from assay.objective.loss.score import ScoreLoss
    from assay.objective.loss.select import Correct, Incorrect, Known, Marked, OneOf, PassRate, Selector
    from assay.objective.loss.sets.base import Mix, Scored, SetLoss
    from assay.objective.loss.sets.confidence import LogSquaredMass
    from assay.objective.loss.sets.groupwise import BalancedBce, GroupSoftmax, RewardGaps
    from assay.objective.loss.sets.links import JsLink, Link, OddsLink, PowerLink
    from assay.objective.loss.sets.pairwise import Pairwise
    from assay.objective.loss.sets.pointwise import Kto, Likelihood, ScoreSquare
    from assay.objective.loss.sets.shapes import (
        ApoDown, ApoZero, BcoPair, DiscoGap, ExoGap, HingeGap, LogisticGap, NcaPair, PairShape, SppoPair, SquareGap,
    )
    from assay.objective.loss.sets.sorted import SortedGaps
    from assay.objective.loss.td import Margin, TdLoss
    from assay.objective.loss.td_fits import Bce, Binned, Fit, HlGauss, Huber, Square, TwoHot
    from assay.objective.loss.td_targets import (
        ColumnTarget, ConservativeTarget, MeanTarget, OutcomeTarget, ReturnTarget, Target,
    )
    from assay.objective.loss.td_values import DuelingValue, HeadValue, LogRatioValue, Value
    from assay.objective.loss.teachers import Teachers
    from assay.objective.loss.entropy import Entropy
    from assay.objective.loss.guided_shape import GuidedShape
    from assay.objective.loss.token_weights import (
        ClipCovariance, EntropyChange, Focal, LowLogp, ProbabilityGate, Ranked, TopCovariance, TopEntropy,
    )
    from assay.objective.loss.topk import Distill, SparseDivergence, TopKModel, TopKTeacher
    from assay.objective.loss.trust import Bounded, Gate, HardRegion, MinClip, TrustRegion, WeightClip
    from assay.objective.loss.trust_masks import DivergenceMask, Within
    from assay.objective.loss.trust_penalty import Proximal
    from assay.objective.loss.trust_soft import ClipWithGradient, GammaWeight, SoftGate
    from assay.objective.loss.vocab import (
        ChoiceLogp, Floor, MaxLogp, MeanLogp, MinP, PowerLogp, SquaredMass, Support, SupportLogp, TopKEntropy, TopP,
    )
    from assay.objective.loss.vocab_divergence import AlphaDivergence, FDivergence, FullKl, Jsd, ModelStat, PowerKl
    from assay.objective.loss.vocab_terms import (
        AdaptiveEntropy, ProxyKl, RestrictedGradient, ReweightedKl, SelectedKl, StatLoss,
    )
    from assay.objective.loss.weights import TokenWeight
    from assay.objective.loss.wrap import Where, Wrapped
    from assay.objective.methods import (
        Method, a2po, a_lol, aepo, agentic_reinforce, aot, apo, archer, areal, b_coder, bco, calib_rl, campo, cispo,
        cispo_masked, clip_cov, constrained, copg, cpl, cpo, cure, dapo, delethink, direct_advantage, discopop, dispo, dph_rl,
        dpo, dppo, dr_grpo, dro, dvao, echo, entropy_only, exo, expert_iteration, f_dpo, gdc, gdpo, geo_mask, gigpo, gkd,
        gmpo, gpg, gpg_nonzero, grpo, grpo_entropy, grpo_leave_one_out, grpo_passk, grpo_process, grpo_s, gspo, gui_g1,
        guide_grpo, hierarchical_grpo, hispo, hypervolume_weighting, icepop, inpo, ipo, iw_opd, kd_estimator, kd_topk, kdrl,
        kimi15, kl_cov, kl_rl, kto, ld_dpo, lite_ppo, log_tamed, loop, lp_reg, luspo, m2po, m_grpo, masked_is, maxrl, mpo,
        build_method, nca, nll, nlpo, one_shot, opd, opd_advantage, opd_clipped, opo, opsm, oreal, orpo, otb, pacs,
        pairwise_rl, pass_at_k_training, pf_grpo, pf_ppo, ppo, ppo_hl_gauss, prime_rl, prime_rl_ipo, pro_rl, pro_rl_v2,
        progrpo, prpo, r_gold, rae, rapo, real, ref_kl, reinforce, reinforce_discounted, reinforce_pp, reinforce_pp_baseline,
        remax, reseek, rest_grpo, rl_plus, rloo, rollout_is, rover, rso, sapo, scale_rl, sdft, sdpo, simpo, skywork_or1, sppo,
        srpo, steer, tis, tmn_reweight, top_entropy, topr, univg_r1, vapo, vespo, visurf, w_grpo, weighted_bc,
    )
    from assay.objective.objective import Objective
    from assay.objective.padded_loss import Prepared, TorchLoss, torch_loss
    from assay.objective.padded_batch import Inputs, PaddedInputs, RequiredInputs, required_inputs
    from assay.objective.preferences import Preference, preference_batch, preference_rows
    from assay.objective.program import Program
    from assay.objective.reducers import Local, Lowest, Moments, Reducer, Sum
    # fmt: on

# fmt: off
__all__ = [
    "AdaptiveEntropy",
    "AdaptiveKl",
    "AdaptiveKlInReward",
    "AddBonus",
    "Against",
    "Aggregation",
    "AlignExpert",
    "AlphaDivergence",
    "AnchorDivergence",
    "Annealed",
    "ApoDown",
    "ApoZero",
    "Balance",
    "BalancedBce",
    "Bce",
    "BcoPair",
    "BestAnd",
    "Binned",
    "Bonus",
    "Bounded",
    "Calibrated",
    "Center",
    "Chance",
    "ChoiceLogp",
    "ClipAdvantage",
    "ClipCovariance",
    "ClipWithGradient",
    "ColumnTarget",
    "ComponentNorm",
    "Confidence",
    "ConfidenceBonus",
    "ConservativeTarget",
    "Constant",
    "Constrained",
    "Correct",
    "Cosine",
    "CosineLength",
    "CostInGroup",
    "Credit",
    "CreditTerm",
    "Deduplicate",
    "DiscoGap",
    "Discount",
    "Distill",
    "DivergenceMask",
    "DropOneClass",
    "DropSmall",
    "DropStale",
    "DropTruncated",
    "DropZeroVariance",
    "DuelingValue",
    "Entropy",
    "EntropyChange",
    "ExoGap",
    "FDivergence",
    "Filter",
    "Fit",
    "Floor",
    "Focal",
    "FullKl",
    "Gae",
    "GammaWeight",
    "Gate",
    "GeoMean",
    "GroupSoftmax",
    "GuidedShape",
    "HardRegion",
    "HeadValue",
    "HingeGap",
    "HlGauss",
    "Huber",
    "HypervolumeScale",
    "IcePop",
    "Incorrect",
    "Inputs",
    "Interpolated",
    "JsLink",
    "Jsd",
    "Kl",
    "KlInReward",
    "Known",
    "Kto",
    "LengthInGroup",
    "Likelihood",
    "Linear",
    "Link",
    "Local",
    "LogRatioValue",
    "LogSquaredMass",
    "LogTamed",
    "LogisticGap",
    "Logits",
    "LoopPenalty",
    "LossTerm",
    "LowLogp",
    "Lowest",
    "Margin",
    "Marked",
    "MaxLogp",
    "MeanLogp",
    "MeanTarget",
    "Method",
    "MinClip",
    "MinP",
    "Mismatch",
    "Mix",
    "Mixture",
    "ModelStat",
    "Moments",
    "NcaPair",
    "NgramPenalty",
    "Nll",
    "Objective",
    "ObjectiveEvaluation",
    "OddsLink",
    "OneOf",
    "OptimalToken",
    "OutcomeMean",
    "OutcomeTarget",
    "Overlong",
    "PaddedInputs",
    "PairShape",
    "Pairwise",
    "PairwiseWin",
    "PassAtK",
    "PassAtKBonus",
    "PassRate",
    "PassRateHistory",
    "PassRateWindow",
    "PolicyGradient",
    "PositivePart",
    "PositivesOnly",
    "PowerKl",
    "PowerLink",
    "PowerLogp",
    "Preference",
    "PrefixScore",
    "Prepared",
    "ProbabilityGate",
    "ProcessNorm",
    "Program",
    "Prompt",
    "Proximal",
    "ProxyKl",
    "Ranked",
    "Ratio",
    "Reducer",
    "Reject",
    "RequiredInputs",
    "Resample",
    "Rescale",
    "RestrictedGradient",
    "ReturnTarget",
    "RewardGaps",
    "ReweightedKl",
    "RunningBaseline",
    "Scalarise",
    "Scale",
    "ScaleByClass",
    "ScaleByEntropy",
    "ScaleByMean",
    "ScaleByPrompt",
    "ScaleBySample",
    "ScaleBySignal",
    "ScaleByType",
    "Schedule",
    "ScoreLoss",
    "ScoreSquare",
    "Scored",
    "SecondMoment",
    "SelectedKl",
    "Selection",
    "Selector",
    "SeqMean",
    "SeqSum",
    "SetLoss",
    "SignSplit",
    "SmoothExpert",
    "SoftGate",
    "SortedGaps",
    "SparseDivergence",
    "SppoPair",
    "Square",
    "SquareGap",
    "SquaredMass",
    "StatLoss",
    "StateGroups",
    "Sum",
    "Support",
    "SupportLogp",
    "TagAdvantage",
    "Target",
    "TdLoss",
    "TeacherAdvantage",
    "TeacherGradient",
    "TeacherKl",
    "Teachers",
    "Tilt",
    "Token",
    "TokenReward",
    "TokenWeight",
    "TopCovariance",
    "TopEntropy",
    "TopGap",
    "TopKEntropy",
    "TopKModel",
    "TopKTeacher",
    "TopP",
    "TorchLoss",
    "Truncate",
    "TruncatedReward",
    "TrustRegion",
    "TurnAdvantage",
    "TurnMean",
    "Turns",
    "TwoHot",
    "Value",
    "VarianceAdaptive",
    "View",
    "WeightClip",
    "Where",
    "Whiten",
    "Within",
    "Wrapped",
    "a2po", "a_lol", "aepo", "agentic_reinforce", "aot", "apo", "archer", "areal", "b_coder", "bco", "calib_rl", "campo",
    "cispo", "cispo_masked", "clip_cov", "resolve_method", "constrained", "copg", "cpl", "cpo", "cure", "dapo", "delethink",
    "direct_advantage", "discopop",
    "dispo", "dph_rl", "dpo", "dppo", "dr_grpo", "dro", "dvao", "echo", "entropy_only", "evaluate", "exo", "expert_iteration",
    "f_dpo", "gdc", "gdpo", "geo_mask", "gigpo", "gkd", "gmpo", "gpg", "gpg_nonzero", "grpo", "grpo_entropy",
    "grpo_leave_one_out", "grpo_passk", "grpo_process", "grpo_s", "gspo", "gui_g1", "guide_grpo", "hierarchical_grpo", "hispo",
    "hypervolume_weighting", "icepop", "inpo", "ipo", "iw_opd", "kd_estimator", "kd_topk", "kdrl", "kimi15", "kl_cov", "kl_rl",
    "kto", "ld_dpo", "lite_ppo", "log_tamed", "loop", "lp_reg", "luspo", "m2po", "m_grpo", "masked_is", "maxrl", "mpo",
    "build_method", "nca",
    "nll", "nlpo", "one_shot", "opd", "opd_advantage", "opd_clipped", "opo", "opsm", "oreal", "orpo", "otb", "pacs",
    "pairwise_rl", "pass_at_k_training", "pf_grpo", "pf_ppo", "ppo", "ppo_hl_gauss", "preference_batch", "preference_rows",
    "prime_rl", "prime_rl_ipo", "pro_rl", "pro_rl_v2", "progrpo", "prpo", "r_gold", "rae", "rapo", "real", "ref_kl",
    "reinforce", "reinforce_discounted", "reinforce_pp", "reinforce_pp_baseline", "remax", "required_inputs", "reseek",
    "rest_grpo",
    "rl_plus", "rloo", "rollout_is", "rover", "rso", "sapo", "scale_rl", "sdft", "sdpo", "simpo", "skywork_or1", "sppo", "srpo",
    "steer", "tis", "tmn_reweight", "top_entropy", "topr", "torch_loss", "univg_r1", "vapo", "vespo", "visurf", "w_grpo",
    "weighted_bc",
]
# fmt: on

_HOME = {
    "credit.base": "Credit CreditTerm",
    "credit.baseline": "Against Center OptimalToken RunningBaseline TopGap",
    "credit.balance": "Constrained HypervolumeScale",
    "credit.combine": "LogTamed ScaleByType VarianceAdaptive",
    "credit.components": "ComponentNorm",
    "credit.critics": "TurnAdvantage",
    "credit.divergence": "AdaptiveKlInReward KlInReward",
    "credit.expert": "AlignExpert SmoothExpert",
    "credit.filters": (
        "DropOneClass DropSmall DropStale DropTruncated DropZeroVariance Filter PassRateHistory PassRateWindow PositivesOnly"
    ),
    "credit.length": "CosineLength CostInGroup LengthInGroup Overlong TruncatedReward",
    "credit.normalise": "Scale ScaleByMean ScaleBySignal Whiten",
    "credit.pass_at_k": "PassAtK PassAtKBonus",
    "credit.repetition": "LoopPenalty NgramPenalty",
    "credit.resample": "Balance BestAnd Chance Deduplicate Resample",
    "credit.returns": "Discount Gae ProcessNorm TokenReward Turns",
    "credit.reward": "Scalarise",
    "credit.shape": "Bonus PairwiseWin Rescale ScaleByClass",
    "credit.steps": "StateGroups",
    "credit.tags": "TagAdvantage",
    "credit.teacher": "TeacherAdvantage",
    "credit.tilt": "Tilt",
    "credit.transform": "AddBonus ClipAdvantage ConfidenceBonus PositivePart ScaleByPrompt ScaleBySample SignSplit",
    "credit.uncertainty": "ScaleByEntropy",
    "evaluation": "ObjectiveEvaluation evaluate resolve_method",
    "logits": "Logits",
    "loss.aggregate": "Aggregation Constant Prompt Selection SeqMean SeqSum Token TurnMean",
    "loss.base": "LossTerm View",
    "loss.distill": "TeacherGradient TeacherKl",
    "loss.divergence": "AnchorDivergence",
    "loss.entropy": "Entropy",
    "loss.hybrid": "Calibrated Confidence OutcomeMean PrefixScore",
    "loss.kl": "AdaptiveKl Kl",
    "loss.likelihood": "Nll",
    "loss.mismatch": "IcePop Mismatch Truncate",
    "loss.mismatch_reject": "Reject SecondMoment",
    "loss.policy": "PolicyGradient",
    "loss.ratio": "Ratio",
    "loss.ratio_kinds": "GeoMean Interpolated Mixture",
    "loss.schedule": "Annealed Cosine Linear Schedule",
    "loss.score": "ScoreLoss",
    "loss.select": "Correct Incorrect Known Marked OneOf PassRate Selector",
    "loss.sets.base": "Mix Scored SetLoss",
    "loss.sets.confidence": "LogSquaredMass",
    "loss.sets.groupwise": "BalancedBce GroupSoftmax RewardGaps",
    "loss.sets.links": "JsLink Link OddsLink PowerLink",
    "loss.sets.pairwise": "Pairwise",
    "loss.sets.pointwise": "Kto Likelihood ScoreSquare",
    "loss.sets.shapes": "ApoDown ApoZero BcoPair DiscoGap ExoGap HingeGap LogisticGap NcaPair PairShape SppoPair SquareGap",
    "loss.sets.sorted": "SortedGaps",
    "loss.td": "Margin TdLoss",
    "loss.td_fits": "Bce Binned Fit HlGauss Huber Square TwoHot",
    "loss.td_targets": "ColumnTarget ConservativeTarget MeanTarget OutcomeTarget ReturnTarget Target",
    "loss.td_values": "DuelingValue HeadValue LogRatioValue Value",
    "loss.teachers": "Teachers",
    "loss.guided_shape": "GuidedShape",
    "loss.token_weights": "ClipCovariance EntropyChange Focal LowLogp ProbabilityGate Ranked TopCovariance TopEntropy",
    "loss.topk": "Distill SparseDivergence TopKModel TopKTeacher",
    "loss.trust": "Bounded Gate HardRegion MinClip TrustRegion WeightClip",
    "loss.trust_masks": "DivergenceMask Within",
    "loss.trust_penalty": "Proximal",
    "loss.trust_soft": "ClipWithGradient GammaWeight SoftGate",
    "loss.vocab": "ChoiceLogp Floor MaxLogp MeanLogp MinP PowerLogp SquaredMass Support SupportLogp TopKEntropy TopP",
    "loss.vocab_divergence": "AlphaDivergence FDivergence FullKl Jsd ModelStat PowerKl",
    "loss.vocab_terms": "AdaptiveEntropy ProxyKl RestrictedGradient ReweightedKl SelectedKl StatLoss",
    "loss.weights": "TokenWeight",
    "loss.wrap": "Where Wrapped",
    "methods": (
        "Method a2po a_lol aepo agentic_reinforce aot apo archer areal b_coder bco calib_rl campo cispo "
        "cispo_masked clip_cov constrained copg cpl cpo cure dapo delethink direct_advantage discopop dispo dph_rl "
        "dpo dppo dr_grpo dro dvao echo entropy_only exo expert_iteration f_dpo gdc gdpo geo_mask gigpo "
        "gkd gmpo gpg gpg_nonzero grpo grpo_entropy grpo_leave_one_out grpo_passk grpo_process grpo_s "
        "gspo gui_g1 guide_grpo hierarchical_grpo hispo hypervolume_weighting icepop inpo ipo iw_opd kd_estimator "
        "kd_topk kdrl kimi15 kl_cov kl_rl kto ld_dpo lite_ppo log_tamed loop lp_reg luspo m2po m_grpo masked_is "
        "maxrl mpo build_method nca nll nlpo one_shot opd opd_advantage opd_clipped opo opsm oreal orpo otb pacs "
        "pairwise_rl pass_at_k_training pf_grpo pf_ppo ppo ppo_hl_gauss prime_rl prime_rl_ipo pro_rl "
        "pro_rl_v2 progrpo prpo r_gold rae rapo real ref_kl reinforce reinforce_discounted reinforce_pp "
        "reinforce_pp_baseline remax reseek rest_grpo rl_plus rloo rollout_is rover rso sapo scale_rl sdft sdpo "
        "simpo skywork_or1 sppo srpo steer tis tmn_reweight top_entropy topr univg_r1 vapo vespo visurf "
        "w_grpo weighted_bc"
    ),
    "objective": "Objective",
    "padded_loss": "Prepared TorchLoss torch_loss",
    "padded_batch": "Inputs PaddedInputs RequiredInputs required_inputs",
    "preferences": "Preference preference_batch preference_rows",
    "program": "Program",
    "reducers": "Local Lowest Moments Reducer Sum",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
