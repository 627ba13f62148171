"""How often the rollouts of a step call tools, and how often such a call fails."""

from __future__ import annotations

from collections.abc import Sequence

from assay.core.group import Group
from assay.core.protocols import SamplerSpec

__all__ = ["tool_metrics"]


def tool_metrics(sampler: SamplerSpec, groups: Sequence[Group]) -> dict[str, float]:
    """``tools/calls`` per rollout, and ``tools/errors``, the share of calls that had an error for an answer: wrong arguments, an
    unknown name, or a tool that raised.

    Nothing where the stage's sampler has no tools and no environment answered a call, so that other runs keep their digests; and
    no share of errors where there was no call.

    Args:
        sampler: of the stage.
        groups: of a step.
    """
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    results = [result for rollout in rollouts for call in rollout.calls if not call.shared for result in call.results]
    if not rollouts or not (results or getattr(sampler.player, "tools", ())):
        return {}
    failed = sum(result.error is not None for result in results)
    return {"tools/calls": len(results) / len(rollouts)} | ({"tools/errors": failed / len(results)} if results else {})
