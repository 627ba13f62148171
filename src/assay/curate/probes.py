"""Rows chosen by what a run or a probe of a model has measured on them.

A probe is a file of entries, each naming its row by ``id`` or question, or a callable that is given rows. Either gives objects
with the fields that a step names; a row without one goes, with "no measurement" as its reason.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError, DataError
from assay.curate.row_index import Joined
from assay.curate.rows import Fields, Row, entries, parse_entry, read_rows
from assay.curate.scores import angle_concentration, fill_gaps, history_deviation, influence, learning_impact, topsis
from assay.curate.step import Chunk, Decision, SetStep, StepNotes

__all__ = ["AngleOrder", "Donod", "Influential", "LearningImpact", "MostVaried", "Probe", "ProbeFile"]

Floats = NDArray[np.float64]
UNMEASURED = "no measurement"


class Probe(Protocol):
    """Measures rows."""

    def __call__(self, rows: Sequence[Row]) -> Sequence[Mapping[str, Any] | None]:
        """An object of measurements for each row; None where there is none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeFile:
    """Measurements in a file; of several entries about one row the last counts.

    Attributes:
        file: JSON lines, or another form of rows.
        fields: where an entry without an ``id`` holds its question.
    """

    file: Path
    fields: Fields = field(default_factory=Fields)


class _Probed(SetStep):
    """A step that reads measurements of each row."""

    __slots__ = ()
    costly: ClassVar[bool] = True
    wants: ClassVar[tuple[str, ...]] = ()
    probe: Probe | ProbeFile

    @property
    def files(self) -> tuple[Path, ...]:
        """The measurements, where a file has them."""
        return (self.probe.file,) if isinstance(self.probe, ProbeFile) else ()

    def prepare(self, scratch: Path) -> Probe:
        """The probe, an index where it is a file."""
        if not isinstance(self.probe, ProbeFile):
            return self.probe
        return _Looked(Joined(scratch / "probe.sqlite", self.files, self.probe.fields, _Wanted(self.wants)))

    def _measure_rows(self, chunk: Chunk, ready: Any, of: Callable[[Mapping[str, Any]], Any]) -> list[Any]:
        """What ``of`` makes of each row's measurements; None without them."""
        found: list[Any] = []
        said: Sequence[Mapping[str, Any] | None] = ready(chunk.rows)
        for row, entry in zip(chunk.rows, said, strict=True):
            try:
                found.append(None if entry is None else of(entry))
            except (DataError, KeyError, TypeError, ValueError) as error:
                raise DataError(
                    f"{self.name}: the measurement of row {row.id} is wrong: {type(error).__name__}: {error}"
                ) from None
        return found


