"""Sampler and learner on the same tokens at the same weights: how far apart they are, and when that is too far."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.errors import ConfigError, MismatchError
from assay.core.plan import Forward
from assay.core.protocols import Learner
from assay.core.timing import span
from assay.measure.logprob_agreement import MISMATCH_BARS, MOST_RATIO, agreement, comparable

__all__ = ["Agreement", "Disagreement", "MismatchCheck", "TokenObserver", "coarser"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MismatchCheck:
    """When engine and learner, which should compute the same policy, differ too much.

    Both numbers are divergences per token, in nats (``engine/mismatch_k3``), of the tokens that a step sampled. They change
    nothing that is learned, so a resume may change them in ``run.toml``.

    Attributes:
        alarm: from here on ``events.jsonl`` says so, and the doctor. None: what rounding explains, 1e-6 where engine and learner
            compute in float32 and 5e-3 where one of them has bfloat16, or ``abort`` where that is less.
        abort: from here on the run stops with a `MismatchError`: before its first update, or behind a step, with a checkpoint.
            None never stops it.
        ratio: the alarm is also given for a single token whose two probabilities differ by this factor.

    Raises:
        ConfigError: a number out of range, or a run that would stop before it alarms.

    >>> MismatchCheck(abort=0.02).bar("float32"), MismatchCheck(abort=0.002).bar("bfloat16")
    (1e-06, 0.002)
    """

    alarm: float | None = None
    abort: float | None = None
    ratio: float = MOST_RATIO

    def __post_init__(self) -> None:
        for name in ("alarm", "abort"):
            value: float | None = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(
                    f"MismatchCheck.{name}={value}: a divergence in nats per token, above 0; None for "
                    f"{'the default' if name == 'alarm' else 'never'}"
                )
        if not self.ratio > 1:
            raise ConfigError(f"MismatchCheck.ratio={self.ratio}: a factor above 1, inf for any")
        if self.alarm is not None and self.abort is not None and self.abort < self.alarm:
            raise ConfigError(
                f"MismatchCheck(alarm={self.alarm}, abort={self.abort}): the run would stop before it alarms; give "
                "abort the larger number"
            )

    def bar(self, dtype: str) -> float:
        """Where the alarm begins, for the coarser type of the two sides."""
        return self.alarm if self.alarm is not None else min(MISMATCH_BARS[dtype], self.abort or math.inf)

    def find_alarm(self, metrics: Mapping[str, float], dtype: str) -> str:
        """What is too far apart, in words; empty when nothing is or nothing was measured."""
        found, ratio = metrics.get("engine/mismatch_k3", 0.0), metrics.get("engine/max_ratio", 1.0)
        told: list[str] = []
        if found >= self.bar(dtype):
            told.append(f"by {found:.3g} nats per token (k3; the bar for {dtype} is {self.bar(dtype):.3g})")
        if ratio >= self.ratio:
            told.append(f"by a factor of {ratio:.3g} on one token (bar {self.ratio:.3g})")
        return f"sampler and learner disagree on tokens just sampled {' and '.join(told)}" if told else ""

    def check(self, metrics: Mapping[str, float], step: int) -> None:
        """Stops a run whose two sides are too far apart.

        Args:
            metrics: of a step.
            step: that the tokens were sampled in, counted from 1.

        Raises:
            MismatchError: ``abort`` is reached.
        """
        found = metrics.get("engine/mismatch_k3", 0.0)
        if self.abort is not None and found >= self.abort:
            raise MismatchError(
                f"step {step}: on the tokens just sampled learner and sampler are {found:.3g} nats per token apart (k3), "
                f"MismatchCheck.abort is {self.abort:.3g}. Give both one precision (dtype='float32' of the engine, "
                "LearnerSettings(precision='fp32')), replay the routing of a mixture of experts "
                "(LearnerSettings(replay_routing=True)), or correct for it (tis, icepop); or raise abort under [mismatch] in "
                "run.toml and resume"
            )


@dataclass(frozen=True, slots=True)
class _Tokens:
    """Comparable tokens: ``[M]`` the engine's and the learner's log-probabilities and the rollout, and the agreement of the
    routers where that was told.
    """

    engine: NDArray[Any]
    own: NDArray[Any]
    owner: NDArray[Any]
    routed: NDArray[Any]

    def merge(self, other: _Tokens) -> _Tokens:
        return _join_tokens([self, other])


_NONE = _Tokens(np.zeros(0, np.float32), np.zeros(0, np.float32), np.zeros(0, np.int64), np.zeros(0))


def _join_tokens(parts: Sequence[_Tokens]) -> _Tokens:
    """Behind one another."""
    return _Tokens(*(np.concatenate([getattr(part, f.name) for part in (_NONE, *parts)]) for f in fields(_Tokens)))


class TokenObserver:
    """Keeps what one update's gradient pass says of the tokens, for nothing: its log-probabilities are those of the weights that
    the tokens were sampled with, as long as the update is the first behind the sampling.

    Implements `assay.core.protocols.PassObserver`. Rows that the plan leaves out of the pass are not seen. Where several
    processes share a learner, each observes its own micro-batches, and `exchange` lets all know what all have seen.

    Args:
        version: of the weights before the update.
    """

    def __init__(self, version: int) -> None:
        self._version = version
        self._found: list[_Tokens] = []

    def observe(self, batch: Batch, live: Mapping[str, Any]) -> None:
        """Keeps what the pass says of the comparable tokens."""
        from assay.runtime.kernels.typed import array_of

        if "logp_engine" in batch.tokens:
            here = comparable(batch, self._version)
            owner = batch.rows["rollout"][batch.row_of_token[here]]
            own = array_of(live["logp_new"].detach().float())[here]
            routed = array_of(live["router_agreement"])[here] if "router_agreement" in live else _NONE.routed
            self._found.append(_Tokens(batch.token("logp_engine")[here], own, owner, routed))

    def exchange(self, reduce: Callable[[Mapping[str, Any]], Mapping[str, Any]], counts: bool) -> None:
        """As `assay.core.protocols.PassObserver.exchange`."""
        own = _join_tokens(self._found if counts else [])
        self._found = [reduce({"tokens that were observed": own})["tokens that were observed"]]

    def metrics(self) -> dict[str, float]:
        """The `agreement` of all micro-batches so far; empty before any. Where rows say how the engine routed them also
        ``engine/router_agreement``: the share of (token, layer) in which the learner's routers prefer the same experts.
        """
        found = _join_tokens(self._found)
        told = found.routed[found.routed >= 0]
        routers = {"engine/router_agreement": float(told.mean())} if len(told) else {}
        return agreement(found.engine, found.own, found.owner) | routers


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """What a step's numbers say.

    Attributes:
        compared: engine and learner were compared at all.
        alarm: what is too far apart, in words; empty where nothing is.
        error: by which the run is to end; None where it goes on.
    """

    compared: bool
    alarm: str
    error: MismatchError | None


class Agreement:
    """Compares engine and learner on the tokens that a stage samples: before its first update, in the passes of each first
    update, and behind each step.

    Args:
        check: when they are too far apart.
        dtype: the coarser type of the two sides, `coarser`.
        truncated: only a part of the vocabulary can be drawn (``top_p``, ``top_k``, ``min_p``) and tokens do not carry it: there
            the two differ by design, and nothing is told.
    """

    def __init__(self, check: MismatchCheck, *, dtype: str, truncated: bool) -> None:
        self.check, self.dtype, self.truncated = check, dtype, truncated

    def before_update(self, batch: Batch, learner: Learner, step: int, *, first: bool) -> dict[str, float]:
        """The `agreement` on the tokens that a step sampled, before it updates anything: free where the batch has the learner's
        ``logp_old``, one pass without gradient at a stage's first step, and else empty: the first update's own pass will tell.

        Args:
            batch: as it was annotated.
            learner: at the weights before the update.
            step: counted from 1.
            first: it is the stage's first step.

        Raises:
            MismatchError: at a stage's first step, the run is to stop at so much.
        """
        if "logp_engine" not in batch.tokens or self.truncated:
            return {}
        old = batch.tokens.get("logp_old")
        if old is None or old.producer != "learner":
            if not first:
                return {}
            with span("compare"):
                old = learner.annotate(batch, Forward("logp_old")).tokens["logp_old"]
        here = comparable(batch, old.version)
        owner = batch.rows["rollout"][batch.row_of_token[here]]
        found = agreement(batch.token("logp_engine")[here], old.values[here], owner)
        if first:
            self.check.check(found, step)
        return found

    def observer(self, version: int) -> TokenObserver:
        """What observes the first update behind a sampling, by weights of this version."""
        return TokenObserver(version)

    def add_alarm(self, metrics: Mapping[str, float]) -> dict[str, float]:
        """A step's numbers with ``engine/alarm``; without those that compare where only a part of the vocabulary can be drawn."""
        hidden = ("engine/mismatch", "engine/max_ratio") if self.truncated else ()
        out = {name: value for name, value in metrics.items() if not name.startswith(hidden)}
        if "engine/mismatch_k3" in out:
            out["engine/alarm"] = float(bool(self.check.find_alarm(out, self.dtype)))
        return out

    def judge_step(self, metrics: Mapping[str, float], step: int) -> Disagreement:
        """What the numbers of a step that was just finished say."""
        compared = "engine/alarm" in metrics
        alarm = self.check.find_alarm(metrics, self.dtype) if compared else ""
        try:
            self.check.check(metrics, step)
        except MismatchError as error:
            return Disagreement(compared=compared, alarm=alarm, error=error)
        return Disagreement(compared=compared, alarm=alarm, error=None)


def coarser(engine: str, precision: str) -> str:
    """The coarser type of the two sides: ``bfloat16`` where engine or learner has it, else ``float32``.

    >>> coarser("float32", "fp32"), coarser("float32", "bf16")
    ('float32', 'bfloat16')
    """
    return "float32" if engine == "float32" and precision == "fp32" else "bfloat16"
