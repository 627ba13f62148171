"""System calls that Python has no function for."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress

__all__ = [
    "CLONE_NEWIPC",
    "CLONE_NEWNET",
    "CLONE_NEWNS",
    "CLONE_NEWPID",
    "CLONE_NEWUSER",
    "CLONE_NEWUTS",
    "HOST",
    "MACHINE",
    "clone",
    "drop_bounding",
    "drop_capabilities",
    "mount",
    "name_host",
    "pivot_root",
    "prctl",
    "syscall",
    "umount",
    "unshare",
]

MACHINE = os.uname().machine
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER = 0x20000, 0x4000000, 0x8000000, 0x10000000
CLONE_NEWPID, CLONE_NEWNET = 0x20000000, 0x40000000
HOST = "box"
"""What programs find as the name of their host."""
_SIGCHLD = 17
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_CLONE = {"x86_64": 56, "aarch64": 220}
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION_3 = 0x20080522
_PR_CAPBSET_DROP, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 24, 47, 4

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_libc.mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)
_libc.umount2.argtypes = (ctypes.c_char_p, ctypes.c_int)
_libc.prctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong)


def _check_result(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def syscall(number: int, *args: object) -> int:
    """A system call by number; integers, bytes and ctypes pointers as arguments."""
    given = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    return _check_result(int(_libc.syscall(ctypes.c_long(number), *given)), f"syscall {number}")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Mounts, as the system call does."""
    result = _libc.mount(source.encode(), target.encode(), kind.encode() or None, flags, data.encode() or None)
    _check_result(result, f"mount {kind or source} at {target}")


def umount(target: str) -> None:
    """Detaches what is mounted at ``target``."""
    _check_result(_libc.umount2(target.encode(), 2), f"umount {target}")


def unshare(flags: int) -> None:
    """Leaves shared namespaces for new ones."""
    _check_result(_libc.unshare(ctypes.c_int(flags)), f"unshare {flags:#x}")


def name_host() -> None:
    """Gives the host its neutral names, in a namespace of names that is this process's own."""
    for call, name in ((_libc.sethostname, HOST), (_libc.setdomainname, "(none)")):
        _check_result(call(name.encode(), len(name)), f"name the host {name}")


def pivot_root(new: str, old: str) -> None:
    """Another root; the old one lies in ``old``."""
    syscall(_PIVOT_ROOT[MACHINE], new.encode(), old.encode())


def prctl(option: int, value: int = 0, third: int = 0) -> int:
    """An operation on this process, by number."""
    return _check_result(_libc.prctl(option, value, third, 0, 0), f"prctl {option}")


def clone(flags: int) -> int:
    """Like `os.fork`, with namespaces of its own for the child. Only for a process with one thread."""
    return syscall(_CLONE[MACHINE], flags | _SIGCHLD, 0, 0, 0, 0)


def drop_bounding() -> None:
    """Whatever this process or its children execute, it gains no capability by that; those that it has stay."""
    for number in range(64):
        try:
            prctl(_PR_CAPBSET_DROP, number)
        except OSError:  # beyond the last, or not ours to drop: then the empty sets below decide
            break


def drop_capabilities() -> None:
    """Gives up every capability."""
    with suppress(OSError):
        prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    syscall(_CAPSET[MACHINE], ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))
