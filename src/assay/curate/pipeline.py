"""Steps one after another over rows that need not fit in memory; killed at any moment, it goes on where it was.

The rows are read once and kept, in chunks, in the work folder. Cheap steps share one pass over them: each judges, or notes what
it needs, and when the pass is over the steps decide in their order, so that the first that drops a row is the one that is named.
A costly step has a pass of its own, over the rows that are left. At the end the rows are written out. Nothing that is written
depends on the size of chunks, on time, or on where a process was killed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, is_dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.canon import digest
from assay.core.errors import ConfigError, DataError
from assay.curate.curation_plan import CurationPlan, plan_of
from assay.curate.output import Fates, emit, split_of
from assay.curate.progress import CurationProgress, Quiet
from assay.curate.rows import Fields, Row, Stored, dump_line, parse_entry, read_rows, row_of
from assay.curate.step import Chunk, CurationStep, RowStep, SetStep
from assay.curate.work_folder import (
    StoredNotes,
    WorkFolder,
    decisions_in,
    put_arrays,
    put_decisions,
    put_verdicts,
    verdicts_in,
    write_whole,
)

__all__ = ["Pipeline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """Steps to curate rows with.

    Attributes:
        steps: `RowStep` and `SetStep` parts, in order; two of one name need names of their own.
        fields: where rows hold question and gold.
        test_share: share of the questions that become the test split, by a hash of their normalised text.
        seed: another seed, another split.

    Raises:
        ConfigError: two steps of one name, something that is no step or no dataclass, or a share outside [0, 1].
    """

    steps: tuple[CurationStep, ...]
    fields: Fields = field(default_factory=Fields)
    test_share: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        wrong = [s for s in self.steps if not isinstance(s, RowStep | SetStep)]
        if wrong:
            raise ConfigError(f"Pipeline.steps: {wrong[0]!r} is no step; derive it from RowStep or SetStep")
        loose = [s for s in self.steps if not is_dataclass(s)]
        if loose:
            raise ConfigError(
                f"Pipeline.steps: {type(loose[0]).__name__} is no dataclass; write @dataclass(frozen=True) above it"
            )
        names = [s.name for s in self.steps]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ConfigError(f"Pipeline.steps: two steps are called {twice[0]!r}; give one of them another name")
        if not 0 <= self.test_share <= 1:
            raise ConfigError(f"Pipeline.test_share={self.test_share}; use a share in [0, 1]")

    def run(
        self,
        files: Sequence[Path | str],
        out: Path | str,
        *,
        chunk: int = 4096,
        fresh: bool = False,
        progress: CurationProgress | None = None,
    ) -> dict[str, Any]:
        """Curates files into a folder; goes on where an earlier run of the same was stopped.

        Args:
            files: what to read: files or folders of rows.
            out: a folder; ``train.jsonl``, ``test.jsonl``, ``rejected.jsonl`` and ``manifest.json`` are written there.
            chunk: rows that are looked at together: the most that a killed run does again. The result does not depend on it.
            fresh: throw away what an earlier run left in ``out``.
            progress: is told how far it is.

        Returns:
            the manifest.

        Raises:
            ConfigError: no such file, or ``out`` holds another curation.
            DataError: no row can be read.
        """
        if chunk < 1:
            raise ConfigError(f"chunk={chunk}; use at least 1 row")
        folder = Path(out)
        plan = plan_of(self, files)
        if folder.is_file():
            raise ConfigError(f"{folder} is a file; name a folder")
        around = [place for place in map(Path, files) if place.is_dir() and folder.resolve().is_relative_to(place.resolve())]
        if around:
            raise ConfigError(f"{folder} is inside {around[0]}, which is read; name a folder beside it")
        done = None if fresh else _finished_manifest(folder, plan)
        if done is not None:
            shutil.rmtree(folder / ".work", ignore_errors=True)  # of a run that was killed when all was done
            return done
        work = WorkFolder(folder / ".work")
        with work.alone():
            if fresh:
                _clear_folder(folder, work)
            _claim_folder(work, plan, chunk)
            manifest = _Run(self, plan, work, progress or Quiet()).all(folder)
        shutil.rmtree(work.folder, ignore_errors=True)
        return manifest


class _Run:
    """One run of a pipeline, or what is left of it."""

    def __init__(self, pipeline: Pipeline, plan: CurationPlan, work: WorkFolder, progress: CurationProgress) -> None:
        self._pipeline, self._plan, self._work, self._progress = pipeline, plan, work, progress
        self._chunk = int(json.loads((work.folder / "plan.json").read_text(encoding="utf-8"))["chunk"])
        self._ids: NDArray[np.uint64] = np.empty((0, 2), np.uint64)
        self._gone: NDArray[np.int16] = np.empty(0, np.int16)
        self._starts: list[int] = []
        self._ready: dict[int, Any] = {}

    def all(self, out: Path) -> dict[str, Any]:
        """Every pass, then the output."""
        passes = _passes(self._pipeline.steps)
        for number, steps in enumerate(passes):
            self._pass(number, steps)
            self._decide(number, steps)
        homes = [number for number, steps in enumerate(passes) for _ in steps]
        fates = Fates(self._work, self._pipeline.steps, homes, self._ids, self._gone, self._starts)
        return emit(out, self._plan, self._pipeline, fates, self._progress)

    # ---- passes

    def _pass(self, number: int, steps: Sequence[tuple[int, CurationStep]]) -> None:
        stage = f"pass{number}"
        self._ready = {index: step.prepare(self._work.scratch(index)) for index, step in steps}
        what = ", ".join(step.name for _, step in steps) or "reading"
        chunks = self._read() if number == 0 else self._again(stage)
        with self._progress.stage(what, None if number == 0 else len(self._starts)) as tick:
            for part, rows, positions in chunks:
                if not self._work.has(stage, part):
                    self._look(stage, part, Chunk(rows(), positions), steps)
                tick(len(positions))
        if number == 0:
            self._count()

    def _look(self, stage: str, part: int, chunk: Chunk, steps: Sequence[tuple[int, CurationStep]]) -> None:
        with self._work.making(stage, part) as folder:
            np.save(folder / "positions.npy", chunk.positions)
            for index, step in steps:
                if isinstance(step, RowStep):
                    verdicts = step.judge(chunk, self._ready[index])
                    if len(verdicts) != len(chunk):
                        raise DataError(
                            f"the step {step.name!r} gave {len(verdicts)} verdicts on {len(chunk)} rows; give one for each"
                        )
                    put_verdicts(folder, index, step.name, chunk.positions, verdicts)
                elif isinstance(step, SetStep):
                    put_arrays(folder, index, step.note(chunk, self._ready[index]))

    def _read(self) -> Iterator[tuple[int, Any, NDArray[np.int64]]]:
        """Chunks of the input, kept in the work folder as they are read."""
        entries = ((f, line, entry) for f, source in enumerate(self._plan.inputs) for line, entry in read_rows(Path(source.path)))
        start = part = 0
        while True:
            block = list(islice(entries, self._chunk))
            if not block:
                return
            if self._work.has("rows", part):
                rows, count = _Later(self, part, start), len(np.load(self._work.place("rows", part) / "ids.npy"))
            else:
                found = self._store(part, block)
                rows, count = _Now(found), len(found)
            yield part, rows, np.arange(start, start + count, dtype=np.int64)
            start, part = start + count, part + 1

    def _store(self, part: int, block: Iterable[tuple[int, int, Any]]) -> list[Row]:
        rows: list[Row] = []
        kept: list[bytes] = []
        bad: list[bytes] = []
        for file, line, entry in block:
            try:
                row = row_of(parse_entry(entry), self._pipeline.fields, file, line)
            except DataError as error:
                text = entry.decode("utf-8", "replace").rstrip("\r\n") if isinstance(entry, bytes) else repr(entry)
                bad.append(dump_line([file, line, str(error), text]))
                continue
            rows.append(row)
            kept.append(Stored.of(row, entry, split_of(row.text, self._pipeline.test_share, self._pipeline.seed)).line)
        with self._work.making("rows", part) as folder:
            (folder / "rows").write_bytes(b"".join(kept))
            (folder / "bad.jsonl").write_bytes(b"".join(bad))
            ids = np.frombuffer(bytes.fromhex("".join(row.id for row in rows)), ">u8").astype(np.uint64).reshape(-1, 2)
            np.save(folder / "ids.npy", ids)
        return rows

    def _again(self, stage: str) -> Iterator[tuple[int, Any, NDArray[np.int64]]]:
        """Chunks of what is left, from the work folder."""
        ends = [*self._starts[1:], len(self._gone)]
        for part, (start, end) in enumerate(zip(self._starts, ends, strict=True)):
            positions = start + np.flatnonzero(self._gone[start:end] < 0)
            yield part, _Later(self, part, start, positions - start), positions

    def rows(self, part: int, which: NDArray[np.int64] | None) -> list[Row]:
        """The rows of a chunk, or those at some places in it."""
        lines = (self._work.place("rows", part) / "rows").read_bytes().split(b"\n")[:-1]
        found: list[Row] = []
        wanted: list[int] = list(range(len(lines))) if which is None else which.tolist()
        for line in map(lines.__getitem__, wanted):
            one = Stored.read(line)
            found.append(row_of(json.loads(one.raw), self._pipeline.fields, one.file, one.number, one.id))
        return found

    def _count(self) -> None:
        """What is known of the rows once all have been read."""
        ids = [np.load(self._work.place("rows", part) / "ids.npy") for part in range(self._work.count("rows"))]
        sizes = [len(i) for i in ids]
        self._starts = np.cumsum([0, *sizes])[:-1].tolist()
        if not sum(sizes):
            raise DataError(f"{self._plan.input_name()}: {self._first_bad()}")
        self._ids = np.concatenate(ids)
        self._gone = np.full(len(self._ids), -1, np.int16)

    def _first_bad(self) -> str:
        path = self._work.place("rows", 0) / "bad.jsonl"
        if not path.exists():
            return "no rows; the input is empty"
        _, line, why, _ = json.loads(path.read_bytes().split(b"\n")[0])
        return f"no row can be read; the first, line {line}: {why}"

    # ---- decisions

    def _decide(self, number: int, steps: Sequence[tuple[int, CurationStep]]) -> None:
        folders = [self._work.place(f"pass{number}", part) for part in range(len(self._starts))]
        positions = np.concatenate([np.load(folder / "positions.npy") for folder in folders])
        rank = np.empty(0, np.int64)
        for index, step in steps:
            if isinstance(step, RowStep):
                for folder in folders:
                    self._drop(index, np.array([d[0] for d in verdicts_in(folder, index)["drops"]], np.int64))
                continue
            if not self._work.has("decided", index) and isinstance(step, SetStep):
                if not len(rank):
                    rank = _ranks(self._ids)
                with self._progress.stage(f"deciding: {step.name}", None), self._work.making("decided", index) as folder:
                    seen = StoredNotes(folders, index, positions, self._gone[positions] < 0, rank[positions])
                    put_decisions(folder, step.name, step.decide(seen, self._ready[index]))
            for decision in decisions_in(self._work.place("decided", index)):
                if decision.reason:
                    self._drop(index, decision.rows)

    def _drop(self, step: int, rows: NDArray[np.int64]) -> None:
        self._gone[rows[self._gone[rows] < 0]] = step


@dataclass(frozen=True, slots=True)
class _Now:
    """Rows that have just been read."""

    rows: list[Row]

    def __call__(self) -> list[Row]:
        return self.rows


@dataclass(frozen=True, slots=True)
class _Later:
    """Rows of a chunk that are read again only when they are looked at."""

    run: _Run
    part: int
    start: int
    which: NDArray[np.int64] | None = None

    def __call__(self) -> list[Row]:
        return self.run.rows(self.part, self.which)


def _passes(steps: Sequence[CurationStep]) -> list[list[tuple[int, CurationStep]]]:
    """Steps with their numbers, those of one pass together; the first pass is there even without a step."""
    passes: list[list[tuple[int, CurationStep]]] = [[]]
    open_ = True
    for index, step in enumerate(steps):
        if step.costly or not open_:
            passes.append([])
        passes[-1].append((index, step))
        open_ = not step.costly
    return passes


def _ranks(ids: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Each row's place when rows are sorted by id, equal ones by position."""
    rank = np.empty(len(ids), np.int64)
    rank[np.lexsort((ids[:, 1], ids[:, 0]))] = np.arange(len(ids))
    return rank


