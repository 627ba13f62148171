"""The doctor's rules on tools: a policy that does not call them, and calls that fail."""

from __future__ import annotations

from dataclasses import dataclass

from assay.measure.findings import Finding, Severity, lately, percent, steps_of
from assay.measure.history import History

__all__ = ["ToolErrors", "UnusedTools"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedTools:
    """The policy has tools and hardly ever calls one.

    Attributes:
        least: calls per rollout that are enough.
    """

    least: float = 0.02

    def __call__(self, history: History) -> Finding | None:
        now = lately(history["tools/calls"])
        if not len(now) or now.mean >= self.least:
            return None
        what = "calls none of its tools" if now.mean == 0 else f"makes {now.mean:.2g} calls of tools per rollout"
        return Finding(
            rule="UnusedTools",
            severity=Severity.WARNING,
            sentence=f"The policy {what} in {steps_of(now)}.",
            action=(
                "What is never tried cannot be rewarded: look whether a prompt shows the tools and how a call is written "
                "(`assay rollouts show RUN`), demonstrate some calls first, or take a model that was taught to call."
            ),
            first_step=now.span[0],
            last_step=now.span[1],
            numbers={"tools/calls": now.mean},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolErrors:
    """Most calls of tools fail.

    Attributes:
        most: largest bearable share of calls.
    """

    most: float = 0.5

    def __call__(self, history: History) -> Finding | None:
        now = lately(history["tools/errors"])
        if not len(now) or now.mean <= self.most:
            return None
        return Finding(
            rule="ToolErrors",
            severity=Severity.WARNING,
            sentence=f"{percent(now.mean)} of the calls of tools in {steps_of(now)} failed.",
            action=(
                "Read the answers of the tools (`assay rollouts show RUN`): a wrong name or wrong arguments are the policy's, "
                "and a clearer description helps; an exception of every call is the tool's own."
            ),
            first_step=now.span[0],
            last_step=now.span[1],
            numbers={"tools/errors": now.mean},
        )
