"""Make an environment for arm64 that runs on another processor under emulation: Debian's Python with PyTorch for arm64.

`make arm` calls it; the tests of the compiled library run there (`make prove`). It needs qemu-user-static,
g++-aarch64-linux-gnu and mmdebstrap, and some six gigabytes. `FOLDER/python` is then a Python of arm64, and `FOLDER/g++` a
compiler for it that runs as it is.

    python tools/arm64.py .arm64
"""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

NEEDED = {
    "qemu-aarch64-static": "qemu-user-static",
    "aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu",
    "mmdebstrap": "mmdebstrap",
}
RELEASE, VERSION = "bookworm", "3.11"
"""Of Debian, and of its Python, for which wheels are chosen."""
DEBIAN = "python3,libgomp1,libstdc++6,libgfortran5"
WHEELS = (
    "torch",
    "transformers",
    "safetensors",
    "tokenizers",
    "jinja2",
    "numpy",
    "rich",
    "tomli-w",
    "tyro",
    "hypothesis",
    "pytest",
    "pytest-timeout",
    "pytest-xdist",
)

# What PyTorch reads of its processor when it is loaded; qemu would show it the other one's. A Neoverse N1.
CPU = "neoverse-n1"
CPUINFO = """processor\t: 0
BogoMIPS\t: 50.00
Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0c
CPU revision\t: 1
"""
MIDR = "0x00000000413fd0c1\n"

PYTHON = """#!/bin/sh
export QEMU_LD_PREFIX="{folder}/system" PYTHONHOME="{folder}/system/usr" PYTHONPATH="{folder}/site:$PYTHONPATH"
exec qemu-aarch64-static -cpu "${{ASSAY_ARM64_CPU:-{cpu}}}" "{folder}/system/usr/bin/python{version}" "$@"
"""
COMPILER = """#!/bin/sh
unset PYTHONHOME PYTHONPATH
exec aarch64-linux-gnu-g++ "$@"
"""


def main(args: list[str]) -> int:
    """Make the folder that the one argument names."""
    if len(args) != 1:
        print("usage: python tools/arm64.py FOLDER", file=sys.stderr)
        return 2
    missing = [package for program, package in NEEDED.items() if not shutil.which(program)]
    if missing:
        print(f"missing: apt-get install {' '.join(missing)}", file=sys.stderr)
        return 1
    folder = Path(args[0]).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    debian = ["mmdebstrap", "--quiet", "--variant=extract", "--architectures=arm64", f"--include={DEBIAN}"]
    subprocess.run([*debian, RELEASE, str(folder / "system")], check=True)
    wheels(folder / "site")
    write(folder / "system" / "proc" / "cpuinfo", CPUINFO)
    write(folder / "system" / "sys" / "devices" / "system" / "cpu" / "cpu0" / "regs" / "identification" / "midr_el1", MIDR)
    write(folder / "g++", COMPILER, 0o755)
    write(folder / "python", PYTHON.format(folder=folder, cpu=CPU, version=VERSION), 0o755)
    return subprocess.run([str(folder / "python"), "-c", "import torch"], check=False).returncode


def wheels(site: Path) -> None:
    """Fetch wheels for arm64, at the versions of constraints.txt, and unpack them."""
    platforms = ["any", "manylinux2014_aarch64", *(f"manylinux_2_{minor}_aarch64" for minor in range(17, 37))]
    chosen = ["--only-binary=:all:", "--implementation", "cp", "--python-version", VERSION]
    chosen += [word for abi in ("cp" + VERSION.replace(".", ""), "abi3", "none") for word in ("--abi", abi)]
    chosen += [word for platform in platforms for word in ("--platform", platform)]
    with tempfile.TemporaryDirectory(dir=site.parent) as place:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*command, *chosen, "-c", "constraints.txt", "-d", place, *WHEELS], check=True)
        for wheel in sorted(Path(place).glob("*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(site)
            wheel.unlink()


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """A file with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