# ---- the folder -------------------------------------------------------------------------------------------------------

_OUTPUTS = ("manifest.json", "train.jsonl", "test.jsonl", "rejected.jsonl")


def _clear_folder(folder: Path, work: WorkFolder) -> None:
    work.clear()
    for name in _OUTPUTS:
        (folder / name).unlink(missing_ok=True)


def _finished_manifest(folder: Path, plan: CurationPlan) -> dict[str, Any] | None:
    """The manifest of an earlier run of the same plan.

    Raises:
        ConfigError: the folder holds something else.
    """
    path = folder / "manifest.json"
    if path.exists():
        try:
            manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            raise ConfigError(f"{path} is no manifest of a curation; name another folder, or --fresh") from None
        if manifest.get("plan") != plan.digest:
            raise ConfigError(
                f"{folder} holds another curation (its {plan.changed_parts(manifest)} differ); name another folder, or --fresh"
            )
        return manifest
    strange = [name for name in _OUTPUTS if (folder / name).exists()]
    if strange and not (folder / ".work").exists():
        raise ConfigError(f"{folder} holds a {strange[0]} that no curation has written; name another folder, or --fresh")
    return None


def _claim_folder(work: WorkFolder, plan: CurationPlan, chunk: int) -> None:
    """Says in the work folder whose it is; a run that goes on keeps the chunks of the one before."""
    path = work.folder / "plan.json"
    if path.exists():
        known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if digest(known["of"]) == plan.digest:
            return
        if work.count("rows"):
            raise ConfigError(
                f"{work.folder.parent} holds the beginning of another curation (its {plan.changed_parts(known['of'])} differ); "
                "name another folder, or --fresh"
            )
        work.clear()  # it failed before its first row, as on an evaluation that could not be read: nothing is lost
    with write_whole(path) as fresh:
        fresh.write_text(json.dumps({"of": plan.describe(), "chunk": chunk}), encoding="utf-8")
