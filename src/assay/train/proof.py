"""Proof that the sampler serves the trained weights, after each update.

Two witnesses. Checksums: the engine digests the arrays that its decode path really reads; they must equal the published ones.
Probes: log-probabilities of fixed token rows through the decode path must agree with the learner's within the noise measured
before the first update, and must differ from those before the update (at small learning rates an engine that is one step stale
is invisible to any absolute threshold). With neither the run says ``unproven``. Of a sampler that lags on purpose both are
compared with the publication that is due: neither a newer nor an older one passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import NonFiniteError, WeightProofError
from assay.core.manifest import Manifest
from assay.core.protocols import Engine, Learner
from assay.core.rollout import Ids, ids_of
from assay.core.seeds import generator

__all__ = ["WeightProof", "probe_rows"]

Scores = list[NDArray[np.float32]]

_LEAST = 5e-5
"""Nats: trained weights round more than fresh ones, on which the noise may have been measured: 1e-6 grew to 2e-5 on the
quickstart's base."""


def probe_rows(vocabulary: int, context: int, seed: int, rows: int = 4, length: int = 12) -> list[Ids]:
    """Fixed random token rows: ``rows`` of ``length`` tokens (fewer where the context is shorter)."""
    rng = generator("weight-probe", seed)
    return [ids_of(rng.integers(0, vocabulary, min(length, context))) for _ in range(rows)]


@dataclass(frozen=True, slots=True)
class _Published:
    """What the learner said of a version when it published it: digests by tensor, and its log-probabilities of the probes."""

    version: int
    digests: Mapping[str, str]
    learned: Scores


@dataclass(slots=True)
class WeightProof:
    """Checks one engine against one learner.

    Attributes:
        rows: probe rows.
        probes: use probe log-probabilities; without them and without checksums nothing is proved.
        checksums: use the engine's checksums where it offers them.
        lag: publications that the engine is to stay behind the learner.
        noise: largest difference of the two paths before the first update, nats; set by `calibrate`.
    """

    rows: list[Ids]
    probes: bool = True
    checksums: bool = True
    lag: int = 0
    noise: float = 0.0
    _published: list[_Published] = field(default_factory=list[_Published])
    _served: Scores = field(default_factory=list[NDArray[np.float32]])
    _learned: Scores = field(default_factory=list[NDArray[np.float32]])

    async def calibrate(self, manifest: Manifest, engine: Engine, learner: Learner) -> None:
        """Measures the noise between the two paths while they hold the same weights, the newest.

        Raises:
            WeightProofError: they already differ: checksums disagree, or by more than 0.05 nats anywhere.
        """
        learned = learner.score(self.rows) if self.probes else []
        newest = _Published(manifest.version, _digests(manifest), learned)
        if self.checksums:
            self._compare_checksums(newest, engine)
        if self.probes:
            served = await engine.score(self.rows)
            self.noise = _gap(served, learned)
            if not self.noise <= 0.05:
                raise WeightProofError(
                    f"before the first update the sampler's log-probabilities differ from the learner's by {self.noise:.3g} nats "
                    "on the same tokens: "
                    "it serves other weights, another architecture setting or another precision"
                )
            self._served, self._learned = served, learned
        self._published = self._published or [newest]

    async def check(self, manifest: Manifest, engine: Engine, learner: Learner) -> bool:
        """Proves that ``engine`` serves ``manifest``, which ``learner`` published, or what it published ``lag`` times before.

        Returns:
            True when proved, False when the engine offers no witness.

        Raises:
            WeightProofError: it does not; names the tensors or the difference.
            NonFiniteError: the learner itself gives no finite numbers any more.
        """
        learned = learner.score(self.rows) if self.probes else []
        if not all(np.isfinite(x).all() for x in learned):
            raise NonFiniteError(
                f"after update {manifest.version} the learner's own log-probabilities are not finite: its weights overflowed; "
                "lower the learning rate or clip_norm, and go on from the last checkpoint"
            )
        newest = _Published(manifest.version, _digests(manifest), learned)
        self._published = [*self._published, newest][-self.lag - 1 :]
        return await self.due(engine)

    async def due(self, engine: Engine) -> bool:
        """Proves that ``engine`` serves the publication that is due; like `check` otherwise."""
        due, newest, version = self._published[0], self._published[-1].version, engine.info().version
        if version != due.version:
            wanted = f"with {due.version} due at Reinforce.lag={self.lag}" if self.lag else "and is to serve just that"
            raise WeightProofError(f"the sampler serves weight version {version}, the learner published {newest}, {wanted}")
        summed = self._compare_checksums(due, engine) if self.checksums else False
        if self.probes:
            self._compare_probes(due, await engine.score(self.rows))
        return summed or self.probes

    def _compare_checksums(self, due: _Published, engine: Engine) -> bool:
        served = engine.info().checksums
        if served is None:
            return False
        wanted = dict(due.digests)
        if "lm_head.weight" in served and "lm_head.weight" not in wanted:  # tied: the head as used must be the embedding
            wanted["lm_head.weight"] = wanted["model.embed_tokens.weight"]
        wrong = sorted(name for name in wanted if served.get(name) != wanted[name])
        if wrong:
            shown = ", ".join(wrong[:4]) + (f" and {len(wrong) - 4} more" if len(wrong) > 4 else "")
            raise WeightProofError(
                f"after update {due.version} the sampler's tensors differ from the learner's in {len(wrong)} of "
                f"{len(wanted)}: {shown}; rollouts would come from other weights than the ones trained"
            )
        return True

    def _compare_probes(self, due: _Published, served: Scores) -> None:
        gap, bound = _gap(served, due.learned), max(10.0 * self.noise, _LEAST)
        if not gap <= bound:
            raise WeightProofError(
                f"after update {due.version} the sampler's log-probabilities differ from the learner's by {gap:.3g} nats "
                f"(noise before the first update: {self.noise:.3g}): it serves other weights"
            )
        if self._served and _moved(due.learned, self._learned) >= 0.5 and _moved(served, self._served) == 0.0:
            raise WeightProofError(
                f"update {due.version} moved the learner's log-probabilities, but the sampler's are bit for bit those "
                "from before: it is one step stale"
            )
        self._served, self._learned = served, due.learned

    def state_dict(self) -> list[dict[str, Any]]:
        """What was published and is still to be served, JSON-able; nothing without a lag, where the learner itself can tell."""
        if not self.lag:
            return []
        return [
            {"version": p.version, "digests": dict(p.digests), "learned": [x.tolist() for x in p.learned]}
            for p in self._published
        ]

    def load_state_dict(self, state: Sequence[Mapping[str, Any]]) -> None:
        """Restores `state_dict`."""
        self._published = [
            _Published(int(p["version"]), dict(p["digests"]), [np.array(x, np.float32) for x in p["learned"]]) for p in state
        ]


def _digests(manifest: Manifest) -> dict[str, str]:
    return {name: info.digest for name, info in manifest.tensors.items()}


def _gap(a: Scores, b: Scores) -> float:
    return max(float(np.abs(x - y).max()) if len(x) else 0.0 for x, y in zip(a, b, strict=True))


def _moved(now: Scores, before: Scores) -> float:
    """Share of the scored tokens whose log-probability changed in any bit."""
    changed = [np.not_equal(x[1:], y[1:]) for x, y in zip(now, before, strict=True)]
    return float(np.concatenate(changed).mean()) if changed else 0.0
