"""Seccomp: a filter of system calls, made for the machine it runs on.

An old call is allowed unless it is denied here. A newer one (number 424 and up, the same on all machines) is refused unless it is
listed, so a new kernel offers nothing new. See docs/adr/0020-sandbox-zygote-and-isolation-layers.md.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Callable, Mapping, Sequence

from .system import MACHINE, prctl
from .tables import CALLS, NEWER

__all__ = ["ARCHITECTURES", "install", "program"]

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_COLUMN = {"x86_64": 0, "aarch64": 1}

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN, _JUMP = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06, 0x05
_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_NR, _ARCH, _ARGS = 0, 4, 16
_FIRST_NEW = 424
_X32 = 0x40000000

_NEW_NAMESPACES = 0x7E020000
_CLONE_THREAD = 0x00010000
_AF_UNIX, _SOCK_STREAM, _SOCK_KIND = 1, 1, 0xF

Line = tuple[int, int, int, int]
Code = list[Line]
_SELF = 0x5E1F5E1F  # stands for a process id that is not known yet

DENIED = (
    # other processes' memory and secrets, and the kernel's large or young surfaces
    "ptrace process_vm_readv process_vm_writev kcmp bpf perf_event_open userfaultfd lookup_dcookie keyctl add_key request_key",
    "io_setup io_submit io_destroy io_cancel io_getevents io_pgetevents remap_file_pages vmsplice modify_ldt",
    # the file tree, and doors into another
    "mount umount2 pivot_root chroot unshare setns swapon swapoff quotactl name_to_handle_at open_by_handle_at",
    "fanotify_init fanotify_mark inotify_init inotify_init1 inotify_add_watch",
    # the machine
    "sync syncfs",
    "acct reboot sethostname setdomainname syslog vhangup nfsservctl uselib ustat sysfs _sysctl iopl ioperm settimeofday",
    "clock_settime adjtimex clock_adjtime init_module finit_module delete_module create_module query_module get_kernel_syms",
    "kexec_load kexec_file_load",
    # memory that no limit counts, and channels between processes that share nothing else
    "memfd_create shmget shmat shmctl semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink mq_timedsend",
    "mq_timedreceive mq_notify mq_getsetattr socket connect bind listen accept accept4 setsockopt",
    # other processes' time, and who we are
    "setpriority ioprio_set sched_setscheduler sched_setparam sched_setattr migrate_pages move_pages",
    "setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups capset",
)
"""Refused with EPERM at every level."""

_IOCTLS = (0x5401, 0x540F, 0x5411, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""TCGETS, TIOCGPGRP, TIOCOUTQ, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX: what programs ask of pipes and terminals. File
systems have others that change a file opened for reading."""

_OWNERS_AND_LEASES = (8, 10, 15, 1024, 1026)
"""F_SETOWN, F_SETSIG, F_SETOWN_EX: kill by proxy; F_SETLEASE; F_NOTIFY: watching."""

_SETLK, _SETLKW, _OFD_SETLK, _OFD_SETLKW = 6, 7, 37, 38

OF_HOST_FILES = (
    # Landlock does not see these: they would change host files that the same user owns and the program may read
    "chmod fchmod fchmodat chown lchown fchown fchownat utime utimes futimesat utimensat setxattr lsetxattr fsetxattr",
    "removexattr lremovexattr fremovexattr truncate",
    "tkill rt_sigqueueinfo rt_tgsigqueueinfo",
)
"""Refused besides where host files are in sight and the host's processes have visible ids."""


def _refuse(code: int = errno.EPERM) -> Line:
    return (_RETURN, 0, 0, _ERRNO | code)


_PASS = (_RETURN, 0, 0, _ALLOW)


def _only(argument: int, values: Sequence[int], code: int = errno.EPERM) -> Code:
    """Allowed when the low word of an argument is one of the values."""
    tests: Code = [(_EQUAL, len(values) - i, 0, value) for i, value in enumerate(values)]
    return [(_LOAD, 0, 0, _ARGS + 8 * argument), *tests, _refuse(code), _PASS]


def _never(argument: int, values: Sequence[int]) -> Code:
    tests: Code = [(_EQUAL, len(values) - i, 0, value) for i, value in enumerate(values)]
    return [(_LOAD, 0, 0, _ARGS + 8 * argument), *tests, _PASS, _refuse()]


def _fcntl(forks: bool) -> Code:
    """No lock is taken: one on a library's file or a device would be seen by the host and by other runs, and no filter can tell
    which file a descriptor is. Where a program is one process, its locks are answered as taken: in its own folder nobody else
    could hold one. With several processes they are refused, so that none believes itself alone with a database. Locks of open
    files (OFD) are as on a kernel without them.
    """
    own = _refuse(errno.ENOLCK) if forks else _refuse(0)
    return [
        (_LOAD, 0, 0, _ARGS + 8),
        *(line for command in _OWNERS_AND_LEASES for line in ((_EQUAL, 0, 1, command), _refuse())),
        *(line for command in (_OFD_SETLK, _OFD_SETLKW) for line in ((_EQUAL, 0, 1, command), _refuse(errno.EINVAL))),
        *(line for command in (_SETLK, _SETLKW) for line in ((_EQUAL, 0, 1, command), own)),
        _PASS,
    ]


