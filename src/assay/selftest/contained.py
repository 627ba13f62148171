"""Isolation: what holds a program on this machine."""

from __future__ import annotations

from assay.selftest.selftest_part import SelftestContext, SelftestFinding

__all__ = ["isolation"]


def isolation(context: SelftestContext) -> SelftestFinding:
    """Attacks each level of the sandbox, as ``assay sandbox probe`` does; one must hold every attack."""
    from assay.sandbox.attack_probe import probe
    from assay.sandbox.levels import LEVELS, WASI, backend_named

    found = [probe(backend_named(name)) for name in LEVELS]
    if not any(p.held for p in found):
        found.append(probe(backend_named(WASI)))
    best = next((p for p in found if p.held), None)
    numbers = {"isolation": best.name if best else None, "levels": [p.manifest() for p in found]}
    why = "; ".join(f"{p.name}: {p.why}" for p in found)
    return SelftestFinding(numbers=numbers, failures=() if best else (f"nothing contains programs here ({why})",))
