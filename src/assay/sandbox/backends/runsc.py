"""gVisor: containers whose system calls a kernel of their own answers."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.sandbox.backends.container import (
    CODE,
    FOLDER,
    INSIDE,
    ContainerBackend,
    ContainerSettings,
    VisiblePaths,
    visible_paths,
)
from assay.sandbox.limits import Limits

__all__ = ["Runsc"]

_USER = 1000
_CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_SYS_PTRACE", "CAP_DAC_OVERRIDE", "CAP_CHOWN", "CAP_SYS_ADMIN")


@dataclass(frozen=True, slots=True, kw_only=True)
class Runsc(ContainerBackend):
    """Programs in containers of gVisor's ``runsc``: no system call of theirs reaches the host's kernel.

    A private root, no network, and a user of its own for the program. For root: an ordinary user may not make such containers.

    >>> Runsc().name
    'runsc'
    """

    @property
    def name(self) -> str:
        """``runsc``."""
        return "runsc"

    @property
    def tool(self) -> str:
        """``runsc``."""
        return "runsc"

    @property
    def layers(self) -> Mapping[str, str]:
        """What gVisor grants."""
        return {
            "namespaces": "a kernel of its own, by gVisor",
            "files": "private root, read-only",
            "proc": "none: it would show what process 1 holds",
            "user": f"{_USER}, no capabilities",
        }

    @contextmanager
    def cage(self, limits: Limits) -> Generator[ContainerSettings]:
        """A bundle in a folder for temporary files; removed with what runsc knows of it."""
        shown = visible_paths(self.python, self.reads)
        with tempfile.TemporaryDirectory(prefix="assay-runsc-", ignore_cleanup_errors=True) as folder:
            root = Path(folder, "root")
            _root(root, shown)
            name = f"assay-{secrets.token_hex(8)}"
            Path(folder, "config.json").write_text(json.dumps(_bundle(shown, limits)), encoding="utf-8")
            command = [shutil.which("runsc") or "runsc", "--root", f"{folder}/state", "--network=none"]
            command += ["--ignore-cgroups", "--file-access-mounts=exclusive"]  # nothing shown changes meanwhile
            try:
                yield ContainerSettings((*command, "run", "--bundle", folder, name), user=_USER, hide_proc=True)
            finally:
                subprocess.run([*command, "delete", "--force", name], env={}, capture_output=True, check=False)


def _root(root: Path, shown: VisiblePaths) -> None:
    """Places for all that is shown: a root of empty files and folders."""
    for path in (*shown.reads, *shown.hidden, INSIDE, FOLDER, "/proc", "/dev"):
        place = root / path.lstrip("/")
        if os.path.isfile(path):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()
        else:
            place.mkdir(parents=True, exist_ok=True)
    for path, target in {**shown.links, "/tmp": FOLDER}.items():
        place = root / path.lstrip("/")
        if not os.path.lexists(place):
            place.symlink_to(target)


def _bundle(shown: VisiblePaths, limits: Limits) -> dict[str, Any]:
    """What the container is, as the OCI runtime specification says it."""
    binds = {INSIDE: str(CODE)} | {path: path for path in shown.reads}
    mounts: list[dict[str, Any]] = [{"destination": "/proc", "type": "proc", "source": "proc"}]
    mounts += [{"destination": at, "type": "bind", "source": path, "options": ["ro", "rbind"]} for at, path in binds.items()]
    mounts += [{"destination": path, "type": "tmpfs", "source": "tmpfs", "options": ["ro"]} for path in shown.hidden]
    own = ["nosuid", "nodev", "mode=700", f"uid={_USER}", f"gid={_USER}", f"size={limits.disk}"]
    mounts.append({"destination": FOLDER, "type": "tmpfs", "source": "tmpfs", "options": own})
    capabilities = {kind: list(_CAPABILITIES) for kind in ("bounding", "effective", "permitted")}
    namespaces = [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": [shown.python, "-I", "-S", f"{INSIDE}/box.py"],
            "env": [],
            "cwd": FOLDER,
            "capabilities": capabilities,
            "noNewPrivileges": True,
        },
        "root": {"path": "root", "readonly": True},
        "hostname": "box",
        "mounts": mounts,
        "linux": {"namespaces": namespaces},
    }
