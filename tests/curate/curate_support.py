"""Rows, files and runs for the tests of curation."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.curate import CurationStep, Pipeline

WORDS = (
    "find",
    "the",
    "least",
    "prime",
    "above",
    "one",
    "hundred",
    "and",
    "ten",
    "that",
    "divides",
    "no",
    "square",
    "of",
    "a",
    "sum",
)


def sentence(seed: int, words: int = 24) -> str:
    """Words that no other seed's sentence shares a run of."""
    return " ".join(f"{WORDS[(seed * 7 + i * (seed % 5 + 1)) % len(WORDS)]}{seed}x{i}" for i in range(words))


def plain_words(count: int) -> str:
    """Words without digits, no two of them alike."""
    return " ".join(f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(count))


def write(path: Path, rows: Iterable[Mapping[str, Any] | str]) -> Path:
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows), encoding="utf-8")
    return path


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def curated(
    folder: Path, rows: Iterable[Mapping[str, Any] | str], steps: Sequence[CurationStep], chunk: int = 3, **settings: Any
) -> "Result":
    """Curates rows in a fresh folder below ``folder``."""
    place = folder / f"run{len(list(folder.glob('run*')))}"
    place.mkdir()
    source = write(place / "in.jsonl", rows)
    manifest = Pipeline(steps=tuple(steps), **settings).run([source], place / "out", chunk=chunk)
    return Result(place / "out", manifest)


class Result:
    def __init__(self, out: Path, manifest: dict[str, Any]) -> None:
        self.out, self.manifest = out, manifest
        self.train, self.test, self.rejected = (read(out / f"{name}.jsonl") for name in ("train", "test", "rejected"))
        self.kept = self.train + self.test

    def reasons(self) -> list[tuple[int, str, str]]:
        """(line, step, reason) of what was rejected."""
        return [(r["line"], r["step"], r["reason"]) for r in self.rejected]

    def lines_kept(self, field: str = "n") -> list[Any]:
        return sorted(row[field] for row in self.kept)
