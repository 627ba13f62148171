"""The filter of system calls, decided by an interpreter of its own code: for both machines, on either of them."""

import errno
import struct

import pytest

from assay.sandbox.zygote import seccomp
from assay.sandbox.zygote.tables import CALLS, NEWER

KILL, ALLOW = "kill", "allow"
PID = 4242
X86, ARM = "x86_64", "aarch64"


def judge(code, machine, number, arguments=(), arch=None):
    """What the kernel's interpreter would return for a call."""
    arch = seccomp.ARCHITECTURES[machine] if arch is None else arch
    data = struct.pack("<iIQ6Q", number, arch, 0, *(list(arguments) + [0] * 6)[:6])
    lines = [struct.unpack_from("=HBBI", code, i) for i in range(0, len(code), 8)]
    at = value = 0
    while True:
        op, yes, no, k = lines[at]
        at += 1
        if op == 0x20:
            (value,) = struct.unpack_from("<I", data, k)
        elif op == 0x54:
            value &= k
        elif op == 0x05:
            at += k
        elif op == 0x06:
            return {0x80000000: KILL, 0x7FFF0000: ALLOW}.get(k, errno.errorcode.get(k & 0xFFFF))
        else:
            at += yes if {0x15: value == k, 0x35: value >= k, 0x45: bool(value & k)}[op] else no


@pytest.fixture(params=[X86, ARM])
def machine(request, monkeypatch):
    monkeypatch.setattr(seccomp, "MACHINE", request.param)
    return request.param


def number(name, machine):
    found = CALLS[name][(X86, ARM).index(machine)]
    if found is None:
        pytest.skip(f"{machine} has no {name}")
    return found


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("forks", [True, False])
def test_every_denied_call_is_denied_and_every_other_old_one_allowed(machine, private, forks):
    code = seccomp.program(forks=forks, private=private)(PID)
    column = (X86, ARM).index(machine)
    ruled = {row[column] for row in CALLS.values()}
    denied = " ".join(seccomp.DENIED if private else (*seccomp.DENIED, *seccomp.OF_HOST_FILES)).split()
    for name in denied:
        found = CALLS[name][column]
        assert found is None or judge(code, machine, found, (1 << 63, 2)) == "EPERM", name
    for old in set(range(424)) - ruled:
        assert judge(code, machine, old) == ALLOW, old


def test_of_the_newer_calls_only_listed_ones_exist(machine):
    code = seccomp.program(forks=True, private=True)(PID)
    for new in range(424, 1200):
        assert judge(code, machine, new) == (ALLOW if new in NEWER else "ENOSYS"), new


def test_other_architectures_and_numberings_are_killed(machine):
    code = seccomp.program(forks=False, private=True)(PID)
    other = seccomp.ARCHITECTURES[X86 if machine == ARM else ARM]
    for arch in (other, 0x40000003, 0x40000028, 0):
        assert judge(code, machine, 39, arch=arch) == KILL
    assert judge(code, machine, 0x40000000 | 39) == (KILL if machine == X86 else "ENOSYS")


