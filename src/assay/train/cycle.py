"""Stages that are gone through several times, as one entry of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from assay.core.errors import ConfigError, UnknownNameError, a_kind
from assay.core.fields import check_positive
from assay.train.stage import Stage

__all__ = ["Cycle", "with_cycles"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """Stages that a run goes through ``rounds`` times: it stands for them in ``Run.stages``, which holds each stage of each round
    by itself. So a run with cycles is resumed, reported and lengthened as any other.

    Attributes:
        stages: of a round, in order.
        rounds: how many.
        from_: ``last``: each round goes on from the weights that the one before left; ``first``: its first stage that learns and
            can begin anew (`ImitateCollected`) does so from the weights that the run began with, as in expert iteration from the
            base: rollouts come from the newest weights, and what is learned from them starts afresh.

    In expert iteration a round minimises ``-1/D sum_i sum_t logp_it`` over the right answers that it sampled.

    Raises:
        ConfigError: no stages, something else among them, or nothing that can begin anew.

    Carries: expert iteration (arXiv 2504.07912), and OpenVLThinker's cycle of sampling, supervised learning and RL (arXiv
    2503.17352), on text.

    >>> from assay.train import Collect, ImitateCollected
    >>> made = Cycle(stages=(Collect(steps=2), ImitateCollected(steps=20)), rounds=3, from_="first")
    >>> [stage.name for stage in made.expanded], made.expanded[-1].start
    (['collect', 'sft', 'collect', 'sft', 'collect', 'sft'], 'first')
    """

    stages: tuple[Stage, ...] = ()
    rounds: int = 2
    from_: Literal["first", "last"] = "last"

    def __post_init__(self) -> None:
        check_positive(self, "rounds")
        if not self.stages:
            raise ConfigError("Cycle.stages is empty; give at least one stage, such as Collect(...) and ImitateCollected(...)")
        for at, stage in enumerate(self.stages):
            if not hasattr(stage, "open"):
                raise ConfigError(f"Cycle.stages[{at}] is {a_kind(stage)}, no stage")
        if self.from_ not in ("first", "last"):
            raise UnknownNameError("Cycle.from_", self.from_, ("first", "last"))
        if self.from_ == "first" and not any(hasattr(stage, "start") for stage in self.stages):
            raise ConfigError(
                "Cycle.from_='first': no stage of it can begin from the run's first weights; give an ImitateCollected, or use "
                "from_='last'"
            )

    @property
    def expanded(self) -> tuple[Stage, ...]:
        """Each stage of each round."""
        round_ = list(self.stages)
        if self.from_ == "first":
            at = next(i for i, stage in enumerate(round_) if hasattr(stage, "start"))
            round_[at] = replace(cast("Any", round_[at]), start="first")
        return tuple(round_) * self.rounds


def with_cycles(stages: Sequence[Stage | Cycle]) -> tuple[Stage, ...]:
    """Stages, with those of each cycle in its place."""
    return tuple(one for stage in stages for one in (stage.expanded if isinstance(stage, Cycle) else (stage,)))
