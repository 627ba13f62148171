"""What is checked of a stage's replay and of what composes its batches, before a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.errors import ConfigError
from assay.guide import DeferredReplay, Recompose
from assay.guide.hint_composers import packer_of
from assay.objective.loss.wrap import unwrap
from assay.train.row_replay import RowReplay

if TYPE_CHECKING:
    from assay.train.reinforce import Reinforce

__all__ = ["check_replay"]


def check_replay(stage: Reinforce) -> None:
    """Raises ConfigError when a replay is asked for that is not there, or is there and never read.

    Not at construction: a command line changes one field after the other.
    """
    by_row = isinstance(stage.replay, RowReplay)
    if isinstance(stage.composer, Recompose) or isinstance(stage.replay, DeferredReplay):
        _check_recompose(stage)
        return
    packer = packer_of(stage.composer)
    if packer is None and not by_row:
        return
    share = packer.replay_share if packer is not None else 0.0
    if share and stage.replay is None:
        raise ConfigError(f"Reinforce.composer.replay_share={share}, but there is no replay: give replay=Recent(...)")
    if share or by_row:
        _check_ratio(stage, "Reinforce.replay=RowReplay(...)" if by_row else f"Reinforce.composer.replay_share={share}")
    if by_row and share:
        raise ConfigError(f"Reinforce.composer.replay_share={share}, and RowReplay replays rollouts at their rows alone; use 0")
    if stage.replay is not None and not share and not by_row:
        raise ConfigError("Reinforce.replay is never read: set composer=Compose(replay_share=...), or leave the replay out")


def _check_recompose(stage: Reinforce) -> None:
    if not isinstance(stage.replay, DeferredReplay) or not isinstance(stage.composer, Recompose):
        raise ConfigError(
            f"Reinforce.composer is {type(stage.composer).__name__} and .replay {type(stage.replay).__name__}: Recompose puts "
            "off rollouts, which wait in a DeferredReplay; give composer=Recompose() and replay=DeferredReplay() together"
        )
    _check_ratio(stage, "Reinforce.replay=DeferredReplay(...)")


def _check_ratio(stage: Reinforce, place: str) -> None:
    """Raises ConfigError where nothing in the objective corrects for the weights that sampled a replayed rollout."""
    policy = stage.objective.policy
    ratio = getattr(unwrap(policy) if policy else None, "ratio", None)
    if ratio is None or ratio.level == "none":
        raise ConfigError(
            f"{place}: replayed rollouts come from older weights, and the objective's policy "
            "term has no ratio to correct for it; use a method with one (grpo, dapo, ...) or leave the replay out"
        )
