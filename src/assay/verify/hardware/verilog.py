"""Designs in Verilog, judged by co-simulation."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any, cast

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError
from assay.core.score import Score
from assay.sandbox.limits import Limits
from assay.sandbox.result import Result, Status
from assay.sandbox.sandbox import Sandbox
from assay.sandbox.verilog.design import Design, design_in
from assay.sandbox.verilog.icarus import GENERATIONS, Icarus
from assay.sandbox.verilog.roles import Roles, roles_of
from assay.sandbox.verilog.source import has_directives, illegal_in, names_module, top_of
from assay.sandbox.verilog.stimuli import Stimulus, stimulus
from assay.sandbox.verilog.testbench import Testbench, outputs_in
from assay.verify.answer_verifier import verdict_score
from assay.verify.code.base import Gold, ProgramVerifier, lost_run, short
from assay.verify.code.program import ProgramPlace
from assay.verify.code.workers import sandbox_of

__all__ = ["VerilogMatch"]

_LIMITS = Limits(cpu=5.0, wall=10.0, output=32 << 20)
_WORDS = {Status.ERROR: "syntax", Status.CPU: "timeout"}
_WHY = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class VerilogMatch(ProgramVerifier):
    r"""A design in Verilog behaves as the golden one: both are simulated on the same inputs and every output is compared.

    The gold is the source of the golden design, or a table with ``golden`` (the source) and, where they cannot be told from it,
    ``top`` (the outermost module), ``clocks`` (a list of inputs) and ``resets`` (inputs, each with the level at which it acts).
    The answer must define a module of the same name with the same ports, widths and directions.

    After CodeV-R1 (arXiv 2505.24183): a rule builds the testbench from the golden design's ports, clocks and resets, drives
    corner values and drawn ones (`assay.verify.hardware.stimulus`), and any difference in any cycle is a failure. Golden and
    answer run in separate processes of the sandbox, under names drawn for this run, and outputs are compared here; so nothing in
    an answer can reach the golden design, its outputs, or the verdict. System tasks, ``force`` and ``include`` are refused unrun.

    Where the golden output is unknown (x), any value is right, and so for a bit that it never drives; where it is known, an
    unknown one is wrong. Components: ``compiles``; ``ports``: its ports are those of the golden design; ``fraction``: the share
    of cycles in which all outputs agree; ``correct``: all do. ``info["verdict"]`` is ``passed``, ``wrong``, ``syntax``,
    ``ports``, ``illegal``, ``error`` (the simulator stopped), or the limit that was exceeded: ``timeout``, ``memory``, ...

    Attributes:
        where: in which part of the text the design stands (`assay.verify.code.ProgramPlace`).
        cycles: how many cycles, or sets of input values of a design without a clock.
        seed: of the drawn values; they also depend on the golden source.

    Raises:
        ConfigError: fewer than 16 cycles; when judging, that Icarus Verilog is not installed, naming the package.
        DataError: the golden design does not compile or end, has an ``inout`` port or no output, or its outputs are never known.
    """

    where: ProgramPlace = ProgramPlace.AUTO
    limits: Limits = _LIMITS
    cycles: int = 1000
    seed: int = 0

    @property
    def fences(self) -> Sequence[str]:
        """What fenced blocks of Verilog are tagged with."""
        return ("verilog", "systemverilog", "v", "sv")

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("correct", "fraction", "compiles", "ports")

    def check(self) -> None:
        """Refuses a comparison of too few cycles."""
        if self.cycles < 16:
            raise ConfigError(f"VerilogMatch.cycles={self.cycles}; use at least 16")

    def sandbox(self) -> Sandbox:
        """The sandbox of this process, in which Icarus Verilog may be read."""
        return sandbox_of(self.backend, self.workers, allow_unsafe=self.allow_unsafe, reads=Icarus.find().reads)

    def rule(self, gold: Gold, source: str) -> Score:
        """Simulate both designs and compare."""
        sandbox = self.sandbox()
        try:
            reference = self._reference(gold, sandbox)
            return self._judge_design(source, reference, sandbox)
        except _Lost as error:
            return lost_run(error.result)

    def _judge_design(self, source: str, reference: _Reference, sandbox: Sandbox) -> Score:
        found = illegal_in(source)
        if not found and has_directives(source):
            read = _run_whole(Icarus.find().preprocess(sandbox, source, self.limits))
            if not read.ok:
                return self._fail(_word(read), read)
            source = read.stdout
            found = illegal_in(source)
        if found:
            return self.nothing("illegal", why=f"{found} has no place in a design", isolation=sandbox.tag)
        if not names_module(source, reference.bench.top):
            return self.nothing("syntax", why=f"it has no module {reference.bench.top}", isolation=sandbox.tag)
        nonce = secrets.token_hex(8)
        built = _build(sandbox, reference.bench.text(nonce) + source, f"bench_{nonce}", self.limits)
        if not built.ok:
            alone = _build(sandbox, source, reference.bench.top, self.limits) if built.status is Status.ERROR else built
            if not alone.ok:
                return self._fail(_word(alone), alone)
            return self._fail("ports", alone, compiles=1.0)
        design = design_in(built.stdout, f"dut_{nonce}")
        if design is None or set(design.ports) != set(reference.bench.design.ports):
            return self._fail("ports", built, compiles=1.0)
        ran = _run_whole(Icarus.find().simulate(sandbox, built.stdout, reference.rows, self.limits))
        agree = reference.agreement(outputs_in(ran.stdout, nonce))
        word = "passed" if agree == 1.0 else "wrong"
        if not ran.ok:
            word = "error" if ran.status is Status.ERROR else _word(ran)
            return self._fail(word, ran, compiles=1.0, ports=1.0, fraction=min(agree, reference.less))
        components = {"correct": float(agree == 1.0), "fraction": agree, "compiles": 1.0, "ports": 1.0}
        return verdict_score(word, components, isolation=ran.isolation)

    def _fail(self, word: str, result: Result, **components: float) -> Score:
        why = " ".join((result.stderr or result.stdout).split())[:_WHY]
        scores = dict.fromkeys(self.names, 0.0) | components
        return verdict_score(word, scores, isolation=result.isolation, **({"why": why} if why else {}))

    def _reference(self, gold: Gold, sandbox: Sandbox) -> _Reference:
        source = gold.private.get("answer")
        if not isinstance(source, str):
            source = gold.text("golden")
        top = gold.find("top") or ""
        if not isinstance(top, str):
            raise DataError(f"private['top'] is {short(top)}; name the outermost module")
        return _reference_of(
            source, top, _list_ports(gold, "clocks"), _levels(gold), self.cycles, self.seed, self.limits, _Where(sandbox)
        )


@dataclass(frozen=True, slots=True)
class _Reference:
    """What the golden design does, and how to make another do the same."""

    bench: Testbench
    rows: str
    expected: tuple[str, ...]
    cycles: tuple[int, ...]

    @property
    def less(self) -> float:
        """The most that a simulation which did not end agrees."""
        return 1.0 - 1.0 / len(set(self.cycles))

    def agreement(self, given: list[str]) -> float:
        """The share of cycles in which every known bit is the same; what is missing is not."""
        bad = {
            cycle
            for i, (cycle, wanted) in enumerate(zip(self.cycles, self.expected, strict=True))
            if i >= len(given) or not _agrees(wanted, given[i])
        }
        return 1.0 - len(bad) / len(set(self.cycles))


def _agrees(wanted: str, given: str) -> bool:
    if wanted == given:
        return True
    return len(wanted) == len(given) and all(w in ("x", g) for w, g in zip(wanted, given, strict=True))


class _Lost(Exception):
    """The sandbox failed: no verdict."""

    def __init__(self, result: Result) -> None:
        self.result = result


class _Where:
    """A sandbox that makes no difference between two references."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Where)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=64)
