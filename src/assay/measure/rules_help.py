"""The doctor's rule on help: hints and prefixes that the policy cannot do without."""

from __future__ import annotations

from dataclasses import dataclass

from assay.measure.findings import Finding, Severity, lately, percent, steps_of
from assay.measure.history import History

__all__ = ["OnlyWithHelp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlyWithHelp:
    """Rollouts succeed with a hint or prefix, and hardly any without: evaluations give no help, so nothing is gained yet.

    Attributes:
        helped: success with help from which on the rule speaks.
        alone: success without help up to which it does; held-out accuracy where every rollout had help.
    """

    helped: float = 0.2
    alone: float = 0.02

    def __call__(self, history: History) -> Finding | None:
        success, without = lately(history["help/success"]), lately(history["help/success_without"])
        share = lately(history["help/share"])
        held_out = history["eval/greedy/all"].finite()
        alone = without.mean if len(without) else float(held_out.values[-1]) if len(held_out) else None
        if not len(success) or success.mean < self.helped or alone is None or alone > self.alone:
            return None
        where = "without help" if len(without) else "of held-out tasks, which give no help"
        return Finding(
            rule="OnlyWithHelp",
            severity=Severity.WARNING,
            sentence=(
                f"In {steps_of(success)} {percent(share.mean)} of the rollouts had help; {percent(success.mean)} of these "
                f"succeeded, and {percent(alone)} {where}."
            ),
            action=(
                "Let help become less: prefixes of every length down to none (Prefix(share=(0, 0.9))), a share of plain rollouts "
                "beside them (Pope), or as little as half of the rollouts need (Seele); and train for longer."
            ),
            first_step=success.span[0],
            last_step=success.span[1],
            numbers={"help/share": share.mean, "help/success": success.mean, "help/success_without": alone},
        )
