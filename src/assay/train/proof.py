"""Proof that the sampler serves the trained weights, after each update.

Two witnesses. Checksums: the engine digests the arrays that its decode path really reads; they must equal the published ones.
Probes: log-probabilities of fixed token rows through the decode path must agree with the learner's within the noise measured
before the first update, *and* must be none that weights served before gave: at small learning rates an engine that is one step
stale, or back at the base, is invisible to any absolute threshold, but it repeats old numbers to the bit.

An engine whose checksums leave tensors out is tested at first with perturbed weights: it is handed weights that are visibly
others in every tensor, and the probes must follow. With no witness the run says ``unproven``. Of a sampler that lags on purpose
both are compared with the publication that is due: neither a newer nor an older one passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.canon import digest
from assay.core.errors import NonFiniteError, WeightProofError
from assay.core.manifest import Manifest, digest_kind
from assay.core.protocols import Engine, Learner
from assay.core.rollout import Ids, ids_of
from assay.core.seeds import generator

__all__ = ["WeightProof", "probe_rows"]

Scores = list[NDArray[np.float32]]

_LEAST = 5e-5
"""Nats: trained weights round more than fresh ones, on which the noise may have been measured: 1e-6 grew to 2e-5 on the
quickstart's base."""
_MOST = {"float32": 0.05, "bfloat16": 0.5}
"""Nats by which engine and learner may differ anywhere while they hold the same weights, by what the engine serves."""
_SEEN = 12.0
"""What the tokens must show of a perturbed tensor, in units of one token's noise: six would be three standard deviations."""
_REMEMBERED = 256
"""Versions whose answers are remembered, beside the first."""


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
        perturbed_rows: rows for the test with perturbed weights; more of them show fainter tensors; ``rows`` when empty.
        perturb: test an engine whose checksums leave tensors out with perturbed weights; without it only the size of the
            difference tells of these.
        lag: publications that the engine is to stay behind the learner.
        spared: share of the probes' tokens, those that differ most, that are not held against the engine: rounding sends some
            tokens of a mixture of experts to other experts, by as much as other weights would.
        noise: largest difference of the two paths before the first update, nats; set by `calibrate`.
        steady: whether the engine gives the same probes the same answers to the bit; set by `calibrate`.
        blind: tensors of which no witness can tell whether they arrive: without a checksum, and too faint when perturbed;
            set by `calibrate`.
    """

    rows: list[Ids]
    probes: bool = True
    checksums: bool = True
    perturbed_rows: list[Ids] = field(default_factory=list[Ids])
    perturb: bool = True
    lag: int = 0
    spared: float = 0.0
    noise: float = 0.0
    steady: bool = True
    blind: tuple[str, ...] = ()
    _published: list[_Published] = field(default_factory=list[_Published])
    _seen: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    _due: _Published | None = None

    async def calibrate(self, manifest: Manifest, engine: Engine, learner: Learner) -> None:
        """Measures the noise between the two paths while they hold the same weights, the newest.

        Raises:
            WeightProofError: they already differ: checksums disagree, or by more than 0.05 nats anywhere (0.5 in bfloat16); or
                the engine does not follow perturbed weights.
        """
        learned = learner.score(self.rows) if self.probes else []
        newest = _Published(manifest.version, _digests(manifest), learned)
        told = await self._compare_checksums(newest, engine) if self.checksums else 0.0
        if self.probes:
            served = await engine.score(self.rows)
            self.noise, most = _gap(served, learned, self.spared), _MOST[engine.info().dtype]
            if not self.noise <= most:
                raise WeightProofError(
                    f"before the first update the sampler's log-probabilities differ from the learner's by {self.noise:.3g} nats "
                    f"on the same tokens (at most {most} are noise of {engine.info().dtype}): "
                    "it serves other weights, another architecture setting or another precision"
                )
            self.steady = _same(served, await engine.score(self.rows))
            if told < 1.0 and self.perturb:
                await self._send_perturbed(manifest, engine, learner)
            self._remember(newest, served)
        self._published, self._due = self._published or [newest], newest

    async def _send_perturbed(self, manifest: Manifest, engine: Engine, learner: Learner) -> None:
        """Hands the engine weights that are visibly others in every tensor, and sees that it follows in each.

        What is left of the difference between the two paths is held against what each tensor, had it not arrived, would leave:
        a projection on that is 0 of a tensor that arrived and 1 of one that did not, even where single tokens drown in rounding.
        """
        rows, dtype = self.perturbed_rows or self.rows, engine.info().dtype
        before = learner.score(rows)
        noise = _root_mean_square(_differences(await engine.score(rows), before))
        with learner.perturbed_weights(dtype) as other:
            await engine.swap(other.manifest)
            now = learner.score(rows)
            left, effects = _differences(await engine.score(rows), now), other.effects(rows)
            told = (await engine.checksums() if self.checksums else None) or {}
        await engine.swap(manifest)
        seen = {n: d for n, d in effects.items() if n not in told}
        floor = _SEEN * max(noise, _LEAST / 10)
        self.blind = tuple(n for n, d in seen.items() if float(np.linalg.norm(d)) <= floor)
        lost = _lost_tensors(left, {n: d for n, d in seen.items() if n not in self.blind})
        if lost or not _root_mean_square(left) <= 0.3 * _root_mean_square(_differences(now, before)) + 3.0 * noise:
            which = f"{lost[0]} and {len(lost) - 1} more" if len(lost) > 1 else "".join(lost) or "some tensors"
            raise WeightProofError(
                f"handed weights that differ in every tensor, the sampler did not follow in all of them: {which} did not arrive, "
                f"or it answers without them (its log-probabilities are {_root_mean_square(left):.3g} nats from the learner's, "
                f"{noise:.3g} before)"
            )

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
        told = await self._compare_checksums(due, engine) if self.checksums else 0.0
        fresh = self._compare_probes(due, await engine.score(self.rows)) if self.probes else False
        return told == 1.0 or fresh

    async def _compare_checksums(self, due: _Published, engine: Engine) -> float:
        """The share of the tensors that the engine's checksums tell of, all of which are as published."""
        served = await engine.checksums()
        if served is None:
            return 0.0
        wanted = dict(due.digests)
        if (made := digest_kind(wanted.values())) != (theirs := engine.info().digests):
            raise WeightProofError(
                f"weight version {due.version} is digested by {made!r} and the engine's checksums are made by {theirs!r}, so "
                f"they cannot be compared: publish by Learner.publish(..., digests={theirs!r}); a run with a lag goes on where "
                "it was, on a CPU or on CUDA"
            )
        if "lm_head.weight" in served and "lm_head.weight" not in wanted:  # tied: the head as used must be the embedding
            head = served["lm_head.weight"]  # where the embedding has another name, one of the published tensors
            wanted["lm_head.weight"] = wanted.get("model.embed_tokens.weight", head if head in wanted.values() else "")
        wrong = sorted(name for name in wanted if served.get(name, wanted[name]) != wanted[name])
        if wrong:
            shown = ", ".join(wrong[:4]) + (f" and {len(wrong) - 4} more" if len(wrong) > 4 else "")
            raise WeightProofError(
                f"after update {due.version} the sampler's tensors differ from the learner's in {len(wrong)} of "
                f"{len(wanted)}: {shown}; rollouts would come from other weights than the ones trained"
            )
        return len(wanted.keys() & served.keys()) / len(wanted)

    def _compare_probes(self, due: _Published, served: Scores) -> bool:
        """Whether the probes tell that these are the weights that are due; at a small change an unsteady engine cannot."""
        gap, bound = _gap(served, due.learned, self.spared), max(10.0 * self.noise, _LEAST)
        if not gap <= bound:
            raise WeightProofError(
                f"after update {due.version} the sampler's log-probabilities differ from the learner's by {gap:.3g} nats "
                f"(noise before the first update: {self.noise:.3g}): it serves other weights"
            )
        weights = digest(dict(due.digests))
        found = self._seen.get(_print(served))
        if found is not None and found[1] != weights:
            if self._due is not None and _little(due, self._due):
                return False  # too small a change to be seen: neither a fault nor a proof
            version, last = found[0], self._due.version if self._due else -1
            old = "it is one step stale" if version == last else f"it serves version {version} again"
            raise WeightProofError(
                f"update {due.version} moved the learner's log-probabilities, but the sampler's are bit for bit those that "
                f"version {version} gave: {old}"
            )
        self._remember(due, served)
        self._due = due
        return self.steady and not self.blind

    def _remember(self, published: _Published, served: Scores) -> None:
        """Keeps what the engine answered under these weights, to know it again."""
        self._seen[_print(served)] = (published.version, digest(dict(published.digests)))
        if len(self._seen) > _REMEMBERED:
            del self._seen[list(self._seen)[1]]

    def notes(self) -> list[tuple[str, str]]:
        """What it cannot tell of the engine, after `calibrate`: kinds and sentences for the journal."""
        found: list[tuple[str, str]] = []
        if self.blind:
            names = ", ".join(self.blind[:3]) + (" and others" if len(self.blind) > 3 else "")
            found.append(("proof", f"no witness tells whether {names} arrive in the engine: weights count as unproven"))
        if not self.steady:
            found.append(("proof", "the engine does not repeat itself to the bit: only checksums can prove its weights"))
        return found

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