def _reference_of(
    source: str,
    top: str,
    clocks: tuple[str, ...] | None,
    resets: FrozenMap | None,
    cycles: int,
    seed: int,
    limits: Limits,
    where: _Where,
) -> _Reference:
    sandbox, tool = where.sandbox, Icarus.find()
    if has_directives(source):
        read = _run_whole(tool.preprocess(sandbox, source, limits))
        if not read.ok:
            raise DataError(f"the golden design cannot be preprocessed: {_stderr_text(read)}")
        source = read.stdout
    top = top_of(source, top)
    built = _build(sandbox, source, top, limits)
    if not built.ok:
        raise DataError(f"the golden design does not compile: {_stderr_text(built)}")
    design = design_in(built.stdout, top)
    if design is None or not design.outputs:
        raise DataError(f"the golden design's module {top!r} has no output port, so there is nothing to compare")
    both = [p.name for p in design.ports if p.direction == "inout"]
    if both:
        raise DataError(f"the golden design has inout ports {both}, which cannot be driven and read; give inputs and outputs")
    roles = _given_roles(roles_of(design, source), design, clocks, resets)
    rng = Random(hashlib.sha256(f"{seed}\0{source}".encode("utf-8", "surrogatepass")).digest())
    played = stimulus(design, roles, cycles, rng)
    return _record_reference(Testbench(design, top, len(played.rows)), played, source, tool, sandbox, limits)