class _Wanted:
    """Of an entry the fields that a step reads."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def __call__(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        found = {name: entry[name] for name in self._names if name in entry}
        if not found:
            raise DataError(f"it has none of the fields {', '.join(self._names)}, only {sorted(entry)}")
        return found


class _Looked:
    """The probe that a file is."""

    def __init__(self, joined: Joined) -> None:
        self._joined = joined

    def __call__(self, rows: Sequence[Row]) -> list[Mapping[str, Any] | None]:
        return [found[-1] if found else None for found in self._joined.of(rows)]


# ---- learning curves --------------------------------------------------------------------------------------------------


class _Curves(_Probed):
    """A step on each row's mean reward per epoch of a run: ``history``, null where it was not drawn."""

    __slots__ = ()
    wants: ClassVar[tuple[str, ...]] = ("history",)

    def note(self, chunk: Chunk, ready: Any) -> Mapping[str, NDArray[Any]]:
        """Curves ``[n, epochs]``; NaN without one."""
        curves = self._measure_rows(chunk, ready, _curve)
        lengths = sorted({len(c) for c in curves if c is not None})
        if len(lengths) > 1:
            raise DataError(_uneven(self.name, lengths))
        width = lengths[0] if lengths else 0
        missing = np.full(width, np.nan)
        return {"curve": np.array([missing if c is None else c for c in curves], np.float64).reshape(len(chunk), width)}

    def _curves(self, seen: StepNotes) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
        """Whole curves, whose they are, and the rows without one."""
        parts = list(seen.parts("curve"))
        widths = sorted({part.shape[1] for part in parts if part.shape[1]})
        if len(widths) > 1:
            raise DataError(_uneven(self.name, widths))
        if not widths:
            return np.empty((0, 1)), np.empty(0, np.int64), np.flatnonzero(seen.alive)
        table = np.concatenate([p if p.shape[1] else np.full((len(p), widths[0]), np.nan) for p in parts])
        whole = ~np.isnan(table).any(1)
        rows = np.flatnonzero(whole & seen.alive)
        return table[rows], rows, np.flatnonzero(~whole & seen.alive)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningImpact(_Curves):
    """LIMR: keeps rows whose learning curve follows the average one.

    Reads ``history``, the mean reward of each epoch; one that is null takes the next epoch's. The average is over the rows that
    earlier steps kept. Its score is ``learning_impact``.

    Attributes:
        probe: the curves.
        threshold: a row is kept above it.

    Source: LIMR (arXiv 2502.11886), see `learning_impact`; 0.6 is its script's.
    """

    probe: Probe | ProbeFile
    threshold: float = 0.6

    def decide(self, seen: StepNotes, ready: Any) -> Sequence[Decision]:
        """What is at the threshold or below."""
        curves, rows, missing = self._curves(seen)
        values = learning_impact(curves) if len(curves) else np.empty(0)
        low = values <= self.threshold
        return _decide_rows(seen, rows, values, low, missing, "low learning impact", "learning_impact")


@dataclass(frozen=True, slots=True, kw_only=True)
class MostVaried(_Curves):
    """One-shot RLVR: keeps the rows whose accuracy varied most over a run.

    Reads ``history``; its score is ``deviation``. Rows of equal deviation are ordered by the digest of their content.

    Attributes:
        probe: the histories.
        count: how many are kept.

    Raises:
        ConfigError: a count below 1.

    Source: arXiv 2504.20571, see `history_deviation`.
    """

    probe: Probe | ProbeFile
    count: int = 1

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ConfigError(f"MostVaried.count={self.count}; use 1 or more")

    def decide(self, seen: StepNotes, ready: Any) -> Sequence[Decision]:
        """All but the first."""
        curves, rows, missing = self._curves(seen)
        values = history_deviation(curves) if len(curves) else np.empty(0)
        place = _places(values, seen.rank[rows])
        return _decide_rows(seen, rows, values, place >= self.count, missing, "varied less", "deviation")


# ---- probes of a model ------------------------------------------------------------------------------------------------


class _Valued(_Probed):
    """A step on a few numbers of each row."""

    __slots__ = ()
    width: ClassVar[int] = 1

    def numbers(self, entry: Mapping[str, Any], ready: Any) -> Sequence[float]:
        """The numbers of a row, from its measurements."""
        raise DataError(f"{type(self).__name__} has no numbers(entry, ready); write it")

    def note(self, chunk: Chunk, ready: Any) -> Mapping[str, NDArray[Any]]:
        """The numbers ``[n, width]``; NaN without them."""
        found = self._measure_rows(chunk, ready, lambda entry: self.numbers(entry, ready))
        missing = [np.nan] * self.width
        return {"numbers": np.array([missing if f is None else f for f in found], np.float64).reshape(len(chunk), self.width)}

    def _numbers(self, seen: StepNotes) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
        table = seen.column("numbers")
        whole = ~np.isnan(table).any(1)
        rows = np.flatnonzero(whole & seen.alive)
        return table[rows], rows, np.flatnonzero(~whole & seen.alive)