def _gap(a: Scores, b: Scores, spared: float) -> float:
    """The largest difference of a token, of those that are left when a share of them is spared; NaN where any is."""
    apart = np.sort(np.abs(_differences(a, b)))
    if len(apart) and np.isnan(apart[-1]):
        return float("nan")
    return float(apart[len(apart) - 1 - int(spared * len(apart))]) if len(apart) else 0.0


def _differences(a: Scores, b: Scores) -> NDArray[np.float64]:
    """Token by token, rows behind one another, their first tokens left out."""
    return np.concatenate([x[1:].astype(np.float64) - y[1:] for x, y in zip(a, b, strict=True)])


def _root_mean_square(x: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(x * x))) if len(x) else 0.0


def _lost_tensors(left: NDArray[np.float64], effects: Mapping[str, NDArray[np.float32]]) -> list[str]:
    """The tensors whose absence explains what is left of a difference: the likeliest first, then what that leaves."""
    found: list[str] = []
    open_ = dict(effects)
    while open_:
        name = min(open_, key=lambda n: float(np.linalg.norm(left - open_[n])))
        effect = open_.pop(name)
        if not float(left @ effect) > 0.5 * float(effect @ effect):
            break
        found.append(name)
        left = left - effect
    return found


def _same(a: Scores, b: Scores) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def _print(scores: Scores) -> str:
    return digest([x.tobytes().hex() for x in scores])


def _little(now: _Published, before: _Published) -> bool:
    """Whether two versions are so alike that an engine may answer both alike: fewer than half of the tensors, or of the learner's
    own log-probabilities of the probes, changed in any bit.
    """
    tensors = [now.digests[name] != before.digests.get(name) for name in now.digests]
    tokens = [np.not_equal(x[1:], y[1:]) for x, y in zip(now.learned, before.learned, strict=True)]
    return float(np.mean(tensors)) < 0.5 or float(np.concatenate(tokens).mean()) < 0.5
