"""What a curation writes: rows kept, rows dropped with reasons, and where all of it comes from."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from assay.core.seeds import content_split
from assay.curate.curation_plan import CurationPlan
from assay.curate.progress import CurationProgress
from assay.curate.rows import Stored, dump_line
from assay.curate.step import CurationStep, Decision, RowStep
from assay.curate.work_folder import WorkFolder, decisions_in, verdicts_in

if TYPE_CHECKING:
    from assay.curate.pipeline import Pipeline

__all__ = ["Fates", "emit", "split_of"]

FORMAT = 1
READING = "read"
"""The step by whose name unreadable rows are rejected."""


def split_of(text: str, test_share: float, seed: int) -> bool:
    """Whether a row is in the test split: decided by its normalised question, so rows that ask the same are on one side.

    >>> split_of("2 + 2?", 1.0, seed=0)
    True
    """
    return content_split(f"curate {seed} {text}", test_share) == "test"


class Fates:
    """What became of every row, read from the work folder a chunk at a time.

    Args:
        work: the folder.
        steps: of the pipeline.
        homes: the pass of each step.
        ids: ``[n, 2]`` halves of the rows' ids.
        gone: ``[n]`` number of the step that dropped each row, -1 where none did.
        starts: position of the first row of each chunk.
    """

    def __init__(
        self,
        work: WorkFolder,
        steps: Sequence[CurationStep],
        homes: Sequence[int],
        ids: NDArray[np.uint64],
        gone: NDArray[np.int16],
        starts: Sequence[int],
    ) -> None:
        self.gone, self.starts, self.steps = gone, starts, steps
        self._work, self._homes, self._ids = work, homes, ids
        self._decided = {
            i: _sort_rows(decisions_in(work.place("decided", i))) for i, s in enumerate(steps) if not isinstance(s, RowStep)
        }
        self._noted = {i: self._positions(homes[i]) for i, ds in self._decided.items() if any(d.scores for d, _ in ds)}

    def chunk(self, part: int) -> Iterator[tuple[Stored, int, str, dict[str, Any], dict[str, Any]]]:
        """Of each row of a chunk: the row, the step that dropped it or -1, reason, evidence and scores."""
        lines = (self._work.place("rows", part) / "rows").read_bytes().split(b"\n")[:-1]
        drops, scores = self._verdicts(part)
        for position, line in enumerate(lines, self.starts[part]):
            step = int(self.gone[position])
            reason, evidence = "", {}
            if step in self._decided:
                reason, evidence = self._decision(step, position)
            elif step >= 0:
                reason, evidence = drops[step, position]
            yield Stored.read(line), step, reason, evidence, self._scores(position, step, scores)

    def bad(self, part: int) -> list[list[Any]]:
        """``[file, line, reason, text]`` of each unreadable row of a chunk."""
        return [json.loads(line) for line in (self._work.place("rows", part) / "bad.jsonl").read_bytes().split(b"\n")[:-1]]

    def _verdicts(self, part: int) -> tuple[dict[tuple[int, int], tuple[str, Any]], dict[int, list[tuple[int, Any]]]]:
        drops: dict[tuple[int, int], tuple[str, Any]] = {}
        scores: dict[int, list[tuple[int, Any]]] = {}
        for i, step in enumerate(self.steps):
            if isinstance(step, RowStep):
                found = verdicts_in(self._work.place(f"pass{self._homes[i]}", part), i)
                drops |= {(i, position): (reason, evidence) for position, reason, evidence in found["drops"]}
                for position, values in found["scores"]:
                    scores.setdefault(position, []).append((i, values))
        return drops, scores

    def _decision(self, step: int, position: int) -> tuple[str, dict[str, Any]]:
        found = ((d, _place(rows, position)) for d, rows in self._decided[step] if d.reason)
        decision, at = next((d, at) for d, at in found if at is not None)
        evidence: dict[str, Any] = {} if decision.of is None else {"of": self._id(int(decision.of[at]))}
        evidence |= {name: _number(values[at]) for name, values in decision.evidence.items()}
        return decision.reason, {**evidence, **(decision.details[at] if decision.details else {})}

    def _scores(self, position: int, dropped_by: int, scores: Mapping[int, list[tuple[int, Any]]]) -> dict[str, Any]:
        """Scores by the steps up to the one that dropped the row."""
        last = len(self.steps) if dropped_by < 0 else dropped_by
        found = [(i, values) for i, values in scores.get(position, ()) if i <= last]
        for i, noted in self._noted.items():
            at = _place(noted, position)
            if i <= last and at is not None:
                values = {n: v for d, _ in self._decided[i] for n, a in d.scores.items() if (v := _number(a[at])) is not None}
                found.append((i, values))
        return {name: value for _, values in sorted(found, key=lambda f: f[0]) for name, value in values.items()}

    def _positions(self, home: int) -> NDArray[np.int64]:
        return np.concatenate([np.load(self._work.place(f"pass{home}", p) / "positions.npy") for p in range(len(self.starts))])

    def _id(self, position: int) -> str:
        return "".join(f"{int(half):016x}" for half in self._ids[position])


def emit(out: Path, plan: CurationPlan, pipeline: Pipeline, fates: Fates, progress: CurationProgress) -> dict[str, Any]:
    """Writes the output; the manifest last, so that it is there when all is."""
    tally = _Tally(pipeline, plan)
    names = ("train.jsonl", "test.jsonl", "rejected.jsonl")
    with ExitStack() as stack:
        files = {name: stack.enter_context((out / f"{name}.new").open("wb")) for name in names}
        tick = stack.enter_context(progress.stage("writing", len(fates.starts)))
        for part in range(len(fates.starts)):
            lines: list[tuple[tuple[int, int], str, bytes]] = []
            for file, line, reason, text in fates.bad(part):
                lines.append(((file, line), "rejected.jsonl", tally.unreadable(file, line, reason, text)))
            for row, step, reason, evidence, scores in fates.chunk(part):
                name, made = tally.row(row, step, reason, evidence, scores)
                lines.append(((row.file, row.number), name, made))
            for _, name, made in sorted(lines, key=lambda x: x[0]):
                files[name].write(made)
            tick(len(lines))
        for file in files.values():
            file.flush()
            os.fsync(file.fileno())
    for name in names:
        os.replace(out / f"{name}.new", out / name)
    manifest = tally.manifest()
    fresh = out / "manifest.json.new"
    fresh.write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", errors="surrogateescape")
    os.replace(fresh, out / "manifest.json")
    return manifest


class _Tally:
    """Makes lines of rows and counts them."""

    def __init__(self, pipeline: Pipeline, plan: CurationPlan) -> None:
        self._pipeline, self._plan = pipeline, plan
        self._inputs = [source.path for source in plan.inputs]
        self._reasons: Counter[tuple[int, str]] = Counter()
        self._splits: Counter[str] = Counter()
        self._read = self._sum = 0

    def unreadable(self, file: int, line: int, reason: str, text: str) -> bytes:
        self._read += 1
        self._reasons[-1, "unreadable"] += 1
        place = {"file": self._inputs[file], "line": line}
        return dump_line({"step": READING, "reason": "unreadable", "evidence": {"error": reason}, **place, "text": text})

    def row(self, row: Stored, step: int, reason: str, evidence: Any, scores: dict[str, Any]) -> tuple[str, bytes]:
        """The file that a row goes to, and its line there."""
        self._read += 1
        if step >= 0:
            self._reasons[step, reason] += 1
            said = {"step": self._pipeline.steps[step].name, "reason": reason, "evidence": evidence, "scores": scores}
            head = dump_line({**said, "id": row.id, "file": self._inputs[row.file], "line": row.number})
            return "rejected.jsonl", head[:-2] + b', "row": ' + row.raw + b"}\n"
        split = "test" if row.test else "train"
        self._splits[split] += 1
        self._sum += int.from_bytes(hashlib.blake2b(f"{split} {row.id}".encode(), digest_size=16).digest(), "big")
        return f"{split}.jsonl", row.output_line(scores)

    def manifest(self) -> dict[str, Any]:
        steps: list[dict[str, Any]] = []
        left = self._read - self._reasons[-1, "unreadable"]
        for number, step in enumerate(self._pipeline.steps):
            dropped = {r: n for (i, r), n in sorted(self._reasons.items()) if i == number}
            steps.append({"step": step.name, "seen": left, "dropped": dropped, "kept": left - sum(dropped.values())})
            left -= sum(dropped.values())
        return {
            "format": FORMAT,
            "plan": self._plan.digest,
            **self._plan.describe(),
            "counts": {
                "read": self._read,
                "unreadable": self._reasons[-1, "unreadable"],
                "steps": steps,
                "rejected": sum(self._reasons.values()),
                "train": self._splits["train"],
                "test": self._splits["test"],
            },
            "digest": f"{self._sum % (1 << 128):032x}",
        }


def _sort_rows(decisions: Sequence[Decision]) -> list[tuple[Decision, NDArray[np.int64]]]:
    """Decisions with their rows ascending."""
    found: list[tuple[Decision, NDArray[np.int64]]] = []
    for d in decisions:
        order = np.argsort(d.rows, kind="stable")
        of = None if d.of is None else d.of[order]
        evidence = {name: values[order] for name, values in d.evidence.items()}
        details: Sequence[Mapping[str, Any]] = [d.details[int(at)] for at in order] if d.details else ()
        found.append((Decision(d.reason, d.rows[order], of, evidence, d.scores, details), d.rows[order]))
    return found


def _place(ascending: NDArray[np.int64], value: int) -> int | None:
    """Where a value stands in an ascending array, if it does."""
    at = int(np.searchsorted(ascending, value))
    return at if at < len(ascending) and ascending[at] == value else None


def _number(value: np.generic[Any]) -> Any:
    """A number as JSON; None for NaN."""
    found: Any = value.item()
    return None if found != found else found