@dataclass(frozen=True, slots=True, kw_only=True)
class AngleOrder(_Valued):
    """GAIN-RL: ranks rows by how much their token vectors point one way, for a curriculum that begins with the first.

    Reads ``question`` and, if there is any, ``before``: the token vectors that enter the last layer's MLP, of the question and of
    what stands before it. Keeps every row; the scores are ``angle`` and ``angle_rank``, from 0.

    Attributes:
        probe: the vectors.
        factor: weight of the angles between question and what is before.

    Source: GAIN-RL (arXiv 2506.02281), see `angle_concentration`; `gain_shift` and `gain_weights` draw by the rank.
    """

    wants: ClassVar[tuple[str, ...]] = ("question", "before")
    probe: Probe | ProbeFile
    factor: float = 8.0

    def numbers(self, entry: Mapping[str, Any], ready: Any) -> Sequence[float]:
        """The signal."""
        return (angle_concentration(entry["question"], entry.get("before"), self.factor),)

    def decide(self, seen: StepNotes, ready: Any) -> Sequence[Decision]:
        """Ranks; drops what was not measured."""
        table, rows, missing = self._numbers(seen)
        rank = np.full(len(seen.alive), np.nan)
        rank[rows] = _places(table[:, 0], seen.rank[rows])
        found = _decide_rows(seen, rows, table[:, 0], np.zeros(len(rows), np.bool_), missing, "", "angle")
        return [*found, Decision("", np.empty(0, np.int64), scores={"angle_rank": rank})]


@dataclass(frozen=True, slots=True, kw_only=True)
class Donod(_Valued):
    """DONOD: keeps the share of rows that, learned alone, would best leave the weights' norm as it is.

    Reads ``don`` and ``nod``, as the function `donod` computes them from the weights before and after a virtual update. The score
    is ``closeness``. Rows that are equally close are ordered by the digest of their content.

    Attributes:
        probe: the norms.
        share: of the rows that were measured, how many are kept.
        better: which end of ``don`` and of ``nod`` is better.

    Raises:
        ConfigError: a share outside (0, 1].

    Source: DONOD (arXiv 2504.14810): removing 70 % helped. UNSURE: the layer, the directions and the weights of the criteria.
    """

    wants: ClassVar[tuple[str, ...]] = ("don", "nod")
    width: ClassVar[int] = 2
    probe: Probe | ProbeFile
    share: float = 0.3
    better: tuple[Literal["low", "high"], Literal["low", "high"]] = ("low", "low")

    def __post_init__(self) -> None:
        _check_share("Donod", self.share)
        topsis([[0.0, 0.0]], self.better)

    def numbers(self, entry: Mapping[str, Any], ready: Any) -> Sequence[float]:
        """The two norms."""
        don, nod = float(entry["don"]), float(entry["nod"])
        if nod < abs(don) - 1e-6 * max(1.0, abs(don)):
            raise DataError(f"don={don} is larger than nod={nod}, which no update can do; are they swapped?")
        return don, nod

    def decide(self, seen: StepNotes, ready: Any) -> Sequence[Decision]:
        """All but the closest."""
        table, rows, missing = self._numbers(seen)
        values = topsis(table, self.better) if len(table) else np.empty(0)
        late = _places(values, seen.rank[rows]) >= _share_of(len(rows), self.share)
        return _decide_rows(seen, rows, values, late, missing, "far from the best norms", "closeness")


