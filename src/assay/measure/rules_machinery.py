"""The doctor's rules on the machinery around the policy: grader, sampler, weights.

Each is a frozen dataclass of thresholds and a pure function of the reinforcement-learning part of a history.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.measure.findings import Finding, Severity, at_start, lately, percent, steps_of
from assay.measure.history import History, Series
from assay.measure.logprob_agreement import MISMATCH_BARS, MOST_RATIO

__all__ = ["EngineMismatch", "GraderHangs", "RisingFaults", "SilentRewards", "UnprovenWeights", "UntrainedWeights"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RisingFaults:
    """Rollouts are lost to verifier or infrastructure faults, and more of them than before, or simply too many.

    Attributes:
        most: largest bearable share at any time.
        rising: share from which on a rise counts.
        factor: over the share at the start that makes a rise.
    """

    most: float = 0.1
    rising: float = 0.01
    factor: float = 2.0

    def __call__(self, history: History) -> Finding | None:
        start, now = at_start(history["fault/rate"]), lately(history["fault/rate"])
        if not len(now):
            return None
        risen = now.mean >= self.rising and now.mean >= self.factor * start.mean and now.span[0] > start.span[1]
        if now.mean <= self.most and not risen:
            return None
        parts = {n: lately(history[n]).mean for n in history.names("fault/rate/") if now.span[1] in history[n].steps}
        worst = max(parts, key=parts.__getitem__, default="")
        where = f", most of all on {worst.removeprefix('fault/rate/')!r} ({percent(parts[worst])})" if worst else ""
        return Finding(
            rule="RisingFaults",
            severity=Severity.ALARM,
            sentence=(
                f"{percent(now.mean)} of the rollouts in {steps_of(now)} ended in a verifier or infrastructure fault, "
                f"against {percent(start.mean)} in {steps_of(start)}{where}."
            ),
            action=(
                "They are masked, not scored 0, but what is left is a biased sample: read events.jsonl and the faulty "
                "rollouts, and fix the scorer."
            ),
            first_step=start.span[0],
            last_step=now.span[1],
            numbers={"fault/start": start.mean, "fault/rate": now.mean} | parts,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderHangs:
    """The grader hangs or dies on some rollouts. Each costs a deadline, and an answer that does it twice scores the floor.

    Attributes:
        most: largest bearable share of such rollouts lately.
        alarm: share from which on the rewards are doubtful: they say what the grader can bear, not what is right.
    """

    most: float = 0.01
    alarm: float = 0.1

    def __call__(self, history: History) -> Finding | None:
        now = lately(_without_evaluation(history, history["rollouts/sampled"]))
        hung, died, again = (_total(history[f"verify/{n}"], now) for n in ("hung", "died", "retried"))
        stopped, rollouts = hung + died, float(now.values.sum())
        # a rollout may stop the grader twice, but is judged again once; a batch that is split is judged again nowhere
        share = min(stopped, again or stopped) / rollouts if rollouts else 0.0
        if share < self.most:
            return None
        told = [f"{what} {n:.0f} time{'s' if n > 1 else ''}" for n, what in ((hung, "hung"), (died, "died")) if n]
        slow = (
            "bound the work that it does (patterns, parsers, code that it runs), or raise Run.reward_deadline if it is only slow"
        )
        dead = "find what ends its process: memory, a crash in a library, an exit"
        fix = "; ".join(words for n, words in ((hung, slow), (died, dead)) if n)
        return Finding(
            rule="GraderHangs",
            severity=Severity.ALARM if share >= self.alarm else Severity.WARNING,
            sentence=f"In {steps_of(now)} the grader {' and '.join(told)}, on {percent(share)} of the rollouts.",
            action=(
                f"{fix[0].upper()}{fix[1:]}. An answer that does this twice scores the floor, even a right one: read those with "
                "fault policy in rollouts.jsonl."
            ),
            first_step=now.span[0],
            last_step=now.span[1],
            numbers={"verify/hung": hung, "verify/died": died, "verify/share": share},
        )


def _without_evaluation(history: History, series: Series) -> Series:
    """The steps without an evaluation, whose rollouts are judged by the same grader; all steps where each has one."""
    keep = ~np.isin(series.steps, history["time/evaluate"].steps)
    return Series(series.steps[keep], series.values[keep]) if keep.any() else series


def _total(counts: Series, window: Series) -> float:
    """Sum over the window's steps of what is recorded only where it happened."""
    return float(counts.values[np.isin(counts.steps, window.steps)].sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class UnprovenWeights:
    """After some updates nothing showed that the sampler serves the trained weights."""

    def __call__(self, history: History) -> Finding | None:
        proof, reward = history["proof/state"], history["reward/mean"]
        updated = history["grad/norm"].steps
        counted = np.isin(proof.steps, updated) if len(updated) else np.ones(len(proof), np.bool_)
        bad = proof.steps[counted & ~(proof.values == 1.0)]
        if len(proof) and not len(bad):
            return None
        if not len(proof) and not len(reward):
            return None  # nothing was sampled at all
        first, last = (int(bad[0]), int(bad[-1])) if len(proof) else reward.span
        what = (
            f"After {len(bad)} of {counted.sum()} updates (steps {first}–{last})"
            if len(proof)
            else f"From step {first} to {last}"
        )
        return Finding(
            rule="UnprovenWeights",
            severity=Severity.ALARM,
            sentence=f"{what} it was not proved that the rollouts came from the trained weights.",
            action="Keep Run.prove_weights on, and use an engine that gives checksums or scores probe tokens.",
            first_step=first,
            last_step=last,
            numbers={"proof/unproven": float(len(bad) if len(proof) else len(reward))},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UntrainedWeights:
    """Tensors that are said to be trained have had a gradient of exactly 0 at every update that moved others."""

    def __call__(self, history: History) -> Finding | None:
        found, norms = history["grad/untrained"], history["grad/norm"]
        if not len(found) or (len(norms) and found.span[1] < norms.span[1]):  # they have had one since
            return None
        count, (first, last) = int(found.values[-1]), found.span
        return Finding(
            rule="UntrainedWeights",
            severity=Severity.WARNING,
            sentence=f"{count} trained tensor{'s' if count > 1 else ''} had a gradient of exactly 0 in {steps_of(found)}.",
            action=(
                "The event 'untrained' in events.jsonl names them: leave them out of what is trained (Lora.targets), or find why "
                "the loss does not depend on them."
            ),
            first_step=first,
            last_step=last,
            numbers={"grad/untrained": float(count)},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SilentRewards:
    """Of several rewards some have had no verdict on any rollout of the run."""

    def __call__(self, history: History) -> Finding | None:
        found, judged = history["reward/silent"], history["reward/mean"]
        if not len(found) or (len(judged) and found.span[1] < judged.span[1]):  # they have had one since
            return None
        count, (first, last) = int(found.values[-1]), found.span
        return Finding(
            rule="SilentRewards",
            severity=Severity.WARNING,
            sentence=f"{count} of the rewards had no verdict on any rollout, still in {steps_of(found)}.",
            action=(
                "The event 'reward' in events.jsonl names each: it returned None for every rollout, so the run learns from the "
                "others alone. Mend it, or leave it out."
            ),
            first_step=first,
            last_step=last,
            numbers={"reward/silent": float(count)},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineMismatch:
    """Sampler and learner disagree on the probabilities of the same tokens at the same weights.

    A run that judged each step by bars of its own (`Run.mismatch`) is taken at its word: ``engine/alarm``. The thresholds are for
    numbers of other programs.

    Attributes:
        most_k3: largest healthy divergence per token, nats.
        most_ratio: largest healthy factor on a single token.
    """

    most_k3: float = MISMATCH_BARS["bfloat16"]
    most_ratio: float = MOST_RATIO

    def __call__(self, history: History) -> Finding | None:
        k3, ratio = lately(history["engine/mismatch_k3"]), lately(history["engine/max_ratio"])
        top, alarms = float(ratio.values.max()) if len(ratio) else 1.0, lately(history["engine/alarm"])
        if len(alarms):
            if not alarms.values.any():
                return None
        elif not (len(k3) and k3.mean > self.most_k3) and top <= self.most_ratio:
            return None
        window = k3 if len(k3) else ratio
        parts = ([f"by {k3.mean:.2g} nats per token (k3)"] if len(k3) else []) + (
            [f"by a factor of up to {top:.3g}"] if len(ratio) else []
        )
        return Finding(
            rule="EngineMismatch",
            severity=Severity.ALARM,
            sentence=f"In {steps_of(window)} sampler and learner disagreed on the same tokens {' and '.join(parts)}.",
            action=(
                "Give both the same precision and the same sampling support (top-p 1, top-k 0), replay the routing of a mixture "
                "of experts, and until then correct with truncated importance weights (tis, icepop); Run.mismatch says from when "
                "on a run alarms or stops."
            ),
            first_step=window.span[0],
            last_step=window.span[1],
            numbers=({"engine/mismatch_k3": k3.mean} if len(k3) else {}) | ({"engine/max_ratio": top} if len(ratio) else {}),
        )
