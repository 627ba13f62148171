"""What every attack of the table begins with."""

import errno
import json
import os
import signal
import socket
import stat  # noqa: F401
import struct  # noqa: F401
import sys
import threading  # noqa: F401
import time  # noqa: F401

given = json.loads(input())


class Absent:
    """What WebAssembly lacks: whatever it is asked for is refused."""

    def __getattr__(self, name):
        return Absent()

    def __call__(self, *_, **__):
        raise OSError(errno.ENOSYS, "there is no such thing here")

    def __or__(self, other):
        return other

    __ror__ = __or__
    __enter__ = __iter__ = __index__ = __int__ = __mul__ = __rmul__ = __call__


if given["level"] == "wasi":
    ctypes = libc = Absent()
    sys.modules |= {name: Absent() for name in ("fcntl", "resource", "pwd", "grp", "termios", "pty")}
    os.__file__ = os.path.dirname(os.__file__)  # the archive that they lie in: a file that can be opened
    json.__file__ = os.path.dirname(os.__file__) + "/json"
    os.getppid, os.getuid, os.getgid, os.geteuid, os.getegid = (lambda: 1), *[lambda: 0] * 4
    for module in (os, signal, socket):
        module.__getattr__ = lambda name: Absent()
else:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)

NUMBERS = """
    ptrace 101 process_vm_readv 310 process_vm_writev 311 bpf 321 io_uring_setup 425 userfaultfd 323 keyctl 250
    add_key 248 perf_event_open 298 memfd_create 319 clone 56 clone3 435 unshare 272 setns 308 mount 165 pivot_root 155
    kexec_load 246 init_module 175 open_by_handle_at 304 name_to_handle_at 303 pidfd_open 434 pidfd_getfd 438 kcmp 312
    pidfd_send_signal 424 tgkill 234 tkill 200 rt_sigqueueinfo 129 prctl 157 personality 135 shmget 29 msgget 68
    mq_open 240 fsopen 430 open_tree 428 mount_setattr 442 memfd_secret 447 seccomp 317 socket 41 chroot 161 mknod 133
    syslog 103 sethostname 170 settimeofday 164 openat2 437 execveat 322 truncate 76 fanotify_init 300 inotify_init1 294
    process_madvise 440 landlock_create_ruleset 444 quotactl 179 swapon 167 acct 163 reboot 169 modify_ldt 154 iopl 172
"""
WORDS = NUMBERS.split() if given["level"] != "wasi" and os.uname().machine == "x86_64" else []
NR = dict(zip(WORDS[::2], map(int, WORDS[1::2]), strict=True))


def through(what=""):
    print("THROUGH", what, flush=True)


def attempt(attack, what=""):
    """Through when the attack raises nothing and gives something true."""
    try:
        found = attack()
    except BaseException as error:
        print("held:", what, type(error).__name__, error, flush=True)
        return
    if found:
        through(f"{what} {found!r:.200}")
    else:
        print("held:", what, flush=True)


def call(name, *arguments):
    """A system call that must not succeed: through when it does."""
    if name in NR:
        ctypes.set_errno(0)
        found = libc.syscall(NR[name], *arguments)
        if found >= 0:
            through(f"{name} gave {found}")
        else:
            print("held:", name, errno.errorcode.get(ctypes.get_errno()), flush=True)


def contents(path):
    with open(path, "rb") as file:
        return file.read(4096)