@dataclass(frozen=True, slots=True, kw_only=True)
class Influential(_Valued):
    """Keeps of each source the share of rows that most raise the likelihood of a validation set, to first order.

    Reads ``gradient``: that of the log-likelihood of a verified right response, projected or not. The score is ``influence``.
    Rows of equal influence are ordered by the digest of their content.

    Attributes:
        probe: the gradients.
        validation: a file of objects with the ``gradient`` of each validation item.
        share: of a source's measured rows, how many are kept.
        source: the field that names a row's source; rows without it are one source.

    Raises:
        ConfigError: a share outside (0, 1].

    Source: Vision-G1 (arXiv 2508.12680), see `influence`. UNSURE: its shares, so there is no default.
    """

    wants: ClassVar[tuple[str, ...]] = ("gradient",)
    probe: Probe | ProbeFile
    validation: Path
    share: float
    source: str = "source"

    def __post_init__(self) -> None:
        _check_share("Influential", self.share)

    @property
    def files(self) -> tuple[Path, ...]:
        """The validation gradients, and the rows' where a file has them."""
        return (self.validation, *((self.probe.file,) if isinstance(self.probe, ProbeFile) else ()))

    def prepare(self, scratch: Path) -> _Against:
        """The probe, and the mean validation gradient."""
        mean = np.mean(_gradients(self.validation), 0, keepdims=True)
        if not isinstance(self.probe, ProbeFile):
            return _Against(self.probe, mean)
        files, read = [self.probe.file], _Wanted(self.wants)
        return _Against(_Looked(Joined(scratch / "probe.sqlite", files, self.probe.fields, read)), mean)

    def numbers(self, entry: Mapping[str, Any], ready: Any) -> Sequence[float]:
        """The influence."""
        return (float(influence([entry["gradient"]], ready.mean)[0]),)

    def note(self, chunk: Chunk, ready: Any) -> Mapping[str, NDArray[Any]]:
        """The influence, and a digest of the source."""
        names = [str(row.data.get(self.source, "")).encode("utf-8", "surrogatepass") for row in chunk.rows]
        sources = [int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big") for name in names]
        # not super(): a slotted dataclass is another class than the one that its methods were written in
        return {**_Valued.note(self, chunk, ready), "source": np.array(sources, np.uint64)}

    def decide(self, seen: StepNotes, ready: Any) -> Sequence[Decision]:
        """Of each source all but the first."""
        table, rows, missing = self._numbers(seen)
        source, late = seen.column("source")[rows], np.zeros(len(rows), np.bool_)
        for one in np.unique(source):
            mine = np.flatnonzero(source == one)
            late[mine] = _places(table[mine, 0], seen.rank[rows[mine]]) >= _share_of(len(mine), self.share)
        return _decide_rows(seen, rows, table[:, 0], late, missing, "little influence", "influence")


@dataclass(frozen=True, slots=True)
class _Against:
    """A probe of gradients, with the mean gradient of the validation set."""

    probe: Probe
    mean: Floats

    def __call__(self, rows: Sequence[Row]) -> Sequence[Mapping[str, Any] | None]:
        return self.probe(rows)


def _gradients(place: Path) -> Floats:
    found: list[Any] = []
    for path in entries(place):
        for line, entry in read_rows(path):
            gradient = parse_entry(entry).get("gradient")
            if not isinstance(gradient, list):
                raise DataError(f"{path}, line {line}: no list 'gradient'")
            found.append(gradient)
    if not found or len({len(g) for g in found}) > 1:
        raise DataError(f"{place}: {len(found)} gradients of lengths {sorted({len(g) for g in found})}; give some, of one length")
    return np.array(found, np.float64)


def _curve(entry: Mapping[str, Any]) -> Floats:
    """A curve without gaps; all NaN where its last epoch is missing."""
    raw = np.array([np.nan if x is None else float(x) for x in entry["history"]], np.float64)
    whole = fill_gaps(raw)
    return np.full(len(raw), np.nan) if whole is None else whole


def _uneven(name: str, lengths: Sequence[int]) -> str:
    return f"{name}: histories of {lengths[0]} and of {lengths[-1]} epochs; write null for an epoch in which a row was not drawn"


def _check_share(name: str, share: float) -> None:
    if not 0 < share <= 1:
        raise ConfigError(f"{name}.share={share}; use a share in (0, 1]")


def _share_of(count: int, share: float) -> int:
    """So many of ``count``, rounded up."""
    return int(np.ceil(share * count - 1e-9))


def _places(values: Floats, rank: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each when sorted by value, the largest first, equal ones by rank."""
    places = np.empty(len(values), np.int64)
    places[np.lexsort((rank, -values))] = np.arange(len(values))
    return places


def _decide_rows(
    seen: StepNotes,
    rows: NDArray[np.int64],
    values: Floats,
    gone: NDArray[np.bool_],
    missing: NDArray[np.int64],
    reason: str,
    score: str,
) -> list[Decision]:
    """Some of the measured rows go, and all that were not measured."""
    scores = np.full(len(seen.alive), np.nan)
    scores[rows] = values
    return [
        Decision(reason, seen.positions[rows[gone]], scores={score: scores}),
        Decision(UNMEASURED, seen.positions[missing]),
    ]
