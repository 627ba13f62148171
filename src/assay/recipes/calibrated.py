"""Calibration in miniature: a policy that learns to state how often it is right (RLCR)."""

from __future__ import annotations

from assay.core.rollout import Sampling
from assay.guide import Uniform
from assay.objective.loss.entropy import Entropy
from assay.objective.methods import dr_grpo
from assay.runtime.settings import AdamW, DecoderShape, LearnerSettings, LearningRateSchedule, Muon
from assay.scorers.brier import BrierReward
from assay.tasks.confidence import WithConfidence
from assay.train.models import Built, Scratch
from assay.train.reinforce import Reinforce
from assay.train.run import Evaluation, Run
from assay.train.stages import WarmUp
from assay.verify.confidence import ConfidenceMarks
from assay_tasks.urns import Urns

__all__ = ["confidence", "confidence_base"]

_NEW = 6
"""Tokens of the longest answer, ``a~0.1``, and its end."""


def confidence_base(seed: int = 0) -> Run:
    """A base that names the commoner colour of an urn, and states confidences that know nothing: 0 to 1, whatever the urn."""
    return Run(
        name="base-confidence",
        seed=seed,
        model=Scratch(shape=DecoderShape(num_layers=2), seed=seed),
        tasks=_TASKS,
        stages=(
            WarmUp(
                steps=200,
                batch=64,
                demonstrations=4000,
                noise=0.1,
                gate=0.3,
                learner=LearnerSettings(optimizer=Muon(lr=4e-3), schedule=LearningRateSchedule(kind="linear")),
            ),
        ),
        sampling=Sampling(max_new_tokens=_NEW),
        evaluation=Evaluation(every=0, final_per_level=64),
        checkpoint_every=200,
    )


def confidence(seed: int = 0) -> Run:
    """RLCR's reward on urns, of which the commoner colour is drawn in 5, 7 or 9 of 10 cases: confidences become these rates.

    A bonus for entropy, which the paper does not need, keeps several confidences alive until the policy tells the urns apart;
    without it they all become one rate. With ``--stages.0.reward.kind FromTasks`` it learns from correctness alone, and its
    confidences go on to know nothing.
    """
    return Run(
        name="confidence",
        seed=seed,
        model=Built(run=confidence_base(seed)),
        tasks=_TASKS,
        stages=(
            Reinforce(
                steps=300,
                groups=64,
                group_size=8,
                objective=dr_grpo(length=_NEW) + Entropy(coef=0.02),
                curriculum=Uniform(),
                reward=BrierReward(),
                learner=LearnerSettings(
                    optimizer=AdamW(lr=1e-3), schedule=LearningRateSchedule(kind="linear", start=0.5, floor=0.1)
                ),
            ),
        ),
        sampling=Sampling(max_new_tokens=_NEW),
        evaluation=Evaluation(every=100, per_level=64, final_per_level=256, n=4),
    )


_TASKS = WithConfidence(tasks=Urns(), marks=ConfidenceMarks("~", ""), request="")
