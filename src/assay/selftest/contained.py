"""Isolation: what holds a program on this machine."""

from __future__ import annotations

from assay.selftest.part import Bench, Finding

__all__ = ["isolation"]


def isolation(bench: Bench) -> Finding:
    """Attacks each level of the sandbox, as ``assay sandbox probe`` does; one must hold every attack."""
    from assay.sandbox.levels import LEVELS, WASI, backend_named
    from assay.sandbox.probing import probe

    found = [probe(backend_named(name)) for name in LEVELS]
    if not any(p.held for p in found):
        found.append(probe(backend_named(WASI)))
    best = next((p for p in found if p.held), None)
    numbers = {"isolation": best.name if best else None, "levels": [p.manifest() for p in found]}
    why = "; ".join(f"{p.name}: {p.why}" for p in found)
    return Finding(numbers=numbers, failures=() if best else (f"nothing contains programs here ({why})",))
