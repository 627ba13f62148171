"""Episodes of several roles, as one rollout for each."""

from __future__ import annotations

from dataclasses import replace

from assay.core.errors import DataError
from assay.core.rollout import ASIDE, Rollout

__all__ = ["check_alone", "of_role", "roles_in"]


def roles_in(episode: Rollout) -> list[str]:
    """The actors that an environment named, in the order in which they first acted; none where it named none."""
    return list(dict.fromkeys([c.role for c in episode.calls if c.role not in ("assistant", ASIDE)]))


def of_role(episode: Rollout, role: str) -> Rollout:
    """One actor's rollout of an episode: the turns of all, and its own asides."""
    owners: list[str] = []
    for call in episode.calls:  # an aside goes on from a call of whose it is
        owners.append(call.role if call.role != ASIDE or call.parent is None else owners[call.parent])
    kept = [c for c, owner in zip(episode.calls, owners, strict=True) if c.role != ASIDE or owner == role]
    places: dict[int | None, int | None] = {None: None}
    for call in episode.calls:  # what goes on from an aside that is left out goes on from what that went on from
        places[call.id] = kept.index(call) if call in kept else places[call.parent]
    calls = tuple(
        replace(call, id=at, parent=places[call.parent], shared=owners[call.id] != role) for at, call in enumerate(kept)
    )
    context = replace(episode.context, group=f"{episode.context.group}@{role}")
    return replace(episode, id=f"{episode.id}/{role}", context=context, calls=calls, role=role, episode=episode.id)


def check_alone(rollout: Rollout) -> None:
    """Refuses a rollout that is one actor's part of an episode.

    Raises:
        DataError: it is.
    """
    if rollout.role:
        raise DataError(
            f"rollout {rollout.id} is the part of role {rollout.role!r} in episode {rollout.episode}; only a rollout of one "
            "actor can branch"
        )
