"""Icarus Verilog, one process at a time: its driver would start others, which not every level of the sandbox allows."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from assay.core.errors import ConfigError
from assay.sandbox.limits import Limits
from assay.sandbox.result import Result, SandboxProgram
from assay.sandbox.sandbox import Sandbox

__all__ = ["GENERATIONS", "Icarus"]

GENERATIONS = ("2012", "2005")
"""Languages that a source is tried in: SystemVerilog, whose new words are names in the older Verilog."""

_PARTS = ("ivl", "ivlpp", "vvp.conf", "vvp.tgt", "system.vpi", "v2005_math.vpi", "v2009.vpi")
_CONFIG = """basedir:{base}
module:{base}/system.vpi
module:{base}/v2005_math.vpi
module:{base}/v2009.vpi
generation:{generation}
generation:no-specify
generation:no-xtypes
generation:io-range-error
generation:icarus-misc
root:{root}
out:/dev/stdout
iwidth:32
widthcap:65536
functor:cprop
functor:nodangle
flag:DLL=vvp.tgt
flag:VVP_EXECUTABLE=/nowhere
"""


@dataclass(frozen=True, slots=True)
class Icarus:
    """Where the parts of Icarus Verilog are on this machine.

    Attributes:
        base: the folder with its compiler.
        vvp: its simulator.
    """

    base: str
    vvp: str

    @classmethod
    def find(cls) -> Icarus:
        """Looks for it.

        Raises:
            ConfigError: it is not installed.
        """
        vvp = shutil.which("vvp")
        found = _beside_simulator(Path(vvp).resolve()) if vvp else None
        if found:
            return found
        raise ConfigError(
            "the verifier 'verilog' needs Icarus Verilog 11 or newer (ivl and vvp); install the Debian package iverilog "
            "(apt-get install iverilog)"
        )

    @property
    def reads(self) -> tuple[str, ...]:
        """What the sandbox must let be read and run."""
        return (self.base, self.vvp)

    def preprocess(self, sandbox: Sandbox, source: str, limits: Limits) -> Result:
        """The source without its macros, as output."""
        return sandbox.run(SandboxProgram(argv=(f"{self.base}/ivlpp", "source"), files={"source": _bytes(source)}), limits)

    def compile(self, sandbox: Sandbox, source: str, root: str, generation: str, limits: Limits) -> Result:
        """The compiled text of a source, as output.

        Args:
            sandbox: where the compiler runs.
            source: modules, without macros.
            root: the module to begin with.
            generation: one of `GENERATIONS`.
            limits: of the compiler.

        Raises:
            ConfigError: this level of the sandbox gives a program no way to hand out a file.
        """
        config = _CONFIG.format(base=self.base, generation=generation, root=root)
        files = {"config": config.encode(), "source": _bytes(source)}
        result = sandbox.run(SandboxProgram(argv=(f"{self.base}/ivl", "-C", "config", "source"), files=files), limits)
        if "/dev/stdout: " in result.stderr:
            raise ConfigError(
                f"the compiler of Verilog cannot write to its standard output in the sandbox ({sandbox.isolation}): "
                f"{result.stderr.strip()[:200]}. Give the verifier backend='landlock'"
            )
        return result

    def simulate(self, sandbox: Sandbox, code: str, rows: str, limits: Limits) -> Result:
        """What a compiled text prints; it may read ``rows``."""
        files = {"code": _bytes(code), "rows": rows.encode()}
        return sandbox.run(SandboxProgram(argv=(self.vvp, "-n", "code"), files=files), limits)


@lru_cache(maxsize=8)
def _beside_simulator(vvp: Path) -> Icarus | None:
    """The compiler that was installed with a simulator."""
    for pattern in ("lib/ivl", "lib/*/ivl", "lib64/ivl"):
        for base in sorted(vvp.parents[1].glob(pattern)):
            if all((base / part).is_file() for part in _PARTS):
                return Icarus(str(base), str(vvp))
    return None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
