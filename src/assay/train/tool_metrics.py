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

    Where it happened: ``tools/timeouts`` and ``tools/cut``, the shares of calls without an answer in time and with a shortened
    one; ``tools/cost`` per rollout, the sum of what its calls cost.

    Args:
        sampler: of the stage.
        groups: of a step.
    """
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    results = [result for rollout in rollouts for call in rollout.calls if not call.shared for result in call.results]
    if not rollouts or not (results or getattr(sampler.player, "tools", ())):
        return {}
    failed = sum(result.error is not None for result in results)
    found = {"tools/calls": len(results) / len(rollouts)} | ({"tools/errors": failed / len(results)} if results else {})
    more = {
        "tools/timeouts": sum(result.timed_out for result in results) / max(1, len(results)),
        "tools/cut": sum(result.cut > 0 for result in results) / max(1, len(results)),
        "tools/cost": sum(result.cost for result in results) / len(rollouts),
    }
    return found | {name: value for name, value in more.items() if value}
