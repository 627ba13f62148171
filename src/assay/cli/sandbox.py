"""``assay sandbox``: run a program contained, and see what holds it here."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from assay.cli.options import parse
from assay.cli.output import choose, grid, show
from assay.core.errors import DataError

if TYPE_CHECKING:
    from assay.sandbox.attack_probe import IsolationProbe
    from assay.sandbox.toolchain import Language

__all__ = ["sandbox_command"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Runs a program in the sandbox, and prints one line of JSON: status, exit_code, stdout, stderr, seconds, isolation.

    A program that does not compile has the status compile; the other fields are then those of the compiler.

    Attributes:
        file: the program's source.
        lang: its language, as `assay sandbox languages` lists them, or the path of a TOML file of your own.
        backend: auto, or a level: strong, landlock, rlimits (which contains nothing); or wasi, bubblewrap, runsc, or a service's
            URL.
        stdin: what it reads from its standard input; - passes on our own.
        limits: of the run: wall, cpu (seconds), memory, output (bytes), processes, as in wall=2,processes=4.
        allow_unsafe: accept the level rlimits.
    """

    file: Path = field(metadata={"positional": True, "arg": {"metavar": "FILE"}})
    lang: str = field(default="python", metadata={"arg": {"metavar": "LANGUAGE"}})
    backend: str = field(default="auto", metadata={"arg": {"metavar": "BACKEND"}})
    stdin: str = field(default="", metadata={"arg": {"metavar": "TEXT"}})
    limits: str = field(default="", metadata={"arg": {"metavar": "KEY=VALUE,..."}})
    allow_unsafe: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguagesOptions:
    """Lists the languages of programs, and the toolchains that are missing here.

    Attributes:
        json: print JSON.
    """

    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOptions:
    """Attacks each level of the sandbox and reports what the machine grants and which levels hold; exit code 1 if none does.

    WebAssembly is attacked if no level holds, since auto selects it then, or if it is named.

    Attributes:
        backend: attack this one alone: strong, landlock, wasi, bubblewrap, runsc, or a service's URL.
        json: print JSON.
    """

    backend: str = field(default="auto", metadata={"arg": {"metavar": "BACKEND"}})
    json: bool = False


def sandbox_command(args: list[str]) -> int:
    """``assay sandbox run FILE``, ``assay sandbox languages`` and ``assay sandbox probe``."""
    known = {
        "run": (_run, "run a program in the sandbox; prints one line of JSON"),
        "languages": (_languages, "languages that programs may be written in, and what is missing here"),
        "probe": (_probe, "what is granted on this machine, and what holds"),
    }
    return choose("sandbox", args, known)


def _run(args: list[str]) -> int:
    from assay.sandbox import Limits, Sandbox, language

    own = parse(RunOptions, args, "assay sandbox run")
    spoken = language(own.lang)
    limits = Limits.parse(own.limits)
    try:
        code = own.file.read_text(encoding="utf-8-sig")  # Python, too, passes over a byte order mark
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {own.file}: {error}") from None
    stdin = sys.stdin.buffer.read() if own.stdin == "-" else own.stdin
    with Sandbox(own.backend, workers=1, languages=(spoken,), allow_unsafe=own.allow_unsafe) as sandbox:
        built = sandbox.compile(spoken, code)
        result = built.refused or sandbox.run(built.program(stdin), limits)
    said = {
        "status": result.status.value,
        "exit_code": result.exit_code,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "seconds": result.seconds,
        "isolation": result.isolation,
    }
    print(json.dumps(said))
    if not result.judged:
        print(f"assay: the sandbox failed, which says nothing about the program: {result.detail}", file=sys.stderr)
    return 0 if result.judged else 1


def _languages(args: list[str]) -> int:
    from assay.sandbox import languages

    own = parse(LanguagesOptions, args, "assay sandbox languages")
    known = languages()
    rows = [
        {
            "name": one.name,
            "names": list(one.names),
            "toolchain": one.find_programs(),
            "missing": list(one.missing()),
            "note": one.note,
        }
        for one in known
    ]
    show(own.json, rows, lambda: grid(("language", "names", "toolchain", "note"), [_language(one) for one in known]))
    return 0


def _language(one: Language) -> list[str]:
    here = ", ".join(filter(None, one.find_programs().values())) or "the sandbox's own"
    missing = one.missing()
    toolchain = f"missing: apt-get install {' '.join(missing)}" if missing else here
    return [one.name, ", ".join(one.names), toolchain, one.note or "–"]


def _probe(args: list[str]) -> int:
    from assay.sandbox.attack_probe import probe
    from assay.sandbox.levels import LEVELS, OTHERS, WASI, backend_named

    own = parse(ProbeOptions, args, "assay sandbox probe")
    alone = own.backend != "auto"
    found = [probe(backend_named(name)) for name in ((own.backend,) if alone else LEVELS)]
    if not any(p.held for p in found) and not alone:
        found.append(probe(backend_named(WASI)))
    others = [] if alone else [probe(backend_named(name)) for name in OTHERS]
    best = next((p for p in found if p.held), None)
    value = {
        "isolation": best.name if best else None,
        "levels": [p.manifest() for p in found],
        "others": [p.manifest() for p in others],
    }
    show(own.json, value, lambda: _table([*found, *others], best))
    return 0 if best else 1


def _table(found: list[IsolationProbe], best: IsolationProbe | None) -> None:
    tried = [p for p in found if p.layers]
    layers = list(dict.fromkeys(name for p in found for name in p.layers))
    if layers:
        grid(("layer", *(p.name for p in tried)), [[name, *(p.layers.get(name, "–") for p in tried)] for name in layers])
    attacks = list(dict.fromkeys(name for p in found for name in p.attacks))
    if attacks:
        fought = [p for p in found if p.attacks]
        grid(("attack", *(p.name for p in fought)), [[name, *(_describe_hold(p, name) for p in fought)] for name in attacks])
    for p in found:
        if not p.held:
            print(f"{p.name}: {p.why}")
    print(best.line if best else "isolation: none; programs are refused")


def _describe_hold(found: IsolationProbe, attack: str) -> str:
    return {True: "held", False: "THROUGH", None: "–"}[found.attacks.get(attack)]
