"""Writes imported rows, without those that a later row contradicts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.core.canon import digest, plain
from assay.core.errors import DataError
from assay.tasks.exchange.results import Rejected, Summary

__all__ = ["contradiction", "question_key", "write_rows"]


def contradiction(here: str, there: str) -> str:
    """Why a row is refused that asks what another one asks, and how to keep both; each is a file and a row of it.

    >>> contradiction("a.jsonl, row 3", "a.jsonl, row 1").partition(":")[0]
    'the same question as a.jsonl, row 1, with another answer (this is a.jsonl, row 3)'
    """
    return (
        f"the same question as {there}, with another answer (this is {here}): nobody knows which is right. Remove the wrong one; "
        "to keep both, give their questions different words, or where both are right write one row with a list of the "
        "answers and the verifier 'exact', of which any one is right"
    )


def _take_back(good: Path, bad: Path, doubtful: Mapping[str, Rejected], summary: Summary) -> None:
    """Moves rows that were taken, and that a later one contradicts, to those that were refused."""
    kept = good.with_name(f"{good.name}.kept")
    with good.open(encoding="utf-8") as rows, kept.open("w", encoding="utf-8") as out, bad.open("a", encoding="utf-8") as refused:
        for line in rows:
            row = json.loads(line)
            later = doubtful.get(question_key(row))
            if later is None:
                out.write(line)
                continue
            place, _, number = later.first.rpartition(", row ")
            reason = contradiction(later.first, f"{later.place}, row {later.number}")
            record = replace(later, place=place, number=int(number), reason=reason, row=row).record()
            refused.write(json.dumps(plain(record), ensure_ascii=False) + "\n")
            summary.taken -= 1
            summary.rejected["differing"] += 1
            for counter, name in ((summary.licences, "license"), (summary.sources, "data_source")):
                counter[str(row[name])] -= 1
            spec: Any = row["verifier"]
            summary.verifiers[spec if isinstance(spec, str) else str(spec["name"])] -= 1
    for counter in (summary.licences, summary.sources, summary.verifiers):
        for name in [name for name, n in counter.items() if not n]:
            del counter[name]
    kept.replace(good)


def question_key(row: Mapping[str, Any]) -> str:
    """Names what a row asks."""
    return digest(row.get("prompt") or row.get("messages"))


def write_rows(made: Iterable[dict[str, Any] | Rejected], out: Path, summary: Summary | None = None) -> Path:
    """Writes what was taken to ``out`` and what was refused beside it, both complete or not at all.

    Of rows that ask the same and have different answers none is taken: nobody knows which is right.

    Args:
        made: of `Importer.run`.
        out: the file.
        summary: counts rows that are taken back so.

    Returns:
        The file of what was refused.

    Raises:
        DataError: the file cannot be written.
    """
    refused = out.with_name(f"{out.name.removesuffix('.jsonl')}.rejected.jsonl")
    parts = [path.with_name(f"{path.name}.part") for path in (out, refused)]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with parts[0].open("w", encoding="utf-8") as good, parts[1].open("w", encoding="utf-8") as bad:
            doubtful = dict[str, Rejected]()
            for row in made:
                if isinstance(row, Rejected) and row.key:
                    doubtful.setdefault(row.key, row)
                file, value = (bad, row.record()) if isinstance(row, Rejected) else (good, row)
                file.write(json.dumps(plain(value), ensure_ascii=False) + "\n")
        if doubtful:
            _take_back(parts[0], parts[1], doubtful, summary or Summary())
        for part, path in zip(parts[:2], (out, refused), strict=True):
            part.replace(path)
    except OSError as error:
        raise DataError(f"cannot write {out}: {error}") from error
    finally:
        for part in parts:
            with suppress(OSError):
                part.unlink(missing_ok=True)
    return refused
