"""Rows that were taken, and that a later row contradicts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.core.canon import digest, plain

if TYPE_CHECKING:
    from assay.tasks.exchange.importing import Rejected, Summary

__all__ = ["question_key", "take_back"]


def take_back(good: Path, bad: Path, doubtful: Mapping[str, Rejected], summary: Summary) -> None:
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
            reason = f"the same question as {later.place}, row {later.number}, with another answer"
            record = replace(later, place=place, number=int(number), reason=reason, row=row).record()
            refused.write(json.dumps(plain(record), ensure_ascii=False) + "\n")
            summary.taken -= 1
            summary.rejected["repeated"] += 1
            for counter, name in ((summary.licences, "license"), (summary.sources, "data_source")):
                counter[str(row[name])] -= 1
            spec = row["verifier"]
            summary.verifiers[str(spec["name"] if isinstance(spec, dict) else spec)] -= 1
    for counter in (summary.licences, summary.sources, summary.verifiers):
        for name in [name for name, n in counter.items() if not n]:
            del counter[name]
    kept.replace(good)


def question_key(row: Mapping[str, Any]) -> str:
    """Names what a row asks."""
    return digest(row.get("prompt") or row.get("messages"))
