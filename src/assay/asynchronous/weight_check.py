"""Whether samplers serve what was published: by digests of all their tensors, or by log-probabilities of fixed rows.

A server may not tell digests of all that it multiplies with; then it scores fixed rows of ids, through the path that samples, and
so does the learner. How far the two are apart under the first weights is their noise. Later a server must stay within ten times
that. Where an update moved the learner by less, an answer that is none of those before tells that something new arrived, and one
that is proves nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from assay.asynchronous.messages import LoadedVersion
from assay.core.manifest import Manifest

__all__ = ["WeightCheck"]

Scores = Sequence[NDArray[np.float32]]

_LEAST = 5e-5
"""Nats: what rounding alone may come to where no noise was seen at first (as `assay.train.proof` has it)."""
_MOST = {"float32": 0.05, "bfloat16": 0.5}
"""Nats by which server and learner may differ under the same weights, by what the server serves."""
_KEPT = 8
"""Publications that are remembered."""


@dataclass(slots=True)
class WeightCheck:
    """Compares what samplers say of their weights with what was published. Any thread may call it.

    >>> import numpy as np
    >>> from assay.core.manifest import manifest_of
    >>> check, made = WeightCheck(), manifest_of(1, {"w": np.ones(3, np.float32)})
    >>> check.expect(made)
    >>> check.judge("sampler-0", LoadedVersion(1, {"w": made.tensors["w"].digest})), check.take_share()
    ('', 1.0)
    >>> check.judge("sampler-0", LoadedVersion(1, {"w": "0badc0de"}))
    'it serves other weights than version 1 has: w'
    """

    _published: dict[int, tuple[Manifest, Scores]] = field(default_factory=dict[int, tuple[Manifest, Scores]])
    _noise: dict[str, float] = field(default_factory=dict[str, float])
    _answers: dict[str, set[bytes]] = field(default_factory=dict[str, set[bytes]])
    _proved: list[bool] = field(default_factory=list[bool])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def expect(self, manifest: Manifest, learned: Scores = ()) -> None:
        """Weights are published; ``learned`` are the learner's log-probabilities of the probes, ``[tokens]`` each, in nats."""
        with self._lock:
            self._published[manifest.version] = manifest, learned
            for version in sorted(self._published)[:-_KEPT]:
                del self._published[version]

    def judge(self, name: str, loaded: LoadedVersion) -> str:
        """What is wrong with what a sampler serves; empty where nothing is known to be."""
        with self._lock:
            if loaded.version not in self._published:
                return ""
            manifest, learned = self._published[loaded.version]
            told = loaded.checksums or {}
            wrong = [n for n, info in manifest.tensors.items() if told.get(n, info.digest) != info.digest]
            if wrong:
                return f"it serves other weights than version {loaded.version} has: {', '.join(wrong[:3])}"
            why, new = self._compare(name, loaded, learned) if loaded.scores and learned else ("", False)
            self._proved.append(not why and (new or manifest.tensors.keys() <= told.keys()))
            return why

    def _compare(self, name: str, loaded: LoadedVersion, learned: Scores) -> tuple[str, bool]:
        """What is wrong with the answers to the probes, and whether they show that these weights arrived."""
        served = [np.array(row, np.float32) for row in loaded.scores]
        gap = _gap(served, learned)
        most = _MOST.get(loaded.dtype, _MOST["float32"])
        bound = max(10.0 * self._noise[name], _LEAST) if name in self._noise else most
        if not gap <= min(bound, most):
            return (
                f"its log-probabilities of fixed rows are {gap:.3g} nats from the learner's under version {loaded.version}, and "
                f"{min(bound, most):.3g} are noise: it serves other weights"
            ), False
        self._noise.setdefault(name, gap)
        answer, before = b"".join(row.tobytes() for row in served), self._answers.setdefault(name, set())
        new = answer not in before
        before.add(answer)
        return "", new

    def forget(self, name: str) -> None:
        """A sampler ends; another of its name begins, whose noise is its own."""
        with self._lock:
            self._noise.pop(name, None)
            self._answers.pop(name, None)

    def take_share(self) -> float:
        """Of the answers since the last call, the share that prove their weights; 1 where there was none."""
        with self._lock:
            proved, self._proved = self._proved, []
            return sum(proved) / len(proved) if proved else 1.0


def _gap(served: Scores, learned: Scores) -> float:
    """The largest difference of a token; NaN where there is one, and infinite where other rows were scored."""
    if [len(row) for row in served] != [len(row) for row in learned]:
        return float("inf")
    return float(max((np.abs(a[1:] - b[1:]).max(initial=0.0) for a, b in zip(served, learned, strict=True)), default=0.0))
