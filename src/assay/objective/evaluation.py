"""A method on padded arrays: loss, gradient and advantages in float64, for tests, comparisons, and other people's trainers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay.core.batch import Batch
from assay.core.errors import ConfigError
from assay.objective.logits import Logits
from assay.objective.methods import build_method
from assay.objective.objective import Objective
from assay.objective.padded_batch import Inputs, PaddedInputs
from assay.objective.reducers import F

__all__ = ["Inputs", "ObjectiveEvaluation", "resolve_method", "evaluate"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObjectiveEvaluation:
    """What a method makes of a batch.

    Attributes:
        loss: to be minimised, globally normalised.
        gradient: its derivative by each differentiable input, in that input's shape; 0 where the input has no influence.
        advantages: ``[B, T]`` per token, 0 outside the mask; of a loss on scores the implicit advantage ``-dPhi/ds``; 0 where
            the method has none.
        metrics: what credit and loss report.
    """

    loss: float
    gradient: Mapping[str, F]
    advantages: F
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])


def evaluate(method: str | Objective, inputs: Inputs, **settings: Any) -> ObjectiveEvaluation:
    """Loss, gradient and advantages of a method on padded arrays, one row per rollout.

    The inputs, by name: ``mask [B, T]``; ``logp_new [B, T]`` and the further columns that the method needs (``logp_old``,
    ``logp_engine``, ``logp_ref``, ``entropy``, ``values``, ...); ``rewards [B]`` or ``components`` (name to ``[B]``);
    ``group_id [B]``, needed where rollouts of a prompt are compared; ``stream [B]``, names (all ``on_policy`` when left out);
    ``valid [B]`` (all when left out: a rollout without a verdict has neither loss nor part in a statistic); ``truncated [B]``
    and ``length [B]`` (its loss tokens when left out) for the terms that read them. ``advantages``, ``[B]`` or ``[B, T]``, stand
    in the place of the method's own credit chain, filters included, which then does not run.

    Columns that come from a distribution may be given as logits: ``logits [B, T, V]`` of the current policy with ``ids [B, T]``
    of the drawn tokens stand for ``logp_new``, ``entropy`` and the method's statistics over the vocabulary (`VocabStat`), and
    the gradient is by ``logits``. ``logits_old`` (the policy at the start of the batch) stands for ``logp_old`` and what else is
    read of that policy, ``logits_ref``, ``logits_teacher``, ... for the same of other models; a divergence summed over the
    vocabulary needs the logits of the model that it compares with. A column that is given beside logits counts as it
    stands: with ``logp_new`` given, ``logits`` are those of the statistics alone, and ``ids`` are only given where these read
    them.

    Arrays, lists and tensors are read strictly: a column has the whole shape that stands here (``[B, T, 1]`` is none), numbers
    are booleans, integers or floats, and a tensor has no graph, which would be dropped. The order of the rows changes nothing:
    where a method draws lots or breaks ties (`Balance`, `BestAnd`, `SortedGaps`, ...), the rollouts of a group stand in the order
    of their contents; in training they stand in the order in which they were drawn.

    What stands outside the mask is never read. The differentiable inputs are ``logits``, or else ``logp_new``, ``entropy`` and
    the statistics; and ``values``; those of them that the method needs. A rollout without loss tokens has its part in its
    group's statistics and in no denominator. A batch without any loss token has loss 0. Running statistics stand where a new
    run's stand.

    Args:
        method: a name that `methods` lists, or a composition.
        inputs: arrays by name.
        settings: of the named method's constructor.

    Raises:
        DataError: an input is missing, is not used by this method, has the wrong shape or kind, requires a gradient, or is not
            finite where it is read.
        UnknownNameError: no such method, setting or stream.
        PlanError: the composition cannot be right.

    >>> import numpy as np
    >>> from assay.objective import evaluate
    >>> flat = np.full((4, 2), -1.0)
    >>> inputs = {"mask": flat < 0, "logp_new": flat, "logp_old": flat, "rewards": [1, 0, 0, 0], "group_id": [7, 7, 7, 7]}
    >>> evaluate("grpo", inputs, kl=0.0, eps=0.0).advantages[:, 0].tolist()
    [1.5, -0.5, -0.5, -0.5]

    An exact entropy bonus, from logits: where both tokens are equally likely, nothing raises the entropy.

    >>> given = {"mask": [[1, 1]], "ids": [[0, 1]], "logits": [[[0.0, 0.0], [1.0, 0.0]]]}
    >>> evaluate("entropy_only", given, coef=1.0).gradient["logits"].round(4).tolist()
    [[[0.0, 0.0], [0.0983, -0.0983]]]
    """
    from assay.objective.loss.tensors import leaves, slopes

    objective = resolve_method(method, settings)
    plan = objective.plan()
    logits = Logits.of(inputs, plan)
    table = PaddedInputs.of(inputs, objective, plan, logits)
    inner = [*(("logits",) if logits.live else ()), *(n for n in plan.live if n not in logits.live)]
    if not len(table.present):
        gradient = {name: np.zeros(table.columns[name].shape) for name in inner}
        return ObjectiveEvaluation(loss=0.0, gradient=gradient, advantages=np.zeros(table.mask.shape))
    program = objective.compile()
    batch = table.batch(objective)
    ready = program.prepare(batch if table.credited else program.credit(batch))
    live = leaves({name: table.flat(name) for name in inner})
    made = logits.tensors(table, live["logits"], ready) if logits.live else {}
    loss, metrics = program.micro(ready, {**live, **made})
    return ObjectiveEvaluation(
        loss=float(loss.detach()),
        gradient={name: table.pad_values(slope) for name, slope in slopes(loss, live).items()},
        advantages=table.pad_values(_advantages(objective, ready)),
        metrics={**program.metrics(), **metrics},
    )


def resolve_method(method: str | Objective, settings: Mapping[str, Any]) -> Objective:
    """The composition that a name and settings stand for, or the given one.

    Raises:
        UnknownNameError: no such method or setting.
        ConfigError: settings beside a composition.
    """
    if isinstance(method, str):
        return build_method(method, **settings)
    if settings:
        raise ConfigError(f"settings {sorted(settings)} belong to a named method; change a composition with dataclasses.replace")
    return method


def _advantages(objective: Objective, ready: Batch) -> F:
    """``[N]`` advantages: those of losses on scores where there are any, else the credit chain's."""
    implicit = [np.asarray(ready.token(f"{t.name}/implicit")) for t in objective.losses if f"{t.name}/implicit" in ready.tokens]
    if implicit:
        return np.sum(implicit, axis=0)
    if objective.uses_reward:
        return np.asarray(ready.token("advantage"), np.float64)
    return np.zeros(int(ready.offsets[-1]))
