"""The contract of a learner: what it scores, changes and publishes are the same weights, and a folder holds all of them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch, pack_rows
from assay.core.columns import TokenColumn
from assay.core.plan import Forward
from assay.core.protocols import Learner
from assay.core.rollout import Ids, ids_of
from assay.core.sample import Sample
from assay.core.seeds import generator
from assay.objective.methods import grpo
from assay.objective.objective import Objective
from assay.testing.contracts import Report, require

__all__ = ["check_learner"]

_ROWS, _LONGEST = 12, 10
_PASSED = (
    "scores",
    "annotates",
    "learns",
    "seeded",
    "observed",
    "skips",
    "publishes",
    "perturbs",
    "resumes exactly",
    "rates",
    "closes",
)


def check_learner(
    build: Callable[[], Learner], vocabulary: int, *, objective: Objective | None = None, bar: float = 1e-4, seed: int = 0
) -> Report:
    """Trains two steps by a learner, twice, and holds it to what runs, proofs of weights and resumes rely on.

    - `Learner.score` gives each token a finite log-probability of at most 0, 0 for a row's first, and the same bits twice;
      `Learner.annotate` gives the batch the same numbers, and changes no other column.
    - `Learner.step` raises `Learner.version` by 1, has finite metrics, and changes what is scored; another learner does the same,
      observed or not; `Learner.skip` trains nothing.
    - `Learner.publish` says the version and gives other digests for other weights, the same for the same.
    - Inside `Learner.perturbed_weights` what is scored is visibly different, and behind it the state is as before, bit by bit.
    - A fresh learner that loads what `Learner.save` wrote has its version and its state, and its next step has the same result.
    - A step at ``rate`` 0 counts as one and moves no weight.
    - Closed, it still says its version.

    Args:
        build: makes a learner with the same fresh weights and optimiser at each call; it is closed here, before the next is made.
        vocabulary: of its model: ids are below it.
        objective: that it trains by; `assay.objective.methods.grpo` without a reference when None.
        bar: nats by which the numbers of `annotate` and `score` may differ; 1e-4 suffices for float32.
        seed: of the rows.

    Raises:
        ContractError: it does not hold; says what.

    >>> from assay.testing import FakeLearner
    >>> print(*check_learner(lambda: FakeLearner(8), 8).passed, sep=", ")
    scores, annotates, learns, seeded, observed, skips, publishes, perturbs, resumes exactly, rates, closes
    """
    objective = objective or grpo(kl=0.0)
    with tempfile.TemporaryDirectory(prefix="assay-check-learner-") as place:
        learner = build()
        subject = f"learner {type(learner).__name__}"
        try:
            batch = _check_scores(subject, learner, vocabulary, bar, seed)
            first, change = _check_step(subject, learner, objective, batch)
            _check_perturbed(subject, learner, batch)
            learner.save(Path(place))
            saved = learner.version, learner.state_digest()
            _step(learner, objective, batch)
            version, last = learner.version, learner.state_digest()
        finally:
            learner.close()
        require(learner.version == version, subject, f"closed, it says version {learner.version} and not {version}")
        _check_again(subject, build, objective, batch, first)
        _check_loaded(subject, build, objective, batch, Path(place), saved, last)
    return Report(subject=subject, passed=_PASSED, numbers={"largest change of a log-probability by a step, nats": change})


# ---- the promises -------------------------------------------------------------------------------------------------------


def _check_scores(subject: str, learner: Learner, vocabulary: int, bar: float, seed: int) -> Batch:
    """Rows with the learner's own log-probabilities as those of the engine."""
    rows = _rows(vocabulary, seed)
    scored, again = learner.score(rows), learner.score(rows)
    for row, found, other in zip(rows, scored, again, strict=True):
        require(found.shape == (len(row),), subject, f"scored a row of {len(row)} tokens by {found.shape} numbers")
        fits = bool(np.isfinite(found).all() and (found <= 1e-6).all() and found[0] == 0.0)
        require(fits, subject, f"scored a row by {found}; log-probabilities are finite, at most 0, and 0 for the first token")
        require(found.tobytes() == other.tobytes(), subject, "scores the same row by other bits when asked again")
    batch = _pack_groups(rows, scored)
    forward = Forward(column="logp_check", when="batch")
    told = learner.annotate(batch, forward)
    require("logp_check" in told.tokens, subject, "annotate gave no column of the name that was asked for")
    mask = batch.token("mask")
    gap = float(np.abs(told.token("logp_check") - batch.token("logp_engine"))[mask].max())
    require(gap <= bar, subject, f"annotate and score differ by {gap:.3g} nats at a token; at most {bar:g} is right")
    same = all(np.array_equal(batch.token(name), told.token(name)) for name in batch.tokens)
    require(same and len(told) == len(batch), subject, "annotate changed rows or columns that it was not asked for")
    return batch