def _bodies(forks: bool, private: bool) -> dict[str, Code]:
    """What decides about each call; every path through a body returns."""
    out: dict[str, Code] = {name: [_refuse()] for line in DENIED for name in line.split()}
    thread: Code = [] if forks else [(_ANY_BIT, 1, 0, _CLONE_THREAD), _refuse(errno.EAGAIN)]
    out["clone"] = [(_LOAD, 0, 0, _ARGS), (_ANY_BIT, 0, 1, _NEW_NAMESPACES), _refuse(), *thread, _PASS]
    if not forks:
        out["fork"] = out["vfork"] = [_refuse(errno.EAGAIN)]
    kind: Code = [(_LOAD, 0, 0, _ARGS + 8), (_AND, 0, 0, _SOCK_KIND), (_EQUAL, 1, 0, _SOCK_STREAM), _refuse(), _PASS]
    out["socketpair"] = [(_LOAD, 0, 0, _ARGS), (_EQUAL, 1, 0, _AF_UNIX), _refuse(), *kind]
    pipes: Code = [(_AND, 0, 0, 0xF000), (_EQUAL, 1, 0, 0x1000), _refuse(), _PASS]  # of all that is no file only named pipes
    out["mknod"], out["mknodat"] = [(_LOAD, 0, 0, _ARGS + 8), *pipes], [(_LOAD, 0, 0, _ARGS + 16), *pipes]
    out["prlimit64"] = out["sched_setaffinity"] = _only(0, (0, _SELF))
    out["prctl"] = _never(0, (1,))  # PR_SET_PDEATHSIG: it dies with its parent
    out["personality"] = _only(0, (0, 0xFFFFFFFF))
    out["ioctl"] = _only(1, _IOCTLS, errno.ENOTTY)
    out["fcntl"] = _fcntl(forks)
    out["flock"] = [_refuse(0)]  # answered as taken: compilers' caches ask for it, and a program is alone in its folder
    if private:  # process 1 is ours: the kernel drops such signals, and Landlock refuses them, but not every host has it
        return out | dict.fromkeys(("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"), _never(0, (1,)))
    out |= {name: [_refuse()] for line in OF_HOST_FILES for name in line.split()}
    # it allocates beyond every limit but the disk's; told that it is not supported, libraries write instead
    out["fallocate"] = [_refuse(errno.EOPNOTSUPP)]
    out["kill"], out["tgkill"] = _only(0, (0, _SELF)), _only(0, (_SELF,))
    # truncation by opening to read: before its third version Landlock allows it
    bare: Code = [(_AND, 0, 0, os.O_ACCMODE | os.O_TRUNC), (_EQUAL, 0, 1, os.O_TRUNC), _refuse(), _PASS]
    out["open"] = [(_LOAD, 0, 0, _ARGS + 8), *bare]
    out["openat"] = [(_LOAD, 0, 0, _ARGS + 16), *bare]
    return out


def _tree(numbers: Sequence[int], bodies: Mapping[int, Code]) -> Code:
    """Finds a call's body by halving: the kernel runs a filter for every call there is when it is installed."""
    if len(numbers) == 1:
        body = bodies[numbers[0]]
        return [(_EQUAL, 0, len(body), numbers[0]), *body, _PASS]
    half = len(numbers) // 2
    low, high = _tree(numbers[:half], bodies), _tree(numbers[half:], bodies)
    return [(_AT_LEAST, 0, 1, numbers[half]), (_JUMP, 0, 0, len(low)), *low, *high]


def program(*, forks: bool, private: bool) -> Callable[[int], bytes]:
    """The filter as the kernel takes it, but for the process that it is for.

    Args:
        forks: whether it may start processes.
        private: whether its files and process ids are its own; otherwise the host's are in sight.

    Returns:
        A function of a process id: the only one whose limits it may set, and that it may signal where not ``private``.
    """
    code: Code = [(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, ARCHITECTURES[MACHINE]), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, _NR)]
    if MACHINE == "x86_64":
        code += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _KILL)]
    newer: Code = [line for number in NEWER for line in ((_EQUAL, 0, 1, number), _PASS)]
    newer.append(_refuse(errno.ENOSYS))  # clone3 too: its flags lie in memory, where no filter can read them
    code += [(_AT_LEAST, 0, len(newer), _FIRST_NEW), *newer]
    column = _COLUMN[MACHINE]
    bodies = {n: body for name, body in _bodies(forks, private).items() if (n := CALLS[name][column]) is not None}
    code += _tree(sorted(bodies), bodies)
    made = b"".join(struct.pack("=HBBI", op, yes, no, value) for op, yes, no, value in code)
    pieces = made.split(struct.pack("=I", _SELF))
    return lambda pid: struct.pack("=I", pid).join(pieces)


def install(filter: bytes) -> None:
    """Puts this thread under the filter, for good; without privileges it needs no_new_privs first, which is set too."""
    prctl(38, 1)
    text = ctypes.create_string_buffer(filter, len(filter))
    header = struct.pack("HxxxxxxP", len(filter) // 8, ctypes.addressof(text))
    buffer = ctypes.create_string_buffer(header, len(header))
    prctl(22, 2, ctypes.addressof(buffer))
