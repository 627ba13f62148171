"""Sampler and learner on the same tokens at the same weights: how far apart they are, and when that is too far."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.errors import ConfigError, MismatchError
from assay.core.plan import Forward
from assay.core.protocols import LossProgram
from assay.measure.pair import BARS, MOST_RATIO, agreement, comparable

if TYPE_CHECKING:
    from assay.train.clock import Clock
    from assay.train.session import Session

__all__ = ["MismatchCheck", "Watched", "before_update", "coarser", "without_mismatch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MismatchCheck:
    """When sampler and learner, who ought to compute one policy, are too far apart.

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
        return self.alarm if self.alarm is not None else min(BARS[dtype], self.abort or math.inf)

    def alarmed(self, metrics: Mapping[str, float], dtype: str) -> str:
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
class _Seen:
    """Tokens that passes showed: ``[M]`` the engine's and the learner's log-probabilities and the attempt, and the agreement of
    the routers where that was told.
    """

    engine: NDArray[Any]
    own: NDArray[Any]
    owner: NDArray[Any]
    routed: NDArray[Any]

    def merge(self, other: _Seen) -> _Seen:
        return _joined([self, other])


_NOTHING = _Seen(np.zeros(0, np.float32), np.zeros(0, np.float32), np.zeros(0, np.int64), np.zeros(0))


def _joined(parts: Sequence[_Seen]) -> _Seen:
    """Behind one another."""
    return _Seen(*(np.concatenate([getattr(part, f.name) for part in (_NOTHING, *parts)]) for f in fields(_Seen)))


class Watched:
    """A loss program that also keeps what one update's gradient pass says of the tokens, for nothing: its log-probabilities are
    those of the weights that the tokens were sampled with, as long as the update is the first behind the sampling.

    Rows that the plan leaves out of the pass are not seen. Where several ranks share a learner, each sees its own micro-batches,
    and `exchange` lets all know what all have seen.

    Args:
        program: does the work.
        version: of the weights before the update.
    """

    def __init__(self, program: LossProgram, version: int) -> None:
        self._program, self._version = program, version
        self._seen: list[_Seen] = []

    def credit(self, batch: Batch) -> Batch:
        """The program's."""
        return self._program.credit(batch)

    def prepare(self, batch: Batch) -> Batch:
        """The program's."""
        return self._program.prepare(batch)

    def active(self, batch: Batch) -> NDArray[np.bool_]:
        """The program's."""
        return self._program.active(batch)

    def micro(self, batch: Batch, live: Mapping[str, Any]) -> tuple[Any, Mapping[str, float]]:
        """The program's; keeps what the pass says of the comparable tokens."""
        from assay.runtime.kernels.typed import array_of

        if "logp_engine" in batch.tokens:
            here = comparable(batch, self._version)
            owner = batch.rows["rollout"][batch.row_of_token[here]]
            own = array_of(live["logp_new"].detach().float())[here]
            routed = array_of(live["router_agreement"])[here] if "router_agreement" in live else _NOTHING.routed
            self._seen.append(_Seen(batch.token("logp_engine")[here], own, owner, routed))
        return self._program.micro(batch, live)

    def exchange(self, reduce: Callable[[Mapping[str, Any]], Mapping[str, Any]], speaks: bool) -> None:
        """As `assay.runtime.distributed.worker.Watching`."""
        own = _joined(self._seen if speaks else [])
        self._seen = [reduce({"tokens that were watched": own})["tokens that were watched"]]

    def metrics(self) -> dict[str, float]:
        """The `agreement` of all micro-batches so far; empty before any. Where rows say how the engine routed them also
        ``engine/router_agreement``: the share of (token, layer) in which the learner's routers prefer the same experts.
        """
        seen = _joined(self._seen)
        told = seen.routed[seen.routed >= 0]
        routers = {"engine/router_agreement": float(told.mean())} if len(told) else {}
        return agreement(seen.engine, seen.own, seen.owner) | routers


def before_update(s: Session, batch: Batch, clock: Clock) -> dict[str, float]:
    """The `agreement` on the tokens that a step sampled, before it updates anything: free where the batch has the learner's
    ``logp_old``, one pass without gradient at a stage's first step, and else empty: the first update's own pass will tell. Empty
    too where only a part of the vocabulary could be drawn and tokens do not carry it: there the two differ by design.

    Raises:
        MismatchError: at a stage's first step, the run is to stop at so much.
    """
    from assay.train.room import asking  # which knows `Run`

    if "logp_engine" not in batch.tokens or _differs(s):
        return {}
    old = batch.tokens.get("logp_old")
    if old is None or old.producer != "learner":
        if s.stage_step:
            return {}
        with clock("forward"), asking("the pass that compares sampler and learner"):
            old = s.learner.annotate(batch, Forward("logp_old")).tokens["logp_old"]
    here = comparable(batch, old.version)
    owner = batch.rows["rollout"][batch.row_of_token[here]]
    found = agreement(batch.token("logp_engine")[here], old.values[here], owner)
    if not s.stage_step:
        s.run.mismatch.check(found, s.step + 1)
    return found


def without_mismatch(s: Session, metrics: Mapping[str, float]) -> dict[str, float]:
    """A step's numbers, without those that compare sampler and learner where these score other parts of the vocabulary."""
    names = ("engine/mismatch", "engine/max_ratio") if _differs(s) else ()
    return {name: value for name, value in metrics.items() if not name.startswith(names)}


def _differs(s: Session) -> bool:
    """Whether the engine draws from a part of the vocabulary within which the learner does not score."""
    from assay.train.support import keeps_support  # which knows `Run`

    return s.run.sampling.truncated and not keeps_support(s.run.sampling, s.stage)


def coarser(s: Session) -> str:
    """The coarser type of the two sides: ``bfloat16`` where engine or learner has it, else ``float32``."""
    fine = s.engine.info().dtype == "float32" and s.stage.learner.precision == "fp32"
    return "float32" if fine else "bfloat16"
