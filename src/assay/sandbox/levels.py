"""The levels of isolation that a zygote can give, and the choice among them."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from assay.core.errors import ConfigError, SandboxError, UnknownNameError
from assay.sandbox.backend import Backend
from assay.sandbox.client import Zygote
from assay.sandbox.probing import Probe, probe

__all__ = ["BANNER", "LEVELS", "ZygoteBackend", "choose"]

LEVELS = ("strong", "landlock")
"""The contained levels, the best first."""

UNSAFE = "rlimits"

BANNER = (
    "assay sandbox: UNSAFE. Programs run with limits on time and memory only: they can read and write your files, use the "
    "network and stop your processes. Every score is tagged."
)


@dataclass(frozen=True, slots=True)
class ZygoteBackend:
    """assay's own zygote at one level.

    Attributes:
        name: ``strong``, ``landlock`` or ``rlimits``.
        reads: host paths that programs may read besides Python's own libraries.

    >>> ZygoteBackend("landlock").reads
    ()
    """

    name: str
    reads: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.name not in (*LEVELS, UNSAFE):
            raise UnknownNameError("sandbox backend", self.name, ("auto", *LEVELS, UNSAFE))
        for path in self.reads:
            if not path.startswith("/") or path.rstrip("/") in ("", "/proc", "/dev", "/sys"):
                raise ConfigError(f"reads: {path!r}: give absolute paths of files and folders, neither the root nor the kernel's")

    def start(self) -> Zygote:
        """A new zygote."""
        return Zygote(self.name, self.reads)


def choose(backend: str | Backend, *, allow_unsafe: bool = False, reads: tuple[str, ...] = ()) -> tuple[Backend, Probe]:
    """The backend to use, and how it withstood the attack probe.

    Args:
        backend: ``auto`` for the best level that proves itself; a level; or a backend.
        allow_unsafe: whether ``rlimits`` may be used, and ``auto`` may come down to it.
        reads: host paths that programs may read besides Python's own libraries.

    Raises:
        SandboxError: nothing that contains programs is granted here, or what was asked for is not; with the probe's text.
        ConfigError: ``rlimits`` without ``allow_unsafe``.
    """
    if not isinstance(backend, str):
        wanted: tuple[Backend, ...] = (backend,)
    elif backend == "auto":
        wanted = tuple(ZygoteBackend(level, reads) for level in (*LEVELS, *((UNSAFE,) if allow_unsafe else ())))
    else:
        wanted = (ZygoteBackend(backend, reads),)
    if any(b.name == UNSAFE for b in wanted) and not allow_unsafe:
        raise ConfigError(
            "the sandbox level 'rlimits' contains nothing; if you accept that, say allow_unsafe=True (--allow-unsafe)"
        )
    failed: list[Probe] = []
    for one in wanted:
        found = probe(one)
        if found.held or one.name == UNSAFE:
            if one.name == UNSAFE:
                print(f"\033[1;31m{BANNER}\033[0m" if sys.stderr.isatty() else BANNER, file=sys.stderr, flush=True)
            return one, found
        failed.append(found)
    raise SandboxError(_refusal(failed))


def _refusal(failed: list[Probe]) -> str:
    said = "\n".join(f"  {p.name}: {p.why}" for p in failed)
    return (
        f"this host contains no program: no level of the sandbox proved itself.\n{said}\n"
        "Allow user namespaces (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns; in a container "
        "a seccomp profile that allows unshare), or use a kernel with Landlock (5.13 or newer, listed in "
        "/sys/kernel/security/lsm). 'assay sandbox probe' shows each layer."
    )