def _record_reference(
    bench: Testbench, played: Stimulus, source: str, tool: Icarus, sandbox: Sandbox, limits: Limits
) -> _Reference:
    """The golden outputs."""
    nonce, rows = secrets.token_hex(8), "\n".join(played.rows)
    built = _build(sandbox, bench.text(nonce) + source, f"bench_{nonce}", limits)
    ran = _run_whole(tool.simulate(sandbox, built.stdout, rows, limits)) if built.ok else built
    outputs = outputs_in(ran.stdout, nonce)
    if not ran.ok or len(outputs) != len(played.cycles):
        raise DataError(
            f"the golden design does not run to its end ({ran.status}; {len(outputs)} of {len(played.cycles)} readings): "
            f"{_stderr_text(ran)}"
        )
    undriven = [set(bits) <= {"z", "x"} for bits in zip(*outputs, strict=True)]
    expected = tuple("".join("x" if u else bit for u, bit in zip(undriven, row, strict=True)) for row in outputs)
    if all(undriven):
        raise DataError(
            "the golden design's outputs are never known, so nothing could be compared; give it a reset or first values, "
            "or name 'clocks' and 'resets' if they were not found"
        )
    return _Reference(bench, rows, expected, played.cycles)


def _build(sandbox: Sandbox, source: str, root: str, limits: Limits) -> Result:
    """Compiles, as the newer language and else as the older one."""
    result = _run_whole(Icarus.find().compile(sandbox, source, root, GENERATIONS[0], limits))
    for generation in GENERATIONS[1:]:
        if result.status is Status.ERROR:
            other = _run_whole(Icarus.find().compile(sandbox, source, root, generation, limits))
            result = other if other.ok else result
    return result


def _run_whole(result: Result) -> Result:
    if not result.judged:
        raise _Lost(result)
    return result


def _word(result: Result) -> str:
    return _WORDS.get(result.status, str(result.status))


def _stderr_text(result: Result) -> str:
    return " ".join(result.stderr.split())[:_WHY] or str(result.status)


def _given_roles(found: Roles, design: Design, clocks: tuple[str, ...] | None, resets: Mapping[str, int] | None) -> Roles:
    """Roles, where the task does not say them."""
    inputs = {p.name for p in design.inputs if p.width == 1}
    for name in (*(clocks or ()), *(resets or ())):
        if name not in inputs:
            raise DataError(f"private names {name!r} as a clock or reset; the inputs of one bit are {sorted(inputs)}")
    kept = tuple(c for c in found.clocks if c not in (resets or {})) if clocks is None else clocks
    levels = found.resets if resets is None else resets
    return Roles(kept, FrozenMap({n: level for n, level in levels.items() if n not in kept}), found.asynchronous)


def _list_ports(gold: Gold, name: str) -> tuple[str, ...] | None:
    found = gold.find(name)
    if found is None:
        return None
    if not isinstance(found, list) or not all(isinstance(n, str) for n in cast("list[Any]", found)):
        raise DataError(f"private[{name!r}] is {short(found)}; give a list of names")
    return tuple(cast("list[str]", found))


def _levels(gold: Gold) -> FrozenMap | None:
    found = gold.find("resets")
    if found is None:
        return None
    if not isinstance(found, dict) or not all(level in (0, 1) for level in cast("dict[str, Any]", found).values()):
        raise DataError(f"private['resets'] is {short(found)}; give a table of names, each with the level 0 or 1")
    return FrozenMap({name: int(level) for name, level in cast("dict[str, int]", found).items()})
