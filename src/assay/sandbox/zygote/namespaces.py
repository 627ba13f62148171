"""Namespaces: a file tree, process ids, a network and ids of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from .places import DEVICES, package_folders
from .system import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    mount,
    name_host,
    pivot_root,
    prctl,
    umount,
    unshare,
)

__all__ = ["BOX", "become", "enter", "furnish"]

BOX = "/box"
_INSIDE = 1000
_NOSUID, _NODEV, _NOEXEC, _RDONLY = 2, 4, 8, 1
_REMOUNT, _BIND, _REC, _PRIVATE = 32, 4096, 16384, 1 << 18
_PR_SET_DUMPABLE = 4
_OLD = "/.old"


def enter(switch: int | None, reads: Sequence[str]) -> None:
    """Leaves the host: afterwards this process sees a private root and an empty network, and has no rights outside.

    Args:
        switch: the user id to become first, for a process that is root and may; None to stay who we are.
        reads: real host paths to see read-only.
    """
    outer, group = os.getuid(), os.getgid()
    if switch is None:
        unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)
        _map(outer, group)
        name_host()
        _private_root(reads)
        return
    unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)
    name_host()
    _private_root(reads)
    become(switch)
    prctl(_PR_SET_DUMPABLE, 1)  # changing user took it away, and with it the right to write our own maps
    unshare(CLONE_NEWUSER | CLONE_NEWNS)
    _map(switch, switch)


def become(user: int) -> None:
    """Another user and group, for good."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def _map(user: int, group: int) -> None:
    for name, text in (("setgroups", "deny"), ("uid_map", f"{_INSIDE} {user} 1"), ("gid_map", f"{_INSIDE} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _private_root(reads: Sequence[str]) -> None:
    mount("none", "/", flags=_REC | _PRIVATE)
    place = "/tmp" if os.path.isdir("/tmp") else "/mnt"
    mount("tmpfs", place, "tmpfs", _NOSUID | _NODEV, "mode=755,size=1m")
    os.mkdir(f"{place}{_OLD}")
    pivot_root(place, f"{place}{_OLD}")
    os.chdir("/")
    for path in reads:
        _show(path)
    for path in hidden_in(reads):
        mount("tmpfs", path, "tmpfs", _NOSUID | _NODEV | _RDONLY, "mode=755,size=4k")
    for path in DEVICES:
        _show(path)
    for name in ("bin", "lib", "lib64", "sbin", "usr/lib64"):
        _link(name)
    _furnish()
    os.mkdir("/proc", 0o755)
    mount(f"{_OLD}/proc", "/proc", flags=_BIND | _REC)  # never seen by a program: a new one may only be mounted where one is
    umount(_OLD)
    os.rmdir(_OLD)
    mount("none", "/", flags=_REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV)


def hidden_in(reads: Sequence[str]) -> list[str]:
    """Those of the hidden folders that would be seen."""
    return [h for h in hidden_before if any((h + "/").startswith(r.rstrip("/") + "/") for r in reads)]


hidden_before = package_folders()  # looked up while the host is in sight


def _show(path: str) -> None:
    source, parent = _OLD + path, os.path.dirname(path)
    os.makedirs(parent, 0o755, exist_ok=True)
    if os.path.isdir(source):
        os.makedirs(path, 0o755, exist_ok=True)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
    mount(source, path, flags=_BIND)
    kept = os.statvfs(path).f_flag & (_NOSUID | _NODEV | _NOEXEC | 1024 | 2048 | 4096)  # locked flags may only be added to
    nodev = 0 if path in DEVICES else _NODEV
    atime = (kept & 1024) | (kept & 2048) | ((1 << 21) if kept & 4096 else 0)
    mount("none", path, flags=_REMOUNT | _BIND | _RDONLY | _NOSUID | nodev | (kept & 15) | atime)


def _link(name: str) -> None:
    """A folder that is a link on the host is one here."""
    source = f"{_OLD}/{name}"
    if os.path.islink(source) and not os.path.lexists(f"/{name}"):
        os.makedirs(os.path.dirname(f"/{name}"), 0o755, exist_ok=True)
        os.symlink(os.readlink(source), f"/{name}")


def _furnish() -> None:
    os.makedirs("/etc", 0o755, exist_ok=True)
    os.mkdir(BOX, 0o755)
    for link, target in (("/tmp", BOX), ("/dev/shm", BOX), ("/dev/fd", "/proc/self/fd")):
        if not os.path.lexists(link):
            os.symlink(target, link)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"/dev/{name}")
    for name, text in (("passwd", f"box:x:{_INSIDE}:{_INSIDE}::{BOX}:/bin/sh\n"), ("group", f"box:x:{_INSIDE}:\n")):
        if not os.path.lexists(f"/etc/{name}"):  # else a path to read was the host's own
            with open(f"/etc/{name}", "w") as file:
                file.write(text)


def furnish(size: int, entries: int) -> bool:
    """Called by the first process of a run: an empty folder of limited size, and a /proc that shows its own processes only.

    Both are mounts of the run's own, and end with it.

    Returns:
        Whether there is a /proc; a host that hides parts of its own allows none, and then the folder is empty.
    """
    mount("tmpfs", BOX, "tmpfs", _NOSUID | _NODEV, f"mode=700,uid={_INSIDE},gid={_INSIDE},size={size},nr_inodes={entries}")
    for data in ("subset=pid", ""):
        with suppress(OSError):
            mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC, data)
            if os.readlink("/proc/self") != str(os.getpid()):
                raise RuntimeError("the /proc that a program would see is not its own")
            return True
    mount("tmpfs", "/proc", "tmpfs", _NOSUID | _NODEV | _RDONLY, "mode=555,size=4k")
    return False
