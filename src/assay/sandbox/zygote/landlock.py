"""Landlock: which files a process and all it starts may reach, by rules that no later call can widen."""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterable

from .system import prctl, syscall

__all__ = ["READ", "WRITE", "abi", "restrict", "ruleset"]

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_MAKE_CHAR, _MAKE_SOCK, _MAKE_BLOCK = 1 << 6, 1 << 9, 1 << 11
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_ALL_OF_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
_NEVER = _MAKE_CHAR | _MAKE_SOCK | _MAKE_BLOCK
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_NET = 3  # bind and connect of TCP
_SCOPES = 3  # abstract sockets, signals
_PR_SET_NO_NEW_PRIVS = 38

READ = _EXECUTE | _READ_FILE | _READ_DIR
WRITE = (1 << 16) - 1


def abi() -> int:
    """The version that the kernel offers; 0 where there is none."""
    try:
        return syscall(_CREATE, 0, 0, 1)
    except OSError:
        return 0


def ruleset(rules: Iterable[tuple[str, int]]) -> int:
    """A descriptor of a ruleset that allows what the rules say, and no other file, TCP port, abstract socket or foreign process.

    Args:
        rules: a path and `READ` or `WRITE`; a path that does not exist is left out.
    """
    version = abi()
    handled = _ALL_OF_ABI[min(version, 5)]
    words = [handled, _NET if version >= 4 else 0, _SCOPES if version >= 6 else 0]
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ids = syscall(_CREATE, ctypes.byref((ctypes.c_uint64 * 3)(*words)), size, 0)
    for path, rights in rules:
        try:
            target = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            allowed = rights & handled & ~_NEVER
            if not stat.S_ISDIR(os.fstat(target).st_mode):
                allowed &= _OF_FILES
            rule = allowed.to_bytes(8, "little") + target.to_bytes(4, "little")
            syscall(_ADD, ids, 1, rule, 0)
        finally:
            os.close(target)
    return ids


def restrict(rules: int) -> None:
    """Puts this thread under a ruleset, for good."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    syscall(_RESTRICT, rules, 0)
