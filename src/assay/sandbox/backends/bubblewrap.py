"""bubblewrap: containers from user namespaces, without a daemon."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from assay.sandbox.backends.container import CODE, FOLDER, INSIDE, ContainerBackend, ContainerSettings, visible_paths
from assay.sandbox.limits import Limits
from assay.sandbox.zygote.places import DEVICES

__all__ = ["Bubblewrap"]

_USER = "1000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bubblewrap(ContainerBackend):
    """Programs in containers of ``bwrap`` (package bubblewrap), 0.8 or newer.

    A private read-only root, namespaces of every kind, no capabilities; with our limits, Landlock and filter of system calls
    inside. bwrap is started with an empty environment: it would show its own in ``/proc/1/environ``.

    >>> Bubblewrap(reads=("/usr/share",)).name
    'bubblewrap'
    """

    @property
    def name(self) -> str:
        """``bubblewrap``."""
        return "bubblewrap"

    @property
    def tool(self) -> str:
        """``bwrap``."""
        return "bwrap"

    @property
    def layers(self) -> Mapping[str, str]:
        """What bwrap grants."""
        return {
            "namespaces": "user+net+pid+mount+ipc+uts, by bwrap",
            "files": "private root, read-only",
            "proc": "own processes only",
            "user": f"{os.getuid()} as {_USER}, no capabilities",
        }

    @property
    def several(self) -> bool:
        """The kernel counts no processes of root, and inside we are whoever we are outside."""
        return os.getuid() != 0

    @contextmanager
    def cage(self, limits: Limits) -> Generator[ContainerSettings]:
        """Arguments alone: it dies with bwrap, which dies with us."""
        shown = visible_paths(self.python, self.reads)
        argv = ["bwrap", "--unshare-all", "--unshare-user", "--die-with-parent", "--as-pid-1", "--new-session"]
        argv += ["--uid", _USER, "--gid", _USER, "--hostname", "box", "--cap-drop", "ALL"]
        for path in shown.reads:
            argv += ["--ro-bind", path, path]
        for path in shown.hidden:
            argv += ["--tmpfs", path, "--remount-ro", path]
        for path, target in shown.links.items():
            argv += ["--symlink", target, path]
        for path in DEVICES:
            argv += ["--dev-bind", path, path]
        argv += ["--ro-bind", str(CODE), INSIDE, "--proc", "/proc", *_masks()]
        if not any(path.startswith("/tmp/") for path in shown.reads):  # else it is a folder that holds them
            argv += ["--symlink", FOLDER, "/tmp"]
        argv += ["--perms", "0700", "--size", str(limits.disk), "--tmpfs", FOLDER, "--remount-ro", "/", "--chdir", FOLDER]
        argv += ["--", shown.python, "-I", "-S", f"{INSIDE}/box.py"]
        yield ContainerSettings(tuple(argv), counted=2 if self.several else None)


def _masks() -> list[str]:
    """Hides what /proc says of the machine: bwrap shows it beside the container's own processes."""
    out: list[str] = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() or entry.is_symlink():
            continue
        out += ["--tmpfs", entry.path, "--remount-ro", entry.path] if entry.is_dir() else ["--ro-bind", "/dev/null", entry.path]
    return out
