"""Sampling that leaves tokens out (``top_p``, ``top_k``, ``min_p``): who corrects for it, the objective or the learner's passes.

An objective that weighs tokens by the learner's probability over the engine's corrects for it itself. For any other one the
engine tells from which ids each token was drawn, and the learner scores it within them, so that both sides are one distribution:
the sampling masks of DeepSeek-V3.2 (arXiv 2512.02556).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from assay.core.errors import ConfigError
from assay.core.plan import Plan
from assay.core.rollout import Sampling
from assay.core.vocab import FullEntropy
from assay.objective.plan import corrects_sampler

if TYPE_CHECKING:
    from assay.train.run import Run
    from assay.train.stage import Stage

__all__ = ["check_annealing", "check_support", "keeps_support", "sampling_of", "support_note"]


def keeps_support(sampling: Sampling, stage: Stage) -> bool:
    """Whether a stage's tokens carry the ids that they were drawn from."""
    if not stage.samples or not sampling.truncated:
        return False
    return sampling.keep_support or not corrects_sampler(stage.objective)


def sampling_of(run: Run, stage: Stage, scheduled: Mapping[str, float] | None = None) -> Sampling:
    """How a stage's rollouts are drawn.

    Args:
        run, stage: the settings.
        scheduled: settings that a step changes, with their values: ``temperature``, ``max_new_tokens``, ``annealing_decay``.

    >>> from assay.recipes import quickstart
    >>> run = replace(quickstart(), sampling=Sampling(top_k=5))
    >>> sampling_of(run, run.stages[0]).keep_support
    True
    """
    drawn = replace(run.sampling, keep_support=True) if keeps_support(run.sampling, stage) else run.sampling
    changed: dict[str, Any] = {k: v for k, v in (scheduled or {}).items() if k in ("temperature", "max_new_tokens")}
    if drawn.annealing and scheduled and "annealing_decay" in scheduled:
        changed["annealing"] = replace(drawn.annealing, decay=scheduled["annealing_decay"])
    return replace(drawn, **changed)


def check_annealing(run: Run) -> None:
    """Refuses a temperature that falls along rollouts where the engine has but one for all tokens.

    Raises:
        ConfigError: it is one of a server.
    """
    if run.sampling.annealing and not getattr(run.engine, "tells_support", False):
        raise ConfigError(
            f"Run.sampling.annealing with {type(run.engine).__name__}: a server takes one temperature for all tokens of a "
            "request; sample in process (engine=Auto()), or leave annealing out"
        )


def check_support(run: Run, stage: Stage, plan: Plan) -> None:
    """Refuses tokens drawn from a part of the vocabulary where neither the objective nor the learner's passes can correct for it.

    Raises:
        ConfigError: the engine cannot tell the supports, or a statistic of the objective reads the whole vocabulary.
    """
    if not keeps_support(run.sampling, stage):
        return
    neutral = run.sampling.whole
    name = next(n for n in ("top_p", "top_k", "min_p") if getattr(run.sampling, n) != getattr(neutral, n))
    place = f"Run.sampling.{name}={getattr(run.sampling, name)} in a run with RL"
    instead = (
        "use a method that corrects for it by the engine's probabilities (tis, icepop, areal, ...), or leave top_p at 1.0, top_k "
        "and min_p at 0, and lower the temperature instead"
    )
    if not getattr(run.engine, "tells_support", False):
        raise ConfigError(
            f"{place}: tokens are drawn from a part of the vocabulary, the objective does not correct for that, and "
            f"{type(run.engine).__name__} does not tell which part, so that the learner could not score within it; sample in "
            f"process (engine=Auto()), {instead}"
        )
    stats = [*plan.vocab, *(f.stat for f in plan.forwards if f.stat is not None)]
    if whole := sorted({s.name for s in stats if not isinstance(s, FullEntropy)}):
        raise ConfigError(
            f"{place}: the learner scores tokens within the ids that they were drawn from, and the objective reads "
            f"{', '.join(whole)} of the whole vocabulary; {instead}"
        )


def support_note(run: Run, stage: Stage) -> str:
    """What `assay explain` says of a stage's truncated sampling; empty where there is none."""
    if not stage.samples or not run.sampling.truncated:
        return ""
    if keeps_support(run.sampling, stage):
        return (
            "tokens carry the ids that they were drawn from; learner and anchors score within them, and their log-probabilities "
            "come from PyTorch, not from the compiled head"
        )
    return "the objective corrects for what could not be drawn, by the engine's probabilities"
