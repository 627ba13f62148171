"""What becomes of an objective where older weights sampled than those that learn."""

from __future__ import annotations

from assay.core.errors import ConfigError, PlanError
from assay.objective.objective import Objective
from assay.objective.plan import lagging

__all__ = ["objective_under_lag"]


def objective_under_lag(objective: Objective, lag: int, eta: int) -> Objective:
    """The objective as it is compiled for rollouts by older weights; itself where there are none.

    Args:
        objective: as it is set.
        lag: rollout batches between sampling and learning, ``Reinforce.lag``.
        eta: updates that rollouts of a stage beside its samplers may be old, ``Asynchronous.eta``.

    Raises:
        ConfigError: the method has nothing to correct for it.
    """
    if not lag and not eta:
        return objective
    try:
        return lagging(objective)
    except PlanError as error:
        name, short = ("lag", "lag=0") if lag else ("asynchronous.eta", "eta=0")
        raise ConfigError(f"Reinforce.{name}={lag or eta}: {error}, or set {short}") from None
