"""The learner that a stage of a run gets, and the names of the models that it can score with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from assay.runtime.anchors import BASE, Anchor
from assay.runtime.settings import LearnerSettings

if TYPE_CHECKING:
    from assay.train.run import Run
    from assay.train.stage import Stage

__all__ = ["learner_of", "scoring_model"]


def learner_of(run: Run, stage: Stage) -> LearnerSettings:
    """The learner that a stage gets: its own settings, with the anchor ``base`` besides where the evaluation measures the
    divergence from the stage's start and no anchor of the stage stays there, or where the stage's scorer asks for it.
    """
    anchors = stage.learner.anchors
    asked = run.evaluation.kl_to_base or BASE in stage.scored_models
    if not asked or any(a.is_start for a in anchors):
        return stage.learner
    return replace(stage.learner, anchors=(*anchors, Anchor(BASE)))


def scoring_model(settings: LearnerSettings, name: str) -> str:
    """The learner's own name of what a scorer calls ``name``: ``base`` is any anchor that stays what the stage started from."""
    known = [a.name for a in settings.anchors]
    if name != BASE or BASE in known:
        return name
    return next((a.name for a in settings.anchors if a.is_start), BASE)
