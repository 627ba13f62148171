"""The contained process: gives up everything it does not need, then runs the program. Nothing here returns."""

from __future__ import annotations

import fcntl
import marshal
import os
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from . import landlock, python, seccomp
from .namespaces import become
from .places import DEVICES
from .system import drop_capabilities, prctl

__all__ = ["JOB_SIGNALS", "Job", "environment", "run", "take_defaults"]

JOB_SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)
"""What batch systems and terminals send to all processes of a job."""

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_THREADS = 64
_STACK = 8 << 20
_CHANNEL, _PAYLOAD, _READY, _RULES, _HIGH = 3, 4, 5, 6, 64  # where descriptors lie; of these only the channel is the program's


class Job(NamedTuple):
    """One run, as the zygote hands it to the process that will be the program.

    Attributes:
        level: ``strong``, ``landlock`` or ``rlimits``.
        limits: those of `assay.sandbox.Limits`, by name.
        fds: descriptors of payload, input, output, errors, and the channel for notes and values.
        ready: where to say that everything is in place, or what went wrong.
        rules: a Landlock ruleset made before, or None to make one here (or none at all under ``rlimits``).
        scratch: the folder to work in.
        user: whom to become, or None.
        parent: the process that must still be our parent.
        counted: processes of our user that count against the limit besides the program's; None where all of the host's count.
        filter: the filter of system calls for a process id, or None.
    """

    level: str
    limits: dict[str, Any]
    fds: list[int]
    ready: int
    rules: int | None
    scratch: str
    user: int | None
    parent: int
    counted: int | None
    filter: Callable[[int], bytes] | None


def environment(scratch: str) -> dict[str, str]:
    """All that a program finds in its environment."""
    path = "/usr/local/bin:/usr/bin:/bin"
    return {"HOME": scratch, "LANG": "C.UTF-8", "PATH": path, "PWD": scratch, "TMPDIR": scratch}


def run(job: Job) -> NoReturn:
    """Becomes the program."""
    try:
        os.setsid()
        take_defaults()
        payload, *streams, channel = job.fds
        wanted = {**dict(enumerate(streams)), _PAYLOAD: payload, _READY: job.ready, _CHANNEL: channel}
        _place(wanted | ({} if job.rules is None else {_RULES: job.rules}))
        header, blobs = _payload()
        os.chdir(job.scratch)
        _write_files(header["files"], blobs, job.user)
        os.close(_PAYLOAD)
        _limit(job)
        _contain(job)
        if header["argv"]:
            _execute(header["argv"])
    except BaseException as error:
        _refuse(error)
    os.write(_READY, b"R")
    os.close(_READY)
    python.run(header, blobs, _CHANNEL)


def take_defaults() -> None:
    """The signals that the zygote passes over do in a program what they do in any other."""
    for number in JOB_SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def _refuse(error: BaseException) -> NoReturn:
    try:
        os.write(_READY, b"E" + f"{type(error).__name__}: {error}".encode()[:2000])
    finally:
        os._exit(70)


def _place(wanted: dict[int, int]) -> None:
    """Moves descriptors to where they belong and closes all others."""
    high = {target: fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, _HIGH) for target, source in wanted.items()}
    for target, source in high.items():
        os.dup2(source, target, inheritable=target <= 2)
    wide = max(wanted) + 1
    for number in range(wide):
        if number not in wanted:
            with suppress(OSError):
                os.close(number)
    os.closerange(wide, 1 << 20)


def _payload() -> tuple[dict[str, Any], list[bytes]]:
    """The header and the blobs that follow it, from the descriptor that only this process reads."""
    size = os.fstat(_PAYLOAD).st_size
    data = os.pread(_PAYLOAD, size, 0)
    end = 8 + int.from_bytes(data[:8], "little")
    header: dict[str, Any] = marshal.loads(data[8:end])
    blobs: list[bytes] = []
    for length in header["sizes"]:
        blobs.append(data[end : end + length])
        end += length
    return header, blobs


def _write_files(names: list[str], blobs: list[bytes], user: int | None) -> None:
    """Lays the files; they and their folders belong to the user that the program will be."""
    for name, data in zip(names, blobs[1:], strict=True):
        parts = name.split("/")
        for folder in ("/".join(parts[:n]) for n in range(1, len(parts))):
            if not os.path.isdir(folder):
                os.mkdir(folder, 0o700)
                if user is not None:
                    os.chown(folder, user, user)
        target = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o700)
        with open(target, "wb") as file:
            file.write(data)
            if user is not None:
                os.fchown(target, user, user)


def _limit(job: Job) -> None:
    limits = job.limits
    bounds = {
        resource.RLIMIT_AS: (limits["memory"],) * 2,
        resource.RLIMIT_FSIZE: (limits["file_size"],) * 2,
        resource.RLIMIT_NOFILE: (limits["files"],) * 2,
        resource.RLIMIT_STACK: (_STACK, max(_STACK, limits["memory"])),
        resource.RLIMIT_CORE: (1, 1),  # at 0 a crash still starts the host's collector of crashes, where it has one
        resource.RLIMIT_MEMLOCK: (0, 0),
        resource.RLIMIT_MSGQUEUE: (0, 0),
    }
    if "turns" not in limits:  # an interpreter of many turns has the zygote's clock alone
        bounds[resource.RLIMIT_CPU] = (int(limits["cpu"]) + 1, int(limits["cpu"]) + 2)
    if job.counted is not None:
        most = limits["processes"] if limits["processes"] > 1 else _THREADS
        bounds[resource.RLIMIT_NPROC] = (most + job.counted,) * 2
    for which, (soft, hard) in bounds.items():
        _, ceiling = resource.getrlimit(which)
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        try:
            resource.setrlimit(which, (soft, hard))
        except ValueError:
            if which != resource.RLIMIT_MSGQUEUE or job.filter is None:  # a kernel without such queues; the filter has them too
                raise


def _contain(job: Job) -> None:
    """Who we are, what we may do, which files, which system calls: in this order, for each takes away what it needs itself."""
    if job.user is not None:
        become(job.user)
    prctl(_PR_SET_DUMPABLE, 1)
    prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))  # after the change of user, which would undo it
    if os.getppid() != job.parent:
        raise OSError("the zygote is gone")
    if job.filter is None:
        prctl(_PR_SET_NO_NEW_PRIVS, 1)
        return
    drop_capabilities()
    if job.rules is not None:
        landlock.restrict(_RULES)
        os.close(_RULES)
    elif job.level == "strong" and landlock.abi():
        rules = landlock.ruleset([("/", landlock.READ), *((d, landlock.WRITE) for d in DEVICES), (job.scratch, landlock.WRITE)])
        landlock.restrict(rules)
        os.close(rules)
    seccomp.install(job.filter(os.getpid()))


def _execute(argv: list[str]) -> NoReturn:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.set_inheritable(_READY, False)
    os.write(_READY, b"R")
    sys.stdout.flush()
    os.execvp(argv[0], argv)