@pytest.mark.parametrize(
    ("name", "arguments", "alone", "private"),
    [
        ("clone", (0x3D0F00,), ALLOW, ALLOW),  # a thread
        ("clone", (17,), "EAGAIN", ALLOW),
        ("clone", (0x10000000 | 17,), "EPERM", "EPERM"),
        ("clone", (0x10000 | 0x20000,), "EPERM", "EPERM"),
        ("fork", (), "EAGAIN", ALLOW),
        ("vfork", (), "EAGAIN", ALLOW),
        ("kill", (PID, 9), ALLOW, ALLOW),
        ("kill", (0, 9), ALLOW, ALLOW),
        ("kill", (1, 9), "EPERM", "EPERM"),
        ("kill", (3, 9), "EPERM", ALLOW),
        ("kill", (0xFFFFFFFF, 9), "EPERM", ALLOW),
        ("tgkill", (PID, PID, 6), ALLOW, ALLOW),
        ("tgkill", (1, 1, 6), "EPERM", "EPERM"),
        ("tgkill", (3, 3, 6), "EPERM", ALLOW),
        ("prlimit64", (0,), ALLOW, ALLOW),
        ("prlimit64", (PID,), ALLOW, ALLOW),
        ("prlimit64", (1,), "EPERM", "EPERM"),
        ("prctl", (1, 0), "EPERM", "EPERM"),
        ("prctl", (15, 0), ALLOW, ALLOW),
        ("socketpair", (1, 1), ALLOW, ALLOW),
        ("socketpair", (1, 1 | 0o2004000), ALLOW, ALLOW),
        ("socketpair", (1, 2), "EPERM", "EPERM"),
        ("socketpair", (2, 1), "EPERM", "EPERM"),
        ("fcntl", (5, 10), "EPERM", "EPERM"),
        ("fcntl", (5, 4), ALLOW, ALLOW),
        ("ioctl", (0, 0x5412), "ENOTTY", "ENOTTY"),
        ("ioctl", (0, 0x7F0000005412), "ENOTTY", "ENOTTY"),
        ("ioctl", (0, 0x7F0000005401), ALLOW, ALLOW),  # the kernel reads the low word, and so does the filter
        ("ioctl", (0, 0x40086602), "ENOTTY", "ENOTTY"),
        ("fallocate", (3, 1), "ENOTSUP", ALLOW),
        ("ioctl", (0, 0x5401), ALLOW, ALLOW),
        ("openat", (0, 0, 0o1000), "EPERM", ALLOW),
        ("openat", (0, 0, 0o1001), ALLOW, ALLOW),
        ("open", (0, 0o1000), "EPERM", ALLOW),
        ("mknod", (0, 0o010600), ALLOW, ALLOW),
        ("mknod", (0, 0o020600), "EPERM", "EPERM"),
        ("mknodat", (0, 0, 0o060600), "EPERM", "EPERM"),
        ("personality", (0xFFFFFFFF,), ALLOW, ALLOW),
        ("personality", (0x400000,), "EPERM", "EPERM"),
    ],
)
def test_calls_judged_by_their_arguments(machine, name, arguments, alone, private):
    found = number(name, machine)
    assert judge(seccomp.program(forks=False, private=False)(PID), machine, found, arguments) == alone
    assert judge(seccomp.program(forks=True, private=True)(PID), machine, found, arguments) == private


def test_the_process_id_is_put_into_every_place(machine):
    one, two = (seccomp.program(forks=False, private=False)(pid) for pid in (7, 8))
    places = [i for i in range(0, len(one), 8) if one[i : i + 8] != two[i : i + 8]]
    assert len(places) == 4  # limits, affinity, kill, tgkill
    assert seccomp._SELF.to_bytes(4, "little") not in one


def test_the_table_names_nothing_that_no_rule_uses():
    ruled = set(" ".join((*seccomp.DENIED, *seccomp.OF_HOST_FILES)).split()) | set(seccomp._bodies(False, False))
    assert set(CALLS) == ruled


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("forks", [True, False])
def test_no_lock_is_ever_taken(machine, private, forks):
    """Answered as taken (no error), refused, or unknown; to ask whether a lock could be had is allowed."""
    code, taken = seccomp.program(forks=forks, private=private)(PID), None
    fcntl, flock = number("fcntl", machine), number("flock", machine)
    posix = "ENOLCK" if forks else taken
    for command, wanted in ((5, ALLOW), (6, posix), (7, posix), (36, ALLOW), (37, "EINVAL"), (38, "EINVAL"), (1024, "EPERM")):
        assert judge(code, machine, fcntl, (3, command, 1 << 40)) == wanted, command
    assert judge(code, machine, flock, (3, 2)) is taken
