"""The page of the conformance study, from what was found."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peer_comparing import SEEDS

from assay.objective.peers import PEERS, matches

Results = Mapping[str, Mapping[str, Any]]
"""Library to its version and what was found."""


def expected(found: Mapping[str, Any]) -> bool:
    """Whether a comparison ended as its case says."""
    return not found["error"] and found["same"] != bool(found["differs"])


def record(present: Results, folder: Path) -> Results:
    """Writes ``conformance.json`` and its page; libraries that are absent keep the rows of the run that had them."""
    path = folder / "conformance.json"
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    results = {peer: {**before, **present}[peer] for peer in PEERS if peer in {**before, **present}}
    path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "conformance.md").write_text(page(results), encoding="utf-8")
    return results


def page(results: Results) -> str:
    """Markdown: a summary, then a table for each library."""
    total = [f for r in results.values() for f in r["found"]]
    summary = [
        f"| {_title(peer, r)} | {len(r['found'])} | {sum(f['same'] for f in r['found'])} | {_differ(r)} |"
        for peer, r in results.items()
    ]
    lines = [
        "# Conformance: other libraries' own functions against `evaluate`",
        "",
        f"Each comparison calls a library's own function on {len(SEEDS)} random batches (seeds {_seeds()}), each of two prompts",
        "with three rollouts of one to five tokens. It compares loss, gradient and advantages with those of the composition",
        "that `assay methods --peer LIBRARY:NAME` prints. *Agrees* means a relative difference below 1e-6 (1e-5 where the",
        "library computes in single precision) on every batch. Every difference is one that the test expects, and says why;",
        "a library that changes makes the test fail. `tests/conformance/peer_comparing.py` draws the batches; the column case",
        "says what changes them.",
        "",
        "    ASSAY_PEERS=folder make evidence        # or only: pytest -n0 -m evidence tests/conformance",
        "",
        "A library is imported where it is installed, or read from `$ASSAY_PEERS/LIBRARY`, an unpacked wheel or a repository;",
        f"where it is neither, the rows of the last run stay. {len(total)} comparisons.",
        "",
        "| library | comparisons | agree | differ |",
        "|---|---|---|---|",
        *summary,
        "",
        *(line for peer, r in results.items() for line in _section(peer, r)),
    ]
    return "\n".join(lines) + "\n"


def _seeds() -> str:
    *most, last = map(str, SEEDS)
    return f"{', '.join(most)} and {last}"


def _differ(result: Mapping[str, Any]) -> int:
    return sum(not f["same"] for f in result["found"])


def _title(peer: str, result: Mapping[str, Any]) -> str:
    version = result["version"]
    return PEERS[peer] if version == "repository" or version in PEERS[peer] else f"{PEERS[peer].split()[0]} {version}"


def _section(peer: str, result: Mapping[str, Any]) -> list[str]:
    rows = [
        f"| {f['name']} | {f['kind']} | {f['case'] or '–'} | {', '.join(f['apart']) or '–'} | {_verdict(f)} |"
        for f in result["found"]
    ]
    run = {(f["name"], f["kind"]) for f in result["found"]}
    rest = [m for m in matches(peer) if (m.name, m.kind) not in run]
    read = ", ".join(f"{m.name} ({m.kind})" for m in rest if m.code)
    none = ", ".join(f"{m.name} ({m.kind})" for m in rest if not m.code)
    return [
        f"## {_title(peer, result)}",
        "",
        "| name | kind | case | compared | verdict |",
        "|---|---|---|---|---|",
        *rows,
        "",
        *([f"Read, not run: {read}.", ""] if read else []),
        *([f"No composition here: {none}.", ""] if none else []),
    ]


def _verdict(found: Mapping[str, Any]) -> str:
    if expected(found):
        return "agrees" if found["same"] else f"differs: {found['differs']}"
    return f"**unexpected**: {found['error'] or found['apart']}"