def _check_step(subject: str, learner: Learner, objective: Objective, batch: Batch) -> tuple[str, float]:
    """The state behind the first step, and how much that moved a log-probability."""
    version, digest, published = learner.version, learner.state_digest(), _digests(learner)
    said = learner.publish().version
    require(said == version, subject, f"published version {said} at version {version}")
    require(_digests(learner) == published, subject, "published the same weights under other digests")
    rows = _ids(batch)
    before = learner.score(rows)
    metrics = _step(learner, objective, batch)
    bad = [name for name, value in metrics.items() if not np.isfinite(value)]
    require(not bad, subject, f"metrics {bad} of a step are not finite")
    require(learner.version == version + 1, subject, f"is at version {learner.version} after a step at version {version}")
    change = max(float(np.abs(a - b).max()) for a, b in zip(learner.score(rows), before, strict=True))
    require(change > 0.0, subject, "a step with advantages changed no log-probability")
    require(learner.state_digest() != digest, subject, "has the same state digest after a step")
    require(_digests(learner) != published, subject, "published a step's weights under the digests before it")
    after, version, weights = learner.state_digest(), learner.version, _digests(learner)
    learner.skip(1)
    held = learner.version == version and _digests(learner) == weights
    require(held, subject, "skip changed the weights or their version; it lets a schedule go on, and trains nothing")
    return after, change


def _check_perturbed(subject: str, learner: Learner, batch: Batch) -> None:
    rows, digest, published = _ids(batch), learner.state_digest(), _digests(learner)
    before = learner.score(rows)
    with learner.perturbed_weights() as perturbed:
        inside = learner.score(rows)
        told = {name: tensor.digest for name, tensor in perturbed.manifest.tensors.items()}
    change = max(float(np.abs(a - b).max()) for a, b in zip(inside, before, strict=True))
    require(
        change > 1e-3, subject, f"perturbed weights move no log-probability by more than {change:.2g} nats: that is invisible"
    )
    require(told != published, subject, "the manifest of perturbed weights has the digests of those before")
    require(learner.state_digest() == digest, subject, "its state is another behind perturbed_weights")


def _check_again(subject: str, build: Callable[[], Learner], objective: Objective, batch: Batch, first: str) -> None:
    """One at a time: learners of several processes take turns."""
    again = build()
    try:
        _step(again, objective, batch, _Watcher())
        same = again.state_digest() == first
    finally:
        again.close()
    require(same, subject, "two alike differ after the same step, of which one was observed")


def _check_loaded(
    subject: str,
    build: Callable[[], Learner],
    objective: Objective,
    batch: Batch,
    folder: Path,
    saved: tuple[int, str],
    last: str,
) -> None:
    other = build()
    try:
        other.load(folder)
        require(other.version == saved[0], subject, f"loaded, it is at version {other.version}, not {saved[0]}")
        require(other.state_digest() == saved[1], subject, "loaded, it has another state than what was saved")
        _step(other, objective, batch)
        require(other.state_digest() == last, subject, "loaded, its next step has another result than without")
        version, weights = other.version, _digests(other)
        _step(other, objective, batch, rate=0.0)
        held = other.version == version + 1 and _digests(other) == weights
        require(held, subject, "a step at rate 0 moved a weight, or did not count; the rate multiplies its learning rate")
    finally:
        other.close()


class _Watcher:
    """Watches, and changes nothing."""

    def observe(self, batch: Batch, live: Mapping[str, Any]) -> None:
        """Nothing."""

    def exchange(self, reduce: Callable[[Mapping[str, Any]], Mapping[str, Any]], counts: bool) -> None:
        """Nothing."""


def _digests(learner: Learner) -> dict[str, str]:
    """Of the tensors that it publishes."""
    return {name: tensor.digest for name, tensor in learner.publish().tensors.items()}


# ---- rows ---------------------------------------------------------------------------------------------------------------


def _step(
    learner: Learner, objective: Objective, batch: Batch, observer: _Watcher | None = None, rate: float = 1.0
) -> Mapping[str, float]:
    program = objective.compile(1)
    wanted = [f for f in program.plan.forwards if f.when == "batch"]
    ready = learner.annotate(batch, *wanted) if wanted else batch
    return learner.step(program.credit(ready), program.plan, program, observer, rate).metrics


def _rows(vocabulary: int, seed: int) -> list[Ids]:
    rng = generator("testing/learner", seed)
    return [ids_of(rng.integers(0, vocabulary, int(rng.integers(4, _LONGEST)))) for _ in range(_ROWS)]


def _ids(batch: Batch) -> list[Ids]:
    ids = batch.token("ids")
    return [ids_of(ids[a:b]) for a, b in zip(batch.offsets[:-1], batch.offsets[1:], strict=True)]


def _pack_groups(rows: Sequence[Ids], logp: Sequence[NDArray[np.float32]]) -> Batch:
    """Groups of four rollouts, two of them right; the first three tokens of a row are its prompt."""
    samples: list[tuple[int, Sample]] = []
    for at, (ids, scored) in enumerate(zip(rows, logp, strict=True)):
        columns = {"logp_engine": TokenColumn("logp_engine", scored.astype(np.float32), "engine")}
        samples.append((at, Sample(rollout=str(at), ids=ids, mask=np.arange(len(ids)) >= 3, columns=columns)))
    n = len(rows)
    lengths = np.array([max(0, len(ids) - 3) for ids in rows], np.int64)
    table: dict[str, NDArray[Any]] = {
        "group": np.arange(n, dtype=np.int64) // 4,
        "id": np.array([str(i) for i in range(n)], np.str_),
        "valid": np.ones(n, np.bool_),
        "length": lengths,
        "truncated": np.zeros(n, np.bool_),
        "components/correct": np.tile([0.0, 1.0, 1.0, 0.0], n // 4),
    }
    return pack_rows(samples, table)
